//! The user plane of an established session: activation and deactivation (TS 23.502 4.2.3.2, 4.2.6; TS 29.502
//! 5.2.2.3.2), and downlink data for an idle UE (4.2.3.3).
//!
//! ```text
//!  AMF ─> activate                 the SMF answers with N2 information for the gNB
//!  AMF ─> gNB's tunnel endpoint, or "deactivated"
//!         AwaitingN4Modification   <─ UPF; then the SMF answers the AMF
//!  UPF ─> downlink data            the SMF requests the AMF to page the UE
//!  AMF ─> the UE does not answer   the UPF drops the buffered packets, and reports the next packet
//! ```

use super::restoration::{self, Absence};
use super::{Established, State, branching, refused_transfer, release};
use crate::kit::document::pack_struct;
use crate::kit::{Level, N4Error, PendingReply};
use crate::smf::context::{CallId, GnbRequests, SmContext, UserPlane};
use crate::smf::env::Env;
use crate::smf::n4::EndMarker;
use crate::smf::timers::SessionTimer;
use crate::smf::tunnels::{self, Tunnels};
use crate::smf::update::answer_update;
use crate::smf::{consumer, n2, n4};
use pith_ngap::transfer::SetupResponseTransfer;
use pith_pfcp::Message;
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdateData, SmContextUpdatedData, UpCnxState};
use pith_sbi::{Cause, Problem};

/// New rules were sent to the UPF. The AMF's request is not answered yet.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingN4Modification {
    /// The user plane under the new rules.
    pub user_plane: UserPlane,
    /// The answer to the AMF.
    pub reply: PendingReply,
    /// The request.
    pub call: CallId,
}

pack_struct!(AwaitingN4Modification { user_plane, reply, call });

impl Established {
    /// Answers with the N2 information that the gNB needs to set the user plane up (TS 23.502 4.2.3.2 step 11).
    pub(in crate::smf) fn on_activate(
        mut self,
        session: &SmContext,
        env: &mut Env<'_>,
        reply: PendingReply,
    ) -> State {
        self.user_plane.note_uplink_sent_to_gnb();
        let mut data = SmContextUpdatedData::default();
        data.up_cnx_state = Some(UpCnxState::Activating);
        data.n2_sm_info = Some(n2::setup_request(session, &self.user_plane).into());
        data.n2_sm_info_type = Some(N2SmInfoType::PduResSetupReq);
        answer_update(reply, data, env.out);
        self.into()
    }

    /// The UPF buffers packets for an idle UE: the SMF requests the AMF to page it (TS 23.502 4.2.3.3 step 3a).
    pub(in crate::smf) fn on_downlink_data(mut self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        session.gnb.has_downlink_data = true;
        self.user_plane.note_uplink_sent_to_gnb();
        let setup = n2::setup_request(session, &self.user_plane);
        let transfer = consumer::transfer(session, None, Some((NgapIeType::PduResSetupReq, setup)));
        let transfer = consumer::with_failure_notification(session, env, transfer);
        session.log(env, Level::Debug, || {
            "downlink data for the idle UE: the AMF is requested to page it".to_owned()
        });
        // The session stays established, whatever the answer is.
        consumer::request_paging(session, env, transfer);
        self.into()
    }

    /// The gNB that serves the UE now is to set the session up. A UE that is idle meanwhile has no reason to be paged: it requests the user plane when it
    /// has packets.
    fn set_up_if_connected(mut self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        self.user_plane.note_uplink_sent_to_gnb();
        let setup = n2::setup_request(session, &self.user_plane);
        let transfer = consumer::transfer_to_gnb(session, NgapIeType::PduResSetupReq, setup);
        let transfer = consumer::with_failure_notification(session, env, transfer);
        consumer::request_paging(session, env, transfer);
        self.into()
    }

    /// The UE did not answer the paging (TS 23.502 4.2.3.3), or the gNB did not set the session up, so the buffered
    /// packets are outdated. The UPF drops them. It reports the next packet, for which the UE is paged again.
    pub(in crate::smf) fn on_paging_failure(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        if self.user_plane.gnb.is_none() {
            session.gnb.has_downlink_data = false;
            session.log(env, Level::Debug, || {
                "the user plane was not activated: the buffered packets are dropped".to_owned()
            });
            let n3_session = self.user_plane.n3_session();
            env.notify_upf(n3_session.upf, n3_session.seid, n4::drop_buffered());
        }
        self.into()
    }
}

/// Requests paging if a UPF reported downlink data while the session was changing, or the AMF has refused it for some time, and the UE is still
/// idle. A setup that a gNB has refused because of a handover is requested again.
pub(in crate::smf) fn resume(established: Established, session: &mut SmContext, env: &mut Env<'_>) -> State {
    if refused_transfer::is_waiting(session) {
        return established.into();
    }
    let is_reported = std::mem::take(&mut session.pending.downlink_data);
    if is_reported && established.user_plane.gnb.is_none() {
        if session.gnb.refused_setups > 0 && !session.gnb.has_downlink_data {
            return established.set_up_if_connected(session, env);
        }
        return established.on_downlink_data(session, env);
    }
    established.into()
}

/// The gNB has set the session up: downlink packets are forwarded to its tunnels (TS 23.502 4.2.3.2 steps 16 to 18). The AMF is answered when
/// the UPF has the rules.
pub(in crate::smf) fn activate(
    mut user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    gnb: &SetupResponseTransfer,
) -> State {
    (session.gnb, session.always_on) = (GnbRequests::default(), None);
    add_missing_flows(session, env, gnb);
    let upf = user_plane.n3_session();
    let additional = tunnels::usable(&gnb.additional, &user_plane);
    let wanted = tunnels::of_setup(&session.flows(), gnb.downlink, additional);
    // The gNB's former tunnels ended with its resources: no End Marker.
    let Some(reroute) = tunnels::reroute((None, &session.tunnels), &wanted) else {
        user_plane.gnb = Some(gnb.downlink);
        return change(user_plane, session, env, reply);
    };
    session.stop(env, SessionTimer::Guard);
    user_plane.gnb = Some(reroute.primary);
    session.tunnels.clone_from(&reroute.tunnels);
    let message = with_flows_of_gnb(n4::rerouted(session, &reroute), session);
    let call = session.ask_upf(env, upf.upf, upf.seid, message);
    State::AwaitingN4Modification(AwaitingN4Modification { user_plane, reply, call })
}

/// The setup request that the gNB answers is older than a change of flows that waits for the UE's answer, such as one made while the UE was
/// paged: the gNB gets the change.
fn add_missing_flows(session: &mut SmContext, env: &mut Env<'_>, gnb: &SetupResponseTransfer) {
    let of_others = gnb.additional.iter().flat_map(|it| &it.flows);
    let failed = gnb.failed.iter().map(|(qfi, _)| qfi);
    let named: Vec<u8> = gnb.flows.iter().chain(of_others).chain(failed).copied().collect();
    let is_behind = session.flows().iter().any(|qfi| !named.contains(qfi));
    if session.modification.is_some() && session.flows.former.is_some() && is_behind {
        session.flows.is_at_gnb = false;
        modify_at_gnb(session, env, &[]);
    }
}

/// The gNB gets the change of flows that the UE has got, or gets by another message; it is to release the flows in `stale`, too.
pub(super) fn modify_at_gnb(session: &mut SmContext, env: &mut Env<'_>, stale: &[u8]) {
    session.gnb.note_modification();
    let modify = n2::modify_qos_request(session, stale);
    let transfer = consumer::transfer_to_gnb(session, NgapIeType::PduResModReq, modify);
    consumer::notify_amf(session, env, transfer);
}

/// The gNB has set up all flows.
fn with_flows_of_gnb(message: Message, session: &mut SmContext) -> Message {
    if std::mem::take(&mut session.flows.awaits_gnb) { n4::with_flows(message, session) } else { message }
}

/// The gNB has released the session: downlink packets are buffered (TS 23.502 4.2.6). The AMF is answered when the UPF has the rules.
pub(in crate::smf) fn deactivate(
    mut user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
) -> State {
    user_plane.gnb = None;
    change(user_plane, session, env, reply)
}

/// Sends new rules to the UPF: forward to the gNB's endpoint, or buffer if there is none. The AMF is answered when they are
/// in force.
pub(in crate::smf) fn change(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
) -> State {
    let n3_session = user_plane.n3_session();
    let message = match user_plane.gnb {
        Some(gnb) => with_flows_of_gnb(n4::activation(gnb, EndMarker::Omit), session),
        None => n4::deactivation_of(session),
    };
    if user_plane.gnb.is_none() {
        session.tunnels = Tunnels::default();
        session.gnb.modifications = 0;
    }
    session.stop(env, SessionTimer::Guard);
    let call = session.ask_upf(env, n3_session.upf, n3_session.seid, message);
    State::AwaitingN4Modification(AwaitingN4Modification { user_plane, reply, call })
}

/// Answers the AMF that the user plane is active or inactive.
fn answer_change(user_plane: &UserPlane, session: &SmContext, env: &mut Env<'_>, reply: PendingReply) {
    let state = match user_plane.gnb {
        Some(_) => UpCnxState::Activated,
        None => UpCnxState::Deactivated,
    };
    session.log(env, Level::Debug, || format!("user plane {}", state.as_str()));
    let mut data = SmContextUpdatedData::default();
    data.up_cnx_state = Some(state);
    answer_update(reply, data, env.out);
}

impl AwaitingN4Modification {
    /// Handles the UPF's response. A classifier that refuses is removed from the path, and the anchor gets the rules.
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        let Self { mut user_plane, reply, .. } = self;
        let absence = Absence::of(&result);
        match (n4::modified(result), absence) {
            (Ok(()), _) => {
                answer_change(&user_plane, session, env, reply);
                State::established(user_plane)
            }
            (Err(why), _) if user_plane.has_removable_front() => {
                session.log(env, Level::Warn, || format!("the classifier is removed: {why}"));
                branching::drain_front(&mut user_plane, session, env);
                change(user_plane, session, env, reply)
            }
            // The UPF gets the session with these rules.
            (Err(_), Some(absence)) => {
                if absence == Absence::Silent && user_plane.gnb.is_none() {
                    // Until it has them, it may send to the tunnel of a gNB that uses it again.
                    let mut data = SmContextUpdateData::default();
                    data.up_cnx_state = Some(UpCnxState::Deactivated);
                    session.queue_update(env, reply, data);
                } else {
                    answer_change(&user_plane, session, env, reply);
                }
                let upf = user_plane.n3_session().upf;
                restoration::after_absence(user_plane, session, env, (upf, absence))
            }
            (Err(why), None) => {
                reply.refuse(Problem::new(Cause::InsufficientResources).detail(why), env.out);
                let has_tunnel = user_plane.gnb.is_some();
                release::end_unserved(user_plane.into(), has_tunnel, session, env)
            }
        }
    }

    /// What must be released and answered: the sessions at the UPFs, and the AMF's request.
    pub(in crate::smf) fn into_held(self) -> release::Held {
        release::Held { reply: Some(self.reply), ..self.user_plane.into() }
    }
}
