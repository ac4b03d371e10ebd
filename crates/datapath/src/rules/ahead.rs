//! A look ahead: the memory that packets of a session need, asked for before they are judged.
//!
//! A session's rules, meters and counters are some fifteen cache lines, most of them found by way of another. With many
//! sessions at once none is near, and a worker would wait for each in its turn, packet by packet. So it goes through
//! a batch step by step: a step asks for what the lines of the step before lead to, for all packets, and they come side
//! by side.
//!
//! ```text
//!   session ─┬▶ life
//!            └▶ rule ─┬▶ flow ─┬▶ counters
//!                     │        └▶ meters ──▶ each ──▶ its buckets
//!                     └▶ URRs ──▶ each ──▶ counter ──▶ the worker's place
//! ```

use super::compile::{Rule, Rules};
use super::usage::Worker;
use crate::sys::prefetch;
use pith_upf::contract::Direction;

/// Rules of a direction that are looked at; a packet seldom meets a later one.
const RULES: usize = 2;

/// The steps, in their order; the session's [`Rules`] themselves are to be asked for before.
pub const STEPS: [Step; 5] = [rules, flows, meters, slots, places];

/// A step: of which session, of packets that go which way, by which worker.
pub type Step = fn(&Rules, Direction, Worker);

fn near(rules: &Rules, direction: Direction) -> impl Iterator<Item = &Rule> {
    rules.iter().filter(move |rule| rule.direction() == direction).take(RULES)
}

fn rules(rules: &Rules, _: Direction, _: Worker) {
    prefetch(&*rules.life);
    rules.iter().take(2 * RULES).for_each(prefetch);
}

fn flows(rules: &Rules, direction: Direction, _: Worker) {
    for rule in near(rules, direction) {
        prefetch(&*rule.flow);
        prefetch(&*rule.urrs);
    }
}

fn meters(rules: &Rules, direction: Direction, _: Worker) {
    for rule in near(rules, direction) {
        prefetch(&*rule.flow.counters);
        prefetch(rule.flow.metering());
        rule.urrs.iter().for_each(|used| prefetch(&**used));
    }
}

fn slots(rules: &Rules, direction: Direction, _: Worker) {
    for rule in near(rules, direction) {
        rule.flow.metering().iter().for_each(|metering| prefetch(&**metering));
        rule.urrs.iter().for_each(|used| prefetch(&*used.counter));
    }
}

fn places(rules: &Rules, direction: Direction, worker: Worker) {
    for rule in near(rules, direction) {
        rule.flow.metering().iter().for_each(|metering| prefetch(metering.meter()));
        rule.urrs.iter().filter_map(|used| used.counter.place(worker)).for_each(prefetch);
    }
}
