//! Worlds with instances of a set: processes of AMF, SMF and PCF that are killed, stopped, or cut off from their store, and whose UEs the
//! others take over.

use pith_world::{Failure, Kill, PROCEDURES, Plan, Residency, Victim, World};

fn failures(seeds: std::ops::Range<u64>, instances: usize) -> (u32, u32, Vec<String>) {
    let (mut moved, mut ended, mut failures) = (0, 0, Vec::new());
    for seed in seeds {
        match World::run(Plan::of_instances(seed, instances)) {
            Ok(report) => (moved, ended) = (moved + report.moved, ended + report.ended),
            Err(failure) => failures.push(told(seed, instances, &failure)),
        }
    }
    (moved, ended, failures)
}

fn told(seed: u64, instances: usize, failure: &Failure) -> String {
    format!("pith-world --instances {instances} --seed {seed}: {}", failure.what)
}

#[test]
fn every_seed_keeps_the_invariants_with_instances() {
    let (moved, ended, mut all) = failures(0..10, 2);
    let (moved_of_three, _, of_three) = failures(24..27, 3);
    all.extend(of_three);
    // The SMF refused its own set's AMF, which had resumed sessions before it knew the set.
    all.extend(failures(1035..1036, 2).2);
    // An instance that was cut off from the store, and then ended, had given a UE a new 5G-GUTI.
    all.extend(failures(3021..3022, 2).2);
    // Two instances restored a UE from the same document, and the first one did not reach the store: it used a COUNT that no document reserved.
    all.extend(failures(4134..4135, 3).2);
    // The UPF of a classifier restarted while the anchor was restored, which then sent no packets to the gNB.
    all.extend(failures(4155..4156, 3).2);
    assert!(all.is_empty(), "{} failures:\n{}", all.len(), all.join("\n"));
    assert!(moved > 10 * 512 && moved_of_three > 3 * 600, "{moved} and {moved_of_three} blocks passed");
    assert!(ended > 0, "an instance that was stopped for too long ends");
}

#[test]
fn a_seed_with_instances_is_the_same_world_each_time() {
    let live = || {
        let mut world = World::new(Plan::of_instances(7, 2));
        world.keep_ladder();
        let end = world.run_phases().map(|report| report.steps).map_err(|failure| failure.what.clone());
        (end, world.ladder())
    };
    let (first, second) = (live(), live());
    assert_eq!(first.0, second.0);
    let differs = first.1.iter().zip(&second.1).find(|(one, other)| one != other);
    assert_eq!(differs, None);
}

/// An instance is killed in the middle of every eighth procedure: it returns within its lease (odd seeds), or the other one has its UEs.
#[test]
fn no_kill_of_an_instance_breaks_what_the_residency_promises() {
    for (number, procedure) in PROCEDURES.iter().enumerate().skip(1).step_by(8) {
        for seed in [2 * number as u64, 2 * number as u64 + 1] {
            let kill = Kill {
                procedure,
                seed,
                residency: Residency::Durable,
                victim: Victim::Instance,
                retains_ues: false,
            };
            let points = kill.points().unwrap_or_else(|breach| panic!("{kill}: {}", breach.failure.what));
            if points == 0 {
                // Of the other instance.
                continue;
            }
            let (result, _) = kill.crash_at(points / 2, false);
            let breach = result.err().map(|breach| breach.failure.what);
            assert_eq!(breach, None, "pith-world kill {kill} --point {}", points / 2);
        }
    }
}
