//! Derivation of K_AMF from CK and IK (TS 33.501 A.2 to A.7).

use sha2::{Digest, Sha256};

use super::{ck_ik, kdf};
use crate::aka::AuthenticationVector;
use crate::keys::{Autn, Ck, Emsk, HresStar, Ik, KAmf, KAusf, KSeaf, Rand, ResStar, part};

/// ABBA without security features to indicate (TS 33.501 A.7.1).
pub const ABBA: [u8; 2] = [0, 0];

/// A 5G home environment authentication vector (TS 33.501 6.1.3.2.0).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiveGHeAv {
    /// Random challenge.
    pub rand: Rand,
    /// Authentication token.
    pub autn: Autn,
    /// Expected response.
    pub xres_star: ResStar,
    /// K_AUSF, for the AUSF.
    pub k_ausf: KAusf,
}

/// Binds a vector to the serving network (TS 33.501 6.1.3.2.0 step 1).
pub fn five_g_he_av(vector: &AuthenticationVector, serving_network_name: &str) -> FiveGHeAv {
    let AuthenticationVector { rand, autn, xres, ck, ik } = vector;
    FiveGHeAv {
        rand: *rand,
        autn: *autn,
        xres_star: res_star(ck, ik, serving_network_name, rand, xres.as_bytes()),
        k_ausf: k_ausf(ck, ik, serving_network_name, autn),
    }
}

/// K_AUSF of 5G AKA (TS 33.501 A.2).
pub fn k_ausf(ck: &Ck, ik: &Ik, serving_network_name: &str, autn: &Autn) -> KAusf {
    let key = ck_ik(ck.as_bytes(), ik.as_bytes());
    KAusf::new(kdf(&*key, 0x6a, &[serving_network_name.as_bytes(), &autn.sqn_xor_ak()]))
}

/// K_AUSF of EAP-AKA': the first 256 bit of EMSK (TS 33.501 6.1.3.1).
pub fn k_ausf_from_emsk(emsk: &Emsk) -> KAusf {
    KAusf::new(part::<0, 32, 64>(emsk.as_bytes()))
}

/// CK' and IK', for EAP-AKA'; the access network identity of 5G is the serving network name
/// (TS 33.501 A.3, TS 33.402 A.2).
pub fn ck_ik_prime(ck: &Ck, ik: &Ik, access_network: &str, autn: &Autn) -> (Ck, Ik) {
    let key = ck_ik(ck.as_bytes(), ik.as_bytes());
    let out = kdf(&*key, 0x20, &[access_network.as_bytes(), &autn.sqn_xor_ak()]);
    (Ck::new(part::<0, 16, 32>(&out)), Ik::new(part::<16, 16, 32>(&out)))
}

/// RES* from RES in the UE, XRES* from XRES in the UDM (TS 33.501 A.4).
pub fn res_star(ck: &Ck, ik: &Ik, serving_network_name: &str, rand: &Rand, res: &[u8]) -> ResStar {
    let key = ck_ik(ck.as_bytes(), ik.as_bytes());
    let out = kdf(&*key, 0x6b, &[serving_network_name.as_bytes(), rand.as_bytes(), res]);
    ResStar::new(part::<16, 16, 32>(&out))
}

/// HRES* from RES* in the SEAF, HXRES* from XRES* in the AUSF (TS 33.501 A.5).
pub fn hres_star(rand: &Rand, res_star: &ResStar) -> HresStar {
    let hash = Sha256::new().chain_update(rand.as_bytes()).chain_update(res_star.as_bytes());
    HresStar::new(part::<16, 16, 32>(&hash.finalize().into()))
}

/// K_SEAF (TS 33.501 A.6).
pub fn k_seaf(k_ausf: &KAusf, serving_network_name: &str) -> KSeaf {
    KSeaf::new(kdf(k_ausf.as_bytes(), 0x6c, &[serving_network_name.as_bytes()]))
}

/// K_AMF. `identity` is the SUPI without `imsi-` or `nai-`: the IMSI's digits, or the NAI (TS 33.501 A.7.0).
pub fn k_amf(k_seaf: &KSeaf, identity: &str, abba: &[u8]) -> KAmf {
    KAmf::new(kdf(k_seaf.as_bytes(), 0x6d, &[identity.as_bytes(), abba]))
}
