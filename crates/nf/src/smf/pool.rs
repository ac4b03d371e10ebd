//! UE addresses of a data network: this shard's part of the pool (design section 5).
//!
//! A pool is divided among the blocks of ids: each address belongs to one block, and the block's owner allocates it. A shard
//! first allocates addresses that were never used, in order; then it allocates the address that has been unused longest.

use super::config::{Network, SmfConfig};
use crate::kit::Identity;
use pith_types::BlockId;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// The pools of an SMF: those of data networks and those of single UPFs. A pool that several slices or UPFs have in common
/// is stored once.
#[derive(Debug)]
pub(super) struct Pools(Vec<(Network, Pool)>);

impl Pools {
    /// All pools of the configuration, a shard's part of each.
    pub(super) fn new(config: &SmfConfig, identity: &Identity) -> Self {
        let blocks: Vec<_> = identity.blocks().collect();
        let shared = config.data_networks.iter().map(|network| (network.pool, network.reserved));
        let own = config.upfs.iter().flat_map(|upf| &upf.pools).map(|(_, pool, reserved)| (*pool, *reserved));
        let mut pools: Vec<(Network, Pool)> = Vec::new();
        for (network, reserved) in shared.chain(own) {
            if pools.iter().all(|(known, _)| *known != network) {
                pools.push((network, Pool::new(network, reserved, &blocks)));
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

/// A shard's part of a pool.
#[derive(Debug)]
struct Pool {
    /// Addresses that were never allocated: first address and end of each range, in ascending order.
    unused: VecDeque<(u32, u32)>,
    /// Released addresses, the one released first in front.
    released: VecDeque<u32>,
    in_use: usize,
}

impl Pool {
    /// The addresses of these blocks; `reserved` addresses at the pool's beginning, and its last, are not allocated.
    fn new(network: Network, reserved: u32, blocks: &[BlockId]) -> Self {
        let mut unused: VecDeque<(u32, u32)> = VecDeque::new();
        for block in blocks {
            let (first, end) = range(network, reserved, *block);
            match unused.back_mut().filter(|last| last.1 == first) {
                Some(last) => last.1 = end,
                None => unused.push_back((first, end)),
            }
        }
        Self { unused, released: VecDeque::new(), in_use: 0 }
    }

    /// Allocates an address; `None` if all are in use.
    fn allocate(&mut self) -> Option<Ipv4Addr> {
        let address = match self.next_unused() {
            Some(address) => address,
            None => self.released.pop_front()?,
        };
        self.in_use += 1;
        Some(address.into())
    }

    /// The next address that was never allocated.
    fn next_unused(&mut self) -> Option<u32> {
        while let Some((next, end)) = self.unused.front_mut() {
            if next < end {
                *next += 1;
                return Some(*next - 1);
            }
            self.unused.pop_front();
        }
        None
    }

    /// Allocates this address, which must be higher than those allocated before; the addresses in between are free. `false` if
    /// it is in no range of this shard.
    fn claim(&mut self, address: Ipv4Addr) -> bool {
        let address = u32::from(address);
        if !self.unused.iter().any(|(next, end)| (*next..*end).contains(&address)) {
            return false;
        }
        while let Some(skipped) = self.next_unused().filter(|unused| *unused != address) {
            self.released.push_back(skipped);
        }
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

/// The addresses of a block: the first, and the one after the last. The ranges of small pools may be empty.
fn range((network, prefix): Network, reserved: u32, block: BlockId) -> (u32, u32) {
    let size = 1_u64 << (32 - u32::from(prefix.clamp(1, 32)));
    let start = u64::from(u32::from(network)) & !(size - 1);
    let (first, last) = (start + u64::from(reserved.max(1)), start + size - 1);
    let usable = last.saturating_sub(first);
    let begin = |block: u16| {
        let address = first + usable * u64::from(block) / u64::from(BlockId::COUNT);
        u32::try_from(address).unwrap_or(u32::MAX)
    };
    (begin(block.number()), begin(block.number() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::identity_of_shard;

    fn pool(network: Network, shard: u8, shards: u8) -> Pool {
        Pool::new(network, 2, &identity_of_shard(shard, shards).blocks().collect::<Vec<_>>())
    }

    fn all(network: Network, shard: u8, shards: u8) -> Vec<String> {
        let mut pool = pool(network, shard, shards);
        std::iter::from_fn(move || pool.allocate()).map(|address| address.to_string()).collect()
    }

    #[test]
    fn shards_share_a_pool_without_overlap() {
        let network = ("10.45.0.0".parse().unwrap(), 29);
        assert_eq!(all(network, 0, 2), ["10.45.0.2", "10.45.0.3"]);
        assert_eq!(all(network, 1, 2), ["10.45.0.4", "10.45.0.5", "10.45.0.6"]);
        let network = ("10.45.0.0".parse().unwrap(), 16);
        let each: Vec<_> = (0..3).map(|shard| all(network, shard, 3)).collect();
        assert_eq!(each.concat(), all(network, 0, 1), "each address once");
        assert_eq!(each.concat().len(), 65_536 - 3, "all but network, gateway and broadcast address");
        assert!(each.iter().all(|addresses| (21_780..21_910).contains(&addresses.len())));
    }

    #[test]
    fn blocks_that_are_not_adjacent_have_separate_ranges() {
        let blocks: Vec<_> = [1, 3].into_iter().filter_map(BlockId::new).collect();
        let mut pool = Pool::new(("10.45.0.0".parse().unwrap(), 20), 2, &blocks);
        let addresses: Vec<_> =
            std::iter::from_fn(|| pool.allocate()).map(|address| address.octets()[3]).collect();
        assert_eq!(addresses, [5, 6, 7, 8, 13, 14, 15, 16]);
    }

    #[test]
    fn addresses_of_restored_sessions_are_not_allocated_again() {
        let mut pool =
            Pools(vec![(("10.0.0.0".parse().unwrap(), 29), pool(("10.0.0.0".parse().unwrap(), 29), 0, 1))]);
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
        let mut pool = pool(("10.0.0.0".parse().unwrap(), 29), 0, 1);
        let first = pool.allocate().unwrap();
        pool.release(first);
        assert_ne!(pool.allocate(), Some(first));
        assert_eq!(pool.in_use(), 1);
    }
}
