//! The simulated user of a UE: runs the steps of a [`Plan`], and measures.

mod page;
mod ping;
mod profile;
mod session;
mod start;
mod traffic;

pub use profile::{
    DownlinkVia, HandoverPath, HandoverTarget, Packets, ParseProfileError, ParseStepError, PingPlan, Plan,
    Profile, Step, TrafficPlan,
};
pub use start::Arrivals;

use crate::clock::Instant;
use crate::statistics::Statistics;
use crate::ue::{Event, Failure, SessionRequest};
use ping::PingRun;
use std::sync::Arc;
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
    /// Move to another gNB.
    Handover(HandoverPath, HandoverTarget),
    /// Select a cell of another gNB.
    Reselect,
    /// The downlink of all sessions moves to another gNB.
    MoveFlows(DownlinkVia),
    /// A host of the data network sends the UE, which is idle, the packet with that number.
    Page(u64),
    /// Send a Router Solicitation in this session, if it has IPv6.
    SolicitRouter(u8),
    /// Request a prefix for hosts behind the UE in this session.
    RequestPrefix(u8),
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
    /// The sessions that it requests, one after the other.
    sessions: Vec<SessionRequest>,
    /// Sessions that it has established, or is establishing.
    established: usize,
    progress: Progress,
    round: u32,
    at: usize,
    /// Delay of the first step.
    delay: Duration,
    /// Start of the step.
    began: Instant,
    /// For steps with two conditions: the first one is met.
    half_done: bool,
    /// A bit for each session with radio bearers.
    bearers: u16,
    /// The addresses of the session are complete: those of IPv6 follow the accept.
    has_addresses: bool,
    /// Router Solicitations sent.
    solicitations: u8,
    /// The session has its delegated prefix.
    has_prefix: bool,
    /// Requests for one that were sent.
    prefix_requests: u8,
    deadline: Option<Instant>,
    ping: PingRun,
    traffic: TrafficRun,
    /// Packets of the data network that were sent to it while it was idle.
    pages: u64,
    /// Steps after the plan, if there are any ([`Journey::perform`]).
    errand: Option<Arc<[Step]>>,
}

/// Time until a user requests service again whose UE lost its connection ([`Plan::survives_loss`]).
const AGAIN: Duration = Duration::from_millis(500);

/// Why a UE stays at its gNB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HandoverFailure {
    #[error("no other gNB is in operation")]
    NoTarget,
    #[error("no bearers, or another handover")]
    NotPossible,
    #[error("the UE is connected: put 'idle' before")]
    NotIdle,
    #[error("HANDOVER PREPARATION FAILURE")]
    Refused,
    #[error("the UE does not accept the NAS container")]
    NotAccepted,
    #[error("not all sessions are confirmed")]
    NotConfirmed,
}

/// What a journey may use and change outside itself.
pub(crate) struct JourneyContext<'a> {
    pub now: Instant,
    pub plan: &'a Plan,
    pub statistics: &'a mut Statistics,
    pub actions: &'a mut Vec<UserAction>,
}

impl Journey {
    /// A journey whose first step starts after that delay.
    pub fn new(sessions: Vec<SessionRequest>, delay: Duration) -> Self {
        Self {
            sessions,
            established: 0,
            progress: Progress::Waiting,
            round: 0,
            at: 0,
            delay,
            began: Instant::START,
            half_done: false,
            bearers: 0,
            has_addresses: false,
            solicitations: 0,
            has_prefix: false,
            prefix_requests: 0,
            deadline: None,
            ping: PingRun::default(),
            traffic: TrafficRun::default(),
            pages: 0,
            errand: None,
        }
    }

    /// Carries out further steps, if the plan is complete.
    pub fn perform(&mut self, steps: Arc<[Step]>, scene: &mut JourneyContext<'_>) {
        if self.progress == Progress::Done {
            (self.errand, self.at) = (Some(steps), 0);
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
                Progress::Under(_) if self.waits_for_prefix(scene) => self.request_prefix(scene),
                Progress::Under(Step::Page) => {
                    self.fail("paging: the packet was not delivered".to_owned(), scene);
                }
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
        match step {
            Step::Register => scene.actions.push(UserAction::Register),
            Step::EstablishSession => self.establish_session(scene),
            Step::ReleaseSession => self.release_session(scene),
            Step::RequestService => scene.actions.push(UserAction::RequestService),
            Step::BecomeIdle => scene.actions.push(UserAction::BecomeIdle),
            Step::Deregister => scene.actions.push(UserAction::Deregister),
            Step::Handover(path, target) => scene.actions.push(UserAction::Handover(path, target)),
            Step::Reselect => scene.actions.push(UserAction::Reselect),
            Step::MoveFlows(via) => scene.actions.push(UserAction::MoveFlows(via)),
            Step::Page => self.send_page(scene),
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
        if let Some(steps) = &self.errand {
            return steps.get(self.at).copied();
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
        if let Progress::Under(step) = self.progress
            && !matches!(step, Step::Wait(_))
        {
            scene.statistics.add_step(step.name(), scene.now - self.began);
        }
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
            (Step::Handover(..) | Step::MoveFlows(_), Event::Idle) => {
                self.fail(format!("{step}: connection lost"), scene)
            }
            (Step::ReleaseSession, Event::SessionReleased(_))
            | (Step::BecomeIdle, Event::Idle)
            | (Step::Reselect, Event::Registered(_)) => {
                self.end_step(scene);
            }
            (Step::Deregister, Event::Deregistered { by_network: false }) => {
                self.established = 0;
                scene.statistics.deregistration.add(elapsed);
                self.half_done = true;
            }
            (Step::Deregister, Event::Idle) if self.half_done => self.end_step(scene),
            (Step::Register | Step::Reselect, Event::RegistrationFailed(failure)) => {
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
                // The UE is deregistered all the same (TS 24.501 5.5.2.2.6), and its sessions are released.
                self.established = 0;
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

    /// The path was switched to the target gNB.
    pub fn on_handover(&mut self, scene: &mut JourneyContext<'_>) {
        if matches!(self.progress, Progress::Under(Step::Handover(..))) {
            scene.statistics.handover.add(scene.now - self.began);
            self.end_step(scene);
        }
    }

    /// The UE cannot move, or the core did not hand it over.
    pub fn on_handover_failed(&mut self, why: HandoverFailure, scene: &mut JourneyContext<'_>) {
        if let Progress::Under(step @ (Step::Handover(..) | Step::Reselect)) = self.progress {
            self.fail(format!("{step}: {why}"), scene);
        }
    }

    /// The UE is in another cell of its registration area.
    pub fn on_reselected(&mut self, scene: &mut JourneyContext<'_>) {
        if self.progress == Progress::Under(Step::Reselect) {
            self.end_step(scene);
        }
    }

    /// The AMF has confirmed the tunnels of all sessions.
    pub fn on_flows_moved(&mut self, scene: &mut JourneyContext<'_>) {
        if matches!(self.progress, Progress::Under(Step::MoveFlows(_))) {
            self.end_step(scene);
        }
    }

    /// There is no other gNB, or the core did not move all flows.
    pub fn on_flows_not_moved(&mut self, why: HandoverFailure, scene: &mut JourneyContext<'_>) {
        if let Progress::Under(step @ Step::MoveFlows(_)) = self.progress {
            self.fail(format!("{step}: {why}"), scene);
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

    /// Counts a failure, which ends the journey.
    fn fail(&mut self, what: String, scene: &mut JourneyContext<'_>) {
        scene.statistics.fail(what);
        if let Progress::Under(step) = self.progress {
            scene.statistics.add_failed_step(step.name());
        }
        if !(scene.plan.persistent && self.progress == Progress::Under(Step::Register)) {
            self.progress = Progress::Failed;
            self.deadline = None;
            self.ping = PingRun::default();
            self.traffic = TrafficRun::default();
        }
    }
}
