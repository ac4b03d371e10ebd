//! A TUN interface for a simulated UE: programs of this host use the UE's session through it.

use crate::sys::PlainTun;
use crate::system::Route;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

/// Packets queued for the simulator.
const QUEUE_LEN: u32 = 500;

/// An interface with the address of a session; dropping it removes it. It has no routes, except a default route of IPv6 that is
/// used if there is no other: programs such as `ping -I` select it by name or address.
#[derive(Debug)]
pub struct UeTun {
    tun: PlainTun,
}

impl UeTun {
    /// Makes the interface `name`, gives it the addresses, and brings it up. With a link-local address the kernel solicits the
    /// router, and makes an address from its advertisement.
    pub fn open(
        name: &str,
        v4: Option<Ipv4Addr>,
        link_local: Option<Ipv6Addr>,
        mtu: u16,
    ) -> io::Result<Self> {
        let tun = PlainTun::open(name)?;
        set_ipv6(name, link_local.is_some());
        let mut route = Route::open(name)?;
        route.set_lengths(mtu.into(), QUEUE_LEN)?;
        route.bring_up()?;
        if let Some(v4) = v4 {
            route.add_address(v4.into(), 32)?;
        }
        if let Some(link_local) = link_local {
            route.add_address(link_local.into(), 64)?;
        }
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

/// Has the kernel act as a UE in a session with IPv6: it makes no link-local address of its own, and accepts Router Advertisements,
/// also on a machine that forwards. Best effort: without these settings the kernel has no IPv6.
fn set_ipv6(name: &str, is_used: bool) {
    let set = |setting: &str, value: &str| {
        std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/{setting}"), value)
    };
    if !is_used {
        let _ = set("disable_ipv6", "1");
        return;
    }
    for (setting, value) in [("addr_gen_mode", "1"), ("accept_ra", "2")] {
        let _ = set(setting, value);
    }
    // The default route of the machine takes precedence.
    if set("ra_defrtr_metric", "65535").is_err() {
        let _ = set("accept_ra_defrtr", "0");
    }
}

impl AsFd for UeTun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}
