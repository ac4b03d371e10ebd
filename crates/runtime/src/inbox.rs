//! Inboxes: how threads of a process hand things to each other.
//!
//! An inbox itself never refuses: between shards and the edge nothing may block, or two threads
//! could wait for each other. It counts what it holds, and readers of sockets stop reading while
//! the inbox that they feed holds more than its bound, so that the transport's own window slows the
//! peer (design section 5).

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The sending side, for any thread.
pub struct Inbox<T> {
    sender: Sender<T>,
    held: Arc<AtomicUsize>,
    bound: usize,
}

impl<T> Clone for Inbox<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), held: Arc::clone(&self.held), bound: self.bound }
    }
}

/// The receiving side, for one thread.
pub struct Outlet<T> {
    receiver: Receiver<T>,
    held: Arc<AtomicUsize>,
}

/// An inbox that asks its feeders to pause while it holds more than `bound`.
pub fn inbox<T>(bound: usize) -> (Inbox<T>, Outlet<T>) {
    let (sender, receiver) = unbounded();
    let held = Arc::new(AtomicUsize::new(0));
    (Inbox { sender, held: Arc::clone(&held), bound }, Outlet { receiver, held })
}

impl<T> Inbox<T> {
    /// Puts one thing in. What is sent after the receiving thread ended is dropped.
    pub fn send(&self, thing: T) {
        self.held.fetch_add(1, Ordering::Relaxed);
        if self.sender.send(thing).is_err() {
            self.held.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// How many things wait.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether whoever feeds it from a socket has to pause.
    pub fn is_full(&self) -> bool {
        self.held() >= self.bound
    }
}

/// Why [`Outlet::wait`] returned without anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nothing {
    /// The time is over.
    TimedOut,
    /// Every sender is gone: nothing will come any more.
    Closed,
}

impl<T> Outlet<T> {
    /// Waits for one thing, for so long at most; for ever if `None`.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<T, Nothing> {
        let received = match timeout {
            None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(timeout) => self.receiver.recv_timeout(timeout),
        };
        match received {
            Ok(thing) => Ok(self.taken(thing)),
            Err(RecvTimeoutError::Timeout) => Err(Nothing::TimedOut),
            Err(RecvTimeoutError::Disconnected) => Err(Nothing::Closed),
        }
    }

    /// Takes one thing if there is one.
    pub fn take(&self) -> Result<T, Nothing> {
        match self.receiver.try_recv() {
            Ok(thing) => Ok(self.taken(thing)),
            Err(TryRecvError::Empty) => Err(Nothing::TimedOut),
            Err(TryRecvError::Disconnected) => Err(Nothing::Closed),
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }

    fn taken(&self, thing: T) -> T {
        self.held.fetch_sub(1, Ordering::Relaxed);
        thing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_inbox_still_takes_and_says_so() {
        let (inbox, outlet) = inbox(2);
        inbox.send(1);
        assert!(!inbox.is_full());
        inbox.send(2);
        inbox.send(3);
        assert!(inbox.is_full());
        assert_eq!([outlet.take(), outlet.take(), outlet.take()], [Ok(1), Ok(2), Ok(3)]);
        assert_eq!(outlet.take(), Err(Nothing::TimedOut));
        assert_eq!(inbox.held(), 0);
    }

    #[test]
    fn an_outlet_knows_that_nothing_will_come() {
        let (inbox, outlet) = inbox::<()>(1);
        drop(inbox);
        assert_eq!(outlet.wait(None), Err(Nothing::Closed));
    }
}
