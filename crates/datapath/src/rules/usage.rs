//! Counters of URRs: a place for each worker, summed when read. Nobody but its worker writes a place,
//! so counting needs neither lock nor locked instruction, and no byte is lost or doubled.

use super::Now;
use pith_upf::contract::{Direction, Urr, UrrId, UrrUsage, Volume, VolumeLimits};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Which worker counts; an index below the number that counters were made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worker(pub usize);

/// The counters of one URR.
#[derive(Debug)]
pub struct UrrCounter {
    id: UrrId,
    places: Box<[Place]>,
}

/// A cache line, so that workers don't share one.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Place {
    uplink: AtomicU64,
    downlink: AtomicU64,
    uplink_packets: AtomicU64,
    downlink_packets: AtomicU64,
    first: AtomicU64,
    last: AtomicU64,
}

impl UrrCounter {
    /// All zero, for so many workers.
    pub fn new(id: UrrId, workers: usize) -> Self {
        Self { id, places: (0..workers).map(|_| Place::default()).collect() }
    }

    /// Counts a packet.
    pub fn count(&self, worker: Worker, direction: Direction, bytes: usize, now: Now) {
        let Some(place) = self.places.get(worker.0) else { return };
        let (volume, packets) = match direction {
            Direction::Uplink => (&place.uplink, &place.uplink_packets),
            Direction::Downlink => (&place.downlink, &place.downlink_packets),
        };
        bump(volume, bytes as u64);
        bump(packets, 1);
        if place.first.load(Relaxed) == 0 {
            place.first.store(now.0, Relaxed);
        }
        place.last.store(now.0, Relaxed);
    }

    /// What all workers have counted.
    pub fn volume(&self) -> Volume {
        self.places.iter().fold(Volume::default(), |mut volume, place| {
            let load = |counter: &AtomicU64| counter.load(Relaxed);
            volume.add(Direction::Uplink, load(&place.uplink_packets), load(&place.uplink));
            volume.add(Direction::Downlink, load(&place.downlink_packets), load(&place.downlink));
            volume
        })
    }

    /// Volume and times, for UPF-C.
    pub fn usage(&self, now: Now) -> UrrUsage {
        let times =
            |of: fn(&Place) -> &AtomicU64| self.places.iter().map(move |place| of(place).load(Relaxed));
        let first = times(|place| &place.first).filter(|time| *time != 0).min().unwrap_or(0);
        let last = times(|place| &place.last).max().unwrap_or(0);
        UrrUsage {
            id: self.id,
            volume: self.volume(),
            first_packet: now.since(first),
            last_packet: now.since(last),
        }
    }
}

/// Adds to a counter that nobody else writes.
pub fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
}

/// A URR as a session has it now: counters that stay, limits that may change, and whether these have
/// been told of.
#[derive(Debug)]
pub struct UrrUse {
    /// The rule.
    pub urr: Urr,
    /// Its counters.
    pub counter: Arc<UrrCounter>,
    bounded: bool,
    threshold_told: AtomicBool,
    quota_told: AtomicBool,
}

impl UrrUse {
    /// With limits of which nothing has been told.
    pub fn new(urr: Urr, counter: Arc<UrrCounter>) -> Self {
        let bounded = !(urr.threshold.is_none() && urr.quota.is_none());
        let untold = || AtomicBool::new(false);
        Self { urr, counter, bounded, threshold_told: untold(), quota_told: untold() }
    }

    /// Whether the quota is used up.
    pub fn exhausted(&self) -> bool {
        self.bounded && self.urr.quota.reached_by(&self.counter.volume())
    }

    /// The volume, the first time that it has come up to the threshold, and to the quota.
    pub fn newly_reached(&self) -> Option<Volume> {
        if !self.bounded || (self.threshold_told.load(Relaxed) && self.quota_told.load(Relaxed)) {
            return None;
        }
        let volume = self.counter.volume();
        let limits = [(&self.urr.threshold, &self.threshold_told), (&self.urr.quota, &self.quota_told)];
        let newly = |(limits, told): (&VolumeLimits, &AtomicBool)| {
            limits.reached_by(&volume) && !told.swap(true, Relaxed)
        };
        // Both are marked as told where both are reached by one packet.
        let news = limits.map(newly);
        news.contains(&true).then_some(volume)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn workers_add_up_and_times_are_the_outermost() {
        let counter = UrrCounter::new(UrrId(3), 2);
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
    fn threshold_and_quota_are_told_once_each_and_a_quota_stays_exhausted() {
        let total = |total| VolumeLimits { total: Some(total), ..VolumeLimits::default() };
        let urr = Urr { id: UrrId(1), threshold: total(100), quota: total(200) };
        let used = UrrUse::new(urr, Arc::new(UrrCounter::new(UrrId(1), 1)));
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
