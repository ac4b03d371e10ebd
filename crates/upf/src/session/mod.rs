//! A PFCP session: its rules as provisioned by the SMF, and the measurements of its URRs.

mod allocate;
mod compile;
mod detection;
mod flow_history;
mod forwarding;
mod framed;
mod meter;
mod monitoring;
mod provision;
mod rule_map;
mod table;
mod usage;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use pith_pfcp::ie::{ApnDnn, DownlinkDataServiceInformation, FSeid, FqCsid, NodeId, PdrId, SmfSetId};

pub use allocate::{Allocation, allocate};
pub use compile::compile;
pub use flow_history::FlowHistory;
pub use forwarding::tunnel;
pub use meter::{Meter, PACKET_AGE_ERROR};
pub use provision::RuleSet;
pub use table::SessionTable;
pub use usage::{Measurements, Query};

use crate::config::Config;
use crate::contract::{self, Rates, SessionId, Teid, Tunnel};

/// The port of PFCP (TS 29.244 4.2.2).
pub const PFCP_PORT: u16 = 8805;

/// Shortest time between two checks of a session.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// With this many pending reports of a session, usage is no longer reported but still measured, and lost
/// tunnels are not reported. Downlink data is still reported: once for each PDR.
const MANY_REPORTS: usize = 16;

/// A PDR with held packets, and the report on the first one.
pub type HeldPackets = (PdrId, DownlinkDataServiceInformation);

/// A PFCP session.
#[derive(Debug)]
pub struct Session {
    /// The UP function's SEID.
    pub id: SessionId,
    /// The CP function's endpoint.
    pub cp: FSeid,
    /// The SMF of its association.
    pub node: NodeId,
    /// The set of that SMF, whose other SMFs may take it over.
    pub set: Option<SmfSetId>,
    /// Its data network, if the SMF provided it.
    pub dnn: Option<ApnDnn>,
    /// Session sets that it belongs to.
    pub fq_csids: Vec<FqCsid>,
    pub rules: RuleSet,
    pub teids: BTreeSet<Teid>,
    pub ue: contract::UeAddress,
    /// Its guaranteed bit rates.
    pub guaranteed_rates: Rates,
    /// Tunnels that its packets are sent into.
    pub tunnels: Vec<Tunnel>,
    /// The measurements of its URRs.
    pub measurements: Measurements,
    /// Its QoS flows.
    pub flows: FlowHistory,
    /// The state of its user plane inactivity timer (TS 29.244 5.11.2).
    pub inactivity: Option<Inactivity>,
    /// Delayed downlink data reports (TS 29.244 8.2.28), and the time of their sending.
    pub delayed: Option<(Duration, Vec<HeldPackets>)>,
    /// PDRs whose held packets were reported, as long as their FARs hold packets.
    pub reported: Vec<HeldPackets>,
    /// Tunnels of its FARs that peers do not know; they have been reported.
    pub lost_tunnels: Vec<(IpAddr, Teid)>,
    /// Sequence numbers of its pending reports.
    pub reports: Vec<u32>,
    /// The time of its next check.
    pub due: Option<Duration>,
}

/// The User Plane Inactivity Timer of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inactivity {
    /// The inactivity to detect.
    pub timer: Duration,
    /// The time of the last known packet, or of provisioning the timer.
    pub since: Duration,
    /// The current inactivity was reported.
    pub reported: bool,
}

impl Inactivity {
    /// A timer that starts at `now`; `None` if `seconds` is 0, which stops it (TS 29.244 8.2.83).
    pub fn start(seconds: u32, now: Duration) -> Option<Self> {
        let timer = Duration::from_secs(seconds.into());
        (seconds != 0).then_some(Inactivity { timer, since: now, reported: false })
    }

    /// Updates the timer with the time of the last packet. Returns whether inactivity is to be reported.
    pub fn check(&mut self, now: Duration, last_packet: Option<Duration>) -> bool {
        if let Some(last) = last_packet.filter(|last| *last > self.since + PACKET_AGE_ERROR) {
            self.since = last;
            self.reported = false;
        }
        let report = !self.reported && now >= self.since + self.timer;
        self.reported |= report;
        report
    }

    /// The time of the next check.
    pub fn due(&self, now: Duration) -> Duration {
        if self.reported { now + self.timer } else { self.since + self.timer }
    }
}

/// The address of a CP function's endpoint, in an address family of `local`.
pub fn cp_address(cp: &FSeid, local: IpAddr) -> SocketAddr {
    let (v4, v6) = (cp.ipv4.map(Into::into), cp.ipv6.map(Into::into));
    let address = if local.is_ipv4() { v4.or(v6) } else { v6.or(v4) };
    SocketAddr::new(address.unwrap_or(local), PFCP_PORT)
}

impl Session {
    /// The address of the session's CP function, in an address family of `local`.
    pub fn cp_address(&self, local: IpAddr) -> SocketAddr {
        cp_address(&self.cp, local)
    }

    /// Whether further reports are delayed because too many are pending.
    pub fn has_many_reports(&self) -> bool {
        self.reports.len() >= MANY_REPORTS
    }

    /// The time of the next check of inactivity and measurements without other events.
    pub fn next_check(&self, now: Duration, config: &Config) -> Option<Duration> {
        let inactivity = self.inactivity.map(|inactivity| inactivity.due(now));
        let measurements = self.measurements.due(&self.rules, now, config);
        let due = inactivity.into_iter().chain(measurements).min();
        let due = if self.has_many_reports() {
            Some(now + config.t1)
        } else {
            due.map(|due| due.max(now + SHORTEST_WAIT))
        };
        let delayed = self.delayed.as_ref().map(|(due, _)| *due);
        let former_flows = self.flows.due().map(|due| due.max(now + SHORTEST_WAIT));
        due.into_iter().chain(delayed).chain(former_flows).min()
    }
}
