//! The QoS flows of a session, and those that it had until recently.
//!
//! The SMF removes the rules of a flow before the UE gets the command (TS 23.502 4.3.3.2 steps 2 to 10): until then uplink packets have its
//! QFI. For some time they are no violation of the UE's QoS rules, and match the session's other rules.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::contract::{Qfi, Session};

/// Longer than the SMF repeats the command for the UE: T3591 is 16 s, with four retransmissions (TS 24.501 6.3.2.5, table 10.3.2).
pub const FORMER: Duration = Duration::from_secs(120);

/// Of a flow with reflective QoS: longer than the longest RQ timer, as UEs use the rules that they have derived until it expires (TS 23.501
/// 5.7.5.3).
pub const FORMER_REFLECTIVE: Duration = Duration::from_secs(4 * 3600);

/// The flows of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowHistory {
    /// Those that its rules name, and whether UEs derive QoS rules from their packets.
    current: BTreeMap<Qfi, bool>,
    /// Those that they named before, and until when uplink packets may have their QFIs.
    former: BTreeMap<Qfi, Duration>,
}

impl FlowHistory {
    /// The history of a session that another process had.
    pub fn resumed(former: impl IntoIterator<Item = (Qfi, Duration)>) -> Self {
        Self { current: BTreeMap::new(), former: former.into_iter().collect() }
    }

    /// The rules are about to be installed: notes their flows, and adds the former ones.
    pub fn apply(&mut self, rules: &mut Session, now: Duration) {
        let is_reflective = |qfi| rules.qers.iter().any(|qer| qer.rqi && qer.qfi == Some(qfi));
        let was_reflective = |qfi| self.current.get(&qfi).is_some_and(|reflective| *reflective);
        let of_rules = rules.qfis().into_iter();
        let current: BTreeMap<_, _> =
            of_rules.map(|qfi| (qfi, is_reflective(qfi) || was_reflective(qfi))).collect();
        for (qfi, reflective) in std::mem::take(&mut self.current) {
            let stays = if reflective { FORMER_REFLECTIVE } else { FORMER };
            self.former.insert(qfi, now + stays);
        }
        self.former.retain(|qfi, until| *until > now && !current.contains_key(qfi));
        self.current = current;
        rules.former_qfis = self.former.keys().copied().collect();
    }

    /// Whether the time of a former flow is over.
    pub fn is_over(&self, now: Duration) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// When the time of the next former flow is over.
    pub fn due(&self) -> Option<Duration> {
        self.former.values().min().copied()
    }

    /// The former flows.
    pub fn former(&self) -> impl Iterator<Item = (Qfi, Duration)> {
        self.former.iter().map(|(qfi, until)| (*qfi, *until))
    }
}
