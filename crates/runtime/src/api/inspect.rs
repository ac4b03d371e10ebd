//! Status, configuration, and lists of UEs, gNBs, sessions, NF instances and UPFs.

use super::call::{Call, json};
use super::route::Handling;
use super::{Api, ApiError, Topic};
use crate::residency::{Cost, Costs, Statistics};
use hyper::StatusCode;
use hyper::header::{HeaderValue, LINK};
use pith_datapath::PathReport;
use pith_nf::fabric::{Histogram, Intervals};
use pith_nf::kit::Page;
use pith_types::Supi;
use serde::Serialize;
use serde_json::json as value;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::str::FromStr;
use std::time::Duration;

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
    /// Contexts of UEs and sessions, if they are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contexts: Option<ContextStatus>,
    /// The set of instances, if the process is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<SetStatus>,
    /// The path of packets, if this process has the UPF.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_plane: Option<UserPlaneStatus>,
}

/// The set of instances that a process is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetStatus {
    /// This process.
    pub instance: u8,
    /// The lease of each instance.
    pub lease_ms: u64,
    /// Why the owner map cannot be read at present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The instances, also those that are gone.
    pub instances: Vec<InstanceStatus>,
}

/// An instance of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceStatus {
    /// Its number.
    pub instance: u8,
    /// The apiRoot of its services.
    pub root: String,
    /// Whether its lease has not ended.
    pub lives: bool,
    /// Number of blocks that it has.
    pub blocks: usize,
    /// Number of blocks whose home it is.
    pub homes: usize,
}

/// The path of packets through the UPF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UserPlaneStatus {
    /// `xdp` or `portable`.
    pub path: &'static str,
    /// Where XDP runs, or why it does not.
    pub detail: String,
    /// What would make it faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faster: Option<String>,
}

impl From<&PathReport> for UserPlaneStatus {
    fn from(report: &PathReport) -> Self {
        let PathReport { path, detail, faster, detour } = report.clone();
        let by_kernel = detour.reason().map(|reason| format!("; from and to N6 by the kernel: {reason}"));
        Self { path, detail: detail + &by_kernel.unwrap_or_default(), faster }
    }
}

/// State of the stored contexts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextStatus {
    /// The setting `residency`.
    pub residency: String,
    /// Where: `file`, or the address of a server.
    pub engine: String,
    /// What a change writes: `replace` or `update`.
    pub write: String,
    /// Counters of the engine since the start.
    pub operations: StoreOperations,
    /// What each procedure has cost since the start.
    pub procedures: BTreeMap<&'static str, ProcedureOperations>,
    /// The time from the end of a context's transaction to the begin of its next one: of UEs (AMF), of sessions (SMF), and of sessions if
    /// the next one begins with a message of a UPF.
    pub between_transactions: BTreeMap<&'static str, TransactionIntervals>,
    /// Documents in requests of other processes, with `embedded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded: Option<EmbeddedDocuments>,
    /// Contexts that were restored at the start.
    pub restored: u64,
    /// Contexts that could not be restored; the log has their names.
    pub unreadable: u64,
    /// Why changes are not stored at present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Documents in requests of other processes since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EmbeddedDocuments {
    /// Those that were used in place of a read.
    pub used: u64,
    /// Those that were not: older ones, or of another installation.
    pub refused: u64,
}

/// Counters of the engine of stored contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreOperations {
    /// Documents written or deleted.
    pub writes: u64,
    /// Documents read.
    pub reads: u64,
    /// Requests: system calls for a file, requests on the wire for a server.
    pub requests: u64,
    /// Octets written.
    pub octets_written: u64,
    /// Octets read.
    pub octets_read: u64,
    /// Microseconds in writes.
    pub write_us: u64,
    /// Microseconds in reads.
    pub read_us: u64,
    /// Writes that failed.
    pub failures: u64,
}

/// What a procedure has cost. Requests and time that documents have in common are divided among them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcedureOperations {
    /// Documents written or deleted.
    pub writes: f64,
    /// Documents read.
    pub reads: f64,
    /// Requests: system calls for a file, requests on the wire for a server.
    pub requests: f64,
    /// Octets written.
    pub octets_written: f64,
    /// Octets read.
    pub octets_read: f64,
    /// Microseconds in the store.
    pub us: f64,
}

/// Intervals between transactions. Each quantile is exact to an eighth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TransactionIntervals {
    /// Number of intervals.
    pub count: u64,
    /// Their mean, milliseconds.
    pub mean_ms: f64,
    /// Their median, milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile, milliseconds.
    pub p99_ms: f64,
}

impl From<&Histogram> for TransactionIntervals {
    fn from(of: &Histogram) -> Self {
        let millis = |time: Duration| time.as_micros() as f64 / 1000.0;
        let (p50_ms, p99_ms) = (millis(of.quantile(500)), millis(of.quantile(990)));
        Self { count: of.count(), mean_ms: millis(of.mean()), p50_ms, p99_ms }
    }
}

impl ContextStatus {
    /// The intervals between transactions, by what has them.
    pub fn between_transactions(of: &Intervals) -> BTreeMap<&'static str, TransactionIntervals> {
        BTreeMap::from([
            ("ues", (&of.ues).into()),
            ("sessions", (&of.sessions).into()),
            ("n4", (&of.n4).into()),
        ])
    }

    /// The costs of procedures, by name.
    pub fn procedures(costs: &Costs) -> BTreeMap<&'static str, ProcedureOperations> {
        costs.procedures().map(|(procedure, cost)| (procedure.name(), cost.into())).collect()
    }
}

impl From<Cost> for ProcedureOperations {
    fn from(cost: Cost) -> Self {
        let Cost { writes, reads, requests, octets_written, octets_read, ns } = cost;
        let tidy = |number: f64| (number * 100.0).round() / 100.0;
        Self {
            writes: tidy(writes),
            reads: tidy(reads),
            requests: tidy(requests),
            octets_written: tidy(octets_written),
            octets_read: tidy(octets_read),
            us: tidy(ns / 1000.0),
        }
    }
}

impl From<Statistics> for StoreOperations {
    fn from(statistics: Statistics) -> Self {
        let Statistics {
            writes,
            reads,
            requests,
            octets_written,
            octets_read,
            write_ns,
            read_ns,
            failures,
            ..
        } = statistics;
        let (write_us, read_us) = (write_ns / 1000, read_ns / 1000);
        Self { writes, reads, requests, octets_written, octets_read, write_us, read_us, failures }
    }
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

pub(super) fn ues(api: Rc<Api>, call: Call) -> Handling {
    page(api, call, "/v1/ues", Topic::Ues)
}

pub(super) fn gnbs(api: Rc<Api>, _: Call) -> Handling {
    list(api, Topic::Gnbs)
}

pub(super) fn sessions(api: Rc<Api>, call: Call) -> Handling {
    page(api, call, "/v1/sessions", Topic::Sessions)
}

pub(super) fn instances(api: Rc<Api>, _: Call) -> Handling {
    list(api, Topic::Instances)
}

pub(super) fn upfs(api: Rc<Api>, _: Call) -> Handling {
    list(api, Topic::Upfs)
}

fn list(api: Rc<Api>, topic: Topic) -> Handling {
    Box::pin(async move { json(StatusCode::OK, &api.gather.inspect(topic).await?.list) })
}

/// Entries of a page where nothing else is said, and at most: a shard makes it in a few milliseconds.
const PAGE: u32 = 500;
const LARGEST_PAGE: u32 = 2_000;

/// Where a page begins: a shard, and a place in the shard's table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Begin {
    shard: u16,
    first: u32,
}

impl FromStr for Begin {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "it is what the 'Link' of the page before names";
        let (shard, first) = text.split_once('.').ok_or(WRONG)?;
        Ok(Self { shard: shard.parse().map_err(|_| WRONG)?, first: first.parse().map_err(|_| WRONG)? })
    }
}

/// A page of what shards have, shard after shard. The 'Link' of the answer is the next page (RFC 8288).
fn page(api: Rc<Api>, call: Call, path: &'static str, topic: fn(u16, Page) -> Topic) -> Handling {
    Box::pin(async move {
        let limit: u32 = call.query("limit")?.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
        let supi: Option<Supi> = call.query("supi")?;
        let mut begin: Begin = call.query("after")?.unwrap_or_default();
        let shards = u16::try_from((api.status)().shards).unwrap_or(u16::MAX);
        let mut list = Vec::new();
        while begin.shard < shards && list.len() < limit as usize {
            let left = limit - list.len() as u32;
            let page = Page { first: begin.first, limit: left, supi: supi.clone() };
            let answers = api.gather.inspect(topic(begin.shard, page)).await?;
            list.extend(answers.list);
            begin = match answers.next {
                Some(first) => Begin { first, ..begin },
                None => Begin { shard: begin.shard + 1, first: 0 },
            };
        }
        let mut response = json(StatusCode::OK, &list)?;
        if begin.shard < shards {
            let of = supi.map(|supi| format!("&supi={supi}")).unwrap_or_default();
            let Begin { shard, first } = begin;
            let link = format!("<{path}?after={shard}.{first}&limit={limit}{of}>; rel=\"next\"");
            let link = HeaderValue::from_str(&link).map_err(|error| ApiError::internal(error.to_string()))?;
            response.headers_mut().insert(LINK, link);
        }
        Ok(response)
    })
}
