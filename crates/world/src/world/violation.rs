//! What UEs and gNBs report of the core, and which reports are due: those that a correct core causes without any fault, because messages cross.

use super::World;
use super::radio::name;
use crate::journal::RanConnection;
use crate::plan::Residency;
use pith_nf::kit::Instant;
use pith_ran::Violation;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

/// Who reports a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reporter {
    Ue(usize),
    /// An endpoint of a gNB.
    Gnb(usize),
}

impl fmt::Display for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ue(ue) => f.write_str(&name(*ue)),
            Self::Gnb(gnb) => write!(f, "gNB{}", gnb + 1),
        }
    }
}

/// A reported violation.
#[derive(Debug)]
pub(super) struct Reported {
    by: Reporter,
    at: Instant,
    text: String,
}

impl Reported {
    pub fn new(by: Reporter, violation: &Violation, at: Instant) -> Self {
        Self { by, at, text: violation.to_string() }
    }

    fn has(&self, text: &str) -> bool {
        self.text.contains(text)
    }

    /// The AMF does not have the UE of a message.
    fn is_unknown_ue(&self) -> bool {
        self.has("the AMF sent ERROR INDICATION: unknown local UE NGAP ID")
    }

    fn is_for_unused_id(&self) -> bool {
        self.has("which is not in use")
    }

    /// Whether the report of that gNB is of a UE that was passed on to another AMF just before. Until the other AMF sends its first message, the
    /// gNB sends its own to the former AMF, which does not have the UE any longer, and says so (TS 23.502 4.2.2.2.3, TS 38.413 10.6). The gNB
    /// then releases the UE before the message of the other AMF, which is for an id that is not in use any longer. `may_be_killed`: the other AMF
    /// may never send one.
    fn is_of_passed_on(
        &self,
        gnb: u32,
        passed_on: &BTreeMap<RanConnection, Instant>,
        (now, may_be_killed): (Instant, bool),
    ) -> bool {
        passed_on.range((gnb, 0)..=(gnb, u32::MAX)).any(|((_, ran_id), at)| {
            let is_for_it = self.has(&format!("for RAN UE NGAP ID {ran_id}, which is not in use"));
            let is_timely = may_be_killed || now < *at + PASSED_ON;
            is_timely && (self.is_unknown_ue() || is_for_it)
        })
    }
}

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} µs: {}", self.by, self.at.as_micros(), self.text)
    }
}

/// The SMF repeats a PDU SESSION RELEASE COMMAND four times, each 16 s after the last one; with the fifth expiry of T3592, 80 s after the
/// first command, the procedure ends (TS 24.501 6.3.3.5 a, table 10.3.2). The UE answers after the command, so that no repetition comes later.
/// Most times one comes after 16 s, but the UE may miss some: the gNB detects up to 10 s late that the UE has lost the radio.
const REPEATED: Duration = Duration::from_secs(5 * 16);

/// The times at which UEs have sent a NAS message to a gNB which had released them, or had requested their release.
#[derive(Debug, Default)]
pub(super) struct Unheard(BTreeMap<usize, VecDeque<Instant>>);

impl Unheard {
    pub fn note(&mut self, ue: usize, now: Instant) {
        let times = self.0.entry(ue).or_default();
        times.retain(|at| now < *at + REPEATED);
        times.push_back(now);
    }

    /// Whether a message that the UE has got again may be a repetition, as its answer was not heard. Each such answer excuses one: if the UE's next
    /// answer is not heard either, that is noted.
    fn take(&mut self, ue: usize, now: Instant) -> bool {
        let Some(times) = self.0.get_mut(&ue) else { return false };
        times.retain(|at| now < *at + REPEATED);
        times.pop_front().is_some()
    }
}

/// From N1MessageNotify until the target AMF's first message is with the gNB: some SBI calls, without faults, of at most 40 ms each.
const PASSED_ON: Duration = Duration::from_secs(2);

impl World {
    /// Whether that report is no fault of the core.
    pub(super) fn is_due(&mut self, reported: &Reported) -> bool {
        // An SMF with `soft` or `procedural` may have lost the gNB's last endpoint; the gNB's refusal, or its Error Indication, says so.
        let may_be_outdated =
            self.has_lost_creations() || self.has_lost_procedure() || self.has_lost_switched_path();
        if may_be_outdated && reported.has("a tunnel that the gNB does not have") {
            return true;
        }
        // An AMF of a set sends a UE back whose AMF has returned within its lease (ADR 0024), also after a restart that is no fault.
        let has_returned = self.processes.iter().any(|process| process.incarnation > 0);
        let sends_back = self.plan.instances > 0 && (has_returned || self.crash_points.crashed.is_some());
        // A gNB that has seen a UE's id can have its path switched (TS 38.413 8.4.4): the UE's own gNB does not learn it.
        let may_be_unknown = sends_back || self.enemy.has_switched();
        may_be_unknown && reported.is_unknown_ue()
            || self.follows_panic(reported)
            || self.is_passed_on(reported)
            || self.is_repetition(reported)
            || self.is_before_accept(reported)
            || self.is_overtaken(reported)
    }

    /// A UE that was registering when its shard panicked is unknown to the AMF, which says so (TS 38.413 10.6). The NG RESET that follows a panic
    /// may overtake messages on other streams: the gNB gets them for ids that it has released. An SMF that was cut off sends a command again, and
    /// gets the UE's answers to both (TS 24.501 7.3.1).
    fn follows_panic(&self, reported: &Reported) -> bool {
        let is_second_answer = reported.has("the SMF answered with 5GSM STATUS #47");
        let may_follow = reported.is_unknown_ue() || reported.is_for_unused_id() || is_second_answer;
        self.has_panicked() && (may_follow || self.may_leave_upf_sessions())
    }

    fn is_passed_on(&self, reported: &Reported) -> bool {
        let Reporter::Gnb(endpoint) = reported.by else { return false };
        let gnb = (endpoint / self.plan.amfs() + 1) as u32;
        let may_be_killed = self.crash_points.crashed.is_some();
        reported.is_of_passed_on(gnb, &self.journal().passed_on, (self.now, may_be_killed))
    }

    /// Whether a UE reports a command that repeats one it has answered: its answer was lost with the process that was killed, or with the
    /// connection that a panic ended (where contexts are not kept in memory between transactions, or are written at a procedure's end), or it met
    /// the release of the connection; and the NF that sent the command continues (TS 24.501 6.3.3.5: T3592 expires).
    fn is_repetition(&mut self, reported: &Reported) -> bool {
        let Reporter::Ue(ue) = reported.by else { return false };
        let is_late = reported.has("which is not active") || reported.is_for_unused_id();
        if !is_late || !reported.has("PduSessionReleaseCommand") {
            return false;
        }
        let is_split = self.crash_points.crashed.is_some() && self.processes.len() > 1;
        let keeps_contexts = matches!(self.plan.residency, Residency::Soft | Residency::Durable);
        is_split || self.has_panicked() && !keeps_contexts || self.watch.unheard.take(ue, self.now)
    }

    /// Whether a UE reports a change of a session that it has just released: the command to release it has overtaken the change.
    fn is_overtaken(&self, reported: &Reported) -> bool {
        let Reporter::Ue(ue) = reported.by else { return false };
        let is_of = |id: u8| {
            reported.has(&format!("PduSessionModificationCommand for session {id}, which is not active"))
        };
        (1..=15).any(|id| is_of(id) && self.ues[ue].history.has_just_released(id, self.now))
    }

    /// Whether a UE reports a change of a session whose accept it has missed, as it had lost the radio (TS 24.501 7.3.2).
    fn is_before_accept(&self, reported: &Reported) -> bool {
        let Reporter::Ue(ue) = reported.by else { return false };
        reported.has("PduSessionModificationCommand")
            && reported.has("which is not active")
            && self.ues[ue].history.may_lack_accept(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_micros(seconds * 1_000_000)
    }

    fn reported(text: &str) -> Reported {
        Reported { by: Reporter::Gnb(0), at: at(10), text: text.to_owned() }
    }

    #[test]
    fn reports_of_a_ue_that_was_passed_on_are_due_for_its_connection_and_a_short_time() {
        let passed_on = BTreeMap::from([((2, 7), at(10))]);
        let of =
            |text: &str, gnb, seconds| reported(text).is_of_passed_on(gnb, &passed_on, (at(seconds), false));
        let unknown = "the AMF sent ERROR INDICATION: unknown local UE NGAP ID";
        assert!(of(unknown, 2, 11));
        assert!(!of(unknown, 1, 11), "another gNB");
        assert!(!of(unknown, 2, 12), "too late");
        assert!(reported(unknown).is_of_passed_on(2, &passed_on, (at(24), true)));
        assert!(of("DownlinkNasTransport for RAN UE NGAP ID 7, which is not in use", 2, 11));
        assert!(!of("DownlinkNasTransport for RAN UE NGAP ID 77, which is not in use", 2, 11));
        assert!(!of("DownlinkNasTransport for RAN UE NGAP ID 7, which is not in use", 2, 12));
    }

    #[test]
    fn an_answer_that_was_not_heard_excuses_one_repetition() {
        let mut unheard = Unheard::default();
        assert!(!unheard.take(1, at(0)));
        unheard.note(1, at(1));
        assert!(!unheard.take(0, at(17)), "another UE");
        assert!(unheard.take(1, at(17)));
        assert!(!unheard.take(1, at(33)));
        unheard.note(1, at(34));
        unheard.note(1, at(40));
        assert!(unheard.take(1, at(100)));
        assert!(unheard.take(1, at(110)));
        assert!(!unheard.take(1, at(115)));
    }

    #[test]
    fn an_answer_excuses_nothing_after_the_last_expiry_of_t3592() {
        let mut unheard = Unheard::default();
        unheard.note(0, at(1));
        assert!(!unheard.take(0, at(81)));
        unheard.note(0, at(100));
        assert!(unheard.take(0, at(179)));
    }
}
