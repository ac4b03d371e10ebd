//! Access tokens for calls over HTTP/2: requested of the NRF, kept until they expire (TS 33.501 13.4.1.1.2,
//! TS 29.510 5.4.2).
//!
//! ```text
//!  call ─> token known ────────────────────────────────> sent with it
//!     └──> none: held ─> AccessTokenRequest ─> NRF ─────> sent; or failed, if the NRF refuses
//!  401 invalid_token ─> token forgotten, another one requested, the call sent once more
//! ```

use crate::kit::{Duration, Instant, Nf, Tag};
use pith_sbi::nnrf_accesstoken::{AccessTokenReq, AccessTokenRequest};
use pith_sbi::{ApiRoot, Cause, NfInstanceId, Problem, Reply, Request, Response, ServiceName};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

/// How long a token is used whose NRF does not say when it expires.
const VALIDITY: Duration = Duration::from_secs(300);

/// A token is renewed that long before it expires, or after nine tenths of its life if that is later: an NRF that
/// restarts has its NFs back by then.
const RENEWAL: Duration = Duration::from_secs(60);

/// Tokens kept at most: one for each NF of the shard and service.
const LIMIT: usize = 256;

/// A token as it goes into `Authorization`. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Bearer {
    /// The token.
    pub token: Arc<str>,
    /// The producer refused the one before: if it refuses this one too, the call fails.
    pub renewed: bool,
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A call that leaves the process.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) nf: Nf,
    pub(super) tag: Tag,
    pub(super) root: Arc<ApiRoot>,
    pub(super) request: Request,
    /// It was sent before, with a token that the producer refused.
    pub(super) renewed: bool,
}

/// What a token is for: who uses which service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Use {
    consumer: Nf,
    service: ServiceName,
}

#[derive(Debug)]
struct Token {
    text: Arc<str>,
    renew: Instant,
    expires: Instant,
}

/// A request to the NRF that it has not answered yet.
#[derive(Debug)]
struct Pending {
    purpose: Use,
    held: Vec<Outgoing>,
}

/// What happens to a call.
#[derive(Debug, Default)]
pub(super) struct Authorized {
    /// It is sent, with a token if it needs one.
    pub(super) send: Option<(Outgoing, Option<Bearer>)>,
    /// The NRF is asked for a token: the number comes back with its answer.
    pub(super) ask: Option<(u64, Request)>,
}

/// The tokens of a shard's NFs.
#[derive(Debug)]
pub(super) struct AccessTokens {
    /// NFs whose services want a token.
    protected: BTreeSet<Nf>,
    /// The instances that ask.
    consumers: Vec<(Nf, NfInstanceId)>,
    tokens: HashMap<Use, Token>,
    pending: HashMap<u64, Pending>,
    numbered: u64,
}

impl AccessTokens {
    pub(super) fn new(protected: BTreeSet<Nf>, consumers: Vec<(Nf, NfInstanceId)>) -> Self {
        Self { protected, consumers, tokens: HashMap::new(), pending: HashMap::new(), numbered: 0 }
    }

    /// Gives the call its token, or holds it until there is one.
    pub(super) fn authorize(&mut self, now: Instant, call: Outgoing) -> Authorized {
        let Some(purpose) = self.purpose(&call) else {
            return Authorized { send: Some((call, None)), ask: None };
        };
        let Some(token) = self.tokens.get(&purpose).filter(|token| token.expires > now) else {
            return Authorized { send: None, ask: self.hold(purpose, Some(call)) };
        };
        let bearer = Bearer { token: Arc::clone(&token.text), renewed: call.renewed };
        // The call goes with the token that is still good; the next one finds the new token.
        let ask = if token.renew <= now { self.hold(purpose, None) } else { None };
        Authorized { send: Some((call, Some(bearer))), ask }
    }

    /// What the call needs a token for. Notifications have none (TS 33.501 13.4.1 authorizes services), nor have the
    /// services of the NRF, which an NF uses before it can have one: there the certificate decides.
    fn purpose(&self, call: &Outgoing) -> Option<Use> {
        let service = call.request.service();
        let producer = Nf::of_type(&service.producer()?)?;
        let wanted = producer != Nf::Nrf
            && call.request.target_uri().is_none()
            && self.protected.contains(&producer)
            && self.consumers.iter().any(|(nf, _)| *nf == call.nf);
        wanted.then_some(Use { consumer: call.nf, service })
    }

    /// Holds the call, if there is one; gives the request to the NRF unless it was asked already.
    fn hold(&mut self, purpose: Use, call: Option<Outgoing>) -> Option<(u64, Request)> {
        if let Some(pending) = self.pending.values_mut().find(|pending| pending.purpose == purpose) {
            pending.held.extend(call);
            return None;
        }
        let (_, instance) = self.consumers.iter().find(|(nf, _)| *nf == purpose.consumer)?;
        let mut body = AccessTokenReq::new(*instance, purpose.service.as_str());
        body.nf_type = purpose.consumer.nf_type();
        body.target_nf_type = purpose.service.producer();
        self.numbered += 1;
        self.pending.insert(self.numbered, Pending { purpose, held: call.into_iter().collect() });
        Some((self.numbered, AccessTokenRequest { body }.into()))
    }

    /// The NRF answered: gives the calls that were held, and why they fail if there is no token.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        id: u64,
        reply: Reply,
    ) -> Option<(Vec<Outgoing>, Result<(), Problem>)> {
        let Pending { purpose, held } = self.pending.remove(&id)?;
        let token = match reply {
            Ok(Response::AccessTokenRsp(token)) => token,
            Ok(_) => return Some((held, Err(no_token(&purpose, "the NRF's answer has no token")))),
            // That the NRF is not there is as if the producer were not: callers try again as for that.
            Err(problem) if problem.status >= 500 => return Some((held, Err(*problem))),
            Err(problem) => {
                let refused = problem.access_token_error().unwrap_or_else(|| problem.to_string());
                return Some((held, Err(no_token(&purpose, &refused))));
            }
        };
        let life = token.expires_in.map_or(VALIDITY, |s| Duration::from_secs(s.max(1).into()));
        let renew = (life * 9 / 10).max(life.saturating_sub(RENEWAL));
        if self.tokens.len() >= LIMIT {
            self.tokens.clear();
        }
        let text = token.access_token.0.into();
        self.tokens.insert(purpose, Token { text, renew: now + renew, expires: now + life });
        Some((held, Ok(())))
    }

    /// A producer refused the token of a call.
    pub(super) fn refused(&mut self, call: &Outgoing, bearer: &Bearer) {
        if let Some(purpose) = self.purpose(call)
            && self.tokens.get(&purpose).is_some_and(|token| token.text == bearer.token)
        {
            self.tokens.remove(&purpose);
        }
    }
}

fn no_token(purpose: &Use, reason: &str) -> Problem {
    let Use { consumer, service } = purpose;
    Problem::new(Cause::UnspecifiedNfFailure)
        .detail(format_args!("the NRF gives the {consumer} no access token for '{service}': {reason}"))
}
