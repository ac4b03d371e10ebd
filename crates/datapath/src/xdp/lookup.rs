//! Look-up of sessions: tables of the program from a TEID or an address to a slot. A direct-mapped lead,
//! indexed by the key's low bits, is tried first; a key that collides with another is in a hash table.

use super::XdpError;
use super::program::Program;
use crate::sys::MapMemory;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use pith_upf::contract::AddressRange;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

/// A key of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    Teid(u32),
    /// A UE's IPv4 address, in wire order.
    V4(u32),
    /// A UE's IPv6 prefix, in wire order.
    V6(u64),
    /// A framed route.
    Framed(AddressRange),
}

impl Key {
    /// The part of the key that its lead contains; for a prefix, its last 32 bits.
    fn tag(self) -> u32 {
        match self {
            Self::Teid(teid) => teid,
            Self::V4(v4) => u32::from_be(v4),
            Self::V6(prefix) => u32::from_be((prefix >> 32) as u32),
            Self::Framed(_) => 0,
        }
    }

    fn octets(self) -> Vec<u8> {
        match self {
            Self::Teid(word) | Self::V4(word) => word.to_ne_bytes().to_vec(),
            Self::V6(prefix) => prefix.to_ne_bytes().to_vec(),
            Self::Framed(network) => framed_octets(network),
        }
    }
}

/// The length and address of a network (`struct network`); IPv4 as IPv4-mapped IPv6.
fn framed_octets(network: AddressRange) -> Vec<u8> {
    let (length, address) = match network.address {
        IpAddr::V4(v4) => (96 + u32::from(network.prefix.min(32)), v4.to_ipv6_mapped()),
        IpAddr::V6(v6) => (u32::from(network.prefix), v6),
    };
    [&length.to_ne_bytes()[..], &address.octets()].concat()
}

/// All look-up tables.
#[derive(Debug)]
pub struct Leads {
    framed: Networks,
    by_teid: LeadTables,
    by_v4: LeadTables,
    by_v6: LeadTables,
}

/// The tables of one kind of key.
#[derive(Debug)]
struct LeadTables {
    short: MapMemory<AtomicU64>,
    long: MapHandle,
    /// Keys in the hash table.
    in_long: usize,
}

/// Framed routes, which the program looks up if no UE has the address.
#[derive(Debug)]
struct Networks {
    trie: MapHandle,
    known: HashMap<AddressRange, u32>,
}

impl Leads {
    /// For a program that was just loaded.
    pub fn of(program: &Program) -> Result<Self, XdpError> {
        let lead_tables = |short, long| {
            Ok::<_, XdpError>(LeadTables {
                short: program.memory(short, 1)?,
                long: program.table(long)?,
                in_long: 0,
            })
        };
        Ok(Self {
            framed: Networks { trie: program.table("framed")?, known: HashMap::new() },
            by_teid: lead_tables("lead_teid", "by_teid")?,
            by_v4: lead_tables("lead_v4", "by_v4")?,
            by_v6: lead_tables("lead_v6", "by_v6")?,
        })
    }

    /// `None` for a framed route.
    fn lead_tables(&mut self, key: Key) -> Option<&mut LeadTables> {
        match key {
            Key::Teid(_) => Some(&mut self.by_teid),
            Key::V4(_) => Some(&mut self.by_v4),
            Key::V6(_) => Some(&mut self.by_v6),
            Key::Framed(_) => None,
        }
    }

    /// Maps a key to a slot, in one store, replacing the previous one. `is_other` tells whether a slot is
    /// known to belong to another key.
    pub fn point(&mut self, key: Key, slot: u32, is_other: impl Fn(u32) -> bool) -> Result<(), XdpError> {
        match (self.lead_tables(key), key) {
            (Some(lead_tables), _) => lead_tables.point(key, slot, is_other),
            (None, Key::Framed(network)) => self.framed.point(network, slot),
            (None, _) => Err(XdpError::Missing),
        }
    }

    /// Removes a key, if it maps to a slot for which `is_own`.
    pub fn forget(&mut self, key: Key, is_own: impl Fn(u32) -> bool) -> Result<(), XdpError> {
        match (self.lead_tables(key), key) {
            (Some(lead_tables), _) => lead_tables.forget(key, is_own),
            (None, Key::Framed(network)) => self.framed.forget(network, is_own),
            (None, _) => Err(XdpError::Missing),
        }
    }
}

impl Networks {
    fn point(&mut self, network: AddressRange, slot: u32) -> Result<(), XdpError> {
        self.trie.update(&framed_octets(network), &slot.to_ne_bytes(), MapFlags::ANY)?;
        self.known.insert(network, slot);
        Ok(())
    }

    fn forget(&mut self, network: AddressRange, is_own: impl Fn(u32) -> bool) -> Result<(), XdpError> {
        if self.known.get(&network).is_some_and(|slot| is_own(*slot)) {
            self.known.remove(&network);
            self.trie.delete(&framed_octets(network))?;
        }
        Ok(())
    }
}

impl LeadTables {
    fn point(&mut self, key: Key, slot: u32, is_other: impl Fn(u32) -> bool) -> Result<(), XdpError> {
        let Some(lead) = self.lead(key) else { return Err(XdpError::Missing) };
        let found = lead.load(Relaxed);
        if found == 0 || (led(found, key) && !is_other(slot_of(found))) {
            lead.store(u64::from(key.tag()) << 32 | u64::from(slot + 1), Release);
            return self.forget_long(key, |_| true);
        }
        let known = self.in_long > 0 && self.long.lookup(&key.octets(), MapFlags::ANY)?.is_some();
        self.long.update(&key.octets(), &slot.to_ne_bytes(), MapFlags::ANY)?;
        self.in_long += usize::from(!known);
        Ok(())
    }

    fn forget(&mut self, key: Key, is_own: impl Fn(u32) -> bool) -> Result<(), XdpError> {
        if let Some(lead) = self.lead(key) {
            let found = lead.load(Relaxed);
            if led(found, key) && is_own(slot_of(found)) {
                lead.store(0, Release);
                return Ok(());
            }
        }
        self.forget_long(key, is_own)
    }

    fn forget_long(&mut self, key: Key, is_own: impl Fn(u32) -> bool) -> Result<(), XdpError> {
        if self.in_long == 0 {
            return Ok(());
        }
        let found = self.long.lookup(&key.octets(), MapFlags::ANY)?;
        let slot = found.and_then(|octets| octets.first_chunk().map(|slot| u32::from_ne_bytes(*slot)));
        if slot.is_some_and(is_own) {
            self.long.delete(&key.octets())?;
            self.in_long -= 1;
        }
        Ok(())
    }

    /// The lead of a key; their number is a power of two.
    fn lead(&self, key: Key) -> Option<&AtomicU64> {
        self.short.at(key.tag() as usize & (self.short.len() - 1)).first()
    }
}

/// Whether a lead may be a key's.
fn led(lead: u64, key: Key) -> bool {
    lead != 0 && lead >> 32 == u64::from(key.tag())
}

fn slot_of(lead: u64) -> u32 {
    (lead as u32).wrapping_sub(1)
}
