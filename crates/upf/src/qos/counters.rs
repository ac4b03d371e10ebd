//! The live proof of what a flow was given: offered, passed, coloured, queued, dropped, marked.

use super::Colour;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Packets and bytes that several threads count.
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

/// What others than this process's threads count of a flow: a BPF program.
pub trait FastCounters: Debug + Send + Sync {
    /// What they say now; what passed is `fast` as well.
    fn load(&self) -> FlowCount;

    /// The number by which the program knows the flow in its session.
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
    /// Beside those of a BPF program.
    pub fn beside(fast: Box<dyn FastCounters>) -> Self {
        Self { fast: Some(fast), ..Self::default() }
    }

    /// The number by which a BPF program knows the flow in its session; `None` if it counts nothing of it.
    pub fn number(&self) -> Option<u8> {
        self.fast.as_ref().map(|fast| fast.number())
    }

    /// A packet passed, green or yellow.
    pub fn passed(&self, colour: Colour, bytes: usize) {
        match colour {
            Colour::Green => self.green.add(bytes),
            Colour::Yellow | Colour::Red => self.yellow.add(bytes),
        }
    }

    /// A packet was dropped since it exceeded the flow's peak rate.
    pub fn red(&self, bytes: usize) {
        self.red.add(bytes);
    }

    /// A packet was dropped for another reason.
    pub fn dropped(&self, bytes: usize) {
        self.dropped.add(bytes);
    }

    /// A packet waits from now on.
    pub fn queued(&self, bytes: usize) {
        self.queued.add(bytes);
    }

    /// A packet waits no longer.
    pub fn left(&self, bytes: usize) {
        self.queued.take(bytes);
    }

    /// A packet was marked as having met congestion.
    pub fn marked(&self) {
        self.marked.fetch_add(1, Relaxed);
    }

    /// What all say now.
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

/// What a flow was given since its session began, while some PDR names the flow's QERs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowCount {
    /// Passed within the guaranteed rate.
    pub green: Count,
    /// Passed above it.
    pub yellow: Count,
    /// Dropped, above the flow's maximum rate.
    pub red: Count,
    /// Dropped for other reasons: the session's rate, its share of it, delay.
    pub dropped: Count,
    /// Waiting now.
    pub queued: Count,
    /// Packets marked by ECN.
    pub marked: u64,
    /// Of what passed, what a BPF program forwarded past user space.
    pub fast: Count,
}

impl FlowCount {
    /// What passed.
    pub fn passed(&self) -> Count {
        self.green + self.yellow
    }

    /// What came: each packet of it passed, was dropped, or waits.
    pub fn offered(&self) -> Count {
        self.passed() + self.red + self.dropped + self.queued
    }
}
