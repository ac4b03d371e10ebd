//! Authentication Server Function (TS 29.509, TS 33.501 6.1): authenticates UEs for the AMF.
//!
//! Both methods begin with a vector from the UDM, which chooses the method by the subscription:
//!
//! ```text
//!  AMF                             AUSF                                     UDM
//!   | ─> Authenticate               | AwaitingVector  GenerateAuthData ─>    |
//!   |                               |                 vector, SUPI <─        |
//! ```
//!
//! 5G-AKA (TS 33.501 6.1.3.2):
//!
//! ```text
//!   | <─ RAND, AUTN, HXRES*         | Challenged: XRES*, K_SEAF, at most 60 s
//!   | ─> FiveGAkaConfirmation       | compares RES* with XRES*; reports the result to the UDM
//!   | <─ result, SUPI, K_SEAF       | Ended
//! ```
//!
//! EAP-AKA' (TS 33.501 6.1.3.1):
//!
//! ```text
//!   | <─ EAP-Request                | AwaitingEapResponse: XRES, K_aut, K_SEAF, at most 60 s
//!   | ─> EapAuthMethod              | EAP-Response: verified. After a synchronisation failure the AUSF requests another
//!   |                               | vector (AwaitingResyncVector); before EAP-Failure it sends a notification
//!   |                               | (AwaitingNotificationResponse); both lead to a further EAP-Request
//!   | <─ EAP-Success, SUPI, K_SEAF  | Ended; the result is reported to the UDM
//! ```

mod config;
mod document;
mod eap;
mod procedure;
mod residency;
#[cfg(test)]
mod tests;

use crate::kit::document::UnpackError;
use crate::kit::{
    Arena, ContextIds, DocumentSink, Duration, Identity, Input, Instant, Key, Level, NetworkFunction, Outbox,
    Owner, PassedContext, PassedPart, PendingReply, ProcedureName, References, Rng, StoreScope, Tag, Target,
    Timer, TimerKey, Tracker, WallClock,
};
pub use config::AusfConfig;
use pith_sbi::common::DateTime;
use pith_sbi::nausf_ueauthentication::{EapAuthMethod, FiveGAkaConfirmation};
use pith_sbi::{Base64, Cause, Problem, Reply, Request, Response};
use pith_types::{BlockId, ContextId, OwnerMap};
use procedure::eap_aka_prime::{
    AwaitingEapResponse, AwaitingNotificationResponse, AwaitingResyncVector, Step,
};
use procedure::five_g_aka::Challenged;
use procedure::vector::{AwaitingVector, FirstChallenge};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Maximum number of authentications in progress on a shard. Beyond it requests are rejected as congestion.
const MAX_AUTHENTICATIONS: u32 = 1 << 18;

/// Maximum number of authentications that wait for a UE's response: twice the maximum number of unauthenticated
/// registrations of the shard's AMF; 10 MB. Beyond it the oldest of the process with most are ended, so that a flood of
/// unfinished registrations neither causes the rejection of new ones nor ends those of other AMFs.
const MAX_CHALLENGED: usize = 32_768;

/// Number of authentications that are ended together when the limit is exceeded.
const EXCESS_BATCH: usize = MAX_CHALLENGED / 8;

/// Maximum time until a UE's response. The AMF has given up before: its T3560 of 6 s has expired five times (TS 24.501
/// table 10.2.2).
const CHALLENGE_LIFETIME: Duration = Duration::from_secs(60);

/// The tag of calls whose reply is ignored: the report of a result to the UDM.
const IGNORE_REPLY: Tag = Tag::new(u64::MAX, 0);

/// The states of an authentication, in their order. A state that waits for the UDM has the pending reply to the AMF.
#[derive(Default)]
enum Authentication {
    AwaitingVector(AwaitingVector, PendingReply),
    Challenged(Challenged),
    AwaitingEapResponse(AwaitingEapResponse),
    AwaitingResyncVector(AwaitingResyncVector, PendingReply),
    AwaitingNotificationResponse(AwaitingNotificationResponse),
    /// Ended; also the value while a handler computes the next state.
    #[default]
    Ended,
}

impl Authentication {
    /// The pending reply to the AMF, while the state waits for the UDM.
    fn into_reply(self) -> Option<PendingReply> {
        match self {
            Self::AwaitingVector(_, reply) | Self::AwaitingResyncVector(_, reply) => Some(reply),
            Self::Challenged(_)
            | Self::AwaitingEapResponse(_)
            | Self::AwaitingNotificationResponse(_)
            | Self::Ended => None,
        }
    }

    /// Whether the state waits for the UE.
    const fn awaits_ue(&self) -> bool {
        self.is_five_g_aka() || self.is_eap()
    }

    /// Whether the state waits for the UE's response to a 5G-AKA challenge.
    const fn is_five_g_aka(&self) -> bool {
        matches!(self, Self::Challenged(_))
    }

    /// Whether the state waits for an EAP-Response.
    const fn is_eap(&self) -> bool {
        matches!(self, Self::AwaitingEapResponse(_) | Self::AwaitingNotificationResponse(_))
    }
}

/// An authentication's context.
struct Entry {
    /// Its name in references.
    id: ContextId,
    state: Authentication,
    /// When the UE's response is overdue, while [`Timer::Expiry`] runs.
    deadline: Option<DateTime>,
    /// The AMF that requested it; not stored: `None` once the document was loaded.
    owner: Option<Owner>,
}

/// The AUSF of a shard.
pub struct Ausf {
    identity: Identity,
    config: AusfConfig,
    /// Ids of authentications in URIs.
    references: References,
    ids: ContextIds,
    authentications: Arena<Entry>,
    /// Authentications that wait for a UE's response, oldest first. Keys of ended ones remain until
    /// [`Self::end_excess`] removes them.
    challenged: VecDeque<Key>,
    /// Number of the AMF's requests that wait for the UDM.
    replies_owed: usize,
    /// Authentications that changed, for a store.
    tracker: Tracker,
    /// Authentications of a former run, to be resumed.
    restored: Vec<Key>,
    /// Contexts pass through their documents after each step.
    reloads: bool,
}

impl Ausf {
    /// Creates an AUSF without authentications.
    pub fn new(identity: Identity, config: AusfConfig, rng: Rng) -> Self {
        Self {
            references: References::new(&identity.reference_key),
            ids: ContextIds::new(&identity, rng),
            identity,
            config,
            authentications: Arena::new(MAX_AUTHENTICATIONS),
            challenged: VecDeque::new(),
            replies_owed: 0,
            tracker: Tracker::default(),
            restored: Vec::new(),
            reloads: false,
        }
    }

    fn request(&mut self, now: Instant, pending: PendingReply, request: Request, out: &mut Outbox) {
        match request {
            Request::Authenticate(request) => {
                match AwaitingVector::begin(&self.identity, &self.config, request.body) {
                    Ok((call, state)) => {
                        let owner = Owner::of(pending.caller());
                        self.begin(Authentication::AwaitingVector(state, pending), owner, call.into(), out);
                    }
                    Err(problem) => pending.refuse(*problem, out),
                }
            }
            Request::FiveGAkaConfirmation(request) => self.confirm(now, pending, *request, out),
            Request::EapAuthMethod(request) => self.eap_response(now, pending, *request, out),
            Request::DeleteFiveGAkaAuthenticationResult(request) => {
                self.delete(pending, &request.auth_ctx_id, Authentication::is_five_g_aka, out);
            }
            Request::DeleteEapAuthenticationResult(request) => {
                self.delete(pending, &request.auth_ctx_id, Authentication::is_eap, out);
            }
            _ => pending.refuse(Problem::new(Cause::ResourceUriStructureNotFound), out),
        }
    }

    /// Requests a vector from the UDM.
    fn begin(&mut self, authentication: Authentication, owner: Owner, call: Request, out: &mut Outbox) {
        let Some((key, place)) = self.authentications.vacant() else {
            if let Some(pending) = authentication.into_reply() {
                pending.refuse(Problem::congestion(1), out);
            }
            return;
        };
        *place = Some(Entry {
            id: self.ids.allocate(key),
            state: authentication,
            deadline: None,
            owner: Some(owner),
        });
        self.replies_owed += 1;
        self.changed(key);
        out.call(Tag::new(key.to_u64(), 0), Target::any(), call);
    }

    /// Handles the UDM's reply: the first vector, or another one after a resynchronisation.
    fn reply(&mut self, now: Instant, tag: Tag, reply: Reply, out: &mut Outbox) {
        let key = Key::from_u64(tag.owner);
        match self.take(key, |state| !state.awaits_ue()) {
            Authentication::AwaitingVector(state, pending) => {
                self.replies_owed -= 1;
                match state.reply(reply) {
                    Ok(first) => self.challenge((now, key), pending, first, out),
                    Err(problem) => self.fail(key, pending, *problem, out),
                }
            }
            Authentication::AwaitingResyncVector(state, pending) => {
                self.replies_owed -= 1;
                match state.reply(reply) {
                    Ok(next) => {
                        pending.answer(next.session(&self.identity, &self.reference(key)), out);
                        self.store_and_start_timer(
                            (now, key),
                            Authentication::AwaitingEapResponse(next),
                            out,
                        );
                    }
                    Err(problem) => self.fail(key, pending, *problem, out),
                }
            }
            // The authentication has ended, or the reply is late: `take` does not take a state that waits for the UE.
            Authentication::Challenged(_)
            | Authentication::AwaitingEapResponse(_)
            | Authentication::AwaitingNotificationResponse(_)
            | Authentication::Ended => {}
        }
    }

    /// Ends an authentication because the UDM returned an error, and forwards its ProblemDetails.
    fn fail(&mut self, key: Key, pending: PendingReply, problem: Problem, out: &mut Outbox) {
        self.remove(key);
        pending.refuse(problem, out);
    }

    /// Sends the first challenge to the AMF (TS 33.501 6.1.3.2.0 steps 3 to 5, 6.1.3.1 step 3).
    fn challenge(
        &mut self,
        (now, key): (Instant, Key),
        pending: PendingReply,
        first: FirstChallenge,
        out: &mut Outbox,
    ) {
        let (identity, id) = (&self.identity, self.reference(key));
        let (response, next) = match first {
            FirstChallenge::FiveGAka(next) => (next.context(identity, &id), Authentication::Challenged(next)),
            FirstChallenge::EapAkaPrime(next) => {
                (next.context(identity, &id), Authentication::AwaitingEapResponse(next))
            }
        };
        self.store_and_start_timer((now, key), next, out);
        self.challenged.push_back(key);
        self.end_excess(out);
        pending.answer(response, out);
    }

    /// Ends the oldest authentications of the process with most, if more than [`MAX_CHALLENGED`] wait for a UE.
    fn end_excess(&mut self, out: &mut Outbox) {
        if self.challenged.len() <= MAX_CHALLENGED {
            return;
        }
        let authentications = &self.authentications;
        // An authentication that waits for the UDM is not ended: the AMF's request is still unanswered.
        self.challenged.retain(|key| authentications.get(*key).is_some_and(|entry| entry.state.awaits_ue()));
        if self.challenged.len() + EXCESS_BATCH > MAX_CHALLENGED {
            for key in self.excess() {
                self.end(key, out);
            }
            let authentications = &self.authentications;
            self.challenged.retain(|key| authentications.get(*key).is_some());
        }
        self.challenged.shrink_to(2 * self.challenged.len());
    }

    /// The oldest authentications of the process that has most waiting for a UE. There are few processes.
    fn excess(&self) -> Vec<Key> {
        let owner_of = |key: &Key| self.authentications.get(*key).and_then(|entry| entry.owner);
        let is_same = |one: Option<Owner>, other: Option<Owner>| {
            one == other || one.zip(other).is_some_and(|(one, other)| one.is_same_process(other))
        };
        let mut counts: Vec<(Option<Owner>, usize)> = Vec::new();
        for owner in self.challenged.iter().map(owner_of) {
            match counts.iter_mut().find(|(known, _)| is_same(*known, owner)) {
                Some((_, count)) => *count += 1,
                None => counts.push((owner, 1)),
            }
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count).and_then(|(owner, _)| owner);
        let its = self.challenged.iter().filter(|key| is_same(owner_of(key), most));
        its.take(EXCESS_BATCH).copied().collect()
    }

    /// Verifies RES*, answers the AMF, and reports the result to the UDM (TS 33.501 6.1.3.2.0 steps 10 to 12).
    fn confirm(
        &mut self,
        now: Instant,
        pending: PendingReply,
        request: FiveGAkaConfirmation,
        out: &mut Outbox,
    ) {
        let key = self.key_of(&request.auth_ctx_id);
        let Authentication::Challenged(challenged) = self.take(key, Authentication::is_five_g_aka) else {
            return pending.refuse(Problem::context_not_found(), out);
        };
        let (response, event) = challenged.confirm(&self.identity, now, &request.body);
        self.end(key, out);
        pending.answer(response, out);
        out.call(IGNORE_REPLY, Target::any(), event);
    }

    /// Handles an EAP-Response (TS 33.501 6.1.3.1 steps 8 to 10; TS 29.509 5.2.2.2.3).
    fn eap_response(
        &mut self,
        now: Instant,
        pending: PendingReply,
        request: EapAuthMethod,
        out: &mut Outbox,
    ) {
        let key = self.key_of(&request.auth_ctx_id);
        let packet = request.body.eap_payload.map(|Base64(packet)| packet).unwrap_or_default();
        let step = match self.take(key, Authentication::is_eap) {
            Authentication::AwaitingEapResponse(state) => {
                state.on_response(&self.identity, now, &request.auth_ctx_id, &packet)
            }
            Authentication::AwaitingNotificationResponse(state) => {
                let (response, event) = state.on_response(&self.identity, now);
                Step::Failure(response, event)
            }
            _ => return pending.refuse(Problem::context_not_found(), out),
        };
        self.eap_step((now, key), pending, step, out);
    }

    fn eap_step(&mut self, (now, key): (Instant, Key), pending: PendingReply, step: Step, out: &mut Outbox) {
        match step {
            Step::Success(response, event) | Step::Failure(response, event) => {
                self.end(key, out);
                pending.answer(response, out);
                out.call(IGNORE_REPLY, Target::any(), event);
            }
            Step::Notified(response, next) => {
                let next = Authentication::AwaitingNotificationResponse(next);
                self.store_and_start_timer((now, key), next, out);
                pending.answer(response, out);
            }
            Step::Resynchronise(call, next) => {
                out.stop(key.to_u64(), Timer::Expiry);
                self.store(key, Authentication::AwaitingResyncVector(next, pending), None);
                self.replies_owed += 1;
                out.call(Tag::new(key.to_u64(), 0), Target::any(), call.into());
            }
            Step::Refused(problem, state) => {
                let deadline = self.authentications.get(key).and_then(|entry| entry.deadline);
                self.store(key, Authentication::AwaitingEapResponse(state), deadline);
                pending.refuse(*problem, out);
            }
        }
    }

    /// Aborts an authentication that waits for the UE. After its end the AUSF keeps no result that a consumer could delete
    /// (TS 29.509 5.2.2.2.4).
    fn delete(
        &mut self,
        pending: PendingReply,
        id: &str,
        expected: fn(&Authentication) -> bool,
        out: &mut Outbox,
    ) {
        let key = self.key_of(id);
        match self.take(key, expected) {
            Authentication::Ended => pending.refuse(Problem::context_not_found(), out),
            _ => {
                self.end(key, out);
                pending.answer(Response::NoContent, out);
            }
        }
    }

    /// Takes the state of an authentication if it is of the given kind. The caller stores the next
    /// state or calls [`Self::end`].
    fn take(&mut self, key: Key, expected: fn(&Authentication) -> bool) -> Authentication {
        let entry = self.authentications.get_mut(key).filter(|entry| expected(&entry.state));
        entry.map(|entry| std::mem::take(&mut entry.state)).unwrap_or_default()
    }

    /// Stores the next state, which waits for the UDM or is unchanged.
    fn store(&mut self, key: Key, state: Authentication, deadline: Option<DateTime>) {
        if let Some(entry) = self.authentications.get_mut(key) {
            (entry.state, entry.deadline) = (state, deadline);
        }
        self.changed(key);
    }

    /// A context has changed: in simulations it passes through its document.
    fn changed(&mut self, key: Key) {
        self.note_change(key);
        if self.reloads {
            self.reload(key);
        }
    }

    /// Stores the next state, which waits for the UE's response, and starts its timer.
    fn store_and_start_timer(&mut self, (now, key): (Instant, Key), next: Authentication, out: &mut Outbox) {
        self.store(key, next, Some(self.identity.date_time(now + CHALLENGE_LIFETIME)));
        out.start(key.to_u64(), Timer::Expiry, CHALLENGE_LIFETIME);
    }

    /// The authentication of an id; one that does not exist for an id that was not given out.
    fn key_of(&self, id: &str) -> Key {
        let id = self.references.id(id);
        id.and_then(|id| self.ids.find(id)).unwrap_or(Key::from_u64(u64::MAX))
    }

    /// The reference of an authentication.
    fn reference(&self, key: Key) -> String {
        let id = self.authentications.get(key).map(|entry| entry.id);
        id.map(|id| self.references.of_id(id)).unwrap_or_default()
    }

    fn remove(&mut self, key: Key) -> Option<Entry> {
        let entry = self.authentications.remove(key)?;
        self.ids.free(entry.id);
        self.tracker.note_end(entry.id, ProcedureName::Registration);
        Some(entry)
    }

    fn end(&mut self, key: Key, out: &mut Outbox) {
        out.stop(key.to_u64(), Timer::Expiry);
        if let Some(pending) = self.remove(key).and_then(|entry| entry.state.into_reply()) {
            self.replies_owed -= 1;
            pending.refuse(Problem::congestion(1), out);
        }
    }

    fn timer(&mut self, key: TimerKey) {
        let owner = Key::from_u64(key.owner);
        let awaits_ue = self.authentications.get(owner).is_some_and(|entry| entry.state.awaits_ue());
        if key.timer == Timer::Expiry && awaits_ue {
            self.remove(owner);
        }
    }

    /// Number of authentications in progress.
    pub fn pending(&self) -> usize {
        self.authentications.len()
    }
}

impl NetworkFunction for Ausf {
    fn handle(&mut self, now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Request { reply, request } => self.request(now, reply, request, out),
            Input::Reply { tag, .. } if tag == IGNORE_REPLY => {}
            Input::Reply { tag, reply, .. } => self.reply(now, tag, reply, out),
            Input::Timer(key) => self.timer(key),
            Input::N2(_) | Input::N4(_) | Input::Routed { .. } | Input::Stored { .. } => {}
        }
    }

    fn change_owners(&mut self, owners: &Arc<OwnerMap>) {
        self.identity.owners = Arc::clone(owners);
        self.ids.change_blocks(&self.identity);
    }

    fn unsettled(&self, block: BlockId) -> Option<ContextId> {
        self.ids.of_block(block).map(|(id, _)| id).find(|id| self.is_unsettled(*id))
    }

    fn is_unsettled(&self, id: ContextId) -> bool {
        let entry = self.ids.find(id).and_then(|key| self.authentications.get(key));
        entry.is_some_and(|entry| !entry.state.awaits_ue())
    }

    fn pass_block(&mut self, _now: Instant, block: BlockId, out: &mut Outbox) -> PassedPart {
        let mut ids: Vec<_> = self.ids.of_block(block).collect();
        ids.sort_unstable();
        let (mut part, mut owners) = (PassedPart::default(), Vec::new());
        for (id, key) in ids {
            out.stop(key.to_u64(), Timer::Expiry);
            let stored = self.tracker.counts_below(id);
            let Some(entry) = self.remove(key) else { continue };
            match document::pack(&entry) {
                Ok(document) => {
                    owners.push((id.to_u64(), entry.owner));
                    part.contexts.push(PassedContext { id, key: key.to_u64(), document, stored });
                }
                Err(error) => out.log(Level::Error, || format!("an authentication is lost: {error}")),
            }
        }
        self.tracker.forget_block(block);
        part.rest = document::pack_owners(&owners).ok();
        part
    }

    fn take_block(&mut self, now: Instant, _block: BlockId, part: PassedPart, out: &mut Outbox) {
        let owners = part.rest.and_then(|rest| document::unpack_owners(&rest).ok()).unwrap_or_default();
        let owners: HashMap<u64, Option<Owner>> = owners.into_iter().collect();
        for PassedContext { id, document, stored, .. } in part.contexts {
            let Ok(entry) = document::unpack(document.octets(), id) else { continue };
            let (deadline, owner) = (entry.deadline, owners.get(&id.to_u64()).copied().flatten());
            let Ok(key) = self.authentications.insert(Entry { owner, ..entry }) else { continue };
            self.ids.claim(id, key);
            self.tracker.note_passed(id, stored);
            self.challenged.push_back(key);
            if let Some(deadline) = deadline {
                let clock = WallClock::of_epoch(self.identity.epoch_unix_ms);
                let left = clock.instant(deadline).since(now).max(Duration::from_millis(1));
                out.start(key.to_u64(), Timer::Expiry, left);
            }
        }
        self.end_excess(out);
    }

    fn key_of(&self, id: ContextId) -> Option<u64> {
        self.ids.find(id).map(Key::to_u64)
    }

    fn contexts_in(&self, block: BlockId) -> usize {
        self.ids.of_block(block).count()
    }

    fn replies_owed(&self) -> Option<usize> {
        Some(self.replies_owed)
    }

    fn reload_contexts(&mut self) {
        self.reloads = true;
    }

    fn tracker(&self) -> Option<&Tracker> {
        Some(&self.tracker)
    }

    fn tracker_mut(&mut self) -> Option<&mut Tracker> {
        Some(&mut self.tracker)
    }

    fn store_contexts(&mut self, scope: StoreScope, sink: &mut dyn DocumentSink) {
        self.store_challenges(scope, sink);
    }

    fn restore_context(
        &mut self,
        _now: Instant,
        id: ContextId,
        document: &[u8],
        _is_stale: bool,
    ) -> Result<(), UnpackError> {
        self.restore_challenge(id, document)
    }

    fn resume_contexts(&mut self, now: Instant, out: &mut Outbox) {
        self.resume_challenges(now, out);
    }

    fn finish_take_over(&mut self, now: Instant, out: &mut Outbox) {
        self.resume_challenges(now, out);
    }
}
