//! A session and its rules: PDR, FAR, QER and URR as a datapath needs them.
//!
//! Rules refer to each other by id, within the session. A reference that leads nowhere makes a PDR
//! that drops what it matches ([`DropReason::NoRule`](super::DropReason::NoRule)).

use super::{AddressRange, SdfFilter, VolumeLimits};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The UP function's SEID of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// Tunnel Endpoint Identifier; those of the UPF are unique over all its addresses, and none is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Teid(pub u32);

/// QoS Flow Identifier, 0 to 63.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Qfi(pub u8);

/// Packet Detection Rule ID, unique in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PdrId(pub u16);

/// Forwarding Action Rule ID, unique in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FarId(pub u32);

/// QoS Enforcement Rule ID, unique in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QerId(pub u32);

/// Usage Reporting Rule ID, unique in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UrrId(pub u32);

/// One PDU session's rules, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id; the key of [`install`](super::Datapath::install) and of every event.
    pub id: SessionId,
    /// What the UE may use as source and is reached by. Empty at a UPF that only passes tunnels on.
    pub ue: UeAddress,
    /// Networks behind the UE, whose addresses it may use and is reached by as well (framed routing, TS 23.501
    /// 5.6.14). Of those of all sessions the longest that holds an address has it.
    pub framed_routes: Vec<AddressRange>,
    /// Detection rules, in any order.
    pub pdrs: Vec<Pdr>,
    /// What PDRs do with what they match.
    pub fars: Vec<Far>,
    /// Gates and rates.
    pub qers: Vec<Qer>,
    /// Counters.
    pub urrs: Vec<Urr>,
}

impl Session {
    /// A session that knows no packets.
    pub fn new(id: SessionId) -> Self {
        Self {
            id,
            ue: UeAddress::default(),
            framed_routes: Vec::new(),
            pdrs: Vec::new(),
            fars: Vec::new(),
            qers: Vec::new(),
            urrs: Vec::new(),
        }
    }
}

/// Addresses of a UE in one PDU session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct UeAddress {
    /// Its IPv4 address.
    pub v4: Option<Ipv4Addr>,
    /// Its IPv6 prefix of 64 bits (TS 23.501 5.8.2.2); the lower half is zero.
    pub v6: Option<Ipv6Addr>,
}

impl UeAddress {
    /// An IPv4-only UE.
    pub const fn v4(address: Ipv4Addr) -> Self {
        Self { v4: Some(address), v6: None }
    }

    /// Whether the session has no address of its own.
    pub const fn is_empty(&self) -> bool {
        self.v4.is_none() && self.v6.is_none()
    }

    /// Whether `address` is the UE's: the IPv4 address, or one within the IPv6 prefix.
    pub fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(v4) => self.v4 == Some(v4),
            IpAddr::V6(v6) => self.v6.is_some_and(|prefix| v6.to_bits() >> 64 == prefix.to_bits() >> 64),
        }
    }
}

/// Which way a packet goes, seen from the UE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the UE to the data network.
    Uplink,
    /// From the data network to the UE.
    Downlink,
}

/// A detection rule (TS 29.244 5.2.1A).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdr {
    /// Its id.
    pub id: PdrId,
    /// Rules are tried from the lowest value up; of equals, the one that stands first.
    pub precedence: u32,
    /// Where the packet comes from.
    pub source: Source,
    /// The packet must match one of these; with none, all match.
    pub filters: Vec<SdfFilter>,
    /// The packet's QFI must be one of these; with none, all match.
    pub qfis: Vec<Qfi>,
    /// What to do with the packet.
    pub far: FarId,
    /// All of these hold for the packet.
    pub qers: Vec<QerId>,
    /// All of these count the packet.
    pub urrs: Vec<UrrId>,
}

/// Where a PDR's packets come from. The outer header of a tunnel is always removed: nothing the UPF
/// forwards keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// G-PDUs with this TEID: uplink from N3 or N9, downlink from N9. Every PDR of a session may
    /// share the TEID, or have its own.
    Tunnel {
        /// The UPF's own TEID.
        teid: Teid,
        /// Which way its packets go.
        direction: Direction,
    },
    /// Plain packets from N6 to the UE's address.
    Network,
}

impl Source {
    /// Which way packets from here go.
    pub const fn direction(&self) -> Direction {
        match self {
            Self::Tunnel { direction, .. } => *direction,
            Self::Network => Direction::Downlink,
        }
    }
}

/// A forwarding rule (TS 29.244 5.2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Far {
    /// Its id.
    pub id: FarId,
    /// What becomes of the packet.
    pub action: Action,
}

/// What becomes of a packet (PFCP's Apply Action and Forwarding Parameters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Dropped, counted by name.
    Drop,
    /// Sent on.
    Forward(Destination),
    /// Held until new rules say otherwise; bounded, the newest packet goes first when full.
    Buffer {
        /// Whether the first packet held for a PDR raises
        /// [`Event::DownlinkData`](super::Event::DownlinkData) (PFCP flag NOCP).
        notify: bool,
        /// Most packets held for the session (BAR); `None`: the datapath's own bound.
        packets: Option<u16>,
    },
}

/// Where a packet leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Destination {
    /// Into a tunnel: to a gNB on N3, to another UPF on N9 (PFCP's Outer Header Creation).
    Tunnel(Tunnel),
    /// As it is, to N6.
    Network,
}

/// The far end of a GTP-U tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tunnel {
    /// The peer's address; its port is 2152.
    pub peer: IpAddr,
    /// The peer's TEID.
    pub teid: Teid,
    /// DSCP of the outer header, 0 to 63 (PFCP's Transport Level Marking); `None`: 0.
    pub dscp: Option<u8>,
}

/// A QoS rule (TS 29.244 5.4). A session's AMBR is a QER that all its non-GBR PDRs name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qer {
    /// Its id.
    pub id: QerId,
    /// What may pass at all.
    pub gates: Gates,
    /// Maximum bit rates; what exceeds them is dropped.
    pub mbr: Option<Rates>,
    /// Guaranteed bit rates: what is within them passes the MBR of every other QER of the PDR,
    /// and is charged there all the same (the green of RFC 2698).
    pub gbr: Option<Rates>,
    /// The QoS flow: put into the PDU Session Container of packets that leave by tunnel.
    pub qfi: Option<Qfi>,
}

/// A gate each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gates {
    /// For uplink packets.
    pub uplink: Gate,
    /// For downlink packets.
    pub downlink: Gate,
}

impl Gates {
    /// Both gates open.
    pub const OPEN: Self = Self { uplink: Gate::Open, downlink: Gate::Open };

    /// The gate of a direction.
    pub const fn of(&self, direction: Direction) -> Gate {
        match direction {
            Direction::Uplink => self.uplink,
            Direction::Downlink => self.downlink,
        }
    }
}

/// Whether packets may pass (TS 29.244 8.2.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gate {
    /// They pass.
    Open,
    /// They are dropped.
    Closed,
}

/// A bit rate each way, in bits per second; 0 lets nothing pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rates {
    /// Of uplink packets.
    pub uplink: u64,
    /// Of downlink packets.
    pub downlink: u64,
}

impl Rates {
    /// The rate of a direction.
    pub const fn of(&self, direction: Direction) -> u64 {
        match direction {
            Direction::Uplink => self.uplink,
            Direction::Downlink => self.downlink,
        }
    }
}

/// A counter of what PDRs forward, after QoS enforcement (TS 29.244 5.2.2). Times, events and
/// periods are UPF-C's: they need no packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Urr {
    /// Its id; its counters live from the first install that names it to the first that does not.
    pub id: UrrId,
    /// Once the counters reach any of these, [`Event::Usage`](super::Event::Usage) is raised, once
    /// until limits change.
    pub threshold: VolumeLimits,
    /// Once the counters reach any of these, packets are dropped, and the same event is raised.
    pub quota: VolumeLimits,
}
