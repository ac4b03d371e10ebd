//! Invalid NGAP (TS 38.413 clause 10).

use super::world::{GNB, OTHER_GNB, Phone, World, establishment};
use crate::testing::{with_ie_to_reject, with_unknown_ie};
use pith_ngap::{Cause, CauseProtocol, CauseRadioNetwork, ErrorIndication, Message, UplinkNasTransport};
use pith_types::{AmfUeNgapId, RanUeNgapId};

fn registered() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    world.take_ladder();
    (world, phone)
}

fn error(world: &mut World) -> ErrorIndication {
    let Message::ErrorIndication(error) = world.next() else { panic!("an ERROR INDICATION") };
    error
}

fn uplink(amf_ue_ngap_id: AmfUeNgapId, ran_ue_ngap_id: RanUeNgapId) -> Vec<u8> {
    UplinkNasTransport { amf_ue_ngap_id, ran_ue_ngap_id, nas_pdu: vec![0x7e, 0, 0x43], location: None }
        .encode()
        .unwrap()
}

#[test]
fn an_unassigned_amf_ue_ngap_id_is_reported_as_unknown() {
    let (mut world, phone) = registered();
    let unknown = AmfUeNgapId::from_wire(phone.amf_id.unwrap().value() ^ 1).unwrap();
    world.ngap(GNB, "UplinkNasTransport", Ok(uplink(unknown, phone.ran_id)));
    let error = error(&mut world);
    assert_eq!(error.cause, Some(Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID)));
    assert_eq!((error.amf_ue_ngap_id, error.ran_ue_ngap_id), (Some(unknown), Some(phone.ran_id)));
}

#[test]
fn a_mismatched_pair_of_ids_is_reported_as_inconsistent() {
    let (mut world, phone) = registered();
    let amf_id = phone.amf_id.unwrap();
    let inconsistent = Some(Cause::RadioNetwork(CauseRadioNetwork::inconsistent_remote_UE_NGAP_ID));
    world.ngap(OTHER_GNB, "UplinkNasTransport", Ok(uplink(amf_id, phone.ran_id)));
    assert_eq!(error(&mut world).cause, inconsistent);
    assert_eq!(world.amf.audit().connected, 1, "the UE does not notice another gNB's mistake");
    world.ngap(GNB, "UplinkNasTransport", Ok(uplink(amf_id, RanUeNgapId(999))));
    assert_eq!(error(&mut world).cause, inconsistent);
    assert_eq!(world.amf.audit().connected, 0, "its own gNB knows its connection otherwise");
}

#[test]
fn errors_in_error_indications_and_final_messages_are_not_reported() {
    let (mut world, phone) = registered();
    let unknown = AmfUeNgapId::from_wire(phone.amf_id.unwrap().value() ^ 1).unwrap();
    let complete = pith_ngap::UeContextReleaseComplete {
        amf_ue_ngap_id: unknown,
        ran_ue_ngap_id: phone.ran_id,
        location: None,
        sessions: None,
        diagnostics: None,
    };
    world.ngap(GNB, "UeContextReleaseComplete", complete.encode());
    for ran_ue_ngap_id in [Some(phone.ran_id), None] {
        let indication = ErrorIndication {
            amf_ue_ngap_id: Some(unknown),
            ran_ue_ngap_id,
            cause: Some(Cause::Protocol(CauseProtocol::message_not_compatible_with_receiver_state)),
            diagnostics: None,
            s_tmsi: None,
        };
        world.ngap(GNB, "ErrorIndication", indication.encode());
    }
    assert!(!world.take_ladder().contains("<-"), "nothing is answered");
}

/// TS 38.413 10.5, at the AMF of the UE: the same with its ids.
#[test]
fn no_error_in_an_error_indication_is_reported() {
    let (mut world, phone) = registered();
    let indication = ErrorIndication {
        amf_ue_ngap_id: phone.amf_id,
        ran_ue_ngap_id: Some(phone.ran_id),
        cause: Some(Cause::Protocol(CauseProtocol::unspecified)),
        diagnostics: None,
        s_tmsi: None,
    };
    let mut unknown = with_unknown_ie(&indication.encode().unwrap());
    let id = unknown.windows(2).rposition(|octets| octets == [0xff, 0xfe]).unwrap();
    unknown[id + 2] = 0;
    for pdu in [unknown, vec![0, 9, 0x40, 2, 0xff, 0xff]] {
        world.ngap(GNB, "ErrorIndication", Ok(pdu));
    }
    assert!(!world.take_ladder().contains("<-"), "nothing is answered");
}

#[test]
fn malformed_octets_are_a_transfer_syntax_error() {
    let (mut world, _) = registered();
    for pdu in [vec![], vec![0], vec![0xff; 20]] {
        world.ngap(GNB, "?", Ok(pdu));
        let error = error(&mut world);
        assert_eq!(error.cause, Some(Cause::Protocol(CauseProtocol::transfer_syntax_error)));
    }
}

fn transfers() -> Vec<pith_ngap::SessionTransfer> {
    super::world::transfers(&[5])
}

#[test]
fn a_handover_required_is_refused_with_handover_preparation_failure() {
    let (mut world, phone) = registered();
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (phone.amf_id.unwrap(), phone.ran_id);
    // HANDOVER REQUIRED with its two ids, and nothing else: mandatory IEs of criticality reject are missing.
    let release =
        pith_ngap::UeContextReleaseRequest { amf_ue_ngap_id, ran_ue_ngap_id, sessions: None, cause: None };
    let ids = release.encode();
    let mut faulty = ids.unwrap();
    (faulty[1], faulty[2]) = (12, 0);
    world.ngap(GNB, "HandoverRequired", Ok(faulty));
    let Message::HandoverPreparationFailure(failure) = world.next() else { panic!() };
    assert_eq!((failure.amf_ue_ngap_id, failure.ran_ue_ngap_id), (amf_ue_ngap_id, ran_ue_ngap_id));
    assert!(matches!(failure.cause, Some(Cause::Protocol(_))), "{failure:?}");
    assert!(failure.diagnostics.is_some());
    let required = pith_ngap::HandoverRequired {
        amf_ue_ngap_id,
        ran_ue_ngap_id,
        handover_type: pith_ngap::HandoverType::intra5gs,
        cause: None,
        target: pith_ngap::TargetId::RanNode {
            node: pith_ngap::GlobalRanNodeId::Gnb { plmn: "999/70".parse().unwrap(), id: 2, bits: 24 },
            tai: super::world::tai(),
        },
        direct_forwarding_path: None,
        sessions: transfers(),
        source_to_target: vec![1, 2, 3],
    };
    world.ngap(GNB, "HandoverRequired", required.encode());
    let Message::HandoverPreparationFailure(failure) = world.next() else { panic!() };
    assert!(matches!(failure.cause, Some(Cause::RadioNetwork(_))), "{failure:?}");
    let cancel = pith_ngap::HandoverCancel { amf_ue_ngap_id, ran_ue_ngap_id, cause: None };
    world.ngap(GNB, "HandoverCancel", cancel.encode());
    assert!(matches!(world.next(), Message::HandoverCancelAcknowledge(_)));
    assert_eq!(world.amf.audit().connected, 1);
}

#[test]
fn error_indications_contain_both_ids_of_the_message() {
    let (mut world, phone) = registered();
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (phone.amf_id.unwrap(), phone.ran_id);
    let notify = pith_ngap::HandoverNotify { amf_ue_ngap_id, ran_ue_ngap_id, location: None };
    world.ngap(GNB, "HandoverNotify", notify.encode());
    let for_a_gnb = pith_ngap::UeContextReleaseCommand {
        ids: pith_ngap::UeNgapIds::Pair(amf_ue_ngap_id, ran_ue_ngap_id),
        cause: Cause::Protocol(CauseProtocol::unspecified),
    };
    world.ngap(GNB, "UeContextReleaseCommand", for_a_gnb.encode());
    for _ in 0..2 {
        let error = error(&mut world);
        assert_eq!(
            (error.amf_ue_ngap_id, error.ran_ue_ngap_id),
            (Some(amf_ue_ngap_id), Some(ran_ue_ngap_id))
        );
    }
}

#[test]
fn an_error_indication_with_the_ran_ue_ngap_id_alone_finds_its_ue() {
    let (mut world, mut phone) = registered();
    let message = ErrorIndication {
        amf_ue_ngap_id: None,
        ran_ue_ngap_id: Some(phone.ran_id),
        cause: Some(Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID)),
        diagnostics: None,
        s_tmsi: None,
    };
    world.ngap(OTHER_GNB, "ErrorIndication", message.encode());
    assert_eq!(world.amf.audit().connected, 1, "another gNB numbers other UEs so");
    world.ngap(GNB, "ErrorIndication", message.encode());
    phone.released(&mut world);
    assert_eq!(world.amf.audit().connected, 0);
}

#[test]
fn a_handover_without_ids_is_answered() {
    let (mut world, _) = registered();
    // HANDOVER REQUIRED (procedure 12), criticality reject, without IEs.
    world.ngap(GNB, "HandoverRequired", Ok(vec![0x00, 12, 0x00, 3, 0, 0, 0]));
    let error = error(&mut world);
    assert!(matches!(error.cause, Some(Cause::Protocol(_))), "{error:?}");
    assert!(error.diagnostics.is_some());
}

#[test]
fn a_message_that_only_an_amf_sends_is_not_for_an_amf() {
    let (mut world, phone) = registered();
    let message = pith_ngap::DownlinkNasTransport {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        old_amf: None,
        nas_pdu: vec![1],
        mobility_restrictions: None,
        ue_ambr: None,
        allowed_nssai: None,
    };
    world.ngap(GNB, "DownlinkNasTransport", message.encode());
    let cause = CauseProtocol::message_not_compatible_with_receiver_state;
    assert_eq!(error(&mut world).cause, Some(Cause::Protocol(cause)));
}

#[test]
fn an_error_indication_about_an_unknown_ue_ends_its_connection() {
    let (mut world, mut phone) = registered();
    let message = ErrorIndication {
        amf_ue_ngap_id: phone.amf_id,
        ran_ue_ngap_id: Some(phone.ran_id),
        cause: Some(Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID)),
        diagnostics: None,
        s_tmsi: None,
    };
    world.ngap(GNB, "ErrorIndication", message.encode());
    phone.released(&mut world);
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connected), (1, 0));
}

#[test]
fn messages_after_the_release_command_are_ignored() {
    let (mut world, mut phone) = registered();
    let message = pith_ngap::UeContextReleaseRequest {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        sessions: None,
        cause: None,
    };
    world.ngap(GNB, "UeContextReleaseRequest", message.encode());
    world.take_ladder();
    phone.send(&mut world, establishment(5));
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport");
}

/// TS 38.413 10.3.4.2 is about messages that are processed: others get their own answer, or none.
#[test]
fn nothing_is_notified_of_a_message_that_is_not_processed() {
    let (mut world, mut phone) = registered();
    let amf_id = phone.amf_id.unwrap();
    let unknown = AmfUeNgapId::from_wire(amf_id.value() ^ 1).unwrap();
    world.ngap(GNB, "UplinkNasTransport", Ok(with_unknown_ie(&uplink(unknown, phone.ran_id))));
    let cause = Some(Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID));
    assert_eq!(error(&mut world).cause, cause);
    assert!(world.downlinks.is_empty(), "one answer: {:?}", world.downlinks);
    // HANDOVER NOTIFY without a handover.
    let notify =
        pith_ngap::HandoverNotify { amf_ue_ngap_id: amf_id, ran_ue_ngap_id: phone.ran_id, location: None };
    world.ngap(GNB, "HandoverNotify", Ok(with_unknown_ie(&notify.encode().unwrap())));
    let cause = CauseProtocol::message_not_compatible_with_receiver_state;
    assert_eq!(error(&mut world).cause, Some(Cause::Protocol(cause)));
    assert!(world.downlinks.is_empty(), "one answer: {:?}", world.downlinks);

    let message = pith_ngap::UeContextReleaseRequest {
        amf_ue_ngap_id: amf_id,
        ran_ue_ngap_id: phone.ran_id,
        sessions: None,
        cause: None,
    };
    world.ngap(GNB, "UeContextReleaseRequest", message.encode());
    world.take_ladder();
    // The gNB has not received UE CONTEXT RELEASE COMMAND yet.
    world.ngap(GNB, "UplinkNasTransport", Ok(with_unknown_ie(&uplink(amf_id, phone.ran_id))));
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport");
    phone.released(&mut world);
}

/// TS 38.413 10.3.4.2, ignore and notify: the message is processed; its response says what was ignored, or ERROR INDICATION, if it has none.
#[test]
fn an_ie_that_is_ignored_is_notified() {
    let (mut world, phone) = registered();
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (phone.amf_id.unwrap(), phone.ran_id);
    world.ngap(GNB, "UplinkNasTransport", Ok(with_unknown_ie(&uplink(amf_ue_ngap_id, ran_ue_ngap_id))));
    let error = error(&mut world);
    assert_eq!(error.cause, Some(Cause::Protocol(CauseProtocol::abstract_syntax_error_ignore_and_notify)));
    assert_eq!((error.amf_ue_ngap_id, error.ran_ue_ngap_id), (Some(amf_ue_ngap_id), Some(ran_ue_ngap_id)));
    assert!(format!("{:?}", error.diagnostics).contains("65534"));

    let cancel = pith_ngap::HandoverCancel { amf_ue_ngap_id, ran_ue_ngap_id, cause: None };
    world.ngap(GNB, "HandoverCancel", Ok(with_unknown_ie(&cancel.encode().unwrap())));
    let Message::HandoverCancelAcknowledge(answer) = world.next() else { panic!("the response") };
    assert!(format!("{:?}", answer.diagnostics).contains("65534"));
    assert!(world.downlinks.is_empty());
}

/// TS 38.413 10.3.4.1: also of a message that ends a procedure, which the AMF can't have begun.
#[test]
fn an_unknown_procedure_is_rejected_whatever_its_class() {
    let (mut world, _) = registered();
    for choice in [0x00, 0x20, 0x40] {
        world.ngap(GNB, "?", Ok(vec![choice, 200, 0x00, 3, 0, 0, 0]));
        let error = error(&mut world);
        assert_eq!(error.cause, Some(Cause::Protocol(CauseProtocol::abstract_syntax_error_reject)));
        world.ngap(GNB, "?", Ok(vec![choice, 200, 0x40, 3, 0, 0, 0]));
        assert!(world.downlinks.is_empty(), "criticality 'ignore'");
    }
}

/// TS 38.413 10.3.4.2. The UE stays at its gNB, and the AMF says nothing about it.
#[test]
fn a_path_switch_request_with_an_unknown_ie_is_refused() {
    let (mut world, phone) = registered();
    let request = |id| pith_ngap::PathSwitchRequest {
        ran_ue_ngap_id: RanUeNgapId(9),
        source_amf_ue_ngap_id: id,
        location: None,
        security_capabilities: None,
        sessions: super::world::transfers(&[5, 6]),
        failed: None,
    };
    let known = phone.amf_id.unwrap();
    for id in [known, AmfUeNgapId::from_wire(known.value() ^ 1).unwrap()] {
        let pdu = with_ie_to_reject(&request(id).encode().unwrap());
        world.ngap(OTHER_GNB, "PathSwitchRequest", Ok(pdu));
        let Message::PathSwitchRequestFailure(failure) = world.next() else { panic!() };
        assert_eq!((failure.amf_ue_ngap_id, failure.ran_ue_ngap_id), (id, RanUeNgapId(9)));
        let released = failure.released.unwrap();
        assert_eq!(released.iter().map(|item| item.pdu_session_id).collect::<Vec<_>>(), [5, 6]);
        assert!(format!("{:?}", failure.diagnostics).contains("65534"));
        assert_eq!(world.left.pop(), Some((OTHER_GNB, RanUeNgapId(9), id)));
        assert!(world.downlinks.is_empty());
    }
    assert_eq!((world.amf.audit().connected, world.amf.audit().connections), (1, 1));
}

/// TS 38.413 10.3.4.2: a procedure that the gNB ends with such a message has failed. What the gNB has done is not known.
#[test]
fn a_response_with_an_unknown_ie_ends_its_procedure() {
    let (mut world, mut phone) = registered();
    phone.send(&mut world, establishment(5));
    let setup = super::world::transfer(5, None, Some((super::world::NgapIe::PduResSetupReq, b"setup")));
    assert!(world.request(setup).is_ok());
    let Message::PduSessionResourceSetupRequest(_) = world.next() else { panic!("the setup") };
    let response = pith_ngap::PduSessionResourceSetupResponse {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        setup: Some(transfers()),
        failed: None,
        diagnostics: None,
    };
    let pdu = with_ie_to_reject(&response.encode().unwrap());
    world.ngap(OTHER_GNB, "PduSessionResourceSetupResponse", Ok(pdu.clone()));
    assert!(world.downlinks.is_empty(), "it is of another gNB: {:?}", world.downlinks);
    world.ngap(GNB, "PduSessionResourceSetupResponse", Ok(pdu));
    let Message::UeContextReleaseCommand(command) = world.next() else { panic!("a release") };
    assert_eq!(command.cause, Cause::Protocol(CauseProtocol::abstract_syntax_error_reject));
    assert!(world.downlinks.is_empty(), "no answer: {:?}", world.downlinks);

    let complete = pith_ngap::UeContextReleaseComplete {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        location: None,
        sessions: None,
        diagnostics: None,
    };
    world.ngap(GNB, "UeContextReleaseComplete", Ok(with_ie_to_reject(&complete.encode().unwrap())));
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.connections), (1, 0, 0));
    assert!(world.downlinks.is_empty(), "no answer: {:?}", world.downlinks);
}
