//! Contexts that are read again because their copies were dropped (`residency: stateless`).

use super::contexts::{document_key, packed, stored_key};
use super::{DocumentError, Engine, ReadResult};
use pith_nf::kit::StoredKey;
use pith_nf::kit::document::Document;

/// A context that was read; `None`: its document is lost.
pub(crate) type Loaded = (StoredKey, Option<Document>);

/// The reads of one shard.
#[derive(Default)]
pub(super) struct Loads {
    /// Results that the shard has not got yet.
    ready: Vec<Loaded>,
    /// Reads that the engine has not answered.
    pending: usize,
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
            None => {
                self.pending += 1;
                Finding::Good
            }
        }
    }

    /// Begins the reads that failed once more.
    pub fn retry(&mut self, engine: &mut dyn Engine) -> Vec<Finding> {
        std::mem::take(&mut self.failed).into_iter().map(|key| self.begin(engine, key)).collect()
    }

    /// Takes results from the engine.
    pub fn collect(&mut self, engine: &mut dyn Engine) -> Vec<Finding> {
        let results = engine.take_reads();
        self.pending = self.pending.saturating_sub(results.len());
        let results = results.into_iter().filter_map(|(key, result)| Some((stored_key(key)?, result)));
        results.map(|(key, result)| self.note(key, result)).collect()
    }

    /// Contexts for the shard.
    pub fn take(&mut self) -> Vec<Loaded> {
        std::mem::take(&mut self.ready)
    }

    /// Whether no read is pending or has failed.
    pub fn is_over(&self) -> bool {
        self.pending == 0 && self.failed.is_empty()
    }

    fn note(&mut self, key: StoredKey, result: ReadResult) -> Finding {
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
