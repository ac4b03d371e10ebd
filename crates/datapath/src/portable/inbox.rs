//! How the control side reaches a worker: by messages that the worker takes between two batches.
//!
//! The tables of a worker are its own, so no packet meets a lock. A worker that sleeps need not be woken
//! for new rules: it takes them before the first packet after its sleep. So a message is as good as
//! applied once it is posted and the worker is parked.

use super::ports::Port;
use crate::boundary::Reach;
use crate::rules::Rules;
use crate::sys::EventFd;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// Messages that may wait for a sleeping worker before it is woken to take them.
const MOST_WAITING: usize = 256;

/// What a worker is told.
#[derive(Debug)]
pub enum Message {
    /// Rules of a session, and those they replace.
    Publish {
        /// From now on.
        rules: Arc<Rules>,
        /// Until now.
        previous: Option<Arc<Rules>>,
    },
    /// A session is gone.
    Remove(Arc<Rules>),
    /// Packets held for a session are to be dropped.
    Discard(Arc<Rules>),
    /// A socket to serve, of the interface in that slot of the program's devices.
    Serve(Port),
    /// What UEs reach from now on.
    Reach(Arc<Reach>),
    /// Whether GTP-U of a host is accepted.
    Peer {
        /// The host's.
        address: IpAddr,
        /// Whether a tunnel leads there.
        known: bool,
    },
    /// The datapath stops.
    Stop,
}

/// A worker's inbox.
#[derive(Debug)]
pub struct Inbox {
    waiting: Mutex<Vec<Message>>,
    posted: AtomicU64,
    applied: AtomicU64,
    parked: AtomicBool,
    wake: EventFd,
}

impl Inbox {
    /// Empty.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            waiting: Mutex::new(Vec::new()),
            posted: AtomicU64::new(0),
            applied: AtomicU64::new(0),
            parked: AtomicBool::new(false),
            wake: EventFd::new()?,
        })
    }

    /// Leaves a message, and answers its number.
    pub fn post(&self, message: Message) -> u64 {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(message);
        if waiting.len() == MOST_WAITING {
            self.wake.signal();
        }
        self.posted.fetch_add(1, SeqCst) + 1
    }

    /// The number of the last message.
    pub fn posted(&self) -> u64 {
        self.posted.load(SeqCst)
    }

    /// Wakes the worker.
    pub fn wake(&self) {
        self.wake.signal();
    }

    /// What wakes the worker.
    pub fn wake_fd(&self) -> &EventFd {
        &self.wake
    }

    /// Whether no packet will meet what was so before message `number`.
    pub fn has_applied(&self, number: u64) -> bool {
        self.parked.load(SeqCst) || self.applied.load(SeqCst) >= number
    }

    /// Whether the worker has taken message `number`.
    pub fn has_taken(&self, number: u64) -> bool {
        self.applied.load(SeqCst) >= number
    }

    /// Whether the worker sleeps.
    pub fn is_parked(&self) -> bool {
        self.parked.load(SeqCst)
    }

    /// The worker's: takes all messages into `taken`, and answers the number to `confirm` when they are
    /// applied; `None` if there is none.
    pub fn take(&self, taken: &mut Vec<Message>) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        taken.append(&mut waiting);
        Some(self.posted())
    }

    /// The worker's: all messages up to `number` are applied.
    pub fn confirm(&self, number: u64) {
        self.applied.store(number, SeqCst);
    }

    /// The worker's: about to sleep. `false` if a message came, and it must not.
    pub fn park(&self) -> bool {
        self.parked.store(true, SeqCst);
        let quiet = self.is_empty();
        if !quiet {
            self.unpark();
        }
        quiet
    }

    /// The worker's: awake, before it looks for messages and then for packets.
    pub fn unpark(&self) {
        self.parked.store(false, SeqCst);
    }

    fn is_empty(&self) -> bool {
        self.posted() == self.applied.load(SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_applied_when_confirmed_or_its_worker_sleeps() {
        let inbox = Inbox::new().unwrap();
        assert!(inbox.park());
        let first = inbox.post(Message::Stop);
        assert!(inbox.has_applied(first), "the worker sleeps");
        inbox.unpark();
        assert!(!inbox.has_applied(first));
        assert!(!inbox.park(), "it must not sleep on a message");
        let mut taken = Vec::new();
        let number = inbox.take(&mut taken).unwrap();
        assert_eq!((taken.len(), number), (1, first));
        inbox.confirm(number);
        assert!(inbox.has_applied(first));
        assert!(inbox.take(&mut taken).is_none());
    }
}
