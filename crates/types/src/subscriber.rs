//! Identities of subscribers and devices: SUPI, SUCI, PEI (TS 23.003 2.2A, 2.2B, 6.2).

use crate::{ParseError, Plmn, serde_as_text};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Subscription Permanent Identifier, of the type IMSI: 5 to 15 digits.
///
/// `Display` and JSON contain the whole identity, `imsi-999700000000001` (TS 29.571 5.3.2 `Supi`); `Debug`
/// and [`Supi::masked`] hide the middle, for logs.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Supi(Arc<str>);

serde_as_text!(Supi);

impl Supi {
    /// The SUPI of an IMSI.
    pub fn from_imsi(digits: &str) -> Result<Self, ParseError> {
        format!("imsi-{digits}").parse()
    }

    /// The text, `imsi-…`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digits of the IMSI.
    pub fn imsi(&self) -> &str {
        &self.0["imsi-".len()..]
    }

    /// `count` consecutive SUPIs, starting with this one; `None` if the number of digits does not suffice.
    pub fn consecutive(&self, count: u64) -> Option<Vec<Self>> {
        let (digits, width) = (self.imsi(), self.imsi().len());
        let first: u64 = digits.parse().ok()?;
        let limit = 10u64.pow(width as u32);
        first.checked_add(count).filter(|end| *end <= limit)?;
        let supi = |number| Self::from_imsi(&format!("{number:0width$}")).ok();
        (first..first + count).map(supi).collect()
    }

    /// The text with the subscriber's own digits hidden except the last two: `imsi-99970********01`.
    pub fn masked(&self) -> String {
        let digits = self.imsi();
        let (open, rest) = digits.split_at(digits.len().min(5));
        let hidden = rest.len().saturating_sub(2);
        format!("imsi-{open}{}{}", "*".repeat(hidden), &rest[hidden..])
    }
}

impl fmt::Display for Supi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Supi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

impl FromStr for Supi {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let digits = text.strip_prefix("imsi-").unwrap_or_default();
        if !(5..=15).contains(&digits.len()) || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ParseError::new(
                text,
                "a SUPI: 'imsi-' and 5 to 15 digits, such as imsi-999700000000001",
            ));
        }
        Ok(Self(text.into()))
    }
}

/// The scheme output of a SUCI (TS 23.003 2.2B).
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum SchemeOutput {
    /// The null scheme: the digits of the MSIN in clear.
    Null(Arc<str>),
    /// The output of a protection scheme.
    Concealed {
        /// 1: profile A, 2: profile B, 12 to 15: proprietary.
        scheme: u8,
        /// Ephemeral public key, cipher text and MAC tag, in the scheme's format.
        output: Arc<[u8]>,
    },
}

/// Subscription Concealed Identifier, of the type IMSI (TS 23.003 2.2B).
///
/// `Display` and JSON have the format of `Suci` in TS 29.571: `suci-0-999-70-0-0-0-0000000001`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Suci {
    /// The home network.
    pub plmn: Plmn,
    /// Routing Indicator: 1 to 4 digits.
    pub routing_indicator: Arc<str>,
    /// Home Network Public Key Identifier, 0 for the null scheme.
    pub home_network_key_id: u8,
    /// The MSIN, concealed or not.
    pub output: SchemeOutput,
}

serde_as_text!(Suci);

impl Suci {
    /// The protection scheme (TS 33.501 Annex C.1); 0: null scheme.
    pub fn scheme(&self) -> u8 {
        match self.output {
            SchemeOutput::Null(_) => 0,
            SchemeOutput::Concealed { scheme, .. } => scheme,
        }
    }

    /// The SUPI in a SUCI of the null scheme; `None` for other schemes.
    pub fn null_scheme_supi(&self) -> Option<Supi> {
        match &self.output {
            SchemeOutput::Null(msin) => self.supi_of(msin).ok(),
            SchemeOutput::Concealed { .. } => None,
        }
    }

    /// The SUPI with that MSIN in this SUCI's home network.
    pub fn supi_of(&self, msin: &str) -> Result<Supi, ParseError> {
        Supi::from_imsi(&format!("{}{}{msin}", self.plmn.mcc(), self.plmn.mnc()))
    }
}

impl fmt::Display for Suci {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "suci-0-{}-{}-{}-{}-{}-",
            self.plmn.mcc(),
            self.plmn.mnc(),
            self.routing_indicator,
            self.scheme(),
            self.home_network_key_id
        )?;
        match &self.output {
            SchemeOutput::Null(msin) => f.write_str(msin),
            SchemeOutput::Concealed { output, .. } => {
                output.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
            }
        }
    }
}

impl fmt::Debug for Suci {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "suci-0-{}-{}-{}-{}-{}-…",
            self.plmn.mcc(),
            self.plmn.mnc(),
            self.routing_indicator,
            self.scheme(),
            self.home_network_key_id
        )
    }
}

impl FromStr for Suci {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse_suci(text).ok_or_else(|| {
            ParseError::new(text, "a SUCI of the type IMSI, such as suci-0-999-70-0-0-0-0000000001")
        })
    }
}

fn parse_suci(text: &str) -> Option<Suci> {
    let mut parts = text.strip_prefix("suci-0-")?.split('-');
    let plmn = Plmn::new(parts.next()?, parts.next()?).ok()?;
    let routing_indicator =
        parts.next().filter(|r| (1..=4).contains(&r.len()) && r.bytes().all(|b| b.is_ascii_digit()))?;
    let scheme: u8 = parts.next()?.parse().ok().filter(|scheme| *scheme < 16)?;
    let home_network_key_id = parts.next()?.parse().ok()?;
    let output = parts.next().filter(|o| !o.is_empty())?;
    if parts.next().is_some() {
        return None;
    }
    let output = match scheme {
        0 => SchemeOutput::Null(
            Some(output).filter(|o| o.len() <= 10 && o.bytes().all(|b| b.is_ascii_digit()))?.into(),
        ),
        _ => SchemeOutput::Concealed { scheme, output: hex_octets(output)?.into() },
    };
    Some(Suci { plmn, routing_indicator: routing_indicator.into(), home_network_key_id, output })
}

fn hex_octets(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// Permanent Equipment Identifier (TS 29.571 5.3.2 `Pei`): IMEI, IMEISV.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Pei(Arc<str>);

serde_as_text!(Pei);

impl Pei {
    /// The text, `imeisv-…`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Pei {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Pei {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pei-…")
    }
}

impl FromStr for Pei {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (digits, length) = match text.split_once('-') {
            Some(("imei", digits)) => (digits, 15),
            Some(("imeisv", digits)) => (digits, 16),
            _ => ("", 15),
        };
        if digits.len() != length || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ParseError::new(text, "a PEI: 'imei-' and 15 digits or 'imeisv-' and 16"));
        }
        Ok(Self(text.into()))
    }
}

/// The identity under which an NF has a UE: its authenticated SUPI, or, for emergency services without one, its PEI (TS 23.501
/// 5.16.4.1; TS 29.502 6.1.6.2.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UeIdentity {
    /// An authenticated subscriber.
    Supi(Supi),
    /// A device whose subscriber is not authenticated.
    Pei(Pei),
}

serde_as_text!(UeIdentity);

impl UeIdentity {
    /// The SUPI of an authenticated subscriber.
    pub const fn supi(&self) -> Option<&Supi> {
        match self {
            Self::Supi(supi) => Some(supi),
            Self::Pei(_) => None,
        }
    }

    /// The text, `imsi-…`, `imei-…` or `imeisv-…`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Supi(supi) => supi.as_str(),
            Self::Pei(pei) => pei.as_str(),
        }
    }

    /// The text with digits hidden, for logs.
    pub fn masked(&self) -> String {
        match self {
            Self::Supi(supi) => supi.masked(),
            Self::Pei(pei) => format!("{pei:?}"),
        }
    }
}

impl From<Supi> for UeIdentity {
    fn from(supi: Supi) -> Self {
        Self::Supi(supi)
    }
}

impl From<Pei> for UeIdentity {
    fn from(pei: Pei) -> Self {
        Self::Pei(pei)
    }
}

impl fmt::Display for UeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Supi(supi) => supi.fmt(f),
            Self::Pei(pei) => pei.fmt(f),
        }
    }
}

impl FromStr for UeIdentity {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text.starts_with("imsi-") { text.parse().map(Self::Supi) } else { text.parse().map(Self::Pei) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ue_without_an_authenticated_supi_is_named_by_its_pei() {
        for text in ["imsi-999700000000001", "imei-490154203237518", "imeisv-4370816125816151"] {
            let ue: UeIdentity = text.parse().unwrap();
            assert_eq!(ue.to_string(), text);
            assert_eq!(ue.supi().is_some(), text.starts_with("imsi"));
            assert!(!ue.masked().contains(&text[text.len() - 8..]), "{}", ue.masked());
        }
        assert!("suci-0-999-70-0-0-0-0000000001".parse::<UeIdentity>().is_err());
    }

    #[test]
    fn a_supi_is_masked_in_debug_only() {
        let supi: Supi = "imsi-999700000000001".parse().unwrap();
        assert_eq!(supi.to_string(), "imsi-999700000000001");
        assert_eq!(format!("{supi:?}"), "imsi-99970********01");
        for bad in ["imsi-", "999700000000001", "imsi-12a45", "imsi-1234567890123456"] {
            assert!(bad.parse::<Supi>().is_err(), "{bad}");
        }
    }

    #[test]
    fn supis_count_up_with_their_leading_zeros_and_end_with_their_digits() {
        let first: Supi = "imsi-001019999999998".parse().unwrap();
        let three = first.consecutive(3).unwrap();
        assert_eq!(three[2].as_str(), "imsi-001020000000000");
        let last: Supi = "imsi-99999".parse().unwrap();
        assert_eq!(last.consecutive(1).unwrap(), std::slice::from_ref(&last));
        assert_eq!(last.consecutive(2), None);
        assert_eq!(last.consecutive(u64::MAX), None);
    }

    #[test]
    fn a_null_scheme_suci_shows_its_supi() {
        let suci: Suci = "suci-0-999-70-0-0-0-0000000001".parse().unwrap();
        assert_eq!(suci.null_scheme_supi().unwrap().as_str(), "imsi-999700000000001");
        assert_eq!(suci.to_string(), "suci-0-999-70-0-0-0-0000000001");
    }

    #[test]
    fn a_concealed_suci_round_trips_and_shows_nothing() {
        let text = "suci-0-999-70-0000-1-27-0a0b0c";
        let suci: Suci = text.parse().unwrap();
        assert_eq!(suci.to_string(), text);
        assert_eq!(suci.null_scheme_supi(), None);
        assert!(!format!("{suci:?}").contains("0a0b0c"));
        for bad in [
            "suci-0-999-70-0-1-27-0a0",
            "suci-0-999-70-0-0-0-",
            "suci-1-x",
            "suci-0-999-70-0-1-27-é1",
            "suci-0-999-70-0-0-0-1-2",
        ] {
            assert!(bad.parse::<Suci>().is_err(), "{bad}");
        }
    }
}
