//! A UPF-C's state is handed over to another one, which goes on as if it were the first.

use crate::support::*;
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_pfcp::rules::*;
use pith_upf::contract::{Datapath, Event, SessionId};
use pith_upf::handover::{Counted, HandoverError, Importer};
use pith_upf::{Config, GtpuAddress, Upf};
use proptest::prelude::*;
use std::time::Duration;

/// The settings of [`World::new`], after a restart: another start, and perhaps other changes.
fn config(change: impl FnOnce(&mut Config)) -> Config {
    let n3 = GtpuAddress { v4: Some(N3), v6: None };
    let mut config = Config::new([192, 168, 4, 1].into(), n3, STARTED + 5_000);
    config.smfs = vec![SMFS];
    config.networks = vec!["internet".into()];
    change(&mut config);
    config
}

fn export(world: &mut World) -> (Vec<Vec<u8>>, Counted) {
    let mut records = Vec::new();
    let counted = world
        .upf
        .export(world.now, &world.datapath, |record| {
            records.push(record);
            Ok(())
        })
        .unwrap();
    (records, counted)
}

fn import(
    world: &World,
    config: Config,
    records: &[Vec<u8>],
    datapath: &mut dyn Datapath,
) -> Result<Upf, HandoverError> {
    let mut importer = Importer::new(config, [9; 32]);
    records.iter().try_for_each(|record| importer.take(world.now, record, datapath))?;
    importer.finish()
}

/// Hands the UPF of this world over. Meanwhile the former datapath counts `more` octets of URR 1 in each direction.
fn hand_over(world: &mut World, seid: u64, more: u64) {
    let (records, counted) = export(world);
    let mut datapath = Notes::default();
    let mut upf = import(world, config(|_| ()), &records, &mut datapath).unwrap();
    if more > 0 {
        world.count(seid, 1, more, more);
    }
    let mut rest = Vec::new();
    world.upf.counted_since(&counted, world.now, &world.datapath, |record| rest.push(record)).unwrap();
    for record in rest {
        upf.add_counted(world.now, &record, &mut datapath).unwrap();
    }
    (world.upf, world.datapath) = (upf, datapath);
}

/// The records of a state, without what hash maps order by chance.
fn sorted(mut records: Vec<Vec<u8>>) -> Vec<String> {
    records.sort();
    records.into_iter().map(|record| String::from_utf8(record).unwrap()).collect()
}

fn volume_urr(threshold: u64) -> CreateUrr {
    let limit = |total| Some(Volume { total: Some(total), uplink: None, downlink: None });
    CreateUrr {
        volume_threshold: limit(threshold),
        volume_quota: limit(threshold * 2),
        ..CreateUrr::new(
            UrrId(1),
            MeasurementMethod::VOLUM | MeasurementMethod::DURAT,
            ReportingTriggers::VOLTH | ReportingTriggers::VOLQU,
        )
    }
}

fn connect(world: &mut World, seid: u64) {
    let request = SessionModificationRequest {
        update_fars: vec![to_gnb(GNB, 0x77)],
        ..SessionModificationRequest::new()
    };
    assert_eq!(world.modify(seid, request).cause, Cause::RequestAccepted);
}

#[test]
fn the_smf_sees_no_other_upf() {
    let (mut world, seid, teid) = World::with_session(measured(volume_urr(1000)));
    connect(&mut world, seid);
    world.count(seid, 1, 300, 100);
    world.wait(7);
    let installed = world.installed(seid);
    hand_over(&mut world, seid, 0);
    assert_eq!(*world.installed(seid), *installed);
    let Message::HeartbeatResponse(response) = world.ask(0, HeartbeatRequest::new(ntp(5))).message else {
        panic!()
    };
    assert_eq!(response.recovery_time_stamp, ntp(0), "the start of the first process");
    let report = world.delete(seid).usage_reports.remove(0);
    let volume = report.volume_measurement.unwrap();
    assert_eq!((volume.uplink, volume.downlink), (Some(300), Some(100)));
    assert_eq!(report.start_time, Some(ntp(0)));
    let (_, other) = world.establish(pdu_session_of(0x6, [10, 45, 0, 3].into()));
    assert_ne!(other, teid);
}

#[test]
fn a_session_keeps_its_shorter_prefix() {
    let request = crate::prefix::session(1, "2001:db8:45:100::", Some(8), None);
    let (mut world, seid, _) = World::with_session(request);
    let installed = world.installed(seid);
    hand_over(&mut world, seid, 0);
    assert_eq!(*world.installed(seid), *installed);
    assert_eq!(installed.ue.delegation, 8);
    let owner = world.upf.session_of_ue("2001:db8:45:1ab::7".parse().unwrap());
    assert_eq!(owner, Some(SessionId(seid)));
}

#[test]
fn what_the_former_datapath_counts_until_its_last_packet_is_added_once() {
    let (mut world, seid, _) = World::with_session(measured(volume_urr(100_000)));
    world.count(seid, 1, 300, 100);
    for _ in 0..3 {
        hand_over(&mut world, seid, 50);
        world.count(seid, 1, 1, 2);
    }
    let volume = world.delete(seid).usage_reports.remove(0).volume_measurement.unwrap();
    assert_eq!((volume.uplink, volume.downlink), (Some(453), Some(256)));
}

/// The former process no longer checked it.
#[test]
fn a_threshold_reached_meanwhile_is_reported() {
    let (mut world, seid, _) = World::with_session(measured(volume_urr(1000)));
    world.count(seid, 1, 400, 400);
    hand_over(&mut world, seid, 150);
    let reports = reports(world.wait(1));
    let [(_, report)] = &reports[..] else { panic!("{reports:?}") };
    assert!(report.usage_reports[0].usage_report_trigger.contains(UsageReportTrigger::VOLTH));
    let quota = world.installed(seid).urrs[0].quota.total;
    assert_eq!(quota, Some(2000), "of the same counters as before");
}

#[test]
fn pending_requests_and_stored_responses_go_on() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let pdr = pith_upf::contract::PdrId(2);
    let held = || Event::DownlinkData { session: SessionId(seid), pdr, qfi: None, dscp: 8 };
    let first = reports(world.event(held())).remove(0).0.sequence;
    let request = encode(seid, 99, SessionModificationRequest::new());
    let response = world.send(&request).remove(0).octets;
    hand_over(&mut world, seid, 0);
    assert!(world.upf.has_reported(SessionId(seid), pdr));
    assert_eq!(world.send(&request).remove(0).octets, response, "a duplicate");
    let again = reports(world.wait(3)).remove(0).0.sequence;
    assert_eq!(again, first, "retransmitted after T1");
    let accepted = SessionReportResponse::new(Cause::RequestAccepted);
    world.send(&encode(seid, first, accepted));
    assert!(reports(world.wait(4)).is_empty());
    let next = reports(world.event(held())).remove(0).0.sequence;
    assert!(next > first);
}

#[test]
fn a_state_is_the_same_after_it_was_handed_over() {
    let (mut world, seid, _) = World::with_session(measured(volume_urr(1000)));
    world.count(seid, 1, 400, 700);
    world.wait(12);
    let (before, _) = export(&mut world);
    hand_over(&mut world, seid, 0);
    let (after, _) = export(&mut world);
    assert_eq!(sorted(before), sorted(after));
}

#[test]
fn packets_of_a_removed_flow_are_accepted_as_long_as_by_one_process() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    world.answers = true;
    world.modify(seid, crate::session::add_flow());
    world.modify(seid, crate::session::remove_flow());
    for (seconds, qfis) in [(60, &[pith_upf::contract::Qfi(2)][..]), (61, &[])] {
        world.wait(seconds);
        hand_over(&mut world, seid, 0);
        assert_eq!(world.installed(seid).former_qfis, qfis);
    }
}

#[test]
fn incomplete_or_repeated_records_are_refused() {
    let (mut world, _, _) = World::with_session(pdu_session());
    let (records, _) = export(&mut world);
    let result =
        |records: &[Vec<u8>]| import(&world, config(|_| ()), records, &mut Notes::default()).map(drop);
    assert!(result(&records).is_ok());
    for missing in 0..records.len() {
        let some: Vec<_> = [&records[..missing], &records[missing + 1..]].concat();
        let is_response = String::from_utf8_lossy(&records[missing]).starts_with("{\"Response");
        assert_eq!(result(&some).is_ok(), is_response, "without record {missing}");
    }
    for twice in 0..records.len() {
        let mut more = records.clone();
        more.insert(twice, records[twice].clone());
        let text = String::from_utf8_lossy(&records[twice]).into_owned();
        let is_idempotent = text.starts_with("{\"Response") || text.starts_with("{\"Association");
        assert_eq!(result(&more).is_ok(), is_idempotent, "{text}");
    }
}

#[test]
fn a_session_that_the_settings_forbid_is_named() {
    let mut request = pdu_session();
    request.create_pdrs[1].pdi.network_instance = Some(NetworkInstance::from_dnn("internet"));
    let (mut world, seid, _) = World::with_session(request);
    let (records, _) = export(&mut world);
    let error =
        |config: Config| import(&world, config, &records, &mut Notes::default()).unwrap_err().to_string();
    let moved = config(|config| config.n3 = GtpuAddress { v4: Some([192, 168, 3, 7].into()), v6: None });
    let text = error(moved);
    assert!(text.contains(&format!("{seid:#x}")) && text.contains("restart the UPF"), "{text}");
    assert!(error(config(|config| config.networks = vec!["other".into()])).contains(&format!("{seid:#x}")));
    assert!(error(config(|config| config.max_sessions = 0)).contains("more sessions"));
    assert!(error(config(|config| config.node_id = NodeId::Fqdn("other".into()))).contains("Node ID"));
}

/// Rules that do not fit into one message.
#[test]
fn a_session_with_many_rules_is_handed_over() {
    let mut request = pdu_session();
    for id in 0..200u16 {
        let text = format!("permit out 17 from 192.0.2.{id} to assigned 1000-2000");
        let filters = (0..8)
            .map(|_| SdfFilter { flow_description: Some(text.clone().into_bytes()), ..SdfFilter::default() });
        let mut pdr = CreatePdr { pdr_id: PdrId(id + 10), ..downlink_pdr(UE) };
        pdr.pdi.sdf_filters = filters.collect();
        if id < 100 {
            request.create_pdrs.push(pdr);
        }
    }
    let (mut world, seid, _) = World::with_session(request);
    let more = (100..200u16).map(|id| {
        let mut pdr = CreatePdr { pdr_id: PdrId(id + 10), ..downlink_pdr(UE) };
        let text = format!("permit out 17 from 192.0.2.{id} to assigned 1000-2000");
        let filter = SdfFilter { flow_description: Some(text.into_bytes()), ..SdfFilter::default() };
        pdr.pdi.sdf_filters = vec![filter; 8];
        pdr
    });
    let request =
        SessionModificationRequest { create_pdrs: more.collect(), ..SessionModificationRequest::new() };
    assert_eq!(world.modify(seid, request).cause, Cause::RequestAccepted);
    let installed = world.installed(seid);
    hand_over(&mut world, seid, 0);
    assert_eq!(installed.pdrs.len(), 202);
    assert_eq!(*world.installed(seid), *installed);
}

/// A record as version 1 of the format has it: it stays readable.
#[test]
fn records_of_the_first_format_are_read() {
    let text = include_str!("handover_format_1.jsonl");
    let world = World::new();
    let records: Vec<_> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
    let mut datapath = Notes::default();
    let upf = import(&world, config(|_| ()), &records, &mut datapath).unwrap();
    assert_eq!((upf.sessions().count(), upf.associations().count(), upf.teids_in_use()), (1, 1, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Changed octets are refused or read as another state, without a panic now or at the next inputs.
    #[test]
    fn damaged_records_do_no_harm(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let (mut world, seid, _) = World::with_session(measured(volume_urr(1000)));
        world.count(seid, 1, 5, 5);
        world.event(Event::DownlinkData { session: SessionId(seid), pdr: pith_upf::contract::PdrId(2), qfi: None, dscp: 8 });
        let (mut records, _) = export(&mut world);
        for (at, octet) in changes {
            let record = at.index(records.len());
            let place = at.index(records[record].len());
            records[record][place] = octet;
        }
        let mut datapath = Notes::default();
        if let Ok(upf) = import(&world, config(|_| ()), &records, &mut datapath) {
            (world.upf, world.datapath) = (upf, datapath);
            world.now += Duration::from_secs(3);
            let mut out = Vec::new();
            world.upf.handle(world.now, pith_upf::Input::Tick, &mut world.datapath, &mut out);
        }
    }

    /// Any volumes, limits and times are the same afterwards, and so are the reports.
    #[test]
    fn usage_is_the_same_in_one_process_or_several(
        threshold in 1u64..100_000,
        steps in prop::collection::vec((0u64..20_000, 0u64..20_000, 0u64..20, any::<bool>()), 1..12),
    ) {
        let (mut one, id, _) = World::with_session(measured(volume_urr(threshold)));
        let (mut several, other, _) = World::with_session(measured(volume_urr(threshold)));
        for (up, down, seconds, upgraded) in steps {
            one.count(id, 1, up, down);
            several.count(other, 1, up, down);
            if upgraded {
                hand_over(&mut several, other, 0);
            }
            let seen = |sent: Vec<Sent>| -> Vec<_> {
                reports(sent).into_iter().map(|(_, report)| report.usage_reports).collect()
            };
            prop_assert_eq!(seen(one.wait(seconds)), seen(several.wait(seconds)));
        }
        prop_assert_eq!(one.delete(id).usage_reports, several.delete(other).usage_reports);
    }
}
