//! Security protection, tested with messages of other stacks, and against an attacker.

use pith_crypto::keys::{KNasEnc, KNasInt};
use pith_crypto::nas::{CipheringAlgorithm, IntegrityAlgorithm};
use pith_nas::ie::NgKsi;
use pith_nas::security::{Algorithms, Connection, Envelope, NasCount};
use pith_nas::{NasSecurity, Role, SecurityError, SecurityHeaderType as Header};
use proptest::prelude::*;

fn context(role: Role, ia: u8, ea: u8) -> NasSecurity {
    let algorithms = Algorithms { integrity: ia.try_into().unwrap(), ciphering: ea.try_into().unwrap() };
    let (k_int, k_enc) = (KNasInt::from([1; 16]), KNasEnc::from([2; 16]));
    NasSecurity::new(role, Connection::ThreeGpp, algorithms, k_int, k_enc)
}

fn pair() -> (NasSecurity, NasSecurity) {
    (context(Role::Network, 2, 2), context(Role::Ue, 2, 2))
}

/// A context with those COUNTs, created through its stored form.
fn at(context: NasSecurity, next: u32, last: Option<u32>) -> NasSecurity {
    let mut stored = serde_json::to_value(&context).unwrap();
    stored["next_to_send"] = next.into();
    stored["last_received"] = last.into();
    serde_json::from_value(stored).unwrap()
}

#[test]
fn captured_messages_are_verified_and_reproduced_with_their_keys() {
    let mut seen = 0;
    for line in include_str!("data/captured.tsv").lines() {
        let fields: Vec<_> = line.split('\t').collect();
        let (Some(&direction), Some(count)) = (fields.get(1), fields.get(4).and_then(|c| c.parse().ok()))
        else {
            continue;
        };
        let algorithms =
            Algorithms { integrity: IntegrityAlgorithm::Nia2, ciphering: CipheringAlgorithm::Nea2 };
        let context = |role| {
            let (k_int, k_enc) = (fields[5].parse().unwrap(), fields[6].parse().unwrap());
            NasSecurity::new(role, Connection::ThreeGpp, algorithms, k_int, k_enc)
        };
        let (sender, receiver) = match direction {
            "downlink" => (Role::Network, Role::Ue),
            _ => (Role::Ue, Role::Network),
        };
        let (wire, plain) = (hex::decode(fields[7]).unwrap(), hex::decode(fields[8]).unwrap());
        let mut receiver = at(context(receiver), 0, u32::checked_sub(count, 1));
        let opened = receiver.unprotect(&wire).unwrap();
        assert_eq!((opened.plain, opened.count.value()), (plain.clone(), count));
        let sent = at(context(sender), count, None).protect(opened.header, &plain);
        assert_eq!(sent, Ok(wire));
        seen += 1;
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn a_replayed_message_is_refused_and_the_next_one_accepted() {
    let (mut network, mut ue) = pair();
    let first = ue.protect(Header::IntegrityProtectedAndCiphered, b"first").unwrap();
    let second = ue.protect(Header::IntegrityProtectedAndCiphered, b"second").unwrap();
    assert_eq!(network.unprotect(&first).unwrap().plain, b"first");
    assert_eq!(network.unprotect(&first), Err(SecurityError::IntegrityCheckFailed));
    assert_eq!(network.unprotect(&second).unwrap().plain, b"second");
    assert_eq!(network.unprotect(&first), Err(SecurityError::IntegrityCheckFailed));
}

#[test]
fn lost_messages_up_to_255_do_not_break_the_count() {
    let (mut network, mut ue) = pair();
    for lost in [0, 3, 200, 255, 255, 255] {
        for _ in 0..lost {
            network.protect(Header::IntegrityProtected, b"lost").unwrap();
        }
        let sent = network.protect(Header::IntegrityProtected, b"kept").unwrap();
        assert_eq!(ue.unprotect(&sent).unwrap().plain, b"kept");
    }
    assert_eq!(ue.last_received().map(NasCount::value), Some(3 + 200 + 3 * 255 + 5));
}

#[test]
fn an_outdated_context_recognises_messages_that_are_further_ahead() {
    let (mut ue, mut network) = pair();
    let message = |ue: &mut NasSecurity| ue.protect(Header::IntegrityProtected, b"sent").unwrap();
    for _ in 0..700 {
        message(&mut ue);
    }
    let later = message(&mut ue);
    assert_eq!(network.unprotect(&later), Err(SecurityError::IntegrityCheckFailed));
    assert_eq!(network.unprotect_ahead(&later, 1), Err(SecurityError::IntegrityCheckFailed));
    assert_eq!(network.last_received(), None, "a message that fails changes nothing");
    assert_eq!(network.unprotect_ahead(&later, 2).unwrap().count.value(), 700);
    assert_eq!(network.unprotect_ahead(&later, 100), Err(SecurityError::IntegrityCheckFailed), "replayed");
    let (ue, network) = (at(ue, NasCount::MAX.value(), None), &mut at(network, 0, Some(0xff_ff00)));
    let (mut ue, forged) = (ue, [0x7e, 1, 0, 0, 0, 0, 7, 1]);
    assert_eq!(network.unprotect_ahead(&forged, u16::MAX), Err(SecurityError::IntegrityCheckFailed));
    assert!(network.unprotect(&message(&mut ue)).is_ok(), "up to the last COUNT");
}

#[test]
fn the_last_count_is_used_once() {
    let mut network = at(context(Role::Network, 2, 2), 0xff_fffe, None);
    assert!(network.is_near_wrap());
    assert!(network.protect(Header::IntegrityProtected, b"").is_ok());
    assert!(network.protect(Header::IntegrityProtected, b"").is_ok());
    let refused = network.protect(Header::IntegrityProtected, b"");
    assert_eq!(refused, Err(SecurityError::CountExhausted));
    assert!(!context(Role::Network, 2, 2).is_near_wrap());
}

#[test]
fn a_stored_context_keeps_its_counts_and_a_take_over_skips_ahead() {
    let (mut network, mut ue) = pair();
    let sent = network.protect(Header::IntegrityProtected, b"before").unwrap();
    ue.unprotect(&sent).unwrap();
    let stored = serde_json::to_string(&network).unwrap();
    let mut moved: NasSecurity = serde_json::from_str(&stored).unwrap();
    moved.skip_to_send(16);
    assert_eq!(moved.next_to_send().map(NasCount::value), Some(17));
    let sent = moved.protect(Header::IntegrityProtected, b"after").unwrap();
    assert_eq!(ue.unprotect(&sent).unwrap().plain, b"after");
}

#[test]
fn a_container_is_ciphered_with_the_count_of_its_message() {
    let (mut network, mut ue) = pair();
    ue.skip_to_send(7);
    let mut container = b"the whole message".to_vec();
    ue.cipher_container(&mut container).unwrap();
    assert_ne!(container, b"the whole message");
    let sent = ue.protect(Header::IntegrityProtected, &container).unwrap();
    let mut opened = network.unprotect(&sent).unwrap();
    network.decipher_container(opened.count, &mut opened.plain);
    assert_eq!(opened.plain, b"the whole message");
}

#[test]
fn directions_do_not_mix() {
    let mut network = context(Role::Network, 2, 2);
    let sent = network.protect(Header::IntegrityProtected, b"down").unwrap();
    assert_eq!(network.unprotect(&sent), Err(SecurityError::IntegrityCheckFailed));
}

#[test]
fn only_what_is_not_ciphered_can_be_read_unverified() {
    let (mut network, _) = pair();
    let clear = network.protect(Header::IntegrityProtected, b"clear").unwrap();
    assert_eq!(Envelope::of(&clear).unwrap().unverified(), Some(&b"clear"[..]));
    let ciphered = network.protect(Header::IntegrityProtectedAndCiphered, b"x").unwrap();
    assert_eq!(Envelope::of(&ciphered).unwrap().unverified(), None);
}

#[test]
fn debug_hides_keys() {
    let shown = format!("{:?}", context(Role::Ue, 2, 2));
    assert!(!shown.contains("01, 01") && !shown.contains("0101"), "{shown}");
}

proptest! {
    #[test]
    fn every_algorithm_round_trips(
        ia in 0_u8..4, ea in 0_u8..4, count in 0_u32..0xff_ffff,
        header in 1_u8..5, plain in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let mut network = at(context(Role::Network, ia, ea), count, None);
        let mut ue = at(context(Role::Ue, ia, ea), 0, count.checked_sub(1));
        let sent = network.protect(Header::from_octet(header), &plain).unwrap();
        prop_assert_eq!(ue.unprotect(&sent).unwrap().plain, plain);
    }

    #[test]
    fn one_flipped_bit_fails_the_check(bit in 0_usize..27 * 8) {
        let (mut network, mut ue) = pair();
        let mut sent = network.protect(Header::IntegrityProtectedAndCiphered, &[7; 20]).unwrap();
        sent[bit / 8] ^= 1 << (bit % 8);
        // The MAC does not cover the spare half octet and the header type; a wrong type deciphers
        // to another message than was sent.
        match ue.unprotect(&sent) {
            Err(_) => prop_assert_eq!(ue.last_received(), None),
            Ok(opened) => prop_assert!(bit / 8 == 1 && (bit % 8 > 3 || opened.plain.len() == 20)),
        }
    }

    #[test]
    fn random_octets_never_panic(octets in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = context(Role::Ue, 2, 2).unprotect(&octets);
        let mut protected = vec![0x7e, 2];
        protected.extend(octets);
        let _ = context(Role::Ue, 1, 1).unprotect(&protected);
    }
}

/// The MAC is AES-CMAC of OpenSSL over COUNT 2^32-1, BEARER 1, DIRECTION 1, and the octets after it.
#[test]
fn the_container_of_a_handover_uses_up_one_count_and_has_the_mac_of_another() {
    let mut network = at(context(Role::Network, 2, 1), 0x1fe, Some(7));
    let container = network.handover_container(NgKsi::Native(5)).unwrap();
    assert_eq!(hex::encode(container.octets()), "9ddbc7c31205fe");
    assert_eq!(network.next_to_send().map(NasCount::value), Some(0x1ff));
    assert_eq!(network.last_received().map(NasCount::value), Some(7));
    let mut last = at(context(Role::Network, 2, 1), 0xff_ffff, None);
    assert!(last.handover_container(NgKsi::Native(5)).is_ok());
    assert_eq!(last.handover_container(NgKsi::Native(5)), Err(SecurityError::CountExhausted));
}
