//! A counting allocator: octets per thread, so that a target's memory can be limited.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

/// Octets that this thread has requested in total.
pub fn allocated() -> u64 {
    ALLOCATED.with(Cell::get)
}

fn count(octets: usize) {
    // A thread that ends may still allocate after its counter is destroyed.
    let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + octets as u64));
}

struct Counting;

// SAFETY: all requests are passed on to the system allocator; counting allocates nothing, because
// the counter needs neither construction nor destruction.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller fulfils the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the contract of `GlobalAlloc`.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller fulfils the contract of `GlobalAlloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        // SAFETY: the caller fulfils the contract of `GlobalAlloc`.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
