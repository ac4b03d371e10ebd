//! Authentication Server Function (TS 29.509, TS 33.501 6.1): challenges a UE for the AMF.
//!
//! ```text
//!  AMF ─> Authenticate ──────────> AwaitingVector <─ UDM
//!  AMF <─ RAND, AUTN, HXRES*       Challenged: XRES*, K_SEAF kept until answered, 60 s at most
//!  AMF ─> FiveGAkaConfirmation ──> RES* compared, result told to the UDM
//!  AMF <─ SUPI, K_SEAF
//! ```

mod config;
mod procedure;
#[cfg(test)]
mod tests;

use crate::kit::{
    Arena, Caller, Duration, Identity, Input, Instant, Key, NetworkFunction, Outbox, Tag, Target, Timer,
    TimerKey,
};
pub use config::AusfConfig;
use pith_sbi::nausf_ueauthentication::FiveGAkaConfirmation;
use pith_sbi::{Cause, Problem, Reply, Request, Response};
use procedure::five_g_aka::{AwaitingVector, Challenged};

/// Authentications that may be under way at once.
const LIMIT: u32 = 1 << 18;

/// How long a challenged UE may take: T3560 runs out 5 times before that (TS 24.501 table 10.2.2).
const CHALLENGE_LIFETIME: Duration = Duration::from_secs(60);

/// A tag that names no authentication: whatever the reply is, it changes nothing.
const NOBODY: Tag = Tag { owner: u64::MAX, step: 0 };

/// An authentication under way, in the order of its states.
enum Authentication {
    AwaitingVector(AwaitingVector, Caller),
    Challenged(Challenged),
}

/// The AUSF of a shard.
pub struct Ausf {
    identity: Identity,
    config: AusfConfig,
    authentications: Arena<Authentication>,
}

impl Ausf {
    /// An AUSF.
    pub const fn new(identity: Identity, config: AusfConfig) -> Self {
        Self { identity, config, authentications: Arena::new(LIMIT) }
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
            Request::DeleteFiveGAkaAuthenticationResult(request) => {
                match self.take_challenged(&request.auth_ctx_id, out) {
                    Some(_) => out.answer(from, Response::NoContent),
                    None => out.refuse(from, Problem::context_not_found()),
                }
            }
            _ => out.refuse(from, Problem::new(Cause::ResourceUriStructureNotFound)),
        }
    }

    /// The vector came: challenge the UE (TS 33.501 6.1.3.2.0 steps 3 to 5).
    fn vector(&mut self, tag: Tag, reply: Reply, out: &mut Outbox) {
        let key = Key::from_u64(tag.owner);
        let Some(Authentication::AwaitingVector(state, from)) = self.authentications.remove(key) else {
            return;
        };
        let identity = &self.identity;
        let mut answer = Err(Box::new(Problem::congestion(1)));
        let begun = match state.reply(reply) {
            Err(problem) => return out.refuse(from, *problem),
            Ok(challenged) => self.authentications.insert_with(|key| {
                answer = Ok(challenged.context(identity, &context_id(key)));
                Authentication::Challenged(challenged)
            }),
        };
        if let Some(key) = begun {
            out.start(key.to_u64(), Timer::Expiry, CHALLENGE_LIFETIME);
        }
        match answer {
            Ok(response) => out.answer(from, response),
            Err(problem) => out.refuse(from, *problem),
        }
    }

    /// RES* came: compare, tell the UDM, answer (TS 33.501 6.1.3.2.0 steps 10 to 12).
    fn confirm(&mut self, now: Instant, from: Caller, request: FiveGAkaConfirmation, out: &mut Outbox) {
        let Some(challenged) = self.take_challenged(&request.auth_ctx_id, out) else {
            return out.refuse(from, Problem::context_not_found());
        };
        let (response, event) = challenged.confirm(&self.identity, now, &request.body);
        out.answer(from, response);
        out.call(NOBODY, Target::any(), event);
    }

    /// A challenge can be answered once.
    fn take_challenged(&mut self, context_id: &str, out: &mut Outbox) -> Option<Challenged> {
        let key = Key::from_u64(u64::from_str_radix(context_id, 16).ok()?);
        let Authentication::Challenged(_) = self.authentications.get(key)? else { return None };
        out.stop(key.to_u64(), Timer::Expiry);
        match self.authentications.remove(key) {
            Some(Authentication::Challenged(challenged)) => Some(challenged),
            _ => None,
        }
    }

    fn timer(&mut self, key: TimerKey) {
        if key.timer == Timer::Expiry {
            self.authentications.remove(Key::from_u64(key.owner));
        }
    }

    /// Authentications under way; none once all is quiet.
    pub fn pending(&self) -> usize {
        self.authentications.len()
    }
}

fn context_id(key: Key) -> String {
    format!("{:x}", key.to_u64())
}

impl NetworkFunction for Ausf {
    fn handle(&mut self, now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Request { from, request } => self.request(now, from, request, out),
            Input::Reply { tag, .. } if tag == NOBODY => {}
            Input::Reply { tag, reply, .. } => self.vector(tag, reply, out),
            Input::Timer(key) => self.timer(key),
            Input::N2(_) | Input::N4(_) | Input::Stored { .. } => {}
        }
    }
}
