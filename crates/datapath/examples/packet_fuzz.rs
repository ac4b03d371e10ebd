//! A fuzzer of GTP-U and user packets for a whole UPF, described in `tests/packet_fuzz/fuzz`. `make fuzz-user
//! ARGS="native --packets 10000000"`; without arguments all paths with a million packets each. Needs root;
//! runs in its own namespaces.

#[path = "../tests/packet_fuzz/fuzz/mod.rs"]
mod fuzz;
#[path = "../tests/support/mod.rs"]
mod support;

use fuzz::{Order, PathUnderTest, Report};
use std::process::exit;
use std::thread;

const HELP: &str = "\
packet_fuzz [portable | generic | native | live | native-spread | native-nat | portable-nat]... [--seed N] [--from N] [--packets N]
            [--upgrade-every N]

  portable, generic, native   the path that packets take; generic and native are XDP, behind the driver and in it
  live                        as native, but frames are given to the program by BPF_PROG_TEST_RUN
  native-spread               as native, with uplink packets spread over all CPUs
  native-nat, portable-nat    with NAT: by XDP and the kernel, by the kernel alone
  --seed N                    what packets are made of (1)
  --from N                    number of the first (0)
  --packets N                 how many, on each path (1000000)
  --upgrade-every N           another datapath takes over, as in a live upgrade, each time after that many packets (0: never)";

fn main() {
    let (paths_under_test, orders) = match read() {
        Some((paths_under_test, order)) if paths_under_test.is_empty() => {
            (PathUnderTest::ALL.to_vec(), order)
        }
        Some(read) => read,
        None => {
            eprintln!("{HELP}");
            exit(2)
        }
    };
    for under_test in paths_under_test {
        let order = Order { under_test, ..orders };
        let name = under_test.name();
        let run = move || fuzz::run(order, |report| println!("{name}: {}", line(report)));
        match thread::spawn(run).join() {
            Ok(Some(Ok(report))) => println!("{name}: all {} as they have to be", report.packets),
            Ok(Some(Err(failure))) => {
                println!("{name}: {failure}");
                exit(1)
            }
            Ok(None) | Err(_) => exit(1),
        }
    }
}

fn read() -> Option<(Vec<PathUnderTest>, Order)> {
    let mut order =
        Order { under_test: PathUnderTest::Portable, seed: 1, from: 0, packets: 1_000_000, upgrade_every: 0 };
    let mut paths_under_test = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if let Some(under_test) = PathUnderTest::named(&word) {
            paths_under_test.push(under_test);
            continue;
        }
        let value = words.next()?.parse().ok()?;
        match word.as_str() {
            "--seed" => order.seed = value,
            "--from" => order.from = value,
            "--packets" => order.packets = value,
            "--upgrade-every" => order.upgrade_every = value,
            _ => return None,
        }
    }
    Some((paths_under_test, order))
}

fn line(report: &Report) -> String {
    let Report { packets, time, lost, counters, upgrades } = report;
    let rate = *packets as f64 / time.as_secs_f64() / 1000.0;
    let dropped: Vec<_> =
        counters.dropped.iter().map(|(reason, count)| format!("{} {count}", reason.name())).collect();
    format!(
        "{packets} packets in {:.1} s, {rate:.1} kpps; in {} + {}, out {} + {}; lost by the kernel {lost}; {upgrades} live upgrades; {}",
        time.as_secs_f64(),
        counters.n3_in.packets,
        counters.n6_in.packets,
        counters.n6_out.packets,
        counters.n3_out.packets,
        dropped.join(", ")
    )
}
