//! A host: a thread with a network namespace of its own that does jobs.

use super::{enter_namespace, thread_id};
use std::sync::mpsc;
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

/// The host; it ends, and its interfaces with it, when this is dropped.
pub struct Host {
    /// The thread, by which its namespace can be named.
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

    /// Does a job there, and answers with what came of it.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        self.begin(job).recv().unwrap()
    }

    /// Begins a job there.
    pub fn begin<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> mpsc::Receiver<T> {
        let (tell, told) = mpsc::channel();
        self.jobs.send(Box::new(move || drop(tell.send(job())))).unwrap();
        told
    }
}
