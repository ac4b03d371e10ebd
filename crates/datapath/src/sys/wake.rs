//! Several descriptors as one (epoll), and a timer as a descriptor (timerfd).

use super::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Readable while any of its descriptors is.
#[derive(Debug)]
pub struct Gathered(OwnedFd);

impl Gathered {
    /// The descriptors must stay open as long as this value.
    pub fn of(descriptors: &[RawFd]) -> io::Result<Self> {
        // SAFETY: takes no pointers; the descriptor it answers is new and ours alone.
        let epoll = unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        for descriptor in descriptors {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
            let (epoll, add) = (epoll.as_raw_fd(), libc::EPOLL_CTL_ADD);
            // SAFETY: `event` is readable during the call.
            check(unsafe { libc::epoll_ctl(epoll, add, *descriptor, &raw mut event) })?;
        }
        Ok(Self(epoll))
    }
}

impl AsFd for Gathered {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Readable from its expiry until it is set again.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    pub fn new() -> io::Result<Self> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: takes no pointers; the descriptor it answers is new and ours alone.
        unsafe { Ok(Self(OwnedFd::from_raw_fd(check(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?))) }
    }

    /// Starts it, to expire in `after`; `None` stops it.
    pub fn set(&self, after: Option<Duration>) {
        let after = after.unwrap_or_default();
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = libc::timespec {
            tv_sec: after.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(after.subsec_nanos() as i32),
        };
        let time = libc::itimerspec { it_interval: never, it_value };
        // SAFETY: `time` is readable during the call, and the previous time is not requested.
        unsafe { libc::timerfd_settime(self.0.as_raw_fd(), 0, &raw const time, std::ptr::null_mut()) };
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::wait_readable;
    use super::*;

    #[test]
    fn a_timer_wakes_a_wait_on_all_descriptors() {
        let (one, other) = (Timer::new().unwrap(), Timer::new().unwrap());
        let both = Gathered::of(&[one.as_fd().as_raw_fd(), other.as_fd().as_raw_fd()]).unwrap();
        one.set(Some(Duration::from_secs(3600)));
        other.set(Some(Duration::from_millis(1)));
        assert_eq!(wait_readable(&[both.as_fd()], None).unwrap(), 1);
        assert_eq!(wait_readable(&[one.as_fd(), other.as_fd()], None).unwrap(), 2);
    }
}
