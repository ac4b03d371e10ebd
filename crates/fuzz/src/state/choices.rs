//! An input as a sequence of choices of a dialogue.

use crate::random::Random;

/// Choices, an octet or more each; when they are used up, the dialogue is ended.
pub struct Choices<'a> {
    octets: &'a [u8],
}

impl<'a> Choices<'a> {
    /// The choices of an input.
    pub fn new(input: &'a [u8]) -> Self {
        Self { octets: input }
    }

    /// Whether all choices are used up.
    pub fn is_exhausted(&self) -> bool {
        self.octets.is_empty()
    }

    /// An octet; 0 at the end.
    pub fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.octets.split_first() else { return 0 };
        self.octets = rest;
        *first
    }

    /// A number below `limit`, at most 65536.
    pub fn below(&mut self, limit: usize) -> usize {
        let number = match limit {
            0 | 1 => return 0,
            2..=256 => usize::from(self.octet()),
            _ => usize::from(self.octet()) << 8 | usize::from(self.octet()),
        };
        number % limit
    }

    /// A chosen element.
    pub fn pick<'b, T>(&mut self, of: &'b [T]) -> Option<&'b T> {
        of.get(self.below(of.len()))
    }

    /// Random numbers seeded by two octets, where single choices would be too many.
    pub fn random(&mut self) -> Random {
        Random::new(u64::from(self.octet()) << 8 | u64::from(self.octet()))
    }
}
