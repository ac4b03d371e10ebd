//! The thread of one shard: takes inputs, drives the pure [`Shard`], carries out its effects.
//!
//! ```text
//!  edge, http, store, other shards ──> Inbox<ShardInput> ──> Shard.handle ──> Outside
//!                                        timers ──────────────^
//! ```

use crate::clock::Clock;
use crate::inbox::{Inbox, Nothing, Outlet, inbox};
use pith_nf::fabric::{Shard, ShardEffect, ShardInput, Timers};
use pith_nf::kit::{Instant, Nf, TimerKey};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{self, JoinHandle};

/// Inputs that a shard handles before it flushes what came of them.
const BATCH: usize = 128;

/// Where the effects of a shard go that leave its thread.
pub trait Outside: Send {
    /// Carries out an effect, or queues it until [`Outside::flush`].
    fn carry_out(&mut self, effect: ShardEffect);

    /// Sends what is queued: called after each batch of inputs.
    fn flush(&mut self);
}

/// What a shard's thread is sent.
#[derive(Debug)]
pub enum ShardMessage {
    /// For the NFs.
    Input(ShardInput),
    /// Handle what was sent before this, then end.
    Close,
}

/// A running shard.
pub struct ShardThread {
    inbox: Inbox<ShardMessage>,
    thread: JoinHandle<()>,
}

/// The sending side of a shard's inbox, made before its thread runs.
pub type ShardInbox = Inbox<ShardMessage>;

/// An inbox for a shard, and the outlet to start its thread with.
pub fn shard_inbox(bound: usize) -> (ShardInbox, Outlet<ShardMessage>) {
    inbox(bound)
}

impl ShardThread {
    /// Starts the thread of shard `number`. `make` builds the NFs, and builds them anew if they
    /// panic.
    pub fn start(
        number: u16,
        clock: Clock,
        (inbox, outlet): (ShardInbox, Outlet<ShardMessage>),
        make: impl FnMut() -> Shard + Send + 'static,
        outside: impl Outside + 'static,
    ) -> std::io::Result<Self> {
        let thread = thread::Builder::new().name(format!("shard-{number}")).spawn(move || {
            let mut make = make;
            let shard = make();
            Driver { number, clock, shard, make, outside, timers: Timers::default(), effects: Vec::new() }
                .run(&outlet);
        })?;
        Ok(Self { inbox, thread })
    }

    /// Its inbox.
    pub fn inbox(&self) -> &ShardInbox {
        &self.inbox
    }

    /// Lets it handle what it was sent so far, then ends it.
    pub fn close(self) {
        self.inbox.send(ShardMessage::Close);
        if self.thread.join().is_err() {
            tracing::error!("a shard's thread ended in a panic outside its NFs");
        }
    }
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

impl<M: FnMut() -> Shard, O: Outside> Driver<M, O> {
    fn run(mut self, outlet: &Outlet<ShardMessage>) {
        loop {
            let now = self.clock.now();
            let timeout = self.timers.next_deadline().map(|deadline| deadline.since(now));
            match outlet.wait(timeout) {
                Ok(ShardMessage::Close) | Err(Nothing::Closed) => return self.outside.flush(),
                Ok(ShardMessage::Input(input)) => self.handle(input),
                Err(Nothing::TimedOut) => {}
            }
            if self.batch(outlet).is_err() {
                return self.outside.flush();
            }
            self.expire();
            self.outside.flush();
        }
    }

    /// Handles what already waits, a batch at most.
    fn batch(&mut self, outlet: &Outlet<ShardMessage>) -> Result<(), Nothing> {
        for _ in 1..BATCH {
            match outlet.take() {
                Ok(ShardMessage::Input(input)) => self.handle(input),
                Ok(ShardMessage::Close) | Err(Nothing::Closed) => return Err(Nothing::Closed),
                Err(Nothing::TimedOut) => break,
            }
        }
        Ok(())
    }

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

    /// A panic in one shard ends its UEs' contexts, not the process: the NFs begin anew, and the
    /// UEs register again.
    fn rebuild(&mut self, now: Instant) {
        tracing::error!(
            shard = self.number,
            "an NF panicked: this is a bug in Pith, please report it; the shard begins anew"
        );
        self.effects.clear();
        self.timers = Timers::default();
        self.shard = (self.make)();
        let Self { shard, effects, .. } = self;
        shard.handle(now, ShardInput::Start, effects);
        self.carry_out(now);
    }
}
