//! The line that says how far the run is.

use pith_ran::Ran;
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Times between lines: on a terminal, where one replaces the other, and elsewhere.
const ON_TERMINAL: Duration = Duration::from_millis(100);
const ELSEWHERE: Duration = Duration::from_secs(1);

/// A line on standard error, rewritten on a terminal, repeated elsewhere.
pub struct Progress {
    is_quiet: bool,
    on_terminal: bool,
    began: Instant,
    next: Instant,
    shown: bool,
}

impl Progress {
    /// A progress line, or none if it is to be quiet.
    pub fn new(is_quiet: bool) -> Self {
        let (on_terminal, began) = (stderr().is_terminal(), Instant::now());
        let first = if on_terminal { ON_TERMINAL } else { ELSEWHERE };
        Self { is_quiet, on_terminal, began, next: began + first, shown: false }
    }

    /// When the next line is due; `None` for a quiet one.
    pub fn due(&self) -> Option<Instant> {
        (!self.is_quiet).then_some(self.next)
    }

    /// Shows a line, if it is time for one.
    pub fn show(&mut self, ran: &Ran, gnbs: u32) {
        let now = Instant::now();
        if self.is_quiet || now < self.next {
            return;
        }
        self.next = now + if self.on_terminal { ON_TERMINAL } else { ELSEWHERE };
        let (tally, statistics) = (ran.tally(), ran.statistics());
        let line = format!(
            "{:6.1} s  gNBs {}/{gnbs}  UEs {}/{} done, {} under way, {} failed  registered {}  sessions {}  \
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

    /// Shows no line any more.
    pub fn end(&mut self) {
        self.is_quiet = true;
    }

    /// Takes the line off the terminal again.
    pub fn clear(&mut self) {
        if self.on_terminal && self.shown {
            let _ = write!(stderr().lock(), "\r\x1b[K");
        }
    }
}
