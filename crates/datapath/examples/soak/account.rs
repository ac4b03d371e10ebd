//! The same packets as the server, the UPF and the kernel between them count them.
//!
//! ```text
//!   gNB ─ n3_in ─▶ UPF ─ n6_out ─┬ XDP ─────────────────────────────────────▶ n6 ─▶ server's frames
//!                                └ TUN ─▶ forward hook ─▶ postrouting hook ─▶
//!   gNB ◀─ n3_out ─ UPF ◀─ n6_in ─┬──────────────────────── XDP ─┬─ n6 ◀─ server's frames
//!                                 └─ TUN ◀─ conntrack ─ kernel ◀─┴─▶ this host: no connection
//! ```
//!
//! What the kernel's path drops between its hooks, and what has no connection, is counted by nftables.

use super::support::*;
use super::wire;
use std::fmt;

/// Packets lost in queues of the three hosts, and first packets of connections that connection tracking drops after all hooks: two
/// that arrive at once, or one whose session ends meanwhile.
pub fn lost(lab: &Lab) -> u64 {
    wire::lost_here() + lab.radio.run(wire::lost_here) + lab.server.run(wire::lost_here) + not_inserted()
}

/// `insert_failed` of each CPU.
fn not_inserted() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/stat/nf_conntrack").unwrap_or_default();
    let mut lines = text.lines().map(str::split_whitespace);
    let names = lines.next();
    let at = names.and_then(|mut names| names.position(|name| name == "insert_failed"));
    let of_cpu = |mut line: std::str::SplitWhitespace<'_>| u64::from_str_radix(line.nth(at?)?, 16).ok();
    lines.filter_map(of_cpu).sum()
}

/// Counters at the kernel's hooks: packets from TUN, those of them that leave translated, those that leave with a UE's own
/// address, and packets for this host.
pub fn count_in_kernel() {
    let rules = "table ip soak {\n\
        chain from_tun { type filter hook forward priority -10; iifname \"pith0\" oifname \"n6\" counter; }\n\
        chain leaving { type filter hook postrouting priority 200; oifname \"n6\" ip saddr 172.17.0.1 ip daddr 198.51.100.1 counter; }\n\
        chain untranslated { type filter hook postrouting priority 200; oifname \"n6\" ip saddr 10.45.0.0/16 counter; }\n\
        chain own { type filter hook input priority 0; iifname \"n6\" ip saddr 198.51.100.1 counter drop; }\n}\n";
    let path = std::env::temp_dir().join(format!("pith-soak-{}", std::process::id()));
    std::fs::write(&path, rules).unwrap();
    run(&format!("nft -f {}", path.display()));
    std::fs::remove_file(path).unwrap();
}

/// What [`count_in_kernel`] has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InKernel {
    from_tun: u64,
    leaving: u64,
    pub untranslated: u64,
    own: u64,
}

impl InKernel {
    pub fn read() -> Self {
        let text = run("nft list table ip soak");
        let counted: Vec<u64> = text
            .split("counter packets ")
            .skip(1)
            .map(|rest| rest.split(' ').next().unwrap().parse().unwrap())
            .collect();
        let [from_tun, leaving, untranslated, own] = counted[..] else { panic!("{text}") };
        Self { from_tun, leaving, untranslated, own }
    }
}

/// Packets that the three kernels lost, not the UPF.
#[derive(Debug, Clone, Copy)]
pub struct Lost {
    pub up: i64,
    pub down: i64,
    pub in_queues: u64,
}

/// All counts of a moment.
#[derive(Debug)]
pub struct Account {
    /// Frames that the server received and sent.
    pub received: u64,
    pub sent: u64,
    /// Packets that the UPF gave to N6, and got from there.
    pub up: u64,
    pub down: u64,
    pub kernel: InKernel,
}

impl Account {
    /// Packets that the kernel did not let pass: of connections that it finds invalid.
    fn refused(&self) -> u64 {
        self.kernel.from_tun.saturating_sub(self.kernel.leaving)
    }

    pub fn missing_up(&self) -> i64 {
        self.up as i64 - (self.received + self.refused()) as i64
    }

    pub fn missing_down(&self) -> i64 {
        self.sent as i64 - (self.down + self.kernel.own) as i64
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (by_kernel, refused, own) = (self.kernel.leaving, self.refused(), self.kernel.own);
        write!(
            f,
            "; of {} up the kernel translated {by_kernel}, refused {refused}; of {} down {own} had no connection",
            self.up, self.sent
        )
    }
}
