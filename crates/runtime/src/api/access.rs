//! Operations on API tokens and the audit log.

use super::audit::Wanted;
use super::call::{Call, json, no_content};
use super::route::Handling;
use super::{Api, ApiError};
use crate::config::Role;
use hyper::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json as value};
use std::rc::Rc;

/// Audit entries returned by default, and at most.
const ENTRIES: usize = 100;
const MAX_ENTRIES: usize = 10_000;

/// The request body that creates a token.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewToken {
    name: String,
    role: Role,
}

pub(super) fn tokens(api: Rc<Api>, _: Call) -> Handling {
    Box::pin(async move {
        let tokens = api.guard.tokens().list();
        let shown = tokens.iter().map(|token| {
            value!({ "id": token.id, "name": token.name, "role": token.role, "created": token.created })
        });
        json(StatusCode::OK, &shown.collect::<Vec<Value>>())
    })
}

pub(super) fn add_token(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let Ok([NewToken { name, role }]) = <[NewToken; 1]>::try_from(call.body_items()?) else {
            return Err(ApiError::bad_request("the body must be one object with 'name' and 'role'"));
        };
        json(StatusCode::CREATED, &api.guard.tokens().add(&name, role)?)
    })
}

pub(super) fn revoke_token(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let id: String = call.path_parameter()?;
        if !api.guard.tokens().revoke(&id)? {
            return Err(ApiError::not_found(format!("there is no token {id}")));
        }
        Ok(no_content())
    })
}

pub(super) fn audit(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let limit = call.query("limit")?.unwrap_or(ENTRIES).clamp(1, MAX_ENTRIES);
        let wanted = match call.query("denied")? {
            None => Wanted::All,
            Some(false) => Wanted::Changes,
            Some(true) => Wanted::Denials,
        };
        let entries = api.audit.last(limit, wanted);
        json(StatusCode::OK, &entries.map_err(|error| ApiError::internal(error.to_string()))?)
    })
}
