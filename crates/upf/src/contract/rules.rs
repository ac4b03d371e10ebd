//! A session and its rules as a datapath needs them: PDR, FAR, QER and URR.
//!
//! Rules refer to each other by id, within the session. A PDR whose FAR does not exist drops matching packets
//! ([`DropReason::NoRule`](super::DropReason::NoRule)).

use super::{AddressRange, SdfFilter, VolumeLimits};
use std::collections::BTreeSet;
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

/// The complete rules of one PDU session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The key of [`install`](super::Datapath::install) and of every event.
    pub id: SessionId,
    /// The UE's source addresses and downlink destinations. Empty at a UPF that only forwards between
    /// tunnels.
    pub ue: UeAddress,
    /// Framed routes (TS 23.501 5.6.14): networks behind the UE, also valid as source and destination. Of all
    /// sessions' routes the longest matching prefix decides.
    pub framed_routes: Vec<AddressRange>,
    /// Packet detection rules, in any order.
    pub pdrs: Vec<Pdr>,
    /// Forwarding action rules.
    pub fars: Vec<Far>,
    /// Gates and rates.
    pub qers: Vec<Qer>,
    /// Usage counters.
    pub urrs: Vec<Urr>,
    /// QoS flows that the session had until recently: uplink packets may still have their QFIs, and match the rules that name none.
    pub former_qfis: Vec<Qfi>,
}

impl Session {
    /// A session without rules.
    pub fn new(id: SessionId) -> Self {
        Self {
            id,
            ue: UeAddress::default(),
            framed_routes: Vec::new(),
            pdrs: Vec::new(),
            fars: Vec::new(),
            qers: Vec::new(),
            urrs: Vec::new(),
            former_qfis: Vec::new(),
        }
    }

    /// The QoS flows that the rules name: in a QER or in a PDI.
    pub fn qfis(&self) -> BTreeSet<Qfi> {
        let of_qers = self.qers.iter().filter_map(|qer| qer.qfi);
        of_qers.chain(self.pdrs.iter().flat_map(|pdr| pdr.qfis.iter().copied())).collect()
    }

    /// The QFIs that uplink packets may have: the UPF verifies that their marking agrees with the QoS rules of the UE (TS 23.501 5.7.1.7).
    /// `None`: any. That is so where the rules do not name the flow of an uplink PDR, and where uplink packets are forwarded into a tunnel: a
    /// UPF between gNB and anchor may have no rules of single flows, and the anchor verifies.
    pub fn uplink_qfis(&self) -> Option<BTreeSet<Qfi>> {
        let is_tunnel = |far: &Far| matches!(far.action, Action::Forward(Destination::Tunnel(_)));
        let into_tunnel = |id: FarId| self.fars.iter().any(|far| far.id == id && is_tunnel(far));
        let is_of_flow = |pdr: &Pdr| !pdr.qfis.is_empty() || self.qfi_of(pdr).is_some();
        let mut uplink = self.pdrs.iter().filter(|pdr| pdr.source.direction() == Direction::Uplink);
        let is_verified = uplink.all(|pdr| is_of_flow(pdr) && !into_tunnel(pdr.far));
        is_verified.then(|| self.qfis().into_iter().chain(self.former_qfis.iter().copied()).collect())
    }

    /// The QFI that packets of a PDR get: that of the QER that the fewest PDRs refer to, of equal ones the first. A QER of several flows, such as
    /// that of the session-AMBR, may have a QFI, too (TS 29.244 5.4.4); that of a flow is more specific.
    pub fn qfi_of(&self, pdr: &Pdr) -> Option<Qfi> {
        self.marking_qer(pdr)?.qfi
    }

    /// Whether the packets of a PDR have the RQI beside their QFI (TS 23.501 5.7.5.3): downlink packets whose QER says so.
    pub fn is_reflective(&self, pdr: &Pdr) -> bool {
        pdr.source.direction() == Direction::Downlink && self.marking_qer(pdr).is_some_and(|qer| qer.rqi)
    }

    /// The QER that marks the packets of a PDR.
    fn marking_qer(&self, pdr: &Pdr) -> Option<&Qer> {
        let of_flow = |id: &QerId| self.qers.iter().find(|qer| qer.id == *id).filter(|qer| qer.qfi.is_some());
        let uses = |id: QerId| self.pdrs.iter().filter(|pdr| pdr.qers.contains(&id)).count();
        pdr.qers.iter().filter_map(of_flow).min_by_key(|qer| uses(qer.id))
    }
}

/// The UE's addresses in one PDU session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct UeAddress {
    /// Its IPv4 address.
    pub v4: Option<Ipv4Addr>,
    /// Its IPv6 prefix of 64 bits (TS 23.501 5.8.2.2); the lower half is zero. Where an uplink rule forwards to
    /// [`Destination::Network`], the datapath is the router on the UE's link (TS 23.501 5.8.2.2.3): packets to link-local
    /// addresses end there, and it advertises the prefix when a rule begins to forward packets from the network to the UE.
    pub v6: Option<Ipv6Addr>,
    /// Bits of prefix delegation, 0 to 16: the session has the prefix of 64 bits less these, which contains `v6` (TS 23.501 5.8.2.2.4). The
    /// datapath delegates the rest of it by DHCPv6.
    pub delegation: u8,
}

impl UeAddress {
    /// An IPv4-only UE.
    pub const fn v4(address: Ipv4Addr) -> Self {
        Self { v4: Some(address), v6: None, delegation: 0 }
    }

    /// A UE with this IPv6 prefix of 64 bits, and no IPv4 address.
    pub const fn v6(prefix: Ipv6Addr) -> Self {
        Self { v4: None, v6: Some(prefix), delegation: 0 }
    }

    /// Whether the session has no address of its own.
    pub const fn is_empty(&self) -> bool {
        self.v4.is_none() && self.v6.is_none()
    }

    /// The session's IPv6 prefix: that of 64 bits, or the shorter one that contains it.
    pub fn network6(&self) -> Option<AddressRange> {
        let prefix = 64_u8.saturating_sub(self.delegation);
        self.v6.map(|address| AddressRange { address: address.into(), prefix }.network())
    }

    /// The prefix shorter than 64 bits, if there is one.
    pub fn shorter_prefix(&self) -> Option<AddressRange> {
        self.network6().filter(|_| self.delegation > 0)
    }

    /// Whether `address` is the UE's: the IPv4 address, or one within the IPv6 prefix.
    pub fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(v4) => self.v4 == Some(v4),
            IpAddr::V6(_) => self.network6().is_some_and(|network| network.contains(address)),
        }
    }
}

/// The direction of a packet, relative to the UE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the UE to the data network.
    Uplink,
    /// From the data network to the UE.
    Downlink,
}

/// A packet detection rule (TS 29.244 5.2.1A).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pdr {
    /// Unique in the session.
    pub id: PdrId,
    /// Rules are evaluated from the lowest value up; of equal values, in the order of the list.
    pub precedence: u32,
    /// Where the packet must arrive.
    pub source: Source,
    /// The packet must match one of these; empty: all match.
    pub filters: Vec<SdfFilter>,
    /// The packet's QFI must be one of these; empty: all match.
    pub qfis: Vec<Qfi>,
    /// The FAR of matching packets.
    pub far: FarId,
    /// All of these apply to the packet.
    pub qers: Vec<QerId>,
    /// All of these count the packet.
    pub urrs: Vec<UrrId>,
}

/// Where a PDR's packets arrive. The outer header of a tunnel is always removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// G-PDUs with this TEID: uplink from N3 or N9, downlink from N9. The PDRs of a session may share a TEID,
    /// or have their own.
    Tunnel {
        /// The UPF's own TEID.
        teid: Teid,
        /// The direction of its packets.
        direction: Direction,
    },
    /// Plain packets from N6 to the UE's address.
    Network,
}

impl Source {
    /// The direction of packets from this source.
    pub const fn direction(&self) -> Direction {
        match self {
            Self::Tunnel { direction, .. } => *direction,
            Self::Network => Direction::Downlink,
        }
    }
}

/// A forwarding action rule (TS 29.244 5.2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Far {
    /// Unique in the session.
    pub id: FarId,
    /// The action on packets.
    pub action: Action,
}

/// The action on packets (PFCP's Apply Action and Forwarding Parameters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Drops and counts them by reason.
    Drop,
    /// Forwards them.
    Forward(Destination),
    /// Holds them until the rules change. The number is limited; the newest packet is dropped if the buffer
    /// is full.
    Buffer {
        /// Whether the first packet held for a PDR is reported by
        /// [`Event::DownlinkData`](super::Event::DownlinkData) (PFCP flag NOCP).
        notify: bool,
        /// Maximum number of packets held for the session (BAR); `None`: the datapath's own limit.
        packets: Option<u16>,
    },
}

/// The destination of forwarded packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Destination {
    /// Into a tunnel: to a gNB on N3, to another UPF on N9 (PFCP's Outer Header Creation).
    Tunnel(Tunnel),
    /// To N6, without an outer header.
    Network,
}

/// The remote end of a GTP-U tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tunnel {
    /// The peer's address; its port is 2152.
    pub peer: IpAddr,
    /// The peer's TEID.
    pub teid: Teid,
    /// DSCP of the outer header, 0 to 63 (PFCP's Transport Level Marking); `None`: 0.
    pub dscp: Option<u8>,
}

/// A QoS enforcement rule (TS 29.244 5.4). A session's AMBR is a QER of all its non-GBR PDRs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qer {
    /// Unique in the session.
    pub id: QerId,
    /// Open or closed gates.
    pub gates: Gates,
    /// Maximum bit rates; packets above them are queued or dropped.
    pub mbr: Option<Rates>,
    /// Guaranteed bit rates: packets within them pass the MBR of every other QER of the PDR, but are charged
    /// there, too (green by RFC 2698).
    pub gbr: Option<Rates>,
    /// The QFI, set in the PDU Session Container of packets sent by tunnel.
    pub qfi: Option<Qfi>,
    /// Whether downlink packets have the RQI there, too: UEs derive QoS rules from them (TS 29.244 5.4.12).
    pub rqi: bool,
}

/// A gate for each direction.
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

/// The state of a gate (TS 29.244 8.2.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gate {
    /// Packets pass.
    Open,
    /// Packets are dropped.
    Closed,
}

/// A bit rate for each direction, in bits per second; at 0 nothing passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rates {
    /// The rate of uplink packets.
    pub uplink: u64,
    /// The rate of downlink packets.
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

/// A counter of packets forwarded by PDRs, after QoS enforcement (TS 29.244 5.2.2). Times, events and periods
/// are handled by UPF-C, because they need no packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Urr {
    /// Its counters exist from the first install that contains the id to the first that does not.
    pub id: UrrId,
    /// When the counters reach one of these, [`Event::Usage`](super::Event::Usage) is reported, once until
    /// limits change.
    pub threshold: VolumeLimits,
    /// When the counters reach one of these, packets are dropped, and the same event is reported.
    pub quota: VolumeLimits,
}
