//! Memory shared by the rule engine and the BPF program: the layouts of `bpf/tables.h`.
//!
//! Fields that both sides write are atomic. Without a BPF program the same values are on the heap.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// No index.
pub const NO_INDEX: u32 = u32::MAX;
/// No rate limit or bound.
pub const NO_LIMIT: u64 = u64::MAX;
/// Maximum number of rules of a session.
pub const SESSION_RULES: usize = 8;
/// Rules in a session's block; the others are beside its filters.
pub const BLOCK_RULES: usize = 2;
/// Maximum number of filters of a session.
pub const SESSION_MATCHES: usize = 16;
/// Maximum number of meters of a rule.
pub const RULE_METERS: usize = 3;
/// Maximum number of URRs of a rule.
pub const RULE_URRS: usize = 2;
/// Reasons by which the program counts drops.
pub const DROP_REASONS: usize = 24;
/// Set in the index of a meter or counter that is in a session's block; the other bits are the session's
/// slot.
pub const IN_BLOCK: u32 = 0x8000_0000;
/// Meters in a session's block: uplink, downlink.
pub const BLOCK_METERS: usize = 2;
/// Maximum number of flow counters of a session.
pub const SESSION_FLOWS: usize = 8;
/// Flow counters in a session's block; the others are in a group of another table.
pub const BLOCK_FLOWS: usize = 2;
/// Maximum number of interfaces of the program.
pub const LINKS: usize = 64;
/// Maximum number of N3 addresses of the program.
pub const N3_ADDRESSES: usize = 8;

/// A type in memory that a BPF program shares.
///
/// # Safety
///
/// The type is `repr(C)` and valid for any bytes; fields that the program writes are atomic.
pub unsafe trait Shared: Send + Sync + Default {}

/// The action on a packet (`enum action`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Action {
    /// Passed to the portable path: everything that the program does not handle.
    ToUser,
    Forward,
    Drop,
    /// Dropped: the PDR has no FAR.
    NoFar,
}

/// All gates are open.
pub const RULE_OPEN: u8 = 1;
/// Packets arrive by a tunnel.
pub const RULE_TUNNEL: u8 = 2;
/// Packets leave by tunnel with a QFI.
pub const RULE_HAS_QFI: u8 = 4;
/// Packets are for the UE.
pub const RULE_DOWNLINK: u8 = 8;
/// Packets arrive by a tunnel and leave by another.
pub const RULE_ONWARD: u8 = 16;
/// The tunnel's peer has an IPv6 address.
pub const RULE_PEER_V6: u8 = 32;
/// Packets match with any QFI, or none.
pub const RULE_ANY_QFI: u8 = 64;

/// In the octet of the QFI: packets have the RQI, too (TS 38.415 5.5.2.1).
pub const MARK_RQI: u8 = 0x40;

/// A PDR with its FAR, QERs and URRs (`struct rule`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Rule {
    /// An [`Action`] in the lower half; the index of the session's flow in the upper half.
    pub action: u8,
    /// `RULE_*`.
    pub flags: u8,
    /// The QFI to set; with [`MARK_RQI`] as packets have it.
    pub qfi: u8,
    /// DSCP of the outer header.
    pub dscp: u8,
    /// The TEID of the receiving tunnel.
    pub teid: u32,
    /// A bit for each QFI that its packets may have. Without [`RULE_ANY_QFI`] only these match.
    pub qfis: u64,
    pub tunnel_teid: u32,
    /// The tunnel's peer, in wire order; an IPv4 address is the first.
    pub peer: [u32; 4],
    /// Slots of meters.
    pub meters: [u32; RULE_METERS],
    /// Slots of counters.
    pub urrs: [u32; RULE_URRS],
    /// Slots of limits of these counters.
    pub limits: [u32; RULE_URRS],
}

impl Rule {
    pub fn set_action(&mut self, action: Action, flow: u8) {
        self.action = action as u8 | flow << 4;
    }

    /// Whether its packets go to user space.
    pub fn is_to_user(&self) -> bool {
        self.action & 0xf == Action::ToUser as u8
    }
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            action: Action::ToUser as u8,
            flags: 0,
            qfi: 0,
            dscp: 0,
            teid: 0,
            qfis: u64::MAX,
            tunnel_teid: 0,
            peer: [0; 4],
            meters: [NO_INDEX; RULE_METERS],
            urrs: [NO_INDEX; RULE_URRS],
            limits: [NO_INDEX; RULE_URRS],
        }
    }
}

pub const UE_V4: u32 = 1;
pub const UE_V6: u32 = 2;
/// The UE has framed routes.
pub const UE_FRAMED: u32 = 4;
/// The kernel translates the IPv4 packets of this UE.
pub const UE_NAT: u32 = 8;
pub const NO_RULE: u8 = 0xff;

/// A session's first rules (`struct session`). In its block they are followed by [`BLOCK_METERS`] meters, then
/// by a [`Tally`], then by [`Refused`], of each of [`BLOCK_FLOWS`] flows: uplink, downlink.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Session {
    /// An [`Action`] for all packets; `Forward`: the rules decide.
    pub action: AtomicU32,
    /// `UE_*`.
    pub flags: u32,
    /// In wire order.
    pub ue_v4: u32,
    /// Slot of [`Matches`].
    pub matches: u32,
    /// The prefix, in wire order.
    pub ue_v6: u64,
    /// The time of the last packet.
    pub last_packet: AtomicU64,
    /// The time of the last packet passed to user space.
    pub to_user: AtomicU64,
    pub id: u64,
    /// For each direction, the index of the single rule without filters, or [`NO_RULE`].
    pub only: [u8; 2],
    pub match_count: u8,
    /// The UE's tenant plus one; 0: no pool contains its address.
    pub tenant: u8,
    /// The slot of the session's own block, even if these rules are elsewhere.
    pub block: u32,
    /// The group of its further flows.
    pub flows: u32,
    /// IPv4 address of the downlink tunnel's peer, in wire order; [`NO_INDEX`]: IPv6 peer, or no
    /// tunnel yet and GTP-U from configured networks only; 0: no tunnel yet.
    pub peer: u32,
    pub rules: [Rule; BLOCK_RULES],
}

impl Default for Session {
    fn default() -> Self {
        Self {
            action: AtomicU32::new(Action::ToUser as u32),
            flags: 0,
            ue_v4: 0,
            matches: NO_INDEX,
            ue_v6: 0,
            last_packet: AtomicU64::new(0),
            to_user: AtomicU64::new(0),
            id: 0,
            only: [NO_RULE; 2],
            match_count: 0,
            tenant: 0,
            block: NO_INDEX,
            flows: NO_INDEX,
            peer: 0,
            rules: Default::default(),
        }
    }
}

/// Value in the table `areas`: all UEs reach the address.
pub const AREA_OPEN: u32 = 0;
/// No UE reaches it.
pub const AREA_CLOSED: u32 = 1;
/// No UE reaches it except by a permit, which user space checks.
pub const AREA_CLOSED_MAY: u32 = 2;
/// The UEs of the first tenant reach it; the following values are the other tenants'.
pub const AREA_TENANT: u32 = 3;
/// Flag: GTP-U is accepted from there.
pub const AREA_PEER: u32 = 0x100;
/// Added to it: the network is a pool of this UPF, so a packet from outside with such a source is forged.
pub const AREA_HERE: u32 = 0x200;

/// No filter: all packets.
pub const MATCH_ALL: u8 = 1;
/// The protocol must match.
pub const MATCH_PROTOCOL: u8 = 2;
/// The UE's port must match.
pub const MATCH_LOCAL_PORTS: u8 = 4;
/// The data network's port must match.
pub const MATCH_REMOTE_PORTS: u8 = 8;
/// Addresses must match, and are IPv4.
pub const MATCH_V4: u8 = 16;
/// Addresses must match, and are IPv6.
pub const MATCH_V6: u8 = 32;
/// Downlink packets don't match.
pub const MATCH_UPLINK_ONLY: u8 = 64;
/// Uplink packets don't match.
pub const MATCH_DOWNLINK_ONLY: u8 = 128;

/// An IP address in wire order (`struct address`); an IPv4 address in the first four bytes of `low`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Address {
    pub high: u64,
    pub low: u64,
}

/// A filter (`struct match`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Match {
    /// `MATCH_*`.
    pub flags: u8,
    /// Index of its rule in the session.
    pub rule: u8,
    pub protocol: u8,
    /// Type of service or traffic class.
    pub tos: u8,
    /// Mask of `tos`.
    pub tos_mask: u8,
    pub reserved: [u8; 3],
    /// First and last of the UE's ports.
    pub local_ports: [u16; 2],
    /// First and last of the data network's ports.
    pub remote_ports: [u16; 2],
    /// The UE's address and its mask.
    pub local: [Address; 2],
    /// The data network's address and its mask.
    pub remote: [Address; 2],
}

/// A session's filters, and its rules beyond the block's (`struct matches`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C, align(64))]
pub struct Matches {
    pub rules: [Rule; SESSION_RULES - BLOCK_RULES],
    pub filters: [Match; SESSION_MATCHES],
}

/// A URR's counter of one direction (`struct urr_half`).
#[derive(Debug, Default)]
#[repr(C)]
pub struct UrrHalf {
    pub volume: Traffic,
    /// Time of the first packet; 0: none.
    pub first: AtomicU64,
    /// Time of the last packet; 0: none.
    pub last: AtomicU64,
}

/// A URR outside a session's block (`struct urr`): uplink and downlink. A cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct UrrHalves(pub [UrrHalf; 2]);

/// What most packets of a session count in one direction (`struct tally`). A cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Tally {
    pub passed: Passed,
    pub urr: UrrHalf,
}

/// Limits in bytes (`struct bounds`), or [`NO_LIMIT`].
#[derive(Debug, Default)]
#[repr(C)]
pub struct Bounds {
    pub total: AtomicU64,
    pub uplink: AtomicU64,
    pub downlink: AtomicU64,
}

/// The threshold was reported.
pub const REPORTED_THRESHOLD: u32 = 1;
/// The quota was reported.
pub const REPORTED_QUOTA: u32 = 2;

/// A URR's limits (`struct limits`).
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Limits {
    /// Limits that are reported.
    pub threshold: Bounds,
    /// Limits that are reported, and beyond which packets are dropped.
    pub quota: Bounds,
    pub session: AtomicU64,
    pub urr: AtomicU32,
    /// `TOLD_*`.
    pub reported: AtomicU32,
}

/// Packets and bytes (`struct traffic`).
#[derive(Debug, Default)]
#[repr(C)]
pub struct Traffic {
    pub packets: AtomicU64,
    pub bytes: AtomicU64,
}

/// Packets of a flow that passed.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Passed {
    /// Above the guaranteed rate.
    pub yellow: Traffic,
    /// Within the guaranteed rate.
    pub green: Traffic,
}

/// Packets of a flow that were dropped.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Refused {
    /// Above the flow's own maximum rate.
    pub red: Traffic,
    /// By other rates.
    pub dropped: Traffic,
}

/// The counters of a flow outside a session's block (an element of `struct flow_group`).
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct FlowCell {
    pub passed: Passed,
    pub refused: Refused,
}

/// Counters of one CPU (`struct cpu`).
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Cpu {
    /// Odd while the CPU processes a packet.
    pub epoch: AtomicU64,
    /// The kernel's tick count at the last reading of the clock.
    pub jiffies: AtomicU64,
    /// The time read then.
    pub now: AtomicU64,
    /// Identification of outer IPv4 headers.
    pub outer_id: AtomicU64,
    /// Forwarded from tunnels to the data network.
    pub up: Traffic,
    /// Forwarded from the data network into tunnels.
    pub down: Traffic,
    /// By [`DropReason`](pith_upf::contract::DropReason).
    pub dropped: [AtomicU64; DROP_REASONS],
    /// Received from tunnels and dropped or redirected to user space.
    pub n3_rest: Traffic,
    /// Received from the data network and dropped or redirected to user space.
    pub n6_rest: Traffic,
    /// Forwarded from tunnels into others.
    pub across: Traffic,
    /// When the program passes the next packet of an unknown peer to user space.
    pub unknown_peer_due: AtomicU64,
    /// Whether another CPU gave it the packet in processing.
    pub given: AtomicU64,
}

// SAFETY (all): `repr(C)`; integers and atomics only, so any bytes are valid; the program writes only fields
// that are atomic here.
unsafe impl Shared for Session {}
unsafe impl Shared for Matches {}
// Its layout is guaranteed to be `struct meter`, and its fields are atomic.
unsafe impl Shared for pith_upf::qos::Meter {}
unsafe impl Shared for UrrHalves {}
unsafe impl Shared for Tally {}
unsafe impl Shared for Refused {}
unsafe impl Shared for Limits {}
unsafe impl Shared for FlowCell {}
unsafe impl Shared for Cpu {}
unsafe impl Shared for AtomicU64 {}
unsafe impl Shared for u8 {}

/// Value of [`UsageEvent::urr`] for a session with a packet that must be queued.
pub const SHAPED: u64 = u64::MAX;

/// A URR's counters when it reached a limit (`struct usage_event`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageEvent {
    pub session: u64,
    /// The URR, or [`SHAPED`].
    pub urr: u64,
    /// Uplink and downlink bytes.
    pub bytes: [u64; 2],
    /// Uplink and downlink packets.
    pub packets: [u64; 2],
}

impl UsageEvent {
    /// Decodes an entry of the ring.
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let words: Vec<u64> = octets
            .chunks_exact(8)
            .filter_map(|word| word.first_chunk())
            .map(|word| u64::from_ne_bytes(*word))
            .collect();
        let &[session, urr, uplink, downlink, uplink_packets, downlink_packets] = words.as_slice() else {
            return None;
        };
        Some(Self { session, urr, bytes: [uplink, downlink], packets: [uplink_packets, downlink_packets] })
    }
}

const HANDED: u32 = 0x5069_7468;

/// The route that the program would use for a packet that it redirects to a worker (`struct redirect_info`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedirectInfo {
    /// The tunnel's peer, in wire order; 0: none, the route is for the packet's destination.
    pub peer: u32,
    /// Slot of the device; [`NO_INDEX`]: no route is known.
    pub device: u32,
    /// Longest packet.
    pub mtu: u16,
    /// VLAN tag, in wire order; 0: none.
    pub vlan: u16,
    /// Destination and source MAC.
    pub ethernet: [u8; 12],
}

impl RedirectInfo {
    /// Decodes the metadata before a frame; `None` if the program has written none.
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let [is, peer, device, lengths, link @ ..] = octets.first_chunk::<32>()?.as_chunks::<4>().0 else {
            return None;
        };
        let &[m0, m1, v0, v1] = lengths;
        (u32::from_ne_bytes(*is) == HANDED).then_some(Self {
            peer: u32::from_ne_bytes(*peer),
            device: u32::from_ne_bytes(*device),
            mtu: u16::from_ne_bytes([m0, m1]),
            vlan: u16::from_ne_bytes([v0, v1]),
            ethernet: *link.as_flattened().first_chunk()?,
        })
    }
}

/// An interface whose frames the program handles (`struct link`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Link {
    /// Index of the device that receives its frames.
    pub device: u32,
    /// 0: untagged.
    pub vlan: u16,
    /// Its MAC.
    pub ethernet: [u8; 6],
    /// Whether it receives GTP-U.
    pub tunnels: bool,
}

impl Link {
    fn encode(&self) -> [u8; 16] {
        let from = u64::from(self.device) << 32 | u64::from(self.vlan.to_be());
        let [a, b, c, d, e, f] = self.ethernet;
        let to = [a, b, c, d, e, f, 0, 0];
        let mut octets = [0; 16];
        octets[..8].copy_from_slice(&from.to_ne_bytes());
        octets[8..].copy_from_slice(&to);
        octets
    }
}

/// Settings of the program (`struct settings`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Start time of the datapath.
    pub started: u64,
    pub cpus: u32,
    /// CPUs and workers, which take turns in ids of outer headers, rounded up to a power of two.
    pub senders: u32,
    /// In wire order.
    pub n3_v4: [u32; N3_ADDRESSES],
    /// In wire order.
    pub n3_v6: [Address; N3_ADDRESSES],
    /// Longest packet for a UE.
    pub ue_mtu: u32,
    /// Whether packets above rates are queued in user space; otherwise they are dropped.
    pub shapes: bool,
    /// Entries of a direct-mapped look-up table minus one: a mask for keys.
    pub direct_mask: u32,
    /// Whether a predecessor may be registered.
    pub pinned: bool,
    /// Whether the program forwards packets between UEs.
    pub hairpin: bool,
    /// At most [`LINKS`].
    pub links: Vec<Link>,
    /// The kernel's connection tracking; all zero without NAT.
    pub conntrack: ConntrackTimes,
    /// Whether outer headers get the ECN field of their packet.
    pub outer_ecn: bool,
    /// Whether the outer source port depends on the packet's flow.
    pub flow_ports: bool,
    /// Entries of the caches of routes and of senders minus one.
    pub route_mask: u32,
    /// CPUs over which packets of tunnels are spread; 0: the receiving CPU handles them.
    pub spread: u32,
}

/// Times of the kernel's connection tracking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConntrackTimes {
    /// Kernel ticks a second.
    pub hz: u32,
    /// Lifetimes of an idle connection, in milliseconds: TCP when established, UDP, UDP with packets in both directions.
    pub tcp: u32,
    pub udp: u32,
    pub udp_stream: u32,
}

impl Settings {
    /// Encodes `struct settings`.
    pub fn encode(&self) -> Vec<u8> {
        let mut octets = self.started.to_ne_bytes().to_vec();
        for word in [self.cpus, self.senders].iter().chain(&self.n3_v4) {
            octets.extend(word.to_ne_bytes());
        }
        for address in &self.n3_v6 {
            octets.extend(address.high.to_ne_bytes());
            octets.extend(address.low.to_ne_bytes());
        }
        octets.extend(self.ue_mtu.to_ne_bytes());
        let links = self.links.len().min(LINKS);
        let flags = [u32::from(self.pinned), u32::from(self.hairpin), links as u32];
        for word in [u32::from(self.shapes), self.direct_mask].into_iter().chain(flags) {
            octets.extend(word.to_ne_bytes());
        }
        let (first, others): (Vec<_>, Vec<_>) = self.links.iter().take(LINKS).partition(|link| link.tunnels);
        let tunnels = first.len() as u32;
        let none = std::iter::repeat(Link::default());
        octets.extend(first.into_iter().chain(others).chain(none).take(LINKS).flat_map(|link| link.encode()));
        let ConntrackTimes { hz, tcp, udp, udp_stream } = self.conntrack;
        let [ecn, ports] = [self.outer_ecn, self.flow_ports].map(u32::from);
        let last = [tunnels, hz, tcp, udp, udp_stream, ecn, ports, self.route_mask, self.spread, 0];
        octets.extend(last.into_iter().flat_map(u32::to_ne_bytes));
        octets
    }
}

impl Traffic {
    pub fn load(&self) -> (u64, u64) {
        (self.packets.load(Relaxed), self.bytes.load(Relaxed))
    }

    /// Sets it to zero.
    pub fn clear(&self) {
        self.packets.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_upf::contract::DropReason;

    #[test]
    fn shared_values_are_cache_line_aligned() {
        assert_eq!(size_of::<Rule>(), 64);
        assert_eq!(size_of::<Session>(), 64 * (1 + BLOCK_RULES));
        assert_eq!(size_of::<Match>(), 80);
        let meter = size_of::<pith_upf::qos::Meter>();
        for size in [meter, size_of::<UrrHalves>(), size_of::<Limits>(), size_of::<FlowCell>()] {
            assert_eq!(size, 64);
        }
        assert_eq!((size_of::<Tally>(), size_of::<Refused>()), (64, 32));
        assert_eq!(size_of::<Matches>(), 6 * 64 + 16 * 80);
        assert_eq!(size_of::<Cpu>(), 320);
        assert_eq!(Settings::default().encode().len(), 240 + 16 * LINKS);
    }

    #[test]
    fn the_program_counts_drops_by_the_contracts_reasons_in_their_order() {
        let source = include_str!("../../bpf/tables.h");
        let body = source.split("enum drop_reason {").nth(1).unwrap().split('}').next().unwrap();
        let names: Vec<_> = body.split(',').map(|name| name.trim().to_lowercase()).collect();
        let reasons = DropReason::ALL.iter().map(|reason| reason.name().to_owned());
        let expected: Vec<_> = reasons.map(|name| name.replace("no_rule", "no_rule_found")).collect();
        assert_eq!(names.split_last(), Some((&"drop_reasons".to_owned(), &expected[..])));
        assert_eq!(expected.len(), DROP_REASONS);
    }

    #[test]
    fn frame_metadata_is_decoded_if_it_was_written() {
        let mut octets = [0; 32];
        assert_eq!(RedirectInfo::decode(&octets), None);
        octets[..4].copy_from_slice(&HANDED.to_ne_bytes());
        octets[4..8].copy_from_slice(&7u32.to_ne_bytes());
        octets[8..12].copy_from_slice(&1u32.to_ne_bytes());
        octets[12..14].copy_from_slice(&1500u16.to_ne_bytes());
        octets[14..16].copy_from_slice(&100u16.to_ne_bytes());
        octets[16..28].copy_from_slice(b"to....from..");
        let expected = RedirectInfo { peer: 7, device: 1, mtu: 1500, vlan: 100, ethernet: *b"to....from.." };
        assert_eq!(RedirectInfo::decode(&octets), Some(expected));
    }

    #[test]
    fn an_event_has_six_words() {
        let words: Vec<u8> = (1..=6u64).flat_map(u64::to_ne_bytes).collect();
        let expected = UsageEvent { session: 1, urr: 2, bytes: [3, 4], packets: [5, 6] };
        assert_eq!(UsageEvent::decode(&words), Some(expected));
        assert_eq!(UsageEvent::decode(&words[8..]), None);
    }
}
