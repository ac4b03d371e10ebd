//! Hand-made SCTP packets, and a client with only a UDP socket.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

pub const INIT: u8 = 1;
pub const INIT_ACK: u8 = 2;
pub const HEARTBEAT: u8 = 4;
pub const HEARTBEAT_ACK: u8 = 5;
pub const ABORT: u8 = 6;
pub const ERROR: u8 = 9;
pub const COOKIE_ECHO: u8 = 10;
pub const COOKIE_ACK: u8 = 11;

/// A packet with one chunk and its checksum.
pub fn packet(ports: (u16, u16), tag: u32, kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
    bytes.extend(tag.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend([kind, 0]);
    bytes.extend((body.len() as u16 + 4).to_be_bytes());
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let sum = crc32c::crc32c(&bytes).to_le_bytes();
    bytes[8..12].copy_from_slice(&sum);
    bytes
}

/// The body of an INIT: tag, window, streams, first TSN.
pub fn init_body(tag: u32) -> Vec<u8> {
    let mut body = tag.to_be_bytes().to_vec();
    body.extend(100_000_u32.to_be_bytes());
    body.extend([0, 10, 0, 10]);
    body.extend(tag.to_be_bytes());
    body
}

/// A peer that handles four chunk types.
pub struct Stranger {
    socket: UdpSocket,
    pub ports: (u16, u16),
}

impl Stranger {
    pub fn new(server_udp: SocketAddr, ports: (u16, u16)) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server_udp).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        Self { socket, ports }
    }

    pub fn send(&self, bytes: &[u8]) {
        // A port without a socket is not an error of this test.
        let _ = self.socket.send(bytes);
    }

    /// The next packet within the timeout: the type of its first chunk, and its octets.
    pub fn receive(&self) -> Option<(u8, Vec<u8>)> {
        let mut buffer = [0; 4096];
        let length = self.socket.recv(&mut buffer).ok()?;
        Some((buffer[12], buffer[..length].to_vec()))
    }

    /// Performs the handshake from INIT to COOKIE ACK; returns the server's tag.
    pub fn establish(&self, tag: u32) -> u32 {
        let (their_tag, echo) = self.cookie_echo(tag);
        self.send(&echo);
        let (kind, _) = self.receive().expect("a COOKIE ACK");
        assert_eq!(kind, COOKIE_ACK);
        their_tag
    }

    /// Sends an INIT; returns the server's tag and the packet with its cookie.
    pub fn cookie_echo(&self, tag: u32) -> (u32, Vec<u8>) {
        self.send(&packet(self.ports, 0, INIT, &init_body(tag)));
        let (kind, ack) = self.receive().expect("an INIT ACK");
        assert_eq!(kind, INIT_ACK);
        let their_tag = u32::from_be_bytes(ack[16..20].try_into().unwrap());
        (their_tag, packet(self.ports, their_tag, COOKIE_ECHO, cookie(&ack)))
    }

    /// The same peer behind another UDP port, or another address.
    pub fn at(&self, local: &str) -> Self {
        let socket = UdpSocket::bind((local, 0)).unwrap();
        socket.connect(self.socket.peer_addr().unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        Self { socket, ports: self.ports }
    }

    /// Another SCTP port of this peer, at the same UDP port.
    pub fn shared(&self, ports: (u16, u16)) -> Self {
        Self { socket: self.socket.try_clone().unwrap(), ports }
    }

    /// Whether the server answers a HEARTBEAT with this tag.
    pub fn is_alive(&self, tag: u32) -> bool {
        self.send(&packet(self.ports, tag, HEARTBEAT, &[0, 1, 0, 8, 1, 2, 3, 4]));
        std::iter::from_fn(|| self.receive()).any(|(kind, _)| kind == HEARTBEAT_ACK)
    }
}

/// The state cookie (parameter type 7) of an INIT ACK.
fn cookie(ack: &[u8]) -> &[u8] {
    let mut rest = &ack[32..];
    loop {
        let kind = u16::from_be_bytes([rest[0], rest[1]]);
        let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        if kind == 7 {
            return &rest[4..length];
        }
        rest = &rest[length.next_multiple_of(4)..];
    }
}
