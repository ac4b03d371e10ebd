//! Primary authentication by EAP-AKA' (TS 24.501 5.4.1.2, RFC 9048); the tests encode and decode the packets.

use crate::network::*;
use pith_crypto::aka::{self, AuthenticationVector};
use pith_crypto::eap_aka_prime::{self, Keys};
use pith_crypto::kdf;
use pith_crypto::keys::Rand;
use pith_crypto::sqn::Sqn;
use pith_nas::gmm::{
    AuthenticationReject, AuthenticationRequest, AuthenticationResponse, AuthenticationResult,
};
use pith_nas::ie::NgKsi;
use pith_nas::{GmmCause, GmmMessage};
use pith_ran::ue::{Input, State};

const CHALLENGE: u8 = 1;
const AUTHENTICATION_REJECT: u8 = 2;
const SYNCHRONIZATION_FAILURE: u8 = 4;
const SUCCESS: [u8; 4] = [3, 7, 0, 4];

fn vector(sqn: u64) -> AuthenticationVector {
    aka::generate(&algorithm(), Rand::new([9; 16]), Sqn::new(sqn), "8000".parse().unwrap())
}

fn keys(vector: &AuthenticationVector) -> Keys {
    let (ck, ik) = kdf::ck_ik_prime(&vector.ck, &vector.ik, SNN, &vector.autn);
    eap_aka_prime::keys(&ck, &ik, IMSI)
}

/// EAP-Request/AKA'-Challenge for that network name and key derivation function.
fn request(vector: &AuthenticationVector, network_name: &str, kdf: u8) -> Vec<u8> {
    request_of(7, vector, network_name, kdf)
}

fn request_of(identifier: u8, vector: &AuthenticationVector, network_name: &str, kdf: u8) -> Vec<u8> {
    let mut attributes = vec![1, 5, 0, 0];
    attributes.extend(vector.rand.as_bytes());
    attributes.extend([2, 5, 0, 0]);
    attributes.extend(vector.autn.as_bytes());
    attributes.extend([24, 1, 0, kdf]);
    let words = (4 + network_name.len()).div_ceil(4);
    attributes.extend([23, words as u8, 0, network_name.len() as u8]);
    attributes.extend(network_name.bytes());
    attributes.resize(attributes.len().next_multiple_of(4), 0);
    attributes.extend([11, 5, 0, 0]);
    let mac_at = 8 + attributes.len();
    attributes.extend([0; 16]);
    let mut packet = vec![1, identifier, 0, 8 + attributes.len() as u8, 50, CHALLENGE, 0, 0];
    packet.extend(attributes);
    let mac = eap_aka_prime::at_mac(&keys(vector).k_aut, &packet);
    packet[mac_at..].copy_from_slice(&mac);
    packet
}

fn give(pair: &mut Pair, packet: Vec<u8>) -> AuthenticationResponse {
    let mut message = AuthenticationRequest::new(NgKsi::Native(0), kdf::ABBA.to_vec());
    message.eap_message = Some(packet);
    pair.give_plain(message);
    let GmmMessage::AuthenticationResponse(response) = pair.plain() else {
        panic!("AUTHENTICATION RESPONSE")
    };
    response
}

fn registering() -> Pair {
    let mut pair = Pair::new();
    pair.input(Input::Register);
    pair.sent.clear();
    pair
}

/// Code, identifier and subtype of an EAP packet of AKA'.
fn head(packet: &[u8]) -> (u8, u8, u8) {
    assert_eq!((packet[3] as usize, packet[4]), (packet.len(), 50));
    (packet[0], packet[1], packet[5])
}

#[test]
fn a_challenge_is_answered_with_res_and_a_mac() {
    let mut pair = registering();
    let vector = vector(0x41);
    let response = give(&mut pair, request(&vector, SNN, 1)).eap_message.unwrap();
    assert_eq!(head(&response), (2, 7, CHALLENGE));
    assert_eq!(response[8..12], [3, 3, 0, 64], "AT_RES of 64 bits");
    assert_eq!(&response[12..20], vector.xres.as_bytes());
    let mut with_zero_mac = response.clone();
    let mac = with_zero_mac.split_off(24);
    with_zero_mac.extend([0; 16]);
    assert!(eap_aka_prime::check_at_mac(&keys(&vector).k_aut, &with_zero_mac, &mac));
    pair.assert_clean();
}

#[test]
fn success_in_security_mode_command_completes_it() {
    let mut pair = registering();
    let vector = vector(0x41);
    give(&mut pair, request(&vector, SNN, 1));
    let k_ausf = kdf::k_ausf_from_emsk(&keys(&vector).emsk);
    pair.k_amf = Some(kdf::k_amf(&kdf::k_seaf(&k_ausf, SNN), IMSI, &kdf::ABBA));
    pair.new_context();
    let mut command = security_mode_command();
    command.eap_message = Some(SUCCESS.to_vec());
    command.abba = Some(kdf::ABBA.to_vec());
    pair.give_security_mode_command(command);
    let (_, GmmMessage::SecurityModeComplete(_)) = pair.protected() else { panic!("SECURITY MODE COMPLETE") };
    pair.assert_clean();
}

#[test]
fn failure_in_security_mode_command_is_refused() {
    let mut pair = registering();
    let vector = vector(0x41);
    give(&mut pair, request(&vector, SNN, 1));
    let k_ausf = kdf::k_ausf_from_emsk(&keys(&vector).emsk);
    pair.k_amf = Some(kdf::k_amf(&kdf::k_seaf(&k_ausf, SNN), IMSI, &kdf::ABBA));
    pair.new_context();
    let mut command = security_mode_command();
    command.eap_message = Some(vec![4, 7, 0, 4]);
    pair.give_security_mode_command(command);
    let GmmMessage::SecurityModeReject(reject) = pair.plain() else { panic!("SECURITY MODE REJECT") };
    assert_eq!(reject.cause, GmmCause::SecurityModeRejectedUnspecified);
    assert_eq!(pair.violation(), "TS 24.501 5.4.2.2");
}

#[test]
fn a_used_sequence_number_is_a_synchronization_failure() {
    let mut pair = registering();
    give(&mut pair, request(&vector(0x41), SNN, 1));
    let response = give(&mut pair, request_of(8, &vector(0x41), SNN, 1)).eap_message.unwrap();
    assert_eq!(head(&response), (2, 8, SYNCHRONIZATION_FAILURE));
    assert_eq!(response[24..], [24, 1, 0, 1], "AT_KDF of the request");
    let auts: [u8; 14] = response[10..24].try_into().unwrap();
    assert_eq!(aka::check_auts(&algorithm(), &Rand::new([9; 16]), &auts.into()), Ok(Sqn::new(0x41)));
}

#[test]
fn a_wrong_network_name_key_derivation_autn_or_mac_is_rejected() {
    let mut spoiled = request(&vector(0x41), SNN, 1);
    *spoiled.last_mut().unwrap() ^= 1;
    let mut wrong_autn = request(&vector(0x41), SNN, 1);
    wrong_autn[47] ^= 1;
    let cases = [
        (request(&vector(0x41), "5G:mnc001.mcc001.3gppnetwork.org", 1), 1),
        (request(&vector(0x41), SNN, 2), 1),
        (spoiled, 1),
        (wrong_autn, 0),
    ];
    for (packet, violations) in cases {
        let mut pair = registering();
        let response = give(&mut pair, packet).eap_message.unwrap();
        assert_eq!(head(&response), (2, 7, AUTHENTICATION_REJECT));
        assert_eq!(pair.violations.len(), violations, "{:?}", pair.violations);
    }
}

#[test]
fn truncated_packets_are_noted_and_get_no_answer() {
    let whole = request(&vector(0x41), SNN, 1);
    for length in 4..whole.len() {
        let mut pair = registering();
        let mut message = AuthenticationRequest::new(NgKsi::Native(0), kdf::ABBA.to_vec());
        message.eap_message = Some(whole[..length].to_vec());
        pair.give_plain(message);
        assert!(pair.sent.is_empty(), "{length} octets");
        assert!(!pair.violations.is_empty(), "{length} octets");
    }
}

#[test]
fn a_retransmitted_request_gets_the_same_response() {
    let mut pair = registering();
    let packet = request(&vector(0x41), SNN, 1);
    let first = give(&mut pair, packet.clone()).eap_message.unwrap();
    let second = give(&mut pair, packet).eap_message.unwrap();
    assert_eq!(first, second);
    pair.assert_clean();
}

#[test]
fn a_failure_notification_is_acknowledged_and_the_reject_accepted() {
    let mut pair = registering();
    give(&mut pair, request(&vector(0x41), SNN, 1));
    let notification = vec![1, 8, 0, 12, 50, 12, 0, 0, 12, 1, 0x40, 0];
    let response = give(&mut pair, notification).eap_message.unwrap();
    assert_eq!(response, [2, 8, 0, 8, 50, 12, 0, 0]);
    let mut reject = AuthenticationReject::new();
    reject.eap_message = Some(vec![4, 8, 0, 4]);
    pair.give_plain(reject);
    pair.assert_clean();
    assert_eq!(pair.ue.state(), State::Deregistered);
}

#[test]
fn success_without_eap_success_is_refused() {
    let mut pair = registering();
    let vector = vector(0x41);
    give(&mut pair, request(&vector, SNN, 1));
    let k_ausf = kdf::k_ausf_from_emsk(&keys(&vector).emsk);
    pair.k_amf = Some(kdf::k_amf(&kdf::k_seaf(&k_ausf, SNN), IMSI, &kdf::ABBA));
    pair.new_context();
    pair.give_security_mode_command(security_mode_command());
    let GmmMessage::SecurityModeReject(_) = pair.plain() else { panic!("SECURITY MODE REJECT") };
    assert_eq!(pair.violation(), "TS 24.501 5.4.2.2");
}

#[test]
fn an_authentication_result_needs_an_authentication() {
    let mut pair = registering();
    pair.give_plain(AuthenticationResult::new(NgKsi::Native(0), SUCCESS.to_vec()));
    assert_eq!(pair.violation(), "TS 24.501 5.4.1.2.5");
}
