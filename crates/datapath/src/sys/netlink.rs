//! A netlink socket for requests and their acknowledgements.

use super::{check, check_len};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

#[derive(Debug)]
pub struct NetlinkSocket(OwnedFd);

impl NetlinkSocket {
    pub fn open() -> io::Result<Self> {
        Self::of(libc::NETLINK_ROUTE)
    }

    /// Opens a socket for another subsystem than routing, such as connection tracking (`NETLINK_NETFILTER`).
    pub fn of(protocol: libc::c_int) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: takes no pointers; the descriptor it answers is new and ours alone.
        unsafe {
            let fd = check(libc::socket(libc::AF_NETLINK, kind, protocol))?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Opens a socket for the notifications of these groups (`RTMGRP_*`).
    pub fn subscribe(groups: u32) -> io::Result<Self> {
        Self::subscribe_to(libc::NETLINK_ROUTE, groups)
    }

    fn subscribe_to(protocol: libc::c_int, groups: u32) -> io::Result<Self> {
        let socket = Self::of(protocol)?;
        // SAFETY: all zero is a valid `sockaddr_nl`, whose size is said; it lives during the call.
        unsafe {
            let mut address = std::mem::zeroed::<libc::sockaddr_nl>();
            address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
            address.nl_groups = groups;
            let length = size_of_val(&address) as libc::socklen_t;
            check(libc::bind(socket.0.as_raw_fd(), (&raw const address).cast(), length))?;
        }
        Ok(socket)
    }

    /// Opens a socket for the notifications of changed nftables rules (`NFNLGRP_NFTABLES`).
    pub fn subscribe_to_nftables() -> io::Result<Self> {
        const GROUP: u32 = 7;
        Self::subscribe_to(libc::NETLINK_NETFILTER, 1 << (GROUP - 1))
    }

    /// Makes the kernel apply filters of dump requests, such as a routing table (`NETLINK_GET_STRICT_CHK`).
    pub fn ask_strictly(&self) -> io::Result<()> {
        let on: libc::c_int = 1;
        let length = size_of_val(&on) as libc::socklen_t;
        let (fd, option) = (self.0.as_raw_fd(), libc::NETLINK_GET_STRICT_CHK);
        // SAFETY: the option's value is a readable C int.
        check(unsafe { libc::setsockopt(fd, libc::SOL_NETLINK, option, (&raw const on).cast(), length) })?;
        Ok(())
    }

    /// Reads and discards all pending messages.
    pub fn drain(&self) {
        let mut buffer = [0u8; 4096];
        let (fd, flags) = (self.0.as_raw_fd(), libc::MSG_DONTWAIT);
        // SAFETY: `buffer` is writable for its length.
        while unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), flags) } > 0 {}
    }

    /// Sends a request and reads its answer, or the first of several, into `answer`.
    pub fn exchange(&self, request: &[u8], answer: &mut [u8]) -> io::Result<usize> {
        let fd = self.0.as_raw_fd();
        // SAFETY: `request` is readable for its length.
        unsafe {
            check_len(libc::send(fd, request.as_ptr().cast(), request.len(), 0))?;
        }
        self.receive(answer)
    }

    /// Sends a request that the kernel does not answer.
    pub fn send(&self, request: &[u8]) -> io::Result<()> {
        // SAFETY: `request` is readable for its length.
        check_len(unsafe { libc::send(self.0.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) })
            .map(drop)
    }

    /// Reads a further answer to a request.
    pub fn receive(&self, answer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: `answer` is writable for its length.
        check_len(unsafe { libc::recv(self.0.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) })
    }
}

impl AsFd for NetlinkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub fn interface_index(name: &str) -> io::Result<u32> {
    let name = CString::new(name)?;
    // SAFETY: `name` ends with a zero byte and lives during the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}
