//! One shard: its part of every NF that the process hosts, on one thread, without locks.
//!
//! ```text
//!   ShardInput ──> queue ──> NF.handle ──> Outbox ──┬─> queue        calls and answers on this shard
//!                    ^                              └─> ShardEffect  everything else
//!                    └──────────────────────────────────┘
//! ```

mod contexts;

use super::absent::{Absent, Fate, Queued};
use super::access_token::{Bearer, Outgoing};
use super::agent::{Agent, Call, Route};
use super::intervals::Transactions;
use super::passage::{MoveError, Passages};
use super::reselection::Substitute;
use super::restoring::{Portion, Restoring};
use super::retransmission::{DueCall, ReplyAction, Retransmissions, Unanswered};
use crate::kit::document::Document;
use crate::kit::{
    self, AddressNews, Caller, Effect, Event, Input, Inspect, Instant, Level, N2Effect, N2Input, N4Effect,
    N4Input, NetworkFunction, Nf, Order, Outbox, Page, PassedBlock, PendingReply, SetInstances, StoreError,
    StoreRequest, StoreResponse, StoredKey, Tag, Target, Timer, TimerKey,
};
use pith_sbi::{ApiRoot, Cause, NfInstanceId, Problem, Request, Response};
use pith_types::{BlockId, BlockMove, ContextId};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// An input of a shard.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum ShardInput {
    /// The process has started: register the NFs.
    Start,
    /// From the N2 gateway.
    N2(N2Input),
    /// From the N4 gateway.
    N4(Box<N4Input>),
    /// A request from another shard or from an HTTP/2 client.
    Request { from: Caller, nf: Nf, request: Request },
    /// A request for a context that earlier shards of this process do not have.
    Forwarded {
        from: Caller,
        nf: Nf,
        request: Request,
        /// Number of shards that do not have the context.
        asked: u16,
    },
    /// The NRF has lost its state, as another shard has found out.
    NrfRestarted,
    /// The reply to a call that left the shard.
    Reply {
        nf: Nf,
        /// As given with the call.
        tag: Tag,
        /// The instance that answered, or that did not.
        from: Option<Arc<ApiRoot>>,
        reply: Result<Response, Box<Problem>>,
    },
    /// The producer refused the access token of a call that left the shard, and it was the first
    /// token ([`Bearer::renewed`]): the call is returned for another attempt.
    TokenRefused {
        nf: Nf,
        /// As given with the call.
        tag: Tag,
        /// The producer's API root.
        root: Arc<ApiRoot>,
        request: Box<Request>,
        /// The refused token.
        bearer: Bearer,
    },
    /// The result of a database request.
    Stored {
        nf: Nf,
        /// As given with the request.
        tag: Tag,
        result: Result<StoreResponse, StoreError>,
    },
    /// A timer expired.
    Timer { nf: Nf, key: TimerKey },
    /// An operator requests to see state.
    Inspect {
        /// Returned with the answer.
        exchange: u64,
        what: Inspect,
        page: Page,
    },
    /// An operator requests an action.
    Operate {
        /// Returned with the answer.
        exchange: u64,
        what: Box<Order>,
    },
    /// A connection over HTTP/2 to that authority (host and port) ended.
    ConnectionLost { authority: Arc<str> },
    /// The process is stopping: deregister the NFs from the NRF.
    Stop,
    /// The answer to a [`ShardEffect::Load`].
    Loaded {
        key: StoredKey,
        /// `None`: the store does not have it, or cannot read it.
        document: Option<Document>,
    },
    /// Contexts of a former run were restored ([`Shard::restore_context`]), in answer to a [`ShardEffect::Restore`] or between inputs.
    Restored(Portion),
    /// Contexts that the shell wrote are durable; the shard itself does nothing.
    Written,
    /// Pass a block to another shard. A [`ShardEffect::MoveEnded`] follows.
    Move(BlockMove),
    /// A block that another shard has passed.
    Block(Box<PassedBlock>),
    /// A block has passed to another shard.
    OwnersChanged(BlockMove),
    /// Instances of the process's set have come or gone.
    Instances(Arc<SetInstances>),
    /// Blocks that another instance had are this shard's now. The shell restores their contexts first.
    Adopt(Vec<BlockMove>),
    /// An input for a context that another shard has passed.
    ForContext { nf: Nf, id: ContextId, input: Box<Input> },
    /// A UE address in this block was released or used at another shard.
    Address { block: BlockId, news: AddressNews },
    /// Another shard has restored its sessions.
    SessionsRestored { shard: u16 },
}

impl ShardInput {
    /// Removes the document that a request or a reply brings: this process stores none.
    pub fn drop_embedded(&mut self) {
        match self {
            Self::Request { request, .. } | Self::Forwarded { request, .. } => drop(request.take_embedded()),
            Self::Reply { reply: Ok(response), .. } => drop(response.take_embedded()),
            _ => {}
        }
    }
}

/// An effect that the shell carries out for a shard.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum ShardEffect {
    /// For the N2 gateway.
    N2(N2Effect),
    /// For the N4 gateway.
    N4(Box<N4Effect>),
    /// Call over HTTP/2; a [`ShardInput::Reply`] follows.
    HttpCall {
        nf: Nf,
        /// Returned with the reply.
        tag: Tag,
        /// API root of the instance.
        root: Arc<ApiRoot>,
        /// The instance, if the NRF returned its id.
        instance: Option<NfInstanceId>,
        request: Request,
        /// The access token, if the service requires one. If the producer refuses it and it is not
        /// [`Bearer::renewed`], a [`ShardInput::TokenRefused`] follows instead of the reply.
        bearer: Option<Bearer>,
        /// The context for which the call is made, if the instance reads its document from the request.
        context: Option<StoredKey>,
    },
    /// Call another shard of this process; a [`ShardInput::Reply`] follows.
    ShardCall {
        shard: u16,
        nf: Nf,
        /// The caller, for the answer.
        from: Caller,
        request: Request,
    },
    /// Pass a request for a context that this shard does not have to another shard as [`ShardInput::Forwarded`].
    Forward {
        shard: u16,
        nf: Nf,
        /// The caller, for the answer.
        from: Caller,
        request: Request,
        /// As in [`ShardInput::Forwarded`].
        asked: u16,
    },
    /// The NRF has lost its state: all other shards get a [`ShardInput::NrfRestarted`].
    NrfRestarted,
    /// Answer a request that came from outside the shard.
    Answer {
        to: Caller,
        /// The answering instance.
        from: Arc<ApiRoot>,
        reply: Result<Response, Box<Problem>>,
    },
    /// Start or restart a timer.
    StartTimer { nf: Nf, key: TimerKey, after: Duration },
    /// Stop a timer.
    StopTimer { nf: Nf, key: TimerKey },
    /// Send a database request; a [`ShardInput::Stored`] follows.
    Store {
        nf: Nf,
        /// Returned with the result.
        tag: Tag,
        request: StoreRequest,
    },
    /// Load a dropped context; a [`ShardInput::Loaded`] follows.
    Load { key: StoredKey },
    /// Restore contexts of a former run now; a [`ShardInput::Restored`] follows.
    Restore(Portion),
    /// An event for logs and metrics.
    Event { nf: Nf, event: Event },
    /// All NFs that the shard registers are registered with the NRF; sent once.
    Ready,
    /// The answer to an operator's request.
    Inspected {
        /// As given with the request.
        exchange: u64,
        /// One JSON object for each entry.
        list: Vec<serde_json::Value>,
        /// Where the next page begins, if there may be more.
        next: Option<u32>,
    },
    /// The sessions of this shard are restored: all other shards get a [`ShardInput::SessionsRestored`], after all that this shard gave them before.
    SessionsRestored,
    /// Give another shard of the process an input, after all that this shard gave it before.
    PassOn { shard: u16, input: Box<ShardInput> },
    /// A block has passed to this shard: all other shards get a [`ShardInput::OwnersChanged`], and the server of the SBI routes by it.
    OwnersChanged(BlockMove),
    /// The block of a [`ShardInput::Move`] is released, and its contexts have left the shard: the instance to which it passes restores them
    /// from their documents.
    Released(BlockMove),
    /// A [`ShardInput::Move`] has ended.
    MoveEnded { change: BlockMove, result: Result<(), MoveError> },
}

/// The owner in the tags of replies to an earlier run: no key of any NF's table, and not that of calls without an owner.
pub(super) const FORMER_OWNER: u64 = u64::MAX - 2;

/// Capacity of the queues for inputs and effects that is kept between turns.
const KEPT: usize = 1024;

/// The NFs of one shard, and the agent that routes calls.
pub struct Shard {
    pub(super) functions: Vec<(Nf, Box<dyn NetworkFunction>)>,
    /// The indices of those that record which of their contexts change.
    tracked: Vec<usize>,
    /// The indices of those that have contexts.
    storing: Vec<usize>,
    pub(super) agent: Agent,
    retransmissions: Retransmissions,
    /// NF, input, and for a request the number of shards that do not have its context.
    pub(super) queue: VecDeque<Queued>,
    pub(super) absent: Absent,
    pub(super) restoring: Restoring,
    pub(super) passages: Passages,
    pub(super) outbox: Outbox,
    effects: Vec<Effect>,
    told_ready: bool,
    /// The number of this run of the shard: replies to earlier ones are not for it.
    pub(super) run: u16,
    /// The context whose load the last input waits for.
    held: Option<StoredKey>,
    /// Inputs since the start.
    pub(super) inputs: u64,
    transactions: Transactions,
}

impl Shard {
    /// A shard with those NFs and their agent.
    pub fn new(functions: Vec<(Nf, Box<dyn NetworkFunction>)>, agent: Agent, verbosity: Level) -> Self {
        let has_contexts = |(_, function): &(Nf, Box<dyn NetworkFunction>)| function.has_contexts();
        let storing =
            (0..functions.len()).filter(|at| functions.get(*at).is_some_and(has_contexts)).collect();
        Self {
            functions,
            tracked: Vec::new(),
            storing,
            agent,
            retransmissions: Retransmissions::default(),
            queue: VecDeque::new(),
            absent: Absent::default(),
            restoring: Restoring::default(),
            passages: Passages::default(),
            outbox: Outbox::new(verbosity),
            effects: Vec::new(),
            told_ready: false,
            run: 0,
            held: None,
            inputs: 0,
            transactions: Transactions::default(),
        }
    }

    /// Adds an NF that is not registered.
    #[cfg(test)]
    pub(super) fn add_for_test(&mut self, nf: Nf, function: Box<dyn NetworkFunction>) {
        if function.has_contexts() {
            self.storing.push(self.functions.len());
        }
        self.functions.push((nf, function));
    }

    /// Whether all its NFs are registered with the NRF.
    pub fn is_ready(&self) -> bool {
        self.agent.is_registered()
    }

    /// The API root in answers of the shard.
    pub fn own_root(&self) -> Arc<ApiRoot> {
        self.agent.own_root()
    }

    /// A tag as it leaves the shard.
    const fn outside_tag(&self, tag: Tag) -> Tag {
        Tag { run: self.run, ..tag }
    }

    /// A tag from outside as the NF gave it; that of an earlier run has an owner that does not exist.
    const fn own_tag(&self, tag: Tag) -> Tag {
        if tag.run == self.run { Tag { run: 0, ..tag } } else { Tag::new(FORMER_OWNER, 0) }
    }

    /// Handles one input: runs it and the calls that it causes through the NFs of the shard until
    /// none is left, and returns the effects for the shell.
    pub fn handle(&mut self, now: Instant, input: ShardInput, out: &mut Vec<ShardEffect>) {
        self.inputs += 1;
        if self.note_gateway(&input, out) {
            return self.advance_moves(out);
        }
        let Some(input) = self.forward_from_outside(input, out) else { return };
        let Some(input) = self.hold_if_operator(input) else { return };
        let is_n4 = matches!(input, ShardInput::N4(_));
        match input {
            ShardInput::Move(change) => self.begin_move(change, out),
            ShardInput::Block(passed) => self.take_block(now, *passed, out),
            ShardInput::OwnersChanged(change) => self.owners_changed(change),
            ShardInput::Instances(instances) => self.change_instances(&instances, out),
            ShardInput::Adopt(changes) => self.adopt(now, &changes, out),
            ShardInput::ForContext { nf, id, input } => self.passed_on((nf, id), *input, out),
            ShardInput::Address { block, news } => self.address_news(block, news, out),
            ShardInput::SessionsRestored { shard } => self.sessions_restored_at(shard),
            ShardInput::Timer { key, .. } if key.timer == Timer::BlockMove => self.move_is_late(key, out),
            ShardInput::Start => self.agent.start(&mut self.outbox),
            ShardInput::Stop => self.agent.stop(&mut self.outbox),
            ShardInput::Written => {}
            ShardInput::Loaded { key, document } => self.loaded(now, key, document.as_ref(), out),
            ShardInput::Restored(portion) => self.restored(now, portion, out),
            ShardInput::ConnectionLost { authority } => {
                self.agent.connection_lost(&authority, &mut self.outbox);
            }
            ShardInput::N2(input) => self.push(Nf::Amf, Input::N2(input)),
            ShardInput::N4(mut input) => {
                if let N4Input::Response { tag, .. } = &mut *input {
                    *tag = self.own_tag(*tag);
                }
                self.push(Nf::Smf, Input::N4(input));
            }
            ShardInput::Request { from, nf, request } => {
                self.push(nf, Input::Request { reply: PendingReply::owed_to(from), request });
            }
            ShardInput::Forwarded { from, nf, request, asked } => {
                let input = Input::Request { reply: PendingReply::owed_to(from), request };
                self.queue.push_back((nf, input, asked));
            }
            ShardInput::NrfRestarted => self.agent.renew_watches(now, &mut self.outbox),
            // The agent's calls are made again.
            ShardInput::Reply { nf: Nf::Agent, tag, .. } if tag.run != self.run => {}
            ShardInput::Reply { nf, tag, from, reply } => {
                self.replied(now, nf, self.own_tag(tag), from, reply, out);
            }
            ShardInput::TokenRefused { tag, .. } | ShardInput::Stored { tag, .. } if tag.run != self.run => {}
            ShardInput::TokenRefused { nf, tag, root, request, bearer } => {
                let tag = Tag { run: 0, ..tag };
                let call = Outgoing { nf, tag, root, request: *request, renewed: true };
                self.agent.token_refused(&call, &bearer);
                self.send_http(now, call, out);
            }
            ShardInput::Stored { nf, tag, result } => {
                self.push(nf, Input::Stored { tag: Tag { run: 0, ..tag }, result });
            }
            ShardInput::Timer { key, .. } if key.timer == Timer::SbiRetransmission => {
                self.repeat_call(now, key, out);
            }
            ShardInput::Timer { nf, key } => self.push(nf, Input::Timer(key)),
            ShardInput::Inspect { exchange, what, page } => out.push(self.inspect(exchange, what, &page)),
            ShardInput::Operate { exchange, what } => self.operate(now, exchange, &what, out),
        }
        self.route(now, Nf::Agent, out);
        self.run(now, out);
        self.transactions.note(now, &self.functions, is_n4);
        self.advance_moves(out);
        self.announce_sessions(out);
        if self.agent.take_nrf_restart() {
            out.push(ShardEffect::NrfRestarted);
        }
        // Frees the memory that a burst needed.
        self.queue.shrink_to(KEPT);
        self.effects.shrink_to(KEPT);
        if !self.told_ready && self.is_ready() {
            self.told_ready = true;
            out.push(ShardEffect::Ready);
        }
    }

    fn run(&mut self, now: Instant, out: &mut Vec<ShardEffect>) {
        while let Some(queued) = self.queue.pop_front() {
            let Some((nf, input, asked)) = self.take_if_here(now, queued, out) else { continue };
            let place = self.functions.iter().position(|(hosted, _)| *hosted == nf);
            if place.is_some_and(|place| self.is_elsewhere(place, &input, asked)) {
                self.forward_on(nf, input, asked, out);
                continue;
            }
            if let Some(input) = self.hold_if_absent(place, (nf, input, asked), out) {
                self.deliver(now, place, nf, input);
                self.load_missed(nf, out);
            }
            self.route(now, nf, out);
        }
    }

    /// Returns the input if its context, as far as it names one, is in this shard, or is loaded from here.
    fn take_if_here(&mut self, now: Instant, queued: Queued, out: &mut Vec<ShardEffect>) -> Option<Queued> {
        let is_alone = self.agent.instances().roots.is_empty();
        if is_alone && !self.passages.has_changed() && self.restoring.is_complete() {
            return Some(queued);
        }
        let (nf, input, asked) = queued;
        let input = self.redirect_if_elsewhere(now, (nf, input, asked), out)?;
        let input = self.forward_if_passed((nf, input, asked), out)?;
        self.hold_if_unrestored(now, (nf, input, asked), out)
    }

    fn inspect(&self, exchange: u64, what: Inspect, page: &Page) -> ShardEffect {
        if what == Inspect::Shard {
            return ShardEffect::Inspected { exchange, list: vec![self.describe()], next: None };
        }
        let (mut list, mut next) = (Vec::new(), None);
        for (_, function) in &self.functions {
            // Only one NF of the shard has what the operator requests.
            next = next.or(function.inspect_page(what, page, &mut list));
        }
        ShardEffect::Inspected { exchange, list, next }
    }

    /// Executes an operator's order, or holds it until the context that it needs is back.
    fn operate(&mut self, now: Instant, exchange: u64, what: &Order, out: &mut Vec<ShardEffect>) {
        let absent = |(nf, function): &(Nf, Box<dyn NetworkFunction>)| {
            function.absent_for(what).map(|id| StoredKey { nf: *nf, id })
        };
        match self.functions.iter().find_map(absent) {
            Some(key) if self.absent.hold_order(key, exchange, what) => {
                if self.absent.begin_load(key) {
                    out.push(ShardEffect::Load { key });
                }
            }
            _ => self.execute(now, exchange, what, out),
        }
    }

    fn execute(&mut self, now: Instant, exchange: u64, what: &Order, out: &mut Vec<ShardEffect>) {
        let mut list = Vec::new();
        for each in 0..self.functions.len() {
            let (nf, function) = &mut self.functions[each];
            let nf = *nf;
            function.operate(now, what, &mut self.outbox, &mut list);
            self.load_missed(nf, out);
            self.route(now, nf, out);
        }
        out.push(ShardEffect::Inspected { exchange, list, next: None });
    }

    pub(super) fn push(&mut self, nf: Nf, input: Input) {
        self.queue.push_back((nf, input, 0));
    }

    /// A request may name a context by its SUPI, which says nothing about the shard that has it. It is passed from shard to
    /// shard until one has the context; the last one answers that there is none.
    fn is_elsewhere(&self, place: usize, input: &Input, asked: u16) -> bool {
        let Input::Request { request, .. } = input else { return false };
        let lacks_context =
            || self.functions.get(place).is_some_and(|(_, function)| !function.has_context(request));
        asked + 1 < self.agent.shards() && lacks_context()
    }

    /// Passes a request to the next shard.
    fn forward_on(&self, nf: Nf, input: Input, asked: u16, out: &mut Vec<ShardEffect>) {
        let Input::Request { reply, request } = input else { return };
        let from = self.caller_outside(reply.caller());
        let shard = self.agent.next_shard();
        out.push(ShardEffect::Forward { shard, nf, from, request, asked: asked + 1 });
    }

    /// A caller as other shards see it.
    pub(super) fn caller_outside(&self, caller: Caller) -> Caller {
        match caller {
            Caller::Local { nf, tag } => {
                Caller::Shard { shard: self.agent.shard(), nf, tag: self.outside_tag(tag) }
            }
            other => other,
        }
    }

    /// Returns the input unless it waits for its context.
    fn hold_if_absent(
        &mut self,
        place: Option<usize>,
        (nf, input, asked): Queued,
        out: &mut Vec<ShardEffect>,
    ) -> Option<Input> {
        let Some((_, function)) = place.and_then(|place| self.functions.get(place)) else {
            return Some(input);
        };
        match self.absent.hold((nf, input, asked), function.as_ref(), &mut self.outbox) {
            Fate::Deliver(input) => Some(input),
            Fate::Load(key) => {
                self.held = Some(key);
                out.push(ShardEffect::Load { key });
                None
            }
            Fate::Wait(key) => {
                self.held = Some(key);
                None
            }
        }
    }

    /// Loads contexts that the last step needed besides its own.
    fn load_missed(&mut self, nf: Nf, out: &mut Vec<ShardEffect>) {
        if !self.absent.is_enabled() {
            return;
        }
        let Some((_, function)) = self.functions.iter_mut().find(|(hosted, _)| *hosted == nf) else { return };
        for id in function.take_missed() {
            let key = StoredKey { nf, id };
            if !function.is_resident(id) && self.absent.begin_load(key) {
                out.push(ShardEffect::Load { key });
            }
        }
    }

    /// A context is back, or lost: its inputs are delivered before others.
    fn loaded(
        &mut self,
        now: Instant,
        key: StoredKey,
        document: Option<&Document>,
        out: &mut Vec<ShardEffect>,
    ) {
        let waiting = self.absent.resume(key);
        if let Some((_, function)) = self.functions.iter_mut().find(|(nf, _)| *nf == key.nf) {
            let put = document
                .map(|document| function.put_context(now, key.id, document.octets(), &mut self.outbox));
            if let Some(Err(error)) = &put {
                self.outbox.log(Level::Error, || {
                    format!("context {} is unknown, its UE registers again: {error}", key.id)
                });
            }
            if !matches!(put, Some(Ok(()))) {
                function.forget_context(now, key.id, &mut self.outbox);
            }
        }
        self.load_missed(key.nf, out);
        self.route(now, key.nf, out);
        for (exchange, what) in self.absent.take_orders(key) {
            self.execute(now, exchange, &what, out);
        }
        for input in waiting.into_iter().rev() {
            self.queue.push_front(input);
        }
    }

    fn deliver(&mut self, now: Instant, place: Option<usize>, nf: Nf, input: Input) {
        if nf == Nf::Agent {
            return self.agent.handle(now, input, &mut self.outbox);
        }
        match place.and_then(|place| self.functions.get_mut(place)) {
            Some((_, function)) => kit::deliver(function.as_mut(), now, input, &mut self.outbox),
            None => {
                if let Input::Request { reply, .. } = input {
                    let problem = Problem::of_status(404).detail(format_args!("this shard has no {nf}"));
                    reply.refuse(problem, &mut self.outbox);
                }
            }
        }
    }

    /// Routes the effects of `nf`; those that stay on the shard are queued.
    pub(super) fn route(&mut self, now: Instant, nf: Nf, out: &mut Vec<ShardEffect>) {
        let mut effects = std::mem::take(&mut self.effects);
        self.outbox.drain_into(&mut effects);
        for effect in effects.drain(..) {
            self.route_one(now, nf, effect, out);
        }
        self.effects = effects;
        if self.agent.has_outcomes() {
            self.take_outcomes(now, out);
        }
    }

    /// Resumes or fails the calls whose discovery or access token request has ended.
    fn take_outcomes(&mut self, now: Instant, out: &mut Vec<ShardEffect>) {
        for call in self.agent.take_authorized() {
            self.send_http(now, call, out);
        }
        for (call, problem) in self.agent.take_refused() {
            self.replied(now, call.nf, call.tag, None, Err(Box::new(problem)), out);
        }
        for call in self.agent.take_ready() {
            self.call(now, call, out);
        }
        for call in self.agent.take_failed() {
            // Of the calls to an apiRoot only a notification that was not answered needs instances: it has not been refused.
            let problem = match call.target {
                Target::Root(_) => {
                    Problem::not_reachable("the NF does not answer, and the NRF has no other one")
                }
                _ => Problem::new(Cause::NfDiscoveryFailure),
            };
            self.fail(&call, problem);
        }
    }

    /// Calls and answers may stay on the shard; the shell carries out all other effects.
    fn route_one(&mut self, now: Instant, nf: Nf, effect: Effect, out: &mut Vec<ShardEffect>) {
        out.push(match effect {
            Effect::Call { tag, target, request } => {
                return self.call(now, Call { nf, tag, target, request }, out);
            }
            Effect::Answer { to, reply } => return self.answer(to, reply, out),
            Effect::N2(effect) => ShardEffect::N2(effect),
            Effect::N4(mut effect) => {
                if let N4Effect::Request { tag, .. } = &mut *effect {
                    tag.run = self.run;
                }
                ShardEffect::N4(effect)
            }
            Effect::StartTimer { key, after } => ShardEffect::StartTimer { nf, key, after },
            Effect::StopTimer(key) => ShardEffect::StopTimer { nf, key },
            Effect::Store { tag, request } => ShardEffect::Store { nf, tag: self.outside_tag(tag), request },
            Effect::Event(event) => ShardEffect::Event { nf, event },
        });
    }

    /// Routes a call; the agent holds it if discovery is needed first.
    fn call(&mut self, now: Instant, mut call: Call, out: &mut Vec<ShardEffect>) {
        let route = self.agent.route(now, &call);
        // The URI of a default notification subscription is in the profile of the AMF that was chosen (TS 29.518 5.2.2.3.5).
        if let (Request::N1MessageNotify(notification), Ok(Route::Http(root))) = (&mut call.request, &route)
            && let Some(uri) = self.agent.registration_callback(root)
        {
            notification.uri = uri;
        }
        // The AMF learns the SMF before the SMF can send anything.
        if let (Request::PostSmContexts(_), Ok(route)) = (&call.request, &route)
            && let Some(instance) = self.agent.instance_of(route, &call)
        {
            self.push(call.nf, Input::Routed { tag: call.tag, instance });
        }
        match route {
            Ok(Route::Local(target)) => {
                let reply = PendingReply::owed_to(Caller::Local { nf: call.nf, tag: call.tag });
                self.push(target, Input::Request { reply, request: call.request });
            }
            Ok(Route::Shard(shard, target)) => {
                let tag = self.outside_tag(call.tag);
                let from = Caller::Shard { shard: self.agent.shard(), nf: call.nf, tag };
                out.push(ShardEffect::ShardCall { shard, nf: target, from, request: call.request });
            }
            Ok(Route::Http(root)) => {
                let tag = if self.agent.is_for_stranger(&call, &root) {
                    let Some(tag) = self.retransmissions.note_for_stranger(&call, &root) else {
                        let problem = Problem::not_reachable("too many notifications are not answered");
                        return self.fail(&call, problem);
                    };
                    tag
                } else {
                    self.retransmissions.note(&call, &root)
                };
                let call = Outgoing { nf: call.nf, tag, root, request: call.request, renewed: false };
                self.send_http(now, call, out);
            }
            Ok(Route::Discover(question)) => {
                if let Some(discovery) = self.agent.discover(*question, call) {
                    self.call(now, discovery, out);
                }
            }
            Err(problem) => self.fail(&call, *problem),
        }
    }

    /// Sends a call over HTTP/2 once it has its access token.
    fn send_http(&mut self, now: Instant, call: Outgoing, out: &mut Vec<ShardEffect>) {
        let (send, ask) = self.agent.authorize(now, call);
        if let Some((Outgoing { nf, tag, root, request, .. }, bearer)) = send {
            let instance = self.agent.instance_at(&root, &request);
            let reads_embedded = self.agent.reads_embedded(&root, &request);
            let context = if reads_embedded { self.context_of_call(nf, tag) } else { None };
            let tag = self.outside_tag(tag);
            out.push(ShardEffect::HttpCall { nf, tag, root, instance, request, bearer, context });
        }
        if let Some(ask) = ask {
            self.call(now, ask, out);
        }
    }

    /// The context for which an NF makes a call: the one that the reply is for.
    fn context_of_call(&self, nf: Nf, tag: Tag) -> Option<StoredKey> {
        let tag = self.retransmissions.given(tag);
        let reply = Input::Reply { tag, from: None, reply: Err(Box::new(Problem::timed_out())) };
        let (_, function) = self.functions.iter().find(|(hosted, _)| *hosted == nf)?;
        Some(StoredKey { nf, id: function.context_of(&reply)? })
    }

    /// A reply to a call over HTTP/2: delivered, or the call waits for retransmission.
    fn replied(
        &mut self,
        now: Instant,
        nf: Nf,
        tag: Tag,
        from: Option<Arc<ApiRoot>>,
        reply: Result<Response, Box<Problem>>,
        out: &mut Vec<ShardEffect>,
    ) {
        match self.retransmissions.reply(tag, reply) {
            ReplyAction::Deliver(tag, reply) => self.push(nf, Input::Reply { tag, from, reply }),
            ReplyAction::RetryAfter(key, after) => {
                out.push(ShardEffect::StartTimer { nf: Nf::Agent, key, after })
            }
            ReplyAction::Reselect(unanswered) => self.reselect(now, *unanswered, out),
        }
    }

    /// The pause of a call is over. An AMF that no longer has the UE's context does not repeat that it serves the UE: the AMF to which it has
    /// transferred the context does. A session that has ended does not subscribe.
    fn repeat_call(&mut self, now: Instant, key: TimerKey, out: &mut Vec<ShardEffect>) {
        let of_context = self.retransmissions.of_context(key);
        if of_context.is_some_and(|(nf, tag)| self.context_of_call(nf, tag).is_none()) {
            self.retransmissions.supersede(key);
        }
        match self.retransmissions.due_call(key) {
            Some(DueCall::Send(nf, tag, root, request)) => {
                self.send_http(now, Outgoing { nf, tag, root, request: *request, renewed: false }, out);
            }
            Some(DueCall::Superseded(nf, tag)) => {
                let reply = Err(Box::new(Problem::timed_out()));
                self.push(nf, Input::Reply { tag, from: None, reply });
            }
            None => {}
        }
    }

    /// A notification was not answered: it is for another instance of the consumer's set, if there is one.
    fn reselect(&mut self, now: Instant, unanswered: Unanswered, out: &mut Vec<ShardEffect>) {
        let Unanswered { nf, tag, root, request, reply } = unanswered;
        let call = Call { nf, tag, target: Target::Root(Arc::clone(&root)), request };
        match self.agent.reselect(now, &call, &root) {
            Some(Substitute::Root(root)) => {
                let is_for_stranger = self.agent.is_for_stranger(&call, &root);
                let noted =
                    if is_for_stranger { self.retransmissions.note_last(&call, &root) } else { Some(tag) };
                let Some(tag) = noted else {
                    return self.push(nf, Input::Reply { tag, from: None, reply });
                };
                let Call { nf, request, .. } = call;
                self.send_http(now, Outgoing { nf, tag, root, request, renewed: false }, out);
            }
            Some(Substitute::Discover(question)) => {
                if let Some(discovery) = self.agent.discover(question, call) {
                    self.call(now, discovery, out);
                }
            }
            None => self.push(nf, Input::Reply { tag, from: None, reply }),
        }
    }

    /// Answers a call that can't be routed.
    fn fail(&mut self, call: &Call, problem: Problem) {
        let input = Input::Reply { tag: call.tag, from: None, reply: Err(Box::new(problem)) };
        self.push(call.nf, input);
    }

    fn answer(&mut self, to: Caller, reply: Result<Response, Box<Problem>>, out: &mut Vec<ShardEffect>) {
        let from = self.agent.own_root();
        match to {
            Caller::Local { nf, tag } => self.push(nf, Input::Reply { tag, from: Some(from), reply }),
            to => out.push(ShardEffect::Answer { to, from, reply }),
        }
    }
}
