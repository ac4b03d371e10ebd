//! Which worker has a session's queue, and how much is in it or on its way to it.
//!
//! Whoever first has a packet that must wait becomes the owner; until nothing waits any more, all
//! workers hand the session's packets of that direction to it, so none overtakes. A flow's packets come
//! by one worker, so the order in which it hands them over, or sends them itself, is their order.

use super::Worker;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Where the owner's number starts; below it, how many packets wait.
const OWNER: u32 = 48;
const ONE: u64 = 1;
const COUNT: u64 = (ONE << OWNER) - 1;

/// Packets of a session in one direction that wait.
#[derive(Debug, Default)]
pub struct Waiting(AtomicU64);

impl Waiting {
    /// The worker at which packets wait; `None`: none do, and packets may be sent directly.
    pub fn owner(&self) -> Option<Worker> {
        let state = self.0.load(SeqCst);
        (state != 0).then(|| owner_of(state))
    }

    /// Adds a packet, and answers whose it is: `me`, if none waited before.
    pub fn join(&self, me: Worker) -> Worker {
        let joined = |state| if state == 0 { (me.0 as u64) << OWNER | ONE } else { state + ONE };
        let before = self.0.fetch_update(SeqCst, SeqCst, |state| Some(joined(state))).unwrap_or(0);
        if before == 0 { me } else { owner_of(before) }
    }

    /// A packet has left: it was sent, so that later ones can't overtake it, or dropped.
    pub fn leave(&self) {
        let left = |state: u64| if state & COUNT <= ONE { 0 } else { state - ONE };
        // The closure never says no.
        let _ = self.0.fetch_update(SeqCst, SeqCst, |state| Some(left(state)));
    }
}

fn owner_of(state: u64) -> Worker {
    Worker((state >> OWNER) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_owns_until_the_last_has_left() {
        let waiting = Waiting::default();
        assert_eq!(waiting.owner(), None);
        assert_eq!([3, 1, 2].map(|worker| waiting.join(Worker(worker))), [Worker(3); 3]);
        waiting.leave();
        waiting.leave();
        assert_eq!(waiting.owner(), Some(Worker(3)));
        waiting.leave();
        assert_eq!(waiting.owner(), None);
        assert_eq!(waiting.join(Worker(0)), Worker(0));
        assert_eq!(waiting.owner(), Some(Worker(0)));
    }
}
