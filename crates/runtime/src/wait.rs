//! Waiting for descriptors, and waking whoever waits.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Waits until one of the descriptors is readable, for so long at most; for ever if `None`. Which are.
pub fn wait_readable(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> Readable {
    let entry = |fd: &BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut entries: Vec<libc::pollfd> = fds.iter().map(entry).collect();
    let span = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().min(1 << 30) as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let span = span.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `entries` and `span` outlive the call; the mask may be null. A failure (a signal) counts as ready.
    #[allow(unsafe_code)]
    unsafe {
        if libc::ppoll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, span, std::ptr::null()) < 0 {
            return Readable::ALL;
        }
    }
    let ready = entries.iter().enumerate().filter(|(_, entry)| entry.revents != 0);
    Readable(ready.fold(0, |bits, (at, _)| bits | 1 << at))
}

/// Which of the descriptors that a thread waited for may be readable: a bit for each, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readable(u32);

impl Readable {
    /// Nobody looked.
    pub const ALL: Self = Self(u32::MAX);

    /// Whether this one may be.
    pub fn has(self, at: usize) -> bool {
        self.0 >> at & 1 == 1
    }
}

/// Wakes a thread that waits for descriptors; costs a system call only if it sleeps.
#[derive(Clone)]
pub struct Waker {
    sleeping: Arc<AtomicBool>,
    socket: Arc<UnixDatagram>,
}

/// The waiting side of a [`Waker`].
pub struct Sleeper {
    sleeping: Arc<AtomicBool>,
    socket: UnixDatagram,
}

/// A waker and the sleeper that it wakes.
pub fn waker() -> io::Result<(Waker, Sleeper)> {
    let (ours, theirs) = UnixDatagram::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    let sleeping = Arc::new(AtomicBool::new(false));
    let waker = Waker { sleeping: Arc::clone(&sleeping), socket: Arc::new(ours) };
    Ok((waker, Sleeper { sleeping, socket: theirs }))
}

impl Waker {
    /// Wakes the sleeper, if it sleeps. What was sent to its inbox before is seen by it.
    pub fn wake(&self) {
        if self.sleeping.swap(false, Ordering::SeqCst) {
            // A full socket wakes as well.
            let _ = self.socket.send(&[1]);
        }
    }
}

impl Sleeper {
    /// Waits for a descriptor (31 at most) or the waker, unless `is_busy` says that there is something to do
    /// already. Which descriptors may be readable.
    pub fn sleep(
        &self,
        fds: &[BorrowedFd<'_>],
        timeout: Option<Duration>,
        is_busy: impl Fn() -> bool,
    ) -> Readable {
        self.sleeping.store(true, Ordering::SeqCst);
        let readable = if is_busy() {
            Readable::ALL
        } else {
            // The own socket comes last, so that the others keep their places.
            let all: Vec<_> = fds.iter().copied().chain([self.socket.as_fd()]).collect();
            wait_readable(&all, timeout)
        };
        self.sleeping.store(false, Ordering::SeqCst);
        if readable.has(fds.len()) {
            let mut octet = [0; 8];
            while self.socket.recv(&mut octet).is_ok() {}
        }
        readable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_wakes_for_its_waker_and_by_itself() {
        let (waker, sleeper) = waker().unwrap();
        let thread = std::thread::spawn(move || {
            while !waker.sleeping.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            waker.wake();
        });
        sleeper.sleep(&[], None, || false);
        thread.join().unwrap();
        sleeper.sleep(&[], Some(Duration::from_millis(1)), || false);
        sleeper.sleep(&[], None, || true);
    }
}
