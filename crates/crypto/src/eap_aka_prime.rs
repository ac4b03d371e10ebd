//! The key hierarchy and AT_MAC of EAP-AKA' (RFC 9048 3.3, 3.4).

use hmac::Mac;
use zeroize::Zeroizing;

use crate::kdf::hmac_sha256;
use crate::keys::{Ck, Emsk, Ik, KAut, KEncr, KRe, Msk, equal_in_constant_time, part};

/// MK = K_encr || K_aut || K_re || MSK || EMSK.
const MASTER_KEY: usize = 208;

/// The keys of a full authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// Encryption of AT_ENCR_DATA.
    pub k_encr: KEncr,
    /// Authentication of EAP packets.
    pub k_aut: KAut,
    /// Fast re-authentication, which 5G does not use.
    pub k_re: KRe,
    /// Master session key.
    pub msk: Msk,
    /// Extended master session key, whose first half is K_AUSF.
    pub emsk: Emsk,
}

/// MK = PRF'(IK' || CK', "EAP-AKA'" || identity), split into keys (RFC 9048 3.3). In 5G, `identity` is the
/// IMSI's digits, or the NAI (TS 33.501 F.3).
pub fn keys(ck_prime: &Ck, ik_prime: &Ik, identity: &str) -> Keys {
    let mut key = Zeroizing::new([0; 32]);
    key[..16].copy_from_slice(ik_prime.as_bytes());
    key[16..].copy_from_slice(ck_prime.as_bytes());
    let mk = prf_prime(&*key, &[b"EAP-AKA'", identity.as_bytes()]);
    Keys {
        k_encr: KEncr::new(part::<0, 16, MASTER_KEY>(&mk)),
        k_aut: KAut::new(part::<16, 32, MASTER_KEY>(&mk)),
        k_re: KRe::new(part::<48, 32, MASTER_KEY>(&mk)),
        msk: Msk::new(part::<80, 64, MASTER_KEY>(&mk)),
        emsk: Emsk::new(part::<144, 64, MASTER_KEY>(&mk)),
    }
}

/// PRF'(K, S) = T1 || T2 .., Ti = HMAC-SHA-256(K, T(i-1) || S || i) (RFC 9048 3.4.1).
fn prf_prime(key: &[u8], s: &[&[u8]]) -> Zeroizing<[u8; MASTER_KEY]> {
    let mut out = Zeroizing::new([0; MASTER_KEY]);
    let mut previous: Option<Zeroizing<[u8; 32]>> = None;
    for (block, i) in out.chunks_mut(32).zip(1u8..) {
        let mut mac = hmac_sha256(key);
        if let Some(previous) = &previous {
            mac.update(&**previous);
        }
        s.iter().for_each(|part| mac.update(part));
        mac.update(&[i]);
        let t = Zeroizing::new(<[u8; 32]>::from(mac.finalize().into_bytes()));
        block.copy_from_slice(&t[..block.len()]);
        previous = Some(t);
    }
    out
}

/// The value of AT_MAC: HMAC-SHA-256-128 over the EAP packet whose AT_MAC value is zero
/// (RFC 9048 3.4.2, RFC 4187 10.15).
pub fn at_mac(k_aut: &KAut, packet_with_zero_mac: &[u8]) -> [u8; 16] {
    let mac = hmac_sha256(k_aut.as_bytes()).chain_update(packet_with_zero_mac);
    part::<0, 16, 32>(&mac.finalize().into_bytes().into())
}

/// Whether `received` is the AT_MAC of the packet.
pub fn check_at_mac(k_aut: &KAut, packet_with_zero_mac: &[u8], received: &[u8]) -> bool {
    equal_in_constant_time(&at_mac(k_aut, packet_with_zero_mac), received)
}

#[cfg(test)]
mod tests;
