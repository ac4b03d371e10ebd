//! The runs of the processes that use a log, to detect a log that was copied back while the database of subscribers went on, or the
//! reverse: NAS COUNTs that its contexts reserve may have been used since.
//!
//! ```text
//!  run       stale below, the last run's id [, the id of a run that begins]   in the directory of the log
//!  pith.db   the last run's id
//! ```
//!
//! A start writes its id beside the log, then into the database, then alone beside the log. If it is killed in between, the database has
//! one of the two.

use crate::private_file::{self, PRIVATE, Readers};
use std::path::{Path, PathBuf};

/// The file beside the log.
const FILE: &str = "run";

/// The id of a process's run: random, so that no two runs have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunId([u8; 16]);

/// What the database knows of the last run that used the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormerRun {
    /// This process has no database.
    Unknown,
    /// The database knows no run. A log that knows one is of another database, or of an earlier state of this one.
    None,
    /// The last run.
    Known(RunId),
}

impl RunId {
    fn random() -> Option<Self> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).ok()?;
        Some(Self(id))
    }

    /// The id of a text; `None` if it is not 32 hexadecimal digits.
    pub fn of_text(text: &str) -> Option<Self> {
        let mut id = [0; 16];
        hex::decode_to_slice(text, &mut id).ok()?;
        Some(Self(id))
    }

    /// The id as 32 hexadecimal digits.
    pub fn to_text(self) -> String {
        hex::encode(self.0)
    }
}

/// What is known beside the log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Runs {
    /// The last run, and one that began after it. None: the log is new, or of an earlier version of Pith.
    ids: Vec<RunId>,
    /// A start found another log than the one that the database knew: documents whose last write has a lower number are stale.
    pub stale_below: u64,
    /// The file is damaged or can't be read.
    is_unreadable: bool,
}

impl Runs {
    pub fn read(directory: &Path) -> Self {
        let unreadable = Self { is_unreadable: true, ..Self::default() };
        match private_file::read(&path(directory), Readers::Owner) {
            Ok(text) => Self::of_text(&text).unwrap_or(unreadable),
            Err(error) if error.is_not_found() => Self::default(),
            Err(_) => unreadable,
        }
    }

    fn of_text(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let stale_below = words.next()?.parse().ok()?;
        let ids: Vec<_> = words.map(RunId::of_text).collect::<Option<_>>()?;
        (1..=2).contains(&ids.len()).then_some(Self { ids, stale_below, is_unreadable: false })
    }

    /// Whether the log is the one that the database knows.
    pub fn is_known(&self, former: FormerRun) -> bool {
        match former {
            FormerRun::Unknown => true,
            FormerRun::None => self.ids.is_empty() && !self.is_unreadable,
            FormerRun::Known(run) => self.ids.contains(&run),
        }
    }

    /// Writes the id of a run that begins. On a full disk all stays as it is, in the database, too.
    pub fn begin(self, former: FormerRun, stale_below: u64, directory: &Path) -> Option<RunId> {
        let run = RunId::random()?;
        let last = match former {
            FormerRun::Known(run) => Some(run),
            FormerRun::None | FormerRun::Unknown => None,
        };
        let last = last.filter(|last| self.ids.contains(last)).or(self.ids.first().copied());
        let ids = last.into_iter().chain([run]).collect();
        Self { ids, stale_below, is_unreadable: false }.write(directory).then_some(run)
    }

    /// The database has the id.
    pub fn confirm(run: RunId, stale_below: u64, directory: &Path) {
        Self { ids: vec![run], stale_below, is_unreadable: false }.write(directory);
    }

    fn write(&self, directory: &Path) -> bool {
        let path = path(directory);
        let ids = self.ids.iter().map(|id| format!(" {}", id.to_text()));
        let text = format!("{}{}\n", self.stale_below, ids.collect::<String>());
        let written = private_file::replace(&path, PRIVATE, &text);
        if let Err(error) = &written {
            tracing::warn!(path = %path.display(), %error, "the next start can't detect a copy of the log");
        }
        written.is_ok()
    }
}

fn path(directory: &Path) -> PathBuf {
    directory.join(FILE)
}
