//! Memory of meters and counters: on the heap, or, if a BPF program uses them too, in the program's maps.
//!
//! - A **session block** is a session's entry in a map, with room for the meters and counters that most sessions need.
//! - A **pool** is a map of meters or counters of one kind, for those that do not fit into a session block. If a pool is
//!   exhausted, its slots are on the heap, and the BPF program leaves their packets to the portable path.
//!
//! A counter that a BPF program shares is one value, to which CPUs and workers add by atomic instructions: its memory does not
//! depend on their number. On the heap a URR has a value for each worker, which only that worker writes, and one for usage that
//! another datapath has counted.

use crate::sys::MapMemory;
use crate::sys::layout::{
    BLOCK_FLOWS, BLOCK_METERS, FlowCell, IN_BLOCK, Limits, Passed, Refused, SESSION_FLOWS, Shared, Tally,
    Traffic, UrrHalf, UrrHalves,
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
    /// URR counters that do not fit into session blocks.
    pub urrs: Pool<UrrHalves>,
    /// Limits of URRs.
    pub limits: Pool<Limits>,
    /// The number of the first worker among CPUs and workers, which take turns in ids of outer headers.
    pub first_sender: usize,
}

impl Pools {
    /// Pools on the heap, without session blocks, for this number of workers.
    pub fn on_heap(workers: usize) -> Self {
        Self {
            session_blocks: BlockPool::default(),
            meters: Pool::on_heap(1),
            // And one for usage of another datapath.
            urrs: Pool::on_heap(workers + 1),
            limits: Pool::on_heap(1),
            first_sender: 0,
        }
    }

    /// Allocates a URR counter: in the session's block if it is free there, otherwise in the pool.
    pub fn take_urr(&self, block: Option<&Arc<SessionBlock>>) -> UrrSlot {
        let in_block = block.and_then(|block| block.take(URR, SessionBlock::tallies, 0));
        in_block.map_or_else(|| UrrSlot::InPool(self.urrs.take()), UrrSlot::InBlock)
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
    /// A URR's counter, and what passed of the first [`BLOCK_FLOWS`] flows: uplink, downlink.
    pub tallies: MapMemory<Tally>,
    /// The other counters of these flows.
    pub refused: MapMemory<Refused>,
    /// Groups of counters for the other flows of a session. A group is not part of a block; it is allocated to a block when the
    /// session needs it.
    pub groups: MapMemory<FlowCell>,
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
const URR: u32 = 4;
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

    fn tallies(&self, _: u32) -> &[Tally] {
        self.memory.blocks.tallies.at(self.entry())
    }

    /// The counters of a flow: in the block, or in its group.
    fn flow(&self, number: usize) -> Option<(&Passed, &Refused)> {
        let BlockValues { tallies, refused, groups, .. } = &self.memory.blocks;
        if let Some(index) = number.checked_sub(BLOCK_FLOWS) {
            let cell = groups.at(self.flow_group()? as usize).get(index)?;
            return Some((&cell.passed, &cell.refused));
        }
        Some((&tallies.at(self.entry()).get(number)?.passed, refused.at(self.entry()).get(number)?))
    }

    /// Allocates the counter of a flow and sets it to zero: the counter of its direction in the block if that is free,
    /// otherwise one of the group.
    fn take_flow(self: &Arc<Self>, direction: Direction) -> Option<OneFlow> {
        let in_group = BLOCK_FLOWS as u8..SESSION_FLOWS as u8;
        std::iter::once(direction as u8).chain(in_group).find_map(|number| {
            (usize::from(number) < BLOCK_FLOWS || self.ensure_group()).then_some(())?;
            let flow = OneFlow { part: self.take_part(FLOW << number)?, number };
            let (passed, refused) = flow.counters()?;
            for traffic in [&passed.yellow, &passed.green, &refused.red, &refused.dropped] {
                traffic.clear();
            }
            Some(flow)
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
        let part = self.take_part(part)?;
        Some(Slot::SessionBlock { part, values, number })
    }

    fn take_part(self: &Arc<Self>, part: u32) -> Option<Part> {
        let was_free = self.taken.fetch_or(part, AcqRel) & part == 0;
        was_free.then(|| Part { block: Arc::clone(self), part })
    }
}

/// A part of a block in use, free again when dropped.
#[derive(Debug)]
pub(crate) struct Part {
    block: Arc<SessionBlock>,
    /// Its bit.
    part: u32,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.block.taken.fetch_and(!self.part, AcqRel);
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
    #[allow(private_interfaces)]
    SessionBlock {
        part: Part,
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

/// The memory of a URR's counter.
#[derive(Debug)]
pub enum UrrSlot {
    /// In the session's block: the URR part of the tally of each direction.
    InBlock(Slot<Tally>),
    /// In the pool: one value, or on the heap a value for each worker.
    InPool(Slot<UrrHalves>),
}

impl UrrSlot {
    /// The index by which the BPF program knows the slot; `None` if the slot is on the heap.
    pub fn name(&self) -> Option<u32> {
        match self {
            Self::InBlock(slot) => slot.name_of(1),
            Self::InPool(slot) => slot.name_of(1),
        }
    }

    /// Its values, each uplink and downlink; the sum is the counter's.
    pub fn values(&self) -> impl Iterator<Item = [&UrrHalf; 2]> {
        let (in_block, in_pool) = match self {
            Self::InBlock(slot) => (&**slot, &[][..]),
            Self::InPool(slot) => (&[][..], &**slot),
        };
        let in_block = in_block.first_chunk().map(|[up, down]| [&up.urr, &down.urr]);
        in_block.into_iter().chain(in_pool.iter().map(|UrrHalves([up, down])| [up, down]))
    }

    /// The value that a worker adds to, and whether others do so, too.
    pub fn of_worker(&self, worker: usize, direction: Direction) -> Option<(&UrrHalf, Writers)> {
        match self {
            Self::InBlock(slot) => Some((&slot.get(direction as usize)?.urr, Writers::Many)),
            Self::InPool(slot) => {
                let (at, writers) = if slot.len() == 1 { (0, Writers::Many) } else { (worker, Writers::One) };
                Some((slot.get(at)?.0.get(direction as usize)?, writers))
            }
        }
    }
}

/// How many threads and CPUs add to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    One,
    Many,
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
            Self::SessionBlock { part, number, .. } => {
                Some(IN_BLOCK | (part.block.index * per_block + number))
            }
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
    part: Part,
    number: u8,
}

impl OneFlow {
    fn counters(&self) -> Option<(&Passed, &Refused)> {
        self.part.block.flow(self.number.into())
    }
}

impl FastCounters for OneFlow {
    fn load(&self) -> FlowCount {
        let Some((passed, refused)) = self.counters() else { return FlowCount::default() };
        let count = |traffic: &Traffic| {
            let (packets, bytes) = traffic.load();
            Count { packets, bytes }
        };
        let (green, yellow) = (count(&passed.green), count(&passed.yellow));
        FlowCount {
            green,
            yellow,
            red: count(&refused.red),
            dropped: count(&refused.dropped),
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
            Self::SessionBlock { part, values, number } => values(&part.block, *number),
        }
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        match self {
            // A part of a block frees itself.
            Self::Heap(_) | Self::SessionBlock { .. } => {}
            Self::Shared { memory, index } => memory.free.put(*index),
        }
    }
}
