//! N4 while the state is handed over: heartbeats are answered, and other datagrams wait for the process that goes on.

use pith_upf::handover::Heartbeats;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Time between two looks at the socket.
const TURN: Duration = Duration::from_millis(20);
/// Octets of datagrams that wait; SMFs repeat what does not fit.
const MOST_OCTETS: usize = 4 << 20;
/// What a datagram that waits occupies beside its octets.
const OVERHEAD: usize = 64;
/// Datagrams of a turn: a flood must not stop the state.
const MOST_OF_A_TURN: usize = 1024;
/// Longer than any datagram.
const LONGEST: usize = 65_536;

/// Serves N4 meanwhile.
pub struct Meanwhile<'a> {
    n4: &'a UdpSocket,
    heartbeats: Heartbeats,
    /// What UPF-C must handle, in the order of arrival.
    pub waiting: Vec<(SocketAddr, Vec<u8>)>,
    waiting_octets: usize,
    buffer: Vec<u8>,
    served: Instant,
}

impl<'a> Meanwhile<'a> {
    /// The socket does not block.
    pub fn new(n4: &'a UdpSocket, heartbeats: Heartbeats) -> Self {
        let (buffer, served) = (vec![0; LONGEST], Instant::now());
        Self { n4, heartbeats, waiting: Vec::new(), waiting_octets: 0, buffer, served }
    }

    /// Serves the socket, if that is due.
    pub fn take_turn(&mut self) {
        if self.served.elapsed() >= TURN {
            self.serve();
        }
    }

    /// Serves the socket.
    pub fn serve(&mut self) {
        for _ in 0..MOST_OF_A_TURN {
            let Ok((length, peer)) = self.n4.recv_from(&mut self.buffer) else { break };
            let datagram = self.buffer.get(..length).unwrap_or_default();
            match self.heartbeats.answer(peer, datagram) {
                // The SMF repeats a heartbeat without a response.
                Some(response) => drop(self.n4.send_to(&response, peer)),
                None if self.waiting_octets + length + OVERHEAD <= MOST_OCTETS => {
                    self.waiting_octets += length + OVERHEAD;
                    self.waiting.push((peer, datagram.to_vec()));
                }
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
