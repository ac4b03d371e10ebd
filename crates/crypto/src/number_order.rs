//! An order of numbers that only the owner of a key can continue: for ids that others must not guess, and that are to be used again
//! as late as possible.

use aes::Aes128Enc;
use aes::cipher::{BlockEncrypt, KeyInit};
use std::fmt;

/// Bits of each half.
const HALF: u32 = 15;
const MASK: u32 = (1 << HALF) - 1;
/// As FF1 has (NIST SP 800-38G, clause 5).
const ROUNDS: u8 = 10;

/// A permutation of the numbers of 30 bits: a balanced Feistel network of ten rounds with AES-128. Who knows the numbers of some
/// positions does not know those of others.
#[derive(Clone)]
pub struct NumberOrder(Aes128Enc);

impl NumberOrder {
    /// Bits of a number.
    pub const BITS: u32 = 2 * HALF;

    /// The order under that key.
    pub fn new(key: u128) -> Self {
        Self(Aes128Enc::new(&key.to_be_bytes().into()))
    }

    /// The number at that position. Both have 30 bits; higher ones of the position are ignored.
    pub fn at(&self, position: u32) -> u32 {
        let (mut left, mut right) = (position >> HALF & MASK, position & MASK);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ self.of_half(round, right));
        }
        left << HALF | right
    }

    fn of_half(&self, round: u8, half: u32) -> u32 {
        let mut block = (u128::from(round) << 32 | u128::from(half)).to_be_bytes().into();
        self.0.encrypt_block(&mut block);
        u128::from_be_bytes(block.into()) as u32 & MASK
    }
}

impl fmt::Debug for NumberOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NumberOrder(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_position_has_a_number_of_its_own() {
        let order = NumberOrder::new(7);
        let numbers: HashSet<u32> = (0..1 << 17).map(|position| order.at(position)).collect();
        assert_eq!(numbers.len(), 1 << 17);
        assert!(numbers.iter().all(|number| *number < 1 << NumberOrder::BITS));
        assert_eq!(order.at(1 << NumberOrder::BITS), order.at(0), "higher bits are ignored");
    }

    #[test]
    fn neighbours_are_far_apart_and_another_key_has_another_order() {
        let (order, other) = (NumberOrder::new(7), NumberOrder::new(8));
        let near =
            (0..1000).filter(|position| order.at(*position).abs_diff(order.at(position + 1)) < 1 << 15);
        assert!(near.count() < 5, "about one in 16,384 by chance");
        assert!((0..1000).all(|position| order.at(position) != other.at(position)));
    }
}
