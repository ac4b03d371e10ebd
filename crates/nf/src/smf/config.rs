//! What an SMF is configured with.

use crate::kit::Duration;
use pith_types::{Ambr, Dnn, Snssai, Tac};
use std::net::Ipv4Addr;

/// A data network that the SMF serves.
#[derive(Debug, Clone)]
pub struct DataNetwork {
    /// Its name.
    pub dnn: Dnn,
    /// The slice in which it is served.
    pub snssai: Snssai,
    /// UE addresses: network and prefix length, 8 to 30.
    pub pool: (Ipv4Addr, u8),
    /// Addresses at the pool's beginning that no UE gets: the network's and the gateway's.
    pub reserved: u32,
    /// DNS servers, told to UEs that ask.
    pub dns: Vec<Ipv4Addr>,
    /// Largest packet that a UE may send, in octets.
    pub mtu: u16,
    /// Session-AMBR where the subscription has none.
    pub ambr: Ambr,
}

/// Addresses: network and prefix length.
pub type Network = (Ipv4Addr, u8);

/// What a UPF is for (TS 23.501 6.3.3.3). `None` means all.
#[derive(Debug, Clone)]
pub struct UpfService {
    /// Its name, as N4 knows it.
    pub name: String,
    /// Data networks that its N6 leads to.
    pub data_networks: Option<Vec<Dnn>>,
    /// Slices.
    pub slices: Option<Vec<Snssai>>,
    /// Tracking areas whose gNBs reach its N3.
    pub tracking_areas: Option<Vec<Tac>>,
    /// The lowest goes first.
    pub priority: u16,
    /// How many sessions it gets beside others of its priority, 1 to 1000.
    pub weight: u16,
    /// UE addresses that only its N6 leads to, by data network: pool, and how many at its beginning no UE gets.
    pub pools: Vec<(Dnn, Network, u32)>,
}

impl UpfService {
    /// A UPF for everything.
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

/// Packets that leave a session at another UPF than its anchor (TS 23.501 5.6.4.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breakout {
    /// Of which data network's sessions.
    pub dnn: Dnn,
    /// The UPF that is uplink classifier and local anchor.
    pub upf: String,
    /// Destinations, one at least.
    pub destinations: Vec<Network>,
}

/// The SMF's configuration.
#[derive(Debug, Clone)]
pub struct SmfConfig {
    /// Data networks.
    pub data_networks: Vec<DataNetwork>,
    /// What UPFs are for; one that is not among them is for everything.
    pub upfs: Vec<UpfService>,
    /// Local breakout at establishment; of those of a data network the first that can be had is taken.
    pub breakouts: Vec<Breakout>,
    /// How many shards cut the address pools among them.
    pub shards: u8,
    /// PDU SESSION MODIFICATION COMMAND unanswered (TS 24.501 table 10.3.2).
    pub t3591: Duration,
    /// PDU SESSION RELEASE COMMAND unanswered (TS 24.501 table 10.3.2).
    pub t3592: Duration,
    /// How often a command is sent again before the SMF gives up (TS 24.501 6.3.3.5).
    pub retransmissions: u8,
    /// How long another NF, the UPF or the gNB may take in an establishment.
    pub guard: Duration,
    /// How long a path that was left is kept for packets on their way.
    pub path_grace: Duration,
}

impl SmfConfig {
    /// The data network of that name in that slice.
    pub(super) fn network(&self, dnn: &Dnn, snssai: &Snssai) -> Option<&DataNetwork> {
        self.data_networks.iter().find(|network| network.dnn == *dnn && network.snssai == *snssai)
    }
}
