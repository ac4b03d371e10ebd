//! Restoring: the contexts of a former process return from their documents.

use super::*;

/// Blocks whose documents are listed with one request of a server: each request takes a round trip.
pub(super) const BLOCKS_AT_ONCE: usize = 128;
/// Documents of a server that are in memory twice.
const DOCUMENTS_AT_ONCE: usize = 1024;

/// Documents as they were read.
type Read = Vec<(DocumentKey, Result<StoredDocument, DocumentError>)>;

impl ContextStore {
    /// Gives a new shard the contexts of its blocks.
    pub fn restore(&mut self, now: Instant, shard: &mut Shard) {
        self.track(shard);
        // First, so that a former owner changes nothing afterwards. With a full disk they are claimed by the first write that succeeds.
        if let Err(error) = self.claim() {
            self.fail(now, shard, &error);
            if self.is_fenced {
                return;
            }
        }
        let is_shared = self.shared.is_some();
        let is_own = |nf: Nf| shard.hosts(nf) && !(is_shared && is_of_ue(nf));
        for (kind, nf) in KINDS.into_iter().filter(|(_, nf)| is_own(*nf)).collect::<Vec<_>>() {
            let blocks = self.blocks.clone();
            let result = self.read_parts(kind, &blocks, |store, found| {
                for (key, read) in found {
                    match read {
                        Ok(document) => store.restore_one(now, shard, nf, key, &document),
                        Err(error) => store.note_unreadable(&error),
                    }
                }
            });
            if let Err(error) = result {
                return self.fail(now, shard, &error);
            }
        }
        if is_shared {
            return self.restore_shared(now, shard);
        }
        self.report();
    }

    /// The shard panicked during `restore`: the next attempt, with another shard, leaves the context out. `false` if no context was
    /// being restored, or too many were left out already.
    pub fn leave_out(&mut self, shard: &mut Shard) -> bool {
        let Some(key) = self.reading.take() else { return false };
        self.health.forget_restored(std::mem::take(&mut self.restored));
        self.start_run(shard);
        self.left_out.len() < MAX_LEFT_OUT && self.left_out.insert(key)
    }

    /// As `restore`. The document of a UE may be in any block: contexts say whose they are.
    fn restore_shared(&mut self, now: Instant, shard: &mut Shard) {
        let all: Vec<_> = BlockId::all().collect();
        let result = self.read_parts(DocumentKind::Ue, &all, |store, found| {
            for (place, read) in found {
                let checked = read.map_err(|error| error.to_string());
                match checked.and_then(|document| check_layout(&document).map(|()| document)) {
                    Ok(document) => store.restore_from(now, shard, place, &document),
                    Err(error) => store.note_unreadable(&error),
                }
            }
        });
        if let Err(error) = result {
            return self.fail(now, shard, &error);
        }
        self.report();
    }

    fn restore_from(
        &mut self,
        now: Instant,
        shard: &mut Shard,
        place: DocumentKey,
        document: &StoredDocument,
    ) {
        for (key, packed) in contexts_in(document) {
            if self.blocks.contains(&key.id.block) && shard.hosts(key.nf) {
                self.shared.iter_mut().for_each(|shared| shared.note_read(key, place, &packed));
                self.restore_packed(now, shard, (key, place), packed.octets(), document);
            }
        }
    }

    /// Reads the documents of a kind in some blocks, and passes them on in parts. After an error, each further attempt may take long.
    pub(super) fn read_parts(
        &mut self,
        kind: DocumentKind,
        blocks: &[BlockId],
        mut pass: impl FnMut(&mut Self, Read),
    ) -> Result<(), EngineError> {
        let at_once = if self.engine.answers_at_once() { 1 } else { BLOCKS_AT_ONCE };
        for blocks in blocks.chunks(at_once) {
            let read = match blocks {
                [block] => self.read_block(kind, *block).map(|found| pass(self, found)),
                _ => self.read_listed(kind, blocks, &mut pass),
            };
            read.inspect_err(|error| {
                let block = blocks.first().map_or(0, |block| block.number());
                tracing::error!(
                    "contexts can't be read from block {block} on, their UEs register again: {error}"
                );
            })?;
        }
        Ok(())
    }

    fn read_block(&mut self, kind: DocumentKind, block: BlockId) -> Result<Read, EngineError> {
        let mut found = Vec::new();
        self.engine.read_block(kind, block.number(), &mut |key, read| found.push((key, read)))?;
        Ok(found)
    }

    /// As [`ContextStore::read_parts`], of a server.
    fn read_listed(
        &mut self,
        kind: DocumentKind,
        blocks: &[BlockId],
        pass: &mut impl FnMut(&mut Self, Read),
    ) -> Result<(), EngineError> {
        let places: Vec<_> = blocks.iter().map(|block| (kind, block.number())).collect();
        for keys in self.engine.list(&places)?.chunks(DOCUMENTS_AT_ONCE) {
            let (mut found, mut failure) = (Vec::with_capacity(keys.len()), None);
            self.engine.read_each(keys, &mut |key, read| match read {
                Ok(read) => found.extend(read.map(|document| (key, Ok(document)))),
                Err(error) if error.is_temporary() => failure = Some(error),
                Err(error) => found.push((key, Err(error))),
            });
            pass(self, found);
            if let Some(error) = failure {
                return Err(EngineError::Paused(error.to_string()));
            }
        }
        Ok(())
    }

    pub(super) fn restore_one(
        &mut self,
        now: Instant,
        shard: &mut Shard,
        nf: Nf,
        key: DocumentKey,
        document: &StoredDocument,
    ) {
        let Some(block) = BlockId::new(key.block) else { return };
        let stored = StoredKey { nf, id: ContextId { block, number: key.number } };
        if let Err(error) = check_layout(document) {
            return self.note_unreadable(&error);
        }
        self.restore_packed(now, shard, (stored, key), packed(stored, document).octets(), document);
    }

    pub(super) fn restore_packed(
        &mut self,
        now: Instant,
        shard: &mut Shard,
        (stored, key): (StoredKey, DocumentKey),
        packed: &[u8],
        document: &StoredDocument,
    ) {
        self.revision = self.revision.max(document.revision.0);
        if self.left_out.contains(&stored) {
            return self.note_unreadable(&format_args!(
                "{key} is left out, its UE registers again: an NF panics with it, which is a bug in Pith, please report it"
            ));
        }
        self.reading = Some(stored);
        let result = shard.restore_context(now, stored, packed, document.is_stale);
        self.reading = None;
        match result {
            Ok(()) => {
                self.restored += 1;
                self.health.note_restored();
            }
            Err(error) => {
                self.note_unreadable(&format_args!("{key} is unknown, its UE registers again: {error}"));
            }
        }
    }

    /// Reads all contexts of the shard that have a document which is not outdated: for simulations.
    pub fn contexts(&mut self) -> Vec<(StoredKey, Document)> {
        let mut found = Vec::new();
        let blocks = if self.shared.is_some() { BlockId::all().collect() } else { self.blocks.clone() };
        for block in blocks {
            for (kind, nf) in KINDS.into_iter().chain([(DocumentKind::Ue, Nf::Amf)]) {
                let visit = &mut |key: DocumentKey, read: Result<StoredDocument, _>| {
                    let Some(document) = read.ok().filter(|document| !document.is_stale) else { return };
                    if kind == DocumentKind::Ue {
                        return found.extend(contexts_in(&document));
                    }
                    let id = ContextId { block, number: key.number };
                    found.push((StoredKey { nf, id }, packed(StoredKey { nf, id }, &document)));
                };
                // What cannot be read is not there.
                let _ = self.engine.read_block(kind, block.number(), visit);
            }
        }
        found.retain(|(key, _)| self.blocks.contains(&key.id.block));
        found
    }
}
