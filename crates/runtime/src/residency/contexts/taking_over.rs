//! Taking over: another run of a shard that panicked gets the contexts of the former one.

use super::*;

impl ContextStore {
    /// Another run of the shard takes the place of one that panicked. Nothing of the turn in which it did is written.
    pub fn start_run(&mut self, shard: &mut Shard) {
        self.track(shard);
        shard.accept_new_contexts(self.outage.is_none());
        self.written = self.written.take().map(|_| WrittenSections::default());
        self.loads = Loads::default();
        self.dropping.clear();
        self.stored.clear();
        self.loaded.clear();
        self.shared.iter_mut().for_each(SharedDocuments::begin_run);
        self.keys.clear();
        self.sizes.clear();
        self.batch.reset(self.owner.unwrap_or_default());
        self.continue_restoring(shard);
        self.reading = None;
        self.has_changes = true;
    }

    /// Gives a new run of the shard the contexts of its blocks, while gateways, gNBs and UPFs continue. `fate` says what becomes of a
    /// context; the document of one that has none is deleted.
    pub fn take_over(&mut self, now: Instant, shard: &mut Shard, fate: impl Fn(StoredKey) -> Option<Fate>) {
        let mut given_up = Vec::new();
        if self.shared.is_some() {
            return self.take_over_shared(now, shard, fate);
        }
        let blocks = self.blocks.clone();
        for kind in kinds_of(shard) {
            let read = self.read_parts(kind, &blocks, |store, found| {
                for (place, read) in found {
                    let Some(key) = stored_key(place).filter(|key| !store.is_unrestored(*key)) else {
                        continue;
                    };
                    let document = match read {
                        Ok(document) => document,
                        Err(error) => {
                            store.note_unreadable(&error);
                            continue;
                        }
                    };
                    store.revision = store.revision.max(document.revision.0);
                    let Some(fate) = fate(key) else {
                        given_up.push(place);
                        continue;
                    };
                    store.reading = Some(key);
                    let result = check_layout(&document).and_then(|()| {
                        let packed = packed(key, &document);
                        let is_former = document.is_stale || document.revision <= store.first;
                        let taken =
                            take_one_over(now, shard, key, (&packed, is_former, document.is_stale), fate);
                        taken.map_err(|error| format!("{place} is unknown, its UE registers again: {error}"))
                    });
                    if let Err(error) = result {
                        store.note_unreadable(&error);
                    }
                }
            });
            if let Err(error) = read {
                return self.fail(now, shard, &error);
            }
        }
        self.reading = None;
        self.delete_all(&given_up);
    }

    /// As `take_over`. The document of a UE may be in any block, and other shards may have contexts in it.
    fn take_over_shared(
        &mut self,
        now: Instant,
        shard: &mut Shard,
        fate: impl Fn(StoredKey) -> Option<Fate>,
    ) {
        let mut given_up = Vec::new();
        let all: Vec<_> = BlockId::all().collect();
        let read = self.read_parts(DocumentKind::Ue, &all, |store, found| {
            for (place, read) in found {
                let checked = read.map_err(|error| error.to_string());
                let document = match checked.and_then(|document| check_layout(&document).map(|()| document)) {
                    Ok(document) => document,
                    Err(error) => {
                        store.note_unreadable(&error);
                        continue;
                    }
                };
                store.revision = store.revision.max(document.revision.0);
                for (key, packed) in contexts_in(&document) {
                    if !store.blocks.contains(&key.id.block) || !shard.hosts(key.nf) {
                        continue;
                    }
                    store.shared.iter_mut().for_each(|shared| shared.note_read(key, place, &packed));
                    let Some(fate) = fate(key) else {
                        given_up.push(key);
                        continue;
                    };
                    store.reading = Some(key);
                    let taken =
                        take_one_over(now, shard, key, (&packed, document.is_stale, document.is_stale), fate);
                    if let Err(error) = taken {
                        store
                            .note_unreadable(&format!("{place} is unknown, its UE registers again: {error}"));
                    }
                }
            }
        });
        if let Err(error) = read {
            return self.fail(now, shard, &error);
        }
        self.reading = None;
        self.end_contexts(&given_up);
    }

    /// The context whose document was being restored or taken over when the shard panicked.
    pub const fn reading(&self) -> Option<StoredKey> {
        self.reading
    }

    /// The contexts of the shard end: their documents are deleted.
    pub fn start_empty(&mut self, shard: &mut Shard) {
        self.start_run(shard);
        self.restore_no_more(shard);
        if let Some(shared) = &self.shared {
            let all: Vec<_> = shared.all().into_iter().flat_map(|place| shared.contexts_of(place)).collect();
            self.end_contexts(&all);
            self.shared.iter_mut().for_each(SharedDocuments::forget_contexts);
        }
        let blocks = self.blocks.clone();
        for kind in kinds_of(shard) {
            let places: Vec<_> = blocks.iter().map(|block| (kind, block.number())).collect();
            let Ok(keys) = self.engine.list(&places) else { return };
            self.delete_all(&keys);
        }
    }

    /// Removes contexts of this shard from the documents of their UEs.
    fn end_contexts(&mut self, contexts: &[StoredKey]) {
        let mut turn = Turn::new(self);
        for key in contexts {
            turn.delete(*key);
        }
        turn.add_documents();
        turn.append();
        let Turn { error, .. } = turn;
        if let Some(error) = error {
            self.health.note_failure(self.slot, &error);
        }
        self.stored.clear();
    }

    fn delete_all(&mut self, keys: &[DocumentKey]) {
        for part in keys.chunks(MAX_BATCH) {
            self.batch.reset(self.owner.unwrap_or_default());
            for key in part {
                self.revision += 1;
                self.batch.delete(*key, Revision(self.revision));
            }
            if let Err(error) = self.engine.append(&self.batch) {
                self.health.note_failure(self.slot, &error);
                break;
            }
        }
        self.batch.reset(self.owner.unwrap_or_default());
    }
}

/// Gives a new run of a shard a context. One whose document is of a former process begins as after a start: its connection and its sessions at
/// UPFs ended with that process. So does one whose document is outdated: its COUNTs may have been used.
fn take_one_over(
    now: Instant,
    shard: &mut Shard,
    key: StoredKey,
    (packed, is_former, is_stale): (&Document, bool, bool),
    fate: Fate,
) -> Result<(), UnpackError> {
    if is_stale || is_former && fate == Fate::GoesOn {
        return shard.restore_context(now, key, packed.octets(), is_stale);
    }
    shard.take_over_context(now, key, packed.octets(), fate)
}
