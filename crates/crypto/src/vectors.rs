//! Reads the published test data in `vectors/`: a set a line, its fields in hexadecimal.

use std::fmt::Debug;
use std::str::FromStr;

/// The fields of one set.
pub struct Set(Vec<&'static str>);

impl Set {
    /// The next field as it stands.
    pub fn text(&mut self) -> &'static str {
        self.0.remove(0)
    }

    /// The next field as a value of its own type.
    pub fn value<T: FromStr<Err: Debug>>(&mut self) -> T {
        self.text().parse().unwrap()
    }

    /// The next field as octets.
    pub fn octets(&mut self) -> Vec<u8> {
        hex::decode(self.text()).unwrap()
    }

    /// The next field as octets of a fixed number.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        self.octets().try_into().unwrap()
    }

    /// The next field as a number in hexadecimal.
    pub fn number(&mut self) -> u64 {
        u64::from_str_radix(self.text(), 16).unwrap()
    }
}

/// The sets of a file; lines that begin with `#` say what it is.
pub fn sets(file: &'static str) -> impl Iterator<Item = Set> {
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| Set(line.split(' ').collect()))
}
