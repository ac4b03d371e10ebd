//! Sessions that outlive the process (design section 6): which are stored, and how those of a former run return.
//!
//! - **Stored** is a session as soon as it has resources at other NFs, and until these are released ([`EndedContexts`]). While it
//!   waits for the UDM, its establishment is not stored: the UE requests it again.
//! - **In a transaction,** while an answer to the AMF waits for a UPF, the session keeps the document of the transaction before: if
//!   the process ends, the AMF gets no answer. What UDM or PCF requested meanwhile is stored at once.
//! - **At once,** also with `soft`, is stored that a session is to end because UDM, PCF or AMF have reported why: they do so once.

use super::Smf;
use super::context::document::{SECTIONS, pack, unpack};
use super::context::{SmContext, UeAddress, UpfSession};
use super::procedure::{State, release};
use super::selection::ExpectedUpfs;
use crate::kit::document::UnpackError;
use crate::kit::{
    DocumentSink, Duration, Instant, Key, Level, Nf, Outbox, ProcedureName, StoreScope, StoredKey, Timer,
    UNPLACED, UpfHandle,
};
use pith_types::{ContextId, Seid};
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::net::IpAddr;

/// Number of sessions that the SMF restores at UPFs at once.
const BATCH: usize = 128;

/// Pause after such a batch, for the shard's other work.
const PAUSE: Duration = Duration::from_millis(5);

/// Sessions of a former run.
#[derive(Debug, Default)]
pub(super) struct Restored {
    /// Until all are read: those with a user plane, and those that are to end.
    read: Vec<(Key, UeAddress)>,
    pub(super) ending: Vec<(Key, UeAddress)>,
    /// Until all are read: those that were taken over and go on. The flag: the AMF's request was changing the rules at the UPF.
    pub(super) taken_over: Vec<(Key, UeAddress, bool)>,
    /// While sessions are taken over: what they have at UPFs. A response that is delivered again may be of one of these.
    pub(super) at_upfs: HashSet<(UpfHandle, Seid)>,
    /// While sessions are taken over: what is to be deleted at UPFs. The former run may not have sent the requests.
    pub(super) left: Vec<UpfSession>,
    /// Sessions that wait for their UPFs.
    pub(super) waiting: BTreeSet<Key>,
    /// Sessions whose UPFs may be associated now.
    due: VecDeque<Key>,
    /// Sessions that are restored at their UPFs when all are read, so that reading and UPFs do not compete for the CPU.
    later: Vec<Key>,
    /// Until all are read: those that the configuration has no place for any longer.
    misplaced: Misplaced,
}

/// Sessions of a former run that the configuration has no place for.
#[derive(Debug, Default)]
struct Misplaced {
    /// Those that are not ended yet.
    sessions: BTreeSet<Key>,
    /// The number of those whose address is in no pool of their data network, and the first address.
    by_address: Option<(usize, IpAddr)>,
    /// The number of those whose UPF is not configured, by its name.
    by_upf: BTreeMap<String, usize>,
}

impl Restored {
    /// Whether a session is still to be resumed.
    pub(super) fn is_in_work(&self, key: Key) -> bool {
        let read = self.read.iter().chain(&self.ending).any(|(of, _)| *of == key);
        read || self.taken_over.iter().any(|(of, ..)| *of == key)
            || self.due.contains(&key)
            || self.later.contains(&key)
    }

    /// Whether sessions wait for UPFs.
    pub(super) fn has_waiting(&self) -> bool {
        !(self.waiting.is_empty() && self.due.is_empty() && self.later.is_empty())
    }
}

impl Smf {
    /// Passes on the documents of changed sessions.
    pub(super) fn store_sessions(&mut self, scope: StoreScope, sink: &mut dyn DocumentSink) {
        let Some(whole) = self.tracker.tracking().map(|tracking| tracking.whole) else { return };
        for (id, procedure) in self.tracker.take(scope) {
            self.in_step = Some(id);
            sink.begin_procedure(procedure);
            let stored = StoredKey { nf: Nf::Smf, id };
            if let Some((ue, document)) = self.ended.document(id) {
                sink.restore_first();
                sink.write(stored, ue, document);
                self.tracker.note_stored(id, 0);
                continue;
            }
            if self.shared.ids.find(id).is_some_and(|key| !self.sessions.is_resident(key)) {
                continue;
            }
            let session = self.shared.ids.find(id).and_then(|key| self.sessions.view(key));
            match session.filter(|session| is_stored(session)) {
                // The answer of the UPF is a change.
                Some(session)
                    if !whole
                        && session.is_in_transaction()
                        && self.tracker.has_document(id)
                        && !self.tracker.is_required_in_transaction(id) => {}
                Some(session) => match pack(&session, &self.shared.upfs, SECTIONS) {
                    Ok(document) => {
                        if session.state().user_plane().is_some_and(|it| it.gnb.is_some())
                            || !session.leaving.is_empty()
                        {
                            sink.restore_first();
                        }
                        sink.write(stored, session.ue.supi(), &document);
                        self.tracker.note_stored(id, 0);
                    }
                    // Its UPF is lost, and the session ends shortly.
                    Err(_) => self.tracker.keep_change((id, procedure)),
                },
                None if self.tracker.note_deleted(id) => sink.delete(stored),
                None => {}
            }
        }
        self.in_step = None;
    }

    /// Takes a session back under its id.
    pub(super) fn restore_session(
        &mut self,
        id: ContextId,
        document: &[u8],
        is_stale: bool,
    ) -> Result<(), UnpackError> {
        self.shared.ids.check_free(id)?;
        // An AMF of the same process may retain connections under the same conditions, and deactivates the other sessions.
        let tracking = self.tracker.tracking();
        let keeps_tunnels = !is_stale && tracking.is_some_and(|tracking| !tracking.may_lag());
        let is_late = tracking.is_some_and(|tracking| tracking.is_late);
        let (mut session, has_user_plane) =
            unpack(document, (UNPLACED, id), &ExpectedUpfs::new(&mut self.shared.upfs))?
                .recover(keeps_tunnels, is_late);
        self.shared.upfs.deletions.append(&mut session.leaving);
        let is_misplaced = self.is_misplaced(&mut session);
        let (ue, pdu_session_id, address) = (session.ue.clone(), session.pdu_session_id, session.address);
        let placed = self.sessions.insert_with(|key| {
            session.key = key;
            Box::new(session)
        });
        let key = placed.ok_or(UnpackError::NoRoom)?;
        self.shared.ids.claim(id, key);
        self.tracker.note_stored(id, 0);
        if is_stale {
            // The next writer of a document that all NFs share would leave an outdated context out.
            self.tracker.keep_change((id, ProcedureName::Other));
        }
        if let Some(session) = self.sessions.view(key) {
            self.unconfirmed.insert(key, session.state());
        }
        if is_misplaced {
            self.restored.misplaced.sessions.insert(key);
        }
        match self.shared.index.find(&ue, pdu_session_id) {
            None if has_user_plane => {
                self.shared.index.claim(ue, pdu_session_id, key);
                self.restored.read.push((key, address));
            }
            // It has ended, or the UE has replaced it: one identity has one session.
            _ => self.restored.ending.push((key, address)),
        }
        self.sessions.pack_idle();
        Ok(())
    }

    /// Sessions are read: claims their addresses, ends those that cannot go on, and restores the others when their UPFs are
    /// associated: at once if they are needed, else when all are read.
    pub(super) fn resume_sessions(&mut self, now: Instant, is_needed: bool, out: &mut Outbox) {
        let read = std::mem::take(&mut self.restored.read);
        let mut ending = std::mem::take(&mut self.restored.ending);
        let taken_over = std::mem::take(&mut self.restored.taken_over);
        let misplaced = std::mem::take(&mut self.restored.misplaced.sessions);
        let taken_over_addresses = taken_over.iter().flat_map(|(_, address, _)| address.iter());
        let addresses = read.iter().chain(&ending).flat_map(|(_, address)| address.iter());
        let addresses = addresses.chain(taken_over_addresses);
        let foreign: BTreeSet<_> = self.shared.pools.reserve(addresses).into_iter().collect();
        if !self.shared.ids.is_restoring() {
            self.shared.pools.claim_reserved();
        }
        self.delete_leaving(now, out);
        for at in std::mem::take(&mut self.restored.left) {
            self.shared.env_of_former(now, out).delete_at_upf(at);
        }
        let is_foreign = |address: &UeAddress| address.iter().any(|it| foreign.contains(&it));
        let has_no_place = |key: Key, address: &UeAddress| is_foreign(address) || misplaced.contains(&key);
        let (ends, waiting): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|(key, address)| has_no_place(*key, address));
        ending.extend(ends);
        let (ends, taken_over): (Vec<_>, Vec<_>) =
            taken_over.into_iter().partition(|(_, address, _)| is_foreign(address));
        ending.extend(ends.into_iter().map(|(key, address, _)| (key, address)));
        report_foreign(&foreign, out);
        let taken_over = taken_over.into_iter().map(|(key, _, is_modified)| (key, is_modified)).collect();
        self.resume_taken_over(now, taken_over, out);
        for (key, address) in ending {
            let mut goes_on = false;
            if let Some(session) = self.sessions.get_mut(key) {
                session.address = session.address.filter(|it| !foreign.contains(&it));
                // The registration in the UDM is that of the session that has replaced it.
                let other = self.shared.index.find(&session.ue, session.pdu_session_id);
                session.is_registered &= other.is_none_or(|other| other == key);
                goes_on = has_no_place(key, &address) && other == Some(key);
            }
            self.with_session(now, key, out, |state, session, env| {
                if let State::AwaitingReleaseComplete(state) = state {
                    return state.resume(session, env);
                }
                if goes_on {
                    return release::reactivate(state, session, env);
                }
                session.log(env, Level::Info, || {
                    "the session ends: it was being set up or released when the process ended".to_owned()
                });
                release::end_and_notify_amf(state.into_held(), session, env)
            });
        }
        let waiting = waiting.into_iter().map(|(key, _)| key);
        if is_needed || !self.shared.ids.is_restoring() {
            self.restore_soon(now, waiting.collect(), out);
        } else {
            self.restored.later.extend(waiting);
        }
        if !self.shared.ids.is_restoring() {
            report_misplaced(&mut self.restored.misplaced, out);
            self.note_all_read(out);
        }
    }

    /// Whether the configuration has no place for a session of a former run any longer: its address is in no pool of its data network
    /// (in that of another one it would have that one's rights), or nothing is at its UPF. It loses such an address.
    fn is_misplaced(&mut self, session: &mut SmContext) -> bool {
        let (config, misplaced) = (&self.shared.config, &mut self.restored.misplaced);
        let delegation =
            config.network(&session.dnn, &session.snssai).map_or(0, |network| network.delegation);
        // A prefix that is shorter than those of the pool has several of them, which other sessions get.
        let is_shorter = session.address.delegation > delegation;
        let network = config.network(&session.dnn, &session.snssai);
        // It would take an address that a subscriber has always, or has one that others may get.
        let is_of_other_kind = |it: IpAddr| {
            network.is_some_and(|network| config.is_static(network, it) != session.has_static(it))
        };
        let is_elsewhere = |it: &IpAddr| {
            !config.has_address(&session.dnn, &session.snssai, *it)
                || (it.is_ipv6() && is_shorter)
                || is_of_other_kind(*it)
        };
        let elsewhere = session.address.iter().find(is_elsewhere);
        if let Some(address) = elsewhere {
            misplaced.by_address.get_or_insert((0, address)).0 += 1;
            session.address = UeAddress::default();
        }
        let user_plane = session.state().user_plane();
        let front = user_plane.and_then(|it| it.front.as_ref()).filter(|front| front.is_needed);
        let needed = user_plane.map(|it| it.anchor.upf).into_iter().chain(front.map(|it| it.session.upf));
        let removed = needed.filter_map(|upf| self.shared.upfs.removed(upf)).next();
        if let Some(name) = removed {
            *misplaced.by_upf.entry(name.to_owned()).or_default() += 1;
        }
        elsewhere.is_some() || removed.is_some()
    }

    /// Requests UPFs to delete the sessions that a former run had ended. A UPF that has retained none has none of them.
    pub(super) fn delete_leaving(&mut self, now: Instant, out: &mut Outbox) {
        let deletions = std::mem::take(&mut self.shared.upfs.deletions);
        let env = &mut self.shared.env_of_former(now, out);
        for at in deletions {
            match env.upfs.resolve(at.upf) {
                Some(upf) if env.upfs.may_have_sessions(upf) => env.delete_at_upf(UpfSession { upf, ..at }),
                Some(_) => {}
                None => env.upfs.deletions.push(at),
            }
        }
    }

    /// All sessions are read.
    pub(super) fn restore_later_sessions(&mut self, now: Instant, out: &mut Outbox) {
        let later = std::mem::take(&mut self.restored.later);
        self.restore_soon(now, later, out);
        report_misplaced(&mut self.restored.misplaced, out);
        self.note_all_read(out);
    }

    fn restore_soon(&mut self, now: Instant, sessions: Vec<Key>, out: &mut Outbox) {
        // If some are due already, a timer is running.
        let is_running = !self.restored.due.is_empty();
        self.restored.due.extend(sessions);
        if !is_running {
            self.restore_batch(now, out);
        }
    }

    /// A UPF is associated: sessions that waited for it are restored, in batches.
    pub(super) fn restore_sessions(&mut self, now: Instant, out: &mut Outbox) {
        if !self.restored.waiting.is_empty() {
            self.restored.due.extend(std::mem::take(&mut self.restored.waiting));
            self.restore_batch(now, out);
        }
    }

    /// Records a session that waits for its UPFs.
    pub(super) fn note_waiting(&mut self, key: Key) {
        let state = self.sessions.get_mut(key).map(|session| session.state());
        if matches!(state, Some(State::AwaitingRestoration(waiting)) if waiting.call.is_none()) {
            self.restored.waiting.insert(key);
        }
    }

    /// Restores a batch of sessions at their UPFs.
    pub(super) fn restore_batch(&mut self, now: Instant, out: &mut Outbox) {
        for _ in 0..BATCH {
            let Some(key) = self.restored.due.pop_front() else { break };
            self.with_session(now, key, out, |state, session, env| match state {
                State::AwaitingRestoration(waiting) if waiting.call.is_none() => waiting.begin(session, env),
                state => state,
            });
            self.note_waiting(key);
            self.sessions.pack_idle();
        }
        if self.restored.due.is_empty() {
            self.restored.due = VecDeque::new();
        } else {
            out.start(0, Timer::RestoredContexts, PAUSE);
        }
    }
}

/// Sessions have addresses that are in no pool, or that other sessions have: they cannot be reached.
fn report_foreign(addresses: &BTreeSet<IpAddr>, out: &mut Outbox) {
    if let Some(first) = addresses.first() {
        out.log(Level::Warn, || {
            format!(
                "{} sessions have addresses that others have, or that are in no pool (the first is {first}): they are released, and their UEs \
                 requested to establish them again",
                addresses.len()
            )
        });
    }
}

/// Says how many sessions the configuration has no place for.
fn report_misplaced(misplaced: &mut Misplaced, out: &mut Outbox) {
    const END: &str = "they are released, and their UEs requested to establish them again";
    if let Some((sessions, first)) = misplaced.by_address.take() {
        out.log(Level::Warn, || {
            format!("{sessions} sessions have addresses that are in no pool of their data network (the first is {first}): {END}")
        });
    }
    for (name, sessions) in std::mem::take(&mut misplaced.by_upf) {
        out.log(Level::Warn, || {
            format!("{sessions} sessions were at UPF {name}, which is not in 'n4.upfs': {END}")
        });
    }
}

/// Whether a session has a document: it has resources at other NFs.
fn is_stored(session: &SmContext) -> bool {
    match session.state() {
        State::AwaitingSubscriptionData(_) | State::Abandoned(_) | State::Over => false,
        State::AwaitingPolicyDecision(_) => session.is_registered,
        _ => true,
    }
}
