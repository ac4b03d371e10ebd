//! When a worker lets packets gather before it looks again: where many come, to be woken for each costs more than all
//! else that is done with it.

use crate::rules::Now;
use std::time::Duration;

/// How long frames may gather while they flow. What came by TUN or socket waits as long then.
const FRAMES_NAP: Duration = Duration::from_micros(150);
/// The same for what comes by TUN and socket. The kernel may add as much again to so short a sleep.
const NAP: Duration = Duration::from_micros(50);
/// Rounds that follow each other more closely than this, in nanoseconds, do too little each.
const CLOSE: u64 = 20_000;
/// So many of them, and packets gather; one that does not takes back [`APART`].
const ROUNDS: u32 = 32;
const APART: u32 = 4;
/// What a nap has to bring for the next to be worth it.
const WORTH: u64 = 8;

/// What the last rounds brought.
#[derive(Debug)]
pub struct Pace {
    began: Now,
    close: u32,
    gathers: bool,
    frames: bool,
}

impl Pace {
    /// Nothing came yet.
    pub fn new(now: Now) -> Self {
        Self { began: now, close: 0, gathers: false, frames: false }
    }

    /// A round is over, which began at that time and brought so many packets, and frames or not.
    pub fn note(&mut self, began: Now, packets: u64, frames: bool) {
        let close = began.0.saturating_sub(self.began.0) < CLOSE && packets > 0;
        self.close = if close { (self.close + 1).min(ROUNDS) } else { self.close.saturating_sub(APART) };
        self.gathers = if self.gathers { packets >= WORTH } else { self.close >= ROUNDS };
        self.began = began;
        self.frames = frames;
    }

    /// How long to let packets gather now.
    pub fn nap(&self) -> Option<Duration> {
        match (self.frames, self.gathers) {
            (true, _) => Some(FRAMES_NAP),
            (false, true) => Some(NAP),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: u64 = 1000;

    /// After so many rounds that far apart, in nanoseconds, of so many packets.
    fn after(rounds: u32, apart: u64, packets: u64) -> Pace {
        let mut pace = Pace::new(Now(1));
        (1..=u64::from(rounds)).for_each(|round| pace.note(Now(1 + round * apart), packets, false));
        pace
    }

    #[test]
    fn packets_gather_once_they_come_faster_than_a_wake_up_is_worth() {
        assert_eq!(after(ROUNDS - 1, 4 * MICROSECOND, 2).nap(), None);
        assert_eq!(after(ROUNDS, 4 * MICROSECOND, 2).nap(), Some(NAP));
    }

    #[test]
    fn who_sends_now_and_then_and_waits_for_an_answer_waits_no_longer() {
        assert_eq!(after(1000, 25 * MICROSECOND, 1).nap(), None);
    }

    #[test]
    fn it_ends_when_a_nap_brings_little() {
        let mut pace = after(ROUNDS, 4 * MICROSECOND, 2);
        pace.note(Now(1_000 * MICROSECOND), WORTH, false);
        assert_eq!(pace.nap(), Some(NAP));
        pace.note(Now(1_100 * MICROSECOND), WORTH - 1, false);
        assert_eq!(pace.nap(), None);
    }

    #[test]
    fn frames_gather_as_soon_as_they_come() {
        let mut pace = Pace::new(Now(1));
        pace.note(Now(1_000 * MICROSECOND), 0, true);
        assert_eq!(pace.nap(), Some(FRAMES_NAP));
    }
}
