//! Interrupt moderation: at high packet rates a worker lets packets accumulate before it polls again, because
//! waking for each costs more than its processing.

use crate::rules::Now;
use std::time::Duration;

/// Pause while AF_XDP frames arrive. Packets of TUN and sockets wait as long then, and queued packets whose time has come:
/// the next round sends all that are due, so rates are kept.
const FRAMES_NAP: Duration = Duration::from_micros(150);
/// Pause for packets of TUN and sockets. The kernel may double so short a sleep.
const NAP: Duration = Duration::from_micros(50);
/// Consecutive rounds less than this apart, in nanoseconds, process too few packets each.
const CLOSE: u64 = 20_000;
/// Consecutive close rounds that start the pauses; a round that is not close subtracts [`APART`].
const ROUNDS: u32 = 32;
const APART: u32 = 4;
/// Packets that a pause must bring for another to follow.
const WORTH: u64 = 8;

/// Statistics of the last rounds.
#[derive(Debug)]
pub struct Pace {
    began: Now,
    close: u32,
    gathers: bool,
    frames: bool,
}

impl Pace {
    pub fn new(now: Now) -> Self {
        Self { began: now, close: 0, gathers: false, frames: false }
    }

    /// Records a round that began at `began` and processed `packets`; `frames`: some were AF_XDP frames.
    pub fn note(&mut self, began: Now, packets: u64, frames: bool) {
        let close = began.0.saturating_sub(self.began.0) < CLOSE && packets > 0;
        self.close = if close { (self.close + 1).min(ROUNDS) } else { self.close.saturating_sub(APART) };
        self.gathers = if self.gathers { packets >= WORTH } else { self.close >= ROUNDS };
        self.began = began;
        self.frames = frames;
    }

    /// The pause before the next poll, if any; `due`: the time until a queued packet must be sent.
    pub fn nap(&self, due: Option<Duration>) -> Option<Duration> {
        match (self.frames, self.gathers) {
            (true, _) => Some(FRAMES_NAP),
            (false, true) => Some(due.map_or(NAP, |due| due.min(NAP))),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: u64 = 1000;

    /// The state after `rounds` rounds of `packets` packets each, `apart` nanoseconds apart.
    fn after(rounds: u32, apart: u64, packets: u64) -> Pace {
        let mut pace = Pace::new(Now(1));
        (1..=u64::from(rounds)).for_each(|round| pace.note(Now(1 + round * apart), packets, false));
        pace
    }

    #[test]
    fn packets_accumulate_at_high_rates() {
        assert_eq!(after(ROUNDS - 1, 4 * MICROSECOND, 2).nap(None), None);
        assert_eq!(after(ROUNDS, 4 * MICROSECOND, 2).nap(None), Some(NAP));
    }

    #[test]
    fn request_response_traffic_is_not_delayed() {
        assert_eq!(after(1000, 25 * MICROSECOND, 1).nap(None), None);
    }

    #[test]
    fn pauses_end_when_they_bring_few_packets() {
        let mut pace = after(ROUNDS, 4 * MICROSECOND, 2);
        pace.note(Now(1_000 * MICROSECOND), WORTH, false);
        assert_eq!(pace.nap(None), Some(NAP));
        pace.note(Now(1_100 * MICROSECOND), WORTH - 1, false);
        assert_eq!(pace.nap(None), None);
    }

    #[test]
    fn frames_accumulate_at_once() {
        let mut pace = Pace::new(Now(1));
        pace.note(Now(1_000 * MICROSECOND), 0, true);
        assert_eq!(pace.nap(None), Some(FRAMES_NAP));
    }

    #[test]
    fn queued_packets_wait_for_frames_but_not_for_other_packets() {
        let due = Some(Duration::from_micros(11));
        let mut pace = after(ROUNDS, 4 * MICROSECOND, 2);
        assert_eq!(pace.nap(due), due);
        pace.note(Now(1_000 * MICROSECOND), 0, true);
        assert_eq!(pace.nap(due), Some(FRAMES_NAP));
    }
}
