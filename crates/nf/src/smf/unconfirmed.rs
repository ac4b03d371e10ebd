//! Sessions of a former run that are not yet confirmed at their UPFs, or established there again.
//!
//! When a shard has none left at a UPF that has retained its sessions, it says so to the N4 gateway. When all shards have, the gateway
//! has the UPF delete the sessions that none of them knows (`gateway/n4/retention.rs`).

use super::Smf;
use super::procedure::State;
use crate::kit::{Key, N4Effect, Outbox, UpfHandle};
use std::collections::{BTreeMap, BTreeSet};

/// The UPFs of an unconfirmed session: as they were when it was read, perhaps without an association.
type Upfs = [Option<UpfHandle>; 2];

/// The unconfirmed sessions of a shard.
#[derive(Debug, Default)]
pub(super) struct Unconfirmed {
    sessions: BTreeMap<Key, Upfs>,
    /// Sessions that were read and are to end: until their next step.
    ending: BTreeSet<Key>,
    /// Their number at each UPF.
    at: BTreeMap<UpfHandle, usize>,
    /// All documents of the shard are read.
    has_read_all: bool,
    /// The associations of which the gateway knows.
    announced: BTreeSet<UpfHandle>,
}

impl Unconfirmed {
    /// Records a session that was read, in that state.
    pub(super) fn insert(&mut self, key: Key, state: &State) {
        let Some(user_plane) = state.user_plane().filter(|_| is_unconfirmed(state)) else {
            self.ending.insert(key);
            return;
        };
        let upfs = [Some(user_plane.anchor.upf), user_plane.front.as_ref().map(|front| front.session.upf)];
        if self.sessions.insert(key, upfs).is_none() {
            upfs.into_iter().flatten().for_each(|upf| *self.at.entry(upf).or_default() += 1);
        }
    }

    /// Whether the session is unconfirmed.
    pub(super) fn has(&self, key: Key) -> bool {
        self.sessions.contains_key(&key)
    }

    /// Whether the session was read, and another SMF of the set may have controlled it until now.
    pub(super) fn is_of_former(&self, key: Key) -> bool {
        self.has(key) || self.ending.contains(&key)
    }

    /// The session is confirmed, or over. Returns whether it was the last one at a UPF.
    fn remove(&mut self, key: Key) -> bool {
        self.ending.remove(&key);
        let Some(upfs) = self.sessions.remove(&key) else { return false };
        let mut is_last = false;
        for upf in upfs.into_iter().flatten() {
            if let Some(number) = self.at.get_mut(&upf) {
                *number -= 1;
                if *number == 0 {
                    self.at.remove(&upf);
                    is_last = true;
                }
            }
        }
        is_last
    }
}

impl Smf {
    /// The shard has read all documents: what it has read until now are all its sessions.
    pub(super) fn note_all_read(&mut self, out: &mut Outbox) {
        self.unconfirmed.has_read_all = true;
        self.announce_confirmed(out);
    }

    /// A step has led the session into this state.
    pub(super) fn note_step(&mut self, key: Key, is_unconfirmed: bool, out: &mut Outbox) {
        if !is_unconfirmed && self.unconfirmed.remove(key) {
            self.announce_confirmed(out);
        }
    }

    /// Says to the gateway at which UPFs all sessions are confirmed.
    pub(super) fn announce_confirmed(&mut self, out: &mut Outbox) {
        let Unconfirmed { at, has_read_all, announced, .. } = &mut self.unconfirmed;
        if !*has_read_all {
            return;
        }
        let open: BTreeSet<_> = at.keys().filter_map(|upf| self.shared.upfs.resolve(*upf)).collect();
        for upf in self.shared.upfs.retaining().filter(|upf| !open.contains(upf)) {
            if announced.insert(upf) {
                out.n4(N4Effect::Confirmed { upf });
            }
        }
    }
}

/// Whether a UPF of the session is still to be asked, or to answer.
pub(super) const fn is_unconfirmed(state: &State) -> bool {
    matches!(state, State::AwaitingRestoration(_) | State::AwaitingConfirmation(_))
}
