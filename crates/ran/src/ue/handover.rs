//! Handover: keys of the access stratum in the target cell (TS 33.501 6.9.2.3.4).

use super::Ue;
use super::security::SecurityContext;
use crate::gnb::Cell;
use pith_crypto::kdf;
use pith_crypto::keys::{KAmf, KGnb, Nh};

/// Keys of the access stratum, from the setup of the connection on.
pub(super) struct AsKeys {
    k_amf: KAmf,
    k_gnb: KGnb,
    /// NCC of K_gNB.
    chaining_count: u8,
    nh: Nh,
    /// NCC of NH.
    nh_count: u8,
}

impl AsKeys {
    /// K_gNB of the AMF: NCC is 0, and the first NH has NCC 1 (TS 33.501 6.9.2.1.1).
    pub fn new(k_amf: KAmf, k_gnb: KGnb) -> Self {
        let nh = kdf::first_nh(&k_amf, &k_gnb);
        Self { k_amf, k_gnb, chaining_count: 0, nh, nh_count: 1 }
    }

    /// K_gNB in a cell: from the current one if NCC is the same, else from NH, which follows the NCC.
    fn enter(&mut self, chaining_count: u8, Cell { pci, arfcn }: Cell) {
        if chaining_count == self.chaining_count {
            self.k_gnb = kdf::k_ng_ran_star_horizontal(&self.k_gnb, pci, arfcn);
            return;
        }
        while self.nh_count != chaining_count & 7 {
            self.nh = kdf::next_nh(&self.k_amf, &self.nh);
            self.nh_count = (self.nh_count + 1) & 7;
        }
        self.chaining_count = chaining_count;
        self.k_gnb = kdf::k_ng_ran_star_vertical(&self.nh, pci, arfcn);
    }
}

impl Ue {
    /// The gNB hands the UE over: its key must be the one that the UE derives.
    pub(super) fn check_handover(&mut self, key: &[u8; 32], chaining_count: u8, cell: Cell) {
        if self.current_security_context.as_ref().is_some_and(SecurityContext::is_null) {
            return;
        }
        let Some(keys) = &mut self.as_keys else {
            return self.violation("TS 38.331 5.3.5.4", "a handover without AS security");
        };
        keys.enter(chaining_count, cell);
        if keys.k_gnb.as_bytes() != key {
            let text = format!("K_NG-RAN* of the gNB (NCC {chaining_count}) is not the one of the UE");
            self.violation("TS 33.501 6.9.2.3.4", text);
        }
    }
}
