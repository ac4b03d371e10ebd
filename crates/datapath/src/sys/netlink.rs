//! A NETLINK_ROUTE socket: a request, and its acknowledgement.

use super::{check, check_len};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A socket to the kernel's routing tables.
#[derive(Debug)]
pub struct NetlinkSocket(OwnedFd);

impl NetlinkSocket {
    /// Opens one.
    pub fn open() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: takes no pointers; the descriptor it answers is new and ours alone.
        unsafe {
            let fd = check(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE))?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Sends a request that has an answer, and reads that, or the first of several, into `answer`.
    pub fn exchange(&self, request: &[u8], answer: &mut [u8]) -> io::Result<usize> {
        let fd = self.0.as_raw_fd();
        // SAFETY: `request` is readable for its length.
        unsafe {
            check_len(libc::send(fd, request.as_ptr().cast(), request.len(), 0))?;
        }
        self.receive(answer)
    }

    /// Reads one more answer, of a request that has several.
    pub fn receive(&self, answer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: `answer` is writable for its length.
        check_len(unsafe { libc::recv(self.0.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) })
    }
}

/// The index of the interface of that name.
pub fn interface_index(name: &str) -> io::Result<u32> {
    let name = CString::new(name)?;
    // SAFETY: `name` ends with a zero byte and lives during the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}
