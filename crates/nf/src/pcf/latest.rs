//! The latest association of each purpose: of an NF for a subscriber (access), or for a PDU session.
//!
//! No specification says what a PCF does with a second request for the same purpose. The requester has forgotten the first one, or
//! did not get its answer.

use super::{Association, Context, Pcf};
use crate::kit::{Key, Owner, ProcedureName, shrink};
use foldhash::fast::FixedState;
use pith_types::Supi;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};

/// The purpose of an association: a hash of the NF's process, the SUPI and the PDU session identity. SUPIs are those of the UDM: a UE
/// cannot choose two with the same hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Purpose(u64);

/// What a table shows of an association whose copy may be packed or absent: its purpose; hashes of session and IPv6 prefix, and the IPv4
/// address. 0: there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub purpose: Purpose,
    pub session: u32,
    pub v4: u32,
    pub v6: u32,
}

fn mark_of(value: impl Hash) -> u32 {
    ((FixedState::default().hash_one(value) >> 32) as u32).max(1)
}

/// The mark of a session's identity.
pub(super) fn session_mark(supi: &Supi, pdu_session_id: u8) -> u32 {
    mark_of((supi.as_str(), pdu_session_id))
}

/// The mark of a text.
pub(super) fn text_mark(text: &str) -> u32 {
    mark_of(text)
}

/// The latest association of each purpose.
#[derive(Debug, Default)]
pub(super) struct Latest(HashMap<Purpose, Key, FixedState>);

impl Association {
    pub(super) fn purpose(&self) -> Purpose {
        let mut hasher = FixedState::default().build_hasher();
        match self.owner {
            Owner::Process => 0_u8.hash(&mut hasher),
            Owner::SameUser => 1_u8.hash(&mut hasher),
            Owner::Client(client) => (2_u8, client.process, client.issuer).hash(&mut hasher),
        }
        match &self.context {
            Context::Access(context) => (context.supi.as_str(), None::<u8>).hash(&mut hasher),
            Context::Session(context) => {
                (context.supi.as_str(), Some(context.pdu_session_id)).hash(&mut hasher);
            }
        }
        Purpose(hasher.finish())
    }

    pub(super) fn mark(&self) -> Mark {
        let purpose = self.purpose();
        match &self.context {
            Context::Access(_) => Mark { purpose, session: 0, v4: 0, v6: 0 },
            Context::Session(context) => Mark {
                purpose,
                session: session_mark(&context.supi, context.pdu_session_id),
                v4: context.ipv4_address.map_or(0, |v4| v4.to_bits()),
                v6: context.ipv6_address_prefix.as_deref().map_or(0, text_mark),
            },
        }
    }
}

impl Latest {
    /// Whether no association has the purpose of this one and is later.
    fn is(&self, purpose: Purpose, key: Key) -> bool {
        self.0.get(&purpose).is_none_or(|latest| *latest == key)
    }

    /// An association came from another shard: it has its purpose, unless one of this shard has it.
    pub(super) fn note_if_first(&mut self, purpose: Purpose, key: Key) {
        self.0.entry(purpose).or_insert(key);
    }

    /// An association has ended.
    pub(super) fn remove(&mut self, purpose: Purpose, key: Key) {
        if self.0.get(&purpose) == Some(&key) {
            self.0.remove(&purpose);
            shrink(&mut self.0);
        }
    }
}

impl Pcf {
    /// Whether an association is the latest of its purpose.
    pub(super) fn is_latest(&self, key: Key) -> bool {
        self.associations.view(key).is_none_or(|association| self.latest.is(association.purpose(), key))
    }

    /// Records that an association is the latest of its purpose, and deletes the former one. A former one whose creation is not
    /// answered yet ends with its answer.
    pub(super) fn replace_former(&mut self, key: Key) {
        let Some(purpose) = self.associations.view(key).map(|association| association.purpose()) else {
            return;
        };
        let Some(former) = self.latest.0.insert(purpose, key).filter(|former| *former != key) else { return };
        let id = self.associations.id(former);
        if self.associations.abandon(former).is_some() {
            if let Some(id) = id {
                self.ids.free(id);
                self.tracker.note_end(id, ProcedureName::Other);
            }
        } else if self.associations.view(former).is_some_and(|former| former.creating.is_none()) {
            self.delete(former);
        }
    }
}
