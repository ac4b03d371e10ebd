//! Values by network; the longest matching prefix decides.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

/// Networks of both families.
#[derive(Debug, PartialEq)]
pub struct Prefixes<T> {
    v4: Family<T>,
    v6: Family<T>,
}

/// Networks of one family: a table for each prefix length.
#[derive(Debug, PartialEq)]
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

    /// Sets the value of a network.
    pub fn insert(&mut self, network: IpAddr, length: u8, value: T) {
        let length = length.min(longest(network));
        self.family_mut(network)
            .0
            .entry(length)
            .or_default()
            .insert(cut(left_aligned(network), length), value);
    }

    /// Removes a network's value if `unwanted`.
    pub fn remove_if(&mut self, network: IpAddr, length: u8, unwanted: impl FnOnce(&T) -> bool) {
        let length = length.min(longest(network));
        let tables = &mut self.family_mut(network).0;
        let Some(table) = tables.get_mut(&length) else { return };
        let key = cut(left_aligned(network), length);
        if table.get(&key).is_some_and(unwanted) {
            table.remove(&key);
        }
        // Each length costs a look-up.
        if table.is_empty() {
            tables.remove(&length);
        }
    }

    fn family_mut(&mut self, address: IpAddr) -> &mut Family<T> {
        if address.is_ipv4() { &mut self.v4 } else { &mut self.v6 }
    }
}

/// The longest prefix.
fn longest(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_decides_until_it_is_removed() {
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut networks = Prefixes::default();
        networks.insert(at("0.0.0.0"), 0, 1);
        networks.insert(at("192.0.2.77"), 24, 2);
        networks.insert(at("2001:db8::"), 48, 3);
        let found = |networks: &Prefixes<i32>, text| networks.find(at(text)).copied();
        assert_eq!(found(&networks, "192.0.2.1"), Some(2));
        assert_eq!(found(&networks, "192.0.3.1"), Some(1));
        assert_eq!(found(&networks, "2001:db8::1"), Some(3));
        assert_eq!(found(&networks, "2001:db9::1"), None, "the families are apart");
        networks.remove_if(at("192.0.2.0"), 24, |value| *value == 7);
        assert_eq!(found(&networks, "192.0.2.1"), Some(2), "another value");
        networks.remove_if(at("192.0.2.0"), 24, |value| *value == 2);
        assert_eq!(found(&networks, "192.0.2.1"), Some(1));
        let mut never = Prefixes::default();
        never.insert(at("0.0.0.0"), 0, 1);
        never.insert(at("2001:db8::"), 48, 3);
        assert_eq!(networks, never, "an empty length costs no look-up");
    }
}
