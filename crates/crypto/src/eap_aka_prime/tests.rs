//! RFC 9048 Appendix D.

use super::*;
use crate::kdf::ck_ik_prime;
use crate::keys::Autn;
use crate::vectors::sets;

#[test]
fn every_case_of_rfc_9048_holds() {
    let mut count = 0;
    for mut set in sets(include_str!("../../vectors/eap_aka_prime.txt")) {
        let (case, network) = (set.text(), set.text());
        let autn: Autn = set.value();
        let (ck, ik): (Ck, Ik) = (set.value(), set.value());
        let (ck_prime, ik_prime) = ck_ik_prime(&ck, &ik, network, &autn);
        assert_eq!(ck_prime, set.value(), "case {case}");
        assert_eq!(ik_prime, set.value(), "case {case}");

        let keys = keys(&ck_prime, &ik_prime, "0555444333222111");
        assert_eq!(keys.k_encr, set.value(), "case {case}");
        assert_eq!(keys.k_aut, set.value(), "case {case}");
        assert_eq!(keys.k_re, set.value(), "case {case}");
        assert_eq!(keys.msk, set.value(), "case {case}");
        assert_eq!(keys.emsk, set.value(), "case {case}");
        count += 1;
    }
    assert_eq!(count, 4);
}

/// The key of RFC 4231 test case 2 is too short for K_aut (32 octets); the value is from Python's hmac.
#[test]
fn at_mac_is_the_first_half_of_hmac_sha_256() {
    let k_aut = KAut::new([0x0b; 32]);
    let mac = at_mac(&k_aut, b"packet");
    assert_eq!(hex::encode(mac), "5de87606c038f8bf148dcf947cd788b4");
    assert!(check_at_mac(&k_aut, b"packet", &mac));
    assert!(!check_at_mac(&k_aut, b"packed", &mac));
    assert!(!check_at_mac(&k_aut, b"packet", &mac[..15]));
    assert!(!check_at_mac(&k_aut, b"packet", &[]));
}
