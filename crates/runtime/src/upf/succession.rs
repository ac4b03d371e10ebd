//! After a start: the time in which SMFs establish sessions of the previous process again. XDP continues to serve them, and unknown
//! TEIDs get no Error Indication, which would end the gNBs' tunnels (TS 23.527 4.3.2).

use std::time::Duration;

/// Time for which XDP continues to serve sessions of the previous process, from the first association on.
pub const OF_XDP: Duration = Duration::from_secs(30);
/// Time limit if no SMF sets up an association.
const LONGEST: Duration = Duration::from_secs(600);

/// Progress of the restoration.
#[derive(Debug)]
pub struct Succession {
    /// Time for SMFs to restore sessions, from the first association on.
    restoration: Duration,
    begun: Option<Duration>,
    /// When an SMF first had an association.
    back: Option<Duration>,
}

impl Succession {
    /// Begins with the first check.
    pub const fn new(restoration: Duration) -> Self {
        Self { restoration, begun: None, back: None }
    }

    /// Whether the previous process's sessions must end now. `back`: an SMF has an association.
    pub fn is_over(&mut self, now: Duration, back: bool) -> bool {
        let begun = *self.begun.get_or_insert(now);
        if back {
            self.back.get_or_insert(now);
        }
        let since = |then: Duration| now.saturating_sub(then);
        since(begun) >= LONGEST || self.back.is_some_and(|back| since(back) >= self.restoration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_takeover_ends_after_the_restoration_time_or_without_an_smf() {
        let seconds = Duration::from_secs;
        let mut succession = Succession::new(OF_XDP);
        assert!(!succession.is_over(seconds(5), false));
        assert!(!succession.is_over(seconds(60), true));
        assert!(
            !succession.is_over(seconds(89), false),
            "an association that ends does not restart the time"
        );
        assert!(succession.is_over(seconds(90), false));
        let mut alone = Succession::new(OF_XDP);
        assert!(!alone.is_over(seconds(5), false));
        assert!(alone.is_over(seconds(605), false));
    }
}
