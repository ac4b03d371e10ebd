//! Reads the ids of a PDU without decoding it, to find the UE's shard (design section 5).
//!
//! The layout of every UE-associated message, in aligned PER (TS 38.413 9.4; X.691):
//!
//! ```text
//!  1 octet   which of the three kinds of PDU
//!  1         procedure code
//!  1         criticality
//!  1 or 2    length of the message
//!  1         the message's own preamble
//!  2         number of IEs
//!  then each IE: 2 id, 1 criticality, 1 or 2 length, value
//! ```

use crate::message::Class;
use pith_types::{AmfUeNgapId, FiveGSTmsi, FiveGTmsi, RanUeNgapId};

/// Procedure code of Error Indication (TS 38.413 9.4.7).
const ERROR_INDICATION: u8 = 9;

const AMF_UE_NGAP_ID: u16 = 10;
const FIVE_G_S_TMSI: u16 = 26;
const NAS_PDU: u16 = 38;
const RAN_UE_NGAP_ID: u16 = 85;
const SOURCE_AMF_UE_NGAP_ID: u16 = 100;
const UE_NGAP_IDS: u16 = 114;

/// The ids of a PDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peek<'a> {
    /// The kind of PDU.
    pub class: Class,
    /// The procedure (TS 38.413 9.4.7).
    pub procedure_code: u8,
    /// Assigned by the AMF; in PATH SWITCH REQUEST by the source AMF.
    pub amf_ue_ngap_id: Option<AmfUeNgapId>,
    /// Assigned by the gNB.
    pub ran_ue_ngap_id: Option<RanUeNgapId>,
    /// The UE's 5G-S-TMSI in INITIAL UE MESSAGE.
    pub s_tmsi: Option<FiveGSTmsi>,
    /// The NAS-PDU, which may contain a UE identity, too.
    pub nas_pdu: Option<&'a [u8]>,
}

/// Whether octets are ERROR INDICATION, even if the rest can't be decoded: no error in it is answered with another one (TS 38.413 10.5).
pub fn is_error_indication(pdu: &[u8]) -> bool {
    matches!(pdu, [choice, ERROR_INDICATION, ..] if choice & 0xe0 == 0)
}

/// Reads the ids of a PDU; `None` if it is not a PDU. Of a repeated IE the first counts.
pub fn peek(pdu: &[u8]) -> Option<Peek<'_>> {
    let (&[choice, procedure_code, _criticality], rest) = pdu.split_first_chunk()?;
    // One extension bit and two choice bits; the rest is padding.
    let class = match choice & 0xe0 {
        0x00 => Class::Initiating,
        0x20 => Class::Successful,
        0x40 => Class::Unsuccessful,
        _ => return None,
    };
    let (length, rest) = length(rest)?;
    let message = rest.get(..length.octets())?;
    let mut peek = Peek {
        class,
        procedure_code,
        amf_ue_ngap_id: None,
        ran_ue_ngap_id: None,
        s_tmsi: None,
        nas_pdu: None,
    };
    match (peek.walk(message), length) {
        // The ids precede the IEs that make a message so long.
        (_, Length::Fragment(_)) | (Some(()), Length::Whole(_)) => Some(peek),
        (None, Length::Whole(_)) => None,
    }
}

impl<'a> Peek<'a> {
    /// Iterates over the IEs; `None` if they are truncated.
    fn walk(&mut self, message: &'a [u8]) -> Option<()> {
        let (&[_preamble, high, low], mut ies) = message.split_first_chunk()?;
        for _ in 0..u16::from_be_bytes([high, low]) {
            let (&[id_high, id_low, _criticality], rest) = ies.split_first_chunk()?;
            let (Length::Whole(length), rest) = length(rest)? else { return Some(()) };
            let (value, rest) = rest.split_at_checked(length)?;
            self.note(u16::from_be_bytes([id_high, id_low]), value);
            ies = rest;
        }
        Some(())
    }

    fn note(&mut self, id: u16, value: &'a [u8]) {
        match id {
            AMF_UE_NGAP_ID | SOURCE_AMF_UE_NGAP_ID if self.amf_ue_ngap_id.is_none() => {
                self.amf_ue_ngap_id = number(value, 3).map(|(id, _)| id).and_then(AmfUeNgapId::from_wire);
            }
            RAN_UE_NGAP_ID if self.ran_ue_ngap_id.is_none() => {
                self.ran_ue_ngap_id =
                    number(value, 2).and_then(|(id, _)| u32::try_from(id).ok()).map(RanUeNgapId);
            }
            NAS_PDU if self.nas_pdu.is_none() => self.nas_pdu = octet_string(value),
            FIVE_G_S_TMSI if self.s_tmsi.is_none() => self.s_tmsi = s_tmsi(value),
            UE_NGAP_IDS if self.amf_ue_ngap_id.is_none() => self.note_pair(value),
            _ => {}
        }
    }

    /// UE NGAP IDs: a choice of the pair and the AMF's id alone.
    fn note_pair(&mut self, value: &[u8]) {
        let Some((&choice, _)) = value.split_first() else { return };
        // Two choice bits; then the pair's own two preamble bits, then the number.
        match choice >> 6 {
            0 => {
                let bits = Bits { octets: value, at: 4 };
                if let Some((amf, rest)) = bits.number(3) {
                    self.amf_ue_ngap_id = AmfUeNgapId::from_wire(amf);
                    let ran = rest.number(2).and_then(|(ran, _)| u32::try_from(ran).ok());
                    self.ran_ue_ngap_id = ran.map(RanUeNgapId);
                }
            }
            1 => {
                let bits = Bits { octets: value, at: 2 };
                self.amf_ue_ngap_id = bits.number(3).and_then(|(amf, _)| AmfUeNgapId::from_wire(amf));
            }
            _ => {}
        }
    }
}

/// A length determinant.
#[derive(Clone, Copy)]
enum Length {
    /// The length of the value.
    Whole(usize),
    /// The first fragment of a value of 16384 octets or more.
    Fragment(usize),
}

impl Length {
    fn octets(self) -> usize {
        match self {
            Self::Whole(octets) | Self::Fragment(octets) => octets,
        }
    }
}

/// Decodes a length determinant (X.691 10.9.3.6 to 10.9.3.8).
fn length(octets: &[u8]) -> Option<(Length, &[u8])> {
    let (&first, rest) = octets.split_first()?;
    match first {
        0..=0x7f => Some((Length::Whole(first.into()), rest)),
        0x80..=0xbf => {
            let (&second, rest) = rest.split_first()?;
            Some((Length::Whole(usize::from(first & 0x3f) << 8 | usize::from(second)), rest))
        }
        0xc1..=0xc4 => Some((Length::Fragment(usize::from(first & 7) * 16_384), rest)),
        _ => None,
    }
}

/// An unconstrained OCTET STRING of less than 16384 octets: its length, then the octets (X.691 17.8).
fn octet_string(value: &[u8]) -> Option<&[u8]> {
    match length(value)? {
        (Length::Whole(octets), rest) => rest.get(..octets),
        (Length::Fragment(_), _) => None,
    }
}

/// A constrained number whose length is in the first `length_bits` bits of an octet (X.691 10.5.7.4): 3 for
/// 40-bit numbers, 2 for 32-bit ones.
fn number(value: &[u8], length_bits: usize) -> Option<(u64, Bits<'_>)> {
    Bits { octets: value, at: 0 }.number(length_bits)
}

/// A bit position in octets.
#[derive(Clone, Copy)]
struct Bits<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    fn number(self, length_bits: usize) -> Option<(u64, Bits<'a>)> {
        let octet = |at: usize| self.octets.get(at).copied();
        let window = u16::from_be_bytes([octet(self.at / 8)?, octet(self.at / 8 + 1).unwrap_or(0)]);
        let length = usize::from(window << (self.at % 8) >> (16 - length_bits)) + 1;
        let start = (self.at + length_bits).div_ceil(8);
        let digits = self.octets.get(start..start + length).filter(|digits| digits.len() <= 5)?;
        let value = digits.iter().fold(0, |value, digit| value << 8 | u64::from(*digit));
        Some((value, Bits { octets: self.octets, at: (start + length) * 8 }))
    }
}

/// 5G-S-TMSI: two preamble bits, AMF Set ID (10), AMF Pointer (6), then the octet-aligned 5G-TMSI.
fn s_tmsi(value: &[u8]) -> Option<FiveGSTmsi> {
    let (&[a, b, c], rest) = value.split_first_chunk()?;
    let bits = u32::from_be_bytes([0, a, b, c]) >> 6;
    let (tmsi, _) = rest.split_first_chunk()?;
    Some(FiveGSTmsi {
        amf_set: (bits >> 6 & 0x3ff) as u16,
        amf_pointer: (bits & 0x3f) as u8,
        tmsi: FiveGTmsi(u32::from_be_bytes(*tmsi)),
    })
}
