//! What NFs tell the operator, as log lines.

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
/// Identities in it are masked by whoever made it; fields that it does not have are left out.
pub fn tell(nf: Nf, event: &Event) {
    match event.level {
        Level::Error => log!(ERROR, nf, event),
        Level::Warn => log!(WARN, nf, event),
        Level::Info => log!(INFO, nf, event),
        Level::Debug => log!(DEBUG, nf, event),
    }
}

/// `None` leaves a field out.
fn present(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}
