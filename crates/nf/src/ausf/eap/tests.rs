//! Packets of a UE, valid and corrupted.

use super::*;
use pith_crypto::keys::{Auts, KAut};

const K_AUT: [u8; 32] = [3; 32];
const IDENTIFIER: u8 = 7;

fn packet(subtype: u8, attributes: &[u8]) -> Vec<u8> {
    let length = (HEADER + attributes.len()) as u16;
    let [high, low] = length.to_be_bytes();
    let head = [code::RESPONSE, IDENTIFIER, high, low, method::AKA_PRIME, subtype, 0, 0];
    [&head[..], attributes].concat()
}

fn decode(packet: &[u8]) -> Result<Response<'_>, EapError> {
    Response::decode(packet, IDENTIFIER)
}

fn answer(res: &[u8]) -> Vec<u8> {
    let words = (4 + res.len()).div_ceil(4) as u8;
    let mut attributes = vec![attribute::AT_RES, words, 0, 8 * res.len() as u8];
    attributes.extend(res);
    attributes.resize(attributes.len().next_multiple_of(4), 0);
    attributes.extend([attribute::AT_MAC, 5, 0, 0]);
    attributes.extend([0; MAC]);
    let mut packet = packet(subtype::CHALLENGE, &attributes);
    let mac = pith_crypto::eap_aka_prime::at_mac(&KAut::new(K_AUT), &packet);
    let at = packet.len() - MAC;
    packet[at..].copy_from_slice(&mac);
    packet
}

#[test]
fn res_of_4_to_16_octets_comes_with_a_mac_that_covers_the_packet() {
    for length in 4..=16 {
        let res = vec![9; length];
        let packet = answer(&res);
        let Ok(Response::Challenge { res: found, mac }) = decode(&packet) else { panic!("{packet:02x?}") };
        assert_eq!(found, res);
        assert!(mac.is_right(&KAut::new(K_AUT)));
        assert!(!mac.is_right(&KAut::new([4; 32])));
        for at in 0..packet.len() {
            let mut spoiled = packet.clone();
            spoiled[at] ^= 0x80;
            if let Ok(Response::Challenge { mac, .. }) = decode(&spoiled) {
                assert!(!mac.is_right(&KAut::new(K_AUT)), "octet {at}");
            }
        }
    }
}

#[test]
fn a_res_of_another_length_is_refused() {
    for length in [0, 1, 3, 17, 20] {
        let found = decode(&answer(&vec![9; length])).unwrap_err();
        assert_eq!(found, EapError::Attribute(attribute::AT_RES), "{length} octets");
    }
    let bits = packet(subtype::CHALLENGE, &[attribute::AT_RES, 2, 0, 33, 1, 2, 3, 4]);
    assert_eq!(decode(&bits), Err(EapError::Attribute(attribute::AT_RES)));
}

#[test]
fn each_type_of_response_is_recognised() {
    let auts = [&[attribute::AT_AUTS, 4][..], &[8; 14]].concat();
    let with_kdf = [&auts[..], &[attribute::AT_KDF, 1, 0, 1]].concat();
    let synchronization = Ok(Response::SynchronizationFailure(Auts::new([8; 14])));
    assert_eq!(decode(&packet(subtype::SYNCHRONIZATION_FAILURE, &auts)), synchronization);
    assert_eq!(decode(&packet(subtype::SYNCHRONIZATION_FAILURE, &with_kdf)), synchronization);
    assert_eq!(decode(&packet(subtype::AUTHENTICATION_REJECT, &[])), Ok(Response::AuthenticationReject));
    assert_eq!(decode(&packet(subtype::NOTIFICATION, &[])), Ok(Response::Notification));
    assert_eq!(decode(&packet(subtype::CLIENT_ERROR, &[22, 1, 0, 2])), Ok(Response::ClientError(2)));
    assert_eq!(decode(&packet(subtype::CHALLENGE, &[24, 1, 0, 2])), Ok(Response::KeyDerivation(2)));
    assert_eq!(decode(&[2, IDENTIFIER, 0, 6, method::NAK, 0]), Ok(Response::Nak));
}

#[test]
fn only_skippable_attributes_are_skipped() {
    assert_eq!(decode(&packet(subtype::NOTIFICATION, &[134, 1, 0, 0])), Ok(Response::Notification));
    let unknown = packet(subtype::NOTIFICATION, &[127, 1, 0, 0]);
    assert_eq!(decode(&unknown), Err(EapError::UnknownAttribute(127)));
    let twice = packet(subtype::CLIENT_ERROR, &[22, 1, 0, 2, 22, 1, 0, 3]);
    assert_eq!(decode(&twice), Err(EapError::Repeated(22)));
}

#[test]
fn invalid_lengths_are_refused() {
    assert_eq!(decode(&packet(subtype::CHALLENGE, &[3, 0, 0, 0])), Err(EapError::Length(8)));
    assert_eq!(decode(&packet(subtype::CHALLENGE, &[3, 255, 0, 0])), Err(EapError::Length(8)));
    assert_eq!(decode(&packet(subtype::CHALLENGE, &[24, 1, 0, 1, 3])), Err(EapError::Length(12)));
    assert_eq!(decode(&[2, IDENTIFIER, 0, 5, 50]), Err(EapError::NoResponse));
    assert_eq!(decode(&[2, IDENTIFIER, 0, 9, 50, 1, 0, 0]), Err(EapError::NoResponse));
    assert_eq!(decode(&[2, 8, 0, 5, 50]), Err(EapError::OtherIdentifier(8)));
    assert_eq!(decode(&[2, IDENTIFIER, 0, 5, 4]), Err(EapError::Type(4)));
}

/// Random corruptions and truncations of a valid packet are decoded or refused.
#[test]
fn no_packet_panics() {
    let mut rng = crate::kit::Rng::from_number(1);
    let whole = answer(&[9; 8]);
    for _ in 0..20_000 {
        let mut octets = whole.clone();
        let noise: [u8; 8] = rng.octets();
        octets[usize::from(noise[0]) % whole.len()] = noise[1];
        octets[HEADER + usize::from(noise[2]) % (whole.len() - HEADER)] = noise[3];
        octets.truncate(usize::from(noise[4]) % (whole.len() + 1));
        if noise[5] & 1 == 0 && octets.len() >= 4 {
            octets[3] = octets.len() as u8;
        }
        if let Ok(Response::Challenge { mac, .. }) = decode(&octets) {
            mac.is_right(&KAut::new(K_AUT));
        }
    }
}
