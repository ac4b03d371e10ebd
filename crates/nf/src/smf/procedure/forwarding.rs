//! Indirect data forwarding in an N2 handover: the gNBs have no path of their own for packets that the source gNB has not delivered, so that the UPF
//! forwards them (TS 23.502 4.9.1.3.2 steps 11c to 11f; TS 23.501 5.8.2.10).
//!
//! ```text
//!  hoState PREPARED       the target gNB's endpoint for forwarded packets
//!         AwaitingForwardingTunnel    <─ UPF of N3; then the SMF answers the AMF with the UPF's endpoint, for the source gNB
//!  hoState COMPLETED      starts PathGrace (4.9.1.3.3 step 12): then the UPF deletes the tunnel
//! ```
//!
//! The tunnel is a second PFCP session at the UPF: it needs none of the session's rules, and it ends as the session of a UPF that has left the path
//! does ([`SmContext::draining`]). Without it the handover goes on, and these packets are lost.

use super::establishment::accepted;
use super::{State, branching, handover, release};
use crate::kit::document::pack_struct;
use crate::kit::{Level, N4Error, PendingReply, UpfHandle};
use crate::smf::context::{CallId, SmContext, UpfSession, UserPlane};
use crate::smf::env::Env;
use crate::smf::n4;
use crate::smf::timers::SessionTimer;
use crate::smf::tunnels;
use pith_ngap::transfer::Tunnel;
use pith_pfcp::Message;
use pith_types::Seid;
use std::time::Duration;

/// The UPF is to allocate an endpoint for packets of the source gNB. The AMF's request is not answered yet.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingForwardingTunnel {
    pub user_plane: UserPlane,
    to: Forwarded,
    /// None after a restart: the AMF repeats its request.
    reply: Option<PendingReply>,
    /// The request.
    pub call: CallId,
}

/// What the target gNB takes of the packets that the source gNB has not delivered.
#[derive(Debug, Clone)]
pub(super) struct Forwarded {
    /// Its endpoint.
    pub target: Tunnel,
    /// QFIs.
    pub flows: Vec<u8>,
}

pack_struct!(AwaitingForwardingTunnel { user_plane, to, reply, call });
pack_struct!(Forwarded { target, flows });

/// How long the tunnel exists if no end of the handover is reported: longer than an AMF waits for the UE to arrive.
const LIMIT: Duration = Duration::from_secs(20);

/// Requests the tunnel.
pub(super) fn begin(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: Option<PendingReply>,
    to: Forwarded,
) -> State {
    end(session, env);
    let UpfSession { upf, tunnel, .. } = user_plane.n3_session();
    let is_usable = tunnels::is_usable(&to.target, tunnel.address);
    let Some(local) = env.upfs.info(upf).filter(|_| is_usable).map(|info| info.local_address) else {
        handover::command(None, to.flows, reply, env);
        return State::established(user_plane);
    };
    let call = session.ask_upf(env, upf, Seid(0), n4::forwarding(session, local, to.target));
    State::AwaitingForwardingTunnel(AwaitingForwardingTunnel { user_plane, to, reply, call })
}

/// The UE has arrived: packets in transit are still forwarded.
pub(super) fn drain(session: &mut SmContext, env: &mut Env<'_>) {
    if session.draining.is_some() {
        session.start(env, SessionTimer::PathGrace, env.config.path_grace);
    }
}

/// The tunnel of a former handover, or of one that has failed, is no longer needed.
pub(super) fn end(session: &mut SmContext, env: &mut Env<'_>) {
    session.stop(env, SessionTimer::PathGrace);
    branching::on_path_grace(session, env);
}

impl AwaitingForwardingTunnel {
    /// The UPF that has not answered yet.
    pub(in crate::smf) fn upf(&self) -> UpfHandle {
        self.user_plane.n3_session().upf
    }

    /// Whether the AMF's request is to be answered.
    pub(in crate::smf) const fn owes_reply(&self) -> bool {
        self.reply.is_some()
    }

    /// The state after a restart: the AMF gets no answer, and repeats its request.
    pub(in crate::smf) fn without_reply(self) -> State {
        State::AwaitingForwardingTunnel(Self { reply: None, ..self })
    }

    /// Sends the request again after a restart: the response to the former one cannot be matched. A UPF that has the tunnel replaces it.
    pub(in crate::smf) fn repeat(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        begin(self.user_plane, session, env, self.reply, self.to)
    }

    /// The anchor is lost: the AMF gets no endpoint. One that the UPF allocates nevertheless is deleted ([`branching::is_drained`]).
    pub(in crate::smf) fn abandon(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        session.leaving.push(UpfSession { seid: Seid(0), ..self.user_plane.n3_session() });
        session.deletion = Some(self.call);
        handover::command(None, self.to.flows, self.reply, env);
        State::established(self.user_plane)
    }

    /// Handles the UPF's response.
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        let upf = self.upf();
        let Self { user_plane, to, reply, .. } = self;
        let find = |response: &_| n4::tunnel(response, n4::UPLINK_PDR);
        let tunnel = match accepted(upf, result, find, env.out) {
            Ok((seid, tunnel)) => {
                session.draining = Some(UpfSession { upf, seid, tunnel });
                session.start(env, SessionTimer::PathGrace, LIMIT);
                Some(tunnel)
            }
            Err(error) => {
                session
                    .log(env, Level::Warn, || format!("packets are not forwarded in the handover: {error}"));
                None
            }
        };
        handover::command(tunnel, to.flows, reply, env);
        State::established(user_plane)
    }

    /// What must be released and answered: the sessions at the UPFs, and the AMF's request.
    pub(in crate::smf) fn into_held(self) -> release::Held {
        let establishing = Some((self.upf(), self.call));
        release::Held { reply: self.reply, establishing, ..self.user_plane.into() }
    }
}
