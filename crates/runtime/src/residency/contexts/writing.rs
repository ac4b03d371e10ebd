//! Writing: the changes of a turn become one request to the engine.

use super::*;

/// The changes of one turn.
pub(super) struct Turn<'a> {
    pub(super) store: &'a mut ContextStore,
    pub(super) failed: Vec<StoredKey>,
    pub(super) error: Option<EngineError>,
    /// Changes of documents that all NFs of a UE have in common.
    documents: BTreeMap<DocumentKey, OwnSections>,
    /// The procedure of the next change.
    procedure: ProcedureName,
    /// After a restart the next document is restored before others.
    is_first: bool,
}

impl<'a> Turn<'a> {
    pub(super) const fn new(store: &'a mut ContextStore) -> Self {
        let procedure = ProcedureName::Other;
        Self {
            store,
            failed: Vec::new(),
            error: None,
            documents: BTreeMap::new(),
            procedure,
            is_first: false,
        }
    }

    /// Adds the documents that all NFs of a UE have in common.
    pub(super) fn add_documents(&mut self) {
        if self.documents.is_empty() {
            return;
        }
        for (place, mut own) in std::mem::take(&mut self.documents) {
            if self.store.batch.len() >= MAX_BATCH {
                self.append();
            }
            let store = &mut *self.store;
            let Some(shared) = &mut store.shared else { return };
            store.revision += 1;
            let (at, contexts) = (store.batch.len(), std::mem::take(&mut own.contexts));
            let (procedure, before) = (own.procedure, store.batch.octets());
            store.accounts.note_change(place, procedure);
            if shared.write(&mut store.batch, place, own, Revision(store.revision)) {
                store.keys.extend(contexts.into_iter().map(|key| (at, key)));
                store.sizes.push((procedure, store.batch.octets() - before));
            } else {
                store.stored.extend(contexts);
            }
        }
    }

    /// Writes the batch. After a failure nothing more is written in this turn.
    pub(super) fn append(&mut self) {
        let store = &mut *self.store;
        if store.batch.is_empty() {
            return;
        }
        let result = match self.error {
            Some(_) => None,
            None => Some(merging::append(store.engine.as_mut(), &store.batch)),
        };
        match result {
            Some(Ok(appended)) => {
                store.last = appended.sequence;
                for (at, (procedure, octets)) in store.sizes.iter().enumerate() {
                    if !appended.conflicts.contains(&at) {
                        store.accounts.note_write(*procedure, *octets);
                    }
                }
                if !appended.conflicts.is_empty() {
                    let is_conflict = |(at, _): &&(usize, StoredKey)| appended.conflicts.contains(at);
                    self.failed.extend(store.keys.iter().filter(is_conflict).map(|(_, key)| *key));
                    store.forget_copies(&appended.conflicts);
                }
                if store.mode.drops_copies {
                    store.stored.extend(store.keys.iter().map(|(_, key)| *key));
                }
            }
            Some(Err(error)) => {
                self.failed.extend(store.keys.iter().map(|(_, key)| *key));
                self.error = Some(error);
                store.forget_copies(&(0..store.batch.len()).collect::<Vec<_>>());
            }
            None => {
                self.failed.extend(store.keys.iter().map(|(_, key)| *key));
                store.forget_copies(&(0..store.batch.len()).collect::<Vec<_>>());
            }
        }
        store.keys.clear();
        store.sizes.clear();
        store.batch.reset(store.owner.unwrap_or_default());
    }

    /// Makes room for a change of that size; returns its document and revision, if documents have such a key.
    fn next(&mut self, key: StoredKey, octets: usize) -> Option<(DocumentKey, Revision)> {
        if self.store.batch.len() >= MAX_BATCH {
            self.append();
        }
        let document = document_key(key)?;
        self.store.revision += 1;
        self.store.keys.push((self.store.batch.len(), key));
        self.store.sizes.push((self.procedure, octets));
        self.store.accounts.note_change(document, self.procedure);
        Some((document, Revision(self.store.revision)))
    }
}

impl DocumentSink for Turn<'_> {
    fn write(&mut self, key: StoredKey, ue: Option<&Supi>, document: &Document) {
        if let Some(shared) = self.store.shared.as_mut().filter(|_| is_of_ue(key.nf)) {
            return shared.change(&mut self.documents, (key, self.procedure), Some((ue, document)));
        }
        let deadline = std::mem::take(&mut self.is_first).then_some(on_demand::FIRST);
        let changes = self.store.written.as_mut().map(|written| written.changes(key, document));
        if matches!(changes, Some(Changes::None)) {
            return;
        }
        let Some((place, revision)) = self.next(key, document.octets().len()) else { return };
        let head = Head { key: place, revision, layout: LAYOUT, deadline };
        let store = &mut *self.store;
        if let Some(written) = &mut store.written {
            written.note_revision(key, revision);
        }
        match changes {
            Some(Changes::Sections { former, changed, removed }) => {
                let mut writer = store.batch.update(head);
                for (id, octets) in
                    document.sections().filter(|(id, _)| changed.contains(&SectionId::from(*id)))
                {
                    writer.section(id.into(), octets);
                }
                for id in removed {
                    writer.remove(id);
                }
                // If the former write failed, the whole document is written.
                store.batch.expect(former);
            }
            _ => {
                let mut writer = store.batch.replace(head);
                for (id, octets) in document.sections() {
                    writer.section(id.into(), octets);
                }
            }
        }
    }

    fn delete(&mut self, key: StoredKey) {
        if let Some(shared) = self.store.shared.as_mut().filter(|_| is_of_ue(key.nf)) {
            return shared.change(&mut self.documents, (key, self.procedure), None);
        }
        if let Some(written) = &mut self.store.written {
            written.forget(key);
        }
        if let Some((place, revision)) = self.next(key, 0) {
            self.store.batch.delete(place, revision);
        }
    }

    fn restore_first(&mut self) {
        self.is_first = true;
    }

    fn begin_procedure(&mut self, procedure: ProcedureName) {
        self.procedure = procedure;
    }
}
