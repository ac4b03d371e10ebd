//! Restoring while the shard serves, as the runtime does it (`pith_runtime::residency`), one document after another.

use super::Documents;
use crate::plan::Residency;
use pith_nf::fabric::{Portion, Shard, Unrestored};
use pith_nf::kit::{Instant, Nf, StoredKey};
use std::collections::BTreeMap;

/// What each shard has not restored.
#[derive(Debug, Default)]
pub(super) struct Restoring {
    unrestored: BTreeMap<usize, Unrestored>,
    /// What inputs wait for.
    wanted: BTreeMap<usize, Vec<Portion>>,
}

impl Restoring {
    /// All contexts of a shard are restored.
    pub(super) fn end(&mut self, shard: usize) {
        self.unrestored.remove(&shard);
        self.wanted.remove(&shard);
    }
}

/// In the order of the runtime.
const ON_DEMAND: [Nf; 3] = [Nf::Amf, Nf::Pcf, Nf::Smf];

impl Documents {
    /// Gives a new shard those of its contexts that it needs before it serves. The error names one that can't be unpacked.
    pub(crate) fn begin_restoring(
        &mut self,
        now: Instant,
        shard: usize,
        to: &mut Shard,
    ) -> Result<(), String> {
        if self.residency == Residency::Stateless {
            return self.restore(now, shard, to);
        }
        self.track(to);
        let mut unrestored = Unrestored::default();
        let of_shard: Vec<_> =
            self.stored.keys().filter(|(of, _)| *of == shard).map(|(_, key)| *key).collect();
        for key in of_shard.iter().filter(|key| ON_DEMAND.contains(&key.nf)) {
            unrestored.add_block(key.nf, key.id.block);
        }
        self.restoring.unrestored.insert(shard, unrestored);
        self.restoring.wanted.remove(&shard);
        for key in of_shard {
            if !ON_DEMAND.contains(&key.nf) || self.first.contains(&key) {
                self.restore_one(now, shard, to, key)?;
            }
        }
        self.announce(shard, to);
        Ok(())
    }

    /// Another run of a shard restores the rest, too.
    pub(super) fn announce(&mut self, shard: usize, to: &mut Shard) {
        self.restoring.wanted.remove(&shard);
        if let Some(unrestored) = self.restoring.unrestored.get(&shard) {
            to.begin_restoring(unrestored);
        }
    }

    /// Whether a context is not restored.
    pub(super) fn is_unrestored(&self, shard: usize, key: StoredKey) -> bool {
        self.restoring.unrestored.get(&shard).is_some_and(|unrestored| unrestored.has(key))
    }

    /// Inputs of a shard wait for contexts.
    pub(crate) fn want(&mut self, shard: usize, portion: Portion) {
        self.restoring.wanted.entry(shard).or_default().push(portion);
    }

    /// Whether inputs of a shard wait for contexts.
    pub(crate) fn has_wanted(&self, shard: usize) -> bool {
        self.restoring.wanted.get(&shard).is_some_and(|wanted| !wanted.is_empty())
    }

    /// Whether contexts of a shard are not restored.
    pub(crate) fn is_restoring(&self, shard: usize) -> bool {
        self.has_wanted(shard) || self.restoring.unrestored.get(&shard).is_some_and(|it| !it.is_empty())
    }

    /// Restores what inputs wait for, or one of the other contexts. Returns what the shard receives as restored.
    pub(crate) fn restore_next(
        &mut self,
        now: Instant,
        shard: usize,
        to: &mut Shard,
    ) -> Result<Vec<Portion>, String> {
        let wanted = self.restoring.wanted.remove(&shard).unwrap_or_default();
        for portion in &wanted {
            let is_in = |key: StoredKey| match *portion {
                Portion::Context(of) => key == of,
                Portion::Block(nf, block) => (key.nf, key.id.block) == (nf, block),
                Portion::All(nf) => key.nf == nf,
                Portion::Slice(_) => false,
            };
            let keys: Vec<_> = self.unrestored_of(shard).filter(|key| is_in(*key)).collect();
            for key in keys {
                self.restore_one(now, shard, to, key)?;
            }
            if let (Portion::Block(nf, block), Some(unrestored)) =
                (*portion, self.restoring.unrestored.get_mut(&shard))
            {
                unrestored.note_block(nf, block);
            }
        }
        if !wanted.is_empty() {
            return Ok(wanted);
        }
        let first = |nf: Nf| Some((nf, self.restoring.unrestored.get(&shard)?.blocks_of(nf).next()?));
        let Some((nf, block)) = ON_DEMAND.into_iter().find_map(first) else { return Ok(Vec::new()) };
        let mut of_block = self.unrestored_of(shard).filter(|key| (key.nf, key.id.block) == (nf, block));
        let (next, is_last) = (of_block.next(), of_block.next().is_none());
        drop(of_block);
        if let Some(key) = next {
            self.restore_one(now, shard, to, key)?;
        }
        if !is_last {
            return Ok(vec![Portion::Slice(nf)]);
        }
        if let Some(unrestored) = self.restoring.unrestored.get_mut(&shard) {
            unrestored.note_block(nf, block);
        }
        Ok(vec![Portion::Block(nf, block)])
    }

    fn unrestored_of(&self, shard: usize) -> impl Iterator<Item = StoredKey> {
        let of_shard = self.stored.keys().filter(move |(of, _)| *of == shard).map(|(_, key)| *key);
        of_shard.filter(move |key| self.is_unrestored(shard, *key))
    }

    fn restore_one(
        &mut self,
        now: Instant,
        shard: usize,
        to: &mut Shard,
        key: StoredKey,
    ) -> Result<(), String> {
        let Some(document) = self.stored.get(&(shard, key)) else { return Ok(()) };
        to.restore_context(now, key, document.octets(), false)
            .map_err(|error| format!("{key:?}: {error}"))?;
        if let Some(unrestored) = self.restoring.unrestored.get_mut(&shard) {
            unrestored.note_context(key);
        }
        Ok(())
    }
}
