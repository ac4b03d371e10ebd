//! The gNB no longer knows its endpoint of the N3 tunnel: the UPF reports a GTP-U Error Indication (TS 23.527 5.3.2.1;
//! TS 29.244 5.10, 7.5.8.4).
//!
//! ```text
//!  UPF ─> Error Indication Report   step 3    downlink packets are buffered
//!         AwaitingBuffering         4         <─ UPF
//!         AwaitingResourceRelease   5, 6      <─ AMF, gNB                          Guard
//!         Established                         the UE is paged if the UPF buffers packets
//! ```

use super::restoration::{self, Absence};
use super::{Established, State, release, upf_failure};
use crate::kit::document::pack_struct;
use crate::kit::{Level, N4Error, PendingReply};
use crate::smf::context::{CallId, SmContext, UserPlane};
use crate::smf::env::Env;
use crate::smf::timers::SessionTimer;
use crate::smf::tunnels::Tunnels;
use crate::smf::unconfirmed::is_unconfirmed;
use crate::smf::update::await_gnb;
use crate::smf::{consumer, n2, n4};
use pith_ngap::transfer::Tunnel;
use pith_pfcp::Message;
use pith_sbi::Reply;
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdateData};

/// The SMF has requested the UPF to buffer the tunnel's downlink packets.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingBuffering {
    /// Without the gNB.
    pub user_plane: UserPlane,
    /// The request.
    pub call: CallId,
}

/// The SMF has commanded the gNB to release the resources of the tunnel.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingResourceRelease {
    /// Without the gNB.
    pub user_plane: UserPlane,
    /// The transfer.
    pub call: CallId,
}

pack_struct!(AwaitingBuffering { user_plane, call });
pack_struct!(AwaitingResourceRelease { user_plane, call });

/// Handles a UPF's report of an Error Indication for these tunnels (step 3). The UPF reports it only once, so a session that
/// is changing stores the tunnel until it is established again.
pub(in crate::smf) fn on_error_indication(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    lost: &[Tunnel],
    terminates_n3: bool,
) -> State {
    let user_plane = state.user_plane();
    // While a session is restored, the UPF's response shows what it has lost.
    let is_known = || !is_unconfirmed(&state);
    if let Some(at) = user_plane.filter(|_| is_known()).and_then(|it| it.session_of_n9_endpoint(lost)) {
        return upf_failure::on_n9_tunnel_lost(state, session, env, at);
    }
    let user_plane = user_plane.filter(|_| terminates_n3);
    let of_session = |tunnel: &&Tunnel| user_plane.is_some_and(|it| session.has_tunnel(it, **tunnel));
    match lost.iter().find(of_session) {
        Some(tunnel) => session.pending.lost_tunnel = Some(*tunnel),
        None => session.log(env, Level::Debug, || {
            "an Error Indication Report names a tunnel that the session no longer uses".to_owned()
        }),
    }
    state
}

/// Requests the UPF to buffer downlink packets (step 4), unless the gNB has another endpoint meanwhile. If it is one of several tunnels, all
/// are set up again: the master gNB decides which flows have which.
pub(in crate::smf) fn resume(established: Established, session: &mut SmContext, env: &mut Env<'_>) -> State {
    let lost = session.pending.lost_tunnel.take();
    let Established { mut user_plane } = established;
    if !lost.is_some_and(|lost| session.has_tunnel(&user_plane, lost)) {
        return State::established(user_plane);
    }
    user_plane.gnb = None;
    session.pending.downlink_data = true;
    session.log(env, Level::Warn, || {
        "the gNB no longer knows the tunnel of downlink packets (GTP-U Error Indication): \
         its resources are set up again"
            .to_owned()
    });
    AwaitingBuffering::begin(user_plane, session, env)
}

/// The UE is in CM-IDLE: requests the UPF to buffer downlink packets (TS 23.502 4.2.6), if it sends them to a gNB. The UE is not paged.
pub(super) fn deactivate(established: Established, session: &mut SmContext, env: &mut Env<'_>) -> State {
    let Established { mut user_plane } = established;
    if user_plane.gnb.take().is_none() {
        return State::established(user_plane);
    }
    session
        .log(env, Level::Warn, || "the UE is idle: the tunnel of downlink packets is deactivated".to_owned());
    AwaitingBuffering::begin(user_plane, session, env)
}

impl AwaitingBuffering {
    /// Requests the UPF to buffer, of a user plane without gNB.
    pub(super) fn begin(user_plane: UserPlane, session: &mut SmContext, env: &mut Env<'_>) -> State {
        let n3_session = user_plane.n3_session();
        let message = n4::deactivation_of(session);
        session.tunnels = Tunnels::default();
        let call = session.ask_upf(env, n3_session.upf, n3_session.seid, message);
        State::AwaitingBuffering(Self { user_plane, call })
    }

    /// Sends the request again: the response to the former one cannot be matched.
    pub(in crate::smf) fn repeat(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        Self::begin(self.user_plane, session, env)
    }

    /// The UPF buffers; the SMF now commands the gNB to release the resources (step 5; TS 23.502 4.3.7). The SMF waits for the
    /// UPF's response first: otherwise, if the request to buffer was lost, its retransmission could follow the request that
    /// opens the new tunnel. A UE in CM-IDLE is not paged for it.
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        let Self { user_plane, .. } = self;
        let absence = Absence::of(&result);
        let command = n2::release_lost_resources();
        let transfer = consumer::transfer_to_gnb(session, NgapIeType::PduResRelCmd, command);
        if let Err(why) = n4::modified(result) {
            if let Some(absence) = absence {
                // When the UPF has the session again, without a gNB, the gNB sets the resources up again.
                consumer::notify_amf(session, env, transfer);
                let upf = user_plane.n3_session().upf;
                return restoration::after_absence(user_plane, session, env, (upf, absence));
            }
            return release::end_refused(
                user_plane,
                session,
                env,
                "the UPF did not accept the rule to buffer",
                why,
            );
        }
        session.start(env, SessionTimer::Guard, env.config.guard);
        let call = consumer::call_amf(session, env, transfer);
        State::AwaitingResourceRelease(AwaitingResourceRelease { user_plane, call })
    }
}

impl AwaitingResourceRelease {
    /// Handles the AMF's answer to the command. If the UE is in CM-IDLE, no gNB has resources to release (step 6).
    pub(in crate::smf) fn on_reply(self, session: &mut SmContext, env: &mut Env<'_>, reply: Reply) -> State {
        let Err(problem) = reply else { return State::AwaitingResourceRelease(self) };
        session.log(env, Level::Debug, || format!("no gNB releases the resources: {problem}"));
        self.released(session, env)
    }

    /// Handles the gNB's answer, or a deactivation: then the gNB no longer serves the UE. Other updates are pending until then.
    pub(in crate::smf) fn on_update(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        reply: PendingReply,
        data: SmContextUpdateData,
    ) -> State {
        let answers = [N2SmInfoType::PduResRelRsp, N2SmInfoType::PduResNtyRel];
        match await_gnb(session, env, reply, data, &answers) {
            Some(_) => self.released(session, env),
            None => State::AwaitingResourceRelease(self),
        }
    }

    /// The gNB has released the resources, or did not answer in time. The user plane is activated again by a network triggered
    /// Service Request (TS 23.502 4.2.3.3).
    pub(in crate::smf) fn released(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        session.stop(env, SessionTimer::Guard);
        State::established(self.user_plane)
    }
}
