//! After a process that ended unasked: how long its sessions are served, by its own XDP program.

use std::time::Duration;

/// What SMFs have, once the first is back, to set up what they want kept.
const RESTORATION: Duration = Duration::from_secs(30);
/// If none comes back.
const LONGEST: Duration = Duration::from_secs(600);

/// How far the succession has come.
#[derive(Debug, Default)]
pub struct Succession {
    begun: Option<Duration>,
    /// When an SMF was first seen to be back.
    back: Option<Duration>,
}

impl Succession {
    /// Whether the sessions of the process before end now; `back`: an SMF has an association.
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
    fn it_ends_a_while_after_the_first_smf_is_back_or_when_none_comes() {
        let seconds = Duration::from_secs;
        let mut succession = Succession::default();
        assert!(!succession.is_over(seconds(5), false));
        assert!(!succession.is_over(seconds(60), true));
        assert!(!succession.is_over(seconds(89), false), "an SMF that goes again does not begin it anew");
        assert!(succession.is_over(seconds(90), false));
        let mut alone = Succession::default();
        assert!(!alone.is_over(seconds(5), false));
        assert!(alone.is_over(seconds(605), false));
    }
}
