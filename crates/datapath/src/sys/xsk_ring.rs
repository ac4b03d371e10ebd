//! A ring of an AF_XDP socket: one side writes entries and advances `producer`, the other reads them and
//! advances `consumer`.

use super::mapping::Mapping;
use std::io;
use std::marker::PhantomData;
use std::mem::size_of;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

/// A ring that the kernel reads.
#[derive(Debug)]
pub(super) struct Producer<T>(Ring<T>);

/// A ring that the kernel writes.
#[derive(Debug)]
pub(super) struct Consumer<T>(Ring<T>);

#[derive(Debug)]
struct Ring<T> {
    memory: Mapping,
    producer: usize,
    consumer: usize,
    first: usize,
    mask: u32,
    /// This side's index; the kernel sees it after the next `publish`.
    own: u32,
    /// The kernel's index, as last read.
    seen: u32,
    of: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    /// `entries` is a power of two; `page` selects the ring.
    fn map(
        fd: BorrowedFd<'_>,
        page: libc::off_t,
        at: libc::xdp_ring_offset,
        entries: u32,
    ) -> io::Result<Self> {
        let [producer, consumer, first] = [at.producer, at.consumer, at.desc].map(|offset| offset as usize);
        let memory = Mapping::of(fd, first + entries as usize * size_of::<T>(), page)?;
        Ok(Self { memory, producer, consumer, first, mask: entries - 1, own: 0, seen: 0, of: PhantomData })
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the kernel gave the offset: an aligned word in the mapping, which lives as long as `self`;
        // both sides access it atomically.
        unsafe { &*self.memory.at::<AtomicU32>(at) }
    }

    fn entry(&self, index: u32) -> *mut T {
        self.memory.at(self.first + (index & self.mask) as usize * size_of::<T>())
    }
}

impl<T: Copy> Producer<T> {
    pub fn map(
        fd: BorrowedFd<'_>,
        page: libc::off_t,
        at: libc::xdp_ring_offset,
        entries: u32,
    ) -> io::Result<Self> {
        Ring::map(fd, page, at, entries).map(Self)
    }

    /// Adds an entry; `false` if the ring is full.
    pub fn push(&mut self, entry: T) -> bool {
        let ring = &mut self.0;
        if ring.own.wrapping_sub(ring.seen) > ring.mask {
            ring.seen = ring.word(ring.consumer).load(Acquire);
            if ring.own.wrapping_sub(ring.seen) > ring.mask {
                return false;
            }
        }
        // SAFETY: within the mapped entries; the kernel does not read this one before `publish`.
        unsafe { ring.entry(ring.own).write(entry) };
        ring.own = ring.own.wrapping_add(1);
        true
    }

    /// Makes added entries visible to the kernel.
    pub fn publish(&self) {
        self.0.word(self.0.producer).store(self.0.own, Release);
    }

    /// Entries that the kernel has not consumed yet.
    pub fn pending(&self) -> u32 {
        self.0.own.wrapping_sub(self.0.word(self.0.consumer).load(Acquire))
    }
}

impl<T: Copy> Consumer<T> {
    pub fn map(
        fd: BorrowedFd<'_>,
        page: libc::off_t,
        at: libc::xdp_ring_offset,
        entries: u32,
    ) -> io::Result<Self> {
        Ring::map(fd, page, at, entries).map(Self)
    }

    /// Removes an entry, if there is one.
    pub fn pop(&mut self) -> Option<T> {
        let ring = &mut self.0;
        if ring.own == ring.seen {
            ring.seen = ring.word(ring.producer).load(Acquire);
            if ring.own == ring.seen {
                return None;
            }
        }
        // SAFETY: within the mapped entries, and filled: it is before the producer's index. Any bytes are a
        // `T`: a number or a descriptor of numbers.
        let entry = unsafe { ring.entry(ring.own).read() };
        ring.own = ring.own.wrapping_add(1);
        Some(entry)
    }

    /// Returns consumed entries to the kernel.
    pub fn publish(&self) {
        self.0.word(self.0.consumer).store(self.0.own, Release);
    }
}
