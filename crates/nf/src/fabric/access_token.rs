//! Access tokens for calls over HTTP/2: requested from the NRF, kept until they expire (TS 33.501
//! 13.4.1.1.2, TS 29.510 5.4.2).
//!
//! ```text
//!  call ─> token available ────────────────────────────> sent with the token
//!     └──> none: held ─> AccessTokenRequest ─> NRF ─────> sent; or failed, if the NRF refuses
//!  401 invalid_token ─> token deleted, another one requested, the call sent once more
//! ```

use crate::kit::{Duration, Instant, Nf, Tag};
use pith_sbi::nnrf_accesstoken::{AccessTokenReq, AccessTokenRequest};
use pith_sbi::{ApiRoot, Cause, NfInstanceId, Problem, Reply, Request, Response, ServiceName};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

/// Validity of a token if the NRF sends no expiry time.
const VALIDITY: Duration = Duration::from_secs(300);

/// A token is renewed this long before it expires, or after nine tenths of its lifetime if that is
/// later. After a restart of the NRF the NFs have registered again within this time.
const RENEWAL: Duration = Duration::from_secs(60);

/// Maximum number of tokens: one for each NF of the shard and each service.
const LIMIT: usize = 256;

/// A token for the `Authorization` header. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Bearer {
    /// The token.
    pub token: Arc<str>,
    /// The producer refused the previous token: if it refuses this one too, the call fails.
    pub renewed: bool,
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A call over HTTP/2.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) nf: Nf,
    pub(super) tag: Tag,
    pub(super) root: Arc<ApiRoot>,
    pub(super) request: Request,
    /// The call was sent before, with a token that the producer refused.
    pub(super) renewed: bool,
}

/// What a token authorizes: a consumer NF and the service that it uses.
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

/// A pending token request to the NRF.
#[derive(Debug)]
struct Pending {
    purpose: Use,
    held: Vec<Outgoing>,
}

/// The result of an authorization.
#[derive(Debug, Default)]
pub(super) struct Authorized {
    /// The call to send, with a token if the service requires one.
    pub(super) send: Option<(Outgoing, Option<Bearer>)>,
    /// A token request to the NRF; its reply has the same number.
    pub(super) ask: Option<(u64, Request)>,
}

/// The tokens of a shard's NFs.
#[derive(Debug)]
pub(super) struct AccessTokens {
    /// NFs whose services require a token.
    protected: BTreeSet<Nf>,
    /// The instances that request tokens.
    consumers: Vec<(Nf, NfInstanceId)>,
    tokens: HashMap<Use, Token>,
    pending: HashMap<u64, Pending>,
    numbered: u64,
}

impl AccessTokens {
    pub(super) fn new(protected: BTreeSet<Nf>, consumers: Vec<(Nf, NfInstanceId)>) -> Self {
        Self { protected, consumers, tokens: HashMap::new(), pending: HashMap::new(), numbered: 0 }
    }

    /// Adds a token to the call, or holds the call until there is one.
    pub(super) fn authorize(&mut self, now: Instant, call: Outgoing) -> Authorized {
        let Some(purpose) = self.purpose(&call) else {
            return Authorized { send: Some((call, None)), ask: None };
        };
        let Some(token) = self.tokens.get(&purpose).filter(|token| token.expires > now) else {
            return Authorized { send: None, ask: self.hold(purpose, Some(call)) };
        };
        let bearer = Bearer { token: Arc::clone(&token.text), renewed: call.renewed };
        // The call uses the token that is still valid; later calls use the renewed one.
        let ask = if token.renew <= now { self.hold(purpose, None) } else { None };
        Authorized { send: Some((call, Some(bearer))), ask }
    }

    /// The token that the call needs. Notifications need none: TS 33.501 13.4.1 authorizes
    /// services. The services of the NRF need none either, because an NF uses them before it can
    /// have a token; there the certificate decides.
    fn purpose(&self, call: &Outgoing) -> Option<Use> {
        let service = call.request.service();
        let producer = Nf::of_type(&service.producer()?)?;
        let wanted = producer != Nf::Nrf
            && call.request.target_uri().is_none()
            && self.protected.contains(&producer)
            && self.consumers.iter().any(|(nf, _)| *nf == call.nf);
        wanted.then_some(Use { consumer: call.nf, service })
    }

    /// Holds the call, if there is one; returns a token request unless one is pending.
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

    /// The NRF's reply: returns the held calls, with an error if there is no token.
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
            // An unavailable NRF counts as an unavailable producer: callers retry in the same way.
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
        .detail(format_args!("the NRF refuses the {consumer} an access token for '{service}': {reason}"))
}
