//! A network namespace for a test.

/// Moves the calling thread into a network namespace of its own, which ends with the thread. `false`, with a
/// message, if that is not permitted.
pub fn enter_namespace() -> bool {
    // SAFETY: takes no pointers; changes the namespace of the calling thread only.
    let entered = unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0;
    if !entered {
        crate::skipped::skipped("no right to make a network namespace");
    }
    entered
}
