//! Contexts that are read again because their copies were dropped (`residency: stateless`).

use super::contexts::{document_key, packed, stored_key};
use super::{DocumentError, Engine, ReadResult};
use pith_nf::kit::StoredKey;
use pith_nf::kit::document::Document;
use std::collections::HashSet;

/// A context that was read; `None`: its document is lost.
pub(crate) type Loaded = (StoredKey, Option<Document>);

/// The reads of one shard.
#[derive(Default)]
pub(super) struct Loads {
    /// Results that the shard has not got yet.
    ready: Vec<Loaded>,
    /// Reads of the last attempt in an outage that the engine has not answered.
    repeated: HashSet<StoredKey>,
    /// Reads to be repeated, as the store could not be reached.
    failed: Vec<StoredKey>,
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
    /// Begins to read a context.
    pub fn begin(&mut self, engine: &mut dyn Engine, key: StoredKey) -> Finding {
        let Some(document) = document_key(key) else {
            self.ready.push((key, None));
            return Finding::Good;
        };
        match engine.begin_read(document) {
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

    /// Takes results from the engine.
    pub fn collect(&mut self, engine: &mut dyn Engine) -> Vec<Finding> {
        let results =
            engine.take_reads().into_iter().filter_map(|(key, result)| Some((stored_key(key)?, result)));
        results.map(|(key, result)| self.note(key, result)).collect()
    }

    /// Contexts for the shard.
    pub fn take(&mut self) -> Vec<Loaded> {
        std::mem::take(&mut self.ready)
    }

    /// Whether all reads that failed were repeated with success.
    pub fn has_recovered(&self) -> bool {
        self.repeated.is_empty() && self.failed.is_empty()
    }

    fn note(&mut self, key: StoredKey, result: ReadResult) -> Finding {
        self.repeated.remove(&key);
        let lost = match result {
            // A later document may be lost, and NAS COUNTs of this one used.
            Ok(Some(document)) if document.is_stale => {
                format!("{} may be outdated: the server was replaced; its UE registers again", document.key)
            }
            Ok(Some(document)) => match packed(key, &document) {
                Ok(document) => {
                    self.ready.push((key, Some(document)));
                    return Finding::Good;
                }
                Err(reason) => reason,
            },
            Ok(None) => {
                format!("context {} is lost: the store has no document of it; its UE registers again", key.id)
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
