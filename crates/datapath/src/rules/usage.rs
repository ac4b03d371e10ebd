//! Counters of URRs: one for each worker, summed when read. Only its worker writes a counter, so counting
//! needs neither a lock nor a locked instruction.

use super::Now;
use super::pool::{Pools, SessionBlock, Slot};
use crate::sys::layout::{Bounds, Limits, NO_LIMIT, REPORTED_QUOTA, REPORTED_THRESHOLD, UrrShare};
use pith_upf::contract::{Direction, SessionId, Urr, UrrId, UrrUsage, Volume, VolumeLimits};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The index of a worker, below the number that counters were made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worker(pub usize);

/// The counters of one URR: one for each CPU, if a BPF program counts too, and one for each worker.
#[derive(Debug)]
pub struct UrrCounter {
    id: UrrId,
    urr_shares: Slot<UrrShare>,
    first_worker: usize,
}

impl UrrCounter {
    /// Zeroed counters; in the session's block, if it has one with free counters.
    pub fn new(id: UrrId, pools: &Pools, block: Option<&Arc<SessionBlock>>) -> Self {
        let urr_shares = pools.take_urr_shares(block);
        urr_shares.iter().for_each(clear);
        Self { id, urr_shares, first_worker: pools.first_worker }
    }

    /// The index by which a BPF program knows it.
    pub fn slot(&self) -> Option<u32> {
        self.urr_shares.name()
    }

    /// The counter of a worker.
    pub fn urr_share(&self, worker: Worker) -> Option<&UrrShare> {
        self.urr_shares.get(self.first_worker + worker.0)
    }

    pub fn count(&self, worker: Worker, direction: Direction, bytes: usize, now: Now) {
        let Some(urr_share) = self.urr_share(worker) else { return };
        let (volume, packets) = match direction {
            Direction::Uplink => (&urr_share.uplink, &urr_share.uplink_packets),
            Direction::Downlink => (&urr_share.downlink, &urr_share.downlink_packets),
        };
        bump(volume, bytes as u64);
        bump(packets, 1);
        if urr_share.first.load(Relaxed) == 0 {
            urr_share.first.store(now.0, Relaxed);
        }
        urr_share.last.store(now.0, Relaxed);
    }

    /// The sum over all workers.
    pub fn volume(&self) -> Volume {
        self.urr_shares.iter().fold(Volume::default(), |mut volume, urr_share| {
            let load = |counter: &AtomicU64| counter.load(Relaxed);
            volume.add(Direction::Uplink, load(&urr_share.uplink_packets), load(&urr_share.uplink));
            volume.add(Direction::Downlink, load(&urr_share.downlink_packets), load(&urr_share.downlink));
            volume
        })
    }

    /// Volume and times, for UPF-C.
    pub fn usage(&self, now: Now) -> UrrUsage {
        let times = |of: fn(&UrrShare) -> &AtomicU64| {
            self.urr_shares.iter().map(move |urr_share| of(urr_share).load(Relaxed))
        };
        let first = times(|urr_share| &urr_share.first).filter(|time| *time != 0).min().unwrap_or(0);
        let last = times(|urr_share| &urr_share.last).max().unwrap_or(0);
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

fn clear(urr_share: &UrrShare) {
    let UrrShare { uplink, downlink, uplink_packets, downlink_packets, first, last } = urr_share;
    for counter in [uplink, downlink, uplink_packets, downlink_packets, first, last] {
        counter.store(0, Relaxed);
    }
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
