//! Requests that an NF has not answered yet.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use tokio::sync::oneshot;

/// Open exchanges by number. A number is never used again.
pub struct Exchanges<R> {
    next: Cell<u64>,
    limit: usize,
    open: RefCell<HashMap<u64, oneshot::Sender<R>>>,
}

/// An open exchange. Dropping it removes it; a later answer is ignored.
pub struct Exchange<R> {
    /// The exchange's number.
    pub id: u64,
    exchanges: Rc<Exchanges<R>>,
    answer: oneshot::Receiver<R>,
}

impl<R> Exchanges<R> {
    /// An empty table for at most `limit` exchanges.
    pub fn new(limit: usize) -> Rc<Self> {
        Rc::new(Self { next: Cell::new(1), limit, open: RefCell::default() })
    }

    /// Opens an exchange; `None` if there are too many.
    pub fn open(self: &Rc<Self>) -> Option<Exchange<R>> {
        let mut open = self.open.borrow_mut();
        if open.len() >= self.limit {
            return None;
        }
        let (sender, answer) = oneshot::channel();
        let id = self.next.replace(self.next.get() + 1);
        open.insert(id, sender);
        Some(Exchange { id, exchanges: self.clone(), answer })
    }

    /// Answers an exchange; has no effect if the exchange was dropped.
    pub fn answer(&self, id: u64, answer: R) {
        if let Some(sender) = self.open.borrow_mut().remove(&id) {
            // It fails if the exchange is being dropped.
            let _ = sender.send(answer);
        }
    }

    /// Number of open exchanges.
    pub fn len(&self) -> usize {
        self.open.borrow().len()
    }

    /// Whether there are no open exchanges.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<R> Exchange<R> {
    /// Waits for the answer.
    pub async fn answer(mut self) -> R {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            // The table keeps the sender until it is used or this exchange is dropped.
            Err(_) => std::future::pending().await,
        }
    }
}

impl<R> Drop for Exchange<R> {
    fn drop(&mut self) {
        self.exchanges.open.borrow_mut().remove(&self.id);
    }
}
