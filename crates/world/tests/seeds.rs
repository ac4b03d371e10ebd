//! 256 worlds: the regression test of the NFs under faults.

use pith_world::{EmergencyUes, Plan, Reachability, Residency, reports_of};

const SEEDS: u64 = 256;

#[test]
fn every_seed_keeps_the_invariants() {
    // Later ones that found a fault. 945: of two absent contexts of a subscriber each was loaded when the copy of the
    // other was dropped, without end. 1517: the radio lost the second of two accepts of a session, which had another
    // address. 1671: a shard panicked before the UPFs were associated again, and they deleted sessions that it had
    // taken over. 3646: an SMF got no response for a forwarding tunnel. 3714: a document was read for the AMF before
    // the SMF's change was written, and the session was the former one again; then its UE, whose request that session
    // never answered, was not stored after a loss of the store. 5891: a UE was not told that a session was not handed
    // over. 20104: CONFIGURATION UPDATE COMMAND crossed DEREGISTRATION REQUEST. 230: a request to switch a path was
    // awaited after a panic. 871: a deactivation overtook such a request. 8105: an address was given to two sessions.
    // 5956: a path switch waited for a classifier. 9434: a shard panicked before a gNB of the former process returned,
    // and the gNB kept its UE.
    let found = [230, 871, 945, 1517, 1671, 3646, 3714, 5891, 5956, 8105, 9434, 20104];
    let (_, failures) = reports_of((0..SEEDS).chain(found).map(Plan::of_seed));
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// 2546 of three areas: an SMF restarted before the UDM had got its subscription. 3619 of two: an AMF that had transferred a UE's context repeated
/// that it serves the UE. Of two: 1293: the AMF was killed before it had stored that an SMF had ended a session. 1397: a policy association was not
/// found by the next one of its UE after its block had passed. 4175: a late deregistration of an SM context ended the subscription of the next one. 8609:
/// a retained security context was left in the table of ids when its UE was restored. Of three: 1320: a UE in MICO mode kept a QoS rule that was
/// removed meanwhile. 7749: an SMF that was down did not learn that the UE had left its gNB.
#[test]
fn seeds_with_several_amfs_that_found_a_fault_keep_the_invariants() {
    let of_two = [3619, 1293, 1397, 4175, 8609].map(|seed| Plan::of_areas(seed, 2));
    let of_three = [2546, 1320, 7749].map(|seed| Plan::of_areas(seed, 3));
    let found = of_two.into_iter().chain(of_three);
    let (_, failures) = reports_of(found);
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn each_fault_of_the_store_is_drawn_with_each_residency() {
    let plans: Vec<_> = (0..SEEDS).map(Plan::of_seed).collect();
    let count = |what: &dyn Fn(&Plan) -> bool| plans.iter().filter(|plan| what(plan)).count();
    for residency in Residency::STORED {
        let of = |plan: &Plan| plan.residency == residency && plan.store.is_some();
        let drawn = [
            count(&|plan| of(plan) && plan.faults.outages > 0),
            count(&|plan| of(plan) && plan.faults.full_stores > 0),
            count(&|plan| of(plan) && plan.store_latency.is_some()),
            count(&|plan| of(plan) && plan.faults.store_losses > 0),
            count(&|plan| of(plan) && plan.faults.power_failures > 0),
            count(&|plan| of(plan) && plan.faults.crashes > 0 && plan.processes.len() > 1),
        ];
        assert!(drawn.iter().all(|worlds| *worlds > 0), "{}: {drawn:?}", residency.name());
    }
    assert!(count(&|plan| plan.store.is_some() && plan.faults.panics > 0) > 10);
    assert!(count(&|plan| plan.ues == 50) > 2);
}

#[test]
fn each_service_is_drawn() {
    let plans: Vec<_> = (0..SEEDS).map(Plan::of_seed).collect();
    let count = |what: &dyn Fn(&Plan) -> bool| plans.iter().filter(|plan| what(plan)).count();
    let drawn = [
        count(&|plan| plan.services.ladn),
        count(&|plan| plan.services.emergency == EmergencyUes::Registered),
        count(&|plan| plan.services.emergency == EmergencyUes::Subscribers),
        count(&|plan| plan.services.emergency == EmergencyUes::WithoutSim),
        count(&|plan| plan.services.reachability == Reachability::Drawn),
        count(&|plan| plan.services.delegation > 0),
        count(&|plan| plan.offers_endpoints),
    ];
    assert!(drawn.iter().all(|worlds| *worlds > 8), "{drawn:?}");
    let areas: Vec<_> = (0..SEEDS).map(|seed| Plan::of_areas(seed, 2)).collect();
    assert!(areas.iter().filter(|plan| plan.reallocates).count() > 8);
    assert!(areas.iter().filter(|plan| plan.derives_k_amf).count() > 8);
}

#[test]
fn worlds_differ_and_are_busy() {
    let (reports, failures) = reports_of((0..64).step_by(4).map(Plan::of_seed));
    assert_eq!(failures, Vec::<String>::new(), "worlds without faults");
    for report in &reports {
        assert!(report.violations.is_empty(), "{:?}", report.violations);
    }
    let sessions: usize = reports.iter().map(|report| report.sessions).sum();
    let classifiers: usize = reports.iter().map(|report| report.classifiers).sum();
    let steps: u64 = reports.iter().map(|report| report.steps).sum();
    assert!(sessions > 10 && steps > 10_000, "{sessions} sessions, {steps} steps");
    assert!(classifiers > 3, "{classifiers} classifiers");
}
