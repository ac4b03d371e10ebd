//! A bound on what peers that misbehave make UPF-C write to the log.

use std::time::Duration;

/// Most warnings in [`SPAN`]: enough to see what is wrong, too few to fill a disk.
const MAX_WARNINGS: u32 = 20;
/// Over which warnings are counted.
const SPAN: Duration = Duration::from_secs(1);

/// Warnings of the present span.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    begun: Duration,
    count: u32,
}

impl Warnings {
    /// Whether another warning is logged; the first of a span says how many were left out before.
    pub fn may_tell(&mut self, now: Duration) -> bool {
        if now >= self.begun + SPAN {
            let left_out = self.count.saturating_sub(MAX_WARNINGS);
            if left_out > 0 {
                tracing::warn!("{left_out} more warnings about N4 were left out");
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
    fn so_many_warnings_a_second() {
        let mut warnings = Warnings::default();
        let told = |warnings: &mut Warnings, at| (0..100).filter(|_| warnings.may_tell(at)).count();
        assert_eq!(told(&mut warnings, Duration::from_millis(10)), 20);
        assert_eq!(told(&mut warnings, Duration::from_millis(900)), 0);
        assert_eq!(told(&mut warnings, Duration::from_millis(1010)), 20);
    }
}
