//! One shard: an instance of every NF that the process hosts, on one thread, without locks.
//!
//! ```text
//!   ShardInput ──> queue ──> NF.handle ──> Outbox ──┬─> queue        calls and answers on this shard
//!                    ^                              └─> ShardEffect  everything else
//!                    └──────────────────────────────────┘
//! ```

use super::access_token::{Bearer, Outgoing};
use super::agent::{Agent, Call, Way};
use super::repetition::{Outcome, Repetitions};
use crate::kit::{
    Caller, Effect, Event, Input, Inspect, Instant, Level, N2Effect, N2Input, N4Effect, N4Input,
    NetworkFunction, Nf, Order, Outbox, StoreError, StoreRequest, StoreResponse, Tag, Timer, TimerKey,
};
use pith_sbi::{ApiRoot, Cause, NfInstanceId, Problem, Request, Response};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// One thing that happened to a shard.
#[derive(Debug)]
pub enum ShardInput {
    /// The process is up: register the NFs.
    Start,
    /// From the N2 gateway.
    N2(N2Input),
    /// From the N4 gateway.
    N4(Box<N4Input>),
    /// A request of another shard or of a client beyond HTTP/2.
    Request {
        /// Whom to answer.
        from: Caller,
        /// Which NF is asked.
        nf: Nf,
        /// What is asked.
        request: Request,
    },
    /// The answer to a call that left the shard.
    Reply {
        /// Who called.
        nf: Nf,
        /// As given with the call.
        tag: Tag,
        /// Who answered.
        from: Option<Arc<ApiRoot>>,
        /// The answer.
        reply: Result<Response, Box<Problem>>,
    },
    /// The producer refused the access token of a call that left the shard, and it was the first one
    /// ([`Bearer::renewed`]): the call comes back.
    TokenRefused {
        /// Who called.
        nf: Nf,
        /// As given with the call.
        tag: Tag,
        /// The instance.
        root: Arc<ApiRoot>,
        /// What was asked.
        request: Box<Request>,
        /// The token.
        bearer: Bearer,
    },
    /// From the database.
    Stored {
        /// Who asked.
        nf: Nf,
        /// As given with the request.
        tag: Tag,
        /// What came of it.
        result: Result<StoreResponse, StoreError>,
    },
    /// A timer ran out.
    Timer {
        /// Whose.
        nf: Nf,
        /// Which.
        key: TimerKey,
    },
    /// An operator asks to see something.
    Inspect {
        /// Comes back with the answer.
        exchange: u64,
        /// What.
        what: Inspect,
    },
    /// An operator wants something done.
    Operate {
        /// Comes back with the answer.
        exchange: u64,
        /// What.
        what: Order,
    },
    /// The process is going down: take the NFs out of the NRF.
    Stop,
}

/// One thing that the shell has to do for a shard.
#[derive(Debug)]
pub enum ShardEffect {
    /// For the N2 gateway.
    N2(N2Effect),
    /// For the N4 gateway.
    N4(Box<N4Effect>),
    /// Call over HTTP/2; a [`ShardInput::Reply`] follows.
    HttpCall {
        /// Who calls.
        nf: Nf,
        /// Comes back with the reply.
        tag: Tag,
        /// Where the instance stands.
        root: Arc<ApiRoot>,
        /// The instance, where the NRF named it.
        instance: Option<NfInstanceId>,
        /// What is asked.
        request: Request,
        /// The access token, where the service wants one. If the producer refuses it and it is not
        /// [`Bearer::renewed`], a [`ShardInput::TokenRefused`] follows instead.
        bearer: Option<Bearer>,
    },
    /// Call another shard of this process; a [`ShardInput::Reply`] follows.
    ShardCall {
        /// Which shard.
        shard: u16,
        /// Which NF there.
        nf: Nf,
        /// Who calls: to be answered there.
        from: Caller,
        /// What is asked.
        request: Request,
    },
    /// Answer a request that came from outside the shard.
    Answer {
        /// Who asked.
        to: Caller,
        /// The answering instance.
        from: Arc<ApiRoot>,
        /// The answer.
        reply: Result<Response, Box<Problem>>,
    },
    /// Start a timer, or start it anew.
    StartTimer {
        /// Whose.
        nf: Nf,
        /// Which.
        key: TimerKey,
        /// When it runs out.
        after: Duration,
    },
    /// Stop a timer.
    StopTimer {
        /// Whose.
        nf: Nf,
        /// Which.
        key: TimerKey,
    },
    /// Ask the database; a [`ShardInput::Stored`] follows.
    Store {
        /// Who asks.
        nf: Nf,
        /// Comes back with the result.
        tag: Tag,
        /// What is asked.
        request: StoreRequest,
    },
    /// Tell the operator.
    Event {
        /// Who tells.
        nf: Nf,
        /// What.
        event: Event,
    },
    /// All NFs of the shard are registered with the NRF; told once.
    Ready,
    /// What an operator asked to see, or has had done.
    Inspected {
        /// As given with the question.
        exchange: u64,
        /// One JSON object an entry.
        list: Vec<serde_json::Value>,
    },
}

/// Room for so many inputs and effects is kept from one turn to the next.
const KEPT: usize = 1024;

/// The NFs of one shard and the agent that finds the way between them.
pub struct Shard {
    functions: Vec<(Nf, Box<dyn NetworkFunction>)>,
    agent: Agent,
    repetitions: Repetitions,
    queue: VecDeque<(Nf, Input)>,
    outbox: Outbox,
    effects: Vec<Effect>,
    told_ready: bool,
}

impl Shard {
    /// A shard of those NFs.
    pub fn new(functions: Vec<(Nf, Box<dyn NetworkFunction>)>, agent: Agent, verbosity: Level) -> Self {
        Self {
            functions,
            agent,
            repetitions: Repetitions::default(),
            queue: VecDeque::new(),
            outbox: Outbox::new(verbosity),
            effects: Vec::new(),
            told_ready: false,
        }
    }

    /// Whether all its NFs are registered with the NRF.
    pub fn is_ready(&self) -> bool {
        self.agent.is_registered()
    }

    /// Takes note of one thing, follows it through all NFs of the shard until nothing is left to
    /// do here, and says what is to be done outside.
    pub fn handle(&mut self, now: Instant, input: ShardInput, out: &mut Vec<ShardEffect>) {
        match input {
            ShardInput::Start => self.agent.start(&mut self.outbox),
            ShardInput::Stop => self.agent.stop(&mut self.outbox),
            ShardInput::N2(input) => self.queue.push_back((Nf::Amf, Input::N2(input))),
            ShardInput::N4(input) => self.queue.push_back((Nf::Smf, Input::N4(input))),
            ShardInput::Request { from, nf, request } => {
                self.queue.push_back((nf, Input::Request { from, request }))
            }
            ShardInput::Reply { nf, tag, from, reply } => self.replied(nf, tag, from, reply, out),
            ShardInput::TokenRefused { nf, tag, root, request, bearer } => {
                let call = Outgoing { nf, tag, root, request: *request, renewed: true };
                self.agent.token_refused(&call, &bearer);
                self.send_http(now, call, out);
            }
            ShardInput::Stored { nf, tag, result } => {
                self.queue.push_back((nf, Input::Stored { tag, result }))
            }
            ShardInput::Timer { key, .. } if key.timer == Timer::SbiRepetition => {
                if let Some((nf, tag, root, request)) = self.repetitions.again(key) {
                    self.send_http(now, Outgoing { nf, tag, root, request, renewed: false }, out);
                }
            }
            ShardInput::Timer { nf, key } => self.queue.push_back((nf, Input::Timer(key))),
            ShardInput::Inspect { exchange, what } => out.push(self.inspect(exchange, what)),
            ShardInput::Operate { exchange, what } => self.operate(now, exchange, &what, out),
        }
        self.route(now, Nf::Agent, out);
        while let Some((nf, input)) = self.queue.pop_front() {
            self.deliver(now, nf, input);
            self.route(now, nf, out);
        }
        // What a burst needed is given back.
        self.queue.shrink_to(KEPT);
        self.effects.shrink_to(KEPT);
        if !self.told_ready && self.is_ready() {
            self.told_ready = true;
            out.push(ShardEffect::Ready);
        }
    }

    fn inspect(&self, exchange: u64, what: Inspect) -> ShardEffect {
        let mut list = Vec::new();
        for (_, function) in &self.functions {
            function.inspect(what, &mut list);
        }
        ShardEffect::Inspected { exchange, list }
    }

    fn operate(&mut self, now: Instant, exchange: u64, what: &Order, out: &mut Vec<ShardEffect>) {
        let mut list = Vec::new();
        for each in 0..self.functions.len() {
            let (nf, function) = &mut self.functions[each];
            let nf = *nf;
            function.operate(now, what, &mut self.outbox, &mut list);
            self.route(now, nf, out);
        }
        out.push(ShardEffect::Inspected { exchange, list });
    }

    fn deliver(&mut self, now: Instant, nf: Nf, input: Input) {
        if nf == Nf::Agent {
            return self.agent.handle(now, input, &mut self.outbox);
        }
        match self.functions.iter_mut().find(|(hosted, _)| *hosted == nf) {
            Some((_, function)) => function.handle(now, input, &mut self.outbox),
            None => {
                if let Input::Request { from, .. } = input {
                    self.outbox.refuse(from, Problem::of_status(404).detail(format_args!("no {nf} here")));
                }
            }
        }
    }

    /// Sends each effect of `nf` its way; what stays on the shard joins the queue.
    fn route(&mut self, now: Instant, nf: Nf, out: &mut Vec<ShardEffect>) {
        let mut effects = std::mem::take(&mut self.effects);
        effects.extend(self.outbox.drain());
        for effect in effects.drain(..) {
            self.route_one(now, nf, effect, out);
        }
        self.effects = effects;
        for call in self.agent.take_authorized() {
            self.send_http(now, call, out);
        }
        for (call, problem) in self.agent.take_refused() {
            self.replied(call.nf, call.tag, None, Err(Box::new(problem)), out);
        }
        for call in self.agent.take_ready() {
            self.call(now, call, out);
        }
        for call in self.agent.take_failed() {
            self.fail(&call, Problem::new(Cause::NfDiscoveryFailure));
        }
    }

    /// Calls and answers may stay on the shard; all else only the shell can carry out.
    fn route_one(&mut self, now: Instant, nf: Nf, effect: Effect, out: &mut Vec<ShardEffect>) {
        out.push(match effect {
            Effect::Call { tag, target, request } => {
                return self.call(now, Call { nf, tag, target, request }, out);
            }
            Effect::Answer { to, reply } => return self.answer(to, reply, out),
            Effect::N2(effect) => ShardEffect::N2(effect),
            Effect::N4(effect) => ShardEffect::N4(effect),
            Effect::StartTimer { key, after } => ShardEffect::StartTimer { nf, key, after },
            Effect::StopTimer(key) => ShardEffect::StopTimer { nf, key },
            Effect::Store { tag, request } => ShardEffect::Store { nf, tag, request },
            Effect::Event(event) => ShardEffect::Event { nf, event },
        });
    }

    /// Sends a call to where the agent says; the agent keeps it if it has to discover first.
    fn call(&mut self, now: Instant, call: Call, out: &mut Vec<ShardEffect>) {
        match self.agent.way(now, &call) {
            Ok(Way::Local(target)) => {
                let from = Caller::Local { nf: call.nf, tag: call.tag };
                self.queue.push_back((target, Input::Request { from, request: call.request }));
            }
            Ok(Way::Shard(shard, target)) => {
                let from = Caller::Shard { shard: self.agent.shard(), nf: call.nf, tag: call.tag };
                out.push(ShardEffect::ShardCall { shard, nf: target, from, request: call.request });
            }
            Ok(Way::Http(root)) => {
                let tag = self.repetitions.note(&call, &root);
                let call = Outgoing { nf: call.nf, tag, root, request: call.request, renewed: false };
                self.send_http(now, call, out);
            }
            Ok(Way::Discover(question)) => {
                if let Some(discovery) = self.agent.discover(question, call) {
                    self.call(now, discovery, out);
                }
            }
            Err(problem) => self.fail(&call, problem),
        }
    }

    /// Sends a call over HTTP/2 with its access token, once there is one.
    fn send_http(&mut self, now: Instant, call: Outgoing, out: &mut Vec<ShardEffect>) {
        let (send, ask) = self.agent.authorize(now, call);
        if let Some((Outgoing { nf, tag, root, request, .. }, bearer)) = send {
            let instance = self.agent.instance_at(&root);
            out.push(ShardEffect::HttpCall { nf, tag, root, instance, request, bearer });
        }
        if let Some(ask) = ask {
            self.call(now, ask, out);
        }
    }

    /// A call over HTTP/2 has come to its end, or waits for another try.
    fn replied(
        &mut self,
        nf: Nf,
        tag: Tag,
        from: Option<Arc<ApiRoot>>,
        reply: Result<Response, Box<Problem>>,
        out: &mut Vec<ShardEffect>,
    ) {
        match self.repetitions.reply(tag, reply) {
            Outcome::Tell(tag, reply) => self.queue.push_back((nf, Input::Reply { tag, from, reply })),
            Outcome::Wait(key, after) => out.push(ShardEffect::StartTimer { nf: Nf::Agent, key, after }),
        }
    }

    /// Answers a call that can't go anywhere.
    fn fail(&mut self, call: &Call, problem: Problem) {
        let input = Input::Reply { tag: call.tag, from: None, reply: Err(Box::new(problem)) };
        self.queue.push_back((call.nf, input));
    }

    fn answer(&mut self, to: Caller, reply: Result<Response, Box<Problem>>, out: &mut Vec<ShardEffect>) {
        let from = self.agent.own_root();
        match to {
            Caller::Local { nf, tag } => {
                self.queue.push_back((nf, Input::Reply { tag, from: Some(from), reply }))
            }
            to => out.push(ShardEffect::Answer { to, from, reply }),
        }
    }
}
