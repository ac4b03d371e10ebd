//! The expected and permitted results of a packet by the sessions' rules, in the fuzzer's own representation.

use super::cast::{Cast, GATEWAY_V6, LOCAL_PORTS, Manner, Member, REMOTE_PORTS, REMOTE_V4};
use super::lasting;
use super::octets::{hex, sum};
use super::reader::{self, Ip, Message, Outer};
use super::stage::UPF_N6_V6;
use crate::support::{GATEWAY, QFI, UPF_N6};
use pith_upf::contract::{Direction, DropReason};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest packet for a UE, and to the data network.
const UE_MTU: usize = 1400;
const N6_MTU: usize = 1500;
/// A longer tunnel packet may exceed IP's length.
const LONGEST_TUNNELED: usize = 65_000;

/// A side of the UPF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    Radio,
    Network,
}

/// An output packet: a user packet at the data network, a GTP-U message at the gNB.
#[derive(Clone, PartialEq, Eq)]
pub struct Output {
    pub side: Side,
    pub octets: Vec<u8>,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.side, hex(self.octets.get(..80).unwrap_or(&self.octets)))
    }
}

/// A packet counted for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    pub member: usize,
    pub direction: Direction,
    pub octets: usize,
}

/// One possible result of a packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PossibleResult {
    pub n3_in: u64,
    pub n6_in: u64,
    pub n3_out: u64,
    pub n6_out: u64,
    pub dropped: Option<DropReason>,
    /// Dropped without having been counted as received: not a user packet.
    pub uncounted: bool,
    pub charges: Vec<Charge>,
    pub output: Option<Output>,
}

/// All possible results of a packet: one if every stack does the same.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    pub results: Vec<PossibleResult>,
    /// A UE to which the kernel may send messages, and their greatest number.
    pub stray: Option<(usize, u64)>,
    /// Address pair whose packets the kernel may modify or fragment.
    pub loose: Option<(IpAddr, IpAddr)>,
}

impl Verdict {
    fn sure(result: PossibleResult) -> Self {
        Self { results: vec![result], ..Self::default() }
    }

    fn any(results: Vec<PossibleResult>) -> Self {
        Self { results, ..Self::default() }
    }

    /// The same, or no output at all.
    pub fn perhaps(mut self, sure: bool) -> Self {
        if !sure {
            self.results.push(PossibleResult::default());
        }
        self
    }

    /// The first result alone.
    pub fn first(mut self) -> Self {
        self.results.truncate(1);
        Self { results: self.results, ..Self::default() }
    }

    /// The output that must occur.
    pub fn output(&self) -> Option<&Output> {
        let first = self.results.first()?.output.as_ref()?;
        self.results.iter().all(|result| result.output.as_ref() == Some(first)).then_some(first)
    }
}

impl PossibleResult {
    fn dropped(mut self, reason: DropReason) -> Self {
        self.dropped = Some(reason);
        self
    }

    fn charged(mut self, member: &Member, direction: Direction, octets: usize) -> Self {
        self.charges.push(Charge { member: member.index, direction, octets });
        self
    }

    fn out(mut self, side: Side, octets: Vec<u8>) -> Self {
        match side {
            Side::Radio => self.n3_out += 1,
            Side::Network => self.n6_out += 1,
        }
        self.output = Some(Output { side, octets });
        self
    }
}

/// The possible actions of a session's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Pass,
    Drop(DropReason),
    /// Held or queued.
    Held,
}

/// The results of a frame for the interface with that MAC.
pub fn of_frame(cast: &Cast, frame: &[u8], link: &[u8; 6], from: Side) -> Verdict {
    let nothing = PossibleResult::default();
    let mut verdict = match reader::frame(frame, link) {
        Outer::Message { octets, sure, known, ecn } => {
            of_message(cast, octets, known, ecn).perhaps(sure && from == Side::Radio)
        }
        Outer::Packet { octets, sure } => of_packet(cast, octets, sure && from == Side::Network),
        Outer::Corrupt { message } => {
            // The kernel may drop it before it is counted.
            let came = PossibleResult {
                n3_in: message.into(),
                n6_in: (!message).into(),
                ..PossibleResult::default()
            };
            Verdict::any(vec![nothing.clone(), came.dropped(DropReason::BadChecksum)])
        }
        Outer::Other => Verdict::sure(nothing.clone()),
    };
    // With XDP, GTP-U is not accepted on interfaces without gNBs; the kernel accepts all its addresses on all
    // interfaces.
    let (claims_n3, vlan) = reader::claims_n3(frame);
    if claims_n3 && (vlan || from == Side::Network) {
        let barred =
            PossibleResult { n6_in: 1, ..PossibleResult::default() }.dropped(DropReason::UnsupportedGtpu);
        verdict.results.extend([nothing, barred]);
    }
    verdict
}

/// The results of a GTP-U message; `known`: from a tunnel's peer; `ecn`: of its outer header.
pub fn of_message(cast: &Cast, octets: &[u8], known: bool, ecn: u8) -> Verdict {
    let nothing = PossibleResult::default();
    let refused = PossibleResult { uncounted: true, ..PossibleResult::default() };
    match reader::message(octets) {
        Message::Gpdu { teid, .. } if !known && has_tunnel(cast, teid) => {
            Verdict::sure(PossibleResult { n3_in: 1, ..nothing }.dropped(DropReason::UnknownPeer))
        }
        // An Echo Request is answered; a malformed message may be counted as such first.
        Message::Malformed | Message::Unknown | Message::Signalling | Message::EndMarker { .. } if !known => {
            let names = [DropReason::MalformedGtpu, DropReason::UnsupportedGtpu, DropReason::UnknownPeer];
            Verdict::any(names.map(|name| refused.clone().dropped(name)).to_vec()).perhaps(false)
        }
        Message::Malformed => Verdict::sure(refused.dropped(DropReason::MalformedGtpu)),
        Message::Unknown => Verdict::sure(refused.dropped(DropReason::UnsupportedGtpu)),
        // An Error Indication must contain its sender's address (TS 29.281 7.3.1).
        Message::Signalling => Verdict::any(vec![nothing, refused.dropped(DropReason::StrayErrorIndication)]),
        Message::EndMarker { teid } => {
            Verdict::sure(PossibleResult { output: end_marker(cast, teid), ..nothing })
        }
        Message::Refused => {
            Verdict::sure(PossibleResult { n3_in: 1, ..nothing }.dropped(DropReason::UnsupportedGtpu))
        }
        Message::Gpdu { teid, qfi, packet } => uplink(cast, teid, qfi, packet, ecn),
    }
}

/// Whether the session with that TEID has a downlink tunnel, whose peer is then the only permitted uplink source.
fn has_tunnel(cast: &Cast, teid: u32) -> bool {
    cast.by_teid(teid).is_some_and(|member| member.manner != Manner::Idle)
}

/// End Markers are forwarded as packets are (TS 23.501 5.8.2.9).
fn end_marker(cast: &Cast, teid: u32) -> Option<Output> {
    let member = cast.by_teid(teid).filter(|member| member.manner == Manner::Relay)?;
    let octets = [&[0x30, 254, 0, 0][..], &member.onward.to_be_bytes()].concat();
    Some(Output { side: Side::Radio, octets })
}

fn uplink(cast: &Cast, teid: u32, qfi: Option<u8>, packet: &[u8], outer_ecn: u8) -> Verdict {
    let came = PossibleResult { n3_in: 1, ..PossibleResult::default() };
    let Some(member) = cast.by_teid(teid) else {
        return Verdict::sure(came.dropped(DropReason::UnknownTeid));
    };
    if reader::packet(packet).is_none() {
        let lost = (outer_ecn == CE).then(|| came.clone().dropped(DropReason::LostCongestion));
        let malformed = came.dropped(DropReason::MalformedInner);
        return Verdict::any([malformed].into_iter().chain(lost).collect());
    }
    let Some(packet) = behind_tunnel(packet, outer_ecn) else {
        return Verdict::sure(came.dropped(DropReason::LostCongestion));
    };
    let Some(ip) = reader::packet(&packet) else { return Verdict::default() };
    let mut verdict = Verdict::default();
    let closed = if member.manner == Manner::Relay { Closed::No } else { closed(cast, &ip) };
    let ruled_out = [
        DropReason::NoRule,
        DropReason::UnknownQfi,
        DropReason::SpoofedSource,
        DropReason::RuleDrop,
        DropReason::GateClosed,
    ];
    for fate in fates(member, Direction::Uplink, &ip, qfi) {
        let comes_later = !matches!(fate, Fate::Drop(reason) if ruled_out.contains(&reason));
        if closed != Closed::No && comes_later {
            verdict.results.push(came.clone().dropped(DropReason::ClosedDestination));
            if closed == Closed::Yes {
                continue;
            }
        }
        match fate {
            Fate::Drop(reason) => verdict.results.push(came.clone().dropped(reason)),
            Fate::Held => verdict.results.push(came.clone()),
            Fate::Pass => {
                let charged = came.clone().charged(member, Direction::Uplink, ip.octets.len());
                passes_uplink(cast, member, &ip, charged, &mut verdict);
            }
        }
    }
    verdict
}

const CE: u8 = 3;

/// The packet after its tunnel (RFC 6040 figure 4); `None`: dropped.
fn behind_tunnel(packet: &[u8], outer: u8) -> Option<Vec<u8>> {
    // By inner field, then by outer field: Not-ECT, ECT(1), ECT(0), CE, as their values are.
    const DROP: u8 = 9;
    const MERGED: [[u8; 4]; 4] = [[0, 0, 0, DROP], [1, 1, 1, 3], [2, 1, 2, 3], [3; 4]];
    let inner = reader::ecn(packet);
    let merged = MERGED[usize::from(inner)][usize::from(outer)];
    let mut packet = packet.to_vec();
    if merged == DROP {
        return None;
    }
    if packet[0] >> 4 == 6 {
        packet[1] = packet[1] & 0xcf | merged << 4;
    } else if merged != inner {
        // A wrong checksum stays wrong (RFC 1624): HC' = ~(~HC + ~m + m').
        let word = |octets: &[u8]| u32::from(u16::from_be_bytes([octets[0], octets[1]]));
        let (before, check) = (word(&packet[..2]), word(&packet[10..12]));
        packet[1] = packet[1] & 0xfc | merged;
        let sum = (check ^ 0xffff) + (before ^ 0xffff) + word(&packet[..2]);
        let sum = (sum & 0xffff) + (sum >> 16);
        let check = !((sum & 0xffff) + (sum >> 16)) as u16;
        packet[10..12].copy_from_slice(&check.to_be_bytes());
    }
    Some(packet)
}

/// Whether a destination is closed to a UE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closed {
    Yes,
    No,
    /// The kernel may own the address, or a permit may apply.
    Perhaps,
}

fn closed(cast: &Cast, ip: &Ip<'_>) -> Closed {
    if cast.by_ue(ip.destination).is_some() {
        return Closed::No;
    }
    match ip.destination {
        IpAddr::V4(GATEWAY) if ip.protocol == 1 => Closed::Perhaps,
        IpAddr::V4(v4) => closed_v4(v4),
        IpAddr::V6(GATEWAY_V6) if ip.protocol == 58 => Closed::Perhaps,
        IpAddr::V6(v6) => closed_v6(v6),
    }
}

fn closed_v4(address: Ipv4Addr) -> Closed {
    let own = [UPF_N6, GATEWAY, Ipv4Addr::new(172, 17, 0, 255), Ipv4Addr::new(10, 45, 255, 255)];
    match address.octets() {
        [0 | 127 | 224..=239, ..] | [169, 254, ..] | [172, 16, 0, _] | [255, 255, 255, 255] => Closed::Yes,
        // Some kernels own the first address of a network.
        [172, 17, 0, 0] | [10, 45, 0, 0] => Closed::Perhaps,
        _ if own.contains(&address) => Closed::Yes,
        _ => Closed::No,
    }
}

fn closed_v6(address: Ipv6Addr) -> Closed {
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0xfe80..=0xfebf | 0xff00.., ..] | [0xfd00, 0x16, 0, 0, ..] => {
            Closed::Yes
        }
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => closed_v4(Ipv4Addr::from_bits(address.to_bits() as u32)),
        _ if [GATEWAY_V6, UPF_N6_V6].contains(&address) => Closed::Yes,
        // The anycast address of routers.
        _ if address.to_bits() as u64 == 0 => Closed::Perhaps,
        _ => Closed::No,
    }
}

/// The results of a packet that may leave its session: into another tunnel, to another UE, or to the data
/// network.
fn passes_uplink(cast: &Cast, member: &Member, ip: &Ip<'_>, charged: PossibleResult, verdict: &mut Verdict) {
    let results = &mut verdict.results;
    if member.manner == Manner::Relay {
        return tunneled(charged, gpdu(member.onward, [0x10, QFI], ip.octets), results);
    }
    if let Some(other) = cast.by_ue(ip.destination) {
        for fate in fates(other, Direction::Downlink, ip, None) {
            delivered(other, fate, ip, charged.clone(), results);
        }
        return;
    }
    let sent = PossibleResult { n6_out: 1, ..charged.clone() };
    // A packet for a UE that does not exist is routed back, and dropped.
    let leaves = is_beyond(ip.destination);
    // The kernel discards what has a wrong header checksum (RFC 1812 5.2.2).
    let head = usize::from(ip.octets[0] & 15) * 4;
    let is_intact = ip.v6 || ip.octets.get(..head).is_some_and(|head| sum(&[head]) == 0xffff);
    if ip.hops > 1 && is_intact && (leaves || !ip.plain) {
        results.push(charged.out(Side::Network, with_a_hop_less(ip)));
    }
    let translated = cast.nat.is_none() || lasting::is_sure(ip, Direction::Uplink);
    if !ip.plain || !leaves || !translated || ip.octets.len() > N6_MTU {
        results.push(sent);
        verdict.stray = Some((member.index, 1));
        verdict.loose = Some((ip.source, ip.destination));
    }
}

/// The results of a packet for a UE that bypasses the kernel.
fn delivered(
    member: &Member,
    fate: Fate,
    ip: &Ip<'_>,
    came: PossibleResult,
    results: &mut Vec<PossibleResult>,
) {
    let ruled_out = [DropReason::NoRule, DropReason::GateClosed, DropReason::RuleDrop];
    match fate {
        Fate::Drop(reason) if ruled_out.contains(&reason) => results.push(came.dropped(reason)),
        _ if ip.hops < 2 => results.push(came.dropped(DropReason::TtlExceeded)),
        Fate::Drop(reason) => results.push(came.dropped(reason)),
        Fate::Held => results.push(came),
        Fate::Pass => {
            let charged = came.charged(member, Direction::Downlink, ip.octets.len());
            let mark = QFI | if member.is_reflective { RQI } else { 0 };
            tunneled(charged, gpdu(member.gnb_teid, [0, mark], &with_a_hop_less(ip)), results);
        }
    }
}

fn tunneled(charged: PossibleResult, message: Vec<u8>, results: &mut Vec<PossibleResult>) {
    if message.len() > LONGEST_TUNNELED {
        results.push(charged.clone().dropped(DropReason::N3SendFailed));
    }
    results.push(charged.out(Side::Radio, message));
}

/// The results of a packet from the data network; `sure`: received in the usual form.
fn of_packet(cast: &Cast, octets: &[u8], sure: bool) -> Verdict {
    let Some(ip) = reader::packet(octets) else { return Verdict::sure(PossibleResult::default()) };
    let loose = Some((ip.source, ip.destination));
    // The kernel may report an error to whom the packet says that it is from.
    let reported = cast.by_ue(ip.source).map(|member| (member.index, 2));
    let is_behind_nat = cast.nat.is_some() && !ip.v6;
    let Some(member) = cast.by_ue(ip.destination) else {
        // NAT drops what is for a pool.
        return Verdict { loose, stray: reported, ..of_nobody(&ip, sure && !is_behind_nat) };
    };
    if !ip.v6 && cast.nat.as_ref().is_some_and(|nat| nat.is_unsolicited(ip.octets)) {
        let stray = reported.or(Some((member.index, 1)));
        return Verdict { stray, loose, ..Verdict::sure(PossibleResult::default()) };
    }
    let forged = PossibleResult { n6_in: 1, ..PossibleResult::default() }.dropped(DropReason::SpoofedSource);
    let is_forged = forged_source(&ip);
    if is_forged == Closed::Yes {
        // The kernel drops some before the UPF sees them.
        let results = vec![forged, PossibleResult::default()];
        return Verdict { results, loose, stray: reported };
    }
    if ip.octets.len() > UE_MTU {
        let stray = Some((member.index, 2));
        return Verdict { stray, loose, ..Verdict::sure(PossibleResult::default()) };
    }
    let came = PossibleResult { n6_in: 1, ..PossibleResult::default() };
    let mut results = Vec::new();
    if ip.hops > 1 {
        for fate in fates(member, Direction::Downlink, &ip, None) {
            delivered(member, fate, &ip, came.clone(), &mut results);
        }
    }
    let is_about_unknown = !ip.v6 && cast.nat.as_ref().is_some_and(|nat| nat.is_about_unknown(ip.octets));
    if is_forged == Closed::Perhaps {
        results.push(forged);
    } else if ip.plain
        && sure
        && !is_about_unknown
        && (cast.nat.is_none() || lasting::is_sure(&ip, Direction::Downlink))
    {
        return Verdict::any(results);
    }
    results.push(PossibleResult::default());
    Verdict { results, loose, stray: Some((member.index, 1)) }
}

/// Whether a packet from outside may not have that source: one of the pools, or of the core, but for errors of routers.
fn forged_source(ip: &Ip<'_>) -> Closed {
    let (is_in_pool, closed) = match ip.source {
        IpAddr::V4(v4) => (v4.octets()[..2] == GATEWAY.octets()[..2], closed_v4(v4)),
        IpAddr::V6(v6) => (v6.segments()[..3] == GATEWAY_V6.segments()[..3], closed_v6(v6)),
    };
    match closed {
        _ if is_in_pool => Closed::Yes,
        Closed::Yes if matches!(ip.protocol, 1 | 58) || !ip.plain => Closed::Perhaps,
        closed => closed,
    }
}

/// For a pool address without a UE, or an address that is not the UPF's.
fn of_nobody(ip: &Ip<'_>, sure: bool) -> Verdict {
    let unknown = PossibleResult { n6_in: 1, ..PossibleResult::default() }.dropped(DropReason::UnknownUe);
    let fits = ip.octets.len() <= UE_MTU;
    let in_pool = ip.plain && sure && fits && !is_beyond(ip.destination);
    Verdict::sure(unknown).perhaps(in_pool)
}

fn is_beyond(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[..3] == REMOTE_V4,
        IpAddr::V6(v6) => v6.segments()[2] == 0x99,
    }
}

/// Whether it is ICMPv6 or DHCPv6 for the UE's link, without extension headers.
fn is_on_link(ip: &Ip<'_>) -> bool {
    let IpAddr::V6(to) = ip.destination else { return false };
    let is_link_local = matches!(to.segments()[0], 0xfe80..=0xfebf) || to.segments()[0] & 0xff0f == 0xff02;
    let is_dhcpv6 =
        to.segments() == [0xff02, 0, 0, 0, 0, 0, 1, 2] && ip.ports.is_some_and(|[_, port]| port == 547);
    match ip.octets.get(6) {
        Some(58) => is_link_local,
        Some(17) => is_dhcpv6,
        _ => false,
    }
}

/// Applies a session's rules: the first violation, in the order of enforcement.
fn fates(member: &Member, direction: Direction, ip: &Ip<'_>, qfi: Option<u8>) -> Vec<Fate> {
    let up = direction == Direction::Uplink;
    let drop = |reason| vec![Fate::Drop(reason)];
    // A UPF between gNB and anchor leaves the verification of flows to the anchor.
    let is_unknown = up && member.manner != Manner::Relay && qfi.is_some_and(|qfi| qfi != QFI);
    let no_rule = match member.manner {
        Manner::Filtered if ip.deep => {
            let matched = if is_unknown { Fate::Drop(DropReason::UnknownQfi) } else { Fate::Pass };
            return vec![matched, Fate::Drop(DropReason::NoRule)];
        }
        Manner::Filtered => !filter_takes(direction, ip),
        Manner::OneQfi => up && qfi != Some(QFI),
        _ => false,
    };
    if no_rule {
        return drop(DropReason::NoRule);
    }
    if is_unknown {
        return drop(DropReason::UnknownQfi);
    }
    // A UPF between gNB and anchor passes Neighbour Discovery on.
    let passes_on = member.manner == Manner::Relay && is_on_link(ip);
    if up && !member.has(ip.source) && !passes_on {
        return drop(DropReason::SpoofedSource);
    }
    match (member.manner, direction) {
        (Manner::Refused, Direction::Uplink) => drop(DropReason::RuleDrop),
        (Manner::UplinkGate, Direction::Uplink) => drop(DropReason::GateClosed),
        (_, Direction::Uplink) if !is_on_link(ip) && ip.is_error_about_others(|to| member.has(to)) => {
            drop(DropReason::SpoofedSource)
        }
        (Manner::DownlinkGate, Direction::Downlink) => drop(DropReason::GateClosed),
        (Manner::Idle, Direction::Downlink) => {
            let full = [DropReason::BufferFull, DropReason::BufferDiscarded].map(Fate::Drop);
            [&[Fate::Held, Fate::Pass][..], &full].concat()
        }
        (Manner::Slow, _) => {
            let late =
                [DropReason::RateExceeded, DropReason::QueueDelay, DropReason::QueueFull].map(Fate::Drop);
            [&[Fate::Pass, Fate::Held][..], &late].concat()
        }
        (Manner::Quota, _) => vec![Fate::Pass, Fate::Drop(DropReason::QuotaExhausted)],
        _ => vec![Fate::Pass],
    }
}

fn filter_takes(direction: Direction, ip: &Ip<'_>) -> bool {
    let Some([source, destination]) = ip.ports else { return false };
    let (local, remote, address) = match direction {
        Direction::Uplink => (source, destination, ip.destination),
        Direction::Downlink => (destination, source, ip.source),
    };
    let within = |port: u16, [first, last]: [u16; 2]| first <= port && port <= last;
    let named = matches!(address, IpAddr::V4(v4) if v4.octets()[..3] == REMOTE_V4);
    match ip.protocol {
        17 => named && within(remote, REMOTE_PORTS),
        6 => within(local, LOCAL_PORTS),
        _ => false,
    }
}

/// In the octet of the QFI, of downlink type only.
const RQI: u8 = 0x40;

/// With a PDU Session Container (TS 38.415 5.5.2); `kind`: its PDU type, in the upper half; `mark`: QFI, and RQI.
fn gpdu(teid: u32, [kind, mark]: [u8; 2], packet: &[u8]) -> Vec<u8> {
    let length = ((packet.len() + 8) as u16).to_be_bytes();
    let container = [0, 0, 0, 0x85, 1, kind, mark, 0];
    [&[0x34, 255, length[0], length[1]][..], &teid.to_be_bytes(), &container, packet].concat()
}

/// The packet as a router forwards it. A wrong checksum stays wrong (RFC 1624).
fn with_a_hop_less(ip: &Ip<'_>) -> Vec<u8> {
    let mut packet = ip.octets.to_vec();
    if ip.v6 {
        packet[7] -= 1;
        return packet;
    }
    packet[8] -= 1;
    let before = u32::from(u16::from_be_bytes([packet[10], packet[11]]));
    let sum = before + 0x100;
    let after = (sum + u32::from(sum >= 0xffff)) as u16;
    packet[10..12].copy_from_slice(&after.to_be_bytes());
    packet
}
