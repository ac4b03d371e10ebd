//! A worker's AF_XDP sockets.

use crate::sys::Xsk;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

/// Maximum number of sockets of a worker: as many as it can wait for beside its other descriptors.
pub const MAX_PORTS: usize = 20;

/// A socket, and the device that it is bound to.
#[derive(Debug)]
pub struct Port {
    /// A bit for each of the device's slots in `devices`.
    pub slots: u64,
    pub xsk: Xsk,
}

/// All sockets of a worker.
#[derive(Debug, Default)]
pub struct Ports(Vec<Port>);

impl Ports {
    /// Adds a socket.
    pub fn serve(&mut self, port: Port) {
        self.0.push(port);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Descriptors that are readable while frames are pending.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(|port| port.xsk.as_fd())
    }

    /// Receives a batch of frames of a socket; `frames` are their positions in `arena`. Returns whether there
    /// may be more.
    pub fn receive(&mut self, port: usize, arena: &mut [u8], frames: &mut Vec<Range<usize>>) -> bool {
        self.0.get_mut(port).is_some_and(|port| port.xsk.receive(arena, frames))
    }

    /// The socket of the device in that slot.
    pub fn of_slot(&self, slot: u32) -> Option<usize> {
        let bit = 1u64.checked_shl(slot)?;
        self.0.iter().position(|port| port.slots & bit != 0)
    }

    /// Queues a frame for sending, in two parts. `false` if the socket cannot send it.
    pub fn send(&mut self, port: usize, head: &[u8], body: &[u8]) -> bool {
        let Some(Port { xsk, .. }) = self.0.get_mut(port) else { return false };
        if xsk.send(head, body) {
            return true;
        }
        xsk.flush();
        xsk.send(head, body)
    }

    /// Sends all queued frames.
    pub fn flush(&mut self) {
        self.0.iter_mut().for_each(|port| port.xsk.flush());
    }
}
