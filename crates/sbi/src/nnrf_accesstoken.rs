//! Nnrf_AccessToken (TS 29.510, RFC 6749): access tokens for services.
//!
//! The request is a form, not JSON; the response's members are in snake case.

use crate::Result;
use crate::common::{NfInstanceId, NfType};
use crate::http::{Body, Content, HttpRequest, Method, Query, json_bodies};
use crate::octets::SecretText;
use crate::operation::operations;
use crate::problem::{Cause, InvalidParam, Problem, ProblemMore};
use crate::record::open_enum;
use bytes::Bytes;
use pith_types::{Plmn, Snssai};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A request for an access token. The grant type is always `client_credentials`.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessTokenReq {
    /// NF instance of the consumer.
    pub nf_instance_id: NfInstanceId,
    /// Services, separated by spaces.
    pub scope: Arc<str>,
    /// NF type of the consumer.
    pub nf_type: Option<NfType>,
    /// NF type of the producers.
    pub target_nf_type: Option<NfType>,
    /// NF instance of the producer.
    pub target_nf_instance_id: Option<NfInstanceId>,
    /// PLMN of the consumer.
    pub requester_plmn: Option<Plmn>,
    /// PLMN of the producers.
    pub target_plmn: Option<Plmn>,
    /// Slices of the consumer.
    pub requester_snssais: Option<Vec<Snssai>>,
    /// FQDN of the consumer.
    pub requester_fqdn: Option<Arc<str>>,
    /// Slices of the producers.
    pub target_snssais: Option<Vec<Snssai>>,
    /// NF set of the producers.
    pub target_nf_set_id: Option<Arc<str>>,
}

impl AccessTokenReq {
    /// A request of an instance for services.
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

/// An access token response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccessTokenRsp {
    /// The token: a signed JWT (RFC 7515).
    pub access_token: SecretText,
    /// `Bearer`.
    pub token_type: Arc<str>,
    /// Validity in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u32>,
    /// The granted services, if different from the requested ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Arc<str>>,
}

open_enum! {
    /// Error codes (RFC 6749 5.2).
    AccessTokenErrorCode {
        InvalidRequest = "invalid_request",
        InvalidClient = "invalid_client",
        InvalidGrant = "invalid_grant",
        UnauthorizedClient = "unauthorized_client",
        UnsupportedGrantType = "unsupported_grant_type",
        InvalidScope = "invalid_scope",
    }
}

/// An error response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccessTokenErr {
    /// The error code.
    pub error: AccessTokenErrorCode,
    /// A human-readable description.
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
        form.eq_ignore_ascii_case(FORM).then(|| read(body).map_err(of_form))
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

/// The error of a form with missing, repeated or wrong parameters, which RFC 6749 5.2 knows as `invalid_request` only.
fn of_form(problem: Box<Problem>) -> Box<Problem> {
    if let Some(ProblemMore::AccessTokenErr(_)) = &problem.more {
        return problem;
    }
    let details = &problem.details;
    let description = match details.invalid_params.first() {
        Some(InvalidParam { param, reason }) => {
            let name = param.strip_prefix("query ").unwrap_or(param);
            format!("{name} is {}", reason.as_deref().unwrap_or("wrong"))
        }
        None => details.detail.clone().unwrap_or_else(|| "not a form".into()),
    };
    let is_permitted = |letter: &char| matches!(letter, ' '..='!' | '#'..='[' | ']'..='~');
    let description: String = description.chars().filter(is_permitted).collect();
    let error = AccessTokenErrorCode::InvalidRequest;
    let error = AccessTokenErr { error, error_description: Some(description.into()) };
    Problem::of_status(400).with(ProblemMore::AccessTokenErr(Box::new(error))).into()
}

/// The problem for an error code (400).
pub fn refused(error: AccessTokenErrorCode) -> Box<Problem> {
    let error = AccessTokenErr { error, error_description: None };
    Problem::of_status(400).with(ProblemMore::AccessTokenErr(Box::new(error))).into()
}

json_bodies! {
    JSON: AccessTokenRsp;
}

operations! {
    NnrfOauth2 "/oauth2";

    /// Requests an access token.
    AccessTokenRequest "Nnrf_AccessToken_Get" "AccessTokenRequest"
    Post ["token"] {}
    body AccessTokenReq
    => [AccessTokenRsp];
}
