//! All SM contexts of a shard, and the ways to find one: by reference, by SEID, by subscriber and session identity.

use super::context::{FRONT_SEID, SmContext};
use crate::kit::{Arena, Identity, Key, Rng};
use pith_types::{Seid, Supi};
use std::collections::HashMap;

/// Sessions of a shard at most.
const LIMIT: u32 = 1 << 20;

/// Bits of a session's own part of a SEID that are its place in the table, below [`LIMIT`].
const SEID_PLACE: u64 = LIMIT as u64 - 1;

/// Bits that are random, so that a SEID cannot be guessed (TS 33.515 4.2.2.1.2): all others but [`FRONT_SEID`].
const SEID_RANDOM: u64 = 0xffff_ffff_ffff & !SEID_PLACE & !FRONT_SEID;

/// SM contexts by key.
pub(super) type Sessions = Arena<SmContext>;

/// No session, and room for as many as a shard may have.
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

/// A new SEID for the session at that place.
pub(super) fn allocate_seid(identity: &Identity, rng: &mut Rng, key: Key) -> Seid {
    let random = loop {
        // Place 0 must not have SEID 0, which means that there is none.
        match rng.next_u64() & SEID_RANDOM {
            0 => {}
            random => break random,
        }
    };
    Seid::new(identity.instance, identity.shard, random | u64::from(key.index()))
}

/// The session whose SEID this is, at the anchor or at the front UPF: the SEID holds its place.
pub(super) fn find_seid(sessions: &Sessions, seid: Seid) -> Option<Key> {
    let seid = Seid(seid.0 & !FRONT_SEID);
    let key = sessions.find((seid.session() & SEID_PLACE) as u32, 0, 0)?;
    sessions.get(key).filter(|session| session.seid == seid).map(|_| key)
}
