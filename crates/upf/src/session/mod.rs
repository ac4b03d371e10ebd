//! A PFCP session: its rules as the SMF provisioned them, and what its URRs have measured.

mod allocate;
mod compile;
mod detection;
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

use pith_pfcp::ie::{ApnDnn, DownlinkDataServiceInformation, FSeid, FqCsid, NodeId, PdrId};

pub use allocate::{Allocation, allocate};
pub use compile::compile;
pub use forwarding::tunnel;
use meter::PACKET_AGE_ERROR;
pub use provision::RuleSet;
pub use table::SessionTable;
pub use usage::{Measurements, Query};

use crate::config::Config;
use crate::contract::{self, Rates, SessionId, Teid, Tunnel};

/// The port of PFCP (TS 29.244 4.2.2).
pub const PFCP_PORT: u16 = 8805;

/// Sessions are not looked at more often than this.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// While so many reports of a session wait for a response, usage is not reported but goes on being measured, and
/// tunnels that are lost are not told of. Downlink data is: it comes once for each PDR.
const MANY_REPORTS: usize = 16;

/// A PDR whose packets are held, and what is told of the first.
pub type HeldPackets = (PdrId, DownlinkDataServiceInformation);

/// A PFCP session.
#[derive(Debug)]
pub struct Session {
    /// The UP function's endpoint.
    pub id: SessionId,
    /// The CP function's endpoint.
    pub cp: FSeid,
    /// The association that it belongs to.
    pub node: NodeId,
    /// Its data network, if the SMF tells.
    pub dnn: Option<ApnDnn>,
    /// Sets of sessions that it belongs to.
    pub fq_csids: Vec<FqCsid>,
    /// Its rules.
    pub rules: RuleSet,
    /// Its TEIDs.
    pub teids: BTreeSet<Teid>,
    /// Addresses of its UE.
    pub ue: contract::UeAddress,
    /// Guaranteed bit rates that it was promised.
    pub promised: Rates,
    /// GTP-U peers that packets are sent to.
    pub tunnels: Vec<Tunnel>,
    /// What its URRs measure.
    pub measurements: Measurements,
    /// Watch over user plane inactivity (TS 29.244 5.11.2).
    pub inactivity: Option<Inactivity>,
    /// Downlink data whose report is delayed (TS 29.244 8.2.28), and until when.
    pub delayed: Option<(Duration, Vec<HeldPackets>)>,
    /// Tunnels that peers do not know: reported, and still those of FARs.
    pub lost_tunnels: Vec<(IpAddr, Teid)>,
    /// Sequence numbers of its reports that wait for a response.
    pub reports: Vec<u32>,
    /// When something of it is due.
    pub due: Option<Duration>,
}

/// The User Plane Inactivity Timer of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inactivity {
    /// How long without packets is inactive.
    pub timer: Duration,
    /// The last packet as far as known, or when the timer was provisioned.
    pub since: Duration,
    /// The inactivity that lasts was reported.
    pub reported: bool,
}

impl Inactivity {
    /// A timer that starts at `now`; none if `seconds` is 0, which stops it (TS 29.244 8.2.83).
    pub fn start(seconds: u32, now: Duration) -> Option<Self> {
        let timer = Duration::from_secs(seconds.into());
        (seconds != 0).then_some(Inactivity { timer, since: now, reported: false })
    }

    /// Looks at the time of the last packet. Is there inactivity to report?
    pub fn check(&mut self, now: Duration, last_packet: Option<Duration>) -> bool {
        if let Some(last) = last_packet.filter(|last| *last > self.since + PACKET_AGE_ERROR) {
            self.since = last;
            self.reported = false;
        }
        let report = !self.reported && now >= self.since + self.timer;
        self.reported |= report;
        report
    }

    /// When to look next.
    pub fn due(&self, now: Duration) -> Duration {
        if self.reported { now + self.timer } else { self.since + self.timer }
    }
}

/// Where an endpoint of the CP function's is reached from an entity that is at `local`.
pub fn cp_address(cp: &FSeid, local: IpAddr) -> SocketAddr {
    let (v4, v6) = (cp.ipv4.map(Into::into), cp.ipv6.map(Into::into));
    let address = if local.is_ipv4() { v4.or(v6) } else { v6.or(v4) };
    SocketAddr::new(address.unwrap_or(local), PFCP_PORT)
}

impl Session {
    /// Where the CP function's endpoint is reached from an entity that is at `local`.
    pub fn cp_address(&self, local: IpAddr) -> SocketAddr {
        cp_address(&self.cp, local)
    }

    /// Whether so many reports wait for a response that others have to wait for it.
    pub fn has_many_reports(&self) -> bool {
        self.reports.len() >= MANY_REPORTS
    }

    /// When inactivity or a measurement is to be looked at, if nothing else happens.
    pub fn next_check(&self, now: Duration, config: &Config) -> Option<Duration> {
        let inactivity = self.inactivity.map(|inactivity| inactivity.due(now));
        let measurements = self.measurements.due(&self.rules, now, config);
        let due = inactivity.into_iter().chain(measurements).min();
        let due = match self.has_many_reports() {
            true => Some(now + config.t1),
            false => due.map(|due| due.max(now + SHORTEST_WAIT)),
        };
        let delayed = self.delayed.as_ref().map(|(due, _)| *due);
        due.into_iter().chain(delayed).min()
    }
}
