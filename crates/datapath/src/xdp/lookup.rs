//! Look-up of sessions: tables of the program from a TEID or an address to a slot (index in `sessions`). For each
//! kind of key there are two tables. The program first reads a table of sets, each a cache line, selected by the key's low
//! bits. A key that finds its set full is in the hash table instead.

use super::XdpError;
use super::program::Program;
use crate::sys::MapMemory;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use pith_upf::contract::AddressRange;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

/// Entries of a set (`bpf/tables.h`).
const SET_ENTRIES: usize = 8;

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
    /// The part of the key that an entry of a set contains; of a prefix only its last 32 bits.
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
pub struct Lookup {
    framed: Networks,
    by_teid: KeyTables,
    by_v4: KeyTables,
    by_v6: KeyTables,
}

/// The tables of one kind of key.
#[derive(Debug)]
struct KeyTables {
    /// Sets of [`SET_ENTRIES`]: key and slot plus one, or 0.
    direct: MapMemory<AtomicU64>,
    hash: MapHandle,
    /// Keys in the hash table.
    in_hash: usize,
}

/// Framed routes, which the program looks up if no UE has the address.
#[derive(Debug)]
struct Networks {
    trie: MapHandle,
    known: HashMap<AddressRange, u32>,
}

impl Lookup {
    /// For a program that was just loaded.
    pub fn of(program: &Program) -> Result<Self, XdpError> {
        let key_tables = |direct, hash| {
            Ok::<_, XdpError>(KeyTables {
                direct: program.memory(direct, 1)?,
                hash: program.table(hash)?,
                in_hash: 0,
            })
        };
        Ok(Self {
            framed: Networks { trie: program.table("framed")?, known: HashMap::new() },
            by_teid: key_tables("direct_teid", "by_teid")?,
            by_v4: key_tables("direct_v4", "by_v4")?,
            by_v6: key_tables("direct_v6", "by_v6")?,
        })
    }

    /// `None` for a framed route.
    fn key_tables(&mut self, key: Key) -> Option<&mut KeyTables> {
        match key {
            Key::Teid(_) => Some(&mut self.by_teid),
            Key::V4(_) => Some(&mut self.by_v4),
            Key::V6(_) => Some(&mut self.by_v6),
            Key::Framed(_) => None,
        }
    }

    /// Maps a key to a slot, in one store, replacing the previous one. `is_other`: whether a slot certainly belongs
    /// to another key.
    pub fn map(&mut self, key: Key, slot: u32, is_other: impl Fn(u32) -> bool) -> Result<(), XdpError> {
        match (self.key_tables(key), key) {
            (Some(key_tables), _) => key_tables.map(key, slot, is_other),
            (None, Key::Framed(network)) => self.framed.map(network, slot),
            (None, _) => Err(XdpError::Missing),
        }
    }

    /// Removes a key, if it maps to a slot for which `is_own`.
    pub fn remove(&mut self, key: Key, is_own: impl Fn(u32) -> bool) -> Result<(), XdpError> {
        match (self.key_tables(key), key) {
            (Some(key_tables), _) => key_tables.remove(key, is_own),
            (None, Key::Framed(network)) => self.framed.remove(network, is_own),
            (None, _) => Err(XdpError::Missing),
        }
    }
}

impl Networks {
    fn map(&mut self, network: AddressRange, slot: u32) -> Result<(), XdpError> {
        self.trie.update(&framed_octets(network), &slot.to_ne_bytes(), MapFlags::ANY)?;
        self.known.insert(network, slot);
        Ok(())
    }

    fn remove(&mut self, network: AddressRange, is_own: impl Fn(u32) -> bool) -> Result<(), XdpError> {
        if self.known.get(&network).is_some_and(|slot| is_own(*slot)) {
            self.known.remove(&network);
            self.trie.delete(&framed_octets(network))?;
        }
        Ok(())
    }
}

impl KeyTables {
    fn map(&mut self, key: Key, slot: u32, is_other: impl Fn(u32) -> bool) -> Result<(), XdpError> {
        let found = self.find(key);
        let is_others = found.is_some_and(|entry| is_other(slot_of(entry.load(Relaxed))));
        // The program reads no further than the first entry that may be for the key.
        let entry = if is_others {
            None
        } else {
            found.or_else(|| self.set(key).find(|entry| entry.load(Relaxed) == 0))
        };
        if let Some(entry) = entry {
            entry.store(u64::from(key.tag()) << 32 | u64::from(slot + 1), Release);
            return self.remove_from_hash(key, |_| true);
        }
        let known = self.in_hash > 0 && self.hash.lookup(&key.octets(), MapFlags::ANY)?.is_some();
        self.hash.update(&key.octets(), &slot.to_ne_bytes(), MapFlags::ANY)?;
        self.in_hash += usize::from(!known);
        Ok(())
    }

    fn remove(&mut self, key: Key, is_own: impl Fn(u32) -> bool) -> Result<(), XdpError> {
        if let Some(entry) = self.find(key)
            && is_own(slot_of(entry.load(Relaxed)))
        {
            entry.store(0, Release);
            return Ok(());
        }
        self.remove_from_hash(key, is_own)
    }

    fn remove_from_hash(&mut self, key: Key, is_own: impl Fn(u32) -> bool) -> Result<(), XdpError> {
        if self.in_hash == 0 {
            return Ok(());
        }
        let found = self.hash.lookup(&key.octets(), MapFlags::ANY)?;
        let slot = found.and_then(|octets| octets.first_chunk().map(|slot| u32::from_ne_bytes(*slot)));
        if slot.is_some_and(is_own) {
            self.hash.delete(&key.octets())?;
            self.in_hash -= 1;
        }
        Ok(())
    }

    /// The entries of a key's set, in the program's order; the number of all entries is a power of two.
    fn set(&self, key: Key) -> impl Iterator<Item = &AtomicU64> {
        let first = key.tag() as usize & (self.direct.len() - 1);
        (0..SET_ENTRIES.min(self.direct.len())).filter_map(move |at| self.direct.at(first ^ at).first())
    }

    /// The first entry that may be for a key.
    fn find(&self, key: Key) -> Option<&AtomicU64> {
        self.set(key).find(|entry| may_be_for(entry.load(Relaxed), key))
    }
}

/// Whether an entry may be for this key.
fn may_be_for(entry: u64, key: Key) -> bool {
    entry != 0 && entry >> 32 == u64::from(key.tag())
}

fn slot_of(entry: u64) -> u32 {
    (entry as u32).wrapping_sub(1)
}
