//! Operator names (TS 24.008 10.5.3.5a).

use crate::error::Malformed;
use crate::wire::{Cursor, Ie};
use serde::{Deserialize, Serialize};

/// Full or short name of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkName {
    /// The name.
    pub text: String,
    /// The UE should append the country's initials.
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
            _ => return Err(Malformed("undefined coding scheme")),
        };
        Ok(Self { text, add_country_initials: header & 8 != 0 })
    }

    /// Packed 7-bit characters if the GSM 7 bit default alphabet has all of them, else UCS2.
    fn encode(&self, out: &mut Vec<u8>) {
        let initials = u8::from(self.add_country_initials) << 3;
        match self.text.chars().map(gsm7_code).collect::<Option<Vec<u8>>>() {
            Some(letters) => {
                let spare = (8 - letters.len() * 7 % 8) % 8;
                out.push(0x80 | CODING_GSM7 << 4 | initials | spare as u8);
                pack_gsm7(&letters, out);
            }
            None => {
                out.push(0x80 | CODING_UCS2 << 4 | initials);
                out.extend(self.text.encode_utf16().flat_map(u16::to_be_bytes));
            }
        }
    }
}

/// The GSM 7 bit default alphabet (TS 23.038 6.2.1), by code. The escape to an extension table,
/// 0x1b, is a space, as for a receiver without that table.
const GSM7: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ ÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?\
                    ¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
const ESCAPE: u8 = 0x1b;

fn gsm7_code(letter: char) -> Option<u8> {
    if letter == ' ' {
        return Some(b' ');
    }
    GSM7.chars().zip(0..).find_map(|(known, code)| (known == letter && code != ESCAPE).then_some(code))
}

fn gsm7_text(octets: &[u8], spare_bits: u8) -> Result<String, Malformed> {
    let alphabet: Vec<char> = GSM7.chars().collect();
    let bits = (octets.len() * 8).saturating_sub(spare_bits.into());
    let letters = (0..bits / 7).map(|letter| {
        let at = letter * 7;
        let pair = |index: usize| u16::from(octets.get(index).copied().unwrap_or_default());
        let window = pair(at / 8) | pair(at / 8 + 1) << 8;
        alphabet.get(usize::from(window >> (at % 8) & 0x7f)).copied()
    });
    letters.collect::<Option<String>>().ok_or(Malformed("letters are of 7 bits"))
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
        for text in ["", "P", "Pith", "Open5GS", "Pith 5G", "Pith-Net", "@home", "Ærø_Ñandú", "Пифия"]
        {
            let name = NetworkName { text: text.to_owned(), add_country_initials: text.len() % 2 == 0 };
            let mut out = Vec::new();
            name.encode(&mut out);
            assert_eq!(NetworkName::decode(&out), Ok(name), "{text}");
        }
    }

    /// TS 23.038 6.2.1: codes of some characters.
    #[test]
    fn the_alphabet_has_each_letter_in_its_place() {
        assert_eq!(GSM7.chars().count(), 128);
        let codes = [
            ('@', 0),
            ('é', 5),
            ('\r', 13),
            ('Δ', 16),
            ('É', 31),
            ('¤', 0x24),
            ('A', 0x41),
            ('§', 0x5f),
            ('à', 0x7f),
        ];
        for (letter, code) in codes {
            assert_eq!(gsm7_code(letter), Some(code), "{letter}");
        }
    }

    #[test]
    fn a_full_name_of_254_octets_round_trips() {
        let octets: Vec<u8> = std::iter::once(0x80).chain((0..254).map(|octet| octet as u8)).collect();
        let name = NetworkName::decode(&octets).unwrap();
        let mut out = Vec::new();
        name.encode(&mut out);
        assert_eq!((out.len(), NetworkName::decode(&out)), (octets.len(), Ok(name)));
    }

    #[test]
    fn packed_letters_are_those_of_ts_23_038() {
        let mut out = Vec::new();
        pack_gsm7(b"hellohello", &mut out);
        assert_eq!(hex::encode(out), "e8329bfd4697d9ec37");
    }
}
