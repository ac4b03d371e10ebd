//! A UE leaves the service area of a local area data network (TS 23.501 5.6.5): its session is released, so that neither UE nor network uses
//! it outside. The UE establishes it again when it is back.
//!
//! | step | from |
//! |---|---|
//! | UpdateSMContext, `presenceInLadn` OUT_OF_AREA | AMF |
//! | PDU SESSION RELEASE COMMAND with #46, or, without a user plane, SMContextStatusNotify: the UE learns it from the PDU session status | |

use super::{Established, State, release};
use crate::kit::Level;
use crate::smf::context::SmContext;
use crate::smf::env::Env;
use pith_nas::GsmCause;

/// Ends the session, at once or when the change in progress is complete.
pub(in crate::smf) fn left(state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    session
        .log(env, Level::Info, || format!("the UE has left the service area of '{}': released", session.dnn));
    match state {
        State::Established(Established { user_plane }) if user_plane.gnb.is_none() => {
            release::end_and_notify_amf(user_plane.into(), session, env)
        }
        state => release::release_when_established(state, session, GsmCause::OutOfLadnServiceArea),
    }
}
