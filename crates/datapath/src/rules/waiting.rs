//! The worker that owns a session's queue, and the number of packets in it or in transit to it.
//!
//! The first worker with a packet that must be queued becomes the owner. Until no packet is queued, all
//! workers pass the session's packets of that direction to it. A flow's packets arrive at one worker, so
//! their order is kept.

use super::Worker;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Bit position of the owner; the lower bits count the queued packets.
const OWNER: u32 = 48;
const ONE: u64 = 1;
const COUNT: u64 = (ONE << OWNER) - 1;

/// Queued packets of a session in one direction.
#[derive(Debug, Default)]
pub struct Waiting(AtomicU64);

impl Waiting {
    /// The owner; `None`: no packet is queued, and packets may be sent directly.
    pub fn owner(&self) -> Option<Worker> {
        let state = self.0.load(SeqCst);
        (state != 0).then(|| owner_of(state))
    }

    /// Adds a packet and returns the owner: `me`, if none was queued before.
    pub fn join(&self, me: Worker) -> Worker {
        let joined = |state| if state == 0 { (me.0 as u64) << OWNER | ONE } else { state + ONE };
        let before = self.0.fetch_update(SeqCst, SeqCst, |state| Some(joined(state))).unwrap_or(0);
        if before == 0 { me } else { owner_of(before) }
    }

    /// Removes a packet that was sent, so that later ones cannot overtake it, or dropped.
    pub fn leave(&self) {
        let left = |state: u64| if state & COUNT <= ONE { 0 } else { state - ONE };
        // The closure always returns `Some`.
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
