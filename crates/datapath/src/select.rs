//! Selects the packet path of a configuration.

use crate::automatic::{self, Obstacle};
use crate::boundary::Host;
use crate::config::{DatapathConfig, PathChoice, StartError, UePool};
use crate::fib::Detour;
use crate::handover::{Handles, QueuedOctets};
use crate::placement;
use crate::portable::PortableDatapath;
use crate::rules::{Clock, Pools};
use crate::xdp::{StartedPath, XdpDatapath, retire_predecessor};
use pith_upf::contract::{
    Counters, Datapath, DropReason, Event, Session, SessionId, SessionUsage, TracedPacket, Tunnel, UeAddress,
};
use pith_upf::qos::FlowUsage;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::thread;

/// A running datapath, on the path that the configuration and the system permit.
#[derive(Debug)]
pub enum UserPlane {
    /// GTP-U socket and TUN alone.
    Portable(PortableDatapath),
    /// XDP in front of GTP-U socket and TUN.
    Xdp(Box<XdpDatapath>),
}

/// Which path runs, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathReport {
    /// `xdp` or `portable`.
    pub path: &'static str,
    /// Where it runs, or why XDP does not run.
    pub detail: String,
    /// What would make it faster.
    pub faster: Option<String>,
    /// Whether packets from and to the data network take the kernel's forwarding now.
    pub detour: Detour,
}

impl PathReport {
    fn of(xdp: &XdpDatapath, config: &DatapathConfig) -> Self {
        let interfaces = config.interfaces.join(", ");
        let hook = if xdp.is_native() { "in the driver" } else { "after the driver (generic)" };
        let nat = if xdp.translates() { ", with NAT" } else { "" };
        let queued = if xdp.uses_af_xdp() { "AF_XDP" } else { "the kernel" };
        let spread = if config.spread { ", uplink over all CPUs" } else { "" };
        let placements = placement::of(&config.interfaces);
        let places: String = placements.iter().map(|placement| format!("; {placement}")).collect();
        let detail = format!("{hook} of {interfaces}{nat}{spread}; queued packets by {queued}{places}");
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let by_kernel = !xdp.pools_by_kernel().is_empty();
        let faster = match (xdp.is_native(), by_kernel) {
            (false, _) => Some("'upf.xdp: native', if the driver supports it".to_owned()),
            (true, true) => Some("networks without firewall, routes, MSS and NAT66".to_owned()),
            (true, false) => placement::remedy(&placements, cpus, config.spread),
        };
        Self { path: "xdp", detail, faster, detour: xdp.detour() }
    }

    fn portable(obstacle: Option<Obstacle>) -> Self {
        let Obstacle { reason, remedy } = obstacle.unwrap_or_else(|| Obstacle {
            reason: "as configured".to_owned(),
            remedy: Some("'upf.datapath: auto'".to_owned()),
        });
        Self { path: "portable", detail: reason, faster: remedy, detour: Detour::default() }
    }
}

impl fmt::Display for PathReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path == "xdp" {
            write!(f, "XDP {}", self.detail)?;
        } else {
            write!(f, "portable path (TUN): {}", self.detail)?;
        }
        if let Some(reason) = self.detour.reason() {
            write!(f, "; from and to N6 by the kernel: {reason}")?;
        }
        self.faster.as_ref().map_or(Ok(()), |faster| write!(f, "; faster: {faster}"))
    }
}

impl UserPlane {
    /// Starts the configured path. Logs the path and the reason.
    pub fn start(config: DatapathConfig) -> Result<Self, StartError> {
        Ok(Self::start_and_report(config)?.0)
    }

    /// The same, with the reason.
    pub fn start_and_report(config: DatapathConfig) -> Result<(Self, PathReport), StartError> {
        let (user_plane, report) = match prepare(config.clone()) {
            Ok(of_xdp) => Self::start_fast(&of_xdp, &config)?,
            Err(obstacle) if config.path == PathChoice::Xdp => {
                return Err(StartError::XdpSettings(
                    obstacle.map_or_else(String::new, |why| why.to_string()),
                ));
            }
            Err(obstacle) => {
                let portable = Self::portable(PortableDatapath::start(config.clone())?, &config)?;
                (portable, PathReport::portable(obstacle))
            }
        };
        tracing::info!("user plane: {report}");
        Ok((user_plane, report))
    }

    /// `configured`: without the interfaces of the automatic choice. Another UPF may run XDP on these, which does not concern
    /// the portable path.
    fn start_fast(
        config: &DatapathConfig,
        configured: &DatapathConfig,
    ) -> Result<(Self, PathReport), StartError> {
        match XdpDatapath::start(config)? {
            StartedPath::Xdp(xdp) => {
                let report = PathReport::of(&xdp, config);
                log_networks_by_kernel(xdp.pools_by_kernel());
                Ok((Self::Xdp(xdp), report))
            }
            StartedPath::Portable(_, error) if config.path == PathChoice::Xdp => Err(error.into()),
            StartedPath::Portable(mut portable, error) => {
                portable.bypass_forwarding(configured);
                let report = PathReport::portable(Some(Obstacle { reason: error.to_string(), remedy: None }));
                Ok((Self::portable(portable, configured)?, report))
            }
        }
    }

    /// The portable path alone, after detaching a previous process's program, which packets would otherwise
    /// take.
    fn portable(portable: PortableDatapath, config: &DatapathConfig) -> Result<Self, StartError> {
        retire_predecessor(config)?;
        Ok(Self::Portable(portable))
    }

    /// Prepares to succeed the datapath of a running process, on the same path. No packet is handled, and nothing is changed in the
    /// system, until [`activate`](Self::activate).
    pub fn take_over(config: &DatapathConfig, handles: Handles) -> Result<(Self, PathReport), StartError> {
        let has_xdp = !handles.links.is_empty();
        let (user_plane, report) = match prepare(config.clone()) {
            Ok(of_xdp) if has_xdp => {
                let xdp = XdpDatapath::take_over(&of_xdp, handles)?;
                let report = PathReport::of(&xdp, &of_xdp);
                (Self::Xdp(Box::new(xdp)), report)
            }
            Err(obstacle) if has_xdp => {
                let reason = obstacle.map(|obstacle| format!(" ({obstacle})")).unwrap_or_default();
                return Err(StartError::TakeOver(format!("the packet path would be another one{reason}")));
            }
            _ if config.path == PathChoice::Xdp => {
                return Err(StartError::TakeOver(
                    "the packet path would be another one ('upf.datapath')".into(),
                ));
            }
            prepared => {
                let workers = DatapathConfig { workers: handles.workers.len(), ..config.clone() };
                let pools = Pools::on_heap(handles.workers.len());
                let clock = Clock::started_at(handles.clock);
                let portable = PortableDatapath::start_with(&workers, clock, pools, handles.workers)?;
                let obstacle = prepared
                    .err()
                    .unwrap_or_else(|| Some(Obstacle::new("as before the upgrade", "restart the UPF")));
                (Self::Portable(portable), PathReport::portable(obstacle))
            }
        };
        tracing::info!("user plane: {report}");
        Ok((user_plane, report))
    }

    /// Replaces the running process's XDP program, if there is one: this datapath then forwards.
    pub fn activate(&mut self) -> Result<(), StartError> {
        match self {
            Self::Portable(_) => Ok(()),
            Self::Xdp(xdp) => Ok(xdp.activate()?),
        }
    }

    /// Queues the packets that the former process had queued, and reads from sockets and TUN from now on.
    pub fn go_on(&mut self, packets: Vec<QueuedOctets>) -> io::Result<()> {
        match self {
            Self::Portable(portable) => portable.resume(packets),
            Self::Xdp(xdp) => xdp.go_on(packets),
        }
    }

    /// Renews what the former process has set up in the system, and restores the system at the end; `former` are the values of
    /// [`Handles::settings`].
    pub fn own_system(
        &mut self,
        config: &DatapathConfig,
        former: &[(String, String)],
    ) -> Result<(), StartError> {
        match self {
            Self::Portable(portable) => {
                let owned = portable.own_system(config, former);
                portable.bypass_forwarding(config);
                owned
            }
            Self::Xdp(xdp) => xdp.own_system(former),
        }
    }

    /// What a successor in another process needs. This datapath still runs.
    pub fn handles(&self) -> io::Result<Handles> {
        match self {
            Self::Xdp(xdp) => xdp.handles(),
            Self::Portable(portable) => Ok(Handles {
                clock: portable.clock().started(),
                workers: portable.worker_handles()?,
                links: Vec::new(),
                settings: portable.former_settings(),
                queueing: portable.queueing(),
            }),
        }
    }

    /// Reads nothing more from sockets and TUN, where packets wait; XDP still forwards.
    pub fn hold(&self) -> io::Result<()> {
        match self {
            Self::Portable(portable) => portable.hold(),
            Self::Xdp(xdp) => xdp.hold(),
        }
    }

    /// After the successor's activation: returns the queued packets. Afterwards the counters are final.
    pub fn drain(&mut self) -> io::Result<Vec<QueuedOctets>> {
        match self {
            Self::Portable(portable) => portable.drain(),
            Self::Xdp(xdp) => xdp.drain(),
        }
    }

    /// Handles packets again, because there is no successor; `packets` are those that it gave away.
    pub fn resume(&mut self, packets: Vec<QueuedOctets>) -> Result<(), StartError> {
        match self {
            Self::Portable(portable) => Ok(portable.resume(packets)?),
            Self::Xdp(xdp) => Ok(xdp.resume(packets)?),
        }
    }

    /// Ends without removing what the successor uses.
    pub fn leave(self) {
        match self {
            Self::Portable(portable) => portable.leave(),
            Self::Xdp(xdp) => xdp.leave(),
        }
    }

    /// Readable while events are pending for [`poll_events`](Datapath::poll_events).
    pub fn events_ready(&self) -> BorrowedFd<'_> {
        match self {
            Self::Portable(portable) => portable.events_ready(),
            Self::Xdp(xdp) => xdp.events_ready(),
        }
    }

    /// Whether sessions of the previous process may still be served (`DatapathConfig::pin`).
    pub fn succeeds(&self) -> bool {
        matches!(self, Self::Xdp(xdp) if xdp.succeeds())
    }

    /// Sets whether unknown TEIDs get Error Indications, unless sessions of the previous process are still served.
    pub fn refuse_unknown(&self, refuse: bool) {
        match self {
            Self::Portable(portable) => portable.refuse_unknown(refuse),
            Self::Xdp(xdp) => xdp.refuse_unknown(refuse),
        }
    }

    /// Ends the remaining sessions of the previous process.
    pub fn dismiss_predecessor(&mut self) {
        if let Self::Xdp(xdp) = self {
            xdp.dismiss_predecessor();
        }
    }

    /// Replaces the hosts that control this UPF; they are closed to UEs.
    pub fn set_controllers(&self, controllers: Vec<IpAddr>) {
        match self {
            Self::Portable(portable) => portable.set_controllers(controllers),
            Self::Xdp(xdp) => xdp.set_controllers(controllers),
        }
    }

    /// This host's current addresses; another `Arc` after each change.
    pub fn host(&self) -> Arc<Host> {
        match self {
            Self::Portable(portable) => portable.host(),
            Self::Xdp(xdp) => xdp.host(),
        }
    }

    /// Stops: packets in queues are still sent, then the system is restored.
    pub fn stop(self) {}

    fn path(&self) -> &dyn Datapath {
        match self {
            Self::Portable(portable) => portable,
            Self::Xdp(xdp) => &**xdp,
        }
    }

    fn path_mut(&mut self) -> &mut dyn Datapath {
        match self {
            Self::Portable(portable) => portable,
            Self::Xdp(xdp) => &mut **xdp,
        }
    }
}

/// Logs the data networks that the XDP path does not carry.
fn log_networks_by_kernel(pools: &[UePool]) {
    for pool in pools {
        let pool = format!("{}/{}", pool.gateway, pool.prefix);
        tracing::info!(
            pool,
            "user plane: portable path for this network, because the kernel applies its NAT, firewall, routes or MSS"
        );
    }
}

/// The configuration of the XDP path, or why it does not run; `None`: as configured.
fn prepare(config: DatapathConfig) -> Result<DatapathConfig, Option<Obstacle>> {
    if config.path == PathChoice::Portable {
        return Err(None);
    }
    let is_named = !config.interfaces.is_empty();
    if config.path == PathChoice::Xdp && !is_named {
        return Err(Some(Obstacle::new(
            "it needs the N3 and N6 interfaces",
            "name them in 'upf.interfaces'",
        )));
    }
    let has_none = config.pools.iter().all(|pool| config.is_only_by_kernel(*pool));
    if has_none && !config.pools.is_empty() {
        return Err(Some(Obstacle::new(
            "the kernel applies firewall, routes, MSS or NAT66 of all data networks",
            "remove these from a data network",
        )));
    }
    let config = if is_named { config } else { automatic::with_interfaces(&config).map_err(Some)? };
    let bypassed = if config.bypass_firewall { Vec::new() } else { automatic::bypassed_rules(&config) };
    if bypassed.is_empty() {
        return Ok(config);
    }
    let rules = bypassed.join(", ");
    if config.path == PathChoice::Xdp {
        tracing::warn!(
            "user plane: packets that XDP forwards bypass rules of this host's packet filter: {rules}"
        );
        return Ok(config);
    }
    let reason = format!("packets would bypass rules of this host's packet filter: {rules}");
    Err(Some(Obstacle::new(reason, "permit that by 'upf.bypass_firewall: true'")))
}

impl Datapath for UserPlane {
    fn install(&mut self, session: Arc<Session>) {
        self.path_mut().install(session);
    }

    fn remove(&mut self, session: SessionId) -> Option<SessionUsage> {
        self.path_mut().remove(session)
    }

    fn begin(&mut self, ue: UeAddress, is_restored: bool) {
        self.path_mut().begin(ue, is_restored);
    }

    fn discard_buffered(&mut self, session: SessionId) {
        self.path_mut().discard_buffered(session);
    }

    fn send_end_marker(&mut self, tunnel: &Tunnel) {
        self.path_mut().send_end_marker(tunnel);
    }

    fn usage(&self, session: SessionId) -> Option<SessionUsage> {
        self.path().usage(session)
    }

    fn add_usage(&mut self, session: SessionId, usage: &SessionUsage) {
        self.path_mut().add_usage(session, usage);
    }

    fn flows(&self, session: SessionId) -> Vec<FlowUsage> {
        self.path().flows(session)
    }

    fn trace(&mut self, session: SessionId, on: bool) {
        self.path_mut().trace(session, on);
    }

    fn poll_trace(&mut self, packets: &mut Vec<TracedPacket>) -> u64 {
        self.path_mut().poll_trace(packets)
    }

    fn count_dropped(&mut self, reason: DropReason) {
        self.path_mut().count_dropped(reason);
    }

    fn poll_events(&mut self, events: &mut Vec<Event>) {
        self.path_mut().poll_events(events);
    }

    fn counters(&self) -> Counters {
        self.path().counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::NetworkPolicy;

    #[test]
    fn settings_that_xdp_does_not_support_are_reported() {
        let bare = DatapathConfig { path: PathChoice::Xdp, ..DatapathConfig::default() };
        let named = DatapathConfig { interfaces: vec!["eth1".into()], ..bare.clone() };
        let policy = NetworkPolicy { mss: Some(1300), ..NetworkPolicy::none(named.pools[0]) };
        let limited = DatapathConfig { policies: vec![policy], ..named.clone() };
        assert!(UserPlane::start(bare).unwrap_err().to_string().contains("N3 and N6 interfaces"));
        assert!(UserPlane::start(limited).unwrap_err().to_string().contains("MSS"));
        assert_eq!(prepare(DatapathConfig { nat: true, ..named.clone() }).unwrap().interfaces, ["eth1"]);
    }
}
