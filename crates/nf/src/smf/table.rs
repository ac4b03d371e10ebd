//! All SM contexts of a shard. A session is found by its reference, by its SEID, or by SUPI (or PEI) and PDU session identity.

use super::context::{FRONT_SEID, SmContext};
use crate::kit::{ContextIds, Contexts, Key, Rng};
use pith_types::{ContextId, Seid, UeIdentity};
use std::collections::HashMap;

/// Maximum number of sessions of a shard.
const LIMIT: u32 = 1 << 22;

/// A SEID contains the id of its session: the block, and in the low bits the number. The bits between them, except
/// [`FRONT_SEID`], are random as the number is, so that a SEID cannot be guessed (TS 33.515 4.2.2.1.2).
const SEID_RANDOM: u64 = (FRONT_SEID - 1) & !(u32::MAX as u64);

/// SM contexts by key.
pub(super) type Sessions = Contexts<SmContext>;

/// An empty table.
pub(super) const fn sessions() -> Sessions {
    Contexts::new(LIMIT)
}

/// Finds sessions by the identities of their UEs.
#[derive(Debug, Default)]
pub(super) struct Index(HashMap<(UeIdentity, u8), Key>);

impl Index {
    /// The session of that identity.
    pub(super) fn find(&self, ue: &UeIdentity, pdu_session_id: u8) -> Option<Key> {
        self.0.get(&(ue.clone(), pdu_session_id)).copied()
    }

    /// Makes `key` the session of that identity.
    pub(super) fn claim(&mut self, ue: UeIdentity, pdu_session_id: u8, key: Key) {
        self.0.insert((ue, pdu_session_id), key);
    }

    /// Frees the identity of a session, if it is still that session's.
    pub(super) fn free(&mut self, session: &SmContext) {
        let identity = (session.ue.clone(), session.pdu_session_id);
        if self.0.get(&identity) == Some(&session.key) {
            self.0.remove(&identity);
        }
    }

    /// Frees the identity of a session whose document is lost. Looks at the whole index.
    pub(super) fn free_all(&mut self, key: Key) {
        self.0.retain(|_, owner| *owner != key);
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A new SEID for the session with this id.
pub(super) fn allocate_seid(rng: &mut Rng, id: ContextId) -> Seid {
    let random = loop {
        // In block 0, with number 0 and random bits 0, the SEID would be 0, which means that there is no session.
        match rng.next_u64() & SEID_RANDOM {
            0 => {}
            random => break random,
        }
    };
    Seid::new(id.block, random | u64::from(id.number))
}

/// The session with this SEID, at any of its UPFs.
pub(super) fn find_seid(ids: &ContextIds, sessions: &mut Sessions, seid: Seid) -> Option<Key> {
    let key = ids.find(ContextId { block: seid.block(), number: seid.own() as u32 })?;
    sessions.get_mut(key).filter(|session| session.has_seid(seid)).map(|_| key)
}
