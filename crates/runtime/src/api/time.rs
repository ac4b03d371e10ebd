//! The current time.

use pith_sbi::common::DateTime;
use std::time::{SystemTime, UNIX_EPOCH};

/// The current time in RFC 3339 format.
pub(super) fn now() -> String {
    let ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    DateTime::from_unix_ms(i64::try_from(ms).unwrap_or(i64::MAX)).to_string()
}
