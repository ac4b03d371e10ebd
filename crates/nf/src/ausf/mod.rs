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
    Arena, Caller, Duration, Identity, Input, Instant, Key, NetworkFunction, Outbox, References, Rng, Tag,
    Target, Timer, TimerKey,
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
    AwaitingVector(AwaitingVector, Caller),
    Challenged(Challenged),
    AwaitingEapResponse(AwaitingEapResponse),
    AwaitingResyncVector(AwaitingResyncVector, Caller),
    AwaitingNotificationResponse(AwaitingNotificationResponse),
    /// Ended, or between two states.
    #[default]
    Over,
}

impl Authentication {
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
        }
    }

    fn request(&mut self, now: Instant, from: Caller, request: Request, out: &mut Outbox) {
        match request {
            Request::Authenticate(request) => {
                let (call, state) = match AwaitingVector::begin(&self.identity, &self.config, request.body) {
                    Ok(begun) => begun,
                    Err(problem) => return out.refuse(from, *problem),
                };
                let authentication = Authentication::AwaitingVector(state, from);
                match self.authentications.insert_with(|_| authentication) {
                    Some(key) => out.call(Tag { owner: key.to_u64(), step: 0 }, Target::any(), call.into()),
                    None => out.refuse(from, Problem::congestion(1)),
                }
            }
            Request::FiveGAkaConfirmation(request) => self.confirm(now, from, *request, out),
            Request::EapAuthMethod(request) => self.eap_response(now, from, *request, out),
            Request::DeleteFiveGAkaAuthenticationResult(request) => {
                self.delete(from, &request.auth_ctx_id, Authentication::is_five_g_aka, out);
            }
            Request::DeleteEapAuthenticationResult(request) => {
                self.delete(from, &request.auth_ctx_id, Authentication::is_eap, out);
            }
            _ => out.refuse(from, Problem::new(Cause::ResourceUriStructureNotFound)),
        }
    }

    /// The UDM's reply: the first vector, or another one after a resynchronisation.
    fn reply(&mut self, tag: Tag, reply: Reply, out: &mut Outbox) {
        let key = Key::from_u64(tag.owner);
        match self.take(key, |_| true) {
            Authentication::AwaitingVector(state, from) => match state.reply(reply) {
                Ok(begun) => self.challenge(key, from, begun, out),
                Err(problem) => self.fail(key, from, *problem, out),
            },
            Authentication::AwaitingResyncVector(state, from) => match state.reply(reply) {
                Ok(next) => {
                    out.answer(from, next.session(&self.identity, &self.references.of_key(key)));
                    self.put(key, Authentication::AwaitingEapResponse(next), out);
                }
                Err(problem) => self.fail(key, from, *problem, out),
            },
            other => self.keep(key, other),
        }
    }

    /// Ends an authentication because the UDM returned an error, and forwards its ProblemDetails.
    fn fail(&mut self, key: Key, from: Caller, problem: Problem, out: &mut Outbox) {
        self.authentications.remove(key);
        out.refuse(from, problem);
    }

    /// Sends the challenge to the AMF after the vector was received (TS 33.501 6.1.3.2.0 steps 3 to 5, 6.1.3.1 step 3).
    fn challenge(&mut self, key: Key, from: Caller, begun: Begun, out: &mut Outbox) {
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
        out.answer(from, response);
    }

    /// Ends the oldest authentications if too many wait for a UE.
    fn end_excess(&mut self, out: &mut Outbox) {
        if self.challenged.len() <= MOST_CHALLENGED {
            return;
        }
        let authentications = &self.authentications;
        // One that waits for the UDM owes the AMF an answer.
        let waits_for_ue = |state: &Authentication| state.is_five_g_aka() || state.is_eap();
        self.challenged.retain(|key| authentications.get(*key).is_some_and(waits_for_ue));
        if self.challenged.len() + BATCH > MOST_CHALLENGED {
            for key in self.challenged.drain(..BATCH).collect::<Vec<_>>() {
                self.end(key, out);
            }
        }
        self.challenged.shrink_to(2 * self.challenged.len());
    }

    /// Verifies RES*, answers the AMF, and reports the result to the UDM (TS 33.501 6.1.3.2.0 steps 10 to 12).
    fn confirm(&mut self, now: Instant, from: Caller, request: FiveGAkaConfirmation, out: &mut Outbox) {
        let key = self.key_of(&request.auth_ctx_id);
        let Authentication::Challenged(challenged) = self.take(key, Authentication::is_five_g_aka) else {
            return out.refuse(from, Problem::context_not_found());
        };
        let (response, event) = challenged.confirm(&self.identity, now, &request.body);
        self.end(key, out);
        out.answer(from, response);
        out.call(IGNORE_REPLY, Target::any(), event);
    }

    /// An EAP-Response (TS 33.501 6.1.3.1 steps 8 to 10; TS 29.509 5.2.2.2.3).
    fn eap_response(&mut self, now: Instant, from: Caller, request: EapAuthMethod, out: &mut Outbox) {
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
            _ => return out.refuse(from, Problem::context_not_found()),
        };
        self.eap_step(key, from, step, out);
    }

    fn eap_step(&mut self, key: Key, from: Caller, step: Step, out: &mut Outbox) {
        match step {
            Step::Success(response, event) | Step::Failure(response, event) => {
                self.end(key, out);
                out.answer(from, response);
                out.call(IGNORE_REPLY, Target::any(), event);
            }
            Step::Notified(response, next) => {
                self.put(key, Authentication::AwaitingNotificationResponse(next), out);
                out.answer(from, response);
            }
            Step::Resynchronise(call, next) => {
                out.stop(key.to_u64(), Timer::Expiry);
                self.keep(key, Authentication::AwaitingResyncVector(next, from));
                out.call(Tag { owner: key.to_u64(), step: 0 }, Target::any(), call.into());
            }
            Step::Refused(problem, state) => {
                self.keep(key, Authentication::AwaitingEapResponse(state));
                out.refuse(from, *problem);
            }
        }
    }

    /// Aborts an authentication that waits for the UE. After its end the AUSF keeps no result that a consumer could delete
    /// (TS 29.509 5.2.2.2.4).
    fn delete(&mut self, from: Caller, id: &str, expected: fn(&Authentication) -> bool, out: &mut Outbox) {
        let key = self.key_of(id);
        match self.take(key, expected) {
            Authentication::Over => out.refuse(from, Problem::context_not_found()),
            _ => {
                self.end(key, out);
                out.answer(from, Response::NoContent);
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
        self.authentications.remove(key);
    }

    fn timer(&mut self, key: TimerKey) {
        if key.timer == Timer::Expiry {
            self.authentications.remove(Key::from_u64(key.owner));
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
            Input::Request { from, request } => self.request(now, from, request, out),
            Input::Reply { tag, .. } if tag == IGNORE_REPLY => {}
            Input::Reply { tag, reply, .. } => self.reply(tag, reply, out),
            Input::Timer(key) => self.timer(key),
            Input::N2(_) | Input::N4(_) | Input::Stored { .. } => {}
        }
    }
}
