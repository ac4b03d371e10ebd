//! Contexts that have ended while other NFs have not yet answered the requests that release their resources. Until then such a
//! context keeps its id and a document: a process that is killed meanwhile repeats the requests after its restart.

use super::document::Document;
use pith_types::{ContextId, Supi};
use std::collections::HashMap;

/// The ended contexts of an NF.
#[derive(Debug, Default)]
pub struct EndedContexts {
    /// The last number of a request.
    last: u32,
    /// The contexts of the requests that are not answered.
    calls: HashMap<u32, ContextId>,
    contexts: HashMap<ContextId, EndedContext>,
}

#[derive(Debug)]
struct EndedContext {
    /// Requests that are not answered.
    calls: u32,
    ue: Option<Supi>,
    document: Document,
}

impl EndedContexts {
    /// A number for a request; never 0.
    pub fn next_number(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1).max(1);
        self.last
    }

    /// Keeps the document of a context until these requests are answered, and those of an earlier document of that context.
    pub fn insert(&mut self, id: ContextId, (ue, document): (Option<Supi>, Document), calls: &[u32]) {
        self.calls.extend(calls.iter().map(|call| (*call, id)));
        let calls = calls.len() as u32 + self.contexts.get(&id).map_or(0, |earlier| earlier.calls);
        self.contexts.insert(id, EndedContext { calls, ue, document });
    }

    /// The answer to a request makes further ones necessary: the document is kept until these are answered, too.
    pub fn follow(&mut self, call: u32, further: &[u32]) {
        let Some(id) = self.calls.get(&call).copied() else { return };
        if let Some(context) = self.contexts.get_mut(&id) {
            context.calls += further.len() as u32;
            self.calls.extend(further.iter().map(|call| (*call, id)));
        }
    }

    /// A request was answered, or failed for good. Returns its context, if nothing is left of it.
    pub fn answered(&mut self, call: u32) -> Option<ContextId> {
        let id = self.calls.remove(&call)?;
        let context = self.contexts.get_mut(&id)?;
        context.calls = context.calls.saturating_sub(1);
        if context.calls > 0 {
            return None;
        }
        self.contexts.remove(&id);
        Some(id)
    }

    /// The document of an ended context, and the subscriber, if it is one of a subscriber.
    pub fn document(&self, id: ContextId) -> Option<(Option<&Supi>, &Document)> {
        self.contexts.get(&id).map(|context| (context.ue.as_ref(), &context.document))
    }

    /// The ids of the contexts.
    pub fn ids(&self) -> impl Iterator<Item = ContextId> {
        self.contexts.keys().copied()
    }
}
