//! Signals: when the operator or the service manager wants the process to end, or to read files again.

use std::io;

/// A signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: a service manager's.
    Terminate,
    /// SIGHUP: files changed.
    Hangup,
}

/// SIGINT, SIGTERM and SIGHUP, held back from all threads that are started after [`Signals::hold`], to be
/// waited for.
pub struct Signals(libc::sigset_t);

impl Signals {
    /// Holds the signals back. Call it before the first thread is started.
    pub fn hold() -> io::Result<Self> {
        // SAFETY: a sigset_t may be all zeros until sigemptyset has set it up.
        #[allow(unsafe_code)]
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` lives on this stack, and the old mask is not asked for.
        #[allow(unsafe_code)]
        let result = unsafe {
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGINT);
            libc::sigaddset(&mut set, libc::SIGTERM);
            libc::sigaddset(&mut set, libc::SIGHUP);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut())
        };
        match result {
            0 => Ok(Self(set)),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Waits for one.
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

/// Lets the process end quietly when whoever reads its output has gone, as `pith … | head` does.
/// For commands only: a core must live on when a peer closes a socket.
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
    fn a_signal_held_back_is_waited_for() {
        let signals = Signals::hold().unwrap();
        for (number, signal) in [
            (libc::SIGTERM, Signal::Terminate),
            (libc::SIGINT, Signal::Interrupt),
            (libc::SIGHUP, Signal::Hangup),
        ] {
            // SAFETY: the signal goes to this very thread, which holds it back.
            #[allow(unsafe_code)]
            unsafe {
                libc::pthread_kill(libc::pthread_self(), number)
            };
            assert_eq!(signals.wait(), signal);
        }
    }
}
