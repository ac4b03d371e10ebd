//! IPv4 headers without options (RFC 791) and the internet checksum (RFC 1071), as a UE sends and
//! receives them.

use std::net::Ipv4Addr;

/// Octets of a header without options.
pub const HEADER: usize = 20;
const TIME_TO_LIVE: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;
/// Mask of the more-fragments flag and the fragment offset.
const FRAGMENT: u16 = 0x3fff;

/// A packet that is not a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Packet<'a> {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub protocol: u8,
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Decodes a packet; `None` for other packets, fragments, and corrupted headers.
    pub fn read(packet: &'a [u8]) -> Option<Self> {
        let header: &[u8; HEADER] = packet.first_chunk()?;
        let &[version, _, high, low, _, _, flags, offset, _, protocol, _, _, a, b, c, d, e, f, g, h] = header;
        let header_length = usize::from(version & 0xf) * 4;
        let fragment = u16::from_be_bytes([flags, offset]) & FRAGMENT;
        if version >> 4 != 4 || fragment != 0 || header_length < HEADER {
            return None;
        }
        let whole = packet.get(..u16::from_be_bytes([high, low]).into())?;
        let (header, payload) = whole.split_at_checked(header_length)?;
        (checksum(header, 0) == 0).then_some(Self {
            source: Ipv4Addr::new(a, b, c, d),
            destination: Ipv4Addr::new(e, f, g, h),
            protocol,
            payload,
        })
    }
}

/// Appends a header for `length` octets of payload; returns false and appends nothing if that is too long.
pub fn write_header(
    out: &mut Vec<u8>,
    (source, destination): (Ipv4Addr, Ipv4Addr),
    protocol: u8,
    identification: u16,
    length: usize,
) -> bool {
    let Ok(total) = u16::try_from(HEADER + length) else { return false };
    let start = out.len();
    out.extend([0x45, 0]);
    out.extend(total.to_be_bytes());
    out.extend(identification.to_be_bytes());
    out.extend(DONT_FRAGMENT.to_be_bytes());
    out.extend([TIME_TO_LIVE, protocol, 0, 0]);
    out.extend(source.octets());
    out.extend(destination.octets());
    set_checksum(out, start, start + 10, 0);
    true
}

/// The destination of an IPv4 packet.
pub fn destination(packet: &[u8]) -> Option<Ipv4Addr> {
    let header: &[u8; HEADER] = packet.first_chunk()?;
    let &[version, .., a, b, c, d] = header;
    (version >> 4 == 4).then_some(Ipv4Addr::new(a, b, c, d))
}

/// Writes to `at` the checksum of the octets from `from` and of data whose sum is `before`.
pub fn set_checksum(out: &mut [u8], from: usize, at: usize, before: u32) {
    let sum = checksum(out.get(from..).unwrap_or_default(), before).to_be_bytes();
    if let Some(place) = out.get_mut(at..at + 2) {
        place.copy_from_slice(&sum);
    }
}

/// The internet checksum of the octets and of data whose sum is `before`; 0 if they contain a
/// correct checksum.
pub fn checksum(octets: &[u8], before: u32) -> u16 {
    let mut sum = before + sum(octets);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The sum of octets as 16-bit words; at most 128 KiB, so that it can't overflow.
pub fn sum(octets: &[u8]) -> u32 {
    let (pairs, last) = octets.as_chunks::<2>();
    let sum: u32 = pairs.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum();
    sum + last.first().map_or(0, |last| u32::from(*last) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7], 0), !0xddf2);
    }

    #[test]
    fn a_payload_too_long_for_a_packet_is_not_written() {
        let (mut out, addresses) = (vec![], (Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST));
        assert!(!write_header(&mut out, addresses, 17, 0, 65_516));
        assert!(out.is_empty());
        assert!(write_header(&mut out, addresses, 17, 0, 65_515));
        assert_eq!(out.len(), HEADER);
    }
}
