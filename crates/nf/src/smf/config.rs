//! The SMF's configuration.

use super::pool::contains;
use crate::kit::{Addressing, Duration, IpNetwork, overlap};
use pith_types::{Ambr, Dnn, Snssai, Tac};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// A data network that the SMF serves.
#[derive(Debug, Clone)]
pub struct DataNetwork {
    /// Its name.
    pub dnn: Dnn,
    /// The slice in which it is served.
    pub snssai: Snssai,
    /// UE addresses: network and prefix length, 8 to 30.
    pub pool: (Ipv4Addr, u8),
    /// IPv6 prefixes of sessions, each of 64 bits, or shorter with `delegation` (TS 23.501 5.8.2.2.1): network, whose other bits are 0, and prefix length, 33 to 60; `None`: the data
    /// network has no IPv6.
    pub pool6: Option<(Ipv6Addr, u8)>,
    /// Bits of prefix delegation, 0 to 16, for a /64 to a /48 of the pool for each session (TS 23.501 5.8.2.2.4).
    pub delegation: u8,
    /// Addresses at the pool's beginning that no UE gets: the network's and the gateway's.
    pub reserved: u32,
    /// Ranges of static addresses (TS 23.501 5.8.2.2.1): parts of the data network's pools, or of UPFs' pools for it, of which no
    /// address is allocated dynamically.
    pub static_ranges: Vec<IpNetwork>,
    /// DNS servers, sent to UEs that request them (protocol configuration options).
    pub dns: Vec<IpAddr>,
    /// P-CSCFs of an IMS, sent to UEs that request them (TS 23.228 5.1.1.2; protocol configuration options).
    pub p_cscf: Vec<IpAddr>,
    /// Largest packet that a UE may send, in octets.
    pub mtu: u16,
    /// Session-AMBR where the subscription has none.
    pub ambr: Ambr,
    /// It is a local area data network: the AMF says whether a UE is in its service area (TS 23.501 5.6.5).
    pub is_ladn: bool,
}

/// A range of addresses: network and prefix length.
pub type Network = (Ipv4Addr, u8);

/// What a UPF serves, for UPF selection (TS 23.501 6.3.3.3). `None` means all.
#[derive(Debug, Clone)]
pub struct UpfService {
    /// The UPF's name in the configuration of N4.
    pub name: String,
    /// Data networks that its N6 leads to.
    pub data_networks: Option<Vec<Dnn>>,
    /// Slices that it serves.
    pub slices: Option<Vec<Snssai>>,
    /// Tracking areas whose gNBs reach its N3.
    pub tracking_areas: Option<Vec<Tac>>,
    /// UPFs with the lowest value are preferred.
    pub priority: u16,
    /// Its share of the sessions among UPFs of the same priority, 1 to 1000.
    pub weight: u16,
    /// Pools of UE addresses that are routed to this UPF's N6 only: data network, pool, and the number of addresses at the
    /// pool's beginning that are not allocated.
    pub pools: Vec<(Dnn, Network, u32)>,
}

impl UpfService {
    /// A UPF that serves all data networks, slices and tracking areas.
    pub fn of_all(name: &str) -> Self {
        Self {
            name: name.into(),
            data_networks: None,
            slices: None,
            tracking_areas: None,
            priority: 100,
            weight: 1,
            pools: Vec::new(),
        }
    }
}

/// Local breakout: packets that leave a session at another UPF than its anchor (TS 23.501 5.6.4.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breakout {
    /// The data network whose sessions have the breakout.
    pub dnn: Dnn,
    /// The UPF that is uplink classifier and local anchor.
    pub upf: String,
    /// Destinations, one at least.
    pub destinations: Vec<Network>,
}

/// Emergency sessions: the Emergency Configuration Data of the SMF (TS 23.501 5.16.4.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmergencyServices {
    /// Their data network.
    pub dnn: Dnn,
    /// Their slice.
    pub snssai: Snssai,
    /// 5QI of the default flow.
    pub five_qi: u8,
    /// ARP priority level of the default flow, 1 to 15.
    pub arp_priority: u8,
}

/// The SMF's configuration.
#[derive(Debug, Clone)]
pub struct SmfConfig {
    /// Data networks.
    pub data_networks: Vec<DataNetwork>,
    /// What each UPF serves; a UPF without an entry serves everything.
    pub upfs: Vec<UpfService>,
    /// Names of the UPFs that the gateway associates; `None`: any. A restored session whose UPF is no longer one of them ends.
    pub peers: Option<Vec<String>>,
    /// Local breakouts at establishment. A session gets the first one of its data network whose UPF is available and serves
    /// the UE's tracking area and slice.
    pub breakouts: Vec<Breakout>,
    /// Time until an unanswered PDU SESSION MODIFICATION COMMAND is retransmitted (TS 24.501 table 10.3.2).
    pub t3591: Duration,
    /// Time until an unanswered PDU SESSION RELEASE COMMAND is retransmitted (TS 24.501 table 10.3.2).
    pub t3592: Duration,
    /// Maximum number of retransmissions of these commands (TS 24.501 6.3.2.5, 6.3.3.5).
    pub retransmissions: u8,
    /// RQ timer of a UE in seconds, if the PCF has none: how long a QoS rule lives that it has derived (TS 23.501 5.7.5.3).
    pub rq_timer: u32,
    /// Time limit for an answer of another NF, a UPF or the gNB: the guard timer.
    pub guard: Duration,
    /// How long a UPF that left the path keeps the session, for packets in transit.
    pub path_grace: Duration,
    /// Emergency sessions; `None`: they are refused.
    pub emergency: Option<EmergencyServices>,
    /// Blocks of ids pass between this SMF and others of its set.
    pub shares_blocks: bool,
    /// The NF Set of this SMF, if it is in one (TS 23.003 28.12).
    pub set_id: Option<Arc<str>>,
}

impl SmfConfig {
    /// The data network with this DNN in this slice.
    pub(super) fn network(&self, dnn: &Dnn, snssai: &Snssai) -> Option<&DataNetwork> {
        self.data_networks.iter().find(|network| network.dnn == *dnn && network.snssai == *snssai)
    }

    /// Whether an address is in a pool of this data network in this slice: one of its own, or that of a UPF. Rules of packet filters and
    /// routes go by pools.
    pub(super) fn has_address(&self, dnn: &Dnn, snssai: &Snssai, address: IpAddr) -> bool {
        let Some(network) = self.network(dnn, snssai) else { return false };
        self.pools(network).any(|(pool, _)| contains(pool, address))
    }

    /// The pools of a data network and those of UPFs for it, with the number of addresses at their beginnings that no UE gets.
    fn pools<'a>(&'a self, network: &'a DataNetwork) -> impl Iterator<Item = (IpNetwork, u32)> {
        let of_network = std::iter::once(((IpAddr::V4(network.pool.0), network.pool.1), network.reserved));
        let prefixes = network.pool6.map(|(prefix, length)| ((IpAddr::V6(prefix), length), 0));
        let of_upfs = self.upfs.iter().flat_map(|upf| &upf.pools).filter(|(name, ..)| *name == network.dnn);
        let of_upfs = of_upfs.map(|(_, (pool, length), reserved)| ((IpAddr::V4(*pool), *length), *reserved));
        of_network.chain(prefixes).chain(of_upfs)
    }

    /// Whether an address of a data network is for static use only.
    pub(super) fn is_static(&self, network: &DataNetwork, address: IpAddr) -> bool {
        network.static_ranges.iter().any(|range| contains(*range, address))
            && self.is_assignable(network, address)
    }

    /// Whether it is in a pool, and is not the network's address, the gateway's or the broadcast address there.
    fn is_assignable(&self, network: &DataNetwork, address: IpAddr) -> bool {
        let is_at_end = |(pool, length): IpNetwork, reserved: u32| match (pool, address) {
            (IpAddr::V4(pool), IpAddr::V4(v4)) => {
                let last = u32::MAX.checked_shr(length.into()).unwrap_or(0);
                let position = u32::from(v4) & last;
                position < reserved || position == last || v4 == pool
            }
            (pool, address) => pool == address,
        };
        self.pools(network).any(|(pool, reserved)| contains(pool, address) && !is_at_end(pool, reserved))
    }

    /// Checks that a session in this data network can have these static addresses and framed routes; the error says why not.
    pub(super) fn check_addressing(
        &self,
        network: &DataNetwork,
        addressing: &Addressing,
    ) -> Result<(), String> {
        let outside = |address: IpAddr| {
            format!(
                "the subscribed static address {address} is in none of the 'static_addresses' of '{}'",
                network.dnn
            )
        };
        if let Some(v4) = addressing.v4.map(IpAddr::V4).filter(|v4| !self.is_static(network, *v4)) {
            return Err(outside(v4));
        }
        if let Some((prefix, length)) = addressing.v6 {
            let expected = 64 - network.delegation;
            if length != expected {
                return Err(format!(
                    "the subscribed static prefix {prefix}/{length} has another length than the {expected} bits of '{}'",
                    network.dnn
                ));
            }
            if !self.is_static(network, prefix.into()) {
                return Err(outside(prefix.into()));
            }
        }
        let pools =
            || self.data_networks.iter().flat_map(|network| self.pools(network)).map(|(pool, _)| pool);
        let taken = addressing.framed_routes.iter().find(|route| pools().any(|pool| overlap(pool, **route)));
        match taken {
            None => Ok(()),
            Some((address, prefix)) => {
                Err(format!("the subscribed framed route {address}/{prefix} has addresses of a pool of UEs"))
            }
        }
    }
}
