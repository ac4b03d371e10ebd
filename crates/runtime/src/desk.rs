//! Work queues between the threads of a process.
//!
//! ```text
//!  edge, http, other queues ── send ──> items ──┐
//!                                               │  one turn at a time, under the queue's lock
//!   worker thread: many items, or a timer ──────┤
//!   submitting thread: few items, attend ───────┘
//! ```
//!
//! Waking a thread costs about ten microseconds of CPU (ADR 0016). Therefore small batches run on the
//! submitting thread if no other thread is processing the queue; if more than [`FEW`] items are pending, the
//! queue's worker thread processes them in parallel to the submitters. In both cases items are processed one
//! at a time and in order.
//!
//! `attend` never waits for the lock: if another thread holds it, `attend` returns, and the holder checks the
//! queue again after releasing the lock. Therefore turns may nest (a shard's turn attends the store, and the
//! store's the shards) without a deadlock.
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
const FEW: usize = 4;

/// Consecutive turns of a submitting thread before it leaves the rest to the worker thread.
const TURNS: usize = 16;

/// Tolerance of the worker's wake-up time: work due at a fixed time reports a delay that varies by a few
/// microseconds from turn to turn, which must not wake the worker each time.
const SLACK: Duration = Duration::from_millis(1);

/// The processing of a queue's items.
pub trait Work<T>: Send {
    /// Processes one item.
    fn take(&mut self, thing: T);

    /// Ends a turn: handles timers that are due and sends the results. Returns the time until the next call
    /// is needed even if nothing is sent.
    fn finish(&mut self) -> Option<Duration>;
}

/// The sending end of a queue, for any thread.
pub struct Desk<T> {
    things: Sender<T>,
    shared: Arc<Shared<T>>,
}

impl<T> Clone for Desk<T> {
    fn clone(&self) -> Self {
        Self { things: self.things.clone(), shared: Arc::clone(&self.shared) }
    }
}

struct Shared<T> {
    name: String,
    bound: usize,
    place: Mutex<Option<Place<T>>>,
    thread: OnceLock<Thread>,
    /// Number of [`Reservation`]s: while there are any, only the worker processes items.
    reserved: AtomicUsize,
    is_closing: AtomicBool,
}

/// What a thread needs to process items.
struct Place<T> {
    things: Receiver<T>,
    work: Box<dyn Work<T>>,
    /// When the worker wakes up without being woken.
    due: Option<Instant>,
}

/// A queue without a worker.
pub struct Vacancy<T> {
    things: Receiver<T>,
    shared: Arc<Shared<T>>,
}

/// Creates a queue. Readers of sockets should pause while it holds more than `bound` items.
pub fn desk<T>(name: impl Into<String>, bound: usize) -> (Desk<T>, Vacancy<T>) {
    let (sender, things) = unbounded();
    let shared = Arc::new(Shared {
        name: name.into(),
        bound,
        place: Mutex::new(None),
        thread: OnceLock::new(),
        reserved: AtomicUsize::new(0),
        is_closing: AtomicBool::new(false),
    });
    (Desk { things: sender, shared: Arc::clone(&shared) }, Vacancy { things, shared })
}

impl<T> Desk<T> {
    /// Adds an item; call [`Desk::attend`] afterwards to have it processed. After the queue's end items are
    /// dropped.
    pub fn send(&self, thing: T) {
        // The receiver of the reply no longer exists if the queue has ended.
        let _ = self.things.send(thing);
        if self.held() > FEW {
            self.shared.wake();
        }
    }

    /// Number of pending items.
    pub fn held(&self) -> usize {
        self.things.len()
    }

    /// Whether readers of sockets should pause.
    pub fn is_full(&self) -> bool {
        self.held() >= self.shared.bound
    }

    /// Has pending items processed: a small batch by this thread if no other thread is processing, else by
    /// the worker.
    pub fn attend(&self) {
        for _ in 0..TURNS {
            // Either the lock's holder sees what was sent before this, or this thread sees that the lock is
            // free.
            fence(Ordering::SeqCst);
            if self.things.is_empty() {
                return;
            }
            let Some(mut place) = self.shared.try_place() else { return };
            let Some(waiting) = place.as_ref().map(|place| place.things.len()) else { return };
            if waiting > FEW || self.shared.reserved.load(Ordering::SeqCst) > 0 {
                break;
            }
            let due = self.shared.turn(&mut place, waiting);
            // The worker needs the lock when it wakes up.
            drop(place);
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
    /// More than [`SLACK`] before the worker wakes up.
    Sooner,
    /// When the worker wakes up or later, or not at all.
    InTime,
}

impl<T> Shared<T> {
    fn place(&self) -> MutexGuard<'_, Option<Place<T>>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_place(&self) -> Option<MutexGuard<'_, Option<Place<T>>>> {
        match self.place.try_lock() {
            Ok(place) => Some(place),
            Err(TryLockError::Poisoned(place)) => Some(place.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Processes up to `most` items. If the work panics, the queue ends; the calling thread continues.
    fn turn(&self, place: &mut Option<Place<T>>, most: usize) -> Due {
        let Some(Place { things, work, due }) = place else { return Due::InTime };
        let turn = || {
            things.try_iter().take(most).for_each(|thing| work.take(thing));
            work.finish()
        };
        let Ok(after) = catch_unwind(AssertUnwindSafe(turn)) else {
            tracing::error!("{} panicked and has ended: this is a bug in Pith, please report it", self.name);
            *place = None;
            return Due::Sooner;
        };
        let Some(next) = after.and_then(|after| Instant::now().checked_add(after)) else {
            return Due::InTime;
        };
        if due.is_some_and(|due| due <= next + SLACK) {
            return Due::InTime;
        }
        *due = Some(next);
        Due::Sooner
    }

    /// The worker's loop.
    fn run(&self, things: &Receiver<T>, batch: usize) {
        loop {
            let mut place = self.place();
            if let Some(place) = place.as_mut() {
                place.due = None;
            }
            self.turn(&mut place, batch);
            let Some(due) = place.as_ref().map(|place| place.due) else { return };
            drop(place);
            // A thread that found the lock taken has left its items to this one.
            fence(Ordering::SeqCst);
            if !things.is_empty() {
                continue;
            }
            if self.is_closing.load(Ordering::SeqCst) {
                return drop(self.place().take());
            }
            match due {
                Some(due) => thread::park_timeout(due.saturating_duration_since(Instant::now())),
                None => thread::park(),
            }
        }
    }
}

/// The worker thread of a queue.
pub struct DeskThread<T> {
    shared: Arc<Shared<T>>,
    thread: JoinHandle<()>,
}

#[cfg(test)]
impl<T> Vacancy<T> {
    /// Removes all pending items, for tests that process them themselves.
    pub fn take_all(&self) -> Vec<T> {
        self.things.try_iter().collect()
    }
}

impl<T: Send + 'static> Vacancy<T> {
    /// Starts the worker, which processes at most `batch` items per turn.
    pub fn fill(self, batch: usize, work: impl Work<T> + 'static) -> std::io::Result<DeskThread<T>> {
        let Self { things, shared } = self;
        *shared.place() = Some(Place { things: things.clone(), work: Box::new(work), due: None });
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name(shared.name.clone()).spawn(move || {
            own.thread.get_or_init(thread::current);
            own.run(&things, batch);
        })?;
        Ok(DeskThread { shared, thread })
    }
}

impl<T> DeskThread<T> {
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
