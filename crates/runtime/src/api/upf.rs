//! Operations of the UPF: sessions, rules, flows, counters, traces.

use super::call::{Call, json, no_content};
use super::route::Handling;
use super::{Api, ApiError};
use crate::upf::{Name, Page, Question, SeidText, TeidText, TraceRequest};
use hyper::StatusCode;
use pith_upf::contract::SessionId;
use serde_json::Value;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::timeout;

/// Time within which the UPF must answer.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Sessions per page by default, and at most.
const PAGE: usize = 100;
const LARGEST_PAGE: usize = 10_000;
/// Limits of a trace by default.
const TRACE_PACKETS: usize = 1000;
const TRACE_SECONDS: u64 = 60;

impl Api {
    async fn ask_upf(&self, question: Question) -> Result<Value, ApiError> {
        let elsewhere = || ApiError {
            status: StatusCode::NOT_IMPLEMENTED,
            detail: "this process has no UPF: send the request to the process with the UPF".into(),
        };
        let answer = self.upf.as_ref().ok_or_else(elsewhere)?.query(question);
        let late = || ApiError {
            status: StatusCode::GATEWAY_TIMEOUT,
            detail: "the UPF did not answer within 3 s: try again".into(),
        };
        timeout(TIMEOUT, answer).await.ok().and_then(Result::ok).ok_or_else(late)?
    }
}

pub(super) fn sessions(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let ue = call.query("ue")?.map(Name::Ue);
        let teid = call.query("teid")?.map(|TeidText(teid)| Name::Teid(teid));
        let after = call.query("after")?.map_or(SessionId(0), |SeidText(seid)| seid);
        let limit = call.query("limit")?.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
        let question = match ue.or(teid) {
            Some(name) => Question::SessionNamed(name),
            None => Question::Sessions(Page { after, limit }),
        };
        json(StatusCode::OK, &api.ask_upf(question).await?)
    })
}

pub(super) fn rules(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(
        async move { json(StatusCode::OK, &api.ask_upf(Question::Rules(call.path_parameter()?)).await?) },
    )
}

pub(super) fn flows(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(
        async move { json(StatusCode::OK, &api.ask_upf(Question::Flows(call.path_parameter()?)).await?) },
    )
}

pub(super) fn counters(api: Rc<Api>, _: Call) -> Handling {
    Box::pin(async move { json(StatusCode::OK, &api.ask_upf(Question::Counters).await?) })
}

pub(super) fn begin_trace(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let missing = || ApiError::bad_request("query 'teid' is required: the TEID of a tunnel");
        let TeidText(teid) = call.query("teid")?.ok_or_else(missing)?;
        let packets = call.query("packets")?.unwrap_or(TRACE_PACKETS);
        let time = Duration::from_secs(call.query("seconds")?.unwrap_or(TRACE_SECONDS));
        let question = Question::BeginTrace(TraceRequest { teid, packets, time });
        json(StatusCode::CREATED, &api.ask_upf(question).await?)
    })
}

pub(super) fn read_trace(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let (id, after) = (call.path_parameter()?, call.query("after")?.unwrap_or(0));
        json(StatusCode::OK, &api.ask_upf(Question::ReadTrace { id, after }).await?)
    })
}

pub(super) fn end_trace(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        api.ask_upf(Question::EndTrace(call.path_parameter()?)).await?;
        Ok(no_content())
    })
}
