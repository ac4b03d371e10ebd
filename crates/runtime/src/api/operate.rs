//! Operator commands for registered UEs and sessions.

use super::call::{Call, no_content};
use super::route::Handling;
use super::{Api, ApiError, Topic};
use crate::config::Breakout;
use hyper::StatusCode;
use pith_nf::kit::{Deregister, Order, PolicyRule};
use pith_types::{Ambr, Supi};
use serde::Deserialize;
use serde_json::Value;
use std::net::IpAddr;
use std::rc::Rc;

/// Destinations that a UPF can hold for a session.
const MAX_DESTINATIONS: usize = 64;

pub(super) fn deregister(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let supi: Supi = call.path_parameter()?;
        let order = Order::Deregister { supis: [supi.clone()].into(), why: Deregister::Anew };
        if api.gather.collect(Topic::Order(order)).await?.list.is_empty() {
            return Err(ApiError::not_found(format!("{supi} is not registered here")));
        }
        Ok(no_content())
    })
}

/// Requests the location of a UE.
pub(super) fn locate(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let supi: Supi = call.path_parameter()?;
        let missing = format!("{supi} is not registered here");
        carry_out(api, Order::Locate { supi }, missing).await
    })
}

/// Resets the interface to a gNB.
pub(super) fn reset_gnb(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let gnb: String =
            call.query("gnb")?.ok_or_else(|| ApiError::bad_request("query 'gnb' is missing"))?;
        let missing = format!("no gNB '{gnb}' is connected: 'pith gnb list' shows all gNBs");
        carry_out(api, Order::ResetGnb { gnb }, missing).await
    })
}

/// Changes the relative capacity of the AMF.
pub(super) fn set_capacity(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let capacity: u8 = call.path_parameter()?;
        carry_out(api, Order::Capacity(capacity), "this process has no AMF".into()).await
    })
}

/// Changes the weight of an N2 endpoint.
pub(super) fn set_endpoint_weight(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let weight: u8 =
            call.query("weight")?.ok_or_else(|| ApiError::bad_request("query 'weight' is missing"))?;
        let (order, missing) = endpoint_order(&call, Some(weight))?;
        carry_out(api, order, missing).await
    })
}

/// Has gNBs remove their associations with an N2 endpoint.
pub(super) fn remove_endpoint(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let (order, missing) = endpoint_order(&call, None)?;
        carry_out(api, order, missing).await
    })
}

/// The order for the endpoint in the path, and what to say if the AMF has no such one.
fn endpoint_order(call: &Call, weight: Option<u8>) -> Result<(Order, String), ApiError> {
    let address: IpAddr = call.path_parameter()?;
    let missing = format!("{address} is none of several N2 endpoints ('amf.n2.endpoints')");
    Ok((Order::Endpoint { address, weight }, missing))
}

/// Starts inserting an uplink classifier into a session.
pub(super) fn branch(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let (supi, pdu_session_id) = session(&call)?;
        let Ok([Breakout { upf, destinations }]) = <[Breakout; 1]>::try_from(call.body_items()?) else {
            return Err(ApiError::bad_request("the body must be one breakout"));
        };
        if !(1..=MAX_DESTINATIONS).contains(&destinations.len()) {
            return Err(ApiError::bad_request(
                "'destinations' must have 1 to 64 prefixes, such as 192.0.2.0/24",
            ));
        }
        let destinations = destinations.iter().map(|to| (to.address(), to.prefix())).collect();
        change(api, Order::Branch { supi, pdu_session_id, upf, destinations }).await
    })
}

/// Starts removing the uplink classifier from a session.
pub(super) fn unbranch(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let (supi, pdu_session_id) = session(&call)?;
        change(api, Order::Unbranch { supi, pdu_session_id }).await
    })
}

/// A PCC rule, as the API has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RuleBody {
    five_qi: u8,
    #[serde(default = "RuleBody::usual_priority")]
    priority_level: u8,
    #[serde(default = "RuleBody::usual_precedence")]
    precedence: u8,
    guaranteed: Option<Ambr>,
    maximum: Option<Ambr>,
    flows: Vec<String>,
    #[serde(default)]
    reflective: bool,
}

impl RuleBody {
    const fn usual_priority() -> u8 {
        8
    }

    const fn usual_precedence() -> u8 {
        50
    }
}

/// Adds a PCC rule to a session, or replaces it.
pub(super) fn add_rule(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let (supi, pdu_session_id) = session(&call)?;
        let name = rule_name(&call);
        let Ok([body]) = <[RuleBody; 1]>::try_from(call.body_items()?) else {
            return Err(ApiError::bad_request("the body must be one rule"));
        };
        let RuleBody { five_qi, priority_level, precedence, guaranteed, maximum, flows, reflective } = body;
        let rule =
            PolicyRule { name, five_qi, priority_level, precedence, guaranteed, maximum, flows, reflective };
        change(api, Order::AddRule { supi, pdu_session_id, rule }).await
    })
}

/// Removes a PCC rule from a session.
pub(super) fn remove_rule(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let (supi, pdu_session_id) = session(&call)?;
        let name = rule_name(&call);
        change(api, Order::RemoveRule { supi, pdu_session_id, name }).await
    })
}

fn rule_name(call: &Call) -> String {
    call.path.get(2).cloned().unwrap_or_default()
}

/// SUPI and PDU session identity of the path.
fn session(call: &Call) -> Result<(Supi, u8), ApiError> {
    let supi = call.path_parameter()?;
    let id = call.path.get(1).and_then(|id| id.parse().ok()).filter(|id| (1..=15).contains(id));
    Ok((supi, id.ok_or_else(|| ApiError::bad_request("a PDU session identity is 1 to 15"))?))
}

async fn change(api: Rc<Api>, order: Order) -> Result<hyper::Response<bytes::Bytes>, ApiError> {
    carry_out(api, order, "no such session: 'pith session list' shows all sessions".into()).await
}

/// Carries out an order; `missing` is the error if no shard has what it names.
async fn carry_out(
    api: Rc<Api>,
    order: Order,
    missing: String,
) -> Result<hyper::Response<bytes::Bytes>, ApiError> {
    let done = api.gather.collect(Topic::Order(order)).await?;
    let Some(entry) = done.list.first() else {
        return Err(ApiError::not_found(missing));
    };
    match entry.get("refusal").and_then(Value::as_str) {
        Some(why) => Err(ApiError { status: StatusCode::CONFLICT, detail: why.into() }),
        None => Ok(no_content()),
    }
}
