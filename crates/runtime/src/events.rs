//! Logs the events of NFs.

use crate::log_allowance::LogAllowances;
use pith_nf::kit::{Event, Level, Nf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Lines of one kind that are logged in each period. gNBs, UEs and foreign NFs cause most of them, so they must not be
/// able to fill the disk: 100 lines of 150 octets in 10 s are 130 MB a day.
const LINES: u32 = 100;
/// The same for the result of a procedure, which a UE obtains only after its authentication. It is a line for each
/// registration at 500 registrations a second.
const RESULTS: u32 = 5_000;

/// Lines about the same procedure of the same NF with the same level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    nf: Nf,
    level: Level,
    procedure: &'static str,
}

static ALLOWANCES: Mutex<LogAllowances<Kind>> = Mutex::new(LogAllowances::new());

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

/// Logs an event with its procedure, outcome and UE as fields, if the lines of its kind are within their limit.
///
/// The NF has masked identities in the event; empty fields are left out.
pub fn log_event(nf: Nf, event: &Event) {
    if event.level != Level::Debug && !is_allowed(nf, event) {
        return;
    }
    match event.level {
        Level::Error => log!(ERROR, nf, event),
        Level::Warn => log!(WARN, nf, event),
        Level::Info => log!(INFO, nf, event),
        Level::Debug => log!(DEBUG, nf, event),
    }
}

/// `None` omits a field.
fn present(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// Logs how many lines were omitted in periods that have ended.
pub(crate) fn report_omitted() {
    report_omitted_of(&mut allowances(), Instant::now());
}

fn allowances() -> MutexGuard<'static, LogAllowances<Kind>> {
    ALLOWANCES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_allowed(nf: Nf, event: &Event) -> bool {
    let (mut allowances, now) = (allowances(), Instant::now());
    report_omitted_of(&mut allowances, now);
    allowances.take(Kind { nf, level: event.level, procedure: event.procedure }, limit(event), now)
}

/// `ok` is the outcome of a procedure of an authenticated UE.
fn limit(event: &Event) -> u32 {
    if event.level == Level::Info && event.outcome == "ok" { RESULTS } else { LINES }
}

fn report_omitted_of(allowances: &mut LogAllowances<Kind>, now: Instant) {
    for (kind, count) in allowances.end_periods(now) {
        let (nf, about) = (kind.nf.name(), about(kind));
        match kind.level {
            Level::Info => {
                tracing::info!(target: "pith::nf", nf, "{count} more lines about {about} were omitted")
            }
            _ => {
                tracing::warn!(target: "pith::nf", nf, "{count} more warnings or errors about {about} were omitted")
            }
        }
    }
}

fn about(kind: Kind) -> String {
    if kind.procedure.is_empty() { "UEs and peers".into() } else { format!("'{}'", kind.procedure) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(level: Level, procedure: &'static str, outcome: &'static str) -> Event {
        Event { level, procedure, outcome, ue: String::new(), text: String::new() }
    }

    #[test]
    fn lines_that_a_flood_causes_are_bounded_at_each_level() {
        let logged = |event: Event| (0..20_000).filter(|_| is_allowed(Nf::Nssf, &event)).count();
        assert_eq!(logged(event(Level::Warn, "NGAP", "")), LINES as usize);
        assert_eq!(logged(event(Level::Error, "NGAP", "")), LINES as usize);
        assert_eq!(logged(event(Level::Info, "AwaitingAuthenticationResponse", "aborted")), LINES as usize);
        assert_eq!(logged(event(Level::Info, "Registration", "ok")), RESULTS as usize);
        assert_eq!(logged(event(Level::Info, "", "")), LINES as usize);
    }
}
