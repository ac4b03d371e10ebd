//! Access tokens (TS 33.501 13.4.1, TS 29.510 6.3.5.2.4): claims signed by an NRF and verified by a producer.
//!
//! ```text
//!  NRF       AccessTokenClaims ── encode ─> signing input ── signature ─> header.claims.signature
//!  producer  token ── Verifier::verify: form, key, algorithm, signature, expiry ─> Verified, kept by digest
//!                  ── Producer::admit: audience, PLMN, slices, NF set, scope ─> Request
//! ```
//!
//! A token is a JWS in compact form (RFC 7515 3.1). The key determines the algorithm; the token's choice is
//! ignored (RFC 8725 3.1).

mod keys;
mod scope;
#[cfg(test)]
mod tests;
mod verify;
#[cfg(test)]
mod witness;

pub use keys::{Key, KeySet, KeySetError, jwks};
pub use verify::{Producer, Refusal, Verified, Verifier, covers};

use crate::common::{NfInstanceId, NfType};
use crate::octets::{base64url, from_base64url};
use crate::record::record;
use pith_crypto::jws::JwsAlgorithm;
use pith_types::{Plmn, Snssai};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Largest accepted token in octets: Pith's claims have some 400, and all headers together may have 16 KiB.
const LONGEST: usize = 8 << 10;

record! {
    /// The claims of an access token (TS 29.510 6.3.5.2.4).
    AccessTokenClaims {
        required {
            /// NF instance of the NRF.
            iss: NfInstanceId,
            /// NF instance of the consumer.
            sub: NfInstanceId,
            /// The producers for which the token is valid.
            aud: Audience,
            /// Services and additional scopes, separated by spaces.
            scope: Arc<str>,
            /// Time of expiry, seconds since 1970.
            exp: u64,
        }
        optional {
            /// Time before which it is not valid, seconds since 1970 (RFC 7519 4.1.5). Pith's NRF does not set it.
            nbf: u64,
            /// PLMN of the consumer.
            consumer_plmn_id: Plmn,
            /// PLMN of the producer.
            producer_plmn_id: Plmn,
            /// NF set of the producer.
            producer_nf_set_id: Arc<str>,
        }
        repeated {
            /// Slices of the producer.
            producer_snssai_list: Vec<Snssai>,
        }
    }
}

/// The audience of a token (`aud`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    /// All NFs of a type.
    Type(NfType),
    /// NF instances by id. These are texts because some NRFs write a type as a list with one entry.
    Instances(Vec<Arc<str>>),
}

impl From<NfType> for Audience {
    fn from(nf_type: NfType) -> Self {
        Self::Type(nf_type)
    }
}

impl From<NfInstanceId> for Audience {
    fn from(instance: NfInstanceId) -> Self {
        Self::Instances(vec![instance.to_string().into()])
    }
}

#[derive(Serialize, Deserialize)]
struct Header {
    alg: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kid: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    typ: Option<Arc<str>>,
    /// Critical extensions (RFC 7515 4.1.11); none is supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crit: Option<serde_json::Value>,
}

impl AccessTokenClaims {
    /// The signing input (RFC 7515 5.1): header and claims. [`Self::token`] appends the signature.
    pub fn signing_input(&self, algorithm: JwsAlgorithm, kid: &str) -> String {
        let typ = Some("JWT".into());
        let header = Header { alg: algorithm.name().into(), kid: Some(kid.into()), typ, crit: None };
        let part = |json: Vec<u8>| base64url(&json);
        format!("{}.{}", part(crate::http::json::text(&header)), part(crate::http::json::text(self)))
    }

    /// The token of a signing input and its signature.
    pub fn token(input: &str, signature: &[u8]) -> String {
        format!("{input}.{}", base64url(signature))
    }
}

/// The parts of a token, not yet verified.
#[derive(Debug)]
struct Parts<'a> {
    signed: &'a str,
    header: Header,
    claims: AccessTokenClaims,
    signature: Vec<u8>,
}

impl<'a> Parts<'a> {
    fn of(token: &'a str) -> Option<Self> {
        if token.len() > LONGEST {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header: Header = serde_json::from_slice(&from_base64url(header)?).ok()?;
        let claims = serde_json::from_slice(&from_base64url(claims)?).ok()?;
        let signature = from_base64url(signature)?;
        Some(Self { signed, header, claims, signature })
    }
}

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.alg, self.kid)
    }
}
