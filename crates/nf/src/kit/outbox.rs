//! Effects of an NF, carried out by the shell in their order.

use super::{Caller, Duration, Event, Level, N2Effect, N4Effect, StoreRequest, Tag, Target, Timer, TimerKey};
use pith_sbi::{Problem, Request, Response};

/// One effect.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Effect {
    /// For the N2 gateway.
    N2(N2Effect),
    /// For the N4 gateway.
    N4(Box<N4Effect>),
    /// Call an operation of another NF; one [`super::Input::Reply`] with the same tag follows.
    Call {
        /// Returned with the reply.
        tag: Tag,
        target: Target,
        request: Request,
    },
    /// Answer an earlier request.
    Answer { to: Caller, reply: Result<Response, Box<Problem>> },
    /// Start or restart a timer.
    StartTimer { key: TimerKey, after: Duration },
    /// Stop a timer; ignored if it does not run.
    StopTimer(TimerKey),
    /// Send a database request; one [`super::Input::Stored`] follows.
    Store {
        /// Returned with the result.
        tag: Tag,
        request: StoreRequest,
    },
    /// An event for logs and metrics.
    Event(Event),
}

/// Collects the effects of one `handle`.
#[derive(Debug)]
pub struct Outbox {
    effects: Vec<Effect>,
    verbosity: Level,
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new(Level::Info)
    }
}

impl Outbox {
    /// An empty outbox that keeps events of that level and above.
    pub const fn new(verbosity: Level) -> Self {
        Self { effects: Vec::new(), verbosity }
    }

    /// Moves all effects, in their order, to the end of a list.
    pub fn drain_into(&mut self, list: &mut Vec<Effect>) {
        if list.is_empty() {
            std::mem::swap(list, &mut self.effects);
        } else {
            list.append(&mut self.effects);
        }
    }

    /// Removes and returns all effects, in their order.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Effect> {
        self.effects.drain(..)
    }

    /// The effects so far.
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// The effects from that number on.
    pub fn effects_since(&mut self, from: usize) -> &mut [Effect] {
        self.effects.get_mut(from..).unwrap_or_default()
    }

    /// How many of the effects so far answer a request.
    pub fn answers(&self) -> usize {
        self.effects.iter().filter(|effect| matches!(effect, Effect::Answer { .. })).count()
    }

    /// Gives the calls with this tag, from effect `from` on, numbers instead of the tag's step.
    pub fn number_calls(&mut self, from: usize, tag: Tag, mut number: impl FnMut() -> u32) -> Vec<u32> {
        let mut numbers = Vec::new();
        for effect in self.effects.iter_mut().skip(from) {
            if let Effect::Call { tag: of_call, .. } = effect
                && *of_call == tag
            {
                of_call.step = number();
                numbers.push(of_call.step);
            }
        }
        numbers
    }

    /// Adds any effect.
    pub fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Calls an operation of another NF.
    pub fn call(&mut self, tag: Tag, target: Target, request: Request) {
        self.push(Effect::Call { tag, target, request });
    }

    /// Starts or restarts a timer.
    pub fn start(&mut self, owner: u64, timer: Timer, after: Duration) {
        self.push(Effect::StartTimer { key: TimerKey { owner, timer }, after });
    }

    /// Stops a timer.
    pub fn stop(&mut self, owner: u64, timer: Timer) {
        self.push(Effect::StopTimer(TimerKey { owner, timer }));
    }

    /// Sends a request to the database.
    pub fn store(&mut self, tag: Tag, request: StoreRequest) {
        self.push(Effect::Store { tag, request });
    }

    /// Sends an effect to the N2 gateway.
    pub fn n2(&mut self, effect: N2Effect) {
        self.push(Effect::N2(effect));
    }

    /// Sends an effect to the N4 gateway.
    pub fn n4(&mut self, effect: N4Effect) {
        self.push(Effect::N4(Box::new(effect)));
    }

    /// Whether events of that level are kept: check before building a costly text.
    pub fn keeps(&self, level: Level) -> bool {
        level >= self.verbosity
    }

    /// Adds an event, if events of that level are kept.
    pub fn event(&mut self, level: Level, make: impl FnOnce() -> Event) {
        if self.keeps(level) {
            self.push(Effect::Event(make()));
        }
    }

    /// Adds a log line that belongs to no UE or procedure.
    pub fn log(&mut self, level: Level, text: impl FnOnce() -> String) {
        self.event(level, || Event { level, procedure: "", outcome: "", ue: String::new(), text: text() });
    }
}
