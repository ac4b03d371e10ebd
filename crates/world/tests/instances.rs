//! Worlds with instances of a set: processes of AMF, SMF and PCF that are killed, stopped, or cut off from their store, and whose UEs the
//! others take over.

use pith_world::{Kill, PROCEDURES, Plan, Residency, Victim, World, reports_of};

#[test]
fn every_seed_keeps_the_invariants_with_instances() {
    let of_two = 0..10;
    let of_three = 24..27;
    // Seeds that found a fault.
    let found = [
        // The SMF refused its own set's AMF, which had resumed sessions before it knew the set.
        (1035, 2),
        // An instance that was cut off from the store, and then ended, had given a UE a new 5G-GUTI.
        (3021, 2),
        // Two instances restored a UE from the same document, and the first one did not reach the store: it used a COUNT that no document reserved.
        (4134, 3),
        // The UPF of a classifier restarted while the anchor was restored, which then sent no packets to the gNB.
        (4155, 3),
    ];
    let random = of_two.map(|seed| (seed, 2)).chain(of_three.map(|seed| (seed, 3)));
    let found = found.map(|(seed, instances)| Plan::of_instances(seed, instances).as_before());
    // Later ones.
    let found_with_services = [
        // An instance that had restored a UE was cut off from the store, and sent DEREGISTRATION ACCEPT with a COUNT that no document reserved.
        (1391, 2),
        // The same with `soft`: SERVICE ACCEPT left before the UE was written.
        (169, 2),
        // A deletion overtook the PFCP request that took the session over, and the UPF did not know the session as this SMF's.
        (1197, 2),
        // A store that had been fenced by a UPF's refusal was due at once, again and again.
        (1886, 2),
        // The SMF retransmitted a command while the UE was paged, which then got it twice.
        (1368, 3),
        // A classifier that was taken out had not answered the request for a forwarding tunnel, which stayed.
        (206, 3),
        // A UE registered while it established a session, which its PDU session status did not name: the AMF released it.
        (2136, 2),
        // A request whose reply came later than that of the one that superseded it: the UE had passed to another instance meanwhile.
        (2686, 3),
        // A UE's PDU SESSION RELEASE COMPLETE was lost, as its gNB released the UE: the command is repeated.
        (2928, 2),
        // A UE's data had been requested again before the first answer, which came when another instance had the UE, and was lost.
        (91214, 2),
        // The SMF that had the block of an ended session did not know it: the subscription of a former instance did not end.
        (253, 3),
        // A change of QoS rules that an unreachable UE had not got stayed at the SMF.
        (1488, 3),
    ];
    let random = random.chain(found_with_services);
    let plans = random.map(|(seed, instances)| Plan::of_instances(seed, instances)).chain(found);
    let (reports, failures) = reports_of(plans);
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    let moved: u32 = reports.iter().map(|report| report.moved).sum();
    assert!(moved > 10_000, "{moved} blocks passed");
    let ended: u32 = reports.iter().map(|report| report.ended).sum();
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
