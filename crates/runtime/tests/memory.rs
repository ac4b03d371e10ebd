//! The memory of a flood is returned to the operating system. A test program of its own, as it measures the process.

use pith_runtime::memory::Trimmer;
use std::fs;
use std::thread;

/// Octets of a half-open UE context.
const CONTEXT: usize = 2_048;
/// Contexts for each thread.
const CONTEXTS: usize = 16_384;
/// Tolerated remainder, in octets.
const REMAINDER: usize = 8 << 20;

/// Resident octets of this process.
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Contexts of several allocations, of which one in 500 outlives the flood. Returns the survivors.
fn flood() -> Vec<Box<[u8]>> {
    let contexts: Vec<Box<[u8]>> =
        (0..CONTEXTS).map(|number| vec![number as u8; CONTEXT - number % 512].into_boxed_slice()).collect();
    contexts.into_iter().enumerate().filter(|(number, _)| number % 500 == 499).map(|(_, one)| one).collect()
}

#[test]
#[cfg(target_env = "gnu")]
fn the_memory_of_a_flood_is_returned_when_it_stays_free() {
    let mut trimmer = Trimmer::default();
    trimmer.check();
    let before = resident();
    let (survivors, others) = std::sync::mpsc::channel();
    let (end, wait) = (std::sync::Barrier::new(3), std::sync::Barrier::new(3));
    thread::scope(|scope| {
        for _ in 0..2 {
            let (survivors, end, wait) = (survivors.clone(), &end, &wait);
            scope.spawn(move || {
                survivors.send(flood()).unwrap();
                wait.wait();
                // The thread lives on, as those of a core do.
                end.wait();
            });
        }
        wait.wait();
        let kept: Vec<_> = others.iter().take(2).collect();
        let held = resident() - before;
        assert!(held > REMAINDER, "glibc keeps freed memory: {held}");
        assert!(!trimmer.check(), "memory that is free at one check only is not returned");
        assert!(trimmer.check());
        let left = resident().saturating_sub(before);
        assert!(left < REMAINDER, "{left} octets of {held} are left");
        assert!(!trimmer.check(), "free memory is returned once");
        drop(kept);
        end.wait();
    });
}
