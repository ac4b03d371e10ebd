//! Work queues between the threads of a process.
//!
//! ```text
//!  edge, http, other queues ── send ──> items ──┐
//!                                               │  one turn at a time, under the queue's lock
//!   worker thread: many items, or a timer ──────┤
//!   submitting thread: a small batch ───────────┘
//! ```
//!
//! Waking a thread costs about ten microseconds of CPU (ADR 0016). Therefore small batches run on the
//! submitting thread if no other thread is processing the queue; if more than [`INLINE_LIMIT`] items are pending, the
//! queue's worker thread processes them in parallel to the submitters. In both cases items are processed one
//! at a time and in order.
//!
//! A *turn* processes one batch of items. `process_or_wake` never waits for the lock: if another thread holds it,
//! `process_or_wake` returns, and the holder checks the queue again after releasing the lock. Therefore a turn of
//! one queue may call `process_or_wake` of another queue (a shard's turn does so for the store, and the store's for the
//! shards) without a deadlock.
//!
//! `send` never fails or blocks: between shards and the edge, blocking could make two threads wait for each
//! other. Readers of sockets stop reading while a queue holds more than its bound, so that the transport's
//! flow control slows the peer (design section 5).

use crossbeam_channel::{Receiver, Sender, unbounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// Largest batch that the submitting thread processes itself.
const INLINE_LIMIT: usize = 4;

/// Consecutive turns of a submitting thread before it leaves the rest to the worker thread.
const INLINE_TURNS: usize = 16;

/// The worker is not woken for work that is due earlier than its wake-up time by less than this: the same timer gives a
/// due time that varies by some microseconds from turn to turn.
const WAKE_SLACK: Duration = Duration::from_millis(1);

/// The processing of a queue's items.
pub trait Work<T>: Send {
    /// Processes one item.
    fn process(&mut self, item: T);

    /// Ends a turn: handles timers that are due and sends the results. Returns the time until the next call
    /// is needed even if nothing is sent.
    fn end_turn(&mut self) -> Option<Duration>;

    /// Called once after the last turn, when the queue is closed.
    fn close(&mut self) {}
}

/// The sending end of a queue, for any thread.
pub struct WorkQueue<T> {
    items: Sender<T>,
    shared: Arc<Shared<T>>,
}

impl<T> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self { items: self.items.clone(), shared: Arc::clone(&self.shared) }
    }
}

struct Shared<T> {
    name: String,
    bound: usize,
    worker: Mutex<Option<QueueWorker<T>>>,
    thread: OnceLock<Thread>,
    /// Number of [`Reservation`]s: while there are any, only the worker processes items.
    reserved: AtomicUsize,
    is_closing: AtomicBool,
}

/// The state that a thread locks to process items.
struct QueueWorker<T> {
    items: Receiver<T>,
    work: Box<dyn Work<T>>,
    /// When the worker wakes up by itself.
    due: Option<Instant>,
}

/// A queue without a worker.
pub struct UnstartedQueue<T> {
    items: Receiver<T>,
    shared: Arc<Shared<T>>,
}

/// Creates a queue. Readers of sockets should pause while it holds more than `bound` items.
pub fn work_queue<T>(name: impl Into<String>, bound: usize) -> (WorkQueue<T>, UnstartedQueue<T>) {
    let (sender, items) = unbounded();
    let shared = Arc::new(Shared {
        name: name.into(),
        bound,
        worker: Mutex::new(None),
        thread: OnceLock::new(),
        reserved: AtomicUsize::new(0),
        is_closing: AtomicBool::new(false),
    });
    (WorkQueue { items: sender, shared: Arc::clone(&shared) }, UnstartedQueue { items, shared })
}

impl<T> WorkQueue<T> {
    /// Adds an item; call [`WorkQueue::process_or_wake`] afterwards to have it processed. After the queue's end
    /// items are dropped.
    pub fn send(&self, item: T) {
        // It fails only if the queue has ended; the item is dropped.
        let _ = self.items.send(item);
        if self.pending() > INLINE_LIMIT {
            self.shared.wake();
        }
    }

    /// Number of pending items.
    pub fn pending(&self) -> usize {
        self.items.len()
    }

    /// Whether readers of sockets should pause.
    pub fn is_full(&self) -> bool {
        self.pending() >= self.shared.bound
    }

    /// Has pending items processed: a small batch by this thread if no other thread is processing, else by
    /// the worker.
    pub fn process_or_wake(&self) {
        for _ in 0..INLINE_TURNS {
            // Either the lock's holder sees what was sent before this, or this thread sees that the lock is
            // free.
            fence(Ordering::SeqCst);
            if self.items.is_empty() {
                return;
            }
            let Some(mut worker) = self.shared.try_worker() else { return };
            let Some(pending) = worker.as_ref().map(|worker| worker.items.len()) else { return };
            if pending > INLINE_LIMIT || self.shared.reserved.load(Ordering::SeqCst) > 0 {
                break;
            }
            let due = self.shared.turn(&mut worker, pending);
            // The worker needs the lock when it wakes up.
            drop(worker);
            if due == Due::Sooner {
                self.shared.wake();
            }
        }
        self.shared.wake();
    }

    /// Leaves pending items to the worker.
    pub fn wake(&self) {
        self.shared.wake();
    }

    /// Restricts processing to the worker until the reservation is dropped. Reserve before sending items that
    /// take long.
    pub fn reserve(&self) -> Reservation<T> {
        self.shared.reserved.fetch_add(1, Ordering::SeqCst);
        Reservation(Arc::clone(&self.shared))
    }
}

/// While this exists, only the worker processes items.
pub struct Reservation<T>(Arc<Shared<T>>);

impl<T> Drop for Reservation<T> {
    fn drop(&mut self) {
        self.0.reserved.fetch_sub(1, Ordering::SeqCst);
    }
}

/// When the queue's work is due next.
#[derive(PartialEq, Eq)]
enum Due {
    /// Earlier than the worker's wake-up time, by more than [`WAKE_SLACK`].
    Sooner,
    /// At the worker's wake-up time or later, or never.
    InTime,
}

impl<T> Shared<T> {
    fn worker(&self) -> MutexGuard<'_, Option<QueueWorker<T>>> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_worker(&self) -> Option<MutexGuard<'_, Option<QueueWorker<T>>>> {
        match self.worker.try_lock() {
            Ok(worker) => Some(worker),
            Err(TryLockError::Poisoned(worker)) => Some(worker.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Processes up to `most` items. If the work panics, the queue ends; the calling thread continues.
    fn turn(&self, worker: &mut Option<QueueWorker<T>>, most: usize) -> Due {
        let Some(QueueWorker { items, work, due }) = worker else { return Due::InTime };
        let turn = || {
            items.try_iter().take(most).for_each(|item| work.process(item));
            work.end_turn()
        };
        let Ok(after) = catch_unwind(AssertUnwindSafe(turn)) else {
            tracing::error!("{} panicked and has ended: this is a bug in Pith, please report it", self.name);
            *worker = None;
            return Due::Sooner;
        };
        let Some(next) = after.and_then(|after| Instant::now().checked_add(after)) else {
            return Due::InTime;
        };
        if due.is_some_and(|due| due <= next + WAKE_SLACK) {
            return Due::InTime;
        }
        *due = Some(next);
        Due::Sooner
    }

    /// The worker's loop.
    fn run(&self, items: &Receiver<T>, batch: usize) {
        loop {
            let mut worker = self.worker();
            if let Some(worker) = worker.as_mut() {
                worker.due = None;
            }
            self.turn(&mut worker, batch);
            let Some(due) = worker.as_ref().map(|worker| worker.due) else { return };
            drop(worker);
            // A thread that found the lock taken has left its items to this one.
            fence(Ordering::SeqCst);
            if !items.is_empty() {
                continue;
            }
            if self.is_closing.load(Ordering::SeqCst) {
                if let Some(mut worker) = self.worker().take() {
                    worker.work.close();
                }
                return;
            }
            match due {
                Some(due) => thread::park_timeout(due.saturating_duration_since(Instant::now())),
                None => thread::park(),
            }
        }
    }
}

/// The worker thread of a queue.
pub struct QueueThread<T> {
    shared: Arc<Shared<T>>,
    thread: JoinHandle<()>,
}

#[cfg(test)]
impl<T> UnstartedQueue<T> {
    /// Removes all pending items, for tests that process them themselves.
    pub fn take_all(&self) -> Vec<T> {
        self.items.try_iter().collect()
    }
}

impl<T: Send + 'static> UnstartedQueue<T> {
    /// Starts the worker, which processes at most `batch` items per turn.
    pub fn start(self, batch: usize, work: impl Work<T> + 'static) -> std::io::Result<QueueThread<T>> {
        let Self { items, shared } = self;
        *shared.worker() = Some(QueueWorker { items: items.clone(), work: Box::new(work), due: None });
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name(shared.name.clone()).spawn(move || {
            own.thread.get_or_init(thread::current);
            own.run(&items, batch);
        })?;
        Ok(QueueThread { shared, thread })
    }
}

impl<T> QueueThread<T> {
    /// Processes all items sent so far, then ends the worker.
    pub fn close(self) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
        if self.thread.join().is_err() {
            tracing::error!("the worker thread of a queue panicked: this is a bug in Pith, please report it");
        }
    }
}

#[cfg(test)]
mod tests;
