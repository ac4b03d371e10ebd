//! All SM contexts of a shard. A session is found by its reference, by its SEID, or by SUPI and PDU session identity.

use super::context::{FRONT_SEID, SmContext};
use crate::kit::{Arena, Identity, Key, Rng};
use pith_types::{Seid, Supi};
use std::collections::HashMap;

/// Maximum number of sessions of a shard.
const LIMIT: u32 = 1 << 20;

/// In the part of a SEID that identifies the session: the bits of its index in the table.
const SEID_INDEX: u64 = LIMIT as u64 - 1;

/// The other bits, except [`FRONT_SEID`], are random, so that a SEID cannot be guessed (TS 33.515 4.2.2.1.2).
const SEID_RANDOM: u64 = 0xffff_ffff_ffff & !SEID_INDEX & !FRONT_SEID;

/// SM contexts by key.
pub(super) type Sessions = Arena<SmContext>;

/// An empty table.
pub(super) const fn sessions() -> Sessions {
    Arena::new(LIMIT)
}

/// Finds sessions by the identities of their UEs.
#[derive(Debug, Default)]
pub(super) struct Index(HashMap<(Supi, u8), Key>);

impl Index {
    /// The session of that identity.
    pub(super) fn find(&self, supi: &Supi, pdu_session_id: u8) -> Option<Key> {
        self.0.get(&(supi.clone(), pdu_session_id)).copied()
    }

    /// Makes `key` the session of that identity.
    pub(super) fn claim(&mut self, supi: Supi, pdu_session_id: u8, key: Key) {
        self.0.insert((supi, pdu_session_id), key);
    }

    /// Frees the identity of a session, if it is still that session's.
    pub(super) fn free(&mut self, session: &SmContext) {
        let identity = (session.supi.clone(), session.pdu_session_id);
        if self.0.get(&identity) == Some(&session.key) {
            self.0.remove(&identity);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A new SEID for the session with this key.
pub(super) fn allocate_seid(identity: &Identity, rng: &mut Rng, key: Key) -> Seid {
    let random = loop {
        // With index 0 and random bits 0 the SEID would be 0, which means that there is no session.
        match rng.next_u64() & SEID_RANDOM {
            0 => {}
            random => break random,
        }
    };
    Seid::new(identity.instance, identity.shard, random | u64::from(key.index()))
}

/// The session with this SEID, at the anchor or at the front UPF. The SEID contains the index in the table.
pub(super) fn find_seid(sessions: &Sessions, seid: Seid) -> Option<Key> {
    let seid = Seid(seid.0 & !FRONT_SEID);
    let key = sessions.find((seid.session() & SEID_INDEX) as u32, 0, 0)?;
    sessions.get(key).filter(|session| session.seid == seid).map(|_| key)
}
