//! NG Setup: what becomes of the connections that the gNB had before (TS 38.413 8.7.1).
//!
//! | the gNB had them with | its UEs |
//! |---|---|
//! | a former run, whose documents name them; it retains them, and is at the same host | stay in CM-CONNECTED |
//! | a former run, otherwise | in CM-IDLE |
//! | this run, over an association that has ended or that is set up again | in CM-IDLE |
//! | a run that ended after the association | in CM-IDLE: the documents name the connections until the gNB returns |
//!
//! A UE that goes to CM-IDLE *leaves* the gNB: its SMFs deactivate its user planes, so that no UPF sends to the gNB's former TEIDs. The
//! gateway answers the gNB when all have left. A context that ended at the gNB has left when its sessions are released. Of a former run,
//! documents name the gNB only for some: any gNB waits for every UE that may have a user plane according to its document.
//!
//! A connection of a former run is kept if the gNB has a UE context, no procedure was in progress and the UE has a valid security context. Until
//! its gNB performs NG Setup, at most [`RETURN_TIME`], the UE counts as connected, and its user planes are active: a gNB that retains its
//! UEs continues to forward their packets.

use crate::amf::Amf;
use crate::amf::connection::{NgConnection, RanContext};
use crate::amf::context::LeftGnb;
use crate::amf::delivery;
use crate::amf::document::StoredConnection;
use crate::amf::mobility::n2_handover;
use crate::kit::document::Names;
use crate::kit::{
    Duration, GnbHandle, Instant, Key, N2Effect, Outbox, ProcedureName, RetainedConnections, Timer,
};
use pith_types::{AmfUeNgapId, ContextId, RanUeNgapId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Time after a restart in which a gNB sets its association up again. Later it has lost its UEs.
const RETURN_TIME: Duration = Duration::from_secs(30);

/// NG Setups, and UEs that leave gNBs, by Global RAN Node ID.
#[derive(Debug, Default)]
pub(in crate::amf) struct Setups {
    /// UEs with the connections that they leave.
    leaving: BTreeMap<Arc<str>, BTreeSet<(Key, Key)>>,
    /// UEs of a former run that leave their gNBs. Any gNB waits for them: an SMF may have switched a UE's path to another one than the
    /// document of the AMF names, if the run ended in the middle of a handover.
    restored: BTreeSet<Key>,
    /// Contexts that ended with user planes, until other NFs have released what they had.
    ending: BTreeMap<ContextId, LeftGnb>,
    /// gNBs that wait until their UEs have left.
    pending: BTreeMap<Arc<str>, (GnbHandle, RetainedConnections)>,
    /// Connections of a former run that were not kept.
    ended: BTreeMap<Arc<str>, Vec<(AmfUeNgapId, RanUeNgapId)>>,
    /// Connections of a former run at the other gNBs of handovers in progress. The documents do not say which gNBs these are.
    targets: Vec<AmfUeNgapId>,
    /// Connections that gNBs which retain their UEs were requested to release: their messages may cross NG RESET.
    released: BTreeSet<AmfUeNgapId>,
    /// Connections of contexts that ended with the association of a gNB which may retain its UEs, or with a former run, until it returns.
    lost: BTreeMap<ContextId, NgConnection>,
}

impl Setups {
    /// The connection that a context had until the association of its gNB ended, if the gNB may still retain it.
    pub(in crate::amf) fn lost_connection(&self, id: ContextId) -> Option<&NgConnection> {
        self.lost.get(&id)
    }

    /// The context has ended, or has another connection.
    pub(in crate::amf) fn forget_lost(&mut self, id: ContextId) {
        self.lost.remove(&id);
    }

    /// Whether SMFs still release sessions of contexts that ended at that gNB, or it is not known at which.
    fn is_any_ending(&self, global_id: &str) -> bool {
        self.ending.values().any(|gnb| match gnb {
            LeftGnb::Named(name) => **name == *global_id,
            LeftGnb::Unknown => true,
        })
    }
}

impl Amf {
    /// The connection of a restored UE was not kept. The UE's next documents name it until the gNB returns: should this run end before, the
    /// next one has it released.
    pub(in crate::amf) fn note_left_connection(&mut self, ue: Key, left: StoredConnection) {
        let (global_id, ids) = (Arc::clone(&left.gnb), (left.id, left.ran_id));
        if self.keeps_connections()
            && let Some(id) = self.ues.id(ue)
            && let Some(gnb) = self.shared.gnbs.note_left(&global_id)
        {
            let connection = left.into_connection(gnb, ue).without_queue(RanContext::Releasing);
            self.setups.lost.insert(id, connection);
        }
        self.setups.ended.entry(global_id).or_default().push(ids);
        self.setups.restored.insert(ue);
    }

    /// A restored UE was in a handover, whose other gNB has that connection.
    pub(in crate::amf) fn note_left_target(&mut self, target: AmfUeNgapId) {
        self.setups.targets.push(target);
    }

    /// Whether a gNB was requested to release that connection when it returned.
    pub(in crate::amf) fn is_released_at_setup(&self, id: AmfUeNgapId) -> bool {
        self.setups.released.contains(&id)
    }

    /// Whether connections may outlive the process: the document of a UE names each one that its gNB may retain.
    pub(in crate::amf) fn keeps_connections(&self) -> bool {
        let tracking = self.tracker.tracking();
        self.shared.config.retains_ues && tracking.is_some_and(|tracking| !tracking.may_lag())
    }

    /// A connection ends. If that is because its gNB's association has ended, the gNB may retain it: should the process end before the gNB
    /// returns, the next run has it released.
    pub(in crate::amf) fn note_lost_connection(&mut self, key: Key, ue: Option<Key>) {
        let Some(connection) = self.shared.connections.get(key) else { return };
        if let Some(id) = ue.and_then(|ue| self.ues.id(ue))
            && self.shared.gnbs.is_lost(connection.gnb)
        {
            self.setups.lost.insert(id, connection.without_queue(RanContext::Releasing));
        }
    }

    /// A UE of a document has no connection, but requests to its SMFs may be pending: they may deactivate user planes at a gNB that the
    /// document does not name. Any gNB waits until the UE's next step is over and they have answered.
    pub(in crate::amf) fn note_left_unnamed(&mut self, ue: Key) {
        self.setups.restored.insert(ue);
    }

    /// Waits for the gNBs of a former run to return.
    pub(in crate::amf) fn expect_gnbs(&self, out: &mut Outbox) {
        let Setups { ended, targets, .. } = &self.setups;
        if self.shared.gnbs.is_expecting() || !ended.is_empty() || !targets.is_empty() {
            out.start(0, Timer::AbsentGnbs, RETURN_TIME);
        }
    }

    /// gNBs that have not returned have lost their UEs.
    pub(in crate::amf) fn expect_no_gnbs(&mut self, now: Instant, out: &mut Outbox) {
        self.setups.ended.clear();
        self.setups.targets.clear();
        self.setups.released.clear();
        for (gnb, global_id) in self.shared.gnbs.expect_no_more() {
            self.leave_gnb(gnb, Some(global_id));
        }
        self.forget_lost_connections(None);
        self.lose_connections(now, out);
    }

    /// All UEs leave a gNB. The connections are closed in batches ([`Amf::lose_connections`]).
    pub(in crate::amf) fn leave_gnb(&mut self, gnb: GnbHandle, global_id: Option<Arc<str>>) {
        let connections = self.shared.connections.of_gnb(gnb);
        if let Some(global_id) = global_id {
            let mut leaving = BTreeSet::new();
            let ue_of = |key: &Key| Some((self.shared.connections.get(*key)?.ue?, *key));
            leaving.extend(connections.iter().filter_map(ue_of));
            // UEs that were handed over to another gNB, to which SMFs still switch their paths.
            let switching = self.shared.connections.iter().filter_map(|(key, it)| {
                it.left.filter(|(former, _)| *former == gnb)?;
                Some((it.ue.filter(|ue| self.is_leaving(*ue))?, key))
            });
            leaving.extend(switching);
            if !leaving.is_empty() {
                self.setups.leaving.entry(global_id).or_default().append(&mut leaving);
            }
        }
        self.lost.extend(connections.into_iter().map(|key| (key, gnb)));
    }

    /// A context has ended, with user planes that SMFs release.
    pub(in crate::amf) fn note_ending(&mut self, id: ContextId, gnb: LeftGnb) {
        let ending = self.setups.ending.entry(id).or_insert_with(|| gnb.clone());
        if *ending != gnb {
            *ending = LeftGnb::Unknown;
        }
    }

    /// Other NFs have released what an ended context had.
    pub(in crate::amf) fn note_ended(&mut self, id: ContextId, out: &mut Outbox) {
        if self.setups.ending.remove(&id).is_some() {
            self.answer_setups(out);
        }
    }

    /// A gNB has released a UE, whose SMFs may not have deactivated its user planes yet. Should the gNB set up its association again
    /// before, it waits for that.
    pub(in crate::amf) fn note_leaving(&mut self, ue: Key, (connection, gnb): (Key, GnbHandle)) {
        if self.is_leaving(ue)
            && let Some(global_id) = self.shared.gnbs.gnb_name(gnb)
        {
            self.setups.leaving.entry(global_id.into()).or_default().insert((ue, connection));
        }
    }

    /// NG Setup: answered when no UE has a user plane at the gNB, except those that it retains.
    pub(in crate::amf) fn ng_setup(
        &mut self,
        now: Instant,
        gnb: GnbHandle,
        retains_ues: bool,
        out: &mut Outbox,
    ) {
        let Some(info) = self.shared.gnbs.get(&gnb).map(Arc::clone) else { return };
        let global_id: Arc<str> = info.global_id.as_str().into();
        let mut retained = RetainedConnections::default();
        self.forget_lost_connections(Some(&global_id));
        for (former, is_same_host) in self.shared.gnbs.returned(&info) {
            if retains_ues && is_same_host {
                self.retain_connections(now, (former, gnb), &mut retained, out);
            } else {
                self.leave_gnb(former, Some(Arc::clone(&global_id)));
            }
        }
        retained.ended.extend(self.setups.ended.remove(&global_id).unwrap_or_default());
        if retains_ues {
            retained.targets.clone_from(&self.setups.targets);
            let released = retained.ended.iter().map(|(amf, _)| amf).chain(&retained.targets);
            self.setups.released.extend(released);
        }
        self.setups.pending.insert(Arc::clone(&global_id), (gnb, retained));
        self.lose_connections(now, out);
        self.answer_setup(&global_id, out);
    }

    /// A gNB returns: NG SETUP RESPONSE ends the connections that were lost with its association, or NG RESET those of a former run. `None`:
    /// those whose gNBs are not expected any longer.
    fn forget_lost_connections(&mut self, global_id: Option<&str>) {
        let gnbs = &self.shared.gnbs;
        let ended = self.setups.lost.extract_if(.., |_, lost| gnbs.gnb_name(lost.gnb) == global_id);
        for (id, _) in ended {
            self.tracker.keep_change((id, ProcedureName::Other));
        }
    }

    /// The gNB has retained its UEs: they are reachable again.
    fn retain_connections(
        &mut self,
        now: Instant,
        (former, gnb): (GnbHandle, GnbHandle),
        retained: &mut RetainedConnections,
        out: &mut Outbox,
    ) {
        for key in self.shared.connections.of_gnb(former) {
            self.shared.connections.move_to(key, gnb);
            let Some(connection) = self.shared.connections.get(key) else { continue };
            let ids = (connection.id, connection.ran_id);
            if connection.context == RanContext::Releasing {
                // The command was lost; NG RESET takes its place.
                retained.ended.push(ids);
                self.lost.push_back((key, gnb));
                continue;
            }
            retained.kept.push(ids);
            let (Some(ue), former) = (connection.ue, connection.former) else { continue };
            if self.ues.view(ue).is_some_and(|ue| delivery::has_open_requests(&ue, former)) {
                self.with_ue(now, ue, out, |ue, env| delivery::guard_requests(ue, env));
            }
            if self.ues.view(ue).is_some_and(|ue| !ue.undelivered.is_empty()) {
                self.with_ue(now, ue, out, delivery::send_queued);
            }
        }
    }

    /// A step of a UE is over: it may have left a gNB.
    pub(in crate::amf) fn note_left(&mut self, ue: Key, out: &mut Outbox) {
        if self.setups.leaving.is_empty() && self.setups.restored.is_empty() {
            return;
        }
        let of_ue = (ue, Key::from_u64(0))..=(ue, Key::from_u64(u64::MAX));
        let ids: Vec<_> = self
            .setups
            .leaving
            .iter()
            .filter(|(_, leaving)| leaving.range(of_ue.clone()).next().is_some())
            .map(|(global_id, _)| Arc::clone(global_id))
            .collect();
        let is_restored = self.setups.restored.contains(&ue);
        if (ids.is_empty() && !is_restored) || self.is_leaving(ue) {
            return;
        }
        for global_id in ids {
            let (connections, gnbs) = (&self.shared.connections, &self.shared.gnbs);
            // The UE may have been handed over to another gNB.
            let is_there = |key| {
                connections
                    .get(key)
                    .filter(|it| it.ue == Some(ue))
                    .is_some_and(|it| gnbs.gnb_name(it.gnb).is_none_or(|name| *name == *global_id))
            };
            if let Some(leaving) = self.setups.leaving.get_mut(&global_id) {
                let left = leaving.range(of_ue.clone()).filter(|(_, key)| !is_there(*key));
                for of in left.copied().collect::<Vec<_>>() {
                    leaving.remove(&of);
                }
            }
            self.answer_setup(&global_id, out);
        }
        self.setups.restored.remove(&ue);
        if !self.is_any_restored_leaving() {
            self.answer_setups(out);
        }
    }

    /// Whether UEs of a former run still leave their gNBs. A context that was removed is among those that are ending, if it had a user plane.
    fn is_any_restored_leaving(&mut self) -> bool {
        let (restored, ues) = (&mut self.setups.restored, &self.ues);
        while restored.first().is_some_and(|ue| !ues.contains(*ue)) {
            restored.pop_first();
        }
        !restored.is_empty()
    }

    /// Answers the NG Setups of gNBs that all UEs have left.
    fn answer_setups(&mut self, out: &mut Outbox) {
        let pending: Vec<_> = self.setups.pending.keys().cloned().collect();
        pending.iter().for_each(|global_id| self.answer_setup(global_id, out));
    }

    /// Whether UPFs may still send packets for the UE to a gNB that has released it: a request to an SMF is pending, also that of a handover, or
    /// the UE has not arrived at its target gNB.
    fn is_leaving(&self, ue: Key) -> bool {
        self.ues.view(ue).is_some_and(|ue| {
            let is_under_way = ue.connection.is_none() && n2_handover::outlives_source(&ue);
            let awaits_smf = || ue.sessions.iter().any(|session| !session.calls.is_empty());
            is_under_way || ue.mobility.awaits_nf() || awaits_smf()
        })
    }

    /// Answers the NG Setup of a gNB that all UEs have left.
    fn answer_setup(&mut self, global_id: &Arc<str>, out: &mut Outbox) {
        let ues = &self.ues;
        let is_any_leaving = self.setups.leaving.get_mut(global_id).is_some_and(|leaving| {
            while leaving.first().is_some_and(|(ue, _)| !ues.contains(*ue)) {
                leaving.pop_first();
            }
            !leaving.is_empty()
        });
        if is_any_leaving || self.is_any_restored_leaving() || self.setups.is_any_ending(global_id) {
            return;
        }
        self.setups.leaving.remove(global_id);
        if let Some((gnb, connections)) = self.setups.pending.remove(global_id) {
            let shard = self.shared.config.identity.owner.shard;
            out.n2(N2Effect::SetUp { shard, gnb, connections });
        }
    }
}
