//! Blocks of ids pass to another shard at each step of each procedure of `make kill`.

use pith_world::{Kill, Options, PROCEDURES, Residency, Victim, campaign};
use std::time::Duration;

fn failures(residency: Residency, step: usize, victim: Victim) -> (u32, Vec<String>) {
    let (mut moved, mut failures) = (0, Vec::new());
    for (number, procedure) in PROCEDURES.iter().enumerate() {
        let kill = Kill { procedure, seed: number as u64, residency, victim, retains_ues: false };
        // Without stored contexts the end of a process in a procedure loses UEs.
        if residency == Residency::None && kill.move_after(None, false).is_err() {
            continue;
        }
        for after in (0..400).step_by(step) {
            let back = (after / step) % 3 == 2;
            match kill.move_after(Some(Duration::from_millis(after as u64)), back) {
                Ok(blocks) => moved += blocks,
                Err(breach) => {
                    failures.push(format!("{} after {after} ms: {}", procedure.name, breach.failure.what));
                }
            }
        }
    }
    (moved, failures)
}

#[test]
fn no_procedure_notices_that_its_ue_passes_to_another_shard() {
    let mut all = Vec::new();
    for residency in [Residency::None, Residency::Durable, Residency::Stateless] {
        let (moved, failures) = failures(residency, 80, Victim::Core);
        assert!(moved > 120, "{residency:?}: {moved} blocks passed");
        all.extend(failures.into_iter().map(|failure| format!("{residency:?}: {failure}")));
    }
    assert!(all.is_empty(), "{} failures:\n{}", all.len(), all.join("\n"));
}

/// A shard panics at every seventh input after the begin of a move: the former owner, or the new one while it takes the block.
#[test]
fn no_panic_in_a_move_loses_a_ue() {
    let options = Options {
        seeds: (1, 3),
        residencies: vec![Residency::Durable, Residency::Soft, Residency::Procedural, Residency::Stateless],
        victims: vec![Victim::Move],
        procedure: None,
        stride: 7,
        threads: 2,
        retains_ues: false,
    };
    let table = campaign(&options, &|_, _, _| {});
    let broken = table.values().flat_map(|row| row.broken.iter().filter(|broken| broken.is_failure));
    let failures: Vec<_> =
        broken.map(|broken| format!("pith-world kill {}: {}", broken.run, broken.what)).collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    let points: u64 = table.values().map(|row| row.points).sum();
    assert!(points > 200, "{points} panics");
}
