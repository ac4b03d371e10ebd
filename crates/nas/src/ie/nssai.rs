//! Slices on N1: S-NSSAI, and NSSAIs (TS 24.501 9.11.2.8, 9.11.3.37, 9.11.3.46).

use crate::error::Malformed;
use crate::wire::{Cursor, Ie, coded, with_length_u8};
use pith_types::Snssai;
use serde::{Deserialize, Serialize};

/// A slice of the serving network, and the slice of the home network to which it is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedSnssai {
    /// In the serving PLMN.
    pub snssai: Snssai,
    /// In the home PLMN, if that is another one.
    pub home: Option<Snssai>,
}

impl From<Snssai> for MappedSnssai {
    fn from(snssai: Snssai) -> Self {
        Self { snssai, home: None }
    }
}

/// An SST and, if `with_sd`, an SD, of which 0xFFFFFF means none (TS 23.003 28.4.2).
fn snssai(cursor: &mut Cursor<'_>, with_sd: bool) -> Result<Snssai, Malformed> {
    let sst = cursor.u8()?;
    let sd = if with_sd { Some(cursor.array()?).filter(|sd| *sd != [0xff; 3]) } else { None };
    Ok(Snssai { sst, sd })
}

/// The length determines which parts are present (TS 24.501 Table 9.11.2.8.1).
impl Ie for MappedSnssai {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let (sd, home_sst, home_sd) = match value.len() {
            1 => (false, false, false),
            2 => (false, true, false),
            4 => (true, false, false),
            5 => (true, true, false),
            8 => (true, true, true),
            _ => return Err(Malformed("S-NSSAI with an undefined length")),
        };
        let mut cursor = Cursor(value);
        let snssai_served = snssai(&mut cursor, sd)?;
        let home = if home_sst { Some(snssai(&mut cursor, home_sd)?) } else { None };
        Ok(Self { snssai: snssai_served, home })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let home_sd = self.home.and_then(|home| home.sd);
        out.push(self.snssai.sst);
        match (self.snssai.sd, home_sd) {
            (Some(sd), _) => out.extend(sd),
            (None, Some(_)) => out.extend([0xff; 3]),
            (None, None) => {}
        }
        if let Some(home) = self.home {
            out.push(home.sst);
            out.extend(home_sd.into_iter().flatten());
        }
    }
}

/// NSSAI (TS 24.501 9.11.3.37): requested, allowed, configured or pending slices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Nssai(pub Vec<MappedSnssai>);

impl Nssai {
    /// Whether it contains that slice of the serving network.
    pub fn contains(&self, snssai: &Snssai) -> bool {
        self.0.iter().any(|mapped| mapped.snssai == *snssai)
    }

    /// Its slices of the serving network.
    pub fn iter(&self) -> impl Iterator<Item = Snssai> + '_ {
        self.0.iter().map(|mapped| mapped.snssai)
    }
}

impl FromIterator<Snssai> for Nssai {
    fn from_iter<I: IntoIterator<Item = Snssai>>(slices: I) -> Self {
        Self(slices.into_iter().map(MappedSnssai::from).collect())
    }
}

impl Ie for Nssai {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        Cursor(value).all(|cursor| MappedSnssai::decode(cursor.with_length_u8()?.0)).map(Self)
    }
    fn encode(&self, out: &mut Vec<u8>) {
        for snssai in &self.0 {
            with_length_u8(out, |out| snssai.encode(out));
        }
    }
}

coded! {
    /// Why a slice was rejected (TS 24.501 Table 9.11.3.46.1), half an octet.
    SnssaiRejection {
        /// Not available in the PLMN.
        NotAvailableInPlmn = 0,
        /// Not available in the registration area.
        NotAvailableInRegistrationArea = 1,
        /// Slice-specific authentication failed or was revoked.
        NotAvailableAfterNssaa = 2,
        /// Maximum number of UEs reached.
        MaximumNumberOfUesReached = 3,
    }
}

/// Rejected NSSAI (TS 24.501 9.11.3.46).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RejectedNssai(pub Vec<(Snssai, SnssaiRejection)>);

impl RejectedNssai {
    /// Elements of a partial list at most.
    const MOST: usize = 8;

    /// The value of the Extended rejected NSSAI IE (TS 24.501 9.11.3.75), in partial lists without back-off timer.
    pub fn extended(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for list in self.0.chunks(Self::MOST) {
            out.extend(u8::try_from(list.len() - 1));
            Self(list.to_vec()).encode(&mut out);
        }
        out
    }

    /// Reads the value of an Extended rejected NSSAI IE (TS 24.501 9.11.3.75). Back-off timers are skipped.
    ///
    /// # Errors
    ///
    /// The value is no sequence of whole partial lists of a type that the table defines.
    pub fn of_extended(value: &[u8]) -> Result<Self, Malformed> {
        let lists = Cursor(value).all(|cursor| {
            let header = cursor.u8()?;
            match header >> 4 & 0x7 {
                0 => {}
                1 => drop(cursor.u8()?),
                _ => return Err(Malformed("partial extended rejected NSSAI list of an undefined type")),
            }
            (0..=header & 0xf).map(|_| rejection(cursor)).collect::<Result<Vec<_>, _>>()
        })?;
        Ok(Self(lists.concat()))
    }
}

/// A rejected S-NSSAI with its cause (TS 24.501 figure 9.11.3.46.2).
fn rejection(cursor: &mut Cursor<'_>) -> Result<(Snssai, SnssaiRejection), Malformed> {
    let header = cursor.u8()?;
    let with_sd = match header >> 4 {
        1 => false,
        4 => true,
        _ => return Err(Malformed("rejected S-NSSAI has 1 or 4 octets")),
    };
    let snssai = snssai(cursor, with_sd)?;
    Ok((snssai, SnssaiRejection::from_code(header & 0xf)))
}

impl Ie for RejectedNssai {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        Ok(Self(Cursor(value).all(rejection)?))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        for (snssai, rejection) in &self.0 {
            let length = if snssai.sd.is_some() { 4 } else { 1 };
            out.extend([length << 4 | rejection.code() & 0xf, snssai.sst]);
            out.extend(snssai.sd.into_iter().flatten());
        }
    }
}

coded! {
    /// NSSAI inclusion mode (TS 24.501 Table 9.11.3.37A.1), half an octet.
    NssaiInclusionMode {
        /// Mode A.
        A = 0,
        /// Mode B.
        B = 1,
        /// Mode C.
        C = 2,
        /// Mode D.
        D = 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_of_an_snssai_round_trips() {
        for text in ["01", "0102", "010a0b0c", "010a0b0c02", "010a0b0c020d0e0f"] {
            let octets = hex::decode(text).unwrap();
            let mut out = Vec::new();
            MappedSnssai::decode(&octets).unwrap().encode(&mut out);
            assert_eq!(hex::encode(out), text);
        }
        assert!(MappedSnssai::decode(&[1, 2, 3]).is_err());
        assert!(MappedSnssai::decode(&[]).is_err());
    }

    /// TS 24.501 9.11.3.75: a list with a back-off timer, and one without.
    #[test]
    fn an_extended_rejected_nssai_is_read() {
        let read = |text: &str| RejectedNssai::of_extended(&hex::decode(text).unwrap());
        let rejected = vec![
            (Snssai::of_sst(1), SnssaiRejection::MaximumNumberOfUesReached),
            ("2-0d0e0f".parse().unwrap(), SnssaiRejection::NotAvailableInPlmn),
            (Snssai::of_sst(3), SnssaiRejection::NotAvailableInRegistrationArea),
        ];
        assert_eq!(read("102a13010140020d0e0f1103"), Ok(RejectedNssai(rejected.clone())));
        let without_timer = RejectedNssai(rejected).extended();
        assert_eq!(hex::encode(&without_timer), "02130140020d0e0f1103");
        assert_eq!(RejectedNssai::of_extended(&without_timer).unwrap().extended(), without_timer);
        for text in ["00", "011001", "201001", "002001"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_home_slice_with_sd_needs_the_filler_where_the_serving_one_has_none() {
        let mapped = MappedSnssai { snssai: Snssai::of_sst(1), home: "2-0d0e0f".parse().ok() };
        let mut out = Vec::new();
        mapped.encode(&mut out);
        assert_eq!(hex::encode(&out), "01ffffff020d0e0f");
        assert_eq!(MappedSnssai::decode(&out), Ok(mapped));
    }
}
