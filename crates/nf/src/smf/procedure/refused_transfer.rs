//! Messages that the AMF refuses for the time of a handover or a registration of the UE (TS 23.502 4.9.1.3.1, 4.2.2.2.2; TS 29.518 5.2.2.3.1): downlink
//! data of an idle session, PDU SESSION MODIFICATION COMMAND, and the answer to a UE that revokes reflective QoS. They are sent again.
//!
//! ```text
//!  AMF ─> 409 TEMPORARY_REJECT_HANDOVER_ONGOING, or _REGISTRATION_ONGOING                             Guard
//!  AMF ─> hoState COMPLETED or CANCELLED, or another AMF serves the UE: sent again at once
//!         Guard expires                                                 sent again
//! ```
//!
//! The guard timer runs in states that do not use it otherwise. A repeated command counts as a retransmission; downlink data are reported until
//! the AMF accepts or refuses them for good, and so is the answer to a revocation, also if the AMF does not answer. A message that begins or ends
//! a session is not sent again: Pith's AMF does not refuse it for a handover.

use super::State;
use super::state::Phase;
use crate::smf::consumer;
use crate::smf::context::{CallId, SmContext};
use crate::smf::env::Env;
use crate::smf::timers::SessionTimer;
use pith_sbi::nsmf_pdusession::{HoState, SmContextUpdateData};
use pith_sbi::{Cause, Problem};

/// Whether a message waits until the AMF may accept it.
pub(super) const fn is_waiting(session: &SmContext) -> bool {
    session.timers.runs(SessionTimer::Guard)
}

/// Whether the guard timer has no other use in the state (see `procedure::on_guard`).
fn may_wait(state: &State) -> bool {
    let guards_itself = matches!(
        state,
        State::AwaitingUplinkSwitch(_) | State::AwaitingResourceRelease(_) | State::AwaitingRestoration(_)
    );
    matches!(state.phase(), Phase::Established | Phase::Changing | Phase::Branching) && !guards_itself
}

/// The AMF refuses a message for whose answer no state waits.
pub(super) fn on_refusal(
    state: &State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    call: CallId,
    problem: &Problem,
) {
    let causes = [Cause::TemporaryRejectHandoverOngoing, Cause::TemporaryRejectRegistrationOngoing];
    let is_temporary = causes.iter().any(|cause| problem.is(cause));
    if call.answers_revocation() {
        let is_awaited = session.reflective.revocation.is_some();
        if !is_awaited || !(is_temporary || consumer::is_unanswered(problem)) {
            return;
        }
        session.reflective.is_interrupted = true;
    } else if !is_temporary {
        return;
    } else if call.requests_paging() {
        session.pending.downlink_data = state.user_plane().is_some_and(|user_plane| user_plane.gnb.is_none());
    } else if session.modification.is_none() {
        return;
    }
    if may_wait(state) {
        session.start(env, SessionTimer::Guard, env.config.guard);
    }
}

/// The AMF's update may say that the handover is over.
pub(in crate::smf) fn on_update(
    state: &State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    data: &SmContextUpdateData,
) {
    let is_over = matches!(data.ho_state, Some(HoState::Completed | HoState::Cancelled));
    if (is_over || data.serving_nf_id.is_some()) && may_wait(state) && is_waiting(session) {
        session.stop(env, SessionTimer::Guard);
        send_again(state, session, env);
    }
}

/// Sends a command again. Downlink data and the answer to a revocation follow as soon as the session is established
/// ([`super::user_plane::resume`], [`super::modification_request::resume`]).
pub(super) fn send_again(state: &State, session: &mut SmContext, env: &mut Env<'_>) {
    if let Some(modification) = session.modification.take() {
        modification.on_t3591(state, session, env);
    }
}

/// The UE has answered the command that may have waited, or it has ended. Downlink data that the AMF has refused are reported again at once.
pub(in crate::smf) fn on_command_ended(state: &State, session: &mut SmContext, env: &mut Env<'_>) {
    if may_wait(state) {
        session.stop(env, SessionTimer::Guard);
    }
}
