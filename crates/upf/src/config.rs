//! What the operator says of a UPF-C, and the limits it keeps.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use pith_pfcp::ie::{NodeId, NtpSeconds};

use crate::contract::{AddressRange, Rates};
use crate::predefined::PredefinedRules;
use crate::reach::PermittedSmf;

/// Settings of a UPF-C.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who this UPF is to its SMFs.
    pub node_id: NodeId,
    /// The address of its PFCP entity, as it stands in UP F-SEIDs.
    pub n4: IpAddr,
    /// The addresses of its GTP-U entity, as they stand in F-TEIDs.
    pub n3: GtpuAddress,
    /// Seconds from 1970 to the point that all `now`s count from: the Recovery Time Stamp. Must differ between runs.
    pub started: u64,
    /// T1: how long to wait for a response before the request is sent again (TS 29.244 6.4).
    pub t1: Duration,
    /// N1: how often a request is sent in all (TS 29.244 6.4).
    pub n1: u32,
    /// How long after one heartbeat the next is sent to an SMF.
    pub heartbeat_interval: Duration,
    /// How long the sessions of an SMF that does not answer heartbeats live on.
    pub path_failure_retention: Duration,
    /// How long a response is kept to answer duplicates of its request with; at least the peers' T1 times N1.
    pub response_retention: Duration,
    /// SMFs that may use this UPF; what others send is refused.
    pub smfs: Vec<PermittedSmf>,
    /// Most associations: what an SMF that is not known yet is refused beyond.
    pub max_associations: usize,
    /// Most associations with SMFs at one address: each has a Node ID of its own.
    pub max_associations_of_peer: usize,
    /// Most sessions.
    pub max_sessions: usize,
    /// Most sessions of SMFs at one address.
    pub max_sessions_of_peer: usize,
    /// Most requests to an address that wait for their responses: beyond, reports wait until some are answered.
    pub max_requests_to_peer: usize,
    /// Most rules of a kind in a session.
    pub max_rules: usize,
    /// Addresses that UEs may have; of a family without a pool, any that is no other's.
    pub ue_pools: Vec<AddressRange>,
    /// Addresses of the UPF beside those of N3 and N4: its gateways in the pools.
    pub own_addresses: Vec<IpAddr>,
    /// Names of the networks of N6, as Network Instances name them.
    pub networks: Vec<String>,
    /// Rules that SMFs may activate by name.
    pub predefined: PredefinedRules,
    /// What guaranteed bit rates may sum up to, each way; `None`: no bound is known.
    pub guaranteed: Option<Rates>,
}

/// Where GTP-U peers reach the UPF; at least one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GtpuAddress {
    /// By IPv4.
    pub v4: Option<Ipv4Addr>,
    /// By IPv6.
    pub v6: Option<Ipv6Addr>,
}

impl Config {
    /// The usual settings of a UPF whose PFCP entity is at `n4` and whose GTP-U entity at `n3`. No SMF is permitted yet.
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
            max_associations: 256,
            max_associations_of_peer: 4,
            max_sessions: 1_000_000,
            max_sessions_of_peer: 1_000_000,
            max_requests_to_peer: 65_536,
            max_rules: 256,
            ue_pools: Vec::new(),
            own_addresses: Vec::new(),
            networks: Vec::new(),
            predefined: PredefinedRules::default(),
            guaranteed: None,
        }
    }

    /// The UTC time `now` after the start.
    pub(crate) fn time(&self, now: Duration) -> NtpSeconds {
        NtpSeconds::from_unix(self.started.saturating_add(now.as_secs()))
    }

    /// The Recovery Time Stamp.
    pub(crate) fn recovery_time_stamp(&self) -> NtpSeconds {
        self.time(Duration::ZERO)
    }
}
