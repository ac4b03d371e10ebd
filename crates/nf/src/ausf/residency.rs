//! Challenges that outlive the process: an AUSF that is killed between a challenge and its confirmation costs the UE no repetition of its
//! message (T3510, T3520).
//!
//! - **Stored** is an authentication that waits for the UE, if the process has no AMF. The AMF in another process goes on with the
//!   registration, and its next request finds the authentication. If the process has the AMF, the registration ends with both, and nothing
//!   of a UE that is not authenticated is stored.
//! - **Bounded**: at most [`super::MAX_CHALLENGED`] of a shard, with 0.3 kB each, for [`super::CHALLENGE_LIFETIME`]. `soft` does not write
//!   a challenge that is answered in 200 ms.
//! - **Not stored** is one that waits for the UDM: the AMF has no answer, and its request is repeated.

use super::{Ausf, document};
use crate::kit::document::UnpackError;
use crate::kit::{
    DocumentSink, Duration, Instant, Key, Nf, Outbox, ProcedureName, StoreScope, StoredKey, Timer, WallClock,
};
use pith_types::ContextId;

impl Ausf {
    /// Passes on the documents of authentications that wait for the UE.
    pub(super) fn store_challenges(&mut self, scope: StoreScope, sink: &mut dyn DocumentSink) {
        for (id, procedure) in self.tracker.take(scope) {
            let stored = StoredKey { nf: Nf::Ausf, id };
            sink.begin_procedure(procedure);
            let entry = self.ids.find(id).and_then(|key| self.authentications.get(key));
            let entry = entry.filter(|entry| entry.state.awaits_ue());
            match entry.and_then(|entry| document::pack(entry).ok()) {
                Some(document) => {
                    sink.write(stored, None, &document);
                    self.tracker.note_stored(id, 0);
                }
                None if self.tracker.note_deleted(id) => sink.delete(stored),
                None => {}
            }
        }
    }

    /// Takes a challenge back under its id.
    pub(super) fn restore_challenge(&mut self, id: ContextId, document: &[u8]) -> Result<(), UnpackError> {
        self.ids.check_free(id)?;
        let entry = document::unpack(document, id)?;
        let (key, place) = self.authentications.vacant().ok_or(UnpackError::NoRoom)?;
        *place = Some(entry);
        self.ids.claim(id, key);
        self.tracker.note_stored(id, 0);
        self.challenged.push_back(key);
        self.restored.push(key);
        Ok(())
    }

    /// All challenges are read: each ends when the UE's response is overdue.
    pub(super) fn resume_challenges(&mut self, now: Instant, out: &mut Outbox) {
        let clock = WallClock::of_epoch(self.identity.epoch_unix_ms);
        for key in std::mem::take(&mut self.restored) {
            let Some(entry) = self.authentications.get(key) else { continue };
            match entry.deadline.filter(|_| entry.state.awaits_ue()).map(|deadline| clock.instant(deadline)) {
                Some(deadline) if deadline > now => {
                    out.start(key.to_u64(), Timer::Expiry, deadline.since(now).max(Duration::from_millis(1)));
                }
                _ => drop(self.remove(key)),
            }
        }
        self.end_excess(out);
    }

    /// Records a change of an authentication.
    pub(super) fn note_change(&mut self, key: Key) {
        if self.tracker.tracking().is_some()
            && let Some(entry) = self.authentications.get(key)
        {
            self.tracker.note_change(entry.id, Some(ProcedureName::Registration));
        }
    }
}
