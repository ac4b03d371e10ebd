//! Session reports: downlink data, usage, error indications, inactivity (TS 29.244 6.3.5).
//!
//! ```text
//! datapath  DownlinkData, Usage, ErrorIndication; timers
//! SMF       Session Report Request  ◀─  again after T1, at most N1 times
//!           Session Report Response ─▶  may drop what is buffered, or change its BAR
//! ```

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use pith_pfcp::ie::*;
use pith_pfcp::message::{SessionReportRequest, SessionReportResponse};
use pith_pfcp::rules::{CreateFar, DownlinkDataReport, ErrorIndicationReport, UpdateBarInReport};
use pith_pfcp::{Message, MessageType};

use crate::contract::{self, DropReason, SessionId, Teid};
use crate::port::{Context, Notice};
use crate::session::{HeldPackets, Session, compile};
use crate::smf_set::ReportTarget;
use crate::transaction::Outstanding;
use crate::upf::{Purpose, Upf};

impl Session {
    /// Removes an answered report.
    pub(crate) fn remove_report(&mut self, sequence: u32) {
        self.reports.retain(|waiting| *waiting != sequence);
    }

    /// A report failed: the SMF may not have received it.
    pub(crate) fn report_failed(&mut self, sequence: u32) {
        self.remove_report(sequence);
        self.lost_tunnels.clear();
    }
}

impl Upf {
    /// The first packet for an idle UE was buffered (TS 29.244 5.2.3.1).
    pub(crate) fn downlink_data(
        &mut self,
        context: &mut Context<'_>,
        session: SessionId,
        pdr: contract::PdrId,
        qfi: Option<contract::Qfi>,
        dscp: u8,
    ) {
        let information = DownlinkDataServiceInformation {
            paging_policy_indication: Some(dscp),
            qfi: qfi.map(|qfi| Qfi(qfi.0)),
        };
        let held = (PdrId(pdr.0), information);
        if let Some(found) = self.sessions.get_mut(session)
            && found.reported.iter().all(|(pdr, _)| *pdr != held.0)
        {
            found.reported.push(held);
        }
        self.report_held(context, session, held);
    }

    fn report_held(&mut self, context: &mut Context<'_>, session: SessionId, held: HeldPackets) {
        match self.sessions.get(session).and_then(|found| notification_delay(found, held.0)) {
            Some(delay) => self.report_later(context, session, context.now + delay, held),
            // The datapath reports the first packet only: the report is delayed until the SMF has answered
            // others.
            None if self.has_many_requests(session) => {
                self.report_later(context, session, context.now + self.config.t1, held);
            }
            None => self.report(context, session, downlink_data_report(vec![held])),
        }
    }

    /// An SMF has requested buffering with notification for these FARs, perhaps once more: packets that are held since before are
    /// reported again, as the SMF may have lost the former report (it has restarted, or another SMF of its set has taken the session over).
    pub(crate) fn report_held_again(&mut self, context: &mut Context<'_>, id: SessionId, fars: &[FarId]) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let mut reported = std::mem::take(&mut session.reported);
        reported.retain(|(pdr, _)| notifies(session, *pdr));
        let is_due = |(pdr, _): &&HeldPackets| {
            session.rules.pdrs.get(*pdr).and_then(|pdr| pdr.far_id).is_some_and(|far| fars.contains(&far))
        };
        let due: Vec<_> = reported.iter().filter(is_due).copied().collect();
        session.reported = reported;
        due.into_iter().for_each(|held| self.report_held(context, id, held));
    }

    /// Delays a report until `due`; it covers all packets held by then, unless the SMF requests the packets
    /// before.
    fn report_later(&mut self, context: &Context<'_>, id: SessionId, due: Duration, held: HeldPackets) {
        if let Some(session) = self.sessions.get_mut(id) {
            let (_, all) = session.delayed.get_or_insert_with(|| (due, Vec::new()));
            if all.iter().all(|(pdr, _)| *pdr != held.0) {
                all.push(held);
            }
        }
        self.schedule(context, id);
    }

    /// The delayed report, if it is due and packets are still to be notified.
    fn take_delayed(&mut self, now: Duration, id: SessionId) -> Option<SessionReportRequest> {
        let session = self.sessions.get_mut(id)?;
        let (_, mut held) = session.delayed.take_if(|(due, _)| *due <= now)?;
        held.retain(|(pdr, _)| notifies(session, *pdr));
        (!held.is_empty()).then(|| downlink_data_report(held))
    }

    /// A GTP-U peer does not know a tunnel (TS 29.244 5.10). The peer sends the message for each packet; it
    /// is reported to the SMF once. Only the tunnel's own peer is accepted as sender, because any host on N3
    /// can send the message.
    pub(crate) fn error_indication(&mut self, context: &mut Context<'_>, peer: IpAddr, teid: Teid) {
        let Some(id) = self.sessions.by_peer_tunnel(peer, teid) else {
            return context.datapath.count_dropped(DropReason::StrayErrorIndication);
        };
        let has_many_requests = self.has_many_requests(id);
        let Some(session) = self.sessions.get_mut(id) else { return };
        if has_many_requests || session.has_many_reports() || session.lost_tunnels.contains(&(peer, teid)) {
            return;
        }
        session.lost_tunnels.push((peer, teid));
        let report = ErrorIndicationReport::new(vec![FTeid::new(teid.0, peer)]);
        let request = SessionReportRequest {
            error_indication_report: Some(report),
            ..SessionReportRequest::new(ReportType::ERIR)
        };
        self.report(context, id, request);
    }

    /// Checks a session's usage and inactivity, and reports what is due.
    pub(crate) fn check_session_usage(&mut self, context: &mut Context<'_>, id: SessionId) {
        if self.sessions.get(id).is_some_and(|session| session.flows.is_over(context.now)) {
            self.reinstall(context, id);
        }
        if self.has_many_requests(id) {
            return self.sessions.set_due(id, Some(context.now + self.config.t1));
        }
        if let Some(request) = self.take_delayed(context.now, id) {
            self.report(context, id, request);
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.has_many_reports() {
            return self.schedule(context, id);
        }
        let usage = context.datapath.usage(id).unwrap_or_default();
        let last_packet = usage.last_packet.map(|age| context.now.saturating_sub(age));
        let inactive =
            session.inactivity.as_mut().is_some_and(|inactivity| inactivity.check(context.now, last_packet));
        session.measurements.sample(&session.rules, context.now, &usage);
        let (reports, limits_changed) = session.measurements.check(&session.rules, context.now, &self.config);
        if limits_changed {
            self.reinstall(context, id);
        }
        let report_type = ReportType::default()
            .with(ReportType::USAR, !reports.is_empty())
            .with(ReportType::UPIR, inactive);
        if !report_type.is_empty() {
            let request =
                SessionReportRequest { usage_reports: reports, ..SessionReportRequest::new(report_type) };
            self.report(context, id, request);
        }
        self.schedule(context, id);
    }

    /// Whether reports are delayed because too many requests to the session's SMF are pending.
    fn has_many_requests(&self, id: SessionId) -> bool {
        let peer = self.sessions.get(id).map(|session| session.cp_address(self.config.n4));
        peer.is_some_and(|peer| self.requests.waiting_for(peer) >= self.config.max_requests_to_peer)
    }

    /// Schedules the next check of a session.
    pub(crate) fn schedule(&mut self, context: &Context<'_>, id: SessionId) {
        let due = self.sessions.get(id).and_then(|session| session.next_check(context.now, &self.config));
        self.sessions.set_due(id, due);
    }

    fn report(&mut self, context: &mut Context<'_>, id: SessionId, request: SessionReportRequest) {
        let Some(session) = self.sessions.get(id) else { return };
        let target = self.report_target(session, None);
        self.report_to(context, id, target, request);
    }

    fn report_to(
        &mut self,
        context: &mut Context<'_>,
        id: SessionId,
        ReportTarget { peer, seid, former }: ReportTarget,
        request: SessionReportRequest,
    ) {
        let request = SessionReportRequest { old_cp_f_seid: former, ..request };
        let sequence = self.request(context, peer, seid, &request.into(), Purpose::SessionReport(id));
        self.sessions.get_mut(id).into_iter().for_each(|session| session.reports.push(sequence));
    }

    /// The session's SMF has not answered a report: another one of its set gets it. Returns whether there is one.
    pub(crate) fn report_to_another(
        &mut self,
        context: &mut Context<'_>,
        id: SessionId,
        (sequence, failed): (u32, &Outstanding<Purpose>),
    ) -> bool {
        let Ok((_, Message::SessionReportRequest(request))) = Message::decode(failed.octets()) else {
            return false;
        };
        let Some(session) = self.sessions.get(id).filter(|_| request.old_cp_f_seid.is_none()) else {
            return false;
        };
        let target = self.report_target(session, Some(failed.peer));
        if target.former.is_none() {
            return false;
        }
        self.sessions.get_mut(id).into_iter().for_each(|session| session.remove_report(sequence));
        self.report_to(context, id, target, request);
        true
    }

    /// Handles the SMF's answer to a report, which may change buffering (TS 29.244 7.5.9).
    pub(crate) fn session_report_response(
        &mut self,
        context: &mut Context<'_>,
        peer: SocketAddr,
        id: SessionId,
        sequence: u32,
        response: &SessionReportResponse,
    ) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.remove_report(sequence);
        let is_own = session.cp_address(self.config.n4) == peer;
        // Another SMF of the set may not have the session yet.
        if response.cause == Cause::SessionContextNotFound && is_own {
            self.drop_session(context, id, "unknown to the SMF");
            return;
        }
        if !response.cause.is_acceptance() {
            let message_type = MessageType::SESSION_REPORT_REQUEST;
            context.notice(Notice::RequestFailed { peer, message_type, reason: "rejected" });
        }
        if !is_own && response.cause.is_acceptance() {
            self.adopt_reporting_smf(context, peer, id, response);
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        if response.pfcp_sr_rsp_flags.is_some_and(|flags| flags.contains(PfcpSrRspFlags::DROBU)) {
            session.reported.clear();
            context.datapath.discard_buffered(id);
        }
        if !response.update_bars.is_empty() {
            self.update_bars(context, id, &response.update_bars);
        }
    }

    fn update_bars(&mut self, context: &mut Context<'_>, id: SessionId, updates: &[UpdateBarInReport]) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        for update in updates {
            let Some(bar) = session.rules.bars.get_mut(update.bar_id) else { continue };
            if let Some(count) = &update.suggested_buffering_packets_count {
                bar.suggested_buffering_packets_count = count.clone().into_option();
            }
            if let Some(delay) = &update.downlink_data_notification_delay {
                bar.downlink_data_notification_delay = delay.clone().into_option();
            }
        }
        self.reinstall(context, id);
    }

    /// Reinstalls a session's rules, after a BAR, a measurement, or the end of a former flow has changed their effect.
    fn reinstall(&mut self, context: &mut Context<'_>, id: SessionId) {
        let Some(session) = self.sessions.get(id) else { return };
        // Only numbers have changed, or FARs for quota action, which existed when the rules were first
        // compiled: so compilation succeeds again.
        if let Ok(compiled) = compile(id, &session.rules, &session.measurements, &self.config) {
            self.install(context, compiled);
        }
    }

    /// Installs a session's rules, with its former flows.
    pub(crate) fn install(&mut self, context: &mut Context<'_>, mut rules: contract::Session) {
        if let Some(session) = self.sessions.get_mut(rules.id) {
            session.flows.apply(&mut rules, context.now);
        }
        context.datapath.install(Arc::new(rules));
    }
}

fn downlink_data_report(held: Vec<HeldPackets>) -> SessionReportRequest {
    let (pdrs, service_information) = held.into_iter().unzip();
    let report = DownlinkDataReport { service_information, ..DownlinkDataReport::new(pdrs) };
    SessionReportRequest { downlink_data_report: Some(report), ..SessionReportRequest::new(ReportType::DLDR) }
}

fn far_of(session: &Session, pdr: PdrId) -> Option<&CreateFar> {
    session.rules.fars.get(session.rules.pdrs.get(pdr)?.far_id?)
}

/// Whether the SMF requests notification of packets held for a PDR.
fn notifies(session: &Session, pdr: PdrId) -> bool {
    let wanted = ApplyAction::BUFF | ApplyAction::NOCP;
    far_of(session, pdr).is_some_and(|far| far.apply_action.contains(wanted))
}

/// The time after the first packet during which the SMF requests no report (Downlink Data Notification
/// Delay).
fn notification_delay(session: &Session, pdr: PdrId) -> Option<Duration> {
    let bar = session.rules.bars.get(far_of(session, pdr)?.bar_id?)?;
    let delay = bar.downlink_data_notification_delay?;
    (delay.0 != 0).then(|| Duration::from_millis(50 * u64::from(delay.0)))
}
