//! The endpoint: usrsctp's associations, and the filtering of received packets.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::link::Packet;
use super::packet::{self, FirstChunk, Header};
use super::path::{PathAddress, PathId, Paths};
use super::ports::{ClientPort, ClientPorts};
use super::socket::Socket;
use super::stack::{Stack, Wake};
use crate::sctp::association::Association;
use crate::sctp::table::{Associations, Holds, Reader, Served};
use crate::sctp::{AssociationId, FormerPeer, SctpConfig, SctpError, SctpEvent, SendError};

/// Associations that may be pending for accept; they are accepted after each batch of packets.
const BACKLOG: i32 = 1024;
/// Resolution of usrsctp's timers while packets flow; delayed SACKs need it.
const BUSY_TICK: Duration = Duration::from_millis(20);
/// The resolution after a time without packets: first for retransmissions (from 250 ms on), then for
/// heartbeats only. Each tick wakes the thread, so a single message must not cause many ticks.
const RESTING_TICK: Duration = Duration::from_millis(50);
const RESTING_AFTER: Duration = Duration::from_millis(60);
const QUIET_TICK: Duration = Duration::from_millis(100);
const QUIET_AFTER: Duration = Duration::from_secs(1);
/// The resolution without associations, for late packets and the renewal of the cookie secret.
const IDLE_TICK: Duration = Duration::from_secs(1);

/// Counters of received packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IngressCounters {
    /// Passed to usrsctp.
    pub accepted: u64,
    /// Too short for SCTP, or with port 0.
    pub malformed: u64,
    /// For a port or address of another program; ignored.
    pub foreign: u64,
    /// With a wrong CRC32c.
    pub bad_checksum: u64,
    /// From a new address while the table of paths is full.
    pub no_room: u64,
}

/// usrsctp with its sockets, paths and ports.
pub(super) struct Endpoint {
    pub config: SctpConfig,
    // Sockets are declared before the stack, so that they are closed before the stack is released.
    associations: Associations<Member>,
    listeners: Vec<(u16, Socket)>,
    listening: Vec<SocketAddr>,
    pub stack: Stack,
    pub paths: Paths,
    pub ports: ClientPorts,
    pub counters: IngressCounters,
    clock: Clock,
    woken: Vec<Wake>,
    reader: Reader,
}

/// An association and the resources that it uses.
struct Member {
    association: Association<Socket>,
    side: Side,
}

/// The side that started an association.
enum Side {
    /// This side, from a local port that reserves the path.
    Client,
    /// The peer, on this path. Its verification tag, if the answer to its COOKIE ECHO was seen.
    Server(PathId, Option<u32>),
}

impl Holds for Member {
    type Socket = Socket;

    fn association(&mut self) -> &mut Association<Socket> {
        &mut self.association
    }
}

/// The time to which usrsctp's clock has advanced, and the time of the last packet.
struct Clock {
    ticked: Instant,
    active: Instant,
}

impl Endpoint {
    /// `None` while this process has another endpoint.
    pub fn new(config: SctpConfig, now: Instant) -> Option<Self> {
        Some(Self {
            reader: Reader::new(config.max_message),
            config,
            associations: Associations::new(),
            listeners: Vec::new(),
            listening: Vec::new(),
            stack: Stack::acquire()?,
            paths: Paths::new(now),
            ports: ClientPorts::new(),
            counters: IngressCounters::default(),
            clock: Clock { ticked: now, active: now },
            woken: Vec::new(),
        })
    }

    /// Accepts associations on an address. The listener of a port serves all addresses.
    pub fn listen(&mut self, local: SocketAddr) -> Result<(), SctpError> {
        let port = local.port();
        if !self.listeners.iter().any(|(p, _)| *p == port) {
            let socket = self.listener(port).map_err(SctpError::io(format!("listening on {local}")))?;
            self.listeners.push((port, socket));
        }
        self.listening.push(local);
        Ok(())
    }

    fn listener(&self, port: u16) -> std::io::Result<Socket> {
        let socket = Socket::open(&self.config)?;
        socket.bind(port)?;
        socket.wake_as(Wake::Listener(self.listeners.len() as u32))?;
        socket.listen(BACKLOG)?;
        Ok(socket)
    }

    /// The local ports of listeners.
    pub fn listening_ports(&self) -> Vec<u16> {
        self.listeners.iter().map(|(port, _)| *port).collect()
    }

    /// Starts an association on a path, from a port allocated for it.
    pub fn connect(
        &mut self,
        path: PathId,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<AssociationId, SctpError> {
        self.check_room()?;
        self.register(path);
        let config = &self.config;
        let opened = self.associations.insert_with(|id| {
            let socket = Socket::open(config)?;
            socket.wake_as(Wake::Association(id.slot()))?;
            socket.bind(local.port())?;
            socket.connect(path, remote.port())?;
            Ok(Member { association: Association::connecting(socket, local, remote), side: Side::Client })
        });
        opened.map_err(SctpError::io(format!("connecting to {remote}")))
    }

    pub fn check_room(&self) -> Result<(), SctpError> {
        let limit = self.config.max_associations;
        if self.associations.len() < limit { Ok(()) } else { Err(SctpError::TooManyAssociations(limit)) }
    }

    fn register(&mut self, path: PathId) {
        if self.paths.mark_registered(path) {
            self.stack.register(path);
        }
    }

    pub fn send(
        &mut self,
        id: AssociationId,
        stream: u16,
        ppid: u32,
        payload: &[u8],
    ) -> Result<(), SendError> {
        if payload.is_empty() || payload.len() > self.config.max_message {
            return Err(SendError::Length);
        }
        self.find(id).ok_or(SendError::Closed)?.send(stream, ppid, payload)
    }

    pub fn pause_reading(&mut self, id: AssociationId) {
        if let Some(association) = self.find(id) {
            association.paused = true;
        }
    }

    pub fn resume_reading(&mut self, id: AssociationId) {
        if let Some(association) = self.find(id) {
            association.paused = false;
            self.stack.wake(id.slot());
        }
    }

    pub fn shutdown(&mut self, id: AssociationId) {
        if let Some(association) = self.find(id)
            && association.shutdown().is_err()
        {
            self.stack.wake(id.slot());
        }
    }

    /// Removes an association. If it is up, closing its socket sends an ABORT.
    pub fn remove(&mut self, id: AssociationId, now: Instant) {
        match self.associations.remove(id) {
            Some(Member { association, side: Side::Client }) => {
                self.ports.release(association.local.port(), now)
            }
            Some(Member { side: Side::Server(path, _), .. }) => self.paths.release(path, now),
            None => {}
        }
    }

    fn find(&mut self, id: AssociationId) -> Option<&mut Association<Socket>> {
        self.associations.find(id).map(Holds::association)
    }

    /// An accepted association, as another process can abort it.
    pub fn former_peer(&mut self, id: AssociationId) -> Option<FormerPeer> {
        let Member { association, side: Side::Server(path, tag) } = self.associations.find(id)? else {
            return None;
        };
        let remote = self.paths.find(*path)?.address.remote;
        let peer = association.peer();
        Some(FormerPeer { local: association.local, peer, udp_port: remote.port(), tag: (*tag)? })
    }

    // ---- packets ----

    /// Passes a packet to usrsctp if it is well-formed and for this endpoint. Other packets are dropped
    /// silently, because usrsctp would send an ABORT to another program's association.
    pub fn input(&mut self, link: usize, packet: Packet<'_>, now: Instant, events: &mut Vec<SctpEvent>) {
        let Some(header) = packet::header(packet.payload) else {
            self.counters.malformed += 1;
            return;
        };
        let address = PathAddress { link, local: packet.local, remote: packet.remote };
        if !self.is_ours(&address, header) {
            self.counters.foreign += 1;
            return;
        }
        if !packet::checksum_holds(packet.payload) {
            self.counters.bad_checksum += 1;
            return;
        }
        let Some(path) = self.paths.intern(address, now) else {
            self.counters.no_room += 1;
            return;
        };
        self.counters.accepted += 1;
        self.clock.active = now;
        match header.first_chunk {
            FirstChunk::CookieEcho => self.input_cookie(path, packet.payload, events),
            _ => self.stack.input(path, packet.payload),
        }
    }

    /// The address of the listener that covers an address and port.
    pub fn listener_of(&self, local: SocketAddr) -> Option<IpAddr> {
        let listening = self.listening.iter();
        listening
            .map(|l| (l.port(), l.ip()))
            .find(|(port, ip)| *port == local.port() && covers(*ip, local.ip()))
            .map(|(_, ip)| ip)
    }

    fn is_ours(&self, address: &PathAddress, header: Header) -> bool {
        let port = header.destination_port;
        let listens = |l: &SocketAddr| l.port() == port && covers(l.ip(), address.local);
        let client = || {
            let used = ClientPort { path: self.paths.id_of(address)?, remote_port: header.source_port };
            (self.ports.user(port)? == used).then_some(())
        };
        self.listening.iter().any(listens) || client().is_some()
    }

    /// A COOKIE ECHO can create an association, which needs a registered path. The path remains registered
    /// only if an association was created.
    fn input_cookie(&mut self, path: PathId, packet: &[u8], events: &mut Vec<SctpEvent>) {
        self.register(path);
        self.stack.input(path, packet);
        self.accept_all(events);
        if self.paths.unmark_unused(path) {
            self.stack.deregister(path);
        }
    }

    fn accept_all(&mut self, events: &mut Vec<SctpEvent>) {
        for index in 0..self.listeners.len() {
            while let Some((port, (socket, path, remote_port))) =
                self.listeners.get(index).and_then(|(port, socket)| Some((*port, socket.accept()?)))
            {
                self.admit(socket, path, port, remote_port, events);
            }
        }
    }

    /// Adds an accepted association. If the limit is reached, dropping the socket sends an ABORT.
    fn admit(
        &mut self,
        socket: Socket,
        path: PathId,
        port: u16,
        remote_port: u16,
        events: &mut Vec<SctpEvent>,
    ) {
        let Some(address) = self.paths.find(path).map(|p| p.address) else { return };
        let Ok(streams) = socket.streams() else { return };
        if self.check_room().is_err() {
            return;
        }
        let (local, peer) =
            (SocketAddr::new(address.local, port), SocketAddr::new(address.remote.ip(), remote_port));
        let tag = self.stack.tag_of_peer(path, port, remote_port);
        let inserted = self.associations.insert_with(|id| {
            socket.wake_as(Wake::Association(id.slot()))?;
            Ok(Member {
                association: Association::accepted(socket, local, peer),
                side: Side::Server(path, tag),
            })
        });
        let Ok(id) = inserted else { return };
        self.paths.hold(path);
        self.stack.wake(id.slot());
        events.extend(self.find(id).map(|a| a.up(id, streams)));
    }

    // ---- time ----

    /// Advances usrsctp's clock to `now`, and removes expired ports and paths.
    pub fn advance(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.clock.ticked);
        if elapsed < BUSY_TICK {
            return;
        }
        let ms = u32::try_from(elapsed.as_millis()).unwrap_or(u32::MAX);
        self.clock.ticked += Duration::from_millis(ms.into());
        self.stack.advance(ms);
        while let Some(client) = self.ports.expire(now) {
            self.paths.release(client.path, now);
        }
        for path in self.paths.sweep(now) {
            self.stack.deregister(path);
        }
    }

    /// Records that packets flow, so that timers run at full resolution.
    pub fn mark_active(&mut self, now: Instant) {
        self.clock.active = now;
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        if self.stack.has_woken() || self.stack.has_packets() {
            return Some(self.clock.ticked);
        }
        let tick = match self.clock.ticked.saturating_duration_since(self.clock.active) {
            rest if rest < RESTING_AFTER => BUSY_TICK,
            rest if rest < QUIET_AFTER => RESTING_TICK,
            _ => QUIET_TICK,
        };
        match self.associations.len() {
            0 if self.listeners.is_empty() && self.paths.len() == 0 => None,
            0 => Some(self.clock.ticked + IDLE_TICK),
            _ => Some(self.clock.ticked + tick),
        }
    }

    // ---- messages ----

    /// Serves every socket that usrsctp has signalled.
    pub fn serve(&mut self, now: Instant, events: &mut Vec<SctpEvent>) {
        let mut woken = std::mem::take(&mut self.woken);
        self.stack.take_woken(&mut woken);
        for wake in woken.drain(..) {
            match wake {
                Wake::Listener(_) => self.accept_all(events),
                Wake::Association(slot) => self.serve_slot(slot, now, events),
            }
        }
        self.woken = woken;
    }

    fn serve_slot(&mut self, slot: u32, now: Instant, events: &mut Vec<SctpEvent>) {
        let Some(id) = self.associations.id_of_slot(slot) else { return };
        if self.find(id).is_none_or(|a| a.paused) {
            return self.announce_room(id, events);
        }
        match self.reader.serve(&mut self.associations, id, events) {
            Served::Idle => self.announce_room(id, events),
            Served::More => self.stack.wake(slot),
            Served::Ended(id) => self.remove(id, now),
        }
    }

    fn announce_room(&mut self, id: AssociationId, events: &mut Vec<SctpEvent>) {
        if let Some(association) = self.find(id)
            && association.has_room_again()
        {
            events.push(SctpEvent::SendReady { association: id });
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let paths: Vec<PathId> = self.paths.registered().collect();
        self.close_sockets();
        for path in paths {
            self.stack.deregister(path);
        }
    }
}

impl Endpoint {
    /// Closes all sockets. ABORTs for associations that are up must be flushed afterwards.
    pub fn close_sockets(&mut self) {
        self.associations = Associations::new();
        self.listeners.clear();
    }
}

/// Whether a listener's address covers packets to `local`.
fn covers(listener: IpAddr, local: IpAddr) -> bool {
    listener == local || (listener.is_unspecified() && listener.is_ipv4() == local.is_ipv4())
}
