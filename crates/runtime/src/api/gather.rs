//! Questions and orders to all shards at once, and their answers brought together.

use super::ApiError;
use hyper::StatusCode;
use pith_nf::kit::Order;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time for all to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// What an operator asks to see, or wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topic {
    /// UE contexts of the AMF.
    Ues,
    /// gNBs that are connected.
    Gnbs,
    /// SM contexts of the SMF.
    Sessions,
    /// NF instances that the NRF knows.
    Instances,
    /// UPFs with an association.
    Upfs,
    /// Something is to be done; the answer has an entry for each thing it was done to.
    Order(Order),
}

/// Asks those that know a topic: each answers [`Gather::answer`] once with the question's number. Gives
/// how many were asked.
pub type Ask = Box<dyn Fn(Topic, u64) -> usize>;

struct Question {
    missing: usize,
    list: Vec<Value>,
    done: oneshot::Sender<Vec<Value>>,
}

/// Open questions.
pub struct Gather {
    ask: Ask,
    next: Cell<u64>,
    open: RefCell<HashMap<u64, Question>>,
}

impl Gather {
    /// None yet.
    pub fn new(ask: Ask) -> Self {
        Self { ask, next: Cell::new(0), open: RefCell::default() }
    }

    /// Everything that is known about a topic.
    pub async fn ask(&self, topic: Topic) -> Result<Vec<Value>, ApiError> {
        let id = self.next.replace(self.next.get() + 1);
        let (done, answers) = oneshot::channel();
        let missing = (self.ask)(topic, id);
        if missing == 0 {
            return Ok(Vec::new());
        }
        self.open.borrow_mut().insert(id, Question { missing, list: Vec::new(), done });
        let answers = timeout(PATIENCE, answers).await;
        self.open.borrow_mut().remove(&id);
        answers.ok().and_then(Result::ok).ok_or_else(|| ApiError {
            status: StatusCode::GATEWAY_TIMEOUT,
            detail: "a part of the core is too busy to answer: try again".into(),
        })
    }

    /// Takes the answer of one of those asked.
    pub fn answer(&self, id: u64, list: Vec<Value>) {
        let mut open = self.open.borrow_mut();
        let Some(question) = open.get_mut(&id) else { return };
        question.list.extend(list);
        question.missing -= 1;
        if question.missing > 0 {
            return;
        }
        if let Some(Question { list, done, .. }) = open.remove(&id) {
            // Whoever asked went away within this turn of the loop.
            let _ = done.send(list);
        }
    }
}
