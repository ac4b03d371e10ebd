//! The programs' allocator, mimalloc. It returns free memory to the operating system by itself, and takes no lock for a whole heap. With glibc's,
//! the check whether there was memory to return (`mallinfo2`) walked through all free chunks of each thread's heap, which stopped the shards of
//! a core with a million UEs for half a second.
//!
//! A thread that frees the last block of a page gives the page back to the process; when it is free for a second, it is returned to the operating
//! system, but only at the next such event. After a flood of half-open contexts there may be none for a long time: so it is done every few
//! seconds as well.
#![allow(unsafe_code)]

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};
use std::alloc::{GlobalAlloc, Layout};

/// mimalloc aligns each block of 16 octets or more to 16 octets, as C's `malloc` does.
const NATURAL: usize = 16;

/// mimalloc, by the functions without an alignment where they give it anyway. Those with one take three times as many instructions.
pub struct Allocator;

/// Whether each block of that size has the alignment.
const fn is_natural(layout: Layout, size: usize) -> bool {
    layout.align() <= NATURAL && layout.align() <= size
}

// SAFETY: mimalloc's functions meet the contract of `GlobalAlloc`; blocks of both kinds may be passed to `mi_free` and to both kinds of
// `mi_realloc`.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size();
        // SAFETY: any size and a power of two are allowed.
        unsafe {
            if is_natural(layout, size) { mi_malloc(size) } else { mi_malloc_aligned(size, layout.align()) }
        }
        .cast()
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let size = layout.size();
        // SAFETY: as in `alloc`.
        unsafe {
            if is_natural(layout, size) { mi_zalloc(size) } else { mi_zalloc_aligned(size, layout.align()) }
        }
        .cast()
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the caller has it from this allocator.
        unsafe { mi_free(block.cast()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let block = block.cast();
        // SAFETY: the caller has the block from this allocator; sizes as in `alloc`.
        unsafe {
            if is_natural(layout, size) {
                mi_realloc(block, size)
            } else {
                mi_realloc_aligned(block, size, layout.align())
            }
        }
        .cast()
    }
}

/// Returns memory that is free for more than a second. It looks at free pages, which no other thread uses, so that no
/// thread waits for it. Without effect in a program with another allocator.
pub fn return_free() {
    // SAFETY: `mi_collect` has no preconditions.
    unsafe {
        libmimalloc_sys::mi_collect(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_alignment_and_keep_their_octets() {
        for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
            for size in [1, 3, 7, 8, 9, 15, 16, 17, 24, 40, 100, 1000, 5000, 100_000] {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the blocks are used within their sizes, and freed once.
                unsafe {
                    let zeroed = Allocator.alloc_zeroed(layout);
                    let mut block = Allocator.alloc(layout);
                    assert!(zeroed.addr().is_multiple_of(align) && block.addr().is_multiple_of(align));
                    assert!(std::slice::from_raw_parts(zeroed, size).iter().all(|octet| *octet == 0));
                    block.write_bytes(7, size);
                    for (before, after) in [(size, 2 * size), (2 * size, size.div_ceil(2))] {
                        let layout = Layout::from_size_align(before, align).unwrap();
                        block = Allocator.realloc(block, layout, after);
                        assert!(block.addr().is_multiple_of(align), "{size} {align}");
                        let kept = std::slice::from_raw_parts(block, size.div_ceil(2));
                        assert!(kept.iter().all(|octet| *octet == 7));
                    }
                    Allocator.dealloc(zeroed, layout);
                    Allocator.dealloc(block, Layout::from_size_align(size.div_ceil(2), align).unwrap());
                }
            }
        }
    }
}
