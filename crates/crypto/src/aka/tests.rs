//! Tests of both sides of AKA, with the subscriber of TS 35.208 test set 1 and one of TUAK.

use proptest::prelude::*;

use super::*;
use crate::algorithm::ResLength;
use crate::keys::{SubscriberKey, Topc};
use crate::milenage::Milenage;
use crate::sqn::UsimSequence;
use crate::tuak::{Tuak, TuakKey};

fn milenage() -> Algorithm {
    let k = "465b5ce8b199b49faa5f0a2ee238a6bc".parse().unwrap();
    let opc = "cd63cb71954a9f4e48a5994e37a02baf".parse().unwrap();
    Algorithm::Milenage(Milenage::new(&k, &opc))
}

fn tuak(res: ResLength) -> Algorithm {
    let k = TuakKey::Bits128(SubscriberKey::new([0x11; 16]));
    Algorithm::Tuak(Tuak::new(k, Topc::new([0x22; 32]), 1), res)
}

fn rand() -> Rand {
    "23553cbe9637a89d218ae64dae47bf35".parse().unwrap()
}

const AMF: ManagementField = ManagementField::new([0x80, 0x00]);

#[test]
fn the_vector_of_test_set_1_carries_its_functions_outputs() {
    let amf = "b9b9".parse().unwrap();
    let vector = generate(&milenage(), rand(), Sqn::new(0xff9b_b4d0_b607), amf);
    // SQN xor AK, AMF, f1.
    assert_eq!(vector.autn.to_hex(), concat!("55f328b43577", "b9b9", "4a9ffac354dfafb3"));
    assert_eq!(hex::encode(vector.xres.as_bytes()), "a54211d5e3ba50bf");
}

#[test]
fn a_challenge_changed_anywhere_fails_its_mac() {
    for algorithm in [milenage(), tuak(ResLength::Bits64)] {
        let vector = generate(&algorithm, rand(), Sqn::new(32), AMF);
        for at in 0..16 {
            let mut autn = *vector.autn.as_bytes();
            autn[at] ^= 0x10;
            let checked = check_challenge(&algorithm, &vector.rand, &Autn::new(autn));
            assert_eq!(checked, Err(MacFailure), "octet {at}");
        }
    }
}

#[test]
fn auts_changed_anywhere_fails_its_mac() {
    let auts = auts(&milenage(), &rand(), Sqn::new(0x1234));
    for at in 0..14 {
        let mut changed = *auts.as_bytes();
        changed[at] ^= 0x10;
        let checked = check_auts(&milenage(), &rand(), &Auts::new(changed));
        assert_eq!(checked, Err(MacFailure), "octet {at}");
    }
}

#[test]
fn a_usim_ahead_of_the_home_network_resynchronises_it() {
    let algorithm = milenage();
    let mut usim = UsimSequence::starting_at(Sqn::new(0x5000));
    let home = Sqn::new(0x20);

    let stale = generate(&algorithm, rand(), home.next(), AMF);
    let challenge = check_challenge(&algorithm, &stale.rand, &stale.autn).unwrap();
    let failure = usim.accept(challenge.sqn).unwrap_err();
    let auts = auts(&algorithm, &stale.rand, failure.sqn_ms);

    let sqn_ms = check_auts(&algorithm, &stale.rand, &auts).unwrap();
    assert_eq!(sqn_ms, failure.sqn_ms);
    let home = home.after_resynchronisation(sqn_ms).next();
    let fresh = generate(&algorithm, rand(), home, AMF);
    let challenge = check_challenge(&algorithm, &fresh.rand, &fresh.autn).unwrap();
    assert_eq!(usim.accept(challenge.sqn), Ok(()));
}

#[test]
fn tuak_res_has_the_requested_length() {
    let lengths = [(ResLength::Bits32, 4), (ResLength::Bits64, 8), (ResLength::Bits128, 16)];
    for (length, octets) in lengths {
        let vector = generate(&tuak(length), rand(), Sqn::new(1), AMF);
        assert_eq!(vector.xres.as_bytes().len(), octets);
    }
}

proptest! {
    #[test]
    fn the_usim_reads_the_contents_of_a_vector(rand: [u8; 16], sqn in 0u64..1 << 48, amf: [u8; 2], with_tuak: bool) {
        let algorithm = if with_tuak { tuak(ResLength::Bits128) } else { milenage() };
        let vector = generate(&algorithm, Rand::new(rand), Sqn::new(sqn), ManagementField::new(amf));
        let challenge = check_challenge(&algorithm, &vector.rand, &vector.autn).unwrap();
        prop_assert_eq!(challenge.sqn, Sqn::new(sqn));
        prop_assert_eq!(challenge.management_field, ManagementField::new(amf));
        prop_assert_eq!(challenge.res, vector.xres);
        prop_assert_eq!((challenge.ck, challenge.ik), (vector.ck, vector.ik));
    }

    #[test]
    fn random_auts_fails(rand: [u8; 16], octets: [u8; 14]) {
        prop_assert_eq!(check_auts(&milenage(), &Rand::new(rand), &Auts::new(octets)), Err(MacFailure));
    }
}
