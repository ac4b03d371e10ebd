//! The user plane of a session that stands: activation and deactivation (TS 23.502 4.2.3.2, 4.2.6), and
//! downlink data for an idle UE (4.2.3.3).
//!
//! ```text
//!  AMF ─> gNB's tunnel, or "deactivated"
//!         AwaitingN4Modification   <─ UPF   then the AMF is answered
//!  UPF ─> downlink data            the AMF is asked to page
//!  AMF ─> the UE does not answer   the UPF drops what it kept, and tells of the next packet
//!  UPF ─> Error Indication Report  the UPF buffers, the gNB releases its resources (TS 23.527 5.3.2.1)
//!         AwaitingBuffering        <─ UPF
//!         AwaitingResourceRelease  <─ AMF, gNB; SbiGuard   then the user plane is activated again
//! ```

use super::super::context::{State, UpfSession, UserPlane};
use super::super::n4::Leaving;
use super::super::services::updated;
use super::super::{Smf, n2, n4};
use super::chain;
use super::establishment::transfer;
use crate::kit::{
    Caller, Duration, Effect, Key, Level, N4Effect, N4Error, N4Transaction, Outbox, Tag, Target, Timer,
    TimerKey, UpfHandle,
};
use pith_ngap::transfer::Tunnel;
use pith_pfcp::Message;
use pith_pfcp::ie::{Cause as N4Cause, ReportType};
use pith_pfcp::message::SessionReportResponse;
use pith_sbi::namf_communication::{N1N2TransferFailureNotification, NgapIeType};
use pith_sbi::nsmf_pdusession::{SmContextUpdatedData, UpCnxState};
use pith_sbi::{Cause, NfType, Problem, Reply, Uri};
use pith_types::Seid;
use std::collections::VecDeque;

/// Sessions of a lost UPF that are ended in one turn of the shard: each is some three calls to other NFs.
const LOST_IN_A_TURN: usize = 128;

/// Between two such turns, for the shard's other work and for the answers. 100,000 sessions are ended in four seconds.
const LOST_TURN: Duration = Duration::from_millis(5);

impl Smf {
    /// The gNB told its end of the N3 tunnel.
    pub(in crate::smf) fn tunnel(&mut self, key: Key, from: Caller, gnb: Tunnel, out: &mut Outbox) {
        if let Some(context) = self.contexts.get_mut(key) {
            context.gnb = Some(gnb);
        }
        self.change_user_plane(key, from, UserPlane::Activated, out);
    }

    /// Gives the UPF new rules; the AMF is answered when they stand.
    pub(in crate::smf) fn change_user_plane(
        &mut self,
        key: Key,
        from: Caller,
        to: UserPlane,
        out: &mut Outbox,
    ) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        let ready = matches!(context.state, State::Established | State::AwaitingTunnel);
        let (Some(session), true) = (context.at_n3(), ready) else {
            return out.refuse(from, Problem::new(Cause::UnprocessableRequest).detail(context.state.name()));
        };
        let message = match (to, context.gnb) {
            (UserPlane::Activated, Some(gnb)) => n4::activation(gnb, Leaving::Silently),
            _ => {
                context.gnb = None;
                n4::deactivation()
            }
        };
        context.state = State::AwaitingN4Modification(from, to);
        out.stop(key.to_u64(), Timer::SbiGuard);
        self.ask_upf(key, session.upf, session.seid, message, out);
    }

    /// A UPF answered, or did not.
    pub(in crate::smf) fn upf_answered(
        &mut self,
        tag: Tag,
        result: Result<Message, N4Error>,
        out: &mut Outbox,
    ) {
        let Some((key, context)) = self.awaited(tag) else { return };
        // Its answer is here: whatever comes of it, the UPF owes no other.
        match std::mem::replace(&mut context.state, State::AwaitingTunnel) {
            State::AwaitingN4Establishment(upf, front) => {
                self.n4_established(key, (upf, front), result, out);
            }
            State::AwaitingFrontEstablishment(plan) => self.front_established(key, plan, result, out),
            State::AwaitingN9 => self.n9_stands(key, result, out),
            State::AwaitingN4Modification(from, to) => self.modified(key, from, to, result, out),
            State::AwaitingClassifier(plan) => self.classifier_established(key, plan, result, out),
            State::AwaitingSwitch(towards) => self.switched(key, towards, result, out),
            State::AwaitingRates(upf) => self.rates_enforced(key, upf, result, out),
            State::AwaitingBuffering => self.buffering(key, result, out),
            State::Abandoned(upf) => self.abandoned(key, upf, result, out),
            other => context.state = other,
        }
    }

    fn modified(
        &mut self,
        key: Key,
        from: Caller,
        to: UserPlane,
        result: Result<Message, N4Error>,
        out: &mut Outbox,
    ) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        context.state = State::Established;
        let silent = result.is_err();
        match chain::modified(result) {
            Ok(()) => {
                let mut data = SmContextUpdatedData::default();
                data.up_cnx_state = Some(match to {
                    UserPlane::Activated => UpCnxState::Activated,
                    UserPlane::Deactivated => UpCnxState::Deactivated,
                });
                self.log(key, Level::Debug, out, |_| format!("user plane {to:?}"));
                updated(from, data, out);
                self.go_on(key, out);
            }
            Err(why) if context.front.as_ref().is_some_and(|front| !front.is_needed) => {
                self.log(key, Level::Warn, out, |_| format!("on without the classifier: {why}"));
                self.leave_front(key, out);
                self.change_user_plane(key, from, to, out);
            }
            Err(why) => {
                let cause = if silent { Cause::PeerNotResponding } else { Cause::InsufficientResources };
                out.refuse(from, Problem::new(cause).detail(why));
                self.end_and_tell_amf(key, out);
            }
        }
    }

    /// A session report of the UPF (TS 29.244 5.28, 7.5.8).
    pub(in crate::smf) fn session_report(
        &mut self,
        transaction: N4Transaction,
        seid: Seid,
        message: &Message,
        out: &mut Outbox,
    ) {
        let key = self.by_seid(seid);
        let context = key.and_then(|key| self.contexts.get(key));
        // Another UPF than that of the session does not know it.
        let session = context.and_then(|context| context.at_upf(seid));
        let session = session.filter(|session| session.upf == transaction.upf);
        // What the gNB has to do with is told where its packets come to.
        let is_at_n3 =
            context.and_then(|context| context.at_n3()).map(|at| at.upf) == session.map(|at| at.upf);
        let (cause, remote) = match session {
            Some(session) => (N4Cause::RequestAccepted, session.seid),
            None => (N4Cause::SessionContextNotFound, Seid(0)),
        };
        let answer = Message::SessionReportResponse(SessionReportResponse::new(cause));
        out.n4(N4Effect::Answer { transaction, seid: remote, message: answer });
        let (Some(key), Some(_), Message::SessionReportRequest(report)) = (key, session, message) else {
            return;
        };
        if is_at_n3 && report.report_type.contains(ReportType::DLDR) {
            self.downlink_data(key, out);
        }
        if report.report_type.contains(ReportType::ERIR) {
            let lost = report.error_indication_report.iter().flat_map(|report| &report.remote_f_teids);
            let lost: Vec<Tunnel> = lost.copied().filter_map(n4::tunnel_of).collect();
            self.note_lost_tunnel(key, &lost, is_at_n3, out);
        }
    }

    /// Packets wait for an idle UE: the AMF pages it (TS 23.502 4.2.3.3 step 3a). A UPF tells of them once, so a session
    /// that is changing remembers.
    fn downlink_data(&mut self, key: Key, out: &mut Outbox) {
        let on_failure = self.failure_uri(key);
        let Some(context) = self.contexts.get_mut(key) else { return };
        context.data_waits = context.is_changing();
        let (true, Some(info)) = (matches!(context.state, State::Established), n2::setup_request(context))
        else {
            return;
        };
        context.told = context.at_n3().map(|session| session.tunnel);
        let mut request = transfer(context, None, Some((NgapIeType::PduResSetupReq, info)));
        request.body.n1n2_failure_txf_notif_uri = Some(on_failure);
        let target = Target::Root(context.amf.root.clone());
        self.log(key, Level::Debug, out, |_| "downlink data waits".to_owned());
        self.call(key, target, request.into(), out);
    }

    /// The session stands again: packets that began to wait meanwhile, and still do, have the UE paged.
    pub(in crate::smf) fn tend_waiting_data(&mut self, key: Key, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        if !context.is_changing() && std::mem::take(&mut context.data_waits) && context.gnb.is_none() {
            self.downlink_data(key, out);
        }
    }

    /// Where the AMF tells that a message did not come to UE or gNB (TS 29.518 5.2.2.3.2).
    pub(in crate::smf) fn failure_uri(&self, key: Key) -> Uri {
        let reference = self.references.of_key(key);
        N1N2TransferFailureNotification::callback_uri(&self.identity.api_root, &NfType::Smf, &reference)
    }

    /// The UE does not answer to paging (TS 23.502 4.2.3.3): what waits for it is old by now. The UPF drops
    /// it, and tells of the next packet, with which the UE is paged anew.
    pub(in crate::smf) fn paging_failed(&mut self, key: Key, out: &mut Outbox) {
        let Some(context) = self.contexts.get(key) else { return };
        let (State::Established, None, Some(session)) = (&context.state, context.gnb, context.at_n3()) else {
            return;
        };
        self.log(key, Level::Debug, out, |_| "the UE does not answer to paging".to_owned());
        let message = n4::drop_buffered();
        let (upf, seid) = (session.upf, session.seid);
        out.n4(N4Effect::Request { tag: super::super::NOBODY, upf, seid, message });
    }

    /// The UPF got a GTP-U Error Indication for those tunnels: the gNB does not know its end any more (TS 23.527 5.3.2.1
    /// step 3). The UPF reports it once, so a session that is changing remembers.
    fn note_lost_tunnel(&mut self, key: Key, lost: &[Tunnel], is_at_n3: bool, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        if let Some(session) = context.session_behind_n9(lost) {
            return self.n9_tunnel_lost(key, session, out);
        }
        let gnb = context.gnb.filter(|_| is_at_n3);
        let Some(tunnel) = lost.iter().find(|tunnel| Some(**tunnel) == gnb) else {
            return self.log(key, Level::Debug, out, |_| {
                "an Error Indication Report names a tunnel that the session no longer uses".to_owned()
            });
        };
        context.lost = Some(*tunnel);
        self.tend_lost_tunnel(key, out);
    }

    /// A UPF of the session does not know its end of the N9 tunnel, so it has lost the session (TS 23.527 5.3.3). A
    /// classifier is removed, and all packets take the anchor; without any other UPF the session is released, and the UE
    /// establishes it again. The UPF is asked to delete the session, in case it lost only a part of it.
    fn n9_tunnel_lost(&mut self, key: Key, UpfSession { upf, seid, .. }: UpfSession, out: &mut Outbox) {
        let name = self.name_of(upf).unwrap_or_default().to_owned();
        self.log(key, Level::Warn, out, |_| {
            format!("UPF {name} does not know its N9 tunnel any more (GTP-U Error Indication)")
        });
        out.n4(N4Effect::Request { tag: super::super::NOBODY, upf, seid, message: n4::deletion() });
        self.lost_with_upf(key, upf, out);
    }

    /// A session that stands, but whose gNB has lost its tunnel: downlink packets are buffered, and the gNB releases the
    /// session's resources (TS 23.527 5.3.2.1 steps 4, 5; TS 23.502 4.3.7). A UE in CM-IDLE is not paged for it.
    pub(in crate::smf) fn tend_lost_tunnel(&mut self, key: Key, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        if !matches!(context.state, State::Established) {
            return;
        }
        let is_current = context.lost.take().is_some_and(|tunnel| context.gnb == Some(tunnel));
        let (Some(session), true) = (context.at_n3(), is_current) else { return };
        context.gnb = None;
        context.data_waits = true;
        context.state = State::AwaitingBuffering;
        self.log(key, Level::Warn, out, |_| {
            "the gNB does not know the tunnel of downlink packets any more (GTP-U Error Indication): \
             its resources are set up again"
                .to_owned()
        });
        self.ask_upf(key, session.upf, session.seid, n4::deactivation(), out);
    }

    /// The UPF buffers, and the gNB is to release the resources. Not earlier: a request to the UPF that was lost would
    /// come again after the one that opens the new tunnel.
    fn buffering(&mut self, key: Key, result: Result<Message, N4Error>, out: &mut Outbox) {
        let guard = self.config.guard;
        let Some(context) = self.contexts.get_mut(key) else { return };
        if let Err(why) = chain::modified(result) {
            context.state = State::Established;
            self.log(key, Level::Warn, out, |_| format!("the UPF does not buffer: {why}"));
            return self.end_and_tell_amf(key, out);
        }
        context.state = State::AwaitingResourceRelease;
        let release = (NgapIeType::PduResRelCmd, n2::release_lost_resources());
        let mut request = transfer(context, None, Some(release));
        request.body.skip_ind = Some(true);
        let target = Target::Root(context.amf.root.clone());
        out.start(key.to_u64(), Timer::SbiGuard, guard);
        self.call(key, target, request.into(), out);
    }

    /// What the AMF says to the release command: no gNB has resources of a UE in CM-IDLE (TS 23.527 5.3.2.1 step 6).
    pub(in crate::smf) fn release_requested_of_gnb(&mut self, key: Key, reply: &Reply, out: &mut Outbox) {
        if let Err(problem) = reply {
            self.log(key, Level::Debug, out, |_| format!("no gNB releases the resources: {problem}"));
            self.resources_released(key, out);
        }
    }

    /// The gNB has released the resources, or nobody says so in time: the user plane is activated again, by a network
    /// triggered Service Request (TS 23.527 5.3.2.1; TS 23.502 4.2.3.3).
    pub(in crate::smf) fn resources_released(&mut self, key: Key, out: &mut Outbox) {
        out.stop(key.to_u64(), Timer::SbiGuard);
        if let Some(context) = self.contexts.get_mut(key) {
            context.state = State::Established;
        }
        self.go_on(key, out);
    }

    /// What the AMF says to a transfer that asks for paging.
    pub(in crate::smf) fn notified(&mut self, key: Key, reply: &Reply, out: &mut Outbox) {
        if let Err(problem) = reply {
            self.log(key, Level::Debug, out, |_| format!("the AMF does not reach the UE: {problem}"));
        }
    }

    /// A UPF is lost, and its sessions with it (TS 23.527 4.3).
    pub(in crate::smf) fn upf_lost(&mut self, upf: UpfHandle, out: &mut Outbox) {
        self.upfs.remove(upf);
        for context in self.contexts.values_mut() {
            // What it kept for packets on their way is gone.
            context.leaving = context.leaving.filter(|session| session.upf != upf);
        }
        let lost = self.contexts.iter().filter(|(_, context)| context.is_at(upf));
        self.lost.extend(lost.map(|(key, _)| (key, upf)));
        self.lose_sessions(out);
    }

    /// Ends sessions of lost UPFs, a batch in a turn: each one has calls to AMF, PCF and UDM follow, whose memory all
    /// sessions of a UPF together must not take. Until its turn a session's requests fail for want of an association.
    pub(in crate::smf) fn lose_sessions(&mut self, out: &mut Outbox) {
        for _ in 0..LOST_IN_A_TURN {
            let Some((key, upf)) = self.lost.pop_front() else { break };
            // It may have ended, or have got another UPF, meanwhile.
            if self.contexts.get(key).is_some_and(|context| context.is_at(upf)) {
                self.lost_with_upf(key, upf, out);
            }
        }
        if self.lost.is_empty() {
            self.lost = VecDeque::new();
        } else {
            let key = TimerKey { owner: 0, timer: Timer::LostSessions };
            out.push(Effect::StartTimer { key, after: LOST_TURN });
        }
    }

    /// There is nothing left to delete at that UPF.
    fn lost_with_upf(&mut self, key: Key, upf: UpfHandle, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        if context.state.establishing_upf() == Some(upf) {
            // The answer that it owes is none.
            let tag = Tag { owner: key.to_u64(), step: context.step };
            return self.upf_answered(tag, Err(N4Error::NoAssociation), out);
        }
        context.anchor = context.anchor.filter(|session| session.upf != upf);
        if context.anchor.is_some() && self.classifier_lost(key, upf, out) {
            return;
        }
        let Some(context) = self.contexts.get_mut(key) else { return };
        context.front = context.front.take().filter(|front| front.session.upf != upf);
        self.end_and_tell_amf(key, out);
    }
}
