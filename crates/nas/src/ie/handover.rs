//! The container of a handover that changes the NAS security context.

use super::{NasSecurityAlgorithms, NgKsi};
use crate::wire::Ie;
use serde::{Deserialize, Serialize};

/// Bit 5 of the octet with ngKSI.
const K_AMF_CHANGE: u8 = 0x10;

/// Intra N1 mode NAS transparent container (TS 24.501 9.11.2.6): its value part of 7 octets, which is the NASC of HANDOVER REQUEST (TS 38.413
/// 9.2.3.4) and the `nas-Container` of RRC (TS 38.331 6.3.2, MasterKeyUpdate).
///
/// ```text
///  octet  3..6   7                        8                              9
///         MAC  | 5G-EA x 16 + 5G-IA     | KACF x 16 + TSC x 8 + ngKSI  | NAS sequence number
///              '---- the MAC is over these ----'
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntraN1Container {
    /// NAS-MAC, of the new K_NASint.
    pub mac: [u8; 4],
    /// The algorithms from now on.
    pub algorithms: NasSecurityAlgorithms,
    /// The network has derived a new K_AMF (KACF).
    pub has_new_k_amf: bool,
    /// The key set of the new context.
    pub ng_ksi: NgKsi,
    /// Low eight bits of the downlink NAS COUNT, which the container uses up.
    pub sequence_number: u8,
}

impl IntraN1Container {
    /// The octets that the MAC covers: all after it.
    pub fn authenticated(&self) -> [u8; 3] {
        let ng_ksi = match self.ng_ksi {
            NgKsi::Native(id) => id & 7,
            NgKsi::Mapped(id) => 8 | id & 7,
            NgKsi::NoKey => 7,
        };
        let change = if self.has_new_k_amf { K_AMF_CHANGE } else { 0 };
        let NasSecurityAlgorithms { ciphering, integrity } = self.algorithms;
        [ciphering << 4 | integrity & 0xf, change | ng_ksi, self.sequence_number]
    }

    /// The container with these octets; `None` if there are not seven.
    pub fn from_octets(octets: &[u8]) -> Option<Self> {
        let [mac @ .., algorithms, keys, sequence_number]: [u8; 7] = octets.try_into().ok()?;
        Some(Self {
            mac,
            algorithms: NasSecurityAlgorithms::decode(&[algorithms]).ok()?,
            has_new_k_amf: keys & K_AMF_CHANGE != 0,
            ng_ksi: NgKsi::decode(&[keys]).ok()?,
            sequence_number,
        })
    }

    /// The octets on the wire.
    pub fn octets(&self) -> Vec<u8> {
        [&self.mac[..], &self.authenticated()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_octets_are_those_of_the_specification() {
        let container = IntraN1Container {
            mac: [0x11, 0x22, 0x33, 0x44],
            algorithms: NasSecurityAlgorithms { ciphering: 2, integrity: 1 },
            has_new_k_amf: false,
            ng_ksi: NgKsi::Native(3),
            sequence_number: 0x7f,
        };
        let other = IntraN1Container {
            has_new_k_amf: true,
            ng_ksi: NgKsi::Mapped(2),
            sequence_number: 0,
            ..container
        };
        for (container, octets) in [(container, "1122334421037f"), (other, "11223344211a00")] {
            assert_eq!(hex::encode(container.octets()), octets);
            assert_eq!(IntraN1Container::from_octets(&hex::decode(octets).unwrap()), Some(container));
        }
    }

    #[test]
    fn a_container_of_another_length_is_malformed() {
        for length in (0..7).chain(8..20) {
            assert_eq!(IntraN1Container::from_octets(&vec![0xff; length]), None, "{length}");
        }
    }

    proptest! {
        /// The spare bits of the octet with ngKSI are not kept.
        #[test]
        fn any_seven_octets_are_a_container(octets: [u8; 7]) {
            let container = IntraN1Container::from_octets(&octets).unwrap();
            prop_assert_eq!(IntraN1Container::from_octets(&container.octets()), Some(container));
        }
    }
}
