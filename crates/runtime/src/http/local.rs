//! Executor for tasks of one thread, which need no locks.

use std::future::Future;
use tokio::task::spawn_local;

/// Runs tasks that hyper spawns on the thread's `LocalSet`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Local;

impl<F: Future<Output: 'static> + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, task: F) {
        spawn_local(task);
    }
}
