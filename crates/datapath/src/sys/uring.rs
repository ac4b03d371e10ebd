//! Several reads or writes in one system call (io_uring), for descriptors such as TUN's that have no such
//! call of their own. Containers often forbid io_uring.

use super::check;
use super::mapping::Mapping;
use std::io::{self, IoSlice};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// Operations in one call.
pub const RING: usize = 64;

const OP_READ: u8 = 22;
const OP_WRITEV: u8 = 2;
const ENTER_GETEVENTS: libc::c_uint = 1;
const FEATURE_SINGLE_MMAP: u32 = 1;
const OFFSET_SUBMISSIONS: libc::off_t = 0x1000_0000;
/// Without it, a read from an empty queue would wait in the ring.
const NOWAIT: u32 = libc::RWF_NOWAIT as u32;
/// For files without a position.
const NO_OFFSET: u64 = u64::MAX;

#[repr(C)]
#[derive(Default)]
struct Parameters {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    reserved: [u32; 3],
    sq: SubmissionOffsets,
    cq: CompletionOffsets,
}

#[repr(C)]
#[derive(Default)]
struct SubmissionOffsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    flags: u32,
    dropped: u32,
    array: u32,
    reserved: u32,
    user_address: u64,
}

#[repr(C)]
#[derive(Default)]
struct CompletionOffsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    overflow: u32,
    completions: u32,
    flags: u32,
    reserved: u32,
    user_address: u64,
}

/// struct io_uring_sqe
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Submission {
    opcode: u8,
    flags: u8,
    priority: u16,
    fd: i32,
    offset: u64,
    address: u64,
    length: u32,
    operation_flags: u32,
    user_data: u64,
    rest: [u64; 3],
}

/// struct io_uring_cqe
#[repr(C)]
#[derive(Clone, Copy)]
struct Completion {
    user_data: u64,
    result: i32,
    flags: u32,
}

/// A ring that one thread submits to; it is empty between two calls.
#[derive(Debug)]
pub struct Ring {
    fd: OwnedFd,
    rings: Mapping,
    submissions: Mapping,
    tail: usize,
    completion_head: usize,
    completion_tail: usize,
    completions: usize,
    mask: u32,
    completion_mask: u32,
}

impl Ring {
    /// A ring of [`RING`] entries.
    pub fn new() -> io::Result<Self> {
        let mut parameters = Parameters::default();
        // SAFETY: io_uring_setup reads and writes one `io_uring_params`; the descriptor is new and ours.
        let fd = unsafe {
            let fd = libc::syscall(libc::SYS_io_uring_setup, RING as libc::c_uint, &raw mut parameters);
            OwnedFd::from_raw_fd(check(fd as libc::c_int)?)
        };
        if parameters.features & FEATURE_SINGLE_MMAP == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let Parameters { sq, cq, .. } = &parameters;
        let array_end = sq.array as usize + parameters.sq_entries as usize * size_of::<u32>();
        let completions_end =
            cq.completions as usize + parameters.cq_entries as usize * size_of::<Completion>();
        let rings = Mapping::of(fd.as_fd(), array_end.max(completions_end), 0)?;
        let entries = parameters.sq_entries as usize;
        let submissions = Mapping::of(fd.as_fd(), entries * size_of::<Submission>(), OFFSET_SUBMISSIONS)?;
        let ring = Self {
            fd,
            tail: sq.tail as usize,
            completion_head: cq.head as usize,
            completion_tail: cq.tail as usize,
            completions: cq.completions as usize,
            mask: entries as u32 - 1,
            completion_mask: parameters.cq_entries - 1,
            rings,
            submissions,
        };
        for index in 0..entries as u32 {
            let at = sq.array as usize + index as usize * size_of::<u32>();
            ring.word(at).store(index, Relaxed);
        }
        Ok(ring)
    }

    /// Writes each message, gathered from its parts, and passes its result to `done`, by index. Handles the
    /// first [`RING`] messages.
    pub fn write_each<'a, 'b: 'a>(
        &mut self,
        fd: BorrowedFd<'_>,
        messages: impl Iterator<Item = &'a [IoSlice<'b>]>,
        done: impl FnMut(usize, io::Result<usize>),
    ) -> io::Result<()> {
        let operations = messages.map(|parts| Submission {
            opcode: OP_WRITEV,
            fd: fd.as_raw_fd(),
            offset: NO_OFFSET,
            address: parts.as_ptr() as u64,
            length: parts.len() as u32,
            operation_flags: NOWAIT,
            ..Submission::default()
        });
        // SAFETY: `IoSlice` has the layout of `iovec`; slices and what they refer to outlive this call,
        // and no operation does.
        unsafe { self.run(operations, done) }
    }

    /// Reads into each buffer once, and passes the result to `done`, by index. Handles the first [`RING`]
    /// buffers.
    pub fn read_each<'a>(
        &mut self,
        fd: BorrowedFd<'_>,
        buffers: impl Iterator<Item = &'a mut [u8]>,
        done: impl FnMut(usize, io::Result<usize>),
    ) -> io::Result<()> {
        let operations = buffers.map(|buffer| Submission {
            opcode: OP_READ,
            fd: fd.as_raw_fd(),
            offset: NO_OFFSET,
            address: buffer.as_mut_ptr() as u64,
            length: buffer.len() as u32,
            operation_flags: NOWAIT,
            ..Submission::default()
        });
        // SAFETY: the buffers are disjoint, as they are borrowed mutably, and outlive this call, and no
        // operation does.
        unsafe { self.run(operations, done) }
    }

    /// Submits operations and waits until all are complete.
    ///
    /// # Safety
    ///
    /// What the operations point at must be valid until this returns.
    unsafe fn run(
        &mut self,
        operations: impl Iterator<Item = Submission>,
        mut done: impl FnMut(usize, io::Result<usize>),
    ) -> io::Result<()> {
        let tail = self.word(self.tail).load(Relaxed);
        let mut count = 0u32;
        for operation in operations.take(self.mask as usize + 1) {
            let index = tail.wrapping_add(count) & self.mask;
            let entry = Submission { user_data: count.into(), ..operation };
            // SAFETY: the index is within the mapped entries, all of which are ours between two calls.
            unsafe { self.submissions.at::<Submission>(0).add(index as usize).write(entry) };
            count += 1;
        }
        self.word(self.tail).store(tail.wrapping_add(count), Release);
        let (mut unsubmitted, mut pending) = (count, count);
        while pending > 0 {
            match self.enter(unsubmitted, pending) {
                Ok(submitted) => unsubmitted -= submitted.min(unsubmitted),
                // Nothing was submitted: the kernel has closed the ring and refers to no memory of ours.
                Err(error) if unsubmitted == count && !is_passing(&error) => {
                    self.word(self.tail).store(tail, Release);
                    return Err(error);
                }
                Err(_) => std::thread::yield_now(),
            }
            pending -= self.reap(&mut done);
        }
        Ok(())
    }

    fn enter(&self, submit: u32, wait: u32) -> io::Result<u32> {
        // SAFETY: no signal mask is given; what the entries point at is the caller's promise.
        let answer = unsafe {
            let null = std::ptr::null::<libc::c_void>();
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.fd.as_raw_fd(),
                submit,
                wait,
                ENTER_GETEVENTS,
                null,
                0,
            )
        };
        check(answer as libc::c_int).map(|submitted| submitted as u32)
    }

    fn reap(&self, done: &mut impl FnMut(usize, io::Result<usize>)) -> u32 {
        let head = self.word(self.completion_head).load(Relaxed);
        let tail = self.word(self.completion_tail).load(Acquire);
        let ready = tail.wrapping_sub(head);
        for index in 0..ready {
            let place = head.wrapping_add(index) & self.completion_mask;
            // SAFETY: the place is within the mapped completions, and filled: it is before the tail.
            let completion =
                unsafe { self.rings.at::<Completion>(self.completions).add(place as usize).read() };
            let result = usize::try_from(completion.result)
                .map_err(|_| io::Error::from_raw_os_error(completion.result.saturating_neg()));
            done(completion.user_data as usize, result);
        }
        self.word(self.completion_head).store(tail, Release);
        ready
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the kernel gave the offset: an aligned word in the mapping, which lives as long as
        // `self`; both sides access it atomically.
        unsafe { &*self.rings.at::<AtomicU32>(at) }
    }
}

/// Whether a retry may succeed.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn writes_and_reads_are_batched_and_an_empty_queue_would_block() {
        let Ok(mut ring) = Ring::new() else { return crate::skipped::skipped("io_uring is not allowed") };
        let (left, right) = UnixDatagram::pair().unwrap();
        right.set_nonblocking(true).unwrap();
        for round in 0..100u8 {
            let own = [round];
            let messages =
                [[IoSlice::new(b"a"), IoSlice::new(b"bc")], [IoSlice::new(&own), IoSlice::new(b"")]];
            let mut written = Vec::new();
            let parts = messages.iter().map(|parts| &parts[..]);
            ring.write_each(left.as_fd(), parts, |at, result| written.push((at, result.unwrap()))).unwrap();
            assert_eq!(written, [(0, 3), (1, 1)]);
            let (mut buffers, mut read) = ([[0; 8]; 3], [0; 3]);
            let slices = buffers.iter_mut().map(|buffer| &mut buffer[..]);
            ring.read_each(right.as_fd(), slices, |at, result| match result {
                Ok(length) => read[at] = length,
                Err(error) => assert_eq!((at, error.kind()), (2, io::ErrorKind::WouldBlock)),
            })
            .unwrap();
            assert_eq!((read, &buffers[0][..3], buffers[1][0]), ([3, 1, 0], &b"abc"[..], round));
        }
    }
}
