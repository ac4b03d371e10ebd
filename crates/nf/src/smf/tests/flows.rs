//! QoS flows that the PCF adds, changes and removes: UPF, gNB and UE get the same ones (TS 23.502 4.3.3.2; TS 29.512 4.2.3).

use super::super::context::DEFAULT_QFI;
use super::policy::{notify, rule, rule_errors};
use super::residency::restarted;
use super::world::*;
use super::{handover, panic, residency};
use crate::kit::{Fate, Timer};
use crate::testing::ambr;
use pith_nas::GsmBody;
use pith_nas::GsmCause;
use pith_nas::gsm::{
    PduSessionEstablishmentAccept, PduSessionModificationCommand, PduSessionModificationCommandReject,
    PduSessionModificationComplete,
};
use pith_nas::ie::{FilterComponent, FlowOperation, FlowParameter, RuleOperation};
use pith_ngap::transfer::{
    ModifyRequestTransfer, ModifyResponseTransfer, ModifyUnsuccessfulTransfer, NotifyTransfer,
    SetupRequestTransfer, SetupResponseTransfer,
};
use pith_ngap::{Cause, CauseRadioNetwork};
use pith_pfcp::Message;
use pith_pfcp::ie::{Cause as N4Cause, Gate, PdrId, QerId, Qfi};
use pith_pfcp::message::SessionModificationRequest;
use pith_sbi::common::Arp;
use pith_sbi::npcf_smpolicycontrol::{
    FailureCause, FailureCode, FlowInformation, FlowStatus, PccRule, QosData, RuleStatus, SmPolicyDecision,
    SmPolicyUpdateContextData, SmPolicyUpdateNotifyResult, TrafficControlData,
};
use pith_sbi::nsmf_pdusession::{N2SmInfoType, UpCnxState};
use pith_sbi::{Created, Operation, Request, Response, Uri};
use pith_types::BitRate;

pub(super) const NO_RESOURCES: Cause = Cause::RadioNetwork(CauseRadioNetwork::radio_resources_not_available);

fn flow_of(port: u16) -> FlowInformation {
    FlowInformation {
        flow_description: Some(format!("permit out 17 from 192.0.2.9 {port} to assigned").into()),
        packet_filter_usage: Some(true),
        ..FlowInformation::default()
    }
}

/// A PCC rule for a remote port, with QoS data of the same name.
pub(super) fn pcc(decision: &mut SmPolicyDecision, id: &str, port: u16, five_qi: u8, kbps: Option<u64>) {
    let mut data = QosData::new(id);
    data.five_qi = Some(five_qi);
    data.arp = Some(Arp::of_priority(2));
    let rate = kbps.map(BitRate::kbps);
    (data.gbr_ul, data.gbr_dl, data.maxbr_ul, data.maxbr_dl) = (rate, rate, rate, rate);
    decision.qos_decs.insert(id.into(), Some(data));
    let mut rule = PccRule::new(id);
    rule.flow_infos = vec![flow_of(port)];
    rule.precedence = Some(10);
    rule.ref_qos_data = vec![id.into()];
    decision.pcc_rules.insert(id.into(), Some(rule));
}

pub(super) fn voice(decision: &mut SmPolicyDecision) {
    pcc(decision, "voice", 5004, 1, Some(64));
}

pub(super) fn remove(id: &'static str) -> impl FnOnce(&mut SmPolicyDecision) {
    move |decision| {
        decision.pcc_rules.insert(id.into(), None);
        decision.qos_decs.insert(id.into(), None);
    }
}

/// A session with a voice flow whose command the UE has not answered.
pub(super) fn awaiting_complete() -> World {
    let mut world = World::established();
    notify(&mut world, voice);
    world
}

/// A session with a voice flow.
pub(super) fn with_voice() -> World {
    let mut world = awaiting_complete();
    gnb_modifies(&mut world, &[2], &[]);
    complete(&mut world);
    world.take_ladder();
    world
}

pub(super) fn complete(world: &mut World) {
    world.uplink(PduSessionModificationComplete::new());
}

pub(super) fn gnb_modifies(world: &mut World, flows: &[u8], failed: &[u8]) {
    let transfer = ModifyResponseTransfer {
        flows: flows.to_vec(),
        failed: failed.iter().map(|qfi| (*qfi, NO_RESOURCES)).collect(),
        ..ModifyResponseTransfer::default()
    };
    gnb_sends(world, N2SmInfoType::PduResModRsp, transfer.encode());
}

pub(super) fn gnb_sends(world: &mut World, kind: N2SmInfoType, transfer: Vec<u8>) {
    world.update(|data| {
        data.n2_sm_info_type = Some(kind);
        data.n2_sm_info = Some(transfer.into());
    });
}

fn gnb_sets_up(world: &mut World, flows: &[u8]) {
    let failed = vec![];
    let transfer =
        SetupResponseTransfer { downlink: GNB_TUNNEL, flows: flows.to_vec(), additional: vec![], failed };
    gnb_sends(world, N2SmInfoType::PduResSetupRsp, transfer.encode());
}

/// QFIs of the session's rules besides the default one.
pub(super) fn qfis(world: &World) -> Vec<u8> {
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    session.flows.current.flows().iter().map(|flow| flow.qfi).collect()
}

pub(super) fn is_settled(world: &World) -> bool {
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    session.flows.former.is_none() && session.flows.wanted.is_none() && session.modification.is_none()
}

pub(super) fn n4(world: &World) -> &SessionModificationRequest {
    let Some(Message::SessionModificationRequest(request)) = world.n4.last() else { panic!() };
    request
}

pub(super) fn n2(world: &World) -> Option<ModifyRequestTransfer> {
    let container = world.transfers.last().unwrap().n2_info_container.as_ref()?;
    let content = container.sm_info.as_ref().unwrap().n2_info_content.as_ref().unwrap();
    Some(ModifyRequestTransfer::decode(&content.ngap_data.content).unwrap())
}

fn command(world: &World) -> &PduSessionModificationCommand {
    match &world.n1.last().unwrap().body {
        GsmBody::PduSessionModificationCommand(command) => command,
        other => panic!("{other:?}"),
    }
}

/// The reports of rules to the PCF. (The PCF does not answer them in these tests.)
pub(super) fn reported(world: &World) -> Vec<&SmPolicyUpdateContextData> {
    let updates = world.open.iter().filter_map(|(_, request)| match request {
        Request::UpdateSmPolicy(update) => Some(&update.body),
        _ => None,
    });
    updates.collect()
}

pub(super) fn listening() -> World {
    let mut world = World::established();
    world.script.insert(Operation::UpdateSmPolicy, None);
    world
}

#[test]
fn a_gbr_flow_reaches_upf_gnb_and_ue() {
    let mut world = World::established();
    notify(&mut world, voice);
    assert_eq!(
        world.take_ladder(),
        "amf <- 204\nupf <- SessionModificationRequest\namf <- N1N2MessageTransfer"
    );
    let request = n4(&world);
    let [uplink, downlink] = &request.create_pdrs[..] else { panic!("{:?}", request.create_pdrs) };
    assert_eq!((uplink.pdr_id, downlink.pdr_id), (PdrId(104), PdrId(105)));
    assert_eq!(
        uplink.pdi.local_f_teid,
        Some(pith_pfcp::ie::FTeid::new(0x3000, address_of(UPF))),
        "that of PDR 1"
    );
    assert_eq!(uplink.pdi.qfis, [Qfi(2)]);
    assert_eq!(uplink.qer_ids, [QerId(2)], "no AMBR for a GBR flow");
    assert_eq!(downlink.qer_ids, [QerId(256), QerId(1)], "the default flow, until the gNB has the new one");
    for pdr in [uplink, downlink] {
        assert_eq!(pdr.precedence.0, 10);
        let text = pdr.pdi.sdf_filters[0].flow_description.as_deref().unwrap();
        assert_eq!(text, b"permit out 17 from 192.0.2.9 5004 to assigned");
    }
    let qer = &request.create_qers[0];
    let rates = (qer.guaranteed_bitrate.unwrap(), qer.maximum_bitrate.unwrap());
    assert_eq!((qer.qfi, rates.0.uplink, rates.1.downlink), (Some(Qfi(2)), 64, 64));
    let n2 = n2(&world).unwrap();
    assert_eq!(n2.flows.iter().map(|flow| flow.qfi).collect::<Vec<_>>(), [DEFAULT_QFI, 2]);
    assert_eq!(n2.flows[1].gbr.unwrap().guaranteed.uplink, BitRate::kbps(64));
    let command = command(&world);
    let rule = &command.qos_rules.as_ref().unwrap().0[0];
    assert_eq!(
        (rule.id, rule.operation, rule.precedence_and_qfi.unwrap().qfi),
        (2, RuleOperation::Create, 2)
    );
    assert!(rule.packet_filters[0].components.contains(&FilterComponent::RemotePort(5004)));
    let flow = &command.qos_flow_descriptions.as_ref().unwrap().0[1];
    assert_eq!((flow.qfi, flow.operation), (2, FlowOperation::Create));
    assert!(flow.parameters.contains(&FlowParameter::GfbrDownlink(BitRate::kbps(64))));
    gnb_modifies(&mut world, &[2], &[]);
    let update = &n4(&world).update_pdrs[0];
    assert_eq!((update.pdr_id, update.qer_ids.as_deref()), (PdrId(105), Some(&[QerId(2)][..])));
    complete(&mut world);
    assert!(is_settled(&world) && world.bench.timers.is_empty());
    notify(&mut world, voice);
    assert!(world.take_ladder().ends_with("amf <- 204"), "nothing is new");
}

#[test]
fn a_removed_rule_leaves_upf_gnb_and_ue() {
    let mut world = with_voice();
    notify(&mut world, remove("voice"));
    let request = n4(&world);
    let removed: Vec<_> = request.remove_pdrs.iter().map(|remove| remove.pdr_id).collect();
    assert_eq!((&removed[..], request.remove_qers.len()), (&[PdrId(104), PdrId(105)][..], 1));
    let n2 = n2(&world).unwrap();
    assert_eq!((n2.flows.len(), n2.to_release[0].0), (1, 2));
    let command = command(&world);
    let rule = &command.qos_rules.as_ref().unwrap().0[0];
    assert_eq!((rule.id, rule.operation), (2, RuleOperation::Delete));
    assert!(rule.packet_filters.is_empty() && rule.precedence_and_qfi.is_none());
    let flow = &command.qos_flow_descriptions.as_ref().unwrap().0[1];
    assert_eq!((flow.qfi, flow.operation, flow.parameters.len()), (2, FlowOperation::Delete, 0));
    complete(&mut world);
    assert!(is_settled(&world) && qfis(&world).is_empty());
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert!(session.flows.is_default(), "as before the rule");
}

#[test]
fn rules_with_the_same_5qi_and_arp_share_a_flow_whose_rates_are_their_sum() {
    let mut world = with_voice();
    notify(&mut world, |decision| pcc(decision, "more", 5006, 1, Some(32)));
    let transfer = n2(&world).unwrap();
    let flow = transfer.flows[1];
    assert_eq!((flow.qfi, flow.gbr.unwrap().guaranteed.uplink), (2, BitRate::kbps(96)));
    let descriptions = &command(&world).qos_flow_descriptions.as_ref().unwrap().0;
    assert_eq!(descriptions[1].operation, FlowOperation::Modify);
    assert_eq!(n4(&world).create_pdrs[0].precedence.0, 11, "each precedence once");
    complete(&mut world);
    notify(&mut world, |decision| pcc(decision, "video", 5008, 2, Some(500)));
    complete(&mut world);
    assert_eq!(qfis(&world), [2, 3]);
    notify(&mut world, remove("voice"));
    assert_eq!(n2(&world).unwrap().flows[1].gbr.unwrap().guaranteed.uplink, BitRate::kbps(32));
    assert!(n2(&world).unwrap().to_release.is_empty(), "the flow has another rule");
}

/// The precedences of the rules, in the order of their names.
fn precedences(world: &World) -> Vec<(String, u8)> {
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    let rules = session.flows.current.rules();
    let mut all: Vec<_> = rules.map(|rule| (rule.id.to_string(), rule.precedence)).collect();
    all.sort();
    all
}

fn at(id: &str, port: u16, asked: u32) -> impl FnOnce(&mut SmPolicyDecision) {
    move |decision| {
        pcc(decision, id, port, 1, Some(64));
        decision.pcc_rules.get_mut(id).unwrap().as_mut().unwrap().precedence = Some(asked);
    }
}

fn add_at(world: &mut World, id: &str, port: u16, asked: u32) {
    notify(world, at(id, port, asked));
    complete(world);
}

fn in_order(world: &World, expected: &[&str]) {
    let mut all = precedences(world);
    all.sort_by_key(|(_, precedence)| *precedence);
    let names: Vec<_> = all.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(names, expected, "{all:?}");
    assert!(all.windows(2).all(|pair| pair[0].1 < pair[1].1), "each once: {all:?}");
    assert!(all.iter().all(|(_, it)| (1..=254).contains(it) && !(70..=99).contains(it)), "{all:?}");
}

#[test]
fn rules_keep_the_order_of_their_precedences_whatever_the_order_of_arrival() {
    let mut world = World::established();
    add_at(&mut world, "all", 1, 51);
    for (id, port) in [("call-1", 5000), ("call-2", 5001), ("call-3", 5002)] {
        add_at(&mut world, id, port, 50);
    }
    in_order(&world, &["call-1", "call-2", "call-3", "all"]);
    assert_eq!(qfis(&world), [2]);
    add_at(&mut world, "x", 3080, 80);
    add_at(&mut world, "y", 3079, 79);
    in_order(&world, &["call-1", "call-2", "call-3", "all", "y", "x"]);
    add_at(&mut world, "first", 1, 0);
    add_at(&mut world, "second", 2, 1);
    in_order(&world, &["first", "second", "call-1", "call-2", "call-3", "all", "y", "x"]);
    // A changed rule keeps its place.
    add_at(&mut world, "call-1", 6000, 50);
    in_order(&world, &["first", "second", "call-1", "call-2", "call-3", "all", "y", "x"]);
    assert!(is_settled(&world));
}

#[test]
fn rules_at_the_end_of_the_range_make_room_below() {
    let mut world = World::established();
    for (index, id) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        add_at(&mut world, id, 5000 + index as u16, 254);
    }
    in_order(&world, &["a", "b", "c", "d", "e"]);
    for (index, id) in ["k", "j", "i"].into_iter().enumerate() {
        add_at(&mut world, id, 6000 + index as u16, 1);
    }
    in_order(&world, &["k", "j", "i", "a", "b", "c", "d", "e"]);
}

/// The UPF refuses a rule for which another one made room: that one is in force as before.
#[test]
fn a_refused_rule_does_not_end_those_that_made_room() {
    let mut world = listening();
    add_at(&mut world, "all", 1, 51);
    add_at(&mut world, "call-1", 5000, 50);
    let before = precedences(&world);
    world.upf = None;
    notify(&mut world, at("call-2", 5001, 50));
    let (tag, upf, message) = world.open_n4.remove(0);
    world.upf = Some(Ok(N4Cause::RequestAccepted));
    world.upf_answers(tag, upf, &message, Ok(N4Cause::NoResourcesAvailable));
    assert_eq!(reported(&world)[0].rule_reports[0].pcc_rule_ids, ["call-2".into()]);
    // The request had the rates, too.
    complete(&mut world);
    assert_eq!(precedences(&world), before);
    assert!(is_settled(&world));
}

#[test]
fn changed_qos_data_replace_the_rule() {
    let mut world = with_voice();
    notify(&mut world, |decision| {
        pcc(decision, "voice", 5004, 1, Some(128));
        decision.pcc_rules.clear();
    });
    let request = n4(&world);
    assert_eq!((request.remove_pdrs.len(), request.create_pdrs.len()), (2, 2));
    assert_eq!(request.create_pdrs[0].pdr_id, PdrId(106), "another number");
    let transfer = n2(&world).unwrap();
    assert_eq!((transfer.flows[1].qfi, transfer.to_release.len()), (2, 0), "the same flow");
    assert_eq!(transfer.flows[1].gbr.unwrap().maximum.uplink, BitRate::kbps(128));
    let rules = &command(&world).qos_rules.as_ref().unwrap().0;
    assert_eq!(
        rules.iter().map(|rule| (rule.id, rule.operation)).collect::<Vec<_>>(),
        [(2, RuleOperation::Delete), (3, RuleOperation::Create)]
    );
}

#[test]
fn rules_of_the_default_flows_qos_use_it_and_gates_close_at_the_upf() {
    let mut world = World::established();
    notify(&mut world, |decision| {
        pcc(decision, "web", 443, 9, None);
        let data = decision.qos_decs.get_mut("web").unwrap().as_mut().unwrap();
        data.def_qos_flow_indication = Some(true);
        let rule = decision.pcc_rules.get_mut("web").unwrap().as_mut().unwrap();
        rule.ref_tc_data = vec!["gate".into()];
        let mut gate = TrafficControlData::new("gate");
        gate.flow_status = Some(FlowStatus::EnabledDownlink);
        decision.traff_cont_decs.insert("gate".into(), Some(gate));
    });
    assert!(qfis(&world).is_empty());
    let qer = &n4(&world).create_qers[0];
    assert_eq!(
        (qer.qfi, qer.gate_status.uplink, qer.gate_status.downlink),
        (Some(Qfi(1)), Gate::Closed, Gate::Open)
    );
    let uplink = &n4(&world).create_pdrs[0];
    assert_eq!(uplink.qer_ids, [QerId(2), QerId(1)], "the session-AMBR applies");
    assert_eq!(uplink.pdi.qfis, [], "a UE does not pass the gate with the marking of another flow");
    assert_eq!(n2(&world).unwrap().flows.len(), 1);
    let command = command(&world);
    assert_eq!(command.qos_rules.as_ref().unwrap().0[0].precedence_and_qfi.unwrap().qfi, 1);
    assert_eq!(command.qos_flow_descriptions.as_ref().unwrap().0.len(), 1);
}

#[test]
fn each_wrong_rule_is_reported_with_its_reason() {
    type Change = fn(&mut PccRule, &mut QosData);
    let cases: [(Change, FailureCode); 13] = [
        (|rule, _| rule.flow_infos.clear(), FailureCode::MissFlowInfo),
        (|rule, _| rule.flow_infos[0].flow_description = Some("permit".into()), FailureCode::IncorFlowInfo),
        (|rule, _| rule.app_id = Some("app".into()), FailureCode::AppIdErr),
        (|rule, _| rule.ref_cond_data = Some("at-night".into()), FailureCode::IncorrectCondData),
        (|rule, _| rule.ref_qos_data = vec!["other".into()], FailureCode::UnknownRefId),
        (|rule, _| rule.ref_qos_data.clear(), FailureCode::NoQosFlowBound),
        (|_, data| data.gbr_ul = Some(BitRate::mbps(1)), FailureCode::UnsuccQosVal),
        (|_, data| data.five_qi = Some(9), FailureCode::UnsuccQosVal),
        (
            |_, data| (data.gbr_ul, data.gbr_dl) = (Some(BitRate(0)), Some(BitRate(0))),
            FailureCode::UnsuccQosVal,
        ),
        (|_, data| (data.gbr_ul, data.gbr_dl) = (Some(BitRate(0)), None), FailureCode::UnsuccQosVal),
        (|rule, _| rule.ref_tc_data = vec!["gate".into()], FailureCode::UnknownRefId),
        (|_, data| data.five_qi = Some(200), FailureCode::UnsuccQosVal),
        (|rule, _| rule.flow_infos = vec![flow_of(1); 16], FailureCode::MaxNrPacketFiltersExceeded),
    ];
    for (change, code) in cases {
        let mut world = World::established();
        notify(&mut world, |decision| {
            voice(decision);
            let data = decision.qos_decs.get_mut("voice").unwrap().as_mut().unwrap();
            change(decision.pcc_rules.get_mut("voice").unwrap().as_mut().unwrap(), data);
            rule(50, 9)(decision);
        });
        let Some(Ok(Response::SmPolicyUpdateNotifyResult(result))) = world.answers.last() else {
            panic!("{code:?}")
        };
        let SmPolicyUpdateNotifyResult::PartialSuccess(reports) = &**result else { panic!() };
        let report = &reports[0].rule_reports[0];
        assert_eq!((&report.rule_status, report.failure_code.as_ref()), (&RuleStatus::Inactive, Some(&code)));
        assert!(qfis(&world).is_empty() && n4(&world).create_pdrs.is_empty(), "{code:?}");
    }
}

/// TS 23.501 5.7.2.5: a rate is guaranteed in one direction, at least.
#[test]
fn a_gbr_rule_may_guarantee_one_direction_only() {
    let mut world = World::established();
    notify(&mut world, |decision| {
        voice(decision);
        decision.qos_decs.get_mut("voice").unwrap().as_mut().unwrap().gbr_ul = Some(BitRate(0));
    });
    assert_eq!(qfis(&world), [2]);
}

/// The rule needs its QoS and traffic control data: the SMF keeps it as it is, and reports that to the PCF.
#[test]
fn a_rule_whose_qos_or_traffic_control_data_are_removed_is_reported() {
    let mut world = World::established();
    notify(&mut world, |decision| {
        voice(decision);
        let rule = decision.pcc_rules.get_mut("voice").unwrap().as_mut().unwrap();
        rule.ref_tc_data = vec!["gate".into()];
        decision.traff_cont_decs.insert("gate".into(), Some(TrafficControlData::new("gate")));
    });
    complete(&mut world);
    let removals: [fn(&mut SmPolicyDecision); 2] = [
        |decision| drop(decision.qos_decs.insert("voice".into(), None)),
        |decision| drop(decision.traff_cont_decs.insert("gate".into(), None)),
    ];
    for remove in removals {
        world.take_ladder();
        notify(&mut world, remove);
        assert_eq!(world.take_ladder(), "amf <- 400");
        let errors = rule_errors(&world);
        let report = &errors.rule_reports[0];
        assert_eq!(
            (&*report.pcc_rule_ids[0], &report.rule_status, &report.failure_code),
            ("voice", &RuleStatus::Active, &Some(FailureCode::UnknownRefId))
        );
        assert_eq!(qfis(&world), [2]);
        // So does another rule that refers to them.
        notify(&mut world, |decision| {
            pcc(decision, "more", 5006, 1, Some(64));
            decision.qos_decs.clear();
            let rule = decision.pcc_rules.get_mut("more").unwrap().as_mut().unwrap();
            (rule.ref_qos_data, rule.ref_tc_data) = (vec!["voice".into()], vec!["gate".into()]);
            remove(decision);
        });
        assert_eq!(rule_errors(&world).rule_reports.len(), 2);
    }
}

/// A PCF may send all rules of a session each time: those in force are enforced, also if they do not change.
#[test]
fn a_wrong_rule_beside_an_unchanged_one_is_a_partial_success() {
    let mut world = with_voice();
    notify(&mut world, |decision| {
        voice(decision);
        pcc(decision, "wrong", 5006, 200, None);
    });
    let Some(Ok(Response::SmPolicyUpdateNotifyResult(result))) = world.answers.last() else { panic!() };
    let SmPolicyUpdateNotifyResult::PartialSuccess(reports) = &**result else { panic!() };
    assert_eq!(reports[0].failure_cause, FailureCause::PccRuleEvent);
    assert_eq!(reports[0].rule_reports[0].pcc_rule_ids, ["wrong".into()]);
    assert_eq!(qfis(&world), [2]);
}

#[test]
fn a_session_has_no_more_rules_than_its_ue_has_packet_filters() {
    let mut world = World::established();
    notify(&mut world, |decision| {
        (0..20).for_each(|number| pcc(decision, &format!("rule {number:02}"), number, 1, Some(64)));
    });
    let Some(Ok(Response::SmPolicyUpdateNotifyResult(result))) = world.answers.last() else { panic!() };
    let SmPolicyUpdateNotifyResult::PartialSuccess(reports) = &**result else { panic!() };
    assert_eq!(reports[0].rule_reports.len(), 5);
    assert_eq!(n4(&world).create_pdrs.len(), 30);
}

#[test]
fn a_flow_that_the_gnb_refuses_is_removed_and_reported_to_the_pcf() {
    let mut world = listening();
    notify(&mut world, voice);
    gnb_modifies(&mut world, &[], &[2]);
    assert_eq!(reported(&world)[0].rule_reports[0].failure_code, Some(FailureCode::ResAlloFail));
    world.take_ladder();
    complete(&mut world);
    assert_eq!(
        world.take_ladder(),
        "amf <- 204\nupf <- SessionModificationRequest\namf <- N1N2MessageTransfer"
    );
    assert_eq!(n4(&world).remove_pdrs.len(), 2);
    assert!(n2(&world).unwrap().to_release.is_empty(), "the gNB does not have it");
    assert_eq!(command(&world).qos_rules.as_ref().unwrap().0[0].operation, RuleOperation::Delete);
    complete(&mut world);
    assert!(is_settled(&world) && qfis(&world).is_empty());
}

/// TS 38.413 8.2.3.2: the answer names each flow that was to be added, as modified or as failed.
#[test]
fn a_flow_that_the_gnb_does_not_name_counts_as_refused() {
    let mut world = listening();
    notify(&mut world, voice);
    gnb_modifies(&mut world, &[DEFAULT_QFI, 55], &[]);
    assert_eq!(reported(&world)[0].rule_reports[0].failure_code, Some(FailureCode::ResAlloFail));
    complete(&mut world);
    assert!(n2(&world).unwrap().to_release.is_empty(), "the gNB does not have it");
    complete(&mut world);
    assert!(is_settled(&world) && qfis(&world).is_empty());
}

/// An answer to a request for another uplink endpoint names no flows: it says nothing of a change of flows.
#[test]
fn an_answer_without_flows_refuses_none() {
    let mut world = listening();
    notify(&mut world, voice);
    gnb_modifies(&mut world, &[], &[]);
    assert!(reported(&world).is_empty());
    assert_eq!(qfis(&world), [2]);
}

#[test]
fn a_change_that_the_gnb_refuses_ends_before_the_ue_gets_it() {
    let mut world = listening();
    notify(&mut world, voice);
    let transfer = ModifyUnsuccessfulTransfer { cause: NO_RESOURCES }.encode();
    gnb_sends(&mut world, N2SmInfoType::PduResModFail, transfer);
    assert_eq!(reported(&world).len(), 1);
    assert_eq!(n4(&world).remove_pdrs.len(), 2, "the UPF has it no longer");
    complete(&mut world);
    assert!(is_settled(&world) && qfis(&world).is_empty());
}

fn gnb_modifies_nothing(world: &mut World, cause: CauseRadioNetwork) {
    let cause = Cause::RadioNetwork(cause);
    gnb_sends(world, N2SmInfoType::PduResModFail, ModifyUnsuccessfulTransfer { cause }.encode());
}

/// As if it had refused the flow (TS 23.502 4.3.3.2 step 8a).
#[test]
fn a_change_that_the_gnb_refuses_after_the_ue_has_confirmed_it_is_undone() {
    for is_transfer in [true, false] {
        let mut world = listening();
        notify(&mut world, voice);
        complete(&mut world);
        world.take_ladder();
        if is_transfer {
            gnb_modifies_nothing(&mut world, CauseRadioNetwork::radio_resources_not_available);
        } else {
            gnb_sends(&mut world, N2SmInfoType::PduResModRsp, vec![0xff; 3]);
        }
        let ladder = world.take_ladder();
        assert!(
            ladder.ends_with("upf <- SessionModificationRequest\namf <- N1N2MessageTransfer"),
            "{ladder}"
        );
        assert_eq!(reported(&world)[0].rule_reports[0].pcc_rule_ids, ["voice".into()]);
        assert_eq!(n4(&world).remove_pdrs.len(), 2);
        assert!(n2(&world).unwrap().to_release.is_empty(), "the gNB does not have it");
        assert_eq!(command(&world).qos_rules.as_ref().unwrap().0[0].operation, RuleOperation::Delete);
        complete(&mut world);
        assert!(is_settled(&world) && qfis(&world).is_empty());
        // The answer to the removal: nothing is left to undo.
        gnb_modifies_nothing(&mut world, CauseRadioNetwork::radio_resources_not_available);
        assert!(is_settled(&world) && qfis(&world).is_empty());
    }
}

/// The gNB has the flow by then, and refuses another change.
#[test]
fn a_flow_that_the_gnb_has_stays_if_it_refuses_a_later_change() {
    let mut world = with_voice();
    world.script.insert(Operation::UpdateSmPolicy, None);
    notify(&mut world, |decision| pcc(decision, "video", 5006, 2, Some(640)));
    complete(&mut world);
    gnb_modifies_nothing(&mut world, CauseRadioNetwork::radio_resources_not_available);
    complete(&mut world);
    assert!(is_settled(&world));
    assert_eq!(qfis(&world), [2]);
}

/// The first of two changes, which the UE has confirmed, is the one that the gNB refuses.
#[test]
fn a_refusal_concerns_the_change_that_the_gnb_got_first() {
    let mut world = listening();
    notify(&mut world, voice);
    complete(&mut world);
    notify(&mut world, |decision| pcc(decision, "video", 5006, 2, Some(640)));
    gnb_modifies_nothing(&mut world, CauseRadioNetwork::radio_resources_not_available);
    assert_eq!(reported(&world)[0].rule_reports[0].pcc_rule_ids, ["voice".into()]);
    gnb_modifies(&mut world, &[3], &[]);
    complete(&mut world);
    complete(&mut world);
    assert!(is_settled(&world));
    assert_eq!(qfis(&world), [3]);
}

/// The target gNB of the handover gets all flows, or says which it does not take.
#[test]
fn a_confirmed_change_that_the_gnb_refuses_for_a_handover_stays() {
    let mut world = listening();
    notify(&mut world, voice);
    complete(&mut world);
    gnb_modifies_nothing(&mut world, CauseRadioNetwork::xn_handover_triggered);
    assert!(reported(&world).is_empty());
    assert_eq!(qfis(&world), [2]);
}

#[test]
fn rules_that_the_upf_refuses_are_reported_and_the_session_stays() {
    let mut world = listening();
    world.upf = None;
    notify(&mut world, voice);
    let (tag, upf, message) = world.open_n4.remove(0);
    world.upf = Some(Ok(N4Cause::RequestAccepted));
    world.take_ladder();
    world.upf_answers(tag, upf, &message, Ok(N4Cause::NoResourcesAvailable));
    assert_eq!(reported(&world)[0].rule_reports[0].pcc_rule_ids, ["voice".into()]);
    assert!(
        world.take_ladder().starts_with("pcf <- UpdateSmPolicy\nupf <- SessionModificationRequest"),
        "the rates"
    );
    assert!(qfis(&world).is_empty() && n4(&world).create_pdrs.is_empty());
}

#[test]
fn a_confirmation_with_another_pti_is_refused() {
    let mut world = awaiting_complete();
    gnb_modifies(&mut world, &[2], &[]);
    world.uplink_with(9, PduSessionModificationComplete::new());
    let GsmBody::GsmStatus(status) = &world.n1.last().unwrap().body else { panic!() };
    assert_eq!(status.cause, GsmCause::PtiMismatch);
    assert!(!is_settled(&world));
    complete(&mut world);
    assert!(is_settled(&world));
}

#[test]
fn an_answer_of_the_gnb_that_is_no_transfer_counts_as_failure() {
    let mut world = listening();
    notify(&mut world, voice);
    gnb_sends(&mut world, N2SmInfoType::PduResModRsp, vec![0xff; 3]);
    assert_eq!(reported(&world).len(), 1);
    complete(&mut world);
    assert!(is_settled(&world) && qfis(&world).is_empty());
}

/// 4 Tbit/s is the highest rate of NGAP (TS 38.413 9.3.1.4).
#[test]
fn rates_that_ngap_cannot_encode_are_refused() {
    let mut world = World::established();
    notify(&mut world, |decision| pcc(decision, "fast", 5004, 1, Some(4_000_000_001)));
    assert!(qfis(&world).is_empty());
    for (id, port) in [("one", 1), ("two", 2)] {
        notify(&mut world, |decision| pcc(decision, id, port, 1, Some(4_000_000_000)));
        complete(&mut world);
    }
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert_eq!(session.flows.current.flows()[0].gbr.unwrap().guaranteed.uplink, crate::kit::MAX_RATE);
}

#[test]
fn rules_that_the_ue_rejects_are_removed() {
    let mut world = listening();
    notify(&mut world, voice);
    world.uplink(PduSessionModificationCommandReject::new(GsmCause::SemanticErrorInTheQosOperation));
    assert_eq!(reported(&world).len(), 1);
    assert_eq!(n4(&world).remove_pdrs.len(), 2);
    assert_eq!(n2(&world).unwrap().to_release[0].0, 2);
}

#[test]
fn rules_that_the_ue_never_confirms_are_removed() {
    let mut world = listening();
    notify(&mut world, voice);
    gnb_modifies(&mut world, &[2], &[]);
    (0..5).for_each(|_| world.expire(Timer::T3591));
    assert_eq!(reported(&world)[0].rule_reports[0].pcc_rule_ids, ["voice".into()]);
    assert_eq!((n4(&world).remove_pdrs.len(), n2(&world).unwrap().to_release[0].0), (2, 2));
    (0..5).for_each(|_| world.expire(Timer::T3591));
    assert!(is_settled(&world) && qfis(&world).is_empty() && world.bench.timers.is_empty());
}

/// Such as one in MICO mode. It keeps the rules until it gets the command.
#[test]
fn an_unreachable_ue_removes_rules_when_its_user_plane_is_active() {
    let mut world = with_voice();
    world.deactivate();
    notify(&mut world, remove("voice"));
    notify(&mut world, |decision| pcc(decision, "video", 5008, 2, Some(500)));
    (0..5).for_each(|_| world.expire(Timer::T3591));
    assert!(world.bench.timers.is_empty() && reported(&world).is_empty());
    assert_eq!(pending(&world), serde_json::json!(["video"]));
    world.take_ladder();
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    world.gnb_answers();
    let rules = &command(&world).qos_rules.as_ref().unwrap().0;
    assert_eq!(rules.iter().map(|rule| rule.operation).collect::<Vec<_>>(), [RuleOperation::Delete]);
    complete(&mut world);
    assert_eq!(pending(&world), serde_json::json!([]));
    let rules = &command(&world).qos_rules.as_ref().unwrap().0;
    assert_eq!(rules.iter().map(|rule| rule.operation).collect::<Vec<_>>(), [RuleOperation::Create]);
}

/// The operations on rules in the last command.
pub(super) fn operations(world: &World) -> Vec<(u8, RuleOperation)> {
    let rules = &command(world).qos_rules.as_ref().unwrap().0;
    rules.iter().map(|rule| (rule.id, rule.operation)).collect()
}

/// The rule that is created fails, and the UE still has the one that is removed: until it gets the command that removes both.
#[test]
fn an_unreachable_ue_gets_the_removals_of_a_failed_change_when_its_user_plane_is_active() {
    let mut world = with_voice();
    world.script.insert(Operation::UpdateSmPolicy, None);
    world.deactivate();
    notify(&mut world, |decision| {
        pcc(decision, "video", 5008, 2, Some(500));
        remove("voice")(decision);
    });
    assert_eq!(operations(&world), [(2, RuleOperation::Delete), (3, RuleOperation::Create)]);
    (0..5).for_each(|_| world.expire(Timer::T3591));
    let report = &reported(&world)[0].rule_reports[0];
    assert_eq!(report.pcc_rule_ids, ["video".into()]);
    assert_eq!(report.rule_status, RuleStatus::Inactive);
    let removed: Vec<_> = n4(&world).remove_pdrs.iter().map(|remove| remove.pdr_id).collect();
    assert_eq!(removed, [PdrId(106), PdrId(107)], "the UPF has no others");
    assert!(qfis(&world).is_empty());
    (0..5).for_each(|_| world.expire(Timer::T3591));
    assert!(world.bench.timers.is_empty());
    assert_eq!((reported(&world).len(), pending(&world)), (1, serde_json::json!([])));
    world.take_ladder();
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    let Some(Ok(Response::SmContextUpdated(data))) = world.answers.last() else { panic!() };
    let transfer = SetupRequestTransfer::decode(&data.n2_sm_info.as_ref().unwrap().content).unwrap();
    assert_eq!(transfer.flows.iter().map(|flow| flow.qfi).collect::<Vec<_>>(), [DEFAULT_QFI]);
    world.gnb_answers();
    assert_eq!(operations(&world), [(3, RuleOperation::Delete), (2, RuleOperation::Delete)]);
    let flows = &command(&world).qos_flow_descriptions.as_ref().unwrap().0[1..];
    let flows: Vec<_> = flows.iter().map(|flow| (flow.qfi, flow.operation)).collect();
    assert_eq!(flows, [(2, FlowOperation::Delete), (3, FlowOperation::Delete)]);
    complete(&mut world);
    // The rates, which the UE may have missed, too.
    assert!(command(&world).qos_rules.is_none());
    complete(&mut world);
    assert!(is_settled(&world));
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert!(session.flows.is_default(), "as before the rules");
}

/// No other rule gets the number of one that the UE may still have.
#[test]
fn a_changed_rule_that_an_unreachable_ue_still_has_is_removed_after_a_restart() {
    let mut world = residency::tracked(with_voice());
    world.script.insert(Operation::UpdateSmPolicy, None);
    world.deactivate();
    notify(&mut world, |decision| pcc(decision, "voice", 5004, 1, Some(128)));
    (0..10).for_each(|_| world.expire(Timer::T3591));
    assert_eq!(reported(&world)[0].rule_reports[0].pcc_rule_ids, ["voice".into()]);
    notify(&mut world, |decision| pcc(decision, "video", 5008, 2, Some(500)));
    let stored = residency::stored(&mut world);
    let mut next = restarted(&world, &stored, config());
    next.associate_retaining(UPF, "upf");
    assert_eq!(pending(&next), serde_json::json!(["video"]));
    next.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    next.gnb_answers();
    assert_eq!(operations(&next), [(3, RuleOperation::Delete), (2, RuleOperation::Delete)]);
    complete(&mut next);
    assert_eq!(operations(&next), [(4, RuleOperation::Create)]);
    complete(&mut next);
    assert!(is_settled(&next));
    assert_eq!(qfis(&next), [3]);
}

#[test]
fn a_ue_that_rejects_a_change_gets_its_removals_again() {
    let mut world = with_voice();
    world.script.insert(Operation::UpdateSmPolicy, None);
    notify(&mut world, |decision| {
        pcc(decision, "video", 5008, 2, Some(500));
        remove("voice")(decision);
    });
    gnb_modifies(&mut world, &[3], &[]);
    world.uplink(PduSessionModificationCommandReject::new(GsmCause::SemanticErrorInTheQosOperation));
    assert_eq!(reported(&world)[0].rule_reports[0].pcc_rule_ids, ["video".into()]);
    assert_eq!(n4(&world).remove_pdrs.len(), 2, "the UPF has no others");
    assert_eq!(operations(&world), [(3, RuleOperation::Delete), (2, RuleOperation::Delete)]);
    let to_release = n2(&world).unwrap().to_release;
    assert_eq!(
        to_release.iter().map(|(qfi, _)| *qfi).collect::<Vec<_>>(),
        [3],
        "the gNB has released the other one"
    );
    complete(&mut world);
    assert!(is_settled(&world) && qfis(&world).is_empty());
}

fn pending(world: &World) -> serde_json::Value {
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    world.bench.nf.describe(&session)["pendingRules"].clone()
}

#[test]
fn a_second_change_waits_for_the_ues_answer() {
    let mut world = awaiting_complete();
    world.take_ladder();
    notify(&mut world, |decision| pcc(decision, "video", 5008, 2, Some(500)));
    assert_eq!(world.take_ladder(), "amf <- 204");
    assert_eq!(pending(&world), serde_json::json!(["video"]));
    complete(&mut world);
    assert_eq!(pending(&world), serde_json::json!([]));
    assert!(world.take_ladder().ends_with("upf <- SessionModificationRequest\namf <- N1N2MessageTransfer"));
    assert_eq!(command(&world).qos_rules.as_ref().unwrap().0.len(), 1, "the new one");
    complete(&mut world);
    assert!(is_settled(&world));
    assert_eq!(qfis(&world), [2, 3]);
}

#[test]
fn the_gnb_gets_a_change_again_until_it_has_answered() {
    let mut world = with_voice();
    notify(&mut world, remove("voice"));
    world.expire(Timer::T3591);
    assert_eq!(n2(&world).unwrap().to_release.len(), 1);
    gnb_modifies(&mut world, &[], &[]);
    world.expire(Timer::T3591);
    assert!(n2(&world).unwrap().to_release.is_empty(), "the gNB no longer has it");
    assert_eq!(command(&world).qos_rules.as_ref().unwrap().0[0].operation, RuleOperation::Delete);
}

#[test]
fn an_idle_ue_gets_the_command_and_the_gnb_the_flow_with_the_activation() {
    let mut world = World::established();
    world.deactivate();
    notify(&mut world, voice);
    assert!(world.transfers.last().unwrap().n2_info_container.is_none());
    assert_eq!(command(&world).qos_rules.as_ref().unwrap().0.len(), 1);
    complete(&mut world);
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    let Some(Ok(Response::SmContextUpdated(data))) = world.answers.last() else { panic!() };
    let transfer = SetupRequestTransfer::decode(&data.n2_sm_info.as_ref().unwrap().content).unwrap();
    assert_eq!(transfer.flows.iter().map(|flow| flow.qfi).collect::<Vec<_>>(), [1, 2]);
    gnb_sets_up(&mut world, &[1, 2]);
    assert!(is_settled(&world));
    assert_eq!(qfis(&world), [2]);
}

#[test]
fn a_flow_that_the_gnb_does_not_set_up_is_removed() {
    let mut world = with_voice();
    world.deactivate();
    gnb_sets_up(&mut world, &[1]);
    assert_eq!(n4(&world).remove_pdrs.len(), 2);
    complete(&mut world);
    assert!(is_settled(&world) && qfis(&world).is_empty());
}

#[test]
fn a_flow_that_the_gnb_releases_is_removed() {
    let mut world = with_voice();
    world.script.insert(Operation::UpdateSmPolicy, None);
    let transfer = NotifyTransfer { flows: Vec::new(), released: vec![(2, NO_RESOURCES)] };
    gnb_sends(&mut world, N2SmInfoType::PduResNty, transfer.encode());
    assert_eq!(reported(&world).len(), 1);
    assert_eq!(n4(&world).remove_pdrs.len(), 2);
}

#[test]
fn flows_that_the_target_of_a_handover_does_not_accept_are_removed() {
    let mut world = with_voice();
    handover::switch_to(&mut world, handover::TARGET, &[1, 2]);
    assert_eq!(qfis(&world), [2]);
    handover::switch_to(&mut world, GNB_TUNNEL, &[1]);
    complete(&mut world);
    assert!(qfis(&world).is_empty());

    let mut world = with_voice();
    handover::required(&mut world);
    handover::prepared_with(&mut world, &[1]);
    assert_eq!(qfis(&world), [2], "the source gNB has it");
    handover::cancelled(&mut world);
    handover::required(&mut world);
    handover::prepared_with(&mut world, &[1]);
    handover::completed(&mut world);
    complete(&mut world);
    assert!(qfis(&world).is_empty() && is_settled(&world));
}

#[test]
fn a_session_is_established_with_the_rules_of_the_first_decision() {
    let mut world = World::new();
    let mut body = SmPolicyDecision::default();
    voice(&mut body);
    let location = Uri::new(&crate::testing::root("pcf"), "/npcf-smpolicycontrol/v1/sm-policies/1");
    let created = Response::SmPolicyDecisionCreated(Box::new(Created { location, body }));
    world.script.insert(Operation::CreateSmPolicy, Some(Ok(created)));
    world.establish();
    let request = residency::establishment(&world);
    assert_eq!((request.create_pdrs.len(), request.create_qers.len()), (4, 3));
    assert_eq!(request.create_qers[0].qfi, None, "the session-AMBR is of no flow");
    assert_eq!(request.create_pdrs[1].qer_ids, [QerId(256), QerId(1)]);
    assert_eq!(request.create_qers[1].qfi, Some(Qfi(DEFAULT_QFI)));
    assert_eq!(
        request.create_pdrs[0].pdi.local_f_teid, request.create_pdrs[2].pdi.local_f_teid,
        "a shared F-TEID"
    );
    let GsmBody::PduSessionEstablishmentAccept(accept) = &world.n1.last().unwrap().body else { panic!() };
    let PduSessionEstablishmentAccept { qos_rules, qos_flow_descriptions, .. } = &**accept;
    assert_eq!((qos_rules.0.len(), qos_flow_descriptions.as_ref().unwrap().0.len()), (2, 2));
    gnb_sets_up(&mut world, &[1, 2]);
    assert!(is_settled(&world));
    assert_eq!(qfis(&world), [2]);
}

#[test]
fn a_retained_session_is_confirmed_with_its_rules_or_established_again() {
    for cause in [N4Cause::RequestAccepted, N4Cause::RuleCreationModificationFailure] {
        let mut world = residency::tracked(with_voice());
        notify(&mut world, rule(50, 9));
        complete(&mut world);
        let stored = residency::stored(&mut world);
        let mut next = restarted(&world, &stored, config());
        next.upf = None;
        next.associate_retaining(UPF, "upf");
        assert_eq!(n4(&next).update_qers.len(), 3, "those of the default flow and the rule, too");
        let (tag, upf, message) = next.open_n4.remove(0);
        next.upf = Some(Ok(N4Cause::RequestAccepted));
        next.take_ladder();
        next.upf_answers(tag, upf, &message, Ok(cause));
        if cause != N4Cause::RequestAccepted {
            assert_eq!(residency::establishment(&next).create_pdrs.len(), 4);
        }
        assert_eq!(qfis(&next), [2]);
        assert!(is_settled(&next));
    }
}

/// The UPF may have the rules before the change or those after it, and so may gNB and UE.
#[test]
fn a_change_that_a_restart_interrupts_is_made_again() {
    for is_sent in [false, true] {
        let mut world = residency::tracked(World::established());
        world.upf = is_sent.then_some(Ok(N4Cause::RequestAccepted));
        notify(&mut world, voice);
        let stored = residency::stored(&mut world);
        let mut next = restarted(&world, &stored, config());
        next.associate_retaining(UPF, "upf");
        let ladder = next.take_ladder();
        assert!(
            ladder.starts_with(
                "upf <- SessionDeletionRequest\nupf <- SessionEstablishmentRequest\namf <- N1N2MessageTransfer"
            ),
            "{ladder}"
        );
        assert_eq!(command(&next).qos_rules.as_ref().unwrap().0.len(), 1);
        assert_eq!(n2(&next).unwrap().flows.len(), 2);
        complete(&mut next);
        assert!(is_settled(&next));
        assert_eq!(qfis(&next), [2]);
    }
}

/// The UE may not have got the command.
#[test]
fn new_rates_that_a_restart_interrupts_are_sent_again() {
    for is_sent in [false, true] {
        let mut world = residency::tracked(World::established());
        world.upf = is_sent.then_some(Ok(N4Cause::RequestAccepted));
        notify(&mut world, rule(50, 9));
        let stored = residency::stored(&mut world);
        let mut next = restarted(&world, &stored, config());
        next.associate_retaining(UPF, "upf");
        let ladder = next.take_ladder();
        assert!(ladder.contains("upf <- SessionModificationRequest\namf <- N1N2MessageTransfer"), "{ladder}");
        assert_eq!(command(&next).session_ambr, Some(ambr(50)));
        complete(&mut next);
        assert!(is_settled(&next));
    }
}

#[test]
fn a_change_that_a_panic_interrupts_is_made_again() {
    let mut world = panic::tracked(World::established());
    world.upf = None;
    notify(&mut world, voice);
    let stored = panic::stored(&mut world);
    let mut next = panic::taken_over(&world, &stored, Fate::GoesOn);
    assert_eq!(
        next.take_ladder(),
        "upf <- SessionDeletionRequest\nupf <- SessionEstablishmentRequest\namf <- N1N2MessageTransfer"
    );
    complete(&mut next);
    assert!(is_settled(&next));
    assert_eq!(qfis(&next), [2]);
}

#[test]
fn a_session_with_a_second_upf_has_no_rules() {
    let mut world = super::branching::branched();
    notify(&mut world, voice);
    assert_eq!(world.refusal(), &pith_sbi::Cause::PccRuleEvent);
    let mut world = World::with(super::branching::plain(), &["upf", "edge"]);
    world.establish();
    world.gnb_answers();
    notify(&mut world, voice);
    complete(&mut world);
    assert!(world.branch("edge").is_some(), "refused");
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert_eq!(session.qos.ambr, ambr(200));
}

/// TS 38.413 10.4: it may answer a request about a former session with the identity.
#[test]
fn an_answer_without_a_request_changes_neither_flows_nor_tunnel() {
    let mut world = with_voice();
    let other = pith_ngap::transfer::Tunnel { teid: pith_types::Teid(7), ..GNB_TUNNEL };
    let transfer = ModifyResponseTransfer {
        downlink: Some(other),
        failed: vec![(2, NO_RESOURCES)],
        ..ModifyResponseTransfer::default()
    };
    gnb_sends(&mut world, N2SmInfoType::PduResModRsp, transfer.encode());
    assert_eq!(world.take_ladder(), "amf <- 204");
    assert_eq!((qfis(&world), world.user_plane().unwrap().gnb), (vec![2], Some(GNB_TUNNEL)));
}

/// TS 23.502 4.3.3.2: the UE's answer may overtake the gNB's, which is then about an earlier request.
#[test]
fn a_late_answer_of_the_gnb_does_not_refuse_the_next_flow() {
    let mut world = listening();
    notify(&mut world, rule(50, 9));
    gnb_modifies(&mut world, &[DEFAULT_QFI], &[]);
    world.expire(Timer::T3591);
    notify(&mut world, voice);
    complete(&mut world);
    assert_eq!(n2(&world).unwrap().flows.len(), 2);
    gnb_modifies(&mut world, &[DEFAULT_QFI], &[]);
    assert!(reported(&world).is_empty(), "the answer to the command that was repeated");
    gnb_modifies(&mut world, &[DEFAULT_QFI, 2], &[]);
    assert_eq!(n4(&world).update_pdrs[0].qer_ids.as_deref(), Some(&[QerId(2)][..]), "the gNB has the flow");
    complete(&mut world);
    assert!(is_settled(&world));
    assert_eq!(qfis(&world), [2]);
    // All requests are answered.
    notify(&mut world, |decision| pcc(decision, "video", 5006, 2, Some(640)));
    gnb_modifies(&mut world, &[DEFAULT_QFI, 2], &[]);
    assert_eq!(reported(&world).len(), 1);
}
