//! AMF re-allocation at a gNB with two AMFs (TS 38.413 8.6.5, 8.3.1.2, 8.6.2.2).

use crate::amf::*;
use pith_ngap::*;
use pith_ran::gnb::{Input, Output};
use pith_types::{RanUeNgapId, Snssai};

/// A UE's first message was sent; and its octets.
fn connected() -> (Pair, Vec<u8>) {
    let mut pair = Pair::up();
    pair.connect();
    let octets = pair.message().encode().unwrap();
    (pair, octets)
}

fn reroute(ngap_message: Vec<u8>) -> RerouteNasRequest {
    RerouteNasRequest {
        ran_ue_ngap_id: RAN,
        amf_ue_ngap_id: None,
        ngap_message,
        amf_set_id: 5,
        allowed_nssai: Some(vec![Snssai::of_sst(2)]),
        reroute: Some(AmfInformationReroute {
            rejected_in_ta: vec![Snssai::of_sst(3)],
            ..Default::default()
        }),
    }
}

#[test]
fn a_rerouted_message_goes_to_the_amf_of_the_set() {
    let (mut pair, octets) = connected();
    let request = reroute(octets);
    pair.give(STREAM, request.encode().unwrap());
    pair.assert_clean();
    let [Output::Reroute { ue, amf_set, message }] = &pair.out[..] else { panic!("{:?}", pair.out) };
    assert_eq!((*ue, *amf_set, pair.gnb.ue_count()), (UE, 5, 0));
    assert!(!pair.gnb.serves_set(5) && pair.gnb.serves_set(1));
    let mut other = Pair::up();
    other.gnb.share_ran_ids(1, 2);
    other.input(Input::Rerouted { ue: UE, message: message.clone() });
    let Message::InitialUeMessage(sent) = other.message() else { panic!() };
    assert_eq!(sent.ran_ue_ngap_id, RanUeNgapId(3), "an id of the other endpoint");
    assert_eq!((sent.amf_set_id, sent.allowed_nssai), (Some(5), request.allowed_nssai));
    assert_eq!((sent.reroute, sent.nas_pdu), (request.reroute, vec![0x7e, 0, 0x41]));
    // What the first AMF sends late is ignored.
    pair.out.clear();
    pair.give(STREAM, downlink(vec![1]).encode().unwrap());
    pair.assert_clean();
    assert!(pair.out.is_empty());
}

#[test]
fn only_the_ues_own_first_message_can_be_rerouted() {
    let (mut pair, octets) = connected();
    for wrong in [Vec::new(), vec![0; 9], downlink(vec![1]).encode().unwrap()] {
        pair.give(STREAM, reroute(wrong).encode().unwrap());
        assert_eq!(pair.violation(), "TS 38.413 9.2.5.5");
    }
    let Ok(Message::InitialUeMessage(message)) = Message::decode(&octets) else { panic!() };
    let other = InitialUeMessage { ran_ue_ngap_id: RanUeNgapId(9), ..message };
    pair.give(STREAM, reroute(other.encode().unwrap()).encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.413 9.2.5.5");
    let unknown = RerouteNasRequest { ran_ue_ngap_id: RanUeNgapId(9), ..reroute(octets.clone()) };
    pair.give(STREAM, unknown.encode().unwrap());
    let Message::ErrorIndication(indication) = pair.message() else { panic!() };
    assert_eq!(indication.cause, Some(Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID)));
    let mut pair = Pair::with_context();
    pair.give(STREAM, reroute(octets).encode().unwrap());
    assert_eq!(pair.violation(), "TS 38.413 8.6.5");
}

#[test]
fn the_first_message_of_the_new_amf_takes_the_connection_over() {
    for is_setup in [false, true] {
        let (mut old, _) = connected();
        let mut new = Pair::up();
        let old_amf = Some("amf".to_owned());
        let octets = if is_setup {
            InitialContextSetupRequest { old_amf, ..initial_context_setup() }.encode()
        } else {
            DownlinkNasTransport { old_amf, ..downlink(vec![2]) }.encode()
        };
        new.give(STREAM, octets.unwrap());
        let Some(Output::Redirect { old_amf, ran_id, stream, message }) = new.out.pop() else { panic!() };
        assert_eq!(ran_id, RAN);
        assert_eq!(old.gnb.give_up("another", ran_id), None);
        let found = old.gnb.give_up(&old_amf, ran_id);
        assert_eq!((found.map(|it| it.ue()), old.gnb.ue_count()), (Some(UE), 0));
        new.input(Input::Redirected { found, stream, message });
        new.assert_clean();
        assert!(new.out.contains(&Output::Nas { ue: UE, nas: vec![2] }), "{:?}", new.out);
        assert_eq!(new.gnb.ids_of(UE), Some((RAN, Some(amf_id()))));
    }
}

#[test]
fn a_connection_that_no_endpoint_has_is_an_error() {
    let mut pair = Pair::up();
    let message = DownlinkNasTransport { old_amf: Some("amf".into()), ..downlink(vec![2]) };
    pair.give(STREAM, message.encode().unwrap());
    let Some(Output::Redirect { stream, message, .. }) = pair.out.pop() else { panic!() };
    pair.input(Input::Redirected { found: None, stream, message });
    let Message::ErrorIndication(indication) = pair.message() else { panic!() };
    assert_eq!((indication.ran_ue_ngap_id, indication.amf_ue_ngap_id), (Some(RAN), Some(amf_id())));
}
