//! Verification of access tokens by a producer (TS 33.501 13.4.1.1.2, step 3 of the service access).

use super::{AccessTokenClaims, Audience, KeySet, Parts};
use crate::common::{NfInstanceId, NfType, ServiceName};
use crate::problem::{Challenge, ChallengeError, Problem, ProblemMore};
use crate::request::Operation;
use pith_crypto::jws::{JwsAlgorithm, sha256};
use pith_types::{Plmn, Snssai};
use std::collections::HashMap;
use std::sync::Arc;

/// Tolerated difference between the clocks of NRF and producer, in seconds.
const SKEW: u64 = 10;

/// Largest number of cached verified tokens: one per consumer, service and hour in a core of some hundred
/// NFs.
const LIMIT: usize = 4096;

/// The claims of a token that is signed by the NRF and has not expired.
pub type Verified = Arc<AccessTokenClaims>;

/// The reason why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request has no token.
    #[error("the service '{0}' requires an access token of the NRF")]
    Missing(ServiceName),
    /// The token is not a JWT, or lacks required claims.
    #[error("the access token is not a JWT with the claims of TS 29.510")]
    Form,
    /// The key or algorithm is unknown.
    #[error("no key of the NRF matches the access token")]
    UnknownKey,
    /// Issued by another NRF than the one whose keys are known.
    #[error("the access token names another NRF as its issuer")]
    Issuer,
    /// The signature is invalid.
    #[error("the signature of the access token is wrong")]
    Signature,
    /// The token has expired.
    #[error("the access token has expired")]
    Expired,
    /// The token is not valid yet.
    #[error("the access token is not valid yet: compare the clocks of NRF and producer")]
    NotYet,
    /// The token is for another NF.
    #[error("the access token is for another NF")]
    Audience,
    /// The token is for producers of another PLMN.
    #[error("the access token is for another PLMN")]
    Plmn,
    /// The token is for producers with other slices.
    #[error("the access token is for other slices")]
    Slice,
    /// The token is for producers of another NF set.
    #[error("the access token is for another NF set")]
    NfSet,
    /// The token was issued to another NF than the caller.
    #[error("the access token was issued to another NF than the client")]
    Subject,
    /// The token does not cover the service or operation.
    #[error("the access token does not have the scope '{0}'")]
    Scope(Arc<str>),
}

impl Refusal {
    /// The error for the client (TS 29.500 6.7.3, RFC 6750 3): 401 with `invalid_token`, or 403 with
    /// `insufficient_scope` if another token of this client could be accepted. Without a token there is no
    /// error code.
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

/// Verifies tokens, and caches verified ones until they expire.
#[derive(Debug, Default)]
pub struct Verifier {
    keys: KeySet,
    verified: HashMap<[u8; 32], Verified>,
}

impl Verifier {
    /// A verifier with these keys.
    pub fn new(keys: KeySet) -> Self {
        Self { keys, verified: HashMap::new() }
    }

    /// Replaces the keys. Tokens signed with a removed key become invalid.
    pub fn set_keys(&mut self, keys: KeySet) {
        self.keys = keys;
        self.verified.clear();
    }

    /// Verifies a token at a time in seconds since 1970.
    pub fn verify(&mut self, now: u64, token: &str) -> Result<Verified, Refusal> {
        let digest = sha256(token.as_bytes());
        if let Some(known) = self.verified.get(&digest) {
            return if known.exp.saturating_add(SKEW) > now {
                Ok(Arc::clone(known))
            } else {
                Err(Refusal::Expired)
            };
        }
        let claims = Arc::new(self.read(now, token)?);
        if self.verified.len() >= LIMIT {
            self.verified.retain(|_, claims| claims.exp > now);
        }
        // If the cache is full of valid tokens, a further token is verified at each use.
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
            self.keys.candidates(header.kid.as_deref()).filter(|key| key.algorithm() == algorithm).peekable();
        if keys.peek().is_none() {
            return Err(Refusal::UnknownKey);
        }
        if !keys.any(|key| key.verifies(signed.as_bytes(), &signature)) {
            return Err(Refusal::Signature);
        }
        if !self.keys.is_of(claims.iss) {
            return Err(Refusal::Issuer);
        }
        if claims.exp.saturating_add(SKEW) <= now {
            return Err(Refusal::Expired);
        }
        if claims.nbf.is_some_and(|nbf| nbf > now.saturating_add(SKEW)) {
            return Err(Refusal::NotYet);
        }
        Ok(claims)
    }
}

/// The identity of a producer, for the check of a token's audience.
#[derive(Debug, Clone, Default)]
pub struct Producer {
    /// Its NF instances in this process with their types.
    pub instances: Vec<(NfType, NfInstanceId)>,
    /// Its PLMNs.
    pub plmns: Vec<Plmn>,
    /// Its slices; all if empty.
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
    /// The scopes of the token.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.scope.split(' ')
    }

    /// Checks that the token covers the operation.
    pub fn covers(&self, operation: Operation) -> Result<(), Refusal> {
        covers(&self.scope, operation)
    }
}

/// Checks that a scope covers an operation. Additional scopes of the service limit a token to them, as far as the
/// operation has additional scopes (TS 29.501 4.12).
pub fn covers(scope: &str, operation: Operation) -> Result<(), Refusal> {
    let service = operation.service();
    let is_additional = |scope: &&str| {
        let rest = scope.strip_prefix(service.as_str());
        rest.is_some_and(|rest| rest.starts_with(':'))
    };
    let mut additional = scope.split(' ').filter(is_additional).peekable();
    let wanted = operation.additional_scopes();
    match wanted.first() {
        Some(first) if additional.peek().is_some() && !additional.any(|scope| wanted.contains(&scope)) => {
            Err(Refusal::Scope((*first).into()))
        }
        _ => Ok(()),
    }
}
