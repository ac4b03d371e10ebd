//! 5G NAS security contexts (TS 33.501 6.4, 6.7): keys and selected algorithms.

use super::config::AmfConfig;
use crate::kit::document::{Pack, Reader, UnpackError, Writer};
use pith_crypto::kdf;
use pith_crypto::keys::{KAmf, KGnb};
use pith_crypto::nas::IntegrityAlgorithm;
use pith_nas::ie::UeSecurityCapability;
use pith_nas::security::{Algorithms, Connection};
use pith_nas::{NasCount, NasSecurity, Role, Unprotected};

/// ABBA: the AMF supports no feature beyond Release 15's initial set (TS 33.501 A.7.1).
pub(crate) const ABBA: [u8; 2] = kdf::ABBA;

/// A native 5G NAS security context: full, or new and not yet taken into use by the UE.
#[derive(Debug)]
pub(crate) struct SecurityContext {
    /// Key set identifier, 0 to 6.
    pub ng_ksi: u8,
    /// K_AMF, from which all keys below are derived.
    pub k_amf: KAmf,
    /// The UE's security capability when the context was created.
    pub capability: UeSecurityCapability,
    /// NAS protection: keys, algorithms, COUNTs.
    pub nas: NasSecurity,
    /// Downlink COUNTs reserved for other AMFs since the UE last confirmed a downlink message; [`OUTDATED`] if the UE may have used
    /// any.
    pub unconfirmed: u32,
}

/// The unconfirmed COUNTs of an outdated context. An earlier program deletes a context with as many.
const OUTDATED: u32 = 1 << 30;

/// How far the COUNT of a message may be ahead of an outdated context: increments of the overflow counter, 256 messages each.
const OVERFLOWS_AHEAD: u16 = 15;

impl SecurityContext {
    /// The security context after a primary authentication. Both COUNTs start at 0.
    pub fn new(ng_ksi: u8, k_amf: KAmf, capability: UeSecurityCapability, algorithms: Algorithms) -> Self {
        let nas = nas_security(&k_amf, algorithms);
        Self { ng_ksi, k_amf, capability, nas, unconfirmed: 0 }
    }

    /// Changes the algorithms, and with them the NAS keys. K_AMF and the COUNTs stay (TS 33.501 6.9.2.3.3).
    pub fn change_algorithms(&mut self, algorithms: Algorithms) {
        let mut nas = nas_security(&self.k_amf, algorithms);
        nas.resume(self.nas.next_to_send(), self.nas.last_received());
        self.nas = nas;
    }

    /// Notes that the UE may have used any COUNT, and may have another context: messages were accepted or sent since this one was
    /// stored. No message is sent with it.
    pub fn into_outdated(self) -> Self {
        Self { unconfirmed: OUTDATED, ..self }
    }

    /// Whether the context is outdated ([`Self::into_outdated`]).
    pub const fn is_outdated(&self) -> bool {
        self.unconfirmed >= OUTDATED
    }

    /// Verifies a message of the UE with an outdated context. It proves no more than that the UE has sent it at some time: a replayed
    /// message passes, too, unless a later one has passed before.
    pub fn recognise(&mut self, pdu: &[u8]) -> Option<Unprotected> {
        self.nas.unprotect_ahead(pdu, OVERFLOWS_AHEAD).ok()
    }

    /// K_gNB of a connection, derived from the uplink COUNT of the message that opened it (TS
    /// 33.501 6.8.1.1, A.9).
    pub fn k_gnb(&self, uplink: NasCount) -> KGnb {
        kdf::k_gnb(&self.k_amf, uplink.value(), kdf::AccessType::ThreeGpp)
    }
}

fn nas_security(k_amf: &KAmf, algorithms: Algorithms) -> NasSecurity {
    NasSecurity::new(
        Role::Network,
        Connection::ThreeGpp,
        algorithms,
        kdf::k_nas_int(k_amf, algorithms.integrity),
        kdf::k_nas_enc(k_amf, algorithms.ciphering),
    )
}

/// The key set identifier after another one. That of a document may be any octet.
pub(crate) const fn ng_ksi_after(ng_ksi: u8) -> u8 {
    ng_ksi.wrapping_add(1) % 7
}

/// The NAS keys are derived again from K_AMF.
impl Pack for SecurityContext {
    fn pack(&self, writer: &mut Writer<'_>) {
        let Self { ng_ksi, k_amf, capability, nas, unconfirmed } = self;
        ng_ksi.pack(writer);
        k_amf.pack(writer);
        capability.pack(writer);
        nas.algorithms().pack(writer);
        nas.next_to_send().pack(writer);
        nas.last_received().pack(writer);
        unconfirmed.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let (ng_ksi, k_amf, capability, algorithms) = Pack::unpack(reader)?;
        let mut context = Self::new(ng_ksi, k_amf, capability, algorithms);
        let (next_to_send, last_received) = Pack::unpack(reader)?;
        context.nas.resume(next_to_send, last_received);
        context.unconfirmed = Pack::unpack(reader)?;
        Ok(context)
    }
}

/// The preferred algorithms among those that the UE supports (TS 33.501 6.7.1.1); `None` if the UE
/// supports no configured algorithm.
pub(crate) fn choose_algorithms(config: &AmfConfig, ue: &UeSecurityCapability) -> Option<Algorithms> {
    let integrity = config.integrity.iter().copied().find(|&nia| ue.supports_ia(nia as u8))?;
    let ciphering = config.ciphering.iter().copied().find(|&nea| ue.supports_ea(nea as u8))?;
    Some(Algorithms { integrity, ciphering })
}

/// The algorithms of a UE that another AMF hands over: the preferred ones, or those in use if either integrity protection is null. A change
/// from null integrity could not be verified by a UE that does not share K_AMF, and one to it by none (TS 33.501 5.5.2, 6.9.2.3.3). `None` if
/// they are not permitted, or not supported by the UE.
pub(crate) fn algorithms_after_handover(
    config: &AmfConfig,
    ue: &UeSecurityCapability,
    in_use: Algorithms,
) -> Option<Algorithms> {
    let chosen = choose_algorithms(config, ue)?;
    if chosen.integrity != IntegrityAlgorithm::Nia0 && in_use.integrity != IntegrityAlgorithm::Nia0 {
        return Some(chosen);
    }
    let is_permitted = config.integrity.contains(&in_use.integrity)
        && config.ciphering.contains(&in_use.ciphering)
        && ue.supports_ia(in_use.integrity as u8)
        && ue.supports_ea(in_use.ciphering as u8);
    is_permitted.then_some(in_use)
}

/// Whether a UE supports the mandatory algorithms: 5G-EA0, 128-5G-EA1 and 128-5G-EA2 (TS 33.501
/// 5.2.2), 128-5G-IA1 and 128-5G-IA2 (5.2.3). A capability without them is forged or not
/// conformant: the registration is rejected before the UE is challenged (TS 24.501 5.5.1.2.8).
/// 5G-IA0 is not required, because it is used for unauthenticated emergency sessions only.
pub(crate) const fn is_acceptable(ue: &UeSecurityCapability) -> bool {
    ue.supports_ea(0) && ue.supports_ea(1) && ue.supports_ea(2) && ue.supports_ia(1) && ue.supports_ia(2)
}

/// The capability in NGAP's format, whose first bit is algorithm 1 (TS 38.413 9.3.1.86): the bit of
/// algorithm 0 is shifted out.
pub(crate) fn ngap_capabilities(ue: &UeSecurityCapability) -> pith_ngap::SecurityCapabilities {
    let shifted = |algorithms: u8| u16::from(algorithms) << 9;
    pith_ngap::SecurityCapabilities {
        nr_encryption: shifted(ue.ea()),
        nr_integrity: shifted(ue.ia()),
        eutra_encryption: shifted(ue.eea()),
        eutra_integrity: shifted(ue.eia()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::world::config;
    use super::*;
    use pith_crypto::nas::CipheringAlgorithm;

    #[test]
    fn the_preferred_algorithm_of_the_ue_is_selected() {
        let all = UeSecurityCapability::of_5gs(0xf0, 0xf0);
        let chosen = choose_algorithms(&config(), &all).unwrap();
        assert_eq!(chosen.integrity, IntegrityAlgorithm::Nia2);
        assert_eq!(chosen.ciphering, CipheringAlgorithm::Nea2);
        let zuc = UeSecurityCapability::of_5gs(0x80, 0x10);
        let chosen = choose_algorithms(&config(), &zuc).unwrap();
        assert_eq!(chosen.integrity, IntegrityAlgorithm::Nia3);
        assert_eq!(chosen.ciphering, CipheringAlgorithm::Nea0);
    }

    #[test]
    fn null_integrity_is_not_selected_unless_configured() {
        assert!(choose_algorithms(&config(), &UeSecurityCapability::of_5gs(0xf0, 0x80)).is_none());
    }

    #[test]
    fn a_handover_changes_neither_from_null_integrity_nor_to_it() {
        let all = UeSecurityCapability::of_5gs(0xf0, 0xf0);
        let of = |integrity| Algorithms { integrity, ciphering: CipheringAlgorithm::Nea2 };
        let (null, nia1, nia2) =
            (of(IntegrityAlgorithm::Nia0), of(IntegrityAlgorithm::Nia1), of(IntegrityAlgorithm::Nia2));
        let mut config = config();
        assert_eq!(algorithms_after_handover(&config, &all, nia1), Some(nia2));
        assert_eq!(algorithms_after_handover(&config, &all, null), None);
        config.integrity = vec![IntegrityAlgorithm::Nia0, IntegrityAlgorithm::Nia1];
        assert_eq!(algorithms_after_handover(&config, &all, nia1), Some(nia1));
        assert_eq!(algorithms_after_handover(&config, &all, null), Some(null));
        assert_eq!(algorithms_after_handover(&config, &all, nia2), None, "it is not permitted");
    }

    #[test]
    fn ngap_leaves_out_algorithm_0() {
        let capabilities = ngap_capabilities(&UeSecurityCapability::of_5gs(0xe0, 0x90));
        assert_eq!((capabilities.nr_encryption, capabilities.nr_integrity), (0xc000, 0x2000));
    }
}
