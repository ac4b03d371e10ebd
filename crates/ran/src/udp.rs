//! UDP datagrams over IPv4 (RFC 768), as a UE sends and receives them.

use crate::ipv4::{self, Packet};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Octets of the IPv4 and UDP headers in front of the data.
pub const HEADERS: usize = ipv4::HEADER + UDP_HEADER;
const UDP_HEADER: usize = 8;
const UDP: u8 = 17;

/// Source and destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Path {
    pub source: SocketAddrV4,
    pub destination: SocketAddrV4,
}

/// Appends a datagram to `out`; nothing if the data do not fit into a packet.
pub fn write(out: &mut Vec<u8>, path: Path, data: &[u8]) {
    let Path { source, destination } = path;
    let length = UDP_HEADER + data.len();
    let Ok(length_field) = u16::try_from(length) else { return };
    if !ipv4::write_header(out, (*source.ip(), *destination.ip()), UDP, 0, length) {
        return;
    }
    let start = out.len();
    out.extend(source.port().to_be_bytes());
    out.extend(destination.port().to_be_bytes());
    out.extend(length_field.to_be_bytes());
    out.extend([0, 0]);
    out.extend(data);
    ipv4::set_checksum(out, start, start + 6, pseudo_header(*source.ip(), *destination.ip(), length_field));
    // A sum of 0 is sent as 0xffff: 0 means that there is no checksum.
    if let Some(none @ &mut [0, 0]) = out.get_mut(start + 6..start + 8) {
        none.fill(0xff);
    }
}

/// The data of a datagram with source and destination; `None` for any other or corrupted packet.
pub fn read(packet: &[u8]) -> Option<(Path, &[u8])> {
    let packet = Packet::read(packet).filter(|packet| packet.protocol == UDP)?;
    let &[a, b, c, d, high, low, sum_high, sum_low] = packet.payload.first_chunk()?;
    let length = u16::from_be_bytes([high, low]);
    let datagram = packet.payload.get(..length.into())?;
    let data = datagram.get(UDP_HEADER..)?;
    let before = pseudo_header(packet.source, packet.destination, length);
    let is_intact = (sum_high, sum_low) == (0, 0) || ipv4::checksum(datagram, before) == 0;
    let path = Path {
        source: SocketAddrV4::new(packet.source, u16::from_be_bytes([a, b])),
        destination: SocketAddrV4::new(packet.destination, u16::from_be_bytes([c, d])),
    };
    is_intact.then_some((path, data))
}

fn pseudo_header(source: Ipv4Addr, destination: Ipv4Addr, length: u16) -> u32 {
    ipv4::sum(&source.octets()) + ipv4::sum(&destination.octets()) + u32::from(UDP) + u32::from(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path {
        source: SocketAddrV4::new(Ipv4Addr::new(10, 45, 0, 2), 40_000),
        destination: SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 7),
    };

    /// From 10.45.0.2:40000 to 192.0.2.1:7, "pith", as scapy 2.8 builds it.
    const DATAGRAM: &str = "450000200000400040116e9d0a2d0002c0000201\
                            9c400007000cb28c70697468";

    #[test]
    fn a_datagram_equals_that_of_another_stack() {
        let mut out = vec![];
        write(&mut out, PATH, b"pith");
        assert_eq!(hex::encode(&out), DATAGRAM);
        assert_eq!(read(&out), Some((PATH, &b"pith"[..])));
    }

    #[test]
    fn corrupted_datagrams_are_refused_and_a_missing_checksum_is_accepted() {
        let mut octets = hex::decode(DATAGRAM).unwrap();
        octets[31] ^= 1;
        assert_eq!(read(&octets), None);
        octets[26..28].fill(0);
        assert!(read(&octets).is_some());
        for length in 0..octets.len() {
            assert_eq!(read(&octets[..length]), None);
        }
    }
}
