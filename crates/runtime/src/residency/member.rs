//! An instance's part in its set: what it does with the owner map and its lease ([ADR 0024](../../../../docs/adr/0024-instances-of-a-set.md)).
//! It has neither a thread nor a clock of its own, so that a simulation can run it, too.
//!
//! ```text
//!  start ──> Joining ── some attempts ──> SetMember.turn, some times a lease
//!                                           │ poll: renews the lease; who lives, revision of the map
//!                                           │ read, if the revision is another one: Adopt, OwnersChanged ──> shards
//!                                           │ replace: changes of this process, and the blocks of instances that are gone
//!                                           └ Move ──> shards: blocks for instances that have less than their part
//! ```
//!
//! An instance is gone when its lease has ended. While the store does not answer, leases end of instances that live: after an outage the
//! others wait for one more lease, in which each of them can renew its own.

use super::EngineError;
use super::owners::{Description, Lease, OwnerStore, Poll, SetMap, StoredOwners};
use crate::lease::LeaseGuard;
use pith_nf::fabric::ShardInput;
use pith_nf::kit::{Duration, Instant, SetInstances};
use pith_sbi::{ApiRoot, Uri};
use pith_types::{BlockId, BlockMove, BlockOwner, InstanceId, OwnerMap, ShardId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Polls in the time of a lease.
const POLLS: u32 = 8;
/// Longest time between two polls.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// Time until another attempt to write a map to a file, and after a block that was in use.
const RETRY: Duration = Duration::from_secs(1);
/// While the store does not answer: how long an instance goes on beyond its lease until the next attempt.
const OUTAGE: Duration = Duration::from_secs(10);
/// The longest time of an attempt to reach the store.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(4);
/// Time between the end of a lease and the next poll.
const SLACK: Duration = Duration::from_millis(500);
/// Blocks that a shard adopts with one input: other UEs are served in between.
const ADOPTED_AT_ONCE: usize = 32;
/// How long an instance has lived before it gets more than one block for each shard: gNBs connect to its AMF again meanwhile, and then
/// send it the UEs that have its AMF Pointer.
const SETTLING: Duration = Duration::from_secs(2);
/// Blocks that an instance releases at once.
const RELEASED_AT_ONCE: usize = 64;
/// Attempts to change a map that others change at the same time.
const ATTEMPTS: usize = 8;

/// The map is read at least that often, whatever its revision: in a store that was put back another one may have got the same.
const CHECK: Duration = Duration::from_secs(10);

/// What a member needs of its process.
pub trait SetHost {
    /// A version for a change of the map that this instance makes.
    fn next_version(&mut self) -> u64;
    /// Versions up to that one are given.
    fn note_version(&mut self, version: u64);
    /// A block has another owner.
    fn note(&mut self, change: BlockMove);
    /// Gives a shard of the process an input.
    fn to_shard(&mut self, shard: u16, input: ShardInput);
}

/// A turn of a member failed.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// The store failed: the next turn tries again.
    #[error(transparent)]
    Store(#[from] EngineError),
    /// The UEs are another process's: this one ends at once, without a message to anyone.
    #[error("{0}: the process ends, and may be started again")]
    Lost(&'static str),
}

/// An instance cannot enter its set.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] EngineError),
    /// Another process has the number, and lives.
    #[error(
        "the process at {root} has the number {instance} ('set.instance') and renews its lease: give this process another number, or end that one"
    )]
    Occupied {
        /// The number.
        instance: u8,
        /// The apiRoot of that process.
        root: String,
    },
}

/// Whether the process that a description is of has ended for certain.
pub type HasEnded = Box<dyn Fn(&Description) -> bool + Send>;

/// An instance that enters its set.
pub struct Joining {
    lease: Lease,
    guard: LeaseGuard,
    has_ended: HasEnded,
    /// Since when the store answers.
    began: Option<Instant>,
    /// When the lease of another process with this number ends, if it is not renewed.
    free_at: Option<Instant>,
}

/// An instance has blocks for each of its shards.
pub struct Joined {
    /// The owner map.
    pub map: SetMap,
    /// Its revision in the store.
    pub revision: u64,
    /// The set.
    pub poll: Poll,
}

impl Joining {
    /// The begin. The guard ends with the lease.
    pub const fn new(lease: Lease, guard: LeaseGuard, has_ended: HasEnded) -> Self {
        Self { lease, guard, has_ended, began: None, free_at: None }
    }

    /// Renews the lease. A former process of this number loses its lease at once, if it has ended for certain, as after `kill -9` on
    /// the same host; otherwise the lease must end. `None`: it has not ended yet.
    fn poll(&mut self, now: Instant, store: &mut dyn OwnerStore) -> Result<Option<Poll>, JoinError> {
        let Lease { instance, incarnation, lasts, .. } = self.lease;
        let asked = self.guard.now();
        let mut poll = store.poll(Some(&self.lease), false)?;
        if let Some(other) = poll.instances.get(&instance).filter(|live| live.incarnation != incarnation) {
            if !(self.has_ended)(&other.description) {
                let free_at = *self.free_at.get_or_insert(now + other.left + SLACK);
                let root = other.description.root.clone();
                let is_renewed = now > free_at;
                return if is_renewed {
                    Err(JoinError::Occupied { instance: instance.0, root })
                } else {
                    Ok(None)
                };
            }
            poll = store.poll(Some(&self.lease), true)?;
        }
        self.guard.renew(asked, lasts);
        Ok(Some(poll))
    }

    /// One attempt; `None`: the others have not given this instance any blocks yet. Blocks of instances that are gone are divided when the
    /// store has answered for a lease, so that none is taken from one that lives.
    pub fn attempt(&mut self, now: Instant, store: &mut dyn OwnerStore) -> Result<Option<Joined>, JoinError> {
        let Lease { instance, lasts, .. } = self.lease;
        let shards = self.lease.description.shards;
        for _ in 0..ATTEMPTS {
            let Some(poll) = self.poll(now, store)? else { return Ok(None) };
            let began = *self.began.get_or_insert(now);
            let first = || SetMap::at_home(OwnerMap::of_instance(instance, shards));
            let stored = match store.read() {
                Ok(Some(stored)) => stored,
                Ok(None) => {
                    store.replace(0, &first())?;
                    continue;
                }
                // Each instance that serves writes it again.
                Err(EngineError::OwnerMap) if now.since(began) < lasts => return Ok(None),
                Err(EngineError::OwnerMap) => {
                    tracing::error!(
                        "the owner map of the set cannot be read: blocks of ids are divided again"
                    );
                    store.replace(poll.revision, &first())?;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let (living, map) = (poll.living(), stored.map);
            let of_gone = map.taken_over_by(&living).filter(|_| now.since(began) >= lasts);
            let divided = of_gone.or_else(|| {
                let owners = map.owners.for_shards(instance, shards)?;
                Some(SetMap { owners, homes: Arc::clone(&map.homes) })
            });
            if let Some(divided) = divided {
                store.replace(stored.revision, &divided)?;
                continue;
            }
            let has_any =
                |shard| map.owners.blocks_of(BlockOwner { instance, shard: ShardId(shard) }).next().is_some();
            let has_all = (0..shards).all(has_any);
            return Ok(has_all.then_some(Joined { map, revision: stored.revision, poll }));
        }
        Ok(None)
    }

    /// Ends the attempts.
    pub fn give_up(self, store: &mut dyn OwnerStore) {
        let _ = store.leave(&self.lease);
    }

    /// The lease, and its end.
    pub fn into_lease(self) -> (Lease, LeaseGuard) {
        (self.lease, self.guard)
    }
}

/// An instance of a set, or (without a lease) the only process that has the store.
pub struct SetMember {
    instance: InstanceId,
    shards: u16,
    /// The apiRoot of this process.
    root: Arc<ApiRoot>,
    /// The owner map as this process has it.
    known: SetMap,
    /// The revision in the store that `known` has been compared with.
    revision: u64,
    /// When the map was to be read last, whatever its revision, and whether it is still to be.
    checked: (Instant, bool),
    /// Present in a set.
    lease: Option<(Lease, LeaseGuard)>,
    /// When the lease was renewed last.
    renewed: Instant,
    /// From then on the blocks of instances that are gone are divided: each that lives has renewed its lease until then. `None`: the store
    /// does not answer.
    divides_from: Option<Instant>,
    /// Instances that have blocks, and of which the store knows nothing: since when.
    unknown: BTreeMap<InstanceId, Instant>,
    /// The store has failed, and has not answered since for long enough: leases may have ended of instances that live.
    is_uncertain: bool,
    /// The set as the shards know it.
    instances: Arc<SetInstances>,
    /// Changes of this process that the store does not have yet.
    unwritten: Vec<BlockMove>,
    /// The first block of each shard at the start, which stays.
    kept: Vec<BlockId>,
    /// Since when each instance lives, by its process.
    since: BTreeMap<InstanceId, (u64, Instant)>,
    /// Blocks that shards are about to release.
    releasing: BTreeSet<u16>,
    /// Before that time no further block is released: the last one was in use.
    rests_until: Instant,
    serves: bool,
    /// Instances that have blocks, in the map of that version.
    present: (u64, BTreeSet<InstanceId>),
    /// With the map of that version and these instances this one has no blocks for others.
    balanced: (u64, BTreeMap<InstanceId, u8>),
}

impl SetMember {
    /// A member with that map, which the store has as `revision`.
    pub fn new(
        now: Instant,
        (instance, shards): (InstanceId, u16),
        root: Arc<ApiRoot>,
        (known, revision): (SetMap, u64),
        lease: Option<(Lease, LeaseGuard)>,
    ) -> Self {
        let first = |shard| known.owners.blocks_of(BlockOwner { instance, shard: ShardId(shard) }).next();
        let kept = (0..ShardId::LIMIT as u8).filter_map(first).collect();
        let divides_from = lease.as_ref().map(|(lease, _)| now + lease.lasts);
        Self {
            instance,
            shards,
            root,
            known,
            revision,
            checked: (now, false),
            lease,
            renewed: now,
            divides_from,
            unknown: BTreeMap::new(),
            is_uncertain: false,
            instances: Arc::default(),
            unwritten: Vec::new(),
            kept,
            since: BTreeMap::new(),
            releasing: BTreeSet::new(),
            rests_until: now,
            serves: false,
            present: (0, BTreeSet::new()),
            balanced: (0, BTreeMap::new()),
        }
    }

    /// Before the shards start: contexts that they resume name other instances.
    pub fn introduce(&mut self, poll: &Poll, host: &mut dyn SetHost) {
        self.tell_instances(poll, host);
    }

    /// The process serves: blocks may pass to it.
    pub const fn serve(&mut self) {
        self.serves = true;
    }

    /// A block has passed to another shard of the process, or was released to another instance.
    pub fn moved(&mut self, change: BlockMove) {
        self.unwritten.push(change);
    }

    /// The release of a block has ended.
    pub fn move_ended(&mut self, now: Instant, change: BlockMove, is_released: bool) {
        self.releasing.remove(&change.block.number());
        if !is_released {
            self.rests_until = now + RETRY;
        }
    }

    /// The owner map as this process has it.
    pub const fn known(&self) -> &SetMap {
        &self.known
    }

    /// The lease, in a set.
    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref().map(|(lease, _)| lease)
    }

    /// Time until the next turn; `None`: until the next change.
    pub fn pause(&self) -> Option<Duration> {
        match &self.lease {
            Some((lease, _)) => Some((lease.lasts / POLLS).min(LONGEST_PAUSE)),
            None => (!self.unwritten.is_empty()).then_some(RETRY),
        }
    }

    /// Renews the lease, reads and writes changes of the map. Returns what the store said of the set. While the store fails, the process
    /// goes on: without the store no other instance can take its blocks.
    pub fn turn(
        &mut self,
        now: Instant,
        store: &mut dyn OwnerStore,
        host: &mut dyn SetHost,
    ) -> Result<Option<Poll>, SetError> {
        let Some((lease, guard)) = self.lease.clone() else {
            self.write_changes(store)?;
            return Ok(None);
        };
        let had_ended = guard.has_ended();
        let result = self.attend_set(now, (&lease, &guard), store, host);
        match &result {
            Ok(_) => {
                if self.divides_from.is_none() {
                    self.divides_from = Some(now + lease.lasts + LONGEST_ATTEMPT);
                }
            }
            // A UPF has shown that another one has them.
            Err(SetError::Store(_)) if guard.is_fenced() => {
                return Err(SetError::Lost(
                    "another instance has taken over the UEs of this one, which does not reach the store",
                ));
            }
            Err(SetError::Store(_)) => {
                self.divides_from = None;
                self.is_uncertain = true;
                let instances = SetInstances { is_uncertain: true, ..(*self.instances).clone() };
                self.change_instances(instances, host);
                guard.go_on(lease.lasts + OUTAGE);
            }
            Err(SetError::Lost(_)) => return result.map(Some),
        }
        if had_ended {
            // Shards hold their effects while the lease has ended.
            self.to_all(host, || ShardInput::Written);
        }
        result.map(Some)
    }

    fn attend_set(
        &mut self,
        now: Instant,
        (lease, guard): (&Lease, &LeaseGuard),
        store: &mut dyn OwnerStore,
        host: &mut dyn SetHost,
    ) -> Result<Poll, SetError> {
        if guard.has_ended() || guard.is_fenced() || now.since(self.renewed) >= lease.lasts {
            // Others may have the blocks meanwhile: an instance without them must not seem to live.
            let revision = store.poll(None, false)?.revision;
            self.read_changes(revision, store, host)?;
            if guard.is_fenced() {
                return Err(SetError::Lost("another process has claimed the contexts of this one"));
            }
        }
        let asked = guard.now();
        let poll = store.poll(Some(lease), false)?;
        if poll.instances.get(&self.instance).is_none_or(|live| live.incarnation != lease.incarnation) {
            return Err(SetError::Lost("another process has the number of this one ('set.instance')"));
        }
        if now.since(self.checked.0) >= CHECK {
            self.checked = (now, true);
        }
        if self.serves {
            self.write_changes(store)?;
            self.read_changes(poll.revision, store, host)?;
        }
        // Not before: the blocks may have been another one's when the lease was renewed.
        guard.renew(asked, lease.lasts);
        self.renewed = now;
        self.is_uncertain &= self.divides_from.is_none_or(|from| now < from);
        if self.serves {
            self.tell_instances(&poll, host);
            self.divide_orphans(now, (lease, &poll), store, host)?;
            self.give_surplus(now, &poll, host);
        }
        Ok(poll)
    }

    /// Releases blocks to instances that have less than their part: first those whose home is the receiver, then the last ones of the
    /// shards that have most.
    fn give_surplus(&mut self, now: Instant, poll: &Poll, host: &mut dyn SetHost) {
        for (instance, live) in &poll.instances {
            let known = self.since.get(instance).map(|(incarnation, _)| *incarnation);
            if known != Some(live.incarnation) {
                self.since.insert(*instance, (live.incarnation, now));
            }
        }
        if !self.releasing.is_empty() || now < self.rests_until || poll.instances.len() < 2 {
            return;
        }
        let living = poll.living();
        let version = self.known.owners.version();
        if (self.balanced.0, &self.balanced.1) == (version, &living) {
            return;
        }
        let surplus = self.known.owners.surplus(&living);
        if !surplus.iter().any(|(giver, ..)| *giver == self.instance) {
            self.balanced = (version, living);
            return;
        }
        for (giver, receiver, number) in surplus {
            if giver != self.instance {
                continue;
            }
            let shards = living.get(&receiver).copied().unwrap_or(1).max(1);
            let has = self.known.owners.blocks_of_instances().get(&receiver).copied().unwrap_or(0);
            let is_settled =
                self.since.get(&receiver).is_some_and(|(_, since)| now.since(*since) >= SETTLING);
            // It needs one for each shard to start.
            let most = if is_settled { RELEASED_AT_ONCE } else { usize::from(shards).saturating_sub(has) };
            let blocks = self.blocks_for(receiver, number.min(most));
            if blocks.is_empty() {
                continue;
            }
            for (at, block) in blocks.into_iter().enumerate() {
                let to = BlockOwner { instance: receiver, shard: ShardId((at % usize::from(shards)) as u8) };
                let change = BlockMove { block, to, version: host.next_version() };
                let shard = self.known.owners.owner(block).shard;
                if u16::from(shard.0) < self.shards {
                    self.releasing.insert(block.number());
                    host.to_shard(shard.0.into(), ShardInput::Move(change));
                }
            }
            // One receiver at a time.
            return;
        }
    }

    /// Blocks of this instance for another one.
    fn blocks_for(&self, receiver: InstanceId, number: usize) -> Vec<BlockId> {
        let home = |block: &BlockId| self.known.home(*block) == receiver;
        let is_own = |block: &BlockId| {
            self.known.owners.owner(*block).instance == self.instance
                && (home(block) || !self.kept.contains(block))
        };
        let (mut chosen, others): (Vec<_>, Vec<_>) = BlockId::all().filter(is_own).partition(home);
        let mut of_shards: BTreeMap<ShardId, Vec<BlockId>> = BTreeMap::new();
        for block in others {
            of_shards.entry(self.known.owners.owner(block).shard).or_default().push(block);
        }
        while chosen.len() < number
            && let Some(largest) = of_shards.values_mut().max_by_key(|blocks| blocks.len())
            && let Some(block) = largest.pop()
        {
            chosen.push(block);
        }
        chosen.truncate(number);
        chosen
    }

    /// Shards route requests to the instances that live.
    fn tell_instances(&mut self, poll: &Poll, host: &mut dyn SetHost) {
        let live = poll.instances.iter().map(|(instance, live)| (instance, &live.description));
        let roots = poll.gone.iter().chain(live).filter_map(|(instance, description)| {
            let root = Uri::resolve(&self.root, &description.root).ok()?.root;
            Some((*instance, root))
        });
        let instances = SetInstances {
            roots: roots.collect(),
            living: poll.instances.keys().copied().collect(),
            is_uncertain: self.is_uncertain,
            homes: Arc::clone(&self.known.homes),
        };
        self.change_instances(instances, host);
    }

    fn change_instances(&mut self, instances: SetInstances, host: &mut dyn SetHost) {
        if *self.instances != instances {
            self.instances = Arc::new(instances);
            self.to_all(host, || ShardInput::Instances(Arc::clone(&self.instances)));
        }
    }

    /// Writes the changes of this process.
    fn write_changes(&mut self, store: &mut dyn OwnerStore) -> Result<(), EngineError> {
        for _ in 0..ATTEMPTS {
            if self.unwritten.is_empty() {
                return Ok(());
            }
            let stored = match store.read() {
                // `read_changes` writes the map again.
                Err(EngineError::OwnerMap) => return Ok(()),
                stored => stored?,
            };
            let revision = stored.as_ref().map_or(0, |stored| stored.revision);
            let mut map = stored.map_or_else(|| self.known.clone(), |stored| stored.map);
            let mut has_changes = revision == 0;
            for change in &self.unwritten {
                if let Some(changed) = map.moved(*change) {
                    (map, has_changes) = (changed, true);
                }
            }
            if !has_changes || store.replace(revision, &map)? {
                for change in self.unwritten.drain(..) {
                    self.known = self.known.moved(change).unwrap_or_else(|| self.known.clone());
                }
            }
        }
        Ok(())
    }

    /// Applies what other instances have changed.
    fn read_changes(
        &mut self,
        revision: u64,
        store: &mut dyn OwnerStore,
        host: &mut dyn SetHost,
    ) -> Result<(), SetError> {
        if revision == self.revision && !self.checked.1 {
            return Ok(());
        }
        self.checked.1 = false;
        let (stored, replaced) = match store.read() {
            Ok(stored) => (stored, 0),
            Err(EngineError::OwnerMap) => (None, revision),
            Err(error) => return Err(error.into()),
        };
        let Some(stored) = stored else {
            // What the living know counts, with the versions that documents have: a new map would fence nothing.
            if store.replace(replaced, &self.known)? {
                tracing::error!("the store has no owner map of the set any longer: it is written again");
                self.revision = replaced + 1;
            }
            return Ok(());
        };
        let Some(stored) = self.without_other_shards(stored, store)? else { return Ok(()) };
        let lost = self.known.owners.changes_since(&stored.map.owners);
        if !lost.is_empty() {
            // The store was put back to an earlier state. With that map a former owner would claim the blocks again.
            let with = |owners: OwnerMap, change: &BlockMove| owners.moved(*change).unwrap_or(owners);
            let owners = lost.iter().fold(stored.map.owners, with);
            let map = SetMap { owners, homes: Arc::clone(&self.known.homes) };
            if store.replace(stored.revision, &map)? {
                tracing::error!(
                    "the store has lost the owners of {} blocks of ids: they are written again",
                    lost.len()
                );
            }
            return Ok(());
        }
        let changes = stored.map.owners.changes_since(&self.known.owners);
        host.note_version(stored.map.owners.version());
        let mut adopted: Vec<Vec<BlockMove>> = vec![Vec::new(); usize::from(self.shards)];
        for change in changes {
            let was_own = self.known.owners.owner(change.block).instance == self.instance;
            match (was_own, change.to.instance == self.instance) {
                (false, true) => {
                    if let Some(of_shard) = adopted.get_mut(usize::from(change.to.shard.0)) {
                        of_shard.push(change);
                    }
                }
                // Released, and not written by this thread itself.
                (true, false) if self.unwritten.contains(&change) => {}
                (true, false) => {
                    return Err(SetError::Lost(
                        "another instance has taken over the UEs of this one, which did not answer in time",
                    ));
                }
                (false, false) => {
                    host.note(change);
                    self.to_all(host, || ShardInput::OwnersChanged(change));
                }
                // A move between shards, which this process has written.
                (true, true) => {}
            }
        }
        for (shard, changes) in (0..).zip(&adopted) {
            for part in changes.chunks(ADOPTED_AT_ONCE) {
                host.to_shard(shard, ShardInput::Adopt(part.to_vec()));
            }
        }
        let number: usize = adopted.iter().map(Vec::len).sum();
        if number > 0 {
            tracing::info!("takes over {number} blocks of ids");
        }
        (self.known, self.revision) = (stored.map, stored.revision);
        Ok(())
    }

    /// The map, in which this instance has no blocks of shards that it does not have. `None`: another instance has changed it.
    fn without_other_shards(
        &self,
        stored: StoredOwners,
        store: &mut dyn OwnerStore,
    ) -> Result<Option<StoredOwners>, EngineError> {
        let is_other = |(owner, _): (BlockOwner, u64)| {
            owner.instance == self.instance && u16::from(owner.shard.0) >= self.shards
        };
        let shards = self.shards as u8;
        let owners = &stored.map.owners;
        let Some(owners) =
            owners.owners().any(is_other).then(|| owners.for_shards(self.instance, shards)).flatten()
        else {
            return Ok(Some(stored));
        };
        let map = SetMap { owners, homes: Arc::clone(&stored.map.homes) };
        let is_first = store.replace(stored.revision, &map)?;
        Ok(is_first.then_some(StoredOwners { revision: stored.revision + 1, map }))
    }

    fn to_all(&self, host: &mut dyn SetHost, input: impl Fn() -> ShardInput) {
        (0..self.shards).for_each(|shard| host.to_shard(shard, input()));
    }

    /// The blocks of instances whose lease has ended are divided among those that live.
    fn divide_orphans(
        &mut self,
        now: Instant,
        (lease, poll): (&Lease, &Poll),
        store: &mut dyn OwnerStore,
        host: &mut dyn SetHost,
    ) -> Result<(), SetError> {
        let owners = &self.known.owners;
        if self.present.0 != owners.version() {
            self.present = (owners.version(), owners.blocks_of_instances().into_keys().collect());
        }
        let present = self.present.1.iter().copied();
        let gone: BTreeSet<InstanceId> =
            present.filter(|instance| !poll.instances.contains_key(instance)).collect();
        self.unknown.retain(|instance, _| gone.contains(instance));
        // The end of a lease is known by the clock of the store. If the store has lost the leases, an instance that lives renews its own in time.
        let is_over = |instance: &InstanceId| {
            let since = *self.unknown.entry(*instance).or_insert(now);
            poll.gone.contains_key(instance) || now.since(since) >= lease.lasts
        };
        // Each is noted, also after one that is not over.
        let are_over = !gone.iter().map(is_over).collect::<Vec<_>>().contains(&false);
        if gone.is_empty() || !are_over || self.divides_from.is_none_or(|from| now < from) {
            return Ok(());
        }
        let Some(divided) = self.known.taken_over_by(&poll.living()) else { return Ok(()) };
        // If another instance was first, its map counts.
        if store.replace(self.revision, &divided)? {
            let numbers: Vec<u8> = gone.iter().map(|instance| instance.0).collect();
            tracing::warn!("instances {numbers:?} of the set do not answer: others serve their UEs");
        }
        let revision = store.poll(None, false)?.revision;
        self.read_changes(revision, store, host)
    }
}

#[cfg(test)]
mod tests;
