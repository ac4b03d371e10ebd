//! Echo requests and replies of ICMP over IPv4 (RFC 791, RFC 792), as a UE sends and takes them.

use std::net::Ipv4Addr;

const IPV4_HEADER: usize = 20;
const ICMP_HEADER: usize = 8;
const ICMP: u8 = 1;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;
const TIME_TO_LIVE: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;
/// More fragments, and a fragment offset.
const FRAGMENT: u16 = 0x3fff;

/// Which echo: all of it comes back in the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// Who asks.
    pub source: Ipv4Addr,
    /// Who is asked.
    pub destination: Ipv4Addr,
    /// Tells one ping from another.
    pub identifier: u16,
    /// Tells one echo of a ping from another.
    pub sequence: u16,
}

/// Appends an echo request with `payload` octets of data to `out`.
pub fn write_request(out: &mut Vec<u8>, echo: Echo, payload: usize) {
    let start = out.len();
    let total = u16::try_from(IPV4_HEADER + ICMP_HEADER + payload).unwrap_or(u16::MAX);
    out.extend([0x45, 0]);
    out.extend(total.to_be_bytes());
    out.extend(echo.sequence.to_be_bytes());
    out.extend(DONT_FRAGMENT.to_be_bytes());
    out.extend([TIME_TO_LIVE, ICMP, 0, 0]);
    out.extend(echo.source.octets());
    out.extend(echo.destination.octets());
    set_checksum(out, start, start + 10);
    let icmp = out.len();
    out.extend([ECHO_REQUEST, 0, 0, 0]);
    out.extend(echo.identifier.to_be_bytes());
    out.extend(echo.sequence.to_be_bytes());
    out.extend((0..usize::from(total) - IPV4_HEADER - ICMP_HEADER).map(|at| at as u8));
    set_checksum(out, icmp, icmp + 2);
}

fn set_checksum(out: &mut [u8], from: usize, at: usize) {
    let sum = checksum(out.get(from..).unwrap_or_default()).to_be_bytes();
    if let Some(place) = out.get_mut(at..at + 2) {
        place.copy_from_slice(&sum);
    }
}

/// The internet checksum (RFC 1071); 0 over octets that hold their own.
fn checksum(octets: &[u8]) -> u16 {
    let (pairs, last) = octets.as_chunks::<2>();
    let sum: u32 = pairs.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum();
    let mut sum = sum + last.first().map_or(0, |last| u32::from(*last) << 8);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The echo whose reply a packet is; `None` for anything else, and for what is damaged.
pub fn read_reply(packet: &[u8]) -> Option<Echo> {
    let header: &[u8; IPV4_HEADER] = packet.first_chunk()?;
    let &[version, _, high, low, _, _, flags, offset, _, protocol, _, _, a, b, c, d, e, f, g, h] = header;
    let header_length = usize::from(version & 0xf) * 4;
    let fragment = u16::from_be_bytes([flags, offset]) & FRAGMENT;
    if version >> 4 != 4 || protocol != ICMP || fragment != 0 || header_length < IPV4_HEADER {
        return None;
    }
    let packet = packet.get(..u16::from_be_bytes([high, low]).into())?;
    let (header, icmp) = packet.split_at_checked(header_length)?;
    let &[kind, code, _, _, id_high, id_low, sequence_high, sequence_low] = icmp.first_chunk()?;
    let intact = checksum(header) == 0 && checksum(icmp) == 0;
    (intact && (kind, code) == (ECHO_REPLY, 0)).then_some(Echo {
        source: Ipv4Addr::new(e, f, g, h),
        destination: Ipv4Addr::new(a, b, c, d),
        identifier: u16::from_be_bytes([id_high, id_low]),
        sequence: u16::from_be_bytes([sequence_high, sequence_low]),
    })
}

/// Who is to get an IPv4 packet.
pub fn destination(packet: &[u8]) -> Option<Ipv4Addr> {
    let header: &[u8; IPV4_HEADER] = packet.first_chunk()?;
    let &[version, .., a, b, c, d] = header;
    (version >> 4 == 4).then_some(Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ping -c 1 -s 8 -p 00 192.0.2.1` as the kernel answered it, addresses changed.
    const REPLY: &str = "4500002400010000400176d6c00002010a2d0002\
                         0000fff300010000000000000000000c";

    fn reply() -> Vec<u8> {
        let mut octets = hex::decode(REPLY).unwrap();
        octets[10..12].fill(0);
        set_checksum(&mut octets[..20], 0, 10);
        octets[22..24].fill(0);
        let sum = checksum(&octets[20..]).to_be_bytes();
        octets[22..24].copy_from_slice(&sum);
        octets
    }

    fn echo() -> Echo {
        Echo {
            source: Ipv4Addr::new(10, 45, 0, 2),
            destination: Ipv4Addr::new(192, 0, 2, 1),
            identifier: 1,
            sequence: 0,
        }
    }

    #[test]
    fn a_reply_is_matched_to_its_echo() {
        assert_eq!(read_reply(&reply()), Some(echo()));
        assert_eq!(destination(&reply()), Some(Ipv4Addr::new(10, 45, 0, 2)));
    }

    #[test]
    fn a_request_is_whole_and_no_reply() {
        let mut out = vec![0xee; 16];
        write_request(&mut out, echo(), 56);
        let packet = &out[16..];
        assert_eq!(packet.len(), 84);
        assert_eq!((checksum(&packet[..20]), checksum(&packet[20..])), (0, 0));
        assert_eq!(read_reply(packet), None);
    }

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn damaged_and_truncated_replies_are_none() {
        let whole = reply();
        for length in 0..whole.len() {
            assert_eq!(read_reply(&whole[..length]), None);
        }
        for at in [0, 6, 9, 20, 35] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x21;
            assert_eq!(read_reply(&damaged), None, "octet {at}");
        }
    }
}
