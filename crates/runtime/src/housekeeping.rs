//! A thread for periodic tasks that must not delay requests.

use crate::{events, memory};
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Interval of reports about omitted log lines.
const INTERVAL: Duration = Duration::from_secs(1);
/// Intervals between two returns of free memory.
const MEMORY: u32 = 5;
/// Stack size of the thread in octets: it only formats log lines.
const STACK: usize = 512 << 10;

/// The running thread; ends when dropped.
pub(crate) struct Housekeeping {
    closing: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Housekeeping {
    pub fn start() -> io::Result<Self> {
        let (closing, closed) = bounded(0);
        let builder = Builder::new().name("housekeeping".into()).stack_size(STACK);
        let thread = builder.spawn(move || {
            let mut turn = 0;
            while closed.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                events::report_omitted();
                turn = (turn + 1) % MEMORY;
                if turn == 0 {
                    memory::return_free();
                }
            }
        })?;
        Ok(Self { closing: Some(closing), thread: Some(thread) })
    }
}

impl Drop for Housekeeping {
    fn drop(&mut self) {
        drop(self.closing.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the housekeeping thread panicked: this is a bug in Pith, please report it");
        }
    }
}
