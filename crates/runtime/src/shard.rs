//! Runs one shard: passes inputs to the pure [`Shard`] and carries out its effects, with `residency: soft` and `durable` after
//! the contexts that changed in the turn are stored ([`HeldEffects`]).
//!
//! ```text
//!  edge, http, store, other shards ──> WorkQueue<ShardInput> ──> Shard.handle ──> Outside
//!                                        timers ─────────────^
//! ```

use crate::clock::Clock;
use crate::residency::{ContextStore, Sequence};
use crate::work_queue::{QueueThread, UnstartedQueue, Work, WorkQueue, work_queue};
use pith_nf::fabric::{Shard, ShardEffect, ShardInput, Timers};
use pith_nf::kit::{Instant, Nf, TimerKey};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Inputs that a shard's thread handles before it flushes their effects.
const BATCH: usize = 128;

/// Carries out the effects that leave a shard.
pub trait Outside: Send {
    /// Carries out an effect, or queues it until [`Outside::flush`].
    fn carry_out(&mut self, effect: ShardEffect);

    /// Sends queued effects; called after each batch of inputs.
    fn flush(&mut self);
}

/// The queue of a shard.
pub type ShardQueue = WorkQueue<ShardInput>;

/// A running shard.
pub type ShardThread = QueueThread<ShardInput>;

/// Creates the queue of shard `number`; readers of sockets pause while it holds `bound` inputs.
pub fn shard_queue(number: u16, bound: usize) -> (ShardQueue, UnstartedQueue<ShardInput>) {
    work_queue(format!("shard-{number}"), bound)
}

/// Starts shard `number`. `make` creates the NFs, at the start and again after a panic.
pub fn start(
    number: u16,
    clock: Clock,
    unstarted: UnstartedQueue<ShardInput>,
    mut make: impl FnMut() -> Shard + Send + 'static,
    outside: impl Outside + 'static,
    contexts: Option<ContextStore>,
) -> std::io::Result<ShardThread> {
    let mut shard = make();
    let contexts = contexts.map(|mut store| {
        store.restore(clock.now(), &mut shard);
        HeldEffects::new(store)
    });
    let (timers, effects) = (Timers::default(), Vec::new());
    let driver = Driver { number, clock, shard, make, outside, timers, effects, contexts };
    unstarted.start(BATCH, driver)
}

/// The effects of a shard whose contexts are stored: they leave when the changes of their turn are written.
pub(crate) struct HeldEffects {
    store: ContextStore,
    /// Effects of the current turn.
    turn: Vec<ShardEffect>,
    /// Effects of former turns, whose writes are not durable yet (`state.sync: batch`), with the numbers of these writes.
    unwritten: VecDeque<(Sequence, Vec<ShardEffect>)>,
}

impl HeldEffects {
    pub(crate) const fn new(store: ContextStore) -> Self {
        Self { store, turn: Vec::new(), unwritten: VecDeque::new() }
    }

    /// The shard has handled an input.
    pub(crate) const fn note_input(&mut self) {
        self.store.note_input();
    }

    /// Holds an effect of this turn.
    pub(crate) fn hold(&mut self, effect: ShardEffect) {
        self.turn.push(effect);
    }

    /// Stores the changes of the turn, and carries out what may leave.
    pub(crate) fn end_turn(&mut self, now: Instant, shard: &mut Shard, outside: &mut impl Outside) {
        let written = self.store.end_turn(now, shard, &mut self.turn);
        if !self.turn.is_empty() {
            if self.unwritten.is_empty() && self.store.durable() >= written {
                self.turn.drain(..).for_each(|effect| outside.carry_out(effect));
            } else {
                self.unwritten.push_back((written, std::mem::take(&mut self.turn)));
            }
        }
        let durable = self.store.durable();
        while let Some((_, effects)) = self.unwritten.pop_front_if(|(written, _)| *written <= durable) {
            effects.into_iter().for_each(|effect| outside.carry_out(effect));
        }
        self.turn.shrink_to(KEPT);
    }
}

/// Capacity for held effects that is kept between turns.
const KEPT: usize = 1024;

struct Driver<M, O> {
    number: u16,
    clock: Clock,
    shard: Shard,
    make: M,
    outside: O,
    timers: Timers<(Nf, TimerKey)>,
    effects: Vec<ShardEffect>,
    /// Present if contexts are stored.
    contexts: Option<HeldEffects>,
}

impl<M: FnMut() -> Shard + Send, O: Outside> Work<ShardInput> for Driver<M, O> {
    fn process(&mut self, input: ShardInput) {
        self.handle(input);
    }

    fn end_turn(&mut self) -> Option<Duration> {
        self.expire();
        self.take_loaded();
        let store = self.contexts.as_mut().and_then(|contexts| {
            contexts.end_turn(self.clock.now(), &mut self.shard, &mut self.outside);
            contexts.store.next_turn()
        });
        self.outside.flush();
        let now = self.clock.now();
        let next = self.timers.next_deadline().into_iter().chain(store).min();
        next.map(|deadline| deadline.since(now))
    }

    fn close(&mut self) {
        if let Some(contexts) = &mut self.contexts {
            contexts.store.finish(self.clock.now(), &mut self.shard);
        }
    }
}

impl<M: FnMut() -> Shard, O: Outside> Driver<M, O> {
    fn expire(&mut self) {
        let now = self.clock.now();
        while let Some((nf, key)) = self.timers.expired(now) {
            self.handle(ShardInput::Timer { nf, key });
        }
    }

    /// Passes on contexts that were read again. With an engine that does not wait, their inputs may need further ones at once.
    fn take_loaded(&mut self) {
        loop {
            let now = self.clock.now();
            let Self { shard, contexts: Some(contexts), .. } = self else { return };
            let loaded = contexts.store.take_loaded(now, shard);
            if loaded.is_empty() {
                return;
            }
            for (key, document) in loaded {
                self.handle(ShardInput::Loaded { key, document });
            }
        }
    }

    fn handle(&mut self, mut input: ShardInput) {
        let now = self.clock.now();
        let Self { shard, effects, contexts, .. } = self;
        match contexts {
            Some(contexts) => contexts.store.open_embedded(&mut input),
            None => input.drop_embedded(),
        }
        let resumes = contexts.is_some() && matches!(input, ShardInput::Start);
        let handle = || {
            shard.handle(now, input, effects);
            if resumes {
                shard.resume_contexts(now, effects);
            }
        };
        if catch_unwind(AssertUnwindSafe(handle)).is_err() {
            return self.rebuild(now);
        }
        if let Some(contexts) = contexts {
            contexts.note_input();
        }
        self.carry_out(now);
    }

    fn carry_out(&mut self, now: Instant) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                ShardEffect::StartTimer { nf, key, after } => self.timers.start((nf, key), now + after),
                ShardEffect::StopTimer { nf, key } => self.timers.stop((nf, key)),
                // At once: the inputs that wait for the context have no effects yet.
                ShardEffect::Load { key } => {
                    if let Some(contexts) = &mut self.contexts {
                        contexts.store.load(now, &mut self.shard, key);
                    }
                }
                other => match &mut self.contexts {
                    Some(contexts) => contexts.hold(other),
                    None => self.outside.carry_out(other),
                },
            }
        }
        self.effects = effects;
    }

    /// A panic in a shard ends its UEs' contexts, not the process: the NFs are created again, and the UEs
    /// register again.
    fn rebuild(&mut self, now: Instant) {
        tracing::error!(
            shard = self.number,
            "an NF panicked: this is a bug in Pith, please report it; the shard restarts with empty state"
        );
        self.effects.clear();
        self.timers = Timers::default();
        self.shard = (self.make)();
        if let Some(contexts) = &mut self.contexts {
            // The changes of this turn are lost, so its effects must not leave.
            contexts.turn.clear();
            contexts.store.start_empty(&mut self.shard);
        }
        let Self { shard, effects, .. } = self;
        shard.handle(now, ShardInput::Start, effects);
        self.carry_out(now);
    }
}
