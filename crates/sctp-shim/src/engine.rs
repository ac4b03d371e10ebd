//! The thread that owns the SCTP transport and moves messages between it and the program's sockets.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use libc::{c_int, c_short, pollfd};
use pith_runtime::sctp::{
    self, AssociationId, DownReason, SctpConfig, SctpEvent, SctpMode, SctpTransport, SendError,
};

use crate::abi;
use crate::handle::{self, Handle, Streams};
use crate::message::{Frame, HEADER, Kind};

/// Longest frame on a pair.
const MAX_FRAME: usize = 256 << 10;
/// Frames taken from a socket before other sockets are served.
const FRAMES_PER_TURN: usize = 64;
/// Longest time that an exiting program waits for the end of its associations.
const EXIT_TIMEOUT: Duration = Duration::from_millis(200);

thread_local! {
    static IS_ENGINE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is the engine's thread, whose own sockets are not intercepted.
pub(crate) fn is_this_thread() -> bool {
    IS_ENGINE.try_with(Cell::get).unwrap_or(true)
}

/// A request of a program's thread to the engine.
enum Command {
    Connect {
        handle: Arc<Handle>,
        end: OwnedFd,
        remote: SocketAddr,
        reply: Sender<io::Result<()>>,
    },
    Listen {
        handle: Arc<Handle>,
        end: OwnedFd,
        reply: Sender<io::Result<()>>,
    },
    /// The program exits.
    Exit {
        reply: Sender<io::Result<()>>,
    },
}

/// The command queue of the engine.
struct Mailbox {
    commands: Mutex<VecDeque<Command>>,
    wake: OwnedFd,
}

static MAILBOX: OnceLock<Mailbox> = OnceLock::new();
static RUNNING: AtomicBool = AtomicBool::new(false);

/// Posts a command; the first one starts the engine.
fn post(command: Command) -> io::Result<()> {
    let mailbox = MAILBOX.get_or_init(|| {
        // SAFETY: no pointers; the result is checked when it is used.
        let wake = unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)) };
        Mailbox { commands: Mutex::default(), wake }
    });
    mailbox.commands.lock().unwrap_or_else(PoisonError::into_inner).push_back(command);
    if !RUNNING.swap(true, Ordering::AcqRel) {
        std::thread::Builder::new().name("sctp".to_owned()).spawn(|| run(mailbox))?;
        // SAFETY: the function lives as long as the process.
        unsafe { libc::atexit(on_exit) };
    }
    // SAFETY: the counter is 8 bytes.
    unsafe { libc::eventfd_write(mailbox.wake.as_raw_fd(), 1) };
    Ok(())
}

fn broken() -> io::Error {
    io::Error::from_raw_os_error(libc::ENETDOWN)
}

/// Starts an association for a socket; with `wait` returns when it is up or has failed.
pub(crate) fn connect(handle: &Arc<Handle>, remote: SocketAddr, wait: bool) -> io::Result<()> {
    let end = handle.take_engine_end()?;
    let (reply, answer) = mpsc::channel();
    post(Command::Connect { handle: Arc::clone(handle), end, remote, reply })?;
    if wait { answer.recv().unwrap_or_else(|_| Err(broken())) } else { Ok(()) }
}

/// Makes a socket a listener.
pub(crate) fn listen(handle: &Arc<Handle>) -> io::Result<()> {
    let end = handle.take_engine_end()?;
    let (reply, answer) = mpsc::channel();
    post(Command::Listen { handle: Arc::clone(handle), end, reply })?;
    answer.recv().unwrap_or_else(|_| Err(broken()))
}

extern "C" fn on_exit() {
    let (reply, answer): (Sender<io::Result<()>>, Receiver<_>) = mpsc::channel();
    if post(Command::Exit { reply }).is_ok() {
        // The answer does not matter: the process ends.
        let _ = answer.recv_timeout(EXIT_TIMEOUT);
    }
}

/// The engine's thread.
fn run(mailbox: &'static Mailbox) {
    IS_ENGINE.set(true);
    let mode = std::env::var("PITH_SCTP").unwrap_or_else(|_| "auto".to_owned());
    let opened = mode.parse::<SctpMode>().map_err(|e| e.to_string());
    let opened = opened.and_then(|mode| sctp::open(mode, SctpConfig::default()).map_err(|e| e.to_string()));
    match opened {
        Ok(transport) => Engine::new(mailbox, transport).run(),
        Err(error) => eprintln!("pith-sctp-shim: {error} (PITH_SCTP={mode})"),
    }
    // The end of its channel wakes every waiting thread.
    mailbox.commands.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// A program's socket in the engine.
struct SocketState {
    handle: Arc<Handle>,
    /// The engine's end of the pair.
    end: OwnedFd,
    role: Role,
    /// Frames for the program that did not fit into the socket yet.
    waiting: VecDeque<Vec<u8>>,
}

/// The role of a socket.
enum Role {
    Listener {
        local: SocketAddr,
    },
    Association {
        id: AssociationId,
        /// Receives the result of the set-up.
        connecting: Option<Sender<io::Result<()>>>,
        /// A message for which the transport had no room.
        refused: Option<(Frame, Vec<u8>)>,
        /// The program has closed its end.
        closed: bool,
        /// The association has ended; the engine's end is closed when all frames have been read.
        over: bool,
    },
}

struct Engine {
    mailbox: &'static Mailbox,
    transport: Box<dyn SctpTransport>,
    sockets: HashMap<RawFd, SocketState>,
    by_association: HashMap<AssociationId, RawFd>,
    events: Vec<SctpEvent>,
    buffer: Vec<u8>,
    polls: Vec<pollfd>,
    leaving: bool,
}

impl Engine {
    fn new(mailbox: &'static Mailbox, transport: Box<dyn SctpTransport>) -> Self {
        Self {
            mailbox,
            transport,
            sockets: HashMap::new(),
            by_association: HashMap::new(),
            events: Vec::new(),
            buffer: vec![0; MAX_FRAME],
            polls: Vec::new(),
            leaving: false,
        }
    }

    fn run(mut self) {
        while !self.leaving {
            self.wait();
            self.obey_commands();
            for at in 0..self.polls.len() {
                self.serve_end(self.polls[at]);
            }
            self.transport.process(Instant::now(), &mut self.events);
            let mut events = std::mem::take(&mut self.events);
            events.drain(..).for_each(|event| self.tell(event));
            self.events = events;
            self.transport.flush();
        }
    }

    /// Waits for packets, commands, frames or a timer.
    fn wait(&mut self) {
        self.polls.clear();
        let input = |fd| pollfd { fd, events: libc::POLLIN, revents: 0 };
        self.polls.push(input(self.transport.poll_fd().as_raw_fd()));
        self.polls.push(input(self.mailbox.wake.as_raw_fd()));
        let watched = self.sockets.iter().filter(|(_, socket)| !socket.is_closed());
        self.polls.extend(watched.map(|(&fd, socket)| pollfd { fd, events: socket.interest(), revents: 0 }));
        let deadline = self.transport.next_deadline();
        let timeout = deadline.map(|d| d.saturating_duration_since(Instant::now()));
        // Rounded up, so that the deadline has passed when the call returns.
        let timeout =
            timeout.map_or(-1, |t| c_int::try_from(t.as_micros().div_ceil(1000)).unwrap_or(c_int::MAX));
        // SAFETY: the entries outlive the call.
        unsafe { libc::poll(self.polls.as_mut_ptr(), self.polls.len() as libc::nfds_t, timeout) };
    }

    fn obey_commands(&mut self) {
        let mut count = 0;
        // SAFETY: `count` is the counter's 8 bytes.
        unsafe { libc::eventfd_read(self.mailbox.wake.as_raw_fd(), &raw mut count) };
        loop {
            let command = self.mailbox.commands.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            match command {
                Some(Command::Connect { handle, end, remote, reply }) => {
                    self.connect(handle, end, remote, reply)
                }
                Some(Command::Listen { handle, end, reply }) => self.listen(handle, end, &reply),
                Some(Command::Exit { reply }) => self.leave(&reply),
                None => return,
            }
        }
    }

    fn connect(
        &mut self,
        handle: Arc<Handle>,
        end: OwnedFd,
        remote: SocketAddr,
        reply: Sender<io::Result<()>>,
    ) {
        let local = handle.local().map(|l| l.ip()).filter(|ip| !ip.is_unspecified());
        handle.set_peer(remote);
        match self.transport.connect(local, remote) {
            Ok(id) => self.add(handle, end, Role::association(id, Some(reply))),
            Err(error) => {
                eprintln!("pith-sctp-shim: {error}");
                handle.set_error(libc::ENETUNREACH);
                // A non-blocking program reads it as the socket's error.
                let _ = reply.send(Err(io::Error::from_raw_os_error(libc::ENETUNREACH)));
            }
        }
    }

    fn listen(&mut self, handle: Arc<Handle>, end: OwnedFd, reply: &Sender<io::Result<()>>) {
        let local = handle.local_or_any();
        let result = self.transport.listen(local).map_err(|error| {
            eprintln!("pith-sctp-shim: {error}");
            io::Error::from_raw_os_error(libc::EADDRINUSE)
        });
        if result.is_ok() {
            self.add(handle, end, Role::Listener { local });
        }
        // The listening thread waits for this.
        let _ = reply.send(result);
    }

    fn leave(&mut self, reply: &Sender<io::Result<()>>) {
        for &id in self.by_association.keys() {
            self.transport.abort(id);
        }
        self.transport.flush();
        self.leaving = true;
        // The exiting thread waits for this, or has ended.
        let _ = reply.send(Ok(()));
    }

    fn add(&mut self, handle: Arc<Handle>, end: OwnedFd, role: Role) {
        let fd = end.as_raw_fd();
        if let Role::Association { id, .. } = role {
            self.by_association.insert(id, fd);
        }
        self.sockets.insert(fd, SocketState { handle, end, role, waiting: VecDeque::new() });
    }

    // ---- from the program ----

    /// Moves frames of a socket that is readable, writable or closed.
    fn serve_end(&mut self, poll: pollfd) {
        let Some(socket) = self.sockets.get_mut(&poll.fd) else { return };
        if poll.revents & libc::POLLOUT != 0 {
            socket.deliver_waiting();
            if let (Role::Association { id, .. }, true) = (&socket.role, socket.waiting.is_empty()) {
                self.transport.resume_reading(*id);
            }
        }
        if poll.revents & (libc::POLLIN | libc::POLLHUP) != 0 {
            (0..FRAMES_PER_TURN).take_while(|_| self.take_frame(poll.fd)).for_each(drop);
        }
        self.drop_if_done(poll.fd);
    }

    /// Takes one frame; `false` if there is none, or no more may be taken now.
    fn take_frame(&mut self, fd: RawFd) -> bool {
        let Some(socket) = self.sockets.get_mut(&fd) else { return false };
        let Role::Association { id, refused, closed, .. } = &mut socket.role else {
            self.sockets.remove(&fd); // a listener's end says only that it is closed
            return false;
        };
        if refused.is_some() || *closed {
            return false;
        }
        // SAFETY: the buffer's pointer and length.
        let length =
            unsafe { libc::recv(fd, self.buffer.as_mut_ptr().cast(), self.buffer.len(), libc::MSG_DONTWAIT) };
        match abi::check(length) {
            Ok(0) => {
                *closed = true;
                self.transport.shutdown(*id);
                false
            }
            Ok(length) => {
                let Some((header, payload)) = self.buffer[..length].split_first_chunk::<HEADER>() else {
                    return true;
                };
                let id = *id;
                match Frame::decode(*header) {
                    Some(frame) if frame.kind == Kind::Abort => {
                        self.transport.abort(id);
                        self.down(id, DownReason::Shutdown);
                        false
                    }
                    Some(frame) => execute_frame(&mut *self.transport, id, frame, payload, refused),
                    None => true,
                }
            }
            Err(_) => false,
        }
    }

    // ---- from the peer ----

    fn tell(&mut self, event: SctpEvent) {
        match event {
            SctpEvent::Up { association, peer, local, inbound_streams, outbound_streams, .. } => {
                let streams = Streams { inbound: inbound_streams, outbound: outbound_streams };
                if !self.by_association.contains_key(&association) {
                    self.accept(association, peer, local);
                }
                self.up(association, peer, local, streams);
            }
            SctpEvent::Message { association, stream, ppid, payload } => {
                let frame = Frame { kind: Kind::Data, stream, ppid };
                self.push(association, frame, &payload);
            }
            SctpEvent::SendReady { association } => self.send_again(association),
            SctpEvent::Down { association, reason } => self.down(association, reason),
        }
    }

    /// Creates a socket for an accepted association, and queues its descriptor for the listener.
    fn accept(&mut self, id: AssociationId, peer: SocketAddr, local: SocketAddr) {
        let takes =
            |l: &SocketAddr| l.port() == local.port() && (l.ip() == local.ip() || l.ip().is_unspecified());
        let listener =
            self.sockets.values_mut().find(|f| matches!(&f.role, Role::Listener { local } if takes(local)));
        let made = listener.and_then(|l| Some((handle::create_accepted(&l.handle, local).ok()?, l)));
        let Some(((fd, handle, end), listener)) = made else { return self.transport.abort(id) };
        handle.set_peer(peer);
        let frame = Frame::of(Kind::Accepted).encode();
        listener.push([&frame[..], &fd.to_ne_bytes()].concat());
        self.add(handle, end, Role::association(id, None));
    }

    fn up(&mut self, id: AssociationId, peer: SocketAddr, local: SocketAddr, streams: Streams) {
        let Some(socket) = self.by_association.get(&id).and_then(|fd| self.sockets.get_mut(fd)) else {
            return;
        };
        socket.handle.set_peer(peer);
        socket.handle.set_local(local);
        socket.handle.set_streams(Some(streams));
        const COMM_UP: u16 = 0;
        socket
            .notify(|s| s.association, &abi::association_change(COMM_UP, streams.inbound, streams.outbound));
        if let Role::Association { connecting, .. } = &mut socket.role
            && let Some(reply) = connecting.take()
        {
            // A non-blocking program has dropped its end of the channel.
            let _ = reply.send(Ok(()));
        }
        self.send_again(id);
    }

    /// Passes a message to the program; a program that does not read stops its peer.
    fn push(&mut self, id: AssociationId, frame: Frame, payload: &[u8]) {
        let Some(socket) = self.by_association.get(&id).and_then(|fd| self.sockets.get_mut(fd)) else {
            return;
        };
        socket.push([&frame.encode()[..], payload].concat());
        if !socket.waiting.is_empty() {
            self.transport.pause_reading(id);
        }
    }

    /// Sends the refused message, and continues reading.
    fn send_again(&mut self, id: AssociationId) {
        let Some(socket) = self.by_association.get(&id).and_then(|fd| self.sockets.get_mut(fd)) else {
            return;
        };
        if let Role::Association { refused, .. } = &mut socket.role
            && let Some((frame, payload)) = refused.take()
        {
            execute_frame(&mut *self.transport, id, frame, &payload, refused);
        }
    }

    fn down(&mut self, id: AssociationId, reason: DownReason) {
        let Some(fd) = self.by_association.remove(&id) else { return };
        let Some(socket) = self.sockets.get_mut(&fd) else { return };
        socket.end_association(reason);
        self.drop_if_done(fd);
    }

    fn drop_if_done(&mut self, fd: RawFd) {
        let done = self.sockets.get(&fd).is_some_and(|socket| match socket.role {
            Role::Association { over, closed, .. } => over && (closed || socket.waiting.is_empty()),
            Role::Listener { .. } => false,
        });
        if done {
            self.sockets.remove(&fd);
        }
    }
}

/// Executes a frame of the program; `false` if the transport had no room, and the frame is kept.
fn execute_frame(
    transport: &mut dyn SctpTransport,
    id: AssociationId,
    frame: Frame,
    payload: &[u8],
    refused: &mut Option<(Frame, Vec<u8>)>,
) -> bool {
    match frame.kind {
        Kind::Shutdown => transport.shutdown(id),
        Kind::Data
            if transport.send(id, frame.stream, frame.ppid, payload) == Err(SendError::Backpressure) =>
        {
            *refused = Some((frame, payload.to_vec()));
            return false;
        }
        Kind::Data | Kind::Notification | Kind::Abort | Kind::Accepted => {}
    }
    true
}

impl Role {
    fn association(id: AssociationId, connecting: Option<Sender<io::Result<()>>>) -> Self {
        Self::Association { id, connecting, refused: None, closed: false, over: false }
    }
}

impl SocketState {
    /// Whether the program has closed its end, and the engine only waits for the association to end.
    fn is_closed(&self) -> bool {
        matches!(self.role, Role::Association { closed: true, .. })
    }

    /// The poll events of the pair.
    fn interest(&self) -> c_short {
        let write = if self.waiting.is_empty() { 0 } else { libc::POLLOUT };
        let read = match &self.role {
            // Nothing may be sent before the association is up.
            Role::Association { refused: None, closed: false, over: false, .. }
                if self.handle.streams().is_some() =>
            {
                libc::POLLIN
            }
            _ => 0,
        };
        read | write
    }

    /// Sends a frame to the program, after the pending ones.
    fn push(&mut self, frame: Vec<u8>) {
        self.waiting.push_back(frame);
        self.deliver_waiting();
    }

    fn deliver_waiting(&mut self) {
        while let Some(frame) = self.waiting.front() {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            // SAFETY: the frame's pointer and length.
            let sent = unsafe { libc::send(self.end.as_raw_fd(), frame.as_ptr().cast(), frame.len(), flags) };
            match abi::check(sent) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.raw_os_error() != Some(libc::EMSGSIZE) => return self.waiting.clear(),
                _ => self.waiting.pop_front(),
            };
        }
    }

    fn notify(&mut self, wanted: impl FnOnce(&handle::Subscriptions) -> bool, bytes: &[u8]) {
        if wanted(&self.handle.subscriptions()) {
            self.push([&Frame::of(Kind::Notification).encode()[..], bytes].concat());
        }
    }

    /// Reports the end of the association to the program, as it has subscribed.
    fn end_association(&mut self, reason: DownReason) {
        const COMM_LOST: u16 = 1;
        const SHUTDOWN_COMP: u16 = 3;
        let errno = match reason {
            DownReason::Shutdown => None,
            DownReason::Refused => Some(libc::ECONNREFUSED),
            DownReason::Unreachable => Some(libc::ETIMEDOUT),
            DownReason::Aborted | DownReason::Restarted | DownReason::MessageTooLong => {
                Some(libc::ECONNRESET)
            }
        };
        let was_up = self.handle.streams().is_some();
        self.handle.set_streams(None);
        if let Some(errno) = errno {
            self.handle.set_error(errno);
        }
        if was_up {
            if errno.is_none() {
                self.notify(|s| s.shutdown, &abi::shutdown_event());
            }
            let state = if errno.is_some() { COMM_LOST } else { SHUTDOWN_COMP };
            self.notify(|s| s.association, &abi::association_change(state, 0, 0));
        }
        if let Role::Association { connecting, over, .. } = &mut self.role {
            *over = true;
            if let Some(reply) = connecting.take() {
                let errno = self.handle.take_error().unwrap_or(libc::ECONNABORTED);
                // The receiver may have been dropped.
                let _ = reply.send(Err(io::Error::from_raw_os_error(errno)));
            }
        }
    }
}
