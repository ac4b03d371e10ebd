//! Runs one shard: passes inputs to the pure [`Shard`] and carries out its effects.
//!
//! ```text
//!  edge, http, store, other shards ──> WorkQueue<ShardInput> ──> Shard.handle ──> Outside
//!                                        timers ─────────────^
//! ```

use crate::clock::Clock;
use crate::work_queue::{QueueThread, UnstartedQueue, Work, WorkQueue, work_queue};
use pith_nf::fabric::{Shard, ShardEffect, ShardInput, Timers};
use pith_nf::kit::{Instant, Nf, TimerKey};
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
) -> std::io::Result<ShardThread> {
    let shard = make();
    let driver =
        Driver { number, clock, shard, make, outside, timers: Timers::default(), effects: Vec::new() };
    unstarted.start(BATCH, driver)
}

struct Driver<M, O> {
    number: u16,
    clock: Clock,
    shard: Shard,
    make: M,
    outside: O,
    timers: Timers<(Nf, TimerKey)>,
    effects: Vec<ShardEffect>,
}

impl<M: FnMut() -> Shard + Send, O: Outside> Work<ShardInput> for Driver<M, O> {
    fn process(&mut self, input: ShardInput) {
        self.handle(input);
    }

    fn end_turn(&mut self) -> Option<Duration> {
        self.expire();
        self.outside.flush();
        let now = self.clock.now();
        self.timers.next_deadline().map(|deadline| deadline.since(now))
    }
}

impl<M: FnMut() -> Shard, O: Outside> Driver<M, O> {
    fn expire(&mut self) {
        let now = self.clock.now();
        while let Some((nf, key)) = self.timers.expired(now) {
            self.handle(ShardInput::Timer { nf, key });
        }
    }

    fn handle(&mut self, input: ShardInput) {
        let now = self.clock.now();
        let Self { shard, effects, .. } = self;
        if catch_unwind(AssertUnwindSafe(|| shard.handle(now, input, effects))).is_err() {
            return self.rebuild(now);
        }
        self.carry_out(now);
    }

    fn carry_out(&mut self, now: Instant) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                ShardEffect::StartTimer { nf, key, after } => self.timers.start((nf, key), now + after),
                ShardEffect::StopTimer { nf, key } => self.timers.stop((nf, key)),
                other => self.outside.carry_out(other),
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
        let Self { shard, effects, .. } = self;
        shard.handle(now, ShardInput::Start, effects);
        self.carry_out(now);
    }
}
