//! Memory of meters and counters: on the heap, or, if a BPF program uses them too, in the program's maps.
//!
//! - A **session block** is a session's entry in a map, with room for the meters and counters that most sessions need.
//! - A **pool** is a map of meters or counters of one kind, for those that do not fit into a session block. If a pool is
//!   exhausted, its slots are on the heap, and the BPF program leaves their packets to the portable path.
//! - A **share** is the part of a counter that one CPU or worker writes. The value of a counter is the sum of its shares.

use crate::sys::MapMemory;
use crate::sys::layout::{
    BLOCK_FLOWS, BLOCK_METERS, FlowShare, IN_BLOCK, Limits, SESSION_FLOWS, Shared, Traffic, UrrShare,
};
use pith_upf::contract::{Direction, Qer};
use pith_upf::qos::{Burst, Count, FastCounters, FlowCount, FlowCounters, Meter, MeterSource, Metering};
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering::AcqRel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The pools of a datapath.
#[derive(Debug)]
pub struct Pools {
    /// Blocks of sessions.
    pub session_blocks: BlockPool,
    /// Meters that do not fit into session blocks.
    pub meters: Pool<Meter>,
    /// URR counters that do not fit into session blocks: for each URR the shares of the CPUs, then those of the workers.
    pub urr_shares: Pool<UrrShare>,
    /// Limits of URRs.
    pub limits: Pool<Limits>,
    /// The index of the first worker's share among the shares of a URR counter.
    pub first_worker: usize,
}

impl Pools {
    /// Pools on the heap, without session blocks, for this number of workers.
    pub fn on_heap(workers: usize) -> Self {
        Self {
            session_blocks: BlockPool::default(),
            meters: Pool::on_heap(1),
            urr_shares: Pool::on_heap(workers),
            limits: Pool::on_heap(1),
            first_worker: 0,
        }
    }

    /// Allocates the shares of a URR counter: in the session's block if they are free there, otherwise in the pool.
    pub fn take_urr_shares(&self, block: Option<&Arc<SessionBlock>>) -> Slot<UrrShare> {
        let in_block_slot = block.and_then(|block| {
            block.take(URR_SHARES, |block, _| block.memory.blocks.urr_shares.at(block.entry()), 0)
        });
        in_block_slot.unwrap_or_else(|| self.urr_shares.take())
    }

    /// Allocates a meter, likewise.
    fn take_meter(&self, block: Option<&Arc<SessionBlock>>, direction: Direction) -> Slot<Meter> {
        let in_block_slot = block.and_then(|block| match direction {
            Direction::Uplink => block.take(UPLINK_METER, SessionBlock::meter, 0),
            Direction::Downlink => block.take(DOWNLINK_METER, SessionBlock::meter, 1),
        });
        in_block_slot.unwrap_or_else(|| self.meters.take())
    }
}

/// Allocates slots of `width` values each. A slot on the heap has default values; a slot in a map has the values of its
/// previous user, which the new user must overwrite.
#[derive(Debug)]
pub struct Pool<T> {
    width: usize,
    shared: Option<Arc<Memory<T>>>,
}

#[derive(Debug)]
pub(crate) struct Memory<T> {
    values: MapMemory<T>,
    free: Free,
}

impl<T: Shared> Pool<T> {
    /// Slots on the heap only.
    pub fn on_heap(width: usize) -> Self {
        Self { width, shared: None }
    }

    /// Slots in a map, and on the heap once the map is full.
    pub fn in_map(width: usize, values: MapMemory<T>) -> Self {
        let free = Free::below(values.len() as u32);
        Self { width, shared: Some(Arc::new(Memory { values, free })) }
    }

    /// Allocates a slot.
    pub fn take(&self) -> Slot<T> {
        let shared = self.shared.as_ref().and_then(|memory| {
            let index = memory.free.take()?;
            Some(Slot::Shared { memory: Arc::clone(memory), index })
        });
        shared.unwrap_or_else(|| Slot::Heap((0..self.width).map(|_| T::default()).collect()))
    }
}

/// The free entries of a map, by index.
#[derive(Debug)]
struct Free(Mutex<Vec<u32>>);

impl Free {
    /// The indices below `count` are free.
    fn below(count: u32) -> Self {
        Self(Mutex::new((0..count).rev().collect()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<u32> {
        self.lock().pop()
    }

    fn put(&self, index: u32) {
        self.lock().push(index);
    }
}

/// The session blocks of a BPF program; none by default.
#[derive(Debug, Default)]
pub struct BlockPool(Option<Arc<BlockMemory>>);

/// The maps of meters and counters in session blocks. Each entry is that of one block.
#[derive(Debug)]
pub struct BlockValues {
    /// Meters, uplink and downlink.
    pub meters: MapMemory<Meter>,
    /// Shares of one URR counter.
    pub urr_shares: MapMemory<UrrShare>,
    /// Counters of the first [`BLOCK_FLOWS`] flows: for each flow a share for each CPU.
    pub flow_shares: MapMemory<FlowShare>,
    /// Groups of counters for the other flows of a session. A group is not part of a block; it is allocated to a block when the
    /// session needs it.
    pub groups: MapMemory<FlowShare>,
    /// Number of CPUs.
    pub cpus: usize,
}

#[derive(Debug)]
struct BlockMemory {
    blocks: BlockValues,
    free: Free,
    free_groups: Free,
}

/// A session's block; freed when the session and all slots in it are dropped.
#[derive(Debug)]
pub struct SessionBlock {
    memory: Arc<BlockMemory>,
    index: u32,
    /// Index of the group of flow counters, once allocated.
    group: OnceLock<u32>,
    /// The parts in use, one bit each.
    taken: AtomicU32,
}

// Parts of a block, as bits.
const UPLINK_METER: u32 = 1;
const DOWNLINK_METER: u32 = 2;
const URR_SHARES: u32 = 4;
/// The bit of flow 0; that of flow n is `FLOW << n`.
const FLOW: u32 = 8;

impl BlockPool {
    /// A pool of the first `count` blocks of the maps.
    pub fn in_map(blocks: BlockValues, count: u32) -> Self {
        let free_groups = Free::below(blocks.groups.len() as u32);
        Self(Some(Arc::new(BlockMemory { blocks, free: Free::below(count), free_groups })))
    }

    /// Allocates a block; `None` if all are in use.
    pub fn take(&self) -> Option<Arc<SessionBlock>> {
        let memory = self.0.as_ref()?;
        let index = memory.free.take()?;
        let memory = Arc::clone(memory);
        Some(Arc::new(SessionBlock { memory, index, group: OnceLock::new(), taken: AtomicU32::new(0) }))
    }
}

impl SessionBlock {
    /// The block's index, which is the session's slot in the BPF program.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The index of the block's entry in the maps.
    fn entry(&self) -> usize {
        self.index as usize
    }

    /// Index of the block's group of flow counters, if allocated.
    pub fn flow_group(&self) -> Option<u32> {
        self.group.get().copied()
    }

    /// A meter of the block: 0 uplink, 1 downlink.
    fn meter(&self, number: u32) -> &[Meter] {
        let number = number as usize;
        self.memory.blocks.meters.at(self.entry()).get(number..=number).unwrap_or_default()
    }

    /// The shares of a flow's counter, one for each CPU.
    fn flow_shares(&self, number: u32) -> &[FlowShare] {
        let BlockValues { flow_shares, groups, cpus, .. } = &self.memory.blocks;
        let (shares, index) = match (number as usize).checked_sub(BLOCK_FLOWS) {
            None => (flow_shares.at(self.entry()), number as usize),
            Some(index) => (self.flow_group().map_or(&[][..], |group| groups.at(group as usize)), index),
        };
        shares.get(index * cpus..(index + 1) * cpus).unwrap_or_default()
    }

    /// Allocates the counter of a flow and sets it to zero: the counter of its direction in the block if that is free,
    /// otherwise one of the group.
    fn take_flow(self: &Arc<Self>, direction: Direction) -> Option<OneFlow> {
        let in_group = BLOCK_FLOWS as u8..SESSION_FLOWS as u8;
        std::iter::once(direction as u8).chain(in_group).find_map(|number| {
            (usize::from(number) < BLOCK_FLOWS || self.ensure_group()).then_some(())?;
            let flow_shares = self.take(FLOW << number, Self::flow_shares, number.into())?;
            flow_shares.iter().for_each(FlowShare::clear);
            Some(OneFlow { flow_shares, number })
        })
    }

    /// Allocates a group of flow counters, unless the block has one. Returns whether the block has one now.
    fn ensure_group(&self) -> bool {
        let free = &self.memory.free_groups;
        if self.group.get().is_none()
            && let Some(group) = free.take()
            && self.group.set(group).is_err()
        {
            free.put(group);
        }
        self.group.get().is_some()
    }

    /// Allocates a part, unless it is in use. `number` is its index among the parts of its kind.
    fn take<T>(self: &Arc<Self>, part: u32, values: ValuesOf<T>, number: u32) -> Option<Slot<T>> {
        let was_free = self.taken.fetch_or(part, AcqRel) & part == 0;
        was_free.then(|| Slot::SessionBlock { block: Arc::clone(self), part, values, number })
    }
}

/// Selects the values of a part in a block.
type ValuesOf<T> = fn(&SessionBlock, u32) -> &[T];

impl Drop for SessionBlock {
    fn drop(&mut self) {
        if let Some(group) = self.group.get() {
            self.memory.free_groups.put(*group);
        }
        self.memory.free.put(self.index);
    }
}

/// The memory of one meter or counter; dropping it frees the memory. In a map it has the values of the previous user, which the
/// new user must overwrite.
#[derive(Debug)]
pub enum Slot<T> {
    /// Private to this process.
    Heap(Box<[T]>),
    /// Shared with the BPF program, in the map of a pool.
    #[allow(private_interfaces)]
    Shared { memory: Arc<Memory<T>>, index: u32 },
    /// Shared with the BPF program, in the session's block.
    SessionBlock {
        block: Arc<SessionBlock>,
        part: u32,
        values: ValuesOf<T>,
        /// The index among the values of its kind.
        number: u32,
    },
}

impl Slot<Meter> {
    /// The index by which the BPF program knows the slot; `None` if the slot is on the heap.
    pub fn name(&self) -> Option<u32> {
        self.name_of(BLOCK_METERS as u32)
    }
}

impl Slot<UrrShare> {
    /// The index by which the BPF program knows the slot; `None` if the slot is on the heap.
    pub fn name(&self) -> Option<u32> {
        self.name_of(1)
    }
}

impl Slot<Limits> {
    /// The index by which the BPF program knows the slot; `None` if the slot is on the heap.
    pub fn name(&self) -> Option<u32> {
        self.name_of(0)
    }
}

impl<T> Slot<T> {
    /// The index by which the BPF program knows the slot, if it does. `per_block` is the number of such values in a block.
    fn name_of(&self, per_block: u32) -> Option<u32> {
        match self {
            Self::Heap(_) => None,
            Self::Shared { index, .. } => Some(*index),
            Self::SessionBlock { block, number, .. } => Some(IN_BLOCK | (block.index * per_block + number)),
        }
    }
}

/// Allocates the meters of a session.
#[derive(Debug)]
pub struct SessionMeters<'a> {
    pub pools: &'a Pools,
    pub block: Option<&'a Arc<SessionBlock>>,
}

impl MeterSource for SessionMeters<'_> {
    fn make(&self, qer: &Qer, burst: Burst) -> [Arc<dyn Metering>; 2] {
        [Direction::Uplink, Direction::Downlink].map(|direction| {
            let meter = OneMeter(self.pools.take_meter(self.block, direction));
            meter.meter().fill(qer, direction, burst);
            Arc::new(meter) as Arc<dyn Metering>
        })
    }

    fn aggregate(&self, rate: u64, burst: Burst) -> Arc<dyn Metering> {
        let meter = OneMeter(self.pools.meters.take());
        meter.meter().fill_aggregate(rate, burst);
        Arc::new(meter)
    }

    fn counters(&self, direction: Direction) -> Arc<FlowCounters> {
        let fast = self.block.and_then(|block| block.take_flow(direction));
        Arc::new(
            fast.map_or_else(FlowCounters::default, |fast| FlowCounters::with_fast_counters(Box::new(fast))),
        )
    }
}

/// The BPF program's counter of a flow.
#[derive(Debug)]
struct OneFlow {
    flow_shares: Slot<FlowShare>,
    number: u8,
}

impl FastCounters for OneFlow {
    fn load(&self) -> FlowCount {
        let sum = |of: fn(&FlowShare) -> &Traffic| {
            let counts = self.flow_shares.iter().map(|share| of(share).load());
            counts.fold(Count::default(), |sum, (packets, bytes)| sum + Count { packets, bytes })
        };
        let (green, yellow) = (sum(|share| &share.green), sum(|share| &share.yellow));
        FlowCount {
            green,
            yellow,
            red: sum(|share| &share.red),
            dropped: sum(|share| &share.dropped),
            fast: green + yellow,
            ..FlowCount::default()
        }
    }

    fn number(&self) -> u8 {
        self.number
    }
}

/// A slot of one meter.
#[derive(Debug)]
struct OneMeter(Slot<Meter>);

impl Metering for OneMeter {
    fn meter(&self) -> &Meter {
        self.0.first().expect("a slot of a meter has one value")
    }

    fn slot(&self) -> Option<u32> {
        self.0.name()
    }
}

impl<T: Shared> Deref for Slot<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Heap(values) => values,
            Self::Shared { memory, index } => memory.values.at(*index as usize),
            Self::SessionBlock { block, values, number, .. } => values(block, *number),
        }
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        match self {
            Self::Heap(_) => {}
            Self::Shared { memory, index } => memory.free.put(*index),
            Self::SessionBlock { block, part, .. } => drop(block.taken.fetch_and(!*part, AcqRel)),
        }
    }
}
