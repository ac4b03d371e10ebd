//! The store of a simulated process: it survives the process's end.

use pith_nf::fabric::Shard;
use pith_nf::kit::document::Document;
use pith_nf::kit::{DocumentSink, Instant, Nf, References, StoreScope, StoredKey, Tracking};
use std::collections::BTreeMap;

/// Documents by shard and name.
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
    pub(crate) fn restore(
        &self,
        now: Instant,
        unix_s: u64,
        shard: usize,
        to: &mut Shard,
    ) -> Result<(), String> {
        to.track_contexts(|nf| is_stored(nf).then(|| tracking(nf, shard, unix_s)));
        for ((_, key), document) in self.0.iter().filter(|((of, _), _)| *of == shard) {
            to.restore_context(now, *key, document, false).map_err(|error| format!("{key:?}: {error}"))?;
        }
        Ok(())
    }
}

const fn is_stored(nf: Nf) -> bool {
    matches!(nf, Nf::Amf | Nf::Smf | Nf::Pcf)
}

fn tracking(nf: Nf, shard: usize, unix_s: u64) -> Tracking {
    let mut secret = [7; 32];
    (secret[0], secret[1]) = (nf as u8, shard as u8);
    let first_generation = u32::try_from(unix_s - 1_577_836_800).unwrap_or(u32::MAX);
    Tracking { references: References::of_secret(&secret), first_generation, reserved_counts: 0 }
}
