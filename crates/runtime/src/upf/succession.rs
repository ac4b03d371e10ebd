//! After a crash of the previous process: the time for which XDP continues to serve its sessions.

use std::time::Duration;

/// Time for SMFs to restore sessions, from the first association on.
const RESTORATION: Duration = Duration::from_secs(30);
/// Time limit if no SMF sets up an association.
const LONGEST: Duration = Duration::from_secs(600);

/// Progress of the takeover.
#[derive(Debug, Default)]
pub struct Succession {
    begun: Option<Duration>,
    /// When an SMF first had an association.
    back: Option<Duration>,
}

impl Succession {
    /// Whether the previous process's sessions must end now. `back`: an SMF has an association.
    pub fn is_over(&mut self, now: Duration, back: bool) -> bool {
        let begun = *self.begun.get_or_insert(now);
        if back {
            self.back.get_or_insert(now);
        }
        let since = |then: Duration| now.saturating_sub(then);
        since(begun) >= LONGEST || self.back.is_some_and(|back| since(back) >= RESTORATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_takeover_ends_after_the_restoration_time_or_without_an_smf() {
        let seconds = Duration::from_secs;
        let mut succession = Succession::default();
        assert!(!succession.is_over(seconds(5), false));
        assert!(!succession.is_over(seconds(60), true));
        assert!(
            !succession.is_over(seconds(89), false),
            "an association that ends does not restart the time"
        );
        assert!(succession.is_over(seconds(90), false));
        let mut alone = Succession::default();
        assert!(!alone.is_over(seconds(5), false));
        assert!(alone.is_over(seconds(605), false));
    }
}
