//! UE-associated connections: ids, streams, contexts (TS 38.413 8.3, 8.6, 10.6).

use crate::amf::*;
use pith_ngap::*;
use pith_ran::gnb::{Input, Output};
use pith_types::{AmfUeNgapId, RanUeNgapId, Snssai, Tac};

#[test]
fn the_first_message_has_a_new_id_and_a_stream_of_the_ue() {
    let mut pair = Pair::up();
    pair.connect();
    assert_eq!(pair.sent[0].0, STREAM);
    let Message::InitialUeMessage(message) = pair.message() else { panic!() };
    assert_eq!((message.ran_ue_ngap_id, message.nas_pdu), (RAN, vec![0x7e, 0, 0x41]));
}

#[test]
fn uplink_waits_for_the_id_of_the_amf() {
    let mut pair = Pair::up();
    pair.connect();
    pair.sent.clear();
    pair.input(Input::Uplink { ue: UE, nas: vec![3] });
    assert!(pair.sent.is_empty());
    pair.give(STREAM, downlink(vec![1]).encode().unwrap());
    assert_eq!(pair.out, [Output::Nas { ue: UE, nas: vec![1] }]);
    pair.input(Input::Uplink { ue: UE, nas: vec![3] });
    let Message::UplinkNasTransport(message) = pair.message() else { panic!() };
    assert_eq!((message.amf_ue_ngap_id, message.ran_ue_ngap_id), (amf_id(), RAN));
}

#[test]
fn an_unknown_ran_id_gets_an_error_indication() {
    let mut pair = Pair::with_ue();
    let message = DownlinkNasTransport { ran_ue_ngap_id: RanUeNgapId(99), ..downlink(vec![1]) };
    pair.give(STREAM, message.encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.413 10.6");
    let Message::ErrorIndication(indication) = pair.message() else { panic!() };
    assert_eq!(indication.ran_ue_ngap_id, Some(RanUeNgapId(99)));
    assert_eq!(indication.cause, Some(Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID)));
    assert!(pair.out.is_empty());
}

#[test]
fn a_message_that_crosses_the_release_is_not_a_violation() {
    let mut pair = Pair::up();
    pair.connect();
    pair.sent.clear();
    pair.input(Input::RadioLost { ue: UE });
    pair.give(STREAM, downlink(vec![1]).encode().unwrap());
    let Message::ErrorIndication(indication) = pair.message() else { panic!() };
    assert_eq!(indication.cause, Some(Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID)));
    assert!(pair.violations.is_empty());
}

#[test]
fn another_amf_id_gets_an_error_indication_and_ends_the_connection() {
    let mut pair = Pair::with_ue();
    let other = AmfUeNgapId::from_wire(5).unwrap();
    pair.give(STREAM, DownlinkNasTransport { amf_ue_ngap_id: other, ..downlink(vec![1]) }.encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.413 10.6");
    assert_eq!(pair.out, [Output::Released { ue: UE }]);
}

#[test]
fn the_amf_chooses_its_stream_of_a_ue_and_the_gnb_keeps_its_own() {
    let mut pair = Pair::up();
    pair.connect();
    pair.sent.clear();
    pair.give(STREAM + 1, downlink(vec![1]).encode().unwrap());
    pair.give(STREAM + 1, initial_context_setup().encode().unwrap());
    pair.assert_clean();
    assert_eq!(pair.sent.pop().map(|(stream, _)| stream), Some(STREAM));
    pair.give(STREAM, downlink(vec![1]).encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.412 7", "another one than before");
}

#[test]
fn a_ue_never_uses_the_non_ue_stream() {
    let mut pair = Pair::up();
    pair.connect();
    pair.give(0, downlink(vec![1]).encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.412 7");
    assert_eq!(pair.out, [Output::Nas { ue: UE, nas: vec![1] }]);
}

#[test]
fn context_setup_activates_security_before_nas_is_delivered() {
    let mut pair = Pair::with_ue();
    pair.give(STREAM, initial_context_setup().encode().unwrap());
    let [Output::SecurityActivated { ue: UE, k_gnb, .. }, Output::Nas { nas, .. }] = &pair.out[..] else {
        panic!("{:?}", pair.out)
    };
    assert_eq!((k_gnb, &nas[..]), (&[9; 32], &[2][..]));
    let Message::InitialContextSetupResponse(_) = pair.message() else { panic!() };
    pair.assert_clean();
}

#[test]
fn a_second_context_setup_fails() {
    let mut pair = Pair::with_context();
    pair.give(STREAM, initial_context_setup().encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.413 8.3.1.1");
    let Message::InitialContextSetupFailure(_) = pair.message() else { panic!() };
}

#[test]
fn invalid_ies_in_context_setup_are_violations() {
    let cases: [(fn(&mut InitialContextSetupRequest), &str); 3] = [
        (|request| request.guami.amf_id = "020041".parse().unwrap(), "TS 38.413 9.2.2.1"),
        (|request| request.allowed_nssai = vec![Snssai::of_sst(2)], "TS 23.501 5.15.5.2.1"),
        (|request| request.security_capabilities.nr_integrity = 0, "TS 38.413 8.3.1.4"),
    ];
    for (spoil, clause) in cases {
        let mut pair = Pair::with_ue();
        let mut request = initial_context_setup();
        spoil(&mut request);
        pair.give(STREAM, request.encode().unwrap());
        assert_eq!(pair.violation(), clause);
    }
}

#[test]
fn release_is_asked_for_commanded_and_completed() {
    let mut pair = Pair::with_context();
    pair.input(Input::ReleaseContext { ue: UE, cause: CauseRadioNetwork::user_inactivity });
    let Message::UeContextReleaseRequest(request) = pair.message() else { panic!() };
    assert_eq!(request.cause, Some(Cause::RadioNetwork(CauseRadioNetwork::user_inactivity)));
    let cause = Cause::RadioNetwork(CauseRadioNetwork::user_inactivity);
    let command = UeContextReleaseCommand { ids: UeNgapIds::Pair(amf_id(), RAN), cause };
    pair.give(STREAM, command.encode().unwrap());
    let Message::UeContextReleaseComplete(_) = pair.message() else { panic!() };
    assert_eq!(pair.out, [Output::Released { ue: UE }]);
    assert_eq!(pair.gnb.ue_count(), 0);
    pair.assert_clean();
}

#[test]
fn a_command_may_name_the_amf_id_alone() {
    let mut pair = Pair::with_context();
    let cause = Cause::Nas(CauseNas::deregister);
    let command = |id| UeContextReleaseCommand { ids: UeNgapIds::Amf(id), cause };
    pair.give(STREAM, command(AmfUeNgapId::from_wire(5).unwrap()).encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.413 10.6");
    pair.sent.clear();
    pair.give(STREAM, command(amf_id()).encode().unwrap());
    let Message::UeContextReleaseComplete(_) = pair.message() else { panic!() };
    pair.assert_clean();
}

#[test]
fn a_ue_lost_before_the_amf_answered_is_removed_locally() {
    let mut pair = Pair::up();
    pair.connect();
    pair.sent.clear();
    pair.input(Input::RadioLost { ue: UE });
    assert_eq!(pair.out, [Output::Released { ue: UE }]);
    assert!(pair.sent.is_empty());
}

#[test]
fn the_cell_is_reported_once_on_request() {
    let mut pair = Pair::with_context();
    pair.sent.clear();
    let control = |event| LocationReportingControl {
        amf_ue_ngap_id: amf_id(),
        ran_ue_ngap_id: RAN,
        request: Some(LocationRequest { event }),
    };
    pair.give(STREAM, control(LocationEvent::direct).encode().unwrap());
    let Message::LocationReport(report) = pair.message() else { panic!() };
    assert_eq!(report.location.unwrap().tai, settings().tai());
    pair.sent.clear();
    pair.give(STREAM, control(LocationEvent::change_of_serve_cell).encode().unwrap());
    assert!(matches!(pair.message(), Message::LocationReportingFailureIndication(_)));
    pair.assert_clean();
}

#[test]
fn restrictions_must_permit_what_the_amf_requests() {
    let restrictions = |forbidden: &[u32], allowed: &[u32]| MobilityRestrictions {
        serving_plmn: plmn(),
        equivalent_plmns: Vec::new(),
        rat_restrictions: Vec::new(),
        forbidden_areas: vec![(plmn(), forbidden.iter().copied().map(Tac::new).collect())],
        service_areas: vec![ServiceArea {
            plmn: plmn(),
            allowed: allowed.iter().copied().map(Tac::new).collect(),
            not_allowed: Vec::new(),
        }],
    };
    let given = |restrictions: MobilityRestrictions| {
        let mut pair = Pair::with_ue();
        let mut request = initial_context_setup();
        request.mobility_restrictions = Some(restrictions);
        pair.give(STREAM, request.encode().unwrap());
        pair.violations.pop().map(|violation| violation.clause)
    };
    // Without sessions, signalling outside the service area is permitted.
    assert_eq!(given(restrictions(&[2], &[3])), None);
    assert_eq!(given(restrictions(&[1], &[1])), Some("TS 38.413 9.3.1.85"));
    let other = MobilityRestrictions { serving_plmn: "208/93".parse().unwrap(), ..restrictions(&[2], &[1]) };
    assert_eq!(given(other), Some("TS 38.413 9.3.1.85"));
}

fn trace(session: u16) -> TraceActivation {
    TraceActivation {
        id: NgRanTraceId::new([0x99, 0xf9, 0x07, 0, 0, 1], session),
        interfaces: TracedInterfaces::ALL,
        depth: TraceDepth::minimum,
        collection_entity: CollectionEntity { ipv4: Some([192, 0, 2, 9].into()), ipv6: None },
    }
}

fn start(pair: &mut Pair, activation: Option<TraceActivation>) {
    let message = TraceStart { amf_ue_ngap_id: amf_id(), ran_ue_ngap_id: RAN, activation };
    pair.give(STREAM, message.encode().unwrap());
}

fn deactivate(pair: &mut Pair, trace: Option<NgRanTraceId>) {
    let message = DeactivateTrace { amf_ue_ngap_id: amf_id(), ran_ue_ngap_id: RAN, trace };
    pair.give(STREAM, message.encode().unwrap());
}

#[test]
fn a_trace_is_started_and_stopped_without_an_answer() {
    let mut pair = Pair::with_context();
    start(&mut pair, Some(trace(1)));
    assert_eq!(pair.gnb.traces_of(UE), [trace(1).id]);
    deactivate(&mut pair, Some(trace(1).id));
    assert!(pair.gnb.traces_of(UE).is_empty() && pair.sent.is_empty());
    pair.assert_clean();
}

#[test]
fn a_trace_begins_with_the_ue_context() {
    let mut pair = Pair::with_ue();
    let request = InitialContextSetupRequest { trace: Some(trace(7)), ..initial_context_setup() };
    pair.give(STREAM, request.encode().unwrap());
    assert_eq!(pair.gnb.traces_of(UE), [trace(7).id]);
    pair.assert_clean();
}

#[test]
fn a_trace_is_started_and_stopped_once() {
    let mut pair = Pair::with_context();
    start(&mut pair, None);
    assert_eq!(pair.violation(), "TS 38.413 9.2.10.1");
    start(&mut pair, Some(TraceActivation { interfaces: TracedInterfaces(0x81), ..trace(1) }));
    assert_eq!(pair.violation(), "TS 38.413 9.3.1.14");
    start(&mut pair, Some(trace(2)));
    assert_eq!(pair.violation(), "TS 38.413 8.11.1.2");
    assert_eq!(pair.gnb.traces_of(UE), [trace(1).id]);
    deactivate(&mut pair, Some(trace(2).id));
    assert_eq!(pair.violation(), "TS 38.413 8.11.3.2");
    deactivate(&mut pair, Some(trace(1).id));
    assert_eq!(pair.violation(), "TS 38.413 8.11.3.2");
    deactivate(&mut pair, None);
    assert_eq!(pair.violation(), "TS 38.413 9.2.10.3");
}

#[test]
fn a_capability_check_is_answered() {
    let request = |capability: Option<Vec<u8>>| {
        let (amf_ue_ngap_id, ran_ue_ngap_id) = (amf_id(), RAN);
        UeRadioCapabilityCheckRequest { amf_ue_ngap_id, ran_ue_ngap_id, ue_radio_capability: capability }
    };
    let mut pair = Pair::with_context();
    pair.give(STREAM, request(None).encode().unwrap());
    let Message::UeRadioCapabilityCheckResponse(response) = pair.message() else { panic!() };
    assert_eq!(response.ims_voice_support, ImsVoiceSupport::supported);
    pair.gnb.deny_ims_voice();
    pair.give(STREAM, request(None).encode().unwrap());
    let Message::UeRadioCapabilityCheckResponse(response) = pair.message() else { panic!() };
    assert_eq!(response.ims_voice_support, ImsVoiceSupport::not_supported);
    pair.assert_clean();
    let mut pair = Pair::with_ue();
    pair.give(STREAM, request(None).encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.331 5.6.1.2");
    pair.give(STREAM, request(Some(vec![1])).encode().unwrap());
    assert!(matches!(pair.message(), Message::UeRadioCapabilityCheckResponse(_)));
}
