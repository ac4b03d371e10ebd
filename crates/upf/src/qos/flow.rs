//! A flow: all packets of a session and a direction that the same QERs hold for.

use super::{Colour, FlowCounters, Meter, Metering, Time};
use std::sync::Arc;

/// A flow's meters and counters, shared by all who forward its packets.
#[derive(Debug)]
pub struct Flow {
    meters: Box<[Arc<dyn Metering>]>,
    shared: bool,
    /// What was done to it.
    pub counters: Arc<FlowCounters>,
}

impl Flow {
    /// A flow that all of `meters` hold for.
    pub fn new(meters: impl IntoIterator<Item = Arc<dyn Metering>>, counters: Arc<FlowCounters>) -> Self {
        Self { meters: meters.into_iter().collect(), shared: false, counters }
    }

    /// The flow, with meters that other sessions have too.
    pub fn sharing(self, aggregates: &[Arc<dyn Metering>]) -> Self {
        let shared = !aggregates.is_empty();
        let meters = self.meters.into_iter().chain(aggregates.iter().cloned()).collect();
        Self { meters, shared, counters: self.counters }
    }

    /// Whether other sessions may use up what it waits for.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Its meters.
    pub fn metering(&self) -> &[Arc<dyn Metering>] {
        &self.meters
    }

    fn meters(&self) -> impl Iterator<Item = &Meter> {
        self.meters.iter().map(|metering| metering.meter())
    }

    /// Whether nothing ever holds it up.
    pub fn is_unlimited(&self) -> bool {
        self.meters().all(|meter| meter.peak_rate().is_none())
    }

    /// The colour that a packet would have now: green if any QER promises it, red if any forbids it.
    pub fn colour(&self, now: Time) -> Colour {
        let mut colour = Colour::Yellow;
        for meter in self.meters() {
            match meter.colour(now) {
                Colour::Green => return Colour::Green,
                Colour::Red => colour = Colour::Red,
                Colour::Yellow => {}
            }
        }
        colour
    }

    /// Lets a packet pass and counts it; or says that it is red, and does nothing.
    pub fn admit(&self, now: Time, bytes: usize) -> Colour {
        let colour = self.colour(now);
        if colour != Colour::Red {
            self.pass(now, bytes, colour);
        }
        colour
    }

    /// Charges and counts a packet that passes.
    pub fn pass(&self, now: Time, bytes: usize, colour: Colour) {
        self.meters().for_each(|meter| meter.charge(now, bytes));
        self.counters.passed(colour, bytes);
    }

    /// Counts a packet that is dropped, red if that is for the flow's own maximum rate.
    pub fn refuse(&self, bytes: usize, above_own_rate: bool) {
        match above_own_rate {
            true => self.counters.red(bytes),
            false => self.counters.dropped(bytes),
        }
    }

    /// From when on it is not red, if nothing is charged before.
    pub fn ready_at(&self) -> Time {
        let green = self.meters().map(|meter| meter.green_at()).min().unwrap_or(Time::NEVER);
        let yellow = self.meters().map(|meter| meter.ready_at()).max().unwrap_or(Time(0));
        green.min(yellow)
    }

    /// Whether it is above the maximum rate of a QER that is its own, a GBR flow's MBR.
    pub fn is_above_own_rate(&self, now: Time) -> bool {
        self.meters().any(|meter| meter.is_guaranteed() && meter.colour(now) == Colour::Red)
    }

    /// The rate that it can reach at most, in bits per second.
    pub fn ceiling(&self) -> Option<u64> {
        self.meters().filter_map(|meter| meter.peak_rate()).min()
    }
}
