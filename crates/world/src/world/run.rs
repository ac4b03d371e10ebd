//! The phases of a world: chaos, calm, all UEs return, all UEs leave.

use super::invariant::AgreedState;
use super::user::Act;
use super::{Failure, SimEvent, World};
use crate::plan::{Plan, Residency};
use crate::stores::{StoreOperations, Stores};
use pith_types::FiveGGuti;
use pith_upf::contract::Tunnel;
use std::collections::BTreeMap;
use std::time::Duration;

/// Duration of faults and user actions.
const CHAOS: Duration = Duration::from_secs(120);
/// Duration of the calm: T3502 of UEs, and the time in which the core detects that a UE is gone.
const CALM: Duration = Duration::from_secs(25 * 60);
/// Time for all UEs to return, or to leave.
const GATHERING: Duration = Duration::from_secs(3 * 60);

/// The result of a world.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Number of messages and timers.
    pub steps: u64,
    /// Sessions of all UEs at the end.
    pub sessions: usize,
    /// Sessions with a classifier.
    pub classifiers: usize,
    /// Violations by the core that UEs and gNBs reported, with counts.
    pub violations: BTreeMap<String, u64>,
    /// Blocks that have passed to another shard.
    pub moved: u32,
    /// Instances that ended because others had taken over their UEs.
    pub ended: u32,
    /// Registrations, security contexts and sessions that UEs lost until all was idle.
    pub losses: Vec<String>,
}

impl World {
    /// Runs a plan completely.
    pub fn run(plan: Plan) -> Result<Report, Box<Failure>> {
        Self::new(plan).run_phases()
    }

    /// Runs all phases.
    pub fn run_phases(&mut self) -> Result<Report, Box<Failure>> {
        self.pass(Duration::from_secs(if self.plan.instances > 0 { 15 } else { 5 }))?;
        self.draw_scripts(CHAOS);
        self.draw_faults(CHAOS);
        self.begin_attack(CHAOS);
        self.faulty = true;
        self.pass(CHAOS)?;
        self.faulty = false;
        // A panic that was due, and found no input, would happen when the invariants of the calm are checked.
        self.panicking = None;
        self.end_attack();
        self.pass(CALM)?;
        self.load_copies(true);
        self.check_quiet()?;
        self.load_copies(false);
        self.check_losses_of_instances()?;
        if self.enemy.is_inside() {
            return Ok(self.report(AgreedState::default()));
        }
        self.everyone(|_| Act::Register)?;
        if self.plan.services.ladn {
            // A UE that has left the LADN learns the end of its session with the next update: its SMF answers while it registers.
            self.everyone(|_| Act::Register)?;
        }
        self.load_copies(true);
        let standing = self.check_agreement()?;
        self.load_copies(false);
        self.everyone(|_| Act::RequestService)?;
        self.check_subscriptions()?;
        self.everyone(|_| Act::Deregister { switch_off: false })?;
        self.load_copies(true);
        self.check_empty()?;
        Ok(self.report(standing))
    }

    fn report(&self, AgreedState { sessions, classifiers }: AgreedState) -> Report {
        let (steps, violations) = (self.watch.steps, self.watch.violations.clone());
        let (moved, ended, losses) = (self.moved, self.lost, self.losses());
        Report { steps, sessions, classifiers, violations, moved, ended, losses }
    }

    /// If only instances fail, and the residency keeps all, no UE loses anything but what an instance accepted without the store.
    fn check_losses_of_instances(&self) -> Result<(), Box<Failure>> {
        let losses = self.losses_of_stored();
        let is_strict = self.plan.has_faults_of_instances_only() && self.plan.residency == Residency::Durable;
        self.demand(losses.is_empty() || !is_strict, || format!("lost: {losses:?}"))
    }

    /// One UE registers and establishes a session without faults.
    pub fn run_single_registration(&mut self) -> Result<(), Box<Failure>> {
        self.pass(Duration::from_secs(5))?;
        for act in [Act::Register, Act::Establish(1)] {
            self.at(Duration::ZERO, SimEvent::Act { ue: 0, act });
            self.pass(Duration::from_secs(3))?;
        }
        Ok(())
    }

    /// One UE registers, establishes a session, and is handed over to the gNB of another AMF some times, without faults. After each handover
    /// UE, AMFs, SMF and UPF have the same state. Returns the 5G-GUTIs that the UE had, one at each AMF, and how often it was authenticated.
    pub fn run_handovers(&mut self, times: u32) -> Result<(Vec<FiveGGuti>, u64), Box<Failure>> {
        self.run_single_registration()?;
        let mut gutis: Vec<_> = self.ues[0].ue.guti().into_iter().collect();
        for _ in 0..times {
            let source = self.ues[0].gnb;
            self.at(Duration::ZERO, SimEvent::Act { ue: 0, act: Act::N2Handover });
            self.pass(Duration::from_secs(15))?;
            let gnb = self.ues[0].gnb;
            self.demand(gnb != source, || "the UE is not handed over".into())?;
            self.check_quiet()?;
            let agreed = self.check_agreement()?;
            self.demand(agreed.sessions == 1, || "the session is lost".into())?;
            gutis.extend(self.ues[0].ue.guti());
        }
        self.everyone(|_| Act::Deregister { switch_off: false })?;
        self.check_empty()?;
        Ok((gutis, self.authentications(0)))
    }

    /// One UE registers at an AMF that does not serve its slice, and establishes a session; twice. Returns its last 5G-GUTI, and how often it was
    /// authenticated.
    pub fn run_reallocation(&mut self) -> Result<(Option<FiveGGuti>, u64), Box<Failure>> {
        let mut guti = None;
        for _ in 0..2 {
            self.run_single_registration()?;
            for act in [Act::Idle, Act::RequestService] {
                self.at(Duration::ZERO, SimEvent::Act { ue: 0, act });
                self.pass(Duration::from_secs(5))?;
            }
            self.check_quiet()?;
            let agreed = self.check_agreement()?;
            self.demand(agreed.sessions == 1, || "there is no session".into())?;
            guti = self.ues[0].ue.guti();
            self.everyone(|_| Act::Deregister { switch_off: true })?;
            self.check_empty()?;
        }
        Ok((guti, self.authentications(0)))
    }

    /// As [`World::run_handovers`], but the UE is in CM-IDLE when it comes to the tracking area of another AMF.
    pub fn run_reselections(&mut self, times: u32) -> Result<(Vec<FiveGGuti>, u64), Box<Failure>> {
        self.run_single_registration()?;
        let mut gutis: Vec<_> = self.ues[0].ue.guti().into_iter().collect();
        for _ in 0..times {
            for act in [Act::Idle, Act::Reselect, Act::Idle, Act::RequestService] {
                self.at(Duration::ZERO, SimEvent::Act { ue: 0, act });
                self.pass(Duration::from_secs(5))?;
            }
            self.check_quiet()?;
            let agreed = self.check_agreement()?;
            self.demand(agreed.sessions == 1, || "the session is lost".into())?;
            let is_served = self.ues[0].ue.sessions().all(|session| session.user_plane);
            self.demand(is_served, || "the session has no user plane".into())?;
            gutis.extend(self.ues[0].ue.guti());
        }
        self.everyone(|_| Act::Deregister { switch_off: false })?;
        self.check_empty()?;
        Ok((gutis, self.authentications(0)))
    }

    /// One UE registers, establishes a session, becomes idle, and requests service some times, without faults. Returns what the
    /// stores did in the service requests.
    pub fn run_service_requests(&mut self, times: u32) -> Result<StoreOperations, Box<Failure>> {
        self.run_single_registration()?;
        let act = |world: &mut Self, act| {
            world.at(Duration::ZERO, SimEvent::Act { ue: 0, act });
            world.pass(Duration::from_secs(3))
        };
        act(self, Act::Idle)?;
        let before = self.stored_operations();
        for _ in 0..times {
            act(self, Act::RequestService)?;
            act(self, Act::Idle)?;
        }
        let after = self.stored_operations();
        Ok(StoreOperations {
            reads: after.reads - before.reads,
            writes: after.writes - before.writes,
            requests: after.requests - before.requests,
            embedded: after.embedded - before.embedded,
            refused: after.refused - before.refused,
        })
    }

    /// What the stores of all running processes have done.
    pub fn stored_operations(&self) -> StoreOperations {
        let stores = self.processes.iter().filter_map(|process| process.stores.as_ref());
        stores.map(Stores::operations).fold(StoreOperations::default(), StoreOperations::plus)
    }

    /// The gNB loses the tunnel of the UE's session: returns the destinations of downlink packets
    /// before and after.
    pub fn run_lost_tunnel(&mut self) -> Result<[Option<Tunnel>; 2], Box<Failure>> {
        self.run_single_registration()?;
        let before = self.upfs[0].datapath.first_downlink_tunnel();
        self.lose_tunnel();
        self.pass(Duration::from_secs(3))?;
        Ok([before, self.upfs[0].datapath.first_downlink_tunnel()])
    }

    /// The store fails while a UE in CM-IDLE requests service several times, and the process is killed in the meantime; then the store works
    /// again. Returns the number of service requests that the UE began before the kill.
    pub fn run_outage(&mut self) -> Result<usize, Box<Failure>> {
        self.run_single_registration()?;
        self.fail_stores(true);
        let mut requests = 0;
        for _ in 0..24 {
            for act in [Act::Idle, Act::RequestService] {
                self.at(Duration::ZERO, SimEvent::Act { ue: 0, act });
                self.pass(Duration::from_secs(1))?;
            }
            requests += 1;
        }
        self.crash(0);
        self.fail_stores(false);
        self.pass(CALM)?;
        for act in [Act::Register, Act::RequestService] {
            self.at(Duration::ZERO, SimEvent::Act { ue: 0, act });
            self.pass(Duration::from_secs(10))?;
        }
        self.pass(CALM)?;
        self.load_copies(true);
        self.check_agreement()?;
        self.load_copies(false);
        Ok(requests)
    }

    /// The store loses its last writes in a power failure, which ends the process; then the UE requests service, and keeps its sessions.
    /// Returns how often the UE was authenticated before and afterwards.
    pub fn run_power_failure(&mut self) -> Result<[u64; 2], Box<Failure>> {
        self.run_single_registration()?;
        let before = self.authentications(0);
        let sessions = self.ues[0].ue.sessions().count();
        self.server.lose(Duration::from_secs(1));
        self.crash(0);
        self.pass(Duration::from_secs(30))?;
        for _ in 0..2 {
            self.at(Duration::ZERO, SimEvent::Act { ue: 0, act: Act::RequestService });
            self.pass(CALM)?;
        }
        self.load_copies(true);
        self.check_agreement()?;
        self.load_copies(false);
        let left = self.ues[0].ue.sessions().count();
        self.demand(sessions > 0 && left == sessions, || format!("of {sessions} sessions {left} are left"))?;
        Ok([before, self.authentications(0)])
    }

    fn authentications(&self, ue: usize) -> u64 {
        self.journal().keys.get(self.ues[ue].subscriber.supi.as_str()).copied().unwrap_or(0)
    }

    fn fail_stores(&mut self, fails: bool) {
        for documents in self.processes.iter_mut().filter_map(|process| process.documents.as_mut()) {
            documents.fail(fails);
        }
        self.server.set_gone(fails);
    }

    fn everyone(&mut self, act: impl Fn(usize) -> Act) -> Result<(), Box<Failure>> {
        for ue in 0..self.ues.len() {
            let after = self.dice.seconds(0, 10);
            self.at(after, SimEvent::Act { ue, act: act(ue) });
        }
        self.pass(GATHERING)
    }
}
