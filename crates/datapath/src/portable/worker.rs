//! A worker: one thread with a socket for each N3 address, a TUN queue and its own tables; with AF_XDP also
//! the sockets of some interface queues.
//!
//! ```text
//!   ┌─▶ take messages ─▶ serve queues ─▶ packets left? ──yes──────┐
//!   │                                          │ no               │
//!   │                          park, poll until one is due, unpark│
//!   │                                          ▼                  │
//!   └──── flush ◀── downlink batch ◀── uplink batch ◀─────────────┘
//! ```
//!
//! A batch is: receive packets, take messages, forward the packets. `install` does not wait for awake workers, so the rules of
//! a received packet may have been posted while the worker was about to receive it.

use super::handover::Order;
use super::inbox::{Inbox, Message};
use super::pace::Pace;
use super::path::Path;
use super::queues::Queues;
use super::signalling::Signaller;
use super::tables::Tables;
use crate::sys::{Datagram, RECEIVE_SLOT, RECEIVE_SLOTS, wait_readable};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// Bits of ready descriptors: the wake-up, the TUN queue, then the GTP-U sockets, then the AF_XDP sockets.
const WAKE: u32 = 1;
const TUN: u32 = 2;
const ALL: u32 = u32::MAX;
/// Batches of reads from TUN before other work.
const READS: usize = 16;
/// Packets for the queues of other workers that are given to them before more are read: their inboxes are shared by all sessions.
const GIVEN_AT_ONCE: usize = 512;

/// The state of the thread.
#[derive(Debug)]
pub struct Worker {
    inbox: Arc<Inbox>,
    pub(super) tables: Tables,
    pub(super) path: Path,
    pub(super) queues: Queues,
    signaller: Signaller,
    arena: Box<[u8]>,
    received: Vec<Datagram>,
    /// Positions of frames in the arena.
    frames: Vec<Range<usize>>,
    pace: Pace,
    taken: Vec<Message>,
    /// Whether the worker received the message to stop.
    stops: bool,
    /// Whether sockets and TUN are another process's to read.
    pub(super) holds: bool,
    /// Orders to execute when no batch is in progress.
    pub(super) orders: Vec<Order>,
}

/// Whether the worker continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Continuation {
    Continue,
    Stop,
}

impl Worker {
    pub fn new(inbox: Arc<Inbox>, path: Path, queues: Queues, holds: bool) -> Self {
        let pace = Pace::new(path.now);
        Self {
            inbox,
            tables: Tables::default(),
            path,
            queues,
            signaller: Signaller::new(),
            arena: vec![0; RECEIVE_SLOTS * RECEIVE_SLOT].into_boxed_slice(),
            received: Vec::with_capacity(RECEIVE_SLOTS),
            frames: Vec::new(),
            pace,
            taken: Vec::new(),
            stops: false,
            holds,
            orders: Vec::new(),
        }
    }

    /// Runs until stopped.
    pub fn run(mut self) {
        let mut ready = 0;
        loop {
            if self.begin_batch() == Continuation::Stop {
                return;
            }
            self.queues.serve(&mut self.path, &self.tables);
            self.path.give_to_others();
            if ready == 0 {
                ready = self.sleep();
                if self.begin_batch() == Continuation::Stop {
                    return;
                }
            }
            ready = if self.round(ready) { ALL } else { 0 };
        }
    }

    /// Forwards a batch from each ready descriptor. Returns whether there may be more.
    fn round(&mut self, ready: u32) -> bool {
        if ready == 0 {
            return false;
        }
        let before = self.path.counters.packets_received();
        let more_uplink = ready & !(WAKE | TUN) != 0 && !self.holds && self.uplink();
        let more_downlink = ready & TUN != 0 && !self.holds && self.downlink();
        let packets = self.path.counters.packets_received() - before;
        let (more_redirected, frames) =
            if ready & !(WAKE | TUN) != 0 { self.forward_redirected() } else { (false, false) };
        self.pace.note(self.path.now, packets, frames);
        more_uplink || more_downlink || more_redirected
    }

    fn begin_batch(&mut self) -> Continuation {
        self.path.now = self.path.shared.clock.now();
        self.take_messages();
        self.execute_orders();
        if self.stops { Continuation::Stop } else { Continuation::Continue }
    }

    /// Waits for packets or a wake-up, and returns the ready bits.
    fn sleep(&self) -> u32 {
        if !self.inbox.park() {
            return 0;
        }
        if self.queues.has_incoming() {
            self.inbox.unpark();
            return 0;
        }
        let due = self.queues.due_in(self.path.shared.clock.now());
        if let Some(nap) = self.pace.nap(due) {
            let woken = wait_readable(&[self.inbox.wake_fd().as_fd()], Some(nap)).unwrap_or(WAKE);
            self.inbox.unpark();
            if woken & WAKE != 0 {
                self.inbox.wake_fd().clear();
            }
            return ALL;
        }
        let ready = self.wait(due).unwrap_or_else(|error| {
            tracing::error!(%error, "a datapath worker cannot wait for packets");
            std::thread::sleep(std::time::Duration::from_millis(100));
            ALL
        });
        self.inbox.unpark();
        if ready & WAKE != 0 {
            self.inbox.wake_fd().clear();
        }
        ready
    }

    /// Waits for a readable descriptor. A worker that holds waits for a wake-up and for AF_XDP only.
    fn wait(&self, due: Option<Duration>) -> io::Result<u32> {
        let wake = self.inbox.wake_fd().as_fd();
        if self.holds {
            let all: Vec<_> = [wake].into_iter().chain(self.path.ports.fds()).collect();
            let ready = wait_readable(&all, due)?;
            return Ok(if ready & !WAKE == 0 { ready } else { ready & WAKE | !(WAKE | TUN) });
        }
        let sockets = self.path.sockets.iter().map(AsFd::as_fd);
        let others = [wake, self.path.tun.as_fd()];
        let all: Vec<_> = others.into_iter().chain(sockets).chain(self.path.ports.fds()).collect();
        wait_readable(&all, due)
    }

    fn take_messages(&mut self) {
        let Some(number) = self.inbox.take(&mut self.taken) else { return };
        self.path.border.forget();
        let mut advertised = Vec::new();
        for message in std::mem::take(&mut self.taken) {
            let Self { tables, queues, path, .. } = self;
            match message {
                Message::Publish { rules, previous } => {
                    tables.publish(&rules, previous.as_ref());
                    queues.adopt(path, tables, &rules);
                }
                Message::Remove(rules) => {
                    tables.remove(&rules);
                    queues.discard(path, tables, &rules, true);
                }
                Message::Advertise(session) => advertised.push(session),
                Message::Discard(rules) => queues.discard(path, tables, &rules, false),
                Message::Reach(reach) => path.border.set_reach(reach),
                Message::SendBy(out) => path.n6.packet_out = Some(out),
                Message::Fib(fib) => path.n6.set_fib(fib),
                Message::Peer { address, known } => path.border.set_peer(address, known),
                Message::Serve(port) => path.ports.serve(port),
                Message::Order(order) => self.orders.push(order),
                Message::Stop => self.stops = true,
            }
        }
        if self.holds {
            // UEs of sessions that are taken over have their prefixes.
            advertised.clear();
        }
        // By the current rules, and not to a session that a later message has removed.
        for rules in advertised.into_iter().filter_map(|session| self.tables.by_id(session)) {
            self.path.advertise(rules, None);
            self.path.flush_n3();
            self.path.ports.flush();
        }
        self.inbox.confirm(number);
    }

    /// Receives and forwards a batch from each socket. Returns whether there may be more.
    fn uplink(&mut self) -> bool {
        let mut full = false;
        for socket in 0..self.path.sockets.len() {
            self.received.clear();
            self.before_receiving();
            let Some(from) = self.path.sockets.get(socket) else { continue };
            if from.receive(&mut self.arena, &mut self.received).is_err() {
                continue;
            }
            full |= self.received.len() == RECEIVE_SLOTS;
            self.take_messages();
            let (path, signaller) = (&mut self.path, &mut self.signaller);
            path.uplink(&self.tables, signaller, &mut self.arena, &self.received, socket);
        }
        full
    }

    /// Forwards a batch of packets from the TUN queue. Returns whether there may be more.
    fn downlink(&mut self) -> bool {
        let mut more = true;
        for _ in 0..READS {
            self.before_receiving();
            more = self.path.read_from_network();
            self.take_messages();
            self.path.forward_read(&self.tables);
            if !more {
                break;
            }
            if self.path.for_others.len() >= GIVEN_AT_ONCE {
                self.flush();
                self.path.give_to_others();
            }
        }
        self.flush();
        more
    }

    fn flush(&mut self) {
        self.path.flush_n3();
        self.path.ports.flush();
    }

    /// Lets a test act between taking messages and receiving packets.
    fn before_receiving(&self) {
        #[cfg(test)]
        self.path.shared.delay.wait();
    }

    /// Forwards a batch of frames redirected by the program. Returns whether there may be more, and whether
    /// there were any.
    pub(super) fn forward_redirected(&mut self) -> (bool, bool) {
        let (mut more, mut any) = (false, false);
        for port in 0..self.path.ports.len() {
            self.frames.clear();
            more |= self.path.ports.receive(port, &mut self.arena, &mut self.frames);
            any |= !self.frames.is_empty();
            self.take_messages();
            self.path.forward_redirected(&self.tables, &mut self.signaller, &mut self.arena, &self.frames);
        }
        (more, any)
    }
}
