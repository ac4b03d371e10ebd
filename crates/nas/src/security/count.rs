//! NAS COUNT (TS 24.501 4.4.3): an overflow counter of 16 bits and a sequence number of eight.

use serde::{Deserialize, Serialize};

/// A NAS COUNT, 24 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct NasCount(u32);

/// Number of COUNTs left below which a context is near its end.
const RESERVE: u32 = 0x1_0000;

impl NasCount {
    /// The first COUNT.
    pub const ZERO: Self = Self(0);
    /// The last COUNT.
    pub const MAX: Self = Self(0xff_ffff);

    /// A COUNT of 24 bits; `None` above.
    pub const fn new(value: u32) -> Option<Self> {
        if value <= Self::MAX.0 { Some(Self(value)) } else { None }
    }

    /// The number, which is also the 32-bit COUNT of the algorithms.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The part that is transmitted.
    pub const fn sequence_number(self) -> u8 {
        self.0 as u8
    }

    /// The COUNT increased by `by`; `None` beyond the maximum, because a COUNT must not wrap around.
    pub const fn plus(self, by: u32) -> Option<Self> {
        match self.0.checked_add(by) {
            Some(value) => Self::new(value),
            None => None,
        }
    }

    pub(super) fn is_near_wrap(self) -> bool {
        self.0 > Self::MAX.0 - RESERVE
    }

    /// The smallest COUNT after `last` that has this sequence number. A COUNT that was accepted is
    /// never estimated again, so a replay fails its integrity check (TS 24.501 4.4.3.2).
    pub(super) fn estimate(last: Option<Self>, sequence_number: u8) -> Option<Self> {
        let from = match last {
            None => Self::ZERO,
            Some(last) => last.plus(1)?,
        };
        let ahead = sequence_number.wrapping_sub(from.sequence_number());
        from.plus(ahead.into())
    }

    /// The COUNT with this sequence number among the last `latest` before `next`; with `None` all COUNTs have been used.
    pub(super) fn among_last(next: Option<Self>, sequence_number: u8, latest: u8) -> Option<Self> {
        let last = match next {
            None => Self::MAX.0,
            Some(next) => next.0.checked_sub(1)?,
        };
        let behind = (last as u8).wrapping_sub(sequence_number);
        last.checked_sub(behind.into()).filter(|_| behind < latest).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_was_sent_lately_has_the_last_count_with_its_sequence_number() {
        let count = |value| NasCount::new(value).unwrap();
        let among = |next, sequence_number| NasCount::among_last(next, sequence_number, 4);
        assert_eq!(among(None, 0xff), Some(NasCount::MAX));
        assert_eq!(among(Some(count(0)), 0), None);
        assert_eq!(among(Some(count(3)), 2), Some(count(2)));
        assert_eq!(among(Some(count(3)), 3), None);
        assert_eq!(among(Some(count(0x102)), 0xfe), Some(count(0xfe)));
        assert_eq!(among(Some(count(0x102)), 0xfd), None, "it is too long ago");
        assert_eq!(among(Some(count(0x103)), 2), Some(count(0x102)));
    }

    #[test]
    fn the_estimate_is_the_next_count_with_that_sequence_number() {
        let count = |value| NasCount::new(value).unwrap();
        assert_eq!(NasCount::estimate(None, 3), Some(count(3)));
        assert_eq!(NasCount::estimate(Some(count(3)), 4), Some(count(4)));
        assert_eq!(NasCount::estimate(Some(count(3)), 3), Some(count(0x103)));
        assert_eq!(NasCount::estimate(Some(count(0x1ff)), 0), Some(count(0x200)));
        assert_eq!(NasCount::estimate(Some(count(0xff_fffe)), 0xff), Some(NasCount::MAX));
        assert_eq!(NasCount::estimate(Some(count(0xff_fffe)), 0), None);
        assert_eq!(NasCount::estimate(Some(NasCount::MAX), 0), None);
    }
}
