//! Traces of a UE at its gNB (TS 32.422 4.1.2; TS 38.413 8.11).

use super::handover_between_amfs::{Amfs, take_message, target_config};
use super::n2_handover::{acknowledge, answer, notify, require};
use super::subscription_change::notified;
use super::world::*;
use super::xn_handover;
use crate::amf::AmfConfig;
use pith_nas::gmm;
use pith_nas::ie::{RegistrationKind, ServiceType};
use pith_ngap::{
    Cause, CauseRadioNetwork, CellTrafficTrace, CollectionEntity, Message, NgRanTraceId, NrCgi,
    TraceActivation, TraceDepth as NgapDepth, TraceFailureIndication, TracedInterfaces,
};
use pith_sbi::common::{TraceData, TraceDepth};
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use pith_sbi::nudm_sdm::AccessAndMobilitySubscriptionData;
use pith_sbi::{Operation, Response};

/// The trace with that Trace ID.
fn trace(id: u8) -> TraceData {
    let mut data = TraceData::new(format!("99970-0000{id:02x}"), TraceDepth::Medium, "0040", "01");
    data.collection_entity_ipv4_addr = Some([192, 0, 2, 9].into());
    data
}

const fn reference(id: u8) -> [u8; 6] {
    [0x99, 0xf9, 0x07, 0, 0, id]
}

/// The UDM has a subscription with that trace.
fn subscribe(world: &mut World, trace: Option<TraceData>) {
    let mut data = subscription(&[1]);
    data.am_data.as_mut().unwrap().trace_data = trace;
    world.script.insert(Operation::GetDataSets, Some(Ok(Response::SubscriptionDataSets(Box::new(data)))));
}

/// The subscription changes while the UE is registered. Returns what its gNB gets of traces.
fn change(world: &mut World, trace: Option<TraceData>) -> Vec<Message> {
    subscribe(world, trace);
    world.downlinks.clear();
    notified(world);
    sent(world)
}

/// The traces that the AMF has started and stopped.
fn sent(world: &mut World) -> Vec<Message> {
    let all = std::mem::take(&mut world.downlinks).into_iter().map(|(_, message)| message);
    all.filter(|it| matches!(it, Message::TraceStart(_) | Message::DeactivateTrace(_))).collect()
}

fn started(message: &Message) -> NgRanTraceId {
    let Message::TraceStart(start) = message else { panic!("{message:?}") };
    start.activation.as_ref().unwrap().id
}

fn stopped(message: &Message) -> NgRanTraceId {
    let Message::DeactivateTrace(stop) = message else { panic!("{message:?}") };
    stop.trace.unwrap()
}

/// Registers, and returns the trace that the gNB gets with the UE context.
fn register(world: &mut World, phone: &mut Phone) -> Option<TraceActivation> {
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(world, nas);
    phone.secure(world, request);
    let Message::InitialContextSetupRequest(setup) = world.downlinks[0].1.clone() else { panic!() };
    phone.accepted(world);
    phone.context_setup_response(world, &[]);
    phone.send(world, gmm::RegistrationComplete::new());
    setup.trace
}

/// A connected UE with that trace, and its recording session.
fn registered(data: TraceData) -> (World, Phone, NgRanTraceId) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    subscribe(&mut world, Some(data));
    let activation = register(&mut world, &mut phone).expect("a trace");
    assert_eq!(sent(&mut world), [], "the gNB has it");
    (world, phone, activation.id)
}

/// A connected UE with that trace, in a document.
pub(super) fn traced() -> World {
    registered(trace(1)).0
}

/// The UE connects again. Returns the trace that the gNB gets.
fn connect_again(world: &mut World, phone: &mut Phone) -> Option<TraceActivation> {
    phone.release(world);
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    world.downlinks.clear();
    phone.connect(world, nas);
    let setup = world.downlinks.iter().find_map(|(_, message)| match message {
        Message::InitialContextSetupRequest(setup) => Some(setup.trace.clone()),
        _ => None,
    });
    phone.receive(world);
    phone.context_setup_response(world, &[]);
    setup.expect("INITIAL CONTEXT SETUP REQUEST")
}

fn fail(world: &mut World, phone: &Phone, trace: Option<NgRanTraceId>) {
    let failure = TraceFailureIndication {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        trace,
        cause: Some(Cause::RadioNetwork(CauseRadioNetwork::unspecified)),
    };
    world.ngap(phone.gnb, "TraceFailureIndication", failure.encode());
}

#[test]
fn the_gnb_gets_the_trace_with_the_ue_context() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let ipv6 = Some("2001:db8::9".parse().unwrap());
    let data = TraceData { collection_entity_ipv6_addr: ipv6, ..trace(1) };
    subscribe(&mut world, Some(data));
    let activation = register(&mut world, &mut phone).unwrap();
    let expected = TraceActivation {
        id: NgRanTraceId::new(reference(1), activation.id.session()),
        interfaces: TracedInterfaces::ALL,
        depth: NgapDepth::medium,
        collection_entity: CollectionEntity { ipv4: Some([192, 0, 2, 9].into()), ipv6 },
    };
    assert_eq!(activation, expected);
    assert_eq!(sent(&mut world), []);
    let again = connect_again(&mut world, &mut phone).unwrap();
    assert_eq!(again.id.reference(), reference(1));
    assert_eq!(again.id.session(), activation.id.session().wrapping_add(1), "another recording session");
    assert_eq!(sent(&mut world), []);
}

#[test]
fn a_changed_trace_is_stopped_and_started_at_the_gnb() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    assert_eq!(register(&mut world, &mut phone), None);
    let [start] = &change(&mut world, Some(trace(1)))[..] else { panic!() };
    let first = started(start);
    assert_eq!(first.reference(), reference(1));
    assert_eq!(change(&mut world, Some(trace(1))), [], "it has it");
    let [stop, start] = &change(&mut world, Some(trace(2)))[..] else { panic!() };
    assert_eq!((stopped(stop), started(start).reference()), (first, reference(2)));
    let second = started(start);
    let deeper = TraceData { trace_depth: TraceDepth::Maximum, ..trace(2) };
    let [stop, start] = &change(&mut world, Some(deeper))[..] else { panic!() };
    assert_eq!(stopped(stop), second);
    assert_ne!(started(start), second, "another recording session");
    let third = started(start);
    let [stop] = &change(&mut world, None)[..] else { panic!() };
    assert_eq!(stopped(stop), third);
    let key = world.amf.shared.index.find_supi(&supi()).unwrap();
    assert_eq!(world.amf.ues.view(key).unwrap().trace, None);
    assert_eq!(connect_again(&mut world, &mut phone), None);
}

#[test]
fn an_idle_ue_is_traced_when_it_connects() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    register(&mut world, &mut phone);
    phone.release(&mut world);
    assert_eq!(change(&mut world, Some(trace(1))), []);
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let Message::InitialContextSetupRequest(setup) = world.downlinks[0].1.clone() else { panic!() };
    assert_eq!(setup.trace.unwrap().id.reference(), reference(1));
}

#[test]
fn a_gnb_that_does_not_record_is_not_asked_again_over_the_connection() {
    let (mut world, mut phone, id) = registered(trace(1));
    fail(&mut world, &phone, Some(NgRanTraceId::new(reference(9), 1)));
    fail(&mut world, &phone, Some(id));
    assert_eq!(sent(&mut world), []);
    assert_eq!(change(&mut world, Some(trace(1))), []);
    assert_eq!(change(&mut world, None), [], "there is nothing to stop");
    let [start] = &change(&mut world, Some(trace(1)))[..] else { panic!() };
    fail(&mut world, &phone, None);
    assert_eq!(started(start).reference(), reference(1));
    assert_eq!(change(&mut world, Some(trace(1))), []);
    assert!(connect_again(&mut world, &mut phone).is_some(), "another connection");
}

#[test]
fn a_failure_about_another_trace_changes_nothing() {
    let (mut world, phone, id) = registered(trace(1));
    fail(&mut world, &phone, Some(NgRanTraceId::new(reference(9), id.session())));
    let [stop] = &change(&mut world, None)[..] else { panic!() };
    assert_eq!(stopped(stop), id);
}

#[test]
fn the_target_gnb_continues_the_recording_session() {
    let (mut world, mut phone, id) = registered(trace(1));
    phone.establish(&mut world, 5);
    world.script.insert(Operation::UpdateSmContext, None);
    world.downlinks.clear();
    require(&mut world, &phone, &[5]);
    answer(&mut world, Some(N2SmInfoType::PduResSetupReq));
    let Some((OTHER_GNB, Message::HandoverRequest(request))) = world.downlinks.pop_back() else { panic!() };
    assert_eq!(request.trace.unwrap().id, id);
    acknowledge(&mut world, request.amf_ue_ngap_id, &[5], &[]);
    answer(&mut world, Some(N2SmInfoType::HandoverCmd));
    assert_eq!(change(&mut world, Some(trace(2))), [], "not during the handover");
    notify(&mut world, request.amf_ue_ngap_id);
    answer(&mut world, None);
    let [stop, start] = &sent(&mut world)[..] else { panic!() };
    assert_eq!((stopped(stop), started(start).reference()), (id, reference(2)));
    let Message::TraceStart(start) = start else { panic!() };
    assert_eq!(start.amf_ue_ngap_id, request.amf_ue_ngap_id);
}

#[test]
fn the_source_gnb_hands_the_trace_over_with_xn() {
    let (mut world, mut phone, id) = registered(trace(1));
    phone.establish(&mut world, 5);
    world.script.insert(Operation::UpdateSmContext, Some(xn_handover::acknowledged()));
    world.downlinks.clear();
    xn_handover::switch(&mut world, OTHER_GNB, &xn_handover::request(phone.amf_id.unwrap(), &[5]));
    assert_eq!(sent(&mut world), []);
    world.downlinks.clear();
    let [stop] = &change(&mut world, None)[..] else { panic!() };
    assert_eq!(stopped(stop), id);
}

#[test]
fn a_trace_that_the_source_gnb_has_refused_is_started_at_the_target_gnb() {
    let (mut world, mut phone, id) = registered(trace(1));
    phone.establish(&mut world, 5);
    fail(&mut world, &phone, Some(id));
    world.script.insert(Operation::UpdateSmContext, Some(xn_handover::acknowledged()));
    world.downlinks.clear();
    xn_handover::switch(&mut world, OTHER_GNB, &xn_handover::request(phone.amf_id.unwrap(), &[5]));
    let [start] = &sent(&mut world)[..] else { panic!() };
    assert_eq!(started(start).reference(), reference(1));
}

#[test]
fn the_trace_goes_to_the_target_amf() {
    let mut amfs = Amfs::of(config(), target_config(), |source, phone| {
        subscribe(source, Some(TraceData { interface_list: Some("f8".into()), ..trace(1) }));
        assert!(register(source, phone).is_some());
        phone.establish(source, 5);
        source.downlinks.clear();
    });
    let request = amfs.require(&[5]);
    let sent = request.body.ue_context.trace_data.clone();
    assert_eq!(sent, Some(TraceData { interface_list: Some("f8".into()), ..trace(1) }));
    amfs.create(*request);
    answer(&mut amfs.target, Some(N2SmInfoType::PduResSetupReq));
    let request = take_message!(amfs.target, OTHER_GNB, HandoverRequest);
    assert_eq!(request.trace.unwrap().id.reference(), reference(1));
}

#[test]
fn an_invalid_trace_is_ignored() {
    let long = "00".repeat(65);
    let invalid = [
        TraceData { trace_ref: "99970".into(), ..trace(1) },
        TraceData { trace_ref: "99970-00000g".into(), ..trace(1) },
        TraceData { trace_ref: "x".repeat(100_000).into(), ..trace(1) },
        TraceData { trace_depth: TraceDepth::Other("DEEP".into()), ..trace(1) },
        TraceData { ne_type_list: "".into(), ..trace(1) },
        TraceData { event_list: "0".into(), ..trace(1) },
        TraceData { interface_list: Some(long.as_str().into()), ..trace(1) },
        TraceData { collection_entity_ipv4_addr: None, ..trace(1) },
    ];
    for data in invalid {
        let (mut world, mut phone) = (World::with(AmfConfig { ..config() }), Phone::default());
        subscribe(&mut world, Some(data.clone()));
        assert_eq!(register(&mut world, &mut phone), None, "{data:?}");
        assert!(world.events.iter().any(|event| event.text.contains("trace is ignored")), "{data:?}");
        assert_eq!(world.amf.audit().registered, 1);
    }
}

#[test]
fn trace_data_that_is_null_is_no_trace() {
    let data: AccessAndMobilitySubscriptionData = serde_json::from_str(r#"{"traceData":null}"#).unwrap();
    assert_eq!(data.trace_data, None);
}

#[test]
fn a_cell_traffic_trace_is_logged() {
    let (mut world, phone, _) = registered(trace(1));
    world.take_ladder();
    let message = CellTrafficTrace {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        trace: Some(NgRanTraceId::new(reference(9), 0x1234)),
        cell: Some(NrCgi { plmn: tai().plmn_id, cell: location().cell }),
        collection_entity: Some(CollectionEntity { ipv4: Some([192, 0, 2, 7].into()), ipv6: None }),
        privacy: None,
        collection_entity_uri: Some("https://tce.example/".repeat(100)),
    };
    world.ngap(GNB, "CellTrafficTrace", message.encode());
    let line = world.events.iter().find(|event| event.text.contains("cell traffic trace")).unwrap();
    let cell = location().cell.to_string();
    for part in ["99f9070000091234", &cell, "192.0.2.7", "https://tce.example"] {
        assert!(line.text.contains(part), "{}", line.text);
    }
    assert!(line.text.len() < 600, "{}", line.text);
    assert!(!world.take_ladder().contains("<-"), "it is not answered");
}
