//! Fault injection: corrupts N2 messages as a faulty radio does, to test the core's reaction.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// Maximum octets of an invented message.
const LONGEST_RUBBISH: usize = 300;

/// Corrupts a share of the messages, always the same ones for the same seed.
pub struct Garbler {
    random: ChaCha8Rng,
    /// Percentage of messages.
    share: u8,
    /// A delayed message, sent after the next one.
    late: Option<(u16, Vec<u8>)>,
}

impl Garbler {
    /// Corrupts `share` per cent of the messages.
    pub fn new(share: u8, seed: u64) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(seed), share, late: None }
    }

    /// The streams and octets to send in place of a message.
    pub fn garble(&mut self, stream: u16, pdu: Vec<u8>) -> Vec<(u16, Vec<u8>)> {
        let mut sent = self.spoil(stream, pdu);
        if !sent.is_empty() {
            sent.extend(self.late.take());
        }
        sent
    }

    fn spoil(&mut self, stream: u16, mut pdu: Vec<u8>) -> Vec<(u16, Vec<u8>)> {
        if self.below(100) >= usize::from(self.share) {
            return vec![(stream, pdu)];
        }
        match self.below(7) {
            0 => pdu.truncate(1 + self.below(pdu.len().saturating_sub(1).max(1))),
            1 => self.flip_bits(&mut pdu),
            2 => pdu = self.rubbish(),
            3 => pdu.extend(self.rubbish()),
            4 => return vec![(stream, pdu.clone()), (stream, pdu)],
            5 if self.late.is_none() => {
                self.late = Some((stream, pdu));
                return Vec::new();
            }
            _ => return vec![(1 - stream.min(1), pdu)],
        }
        vec![(stream, pdu)]
    }

    fn flip_bits(&mut self, pdu: &mut [u8]) {
        for _ in 0..=self.below(8) {
            let (at, bit) = (self.below(pdu.len().max(1)), self.below(8));
            if let Some(octet) = pdu.get_mut(at) {
                *octet ^= 1 << bit;
            }
        }
    }

    fn rubbish(&mut self) -> Vec<u8> {
        let mut octets = vec![0; 1 + self.below(LONGEST_RUBBISH)];
        self.random.fill_bytes(&mut octets);
        octets
    }

    /// A random number below `limit`, which must not be 0.
    fn below(&mut self, limit: usize) -> usize {
        (self.random.next_u64() % limit as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(share: u8, seed: u64) -> Vec<(u16, Vec<u8>)> {
        let mut garbler = Garbler::new(share, seed);
        (0..1000).flat_map(|number: u32| garbler.garble(1, number.to_be_bytes().to_vec())).collect()
    }

    #[test]
    fn a_share_is_corrupted_and_the_rest_unchanged() {
        let whole: Vec<_> = (0..1000).map(|number: u32| (1, number.to_be_bytes().to_vec())).collect();
        assert_eq!(sent(0, 1), whole);
        let same = sent(30, 1).iter().filter(|message| whole.contains(message)).count();
        assert!((700..900).contains(&same), "{same}");
    }

    #[test]
    fn a_seed_is_reproducible_and_no_message_is_empty() {
        assert_eq!(sent(50, 7), sent(50, 7));
        assert_ne!(sent(50, 7), sent(50, 8));
        assert!(sent(100, 7).iter().all(|(_, pdu)| !pdu.is_empty()));
    }
}
