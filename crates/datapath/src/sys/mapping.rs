//! Memory shared with the kernel.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// A mapping; dropping it unmaps it.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: plain memory, with no tie to the thread that mapped it.
unsafe impl Send for Mapping {}
// SAFETY: by itself it gives out addresses only.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `length` bytes of the descriptor from `offset`.
    pub fn of(fd: BorrowedFd<'_>, length: usize, offset: libc::off_t) -> io::Result<Self> {
        Self::map(length, libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_raw_fd(), offset)
    }

    /// New zeroed memory.
    pub fn anonymous(length: usize) -> io::Result<Self> {
        Self::map(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    fn map(length: usize, flags: libc::c_int, fd: libc::c_int, offset: libc::off_t) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// A pointer to the value at `offset`.
    pub fn at<T>(&self, offset: usize) -> *mut T {
        assert!(offset + size_of::<T>() <= self.length, "the kernel's offsets are within its mapping");
        // SAFETY: within the mapping, as was just checked.
        unsafe { self.start.as_ptr().add(offset).cast() }
    }

    /// The start and the length.
    pub fn bounds(&self) -> (*mut u8, usize) {
        (self.start.as_ptr(), self.length)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and no reference into it exists any longer.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
