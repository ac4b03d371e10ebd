//! The settings of a UPF-C, and its limits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use pith_pfcp::ie::{NodeId, NtpSeconds};

use crate::contract::{AddressRange, Rates};
use crate::predefined::PredefinedRules;
use crate::reach::{HostAddresses, PermittedSmf};

/// Settings of a UPF-C.
#[derive(Clone, Debug)]
pub struct Config {
    /// This UPF's Node ID.
    pub node_id: NodeId,
    /// The address of its PFCP entity, used in UP F-SEIDs.
    pub n4: IpAddr,
    /// The addresses of its GTP-U entity, used in F-TEIDs.
    pub n3: GtpuAddress,
    /// Unix time at which all `now`s start: the Recovery Time Stamp. Must differ between runs.
    pub started: u64,
    /// T1: time before a request without response is retransmitted (TS 29.244 6.4).
    pub t1: Duration,
    /// N1: number of transmissions of a request (TS 29.244 6.4).
    pub n1: u32,
    /// Time between two heartbeats to an SMF.
    pub heartbeat_interval: Duration,
    /// Time for which the sessions of an SMF that does not answer heartbeats are retained.
    pub path_failure_retention: Duration,
    /// Time for which a response is stored for duplicates of its request; at least the peers' T1 times N1.
    pub response_retention: Duration,
    /// SMFs that may use this UPF; requests of others are refused.
    pub smfs: Vec<PermittedSmf>,
    /// Names of SMF sets whose SMFs may take over each other's sessions (TS 29.244 5.22.3).
    pub smf_sets: Vec<String>,
    /// Maximum number of associations; further SMFs are refused.
    pub max_associations: usize,
    /// Maximum number of associations with SMFs at one address, each with its own Node ID.
    pub max_associations_of_peer: usize,
    /// Maximum number of sessions.
    pub max_sessions: usize,
    /// Maximum number of sessions of SMFs at one address.
    pub max_sessions_of_peer: usize,
    /// Maximum number of pending requests to an address; further reports are delayed.
    pub max_requests_to_peer: usize,
    /// Maximum number of rules of a kind in a session.
    pub max_rules: usize,
    /// Networks of gNBs and other UPFs; if empty, tunnels may lead to any host.
    pub radios: Vec<AddressRange>,
    /// Other networks of the core: no framed route may have an address of them.
    pub core_networks: Vec<AddressRange>,
    /// Address pools of UEs; without a pool for a family, any address of it that is not reserved.
    pub ue_pools: Vec<AddressRange>,
    /// Addresses of the UPF in addition to those of N3 and N4: its gateways in the pools.
    pub own_addresses: Vec<IpAddr>,
    /// The host's addresses in addition to those, as far as known.
    pub host: HostAddresses,
    /// Names of N6 networks, as contained in Network Instances.
    pub networks: Vec<String>,
    /// Rules that SMFs may activate by name.
    pub predefined: PredefinedRules,
    /// Limit of the sum of guaranteed bit rates, for each direction; `None`: no limit.
    pub guaranteed: Option<Rates>,
}

/// The UPF's GTP-U addresses; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GtpuAddress {
    /// By IPv4.
    pub v4: Option<Ipv4Addr>,
    /// By IPv6.
    pub v6: Option<Ipv6Addr>,
}

impl Config {
    /// The defaults for a UPF with PFCP at `n4` and GTP-U at `n3`. No SMF is permitted yet.
    pub fn new(n4: IpAddr, n3: GtpuAddress, started: u64) -> Self {
        Config {
            node_id: n4.into(),
            n4,
            n3,
            started,
            t1: Duration::from_secs(3),
            n1: 3,
            heartbeat_interval: Duration::from_secs(10),
            path_failure_retention: Duration::from_secs(60),
            response_retention: Duration::from_secs(15),
            smfs: Vec::new(),
            smf_sets: Vec::new(),
            max_associations: 256,
            max_associations_of_peer: 4,
            max_sessions: 1_000_000,
            max_sessions_of_peer: 1_000_000,
            max_requests_to_peer: 65_536,
            max_rules: 256,
            radios: Vec::new(),
            core_networks: Vec::new(),
            ue_pools: Vec::new(),
            own_addresses: Vec::new(),
            host: HostAddresses::default(),
            networks: Vec::new(),
            predefined: PredefinedRules::default(),
            guaranteed: None,
        }
    }

    /// The UTC time at `now`.
    pub(crate) fn time(&self, now: Duration) -> NtpSeconds {
        NtpSeconds::from_unix(self.started.saturating_add(now.as_secs()))
    }

    /// The Recovery Time Stamp.
    pub(crate) fn recovery_time_stamp(&self) -> NtpSeconds {
        self.time(Duration::ZERO)
    }
}
