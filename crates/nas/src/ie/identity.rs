//! 5GS mobile identity (TS 24.501 9.11.3.4).

use crate::error::Malformed;
use crate::wire::{Cursor, Ie, bcd_of_digits, coded, digits_of_bcd};
use pith_types::{AmfId, FiveGGuti, FiveGSTmsi, FiveGTmsi, Guami, Pei, Plmn, SchemeOutput, Suci};
use serde::{Deserialize, Serialize};

coded! {
    /// Identity type (TS 24.501 Table 9.11.3.3.1), as in an IDENTITY REQUEST.
    IdentityType {
        /// No identity.
        NoIdentity = 0,
        /// Concealed permanent identity.
        Suci = 1,
        /// Complete temporary identity.
        FiveGGuti = 2,
        /// Equipment identity.
        Imei = 3,
        /// Shortened temporary identity.
        FiveGSTmsi = 4,
        /// Equipment identity with software version.
        Imeisv = 5,
        /// MAC address of a device without IMEI.
        MacAddress = 6,
        /// EUI-64 of a device without IMEI.
        Eui64 = 7,
    }
}

/// An identity of a UE or its equipment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MobileIdentity {
    /// The UE has none.
    NoIdentity,
    /// A SUCI whose SUPI is an IMSI.
    Suci(Suci),
    /// A SUCI whose SUPI is an NAI (also GCI and GLI, which have NAI form): the SUPI format, and
    /// the NAI of TS 23.003 28.7.3.
    SuciNai {
        /// 1 network specific identifier, 2 GCI, 3 GLI.
        supi_format: u8,
        /// User and realm.
        nai: String,
    },
    /// 5G-GUTI.
    FiveGGuti(FiveGGuti),
    /// IMEI: 15 digits.
    Imei(Pei),
    /// 5G-S-TMSI.
    FiveGSTmsi(FiveGSTmsi),
    /// IMEISV: 16 digits.
    Imeisv(Pei),
    /// MAC address.
    MacAddress {
        /// The address can't be used as an equipment identifier (MAURI).
        unusable_as_equipment_id: bool,
        /// The address.
        address: [u8; 6],
    },
    /// EUI-64.
    Eui64([u8; 8]),
}

impl MobileIdentity {
    /// Which identity this is.
    pub fn identity_type(&self) -> IdentityType {
        match self {
            Self::NoIdentity => IdentityType::NoIdentity,
            Self::Suci(_) | Self::SuciNai { .. } => IdentityType::Suci,
            Self::FiveGGuti(_) => IdentityType::FiveGGuti,
            Self::Imei(_) => IdentityType::Imei,
            Self::FiveGSTmsi(_) => IdentityType::FiveGSTmsi,
            Self::Imeisv(_) => IdentityType::Imeisv,
            Self::MacAddress { .. } => IdentityType::MacAddress,
            Self::Eui64(_) => IdentityType::Eui64,
        }
    }
}

impl Ie for MobileIdentity {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(value);
        let first = cursor.u8()?;
        let identity = match IdentityType::from_code(first & 7) {
            IdentityType::NoIdentity if value.len() <= 3 => return Ok(Self::NoIdentity),
            IdentityType::Suci => return decode_suci(first >> 4 & 7, cursor),
            IdentityType::Imei => return decode_pei("imei", first, cursor.0).map(Self::Imei),
            IdentityType::Imeisv => return decode_pei("imeisv", first, cursor.0).map(Self::Imeisv),
            IdentityType::FiveGGuti => Self::FiveGGuti(decode_guti(&mut cursor)?),
            IdentityType::FiveGSTmsi => Self::FiveGSTmsi(decode_s_tmsi(&mut cursor)?),
            IdentityType::MacAddress => {
                Self::MacAddress { unusable_as_equipment_id: first & 8 != 0, address: cursor.array()? }
            }
            IdentityType::Eui64 => Self::Eui64(cursor.array()?),
            IdentityType::NoIdentity | IdentityType::Other(_) => {
                return Err(Malformed("undefined type of identity"));
            }
        };
        cursor.end(identity)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let code = self.identity_type().code();
        match self {
            Self::NoIdentity => out.push(code),
            Self::Suci(suci) => encode_suci(suci, out),
            Self::SuciNai { supi_format, nai } => {
                out.push(supi_format << 4 | code);
                out.extend(nai.as_bytes());
            }
            Self::FiveGGuti(guti) => {
                out.push(0xf0 | code);
                out.extend(guti.guami.plmn_id.to_bcd());
                out.extend(guti.guami.amf_id.to_bits().to_be_bytes().get(1..).unwrap_or_default());
                out.extend(guti.tmsi.0.to_be_bytes());
            }
            Self::FiveGSTmsi(s_tmsi) => {
                out.push(0xf0 | code);
                out.extend((s_tmsi.amf_set << 6 | u16::from(s_tmsi.amf_pointer)).to_be_bytes());
                out.extend(s_tmsi.tmsi.0.to_be_bytes());
            }
            Self::Imei(pei) | Self::Imeisv(pei) => encode_pei(pei, code, out),
            Self::MacAddress { unusable_as_equipment_id, address } => {
                out.push(u8::from(*unusable_as_equipment_id) << 3 | code);
                out.extend(address);
            }
            Self::Eui64(id) => {
                out.push(code);
                out.extend(id);
            }
        }
    }
}

/// SUCI: the SUPI format selects digits or an NAI (TS 24.501 Figures 9.11.3.4.3, 4).
fn decode_suci(supi_format: u8, cursor: Cursor<'_>) -> Result<MobileIdentity, Malformed> {
    match supi_format {
        0 => decode_imsi_suci(cursor).map(MobileIdentity::Suci),
        1..=3 => {
            let nai = std::str::from_utf8(cursor.0).map_err(|_| Malformed("NAI is not UTF-8"))?;
            Ok(MobileIdentity::SuciNai { supi_format, nai: nai.to_owned() })
        }
        _ => Err(Malformed("undefined SUPI format")),
    }
}

fn decode_imsi_suci(mut cursor: Cursor<'_>) -> Result<Suci, Malformed> {
    let plmn = plmn(&mut cursor)?;
    let routing = digits_of_bcd(cursor.take(2)?)?;
    let scheme = cursor.u8()? & 0xf;
    let home_network_key_id = cursor.u8()?;
    if routing.is_empty() || cursor.is_empty() {
        return Err(Malformed("SUCI without routing indicator or scheme output"));
    }
    let output = match scheme {
        0 => SchemeOutput::Null(msin(cursor.0)?.into()),
        _ => SchemeOutput::Concealed { scheme, output: cursor.0.into() },
    };
    Ok(Suci { plmn, routing_indicator: routing.into(), home_network_key_id, output })
}

/// The digits of an MSIN, at most ten (TS 23.003 2.2).
fn msin(octets: &[u8]) -> Result<String, Malformed> {
    if octets.last() == Some(&0xff) {
        return Err(Malformed("an MSIN that ends with an octet of fillers"));
    }
    let digits = digits_of_bcd(octets)?;
    match digits.len() {
        1..=10 => Ok(digits),
        _ => Err(Malformed("an MSIN has 1 to 10 digits")),
    }
}

fn encode_suci(suci: &Suci, out: &mut Vec<u8>) {
    out.push(IdentityType::Suci.code());
    out.extend(suci.plmn.to_bcd());
    let routing = out.len() + 2;
    bcd_of_digits(&suci.routing_indicator, out);
    out.resize(routing, 0xff);
    out.extend([suci.scheme(), suci.home_network_key_id]);
    match &suci.output {
        SchemeOutput::Null(msin) => bcd_of_digits(msin, out),
        SchemeOutput::Concealed { output, .. } => out.extend(&output[..]),
    }
}

fn decode_guti(cursor: &mut Cursor<'_>) -> Result<FiveGGuti, Malformed> {
    let plmn_id = plmn(cursor)?;
    let [region, set, pointer] = cursor.array()?;
    Ok(FiveGGuti {
        guami: Guami { plmn_id, amf_id: AmfId::from_bits(u32::from_be_bytes([0, region, set, pointer])) },
        tmsi: FiveGTmsi(cursor.u32()?),
    })
}

fn decode_s_tmsi(cursor: &mut Cursor<'_>) -> Result<FiveGSTmsi, Malformed> {
    let amf = AmfId::from_bits(cursor.u16()?.into());
    Ok(FiveGSTmsi { amf_set: amf.set, amf_pointer: amf.pointer, tmsi: FiveGTmsi(cursor.u32()?) })
}

/// Set in the first octet of an identity with an odd number of digits, which needs no filler.
const ODD: u8 = 8;

/// IMEI or IMEISV: the first digit shares its octet with the type (Figure 9.11.3.4.2). Some
/// simulators send another filler than `1111`.
fn decode_pei(kind: &str, first: u8, rest: &[u8]) -> Result<Pei, Malformed> {
    let mut digits = digits_of_bcd(&[first >> 4 | 0xf0])?;
    if digits.is_empty() {
        return Err(Malformed("an equipment identity that starts with a filler"));
    }
    if rest.last() == Some(&0xff) {
        return Err(Malformed("an equipment identity that ends with an octet of fillers"));
    }
    digits.push_str(&digits_of_bcd(rest)?);
    let has_filler = first & ODD == 0;
    if has_filler && rest.last().is_some_and(|last| last >> 4 != 0xf) {
        digits.pop();
    }
    format!("{kind}-{digits}").parse().map_err(|_| Malformed("IMEI has 15 digits, IMEISV 16"))
}

fn encode_pei(pei: &Pei, code: u8, out: &mut Vec<u8>) {
    let digits = pei.as_str().split_once('-').map_or("", |(_, digits)| digits);
    let odd = if digits.len() % 2 == 1 { ODD } else { 0 };
    let (first, rest) = digits.split_at_checked(1).unwrap_or_default();
    out.push(first.bytes().next().unwrap_or_default() << 4 | odd | code);
    bcd_of_digits(rest, out);
}

/// A PLMN of three BCD octets.
pub(crate) fn plmn(cursor: &mut Cursor<'_>) -> Result<Plmn, Malformed> {
    Plmn::from_bcd(cursor.array()?).map_err(|_| Malformed("PLMN with a digit above 9"))
}
