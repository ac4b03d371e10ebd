//! Sends queries and operator commands to shards and merges their answers.
//!
//! Queries run one after another, with a pause of three times their duration after each, so that they use at most a
//! quarter of the shards' time.

use super::ApiError;
use hyper::StatusCode;
use pith_nf::kit::{Order, Page};
use pith_types::{BlockId, ShardId};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, oneshot};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, timeout};

/// Time within which all shards must answer.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Pause after a query, as a multiple of its duration, and the longest pause.
const PAUSE: u32 = 3;
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// A query or a command for all shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topic {
    /// UE contexts of the AMF in a shard.
    Ues(u16, Page),
    /// Connected gNBs.
    Gnbs,
    /// SM contexts of the SMF in a shard.
    Sessions(u16, Page),
    /// NF instances registered with the NRF.
    Instances,
    /// UPFs with an association.
    Upfs,
    /// Shards with their blocks.
    Shards,
    /// Moves a block to a shard; the answer has one entry.
    Move {
        /// The block.
        block: BlockId,
        /// Its new owner.
        to: ShardId,
    },
    /// A command; the answer has an entry for each object that it changed.
    Order(Order),
}

/// Sends a topic to all shards and gateways that can answer it; each must call [`Gather::answer`] once with
/// the given query number. Returns how many were asked.
pub type Ask = Box<dyn Fn(Topic, u64) -> usize>;

struct Question {
    missing: usize,
    answer: Answers,
    done: oneshot::Sender<Answers>,
}

/// The merged answers.
#[derive(Debug, Default)]
pub struct Answers {
    /// One object for each entry.
    pub list: Vec<Value>,
    /// Where the next page of a shard begins, if there may be more.
    pub next: Option<u32>,
}

/// Pending queries.
pub struct Gather {
    ask: Ask,
    next: Cell<u64>,
    open: RefCell<HashMap<u64, Question>>,
    /// Held during a query and the pause after it.
    turn: Arc<Mutex<()>>,
}

impl Gather {
    /// Creates an instance without pending queries.
    pub fn new(ask: Ask) -> Self {
        Self { ask, next: Cell::new(0), open: RefCell::default(), turn: Arc::default() }
    }

    /// Collects the entries for a topic, after the queries before it.
    pub async fn inspect(self: &Rc<Self>, topic: Topic) -> Result<Answers, ApiError> {
        let turn = self.turn.clone().lock_owned().await;
        let (gather, (done, answers)) = (self.clone(), oneshot::channel());
        // If the client disconnects, the query still occupies its turn, because the shards answer anyway.
        spawn_local(async move {
            let begun = Instant::now();
            let _ = done.send(gather.collect(topic).await);
            sleep((begun.elapsed() * PAUSE).min(LONGEST_PAUSE)).await;
            drop(turn);
        });
        answers.await.map_err(|_| ApiError::internal("the query was not answered"))?
    }

    /// Sends a query or a command at once and collects the answers.
    pub async fn collect(&self, topic: Topic) -> Result<Answers, ApiError> {
        let id = self.next.replace(self.next.get() + 1);
        let (done, answers) = oneshot::channel();
        let missing = (self.ask)(topic, id);
        if missing == 0 {
            return Ok(Answers::default());
        }
        self.open.borrow_mut().insert(id, Question { missing, answer: Answers::default(), done });
        let answers = timeout(TIMEOUT, answers).await;
        self.open.borrow_mut().remove(&id);
        answers.ok().and_then(Result::ok).ok_or_else(|| ApiError {
            status: StatusCode::GATEWAY_TIMEOUT,
            detail: "a shard did not answer within 3 s: try again".into(),
        })
    }

    /// Adds one shard's answer.
    pub fn answer(&self, id: u64, list: Vec<Value>, next: Option<u32>) {
        let mut open = self.open.borrow_mut();
        let Some(question) = open.get_mut(&id) else { return };
        question.answer.list.extend(list);
        question.answer.next = question.answer.next.or(next);
        question.missing -= 1;
        if question.missing > 0 {
            return;
        }
        if let Some(Question { answer, done, .. }) = open.remove(&id) {
            // The receiver may have been dropped by a timeout in this turn of the loop.
            let _ = done.send(answer);
        }
    }
}
