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
use pith_nf::fabric::{Keeps, Shard, ShardEffect, ShardInput, TakeOver, Timers};
use pith_nf::kit::{Instant, Nf, TimerKey};
use pith_types::BlockMove;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;
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

/// Starts shards. Their stored contexts are read first, in parallel.
pub fn start_all<W: Work<ShardInput> + 'static>(
    shards: Vec<impl FnOnce() -> W + Send>,
    queues: Vec<UnstartedQueue<ShardInput>>,
) -> std::io::Result<Vec<ShardThread>> {
    let restored: Vec<W> = thread::scope(|scope| {
        let start = |restore| thread::Builder::new().spawn_scoped(scope, restore);
        let readers = shards.into_iter().map(start).collect::<std::io::Result<Vec<_>>>()?;
        let joined = readers.into_iter().map(|reader| reader.join());
        Ok::<_, std::io::Error>(
            joined.map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect(),
        )
    })?;
    queues.into_iter().zip(restored).map(|(queue, work)| queue.start(BATCH, work)).collect()
}

/// Shard `number` of `count`, with the stored contexts of its blocks. `make` creates the NFs, now and again after a panic.
pub fn restored(
    (number, count): (u16, u16),
    clock: Clock,
    mut make: impl FnMut() -> Shard + Send + 'static,
    outside: impl Outside + 'static,
    contexts: Option<ContextStore>,
) -> impl Work<ShardInput> + 'static {
    let mut shard = make();
    let contexts = contexts.map(|mut store| {
        restore(number, clock, &mut shard, &mut make, &mut store);
        HeldEffects::new(store)
    });
    let (timers, effects) = (Timers::default(), Vec::new());
    let keeps = contexts.as_ref().map_or(Keeps::Nothing, |contexts| contexts.store.keeps());
    let mut take_over = TakeOver::new(keeps);
    if contexts.is_some() {
        take_over.await_sessions_of((0..count).filter(|other| *other != number), &mut shard);
    }
    Driver {
        number,
        clock,
        shard,
        make,
        outside,
        timers,
        effects,
        contexts,
        take_over,
        run: 0,
        unadopted: None,
    }
}

/// Restores the contexts of a shard. If it panics with one, no value in it can be trusted: another shard begins, without that context.
fn restore(
    number: u16,
    clock: Clock,
    shard: &mut Shard,
    make: &mut impl FnMut() -> Shard,
    store: &mut ContextStore,
) {
    while let Err(panic) = catch_unwind(AssertUnwindSafe(|| store.begin_restoring(clock.now(), shard))) {
        *shard = make();
        if !store.leave_out(shard) {
            resume_unwind(panic);
        }
        tracing::error!(
            shard = number,
            "an NF panicked at the start: this is a bug in Pith, please report it; contexts are restored again without one"
        );
    }
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

    /// Stores the changes of the turn. Returns the write that must be durable before its effects leave.
    pub(crate) fn write(&mut self, now: Instant, shard: &mut Shard) -> Sequence {
        let written = self.store.end_turn(now, shard, &mut self.turn);
        let held = self.unwritten.iter_mut().map(|(_, effects)| effects);
        self.store.withhold(shard, held.chain([&mut self.turn]));
        written
    }

    /// When the next turn is due for the store: at once while contexts are restored.
    fn next_turn(&self) -> Option<Instant> {
        if self.store.is_restoring_now() { Some(Instant::default()) } else { self.store.next_turn() }
    }

    /// The effects of the current turn.
    fn effects(&self) -> impl Iterator<Item = &ShardEffect> {
        self.turn.iter()
    }

    /// Carries out what may leave after that write.
    pub(crate) fn release(&mut self, written: Sequence, outside: &mut impl Outside) {
        if self.store.is_fenced() {
            // The UEs belong to another process, which answers them.
            self.turn.clear();
            return self.unwritten.clear();
        }
        if self.store.has_no_lease() {
            let turn = std::mem::take(&mut self.turn);
            return self.unwritten.extend((!turn.is_empty()).then_some((written, turn)));
        }
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
    /// What the shard needs after a panic.
    take_over: TakeOver,
    /// Panics of the shard so far, modulo 2^16.
    run: u16,
    /// Blocks of another instance that could not be adopted, and when to repeat that.
    unadopted: Option<(Instant, Vec<BlockMove>)>,
}

/// Time until another attempt to adopt blocks.
const ADOPTION_RETRY: Duration = Duration::from_millis(500);

/// The shard has panicked.
struct Panicked;

impl<M: FnMut() -> Shard + Send, O: Outside> Work<ShardInput> for Driver<M, O> {
    fn process(&mut self, input: ShardInput) {
        self.handle(input);
    }

    fn end_turn(&mut self) -> Option<Duration> {
        let now = self.clock.now();
        self.expire(now);
        self.repeat_adoption(now);
        self.take_loaded(now);
        self.restore_next(now);
        while self.end_turn_of_shard().is_err() {
            self.recover();
        }
        let store = self.contexts.as_ref().and_then(|contexts| contexts.next_turn());
        self.outside.flush();
        let unadopted = self.unadopted.as_ref().map(|(due, _)| *due);
        let next = self.timers.next_deadline().into_iter().chain(store).chain(unadopted).min();
        next.map(|deadline| deadline.since(self.clock.now()))
    }

    fn close(&mut self) {
        if let Some(contexts) = &mut self.contexts {
            contexts.store.finish(self.clock.now(), &mut self.shard);
        }
    }
}

impl<M: FnMut() -> Shard, O: Outside> Driver<M, O> {
    fn expire(&mut self, now: Instant) {
        while let Some((nf, key)) = self.timers.expired(now) {
            self.handle(ShardInput::Timer { nf, key });
        }
    }

    /// Passes on contexts that were read again. With an engine that does not wait, their inputs may need further ones at once.
    fn take_loaded(&mut self, mut now: Instant) {
        loop {
            let Self { shard, contexts: Some(contexts), .. } = self else { return };
            let loaded = contexts.store.take_loaded(now, shard);
            if loaded.is_empty() {
                return;
            }
            for (key, document) in loaded {
                self.handle(ShardInput::Loaded { key, document });
            }
            now = self.clock.now();
        }
    }

    /// Restores what inputs wait for, then a slice of the other contexts.
    fn restore_next(&mut self, mut now: Instant) {
        loop {
            let Self { shard, contexts: Some(contexts), .. } = self else { return };
            let has_wanted = contexts.store.has_wanted();
            let Ok(restored) = catch_unwind(AssertUnwindSafe(|| contexts.store.restore_next(now, shard)))
            else {
                self.recover();
                now = self.clock.now();
                continue;
            };
            for portion in restored {
                self.handle(ShardInput::Restored(portion));
            }
            if !has_wanted {
                return;
            }
            now = self.clock.now();
        }
    }

    /// Restores all contexts now: a block passes to or from another shard as a whole.
    fn restore_all(&mut self) {
        while self.contexts.as_ref().is_some_and(|contexts| contexts.store.is_restoring_now()) {
            self.restore_next(self.clock.now());
        }
    }

    /// Handles an input. After a panic the shard continues with its stored contexts.
    fn handle(&mut self, mut input: ShardInput) {
        if matches!(input, ShardInput::Move(_) | ShardInput::Block(_)) {
            self.restore_all();
        }
        match &mut self.contexts {
            Some(contexts) => {
                if let ShardInput::Block(passed) = &input {
                    contexts.store.take_block(self.clock.now(), &mut self.shard, passed.change.block);
                }
                contexts.store.receive(&mut input);
            }
            None => input.drop_embedded(),
        }
        self.take_over.begin(&mut self.shard, &input);
        if let ShardInput::Adopt(changes) = &input
            && !self.restore_adopted(changes)
        {
            return;
        }
        if self.attempt(input).is_err() {
            self.recover();
        }
    }

    /// Restores the contexts of blocks that another instance had. `false`: later.
    fn restore_adopted(&mut self, changes: &[BlockMove]) -> bool {
        let now = self.clock.now();
        let Self { shard, contexts: Some(contexts), .. } = self else { return true };
        match catch_unwind(AssertUnwindSafe(|| contexts.store.adopt(now, shard, changes))) {
            Ok(true) => true,
            Ok(false) => {
                let later = (now + ADOPTION_RETRY, Vec::new());
                self.unadopted.get_or_insert(later).1.extend_from_slice(changes);
                false
            }
            // The next run of the shard takes the contexts of all its blocks over, these included.
            Err(_) => {
                self.recover();
                true
            }
        }
    }

    fn repeat_adoption(&mut self, now: Instant) {
        if let Some((_, changes)) = self.unadopted.take_if(|(due, _)| *due <= now) {
            self.handle(ShardInput::Adopt(changes));
        }
    }

    /// Handles an input, unless the shard panics.
    fn attempt(&mut self, input: ShardInput) -> Result<(), Panicked> {
        let resumes = (self.contexts.is_some() || self.run > 0) && matches!(input, ShardInput::Start);
        self.attempt_to(|shard, now, effects| {
            shard.handle(now, input, effects);
            if resumes {
                shard.resume_contexts(now, effects);
            }
        })?;
        self.take_over.handled(&self.shard);
        if let Some(contexts) = &mut self.contexts {
            contexts.note_input();
        }
        Ok(())
    }

    /// Has the shard do something, and carries out the effects.
    fn attempt_to(
        &mut self,
        what: impl FnOnce(&mut Shard, Instant, &mut Vec<ShardEffect>),
    ) -> Result<(), Panicked> {
        let now = self.clock.now();
        let Self { shard, effects, .. } = self;
        catch_unwind(AssertUnwindSafe(|| what(shard, now, effects))).map_err(|_| Panicked)?;
        self.carry_out(now);
        Ok(())
    }

    /// Stores what the turn changed; then its effects leave.
    fn end_turn_of_shard(&mut self) -> Result<(), Panicked> {
        let now = self.clock.now();
        let written = self.write_turn(now)?;
        if self.shard.has_moves() && self.contexts.as_ref().is_none_or(|contexts| contexts.store.is_settled())
        {
            // A block passes to another shard when its documents are written. That changes no context, so its effects leave without a
            // further write: between the end of the contexts here and their way to the new owner nothing can panic.
            let before = Arc::clone(self.shard.owners());
            self.attempt_to(|shard, now, effects| shard.complete_move(now, effects))?;
            if !Arc::ptr_eq(self.shard.owners(), &before) || !self.shard.is_at_rest() {
                self.release_turn(written);
            }
        }
        Ok(())
    }

    /// Returns the write that must be durable before effects leave.
    fn write_turn(&mut self, now: Instant) -> Result<Sequence, Panicked> {
        let Self { shard, contexts, .. } = self;
        let written = match contexts {
            Some(contexts) => {
                catch_unwind(AssertUnwindSafe(|| contexts.write(now, shard))).map_err(|_| Panicked)?
            }
            None => Sequence(0),
        };
        self.release_turn(written);
        Ok(written)
    }

    /// The effects of the turn leave.
    fn release_turn(&mut self, written: Sequence) {
        let Self { shard, contexts, take_over, outside, .. } = self;
        if let Some(contexts) = contexts {
            take_over.note_answers(contexts.effects());
            take_over.end_turn(shard);
            contexts.release(written, outside);
        } else {
            take_over.end_turn(shard);
        }
    }

    fn carry_out(&mut self, now: Instant) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                ShardEffect::StartTimer { nf, key, after } => self.timers.start((nf, key), now + after),
                ShardEffect::StopTimer { nf, key } => self.timers.stop((nf, key)),
                ShardEffect::Restore(portion) => {
                    if let Some(contexts) = &mut self.contexts {
                        contexts.store.want(portion);
                    }
                }
                // At once: the inputs that wait for the context have no effects yet.
                ShardEffect::Load { key } => {
                    if let Some(contexts) = &mut self.contexts {
                        contexts.store.load(now, &mut self.shard, key);
                    }
                }
                other => match &mut self.contexts {
                    Some(contexts) => {
                        if let ShardEffect::PassOn { input, .. } = &other
                            && let ShardInput::Block(passed) = &**input
                        {
                            contexts.store.pass_block(passed.change.block);
                        }
                        if let ShardEffect::Released(change) = &other {
                            contexts.store.pass_block(change.block);
                        }
                        contexts.hold(other);
                    }
                    None => {
                        self.take_over.note_answers(std::iter::once(&other));
                        self.outside.carry_out(other);
                    }
                },
            }
        }
        self.effects = effects;
    }

    /// The shard has panicked: no value in it can be trusted. Another run of it continues with the stored contexts, and with the
    /// messages whose transactions were not over (ADR 0010). A context that causes panics repeatedly ends.
    fn recover(&mut self) {
        while self.begin_run().is_err() {}
    }

    fn begin_run(&mut self) -> Result<(), Panicked> {
        let reading = self.contexts.as_ref().and_then(|contexts| contexts.store.reading());
        let suspect = self.shard.in_step().or(reading);
        let gives_up = self.take_over.panicked(suspect);
        tracing::error!(
            shard = self.number,
            "an NF panicked: this is a bug in Pith, please report it; the shard restarts {}",
            if gives_up || self.contexts.is_none() { "with empty state" } else { "with its stored contexts" }
        );
        self.effects.clear();
        self.timers = Timers::default();
        self.run = self.run.wrapping_add(1);
        self.shard = (self.make)();
        self.shard.begin_run(self.run);
        self.take_over.begin_run(&mut self.shard);
        if let Some(contexts) = &mut self.contexts {
            // The changes of this turn are lost, so its effects must not leave.
            contexts.turn.clear();
            contexts.store.start_run(&mut self.shard);
        }
        for effect in self.take_over.answers(&self.shard) {
            self.effects.push(effect);
        }
        for input in self.take_over.connections() {
            self.attempt_to(|shard, now, effects| shard.handle(now, input, effects))?;
        }
        self.take_contexts_over(gives_up)?;
        self.attempt(ShardInput::Start)?;
        self.take_over.resumed(&mut self.shard);
        while let Some(input) = self.take_over.next(&mut self.shard) {
            self.attempt(input)?;
        }
        let blocks = self.take_over.unannounced();
        self.attempt_to(|shard, now, effects| shard.finish_take_over(now, &blocks, effects))
    }

    fn take_contexts_over(&mut self, gives_up: bool) -> Result<(), Panicked> {
        let now = self.clock.now();
        let Self { shard, contexts: Some(contexts), take_over, .. } = self else { return Ok(()) };
        let store = &mut contexts.store;
        let take = || {
            if gives_up {
                store.start_empty(shard);
            } else {
                store.take_over(now, shard, |key| take_over.fate(key));
            }
        };
        catch_unwind(AssertUnwindSafe(take)).map_err(|_| Panicked)
    }
}

#[cfg(test)]
mod tests;
