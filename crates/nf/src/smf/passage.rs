//! Sessions that pass to another shard with their block, while AMFs and UPFs continue.
//!
//! A session passes when it has answered all requests. Its UPFs keep its rules, with the same SEIDs and F-TEIDs. Responses of UPFs and replies of NFs for
//! which it waits follow it. The addresses of the block pass, too. A session with an address of another block keeps it, and
//! returns it to that block's owner when it ends.

use super::Smf;
use super::context::SmContext;
use super::context::document::{SECTIONS, pack, unpack};
use super::pool::PassedAddresses;
use super::selection::Upfs;
use crate::kit::document::{Document, Pack, PackError, Section, Sections, UnpackError, Writer};
use crate::kit::{
    Duration, Handles, Instant, Key, Level, Nf, Outbox, PassedContext, PassedPart, UNPLACED, WallClock,
};
use pith_types::{BlockId, ContextId};
use std::sync::Arc;

const REST: Section = Section { id: 1, name: "addresses and UPFs of a block", version: 1 };

/// The addresses of a block, and handles of UPFs that have restarted, with their names: sessions wait for them.
type Rest = (Vec<PassedAddresses>, Vec<(u64, Arc<str>)>);

fn pack_rest(rest: &Rest) -> Result<Document, PackError> {
    let mut writer = Writer::new(Nf::Smf, &Handles);
    writer.section(&REST, |writer| rest.pack(writer));
    writer.finish()
}

fn unpack_rest(document: &Document) -> Result<Rest, UnpackError> {
    Sections::of(document.octets(), Nf::Smf, &[REST], &Handles)?.unpack(&REST)
}

/// Whether a restored session waits for a UPF that is not associated yet.
fn has_expected_upf(session: &SmContext) -> bool {
    session.state().user_plane().is_some_and(|it| {
        let front = it.front.as_ref().map(|front| front.session.upf);
        [Some(it.anchor.upf), front].into_iter().flatten().any(Upfs::is_expected)
    })
}

impl Smf {
    /// A session of the block that has not answered a request, or is in a list of this shard, or has no copy here.
    pub(super) fn unsettled_session(&self, block: BlockId) -> Option<ContextId> {
        self.shared.ids.of_block(block).map(|(id, _)| id).find(|id| self.is_unsettled_session(*id))
    }

    pub(super) fn is_unsettled_session(&self, id: ContextId) -> bool {
        if self.ended.document(id).is_some() {
            return true;
        }
        let Some(key) = self.shared.ids.find(id) else { return false };
        let Some(session) = self.sessions.view(key) else { return true };
        session.replies_owed() > 0
            || session.is_in_transaction()
            || session.deletion.is_some()
            || has_expected_upf(&session)
            || self.restored.is_in_work(key)
            || self.unconfirmed.has(key)
            || self.awaited.contains_key(&key)
            || self.lost.iter().any(|(lost, _)| *lost == key)
    }

    /// Gives away the sessions of a block, and its addresses.
    pub(super) fn pass_sessions(&mut self, block: BlockId, out: &mut Outbox) -> PassedPart {
        let mut ids: Vec<_> = self.shared.ids.of_block(block).collect();
        ids.sort_unstable();
        let mut part = PassedPart::default();
        for (id, key) in ids {
            let Some(session) = self.sessions.remove(key) else { continue };
            self.shared.ids.free(id);
            self.restored.waiting.remove(&key);
            for (timer, _) in session.timers.running() {
                out.stop(key.to_u64(), timer.into());
            }
            self.shared.index.free(&session);
            for address in session.address.iter() {
                self.shared.pools.pass_used(address, block);
            }
            match pack(&session, &Handles, SECTIONS) {
                Ok(document) => {
                    let stored = self.tracker.counts_below(id);
                    part.contexts.push(PassedContext { id, key: key.to_u64(), document, stored });
                }
                Err(error) => out.log(Level::Error, || format!("session {id} is lost: {error}")),
            }
        }
        self.tracker.forget_block(block);
        part.rest = pack_rest(&(self.shared.pools.pass_block(block), self.shared.upfs.restarted())).ok();
        part
    }

    /// Takes the sessions of a block that another shard has given away.
    pub(super) fn take_sessions(&mut self, now: Instant, block: BlockId, part: PassedPart, out: &mut Outbox) {
        let rest = part.rest.as_ref().and_then(|rest| unpack_rest(rest).ok());
        let (addresses, restarted) = rest.unwrap_or_default();
        self.shared.upfs.note_restarted(restarted);
        self.shared.pools.take_block(block, addresses);
        for context in part.contexts {
            let id = context.id;
            if let Err(error) = self.take_session(now, &context, out) {
                out.log(Level::Error, || format!("session {id} is lost: {error}"));
            }
        }
        self.sessions.pack_idle();
    }

    fn take_session(
        &mut self,
        now: Instant,
        context: &PassedContext,
        out: &mut Outbox,
    ) -> Result<(), UnpackError> {
        let id = context.id;
        self.shared.ids.check_free(id)?;
        let session: SmContext = unpack(context.document.octets(), (UNPLACED, id), &Handles)?;
        let (ue, pdu_session_id, address) = (session.ue.clone(), session.pdu_session_id, session.address);
        let placed = self.sessions.insert_with(|key| {
            let mut session = Box::new(session);
            session.key = key;
            session
        });
        let key = placed.ok_or(UnpackError::NoRoom)?;
        self.shared.ids.claim(id, key);
        self.tracker.note_passed(id, context.stored);
        for address in address.iter() {
            self.shared.pools.take_used(address);
        }
        // Another session of that identity is one that the UE has replaced, or is replacing: the AMF releases one of them.
        if self.shared.index.find(&ue, pdu_session_id).is_none() {
            self.shared.index.claim(ue, pdu_session_id, key);
        }
        self.resume_timers(now, key, out);
        self.note_waiting(key);
        Ok(())
    }

    fn resume_timers(&mut self, now: Instant, key: Key, out: &mut Outbox) {
        self.with_session(now, key, out, |state, session, env| {
            let clock = WallClock::of_epoch(env.identity.epoch_unix_ms);
            for (timer, deadline) in session.timers.running().collect::<Vec<_>>() {
                let left = clock.instant(deadline).since(env.now).max(Duration::from_millis(1));
                session.start(env, timer, left);
            }
            state
        });
    }
}
