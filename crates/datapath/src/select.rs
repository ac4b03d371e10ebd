//! Selects the packet path of a configuration.

use crate::boundary::Host;
use crate::config::{DatapathConfig, PathChoice, StartError, UePool};
use crate::portable::PortableDatapath;
use crate::xdp::{StartedPath, XdpDatapath, retire_predecessor};
use pith_upf::contract::{
    Counters, Datapath, DropReason, Event, Session, SessionId, SessionUsage, TracedPacket, Tunnel,
};
use pith_upf::qos::FlowUsage;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// A running datapath, on the path that the configuration and the system permit.
#[derive(Debug)]
pub enum UserPlane {
    /// GTP-U socket and TUN alone.
    Portable(PortableDatapath),
    /// XDP in front of GTP-U socket and TUN.
    Xdp(Box<XdpDatapath>),
}

impl UserPlane {
    /// Starts the configured path. If the choice is automatic, logs the path and the reason.
    pub fn start(config: DatapathConfig) -> Result<Self, StartError> {
        let obstacle = obstacle(&config);
        match (config.path, obstacle) {
            (PathChoice::Portable, _) => Self::portable(PortableDatapath::start(config.clone())?, &config),
            (PathChoice::Xdp, Some(obstacle)) => Err(StartError::XdpSettings(obstacle)),
            (PathChoice::Auto, Some(obstacle)) => {
                tracing::info!("user plane: portable path; the XDP path {obstacle}");
                Self::portable(PortableDatapath::start(config.clone())?, &config)
            }
            (choice, None) => Self::start_fast(&config, choice),
        }
    }

    fn start_fast(config: &DatapathConfig, choice: PathChoice) -> Result<Self, StartError> {
        match XdpDatapath::start(config)? {
            StartedPath::Xdp(xdp) => {
                let hook = if xdp.is_native() { "in the driver" } else { "after the driver (generic)" };
                let waiting = if xdp.uses_af_xdp() { "AF_XDP" } else { "the kernel" };
                let interfaces = config.interfaces.join(", ");
                tracing::info!(interfaces, "user plane: XDP path, {hook}; queued packets by {waiting}");
                log_networks_by_kernel(xdp.pools_by_kernel());
                Ok(Self::Xdp(xdp))
            }
            StartedPath::Portable(_, error) if choice == PathChoice::Xdp => Err(error.into()),
            StartedPath::Portable(portable, error) => {
                tracing::warn!(%error, "user plane: portable path, because XDP is not available");
                Self::portable(portable, config)
            }
        }
    }

    /// The portable path alone, after detaching a previous process's program, which packets would otherwise
    /// take.
    fn portable(portable: PortableDatapath, config: &DatapathConfig) -> Result<Self, StartError> {
        retire_predecessor(config)?;
        Ok(Self::Portable(portable))
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

/// Why a configuration cannot use the XDP path.
fn obstacle(config: &DatapathConfig) -> Option<&'static str> {
    if config.interfaces.is_empty() {
        return Some("needs the N3 and N6 interfaces ('upf.interfaces')");
    }
    let needs_kernel =
        !config.pools.is_empty() && config.pools.iter().all(|pool| config.is_only_by_kernel(*pool));
    needs_kernel
        .then_some("bypasses the kernel, which firewall, routes, MSS or NAT66 of all data networks need")
}

impl Datapath for UserPlane {
    fn install(&mut self, session: Arc<Session>) {
        self.path_mut().install(session);
    }

    fn remove(&mut self, session: SessionId) -> Option<SessionUsage> {
        self.path_mut().remove(session)
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
        assert_eq!(obstacle(&DatapathConfig { nat: true, ..named.clone() }), None);
        assert_eq!(obstacle(&named), None);
    }
}
