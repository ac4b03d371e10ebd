//! Source and destination interfaces of a UP function.

use crate::ie::macros::enum_ie;

enum_ie! {
    /// Source Interface: where a packet is received (TS 29.244 8.2.2).
    pub enum SourceInterface: mask 0x0f {
        /// From the access side: uplink.
        Access = 0,
        /// From the core side: downlink.
        Core = 1,
        /// From the SGi-LAN or N6-LAN.
        SgiLanN6Lan = 2,
        /// From the CP function.
        CpFunction = 3,
        /// From within a 5G virtual network.
        FiveGVnInternal = 4,
    }

    /// Destination Interface: where a packet is sent (TS 29.244 8.2.24).
    pub enum DestinationInterface: mask 0x0f {
        /// To the access side: downlink.
        Access = 0,
        /// To the core side: uplink.
        Core = 1,
        /// To the SGi-LAN or N6-LAN.
        SgiLanN6Lan = 2,
        /// To the CP function.
        CpFunction = 3,
        /// To the lawful interception function.
        LiFunction = 4,
        /// Within a 5G virtual network.
        FiveGVnInternal = 5,
    }

    /// 3GPP Interface Type (TS 29.244 8.2.118); those of EPC only remain numbers.
    pub enum InterfaceType: mask 0x3f {
        /// N3 over 3GPP access.
        N3 = 11,
        /// N3 over trusted non-3GPP access.
        N3TrustedNon3gpp = 12,
        /// N3 over untrusted non-3GPP access.
        N3UntrustedNon3gpp = 13,
        /// N3 for data forwarding.
        N3DataForwarding = 14,
        /// N9, or N9 when not roaming.
        N9 = 15,
        /// SGi.
        Sgi = 16,
        /// N6.
        N6 = 17,
        /// N19.
        N19 = 18,
        /// N9 when roaming.
        N9Roaming = 21,
        /// N9 for data forwarding.
        N9DataForwarding = 23,
        /// N4-u.
        N4u = 27,
        /// N6mb or Nmb9.
        N6mb = 29,
        /// N3mb.
        N3mb = 30,
        /// N19mb.
        N19mb = 31,
    }
}
