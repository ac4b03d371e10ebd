//! A slice of `make kill`: every second crash point of each procedure, in one world for each residency.

use pith_world::{Kill, Options, PROCEDURES, Plan, Residency, Victim, World, campaign};

#[test]
fn no_crash_point_breaks_what_the_residency_promises() {
    let options = Options {
        seeds: (1, 2),
        residencies: Residency::STORED.into(),
        victims: vec![Victim::Core],
        procedure: None,
        stride: 2,
        threads: 2,
    };
    let table = campaign(&options, &|_, _, _| {});
    let failures: Vec<String> = table
        .values()
        .flat_map(|row| row.broken.iter().filter(|broken| broken.is_failure))
        .map(|broken| format!("pith-world kill {}: {}", broken.run, broken.what))
        .collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    let points: u64 = table.values().map(|row| row.points).sum();
    assert!(points > 1200, "{points} crash points");
    assert_eq!(table.len(), 4 * PROCEDURES.len());
}

/// Every second input of each procedure, in two worlds with several shards.
#[test]
fn no_panic_of_a_shard_breaks_what_the_residency_promises() {
    let options = Options {
        seeds: (0, 2),
        residencies: vec![Residency::Durable, Residency::Soft],
        victims: vec![Victim::Shard],
        procedure: None,
        stride: 2,
        threads: 2,
    };
    let table = campaign(&options, &|_, _, _| {});
    let failures: Vec<String> = table
        .values()
        .flat_map(|row| row.broken.iter().filter(|broken| broken.is_failure))
        .map(|broken| format!("pith-world kill {}: {}", broken.run, broken.what))
        .collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    let points: u64 = table.values().map(|row| row.points).sum();
    assert!(points > 500, "{points} panics");
}

#[test]
fn a_run_has_the_same_crash_points_each_time() {
    for procedure in PROCEDURES.iter().step_by(7) {
        let kill = Kill { procedure, seed: 3, residency: Residency::Durable, victim: Victim::Core };
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

/// Crash points that broke an invariant once: procedure, seed, point.
const FOUND: [(&str, u64, u64); 6] = [
    // The AMF deleted a UE's document before UDM and PCF had released its resources.
    ("deregistration", 0, 2),
    ("deregistration-by-operator", 0, 6),
    // The SMF deleted a session's document before the UDM had released its registration.
    ("session-release", 0, 8),
    // The SMF had registered in the UDM, and had no document.
    ("session-establishment", 0, 24),
    // The AMF sent a PDU SESSION RELEASE COMMAND of a session that its SMF had ended meanwhile.
    ("session-release-by-pcf-idle", 0, 3),
    // The UE simulator did not start T3512 after a service request without answer.
    ("paging", 0, 6),
];

#[test]
fn what_was_found_is_mended() {
    for (name, seed, point) in FOUND {
        let procedure = PROCEDURES.iter().find(|procedure| procedure.name == name).expect("its name");
        let kill = Kill { procedure, seed, residency: Residency::Durable, victim: Victim::Core };
        let (result, _) = kill.crash_at(point, false);
        let breach = result.err().map(|breach| breach.failure.what);
        assert_eq!(breach, None, "{kill} --point {point}");
    }
}

/// After each step the world checks that no downlink NAS COUNT is used twice.
#[test]
fn no_count_is_used_twice_if_the_process_is_killed_while_the_store_fails() {
    for residency in Residency::STORED {
        let mut world = World::new(Plan { residency, reloads: false, ..Plan::clean() });
        let requests = world.run_outage().unwrap_or_else(|failure| panic!("{}: {failure}", residency.name()));
        assert!(requests > 16, "more messages than a document reserves COUNTs");
    }
}

/// The profiles of the NFs are stored: after the NRF's restart they send heart-beats as before.
#[test]
fn no_nf_registers_again_after_a_restart_of_the_nrf() {
    let nrf = Victim::split().into_iter().find(|victim| victim.to_string() == "nrf").expect("an NF");
    let procedure = PROCEDURES.iter().find(|procedure| procedure.name == "restart").expect("its name");
    let kill = Kill { procedure, seed: 1, residency: Residency::Durable, victim: nrf };
    let (result, world) = kill.crash_at(0, true);
    assert_eq!(result.err().map(|breach| breach.failure.what), None);
    let ladder = world.expect("no panic").ladder();
    let rung = |name: &str| ladder.iter().filter(|entry| entry.what == name).collect::<Vec<_>>();
    let crash = ladder.iter().find(|entry| entry.what.starts_with("crash")).expect("the crash").at;
    // The NRF itself registers nowhere; its process has an agent without NFs.
    let registered = rung("Nnrf_NFManagement_NFRegister");
    assert!(registered.len() >= 8, "{registered:?}");
    assert!(registered.iter().all(|entry| entry.at < crash), "{registered:?}");
    assert!(rung("Nnrf_NFManagement_NFUpdate").iter().any(|entry| entry.at > crash), "heart-beats");
}
