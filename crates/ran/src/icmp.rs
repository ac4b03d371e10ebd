//! ICMP echo requests and replies over IPv4 (RFC 792) and IPv6 (RFC 4443), as a UE sends and receives them.

use crate::ipv4::{self, Packet};
use crate::ipv6;
use std::net::IpAddr;

const ICMP_HEADER: usize = 8;
const ICMP: u8 = 1;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;
const HOP_LIMIT: u8 = 64;

/// Identifies an echo; the reply repeats all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// Sender of the request.
    pub source: IpAddr,
    /// Destination of the request.
    pub destination: IpAddr,
    /// Distinguishes pings.
    pub identifier: u16,
    /// Distinguishes the echoes of a ping.
    pub sequence: u16,
}

/// Appends an echo request with `payload` octets of data to `out`; nothing if it does not fit into a packet.
pub fn write_request(out: &mut Vec<u8>, echo: Echo, payload: usize) {
    let identity = || echo.identifier.to_be_bytes().into_iter().chain(echo.sequence.to_be_bytes());
    let data = || (0..payload).map(|at| at as u8);
    let addresses = match (echo.source, echo.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => (source, destination),
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let message = [ECHO_REQUEST_V6, 0, 0, 0].into_iter().chain(identity()).chain(data());
            return ipv6::write_icmp(out, (source, destination), HOP_LIMIT, message);
        }
        _ => return,
    };
    if !ipv4::write_header(out, addresses, ICMP, echo.sequence, ICMP_HEADER + payload) {
        return;
    }
    let start = out.len();
    out.extend([ECHO_REQUEST, 0, 0, 0]);
    out.extend(identity());
    out.extend(data());
    ipv4::set_checksum(out, start, start + 2, 0);
}

/// The echo that a packet replies to; `None` for any other or corrupted packet.
pub fn read_reply(packet: &[u8]) -> Option<Echo> {
    if let Some(packet) = ipv6::Packet::read(packet) {
        let &[ECHO_REPLY_V6, 0, _, _, id_high, id_low, sequence_high, sequence_low] =
            packet.icmp()?.first_chunk()?
        else {
            return None;
        };
        return Some(Echo {
            source: packet.destination.into(),
            destination: packet.source.into(),
            identifier: u16::from_be_bytes([id_high, id_low]),
            sequence: u16::from_be_bytes([sequence_high, sequence_low]),
        });
    }
    let packet = Packet::read(packet).filter(|packet| packet.protocol == ICMP)?;
    let &[kind, code, _, _, id_high, id_low, sequence_high, sequence_low] = packet.payload.first_chunk()?;
    let is_reply = (kind, code) == (ECHO_REPLY, 0) && ipv4::checksum(packet.payload, 0) == 0;
    is_reply.then_some(Echo {
        source: packet.destination.into(),
        destination: packet.source.into(),
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
        Echo { source: [10, 45, 0, 2].into(), destination: [192, 0, 2, 1].into(), identifier: 1, sequence: 0 }
    }

    #[test]
    fn a_reply_is_matched_to_its_echo() {
        assert_eq!(read_reply(&reply()), Some(echo()));
        assert_eq!(destination(&reply()), Some([10, 45, 0, 2].into()));
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
    fn an_echo_over_ipv6_is_answered_under_the_same_numbers() {
        let [ue, server]: [IpAddr; 2] = ["2001:db8::2", "2001:db8:1::1"].map(|text| text.parse().unwrap());
        let echo = Echo { source: ue, destination: server, identifier: 7, sequence: 258 };
        let mut request = Vec::new();
        write_request(&mut request, echo, 5);
        assert_eq!((request.len(), read_reply(&request)), (53, None));
        assert_eq!(request[40..42], [128, 0]);
        assert_eq!(request[44..], [0, 7, 1, 2, 0, 1, 2, 3, 4]);
        let (IpAddr::V6(ue), IpAddr::V6(server)) = (ue, server) else { panic!() };
        let mut reply = Vec::new();
        let message = [129, 0, 0, 0].into_iter().chain(request[44..].iter().copied());
        ipv6::write_icmp(&mut reply, (server, ue), 60, message);
        assert_eq!(read_reply(&reply), Some(echo));
        write_request(&mut request, Echo { source: [10, 45, 0, 2].into(), ..echo }, 5);
        assert_eq!(request.len(), 53, "two IP versions");
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
