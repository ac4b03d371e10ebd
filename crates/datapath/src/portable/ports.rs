//! A worker's AF_XDP sockets.

use crate::sys::Xsk;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

/// Most that a worker serves: as many as can be waited for beside its other descriptors.
pub const MOST_PORTS: usize = 20;

/// A socket, and by which of the program's devices its frames come and leave.
#[derive(Debug)]
pub struct Port {
    /// The device's slots in `devices`, a bit each.
    pub slots: u64,
    /// The socket.
    pub xsk: Xsk,
}

/// All of a worker.
#[derive(Debug, Default)]
pub struct Ports(Vec<Port>);

impl Ports {
    /// Takes one.
    pub fn serve(&mut self, port: Port) {
        self.0.push(port);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// What is readable while frames wait.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(|port| port.xsk.as_fd())
    }

    /// Takes a batch of frames of a socket: where they lie in `arena`. Answers whether there may be more.
    pub fn receive(&mut self, port: usize, arena: &mut [u8], frames: &mut Vec<Range<usize>>) -> bool {
        self.0.get_mut(port).is_some_and(|port| port.xsk.receive(arena, frames))
    }

    /// The socket of the device in that slot.
    pub fn of_slot(&self, slot: u32) -> Option<usize> {
        let bit = 1u64.checked_shl(slot)?;
        self.0.iter().position(|port| port.slots & bit != 0)
    }

    /// Takes a frame, in two parts, to send by a socket. `false` if it can't have it.
    pub fn send(&mut self, port: usize, head: &[u8], body: &[u8]) -> bool {
        let Some(Port { xsk, .. }) = self.0.get_mut(port) else { return false };
        if xsk.send(head, body) {
            return true;
        }
        xsk.flush();
        xsk.send(head, body)
    }

    /// Has everything on its way.
    pub fn flush(&mut self) {
        self.0.iter_mut().for_each(|port| port.xsk.flush());
    }
}
