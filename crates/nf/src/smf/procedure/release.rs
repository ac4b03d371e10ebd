//! PDU session release (TS 23.502 4.3.4.2; TS 24.501 6.3.3, 6.4.3).
//!
//! ```text
//!  UE ─> PDU SESSION RELEASE REQUEST    the UPF's session is deleted, the AMF gets command and N2 information
//!        AwaitingReleaseComplete        T3592, sent again up to 4 times
//!  UE ─> PDU SESSION RELEASE COMPLETE   policy and registration end; the AMF hears of it
//! ```

use super::super::context::{SmContext, State, UpfSession};
use super::super::services::{answer_n1, updated};
use super::super::{NOBODY, Smf, n1, n2, n4};
use super::establishment::transfer;
use crate::kit::{Caller, Key, Level, N4Effect, N4Error, Outbox, Target, Timer, UpfHandle};
use pith_nas::GsmCause;
use pith_pfcp::Message;
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::npcf_smpolicycontrol::{DeleteSmPolicy, SmPolicyDeleteData};
use pith_sbi::nsmf_pdusession::{
    N2SmInfoType, ResourceStatus, SmContextStatusNotification, SmContextStatusNotify, SmContextUpdatedData,
    StatusInfo,
};
use pith_sbi::nudm_uecm::SmfDeregistration;
use pith_sbi::{Problem, Reply, Response, Uri};
use pith_types::Seid;

impl Smf {
    /// The UE wants its session released (TS 24.501 6.4.3.3).
    pub(in crate::smf) fn release_requested(&mut self, key: Key, from: Caller, pti: u8, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        if matches!(context.state, State::AwaitingReleaseComplete { .. }) {
            context.pti = pti;
            return answer_n1(from, n1::release_command(context), out);
        }
        if !matches!(context.state, State::Established | State::AwaitingTunnel) {
            let cause = GsmCause::MessageNotCompatibleWithTheProtocolState;
            return answer_n1(from, n1::release_reject(context.pdu_session_id, pti, cause), out);
        }
        context.pti = pti;
        context.state = State::AwaitingReleaseComplete { retransmissions: 0 };
        context.modifying = None;
        let mut data = SmContextUpdatedData::default();
        data.n1_sm_msg = Some(n1::release_command(context).into());
        if context.gnb.take().is_some() {
            data.n2_sm_info = Some(n2::release_command().into());
            data.n2_sm_info_type = Some(N2SmInfoType::PduResRelCmd);
        }
        delete_at_upfs(context, out);
        updated(from, data, out);
        out.stop(key.to_u64(), Timer::SbiGuard);
        out.stop(key.to_u64(), Timer::T3591);
        out.start(key.to_u64(), Timer::T3592, self.config.t3592);
    }

    /// T3592 ran out: the command again, or the end (TS 24.501 6.3.3.5 a).
    pub(in crate::smf) fn release_command_again(&mut self, key: Key, out: &mut Outbox) {
        let most = self.config.retransmissions;
        let Some(context) = self.contexts.get_mut(key) else { return };
        let State::AwaitingReleaseComplete { retransmissions } = &mut context.state else { return };
        if *retransmissions >= most {
            return self.end_and_tell_amf(key, out);
        }
        *retransmissions += 1;
        let command = n1::release_command(context);
        let request = transfer(context, Some(command), None);
        out.call(NOBODY, Target::Root(context.amf.root.clone()), request.into());
        out.start(key.to_u64(), Timer::T3592, self.config.t3592);
    }

    /// The UE has released (TS 24.501 6.3.3.3).
    pub(in crate::smf) fn release_completed(&mut self, key: Key, out: &mut Outbox) {
        let awaited = self.contexts.get(key).map(|context| &context.state);
        if matches!(awaited, Some(State::AwaitingReleaseComplete { .. })) {
            self.log(key, Level::Debug, out, |_| "released".to_owned());
            self.end_and_tell_amf(key, out);
        }
    }

    /// UDM or PCF end a session (TS 29.503 5.3.2.5; TS 29.512 4.2.3.3), which may be in the making, or changing: then it
    /// goes as soon as it stands.
    pub(in crate::smf) fn withdraw(&mut self, key: Key, cause: GsmCause, out: &mut Outbox) {
        self.contexts.get_mut(key).into_iter().for_each(|context| context.withdrawn = Some(cause));
        self.tend_withdrawal(key, out);
    }

    /// A session that stands and was withdrawn is released: the UE and the gNB are told (TS 24.501 6.3.3.2).
    pub(in crate::smf) fn tend_withdrawal(&mut self, key: Key, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        let (State::Established, Some(_)) = (&context.state, context.withdrawn) else { return };
        context.pti = 0;
        context.state = State::AwaitingReleaseComplete { retransmissions: 0 };
        context.modifying = None;
        let n2 = context.gnb.take().map(|_| (NgapIeType::PduResRelCmd, n2::release_command()));
        delete_at_upfs(context, out);
        let request = transfer(context, Some(n1::release_command(context)), n2);
        out.call(NOBODY, Target::Root(context.amf.root.clone()), request.into());
        out.stop(key.to_u64(), Timer::T3591);
        out.start(key.to_u64(), Timer::T3592, self.config.t3592);
    }

    /// gNB or UE were not reached: a session that does not stand yet ends.
    pub(in crate::smf) fn not_delivered(&mut self, key: Key, out: &mut Outbox) {
        if matches!(self.contexts.get(key).map(|context| &context.state), Some(State::AwaitingTunnel)) {
            return self.end_and_tell_amf(key, out);
        }
        self.paging_failed(key, out);
    }

    /// Ends a session of which the AMF knows nothing yet, or no more.
    pub(in crate::smf) fn end_and_tell_amf(&mut self, key: Key, out: &mut Outbox) {
        let Some(context) = self.contexts.get(key) else { return };
        let uri = context.amf.status_uri.clone();
        let body = SmContextStatusNotification::new(StatusInfo::new(ResourceStatus::Released));
        let root = uri.root.clone();
        out.call(NOBODY, Target::Root(root), SmContextStatusNotify { uri, body }.into());
        self.end(key, out);
    }

    /// Ends a session everywhere but at UE, gNB and AMF: UPF, policy, registration, address.
    pub(in crate::smf) fn end(&mut self, key: Key, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        let name = (context.supi.clone(), context.pdu_session_id);
        for timer in [Timer::T3591, Timer::T3592, Timer::SbiGuard, Timer::PathGrace] {
            out.stop(key.to_u64(), timer);
        }
        delete_at_upfs(context, out);
        end_policy(context, out);
        if std::mem::take(&mut context.is_registered) {
            let (ue_id, pdu_session_id) = name.clone();
            let request =
                SmfDeregistration { ue_id, pdu_session_id, smf_instance_id: Some(self.identity.instance_id) };
            out.call(NOBODY, Target::any(), request.into());
        }
        for (from, _) in context.held.drain(..) {
            out.refuse(from, Problem::context_not_found());
        }
        if let State::AwaitingSubscriptionData(from) | State::AwaitingN4Modification(from, _) = context.state
        {
            out.refuse(from, Problem::context_not_found());
        }
        let waiting = context.state.establishing_upf();
        if let Some(upf) = waiting {
            context.state = State::Abandoned(upf);
        }
        let address = context.address.take();
        address.into_iter().for_each(|address| self.pools.give_back(address));
        if self.by_ue.get(&name) == Some(&key) {
            self.by_ue.remove(&name);
        }
        if waiting.is_none() {
            self.contexts.remove(key);
        }
    }

    /// The UPF set a session up that nobody wants any more: it goes at once.
    pub(in crate::smf) fn abandoned(
        &mut self,
        key: Key,
        upf: UpfHandle,
        result: Result<Message, N4Error>,
        out: &mut Outbox,
    ) {
        if let Ok(Message::SessionEstablishmentResponse(response)) = result
            && let Some(seid) = response.up_f_seid
        {
            out.n4(N4Effect::Request { tag: NOBODY, upf, seid: Seid(seid.seid), message: n4::deletion() });
        }
        self.contexts.remove(key);
    }
}

/// The gateway repeats the requests until the UPFs answer; nobody waits for that.
pub(in crate::smf) fn delete_at_upfs(context: &mut SmContext, out: &mut Outbox) {
    let front = context.front.take().map(|front| front.session);
    let others = front.into_iter().chain(context.leaving.take());
    for UpfSession { upf, seid, .. } in context.anchor.take().into_iter().chain(others) {
        out.n4(N4Effect::Request { tag: NOBODY, upf, seid, message: n4::deletion() });
    }
}

fn end_policy(context: &mut SmContext, out: &mut Outbox) {
    if let Some(uri) = context.policy.take() {
        delete_policy(&uri, out);
    }
}

fn delete_policy(uri: &Uri, out: &mut Outbox) {
    let request = DeleteSmPolicy { sm_policy_id: uri.id().to_owned(), body: SmPolicyDeleteData::default() };
    out.call(NOBODY, Target::Root(uri.root.clone()), request.into());
}

/// An answer that came after its session had ended: what it brings is given back.
pub(in crate::smf) fn undo(reply: Reply, out: &mut Outbox) {
    if let Ok(Response::SmPolicyDecisionCreated(created)) = reply {
        delete_policy(&created.location, out);
    }
}
