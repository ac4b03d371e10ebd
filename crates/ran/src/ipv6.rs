//! IPv6 headers, ICMPv6 and UDP, as a UE sends and receives them (RFC 8200, RFC 4443, RFC 768).

use crate::ipv4;
use std::net::Ipv6Addr;

/// Octets of a header.
pub const HEADER: usize = 40;
/// Protocol number of ICMPv6.
pub const ICMPV6: u8 = 58;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;

/// A packet without extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Packet<'a> {
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    pub protocol: u8,
    pub hop_limit: u8,
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Decodes a packet; `None` if it is no IPv6, or shorter than its header says.
    pub fn read(packet: &'a [u8]) -> Option<Self> {
        let (header, rest) = packet.split_first_chunk::<HEADER>()?;
        let &[version, _, _, _, high, low, protocol, hop_limit, ..] = header;
        let address = |at: usize| header.get(at..)?.first_chunk::<16>().copied().map(Ipv6Addr::from);
        let payload = rest.get(..u16::from_be_bytes([high, low]).into())?;
        (version >> 4 == 6).then_some(Self {
            source: address(8)?,
            destination: address(24)?,
            protocol,
            hop_limit,
            payload,
        })
    }

    /// The ICMPv6 message in the packet, if its checksum is correct.
    pub fn icmp(&self) -> Option<&'a [u8]> {
        (self.protocol == ICMPV6 && self.is_sound()).then_some(self.payload)
    }

    /// The ports of the UDP datagram in the packet, correct or not.
    pub fn ports(&self) -> Option<(u16, u16)> {
        let &[a, b, c, d] = self.payload.first_chunk()?;
        (self.protocol == UDP).then_some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }

    /// Ports and data of the UDP datagram in the packet, if its length and its checksum, which it must have, are correct.
    pub fn udp(&self) -> Option<((u16, u16), &'a [u8])> {
        let ports = self.ports()?;
        let (&[_, _, _, _, high, low, sum_high, sum_low], data) =
            self.payload.split_first_chunk::<UDP_HEADER>()?;
        let has_length = usize::from(u16::from_be_bytes([high, low])) == self.payload.len();
        (has_length && [sum_high, sum_low] != [0, 0] && self.is_sound()).then_some((ports, data))
    }

    /// Whether the checksum over pseudo-header and payload is correct.
    fn is_sound(&self) -> bool {
        let before = pseudo_header((self.source, self.destination), self.protocol, self.payload.len());
        ipv4::checksum(self.payload, before) == 0
    }
}

/// Appends a packet with a UDP datagram; nothing if it is too long.
pub fn write_udp(
    out: &mut Vec<u8>,
    addresses: (Ipv6Addr, Ipv6Addr),
    (source, destination): (u16, u16),
    data: &[u8],
) {
    let Ok(length) = u16::try_from(UDP_HEADER + data.len()) else { return };
    let ports = [source, destination, length, 0].map(u16::to_be_bytes);
    let at = out.len() + HEADER;
    write(out, addresses, (UDP, 255), ports.into_iter().flatten().chain(data.iter().copied()), 6);
    // A sum of 0 is sent as 0xffff: over IPv6 each datagram has a checksum.
    if let Some(none @ &mut [0, 0]) = out.get_mut(at + 6..at + 8) {
        none.fill(0xff);
    }
}

/// Appends a packet with an ICMPv6 message, whose checksum this function sets; nothing if it is too long.
pub fn write_icmp(
    out: &mut Vec<u8>,
    addresses: (Ipv6Addr, Ipv6Addr),
    hop_limit: u8,
    message: impl IntoIterator<Item = u8>,
) {
    write(out, addresses, (ICMPV6, hop_limit), message, 2);
}

/// Appends a packet, and sets the checksum at `checksum` of its payload; nothing if it is too long.
fn write(
    out: &mut Vec<u8>,
    addresses: (Ipv6Addr, Ipv6Addr),
    (protocol, hop_limit): (u8, u8),
    payload: impl IntoIterator<Item = u8>,
    checksum: usize,
) {
    let start = out.len();
    out.extend([0x60, 0, 0, 0, 0, 0, protocol, hop_limit]);
    out.extend(addresses.0.octets());
    out.extend(addresses.1.octets());
    let at = out.len();
    out.extend(payload);
    let length = out.len() - at;
    let Ok(octets) = u16::try_from(length) else { return out.truncate(start) };
    if let Some(place) = out.get_mut(start + 4..start + 6) {
        place.copy_from_slice(&octets.to_be_bytes());
    }
    ipv4::set_checksum(out, at, at + checksum, pseudo_header(addresses, protocol, length));
}

/// The sum of the pseudo-header (RFC 8200 8.1).
fn pseudo_header((source, destination): (Ipv6Addr, Ipv6Addr), protocol: u8, length: usize) -> u32 {
    ipv4::sum(&source.octets()) + ipv4::sum(&destination.octets()) + length as u32 + u32::from(protocol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let addresses = ("fe80::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        let mut out = vec![0xee];
        write_icmp(&mut out, addresses, 255, [128, 0, 0, 0, 0, 7, 0, 1, 9]);
        let packet = Packet::read(&out[1..]).unwrap();
        assert_eq!((packet.source, packet.destination, packet.hop_limit), (addresses.0, addresses.1, 255));
        assert_eq!(packet.icmp().map(|message| message[4..].to_vec()), Some(vec![0, 7, 0, 1, 9]));
        for at in 8..out.len() - 1 {
            let mut damaged = out[1..].to_vec();
            damaged[at] ^= 0x21;
            assert_eq!(Packet::read(&damaged).and_then(|packet| packet.icmp()), None, "octet {at}");
        }
        write_icmp(&mut out, addresses, 255, vec![0; 65_536]);
        assert_eq!(out.len(), 1 + HEADER + 9, "too long");
    }

    #[test]
    fn a_datagram_is_read_as_it_was_written() {
        let addresses = ("fe80::1".parse().unwrap(), "fe80::2".parse().unwrap());
        let mut out = Vec::new();
        write_udp(&mut out, addresses, (546, 547), b"odd");
        let packet = Packet::read(&out).unwrap();
        assert_eq!((packet.ports(), packet.udp()), (Some((546, 547)), Some(((546, 547), &b"odd"[..]))));
        for at in 40..out.len() {
            let mut damaged = out.clone();
            damaged[at] ^= 0x10;
            assert_eq!(Packet::read(&damaged).and_then(|packet| packet.udp()), None, "octet {at}");
        }
    }
}
