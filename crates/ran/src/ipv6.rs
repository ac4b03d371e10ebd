//! IPv6 headers and ICMPv6, as a UE sends and receives them (RFC 8200, RFC 4443).

use crate::ipv4;
use std::net::Ipv6Addr;

/// Octets of a header.
pub const HEADER: usize = 40;
/// Protocol number of ICMPv6.
pub const ICMPV6: u8 = 58;

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
        let before = pseudo_header((self.source, self.destination), self.payload.len());
        let is_sound = self.protocol == ICMPV6 && ipv4::checksum(self.payload, before) == 0;
        is_sound.then_some(self.payload)
    }
}

/// Appends a packet with an ICMPv6 message, whose checksum this function sets; nothing if it is too long.
pub fn write_icmp(
    out: &mut Vec<u8>,
    addresses: (Ipv6Addr, Ipv6Addr),
    hop_limit: u8,
    message: impl IntoIterator<Item = u8>,
) {
    let start = out.len();
    out.extend([0x60, 0, 0, 0, 0, 0, ICMPV6, hop_limit]);
    out.extend(addresses.0.octets());
    out.extend(addresses.1.octets());
    let at = out.len();
    out.extend(message);
    let length = out.len() - at;
    let Ok(octets) = u16::try_from(length) else { return out.truncate(start) };
    if let Some(place) = out.get_mut(start + 4..start + 6) {
        place.copy_from_slice(&octets.to_be_bytes());
    }
    ipv4::set_checksum(out, at, at + 2, pseudo_header(addresses, length));
}

/// The sum of the pseudo-header (RFC 8200 8.1).
fn pseudo_header((source, destination): (Ipv6Addr, Ipv6Addr), length: usize) -> u32 {
    ipv4::sum(&source.octets()) + ipv4::sum(&destination.octets()) + length as u32 + u32::from(ICMPV6)
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
}
