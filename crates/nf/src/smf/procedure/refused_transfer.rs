//! Messages that the AMF refuses for the time of a handover or a registration of the UE (TS 23.502 4.9.1.3.1, 4.2.2.2.2; TS 29.518 5.2.2.3.1), or the
//! gNB for that of a handover (TS 23.502 4.9.1.2.1, 4.9.1.3.1): downlink data of an idle session, PDU SESSION MODIFICATION COMMAND, and the answer to a
//! UE that revokes reflective QoS. They are sent again.
//!
//! ```text
//!  AMF ─> 409 TEMPORARY_REJECT_HANDOVER_ONGOING, or _REGISTRATION_ONGOING                             Guard
//!  AMF, gNB ─> resources not set up or modified: a handover is triggered                              Guard (REPETITION)
//!  AMF ─> hoState COMPLETED or CANCELLED, or another AMF serves the UE: sent again at once
//!         Guard expires                                                 sent again
//! ```
//!
//! A setup that the gNB refuses, or the AMF does not answer, is requested again, up to [`MOST_SETUPS`] times with growing intervals; that of an establishment
//! with the accept for the UE ([`super::establishment::AwaitingResourceSetup`]). A UE that is idle meanwhile is paged for it only if the UPF has reported
//! downlink data.
//!
//! The guard timer runs in states that do not use it otherwise. A repeated command counts as a retransmission; downlink data are reported until
//! the AMF accepts or refuses them for good, and so is the answer to a revocation, also if the AMF does not answer. A message that ends a session
//! is not sent again: neither Pith's AMF nor a gNB refuses it for a handover.

use super::state::Phase;
use super::{State, establishment, path, user_plane};
use crate::kit::{Duration, Level};
use crate::smf::consumer;
use crate::smf::context::{CallId, SmContext};
use crate::smf::env::Env;
use crate::smf::timers::SessionTimer;
use bytes::Bytes;
use pith_ngap::transfer::ModifyUnsuccessfulTransfer;
use pith_sbi::nsmf_pdusession::{HoState, N2SmInfoType, SmContextUpdateData};
use pith_sbi::{Cause, Problem};

/// How long the SMF waits after a gNB's refusal. Of a handover between gNBs neither AMF nor SMF knows before it is over; most take less.
pub(super) const REPETITION: Duration = Duration::from_secs(1);

/// How often a setup is requested again because of a handover, or without an answer of the AMF.
const MOST_SETUPS: u8 = 6;

/// Whether a message waits until the AMF may accept it.
pub(super) const fn is_waiting(session: &SmContext) -> bool {
    session.timers.runs(SessionTimer::Guard)
}

/// Whether the AMF refuses a message for some time.
pub(super) fn is_temporary(problem: &Problem) -> bool {
    let causes = [Cause::TemporaryRejectHandoverOngoing, Cause::TemporaryRejectRegistrationOngoing];
    causes.iter().any(|cause| problem.is(cause))
}

/// Whether the gNB does not modify resources because of a handover.
pub(super) fn is_handover(kind: Option<&N2SmInfoType>, info: &[u8]) -> bool {
    kind == Some(&N2SmInfoType::PduResModFail)
        && ModifyUnsuccessfulTransfer::decode(info).is_ok_and(|transfer| transfer.cause.is_handover())
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
    state: &mut State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    call: CallId,
    problem: &Problem,
) {
    let is_temporary = is_temporary(problem);
    if call.answers_revocation() {
        let is_awaited = session.reflective.revocation.is_some();
        if !is_awaited || !(is_temporary || consumer::is_unanswered(problem)) {
            return;
        }
        session.reflective.is_interrupted = true;
    } else if !is_temporary {
        if call.requests_paging() && problem.is(&Cause::UeInCmIdleState) {
            session.gnb.refused_setups = 0;
        }
        let is_idle = state.user_plane().is_some_and(|user_plane| user_plane.gnb.is_none());
        // The UPF reports only the first packet.
        if call.requests_paging() && path::is_unanswered(problem) && is_idle && may_wait(state) {
            set_up_later(session, env, "the AMF does not answer: the UE is paged later");
        }
        return;
    } else if session.accept.is_some() {
        return establishment::note_refused(session);
    } else if let State::AwaitingResourceSetup(setup) = state {
        // The session was restored meanwhile, and waits for no call.
        return setup.note_refused(session, env);
    } else if call.requests_paging() {
        session.pending.downlink_data = state.user_plane().is_some_and(|user_plane| user_plane.gnb.is_none());
    } else {
        session.gnb.withdraw_modification();
        if session.modification.is_none() {
            return;
        }
    }
    if may_wait(state) {
        session.start(env, SessionTimer::Guard, env.config.guard);
    }
}

/// The gNB has not modified the session's resources. Returns whether that is because of a handover: it gets the command again, and so does the UE,
/// unless that has confirmed it.
pub(in crate::smf) fn on_unmodified(
    state: &State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    info: &Bytes,
) -> bool {
    let Some(modification) = &session.modification else {
        // The UE has got it, and the target gNB gets it, or says which flows it does not take.
        return is_handover(Some(&N2SmInfoType::PduResModFail), info);
    };
    let retransmissions = modification.retransmissions();
    if !may_wait(state) || !is_handover(Some(&N2SmInfoType::PduResModFail), info) {
        return false;
    }
    session.log(env, Level::Info, || "the UE is handed over: it is modified later".to_owned());
    // The last retransmission ends with T3591.
    if retransmissions < env.config.retransmissions {
        session.start(env, SessionTimer::Guard, REPETITION * (1 << retransmissions.min(4)));
    }
    true
}

/// The UE confirms a command although the gNB has refused the change: the AMF has sent it what the gNB returned (TS 38.413 8.6.4), or the gNB has
/// passed the command on. The gNB gets the change alone.
pub(in crate::smf) fn on_confirmed(state: &State, session: &mut SmContext, env: &mut Env<'_>) {
    let is_at_gnb = session.flows.is_at_gnb || session.modification.is_none();
    if !is_at_gnb && may_wait(state) && is_waiting(session) {
        user_plane::modify_at_gnb(session, env, &[]);
    }
}

/// The gNB has not set the session's resources up, because of a handover, or the AMF has not answered: they are requested again, after a longer time
/// each time. Returns whether they are.
pub(super) fn set_up_later(session: &mut SmContext, env: &mut Env<'_>, why: &'static str) -> bool {
    let refused = session.gnb.refused_setups;
    if refused >= MOST_SETUPS {
        session.gnb.refused_setups = 0;
        return false;
    }
    session.log(env, Level::Info, || why.to_owned());
    session.gnb.refused_setups = refused + 1;
    session.pending.downlink_data = true;
    session.start(env, SessionTimer::Guard, REPETITION * (1 << refused.min(4)));
    true
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
