//! Blocks of ids pass to another shard at each step of each procedure of `make kill`.

use pith_world::{Kill, PROCEDURES, Residency, Victim};
use std::time::Duration;

fn failures(residency: Residency, step: usize, victim: Victim) -> (u32, Vec<String>) {
    let (mut moved, mut failures) = (0, Vec::new());
    for (number, procedure) in PROCEDURES.iter().enumerate() {
        let kill = Kill { procedure, seed: number as u64, residency, victim };
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
        let (moved, failures) = failures(residency, 50, Victim::Core);
        assert!(moved > 200, "{residency:?}: {moved} blocks passed");
        all.extend(failures.into_iter().map(|failure| format!("{residency:?}: {failure}")));
    }
    assert!(all.is_empty(), "{} failures:\n{}", all.len(), all.join("\n"));
}

/// A shard panics at inputs after the begin of a move: the former owner, and the new one while it takes the block.
#[test]
fn no_panic_in_a_move_loses_a_ue() {
    let (mut panics, mut failures) = (0, Vec::new());
    for residency in [Residency::Durable, Residency::Stateless, Residency::Soft, Residency::Procedural] {
        for (number, procedure) in PROCEDURES.iter().enumerate() {
            let kill = Kill { procedure, seed: number as u64, residency, victim: Victim::Core };
            // Another time and other inputs with each procedure.
            let after = Duration::from_millis(number as u64 * 37 % 200);
            let points = kill.points_of_move(after).expect("a move without a panic");
            for point in (number as u64 % 5..points).step_by(5) {
                panics += 1;
                if let Err(breach) = kill.panic_in_move(after, point)
                    && kill.forbids(breach.kind)
                {
                    let what = breach.failure.what;
                    failures.push(format!("{kill}, move after {after:?}, panic at {point}: {what}"));
                }
            }
        }
    }
    assert!(panics > 500, "{panics} panics");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
