//! A TUN interface for a simulated UE: programs of this host use the UE's session through it.

use crate::sys::PlainTun;
use crate::system::Route;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

/// Packets queued for the simulator.
const QUEUE_LEN: u32 = 500;

/// An interface with the address of a session; dropping it removes it. It has no routes: programs such as
/// `ping -I` select it by name or address.
#[derive(Debug)]
pub struct UeTun {
    tun: PlainTun,
}

impl UeTun {
    /// Makes the interface `name`, gives it the address, and brings it up.
    pub fn open(name: &str, address: Ipv4Addr, mtu: u16) -> io::Result<Self> {
        let tun = PlainTun::open(name)?;
        let mut route = Route::open(name)?;
        route.set_lengths(mtu.into(), QUEUE_LEN)?;
        route.bring_up()?;
        route.add_address(address.into(), 32)?;
        Ok(Self { tun })
    }

    /// Reads a packet that a program of this host sends; `WouldBlock` when there is none.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.tun.read(into)
    }

    /// Hands a packet to the programs of this host.
    pub fn write(&self, packet: &[u8]) -> io::Result<usize> {
        self.tun.write(packet)
    }
}

impl AsFd for UeTun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}
