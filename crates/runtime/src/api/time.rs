//! The time, as the API writes it.

use pith_sbi::common::DateTime;
use std::time::{SystemTime, UNIX_EPOCH};

/// The time as RFC 3339 writes it.
pub(super) fn now() -> String {
    let ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    DateTime::from_unix_ms(i64::try_from(ms).unwrap_or(i64::MAX)).to_string()
}
