//! NAT: packets of UEs to other networks get the address of their outgoing interface, or the UE's own block
//! of public ports.
//!
//! NAT uses nftables. Without `nft`, IPv4 masquerading alone uses iptables, with a rule for each pool. Pith
//! recognises its own iptables rules by a comment: the name of its nftables tables.

use super::firewall::downlink_rules;
use super::nft::{Table, run, table_name, words};
use super::policy::{Net, NetworkPolicy};
use super::port_blocks::PortBlocks;
use crate::config::{DatapathConfig, UePool};
use std::io;

/// UEs whose connections are counted; the kernel's set takes memory for those with connections only.
const MAX_UES: u64 = 1 << 20;

/// The tables of a configuration.
pub fn tables(config: &DatapathConfig) -> Vec<Table> {
    let tun = &config.tun;
    let v4 = nat44(config);
    let v6: Vec<_> = config.policies.iter().filter(|it| is_nat66(it)).map(|policy| policy.pool).collect();
    let rules: String = v6.iter().map(|pool| format!("{} masquerade\n", leaving(tun, *pool))).collect();
    let v4 = (!v4.is_empty()).then_some(Table { family: "ip", body: v4 });
    let v6 = (!v6.is_empty()).then(|| Table {
        family: "ip6",
        body: chains(config, &rules, &v6) + &limit(tun, config.nat_connections, &v6),
    });
    v4.into_iter().chain(v6).collect()
}

fn is_nat66(policy: &NetworkPolicy) -> bool {
    policy.nat66 && policy.pool.gateway.is_ipv6()
}

/// Whether IPv6 packets of the pool's UEs get another address.
pub fn has_nat66(config: &DatapathConfig, pool: UePool) -> bool {
    config.policy(pool).is_some_and(is_nat66)
}

fn nat44(config: &DatapathConfig) -> String {
    let tun = &config.tun;
    let (mut rules, mut maps, mut pools) = (String::new(), String::new(), Vec::new());
    for (at, pool) in config.pools.iter().enumerate().filter(|(_, pool)| pool.gateway.is_ipv4()) {
        let from = leaving(tun, *pool);
        match config.policy(*pool).and_then(|policy| policy.port_blocks.as_ref()) {
            Some(blocks) => {
                maps += &block_maps(at, *pool, blocks);
                rules += &format!("{from} meta l4proto {{ tcp, udp }} snat ip to ip saddr map @blocks{at}\n");
                rules += &format!("{from} snat to ip saddr map @addresses{at}\n");
            }
            None if config.nat => rules += &format!("{from} masquerade\n"),
            None => continue,
        }
        pools.push(*pool);
    }
    if rules.is_empty() {
        return rules;
    }
    maps + &chains(config, &rules, &pools) + &limit(tun, config.nat_connections, &pools)
}

/// The chain that limits the connections of each UE to other networks (RFC 6888 REQ-4): a UE must take neither all ports of the
/// public address nor all of the kernel's table. A packet of a further one is answered by ICMP (RFC 1812 5.2.7.1).
/// A connection without an answer has the state new for all its packets, but is confirmed after the first.
///
/// All pools are of one family. In IPv6 the addresses of a prefix of 64 bits count together; each prefix that a UE delegates counts
/// by itself.
fn limit(tun: &str, most: u32, pools: &[UePool]) -> String {
    if most == 0 {
        return String::new();
    }
    let is_v6 = pools.iter().any(|pool| pool.gateway.is_ipv6());
    let (kind, ue, icmp, bits) = if is_v6 {
        ("ipv6_addr", "ip6 saddr & ffff:ffff:ffff:ffff::", "icmpv6", 64u8)
    } else {
        ("ipv4_addr", "ip saddr", "icmp", 32)
    };
    let rule = |pool: &UePool| {
        format!(
            "\t\t{} saddr {} add @connections {{ {ue} ct count over {most} }} counter \
             reject with {icmp} type admin-prohibited\n",
            family(*pool),
            Net(pool.network())
        )
    };
    let rules: String = pools.iter().map(rule).collect();
    let ues = pools.iter().map(|pool| 1 << u64::from(bits.saturating_sub(pool.prefix)).min(20)).sum::<u64>();
    format!(
        "\tset connections {{\n\t\ttype {kind}\n\t\tsize {ues}\n\t\tflags dynamic\n\t}}\n\
         \tchain connection_limit {{\n\t\ttype filter hook forward priority 0;\n\
         \t\tct status confirmed accept\n\t\tiifname != \"{tun}\" accept\n\t\toifname \"{tun}\" accept\n{rules}\t}}\n",
        ues = ues.min(MAX_UES)
    )
}

fn family(pool: UePool) -> &'static str {
    if pool.gateway.is_ipv4() { "ip" } else { "ip6" }
}

/// Matches packets of a pool to other networks.
fn leaving(tun: &str, pool: UePool) -> String {
    format!("\t\t{} saddr {} oifname != \"{tun}\"", family(pool), Net(pool.network()))
}

/// The chain that translates, and one after it that drops what still has a UE's address: connection tracking does not translate
/// packets that it finds invalid, such as ICMP errors about connections of others. A host of another network must not have
/// its packets translated with a UE's address as source.
///
/// Hosts of other networks reach UEs by the connections that the UEs began (RFC 4787 REQ-8), also if they know a UE's own
/// address; and by port forwardings of the host and `allow down` of the network's firewall. A UE answers those with its own address; the host itself, which has
/// the gateway's, does not.
fn chains(config: &DatapathConfig, rules: &str, pools: &[UePool]) -> String {
    let tun = &config.tun;
    let from: Vec<_> = pools.iter().map(|pool| leaving(tun, *pool)).collect();
    let answers = pools.iter().zip(&from).map(|(pool, from)| {
        let not_host = format!("{} saddr != {}", family(*pool), pool.gateway);
        format!("{from} {not_host} ct state established ct direction reply accept\n")
    });
    let untranslated = from.iter().map(|from| format!("{from} drop\n"));
    let untranslated: String = answers.chain(untranslated).collect();
    let forged: String = from.iter().map(|from| format!("{from} iifname != \"{tun}\" drop\n")).collect();
    let allowed =
        |pool: &UePool| config.policy(*pool).map(|policy| downlink_rules(tun, policy)).unwrap_or_default();
    let to = |pool: &UePool| {
        format!("{}\t\t{} daddr {} counter drop\n", allowed(pool), family(*pool), Net(pool.network()))
    };
    let unsolicited: String = pools.iter().map(to).collect();
    format!(
        "\tchain postrouting {{\n\t\ttype nat hook postrouting priority 100;\n{rules}\t}}\n\
         \tchain untranslated {{\n\t\ttype filter hook postrouting priority 101;\n{untranslated}\t}}\n\
         \tchain forged {{\n\t\ttype filter hook forward priority 0;\n{forged}\t}}\n\
         \tchain unsolicited {{\n\t\ttype filter hook forward priority 0;\n\
         \t\tiifname \"{tun}\" accept\n\t\toifname != \"{tun}\" accept\n\
         \t\tct state established,related accept\n\t\tct status dnat accept\n{unsolicited}\t}}\n"
    )
}

/// Maps from each UE to its block, and, for protocols without ports, to its address.
fn block_maps(at: usize, pool: UePool, blocks: &PortBlocks) -> String {
    let ports = blocks
        .all(pool)
        .map(|(ue, block)| format!("{ue} : {} . {}-{}", block.address, block.first, block.last));
    let addresses = blocks.all(pool).map(|(ue, block)| format!("{ue} : {}", block.address));
    let map = |name: &str, data: &str, elements: String| {
        format!("\tmap {name}{at} {{\n\t\ttype ipv4_addr : {data}\n\t\telements = {{ {elements} }}\n\t}}\n")
    };
    map("blocks", "interval ipv4_addr . inet_service", ports.collect::<Vec<_>>().join(", "))
        + &map("addresses", "ipv4_addr", addresses.collect::<Vec<_>>().join(", "))
}

/// NAT by iptables; dropping this removes the rules.
#[derive(Debug, Default)]
pub struct Iptables {
    undo: Vec<Vec<String>>,
}

impl Iptables {
    /// Adds the rules of each IPv4 pool, if NAT is configured, after removing rules that a killed process left.
    pub fn set_up(config: &DatapathConfig) -> io::Result<Self> {
        let tun = &config.tun;
        drop(Self::left_behind(tun));
        let mut rules = Self::default();
        if config.nat && config.nat_connections > 0 {
            tracing::warn!("'upf.nat_connections' is not enforced: install nftables for it");
        }
        let pools = config.pools.iter().filter(|pool| config.nat && pool.gateway.is_ipv4());
        for network in pools.map(|pool| Net(pool.network())) {
            let comment = format!("-m comment --comment {}", table_name(tun));
            rules.add("nat -A", &format!("POSTROUTING -s {network} ! -o {tun} {comment} -j MASQUERADE"))?;
            // Before rules of the host that accept packets. `DNAT`: the host forwards it to the UE.
            let unsolicited = "-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT";
            rules.add(
                "filter -I",
                &format!("FORWARD -d {network} ! -i {tun} -o {tun} {unsolicited} {comment} -j DROP"),
            )?;
            // This host would answer to the UE. It has an address of the pool itself.
            let forged = "-m addrtype ! --src-type LOCAL";
            rules.add("filter -I", &format!("INPUT -s {network} ! -i {tun} {forged} {comment} -j DROP"))?;
        }
        Ok(rules)
    }

    /// Adds a rule to a table; `how` is the table's name and the command.
    fn add(&mut self, how: &str, rule: &str) -> io::Result<()> {
        run(&words(&format!("iptables -w -t {how} {rule}")), "")?;
        let table = words(how).swap_remove(0);
        self.undo.push(words(&format!("iptables -w -t {table} -D {rule}")));
        Ok(())
    }

    /// Finds Pith's rules by their comment. It uses `iptables-save`, which lists only existing tables;
    /// `iptables` would create one and thereby enable connection tracking.
    fn left_behind(tun: &str) -> Self {
        let all = run(&words("iptables-save"), "").unwrap_or_default();
        let comment = format!(" --comment {} ", table_name(tun));
        let (mut table, mut undo) = ("", Vec::new());
        for line in all.lines() {
            if let Some(name) = line.strip_prefix('*') {
                table = name;
            } else if let Some(rule) = line.strip_prefix("-A ").filter(|_| line.contains(&comment)) {
                undo.push(words(&format!("iptables -w -t {table} -D {rule}")));
            }
        }
        Self { undo }
    }

    /// Whether iptables can provide all packet filtering of a configuration.
    pub fn is_enough_for(config: &DatapathConfig) -> bool {
        config.policies.iter().all(NetworkPolicy::is_none)
    }
}

impl Drop for Iptables {
    fn drop(&mut self) {
        for command in &self.undo {
            if let Err(error) = run(command, "") {
                tracing::warn!(command = command.join(" "), %error, "a NAT rule could not be removed");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::enter_namespace;
    use std::net::{IpAddr, Ipv4Addr};

    fn pool(third: u8, prefix: u8) -> UePool {
        UePool { gateway: IpAddr::from([10, 45, third, 1]), prefix }
    }

    #[test]
    fn each_pool_is_masqueraded_or_has_blocks() {
        let blocks = PortBlocks { addresses: vec![Ipv4Addr::new(192, 0, 2, 1)], ports: 4096 };
        let pools = vec![pool(0, 24), pool(1, 29)];
        let policy = NetworkPolicy { port_blocks: Some(blocks), ..NetworkPolicy::none(pools[1]) };
        let config = DatapathConfig { nat: true, pools, policies: vec![policy], ..DatapathConfig::default() };
        let [table] = &tables(&config)[..] else { panic!() };
        assert!(table.body.contains("ip saddr 10.45.0.0/24 oifname != \"pith0\" masquerade\n"));
        assert!(table.body.contains("10.45.1.6 : 192.0.2.1 . 21504-25599 }"), "{}", table.body);
        for pool in ["10.45.0.0/24", "10.45.1.0/29"] {
            let rule = format!("ip saddr {pool} oifname != \"pith0\" drop\n");
            assert!(table.body.contains(&rule), "{}", table.body);
            let rule = format!("ip saddr {pool} oifname != \"pith0\" iifname != \"pith0\" drop\n");
            assert!(table.body.contains(&rule), "{}", table.body);
            let rule = format!("ip daddr {pool} counter drop\n");
            assert!(table.body.contains(&rule), "{}", table.body);
            let rule =
                format!("ip saddr {pool} add @connections {{ ip saddr ct count over 4096 }} counter reject");
            assert!(table.body.contains(&rule), "{}", table.body);
        }
        assert!(table.body.contains("size 264\n"), "{}", table.body);
        let unlimited = tables(&DatapathConfig { nat_connections: 0, ..config.clone() });
        assert!(unlimited.iter().all(|table| !table.body.contains("ct count")));
        let snat = "ip saddr 10.45.1.0/29 oifname != \"pith0\" meta l4proto { tcp, udp } snat ip to ip saddr map @blocks1";
        assert!(table.body.contains(snat), "{}", table.body);
    }

    #[test]
    fn ipv6_keeps_its_addresses_unless_asked() {
        let pool = UePool { gateway: "2001:db8::1".parse().unwrap(), prefix: 48 };
        let config = DatapathConfig { nat: true, pools: vec![pool], ..DatapathConfig::default() };
        assert_eq!(tables(&config), []);
        let policies = vec![NetworkPolicy { nat66: true, ..NetworkPolicy::none(pool) }];
        let [table] = &tables(&DatapathConfig { policies, ..config })[..] else { panic!() };
        assert_eq!(table.family, "ip6");
        assert!(table.body.contains("ip6 saddr 2001:db8::/48 oifname != \"pith0\" masquerade"));
        let rule = "ip6 saddr 2001:db8::/48 add @connections { ip6 saddr & ffff:ffff:ffff:ffff:: ct count over 4096 } \
                    counter reject with icmpv6 type admin-prohibited\n";
        assert!(table.body.contains(rule), "{}", table.body);
        assert!(table.body.contains("type ipv6_addr\n\t\tsize 65536\n"), "{}", table.body);
    }

    #[test]
    fn rules_of_a_killed_process_are_removed_and_others_kept() {
        if !enter_namespace() {
            return;
        }
        let others = "iptables -w -t nat -A POSTROUTING -s 10.45.0.0/16 ! -o pith0 -j MASQUERADE";
        if let Err(error) = run(&words(others), "") {
            return crate::skipped::skipped(&format!("iptables: {error}"));
        }
        let count = || {
            let all = run(&words("iptables-save"), "").unwrap();
            assert_eq!(
                all.matches("-j DROP").count(),
                all.matches("--comment pith_pith0 -j MASQ").count() * 2
            );
            all.matches("MASQUERADE").count()
        };
        let nat = DatapathConfig { nat: true, ..DatapathConfig::default() };
        std::mem::forget(Iptables::set_up(&nat).unwrap());
        let second = Iptables::set_up(&nat).unwrap();
        assert_eq!(count(), 2);
        std::mem::forget(second);
        let without = Iptables::set_up(&DatapathConfig::default()).unwrap();
        assert_eq!((count(), without.undo.len()), (1, 0));
    }
}
