//! What NAT must do, known independently of the datapath: the public end of each connection is learned from its first packet
//! at the data network, must stay, and must be conntrack's.
//!
//! The oracle knows UEs' addresses only. Frames to a UE are translated as they are sent, and what arrives is translated
//! back before it is compared; a packet that NAT damages or gives to another connection is thereby not the expected one.

use super::cast::{LOCAL_PORTS, REMOTE_PORTS};
use super::octets::{set_v4_checksum, sum, transport_sum};
use super::reader::{self, Ip, Outer};
use crate::support::conntrack::{Connection, ICMP, TCP, UDP, public_ends};
use crate::support::{GATEWAY, UPF_N6};
use pith_upf::contract::Direction;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr};

const ETHERNET: usize = 14;
const SOURCE: usize = 12;
const DESTINATION: usize = 16;
const HEAD: usize = 20;
/// Sources of packets to a UE's own address have this bit in their last octet: a connection has one direction.
pub const INBOUND: u8 = 0x80;

/// The public ports of connections.
#[derive(Debug, Clone, Default)]
pub struct Nat {
    ports: HashMap<Connection, u16>,
    connections: HashMap<(u8, u16, (Ipv4Addr, u16)), Connection>,
}

/// What translation changes of a packet that may come to the data network.
#[derive(Debug, Clone)]
pub struct Original {
    source: Ipv4Addr,
    port: u16,
    checksum: u16,
}

/// Where a packet has what translation changes: offsets of both ports and of the checksum.
#[derive(Debug, Clone, Copy)]
struct Places {
    protocol: u8,
    ports: [usize; 2],
    check: usize,
}

/// `None`: no first part of UDP, TCP or ICMP Echo over IPv4 without options.
fn places(packet: &[u8]) -> Option<Places> {
    let is_first = word(packet, 6)? & 0x1fff == 0;
    let protocol = *packet.get(9)?;
    let (ports, check) = match protocol {
        UDP => ([HEAD, HEAD + 2], HEAD + 6),
        TCP => ([HEAD, HEAD + 2], HEAD + 16),
        ICMP if matches!(packet.get(HEAD)?, 0 | 8) => ([HEAD + 4; 2], HEAD + 2),
        _ => return None,
    };
    let is_complete = packet.len() >= check.max(ports[1]) + 2;
    (packet[0] == 0x45 && is_first && is_complete).then_some(Places { protocol, ports, check })
}

fn word(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*octets.get(at)?, *octets.get(at + 1)?]))
}

fn address(octets: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3])
}

/// Replaces octets in the scope of the checksum at `check`, and updates that; a wrong one stays wrong (RFC 1624 3).
fn replace(packet: &mut [u8], at: usize, new: &[u8], check: usize) {
    let old = packet[at..at + new.len()].iter().map(|octet| !octet).collect::<Vec<_>>();
    packet[at..at + new.len()].copy_from_slice(new);
    let before = (!word(packet, check).unwrap_or(0)).to_be_bytes();
    let after = !sum(&[&before, &old, new]);
    packet[check..check + 2].copy_from_slice(&after.to_be_bytes());
}

/// Gives a packet another end, at `end` (SOURCE or DESTINATION).
fn translate(packet: &mut [u8], places: Places, end: usize, to: Ipv4Addr, port: u16) {
    let Places { protocol, ports, check } = places;
    let is_unchecked = protocol == UDP && word(packet, check) == Some(0);
    let old = packet[end..end + 4].to_vec();
    replace(packet, end, &to.octets(), 10);
    if protocol != ICMP {
        // The address is in the pseudo header.
        packet[end..end + 4].copy_from_slice(&old);
        replace(packet, end, &to.octets(), check);
    }
    replace(packet, ports[usize::from(end == DESTINATION)], &port.to_be_bytes(), check);
    if protocol == UDP && (is_unchecked || word(packet, check) == Some(0)) {
        packet[check..check + 2].fill(if is_unchecked { 0 } else { 0xff });
    }
}

/// The connection of a packet from a UE, or, with `end` DESTINATION, to it.
fn connection(packet: &[u8], places: Places, end: usize) -> Option<Connection> {
    let own = usize::from(end == DESTINATION);
    let port = |at: usize| word(packet, places.ports[at]);
    let remote_port = if places.protocol == ICMP { 0 } else { port(1 - own)? };
    Some(Connection {
        protocol: places.protocol,
        ue: (address(packet, end), port(own)?),
        remote: (address(packet, SOURCE + DESTINATION - end), remote_port),
    })
}

/// All of a packet but what translation changes.
fn skeleton(packet: &[u8], places: Places) -> u64 {
    let mut rest = packet.to_vec();
    rest[10..16].fill(0);
    for at in [places.ports[0], places.check] {
        rest[at..at + 2].fill(0);
    }
    if packet[6] & 0x40 != 0 {
        // Without meaning (RFC 6864 4.1).
        rest[4..6].fill(0);
    }
    let mut hasher = DefaultHasher::new();
    rest.hash(&mut hasher);
    hasher.finish()
}

/// What is needed to recognize a packet of a UE after its translation.
pub fn original(packet: &[u8]) -> Option<(u64, Original)> {
    let places = places(packet)?;
    let (source, port) = (address(packet, SOURCE), word(packet, places.ports[0])?);
    Some((skeleton(packet, places), Original { source, port, checksum: word(packet, places.check)? }))
}

impl Nat {
    /// The public end of the connection of a frame's packet to a UE; `None`: it has none.
    fn public_port(&self, packet: &[u8]) -> Option<(Places, u16)> {
        let places = places(packet)?;
        let port = self.ports.get(&connection(packet, places, DESTINATION)?)?;
        Some((places, *port))
    }

    pub fn knows(&self, connection: &Connection) -> bool {
        self.ports.contains_key(connection)
    }

    /// A frame for a UE as hosts of the data network send it: to the connection's public end.
    pub fn to_public(&self, frame: &[u8], link: &[u8; 6]) -> Vec<u8> {
        let mut frame = frame.to_vec();
        if let Some(at) = v4_at(&frame, link) {
            let packet = &mut frame[at..];
            match self.public_port(packet) {
                Some((places, port)) => translate(packet, places, DESTINATION, UPF_N6, port),
                None => self.quote_public(packet),
            }
        }
        frame
    }

    /// An ICMP error about a packet that its UE sent: the quoted packet has the public end.
    fn quote_public(&self, packet: &mut [u8]) {
        let quoted_at = HEAD + 8;
        if !is_error(packet) || sum(&[&packet[HEAD..]]) != 0xffff {
            return;
        }
        let quoted = &mut packet[quoted_at..];
        let Some(mut places) = places_quoted(quoted) else { return };
        let known = connection(quoted, places, SOURCE).and_then(|connection| self.ports.get(&connection));
        let Some(port) = known.copied() else { return };
        places.check = HEAD + 6;
        translate(quoted, places, SOURCE, UPF_N6, port);
        packet[DESTINATION..DESTINATION + 4].copy_from_slice(&UPF_N6.octets());
        set_v4_checksum(packet);
        packet[HEAD + 2..HEAD + 4].fill(0);
        let checksum = !sum(&[&packet[HEAD..]]);
        packet[HEAD + 2..HEAD + 4].copy_from_slice(&checksum.to_be_bytes());
    }

    /// A packet to a UE that is of no connection gets a source to which no UE sends: no connection begins on both sides.
    pub fn set_apart(&self, mut frame: Vec<u8>, link: &[u8; 6]) -> Vec<u8> {
        let Some(at) = v4_at(&frame, link) else { return frame };
        let packet = &mut frame[at..];
        let is_beyond = packet[SOURCE..SOURCE + 3] == super::cast::REMOTE_V4;
        if self.public_port(packet).is_some() || is_error(packet) || !is_beyond {
            return frame;
        }
        let last = [packet[SOURCE + 2], packet[SOURCE + 3] | INBOUND];
        match places(packet).filter(|places| places.protocol != ICMP) {
            Some(places) if !(places.protocol == UDP && word(packet, places.check) == Some(0)) => {
                let old = packet[SOURCE + 2..SOURCE + 4].to_vec();
                replace(packet, SOURCE + 2, &last, places.check);
                packet[SOURCE + 2..SOURCE + 4].copy_from_slice(&old);
            }
            _ => {}
        }
        replace(packet, SOURCE + 2, &last, 10);
        frame
    }

    /// A packet at the data network as its UE sent it; `originals`: of packets like this. An error states what NAT may not do.
    pub fn restore<'a>(
        &mut self,
        packet: &[u8],
        originals: impl Iterator<Item = &'a Original>,
    ) -> Result<Option<Vec<u8>>, &'static str> {
        if address(packet, SOURCE).octets()[..2] == GATEWAY.octets()[..2] {
            return Err("a UE's own address on N6");
        }
        let Some(places) = places(packet).filter(|_| address(packet, SOURCE) == UPF_N6) else {
            return Ok(None);
        };
        let port = word(packet, places.ports[0]).unwrap_or(0);
        for original in originals {
            let mut restored = packet.to_vec();
            translate(&mut restored, places, SOURCE, original.source, original.port);
            if is_same_checksum(&restored, places, original) {
                let Some(connection) = connection(&restored, places, SOURCE) else { continue };
                self.learn(connection, port)?;
                return Ok(Some(restored));
            }
        }
        Ok(None)
    }

    fn learn(&mut self, connection: Connection, port: u16) -> Result<(), &'static str> {
        let end = (connection.protocol, port, connection.remote);
        let had = self.ports.insert(connection, port);
        let other = self.connections.insert(end, connection).filter(|other| *other != connection);
        if had == Some(port) && other.is_none() {
            return Ok(());
        }
        if let Some(had) = had {
            self.connections.remove(&(connection.protocol, had, connection.remote));
        }
        if let Some(other) = other {
            self.ports.remove(&other);
        }
        if had.is_none() && other.is_none() {
            return Ok(());
        }
        // The kernel may have forgotten one of the two, but not otherwise.
        let real = public_ends();
        if real.get(&connection) != Some(&(UPF_N6, port)) {
            return Err("from another public port than conntrack's");
        }
        match other {
            Some(other) if real.get(&other) == Some(&(UPF_N6, port)) => {
                Err("two connections have one public port")
            }
            _ => Ok(()),
        }
    }

    /// Forgets connections that the kernel has forgotten; an error names one that it has otherwise.
    pub fn compare(&mut self) -> Result<(), String> {
        let real = public_ends();
        let wrong = self.ports.iter().find_map(|(connection, port)| {
            let end = real.get(connection)?;
            (*end != (UPF_N6, *port))
                .then(|| format!("{connection:?} was seen from port {port}, conntrack has {end:?}"))
        });
        self.ports.retain(|connection, _| real.contains_key(connection));
        let ports = &self.ports;
        self.connections.retain(|_, connection| ports.contains_key(connection));
        wrong.map_or(Ok(()), Err)
    }
}

/// All ones and zero are the same sum, but for UDP, where zero is none.
fn is_same_checksum(packet: &[u8], places: Places, original: &Original) -> bool {
    let checksum = word(packet, places.check).unwrap_or(0);
    let is_zero = |checksum: u16| matches!(checksum, 0 | 0xffff);
    checksum == original.checksum || places.protocol != UDP && is_zero(checksum) && is_zero(original.checksum)
}

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
    if is_error(packet) {
        return sum(&[&packet[HEAD..]]) == 0xffff && places_quoted(&packet[HEAD + 8..]).is_some();
    }
    let is_whole = word(packet, 6).is_some_and(|fragment| fragment & 0x3fff == 0);
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

/// Where a frame for the UPF has its IPv4 packet.
fn v4_at(frame: &[u8], link: &[u8; 6]) -> Option<usize> {
    let Outer::Packet { octets, .. } = reader::frame(frame, link) else { return None };
    let ip = reader::packet(octets)?;
    let is_v4 = matches!(ip.destination, IpAddr::V4(_));
    (is_v4 && octets.len() >= HEAD)
        .then(|| octets.as_ptr() as usize - frame.as_ptr() as usize)
        .filter(|at| *at >= ETHERNET)
}

/// Destination Unreachable or Time Exceeded, with the start of a packet.
fn is_error(packet: &[u8]) -> bool {
    packet.len() >= 2 * HEAD + 16 && packet[0] == 0x45 && packet[9] == ICMP && matches!(packet[HEAD], 3 | 11)
}

/// As [`places`], of a packet of which only the first eight octets are there.
fn places_quoted(quoted: &[u8]) -> Option<Places> {
    let is_udp = quoted[0] == 0x45 && quoted[9] == UDP && word(quoted, 6)? & 0x1fff == 0;
    is_udp.then_some(Places { protocol: UDP, ports: [HEAD, HEAD + 2], check: HEAD + 6 })
}
