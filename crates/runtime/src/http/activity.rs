//! Whether a connection is of use: one that nobody asks anything on takes the place of another.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What is asked on one connection.
pub(super) struct Activity {
    /// Exchanges begun and not ended.
    open: Cell<u32>,
    asked: Cell<bool>,
    /// When the last exchange ended.
    ended: Cell<Instant>,
}

/// An open exchange; ends when dropped.
pub(super) struct Open(Rc<Activity>);

impl Activity {
    /// Of a connection on which nothing was asked yet.
    pub fn new() -> Rc<Self> {
        Rc::new(Self { open: Cell::new(0), asked: Cell::new(false), ended: Cell::new(Instant::now()) })
    }

    /// An exchange begins.
    pub fn begin(self: &Rc<Self>) -> Open {
        self.open.set(self.open.get() + 1);
        self.asked.set(true);
        Open(self.clone())
    }

    /// Ends when the first request did not come within `first`, or, where there is an `idle`, when no
    /// exchange was open for that long.
    pub async fn ceases(&self, first: Duration, idle: Option<Duration>) {
        sleep(first).await;
        if !self.asked.get() {
            return;
        }
        let Some(idle) = idle else { return std::future::pending().await };
        loop {
            let left = idle.saturating_sub(self.silence());
            if left.is_zero() {
                return;
            }
            sleep(left).await;
        }
    }

    /// Time since the last exchange ended; none while one is open.
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
