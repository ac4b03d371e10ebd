//! Public addresses and ports of UEs: each UE has its own block, computed from its address (RFC 7422).
//!
//! Nothing is allocated; a log of sessions is enough to find the user of a port; no UE can use up another's
//! ports (docs/adr/0014).

use crate::config::UePool;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// The first port for UEs: lower ones are well-known.
const FIRST_PORT: u16 = 1024;
/// Ports of an address for UEs.
const PORTS: u32 = 65_536 - FIRST_PORT as u32;
/// Maximum number of UEs with a block: a pool of /16.
pub const MAX_UES: u32 = 65_534;

/// Public addresses, divided into blocks of ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortBlocks {
    /// Addresses whose packets are routed to this host; not necessarily the host's own.
    pub addresses: Vec<Ipv4Addr>,
    /// Ports of a UE, 1 to 64,512.
    pub ports: u16,
}

/// The block of one UE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortBlock {
    /// The public address.
    pub address: Ipv4Addr,
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

impl fmt::Display for PortBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ports {}-{}", self.address, self.first, self.last)
    }
}

impl PortBlocks {
    /// The number of UEs that get a block.
    pub fn capacity(&self) -> u32 {
        (self.addresses.len() as u32).saturating_mul(self.per_address())
    }

    fn per_address(&self) -> u32 {
        PORTS / u32::from(self.ports.max(1))
    }

    /// Whether every UE of a pool gets a block.
    pub fn is_enough_for(&self, pool: UePool) -> bool {
        let ues = ue_count(pool);
        (1..=MAX_UES).contains(&ues) && ues <= self.capacity()
    }

    /// The block of a UE's address in a pool.
    pub fn of(&self, pool: UePool, ue: Ipv4Addr) -> Option<PortBlock> {
        let index = ue.to_bits().checked_sub(base(pool)?)?.checked_sub(1)?;
        if index >= ue_count(pool) {
            return None;
        }
        let address = *self.addresses.get((index / self.per_address().max(1)) as usize)?;
        let first = u32::from(FIRST_PORT) + index % self.per_address() * u32::from(self.ports);
        let last = first + u32::from(self.ports) - 1;
        Some(PortBlock { address, first: u16::try_from(first).ok()?, last: u16::try_from(last).ok()? })
    }

    /// All UEs of a pool, with their blocks.
    pub fn all(&self, pool: UePool) -> impl Iterator<Item = (Ipv4Addr, PortBlock)> {
        let base = base(pool).unwrap_or(0);
        let ues = (1..=ue_count(pool)).map(move |number| Ipv4Addr::from_bits(base + number));
        ues.filter_map(move |ue| Some((ue, self.of(pool, ue)?)))
    }
}

/// The first address of a pool.
fn base(pool: UePool) -> Option<u32> {
    match pool.network().address {
        IpAddr::V4(v4) => Some(v4.to_bits()),
        IpAddr::V6(_) => None,
    }
}

/// The addresses of a pool except its first and the broadcast address.
fn ue_count(pool: UePool) -> u32 {
    let bits = 32 - u32::from(pool.prefix.min(32));
    1u32.checked_shl(bits).unwrap_or(u32::MAX).saturating_sub(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn pool(prefix: u8) -> UePool {
        UePool { gateway: IpAddr::from([10, 45, 0, 1]), prefix }
    }

    fn blocks(addresses: u8, ports: u16) -> PortBlocks {
        PortBlocks { addresses: (1..=addresses).map(|last| Ipv4Addr::new(192, 0, 2, last)).collect(), ports }
    }

    #[test]
    fn no_two_ues_have_a_port_of_an_address_in_common() {
        let blocks = blocks(3, 512);
        let all: Vec<_> = blocks.all(pool(24)).collect();
        assert_eq!(all.len(), 254);
        let mut ports = HashSet::new();
        for (_, block) in &all {
            assert!(block.first >= FIRST_PORT && block.last - block.first == 511);
            assert!((block.first..=block.last).all(|port| ports.insert((block.address, port))));
        }
    }

    #[test]
    fn a_block_follows_from_the_address_alone() {
        let blocks = blocks(2, 1000);
        let of = |last| blocks.of(pool(24), Ipv4Addr::new(10, 45, 0, last)).map(|block| block.to_string());
        assert_eq!(of(1).unwrap(), "192.0.2.1 ports 1024-2023");
        assert_eq!(of(64).unwrap(), "192.0.2.1 ports 64024-65023");
        assert_eq!(of(65).unwrap(), "192.0.2.2 ports 1024-2023");
        assert_eq!((of(0), of(129), of(255)), (None, None, None));
        assert_eq!(blocks.of(pool(24), Ipv4Addr::new(10, 46, 0, 1)), None);
    }

    #[test]
    fn a_pool_that_has_more_ues_than_there_are_blocks_is_known() {
        assert!(blocks(1, 252).is_enough_for(pool(24)));
        assert!(!blocks(1, 512).is_enough_for(pool(24)));
        assert!(!blocks(0, 1).is_enough_for(pool(24)));
        assert!(!blocks(200, 1).is_enough_for(pool(15)), "too many for one table");
        assert_eq!(blocks(2, 64_512).capacity(), 2);
    }
}
