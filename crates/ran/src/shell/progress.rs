//! The progress line.

use pith_ran::Ran;
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Interval of progress lines on a terminal, where they overwrite each other, and elsewhere.
const ON_TERMINAL: Duration = Duration::from_millis(100);
const ELSEWHERE: Duration = Duration::from_secs(1);

/// A line on standard error, overwritten on a terminal, repeated elsewhere.
pub struct Progress {
    is_quiet: bool,
    on_terminal: bool,
    began: Instant,
    next: Instant,
    shown: bool,
}

impl Progress {
    /// A progress line, or none if `is_quiet`.
    pub fn new(is_quiet: bool) -> Self {
        let (on_terminal, began) = (stderr().is_terminal(), Instant::now());
        let first = if on_terminal { ON_TERMINAL } else { ELSEWHERE };
        Self { is_quiet, on_terminal, began, next: began + first, shown: false }
    }

    /// The time of the next line; `None` if quiet.
    pub fn due(&self) -> Option<Instant> {
        (!self.is_quiet).then_some(self.next)
    }

    /// Prints a line if it is due.
    pub fn show(&mut self, ran: &Ran, gnbs: u32) {
        let now = Instant::now();
        if self.is_quiet || now < self.next {
            return;
        }
        self.next = now + if self.on_terminal { ON_TERMINAL } else { ELSEWHERE };
        let (tally, statistics) = (ran.tally(), ran.statistics());
        let line = format!(
            "{:6.1} s  gNBs {}/{gnbs}  UEs {}/{} done, {} in progress, {} failed  registered {}  sessions {}  \
             pings {}/{}  violations {}",
            self.began.elapsed().as_secs_f64(),
            ran.gnbs_up(),
            tally.done,
            tally.ues,
            tally.under_way,
            tally.failed,
            statistics.registration.len(),
            statistics.session.len(),
            statistics.ping.received,
            statistics.ping.sent,
            statistics.violations.count(),
        );
        self.print(&line);
    }

    fn print(&mut self, line: &str) {
        let mut err = stderr().lock();
        let _ = if self.on_terminal { write!(err, "\r\x1b[K{line}") } else { writeln!(err, "{line}") };
        let _ = err.flush();
        self.shown = true;
    }

    /// Prints no further line.
    pub fn end(&mut self) {
        self.is_quiet = true;
    }

    /// Removes the line from the terminal.
    pub fn clear(&mut self) {
        if self.on_terminal && self.shown {
            let _ = write!(stderr().lock(), "\r\x1b[K");
        }
    }
}
