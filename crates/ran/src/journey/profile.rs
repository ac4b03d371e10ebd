//! Profiles: the steps of each UE of a run.

use crate::network::Network;
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
    /// Is idle, and a host of the data network sends it a packet; complete when the packet is delivered.
    Page,
    /// Moves to another gNB; complete when the path is switched (Xn), or at HANDOVER NOTIFY (N2).
    Handover(HandoverPath, HandoverTarget),
    /// Is idle, and selects a cell of the next gNB that has an AMF; complete when the UE has registered there, or at once if the cell is in its
    /// registration area.
    Reselect,
    /// The downlink of all sessions moves to a secondary gNB, or back; complete when the core has confirmed it.
    MoveFlows(DownlinkVia),
    /// Deregisters; complete when the radio connection is released.
    Deregister,
}

/// How the source gNB prepares the target gNB (TS 23.502 4.9.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandoverPath {
    /// Over Xn; the AMF switches the path afterwards.
    Xn,
    /// Through the AMF.
    N2,
}

/// The gNB to which a UE moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandoverTarget {
    /// The next one in order that has an AMF.
    Next,
    /// The one from which the UE came.
    Previous,
}

/// The gNB that takes a UE's downlink packets (dual connectivity).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownlinkVia {
    /// The next gNB in order that has an AMF. The UE keeps its own as master.
    Secondary,
    /// The UE's own gNB.
    Master,
}

use HandoverPath::{N2, Xn};
use HandoverTarget::{Next, Previous};

impl Step {
    /// The procedure that the step measures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Register => "registration",
            Self::EstablishSession => "session",
            Self::Ping => "ping",
            Self::Traffic => "traffic",
            Self::Wait(_) => "pause",
            Self::BecomeIdle => "release for inactivity",
            Self::RequestService => "service request",
            Self::ReleaseSession => "release of the session",
            Self::Page => "paging",
            Self::Handover(Xn, _) => "Xn handover",
            Self::Handover(N2, _) => "N2 handover",
            Self::Reselect => "cell reselection",
            Self::MoveFlows(DownlinkVia::Secondary) => "flows to a secondary gNB",
            Self::MoveFlows(DownlinkVia::Master) => "flows back",
            Self::Deregister => "de-registration",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The steps by name, except for the pause.
const STEPS: [(&str, Step); 16] = [
    ("register", Step::Register),
    ("session", Step::EstablishSession),
    ("ping", Step::Ping),
    ("traffic", Step::Traffic),
    ("idle", Step::BecomeIdle),
    ("service", Step::RequestService),
    ("release", Step::ReleaseSession),
    ("page", Step::Page),
    ("xn", Step::Handover(Xn, Next)),
    ("n2", Step::Handover(N2, Next)),
    ("xn-back", Step::Handover(Xn, Previous)),
    ("n2-back", Step::Handover(N2, Previous)),
    ("reselect", Step::Reselect),
    ("dc", Step::MoveFlows(DownlinkVia::Secondary)),
    ("dc-back", Step::MoveFlows(DownlinkVia::Master)),
    ("deregister", Step::Deregister),
];

/// A text that is not a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown step: use register, session, ping, traffic, idle, service, release, page, xn, n2, xn-back, n2-back, \
     reselect, dc, dc-back, deregister, or wait:MS"
)]
pub struct ParseStepError;

impl FromStr for Step {
    type Err = ParseStepError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(millis) = text.strip_prefix("wait:") {
            let millis = millis.parse::<u32>().map_err(|_| ParseStepError)?;
            return Ok(Self::Wait(Duration::from_millis(millis.into())));
        }
        STEPS.iter().find(|(name, _)| *name == text).map(|(_, step)| *step).ok_or(ParseStepError)
    }
}

/// Minimum time in a cell before a handover, and in idle before a packet pages the UE. Meanwhile the core takes what earlier
/// messages of other gNBs say: those of different associations have no order, and a radio takes longer than that.
const STAY: Duration = Duration::from_millis(50);

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
    /// As `Session`, then idle until a downlink packet pages the UE, repeatedly.
    Paged,
    /// As `Session`, then handovers from gNB to gNB, by turns over Xn and through the AMF, repeatedly.
    Moving,
    /// As `Session`, then handovers over Xn, repeatedly.
    Xn,
    /// As `Session`, then handovers through the AMF, repeatedly.
    N2,
    /// As `Session`, then to the next gNB and 50 ms later back, over Xn and then through the AMF, repeatedly.
    PingPong,
    /// As `Session`, then the downlink moves to a secondary gNB and back, repeatedly (dual connectivity).
    DualConnectivity,
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
    /// Each session with IPv6 needs a prefix for hosts behind the UE (TS 23.501 5.8.2.2.4), with which they ping, too.
    pub requests_prefix: bool,
    /// Networks behind each UE (framed routes, TS 23.501 5.6.14).
    pub framed: Vec<Network>,
}

impl Plan {
    /// The steps of a profile. Traffic follows each establishment or activation of a session, and each
    /// handover; `pause` separates the ends of a cycle. It is at least 50 ms before a handover, and before a packet pages the UE.
    pub fn new(profile: Profile, packets: Packets, pause: Duration, rounds: u32) -> Self {
        let wait = (!pause.is_zero()).then_some(Step::Wait(pause));
        let (ping, traffic) = (packets.ping.map(|_| Step::Ping), packets.traffic.map(|_| Step::Traffic));
        let use_it = || ping.into_iter().chain(traffic);
        let session: Vec<Step> =
            [Step::Register, Step::EstablishSession].into_iter().chain(use_it()).collect();
        let stay = Step::Wait(pause.max(STAY));
        let leg =
            |path| -> Vec<Step> { [stay, Step::Handover(path, Next)].into_iter().chain(use_it()).collect() };
        let (head, cycle) = match profile {
            Profile::Register => (vec![Step::Register], vec![]),
            Profile::Session => (session, vec![]),
            Profile::Idle => {
                let away = [Step::BecomeIdle].into_iter().chain(wait).chain([Step::RequestService]);
                (session, away.chain(use_it()).chain(wait).collect())
            }
            Profile::Paged => {
                let away = [Step::BecomeIdle, stay, Step::Page];
                (session, away.into_iter().chain(use_it()).chain(wait).collect())
            }
            Profile::Moving => (session, [Xn, N2].into_iter().flat_map(leg).collect()),
            Profile::Xn => (session, leg(Xn)),
            Profile::N2 => (session, leg(N2)),
            Profile::PingPong => {
                let both = |path| {
                    [stay, Step::Handover(path, Next), Step::Wait(STAY), Step::Handover(path, Previous)]
                };
                (session, [Xn, N2].into_iter().flat_map(both).chain(use_it()).collect())
            }
            Profile::DualConnectivity => {
                let via = |via| [stay, Step::MoveFlows(via)].into_iter().chain(use_it()).collect::<Vec<_>>();
                (session, [DownlinkVia::Secondary, DownlinkVia::Master].into_iter().flat_map(via).collect())
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
            requests_prefix: false,
            framed: Vec::new(),
        }
    }

    /// The same steps with that number of sessions wherever they have one.
    #[must_use]
    pub fn with_sessions(mut self, sessions: usize) -> Self {
        let several = |step: Step| {
            let is_repeated = matches!(step, Step::EstablishSession | Step::ReleaseSession);
            std::iter::repeat_n(step, if is_repeated { sessions } else { 1 })
        };
        let (head, cycle) = self.steps.split_at(self.repeat_from);
        let head: Vec<_> = head.iter().copied().flat_map(several).collect();
        let cycle: Vec<_> = cycle.iter().copied().flat_map(several).collect();
        self.repeat_from = head.len();
        self.steps = [head, cycle].concat();
        self
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
const NAMES: [(&str, Profile); 12] = [
    ("register", Profile::Register),
    ("session", Profile::Session),
    ("idle", Profile::Idle),
    ("release", Profile::Release),
    ("deregister", Profile::Deregister),
    ("parked", Profile::Parked),
    ("paged", Profile::Paged),
    ("moving", Profile::Moving),
    ("xn", Profile::Xn),
    ("n2", Profile::N2),
    ("ping-pong", Profile::PingPong),
    ("dc", Profile::DualConnectivity),
];

/// A text that is not a profile's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown profile: use register, session, idle, release, deregister, parked, paged, moving, xn, n2, ping-pong or dc"
)]
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
    fn a_ping_pong_returns_before_anything_else() {
        let packets = Packets { ping: Some(PING), traffic: None };
        let plan = Plan::new(Profile::PingPong, packets, Duration::from_secs(1), 1);
        let pause = Step::Wait(Duration::from_secs(1));
        let both =
            |path| [pause, Step::Handover(path, Next), Step::Wait(STAY), Step::Handover(path, Previous)];
        let session = [Step::Register, Step::EstablishSession, Step::Ping];
        assert_eq!(walk(&plan), [&session[..], &both(Xn), &both(N2), &[Step::Ping]].concat());
    }

    #[test]
    fn each_of_several_sessions_is_established_and_released() {
        use Step::{EstablishSession, Register, ReleaseSession};
        let plan = Plan::new(Profile::Release, Packets::default(), Duration::ZERO, 2).with_sessions(2);
        let cycle = [EstablishSession, EstablishSession, ReleaseSession, ReleaseSession];
        assert_eq!(walk(&plan), [&[Register][..], &cycle, &cycle].concat());
    }

    #[test]
    fn steps_are_read_by_name() {
        for (name, step) in STEPS {
            assert_eq!(name.parse(), Ok(step));
        }
        assert_eq!("wait:250".parse(), Ok(Step::Wait(Duration::from_millis(250))));
        for bad in ["", "wait", "wait:", "wait:-1", "wait:4294967296", "handover"] {
            assert_eq!(bad.parse::<Step>(), Err(ParseStepError), "{bad}");
        }
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
