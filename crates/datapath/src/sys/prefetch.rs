//! Memory prefetching.

use std::mem::size_of_val;

/// Bytes of a cache line; with longer lines, some are prefetched twice.
const LINE: usize = 64;

/// Prefetches the cache lines of a value. A hint: the processor may ignore it, and on architectures without
/// an instruction here it does nothing.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    let first = std::ptr::from_ref(value).cast::<u8>();
    (0..size_of_val(value)).step_by(LINE).for_each(|at| line(first.wrapping_add(at)));
}

#[inline]
#[cfg(target_arch = "x86_64")]
fn line(place: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: SSE is part of x86-64; the instruction has no visible effect and faults at no address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
}

#[inline]
#[cfg(target_arch = "aarch64")]
fn line(place: *const u8) {
    // SAFETY: the instruction has no visible effect and faults at no address.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
}

#[inline]
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn line(_: *const u8) {}
