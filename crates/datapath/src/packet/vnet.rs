//! The virtio-net header before every packet of a TUN queue: pending checksum and segmentation.

use crate::sys::VNET_HEADER_LEN;

const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// Set beside a TCP type if the first segment carries CWR.
const GSO_ECN: u8 = 0x80;

/// The kernel's types of trains.
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
    /// The header of a complete single packet: all zero.
    pub const NONE: [u8; VNET_HEADER_LEN] = [0; VNET_HEADER_LEN];

    /// A frame to be split into packets of `size` bytes of payload; its transport header starts at `ip_len`,
    /// ends at `header_len` and has its checksum field at `csum_offset`.
    pub fn train(gso: Gso, size: u16, ip_len: u16, header_len: u16, csum_offset: u16) -> Self {
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

    /// Payload bytes of each packet in a train; `None` for a single packet.
    pub fn segment_size(&self) -> Option<usize> {
        let train = self.gso_type & !GSO_ECN != GSO_NONE && self.gso_size > 0;
        train.then_some(self.gso_size.into())
    }

    /// The offset from which a pending checksum is computed, and the offset of its field.
    pub fn partial_checksum(&self) -> Option<(usize, usize)> {
        let start = usize::from(self.csum_start);
        (self.flags & NEEDS_CSUM != 0).then_some((start, start + usize::from(self.csum_offset)))
    }
}
