//! Arbitrary frames for each path, reproducible by a seed: all expected output is received octet by octet, no
//! other output is, and every counter is correct. `make fuzz-user` runs the same with millions of packets.

#[path = "../support/mod.rs"]
mod support;

mod fuzz;

use fuzz::{Order, PathUnderTest};
use std::thread;

fn a_few_thousand(under_test: PathUnderTest) {
    upgraded_every(0, under_test);
}

fn upgraded_every(upgrade_every: u64, under_test: PathUnderTest) {
    let order = Order { under_test, seed: 1, from: 0, packets: 6000, upgrade_every };
    // In a separate thread, because it changes its network namespace.
    let result = thread::spawn(move || fuzz::run(order, |_| ())).join().unwrap();
    match result {
        None => {}
        Some(Err(failure)) => panic!("{failure}"),
        Some(Ok(report)) => {
            // The counters are those of the last datapath.
            let received = if upgrade_every == 0 { 1000 } else { 100 };
            assert!(report.packets >= order.packets && report.counters.n3_in.packets > received);
            assert_eq!(report.upgrades > 1, upgrade_every > 0);
            eprintln!("{} in {:?}; {} lost by the kernel", report.packets, report.time, report.lost);
        }
    }
}

#[test]
fn every_path_is_found_by_its_name() {
    assert!(
        PathUnderTest::ALL
            .iter()
            .all(|under_test| PathUnderTest::named(under_test.name()) == Some(*under_test))
    );
}

#[test]
fn the_portable_path_takes_whatever_comes() {
    a_few_thousand(PathUnderTest::Portable);
}

#[test]
fn xdp_behind_the_driver_takes_whatever_comes() {
    a_few_thousand(PathUnderTest::Generic);
}

#[test]
fn xdp_in_the_driver_takes_whatever_comes() {
    a_few_thousand(PathUnderTest::Native);
}

#[test]
fn the_program_takes_whatever_comes_without_a_wire() {
    a_few_thousand(PathUnderTest::Live);
}

#[test]
fn packets_given_to_all_cpus_come_out_as_without_and_in_order() {
    if thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1) {
        a_few_thousand(PathUnderTest::Spread);
    }
}

#[test]
fn translated_packets_keep_their_connection_on_both_paths() {
    a_few_thousand(PathUnderTest::Nat);
}

#[test]
fn the_kernel_translates_for_the_portable_path() {
    a_few_thousand(PathUnderTest::PortableNat);
}

#[test]
fn the_program_is_replaced_while_packets_are_translated() {
    upgraded_every(1000, PathUnderTest::Nat);
}

#[test]
fn the_portable_path_is_replaced_while_packets_are_translated() {
    upgraded_every(1000, PathUnderTest::PortableNat);
}
