//! The records of a handover, as they are written. A field may be added in a later version of Pith if its absence has a meaning
//! (`serde(default)`); any other change needs another [`FORMAT`](super::FORMAT).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use pith_pfcp::ie::{DownlinkDataServiceInformation, NodeId, PdrId, Qfi};
use serde::{Deserialize, Serialize};

use super::micros;
use crate::contract::Volume;
use crate::load::Load;
use crate::session::{HeldPackets, Inactivity, Meter};

/// A record: the head comes first, the end last.
#[derive(Debug, Serialize, Deserialize)]
pub enum Record {
    Head(Head),
    Association(AssociationRecord),
    FormerAddress { node: Node, address: IpAddr },
    Session(Box<SessionRecord>),
    Request(RequestRecord),
    Response(ResponseRecord),
    End { associations: usize, sessions: usize },
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Head {
    /// Unix time at which all times start: the Recovery Time Stamp.
    pub started: u64,
    /// The Node ID, which the successor must have, too.
    pub node: Node,
    /// The last sequence number of a request.
    pub sequence: u32,
    pub load: Load,
}

/// A Node ID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Node {
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
    Fqdn(String),
}

#[derive(Debug, Serialize, Deserialize)]
pub struct AssociationRecord {
    /// Node ID, Recovery Time Stamp, features and set, as an Association Setup Request (TS 29.244 table 7.4.4.1-1).
    pub setup: Octets,
    pub address: SocketAddr,
    pub port: u16,
    /// The Recovery Time Stamp of heartbeats.
    pub recovery: Option<u32>,
    pub has_restarted: bool,
    #[serde(with = "micros::optional")]
    pub differed_at: Option<Duration>,
    #[serde(with = "micros::optional")]
    pub failed_since: Option<Duration>,
    #[serde(with = "micros::optional")]
    pub next_heartbeat: Option<Duration>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct SessionRecord {
    pub seid: u64,
    /// Node ID, CP F-SEID, FQ-CSIDs and rules as provisioned, as Session Modification Requests (TS 29.244 table 7.5.4.1-1): the
    /// first has all, unless that is too long for a message.
    pub provisioned: Vec<Octets>,
    pub dnn: Option<Octets>,
    pub set: Option<Octets>,
    pub inactivity: Option<InactivityRecord>,
    pub delayed: Option<DelayedRecord>,
    pub reported: Vec<HeldRecord>,
    pub lost_tunnels: Vec<(IpAddr, u32)>,
    /// Sequence numbers of pending reports.
    pub reports: Vec<u32>,
    #[serde(with = "micros::optional")]
    pub due: Option<Duration>,
    pub meters: Vec<(u32, Meter)>,
    /// Counted so far.
    pub usage: UsageRecord,
    /// QoS flows that it had until recently.
    #[serde(default)]
    pub former_flows: Vec<FormerFlowRecord>,
}

/// A QoS flow that a session had until recently.
#[derive(Debug, Serialize, Deserialize)]
pub struct FormerFlowRecord {
    pub qfi: u8,
    /// Uplink packets may have its QFI until then.
    #[serde(with = "micros")]
    pub until: Duration,
}

/// What was counted for a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageRecord {
    pub seid: u64,
    #[serde(with = "micros::optional")]
    pub last_packet: Option<Duration>,
    pub urrs: Vec<UrrRecord>,
}

/// What was counted for a URR.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrrRecord {
    pub id: u32,
    pub volume: Volume,
    #[serde(with = "micros::optional")]
    pub first_packet: Option<Duration>,
    #[serde(with = "micros::optional")]
    pub last_packet: Option<Duration>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct InactivityRecord {
    #[serde(with = "micros")]
    pub timer: Duration,
    #[serde(with = "micros")]
    pub since: Duration,
    pub reported: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct DelayedRecord {
    #[serde(with = "micros")]
    pub due: Duration,
    pub held: Vec<HeldRecord>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct HeldRecord {
    pub pdr: u16,
    pub dscp: Option<u8>,
    pub qfi: Option<u8>,
}

/// A pending request of the UPF.
#[derive(Debug, Serialize, Deserialize)]
pub struct RequestRecord {
    pub sequence: u32,
    pub peer: SocketAddr,
    pub message_type: u8,
    pub purpose: PurposeRecord,
    pub octets: Octets,
    pub attempts: u32,
    #[serde(with = "micros")]
    pub due: Duration,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum PurposeRecord {
    Heartbeat(Node),
    SessionReport(u64),
    Release,
}

/// A response that is stored for duplicates of its request.
#[derive(Debug, Serialize, Deserialize)]
pub struct ResponseRecord {
    pub peer: SocketAddr,
    pub sequence: u32,
    /// A hash of the request.
    pub request: u64,
    pub octets: Octets,
    #[serde(with = "micros")]
    pub until: Duration,
}

/// Octets, written as hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Octets(#[serde(with = "hex_text")] pub Vec<u8>);

mod hex_text {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;
    use std::borrow::Cow;

    pub fn serialize<S: Serializer>(octets: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(octets))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        hex::decode(&*Cow::<str>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl From<&NodeId> for Node {
    fn from(node: &NodeId) -> Self {
        match node {
            NodeId::Ipv4(address) => Node::Ipv4(*address),
            NodeId::Ipv6(address) => Node::Ipv6(*address),
            NodeId::Fqdn(name) => Node::Fqdn(name.clone()),
        }
    }
}

impl From<Node> for NodeId {
    fn from(node: Node) -> Self {
        match node {
            Node::Ipv4(address) => NodeId::Ipv4(address),
            Node::Ipv6(address) => NodeId::Ipv6(address),
            Node::Fqdn(name) => NodeId::Fqdn(name),
        }
    }
}

impl From<&HeldPackets> for HeldRecord {
    fn from((pdr, information): &HeldPackets) -> Self {
        let DownlinkDataServiceInformation { paging_policy_indication: dscp, qfi } = *information;
        HeldRecord { pdr: pdr.0, dscp, qfi: qfi.map(|qfi| qfi.0) }
    }
}

impl From<HeldRecord> for HeldPackets {
    fn from(HeldRecord { pdr, dscp, qfi }: HeldRecord) -> Self {
        let information =
            DownlinkDataServiceInformation { paging_policy_indication: dscp, qfi: qfi.map(Qfi) };
        (PdrId(pdr), information)
    }
}

impl From<Inactivity> for InactivityRecord {
    fn from(Inactivity { timer, since, reported }: Inactivity) -> Self {
        InactivityRecord { timer, since, reported }
    }
}

impl From<InactivityRecord> for Inactivity {
    fn from(InactivityRecord { timer, since, reported }: InactivityRecord) -> Self {
        Inactivity { timer, since, reported }
    }
}
