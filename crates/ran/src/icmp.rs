//! ICMP echo requests and replies over IPv4 (RFC 792), as a UE sends and receives them.

use crate::ipv4::{self, Packet};
use std::net::Ipv4Addr;

const ICMP_HEADER: usize = 8;
const ICMP: u8 = 1;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;

/// Identifies an echo; the reply repeats all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// Sender of the request.
    pub source: Ipv4Addr,
    /// Destination of the request.
    pub destination: Ipv4Addr,
    /// Distinguishes pings.
    pub identifier: u16,
    /// Distinguishes the echoes of a ping.
    pub sequence: u16,
}

/// Appends an echo request with `payload` octets of data to `out`; nothing if it does not fit into a packet.
pub fn write_request(out: &mut Vec<u8>, echo: Echo, payload: usize) {
    let addresses = (echo.source, echo.destination);
    if !ipv4::write_header(out, addresses, ICMP, echo.sequence, ICMP_HEADER + payload) {
        return;
    }
    let start = out.len();
    out.extend([ECHO_REQUEST, 0, 0, 0]);
    out.extend(echo.identifier.to_be_bytes());
    out.extend(echo.sequence.to_be_bytes());
    out.extend((0..payload).map(|at| at as u8));
    ipv4::set_checksum(out, start, start + 2, 0);
}

/// The echo that a packet replies to; `None` for any other or corrupted packet.
pub fn read_reply(packet: &[u8]) -> Option<Echo> {
    let packet = Packet::read(packet).filter(|packet| packet.protocol == ICMP)?;
    let &[kind, code, _, _, id_high, id_low, sequence_high, sequence_low] = packet.payload.first_chunk()?;
    let is_reply = (kind, code) == (ECHO_REPLY, 0) && ipv4::checksum(packet.payload, 0) == 0;
    is_reply.then_some(Echo {
        source: packet.destination,
        destination: packet.source,
        identifier: u16::from_be_bytes([id_high, id_low]),
        sequence: u16::from_be_bytes([sequence_high, sequence_low]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv4::{checksum, destination, set_checksum};

    /// The kernel's answer to `ping -c 1 -s 8 -p 00 192.0.2.1`, with other addresses.
    const REPLY: &str = "4500002400010000400176d6c00002010a2d0002\
                         0000fff300010000000000000000000c";

    fn reply() -> Vec<u8> {
        let mut octets = hex::decode(REPLY).unwrap();
        octets[10..12].fill(0);
        set_checksum(&mut octets[..20], 0, 10, 0);
        octets[22..24].fill(0);
        let sum = checksum(&octets[20..], 0).to_be_bytes();
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
    fn a_request_is_complete_and_not_a_reply() {
        let mut out = vec![0xee; 16];
        write_request(&mut out, echo(), 56);
        let packet = &out[16..];
        assert_eq!(packet.len(), 84);
        assert_eq!((checksum(&packet[..20], 0), checksum(&packet[20..], 0)), (0, 0));
        assert_eq!(read_reply(packet), None);
    }

    #[test]
    fn corrupted_and_truncated_replies_are_refused() {
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
