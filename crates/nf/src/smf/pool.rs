//! UE addresses of a data network: this shard's part of the pool (design section 5).
//!
//! A pool is divided among the blocks of ids: each address belongs to one block, and the block's owner allocates it. A shard
//! first allocates addresses that were never used, in order; then it allocates the address that has been unused longest.
//!
//! Static addresses ([`SmfConfig::is_static`]) are in ranges of the pools that no block has. Any shard may assign one: as only one subscriber has
//! it, and UPFs delete the stale session if another shard still has one of that subscriber, shards need not inform each other.
//!
//! In an IPv6 pool an address is a prefix of 64 bits (TS 23.501 5.8.2.2.1), or a shorter one (5.8.2.2.4), named by its first address.

use super::config::SmfConfig;
use crate::kit::document::pack_struct;
use crate::kit::{AddressNews, Identity};
use pith_types::BlockId;
use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A pool: the network's address and prefix length.
pub(super) type PoolNetwork = (IpAddr, u8);

/// The pools of an SMF: those of data networks and those of single UPFs. A pool that several slices or UPFs have in common
/// is stored once.
///
/// A session keeps its address when its block passes to another shard, or the block of its address does. Then shard and address have
/// different owners: the shard *borrows* the address, and for the address's owner it is in use *elsewhere*.
#[derive(Debug)]
pub(super) struct Pools {
    pools: Vec<(PoolNetwork, Pool)>,
    /// Addresses of other shards' blocks that sessions of this shard have.
    borrowed: BTreeSet<IpAddr>,
    /// Addresses of this shard's blocks that sessions of other shards have.
    elsewhere: BTreeSet<IpAddr>,
    /// What the owners of borrowed addresses must know.
    news: Vec<(BlockId, AddressNews)>,
    /// Addresses of restored sessions, while others are still to be restored.
    reserved: BTreeSet<IpAddr>,
    /// While a block is passed: the addresses of it that its sessions have.
    leaving: BTreeSet<IpAddr>,
    /// Sessions get addresses of their own blocks, if there are any.
    prefers_block: bool,
    /// Ranges of static addresses.
    static_ranges: Vec<PoolNetwork>,
    /// Static addresses that sessions of this shard have.
    static_used: BTreeSet<IpAddr>,
}

/// The length of an IPv4 address.
const ADDRESS: u8 = 32;
/// The prefix length of a UE's link.
const LINK_PREFIX: u8 = 64;
/// The first prefix of an IPv6 pool has the gateway's address.
const RESERVED_PREFIXES: u32 = 1;

/// The addresses of a block in one pool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PassedAddresses {
    network: IpAddr,
    prefix: u8,
    /// Never allocated: first address and end of each range.
    unused: Vec<(u32, u32)>,
    /// Released.
    released: Vec<u32>,
    /// In use by sessions of other blocks.
    used: Vec<IpAddr>,
}

pack_struct!(PassedAddresses { network, prefix, unused, released, used });

impl Pools {
    /// All pools of the configuration, a shard's part of each.
    pub(super) fn new(config: &SmfConfig, identity: &Identity) -> Self {
        let blocks: Vec<_> = identity.blocks().collect();
        let v4 =
            |(address, prefix): (Ipv4Addr, u8), reserved| ((IpAddr::V4(address), prefix), ADDRESS, reserved);
        let shared = config.data_networks.iter().map(|network| v4(network.pool, network.reserved));
        let prefixes = config.data_networks.iter().filter_map(|network| {
            let (address, prefix) = network.pool6?;
            Some(((IpAddr::V6(address), prefix), LINK_PREFIX - network.delegation, RESERVED_PREFIXES))
        });
        let own = config.upfs.iter().flat_map(|upf| &upf.pools);
        let own = own.map(|(_, pool, reserved)| v4(*pool, *reserved));
        let ranges = config.data_networks.iter().flat_map(|network| network.static_ranges.iter().copied());
        let static_ranges: Vec<_> = ranges.collect();
        let mut pools: Vec<(PoolNetwork, Pool)> = Vec::new();
        for (network, length, reserved) in shared.chain(prefixes).chain(own) {
            if pools.iter().all(|(known, _)| *known != network) {
                let pool = Pool::new((network, length, reserved), &static_ranges, &blocks);
                pools.push((network, pool));
            }
        }
        Self { prefers_block: config.shares_blocks, static_ranges, ..Self::of(pools) }
    }

    fn of(pools: Vec<(PoolNetwork, Pool)>) -> Self {
        let (borrowed, elsewhere, leaving) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Self {
            pools,
            borrowed,
            elsewhere,
            news: Vec::new(),
            reserved: BTreeSet::new(),
            leaving,
            prefers_block: false,
            static_ranges: Vec::new(),
            static_used: BTreeSet::new(),
        }
    }

    fn is_static(&self, address: IpAddr) -> bool {
        self.static_ranges.iter().any(|range| contains(*range, address))
    }

    /// Assigns a static address; `false` if another session of this shard has it.
    pub(super) fn take_static(&mut self, address: IpAddr) -> bool {
        self.static_used.insert(address)
    }

    /// Allocates an address of this pool; `None` if all are in use.
    #[cfg(test)]
    pub(super) fn allocate(&mut self, network: PoolNetwork) -> Option<IpAddr> {
        debug_assert!(self.reserved.is_empty(), "an address is allocated before all sessions are restored");
        self.pools.iter_mut().find(|(known, _)| *known == network)?.1.allocate()
    }

    /// Allocates an address of this pool; `None` if all are in use. If blocks pass to other instances, an address of the session's block is preferred, so that both have the
    /// same owner.
    pub(super) fn allocate_for(&mut self, network: PoolNetwork, session: BlockId) -> Option<IpAddr> {
        debug_assert!(self.reserved.is_empty(), "an address is allocated before all sessions are restored");
        let (_, pool) = self.pools.iter_mut().find(|(known, _)| *known == network)?;
        let beside = if self.prefers_block { pool.allocate_in(session) } else { None };
        beside.or_else(|| pool.allocate())
    }

    fn pool_of(&mut self, address: IpAddr) -> Option<&mut Pool> {
        let is_its =
            |(network, pool): &&mut (PoolNetwork, Pool)| contains(*network, address) && pool.has(address);
        self.pools.iter_mut().find(is_its).map(|(_, pool)| pool)
    }

    /// Releases an address.
    pub(super) fn release(&mut self, address: IpAddr) {
        if self.static_used.remove(&address) {
            return;
        }
        let is_borrowed = self.borrowed.remove(&address);
        // It was not taken out of the pool yet.
        let is_reserved = self.reserved.remove(&address);
        let Some(pool) = self.pool_of(address) else { return };
        pool.in_use -= 1;
        if is_reserved {
            return;
        }
        if !is_borrowed {
            return pool.put_back(address);
        }
        let block = pool.block_of(address);
        self.news.extend(block.map(|block| (block, AddressNews::Released(address))));
    }

    /// The addresses of restored sessions are in use; returns those that are in no pool. Those of other shards' blocks are borrowed. Until
    /// [`Pools::claim_reserved`] no address is allocated.
    pub(super) fn reserve(&mut self, addresses: impl Iterator<Item = IpAddr>) -> Vec<IpAddr> {
        let mut others = Vec::new();
        for address in addresses {
            if self.is_static(address) {
                others.extend((!self.static_used.insert(address)).then_some(address));
                continue;
            }
            let is_free = !self.reserved.contains(&address);
            // The session has come from another shard, and the run that took it ended with that.
            let was_elsewhere = self.elsewhere.remove(&address);
            let Some(pool) = self.pool_of(address) else {
                others.push(address);
                continue;
            };
            if is_free && pool.is_unused(address) {
                pool.in_use += 1;
                self.reserved.insert(address);
            } else if was_elsewhere {
                pool.in_use += 1;
            } else if let Some(block) = pool.foreign_block(address) {
                pool.in_use += 1;
                self.borrowed.insert(address);
                self.news.push((block, AddressNews::Used(address)));
            } else {
                others.push(address);
            }
        }
        others
    }

    /// All sessions are restored: addresses that none of them has may be allocated.
    pub(super) fn claim_reserved(&mut self) {
        let reserved = std::mem::take(&mut self.reserved);
        if !reserved.is_empty() {
            self.pools.iter_mut().for_each(|(_, pool)| pool.claim(&reserved));
        }
    }

    /// The shard has a block that another instance had, before the sessions of the block. Its addresses are allocated after the shard's
    /// own ones.
    pub(super) fn adopt_block(&mut self, block: BlockId) {
        for (_, pool) in &mut self.pools {
            if pool.blocks.insert(block) {
                let dynamic = pool.dynamic(pool.range(block));
                pool.unused.extend(dynamic);
            }
        }
        // Sessions of this shard have some of them.
        for address in std::mem::take(&mut self.borrowed) {
            match self.pool_of(address) {
                Some(pool) if pool.block_of(address) == Some(block) => pool.take_out(address),
                _ => drop(self.borrowed.insert(address)),
            }
        }
    }

    /// Addresses in use by sessions of this shard.
    pub(super) fn in_use(&self) -> usize {
        self.static_used.len() + self.pools.iter().map(|(_, pool)| pool.in_use()).sum::<usize>()
    }

    /// What the owners of borrowed addresses must know since the last call.
    pub(super) fn take_news(&mut self) -> Vec<(BlockId, AddressNews)> {
        std::mem::take(&mut self.news)
    }

    /// An address of this shard was released or used at another shard.
    pub(super) fn note_news(&mut self, news: AddressNews) {
        match news {
            AddressNews::Released(address) => {
                if self.elsewhere.remove(&address)
                    && let Some(pool) = self.pool_of(address)
                {
                    pool.put_back(address);
                }
            }
            AddressNews::Used(address) => {
                if let Some(pool) = self.pool_of(address) {
                    pool.take_out(address);
                }
                self.elsewhere.insert(address);
            }
        }
    }

    /// Addresses of this shard's blocks that sessions of other shards have.
    pub(super) const fn elsewhere(&self) -> &BTreeSet<IpAddr> {
        &self.elsewhere
    }

    /// A session leaves with the block `with`, and keeps this address.
    pub(super) fn pass_used(&mut self, address: IpAddr, with: BlockId) {
        if self.static_used.remove(&address) {
            return;
        }
        let Some(pool) = self.pool_of(address) else { return };
        pool.in_use -= 1;
        if pool.block_of(address) == Some(with) {
            self.leaving.insert(address);
        } else if !self.borrowed.remove(&address) {
            self.elsewhere.insert(address);
        }
    }

    /// A session came from another shard with this address.
    pub(super) fn take_used(&mut self, address: IpAddr) {
        if self.is_static(address) {
            self.static_used.insert(address);
            return;
        }
        let Some(pool) = self.pool_of(address) else { return };
        pool.in_use += 1;
        if pool.foreign_block(address).is_some() {
            self.borrowed.insert(address);
        } else {
            self.elsewhere.remove(&address);
        }
    }

    /// Gives away the addresses of a block, after its sessions.
    pub(super) fn pass_block(&mut self, block: BlockId) -> Vec<PassedAddresses> {
        let Self { pools, borrowed, elsewhere, leaving, .. } = self;
        let mut passed = Vec::new();
        for ((network, prefix), pool) in pools {
            let (unused, released) = pool.pass_free(block);
            let (first, end) = pool.range(block);
            let is_free = |address: &u32| {
                released.contains(address) || unused.iter().any(|(from, to)| (*from..*to).contains(address))
            };
            let dynamic = pool.dynamic((first, end));
            let used = dynamic.into_iter().flat_map(|(from, to)| from..to);
            let used = used.filter(|number| !is_free(number)).map(|number| pool.address_of(number));
            let used: Vec<_> = used.filter(|address| !leaving.contains(address)).collect();
            for address in &used {
                if !elsewhere.remove(address) {
                    borrowed.insert(*address);
                }
            }
            passed.push(PassedAddresses { network: *network, prefix: *prefix, unused, released, used });
        }
        leaving.clear();
        passed
    }

    /// Takes the addresses of a block, before its sessions.
    ///
    /// A run after a panic gets a block again, and has begun with all of its addresses: what counts is what the former owner says, and that
    /// this shard's sessions have some of them.
    pub(super) fn take_block(&mut self, block: BlockId, passed: Vec<PassedAddresses>) {
        if self.pools.iter().any(|(_, pool)| pool.blocks.contains(&block)) {
            self.pass_block(block);
        }
        for (_, pool) in &mut self.pools {
            pool.blocks.insert(block);
        }
        for PassedAddresses { network, prefix, unused, released, used } in passed {
            if let Some((_, pool)) = self.pools.iter_mut().find(|(known, _)| *known == (network, prefix)) {
                // An instance with an earlier configuration may have other static ranges.
                let unused: Vec<_> = unused.into_iter().flat_map(|range| pool.dynamic(range)).collect();
                pool.unused.extend(unused);
                let released =
                    released.into_iter().filter(|number| !pool.is_static(*number)).collect::<Vec<_>>();
                pool.released.extend(released);
            }
            for address in used {
                let is_own = self.borrowed.remove(&address) || self.reserved.remove(&address);
                if !is_own {
                    self.elsewhere.insert(address);
                }
            }
        }
    }
}

/// Whether the network contains the address.
pub(super) fn contains((network, prefix): PoolNetwork, address: IpAddr) -> bool {
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let shift = 32 - u32::from(prefix.clamp(1, 32));
            u32::from(network) >> shift == u32::from(address) >> shift
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let shift = 128 - u32::from(prefix.clamp(1, 128));
            network.to_bits() >> shift == address.to_bits() >> shift
        }
        _ => false,
    }
}

/// A shard's part of a pool. Addresses are counted: an IPv4 address by its value, a prefix from the beginning of the pool.
#[derive(Debug)]
struct Pool {
    network: PoolNetwork,
    /// The prefix length of each address.
    length: u8,
    reserved: u32,
    /// Ranges of static addresses, in ascending order: the first number, and the one after the last.
    statics: Vec<(u32, u32)>,
    /// The blocks of the shard.
    blocks: BTreeSet<BlockId>,
    /// Addresses that were never allocated: first address and end of each range, in ascending order.
    unused: VecDeque<(u32, u32)>,
    /// Released addresses, the one released first in front.
    released: VecDeque<u32>,
    in_use: usize,
}

impl Pool {
    /// The addresses of these blocks; `reserved` addresses at the pool's beginning, and its last, are not allocated.
    fn new(
        (network, length, reserved): (PoolNetwork, u8, u32),
        static_ranges: &[PoolNetwork],
        blocks: &[BlockId],
    ) -> Self {
        let released = VecDeque::new();
        let mut pool = Self {
            network,
            length,
            reserved,
            statics: Vec::new(),
            blocks: blocks.iter().copied().collect(),
            unused: VecDeque::new(),
            released,
            in_use: 0,
        };
        let inside = static_ranges.iter().filter(|range| contains(network, range.0));
        pool.statics = inside.map(|range| pool.numbers_of(*range)).filter(|(from, to)| from < to).collect();
        pool.statics.sort_unstable();
        for block in blocks {
            for (first, end) in pool.dynamic(pool.range(*block)) {
                match pool.unused.back_mut().filter(|last| last.1 == first) {
                    Some(last) => last.1 = end,
                    None => pool.unused.push_back((first, end)),
                }
            }
        }
        pool
    }

    /// The numbers of a block's addresses: the first, and the one after the last. Static addresses between them are not the block's.
    fn range(&self, block: BlockId) -> (u32, u32) {
        (self.begin_of(block.number()), self.begin_of(block.number() + 1))
    }

    /// The number of a block's first address. The ranges of small pools may be empty. Each block has the same share of dynamic addresses, wherever
    /// the static ones are.
    fn begin_of(&self, block: u16) -> u32 {
        let (first, last) = self.bounds();
        let fixed = self.statics.iter().map(|(from, to)| u64::from(to - from)).sum();
        let dynamic = last.saturating_sub(first).saturating_sub(fixed);
        let mut number = first + dynamic * u64::from(block) / u64::from(BlockId::COUNT);
        for (from, to) in &self.statics {
            if u64::from(*from) <= number {
                number += u64::from(to - from);
            }
        }
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// The number of the first address that may be in use, and that after the last.
    fn bounds(&self) -> (u64, u64) {
        let (network, prefix) = self.network;
        let (start, size) = match network {
            IpAddr::V4(network) => {
                let size = 1_u64 << (32 - u32::from(prefix.clamp(1, 32)));
                (u64::from(u32::from(network)) & !(size - 1), size)
            }
            IpAddr::V6(_) => (0, 1_u64 << self.length.saturating_sub(prefix).min(31)),
        };
        (start + u64::from(self.reserved.max(1)), start + size - 1)
    }

    /// The numbers of a static range, as far as they are in bounds.
    fn numbers_of(&self, (network, prefix): PoolNetwork) -> (u32, u32) {
        let (first, last) = self.bounds();
        let from = u64::from(self.number_of(network));
        let to = from + (1_u64 << u32::from(self.length.saturating_sub(prefix)).min(32));
        let clamp = |number: u64| u32::try_from(number.clamp(first, last.max(first))).unwrap_or(u32::MAX);
        (clamp(from), clamp(to))
    }

    fn is_static(&self, number: u32) -> bool {
        self.statics.iter().any(|(from, to)| (*from..*to).contains(&number))
    }

    /// The parts of a range that have no static addresses.
    fn dynamic(&self, (mut first, end): (u32, u32)) -> Vec<(u32, u32)> {
        let mut parts = Vec::new();
        for (from, to) in &self.statics {
            if *to > first && *from < end {
                parts.extend((first < *from).then_some((first, *from)));
                first = *to;
            }
        }
        parts.extend((first < end).then_some((first, end)));
        parts
    }

    /// Whether an address of the network is one of those that the pool allocates.
    fn has(&self, address: IpAddr) -> bool {
        self.address_of(self.number_of(address)) == address
    }

    /// How far the number of a prefix is from the end of its address.
    fn shift(&self) -> u32 {
        128 - u32::from(self.length)
    }

    /// The number of an address of the pool.
    fn number_of(&self, address: IpAddr) -> u32 {
        match (self.network.0, address) {
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (address.to_bits().wrapping_sub(network.to_bits()) >> self.shift()) as u32
            }
            (_, IpAddr::V4(address)) => address.into(),
            // In no pool.
            (IpAddr::V4(_), IpAddr::V6(_)) => 0,
        }
    }

    /// The address that has this number.
    fn address_of(&self, number: u32) -> IpAddr {
        match self.network.0 {
            IpAddr::V4(_) => Ipv4Addr::from(number).into(),
            IpAddr::V6(network) => {
                Ipv6Addr::from_bits(network.to_bits() | u128::from(number) << self.shift()).into()
            }
        }
    }

    /// An address is free again.
    fn put_back(&mut self, address: IpAddr) {
        self.released.push_back(self.number_of(address));
    }

    /// The block of an address; `None` for one that is not allocated.
    fn block_of(&self, address: IpAddr) -> Option<BlockId> {
        let address = self.number_of(address);
        let of = |number| BlockId::new(number).map(|block| self.range(block));
        // The ranges of blocks are in ascending order.
        let (mut low, mut high) = (0, BlockId::COUNT);
        while low < high {
            let middle = low.midpoint(high);
            if of(middle).is_some_and(|(_, end)| end <= address) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        of(low).filter(|(first, _)| *first <= address).and(BlockId::new(low))
    }

    /// The block of an address, if another shard has it.
    fn foreign_block(&self, address: IpAddr) -> Option<BlockId> {
        self.block_of(address).filter(|block| !self.blocks.contains(block))
    }

    /// A free address is no longer free.
    fn take_out(&mut self, address: IpAddr) {
        let address = self.number_of(address);
        self.released.retain(|released| *released != address);
        if let Some(at) = self.unused.iter().position(|(from, to)| (*from..*to).contains(&address)) {
            let (from, to) = self.unused[at];
            self.unused[at] = (from, address);
            self.unused.insert(at + 1, (address + 1, to));
        }
    }

    /// Removes and returns the free addresses of a block: ranges that were never allocated, and released addresses.
    fn pass_free(&mut self, block: BlockId) -> (Vec<(u32, u32)>, Vec<u32>) {
        self.blocks.remove(&block);
        let (first, end) = self.range(block);
        let (mut passed, mut kept) = (Vec::new(), VecDeque::new());
        for (from, to) in std::mem::take(&mut self.unused) {
            let (inside_from, inside_to) = (from.max(first), to.min(end));
            if inside_from >= inside_to {
                kept.push_back((from, to));
                continue;
            }
            passed.push((inside_from, inside_to));
            kept.extend([(from, inside_from), (inside_to, to)].into_iter().filter(|(from, to)| from < to));
        }
        self.unused = kept;
        let is_of_block = |address: &u32| (first..end).contains(address);
        let of_block = self.released.iter().copied().filter(is_of_block).collect();
        self.released.retain(|address| !is_of_block(address));
        (passed, of_block)
    }

    /// Allocates an address; `None` if all are in use.
    fn allocate(&mut self) -> Option<IpAddr> {
        let address = match self.next_unused() {
            Some(address) => address,
            None => self.released.pop_front()?,
        };
        self.in_use += 1;
        Some(self.address_of(address))
    }

    /// Allocates an address of that block; `None` if all are in use.
    fn allocate_in(&mut self, block: BlockId) -> Option<IpAddr> {
        let (first, end) = self.range(block);
        let is_of_block = |address: u32| (first..end).contains(&address);
        let unused = self
            .unused
            .iter()
            .find_map(|(from, to)| Some((*from).max(first)).filter(|it| it < to && is_of_block(*it)));
        let released = || self.released.iter().copied().find(|address| is_of_block(*address));
        let address = self.address_of(unused.or_else(released)?);
        self.take_out(address);
        self.in_use += 1;
        Some(address)
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

    /// Whether this address was never allocated, and is one of this shard.
    fn is_unused(&self, address: IpAddr) -> bool {
        let address = self.number_of(address);
        self.unused.iter().any(|(next, end)| (*next..*end).contains(&address))
    }

    /// Takes unused addresses out. Those below them in a range are allocated last: they may have been in use before.
    fn claim(&mut self, addresses: &BTreeSet<IpAddr>) {
        for (from, to) in std::mem::take(&mut self.unused) {
            let mut next = from;
            for address in addresses.range(self.address_of(from)..self.address_of(to)) {
                let address = self.number_of(*address);
                self.released.extend(next..address);
                next = address + 1;
            }
            if next < to {
                self.unused.push_back((next, to));
            }
        }
    }

    const fn in_use(&self) -> usize {
        self.in_use
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::identity_of_shard;

    fn pool(network: PoolNetwork, shard: u8, shards: u8) -> Pool {
        Pool::new((network, ADDRESS, 2), &[], &identity_of_shard(shard, shards).blocks().collect::<Vec<_>>())
    }

    fn all(network: PoolNetwork, shard: u8, shards: u8) -> Vec<String> {
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
        let mut pool = Pool::new((("10.45.0.0".parse().unwrap(), 20), ADDRESS, 2), &[], &blocks);
        let addresses: Vec<_> = std::iter::from_fn(|| pool.allocate()).collect();
        let expected = [5, 6, 7, 8, 13, 14, 15, 16].map(|last| IpAddr::from([10, 45, 0, last]));
        assert_eq!(addresses, expected);
    }

    #[test]
    fn addresses_of_restored_sessions_are_not_allocated_again() {
        let mut pool = Pools::of(vec![(
            ("10.0.0.0".parse().unwrap(), 29),
            pool(("10.0.0.0".parse().unwrap(), 29), 0, 1),
        )]);
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let foreign = IpAddr::from([10, 9, 0, 1]);
        // The sessions are restored one after another, and one ends before the others are restored.
        assert_eq!(pool.reserve([address(5), foreign, address(1)].into_iter()), [foreign, address(1)]);
        assert_eq!(pool.reserve([address(3), address(5), address(4)].into_iter()), [address(5)]);
        pool.release(address(4));
        pool.claim_reserved();
        assert_eq!(pool.in_use(), 2);
        let network = ("10.0.0.0".parse().unwrap(), 29);
        let rest: Vec<_> = std::iter::from_fn(|| pool.allocate(network)).collect();
        assert_eq!(rest, [address(6), address(2), address(4)]);
        pool.release(address(5));
        assert_eq!(pool.allocate(network), Some(address(5)));
    }

    #[test]
    fn an_adopted_block_brings_its_free_addresses() {
        let network = ("10.45.0.0".parse().unwrap(), 20);
        let blocks = |range: std::ops::Range<u16>| range.filter_map(BlockId::new).collect::<Vec<_>>();
        let mut pools = Pools::of(vec![(network, Pool::new((network, ADDRESS, 2), &[], &blocks(2..4)))]);
        let mut former = Pools::of(vec![(network, Pool::new((network, ADDRESS, 2), &[], &blocks(0..2)))]);
        let own = pools.allocate(network).unwrap();
        let theirs: Vec<_> = (0..5).map(|_| former.allocate(network).unwrap()).collect();
        // A session of this shard has an address of block 1 from before.
        assert!(pools.reserve([theirs[4]].into_iter()).is_empty());
        pools.claim_reserved();
        pools.take_news();
        pools.adopt_block(BlockId::new(0).unwrap());
        pools.adopt_block(BlockId::new(1).unwrap());
        pools.adopt_block(BlockId::new(1).unwrap());
        assert!(pools.borrowed.is_empty());
        let twice = [theirs[2], theirs[0], theirs[2], IpAddr::from([10, 9, 0, 1])];
        assert_eq!(pools.reserve(twice.into_iter()), [theirs[2], IpAddr::from([10, 9, 0, 1])]);
        pools.claim_reserved();
        assert_eq!(pools.in_use(), 4);
        let rest: BTreeSet<_> = std::iter::from_fn(|| pools.allocate(network)).collect();
        assert_eq!(rest.len(), 15 - 4, "blocks 0 to 3 have 15 addresses");
        assert!(![own, theirs[0], theirs[2], theirs[4]].iter().any(|used| rest.contains(used)));
    }

    #[test]
    fn a_session_gets_an_address_of_its_block_if_there_is_one() {
        let network = ("10.45.0.0".parse().unwrap(), 20);
        let blocks: Vec<_> = (0..4).filter_map(BlockId::new).collect();
        let mut pools = Pools::of(vec![(network, Pool::new((network, ADDRESS, 2), &[], &blocks))]);
        pools.prefers_block = true;
        let block = blocks[2];
        let given: Vec<_> = (0..4).filter_map(|_| pools.allocate_for(network, block)).collect();
        assert!(given.iter().all(|address| pools.pools[0].1.block_of(*address) == Some(block)), "{given:?}");
        pools.release(given[1]);
        assert_eq!(pools.allocate_for(network, block), Some(given[1]));
        let next = pools.allocate_for(network, block).unwrap();
        assert_eq!(pools.pools[0].1.block_of(next), Some(blocks[0]), "its own are in use");
        let rest: BTreeSet<_> = std::iter::from_fn(|| pools.allocate(network)).collect();
        assert_eq!(rest.len(), 15 - 5);
    }

    #[test]
    fn a_released_address_is_allocated_last() {
        let network = ("10.0.0.0".parse().unwrap(), 29);
        let mut pool = pool(network, 0, 1);
        let first = pool.allocate().unwrap();
        let mut pools = Pools::of(vec![(network, pool)]);
        pools.release(first);
        assert_ne!(pools.allocate(network), Some(first));
        assert_eq!(pools.in_use(), 1);
    }

    #[test]
    fn a_session_keeps_its_address_when_its_block_or_that_of_the_address_passes() {
        let network = ("10.45.0.0".parse().unwrap(), 20);
        let mut former = Pools::of(vec![(network, pool(network, 0, 2))]);
        let mut new = Pools::of(vec![(network, pool(network, 1, 2))]);
        let block = |number| BlockId::new(number).unwrap();
        let addresses: Vec<_> = (0..8).map(|_| former.allocate(network).unwrap()).collect();
        // Four addresses a block: the first three are of block 0, as two are reserved; the next four of block 1.
        let of = |address: &IpAddr| former.pools[0].1.block_of(*address).unwrap().number();
        assert_eq!(addresses.iter().map(of).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1, 1, 2]);
        // A session with an address of block 2 leaves with block 1, and one with an address of block 1 stays.
        for passed in &addresses[4..8] {
            former.pass_used(*passed, block(1));
        }
        let parts = former.pass_block(block(1));
        assert_eq!(parts[0].used, [addresses[3]]);
        new.take_block(block(1), parts);
        addresses[4..8].iter().for_each(|passed| new.take_used(*passed));
        assert_eq!((former.in_use(), new.in_use()), (4, 4));
        assert_eq!(former.elsewhere, [addresses[7]].into());
        assert_eq!(former.borrowed, [addresses[3]].into());
        // Both sessions end: each address returns to the owner of its block.
        former.release(addresses[3]);
        new.release(addresses[7]);
        assert_eq!(former.take_news(), [(block(1), AddressNews::Released(addresses[3]))]);
        assert_eq!(new.take_news(), [(block(2), AddressNews::Released(addresses[7]))]);
        new.note_news(AddressNews::Released(addresses[3]));
        former.note_news(AddressNews::Released(addresses[7]));
        let all = |pools: &mut Pools| std::iter::from_fn(|| pools.allocate(network)).collect::<Vec<_>>();
        let (mut left, mut right) = (all(&mut former), all(&mut new));
        assert!(left.contains(&addresses[7]) && right.contains(&addresses[3]));
        left.append(&mut right);
        let different: BTreeSet<_> = left.iter().collect();
        assert_eq!(different.len(), left.len(), "no address twice");
        assert_eq!(left.len(), 4096 - 3 - 6, "all but those in use");
    }

    /// A shard panics as it takes a block. Its next run begins with all addresses of its blocks, and gets the block again.
    #[test]
    fn a_block_that_comes_again_after_a_panic_brings_no_address_twice() {
        let network = ("10.45.0.0".parse().unwrap(), 20);
        let block = |number| BlockId::new(number).unwrap();
        let mut former = Pools::of(vec![(network, pool(network, 0, 2))]);
        let given: Vec<_> = (0..7).map(|_| former.allocate(network).unwrap()).collect();
        // Of the addresses of block 1 (the last four), a session of block 1 has one, and one of the other shard another.
        former.pass_used(given[3], block(1));
        former.pass_used(given[4], block(300));
        [5, 6].into_iter().for_each(|each: usize| former.release(given[each]));
        let parts = former.pass_block(block(1));
        let blocks: Vec<_> = std::iter::once(block(1)).chain(identity_of_shard(1, 2).blocks()).collect();
        for is_claimed in [true, false] {
            let mut next = Pools::of(vec![(network, Pool::new((network, ADDRESS, 2), &[], &blocks))]);
            assert!(next.reserve([given[4]].into_iter()).is_empty());
            if is_claimed {
                next.claim_reserved();
            }
            let again = parts.iter().map(|part| PassedAddresses {
                unused: part.unused.clone(),
                released: part.released.clone(),
                used: part.used.clone(),
                ..*part
            });
            next.take_block(block(1), again.collect());
            next.take_used(given[3]);
            next.claim_reserved();
            assert_eq!((next.in_use(), next.elsewhere.len()), (2, 0));
            let rest: Vec<_> = std::iter::from_fn(|| next.allocate(network)).collect();
            let different: BTreeSet<_> = rest.iter().collect();
            assert_eq!(different.len(), rest.len(), "no address twice");
            assert!(!rest.contains(&given[3]) && !rest.contains(&given[4]));
            assert!(rest.contains(&given[5]) && rest.contains(&given[6]));
        }
    }

    #[test]
    fn a_restored_session_has_an_address_that_was_elsewhere() {
        let network = ("10.45.0.0".parse().unwrap(), 20);
        let mut pools = Pools::of(vec![(network, pool(network, 0, 2))]);
        let address = IpAddr::from([10, 45, 0, 9]);
        pools.note_news(AddressNews::Used(address));
        assert_eq!(pools.reserve([address, address].into_iter()), [address], "once");
        pools.claim_reserved();
        assert_eq!((pools.in_use(), pools.elsewhere.len()), (1, 0));
        pools.release(address);
        let rest: Vec<_> = std::iter::from_fn(|| pools.allocate(network)).collect();
        assert_eq!(rest.iter().filter(|it| **it == address).count(), 1);
    }

    /// The pools of a shard, with static addresses.
    fn with_static(network: PoolNetwork, range: PoolNetwork, blocks: &[BlockId]) -> Pools {
        let pool = Pool::new((network, ADDRESS, 2), &[range], blocks);
        Pools { static_ranges: vec![range], ..Pools::of(vec![(network, pool)]) }
    }

    #[test]
    fn static_addresses_are_not_allocated_and_each_block_has_its_share_of_the_others() {
        let network = ("10.45.0.0".parse().unwrap(), 16);
        // Half of the pool: without a fair share, the second of two shards had nothing.
        let range = ("10.45.128.0".parse().unwrap(), 17);
        let all = |shard, shards| {
            let blocks: Vec<_> = identity_of_shard(shard, shards).blocks().collect();
            let mut pools = with_static(network, range, &blocks);
            std::iter::from_fn(move || pools.allocate(network)).collect::<Vec<_>>()
        };
        let (first, second) = (all(0, 2), all(1, 2));
        assert_eq!(first.len() + second.len(), 32_768 - 2);
        assert!(first.len().abs_diff(second.len()) < 4, "{} and {}", first.len(), second.len());
        let different: BTreeSet<_> = first.iter().chain(&second).collect();
        assert_eq!(different.len(), 32_766);
        assert!(!different.iter().any(|address| contains(range, **address)));
        let middle = ("10.45.0.8".parse().unwrap(), 29);
        let blocks: Vec<_> = identity_of_shard(0, 1).blocks().collect();
        let mut pools = with_static(("10.45.0.0".parse().unwrap(), 27), middle, &blocks);
        let given = std::iter::from_fn(|| pools.allocate(("10.45.0.0".parse().unwrap(), 27)));
        let last =
            given.map(|address| address.to_string().rsplit('.').next().unwrap().parse::<u8>().unwrap());
        assert_eq!(last.collect::<Vec<_>>(), (2..8).chain(16..31).collect::<Vec<_>>());
    }

    #[test]
    fn a_static_address_has_one_holder_and_is_no_dynamic_one_when_it_is_free() {
        let network = ("10.45.0.0".parse().unwrap(), 20);
        let range = ("10.45.0.4".parse().unwrap(), 30);
        let blocks: Vec<_> = (0..4).filter_map(BlockId::new).collect();
        let fixed = IpAddr::from([10, 45, 0, 5]);
        let mut pools = with_static(network, range, &blocks);
        assert!(pools.take_static(fixed));
        assert!(!pools.take_static(fixed), "another session has it");
        assert_eq!(pools.in_use(), 1);
        pools.release(fixed);
        assert_eq!(pools.in_use(), 0);
        assert!(pools.take_static(fixed));
        // Restored sessions: of two with the same address one goes on.
        let mut restored = with_static(network, range, &blocks);
        assert_eq!(restored.reserve([fixed, fixed].into_iter()), [fixed]);
        restored.claim_reserved();
        assert_eq!((restored.in_use(), restored.take_news().len()), (1, 0));
        // A block passes, with and without the session.
        let mut new = with_static(network, range, &[]);
        pools.pass_used(fixed, blocks[0]);
        let parts = pools.pass_block(blocks[0]);
        assert!(parts.iter().all(|part| part.used.is_empty()), "{parts:?}");
        new.take_block(blocks[0], parts);
        new.take_used(fixed);
        assert_eq!((pools.in_use(), new.in_use()), (0, 1));
        new.release(fixed);
        let rest: Vec<_> = std::iter::from_fn(|| new.allocate(network)).collect();
        assert!(!rest.is_empty() && !rest.iter().any(|address| contains(range, *address)), "{rest:?}");
        assert!(new.take_static(fixed));
    }

    #[test]
    fn each_session_gets_a_prefix_of_64_bits_and_shards_share_the_pool() {
        let network = ("2001:db8:45::".parse().unwrap(), 60);
        let part = |shard| {
            let blocks: Vec<_> = identity_of_shard(shard, 2).blocks().collect();
            Pools::of(vec![(network, Pool::new((network, LINK_PREFIX, RESERVED_PREFIXES), &[], &blocks))])
        };
        let all = |pools: &mut Pools| std::iter::from_fn(|| pools.allocate(network)).collect::<Vec<_>>();
        let (mut left, mut right) = (part(0), part(1));
        let (first, second) = (all(&mut left), all(&mut right));
        assert_eq!(first[0], "2001:db8:45:1::".parse::<IpAddr>().unwrap());
        assert_eq!(second.last(), Some(&"2001:db8:45:e::".parse().unwrap()));
        let different: BTreeSet<_> = first.iter().chain(&second).collect();
        assert_eq!(different.len(), 14);
        assert!(different.iter().all(|prefix| contains(network, **prefix)));
        left.release(first[3]);
        assert_eq!(all(&mut left), [first[3]]);
        let mut restored = part(0);
        let others = restored.reserve([first[2], second[0], "2001:db8:46:1::".parse().unwrap()].into_iter());
        assert_eq!(others, ["2001:db8:46:1::".parse::<IpAddr>().unwrap()]);
        restored.claim_reserved();
        assert_eq!(restored.in_use(), 2);
        let rest = all(&mut restored);
        assert!(!rest.contains(&first[2]) && rest.len() == first.len() - 1, "{rest:?}");
    }

    #[test]
    fn shorter_prefixes_are_allocated_whole_and_a_prefix_within_one_is_none() {
        let network = ("2001:db8:45::".parse().unwrap(), 48);
        let blocks: Vec<_> = identity_of_shard(0, 1).blocks().collect();
        let pools = || Pools::of(vec![(network, Pool::new((network, 56, RESERVED_PREFIXES), &[], &blocks))]);
        let all = |pools: &mut Pools| std::iter::from_fn(|| pools.allocate(network)).collect::<Vec<_>>();
        let mut first = pools();
        let given = all(&mut first);
        assert_eq!((given.len(), given[0]), (254, "2001:db8:45:100::".parse::<IpAddr>().unwrap()));
        assert_eq!(given[253], "2001:db8:45:fe00::".parse::<IpAddr>().unwrap());
        first.release(given[7]);
        assert_eq!(all(&mut first), [given[7]]);
        // Sessions of a configuration with prefixes of 64 bits.
        let of_64 =
            ["2001:db8:45:200::", "2001:db8:45:301::", "2001:db8:45:1::"].map(|it| it.parse().unwrap());
        let mut restored = pools();
        assert_eq!(restored.reserve(of_64.into_iter()), of_64[1..]);
        restored.claim_reserved();
        let rest = all(&mut restored);
        assert!(rest.len() == 253 && !rest.contains(&of_64[0]), "{rest:?}");
    }
}
