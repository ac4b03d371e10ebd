//! A slice of `make kill`: every fifth crash point of each procedure, or (`shared`, `embedded`) every sixteenth, in one world for each
//! residency.

use pith_world::{Kill, Options, PROCEDURES, Plan, Residency, Table, Victim, World, WriteForm, campaign};

#[test]
fn no_crash_point_breaks_what_the_residency_promises() {
    let mut table = Table::new();
    for residency in Residency::STORED {
        let options = Options {
            seeds: (1, 2),
            residencies: vec![residency],
            victims: vec![Victim::Core],
            procedure: None,
            stride: if residency.needs_runtime_store() { 16 } else { 5 },
            threads: 2,
            retains_ues: false,
        };
        table.append(&mut campaign(&options, &|_, _, _| {}));
    }
    let failures: Vec<String> = table
        .values()
        .flat_map(|row| row.broken.iter().filter(|broken| broken.is_failure))
        .map(|broken| format!("pith-world kill {}: {}", broken.run, broken.what))
        .collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    let points: u64 = table.values().map(|row| row.points).sum();
    assert!(points > 500, "{points} crash points");
    let possible = |residency: &Residency| PROCEDURES.iter().filter(|it| it.may_have(*residency)).count();
    assert_eq!(table.len(), Residency::STORED.iter().map(possible).sum::<usize>());
}

/// Every seventh input of each procedure, or (`shared`, `embedded`) every sixteenth, in two worlds with several shards.
#[test]
fn no_panic_of_a_shard_breaks_what_the_residency_promises() {
    let mut table = Table::new();
    for residency in Residency::STORED {
        let options = Options {
            seeds: (0, 2),
            residencies: vec![residency],
            victims: vec![Victim::Shard],
            procedure: None,
            stride: if residency.needs_runtime_store() { 16 } else { 7 },
            threads: 2,
            retains_ues: false,
        };
        table.append(&mut campaign(&options, &|_, _, _| {}));
    }
    let failures: Vec<String> = table
        .values()
        .flat_map(|row| row.broken.iter().filter(|broken| broken.is_failure))
        .map(|broken| format!("pith-world kill {}: {}", broken.run, broken.what))
        .collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    let points: u64 = table.values().map(|row| row.points).sum();
    assert!(points > 400, "{points} panics");
}

#[test]
fn a_run_has_the_same_crash_points_each_time() {
    for procedure in PROCEDURES.iter().step_by(7) {
        let kill = Kill {
            procedure,
            seed: 3,
            residency: Residency::Durable,
            victim: Victim::Core,
            retains_ues: false,
        };
        let points = kill.points().expect("a run without a crash");
        assert!(points >= 4, "{}: {points} crash points", procedure.name);
        let crash = || {
            let (result, world) = kill.crash_at(points / 2, true);
            (result.map_err(|breach| breach.failure.what), world.map(|world| world.ladder()))
        };
        let (first, second) = (crash(), crash());
        assert_eq!(first.0, second.0);
        assert_eq!(first.1, second.1, "{}", procedure.name);
    }
}

/// Crash points that broke an invariant once: procedure, residency, victim, seed, point.
const FOUND: [(&str, Residency, &str, u64, u64); 34] = [
    // The AMF deleted a UE's document before UDM and PCF had released its resources.
    ("deregistration", Residency::Durable, "core", 0, 2),
    ("deregistration-by-operator", Residency::Durable, "core", 0, 6),
    // The SMF deleted a session's document before the UDM had released its registration.
    ("session-release", Residency::Durable, "core", 0, 8),
    // The SMF had registered in the UDM, and had no document.
    ("session-establishment", Residency::Durable, "core", 0, 24),
    // The AMF sent a PDU SESSION RELEASE COMMAND of a session that its SMF had ended meanwhile.
    ("session-release-by-pcf-idle", Residency::Durable, "core", 0, 3),
    // The UE simulator did not start T3512 after a service request without answer.
    ("paging", Residency::Durable, "core", 0, 6),
    // A UPF took the association of the second of two runs within a second for a retransmission of the first one's.
    ("restart", Residency::Durable, "core", 17, 16),
    // A restored UE was dropped, and read again as it was before the restart.
    ("paging", Residency::Stateless, "core", 0, 0),
    // The AMF forgot a session of which only it and the SMF knew before the SMF had released it.
    ("registration-over-registration", Residency::Stateless, "core", 0, 2),
    ("registration-over-registration", Residency::Durable, "amf", 0, 1),
    // The AMF got no answer to the creation of its policy association or subscription.
    ("initial-registration", Residency::Durable, "pcf", 0, 7),
    ("initial-registration", Residency::Durable, "udr", 0, 32),
    ("initial-registration", Residency::Durable, "udm", 0, 24),
    ("initial-registration", Residency::Durable, "amf", 0, 28),
    // The SMF ended a session without the UE, whose connection did not end.
    ("session-release-by-pcf", Residency::Durable, "smf", 0, 2),
    // The user plane of a connected UE was not activated again.
    ("error-indication", Residency::Durable, "smf", 0, 2),
    // The gNB sent to a UPF that was removed.
    ("branch-removal", Residency::Durable, "smf", 0, 1),
    ("branch-removal", Residency::Durable, "smf", 1, 5),
    // The SMF had recorded that the gNB sends to the anchor, and had not requested it.
    ("restart", Residency::Durable, "smf", 1, 22),
    // The response of a UPF was delivered again after a panic, and the SMF deleted the session that it had recorded.
    ("restart", Residency::Stateless, "shard", 0, 21),
    // The next run of a shard changed rules at a UPF, and a late datagram of the former run changed them back.
    ("n2-handover-two-sessions", Residency::Stateless, "shard", 0, 13),
    ("n2-handover", Residency::Procedural, "shard", 4, 3),
    // With `procedural` sessions were established at their UPFs again after a panic, although these had them.
    ("branch-removal", Residency::Procedural, "shard", 0, 2),
    // A request of another shard was lost in a panic: in the turn, and while its context was being loaded.
    ("second-session-establishment", Residency::Stateless, "move", 1, 22),
    ("session-release", Residency::Stateless, "move", 1, 19),
    // After a handover the AMF sent what an SMF had requested for the resources of a session that the target gNB released.
    ("xn-handover-two-sessions", Residency::Soft, "smf", 300, 3),
    ("xn-handover-two-sessions", Residency::Procedural, "smf", 300, 6),
    ("n2-handover-two-sessions", Residency::Procedural, "smf", 300, 8),
    // An SMF with the document from before a handover names the former tunnel, which the gNB refuses.
    ("n2-handover", Residency::Procedural, "smf", 300, 6),
    // The SMF had lost the deactivation of a user plane.
    ("association-loss", Residency::Soft, "smf", 300, 3),
    // The SMF had lost that the UE has left the service area.
    ("ladn-leaving", Residency::Soft, "smf", 0, 5),
    // The target gNB was to release a session that had ended a second time.
    ("ladn-leaving-by-n2-handover", Residency::Stateless, "smf", 0, 16),
    // The SMF had stored that the UE revokes its support of reflective QoS, and never answered the UE.
    ("reflective-qos-revocation", Residency::Durable, "smf", 0, 1),
    ("reflective-qos-revocation", Residency::Stateless, "smf", 0, 3),
];

#[test]
fn what_was_found_is_mended() {
    for (name, residency, victim, seed, point) in FOUND {
        let procedure = PROCEDURES.iter().find(|procedure| procedure.name == name).expect("its name");
        let all = [Victim::Core, Victim::Shard, Victim::Move].into_iter().chain(Victim::split());
        let victim = all.into_iter().find(|it| it.to_string() == victim).expect("an NF");
        let kill = Kill { procedure, seed, residency, victim, retains_ues: false };
        let (result, _) = kill.crash_at(point, false);
        let breach = result.err().map(|breach| breach.failure.what);
        assert_eq!(breach, None, "{kill} --point {point}");
    }
}

/// After each step the world checks that no downlink NAS COUNT is used twice.
#[test]
fn no_count_is_used_twice_if_the_process_is_killed_while_the_store_fails() {
    for residency in Residency::STORED {
        let store = residency.needs_runtime_store().then_some(WriteForm::Update);
        let mut world = World::new(Plan { residency, store, reloads: false, ..Plan::clean() });
        let requests = world.run_outage().unwrap_or_else(|failure| panic!("{}: {failure}", residency.name()));
        assert!(requests > 16, "more messages than a document reserves COUNTs");
    }
}

/// A COUNT of an outdated document may have been used: its UE is authenticated again. It does not register again.
#[test]
fn a_ue_is_authenticated_anew_after_a_power_failure() {
    for residency in Residency::STORED {
        let store = Some(WriteForm::Replace);
        let mut world = World::new(Plan { residency, store, reloads: false, ..Plan::clean() });
        world.keep_ladder();
        let result = world.run_power_failure();
        let [before, after] = result.unwrap_or_else(|failure| panic!("{}: {failure}", residency.name()));
        assert!(before >= 1 && after > before, "{}: {before}, then {after}", residency.name());
        let registrations = world.ladder().iter().filter(|entry| entry.what == "RegistrationRequest").count();
        assert_eq!(registrations, 1, "{}: the first one", residency.name());
    }
}

/// The profiles of the NFs are stored: after the NRF's restart they send heart-beats as before.
#[test]
fn no_nf_registers_again_after_a_restart_of_the_nrf() {
    let nrf = Victim::split().into_iter().find(|victim| victim.to_string() == "nrf").expect("an NF");
    let procedure = PROCEDURES.iter().find(|procedure| procedure.name == "restart").expect("its name");
    let kill = Kill { procedure, seed: 1, residency: Residency::Durable, victim: nrf, retains_ues: false };
    let (result, world) = kill.crash_at(0, true);
    assert_eq!(result.err().map(|breach| breach.failure.what), None);
    let ladder = world.expect("no panic").ladder();
    let rung = |name: &str| ladder.iter().filter(|entry| entry.what == name).collect::<Vec<_>>();
    let crash = ladder.iter().find(|entry| entry.what.starts_with("crash")).expect("the crash").at;
    // All NFs but the NRF itself.
    let registered = rung("Nnrf_NFManagement_NFRegister");
    assert!(registered.len() >= 7, "{registered:?}");
    assert!(registered.iter().all(|entry| entry.at < crash), "{registered:?}");
    assert!(rung("Nnrf_NFManagement_NFUpdate").iter().any(|entry| entry.at > crash), "heart-beats");
}
