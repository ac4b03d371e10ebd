//! Returns free memory of the heap to the operating system.
//!
//! glibc keeps freed memory for later allocations: a thread's heap shrinks only from its end, where a single live object
//! prevents it. So the memory of a flood of half-open contexts would stay with the process although the contexts are gone.
//! `malloc_trim` returns all whole free pages, wherever they are. It locks one thread's heap after another, for up to some
//! milliseconds each. Therefore it is called only if much memory has become free and stays free.

/// Octets that must have become free since the last return. Smaller amounts are likely to be allocated again soon.
const WORTHWHILE: usize = 8 << 20;

/// Decides when free memory is returned.
#[derive(Debug, Default)]
pub struct Trimmer {
    /// Free octets at the last check.
    last: usize,
    /// The lowest number of free octets since the last return, after which free memory still counts as free.
    lowest: usize,
}

impl Trimmer {
    /// Returns free memory if [`WORTHWHILE`] octets more than at the last return were free at this check and at the
    /// one before. Returns whether it did so. To be called every few seconds.
    pub fn check(&mut self) -> bool {
        let free = free_octets();
        self.lowest = self.lowest.min(free);
        let lasting = free.min(self.last);
        self.last = free;
        if lasting < self.lowest + WORTHWHILE {
            return false;
        }
        trim();
        self.lowest = free_octets();
        true
    }
}

/// Free octets in all heaps, including those that were already returned.
#[cfg(target_env = "gnu")]
fn free_octets() -> usize {
    // SAFETY: `mallinfo2` has no preconditions; it locks the heaps that it reads.
    #[allow(unsafe_code)]
    unsafe {
        libc::mallinfo2().fordblks
    }
}

#[cfg(target_env = "gnu")]
fn trim() {
    // SAFETY: `malloc_trim` has no preconditions; it changes only free memory, under the heaps' locks.
    #[allow(unsafe_code)]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other allocators return free memory by themselves.
#[cfg(not(target_env = "gnu"))]
fn free_octets() -> usize {
    0
}

#[cfg(not(target_env = "gnu"))]
fn trim() {}
