//! Waits for several descriptors (ppoll).

use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Maximum number of descriptors in one wait.
pub const MOST: usize = 32;

/// Waits until a descriptor is readable or the time is up; returns a bit for each, lowest first. A signal
/// ends the wait with no bit set.
pub fn wait_readable(descriptors: &[BorrowedFd<'_>], most: Option<Duration>) -> io::Result<u32> {
    const IDLE: libc::pollfd = libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 };
    let mut fds = [IDLE; MOST];
    for (slot, descriptor) in fds.iter_mut().zip(descriptors) {
        slot.fd = descriptor.as_raw_fd();
    }
    let most =
        most.map(|most| libc::timespec { tv_sec: most.as_secs() as _, tv_nsec: most.subsec_nanos().into() });
    let timeout = most.as_ref().map_or(std::ptr::null(), |most| most);
    // SAFETY: `fds` is an array of MOST initialised entries; negative descriptors are ignored. The timeout is
    // null or readable during the call, and there is no signal mask.
    let answer =
        check(unsafe { libc::ppoll(fds.as_mut_ptr(), MOST as libc::nfds_t, timeout, std::ptr::null()) });
    match answer {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
        Ok(_) => Ok(ready_bits(&fds)),
    }
}

fn ready_bits(fds: &[libc::pollfd]) -> u32 {
    fds.iter().enumerate().filter(|(_, fd)| fd.revents != 0).fold(0, |bits, (at, _)| bits | 1 << at)
}
