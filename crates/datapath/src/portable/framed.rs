//! Framed routes: the session of an address that is no UE's own.

use crate::rules::Rules;
use pith_upf::contract::AddressRange;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

/// Bits of an IPv6 address; IPv4 addresses are looked up as IPv4-mapped.
const WIDTH: u8 = 128;
const MAPPED: u8 = 96;

/// Sessions by network; the longest matching prefix decides.
#[derive(Debug, Default)]
pub struct Framed {
    sessions: HashMap<(u8, u128), Arc<Rules>>,
    /// The number of networks of each prefix length.
    lengths: BTreeMap<u8, usize>,
}

impl Framed {
    /// The session that an address belongs to.
    pub fn find(&self, address: IpAddr) -> Option<&Arc<Rules>> {
        let bits = bits(address);
        let mut longest_first = self.lengths.keys().rev();
        longest_first.find_map(|length| self.sessions.get(&(*length, cut(bits, *length))))
    }

    pub fn insert(&mut self, network: AddressRange, rules: &Arc<Rules>) {
        let key = key(network);
        if self.sessions.insert(key, Arc::clone(rules)).is_none() {
            *self.lengths.entry(key.0).or_default() += 1;
        }
    }

    /// Removes a network, unless it belongs to another session meanwhile.
    pub fn remove(&mut self, network: AddressRange, rules: &Rules) {
        let key = key(network);
        if self.sessions.get(&key).is_none_or(|found| !Arc::ptr_eq(&found.state, &rules.state)) {
            return;
        }
        self.sessions.remove(&key);
        if let Some(count) = self.lengths.get_mut(&key.0) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&key.0);
            }
        }
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn cut(bits: u128, length: u8) -> u128 {
    bits & u128::MAX.checked_shl(WIDTH.saturating_sub(length).into()).unwrap_or(0)
}

fn key(network: AddressRange) -> (u8, u128) {
    let length = if network.address.is_ipv4() { MAPPED + network.prefix.min(32) } else { network.prefix };
    (length, cut(bits(network.address), length))
}
