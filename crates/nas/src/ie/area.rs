//! Areas: TAI list, service area list, LADN, PLMN list.

use super::identity::plmn;
use crate::error::Malformed;
use crate::wire::{Cursor, Ie, with_length_u8};
use pith_types::{Dnn, Plmn, Tac, Tai};
use serde::{Deserialize, Serialize};

impl Ie for Tai {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        tai(&mut Cursor(value))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.plmn_id.to_bcd());
        out.extend(self.tac.octets());
    }
}

fn tai(cursor: &mut Cursor<'_>) -> Result<Tai, Malformed> {
    Ok(Tai { plmn_id: plmn(cursor)?, tac: Tac::from(cursor.array()?) })
}

/// A part of a TAI list or of a service area list, 1 to 16 areas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum PartialTaiList {
    /// One PLMN, non-consecutive TACs.
    NonConsecutive {
        /// PLMN of all areas.
        plmn: Plmn,
        tacs: Vec<Tac>,
    },
    /// One PLMN, consecutive TACs.
    Consecutive {
        /// PLMN of all areas.
        plmn: Plmn,
        /// First TAC.
        first: Tac,
        /// Number of TACs, 1 to 16.
        count: u8,
    },
    /// Areas of several PLMNs.
    SeveralPlmns(Vec<Tai>),
    /// All areas of a PLMN; in a service area list only.
    WholePlmn(Plmn),
}

impl PartialTaiList {
    fn decode(header: u8, cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let count = (header & 0x1f) + 1;
        if count > 16 {
            return Err(Malformed("more than 16 tracking areas"));
        }
        match header >> 5 & 3 {
            0 => Ok(Self::NonConsecutive {
                plmn: plmn(cursor)?,
                tacs: repeat(count, || cursor.array().map(Tac::from))?,
            }),
            1 => Ok(Self::Consecutive { plmn: plmn(cursor)?, first: Tac::from(cursor.array()?), count }),
            2 => repeat(count, || tai(cursor)).map(Self::SeveralPlmns),
            _ => plmn(cursor).map(Self::WholePlmn),
        }
    }

    fn encode(&self, high_bit: u8, out: &mut Vec<u8>) {
        let header =
            |kind: u8, count: usize| high_bit << 7 | kind << 5 | count.clamp(1, 16).saturating_sub(1) as u8;
        match self {
            Self::NonConsecutive { plmn, tacs } => {
                out.push(header(0, tacs.len()));
                out.extend(plmn.to_bcd());
                out.extend(tacs.iter().take(16).flat_map(|tac| tac.octets()));
            }
            Self::Consecutive { plmn, first, count } => {
                out.push(header(1, (*count).into()));
                out.extend(plmn.to_bcd());
                out.extend(first.octets());
            }
            Self::SeveralPlmns(tais) => {
                out.push(header(2, tais.len()));
                tais.iter().take(16).for_each(|tai| tai.encode(out));
            }
            Self::WholePlmn(plmn) => {
                out.push(header(3, 1));
                out.extend(plmn.to_bcd());
            }
        }
    }

    /// Whether the part contains that area.
    pub fn contains(&self, tai: &Tai) -> bool {
        match self {
            Self::NonConsecutive { plmn, tacs } => *plmn == tai.plmn_id && tacs.contains(&tai.tac),
            Self::Consecutive { plmn, first, count } => {
                let distance = tai.tac.value().checked_sub(first.value());
                *plmn == tai.plmn_id && distance.is_some_and(|distance| distance < (*count).into())
            }
            Self::SeveralPlmns(tais) => tais.contains(tai),
            Self::WholePlmn(plmn) => *plmn == tai.plmn_id,
        }
    }
}

fn repeat<T>(count: u8, mut item: impl FnMut() -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
    (0..count).map(|_| item()).collect()
}

/// 5GS tracking area identity list (TS 24.501 9.11.3.9), a registration area of at most 16 areas.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaiList(pub Vec<PartialTaiList>);

impl TaiList {
    /// The list of the first 16 of these areas, in the shortest form.
    pub fn of(tais: &[Tai]) -> Self {
        let tais = tais.get(..16).unwrap_or(tais);
        let Some(first) = tais.first() else {
            return Self::default();
        };
        let plmn = first.plmn_id;
        let tacs = || tais.iter().map(|tai| tai.tac);
        let rising = |(at, tac): (usize, Tac)| tac.value() as usize == first.tac.value() as usize + at;
        let part = if tais.iter().any(|tai| tai.plmn_id != plmn) {
            PartialTaiList::SeveralPlmns(tais.to_vec())
        } else if tais.len() > 1 && tacs().enumerate().all(rising) {
            let count = tais.len() as u8;
            let first = first.tac;
            PartialTaiList::Consecutive { plmn, first, count }
        } else {
            let tacs = tacs().collect();
            PartialTaiList::NonConsecutive { plmn, tacs }
        };
        Self(vec![part])
    }

    /// Whether the list contains that area.
    pub fn contains(&self, tai: &Tai) -> bool {
        self.0.iter().any(|part| part.contains(tai))
    }
}

impl Ie for TaiList {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let parts = Cursor(value).all(|cursor| {
            let header = cursor.u8()?;
            PartialTaiList::decode(header, cursor)
        })?;
        if parts.iter().any(|part| matches!(part, PartialTaiList::WholePlmn(_))) {
            Err(Malformed("undefined type of list"))
        } else {
            Ok(Self(parts))
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|part| part.encode(0, out));
    }
}

/// Service area list (TS 24.501 9.11.3.49): parts of the allowed or of the non-allowed area.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServiceAreaList(pub Vec<ServiceArea>);

/// A part of a service area list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceArea {
    /// The areas belong to the allowed area, not to the non-allowed one.
    pub allowed: bool,
    /// The areas.
    pub areas: PartialTaiList,
}

impl Ie for ServiceAreaList {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let parts = Cursor(value).all(|cursor| {
            let header = cursor.u8()?;
            Ok(ServiceArea { allowed: header & 0x80 == 0, areas: PartialTaiList::decode(header, cursor)? })
        })?;
        Ok(Self(parts))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        for part in &self.0 {
            part.areas.encode(u8::from(!part.allowed), out);
        }
    }
}

/// A DNN in labels, each preceded by its length (TS 24.501 9.11.2.1B, TS 23.003 9.1).
impl Ie for Dnn {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let labels = Cursor(value).all(|cursor| {
            let label = cursor.with_length_u8()?.0;
            std::str::from_utf8(label).map_err(|_| Malformed("DNN is not text"))
        })?;
        labels.join(".").parse().map_err(|_| Malformed("not a DNN"))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        for label in self.as_str().split('.') {
            with_length_u8(out, |out| out.extend(label.bytes()));
        }
    }
}

/// LADN indication (TS 24.501 9.11.3.29): the requested LADNs; empty requests all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LadnIndication(pub Vec<Dnn>);

impl Ie for LadnIndication {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        Cursor(value).all(|cursor| Dnn::decode(cursor.with_length_u8()?.0)).map(Self)
    }
    fn encode(&self, out: &mut Vec<u8>) {
        for dnn in &self.0 {
            with_length_u8(out, |out| dnn.encode(out));
        }
    }
}

/// LADN information (TS 24.501 9.11.3.30): local area data networks and their service areas.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LadnInformation(pub Vec<(Dnn, TaiList)>);

impl Ie for LadnInformation {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let ladns = Cursor(value).all(|cursor| {
            let dnn = Dnn::decode(cursor.with_length_u8()?.0)?;
            Ok((dnn, TaiList::decode(cursor.with_length_u8()?.0)?))
        })?;
        Ok(Self(ladns))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        for (dnn, areas) in &self.0 {
            with_length_u8(out, |out| dnn.encode(out));
            with_length_u8(out, |out| areas.encode(out));
        }
    }
}

/// PLMN list (TS 24.008 10.5.1.13): equivalent PLMNs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlmnList(pub Vec<Plmn>);

impl Ie for PlmnList {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        Cursor(value).all(plmn).map(Self)
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.iter().flat_map(|plmn| plmn.to_bcd()));
    }
}

impl Ie for Plmn {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        plmn(&mut Cursor(value))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.to_bcd());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(plmn: &str, tac: u32) -> Tai {
        Tai { plmn_id: plmn.parse().unwrap(), tac: Tac::new(tac) }
    }

    #[test]
    fn areas_are_encoded_in_the_shortest_form() {
        let octets = |tais: &[Tai]| {
            let mut out = Vec::new();
            TaiList::of(tais).encode(&mut out);
            hex::encode(out)
        };
        assert_eq!(octets(&[area("999/70", 1)]), "0099f907000001");
        assert_eq!(octets(&[area("999/70", 1), area("999/70", 2)]), "2199f907000001");
        assert_eq!(octets(&[area("999/70", 1), area("999/70", 3)]), "0199f907000001000003");
        assert_eq!(octets(&[area("999/70", 1), area("208/93", 1)]), "4199f90700000102f839000001");
        assert_eq!(octets(&[]), "");
    }

    #[test]
    fn every_form_contains_its_areas() {
        for tais in [
            vec![area("999/70", 5), area("999/70", 6)],
            vec![area("999/70", 5), area("999/70", 7)],
            vec![area("999/70", 5), area("208/93", 5)],
        ] {
            let list = TaiList::of(&tais);
            assert!(tais.iter().all(|tai| list.contains(tai)));
            assert!(!list.contains(&area("999/70", 4)) && !list.contains(&area("999/70", 8)));
        }
    }
}
