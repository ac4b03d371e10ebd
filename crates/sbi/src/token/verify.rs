//! What a producer checks of a token (TS 33.501 13.4.1.1.2, step 3 of the service access).

use super::{AccessTokenClaims, Audience, KeySet, Parts};
use crate::common::{NfInstanceId, NfType, ServiceName};
use crate::problem::{Challenge, ChallengeError, Problem, ProblemMore};
use crate::request::Operation;
use pith_crypto::jws::{JwsAlgorithm, sha256};
use pith_types::{Plmn, Snssai};
use std::collections::HashMap;
use std::sync::Arc;

/// Clocks of NRF and producer may differ by that much, in seconds.
const SKEW: u64 = 10;

/// Verified tokens kept at most: one for each consumer, service and hour in a core of some hundred NFs.
const LIMIT: usize = 4096;

/// A token that was signed by the NRF and has not expired.
pub type Verified = Arc<AccessTokenClaims>;

/// Why a request is not admitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no token.
    #[error("the service '{0}' wants an access token of the NRF")]
    Missing(ServiceName),
    /// No JWT, or one without the claims that it must have.
    #[error("the access token is not a JWT with the claims of TS 29.510")]
    Form,
    /// Signed with a key, or an algorithm, that is not known.
    #[error("no key of the NRF fits the access token")]
    UnknownKey,
    /// The signature is wrong.
    #[error("the signature of the access token is wrong")]
    Signature,
    /// It has expired.
    #[error("the access token has expired")]
    Expired,
    /// For another NF.
    #[error("the access token is for another NF")]
    Audience,
    /// For producers of another network.
    #[error("the access token is for another PLMN")]
    Plmn,
    /// For producers of other slices.
    #[error("the access token is for other slices")]
    Slice,
    /// For producers of another NF set.
    #[error("the access token is for another NF set")]
    NfSet,
    /// Given to another NF than the one that shows it.
    #[error("the access token was given to another NF than the client")]
    Subject,
    /// Not for this service or operation.
    #[error("the access token does not have the scope '{0}'")]
    Scope(Arc<str>),
}

impl Refusal {
    /// What the client is told (TS 29.500 6.7.3, RFC 6750 3): 401 with `invalid_token`, and 403 with
    /// `insufficient_scope` where another token of this client would do. Who shows no token gets no error code.
    pub fn problem(&self) -> Problem {
        let (status, error, scope) = match self {
            Self::Missing(service) => (401, None, Some(service.as_str().into())),
            Self::Scope(scope) => (403, Some(ChallengeError::InsufficientScope), Some(Arc::clone(scope))),
            _ => (401, Some(ChallengeError::InvalidToken), None),
        };
        let challenge = Challenge { error, scope };
        Problem::of_status(status).detail(self).with(ProblemMore::Challenge(challenge))
    }
}

/// Verifies tokens, and remembers those that were good until they expire.
#[derive(Debug, Default)]
pub struct Verifier {
    keys: KeySet,
    verified: HashMap<[u8; 32], Verified>,
}

impl Verifier {
    /// A verifier with those keys.
    pub fn new(keys: KeySet) -> Self {
        Self { keys, verified: HashMap::new() }
    }

    /// Replaces the keys: tokens of a key that is gone are not good any more.
    pub fn set_keys(&mut self, keys: KeySet) {
        self.keys = keys;
        self.verified.clear();
    }

    /// Verifies a token at that time, seconds since 1970.
    pub fn verify(&mut self, now: u64, token: &str) -> Result<Verified, Refusal> {
        let digest = sha256(token.as_bytes());
        if let Some(known) = self.verified.get(&digest) {
            return if known.exp + SKEW > now { Ok(Arc::clone(known)) } else { Err(Refusal::Expired) };
        }
        let claims = Arc::new(self.read(now, token)?);
        if self.verified.len() >= LIMIT {
            self.verified.retain(|_, claims| claims.exp > now);
        }
        // Still full: a token more would have to push out a good one. It is verified each time instead.
        if self.verified.len() < LIMIT {
            self.verified.insert(digest, Arc::clone(&claims));
        }
        Ok(claims)
    }

    fn read(&self, now: u64, token: &str) -> Result<AccessTokenClaims, Refusal> {
        let Parts { signed, header, claims, signature } = Parts::of(token).ok_or(Refusal::Form)?;
        if header.crit.is_some() {
            return Err(Refusal::Form);
        }
        let algorithm = JwsAlgorithm::of_name(&header.alg).ok_or(Refusal::UnknownKey)?;
        let mut keys =
            self.keys.named(header.kid.as_deref()).filter(|key| key.algorithm() == algorithm).peekable();
        if keys.peek().is_none() {
            return Err(Refusal::UnknownKey);
        }
        if !keys.any(|key| key.verifies(signed.as_bytes(), &signature)) {
            return Err(Refusal::Signature);
        }
        if claims.exp.saturating_add(SKEW) <= now {
            return Err(Refusal::Expired);
        }
        Ok(claims)
    }
}

/// An NF as those that tokens are for.
#[derive(Debug, Clone, Default)]
pub struct Producer {
    /// Its instances in this process, with the type of each.
    pub instances: Vec<(NfType, NfInstanceId)>,
    /// Its networks.
    pub plmns: Vec<Plmn>,
    /// Its slices; all where empty.
    pub slices: Vec<Snssai>,
    /// Its NF sets.
    pub nf_sets: Vec<Arc<str>>,
}

impl Producer {
    /// Checks that a token is for this producer and the service.
    pub fn admit(&self, claims: &AccessTokenClaims, service: &ServiceName) -> Result<(), Refusal> {
        let nf_type = service.producer();
        let is_own_instance = |text: &str| {
            let own = |(of, id): &(NfType, NfInstanceId)| {
                Some(of) == nf_type.as_ref() && (text == of.as_str() || text == id.to_string())
            };
            self.instances.iter().any(own)
        };
        let meant = match &claims.aud {
            Audience::Type(wanted) => Some(wanted) == nf_type.as_ref(),
            Audience::Instances(ids) => ids.iter().any(|id| is_own_instance(id)),
        };
        let slices = &claims.producer_snssai_list;
        if !meant {
            Err(Refusal::Audience)
        } else if claims.producer_plmn_id.is_some_and(|plmn| !self.plmns.contains(&plmn)) {
            Err(Refusal::Plmn)
        } else if !slices.is_empty()
            && !self.slices.is_empty()
            && !slices.iter().any(|s| self.slices.contains(s))
        {
            Err(Refusal::Slice)
        } else if claims.producer_nf_set_id.as_ref().is_some_and(|set| !self.nf_sets.contains(set)) {
            Err(Refusal::NfSet)
        } else if !claims.scopes().any(|scope| scope == service.as_str()) {
            Err(Refusal::Scope(service.as_str().into()))
        } else {
            Ok(())
        }
    }
}

impl AccessTokenClaims {
    /// Its scopes.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.scope.split(' ')
    }

    /// Checks that the token covers the operation, where it has additional scopes of the operation's service.
    pub fn covers(&self, operation: Operation) -> Result<(), Refusal> {
        let service = operation.service();
        let is_additional = |scope: &&str| {
            let rest = scope.strip_prefix(service.as_str());
            rest.is_some_and(|rest| rest.starts_with(':'))
        };
        let mut additional = self.scopes().filter(is_additional).peekable();
        let wanted = operation.additional_scopes();
        if additional.peek().is_none() || additional.any(|scope| wanted.contains(&scope)) {
            return Ok(());
        }
        let scope = wanted.first().copied().unwrap_or(service.as_str());
        Err(Refusal::Scope(scope.into()))
    }
}
