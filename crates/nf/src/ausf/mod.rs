//! Authentication Server Function (TS 29.509, TS 33.501 6.1): authenticates UEs for the AMF.
//!
//! ```text
//!  AMF ─> Authenticate ──────────> AwaitingVector <─ UDM, which chooses the method
//!  AMF <─ RAND, AUTN, HXRES*       Challenged: XRES*, K_SEAF kept until answered, 60 s at most
//!  AMF ─> FiveGAkaConfirmation ──> RES* compared, result sent to the UDM
//!  AMF <─ SUPI, K_SEAF
//!
//!  AMF <─ EAP-Request              AwaitingEapResponse: XRES, K_aut, K_SEAF
//!  AMF ─> EapAuthMethod ─────────> EAP-Response: another request, or the end as above
//!  AMF <─ EAP-Success, SUPI, K_SEAF
//! ```

mod config;
mod eap;
mod procedure;
#[cfg(test)]
mod tests;

use crate::kit::{
    Arena, Duration, Identity, Input, Instant, Key, NetworkFunction, Outbox, PendingReply, References, Rng,
    Tag, Target, Timer, TimerKey,
};
pub use config::AusfConfig;
use pith_sbi::nausf_ueauthentication::{EapAuthMethod, FiveGAkaConfirmation};
use pith_sbi::{Base64, Cause, Problem, Reply, Request, Response};
use procedure::eap_aka_prime::{
    AwaitingEapResponse, AwaitingNotificationResponse, AwaitingResyncVector, Step,
};
use procedure::five_g_aka::Challenged;
use procedure::vector::{AwaitingVector, Begun};
use std::collections::VecDeque;

/// Maximum number of authentications in progress.
const LIMIT: u32 = 1 << 18;

/// Maximum number of authentications that wait for a UE's response: twice the unauthenticated
/// registrations of the shard's AMF, 10 MB. Beyond it the oldest are ended, so that a flood of
/// unfinished registrations does not cause the refusal of others.
const MOST_CHALLENGED: usize = 32_768;

/// Number of authentications that are ended at once beyond that limit.
const BATCH: usize = MOST_CHALLENGED / 8;

/// Maximum time of a UE's response: T3560 expires five times before (TS 24.501 table 10.2.2).
const CHALLENGE_LIFETIME: Duration = Duration::from_secs(60);

/// A tag of no authentication: the reply is ignored.
const IGNORE_REPLY: Tag = Tag { owner: u64::MAX, step: 0 };

/// An authentication in progress, in the order of its states.
#[derive(Default)]
enum Authentication {
    AwaitingVector(AwaitingVector, PendingReply),
    Challenged(Challenged),
    AwaitingEapResponse(AwaitingEapResponse),
    AwaitingResyncVector(AwaitingResyncVector, PendingReply),
    AwaitingNotificationResponse(AwaitingNotificationResponse),
    /// Ended, or between two states.
    #[default]
    Over,
}

impl Authentication {
    /// The reply that it owes the AMF, while it waits for the UDM.
    fn into_reply(self) -> Option<PendingReply> {
        match self {
            Self::AwaitingVector(_, reply) | Self::AwaitingResyncVector(_, reply) => Some(reply),
            Self::Challenged(_)
            | Self::AwaitingEapResponse(_)
            | Self::AwaitingNotificationResponse(_)
            | Self::Over => None,
        }
    }

    /// Whether the state waits for the UE.
    const fn awaits_ue(&self) -> bool {
        self.is_five_g_aka() || self.is_eap()
    }

    /// Whether the state waits for the response to 5G-AKA.
    const fn is_five_g_aka(&self) -> bool {
        matches!(self, Self::Challenged(_))
    }

    /// Whether the state waits for an EAP-Response.
    const fn is_eap(&self) -> bool {
        matches!(self, Self::AwaitingEapResponse(_) | Self::AwaitingNotificationResponse(_))
    }
}

/// The AUSF of a shard.
pub struct Ausf {
    identity: Identity,
    config: AusfConfig,
    /// Ids of authentications in URIs.
    references: References,
    authentications: Arena<Authentication>,
    /// Authentications that wait for a UE's response, oldest first; keys of ended ones are skipped.
    challenged: VecDeque<Key>,
    /// Requests that wait for the UDM.
    replies_owed: usize,
}

impl Ausf {
    /// An AUSF.
    pub fn new(identity: Identity, config: AusfConfig, mut rng: Rng) -> Self {
        Self {
            identity,
            config,
            references: References::new(&mut rng),
            authentications: Arena::new(LIMIT),
            challenged: VecDeque::new(),
            replies_owed: 0,
        }
    }

    fn request(&mut self, now: Instant, pending: PendingReply, request: Request, out: &mut Outbox) {
        match request {
            Request::Authenticate(request) => {
                match AwaitingVector::begin(&self.identity, &self.config, request.body) {
                    Ok((call, state)) => {
                        self.begin(Authentication::AwaitingVector(state, pending), call.into(), out);
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

    /// Asks the UDM for a vector.
    fn begin(&mut self, authentication: Authentication, call: Request, out: &mut Outbox) {
        match self.authentications.insert(authentication) {
            Ok(key) => {
                self.replies_owed += 1;
                out.call(Tag { owner: key.to_u64(), step: 0 }, Target::any(), call);
            }
            Err(full) => {
                if let Some(pending) = full.into_reply() {
                    pending.refuse(Problem::congestion(1), out);
                }
            }
        }
    }

    /// The UDM's reply: the first vector, or another one after a resynchronisation.
    fn reply(&mut self, tag: Tag, reply: Reply, out: &mut Outbox) {
        let key = Key::from_u64(tag.owner);
        match self.take(key, |state| !state.awaits_ue()) {
            Authentication::AwaitingVector(state, pending) => {
                self.replies_owed -= 1;
                match state.reply(reply) {
                    Ok(begun) => self.challenge(key, pending, begun, out),
                    Err(problem) => self.fail(key, pending, *problem, out),
                }
            }
            Authentication::AwaitingResyncVector(state, pending) => {
                self.replies_owed -= 1;
                match state.reply(reply) {
                    Ok(next) => {
                        pending.answer(next.session(&self.identity, &self.references.of_key(key)), out);
                        self.put(key, Authentication::AwaitingEapResponse(next), out);
                    }
                    Err(problem) => self.fail(key, pending, *problem, out),
                }
            }
            // The authentication has ended, or the reply is late: `take` leaves those that wait for the UE.
            Authentication::Challenged(_)
            | Authentication::AwaitingEapResponse(_)
            | Authentication::AwaitingNotificationResponse(_)
            | Authentication::Over => {}
        }
    }

    /// Ends an authentication because the UDM returned an error, and forwards its ProblemDetails.
    fn fail(&mut self, key: Key, pending: PendingReply, problem: Problem, out: &mut Outbox) {
        self.authentications.remove(key);
        pending.refuse(problem, out);
    }

    /// Sends the challenge to the AMF after the vector was received (TS 33.501 6.1.3.2.0 steps 3 to 5, 6.1.3.1 step 3).
    fn challenge(&mut self, key: Key, pending: PendingReply, begun: Begun, out: &mut Outbox) {
        let (identity, id) = (&self.identity, self.references.of_key(key));
        let (response, next) = match begun {
            Begun::FiveGAka(next) => (next.context(identity, &id), Authentication::Challenged(next)),
            Begun::EapAkaPrime(next) => {
                (next.context(identity, &id), Authentication::AwaitingEapResponse(next))
            }
        };
        self.put(key, next, out);
        self.challenged.push_back(key);
        self.end_excess(out);
        pending.answer(response, out);
    }

    /// Ends the oldest authentications if too many wait for a UE.
    fn end_excess(&mut self, out: &mut Outbox) {
        if self.challenged.len() <= MOST_CHALLENGED {
            return;
        }
        let authentications = &self.authentications;
        // One that waits for the UDM owes the AMF an answer.
        self.challenged.retain(|key| authentications.get(*key).is_some_and(Authentication::awaits_ue));
        if self.challenged.len() + BATCH > MOST_CHALLENGED {
            for key in self.challenged.drain(..BATCH).collect::<Vec<_>>() {
                self.end(key, out);
            }
        }
        self.challenged.shrink_to(2 * self.challenged.len());
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

    /// An EAP-Response (TS 33.501 6.1.3.1 steps 8 to 10; TS 29.509 5.2.2.2.3).
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
        self.eap_step(key, pending, step, out);
    }

    fn eap_step(&mut self, key: Key, pending: PendingReply, step: Step, out: &mut Outbox) {
        match step {
            Step::Success(response, event) | Step::Failure(response, event) => {
                self.end(key, out);
                pending.answer(response, out);
                out.call(IGNORE_REPLY, Target::any(), event);
            }
            Step::Notified(response, next) => {
                self.put(key, Authentication::AwaitingNotificationResponse(next), out);
                pending.answer(response, out);
            }
            Step::Resynchronise(call, next) => {
                out.stop(key.to_u64(), Timer::Expiry);
                self.keep(key, Authentication::AwaitingResyncVector(next, pending));
                self.replies_owed += 1;
                out.call(Tag { owner: key.to_u64(), step: 0 }, Target::any(), call.into());
            }
            Step::Refused(problem, state) => {
                self.keep(key, Authentication::AwaitingEapResponse(state));
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
            Authentication::Over => pending.refuse(Problem::context_not_found(), out),
            _ => {
                self.end(key, out);
                pending.answer(Response::NoContent, out);
            }
        }
    }

    /// Takes the state of an authentication if it is of the given kind. The caller stores the next
    /// state or calls [`Self::end`].
    fn take(&mut self, key: Key, expected: fn(&Authentication) -> bool) -> Authentication {
        let found = self.authentications.get_mut(key).filter(|state| expected(state));
        found.map(std::mem::take).unwrap_or_default()
    }

    /// Stores the next state of an authentication.
    fn keep(&mut self, key: Key, next: Authentication) {
        if let Some(state) = self.authentications.get_mut(key) {
            *state = next;
        }
    }

    /// Stores the next state, which waits for the UE.
    fn put(&mut self, key: Key, next: Authentication, out: &mut Outbox) {
        self.keep(key, next);
        out.start(key.to_u64(), Timer::Expiry, CHALLENGE_LIFETIME);
    }

    /// The authentication of an id; one that does not exist for an id that was not given out.
    fn key_of(&self, id: &str) -> Key {
        self.references.key(id).unwrap_or(Key::from_u64(u64::MAX))
    }

    fn end(&mut self, key: Key, out: &mut Outbox) {
        out.stop(key.to_u64(), Timer::Expiry);
        if let Some(pending) = self.authentications.remove(key).and_then(Authentication::into_reply) {
            self.replies_owed -= 1;
            pending.refuse(Problem::congestion(1), out);
        }
    }

    fn timer(&mut self, key: TimerKey) {
        let owner = Key::from_u64(key.owner);
        let awaits_ue = self.authentications.get(owner).is_some_and(Authentication::awaits_ue);
        if key.timer == Timer::Expiry && awaits_ue {
            self.authentications.remove(owner);
        }
    }

    /// Authentications in progress; none when all procedures are over.
    pub fn pending(&self) -> usize {
        self.authentications.len()
    }
}

impl NetworkFunction for Ausf {
    fn handle(&mut self, now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Request { reply, request } => self.request(now, reply, request, out),
            Input::Reply { tag, .. } if tag == IGNORE_REPLY => {}
            Input::Reply { tag, reply, .. } => self.reply(tag, reply, out),
            Input::Timer(key) => self.timer(key),
            Input::N2(_) | Input::N4(_) | Input::Stored { .. } => {}
        }
    }

    fn replies_owed(&self) -> Option<usize> {
        Some(self.replies_owed)
    }
}
