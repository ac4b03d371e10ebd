//! Sequence numbers: generation in the home network, verification of freshness in the USIM (TS 33.102 Annex
//! C).
//!
//! The scheme is profile 2 (C.3.2): SQN = SEQ || IND with five bits of IND, not time-based; the USIM stores
//! the highest accepted SEQ for each of the 32 values of IND.

use std::fmt;

/// Bits of IND (TS 33.102 C.3).
const IND_BITS: u32 = 5;
/// Number of values of IND.
const IND_COUNT: usize = 1 << IND_BITS;
/// SQN has 48 bits.
const SQN_MASK: u64 = (1 << 48) - 1;
/// Δ: the largest jump of SEQ that a USIM accepts (TS 33.102 C.2.1).
const DELTA: u64 = 1 << 28;

/// SQN = SEQ || IND, 48 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sqn(u64);

impl Sqn {
    /// Uses the low 48 bits.
    pub const fn new(value: u64) -> Self {
        Self(value & SQN_MASK)
    }

    /// From six octets, big endian.
    pub fn from_bytes(octets: [u8; 6]) -> Self {
        let [a, b, c, d, e, f] = octets;
        Self(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// As six octets, big endian.
    pub fn to_bytes(self) -> [u8; 6] {
        let [_, _, octets @ ..] = self.0.to_be_bytes();
        octets
    }

    /// SEQ, 43 bits.
    pub const fn seq(self) -> u64 {
        self.0 >> IND_BITS
    }

    /// IND, 0 to 31.
    pub const fn ind(self) -> usize {
        (self.0 as usize) & (IND_COUNT - 1)
    }

    /// The next number of the home network: SEQ + 1, IND + 1 modulo 32 (TS 33.102 C.1.1.1, C.1.2). SEQ wraps
    /// after 2^43 vectors, which no USIM accepts.
    #[must_use]
    pub const fn next(self) -> Self {
        let ind = (self.0 + 1) & (IND_COUNT as u64 - 1);
        Self::new((self.seq() + 1) << IND_BITS | ind)
    }

    /// The home network's number after a verified AUTS: its own if the USIM would accept the next one, else
    /// that of the USIM (TS 33.102 6.3.5, steps 2 to 5).
    #[must_use]
    pub fn after_resynchronisation(self, sqn_ms: Self) -> Self {
        let ahead = self.seq().checked_sub(sqn_ms.seq());
        if ahead.is_some_and(|by| by < DELTA) { self } else { sqn_ms }
    }

    /// SQN xor AK, as in AUTN and AUTS, and the inverse.
    pub fn xor(self, ak: [u8; 6]) -> [u8; 6] {
        Self(self.0 ^ Self::from_bytes(ak).0).to_bytes()
    }
}

impl From<Sqn> for u64 {
    fn from(sqn: Sqn) -> Self {
        sqn.0
    }
}

impl fmt::Debug for Sqn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sqn({:012x})", self.0)
    }
}

/// The USIM does not accept the sequence number and responds with AUTS for `sqn_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("sequence number out of range")]
pub struct SyncFailure {
    /// The highest number that the USIM has accepted.
    pub sqn_ms: Sqn,
}

/// State of a USIM: the highest accepted SEQ for each IND (TS 33.102 C.2.2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsimSequence {
    accepted: [u64; IND_COUNT],
}

impl UsimSequence {
    /// A USIM whose last accepted number is `sqn`.
    pub fn starting_at(sqn: Sqn) -> Self {
        Self { accepted: [sqn.seq(); IND_COUNT] }
    }

    /// Accepts and stores a fresh number: above the last one with its IND, and at most Δ above the highest
    /// (TS 33.102 C.2.1, C.2.2).
    pub fn accept(&mut self, sqn: Sqn) -> Result<(), SyncFailure> {
        let sqn_ms = self.sqn_ms();
        let within_delta = sqn.seq().saturating_sub(sqn_ms.seq()) <= DELTA;
        match self.accepted.get_mut(sqn.ind()) {
            Some(seen) if within_delta && sqn.seq() > *seen => *seen = sqn.seq(),
            _ => return Err(SyncFailure { sqn_ms }),
        }
        Ok(())
    }

    /// SQN_MS: the highest SEQ accepted, with its IND.
    pub fn sqn_ms(&self) -> Sqn {
        let highest = self.accepted.iter().zip(0u64..).max();
        highest.map_or(Sqn(0), |(seq, ind)| Sqn::new(seq << IND_BITS | ind))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn next_increments_seq_and_ind() {
        let first = Sqn::new(0).next();
        assert_eq!((first.seq(), first.ind()), (1, 1));
        let turned = (0..32).fold(Sqn::new(0), |sqn, _| sqn.next());
        assert_eq!((turned.seq(), turned.ind()), (32, 0));
    }

    #[test]
    fn a_number_is_accepted_once() {
        let mut usim = UsimSequence::default();
        let sqn = Sqn::new(0).next();
        assert_eq!(usim.accept(sqn), Ok(()));
        assert_eq!(usim.accept(sqn), Err(SyncFailure { sqn_ms: sqn }));
    }

    #[test]
    fn vectors_used_out_of_order_are_accepted_if_their_ind_is_behind() {
        let mut usim = UsimSequence::default();
        let first = Sqn::new(0).next();
        let second = first.next();
        assert_eq!(usim.accept(second), Ok(()));
        assert_eq!(usim.accept(first), Ok(()));
        assert_eq!(usim.sqn_ms(), second);
    }

    #[test]
    fn a_jump_beyond_delta_is_refused() {
        let mut usim = UsimSequence::starting_at(Sqn::new(5 << IND_BITS));
        assert!(usim.accept(Sqn::new((5 + DELTA + 1) << IND_BITS)).is_err());
        assert_eq!(usim.accept(Sqn::new((5 + DELTA) << IND_BITS)), Ok(()));
    }

    #[test]
    fn resynchronisation_moves_a_home_network_that_is_behind_or_too_far_ahead() {
        let ms = Sqn::new(1000 << IND_BITS);
        let ahead = Sqn::new(1001 << IND_BITS);
        assert_eq!(Sqn::new(7 << IND_BITS).after_resynchronisation(ms), ms);
        assert_eq!(ahead.after_resynchronisation(ms), ahead);
        assert_eq!(Sqn::new((1000 + DELTA) << IND_BITS).after_resynchronisation(ms), ms);
    }

    proptest! {
        #[test]
        fn after_resynchronisation_the_next_number_is_accepted(he in 0u64..1 << 47, ms in 0u64..1 << 47) {
            let mut usim = UsimSequence::starting_at(Sqn::new(ms));
            let next = Sqn::new(he).after_resynchronisation(usim.sqn_ms()).next();
            prop_assert_eq!(usim.accept(next), Ok(()));
        }

        #[test]
        fn octets_round_trip(value in 0u64..1 << 48, ak: [u8; 6]) {
            let sqn = Sqn::new(value);
            prop_assert_eq!(Sqn::from_bytes(sqn.to_bytes()), sqn);
            let concealed = Sqn::from_bytes(sqn.xor(ak));
            prop_assert_eq!(concealed.xor(ak), sqn.to_bytes());
        }
    }
}
