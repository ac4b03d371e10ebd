//! Processes: shards with their NFs, and their gateways.

use super::{Alarm, Channel, SimEvent, World};
use crate::network::{self, Cell, EPOCH, Maker};
use pith_nf::fabric::{ShardEffect, ShardInput};
use pith_nf::gateway::n2::N2Gateway;
use pith_nf::gateway::n4::N4Gateway;
use pith_nf::kit::{Caller, Nf, StoreRequest, Tag};
use pith_sbi::{ApiRoot, Reply};
use std::sync::Arc;

/// A process that hosts NFs; dead before its first start and after a kill.
pub(super) struct Process {
    pub nfs: Vec<Nf>,
    pub life: u32,
    pub cells: Vec<Cell>,
    pub n2: Option<N2Gateway>,
    pub n4: Option<N4Gateway>,
}

impl Process {
    pub fn new(nfs: Vec<Nf>) -> Self {
        Self { nfs, life: 0, cells: Vec::new(), n2: None, n4: None }
    }

    pub fn is_alive(&self, life: u32) -> bool {
        self.life == life && !self.cells.is_empty()
    }

    pub fn is_up(&self) -> bool {
        !self.cells.is_empty()
    }
}

impl World {
    /// A process starts with empty NFs.
    pub(super) fn start_process(&mut self, process: usize) {
        let shards = self.plan.shards;
        let life = self.processes[process].life;
        let notes = self.notes.clone();
        let make = |shard| Maker { plan: &self.plan, process, life, shard, notes: notes.clone() };
        let cells: Vec<_> = (0..shards).map(|shard| make(shard).make(&mut self.dice)).collect();
        let started = EPOCH + self.now.as_micros() / 1_000_000;
        let it = &mut self.processes[process];
        it.n2 = it.nfs.contains(&Nf::Amf).then(|| N2Gateway::new(network::n2_config(shards)));
        it.n4 = it
            .nfs
            .contains(&Nf::Smf)
            .then(|| N4Gateway::new(network::n4_config(process, &self.plan, started)));
        it.cells = cells;
        for shard in 0..shards {
            self.send_to_shard(process, shard, ShardInput::Start);
        }
        self.start_n4(process);
    }

    /// A process is killed and loses its state.
    pub(super) fn kill_process(&mut self, process: usize) {
        let it = &mut self.processes[process];
        it.life += 1;
        it.cells.clear();
        it.n2 = None;
        it.n4 = None;
        let is_its = |alarm: &&Alarm| match alarm {
            Alarm::Nf { process: of, .. } | Alarm::N4Gateway { process: of, .. } => *of == process,
            Alarm::Ue(_) | Alarm::Gnb(_) | Alarm::Upf(_) => false,
        };
        let alarms: Vec<_> = self.alarms.keys().filter(is_its).copied().collect();
        alarms.into_iter().for_each(|alarm| self.alarms.stop(alarm));
        self.journal().forget(process);
    }

    /// Adds an input to a shard's inbox.
    pub(super) fn send_to_shard(&mut self, process: usize, shard: usize, input: ShardInput) {
        let life = self.processes[process].life;
        let after = self.dice.millis(0, 1);
        let event = SimEvent::ToShard { process, life, shard, input: Box::new(input) };
        self.in_order(Channel::Shard { process, shard }, after, event);
    }

    /// Passes an input to a shard, and carries out its effects.
    pub(super) fn to_shard(&mut self, process: usize, shard: usize, input: ShardInput) {
        let Some(cell) = self.processes[process].cells.get_mut(shard) else { return };
        let mut effects = Vec::new();
        cell.shard.handle(self.now, input, &mut effects);
        for effect in effects {
            self.carry_out(process, shard, effect);
        }
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
            ShardEffect::Answer { to, from, reply } => self.answer(process, to, from, reply),
            ShardEffect::StartTimer { nf, key, after } => {
                self.set_alarm(Alarm::Nf { process, shard, nf, key }, after);
            }
            ShardEffect::StopTimer { nf, key } => self.alarms.stop(Alarm::Nf { process, shard, nf, key }),
            ShardEffect::Store { nf, tag, request } => self.store((process, shard), nf, tag, request),
            ShardEffect::Event { nf, event } => {
                let (who, what) = (crate::observed::actor(nf), format!("({:?}) {}", event.level, event.text));
                self.record(who.clone(), who, what);
            }
            // For operators.
            ShardEffect::Ready | ShardEffect::Inspected { .. } => {}
        }
    }

    fn answer(&mut self, process: usize, to: Caller, from: Arc<ApiRoot>, reply: Reply) {
        match to {
            Caller::Shard { shard, nf, tag } => {
                let input = ShardInput::Reply { nf, tag, from: Some(from), reply };
                self.send_to_shard(process, usize::from(shard), input);
            }
            Caller::Remote { exchange, .. } => self.http_answer(exchange, from, reply),
            Caller::Local { .. } => self.watch.fail("a local answer left its shard"),
        }
    }

    /// The database executes the request now and replies later, in the order of each shard.
    fn store(&mut self, (process, shard): (usize, usize), nf: Nf, tag: Tag, request: StoreRequest) {
        let result = Ok(self.database.handle(request));
        let life = self.processes[process].life;
        let after = self.dice.millis(0, 5);
        let input = Box::new(ShardInput::Stored { nf, tag, result });
        let event = SimEvent::ToShard { process, life, shard, input };
        self.in_order(Channel::Store { process, shard }, after, event);
    }
}
