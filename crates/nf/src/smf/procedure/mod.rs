//! The procedures of a session: a state for each wait. A state owns the data that are valid while it waits.
//!
//! A handler consumes the state and returns the next one, which [`super::context::SmContext::step`] sets. This file dispatches
//! the inputs by state; each table lists every state. An input that a state does not expect is answered or logged.

pub(super) mod branching;
pub(super) mod confirmation;
pub(super) mod establishment;
pub(super) mod flow_mobility;
pub(super) mod forwarding;
pub(super) mod handover;
pub(super) mod ladn;
pub(super) mod lost_tunnel;
pub(super) mod modification;
pub(super) mod modification_request;
pub(super) mod path;
pub(super) mod path_switch;
pub(super) mod refused_setup;
pub(super) mod refused_transfer;
pub(super) mod release;
pub(super) mod restoration;
pub(super) mod session_report;
mod state;
pub(super) mod subscription_change;
pub(super) mod upf_failure;
pub(super) mod user_plane;

use super::context::{CallId, SmContext};
use super::env::Env;
use super::timers::SessionTimer;
use super::{consumer, update};
use crate::kit::{Level, N4Error};
pub(super) use establishment::AwaitingResourceSetup;
use pith_pfcp::Message;
use pith_sbi::{Reply, Response};
pub(super) use state::{Established, Phase, State};

/// Handles the reply to one of the session's calls.
pub(super) fn on_reply(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    call: CallId,
    reply: Reply,
) -> State {
    use State as S;
    if subscription_change::awaits(session, call) {
        return subscription_change::on_reply(state, session, env, reply);
    }
    if state.call() != Some(call) {
        if let S::AwaitingReleaseComplete(state) = state {
            let next = state.on_answer(session, env, &reply);
            consumer::delete_created_resource(reply, env.out);
            return next;
        }
        let is_unanswered = reply.as_ref().is_err_and(|problem| consumer::is_unanswered(problem));
        session.reflective.awaits_pcf &= !call.reports_to_pcf() || is_unanswered;
        if call.reports_to_pcf()
            && let Ok(Response::SmPolicyDecision(decision)) = &reply
        {
            modification::apply_answer(&state, session, env, decision);
            return state;
        }
        let mut state = state;
        if let Err(problem) = &reply {
            session.log(env, Level::Debug, || format!("a call whose answer is not needed failed: {problem}"));
            refused_transfer::on_refusal(&mut state, session, env, call, problem);
        }
        consumer::delete_created_resource(reply, env.out);
        return state;
    }
    match state {
        S::AwaitingSubscriptionData(state) => state.on_reply(session, env, reply),
        S::AwaitingPolicyDecision(state) => state.on_reply(session, env, reply),
        S::AwaitingResourceSetup(state) => state.on_reply(session, env, reply),
        S::AwaitingUplinkSwitch(state) => state.on_reply(session, env, reply),
        S::AwaitingResourceRelease(state) => state.on_reply(session, env, reply),
        S::AwaitingN4Establishment(_)
        | S::AwaitingFrontEstablishment(_)
        | S::AwaitingN9Modification(_)
        | S::Established(_)
        | S::AwaitingN4Modification(_)
        | S::AwaitingPathSwitch(_)
        | S::AwaitingFlowMobility(_)
        | S::AwaitingForwardingTunnel(_)
        | S::AwaitingRates(_)
        | S::AwaitingClassifier(_)
        | S::AwaitingDownlinkSwitch(_)
        | S::AwaitingBuffering(_)
        | S::AwaitingReleaseComplete(_)
        | S::AwaitingRestoration(_)
        | S::AwaitingConfirmation(_)
        | S::Abandoned(_)
        | S::Over => not_expected(state, session, env, "an SBI reply"),
    }
}

/// Handles the response of a UPF, or its absence.
pub(super) fn on_n4_response(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    call: CallId,
    result: Result<Message, N4Error>,
) -> State {
    use State as S;
    if branching::is_drained(session, env, call, &result) {
        return state;
    }
    if state.call() != Some(call) {
        session.log(env, Level::Debug, || "a UPF answered a request whose answer is not needed".to_owned());
        release::delete_established(&state, env, &result);
        return state;
    }
    match state {
        S::AwaitingN4Establishment(state) => state.on_response(session, env, result),
        S::AwaitingFrontEstablishment(state) => state.on_response(session, env, result),
        S::AwaitingN9Modification(state) => state.on_response(session, env, result),
        S::AwaitingN4Modification(state) => state.on_response(session, env, result),
        S::AwaitingPathSwitch(state) => state.on_response(session, env, result),
        S::AwaitingFlowMobility(state) => state.on_response(session, env, result),
        S::AwaitingForwardingTunnel(state) => state.on_response(session, env, result),
        S::AwaitingRates(state) => state.on_response(session, env, result),
        S::AwaitingClassifier(state) => state.on_response(session, env, result),
        S::AwaitingDownlinkSwitch(state) => state.on_response(session, env, result),
        S::AwaitingBuffering(state) => state.on_response(session, env, result),
        S::AwaitingRestoration(state) => state.on_response(session, env, result),
        S::AwaitingConfirmation(state) => state.on_response(session, env, result),
        S::Abandoned(state) => state.on_response(env, result),
        S::AwaitingSubscriptionData(_)
        | S::AwaitingPolicyDecision(_)
        | S::AwaitingResourceSetup(_)
        | S::Established(_)
        | S::AwaitingUplinkSwitch(_)
        | S::AwaitingResourceRelease(_)
        | S::AwaitingReleaseComplete(_)
        | S::Over => not_expected(state, session, env, "an N4 response"),
    }
}

/// Handles the expiry of a timer.
pub(super) fn on_timer(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    timer: SessionTimer,
) -> State {
    match timer {
        SessionTimer::Guard => on_guard(state, session, env),
        SessionTimer::T3591 => match session.modification.take() {
            Some(modification) => {
                modification.on_t3591(&state, session, env);
                state
            }
            None => not_expected(state, session, env, "T3591 without modification"),
        },
        SessionTimer::T3592 => match state {
            State::AwaitingReleaseComplete(state) => state.on_t3592(session, env),
            state => not_expected(state, session, env, "T3592"),
        },
        SessionTimer::PathGrace => {
            branching::on_path_grace(session, env);
            state
        }
        SessionTimer::Reregistration => {
            subscription_change::on_reregistration_due(session);
            state
        }
        SessionTimer::RegistrationCheck => {
            subscription_change::on_registration_check_due(session, env);
            state
        }
    }
}

/// The guard timer has expired: UDM, PCF, a UPF or the gNB did not answer in time, or the AMF may accept what it has refused.
fn on_guard(state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    use State as S;
    match state {
        S::AwaitingSubscriptionData(state) => state.on_guard(session, env),
        S::AwaitingPolicyDecision(state) => state.on_guard(session, env),
        S::AwaitingN4Establishment(state) => state.on_guard(session, env),
        S::AwaitingFrontEstablishment(state) => state.on_guard(session, env),
        S::AwaitingN9Modification(state) => state.on_guard(session, env),
        S::AwaitingResourceSetup(state) => state.on_guard(session, env),
        S::AwaitingUplinkSwitch(state) => state.on_guard(session, env),
        S::AwaitingResourceRelease(state) => state.released(session, env),
        S::AwaitingRestoration(state) => state.on_guard(session, env),
        // The gateway retransmits requests to a UPF and reports if there is no response; these states need no guard timer. It runs for a message
        // that the AMF has refused.
        S::AwaitingN4Modification(_)
        | S::AwaitingPathSwitch(_)
        | S::AwaitingFlowMobility(_)
        | S::AwaitingForwardingTunnel(_)
        | S::AwaitingRates(_)
        | S::AwaitingClassifier(_)
        | S::AwaitingDownlinkSwitch(_)
        | S::AwaitingBuffering(_)
        | S::AwaitingConfirmation(_)
        | S::Established(_) => {
            refused_transfer::send_again(&state, session, env);
            state
        }
        S::AwaitingReleaseComplete(_) | S::Abandoned(_) | S::Over => {
            not_expected(state, session, env, "the guard timer")
        }
    }
}

/// An input that cannot occur, because a state's timers and calls end with the state. It is logged and changes nothing.
fn not_expected(state: State, session: &SmContext, env: &mut Env<'_>, what: &str) -> State {
    debug_assert!(false, "{what} in {}", state.name());
    session.log(env, Level::Error, || format!("{what} in {}: this is a bug in Pith", state.name()));
    state
}

/// What may be pending for an established session, in the order of [`super::context::Pending`].
const RESUME: [fn(Established, &mut SmContext, &mut Env<'_>) -> State; 7] = [
    release::resume,
    lost_tunnel::resume,
    subscription_change::resume,
    modification_request::resume,
    modification::resume,
    path::resume,
    user_plane::resume,
];

/// Processes the pending inputs of a session that is established, one at a time.
pub(super) fn resume_pending(state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    let state = establishment::resume(state, session, env);
    let mut state = update::resume(state, session, env);
    for step in RESUME {
        state = match state {
            State::Established(established) => step(established, session, env),
            other => return other,
        };
    }
    state
}
