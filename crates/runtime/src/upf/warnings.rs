//! Limits the log lines that misbehaving peers can cause.

use std::time::Duration;

/// Maximum number of messages of one severity in [`SPAN`]: enough to show the problem, too few to fill a disk.
const MAX_WARNINGS: u32 = 20;
/// Interval over which messages are counted.
const SPAN: Duration = Duration::from_secs(1);

/// Messages of the current interval.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    begun: Duration,
    count: u32,
}

impl Warnings {
    /// Whether to log another message. The first call of an interval logs how many were suppressed before.
    pub fn may_log(&mut self, now: Duration) -> bool {
        if now >= self.begun + SPAN {
            let left_out = self.count.saturating_sub(MAX_WARNINGS);
            if left_out > 0 {
                tracing::warn!("{left_out} further messages about N4 and N3 were suppressed");
            }
            (self.begun, self.count) = (now, 0);
        }
        self.count = self.count.saturating_add(1);
        self.count <= MAX_WARNINGS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_limited_per_second() {
        let mut warnings = Warnings::default();
        let allowed = |warnings: &mut Warnings, at| (0..100).filter(|_| warnings.may_log(at)).count();
        assert_eq!(allowed(&mut warnings, Duration::from_millis(10)), 20);
        assert_eq!(allowed(&mut warnings, Duration::from_millis(900)), 0);
        assert_eq!(allowed(&mut warnings, Duration::from_millis(1010)), 20);
    }
}
