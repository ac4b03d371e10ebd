//! Profiles: the steps of each UE of a run.

use std::fmt;
use std::net::{IpAddr, SocketAddrV4};
use std::str::FromStr;
use std::time::Duration;

/// One step of a UE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Registers; complete at REGISTRATION ACCEPT.
    Register,
    /// Establishes its PDU session; complete at the accept, with radio bearers.
    EstablishSession,
    /// Pings the target; complete when all echoes are answered or lost.
    Ping,
    /// Streams datagrams to an echo service; complete when all are returned or lost.
    Traffic,
    /// Waits.
    Wait(Duration),
    /// Is released for inactivity; complete in 5GMM-IDLE.
    BecomeIdle,
    /// Requests its user plane; complete when it is active.
    RequestService,
    /// Releases its PDU session.
    ReleaseSession,
    /// Moves to the next gNB over Xn; complete when the path is switched.
    XnHandover,
    /// Moves to the next gNB through the AMF; complete at HANDOVER NOTIFY.
    N2Handover,
    /// Deregisters; complete when the radio connection is released.
    Deregister,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Register => "registration",
            Self::EstablishSession => "session",
            Self::Ping => "ping",
            Self::Traffic => "traffic",
            Self::Wait(_) => "pause",
            Self::BecomeIdle => "release for inactivity",
            Self::RequestService => "service request",
            Self::ReleaseSession => "release of the session",
            Self::XnHandover => "Xn handover",
            Self::N2Handover => "N2 handover",
            Self::Deregister => "de-registration",
        })
    }
}

/// Named sequences of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// Register.
    Register,
    /// Register and establish a session; ping if there is a target.
    #[default]
    Session,
    /// As `Session`, then idle and service request, repeatedly.
    Idle,
    /// As `Session`, then release the session.
    Release,
    /// As `Session`, then deregister.
    Deregister,
    /// As `Session`, then idle.
    Parked,
    /// As `Session`, then handovers from gNB to gNB, by turns over Xn and through the AMF, repeatedly.
    Moving,
}

/// Echo requests of a UE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PingPlan {
    pub target: IpAddr,
    /// Number of requests.
    pub count: u32,
    /// Interval of requests.
    pub interval: Duration,
    /// Octets of data in each request.
    pub size: usize,
    /// Maximum time for a reply.
    pub timeout: Duration,
}

/// A stream of UDP datagrams from a UE to an echo service and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrafficPlan {
    /// The echo service (RFC 862).
    pub target: SocketAddrV4,
    /// Bit rate in each direction, counted in whole IP packets.
    pub bits_per_second: u64,
    /// Octets of each IP packet.
    pub size: usize,
    /// Duration of the stream.
    pub duration: Duration,
    /// Maximum time until the last datagram is returned.
    pub timeout: Duration,
}

impl TrafficPlan {
    /// Interval of packets.
    pub fn gap(&self) -> Duration {
        let nanos = self.size as u128 * 8 * 1_000_000_000 / u128::from(self.bits_per_second.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).max(1))
    }

    /// Number of packets; at least one.
    pub fn count(&self) -> u64 {
        let count = self.duration.as_nanos() / self.gap().as_nanos();
        u64::try_from(count).unwrap_or(u64::MAX).max(1)
    }
}

/// Traffic of UEs through their sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Packets {
    /// The pings of each ping step.
    pub ping: Option<PingPlan>,
    /// The stream of each traffic step.
    pub traffic: Option<TrafficPlan>,
}

/// A profile with its parameters.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The steps of the first round.
    pub steps: Vec<Step>,
    /// Index of the step at which the next rounds start.
    pub repeat_from: usize,
    /// Number of rounds; at least one.
    pub rounds: u32,
    /// Traffic of every session.
    pub packets: Packets,
    /// A failed registration does not fail the step: the UE tries again by itself.
    pub persistent: bool,
    /// A service request or de-registration that ends with the connection, or gets no answer, does not fail the step: the user
    /// requests service again.
    pub survives_loss: bool,
    /// Time of the run after which no round begins.
    pub duration: Option<Duration>,
}

impl Plan {
    /// The steps of a profile. Traffic follows each establishment or activation of a session, and
    /// `pause` separates the ends of a cycle.
    pub fn new(profile: Profile, packets: Packets, pause: Duration, rounds: u32) -> Self {
        let wait = (!pause.is_zero()).then_some(Step::Wait(pause));
        let (ping, traffic) = (packets.ping.map(|_| Step::Ping), packets.traffic.map(|_| Step::Traffic));
        let use_it = || ping.into_iter().chain(traffic);
        let session: Vec<Step> =
            [Step::Register, Step::EstablishSession].into_iter().chain(use_it()).collect();
        let (head, cycle) = match profile {
            Profile::Register => (vec![Step::Register], vec![]),
            Profile::Session => (session, vec![]),
            Profile::Idle => {
                let away = [Step::BecomeIdle].into_iter().chain(wait).chain([Step::RequestService]);
                (session, away.chain(use_it()).chain(wait).collect())
            }
            Profile::Moving => {
                let leg = |step| [step].into_iter().chain(use_it()).chain(wait);
                (session, leg(Step::XnHandover).chain(leg(Step::N2Handover)).collect())
            }
            Profile::Parked => (session.into_iter().chain([Step::BecomeIdle]).collect(), vec![]),
            Profile::Release => (vec![Step::Register], {
                let cycle = [Step::EstablishSession].into_iter().chain(use_it());
                cycle.chain([Step::ReleaseSession]).chain(wait).collect()
            }),
            Profile::Deregister => {
                (vec![], session.into_iter().chain([Step::Deregister]).chain(wait).collect())
            }
        };
        let repeat_from = head.len();
        let steps = head.into_iter().chain(cycle).collect();
        Self {
            steps,
            repeat_from,
            rounds: rounds.max(1),
            packets,
            persistent: false,
            survives_loss: false,
            duration: None,
        }
    }

    /// The step at that index of that round, both counted from 0; `None` at the end.
    pub fn step(&self, round: u32, at: usize) -> Option<Step> {
        let skipped = if round == 0 { 0 } else { self.repeat_from };
        self.steps.get(skipped + at).copied().filter(|_| round < self.rounds)
    }

    /// Whether the plan includes a session.
    pub fn has_session(&self) -> bool {
        self.steps.contains(&Step::EstablishSession)
    }
}

/// The profiles by name.
const NAMES: [(&str, Profile); 7] = [
    ("register", Profile::Register),
    ("session", Profile::Session),
    ("idle", Profile::Idle),
    ("release", Profile::Release),
    ("deregister", Profile::Deregister),
    ("parked", Profile::Parked),
    ("moving", Profile::Moving),
];

/// A text that is not a profile's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown profile: use register, session, idle, release, deregister, parked or moving")]
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
    use std::net::Ipv4Addr;

    const PING: PingPlan = PingPlan {
        target: IpAddr::V4(Ipv4Addr::LOCALHOST),
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
        let plan = Plan::new(Profile::Idle, Packets { ping: Some(PING), traffic: None }, Duration::ZERO, 2);
        use Step::{BecomeIdle, EstablishSession, Ping, Register, RequestService};
        let cycle = [BecomeIdle, RequestService, Ping];
        assert_eq!(walk(&plan), [&[Register, EstablishSession, Ping][..], &cycle, &cycle].concat());
    }

    #[test]
    fn a_stream_has_as_many_packets_as_its_rate_and_duration_say() {
        let traffic = TrafficPlan {
            target: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7),
            bits_per_second: 8_000_000,
            size: 1000,
            duration: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
        };
        assert_eq!((traffic.gap(), traffic.count()), (Duration::from_millis(1), 2000));
        assert_eq!(TrafficPlan { bits_per_second: 0, ..traffic }.count(), 1);
    }

    #[test]
    fn a_profile_without_cycle_runs_once() {
        let plan = Plan::new(Profile::Session, Packets::default(), Duration::from_secs(1), 9);
        assert_eq!(walk(&plan), [Step::Register, Step::EstablishSession]);
    }

    #[test]
    fn profiles_round_trip_as_text() {
        for (name, profile) in NAMES {
            assert_eq!(name.parse(), Ok(profile));
            assert_eq!(profile.to_string(), name);
        }
        assert!("sessions".parse::<Profile>().is_err());
    }
}
