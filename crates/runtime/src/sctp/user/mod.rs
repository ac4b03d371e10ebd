//! User-space SCTP: usrsctp as a library without its threads and sockets, with Pith's own links.
//!
//! ```text
//!   process:  network ── packet ──> endpoint.input ── checked ──> usrsctp
//!                                   endpoint.serve <── upcalls ──    │
//!             network <── sendmmsg ── packet queue <── output ───────┘
//! ```
//!
//! Two processes may use the same address: each passes to usrsctp only packets for its own listeners, or from
//! the peer of one of its own ports, so that neither answers for the other.

mod endpoint;
mod filter;
mod link;
mod network;
mod packet;
mod path;
mod ports;
mod socket;
mod stack;
mod sys;

use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::Instant;

pub use endpoint::IngressCounters;

use super::{AssociationId, FormerPeer, SctpConfig, SctpError, SctpEvent, SctpTransport, SendError};
use endpoint::Endpoint;
use network::{Network, route_source};
use path::{PathAddress, PathId};
use ports::{ClientPort, NameLock};

/// The encapsulation of user-space SCTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encapsulation {
    /// IP, as protocol 132.
    RawIp,
    /// UDP (RFC 6951): listeners use this port, and associations are sent to it; replies go to the peer's
    /// port.
    Udp {
        /// UDP port of servers, own and remote.
        port: u16,
    },
}

/// SCTP by usrsctp; only one per process at a time.
pub struct UserTransport {
    description: String,
    encapsulation: Encapsulation,
    network: Network,
    endpoint: Endpoint,
    locks: Vec<NameLock>,
}

impl UserTransport {
    /// Creates the transport; `why` is part of its description.
    pub fn open(encapsulation: Encapsulation, config: SctpConfig, why: String) -> Result<Self, SctpError> {
        let description = match encapsulation {
            Encapsulation::RawIp => format!("user-space SCTP over raw IP: {why}"),
            Encapsulation::Udp { port } => format!("user-space SCTP over UDP port {port}: {why}"),
        };
        let network = Network::new(encapsulation)?;
        let endpoint = Endpoint::new(config, Instant::now()).ok_or(SctpError::EngineExists)?;
        Ok(Self { description, encapsulation, network, endpoint, locks: Vec::new() })
    }

    /// Counters of the packets received so far.
    pub fn counters(&self) -> IngressCounters {
        self.endpoint.counters
    }

    /// Number of known paths, for tests and metrics.
    pub fn path_count(&self) -> usize {
        self.endpoint.paths.len()
    }

    /// Locks a listener's address: raw sockets of two processes would both get its packets.
    fn lock_listener(&mut self, local: SocketAddr) -> Result<(), SctpError> {
        if self.encapsulation == Encapsulation::RawIp {
            let lock = NameLock::take(&format!("listen/{local}"))
                .map_err(SctpError::io(format!("listening on {local}")))?;
            self.locks.push(lock);
        }
        Ok(())
    }

    fn update_filters(&self) {
        let blocks: Vec<u16> = self.endpoint.ports.blocks().collect();
        self.network.restrict(&self.endpoint.listening_ports(), &blocks);
    }

    /// The path to a peer: the link, and the addresses at both ends.
    fn path_to(&mut self, local: IpAddr, remote: SocketAddr, now: Instant) -> Result<PathId, SctpError> {
        if local.is_ipv4() != remote.is_ipv4() {
            return Err(SctpError::AddressFamily { local, remote });
        }
        let (link, udp_port) = self.network.connecting_link(local)?;
        let mut towards = remote;
        towards.set_port(udp_port);
        let limit = SctpError::TooManyAssociations(self.endpoint.config.max_associations);
        self.endpoint.paths.intern(PathAddress { link, local, remote: towards }, now).ok_or(limit)
    }

    /// Allocates a local port for an association on a path.
    fn take_port(&mut self, path: PathId, remote: SocketAddr) -> Result<u16, SctpError> {
        let user = ClientPort { path, remote_port: remote.port() };
        let (port, new_block) = self.endpoint.ports.take(user).ok_or(SctpError::NoFreePort)?;
        self.endpoint.paths.hold(path);
        if new_block {
            self.update_filters();
        }
        Ok(port)
    }
}

impl SctpTransport for UserTransport {
    fn description(&self) -> &str {
        &self.description
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.network.poll_fd()
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.endpoint.next_deadline()
    }

    fn listen_on(&mut self, local: &[SocketAddr]) -> Result<(), SctpError> {
        let &[local] = local else { return Err(SctpError::MultiHoming) };
        self.lock_listener(local)?;
        self.network.listening_link(local.ip())?;
        self.endpoint.listen(local)?;
        self.update_filters();
        Ok(())
    }

    fn connect(&mut self, local: Option<IpAddr>, remote: SocketAddr) -> Result<AssociationId, SctpError> {
        let now = Instant::now();
        self.endpoint.check_room()?;
        self.endpoint.advance(now);
        self.endpoint.mark_active(now);
        let local = match local {
            Some(local) => local,
            None => route_source(remote).map_err(SctpError::io(format!("finding a route to {remote}")))?,
        };
        let path = self.path_to(local, remote, now)?;
        let port = self.take_port(path, remote)?;
        self.endpoint
            .connect(path, SocketAddr::new(local, port), remote)
            .inspect_err(|_| self.endpoint.ports.release(port, now))
    }

    fn send(
        &mut self,
        association: AssociationId,
        stream: u16,
        ppid: u32,
        payload: &[u8],
    ) -> Result<(), SendError> {
        self.endpoint.send(association, stream, ppid, payload)
    }

    fn flush(&mut self) {
        let stack = &mut self.endpoint.stack;
        self.network.flush(&self.endpoint.paths, |queue| stack.take_packets(queue));
    }

    fn pause_reading(&mut self, association: AssociationId) {
        self.endpoint.pause_reading(association);
    }

    fn resume_reading(&mut self, association: AssociationId) {
        self.endpoint.resume_reading(association);
    }

    fn shutdown(&mut self, association: AssociationId) {
        self.endpoint.shutdown(association);
    }

    fn abort(&mut self, association: AssociationId) {
        self.endpoint.remove(association, Instant::now());
    }

    fn former_peer(&mut self, association: AssociationId) -> Option<FormerPeer> {
        self.endpoint.former_peer(association)
    }

    fn abort_former(&mut self, former: &FormerPeer) {
        let FormerPeer { local, peer, udp_port, tag } = *former;
        let Some(listener) = self.endpoint.listener_of(local).filter(|_| local.is_ipv4() == peer.is_ipv4())
        else {
            return;
        };
        let Ok(link) = self.network.listening_link(listener) else { return };
        let remote = SocketAddr::new(peer.ip(), udp_port);
        let address = PathAddress { link, local: local.ip(), remote };
        let Some(path) = self.endpoint.paths.intern(address, Instant::now()) else { return };
        let mut abort = Some(packet::abort(local.port(), peer.port(), tag));
        self.network.flush(&self.endpoint.paths, |queue| {
            if let Some(abort) = abort.take() {
                queue.push(path, &abort);
            }
        });
    }

    fn process(&mut self, now: Instant, events: &mut Vec<SctpEvent>) {
        let endpoint = &mut self.endpoint;
        endpoint.advance(now);
        self.network.receive(|link, packet| endpoint.input(link, packet, now, events));
        endpoint.serve(now, events);
        self.flush();
    }
}

impl Drop for UserTransport {
    /// Sends ABORTs for associations that are up.
    fn drop(&mut self) {
        self.endpoint.close_sockets();
        self.flush();
    }
}
