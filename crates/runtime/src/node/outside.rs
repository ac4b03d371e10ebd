//! Effects that leave a shard, and inputs from other threads.

use super::moves::Moves;
use super::set::SetHandle;
use crate::api::Topic;
use crate::clock::Clock;
use crate::edge::{EdgeHandle, EdgeMessage};
use crate::sbi::{Exchange, HttpHandle, Shards};
use crate::shard::{Outside, ShardQueue};
use crate::store::StoreHandle;
use crate::token::ShardToken;
use pith_nf::fabric::{Bearer, ShardEffect, ShardInput, shard_of_remote};
use pith_nf::kit::{Caller, Inspect, Nf, Order, Page, Tag};
use pith_sbi::{ApiRoot, Reply, Request};
use pith_types::ShardId;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The state of the process's start.
#[derive(Debug)]
pub(super) struct Readiness {
    clock: Clock,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    missing: usize,
    ready_after: Option<Duration>,
    draining: bool,
}

impl Readiness {
    pub(super) fn new(clock: Clock, shards: usize) -> Arc<Self> {
        let state = State { missing: shards, ready_after: None, draining: false };
        Arc::new(Self { clock, state: Mutex::new(state), changed: Condvar::new() })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a shard that has become ready.
    fn shard_is_ready(&self) {
        let mut state = self.lock();
        state.missing = state.missing.saturating_sub(1);
        if state.missing == 0 && state.ready_after.is_none() {
            state.ready_after = Some(self.uptime());
            self.changed.notify_all();
        }
    }

    pub(super) fn wait(&self, timeout: Duration) -> Option<Duration> {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, timeout, |state| state.ready_after.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.ready_after
    }

    pub(super) fn drain(&self) {
        self.lock().draining = true;
    }

    pub(super) fn ready_after(&self) -> Option<Duration> {
        self.lock().ready_after
    }

    pub(super) fn uptime(&self) -> Duration {
        Duration::from_micros(self.clock.now().as_micros())
    }

    pub(super) fn state(&self) -> &'static str {
        let state = self.lock();
        match (state.draining, state.ready_after) {
            (true, _) => "draining",
            (false, Some(_)) => "ready",
            (false, None) => "starting",
        }
    }
}

/// Carries out the effects of one shard.
pub(super) struct ProcessOutside {
    shard: u16,
    edge: Option<EdgeHandle>,
    edge_has_more: bool,
    store: Option<StoreHandle<ShardToken>>,
    http: HttpHandle,
    shards: Vec<ShardQueue>,
    readiness: Arc<Readiness>,
    moves: Arc<Moves>,
    set: Option<SetHandle>,
}

impl ProcessOutside {
    pub(super) fn new(
        shard: u16,
        edge: Option<EdgeHandle>,
        store: Option<StoreHandle<ShardToken>>,
        http: HttpHandle,
        shards: Vec<ShardQueue>,
        readiness: Arc<Readiness>,
        (moves, set): (Arc<Moves>, Option<SetHandle>),
    ) -> Self {
        Self { shard, edge, edge_has_more: false, store, http, shards, readiness, moves, set }
    }

    fn tell_edge(&mut self, message: EdgeMessage) {
        if let Some(edge) = &self.edge {
            edge.send(message);
            self.edge_has_more = true;
        }
    }

    fn to_shard(&self, shard: u16, input: ShardInput) {
        if let Some(queue) = self.shards.get(usize::from(shard)) {
            queue.send(input);
        }
    }

    fn to_others(&self, input: impl Fn() -> ShardInput) {
        let others = (0..self.shards.len() as u16).filter(|shard| *shard != self.shard);
        others.for_each(|shard| self.to_shard(shard, input()));
    }

    fn token(&self, nf: Nf, tag: Tag) -> ShardToken {
        ShardToken { shard: self.shard, nf, tag }
    }

    fn answer(&self, to: Caller, from: Arc<ApiRoot>, reply: Reply) {
        match to {
            Caller::Shard { shard, nf, tag } => {
                self.to_shard(shard, ShardInput::Reply { nf, tag, from: Some(from), reply });
            }
            Caller::Remote { exchange, .. } => self.http.answer(exchange, reply),
            Caller::Local { .. } => tracing::error!(
                "an answer to a local caller left its shard: this is a bug in Pith, please report it"
            ),
        }
    }
}

impl Outside for ProcessOutside {
    fn carry_out(&mut self, effect: ShardEffect) {
        match effect {
            ShardEffect::N2(effect) => self.tell_edge(EdgeMessage::N2(effect)),
            ShardEffect::N4(effect) => {
                let shard = ShardId(self.shard as u8);
                self.tell_edge(EdgeMessage::N4 { shard, effect });
            }
            ShardEffect::HttpCall { nf, tag, root, instance, request, bearer, .. } => {
                self.http.call(self.token(nf, tag), root, instance, request, bearer)
            }
            ShardEffect::ShardCall { shard, nf, from, request } => {
                self.to_shard(shard, ShardInput::Request { from, nf, request });
            }
            ShardEffect::Forward { shard, nf, from, request, asked } => {
                self.to_shard(shard, ShardInput::Forwarded { from, nf, request, asked });
            }
            ShardEffect::NrfRestarted => {
                self.to_others(|| ShardInput::NrfRestarted);
            }
            ShardEffect::SessionsRestored => {
                self.to_others(|| ShardInput::SessionsRestored { shard: self.shard });
            }
            ShardEffect::Answer { to, from, reply } => self.answer(to, from, reply),
            ShardEffect::Store { nf, tag, request } => {
                if let Some(store) = &self.store {
                    store.request(self.token(nf, tag), request);
                }
            }
            ShardEffect::Event { nf, event } => crate::events::log_event(nf, &event),
            ShardEffect::Inspected { exchange, list, next } => self.http.inspected(exchange, list, next),
            ShardEffect::Ready => self.readiness.shard_is_ready(),
            ShardEffect::PassOn { shard, input } => self.to_shard(shard, *input),
            ShardEffect::OwnersChanged(change) => {
                self.moves.note(change);
                if let Some(set) = &self.set {
                    set.moved(change);
                }
                self.to_others(|| ShardInput::OwnersChanged(change));
            }
            // The map has changed with the effect before.
            ShardEffect::Released(_) => {}
            ShardEffect::MoveEnded { change, result } => {
                if let Some(set) = self.set.as_ref().filter(|_| self.moves.is_of_set(change)) {
                    set.move_ended(change, result.is_ok());
                }
                if let Some(exchange) = self.moves.end(change.version) {
                    let refusal = result.err().map(|error| error.to_string());
                    let entry = serde_json::json!({ "block": change.block.number(), "refusal": refusal });
                    self.http.inspected(exchange, vec![entry], None);
                }
            }
            // The shard's driver runs the timers, and loads contexts.
            ShardEffect::StartTimer { .. }
            | ShardEffect::StopTimer { .. }
            | ShardEffect::Load { .. }
            | ShardEffect::Restore(_) => {}
        }
    }

    fn flush(&mut self) {
        if std::mem::take(&mut self.edge_has_more)
            && let Some(edge) = &self.edge
        {
            edge.wake();
        }
        if let Some(store) = &self.store {
            store.process_or_wake();
        }
        self.shards.iter().for_each(ShardQueue::process_or_wake);
    }
}

/// The shards of the process as the HTTP thread uses them.
pub(super) struct ProcessShards {
    pub(super) shards: Vec<ShardQueue>,
    /// The owner of each block of ids, and what operators move.
    pub(super) moves: Arc<Moves>,
    pub(super) edge: Option<EdgeHandle>,
    pub(super) nfs: Vec<Nf>,
}

impl ProcessShards {
    fn send(&self, shard: u16, input: ShardInput) {
        if let Some(queue) = self.shards.get(usize::from(shard)) {
            queue.send(input);
            queue.process_or_wake();
        }
    }

    /// Queries all shards if they host the NF.
    fn inspect_nf(&self, nf: Nf, what: Inspect, exchange: u64) -> usize {
        if !self.nfs.contains(&nf) {
            return 0;
        }
        for shard in &self.shards {
            shard.send(ShardInput::Inspect { exchange, what, page: Page::ALL });
            shard.process_or_wake();
        }
        self.shards.len()
    }

    /// Asks one shard for a page, if it is there and hosts the NF that knows.
    fn ask_shard(&self, nf: Nf, what: Inspect, shard: u16, page: Page, exchange: u64) -> usize {
        let shard = self.shards.get(usize::from(shard)).filter(|_| self.nfs.contains(&nf));
        let Some(shard) = shard else { return 0 };
        shard.send(ShardInput::Inspect { exchange, what, page });
        shard.process_or_wake();
        1
    }

    /// Sends an operator's command to all shards if they host the NF that executes it.
    fn operate(&self, what: Order, exchange: u64) -> usize {
        let nf = match what {
            Order::Deregister { .. }
            | Order::Locate { .. }
            | Order::ResetGnb { .. }
            | Order::Capacity(_)
            | Order::Endpoint { .. } => Nf::Amf,
            Order::Branch { .. } | Order::Unbranch { .. } => Nf::Smf,
            Order::AddRule { .. } | Order::RemoveRule { .. } => Nf::Pcf,
            Order::NotifyChanges => Nf::Udr,
        };
        if !self.nfs.contains(&nf) {
            return 0;
        }
        for shard in &self.shards {
            shard.send(ShardInput::Operate { exchange, what: Box::new(what.clone()) });
            shard.process_or_wake();
        }
        self.shards.len()
    }

    fn ask_edge(&self, message: EdgeMessage) -> usize {
        let Some(edge) = &self.edge else { return 0 };
        edge.send(message);
        edge.wake();
        1
    }
}

impl Shards for ProcessShards {
    fn count(&self) -> u16 {
        self.shards.len() as u16
    }

    fn owner(&self, request: &Request) -> Option<u16> {
        let (owners, instance) = self.moves.owners();
        shard_of_remote(&owners, instance, request)
    }

    fn is_full(&self, shard: u16) -> bool {
        self.shards.get(usize::from(shard)).is_some_and(ShardQueue::is_full)
    }

    fn request(&self, shard: u16, from: Exchange, nf: Nf, request: Request) {
        let Exchange { id: exchange, client } = from;
        self.send(shard, ShardInput::Request { from: Caller::Remote { exchange, client }, nf, request });
    }

    fn token_refused(&self, token: ShardToken, root: Arc<ApiRoot>, request: Box<Request>, bearer: Bearer) {
        let ShardToken { shard, nf, tag } = token;
        self.send(shard, ShardInput::TokenRefused { nf, tag, root, request, bearer });
    }

    fn reply(&self, token: ShardToken, from: Option<Arc<ApiRoot>>, reply: Reply) {
        self.send(token.shard, ShardInput::Reply { nf: token.nf, tag: token.tag, from, reply });
    }

    fn connection_lost(&self, authority: &str) {
        let authority: Arc<str> = authority.into();
        for shard in 0..self.count() {
            self.send(shard, ShardInput::ConnectionLost { authority: Arc::clone(&authority) });
        }
    }

    fn inspect(&self, topic: Topic, exchange: u64) -> usize {
        match topic {
            Topic::Ues(shard, page) => self.ask_shard(Nf::Amf, Inspect::Ues, shard, page, exchange),
            Topic::Sessions(shard, page) => self.ask_shard(Nf::Smf, Inspect::Sessions, shard, page, exchange),
            Topic::Instances => self.inspect_nf(Nf::Nrf, Inspect::Instances, exchange),
            Topic::Gnbs => self.ask_edge(EdgeMessage::InspectGnbs(exchange)),
            Topic::Upfs => self.ask_edge(EdgeMessage::InspectUpfs(exchange)),
            Topic::Order(what) => self.operate(what, exchange),
            Topic::Shards => {
                for shard in 0..self.count() {
                    self.send(shard, ShardInput::Inspect { exchange, what: Inspect::Shard, page: Page::ALL });
                }
                self.shards.len()
            }
            Topic::Move { block, to } => {
                let (owner, change) = self.moves.begin(block, to, exchange);
                self.send(owner, ShardInput::Move(change));
                1
            }
        }
    }
}
