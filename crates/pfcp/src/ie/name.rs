//! Names of nodes, networks and applications.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::IeFault;
use crate::group::Ie;
use crate::ie::address::{ipv4, ipv6};
use crate::ie::macros::octets_ie;
use crate::wire::{Reader, put_octets16};

octets_ie! {
    /// Network Instance: a data network, or an interface's addressing domain, by name (TS 29.244 8.2.4).
    pub struct NetworkInstance;
    /// APN/DNN, in labels, with network and operator identifier (TS 29.244 8.2.117).
    pub struct ApnDnn;
    /// Application ID: identifies a detection filter of the UP function (TS 29.244 8.2.6).
    pub struct ApplicationId;
    /// Application Instance ID (TS 29.244 8.2.60).
    pub struct ApplicationInstanceId;
    /// The name in Activate or Deactivate Predefined Rules and in Predefined Rules Name (TS 29.244 8.2.72, 8.2.73, 8.2.205).
    pub struct PredefinedRulesName;
    /// Framed-Route, as the RADIUS attribute: text (TS 29.244 8.2.109).
    pub struct FramedRoute;
    /// Framed-IPv6-Route, as the RADIUS attribute: text (TS 29.244 8.2.111).
    pub struct FramedIpv6Route;
    /// Data Network Access Identifier (TS 29.244 8.2.161).
    pub struct DataNetworkAccessIdentifier;
    /// Group Id: sessions that are restored together (TS 29.244 8.2.198).
    pub struct GroupId;
    /// Event Notification URI (TS 29.244 8.2.202).
    pub struct EventNotificationUri;
    /// Notification Correlation ID (TS 29.244 8.2.203).
    pub struct NotificationCorrelationId;
}

/// Splits a dotted name into labels of at most 63 octets, without the final zero (TS 23.003 9.1, RFC 1035
/// 3.1).
fn labels(name: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len() + 1);
    for label in name.split('.').filter(|label| !label.is_empty()) {
        let label = label.as_bytes();
        let label = label.get(..label.len().min(63)).unwrap_or_default();
        out.push(label.len() as u8);
        out.extend(label);
    }
    out
}

/// Joins labels with dots; `None` if the octets are not exactly a sequence of labels, or a label contains a
/// dot.
fn joined_labels(mut octets: &[u8]) -> Option<String> {
    let mut name = String::new();
    while let Some((&length, rest)) = octets.split_first() {
        let (label, rest) = rest.split_at_checked(length.into()).filter(|_| (1..64).contains(&length))?;
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(std::str::from_utf8(label).ok().filter(|label| !label.contains('.'))?);
        octets = rest;
    }
    Some(name)
}

/// A name in labels or in plain text.
fn readable(octets: &[u8]) -> Cow<'_, str> {
    joined_labels(octets).map_or_else(|| String::from_utf8_lossy(octets), Cow::Owned)
}

impl NetworkInstance {
    /// The data network `dnn`, in labels like an APN.
    pub fn from_dnn(dnn: &str) -> Self {
        NetworkInstance(labels(dnn))
    }

    /// The dotted name, received in labels or, as some functions send it, as plain text.
    pub fn name(&self) -> Cow<'_, str> {
        readable(&self.0)
    }
}

impl ApnDnn {
    /// The data network `dnn`.
    pub fn from_dnn(dnn: &str) -> Self {
        ApnDnn(labels(dnn))
    }

    /// The dotted name.
    pub fn name(&self) -> Cow<'_, str> {
        readable(&self.0)
    }
}

/// Node ID: the unique identifier of a node (TS 29.244 8.2.38).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeId {
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// A fully qualified domain name, dotted.
    Fqdn(String),
}

impl From<IpAddr> for NodeId {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => NodeId::Ipv4(address),
            IpAddr::V6(address) => NodeId::Ipv6(address),
        }
    }
}

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NodeId::Ipv4(address) => address.fmt(f),
            NodeId::Ipv6(address) => address.fmt(f),
            NodeId::Fqdn(name) => name.fmt(f),
        }
    }
}

fn fqdn(value: &mut Reader<'_>) -> Result<String, IeFault> {
    let name = joined_labels(value.take_rest()).filter(|name| !name.is_empty());
    name.ok_or(IeFault::Incorrect("a domain name is not a sequence of labels"))
}

impl Ie for NodeId {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        match value.u8()? & 0x0f {
            0 => ipv4(value).map(NodeId::Ipv4),
            1 => ipv6(value).map(NodeId::Ipv6),
            2 => fqdn(value).map(NodeId::Fqdn),
            _ => Err(IeFault::Incorrect("the Node ID type is not defined")),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            NodeId::Ipv4(address) => {
                out.push(0);
                out.extend(address.octets());
            }
            NodeId::Ipv6(address) => {
                out.push(1);
                out.extend(address.octets());
            }
            NodeId::Fqdn(name) => {
                out.push(2);
                out.extend(labels(name));
            }
        }
    }
}

/// SMF Set ID: a domain name in labels (TS 29.244 8.2.131).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SmfSetId(pub Vec<u8>);

impl SmfSetId {
    /// The set with that name, in labels.
    pub fn of_name(name: &str) -> Self {
        SmfSetId(labels(name))
    }

    /// The dotted name, received in labels or, as some functions send it, as plain text.
    pub fn name(&self) -> Cow<'_, str> {
        readable(&self.0)
    }
}

impl Ie for SmfSetId {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let _spare = value.u8()?;
        Ok(SmfSetId(value.take_rest().to_vec()))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(0);
        out.extend(&self.0);
    }
}

/// UE IP Address Pool Identity (TS 29.244 8.2.128).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UeIpAddressPoolIdentity(pub Vec<u8>);

impl Ie for UeIpAddressPoolIdentity {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        value.octets16().map(UeIpAddressPoolIdentity)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_octets16(out, &self.0);
    }
}
