//! Messages of a hostile, faulty or newer peer: the answers of TS 24.501 clause 7, never a panic.

#[allow(dead_code)]
mod samples;

use pith_nas::gmm::RegistrationRequest;
use pith_nas::ie::{MobileIdentity, NgKsi, RegistrationKind, RegistrationType};
use pith_nas::{Fault, GmmCause, GmmMessage, GsmCause, GsmMessage, Note, Noted};

fn octets(hex: &str) -> Vec<u8> {
    hex::decode(hex.replace(' ', "")).unwrap()
}

fn notes_of(hex: &str) -> Vec<Note> {
    let mut notes = Vec::new();
    GmmMessage::decode_with_notes(&octets(hex), &mut notes).unwrap();
    notes
}

const SERVICE_REQUEST: &str = "7e004c 10 0007f4004211223344";

#[test]
fn a_missing_mandatory_ie_is_invalid_mandatory_information() {
    let error = GmmMessage::decode(&octets("7e0041 79")).unwrap_err();
    assert_eq!((error.offset, error.ie, &error.fault), (4, "mobile_identity", &Fault::Missing));
    assert_eq!(error.gmm_cause(), Some(GmmCause::InvalidMandatoryInformation));
    assert_eq!(error.to_string(), "mobile_identity at octet 4: mandatory IE is missing");
}

#[test]
fn a_malformed_mandatory_ie_is_invalid_mandatory_information() {
    // Longer than the message, too short for its table, and not an identity.
    for hex in ["7e0041 79 0020 01", "7e0041 79 0002 0100", "7e0041 79 000d 01aaaaaa0000000000000000 10"] {
        let error = GmmMessage::decode(&octets(hex)).unwrap_err();
        assert!(matches!(error.fault, Fault::Malformed(_)), "{error}");
        assert_eq!(error.gmm_cause(), Some(GmmCause::InvalidMandatoryInformation));
    }
}

#[test]
fn an_unknown_ie_is_skipped_unless_it_requires_comprehension() {
    let unknown = |offset, iei| Note { offset, iei, what: Noted::Unknown };
    assert_eq!(notes_of(&format!("{SERVICE_REQUEST} 61 02 aabb")), [unknown(13, 0x61)]);
    assert_eq!(notes_of(&format!("{SERVICE_REQUEST} 76 0001 aa 91")), [unknown(13, 0x76), unknown(17, 0x90)]);
    let error = GmmMessage::decode(&octets(&format!("{SERVICE_REQUEST} 05 00"))).unwrap_err();
    assert_eq!((error.offset, &error.fault), (13, &Fault::ComprehensionRequired(5)));
    assert_eq!(error.gmm_cause(), Some(GmmCause::InvalidMandatoryInformation));
}

#[test]
fn a_bad_optional_ie_counts_as_absent() {
    // PDU session status of one octet instead of two, then a valid uplink data status.
    let hex = format!("{SERVICE_REQUEST} 50 01 20 40 02 2000");
    let mut notes = Vec::new();
    let Ok(GmmMessage::ServiceRequest(request)) = GmmMessage::decode_with_notes(&octets(&hex), &mut notes)
    else {
        panic!()
    };
    assert_eq!(request.pdu_session_status, None);
    assert!(request.uplink_data_status.is_some_and(|sessions| sessions.contains(5)));
    assert!(matches!(notes[..], [Note { offset: 13, iei: 0x50, what: Noted::Malformed(_) }]));
}

#[test]
fn the_first_of_a_repeated_ie_counts_and_order_is_noted() {
    let hex = format!("{SERVICE_REQUEST} 50 02 2000 50 02 4000 40 02 2000");
    let mut notes = Vec::new();
    let Ok(GmmMessage::ServiceRequest(request)) = GmmMessage::decode_with_notes(&octets(&hex), &mut notes)
    else {
        panic!()
    };
    assert!(request.pdu_session_status.is_some_and(|sessions| sessions.contains(5)));
    let what: Vec<_> = notes.iter().map(|note| (note.offset, note.what)).collect();
    assert_eq!(what, [(17, Noted::Repeated), (21, Noted::OutOfSequence)]);
}

#[test]
fn truncated_headers_are_ignored_and_unknown_types_answered() {
    for hex in ["", "7e", "7e00", "2e0501"] {
        let (gmm, gsm) = (GmmMessage::decode(&octets(hex)), GsmMessage::decode(&octets(hex)));
        assert!(gmm.unwrap_err().gmm_cause().is_none() && gsm.unwrap_err().gsm_cause().is_none());
    }
    let error = GmmMessage::decode(&octets("7e00ff")).unwrap_err();
    assert_eq!(error.gmm_cause(), Some(GmmCause::MessageTypeNonExistentOrNotImplemented));
    let error = GsmMessage::decode(&octets("2e0501ff")).unwrap_err();
    assert_eq!(error.gsm_cause(), Some(GsmCause::MessageTypeNonExistentOrNotImplemented));
    let error = GmmMessage::decode(&octets("7e0200000000007e0041")).unwrap_err();
    assert_eq!((error.fault.clone(), error.gmm_cause()), (Fault::Protected, None));
    let error = GsmMessage::decode(&octets("2e1001c1ffff")).unwrap_err();
    assert_eq!((error.fault.clone(), error.gsm_cause()), (Fault::ReservedPduSessionIdentity(16), None));
    let error = GsmMessage::decode(&octets("2e05ffc1ffff")).unwrap_err();
    assert_eq!((error.fault.clone(), error.gsm_cause()), (Fault::ReservedPti, None));
}

#[test]
fn a_cleartext_registration_request_has_only_cleartext_ies() {
    let GmmMessage::RegistrationRequest(whole) = &samples::gmm()[0] else { panic!() };
    let clear = whole.cleartext();
    assert_eq!(clear.ue_security_capability, whole.ue_security_capability);
    assert_eq!((clear.requested_nssai.clone(), clear.gmm_capability.clone()), (None, None));
    let initial = RegistrationType { follow_on_request: false, kind: RegistrationKind::Initial };
    let bare = RegistrationRequest::new(initial, NgKsi::NoKey, MobileIdentity::NoIdentity);
    assert_eq!(bare.cleartext(), bare);
}

#[test]
fn an_equipment_identity_with_an_extra_octet_is_refused() {
    // IMEI and a filler octet instead of an IMEISV: encoded again it would be too short for its IE.
    let notes = notes_of("7e005e 77 0009 0b07000000000000ff");
    assert!(matches!(notes[..], [Note { offset: 3, iei: 0x77, what: Noted::Malformed(_) }]));
}

#[test]
fn a_suci_with_an_extra_octet_is_refused() {
    // An MSIN with a filler octet instead of a 5G-GUTI.
    let notes = notes_of("7e0042 0101 77 000b 0102f839020040c000ffff");
    assert!(matches!(notes[..], [Note { offset: 5, iei: 0x77, what: Noted::Malformed(_) }]));
}
