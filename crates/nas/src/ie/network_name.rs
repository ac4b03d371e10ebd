//! Operator names (TS 24.008 10.5.3.5a).

use crate::error::Malformed;
use crate::wire::{Cursor, Ie};
use serde::{Deserialize, Serialize};

/// Full or short name of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkName {
    /// The name.
    pub text: String,
    /// The UE should add the letters of the country's initials to it.
    pub add_country_initials: bool,
}

const CODING_GSM7: u8 = 0;
const CODING_UCS2: u8 = 1;

impl Ie for NetworkName {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(value);
        let header = cursor.u8()?;
        let text = match header >> 4 & 7 {
            CODING_GSM7 => gsm7_text(cursor.0, header & 7)?,
            CODING_UCS2 => ucs2_text(cursor.0)?,
            _ => return Err(Malformed("no such coding scheme")),
        };
        Ok(Self { text, add_country_initials: header & 8 != 0 })
    }

    /// Packed 7-bit letters where the name is plain ASCII letters, digits and such, else UCS2.
    fn encode(&self, out: &mut Vec<u8>) {
        let initials = u8::from(self.add_country_initials) << 3;
        if self.text.bytes().all(is_gsm7) {
            let spare = (8 - self.text.len() * 7 % 8) % 8;
            out.push(0x80 | CODING_GSM7 << 4 | initials | spare as u8);
            pack_gsm7(self.text.as_bytes(), out);
        } else {
            out.push(0x80 | CODING_UCS2 << 4 | initials);
            out.extend(self.text.encode_utf16().flat_map(u16::to_be_bytes));
        }
    }
}

/// Octets that mean the same in ASCII and in the GSM 7 bit default alphabet (TS 23.038 6.2.1).
fn is_gsm7(octet: u8) -> bool {
    matches!(octet, b' '..=b'#' | b'%'..=b'?' | b'A'..=b'Z' | b'a'..=b'z' | b'\n' | b'\r')
}

fn gsm7_text(octets: &[u8], spare_bits: u8) -> Result<String, Malformed> {
    let bits = (octets.len() * 8).saturating_sub(spare_bits.into());
    let letters = (0..bits / 7).map(|letter| {
        let at = letter * 7;
        let pair = |index: usize| u16::from(octets.get(index).copied().unwrap_or_default());
        let window = pair(at / 8) | pair(at / 8 + 1) << 8;
        (window >> (at % 8)) as u8 & 0x7f
    });
    let known = |letter: u8| match is_gsm7(letter) {
        true => char::from(letter),
        false => char::REPLACEMENT_CHARACTER,
    };
    Ok(letters.map(known).collect())
}

fn pack_gsm7(letters: &[u8], out: &mut Vec<u8>) {
    let (mut window, mut held) = (0_u16, 0);
    for letter in letters {
        window |= u16::from(*letter) << held;
        held += 7;
        if held >= 8 {
            out.push(window as u8);
            window >>= 8;
            held -= 8;
        }
    }
    if held > 0 {
        out.push(window as u8);
    }
}

fn ucs2_text(octets: &[u8]) -> Result<String, Malformed> {
    let units = Cursor(octets).all(|cursor| cursor.u16())?;
    String::from_utf16(&units).map_err(|_| Malformed("name is not UCS2"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_in_both_codings() {
        for text in ["", "P", "Pith", "Open5GS", "Pith 5G", "Pith-Net", "Пифия"] {
            let name = NetworkName { text: text.to_owned(), add_country_initials: text.len() % 2 == 0 };
            let mut out = Vec::new();
            name.encode(&mut out);
            assert_eq!(NetworkName::decode(&out), Ok(name), "{text}");
        }
    }

    #[test]
    fn packed_letters_are_those_of_ts_23_038() {
        let mut out = Vec::new();
        pack_gsm7(b"hellohello", &mut out);
        assert_eq!(hex::encode(out), "e8329bfd4697d9ec37");
    }
}
