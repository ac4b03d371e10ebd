//! The answer that an NF owes to a request.

use super::{Caller, Effect, Outbox};
use pith_sbi::{Problem, Reply, Response};

/// An answer that is owed: answering consumes it, so that a request is answered once.
///
/// It is plain data, the caller's name, so that a state may hold it while it waits and a document may store it:
/// [`PendingReply::caller`] gives the name, [`PendingReply::owed_to`] makes the debt from it again. One that is dropped
/// unanswered leaves its caller waiting; [`super::deliver`] finds that in debug builds.
#[must_use = "the caller waits for this answer"]
#[derive(Debug, PartialEq, Eq)]
pub struct PendingReply(Caller);

impl PendingReply {
    /// The answer that this caller waits for.
    pub const fn owed_to(caller: Caller) -> Self {
        Self(caller)
    }

    /// The caller.
    pub const fn caller(&self) -> Caller {
        self.0
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
