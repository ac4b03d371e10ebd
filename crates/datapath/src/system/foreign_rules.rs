//! Rules of the host's packet filter that are not Pith's, and that forwarded packets traverse.

use super::nft::{run, words};
use crate::boundary::ask_of;
use std::{fs, io};

/// The hooks of forwarded packets.
const HOOKS: [&str; 5] = ["ingress", "prerouting", "forward", "postrouting", "egress"];
/// The tables of iptables and ip6tables where these do not use nftables.
const LEGACY: [(&str, &str); 2] = [
    ("iptables", "/proc/thread-self/net/ip_tables_names"),
    ("ip6tables", "/proc/thread-self/net/ip6_tables_names"),
];

/// Names the chains with rules, or with another policy than to accept, for the log. `nat`: also those of the kernel's NAT, which see the
/// first packet of a connection only.
pub fn foreign_rules(nat: bool) -> Vec<String> {
    let mut found = rules_of_nft(run(&words("nft list ruleset"), ""), nat);
    for (program, names) in LEGACY {
        for table in
            fs::read_to_string(names).unwrap_or_default().lines().filter(|name| nat || *name != "nat")
        {
            // Without the program the rules are unknown, and count as some.
            let rules = run(&words(&format!("{program}-legacy-save -t {table}")), "");
            if rules.as_deref().map_or(true, has_legacy_rules) {
                found.push(format!("table {table} of {program}"));
            }
        }
    }
    found
}

/// Whether there are rules that change without a notification of nftables: those of iptables-legacy, and IPsec policies.
pub fn has_silent_rules() -> bool {
    let has_tables = |names: &str| fs::read_to_string(names).is_ok_and(|tables| !tables.is_empty());
    LEGACY.iter().any(|(_, names)| has_tables(names)) || has_ipsec_policies()
}

/// Whether the host encrypts packets by policies, or drops those that should be encrypted (RFC 4301 4.4.1). A kernel without IPsec has
/// none.
pub fn has_ipsec_policies() -> bool {
    const XFRM_MSG_NEWPOLICY: u16 = 0x13;
    const XFRM_MSG_GETPOLICY: u16 = 0x15;
    /// The length of struct xfrm_userpolicy_id.
    const POLICY_ID_LEN: usize = 64;
    let mut found = false;
    let take = |kind, _: &[u8]| found |= kind == XFRM_MSG_NEWPOLICY;
    // The kernel has no IPsec, if it refuses.
    let _ = ask_of(libc::NETLINK_XFRM, XFRM_MSG_GETPOLICY, &[0; POLICY_ID_LEN], take);
    found
}

/// The chains with rules. Rules that `nft` cannot list are unknown, and count as some.
fn rules_of_nft(listed: io::Result<String>, nat: bool) -> Vec<String> {
    match listed {
        Ok(ruleset) => chains(&ruleset, nat),
        Err(error) => vec![format!("unknown, because 'nft list ruleset' fails ({error})")],
    }
}

/// The chains in the output of `nft list ruleset`. Tables of Pith, of this process or another, are left out.
fn chains(ruleset: &str, nat: bool) -> Vec<String> {
    let mut found = Vec::new();
    let (mut table, mut chain, mut is_hooked) = (String::new(), String::new(), false);
    let mut note = |table: &str, chain: &str| {
        let name = format!("chain {chain} of table {table}");
        if !found.contains(&name) && !table.contains(" pith_") {
            found.push(name);
        }
    };
    for line in ruleset.lines().map(str::trim) {
        let line_words: Vec<_> = line.split_whitespace().collect();
        match line_words.as_slice() {
            ["table", family, name, "{"] => table = format!("{family} {name}"),
            ["chain", name, "{"] => (chain, is_hooked) = ((*name).to_owned(), false),
            ["type", kind, "hook", hook, ..] => {
                is_hooked = HOOKS.contains(hook) && (nat || *kind != "nat");
                if is_hooked && line.contains("policy drop") {
                    note(&table, &chain);
                }
            }
            ["}"] => is_hooked = false,
            [] => {}
            _ if is_hooked => note(&table, &chain),
            _ => {}
        }
    }
    found
}

/// Whether the output of `iptables-save` has rules, or policies to drop, for forwarded packets.
fn has_legacy_rules(saved: &str) -> bool {
    const CHAINS: [&str; 3] = ["PREROUTING", "FORWARD", "POSTROUTING"];
    saved.lines().any(|line| match words(line).as_slice() {
        [add, chain, ..] if add == "-A" => CHAINS.contains(&chain.as_str()),
        [chain, policy, ..] if policy == "DROP" => chain.strip_prefix(':') == Some("FORWARD"),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::enter_namespace;

    #[test]
    fn chains_that_a_forwarded_packet_meets_are_named() {
        if !enter_namespace() {
            return;
        }
        let rules = "table inet filter {\n chain input { type filter hook input priority 0; policy drop; }\n \
                     chain forward { type filter hook forward priority 0; policy drop; }\n }\n\
                     table ip nat {\n chain post { type nat hook postrouting priority 100; masquerade; }\n \
                     chain empty { type nat hook prerouting priority 0; }\n chain other { accept; }\n }\n\
                     table ip pith_pith0 {\n chain post { type nat hook postrouting priority 100; masquerade; }\n }\n";
        run(&words("nft -f -"), rules).unwrap();
        let found = foreign_rules(true);
        assert_eq!(found, ["chain forward of table inet filter", "chain post of table ip nat"]);
        assert_eq!(foreign_rules(false), ["chain forward of table inet filter"]);
    }

    #[test]
    fn rules_that_cannot_be_listed_count() {
        assert!(rules_of_nft(Ok(String::new()), true).is_empty());
        assert!(rules_of_nft(run(&words("no-such-program"), ""), true).concat().contains("unknown"));
    }

    #[test]
    fn rules_of_iptables_count_for_forwarded_packets_only() {
        let saved =
            |line: &str| format!("*filter\n:INPUT DROP [0:0]\n:FORWARD ACCEPT [0:0]\n{line}\nCOMMIT\n");
        assert!(!has_legacy_rules(&saved("-A INPUT -p tcp -j ACCEPT")));
        assert!(has_legacy_rules(&saved("-A FORWARD -p tcp -j ACCEPT")));
        assert!(has_legacy_rules(":FORWARD DROP [0:0]\n"));
    }
}
