//! Tasks of this thread only: what they share needs no lock.

use std::future::Future;
use tokio::task::spawn_local;

/// Runs what hyper spawns on the thread's own `LocalSet`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Local;

impl<F: Future<Output: 'static> + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, task: F) {
        spawn_local(task);
    }
}
