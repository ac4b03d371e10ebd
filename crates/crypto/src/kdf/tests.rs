//! TS 33.501 Annex A has no test data. This chain starts from the outputs of TS 35.208 test set 1. Its values
//! were computed with Python's `hmac` over the S strings of Annex A; another implementation (oxirush-security
//! 0.3) yields the same values down to the first NH.

use super::*;
use crate::keys::{
    Autn, Ck, Emsk, HresStar, Ik, KAmf, KAusf, KGnb, KNasEnc, KNasInt, KSeaf, Nh, Rand, ResStar,
};
use crate::nas::{CipheringAlgorithm, Direction, IntegrityAlgorithm};

const SERVING_NETWORK: &str = "5G:mnc093.mcc208.3gppnetwork.org";
const K_AUSF: &str = "f2e35260f85194d4f891504d02111e56689ac23dd393bee3abbcc5bfbc013ef9";
const XRES_STAR: &str = "5cc9527f4d21c43bee83a15443acf1c4";
const HXRES_STAR: &str = "6970075e3c8245fdc2073003cf166279";
const K_SEAF: &str = "cfddde483bd1318a412e98870f556410905be4fb7500abed93ee16af71bbb3fa";
const K_AMF: &str = "9d63b519775a92ca861ca6a50d848fa8ebf160ea7b73735a85b33737e73c55b4";
const K_GNB: &str = "c18166e13cfde1dea842c708f6e0b3372b6896664df4e865c0c78bd270852005";
const NH: &str = "383c6b76bf2a99aa2ca4c5136d4122a2b942301f0b9e07439786939cd30c4a4b";
const NH_2: &str = "ab2e99ac759e44b2f31665b1593ac74dcf175b095956668d00a838a3f6505fb8";

fn key<K: std::str::FromStr<Err: std::fmt::Debug>>(hex: &str) -> K {
    hex.parse().unwrap()
}

fn k_amf_of_the_chain() -> KAmf {
    key(K_AMF)
}

/// TS 35.208 test set 1 as a vector: RAND, AUTN (whose MAC is not hashed), XRES, CK, IK.
fn vector() -> crate::aka::AuthenticationVector {
    let k = key("465b5ce8b199b49faa5f0a2ee238a6bc");
    let opc = key("cd63cb71954a9f4e48a5994e37a02baf");
    let milenage = crate::milenage::Milenage::new(&k, &opc);
    let algorithm = crate::Algorithm::Milenage(milenage);
    let rand: Rand = key("23553cbe9637a89d218ae64dae47bf35");
    crate::aka::generate(&algorithm, rand, crate::sqn::Sqn::new(0xff9b_b4d0_b607), key("b9b9"))
}

#[test]
fn the_home_environment_vector_is_bound_to_the_serving_network() {
    let vector = vector();
    let he_av = five_g_he_av(&vector, SERVING_NETWORK);
    assert_eq!(he_av.k_ausf, key::<KAusf>(K_AUSF));
    assert_eq!(he_av.xres_star, key::<ResStar>(XRES_STAR));
    assert_eq!((he_av.rand, he_av.autn), (vector.rand, vector.autn));

    let elsewhere = five_g_he_av(&vector, "5G:mnc094.mcc208.3gppnetwork.org");
    assert_ne!(elsewhere.k_ausf, he_av.k_ausf);
    assert_ne!(elsewhere.xres_star, he_av.xres_star);
}

#[test]
fn hres_star_is_the_low_half_of_the_hash() {
    let rand = key("23553cbe9637a89d218ae64dae47bf35");
    assert_eq!(hres_star(&rand, &key(XRES_STAR)), key::<HresStar>(HXRES_STAR));
}

#[test]
fn the_anchor_key_and_k_amf_follow() {
    let anchor = k_seaf(&key(K_AUSF), SERVING_NETWORK);
    assert_eq!(anchor, key::<KSeaf>(K_SEAF));
    assert_eq!(k_amf(&anchor, "208930000000001", &ABBA), k_amf_of_the_chain());
}

#[test]
fn nas_keys_differ_by_use_and_algorithm() {
    let enc = |algorithm| k_nas_enc(&k_amf_of_the_chain(), algorithm);
    let int = |algorithm| k_nas_int(&k_amf_of_the_chain(), algorithm);
    assert_eq!(enc(CipheringAlgorithm::Nea0), key::<KNasEnc>("3ec4a8539ef7eca2d99cb2e94040e0dd"));
    assert_eq!(enc(CipheringAlgorithm::Nea1), key::<KNasEnc>("874026a8f0370d2b8f394e1be4e1ed9f"));
    assert_eq!(enc(CipheringAlgorithm::Nea2), key::<KNasEnc>("f47ae570afde775373d1b313d2176f54"));
    assert_eq!(enc(CipheringAlgorithm::Nea3), key::<KNasEnc>("bc5654598911de56bf309e90fb6251f7"));
    assert_eq!(int(IntegrityAlgorithm::Nia0), key::<KNasInt>("a98b443e4aa2cbd55447ad5ce063c1b0"));
    assert_eq!(int(IntegrityAlgorithm::Nia1), key::<KNasInt>("2e3b0fb34c7a99db3878f7b401c8dc2a"));
    assert_eq!(int(IntegrityAlgorithm::Nia2), key::<KNasInt>("28ddb5356880149b9fee22f2367522a4"));
    assert_eq!(int(IntegrityAlgorithm::Nia3), key::<KNasInt>("0c22096fec5e9d9b374ecb6ff2d36a53"));
}

#[test]
fn access_keys_take_the_uplink_count_and_the_access() {
    let k_amf = k_amf_of_the_chain();
    assert_eq!(k_gnb(&k_amf, 0, AccessType::ThreeGpp), key::<KGnb>(K_GNB));
    let n3iwf = "bed1c0794647428327cb09f701cbf737ef254baec77e6503888a540c9153c12c";
    assert_eq!(k_gnb(&k_amf, 0x102, AccessType::NonThreeGpp), key::<KGnb>(n3iwf));
}

#[test]
fn next_hops_form_a_chain_from_k_gnb() {
    let k_amf = k_amf_of_the_chain();
    let first = first_nh(&k_amf, &key(K_GNB));
    assert_eq!(first, key::<Nh>(NH));
    assert_eq!(next_nh(&k_amf, &first), key::<Nh>(NH_2));
}

#[test]
fn the_key_of_a_target_cell_comes_from_k_gnb_or_nh() {
    let horizontal = "b2fec2c816c9e99278726a7be5ba4f32b56ce41cd33759eaf729717790e52148";
    let vertical = "1dd52172a07406e39b6e37ba1cc69a418cae59e59efeb74d796efa1362faaf13";
    assert_eq!(k_ng_ran_star_horizontal(&key(K_GNB), 1007, 632_628), key::<KGnb>(horizontal));
    assert_eq!(k_ng_ran_star_vertical(&key(NH), 1007, 632_628), key::<KGnb>(vertical));
}

#[test]
fn k_amf_prime_depends_on_the_direction() {
    let up = "448df78ba8940d5ad225bd91f80100d8e593274242fe5ea4e5d73da073c0a7af";
    let down = "475785149ec23cb6ac5b93bba0ca17b58a816f481d91ab49d3d87ce3a87c069b";
    let prime = |direction| k_amf_prime(&k_amf_of_the_chain(), direction, 0x102);
    assert_eq!(prime(Direction::Uplink), key::<KAmf>(up));
    assert_eq!(prime(Direction::Downlink), key::<KAmf>(down));
}

#[test]
fn k_ausf_of_eap_aka_prime_is_the_first_half_of_emsk() {
    let mut emsk = [1; 64];
    emsk[32..].fill(2);
    assert_eq!(k_ausf_from_emsk(&Emsk::new(emsk)), KAusf::new([1; 32]));
}

#[test]
fn a_parameter_is_cut_where_its_length_field_ends() {
    let expected = "9abcea30cf6178938a0a77860f88c6157d882316db1486a1797f7168e8f698bb";
    assert_eq!(hex::encode(kdf(b"k", 1, &[&[b'a'; 65535]])), expected);
    assert_eq!(hex::encode(kdf(b"k", 1, &[&[b'a'; 65600]])), expected);
}

#[test]
fn ck_and_ik_prime_are_the_two_halves() {
    // RFC 9048 Appendix D case 1.
    let ck: Ck = key("5349fbe098649f948f5d2e973a81c00f");
    let ik: Ik = key("9744871ad32bf9bbd1dd5ce54e3e2e5a");
    let autn: Autn = key("bb52e91c747ac3ab2a5c23d15ee351d5");
    let (ck_prime, ik_prime) = ck_ik_prime(&ck, &ik, "WLAN", &autn);
    assert_eq!(ck_prime, key::<Ck>("0093962d0dd84aa5684b045c9edffa04"));
    assert_eq!(ik_prime, key::<Ik>("ccfc230ca74fcc96c0a5d61164f5a76c"));
}
