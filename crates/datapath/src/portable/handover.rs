//! A worker's part of a handover: it stops reading, gives its queued packets away, or takes those of another process.

use super::inbox::Message;
use super::path::select_rule;
use super::queued_packet::QueuedPacket;
use super::queues::Queues;
use super::tables::Tables;
use super::worker::Worker;
use super::{Handle, Path, PortableDatapath};
use crate::handover::{QueuedOctets, WorkerHandles};
use crate::packet::Flow;
use crate::rules::{Ingress, Origin};
use crate::sys::{GtpuSocket, TunQueue};
use crossbeam_channel::{Receiver, Sender, bounded};
use pith_upf::contract::{Qfi, SessionId, Teid};
use std::io;
use std::time::Duration;

/// The longest time for a worker to finish its batch.
const PATIENCE: Duration = Duration::from_secs(2);

/// An order that a worker executes between two batches, with the channel of its confirmation.
#[derive(Debug)]
pub enum Order {
    /// Reads no more from its sockets and TUN. Frames of AF_XDP and queues go on.
    Hold(Sender<()>),
    /// Forwards the remaining frames of its AF_XDP sockets, and closes these.
    Drain(Sender<()>),
    /// Gives all queued packets away.
    Give(Sender<Vec<QueuedOctets>>),
    /// Queues packets of another process.
    Queue(Vec<QueuedOctets>, Sender<()>),
    /// Reads again.
    Resume(Sender<()>),
}

impl Worker {
    /// Executes the orders that it has received. No batch is in progress.
    pub(super) fn execute_orders(&mut self) {
        for order in std::mem::take(&mut self.orders) {
            match order {
                Order::Hold(done) => {
                    self.holds = true;
                    confirm(&done, ());
                }
                Order::Drain(done) => {
                    while self.forward_redirected().0 {}
                    self.path.give_to_others();
                    self.path.ports = super::Ports::default();
                    confirm(&done, ());
                }
                Order::Give(packets) => confirm(&packets, self.queues.give_away(&mut self.path)),
                Order::Queue(packets, done) => {
                    packets.into_iter().for_each(|packet| queue(&mut self.path, &self.tables, packet));
                    self.queues.serve(&mut self.path, &self.tables);
                    confirm(&done, ());
                }
                Order::Resume(done) => {
                    self.holds = false;
                    confirm(&done, ());
                }
            }
        }
    }
}

/// The control thread waits, unless it has given up.
fn confirm<T>(to: &Sender<T>, value: T) {
    let _ = to.send(value);
}

/// Queues a packet by the current rules of its session.
fn queue(path: &mut Path, tables: &Tables, packet: QueuedOctets) {
    let Some(flow) = Flow::of(&packet.octets) else { return };
    let Some(rules) = tables.by_id(packet.session) else { return };
    let origin = packet.teid.map_or(Origin::Network, |teid| Origin::Tunnel(Teid(teid)));
    let qfi = packet.qfi.map(Qfi);
    let ingress = Ingress { origin, qfi, flow: &flow };
    match select_rule(rules, origin, &flow, qfi) {
        Ok((rule, _)) => path.queue_owned(rules, rule, ingress, packet.octets),
        Err((rule, reason)) => path.refuse(rules, rule, ingress, reason),
    }
}

impl Queues {
    /// Removes all packets, also those in transit from other workers.
    fn give_away(&mut self, path: &mut Path) -> Vec<QueuedOctets> {
        let Queues { engine, incoming, .. } = self;
        let all = engine.take_all().into_iter().chain(incoming.try_iter()).chain(path.queueing.drain(..));
        all.map(|packet| {
            packet.leave();
            packet.into_octets()
        })
        .collect()
    }
}

impl QueuedPacket {
    fn into_octets(self) -> QueuedOctets {
        let teid = match self.origin() {
            Origin::Tunnel(teid) => Some(teid.0),
            Origin::Network => None,
        };
        let (session, qfi) = (self.rules.state.id, self.qfi().map(|qfi| qfi.0));
        QueuedOctets { session, teid, qfi, octets: self.bytes }
    }
}

/// The descriptors of a worker, kept to be handed over.
#[derive(Debug)]
pub struct Shared {
    sockets: Vec<std::os::fd::OwnedFd>,
    tun: std::os::fd::OwnedFd,
    batched: bool,
}

impl Shared {
    pub fn of(sockets: &[GtpuSocket], tun: &TunQueue) -> io::Result<Self> {
        let sockets = sockets.iter().map(GtpuSocket::share).collect::<Result<_, _>>()?;
        Ok(Self { sockets, tun: tun.share()?, batched: tun.is_batched() })
    }

    /// The worker's queue.
    pub fn tun(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.tun)
    }

    fn handles(&self) -> io::Result<WorkerHandles> {
        let sockets = self.sockets.iter().map(|socket| socket.try_clone()).collect::<Result<_, _>>()?;
        Ok(WorkerHandles { sockets, tun: self.tun.try_clone()?, batched: self.batched })
    }
}

impl PortableDatapath {
    /// The descriptors of all workers.
    pub(crate) fn worker_handles(&self) -> io::Result<Vec<WorkerHandles>> {
        self.workers.iter().map(|worker| worker.shared.handles()).collect()
    }

    /// Sessions with queued packets.
    pub(crate) fn queueing(&self) -> Vec<SessionId> {
        self.sessions.waiting().collect()
    }

    /// When this returns, no worker reads from sockets or TUN.
    pub(crate) fn hold(&self) -> io::Result<()> {
        self.order_all(Order::Hold)
    }

    /// Ends the AF_XDP sockets, and returns all queued packets. Afterwards no packet is counted.
    pub(crate) fn drain(&self) -> io::Result<Vec<QueuedOctets>> {
        // First all frames, which may be queued at another worker.
        self.order_all(Order::Drain)?;
        let given: Vec<_> = self.workers.iter().map(|worker| worker.order(Order::Give)).collect();
        let given = given.iter().map(received).collect::<Result<Vec<_>, _>>()?;
        Ok(given.into_iter().flatten().collect())
    }

    /// Queues the packets, and reads again, also if a worker has not queued them in time.
    pub(crate) fn resume(&self, packets: Vec<QueuedOctets>) -> io::Result<()> {
        let mut shares: Vec<Vec<QueuedOctets>> = self.workers.iter().map(|_| Vec::new()).collect();
        let count = shares.len().max(1) as u64;
        for packet in packets {
            // All packets of a session at one worker, in order.
            if let Some(share) = shares.get_mut((packet.session.0 % count) as usize) {
                share.push(packet);
            }
        }
        let workers = self.workers.iter().zip(shares);
        let queued: Vec<_> =
            workers.map(|(worker, share)| worker.order(|done| Order::Queue(share, done))).collect();
        let queued = queued.iter().try_for_each(received);
        queued.and(self.order_all(Order::Resume))
    }

    fn order_all(&self, order: fn(Sender<()>) -> Order) -> io::Result<()> {
        let given: Vec<_> = self.workers.iter().map(|worker| worker.order(order)).collect();
        given.iter().try_for_each(received)
    }
}

impl Handle {
    /// Gives the worker an order; the receiver gets the confirmation.
    fn order<T>(&self, order: impl FnOnce(Sender<T>) -> Order) -> Receiver<T> {
        let (done, confirmed) = bounded(1);
        self.inbox.post(Message::Order(order(done)));
        self.inbox.wake();
        confirmed
    }
}

fn received<T>(from: &Receiver<T>) -> io::Result<T> {
    from.recv_timeout(PATIENCE).map_err(|_| io::Error::other("a datapath worker is stuck"))
}
