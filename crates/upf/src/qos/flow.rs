//! A flow: all packets of a session and direction with the same QERs.

use super::{Colour, FlowCounters, Meter, Metering, Time};
use std::sync::Arc;

/// A flow's meters and counters, shared by all threads that forward its packets.
#[derive(Debug)]
pub struct MeteredFlow {
    meters: Box<[Arc<dyn Metering>]>,
    shared: bool,
    /// Its counters.
    pub counters: Arc<FlowCounters>,
}

impl MeteredFlow {
    /// A flow with these meters.
    pub fn new(meters: impl IntoIterator<Item = Arc<dyn Metering>>, counters: Arc<FlowCounters>) -> Self {
        Self { meters: meters.into_iter().collect(), shared: false, counters }
    }

    /// Adds meters that other sessions share.
    pub fn sharing(self, aggregates: &[Arc<dyn Metering>]) -> Self {
        let shared = !aggregates.is_empty();
        let meters = self.meters.into_iter().chain(aggregates.iter().cloned()).collect();
        Self { meters, shared, counters: self.counters }
    }

    /// Whether it shares a meter with other sessions.
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

    /// Whether no rate limits it.
    pub fn is_unlimited(&self) -> bool {
        self.meters().all(|meter| meter.peak_rate().is_none())
    }

    /// The colour of a packet sent now: green if any QER guarantees it, red if any forbids it.
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

    /// Charges and counts a packet; if it is red, returns only the colour.
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

    /// Counts a dropped packet, as red if it exceeds the flow's own maximum rate.
    pub fn refuse(&self, bytes: usize, above_own_rate: bool) {
        if above_own_rate { self.counters.red(bytes) } else { self.counters.dropped(bytes) }
    }

    /// Earliest time at which a packet is not red, without further charges.
    pub fn ready_at(&self) -> Time {
        let green = self.meters().map(|meter| meter.green_at()).min().unwrap_or(Time::NEVER);
        let yellow = self.meters().map(|meter| meter.ready_at()).max().unwrap_or(Time(0));
        green.min(yellow)
    }

    /// Whether it exceeds the maximum rate of its own QER, a GBR flow's MBR.
    pub fn is_above_own_rate(&self, now: Time) -> bool {
        self.meters().any(|meter| meter.is_guaranteed() && meter.colour(now) == Colour::Red)
    }

    /// Its highest possible rate, in bits per second.
    pub fn ceiling(&self) -> Option<u64> {
        self.meters().filter_map(|meter| meter.peak_rate()).min()
    }
}
