//! A UPF is lost, and its sessions with it, or it has lost one session (TS 23.527 4.3, 5.3.3): a session goes on without
//! its classifier, all others end.

use super::path::{self, Towards};
use super::{Established, State, release};
use crate::kit::{Level, N4Error, UpfHandle};
use crate::smf::context::{SmContext, UpfSession, UserPlane};
use crate::smf::env::Env;

/// A UPF that has the session, or was asked for it, is lost: nothing is left to delete there.
pub(in crate::smf) fn on_upf_lost(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    upf: UpfHandle,
) -> State {
    // The establishment that it owes an answer to has failed.
    if let Some((establishing, call)) = state.establishing()
        && establishing == upf
    {
        return super::on_n4_response(state, session, env, call, Err(N4Error::NoAssociation));
    }
    match state {
        State::Established(Established { user_plane }) if is_spare(&user_plane, upf) => {
            log(session, env);
            without_classifier(user_plane, session, env)
        }
        State::AwaitingUplinkSwitch(state) if is_spare(&state.user_plane, upf) => {
            log(session, env);
            without_classifier(state.give_up(session, env), session, env)
        }
        // Once the anchor has answered, its downlink packets are switched to the gNB.
        State::AwaitingDownlinkSwitch(mut state) if is_spare(&state.user_plane, upf) => {
            log(session, env);
            state.user_plane.front = None;
            State::AwaitingDownlinkSwitch(state)
        }
        state => release::end_and_notify_amf(state.dismantle().without(upf), session, env),
    }
}

/// A UPF of the session does not know its end of the N9 tunnel, so it has lost the session (TS 23.527 5.3.3). The UPF is
/// asked to delete the session, in case it lost only a part of it.
pub(super) fn on_n9_tunnel_lost(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    at: UpfSession,
) -> State {
    let name = env.upfs.info(at.upf).map(|info| info.name.clone()).unwrap_or_default();
    session.log(env, Level::Warn, || {
        format!("UPF {name} does not know its N9 tunnel any more (GTP-U Error Indication)")
    });
    env.delete_at_upf(at);
    on_upf_lost(state, session, env, at.upf)
}

fn log(session: &SmContext, env: &mut Env<'_>) {
    session.log(env, Level::Warn, || "the classifier is lost".to_owned());
}

/// Whether the UPF is a classifier, which the session can do without.
fn is_spare(user_plane: &UserPlane, upf: UpfHandle) -> bool {
    let at_front = user_plane.front.as_ref().is_some_and(|front| front.session.upf == upf);
    at_front && user_plane.has_spare_front() && user_plane.anchor.upf != upf
}

/// All packets take the anchor: first downlink, then uplink packets are switched.
fn without_classifier(mut user_plane: UserPlane, session: &mut SmContext, env: &mut Env<'_>) -> State {
    user_plane.front = None;
    path::switch_downlink(user_plane, session, env, Towards::Anchor)
}
