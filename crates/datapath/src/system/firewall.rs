//! Firewalls of data networks and the limit of TCP segments: an nftables chain for packets from and to the
//! TUN interface.

use super::policy::{FirewallRule, Net, NetworkPolicy, Protocol, Verdict};
use crate::config::DatapathConfig;
use pith_upf::contract::{AddressRange, Direction};
use std::net::IpAddr;

/// The content of the table; `None` if the configuration needs none.
pub fn body(config: &DatapathConfig) -> Option<String> {
    let clamps: String = config.policies.iter().filter_map(clamp).collect();
    let filters: String = config.policies.iter().map(|policy| filter(&config.tun, policy)).collect();
    if clamps.is_empty() && filters.is_empty() {
        return None;
    }
    let answers = if filters.is_empty() { "" } else { "\t\tct state established,related accept\n" };
    Some(format!(
        "\tchain forward {{\n\t\ttype filter hook forward priority 0;\n{clamps}{answers}{filters}\t}}\n{}",
        silence(&config.tun)
    ))
}

/// Drops redirects: UEs of one network reach each other over the kernel, which would tell them to use a
/// direct path.
fn silence(tun: &str) -> String {
    format!(
        "\tchain output {{\n\t\ttype filter hook output priority 0;\n\t\toifname \"{tun}\" icmp type redirect drop\n\
         \t\toifname \"{tun}\" icmpv6 type nd-redirect drop\n\t}}\n"
    )
}

fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "ip" } else { "ip6" }
}

/// In both directions: either end may send segments too long for the path to the other.
fn clamp(policy: &NetworkPolicy) -> Option<String> {
    let mss = policy.mss?;
    let (family, network) = (family(policy.pool.gateway), Net(policy.pool.network()));
    let rule = |end| {
        format!(
            "\t\t{family} {end} {network} tcp flags syn / syn,rst tcp option maxseg size > {mss} \
             tcp option maxseg size set {mss}\n"
        )
    };
    Some(rule("saddr") + &rule("daddr"))
}

fn filter(tun: &str, policy: &NetworkPolicy) -> String {
    policy.firewall.iter().map(|rule| filter_rule(tun, policy, rule)).collect()
}

/// The rules for packets to UEs of a network.
pub fn downlink_rules(tun: &str, policy: &NetworkPolicy) -> String {
    let rules = policy.firewall.iter().filter(|rule| rule.direction == Direction::Downlink);
    rules.map(|rule| filter_rule(tun, policy, rule)).collect()
}

fn filter_rule(tun: &str, policy: &NetworkPolicy, rule: &FirewallRule) -> String {
    let (family, network) = (family(policy.pool.gateway), Net(policy.pool.network()));
    let mut text = match rule.direction {
        Direction::Uplink => format!("iifname \"{tun}\" {family} saddr {network}"),
        Direction::Downlink => format!("oifname \"{tun}\" {family} daddr {network}"),
    };
    let end = |end: &str, range: Option<AddressRange>| {
        range.map(|range| format!(" {family} {end} {}", Net(range))).unwrap_or_default()
    };
    text += &end("saddr", rule.from);
    text += &end("daddr", rule.to);
    text += &match (rule.protocol, rule.ports) {
        (None, _) => String::new(),
        (Some(Protocol::Icmp), _) => " meta l4proto { icmp, ipv6-icmp }".into(),
        (Some(protocol), Some(ports)) => format!(" {} dport {ports}", protocol.name()),
        (Some(protocol), None) => format!(" meta l4proto {}", protocol.name()),
    };
    let verdict = if rule.verdict == Verdict::Allow { "accept" } else { "drop" };
    format!("\t\t{text} {verdict}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UePool;

    fn config(policy: impl FnOnce(UePool) -> NetworkPolicy) -> DatapathConfig {
        let config = DatapathConfig::default();
        DatapathConfig { policies: vec![policy(config.pools[0])], ..config }
    }

    #[test]
    fn rules_hold_for_their_network_and_in_their_order() {
        let rules = ["deny up to 10.0.0.0/8", "allow down tcp to 10.45.0.9 port 22-23", "deny down icmp"];
        let firewall = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let body = body(&config(|pool| NetworkPolicy { firewall, ..NetworkPolicy::none(pool) })).unwrap();
        let expected = "\
\t\tct state established,related accept
\t\tiifname \"pith0\" ip saddr 10.45.0.0/16 ip daddr 10.0.0.0/8 drop
\t\toifname \"pith0\" ip daddr 10.45.0.0/16 ip daddr 10.45.0.9 tcp dport 22-23 accept
\t\toifname \"pith0\" ip daddr 10.45.0.0/16 meta l4proto { icmp, ipv6-icmp } drop
";
        assert!(body.contains(expected), "{body}");
    }

    #[test]
    fn segments_are_bounded_both_ways_and_nothing_else_is_done() {
        let body =
            body(&config(|pool| NetworkPolicy { mss: Some(1300), ..NetworkPolicy::none(pool) })).unwrap();
        assert_eq!(body.matches("maxseg size set 1300").count(), 2);
        assert!(!body.contains("ct state"));
    }

    #[test]
    fn without_policies_there_is_no_table() {
        assert_eq!(body(&DatapathConfig::default()), None);
    }
}
