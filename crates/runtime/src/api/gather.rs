//! Sends queries and operator commands to all shards and merges their answers.

use super::ApiError;
use hyper::StatusCode;
use pith_nf::kit::Order;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time within which all shards must answer.
const TIMEOUT: Duration = Duration::from_secs(3);

/// A query or a command for all shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topic {
    /// UE contexts of the AMF.
    Ues,
    /// Connected gNBs.
    Gnbs,
    /// SM contexts of the SMF.
    Sessions,
    /// NF instances registered with the NRF.
    Instances,
    /// UPFs with an association.
    Upfs,
    /// A command; the answer has an entry for each object that it changed.
    Order(Order),
}

/// Sends a topic to all shards and gateways that can answer it; each must call [`Gather::answer`] once with
/// the given query number. Returns how many were asked.
pub type Ask = Box<dyn Fn(Topic, u64) -> usize>;

struct Question {
    missing: usize,
    list: Vec<Value>,
    done: oneshot::Sender<Vec<Value>>,
}

/// Pending queries.
pub struct Gather {
    ask: Ask,
    next: Cell<u64>,
    open: RefCell<HashMap<u64, Question>>,
}

impl Gather {
    /// Creates an instance without pending queries.
    pub fn new(ask: Ask) -> Self {
        Self { ask, next: Cell::new(0), open: RefCell::default() }
    }

    /// Collects the entries of all shards for a topic.
    pub async fn collect(&self, topic: Topic) -> Result<Vec<Value>, ApiError> {
        let id = self.next.replace(self.next.get() + 1);
        let (done, answers) = oneshot::channel();
        let missing = (self.ask)(topic, id);
        if missing == 0 {
            return Ok(Vec::new());
        }
        self.open.borrow_mut().insert(id, Question { missing, list: Vec::new(), done });
        let answers = timeout(TIMEOUT, answers).await;
        self.open.borrow_mut().remove(&id);
        answers.ok().and_then(Result::ok).ok_or_else(|| ApiError {
            status: StatusCode::GATEWAY_TIMEOUT,
            detail: "a shard did not answer within 3 s: try again".into(),
        })
    }

    /// Adds one shard's answer.
    pub fn answer(&self, id: u64, list: Vec<Value>) {
        let mut open = self.open.borrow_mut();
        let Some(question) = open.get_mut(&id) else { return };
        question.list.extend(list);
        question.missing -= 1;
        if question.missing > 0 {
            return;
        }
        if let Some(Question { list, done, .. }) = open.remove(&id) {
            // The receiver may have been dropped by a timeout in this turn of the loop.
            let _ = done.send(list);
        }
    }
}
