//! The workload: documents of 2 kB in eight sections; batches replace documents, or update a section of each.

use anyhow::{Context, Result, bail};
use pith_runtime::residency::{
    Batch, DocumentKey, DocumentKind, DocumentSecret, Engine, FileEngine, FileSettings, FileStore, FormerRun,
    Head, OwnerVersion, Revision, Sync,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Sections of a document, 250 octets each: 2 kB.
pub const SECTIONS: u8 = 8;
const WHOLE_SECTION: usize = 250;
const CHANGED_SECTION: usize = 200;

/// What is measured.
pub trait Candidate {
    /// Writes a batch: a number for each document; whole documents, or section 3 of each.
    fn write(&mut self, documents: &[u32], is_whole: bool, fill: u8) -> Result<()>;
    /// Octets of a document.
    fn read(&mut self, document: u32) -> Result<usize>;
    /// Octets of documents that compaction wrote.
    fn compacted(&self) -> u64 {
        0
    }
    /// Waits for work in the background.
    fn settle(&mut self) {}
}

/// Opens a candidate in a directory.
pub type Open = fn(&Path) -> Result<Box<dyn Candidate>>;

struct Options {
    documents: Vec<u32>,
    batches: Vec<usize>,
    time: Duration,
    rate: Option<u32>,
    names: Vec<String>,
}

impl Options {
    fn of_arguments() -> Result<Self> {
        let mut options = Self {
            documents: vec![1_000, 10_000, 100_000],
            batches: vec![1, 8, 64],
            time: Duration::from_secs(3),
            rate: None,
            names: Vec::new(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number = || -> Result<u32> {
                Ok(arguments.next().with_context(|| format!("{argument} needs a number"))?.parse()?)
            };
            match argument.as_str() {
                "--documents" => options.documents = vec![number()?],
                "--batch" => options.batches = vec![number()? as usize],
                "--seconds" => options.time = Duration::from_secs(number()?.into()),
                "--rate" => options.rate = Some(number()?),
                name if !name.starts_with('-') => options.names.push(argument),
                _ => bail!("unknown option {argument}"),
            }
        }
        Ok(options)
    }
}

/// Measures the candidates that the command line names, or all.
pub fn run(candidates: &[(&str, Open)]) -> Result<()> {
    let options = Options::of_arguments()?;
    println!(
        "{:8} {:>9} {:>5} {:>8} {:>9} {:>9} {:>8} {:>8} {:>8} {:>9} {:>6} {:>8} {:>8}",
        "engine",
        "documents",
        "batch",
        "write",
        "docs/s",
        "CPU us/d",
        "p50 us",
        "p99 us",
        "p99.9",
        "max us",
        "disk/l",
        "read us",
        "open ms"
    );
    for documents in &options.documents {
        for (name, open) in candidates {
            if options.names.is_empty() || options.names.iter().any(|wanted| wanted == name) {
                measure(name, *open, *documents, &options)?;
            }
        }
    }
    Ok(())
}

fn measure(name: &str, open: Open, documents: u32, options: &Options) -> Result<()> {
    let base = std::env::var_os("BENCH_DIRECTORY").map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = base.join(format!("documents-{name}-{}", std::process::id()));
    for batch in &options.batches {
        for is_whole in [true, false] {
            let _ = fs::remove_dir_all(&directory);
            fs::create_dir_all(&directory)?;
            let mut candidate = open(&directory)?;
            let all: Vec<u32> = (0..documents).collect();
            for some in all.chunks(64) {
                candidate.write(some, true, 1)?;
            }
            let run = load(&mut *candidate, documents, *batch, is_whole, options)?;
            candidate.settle();
            let disk = size(&directory)?;
            let start = Instant::now();
            for number in 0..1000 {
                candidate.read(number * 7 % documents)?;
            }
            let read = start.elapsed() / 1000;
            drop(candidate);
            let start = Instant::now();
            let mut candidate = open(&directory)?;
            candidate.read(0)?;
            let opened = start.elapsed();
            let live = f64::from(documents) * f64::from(SECTIONS) * WHOLE_SECTION as f64;
            run.print(name, documents, *batch, is_whole);
            println!(
                " {:>6.2} {:>8.1} {:>8.1}",
                disk as f64 / live,
                read.as_secs_f64() * 1e6,
                opened.as_secs_f64() * 1e3
            );
            run.print_compaction();
        }
    }
    fs::remove_dir_all(&directory)?;
    Ok(())
}

struct Run {
    batches: usize,
    time: Duration,
    cpu: Duration,
    /// Nanoseconds of each batch.
    all: Vec<u32>,
    /// Those of 100 ms in which compaction wrote, and the others.
    compacting: Vec<u32>,
    quiet: Vec<u32>,
}

fn load(
    candidate: &mut dyn Candidate,
    documents: u32,
    batch: usize,
    is_whole: bool,
    options: &Options,
) -> Result<Run> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut chosen = vec![0; batch];
    let (start, cpu) = (Instant::now(), cpu_time()?);
    let mut run = Run {
        batches: 0,
        time: Duration::ZERO,
        cpu: Duration::ZERO,
        all: Vec::new(),
        compacting: Vec::new(),
        quiet: Vec::new(),
    };
    let mut interval = (Instant::now(), Vec::new(), candidate.compacted());
    while start.elapsed() < options.time {
        for document in &mut chosen {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            *document = (random % u64::from(documents)) as u32;
        }
        if let Some(rate) = options.rate {
            let due = Duration::from_secs_f64(run.batches as f64 / f64::from(rate));
            std::thread::sleep(due.saturating_sub(start.elapsed()));
        }
        let begun = Instant::now();
        candidate.write(&chosen, is_whole, run.batches as u8)?;
        let took = begun.elapsed().as_nanos() as u32;
        run.batches += 1;
        interval.1.push(took);
        if interval.0.elapsed() > Duration::from_millis(100) {
            let compacted = candidate.compacted();
            let to = if compacted > interval.2 { &mut run.compacting } else { &mut run.quiet };
            to.append(&mut interval.1);
            interval = (Instant::now(), Vec::new(), compacted);
        }
    }
    run.time = start.elapsed();
    run.cpu = cpu_time()?.saturating_sub(cpu);
    run.all = [run.compacting.as_slice(), &run.quiet, &interval.1].concat();
    Ok(run)
}

impl Run {
    fn print(&self, name: &str, documents: u32, batch: usize, is_whole: bool) {
        let written = (self.batches * batch) as f64;
        let [p50, p99, p999, max] = percentiles(&self.all);
        print!(
            "{name:8} {documents:>9} {batch:>5} {:>8} {:>9.0} {:>9.2} {p50:>8.1} {p99:>8.1} {p999:>8.1} {max:>9.0}",
            if is_whole { "replace" } else { "update" },
            written / self.time.as_secs_f64(),
            self.cpu.as_secs_f64() * 1e6 / written,
        );
    }

    fn print_compaction(&self) {
        if self.compacting.is_empty() || self.quiet.is_empty() {
            return;
        }
        for (what, times) in [("compaction runs", &self.compacting), ("no compaction", &self.quiet)] {
            let [p50, p99, p999, max] = percentiles(times);
            println!(
                "    {what:16} {:>8} batches: p50 {p50:.1} us, p99 {p99:.1}, p99.9 {p999:.1}, max {max:.0}",
                times.len()
            );
        }
    }
}

/// 50th, 99th and 99.9th percentile and maximum, in microseconds.
fn percentiles(times: &[u32]) -> [f64; 4] {
    let mut times = times.to_vec();
    times.sort_unstable();
    [0.5, 0.99, 0.999, 1.0].map(|part| {
        let at = ((times.len() as f64 * part) as usize).min(times.len().saturating_sub(1));
        times.get(at).map_or(0.0, |time| f64::from(*time) / 1000.0)
    })
}

/// CPU time of all threads of this process.
fn cpu_time() -> Result<Duration> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let after_name = text.rsplit(')').next().context("no name")?;
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    // Linux has 100 ticks a second for user space.
    Ok(Duration::from_millis(ticks * 10))
}

fn size(directory: &Path) -> Result<u64> {
    let mut octets = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        octets += if entry.file_type()?.is_dir() { size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(octets)
}

struct Log {
    batch: Batch,
    revision: u64,
    // Before the store: engines end first.
    engine: FileEngine,
    store: FileStore,
}

/// The engine `file`, which also encrypts.
pub fn log(directory: &Path) -> Result<Box<dyn Candidate>> {
    let secret = DocumentSecret::of_file(&directory.join("key"), true)?;
    let settings = FileSettings {
        directory: directory.join("log"),
        secret,
        sync: Sync::None,
        on_durable: None,
        former: FormerRun::Unknown,
    };
    let store = FileStore::open(settings)?;
    Ok(Box::new(Log { batch: Batch::new(OwnerVersion(1)), revision: 1, engine: store.engine(0)?, store }))
}

fn key(document: u32) -> Result<DocumentKey> {
    DocumentKey::new(DocumentKind::Amf, (document % 64) as u16, document / 64).context("a block")
}

impl Candidate for Log {
    fn write(&mut self, documents: &[u32], is_whole: bool, fill: u8) -> Result<()> {
        self.batch.reset(OwnerVersion(1));
        self.revision += 1;
        for document in documents {
            let revision = Revision(self.revision);
            let head = Head { key: key(*document)?, revision, layout: 1, deadline: None };
            if is_whole {
                let mut writer = self.batch.replace(head);
                for section in 0..SECTIONS {
                    writer.section(section.into(), &[fill; WHOLE_SECTION]);
                }
            } else {
                self.batch.update(head).section(3, &[fill; CHANGED_SECTION]);
            }
        }
        anyhow::ensure!(self.engine.append(&self.batch)?.conflicts.is_empty(), "a conflict");
        Ok(())
    }

    fn read(&mut self, document: u32) -> Result<usize> {
        Ok(self.engine.read(key(document)?)?.context("no document")?.octets())
    }

    fn compacted(&self) -> u64 {
        self.store.compacted().1
    }

    fn settle(&mut self) {
        let mut last = u64::MAX;
        while last != self.compacted() {
            last = self.compacted();
            // Longer than a flush of what was written.
            std::thread::sleep(Duration::from_secs(2));
        }
    }
}

/// SQLite in WAL mode without fsync at commit, as the subscriber database; a row for each section, without encryption.
pub fn sqlite(directory: &Path) -> Result<Box<dyn Candidate>> {
    let connection = rusqlite::Connection::open(directory.join("documents.db"))?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS section (document INTEGER, id INTEGER, octets BLOB, PRIMARY KEY (document, id)) WITHOUT ROWID",
    )?;
    Ok(Box::new(Sqlite(connection)))
}

struct Sqlite(rusqlite::Connection);

impl Candidate for Sqlite {
    fn write(&mut self, documents: &[u32], is_whole: bool, fill: u8) -> Result<()> {
        let transaction = self.0.transaction()?;
        {
            let mut statement = transaction.prepare_cached("REPLACE INTO section VALUES (?, ?, ?)")?;
            for document in documents {
                if is_whole {
                    for section in 0..SECTIONS {
                        statement.execute((document, section, [fill; WHOLE_SECTION]))?;
                    }
                } else {
                    statement.execute((document, 3, [fill; CHANGED_SECTION]))?;
                }
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&mut self, document: u32) -> Result<usize> {
        let mut statement = self.0.prepare_cached("SELECT octets FROM section WHERE document = ?")?;
        let sections = statement.query_map([document], |row| row.get::<_, Vec<u8>>(0))?;
        let mut octets = 0;
        for section in sections {
            octets += section?.len();
        }
        Ok(octets)
    }
}
