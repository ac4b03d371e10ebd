//! Size and cost of documents: `cargo run --release -p pith-fuzz --example document`.
//!
//! For each document of the corpus: octets, and the time to unpack it and to pack it, the least of several rounds.

use pith_fuzz::corpus;
use pith_fuzz::decoder::document::{check, repack};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u32 = 20;
const TIMES: u32 = 2_000;

/// Nanoseconds of one run, in the fastest round.
fn nanoseconds(run: impl Fn()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        (0..TIMES).for_each(|_| run());
        start.elapsed().as_nanos() as f64 / f64::from(TIMES)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

fn main() {
    let seeds = corpus::read("document").expect("the corpus of documents");
    println!("{:<36} {:>7} {:>10} {:>10}", "document", "octets", "unpack ns", "pack ns");
    for seed in seeds.iter().filter(|seed| seed.name.starts_with("golden")) {
        let unpack = nanoseconds(|| assert!(check(black_box(&seed.octets)).is_ok()));
        let both = nanoseconds(|| drop(black_box(repack(black_box(&seed.octets)))));
        println!("{:<36} {:>7} {unpack:>10.0} {:>10.0}", seed.name, seed.octets.len(), both - unpack);
    }
}
