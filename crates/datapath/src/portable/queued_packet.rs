//! A packet to be queued, and its transfer to the worker that owns its session's queue.

use super::inbox::Inbox;
use super::path::select_rule;
use crate::packet::Flow;
use crate::rules::{Ingress, Origin, Rule, Rules};
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use pith_upf::contract::{Action, Direction, DropReason, Qfi};
use pith_upf::qos::{Arrival, Ecn, Hold, QueueAction};
use std::sync::Arc;
use std::sync::atomic::{Ordering::SeqCst, fence};

/// Maximum number of packets in transit to a worker; more are dropped.
const MAX_IN_TRANSIT: usize = 4096;

/// A packet with its own buffer and its rule.
#[derive(Debug)]
pub struct QueuedPacket {
    /// The inner packet.
    pub bytes: Vec<u8>,
    /// The rules of its session that were last applied.
    pub rules: Arc<Rules>,
    rule: u16,
    origin: Origin,
    qfi: Option<Qfi>,
    tuple: u32,
    tos: u8,
    direction: Direction,
}

impl QueuedPacket {
    /// A packet that matched the rule of that index.
    pub fn new(rules: Arc<Rules>, rule: u16, ingress: Ingress<'_>, bytes: Vec<u8>) -> Self {
        let Ingress { origin, qfi, flow } = ingress;
        let direction = rules.rule(rule).map_or(Direction::Downlink, Rule::direction);
        let tuple = (flow.hash() >> 32) as u32;
        Self { bytes, rules, rule, origin, qfi, tuple, tos: flow.tos, direction }
    }

    pub fn rule(&self) -> Option<&Rule> {
        self.rules.rule(self.rule)
    }

    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Its origin and QFI, with its current headers.
    pub fn ingress<'a>(&self, flow: &'a Flow) -> Ingress<'a> {
        Ingress { origin: self.origin, qfi: self.qfi, flow }
    }

    /// Where it arrived.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The received QFI.
    pub fn qfi(&self) -> Option<Qfi> {
        self.qfi
    }

    pub fn dscp(&self) -> u8 {
        self.tos >> 2
    }

    /// The packet's description for the QoS engine.
    pub fn arrival(&self) -> Arrival {
        let flow = self.rule().map_or(0, |rule| rule.flow_index);
        Arrival { flow, tuple: self.tuple, bytes: self.bytes.len(), ecn: Ecn::of_tos(self.tos) }
    }

    /// Applies other rules of its session.
    pub fn meet(&mut self, rules: &Arc<Rules>) -> QueueAction {
        let Some(flow) = Flow::of(&self.bytes) else { return QueueAction::Drop(DropReason::MalformedInner) };
        match select_rule(rules, self.origin, &flow, self.qfi) {
            Ok((rule, _)) if rule.direction() == self.direction => {
                (self.rule, self.rules) = (rule.index, Arc::clone(rules));
                hold_of(rule).map_or(QueueAction::Forward(rule.flow_index), QueueAction::Hold)
            }
            _ => QueueAction::Drop(DropReason::BufferDiscarded),
        }
    }

    /// Counts the packet as no longer queued: later packets of its session can no longer overtake it.
    pub fn leave(&self) {
        self.rules.state.waiting(self.direction).leave();
    }
}

/// How a rule's packets are held; `None` unless its action is to buffer.
pub fn hold_of(rule: &Rule) -> Option<Hold> {
    match rule.action {
        Some(Action::Buffer { notify, packets: most }) => Some(Hold { pdr: rule.pdr, most, notify }),
        _ => None,
    }
}

/// The queue by which other workers pass packets to one.
#[derive(Debug)]
pub struct WorkerQueue {
    sender: Sender<QueuedPacket>,
    inbox: Arc<Inbox>,
}

impl WorkerQueue {
    /// The queue of a worker, and its receiving end.
    pub fn new(inbox: Arc<Inbox>) -> (Self, Receiver<QueuedPacket>) {
        let (sender, receiver) = bounded(MAX_IN_TRANSIT);
        (Self { sender, inbox }, receiver)
    }

    /// Adds a packet, or returns it if the queue is full.
    pub fn push(&self, queued_packet: QueuedPacket) -> Result<(), QueuedPacket> {
        self.sender.try_send(queued_packet).map_err(TrySendError::into_inner)
    }

    /// Wakes the worker if it sleeps.
    pub fn wake_if_parked(&self) {
        // The fence pairs with the worker's: either this thread sees that the worker sleeps, or the worker
        // sees the packet before it sleeps.
        fence(SeqCst);
        if self.inbox.is_parked() {
            self.inbox.wake();
        }
    }
}
