//! Contexts that are only in a store between transactions (design section 6, `stateless`).
//!
//! ```text
//!  input ── context_of ──> resident: deliver
//!                     └──> absent: wait ── ShardEffect::Load ──> shell ── ShardInput::Loaded ──> put_context, deliver in order
//! ```
//!
//! The calls between NFs of a shard belong to the transaction of the input from outside that caused them. Each NF has its own
//! documents, so that the first request to an NF may wait for a load, too.

use crate::kit::{Input, N4Input, NetworkFunction, Nf, Order, Outbox, StoredKey};
use pith_sbi::Problem;
use pith_types::BlockId;
use std::collections::{HashMap, VecDeque};

/// Inputs from outside that wait for one context, beyond which further ones are dropped. A UE has one procedure, and sends no more than
/// some messages before an answer. Timers and replies are never dropped: the context has few, and needs each.
const MOST_WAITING: usize = 64;

/// Orders of operators that wait for contexts; a further one is refused.
const MOST_ORDERS: usize = 256;

/// An input as in the queue of a shard.
pub(super) type Queued = (Nf, Input, u16);

/// The absent contexts of a shard. Without a shell that drops copies nothing is recorded.
#[derive(Default)]
pub(super) struct Absent {
    is_enabled: bool,
    /// Contexts that are being loaded, with the inputs that wait for them, in order.
    waiting: HashMap<StoredKey, VecDeque<Queued>>,
    /// Orders that wait for a context, with the exchanges that they answer.
    orders: Vec<(StoredKey, u64, Order)>,
    /// Contexts to which inputs were delivered since the last call of [`Absent::take_touched`].
    touched: Vec<StoredKey>,
}

/// What becomes of an input.
pub(super) enum Fate {
    /// Its context is in the process, or it names none.
    Deliver(Input),
    /// It waits for a load, which begins now.
    Load(StoredKey),
    /// It waits for a load that has begun.
    Wait(StoredKey),
}

impl Absent {
    pub fn enable(&mut self) {
        self.is_enabled = true;
    }

    /// Holds an input whose context is absent.
    pub fn hold(
        &mut self,
        (nf, input, asked): Queued,
        function: &dyn NetworkFunction,
        out: &mut Outbox,
    ) -> Fate {
        if !self.is_enabled {
            return Fate::Deliver(input);
        }
        let Some(id) = function.context_of(&input) else { return Fate::Deliver(input) };
        let key = StoredKey { nf, id };
        if let Some(waiting) = self.waiting.get_mut(&key) {
            match input {
                Input::Request { reply, .. } if waiting.len() >= MOST_WAITING => {
                    reply.refuse(Problem::congestion(1), out);
                }
                Input::N2(_) | Input::N4(_) if waiting.len() >= MOST_WAITING && !is_response(&input) => {}
                input => waiting.push_back((nf, input, asked)),
            }
            return Fate::Wait(key);
        }
        if function.is_resident(id) {
            self.touched.push(key);
            return Fate::Deliver(input);
        }
        self.waiting.insert(key, VecDeque::from([(nf, input, asked)]));
        Fate::Load(key)
    }

    /// Whether contexts may be absent.
    pub const fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Begins to wait for a context that a step needed; returns false if its load is in progress.
    pub fn begin_load(&mut self, key: StoredKey) -> bool {
        if !self.is_enabled || self.waiting.contains_key(&key) {
            return false;
        }
        self.waiting.insert(key, VecDeque::new());
        true
    }

    /// Holds an operator's order until that context is back; `false` if there are too many.
    pub fn hold_order(&mut self, key: StoredKey, exchange: u64, order: &Order) -> bool {
        let is_held = self.is_enabled && self.orders.len() < MOST_ORDERS;
        if is_held {
            self.orders.push((key, exchange, order.clone()));
        }
        is_held
    }

    /// The orders that waited for that context, oldest first.
    pub fn take_orders(&mut self, key: StoredKey) -> Vec<(u64, Order)> {
        let due = self.orders.extract_if(.., |(waits_for, ..)| *waits_for == key);
        due.map(|(_, exchange, order)| (exchange, order)).collect()
    }

    /// A context of a block for which inputs wait.
    pub fn awaited_in(&self, block: BlockId) -> Option<StoredKey> {
        self.waiting.keys().find(|key| key.id.block == block).copied()
    }

    /// Whether inputs wait for that context.
    pub fn is_awaited(&self, key: StoredKey) -> bool {
        self.waiting.contains_key(&key)
    }

    /// A load has ended: the inputs that waited for it.
    pub fn resume(&mut self, key: StoredKey) -> VecDeque<Queued> {
        self.touched.push(key);
        self.waiting.remove(&key).unwrap_or_default()
    }

    /// The contexts to which inputs were delivered, each once.
    pub fn take_touched(&mut self) -> Vec<StoredKey> {
        self.touched.sort_unstable();
        self.touched.dedup();
        std::mem::take(&mut self.touched)
    }
}

/// Whether a UPF's response, for which the context waits.
fn is_response(input: &Input) -> bool {
    matches!(input, Input::N4(input) if matches!(**input, N4Input::Response { .. }))
}
