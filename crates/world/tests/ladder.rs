//! The ladder of a faultless world, and that a seed determines a world.

use pith_world::{Plan, ReflectedAnswer, TraceEntry, World};

/// The rungs of the UE, without registration and heart-beats of NFs.
fn names(ladder: &[TraceEntry]) -> String {
    let of_ue = |entry: &&TraceEntry| {
        entry.from != entry.to
            && entry.from != "AGENT"
            && !entry.what.contains("Heartbeat")
            && !entry.what.contains("Association")
            && !entry.what.starts_with("NgSetup")
    };
    ladder.iter().filter(of_ue).map(|entry| entry.name() + "\n").collect()
}

#[test]
fn a_phone_registers_and_opens_a_session() {
    let mut world = World::new(Plan::clean());
    world.keep_ladder();
    world.run_single_registration().unwrap();
    insta::assert_snapshot!(names(&world.ladder()));
}

#[test]
fn traffic_resumes_after_an_error_indication_of_the_gnb() {
    let mut world = World::new(Plan::clean());
    let [before, after] = world.run_lost_tunnel().unwrap();
    let (before, after) = (before.expect("downlink is open"), after.expect("downlink is open again"));
    assert_eq!(before.peer, after.peer);
    assert_ne!(before.teid, after.teid, "the gNB gave a new tunnel");
}

/// TS 23.501 5.7.5.3, TS 24.501 6.2.5.1.4: from the PCF's rule to the UE's answer in the flow of the packet.
#[test]
fn a_phone_answers_in_the_flow_of_a_reflective_packet_until_the_rq_timer_expires() {
    let mut world = World::new(Plan::clean());
    let [before, after, late, removed] = world.run_reflection().unwrap();
    let default = ReflectedAnswer { qfi: 1, is_of_rule: false };
    assert_eq!(before, default, "no packet has arrived");
    assert_eq!(after, ReflectedAnswer { qfi: 2, is_of_rule: true });
    assert_eq!((late, removed), (default, default));
}

#[test]
fn a_seed_is_the_same_world_each_time() {
    for seed in [1, 2, 3, 5] {
        let live = || {
            let mut world = World::new(Plan::of_seed(seed));
            world.keep_ladder();
            let end = world.run_phases().map(|report| report.steps).map_err(|failure| failure.what.clone());
            (end, world.ladder())
        };
        let (first, second) = (live(), live());
        assert_eq!(first.0, second.0);
        let differs = first.1.iter().zip(&second.1).find(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed}");
    }
}
