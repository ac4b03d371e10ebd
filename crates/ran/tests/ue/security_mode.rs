//! Security mode control (TS 24.501 5.4.2).

use crate::network::*;
use pith_nas::gmm::SecurityModeCommand;
use pith_nas::ie::*;
use pith_nas::{GmmCause, GmmMessage, SecurityHeaderType};
use pith_ran::ue::Input;

fn authenticated() -> Pair {
    let mut pair = Pair::new();
    pair.input(Input::Register);
    let challenge = pair.challenge(NgKsi::Native(0));
    pair.give_plain(challenge);
    pair.new_context();
    pair.sent.clear();
    pair
}

fn rejected_with(command: SecurityModeCommand) -> (GmmCause, &'static str) {
    let mut pair = authenticated();
    pair.give_security_mode_command(command);
    let GmmMessage::SecurityModeReject(reject) = pair.plain() else { panic!("SECURITY MODE REJECT") };
    (reject.cause, pair.violation())
}

#[test]
fn complete_is_ciphered_with_the_new_context_and_has_imeisv() {
    let mut pair = authenticated();
    pair.give_security_mode_command(security_mode_command());
    let (header, message) = pair.protected();
    assert_eq!(header, SecurityHeaderType::IntegrityProtectedAndCipheredWithNewContext);
    let GmmMessage::SecurityModeComplete(complete) = message else { panic!() };
    assert!(matches!(complete.imeisv, Some(MobileIdentity::Imeisv(_))));
    pair.assert_clean();
}

#[test]
fn imeisv_is_sent_only_on_request() {
    let mut pair = authenticated();
    pair.give_security_mode_command(SecurityModeCommand { imeisv_request: None, ..security_mode_command() });
    let (_, GmmMessage::SecurityModeComplete(complete)) = pair.protected() else { panic!() };
    assert_eq!(complete.imeisv, None);
}

#[test]
fn altered_capabilities_are_a_mismatch() {
    let replayed_ue_security_capability = UeSecurityCapability::of_5gs(0x80, 0x80);
    let command = SecurityModeCommand { replayed_ue_security_capability, ..security_mode_command() };
    assert_eq!(rejected_with(command), (GmmCause::UeSecurityCapabilitiesMismatch, "TS 24.501 5.4.2.3"));
}

#[test]
fn null_integrity_and_unknown_algorithms_are_refused() {
    for (ciphering, integrity, clause) in
        [(2, 0, "TS 24.501 5.4.2.3"), (3, 2, "TS 24.501 5.4.2.2"), (2, 3, "TS 24.501 5.4.2.2")]
    {
        let algorithms = NasSecurityAlgorithms { ciphering, integrity };
        let command = SecurityModeCommand { algorithms, ..security_mode_command() };
        assert_eq!(rejected_with(command), (GmmCause::SecurityModeRejectedUnspecified, clause));
    }
}

#[test]
fn an_unknown_key_set_is_refused() {
    let command = SecurityModeCommand { ng_ksi: NgKsi::Native(5), ..security_mode_command() };
    assert_eq!(rejected_with(command), (GmmCause::SecurityModeRejectedUnspecified, "TS 24.501 5.4.2.2"));
}

#[test]
fn a_command_with_a_wrong_mac_is_refused() {
    let mut pair = authenticated();
    let header = SecurityHeaderType::IntegrityProtectedWithNewContext;
    let mut octets = pair.protect(header, security_mode_command());
    octets[2] ^= 1;
    pair.give(&octets);
    let GmmMessage::SecurityModeReject(_) = pair.plain() else { panic!() };
    assert_eq!(pair.violation(), "TS 24.501 4.4.4.2");
}

#[test]
fn another_message_with_the_header_of_the_command_is_discarded() {
    let mut pair = authenticated();
    let header = SecurityHeaderType::IntegrityProtectedWithNewContext;
    let octets = pair.protect(header, registration_accept());
    pair.give(&octets);
    assert_eq!(pair.violation(), "TS 24.501 table 9.3.1");
    assert!(pair.sent.is_empty());
}

#[test]
fn the_initial_message_is_repeated_when_rinmr_asks_for_it() {
    let mut pair = Pair::new();
    pair.register();
    pair.release_connection();
    pair.input(Input::Register);
    pair.sent.clear();
    let challenge = pair.challenge(NgKsi::Native(1));
    pair.give_plain(challenge);
    pair.sent.clear();
    pair.new_context();
    let mut command = SecurityModeCommand { ng_ksi: NgKsi::Native(1), ..security_mode_command() };
    command.additional_security_information =
        Some(AdditionalSecurityInformation { retransmit_initial_nas_message: true, ..Default::default() });
    pair.give_security_mode_command(command);
    let (_, GmmMessage::SecurityModeComplete(complete)) = pair.protected() else { panic!() };
    let container = complete.nas_message_container.expect("the entire message");
    let GmmMessage::RegistrationRequest(request) = GmmMessage::decode(&container).unwrap() else { panic!() };
    assert!(request.requested_nssai.is_some(), "in clear and whole");
    pair.assert_clean();
}

#[test]
fn k_gnb_is_derived_from_the_count_of_security_mode_complete() {
    let mut pair = Pair::new();
    pair.register();
    let k_amf = pair.k_amf.clone().unwrap();
    let k_gnb = pith_crypto::kdf::k_gnb(&k_amf, 0, pith_crypto::kdf::AccessType::ThreeGpp);
    let capabilities = pith_ngap::SecurityCapabilities {
        nr_encryption: 0xc000,
        nr_integrity: 0xc000,
        eutra_encryption: 0xc000,
        eutra_integrity: 0xc000,
    };
    pair.input(Input::SecurityActivated { k_gnb: *k_gnb.as_bytes(), capabilities });
    pair.assert_clean();
    pair.input(Input::SecurityActivated { k_gnb: [0; 32], capabilities });
    assert_eq!(pair.violation(), "TS 33.501 6.8.1.2.2");
    let capabilities = pith_ngap::SecurityCapabilities { nr_integrity: 0x6000, ..capabilities };
    pair.input(Input::SecurityActivated { k_gnb: *k_gnb.as_bytes(), capabilities });
    assert_eq!(pair.violation(), "TS 38.413 9.3.1.86");
}
