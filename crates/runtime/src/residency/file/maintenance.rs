//! The threads of a log: they make the system calls that may block, so that the threads of shards do not.

use super::super::{DocumentKey, DocumentKind, EngineError, OwnerVersion, Revision, Sequence};
use super::compaction;
use super::engine::Output;
use super::record::{Header, RecordKind, SEGMENT_HEADER};
use super::segment::{Segment, failed};
use super::shared::{Shared, locked};
use super::{OpenError, Sync};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Time after which a failed operation (no room) is attempted again.
const RETRY: Duration = Duration::from_millis(500);

/// Longest time until removed files are noticed.
const LOOK: Duration = Duration::from_secs(2);

/// Wakes a thread. Several rings before the thread runs wake it once.
#[derive(Default)]
pub(super) struct Bell {
    is_rung: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Bell {
    pub fn ring(&self) {
        if !self.is_rung.swap(true, AcqRel) {
            let _guard = locked(&self.lock);
            self.wake.notify_one();
        }
    }

    /// Waits for a ring, and no longer than `most`, if there is such a limit.
    pub fn wait(&self, most: Option<Duration>) {
        let mut guard = locked(&self.lock);
        while !self.is_rung.swap(false, AcqRel) {
            let Some(most) = most else {
                guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(self.wake.wait_timeout(guard, most));
            self.is_rung.store(false, Release);
            return;
        }
    }
}

/// An engine, as the threads see it.
pub(super) struct Writer {
    number: u16,
    /// Number of its last write.
    pub appended: AtomicU64,
    /// Number of its last write that is on the disk.
    pub flushed: AtomicU64,
    /// The segment to which it appends.
    pub active: Mutex<Arc<Segment>>,
    /// The next one.
    pub spare: Mutex<Option<Arc<Segment>>>,
    /// A flush failed: it is not known whether writes after the last successful flush are on the disk.
    pub is_broken: AtomicBool,
}

impl Writer {
    pub fn new(number: u16, active: Arc<Segment>) -> Self {
        Self {
            number,
            appended: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            active: Mutex::new(active),
            spare: Mutex::default(),
            is_broken: AtomicBool::new(false),
        }
    }
}

/// The running threads.
pub(super) struct Threads {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    pub fn start(shared: &Arc<Shared>) -> Result<Self, OpenError> {
        let mut threads = Self { shared: Arc::clone(shared), threads: Vec::new() };
        threads.spawn("pith-log-sync", |shared| Maintenance { shared }.run())?;
        threads.spawn("pith-log-compact", |shared| compaction::run(&shared))?;
        shared.sync_bell.ring();
        shared.compaction_bell.ring();
        Ok(threads)
    }

    fn spawn(&mut self, name: &str, run: fn(Arc<Shared>)) -> Result<(), OpenError> {
        let shared = Arc::clone(&self.shared);
        let spawned = Builder::new().name(name.into()).spawn(move || run(shared));
        let path = self.shared.directory.clone();
        self.threads.push(spawned.map_err(|source| OpenError::Io { path, source })?);
        Ok(())
    }

    /// Ends the threads, and flushes.
    pub fn stop(&mut self) {
        self.shared.is_stopping.store(true, Release);
        self.shared.sync_bell.ring();
        self.shared.compaction_bell.ring();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        Maintenance { shared: Arc::clone(&self.shared) }.close_all();
    }
}

/// Flushes and makes segments.
struct Maintenance {
    shared: Arc<Shared>,
}

impl Maintenance {
    fn run(self) {
        let mut retry = LOOK;
        let mut looked = Instant::now();
        loop {
            self.shared.sync_bell.wait(Some(retry));
            if self.shared.is_stopping.load(Acquire) {
                return;
            }
            // Not at each write.
            if looked.elapsed() >= LOOK {
                self.look_for_removed();
                looked = Instant::now();
            }
            retry = if self.turn() { LOOK } else { RETRY };
        }
    }

    /// Others have removed or moved the files to which the process writes.
    fn look_for_removed(&self) {
        let writers = locked(&self.shared.writers).clone();
        let is_removed = |writer: &Arc<Writer>| {
            let active = locked(&writer.active).clone();
            if active.is_absent() {
                return false;
            }
            match (active.file.metadata(), std::fs::metadata(&active.path)) {
                (Ok(file), Ok(at_path)) => (file.dev(), file.ino()) != (at_path.dev(), at_path.ino()),
                (Ok(_), Err(error)) => error.kind() == ErrorKind::NotFound,
                (Err(_), _) => false,
            }
        };
        let is_removed = writers.iter().any(is_removed);
        let was_removed = self.shared.is_removed.swap(is_removed, Relaxed);
        if is_removed && !was_removed {
            tracing::error!("{}", EngineError::Removed(self.shared.directory.clone()));
        }
    }

    /// Whether everything succeeded.
    fn turn(&self) -> bool {
        let writers = locked(&self.shared.writers).clone();
        for writer in &writers {
            match self.shared.sync {
                Sync::Batch => self.flush(writer),
                Sync::None => start_writeback(&locked(&writer.active).clone()),
            }
        }
        self.finish_rolled();
        let mut is_done = true;
        for writer in &writers {
            is_done &= self.make_spare(writer);
        }
        is_done
    }

    /// Flushes what a writer appended, and notifies it.
    fn flush(&self, writer: &Writer) {
        let appended = writer.appended.load(Acquire);
        if appended <= writer.flushed.load(Relaxed) || writer.is_broken.load(Relaxed) {
            return;
        }
        // In this order: a writer adds a full segment to `rolled` before its successor becomes `active`.
        let active = locked(&writer.active).clone();
        let rolled = locked(&self.shared.rolled).clone();
        let result = rolled.iter().chain([&active]).try_for_each(|segment| segment.flush());
        if let Err(error) = result {
            // The kernel reports a failed write-back once, and then drops the pages.
            tracing::error!(directory = %self.shared.directory.display(), %error, "cannot flush documents to the disk: check it (dmesg), then restart");
            writer.is_broken.store(true, Relaxed);
            return;
        }
        writer.flushed.store(appended, Release);
        if let Some(on_durable) = &self.shared.on_durable {
            on_durable(writer.number, Sequence(appended));
        }
    }

    /// Flushes full segments, or asks the kernel to start writing them to the disk.
    fn finish_rolled(&self) {
        let rolled = locked(&self.shared.rolled).clone();
        for segment in &rolled {
            match self.shared.sync {
                Sync::None => start_writeback(segment),
                // For segments of compaction: those of writers were flushed by `flush`, which reports errors.
                Sync::Batch => segment.is_flushed.store(segment.flush().is_ok(), Release),
            }
        }
        locked(&self.shared.rolled).retain(|segment| !rolled.iter().any(|done| done.id == segment.id));
        if !rolled.is_empty() {
            self.shared.compaction_bell.ring();
        }
    }

    fn make_spare(&self, writer: &Writer) -> bool {
        if locked(&writer.spare).is_some() {
            return true;
        }
        let made = self.shared.make_segment().and_then(|segment| {
            if self.shared.sync == Sync::None {
                return Ok(segment);
            }
            // The directory entry must survive a power failure, too.
            let flushed = segment.flush().map_err(|error| failed("flush", &segment.path, error));
            match flushed.and_then(|()| self.shared.flush_directory()) {
                Ok(()) => Ok(segment),
                Err(error) => {
                    self.shared.delete_segment(&segment);
                    Err(error)
                }
            }
        });
        match made {
            Ok(segment) => {
                *locked(&writer.spare) = Some(segment);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "cannot make the next part of the document log");
                false
            }
        }
    }

    /// Flushes all segments and writes the record of the stop, so that the next start does not suspect a power failure.
    /// Deletes the empty segments of this process.
    fn close_all(&self) {
        let shared = &self.shared;
        let all: Vec<Arc<Segment>> = shared.segments().values().cloned().collect();
        let mut unflushed = all.iter().filter(|segment| !segment.is_flushed.load(Acquire));
        let flushed = unflushed.try_for_each(|segment| segment.flush());
        // Not those in `rolled`: the flushing thread removes segments from that list.
        let mut own: Vec<_> = all.iter().filter(|segment| segment.id >= shared.first_segment).collect();
        own.sort_by_key(|segment| (is_empty(segment), segment.id));
        let mut own = own.into_iter();
        let result = match (flushed, own.next()) {
            (Ok(()), Some(first)) => write_stop(shared, first),
            (Ok(()), None) if all.is_empty() => Ok(()),
            // No engine was made: the flushed writes are those of former processes.
            (Ok(()), None) => shared.make_segment().and_then(|segment| write_stop(shared, &segment)),
            (Err(error), _) => Err(failed("flush", &shared.directory, error)),
        };
        if let Err(error) = result {
            tracing::warn!(%error, "cannot flush the document log");
        }
        if let Err(error) = shared.delete_unusable_lists() {
            tracing::warn!(%error, "cannot delete a damaged key list: the next start reports it again");
        }
        own.filter(|segment| is_empty(segment)).for_each(|segment| shared.delete_segment(segment));
        let all: Vec<Arc<Segment>> = shared.segments().values().cloned().collect();
        let mut unlisted = all.iter().filter(|segment| !segment.is_listed.load(Relaxed));
        if let Err(error) = unlisted.try_for_each(|segment| segment.write_key_list()) {
            tracing::warn!(%error, "cannot list the documents of a part of the log; the next start does so");
        }
    }
}

fn is_empty(segment: &Segment) -> bool {
    segment.length.load(Relaxed) == SEGMENT_HEADER as u64
}

/// Appends the record of a stop. All segments are flushed, and no writer uses this one.
fn write_stop(shared: &Shared, segment: &Arc<Segment>) -> Result<(), EngineError> {
    let mut output = Output::last(Arc::clone(segment));
    let stop = Header {
        kind: RecordKind::Stop,
        key: DocumentKey { kind: DocumentKind::Ue, block: 0, number: 0 },
        length: 0,
        sequence: shared.sequence.load(Relaxed),
        owner: OwnerVersion(0),
        revision: Revision(0),
        deadline: None,
        layout: 0,
        remaining: 0,
        number: 0,
        body_crc: 0,
    };
    output.push(stop, &[])?;
    segment.is_listed.store(false, Relaxed);
    output.write()?;
    segment.flush().map_err(|error| failed("flush", &segment.path, error))
}

/// Asks the kernel to begin writing a file's pages to the disk.
fn start_writeback(segment: &Segment) {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open; the call takes no pointers. Its result is advice: a failure changes nothing.
    #[allow(unsafe_code)]
    unsafe {
        libc::sync_file_range(segment.file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE);
    }
}
