//! gNBs with several associations, which break one by one while UEs are busy.

use pith_world::{Faults, Plan, reports_of};

const SEEDS: u64 = 32;

fn plan(seed: u64) -> Plan {
    let plan = Plan::of_seed(seed);
    let faults = Faults { breaks: plan.faults.breaks + 6, ..plan.faults };
    Plan { associations: 2, joins_by_ng_setup: seed % 3 == 2, faults, ..plan }
}

#[test]
fn worlds_whose_gnbs_have_two_associations_keep_the_invariants() {
    let (_, failures) = reports_of((0..SEEDS).map(plan));
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
