//! Counters of URRs. Without a BPF program there is one for each worker, summed when read: only its worker writes it, so counting
//! needs neither a lock nor a locked instruction. With one, the program's CPUs and the workers add to one counter: a quota is
//! compared with one number, and its memory does not depend on their number (ADR 0025).

use super::Now;
use super::pool::{Pools, SessionBlock, Slot, UrrSlot, Writers};
use crate::sys::layout::{Bounds, Limits, NO_LIMIT, REPORTED_QUOTA, REPORTED_THRESHOLD, UrrHalf};
use pith_upf::contract::{Direction, SessionId, Urr, UrrId, UrrUsage, Volume, VolumeLimits};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The index of a worker, below the number that counters were made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worker(pub usize);

/// The counter of one URR.
#[derive(Debug)]
pub struct UrrCounter {
    id: UrrId,
    slot: UrrSlot,
}

impl UrrCounter {
    /// A zeroed counter; in the session's block, if it has one with a free counter.
    pub fn new(id: UrrId, pools: &Pools, block: Option<&Arc<SessionBlock>>) -> Self {
        let slot = pools.take_urr(block);
        slot.values().flatten().for_each(clear);
        Self { id, slot }
    }

    /// The index by which a BPF program knows it.
    pub fn slot(&self) -> Option<u32> {
        self.slot.name()
    }

    /// What a worker writes for a packet of that direction.
    pub fn of_worker(&self, worker: Worker, direction: Direction) -> Option<&UrrHalf> {
        self.slot.of_worker(worker.0, direction).map(|(half, _)| half)
    }

    pub fn count(&self, worker: Worker, direction: Direction, bytes: usize, now: Now) {
        let Some((half, writers)) = self.slot.of_worker(worker.0, direction) else { return };
        let UrrHalf { volume, first, last } = half;
        for (counter, by) in [(&volume.bytes, bytes as u64), (&volume.packets, 1)] {
            match writers {
                Writers::One => bump(counter, by),
                Writers::Many => drop(counter.fetch_add(by, Relaxed)),
            }
        }
        if first.load(Relaxed) == 0 {
            first.store(now.0, Relaxed);
        }
        last.store(now.0, Relaxed);
    }

    /// Adds what another datapath has counted.
    pub fn add(&self, usage: &UrrUsage, now: Now) {
        // On the heap, no worker writes the last value.
        let Some([up, down]) = self.slot.values().last() else { return };
        let Volume { uplink, downlink, uplink_packets, downlink_packets } = usage.volume;
        for (half, packets, bytes) in [(up, uplink_packets, uplink), (down, downlink_packets, downlink)] {
            half.volume.packets.fetch_add(packets, Relaxed);
            half.volume.bytes.fetch_add(bytes, Relaxed);
        }
        if let Some(first) = usage.first_packet.map(|age| now.before(age)) {
            let earliest = |known: u64| if known == 0 { first } else { known.min(first) };
            // The closure always returns `Some`.
            let _ = up.first.fetch_update(Relaxed, Relaxed, |known| Some(earliest(known)));
        }
        if let Some(last) = usage.last_packet.map(|age| now.before(age)) {
            up.last.fetch_max(last, Relaxed);
        }
    }

    /// The volume of all workers, and of a BPF program.
    pub fn volume(&self) -> Volume {
        self.slot.values().fold(Volume::default(), |mut volume, halves| {
            for (direction, half) in [Direction::Uplink, Direction::Downlink].into_iter().zip(halves) {
                let (packets, bytes) = half.volume.load();
                volume.add(direction, packets, bytes);
            }
            volume
        })
    }

    /// Volume and times, for UPF-C.
    pub fn usage(&self, now: Now) -> UrrUsage {
        let times = |of: fn(&UrrHalf) -> &AtomicU64| {
            self.slot.values().flatten().map(move |half| of(half).load(Relaxed))
        };
        let first = times(|half| &half.first).filter(|time| *time != 0).min().unwrap_or(0);
        let last = times(|half| &half.last).max().unwrap_or(0);
        UrrUsage {
            id: self.id,
            volume: self.volume(),
            first_packet: now.since(first),
            last_packet: now.since(last),
        }
    }
}

/// Adds to a counter with a single writer.
pub fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
}

fn clear(half: &UrrHalf) {
    let UrrHalf { volume, first, last } = half;
    volume.clear();
    first.store(0, Relaxed);
    last.store(0, Relaxed);
}

/// A URR of a session: counters that outlive a change of rules, limits that may change, and whether these
/// were reported.
#[derive(Debug)]
pub struct UrrUse {
    pub urr: Urr,
    pub counter: Arc<UrrCounter>,
    /// `None` if it has no limits.
    limits: Option<Slot<Limits>>,
}

impl UrrUse {
    /// With limits that were not reported yet.
    pub fn new(session: SessionId, urr: Urr, counter: Arc<UrrCounter>, pools: &Pools) -> Self {
        let bounded = !(urr.threshold.is_none() && urr.quota.is_none());
        let limits = bounded.then(|| {
            let slot = pools.limits.take();
            slot.iter().for_each(|limits| write_limits(limits, session, &urr));
            slot
        });
        Self { urr, counter, limits }
    }

    /// The slot of its limits in a BPF program; `None` if it has none.
    pub fn limits_slot(&self) -> Option<Option<u32>> {
        self.limits.as_ref().map(Slot::<Limits>::name)
    }

    /// Whether the quota is exhausted.
    pub fn exhausted(&self) -> bool {
        self.limits.is_some() && self.urr.quota.reached_by(&self.counter.volume())
    }

    /// The volume, once when it reaches the threshold and once when it reaches the quota.
    pub fn newly_reached(&self) -> Option<Volume> {
        let reported = &self.limits.as_ref()?.first()?.reported;
        if reported.load(Relaxed) == REPORTED_THRESHOLD | REPORTED_QUOTA {
            return None;
        }
        let volume = self.counter.volume();
        let reached = |limits: &VolumeLimits, bit| if limits.reached_by(&volume) { bit } else { 0 };
        // A packet that reaches both marks both as reported.
        let news =
            reached(&self.urr.threshold, REPORTED_THRESHOLD) | reached(&self.urr.quota, REPORTED_QUOTA);
        (news & !reported.fetch_or(news, Relaxed) != 0).then_some(volume)
    }
}

fn write_limits(limits: &Limits, session: SessionId, urr: &Urr) {
    write_bounds(&limits.threshold, &urr.threshold);
    write_bounds(&limits.quota, &urr.quota);
    limits.session.store(session.0, Relaxed);
    limits.urr.store(urr.id.0, Relaxed);
    limits.reported.store(0, Relaxed);
}

fn write_bounds(bounds: &Bounds, limits: &VolumeLimits) {
    let all =
        [(&bounds.total, limits.total), (&bounds.uplink, limits.uplink), (&bounds.downlink, limits.downlink)];
    for (bound, limit) in all {
        bound.store(limit.unwrap_or(NO_LIMIT), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn workers_add_up_and_times_are_the_outermost() {
        let counter = UrrCounter::new(UrrId(3), &Pools::on_heap(2), None);
        counter.count(Worker(0), Direction::Uplink, 100, Now(1_000));
        counter.count(Worker(1), Direction::Uplink, 50, Now(500));
        counter.count(Worker(1), Direction::Downlink, 7, Now(3_000));
        let usage = counter.usage(Now(10_000));
        let expected = Volume { uplink: 150, downlink: 7, uplink_packets: 2, downlink_packets: 1 };
        assert_eq!((usage.id, usage.volume), (UrrId(3), expected));
        assert_eq!(usage.first_packet, Some(Duration::from_nanos(9_500)));
        assert_eq!(usage.last_packet, Some(Duration::from_nanos(7_000)));
    }

    #[test]
    fn usage_of_another_datapath_is_added() {
        let counter = UrrCounter::new(UrrId(3), &Pools::on_heap(1), None);
        counter.count(Worker(0), Direction::Uplink, 100, Now(5_000));
        let volume = Volume { uplink: 1, downlink: 2, uplink_packets: 3, downlink_packets: 4 };
        let ages = |first, last| (Some(Duration::from_nanos(first)), Some(Duration::from_nanos(last)));
        let (first_packet, last_packet) = ages(9_000, 7_000);
        let more = UrrUsage { id: UrrId(3), volume, first_packet, last_packet };
        counter.add(&more, Now(10_000));
        counter.count(Worker(0), Direction::Uplink, 100, Now(11_000));
        let usage = counter.usage(Now(12_000));
        let total = Volume { uplink: 201, downlink: 2, uplink_packets: 5, downlink_packets: 4 };
        assert_eq!(usage.volume, total);
        assert_eq!((usage.first_packet, usage.last_packet), ages(11_000, 1_000));
    }

    #[test]
    fn threshold_and_quota_are_reported_once_and_a_quota_stays_exhausted() {
        let total = |total| VolumeLimits { total: Some(total), ..VolumeLimits::default() };
        let urr = Urr { id: UrrId(1), threshold: total(100), quota: total(200) };
        let pools = Pools::on_heap(1);
        let counter = Arc::new(UrrCounter::new(UrrId(1), &pools, None));
        let used = UrrUse::new(SessionId(1), urr, counter, &pools);
        let count = |bytes| used.counter.count(Worker(0), Direction::Downlink, bytes, Now(1));
        count(99);
        assert_eq!(used.newly_reached(), None);
        count(1);
        assert_eq!(used.newly_reached().map(|volume| volume.downlink), Some(100));
        assert_eq!(used.newly_reached(), None);
        assert!(!used.exhausted());
        count(100);
        assert!(used.exhausted());
        assert_eq!(used.newly_reached().map(|volume| volume.downlink), Some(200));
        assert_eq!(used.newly_reached(), None);
    }
}
