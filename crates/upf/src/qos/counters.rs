//! Flow counters: offered, passed, coloured, queued, dropped, marked.

use super::Colour;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter of packets and bytes for several threads.
#[derive(Debug, Default)]
struct Tally {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Tally {
    fn add(&self, bytes: usize) {
        self.packets.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    fn take(&self, bytes: usize) {
        self.packets.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(bytes as u64, Relaxed);
    }

    fn load(&self) -> Count {
        Count { packets: self.packets.load(Relaxed), bytes: self.bytes.load(Relaxed) }
    }
}

/// Counters of a flow outside this process's threads: those of a BPF program.
pub trait FastCounters: Debug + Send + Sync {
    /// The current values; passed packets are in `fast`, too.
    fn load(&self) -> FlowCount;

    /// The flow's index in the program's session.
    fn number(&self) -> u8;
}

/// The counters of a flow in one direction.
#[derive(Debug, Default)]
pub struct FlowCounters {
    fast: Option<Box<dyn FastCounters>>,
    green: Tally,
    yellow: Tally,
    red: Tally,
    dropped: Tally,
    queued: Tally,
    marked: AtomicU64,
}

impl FlowCounters {
    /// Zeroed counters, to which the counters of a BPF program are added when they are read.
    pub fn with_fast_counters(fast: Box<dyn FastCounters>) -> Self {
        Self { fast: Some(fast), ..Self::default() }
    }

    /// The flow's index in a BPF program's session; `None` if the program does not count it.
    pub fn number(&self) -> Option<u8> {
        self.fast.as_ref().map(|fast| fast.number())
    }

    /// Counts a packet that passed, green or yellow.
    pub fn passed(&self, colour: Colour, bytes: usize) {
        match colour {
            Colour::Green => self.green.add(bytes),
            Colour::Yellow | Colour::Red => self.yellow.add(bytes),
        }
    }

    /// Counts a packet dropped because it exceeded the flow's peak rate.
    pub fn red(&self, bytes: usize) {
        self.red.add(bytes);
    }

    /// Counts a packet dropped for another reason.
    pub fn dropped(&self, bytes: usize) {
        self.dropped.add(bytes);
    }

    /// Counts a packet as queued.
    pub fn queued(&self, bytes: usize) {
        self.queued.add(bytes);
    }

    /// Counts a packet as no longer queued.
    pub fn left(&self, bytes: usize) {
        self.queued.take(bytes);
    }

    /// Counts a packet marked with CE.
    pub fn marked(&self) {
        self.marked.fetch_add(1, Relaxed);
    }

    /// The sum of all counters.
    pub fn load(&self) -> FlowCount {
        let fast = self.fast.as_ref().map(|fast| fast.load()).unwrap_or_default();
        FlowCount {
            green: self.green.load() + fast.green,
            yellow: self.yellow.load() + fast.yellow,
            red: self.red.load() + fast.red,
            dropped: self.dropped.load() + fast.dropped,
            queued: self.queued.load() + fast.queued,
            marked: self.marked.load(Relaxed) + fast.marked,
            fast: fast.fast,
        }
    }
}

/// Packets and bytes of inner packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl std::ops::Add for Count {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

/// The counters of a flow, from the first PDR with the flow's QERs to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowCount {
    /// Passed within the guaranteed rate.
    pub green: Count,
    /// Passed above the guaranteed rate.
    pub yellow: Count,
    /// Dropped, above the flow's maximum rate.
    pub red: Count,
    /// Dropped by other rates or delay.
    pub dropped: Count,
    /// Currently queued.
    pub queued: Count,
    /// Packets marked by ECN.
    pub marked: u64,
    /// Passed packets that a BPF program forwarded without user space.
    pub fast: Count,
}

impl FlowCount {
    /// All passed packets.
    pub fn passed(&self) -> Count {
        self.green + self.yellow
    }

    /// All received packets: each passed, was dropped, or is queued.
    pub fn offered(&self) -> Count {
        self.passed() + self.red + self.dropped + self.queued
    }
}
