//! A TUN interface with one queue, without offloads.

use super::tun::attach;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// The interface exists as long as this value.
#[derive(Debug)]
pub struct PlainTun(File);

impl PlainTun {
    /// Creates the interface `name`.
    pub fn open(name: &str) -> io::Result<Self> {
        let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/net/tun")?;
        attach(&file, name, 0)?;
        Ok(Self(file))
    }

    /// Reads a packet; `WouldBlock` if none is queued.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(into)
    }

    pub fn write(&self, packet: &[u8]) -> io::Result<usize> {
        (&self.0).write(packet)
    }
}

impl AsFd for PlainTun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
