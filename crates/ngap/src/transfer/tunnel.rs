//! Ends of N3 tunnels (TS 38.413 9.3.2.2).

use super::bad;
use crate::error::NgapError;
use oxirush_ngap::BitString;
use oxirush_ngap::ngap as wire;
use pith_types::Teid;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An end of an N3 tunnel (TS 38.413 9.3.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tunnel {
    /// The peer's address.
    pub address: IpAddr,
    /// The peer's TEID.
    pub teid: Teid,
}

/// A gNB's end of an N3 tunnel, and the QoS flows whose downlink packets it takes (TS 38.413 9.3.2.8).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FlowTunnel {
    /// The gNB's end.
    pub tunnel: Tunnel,
    /// QFIs, at most 64.
    pub flows: Vec<u8>,
}

/// A tunnel of GTP-U; of a node with both address families, the IPv4 one (TS 38.414 5.1).
pub(super) fn address_and_teid(info: &wire::UPTransportLayerInformation<'_>) -> Option<Tunnel> {
    let wire::UPTransportLayerInformation::gTPTunnel(tunnel) = info else { return None };
    let octets = tunnel.transport_layer_address.0.as_octets();
    let address = match octets.len() {
        4 | 20 => IpAddr::from(*octets.first_chunk::<4>()?),
        16 => IpAddr::from(*octets.first_chunk::<16>()?),
        _ => return None,
    };
    Some(Tunnel { address, teid: Teid(u32::from_be_bytes(tunnel.gtp_teid.0)) })
}

pub(super) fn write(tunnel: &Tunnel) -> wire::UPTransportLayerInformation<'static> {
    let octets = match tunnel.address {
        IpAddr::V4(address) => Ipv4Addr::octets(&address).to_vec(),
        IpAddr::V6(address) => Ipv6Addr::octets(&address).to_vec(),
    };
    let address = wire::TransportLayerAddress(BitString::from_octets(octets));
    let teid = wire::GTPTEID(tunnel.teid.0.to_be_bytes());
    wire::UPTransportLayerInformation::gTPTunnel(wire::GTPTunnel::new(address, teid, None))
}

/// The tunnel, which has to be one.
pub(super) fn read(info: &wire::UPTransportLayerInformation<'_>) -> Result<Tunnel, NgapError> {
    address_and_teid(info).ok_or_else(|| bad("no N3 tunnel of GTP-U"))
}
