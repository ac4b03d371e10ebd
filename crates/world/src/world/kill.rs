//! One run of `make kill`: a procedure, the death of a process at one crash point of it, and what must hold afterwards.
//!
//! ```text
//!  preparation ─> procedure, crash ─> all is idle ─> each UE uses its session ─> all UEs deregister ─> nothing is left
//! ```

use super::history::Ends;
use super::user::{Act, SubscriptionChange};
use super::{Failure, SimEvent, World};
use crate::kill::{Breach, BreachKind, Procedure};
use crate::plan::Residency;
use pith_nf::kit::Inspect;
use pith_ran::ue::State;
use std::time::Duration;

/// The longest time until all is idle: the core detects that a UE is gone, T3502 of UEs.
const PATIENCE: Duration = Duration::from_secs(40 * 60);

/// The time in which blocks pass, unless a transaction goes on.
const MOVING: Duration = Duration::from_millis(60);

/// PDU session identity of a session that no procedure has.
const ANOTHER: u8 = 9;

/// The result of a part of a run.
type Run<T> = Result<T, Breach>;

impl World {
    /// Runs the procedure, with a crash of the victim at that point if there is one, or a panic of its shard. Returns the number of crash points.
    pub(crate) fn run_kill(
        &mut self,
        procedure: &Procedure,
        (victim, panics): (usize, bool),
        at: Option<u64>,
    ) -> Run<u64> {
        self.is_kill = true;
        self.crash_points.victim = victim;
        self.crash_points.panics = panics;
        self.divide_blocks();
        self.watched_pass(Duration::from_secs(3))?;
        self.prepare_bystanders()?;
        for act in procedure.before {
            self.act_and_pass(*act)?;
        }
        self.watched_pass(procedure.lead)?;
        if self.plan.instances > 0 {
            self.crash_points.victim = self.instance_of_first_ue();
        }
        self.begin_histories();
        self.count_crash_points(at);
        self.at(Duration::ZERO, SimEvent::Act { ue: 0, act: procedure.act });
        self.watched_pass(procedure.window)?;
        let points = self.end_crash_points();
        let crashed = self.crash_points.crashed.is_some();
        self.demand(at.is_none() || crashed, || format!("there are only {points} crash points"))
            .map_err(of(BreachKind::Disagreement))?;
        let used = self
            .synchronise()
            .and_then(|()| self.settle())
            .and_then(|()| self.subscribe_again(procedure))
            .and_then(|()| self.use_sessions(at.unwrap_or(0)))
            .and_then(|()| self.wait_until(BreachKind::Disagreement, Self::check_subscriptions));
        // A loss may be why they do not agree.
        self.check_losses(procedure.ends)?;
        used?;
        self.leave()?;
        Ok(points)
    }

    /// Runs the procedure; that much later, if at all, all blocks with contexts pass to another shard, and with `back` return at once. With
    /// `panic_at` a shard panics at that input after the begin of the moves. Returns how many blocks passed, and the inputs at which a
    /// shard could panic.
    pub(crate) fn run_move(
        &mut self,
        procedure: &Procedure,
        (after, back): (Option<Duration>, bool),
        panic_at: Option<u64>,
    ) -> Run<(u32, u64)> {
        self.is_kill = true;
        self.watched_pass(Duration::from_secs(3))?;
        self.prepare_bystanders()?;
        for act in procedure.before {
            self.act_and_pass(*act)?;
        }
        self.watched_pass(procedure.lead)?;
        self.begin_histories();
        self.at(Duration::ZERO, SimEvent::Act { ue: 0, act: procedure.act });
        self.watched_pass(after.unwrap_or_default())?;
        let times = after.map_or(0, |_| 1 + u8::from(back));
        self.count_panics(panic_at);
        for _ in 0..times {
            for process in 0..self.processes.len() {
                self.move_all(process);
            }
            self.watched_pass(Duration::from_millis(if back { 3 } else { 0 }))?;
        }
        self.watched_pass(MOVING)?;
        let points = self.end_crash_points();
        self.watched_pass(procedure.window)?;
        let variant = after.unwrap_or_default().as_millis() as u64 / 7 + panic_at.unwrap_or_default();
        let used = self
            .synchronise()
            .and_then(|()| self.settle())
            .and_then(|()| self.subscribe_again(procedure))
            .and_then(|()| self.use_sessions(variant));
        self.check_losses(procedure.ends)?;
        used?;
        self.leave()?;
        Ok((self.moved, points))
    }

    /// The instance that has the first UE; in some worlds another one, or if none has it.
    fn instance_of_first_ue(&self) -> usize {
        let has_ue = |process: &usize| {
            let ues = self.inspected_in(*process, Inspect::Ues);
            ues.iter().any(|ue| self.ues[0].owns(ue))
        };
        let instances = self.plan.instances;
        let other = (self.plan.seed / 2) as usize;
        match (0..instances).find(has_ue) {
            Some(process) if !self.plan.seed.is_multiple_of(5) => process,
            Some(process) => (process + 1) % instances,
            None => other % instances,
        }
    }

    /// Passes time; names the kind of a broken invariant.
    fn watched_pass(&mut self, time: Duration) -> Run<()> {
        self.pass(time).map_err(|failure| {
            let is_reuse = ["NAS COUNT", "SQN"].iter().any(|word| failure.what.contains(word));
            of(if is_reuse { BreachKind::Reuse } else { BreachKind::Violation })(failure)
        })
    }

    /// All UEs but the first have a session; every second one is idle.
    fn prepare_bystanders(&mut self) -> Run<()> {
        let acts = [Act::Register, Act::Establish(1), Act::Idle];
        for (number, act) in acts.into_iter().enumerate() {
            for ue in 1..self.ues.len() {
                if number < 2 || (ue as u64 + self.plan.seed).is_multiple_of(2) {
                    self.at(Duration::ZERO, SimEvent::Act { ue, act });
                }
            }
            self.watched_pass(Duration::from_secs(2))?;
        }
        Ok(())
    }

    fn act_and_pass(&mut self, act: Act) -> Run<()> {
        self.at(Duration::ZERO, SimEvent::Act { ue: 0, act });
        self.watched_pass(Duration::from_secs(if act == Act::Restart { 8 } else { 3 }))
    }

    /// Waits until the condition holds.
    fn wait_until(
        &mut self,
        kind: BreachKind,
        condition: impl Fn(&Self) -> Result<(), Box<Failure>>,
    ) -> Run<()> {
        let until = self.now + PATIENCE;
        let mut step = Duration::from_secs(4);
        loop {
            self.watched_pass(step)?;
            self.load_copies(true);
            let result = condition(self);
            self.load_copies(false);
            match result {
                Ok(()) => return Ok(()),
                Err(failure) if self.now >= until => return Err(of(kind)(failure)),
                Err(_) => step = (step * 2).min(Duration::from_secs(60)),
            }
        }
    }

    /// Waits until nothing is in progress, and UEs and core agree.
    fn settle(&mut self) -> Run<()> {
        let is_settled = |world: &Self| {
            world.check_ues_idle()?;
            world.check_quiet()?;
            world.check_agreement().map(drop)
        };
        self.wait_until(BreachKind::Disagreement, is_settled)
    }

    /// If one NF of several was killed, a session may have been released by one side only: messages for the NF that was down
    /// were lost. The sides agree after the UE's next message, which has the PDU session status (TS 24.501 5.5.1.3.4). With `soft` the
    /// SMF may have lost a session, or its user plane: the AMF learns that when the UE requests service. A session of the LADN that ends while its
    /// UE has no user plane ends without the UE.
    fn synchronise(&mut self) -> Run<()> {
        // With `soft` the document of each NF is behind by a time of its own.
        let is_soft = self.plan.residency == Residency::Soft;
        let may_differ = self.crash_points.crashed.is_some() && (self.processes.len() > 1 || is_soft);
        if !may_differ && !self.plan.services.ladn {
            return Ok(());
        }
        let is_idle = |world: &Self| {
            world.check_ues_idle()?;
            world.check_quiet()
        };
        self.wait_until(BreachKind::Disagreement, is_idle)?;
        if self.check_agreement().is_ok() {
            return Ok(());
        }
        self.update_registrations();
        if self.plan.services.ladn {
            // The SMF may have ended the session while the UE registered.
            self.watched_pass(Duration::from_secs(15))?;
            self.update_registrations();
        }
        if is_soft && may_differ {
            for act in [Act::Idle, Act::RequestService] {
                self.watched_pass(Duration::from_secs(15))?;
                for ue in self.registered_ues() {
                    self.at(Duration::ZERO, SimEvent::Act { ue, act });
                }
            }
        }
        Ok(())
    }

    fn update_registrations(&mut self) {
        for ue in self.registered_ues() {
            self.at(Duration::ZERO, SimEvent::Act { ue, act: Act::Register });
        }
    }

    /// No UE waits for anything but the next periodic update.
    fn check_ues_idle(&self) -> Result<(), Box<Failure>> {
        for (at, sim_ue) in self.ues.iter().enumerate() {
            let timers = sim_ue.ue.running_timers();
            let is_idle = timers.iter().all(|timer| *timer == "T3512");
            self.demand(is_idle, || format!("UE{} waits: {timers:?}", at + 1))?;
        }
        Ok(())
    }

    /// Registered UEs are served: uplink data, downlink data, an update of the registration or another session, in turn.
    fn use_sessions(&mut self, variant: u64) -> Run<()> {
        let act = match variant % 4 {
            0 => Act::RequestService,
            1 => Act::DownlinkFor { lost: false },
            2 => Act::Register,
            _ => Act::Establish(ANOTHER),
        };
        for ue in self.registered_ues() {
            self.at(Duration::ZERO, SimEvent::Act { ue, act });
        }
        self.settle()?;
        for ue in self.registered_ues() {
            let mut sessions = self.ues[ue].ue.sessions();
            let is_served = match act {
                Act::RequestService => sessions.all(|session| session.user_plane),
                Act::DownlinkFor { .. } => {
                    self.is_in_mico_mode(ue) || sessions.next().is_none_or(|session| session.user_plane)
                }
                // A UE has one emergency session at most.
                Act::Establish(_) if self.ues[ue].service.is_emergency() => sessions.next().is_some(),
                Act::Establish(id) => sessions.any(|session| session.id == id),
                _ => true,
            };
            self.demand(is_served, || format!("UE{}: {act:?} does not activate a user plane", ue + 1))
                .map_err(of(BreachKind::Disagreement))?;
        }
        Ok(())
    }

    /// A data network that the procedure has taken from the first UE is subscribed again.
    fn subscribe_again(&mut self, procedure: &Procedure) -> Run<()> {
        if procedure.act != Act::ChangeSubscription(SubscriptionChange::End) {
            return Ok(());
        }
        self.wait_until(BreachKind::Disagreement, Self::check_subscriptions)?;
        self.act_and_pass(Act::ChangeSubscription(SubscriptionChange::Begin))?;
        self.settle()
    }

    fn check_losses(&self, ends: Ends) -> Run<()> {
        match self.first_loss(ends) {
            Some(loss) => self.demand(false, || loss).map_err(of(BreachKind::Loss)),
            None => Ok(()),
        }
    }

    fn registered_ues(&self) -> Vec<usize> {
        (0..self.ues.len()).filter(|ue| self.ues[*ue].ue.state() == State::Registered).collect()
    }

    /// All UEs deregister; nothing is left in the core.
    fn leave(&mut self) -> Run<()> {
        for ue in self.registered_ues() {
            self.at(Duration::ZERO, SimEvent::Act { ue, act: Act::Deregister { switch_off: false } });
        }
        self.wait_until(BreachKind::Leak, |world| {
            world.check_quiet()?;
            world.check_empty()?;
            world.check_database()?;
            world.check_documents()
        })
    }

    /// No context of a UE, session or association has a document: a restart would bring it back.
    fn check_documents(&self) -> Result<(), Box<Failure>> {
        let left = self.processes.iter().find_map(|process| process.documents.as_ref()?.any());
        self.demand(left.is_none(), || format!("left in the store of contexts: {left:?}"))
    }

    /// No subscription of an NF, and no registration of an SMF, is left in the database.
    fn check_database(&self) -> Result<(), Box<Failure>> {
        let is_of_session =
            |path: &str| path.contains("sdm-subscriptions") || path.contains("smf-registrations");
        let left = self.database.resources().find(|(_, path)| is_of_session(path));
        self.demand(left.is_none(), || format!("left in the UDR: {left:?}"))
    }
}

fn of(kind: BreachKind) -> impl Fn(Box<Failure>) -> Breach {
    move |failure| Breach { kind, failure }
}
