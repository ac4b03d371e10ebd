//! Contexts that are read again because their copies were dropped (`residency: stateless`, `shared`).

use super::contexts::check_layout;
use super::{Document, DocumentError, DocumentKey, Engine, ReadResult};
use std::collections::HashSet;

/// A document that was read; `None`: it is lost.
pub(super) type Read = (DocumentKey, Option<Document>);

/// The reads of one shard.
#[derive(Default)]
pub(super) struct Loads {
    /// Results that the shard has not got yet.
    ready: Vec<Read>,
    /// Reads of the last attempt in an outage that the engine has not answered.
    repeated: HashSet<DocumentKey>,
    /// Reads to be repeated, as the store could not be reached.
    failed: Vec<DocumentKey>,
    /// Reads that only show whether the store can be reached.
    probes: HashSet<DocumentKey>,
}

/// What a result says of the store.
pub(super) enum Finding {
    Good,
    /// The document is lost.
    Unreadable(String),
    /// The store cannot be reached.
    Unreachable(DocumentError),
}

impl Loads {
    /// Begins to read a document.
    pub fn begin(&mut self, engine: &mut dyn Engine, key: DocumentKey) -> Finding {
        match engine.begin_read(key) {
            Some(result) => self.note(key, result),
            None => Finding::Good,
        }
    }

    /// Begins the reads that failed once more.
    pub fn retry(&mut self, engine: &mut dyn Engine) -> Vec<Finding> {
        let failed = std::mem::take(&mut self.failed);
        self.repeated = failed.iter().copied().collect();
        failed.into_iter().map(|key| self.begin(engine, key)).collect()
    }

    /// The store could not be reached. With the next attempt this document is read, to see whether it can.
    pub fn probe(&mut self, key: DocumentKey) {
        if self.probes.insert(key) {
            self.failed.push(key);
        }
    }

    /// Whether results of probes are expected.
    pub fn has_probes(&self) -> bool {
        !self.probes.is_empty()
    }

    /// Takes results from the engine.
    pub fn collect(&mut self, engine: &mut dyn Engine) -> Vec<Finding> {
        engine.take_reads().into_iter().map(|(key, result)| self.note(key, result)).collect()
    }

    /// What was read.
    pub fn take(&mut self) -> Vec<Read> {
        std::mem::take(&mut self.ready)
    }

    /// Whether there are results for `take`.
    pub const fn has_results(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether all reads that failed were repeated with success.
    pub fn has_recovered(&self) -> bool {
        self.repeated.is_empty() && self.failed.is_empty()
    }

    fn note(&mut self, key: DocumentKey, result: ReadResult) -> Finding {
        self.repeated.remove(&key);
        if self.probes.contains(&key) && !matches!(&result, Err(error) if error.is_temporary()) {
            self.probes.remove(&key);
            return Finding::Good;
        }
        let lost = match result {
            // A later document may be lost, and NAS COUNTs of this one used.
            Ok(Some(document)) if document.is_stale => {
                format!("{} may be outdated: the server was replaced; its UE registers again", document.key)
            }
            Ok(Some(document)) => match check_layout(&document) {
                Ok(()) => {
                    self.ready.push((key, Some(document)));
                    return Finding::Good;
                }
                Err(reason) => reason,
            },
            Ok(None) => {
                format!("{key} is lost: the store does not have it; its UE registers again")
            }
            Err(error) if error.is_temporary() => {
                self.failed.push(key);
                return Finding::Unreachable(error);
            }
            Err(error) => error.to_string(),
        };
        self.ready.push((key, None));
        Finding::Unreadable(lost)
    }
}
