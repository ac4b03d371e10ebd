//! Simulated processes: each has shards, which run its NFs, and the gateways that its NFs need.

use super::crash_point::{CrashSite, is_send};
use super::instances::Instance;
use super::{Channel, SimEvent, TimerId, World};
use crate::documents::Documents;
use crate::network::{self, EPOCH, ShardFactory, ShardHost};
use crate::plan::{Plan, Residency};
use crate::server::Server;
use crate::stores::Stores;
use pith_nf::fabric::{Keeps, ShardEffect, ShardInput, TakeOver};
use pith_nf::gateway::n2::N2Gateway;
use pith_nf::gateway::n4::{N4Gateway, StoredRun};
use pith_nf::kit::{Caller, Instant, Nf, StoreRequest, StoredKey, Tag};
use pith_sbi::{ApiRoot, Reply};
use pith_types::{BlockId, BlockOwner, OwnerMap, ShardId};
use std::sync::Arc;
use std::time::Duration;

/// Of the restarts of a process with stored contexts, this many restore contexts while it serves, per mille. After the others all contexts
/// are compared with those before.
const ON_DEMAND: u32 = 600;

/// Time until another attempt to adopt blocks, as in the runtime.
const ADOPTION_RETRY: Duration = Duration::from_millis(500);

/// A simulated process.
pub(super) struct Process {
    /// NFs that each shard hosts.
    pub nfs: Vec<Nf>,
    /// Number of kills so far. An event for an earlier incarnation is discarded.
    pub incarnation: u32,
    /// The shards; empty before the first start, and from a kill to the next start.
    pub shard_hosts: Vec<ShardHost>,
    /// Present in a running process with an AMF.
    pub n2: Option<N2Gateway>,
    /// Present in a running process with an SMF.
    pub n4: Option<N4Gateway>,
    /// The stored contexts, in a world that stores them.
    pub documents: Option<Documents>,
    /// The runtime's stores, in a world that uses these instead.
    pub stores: Option<Stores>,
    /// What each shard needs after a panic.
    pub take_overs: Vec<TakeOver>,
    /// Panics of shards so far.
    pub panics: u16,
    /// The Recovery Time Stamp and the number of the last run, if sessions outlive the process without loss.
    pub n4_run: Option<(u64, StoredRun)>,
    /// The owner of each block.
    pub owners: Arc<OwnerMap>,
    /// The owner of each block at the last start.
    pub owners_at_start: Arc<OwnerMap>,
    /// The version of the owner map that was given last.
    pub version: u64,
    /// Present in an instance of the set, from the begin of a start.
    pub set: Option<Instance>,
    /// Nothing happens in the process before that time.
    pub paused_until: Option<Instant>,
}

impl Process {
    pub fn new(number: usize, nfs: Vec<Nf>, plan: &Plan, server: &Server) -> Self {
        let residency = plan.residency;
        let has_own = residency != Residency::None && plan.store.is_none();
        let documents = has_own.then(|| Documents::new(residency));
        // The instances of a set have the same blocks, and fence each other off.
        let scope = if number < plan.instances { 0 } else { number as u16 };
        let stores = plan.store.map(|form| Stores::new(server.clone(), (number, scope), residency, form));
        Self {
            nfs,
            incarnation: 0,
            shard_hosts: Vec::new(),
            n2: None,
            n4: None,
            documents,
            stores,
            take_overs: Vec::new(),
            panics: 0,
            n4_run: None,
            owners: network::owners(plan.shards),
            owners_at_start: network::owners(plan.shards),
            version: 1,
            set: None,
            paused_until: None,
        }
    }

    /// Whether its contexts outlive it.
    pub fn is_stored(&self) -> bool {
        self.documents.is_some() || self.stores.is_some()
    }

    /// The incarnation in the NF instance IDs of that one: they are stored with the contexts.
    pub fn incarnation_of_instances(&self, incarnation: u32) -> u32 {
        if self.is_stored() { 0 } else { incarnation }
    }

    /// Whether the process runs and was not restarted since that incarnation.
    pub fn is_running_as(&self, incarnation: u32) -> bool {
        self.incarnation == incarnation && !self.shard_hosts.is_empty()
    }

    /// A run begins at that time: it continues the former one, unless contexts were lost meanwhile.
    fn begin_n4_run(&mut self, now: u64, residency: Residency, has_lost: bool) {
        let loses = matches!(residency, Residency::None | Residency::Soft | Residency::Procedural);
        self.n4_run = (self.is_stored() && !loses).then(|| match self.n4_run.filter(|_| !has_lost) {
            Some((stamp, run)) => {
                let session_set = run.session_set.wrapping_add(1);
                (stamp, StoredRun { session_set, has_former: true })
            }
            None => (now, StoredRun { session_set: 1, has_former: false }),
        });
    }

    pub fn is_running(&self) -> bool {
        !self.shard_hosts.is_empty()
    }
}

/// The block that leaves its shard with an effect.
fn block_that_leaves(effect: &ShardEffect) -> Option<BlockId> {
    match effect {
        ShardEffect::Released(change) => Some(change.block),
        ShardEffect::PassOn { input, .. } => match &**input {
            ShardInput::Block(passed) => Some(passed.change.block),
            _ => None,
        },
        _ => None,
    }
}

impl World {
    /// Starts a process: its NFs have the UEs and sessions that are stored.
    pub(super) fn start_process(&mut self, process: usize) {
        let Some(owners) = self.owners_at_start(process) else { return };
        let shards = self.plan.shards;
        self.processes[process].owners_at_start = Arc::clone(&owners);
        let mut shard_hosts: Vec<_> = (0..shards).map(|shard| self.make_shard((process, shard))).collect();
        let started = self.now.as_micros() / 1000;
        let start_time = EPOCH + self.now.as_micros() / 1_000_000;
        let store_started = start_time + u64::from(self.processes[process].incarnation);
        if let Some(documents) = &mut self.processes[process].documents {
            documents.assign(|block| owners.owner(block).shard.0.into());
        }
        self.processes[process].owners = Arc::clone(&owners);
        self.processes[process].version = owners.version();
        let lease = self.processes[process].set.as_ref().map(Instance::guard);
        // With the other residencies all contexts are read first.
        let has_copies =
            matches!(self.plan.residency, Residency::Durable | Residency::Procedural | Residency::Soft);
        let may_restore = has_copies && self.processes[process].incarnation > 0;
        let on_demand = may_restore && self.dice.chance(ON_DEMAND);
        for (shard, host) in shard_hosts.iter_mut().enumerate() {
            if let Some(stores) = &mut self.processes[process].stores {
                let times = (self.now, store_started);
                let owner = BlockOwner { instance: self.plan.instance(process), shard: ShardId(shard as u8) };
                let of_shard = (shard, owners.blocks_of(owner).collect());
                let how = (on_demand, lease.clone());
                let restored = stores.restore(times, of_shard, how, &mut host.shard);
                if let Err(error) = restored {
                    self.watch.fail(format!("not restored: {error}"));
                }
            }
            let documents = self.processes[process].documents.as_mut();
            let restored = documents.map(|it| {
                if on_demand {
                    it.begin_restoring(self.now, shard, &mut host.shard)
                } else {
                    it.restore(self.now, shard, &mut host.shard)
                }
            });
            if let Some(Err(error)) = restored {
                self.watch.fail(format!("not restored: {error}"));
            }
        }
        let has_lost = self.watch.has_lost_documents;
        let target = &mut self.processes[process];
        target.begin_n4_run(start_time, self.plan.residency, has_lost);
        // The sessions of an instance of a set are perhaps another one's meanwhile.
        let run = target.n4_run.filter(|_| target.set.is_none());
        let has = |nf: Nf| target.nfs.contains(&nf);
        target.n2 = has(Nf::Amf).then(|| network::n2_gateway(&self.plan, process, Arc::clone(&owners)));
        let n4_config = || network::n4_config((&self.plan, process), Arc::clone(&owners), started, run);
        target.n4 = has(Nf::Smf).then(|| N4Gateway::new(n4_config()));
        target.shard_hosts = shard_hosts;
        let keeps = match (&target.documents, &target.stores) {
            (Some(documents), _) => documents.keeps(),
            (None, Some(stores)) => stores.keeps(),
            (None, None) => Keeps::Nothing,
        };
        target.take_overs = (0..shards).map(|_| TakeOver::new(keeps)).collect();
        if target.documents.is_some() || target.stores.is_some() {
            for (shard, take_over) in target.take_overs.iter_mut().enumerate() {
                let others = (0..shards as u16).filter(|other| usize::from(*other) != shard);
                take_over.await_sessions_of(others, &mut target.shard_hosts[shard].shard);
            }
        }
        if on_demand {
            self.before_crash.remove(&process);
        } else if let Err(failure) = self.check_restored(process) {
            self.watch.fail(failure.what);
        }
        self.introduce(process);
        for shard in 0..shards {
            self.send_to_shard(process, shard, ShardInput::Start);
            self.restore_later(process, shard);
        }
        self.notify_changes();
        self.start_n4(process);
        self.serve_set(process);
    }

    /// Makes a shard of the next run of a process, or of a shard that panicked.
    pub(super) fn make_shard(&mut self, (process, shard): (usize, usize)) -> ShardHost {
        let of_process = &self.processes[process];
        let incarnation = of_process.incarnation_of_instances(of_process.incarnation);
        let owners = Arc::clone(&of_process.owners_at_start);
        let journal = self.journal.clone();
        let factory = ShardFactory { plan: &self.plan, process, incarnation, shard, owners, journal };
        factory.make(&mut self.dice)
    }

    /// Kills a process: its shards, gateways and timers are lost.
    pub(super) fn kill_process(&mut self, process: usize) {
        let target = &mut self.processes[process];
        target.incarnation += 1;
        target.stores.iter_mut().for_each(Stores::end);
        target.shard_hosts.clear();
        target.n2 = None;
        target.n4 = None;
        (target.set, target.paused_until) = (None, None);
        self.disturbed = self.now;
        self.unstored.process_ended(process, self.now);
        let belongs_to_process = |timer: &&TimerId| match timer {
            TimerId::Nf { process: of, .. }
            | TimerId::N2Gateway { process: of }
            | TimerId::N4Gateway { process: of, .. } => *of == process,
            TimerId::Ue(_) | TimerId::Gnb(_) | TimerId::Upf(_) => false,
        };
        let timers: Vec<_> = self.timers.keys().filter(belongs_to_process).copied().collect();
        for timer in timers {
            self.timers.stop(timer);
        }
        self.journal().forget(process);
    }

    /// Delivers an input to a shard after a random delay of at most 1 ms. A shard receives its inputs in order.
    pub(super) fn send_to_shard(&mut self, process: usize, shard: usize, input: ShardInput) {
        let incarnation = self.processes[process].incarnation;
        let after = self.dice.millis(0, 1);
        let event = SimEvent::ToShard { process, incarnation, shard, input: Box::new(input) };
        self.in_order(Channel::Shard { process, shard }, after, event);
    }

    /// Passes an input to a shard now, and carries out the effects.
    pub(super) fn to_shard(&mut self, process: usize, shard: usize, mut input: ShardInput) {
        let panics = self.panics_at(process, &input);
        let mut effects = Vec::new();
        if matches!(input, ShardInput::Move(_) | ShardInput::Block(_)) {
            self.restore_all((process, shard), &mut effects);
        }
        let Process { shard_hosts, documents, stores, take_overs, .. } = &mut self.processes[process];
        let Some(host) = shard_hosts.get_mut(shard) else { return };
        let starts = matches!(input, ShardInput::Start);
        match stores.as_mut() {
            Some(stores) => stores.receive(shard, &mut input),
            None => input.drop_embedded(),
        }
        if let ShardInput::Block(passed) = &input {
            let change = passed.change;
            if let Some(documents) = documents {
                documents.assign_block(change.block, change.to.shard.0.into());
            }
            if let Some(stores) = stores {
                stores.take_block(self.now, shard, &mut host.shard, change.block);
            }
        }
        let take_over = &mut take_overs[shard];
        take_over.begin(&mut host.shard, &input);
        if let (ShardInput::Adopt(changes), Some(stores)) = (&input, stores.as_mut())
            && !stores.adopt(self.now, shard, &mut host.shard, changes)
        {
            self.adopt_later((process, shard), input);
            return self.end_turn((process, shard), effects);
        }
        host.shard.handle(self.now, input, &mut effects);
        if panics {
            return self.panic((process, shard));
        }
        take_over.handled(&host.shard);
        if starts && (documents.is_some() || stores.is_some()) {
            if let Some(documents) = documents {
                documents.note_start(shard);
            }
            host.shard.resume_contexts(self.now, &mut effects);
        }
        self.read_contexts((process, shard), &mut effects);
        self.end_turn((process, shard), effects);
    }

    /// Blocks of another instance could not be adopted: the store does not answer.
    fn adopt_later(&mut self, (process, shard): (usize, usize), input: ShardInput) {
        let incarnation = self.processes[process].incarnation;
        let event = SimEvent::ToShard { process, incarnation, shard, input: Box::new(input) };
        self.at(ADOPTION_RETRY, event);
    }

    /// A write of changes is due, without an input.
    pub(super) fn write_documents(&mut self, process: usize, shard: usize) {
        let mut effects = Vec::new();
        self.read_contexts((process, shard), &mut effects);
        self.end_turn((process, shard), effects);
    }

    /// Begins the reads among the effects; passes on what was read before, with its effects.
    pub(super) fn read_contexts(&mut self, (process, shard): (usize, usize), effects: &mut Vec<ShardEffect>) {
        let Process { shard_hosts, stores, .. } = &mut self.processes[process];
        let Some(host) = shard_hosts.get_mut(shard) else { return };
        let loaded = stores.as_mut().map(|stores| stores.take_loaded(self.now, shard, &mut host.shard));
        for (key, document) in loaded.unwrap_or_default() {
            host.shard.handle(self.now, ShardInput::Loaded { key, document }, effects);
        }
        self.begin_reads((process, shard), effects);
        self.restore_wanted((process, shard), effects);
    }

    /// Begins the reads among the effects.
    pub(super) fn begin_reads(&mut self, (process, shard): (usize, usize), effects: &mut Vec<ShardEffect>) {
        self.note_wanted((process, shard), effects);
        let Process { shard_hosts, stores: Some(stores), incarnation, .. } = &mut self.processes[process]
        else {
            return;
        };
        let Some(host) = shard_hosts.get_mut(shard) else { return };
        let incarnation = *incarnation;
        let (loads, others): (Vec<_>, Vec<_>) = std::mem::take(effects)
            .into_iter()
            .partition(|effect| matches!(effect, ShardEffect::Load { .. }));
        *effects = others;
        for load in &loads {
            if let ShardEffect::Load { key } = load {
                stores.load(self.now, shard, &mut host.shard, *key);
            }
        }
        if !loads.is_empty() {
            let after = self.dice.millis(0, 5);
            self.at(after, SimEvent::WriteDocuments { process, incarnation, shard });
        }
    }

    /// Stores what the turn changed, and carries out its effects. The process may crash at each point of that.
    pub(super) fn end_turn(&mut self, place: (usize, usize), mut effects: Vec<ShardEffect>) {
        let (process, shard) = place;
        if self.crashes_at(place, CrashSite::BeforeStore) {
            return;
        }
        let wrote = self.store_documents(process, shard, &mut effects);
        let Process { shard_hosts, stores, .. } = &mut self.processes[process];
        if stores.as_ref().is_none_or(|stores| stores.is_settled(shard)) {
            shard_hosts[shard].shard.complete_move(self.now, &mut effects);
        }
        // What was read before is handled in a turn of its own, whose changes are stored before its effects leave.
        self.begin_reads(place, &mut effects);
        let Process { documents, stores, .. } = &mut self.processes[process];
        for effect in &effects {
            if let Some(block) = block_that_leaves(effect) {
                documents.iter_mut().for_each(|documents| documents.pass_block(block));
                stores.iter_mut().for_each(|stores| stores.pass_block(shard, block));
            }
        }
        let Process { shard_hosts, take_overs, stores, .. } = &mut self.processes[process];
        take_overs[shard].note_answers(effects.iter());
        take_overs[shard].end_turn(&mut shard_hosts[shard].shard);
        if let Some(stores) = stores {
            // Timers are the shard's own, as in the runtime.
            let (timers, others): (Vec<_>, Vec<_>) = effects.into_iter().partition(|effect| {
                matches!(effect, ShardEffect::StartTimer { .. } | ShardEffect::StopTimer { .. })
            });
            effects = stores.release(shard, others);
            timers.into_iter().for_each(|effect| self.carry_out(process, shard, effect));
        }
        // Without a write, the state before the first send is that before the store.
        let (mut differs, mut has_sent) = (wrote, false);
        for effect in effects {
            if is_send(&effect) {
                if differs && self.crashes_at(place, CrashSite::BeforeSend) {
                    return;
                }
                (differs, has_sent) = (true, true);
            }
            self.carry_out(process, shard, effect);
        }
        if wrote || has_sent {
            self.crashes_at(place, CrashSite::AfterTurn);
        }
    }

    /// Writes what must be written at the end of a turn; returns whether that was anything.
    fn store_documents(&mut self, process: usize, shard: usize, effects: &mut Vec<ShardEffect>) -> bool {
        let Process { shard_hosts, documents, stores, incarnation, .. } = &mut self.processes[process];
        if let (Some(stores), Some(host)) = (stores, shard_hosts.get_mut(shard)) {
            let (wrote, due) = stores.end_turn(self.now, shard, &mut host.shard, effects);
            let incarnation = *incarnation;
            if let Some(due) = due {
                self.schedule(due, SimEvent::WriteDocuments { process, incarnation, shard });
            }
            return wrote;
        }
        let (Some(documents), Some(host)) = (documents, shard_hosts.get_mut(shard)) else { return false };
        let turn = documents.end_turn(self.now, shard, &mut host.shard);
        if let Some(due) = turn.next {
            let incarnation = self.processes[process].incarnation;
            self.schedule(due, SimEvent::WriteDocuments { process, incarnation, shard });
        }
        turn.wrote
    }

    fn carry_out(&mut self, process: usize, shard: usize, effect: ShardEffect) {
        match effect {
            ShardEffect::N2(effect) => self.n2_effect(process, effect),
            ShardEffect::N4(effect) => self.n4_effect(process, shard, *effect),
            ShardEffect::HttpCall { nf, tag, root, request, bearer, .. } => {
                self.http_call((process, shard, nf), tag, &root, request, bearer);
            }
            ShardEffect::ShardCall { shard, nf, from, request } => {
                self.send_to_shard(process, usize::from(shard), ShardInput::Request { from, nf, request });
            }
            ShardEffect::Forward { shard, nf, from, request, asked } => {
                let input = ShardInput::Forwarded { from, nf, request, asked };
                self.send_to_shard(process, usize::from(shard), input);
            }
            ShardEffect::NrfRestarted => {
                self.send_to_others((process, shard), || ShardInput::NrfRestarted);
            }
            ShardEffect::SessionsRestored => {
                let restored = || ShardInput::SessionsRestored { shard: shard as u16 };
                self.send_to_others((process, shard), restored);
            }
            ShardEffect::Answer { to, from, reply } => self.answer(process, to, from, reply),
            ShardEffect::StartTimer { nf, key, after } => {
                self.start_timer(TimerId::Nf { process, shard, nf, key }, after);
            }
            ShardEffect::StopTimer { nf, key } => self.timers.stop(TimerId::Nf { process, shard, nf, key }),
            ShardEffect::Store { nf, tag, request } => self.store((process, shard), nf, tag, request),
            ShardEffect::Event { nf, event } => {
                let (nf, text) = (crate::observed::actor(nf), format!("({:?}) {}", event.level, event.text));
                self.record(nf.clone(), nf, text);
            }
            ShardEffect::Load { key } => self.load((process, shard), key),
            ShardEffect::PassOn { shard: to, input } => self.pass_on((process, shard), to.into(), *input),
            ShardEffect::OwnersChanged(change) => self.owners_changed((process, shard), change),
            // The map has changed with the effect before.
            ShardEffect::Released(change) => self.journal().note_released((process, shard), change.block),
            ShardEffect::MoveEnded { change, result } => self.move_ended(process, change, result),
            // Taken by `begin_reads`.
            ShardEffect::Restore(_) => self.watch.fail("contexts that an input needs are not restored"),
            // Only the operator API uses these.
            ShardEffect::Ready | ShardEffect::Inspected { .. } => {}
        }
    }

    /// Sends all other shards of the process an input.
    pub(super) fn send_to_others(
        &mut self,
        (process, shard): (usize, usize),
        input: impl Fn() -> ShardInput,
    ) {
        for other in (0..self.plan.shards).filter(|other| *other != shard) {
            self.send_to_shard(process, other, input());
        }
    }

    fn answer(&mut self, process: usize, to: Caller, from: Arc<ApiRoot>, reply: Reply) {
        match to {
            Caller::Shard { shard, nf, tag } => {
                let input = ShardInput::Reply { nf, tag, from: Some(from), reply };
                self.send_to_shard(process, usize::from(shard), input);
            }
            Caller::Remote { exchange, .. } => self.http_answer(exchange, from, reply),
            Caller::Local { .. } => self.watch.fail("an answer to a caller of the same shard left the shard"),
        }
    }

    /// A context whose copy was dropped is read; the shard receives it after a random delay.
    fn load(&mut self, (process, shard): (usize, usize), key: StoredKey) {
        let document = self.processes[process].documents.as_ref().and_then(|it| it.load(shard, key));
        let incarnation = self.processes[process].incarnation;
        let after = self.dice.millis(0, 5);
        let input = Box::new(ShardInput::Loaded { key, document });
        let event = SimEvent::ToShard { process, incarnation, shard, input };
        self.in_order(Channel::Load { process, shard }, after, event);
    }

    /// Gives the NFs the contexts whose copies were dropped (`stateless`), so that the world can look at them. They are dropped
    /// again after their next transaction, unless `keep`.
    pub(super) fn load_copies(&mut self, keep: bool) {
        for process in 0..self.processes.len() {
            if keep {
                self.load_all(process);
            }
            let Some(documents) = &mut self.processes[process].documents else { continue };
            let stored = documents.keep_copies(keep);
            if !keep || !self.processes[process].is_running() {
                continue;
            }
            for (shard, key) in stored {
                let document = self.processes[process].documents.as_ref().and_then(|it| it.load(shard, key));
                self.to_shard(process, shard, ShardInput::Loaded { key, document });
            }
        }
    }

    /// As `load_copies`: the runtime's stores drop these copies at the end of the next turn.
    fn load_all(&mut self, process: usize) {
        for shard in 0..self.processes[process].shard_hosts.len() {
            let it = &mut self.processes[process];
            let (Some(stores), Some(host)) = (&mut it.stores, it.shard_hosts.get_mut(shard)) else { return };
            let mut effects = Vec::new();
            for (key, document) in stores.contexts(shard) {
                let input = ShardInput::Loaded { key, document: Some(document) };
                host.shard.handle(self.now, input, &mut effects);
            }
            self.read_contexts((process, shard), &mut effects);
            effects.into_iter().for_each(|effect| self.carry_out(process, shard, effect));
        }
    }

    /// The database executes the request at once; the shard receives the results after random delays, in the order of its
    /// requests.
    fn store(&mut self, (process, shard): (usize, usize), nf: Nf, tag: Tag, request: StoreRequest) {
        let result = Ok(self.database.handle(request));
        let incarnation = self.processes[process].incarnation;
        let after = self.dice.millis(0, 5);
        let input = Box::new(ShardInput::Stored { nf, tag, result });
        let event = SimEvent::ToShard { process, incarnation, shard, input };
        self.in_order(Channel::Store { process, shard }, after, event);
    }
}
