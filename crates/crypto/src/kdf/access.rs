//! Derivation of NAS and access network keys from K_AMF (TS 33.501 A.8 to A.13).

use super::kdf;
use crate::keys::{KAmf, KGnb, KNasEnc, KNasInt, Nh, part};
use crate::nas::{CipheringAlgorithm, Direction, IntegrityAlgorithm};

/// Algorithm type distinguishers (TS 33.501 Table A.8-1).
const N_NAS_ENC: u8 = 0x01;
const N_NAS_INT: u8 = 0x02;

/// Access type distinguishers (TS 33.501 Table A.9-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum AccessType {
    /// 3GPP access, with K_gNB.
    ThreeGpp = 0x01,
    /// Non-3GPP access, with K_N3IWF, K_TNGF or K_TWIF.
    NonThreeGpp = 0x02,
}

/// K_NASenc (TS 33.501 A.8).
pub fn k_nas_enc(k_amf: &KAmf, algorithm: CipheringAlgorithm) -> KNasEnc {
    KNasEnc::new(algorithm_key(k_amf, N_NAS_ENC, algorithm as u8))
}

/// K_NASint (TS 33.501 A.8).
pub fn k_nas_int(k_amf: &KAmf, algorithm: IntegrityAlgorithm) -> KNasInt {
    KNasInt::new(algorithm_key(k_amf, N_NAS_INT, algorithm as u8))
}

/// The 128 least significant bits of the derived key.
fn algorithm_key(k_amf: &KAmf, distinguisher: u8, identity: u8) -> [u8; 16] {
    part::<16, 16, 32>(&kdf(k_amf.as_bytes(), 0x69, &[&[distinguisher], &[identity]]))
}

/// K_gNB, from the uplink NAS COUNT of the message that established the connection (TS 33.501 A.9).
pub fn k_gnb(k_amf: &KAmf, uplink_nas_count: u32, access: AccessType) -> KGnb {
    let count = uplink_nas_count.to_be_bytes();
    KGnb::new(kdf(k_amf.as_bytes(), 0x6e, &[&count, &[access as u8]]))
}

/// The first NH of a chain, from the initial K_gNB (TS 33.501 A.10).
pub fn first_nh(k_amf: &KAmf, k_gnb: &KGnb) -> Nh {
    Nh::new(kdf(k_amf.as_bytes(), 0x6f, &[k_gnb.as_bytes()]))
}

/// The NH after `nh` (TS 33.501 A.10).
pub fn next_nh(k_amf: &KAmf, nh: &Nh) -> Nh {
    Nh::new(kdf(k_amf.as_bytes(), 0x6f, &[nh.as_bytes()]))
}

/// K_NG-RAN* by horizontal derivation: from the current K_gNB, with the target cell's physical cell identity
/// and the low 24 bits of its downlink ARFCN (TS 33.501 A.11).
pub fn k_ng_ran_star_horizontal(k_gnb: &KGnb, pci: u16, arfcn_dl: u32) -> KGnb {
    k_ng_ran_star(k_gnb.as_bytes(), pci, arfcn_dl)
}

/// K_NG-RAN* by vertical derivation: from a fresh NH (TS 33.501 A.11).
pub fn k_ng_ran_star_vertical(nh: &Nh, pci: u16, arfcn_dl: u32) -> KGnb {
    k_ng_ran_star(nh.as_bytes(), pci, arfcn_dl)
}

fn k_ng_ran_star(key: &[u8; 32], pci: u16, arfcn_dl: u32) -> KGnb {
    let [_, arfcn @ ..] = arfcn_dl.to_be_bytes();
    KGnb::new(kdf(key, 0x70, &[&pci.to_be_bytes(), &arfcn]))
}

/// K_AMF' at a change of AMF: from the uplink NAS COUNT in a registration, from the downlink NAS COUNT in a
/// handover (TS 33.501 A.13).
pub fn k_amf_prime(k_amf: &KAmf, direction: Direction, nas_count: u32) -> KAmf {
    let count = nas_count.to_be_bytes();
    KAmf::new(kdf(k_amf.as_bytes(), 0x72, &[&[direction as u8], &count]))
}
