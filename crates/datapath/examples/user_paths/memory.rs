//! Memory of a UPF that uses XDP, by installed sessions: the process's own (RSS) and what its BPF maps hold in the kernel
//! (`memlock` of /proc/self/fdinfo). Maps that the process has mapped count in both.

use super::xdp::upf::Setup;
use super::xdp::{Bench, TrafficDirection, apart};
use std::fmt::Write;

/// Installed sessions of each case. Tables are made for as many.
const SESSIONS: [u32; 4] = [0, 1000, 16_384, 100_000];

/// As JSON: kB by sessions, and the octets of one more session.
pub fn run() -> String {
    let measured: Vec<_> = SESSIONS.into_iter().map(|sessions| (sessions, kilobytes(sessions))).collect();
    let mut rows = String::new();
    for (sessions, [rss, maps]) in &measured {
        println!("XDP, room for {sessions} sessions, all installed: RSS {rss} kB more, BPF maps {maps} kB");
        let comma = if rows.is_empty() { "" } else { "," };
        write!(rows, "{comma}{{\"sessions\":{sessions},\"rss_kb\":{rss},\"maps_kb\":{maps}}}").unwrap();
    }
    let [.., (fewer, before), (most, after)] = measured[..] else { panic!("there are several") };
    let each = |kind: usize| (after[kind].saturating_sub(before[kind])) * 1024 / u64::from(most - fewer);
    let [rss, maps] = [each(0), each(1)];
    println!("a session more: RSS {rss} octets, BPF maps {maps} octets (most of them count as RSS, too)");
    format!("{{\"tables\":[{rows}],\"session_rss\":{rss},\"session_maps\":{maps}}}")
}

/// What a UPF with all its sessions adds to RSS and BPF maps.
fn kilobytes(sessions: u32) -> [u64; 2] {
    apart(move || {
        let _bench = Bench::set_up(TrafficDirection::Up);
        let before = (resident_kb(), maps_kb());
        let upf = Setup::of(sessions).start();
        let after = (resident_kb(), maps_kb());
        drop(upf);
        [after.0.saturating_sub(before.0), after.1 - before.1]
    })
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
