//! The memory of a BPF array, mapped into this process, which reads and writes it without copies.

use super::layout::Shared;
use super::mapping::Mapping;
use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Values shared with a BPF program: some of one type at the same offset of every array entry.
#[derive(Debug)]
pub struct MapMemory<T> {
    mapping: Arc<Mapping>,
    entries: usize,
    /// Bytes from one entry to the next.
    stride: usize,
    /// Bytes before the first value of an entry.
    offset: usize,
    /// Values of an entry.
    width: usize,
    values: PhantomData<T>,
}

// SAFETY: `T: Shared` in every constructor: fields that another thread or the program writes are atomic.
unsafe impl<T: Shared> Send for MapMemory<T> {}
// SAFETY: as above.
unsafe impl<T: Shared> Sync for MapMemory<T> {}

impl<T: Shared> MapMemory<T> {
    /// Maps a BPF array that was made with `BPF_F_MMAPABLE`: entries of `stride` bytes, which begin with `width`
    /// values each.
    pub fn map(array: BorrowedFd<'_>, entries: usize, stride: usize, width: usize) -> io::Result<Self> {
        let mapping = Arc::new(Mapping::of(array, entries * stride, 0)?);
        let whole = MapMemory::<u8> { mapping, entries, stride, offset: 0, width: 0, values: PhantomData };
        Ok(whole.part(0, width))
    }

    pub fn len(&self) -> usize {
        self.entries
    }

    /// The values of an entry; empty beyond the last.
    pub fn at(&self, entry: usize) -> &[T] {
        if entry >= self.entries {
            return &[];
        }
        // SAFETY: within the mapping, which lives as long as `self`, and aligned (`part`); any bytes are a
        // `T`, and fields written concurrently are atomic (`Shared`).
        unsafe { std::slice::from_raw_parts(self.place(entry), self.width) }
    }

    /// The first value of each entry.
    pub fn firsts(&self) -> impl Iterator<Item = &T> {
        (0..self.entries).filter_map(|entry| self.at(entry).first())
    }

    /// Overwrites the first value of an entry that no program can find.
    pub fn put(&mut self, entry: u32, value: T) {
        let entry = entry as usize;
        assert!(entry < self.entries, "entries are given out below the count");
        // SAFETY: within the mapping and aligned; `&mut self` means that no other reference to it exists here.
        unsafe { self.place(entry).cast_mut().write(value) };
    }

    fn place(&self, entry: usize) -> *const T {
        // SAFETY: below `entries`, so within the mapping.
        unsafe { self.mapping.bounds().0.add(entry * self.stride + self.offset).cast() }
    }
}

impl<T> MapMemory<T> {
    /// `width` other values at `offset` bytes in each entry.
    pub fn part<U: Shared>(&self, offset: usize, width: usize) -> MapMemory<U> {
        assert!(offset + width * size_of::<U>() <= self.stride, "parts lie within an entry");
        assert!(
            offset.is_multiple_of(align_of::<U>()) && self.stride.is_multiple_of(align_of::<U>()),
            "aligned, as the mapping is to pages"
        );
        let (mapping, entries) = (Arc::clone(&self.mapping), self.entries);
        MapMemory { mapping, entries, stride: self.stride, offset, width, values: PhantomData }
    }
}
