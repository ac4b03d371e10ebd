//! NG interface management (TS 38.413 8.7): its effects on the UEs of this shard.

use super::{close, send_to};
use crate::amf::Amf;
use crate::amf::absent::Awaited;
use crate::amf::connection::{RanContext, RanSide};
use crate::amf::mobility::n2_handover;
use crate::amf::procedure::ue_context_release;
use crate::kit::{
    Duration, Effect, GnbHandle, GnbInfo, Instant, Key, Outbox, ResetUe, Timer, TimerKey, Tnla,
};
use pith_ngap::UeTnlaBindingReleaseRequest;
use std::collections::VecDeque;
use std::sync::Arc;

/// Lost connections closed in one batch.
pub(in crate::amf) const LOST_IN_A_TURN: usize = 64;

/// Interval between two such batches: a shard closes 12,800 connections a second, about as many sessions as a UPF
/// changes.
const LOST_TURN: Duration = Duration::from_millis(5);

impl Amf {
    /// A gNB has connected or changed its configuration.
    pub(in crate::amf) fn gnb_up(&mut self, gnb: GnbHandle, info: Arc<GnbInfo>) {
        self.shared.gnbs.insert(gnb, info);
    }

    /// A gNB has disconnected: all its connections are lost.
    pub(in crate::amf) fn gnb_down(&mut self, now: Instant, gnb: GnbHandle, out: &mut Outbox) {
        let may_retain_ues = self.keeps_connections();
        let info = self.shared.gnbs.disconnect(gnb, may_retain_ues);
        self.leave_gnb(gnb, info.map(|info| info.global_id.as_str().into()));
        self.lose_connections(now, out);
    }

    /// Closes one batch of lost connections. Each causes requests to SMFs and rules at UPFs; the
    /// limit bounds the memory of those for a gNB with many UEs. Connections that were closed in the
    /// meantime are skipped, and those of UEs that were handed over to another gNB.
    pub(in crate::amf) fn lose_connections(&mut self, now: Instant, out: &mut Outbox) {
        for _ in 0..LOST_IN_A_TURN {
            let Some((connection, gnb)) = self.lost.pop_front() else { break };
            let is_there = |at: GnbHandle| at == gnb || !self.shared.gnbs.contains_key(&at);
            if self.shared.connections.get(connection).is_some_and(|it| is_there(it.gnb)) {
                self.connection_lost(now, connection, out);
            }
        }
        if self.lost.is_empty() {
            self.lost = VecDeque::new();
        } else {
            let key = TimerKey { owner: 0, timer: Timer::LostConnections };
            out.push(Effect::StartTimer { key, after: LOST_TURN });
        }
    }

    /// NG RESET: the gNB has released these connections (TS 38.413 8.7.4.2.1), which are closed in batches as well. Unknown
    /// ids are ignored; the acknowledgement lists them nevertheless.
    pub(in crate::amf) fn reset(
        &mut self,
        now: Instant,
        gnb: GnbHandle,
        ues: Option<Vec<ResetUe>>,
        out: &mut Outbox,
    ) {
        match ues {
            None => {
                let global_id = self.shared.gnbs.get(&gnb).map(|info| info.global_id.as_str().into());
                self.leave_gnb(gnb, global_id);
            }
            Some(ues) => {
                let connections: Vec<_> = ues.iter().filter_map(|ue| self.connection_of(gnb, ue)).collect();
                self.lost.extend(connections.into_iter().map(|key| (key, gnb)));
            }
        }
        self.lose_connections(now, out);
    }

    /// UEs are to leave an association: their gNB deletes its NGAP UE-TNLA-bindings, and chooses an association again with its next
    /// message (TS 38.413 8.13.1, TS 23.502 4.2.7.2). The connections stay.
    pub(in crate::amf) fn release_bindings(&mut self, gnb: GnbHandle, tnla: Tnla, out: &mut Outbox) {
        for (key, former) in self.shared.connections.unbind(gnb, tnla) {
            let Some(connection) = self.shared.connections.get(key) else { continue };
            if matches!(connection.context, RanContext::Awaiting | RanContext::Releasing) {
                continue;
            }
            let (amf_ue_ngap_id, ran_ue_ngap_id) = (connection.id, connection.ran_id);
            let request = UeTnlaBindingReleaseRequest { amf_ue_ngap_id, ran_ue_ngap_id };
            send_to(out, RanSide { binding: former, ..connection.side() }, request.encode());
        }
    }

    /// The connection that an item of NG RESET names, by either id or both. Two ids of different connections name none.
    fn connection_of(&self, gnb: GnbHandle, ue: &ResetUe) -> Option<Key> {
        let key = match (ue.amf, ue.ran) {
            (Some(amf), _) => self.shared.connections.find(amf),
            (None, Some(ran)) => self.shared.connections.find_by_ran(gnb, ran),
            (None, None) => None,
        }?;
        let connection = self.shared.connections.get(key)?;
        // The target gNB of a handover may reset what the AMF does not know the id of.
        let is_its = |ran| connection.ran_id == ran || connection.context == RanContext::Awaiting;
        (connection.gnb == gnb && ue.ran.is_none_or(is_its)).then_some(key)
    }

    /// A connection has ended without UE CONTEXT RELEASE COMPLETE.
    pub(in crate::amf) fn connection_lost(&mut self, now: Instant, key: Key, out: &mut Outbox) {
        let ue = self.shared.connections.get(key).and_then(|connection| connection.ue);
        if ue.is_some_and(|ue| self.defers(ue, Awaited::ConnectionLost(key))) {
            return;
        }
        self.note_lost_connection(key, ue);
        let gnb = self.shared.connections.get(key).map(|connection| connection.gnb);
        self.with_env(now, out, |env| close(env, key));
        if let Some(ue) = ue {
            self.with_ue(now, ue, out, |ue, env| {
                if ue.connection != Some(key) {
                    return n2_handover::target_lost(ue, env);
                }
                ue.connection = None;
                if n2_handover::outlives_source(ue) {
                    return n2_handover::source_lost(ue, env);
                }
                ue_context_release::on_connection_lost(ue, env);
                ue_context_release::on_idle(ue, env);
            });
            if let Some(gnb) = gnb {
                self.note_leaving(ue, (key, gnb));
            }
        }
    }
}
