//! A UPF has failed or restarted, or has lost one session (TS 23.527 4.3, 5.3.3). A session that loses only its classifier
//! continues without it; others are established again if the UPF has restarted ([`super::restoration`]), and end if not.

use super::path::{self, Towards};
use super::restoration::AwaitingRestoration;
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
    let returns = env.upfs.has_restarted(upf);
    if let State::AwaitingConfirmation(state) = state {
        return on_upf_lost(AwaitingRestoration::new(state.user_plane, true).into(), session, env, upf);
    }
    if let State::AwaitingRestoration(waiting) = state {
        if returns {
            return waiting.again(session, env);
        }
        return release::end_and_notify_amf(waiting.into_held().without(upf), session, env);
    }
    // The request that it did not answer has failed.
    if let Some((establishing, call)) = state.establishing()
        && establishing == upf
    {
        return super::on_n4_response(state, session, env, call, Err(N4Error::NoAssociation));
    }
    match state {
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
        state if returns => restoration::after_restart(state, session, env, upf),
        // The phone would send into a session that has ended (TS 23.527 4.3.3); it establishes it again, at another UPF.
        State::Established(state) if state.user_plane.gnb.is_some() => {
            release::reactivate_without_upf(state, session, env, upf)
        }
        state => release::end_and_notify_amf(state.into_held().without(upf), session, env),
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
    on_upf_lost(state, session, env, at.upf)
}

fn log(session: &SmContext, env: &mut Env<'_>) {
    session
        .log(env, Level::Warn, || "the classifier has failed: the session continues without it".to_owned());
}

/// Whether the UPF is a classifier that the session does not need.
fn is_removable(user_plane: &UserPlane, upf: UpfHandle) -> bool {
    let at_front = user_plane.front.as_ref().is_some_and(|front| front.session.upf == upf);
    at_front && user_plane.has_removable_front() && user_plane.anchor.upf != upf
}

/// Switches all packets to the anchor: first the downlink, then the uplink.
fn without_classifier(mut user_plane: UserPlane, session: &mut SmContext, env: &mut Env<'_>) -> State {
    user_plane.front = None;
    path::switch_downlink(user_plane, session, env, Towards::Anchor)
}
