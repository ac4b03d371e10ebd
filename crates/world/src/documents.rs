//! The store of a simulated process: it survives the process's end.

use pith_nf::fabric::Shard;
use pith_nf::kit::document::Document;
use pith_nf::kit::{DocumentSink, Instant, Nf, StoreScope, StoredKey, Tracking};
use std::collections::BTreeMap;

/// Documents by shard and key.
#[derive(Debug, Default)]
pub(crate) struct Documents(BTreeMap<(usize, StoredKey), Vec<u8>>);

/// The documents of one shard.
struct OfShard<'a> {
    shard: usize,
    documents: &'a mut Documents,
}

impl DocumentSink for OfShard<'_> {
    fn write(&mut self, key: StoredKey, document: &Document) {
        self.documents.0.insert((self.shard, key), document.octets().to_vec());
    }

    fn delete(&mut self, key: StoredKey) {
        self.documents.0.remove(&(self.shard, key));
    }
}

impl Documents {
    /// Stores what a turn of the shard changed.
    pub(crate) fn store(&mut self, shard: usize, of: &mut Shard) {
        of.store_contexts(StoreScope::Changed, &mut OfShard { shard, documents: self });
    }

    /// Gives a new shard its contexts; the error names one that can't be unpacked.
    pub(crate) fn restore(&self, now: Instant, shard: usize, to: &mut Shard) -> Result<(), String> {
        to.track_contexts(|nf| is_stored(nf).then(Tracking::default));
        for ((_, key), document) in self.0.iter().filter(|((of, _), _)| *of == shard) {
            to.restore_context(now, *key, document, false).map_err(|error| format!("{key:?}: {error}"))?;
        }
        Ok(())
    }
}

const fn is_stored(nf: Nf) -> bool {
    matches!(nf, Nf::Amf | Nf::Smf | Nf::Pcf)
}
