//! Messages as another implementation encodes them: read, understood and written back.

use pith_pfcp::ie::*;
use pith_pfcp::{Change, DecodeError, IeFault, IeType, Message, bundled, peek};

struct Vector {
    name: &'static str,
    octets: Vec<u8>,
}

/// Messages that this crate writes back otherwise, and why that is the same message.
const NOT_CANONICAL: &[(&str, &str)] = &[
    ("association-setup-request", "the spare octet of SMF Set ID is not 0; a type of Release 15 comes last"),
    ("association-setup-response", "as in association-setup-request"),
    ("association-update-request", "as in association-setup-request"),
    ("node-report-request", "Time Stamp comes after the measurements"),
    ("session-deletion-response", "AURI is set beside a number that then has no meaning"),
    (
        "session-establishment-request",
        "spare bits of flow label and priority are set; a trailing octet of flags is 0",
    ),
    ("session-modification-request", "as in session-establishment-request"),
    (
        "session-modification-response",
        "AURI beside a number; information elements of ATSSS and TSC come last",
    ),
    ("session-report-request", "spare bits of DSCP and QFI are set; AURI beside a number; TSC comes last"),
];

fn vectors() -> impl Iterator<Item = Vector> {
    let lines = include_str!("vectors/go-pfcp.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (name, octets) = line.rsplit_once(" | ").expect("message | case | hex");
        Vector { name, octets: hex::decode(octets).expect("hex") }
    })
}

fn vector(name: &str) -> Vec<u8> {
    vectors().find(|vector| vector.name == name).expect("a vector of this name").octets
}

fn written_back(octets: &[u8]) -> Vec<u8> {
    let (header, message) = Message::decode(octets).expect("a message");
    let mut out = Vec::new();
    message.encode_with(&header, &mut out).expect("short enough");
    out
}

#[test]
fn every_vector_is_written_back_octet_by_octet_if_it_is_canonical() {
    for Vector { name, octets } in vectors() {
        let message = name.split(" |").next();
        if !NOT_CANONICAL.iter().any(|(name, _)| Some(*name) == message) {
            assert_eq!(hex::encode(written_back(&octets)), hex::encode(&octets), "{name}");
        }
    }
}

#[test]
fn every_vector_is_equal_after_reencoding() {
    for Vector { name, octets } in vectors() {
        let (_, message) = Message::decode(&octets).expect(name);
        let (_, again) = Message::decode(&written_back(&octets)).expect(name);
        assert_eq!(again, message, "{name}");
    }
}

#[test]
fn every_vector_cut_short_is_rejected() {
    for Vector { name, octets } in vectors() {
        for end in 0..octets.len() {
            assert!(Message::decode(&octets[..end]).is_err(), "{name} cut to {end}");
        }
    }
}

#[test]
fn a_session_establishment_request_is_understood() {
    let (header, message) =
        Message::decode(&vector("session-establishment-request | Single IE")).expect("a message");
    assert_eq!((header.seid, header.sequence), (Some(0x1122334455667788), 0x112233));
    let Message::SessionEstablishmentRequest(request) = message else { panic!("{message:?}") };
    assert_eq!(request.node_id, NodeId::Fqdn("go-pfcp.epc.3gppnetwork.org".into()));
    assert_eq!(request.cp_f_seid, FSeid::new(0x1111111122222222, [127, 0, 0, 1].into()));

    let pdr = &request.create_pdrs[0];
    assert_eq!((pdr.pdr_id, pdr.precedence), (PdrId(0xffff), Precedence(0x11111111)));
    assert_eq!(pdr.pdi.source_interface, SourceInterface::Access);
    assert_eq!(pdr.pdi.local_f_teid, Some(FTeid::new(0x11111111, [127, 0, 0, 1].into())));
    assert_eq!(
        pdr.pdi.network_instance.as_ref().map(|name| name.name()),
        Some("some.instance.example".into())
    );
    assert_eq!(pdr.pdi.sdf_filters[0].tos_traffic_class, Some(*b"bb"));
    let tag = VlanTag { vid: Some(4095), dei: Some(true), pcp: Some(1) };
    assert_eq!(pdr.pdi.ethernet_packet_filters[0].c_tag, Some(tag));

    let far = &request.create_fars[0];
    assert_eq!(far.apply_action, ApplyAction::BUFF);
    let forwarding = far.forwarding_parameters.as_ref().expect("forwarding parameters");
    let outer = forwarding.outer_header_creation.expect("an outer header");
    assert_eq!(outer, OuterHeaderCreation::gtpu(0x11223344, [127, 0, 0, 1].into()));

    let qer = &request.create_qers[0];
    assert_eq!(qer.maximum_bitrate, Some(BitRates { uplink: 0x1111111111, downlink: 0x2222222222 }));
    let urr = &request.create_urrs[0];
    let threshold = Volume {
        total: Some(0x3333333333333333),
        uplink: Some(0x1111111111111111),
        downlink: Some(0x2222222222222222),
    };
    assert_eq!(urr.volume_threshold, Some(threshold));
    assert_eq!(urr.monitoring_time.map(NtpSeconds::to_unix), Some(1546300800));
}

/// Session Modification Request of 16 octets of header and `ies`.
fn modification(ies: &str) -> Vec<u8> {
    let ies = hex::decode(ies).expect("hex");
    let length = (12 + ies.len() as u16).to_be_bytes();
    [&[0x21, 52, length[0], length[1]][..], &[0; 7], &[9, 0, 0, 1, 0], &ies].concat()
}

#[test]
fn an_outer_header_creation_of_spare_bits_creates_nothing() {
    use pith_pfcp::group::Ie;
    let decoded = OuterHeaderCreation::decode(&mut pith_pfcp::wire::Reader::new(&[0, 0x88], 0));
    assert!(matches!(decoded, Err(IeFault::Incorrect(_))));
}

/// Open5GS's UPF accepts the lengths of Release 16 only; a peer of Release 15 sends less.
#[test]
fn flags_have_the_octets_of_release_16() {
    use pith_pfcp::group::Ie;
    let mut octets = Vec::new();
    ApplyAction::FORW.encode(&mut octets);
    assert_eq!(octets, [2, 0]);
    octets.clear();
    ReportingTriggers::VOLTH.encode(&mut octets);
    assert_eq!(octets, [2, 0, 0]);
    for received in [&[2][..], &[2, 0]] {
        let decoded = ApplyAction::decode(&mut pith_pfcp::wire::Reader::new(received, 0));
        assert_eq!(decoded.ok(), Some(ApplyAction::FORW));
    }
}

#[test]
fn a_null_length_in_an_update_removes() {
    // Update PDR: PDR ID 1, URR ID of null length. Update FAR: FAR ID 2, Forwarding Policy of null length.
    let octets = modification(
        "0009000a003800020001 00510000 000a0010006c000400000002000b000400290000".replace(' ', "").as_str(),
    );
    let (_, message) = Message::decode(&octets).expect("a message");
    let Message::SessionModificationRequest(request) = &message else { panic!("{message:?}") };
    assert_eq!(request.update_pdrs[0].urr_ids, Some(Vec::new()));
    assert_eq!(request.update_pdrs[0].qer_ids, None);
    let parameters = request.update_fars[0].update_forwarding_parameters.as_ref().expect("parameters");
    assert_eq!(parameters.forwarding_policy, Some(Change::Remove));
    assert_eq!(written_back(&octets), octets);
}

#[test]
fn an_unknown_information_element_is_kept_and_ignored() {
    // Remove PDR 7, a vendor's type 0x8001 of enterprise 10415, type 1000.
    let octets = modification("000f000600380002000780010004 28af abcd03e80001ff".replace(' ', "").as_str());
    let (_, message) = Message::decode(&octets).expect("a message");
    let Message::SessionModificationRequest(request) = &message else { panic!("{message:?}") };
    assert_eq!(request.remove_pdrs[0].pdr_id, PdrId(7));
    assert_eq!(request.other_ies.len(), 2);
    assert!(request.other_ies[0].ie_type.is_vendor_specific());
    assert_eq!(written_back(&octets), octets);
}

#[test]
fn a_missing_mandatory_element_is_named_with_its_place_and_cause() {
    // Create FAR with a FAR ID, without Apply Action.
    let octets = modification("00030008006c000400000002");
    let Err(DecodeError::Ie { header, error }) = Message::decode(&octets) else { panic!("accepted") };
    assert_eq!((header.seid, header.sequence), (Some(9), 1));
    assert_eq!((error.ie_type, error.fault), (IeType::APPLY_ACTION, IeFault::MandatoryMissing));
    assert_eq!((error.offset, error.cause()), (octets.len(), Cause::MandatoryIeMissing));
    assert_eq!(error.to_string(), "Apply Action at octet 28: mandatory, but missing");
}

#[test]
fn an_element_too_short_for_its_fields_is_named_with_its_place_and_cause() {
    // Remove FAR with a FAR ID of two octets.
    let Err(DecodeError::Ie { error, .. }) = Message::decode(&modification("00100006006c00020001")) else {
        panic!("accepted")
    };
    assert_eq!((error.ie_type, error.offset, error.cause()), (IeType::FAR_ID, 20, Cause::InvalidLength));
}

#[test]
fn an_element_longer_than_its_group_is_named_with_its_place_and_cause() {
    let Err(DecodeError::Ie { error, .. }) = Message::decode(&modification("00100006006c00040001")) else {
        panic!("accepted")
    };
    assert_eq!((error.ie_type, error.offset, error.cause()), (IeType::FAR_ID, 20, Cause::InvalidLength));
}

#[test]
fn a_conditional_element_that_makes_no_sense_rejects_the_message() {
    // CP F-SEID without an address.
    let Err(DecodeError::Ie { error, .. }) = Message::decode(&modification("00390009000000000000000001"))
    else {
        panic!("accepted")
    };
    assert_eq!((error.ie_type, error.cause()), (IeType::F_SEID, Cause::MandatoryIeIncorrect));
}

#[test]
fn an_optional_element_that_makes_no_sense_counts_as_absent() {
    // Session Report Response: cause 1; then a CP F-SEID, which is optional there, without an address.
    let octets = hex::decode(
        "213900 1e 0000000000000001 000002 00 0013000101 00390009 000000000000000001".replace(' ', ""),
    )
    .expect("hex");
    let (_, message) = Message::decode(&octets).expect("a message");
    let Message::SessionReportResponse(response) = &message else { panic!("{message:?}") };
    assert_eq!((response.cause, response.cp_f_seid), (Cause::RequestAccepted, None));
    assert_eq!(response.other_ies[0].ie_type, IeType::F_SEID);
}

#[test]
fn of_repeated_elements_the_first_counts() {
    let octets = hex::decode("2037000900000100 0013000101 0013000140".replace(' ', "")).expect("hex");
    assert!(
        matches!(Message::decode(&octets), Err(DecodeError::LengthMismatch { .. })),
        "the length is checked first"
    );
    let octets = hex::decode("200a00170000 0100003c0005007f000001 0013000101 0013000140".replace(' ', ""))
        .expect("hex");
    let (_, message) = Message::decode(&octets).expect("a message");
    let Message::AssociationReleaseResponse(response) = message else { panic!("{message:?}") };
    assert_eq!(response.cause, Cause::RequestAccepted);
}

#[test]
fn another_version_is_distinguished_from_invalid_octets() {
    let octets = hex::decode("4001000400000700").expect("hex");
    assert_eq!(Message::decode(&octets), Err(DecodeError::VersionNotSupported { version: 2, sequence: 7 }));
    assert_eq!(peek(&octets), None);
    assert_eq!(Message::decode(&octets[..7]), Err(DecodeError::TooShort(7)));
}

#[test]
fn peek_agrees_with_decode() {
    for Vector { name, octets } in vectors() {
        let (header, message) = Message::decode(&octets).expect(name);
        let peek = peek(&octets).expect(name);
        assert_eq!(
            (peek.message_type, peek.seid, peek.sequence),
            (message.message_type(), header.seid, header.sequence)
        );
    }
}

#[test]
fn bundled_messages_are_split() {
    let mut first = vector("session-deletion-request | Normal");
    first[0] |= 0x04;
    let second = vector("session-report-response | Normal");
    let datagram = [first.clone(), second.clone()].concat();
    let messages: Vec<_> = bundled(&datagram).collect();
    assert_eq!(messages, [&first[..], &second[..]]);
    assert!(messages.iter().all(|message| Message::decode(message).is_ok()));
}

#[test]
fn a_label_that_holds_a_dot_is_no_name() {
    // Association Release Request with the Node ID `a.b` in one label.
    let octets = hex::decode("2009000d00000100003c00050203612e62").expect("hex");
    let Err(DecodeError::Ie { error, .. }) = Message::decode(&octets) else { panic!("accepted") };
    assert_eq!((error.ie_type, error.cause()), (IeType::NODE_ID, Cause::MandatoryIeIncorrect));
}
