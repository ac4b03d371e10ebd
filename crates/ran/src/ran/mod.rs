//! Many gNBs and UEs, and the radio between them.
//!
//! ```text
//!   user      Journey ── actions ─> Ue ── NAS ──> Gnb ── NGAP ──> N2
//!                     <── events ──    <── NAS ──     <── NGAP ──
//!             packets ────────────────────────────────── GTP-U ──> N3
//! ```
//!
//! The radio loses nothing and has no delay. The caller of a [`Ran`] simulates or implements N2 and N3.

mod amf_selection;
mod dual_connectivity;
mod handover;
mod interface;
mod schedule;
mod user_plane;

pub use interface::{DelegatedPrefix, Input, Output, Tally};

use crate::clock::Instant;
use crate::gnb::{self, Gnb, UeKey};
use crate::journey::{HandoverFailure, Journey, JourneyContext, Plan, Progress, Step, UserAction};
use crate::statistics::Statistics;
use crate::ue::{self, SessionRequest, Subscription, Ue};
use dual_connectivity::Moving;
use handover::FormerTunnels;
use pith_ngap::CauseRadioNetwork;
use pith_types::{FiveGSTmsi, Pei, Teid};
use schedule::{Entity, Schedule};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use user_plane::Endpoint;

/// A UE, its user, and its gNB.
struct Subscriber {
    ue: Ue,
    journey: Journey,
    gnb: usize,
    /// The gNB that it left last by a handover.
    previous_gnb: Option<usize>,
    name: String,
    bearers: Vec<gnb::Bearer>,
    /// Sessions whose downlink is moving to another gNB.
    moving: Vec<Moving>,
    /// Its tunnels at the gNB that it has left, while the path is being switched.
    left_tunnels: Vec<Teid>,
}

/// Configuration of a UE of a run.
#[allow(missing_docs)]
pub struct UeSetup {
    pub subscription: Subscription,
    pub imeisv: Pei,
    /// The gNB whose cell it camps on.
    pub gnb: usize,
    /// The sessions that its user requests, one after the other.
    pub sessions: Vec<SessionRequest>,
    /// Delay between [`Ran::begin`] and the start of its user.
    pub begins: Duration,
}

/// An output still to be delivered within the radio network.
enum PendingOutput {
    Ue(UeKey, Signal),
    Gnb(usize, gnb::Input<'static>),
}

/// A signal to a UE over the radio.
enum Signal {
    Nas(Vec<u8>),
    Security([u8; 32], pith_ngap::SecurityCapabilities),
    Bearer(gnb::Bearer, bool),
    HandedOver { key: [u8; 32], chaining_count: u8, cell: gnb::Cell },
    PathSwitched,
    FlowsMoved { moved: Vec<gnb::Bearer>, is_complete: bool },
    Released,
    Paging(ue::PagedWith),
}

/// A radio access network with its UEs.
pub struct Ran {
    plan: Plan,
    gnbs: Vec<Gnb>,
    /// Endpoints of each gNB: one for each AMF.
    amfs: usize,
    /// UEs that were assigned to each endpoint.
    assigned: Vec<u64>,
    subscribers: Vec<Subscriber>,
    /// UEs in progress at once at most; the next one begins when one has ended. `None`: each begins at its time.
    in_flight: Option<usize>,
    /// The next UE to begin, if the number is limited.
    next_ue: usize,
    /// The steps of a UE that requests service after its plan.
    visit: Arc<[Step]>,
    /// The session of each downlink TEID.
    endpoints: HashMap<Teid, Endpoint>,
    former_tunnels: FormerTunnels,
    pending: VecDeque<PendingOutput>,
    schedule: Schedule,
    statistics: Statistics,
    tally: Tally,
    now: Instant,
    gnb_out: Vec<gnb::Output>,
    ue_out: Vec<ue::Output>,
    actions: Vec<UserAction>,
    out: Vec<Output>,
}

impl Ran {
    /// A radio network of these gNBs, whose UEs follow the plan.
    pub fn new(gnbs: Vec<gnb::Settings>, plan: Plan) -> Self {
        Self {
            plan,
            gnbs: gnbs.into_iter().map(Gnb::new).collect(),
            amfs: 1,
            assigned: Vec::new(),
            subscribers: Vec::new(),
            in_flight: None,
            next_ue: 0,
            visit: [Step::RequestService, Step::BecomeIdle].into(),
            endpoints: HashMap::new(),
            former_tunnels: FormerTunnels::default(),
            pending: VecDeque::new(),
            schedule: Schedule::default(),
            statistics: Statistics::default(),
            tally: Tally::default(),
            now: Instant::START,
            gnb_out: Vec::new(),
            ue_out: Vec::new(),
            actions: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Adds a UE; `None` if there is no such gNB.
    pub fn add_ue(&mut self, settings: Arc<ue::Settings>, setup: UeSetup) -> Option<UeKey> {
        let tai = self.gnbs.get(setup.gnb)?.settings().tai();
        let key = UeKey(u32::try_from(self.subscribers.len()).ok()?);
        let name = setup.subscription.supi.masked();
        let ue = Ue::new(settings, setup.subscription, setup.imeisv, tai);
        let journey = Journey::new(setup.sessions, setup.begins);
        self.subscribers.push(Subscriber {
            ue,
            journey,
            gnb: setup.gnb,
            previous_gnb: None,
            name,
            bearers: Vec::new(),
            moving: Vec::new(),
            left_tunnels: Vec::new(),
        });
        self.tally.ues += 1;
        Some(key)
    }

    /// Starts the UEs' users, each after its delay.
    pub fn begin(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.now = now;
        for _ in 0..self.in_flight.unwrap_or(self.subscribers.len()) {
            self.begin_next();
        }
        self.handle(now, Input::Timeout, out);
    }

    /// Limits the UEs that are in progress at once (a closed loop); their delays must be 0.
    pub fn limit_in_flight(&mut self, most: usize) {
        self.in_flight = Some(most.max(1));
    }

    /// The AMF's end of an association that the caller establishes.
    pub fn note_endpoint(&mut self, gnb: usize, association: u8, endpoint: SocketAddr) {
        if let Some(gnb) = self.gnbs.get_mut(gnb) {
            gnb.note_endpoint(association, endpoint);
        }
    }

    /// Cells without an AMF are barred.
    pub fn bar_cells_without_amf(&mut self) {
        self.gnbs.iter_mut().for_each(Gnb::bar_cell_without_amf);
    }

    /// Records when each service request is accepted.
    pub fn record_timeline(&mut self) {
        self.statistics.timeline = Some(Vec::new());
    }

    fn begin_next(&mut self) {
        let Some(subscriber) = self.subscribers.get_mut(self.next_ue) else { return };
        subscriber.journey.begin(self.now);
        self.reschedule_ue(UeKey(self.next_ue as u32));
        self.next_ue += 1;
    }

    /// Lets a UE that has completed its plan and is idle request service, and become idle again. Returns whether it does.
    pub fn visit(&mut self, now: Instant, key: UeKey, out: &mut Vec<Output>) -> bool {
        let is_idle = self.ue(key).is_some_and(|ue| !ue.is_connected());
        is_idle && self.perform(now, key, Arc::clone(&self.visit), out)
    }

    /// Lets a UE that has completed its plan carry out further steps. Returns whether it does.
    pub fn perform(&mut self, now: Instant, key: UeKey, steps: Arc<[Step]>, out: &mut Vec<Output>) -> bool {
        if self.progress(key) != Some(Progress::Done) {
            return false;
        }
        self.now = now;
        std::mem::swap(&mut self.out, out);
        self.advance(key, |journey, scene| journey.perform(steps, scene));
        self.run_actions(key);
        self.reschedule_ue(key);
        self.deliver_pending();
        std::mem::swap(&mut self.out, out);
        true
    }

    /// Handles one input; appends the outputs to `out`.
    pub fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Vec<Output>) {
        self.now = now;
        std::mem::swap(&mut self.out, out);
        match input {
            Input::N2Up { gnb, association, outbound_streams } => {
                self.gnb_input(gnb, gnb::Input::AssociationUp { association, outbound_streams });
            }
            Input::N2Down { gnb, association } => {
                self.gnb_input(gnb, gnb::Input::AssociationDown { association });
            }
            Input::N2 { gnb, association, stream, pdu } => {
                self.gnb_input(gnb, gnb::Input::Pdu { association, stream, octets: pdu });
            }
            Input::N3 { from, datagram } => self.receive_n3(from, datagram),
            Input::Packet { ue, session, packet } => self.send_packet(ue, session, packet),
            Input::Ue { ue, input } => self.ue_input(ue, input),
            Input::Gnb { gnb, input } => self.gnb_input(gnb, input),
            Input::Timeout => self.on_timeout(),
        }
        self.deliver_pending();
        std::mem::swap(&mut self.out, out);
    }

    /// The time at which [`Input::Timeout`] is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.schedule.next()
    }

    /// Progress of the UEs.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Statistics of the run so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// A gNB.
    pub fn gnb(&self, gnb: usize) -> Option<&Gnb> {
        self.gnbs.get(gnb)
    }

    /// A UE.
    pub fn ue(&self, ue: UeKey) -> Option<&Ue> {
        self.subscribers.get(ue.0 as usize).map(|subscriber| &subscriber.ue)
    }

    /// Progress of a UE's user.
    pub fn progress(&self, ue: UeKey) -> Option<Progress> {
        self.subscribers.get(ue.0 as usize).map(|subscriber| subscriber.journey.progress())
    }

    /// Counts each UE that has not ended as a failure, with its step, its 5GMM state and its running timers.
    pub fn count_unfinished(&mut self) {
        for subscriber in &self.subscribers {
            let step = match subscriber.journey.progress() {
                Progress::Done | Progress::Failed => continue,
                Progress::Waiting => "not begun".to_owned(),
                Progress::Under(step) => format!("in {step}"),
            };
            let timers = subscriber.ue.running_timers();
            let timers = if timers.is_empty() { "no timer".to_owned() } else { timers.join(", ") };
            let link = if subscriber.ue.is_connected() { "CONNECTED" } else { "IDLE" };
            let state = subscriber.ue.state();
            self.statistics.fail(format!("unfinished: {step}; {state}, 5GMM-{link}; {timers} running"));
        }
    }

    /// Counts a failure outside the radio network, such as of an association.
    pub fn count_failure(&mut self, what: &str) {
        self.statistics.fail(what);
    }

    fn deliver_pending(&mut self) {
        while let Some(output) = self.pending.pop_front() {
            match output {
                PendingOutput::Gnb(gnb, input) => self.gnb_input(gnb, input),
                PendingOutput::Ue(ue, signal) => self.signal_ue(ue, signal),
            }
        }
    }

    fn gnb_input(&mut self, index: usize, input: gnb::Input<'_>) {
        let Some(gnb) = self.gnbs.get_mut(index) else { return };
        let mut outputs = std::mem::take(&mut self.gnb_out);
        gnb.handle(self.now, input, &mut outputs);
        let next = gnb.next_timeout();
        for output in outputs.drain(..) {
            self.on_gnb_output(index, output);
        }
        self.gnb_out = outputs;
        self.schedule.set_wake_up(Entity::Gnb(index), next);
    }

    fn on_gnb_output(&mut self, gnb: usize, output: gnb::Output) {
        match output {
            gnb::Output::Send { association, stream, pdu } => {
                self.out.push(Output::N2 { gnb, association, stream, pdu });
            }
            gnb::Output::AddAssociation { association, endpoint } => {
                self.out.push(Output::Associate { gnb, association, endpoint });
            }
            gnb::Output::RemoveAssociation { association } => {
                self.out.push(Output::Disassociate { gnb, association });
            }
            gnb::Output::Nas { ue, nas } => self.pending.push_back(PendingOutput::Ue(ue, Signal::Nas(nas))),
            gnb::Output::SecurityActivated { ue, k_gnb, capabilities } => {
                self.pending.push_back(PendingOutput::Ue(ue, Signal::Security(k_gnb, capabilities)));
            }
            gnb::Output::HandedOver { ue, key, chaining_count, cell } => {
                let signal = Signal::HandedOver { key, chaining_count, cell };
                self.pending.push_back(PendingOutput::Ue(ue, signal));
            }
            gnb::Output::ForwardingTunnel { ue, teid, bearer } => {
                self.former_tunnels.offer(teid, Endpoint::of(ue, &bearer));
            }
            gnb::Output::Forward { ue, bearer, to } => self.former_tunnels.forward(ue, bearer, to),
            gnb::Output::Leaving { ue, cell, nas_container } => {
                self.leave_for(ue, cell, nas_container.as_deref())
            }
            gnb::Output::HandoverFailed { ue, refused } => {
                let why = if refused { HandoverFailure::Refused } else { HandoverFailure::NotPossible };
                self.fail_handover(ue, why);
            }
            gnb::Output::FlowsMoved { ue, moved, is_complete } => {
                self.pending.push_back(PendingOutput::Ue(ue, Signal::FlowsMoved { moved, is_complete }));
            }
            // Behind the bearers of the target gNB, as the user may begin the next handover at once.
            gnb::Output::PathSwitched { ue } => {
                self.pending.push_back(PendingOutput::Ue(ue, Signal::PathSwitched));
            }
            gnb::Output::BearerUp { ue, bearer } => {
                self.pending.push_back(PendingOutput::Ue(ue, Signal::Bearer(bearer, true)));
            }
            gnb::Output::BearerMoved { ue, bearer } => self.move_bearer(ue, bearer),
            gnb::Output::BearerDown { ue, bearer } => {
                self.pending.push_back(PendingOutput::Ue(ue, Signal::Bearer(bearer, false)));
            }
            gnb::Output::Reroute { ue, amf_set, message } => self.reroute(gnb, ue, amf_set, message),
            gnb::Output::Redirect { old_amf, ran_id, stream, message } => {
                self.redirect(gnb, (&old_amf, ran_id), (stream, message));
            }
            gnb::Output::Released { ue } => self.pending.push_back(PendingOutput::Ue(ue, Signal::Released)),
            gnb::Output::Paging { s_tmsi, with } => self.page(gnb, s_tmsi, with),
            gnb::Output::Event(event) => self.out.push(Output::GnbEvent { gnb, event }),
            gnb::Output::Violation(violation) => {
                let name = self.gnbs.get(gnb).map(|gnb| gnb.settings().name.clone()).unwrap_or_default();
                self.statistics.violations.add(&name, violation);
            }
        }
    }

    /// Delivers a page to the gNB's UEs; the UE with the paged identity answers.
    fn page(&mut self, gnb: usize, s_tmsi: FiveGSTmsi, with: ue::PagedWith) {
        let is_meant = |subscriber: &Subscriber| {
            subscriber.gnb / self.amfs == gnb / self.amfs
                && subscriber.ue.guti().is_some_and(|guti| guti.s_tmsi() == s_tmsi)
        };
        if let Some(at) = self.subscribers.iter().position(is_meant) {
            self.pending.push_back(PendingOutput::Ue(UeKey(at as u32), Signal::Paging(with)));
        }
    }

    fn signal_ue(&mut self, ue: UeKey, signal: Signal) {
        match signal {
            Signal::Nas(nas) => self.ue_input(ue, ue::Input::Nas(&nas)),
            Signal::Security(k_gnb, capabilities) => {
                self.ue_input(ue, ue::Input::SecurityActivated { k_gnb, capabilities });
            }
            Signal::Bearer(bearer, up) => self.note_bearer(ue, bearer, up),
            Signal::HandedOver { key, chaining_count, cell } => {
                self.enter_cell(ue, (key, chaining_count, cell))
            }
            Signal::PathSwitched => self.on_path_switched(ue),
            Signal::FlowsMoved { moved, is_complete } => self.on_flows_moved(ue, &moved, is_complete),
            Signal::Released => self.ue_input(ue, ue::Input::ConnectionReleased),
            Signal::Paging(with) => self.ue_input(ue, ue::Input::Paging(with)),
        }
    }

    fn ue_input(&mut self, key: UeKey, input: ue::Input<'_>) {
        let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) else { return };
        let mut outputs = std::mem::take(&mut self.ue_out);
        subscriber.ue.handle(self.now, input, &mut outputs);
        for output in outputs.drain(..) {
            self.on_ue_output(key, output);
        }
        self.ue_out = outputs;
        self.run_actions(key);
        self.reschedule_ue(key);
    }

    fn on_ue_output(&mut self, key: UeKey, output: ue::Output) {
        let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) else { return };
        let gnb = subscriber.gnb;
        match output {
            ue::Output::Connect { nas, cause, s_tmsi } => {
                let endpoint = self.select_endpoint(key, s_tmsi.as_ref());
                let input = gnb::Input::Connect { ue: key, nas, cause, s_tmsi };
                self.pending.push_back(PendingOutput::Gnb(endpoint, input));
            }
            ue::Output::Send(nas) => {
                self.pending.push_back(PendingOutput::Gnb(gnb, gnb::Input::Uplink { ue: key, nas }));
            }
            ue::Output::Release => {
                self.pending.push_back(PendingOutput::Gnb(gnb, gnb::Input::RadioLost { ue: key }));
            }
            ue::Output::Event(event) => {
                if event == ue::Event::Idle {
                    subscriber.ue.drop_expanded_keys();
                }
                self.out.push(Output::UeEvent { ue: key, event });
                self.advance(key, |journey, scene| journey.on_event(event, scene));
            }
            ue::Output::Violation(violation) => {
                self.statistics.violations.add(&subscriber.name, violation);
            }
        }
    }

    /// Passes an event to a user, and updates the progress counters.
    fn advance(&mut self, key: UeKey, note: impl FnOnce(&mut Journey, &mut JourneyContext<'_>)) {
        let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) else { return };
        let before = subscriber.journey.progress();
        let mut scene = JourneyContext {
            now: self.now,
            plan: &self.plan,
            statistics: &mut self.statistics,
            actions: &mut self.actions,
        };
        note(&mut subscriber.journey, &mut scene);
        let after = subscriber.journey.progress();
        self.tally.move_on(before, after);
        let has_ended = matches!((before, after), (Progress::Under(_), Progress::Done | Progress::Failed));
        if has_ended && self.in_flight.is_some() {
            self.begin_next();
        }
    }

    fn run_actions(&mut self, key: UeKey) {
        while !self.actions.is_empty() {
            for action in std::mem::take(&mut self.actions) {
                self.run_action(key, action);
            }
        }
    }

    fn run_action(&mut self, key: UeKey, action: UserAction) {
        let gnb = self.subscribers.get(key.0 as usize).map_or(0, |subscriber| subscriber.gnb);
        match action {
            UserAction::Register => self.ue_input(key, ue::Input::Register),
            UserAction::EstablishSession(request) => self.ue_input(key, ue::Input::EstablishSession(request)),
            UserAction::ReleaseSession(id) => self.ue_input(key, ue::Input::ReleaseSession(id)),
            UserAction::RequestService => self.ue_input(key, ue::Input::RequestService),
            UserAction::Deregister => self.ue_input(key, ue::Input::Deregister { switch_off: false }),
            // The gNB has lost its association, and with it the UE's connection.
            UserAction::BecomeIdle if self.ue(key).is_some_and(|ue| !ue.is_connected()) => {
                self.advance(key, |journey, scene| journey.on_event(ue::Event::Idle, scene));
            }
            UserAction::BecomeIdle => {
                let cause = CauseRadioNetwork::user_inactivity;
                self.pending
                    .push_back(PendingOutput::Gnb(gnb, gnb::Input::ReleaseContext { ue: key, cause }));
            }
            UserAction::Handover(path, target) => self.hand_over(key, path, target),
            UserAction::Reselect => self.reselect(key),
            UserAction::MoveFlows(via) => self.move_flows(key, via),
            UserAction::Page(number) => self.send_page(key, number),
            UserAction::SolicitRouter(session) => self.solicit_router(key, session),
            UserAction::RequestPrefix(session) => self.request_prefix(key, session),
            UserAction::Ping(sequence) => self.send_echo(key, sequence),
            UserAction::Probe(number) => self.send_probe(key, number),
        }
    }

    fn reschedule_ue(&mut self, key: UeKey) {
        if let Some(subscriber) = self.subscribers.get(key.0 as usize) {
            let next =
                subscriber.ue.next_timeout().into_iter().chain(subscriber.journey.next_timeout()).min();
            self.schedule.set_wake_up(Entity::Ue(key), next);
        }
    }

    fn on_timeout(&mut self) {
        while let Some(entity) = self.schedule.take_due(self.now) {
            match entity {
                Entity::Gnb(gnb) => self.gnb_input(gnb, gnb::Input::Timeout),
                Entity::Ue(ue) => {
                    self.advance(ue, Journey::on_timeout);
                    self.ue_input(ue, ue::Input::Timeout);
                }
            }
            self.deliver_pending();
        }
    }
}
