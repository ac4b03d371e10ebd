//! The endpoint: usrsctp's associations, and the filtering of received packets.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::link::Packet;
use super::packet::{self, FirstChunk, Header, Ports};
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
    /// Discarded: with a wrong tag from another UDP port of a peer, or an answer to no COOKIE ECHO.
    pub stray: u64,
}

/// usrsctp with its sockets, paths and ports.
pub(super) struct Endpoint {
    pub config: SctpConfig,
    // Sockets are declared before the stack, so that they are closed before the stack is released.
    associations: Associations<Member>,
    located: HashMap<Ends, Located>,
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
    /// The peer, on this path.
    Server(PathId),
}

/// What identifies an association: its addresses and SCTP ports. UDP ports are no part of it (RFC 6951 clause 5.4). Nevertheless several peers
/// behind one address translator may have the same: their tags and UDP ports tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Ends {
    local: IpAddr,
    remote: IpAddr,
    ports: Ports,
}

impl Ends {
    const fn new(local: SocketAddr, peer: SocketAddr) -> Self {
        let ports = Ports { local: local.port(), remote: peer.port() };
        Self { local: local.ip(), remote: peer.ip(), ports }
    }
}

/// The associations between two ends, as received packets find them. Most times it is one.
#[derive(Default)]
struct Located {
    members: Vec<Position>,
    /// INIT ACKs that were sent to other addresses of the peer, with the own tag in them. A COOKIE ECHO with that tag begins another association:
    /// the peer receives packets there (RFC 9260 clause 5.2.4).
    offers: Vec<(PathId, u32)>,
}

/// Where an association is.
#[derive(Clone, Copy)]
struct Position {
    slot: u32,
    path: PathId,
}

/// INIT ACKs of which a COOKIE ECHO is accepted: the peer may repeat its INIT.
const MAX_OFFERS: usize = 4;

/// Associations between two ends: a packet from an unknown UDP port is compared with the tag of each.
const MAX_MEMBERS: usize = 16;

/// Why a packet is discarded.
enum Discarded {
    /// As [`IngressCounters::stray`].
    Stray,
    /// As [`IngressCounters::no_room`].
    NoRoom,
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
            located: HashMap::new(),
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
        let id = opened.map_err(SctpError::io(format!("connecting to {remote}")))?;
        self.locate(Ends::new(local, remote), id, path);
        Ok(id)
    }

    fn locate(&mut self, ends: Ends, id: AssociationId, path: PathId) {
        self.located.entry(ends).or_default().members.push(Position { slot: id.slot(), path });
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
        let Some(Member { association, side }) = self.associations.remove(id) else { return };
        let ends = Ends::new(association.local, association.peer());
        if let Some(located) = self.located.get_mut(&ends) {
            located.members.retain(|it| it.slot != id.slot());
            if located.members.is_empty() {
                self.located.remove(&ends);
            }
        }
        match side {
            Side::Client => self.ports.release(association.local.port(), now),
            Side::Server(path) => self.paths.release(path, now),
        }
    }

    fn find(&mut self, id: AssociationId) -> Option<&mut Association<Socket>> {
        self.associations.find(id).map(Holds::association)
    }

    /// An accepted association, as another process can abort it.
    pub fn former_peer(&mut self, id: AssociationId) -> Option<FormerPeer> {
        let Member { association, side: Side::Server(path) } = self.associations.find(id)? else {
            return None;
        };
        let (local, peer) = (association.local, association.peer());
        let udp_port = self.paths.address_of(*path, Ends::new(local, peer).ports)?.remote.port();
        Some(FormerPeer { local, peer, udp_port, tag: association.socket.tags()?.peer })
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
        let ends = Ends { local: address.local, remote: address.remote.ip(), ports: header.ports() };
        if !self.is_ours(&address, ends) {
            self.counters.foreign += 1;
            return;
        }
        if !packet::checksum_holds(packet.payload) {
            self.counters.bad_checksum += 1;
            return;
        }
        let path = match self.path_of(address, ends, (header, packet.payload), now) {
            Ok(path) => path,
            Err(Discarded::Stray) => return self.counters.stray += 1,
            Err(Discarded::NoRoom) => return self.counters.no_room += 1,
        };
        self.counters.accepted += 1;
        self.clock.active = now;
        match header.first_chunk {
            FirstChunk::CookieEcho => self.input_cookie(path, packet.payload, events),
            FirstChunk::Init => self.input_init(path, ends, packet.payload),
            FirstChunk::Other => self.stack.input(path, packet.payload),
        }
    }

    /// The path on which usrsctp gets a packet. One from another UDP port of an association's peer belongs to the association if it has the right
    /// tag: the peer is there from now on (RFC 6951 clause 5.4). Without the tag it may only begin another one.
    fn path_of(
        &mut self,
        address: PathAddress,
        ends: Ends,
        (header, packet): (Header, &[u8]),
        now: Instant,
    ) -> Result<PathId, Discarded> {
        let Some(Located { members, offers }) = self.located.get(&ends) else {
            if packet::is_stray_cookie_answer(packet) {
                return Err(Discarded::Stray);
            }
            return self.paths.intern(address, now).ok_or(Discarded::NoRoom);
        };
        let is_there = |it: &&Position| self.paths.address_of(it.path, ends.ports) == Some(address);
        if let Some(position) = members.iter().find(is_there) {
            return Ok(position.path);
        }
        let is_offered = |other| offers.contains(&(other, header.tag));
        let begins = match header.first_chunk {
            FirstChunk::Init => self.listens(address.local, ends.ports.local),
            FirstChunk::CookieEcho => self.paths.id_of(&address).is_some_and(is_offered),
            FirstChunk::Other => false,
        };
        if begins && members.len() < MAX_MEMBERS {
            return self.paths.intern(address, now).ok_or(Discarded::NoRoom);
        }
        let members = members.clone();
        let moved = members.into_iter().find(|position| self.has_tag(position.slot, header));
        let path = moved.ok_or(Discarded::Stray)?.path;
        self.paths.relocate(path, ends.ports, address);
        Ok(path)
    }

    /// Whether a packet has the tag of an association: the own one, or the peer's if it is reflected (RFC 9260 clauses
    /// 8.5, 8.5.1).
    fn has_tag(&mut self, slot: u32, header: Header) -> bool {
        let id = self.associations.id_of_slot(slot);
        let tags = id.and_then(|id| self.find(id)?.socket.tags());
        let expected = tags.map_or(0, |tags| if header.is_reflected { tags.peer } else { tags.local });
        expected != 0 && header.tag == expected
    }

    /// Notes the answer to an INIT from another address of an association's peer.
    fn input_init(&mut self, path: PathId, ends: Ends, packet: &[u8]) {
        self.stack.input(path, packet);
        let is_other = |located: &&mut Located| located.members.iter().all(|it| it.path != path);
        let Some(located) = self.located.get_mut(&ends).filter(is_other) else { return };
        if let Some(tag) = self.stack.offered_tag(path, ends.ports) {
            located.offers.truncate(MAX_OFFERS - 1);
            located.offers.insert(0, (path, tag));
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

    fn is_ours(&self, address: &PathAddress, ends: Ends) -> bool {
        let Ports { local, remote } = ends.ports;
        let client = || {
            let used = ClientPort { path: self.paths.id_of(address)?, remote_port: remote };
            (self.ports.user(local)? == used).then_some(())
        };
        self.listens(address.local, local) || self.located.contains_key(&ends) || client().is_some()
    }

    fn listens(&self, local: IpAddr, port: u16) -> bool {
        self.listening.iter().any(|l| l.port() == port && covers(l.ip(), local))
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
                let ports = Ports { local: port, remote: remote_port };
                self.admit(socket, path, ports, events);
            }
        }
    }

    /// Adds an accepted association. If the limit is reached, dropping the socket sends an ABORT.
    fn admit(&mut self, socket: Socket, path: PathId, ports: Ports, events: &mut Vec<SctpEvent>) {
        let Some(address) = self.paths.find(path).map(|p| p.address) else { return };
        let Ok(streams) = socket.streams() else { return };
        let (local, peer) =
            (SocketAddr::new(address.local, ports.local), SocketAddr::new(address.remote.ip(), ports.remote));
        let ends = Ends::new(local, peer);
        if self.check_room().is_err() {
            return;
        }
        let inserted = self.associations.insert_with(|id| {
            socket.wake_as(Wake::Association(id.slot()))?;
            Ok(Member { association: Association::accepted(socket, local, peer), side: Side::Server(path) })
        });
        let Ok(id) = inserted else { return };
        self.locate(ends, id, path);
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
