//! NG SETUP RESPONSE leaves when the shards permit it (TS 38.413 8.7.1).
//!
//! ```text
//!  gNB ── NG SETUP REQUEST ──> gateway ── NgSetup ──> each shard
//!                                         SetUp <──── when no UE has a user plane at the gNB from an association before
//!  gNB <── NG SETUP RESPONSE ─ gateway
//! ```
//!
//! From NG SETUP RESPONSE on, a gNB that has not retained its UEs uses TEIDs again. So a UPF must not send to the former ones any longer:
//! the shards have their SMFs deactivate the user planes first.
//!
//! A gNB that proposes to retain its UEs gets the IE back if a shard still has connections with it, which its documents name (8.7.1.2).
//! Otherwise the IE is left out, and both sides have no UEs.

use super::N2Gateway;
use crate::kit::{Duration, GnbHandle, Instant, Level, N2Input, RetainedConnections, Tnla, TnlaBinding};
use bytes::Bytes;
use pith_ngap::{NgSetupResponse, UeRetentionInformation};
use pith_types::{AmfUeNgapId, RanUeNgapId, ShardId};
use std::collections::BTreeSet;

/// An NG Setup that waits for shards.
#[derive(Debug)]
pub(super) struct PendingSetup {
    /// The associations with an NG SETUP REQUEST that is not answered.
    requesters: Vec<Tnla>,
    until: Instant,
    shards: BTreeSet<ShardId>,
    /// The gNB proposes to retain its UEs.
    retains_ues: bool,
    /// Whether a shard has kept connections.
    is_retained: bool,
    /// Connections that the gNB is to release, if it retains its UEs.
    ended: Vec<(AmfUeNgapId, Option<RanUeNgapId>)>,
    /// Messages of the shards, which follow NG SETUP RESPONSE.
    held: Vec<(TnlaBinding, Bytes)>,
    /// NG SETUP RESPONSE was sent. SCTP keeps no order between its stream and those of UEs, so messages are held until the gNB's next message
    /// shows that it has the response, or until the time has passed.
    is_answered: bool,
}

/// Time in which a gNB gets NG SETUP RESPONSE.
const ARRIVAL: Duration = Duration::from_millis(500);

/// Messages that wait for NG SETUP RESPONSE, mostly PAGING; further ones are discarded, and repeated by timers.
const MAX_HELD: usize = 4_096;

impl N2Gateway {
    /// Asks the shards whether the gNB may begin to work.
    pub(super) fn await_shards(&mut self, tnla: Tnla, gnb: GnbHandle, retains_ues: bool) {
        if self.config.setup_wait.is_zero() {
            self.respond_to_setup(tnla, false);
            return self.offer_endpoints(gnb);
        }
        let pending = PendingSetup {
            requesters: vec![tnla],
            until: self.admission.now + self.config.setup_wait,
            shards: (0..self.config.shards).map(ShardId).collect(),
            retains_ues,
            is_retained: false,
            ended: Vec::new(),
            held: Vec::new(),
            is_answered: false,
        };
        self.setups.insert(gnb, pending);
        self.send_to_all_shards(|| N2Input::NgSetup { gnb, retains_ues });
    }

    /// A shard has answered.
    pub(super) fn shard_is_set_up(
        &mut self,
        shard: ShardId,
        gnb: GnbHandle,
        connections: RetainedConnections,
    ) {
        let Some(pending) = self.setups.get_mut(&gnb) else { return };
        if !pending.shards.remove(&shard) {
            return;
        }
        pending.is_retained |= !connections.kept.is_empty();
        pending.ended.extend(connections.ended.into_iter().map(|(amf, ran)| (amf, Some(ran))));
        pending.ended.extend(connections.targets.into_iter().map(|amf| (amf, None)));
        let (is_last, is_retained) = (pending.shards.is_empty(), pending.is_retained);
        let kept = connections.kept.into_iter();
        // The block of a connection may have passed to another shard meanwhile.
        let kept: Vec<_> =
            kept.map(|(amf, ran)| (amf, ran, self.shard_of(amf.block()).unwrap_or(shard))).collect();
        if let Some(interface) = self.interfaces.get_mut(&gnb) {
            for (amf, ran, shard) in kept {
                interface.ran_ids.assign(ran, shard);
                interface.ran_ids.note_amf_id(ran, (amf, shard));
            }
        }
        if is_last {
            let ended = self.respond_to_all(gnb, is_retained);
            if is_retained {
                self.release_at_gnb(gnb, &ended);
            }
            self.offer_endpoints(gnb);
        }
    }

    /// NG SETUP RESPONSE leaves now. Returns the connections that the gNB is to release.
    fn respond_to_all(
        &mut self,
        gnb: GnbHandle,
        is_retained: bool,
    ) -> Vec<(AmfUeNgapId, Option<RanUeNgapId>)> {
        let Some(pending) = self.setups.get_mut(&gnb) else { return Vec::new() };
        (pending.is_answered, pending.until) = (true, self.admission.now + ARRIVAL);
        let (requesters, ended) = (pending.requesters.clone(), std::mem::take(&mut pending.ended));
        requesters.into_iter().for_each(|tnla| self.respond_to_setup(tnla, is_retained));
        ended
    }

    /// NG Setup over a further association of a gNB that retains its UEs. This AMF has them: they stay. While the gNB's first NG Setup waits
    /// for shards, this one waits with it.
    pub(super) fn set_up_further(&mut self, tnla: Tnla, gnb: GnbHandle) {
        match self.setups.get_mut(&gnb).filter(|pending| !pending.is_answered) {
            Some(pending) => pending.requesters.push(tnla),
            None => self.respond_to_setup(tnla, true),
        }
    }

    /// Whether the gNB may receive messages: NG SETUP RESPONSE was sent (TS 38.413 8.7.1.1).
    pub(super) fn is_in_service(&self, gnb: GnbHandle) -> bool {
        self.interfaces.contains_key(&gnb) && self.setups.get(&gnb).is_none_or(|pending| pending.is_answered)
    }

    /// The gNB has NG SETUP RESPONSE, as it sends another message over that association.
    pub(super) fn release_held(&mut self, tnla: Tnla) {
        let Some(gnb) = self.gnb_of(tnla) else { return };
        if self.setups.get(&gnb).is_some_and(|it| it.is_answered && it.requesters.contains(&tnla)) {
            self.send_held(gnb);
        }
    }

    fn send_held(&mut self, gnb: GnbHandle) {
        let held = self.setups.remove(&gnb).map(|pending| pending.held);
        held.into_iter().flatten().for_each(|(binding, pdu)| self.send(gnb, binding, pdu));
    }

    /// A message of a shard. Before NG SETUP RESPONSE the gNB accepts none (TS 38.413 8.7.1.1).
    pub(super) fn send_of_shard(&mut self, gnb: GnbHandle, binding: TnlaBinding, pdu: Bytes) {
        match self.setups.get_mut(&gnb) {
            Some(pending) if pending.held.len() < MAX_HELD => pending.held.push((binding, pdu)),
            Some(_) => {}
            None => self.send(gnb, binding, pdu),
        }
    }

    /// Answers NG Setups for which shards have not answered in time: a UPF that does not answer must not exclude a gNB for ever. No UE
    /// is retained.
    pub(super) fn end_late_setups(&mut self, now: Instant) {
        while let Some(gnb) = self.setups.iter().find(|(_, it)| it.until <= now).map(|(gnb, _)| *gnb) {
            let Some(pending) = self.setups.get_mut(&gnb) else { break };
            if pending.is_answered {
                self.send_held(gnb);
                continue;
            }
            pending.shards.clear();
            pending.is_retained = false;
            // A shard that has not answered may have kept connections, too.
            if pending.retains_ues {
                pending.held.clear();
                self.reset_all(gnb);
            }
            self.respond_to_all(gnb, false);
            self.offer_endpoints(gnb);
            let name = self.name_of(gnb);
            self.event(
                Level::Warn,
                format!("gNB {name}: user planes of its former association may not be deactivated yet"),
            );
        }
    }

    /// The time at which the next NG Setup is late.
    pub(super) fn next_late_setup(&self) -> Option<Instant> {
        self.setups.values().map(|pending| pending.until).min()
    }

    fn respond_to_setup(&mut self, tnla: Tnla, is_retained: bool) {
        let response = NgSetupResponse {
            amf_name: self.config.amf_name.clone(),
            served_guamis: self.config.guamis.clone(),
            relative_amf_capacity: self.config.relative_capacity,
            plmn_support: self.config.plmns.clone(),
            diagnostics: None,
            ue_retention: is_retained.then_some(UeRetentionInformation::ues_retained),
        };
        self.answer(tnla, response.encode());
        self.inform_of_overload(tnla);
    }
}
