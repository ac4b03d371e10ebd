//! Randomness from a seed: in the shell the operating system provides the seed, in a test it is a number.

use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};
use std::fmt;

/// A cryptographic generator (ChaCha20): RAND of authentication vectors, temporary identities.
pub struct Rng(ChaCha20Rng);

impl fmt::Debug for Rng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rng(..)")
    }
}

impl Rng {
    /// A generator from 32 octets of entropy.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(ChaCha20Rng::from_seed(seed))
    }

    /// A reproducible generator, for tests and simulations.
    pub fn from_number(seed: u64) -> Self {
        Self(ChaCha20Rng::seed_from_u64(seed))
    }

    /// An independent generator for another part.
    pub fn fork(&mut self) -> Self {
        Self(ChaCha20Rng::from_seed(self.octets()))
    }

    /// `N` random octets.
    pub fn octets<const N: usize>(&mut self) -> [u8; N] {
        let mut octets = [0; N];
        self.0.fill_bytes(&mut octets);
        octets
    }

    /// 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A UUID, version 4 (RFC 9562 5.4): the form of an `nfInstanceId`.
    pub fn uuid(&mut self) -> String {
        let mut octets: [u8; 16] = self.octets();
        octets[6] = octets[6] & 0x0f | 0x40;
        octets[8] = octets[8] & 0x3f | 0x80;
        let value = u128::from_be_bytes(octets);
        let (a, b, c) = (value >> 96, value >> 80 & 0xffff, value >> 64 & 0xffff);
        format!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", value >> 48 & 0xffff, value & 0xffff_ffff_ffff)
    }
}
