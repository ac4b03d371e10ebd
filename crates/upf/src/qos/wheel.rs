//! A timer wheel for sessions with queued packets. A session has one entry; arming, disarming and expiry take
//! constant time.

use super::Time;

/// Nanoseconds of a slot: the resolution.
pub const TICK: u64 = 1 << 18;
/// Slots; entries beyond the last slot expire early and are armed again.
const SLOTS: usize = 1024;
const WORDS: usize = SLOTS / 64;
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
    /// `NONE` if not armed.
    slot: u32,
}

const UNARMED: Link = Link { previous: NONE, next: NONE, slot: NONE };

/// The wheel. Entries are small numbers.
#[derive(Debug)]
pub struct Wheel {
    heads: Box<[u32; SLOTS]>,
    tails: Box<[u32; SLOTS]>,
    occupied: [u64; WORDS],
    links: Vec<Link>,
    /// The current tick; no entry is armed before it.
    at: u64,
    armed: usize,
}

impl Wheel {
    pub fn new() -> Self {
        Self {
            heads: Box::new([NONE; SLOTS]),
            tails: Box::new([NONE; SLOTS]),
            occupied: [0; WORDS],
            links: Vec::new(),
            at: 0,
            armed: 0,
        }
    }

    /// Arms `entry` for `due`, with up to a tick of delay; replaces its previous time.
    pub fn arm(&mut self, entry: u32, due: Time, now: Time) {
        self.disarm(entry);
        if due.0 / TICK >= self.at + SLOTS as u64 / 2 {
            let passed = now.0 / TICK;
            self.at = self.next_tick().map_or(passed, |next| next.min(passed)).max(self.at);
        }
        if self.links.len() <= entry as usize {
            self.links.resize(entry as usize + 1, UNARMED);
        }
        let furthest = self.at + SLOTS as u64 - 1;
        let tick = due.0.div_ceil(TICK).clamp(self.at, furthest);
        self.append(entry, (tick % SLOTS as u64) as usize);
    }

    fn append(&mut self, entry: u32, slot: usize) {
        let last = self.tails[slot];
        self.links[entry as usize] = Link { previous: last, next: NONE, slot: slot as u32 };
        match last {
            NONE => self.heads[slot] = entry,
            last => self.links[last as usize].next = entry,
        }
        self.tails[slot] = entry;
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.armed += 1;
    }

    /// Disarms an entry.
    pub fn disarm(&mut self, entry: u32) {
        let Some(link) = self.links.get(entry as usize).copied().filter(|link| link.slot != NONE) else {
            return;
        };
        let slot = link.slot as usize;
        match link.previous {
            NONE => self.heads[slot] = link.next,
            previous => self.links[previous as usize].next = link.next,
        }
        match link.next {
            NONE => self.tails[slot] = link.previous,
            next => self.links[next as usize].previous = link.previous,
        }
        if self.heads[slot] == NONE {
            self.occupied[slot / 64] &= !(1 << (slot % 64));
        }
        self.links[entry as usize] = UNARMED;
        self.armed -= 1;
    }

    /// Removes the next expired entry; entries of one tick in the order of arming.
    pub fn pop(&mut self, now: Time) -> Option<u32> {
        let tick = self.next_tick()?;
        if tick > now.0 / TICK {
            return None;
        }
        self.at = tick;
        let entry = self.heads[(tick % SLOTS as u64) as usize];
        self.disarm(entry);
        Some(entry)
    }

    /// The expiry of the next entry.
    pub fn next_due(&self) -> Option<Time> {
        self.next_tick().map(|tick| Time(tick * TICK))
    }

    fn next_tick(&self) -> Option<u64> {
        if self.armed == 0 {
            return None;
        }
        let start = (self.at % SLOTS as u64) as usize;
        let distance = |slot: usize| ((slot + SLOTS - start) % SLOTS) as u64;
        // The first word is examined twice: first from the start bit on, last as a whole.
        (0..=WORDS).find_map(|step| {
            let word = (start / 64 + step) % WORDS;
            let mask = if step == 0 { u64::MAX << (start % 64) } else { u64::MAX };
            let bits = self.occupied[word] & mask;
            (bits != 0).then(|| self.at + distance(word * 64 + bits.trailing_zeros() as usize))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const HORIZON: u64 = SLOTS as u64 * TICK;

    fn drain(wheel: &mut Wheel, now: u64) -> Vec<u32> {
        std::iter::from_fn(|| wheel.pop(Time(now))).collect()
    }

    #[test]
    fn entries_come_up_when_due_in_order() {
        let mut wheel = Wheel::new();
        let start = 77 * HORIZON + 5 * TICK;
        for (entry, after) in [(0, 900), (1, 3), (2, 3), (3, 1), (4, 500)] {
            wheel.arm(entry, Time(start + after * TICK), Time(start));
        }
        wheel.arm(4, Time(start + 2 * TICK), Time(start));
        assert_eq!(wheel.next_due(), Some(Time(start + TICK)));
        assert_eq!(drain(&mut wheel, start), [0; 0]);
        assert_eq!(drain(&mut wheel, start + 3 * TICK), [3, 4, 1, 2]);
        assert_eq!(drain(&mut wheel, start + HORIZON), [0]);
        assert_eq!(wheel.next_due(), None);
    }

    #[test]
    fn far_entries_expire_early_and_past_ones_at_once() {
        let mut wheel = Wheel::new();
        wheel.arm(1, Time::NEVER, Time(10 * TICK));
        wheel.arm(2, Time(0), Time(10 * TICK));
        assert_eq!(drain(&mut wheel, 10 * TICK), [2]);
        assert_eq!(drain(&mut wheel, 10 * TICK + HORIZON), [1]);
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_map(steps in prop::collection::vec((0u32..20, 0u64..2000, 0u64..300), 1..200)) {
            let (mut wheel, mut map, mut now) = (Wheel::new(), BTreeMap::new(), 0u64);
            for (entry, after, pass) in steps {
                if after % 7 == 0 { wheel.disarm(entry); map.remove(&entry); }
                else if after < 1000 { wheel.arm(entry, Time((now + after) * TICK), Time(now * TICK)); map.insert(entry, now + after); }
                now += pass;
                let mut due: Vec<u32> = map.iter().filter(|(_, at)| **at <= now).map(|(entry, _)| *entry).collect();
                map.retain(|_, at| *at > now);
                let mut popped = drain(&mut wheel, now * TICK);
                popped.sort_unstable();
                due.sort_unstable();
                prop_assert_eq!(popped, due);
            }
        }
    }
}
