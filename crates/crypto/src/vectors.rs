//! Reads the published test data in `vectors/`: one set per line, with hexadecimal fields.

use std::fmt::Debug;
use std::str::FromStr;

/// The fields of one set.
pub struct Set(Vec<&'static str>);

impl Set {
    /// The next field as text.
    pub fn text(&mut self) -> &'static str {
        self.0.remove(0)
    }

    /// The next field, parsed.
    pub fn value<T: FromStr<Err: Debug>>(&mut self) -> T {
        self.text().parse().unwrap()
    }

    /// The next field as octets.
    pub fn octets(&mut self) -> Vec<u8> {
        hex::decode(self.text()).unwrap()
    }

    /// The next field as a fixed number of octets.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        self.octets().try_into().unwrap()
    }

    /// The next field as a hexadecimal number.
    pub fn number(&mut self) -> u64 {
        u64::from_str_radix(self.text(), 16).unwrap()
    }
}

/// The sets of a file; lines that begin with `#` are comments.
pub fn sets(file: &'static str) -> impl Iterator<Item = Set> {
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| Set(line.split(' ').collect()))
}
