//! NAS NON DELIVERY INDICATION (TS 38.413 8.6.4).

use super::n2_handover::{commanded, notify};
use super::world::*;
use pith_nas::{GmmMessage, gmm};
use pith_ngap::{Cause, CauseRadioNetwork, Message, NasNonDeliveryIndication, PathSwitchRequest};
use pith_sbi::Operation;
use pith_types::RanUeNgapId;

const HANDOVER: CauseRadioNetwork = CauseRadioNetwork::ng_intra_system_handover_triggered;

/// A message of an SMF that the gNB has received, and not delivered.
pub(super) fn undelivered(world: &mut World, content: &[u8]) -> Vec<u8> {
    world.downlinks.clear();
    world.request(transfer(5, Some(content), None)).unwrap();
    let Some((GNB, Message::DownlinkNasTransport(transport))) = world.downlinks.pop_back() else { panic!() };
    transport.nas_pdu
}

pub(super) fn returns(world: &mut World, phone: &Phone, nas_pdu: Vec<u8>, cause: CauseRadioNetwork) {
    let message = NasNonDeliveryIndication {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        nas_pdu: Some(nas_pdu),
        cause: Some(Cause::RadioNetwork(cause)),
    };
    world.ngap(GNB, "NasNonDeliveryIndication", message.encode());
}

/// The contents of the SMF's messages over the UE's connection at that gNB, which the UE accepts.
fn contents(world: &mut World, phone: &mut Phone, gnb: crate::kit::GnbHandle) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (to, message) in std::mem::take(&mut world.downlinks) {
        let Message::DownlinkNasTransport(transport) = message else { continue };
        assert_eq!(to, gnb);
        let GmmMessage::DlNasTransport(inner) = phone.open(&transport.nas_pdu) else { panic!() };
        all.push(inner.payload_container);
    }
    all
}

fn connected() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    (world, phone)
}

#[test]
fn what_an_n2_handover_kept_from_the_ue_is_sent_again_after_it() {
    let (mut world, mut phone, target) = commanded(&[5]);
    // Sent before HANDOVER REQUIRED, as far as the UE is concerned: the AMF queues the SMF's messages during the handover.
    let key = world.amf.shared.index.find_supi(&supi()).unwrap();
    let transport = super::super::procedure::nas_transport::session_downlink(5, b"command");
    let ue = world.amf.ues.get_mut(key).unwrap();
    let first = crate::amf::n1::seal(ue, &GmmMessage::from(transport).encode()).unwrap();
    world.downlinks.clear();
    returns(&mut world, &phone, first.clone(), HANDOVER);
    returns(&mut world, &phone, first, HANDOVER);
    assert!(world.downlinks.is_empty(), "not during the handover");
    notify(&mut world, target);
    assert_eq!(
        contents(&mut world, &mut phone, OTHER_GNB),
        [b"command"],
        "once, with a COUNT that the UE accepts"
    );
}

#[test]
fn what_an_xn_handover_kept_from_the_ue_is_sent_again_after_the_path_switch() {
    let (mut world, mut phone) = connected();
    let pdu = undelivered(&mut world, b"command");
    returns(&mut world, &phone, pdu, CauseRadioNetwork::xn_handover_triggered);
    assert!(world.downlinks.is_empty());
    let reply = pith_sbi::nsmf_pdusession::SmContextUpdatedData {
        n2_sm_info: Some(b"switched".to_vec().into()),
        n2_sm_info_type: Some(pith_sbi::nsmf_pdusession::N2SmInfoType::PathSwitchReqAck),
        ..Default::default()
    };
    let reply = pith_sbi::Response::SmContextUpdated(Box::new(reply));
    world.script.insert(Operation::UpdateSmContext, Some(Ok(reply)));
    let message = PathSwitchRequest {
        ran_ue_ngap_id: RanUeNgapId(77),
        source_amf_ue_ngap_id: phone.amf_id.unwrap(),
        location: Some(location()),
        security_capabilities: None,
        sessions: transfers(&[5]),
        failed: None,
    };
    world.ngap(OTHER_GNB, "PathSwitchRequest", message.encode());
    assert_eq!(contents(&mut world, &mut phone, OTHER_GNB), [b"command"]);
    // One that was in transit.
    let key = world.amf.shared.index.find_supi(&supi()).unwrap();
    let transport = super::super::procedure::nas_transport::session_downlink(5, b"late");
    let ue = world.amf.ues.get_mut(key).unwrap();
    let late = crate::amf::n1::seal(ue, &GmmMessage::from(transport).encode()).unwrap();
    returns(&mut world, &phone, late, CauseRadioNetwork::xn_handover_triggered);
    assert_eq!(contents(&mut world, &mut phone, OTHER_GNB), [b"late"]);
}

#[test]
fn a_ue_that_stays_gets_the_message_when_it_sends_one() {
    let (mut world, mut phone) = connected();
    let pdu = undelivered(&mut world, b"command");
    returns(&mut world, &phone, pdu, HANDOVER);
    assert!(world.downlinks.is_empty());
    let status = gmm::GmmStatus::new(pith_nas::GmmCause::ProtocolErrorUnspecified);
    phone.send(&mut world, status);
    assert_eq!(contents(&mut world, &mut phone, GNB), [b"command"]);
}

#[test]
fn only_messages_of_this_amf_that_a_handover_stopped_are_sent_again() {
    let (mut world, mut phone) = connected();
    let pdu = undelivered(&mut world, b"command");
    let mut altered = pdu.clone();
    altered[9] ^= 1;
    for (pdu, cause) in [
        (altered, HANDOVER),
        (vec![0x7e, 0, 0x68], HANDOVER),
        (Vec::new(), HANDOVER),
        (vec![0x7e, 2, 0, 0, 0, 0, 9], HANDOVER),
        (pdu, CauseRadioNetwork::radio_connection_with_ue_lost),
    ] {
        returns(&mut world, &phone, pdu, cause);
    }
    phone.send(&mut world, gmm::GmmStatus::new(pith_nas::GmmCause::ProtocolErrorUnspecified));
    assert!(world.downlinks.is_empty(), "{:?}", world.ladder);
}

/// The UE would accept it with its new COUNT, though it may have received it.
#[test]
fn a_message_of_long_ago_is_not_sent_again() {
    let (mut world, mut phone) = connected();
    let pdus: Vec<_> = (0..17_u8).map(|number| undelivered(&mut world, &[number])).collect();
    for pdu in pdus.into_iter().take(2) {
        returns(&mut world, &phone, pdu, HANDOVER);
    }
    phone.send(&mut world, gmm::GmmStatus::new(pith_nas::GmmCause::ProtocolErrorUnspecified));
    assert_eq!(contents(&mut world, &mut phone, GNB), [[1]]);
}

#[test]
fn a_gnb_that_returns_many_messages_costs_no_more_than_eight() {
    let (mut world, mut phone) = connected();
    let pdus: Vec<_> = (0..12_u8).map(|number| undelivered(&mut world, &[number; 4])).collect();
    for pdu in pdus {
        returns(&mut world, &phone, pdu, HANDOVER);
    }
    phone.send(&mut world, gmm::GmmStatus::new(pith_nas::GmmCause::ProtocolErrorUnspecified));
    assert_eq!(contents(&mut world, &mut phone, GNB).len(), 8);
}

#[test]
fn returned_messages_end_with_the_connection() {
    let (mut world, mut phone) = connected();
    let pdu = undelivered(&mut world, b"command");
    returns(&mut world, &phone, pdu, HANDOVER);
    phone.release(&mut world);
    let request = phone.service_request(pith_nas::ie::ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::ServiceAccept(_) = phone.receive(&mut world) else { panic!() };
    phone.context_setup_response(&mut world, &[]);
    phone.send(&mut world, gmm::GmmStatus::new(pith_nas::GmmCause::ProtocolErrorUnspecified));
    assert!(world.downlinks.is_empty());
}
