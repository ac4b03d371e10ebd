//! The clock that BPF programs use, too.

use super::check;
use std::io;

/// Nanoseconds of the system's monotonic clock.
pub fn monotonic() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Waits until no CPU executes what it began before: a grace period of the kernel's RCU, in which BPF programs run. `false` if the
/// kernel does not offer it.
pub fn wait_for_grace_period() -> bool {
    // SAFETY: takes no pointers. MEMBARRIER_CMD_GLOBAL waits for a grace period.
    unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, 0, 0) == 0 }
}

/// The kernel's ticks a second (CONFIG_HZ): the coarse clock advances once a tick.
pub fn kernel_ticks() -> io::Result<u32> {
    let mut tick = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `tick` is writable.
    check(unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut tick) })?;
    // 999,999,999 / 300 ns and the like are rounded to the next whole number of ticks.
    let nanos = (tick.tv_nsec as u64).max(1);
    Ok(((1_000_000_000 + nanos / 2) / nanos) as u32)
}
