//! Limits the log lines of each kind, and counts the omitted ones.

use std::time::{Duration, Instant};

/// The interval to which a limit applies. It begins with the first line of a kind.
const PERIOD: Duration = Duration::from_secs(10);

/// Lines of the current periods, by kind. Kinds must be constants of the program, so that there are few entries.
#[derive(Debug)]
pub(crate) struct LogAllowances<K>(Vec<Period<K>>);

#[derive(Debug)]
struct Period<K> {
    kind: K,
    began: Instant,
    lines: u32,
    omitted: u32,
}

impl<K: Copy + PartialEq> LogAllowances<K> {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Whether a line may be logged: at most `limit` lines of its kind in a period. Call [`Self::end_periods`] before.
    pub fn take(&mut self, kind: K, limit: u32, now: Instant) -> bool {
        let Some(period) = self.0.iter_mut().find(|period| period.kind == kind) else {
            self.0.push(Period { kind, began: now, lines: 1, omitted: 0 });
            return limit > 0;
        };
        if period.lines < limit {
            period.lines += 1;
            return true;
        }
        period.omitted = period.omitted.saturating_add(1);
        false
    }

    /// Ends periods that have passed. Returns the kinds of which lines were omitted, and their number.
    pub fn end_periods(&mut self, now: Instant) -> Vec<(K, u32)> {
        let mut omitted = Vec::new();
        self.0.retain(|period| {
            let is_current = now.duration_since(period.began) < PERIOD;
            if !is_current && period.omitted > 0 {
                omitted.push((period.kind, period.omitted));
            }
            is_current
        });
        omitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_kind_are_limited_and_the_omitted_ones_counted() {
        let (mut allowances, now) = (LogAllowances::new(), Instant::now());
        let allowed = |allowances: &mut LogAllowances<&str>, kind, now| {
            (0..250).filter(|_| allowances.take(kind, 100, now)).count()
        };
        assert_eq!(allowed(&mut allowances, "NGAP", now), 100);
        assert_eq!(allowed(&mut allowances, "Registration", now), 100, "kinds have limits of their own");
        assert_eq!(allowances.end_periods(now + PERIOD / 2), []);
        assert_eq!(allowed(&mut allowances, "NGAP", now + PERIOD / 2), 0);
        let omitted = allowances.end_periods(now + PERIOD);
        assert_eq!(omitted, [("NGAP", 400), ("Registration", 150)]);
        assert_eq!(allowances.end_periods(now + PERIOD), [], "they are reported once");
        assert_eq!(allowed(&mut allowances, "NGAP", now + PERIOD), 100);
    }
}
