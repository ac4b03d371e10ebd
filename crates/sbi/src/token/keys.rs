//! Public keys that verify the access tokens of an NRF: a JWK Set (RFC 7517 5), or one key in PEM.

use crate::common::NfInstanceId;
use crate::octets::{base64url, from_base64url};
use pith_crypto::jws::{JwsAlgorithm, NotAKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Maximum number of keys in a set. An NRF has one key, or two during rotation.
const MAX_KEYS: usize = 16;

/// A public key of an NRF.
#[derive(Debug, Clone)]
pub struct Key {
    /// Key id (`kid`). A token with another key id is not verified with this key.
    pub id: Option<Arc<str>>,
    /// The key with its algorithm.
    pub key: VerifyingKey,
}

/// The public keys of an NRF.
#[derive(Debug, Clone, Default)]
pub struct KeySet {
    keys: Vec<Key>,
    /// The instances of the NRF; empty if they are not known.
    issuers: Vec<NfInstanceId>,
}

/// A text cannot be used as a key set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// The text is neither JSON nor PEM.
    #[error("this is neither a JWK Set nor a public key in PEM ('-----BEGIN PUBLIC KEY-----')")]
    Form,
    /// A key has an unsupported type or algorithm, or lacks a member.
    #[error(
        "a key of the JWK Set is not supported: its 'kty' must be EC with 'crv' P-256, or RSA with 'alg' RS256 or RS512"
    )]
    Kind,
    /// The set has too many keys.
    #[error("more than {MAX_KEYS} keys in the JWK Set")]
    TooMany,
    /// The octets are not a valid key.
    #[error(transparent)]
    NotAKey(#[from] NotAKey),
}

#[derive(Serialize)]
struct JwkSet {
    keys: Vec<Jwk>,
}

/// A set as received: it may have keys of other kinds.
#[derive(Deserialize)]
struct ReceivedSet {
    keys: Vec<serde_json::Value>,
}

/// A JWK (RFC 7517 4, RFC 7518 6).
#[derive(Serialize, Deserialize, Default)]
struct Jwk {
    kty: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alg: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kid: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crv: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    x: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    y: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    e: Option<String>,
}

impl KeySet {
    /// The keys of a JWK Set. Keys of other kinds, and those that are malformed, are ignored (RFC 7517 5); a set
    /// without any other key is an error.
    pub fn from_jwks(json: &[u8]) -> Result<Self, KeySetError> {
        let set: ReceivedSet = serde_json::from_slice(json).map_err(|_| KeySetError::Form)?;
        if set.keys.len() > MAX_KEYS {
            return Err(KeySetError::TooMany);
        }
        let (mut keys, mut ignored) = (Vec::new(), None);
        for jwk in set.keys {
            let jwk = serde_json::from_value::<Jwk>(jwk).map_err(|_| KeySetError::Kind);
            match jwk.and_then(|jwk| jwk.key()) {
                Ok(key) => keys.push(key),
                Err(error) => ignored = ignored.or(Some(error)),
            }
        }
        match ignored {
            Some(error) if keys.is_empty() => Err(error),
            _ => Ok(Self::new(keys)),
        }
    }

    /// Parses a public key in PEM (RFC 7468 13) for an algorithm.
    pub fn from_pem(algorithm: JwsAlgorithm, pem: &str) -> Result<Self, KeySetError> {
        let (_, rest) = pem.split_once("-----BEGIN PUBLIC KEY-----").ok_or(KeySetError::Form)?;
        let (text, _) = rest.split_once("-----END PUBLIC KEY-----").ok_or(KeySetError::Form)?;
        let text: String = text.split_ascii_whitespace().collect();
        let der: crate::Base64 = text.parse().map_err(|_| KeySetError::Form)?;
        let key = VerifyingKey::from_der(algorithm, &der.0)?;
        Ok(Self::new(vec![Key { id: None, key }]))
    }

    /// A set of the given keys.
    pub fn new(keys: Vec<Key>) -> Self {
        Self { keys, issuers: Vec::new() }
    }

    /// Restricts the keys to these NRFs: tokens of another issuer are refused.
    pub fn of_issuers(mut self, issuers: &[NfInstanceId]) -> Self {
        self.issuers = issuers.to_vec();
        self
    }

    /// Whether the keys may be those of that issuer (`iss`).
    pub(super) fn is_of(&self, issuer: NfInstanceId) -> bool {
        self.issuers.is_empty() || self.issuers.contains(&issuer)
    }

    /// The keys that may verify a token: those with the token's key id and those without a key id; all keys if the token
    /// has none.
    pub(super) fn candidates<'a>(&'a self, id: Option<&'a str>) -> impl Iterator<Item = &'a VerifyingKey> {
        let matches = move |key: &&Key| key.id.is_none() || id.is_none() || key.id.as_deref() == id;
        self.keys.iter().filter(matches).map(|key| &key.key)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl Jwk {
    /// The key that the JWK describes.
    fn key(&self) -> Result<Key, KeySetError> {
        let octets =
            |text: &Option<String>| text.as_deref().and_then(from_base64url).ok_or(KeySetError::Kind);
        let coordinate = |text| <[u8; 32]>::try_from(octets(text)?).map_err(|_| KeySetError::Kind);
        let algorithm = self.alg.as_deref().map(|name| JwsAlgorithm::of_name(name).ok_or(KeySetError::Kind));
        let key = match (&*self.kty, self.crv.as_deref(), algorithm.transpose()?) {
            ("EC", Some("P-256"), None | Some(JwsAlgorithm::Es256)) => {
                VerifyingKey::es256(&coordinate(&self.x)?, &coordinate(&self.y)?)?
            }
            ("RSA", _, Some(algorithm)) => {
                VerifyingKey::rsa(algorithm, &octets(&self.n)?, &octets(&self.e)?)?
            }
            _ => return Err(KeySetError::Kind),
        };
        Ok(Key { id: self.kid.clone(), key })
    }
}

/// Encodes ES256 keys, given by key id and coordinates, as a JWK Set.
pub fn jwks(keys: &[(Arc<str>, ([u8; 32], [u8; 32]))]) -> Vec<u8> {
    let jwk = |(kid, (x, y)): &(Arc<str>, ([u8; 32], [u8; 32]))| Jwk {
        kty: "EC".into(),
        alg: Some(JwsAlgorithm::Es256.name().into()),
        kid: Some(Arc::clone(kid)),
        crv: Some("P-256".into()),
        x: Some(base64url(x)),
        y: Some(base64url(y)),
        ..Jwk::default()
    };
    crate::http::json::text(&JwkSet { keys: keys.iter().map(jwk).collect() })
}
