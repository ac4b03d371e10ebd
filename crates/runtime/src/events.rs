//! Logs the events of NFs.

use pith_nf::kit::{Event, Level, Nf};

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
pub fn tell(nf: Nf, event: &Event) {
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
