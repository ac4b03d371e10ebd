//! Desks: how threads of a process hand work to each other.
//!
//! ```text
//!  edge, http, other desks ── send ──> things ──┐
//!                                               │  one turn at a time, under the desk's lock
//!   its own thread: much waits, or time is up ──┤
//!   whoever brought a few things: attend ───────┘
//! ```
//!
//! Waking a thread costs some ten microseconds of CPU (ADR 0016). So the thread that brings a few things does
//! them itself if nobody else is at the desk; when more wait than [`FEW`], the desk's own thread works
//! beside the others. Things are done one at a time and in order in both cases.
//!
//! Whoever attends never waits: where somebody works already it leaves, and who works looks again after
//! letting go. So turns may nest (a shard's attends the store, the store's the shards) without a deadlock.
//!
//! A desk never refuses: between shards and the edge nothing may block, or two threads could wait for each
//! other. Readers of sockets stop reading while a desk holds more than its bound, so that the transport's
//! own window slows the peer (design section 5).

use crossbeam_channel::{Receiver, Sender, unbounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// As many things as whoever brought them does itself.
const FEW: usize = 4;

/// Turns in a row that a visitor takes before it leaves the rest to the desk's own thread.
const TURNS: usize = 16;

/// So much later than it is due the own thread may wake: work that is due at the same time after each turn says so a
/// few microseconds sooner or later, and is not worth waking a thread for.
const SLACK: Duration = Duration::from_millis(1);

/// What is done at a desk.
pub trait Work<T>: Send {
    /// Does one thing.
    fn take(&mut self, thing: T);

    /// Ends a turn: does what is due, sends what came of it. After how long it is to be called again
    /// even if nothing is sent.
    fn finish(&mut self) -> Option<Duration>;
}

/// The way to a desk, for any thread.
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
    /// How many wait for a thing that only the own thread may do.
    reserved: AtomicUsize,
    is_closing: AtomicBool,
}

/// What whoever works at a desk has.
struct Place<T> {
    things: Receiver<T>,
    work: Box<dyn Work<T>>,
    /// When the own thread wakes by itself.
    due: Option<Instant>,
}

/// A desk at which nobody works yet.
pub struct Vacancy<T> {
    things: Receiver<T>,
    shared: Arc<Shared<T>>,
}

/// A new desk. Its feeders are to pause while it holds more than `bound` things.
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
    /// Puts one thing on it; [`Desk::attend`] makes sure that it is done. What comes after the end is dropped.
    pub fn send(&self, thing: T) {
        // A closed desk has dropped what would answer.
        let _ = self.things.send(thing);
        if self.held() > FEW {
            self.shared.wake();
        }
    }

    /// How many things wait.
    pub fn held(&self) -> usize {
        self.things.len()
    }

    /// Whether whoever feeds it from a socket has to pause.
    pub fn is_full(&self) -> bool {
        self.held() >= self.shared.bound
    }

    /// Sees to what waits: does it, if it is little and nobody else is at it; else its thread does.
    pub fn attend(&self) {
        for _ in 0..TURNS {
            // Either whoever works sees what was sent before this, or this sees that nobody works.
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
            // Awake it wants the lock.
            drop(place);
            if due == Due::Sooner {
                self.shared.wake();
            }
        }
        self.shared.wake();
    }

    /// Leaves what waits to the desk's own thread.
    pub fn wake(&self) {
        self.shared.wake();
    }

    /// Until this is dropped only the own thread works: for things that take long, before they are sent.
    pub fn reserve(&self) -> Reservation<T> {
        self.shared.reserved.fetch_add(1, Ordering::SeqCst);
        Reservation(Arc::clone(&self.shared))
    }
}

/// Keeps visitors from working at a desk.
pub struct Reservation<T>(Arc<Shared<T>>);

impl<T> Drop for Reservation<T> {
    fn drop(&mut self) {
        self.0.reserved.fetch_sub(1, Ordering::SeqCst);
    }
}

/// When the work is due again.
#[derive(PartialEq, Eq)]
enum Due {
    /// Before its thread wakes by itself, by more than [`SLACK`].
    Sooner,
    /// When it does, later, or not at all.
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

    /// Does some of what waits. Work that panics ends, and takes nobody with it.
    fn turn(&self, place: &mut Option<Place<T>>, most: usize) -> Due {
        let Some(Place { things, work, due }) = place else { return Due::InTime };
        let turn = || {
            things.try_iter().take(most).for_each(|thing| work.take(thing));
            work.finish()
        };
        let Ok(after) = catch_unwind(AssertUnwindSafe(turn)) else {
            tracing::error!("{} panicked: this is a bug in Pith, please report it; it has ended", self.name);
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

    /// What the own thread does.
    fn run(&self, things: &Receiver<T>, batch: usize) {
        loop {
            let mut place = self.place();
            if let Some(place) = place.as_mut() {
                place.due = None;
            }
            self.turn(&mut place, batch);
            let Some(due) = place.as_ref().map(|place| place.due) else { return };
            drop(place);
            // Whoever came meanwhile left what it brought to this.
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

/// The thread of a desk.
pub struct DeskThread<T> {
    shared: Arc<Shared<T>>,
    thread: JoinHandle<()>,
}

#[cfg(test)]
impl<T> Vacancy<T> {
    /// Takes off what waits, for tests that do the work themselves.
    pub fn take_all(&self) -> Vec<T> {
        self.things.try_iter().collect()
    }
}

impl<T: Send + 'static> Vacancy<T> {
    /// Starts the work, with what was sent before. Its thread does `batch` things a turn at most.
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
    /// Lets what was sent so far be done, and ends the work.
    pub fn close(self) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
        if self.thread.join().is_err() {
            tracing::error!("the thread of a desk panicked: this is a bug in Pith, please report it");
        }
    }
}

#[cfg(test)]
mod tests;
