//! The cost of a packet on each path, in one run: the kernel's own forwarding, XDP, the portable path, and a
//! loop of one packet a system call; TCP through a tunnel; and the rates of session establishment and update.
//!
//! `cargo run --release -p pith-datapath --example user_paths [xdp|shaped|portable|tcp|control|memory|socket [PART OF A CASE'S NAME,…]]`
//! prints a table and writes `target/bench/user-paths.json`, which `bench/user.py` merges. Needs root. Every run is bounded in
//! time; nothing leaves namespaces of its own.

#![allow(unsafe_code)]

mod conntrack;
mod control;
mod cpu;
mod memory;
mod net;
mod one_packet;
mod portable;
mod shaped;
mod smf;
mod socket;
mod stamps;
#[path = "../../tests/support/mod.rs"]
mod support;
mod tcp;
mod xdp;

use std::fmt::Write;
use std::path::PathBuf;

/// The measurement of one path.
pub struct Row {
    /// The path's name in the table.
    pub name: &'static str,
    /// Installed sessions. Packets are spread over all of them, except for `xdp-installed`. 0 where there are none.
    pub sessions: u32,
    /// Thousands of packets in a second of CPU, with the generator's part of it.
    pub kpps: f64,
    /// Nanoseconds of CPU a packet, without the generator: the least of all runs.
    pub ns_per_packet: f64,
    /// Nanoseconds of CPU a packet with the generator, over all runs.
    pub gross: Spread,
}

/// What repeated runs of one case measured.
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

impl Spread {
    /// Of at least one run.
    pub fn of(mut runs: Vec<f64>) -> Self {
        runs.sort_by(f64::total_cmp);
        let [.., most] = runs[..] else { panic!("no run") };
        Self { least: runs[0], median: runs[runs.len() / 2], most }
    }
}

fn main() {
    let only = std::env::args().nth(1);
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let part_of_name = std::env::args().nth(2).unwrap_or_default();
    let (mut rows, mut others) = (Vec::new(), Vec::new());
    if wanted("xdp") {
        rows.extend(xdp::run(&part_of_name));
    }
    if wanted("shaped") {
        let (row, on_a_core) = shaped::run();
        rows.push(row);
        others.push(("shaping", on_a_core));
    }
    if wanted("portable") {
        rows.extend(portable::run(&part_of_name));
    }
    if wanted("tcp") {
        others.push(("tcp", tcp::run()));
    }
    if wanted("control") {
        let [establishment, update] = control::run();
        others.extend([("establishment", establishment), ("update", update)]);
    }
    if wanted("memory") {
        others.push(("memory", memory::run()));
    }
    if wanted("socket") {
        others.push(("pfcp_socket", socket::run()));
    }
    println!(
        "\n{:<24} {:>9} {:>8} {:>8} {:>20}",
        "path", "sessions", "kpps", "net ns", "gross: median, range"
    );
    for Row { name, sessions, kpps, ns_per_packet, gross } in &rows {
        let Spread { least, median, most } = gross;
        println!(
            "{name:<24} {sessions:>9} {kpps:>8.0} {ns_per_packet:>8.0} {median:>8.0}, {least:.0} to {most:.0}"
        );
    }
    let folder = std::env::var_os("BENCH_DIR").map_or("target/bench".into(), PathBuf::from);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("user-paths.json");
    std::fs::write(&path, json(&rows, &others)).unwrap();
    println!("\n{}", path.display());
}

/// The rows and the other measurements by name, in the format of `user.json`.
fn json(rows: &[Row], others: &[(&str, String)]) -> String {
    let mut text = String::from("{\"paths\":[");
    for (at, Row { name, sessions, kpps, ns_per_packet, gross }) in rows.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let Spread { least, median, most } = gross;
        let row = format!(
            "\"sessions\":{sessions},\"kpps\":{kpps:.1},\"ns_per_packet\":{ns_per_packet:.1},\
             \"gross_ns\":{{\"least\":{least:.1},\"median\":{median:.1},\"most\":{most:.1}}}"
        );
        write!(text, "{comma}\n{{\"name\":\"{name}\",{row}}}").unwrap();
    }
    text += "\n]";
    for (name, value) in others {
        write!(text, ",\n\"{name}\":{value}").unwrap();
    }
    text + "}\n"
}
