//! The memory of a BPF array, mapped into this process: what the program reads and writes without a copy.

use super::layout::Shared;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// An array of values that a BPF program shares.
#[derive(Debug)]
pub struct MapMemory<T> {
    start: NonNull<T>,
    count: usize,
}

// SAFETY: `T: Shared` wherever it is made: whatever another thread or the program writes is atomic.
unsafe impl<T: Shared> Send for MapMemory<T> {}
// SAFETY: as above.
unsafe impl<T: Shared> Sync for MapMemory<T> {}

impl<T: Shared> MapMemory<T> {
    /// Maps `count` values of a BPF array that was made with `BPF_F_MMAPABLE`.
    pub fn map(array: BorrowedFd<'_>, count: usize) -> io::Result<Self> {
        let length = count * size_of::<T>();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at a place that the kernel chooses; it refuses more than the array has.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, array.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, count })
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The values.
    pub fn values(&self) -> &[T] {
        // SAFETY: `count` values are mapped, page-aligned, as long as `self` lives; any bytes are a `T`, and
        // what others write meanwhile is in atomic fields (`Shared`).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }

    /// Puts a value in place of that at `index`, which no program may be able to find.
    pub fn put(&mut self, index: u32, value: T) {
        let index = index as usize;
        assert!(index < self.count, "slots are given out below the count");
        // SAFETY: within the mapping; `&mut self` means that nobody here refers to it.
        unsafe { self.start.as_ptr().add(index).write(value) };
    }
}

impl<T> Drop for MapMemory<T> {
    fn drop(&mut self) {
        let length = self.count * size_of::<T>();
        // SAFETY: the mapping is ours, and nothing refers into it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), length) };
    }
}
