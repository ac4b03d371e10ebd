//! One association of either stack: a socket, and what is between two of its messages.

use std::io;
use std::net::{IpAddr, SocketAddr};

use super::{AssociationId, DownReason, SctpEvent, SendError};

/// A socket with one association, as both stacks have them.
pub(super) trait MessageSocket {
    /// Reads what is next, without waiting.
    fn receive(&self, buffer: &mut [u8]) -> Received;
    /// Queues a whole message, without waiting.
    fn send(&self, stream: u16, ppid: u32, payload: &[u8]) -> io::Result<()>;
    /// Begins a graceful end: nothing more can be sent.
    fn shutdown(&self) -> io::Result<()>;
    /// Whether there is room to write.
    fn is_writable(&self) -> bool;
    /// The peer's addresses, where there may be more than one.
    fn peer_addresses(&self) -> Vec<IpAddr> {
        Vec::new()
    }
}

/// What reading a socket gave.
pub(super) enum Received {
    /// A message, or the next part of one, at the beginning of the buffer.
    Data { length: usize, stream: u16, ppid: u32, complete: bool },
    /// The association changed.
    Change(Change),
    /// Some other notification.
    Nothing,
    /// All is read for now.
    WouldBlock,
    /// The association ended after a graceful shutdown.
    Closed,
    /// The association failed, with this error number.
    Failed(i32),
}

/// How many streams an association has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streams {
    pub inbound: u16,
    pub outbound: u16,
}

/// A change of an association, from a notification.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Up(Streams),
    Restart(Streams),
    Lost,
    ShutdownComplete,
}

/// One association of either side.
pub(super) struct Association<S> {
    pub socket: S,
    pub local: SocketAddr,
    peer: SocketAddr,
    state: State,
    pub paused: bool,
    /// A send was refused, and `SendReady` is owed.
    pub blocked: bool,
    /// The parts so far of a message that is not complete.
    partial: Vec<u8>,
}

/// How far an association is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Of this side's making, not established yet.
    Connecting,
    Up,
    /// Over; what arrived before that is still read.
    Ending(DownReason),
}

/// What reading an association came to.
pub(super) enum Step {
    Message {
        stream: u16,
        ppid: u32,
        payload: Vec<u8>,
    },
    Up(Streams),
    Restart(Streams),
    /// Something that concerns nobody; read on.
    Nothing,
    /// All is read.
    Idle,
    /// All is read, and nothing will follow.
    End(DownReason),
}

impl<S: MessageSocket> Association<S> {
    /// One whose notification of being up is still to come.
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

    /// One that is up.
    pub fn accepted(socket: S, local: SocketAddr, peer: SocketAddr) -> Self {
        Self { state: State::Up, ..Self::connecting(socket, local, peer) }
    }

    /// The event that tells the owner of this association.
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

    /// Whether `SendReady` is due; it is then taken as sent.
    pub fn has_room_again(&mut self) -> bool {
        let again = self.blocked && self.state == State::Up && self.socket.is_writable();
        self.blocked &= !again;
        again
    }

    /// Begins a graceful end; on error there is nothing to end, and reading gives `End`.
    pub fn shutdown(&mut self) -> io::Result<()> {
        self.socket.shutdown().inspect_err(|_| self.state = State::Ending(DownReason::Shutdown))
    }

    /// Reads what is next; a message longer than `max_message` ends the association.
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

    /// Remembers why, and reads on: the socket's error, which says more, may still follow.
    fn note_end(&mut self, reason: DownReason) -> Step {
        if !matches!(self.state, State::Ending(_)) {
            self.state = State::Ending(reason);
        }
        Step::Nothing
    }

    /// An error may be told before the messages that came before it, or after the notification of the loss.
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
