//! A UE leaves the service area of a local area data network (TS 23.501 5.6.5): its session is released, so that neither UE nor network uses
//! it outside. The UE establishes it again when it is back.
//!
//! | step | from |
//! |---|---|
//! | UpdateSMContext, `presenceInLadn` OUT_OF_AREA: what else it has is processed; an activation is refused | AMF |
//! | PDU SESSION RELEASE COMMAND with #46, for which the UE is not paged (TS 23.502 4.3.4.2 step 3b) | |
//! | the UE is in CM-IDLE: SMContextStatusNotify; the UE learns it from the PDU session status | AMF |

use super::{State, release};
use crate::kit::{Level, PendingReply};
use crate::smf::context::SmContext;
use crate::smf::env::Env;
use crate::smf::update::{acknowledge, serve};
use pith_nas::GsmCause;
use pith_sbi::nsmf_pdusession::{SmContextUpdateData, UpCnxState};
use pith_sbi::{Cause, Problem};

/// Serves an update that says that the UE is outside, and ends the session, at once or when the change in progress is complete.
pub(in crate::smf) fn on_left(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    data: SmContextUpdateData,
) -> State {
    let state = if matches!(state, State::Abandoned(_) | State::Over) {
        return serve(state, session, env, reply, data);
    } else if data.is_presence_report() {
        acknowledge(reply, env.out);
        state
    } else if data.up_cnx_state == Some(UpCnxState::Activating) {
        // TS 29.502 table 6.1.3.3.4.2.2-2.
        reply.refuse(Problem::new(Cause::OutOfLadnServiceArea), env.out);
        state
    } else {
        serve(state, session, env, reply, data)
    };
    left(state, session, env)
}

fn left(state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    if matches!(state, State::AwaitingReleaseComplete(_) | State::Abandoned(_) | State::Over) {
        // It ends already.
        return state;
    }
    session
        .log(env, Level::Info, || format!("the UE has left the service area of '{}': released", session.dnn));
    release::release_when_established(state, session, GsmCause::OutOfLadnServiceArea)
}
