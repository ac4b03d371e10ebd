//! Interface management that the AMF initiates (TS 38.413 8.7.3, 8.7.4, 8.7.6, 8.7.7).
//!
//! ```text
//!  operator ── Reset ────> gateway ── NG RESET ─────────────────> gNB   repeated after GUARD, ATTEMPTS times
//!                                  <── NG RESET ACKNOWLEDGE ─────
//!  operator ── Capacity ─> gateway ── AMF CONFIGURATION UPDATE ─> gNB   repeated after GUARD, or Time To Wait
//!                                  <── … ACKNOWLEDGE, FAILURE ───
//!  queues of shards full ─> gateway ── OVERLOAD START, STOP ────> all gNBs
//! ```
//!
//! The gNB is in step with the AMF when it has answered. One that does not answer is reported to the operator.

use super::N2Gateway;
use crate::kit::{Duration, GnbHandle, Instant, Level};
use pith_ngap::{
    AmfConfigurationUpdate, AmfConfigurationUpdateFailure, Cause, CauseMisc, NgReset, OverloadStart,
    OverloadStop, ResetScope, TimeToWait,
};
use std::collections::BTreeMap;

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
    updates: BTreeMap<GnbHandle, Attempt>,
    overload: Option<Overload>,
}

impl Initiated {
    pub(super) fn forget(&mut self, gnb: GnbHandle) {
        self.resets.remove(&gnb);
        self.updates.remove(&gnb);
    }

    /// The latest time at which [`N2Gateway::continue_initiated`] must be called.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let attempts = self.resets.values().chain(self.updates.values()).map(|attempt| attempt.until);
        let overload = self.overload.as_ref().map(|overload| match overload.level {
            level if level < REDUCTIONS.len() => overload.due.min(overload.last_full + CALM),
            _ => overload.last_full + CALM,
        });
        attempts.chain(overload).min()
    }
}

/// The requests whose time has passed, each with whether it may be repeated.
fn take_late(attempts: &mut BTreeMap<GnbHandle, Attempt>, now: Instant) -> Vec<(GnbHandle, bool)> {
    let mut late = Vec::new();
    for (gnb, attempt) in attempts.iter_mut().filter(|(_, attempt)| attempt.until <= now) {
        attempt.left = attempt.left.saturating_sub(1);
        attempt.until = now + GUARD;
        late.push((*gnb, attempt.left > 0));
    }
    attempts.retain(|_, attempt| attempt.left > 0);
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
        let name = self.name(gnb);
        self.event(Level::Info, format!("gNB {name} is reset by the operator"));
        self.send_reset(gnb);
    }

    /// NG RESET ACKNOWLEDGE of the whole interface. That of a part lists its connections (TS 38.413 8.7.4.2.1); the gateway does not
    /// wait for it.
    pub(super) fn reset_is_acknowledged(&mut self, gnb: GnbHandle, answer: &pith_ngap::NgResetAcknowledge) {
        if answer.connections.is_none() {
            self.initiated.resets.remove(&gnb);
        }
    }

    fn send_reset(&mut self, gnb: GnbHandle) {
        self.reset_all(gnb);
        let cause = Cause::Misc(CauseMisc::om_intervention);
        self.answer(gnb, NgReset { cause, scope: ResetScope::NgInterface }.encode());
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
            let until = self.admission.now + GUARD;
            self.initiated.updates.insert(gnb, Attempt { until, left: ATTEMPTS });
            self.send_update(gnb);
        }
    }

    fn send_update(&mut self, gnb: GnbHandle) {
        let relative_amf_capacity = Some(self.config.relative_capacity);
        let update = AmfConfigurationUpdate {
            amf_name: None,
            served_guamis: None,
            relative_amf_capacity,
            plmn_support: None,
        };
        self.answer(gnb, update.encode());
    }

    pub(super) fn update_is_acknowledged(&mut self, gnb: GnbHandle) {
        self.initiated.updates.remove(&gnb);
    }

    /// AMF CONFIGURATION UPDATE FAILURE: the gNB goes on with the former data. The AMF repeats the update not before Time To Wait has
    /// passed (TS 38.413 8.7.3.3).
    pub(super) fn update_is_refused(&mut self, gnb: GnbHandle, failure: &AmfConfigurationUpdateFailure) {
        let (name, now) = (self.name(gnb), self.admission.now);
        let Some(attempt) = self.initiated.updates.get_mut(&gnb) else { return };
        let wait = failure.time_to_wait.map_or(GUARD, length_of);
        attempt.until = now + wait;
        self.warn(gnb, || format!("gNB {name} refuses AMF CONFIGURATION UPDATE: {}", failure.cause));
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
    pub(super) fn inform_of_overload(&mut self, gnb: GnbHandle) {
        let level = self.initiated.overload.as_ref().map_or(0, |overload| overload.level);
        if let Some(reduction) = level.checked_sub(1).and_then(|at| REDUCTIONS.get(at).copied()) {
            self.answer(gnb, OverloadStart { traffic_load_reduction: Some(reduction) }.encode());
        }
    }

    /// Repeats requests that were not answered, and begins, increases or ends the reduction of load.
    pub(super) fn continue_initiated(&mut self, now: Instant) {
        for (gnb, may_repeat) in take_late(&mut self.initiated.resets, now) {
            if may_repeat {
                self.send_reset(gnb);
            } else {
                let name = self.name(gnb);
                self.warn(gnb, || format!("gNB {name} has not answered {ATTEMPTS} NG RESETs"));
            }
        }
        for (gnb, may_repeat) in take_late(&mut self.initiated.updates, now) {
            if may_repeat {
                self.send_update(gnb);
            } else {
                let name = self.name(gnb);
                self.warn(gnb, || format!("gNB {name} has not accepted AMF CONFIGURATION UPDATE"));
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
            self.answer(gnb, pdu.clone());
        }
    }

    /// UPLINK RAN CONFIGURATION TRANSFER: relays the container to the node that it names (TS 38.413 8.8.1.2, 8.8.2.2). A gNB learns
    /// another one's Xn addresses so. A container for a node that is not connected is dropped: the procedure has no answer.
    pub(super) fn relay_configuration(
        &mut self,
        gnb: GnbHandle,
        message: pith_ngap::UplinkRanConfigurationTransfer,
    ) {
        let target = message.son.as_ref().and_then(pith_ngap::SonTransfer::target);
        let handle = target.and_then(|target| self.by_global_id.get(&target.to_string()).copied());
        let Some(handle) = handle else {
            let (name, target) = (self.name(gnb), target.map(|target| target.to_string()));
            let text = format!("gNB {name}: RAN configuration for {target:?}, which is not connected");
            return self.event(Level::Debug, text);
        };
        let message = pith_ngap::DownlinkRanConfigurationTransfer { son: message.son };
        self.answer(handle, message.encode());
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
