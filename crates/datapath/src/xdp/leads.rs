//! What leads to a session: tables that the program looks into, from a TEID or an address to a slot. The short
//! way is a lead at the place of the key's low bits; where another key has that place, a look-up table serves.

use super::XdpError;
use super::program::Program;
use crate::sys::MapMemory;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use pith_upf::contract::AddressRange;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

/// What leads to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// A TEID.
    Teid(u32),
    /// A UE's IPv4 address, in wire order.
    V4(u32),
    /// A UE's IPv6 prefix, in wire order.
    V6(u64),
    /// A network behind a UE.
    Framed(AddressRange),
}

impl Key {
    /// What a lead says it is for: of a prefix, only the end.
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

/// The length and address of a network (`struct network`), of IPv4 as mapped into IPv6.
fn framed_octets(network: AddressRange) -> Vec<u8> {
    let (length, address) = match network.address {
        IpAddr::V4(v4) => (96 + u32::from(network.prefix.min(32)), v4.to_ipv6_mapped()),
        IpAddr::V6(v6) => (u32::from(network.prefix), v6),
    };
    [&length.to_ne_bytes()[..], &address.octets()].concat()
}

/// The ways to sessions.
#[derive(Debug)]
pub struct Leads {
    framed: Networks,
    by_teid: Ways,
    by_v4: Ways,
    by_v6: Ways,
}

/// Those of one kind of key.
#[derive(Debug)]
struct Ways {
    short: MapMemory<AtomicU64>,
    long: MapHandle,
    /// Keys in the look-up table.
    in_long: usize,
}

/// Networks, which the program looks into where no UE has an address.
#[derive(Debug)]
struct Networks {
    trie: MapHandle,
    /// What it holds.
    known: HashMap<AddressRange, u32>,
}

impl Leads {
    /// Of a program that was just loaded.
    pub fn of(program: &Program) -> Result<Self, XdpError> {
        let ways = |short, long| {
            Ok::<_, XdpError>(Ways {
                short: program.memory(short, 1)?,
                long: program.table(long)?,
                in_long: 0,
            })
        };
        Ok(Self {
            framed: Networks { trie: program.table("framed")?, known: HashMap::new() },
            by_teid: ways("lead_teid", "by_teid")?,
            by_v4: ways("lead_v4", "by_v4")?,
            by_v6: ways("lead_v6", "by_v6")?,
        })
    }

    /// Nothing for a network.
    fn ways(&mut self, key: Key) -> Option<&mut Ways> {
        match key {
            Key::Teid(_) => Some(&mut self.by_teid),
            Key::V4(_) => Some(&mut self.by_v4),
            Key::V6(_) => Some(&mut self.by_v6),
            Key::Framed(_) => None,
        }
    }

    /// Leads a key to a slot, in one step, wherever it led before. `is_other` tells whether a slot is known to be
    /// another key's.
    pub fn point(&mut self, key: Key, slot: u32, is_other: impl Fn(u32) -> bool) -> Result<(), XdpError> {
        match (self.ways(key), key) {
            (Some(ways), _) => ways.point(key, slot, is_other),
            (None, Key::Framed(network)) => self.framed.point(network, slot),
            (None, _) => Err(XdpError::Missing),
        }
    }

    /// Forgets a key, if it leads to a slot for which `is_own`.
    pub fn forget(&mut self, key: Key, is_own: impl Fn(u32) -> bool) -> Result<(), XdpError> {
        match (self.ways(key), key) {
            (Some(ways), _) => ways.forget(key, is_own),
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

impl Ways {
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

    /// The place of a key; there are as many as a power of two.
    fn lead(&self, key: Key) -> Option<&AtomicU64> {
        self.short.at(key.tag() as usize & (self.short.len() - 1)).first()
    }
}

/// Whether a lead may be for a key.
fn led(lead: u64, key: Key) -> bool {
    lead != 0 && lead >> 32 == u64::from(key.tag())
}

fn slot_of(lead: u64) -> u32 {
    (lead as u32).wrapping_sub(1)
}
