//! The memory of a flood of half-open contexts is returned to the operating system. A test program of its own, as it
//! measures the process.

use pith_runtime::memory::{Allocator, return_free};
use std::sync::{Barrier, mpsc};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// As in `pith`.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Octets of a half-open UE context.
const CONTEXT: usize = 2_048;
/// Contexts for each thread.
const CONTEXTS: usize = 16_384;
/// Tolerated remainder, in octets.
const REMAINDER: usize = 8 << 20;
/// Time in which memory that stays free is returned.
const PATIENCE: Duration = Duration::from_secs(10);

/// Resident octets of this process.
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Contexts of different sizes.
fn flood() -> Vec<Box<[u8]>> {
    (0..CONTEXTS).map(|number| vec![number as u8; CONTEXT - number % 512].into_boxed_slice()).collect()
}

/// One context in 500 outlives the flood.
fn survivors(contexts: Vec<Box<[u8]>>) -> Vec<Box<[u8]>> {
    contexts.into_iter().enumerate().filter(|(number, _)| number % 500 == 499).map(|(_, one)| one).collect()
}

#[test]
fn the_memory_of_a_flood_is_returned_when_it_stays_free() {
    let before = resident();
    let (held, kept) = (Barrier::new(3), mpsc::channel());
    let (end, ended, over) = (Barrier::new(3), Barrier::new(3), Barrier::new(3));
    thread::scope(|scope| {
        for _ in 0..2 {
            let (held, end, ended, over, kept) = (&held, &end, &ended, &over, kept.0.clone());
            scope.spawn(move || {
                let contexts = flood();
                held.wait();
                end.wait();
                kept.send(survivors(contexts)).unwrap();
                ended.wait();
                // The thread lives on, as those of a core.
                over.wait();
            });
        }
        held.wait();
        let at_most = resident() - before;
        assert!(at_most > CONTEXT * CONTEXTS, "{at_most} octets for the flood");
        end.wait();
        ended.wait();
        let kept: Vec<_> = kept.1.iter().take(2).collect();
        let since = Instant::now();
        while resident().saturating_sub(before) > REMAINDER && since.elapsed() < PATIENCE {
            thread::sleep(PATIENCE / 100);
            return_free();
        }
        let left = resident().saturating_sub(before);
        over.wait();
        assert!(left < REMAINDER, "{left} octets of {at_most} are left after {:?}", since.elapsed());
        drop(kept);
    });
}
