//! Limits of queueing delay: CoDel (RFC 8289) for flows that react to it, a hard limit for all.

use super::Ecn;

/// Acceptable standing delay (RFC 8289: the target).
const TARGET: u64 = 5_000_000;
/// Longer than a worst-case round trip (RFC 8289: the interval).
const INTERVAL: u64 = 100_000_000;
/// Longest delay of a packet, unless it is the last of its queue.
pub const LONGEST: u64 = 16_000_000;
/// Delay from which scalable senders are signalled (RFC 9332: the step of an L4S queue).
const STEP: u64 = 1_000_000;

/// The decision on the packet at the head of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodelAction {
    /// Send it.
    Send,
    /// Send it with a congestion mark.
    Mark,
    /// Drop it: its delay exceeds the limit.
    Drop,
}

/// CoDel's state of one queue.
#[derive(Debug, Clone, Copy, Default)]
pub struct Codel {
    /// Time at which the delay will have exceeded the target for an interval; 0: it does not exceed it.
    first_above: u64,
    /// Time of the next drop or mark.
    next: u64,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl Codel {
    /// Decides on a packet that was queued for `sojourn` nanoseconds; `last`: no packet is queued behind it.
    pub fn decide(&mut self, now: u64, sojourn: u64, ecn: Ecn, last: bool) -> CodelAction {
        if sojourn > LONGEST && !last {
            return CodelAction::Drop;
        }
        let signal = self.signal(now, sojourn, last);
        match ecn {
            Ecn::Scalable if signal || (sojourn > STEP && !last) => CodelAction::Mark,
            Ecn::Classic | Ecn::Scalable | Ecn::Experienced if signal => CodelAction::Mark,
            Ecn::NotCapable if signal => CodelAction::Drop,
            _ => CodelAction::Send,
        }
    }

    /// RFC 8289's dequeue routine, for one packet a call: whether this packet signals congestion.
    fn signal(&mut self, now: u64, sojourn: u64, last: bool) -> bool {
        let above = self.has_been_above(now, sojourn, last);
        if !self.dropping {
            if above {
                self.begin(now);
            }
            return above;
        }
        self.dropping = above;
        if !above || now < self.next {
            return false;
        }
        self.count += 1;
        self.next = later(self.next, self.count);
        true
    }

    fn has_been_above(&mut self, now: u64, sojourn: u64, last: bool) -> bool {
        if sojourn < TARGET || last {
            self.first_above = 0;
            return false;
        }
        if self.first_above == 0 {
            self.first_above = now + INTERVAL;
        }
        now >= self.first_above
    }

    /// Resumes near the last signalling rate, if that was recent.
    fn begin(&mut self, now: u64) {
        self.dropping = true;
        let since = self.count.saturating_sub(self.last_count);
        let recent = now.saturating_sub(self.next) < 16 * INTERVAL;
        self.count = if since > 1 && recent { since } else { 1 };
        self.last_count = self.count;
        self.next = later(now, self.count);
    }
}

/// The control law: the interval shrinks with the square root of the number of signals.
fn later(from: u64, count: u32) -> u64 {
    from + (INTERVAL << 16) / u64::from(count.max(1)).saturating_mul(1 << 32).isqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn signals(ecn: Ecn, sojourn: u64, last: bool) -> Vec<u64> {
        let mut codel = Codel::default();
        (1..=1000).filter(|ms| codel.decide(ms * MS, sojourn, ecn, last) != CodelAction::Send).collect()
    }

    #[test]
    fn a_standing_queue_is_signalled_after_an_interval_and_then_more_often() {
        let told = signals(Ecn::NotCapable, 6 * MS, false);
        assert_eq!(told[..4], [101, 201, 272, 330], "100, then 100/sqrt(n)");
        assert_eq!(signals(Ecn::NotCapable, 4 * MS, false), [0; 0]);
        assert_eq!(signals(Ecn::NotCapable, 30 * MS, true), [0; 0], "the last packet goes whatever its age");
    }

    #[test]
    fn ecn_capable_packets_are_marked_and_others_dropped() {
        let mut codel = Codel::default();
        codel.decide(MS, 6 * MS, Ecn::Classic, false);
        let mut other = codel;
        assert_eq!(codel.decide(200 * MS, 6 * MS, Ecn::Classic, false), CodelAction::Mark);
        assert_eq!(other.decide(200 * MS, 6 * MS, Ecn::NotCapable, false), CodelAction::Drop);
    }

    #[test]
    fn scalable_senders_are_marked_at_the_step() {
        assert_eq!(signals(Ecn::Scalable, 2 * MS, false).len(), 1000);
        assert_eq!(signals(Ecn::Scalable, MS / 2, false), [0; 0]);
        assert_eq!(signals(Ecn::Classic, 2 * MS, false), [0; 0]);
    }

    #[test]
    fn no_packet_is_queued_longer_than_the_limit() {
        for ecn in [Ecn::NotCapable, Ecn::Classic, Ecn::Scalable, Ecn::Experienced] {
            assert_eq!(Codel::default().decide(MS, LONGEST + 1, ecn, false), CodelAction::Drop);
        }
    }
}
