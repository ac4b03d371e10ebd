//! The user plane of an established session: activation and deactivation (TS 23.502 4.2.3.2, 4.2.6; TS 29.502
//! 5.2.2.3.2), and downlink data for an idle UE (4.2.3.3).
//!
//! ```text
//!  AMF ─> activate                 the answer has N2 information for the gNB
//!  AMF ─> gNB's tunnel, or "deactivated"
//!         AwaitingN4Modification   <─ UPF; then the AMF is answered
//!  UPF ─> downlink data            the AMF is asked to page
//!  AMF ─> the UE does not answer   the UPF drops what it buffered, and reports the next packet
//! ```

use super::{Established, State, branching, release};
use crate::kit::{Level, N4Error, PendingReply};
use crate::smf::context::{CallId, SmContext, UserPlane};
use crate::smf::env::Env;
use crate::smf::n4::Leaving;
use crate::smf::timers::SessionTimer;
use crate::smf::update::answer_update;
use crate::smf::{consumer, n2, n4};
use pith_pfcp::Message;
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdatedData, UpCnxState};
use pith_sbi::{Cause, Problem};

/// The UPF was given new rules; the AMF waits for its answer.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingN4Modification {
    /// As it is with the new rules.
    pub user_plane: UserPlane,
    /// To the AMF.
    pub reply: PendingReply,
    /// The request.
    pub call: CallId,
}

impl Established {
    /// Gives the gNB what it needs to set the user plane up (TS 23.502 4.2.3.2 step 11).
    pub(in crate::smf) fn on_activate(
        mut self,
        session: &SmContext,
        env: &mut Env<'_>,
        reply: PendingReply,
    ) -> State {
        self.user_plane.give_uplink_to_gnb();
        let mut data = SmContextUpdatedData::default();
        data.up_cnx_state = Some(UpCnxState::Activating);
        data.n2_sm_info = Some(n2::setup_request(session, &self.user_plane).into());
        data.n2_sm_info_type = Some(N2SmInfoType::PduResSetupReq);
        answer_update(reply, data, env.out);
        self.into()
    }

    /// Packets wait for an idle UE: the AMF pages it (TS 23.502 4.2.3.3 step 3a).
    pub(in crate::smf) fn on_downlink_data(mut self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        self.user_plane.give_uplink_to_gnb();
        let setup = n2::setup_request(session, &self.user_plane);
        let transfer = consumer::transfer(session, None, Some((NgapIeType::PduResSetupReq, setup)));
        let transfer = consumer::with_failure_notification(session, env, transfer);
        session.log(env, Level::Debug, || "downlink data waits".to_owned());
        // No state waits for the AMF's answer: a refusal is logged (`procedure::on_reply`).
        consumer::call_amf(session, env, transfer);
        self.into()
    }

    /// The UE does not answer to paging (TS 23.502 4.2.3.3): its packets are old by now. The UPF drops them, and reports
    /// the next packet, for which the UE is paged again.
    pub(in crate::smf) fn on_paging_failure(self, session: &SmContext, env: &mut Env<'_>) -> State {
        if self.user_plane.gnb.is_none() {
            session.log(env, Level::Debug, || "the UE does not answer to paging".to_owned());
            let at_n3 = self.user_plane.at_n3();
            env.notify_upf(at_n3.upf, at_n3.seid, n4::drop_buffered());
        }
        self.into()
    }
}

/// Packets that a UPF reported while the session was changing, and that still wait, have the UE paged.
pub(in crate::smf) fn resume(established: Established, session: &mut SmContext, env: &mut Env<'_>) -> State {
    let is_waiting = std::mem::take(&mut session.pending.downlink_data);
    if is_waiting && established.user_plane.gnb.is_none() {
        return established.on_downlink_data(session, env);
    }
    established.into()
}

/// Gives the UPF rules for the gNB's tunnel, or to buffer if there is none; the AMF is answered when they are in force.
pub(in crate::smf) fn change(
    user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
) -> State {
    let at_n3 = user_plane.at_n3();
    let message = user_plane.gnb.map_or_else(n4::deactivation, |gnb| n4::activation(gnb, Leaving::Silently));
    session.stop(env, SessionTimer::Guard);
    let call = session.ask_upf(env, at_n3.upf, at_n3.seid, message);
    State::AwaitingN4Modification(AwaitingN4Modification { user_plane, reply, call })
}

impl AwaitingN4Modification {
    /// The UPF answered. A classifier that fails is left: the anchor takes over.
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        let Self { mut user_plane, reply, .. } = self;
        let is_silent = result.is_err();
        match n4::modified(result) {
            Ok(()) => {
                let state = match user_plane.gnb {
                    Some(_) => UpCnxState::Activated,
                    None => UpCnxState::Deactivated,
                };
                session.log(env, Level::Debug, || format!("user plane {}", state.as_str()));
                let mut data = SmContextUpdatedData::default();
                data.up_cnx_state = Some(state);
                answer_update(reply, data, env.out);
                State::established(user_plane)
            }
            Err(why) if user_plane.has_spare_front() => {
                session.log(env, Level::Warn, || format!("on without the classifier: {why}"));
                branching::drain_front(&mut user_plane, session, env);
                change(user_plane, session, env, reply)
            }
            Err(why) => {
                let cause = if is_silent { Cause::PeerNotResponding } else { Cause::InsufficientResources };
                reply.refuse(Problem::new(cause).detail(why), env.out);
                release::end_and_notify_amf(user_plane.into(), session, env)
            }
        }
    }

    /// What is left to end: the AMF waits.
    pub(in crate::smf) fn dismantle(self) -> release::Remains {
        release::Remains { reply: Some(self.reply), ..self.user_plane.into() }
    }
}
