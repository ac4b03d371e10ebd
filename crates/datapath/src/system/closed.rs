//! Drops UE packets to closed destinations (addresses of the host and the core: [`Reach`]) in the kernel's packet filter.
//! The workers already check this, but they do not see a destination that a NAT rule of the host has changed, and they apply
//! a change of the closed destinations later than the kernel.
//!
//! In the other direction, it marks forged sources: a packet from outside whose source address is a UE's or the core's must
//! not reach UEs. A packet read from TUN does not show the interface that received it. Therefore the chain replaces a forged
//! source by the unspecified address, and the UPF drops and counts such packets (`spoofed_source`).
//!
//! Separate chains precede the firewalls of data networks. Packets from interfaces other than TUN pass
//! immediately. Packets for this host traverse the input chain, so forwarded packets need no look-up for it.
//!
//! ```text
//!   input    from TUN: permits, echo to the gateway, else drop
//!   forward  from TUN: permits, interfaces of N3; destinations in a block of `near` ─▶ look: closed, GTP-U to tunnel
//!            peers, other tenants
//! ```
//!
//! Most packets of UEs are for distant networks. A set of intervals costs each of them some 190 ns (Linux 6.18 searches it by
//! indirect calls), a bitmap of the first 16 bits of addresses a quarter of that.

use super::nft::{Table, run, table_name, words};
use super::policy::Net;
use crate::boundary::{Area, Permit, Reach};
use crate::sys::interface_index;
use pith_pfcp::gtpu::GTPU_PORT;
use pith_upf::contract::AddressRange;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Before other filters (NF_IP_PRI_FILTER is 0), after destination NAT (NF_IP_PRI_NAT_DST is -100).
const PRIORITY: i32 = -10;
/// Maximum number of blocks of the first look-up, which take some 15 ms to fill: the kernel compares each with all others.
/// With more, as with 'local 0.0.0.0/0' in the routing table, all packets take the second look-up.
const MAX_BLOCKS: usize = 2_048;

/// All chains.
const CHAINS: [&str; 5] = ["closed_look", "closed_input", "closed_forward", "closed_sources", "closed_hosts"];

/// The sets and chains of closed destinations, a table for each address family: a packet is compared with rules of its own
/// family only. `one_sided`: interfaces towards gNBs and other UPFs only. `by_kernel`: whether the kernel forwards packets
/// between UEs.
pub fn tables(tun: &str, reach: &Reach, one_sided: &[String], by_kernel: bool) -> Vec<Table> {
    Family::ALL
        .map(|family| Table {
            family: family.word(),
            body: family.chains(tun, reach, one_sided)
                + &family.sources(tun, reach, by_kernel)
                + &family.hosts(tun, reach),
        })
        .into()
}

/// Which address of a packet is compared with a permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The destination: the packet is from a UE.
    Destination,
    /// The source: the packet is an answer to a UE.
    Source,
}

impl End {
    /// The words for its address and its port.
    fn words(self) -> (&'static str, &'static str) {
        if self == Self::Source { ("saddr", "sport") } else { ("daddr", "dport") }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl Family {
    const ALL: [Self; 2] = [Self::V4, Self::V6];

    fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The keyword in rules.
    fn word(self) -> &'static str {
        if self == Self::V4 { "ip" } else { "ip6" }
    }

    /// The forward chain has no rules that only packets to this host can match: each rule costs every forwarded packet.
    fn chains(self, tun: &str, reach: &Reach, one_sided: &[String]) -> String {
        let permits = reach.permits().filter(|permit| Self::of(permit.to.address) == self);
        let permits: String = permits.map(|permit| self.permit(permit, End::Destination)).collect();
        let gateways = reach.gateways().filter(|gateway| Self::of(*gateway) == self);
        let echoes: String = gateways.map(|gateway| self.echo(gateway)).collect();
        let interfaces: String =
            one_sided.iter().map(|interface| format!("\t\toifname \"{interface}\" drop\n")).collect();
        // `iif` compares the index, which costs less than the name (`iifname`). The interface exists before the table.
        let begin = |hook: &str| {
            format!(
                "\tchain closed_{hook} {{\n\t\ttype filter hook {hook} priority {PRIORITY};\n\
                 \t\tiif != \"{tun}\" accept\n{permits}"
            )
        };
        let blocks = self.blocks(reach);
        let is_near = blocks.as_ref().map_or(String::new(), |_| self.is_near());
        format!(
            "{closed}{near}{peers}\tchain closed_look {{\n\t\t{word} daddr @{name} drop\n\
             \t\tudp dport {GTPU_PORT} {word} daddr @{gtpu} drop\n{tenants}\t}}\n\
             {input}{echoes}\t\tdrop\n\t}}\n{forward}{interfaces}\t\t{is_near}jump closed_look\n\t}}\n",
            closed = self.set(reach),
            near = self.near(blocks.as_deref().unwrap_or_default()),
            peers = self.peers(reach),
            gtpu = self.peers_name(),
            input = begin("input"),
            forward = begin("forward"),
            word = self.word(),
            name = self.name(),
            tenants = self.between_tenants(reach),
        )
    }

    /// The first 16 bits of all closed addresses and of pools; `None`: too many. Without multicast, which the kernel forwards
    /// by multicast routes only, and TUN has none.
    fn blocks(self, reach: &Reach) -> Option<Vec<u16>> {
        let closed = reach.closed_spans().into_iter().filter(|(first, _)| Self::of(*first) == self);
        let closed = closed.map(|(first, last)| block(first)..=block(last));
        let peers = reach.tunnel_peers().filter(|peer| Self::of(*peer) == self);
        let closed = closed.chain(peers.map(|peer| block(peer)..=block(peer)));
        let tenants = reach.entries().iter().filter(|(_, area)| matches!(area, Area::Tenant(_)));
        let tenants = tenants.filter(|(range, _)| Self::of(range.address) == self).map(|(range, _)| {
            let (first, rest) = (block(range.address), u16::MAX.checked_shr(range.prefix.into()));
            first..=first | rest.unwrap_or(0)
        });
        let multicast = if self == Self::V4 { 0xe000..=0xefff } else { 0xff00..=0xffff };
        let mut blocks = BTreeSet::new();
        for span in closed.chain(tenants) {
            blocks.extend(span.filter(|block| !multicast.contains(block)));
            if blocks.len() > MAX_BLOCKS {
                return None;
            }
        }
        Some(blocks.into_iter().collect())
    }

    /// A set of 16 bits without intervals, which the kernel keeps as a bitmap.
    fn near(self, blocks: &[u16]) -> String {
        let elements = blocks.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        let elements =
            if blocks.is_empty() { elements } else { format!("\t\telements = {{ {elements} }}\n") };
        let (word, name) = (self.word(), self.near_name());
        format!("\tset {name} {{\n\t\ttypeof {word} length\n{elements}\t}}\n")
    }

    /// Tunnel peers that are closed to GTP-U only.
    fn peers(self, reach: &Reach) -> String {
        let mut peers: Vec<_> = reach.tunnel_peers().filter(|peer| Self::of(*peer) == self).collect();
        peers.sort();
        let peers = peers.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ");
        let elements = if peers.is_empty() { peers } else { format!("\t\telements = {{ {peers} }}\n") };
        let kind = if self == Self::V4 { "ipv4_addr" } else { "ipv6_addr" };
        format!("\tset {} {{\n\t\ttype {kind}\n{elements}\t}}\n", self.peers_name())
    }

    fn peers_name(self) -> &'static str {
        if self == Self::V4 { "peers4" } else { "peers6" }
    }

    /// The first 16 bits of the destination address, in the bitmap.
    fn is_near(self) -> String {
        let at = if self == Self::V4 { 128 } else { 192 };
        format!("@nh,{at},16 @{} ", self.near_name())
    }

    fn near_name(self) -> &'static str {
        if self == Self::V4 { "near4" } else { "near6" }
    }

    /// Commands that empty the sets and chains, so that a table can be added again with its new content.
    fn flush(self, table: &str, body: &str) -> String {
        let word = self.word();
        let sets = [self.name(), self.near_name(), self.peers_name()];
        let sets = sets.map(|name| format!("flush set {word} {table} {name}\n"));
        let chains = CHAINS.into_iter().filter(|name| body.contains(&format!("chain {name} ")));
        sets.into_iter().chain(chains.map(|name| format!("flush chain {word} {table} {name}\n"))).collect()
    }

    /// The chain of forged sources.
    ///
    /// Sources in the pools are compared only if the kernel forwards packets between UEs: then the UPF can't distinguish those
    /// from forged ones. Closed sources are compared only for IPv6: of IPv4, the kernel drops packets with a source address of
    /// this host, and the UPF drops the others.
    fn sources(self, tun: &str, reach: &Reach, by_kernel: bool) -> String {
        let pools: Vec<_> = reach.here().iter().filter(|pool| Self::of(pool.address) == self).collect();
        let pools: Vec<_> = pools.into_iter().map(|pool| Net(*pool).to_string()).collect();
        let replace = |set: &str| {
            let (word, unspecified) = (self.word(), self.unspecified());
            format!("\t\t{word} saddr {set} {word} saddr set {unspecified} accept\n")
        };
        let mut rules = String::new();
        if by_kernel && !pools.is_empty() {
            rules += &replace(&format!("{{ {} }}", pools.join(", ")));
        }
        if self == Self::V6 && !pools.is_empty() {
            rules += "\t\ticmpv6 type { destination-unreachable, packet-too-big, time-exceeded, parameter-problem } accept\n";
            let permits = reach.permits().filter(|permit| Self::of(permit.to.address) == self);
            permits.for_each(|permit| rules += &self.permit(permit, End::Source));
            rules += &replace("@closed6");
        }
        if rules.is_empty() {
            return rules;
        }
        format!(
            "\tchain closed_sources {{\n\t\ttype filter hook forward priority {PRIORITY};\n\
             \t\tiif \"{tun}\" accept\n\t\toif != \"{tun}\" accept\n{rules}\t}}\n"
        )
    }

    /// The chain that drops packets to this host with a UE's source address from elsewhere: this host would answer to the UE.
    fn hosts(self, tun: &str, reach: &Reach) -> String {
        let pools = reach.here().iter().filter(|pool| Self::of(pool.address) == self);
        let word = self.word();
        let rule = |pool: &AddressRange| {
            format!("\t\t{word} saddr {} iif != \"{tun}\" iif != \"lo\" drop\n", Net(*pool))
        };
        let rules: String = pools.map(rule).collect();
        if rules.is_empty() {
            return rules;
        }
        format!("\tchain closed_hosts {{\n\t\ttype filter hook input priority {PRIORITY};\n{rules}\t}}\n")
    }

    fn unspecified(self) -> &'static str {
        if self == Self::V4 { "0.0.0.0" } else { "::" }
    }

    fn name(self) -> &'static str {
        if self == Self::V4 { "closed4" } else { "closed6" }
    }

    fn elements(self, reach: &Reach) -> String {
        let spans = reach.closed_spans().into_iter().filter(|(first, _)| Self::of(*first) == self);
        let element = |(first, last): (IpAddr, IpAddr)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        };
        spans.map(element).collect::<Vec<_>>().join(", ")
    }

    fn set(self, reach: &Reach) -> String {
        let kind = if self == Self::V4 { "ipv4_addr" } else { "ipv6_addr" };
        let (name, elements) = (self.name(), self.elements(reach));
        format!(
            "\tset {name} {{\n\t\ttype {kind}\n\t\tflags interval\n\t\telements = {{ {elements} }}\n\t}}\n"
        )
    }

    /// The rule of a permit. In the kernel it applies to all tenants; the workers distinguish the tenants.
    fn permit(self, permit: &Permit, end: End) -> String {
        let (address, port) = end.words();
        let to = format!("\t\t{} {address} {}", self.word(), Net(permit.to));
        let rest = match (permit.protocol, permit.ports) {
            (None, _) => String::new(),
            (Some(protocol), Some(ports)) => format!(" {} {port} {ports}", protocol.name()),
            (Some(protocol), None) => {
                let [v4, v6] = protocol.numbers();
                format!(" meta l4proto {{ {v4}, {v6} }}")
            }
        };
        format!("{to}{rest} accept\n")
    }

    fn echo(self, gateway: IpAddr) -> String {
        let icmp = if self == Self::V4 { "icmp" } else { "icmpv6" };
        let word = self.word();
        format!("\t\t{word} daddr {gateway} {icmp} type {{ echo-request, echo-reply }} accept\n")
    }

    /// Rules that drop packets from each pool to those of other tenants.
    fn between_tenants(self, reach: &Reach) -> String {
        let mut pools: Vec<(AddressRange, u8)> = reach
            .entries()
            .iter()
            .filter(|(range, _)| Self::of(range.address) == self)
            .filter_map(|(range, area)| match area {
                Area::Tenant(tenant) => Some((*range, *tenant)),
                Area::Open | Area::Closed | Area::TunnelPeer => None,
            })
            .collect();
        pools.sort_by_key(|(range, tenant)| (*tenant, range.address));
        let mut rules = String::new();
        for (from, tenant) in &pools {
            let others = pools.iter().filter(|(_, other)| other != tenant);
            let others: Vec<_> = others.map(|(to, _)| Net(*to).to_string()).collect();
            if !others.is_empty() {
                let (word, others) = (self.word(), others.join(", "));
                rules += &format!("\t\t{word} saddr {} {word} daddr {{ {others} }} drop\n", Net(*from));
            }
        }
        rules
    }
}

/// The first 16 bits of an address.
fn block(address: IpAddr) -> u16 {
    match address {
        IpAddr::V4(v4) => (v4.to_bits() >> 16) as u16,
        IpAddr::V6(v6) => v6.segments()[0],
    }
}

/// The chains and sets in the kernel, or nothing if there are none.
#[derive(Debug, Default)]
pub struct ClosedSets {
    kept: Option<Kept>,
}

/// What the chains are made of, apart from the areas.
#[derive(Debug)]
struct Kept {
    tun: String,
    one_sided: Vec<String>,
    by_kernel: bool,
}

impl ClosedSets {
    /// Those of [`tables`] with these arguments.
    pub fn of(tun: &str, one_sided: Vec<String>, by_kernel: bool) -> Self {
        Self { kept: Some(Kept { tun: tun.to_owned(), one_sided, by_kernel }) }
    }

    /// Replaces the content of chains and sets in one transaction.
    pub fn replace(&self, reach: &Reach) {
        let Some(Kept { tun, one_sided, by_kernel }) = &self.kept else { return };
        if interface_index(tun).is_err() {
            // The TUN interface goes before the table at the end of the process.
            return;
        }
        let name = table_name(tun);
        let tables = Family::ALL.into_iter().zip(tables(tun, reach, one_sided, *by_kernel));
        let script = tables.map(|(family, Table { family: word, body })| {
            format!("{}table {word} {name} {{\n{body}}}\n", family.flush(&name, &body))
        });
        if let Err(error) = run(&words("nft -f -"), &script.collect::<String>()) {
            tracing::warn!(%error, "the packet filter's closed destinations could not be updated; the UPF's own check is up to date");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::{Boundary, Host, Tenant};
    use crate::config::UePool;

    fn reach() -> Reach {
        let pools = [
            UePool { gateway: IpAddr::from([10, 45, 0, 1]), prefix: 16 },
            UePool { gateway: IpAddr::from([10, 46, 0, 1]), prefix: 16 },
        ];
        let permits = vec!["10.211.0.1 udp port 53".parse().unwrap(), "2001:db8::/32 icmp".parse().unwrap()];
        let tenants = vec![Tenant { pools: vec![pools[0].network()], permits }];
        let boundary = Boundary {
            core: vec![crate::system::parse_network("192.0.2.0/24").unwrap()],
            tenants,
            ..Boundary::default()
        };
        let hosts = (&[IpAddr::from([203, 0, 113, 9])][..], &[IpAddr::from([9, 9, 9, 9])][..]);
        Reach::compile(&boundary, &pools, &Host::default(), hosts)
    }

    #[test]
    fn the_host_is_closed_and_so_are_networks_and_other_tenants() {
        let text: String =
            tables("pith0", &reach(), &["n3".into()], true).into_iter().map(|table| table.body).collect();
        for line in [
            "set closed4 {\n\t\ttype ipv4_addr\n\t\tflags interval\n\t\telements = { 0.0.0.0-0.255.255.255, 127.0.0.0-",
            "192.0.2.0-192.0.2.255, 203.0.113.9, 224.0.0.0-239.255.255.255, 255.255.255.255 }",
            "hook input priority -10;\n\t\tiif != \"pith0\" accept\n\t\tip daddr 10.211.0.1 udp dport 53 accept\n",
            "ip6 daddr 2001:db8::/32 meta l4proto { 1, 58 } accept",
            "ip daddr 10.45.0.1 icmp type { echo-request, echo-reply } accept",
            "accept\n\t\tdrop\n\t}\n",
            "ip6 daddr @closed6 drop",
            "ip daddr @closed4 drop",
            "set near4 {\n\t\ttypeof ip length\n\t\telements = { 0, 1, 2, ",
            ", 255, 2313, 2605, 2606, 32512, ",
            "set peers4 {\n\t\ttype ipv4_addr\n\t\telements = { 9.9.9.9 }\n",
            "ip daddr @closed4 drop\n\t\tudp dport 2152 ip daddr @peers4 drop\n",
            "ip6 daddr @peers6 drop",
            ", 32767, 43518, 49152, 51968, 65535 }\n",
            "ip6 length\n\t\telements = { 0, 100, 65152, ",
            "ip saddr 10.46.0.0/16 ip daddr { 10.45.0.0/16 } drop",
            "oifname \"n3\" drop\n\t\t@nh,128,16 @near4 jump closed_look\n",
            "@nh,192,16 @near6 jump closed_look\n",
            "hook forward priority -10;\n\t\tiif \"pith0\" accept\n\t\toif != \"pith0\" accept\n\
             \t\tip saddr { 10.45.0.0/16, 10.46.0.0/16 } ip saddr set 0.0.0.0 accept\n\t}\n",
            "hook input priority -10;\n\t\tip saddr 10.45.0.0/16 iif != \"pith0\" iif != \"lo\" drop\n\t\tip saddr 10.46",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let direct = tables("pith0", &reach(), &[], false);
        assert!(
            direct.iter().all(|table| !table.body.contains("closed_sources")),
            "the UPF checks sources by itself"
        );
    }

    #[test]
    fn networks_of_many_blocks_are_looked_up_at_once() {
        let core = vec![crate::system::parse_network("64.0.0.0/2").unwrap()];
        let reach =
            Reach::compile(&Boundary { core, ..Boundary::default() }, &[], &Host::default(), (&[], &[]));
        let [v4, v6] = &tables("pith0", &reach, &[], false)[..] else { panic!() };
        assert!(v4.body.contains("\t\tjump closed_look\n") && !v4.body.contains("@nh"), "{}", v4.body);
        assert!(v6.body.contains("@nh,192,16 @near6 jump"), "{}", v6.body);
    }

    #[test]
    fn the_content_is_replaced_as_a_whole() {
        if !crate::sys::enter_namespace() {
            return;
        }
        let tun = crate::sys::TunQueue::open("pith0").unwrap();
        let list = || run(&words("nft list ruleset"), "").unwrap();
        let core = vec![crate::system::parse_network("198.18.0.0/15").unwrap()];
        let more =
            Reach::compile(&Boundary { core, ..Boundary::default() }, &[], &Host::default(), (&[], &[]));
        let held = super::super::Tables::put_in("pith0", &tables("pith0", &reach(), &[], true)).unwrap();
        let first = list();
        let sets = ClosedSets::of("pith0", Vec::new(), true);
        sets.replace(&more);
        let text = list();
        assert!(text.contains("198.18.0.0") && !text.contains("203.0.113.9"), "{text}");
        assert!(text.contains(&0xc612.to_string()) && !text.contains(&0xcb00.to_string()), "{text}");
        sets.replace(&reach());
        assert!(list() == first);
        drop((held, tun));
    }
}
