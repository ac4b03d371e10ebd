//! A UPF has failed or restarted, or has lost one session (TS 23.527 4.3, 5.3.3). A session that loses only its classifier
//! continues without it; others are established again if the UPF has restarted ([`super::restoration`]), and end if not.

use super::path::{self, Towards};
use super::{Established, State, release, restoration};
use crate::kit::{Level, N4Error, UpfHandle};
use crate::smf::context::{SmContext, UpfSession, UserPlane};
use crate::smf::env::Env;

/// A UPF of the session has failed, or one that has not yet answered the request to establish it.
pub(in crate::smf) fn on_upf_lost(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    upf: UpfHandle,
) -> State {
    match fail_request(state, session, env, upf) {
        // The failure of the request has left the UPF out, or has ended the session.
        state if !state.is_at(upf) => state,
        State::AwaitingRestoration(waiting) => waiting.on_upf_lost(session, env, upf),
        State::Established(Established { user_plane }) if is_removable(&user_plane, upf) => {
            log(session, env);
            without_classifier(user_plane, session, env)
        }
        State::AwaitingUplinkSwitch(state) if is_removable(&state.user_plane, upf) => {
            log(session, env);
            without_classifier(state.abandon(session, env), session, env)
        }
        // `AwaitingDownlinkSwitch::on_response` then switches the downlink to the gNB.
        State::AwaitingDownlinkSwitch(mut state) if is_removable(&state.user_plane, upf) => {
            log(session, env);
            state.user_plane.front = None;
            State::AwaitingDownlinkSwitch(state)
        }
        state if env.upfs.has_restarted(upf) => restoration::after_restart(state, session, env, upf),
        state => {
            let has_tunnel = state.has_tunnel();
            release::end_unserved(state.into_held().without(upf), has_tunnel, session, env)
        }
    }
}

/// The request that the UPF did not answer has failed. A request to the session's other UPF has failed, too, if the session needs both: the change
/// is over, and [`restoration::after_absence`] finds which of them is lost. The failure may lead to another request to the same UPF: a classifier
/// that is left out leaves the change to the anchor.
fn fail_request(mut state: State, session: &mut SmContext, env: &mut Env<'_>, upf: UpfHandle) -> State {
    for _ in 0..2 {
        state = match state {
            State::AwaitingRates(rates) if is_removable(&rates.user_plane, upf) => {
                log(session, env);
                return rates.without_classifier(session, env);
            }
            // The anchor has failed before the other UPF has answered.
            State::AwaitingFrontEstablishment(state) if state.upf() != upf => {
                return state.on_guard(session, env);
            }
            State::AwaitingForwardingTunnel(state) if state.upf() != upf => {
                return state.abandon(session, env);
            }
            state => match state.call().filter(|_| needs_answer(&state, upf)) {
                Some(call) => super::on_n4_response(state, session, env, call, Err(N4Error::NoAssociation)),
                None => return state,
            },
        };
    }
    state
}

/// Whether a change that waits for a UPF fails without that one.
fn needs_answer(state: &State, upf: UpfHandle) -> bool {
    use State as S;
    match state {
        // No NF waits for an answer.
        S::AwaitingConfirmation(state) => is_removable(&state.user_plane, upf),
        S::AwaitingN9Modification(_)
        | S::AwaitingN4Modification(_)
        | S::AwaitingPathSwitch(_)
        | S::AwaitingFlowMobility(_)
        | S::AwaitingRates(_)
        | S::AwaitingBuffering(_) => state.is_at(upf),
        S::AwaitingDownlinkSwitch(state) => state.user_plane.anchor.upf == upf,
        S::AwaitingRestoration(_) => false,
        state => state.establishing().is_some_and(|(establishing, _)| establishing == upf),
    }
}

/// A UPF of the session does not know its endpoint of the N9 tunnel: it has lost the session (TS 23.527 5.3.3). The SMF
/// requests the UPF to delete the session, in case the UPF lost only a part of it.
pub(super) fn on_n9_tunnel_lost(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    at: UpfSession,
) -> State {
    let name = env.upfs.info(at.upf).map(|info| info.name.clone()).unwrap_or_default();
    session.log(env, Level::Warn, || {
        format!("UPF {name} no longer knows its N9 tunnel (GTP-U Error Indication)")
    });
    env.delete_at_upf(at);
    let state = match state {
        // The UPF still answers: what it establishes is deleted.
        State::AwaitingForwardingTunnel(state) => state.abandon(session, env),
        state => state,
    };
    on_upf_lost(state, session, env, at.upf)
}

fn log(session: &SmContext, env: &mut Env<'_>) {
    session
        .log(env, Level::Warn, || "the classifier has failed: the session continues without it".to_owned());
}

/// Whether the UPF is a classifier that the session does not need.
pub(super) fn is_removable(user_plane: &UserPlane, upf: UpfHandle) -> bool {
    let at_front = user_plane.front.as_ref().is_some_and(|front| front.session.upf == upf);
    at_front && user_plane.has_removable_front() && user_plane.anchor.upf != upf
}

/// Switches all packets to the anchor: first the downlink, then the uplink.
pub(super) fn without_classifier(
    mut user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
) -> State {
    user_plane.front = None;
    path::switch_downlink(user_plane, session, env, Towards::Anchor)
}
