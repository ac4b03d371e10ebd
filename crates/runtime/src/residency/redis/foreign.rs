//! Values of other programs under keys of Pith: a fence or an index is restored from the documents of its block.

use super::super::{DocumentKey, DocumentKind, EngineError, OwnerVersion};
use super::connection::text;
use super::engine::RedisEngine;
use super::fields::integer;
use redis::{Value, cmd};
use std::collections::BTreeSet;

/// The script that replaces a fence which is another program's value.
const RESTORE_FENCE: &str = concat!(include_str!("version.lua"), include_str!("fence.lua"));
/// Documents whose owners are read with one request.
const AT_ONCE: usize = 128;
/// Keys of the server that one step of a scan visits, about.
const SCANNED: usize = 1000;
/// Steps of a scan at most: a server with as many keys is not Pith's alone, and the search fails.
const MOST_STEPS: usize = 100_000;

impl RedisEngine {
    /// The highest version under which a document of the block was written by a process with these fences: those of other NFs count
    /// versions of their own for blocks with the same numbers.
    pub(super) fn latest_owner(&mut self, block: u16) -> Result<OwnerVersion, EngineError> {
        let mut latest = 0;
        for kind in self.shared.kinds.clone() {
            for keys in self.list_one(kind, block)?.chunks(AT_ONCE) {
                let replies = self.request(|engine, request| {
                    for key in keys {
                        request.add(cmd("HGET").arg(engine.key_of(*key)).arg("o"));
                    }
                    Some(())
                })?;
                latest = replies.iter().filter_map(integer).fold(latest, u64::max);
            }
        }
        Ok(OwnerVersion(latest))
    }

    /// Replaces a block's fence that is another program's value, unless the block has a later owner. A fence that an owner has written
    /// meanwhile stays: the script looks at the value again.
    pub(super) fn restore_fence(&mut self, block: u16, own: OwnerVersion) -> Result<(), EngineError> {
        let OwnerVersion(current) = self.latest_owner(block)?;
        if own.0 < current {
            return Err(EngineError::Fenced { block, current, own: own.0 });
        }
        let fence = self.fence_of(block);
        let replies = self.request(|_, request| {
            request.add(cmd("EVAL").arg(RESTORE_FENCE).arg(1).arg(fence.as_str()).arg(own.0));
            Some(())
        })?;
        match replies.first() {
            Some(Value::Int(0)) => {}
            Some(Value::Int(1)) => self.report_foreign(&fence, "it is written again"),
            _ => return Err(self.strange_reply()),
        }
        Ok(())
    }

    /// Makes the index of a block's documents again, which is another program's value, and returns their keys.
    pub(super) fn restore_index(
        &mut self,
        kind: DocumentKind,
        block: u16,
    ) -> Result<Vec<DocumentKey>, EngineError> {
        let index = self.key_of_kind(kind, block);
        self.report_foreign(&index, "the documents that it listed are searched, and listed again");
        // Searched before the index is replaced: an attempt that fails finds the foreign value again.
        let mut found = self.search(&format!("{index}:"))?;
        self.request(|_, request| {
            request.add(cmd("DEL").arg(index.as_str()));
            for numbers in found.iter().copied().collect::<Vec<_>>().chunks(AT_ONCE) {
                request.add(cmd("SADD").arg(index.as_str()).arg(numbers));
            }
            Some(())
        })?;
        // Other processes may have added documents meanwhile.
        let again = self.search(&format!("{index}:"))?;
        let late: Vec<u32> = again.difference(&found).copied().collect();
        if !late.is_empty() {
            self.request(|_, request| {
                request.add(cmd("SADD").arg(index.as_str()).arg(&late));
                Some(())
            })?;
            found.extend(late);
        }
        Ok(found.into_iter().filter_map(|number| DocumentKey::new(kind, block, number)).collect())
    }

    /// The numbers of all documents whose keys begin so.
    fn search(&mut self, prefix: &str) -> Result<BTreeSet<u32>, EngineError> {
        let (mut numbers, mut cursor) = (BTreeSet::new(), "0".to_owned());
        for _ in 0..MOST_STEPS {
            let replies = self.request(|_, request| {
                let mut scan = cmd("SCAN");
                scan.arg(cursor.as_str()).arg("MATCH").arg(format!("{prefix}*")).arg("COUNT").arg(SCANNED);
                request.add(&scan);
                Some(())
            })?;
            let Some(Value::Array(reply)) = replies.into_iter().next() else {
                return Err(self.strange_reply());
            };
            let [next, Value::Array(found)] = reply.as_slice() else { return Err(self.strange_reply()) };
            let number = |key: &Value| u32::from_str_radix(text(key).strip_prefix(prefix)?, 16).ok();
            numbers.extend(found.iter().filter_map(number));
            cursor = text(next);
            if cursor == "0" {
                return Ok(numbers);
            }
        }
        Err(self.strange_reply())
    }

    fn report_foreign(&self, key: &str, what: &str) {
        tracing::error!(
            "Redis at {}: '{key}' has another program's value: {what}. Only Pith may write keys that begin with 'pith:'",
            self.shared.access.url
        );
    }
}
