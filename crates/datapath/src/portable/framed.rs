//! Framed routes: the session of an address that is no UE's own.

use crate::packet::Prefixes;
use crate::rules::Rules;
use pith_upf::contract::AddressRange;
use std::net::IpAddr;
use std::sync::Arc;

/// Sessions by network; the longest matching prefix decides.
#[derive(Debug, Default)]
pub struct Framed(Prefixes<Arc<Rules>>);

impl Framed {
    /// The session that an address belongs to.
    pub fn find(&self, address: IpAddr) -> Option<&Arc<Rules>> {
        self.0.find(address)
    }

    pub fn insert(&mut self, AddressRange { address, prefix }: AddressRange, rules: &Arc<Rules>) {
        self.0.insert(address, prefix, Arc::clone(rules));
    }

    /// Removes a network, unless it belongs to another session meanwhile.
    pub fn remove(&mut self, AddressRange { address, prefix }: AddressRange, rules: &Rules) {
        self.0.remove_if(address, prefix, |found| Arc::ptr_eq(&found.state, &rules.state));
    }
}
