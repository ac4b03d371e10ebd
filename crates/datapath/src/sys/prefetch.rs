//! Memory asked for before it is needed.

use std::mem::size_of_val;

/// Bytes of a cache line; where lines are longer, some are asked for twice.
const LINE: usize = 64;

/// Has the lines of a value brought near, without waiting for them. A hint: the processor may ignore it, and one
/// that has no such instruction here does.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    let first = std::ptr::from_ref(value).cast::<u8>();
    (0..size_of_val(value)).step_by(LINE).for_each(|at| line(first.wrapping_add(at)));
}

#[inline]
#[cfg(target_arch = "x86_64")]
fn line(place: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: SSE is part of x86-64; the instruction reads nothing that shows, and faults at no address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
}

#[inline]
#[cfg(target_arch = "aarch64")]
fn line(place: *const u8) {
    // SAFETY: the instruction reads nothing that shows, and faults at no address.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
}

#[inline]
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn line(_: *const u8) {}
