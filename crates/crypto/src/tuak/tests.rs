//! Tests with the six test sets of TS 35.233 6.3 to 6.8, with different lengths of key and outputs.

use super::*;
use crate::vectors::{Set, sets};

const SETS: &str = include_str!("../../vectors/tuak.txt");

/// A test set's inputs, up to TOPc.
struct Subscriber {
    tuak: Tuak,
    rand: Rand,
    sqn: Sqn,
    amf: ManagementField,
    /// Expected outputs, from f1 on.
    expected: Set,
}

fn subscriber(name: &str) -> Subscriber {
    let found = |set: &mut Set| set.text() == name;
    let mut set = sets(SETS).find_map(|mut set| found(&mut set).then_some(set)).unwrap();
    let iterations: u8 = set.value();
    let k = match set.text() {
        k if k.len() == 32 => TuakKey::Bits128(k.parse().unwrap()),
        k => TuakKey::Bits256(k.parse().unwrap()),
    };
    let (rand, sqn, amf) = (set.value(), Sqn::from_bytes(set.array()), set.value());
    let (top, topc): (Top, Topc) = (set.value(), set.value());
    assert_eq!(topc_from_top(&k, &top, iterations), topc);
    Subscriber { tuak: Tuak::new(k, topc, iterations), rand, sqn, amf, expected: set }
}

/// Checks a test set with these output lengths.
fn check<const MAC: usize, const RES: usize, const CK: usize, const IK: usize>(name: &str) {
    let Subscriber { tuak, rand, sqn, amf, mut expected } = subscriber(name);
    assert_eq!(tuak.f1::<MAC>(&rand, sqn, amf), expected.array());
    assert_eq!(tuak.f1_star::<MAC>(&rand, sqn, amf), expected.array());
    let response = tuak.f2345::<RES, CK, IK>(&rand);
    assert_eq!(response.res, expected.array());
    assert_eq!(*response.ck, expected.array());
    assert_eq!(*response.ik, expected.array());
    assert_eq!(response.ak, expected.array());
    assert_eq!(tuak.f5_star(&rand), expected.array());
}

#[test]
fn set_1_has_a_short_res() {
    check::<8, 4, 16, 16>("1");
}

#[test]
fn set_2_has_a_key_of_256_bit() {
    check::<16, 8, 16, 16>("2");
}

#[test]
fn set_3_has_a_mac_and_ik_of_256_bit() {
    check::<32, 8, 16, 32>("3");
}

#[test]
fn set_4_has_a_res_of_128_bit() {
    check::<16, 16, 16, 16>("4");
}

#[test]
fn set_5_has_a_res_and_ck_of_256_bit() {
    check::<8, 32, 32, 16>("5");
}

#[test]
fn set_6_permutes_twice() {
    check::<32, 32, 32, 32>("6");
}

#[test]
fn no_iteration_counts_as_one() {
    let set = subscriber("1");
    let none = Tuak::new(set.tuak.k.clone(), set.tuak.topc.clone(), 0);
    assert_eq!(none.f5_star(&set.rand), set.tuak.f5_star(&set.rand));
}
