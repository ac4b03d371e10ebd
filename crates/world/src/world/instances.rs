//! Instances of a set: processes that host AMF, SMF and PCF over one store, and divide the blocks of ids among them by the owner map there.
//! What an instance does is the runtime's ([`Joining`], [`SetMember`]); the world is its thread, its clock and its store.

use super::{SimEvent, World};
use crate::server::Server;
use pith_nf::fabric::ShardInput;
use pith_nf::kit::Instant;
use pith_runtime::lease::LeaseGuard;
use pith_runtime::residency::{
    Description, EngineError, JoinError, Joined, Joining, Lease, OwnerMemory, OwnerStore, Poll, SetError,
    SetHost, SetMap, SetMember, StoredOwners,
};
use pith_types::{BlockId, BlockMove, BlockOwner, InstanceId, OwnerMap, ShardId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Time between two attempts to enter the set, as in the runtime.
const JOIN_PAUSE: Duration = Duration::from_millis(50);
/// How long a start waits for blocks beyond a lease, as in the runtime.
const JOIN_TIME: Duration = Duration::from_secs(20);
/// After this time without a fault an instance polls the store less often than the runtime's.
const UNDISTURBED: Duration = Duration::from_secs(60);

/// A process in the set.
pub(super) struct Instance {
    guard: LeaseGuard,
    stage: Stage,
    introduction: Introduction,
}

enum Stage {
    /// It has no blocks yet, since that time.
    Joining(Box<Joining>, Instant),
    Member(Box<SetMember>),
}

/// What an instance knows of the set at its start.
type Introduction = Vec<(u16, ShardInput)>;

impl Instance {
    /// The end of the lease.
    pub fn guard(&self) -> LeaseGuard {
        self.guard.clone()
    }

    fn member(&mut self) -> Option<&mut SetMember> {
        match &mut self.stage {
            Stage::Member(member) => Some(member),
            Stage::Joining(..) => None,
        }
    }
}

/// The owner map as a process reaches it.
struct Access {
    store: OwnerMemory,
    server: Server,
    process: usize,
}

impl Access {
    fn check(&self) -> Result<(), EngineError> {
        if self.server.answers(self.process) {
            return Ok(());
        }
        Err(EngineError::Remote { server: "memory".into(), reason: "an outage".into() })
    }
}

impl OwnerStore for Access {
    fn poll(&mut self, lease: Option<&Lease>, takes_over: bool) -> Result<Poll, EngineError> {
        self.check()?;
        self.store.poll(lease, takes_over)
    }

    fn leave(&mut self, lease: &Lease) -> Result<(), EngineError> {
        self.check()?;
        self.store.leave(lease)
    }

    fn read(&mut self) -> Result<Option<StoredOwners>, EngineError> {
        self.check()?;
        self.store.read()
    }

    fn replace(&mut self, revision: u64, map: &SetMap) -> Result<bool, EngineError> {
        self.check()?;
        self.store.replace(revision, map)
    }
}

/// The process of a member.
struct Host<'a> {
    version: &'a mut u64,
    owners: &'a mut Arc<OwnerMap>,
    inputs: Vec<(u16, ShardInput)>,
}

impl SetHost for Host<'_> {
    fn next_version(&mut self) -> u64 {
        *self.version += 1;
        *self.version
    }

    fn note_version(&mut self, version: u64) {
        *self.version = version.max(*self.version);
    }

    fn note(&mut self, change: BlockMove) {
        if let Some(owners) = self.owners.moved(change) {
            *self.owners = Arc::new(owners);
        }
    }

    fn to_shard(&mut self, shard: u16, input: ShardInput) {
        self.inputs.push((shard, input));
    }
}

impl World {
    /// Whether a process is an instance of the set.
    pub(super) fn is_in_set(&self, process: usize) -> bool {
        process < self.plan.instances
    }

    fn access(&self, process: usize) -> Access {
        Access { store: self.owner_map.clone(), server: self.server.clone(), process }
    }

    /// The store has an owner map before the first start: each instance has its part of the blocks.
    pub(super) fn divide_blocks(&mut self) {
        let (instances, shards) = (self.plan.instances, self.plan.shards);
        if instances == 0 {
            return;
        }
        let owner = |block: BlockId| {
            let part = usize::from(block.number()) * instances * shards / usize::from(BlockId::COUNT);
            BlockOwner { instance: self.plan.instance(part / shards), shard: ShardId((part % shards) as u8) }
        };
        let map = SetMap::at_home(OwnerMap::new(1, owner));
        if let Err(error) = self.owner_map.replace(0, &map) {
            self.watch.fail(error.to_string());
        }
    }

    /// The time of leases.
    pub(super) fn set_time_of_leases(&self) {
        if self.plan.instances > 0 {
            self.owner_map.set_now(self.now);
        }
        let instances = self.processes.iter().filter_map(|process| process.set.as_ref());
        instances.for_each(|instance| instance.guard.set_now(self.now));
    }

    /// The owner map with which a process starts. `None`: it has no blocks yet, and starts later.
    pub(super) fn owners_at_start(&mut self, process: usize) -> Option<Arc<OwnerMap>> {
        if !self.is_in_set(process) {
            return Some(crate::network::owners(self.plan.shards));
        }
        self.disturbed = self.now;
        let instance = self.plan.instance(process);
        let (root, shards) = (crate::network::root(process), self.plan.shards as u8);
        let mut part = self.processes[process].set.take().unwrap_or_else(|| {
            let incarnation = (process as u64) << 32 | u64::from(self.processes[process].incarnation);
            let description = Description { root: root.to_string(), shards, process: None };
            let lease = Lease { instance, incarnation, lasts: self.plan.lease, description };
            let guard = LeaseGuard::simulated(lease.lasts);
            guard.set_now(self.now);
            // On the same host a process finds out that the former one has ended.
            let is_same_host = !self.plan.seed.is_multiple_of(3);
            let joining = Joining::new(lease, guard.clone(), Box::new(move |_| is_same_host));
            let stage = Stage::Joining(Box::new(joining), self.now);
            Instance { guard, stage, introduction: Vec::new() }
        });
        let mut access = self.access(process);
        let Stage::Joining(mut joining, began) = part.stage else { return None };
        let pause = match joining.attempt(self.now, &mut access) {
            Ok(Some(Joined { map, revision, poll })) => {
                let owners = Arc::new(map.owners.clone());
                let lease = Some(joining.into_lease());
                let of_process = (instance, u16::from(shards));
                let mut member = SetMember::new(self.now, of_process, root, (map, revision), lease);
                let (mut version, mut known) = (0, Arc::clone(&owners));
                let mut host = Host { version: &mut version, owners: &mut known, inputs: Vec::new() };
                member.introduce(&poll, &mut host);
                part.introduction = host.inputs;
                part.stage = Stage::Member(Box::new(member));
                self.processes[process].set = Some(part);
                return Some(owners);
            }
            Ok(None) if self.now.since(began) < JOIN_TIME + self.plan.lease => {
                part.stage = Stage::Joining(joining, began);
                self.processes[process].set = Some(part);
                JOIN_PAUSE
            }
            Ok(None) => {
                self.watch.fail(format!("process {process} gets no blocks"));
                joining.give_up(&mut access);
                return None;
            }
            Err(JoinError::Occupied { .. }) => {
                self.watch.fail(format!("process {process} finds its number in use"));
                return None;
            }
            // The process does not start without the store. A supervisor starts it again.
            Err(JoinError::Store(_)) => self.dice.seconds(1, 5),
        };
        self.at(pause, SimEvent::Start { process });
        None
    }

    /// Before the shards of an instance start.
    pub(super) fn introduce(&mut self, process: usize) {
        let set = self.processes[process].set.as_mut();
        let inputs = set.map(|set| std::mem::take(&mut set.introduction)).unwrap_or_default();
        for (shard, input) in inputs {
            self.send_to_shard(process, shard.into(), input);
        }
    }

    /// An instance serves: it attends the set.
    pub(super) fn serve_set(&mut self, process: usize) {
        if let Some(member) = self.processes[process].set.as_mut().and_then(Instance::member) {
            member.serve();
            let incarnation = self.processes[process].incarnation;
            self.at(Duration::ZERO, SimEvent::SetTurn { process, incarnation, repeats: true });
        }
    }

    /// A block of an instance has another owner.
    pub(super) fn note_moved(&mut self, process: usize, change: BlockMove) {
        if let Some(member) = self.processes[process].set.as_mut().and_then(Instance::member) {
            member.moved(change);
            self.attend_set_now(process);
        }
    }

    /// The release of a block to another instance has ended.
    pub(super) fn note_release(&mut self, process: usize, change: BlockMove, is_released: bool) {
        let now = self.now;
        if change.to.instance != self.plan.instance(process)
            && let Some(member) = self.processes[process].set.as_mut().and_then(Instance::member)
        {
            member.move_ended(now, change, is_released);
            self.attend_set_now(process);
        }
    }

    fn attend_set_now(&mut self, process: usize) {
        let incarnation = self.processes[process].incarnation;
        let after = self.dice.millis(0, 1);
        self.at(after, SimEvent::SetTurn { process, incarnation, repeats: false });
    }

    /// A turn of an instance's thread.
    pub(super) fn set_turn(&mut self, process: usize, repeats: bool) {
        let mut access = self.access(process);
        let (now, is_slow) = (self.now, self.now.since(self.disturbed) > UNDISTURBED);
        let third = self.plan.lease / 3;
        let super::process::Process { set, version, owners, incarnation, .. } = &mut self.processes[process];
        let incarnation = *incarnation;
        let Some(member) = set.as_mut().and_then(Instance::member) else { return };
        let mut host = Host { version, owners, inputs: Vec::new() };
        let result = member.turn(now, &mut access, &mut host);
        let inputs = host.inputs;
        let pause = member.pause().unwrap_or(third);
        if let Err(SetError::Lost(why)) = result {
            self.record("fault", "world", format!("process {process} ends with status 75: {why}"));
            self.lost += 1;
            return self.end_instance(process);
        }
        for (shard, input) in inputs {
            self.send_to_shard(process, shard.into(), input);
        }
        if repeats {
            let pause = if is_slow { pause.max(third) } else { pause };
            self.at(pause, SimEvent::SetTurn { process, incarnation, repeats });
        }
    }

    /// An instance ends at once. A supervisor starts it again.
    fn end_instance(&mut self, process: usize) {
        self.note_if_behind(process);
        self.kill_process(process);
        self.end_associations_of(process, Duration::ZERO);
        let after = self.dice.seconds(1, 5);
        self.at(after, SimEvent::Start { process });
    }

    /// The associations of a process that has ended, end at the gNBs after that time.
    pub(super) fn end_associations_of(&mut self, process: usize, after: Duration) {
        for gnb in 0..self.gnbs.len() {
            if self.amf_of(gnb) != process {
                continue;
            }
            for (number, association) in self.gnbs[gnb].associations.clone() {
                if after.is_zero() {
                    self.disassociate(gnb, number);
                } else {
                    self.at(after, SimEvent::AssociationLost { gnb, association });
                }
            }
        }
    }

    /// An instance stops for a while: nothing happens in it.
    pub(super) fn pause(&mut self, process: usize) {
        if self.processes[process].is_running() {
            let time = self.dice.millis(50, self.plan.lease.as_millis() as u64 * 3);
            self.processes[process].paused_until = Some(self.now + time);
            self.disturbed = self.now + time;
        }
    }

    /// An instance does not reach the store for a while.
    pub(super) fn cut_off(&mut self, process: usize) {
        let time = self.dice.millis(50, self.plan.lease.as_millis() as u64 * 3);
        self.server.cut_off(process, true);
        self.begin_unstored([process]);
        self.disturbed = self.now + time;
        self.at(time, SimEvent::Reached { process });
    }

    /// An instance reaches the store again.
    pub(super) fn reach_again(&mut self, process: usize) {
        self.server.cut_off(process, false);
        self.end_unstored();
        self.store_back = self.now + Duration::from_secs(5);
    }

    /// When the process of an event continues, if it is stopped.
    pub(super) fn pause_of(&self, event: &SimEvent) -> Option<Instant> {
        if self.plan.instances == 0 {
            return None;
        }
        let process = match event {
            SimEvent::ToShard { process, .. }
            | SimEvent::WriteDocuments { process, .. }
            | SimEvent::Restore { process, .. }
            | SimEvent::SetTurn { process, .. }
            | SimEvent::ToN4Gateway { process, .. } => *process,
            SimEvent::ToN2Gateway { association, .. } => self.amf_of(self.gnb_of(*association)?),
            SimEvent::SbiRequest { exchange } => self.exchanges.get(exchange)?.target_process(),
            SimEvent::SbiReply { exchange, .. } => self.exchanges.get(exchange)?.caller_process(),
            _ => return None,
        };
        self.paused_until(process)
    }

    /// When a process continues, if it is stopped.
    pub(super) fn paused_until(&self, process: usize) -> Option<Instant> {
        self.processes[process].paused_until.filter(|until| *until > self.now)
    }

    /// Long after the last fault: each block has one owner, which the store names.
    pub(super) fn check_owners(&self) -> Result<(), Box<super::Failure>> {
        if self.plan.instances == 0 {
            return Ok(());
        }
        let stored = self.access(usize::MAX).read().ok().flatten();
        self.demand(stored.is_some(), || "the store has no owner map".into())?;
        let Some(stored) = stored else { return Ok(()) };
        let running = |process: &usize| self.processes[*process].is_running();
        let living: BTreeSet<InstanceId> =
            (0..self.plan.instances).filter(running).map(|process| self.plan.instance(process)).collect();
        for block in BlockId::all() {
            let owner = stored.map.owners.owner(block);
            self.demand(living.contains(&owner.instance), || {
                format!("block {block} is instance {}'s, which does not run", owner.instance.0)
            })?;
            for process in (0..self.plan.instances).filter(running) {
                let of_process = self.processes[process].owners.owner(block);
                self.demand(of_process == owner, || {
                    format!("block {block} is {owner:?}'s, and {of_process:?}'s for process {process}")
                })?;
            }
        }
        Ok(())
    }
}
