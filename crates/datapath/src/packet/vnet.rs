//! The virtio-net header (`struct virtio_net_hdr`) that precedes every packet of a TUN queue. It describes a checksum that is
//! still to be computed, and generic segmentation offload (GSO): a GSO packet has one header and the payload of several
//! packets, which are split later.

use crate::sys::VNET_HEADER_LEN;

/// Flag: the checksum is not computed yet.
const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// Flag in the GSO type of TCP: the first segment carries CWR.
const GSO_ECN: u8 = 0x80;

/// Type of a GSO packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gso {
    /// TCP segments over IPv4.
    TcpV4,
    /// TCP segments over IPv6.
    TcpV6,
    /// UDP datagrams.
    Udp,
}

/// The header's fields; numbers are in the host's byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VnetHeader {
    flags: u8,
    gso_type: u8,
    header_len: u16,
    gso_size: u16,
    csum_start: u16,
    csum_offset: u16,
}

impl VnetHeader {
    /// The header of a single packet with a complete checksum: all zero.
    pub const NONE: [u8; VNET_HEADER_LEN] = [0; VNET_HEADER_LEN];

    /// The header of a GSO packet that is split into packets of `size` bytes of payload. The transport header of the GSO packet
    /// starts at offset `ip_len` and ends at `header_len`; its checksum field is at `csum_offset` from its start.
    pub fn gso(gso: Gso, size: u16, ip_len: u16, header_len: u16, csum_offset: u16) -> Self {
        let gso_type = match gso {
            Gso::TcpV4 => GSO_TCPV4,
            Gso::TcpV6 => GSO_TCPV6,
            Gso::Udp => GSO_UDP_L4,
        };
        Self { flags: NEEDS_CSUM, gso_type, header_len, gso_size: size, csum_start: ip_len, csum_offset }
    }

    /// Decodes the header.
    pub fn decode(bytes: &[u8; VNET_HEADER_LEN]) -> Self {
        let [flags, gso_type, a, b, c, d, e, f, g, h] = *bytes;
        let number = |bytes| u16::from_ne_bytes(bytes);
        Self {
            flags,
            gso_type,
            header_len: number([a, b]),
            gso_size: number([c, d]),
            csum_start: number([e, f]),
            csum_offset: number([g, h]),
        }
    }

    /// Encodes the header.
    pub fn encode(&self) -> [u8; VNET_HEADER_LEN] {
        let [a, b] = self.header_len.to_ne_bytes();
        let [c, d] = self.gso_size.to_ne_bytes();
        let [e, f] = self.csum_start.to_ne_bytes();
        let [g, h] = self.csum_offset.to_ne_bytes();
        [self.flags, self.gso_type, a, b, c, d, e, f, g, h]
    }

    /// The header of the same packet behind a link header of that length.
    pub fn behind(self, link_len: u16) -> Self {
        Self { header_len: self.header_len + link_len, csum_start: self.csum_start + link_len, ..self }
    }

    /// Payload bytes of each packet of a GSO packet, except that the last may have fewer; `None` for a single packet.
    pub fn segment_size(&self) -> Option<usize> {
        let is_gso = self.gso_type & !GSO_ECN != GSO_NONE && self.gso_size > 0;
        is_gso.then_some(self.gso_size.into())
    }

    /// If the checksum is not computed yet: the offset from which it is computed, and the offset of its field. Both are from
    /// the start of the packet.
    pub fn partial_checksum(&self) -> Option<(usize, usize)> {
        let start = usize::from(self.csum_start);
        (self.flags & NEEDS_CSUM != 0).then_some((start, start + usize::from(self.csum_offset)))
    }
}
