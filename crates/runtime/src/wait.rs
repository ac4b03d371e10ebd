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
    let ready = entries.iter().take(COUNTED).enumerate().filter(|(_, entry)| entry.revents != 0);
    Readable(ready.fold(0, |bits, (at, _)| bits | 1 << at))
}

/// Of so many descriptors it is known whether they are readable; the others count as if they were.
const COUNTED: usize = 63;

/// Which of the descriptors that a thread waited for may be readable: a bit for each, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readable(u64);

impl Readable {
    /// Nobody looked.
    pub const ALL: Self = Self(u64::MAX);

    /// Whether this one may be.
    pub fn has(self, at: usize) -> bool {
        at >= COUNTED || self.0 >> at & 1 == 1
    }

    /// The same without the first.
    fn rest(self) -> Self {
        Self(self.0 >> 1 | 1 << (COUNTED - 1))
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
    /// Waits for a descriptor or the waker, unless `is_busy` says that there is something to do
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
        assert_eq!(sleeper.sleep(&[], None, || true), Readable::ALL.rest());
    }

    #[test]
    fn a_sleeper_tells_what_is_readable_and_takes_what_it_can_not_count_for_readable() {
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
