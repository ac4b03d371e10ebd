//! Signals that end the process or reload files.

use std::io;

/// A signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM, sent by a service manager.
    Terminate,
    /// SIGHUP: reload files.
    Hangup,
}

/// SIGINT, SIGTERM and SIGHUP, blocked in all threads started after [`Signals::hold`], so that one thread can
/// wait for them.
pub struct Signals(libc::sigset_t);

impl Signals {
    /// Blocks the signals. Call it before the first thread is started. SIGXFSZ is ignored: a file that reaches the limit of its size counts as
    /// a full disk.
    pub fn hold() -> io::Result<Self> {
        // SAFETY: a sigset_t may be all zeros until sigemptyset has set it up.
        #[allow(unsafe_code)]
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is a local value, and the old mask is not requested.
        #[allow(unsafe_code)]
        let result = unsafe {
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGINT);
            libc::sigaddset(&mut set, libc::SIGTERM);
            libc::sigaddset(&mut set, libc::SIGHUP);
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut())
        };
        match result {
            0 => Ok(Self(set)),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Waits for a signal.
    pub fn wait(&self) -> Signal {
        loop {
            let mut number = 0;
            // SAFETY: both point to values that outlive the call.
            #[allow(unsafe_code)]
            let result = unsafe { libc::sigwait(&self.0, &mut number) };
            match (result, number) {
                (0, libc::SIGINT) => return Signal::Interrupt,
                (0, libc::SIGTERM) => return Signal::Terminate,
                (0, libc::SIGHUP) => return Signal::Hangup,
                _ => {}
            }
        }
    }
}

/// Whether SIGINT or SIGTERM waits to be taken: for work before [`Signals::wait`] that may take long.
pub fn is_end_requested() -> bool {
    // SAFETY: a sigset_t may be all zeros until sigpending has filled it.
    #[allow(unsafe_code)]
    let mut pending: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `pending` is a local value.
    #[allow(unsafe_code)]
    let has = |pending: &libc::sigset_t, signal| unsafe { libc::sigismember(pending, signal) == 1 };
    // SAFETY: as above.
    #[allow(unsafe_code)]
    let result = unsafe { libc::sigpending(&mut pending) };
    result == 0 && (has(&pending, libc::SIGINT) || has(&pending, libc::SIGTERM))
}

/// Lets the process end silently when the reader of its output has ended, as in `pith … | head`. For commands
/// only: a core must survive a peer's closing a socket.
pub fn end_with_reader() {
    // SAFETY: the default action needs no handler to be sound.
    #[allow(unsafe_code)]
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_signal_is_received_by_wait() {
        let signals = Signals::hold().unwrap();
        for (number, signal) in [
            (libc::SIGTERM, Signal::Terminate),
            (libc::SIGINT, Signal::Interrupt),
            (libc::SIGHUP, Signal::Hangup),
        ] {
            // SAFETY: the signal is sent to this thread, which blocks it.
            #[allow(unsafe_code)]
            unsafe {
                libc::pthread_kill(libc::pthread_self(), number)
            };
            assert_eq!(signals.wait(), signal);
        }
    }
}
