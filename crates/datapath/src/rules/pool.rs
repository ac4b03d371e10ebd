//! Where meters and counters live: on the heap, or, where a BPF program shares them, in its maps. There a
//! session has a block of its own, with what most sessions need; what is more comes from pools.

use crate::sys::MapMemory;
use crate::sys::layout::{HOME, HOME_METERS, Limits, Place, Shared};
use pith_upf::contract::{Direction, Qer};
use pith_upf::qos::{Burst, Meter, MeterSource, Metering};
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering::AcqRel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The pools of a datapath.
#[derive(Debug)]
pub struct Pools {
    /// Blocks of sessions.
    pub homes: Homes,
    /// Meters, beyond those of blocks.
    pub meters: Pool<Meter>,
    /// Places of a URR: those of CPUs, then those of workers; beyond those of blocks.
    pub places: Pool<Place>,
    /// Limits of URRs that have some.
    pub limits: Pool<Limits>,
    /// The first worker's place.
    pub first_worker: usize,
}

impl Pools {
    /// On the heap, for so many workers.
    pub fn on_heap(workers: usize) -> Self {
        Self {
            homes: Homes::default(),
            meters: Pool::on_heap(1),
            places: Pool::on_heap(workers),
            limits: Pool::on_heap(1),
            first_worker: 0,
        }
    }

    /// Places for a URR of a session.
    pub fn take_places(&self, home: Option<&Arc<Home>>) -> Slot<Place> {
        let at_home = home.and_then(|home| home.take(PLACES, |home| home.memory.places.at(home.at()), 0));
        at_home.unwrap_or_else(|| self.places.take())
    }

    fn take_meter(&self, home: Option<&Arc<Home>>, direction: Direction) -> Slot<Meter> {
        let at_home = home.and_then(|home| match direction {
            Direction::Uplink => home.take(UPLINK_METER, |home| home.meter(0), 0),
            Direction::Downlink => home.take(DOWNLINK_METER, |home| home.meter(1), 1),
        });
        at_home.unwrap_or_else(|| self.meters.take())
    }
}

/// Gives out slots of so many values each, all as they are by default.
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
    /// Slots on the heap.
    pub fn on_heap(width: usize) -> Self {
        Self { width, shared: None }
    }

    /// Slots in shared memory, and on the heap once that is used up.
    pub fn in_map(width: usize, values: MapMemory<T>) -> Self {
        let free = Free::below(values.len() as u32);
        Self { width, shared: Some(Arc::new(Memory { values, free })) }
    }

    /// A free slot.
    pub fn take(&self) -> Slot<T> {
        let shared = self.shared.as_ref().and_then(|memory| {
            let index = memory.free.take()?;
            Some(Slot::Shared { memory: Arc::clone(memory), index })
        });
        shared.unwrap_or_else(|| Slot::Heap((0..self.width).map(|_| T::default()).collect()))
    }
}

/// Indices that are free.
#[derive(Debug)]
struct Free(Mutex<Vec<u32>>);

impl Free {
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

/// The blocks that a BPF program has for sessions; none by default.
#[derive(Debug, Default)]
pub struct Homes(Option<Arc<Blocks>>);

#[derive(Debug)]
struct Blocks {
    meters: MapMemory<Meter>,
    places: MapMemory<Place>,
    free: Free,
}

/// A session's block, until nobody uses any of it any more.
#[derive(Debug)]
pub struct Home {
    memory: Arc<Blocks>,
    index: u32,
    /// Which of its parts are in use.
    taken: AtomicU32,
}

const UPLINK_METER: u32 = 1;
const DOWNLINK_METER: u32 = 2;
const PLACES: u32 = 4;

impl Homes {
    /// The first `count` blocks of a table, of which these are the meters and the places.
    pub fn in_map(meters: MapMemory<Meter>, places: MapMemory<Place>, count: u32) -> Self {
        Self(Some(Arc::new(Blocks { meters, places, free: Free::below(count) })))
    }

    /// A free block.
    pub fn take(&self) -> Option<Arc<Home>> {
        let memory = self.0.as_ref()?;
        let index = memory.free.take()?;
        Some(Arc::new(Home { memory: Arc::clone(memory), index, taken: AtomicU32::new(0) }))
    }
}

impl Home {
    /// The session's slot.
    pub fn index(&self) -> u32 {
        self.index
    }

    fn at(&self) -> usize {
        self.index as usize
    }

    fn meter(&self, number: usize) -> &[Meter] {
        self.memory.meters.at(self.at()).get(number..=number).unwrap_or_default()
    }

    /// A part, unless somebody has it.
    fn take<T>(self: &Arc<Self>, part: u32, values: fn(&Home) -> &[T], number: u32) -> Option<Slot<T>> {
        let free = self.taken.fetch_or(part, AcqRel) & part == 0;
        free.then(|| Slot::Home { home: Arc::clone(self), part, values, number })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.memory.free.put(self.index);
    }
}

/// Values of one meter or counter, until it is dropped. What the last user of a shared slot left behind is
/// the next one's to overwrite.
#[derive(Debug)]
pub enum Slot<T> {
    /// Of this process alone.
    Heap(Box<[T]>),
    /// Known to the BPF program, in a table of such values.
    #[allow(private_interfaces)]
    Shared {
        /// Where.
        memory: Arc<Memory<T>>,
        /// By which index.
        index: u32,
    },
    /// In the session's block.
    Home {
        /// The block.
        home: Arc<Home>,
        /// Which part.
        part: u32,
        /// Its values.
        values: fn(&Home) -> &[T],
        /// Which of the values of its kind.
        number: u32,
    },
}

impl Slot<Meter> {
    /// The name that the BPF program knows it by.
    pub fn name(&self) -> Option<u32> {
        self.name_of(HOME_METERS as u32)
    }
}

impl Slot<Place> {
    /// The name that the BPF program knows it by.
    pub fn name(&self) -> Option<u32> {
        self.name_of(1)
    }
}

impl Slot<Limits> {
    /// The name that the BPF program knows it by.
    pub fn name(&self) -> Option<u32> {
        self.name_of(0)
    }
}

impl<T> Slot<T> {
    /// The name, where a block has so many of the kind.
    fn name_of(&self, in_block: u32) -> Option<u32> {
        match self {
            Self::Heap(_) => None,
            Self::Shared { index, .. } => Some(*index),
            Self::Home { home, number, .. } => Some(HOME | (home.index * in_block + number)),
        }
    }
}

/// Makes the meters of a session.
#[derive(Debug)]
pub struct SessionMeters<'a> {
    /// Where from.
    pub pools: &'a Pools,
    /// The session's block.
    pub home: Option<&'a Arc<Home>>,
}

impl MeterSource for SessionMeters<'_> {
    fn make(&self, qer: &Qer, burst: Burst) -> [Arc<dyn Metering>; 2] {
        [Direction::Uplink, Direction::Downlink].map(|direction| {
            let meter = OneMeter(self.pools.take_meter(self.home, direction));
            meter.meter().fill(qer, direction, burst);
            Arc::new(meter) as Arc<dyn Metering>
        })
    }

    fn aggregate(&self, rate: u64, burst: Burst) -> Arc<dyn Metering> {
        let meter = OneMeter(self.pools.meters.take());
        meter.meter().fill_aggregate(rate, burst);
        Arc::new(meter)
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
            Self::Home { home, values, .. } => values(home),
        }
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        match self {
            Self::Heap(_) => {}
            Self::Shared { memory, index } => memory.free.put(*index),
            Self::Home { home, part, .. } => drop(home.taken.fetch_and(!*part, AcqRel)),
        }
    }
}
