//! UE Retention Information (TS 38.413 8.7.1.2).

use crate::amf::*;
use pith_ngap::*;
use pith_ran::gnb::{Input, Output, Settings, UeKey};
use pith_types::RanUeNgapId;

/// A gNB that has retained a UE with AS security, or not, and requests NG Setup again.
fn returned(retains_ues: bool) -> Pair {
    let mut pair = Pair::of(Settings { retains_ues, ..settings() });
    pair.input(Input::AssociationUp { association: 0, outbound_streams: 8 });
    pair.give(0, ng_setup_response().encode().unwrap());
    pair.connect();
    pair.give(STREAM, initial_context_setup().encode().unwrap());
    pair.assert_clean();
    pair.sent.clear();
    pair.out.clear();
    pair.events.clear();
    pair.input(Input::AssociationDown { association: 0 });
    pair.input(Input::AssociationUp { association: 0, outbound_streams: 8 });
    pair
}

fn response(ue_retention: Option<UeRetentionInformation>) -> Vec<u8> {
    NgSetupResponse { ue_retention, ..ng_setup_response() }.encode().unwrap()
}

fn proposal(pair: &mut Pair) -> Option<UeRetentionInformation> {
    let Message::NgSetupRequest(request) = pair.message() else { panic!() };
    request.ue_retention
}

#[test]
fn an_accepted_proposal_keeps_the_ue_and_sends_what_it_had_to_send() {
    let mut pair = returned(true);
    assert_eq!(proposal(&mut pair), Some(UeRetentionInformation::ues_retained));
    assert_eq!((pair.out.len(), pair.gnb.retained()), (0, 1));
    pair.input(Input::Uplink { ue: UE, nas: vec![0x7e, 1] });
    assert!(pair.sent.is_empty(), "not before NG SETUP RESPONSE");
    pair.give(0, response(Some(UeRetentionInformation::ues_retained)));
    let Message::UplinkNasTransport(uplink) = pair.message() else { panic!() };
    assert_eq!((uplink.amf_ue_ngap_id, uplink.ran_ue_ngap_id), (amf_id(), RAN));
    pair.give(STREAM, downlink(vec![7]).encode().unwrap());
    assert_eq!(pair.out, [Output::Nas { ue: UE, nas: vec![7] }]);
    pair.assert_clean();
}

#[test]
fn without_the_ie_in_the_response_the_ue_is_released() {
    let mut pair = returned(true);
    pair.sent.clear();
    pair.give(0, response(None));
    assert!(pair.out.contains(&Output::Released { ue: UE }), "{:?}", pair.out);
    assert_eq!(pair.gnb.ue_count(), 0);
    pair.assert_clean();
}

#[test]
fn a_gnb_without_retention_proposes_nothing_and_refuses_the_ie() {
    let mut pair = returned(false);
    assert_eq!(proposal(&mut pair), None);
    assert!(pair.out.contains(&Output::Released { ue: UE }), "{:?}", pair.out);
    pair.give(0, response(Some(UeRetentionInformation::ues_retained)));
    assert_eq!(pair.violation(), "TS 38.413 8.7.1.2");
}

#[test]
fn a_gnb_without_ues_proposes_nothing() {
    let mut pair = Pair::of(Settings { retains_ues: true, ..settings() });
    pair.input(Input::AssociationUp { association: 0, outbound_streams: 8 });
    assert_eq!(proposal(&mut pair), None);
}

#[test]
fn a_connection_that_is_not_retained_is_reset() {
    let mut pair = Pair::of(Settings { retains_ues: true, ..settings() });
    pair.input(Input::AssociationUp { association: 0, outbound_streams: 8 });
    pair.give(0, ng_setup_response().encode().unwrap());
    pair.connect();
    pair.give(STREAM, initial_context_setup().encode().unwrap());
    let cause = RrcEstablishmentCause::mo_Signalling;
    pair.input(Input::Connect { ue: UeKey(8), nas: vec![0x7e, 0, 0x41], cause, s_tmsi: None });
    pair.sent.clear();
    pair.input(Input::AssociationDown { association: 0 });
    assert!(
        pair.out.contains(&Output::Released { ue: UeKey(8) }),
        "it has no UE context yet: {:?}",
        pair.out
    );
    pair.input(Input::AssociationUp { association: 0, outbound_streams: 8 });
    assert_eq!(proposal(&mut pair), Some(UeRetentionInformation::ues_retained));
    pair.give(0, response(Some(UeRetentionInformation::ues_retained)));
    let Message::NgReset(reset) = pair.message() else { panic!() };
    let second = NgConnection { amf_ue_ngap_id: None, ran_ue_ngap_id: Some(RanUeNgapId(2)) };
    assert_eq!(reset.scope, ResetScope::Part(vec![second]));
}
