//! The pending answer to a request.

use super::{Caller, Effect, Outbox};
use pith_sbi::{Problem, Reply, Response};

/// A request that is to be answered. Answering consumes it, so that a request is answered once.
///
/// It contains only the caller's id, so that a state can hold it while it waits, and a document can store it:
/// [`PendingReply::caller`] returns the id, and [`PendingReply::owed_to`] restores the value from the id. If it is dropped
/// without an answer, the caller waits in vain; [`super::deliver`] detects this in debug builds.
#[must_use = "the caller waits for this answer"]
#[derive(Debug, PartialEq, Eq)]
pub struct PendingReply(Caller);

impl PendingReply {
    /// The pending answer to this caller.
    pub const fn owed_to(caller: Caller) -> Self {
        Self(caller)
    }

    /// The caller.
    pub const fn caller(&self) -> Caller {
        self.0
    }

    /// Whether the caller is in another process.
    pub const fn is_remote(&self) -> bool {
        matches!(self.0, Caller::Remote { .. })
    }

    /// Answers with success.
    pub fn answer(self, response: Response, out: &mut Outbox) {
        self.complete(Ok(response), out);
    }

    /// Answers with a problem.
    pub fn refuse(self, problem: Problem, out: &mut Outbox) {
        self.complete(Err(Box::new(problem)), out);
    }

    /// Answers with either.
    pub fn complete(self, reply: Reply, out: &mut Outbox) {
        out.push(Effect::Answer { to: self.0, reply });
    }
}
