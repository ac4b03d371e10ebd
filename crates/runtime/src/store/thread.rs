//! The thread that has the database, and its batches.

use super::documents::reads;
use super::{Database, DatabaseError};
use crossbeam_channel::{Receiver, Sender, TryRecvError, unbounded};
use pith_nf::kit::{StoreError, StoreRequest, StoreResponse};
use std::thread::{Builder, JoinHandle};
use tokio::sync::oneshot;

/// Requests that share a commit at most.
const BATCH: usize = 512;

type Answer = Result<StoreResponse, StoreError>;
type Work = Box<dyn FnOnce(&mut Database) + Send>;

enum Job<T> {
    Request(T, StoreRequest),
    Run(Work),
}

/// The way to the database, for any thread. `T` says whom an answer is for.
///
/// The channel has no bound: its users wait for their answers, so it holds no more than they have
/// in flight.
pub struct StoreHandle<T>(Sender<Job<T>>);

impl<T> Clone for StoreHandle<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The running thread: it ends when the last [`StoreHandle`] is gone and everything is written.
pub struct StoreThread(JoinHandle<()>);

impl StoreThread {
    /// Waits until everything is written.
    pub fn join(self) {
        if self.0.join().is_err() {
            tracing::error!("the database thread panicked; requests that it had are lost");
        }
    }
}

impl<T: Send + 'static> StoreHandle<T> {
    /// Asks; the sink that the thread was started with gets the answer, with the token.
    pub fn request(&self, token: T, request: StoreRequest) {
        // A closed channel means that the thread panicked, which `StoreThread::join` tells.
        let _ = self.0.send(Job::Request(token, request));
    }

    /// Runs work on the database between batches.
    pub async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<R, DatabaseError> + Send + 'static,
    ) -> Result<R, DatabaseError> {
        let (answer, result) = oneshot::channel();
        let work = move |database: &mut Database| {
            // Nobody waits any more: the client went away.
            let _ = answer.send(work(database));
        };
        self.0.send(Job::Run(Box::new(work))).map_err(|_| DatabaseError::Closed)?;
        result.await.map_err(|_| DatabaseError::Closed)?
    }
}

/// Starts the thread. `sink` is called on it with each answer and must not block for long.
pub fn start<T: Send + 'static>(
    database: Database,
    sink: impl FnMut(T, Answer) + Send + 'static,
) -> std::io::Result<(StoreHandle<T>, StoreThread)> {
    let (sender, jobs) = unbounded();
    let mut worker = Worker { database, jobs, sink, open: false, answers: Vec::new() };
    let thread = Builder::new().name("pith-store".into()).spawn(move || worker.run())?;
    Ok((StoreHandle(sender), StoreThread(thread)))
}

struct Worker<T, S> {
    database: Database,
    jobs: Receiver<Job<T>>,
    sink: S,
    /// A transaction is open.
    open: bool,
    /// What is answered when it is committed.
    answers: Vec<(T, Answer)>,
}

impl<T, S: FnMut(T, Answer)> Worker<T, S> {
    fn run(&mut self) {
        while let Ok(first) = self.jobs.recv() {
            self.take(first);
            for _ in 1..BATCH {
                match self.jobs.try_recv() {
                    Ok(job) => self.take(job),
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                }
            }
            self.commit();
        }
    }

    fn take(&mut self, job: Job<T>) {
        match job {
            Job::Request(token, request) => self.request(token, &request),
            Job::Run(work) => {
                self.commit();
                work(&mut self.database);
            }
        }
    }

    fn request(&mut self, token: T, request: &StoreRequest) {
        if !self.open && !reads(request) {
            match self.database.begin() {
                Ok(()) => self.open = true,
                Err(error) => return (self.sink)(token, Err((&error).into())),
            }
        }
        let answer = self.database.handle(request).map_err(|error| (&error).into());
        if self.open {
            self.answers.push((token, answer));
        } else {
            (self.sink)(token, answer);
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
            (self.sink)(token, failed.clone().map_or(answer, Err));
        }
    }
}
