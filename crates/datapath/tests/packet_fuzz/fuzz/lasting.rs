//! The connections that all rounds use with NAT, and the packets that every path has to translate.

use super::cast::{LOCAL_PORTS, REMOTE_PORTS};
use super::octets::{sum, transport_sum};
use super::reader::Ip;
use super::translation::{DESTINATION, HEAD, SOURCE, connection, is_error, places, places_quoted, word};
use crate::support::conntrack::{Connection, TCP, UDP};
use pith_upf::contract::Direction;

/// A connection that all rounds use, by its number; TCP connections of the last ones begin and end at any time.
pub const CONNECTIONS: usize = 8;
const STEADY: usize = 6;
/// Their remote ports.
pub const MAY_END: [u16; 2] = [REMOTE_PORTS[0] + 6, REMOTE_PORTS[0] + 7];

/// Both ports and the last octet of the remote address of a connection: some have the same port of the UE.
pub fn ends_of(number: usize) -> ([u16; 2], u8) {
    ([LOCAL_PORTS[0] + number as u16 / 2, REMOTE_PORTS[0] + number as u16], 1 + number as u8 % 4)
}

/// Whether it is a TCP connection that lasts, by its ends.
pub fn is_steady(connection: &Connection) -> bool {
    let (own, far) = (connection.ue.1, (connection.remote.0.octets()[3], connection.remote.1));
    (0..STEADY).map(ends_of).any(|(ports, last)| (own, far) == (ports[0], (last, ports[1])))
}

/// What the packets of all connections do one after the other, so that every path translates those that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    UdpUp,
    UdpDown,
    EchoUp,
    EchoDown,
    Syn,
    SynAck,
    Ack,
}

impl Step {
    pub const ALL: [Self; 7] =
        [Self::UdpUp, Self::UdpDown, Self::EchoUp, Self::EchoDown, Self::Syn, Self::SynAck, Self::Ack];

    pub fn direction(self) -> Direction {
        match self {
            Self::UdpUp | Self::EchoUp | Self::Syn | Self::Ack => Direction::Uplink,
            Self::UdpDown | Self::EchoDown | Self::SynAck => Direction::Downlink,
        }
    }
}

/// Whether every path translates the packet, of a connection that has begun and not ended: complete, and with a right checksum.
pub fn is_sure(ip: &Ip<'_>, direction: Direction) -> bool {
    let packet = ip.octets;
    if ip.v6 {
        return true;
    }
    let is_whole = word(packet, 6).is_some_and(|fragment| fragment & 0x3fff == 0);
    if is_error(packet) {
        // Conntrack waits for the other fragments.
        return is_whole && sum(&[&packet[HEAD..]]) == 0xffff && places_quoted(&packet[HEAD + 8..]).is_some();
    }
    let Some(places) = places(packet).filter(|_| is_whole) else { return false };
    let segment = &packet[HEAD..];
    let is_right = || transport_sum(ip.source, ip.destination, places.protocol, segment) == 0xffff;
    let (end, echo) = if direction == Direction::Uplink { (SOURCE, 8) } else { (DESTINATION, 0) };
    match places.protocol {
        UDP => {
            let is_whole = word(segment, 4).is_some_and(|length| usize::from(length) == segment.len());
            let is_private = (0..2).all(|at| word(segment, at * 2).is_some_and(|port| port >= 1024));
            is_whole && is_private && (word(segment, 6) == Some(0) || is_right())
        }
        TCP => {
            let head = usize::from(segment.get(12).copied().unwrap_or(0) >> 4) * 4;
            let is_data = segment.get(13).is_some_and(|flags| matches!(flags, 0x10 | 0x18));
            let is_steady = connection(packet, places, end).is_some_and(|connection| is_steady(&connection));
            (20..=segment.len()).contains(&head) && is_data && is_steady && is_right()
        }
        _ => segment[0] == echo && segment.len() >= 8 && sum(&[segment]) == 0xffff,
    }
}

/// Whether a user packet begins or ends a TCP connection that has to last.
pub fn is_harmful(packet: &[u8]) -> bool {
    let Some(places) = places(packet).filter(|places| places.protocol == TCP) else { return false };
    let begins_or_ends = packet.get(HEAD + 13).is_some_and(|flags| flags & 7 != 0);
    let is_steady = [SOURCE, DESTINATION]
        .iter()
        .any(|end| connection(packet, places, *end).is_some_and(|connection| is_steady(&connection)));
    begins_or_ends && is_steady
}
