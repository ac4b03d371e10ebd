//! N4 while the state is handed over: heartbeats are answered, and other datagrams wait for the process that goes on.

use pith_upf::handover::Heartbeats;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Time between two looks at the socket.
const TURN: Duration = Duration::from_millis(20);
/// Datagrams that wait; SMFs repeat what does not fit.
const MOST: usize = 4096;
/// Longer than any datagram.
const LONGEST: usize = 65_536;

/// Serves N4 meanwhile.
pub struct Meanwhile<'a> {
    n4: &'a UdpSocket,
    heartbeats: Heartbeats,
    /// What UPF-C must handle, in the order of arrival.
    pub waiting: Vec<(SocketAddr, Vec<u8>)>,
    buffer: Vec<u8>,
    served: Instant,
}

impl<'a> Meanwhile<'a> {
    /// The socket does not block.
    pub fn new(n4: &'a UdpSocket, heartbeats: Heartbeats) -> Self {
        Self { n4, heartbeats, waiting: Vec::new(), buffer: vec![0; LONGEST], served: Instant::now() }
    }

    /// Serves the socket, if that is due.
    pub fn take_turn(&mut self) {
        if self.served.elapsed() >= TURN {
            self.serve();
        }
    }

    /// Serves the socket.
    pub fn serve(&mut self) {
        while let Ok((length, peer)) = self.n4.recv_from(&mut self.buffer) {
            let datagram = self.buffer.get(..length).unwrap_or_default();
            match self.heartbeats.answer(peer, datagram) {
                // The SMF repeats a heartbeat without a response.
                Some(response) => drop(self.n4.send_to(&response, peer)),
                None if self.waiting.len() < MOST => self.waiting.push((peer, datagram.to_vec())),
                None => {}
            }
        }
        self.served = Instant::now();
    }
}

impl AsFd for Meanwhile<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.n4.as_fd()
    }
}
