//! The message tables of TS 24.501 clause 8 as code.
//!
//! [`message!`] takes a table in the form of the specification (IEI, name, format, length of the
//! whole IE) and generates the struct, its decoder and its encoder, so that table and codec can't
//! differ. The receiver's rules of clause 7 are implemented here, once for all messages.

use crate::error::{Fault, Malformed, NasError, Note, Noted};
use crate::wire::Ie;

/// No maximum length of an IE in its table.
pub(crate) const ANY: usize = usize::MAX;

/// Format of a mandatory IE (TS 24.007 11.2.1.1); lengths in octets of the whole IE.
#[derive(Debug, Clone, Copy)]
#[allow(
    dead_code,
    reason = "upper limits stand here to be compared with the tables; a later release may send longer IEs"
)]
pub(crate) enum Mandatory {
    /// Bits 4 to 1 of an octet; the next IE has the other half.
    Low,
    /// Bits 8 to 5 of an octet, which is complete with it.
    High,
    /// Bits 4 to 1 of an octet whose other half is spare.
    Half,
    /// A value of that length.
    V(usize),
    /// One octet of length; minimum and maximum of the whole IE.
    Lv(usize, usize),
    /// Two octets of length.
    LvE(usize, usize),
}

/// Format of an optional IE; lengths in octets of the whole IE.
#[derive(Debug, Clone, Copy)]
#[allow(
    dead_code,
    reason = "upper limits stand here to be compared with the tables; a later release may send longer IEs"
)]
pub(crate) enum Optional {
    /// IEI in bits 8 to 5, value in bits 4 to 1.
    Tv1,
    /// IEI and a value without a length field; length of the whole IE.
    Tv(usize),
    /// IEI and one octet of length; minimum and maximum of the whole IE.
    Tlv(usize, usize),
    /// IEI, two octets of length.
    TlvE(usize, usize),
}

/// The IE part of a message, and the read position.
pub(crate) struct Reader<'a> {
    message: &'a [u8],
    at: usize,
    furthest: usize,
    notes: &'a mut Vec<Note>,
}

impl<'a> Reader<'a> {
    /// Starts after a header of `at` octets.
    pub fn new(message: &'a [u8], at: usize, notes: &'a mut Vec<Note>) -> Self {
        Self { message, at, furthest: 0, notes }
    }

    fn rest(&self) -> &'a [u8] {
        self.message.get(self.at..).unwrap_or_default()
    }

    /// Decodes a mandatory IE; any error in it rejects the message (TS 24.501 7.5.1).
    pub fn mandatory<T: Ie>(&mut self, ie: &'static str, format: Mandatory) -> Result<T, NasError> {
        let offset = self.at;
        let error = |fault| NasError { offset, ie, fault };
        let rest = self.rest();
        let first = *rest.first().ok_or(error(Fault::Missing))?;
        let (value, length) = match format {
            Mandatory::Low => (&[first & 0xf][..], 0),
            Mandatory::Half => (&[first & 0xf][..], 1),
            Mandatory::High => (&[first >> 4][..], 1),
            Mandatory::V(length) => (rest.get(..length).unwrap_or(rest), length),
            Mandatory::Lv(min, _) => sized_value(rest, 1, min).map_err(|bad| error(bad.into()))?,
            Mandatory::LvE(min, _) => sized_value(rest, 2, min).map_err(|bad| error(bad.into()))?,
        };
        self.at += length;
        T::decode(value).map_err(|bad| error(bad.into()))
    }

    /// The next IEI in the notation of the tables: `0xB0` for `B-`. `None` at the end.
    pub fn next_iei(&self) -> Option<u8> {
        let first = *self.rest().first()?;
        Some(if first & 0x80 != 0 { first & 0xf0 } else { first })
    }

    /// Decodes an optional IE, at position `place` in the table, into its slot (7.6.2, 7.6.3, 7.7.1).
    pub fn optional<T: Ie>(&mut self, slot: &mut Option<T>, place: usize, format: Optional) {
        let rest = self.rest();
        let spare_half = [rest.first().map_or(0, |octet| octet & 0xf)];
        let found = match format {
            Optional::Tv1 => Ok((&spare_half[..], 1)),
            Optional::Tv(length) => {
                rest.get(1..length).map(|value| (value, length)).ok_or(Malformed("ends too early"))
            }
            Optional::Tlv(min, _) => sized_value(rest.get(1..).unwrap_or_default(), 1, min.saturating_sub(1))
                .map(|(value, length)| (value, length + 1)),
            Optional::TlvE(min, _) => {
                sized_value(rest.get(1..).unwrap_or_default(), 2, min.saturating_sub(1))
                    .map(|(value, length)| (value, length + 1))
            }
        };
        let length = self.length_of_optional(format, found.as_ref().ok().map(|found| found.1));
        match found.and_then(|(value, _)| T::decode(value)) {
            _ if slot.is_some() => self.note(Noted::Repeated),
            Err(Malformed(why)) => self.note(Noted::Malformed(why)),
            Ok(value) => {
                if place < self.furthest {
                    self.note(Noted::OutOfSequence);
                }
                self.furthest = self.furthest.max(place);
                *slot = Some(value);
            }
        }
        self.at += length;
    }

    /// Octets to skip, also for an IE that is too short; a truncated IE ends the message.
    fn length_of_optional(&self, format: Optional, found: Option<usize>) -> usize {
        let rest = self.rest();
        let octet = |at: usize| rest.get(at).copied().map(usize::from);
        let claimed = match format {
            Optional::Tv1 => Some(1),
            Optional::Tv(length) => Some(length),
            Optional::Tlv(..) => octet(1).map(|length| length + 2),
            Optional::TlvE(..) => octet(1).zip(octet(2)).map(|(high, low)| (high << 8 | low) + 3),
        };
        found.or(claimed).unwrap_or(rest.len()).min(rest.len())
    }

    /// Skips an unknown IE (7.6.1), or refuses the message if the IE requires comprehension, which
    /// zeros in bits 8 to 5 mean (TS 24.007 11.2.5).
    pub fn unknown(&mut self, iei: u8) -> Result<(), NasError> {
        if iei & 0xf0 == 0 {
            return Err(NasError {
                offset: self.at,
                ie: "unknown IE",
                fault: Fault::ComprehensionRequired(iei),
            });
        }
        self.note(Noted::Unknown);
        let format = match iei {
            0x80.. => Optional::Tv1,
            0x70..=0x7f => Optional::TlvE(3, ANY),
            _ => Optional::Tlv(2, ANY),
        };
        self.at += self.length_of_optional(format, None);
        Ok(())
    }

    fn note(&mut self, what: Noted) {
        let iei = self.next_iei().unwrap_or_default();
        self.notes.push(Note { offset: self.at, iei, what });
    }
}

impl From<Malformed> for Fault {
    fn from(Malformed(why): Malformed) -> Self {
        Self::Malformed(why)
    }
}

/// The value after a length field of `size` octets, and the octets of both; `min` in total.
fn sized_value(octets: &[u8], size: usize, min: usize) -> Result<(&[u8], usize), Malformed> {
    let (length, rest) = octets.split_at_checked(size).ok_or(Malformed("truncated in its length field"))?;
    let length = length.iter().fold(0, |sum, octet| sum << 8 | usize::from(*octet));
    let value = rest.get(..length).ok_or(Malformed("longer than the message"))?;
    if size + length < min {
        return Err(Malformed("shorter than the minimum"));
    }
    Ok((value, size + length))
}

/// Encodes a mandatory IE.
pub(crate) fn put_mandatory<T: Ie>(out: &mut Vec<u8>, value: &T, format: Mandatory) {
    match format {
        Mandatory::Low | Mandatory::Half | Mandatory::V(_) => value.encode(out),
        Mandatory::High => {
            value.encode(out);
            let high = out.pop().unwrap_or_default();
            if let Some(octet) = out.last_mut() {
                *octet = *octet & 0xf | high << 4;
            }
        }
        Mandatory::Lv(..) => crate::wire::with_length_u8(out, |out| value.encode(out)),
        Mandatory::LvE(..) => crate::wire::with_length_u16(out, |out| value.encode(out)),
    }
}

/// Encodes an optional IE, if present.
pub(crate) fn put_optional<T: Ie>(out: &mut Vec<u8>, iei: u8, value: &Option<T>, format: Optional) {
    let Some(value) = value else { return };
    match format {
        Optional::Tv1 => {
            value.encode(out);
            if let Some(octet) = out.last_mut() {
                *octet = iei | *octet & 0xf;
            }
        }
        Optional::Tv(_) => {
            out.push(iei);
            value.encode(out);
        }
        Optional::Tlv(..) => {
            out.push(iei);
            crate::wire::with_length_u8(out, |out| value.encode(out));
        }
        Optional::TlvE(..) => {
            out.push(iei);
            crate::wire::with_length_u16(out, |out| value.encode(out));
        }
    }
}

/// Generates a message from its table: mandatory IEs as `name: Type = Format;`, then optional ones
/// as `IEI name: Type = Format;`, both in the order of the specification.
macro_rules! message {
    (
        $(#[$meta:meta])*
        $name:ident {
            $( $(#[$mmeta:meta])* $mandatory:ident : $mtype:ty = $mformat:expr; )*
        }
        optional {
            $( $(#[$ometa:meta])* $iei:literal $optional:ident : $otype:ty = $oformat:expr; )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$mmeta])* pub $mandatory: $mtype, )*
            $( $(#[$ometa])* pub $optional: Option<$otype>, )*
        }

        impl $name {
            /// The message with its mandatory IEs, without optional ones.
            #[allow(clippy::new_without_default)]
            pub fn new($($mandatory: $mtype),*) -> Self {
                Self { $($mandatory,)* $($optional: None,)* }
            }

            #[allow(unused_mut, unused_variables, unused_imports)]
            pub(crate) fn read(
                reader: &mut $crate::table::Reader<'_>,
            ) -> Result<Self, $crate::error::NasError> {
                use $crate::table::{ANY, Mandatory::*, Optional::*};
                let mut message = Self::new($(
                    reader.mandatory(stringify!($mandatory), $mformat)?,
                )*);
                while let Some(iei) = reader.next_iei() {
                    let place = 0;
                    $(
                        let place = place + 1;
                        if iei == $iei {
                            reader.optional(&mut message.$optional, place, $oformat);
                            continue;
                        }
                    )*
                    reader.unknown(iei)?;
                }
                Ok(message)
            }

            #[allow(unused_variables, unused_imports, clippy::ptr_arg)]
            pub(crate) fn write(&self, out: &mut Vec<u8>) {
                use $crate::table::{ANY, Mandatory::*, Optional::*};
                $( $crate::table::put_mandatory(out, &self.$mandatory, $mformat); )*
                $( $crate::table::put_optional(out, $iei, &self.$optional, $oformat); )*
            }
        }

        $crate::stored::stored!(
            $name,
            |message| {
                let mut ies = Vec::new();
                message.write(&mut ies);
                ies
            },
            |ies| Self::read(&mut $crate::table::Reader::new(ies, 0, &mut Vec::new()))
        );
    };
}
pub(crate) use message;
