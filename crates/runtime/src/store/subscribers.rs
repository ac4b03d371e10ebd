//! Subscribers: operations of the UDR and the operator.

use super::seal::without_keys;
use super::{Database, DatabaseError};
use crate::config::text::words;
use pith_nf::kit::{IpNetwork, Subscriber, first_and_last, overlap};
use pith_types::Supi;
use rusqlite::{OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Largest number of cached subscribers.
const CACHE: usize = 1 << 16;

words! {
    /// Treatment of subscribers that already exist.
    Existing, "a treatment of existing subscribers" {
        /// Refuse the request.
        Refuse = "refuse",
        /// Replace the subscriber; if K is unchanged, SQN does not decrease.
        Replace = "replace",
        /// Keep the existing subscriber.
        Keep = "keep",
    }
}

/// The result of adding subscribers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Added {
    /// Number of new subscribers.
    pub added: u64,
    /// Number of replaced subscribers.
    pub replaced: u64,
    /// Number of existing subscribers that were kept.
    pub kept: u64,
}

impl Database {
    /// Adds all subscribers, or none if there is an error.
    pub fn add_subscribers(
        &mut self,
        subscribers: impl IntoIterator<Item = Subscriber>,
        existing: Existing,
    ) -> Result<Added, DatabaseError> {
        self.transaction(|database| {
            let mut added = Added::default();
            for subscriber in subscribers {
                database.add_subscriber(&subscriber, existing, &mut added)?;
            }
            Ok(added)
        })
    }

    fn add_subscriber(
        &mut self,
        subscriber: &Subscriber,
        existing: Existing,
        added: &mut Added,
    ) -> Result<(), DatabaseError> {
        let supi = &subscriber.supi;
        subscriber.check().map_err(|sentence| DatabaseError::Invalid { supi: supi.clone(), sentence })?;
        // Before its profile is written and its keys are sealed: a start with a test network keeps most subscribers.
        if matches!(existing, Existing::Keep) && self.has_subscriber(supi)? {
            added.kept += 1;
            return Ok(());
        }
        if self.insert_subscriber(subscriber, subscriber.authentication.sqn)? {
            added.added += 1;
            return Ok(());
        }
        match existing {
            Existing::Refuse => return Err(DatabaseError::Exists(supi.clone())),
            Existing::Keep => added.kept += 1,
            Existing::Replace => {
                let sqn = self.sequence_number_after(subscriber)?;
                let is_changed = self.differs(subscriber)?;
                self.delete_subscriber_row(supi)?;
                self.insert_subscriber(subscriber, sqn)?;
                added.replaced += 1;
                if is_changed {
                    self.note_changed(supi)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the data differ from the stored ones. Keys, which NFs read for each authentication, do not count.
    fn differs(&mut self, new: &Subscriber) -> Result<bool, DatabaseError> {
        let old = match self.subscriber(&new.supi) {
            Ok(old) => old,
            // A profile that cannot be read can still be replaced.
            Err(DatabaseError::Profile(_) | DatabaseError::Seal(_)) => None,
            Err(error) => return Err(error),
        };
        Ok(old.is_none_or(|old| {
            let Subscriber { supi: _, authentication: _, gpsi, ambr, slices, restrictions, trace } = &*old;
            let others = (gpsi, ambr, slices, restrictions, trace);
            others != (&new.gpsi, &new.ambr, &new.slices, &new.restrictions, &new.trace)
        }))
    }

    /// The NFs that serve the UE are to be notified of its changed data, if it is known to some.
    fn note_changed(&mut self, supi: &Supi) -> Result<(), DatabaseError> {
        if self.has_documents(supi)? {
            let sql = "INSERT OR REPLACE INTO changed (supi) VALUES (?1)";
            self.connection.prepare_cached(sql)?.execute([supi.as_str()])?;
        }
        Ok(())
    }

    /// Changed subscribers in rows with higher numbers, at most `limit`.
    pub(crate) fn changed(&mut self, after: u64, limit: u32) -> Result<Vec<(u64, Supi)>, DatabaseError> {
        let sql = "SELECT number, supi FROM changed WHERE number > ?1 ORDER BY number LIMIT ?2";
        let mut select = self.connection.prepare_cached(sql)?;
        let rows = select.query_map(params![after as i64, limit], |row| {
            Ok((row.get::<_, i64>(0)? as u64, row.get::<_, String>(1)?))
        })?;
        let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
        Ok(rows.into_iter().filter_map(|(number, supi)| Some((number, supi.parse().ok()?))).collect())
    }

    /// The NFs were notified of the changes in these rows. Nothing is left of a deleted subscriber then. Returns whether one of the rows
    /// existed.
    pub(super) fn forget_changed(&mut self, numbers: &[u64]) -> Result<bool, DatabaseError> {
        let mut is_found = false;
        for number in numbers {
            let sql = "DELETE FROM changed WHERE number = ?1 RETURNING supi";
            let mut delete = self.connection.prepare_cached(sql)?;
            let supi = delete.query_row([*number as i64], |row| row.get::<_, String>(0)).optional()?;
            drop(delete);
            let Some(supi) = supi else { continue };
            is_found = true;
            if let Ok(supi) = supi.parse::<Supi>()
                && !self.has_subscriber(&supi)?
            {
                self.delete_documents_of(&supi)?;
            }
        }
        Ok(is_found)
    }

    /// As [`Database::has_subscriber`], mostly without a request to the database.
    pub(super) fn is_subscriber(&self, supi: &Supi) -> Result<bool, DatabaseError> {
        Ok(self.cache.contains_key(supi) || self.has_subscriber(supi)?)
    }

    fn has_subscriber(&self, supi: &Supi) -> Result<bool, DatabaseError> {
        let mut statement = self.connection.prepare_cached("SELECT 1 FROM subscriber WHERE supi = ?1")?;
        Ok(statement.exists(params![supi.as_str()])?)
    }

    /// The highest used sequence number after a replacement. If K is unchanged, it does not decrease even if
    /// the new data has a lower one (TS 33.102 6.3.2).
    fn sequence_number_after(&mut self, new: &Subscriber) -> Result<u64, DatabaseError> {
        let (k, given) = (&new.authentication.k, new.authentication.sqn);
        match self.subscriber(&new.supi) {
            Ok(Some(old)) if old.authentication.k == *k => Ok(given.max(old.authentication.sqn)),
            // A profile that cannot be read can still be replaced.
            Ok(_) | Err(DatabaseError::Profile(_) | DatabaseError::Seal(_)) => Ok(given),
            Err(error) => Err(error),
        }
    }

    /// Inserts a subscriber unless it exists; returns whether it was inserted. If one with its SUPI was deleted, and no AMF has confirmed
    /// that yet, that one's UE is still to be deregistered: the new one may have another SIM and other keys.
    fn insert_subscriber(&mut self, subscriber: &Subscriber, sqn: u64) -> Result<bool, DatabaseError> {
        let (profile, keys) = self.stored(subscriber)?;
        let supi = subscriber.supi.as_str();
        let sql = "INSERT INTO subscriber VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        if self.connection.prepare_cached(sql)?.execute(params![supi, profile, keys])? == 0 {
            return Ok(false);
        }
        let sql = "INSERT OR REPLACE INTO sequence_number VALUES (?1, ?2)";
        self.connection.prepare_cached(sql)?.execute(params![supi, sqn as i64])?;
        self.assign(subscriber)?;
        Ok(true)
    }

    /// Records the static addresses and framed routes of a subscriber, unless another one has one of their addresses.
    fn assign(&mut self, subscriber: &Subscriber) -> Result<(), DatabaseError> {
        for network in outermost(subscriber.own_networks().collect()) {
            let (first, last) = keys_of(network);
            // Those in the table have no address in common: one before the last that begins before this one's end is enough.
            let sql = "SELECT last, supi FROM assigned WHERE first <= ?1 ORDER BY first DESC LIMIT 1";
            let mut select = self.connection.prepare_cached(sql)?;
            let before = select.query_row([&last[..]], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get(1)?)));
            if let Some((_, other)) = before.optional()?.filter(|(end, _)| **end >= first[..]) {
                let (supi, (address, prefix)) = (subscriber.supi.clone(), network);
                return Err(DatabaseError::Assigned { supi, address, prefix, other });
            }
            let sql = "INSERT INTO assigned VALUES (?1, ?2, ?3)";
            let mut insert = self.connection.prepare_cached(sql)?;
            insert.execute(params![&first[..], &last[..], subscriber.supi.as_str()])?;
        }
        Ok(())
    }

    /// The stored form of a subscriber: the profile without keys, and the sealed keys.
    fn stored(&self, subscriber: &Subscriber) -> Result<(String, Vec<u8>), DatabaseError> {
        let keys = self.seal.seal(&subscriber.supi, &subscriber.authentication)?;
        let authentication = without_keys(&subscriber.authentication);
        let profile = serde_json::to_string(&Subscriber { authentication, ..subscriber.clone() })?;
        Ok((profile, keys))
    }

    /// Encrypts the keys of all subscribers, which an earlier release stored in cleartext, and stores the
    /// key's id. With `rewrite` the file is rewritten, so that no cleartext remains in free pages.
    pub(super) fn seal_all(&mut self, rewrite: bool) -> Result<(), DatabaseError> {
        self.transaction(|database| {
            let mut select = database.connection.prepare("SELECT profile FROM subscriber")?;
            let profiles: Vec<String> = select.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            drop(select);
            for profile in profiles {
                let subscriber: Subscriber = serde_json::from_str(&profile)?;
                let (profile, keys) = database.stored(&subscriber)?;
                let sql = "UPDATE subscriber SET profile = ?2, keys = ?3 WHERE supi = ?1";
                database.connection.prepare_cached(sql)?.execute(params![
                    subscriber.supi.as_str(),
                    profile,
                    keys
                ])?;
            }
            database.connection.execute("INSERT INTO sealed_under VALUES (?1)", [database.seal.id()])?;
            Ok(())
        })?;
        if rewrite {
            self.connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")?;
        }
        Ok(())
    }

    /// A subscriber with its keys from a row.
    fn read(&self, (profile, sqn, keys): Columns) -> Result<Subscriber, DatabaseError> {
        let mut subscriber: Subscriber = serde_json::from_str(&profile)?;
        subscriber.authentication.sqn = sqn as u64;
        self.seal.open(&subscriber.supi, &keys, &mut subscriber.authentication)?;
        Ok(subscriber)
    }

    fn delete_subscriber_row(&mut self, supi: &Supi) -> Result<bool, DatabaseError> {
        self.cache.remove(supi);
        let mut delete = self.connection.prepare_cached("DELETE FROM sequence_number WHERE supi = ?1")?;
        delete.execute([supi.as_str()])?;
        let mut delete = self.connection.prepare_cached("DELETE FROM assigned WHERE supi = ?1")?;
        delete.execute([supi.as_str()])?;
        let mut delete = self.connection.prepare_cached("DELETE FROM subscriber WHERE supi = ?1")?;
        Ok(delete.execute([supi.as_str()])? == 1)
    }

    /// The subscriber with this SUPI.
    pub fn subscriber(&mut self, supi: &Supi) -> Result<Option<Arc<Subscriber>>, DatabaseError> {
        if let Some(subscriber) = self.cache.get(supi) {
            return Ok(Some(subscriber.clone()));
        }
        let sql =
            "SELECT profile, sqn, keys FROM subscriber JOIN sequence_number USING (supi) WHERE supi = ?1";
        let found = self.connection.prepare_cached(sql)?.query_row([supi.as_str()], columns).optional()?;
        let Some(columns) = found else { return Ok(None) };
        let subscriber = Arc::new(self.read(columns)?);
        if self.cache.len() >= CACHE {
            self.cache.clear();
        }
        self.cache.insert(supi.clone(), subscriber.clone());
        Ok(Some(subscriber))
    }

    /// At most `limit` subscribers after `after`, ordered by SUPI.
    pub fn subscribers(
        &mut self,
        after: Option<&Supi>,
        limit: u32,
    ) -> Result<Vec<Subscriber>, DatabaseError> {
        let sql = "SELECT profile, sqn, keys FROM subscriber JOIN sequence_number USING (supi)
                   WHERE supi > ?1 ORDER BY supi LIMIT ?2";
        let mut select = self.connection.prepare_cached(sql)?;
        let rows = select.query_map(params![after.map_or("", Supi::as_str), limit], columns)?;
        rows.map(|row| self.read(row?)).collect()
    }

    /// Number of subscribers.
    pub fn subscriber_count(&mut self) -> Result<u64, DatabaseError> {
        let mut count = self.connection.prepare_cached("SELECT count(*) FROM subscriber")?;
        let count: i64 = count.query_row([], |row| row.get(0))?;
        Ok(count as u64)
    }

    /// Deletes subscribers; returns how many existed. The documents that NFs have stored for them stay until these NFs were notified: they
    /// say which AMF serves the UE (TS 23.502 4.2.2.3.3).
    pub fn delete_subscribers(&mut self, supis: &[Supi]) -> Result<u64, DatabaseError> {
        self.transaction(|database| {
            let mut deleted = 0;
            for supi in supis {
                if database.delete_subscriber_row(supi)? {
                    deleted += 1;
                    database.note_changed(supi)?;
                    let sql = "INSERT OR IGNORE INTO withdrawn VALUES (?1)";
                    database.connection.prepare_cached(sql)?.execute([supi.as_str()])?;
                }
            }
            Ok(deleted)
        })
    }

    /// Deleted subscribers whose UEs an AMF may still serve, at most `limit`: they were deleted while no core was running, or it has not
    /// confirmed their deregistration.
    pub fn withdrawn(&mut self, limit: u32) -> Result<Vec<Supi>, DatabaseError> {
        let mut select = self.connection.prepare_cached("SELECT supi FROM withdrawn LIMIT ?1")?;
        let found = select.query_map([limit], |row| row.get::<_, String>(0))?;
        let found: Vec<String> = found.collect::<Result<_, _>>()?;
        Ok(found.iter().filter_map(|supi| supi.parse().ok()).collect())
    }

    /// The UEs of these deleted subscribers are deregistered.
    pub fn forget_withdrawn(&mut self, supis: &[Supi]) -> Result<(), DatabaseError> {
        self.transaction(|database| {
            for supi in supis {
                let sql = "DELETE FROM withdrawn WHERE supi = ?1";
                database.connection.prepare_cached(sql)?.execute([supi.as_str()])?;
            }
            Ok(())
        })
    }

    /// Stores the highest used sequence number; returns whether the subscriber exists and its previous number
    /// was the expected one.
    pub(super) fn put_sequence_number(
        &mut self,
        supi: &Supi,
        sqn: u64,
        expected: Option<u64>,
    ) -> Result<bool, DatabaseError> {
        let sql = "UPDATE sequence_number SET sqn = ?2 WHERE supi = ?1 AND sqn = ifnull(?3, sqn)";
        let mut update = self.connection.prepare_cached(sql)?;
        let columns = params![supi.as_str(), sqn as i64, expected.map(|sqn| sqn as i64)];
        let done = update.execute(columns)? == 1;
        if done && let Some(subscriber) = self.cache.get_mut(supi) {
            Arc::make_mut(subscriber).authentication.sqn = sqn;
        }
        Ok(done)
    }
}

/// The networks without those within others.
fn outermost(networks: Vec<IpNetwork>) -> Vec<IpNetwork> {
    let is_within =
        |one: &IpNetwork, other: &IpNetwork| one != other && other.1 <= one.1 && overlap(*one, *other);
    networks.iter().filter(|one| !networks.iter().any(|other| is_within(one, other))).copied().collect()
}

/// The keys of a network's first and last address: in the order of the addresses.
fn keys_of(network: IpNetwork) -> ([u8; 17], [u8; 17]) {
    let key = |address: u128| {
        let mut key = [if network.0.is_ipv4() { 4 } else { 6 }; 17];
        key[1..].copy_from_slice(&address.to_be_bytes());
        key
    };
    let (first, last) = first_and_last(network);
    (key(first), key(last))
}

/// Profile, sequence number and sealed keys of a row.
type Columns = (String, i64, Vec<u8>);

fn columns(row: &Row<'_>) -> rusqlite::Result<Columns> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?))
}
