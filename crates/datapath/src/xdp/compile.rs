//! Compiles a session's rules for the BPF program. Rules that the program cannot apply are marked for user
//! space; if it cannot even select the rule, the whole session is.

use super::lookup::Key;
use crate::config::DatapathConfig;
use crate::rules::{Rule, Rules};
use crate::sys::layout::{self, Address, Match, Matches, NO_INDEX, NO_RULE, SESSION_MATCHES, SESSION_RULES};
use pith_upf::contract::{Action, AddressRange, Destination, Direction, SdfFilter, Source, Tunnel};
use std::net::IpAddr;
use std::sync::atomic::AtomicU32;

/// A session compiled for the program.
#[derive(Debug)]
pub struct Compiled {
    /// Its rules, without the slot of its filters.
    pub session: layout::Session,
    /// Its filters, if it needs any.
    pub matches: Option<Matches>,
    /// The keys that select it.
    pub keys: Vec<Key>,
    /// Whether a rule sends packets to user space.
    pub user_space: bool,
}

/// This UPF's side of N3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct N3Side {
    /// Whether packets may be sent into tunnels over IPv4.
    pub v4: bool,
    /// The same over IPv6.
    pub v6: bool,
    /// Whether GTP-U is accepted from configured networks only.
    pub has_radios: bool,
}

impl N3Side {
    pub fn of(config: &DatapathConfig) -> Self {
        Self {
            v4: config.n3_addresses.iter().any(IpAddr::is_ipv4),
            v6: config.n3_addresses.iter().any(IpAddr::is_ipv6),
            has_radios: !config.boundary.radios.is_empty(),
        }
    }
}

/// Compiles the rules of a session; `tenant` is its UE's tenant.
pub fn compile(rules: &Rules, n3: N3Side, tenant: Option<u8>) -> Compiled {
    let mut session = bare(rules, n3);
    session.tenant = tenant.map_or(0, |tenant| tenant + 1);
    let keys = keys(rules, &session);
    let Some(matches) = matches(rules) else {
        return Compiled { session, matches: None, keys, user_space: true };
    };
    session.action = AtomicU32::new(layout::Action::Forward as u32);
    session.only = ORIGINS.map(|origin| only(rules, origin));
    session.match_count = matches.len() as u8;
    let mut user_space = false;
    let mut others = Matches::default();
    for (rule, index) in rules.iter().zip(rule_indices(rules)) {
        let compiled = compile_rule(rule, n3);
        user_space |= compiled.is_to_user();
        let mut slots = session.rules.iter_mut().chain(&mut others.rules);
        if let Some(slot) = slots.nth(index.into()) {
            *slot = compiled;
        }
    }
    others.filters.iter_mut().zip(&matches).for_each(|(slot, filter)| *slot = *filter);
    // True of any session with more rules than fit into its block: one origin has several.
    let needed = session.only.contains(&NO_RULE) && !matches.is_empty();
    Compiled { session, matches: needed.then_some(others), keys, user_space }
}

/// A session without rules, whose packets all go to user space.
fn bare(rules: &Rules, n3: N3Side) -> layout::Session {
    let v4 = rules.ue.v4.map(|v4| u32::from_ne_bytes(v4.octets()));
    let v6 =
        rules.ue.v6.and_then(|prefix| prefix.octets().first_chunk().map(|half| u64::from_ne_bytes(*half)));
    let block = rules.state.block();
    // The source of packets is not checked for a UE without an address.
    let framed = if rules.networks().next().is_none() || rules.ue.is_empty() { 0 } else { layout::UE_FRAMED };
    layout::Session {
        id: rules.state.id.0,
        ue_v4: v4.unwrap_or(0),
        ue_v6: v6.unwrap_or(0),
        flags: v4.map_or(0, |_| layout::UE_V4) | v6.map_or(0, |_| layout::UE_V6) | framed,
        block: block.map_or(NO_INDEX, |block| block.index()),
        peer: match rules.downlink_peer {
            // The program looks the source up, as it is no tunnel's IPv4 address.
            None if n3.has_radios => NO_INDEX,
            None => 0,
            Some(IpAddr::V4(peer)) => u32::from_ne_bytes(peer.octets()),
            Some(IpAddr::V6(_)) => NO_INDEX,
        },
        flows: block.and_then(|block| block.flow_group()).unwrap_or(NO_INDEX),
        ..layout::Session::default()
    }
}

fn keys(rules: &Rules, session: &layout::Session) -> Vec<Key> {
    let mut teids: Vec<u32> = rules.teids().map(|teid| teid.0).collect();
    teids.sort_unstable();
    teids.dedup();
    let v4 = (session.flags & layout::UE_V4 != 0).then_some(Key::V4(session.ue_v4));
    let v6 = (session.flags & layout::UE_V6 != 0).then_some(Key::V6(session.ue_v6));
    let framed = rules.networks().map(Key::Framed);
    teids.into_iter().map(Key::Teid).chain(v4).chain(v6).chain(framed).collect()
}

/// The side a packet was received on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReceivedFrom {
    Tunnel,
    Network,
}

const ORIGINS: [ReceivedFrom; 2] = [ReceivedFrom::Tunnel, ReceivedFrom::Network];

impl ReceivedFrom {
    fn of(rule: &Rule) -> Self {
        if matches!(rule.source, Source::Network) { Self::Network } else { Self::Tunnel }
    }
}

/// The index of the only rule for an origin, if it matches all packets.
fn only(rules: &Rules, origin: ReceivedFrom) -> u8 {
    let mut from_there = rules.iter().filter(|rule| ReceivedFrom::of(rule) == origin);
    match (from_there.next(), from_there.next()) {
        (Some(rule), None) if rule.filters.is_empty() => origin as u8,
        _ => NO_RULE,
    }
}

/// The index of each rule in the session's block: a single rule for an origin has the origin's index, the
/// others follow in the order of evaluation.
fn rule_indices(rules: &Rules) -> Vec<u8> {
    let only = ORIGINS.map(|origin| only(rules, origin));
    let mut others = (0..).filter(|index| !only.contains(index));
    let index = |rule: &Rule| match only.get(ReceivedFrom::of(rule) as usize) {
        Some(&NO_RULE) | None => others.next().unwrap_or(NO_RULE),
        Some(&index) => index,
    };
    rules.iter().map(index).collect()
}

/// All filters in the order of evaluation; `None` if there are too many, or one that the program cannot
/// evaluate.
fn matches(rules: &Rules) -> Option<Vec<Match>> {
    if rules.iter().count() > SESSION_RULES {
        return None;
    }
    let mut all = Vec::new();
    for (rule, at) in rules.iter().zip(rule_indices(rules)) {
        let unfiltered = Match { flags: layout::MATCH_ALL, rule: at, ..Match::default() };
        match &*rule.filters {
            [] => all.push(unfiltered),
            filters => {
                for filter in filters {
                    all.push(Match { rule: at, ..compile_filter(filter)? });
                }
            }
        }
    }
    (all.len() <= SESSION_MATCHES).then_some(all)
}

/// `None` if the filter names a field that the program does not read.
fn compile_filter(filter: &SdfFilter) -> Option<Match> {
    if filter.spi.is_some() || filter.flow_label.is_some() {
        return None;
    }
    let mut compiled = Match::default();
    if let Some(protocol) = filter.protocol {
        compiled.flags |= layout::MATCH_PROTOCOL;
        compiled.protocol = protocol;
    }
    if let Some(tos) = filter.tos {
        (compiled.tos, compiled.tos_mask) = (tos.value, tos.mask);
    }
    if let Some(ports) = filter.local.ports {
        compiled.flags |= layout::MATCH_LOCAL_PORTS;
        compiled.local_ports = [ports.first, ports.last];
    }
    if let Some(ports) = filter.remote.ports {
        compiled.flags |= layout::MATCH_REMOTE_PORTS;
        compiled.remote_ports = [ports.first, ports.last];
    }
    compiled.flags |= match filter.direction {
        None => 0,
        Some(Direction::Uplink) => layout::MATCH_UPLINK_ONLY,
        Some(Direction::Downlink) => layout::MATCH_DOWNLINK_ONLY,
    };
    for (range, index) in
        [(filter.local.address, &mut compiled.local), (filter.remote.address, &mut compiled.remote)]
    {
        if let Some(range) = range {
            compiled.flags |= if range.address.is_ipv4() { layout::MATCH_V4 } else { layout::MATCH_V6 };
            *index = under_mask(&range);
        }
    }
    Some(compiled)
}

/// A range's address, masked, and its mask.
fn under_mask(range: &AddressRange) -> [Address; 2] {
    let ones = if range.address.is_ipv4() { [u8::MAX; 4].into() } else { [u8::MAX; 16].into() };
    [range.address, ones].map(|whole| address(AddressRange { address: whole, ..*range }.network().address))
}

fn wire(octets: [u8; 16]) -> Address {
    let [a, b, c, d, e, f, g, h, rest @ ..] = octets;
    Address { high: u64::from_ne_bytes([a, b, c, d, e, f, g, h]), low: u64::from_ne_bytes(rest) }
}

/// An address in the program's representation.
pub fn address(of: IpAddr) -> Address {
    match of {
        IpAddr::V4(v4) => Address { high: 0, low: u32::from_ne_bytes(v4.octets()).into() },
        IpAddr::V6(v6) => wire(v6.octets()),
    }
}

fn compile_rule(rule: &Rule, n3: N3Side) -> layout::Rule {
    let mut compiled = layout::Rule { qfis: rule.qfis & rule.permitted_qfis, ..layout::Rule::default() };
    if rule.qfis == u64::MAX {
        compiled.flags |= layout::RULE_ANY_QFI;
    }
    if rule.open {
        compiled.flags |= layout::RULE_OPEN;
    }
    if let Source::Tunnel { teid, .. } = rule.source {
        compiled.flags |= layout::RULE_TUNNEL;
        compiled.teid = teid.0;
    }
    if rule.direction() == Direction::Downlink {
        compiled.flags |= layout::RULE_DOWNLINK;
    }
    if let Some(qfi) = rule.qfi {
        compiled.flags |= layout::RULE_HAS_QFI;
        compiled.qfi = qfi.0 | if rule.rqi { layout::MARK_RQI } else { 0 };
    }
    let action = match (rule.action, rule.direction()) {
        (None, _) => layout::Action::NoFar,
        (Some(Action::Drop), _) => layout::Action::Drop,
        (Some(Action::Forward(Destination::Network)), Direction::Uplink) => layout::Action::Forward,
        (Some(Action::Forward(Destination::Tunnel(tunnel))), _) => into_tunnel(&mut compiled, &tunnel, n3),
        _ => layout::Action::ToUser,
    };
    let known = set_meters(&mut compiled, rule) && set_urrs(&mut compiled, rule);
    match rule.flow.counters.number().filter(|_| known) {
        Some(flow) => compiled.set_action(action, flow),
        None => compiled.set_action(layout::Action::ToUser, 0),
    }
    compiled
}

fn into_tunnel(compiled: &mut layout::Rule, tunnel: &Tunnel, n3: N3Side) -> layout::Action {
    match tunnel.peer {
        IpAddr::V4(peer) if n3.v4 => compiled.peer[0] = u32::from_ne_bytes(peer.octets()),
        IpAddr::V6(peer) if n3.v6 => {
            compiled.flags |= layout::RULE_PEER_V6;
            let words = peer.octets();
            let words = words.as_chunks::<4>().0;
            compiled
                .peer
                .iter_mut()
                .zip(words)
                .for_each(|(word, octets)| *word = u32::from_ne_bytes(*octets));
        }
        _ => return layout::Action::ToUser,
    }
    if compiled.flags & layout::RULE_TUNNEL != 0 {
        compiled.flags |= layout::RULE_ONWARD;
    }
    compiled.tunnel_teid = tunnel.teid.0;
    compiled.dscp = tunnel.dscp.unwrap_or(0);
    layout::Action::Forward
}

/// Whether all meters are in memory that the program shares.
fn set_meters(compiled: &mut layout::Rule, rule: &Rule) -> bool {
    let meters = rule.flow.metering();
    for (slot, meter) in compiled.meters.iter_mut().zip(meters) {
        *slot = meter.slot().unwrap_or(NO_INDEX);
    }
    meters.len() <= compiled.meters.len() && meters.iter().all(|meter| meter.slot().is_some())
}

/// Whether all URRs and their limits are in memory that the program shares.
fn set_urrs(compiled: &mut layout::Rule, rule: &Rule) -> bool {
    let slots = compiled.urrs.iter_mut().zip(&mut compiled.limits);
    for ((urr, limits), used) in slots.zip(&rule.urrs) {
        *urr = used.counter.slot().unwrap_or(NO_INDEX);
        *limits = used.limits_slot().flatten().unwrap_or(NO_INDEX);
    }
    let known = |used: &std::sync::Arc<_>| is_known(used);
    rule.urrs.len() <= compiled.urrs.len() && rule.urrs.iter().all(known)
}

fn is_known(used: &crate::rules::UrrUse) -> bool {
    used.counter.slot().is_some() && used.limits_slot().is_none_or(|slot| slot.is_some())
}
