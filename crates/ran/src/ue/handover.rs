//! Handover: keys of the access stratum in the target cell, and the NAS container that changes the algorithms of NAS (TS 33.501 6.9.2.3.4).

use super::Ue;
use super::security::SecurityContext;
use crate::gnb::Cell;
use pith_crypto::kdf;
use pith_crypto::keys::{KAmf, KGnb, Nh};
use pith_nas::ie::{IntraN1Container, NasSecurityAlgorithms};

/// The uplink COUNT of the first K_gNB of a K_AMF that was derived for a handover (TS 33.501 6.9.2.3.4, A.9).
const COUNT_OF_DERIVED_KEY: u32 = u32::MAX;

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

/// What a handover command changes of NAS, until the UE is in the target cell.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum NasChange {
    /// Nothing.
    #[default]
    None,
    /// The NAS container is not accepted: the UE stays in the source cell.
    Refused,
    /// The algorithms, the downlink COUNT of the container, and whether K_AMF changes, too.
    Accepted { algorithms: NasSecurityAlgorithms, count: u32, has_new_k_amf: bool },
}

impl Ue {
    /// Whether the UE does not follow the last handover command.
    pub fn refuses_handover(&self) -> bool {
        self.nas_change == NasChange::Refused
    }

    /// The UE verifies the NAS container before it leaves its cell.
    pub(super) fn receive_handover_command(&mut self, nas_container: Option<&[u8]>) {
        self.nas_change = match nas_container {
            None => NasChange::None,
            Some(octets) => self.check_nas_container(octets).unwrap_or(NasChange::Refused),
        };
    }

    fn check_nas_container(&mut self, octets: &[u8]) -> Option<NasChange> {
        let Some(container) = IntraN1Container::from_octets(octets) else {
            self.violation("TS 24.501 9.11.2.6", format!("NAS container {octets:02x?}"));
            return None;
        };
        let (algorithms, has_new_k_amf) = (container.algorithms, container.has_new_k_amf);
        if !self.are_acceptable(algorithms) {
            return None;
        }
        let current = self.current_security_context.as_ref();
        let Some(context) = current.filter(|context| context.ng_ksi == container.ng_ksi) else {
            let text = format!("a NAS container for {:?}, which is not in use", container.ng_ksi);
            self.violation("TS 33.501 6.9.2.3.4", text);
            return None;
        };
        match context.check_container(&container) {
            Ok(count) => Some(NasChange::Accepted { algorithms, count, has_new_k_amf }),
            Err(failure) => {
                self.violation("TS 33.501 6.9.2.3.4", format!("NAS container: {failure:?}"));
                None
            }
        }
    }

    /// The UE is in the target cell: messages have the new algorithms in both directions. The COUNTs go on, and the container has used up a
    /// downlink COUNT; with another K_AMF they begin again. Until now messages of the source AMF may have arrived.
    pub(super) fn take_nas_change(&mut self) {
        if let Some(changed) = self.changed_context() {
            self.current_security_context = Some(changed);
        }
        self.nas_change = NasChange::None;
    }

    /// The context that the accepted NAS container makes.
    fn changed_context(&self) -> Option<SecurityContext> {
        let NasChange::Accepted { algorithms, count, has_new_k_amf } = self.nas_change else { return None };
        let current = self.current_security_context.as_ref()?;
        let changed = if has_new_k_amf {
            current.derived_in_handover(algorithms, count)
        } else {
            current.after_container(algorithms, count)
        };
        changed.ok()
    }

    /// The gNB hands the UE over: its key must be the one that the UE derives.
    pub(super) fn check_handover(&mut self, key: &[u8; 32], chaining_count: u8, cell: Cell) {
        if self.current_security_context.as_ref().is_some_and(SecurityContext::is_null) {
            return;
        }
        if self.as_keys.is_none() {
            return self.violation("TS 38.331 5.3.5.4", "a handover without AS security");
        }
        if let (NasChange::Accepted { has_new_k_amf: true, .. }, Some(changed)) =
            (self.nas_change, self.changed_context())
        {
            // The key of the target gNB is derived from the first K_gNB of the new K_AMF.
            let k_gnb = kdf::k_gnb(&changed.k_amf, COUNT_OF_DERIVED_KEY, kdf::AccessType::ThreeGpp);
            self.as_keys = Some(AsKeys::new(changed.k_amf, k_gnb));
        }
        let Some(keys) = &mut self.as_keys else { return };
        keys.enter(chaining_count, cell);
        if keys.k_gnb.as_bytes() != key {
            let text = format!("K_NG-RAN* of the gNB (NCC {chaining_count}) is not the one of the UE");
            self.violation("TS 33.501 6.9.2.3.4", text);
        }
    }
}
