//! The sockets: SCTP associations for each gNB and AMF, and one GTP-U socket for all.

use super::cli::RunOptions;
use super::garble::Garbler;
use anyhow::{Context, Result};
use pith_runtime::sctp::{
    self, AssociationId, DownReason, NGAP_PPID, SctpConfig, SctpEvent, SctpTransport, SendError,
};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

const GTPU_PORT: u16 = 2152;
/// Datagrams read before SCTP is processed again.
const BURST: usize = 256;
/// Maximum octets of a GTP-U datagram.
const DATAGRAM: usize = 9216;

/// A gNB, and the number of its association.
pub type LinkId = (usize, u8);

/// An input from the network.
pub enum Incoming<'a> {
    /// An association is established; the number of its outbound streams.
    Up(LinkId, u16),
    /// An association is lost, and why; without a reason if the gNB has ended it.
    Down(LinkId, Option<DownReason>),
    /// A PDU was received on that stream.
    Pdu(LinkId, u16, &'a [u8]),
}

/// Time from the loss of an association to the next attempt.
const RECONNECT: Duration = Duration::from_millis(200);

/// The associations.
pub struct N2 {
    transport: Box<dyn SctpTransport>,
    link_of: HashMap<AssociationId, LinkId>,
    /// Associations that are lost, and when they are to be established again.
    lost: VecDeque<(std::time::Instant, LinkId)>,
    reconnects: bool,
    local: Option<IpAddr>,
    links: BTreeMap<LinkId, Link>,
    events: Vec<SctpEvent>,
    garbler: Option<Garbler>,
}

/// One association, or a former one.
struct Link {
    association: Option<AssociationId>,
    remote: SocketAddr,
    /// Messages that did not fit into the send buffer.
    unsent: VecDeque<(u16, Vec<u8>)>,
}

impl N2 {
    /// Starts the associations of each gNB with each AMF.
    pub fn connect(options: &RunOptions) -> Result<Self> {
        let transport = sctp::open(options.sctp, tuning(options))?;
        let garbler = (options.garble > 0).then(|| Garbler::new(options.garble, options.seed));
        let mut n2 = Self {
            transport,
            link_of: HashMap::new(),
            lost: VecDeque::new(),
            reconnects: options.reconnect,
            local: options.local_n2,
            links: BTreeMap::new(),
            events: Vec::new(),
            garbler,
        };
        for endpoint in 0..options.endpoints() {
            for association in 0..options.associations {
                n2.associate((endpoint as usize, association), options.amf_of(endpoint))?;
            }
        }
        n2.transport.flush();
        Ok(n2)
    }

    /// Starts an association with an endpoint of an AMF.
    pub fn associate(&mut self, id: LinkId, remote: SocketAddr) -> Result<()> {
        let association = self.transport.connect(self.local, remote)?;
        self.link_of.insert(association, id);
        self.links.insert(id, Link { association: Some(association), remote, unsent: VecDeque::new() });
        Ok(())
    }

    /// Ends an association for good.
    pub fn disassociate(&mut self, id: LinkId) {
        if let Some(association) = self.links.remove(&id).and_then(|link| link.association) {
            self.transport.shutdown(association);
        }
    }

    /// The SCTP transport, for display.
    pub fn description(&self) -> &str {
        self.transport.description()
    }

    /// Readable when there is input to process.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.transport.poll_fd()
    }

    /// The latest time of the next `process`.
    pub fn deadline(&self) -> Option<std::time::Instant> {
        self.transport.next_deadline().into_iter().chain(self.lost.front().map(|(due, _)| *due)).min()
    }

    /// Starts another association in place of each that was lost some time ago.
    fn reconnect(&mut self, now: std::time::Instant) {
        while let Some((_, id)) = self.lost.pop_front_if(|(due, _)| *due <= now) {
            let Some(remote) = self.links.get(&id).map(|link| link.remote) else { continue };
            if self.associate(id, remote).is_err() {
                self.lost.push_back((now + RECONNECT, id));
            }
        }
        self.transport.flush();
    }

    /// Processes packets, and passes inputs to `take`.
    pub fn process(&mut self, mut take: impl FnMut(Incoming<'_>)) {
        let mut events = std::mem::take(&mut self.events);
        let now = std::time::Instant::now();
        if !self.lost.is_empty() {
            self.reconnect(now);
        }
        self.transport.process(now, &mut events);
        for event in events.drain(..) {
            match event {
                SctpEvent::Up { association, outbound_streams, .. } => {
                    if let Some(id) = self.link_of.get(&association) {
                        take(Incoming::Up(*id, outbound_streams));
                    }
                }
                SctpEvent::Message { association, stream, payload, .. } => {
                    if let Some(id) = self.link_of.get(&association) {
                        take(Incoming::Pdu(*id, stream, &payload));
                    }
                }
                SctpEvent::SendReady { association } => self.send_unsent(association),
                SctpEvent::Down { association, reason } => {
                    if let Some(id) = self.link_of.remove(&association) {
                        let link = self.links.get_mut(&id);
                        let reason = link.is_some().then_some(reason);
                        if let Some(link) = link {
                            (link.association, link.unsent) = (None, VecDeque::new());
                            if self.reconnects {
                                self.lost.push_back((now + RECONNECT, id));
                            }
                        }
                        take(Incoming::Down(id, reason));
                    }
                }
            }
        }
        self.events = events;
    }

    /// Sends a PDU, possibly corrupted by the garbler.
    pub fn send(&mut self, id: LinkId, stream: u16, pdu: Vec<u8>) {
        let Some(garbler) = &mut self.garbler else { return self.send_as_is(id, stream, pdu) };
        for (stream, pdu) in garbler.garble(stream, pdu) {
            self.send_as_is(id, stream, pdu);
        }
    }

    /// Sends a PDU, or queues it until the send buffer has room. PDUs for a lost association are dropped.
    fn send_as_is(&mut self, id: LinkId, stream: u16, pdu: Vec<u8>) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some(association) = link.association else { return };
        if !link.unsent.is_empty() {
            return link.unsent.push_back((stream, pdu));
        }
        if self.transport.send(association, stream, NGAP_PPID, &pdu) == Err(SendError::Backpressure) {
            link.unsent.push_back((stream, pdu));
        }
    }

    fn send_unsent(&mut self, association: AssociationId) {
        let Some(id) = self.link_of.get(&association) else { return };
        let Some(link) = self.links.get_mut(id) else { return };
        while let Some((stream, pdu)) = link.unsent.front() {
            if self.transport.send(association, *stream, NGAP_PPID, pdu) == Err(SendError::Backpressure) {
                return;
            }
            link.unsent.pop_front();
        }
    }

    /// Writes queued packets to the network.
    pub fn flush(&mut self) {
        self.transport.flush();
    }

    /// Ends all associations gracefully.
    pub fn shutdown(&mut self) {
        self.reconnects = false;
        self.lost.clear();
        for link in self.links.values() {
            if let Some(association) = link.association {
                self.transport.shutdown(association);
            }
        }
        self.transport.flush();
    }

    /// Whether any association is open.
    pub fn is_open(&self) -> bool {
        !self.link_of.is_empty() || !self.lost.is_empty()
    }
}

/// With `--heartbeat` the loss of an AMF is found in a multiple of that time.
fn tuning(options: &RunOptions) -> SctpConfig {
    let usual = SctpConfig::default();
    let Some(heartbeat) = options.heartbeat.map(Duration::from_millis) else { return usual };
    let rto = usual.rto_min;
    SctpConfig { heartbeat, rto_initial: rto, rto_max: heartbeat.max(rto), max_retransmissions: 2, ..usual }
}

/// The GTP-U socket.
pub struct N3 {
    socket: UdpSocket,
    buffer: Vec<u8>,
}

impl N3 {
    /// Binds the GTP-U port of an address.
    pub fn bind(address: IpAddr) -> Result<Self> {
        let address = SocketAddr::new(address, GTPU_PORT);
        let doing = || {
            format!(
                "binding the GTP-U socket {address}: the address must be local and the port free; --n3 selects another address"
            )
        };
        let socket = UdpSocket::bind(address).with_context(doing)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, buffer: vec![0; DATAGRAM] })
    }

    /// Readable when a datagram is available.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Passes at most one burst of datagrams to `take`. Errors of earlier sends (ICMP) are ignored.
    pub fn receive(&mut self, mut take: impl FnMut(SocketAddr, &[u8])) {
        for _ in 0..BURST {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((length, from)) => take(from, &self.buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {}
            }
        }
    }

    /// Sends a datagram. If the queue is full it is dropped, as in a network.
    pub fn send(&self, to: SocketAddr, datagram: &[u8]) {
        let _ = self.socket.send_to(datagram, to);
    }
}

/// This host as a host of the data network.
pub struct DataNetwork(UdpSocket);

impl DataNetwork {
    /// Opens a socket with any port.
    pub fn open() -> Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    /// Sends a datagram to a UE, along this host's route to the UE's address.
    pub fn send(&self, to: SocketAddrV4, data: &[u8]) {
        let _ = self.0.send_to(data, to);
    }
}

/// The local address of the route to a peer.
pub fn address_towards(peer: SocketAddr) -> Result<IpAddr> {
    let any: IpAddr = if peer.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(peer).with_context(|| format!("no route to {peer}"))?;
    Ok(socket.local_addr()?.ip())
}
