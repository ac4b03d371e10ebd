//! Values by network; the longest matching prefix decides.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

/// Networks of both families.
#[derive(Debug)]
pub struct Prefixes<T> {
    v4: Family<T>,
    v6: Family<T>,
}

/// Networks of one family: a table for each prefix length.
#[derive(Debug)]
struct Family<T>(BTreeMap<u8, HashMap<u128, T>>);

impl<T> Default for Prefixes<T> {
    fn default() -> Self {
        Self { v4: Family(BTreeMap::new()), v6: Family(BTreeMap::new()) }
    }
}

impl<T> Prefixes<T> {
    fn family(&self, address: IpAddr) -> &Family<T> {
        if address.is_ipv4() { &self.v4 } else { &self.v6 }
    }

    /// The value of the longest network that contains the address.
    pub fn find(&self, address: IpAddr) -> Option<&T> {
        let bits = left_aligned(address);
        let mut longest_first = self.family(address).0.iter().rev();
        longest_first.find_map(|(length, table)| table.get(&cut(bits, *length)))
    }

    pub fn insert(&mut self, network: IpAddr, length: u8, value: T) {
        let family = if network.is_ipv4() { &mut self.v4 } else { &mut self.v6 };
        family.0.entry(length).or_default().insert(cut(left_aligned(network), length), value);
    }
}

/// An address in the upper bits.
fn left_aligned(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn cut(bits: u128, length: u8) -> u128 {
    bits & u128::MAX.checked_shl(128u32.saturating_sub(length.into())).unwrap_or(0)
}
