//! Tests with TS 33.501 Annex C.4, and with invalid input.

use proptest::prelude::*;

use super::*;

fn hex(text: &str) -> Vec<u8> {
    hex::decode(text).unwrap()
}

/// Private keys of the home network (C.4.3, C.4.4).
const PRIVATE_A: &str = "c53c22208b61860b06c62e5406a7b330c2b577aa5558981510d128247d38bd1d";
const PUBLIC_A: &str = "5a8d38864820197c3394b92613b20b91633cbd897119273bf8e4a6f4eec0a650";
const PRIVATE_B: &str = "f1ab1074477ebcc7f554ea1c5fc368b1616730155e0041ac447d6301975fecda";
const PUBLIC_B: &str = "0272da71976234ce833a6907425867b82e074d44ef907dfb4b3e21c1c2256ebcd1";
const PUBLIC_B_UNCOMPRESSED: &str = "0472da71976234ce833a6907425867b82e074d44ef907dfb4b3e21c1c2256ebcd1\
    5a7ded52fcbb097a4ed250e036c7b9c8c7004c4eedc4f068cd7bf8d3f900e3b4";

/// C.4.4.1: the ephemeral public key as an uncompressed point.
const EPHEMERAL_B_UNCOMPRESSED: &str = "049aab8376597021e855679a9778ea0b67396e68c66df32c0f41e9acca2da9b9d1\
    d1f44ea1c87aa7478b954537bde79951e748a43294a4f4cf86eaff1789c9c81f";

struct Set {
    profile: Profile,
    ephemeral_private: &'static str,
    plain_text: &'static str,
    output: &'static str,
}

/// C.4.3.1 and C.4.4.1 (IMSI), C.4.3.2 and C.4.4.2 (network specific identifier).
const SETS: [Set; 4] = [
    Set {
        profile: Profile::A,
        ephemeral_private: "c80949f13ebe61af4ebdbd293ea4f942696b9e815d7e8f0096bbf6ed7de62256",
        plain_text: "00012080f6",
        output: "b2e92f836055a255837debf850b528997ce0201cb82adfe4be1f587d07d8457d\
                 cb02352410cddd9e730ef3fa87",
    },
    Set {
        profile: Profile::A,
        ephemeral_private: "be9eff3e9f22a4b42a3d236e7a6c500b3f2e7e0c7449988ba800d664bf4fcd97",
        plain_text: "766572796c6f6e67757365726e616d6531",
        output: "977d8b2fdaa7b64aa700d04227d5b440630ea4ec50f9082273a26bb678c92222\
                 8e358a1582adb15322c10e515141d2039a12e1d7783a97f1ac",
    },
    Set {
        profile: Profile::B,
        ephemeral_private: "99798858a1dc6a2c68637149a4b1dbfd1fdff5addd62a2142f06699ed7602529",
        plain_text: "00012080f6",
        output: "039aab8376597021e855679a9778ea0b67396e68c66df32c0f41e9acca2da9b9d1\
                 46a33fc2716ac7dae96aa30a4d",
    },
    Set {
        profile: Profile::B,
        ephemeral_private: "90a5898bd29ffa3f261e00e980067c70a2b1b992a21f5b4fef6d4df69fe804ad",
        plain_text: "766572796c6f6e67757365726e616d6531",
        output: "03759bb22c563d9f4a6b3c1419e543fc2f39d6823f02a9d71162b39399218b244b\
                 be22d8b9f856a52ed381cd7eaf4cf2d5253cddc61a0a7882eb",
    },
];

fn private(profile: Profile) -> HomeNetworkPrivateKey {
    let octets = match profile {
        Profile::A => PRIVATE_A,
        Profile::B => PRIVATE_B,
    };
    HomeNetworkPrivateKey::new(profile, &hex(octets)).unwrap()
}

fn public(profile: Profile, octets: &str) -> HomeNetworkPublicKey {
    HomeNetworkPublicKey::new(profile, &hex(octets)).unwrap()
}

#[test]
fn the_annex_c4_keys_are_pairs() {
    assert_eq!(private(Profile::A).public_key(), Ok(public(Profile::A, PUBLIC_A)));
    assert_eq!(private(Profile::B).public_key(), Ok(public(Profile::B, PUBLIC_B)));
}

#[test]
fn annex_c4_scheme_outputs_are_deconcealed() {
    for set in &SETS {
        let plain_text = private(set.profile).deconceal(&hex(set.output));
        assert_eq!(plain_text, Ok(hex(set.plain_text)));
    }
}

#[test]
fn annex_c4_scheme_outputs_are_concealed() {
    for set in &SETS {
        let ephemeral = hex(set.ephemeral_private).try_into().unwrap();
        let key = private(set.profile).public_key().unwrap();
        assert_eq!(key.conceal(&ephemeral, &hex(set.plain_text)), Ok(hex(set.output)));
    }
}

#[test]
fn an_uncompressed_home_network_key_conceals_alike() {
    let set = &SETS[2];
    let ephemeral = hex(set.ephemeral_private).try_into().unwrap();
    let key = public(Profile::B, PUBLIC_B_UNCOMPRESSED);
    assert_eq!(key.conceal(&ephemeral, &hex(set.plain_text)), Ok(hex(set.output)));
}

#[test]
fn an_uncompressed_ephemeral_key_over_the_compressed_derivation_is_deconcealed() {
    let output = hex(&format!("{EPHEMERAL_B_UNCOMPRESSED}46a33fc2716ac7dae96aa30a4d"));
    assert_eq!(private(Profile::B).deconceal(&output), Ok(hex("00012080f6")));
}

#[test]
fn an_uncompressed_ephemeral_key_over_its_own_derivation_is_deconcealed() {
    let secret = hex("6c7e6518980025b982fbb2ff746e3c2e85a196d252099a7ad23ea7b4c0959cae");
    let mut output = hex(EPHEMERAL_B_UNCOMPRESSED);
    output.extend(ecies::seal(&secret, &output.clone(), &hex("00012080f6")));
    assert_eq!(private(Profile::B).deconceal(&output), Ok(hex("00012080f6")));
}

#[test]
fn another_home_network_key_sees_a_wrong_tag() {
    let other = HomeNetworkPrivateKey::new(Profile::A, &[0x42; 32]).unwrap();
    assert_eq!(other.deconceal(&hex(SETS[0].output)), Err(SuciError::MacMismatch));
}

#[test]
fn any_changed_octet_is_refused() {
    for set in &SETS {
        let output = hex(set.output);
        for at in 0..output.len() {
            let mut changed = output.clone();
            changed[at] ^= 1;
            assert!(private(set.profile).deconceal(&changed).is_err(), "octet {at}");
        }
    }
}

#[test]
fn a_short_output_is_too_short() {
    for set in &SETS {
        let (key, output) = (private(set.profile), hex(set.output));
        let plain = set.plain_text.len() / 2;
        for length in 0..output.len() - plain {
            assert_eq!(key.deconceal(&output[..length]), Err(SuciError::TooShort));
        }
    }
}

#[test]
fn invalid_and_small_order_points_are_refused() {
    let mut zero = vec![0; 32];
    zero.extend([0; 13]);
    assert_eq!(private(Profile::A).deconceal(&zero), Err(SuciError::InvalidEphemeralKey));

    for first in [0x00, 0x02, 0x04, 0x05, 0x06, 0x07] {
        let mut output = vec![1; 80];
        output[0] = first;
        let result = private(Profile::B).deconceal(&output);
        assert_eq!(result, Err(SuciError::InvalidEphemeralKey), "{first:02x}");
    }
}

#[test]
fn keys_of_another_length_are_refused() {
    assert!(HomeNetworkPrivateKey::new(Profile::A, &[1; 31]).is_err());
    assert!(HomeNetworkPrivateKey::new(Profile::B, &[0; 32]).is_err());
    assert!(HomeNetworkPublicKey::new(Profile::A, &[1; 33]).is_err());
    assert!(HomeNetworkPublicKey::new(Profile::B, &[2; 34]).is_err());
    assert!(HomeNetworkPublicKey::new(Profile::B, &[]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_concealed_is_deconcealed(ephemeral: [u8; 32], text: Vec<u8>, b: bool) {
        let key = private(if b { Profile::B } else { Profile::A });
        let output = key.public_key().unwrap().conceal(&ephemeral, &text);
        prop_assume!(output.is_ok());
        prop_assert_eq!(key.deconceal(&output.unwrap()), Ok(text));
    }

    #[test]
    fn random_octets_are_refused(mut output in proptest::collection::vec(any::<u8>(), 0..120), b: bool, first in 0u8..5) {
        if let (true, Some(octet)) = (b, output.first_mut()) {
            *octet = first;
        }
        let key = private(if b { Profile::B } else { Profile::A });
        prop_assert!(key.deconceal(&output).is_err());
    }
}
