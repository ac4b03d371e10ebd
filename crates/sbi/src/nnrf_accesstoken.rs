//! Nnrf_AccessToken (TS 29.510, RFC 6749): tokens for the use of services.
//!
//! The request is a form, not JSON; the members of the answer are in snake case.

use crate::Result;
use crate::common::{NfInstanceId, NfType};
use crate::http::{Body, Content, HttpRequest, Method, Query, json_bodies};
use crate::octets::SecretText;
use crate::operation::operations;
use crate::problem::{Cause, Problem, ProblemMore};
use crate::record::open_enum;
use bytes::Bytes;
use pith_types::{Plmn, Snssai};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a token is asked for. The grant type is always `client_credentials`.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessTokenReq {
    /// Who asks.
    pub nf_instance_id: NfInstanceId,
    /// Services, parted by spaces.
    pub scope: Arc<str>,
    /// What the asker is.
    pub nf_type: Option<NfType>,
    /// What the token is for: a type of NF.
    pub target_nf_type: Option<NfType>,
    /// What the token is for: an instance.
    pub target_nf_instance_id: Option<NfInstanceId>,
    /// The asker's network.
    pub requester_plmn: Option<Plmn>,
    /// The network of those that the token is for.
    pub target_plmn: Option<Plmn>,
    /// The asker's slices.
    pub requester_snssais: Option<Vec<Snssai>>,
    /// The asker's name in DNS.
    pub requester_fqdn: Option<Arc<str>>,
    /// The slices of those that the token is for.
    pub target_snssais: Option<Vec<Snssai>>,
    /// The NF set of those that the token is for.
    pub target_nf_set_id: Option<Arc<str>>,
}

impl AccessTokenReq {
    /// A request of that instance for services.
    pub fn new(nf_instance_id: NfInstanceId, scope: &str) -> Self {
        Self {
            nf_instance_id,
            scope: scope.into(),
            nf_type: None,
            target_nf_type: None,
            target_nf_instance_id: None,
            requester_plmn: None,
            target_plmn: None,
            requester_snssais: None,
            requester_fqdn: None,
            target_snssais: None,
            target_nf_set_id: None,
        }
    }
}

/// A token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccessTokenRsp {
    /// The token: a JWT, signed (RFC 7515).
    pub access_token: SecretText,
    /// `Bearer`.
    pub token_type: Arc<str>,
    /// Seconds for which it is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u32>,
    /// The services, if they are not those asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Arc<str>>,
}

open_enum! {
    /// Why there is no token (RFC 6749 5.2).
    AccessTokenErrorCode {
        InvalidRequest = "invalid_request",
        InvalidClient = "invalid_client",
        InvalidGrant = "invalid_grant",
        UnauthorizedClient = "unauthorized_client",
        UnsupportedGrantType = "unsupported_grant_type",
        InvalidScope = "invalid_scope",
    }
}

/// There is no token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccessTokenErr {
    /// Why.
    pub error: AccessTokenErrorCode,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_description: Option<Arc<str>>,
}

const FORM: &str = "application/x-www-form-urlencoded";

impl Body for AccessTokenReq {
    fn encode(&self) -> Content {
        let mut form = HttpRequest::new(Method::Post, "");
        form.parameter("grant_type", &Arc::from("client_credentials"));
        form.parameter("nfInstanceId", &self.nf_instance_id);
        form.parameter("scope", &self.scope);
        form.optional("nfType", &self.nf_type);
        form.optional("targetNfType", &self.target_nf_type);
        form.optional("targetNfInstanceId", &self.target_nf_instance_id);
        form.optional("requesterPlmn", &self.requester_plmn);
        form.optional("targetPlmn", &self.target_plmn);
        form.optional("requesterSnssaiList", &self.requester_snssais);
        form.optional("requesterFqdn", &self.requester_fqdn);
        form.optional("targetSnssaiList", &self.target_snssais);
        form.optional("targetNfSetId", &self.target_nf_set_id);
        Content { media_type: FORM.into(), body: form.query.into() }
    }

    fn decode(media_type: &str, body: &Bytes) -> Option<Result<Self>> {
        let form = media_type.split(';').next().unwrap_or_default().trim();
        form.eq_ignore_ascii_case(FORM).then(|| read(body))
    }
}

fn read(body: &Bytes) -> Result<AccessTokenReq> {
    let text = std::str::from_utf8(body).map_err(|_| Problem::new(Cause::InvalidMsgFormat))?;
    let form = Query::new(text)?;
    let grant_type: Arc<str> = form.required("grant_type")?;
    if &*grant_type != "client_credentials" {
        return Err(refused(AccessTokenErrorCode::UnsupportedGrantType));
    }
    Ok(AccessTokenReq {
        nf_instance_id: form.required("nfInstanceId")?,
        scope: form.required("scope")?,
        nf_type: form.optional("nfType")?,
        target_nf_type: form.optional("targetNfType")?,
        target_nf_instance_id: form.optional("targetNfInstanceId")?,
        requester_plmn: form.optional("requesterPlmn")?,
        target_plmn: form.optional("targetPlmn")?,
        requester_snssais: form.optional("requesterSnssaiList")?,
        requester_fqdn: form.optional("requesterFqdn")?,
        target_snssais: form.optional("targetSnssaiList")?,
        target_nf_set_id: form.optional("targetNfSetId")?,
    })
}

/// There is no token, for that reason (400).
pub fn refused(error: AccessTokenErrorCode) -> Box<Problem> {
    let error = AccessTokenErr { error, error_description: None };
    Problem::of_status(400).with(ProblemMore::AccessTokenErr(Box::new(error))).into()
}

json_bodies! {
    JSON: AccessTokenRsp;
}

operations! {
    NnrfOauth2 "/oauth2";

    /// Asks for a token.
    AccessTokenRequest "Nnrf_AccessToken_Get" "AccessTokenRequest"
    Post ["token"] {}
    body AccessTokenReq
    => [AccessTokenRsp];
}
