//! Tracks whether a server connection is in use, so that unused connections can be closed.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The exchanges of one connection.
pub(super) struct Activity {
    /// Exchanges in progress.
    open: Cell<u32>,
    asked: Cell<bool>,
    /// When the last exchange ended.
    ended: Cell<Instant>,
}

/// An exchange in progress; ends when dropped.
pub(super) struct Open(Rc<Activity>);

impl Activity {
    /// A connection without any exchange yet.
    pub fn new() -> Rc<Self> {
        Rc::new(Self { open: Cell::new(0), asked: Cell::new(false), ended: Cell::new(Instant::now()) })
    }

    /// Begins an exchange.
    pub fn begin(self: &Rc<Self>) -> Open {
        self.open.set(self.open.get() + 1);
        self.asked.set(true);
        Open(self.clone())
    }

    /// Completes when no request arrived within `first`, or, with `idle`, when no exchange was in progress
    /// for that long.
    pub async fn ceases(&self, first: Duration, idle: Option<Duration>) {
        sleep(first).await;
        if !self.asked.get() {
            return;
        }
        match idle {
            Some(idle) => self.has_rested(idle).await,
            None => std::future::pending().await,
        }
    }

    /// Completes once no exchange was in progress for `idle`, counted from the call at the earliest.
    pub async fn rests(&self, idle: Duration) {
        sleep(idle).await;
        self.has_rested(idle).await;
    }

    async fn has_rested(&self, idle: Duration) {
        loop {
            let left = idle.saturating_sub(self.silence());
            if left.is_zero() {
                return;
            }
            sleep(left).await;
        }
    }

    /// Time since the last exchange ended; zero while one is in progress.
    pub fn silence(&self) -> Duration {
        if self.open.get() > 0 { Duration::ZERO } else { self.ended.get().elapsed() }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        self.0.ended.set(Instant::now());
    }
}
