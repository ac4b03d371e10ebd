//! Conformance test sets of all algorithms, and properties of the types with their keys.
//!
//! The test sets have lengths in bits, NAS in octets: a set that ends within an octet is ciphered completely
//! and compared up to its last bit, and its MAC is computed below the octet interface.

use proptest::prelude::*;

use super::*;
use crate::keys::{KNasEnc, KNasInt};
use crate::vectors::{Set, sets};

fn direction(set: &mut Set) -> Direction {
    match set.text() {
        "0" => Direction::Uplink,
        _ => Direction::Downlink,
    }
}

/// The message inputs, which follow the key.
fn input(set: &mut Set) -> MessageInput {
    MessageInput { count: set.number() as u32, bearer: set.number() as u8, direction: direction(set) }
}

/// Clears all bits after the first `bits` bits.
fn cut(mut octets: Vec<u8>, bits: usize) -> Vec<u8> {
    octets.truncate(bits.div_ceil(8));
    if let (Some(last), 1..) = (octets.last_mut(), bits % 8) {
        *last &= 0xff << (8 - bits % 8);
    }
    octets
}

fn check_ciphering(algorithm: CipheringAlgorithm, file: &'static str) -> usize {
    sets(file)
        .map(|mut set| {
            let (name, key): (_, KNasEnc) = (set.text(), set.value());
            let (input, bits) = (input(&mut set), set.value());
            let (plain, expected) = (set.octets(), set.octets());

            let cipher = NasCipher::new(algorithm, &key);
            let mut octets = plain.clone();
            cipher.apply(input, &mut octets);
            assert_eq!(cut(octets.clone(), bits), cut(expected, bits), "{algorithm:?} set {name}");
            cipher.apply(input, &mut octets);
            assert_eq!(octets, plain, "{algorithm:?} set {name}");
        })
        .count()
}

#[test]
fn nea1_passes_its_sets() {
    assert_eq!(check_ciphering(CipheringAlgorithm::Nea1, include_str!("../../vectors/eea1.txt")), 5);
}

#[test]
fn nea2_passes_its_sets() {
    assert_eq!(check_ciphering(CipheringAlgorithm::Nea2, include_str!("../../vectors/eea2.txt")), 6);
}

#[test]
fn nea3_passes_its_sets() {
    assert_eq!(check_ciphering(CipheringAlgorithm::Nea3, include_str!("../../vectors/eea3.txt")), 5);
}

#[test]
fn nia1_passes_its_sets() {
    let count = sets(include_str!("../../vectors/eia1.txt")).map(|mut set| {
        let (name, key): (_, KNasInt) = (set.text(), set.value());
        let (input, bits) = (input(&mut set), set.value());
        let (message, expected): (_, [u8; 4]) = (set.octets(), set.array());
        let fresh = u32::from(input.bearer) << 27;
        let mac = uea2_uia2::uia2(key.as_bytes(), input.count, fresh, input.direction, &message, bits);
        assert_eq!(mac, expected, "set {name}");
        if bits % 8 == 0 {
            let mac = NasMac::new(IntegrityAlgorithm::Nia1, &key).mac(input, &message);
            assert_eq!(mac, expected, "set {name}");
        }
    });
    assert_eq!(count.count(), 6);
}

#[test]
fn uia2_passes_its_sets() {
    let count = sets(include_str!("../../vectors/uia2.txt")).map(|mut set| {
        let (name, key): (_, [u8; 16]) = (set.text(), set.array());
        let (count, fresh) = (set.number() as u32, set.number() as u32);
        let (direction, bits) = (direction(&mut set), set.value());
        let message = set.octets();
        let mac = uea2_uia2::uia2(&key, count, fresh, direction, &message, bits);
        assert_eq!(mac, set.array(), "set {name}");
    });
    assert_eq!(count.count(), 6);
}

#[test]
fn nia2_passes_its_sets() {
    let count = sets(include_str!("../../vectors/eia2.txt")).map(|mut set| {
        let (name, key): (_, KNasInt) = (set.text(), set.value());
        let (input, _bits) = (input(&mut set), set.text());
        let mac = NasMac::new(IntegrityAlgorithm::Nia2, &key);
        let message = set.octets();
        assert_eq!(mac.mac(input, &message), set.array(), "set {name}");
        assert_eq!(mac.mac(input, &message), mac.clone().mac(input, &message), "set {name}");
    });
    assert_eq!(count.count(), 3);
}

#[test]
fn nia3_passes_its_sets() {
    let count = sets(include_str!("../../vectors/eia3.txt")).map(|mut set| {
        let (name, key): (_, [u8; 16]) = (set.text(), set.array());
        let (input, bits) = (input(&mut set), set.value());
        let message = set.octets();
        let mac = integrity::nia3(&key, input, &message, bits);
        assert_eq!(mac, set.array(), "set {name}");
    });
    assert_eq!(count.count(), 5);
}

/// TS 35.217 3.3 to 3.6.
#[test]
fn snow_3g_passes_its_sets() {
    let words = |hex: &str| -> [u32; 4] {
        let octets = hex::decode(hex).unwrap();
        std::array::from_fn(|i| u32::from_be_bytes(octets[4 * i..4 * i + 4].try_into().unwrap()))
    };
    let generator = |key, iv| snow3g::Snow3g::new(words(key), words(iv));
    for (key, iv, expected) in [
        ("2bd6459f82c5b300952c49104881ff48", "ea024714ad5c4d84df1f9b251c0bf45f", [0xabee_9704, 0x7ac3_1373]),
        ("8ce33e2cc3c0b5fc1f3de8a6dc66b1f3", "d3c5d592327fb11cde551988ceb2f9b7", [0xeff8_a342, 0xf751_480f]),
        ("4035c6680af8c6d1a8ff8667b1714013", "62a540981ba6f9b74592b0e78690f71b", [0xa8c8_74a9, 0x7ae7_c4f8]),
    ] {
        let mut snow = generator(key, iv);
        assert_eq!([snow.next_word(), snow.next_word()], expected);
    }
    let mut snow = generator("0ded7263109cf92e3352255a140e0f76", "6b68079a41a7c4c91befd79f7fdcc233");
    let stream: Vec<u32> = (0..2500).map(|_| snow.next_word()).collect();
    assert_eq!(stream[..3], [0xd712_c05c, 0xa937_c2a6, 0xeb7e_aae3]);
    assert_eq!(stream[2499], 0x9c0d_b3aa);
}

#[test]
fn null_algorithms_change_nothing_and_give_zeroes() {
    let input = MessageInput { count: 1, bearer: 1, direction: Direction::Uplink };
    let mut octets = *b"registration";
    NasCipher::new(CipheringAlgorithm::Nea0, &KNasEnc::new([1; 16])).apply(input, &mut octets);
    assert_eq!(&octets, b"registration");
    let mac = NasMac::new(IntegrityAlgorithm::Nia0, &KNasInt::new([1; 16]));
    assert_eq!(mac.mac(input, &octets), [0; 4]);
}

#[test]
fn the_receiver_does_not_check_the_mac_of_nia0_and_checks_all_others() {
    let input = MessageInput { count: 1, bearer: 1, direction: Direction::Uplink };
    for identity in 0..4 {
        let algorithm = IntegrityAlgorithm::try_from(identity).unwrap();
        let mac = NasMac::new(algorithm, &KNasInt::new([1; 16]));
        let mut wrong = mac.mac(input, b"registration");
        wrong[3] ^= 1;
        assert_eq!(mac.verify(input, b"registration", wrong), identity == 0);
    }
}

#[test]
fn identities_beyond_three_are_unknown() {
    for identity in 0..4 {
        assert_eq!(IntegrityAlgorithm::try_from(identity).map(|a| a as u8), Ok(identity));
        assert_eq!(CipheringAlgorithm::try_from(identity).map(|a| a as u8), Ok(identity));
    }
    assert_eq!(IntegrityAlgorithm::try_from(4), Err(UnknownAlgorithm(4)));
    assert_eq!(CipheringAlgorithm::try_from(255), Err(UnknownAlgorithm(255)));
}

#[test]
fn a_value_names_its_algorithm() {
    for identity in 0..4 {
        let integrity = IntegrityAlgorithm::try_from(identity).unwrap();
        let ciphering = CipheringAlgorithm::try_from(identity).unwrap();
        assert_eq!(NasMac::new(integrity, &KNasInt::new([0; 16])).algorithm(), integrity);
        assert_eq!(NasCipher::new(ciphering, &KNasEnc::new([0; 16])).algorithm(), ciphering);
    }
}

fn any_input() -> impl Strategy<Value = MessageInput> {
    (any::<u32>(), 0u8..32, any::<bool>()).prop_map(|(count, bearer, down)| MessageInput {
        count,
        bearer,
        direction: if down { Direction::Downlink } else { Direction::Uplink },
    })
}

proptest! {
    #[test]
    fn every_input_enters_the_mac(algorithm in 1u8..4, key: [u8; 16], input in any_input(), message: Vec<u8>) {
        let mac = NasMac::new(algorithm.try_into().unwrap(), &KNasInt::new(key));
        let given = mac.mac(input, &message);
        prop_assert!(mac.verify(input, &message, given));

        let turned = match input.direction {
            Direction::Uplink => Direction::Downlink,
            Direction::Downlink => Direction::Uplink,
        };
        let others = [
            MessageInput { count: input.count ^ 1, ..input },
            MessageInput { bearer: input.bearer ^ 1, ..input },
            MessageInput { direction: turned, ..input },
        ];
        for other in others {
            prop_assert_ne!(mac.mac(other, &message), given);
        }
        let longer = [&message[..], &[0]].concat();
        prop_assert_ne!(mac.mac(input, &longer), given);
    }

    #[test]
    fn deciphering_is_ciphering(algorithm in 0u8..4, key: [u8; 16], input in any_input(), message: Vec<u8>) {
        let cipher = NasCipher::new(algorithm.try_into().unwrap(), &KNasEnc::new(key));
        let mut octets = message.clone();
        cipher.apply(input, &mut octets);
        cipher.apply(input, &mut octets);
        prop_assert_eq!(octets, message);
    }

    #[test]
    fn the_key_stream_of_a_longer_message_begins_alike(algorithm in 1u8..4, key: [u8; 16], input in any_input(), cut in 0usize..70) {
        let cipher = NasCipher::new(algorithm.try_into().unwrap(), &KNasEnc::new(key));
        let (mut long, mut short) = (vec![0; 70], vec![0; cut]);
        cipher.apply(input, &mut long);
        cipher.apply(input, &mut short);
        prop_assert_eq!(&long[..cut], &short[..]);
    }
}
