//! Messages from the control thread to a worker, which takes them between two batches.
//!
//! A worker owns its tables, so packets need no lock. A sleeping worker is not woken for new rules: it takes
//! its messages before the first packet after its sleep. A message therefore counts as applied once it is
//! posted and the worker is parked.

use super::handover::Order;
use super::packet_out::PacketOut;
use super::ports::Port;
use crate::boundary::Reach;
use crate::fib::Fib;
use crate::rules::Rules;
use crate::sys::EventFd;
use pith_upf::contract::SessionId;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of pending messages of a sleeping worker before it is woken to take them.
const MAX_WAITING: usize = 256;

/// A message to a worker.
#[derive(Debug)]
pub enum Message {
    /// Replaces the rules of a session.
    Publish {
        rules: Arc<Rules>,
        previous: Option<Arc<Rules>>,
    },
    /// Removes a session.
    Remove(Arc<Rules>),
    /// Sends a Router Advertisement to a session's UE.
    Advertise(SessionId),
    /// Drops the packets held for a session.
    Discard(Arc<Rules>),
    /// Sends packets to the data network by a packet socket.
    SendBy(PacketOut),
    /// Sets the routes to the data network.
    Fib(Arc<Fib>),
    /// Adds an AF_XDP socket.
    Serve(Port),
    /// Sets the closed destinations.
    Reach(Arc<Reach>),
    /// Sets whether GTP-U of a host is accepted.
    Peer {
        address: IpAddr,
        /// Whether a tunnel has this peer.
        known: bool,
    },
    /// A step of a handover to another process, or from one.
    Order(Order),
    Stop,
}

#[derive(Debug)]
pub struct Inbox {
    waiting: Mutex<Vec<Message>>,
    posted: AtomicU64,
    applied: AtomicU64,
    parked: AtomicBool,
    wake: EventFd,
}

impl Inbox {
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            waiting: Mutex::new(Vec::new()),
            posted: AtomicU64::new(0),
            applied: AtomicU64::new(0),
            parked: AtomicBool::new(false),
            wake: EventFd::new()?,
        })
    }

    /// Posts a message and returns its number.
    pub fn post(&self, message: Message) -> u64 {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(message);
        if waiting.len() == MAX_WAITING {
            self.wake.signal();
        }
        self.posted.fetch_add(1, SeqCst) + 1
    }

    pub fn posted(&self) -> u64 {
        self.posted.load(SeqCst)
    }

    pub fn wake(&self) {
        self.wake.signal();
    }

    /// The descriptor that wakes the worker.
    pub fn wake_fd(&self) -> &EventFd {
        &self.wake
    }

    /// Whether no packet is handled by the state before message `number`.
    pub fn has_applied(&self, number: u64) -> bool {
        self.parked.load(SeqCst) || self.applied.load(SeqCst) >= number
    }

    /// Whether the worker has taken message `number`.
    pub fn has_taken(&self, number: u64) -> bool {
        self.applied.load(SeqCst) >= number
    }

    pub fn is_parked(&self) -> bool {
        self.parked.load(SeqCst)
    }

    /// For the worker: takes all messages into `taken`, and returns the number to `confirm` when they are
    /// applied; `None` if there are none.
    pub fn take(&self, taken: &mut Vec<Message>) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        taken.append(&mut waiting);
        Some(self.posted())
    }

    /// For the worker: confirms that all messages up to `number` are applied.
    pub fn confirm(&self, number: u64) {
        self.applied.store(number, SeqCst);
    }

    /// For the worker, before it sleeps. `false` if messages are pending, and it must not sleep.
    pub fn park(&self) -> bool {
        self.parked.store(true, SeqCst);
        let quiet = self.is_empty();
        if !quiet {
            self.unpark();
        }
        quiet
    }

    /// For the worker, after it sleeps and before it checks for messages and then packets.
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
