//! The owner map in the store, and the set of instances that share it ([ADR 0024](../../../../docs/adr/0024-instances-of-a-set.md)).
//!
//! ```text
//!  shards ── a block has moved ──> thread 'owners' ── replace ──> store
//!                                       │  ^
//!                                       │  └── poll, some times a lease: renews it; who lives, revision of the map
//!         <── Adopt, OwnersChanged ─────┘      an instance is gone: its blocks are divided among those that live
//! ```
//!
//! The thread alone waits for the store. While the store does not answer, this process goes on with its blocks: no other instance can take
//! them without the store. A process that finds its blocks at another instance, after a pause that was longer than its lease, ends at once.

use super::StartError;
use super::moves::Moves;
use super::residency::Contexts;
use crate::api::{InstanceStatus, SetStatus};
use crate::clock::Clock;
use crate::config::Config;
use crate::lease::LeaseGuard;
use crate::residency::{Description, EngineError, Lease, OwnerStore, Poll, SetMap};
use crate::shard::ShardQueue;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use pith_nf::fabric::ShardInput;
use pith_nf::kit::SetInstances;
use pith_sbi::{ApiRoot, Uri};
use pith_types::{BlockId, BlockMove, BlockOwner, InstanceId, OwnerMap, ShardId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Polls in the time of a lease.
const POLLS: u32 = 8;
/// Longest time between two polls.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// Time until another attempt to write a map to a file.
const RETRY: Duration = Duration::from_secs(1);
/// While the store does not answer: how long an instance goes on beyond its lease until the next attempt. An attempt takes at most
/// four seconds.
const OUTAGE: Duration = Duration::from_secs(10);
/// Blocks that a shard adopts with one input: other UEs are served in between.
const ADOPTED_AT_ONCE: usize = 32;
/// How long an instance has lived before it gets more than one block for each shard: gNBs connect to its AMF again meanwhile, and then
/// send it the UEs that have its AMF Pointer.
const SETTLING: Duration = Duration::from_secs(2);
/// Blocks that an instance releases at once.
const RELEASED_AT_ONCE: usize = 64;
/// How long a start waits for its part of the blocks.
const JOIN_TIME: Duration = Duration::from_secs(20);
/// Time between two questions at the start.
const JOIN_PAUSE: Duration = Duration::from_millis(50);
/// Attempts to change a map that others change at the same time.
const ATTEMPTS: usize = 8;
/// The status with which a process ends whose blocks are at another instance. It may be started again.
const EXIT_LOST: i32 = 75;

/// The owner map of this process at its start, and where it is stored.
pub(super) struct Membership {
    pub(super) owners: Arc<OwnerMap>,
    /// The home of each block.
    homes: Arc<[InstanceId]>,
    instance: InstanceId,
    revision: u64,
    store: Option<Box<dyn OwnerStore>>,
    lease: Option<Lease>,
    guard: Option<LeaseGuard>,
    root: Arc<ApiRoot>,
}

/// Reads the owner map, or makes it, and enters the set. In a set this waits until each shard has a block; others follow while the
/// instance serves.
pub(super) fn join(
    config: &Config,
    contexts: Option<&Contexts>,
    clock: Clock,
    root: &Arc<ApiRoot>,
) -> Result<Membership, StartError> {
    let (instance, shards) = (InstanceId(config.set.instance), config.shards() as u8);
    let Some(contexts) = contexts else {
        let owners = Arc::new(OwnerMap::of_instance(instance, shards));
        return Ok(Membership {
            owners,
            homes: Arc::default(),
            instance,
            revision: 0,
            store: None,
            lease: None,
            guard: None,
            root: Arc::clone(root),
        });
    };
    let mut store = contexts.owners();
    if !config.set.is_used() {
        return Ok(without_set(store, shards, root));
    }
    let description = Description { root: root.to_string(), shards };
    let lease = Lease { instance, incarnation: incarnation()?, lasts: config.set.lease.0, description };
    let guard = LeaseGuard::new(clock, lease.lasts);
    let began = Instant::now();
    let mut is_first = true;
    loop {
        let asked = guard.now();
        let poll = store.poll(Some(&lease), std::mem::take(&mut is_first))?;
        guard.extend(asked, lease.lasts);
        let Some(stored) = store.read()? else {
            store.replace(0, &SetMap::at_home(OwnerMap::of_instance(instance, shards)))?;
            continue;
        };
        let living = poll.living();
        let map = stored.map;
        let divided = map.taken_over_by(&living).or_else(|| {
            let owners = map.owners.for_shards(instance, shards)?;
            Some(SetMap { owners, homes: Arc::clone(&map.homes) })
        });
        if let Some(divided) = divided {
            store.replace(stored.revision, &divided)?;
            continue;
        }
        let has_any = (0..shards).all(|shard| {
            map.owners.blocks_of(BlockOwner { instance, shard: ShardId(shard) }).next().is_some()
        });
        let is_late = began.elapsed() > JOIN_TIME;
        if has_any {
            let others = living.len().saturating_sub(1);
            tracing::info!("instance {} of a set, with {others} others", instance.0);
            let owners = Arc::new(map.owners);
            let (revision, store, lease, guard) = (stored.revision, Some(store), Some(lease), Some(guard));
            let root = Arc::clone(root);
            return Ok(Membership {
                owners,
                homes: map.homes,
                instance,
                revision,
                store,
                lease,
                guard,
                root,
            });
        }
        if is_late {
            let _ = store.leave(&lease);
            let seconds = JOIN_TIME.as_secs();
            return Err(format!("the other instances of the set have not given this one any blocks within {seconds} s: see their logs").into());
        }
        std::thread::sleep(JOIN_PAUSE);
    }
}

/// The map of the only process that has the store. A map that cannot be read, or written, is not necessary: blocks are then as at the
/// first start, and each shard finds its documents.
fn without_set(mut store: Box<dyn OwnerStore>, shards: u8, root: &Arc<ApiRoot>) -> Membership {
    let instance = InstanceId(0);
    let first = OwnerMap::of_instance(instance, shards);
    let stored = store.read().unwrap_or_else(|error| {
        tracing::warn!("blocks of ids are divided anew: {error}");
        None
    });
    let (revision, owners) = match stored {
        // Instances of a former set have none of them any longer.
        Some(stored) => {
            let living = BTreeMap::from([(instance, shards)]);
            let owners = stored.map.owners;
            let owners = owners.taken_over_by(&living).unwrap_or(owners);
            (stored.revision, owners.for_shards(instance, shards).unwrap_or(owners))
        }
        None => (0, first),
    };
    let SetMap { owners, homes } = SetMap::at_home(owners);
    let (owners, root, store) = (Arc::new(owners), Arc::clone(root), Some(store));
    Membership { owners, homes, instance, revision, store, lease: None, guard: None, root }
}

fn incarnation() -> Result<u64, StartError> {
    let mut octets = [0; 8];
    getrandom::fill(&mut octets)
        .map_err(|error| format!("the operating system's random source failed: {error}"))?;
    Ok(u64::from_le_bytes(octets) >> 1)
}

/// What the thread is to do.
enum Command {
    /// The process serves: blocks may pass to it.
    Serve,
    /// A block has passed to another shard of the process, or was released to another instance.
    Moved(BlockMove),
    /// A release of a block has ended, and whether the block was released.
    MoveEnded(BlockMove, bool),
    /// The process ends.
    Stop,
}

/// The handle of the thread.
#[derive(Clone)]
pub(super) struct SetHandle(Sender<Command>);

impl SetHandle {
    /// The process serves.
    pub(super) fn serve(&self) {
        let _ = self.0.send(Command::Serve);
    }

    /// A block has another owner in this process.
    pub(super) fn moved(&self, change: BlockMove) {
        let _ = self.0.send(Command::Moved(change));
    }

    /// The release of a block to another instance has ended.
    pub(super) fn move_ended(&self, change: BlockMove, is_released: bool) {
        let _ = self.0.send(Command::MoveEnded(change, is_released));
    }
}

/// The set as operators see it.
#[derive(Clone, Default)]
pub(super) struct SetView(Arc<Mutex<Option<SetStatus>>>);

impl SetView {
    pub(super) fn status(&self) -> Option<SetStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Option<SetStatus>)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The running thread.
pub(super) struct SetThread {
    handle: SetHandle,
    view: SetView,
    thread: JoinHandle<()>,
}

impl SetThread {
    /// Ends the thread, and the lease: other instances serve the UEs at once.
    pub(super) fn close(self) {
        let _ = self.handle.0.send(Command::Stop);
        let _ = self.thread.join();
    }

    /// The set as operators see it.
    pub(super) fn view(&self) -> SetView {
        self.view.clone()
    }

    /// The handle.
    pub(super) fn handle(&self) -> SetHandle {
        self.handle.clone()
    }
}

impl Membership {
    /// The end of the lease, for the shards.
    pub(super) fn guard(&self) -> Option<LeaseGuard> {
        self.guard.clone()
    }

    /// Starts the thread; `None` if nothing is stored.
    pub(super) fn start(
        self,
        shards: &[ShardQueue],
        moves: &Arc<Moves>,
    ) -> std::io::Result<Option<SetThread>> {
        let Self { owners, homes, instance, revision, store, lease, guard, root } = self;
        let Some(store) = store else { return Ok(None) };
        let (commands, queue) = unbounded();
        let first = |shard| owners.blocks_of(BlockOwner { instance, shard: ShardId(shard) }).next();
        let kept = (0..ShardId::LIMIT as u8).filter_map(first).collect();
        let view = SetView::default();
        let member = Member {
            view: view.clone(),
            known: SetMap { owners: (*owners).clone(), homes },
            instance,
            revision,
            store,
            lease,
            guard,
            shards: shards.to_vec(),
            moves: Arc::clone(moves),
            root,
            instances: Arc::default(),
            unwritten: Vec::new(),
            kept,
            since: BTreeMap::new(),
            releasing: BTreeSet::new(),
            rests_until: Instant::now(),
            serves: false,
            is_failing: false,
        };
        let thread = std::thread::Builder::new().name("owners".into()).spawn(move || member.run(&queue))?;
        Ok(Some(SetThread { handle: SetHandle(commands), view, thread }))
    }
}

struct Member {
    view: SetView,
    /// The owner map as this process has it.
    known: SetMap,
    instance: InstanceId,
    /// The revision in the store that `known` has been compared with.
    revision: u64,
    store: Box<dyn OwnerStore>,
    /// Present in a set.
    lease: Option<Lease>,
    guard: Option<LeaseGuard>,
    shards: Vec<ShardQueue>,
    moves: Arc<Moves>,
    /// The apiRoot of this process.
    root: Arc<ApiRoot>,
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
    is_failing: bool,
}

impl Member {
    fn run(mut self, commands: &Receiver<Command>) {
        let mut due = Instant::now();
        loop {
            let command = match self.pause() {
                Some(pause) => {
                    due = due.min(Instant::now() + pause);
                    commands.recv_deadline(due)
                }
                None => commands.recv().map_err(RecvTimeoutError::from),
            };
            match command {
                Ok(Command::Serve) => self.serves = true,
                Ok(Command::Moved(change)) => self.unwritten.push(change),
                Ok(Command::MoveEnded(change, is_released)) => self.move_ended(change, is_released),
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => due = Instant::now() + self.pause().unwrap_or(RETRY),
            }
            // Several changes are written at once.
            if commands.is_empty() {
                self.turn();
            }
        }
        if let Some(lease) = &self.lease {
            let _ = self.store.leave(lease);
        }
    }

    /// Time until the next turn; `None`: until the next command.
    fn pause(&self) -> Option<Duration> {
        match &self.lease {
            Some(lease) => Some((lease.lasts / POLLS).min(LONGEST_PAUSE)),
            None => (!self.unwritten.is_empty()).then_some(RETRY),
        }
    }

    fn turn(&mut self) {
        let result = match self.lease.clone() {
            Some(lease) => self.attend_set(&lease),
            None => self.write_changes(),
        };
        match result {
            Ok(()) => {
                self.view.change(|status| {
                    if let Some(status) = status {
                        status.error = None;
                    }
                });
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!("the store of the owner map answers again");
                }
            }
            Err(error) => {
                if let (Some(guard), Some(lease)) = (&self.guard, &self.lease) {
                    // Without the store no other instance can take the blocks.
                    let had_ended = guard.has_ended();
                    guard.extend(guard.now(), lease.lasts + OUTAGE);
                    self.wake_if(had_ended);
                }
                let text = error.to_string();
                self.view.change(|status| {
                    if let Some(status) = status {
                        status.error = Some(text);
                    }
                });
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::error!("the owner map cannot be read or changed: {error}");
                }
            }
        }
    }

    fn attend_set(&mut self, lease: &Lease) -> Result<(), EngineError> {
        let Some(guard) = self.guard.clone() else { return Ok(()) };
        let had_ended = guard.has_ended();
        if had_ended {
            // Others may have the blocks meanwhile: an instance without them must not seem to live.
            let revision = self.store.poll(None, false)?.revision;
            self.read_changes(revision)?;
        }
        let asked = guard.now();
        let poll = self.store.poll(Some(lease), false)?;
        if poll.instances.get(&self.instance).is_none_or(|live| live.incarnation != lease.incarnation) {
            self.end_process("another process has the number of this one ('set.instance')");
        }
        guard.extend(asked, lease.lasts);
        self.wake_if(had_ended);
        if !self.serves {
            return Ok(());
        }
        self.write_changes()?;
        self.read_changes(poll.revision)?;
        self.tell_instances(&poll);
        self.show(lease, &poll);
        self.divide_orphans(&poll)?;
        self.give_surplus(&poll);
        Ok(())
    }

    /// Releases blocks to instances that have less than their part: first those whose home is the receiver, then the last ones of the
    /// shards that have most.
    fn give_surplus(&mut self, poll: &Poll) {
        for (instance, live) in &poll.instances {
            let known = self.since.get(instance).map(|(incarnation, _)| *incarnation);
            if known != Some(live.incarnation) {
                self.since.insert(*instance, (live.incarnation, Instant::now()));
            }
        }
        if !self.releasing.is_empty() || Instant::now() < self.rests_until {
            return;
        }
        let living = poll.living();
        for (giver, receiver, number) in self.known.owners.surplus(&living) {
            if giver != self.instance {
                continue;
            }
            let shards = living.get(&receiver).copied().unwrap_or(1).max(1);
            let has = self.known.owners.blocks_of_instances().get(&receiver).copied().unwrap_or(0);
            let is_settled = self.since.get(&receiver).is_some_and(|(_, since)| since.elapsed() >= SETTLING);
            // It needs one for each shard to start.
            let most = if is_settled { RELEASED_AT_ONCE } else { usize::from(shards).saturating_sub(has) };
            let blocks = self.blocks_for(receiver, number.min(most));
            if blocks.is_empty() {
                continue;
            }
            for (at, block) in blocks.into_iter().enumerate() {
                let to = BlockOwner { instance: receiver, shard: ShardId((at % usize::from(shards)) as u8) };
                let change = BlockMove { block, to, version: self.moves.next_version() };
                let shard = self.known.owners.owner(block).shard;
                if let Some(queue) = self.shards.get(usize::from(shard.0)) {
                    self.releasing.insert(block.number());
                    queue.send(ShardInput::Move(change));
                    queue.wake();
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

    /// A shard has released a block, or could not.
    fn move_ended(&mut self, change: BlockMove, is_released: bool) {
        self.releasing.remove(&change.block.number());
        if !is_released {
            self.rests_until = Instant::now() + RETRY;
        }
    }

    /// For 'pith status'.
    fn show(&self, lease: &Lease, poll: &Poll) {
        let blocks = self.known.owners.blocks_of_instances();
        let live = poll.instances.iter().map(|(instance, live)| (*instance, (&live.description, true)));
        let gone = poll.gone.iter().map(|(instance, description)| (*instance, (description, false)));
        let instances: BTreeMap<_, _> = live.chain(gone).collect();
        let status = |(instance, (description, lives)): (InstanceId, (&Description, bool))| InstanceStatus {
            instance: instance.0,
            root: description.root.clone(),
            lives,
            blocks: blocks.get(&instance).copied().unwrap_or(0),
            homes: self.known.homes.iter().filter(|home| **home == instance).count(),
        };
        let status = SetStatus {
            instance: self.instance.0,
            lease_ms: u64::try_from(lease.lasts.as_millis()).unwrap_or(u64::MAX),
            error: None,
            instances: instances.into_iter().map(status).collect(),
        };
        self.view.change(|view| *view = Some(status));
    }

    /// Shards route requests to the instances that live.
    fn tell_instances(&mut self, poll: &Poll) {
        let live = poll.instances.iter().map(|(instance, live)| (instance, &live.description));
        let roots = poll.gone.iter().chain(live).filter_map(|(instance, description)| {
            let root = Uri::resolve(&self.root, &description.root).ok()?.root;
            Some((*instance, root))
        });
        let instances = SetInstances {
            roots: roots.collect(),
            living: poll.instances.keys().copied().collect(),
            homes: Arc::clone(&self.known.homes),
        };
        if *self.instances != instances {
            self.instances = Arc::new(instances);
            self.send_all(|| ShardInput::Instances(Arc::clone(&self.instances)));
        }
    }

    /// Shards hold their effects while the lease has ended.
    fn wake_if(&self, had_ended: bool) {
        for shard in self.shards.iter().filter(|_| had_ended) {
            shard.send(ShardInput::Written);
            shard.wake();
        }
    }

    /// Writes the changes of this process.
    fn write_changes(&mut self) -> Result<(), EngineError> {
        for _ in 0..ATTEMPTS {
            if self.unwritten.is_empty() {
                return Ok(());
            }
            let stored = self.store.read()?;
            let revision = stored.as_ref().map_or(0, |stored| stored.revision);
            let mut map = stored.map_or_else(|| self.known.clone(), |stored| stored.map);
            let mut has_changes = revision == 0;
            for change in &self.unwritten {
                if let Some(changed) = map.moved(*change) {
                    (map, has_changes) = (changed, true);
                }
            }
            if !has_changes || self.store.replace(revision, &map)? {
                for change in self.unwritten.drain(..) {
                    self.known = self.known.moved(change).unwrap_or_else(|| self.known.clone());
                }
            }
        }
        Ok(())
    }

    /// Applies what other instances have changed.
    fn read_changes(&mut self, revision: u64) -> Result<(), EngineError> {
        if revision == self.revision {
            return Ok(());
        }
        let Some(stored) = self.store.read()? else {
            // What the living know counts, with the versions that documents have: a new map would fence nothing.
            if self.store.replace(0, &self.known)? {
                tracing::error!("the store has no owner map of the set any longer: it is written again");
                self.revision = 1;
            }
            return Ok(());
        };
        let changes = stored.map.owners.changes_since(&self.known.owners);
        self.moves.note_version(stored.map.owners.version());
        let mut adopted: Vec<Vec<BlockMove>> = vec![Vec::new(); self.shards.len()];
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
                    self.end_process(
                        "another instance has taken over the UEs of this one, which did not answer in time",
                    );
                }
                (false, false) => {
                    self.moves.note(change);
                    self.send_all(|| ShardInput::OwnersChanged(change));
                }
                // A move between shards, which this process has written.
                (true, true) => {}
            }
        }
        for (shard, changes) in self.shards.iter().zip(&adopted) {
            for part in changes.chunks(ADOPTED_AT_ONCE) {
                shard.send(ShardInput::Adopt(part.to_vec()));
            }
            shard.process_or_wake();
        }
        let number: usize = adopted.iter().map(Vec::len).sum();
        if number > 0 {
            tracing::info!("takes over {number} blocks of ids");
        }
        (self.known, self.revision) = (stored.map, stored.revision);
        Ok(())
    }

    fn send_all(&self, input: impl Fn() -> ShardInput) {
        for shard in &self.shards {
            shard.send(input());
            shard.wake();
        }
    }

    /// The blocks of instances whose lease has ended are divided among those that live.
    fn divide_orphans(&mut self, poll: &Poll) -> Result<(), EngineError> {
        let living = poll.living();
        let Some(divided) = self.known.taken_over_by(&living) else { return Ok(()) };
        let gone: BTreeSet<u8> = BlockId::all()
            .map(|block| self.known.owners.owner(block).instance)
            .filter(|instance| !living.contains_key(instance))
            .map(|instance| instance.0)
            .collect();
        // If another instance was first, its map counts.
        if self.store.replace(self.revision, &divided)? {
            tracing::warn!("instances {gone:?} of the set do not answer: others serve their UEs");
        }
        let revision = self.store.poll(None, false)?.revision;
        self.read_changes(revision)
    }

    /// Ends the process at once, without a message to anyone: its UEs are another one's.
    fn end_process(&self, why: &str) -> ! {
        tracing::error!("{why}: the process ends, and may be started again");
        std::process::exit(EXIT_LOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::residency::OwnerMemory;
    use crate::shard::shard_queue;
    use crate::work_queue::UnstartedQueue;

    const LEASE: Duration = Duration::from_secs(60);

    fn lease(instance: u8) -> Lease {
        let description = Description { root: format!("http://10.0.0.{instance}:80"), shards: 1 };
        Lease { instance: InstanceId(instance), incarnation: u64::from(instance), lasts: LEASE, description }
    }

    /// The thread's state of instance 1, which has one shard; its queue gets inputs and handles none.
    fn member(store: &OwnerMemory, map: SetMap) -> (Member, UnstartedQueue<ShardInput>) {
        let (queue, unstarted) = shard_queue(0, 4096);
        let instance = InstanceId(1);
        let moves = Moves::new((Arc::new(map.owners.clone()), instance));
        let member = Member {
            view: SetView::default(),
            known: map,
            instance,
            revision: 1,
            store: Box::new(store.clone()),
            lease: Some(lease(1)),
            guard: Some(LeaseGuard::new(Clock::start(), LEASE)),
            shards: vec![queue],
            moves,
            root: Arc::new("http://10.0.0.1:80".parse().unwrap()),
            instances: Arc::default(),
            unwritten: Vec::new(),
            kept: vec![BlockId::new(0).unwrap()],
            since: BTreeMap::new(),
            releasing: BTreeSet::new(),
            rests_until: Instant::now(),
            serves: true,
            is_failing: false,
        };
        (member, unstarted)
    }

    /// Instances 1 and 2 have half of the blocks each.
    fn halves() -> SetMap {
        let owner = |block: BlockId| BlockOwner {
            instance: InstanceId(if block.number() < BlockId::COUNT / 2 { 1 } else { 2 }),
            shard: ShardId(0),
        };
        SetMap::at_home(OwnerMap::new(1, owner))
    }

    fn blocks(store: &mut OwnerMemory) -> BTreeMap<InstanceId, usize> {
        store.read().unwrap().unwrap().map.owners.blocks_of_instances()
    }

    #[test]
    fn a_map_that_was_deleted_is_written_again_as_the_living_know_it() {
        let mut store = OwnerMemory::default();
        assert!(store.replace(0, &halves()).unwrap());
        store.poll(Some(&lease(2)), false).unwrap();
        let (mut member, _unstarted) = member(&store, halves());
        member.turn();
        store.delete_map();
        member.turn();
        assert_eq!(blocks(&mut store), [(InstanceId(1), 512), (InstanceId(2), 512)].into());
        store.leave(&lease(2)).unwrap();
        member.turn();
        assert_eq!(blocks(&mut store), [(InstanceId(1), 1024)].into(), "it goes on as before");
    }

    #[test]
    fn the_blocks_of_an_instance_that_is_gone_are_adopted_and_returned() {
        let (one, two) = (InstanceId(1), InstanceId(2));
        let mut store = OwnerMemory::default();
        assert!(store.replace(0, &halves()).unwrap());
        store.poll(Some(&lease(2)), false).unwrap();
        let (mut member, _unstarted) = member(&store, halves());
        let queue = member.shards[0].clone();
        member.turn();
        assert_eq!(blocks(&mut store), [(one, 512), (two, 512)].into(), "both live");
        let before = queue.pending();
        store.leave(&lease(2)).unwrap();
        member.turn();
        assert_eq!(blocks(&mut store), [(one, 1024)].into());
        // 512 blocks, some with each input; and that the instance is gone.
        assert!(queue.pending() >= before + 512 / ADOPTED_AT_ONCE, "{}", queue.pending());
        member.turn();
        assert!(member.releasing.is_empty());
        // It returns: its own blocks are released to it, and no others.
        store.poll(Some(&lease(2)), false).unwrap();
        member.turn();
        assert_eq!(member.releasing.len(), 1, "one for its shard, so that it can start");
        member.releasing.clear();
        member.since.insert(two, (2, Instant::now() - SETTLING));
        member.turn();
        assert_eq!(member.releasing.len(), RELEASED_AT_ONCE);
        assert!(member.releasing.iter().all(|block| *block >= BlockId::COUNT / 2), "{:?}", member.releasing);
        let released: Vec<_> = member.releasing.iter().copied().collect();
        for block in released {
            let to = BlockOwner { instance: two, shard: ShardId(0) };
            let version = member.moves.next_version();
            let change = BlockMove { block: BlockId::new(block).unwrap(), to, version };
            member.unwritten.push(change);
            member.move_ended(change, true);
        }
        member.turn();
        assert_eq!(blocks(&mut store)[&two], RELEASED_AT_ONCE);
        let status = member.view.status().unwrap();
        let shown: Vec<_> =
            status.instances.iter().map(|it| (it.instance, it.lives, it.blocks, it.homes)).collect();
        assert_eq!(shown, [(1, true, 1024 - RELEASED_AT_ONCE, 512), (2, true, RELEASED_AT_ONCE, 512)]);
    }

    /// A move between two shards of a process without a set.
    #[test]
    fn a_moved_block_stays_where_it_is_after_a_restart() {
        let store = OwnerMemory::default();
        let membership =
            without_set(Box::new(store.clone()), 2, &Arc::new("http://10.0.0.1:80".parse().unwrap()));
        assert_eq!(*membership.owners, OwnerMap::of_instance(InstanceId(0), 2));
        let (mut member, _unstarted) = member(&store, SetMap::at_home((*membership.owners).clone()));
        (member.instance, member.revision, member.lease, member.guard) = (InstanceId(0), 0, None, None);
        let to = BlockOwner { instance: InstanceId(0), shard: ShardId(1) };
        let change = BlockMove { block: BlockId::new(7).unwrap(), to, version: 2 };
        member.unwritten.push(change);
        member.turn();
        let root = Arc::new("http://10.0.0.1:80".parse().unwrap());
        let again = without_set(Box::new(store.clone()), 2, &root);
        assert_eq!(again.owners.owner(change.block), to);
        let fewer = without_set(Box::new(store), 1, &root);
        assert_eq!(
            fewer.owners.blocks_of(BlockOwner { instance: InstanceId(0), shard: ShardId(0) }).count(),
            1024
        );
    }
}
