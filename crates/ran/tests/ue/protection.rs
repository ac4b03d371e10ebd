//! Which downlink messages a UE processes (TS 24.501 4.4.4.2, 4.4.5, clause 7).

use crate::network::*;
use pith_nas::gmm::{ConfigurationUpdateCommand, DeregistrationAcceptUeOriginating, RegistrationReject};
use pith_nas::ie::ConfigurationUpdateIndication;
use pith_nas::{GmmCause, GmmMessage, SecurityHeaderType};
use pith_ran::ue::{Input, State};

#[test]
fn a_replayed_message_is_discarded() {
    let mut pair = Pair::new();
    pair.register();
    let octets =
        pair.protect(SecurityHeaderType::IntegrityProtectedAndCiphered, ConfigurationUpdateCommand::new());
    pair.give(&octets);
    pair.assert_clean();
    pair.give(&octets);
    assert_eq!(pair.violation(), "TS 24.501 4.4.3.2");
}

#[test]
fn a_message_whose_mac_is_wrong_is_discarded() {
    let mut pair = Pair::new();
    pair.register();
    let mut command = ConfigurationUpdateCommand::new();
    command.indication = Some(ConfigurationUpdateIndication { acknowledgement: true, ..Default::default() });
    let mut octets = pair.protect(SecurityHeaderType::IntegrityProtectedAndCiphered, command);
    *octets.last_mut().unwrap() ^= 1;
    pair.give(&octets);
    assert_eq!(pair.violation(), "TS 24.501 4.4.4.2");
    assert!(pair.sent.is_empty());
}

#[test]
fn counts_may_skip_but_not_decrease() {
    let mut pair = Pair::new();
    pair.register();
    pair.security.as_mut().unwrap().skip_to_send(300);
    pair.give_ciphered(ConfigurationUpdateCommand::new());
    assert_eq!(pair.violation(), "TS 24.501 4.4.4.2", "more than 256 further is out of reach");
    let mut pair = Pair::new();
    pair.register();
    pair.security.as_mut().unwrap().skip_to_send(200);
    pair.give_ciphered(ConfigurationUpdateCommand::new());
    pair.security.as_mut().unwrap().skip_to_send(200);
    pair.give_ciphered(ConfigurationUpdateCommand::new());
    pair.assert_clean();
}

#[test]
fn plain_messages_after_security_activation_are_discarded() {
    let mut pair = Pair::new();
    pair.secure();
    pair.give_plain(RegistrationReject::new(GmmCause::IllegalUe));
    assert_eq!(pair.violation(), "TS 24.501 4.4.4.2");
    assert!(matches!(pair.ue.state(), State::AwaitingRegistrationAccept(_)));
}

#[test]
fn plain_messages_that_are_not_on_the_list_are_discarded() {
    let mut pair = Pair::new();
    pair.input(Input::Register);
    pair.give_plain(registration_accept());
    assert_eq!(pair.violation(), "TS 24.501 4.4.4.2");
    for code in [76, 78, 81, 82] {
        pair.give_plain(RegistrationReject::new(GmmCause::from_code(code)));
        assert_eq!(pair.violation(), "TS 24.501 4.4.4.2");
    }
    assert!(matches!(pair.ue.state(), State::AwaitingRegistrationAccept(_)));
}

#[test]
fn a_message_that_is_not_ciphered_is_discarded_once_ciphering_has_begun() {
    let mut pair = Pair::new();
    pair.secure();
    let octets = pair.protect(SecurityHeaderType::IntegrityProtected, registration_accept());
    pair.give(&octets);
    assert_eq!(pair.violation(), "TS 24.501 4.4.5");
    assert!(matches!(pair.ue.state(), State::AwaitingRegistrationAccept(_)));
}

#[test]
fn the_header_of_security_mode_complete_is_not_for_downlink() {
    let mut pair = Pair::new();
    pair.secure();
    let header = SecurityHeaderType::IntegrityProtectedAndCipheredWithNewContext;
    let octets = pair.protect(header, registration_accept());
    pair.give(&octets);
    assert_eq!(pair.violation(), "TS 24.501 4.4.5");
}

#[test]
fn a_protected_message_without_any_context_is_discarded() {
    let mut sender = Pair::new();
    sender.register();
    let octets = sender.protect(SecurityHeaderType::IntegrityProtectedAndCiphered, registration_accept());
    let mut pair = Pair::new();
    pair.input(Input::Register);
    pair.give(&octets);
    assert_eq!(pair.violation(), "TS 24.501 4.4.2.5");
}

#[test]
fn malformed_octets_are_violations_and_never_panic() {
    let mut pair = Pair::new();
    pair.register();
    let octets = pair.protect(SecurityHeaderType::IntegrityProtectedAndCiphered, registration_accept());
    for length in 0..octets.len() {
        pair.give(&octets[..length]);
        assert_eq!(pair.violations.drain(..).count(), 1, "{length} octets");
    }
    pair.give(&[0x2e, 5, 1, 0xc2, 0]);
    assert_eq!(pair.violation(), "TS 24.501 4.4.4.2");
    pair.give(&[0x07, 0x41, 0]);
    assert_eq!(pair.violation(), "TS 24.501 7.2");
    assert!(pair.sent.is_empty());
}

#[test]
fn unknown_message_types_get_status_97() {
    let mut pair = Pair::new();
    pair.register();
    let security = pair.security.as_mut().unwrap();
    let octets =
        security.protect(SecurityHeaderType::IntegrityProtectedAndCiphered, &[0x7e, 0, 0x7f]).unwrap();
    pair.give(&octets);
    assert_eq!(pair.violation(), "TS 24.501 7.4");
    let GmmMessage::GmmStatus(status) = pair.ciphered() else { panic!() };
    assert_eq!(status.cause, GmmCause::MessageTypeNonExistentOrNotImplemented);
}

#[test]
fn a_missing_mandatory_ie_gets_status_96() {
    let mut pair = Pair::new();
    pair.secure();
    let security = pair.security.as_mut().unwrap();
    let octets =
        security.protect(SecurityHeaderType::IntegrityProtectedAndCiphered, &[0x7e, 0, 0x42]).unwrap();
    pair.give(&octets);
    assert_eq!(pair.violation(), "TS 24.501 7.5.1");
    let GmmMessage::GmmStatus(status) = pair.ciphered() else { panic!() };
    assert_eq!(status.cause, GmmCause::InvalidMandatoryInformation);
}

#[test]
fn ies_out_of_sequence_are_noted() {
    let mut pair = Pair::new();
    pair.secure();
    let mut octets = vec![0x7e, 0, 0x42, 1, 1, 0x15, 2, 1, 1];
    octets.extend([0x77, 0, 11, 0xf2, 0x99, 0xf9, 0x07, 2, 0, 0x40, 0, 0, 0, 1]);
    octets.extend([0x54, 7, 0, 0x99, 0xf9, 0x07, 0, 0, 1]);
    let security = pair.security.as_mut().unwrap();
    let octets = security.protect(SecurityHeaderType::IntegrityProtectedAndCiphered, &octets).unwrap();
    pair.give(&octets);
    let clauses: Vec<_> = pair.violations.iter().map(|violation| violation.clause).collect();
    assert_eq!(clauses, ["TS 24.501 7.6.2", "TS 24.501 7.6.2"]);
}

#[test]
fn messages_in_idle_are_ignored() {
    let mut pair = Pair::new();
    pair.give_plain(DeregistrationAcceptUeOriginating::new());
    assert_eq!(pair.violation(), "TS 24.501 5.3.1");
}
