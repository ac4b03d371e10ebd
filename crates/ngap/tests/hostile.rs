//! PDUs of hostile or newer gNBs: the answers of TS 38.413 clause 10, never a panic.

use pith_ngap::*;
use pith_types::{AmfUeNgapId, FiveGSTmsi, FiveGTmsi, RanUeNgapId, Tac, Tai};

/// UE CONTEXT RELEASE REQUEST, captured: AMF-UE-NGAP-ID 42, RAN-UE-NGAP-ID 7, user inactivity.
const RELEASE_REQUEST: &str = "002a4015000003000a0002002a005500020007000f40020500";

fn octets(hex: &str) -> Vec<u8> {
    hex::decode(hex).unwrap()
}

#[test]
fn a_captured_release_request_is_read() {
    let Ok(Message::UeContextReleaseRequest(request)) = Message::decode(&octets(RELEASE_REQUEST)) else {
        panic!()
    };
    assert_eq!(request.amf_ue_ngap_id, AmfUeNgapId::from_wire(42).unwrap());
    assert_eq!(request.ran_ue_ngap_id, RanUeNgapId(7));
    assert_eq!(request.cause, Some(Cause::RadioNetwork(CauseRadioNetwork::user_inactivity)));
    assert_eq!(hex::encode(request.encode().unwrap()), RELEASE_REQUEST);
}

#[test]
fn a_cause_that_is_not_understood_counts_as_absent() {
    let spoiled = octets("002a4015000003000a0002002a005500020007000f4002e500");
    let Ok(Message::UeContextReleaseRequest(request)) = Message::decode(&spoiled) else { panic!() };
    assert_eq!(request.cause, None);
}

#[test]
fn a_missing_mandatory_ie_is_an_abstract_syntax_error() {
    // Without RAN-UE-NGAP-ID.
    let error = Message::decode(&octets("002a400f000002000a0002002a000f40020500")).unwrap_err();
    assert_eq!(error.cause(), Cause::Protocol(CauseProtocol::abstract_syntax_error_reject));
    assert!(error.to_string().contains("RAN-UE-NGAP-ID"), "{error}");
    let indication = ErrorIndication {
        amf_ue_ngap_id: None,
        ran_ue_ngap_id: None,
        cause: Some(error.cause()),
        diagnostics: error.diagnostics(),
        s_tmsi: None,
    };
    assert!(matches!(Message::decode(&indication.encode().unwrap()), Ok(Message::ErrorIndication(_))));
}

#[test]
fn a_repeated_ie_is_a_falsely_constructed_message_and_a_peek_keeps_the_first() {
    let twice = octets("002a401b000004000a0002002a000a0002002b005500020007000f40020500");
    let error = Message::decode(&twice).unwrap_err();
    assert_eq!(
        error.cause(),
        Cause::Protocol(CauseProtocol::abstract_syntax_error_falsely_constructed_message)
    );
    assert_eq!(peek(&twice).unwrap().amf_ue_ngap_id, AmfUeNgapId::from_wire(42));
}

#[test]
fn ies_in_another_order_are_read_because_each_carries_its_id() {
    // RAN-UE-NGAP-ID, Cause, AMF-UE-NGAP-ID, encoded by pycrate.
    let odd = octets("002a4015000003005500020007000f40020500000a0002002a");
    let Ok(Message::UeContextReleaseRequest(request)) = Message::decode(&odd) else { panic!() };
    assert_eq!(Ok(Message::from(request)), Message::decode(&octets(RELEASE_REQUEST)));
    let seen = peek(&odd).unwrap();
    assert_eq!(
        (seen.amf_ue_ngap_id, seen.ran_ue_ngap_id),
        (AmfUeNgapId::from_wire(42), Some(RanUeNgapId(7)))
    );
}

#[test]
fn an_initial_ue_message_is_read_in_any_order() {
    // Encoded by pycrate, in two orders other than the ASN.1's.
    let orders = [
        "000f4042000005005a400118007040010000260018177e004179000d0199f9070000000000000000102e02e0e00079000f4099f907000000010099f907000001005500020007",
        "000f40420000050055000200070079000f4099f907000000010099f90700000100260018177e004179000d0199f9070000000000000000102e02e0e00070400100005a400118",
    ]
    .map(octets);
    let [Ok(Message::InitialUeMessage(one)), Ok(Message::InitialUeMessage(other))] =
        [Message::decode(&orders[0]), Message::decode(&orders[1])]
    else {
        panic!()
    };
    assert_eq!(one, other);
    for order in &orders {
        let seen = peek(order).unwrap();
        assert_eq!((seen.ran_ue_ngap_id, seen.nas_pdu), (Some(RanUeNgapId(7)), Some(one.nas_pdu.as_slice())));
    }
}

#[test]
fn an_unknown_ie_is_overlooked_if_it_may_be() {
    let ignore = octets("002a401a000004000a0002002a005500020007000f40020500fffe400100");
    assert!(Message::decode(&ignore).is_ok());
    let reject = octets("002a401a000004000a0002002a005500020007000f40020500fffe000100");
    assert!(Message::decode(&reject).is_err());
    let notify = octets("002a401a000004000a0002002a005500020007000f40020500fffe800100");
    assert!(matches!(Message::decode_with_notice(&ignore), Ok((_, None))));
    let Ok((_, Some(notice))) = Message::decode_with_notice(&notify) else { panic!() };
    assert!(!notice.awaits_response(), "the procedure has no response");
    assert!(notice.text.contains("65534"), "{}", notice.text);
}

/// UE CONTEXT RELEASE REQUEST with that number of unknown IEs, of that criticality.
fn with_unknown_ies(number: u16, criticality: u8) -> Vec<u8> {
    let mut ies = octets("000a0002002a005500020007000f40020500");
    for id in 0..number {
        ies.extend([0x80 | (id >> 8) as u8, id as u8, criticality, 1, 0]);
    }
    let length = (3 + ies.len()) as u16 | 0x8000;
    let mut pdu = octets("002a40");
    pdu.extend(length.to_be_bytes());
    pdu.push(0);
    pdu.extend((3 + number).to_be_bytes());
    pdu.extend(ies);
    pdu
}

/// A PDU of 64 kB can have thousands of them: each would be a sentence in the log.
#[test]
fn the_text_of_many_errors_is_short() {
    let Ok((_, Some(notice))) = Message::decode_with_notice(&with_unknown_ies(2000, 0x80)) else { panic!() };
    let Err(error) = Message::decode(&with_unknown_ies(2000, 0)) else { panic!() };
    for text in [notice.text, error.to_string()] {
        assert!(text.contains("32768") && text.ends_with("; and 1996 others"), "{text:.400}");
    }
}

#[test]
fn a_peek_sees_what_decoding_sees() {
    let encoded = octets(RELEASE_REQUEST);
    let release = peek(&encoded).unwrap();
    assert_eq!((release.class, release.procedure_code), (Class::Initiating, 42));
    assert_eq!(
        (release.amf_ue_ngap_id, release.ran_ue_ngap_id),
        (AmfUeNgapId::from_wire(42), Some(RanUeNgapId(7)))
    );
    for id in [0, 1, 255, 256, 65_536, 0xff_ffff_ffff] {
        let amf = AmfUeNgapId::from_wire(id).unwrap();
        for ran in [0, 255, 256, 65_536, u32::MAX] {
            let ids = UeNgapIds::Pair(amf, RanUeNgapId(ran));
            let cause = Cause::Nas(CauseNas::normal_release);
            let encoded = UeContextReleaseCommand { ids, cause }.encode().unwrap();
            let seen = peek(&encoded).unwrap();
            assert_eq!((seen.amf_ue_ngap_id, seen.ran_ue_ngap_id), (Some(amf), Some(RanUeNgapId(ran))));
            let ids = UeNgapIds::Amf(amf);
            assert_eq!(
                peek(&UeContextReleaseCommand { ids, cause }.encode().unwrap()).unwrap().amf_ue_ngap_id,
                Some(amf)
            );
            let uplink = UplinkNasTransport {
                amf_ue_ngap_id: amf,
                ran_ue_ngap_id: RanUeNgapId(ran),
                nas_pdu: vec![0; 200],
                location: None,
            };
            let encoded = uplink.encode().unwrap();
            let seen = peek(&encoded).unwrap();
            assert_eq!((seen.amf_ue_ngap_id, seen.ran_ue_ngap_id), (Some(amf), Some(RanUeNgapId(ran))));
        }
    }
}

#[test]
fn a_peek_sees_the_ids_of_a_message_that_comes_in_fragments() {
    let amf = AmfUeNgapId::from_wire(42).unwrap();
    for length in [16_000, 16_384, 20_000, 70_000] {
        let capability = UeRadioCapabilityInfoIndication {
            amf_ue_ngap_id: amf,
            ran_ue_ngap_id: RanUeNgapId(7),
            ue_radio_capability: Some(vec![1; length]),
        };
        let encoded = capability.encode().unwrap();
        assert_eq!(Message::decode(&encoded), Ok(capability.into()));
        let seen = peek(&encoded).unwrap();
        assert_eq!((seen.amf_ue_ngap_id, seen.ran_ue_ngap_id), (Some(amf), Some(RanUeNgapId(7))));
    }
}

#[test]
fn a_peek_sees_the_s_tmsi_of_an_initial_ue_message() {
    let s_tmsi = pith_types::FiveGSTmsi { amf_set: 0x3a5, amf_pointer: 0x2a, tmsi: FiveGTmsi(0x8123_4567) };
    let tai = pith_types::Tai { plmn_id: "999/70".parse().unwrap(), tac: pith_types::Tac::new(1) };
    let location = UserLocation { cell_plmn: tai.plmn_id, cell: pith_types::NrCellIdentity::new(1), tai };
    let initial = InitialUeMessage {
        ran_ue_ngap_id: RanUeNgapId(3),
        nas_pdu: vec![0x7e, 0, 0x4c],
        location,
        establishment_cause: Some(RrcEstablishmentCause::mo_Data),
        s_tmsi: Some(s_tmsi),
        amf_set_id: None,
        ue_context_request: None,
        allowed_nssai: None,
        reroute: None,
    };
    let encoded = initial.encode().unwrap();
    let seen = peek(&encoded).unwrap();
    assert_eq!(seen.nas_pdu, Some(initial.nas_pdu.as_slice()));
    assert_eq!(
        (seen.s_tmsi, seen.ran_ue_ngap_id, seen.amf_ue_ngap_id),
        (Some(s_tmsi), Some(RanUeNgapId(3)), None)
    );
}

#[test]
fn a_message_that_cannot_be_encoded_is_an_error() {
    let tai = Tai { plmn_id: "999/70".parse().unwrap(), tac: Tac::new(1) };
    let s_tmsi = FiveGSTmsi { amf_set: 1, amf_pointer: 0, tmsi: FiveGTmsi(1) };
    assert!(Paging::new(s_tmsi, vec![tai; 16]).encode().is_ok());
    let error = Paging::new(s_tmsi, vec![tai; 17]).encode().unwrap_err();
    assert!(error.to_string().starts_with("Paging cannot be encoded"), "{error}");
}

fn trace_start(activation: TraceActivation) -> Vec<u8> {
    let ids = (AmfUeNgapId::from_wire(42).unwrap(), RanUeNgapId(7));
    TraceStart { amf_ue_ngap_id: ids.0, ran_ue_ngap_id: ids.1, activation: Some(activation) }
        .encode()
        .unwrap()
}

#[test]
fn a_trace_activation_that_is_not_understood_counts_as_absent() {
    let activation = |ipv4: Option<[u8; 4]>, ipv6: Option<[u8; 16]>| TraceActivation {
        id: NgRanTraceId::new([0x99, 0xf9, 0x07, 0, 0, 1], 0xabcd),
        interfaces: TracedInterfaces::NG_C,
        depth: TraceDepth::maximum,
        collection_entity: CollectionEntity { ipv4: ipv4.map(Into::into), ipv6: ipv6.map(Into::into) },
    };
    let right = trace_start(activation(Some([192, 0, 2, 9]), None));
    let Ok(Message::TraceStart(message)) = Message::decode(&right) else { panic!() };
    let trace = message.activation.unwrap();
    assert_eq!((trace.id.reference(), trace.id.session()), ([0x99, 0xf9, 0x07, 0, 0, 1], 0xabcd));
    assert_eq!(trace.id.to_string(), "99f907000001abcd");
    // Any octet of the IE may be wrong: the PDU is refused, or read without the IE, or with another value.
    for at in 0..right.len() {
        for bit in 0..8 {
            let mut wrong = right.clone();
            wrong[at] ^= 1 << bit;
            let _ = Message::decode(&wrong);
            let _ = Message::decode(&right[..at]);
        }
    }
    // The octet before the address ends with the lower five bits of its length, and padding. An address of 31 bits is no IP address.
    let at = right.windows(5).position(|it| it[1..] == [192, 0, 2, 9]).unwrap();
    let mut short = right.clone();
    short[at] = short[at].wrapping_sub(8);
    if let Ok(Message::TraceStart(message)) = Message::decode(&short) {
        assert_eq!(message.activation, None);
    }
}
