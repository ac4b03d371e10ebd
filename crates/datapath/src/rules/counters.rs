//! Traffic and drop counters of the UPF: one set for each worker, summed when read.

use super::usage::bump;
use pith_upf::contract::{Counters, DropReason, Traffic};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One worker's counters; only that worker writes them.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct WorkerCounters {
    /// Received from tunnels.
    pub n3_in: TrafficCounter,
    /// Sent into tunnels.
    pub n3_out: TrafficCounter,
    /// Received from the data network.
    pub n6_in: TrafficCounter,
    /// Sent to the data network.
    pub n6_out: TrafficCounter,
    pub drops: Drops,
}

impl WorkerCounters {
    /// Received packets of both directions.
    pub fn packets_received(&self) -> u64 {
        self.n3_in.packets.load(Relaxed) + self.n6_in.packets.load(Relaxed)
    }
}

#[derive(Debug, Default)]
pub struct TrafficCounter {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl TrafficCounter {
    /// Counts packets and their total bytes.
    pub fn count(&self, packets: usize, bytes: usize) {
        bump(&self.packets, packets as u64);
        bump(&self.bytes, bytes as u64);
    }

    fn add_to(&self, traffic: &mut Traffic) {
        traffic.packets += self.packets.load(Relaxed);
        traffic.bytes += self.bytes.load(Relaxed);
    }
}

/// Dropped packets by reason.
#[derive(Debug, Default)]
pub struct Drops([AtomicU64; DropReason::ALL.len()]);

impl Drops {
    pub fn count(&self, reason: DropReason) {
        self.count_many(reason, 1);
    }

    pub fn count_many(&self, reason: DropReason, packets: usize) {
        if let Some(counter) = self.0.get(reason as usize) {
            // Not `bump`: the control thread's set has several writers.
            counter.fetch_add(packets as u64, Relaxed);
        }
    }

    fn of(&self, reason: DropReason) -> u64 {
        self.0.get(reason as usize).map_or(0, |counter| counter.load(Relaxed))
    }
}

/// The sum of all workers' counters and of drops elsewhere.
pub fn total<'a>(
    workers: impl Iterator<Item = &'a WorkerCounters>,
    elsewhere: &Drops,
    buffered: u64,
) -> Counters {
    let mut counters = Counters { buffered, ..Counters::default() };
    let mut dropped =
        DropReason::ALL.iter().map(|reason| (*reason, elsewhere.of(*reason))).collect::<Vec<_>>();
    for worker in workers {
        worker.n3_in.add_to(&mut counters.n3_in);
        worker.n3_out.add_to(&mut counters.n3_out);
        worker.n6_in.add_to(&mut counters.n6_in);
        worker.n6_out.add_to(&mut counters.n6_out);
        dropped.iter_mut().for_each(|(reason, count)| *count += worker.drops.of(*reason));
    }
    dropped.retain(|(_, count)| *count > 0);
    Counters { dropped, ..counters }
}
