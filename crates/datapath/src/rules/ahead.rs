//! Prefetches the memory that packets of a session need before their rules are evaluated.
//!
//! A session's rules, meters and counters are some fifteen cache lines, most of them reached through others.
//! With many concurrent sessions all would be cache misses, one after the other for each packet. Therefore a
//! batch is processed in steps: each step prefetches, for all packets, the lines that the previous step's
//! lines point to, so that the misses overlap.
//!
//! ```text
//!   session ─┬▶ life
//!            └▶ rule ─┬▶ flow ─┬▶ counters
//!                     │        └▶ meters ──▶ each ──▶ its buckets
//!                     └▶ URRs ──▶ each ──▶ counter ──▶ the worker's value
//! ```

use super::compile::{Rule, Rules};
use super::usage::Worker;
use crate::sys::prefetch;
use pith_upf::contract::Direction;

/// Rules of a direction that are prefetched; few packets match a later one.
const RULES: usize = 2;

/// The steps in order; the caller prefetches the session's [`Rules`] first.
pub const STEPS: [Step; 5] = [rules, flows, meters, slots, counters];

/// A step, for a session, a direction and a worker.
pub type Step = fn(&Rules, Direction, Worker);

fn near(rules: &Rules, direction: Direction) -> impl Iterator<Item = &Rule> {
    rules.iter().filter(move |rule| rule.direction() == direction).take(RULES)
}

fn rules(rules: &Rules, _: Direction, _: Worker) {
    prefetch(&*rules.state);
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

fn counters(rules: &Rules, direction: Direction, worker: Worker) {
    for rule in near(rules, direction) {
        rule.flow.metering().iter().for_each(|metering| prefetch(metering.meter()));
        rule.urrs.iter().filter_map(|used| used.counter.of_worker(worker, direction)).for_each(prefetch);
    }
}
