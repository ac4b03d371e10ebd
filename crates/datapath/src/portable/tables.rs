//! A worker's tables: the session of a TEID or address.

use super::framed::Framed;
use crate::rules::Rules;
use pith_upf::contract::{SessionId, Teid};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

type Table<K> = HashMap<K, Arc<Rules>, BuildHasherDefault<Mix>>;

/// Sessions by their keys in packets.
#[derive(Debug, Default)]
pub struct Tables {
    by_teid: Table<u32>,
    by_v4: Table<u32>,
    by_prefix: Table<u64>,
    framed: Framed,
    by_id: Table<u64>,
}

impl Tables {
    /// The session of a TEID.
    pub fn by_teid(&self, teid: Teid) -> Option<&Arc<Rules>> {
        self.by_teid.get(&teid.0)
    }

    /// The session of a UE's address, otherwise the one with a framed route that contains it.
    pub fn by_ue(&self, address: IpAddr) -> Option<&Arc<Rules>> {
        let own = match address {
            IpAddr::V4(v4) => self.by_v4.get(&v4.to_bits()),
            IpAddr::V6(v6) => self.by_prefix.get(&prefix(v6.to_bits())),
        };
        own.or_else(|| self.framed.find(address))
    }

    pub fn by_id(&self, id: SessionId) -> Option<&Arc<Rules>> {
        self.by_id.get(&id.0)
    }

    /// Replaces rules by new ones.
    pub fn publish(&mut self, rules: &Arc<Rules>, previous: Option<&Arc<Rules>>) {
        if let Some(previous) = previous {
            self.remove(previous);
        }
        self.by_id.insert(rules.state.id.0, Arc::clone(rules));
        for teid in rules.teids() {
            self.by_teid.insert(teid.0, Arc::clone(rules));
        }
        if let Some(v4) = rules.ue.v4 {
            self.by_v4.insert(v4.to_bits(), Arc::clone(rules));
        }
        if let Some(v6) = rules.ue.v6 {
            self.by_prefix.insert(prefix(v6.to_bits()), Arc::clone(rules));
        }
        rules.networks().for_each(|network| self.framed.insert(network, rules));
    }

    /// Removes a session, except for keys that belong to another session meanwhile.
    pub fn remove(&mut self, rules: &Arc<Rules>) {
        remove_own(&mut self.by_id, rules.state.id.0, rules);
        for teid in rules.teids() {
            remove_own(&mut self.by_teid, teid.0, rules);
        }
        if let Some(v4) = rules.ue.v4 {
            remove_own(&mut self.by_v4, v4.to_bits(), rules);
        }
        if let Some(v6) = rules.ue.v6 {
            remove_own(&mut self.by_prefix, prefix(v6.to_bits()), rules);
        }
        rules.networks().for_each(|network| self.framed.remove(network, rules));
    }
}

fn prefix(address: u128) -> u64 {
    (address >> 64) as u64
}

fn remove_own<K: Hash + Eq>(table: &mut Table<K>, key: K, rules: &Rules) {
    if table.get(&key).is_some_and(|found| Arc::ptr_eq(&found.state, &rules.state)) {
        table.remove(&key);
    }
}

/// Hashes one number. The core allocates TEIDs and addresses, so no peer can choose colliding keys.
#[derive(Debug, Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::rules::{Pools, Sessions};
    use pith_upf::contract::{AddressRange, Direction, FarId, Pdr, PdrId, Session, Source, UeAddress};
    use pith_upf::qos::Enforcement;
    use std::net::Ipv4Addr;

    pub fn session(id: u64, teid: u32, last: u8) -> Session {
        let pdr = Pdr {
            id: PdrId(1),
            precedence: 1,
            source: Source::Tunnel { teid: Teid(teid), direction: Direction::Uplink },
            filters: vec![],
            qfis: vec![],
            far: FarId(1),
            qers: vec![],
            urrs: vec![],
        };
        let prefix = format!("2001:db8:0:{last}::").parse().unwrap();
        let ue = UeAddress { v4: Some(Ipv4Addr::new(10, 45, 0, last)), ..UeAddress::v6(prefix) };
        Session {
            id: SessionId(id),
            ue,
            framed_routes: vec![],
            pdrs: vec![pdr],
            fars: vec![],
            qers: vec![],
            urrs: vec![],
            former_qfis: vec![],
        }
    }

    #[test]
    fn new_rules_replace_all_keys_of_the_old() {
        let (mut sessions, mut tables) =
            (Sessions::new(Pools::on_heap(1), Enforcement::Shape), Tables::default());
        let old = sessions.install(&session(1, 1, 1)).rules;
        tables.publish(&old, None);
        let new = sessions.install(&session(1, 2, 2)).rules;
        tables.publish(&new, Some(&old));
        assert!(tables.by_teid(Teid(1)).is_none());
        assert!(tables.by_ue("10.45.0.1".parse().unwrap()).is_none());
        for address in ["10.45.0.2", "2001:db8:0:2::77"] {
            assert!(Arc::ptr_eq(tables.by_ue(address.parse().unwrap()).unwrap(), &new));
        }
        tables.remove(&new);
        assert!(tables.by_teid.is_empty() && tables.by_v4.is_empty() && tables.by_prefix.is_empty());
    }

    #[test]
    fn an_address_behind_a_ue_belongs_to_the_longest_network_that_has_it() {
        let (mut sessions, mut tables) =
            (Sessions::new(Pools::on_heap(1), Enforcement::Shape), Tables::default());
        let network = |text: &str, prefix| AddressRange { address: text.parse().unwrap(), prefix };
        let framed = |mut session: Session, routes| {
            session.framed_routes = routes;
            session
        };
        let wide = vec![network("192.168.0.0", 16), network("2001:db8:5::", 48), network("10.0.0.0", 8)];
        let wide = sessions.install(&framed(session(1, 1, 1), wide)).rules;
        let long = vec![network("192.168.7.0", 24), network("2001:db8:5:7::1", 128)];
        let long = sessions.install(&framed(session(2, 2, 2), long)).rules;
        [&wide, &long].into_iter().for_each(|rules| tables.publish(rules, None));
        let owner = |tables: &Tables, address: &str| {
            tables.by_ue(address.parse().unwrap()).map(|rules| rules.state.id.0)
        };
        for (address, session) in [
            ("192.168.7.9", Some(2)),
            ("192.168.8.9", Some(1)),
            ("2001:db8:5:7::1", Some(2)),
            ("2001:db8:5:7::2", Some(1)),
            // A UE's own address takes precedence over any network that contains it.
            ("10.45.0.2", Some(2)),
            ("10.45.0.9", Some(1)),
            ("172.16.0.1", None),
        ] {
            assert_eq!(owner(&tables, address), session, "{address}");
        }
        tables.remove(&long);
        assert_eq!(owner(&tables, "192.168.7.9"), Some(1));
        tables.remove(&wide);
        assert_eq!(owner(&tables, "192.168.8.9"), None);
    }

    #[test]
    fn a_late_removal_leaves_the_next_owner_of_an_address_alone() {
        let (mut sessions, mut tables) =
            (Sessions::new(Pools::on_heap(1), Enforcement::Shape), Tables::default());
        let first = sessions.install(&session(1, 1, 1)).rules;
        let second = sessions.install(&session(2, 2, 1)).rules;
        tables.publish(&first, None);
        tables.publish(&second, None);
        tables.remove(&first);
        assert_eq!(tables.by_ue("10.45.0.1".parse().unwrap()).unwrap().state.id, SessionId(2));
        assert!(tables.by_teid(Teid(1)).is_none());
    }
}
