//! Kernel SCTP: a one-to-one socket for each association, with one epoll descriptor.
//!
//! The kernel handles timers, retransmission and multi-homing. A paused association is not read, so that its
//! receive buffer fills and its window closes.

mod socket;
mod uapi;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use super::association::Association;
use super::poll::Epoll;
use super::table::{Associations, Holds, Reader, Served};
use super::{AssociationId, SctpConfig, SctpError, SctpEvent, SctpTransport, SendError};
use socket::Socket;

/// Set in the epoll token of a listener; the other bits are its index. Tokens without it are slots of
/// associations.
const LISTENER: u64 = 1 << 63;
/// Events that epoll reports for every association in any case.
const BROKEN: libc::c_int = libc::EPOLLERR | libc::EPOLLHUP;

/// SCTP by the kernel.
pub struct KernelTransport {
    description: String,
    config: SctpConfig,
    epoll: Epoll,
    ready: Vec<(u64, libc::c_int)>,
    listeners: Vec<Socket>,
    associations: Associations<Association<Socket>>,
    reader: Reader,
}

impl Holds for Association<Socket> {
    type Socket = Socket;

    fn association(&mut self) -> &mut Self {
        self
    }
}

impl KernelTransport {
    /// Creates the transport; `why` is part of its description.
    pub fn open(config: SctpConfig, why: String) -> Result<Self, SctpError> {
        Ok(Self {
            description: format!("kernel SCTP: {why}"),
            epoll: Epoll::new().map_err(SctpError::io("creating an epoll descriptor"))?,
            ready: Vec::new(),
            listeners: Vec::new(),
            associations: Associations::new(),
            reader: Reader::new(config.max_message),
            config,
        })
    }

    fn check_room(&self) -> Result<(), SctpError> {
        let limit = self.config.max_associations;
        if self.associations.len() < limit { Ok(()) } else { Err(SctpError::TooManyAssociations(limit)) }
    }

    fn listener(&self, local: &[SocketAddr]) -> std::io::Result<Socket> {
        // An IPv6 socket can have addresses of both families.
        let first = local.iter().find(|local| local.is_ipv6()).or(local.first());
        let first = *first.ok_or(std::io::ErrorKind::InvalidInput)?;
        let socket = Socket::open(first, &self.config)?;
        if local.iter().any(SocketAddr::is_ipv4) && first.is_ipv6() {
            socket.accept_both_families()?;
        }
        socket.bind(first)?;
        let more: Vec<_> = local.iter().copied().filter(|address| *address != first).collect();
        if !more.is_empty() {
            socket.add_addresses(&more)?;
        }
        socket.listen()?;
        self.epoll.add(socket.as_fd(), libc::EPOLLIN, LISTENER | self.listeners.len() as u64)?;
        Ok(socket)
    }

    fn client(&self, local: Option<IpAddr>, remote: SocketAddr) -> std::io::Result<(Socket, SocketAddr)> {
        let any = if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = Socket::open(remote, &self.config)?;
        socket.bind(SocketAddr::new(local.unwrap_or(any), 0))?;
        socket.connect(remote)?;
        let local = socket.local()?;
        Ok((socket, local))
    }

    fn insert(
        &mut self,
        socket: Socket,
        make: impl FnOnce(Socket) -> Association<Socket>,
    ) -> std::io::Result<AssociationId> {
        let epoll = &self.epoll;
        self.associations.insert_with(|id| {
            epoll.add(socket.as_fd(), libc::EPOLLIN, id.slot().into())?;
            Ok(make(socket))
        })
    }

    /// Accepts new associations. Their `Up` follows from the notification on each socket, before its
    /// messages: an association may already have ended.
    fn accept_all(&mut self, index: usize) {
        while let Some(Ok((socket, peer))) = self.listeners.get(index).map(Socket::accept) {
            let (Ok(local), Ok(())) = (socket.local(), self.check_room()) else {
                continue; // ended already, or above the limit: closing aborts it
            };
            if let Err(error) = self.insert(socket, |s| Association::connecting(s, local, peer)) {
                tracing::error!(%error, %peer, "SCTP association cannot be polled");
            }
        }
    }

    fn serve(&mut self, slot: u32, flags: libc::c_int, events: &mut Vec<SctpEvent>) {
        let Some(id) = self.associations.id_of_slot(slot) else { return };
        let paused = self.associations.find(id).is_some_and(|a| a.paused);
        let readable = (flags & libc::EPOLLIN != 0 && !paused) || flags & BROKEN != 0;
        if readable && let Served::Ended(id) = self.reader.serve(&mut self.associations, id, events) {
            self.associations.remove(id);
            return;
        }
        if flags & libc::EPOLLOUT != 0 {
            self.announce_room(id, events);
        }
    }

    fn announce_room(&mut self, id: AssociationId, events: &mut Vec<SctpEvent>) {
        if self.associations.find(id).is_some_and(Association::has_room_again) {
            events.push(SctpEvent::SendReady { association: id });
            self.watch(id);
        }
    }

    /// Polls an association for the events that its state needs.
    fn watch(&mut self, id: AssociationId) {
        if let Some(association) = self.associations.find(id) {
            let read = if association.paused { 0 } else { libc::EPOLLIN };
            let write = if association.blocked { libc::EPOLLOUT } else { 0 };
            if let Err(error) = self.epoll.modify(association.socket.as_fd(), read | write, id.slot().into())
            {
                tracing::error!(%error, association = %id, "SCTP association can no longer be polled");
            }
        }
    }

    fn set_paused(&mut self, id: AssociationId, paused: bool) {
        if let Some(association) = self.associations.find(id) {
            association.paused = paused;
            self.watch(id);
        }
    }
}

impl SctpTransport for KernelTransport {
    fn description(&self) -> &str {
        &self.description
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// The kernel runs the timers.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn listen_on(&mut self, local: &[SocketAddr]) -> Result<(), SctpError> {
        let listed: Vec<_> = local.iter().map(SocketAddr::to_string).collect();
        let doing = format!("listening on {}", listed.join(", "));
        let socket = self.listener(local).map_err(SctpError::io(doing))?;
        self.listeners.push(socket);
        Ok(())
    }

    fn connect(&mut self, local: Option<IpAddr>, remote: SocketAddr) -> Result<AssociationId, SctpError> {
        if let Some(local) = local.filter(|l| l.is_ipv4() != remote.is_ipv4()) {
            return Err(SctpError::AddressFamily { local, remote });
        }
        self.check_room()?;
        self.client(local, remote)
            .and_then(|(socket, local)| self.insert(socket, |s| Association::connecting(s, local, remote)))
            .map_err(SctpError::io(format!("connecting to {remote}")))
    }

    fn send(
        &mut self,
        association: AssociationId,
        stream: u16,
        ppid: u32,
        payload: &[u8],
    ) -> Result<(), SendError> {
        if payload.is_empty() || payload.len() > self.config.max_message {
            return Err(SendError::Length);
        }
        let found = self.associations.find(association).ok_or(SendError::Closed)?;
        let sent = found.send(stream, ppid, payload);
        if sent == Err(SendError::Backpressure) {
            self.watch(association);
        }
        sent
    }

    /// The kernel sends immediately.
    fn flush(&mut self) {}

    fn pause_reading(&mut self, association: AssociationId) {
        self.set_paused(association, true);
    }

    fn resume_reading(&mut self, association: AssociationId) {
        self.set_paused(association, false);
    }

    fn shutdown(&mut self, association: AssociationId) {
        if let Some(association) = self.associations.find(association) {
            // After an error the association has ended, which the next read reports.
            let _ = association.shutdown();
        }
    }

    fn abort(&mut self, association: AssociationId) {
        self.associations.remove(association);
    }

    fn process(&mut self, _now: Instant, events: &mut Vec<SctpEvent>) {
        let mut ready = std::mem::take(&mut self.ready);
        ready.extend(self.epoll.ready());
        for (token, flags) in ready.drain(..) {
            match token & LISTENER {
                0 => self.serve(token as u32, flags, events),
                _ => self.accept_all((token & !LISTENER) as usize),
            }
        }
        self.ready = ready;
    }
}
