//! Status, configuration, and lists of UEs, gNBs, sessions, NF instances and UPFs.

use super::call::{Call, json};
use super::route::Handling;
use super::{Api, Topic};
use hyper::StatusCode;
use serde::Serialize;
use serde_json::json as value;
use std::rc::Rc;

/// State of the process.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// `starting`, `ready`, or `draining`.
    pub state: &'static str,
    /// Pith's version.
    pub version: &'static str,
    /// Seconds since the process started.
    pub uptime_s: u64,
    /// Milliseconds from the process's start to readiness; absent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_after_ms: Option<u64>,
    /// Names of the NFs in this process.
    pub nfs: Vec<String>,
    /// Number of shards.
    pub shards: usize,
}

pub(super) fn status(api: Rc<Api>, _: Call) -> Handling {
    Box::pin(async move { json(StatusCode::OK, &(api.status)()) })
}

pub(super) fn health(api: Rc<Api>, _: Call) -> Handling {
    Box::pin(async move {
        let state = (api.status)().state;
        let status = if state == "ready" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        json(status, &value!({ "state": state }))
    })
}

pub(super) fn config(api: Rc<Api>, _: Call) -> Handling {
    Box::pin(async move { json(StatusCode::OK, &api.config) })
}

pub(super) fn description(_: Rc<Api>, _: Call) -> Handling {
    Box::pin(async move { json(StatusCode::OK, &super::description()) })
}

pub(super) fn ues(api: Rc<Api>, _: Call) -> Handling {
    list(api, Topic::Ues)
}

pub(super) fn gnbs(api: Rc<Api>, _: Call) -> Handling {
    list(api, Topic::Gnbs)
}

pub(super) fn sessions(api: Rc<Api>, _: Call) -> Handling {
    list(api, Topic::Sessions)
}

pub(super) fn instances(api: Rc<Api>, _: Call) -> Handling {
    list(api, Topic::Instances)
}

pub(super) fn upfs(api: Rc<Api>, _: Call) -> Handling {
    list(api, Topic::Upfs)
}

fn list(api: Rc<Api>, topic: Topic) -> Handling {
    Box::pin(async move { json(StatusCode::OK, &api.gather.collect(topic).await?) })
}
