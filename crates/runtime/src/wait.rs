//! Waiting for file descriptors, and waking the waiting thread.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Waits until a descriptor is readable or the timeout passes (`None`: no timeout). Returns which ones are
/// readable.
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
    let ready = entries.iter().take(COUNTED).enumerate().filter(|(_, entry)| entry.revents != 0);
    Readable(ready.fold(0, |bits, (at, _)| bits | 1 << at))
}

/// Number of descriptors whose readiness is reported; further ones always count as readable.
const COUNTED: usize = 63;

/// Descriptors that may be readable after a wait: a bit for each, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readable(u64);

impl Readable {
    /// All descriptors, without a check.
    pub const ALL: Self = Self(u64::MAX);

    /// Whether the descriptor at this index may be readable.
    pub fn has(self, at: usize) -> bool {
        at >= COUNTED || self.0 >> at & 1 == 1
    }

    /// The descriptors without the first.
    fn rest(self) -> Self {
        Self(self.0 >> 1 | 1 << (COUNTED - 1))
    }
}

/// Wakes a thread that waits for descriptors. It costs a system call only if the thread sleeps.
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

/// Creates a waker and its sleeper.
pub fn waker() -> io::Result<(Waker, Sleeper)> {
    let (ours, theirs) = UnixDatagram::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    let sleeping = Arc::new(AtomicBool::new(false));
    let waker = Waker { sleeping: Arc::clone(&sleeping), socket: Arc::new(ours) };
    Ok((waker, Sleeper { sleeping, socket: theirs }))
}

impl Waker {
    /// Wakes the sleeper if it sleeps. The sleeper sees everything sent to its inbox before.
    pub fn wake(&self) {
        if self.sleeping.swap(false, Ordering::SeqCst) {
            // A full socket wakes too.
            let _ = self.socket.send(&[1]);
        }
    }
}

impl Sleeper {
    /// Waits for a descriptor or the waker, unless `is_busy`. Returns the descriptors that may be readable.
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
            let all: Vec<_> = [self.socket.as_fd()].into_iter().chain(fds.iter().copied()).collect();
            wait_readable(&all, timeout)
        };
        self.sleeping.store(false, Ordering::SeqCst);
        if readable.has(0) {
            let mut octet = [0; 8];
            while self.socket.recv(&mut octet).is_ok() {}
        }
        readable.rest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_wakes_by_waker_and_by_timeout() {
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
        assert_eq!(sleeper.sleep(&[], None, || true), Readable::ALL.rest());
    }

    #[test]
    fn a_sleeper_reports_readable_descriptors_and_all_beyond_the_limit() {
        let (_waker, sleeper) = waker().unwrap();
        let pairs: Vec<_> = (0..70).map(|_| UnixDatagram::pair().unwrap()).collect();
        for (at, (sender, _)) in pairs.iter().enumerate().filter(|(at, _)| at % 7 == 1) {
            sender.send(&[at as u8]).unwrap();
        }
        let fds: Vec<_> = pairs.iter().map(|(_, receiver)| receiver.as_fd()).collect();
        let readable = sleeper.sleep(&fds, None, || false);
        for at in 0..70 {
            assert_eq!(readable.has(at), at % 7 == 1 || at >= COUNTED - 1, "{at}");
        }
    }
}
