//! The result of a run: a table, or JSON for programs.

use super::services::Services;
use super::steps::StepReport;
use pith_ran::Ran;
use pith_ran::statistics::{ClauseViolations, Procedure, Summary, TrafficStatistics};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// The result of a run. Its JSON form is documented in the README.
#[derive(Debug, Serialize)]
pub struct Report {
    /// UEs of the run.
    pub ues: usize,
    /// UEs that completed their profile.
    pub ok: usize,
    /// UEs that did not.
    pub failed: usize,
    /// gNBs of the run.
    pub gnbs: u32,
    /// gNBs that completed NG Setup.
    pub gnbs_up: usize,
    /// From the start of the first UE to the end of the last, in seconds.
    pub total_s: f64,
    /// CPU time of the watched process, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watched_cpu_ms: Option<f64>,
    /// Resident memory of the watched process after the last UE, in MB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watched_rss_mb: Option<f64>,
    /// Service requests of random UEs (`--services`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub services: Option<Services>,
    /// Steps that all UEs began at the same time (`--then`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepReport>,
    /// Every procedure of the run by its name.
    pub procedures: BTreeMap<&'static str, ProcedureReport>,
    /// From the user's request to REGISTRATION ACCEPT.
    pub registration_ms: Summary,
    /// From the user's request to PDU SESSION ESTABLISHMENT ACCEPT.
    pub session_ms: Summary,
    /// From the user's request to SERVICE ACCEPT.
    pub service_ms: Summary,
    /// From the user's request to DEREGISTRATION ACCEPT.
    pub deregistration_ms: Summary,
    /// From the start of a handover to its path switch, or to HANDOVER NOTIFY.
    pub handover_ms: Summary,
    /// End Markers in the tunnels of source gNBs.
    pub end_markers: u64,
    /// Packets that source gNBs forwarded through a UPF in N2 handovers.
    pub forwarded: u64,
    /// From the packet of the data network for a UE in idle to its delivery.
    pub paging_ms: Summary,
    /// Pings.
    pub ping: PingReport,
    /// Streams to an echo service.
    pub traffic: TrafficReport,
    /// Procedures that ended with their connection, or got no answer, and were begun again (`--reconnect`).
    pub lost_connections: u64,
    /// Failures with their counts.
    pub failures: BTreeMap<String, u64>,
    /// Violations by the core.
    pub violations: ViolationReport,
    /// No failure and no violation.
    pub passed: bool,
}

/// A procedure of a run.
#[derive(Debug, Serialize)]
pub struct ProcedureReport {
    /// From the start of each to its completion, in milliseconds.
    #[serde(flatten)]
    pub ms: Summary,
    /// How many failed.
    pub failed: u64,
}

impl From<&Procedure> for ProcedureReport {
    fn from(procedure: &Procedure) -> Self {
        Self { ms: procedure.completed.summary(), failed: procedure.failed }
    }
}

/// Pings of a run.
#[derive(Debug, Serialize)]
pub struct PingReport {
    /// Requests sent.
    pub sent: u64,
    /// Replies received in time.
    pub received: u64,
    /// Requests without a reply.
    pub lost: u64,
    /// From request to reply.
    pub rtt_ms: Summary,
}

/// Streams of a run.
#[derive(Debug, Serialize)]
pub struct TrafficReport {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that were returned.
    pub received: u64,
    /// Datagrams that were not.
    pub lost: u64,
    /// Mbit/s sent by all UEs together, of whole IP packets.
    pub sent_mbps: f64,
    /// Mbit/s that were returned.
    pub received_mbps: f64,
    /// From sending to return.
    pub rtt_ms: Summary,
}

impl TrafficReport {
    fn new(traffic: &TrafficStatistics, size: usize) -> Self {
        let (sent_mbps, received_mbps) = traffic.megabits_per_second(size);
        let (sent, received) = (traffic.sent, traffic.received);
        let rtt_ms = traffic.round_trip.summary();
        Self { sent, received, lost: sent - received, sent_mbps, received_mbps, rtt_ms }
    }
}

/// Violations of a run.
#[derive(Debug, Serialize)]
pub struct ViolationReport {
    /// Total number.
    pub count: u64,
    /// By the violated clause.
    pub by_clause: BTreeMap<&'static str, ClauseViolations>,
}

impl Report {
    /// The result of a run with that duration, and packets of `size` octets in its streams.
    pub fn new(ran: &Ran, gnbs: u32, size: usize, total: Duration) -> Self {
        let (tally, statistics) = (ran.tally(), ran.statistics());
        let ping = &statistics.ping;
        let violations = &statistics.violations;
        let gnbs_up = ran.gnbs_up();
        Self {
            ues: tally.ues,
            ok: tally.done,
            failed: tally.ues - tally.done,
            gnbs,
            gnbs_up,
            total_s: total.as_secs_f64(),
            watched_cpu_ms: None,
            watched_rss_mb: None,
            services: None,
            steps: Vec::new(),
            procedures: statistics.procedures.iter().map(|(name, all)| (*name, all.into())).collect(),
            registration_ms: statistics.registration.summary(),
            session_ms: statistics.session.summary(),
            service_ms: statistics.service.summary(),
            deregistration_ms: statistics.deregistration.summary(),
            handover_ms: statistics.handover.summary(),
            end_markers: statistics.end_markers,
            forwarded: statistics.forwarded,
            paging_ms: statistics.paging.summary(),
            ping: PingReport {
                sent: ping.sent,
                received: ping.received,
                lost: ping.sent - ping.received,
                rtt_ms: ping.round_trip.summary(),
            },
            traffic: TrafficReport::new(&statistics.traffic, size),
            lost_connections: statistics.lost_connections,
            failures: statistics.failures.clone(),
            violations: ViolationReport {
                count: violations.count(),
                by_clause: violations.iter().map(|(clause, breach)| (clause, breach.clone())).collect(),
            },
            passed: tally.done == tally.ues && violations.count() == 0 && gnbs_up == gnbs as usize,
        }
    }

    /// The table.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "gNBs        {} of {} up", self.gnbs_up, self.gnbs);
        let _ = writeln!(text, "UEs         {} of {} ok in {:.3} s", self.ok, self.ues, self.total_s);
        if let Some(spent) = self.watched_cpu_ms {
            let _ = writeln!(text, "core        {spent:.3} ms on a CPU");
        }
        let procedure = |name| self.procedures.get(name).map_or_else(Summary::default, |all| all.ms);
        let rows = [
            ("registration", self.registration_ms),
            ("session", self.session_ms),
            ("service", self.service_ms),
            ("leaving", self.deregistration_ms),
            ("paging", self.paging_ms),
            ("Xn handover", procedure("Xn handover")),
            ("N2 handover", procedure("N2 handover")),
            ("ping", self.ping.rtt_ms),
            ("traffic", self.traffic.rtt_ms),
        ];
        let _ = writeln!(text, "\nms             count       p50       p90       p99       max");
        for (name, summary) in rows.iter().filter(|(_, summary)| summary.count > 0) {
            let Summary { count, p50, p90, p99, max } = summary;
            let _ = writeln!(text, "{name:<12} {count:>7} {p50:>9.3} {p90:>9.3} {p99:>9.3} {max:>9.3}");
        }
        if self.ping.sent > 0 {
            let lost = self.ping.lost as f64 * 100.0 / self.ping.sent as f64;
            let _ = writeln!(
                text,
                "\npings       {} sent, {} received, {lost:.1}% lost",
                self.ping.sent, self.ping.received
            );
        }
        self.add_traffic(&mut text);
        self.add_steps(&mut text);
        self.add_troubles(&mut text);
        text
    }

    fn add_traffic(&self, text: &mut String) {
        let TrafficReport { sent, received, lost, sent_mbps, received_mbps, .. } = self.traffic;
        if sent > 0 {
            let lost = lost as f64 * 100.0 / sent as f64;
            let _ = writeln!(
                text,
                "\ntraffic     {sent} packets sent, {received} returned, {lost:.1}% lost; \
                 {sent_mbps:.2} Mbit/s sent, {received_mbps:.2} returned"
            );
        }
    }

    fn add_steps(&self, text: &mut String) {
        if !self.steps.is_empty() {
            let _ = writeln!(
                text,
                "\nall at once               ok    failed       p50       p99  core CPU ms/UE"
            );
        }
        for StepReport { step, ok, failed, ms, watched_cpu_ms_per_ue, .. } in &self.steps {
            let spent = watched_cpu_ms_per_ue.map(|spent| format!("{spent:.4}")).unwrap_or_default();
            let (p50, p99) = (ms.p50, ms.p99);
            let _ = writeln!(text, "{step:<22} {ok:>5} {failed:>9} {p50:>9.3} {p99:>9.3} {spent:>15}");
        }
    }

    fn add_troubles(&self, text: &mut String) {
        if !self.failures.is_empty() {
            let _ = writeln!(text, "\nfailures");
        }
        for (what, count) in &self.failures {
            let _ = writeln!(text, "{count:>7}  {what}");
        }
        let _ = writeln!(text, "\nviolations  {}", self.violations.count);
        for (clause, breach) in &self.violations.by_clause {
            let _ = writeln!(text, "{:>7}  {clause}", breach.count);
            for example in &breach.examples {
                let _ = writeln!(text, "         {example}");
            }
        }
    }
}
