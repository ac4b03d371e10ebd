//! Invariants: after each step, when all is idle, and when all UEs are deregistered.

use super::counts::Counts;
use super::violation::{Reported, Reporter, Unheard};
use super::{Failure, TimerId, World};
use crate::journal::Keys;
use crate::plan::Residency;
use pith_crypto::aka::check_challenge;
use pith_crypto::keys::{Autn, Rand};
use pith_nf::kit::{Inspect, Instant, NetworkFunction, Nf};
use pith_ran::Violation;
use pith_ran::ue::State;
use pith_runtime::residency::DocumentKind;
use pith_types::BitRate;
use pith_upf::contract::QerId;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};

/// State of the invariants.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub steps: u64,
    pub violations: BTreeMap<String, u64>,
    /// The reply to a request that creates a resource was lost: its caller can't delete the resource.
    pub may_leak: bool,
    /// A process was killed before the store, which was out of order, had its last changes.
    pub was_behind: bool,
    /// The store of contexts has lost writes.
    pub has_lost_documents: bool,
    /// NFs that were killed and lost their state.
    pub killed: BTreeSet<Nf>,
    failed: Option<String>,
    /// Violations of this step.
    reported: Vec<Reported>,
    counts: BTreeMap<usize, Counts>,
    /// Sequence numbers of authentication vectors, by UE.
    sequence_numbers: BTreeSet<(usize, u64)>,
    /// The home network's sequence number was set back.
    pub is_sqn_lost: bool,
    pub unheard: Unheard,
}

/// Registered UEs and sessions after all UEs have returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct AgreedState {
    pub sessions: usize,
    pub classifiers: usize,
}

impl Watch {
    pub fn fail(&mut self, what: impl Into<String>) {
        self.failed.get_or_insert(what.into());
    }

    /// A UE or gNB reports a violation.
    pub fn violation(&mut self, by: Reporter, violation: &Violation, at: Instant) {
        *self.violations.entry(violation.to_string()).or_default() += 1;
        self.reported.push(Reported::new(by, violation, at));
    }

    /// A gNB sends a NAS message to a UE on that connection, which the UE may have left for another one. The AMF's process has got that number of
    /// keys.
    pub fn downlink_nas(&mut self, ue: usize, connection: (u64, bool), keys: (usize, Keys), nas: &[u8]) {
        if let Err(what) = self.counts.entry(ue).or_default().note(connection, keys, nas) {
            self.fail(format!("UE{}: {what}", ue + 1));
        }
    }
}

impl World {
    fn failure(&self, what: String) -> Box<Failure> {
        let ladder = self.ladder();
        let tail = ladder.len().saturating_sub(120);
        Box::new(Failure { seed: self.plan.seed, at: self.now, what, ladder: ladder[tail..].to_vec() })
    }

    pub(super) fn demand(&self, holds: bool, what: impl FnOnce() -> String) -> Result<(), Box<Failure>> {
        if holds { Ok(()) } else { Err(self.failure(what())) }
    }

    /// Checks the invariants after each step.
    pub(super) fn check_step(&mut self) -> Result<(), Box<Failure>> {
        self.watch.steps += 1;
        if let Some(what) = self.watch.failed.take() {
            return Err(self.failure(what));
        }
        let reported = std::mem::take(&mut self.watch.reported);
        if self.plan.is_faultless() && !self.enemy.is_inside() {
            for violation in reported {
                if !self.is_due(&violation) {
                    return Err(self.failure(format!("without any fault, {violation}")));
                }
            }
        }
        self.check_vectors()?;
        self.check_amfs()?;
        match self.upfs.iter().find_map(|upf| upf.datapath.duplicate()) {
            Some(duplicate) => Err(self.failure(duplicate)),
            None => Ok(()),
        }
    }

    /// No sequence number (SQN) is used for two authentication vectors (TS 33.102 C.1.1).
    fn check_vectors(&mut self) -> Result<(), Box<Failure>> {
        let vectors = std::mem::take(&mut self.journal().vectors);
        for (supi, vector) in vectors {
            let Some(ue) = self.ues.iter().position(|ue| ue.subscriber.supi.as_str() == supi) else {
                continue;
            };
            let (rand, autn) = (Rand::new(vector.rand), Autn::new(vector.autn));
            let Ok(challenge) = check_challenge(&super::radio::algorithm(ue), &rand, &autn) else { continue };
            let sqn = u64::from(challenge.sqn);
            let is_new = self.watch.sequence_numbers.insert((ue, sqn));
            self.demand(is_new || self.watch.is_sqn_lost, || {
                format!("UE{}: SQN {sqn} is used twice", ue + 1)
            })?;
        }
        Ok(())
    }

    /// Index entries lead to contexts, and every wait ends by a timer or a call. Both change in a step of their AMF only.
    fn check_amfs(&self) -> Result<(), Box<Failure>> {
        for (process, it) in self.processes.iter().enumerate() {
            for (shard, host) in it.shard_hosts.iter().enumerate() {
                let Some(amf) = host.views.amf.as_ref().filter(|amf| amf.take_changed()) else { continue };
                let audit = amf.look().audit();
                let sound = audit.dangling == 0 && audit.orphaned_connections == 0;
                self.demand(sound, || format!("AMF {process}.{shard}: {audit:?}"))?;
                if audit.in_procedure > 0 {
                    let owners = self.owners_that_wait((process, shard, Nf::Amf));
                    let what =
                        || format!("AMF: {} UEs wait, {owners} for something: {audit:?}", audit.in_procedure);
                    self.demand(owners >= audit.in_procedure, what)?;
                }
            }
        }
        Ok(())
    }

    /// Number of UEs or sessions of an NF with a running timer or a pending call.
    fn owners_that_wait(&self, place: (usize, usize, Nf)) -> usize {
        let timers = self.timers.keys().filter_map(|timer| match timer {
            TimerId::Nf { process, shard, nf, key } if (*process, *shard, *nf) == place => Some(key.owner),
            _ => None,
        });
        let journal = self.journal();
        let calls = journal.open_calls.iter().filter(|(of, _)| *of == place).map(|(_, tag)| tag.owner);
        timers.chain(calls).collect::<BTreeSet<_>>().len()
    }

    /// Long after the last fault: no procedure is in progress.
    pub(super) fn check_quiet(&self) -> Result<(), Box<Failure>> {
        // With re-allocation each gNB has both AMFs.
        let areas = if self.plan.reallocates { 1 } else { self.plan.areas };
        for amf in self.shard_hosts().filter_map(|host| host.views.amf.as_ref()) {
            let audit = amf.look().audit();
            let is_quiet = audit.in_procedure == 0
                && audit.releasing == 0
                && audit.session_calls == 0
                && audit.gnbs == self.gnbs.len() / self.plan.amfs() / areas;
            self.demand(is_quiet, || format!("AMF not quiet: {audit:?}"))?;
        }
        let unregistered = self.shard_hosts().filter(|host| !host.shard.is_ready()).count();
        self.demand(unregistered == 0, || format!("NFs of {unregistered} shards are not registered"))?;
        let calls = self.journal().open_calls.clone();
        self.demand(calls.is_empty(), || format!("{} SBI calls without answer: {calls:?}", calls.len()))?;
        self.check_owners()
    }

    fn shard_hosts(&self) -> impl Iterator<Item = &crate::network::ShardHost> {
        self.processes.iter().flat_map(|process| &process.shard_hosts)
    }

    /// The lists that operators would get from AMFs and SMFs.
    pub(super) fn inspected(&self, what: Inspect) -> Vec<Value> {
        (0..self.processes.len()).flat_map(|process| self.inspected_in(process, what)).collect()
    }

    /// As `inspected`, of one process.
    pub(super) fn inspected_in(&self, process: usize, what: Inspect) -> Vec<Value> {
        let mut list = Vec::new();
        for host in &self.processes[process].shard_hosts {
            if let Some(amf) = &host.views.amf {
                amf.look().inspect(what, &mut list);
            }
            if let Some(smf) = &host.views.smf {
                smf.look().inspect(what, &mut list);
            }
        }
        list
    }

    /// All UEs have returned: UE, AMF, SMF and UPF have the same state.
    pub(super) fn check_agreement(&self) -> Result<AgreedState, Box<Failure>> {
        let ues = self.inspected(Inspect::Ues);
        let sessions = self.inspected(Inspect::Sessions);
        let mut standing = AgreedState::default();
        for (at, sim_ue) in self.ues.iter().enumerate() {
            let state = sim_ue.ue.state();
            if self.is_kill && state == State::Deregistered {
                self.check_unknown(at, &ues, &sessions)?;
                continue;
            }
            self.demand(state == State::Registered, || format!("UE{} is {state:?}", at + 1))?;
            let known: Vec<_> =
                ues.iter().filter(|ue| sim_ue.owns(ue) && ue["rm"] == "RM-REGISTERED").collect();
            self.demand(known.len() == 1, || format!("UE{} is registered in {} AMFs", at + 1, known.len()))?;
            let guti = sim_ue.ue.guti().map(|guti| guti.to_string());
            self.demand(known[0]["guti"].as_str() == guti.as_deref(), || {
                format!("UE{} has 5G-GUTI {guti:?}, its AMF {}", at + 1, known[0]["guti"])
            })?;
            self.check_reachability(at, known[0])?;
            standing.sessions += self.check_sessions(at, known[0], &sessions)?;
        }
        self.check_user_plane(&sessions)?;
        standing.classifiers = sessions.iter().filter(|session| session["frontUpf"].is_string()).count();
        Ok(standing)
    }

    /// A deregistered UE is not registered in the core, and has no session.
    fn check_unknown(&self, at: usize, ues: &[Value], sessions: &[Value]) -> Result<(), Box<Failure>> {
        let sim_ue = &self.ues[at];
        let is_known = ues.iter().any(|ue| sim_ue.owns(ue) && ue["rm"] == "RM-REGISTERED");
        self.demand(!is_known, || format!("UE{} is deregistered, but not in its AMF", at + 1))?;
        let has_session = sessions.iter().any(|session| sim_ue.owns(session));
        self.demand(!has_session, || format!("UE{} is deregistered, and has sessions in the SMF", at + 1))
    }

    fn check_sessions(&self, at: usize, ue: &Value, sessions: &[Value]) -> Result<usize, Box<Failure>> {
        type List = BTreeSet<(u64, String)>;
        let own: List = self.ues[at]
            .ue
            .sessions()
            .map(|session| {
                let ipv4 = session.ipv4.map_or(String::new(), |ip| ip.to_string());
                // The SMF makes the interface identifier from the prefix.
                let id = session.interface_id.map(|id| u128::from(u64::from_be_bytes(id)) << 64);
                let length = 64 - self.plan.services.delegation;
                let prefix =
                    id.map_or(String::new(), |bits| format!("{}/{length}", Ipv6Addr::from_bits(bits)));
                (u64::from(session.id), ipv4 + &prefix)
            })
            .collect();
        let of_smf: List = sessions
            .iter()
            .filter(|session| self.ues[at].owns(session))
            .map(|session| {
                let address = |of: &str| session[of].as_str().unwrap_or("").to_owned();
                (session["pduSessionId"].as_u64().unwrap_or(0), address("ipv4") + &address("ipv6Prefix"))
            })
            .collect();
        let of_amf: BTreeSet<u64> = ue["sessions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|session| session["id"].as_u64())
            .collect();
        let own_ids: BTreeSet<u64> = own.iter().map(|(id, _)| *id).collect();
        // A UE that establishes a session again while its instance does not reach the store: if the instance ends, AMF and SMF have the former session.
        // UE and AMF compare the identities of sessions only (TS 24.501 9.11.3.44).
        let is_same = |(id, _): &(u64, String)| !self.may_have_former_session(at, *id);
        let (own, of_smf): (List, List) =
            (own.into_iter().filter(is_same).collect(), of_smf.into_iter().filter(is_same).collect());
        self.demand(own_ids == of_amf, || format!("UE{} has sessions {own:?}, its AMF {of_amf:?}", at + 1))?;
        // A killed AMF or a lost reply leaves the SMF with more sessions; one that was killed, or whose documents were lost, has fewer.
        let lost = self.watch.has_lost_documents || self.watch.was_behind;
        let has_fewer = self.watch.killed.contains(&Nf::Smf) || lost;
        let (more, less) = (self.may_have_unknown_sessions(), !self.is_kill && has_fewer);
        let same = (more || own.is_superset(&of_smf)) && (less || of_smf.is_superset(&own));
        self.demand(same, || format!("UE{} has sessions {own:?}, the SMF {of_smf:?}", at + 1))?;
        self.check_services(at, sessions)?;
        Ok(own_ids.len())
    }

    /// What the operator has changed is in force: the NFs were notified, and UE and UPF have the session-AMBR of each active session. A PCF's
    /// notification may have authorised another one.
    pub(super) fn check_subscriptions(&self) -> Result<(), Box<Failure>> {
        if self.tolerates_leaks() || self.has_lost_creations() || self.watch.has_lost_documents {
            return Ok(());
        }
        self.demand(!self.database.has_changes(), || {
            "NFs were not notified of changed subscriptions".into()
        })?;
        for (at, sim_ue) in self.ues.iter().enumerate() {
            let subscriber = self.database.subscriber(&sim_ue.subscriber.supi);
            let dnns = subscriber.map(|subscriber| &subscriber.slices[0].dnns[..]).unwrap_or_default();
            for session in sim_ue.ue.sessions().filter(|session| session.user_plane && !session.is_emergency)
            {
                let of_dnn = dnns.iter().find(|dnn| session.dnn.as_ref() == Some(&dnn.dnn));
                self.demand(of_dnn.is_some(), || {
                    format!("UE{} has session {}, which is not subscribed", at + 1, session.id)
                })?;
                let subscribed = of_dnn.and_then(|dnn| dnn.ambr);
                let is_policy = session.ambr == super::operator::policy_rates();
                let of_upf = self.session_ambr_at_upf(session.ipv4);
                let agrees = subscribed == Some(session.ambr) || is_policy;
                // With `soft` the SMF may have lost the last change, which the UE has got.
                if self.plan.residency == Residency::Soft && self.crash_points.crashed.is_some() {
                    continue;
                }
                self.demand(agrees && of_upf == Some(session.ambr.downlink), || {
                    format!(
                        "UE{} session {} has AMBR {:?}, at the UPF {of_upf:?}, subscribed {subscribed:?}",
                        at + 1,
                        session.id,
                        session.ambr
                    )
                })?;
            }
        }
        Ok(())
    }

    /// The session-AMBR for downlink packets at the anchor of the session with that address.
    fn session_ambr_at_upf(&self, address: Option<Ipv4Addr>) -> Option<BitRate> {
        let of_ue = |upf: &'_ crate::user_plane::UserPlane| {
            upf.datapath.sessions.values().find(|session| session.ue.v4 == address).cloned()
        };
        let session = self.upfs.iter().find_map(of_ue)?;
        let ambr = session.qers.iter().find(|qer| qer.id == QerId(1))?;
        ambr.mbr.map(|mbr| BitRate(mbr.downlink))
    }

    fn check_user_plane(&self, sessions: &[Value]) -> Result<(), Box<Failure>> {
        let of = |session: &'_ Value| [&session["ipv4"], &session["ipv6Prefix"]].map(Value::clone);
        let addresses: Vec<_> =
            sessions.iter().flat_map(of).filter_map(|it| it.as_str().map(str::to_owned)).collect();
        let different: BTreeSet<_> = addresses.iter().collect();
        self.demand(addresses.len() == different.len(), || {
            format!("addresses are not unique: {sessions:?}")
        })?;
        self.check_prefixes(sessions)?;
        let of_smf: usize = self
            .shard_hosts()
            .filter_map(|host| host.views.smf.as_ref())
            .map(|smf| smf.look().audit().n4_sessions)
            .sum();
        let of_upf: usize = self.upfs.iter().map(|upf| upf.upf.sessions().count()).sum();
        let of_datapath: usize = self.upfs.iter().map(|upf| upf.datapath.sessions.len()).sum();
        let same = of_smf == of_upf && of_upf == of_datapath;
        let forgiven = self.tolerates_leaks() || self.may_leave_upf_sessions();
        self.demand(same || forgiven, || {
            format!("N4 sessions: SMF {of_smf}, UPF {of_upf}, datapath {of_datapath}")
        })?;
        let is_known = |session: &&Value| !self.has_lost_creations() || self.is_of_ue(session);
        sessions.iter().filter(is_known).try_for_each(|session| self.check_path(session))
    }

    fn is_of_ue(&self, session: &Value) -> bool {
        let of = self.ues.iter().find(|ue| ue.owns(session));
        of.is_some_and(|ue| ue.ue.sessions().any(|own| session["pduSessionId"] == own.id))
    }

    /// Whether there may be a session that the AMF does not know.
    fn may_have_unknown_sessions(&self) -> bool {
        self.has_lost_creations()
            || !self.is_kill && (self.watch.may_leak || self.watch.killed.contains(&Nf::Amf))
    }

    /// With `soft` an NF that was killed may not know a resource at another NF that it created last. If blocks have moved, the contexts of a UE
    /// are in several shards, of which one has panicked.
    pub(super) fn has_lost_creations(&self) -> bool {
        let is_apart = self.processes.len() > 1 || self.moved > 0;
        is_apart && self.crash_points.crashed.is_some() && self.plan.residency == Residency::Soft
    }

    /// With `procedural` one NF of several may have lost what a procedure changed before its end.
    pub(super) fn has_lost_procedure(&self) -> bool {
        let is_apart = self.processes.len() > 1;
        is_apart && self.crash_points.crashed.is_some() && self.plan.residency == Residency::Procedural
    }

    /// An SMF was killed, and the AMF goes on: the path that it switched when it was killed is not in the document.
    pub(super) fn has_lost_switched_path(&self) -> bool {
        let points = &self.crash_points;
        let nfs = &self.processes[points.victim].nfs;
        points.crashed.is_some() && nfs.contains(&Nf::Smf) && !nfs.contains(&Nf::Amf)
    }

    /// With `soft` a UPF may have sessions that were not written when the shard panicked, until it gets their addresses again.
    pub(super) fn may_leave_upf_sessions(&self) -> bool {
        self.has_panicked() && self.plan.residency == Residency::Soft
    }

    /// In a kill run: a shard has panicked.
    pub(super) const fn has_panicked(&self) -> bool {
        self.crash_points.panics && self.crash_points.crashed.is_some()
    }

    /// Whether resources of killed NFs, or of lost replies, may remain.
    pub(super) fn tolerates_leaks(&self) -> bool {
        let forgetful = [Nf::Amf, Nf::Smf, Nf::Pcf];
        let is_forgotten = forgetful.iter().any(|nf| self.watch.killed.contains(nf));
        // Until the NFs have registered again it gives no access tokens, so that resources are not deleted.
        let has_no_tokens = self.plan.oauth2 && self.watch.killed.contains(&Nf::Nrf);
        !self.is_kill && (self.watch.may_leak || is_forgotten || has_no_tokens)
    }

    /// All UEs are deregistered: no state is left.
    pub(super) fn check_empty(&self) -> Result<(), Box<Failure>> {
        for (at, sim_ue) in self.ues.iter().enumerate() {
            let state = sim_ue.ue.state();
            self.demand(state == State::Deregistered, || format!("UE{} is {state:?} at the end", at + 1))?;
        }
        for host in self.shard_hosts() {
            if let Some(amf) = &host.views.amf {
                let audit = amf.look().audit();
                // Security contexts outlive the registration (TS 33.501 6.8.1.1.1).
                let nothing =
                    pith_nf::amf::Audit { gnbs: audit.gnbs, retained: audit.retained, ..Default::default() };
                self.demand(audit == nothing, || format!("left in the AMF: {audit:?}"))?;
            }
        }
        let contexts: usize = self.gnbs.iter().map(|sim_gnb| sim_gnb.gnb.ue_count()).sum();
        self.demand(contexts == 0, || format!("left in gNBs: {contexts} UE contexts"))?;
        if self.tolerates_leaks() { Ok(()) } else { self.check_no_session_is_left() }
    }

    fn check_no_session_is_left(&self) -> Result<(), Box<Failure>> {
        for host in self.shard_hosts() {
            if let Some(smf) = &host.views.smf {
                let audit = smf.look().audit();
                self.demand(audit == Default::default(), || format!("left in the SMF: {audit:?}"))?;
            }
            if let Some(pcf) = &host.views.pcf {
                let left = pcf.look().associations();
                self.demand(left == 0, || format!("left in the PCF: {left} associations"))?;
            }
        }
        for upf in &self.upfs {
            let left = (upf.upf.sessions().count(), upf.datapath.sessions.len(), upf.upf.teids_in_use());
            self.demand(left == (0, 0, 0), || format!("left in a UPF: sessions, rules, TEIDs {left:?}"))?;
        }
        // The NRF's are of NFs, which go on; challenges that no UE has answered end after 60 s.
        let mut documents = self.server.documents();
        documents.retain(|document| !matches!(document.kind, DocumentKind::Nrf | DocumentKind::Ausf));
        let amfs = self.shard_hosts().filter_map(|host| host.views.amf.as_ref());
        let retained: usize = amfs.map(|amf| amf.look().audit().retained).sum();
        self.demand(documents.len() <= retained, || format!("left in the store: {documents:?}"))
    }
}
