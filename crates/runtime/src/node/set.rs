//! The owner map in the store, and the set of instances that share it ([ADR 0024](../../../../docs/adr/0024-instances-of-a-set.md)).
//!
//! ```text
//!  shards ── a block has moved ──> thread 'owners' ── SetMember ──> store
//!                                       │  ^
//!                                       │  └── some times a lease
//!         <── Adopt, OwnersChanged ─────┘
//! ```
//!
//! The thread alone waits for the store. What it does is [`SetMember`]'s. A process that finds its blocks at another instance, after a
//! pause that was longer than its lease, ends at once.

use super::StartError;
use super::moves::Moves;
use super::residency::Contexts;
use crate::api::{InstanceStatus, SetStatus};
use crate::clock::Clock;
use crate::config::Config;
use crate::lease::LeaseGuard;
use crate::residency::{
    Description, Joined, Joining, Lease, OwnerStore, Poll, SetError, SetHost, SetMap, SetMember,
};
use crate::shard::ShardQueue;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use pith_nf::fabric::ShardInput;
use pith_sbi::ApiRoot;
use pith_types::{BlockMove, InstanceId, OwnerMap};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a start waits for its part of the blocks, beyond a lease.
const JOIN_TIME: Duration = Duration::from_secs(20);
/// Time between two questions at the start.
const JOIN_PAUSE: Duration = Duration::from_millis(50);
/// The status with which a process ends whose blocks are at another instance. It may be started again.
const EXIT_LOST: i32 = 75;

/// The owner map of this process at its start, and where it is stored.
pub(super) struct Membership {
    pub(super) owners: Arc<OwnerMap>,
    map: SetMap,
    instance: InstanceId,
    revision: u64,
    store: Option<Box<dyn OwnerStore>>,
    lease: Option<(Lease, LeaseGuard)>,
    /// The set when the process entered it.
    poll: Poll,
    root: Arc<ApiRoot>,
    clock: Clock,
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
        let map = SetMap::at_home(OwnerMap::of_instance(instance, shards));
        return Ok(Membership::of_map((map, 0), instance, None, root, clock));
    };
    let mut store = contexts.owners();
    if !config.set.is_used() {
        return Ok(without_set(store, shards, root, clock));
    }
    let description = Description { root: root.to_string(), shards, process: own_process() };
    let lease = Lease { instance, incarnation: incarnation()?, lasts: config.set.lease.0, description };
    let guard = LeaseGuard::new(clock, lease.lasts);
    let patience = JOIN_TIME + lease.lasts;
    let mut joining = Joining::new(lease, guard, Box::new(has_ended));
    let began = Instant::now();
    loop {
        if let Some(Joined { map, revision, poll }) = joining.attempt(clock.now(), store.as_mut())? {
            let others = poll.instances.len().saturating_sub(1);
            tracing::info!("instance {} of a set, with {others} others", instance.0);
            let joined = Membership::of_map((map, revision), instance, Some(store), root, clock);
            return Ok(Membership { lease: Some(joining.into_lease()), poll, ..joined });
        }
        if began.elapsed() > patience {
            joining.give_up(store.as_mut());
            let seconds = patience.as_secs();
            return Err(format!("the other instances of the set have not given this one any blocks within {seconds} s: see their logs").into());
        }
        std::thread::sleep(JOIN_PAUSE);
    }
}

/// The map of the only process that has the store. A map that cannot be read, or written, is not necessary: blocks are then as at the
/// first start, and each shard finds its documents.
fn without_set(mut store: Box<dyn OwnerStore>, shards: u8, root: &Arc<ApiRoot>, clock: Clock) -> Membership {
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
    Membership::of_map((SetMap::at_home(owners), revision), instance, Some(store), root, clock)
}

fn incarnation() -> Result<u64, StartError> {
    let mut octets = [0; 8];
    getrandom::fill(&mut octets)
        .map_err(|error| format!("the operating system's random source failed: {error}"))?;
    Ok(u64::from_le_bytes(octets) >> 1)
}

/// This process on its host: boot, PID namespace, PID, and start.
fn own_process() -> Option<String> {
    let pid = std::process::id();
    Some(format!("{} {pid} {}", own_host()?, start_of(pid)?))
}

/// The host until it boots again, and the PID namespace.
fn own_host() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

/// When a process started, in clock ticks since boot (proc(5), field 22 of `stat`). The name before it may have any characters but ends with ')'.
fn start_of(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19).map(str::to_owned)
}

/// Whether a process has ended for certain: it was one of this host, and there is no such process.
fn has_ended(description: &Description) -> bool {
    let of_process = description.process.as_deref();
    let Some([host, pid, start]) = of_process.and_then(|text| {
        let mut parts = text.rsplitn(3, ' ');
        let (start, pid, host) = (parts.next()?, parts.next()?, parts.next()?);
        Some([host, pid, start])
    }) else {
        return false;
    };
    let Ok(pid) = pid.parse::<u32>() else { return false };
    own_host().is_some_and(|own| own == host) && is_gone(pid, start)
}

fn is_gone(pid: u32, start: &str) -> bool {
    match start_of(pid) {
        Some(of_present) => of_present != start,
        // With the mount option hidepid the processes of other users are hidden.
        None => i32::try_from(pid).is_ok_and(|pid| {
            // SAFETY: signal 0 is sent to no process.
            #[allow(unsafe_code)]
            let sent = unsafe { libc::kill(pid, 0) };
            sent != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
        }),
    }
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
    fn of_map(
        (map, revision): (SetMap, u64),
        instance: InstanceId,
        store: Option<Box<dyn OwnerStore>>,
        root: &Arc<ApiRoot>,
        clock: Clock,
    ) -> Self {
        let owners = Arc::new(map.owners.clone());
        let (poll, root) = (Poll::default(), Arc::clone(root));
        Self { owners, map, instance, revision, store, lease: None, poll, root, clock }
    }

    /// The end of the lease, for the shards.
    pub(super) fn guard(&self) -> Option<LeaseGuard> {
        self.lease.as_ref().map(|(_, guard)| guard.clone())
    }

    /// Starts the thread; `None` if nothing is stored.
    pub(super) fn start(
        self,
        shards: &[ShardQueue],
        moves: &Arc<Moves>,
    ) -> std::io::Result<Option<SetThread>> {
        let (view, host) = (SetView::default(), Host { shards: shards.to_vec(), moves: Arc::clone(moves) });
        let Some(attendant) = self.into_attendant(host, view.clone()) else { return Ok(None) };
        let (commands, queue) = unbounded();
        let run = move || attendant.run(&queue);
        let thread = std::thread::Builder::new().name("owners".into()).spawn(run)?;
        Ok(Some(SetThread { handle: SetHandle(commands), view, thread }))
    }

    fn into_attendant(self, mut host: Host, view: SetView) -> Option<Attendant> {
        let Self { map, instance, revision, store, lease, poll, root, clock, .. } = self;
        let shards = host.shards.len() as u16;
        let is_in_set = lease.is_some();
        let mut member = SetMember::new(clock.now(), (instance, shards), root, (map, revision), lease);
        if is_in_set {
            member.introduce(&poll, &mut host);
        }
        Some(Attendant { member, store: store?, host, view, instance, clock, is_failing: false })
    }
}

/// The process as its member of the set uses it.
struct Host {
    shards: Vec<ShardQueue>,
    moves: Arc<Moves>,
}

impl SetHost for Host {
    fn next_version(&mut self) -> u64 {
        self.moves.next_version()
    }

    fn note_version(&mut self, version: u64) {
        self.moves.note_version(version);
    }

    fn note(&mut self, change: BlockMove) {
        self.moves.note(change);
    }

    fn to_shard(&mut self, shard: u16, input: ShardInput) {
        if let Some(queue) = self.shards.get(usize::from(shard)) {
            queue.send(input);
            queue.wake();
        }
    }
}

/// What the thread has.
struct Attendant {
    member: SetMember,
    store: Box<dyn OwnerStore>,
    host: Host,
    view: SetView,
    instance: InstanceId,
    clock: Clock,
    is_failing: bool,
}

impl Attendant {
    fn run(mut self, commands: &Receiver<Command>) {
        let mut due = Instant::now();
        loop {
            let command = match self.member.pause() {
                Some(pause) => {
                    due = due.min(Instant::now() + pause);
                    commands.recv_deadline(due)
                }
                None => commands.recv().map_err(RecvTimeoutError::from),
            };
            match command {
                Ok(Command::Serve) => self.member.serve(),
                Ok(Command::Moved(change)) => self.member.moved(change),
                Ok(Command::MoveEnded(change, is_released)) => {
                    self.member.move_ended(self.clock.now(), change, is_released);
                }
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    due = Instant::now() + self.member.pause().unwrap_or(JOIN_PAUSE);
                }
            }
            // Several changes are written at once.
            if commands.is_empty() {
                self.turn();
            }
        }
        if let Some(lease) = self.member.lease() {
            let _ = self.store.leave(lease);
        }
    }

    fn turn(&mut self) {
        let result = self.member.turn(self.clock.now(), self.store.as_mut(), &mut self.host);
        match result {
            Ok(poll) => {
                if let Some(poll) = poll {
                    self.show(&poll);
                }
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!("the store of the owner map answers again");
                }
            }
            Err(SetError::Store(error)) => {
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
            Err(error @ SetError::Lost(_)) => {
                tracing::error!("{error}");
                std::process::exit(EXIT_LOST)
            }
        }
    }

    /// For 'pith status'.
    fn show(&self, poll: &Poll) {
        let known = self.member.known();
        let blocks = known.owners.blocks_of_instances();
        let live = poll.instances.iter().map(|(instance, live)| (*instance, (&live.description, true)));
        let gone = poll.gone.iter().map(|(instance, description)| (*instance, (description, false)));
        let instances: BTreeMap<_, _> = live.chain(gone).collect();
        let status = |(instance, (description, lives)): (InstanceId, (&Description, bool))| InstanceStatus {
            instance: instance.0,
            root: description.root.clone(),
            lives,
            blocks: blocks.get(&instance).copied().unwrap_or(0),
            homes: known.homes.iter().filter(|home| **home == instance).count(),
        };
        let lease = self.member.lease().map_or(Duration::ZERO, |lease| lease.lasts);
        let status = SetStatus {
            instance: self.instance.0,
            lease_ms: u64::try_from(lease.as_millis()).unwrap_or(u64::MAX),
            error: None,
            instances: instances.into_iter().map(status).collect(),
        };
        self.view.change(|view| *view = Some(status));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::residency::OwnerMemory;
    use crate::shard::shard_queue;
    use pith_types::{BlockId, BlockOwner, ShardId};

    fn root() -> Arc<ApiRoot> {
        Arc::new("http://10.0.0.1:80".parse().unwrap())
    }

    fn attendant(membership: Membership) -> Attendant {
        let (queue, _) = shard_queue(0, 4096);
        let moves = Moves::new((Arc::clone(&membership.owners), membership.instance));
        membership.into_attendant(Host { shards: vec![queue], moves }, SetView::default()).unwrap()
    }

    #[test]
    fn the_status_shows_the_instances_and_their_blocks() {
        let mut store = OwnerMemory::new();
        let lease = |instance: u8| {
            let description =
                Description { root: format!("http://10.0.0.{instance}:80"), shards: 1, process: None };
            let (instance, lasts) = (InstanceId(instance), Duration::from_secs(60));
            Lease { instance, incarnation: u64::from(instance.0), lasts, description }
        };
        let map = SetMap::at_home(OwnerMap::of_instance(InstanceId(1), 1));
        assert!(store.replace(0, &map).unwrap());
        store.poll(Some(&lease(2)), false).unwrap();
        store.leave(&lease(2)).unwrap();
        let clock = Clock::start();
        let guard = LeaseGuard::new(clock, Duration::from_secs(60));
        let of_map =
            Membership::of_map((map, 1), InstanceId(1), Some(Box::new(store.clone())), &root(), clock);
        let mut attendant = attendant(Membership { lease: Some((lease(1), guard)), ..of_map });
        attendant.turn();
        let status = attendant.view.status().unwrap();
        let shown: Vec<_> =
            status.instances.iter().map(|it| (it.instance, it.lives, it.blocks, it.homes)).collect();
        assert_eq!(shown, [(1, true, 1024, 1024), (2, false, 0, 0)]);
        assert_eq!((status.instance, status.lease_ms, status.error), (1, 60_000, None));
    }

    #[test]
    fn only_a_process_of_this_host_is_known_to_have_ended() {
        let of = |process: Option<String>| {
            has_ended(&Description { root: "http://10.0.0.1:80".into(), shards: 1, process })
        };
        let own = own_process().unwrap();
        assert!(!of(Some(own.clone())), "it runs");
        let host = own_host().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let (pid, start) = (child.id(), start_of(child.id()));
        child.wait().unwrap();
        assert!(of(Some(format!("{host} {pid} {}", start.unwrap_or_else(|| "0".into())))), "it has ended");
        assert!(of(Some(format!("{host} {} 1", std::process::id()))), "its PID is another one's");
        assert!(!of(Some(format!("another-host {pid} 1"))), "it may run there");
        for unknown in [None, Some(String::new()), Some("x y z".into()), Some(format!("{host} -1 1"))] {
            assert!(!of(unknown.clone()), "{unknown:?}");
        }
    }

    /// A move between two shards of a process without a set.
    #[test]
    fn a_moved_block_stays_where_it_is_after_a_restart() {
        let (store, clock) = (OwnerMemory::new(), Clock::start());
        let membership = without_set(Box::new(store.clone()), 2, &root(), clock);
        assert_eq!(*membership.owners, OwnerMap::of_instance(InstanceId(0), 2));
        let mut attendant = attendant(membership);
        let to = BlockOwner { instance: InstanceId(0), shard: ShardId(1) };
        let change = BlockMove { block: BlockId::new(7).unwrap(), to, version: 2 };
        attendant.member.moved(change);
        attendant.turn();
        let again = without_set(Box::new(store.clone()), 2, &root(), clock);
        assert_eq!(again.owners.owner(change.block), to);
        let fewer = without_set(Box::new(store), 1, &root(), clock);
        assert_eq!(
            fewer.owners.blocks_of(BlockOwner { instance: InstanceId(0), shard: ShardId(0) }).count(),
            1024
        );
    }
}
