//! What NAT must do, known independently of the datapath: the public end of each connection is learned from its first packet
//! at the data network, must stay, and must be conntrack's.
//!
//! The oracle knows UEs' addresses only. Frames to a UE are translated as they are sent, and what arrives is translated
//! back before it is compared; a packet that NAT damages or gives to another connection is thereby not the expected one.

use super::cast::REMOTE_V4;
use super::lasting::is_steady;
use super::octets::{set_v4_checksum, sum};
use super::reader::{self, Outer};
use super::translation::{
    DESTINATION, HEAD, Original, Places, SOURCE, address, connection, is_error, is_same_checksum, places,
    places_quoted, replace, translate, word,
};
use crate::support::conntrack::{Connection, ICMP, UDP, public_ends};
use crate::support::{GATEWAY, UPF_N6};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

/// Sources of packets to a UE's own address have this bit in their last octet: a connection has one direction.
pub const INBOUND: u8 = 0x80;
const ETHERNET: usize = 14;
/// Where an ICMP error has the packet that it quotes.
const QUOTED_AT: usize = HEAD + 8;

/// The public ports of connections.
#[derive(Debug, Clone, Default)]
pub struct Nat {
    ports: HashMap<Connection, u16>,
    connections: HashMap<(u8, u16, (Ipv4Addr, u16)), Connection>,
}

impl Nat {
    /// The public end of the connection of a frame's packet to a UE; `None`: it has none.
    fn public_port(&self, packet: &[u8]) -> Option<(Places, u16)> {
        let places = places(packet)?;
        let port = self.ports.get(&connection(packet, places, DESTINATION)?)?;
        Some((places, *port))
    }

    /// Whether an IPv4 packet to a UE's own address is of no connection that the UE began. Conntrack may know a connection about
    /// which an error is, and the oracle not.
    pub fn is_unsolicited(&self, packet: &[u8]) -> bool {
        self.public_port(packet).is_none() && !is_error(packet)
    }

    /// Whether it is an ICMP error about a connection that the oracle does not know.
    pub fn is_about_unknown(&self, packet: &[u8]) -> bool {
        is_error(packet) && self.quoted_port(packet).is_none()
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

    /// The public end of the packet that an ICMP error quotes, if its UE sent it.
    fn quoted_port(&self, packet: &[u8]) -> Option<(Places, u16)> {
        if !is_error(packet) || sum(&[&packet[HEAD..]]) != 0xffff {
            return None;
        }
        let quoted = &packet[QUOTED_AT..];
        let is_of_receiver = address(packet, DESTINATION) == address(quoted, SOURCE);
        let places = places_quoted(quoted).filter(|_| is_of_receiver)?;
        let port = self.ports.get(&connection(quoted, places, SOURCE)?)?;
        Some((places, *port))
    }

    /// An ICMP error about a packet that its UE sent: the quoted packet has the public end.
    fn quote_public(&self, packet: &mut [u8]) {
        let Some((mut places, port)) = self.quoted_port(packet) else { return };
        let quoted = &mut packet[QUOTED_AT..];
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
        let is_beyond = packet[SOURCE..SOURCE + 3] == REMOTE_V4;
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
        let had = self.ports.get(&connection).copied().filter(|had| *had != port);
        let other = self.connections.get(&end).copied().filter(|other| *other != connection);
        if had.is_some() || other.is_some() {
            // The kernel may have forgotten one of the two, but not otherwise.
            let real = public_ends();
            // A segment with RST may have ended one that it belonged to.
            let may_be_gone = !is_steady(&connection) && !real.contains_key(&connection);
            if !may_be_gone && real.get(&connection) != Some(&(UPF_N6, port)) {
                return Err("from another public port than conntrack's");
            }
            if other.is_some_and(|other| real.get(&other) == Some(&(UPF_N6, port))) {
                return Err("two connections have one public port");
            }
        }
        had.and_then(|had| self.connections.remove(&(connection.protocol, had, connection.remote)));
        other.and_then(|other| self.ports.remove(&other));
        self.ports.insert(connection, port);
        self.connections.insert(end, connection);
        Ok(())
    }

    /// Forgets connections that the kernel has forgotten, or begun again by a packet with IP options, which is not learned from.
    /// An error names one that had to last.
    pub fn compare(&mut self) -> Result<(), String> {
        let real = public_ends();
        let wrong = self.ports.iter().filter(|(connection, _)| is_steady(connection)).find_map(
            |(connection, port)| {
                let end = real.get(connection)?;
                (*end != (UPF_N6, *port))
                    .then(|| format!("{connection:?} was seen from port {port}, conntrack has {end:?}"))
            },
        );
        self.ports.retain(|connection, port| real.get(connection) == Some(&(UPF_N6, *port)));
        let ports = &self.ports;
        self.connections.retain(|_, connection| ports.contains_key(connection));
        wrong.map_or(Ok(()), Err)
    }
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
