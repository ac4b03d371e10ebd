//! The desk that has the database, and its batches.

use super::documents::reads;
use super::{Database, DatabaseError};
use crate::desk::{Desk, DeskThread, Work, desk};
use pith_nf::kit::{StoreError, StoreRequest, StoreResponse};
use std::time::Duration;
use tokio::sync::oneshot;

/// Requests that share a commit at most.
const BATCH: usize = 512;

/// What comes of a request.
pub type Answer = Result<StoreResponse, StoreError>;

type Run = Box<dyn FnOnce(&mut Database) + Send>;

enum Job<T> {
    Request(T, StoreRequest),
    Run(Run),
}

/// Where answers go. `T` says whom an answer is for.
pub trait Sink<T>: Send {
    /// Takes an answer; must not block.
    fn answer(&mut self, token: T, answer: Answer);

    /// The last answer of a batch was given.
    fn flush(&mut self) {}
}

impl<T, F: FnMut(T, Answer) + Send> Sink<T> for F {
    fn answer(&mut self, token: T, answer: Answer) {
        self(token, answer);
    }
}

/// The way to the database, for any thread.
///
/// Nothing bounds what waits: its users wait for their answers, so it holds no more than they have
/// in flight.
pub struct StoreHandle<T>(Desk<Job<T>>);

impl<T> Clone for StoreHandle<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The running thread.
pub struct StoreThread<T>(DeskThread<Job<T>>);

impl<T> StoreThread<T> {
    /// Writes everything that was asked so far, and closes the database.
    pub fn close(self) {
        self.0.close();
    }
}

impl<T: Send + 'static> StoreHandle<T> {
    /// Asks; the sink that the thread was started with gets the answer, with the token.
    /// [`StoreHandle::attend`] has to follow, after one request or several.
    pub fn request(&self, token: T, request: StoreRequest) {
        self.0.send(Job::Request(token, request));
    }

    /// Sees to what was asked.
    pub fn attend(&self) {
        self.0.attend();
    }

    /// Runs work on the database between batches, on the database's thread.
    pub async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<R, DatabaseError> + Send + 'static,
    ) -> Result<R, DatabaseError> {
        let (answer, result) = oneshot::channel();
        let reserved = self.0.reserve();
        let work = move |database: &mut Database| {
            // Nobody waits any more: the client went away.
            let _ = answer.send(work(database));
            drop(reserved);
        };
        self.0.send(Job::Run(Box::new(work)));
        self.0.wake();
        // Work on a desk that is closed is dropped, and its answer with it.
        result.await.map_err(|_| DatabaseError::Closed)?
    }
}

/// Starts the thread. `sink` gets each answer, on the thread of whoever worked.
pub fn start<T: Send + 'static>(
    database: Database,
    sink: impl Sink<T> + 'static,
) -> std::io::Result<(StoreHandle<T>, StoreThread<T>)> {
    let (desk, vacancy) = desk("pith-store", usize::MAX);
    let worker = Worker { database, sink, open: false, answers: Vec::new() };
    Ok((StoreHandle(desk), StoreThread(vacancy.fill(BATCH, worker)?)))
}

struct Worker<T, S> {
    database: Database,
    sink: S,
    /// A transaction is open.
    open: bool,
    /// What is answered when it is committed.
    answers: Vec<(T, Answer)>,
}

impl<T: Send, S: Sink<T>> Work<Job<T>> for Worker<T, S> {
    fn take(&mut self, job: Job<T>) {
        match job {
            Job::Request(token, request) => self.request(token, &request),
            Job::Run(work) => {
                self.commit();
                work(&mut self.database);
            }
        }
    }

    fn finish(&mut self) -> Option<Duration> {
        self.commit();
        self.sink.flush();
        None
    }
}

impl<T, S: Sink<T>> Worker<T, S> {
    fn request(&mut self, token: T, request: &StoreRequest) {
        if !self.open && !reads(request) {
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

    /// Commits what is open and answers it.
    fn commit(&mut self) {
        if !self.open {
            return;
        }
        self.open = false;
        let failed = self.database.commit().err().map(|error| StoreError::from(&error));
        if let Some(error) = &failed {
            tracing::error!("{error}; {} requests of the UDR are refused", self.answers.len());
        }
        for (token, answer) in self.answers.drain(..) {
            self.sink.answer(token, failed.clone().map_or(answer, Err));
        }
    }
}
