//! The links of a transport with one pollable descriptor: receives and sends packets.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use super::Encapsulation;
use super::link::{BATCH, Link, Packet, ReceiveBatch, SendBatch};
use super::packet::ports_of_sent;
use super::path::{PathId, Paths};
use super::stack::PacketQueue;
use crate::sctp::SctpError;
use crate::sctp::poll::Epoll;

/// Number of batches read from a link before other links, and the owner's other work, are served.
const BATCHES_PER_TURN: usize = 4;

/// All links.
pub(super) struct Network {
    encapsulation: Encapsulation,
    links: Vec<Link>,
    epoll: Epoll,
    ready: Vec<usize>,
    incoming: ReceiveBatch,
    outgoing: PacketQueue,
    sending: SendBatch,
    /// Packets that the kernel refused; SCTP retransmits them.
    pub unsent: u64,
}

impl Network {
    pub fn new(encapsulation: Encapsulation) -> Result<Self, SctpError> {
        Ok(Self {
            encapsulation,
            links: Vec::new(),
            epoll: Epoll::new().map_err(SctpError::io("creating an epoll descriptor"))?,
            ready: Vec::new(),
            incoming: ReceiveBatch::new(),
            outgoing: PacketQueue::default(),
            sending: SendBatch::new(),
            unsent: 0,
        })
    }

    pub fn poll_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// The link of a listener on this address.
    pub fn listening_link(&mut self, local: IpAddr) -> Result<usize, SctpError> {
        match self.encapsulation {
            Encapsulation::RawIp => self.raw_link(local.is_ipv4()),
            Encapsulation::Udp { port } => self.udp_link(SocketAddr::new(local, port)),
        }
    }

    /// The link for associations from this address, and the UDP port (0 for raw IP) to send to.
    pub fn connecting_link(&mut self, local: IpAddr) -> Result<(usize, u16), SctpError> {
        match self.encapsulation {
            Encapsulation::RawIp => Ok((self.raw_link(local.is_ipv4())?, 0)),
            Encapsulation::Udp { port } => Ok((self.udp_link(SocketAddr::new(local, 0))?, port)),
        }
    }

    fn raw_link(&mut self, ipv4: bool) -> Result<usize, SctpError> {
        match self.links.iter().position(|l| l.is_raw() && l.bound.is_ipv4() == ipv4) {
            Some(index) => Ok(index),
            None => {
                self.add(Link::raw(ipv4).map_err(SctpError::io("opening a raw IP socket for protocol 132"))?)
            }
        }
    }

    fn udp_link(&mut self, bound: SocketAddr) -> Result<usize, SctpError> {
        match self.links.iter().position(|l| l.bound == bound) {
            Some(index) => Ok(index),
            None => {
                self.add(Link::udp(bound).map_err(SctpError::io(format!("binding UDP {bound} for SCTP")))?)
            }
        }
    }

    fn add(&mut self, link: Link) -> Result<usize, SctpError> {
        let index = self.links.len();
        self.epoll
            .add(link.as_fd(), libc::EPOLLIN, index as u64)
            .map_err(SctpError::io("watching an SCTP socket"))?;
        self.links.push(link);
        Ok(index)
    }

    /// Sets the filters of raw links to these local ports.
    pub fn restrict(&self, ports: &[u16], blocks: &[u16]) {
        for link in self.links.iter().filter(|link| link.is_raw()) {
            if let Err(error) = link.restrict(ports, blocks) {
                tracing::warn!(%error, "SCTP: cannot set a socket filter; packets of other programs cost CPU time");
            }
        }
    }

    /// Passes every received packet to `take`, with the index of its link.
    pub fn receive(&mut self, mut take: impl FnMut(usize, Packet<'_>)) {
        self.ready.clear();
        self.ready.extend(self.epoll.ready().map(|(token, _)| token as usize));
        for &index in &self.ready {
            let Some(link) = self.links.get(index) else { continue };
            for _ in 0..BATCHES_PER_TURN {
                let count = link.receive(&mut self.incoming).unwrap_or(0);
                for place in 0..count {
                    if let Some(packet) = link.packet(&self.incoming, place) {
                        take(index, packet);
                    }
                }
                if count < BATCH {
                    break;
                }
            }
        }
    }

    /// Sends the packets that `refill` queues, until it queues none.
    pub fn flush(&mut self, paths: &Paths, mut refill: impl FnMut(&mut PacketQueue)) {
        let mut outgoing = std::mem::take(&mut self.outgoing);
        loop {
            outgoing.clear();
            refill(&mut outgoing);
            if outgoing.is_empty() {
                break;
            }
            self.send_all(paths, outgoing.iter());
        }
        self.outgoing = outgoing;
    }

    /// Sends packets in order; consecutive packets on the same link are sent together.
    fn send_all<'a>(&mut self, paths: &Paths, packets: impl Iterator<Item = (PathId, &'a [u8])>) {
        let mut run: Vec<Packet<'_>> = Vec::with_capacity(BATCH);
        let mut run_link = 0;
        for (path, payload) in packets {
            let Some(address) = ports_of_sent(payload).and_then(|ports| paths.address_of(path, ports)) else {
                continue;
            };
            if address.link != run_link || run.len() == BATCH {
                self.send_run(run_link, &run);
                run.clear();
                run_link = address.link;
            }
            run.push(Packet { local: address.local, remote: address.remote, payload });
        }
        self.send_run(run_link, &run);
    }

    /// Sends packets on one link. Skips a packet that the kernel refuses, and drops the rest if its buffer is
    /// full.
    fn send_run(&mut self, link: usize, mut run: &[Packet<'_>]) {
        let Some(link) = self.links.get(link) else { return };
        while !run.is_empty() {
            let taken = match link.send(run, &mut self.sending) {
                Ok(taken) => taken.max(1),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) => {
                    tracing::debug!(%error, remote = %run[0].remote, "SCTP packet not sent");
                    let lost = if error.kind() == io::ErrorKind::WouldBlock { run.len() } else { 1 };
                    self.unsent += lost as u64;
                    lost
                }
            };
            run = run.get(taken..).unwrap_or_default();
        }
    }
}

/// The source address of the route to `remote`.
pub(super) fn route_source(remote: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = if remote.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let probe = UdpSocket::bind((any, 0))?;
    probe.connect(remote)?;
    Ok(probe.local_addr()?.ip())
}
