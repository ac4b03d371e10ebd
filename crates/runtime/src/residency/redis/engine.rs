//! The engine of one shard.

use super::super::document::{Change, Entry, Sections};
use super::super::memory::{check_block, check_bounds, count, earliest, nanoseconds_since};
use super::super::{
    Appended, BLOCKS, Batch, Document, DocumentError, DocumentKey, DocumentKind, Due, Engine, EngineError,
    MAX_BATCH, OwnerVersion, ReadResult, SectionId, Sequence, Statistics, UnixMillis,
};
use super::Shared;
use super::connection::{Commands, Connection, RequestError, of_server, text};
use super::fields::{Sealer, fields, integer};
use redis::{Cmd, Value, cmd};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// The script that changes documents.
const APPEND: &str = concat!(include_str!("version.lua"), include_str!("append.lua"));
/// Documents that are read with one request.
const READ_AT_ONCE: usize = 128;
/// Deadlines and fences that are read or written with one request: those of all blocks, in a round trip.
const PLACES_AT_ONCE: usize = 1024;
/// Indexes that are read with one request, with some thousand members each if there are many UEs.
const INDEXES_AT_ONCE: usize = 256;
/// Octets of sections in one call of the script, at most one document more.
const MAX_CALL: usize = 8 << 20;

/// Reads and writes the documents of one shard. Its calls wait for the network.
pub struct RedisEngine {
    pub(super) shared: Arc<Shared>,
    sealer: Sealer,
    connection: Option<Connection>,
    /// Digest of the script, by which the server knows it.
    script: String,
    /// The generation of the last connection.
    generation: Option<String>,
    /// The marker of the documents; see [`Shared::marker`].
    marker: Option<String>,
    has_lost_writes: bool,
    sequence: Sequence,
    statistics: Statistics,
}

impl RedisEngine {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let sealer = Sealer::new(shared.secret.clone());
        Self {
            shared,
            sealer,
            connection: None,
            script: String::new(),
            generation: None,
            marker: None,
            has_lost_writes: false,
            sequence: Sequence(0),
            statistics: Statistics::default(),
        }
    }

    fn key_of_block(&self, block: u16) -> String {
        format!("{}:{{{block:x}}}", self.shared.namespace)
    }

    pub(super) fn key_of_kind(&self, kind: DocumentKind, block: u16) -> String {
        format!("{}:{}", self.key_of_block(block), kind.name())
    }

    pub(super) fn key_of(&self, key: DocumentKey) -> String {
        format!("{}:{:x}", self.key_of_kind(key.kind, key.block), key.number)
    }

    /// Fences blocks with one request.
    fn fence_all(&mut self, blocks: &[u16], owner: OwnerVersion) -> Result<(), EngineError> {
        self.fence_some(blocks, owner, false)
    }

    fn fence_some(
        &mut self,
        blocks: &[u16],
        owner: OwnerVersion,
        is_second: bool,
    ) -> Result<(), EngineError> {
        blocks.iter().try_for_each(|block| check_block(*block))?;
        let replies = self.request(|engine, request| {
            for block in blocks {
                let mut call = cmd("EVALSHA");
                call.arg(engine.script.as_str()).arg(1).arg(engine.fence_of(*block)).arg(1).arg(owner.0);
                request.add(call.arg(engine.generation.as_deref().unwrap_or_default()));
            }
            Some(())
        })?;
        if replies.len() != blocks.len() {
            return Err(self.strange_reply());
        }
        for (block, reply) in blocks.iter().zip(&replies) {
            match ScriptReply::of(reply) {
                Some(ScriptReply::Written { .. }) => {}
                Some(ScriptReply::Fenced { current: Some(current), .. }) => {
                    return Err(EngineError::Fenced { block: *block, current, own: owner.0 });
                }
                Some(ScriptReply::Fenced { current: None, .. }) if !is_second => {
                    self.restore_fence(*block, owner)?;
                    self.fence_some(&[*block], owner, true)?;
                }
                _ => return Err(self.strange_reply()),
            }
        }
        Ok(())
    }

    /// The highest version that one of these blocks is fenced with.
    fn latest_fence(&mut self, blocks: &[u16]) -> Result<OwnerVersion, EngineError> {
        blocks.iter().try_for_each(|block| check_block(*block))?;
        let mut latest = 0;
        for part in blocks.chunks(PLACES_AT_ONCE) {
            let replies = self.request(|engine, request| {
                for block in part {
                    request.add(cmd("GET").arg(engine.fence_of(*block)));
                }
                Some(())
            })?;
            latest = replies.iter().filter_map(integer).fold(latest, u64::max);
            for (block, reply) in part.iter().zip(&replies) {
                if *reply != Value::Nil && integer(reply).is_none() {
                    latest = latest.max(self.latest_owner(*block)?.0);
                }
            }
        }
        Ok(OwnerVersion(latest))
    }

    pub(super) fn fence_of(&self, block: u16) -> String {
        self.shared.fence_of(block)
    }

    /// Connects if there is no connection.
    fn connect(&mut self) -> Result<&mut Connection, RequestError> {
        if self.connection.is_none() {
            let mut connection = Connection::open(&self.shared.access)?;
            let loaded = connection.command(cmd("SCRIPT").arg("LOAD").arg(APPEND))?;
            self.script = text(&loaded);
            let former = self.generation.replace(connection.generation.clone());
            self.has_lost_writes |= former.is_some_and(|former| former != connection.generation);
            self.connection = Some(connection);
        }
        self.connection.as_mut().ok_or_else(|| RequestError::new("no connection"))
    }

    /// Compares the marker of the documents with the one that was read first. Without it, or with another one, someone has deleted all
    /// documents (FLUSHALL), or replaced the server's data.
    fn compare_marker(&mut self) -> Result<(), EngineError> {
        let marker = self.shared.marker();
        let replies = self.request(|_, request| {
            request.add(cmd("GET").arg(&marker));
            Some(())
        })?;
        let mut found = replies.first().map(text).unwrap_or_default();
        if found.is_empty() {
            let (random, marker) = (new_marker()?, &marker);
            // Another process may be first.
            let replies = self.request(|_, request| {
                request.add(cmd("SET").arg(marker).arg(&random).arg("NX"));
                request.add(cmd("GET").arg(marker));
                Some(())
            })?;
            found = replies.last().map(text).unwrap_or_default();
        }
        let former = self.marker.replace(found.clone());
        if former.is_some_and(|former| former != found) {
            self.has_lost_writes = true;
            self.shared.note_deletion();
        }
        Ok(())
    }

    /// Sends what `commands` adds, and returns the replies. A connection that broke is opened again once.
    pub(super) fn request(
        &mut self,
        commands: impl Fn(&mut Self, &mut Commands) -> Option<()>,
    ) -> Result<Vec<Value>, RequestFailure> {
        let mut is_second = false;
        loop {
            match self.attempt(&commands) {
                Ok(replies) => return Ok(replies),
                Err(error) => {
                    self.connection = None;
                    if error.is_too_large {
                        return Err(RequestFailure::TooLarge(self.failed(error.reason)));
                    }
                    if is_second || !error.is_retriable {
                        return Err(RequestFailure::Other(self.failed(error.reason)));
                    }
                }
            }
            is_second = true;
        }
    }

    fn failed(&self, reason: impl Into<String>) -> EngineError {
        EngineError::Remote { server: self.shared.access.url.to_string(), reason: reason.into() }
    }

    fn attempt(
        &mut self,
        commands: impl Fn(&mut Self, &mut Commands) -> Option<()>,
    ) -> Result<Vec<Value>, RequestError> {
        self.connect()?;
        let mut request = Commands::default();
        let sealed = commands(self, &mut request);
        sealed.ok_or_else(|| RequestError::new("AES-256-GCM failed"))?;
        let (mut replies, mut refusal) = (Vec::new(), None);
        let connection = self.connect()?;
        let result = connection.request(&request, &mut |_, reply| match reply {
            // Another program's value under a key of a document concerns that document only.
            Value::ServerError(error) if error.code() == "WRONGTYPE" => {
                replies.push(Value::ServerError(error))
            }
            Value::ServerError(error) => refusal = refusal.take().or(Some(error)),
            reply => replies.push(reply),
        });
        let (sent, received) = connection.take_octets();
        self.statistics.requests += 1;
        self.statistics.octets_written += sent;
        self.statistics.octets_read += received;
        result?;
        match refusal {
            Some(error) => Err(of_server(&error)),
            None => Ok(replies),
        }
    }

    /// A call of the script for some changes of a batch.
    fn call(&mut self, owner: OwnerVersion, batch: &Batch, entries: &[Entry]) -> Option<Cmd> {
        let mut blocks: Vec<u16> = entries.iter().map(|entry| entry.key.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let mut call = cmd("EVALSHA");
        call.arg(self.script.as_str()).arg(blocks.len() + 2 * entries.len());
        for block in &blocks {
            call.arg(self.fence_of(*block));
        }
        for entry in entries {
            call.arg(self.key_of(entry.key)).arg(self.key_of_kind(entry.key.kind, entry.key.block));
        }
        call.arg(blocks.len()).arg(owner.0).arg(self.generation.as_deref().unwrap_or_default());
        for entry in entries {
            self.add_change(&mut call, batch, entry)?;
        }
        Some(call)
    }

    fn add_change(&mut self, call: &mut Cmd, batch: &Batch, entry: &Entry) -> Option<()> {
        let kind = match entry.change {
            Change::Replace => "r",
            Change::Update => "u",
            Change::Delete => "d",
        };
        // Of two sections with one id the last one counts.
        let sections: BTreeMap<SectionId, Option<&[u8]>> = Sections(batch.sections(entry)).collect();
        // What replaces a document has no use for removals.
        let is_kept = |octets: &Option<&[u8]>| octets.is_some() || entry.change == Change::Update;
        let sections: BTreeMap<_, _> = sections.into_iter().filter(|(_, octets)| is_kept(octets)).collect();
        let number_of = |is_set: bool| sections.values().filter(|octets| octets.is_some() == is_set).count();
        call.arg(kind).arg(optional(entry.expected.map(|revision| revision.0)));
        call.arg(entry.revision.0).arg(entry.layout).arg(optional(entry.deadline.map(|time| time.0)));
        call.arg(entry.key.number).arg(number_of(true)).arg(number_of(false));
        for (id, octets) in &sections {
            if let Some(octets) = octets {
                call.arg(*id).arg(self.sealer.seal(entry.key, *id, octets)?);
            }
        }
        for (id, _) in sections.iter().filter(|(_, octets)| octets.is_none()) {
            call.arg(*id);
        }
        Some(())
    }

    fn write(&mut self, batch: &Batch) -> Result<Vec<usize>, EngineError> {
        check_bounds(batch)?;
        // Each attempt but the last one removes a fence that is another program's value.
        for _ in 0..=BLOCKS {
            match self.attempt_to_write(batch)? {
                Ok(conflicts) => return Ok(conflicts),
                Err(block) => self.restore_fence(block, batch.owner())?,
            }
        }
        Err(self.strange_reply())
    }

    /// Returns conflicts, or a block whose fence is another program's value; then a part of the batch is not written.
    fn attempt_to_write(&mut self, batch: &Batch) -> Result<Result<Vec<usize>, u16>, EngineError> {
        let parts = parts(batch);
        let replies = self.request(|engine, request| {
            for part in &parts {
                request.add(&engine.call(batch.owner(), batch, part)?);
            }
            Some(())
        })?;
        let (mut conflicts, mut foreign) = (Vec::new(), Vec::new());
        let mut first = 0;
        for (part, reply) in parts.iter().zip(replies) {
            match ScriptReply::of(&reply).ok_or_else(|| self.strange_reply())? {
                ScriptReply::Written { conflicts: at, foreign: indexes } => {
                    conflicts.extend(at.into_iter().map(|at| first + at));
                    foreign.extend(indexes);
                }
                ScriptReply::Fenced { fence, current } => {
                    let mut blocks: Vec<u16> = part.iter().map(|entry| entry.key.block).collect();
                    blocks.sort_unstable();
                    blocks.dedup();
                    let block = blocks.get(fence).copied().unwrap_or_default();
                    let Some(current) = current else { return Ok(Err(block)) };
                    return Err(EngineError::Fenced { block, current, own: batch.owner().0 });
                }
            }
            first += part.len();
        }
        if !foreign.is_empty() {
            let kinds: BTreeSet<_> = batch.entries().iter().map(|it| (it.key.kind, it.key.block)).collect();
            for (kind, block) in kinds {
                if foreign.contains(&self.key_of_kind(kind, block)) {
                    self.restore_index(kind, block)?;
                }
            }
        }
        Ok(Ok(conflicts))
    }

    pub(super) fn strange_reply(&self) -> EngineError {
        self.failed("its reply is not that of Pith's script")
    }

    fn read_one(&mut self, key: DocumentKey, command: &Cmd) -> Result<Value, DocumentError> {
        let (start, before) = (Instant::now(), self.statistics.requests);
        let replies = self.request(|_, request| {
            request.add(command);
            Some(())
        });
        self.statistics.reads += 1;
        self.statistics.read_requests += self.statistics.requests - before;
        self.statistics.read_ns += nanoseconds_since(start);
        match replies {
            Ok(replies) => match replies.into_iter().next().unwrap_or_default() {
                Value::ServerError(_) => Err(self.modified(key)),
                reply => Ok(reply),
            },
            Err(error) => Err(DocumentError::Remote { key, reason: EngineError::from(error).to_string() }),
        }
    }

    fn opened(
        &mut self,
        key: DocumentKey,
        fields: Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<Option<Document>, DocumentError> {
        let generation = self.generation.as_deref().unwrap_or_default();
        let found = self.sealer.document(key, generation, fields);
        found.map_err(|_| self.modified(key))
    }

    fn modified(&self, key: DocumentKey) -> DocumentError {
        DocumentError::Modified { key, server: self.shared.access.url.to_string() }
    }

    fn read_some(
        &mut self,
        keys: &[DocumentKey],
        visit: &mut dyn FnMut(DocumentKey, Result<Document, DocumentError>),
    ) -> Result<(), EngineError> {
        let (start, before) = (Instant::now(), self.statistics.requests);
        let replies = self.request(|engine, request| {
            for key in keys {
                request.add(cmd("HGETALL").arg(engine.key_of(*key)));
            }
            Some(())
        });
        self.statistics.read_requests += self.statistics.requests - before;
        let replies = match replies {
            Err(RequestFailure::TooLarge(_)) if keys.len() > 1 => {
                let (first, second) = keys.split_at(keys.len() / 2);
                self.read_some(first, visit)?;
                return self.read_some(second, visit);
            }
            replies => replies?,
        };
        self.statistics.reads += count(keys.len());
        self.statistics.read_ns += nanoseconds_since(start);
        for (key, reply) in keys.iter().zip(replies) {
            if matches!(reply, Value::ServerError(_)) {
                visit(*key, Err(self.modified(*key)));
            } else if let Some(read) = self.opened(*key, fields(reply)).transpose() {
                visit(*key, read);
            }
        }
        Ok(())
    }

    /// The documents of a kind in a block.
    pub(super) fn list_one(
        &mut self,
        kind: DocumentKind,
        block: u16,
    ) -> Result<Vec<DocumentKey>, EngineError> {
        self.list_some(&[(kind, block)])
    }

    /// The documents of some kinds, each in a block, with one request.
    fn list_some(&mut self, places: &[(DocumentKind, u16)]) -> Result<Vec<DocumentKey>, EngineError> {
        let replies = self.request(|engine, request| {
            for (kind, block) in places {
                request.add(cmd("SMEMBERS").arg(engine.key_of_kind(*kind, *block)));
            }
            Some(())
        });
        let replies = match replies {
            Err(RequestFailure::TooLarge(_)) if places.len() > 1 => {
                let (first, second) = places.split_at(places.len() / 2);
                let mut listed = self.list_some(first)?;
                listed.extend(self.list_some(second)?);
                return Ok(listed);
            }
            replies => replies?,
        };
        let mut listed = Vec::new();
        for ((kind, block), reply) in places.iter().zip(&replies) {
            match members(*kind, *block, reply) {
                Some(keys) => listed.extend(keys),
                None => listed.extend(self.restore_index(*kind, *block)?),
            }
        }
        Ok(listed)
    }

    /// The documents among these that have a deadline before or at `until`.
    fn due_among(&mut self, keys: &[DocumentKey], until: UnixMillis) -> Result<Vec<Due>, EngineError> {
        let mut due = Vec::new();
        for keys in keys.chunks(PLACES_AT_ONCE) {
            let replies = self.request(|engine, request| {
                for key in keys {
                    request.add(cmd("HGET").arg(engine.key_of(*key)).arg("d"));
                }
                Some(())
            })?;
            for (key, reply) in keys.iter().zip(replies) {
                let deadline = integer(&reply).map(UnixMillis).filter(|deadline| *deadline <= until);
                due.extend(deadline.map(|deadline| Due { deadline, key: *key }));
            }
        }
        Ok(due)
    }
}

/// The documents of a kind in a block as its index lists them; `None` if it is another program's value.
fn members(kind: DocumentKind, block: u16, reply: &Value) -> Option<Vec<DocumentKey>> {
    let key = |member: &Value| DocumentKey::new(kind, block, u32::try_from(integer(member)?).ok()?);
    match reply {
        Value::Array(members) | Value::Set(members) => members.iter().map(key).collect(),
        Value::ServerError(_) => None,
        _ => Some(Vec::new()),
    }
}

/// A marker that no other store has.
pub(super) fn new_marker() -> Result<String, EngineError> {
    let mut octets = [0; 8];
    getrandom::fill(&mut octets).map_err(|_| EngineError::Seal)?;
    Ok(hex::encode(octets))
}

/// Why a request has no replies.
pub(super) enum RequestFailure {
    /// The replies exceed their bound.
    TooLarge(EngineError),
    Other(EngineError),
}

impl From<RequestFailure> for EngineError {
    fn from(failure: RequestFailure) -> Self {
        match failure {
            RequestFailure::TooLarge(error) | RequestFailure::Other(error) => error,
        }
    }
}

/// A reply of the script.
enum ScriptReply {
    Written {
        /// Places of changes whose document is not what they expect.
        conflicts: Vec<usize>,
        /// Names of indexes that are another program's values, or were deleted.
        foreign: Vec<String>,
    },
    Fenced {
        /// The place of the block.
        fence: usize,
        /// The version of its owner; `None` if that is another program's value.
        current: Option<u64>,
    },
}

impl ScriptReply {
    fn of(reply: &Value) -> Option<Self> {
        let Value::Array(values) = reply else { return None };
        let (first, rest) = values.split_first()?;
        let place = |number: &Value| usize::try_from(integer(number)?).ok()?.checked_sub(1);
        if integer(first)? != 0 {
            return Some(Self::Fenced { fence: place(first)?, current: rest.first().and_then(integer) });
        }
        let (numbers, names): (Vec<_>, Vec<_>) =
            rest.iter().partition(|value| matches!(value, Value::Int(_)));
        let conflicts = numbers.into_iter().map(place).collect::<Option<_>>()?;
        Some(Self::Written { conflicts, foreign: names.into_iter().map(text).collect() })
    }
}

fn optional(number: Option<u64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// The changes of a batch, in parts that each are one call of the script.
fn parts(batch: &Batch) -> Vec<&[Entry]> {
    let (mut parts, mut rest, mut at, mut octets) = (Vec::new(), batch.entries(), 0, 0);
    while let Some(entry) = rest.get(at) {
        octets += batch.sections(entry).len();
        at += 1;
        if octets > MAX_CALL || at >= MAX_BATCH {
            let (part, others) = rest.split_at(at);
            parts.push(part);
            (rest, at, octets) = (others, 0, 0);
        }
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

impl Engine for RedisEngine {
    fn append(&mut self, batch: &Batch) -> Result<Appended, EngineError> {
        let start = Instant::now();
        let result = if batch.is_empty() { Ok(Vec::new()) } else { self.write(batch) };
        self.statistics.write_ns += nanoseconds_since(start);
        match result {
            Ok(conflicts) => {
                self.sequence.0 += 1;
                self.statistics.writes += count(batch.len() - conflicts.len());
                Ok(Appended { sequence: self.sequence, conflicts })
            }
            Err(error) => {
                self.statistics.failures += 1;
                Err(error)
            }
        }
    }

    fn read(&mut self, key: DocumentKey) -> Result<Option<Document>, DocumentError> {
        let reply = self.read_one(key, cmd("HGETALL").arg(self.key_of(key)))?;
        self.opened(key, fields(reply))
    }

    fn read_sections(
        &mut self,
        key: DocumentKey,
        sections: &[SectionId],
    ) -> Result<Option<Document>, DocumentError> {
        let names = ["r", "o", "l", "d", "g"].map(str::to_owned);
        let names: Vec<String> = names.into_iter().chain(sections.iter().map(u64::to_string)).collect();
        let mut command = cmd("HMGET");
        command.arg(self.key_of(key)).arg(&names);
        let Value::Array(values) = self.read_one(key, &command)? else { return Ok(None) };
        let present = names.into_iter().zip(values).filter_map(|(name, value)| match value {
            Value::BulkString(octets) => Some((name.into_bytes(), octets)),
            _ => None,
        });
        self.opened(key, present.collect())
    }

    fn read_each(&mut self, keys: &[DocumentKey], visit: &mut dyn FnMut(DocumentKey, ReadResult)) {
        let mut failure: Option<String> = None;
        for keys in keys.chunks(READ_AT_ONCE) {
            let mut absent: BTreeSet<DocumentKey> = keys.iter().copied().collect();
            // Each further request would wait for the server, too.
            if failure.is_none() {
                let read = self.read_some(keys, &mut |key, read| {
                    absent.remove(&key);
                    visit(key, read.map(Some));
                });
                failure = read.err().map(|error| error.to_string());
            }
            for key in absent {
                let reason = failure.clone();
                visit(key, reason.map_or(Ok(None), |reason| Err(DocumentError::Remote { key, reason })));
            }
        }
    }

    fn read_block(
        &mut self,
        kind: DocumentKind,
        block: u16,
        visit: &mut dyn FnMut(DocumentKey, Result<Document, DocumentError>),
    ) -> Result<(), EngineError> {
        for keys in self.list_one(kind, block)?.chunks(READ_AT_ONCE) {
            self.read_some(keys, visit)?;
        }
        Ok(())
    }

    fn keys(&mut self, kind: DocumentKind, block: u16) -> Result<Vec<DocumentKey>, EngineError> {
        self.list_one(kind, block)
    }

    fn list(&mut self, places: &[(DocumentKind, u16)]) -> Result<Vec<DocumentKey>, EngineError> {
        let mut listed = Vec::new();
        for places in places.chunks(INDEXES_AT_ONCE) {
            listed.extend(self.list_some(places)?);
        }
        Ok(listed)
    }

    fn list_due(
        &mut self,
        places: &[(DocumentKind, u16)],
        until: UnixMillis,
    ) -> Result<Vec<DocumentKey>, EngineError> {
        let listed = self.list(places)?;
        Ok(self.due_among(&listed, until)?.into_iter().map(|due| due.key).collect())
    }

    fn due(&mut self, block: u16, until: UnixMillis, limit: usize) -> Result<Vec<Due>, EngineError> {
        let places = DocumentKind::ALL.map(|kind| (kind, block));
        let keys = self.list_some(&places)?;
        let due = self.due_among(&keys, until)?;
        Ok(earliest(due, limit))
    }

    fn fence(&mut self, block: u16, owner: OwnerVersion) -> Result<(), EngineError> {
        self.fence_all(&[block], owner)
    }

    fn take(&mut self, blocks: &[u16], own: OwnerVersion) -> Result<bool, EngineError> {
        if self.latest_fence(blocks)? >= own {
            return Ok(false);
        }
        blocks.chunks(PLACES_AT_ONCE).try_for_each(|part| self.fence_all(part, own)).map(|()| true)
    }

    fn claim(&mut self, blocks: &[u16], step: u64) -> Result<OwnerVersion, EngineError> {
        let own = OwnerVersion(self.latest_fence(blocks)?.0.saturating_add(step));
        for part in blocks.chunks(PLACES_AT_ONCE) {
            self.fence_all(part, own)?;
        }
        Ok(own)
    }

    fn fenced_below(&mut self, block: u16) -> Result<OwnerVersion, EngineError> {
        check_block(block)?;
        let fence = self.fence_of(block);
        let replies = self.request(|_, request| {
            request.add(cmd("GET").arg(fence.as_str()));
            Some(())
        })?;
        match replies.first() {
            None | Some(Value::Nil) => Ok(OwnerVersion(0)),
            Some(reply) => match integer(reply) {
                Some(version) => Ok(OwnerVersion(version)),
                None => self.latest_owner(block),
            },
        }
    }

    fn durable(&self) -> Sequence {
        self.sequence
    }

    fn waits_for_network(&self) -> bool {
        true
    }

    fn check(&mut self) -> Result<(), EngineError> {
        self.compare_marker()
    }

    fn take_loss(&mut self) -> bool {
        std::mem::take(&mut self.has_lost_writes)
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }
}
