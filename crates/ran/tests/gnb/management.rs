//! NG Setup and the rest of interface management (TS 38.413 8.7).

use crate::amf::*;
use pith_ngap::*;
use pith_ran::gnb::{Event, Input, Output};
use pith_types::{FiveGSTmsi, FiveGTmsi, RanUeNgapId, Snssai, Tac, Tai};
use std::time::Duration;

#[test]
fn ng_setup_announces_network_area_and_slices_on_stream_0() {
    let mut pair = Pair::new();
    pair.input(Input::AssociationUp { association: 0, outbound_streams: 8 });
    assert_eq!(pair.sent[0].0, 0);
    let Message::NgSetupRequest(request) = pair.message() else { panic!() };
    assert_eq!(request.global_ran_node_id, GlobalRanNodeId::Gnb { plmn: plmn(), id: 1, bits: 32 });
    assert_eq!(request.supported_tas[0].plmns, [(plmn(), vec![Snssai::of_sst(1)])]);
}

#[test]
fn after_a_failure_ng_setup_is_repeated_after_time_to_wait() {
    let mut pair = Pair::new();
    pair.input(Input::AssociationUp { association: 0, outbound_streams: 8 });
    pair.sent.clear();
    let cause = Cause::Misc(CauseMisc::control_processing_overload);
    let failure = NgSetupFailure { cause, time_to_wait: Some(TimeToWait::v5s), diagnostics: None };
    pair.give(0, failure.encode().unwrap());
    assert_eq!(pair.events, [Event::SetupRejected(cause)]);
    assert_eq!(pair.gnb.next_timeout(), Some(pair.now + Duration::from_secs(5)));
    pair.now = pair.now + Duration::from_secs(5);
    pair.input(Input::Timeout);
    let Message::NgSetupRequest(_) = pair.message() else { panic!() };
}

#[test]
fn a_failure_without_time_to_wait_is_not_retried() {
    let mut pair = Pair::new();
    pair.input(Input::AssociationUp { association: 0, outbound_streams: 8 });
    let cause = Cause::Misc(CauseMisc::unknown_PLMN_or_SNPN);
    pair.give(0, NgSetupFailure { cause, time_to_wait: None, diagnostics: None }.encode().unwrap());
    assert_eq!(pair.gnb.next_timeout(), None);
}

#[test]
fn a_response_without_the_gnbs_network_is_a_violation() {
    let spoil: [fn(&mut NgSetupResponse); 2] = [
        |response| response.plmn_support[0].0 = "001/01".parse().unwrap(),
        |response| response.plmn_support[0].1 = vec![Snssai::of_sst(2)],
    ];
    for spoil in spoil {
        let mut pair = Pair::new();
        pair.input(Input::AssociationUp { association: 0, outbound_streams: 8 });
        let mut response = ng_setup_response();
        spoil(&mut response);
        pair.give(0, response.encode().unwrap());
        assert_eq!(pair.violation(), "TS 38.413 9.2.6.2");
    }
}

#[test]
fn messages_before_ng_setup_and_duplicate_responses_are_violations() {
    let mut pair = Pair::new();
    pair.input(Input::AssociationUp { association: 0, outbound_streams: 8 });
    pair.give(STREAM, downlink(vec![1]).encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.413 8.7.1.1");
    pair.give(0, ng_setup_response().encode().unwrap());
    pair.give(0, ng_setup_response().encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.413 10.4");
}

#[test]
fn non_ue_procedures_use_stream_0() {
    let mut pair = Pair::up();
    pair.give(3, OverloadStart { traffic_load_reduction: Some(50) }.encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.412 7");
    assert_eq!(pair.gnb.amf().overload, Some(50));
    pair.give(0, OverloadStop {}.encode().unwrap());
    assert_eq!(pair.gnb.amf().overload, None);
    pair.assert_clean();
}

#[test]
fn a_configuration_update_is_acknowledged() {
    let mut pair = Pair::up();
    let update = AmfConfigurationUpdate {
        amf_name: None,
        served_guamis: None,
        relative_amf_capacity: Some(10),
        plmn_support: None,
        tnla_to_add: None,
        tnla_to_remove: None,
        tnla_to_update: None,
    };
    pair.give(0, update.encode().unwrap());
    let Message::AmfConfigurationUpdateAcknowledge(_) = pair.message() else { panic!() };
    assert_eq!(pair.gnb.amf().capacity, 10);
}

#[test]
fn paging_must_contain_the_gnbs_area() {
    let mut pair = Pair::up();
    let s_tmsi = FiveGSTmsi { amf_set: 1, amf_pointer: 0, tmsi: FiveGTmsi(1) };
    let tai = Tai { plmn_id: plmn(), tac: Tac::new(1) };
    pair.give(0, Paging { s_tmsi, tais: vec![tai] }.encode().unwrap());
    assert_eq!(pair.out, [Output::Paging(s_tmsi)]);
    pair.assert_clean();
    let tai = Tai { tac: Tac::new(2), ..tai };
    pair.give(0, Paging { s_tmsi, tais: vec![tai] }.encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.413 8.5.1.2");
}

#[test]
fn a_reset_by_the_amf_releases_and_lists_its_connections() {
    let mut pair = Pair::with_context();
    let cause = Cause::Misc(CauseMisc::hardware_failure);
    let known = NgConnection { amf_ue_ngap_id: Some(amf_id()), ran_ue_ngap_id: None };
    let unknown = NgConnection { amf_ue_ngap_id: None, ran_ue_ngap_id: Some(RanUeNgapId(99)) };
    pair.give(0, NgReset { cause, scope: ResetScope::Part(vec![unknown, known]) }.encode().unwrap());
    assert_eq!(pair.out, [Output::Released { ue: UE }]);
    let Message::NgResetAcknowledge(acknowledge) = pair.message() else { panic!() };
    assert_eq!(acknowledge.connections, Some(vec![unknown, known]));
    pair.assert_clean();
}

#[test]
fn a_reset_by_the_gnb_releases_all() {
    let mut pair = Pair::with_context();
    pair.input(Input::Reset);
    assert_eq!(pair.out, [Output::Released { ue: UE }]);
    let Message::NgReset(reset) = pair.message() else { panic!() };
    assert_eq!(reset.scope, ResetScope::NgInterface);
    pair.give(0, NgResetAcknowledge { connections: None, diagnostics: None }.encode().unwrap());
    assert_eq!(pair.events, [Event::ResetAcknowledged]);
}

#[test]
fn a_lost_association_releases_all() {
    let mut pair = Pair::with_context();
    pair.input(Input::AssociationDown { association: 0 });
    assert_eq!(pair.out, [Output::Released { ue: UE }]);
    assert!(!pair.gnb.is_up());
    pair.out.clear();
    pair.connect();
    assert_eq!(pair.out, [Output::Released { ue: UE }], "no AMF, no connection");
}

#[test]
fn malformed_octets_get_an_error_indication() {
    let mut pair = Pair::up();
    pair.give(0, vec![0xff, 0, 1]);
    assert_eq!(pair.violation(), "TS 38.413 10");
    let Message::ErrorIndication(indication) = pair.message() else { panic!() };
    assert_eq!(indication.cause, Some(Cause::Protocol(CauseProtocol::transfer_syntax_error)));
}

#[test]
fn truncated_pdus_never_panic() {
    let mut pair = Pair::with_context();
    let pdu = initial_context_setup().encode().unwrap();
    for length in 1..pdu.len() {
        pair.give(STREAM, pdu[..length].to_vec());
    }
    assert!(pair.violations.len() >= pdu.len() - 1);
}

fn error_indication(cause: Option<Cause>) -> ErrorIndication {
    ErrorIndication {
        amf_ue_ngap_id: Some(amf_id()),
        ran_ue_ngap_id: Some(RAN),
        cause,
        diagnostics: None,
        s_tmsi: None,
    }
}

#[test]
fn an_error_indication_for_erroneous_ids_ends_the_connection() {
    for cause in
        [CauseRadioNetwork::unknown_local_UE_NGAP_ID, CauseRadioNetwork::inconsistent_remote_UE_NGAP_ID]
    {
        let mut pair = Pair::with_context();
        pair.give(STREAM, error_indication(Some(Cause::RadioNetwork(cause))).encode().unwrap());
        assert_eq!(pair.violation(), "TS 38.413 8.7.5");
        assert_eq!(pair.out, [Output::Released { ue: UE }]);
    }
    let mut pair = Pair::with_context();
    let cause = Some(Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID));
    let indication = ErrorIndication { ran_ue_ngap_id: None, ..error_indication(cause) };
    pair.give(STREAM, indication.encode().unwrap());
    assert_eq!(pair.out, [Output::Released { ue: UE }], "the AMF's id alone");
}

#[test]
fn an_error_indication_for_another_cause_leaves_the_ue_connected() {
    let mut pair = Pair::with_context();
    let cause = Cause::Protocol(CauseProtocol::abstract_syntax_error_ignore_and_notify);
    pair.give(STREAM, error_indication(Some(cause)).encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.413 8.7.5", "it is noted");
    assert_eq!((pair.out.len(), pair.gnb.ue_count()), (0, 1));
}
