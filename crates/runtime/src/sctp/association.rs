//! An SCTP association of either stack: its socket and its state.

use std::io;
use std::net::{IpAddr, SocketAddr};

use super::{AssociationId, DownReason, SctpEvent, SendError};

/// A socket with one association, implemented by both stacks.
pub(super) trait MessageSocket {
    /// Reads the next message or notification without blocking.
    fn receive(&self, buffer: &mut [u8]) -> Received;
    /// Queues a complete message without blocking.
    fn send(&self, stream: u16, ppid: u32, payload: &[u8]) -> io::Result<()>;
    /// Starts a graceful shutdown: nothing more can be sent.
    fn shutdown(&self) -> io::Result<()>;
    /// Whether the socket accepts messages.
    fn is_writable(&self) -> bool;
    /// The peer's addresses, if there may be more than one.
    fn peer_addresses(&self) -> Vec<IpAddr> {
        Vec::new()
    }
}

/// The result of a read.
pub(super) enum Received {
    /// A message, or a part of one, at the beginning of the buffer.
    Data { length: usize, stream: u16, ppid: u32, complete: bool },
    /// A change of the association's state.
    Change(Change),
    /// Another notification.
    Nothing,
    /// The socket has no more data to read (`EWOULDBLOCK`).
    WouldBlock,
    /// The association ended after a graceful shutdown.
    Closed,
    /// The association failed, with this error number.
    Failed(i32),
}

/// Numbers of streams of an association.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streams {
    pub inbound: u16,
    pub outbound: u16,
}

/// A change of state from a notification.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Up(Streams),
    Restart(Streams),
    Lost,
    ShutdownComplete,
}

/// An association that either side started.
pub(super) struct Association<S> {
    pub socket: S,
    pub local: SocketAddr,
    peer: SocketAddr,
    state: State,
    pub paused: bool,
    /// A send was refused, so that `SendReady` must follow.
    pub blocked: bool,
    /// The parts received so far of an incomplete message.
    partial: Vec<u8>,
}

/// The state of an association.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Started by this side and not yet established.
    Connecting,
    Up,
    /// Ended; messages that arrived before are still read.
    Ending(DownReason),
}

/// The result of reading an association.
pub(super) enum Step {
    Message {
        stream: u16,
        ppid: u32,
        payload: Vec<u8>,
    },
    Up(Streams),
    Restart(Streams),
    /// Nothing for the owner; continue reading.
    Nothing,
    /// The socket has no more data to read (`EWOULDBLOCK`).
    Idle,
    /// Everything is read and nothing will follow.
    End(DownReason),
}

impl<S: MessageSocket> Association<S> {
    /// An association whose notification of being up is still to come.
    pub fn connecting(socket: S, local: SocketAddr, peer: SocketAddr) -> Self {
        Self {
            socket,
            local,
            peer,
            state: State::Connecting,
            paused: false,
            blocked: false,
            partial: Vec::new(),
        }
    }

    /// An association that is up.
    pub fn accepted(socket: S, local: SocketAddr, peer: SocketAddr) -> Self {
        Self { state: State::Up, ..Self::connecting(socket, local, peer) }
    }

    /// The event for the owner that this association is up.
    pub fn up(&self, association: AssociationId, streams: Streams) -> SctpEvent {
        SctpEvent::Up {
            association,
            peer: self.peer,
            alternatives: self.alternatives(),
            local: self.local,
            inbound_streams: streams.inbound,
            outbound_streams: streams.outbound,
        }
    }

    /// The peer's address and SCTP port.
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn alternatives(&self) -> Vec<IpAddr> {
        let mut addresses = self.socket.peer_addresses();
        addresses.retain(|address| *address != self.peer.ip());
        addresses
    }

    /// Queues a message whose length has been checked.
    pub fn send(&mut self, stream: u16, ppid: u32, payload: &[u8]) -> Result<(), SendError> {
        if self.state != State::Up {
            return Err(SendError::Closed);
        }
        self.socket.send(stream, ppid, payload).map_err(|error| match error.raw_os_error() {
            Some(libc::EWOULDBLOCK | libc::ENOBUFS | libc::ENOMEM) => {
                self.blocked = true;
                SendError::Backpressure
            }
            Some(libc::EINVAL) => SendError::NoSuchStream,
            Some(libc::EMSGSIZE) => SendError::Length,
            _ => SendError::Closed,
        })
    }

    /// Whether `SendReady` is due; clears the flag.
    pub fn has_room_again(&mut self) -> bool {
        let again = self.blocked && self.state == State::Up && self.socket.is_writable();
        self.blocked &= !again;
        again
    }

    /// Starts a graceful shutdown. After an error the association has ended, and reading returns `End`.
    pub fn shutdown(&mut self) -> io::Result<()> {
        self.socket.shutdown().inspect_err(|_| self.state = State::Ending(DownReason::Shutdown))
    }

    /// Reads the next message or notification. A message longer than `max_message` ends the association.
    pub fn read(&mut self, buffer: &mut [u8], max_message: usize) -> Step {
        match self.socket.receive(buffer) {
            Received::Data { length, stream, ppid, complete } => match buffer.get(..length) {
                Some(part) => self.take_part(part, stream, ppid, complete, max_message),
                None => Step::Nothing,
            },
            Received::Change(change) => self.change(change),
            Received::Nothing => Step::Nothing,
            Received::WouldBlock => self.end_or(Step::Idle),
            Received::Closed => self.end_or(Step::End(DownReason::Shutdown)),
            Received::Failed(errno) => self.fail(DownReason::from_errno(errno)),
        }
    }

    fn take_part(&mut self, part: &[u8], stream: u16, ppid: u32, complete: bool, max_message: usize) -> Step {
        if self.partial.len() + part.len() > max_message {
            return Step::End(DownReason::MessageTooLong);
        }
        if !complete {
            self.partial.extend_from_slice(part);
            return Step::Nothing;
        }
        let mut payload = std::mem::take(&mut self.partial);
        payload.extend_from_slice(part);
        Step::Message { stream, ppid, payload }
    }

    fn change(&mut self, change: Change) -> Step {
        match change {
            Change::Up(streams) if self.state == State::Connecting => {
                self.state = State::Up;
                Step::Up(streams)
            }
            Change::Restart(streams) => {
                self.partial.clear();
                Step::Restart(streams)
            }
            Change::Lost => self.note_end(DownReason::Unreachable),
            Change::ShutdownComplete => self.note_end(DownReason::Shutdown),
            Change::Up(_) => Step::Nothing,
        }
    }

    /// Stores the reason and continues reading: the socket's error, which is more specific, may still follow.
    fn note_end(&mut self, reason: DownReason) -> Step {
        if !matches!(self.state, State::Ending(_)) {
            self.state = State::Ending(reason);
        }
        Step::Nothing
    }

    /// An error may be reported before messages that arrived earlier, or after the notification of the loss.
    fn fail(&mut self, reason: DownReason) -> Step {
        match self.state {
            State::Ending(_) => Step::End(reason),
            _ => self.note_end(reason),
        }
    }

    fn end_or(&self, otherwise: Step) -> Step {
        match self.state {
            State::Ending(reason) => Step::End(reason),
            _ => otherwise,
        }
    }
}
