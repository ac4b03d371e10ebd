//! The two rate three colour marker (RFC 2698), colour-blind, of a QER in one direction.
//!
//! ```text
//!              peak rate (MBR)       committed rate (GBR)
//!  packet ──▶  exceeded? ── no ──▶   exceeded? ── no ──▶  green   forwarded, whatever its colour at other QERs
//!                 │ yes                 │ yes
//!                 ▼                     ▼
//!                red                  yellow              forwarded if it is red at no other QER of the flow
//!                queued or dropped
//! ```
//!
//! A QER without GBR is an aggregate: a session's or slice's AMBR, or a limit of some traffic.

use super::{Bucket, Burst, FlowCounters, Time};
use crate::contract::{Direction, Qer, Rates};
use std::fmt::Debug;
use std::sync::Arc;

/// The colour of a packet (RFC 2698 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Colour {
    /// Within the committed rate.
    Green,
    /// Above the committed rate, within the peak rate.
    Yellow,
    /// Above the peak rate.
    Red,
}

/// The rates of a QER in one direction and their buckets; without rates by default. Its layout is fixed, so
/// that a BPF program can share it.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Meter {
    peak: Bucket,
    committed: Bucket,
}

impl Meter {
    /// Sets the rates of a QER and fills the buckets.
    pub fn fill(&self, qer: &Qer, direction: Direction, burst: Burst) {
        let rate = |rates: Option<Rates>| rates.map(|rates| rates.of(direction));
        self.peak.fill(rate(qer.mbr), burst);
        self.committed.fill(rate(qer.gbr), burst);
    }

    /// A meter of an aggregate rate.
    pub fn aggregate(rate: u64, burst: Burst) -> Self {
        Self { peak: Bucket::new(rate, burst), committed: Bucket::default() }
    }

    /// Sets an aggregate rate and fills the buckets.
    pub fn fill_aggregate(&self, rate: u64, burst: Burst) {
        self.peak.fill(Some(rate), burst);
        self.committed.fill(None, burst);
    }

    /// The colour of a packet sent now.
    pub fn colour(&self, now: Time) -> Colour {
        if !self.peak.conforms(now) {
            Colour::Red
        } else if self.is_guaranteed() && self.committed.conforms(now) {
            Colour::Green
        } else {
            Colour::Yellow
        }
    }

    /// Charges a packet to both buckets; the committed bucket only up to its tokens.
    pub fn charge(&self, now: Time, bytes: usize) {
        if self.committed.conforms(now) {
            self.committed.charge(now, bytes);
        }
        self.peak.charge(now, bytes);
    }

    /// Earliest time at which this QER's own rates permit a packet.
    pub fn ready_at(&self) -> Time {
        self.peak.ready_at()
    }

    /// Earliest time at which a packet is green.
    pub fn green_at(&self) -> Time {
        let committed = if self.is_guaranteed() { self.committed.ready_at() } else { Time::NEVER };
        committed.max(self.ready_at())
    }

    /// Whether the QER has a guaranteed rate.
    pub fn is_guaranteed(&self) -> bool {
        self.committed.is_limit()
    }

    /// The peak rate in bits per second.
    pub fn peak_rate(&self) -> Option<u64> {
        self.peak.rate()
    }
}

/// Access to a meter, wherever it is stored: on the heap, or in a map that a BPF program shares.
pub trait Metering: Debug + Send + Sync {
    /// The rates and buckets.
    fn meter(&self) -> &Meter;

    /// Its index in the BPF program's map; `None` if it is not in one.
    fn slot(&self) -> Option<u32> {
        None
    }
}

impl Metering for Meter {
    fn meter(&self) -> &Meter {
        self
    }
}

/// Allocates meters and counters.
pub trait MeterSource {
    /// Full meters of a QER, uplink and downlink.
    fn make(&self, qer: &Qer, burst: Burst) -> [Arc<dyn Metering>; 2];

    /// A full meter of an aggregate.
    fn aggregate(&self, rate: u64, burst: Burst) -> Arc<dyn Metering> {
        Arc::new(Meter::aggregate(rate, burst))
    }

    /// Zeroed counters of a flow in that direction.
    fn counters(&self, _direction: Direction) -> Arc<FlowCounters> {
        Arc::default()
    }
}

/// Allocates meters and counters on the heap, where no BPF program can use them.
#[derive(Debug, Clone, Copy, Default)]
pub struct OnHeap;

impl MeterSource for OnHeap {
    fn make(&self, qer: &Qer, burst: Burst) -> [Arc<dyn Metering>; 2] {
        [Direction::Uplink, Direction::Downlink].map(|direction| {
            let meter = Meter::default();
            meter.fill(qer, direction, burst);
            Arc::new(meter) as Arc<dyn Metering>
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Gates, QerId, Rates};

    fn meter(gbr: Option<u64>, mbr: Option<u64>) -> Meter {
        let rates = |rate| Rates { uplink: rate, downlink: rate };
        let qer = Qer {
            id: QerId(1),
            gates: Gates::OPEN,
            mbr: mbr.map(rates),
            gbr: gbr.map(rates),
            qfi: None,
            rqi: false,
        };
        let meter = Meter::default();
        meter.fill(&qer, Direction::Uplink, Burst::SHAPING);
        meter
    }

    /// Bits per second of each colour, when `offered` bits per second arrive for ten seconds in packets of
    /// 500 bytes and red ones are dropped.
    fn colours(meter: &Meter, offered: u64) -> [u64; 3] {
        let mut bits = [0; 3];
        let gap = 4_000_000_000_000 / offered;
        for n in 0..10_000_000_000 / gap {
            let now = Time(1 + n * gap);
            let colour = meter.colour(now);
            bits[colour as usize] += 400;
            if colour != Colour::Red {
                meter.charge(now, 500);
            }
        }
        bits
    }

    fn near(bits: u64, expected: u64) -> bool {
        bits.abs_diff(expected) <= expected / 100 + 8_000
    }

    #[test]
    fn green_up_to_the_committed_rate_yellow_up_to_the_peak_rate_then_red() {
        for (offered, [green, yellow, red]) in [
            (1_000_000, [1_000_000, 0, 0]),
            (4_000_000, [2, 2, 0].map(|m| m * 1_000_000)),
            (9_000_000, [2, 3, 4].map(|m| m * 1_000_000)),
        ] {
            let bits = colours(&meter(Some(2_000_000), Some(5_000_000)), offered);
            assert!(
                near(bits[0], green) && near(bits[1], yellow) && near(bits[2], red),
                "{offered}: {bits:?}"
            );
        }
    }

    #[test]
    fn without_gbr_never_green_and_without_mbr_never_red() {
        assert_eq!(colours(&meter(None, Some(1_000_000)), 3_000_000)[0], 0);
        assert_eq!(colours(&meter(Some(1_000_000), None), 3_000_000)[2], 0);
    }

    #[test]
    fn green_at_is_when_both_buckets_conform() {
        let meter = meter(Some(1_000_000), Some(2_000_000));
        let now = Time(1_000_000_000);
        while meter.colour(now) == Colour::Green {
            meter.charge(now, 500);
        }
        let green_at = meter.green_at();
        assert!(green_at > now && meter.ready_at() <= green_at);
        assert_eq!(meter.colour(green_at), Colour::Green);
    }
}
