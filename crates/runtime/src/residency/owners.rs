//! The owner map and the leases of instances in a store, which the instances of a set have in common.
//!
//! ```text
//!  instance ── poll: renews its lease ──> store ──> instances that live, revision of the map
//!           ── read ───────────────────────────────> owner map
//!           ── replace, if the revision is the one that was read ──> owner map, revision + 1
//! ```
//!
//! The store compares and sets: of two instances that change the map at once one is refused, and reads the map of the other. Calls wait
//! for the store, so that they are made on a thread of their own.

use super::EngineError;
use crate::clock::Clock;
use crate::private_file::{self, PRIVATE, Readers};
use pith_nf::kit::Instant;
use pith_types::{BlockId, BlockMove, BlockOwner, InstanceId, OwnerMap, ShardId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An owner map with the number of its changes in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOwners {
    /// Rises by one with each change.
    pub revision: u64,
    /// The map.
    pub map: SetMap,
}

/// The owner map of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetMap {
    /// The owner of each block.
    pub owners: OwnerMap,
    /// The home of each block: the instance whose AMF Pointer 5G-GUTIs of the block have, and to which the block returns. It is the owner,
    /// unless the instance is gone and another one has taken the block over.
    pub homes: Arc<[InstanceId]>,
}

impl SetMap {
    /// A map in which each block is at home.
    pub fn at_home(owners: OwnerMap) -> Self {
        let homes = owners.owners().map(|(owner, _)| owner.instance).collect();
        Self { owners, homes }
    }

    /// The home of a block.
    pub fn home(&self, block: BlockId) -> InstanceId {
        self.homes.get(usize::from(block.number())).copied().unwrap_or_default()
    }

    /// The map in which these instances have taken over the blocks of all others, which return.
    pub fn taken_over_by(&self, living: &BTreeMap<InstanceId, u8>) -> Option<Self> {
        Some(Self { owners: self.owners.taken_over_by(living)?, homes: Arc::clone(&self.homes) })
    }

    /// The map with the change that an owner has made; `None` if it has that change, or a later one. The block has another home if it
    /// was at home.
    pub fn moved(&self, change: BlockMove) -> Option<Self> {
        let was_at_home = self.home(change.block) == self.owners.owner(change.block).instance;
        let owners = self.owners.moved(change)?;
        let mut homes = Arc::clone(&self.homes);
        if was_at_home && self.home(change.block) != change.to.instance {
            homes = homes.iter().copied().collect();
            if let Some(home) = Arc::make_mut(&mut homes).get_mut(usize::from(change.block.number())) {
                *home = change.to.instance;
            }
        }
        Some(Self { owners, homes })
    }
}

/// An instance's part in its set, which it repeats in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The instance.
    pub instance: InstanceId,
    /// The process: another one with the same number takes its place.
    pub incarnation: u64,
    /// How long the lease lasts.
    pub lasts: Duration,
    /// What the others need to know.
    pub description: Description,
}

/// What an instance tells the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The apiRoot of its services.
    pub root: String,
    /// Number of its shards.
    pub shards: u8,
    /// The process on its host, if it is known: another one on that host can find out whether it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
}

/// An instance whose lease has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveInstance {
    /// The process.
    pub incarnation: u64,
    /// Time until its lease ends.
    pub left: Duration,
    /// What it told.
    pub description: Description,
}

/// The answer of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Poll {
    /// The revision of the owner map; 0 if there is none.
    pub revision: u64,
    /// The instances that live.
    pub instances: BTreeMap<InstanceId, LiveInstance>,
    /// Instances that lived before, and are gone.
    pub gone: BTreeMap<InstanceId, Description>,
}

impl Poll {
    /// The instances that live, with their numbers of shards.
    pub fn living(&self) -> BTreeMap<InstanceId, u8> {
        self.instances.iter().map(|(instance, live)| (*instance, live.description.shards)).collect()
    }
}

/// Where the owner map is.
pub trait OwnerStore: Send {
    /// Renews a lease, unless another process has its place meanwhile (`takes_over`: takes that place), and returns who lives.
    fn poll(&mut self, lease: Option<&Lease>, takes_over: bool) -> Result<Poll, EngineError>;

    /// Ends a lease.
    fn leave(&mut self, lease: &Lease) -> Result<(), EngineError>;

    /// The owner map, if there is one.
    fn read(&mut self) -> Result<Option<StoredOwners>, EngineError>;

    /// Replaces the map of that revision (0: there is none yet); `false` if the store has another one.
    fn replace(&mut self, revision: u64, map: &SetMap) -> Result<bool, EngineError>;
}

/// The text of a map in a store: first block, instance, shard, version and home of each row of blocks with the same.
#[derive(Debug, Serialize, Deserialize)]
struct Text {
    version: u64,
    rows: Vec<(u16, u8, u8, u64, u8)>,
}

/// The text of a map.
pub(super) fn to_text(map: &SetMap) -> String {
    let mut rows: Vec<(u16, u8, u8, u64, u8)> = Vec::new();
    for (block, (owner, since)) in BlockId::all().zip(map.owners.owners()) {
        let (instance, shard, home) = (owner.instance.0, owner.shard.0, map.home(block).0);
        let is_same =
            |row: &&(u16, u8, u8, u64, u8)| (row.1, row.2, row.3, row.4) == (instance, shard, since, home);
        if rows.last().filter(is_same).is_none() {
            rows.push((block.number(), instance, shard, since, home));
        }
    }
    serde_json::to_string(&Text { version: map.owners.version(), rows }).unwrap_or_default()
}

/// Versions are below this: a map with a higher one was not written by Pith, and the next versions would overflow.
const MOST_VERSION: u64 = 1 << 53;

/// The map of a text; `None` if it is none.
pub(super) fn of_text(text: &str) -> Option<SetMap> {
    let Text { version, rows } =
        serde_json::from_str(text).ok().filter(|text: &Text| text.version < MOST_VERSION)?;
    let ends = rows.iter().skip(1).map(|row| row.0).chain([BlockId::COUNT]);
    let (mut owners, mut homes) = (Vec::new(), Vec::new());
    for ((first, instance, shard, since, home), end) in rows.iter().zip(ends) {
        if usize::from(*first) != owners.len() || usize::from(*shard) >= ShardId::LIMIT || since > &version {
            return None;
        }
        let owner = BlockOwner { instance: InstanceId(*instance), shard: ShardId(*shard) };
        let end = usize::from(end).max(owners.len());
        owners.resize(end, (owner, *since));
        homes.resize(end, InstanceId(*home));
    }
    Some(SetMap { owners: OwnerMap::of_owners(version, owners)?, homes: homes.into() })
}

/// The owner map in a file: that of one process, which alone has the directory. It has no leases.
pub struct OwnerFile {
    path: PathBuf,
}

impl OwnerFile {
    /// The map in that file.
    pub const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    fn failed(&self, action: &'static str, source: std::io::Error) -> EngineError {
        EngineError::Io { action, path: self.path.clone(), source }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct FileText {
    revision: u64,
    map: Text,
}

impl OwnerStore for OwnerFile {
    fn poll(&mut self, _lease: Option<&Lease>, _takes_over: bool) -> Result<Poll, EngineError> {
        let revision = self.read()?.map_or(0, |stored| stored.revision);
        Ok(Poll { revision, ..Poll::default() })
    }

    fn leave(&mut self, _lease: &Lease) -> Result<(), EngineError> {
        Ok(())
    }

    fn read(&mut self) -> Result<Option<StoredOwners>, EngineError> {
        if !self.path.exists() {
            return Ok(None);
        }
        let text = private_file::read(&self.path, Readers::Owner);
        let text = text.map_err(|error| self.failed("read", std::io::Error::other(error.to_string())))?;
        let damaged = || std::io::Error::other("it is no map of owners: remove it; blocks are divided anew");
        let FileText { revision, map } =
            serde_json::from_str(&text).map_err(|_| self.failed("read", damaged()))?;
        let map = serde_json::to_string(&map).unwrap_or_default();
        let map = of_text(&map).ok_or_else(|| self.failed("read", damaged()))?;
        Ok(Some(StoredOwners { revision, map }))
    }

    fn replace(&mut self, revision: u64, map: &SetMap) -> Result<bool, EngineError> {
        if self.read()?.map_or(0, |stored| stored.revision) != revision {
            return Ok(false);
        }
        let map = serde_json::from_str(&to_text(map)).ok();
        let text = map.and_then(|map| serde_json::to_string(&FileText { revision: revision + 1, map }).ok());
        let text = text.unwrap_or_default();
        private_file::replace(&self.path, PRIVATE, &text)
            .map_err(|error| self.failed("write", std::io::Error::other(error.to_string())))?;
        Ok(true)
    }
}

/// The owner map in memory, for several instances of one process: for tests and simulations.
#[derive(Clone)]
pub struct OwnerMemory(Arc<Mutex<Memory>>);

struct Memory {
    stored: Option<StoredOwners>,
    leases: BTreeMap<InstanceId, (u64, Instant, Description)>,
    /// The time of a simulation.
    now: Instant,
    clock: Option<Clock>,
    is_gone: bool,
    is_garbled: bool,
}

impl Memory {
    fn now(&self) -> Instant {
        self.clock.as_ref().map_or(self.now, Clock::now)
    }
}

impl OwnerMemory {
    /// An empty store, whose leases end in real time.
    pub fn new() -> Self {
        Self::with_clock(Some(Clock::start()))
    }

    /// An empty store in a simulation that sets the time ([`OwnerMemory::set_now`]).
    pub fn simulated() -> Self {
        Self::with_clock(None)
    }

    fn with_clock(clock: Option<Clock>) -> Self {
        let (leases, now) = (BTreeMap::new(), Instant::default());
        Self(Arc::new(Mutex::new(Memory {
            stored: None,
            leases,
            now,
            clock,
            is_gone: false,
            is_garbled: false,
        })))
    }

    /// The time in a simulation.
    pub fn set_now(&self, now: Instant) {
        self.memory().now = now;
    }

    /// Whether the store does not answer.
    pub fn set_gone(&self, is_gone: bool) {
        self.memory().is_gone = is_gone;
    }

    /// The store has lost the leases.
    pub fn delete_leases(&self) {
        self.memory().leases.clear();
    }

    /// The store has lost the map.
    pub fn delete_map(&self) {
        self.memory().stored = None;
    }

    /// The map can't be read, until it is replaced.
    pub fn garble_map(&self) {
        let mut memory = self.memory();
        memory.is_garbled = true;
        memory.stored.iter_mut().for_each(|stored| stored.revision += 1);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answering(&self) -> Result<MutexGuard<'_, Memory>, EngineError> {
        let memory = self.memory();
        if memory.is_gone {
            return Err(EngineError::Remote { server: "memory".into(), reason: "an outage".into() });
        }
        Ok(memory)
    }
}

impl Default for OwnerMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl OwnerStore for OwnerMemory {
    fn poll(&mut self, lease: Option<&Lease>, takes_over: bool) -> Result<Poll, EngineError> {
        let mut memory = self.answering()?;
        let now = memory.now();
        if let Some(lease) = lease {
            let of_other = memory.leases.get(&lease.instance).filter(|(of, ..)| *of != lease.incarnation);
            if takes_over || of_other.is_none_or(|(_, until, _)| *until <= now) {
                let entry = (lease.incarnation, now + lease.lasts, lease.description.clone());
                memory.leases.insert(lease.instance, entry);
            }
        }
        let live = memory.leases.iter().filter(|(_, (_, until, _))| *until > now);
        let instances = live.map(|(instance, (incarnation, until, description))| {
            let left = until.since(now);
            let description = description.clone();
            (*instance, LiveInstance { incarnation: *incarnation, left, description })
        });
        let instances = instances.collect();
        let gone = memory.leases.iter().filter(|(_, (_, until, _))| *until <= now);
        let gone = gone.map(|(instance, (.., description))| (*instance, description.clone())).collect();
        Ok(Poll { revision: memory.stored.as_ref().map_or(0, |stored| stored.revision), instances, gone })
    }

    fn leave(&mut self, lease: &Lease) -> Result<(), EngineError> {
        let mut memory = self.answering()?;
        let now = memory.now();
        if let Some((of, until, _)) = memory.leases.get_mut(&lease.instance)
            && *of == lease.incarnation
        {
            *until = now;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Option<StoredOwners>, EngineError> {
        let memory = self.answering()?;
        if memory.is_garbled { Err(EngineError::OwnerMap) } else { Ok(memory.stored.clone()) }
    }

    fn replace(&mut self, revision: u64, map: &SetMap) -> Result<bool, EngineError> {
        let mut memory = self.answering()?;
        if memory.stored.as_ref().map_or(0, |stored| stored.revision) != revision {
            return Ok(false);
        }
        memory.is_garbled = false;
        memory.stored = Some(StoredOwners { revision: revision + 1, map: map.clone() });
        Ok(true)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::tests::Directory;
    use super::*;

    fn map() -> SetMap {
        let map = SetMap::at_home(OwnerMap::of_instance(InstanceId(1), 3));
        let to = BlockOwner { instance: InstanceId(2), shard: ShardId(1) };
        map.moved(BlockMove { block: BlockId::new(7).unwrap(), to, version: 9 }).unwrap()
    }

    #[test]
    fn a_block_that_is_taken_over_keeps_its_home_and_returns() {
        let (one, two) = (InstanceId(1), InstanceId(2));
        let seven = BlockId::new(7).unwrap();
        assert_eq!((map().owners.owner(seven).instance, map().home(seven)), (two, two), "it was given away");
        let taken = map().taken_over_by(&BTreeMap::from([(two, 1)])).unwrap();
        assert_eq!(
            (taken.owners.owner(BlockId::new(8).unwrap()).instance, taken.home(BlockId::new(8).unwrap())),
            (two, one)
        );
        let to = BlockOwner { instance: one, shard: ShardId(0) };
        let back = taken.moved(BlockMove { block: BlockId::new(8).unwrap(), to, version: 20 }).unwrap();
        assert_eq!(back.home(BlockId::new(8).unwrap()), one);
    }

    #[test]
    fn a_map_is_the_same_after_its_text() {
        let text = to_text(&map());
        assert_eq!(of_text(&text), Some(map()));
        assert!(text.len() < 200, "{text}");
        for wrong in [
            "",
            "{}",
            r#"{"version":1,"rows":[]}"#,
            r#"{"version":1,"rows":[[1,0,0,1,0]]}"#,
            r#"{"version":1,"rows":[[0,0,64,1,0]]}"#,
            r#"{"version":18446744073709551615,"rows":[[0,1,0,18446744073709551615,1]]}"#,
        ] {
            assert_eq!(of_text(wrong), None, "{wrong}");
        }
    }

    /// The map of each store: compare and set.
    pub(in super::super) fn check_map(store: &mut dyn OwnerStore) {
        assert_eq!(store.read().unwrap(), None);
        let first = SetMap::at_home(OwnerMap::of_instance(InstanceId(1), 3));
        assert!(store.replace(0, &first).unwrap());
        assert!(!store.replace(0, &map()).unwrap(), "another process was first");
        assert_eq!(store.read().unwrap(), Some(StoredOwners { revision: 1, map: first }));
        assert!(store.replace(1, &map()).unwrap());
        assert_eq!(store.read().unwrap(), Some(StoredOwners { revision: 2, map: map() }));
        assert_eq!(store.poll(None, false).unwrap().revision, 2);
    }

    /// The leases of each store for several processes.
    pub(in super::super) fn check_leases(store: &mut dyn OwnerStore) {
        let lease = |instance, incarnation, lasts| Lease {
            instance: InstanceId(instance),
            incarnation,
            lasts: Duration::from_millis(lasts),
            description: Description {
                root: format!("http://10.0.0.{instance}:80"),
                shards: 2,
                process: Some(format!("host {instance}")),
            },
        };
        let of = |poll: &Poll| {
            poll.instances.iter().map(|(it, live)| (it.0, live.incarnation)).collect::<Vec<_>>()
        };
        assert_eq!(of(&store.poll(Some(&lease(1, 10, 60_000)), false).unwrap()), [(1, 10)]);
        let both = store.poll(Some(&lease(2, 20, 60_000)), false).unwrap();
        assert_eq!(of(&both), [(1, 10), (2, 20)]);
        assert_eq!(both.instances[&InstanceId(1)].description, lease(1, 10, 0).description);
        assert!(both.instances[&InstanceId(1)].left > Duration::from_secs(50));
        // Another process of instance 1: it takes the place only if it says so.
        assert_eq!(of(&store.poll(Some(&lease(1, 11, 60_000)), false).unwrap()), [(1, 10), (2, 20)]);
        assert_eq!(of(&store.poll(Some(&lease(1, 11, 60_000)), true).unwrap()), [(1, 11), (2, 20)]);
        assert_eq!(of(&store.poll(Some(&lease(1, 10, 60_000)), false).unwrap()), [(1, 11), (2, 20)]);
        store.leave(&lease(2, 19, 0)).unwrap();
        store.leave(&lease(1, 11, 0)).unwrap();
        let poll = store.poll(None, false).unwrap();
        assert_eq!(of(&poll), [(2, 20)], "only its own lease ends");
        assert_eq!(poll.gone, BTreeMap::from([(InstanceId(1), lease(1, 0, 0).description)]));
        store.poll(Some(&lease(3, 30, 30)), false).unwrap();
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(of(&store.poll(None, false).unwrap()), [(2, 20)], "that of instance 3 has ended");
    }

    #[test]
    fn a_file_keeps_the_map() {
        let directory = Directory::new();
        let path = directory.path().join("owners");
        check_map(&mut OwnerFile::new(path.clone()));
        assert_eq!(OwnerFile::new(path.clone()).read().unwrap().unwrap().map, map());
        std::fs::write(&path, "{}").unwrap();
        let error = OwnerFile::new(path).read().unwrap_err().to_string();
        assert!(error.contains("remove it"), "{error}");
    }

    #[test]
    fn memory_keeps_map_and_leases() {
        check_map(&mut OwnerMemory::default());
        check_leases(&mut OwnerMemory::default());
    }
}
