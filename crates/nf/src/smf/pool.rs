//! UE addresses of a data network: this shard's part of the pool (design section 5).
//!
//! A pool is divided into equal blocks, one for each shard. A shard first allocates addresses that were never used, in
//! order; then it allocates the address that has been unused longest.

use super::config::{Network, SmfConfig};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// The pools of an SMF: those of data networks and those of single UPFs. A pool that several slices or UPFs have in common
/// is stored once.
#[derive(Debug)]
pub(super) struct Pools(Vec<(Network, Pool)>);

impl Pools {
    /// All pools of the configuration, a shard's part of each.
    pub(super) fn new(config: &SmfConfig, shard: u8) -> Self {
        let shared = config.data_networks.iter().map(|network| (network.pool, network.reserved));
        let own = config.upfs.iter().flat_map(|upf| &upf.pools).map(|(_, pool, reserved)| (*pool, *reserved));
        let mut pools: Vec<(Network, Pool)> = Vec::new();
        for (network, reserved) in shared.chain(own) {
            if pools.iter().all(|(known, _)| *known != network) {
                pools.push((network, Pool::new(network, reserved, shard, config.shards)));
            }
        }
        Self(pools)
    }

    /// Allocates an address of this pool; `None` if all are in use.
    pub(super) fn allocate(&mut self, network: Network) -> Option<Ipv4Addr> {
        self.0.iter_mut().find(|(known, _)| *known == network)?.1.allocate()
    }

    /// Releases an address.
    pub(super) fn release(&mut self, address: Ipv4Addr) {
        let of = |network: Network| contains(network, address);
        let pool = self.0.iter_mut().find(|(network, _)| of(*network));
        if let Some((_, pool)) = pool {
            pool.release(address);
        }
    }

    /// Allocates the addresses of restored sessions; returns those that are in no pool, or belong to another shard.
    pub(super) fn claim(&mut self, mut addresses: Vec<Ipv4Addr>) -> Vec<Ipv4Addr> {
        // In order, so that a pool skips each address in between once.
        addresses.sort_unstable();
        addresses.retain(|address| {
            let pool = self.0.iter_mut().find(|(network, _)| contains(*network, *address));
            !pool.is_some_and(|(_, pool)| pool.claim(*address))
        });
        addresses
    }

    /// Addresses in use.
    pub(super) fn in_use(&self) -> usize {
        self.0.iter().map(|(_, pool)| pool.in_use()).sum()
    }
}

/// Whether the network contains the address.
pub(super) fn contains((network, prefix): Network, address: Ipv4Addr) -> bool {
    let shift = 32 - u32::from(prefix.clamp(1, 32));
    u32::from(network) >> shift == u32::from(address) >> shift
}

/// A shard's block of a pool.
#[derive(Debug)]
struct Pool {
    /// The first address that was never allocated.
    next: u32,
    end: u32,
    /// Released addresses, the one released first in front.
    released: VecDeque<u32>,
    in_use: usize,
}

impl Pool {
    /// The block of shard `shard` of `shards`; `reserved` addresses at the pool's beginning, and its last,
    /// are not allocated.
    fn new((network, prefix): (Ipv4Addr, u8), reserved: u32, shard: u8, shards: u8) -> Self {
        let size = 1_u64 << (32 - u32::from(prefix.clamp(1, 32)));
        let start = u64::from(u32::from(network)) & !(size - 1);
        let (first, last) = (start + u64::from(reserved.max(1)), start + size - 1);
        let block = last.saturating_sub(first) / u64::from(shards.max(1));
        let next = first + block * u64::from(shard);
        let clamp = |address: u64| u32::try_from(address).unwrap_or(u32::MAX);
        Self { next: clamp(next), end: clamp(next + block), released: VecDeque::new(), in_use: 0 }
    }

    /// Allocates an address; `None` if all are in use.
    fn allocate(&mut self) -> Option<Ipv4Addr> {
        let address = if self.next < self.end {
            self.next += 1;
            self.next - 1
        } else {
            self.released.pop_front()?
        };
        self.in_use += 1;
        Some(address.into())
    }

    /// Allocates this address, which must be higher than those allocated before; the addresses in between are free. `false` if
    /// it is not in the block.
    fn claim(&mut self, address: Ipv4Addr) -> bool {
        let address = u32::from(address);
        if address < self.next || address >= self.end {
            return false;
        }
        self.released.extend(self.next..address);
        self.next = address + 1;
        self.in_use += 1;
        true
    }

    /// Releases an address.
    fn release(&mut self, address: Ipv4Addr) {
        self.in_use -= 1;
        self.released.push_back(address.into());
    }

    const fn in_use(&self) -> usize {
        self.in_use
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_share_a_pool_without_overlap() {
        let network = ("10.45.0.0".parse().unwrap(), 29);
        let all = |shard| {
            let mut pool = Pool::new(network, 2, shard, 2);
            std::iter::from_fn(move || pool.allocate()).collect::<Vec<_>>()
        };
        let text = |list: Vec<Ipv4Addr>| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(text(all(0)), ["10.45.0.2", "10.45.0.3"]);
        assert_eq!(text(all(1)), ["10.45.0.4", "10.45.0.5"]);
    }

    #[test]
    fn addresses_of_restored_sessions_are_not_allocated_again() {
        let mut pool = Pools(vec![(
            ("10.0.0.0".parse().unwrap(), 29),
            Pool::new(("10.0.0.0".parse().unwrap(), 29), 2, 0, 1),
        )]);
        let address = |last: u8| Ipv4Addr::new(10, 0, 0, last);
        let foreign = Ipv4Addr::new(10, 9, 0, 1);
        assert_eq!(pool.claim(vec![address(5), foreign, address(3), address(1)]), [address(1), foreign]);
        assert_eq!(pool.in_use(), 2);
        let network = ("10.0.0.0".parse().unwrap(), 29);
        let rest: Vec<_> = std::iter::from_fn(|| pool.allocate(network)).collect();
        assert_eq!(rest, [address(6), address(2), address(4)]);
        pool.release(address(5));
        assert_eq!(pool.allocate(network), Some(address(5)));
    }

    #[test]
    fn a_released_address_is_allocated_last() {
        let mut pool = Pool::new(("10.0.0.0".parse().unwrap(), 29), 2, 0, 1);
        let first = pool.allocate().unwrap();
        pool.release(first);
        assert_ne!(pool.allocate(), Some(first));
        assert_eq!(pool.in_use(), 1);
    }
}
