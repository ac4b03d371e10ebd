//! Profiles: what each UE of a run does, step by step.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::Duration;

/// One thing that a UE does before it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Registers; over at REGISTRATION ACCEPT.
    Register,
    /// Establishes its PDU session; over at the accept, with radio bearers.
    EstablishSession,
    /// Pings the target; over when all echoes have a reply or are lost.
    Ping,
    /// Does nothing for so long.
    Wait(Duration),
    /// Is released for inactivity; over in 5GMM-IDLE.
    BecomeIdle,
    /// Asks for its user plane back; over when it is.
    RequestService,
    /// Releases its PDU session.
    ReleaseSession,
    /// Deregisters; over when the radio connection is released.
    Deregister,
}

/// What UEs do, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// Register.
    Register,
    /// Register and establish a session; ping if there is a target.
    #[default]
    Session,
    /// The same, then idle and service request, over and over.
    Idle,
    /// The same as `session`, then release the session.
    Release,
    /// The same as `session`, then deregister.
    Deregister,
}

/// Echo requests of a UE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PingPlan {
    /// Whom.
    pub target: Ipv4Addr,
    /// How many.
    pub count: u32,
    /// How far apart.
    pub interval: Duration,
    /// Octets of data in each.
    pub size: usize,
    /// How long a reply may take.
    pub timeout: Duration,
}

/// A profile with its numbers.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The steps of the first round.
    pub steps: Vec<Step>,
    /// Where in the steps the next rounds begin.
    pub repeat_from: usize,
    /// How many rounds; at least one.
    pub rounds: u32,
    /// The pings of each ping step.
    pub ping: Option<PingPlan>,
    /// A registration that fails is waited for: the UE tries again by itself.
    pub persistent: bool,
}

impl Plan {
    /// The steps of a profile: with a ping wherever a session has just come (back) into being, and `pause`
    /// between the ends of a cycle.
    pub fn new(profile: Profile, ping: Option<PingPlan>, pause: Duration, rounds: u32) -> Self {
        let wait = (!pause.is_zero()).then_some(Step::Wait(pause));
        let ping_step = ping.map(|_| Step::Ping);
        let session: Vec<Step> =
            [Step::Register, Step::EstablishSession].into_iter().chain(ping_step).collect();
        let (head, cycle) = match profile {
            Profile::Register => (vec![Step::Register], vec![]),
            Profile::Session => (session, vec![]),
            Profile::Idle => {
                let cycle = [Some(Step::BecomeIdle), wait, Some(Step::RequestService), ping_step, wait];
                (session, cycle.into_iter().flatten().collect())
            }
            Profile::Release => (vec![Step::Register], {
                let cycle = [Some(Step::EstablishSession), ping_step, Some(Step::ReleaseSession), wait];
                cycle.into_iter().flatten().collect()
            }),
            Profile::Deregister => {
                (vec![], session.into_iter().chain([Step::Deregister]).chain(wait).collect())
            }
        };
        let repeat_from = head.len();
        let steps = head.into_iter().chain(cycle).collect();
        Self { steps, repeat_from, rounds: rounds.max(1), ping, persistent: false }
    }

    /// The step at that place of that round, both counted from 0; `None` at the end.
    pub fn step(&self, round: u32, at: usize) -> Option<Step> {
        let skipped = if round == 0 { 0 } else { self.repeat_from };
        self.steps.get(skipped + at).copied().filter(|_| round < self.rounds)
    }

    /// Whether the UEs have a session at some time.
    pub fn has_session(&self) -> bool {
        self.steps.contains(&Step::EstablishSession)
    }
}

/// The profiles by name, for help texts.
const NAMES: [(&str, Profile); 5] = [
    ("register", Profile::Register),
    ("session", Profile::Session),
    ("idle", Profile::Idle),
    ("release", Profile::Release),
    ("deregister", Profile::Deregister),
];

/// A text that is no profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no profile: say register, session, idle, release or deregister")]
pub struct ParseProfileError;

impl FromStr for Profile {
    type Err = ParseProfileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, profile)| *profile).ok_or(ParseProfileError)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, profile)| profile == self).map(|(name, _)| *name);
        f.write_str(name.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: PingPlan = PingPlan {
        target: Ipv4Addr::LOCALHOST,
        count: 1,
        interval: Duration::ZERO,
        size: 56,
        timeout: Duration::from_secs(1),
    };

    fn walk(plan: &Plan) -> Vec<Step> {
        let round = |round| (0..).map_while(move |at| plan.step(round, at));
        (0..plan.rounds + 1).flat_map(round).collect()
    }

    #[test]
    fn only_the_cycle_is_repeated() {
        let plan = Plan::new(Profile::Idle, Some(PING), Duration::ZERO, 2);
        use Step::{BecomeIdle, EstablishSession, Ping, Register, RequestService};
        let cycle = [BecomeIdle, RequestService, Ping];
        assert_eq!(walk(&plan), [&[Register, EstablishSession, Ping][..], &cycle, &cycle].concat());
    }

    #[test]
    fn a_profile_without_cycle_is_walked_once() {
        let plan = Plan::new(Profile::Session, None, Duration::from_secs(1), 9);
        assert_eq!(walk(&plan), [Step::Register, Step::EstablishSession]);
    }

    #[test]
    fn profiles_survive_text() {
        for (name, profile) in NAMES {
            assert_eq!(name.parse(), Ok(profile));
            assert_eq!(profile.to_string(), name);
        }
        assert!("sessions".parse::<Profile>().is_err());
    }
}
