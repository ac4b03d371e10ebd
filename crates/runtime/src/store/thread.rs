//! The queue of database requests, and their batches.

use super::{Database, DatabaseError};
use crate::work_queue::{QueueThread, Work, WorkQueue, work_queue};
use pith_nf::kit::{StoreError, StoreRequest, StoreResponse};
use std::time::Duration;
use tokio::sync::oneshot;

/// Largest number of requests that share a commit.
const BATCH: usize = 512;

/// The result of a request.
pub type Answer = Result<StoreResponse, StoreError>;

type Run = Box<dyn FnOnce(&mut Database) + Send>;

enum Job<T> {
    Request(T, StoreRequest),
    Run(Run),
}

/// Receives the answers. `T` identifies the request.
pub trait Sink<T>: Send {
    /// Receives an answer; must not block.
    fn answer(&mut self, token: T, answer: Answer);

    /// Called after the last answer of a batch.
    fn flush(&mut self) {}
}

impl<T, F: FnMut(T, Answer) + Send> Sink<T> for F {
    fn answer(&mut self, token: T, answer: Answer) {
        self(token, answer);
    }
}

/// Sends requests to the database, from any thread.
///
/// The queue has no bound: its users wait for their answers, so that it holds no more requests than they have
/// in flight.
pub struct StoreHandle<T>(WorkQueue<Job<T>>);

impl<T> Clone for StoreHandle<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The running thread.
pub struct StoreThread<T>(QueueThread<Job<T>>);

impl<T> StoreThread<T> {
    /// Completes all requests sent so far, and closes the database.
    pub fn close(self) {
        self.0.close();
    }
}

impl<T: Send + 'static> StoreHandle<T> {
    /// Sends a request; the sink gets the answer with the token. Call [`StoreHandle::process_or_wake`] after one or
    /// more requests.
    pub fn request(&self, token: T, request: StoreRequest) {
        self.0.send(Job::Request(token, request));
    }

    /// Has the requests processed.
    pub fn process_or_wake(&self) {
        self.0.process_or_wake();
    }

    /// Runs work on the database between batches, on the database's thread.
    pub async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<R, DatabaseError> + Send + 'static,
    ) -> Result<R, DatabaseError> {
        let (answer, result) = oneshot::channel();
        let reserved = self.0.reserve();
        let work = move |database: &mut Database| {
            // The receiver no longer exists if the client disconnected.
            let _ = answer.send(work(database));
            drop(reserved);
        };
        self.0.send(Job::Run(Box::new(work)));
        self.0.wake();
        // A closed queue drops the work and the sender of its result.
        result.await.map_err(|_| DatabaseError::Closed)?
    }
}

/// Starts the thread. `sink` gets each answer on the thread that processed the request.
pub fn start<T: Send + 'static>(
    database: Database,
    sink: impl Sink<T> + 'static,
) -> std::io::Result<(StoreHandle<T>, StoreThread<T>)> {
    let (queue, unstarted) = work_queue("pith-store", usize::MAX);
    let worker = Worker { database, sink, open: false, answers: Vec::new() };
    Ok((StoreHandle(queue), StoreThread(unstarted.start(BATCH, worker)?)))
}

struct Worker<T, S> {
    database: Database,
    sink: S,
    /// Whether a transaction is open.
    open: bool,
    /// Answers to send after the commit.
    answers: Vec<(T, Answer)>,
}

impl<T: Send, S: Sink<T>> Work<Job<T>> for Worker<T, S> {
    fn process(&mut self, job: Job<T>) {
        match job {
            Job::Request(token, request) => self.request(token, &request),
            Job::Run(work) => {
                self.commit();
                work(&mut self.database);
            }
        }
    }

    fn end_turn(&mut self) -> Option<Duration> {
        self.commit();
        self.sink.flush();
        None
    }
}

impl<T, S: Sink<T>> Worker<T, S> {
    fn request(&mut self, token: T, request: &StoreRequest) {
        if !self.open && self.database.needs_transaction(request) {
            match self.database.begin() {
                Ok(()) => self.open = true,
                Err(error) => return self.sink.answer(token, Err((&error).into())),
            }
        }
        let answer = self.database.handle(request).map_err(|error| (&error).into());
        if self.open {
            self.answers.push((token, answer));
        } else {
            self.sink.answer(token, answer);
        }
    }

    /// Commits the open transaction and sends its answers.
    fn commit(&mut self) {
        if !self.open {
            return;
        }
        self.open = false;
        let failed = self.database.commit().err().map(|error| StoreError::from(&error));
        if let Some(error) = &failed {
            tracing::error!("{error}; {} requests of the UDR failed", self.answers.len());
        }
        for (token, answer) in self.answers.drain(..) {
            self.sink.answer(token, failed.clone().map_or(answer, Err));
        }
    }
}
