//! Logs the events of NFs.

use pith_nf::kit::{Event, Level, Nf};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// Warnings about one procedure of an NF that a thread logs in each [`PERIOD`]. gNBs and UEs cause most warnings, so
/// they must not be able to fill the disk.
const WARNINGS: u32 = 100;
const PERIOD: Duration = Duration::from_secs(10);

thread_local! {
    static WARNED: RefCell<Warned> = const { RefCell::new(Warned(Vec::new())) };
}

macro_rules! log {
    ($level:ident, $nf:expr, $event:expr) => {
        tracing::event!(
            target: "pith::nf",
            tracing::Level::$level,
            nf = $nf.name(),
            ue = present(&$event.ue),
            procedure = present($event.procedure),
            outcome = present($event.outcome),
            "{}",
            $event.text
        )
    };
}

/// Logs an event with its procedure, outcome and UE as fields.
///
/// The NF has masked identities in the event; empty fields are left out.
pub fn log_event(nf: Nf, event: &Event) {
    match event.level {
        Level::Error => log!(ERROR, nf, event),
        Level::Warn => warn(nf, event),
        Level::Info => log!(INFO, nf, event),
        Level::Debug => log!(DEBUG, nf, event),
    }
}

/// `None` omits a field.
fn present(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn warn(nf: Nf, event: &Event) {
    let allowance = WARNED.with_borrow_mut(|warned| warned.count(nf, event.procedure, Instant::now()));
    match allowance {
        Allowance::Log => log!(WARN, nf, event),
        Allowance::LogLast => {
            log!(WARN, nf, event);
            let (procedure, seconds) = (event.procedure, PERIOD.as_secs());
            tracing::warn!(target: "pith::nf", nf = nf.name(), "more warnings about '{procedure}' are left out for {seconds} s");
        }
        Allowance::Omit => {}
    }
}

/// Whether a warning is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Allowance {
    Log,
    /// The last one of the period.
    LogLast,
    Omit,
}

/// Warnings of the current period by NF and procedure. Both are constants of the program, so there are few entries.
struct Warned(Vec<(Nf, &'static str, Instant, u32)>);

impl Warned {
    fn count(&mut self, nf: Nf, procedure: &'static str, now: Instant) -> Allowance {
        let same = |entry: &&mut (Nf, &'static str, Instant, u32)| entry.0 == nf && entry.1 == procedure;
        let Some((_, _, since, number)) = self.0.iter_mut().find(same) else {
            self.0.push((nf, procedure, now, 1));
            return Allowance::Log;
        };
        if now.duration_since(*since) >= PERIOD {
            (*since, *number) = (now, 0);
        }
        *number = number.saturating_add(1);
        match *number {
            ..WARNINGS => Allowance::Log,
            WARNINGS => Allowance::LogLast,
            _ => Allowance::Omit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_about_one_procedure_are_bounded_and_others_are_still_logged() {
        let (mut warned, now) = (Warned(Vec::new()), Instant::now());
        for _ in 1..WARNINGS {
            assert_eq!(warned.count(Nf::Amf, "NGAP", now), Allowance::Log);
        }
        assert_eq!(warned.count(Nf::Amf, "NGAP", now), Allowance::LogLast);
        assert_eq!(warned.count(Nf::Amf, "NGAP", now), Allowance::Omit);
        assert_eq!(warned.count(Nf::Amf, "Registration", now), Allowance::Log);
        assert_eq!(warned.count(Nf::Smf, "NGAP", now), Allowance::Log);
        assert_eq!(warned.count(Nf::Amf, "NGAP", now + PERIOD), Allowance::Log);
    }
}
