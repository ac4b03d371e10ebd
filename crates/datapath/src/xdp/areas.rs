//! Mirrors the closed destinations and the accepted GTP-U peers into the BPF program's table (`bpf/tables.h`:
//! `areas`).

use super::XdpError;
use super::program::Program;
use crate::boundary::{Area, Mirror, Reach, only};
use crate::sys::layout::{AREA_CLOSED, AREA_CLOSED_MAY, AREA_HERE, AREA_OPEN, AREA_PEER, AREA_TENANT};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use pith_upf::contract::AddressRange;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// The table and its current entries.
#[derive(Debug)]
pub struct Areas {
    table: MapHandle,
    known: HashMap<AddressRange, u32>,
    wanted: HashMap<AddressRange, u32>,
    peers: HashSet<IpAddr>,
    /// The program's switch for a table that lacks entries.
    switch: MapHandle,
    is_complete: bool,
}

impl Areas {
    /// For a program that was just loaded.
    pub fn of(program: &Program) -> Result<Self, XdpError> {
        Ok(Self {
            table: program.table("areas")?,
            known: HashMap::new(),
            wanted: HashMap::new(),
            peers: HashSet::new(),
            switch: program.table("incomplete")?,
            is_complete: true,
        })
    }

    /// The entry for a network; `None`: no entry.
    fn value(&self, range: AddressRange) -> Option<u32> {
        let is_peer = self.peers.contains(&range.address) && only(range.address) == range;
        let wanted = self.wanted.get(&range).copied();
        if is_peer { Some(AREA_PEER | wanted.unwrap_or_else(|| self.around(range.address))) } else { wanted }
    }

    /// The area of the longest network that contains a peer. If there is none, user space decides.
    fn around(&self, peer: IpAddr) -> u32 {
        let around = self.wanted.iter().filter(|(range, _)| range.contains(peer));
        around.max_by_key(|(range, _)| range.prefix).map_or(AREA_CLOSED_MAY, |(_, area)| *area)
    }

    /// Writes the entry for a network; `false`: the kernel refused it.
    fn put(&mut self, range: AddressRange) -> bool {
        let value = self.value(range);
        if value == self.known.get(&range).copied() {
            return true;
        }
        let changed = match value {
            Some(value) => self.table.update(&key(range), &value.to_ne_bytes(), MapFlags::ANY),
            None => self.table.delete(&key(range)),
        };
        match (changed, value) {
            (Ok(()), Some(value)) => drop(self.known.insert(range, value)),
            (Ok(()), None) => drop(self.known.remove(&range)),
            (Err(error), _) => {
                tracing::debug!(?range, %error, "the XDP program's table of closed destinations refuses an entry");
                return false;
            }
        }
        true
    }

    /// Sets whether the table holds all entries. Without all, the program leaves each destination and source that is not
    /// closed to user space, which has them all.
    fn set_complete(&mut self, complete: bool) {
        if complete == self.is_complete {
            return;
        }
        let value = u32::from(!complete).to_ne_bytes();
        if let Err(error) = self.switch.update(&0u32.to_ne_bytes(), &value, MapFlags::ANY) {
            return tracing::error!(%error, "the XDP program's switch for incomplete closed destinations could not be set");
        }
        self.is_complete = complete;
        if complete {
            tracing::info!("the XDP program's closed destinations are complete again");
        } else {
            tracing::error!(
                "the XDP program's table of closed destinations has no room: packets from and to N6 take the portable path; \
                 'upf.radios' with the networks of gNBs needs fewer entries than one for each gNB"
            );
        }
    }
}

impl Mirror for Areas {
    fn set_areas(&mut self, reach: &Reach) {
        self.wanted = areas(reach);
        // New entries first, so that no closed address is open in between.
        let peers = self.peers.iter().copied().map(only);
        let mut refused: Vec<_> = self.wanted.keys().copied().chain(peers).collect();
        refused.retain(|range| !self.put(*range));
        if !refused.is_empty() {
            self.set_complete(false);
        }
        let mut old: Vec<_> = self.known.keys().copied().collect();
        old.retain(|range| !self.wanted.contains_key(range) && !self.put(*range));
        // Old entries may have made room.
        refused.retain(|range| !self.put(*range));
        self.set_complete(refused.is_empty() && old.is_empty());
    }

    fn set_peer(&mut self, peer: IpAddr, known: bool) {
        if known {
            self.peers.insert(peer);
        } else {
            self.peers.remove(&peer);
        }
        if !self.put(only(peer)) {
            self.set_complete(false);
        }
    }
}

/// The table's entries. User space decides wherever a permit may match.
fn areas(reach: &Reach) -> HashMap<AddressRange, u32> {
    let permitted: Vec<AddressRange> =
        reach.permits().map(|permit| permit.to.network()).chain(reach.gateways().map(only)).collect();
    let is_within = |range: &AddressRange, around: &AddressRange| {
        around.prefix <= range.prefix && around.contains(range.address)
    };
    let is_permitted = |range: &AddressRange| permitted.iter().any(|permit| is_within(range, permit));
    let mut areas: HashMap<AddressRange, u32> = HashMap::new();
    for (range, area) in reach.entries() {
        let value = match area {
            Area::Open => AREA_OPEN,
            Area::Closed if is_permitted(range) => AREA_CLOSED_MAY,
            Area::Closed => AREA_CLOSED,
            // User space distinguishes GTP-U from other packets.
            Area::TunnelPeer => AREA_CLOSED_MAY,
            Area::Tenant(tenant) => AREA_TENANT + u32::from(*tenant),
        };
        let here = if reach.is_here(range.address) { AREA_HERE } else { 0 };
        areas.insert(*range, value | here);
    }
    for permit in permitted {
        if reach.area(permit.address) == Area::Closed {
            let here = if reach.is_here(permit.address) { AREA_HERE } else { 0 };
            areas.entry(permit).or_insert(AREA_CLOSED_MAY | here);
        }
    }
    for radios in reach.radios() {
        *areas.entry(radios.network()).or_insert(AREA_CLOSED) |= AREA_PEER;
    }
    areas
}

/// `struct area_key`.
fn key(range: AddressRange) -> Vec<u8> {
    const FAMILY_BITS: u32 = 32;
    let (family, octets) = match range.address {
        IpAddr::V4(v4) => (4u32, [&v4.octets()[..], &[0; 12]].concat()),
        IpAddr::V6(v6) => (6, v6.octets().to_vec()),
    };
    let length = FAMILY_BITS + u32::from(range.prefix);
    [&length.to_ne_bytes()[..], &family.to_ne_bytes(), &octets].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::{Boundary, Host, Tenant};
    use crate::system::parse_network;

    #[test]
    fn user_space_decides_where_a_permit_may_match() {
        let range = |text: &str| parse_network(text).unwrap();
        let host = Host { local: vec![range("192.0.2.1"), range("192.0.3.1")], ..Host::default() };
        let permits = vec!["192.0.2.0/24 udp port 53".parse().unwrap(), "8.8.8.8".parse().unwrap()];
        let boundary = Boundary {
            core: vec![range("192.0.0.0/16")],
            radios: vec![range("198.51.100.0/24")],
            tenants: vec![Tenant { pools: vec![range("10.45.0.0/16")], permits }],
            ..Boundary::default()
        };
        let areas = areas(&Reach::compile(&boundary, &[], &host, (&[], &[])));
        for (network, area) in [
            ("192.0.0.0/16", Some(AREA_CLOSED)),
            ("192.0.2.0/24", Some(AREA_CLOSED_MAY)),
            ("192.0.2.1", Some(AREA_CLOSED_MAY)),
            ("192.0.3.1", Some(AREA_CLOSED)),
            ("198.51.100.0/24", Some(AREA_CLOSED | AREA_PEER)),
            ("10.45.0.0/16", Some(AREA_TENANT)),
            ("8.8.8.8", None),
        ] {
            assert_eq!(areas.get(&range(network)).copied(), area, "{network}");
        }
    }
}
