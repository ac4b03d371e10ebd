//! Statistics of a run of many UEs.

mod latency;
mod traffic;

pub use latency::{Latencies, Summary};
pub use traffic::TrafficStatistics;

use crate::clock::Instant;
use crate::violation::Violation;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Examples kept for each violated clause.
const EXAMPLES: usize = 3;

/// Counters and durations of a run.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// From the user's request to REGISTRATION ACCEPT.
    pub registration: Latencies,
    /// From the user's request to PDU SESSION ESTABLISHMENT ACCEPT.
    pub session: Latencies,
    /// From the user's request to SERVICE ACCEPT.
    pub service: Latencies,
    /// From the user's request to DEREGISTRATION ACCEPT.
    pub deregistration: Latencies,
    /// From the start of a handover to its path switch, or to HANDOVER NOTIFY.
    pub handover: Latencies,
    /// From the packet of the data network for a UE in idle to its delivery.
    pub paging: Latencies,
    /// Each procedure by its name ([`crate::journey::Step::name`]).
    pub procedures: BTreeMap<&'static str, Procedure>,
    /// End Markers at gNBs that UEs have left.
    pub end_markers: u64,
    /// Packets that source gNBs forwarded through a UPF in N2 handovers.
    pub forwarded: u64,
    /// Pings.
    pub ping: PingStatistics,
    /// Streams.
    pub traffic: TrafficStatistics,
    /// When each service request was accepted, and how long it took, if this is recorded.
    pub timeline: Option<Vec<(Instant, Duration)>>,
    /// Procedures that the loss of the connection ended, or that got no answer, and that were begun again.
    pub lost_connections: u64,
    /// Failures with their counts.
    pub failures: BTreeMap<String, u64>,
    /// Violations by the core.
    pub violations: Violations,
}

/// The steps of one kind.
#[derive(Debug, Clone, Default)]
pub struct Procedure {
    /// From the start of each step to its completion.
    pub completed: Latencies,
    /// Steps that failed.
    pub failed: u64,
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
pub struct Violations(BTreeMap<&'static str, ClauseViolations>);

/// Violations of one clause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClauseViolations {
    /// Number of violations.
    pub count: u64,
    /// The first violations, as text.
    pub examples: Vec<String>,
}

impl Statistics {
    /// Adds an accepted service request.
    pub fn add_service(&mut self, now: Instant, elapsed: Duration) {
        self.service.add(elapsed);
        if let Some(timeline) = &mut self.timeline {
            timeline.push((now, elapsed));
        }
    }

    /// Adds a completed step.
    pub(crate) fn add_step(&mut self, step: &'static str, elapsed: Duration) {
        self.procedures.entry(step).or_default().completed.add(elapsed);
    }

    /// Counts a step that failed.
    pub(crate) fn add_failed_step(&mut self, step: &'static str) {
        self.procedures.entry(step).or_default().failed += 1;
    }

    /// Counts a failure.
    pub fn fail(&mut self, what: impl Into<String>) {
        *self.failures.entry(what.into()).or_default() += 1;
    }
}

impl Violations {
    /// Adds a violation; `who` detected it.
    pub fn add(&mut self, who: &str, violation: Violation) {
        let breach = self.0.entry(violation.clause).or_default();
        breach.count += 1;
        if breach.examples.len() < EXAMPLES {
            breach.examples.push(format!("{who}: {}", violation.text));
        }
    }

    /// Total number.
    pub fn count(&self) -> u64 {
        self.0.values().map(|breach| breach.count).sum()
    }

    /// Violations by clause.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &ClauseViolations)> {
        self.0.iter().map(|(clause, breach)| (*clause, breach))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_are_counted_by_clause_with_examples() {
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
