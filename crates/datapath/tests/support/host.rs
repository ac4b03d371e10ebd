//! A host: a thread with its own network namespace that runs jobs.

use super::{enter_namespace, thread_id};
use std::sync::mpsc;
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

/// The host; dropping it ends the thread and removes its interfaces.
pub struct Host {
    /// The thread's id, which names its namespace.
    pub thread: i32,
    jobs: mpsc::Sender<Job>,
}

impl Host {
    pub fn start() -> Self {
        let (jobs, todo) = mpsc::channel::<Job>();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            assert!(enter_namespace());
            tell.send(thread_id()).unwrap();
            todo.into_iter().for_each(|job| job());
        });
        Self { thread: told.recv().unwrap(), jobs }
    }

    /// Runs a job there and returns its result.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        self.begin(job).recv().unwrap()
    }

    /// Starts a job there.
    pub fn begin<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> mpsc::Receiver<T> {
        let (tell, told) = mpsc::channel();
        self.jobs.send(Box::new(move || drop(tell.send(job())))).unwrap();
        told
    }
}
