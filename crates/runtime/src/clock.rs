//! The process's clock, in the time types of the pure crates.

use pith_nf::kit::Instant;
use std::time::{SystemTime, UNIX_EPOCH};

/// Counts microseconds since the process started; the same in all threads.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: std::time::Instant,
    epoch_unix_ms: i64,
}

impl Clock {
    /// Starts a clock at the current time.
    pub fn start() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let epoch_unix_ms = i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX);
        Self { began: std::time::Instant::now(), epoch_unix_ms }
    }

    /// Wall clock at the process's start, in milliseconds since 1970.
    pub const fn epoch_unix_ms(&self) -> i64 {
        self.epoch_unix_ms
    }

    /// Wall clock at the process's start, in seconds since 1970.
    pub fn unix_seconds(&self) -> u64 {
        u64::try_from(self.epoch_unix_ms / 1000).unwrap_or(0)
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        Instant::from_micros(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

/// Processor time that the calling thread has used so far.
pub fn thread_cpu_time() -> std::time::Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the time into the structure, which outlives it.
    #[allow(unsafe_code)]
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    if answer != 0 {
        return std::time::Duration::ZERO;
    }
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    std::time::Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_uses_no_processor_time() {
        let before = thread_cpu_time();
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(thread_cpu_time() - before < std::time::Duration::from_millis(40));
        while thread_cpu_time() - before < std::time::Duration::from_millis(5) {}
    }
}
