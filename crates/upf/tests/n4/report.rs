//! Session reports: downlink data, error indications, usage by every trigger, inactivity.

use std::net::IpAddr;

use crate::support::*;
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_pfcp::rules::*;
use pith_pfcp::{Change, Header, Message};
use pith_upf::contract::{self, Event, SessionId, Teid, VolumeLimits};

fn answer(world: &mut World, header: &Header, response: SessionReportResponse) {
    let octets = encode(1, header.sequence, response);
    assert!(world.send(&octets).is_empty());
}

fn accept(world: &mut World, header: &Header) {
    answer(world, header, SessionReportResponse::new(Cause::RequestAccepted));
}

/// The only session report in `sent`, after accepting it.
fn report(world: &mut World, sent: Vec<Sent>) -> SessionReportRequest {
    let mut reports = reports(sent);
    assert_eq!(reports.len(), 1, "{reports:?}");
    let (header, request) = reports.remove(0);
    accept(world, &header);
    request
}

fn downlink_data(seid: u64) -> Event {
    Event::DownlinkData {
        session: SessionId(seid),
        pdr: contract::PdrId(2),
        qfi: Some(contract::Qfi(1)),
        dscp: 46,
    }
}

#[test]
fn the_first_packet_for_an_idle_ue_is_reported() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let sent = world.event(downlink_data(seid));
    assert_eq!((sent[0].peer, sent[0].header.seid), (world.smf, Some(0x5111)));
    let request = report(&mut world, sent);
    assert_eq!(request.report_type, ReportType::DLDR);
    let data = request.downlink_data_report.expect("a Downlink Data Report");
    assert_eq!(data.pdr_ids, [PdrId(2)]);
    let information = data.service_information[0];
    assert_eq!((information.paging_policy_indication, information.qfi), (Some(46), Some(Qfi(1))));
}

/// An SMF that was started again may not have paged the UE: it asks for the notification once more.
#[test]
fn held_packets_are_reported_again_when_the_smf_asks_for_the_notification_again() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let first = world.event(downlink_data(seid));
    accept(&mut world, &first[0].header);
    let buffers = |flags: Option<PfcpSmReqFlags>| {
        let mut far = UpdateFar::new(FarId(2));
        far.apply_action = Some(ApplyAction::BUFF | ApplyAction::NOCP);
        SessionModificationRequest {
            update_fars: vec![far],
            pfcp_sm_req_flags: flags,
            ..SessionModificationRequest::new()
        }
    };
    let mut modify = |request: SessionModificationRequest| {
        let octets = encode(seid, 900 + u32::from(request.pfcp_sm_req_flags.is_some()), request);
        let sent = world.send(&octets);
        reports(sent)
            .into_iter()
            .map(|(_, report)| report.downlink_data_report.unwrap().pdr_ids)
            .collect::<Vec<_>>()
    };
    assert_eq!(modify(buffers(None)), [[PdrId(2)]]);
    assert!(modify(buffers(Some(PfcpSmReqFlags::DROBU))).is_empty(), "the packets are dropped");
}

#[test]
fn packets_that_have_left_are_not_reported_again() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let first = world.event(downlink_data(seid));
    accept(&mut world, &first[0].header);
    let mut far = UpdateFar::new(FarId(2));
    far.apply_action = Some(ApplyAction::DROP);
    let drops = SessionModificationRequest { update_fars: vec![far], ..SessionModificationRequest::new() };
    world.modify(seid, drops);
    let mut far = UpdateFar::new(FarId(2));
    far.apply_action = Some(ApplyAction::BUFF | ApplyAction::NOCP);
    let buffers = SessionModificationRequest { update_fars: vec![far], ..SessionModificationRequest::new() };
    // One message: the response.
    world.modify(seid, buffers);
}

#[test]
fn a_report_is_sent_n1_times() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let first = world.event(downlink_data(seid));
    let again = reports(world.wait(9));
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(|(header, _)| *header == first[0].header));
    assert_eq!(world.upf.sessions().count(), 1);
}

#[test]
fn an_answered_report_is_not_sent_again() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let sent = world.event(downlink_data(seid));
    accept(&mut world, &sent[0].header);
    assert_eq!(reports(world.wait(9)).len(), 0);
}

#[test]
fn a_response_from_another_peer_is_ignored() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let sent = world.event(downlink_data(seid));
    let smf = std::mem::replace(&mut world.smf, ([192, 168, 4, 66], 8805).into());
    accept(&mut world, &sent[0].header);
    world.smf = smf;
    assert_eq!(reports(world.wait(4)).len(), 1, "it still waits");
}

#[test]
fn the_answer_to_a_report_may_drop_what_is_buffered_or_change_the_bar() {
    let mut request = pdu_session();
    request.create_bars = vec![CreateBar::new(BarId(1))];
    request.create_fars[1].bar_id = Some(BarId(1));
    let (mut world, seid, _) = World::with_session(request);
    let sent = world.event(downlink_data(seid));
    world.quiet();
    let count = Change::Set(SuggestedBufferingPacketsCount(5));
    let update = UpdateBarInReport {
        suggested_buffering_packets_count: Some(count),
        ..UpdateBarInReport::new(BarId(1))
    };
    let response = SessionReportResponse {
        pfcp_sr_rsp_flags: Some(PfcpSrRspFlags::DROBU),
        update_bars: vec![update],
        ..SessionReportResponse::new(Cause::RequestAccepted)
    };
    answer(&mut world, &sent[0].header, response);
    assert_eq!(world.datapath.ladder, ["discard buffered", "install"]);
    let buffer = contract::Action::Buffer { notify: true, packets: Some(5) };
    assert_eq!(world.installed(seid).fars[1].action, buffer);
}

#[test]
fn a_faulty_response_ends_the_wait_for_it() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let sent = world.event(downlink_data(seid));
    // Without its Cause.
    let mut faulty = encode(1, sent[0].header.sequence, SessionReportResponse::new(Cause::RequestAccepted));
    faulty.truncate(16);
    faulty[3] = 12;
    assert!(world.send(&faulty).is_empty());
    assert_eq!(reports(world.wait(9)).len(), 0, "it is not sent again");
    assert_eq!(world.delete(seid).pfcp_sd_rsp_flags, None, "and not waited for");
}

#[test]
fn a_session_that_the_smf_does_not_know_is_deleted() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let sent = world.event(downlink_data(seid));
    answer(&mut world, &sent[0].header, SessionReportResponse::new(Cause::SessionContextNotFound));
    assert_eq!((world.upf.sessions().count(), world.datapath.sessions.len()), (0, 0));
}

#[test]
fn an_error_indication_is_reported_by_the_session_that_sends_into_the_tunnel() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let request = SessionModificationRequest {
        update_fars: vec![to_gnb(GNB, 77)],
        ..SessionModificationRequest::new()
    };
    world.modify(seid, request);
    world.datapath.ladder.clear();
    let forged = [(IpAddr::from(GNB), 78), (IpAddr::from([192, 0, 2, 66]), 77)];
    for (peer, teid) in forged {
        assert!(world.event(Event::ErrorIndication { peer, teid: Teid(teid) }).is_empty());
        assert_eq!(world.datapath.ladder.pop().as_deref(), Some("dropped stray_error_indication"));
    }
    let sent = world.event(Event::ErrorIndication { peer: GNB.into(), teid: Teid(77) });
    let request = report(&mut world, sent);
    assert_eq!(request.report_type, ReportType::ERIR);
    let indication = request.error_indication_report.expect("an Error Indication Report");
    assert_eq!(indication.remote_f_teids, [FTeid::new(77, GNB.into())]);
}

#[test]
fn error_indications_of_a_tunnel_are_reported_once_until_the_far_changes() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let modify = |world: &mut World, update| {
        let update_fars = vec![update];
        world.modify(seid, SessionModificationRequest { update_fars, ..SessionModificationRequest::new() });
    };
    let indicated = |world: &mut World| {
        let sent = world.event(Event::ErrorIndication { peer: GNB.into(), teid: Teid(77) });
        reports(sent).into_iter().map(|(header, _)| header).collect::<Vec<_>>()
    };
    modify(&mut world, to_gnb(GNB, 77));
    let first = indicated(&mut world);
    assert!(indicated(&mut world).is_empty(), "one is on its way");
    accept(&mut world, &first[0]);
    assert!(indicated(&mut world).is_empty(), "the SMF knows");
    let buffer = UpdateFar { apply_action: Some(ApplyAction::BUFF), ..UpdateFar::new(FarId(2)) };
    modify(&mut world, buffer);
    modify(&mut world, to_gnb(GNB, 77));
    assert_eq!(indicated(&mut world).len(), 1, "the tunnel was set up anew");
    world.wait(9);
    assert_eq!(indicated(&mut world).len(), 1, "the SMF did not answer, and may not know");
}

#[test]
fn a_session_has_a_limited_number_of_pending_reports() {
    let mut rule = urr(ReportingTriggers::VOLTH);
    rule.volume_threshold = octets(100);
    let (mut world, seid, _) = World::with_session(measured(rule));
    let mut sent = Vec::new();
    for _ in 0..100 {
        world.count(seid, 1, 100, 0);
        sent.extend(reports(world.event(used(seid))));
    }
    assert_eq!(sent.len(), 16);
    sent.iter().for_each(|(header, _)| accept(&mut world, header));
    let late = reports(world.wait(3));
    assert_eq!(late.len(), 1, "what was used in the meantime is told at once");
    let volume = |(_, request): &(Header, SessionReportRequest)| {
        request.usage_reports[0].volume_measurement.and_then(|volume| volume.total).unwrap_or(0)
    };
    assert_eq!(sent.iter().chain(&late).map(volume).sum::<u64>(), 100 * 100, "nothing is lost");
}

#[test]
fn an_inactive_session_is_reported_once_until_it_is_active_again() {
    let mut request = pdu_session();
    request.user_plane_inactivity_timer = Some(Seconds(30));
    let (mut world, seid, _) = World::with_session(request);
    world.answers = true;
    world.wait(10);
    world.count(seid, 1, 100, 0);
    assert_eq!(reports(world.wait(29)).len(), 0);
    let sent = reports(world.wait(1));
    assert_eq!(sent.iter().map(|(_, request)| request.report_type).collect::<Vec<_>>(), [ReportType::UPIR]);
    assert_eq!(reports(world.wait(300)).len(), 0, "once");
    world.count(seid, 1, 100, 0);
    assert_eq!(reports(world.wait(300)).len(), 1);
}

#[test]
fn an_inactivity_timer_of_zero_stops_the_watch() {
    let mut request = pdu_session();
    request.user_plane_inactivity_timer = Some(Seconds(5));
    let (mut world, seid, _) = World::with_session(request);
    let stop = Some(Seconds(0));
    world.modify(
        seid,
        SessionModificationRequest { user_plane_inactivity_timer: stop, ..SessionModificationRequest::new() },
    );
    assert_eq!(reports(world.wait(9)).len(), 0);
}

fn urr(triggers: ReportingTriggers) -> CreateUrr {
    CreateUrr::new(UrrId(1), MeasurementMethod::VOLUM | MeasurementMethod::DURAT, triggers)
}

fn octets(total: u64) -> Option<Volume> {
    Some(Volume { total: Some(total), ..Volume::default() })
}

fn limits(world: &World, seid: u64) -> (Option<u64>, Option<u64>) {
    let urr = &world.installed(seid).urrs[0];
    (urr.threshold.total, urr.quota.total)
}

/// A summary of a usage report: number, octets uplink, downlink, trigger.
fn summary(report: &UsageReport) -> (u32, Option<u64>, Option<u64>, UsageReportTrigger) {
    let volume = report.volume_measurement.unwrap_or_default();
    (report.ur_seqn.0, volume.uplink, volume.downlink, report.usage_report_trigger)
}

fn used(seid: u64) -> Event {
    Event::Usage { session: SessionId(seid), urr: contract::UrrId(1), volume: contract::Volume::default() }
}

#[test]
fn usage_is_reported_at_the_end_of_the_session() {
    let (mut world, seid, _) = World::with_session(measured(urr(ReportingTriggers::PERIO)));
    world.wait(3);
    world.count(seid, 1, 1000, 2000);
    world.wait(4);
    let response = world.delete(seid);
    let report = &response.usage_reports[0];
    assert_eq!(summary(report), (0, Some(1000), Some(2000), UsageReportTrigger::TERMR));
    assert_eq!(report.volume_measurement.and_then(|volume| volume.total), Some(3000));
    assert_eq!(report.volume_measurement.and_then(|volume| volume.total_packets), None, "not asked for");
    assert_eq!((report.start_time, report.end_time), (Some(ntp(0)), Some(ntp(7))));
    assert_eq!((report.time_of_first_packet, report.time_of_last_packet), (Some(ntp(3)), Some(ntp(3))));
    assert_eq!(report.duration_measurement, Some(Seconds(4)), "from the first packet on");
}

#[test]
fn packets_are_counted_on_demand() {
    let mut rule = urr(ReportingTriggers::PERIO);
    rule.measurement_information = Some(MeasurementInformation::MNOP);
    let (mut world, seid, _) = World::with_session(measured(rule));
    world.count(seid, 1, 1000, 2000);
    let volume = world.delete(seid).usage_reports[0].volume_measurement.expect("a volume");
    assert_eq!((volume.total_packets, volume.uplink_packets), (Some(2), Some(1)));
}

#[test]
fn a_volume_threshold_applies_again_after_each_report() {
    let mut rule = urr(ReportingTriggers::VOLTH);
    rule.volume_threshold = octets(1000);
    let (mut world, seid, _) = World::with_session(measured(rule));
    assert_eq!(limits(&world, seid), (Some(1000), None));
    world.count(seid, 1, 600, 500);
    let sent = world.event(used(seid));
    let request = report(&mut world, sent);
    assert_eq!(request.report_type, ReportType::USAR);
    assert_eq!(summary(&request.usage_reports[0]), (0, Some(600), Some(500), UsageReportTrigger::VOLTH));
    assert_eq!(limits(&world, seid), (Some(2100), None), "1000 more than was used by then");
    assert!(world.event(used(seid)).is_empty(), "nothing new to report");
    world.count(seid, 1, 0, 1000);
    let sent = world.event(used(seid));
    let request = report(&mut world, sent);
    assert_eq!(summary(&request.usage_reports[0]), (1, Some(0), Some(1000), UsageReportTrigger::VOLTH));
}

#[test]
fn another_report_does_not_move_the_threshold() {
    let mut rule = urr(ReportingTriggers::VOLTH);
    rule.volume_threshold = octets(1000);
    let (mut world, seid, _) = World::with_session(measured(rule));
    world.count(seid, 1, 400, 0);
    let query = SessionModificationRequest {
        query_urrs: vec![QueryUrr::new(UrrId(1))],
        query_urr_reference: Some(QueryUrrReference(42)),
        ..SessionModificationRequest::new()
    };
    let response = world.modify(seid, query);
    assert_eq!(summary(&response.usage_reports[0]), (0, Some(400), Some(0), UsageReportTrigger::IMMER));
    assert_eq!(response.usage_reports[0].query_urr_reference, Some(QueryUrrReference(42)));
    assert_eq!(limits(&world, seid), (Some(1000), None), "600 octets are left of it");
    world.count(seid, 1, 600, 0);
    let sent = world.event(used(seid));
    let request = report(&mut world, sent);
    assert_eq!(summary(&request.usage_reports[0]), (1, Some(600), Some(0), UsageReportTrigger::VOLTH));
    assert_eq!(limits(&world, seid), (Some(2000), None), "the threshold as provisioned");
}

#[test]
fn a_quota_is_reported_once_and_again_when_a_new_one_is_used_up() {
    let mut rule = urr(ReportingTriggers::VOLQU);
    rule.volume_quota = octets(1000);
    let (mut world, seid, _) = World::with_session(measured(rule));
    assert_eq!(limits(&world, seid), (None, Some(1000)));
    world.count(seid, 1, 1000, 0);
    let sent = world.event(used(seid));
    let request = report(&mut world, sent);
    assert_eq!(request.usage_reports[0].usage_report_trigger, UsageReportTrigger::VOLQU);
    assert!(world.event(used(seid)).is_empty());
    assert!(
        world.installed(seid).urrs[0]
            .quota
            .reached_by(&contract::Volume { uplink: 1000, ..Default::default() })
    );
    let update = UpdateUrr {
        volume_quota: Some(Change::Set(octets(500).expect("a volume"))),
        ..UpdateUrr::new(UrrId(1))
    };
    world.modify(
        seid,
        SessionModificationRequest { update_urrs: vec![update], ..SessionModificationRequest::new() },
    );
    assert_eq!(limits(&world, seid), (None, Some(1500)), "500 from the last report on");
    world.count(seid, 1, 500, 0);
    let sent = world.event(used(seid));
    let request = report(&mut world, sent);
    assert_eq!(summary(&request.usage_reports[0]), (1, Some(500), Some(0), UsageReportTrigger::VOLQU));
}

#[test]
fn a_new_threshold_counts_what_was_used_since_the_last_report() {
    let mut rule = urr(ReportingTriggers::VOLTH);
    rule.volume_threshold = octets(1000);
    let (mut world, seid, _) = World::with_session(measured(rule));
    world.count(seid, 1, 1000, 0);
    let sent = world.event(used(seid));
    report(&mut world, sent);
    world.count(seid, 1, 300, 0);
    let update = UpdateUrr {
        volume_threshold: Some(Change::Set(octets(5000).expect("a volume"))),
        ..UpdateUrr::new(UrrId(1))
    };
    world.modify(
        seid,
        SessionModificationRequest { update_urrs: vec![update], ..SessionModificationRequest::new() },
    );
    assert_eq!(limits(&world, seid), (Some(6000), None), "not 6300");
}

#[test]
fn periods_are_reported_one_after_the_other() {
    let mut rule = urr(ReportingTriggers::PERIO);
    rule.measurement_period = Some(Seconds(4));
    let (mut world, seid, _) = World::with_session(measured(rule));
    for number in 0..3 {
        world.count(seid, 1, 100, 0);
        let sent = world.wait(4);
        let sent = sent
            .into_iter()
            .filter(|sent| matches!(sent.message, Message::SessionReportRequest(_)))
            .collect();
        let request = report(&mut world, sent);
        assert_eq!(
            summary(&request.usage_reports[0]),
            (number, Some(100), Some(0), UsageReportTrigger::PERIO)
        );
    }
}

#[test]
fn a_time_threshold_counts_from_the_first_packet() {
    let mut rule = urr(ReportingTriggers::TIMTH);
    rule.time_threshold = Some(Seconds(5));
    let (mut world, seid, _) = World::with_session(measured(rule));
    assert_eq!(reports(world.wait(4)).len(), 0);
    world.count(seid, 1, 100, 0);
    assert_eq!(reports(world.wait(4)).len(), 0);
    let sent = world.wait(1);
    let request = report(&mut world, sent);
    assert_eq!(request.usage_reports[0].usage_report_trigger, UsageReportTrigger::TIMTH);
    assert_eq!(request.usage_reports[0].duration_measurement, Some(Seconds(5)));
}

#[test]
fn active_time_stops_without_packets() {
    let mut rule = urr(ReportingTriggers::PERIO);
    rule.inactivity_detection_time = Some(Seconds(2));
    let (mut world, seid, _) = World::with_session(measured(rule));
    world.count(seid, 1, 100, 0);
    world.wait(7);
    let response = world.delete(seid);
    assert_eq!(response.usage_reports[0].duration_measurement, Some(Seconds(2)));
}

#[test]
fn a_used_up_time_quota_stops_the_traffic() {
    let mut rule = urr(ReportingTriggers::TIMQU);
    rule.time_quota = Some(Seconds(3));
    rule.measurement_information = Some(MeasurementInformation::ISTM);
    let (mut world, seid, _) = World::with_session(measured(rule));
    world.count(seid, 1, 100, 0);
    let sent = world.wait(3);
    let request = report(&mut world, sent);
    assert_eq!(request.usage_reports[0].usage_report_trigger, UsageReportTrigger::TIMQU);
    let none_left = VolumeLimits { total: Some(0), ..VolumeLimits::default() };
    assert_eq!(world.installed(seid).urrs[0].quota, none_left);
}

#[test]
fn a_quota_ends_with_its_holding_or_validity_time() {
    for (trigger, reported) in [
        (ReportingTriggers::QUHTI, UsageReportTrigger::QUHTI),
        (ReportingTriggers::QUVTI, UsageReportTrigger::QUVTI),
    ] {
        let mut rule = urr(trigger);
        rule.volume_quota = octets(1000);
        rule.quota_holding_time = trigger.contains(ReportingTriggers::QUHTI).then_some(Seconds(5));
        rule.quota_validity_time = trigger.contains(ReportingTriggers::QUVTI).then_some(Seconds(5));
        let (mut world, seid, _) = World::with_session(measured(rule));
        let sent = world.wait(5);
        let request = report(&mut world, sent);
        assert_eq!(request.usage_reports[0].usage_report_trigger, reported);
        assert_eq!(limits(&world, seid), (None, Some(0)));
        assert_eq!(reports(world.wait(4)).len(), 0, "once");
    }
}

#[test]
fn a_linked_urr_reports_along() {
    let mut rule = urr(ReportingTriggers::VOLTH);
    rule.volume_threshold = octets(1000);
    let mut request = measured(rule);
    let mut linked = urr(ReportingTriggers::LIUSA);
    linked.urr_id = UrrId(2);
    linked.linked_urr_ids = vec![UrrId(1)];
    request.create_urrs.push(linked);
    let (mut world, seid, _) = World::with_session(request);
    world.count(seid, 1, 1000, 0);
    world.count(seid, 2, 70, 0);
    let sent = world.event(used(seid));
    let request = report(&mut world, sent);
    let triggers: Vec<_> = request.usage_reports.iter().map(|report| report.usage_report_trigger).collect();
    assert_eq!(triggers, [UsageReportTrigger::VOLTH, UsageReportTrigger::LIUSA]);
}

#[test]
fn a_removed_urr_reports_what_it_measured() {
    let (mut world, seid, _) = World::with_session(measured(urr(ReportingTriggers::PERIO)));
    world.count(seid, 1, 100, 0);
    let remove = SessionModificationRequest {
        remove_urrs: vec![RemoveUrr::new(UrrId(1))],
        ..SessionModificationRequest::new()
    };
    let response = world.modify(seid, remove);
    assert_eq!(summary(&response.usage_reports[0]), (0, Some(100), Some(0), UsageReportTrigger::TERMR));
    assert!(world.installed(seid).urrs.is_empty());
    assert!(world.delete(seid).usage_reports.is_empty());
}

#[test]
fn a_urr_that_is_replaced_reports_what_it_measured_and_its_successor_measures_anew() {
    let mut rule = urr(ReportingTriggers::VOLTH);
    rule.volume_threshold = octets(1000);
    let (mut world, seid, _) = World::with_session(measured(rule.clone()));
    world.count(seid, 1, 1000, 0);
    let sent = world.event(used(seid));
    report(&mut world, sent);
    world.count(seid, 1, 100, 0);
    world.wait(5);
    rule.volume_threshold = octets(500);
    let named = |id| UpdatePdr { urr_ids: Some(vec![UrrId(1)]), ..UpdatePdr::new(PdrId(id)) };
    let replace = SessionModificationRequest {
        remove_urrs: vec![RemoveUrr::new(UrrId(1))],
        create_urrs: vec![rule],
        update_pdrs: vec![named(1), named(2)],
        ..SessionModificationRequest::new()
    };
    let response = world.modify(seid, replace);
    assert_eq!(summary(&response.usage_reports[0]), (1, Some(100), Some(0), UsageReportTrigger::TERMR));
    assert_eq!(limits(&world, seid), (Some(1600), None), "500 from now on; the datapath counts on");
    world.wait(4);
    world.count(seid, 1, 70, 0);
    world.wait(2);
    let last = &world.delete(seid).usage_reports[0];
    assert_eq!(summary(last), (0, Some(70), Some(0), UsageReportTrigger::TERMR));
    assert_eq!((last.start_time, last.time_of_first_packet), (Some(ntp(5)), Some(ntp(9))));
    assert_eq!(last.duration_measurement, Some(Seconds(2)), "from its own first packet on");
}

#[test]
fn a_urr_that_loses_its_last_pdr_reports_and_starts_anew() {
    let (mut world, seid, _) = World::with_session(measured(urr(ReportingTriggers::PERIO)));
    world.count(seid, 1, 100, 0);
    let without = |id| UpdatePdr { urr_ids: Some(Vec::new()), ..UpdatePdr::new(PdrId(id)) };
    let update =
        |updates| SessionModificationRequest { update_pdrs: updates, ..SessionModificationRequest::new() };
    assert!(world.modify(seid, update(vec![without(1)])).usage_reports.is_empty());
    let response = world.modify(seid, update(vec![without(2)]));
    assert_eq!(response.usage_reports[0].usage_report_trigger, UsageReportTrigger::TERMR);
    assert_eq!(world.installed(seid).urrs.len(), 1, "the URR stays");
}

#[test]
fn all_urrs_are_queried_by_a_flag() {
    let (mut world, seid, _) = World::with_session(measured(urr(ReportingTriggers::PERIO)));
    world.count(seid, 1, 100, 0);
    let flags = Some(PfcpSmReqFlags::QAURR);
    let response = world.modify(
        seid,
        SessionModificationRequest { pfcp_sm_req_flags: flags, ..SessionModificationRequest::new() },
    );
    assert_eq!(response.usage_reports.len(), 1);
}

#[test]
fn usage_is_reported_separately_before_and_after_the_monitoring_time() {
    let mut rule = urr(ReportingTriggers::VOLTH);
    rule.volume_threshold = octets(1000);
    rule.subsequent_volume_threshold = octets(50);
    rule.monitoring_time = Some(ntp(5));
    let (mut world, seid, _) = World::with_session(measured(rule));
    world.count(seid, 1, 100, 0);
    let sent = world.wait(5);
    let before = report(&mut world, sent);
    assert_eq!(before.usage_reports[0].usage_information, Some(UsageInformation::BEF));
    assert_eq!(before.usage_reports[0].usage_report_trigger, UsageReportTrigger::MONIT);
    assert_eq!(limits(&world, seid), (Some(150), None), "the subsequent threshold");
    world.count(seid, 1, 60, 0);
    let sent = world.event(used(seid));
    let after = report(&mut world, sent);
    assert_eq!(after.usage_reports[0].usage_information, Some(UsageInformation::AFT));
    assert_eq!(after.usage_reports[0].volume_measurement.and_then(|volume| volume.total), Some(60));
}

#[test]
fn a_deletion_announces_pending_reports() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    world.event(downlink_data(seid));
    assert_eq!(world.delete(seid).pfcp_sd_rsp_flags, Some(PfcpSdRspFlags::PURU));
}

#[test]
fn events_of_a_removed_session_are_ignored() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    world.delete(seid);
    assert!(world.event(downlink_data(seid)).is_empty());
    assert!(world.event(used(seid)).is_empty());
}

/// A session whose downlink is buffered by a BAR with a notification delay, in units of 50 ms.
fn delayed(delay: u8) -> SessionEstablishmentRequest {
    let bar = CreateBar {
        downlink_data_notification_delay: Some(DownlinkDataNotificationDelay(delay)),
        ..CreateBar::new(BarId(1))
    };
    let mut request = pdu_session();
    request.create_bars = vec![bar];
    request.create_fars[1].bar_id = Some(BarId(1));
    request
}

#[test]
fn downlink_data_is_reported_after_the_delay_of_its_bar() {
    let (mut world, seid, _) = World::with_session(delayed(30));
    assert!(world.event(downlink_data(seid)).is_empty());
    assert!(reports(world.wait(1)).is_empty(), "1.5 s are not over");
    assert_eq!(reports(world.wait(1)).len(), 1);
}

#[test]
fn downlink_data_of_several_pdrs_is_reported_together_after_a_delay() {
    let mut request = delayed(30);
    let voice = Pdi { qfis: vec![Qfi(5)], ..downlink_pdr(UE).pdi };
    request.create_pdrs.push(CreatePdr { pdr_id: PdrId(3), pdi: voice, ..downlink_pdr(UE) });
    let (mut world, seid, _) = World::with_session(request);
    world.event(downlink_data(seid));
    let (session, qfi) = (SessionId(seid), Some(contract::Qfi(5)));
    world.event(Event::DownlinkData { session, pdr: contract::PdrId(3), qfi, dscp: 10 });
    world.event(downlink_data(seid));
    let sent = reports(world.wait(2));
    let data = sent[0].1.downlink_data_report.as_ref().expect("a Downlink Data Report");
    assert_eq!((sent.len(), &data.pdr_ids[..]), (1, &[PdrId(2), PdrId(3)][..]));
    let information = data.service_information.iter().map(|each| (each.paging_policy_indication, each.qfi));
    assert_eq!(information.collect::<Vec<_>>(), [(Some(46), Some(Qfi(1))), (Some(10), Some(Qfi(5)))]);
}

#[test]
fn a_delayed_report_is_cancelled_when_packets_are_requested() {
    let (mut world, seid, _) = World::with_session(delayed(30));
    world.event(downlink_data(seid));
    let update_fars = vec![to_gnb(GNB, 7)];
    world.modify(seid, SessionModificationRequest { update_fars, ..SessionModificationRequest::new() });
    assert!(reports(world.wait(5)).is_empty());
}

#[test]
fn another_far_applies_once_a_quota_is_exhausted() {
    let urr = CreateUrr {
        volume_quota: Some(Volume { total: Some(1000), uplink: None, downlink: None }),
        far_id_for_quota_action: Some(FarId(9)),
        ..CreateUrr::new(UrrId(1), MeasurementMethod::VOLUM, ReportingTriggers::VOLQU)
    };
    let mut request = measured(urr);
    request.create_fars.push(CreateFar::new(FarId(9), ApplyAction::DROP));
    let (mut world, seid, _) = World::with_session(request);
    assert_eq!(world.installed(seid).urrs[0].quota.total, Some(1000));
    world.count(seid, 1, 600, 400);
    let volume = contract::Volume::default();
    let event = Event::Usage { session: SessionId(seid), urr: contract::UrrId(1), volume };
    let sent = reports(world.event(event));
    assert_eq!(sent[0].1.usage_reports[0].usage_report_trigger, UsageReportTrigger::VOLQU);
    let session = world.installed(seid);
    assert!(session.pdrs.iter().all(|pdr| pdr.far == contract::FarId(9)), "{session:?}");
    assert!(session.urrs[0].quota.is_none(), "the FAR decides, not the quota");
    let update = UpdateUrr {
        volume_quota: Some(Change::Set(Volume { total: Some(5000), uplink: None, downlink: None })),
        ..UpdateUrr::new(UrrId(1))
    };
    world.modify(
        seid,
        SessionModificationRequest { update_urrs: vec![update], ..SessionModificationRequest::new() },
    );
    let session = world.installed(seid);
    assert_eq!(session.pdrs.iter().map(|pdr| pdr.far.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(session.urrs[0].quota.total, Some(6000));
}

#[test]
fn an_unknown_far_for_quota_action_is_rejected() {
    let urr = CreateUrr {
        far_id_for_quota_action: Some(FarId(9)),
        ..CreateUrr::new(UrrId(1), MeasurementMethod::VOLUM, ReportingTriggers::VOLQU)
    };
    let mut world = World::associated();
    let Message::SessionEstablishmentResponse(response) = world.ask(0, measured(urr)).message else {
        panic!()
    };
    assert_eq!(response.cause, Cause::RuleCreationModificationFailure);
    assert_eq!(response.failed_rule_id, Some(FailedRuleId::Urr(UrrId(1))));
}

#[test]
fn a_paused_urr_counts_neither_packets_nor_time() {
    let urr = CreateUrr {
        time_threshold: Some(Seconds(10)),
        measurement_information: Some(MeasurementInformation::ISTM),
        ..CreateUrr::new(UrrId(1), MeasurementMethod::DURAT, ReportingTriggers::TIMTH)
    };
    let (mut world, seid, _) = World::with_session(measured(urr));
    world.answers = true;
    world.count(seid, 1, 0, 0);
    world.wait(4);
    let set = |world: &mut World, info| {
        let measurement_information = Some(Change::Set(info));
        let update = UpdateUrr { measurement_information, ..UpdateUrr::new(UrrId(1)) };
        world.modify(
            seid,
            SessionModificationRequest { update_urrs: vec![update], ..SessionModificationRequest::new() },
        );
    };
    set(&mut world, MeasurementInformation::ISTM | MeasurementInformation::INAM);
    assert!(world.installed(seid).pdrs.iter().all(|pdr| pdr.urrs.is_empty()));
    assert!(reports(world.wait(100)).is_empty());
    set(&mut world, MeasurementInformation::ISTM);
    assert!(world.installed(seid).pdrs.iter().all(|pdr| pdr.urrs.len() == 1));
    assert!(reports(world.wait(5)).is_empty(), "4 s before and 5 s after the pause");
    assert_eq!(reports(world.wait(2)).len(), 1);
}

#[test]
fn usage_is_reported_at_each_monitoring_time() {
    let additional = AdditionalMonitoringTime {
        subsequent_volume_threshold: Some(Volume { total: Some(50), uplink: None, downlink: None }),
        ..AdditionalMonitoringTime::new(ntp(20))
    };
    let urr = CreateUrr {
        volume_threshold: Some(Volume { total: Some(1000), uplink: None, downlink: None }),
        monitoring_time: Some(ntp(10)),
        additional_monitoring_times: vec![additional],
        ..CreateUrr::new(UrrId(1), MeasurementMethod::VOLUM, ReportingTriggers::VOLTH)
    };
    let (mut world, seid, _) = World::with_session(measured(urr));
    world.answers = true;
    let at = |world: &mut World, seconds| {
        let sent = reports(world.wait(seconds));
        let used = |report: &UsageReport| report.volume_measurement.unwrap().total.unwrap();
        let told = |report: &UsageReport| (used(report), report.usage_information);
        sent.iter().flat_map(|(_, request)| request.usage_reports.iter().map(told)).collect::<Vec<_>>()
    };
    world.count(seid, 1, 100, 0);
    assert_eq!(at(&mut world, 11), [(100, Some(UsageInformation::BEF))]);
    world.count(seid, 1, 30, 0);
    assert_eq!(at(&mut world, 10), [(30, Some(UsageInformation::BEF))]);
    assert_eq!(world.installed(seid).urrs[0].threshold.total, Some(130 + 50));
    world.count(seid, 1, 60, 0);
    let volume = contract::Volume::default();
    let sent =
        reports(world.event(Event::Usage { session: SessionId(seid), urr: contract::UrrId(1), volume }));
    let report = &sent[0].1.usage_reports[0];
    assert_eq!(report.usage_information, Some(UsageInformation::AFT));
    assert_eq!(report.usage_report_trigger, UsageReportTrigger::VOLTH);
}
