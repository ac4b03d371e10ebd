//! Sessions at UPFs while the SMF is killed and started again: a UPF that retains them keeps them, another gets them again
//! (TS 29.244 6.2.6.2.2).

use pith_nf::kit::Nf;
use pith_world::{Kill, PROCEDURES, Residency, Victim};

/// What the SMF requests of UPFs, from its second start on, in the first two seconds: without heartbeats.
fn requests_after_restart(procedure: &str, residency: Residency, seed: u64) -> Vec<String> {
    let procedure = PROCEDURES.iter().find(|it| it.name == procedure).expect("a procedure");
    let kill = Kill { procedure, seed, residency, victim: Victim::Split(Nf::Smf), retains_ues: false };
    let (result, world) = kill.crash_at(1, true);
    result.unwrap_or_else(|breach| panic!("{}: {}", kill, breach.failure.what));
    let ladder: Vec<String> = world.expect("a world").ladder().iter().map(ToString::to_string).collect();
    let starts: Vec<usize> =
        (0..ladder.len()).filter(|at| ladder[*at].contains("Association Setup Request")).collect();
    let last = starts.last().copied().expect("an association");
    let time =
        |line: &str| line.split_whitespace().next().and_then(|time| time.parse::<f64>().ok()).unwrap_or(0.0);
    let begin = time(&ladder[last]);
    let first = ladder.iter().position(|line| time(line) > begin - 2.0).unwrap_or(0);
    let of_smf = ladder[first..].iter().take_while(|line| time(line) < begin + 2.0);
    let of_smf = of_smf.filter(|line| line.contains("SMF -> UPF") || line.contains("SMF -> EDGE"));
    of_smf.map(|line| line.split("    ").last().unwrap_or("").trim().to_owned()).collect()
}

fn has(requests: &[String], kind: &str) -> bool {
    requests.iter().any(|request| request.contains(kind))
}

#[test]
fn a_upf_that_retains_its_sessions_gets_none_of_them_again() {
    for residency in [Residency::Durable, Residency::Stateless, Residency::Shared, Residency::Embedded] {
        for seed in [0, 1] {
            let requests = requests_after_restart("service-request", residency, seed);
            assert!(has(&requests, "Modification"), "{residency:?}, seed {seed}: {requests:?}");
            assert!(has(&requests, "Set Deletion"), "{residency:?}, seed {seed}: {requests:?}");
            assert!(!has(&requests, "Establishment"), "{residency:?}, seed {seed}: {requests:?}");
        }
    }
}

#[test]
fn a_upf_that_retains_none_gets_all_of_them_again() {
    let requests = requests_after_restart("service-request", Residency::Durable, 2);
    assert!(has(&requests, "Establishment") && !has(&requests, "Set Deletion"), "{requests:?}");
}

/// With documents that may lag, the UPFs are not asked to retain sessions.
#[test]
fn an_smf_that_may_have_lost_changes_establishes_its_sessions_again() {
    for residency in [Residency::Soft, Residency::Procedural] {
        let requests = requests_after_restart("service-request", residency, 0);
        assert!(
            has(&requests, "Establishment") && !has(&requests, "Set Deletion"),
            "{residency:?}: {requests:?}"
        );
    }
}

/// gNBs that retain their UEs have connections which no document names: at the target of a handover. Messages of others cross NG RESET.
#[test]
fn what_a_gnb_retains_and_the_amf_has_ended_is_released() {
    for (name, point) in [
        ("n2-handover", 6),
        ("n2-handover", 10),
        ("n2-handover-two-sessions", 14),
        ("paging", 10),
        ("re-registration-by-operator", 38),
    ] {
        let procedure = PROCEDURES.iter().find(|it| it.name == name).expect("a procedure");
        let (residency, victim) = (Residency::Durable, Victim::Core);
        let kill = Kill { procedure, seed: 2, residency, victim, retains_ues: true };
        let (result, _) = kill.crash_at(point, false);
        result.unwrap_or_else(|breach| panic!("{kill} --point {point}: {}", breach.failure.what));
    }
}

/// What documents say of UEs that left their gNB, or moved to another one, right before the end of the process.
#[test]
fn ues_that_left_before_the_restart_are_released_by_their_gnb() {
    for (name, seed, point) in [
        ("xn-handover-two-sessions", 1, 5),
        ("association-loss", 6, 6),
        ("deregistration", 6, 2),
        ("deregistration-by-operator", 6, 6),
        ("re-registration-by-operator", 6, 6),
        ("deregistration-by-udm", 6, 6),
    ] {
        let procedure = PROCEDURES.iter().find(|it| it.name == name).expect("a procedure");
        let (residency, victim) = (Residency::Durable, Victim::Core);
        let kill = Kill { procedure, seed, residency, victim, retains_ues: true };
        let (result, _) = kill.crash_at(point, false);
        result.unwrap_or_else(|breach| panic!("{kill} --point {point}: {}", breach.failure.what));
    }
}
