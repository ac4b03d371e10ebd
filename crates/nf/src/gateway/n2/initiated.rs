//! Interface management that the AMF initiates (TS 38.413 8.7.3, 8.7.4, 8.7.6, 8.7.7).
//!
//! ```text
//!  operator ── Reset ────> gateway ── NG RESET ─────────────────> gNB   repeated after GUARD, ATTEMPTS times
//!                                  <── NG RESET ACKNOWLEDGE ─────
//!  operator ── Capacity, Endpoint ─> gateway ── AMF CONFIGURATION UPDATE ─> gNB   repeated after GUARD, or Time To Wait
//!  NG SETUP RESPONSE of an AMF with endpoints ─>     <── … ACKNOWLEDGE, FAILURE ───
//!  queues of shards full ─> gateway ── OVERLOAD START, STOP ────> all gNBs
//! ```
//!
//! The gNB is in step with the AMF when it has answered. One that does not answer is reported to the operator.

use super::N2Gateway;
use crate::kit::{Duration, GnbHandle, Instant, Level, N2Input, Tnla};
use pith_ngap::{
    AmfConfigurationUpdate, AmfConfigurationUpdateAcknowledge, AmfConfigurationUpdateFailure, AmfTnlaToAdd,
    AmfTnlaToRemove, AmfTnlaToUpdate, Cause, CauseMisc, CauseProtocol, CpTransportLayer, NgReset,
    OverloadStart, OverloadStop, ResetScope, TimeToWait, TnlAssociationUsage,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Time in which a gNB answers; TS 38.413 leaves it to the AMF.
const GUARD: Duration = Duration::from_secs(10);

/// Times that a request is sent.
const ATTEMPTS: u32 = 3;

/// Time in which queues were full from time to time, before gNBs are requested to send less: a shorter peak is only delayed.
const PEAK: Duration = Duration::from_secs(1);

/// Interval between two increases of the reduction.
const INCREASE: Duration = Duration::from_secs(5);

/// Time without a full queue after which the overload is over.
const CALM: Duration = Duration::from_secs(5);

/// AMF Traffic Load Reduction Indication, in percent (TS 38.413 9.3.1.106).
const REDUCTIONS: [u8; 4] = [25, 50, 75, 99];

/// A request that the gNB has not answered.
#[derive(Debug)]
struct Attempt {
    until: Instant,
    left: u32,
}

/// Configuration data of the AMF that have changed for a gNB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct AmfChange {
    capacity: Option<u8>,
    /// Its endpoints, each with what becomes of it.
    endpoints: BTreeMap<SocketAddr, EndpointChange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndpointChange {
    Add(TnlAssociationUsage, u8),
    Update(TnlAssociationUsage, u8),
    Remove,
}

impl AmfChange {
    fn message(&self) -> AmfConfigurationUpdate {
        let (mut add, mut remove, mut update) = (Vec::new(), Vec::new(), Vec::new());
        for (address, change) in &self.endpoints {
            let endpoint = CpTransportLayer::of_amf(*address);
            match *change {
                EndpointChange::Add(usage, weight) => {
                    add.push(AmfTnlaToAdd { endpoint, usage: Some(usage), weight });
                }
                EndpointChange::Update(usage, weight) => {
                    update.push(AmfTnlaToUpdate { endpoint, usage: Some(usage), weight: Some(weight) });
                }
                EndpointChange::Remove => remove.push(AmfTnlaToRemove { endpoint, ran: None }),
            }
        }
        AmfConfigurationUpdate {
            amf_name: None,
            served_guamis: None,
            relative_amf_capacity: self.capacity,
            plmn_support: None,
            tnla_to_add: Some(add).filter(|list| !list.is_empty()),
            tnla_to_remove: Some(remove).filter(|list| !list.is_empty()),
            tnla_to_update: Some(update).filter(|list| !list.is_empty()),
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Later data take the place of earlier ones. The gNB has got neither: it does not know an endpoint that was to be added, and still has
    /// one that was to be removed.
    fn extend(&mut self, later: Self) {
        use EndpointChange::{Add, Remove, Update};
        self.capacity = later.capacity.or(self.capacity);
        for (address, change) in later.endpoints {
            let change = match (self.endpoints.get(&address), change) {
                (Some(Add(..)), Update(usage, weight)) => Add(usage, weight),
                (Some(Remove), Add(usage, weight)) => Update(usage, weight),
                _ => change,
            };
            self.endpoints.insert(address, change);
        }
    }
}

/// AMF CONFIGURATION UPDATE that the gNB has not answered.
#[derive(Debug)]
struct PendingUpdate {
    attempt: Attempt,
    change: AmfChange,
    /// What the next one has.
    next: AmfChange,
}

/// Queues that are full from time to time.
#[derive(Debug)]
struct Overload {
    last_full: Instant,
    /// The number of reductions that were requested.
    level: usize,
    /// When the next one is due.
    due: Instant,
}

/// The procedures in progress; at most one of each kind with a gNB.
#[derive(Debug, Default)]
pub(super) struct Initiated {
    resets: BTreeMap<GnbHandle, Attempt>,
    updates: BTreeMap<GnbHandle, PendingUpdate>,
    overload: Option<Overload>,
}

impl Initiated {
    pub(super) fn forget(&mut self, gnb: GnbHandle) {
        self.resets.remove(&gnb);
        self.updates.remove(&gnb);
    }

    /// The latest time at which [`N2Gateway::continue_initiated`] must be called.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let updates = self.updates.values().map(|update| &update.attempt);
        let attempts = self.resets.values().chain(updates).map(|attempt| attempt.until);
        let overload = self.overload.as_ref().map(|overload| match overload.level {
            level if level < REDUCTIONS.len() => overload.due.min(overload.last_full + CALM),
            _ => overload.last_full + CALM,
        });
        attempts.chain(overload).min()
    }
}

/// The requests whose time has passed, each with whether it may be repeated.
fn take_late<T>(
    requests: &mut BTreeMap<GnbHandle, T>,
    attempt_of: fn(&mut T) -> &mut Attempt,
    now: Instant,
) -> Vec<(GnbHandle, bool)> {
    let mut late = Vec::new();
    for (gnb, request) in requests.iter_mut() {
        let attempt = attempt_of(request);
        if attempt.until <= now {
            attempt.left = attempt.left.saturating_sub(1);
            attempt.until = now + GUARD;
            late.push((*gnb, attempt.left > 0));
        }
    }
    late
}

impl N2Gateway {
    /// Resets the whole interface to a gNB: its UEs lose their connections, and stay registered (TS 38.413 8.7.4.2.1). A request for a gNB
    /// that has not answered the former one has no effect.
    pub(super) fn begin_reset(&mut self, gnb: GnbHandle) {
        if !self.is_in_service(gnb) || self.initiated.resets.contains_key(&gnb) {
            return;
        }
        let until = self.admission.now + GUARD;
        self.initiated.resets.insert(gnb, Attempt { until, left: ATTEMPTS });
        let name = self.name_of(gnb);
        self.event(Level::Info, format!("gNB {name} is reset by the operator"));
        self.send_reset(gnb);
    }

    /// NG RESET ACKNOWLEDGE of the whole interface. That of a part lists its connections (TS 38.413 8.7.4.2.1); the gateway does not
    /// wait for it.
    pub(super) fn reset_is_acknowledged(&mut self, tnla: Tnla, answer: &pith_ngap::NgResetAcknowledge) {
        if let Some(gnb) = self.gnb_of(tnla).filter(|_| answer.connections.is_none()) {
            self.initiated.resets.remove(&gnb);
        }
    }

    fn send_reset(&mut self, gnb: GnbHandle) {
        self.reset_all(gnb);
        let cause = Cause::Misc(CauseMisc::om_intervention);
        self.send_common(gnb, NgReset { cause, scope: ResetScope::NgInterface }.encode());
    }

    /// Changes the Relative AMF Capacity, and informs all gNBs (TS 38.413 8.7.3.2). Every shard passes on the order of the operator: only
    /// the first one changes something.
    pub(super) fn set_capacity(&mut self, capacity: u8) {
        if self.config.relative_capacity == capacity {
            return;
        }
        self.config.relative_capacity = capacity;
        self.event(Level::Info, format!("the relative capacity of the AMF is {capacity}"));
        for gnb in self.gnbs_in_service() {
            self.update(gnb, AmfChange { capacity: Some(capacity), ..AmfChange::default() });
        }
    }

    /// NG SETUP RESPONSE is sent: the gNB learns of the endpoints with which it has no association (TS 38.413 8.7.3.2).
    pub(super) fn offer_endpoints(&mut self, gnb: GnbHandle) {
        if self.config.endpoints.len() < 2 {
            return;
        }
        let has: Vec<_> = self.ends_of(gnb).map(|(_, local)| local.ip()).collect();
        let offered = self.config.endpoints.iter().filter(|it| !has.contains(&it.address.ip()));
        let add = offered.filter_map(|it| Some((it.address, EndpointChange::Add(it.usage, it.weight?))));
        // The endpoint that the gNB has found by itself has the AMF's weight, too.
        let own = self.config.endpoints.iter().filter(|it| has.contains(&it.address.ip()));
        let own = own.filter_map(|it| Some((it.address, EndpointChange::Update(it.usage, it.weight?))));
        let endpoints = add.chain(own).collect();
        self.update(gnb, AmfChange { capacity: None, endpoints });
    }

    /// An operator changes an endpoint's weight, or removes the endpoint. Every shard passes on the order: only the first one changes
    /// something. With the weight 0, and before the removal, UEs leave the associations with the endpoint: their gNBs choose others for the
    /// next messages (TS 23.501 5.21.1.3).
    pub(super) fn change_endpoint(&mut self, address: IpAddr, weight: Option<u8>) {
        let endpoint = self.config.endpoints.iter_mut().find(|it| it.address.ip() == address);
        let Some(endpoint) = endpoint.filter(|it| it.weight != weight) else { return };
        let before = std::mem::replace(&mut endpoint.weight, weight);
        let change = match (before, weight) {
            (_, None) => EndpointChange::Remove,
            (None, Some(weight)) => EndpointChange::Add(endpoint.usage, weight),
            (Some(_), Some(weight)) => EndpointChange::Update(endpoint.usage, weight),
        };
        let socket = endpoint.address;
        let text = weight.map_or("removed".to_owned(), |weight| format!("given the weight {weight}"));
        self.event(Level::Info, format!("the N2 endpoint {address} is {text}"));
        let leaves = weight.is_none_or(|weight| weight == 0);
        for gnb in self.gnbs_in_service() {
            self.update(gnb, AmfChange { capacity: None, endpoints: [(socket, change)].into() });
            let of_endpoint =
                |tnla: &Tnla| self.associations.get(tnla).is_some_and(|it| it.local.ip() == address);
            let concerned: Vec<_> = self.associations_of(gnb).iter().copied().filter(of_endpoint).collect();
            let has_others = concerned.len() < self.associations_of(gnb).len();
            for tnla in concerned.into_iter().filter(|_| leaves && has_others) {
                self.send_to_all_shards(|| N2Input::ReleaseBindings { gnb, tnla });
            }
        }
    }

    /// Sends AMF CONFIGURATION UPDATE, after the answer to the one before.
    fn update(&mut self, gnb: GnbHandle, change: AmfChange) {
        if change.is_empty() {
            return;
        }
        if let Some(pending) = self.initiated.updates.get_mut(&gnb) {
            return pending.next.extend(change);
        }
        let attempt = Attempt { until: self.admission.now + GUARD, left: ATTEMPTS };
        self.initiated.updates.insert(gnb, PendingUpdate { attempt, change, next: AmfChange::default() });
        self.send_update(gnb);
    }

    fn send_update(&mut self, gnb: GnbHandle) {
        let message = self.initiated.updates.get(&gnb).map(|pending| pending.change.message());
        if let Some(message) = message {
            self.send_common(gnb, message.encode());
        }
    }

    /// AMF CONFIGURATION UPDATE ACKNOWLEDGE. An endpoint to which the gNB could not set up an association is offered to it again with the next
    /// NG Setup, or by the operator.
    pub(super) fn update_is_acknowledged(&mut self, tnla: Tnla, answer: &AmfConfigurationUpdateAcknowledge) {
        let Some(gnb) = self.gnb_of(tnla) else { return };
        for failed in answer.tnla_failed.iter().flatten() {
            let name = self.name_of(gnb);
            self.warn(tnla, || {
                let address = failed.endpoint.address;
                format!("gNB {name} has no association with the N2 endpoint {address}: {}", failed.cause)
            });
        }
        self.end_update(gnb);
    }

    fn end_update(&mut self, gnb: GnbHandle) {
        if let Some(ended) = self.initiated.updates.remove(&gnb) {
            self.update(gnb, ended.next);
        }
    }

    /// AMF CONFIGURATION UPDATE FAILURE: the gNB goes on with the former data. The AMF repeats the update not before Time To Wait has
    /// passed (TS 38.413 8.7.3.3).
    pub(super) fn update_is_refused(&mut self, tnla: Tnla, failure: &AmfConfigurationUpdateFailure) {
        let (name, now) = (self.name(tnla), self.admission.now);
        let pending = self.gnb_of(tnla).and_then(|gnb| self.initiated.updates.get_mut(&gnb));
        let Some(pending) = pending else { return };
        let wait = failure.time_to_wait.map_or(GUARD, length_of);
        pending.attempt.until = now + wait;
        self.warn(tnla, || format!("gNB {name} refuses AMF CONFIGURATION UPDATE: {}", failure.cause));
    }

    /// Whether the queue of a shard is full: then the edge reads no messages of UEs.
    pub fn set_overloaded(&mut self, is_full: bool) {
        if !is_full {
            return;
        }
        let now = self.admission.now;
        let begin = || Overload { last_full: now, level: 0, due: now + PEAK };
        self.initiated.overload.get_or_insert_with(begin).last_full = now;
    }

    /// A gNB that connects during an overload learns of it (TS 38.413 8.7.6).
    pub(super) fn inform_of_overload(&mut self, tnla: Tnla) {
        let level = self.initiated.overload.as_ref().map_or(0, |overload| overload.level);
        if let Some(reduction) = level.checked_sub(1).and_then(|at| REDUCTIONS.get(at).copied()) {
            self.answer(tnla, OverloadStart { traffic_load_reduction: Some(reduction) }.encode());
        }
    }

    /// Repeats requests that were not answered, and begins, increases or ends the reduction of load.
    pub(super) fn continue_initiated(&mut self, now: Instant) {
        for (gnb, may_repeat) in take_late(&mut self.initiated.resets, |attempt| attempt, now) {
            if may_repeat {
                self.send_reset(gnb);
            } else {
                self.initiated.resets.remove(&gnb);
                self.warn_of_gnb(gnb, |name| format!("gNB {name} has not answered {ATTEMPTS} NG RESETs"));
            }
        }
        for (gnb, may_repeat) in take_late(&mut self.initiated.updates, |it| &mut it.attempt, now) {
            if may_repeat {
                self.send_update(gnb);
            } else {
                self.warn_of_gnb(gnb, |name| format!("gNB {name} has not accepted AMF CONFIGURATION UPDATE"));
                self.end_update(gnb);
            }
        }
        self.continue_overload(now);
    }

    fn continue_overload(&mut self, now: Instant) {
        let Some(overload) = &mut self.initiated.overload else { return };
        if now.since(overload.last_full) >= CALM {
            let has_begun = overload.level > 0;
            self.initiated.overload = None;
            if has_begun {
                self.event(Level::Info, "the AMF is no longer overloaded: OVERLOAD STOP".to_owned());
                self.send_to_all_gnbs(&OverloadStop.encode());
            }
            return;
        }
        if overload.due > now {
            return;
        }
        let is_full = now.since(overload.last_full) < PEAK;
        let Some(reduction) = REDUCTIONS.get(overload.level).copied() else { return };
        overload.due = now + if is_full { INCREASE } else { PEAK };
        if is_full {
            overload.level += 1;
            self.event(
                Level::Warn,
                format!("the AMF is overloaded: gNBs reduce signalling by {reduction} %"),
            );
            self.send_to_all_gnbs(&OverloadStart { traffic_load_reduction: Some(reduction) }.encode());
        }
    }

    /// The others get their data with NG SETUP RESPONSE.
    fn gnbs_in_service(&self) -> Vec<GnbHandle> {
        let mut gnbs: Vec<_> =
            self.gnbs().map(|(gnb, _)| gnb).filter(|gnb| self.is_in_service(*gnb)).collect();
        gnbs.sort_unstable();
        gnbs
    }

    fn send_to_all_gnbs(&mut self, pdu: &Result<Vec<u8>, pith_ngap::EncodeError>) {
        for gnb in self.gnbs_in_service() {
            self.send_common(gnb, pdu.clone());
        }
    }

    fn warn_of_gnb(&mut self, gnb: GnbHandle, text: impl FnOnce(String) -> String) {
        let name = self.name_of(gnb);
        if let Some(tnla) = self.associations_of(gnb).first().copied() {
            self.warn(tnla, || text(name));
        }
    }

    /// UPLINK RAN CONFIGURATION TRANSFER: relays the container to the node that it names (TS 38.413 8.8.1.2, 8.8.2.2). A gNB learns
    /// another one's Xn addresses so. A container for a node that is not connected is dropped: the procedure has no answer. So is one that names
    /// another gNB than its sender as source, which would get the target's answer, or whose addresses the target would take: a logical error
    /// (TS 38.413 10.4).
    pub(super) fn relay_configuration(
        &mut self,
        tnla: Tnla,
        message: pith_ngap::UplinkRanConfigurationTransfer,
    ) {
        let source = message.son.as_ref().map(|son| son.source().map(|source| source.to_string()));
        let is_of_sender = |named: &Option<String>| {
            let sender = self.gnb_of(tnla).and_then(|gnb| self.interfaces.get(&gnb));
            sender.is_some_and(|sender| named.as_deref() == Some(sender.info.global_id.as_str()))
        };
        if let Some(named) = source.filter(|named| !is_of_sender(named)) {
            let (name, named) = (self.name(tnla), named.unwrap_or_else(|| "an unknown kind of node".into()));
            self.warn(tnla, || {
                format!("gNB {name}: RAN configuration in the name of {named} is not relayed")
            });
            return self.indicate(tnla, Cause::Protocol(CauseProtocol::semantic_error), None);
        }
        let target = message.son.as_ref().and_then(pith_ngap::SonTransfer::target);
        let handle = target.and_then(|target| self.by_global_id.get(&target.to_string()).copied());
        let handle = handle.filter(|handle| self.is_in_service(*handle));
        let Some(handle) = handle else {
            let (name, target) = (self.name(tnla), target.map(|target| target.to_string()));
            let text = format!("gNB {name}: RAN configuration for {target:?}, which is not connected");
            return self.event(Level::Debug, text);
        };
        let message = pith_ngap::DownlinkRanConfigurationTransfer { son: message.son };
        self.send_common(handle, message.encode());
    }
}

/// Time To Wait (TS 38.413 9.3.1.56).
const fn length_of(wait: TimeToWait) -> Duration {
    Duration::from_secs(match wait {
        TimeToWait::v1s => 1,
        TimeToWait::v2s => 2,
        TimeToWait::v5s => 5,
        TimeToWait::v10s => 10,
        TimeToWait::v20s => 20,
        _ => 60,
    })
}
