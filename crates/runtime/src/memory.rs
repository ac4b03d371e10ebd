//! Returns free memory to the operating system.
//!
//! The programs allocate with mimalloc. A thread that frees the last block of a page gives the page back to the process; when
//! it is free for a second, it is returned to the operating system, but only at the next such event. After a flood of
//! half-open contexts there may be none for a long time: so it is done every few seconds as well.

/// Returns memory that is free for more than a second. It looks at free pages, which no other thread uses, so that no
/// thread waits for it. Without effect in a program with another allocator.
pub fn return_free() {
    // SAFETY: `mi_collect` has no preconditions.
    #[allow(unsafe_code)]
    unsafe {
        libmimalloc_sys::mi_collect(false);
    }
}
