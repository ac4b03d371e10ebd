//! The two rate three colour marker (RFC 2698), colour-blind, of a QER and one direction.
//!
//! ```text
//!              peak rate (MBR)       committed rate (GBR)
//!  packet ──▶  exceeded? ── no ──▶   exceeded? ── no ──▶  green   passes, whatever other QERs say
//!                 │ yes                 │ yes
//!                 ▼                     ▼
//!                red                  yellow              passes if no other QER of the flow is red
//!                waits, or is dropped
//! ```
//!
//! A QER without GBR is an aggregate: a session's AMBR, a slice's, or a bound on some traffic.

use super::{Bucket, Burst, Time};
use crate::contract::{Direction, Qer};

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

/// The rates of a QER in one direction, and how far they are used.
#[derive(Debug)]
pub struct Meter {
    committed: Option<Bucket>,
    peak: Option<Bucket>,
}

impl Meter {
    /// The meter of a QER, with full buckets; `None` if it bounds and promises nothing.
    pub fn of(qer: &Qer, direction: Direction, burst: Burst) -> Option<Self> {
        let bucket = |rates: crate::contract::Rates| Bucket::new(rates.of(direction), burst);
        Self::some(qer.gbr.map(bucket), qer.mbr.map(bucket))
    }

    /// The meter of an aggregate.
    pub fn aggregate(rate: u64, burst: Burst) -> Self {
        Self { committed: None, peak: Some(Bucket::new(rate, burst)) }
    }

    fn some(committed: Option<Bucket>, peak: Option<Bucket>) -> Option<Self> {
        (committed.is_some() || peak.is_some()).then_some(Self { committed, peak })
    }

    /// The colour that a packet would have now.
    pub fn colour(&self, now: Time) -> Colour {
        match (&self.peak, &self.committed) {
            (Some(peak), _) if !peak.conforms(now) => Colour::Red,
            (_, Some(committed)) if committed.conforms(now) => Colour::Green,
            _ => Colour::Yellow,
        }
    }

    /// Takes what a packet costs from both buckets; of the committed rate nothing beyond what there is.
    pub fn charge(&self, now: Time, bytes: usize) {
        if let Some(committed) = self.committed.as_ref().filter(|committed| committed.conforms(now)) {
            committed.charge(now, bytes);
        }
        if let Some(peak) = &self.peak {
            peak.charge(now, bytes);
        }
    }

    /// From when on a packet may pass by this QER's own rates.
    pub fn ready_at(&self) -> Time {
        self.peak.as_ref().map_or(Time(0), Bucket::ready_at)
    }

    /// From when on a packet is green.
    pub fn green_at(&self) -> Time {
        let committed = self.committed.as_ref().map_or(Time::NEVER, Bucket::ready_at);
        committed.max(self.ready_at())
    }

    /// Whether it promises a rate.
    pub fn is_guaranteed(&self) -> bool {
        self.committed.is_some()
    }

    /// The peak rate in bits per second.
    pub fn peak_rate(&self) -> Option<u64> {
        self.peak.as_ref().map(Bucket::rate)
    }

    /// What had been saved up is spent elsewhere.
    pub fn spend(&self, now: Time) {
        [&self.committed, &self.peak].into_iter().flatten().for_each(|bucket| bucket.spend(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Gates, QerId, Rates};

    fn meter(gbr: Option<u64>, mbr: Option<u64>) -> Meter {
        let rates = |rate| Rates { uplink: rate, downlink: rate };
        let qer =
            Qer { id: QerId(1), gates: Gates::OPEN, mbr: mbr.map(rates), gbr: gbr.map(rates), qfi: None };
        Meter::of(&qer, Direction::Uplink, Burst::SHAPING).unwrap()
    }

    /// Bits per second of each colour, when `offered` come for ten seconds in packets of 500 bytes and
    /// red ones are dropped.
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
    fn what_is_not_promised_is_never_green_and_what_is_not_bounded_never_red() {
        assert_eq!(colours(&meter(None, Some(1_000_000)), 3_000_000)[0], 0);
        assert_eq!(colours(&meter(Some(1_000_000), None), 3_000_000)[2], 0);
    }

    #[test]
    fn it_turns_green_when_both_buckets_let_it() {
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
