//! UDP packets and TCP segments that name their session, and a reader that checks their checksums.

use super::octets::{V4, sum, transport_sum, udp};
use super::support::conntrack::{TCP, UDP};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// A host behind the server.
pub const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// A packet of a UE.
pub struct Segment {
    pub id: u64,
    protocol: u8,
    ue_port: u16,
    server_port: u16,
    flags: u8,
    length: usize,
}

impl Segment {
    /// Half of the UEs have the same ports, so that NAT has to change them.
    pub fn udp(id: u64, length: usize) -> Self {
        let ue_port = if id.is_multiple_of(2) { 5000 } else { 5000 + id as u16 };
        Self { id, protocol: UDP, ue_port, server_port: 7000, flags: 0, length }
    }

    pub fn tcp(id: u64, ue_port: u16, flags: u8, length: usize) -> Self {
        Self { id, protocol: TCP, ue_port, server_port: 8000, flags, length }
    }

    pub fn packet(&self, from: Ipv4Addr) -> Vec<u8> {
        ipv4(self.protocol, (from, self.ue_port), (REMOTE, self.server_port), self.flags, &self.payload())
    }

    /// The session's number and its port, which the server cannot see otherwise.
    fn payload(&self) -> Vec<u8> {
        payload(self.id, self.ue_port, self.length)
    }
}

pub fn payload(id: u64, ue_port: u16, length: usize) -> Vec<u8> {
    let mut payload = [&id.to_be_bytes()[..], &ue_port.to_be_bytes()].concat();
    payload.resize(payload.len() + length, id as u8);
    payload
}

/// A UDP packet, or a TCP segment with any sequence number.
pub fn ipv4(protocol: u8, from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), flags: u8, payload: &[u8]) -> Vec<u8> {
    let (source, destination) = (IpAddr::from(from.0), IpAddr::from(to.0));
    let transport = match protocol {
        UDP => udp((source, from.1), (destination, to.1), payload),
        _ => {
            let ports = [from.1.to_be_bytes(), to.1.to_be_bytes()].concat();
            let numbers = sum(&[payload, &ports]).to_be_bytes().repeat(4);
            let mut segment =
                [&ports[..], &numbers, &[0x50, flags, 0xff, 0xff, 0, 0, 0, 0], payload].concat();
            let checksum = !transport_sum(source, destination, TCP, &segment);
            segment[16..18].copy_from_slice(&checksum.to_be_bytes());
            segment
        }
    };
    let (source, destination) = (from.0.octets(), to.0.octets());
    let header =
        V4 { source, destination, protocol, tos: 0, id: 0, fragment: 0x4000, ttl: 64, options: Vec::new() };
    header.before(&transport)
}

/// What a receiver reads of a packet, after its checksums.
pub struct Seen<'a> {
    pub protocol: u8,
    pub source: (Ipv4Addr, u16),
    pub destination: (Ipv4Addr, u16),
    pub flags: u8,
    /// The session's number and its UE's port.
    pub id: u64,
    pub ue_port: u16,
    packet: &'a [u8],
}

impl fmt::Debug for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, source, destination, id, ue_port, packet, .. } = self;
        write!(
            f,
            "protocol {protocol} from {source:?} to {destination:?} of session {id}, {ue_port}: {packet:02x?}"
        )
    }
}

/// `None`: not UDP or TCP over IPv4.
pub fn see(packet: &[u8]) -> Option<Seen<'_>> {
    let (head, segment) = packet.split_at_checked(20)?;
    let protocol = head[9];
    let at = match protocol {
        UDP => 8,
        TCP => 20,
        _ => return None,
    };
    let address = |at: usize| Ipv4Addr::new(head[at], head[at + 1], head[at + 2], head[at + 3]);
    let word = |at: usize| Some(u16::from_be_bytes([*segment.get(at)?, *segment.get(at + 1)?]));
    let (source, destination) = (address(12), address(16));
    assert_eq!(sum(&[head]), 0xffff, "an IPv4 checksum: {packet:02x?}");
    let summed = transport_sum(source.into(), destination.into(), protocol, segment);
    assert_eq!(summed, 0xffff, "a checksum: {packet:02x?}");
    Some(Seen {
        protocol,
        source: (source, word(0)?),
        destination: (destination, word(2)?),
        flags: if protocol == TCP { segment[13] } else { 0 },
        id: u64::from_be_bytes(segment.get(at..at + 8)?.try_into().ok()?),
        ue_port: word(at + 8)?,
        packet,
    })
}
