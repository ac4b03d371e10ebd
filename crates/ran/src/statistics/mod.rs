//! What a run of many UEs came to.

mod latency;
mod traffic;

pub use latency::{Latencies, Summary};
pub use traffic::TrafficStatistics;

use crate::violation::Violation;
use serde::Serialize;
use std::collections::BTreeMap;

/// Texts kept of each clause that was broken.
const EXAMPLES: usize = 3;

/// Counters and durations of a run.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// From the wish to register to REGISTRATION ACCEPT.
    pub registration: Latencies,
    /// From the wish for a session to PDU SESSION ESTABLISHMENT ACCEPT.
    pub session: Latencies,
    /// From the wish for service to SERVICE ACCEPT.
    pub service: Latencies,
    /// From the wish to leave to DEREGISTRATION ACCEPT.
    pub deregistration: Latencies,
    /// Pings.
    pub ping: PingStatistics,
    /// Streams.
    pub traffic: TrafficStatistics,
    /// What failed, in words, and how often.
    pub failures: BTreeMap<String, u64>,
    /// What the core did wrong.
    pub violations: Violations,
}

/// Echo requests and replies.
#[derive(Debug, Clone, Default)]
pub struct PingStatistics {
    /// Echo requests sent.
    pub sent: u64,
    /// Echo replies received in time, each once.
    pub received: u64,
    /// From request to reply.
    pub round_trip: Latencies,
}

/// Violations by clause.
#[derive(Debug, Clone, Default)]
pub struct Violations(BTreeMap<&'static str, Breach>);

/// How often a clause was broken, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Breach {
    /// How often.
    pub count: u64,
    /// The first few, in words.
    pub examples: Vec<String>,
}

impl Statistics {
    /// Counts a failure.
    pub fn fail(&mut self, what: impl Into<String>) {
        *self.failures.entry(what.into()).or_default() += 1;
    }
}

impl Violations {
    /// Notes one, by whom it was seen.
    pub fn add(&mut self, who: &str, violation: Violation) {
        let breach = self.0.entry(violation.clause).or_default();
        breach.count += 1;
        if breach.examples.len() < EXAMPLES {
            breach.examples.push(format!("{who}: {}", violation.text));
        }
    }

    /// How many there are in all.
    pub fn count(&self) -> u64 {
        self.0.values().map(|breach| breach.count).sum()
    }

    /// Clause by clause.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Breach)> {
        self.0.iter().map(|(clause, breach)| (*clause, breach))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_are_counted_by_clause_with_a_few_examples() {
        let mut violations = Violations::default();
        for number in 0..5 {
            violations.add("ue 1", Violation::new("TS 24.501 7.4", format!("message {number}")));
        }
        violations.add("gnb 1", Violation::new("TS 38.413 10.6", "unknown id"));
        assert_eq!(violations.count(), 6);
        let (clause, breach) = violations.iter().next().unwrap();
        assert_eq!((clause, breach.count, breach.examples.len()), ("TS 24.501 7.4", 5, 3));
        assert_eq!(breach.examples[0], "ue 1: message 0");
    }
}
