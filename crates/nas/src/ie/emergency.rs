//! Local emergency numbers (TS 24.008 10.5.3.13).

use super::flags;
use crate::error::Malformed;
use crate::wire::{Cursor, Ie, bcd_of_digits, digits_of_bcd, with_length_u8};
use serde::{Deserialize, Serialize};

flags! {
    /// The emergency services that a number reaches (TS 24.008 table 10.5.135d). None: the number is not categorised.
    EmergencyCategory {
        /// Police.
        police = 1,
        /// Ambulance.
        ambulance = 2,
        /// Fire brigade.
        fire = 3,
        /// Marine guard.
        marine = 4,
        /// Mountain rescue.
        mountain = 5,
    }
}

/// A local emergency number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmergencyNumber {
    /// The services that it reaches.
    pub category: EmergencyCategory,
    /// Its digits.
    pub digits: String,
}

/// Emergency number list (TS 24.008 10.5.3.13, TS 24.501 9.11.3.23): numbers that a UE treats as emergency numbers in the country of the
/// network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EmergencyNumberList(pub Vec<EmergencyNumber>);

impl EmergencyNumberList {
    /// Octets of the list's value at most.
    pub const MAX_OCTETS: usize = 48;

    /// Octets of the list's value.
    pub fn octets(&self) -> usize {
        self.0.iter().map(|number| 2 + number.digits.len().div_ceil(2)).sum()
    }
}

impl Ie for EmergencyNumberList {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(value);
        let mut numbers = Vec::new();
        while !cursor.is_empty() {
            let mut number = cursor.with_length_u8()?;
            let category = EmergencyCategory::decode(&[number.u8()?])?;
            numbers.push(EmergencyNumber { category, digits: digits_of_bcd(number.0)? });
        }
        Ok(Self(numbers))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        for EmergencyNumber { category, digits } in &self.0 {
            with_length_u8(out, |out| {
                category.encode(out);
                bcd_of_digits(digits, out);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(digits: &str, category: EmergencyCategory) -> EmergencyNumber {
        EmergencyNumber { category, digits: digits.into() }
    }

    /// Octets by hand from TS 24.008 10.5.3.13 and table 10.5.135d: 110 police, 112 ambulance and fire brigade, 1122 without category.
    #[test]
    fn a_list_has_the_octets_of_ts_24_008() {
        let list = EmergencyNumberList(vec![
            number("110", EmergencyCategory { police: true, ..Default::default() }),
            number("112", EmergencyCategory { ambulance: true, fire: true, ..Default::default() }),
            number("1122", EmergencyCategory::default()),
        ]);
        let octets = [3, 0b00001, 0x11, 0xf0, 3, 0b00110, 0x11, 0xf2, 3, 0, 0x11, 0x22];
        let mut encoded = Vec::new();
        list.encode(&mut encoded);
        assert_eq!(encoded, octets);
        assert_eq!(list.octets(), octets.len());
        assert_eq!(EmergencyNumberList::decode(&octets), Ok(list));
    }

    #[test]
    fn a_number_that_ends_early_is_malformed() {
        for octets in [&[3, 1, 0x11][..], &[0], &[2, 1], &[2, 1, 0xb1]] {
            assert!(EmergencyNumberList::decode(octets).is_err(), "{octets:x?}");
        }
    }
}
