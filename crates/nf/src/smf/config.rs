//! What an SMF is configured with.

use crate::kit::Duration;
use pith_types::{Ambr, Dnn, Snssai};
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

/// The SMF's configuration.
#[derive(Debug, Clone)]
pub struct SmfConfig {
    /// Data networks.
    pub data_networks: Vec<DataNetwork>,
    /// How many shards cut the address pools among them.
    pub shards: u8,
    /// PDU SESSION RELEASE COMMAND unanswered (TS 24.501 table 10.3.2).
    pub t3592: Duration,
    /// How often a command is sent again before the SMF gives up (TS 24.501 6.3.3.5).
    pub retransmissions: u8,
    /// How long another NF, the UPF or the gNB may take in an establishment.
    pub guard: Duration,
}
