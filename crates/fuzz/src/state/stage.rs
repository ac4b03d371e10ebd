//! One NF, and its peers driven by the input: requests to its services, replies to its calls, the
//! database, timers. It checks what `kit` guarantees: each request gets one answer.

use super::choices::Choices;
use super::material;
use crate::corpus::Seed;
use crate::target::{CheckFailed, ensure};
use pith_nf::kit::{
    Caller, Effect, Input, Instant, Level, N4Effect, N4Error, N4Input, NetworkFunction, Outbox, PendingReply,
    StoreError, StoreRequest, StoreResponse, Tag, TimerKey,
};
use pith_pfcp::Message;
use pith_sbi::{Problem, Reply, Request, Response};
use pith_world::Database;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Maximum number of steps to end a dialogue.
const ENDING: usize = 500;

/// The owner of calls whose replies are ignored.
const NOBODY: u64 = u64::MAX;

/// An NF, and what it waits for.
pub struct Stage<N> {
    /// The NF.
    pub nf: N,
    now: Instant,
    timers: BTreeMap<TimerKey, Instant>,
    expired: Vec<TimerKey>,
    calls: Vec<(Tag, Request)>,
    stores: Vec<(Tag, StoreRequest)>,
    waiting: BTreeSet<u64>,
    exchanges: u64,
    database: Database,
    /// Resources that it created, by the last segment of their URIs.
    pub ids: Vec<String>,
    /// Tags of answered calls.
    answered: Vec<Tag>,
    /// Pending requests to UPFs; `None` for an NF without N4.
    pub n4: Option<Vec<(Tag, Message)>>,
    broken: Option<String>,
}

impl<N: NetworkFunction> Stage<N> {
    /// The NF, with a database. Its contexts pass through their documents after each step.
    pub fn new(mut nf: N, database: Database) -> Self {
        nf.reload_contexts();
        Self {
            nf,
            now: Instant::from_micros(0),
            timers: BTreeMap::new(),
            expired: Vec::new(),
            calls: Vec::new(),
            stores: Vec::new(),
            waiting: BTreeSet::new(),
            exchanges: 0,
            database,
            ids: Vec::new(),
            answered: Vec::new(),
            n4: None,
            broken: None,
        }
    }

    /// Runs all choices, then ends everything in progress.
    pub fn play(&mut self, serves: &[Seed], choices: &mut Choices<'_>) -> Result<(), CheckFailed> {
        while !choices.is_exhausted() {
            self.step(serves, choices);
            self.check()?;
        }
        self.end()
    }

    /// The first failure so far.
    pub fn check(&mut self) -> Result<(), CheckFailed> {
        self.broken.take().map_or(Ok(()), |what| Err(CheckFailed(what)))
    }

    /// One choice that applies to every NF.
    pub fn step(&mut self, serves: &[Seed], choices: &mut Choices<'_>) {
        match choices.below(16) {
            0..4 => {
                if let Some(request) = material::ask(serves, &self.ids, choices) {
                    self.ask(request);
                }
            }
            4..9 => self.answer(choices),
            9..13 => self.store(choices),
            13 => self.expire_timer(choices),
            14 => self.answer_again(choices),
            _ => self.now = self.now + Duration::from_millis(1 << choices.below(22)),
        }
    }

    /// A peer sends a request to the NF.
    pub fn ask(&mut self, request: Request) {
        self.exchanges += 1;
        self.waiting.insert(self.exchanges);
        self.input(Input::Request {
            reply: PendingReply::owed_to(Caller::Remote { exchange: self.exchanges, client: None }),
            request,
        });
    }

    fn answer(&mut self, choices: &mut Choices<'_>) {
        if self.calls.is_empty() {
            return;
        }
        let (tag, request) = self.calls.remove(choices.below(self.calls.len()));
        self.answered.push(tag);
        self.reply(tag, material::answer(request.operation(), choices));
    }

    fn reply(&mut self, tag: Tag, reply: Reply) {
        self.input(Input::Reply { tag, from: Some(material::root()), reply });
    }

    /// A reply that is repeated, late or unsolicited.
    fn answer_again(&mut self, choices: &mut Choices<'_>) {
        let any = Tag::new(choices.below(4) as u64, choices.below(4) as u32);
        let tag = choices.pick(&self.answered).copied().unwrap_or(any);
        if !self.calls.iter().any(|(open, _)| *open == tag) {
            self.reply(tag, Ok(Response::NoContent));
        }
    }

    fn store(&mut self, choices: &mut Choices<'_>) {
        if self.stores.is_empty() {
            return;
        }
        let (tag, request) = self.stores.remove(choices.below(self.stores.len()));
        let result = match choices.below(8) {
            0 => Err(StoreError("the disk is full".into())),
            1 => Ok(StoreResponse::Subscriber(None)),
            2 => Ok(StoreResponse::Document(None)),
            3 => Ok(StoreResponse::Document(Some("{\"x\":".into()))),
            _ => Ok(self.database.handle(request)),
        };
        self.input(Input::Stored { tag, result });
    }

    /// A timer expires: a running one, or one that expired before.
    fn expire_timer(&mut self, choices: &mut Choices<'_>) {
        let running: Vec<TimerKey> = self.timers.keys().copied().collect();
        let late = choices.pick(&self.expired).copied().filter(|_| choices.below(4) == 0);
        if let Some(key) = late.or_else(|| choices.pick(&running).copied()) {
            self.expire(key);
        }
    }

    fn expire(&mut self, key: TimerKey) {
        if let Some(at) = self.timers.remove(&key) {
            self.now = self.now.max(at);
            self.expired.push(key);
        }
        self.input(Input::Timer(key));
    }

    fn input(&mut self, input: Input) {
        let mut out = Outbox::new(Level::Debug);
        self.nf.handle(self.now, input, &mut out);
        let effects: Vec<Effect> = out.drain().collect();
        effects.into_iter().for_each(|effect| self.effect(effect));
    }

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Call { tag, request, .. } => {
                // Every call must be encodable.
                let _ = request.to_http();
                if tag.owner != NOBODY && self.calls.iter().any(|(open, _)| *open == tag) {
                    self.broken = Some(format!("{tag:?} is used for two calls at once"));
                }
                self.calls.push((tag, request));
            }
            Effect::Answer { to, reply } => self.answered(to, &reply),
            Effect::StartTimer { key, after } => {
                self.timers.insert(key, self.now + after);
            }
            Effect::StopTimer(key) => {
                self.timers.remove(&key);
            }
            Effect::Store { tag, request } => self.stores.push((tag, request)),
            Effect::Event(event) => drop(event.text),
            Effect::N2(effect) => self.broken = Some(format!("it has no N2: {effect:?}")),
            Effect::N4(effect) => self.n4_effect(*effect),
        }
    }

    fn n4_effect(&mut self, effect: N4Effect) {
        match (effect, &mut self.n4) {
            (N4Effect::Request { tag, message, .. }, Some(open)) => {
                if open.iter().any(|(other, _)| *other == tag && tag.owner != NOBODY) {
                    self.broken = Some(format!("{tag:?} is used for two requests to a UPF at once"));
                }
                open.push((tag, message));
            }
            (N4Effect::Answer { message, .. }, Some(_)) => drop(message),
            (N4Effect::TakenOver { .. } | N4Effect::Passage(_) | N4Effect::Confirmed { .. }, Some(_)) => {}
            (effect, None) => self.broken = Some(format!("it has no N4: {effect:?}")),
        }
    }

    /// An input of the N4 gateway.
    pub fn n4_input(&mut self, input: N4Input) {
        self.input(Input::N4(Box::new(input)));
    }

    fn answered(&mut self, to: Caller, reply: &Reply) {
        let Caller::Remote { exchange, .. } = to else {
            self.broken = Some(format!("answered {to:?}"));
            return;
        };
        if !self.waiting.remove(&exchange) {
            self.broken = Some(format!("request {exchange} was answered twice: {reply:?}"));
        }
        if let Ok(response) = reply {
            let http = response.to_http();
            let id = http
                .headers
                .get("location")
                .and_then(|location| location.rsplit('/').next().map(str::to_owned));
            self.ids.extend(id);
        }
    }

    /// All calls fail: then nothing may wait any longer.
    pub fn end(&mut self) -> Result<(), CheckFailed> {
        for _ in 0..ENDING {
            if let Some((tag, _)) = self.calls.pop() {
                self.reply(tag, Err(Box::new(Problem::timed_out())));
            } else if let Some((tag, request)) = self.stores.pop() {
                let result = Ok(self.database.handle(request));
                self.input(Input::Stored { tag, result });
            } else if let Some((tag, _)) = self.n4.as_mut().and_then(Vec::pop) {
                self.n4_input(N4Input::Response { tag, result: Err(N4Error::NoAnswer) });
            } else {
                break;
            }
            self.check()?;
        }
        let quiet = self.calls.is_empty() && self.stores.is_empty();
        ensure(quiet, || format!("it does not terminate: {:?} {:?}", self.calls.last(), self.stores.last()))?;
        ensure(self.waiting.is_empty(), || format!("{} requests have no answer", self.waiting.len()))
    }

    /// Expires all timers that are not restarted by their own expiry.
    pub fn expire_timers(&mut self) -> Result<(), CheckFailed> {
        for _ in 0..ENDING {
            let Some(key) = self.timers.keys().next().copied() else { break };
            self.expire(key);
            self.end()?;
        }
        self.check()
    }
}
