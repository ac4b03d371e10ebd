//! Where meters and counters live: on the heap, or, where a BPF program shares them, in its maps.

use crate::sys::MapMemory;
use crate::sys::layout::{Limits, Place, Shared};
use pith_upf::contract::{Direction, Qer};
use pith_upf::qos::{Burst, Meter, MeterSource, Metering};
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The pools of a datapath.
#[derive(Debug)]
pub struct Pools {
    /// A QER's meters, one for each direction.
    pub meters: MeterPool,
    /// Places of a URR: those of CPUs, then those of workers.
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
            meters: MeterPool(Pool::on_heap(1)),
            places: Pool::on_heap(workers),
            limits: Pool::on_heap(1),
            first_worker: 0,
        }
    }
}

/// Gives out slots of so many values each, all as they are by default.
#[derive(Debug)]
pub struct Pool<T> {
    width: usize,
    shared: Option<Arc<Memory<T>>>,
}

#[derive(Debug)]
struct Memory<T> {
    values: MapMemory<T>,
    free: Mutex<Vec<u32>>,
}

impl<T: Shared> Pool<T> {
    /// Slots on the heap.
    pub fn on_heap(width: usize) -> Self {
        Self { width, shared: None }
    }

    /// Slots in shared memory, and on the heap once that is used up.
    pub fn in_map(width: usize, values: MapMemory<T>) -> Self {
        let slots = (values.len() / width.max(1)) as u32;
        let free = Mutex::new((0..slots).rev().collect());
        Self { width, shared: Some(Arc::new(Memory { values, free })) }
    }

    /// A free slot.
    pub fn take(&self) -> Slot<T> {
        let shared = self.shared.as_ref().and_then(|memory| {
            let index = memory.free().pop()?;
            Some(Slot::Shared { memory: Arc::clone(memory), index, width: self.width })
        });
        shared.unwrap_or_else(|| Slot::Heap((0..self.width).map(|_| T::default()).collect()))
    }
}

impl<T> Memory<T> {
    fn free(&self) -> MutexGuard<'_, Vec<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Values of one meter or counter, until it is dropped. What the last user of a shared slot left behind is
/// the next one's to overwrite.
#[derive(Debug)]
pub enum Slot<T> {
    /// Of this process alone.
    Heap(Box<[T]>),
    /// Known to the BPF program.
    #[allow(private_interfaces)]
    Shared {
        /// Where.
        memory: Arc<Memory<T>>,
        /// By which index.
        index: u32,
        /// How many values.
        width: usize,
    },
}

impl<T> Slot<T> {
    /// The index that the BPF program knows it by.
    pub fn index(&self) -> Option<u32> {
        match self {
            Self::Heap(_) => None,
            Self::Shared { index, .. } => Some(*index),
        }
    }
}

/// Where meters lie.
#[derive(Debug)]
pub struct MeterPool(pub Pool<Meter>);

impl MeterSource for MeterPool {
    fn make(&self, qer: &Qer, burst: Burst) -> [Arc<dyn Metering>; 2] {
        [Direction::Uplink, Direction::Downlink].map(|direction| {
            let meter = OneMeter(self.0.take());
            meter.meter().fill(qer, direction, burst);
            Arc::new(meter) as Arc<dyn Metering>
        })
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
        self.0.index()
    }
}

impl<T: Shared> Deref for Slot<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Heap(values) => values,
            Self::Shared { memory, index, width } => {
                let first = *index as usize * width;
                memory.values.values().get(first..first + width).unwrap_or_default()
            }
        }
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        if let Self::Shared { memory, index, .. } = self {
            memory.free().push(*index);
        }
    }
}
