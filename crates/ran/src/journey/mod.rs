//! The simulated user of a UE: runs the steps of a [`Plan`], and measures.

mod ping;
mod profile;
mod start;
mod traffic;

pub use profile::{Packets, ParseProfileError, PingPlan, Plan, Profile, Step, TrafficPlan};
pub use start::Arrivals;

use crate::clock::Instant;
use crate::statistics::Statistics;
use crate::ue::{Event, Failure, SessionRequest};
use ping::PingRun;
use std::time::Duration;
pub use traffic::PROBE;
use traffic::{Stream, TrafficRun};
pub(crate) use traffic::{read_probe, write_probe};

/// An action of the user.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum UserAction {
    Register,
    EstablishSession(SessionRequest),
    ReleaseSession(u8),
    RequestService,
    Deregister,
    /// The gNB releases the UE for inactivity.
    BecomeIdle,
    /// Move to another gNB over Xn.
    XnHandover,
    /// Move to another gNB through the AMF.
    N2Handover,
    /// Send a Router Solicitation in this session, if it has IPv6.
    SolicitRouter(u8),
    /// Send an echo request with that sequence number.
    Ping(u16),
    /// Send the datagram of the stream with that number.
    Probe(u64),
}

/// State of a journey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Not started yet.
    Waiting,
    /// In a step.
    Under(Step),
    /// All steps are complete.
    Done,
    /// A step failed, which ended the journey.
    Failed,
}

/// One UE's run through a plan.
pub(crate) struct Journey {
    /// The session that it requests.
    session: SessionRequest,
    progress: Progress,
    round: u32,
    at: usize,
    /// Delay of the first step.
    delay: Duration,
    /// Start of the step.
    began: Instant,
    /// For steps with two conditions: the first one is met.
    half_done: bool,
    has_bearer: bool,
    /// The addresses of the session are complete: those of IPv6 follow the accept.
    has_addresses: bool,
    /// Router Solicitations sent.
    solicitations: u8,
    deadline: Option<Instant>,
    ping: PingRun,
    traffic: TrafficRun,
    /// The plan is complete, and the UE requests service once more.
    is_visit: bool,
}

/// Time until a user requests service again whose UE lost its connection ([`Plan::survives_loss`]).
const AGAIN: Duration = Duration::from_millis(500);

/// Interval and number of Router Solicitations (RFC 4861 10).
const SOLICITATION_INTERVAL: Duration = Duration::from_secs(4);
const MAX_SOLICITATIONS: u8 = 3;

/// The steps of a UE that requests service after its plan.
const VISIT: [Step; 2] = [Step::RequestService, Step::BecomeIdle];

/// What a journey may use and change outside itself.
pub(crate) struct JourneyContext<'a> {
    pub now: Instant,
    pub plan: &'a Plan,
    pub statistics: &'a mut Statistics,
    pub actions: &'a mut Vec<UserAction>,
}

impl Journey {
    /// A journey whose first step starts after that delay.
    pub fn new(session: SessionRequest, delay: Duration) -> Self {
        Self {
            session,
            progress: Progress::Waiting,
            round: 0,
            at: 0,
            delay,
            began: Instant::START,
            half_done: false,
            has_bearer: false,
            has_addresses: false,
            solicitations: 0,
            deadline: None,
            ping: PingRun::default(),
            traffic: TrafficRun::default(),
            is_visit: false,
        }
    }

    /// Requests service and becomes idle again, if the plan is complete.
    pub fn visit(&mut self, scene: &mut JourneyContext<'_>) {
        if self.progress == Progress::Done {
            (self.is_visit, self.at) = (true, 0);
            self.begin_step(scene);
        }
    }

    /// Starts the delay.
    pub fn begin(&mut self, now: Instant) {
        if self.progress == Progress::Waiting {
            self.deadline = Some(now + self.delay);
        }
    }

    pub fn progress(&self) -> Progress {
        self.progress
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        let packets = self.ping.next_timeout().into_iter().chain(self.traffic.next_timeout());
        self.deadline.into_iter().chain(packets).min()
    }

    /// The deadline of the journey or of a packet is reached.
    pub fn on_timeout(&mut self, scene: &mut JourneyContext<'_>) {
        if self.deadline.is_some_and(|deadline| deadline <= scene.now) {
            self.deadline = None;
            match self.progress {
                Progress::Waiting => self.begin_step(scene),
                Progress::Under(Step::Wait(_)) => self.end_step(scene),
                Progress::Under(_) if self.waits_for_router() => self.solicit(scene),
                Progress::Under(_) => scene.actions.push(UserAction::RequestService),
                _ => {}
            }
        }
        self.continue_ping(scene);
        self.continue_stream(scene);
    }

    /// Starts the step at `round` and `at`, or the next round, or ends.
    fn begin_step(&mut self, scene: &mut JourneyContext<'_>) {
        let Some(step) = self.next_step(scene.now, scene.plan) else {
            self.progress = Progress::Done;
            return;
        };
        self.progress = Progress::Under(step);
        self.began = scene.now;
        self.half_done = false;
        if step == Step::EstablishSession {
            (self.has_addresses, self.solicitations) = (false, 0);
        }
        match step {
            Step::Register => scene.actions.push(UserAction::Register),
            Step::EstablishSession => scene.actions.push(UserAction::EstablishSession(self.session.clone())),
            Step::ReleaseSession => scene.actions.push(UserAction::ReleaseSession(self.session.id)),
            Step::RequestService => scene.actions.push(UserAction::RequestService),
            Step::BecomeIdle => scene.actions.push(UserAction::BecomeIdle),
            Step::Deregister => scene.actions.push(UserAction::Deregister),
            Step::XnHandover => scene.actions.push(UserAction::XnHandover),
            Step::N2Handover => scene.actions.push(UserAction::N2Handover),
            Step::Wait(duration) => self.deadline = Some(scene.now + duration),
            Step::Ping => {
                if let Some(plan) = scene.plan.packets.ping {
                    self.ping.begin(scene.now, plan);
                }
                self.continue_ping(scene);
            }
            Step::Traffic => {
                if let Some(plan) = scene.plan.packets.traffic {
                    self.traffic.begin(scene.now, plan);
                }
                self.continue_stream(scene);
            }
        }
    }

    fn next_step(&mut self, now: Instant, plan: &Plan) -> Option<Step> {
        if self.is_visit {
            return VISIT.get(self.at).copied();
        }
        if let Some(step) = plan.step(self.round, self.at) {
            return Some(step);
        }
        self.round += 1;
        self.at = 0;
        if plan.duration.is_some_and(|duration| now >= Instant::START + duration) {
            return None;
        }
        plan.step(self.round, self.at)
    }

    fn end_step(&mut self, scene: &mut JourneyContext<'_>) {
        self.at += 1;
        self.begin_step(scene);
    }

    /// Handles an event of the UE.
    pub fn on_event(&mut self, event: Event, scene: &mut JourneyContext<'_>) {
        let Progress::Under(step) = self.progress else { return };
        if scene.plan.survives_loss && self.survive(step, &event, scene) {
            return;
        }
        let elapsed = scene.now - self.began;
        match (step, event) {
            (Step::Register, Event::Registered(_)) => {
                scene.statistics.registration.add(elapsed);
                self.end_step(scene);
            }
            (Step::EstablishSession, Event::SessionEstablished(_)) => {
                scene.statistics.session.add(elapsed);
                self.complete_half(scene);
            }
            (Step::RequestService, Event::ServiceAccepted) => {
                scene.statistics.add_service(scene.now, elapsed);
                self.complete_half(scene);
            }
            (Step::XnHandover | Step::N2Handover, Event::Idle) => {
                self.fail("handover: connection lost".to_owned(), scene)
            }
            (Step::ReleaseSession, Event::SessionReleased(_)) | (Step::BecomeIdle, Event::Idle) => {
                self.end_step(scene);
            }
            (Step::Deregister, Event::Deregistered { by_network: false }) => {
                scene.statistics.deregistration.add(elapsed);
                self.half_done = true;
            }
            (Step::Deregister, Event::Idle) if self.half_done => self.end_step(scene),
            (Step::Register, Event::RegistrationFailed(failure)) => {
                self.fail(format!("registration: {failure}"), scene);
            }
            (Step::Deregister, Event::DeregistrationFailed(failure)) => {
                self.fail(format!("de-registration: {failure}"), scene);
            }
            (_, Event::SessionFailed(_, failure)) => self.fail(format!("session: {failure}"), scene),
            (_, Event::ServiceFailed(failure)) => self.fail(format!("service request: {failure}"), scene),
            (Step::RequestService, Event::UserPlaneFailed(_)) => {
                self.fail("service request: user plane not re-established".to_owned(), scene);
            }
            (_, Event::Deregistered { by_network: true }) => {
                self.fail("deregistered by the network".to_owned(), scene);
            }
            _ => {}
        }
    }

    /// If the event says that the connection was lost, the step goes on nevertheless; returns whether it was such an event.
    fn survive(&mut self, step: Step, event: &Event, scene: &mut JourneyContext<'_>) -> bool {
        const LOST: [Failure; 2] = [Failure::ConnectionLost, Failure::NoAnswer];
        match (step, event) {
            (_, Event::ServiceFailed(failure)) if LOST.contains(failure) => {}
            // Between the accept and the radio bearers.
            (Step::RequestService, Event::Idle) => self.half_done = false,
            (Step::EstablishSession, Event::Idle) if self.half_done => {}
            (Step::Deregister, Event::DeregistrationFailed(failure)) if LOST.contains(failure) => {
                scene.statistics.lost_connections += 1;
                self.end_step(scene);
                return true;
            }
            _ => return false,
        }
        if self.deadline.is_none() && matches!(step, Step::RequestService | Step::EstablishSession) {
            scene.statistics.lost_connections += 1;
            self.deadline = Some(scene.now + AGAIN);
        }
        true
    }

    /// Radio bearers of the session were set up or released.
    pub fn on_bearer(&mut self, up: bool, scene: &mut JourneyContext<'_>) {
        self.has_bearer = up;
        let waits = matches!(self.progress, Progress::Under(Step::EstablishSession | Step::RequestService));
        if up && waits && self.half_done {
            self.complete_bearer(scene);
        }
    }

    /// Signalling is complete; the step also needs the bearers.
    fn complete_half(&mut self, scene: &mut JourneyContext<'_>) {
        self.half_done = true;
        if self.has_bearer {
            self.complete_bearer(scene);
        }
    }

    /// Signalling and bearers are complete; a new session with IPv6 needs an address, too.
    fn complete_bearer(&mut self, scene: &mut JourneyContext<'_>) {
        if self.waits_for_router() { self.solicit(scene) } else { self.end_step(scene) }
    }

    fn waits_for_router(&self) -> bool {
        use pith_nas::ie::PduSessionType::{Ipv4v6, Ipv6};
        let is_new =
            self.progress == Progress::Under(Step::EstablishSession) && self.half_done && self.has_bearer;
        is_new && !self.has_addresses && matches!(self.session.session_type, Ipv6 | Ipv4v6)
    }

    fn solicit(&mut self, scene: &mut JourneyContext<'_>) {
        if self.solicitations == MAX_SOLICITATIONS {
            return self.fail("session: no Router Advertisement".to_owned(), scene);
        }
        self.solicitations += 1;
        self.deadline = Some(scene.now + SOLICITATION_INTERVAL);
        scene.actions.push(UserAction::SolicitRouter(self.session.id));
    }

    /// The session has all its addresses.
    pub fn on_addresses(&mut self, scene: &mut JourneyContext<'_>) {
        let waits = self.waits_for_router();
        self.has_addresses = true;
        if waits {
            self.deadline = None;
            self.end_step(scene);
        }
    }

    /// The path was switched to the target gNB.
    pub fn on_handover(&mut self, scene: &mut JourneyContext<'_>) {
        if matches!(self.progress, Progress::Under(Step::XnHandover | Step::N2Handover)) {
            scene.statistics.handover.add(scene.now - self.began);
            self.end_step(scene);
        }
    }

    /// The UE cannot move: it is not connected with bearers, or there is no other gNB.
    pub fn on_handover_failed(&mut self, scene: &mut JourneyContext<'_>) {
        if matches!(self.progress, Progress::Under(Step::XnHandover | Step::N2Handover)) {
            self.fail("handover: no bearers, or no other gNB".to_owned(), scene);
        }
    }

    /// An echo reply was received.
    pub fn on_reply(&mut self, sequence: u16, scene: &mut JourneyContext<'_>) {
        if let Some(round_trip) = self.ping.take_reply(scene.now, sequence) {
            scene.statistics.ping.received += 1;
            scene.statistics.ping.round_trip.add(round_trip);
            self.continue_ping(scene);
        }
    }

    fn continue_ping(&mut self, scene: &mut JourneyContext<'_>) {
        if self.progress != Progress::Under(Step::Ping) {
            return;
        }
        while let Some(sequence) = self.ping.next_to_send(scene.now) {
            scene.statistics.ping.sent += 1;
            scene.actions.push(UserAction::Ping(sequence));
        }
        match self.ping.lost(scene.now) {
            None => {}
            Some(0) => self.end_step(scene),
            Some(_) => self.fail("ping: lost replies".to_owned(), scene),
        }
    }

    /// A datagram of the stream was returned.
    pub fn on_echo(&mut self, number: u64, sent: Instant, scene: &mut JourneyContext<'_>) {
        if self.traffic.take_echo(number) {
            scene.statistics.traffic.note_received(scene.now, sent);
            self.continue_stream(scene);
        }
    }

    fn continue_stream(&mut self, scene: &mut JourneyContext<'_>) {
        if self.progress != Progress::Under(Step::Traffic) {
            return;
        }
        for number in self.traffic.take_due(scene.now) {
            scene.statistics.traffic.note_sent(scene.now);
            scene.actions.push(UserAction::Probe(number));
        }
        match self.traffic.state(scene.now) {
            Stream::Running => {}
            Stream::Over { received: 0 } => self.fail("traffic: no datagram was returned".to_owned(), scene),
            Stream::Over { .. } => self.end_step(scene),
        }
    }

    fn fail(&mut self, what: String, scene: &mut JourneyContext<'_>) {
        scene.statistics.fail(what);
        if !(scene.plan.persistent && self.progress == Progress::Under(Step::Register)) {
            self.progress = Progress::Failed;
            self.deadline = None;
            self.ping = PingRun::default();
            self.traffic = TrafficRun::default();
        }
    }
}
