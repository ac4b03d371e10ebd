//! Memory of a UPF that uses XDP, by installed sessions: the process's own (RSS) and what its BPF maps hold in the kernel
//! (`memlock` of /proc/self/fdinfo). Maps that the process has mapped count in both.

use super::xdp::{Bench, TrafficDirection, apart, start_upf};
use std::fmt::Write;

/// Installed sessions of each case. Tables are made for as many.
const SESSIONS: [u32; 4] = [0, 1000, 16_384, 100_000];
const UNLIMITED: u64 = 100_000_000_000;

/// As JSON, kB by sessions.
pub fn run() -> String {
    let mut rows = String::new();
    for sessions in SESSIONS {
        let (rss, maps) = apart(move || {
            let _bench = Bench::set_up(TrafficDirection::Up);
            let before = (resident_kb(), maps_kb());
            // The tables are made for one session at least.
            let upf = start_upf(sessions.max(1), UNLIMITED, false);
            let after = (resident_kb(), maps_kb());
            drop(upf);
            (after.0.saturating_sub(before.0), after.1 - before.1)
        });
        println!("XDP, room for {sessions} sessions, all installed: RSS {rss} kB more, BPF maps {maps} kB");
        let comma = if rows.is_empty() { "" } else { "," };
        write!(rows, "{comma}{{\"sessions\":{sessions},\"rss_kb\":{rss},\"maps_kb\":{maps}}}").unwrap();
    }
    format!("[{rows}]")
}

fn resident_kb() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4
}

/// Of all maps that this process has open; a map that is open twice counts once.
fn maps_kb() -> u64 {
    let mut maps = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir("/proc/self/fdinfo").unwrap().flatten() {
        let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
        let field = |name| {
            let line = text.lines().find_map(|line: &str| line.strip_prefix(name))?;
            line.trim().parse::<u64>().ok()
        };
        if let (Some(id), Some(bytes)) = (field("map_id:"), field("memlock:")) {
            maps.insert(id, bytes);
        }
    }
    maps.values().sum::<u64>() / 1024
}
