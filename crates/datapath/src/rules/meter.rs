//! Token buckets of a QER, shared by all workers without a lock.
//!
//! A bucket is one number: the time at which it will be full again (the virtual scheduling form of the
//! leaky bucket). A packet conforms if that time is no further away than the burst; charging moves it by
//! the time that the packet takes at the rate. In the long run exactly the rate passes; packets at most
//! one burst and one packet above it at any time.

use super::Now;
use pith_upf::contract::{Direction, Qer, Rates};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How long a bucket may save up.
const BURST: u64 = 100_000_000;
/// Least burst in bytes, so that slow rates still pass some whole packets.
const LEAST_BURST: u64 = 16_384;
/// Sixteenths of a nanosecond: what a byte takes at 100 Gbit/s is not rounded away.
const TICKS: u64 = 16;
const BIT_TICKS_PER_SECOND: u64 = 8 * TICKS * 1_000_000_000;

/// The rates of a QER and how far they are used.
#[derive(Debug)]
pub struct Meter {
    mbr: Option<Pair>,
    gbr: Option<Pair>,
}

impl Meter {
    /// The meter of a QER, with full buckets; `None` if it bounds and promises nothing.
    pub fn of(qer: &Qer) -> Option<Self> {
        let some = qer.mbr.is_some() || qer.gbr.is_some();
        some.then(|| Self { mbr: qer.mbr.map(Pair::new), gbr: qer.gbr.map(Pair::new) })
    }
}

/// Charges a packet to all `meters`, or says no and charges none. What is within a guaranteed rate
/// passes whatever the maximum rates say (green, RFC 2698), and uses them up all the same.
pub fn admit<'a>(
    meters: impl Iterator<Item = &'a Meter> + Clone,
    direction: Direction,
    bytes: usize,
    now: Now,
) -> bool {
    let ticks = now.0 * TICKS;
    let green =
        meters.clone().filter_map(|meter| meter.gbr.as_ref()).any(|gbr| gbr.of(direction).conforms(ticks));
    let conforms =
        green || meters.clone().filter_map(|m| m.mbr.as_ref()).all(|mbr| mbr.of(direction).conforms(ticks));
    if conforms {
        for pair in meters.flat_map(|meter| [&meter.mbr, &meter.gbr]).flatten() {
            pair.of(direction).charge(ticks, bytes as u64);
        }
    }
    conforms
}

#[derive(Debug)]
struct Pair {
    uplink: Bucket,
    downlink: Bucket,
}

impl Pair {
    fn new(rates: Rates) -> Self {
        Self { uplink: Bucket::new(rates.uplink), downlink: Bucket::new(rates.downlink) }
    }

    fn of(&self, direction: Direction) -> &Bucket {
        match direction {
            Direction::Uplink => &self.uplink,
            Direction::Downlink => &self.downlink,
        }
    }
}

#[derive(Debug)]
struct Bucket {
    /// Bits per second.
    rate: u64,
    /// Ticks that it saves up.
    burst: u64,
    /// When it is full again, in ticks.
    full_at: AtomicU64,
}

impl Bucket {
    fn new(rate: u64) -> Self {
        let least = ticks_of(LEAST_BURST, rate);
        Self { rate, burst: least.max(BURST * TICKS), full_at: AtomicU64::new(0) }
    }

    fn conforms(&self, now: u64) -> bool {
        self.rate > 0 && self.full_at.load(Relaxed) <= now.saturating_add(self.burst)
    }

    /// Debt is bounded by another burst: green packets must not silence the others for long.
    fn charge(&self, now: u64, bytes: u64) {
        let cost = ticks_of(bytes, self.rate);
        let deepest = now.saturating_add(self.burst.saturating_mul(2)).saturating_add(cost);
        let charged = |full_at: u64| Some(full_at.max(now).saturating_add(cost).min(deepest.max(full_at)));
        // The closure never says no.
        let _ = self.full_at.fetch_update(Relaxed, Relaxed, charged);
    }
}

/// How long so many bytes take at a rate.
fn ticks_of(bytes: u64, rate: u64) -> u64 {
    match rate {
        0 => 0,
        rate => (bytes.saturating_mul(BIT_TICKS_PER_SECOND)).div_ceil(rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_upf::contract::{Gates, QerId};

    const SECOND: u64 = 1_000_000_000;

    fn meter(mbr: Option<u64>, gbr: Option<u64>) -> Meter {
        let rates = |rate: u64| Rates { uplink: rate, downlink: rate };
        let qer =
            Qer { id: QerId(1), gates: Gates::OPEN, mbr: mbr.map(rates), gbr: gbr.map(rates), qfi: None };
        Meter::of(&qer).unwrap()
    }

    /// Bytes that pass when `offered` bits per second of `packet` bytes come for `seconds`.
    fn passed(meters: &[&Meter], offered: u64, packet: usize, seconds: u64) -> u64 {
        let gap = packet as u64 * 8 * SECOND / offered;
        let times = (0..seconds * SECOND / gap).map(|n| Now(1 + n * gap));
        times
            .filter(|now| admit(meters.iter().copied(), Direction::Uplink, packet, *now))
            .map(|_| packet as u64)
            .sum()
    }

    #[test]
    fn the_rate_passes_and_one_burst() {
        for (rate, packet) in [(1_000_000, 100), (10_000_000, 1400), (1_000_000_000, 1400), (333_333, 60)] {
            let bytes = passed(&[&meter(Some(rate), None)], rate * 3, packet, 10);
            let exact = rate / 8 * 10;
            let burst = (rate / 80).max(LEAST_BURST) + packet as u64;
            assert!(bytes >= exact * 999 / 1000 && bytes <= exact + burst, "{rate}: {bytes} of {exact}");
        }
    }

    #[test]
    fn below_the_rate_all_passes() {
        let bytes = passed(&[&meter(Some(10_000_000), None)], 9_900_000, 1400, 10);
        assert!(bytes * 8 / 10 > 9_899_000, "{bytes}");
    }

    #[test]
    fn a_rate_of_zero_passes_nothing() {
        assert_eq!(passed(&[&meter(Some(0), None)], 1_000_000, 100, 1), 0);
    }

    #[test]
    fn the_lowest_of_many_rates_holds_and_charges_no_other_in_vain() {
        let (flow, session) = (meter(Some(8_000_000), None), meter(Some(4_000_000), None));
        let bytes = passed(&[&flow, &session], 20_000_000, 1000, 10);
        assert!((5_000_000..5_070_000).contains(&bytes), "{bytes}");
        let full_at = flow.mbr.as_ref().unwrap().uplink.full_at.load(Relaxed);
        assert!(
            full_at <= 10 * SECOND * TICKS + BURST * TICKS,
            "the flow's bucket paid for what passed only"
        );
    }

    #[test]
    fn guaranteed_packets_pass_an_exhausted_session_rate() {
        let session = meter(Some(1_000_000), None);
        let flow = meter(None, Some(500_000));
        assert!(passed(&[&session], 10_000_000, 1000, 1) < 150_000);
        let later = (0..1000).filter(|n| {
            admit([&session, &flow].into_iter(), Direction::Uplink, 1000, Now(SECOND + n * 1_000_000))
        });
        let guaranteed = later.count() * 1000;
        assert!(guaranteed >= 62_500, "{guaranteed}");
    }

    #[test]
    fn directions_have_buckets_of_their_own() {
        let meter = meter(Some(8000), None);
        let fill = (0..100).filter(|_| admit([&meter].into_iter(), Direction::Uplink, 1000, Now(1))).count();
        assert!(fill < 20);
        assert!(admit([&meter].into_iter(), Direction::Downlink, 1000, Now(1)));
    }
}
