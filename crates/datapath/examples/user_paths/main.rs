//! The cost of a packet on each path, in one run: the kernel's own forwarding, XDP, the portable path, and a
//! loop of one packet a system call; on one CPU and two; the delay that each adds; TCP through a tunnel; memory; and the rates of
//! session establishment and update.
//!
//! `cargo run --release -p pith-datapath --example user_paths [PART [PART OF A CASE'S NAME,…]]` with a part of [`PARTS`]
//! prints a table and writes `target/bench/user-paths.json`, which `bench/user.py` merges. Needs root. Every run is bounded in
//! time; nothing leaves namespaces of its own.

#![allow(unsafe_code)]

mod conntrack;
mod control;
mod cores;
mod cpu;
mod delay;
#[path = "../generator/mod.rs"]
mod generator;
mod histogram;
mod memory;
mod net;
mod one_packet;
mod portable;
mod progress;
mod row;
mod shaped;
mod smf;
mod socket;
mod stamps;
#[path = "../../tests/support/mod.rs"]
mod support;
mod tcp;
mod voice;
mod xdp;

use row::Row;
use std::path::PathBuf;
use std::time::Instant;

/// What can be measured alone.
const PARTS: [&str; 10] =
    ["xdp", "cores", "shaped", "portable", "delay", "voice", "tcp", "control", "memory", "socket"];

/// Rows, and other measurements by name, as JSON.
#[derive(Default)]
struct Results {
    rows: Vec<Row>,
    others: Vec<(&'static str, String)>,
}

impl Results {
    fn measure(&mut self, part: &str, names: &str) {
        match part {
            "xdp" => self.rows.extend(xdp::run(names)),
            "cores" => self.rows.extend(cores::run()),
            "shaped" => {
                let (rows, on_a_core) = shaped::run();
                self.rows.extend(rows);
                self.others.push(("shaping", on_a_core));
            }
            "portable" => self.rows.extend(portable::run(names)),
            "delay" => self.others.push(("delay", delay::run())),
            "voice" => self.others.push(("voice", voice::run())),
            "tcp" => self.others.push(("tcp", tcp::run())),
            "control" => {
                let [establishment, update] = control::run();
                self.others.extend([("establishment", establishment), ("update", update)]);
            }
            "memory" => self.others.push(("memory", memory::run())),
            _ => self.others.push(("pfcp_socket", socket::run())),
        }
    }
}

fn main() {
    let only = std::env::args().nth(1);
    let names = std::env::args().nth(2).unwrap_or_default();
    let parts: Vec<_> =
        PARTS.into_iter().filter(|part| only.as_deref().is_none_or(|only| only == *part)).collect();
    if parts.is_empty() {
        eprintln!("user_paths: no such part; there are {}", PARTS.join(", "));
        std::process::exit(2);
    }
    let mut results = Results::default();
    for part in parts {
        let begin = Instant::now();
        println!("-- {part}");
        results.measure(part, &names);
        println!("-- {part}: {:.0} s\n", begin.elapsed().as_secs_f64());
    }
    row::print(&results.rows);
    let folder = std::env::var_os("BENCH_DIR").map_or("target/bench".into(), PathBuf::from);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("user-paths.json");
    std::fs::write(&path, row::json(&results.rows, &results.others)).unwrap();
    println!("\n{}", path.display());
}
