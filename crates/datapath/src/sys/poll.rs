//! Waiting for a handful of descriptors (poll).

use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Most descriptors that can be waited for at once.
pub const MOST: usize = 16;

/// Waits without end until a descriptor is readable; answers a bit for each, lowest first. A signal
/// ends the wait with no bit set.
pub fn wait_readable(descriptors: &[BorrowedFd<'_>]) -> io::Result<u32> {
    const IDLE: libc::pollfd = libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 };
    let mut fds = [IDLE; MOST];
    for (slot, descriptor) in fds.iter_mut().zip(descriptors) {
        slot.fd = descriptor.as_raw_fd();
    }
    // SAFETY: `fds` is an array of MOST initialised entries; negative descriptors are passed over.
    let answer = check(unsafe { libc::poll(fds.as_mut_ptr(), MOST as libc::nfds_t, -1) });
    match answer {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
        Ok(_) => Ok(ready_bits(&fds)),
    }
}

fn ready_bits(fds: &[libc::pollfd]) -> u32 {
    fds.iter().enumerate().filter(|(_, fd)| fd.revents != 0).fold(0, |bits, (at, _)| bits | 1 << at)
}
