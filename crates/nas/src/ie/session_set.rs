//! Sets of PDU sessions: PDU session status, uplink data status, allowed PDU session status,
//! reactivation result (TS 24.501 9.11.3.13, 9.11.3.42, 9.11.3.44, 9.11.3.57).

use crate::cause::GmmCause;
use crate::error::Malformed;
use crate::wire::{Cursor, Ie};
use serde::{Deserialize, Serialize};

/// One bit for each PDU session identity, 1 to 15.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PduSessionSet(u16);

impl PduSessionSet {
    /// No session.
    pub const NONE: Self = Self(0);

    /// Whether the set contains that session.
    pub const fn contains(self, psi: u8) -> bool {
        psi < 16 && self.0 >> psi & 1 == 1
    }

    /// Adds a session; invalid identities (0, above 15) are ignored.
    pub fn insert(&mut self, psi: u8) {
        if (1..16).contains(&psi) {
            self.0 |= 1 << psi;
        }
    }

    /// Removes a session.
    pub fn remove(&mut self, psi: u8) {
        if psi < 16 {
            self.0 &= !(1 << psi);
        }
    }

    /// Whether it is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The sessions of the set in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (1..16).filter(move |&psi| self.contains(psi))
    }
}

impl FromIterator<u8> for PduSessionSet {
    fn from_iter<I: IntoIterator<Item = u8>>(sessions: I) -> Self {
        let mut set = Self::NONE;
        sessions.into_iter().for_each(|psi| set.insert(psi));
        set
    }
}

/// The first octet has PSI 7 to 0, the second 15 to 8; further octets and PSI 0 are spare.
impl Ie for PduSessionSet {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let octets = Cursor(value).array()?;
        Ok(Self(u16::from_le_bytes(octets) & !1))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.to_le_bytes());
    }
}

/// Why the user plane of a session was not re-established (TS 24.501 9.11.3.43).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReactivationErrors(pub Vec<(u8, GmmCause)>);

impl Ie for ReactivationErrors {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(value);
        let pairs = cursor.all(|cursor| Ok((cursor.u8()?, GmmCause::from_code(cursor.u8()?))))?;
        Ok(Self(pairs))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        for (psi, cause) in &self.0 {
            out.extend([*psi, cause.code()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_5_is_bit_6_of_the_first_octet_and_9_bit_2_of_the_second() {
        let set: PduSessionSet = [5, 9, 0, 16].into_iter().collect();
        let mut octets = Vec::new();
        set.encode(&mut octets);
        assert_eq!(octets, [0x20, 0x02]);
        assert_eq!(PduSessionSet::decode(&[0x21, 0x02, 0, 0]), Ok(set));
        assert_eq!(set.iter().collect::<Vec<_>>(), [5, 9]);
    }
}
