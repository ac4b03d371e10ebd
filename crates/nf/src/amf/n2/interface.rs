//! gNBs come and go (TS 38.413 8.7): what that means for the UEs of this shard.

use super::close;
use crate::amf::Amf;
use crate::amf::procedure::ue_context_release;
use crate::kit::{Duration, Effect, GnbHandle, GnbInfo, Instant, Key, Outbox, ResetUe, Timer, TimerKey};
use std::collections::VecDeque;
use std::sync::Arc;

/// Connections that are given up in one turn.
pub(in crate::amf) const LOST_IN_A_TURN: usize = 256;

/// Between two such turns: others get theirs, and UPFs answer. 100,000 connections are given up in two seconds.
const LOST_TURN: Duration = Duration::from_millis(5);

impl Amf {
    /// A gNB is up, or has changed.
    pub(in crate::amf) fn gnb_up(&mut self, gnb: GnbHandle, info: Arc<GnbInfo>) {
        self.shared.gnbs.insert(gnb, info);
    }

    /// A gNB is gone, and with it all connections over it.
    pub(in crate::amf) fn gnb_down(&mut self, now: Instant, gnb: GnbHandle, out: &mut Outbox) {
        self.shared.gnbs.remove(&gnb);
        self.lost.extend(self.shared.connections.of_gnb(gnb));
        self.lose_connections(now, out);
    }

    /// Lost connections, a batch in a turn: each has calls to SMFs and rules at UPFs follow, whose memory a gNB's many
    /// UEs together must not take. A key of a connection that has gone meanwhile finds nothing.
    pub(in crate::amf) fn lose_connections(&mut self, now: Instant, out: &mut Outbox) {
        for _ in 0..LOST_IN_A_TURN {
            let Some(connection) = self.lost.pop_front() else { break };
            self.connection_lost(now, connection, out);
        }
        match self.lost.is_empty() {
            true => self.lost = VecDeque::new(),
            false => {
                let key = TimerKey { owner: 0, timer: Timer::LostConnections };
                out.push(Effect::StartTimer { key, after: LOST_TURN });
            }
        }
    }

    /// NG RESET: the gNB knows nothing any more of these connections (TS 38.413 8.7.4.2.1). Ids that
    /// are not known here are left to the acknowledgement, which names them all the same.
    pub(in crate::amf) fn reset(
        &mut self,
        now: Instant,
        gnb: GnbHandle,
        ues: Option<Vec<ResetUe>>,
        out: &mut Outbox,
    ) {
        let connections = match ues {
            None => self.shared.connections.of_gnb(gnb),
            Some(ues) => ues.iter().filter_map(|ue| self.connection_of(gnb, ue)).collect(),
        };
        for connection in connections {
            self.connection_lost(now, connection, out);
        }
    }

    /// The connection that an item of NG RESET names, by either id.
    fn connection_of(&self, gnb: GnbHandle, ue: &ResetUe) -> Option<Key> {
        let key = match (ue.amf, ue.ran) {
            (Some(amf), _) => self.shared.connections.find(amf),
            (None, Some(ran)) => self.shared.connections.find_by_ran(gnb, ran),
            (None, None) => None,
        }?;
        self.shared.connections.get(key).filter(|connection| connection.gnb == gnb).map(|_| key)
    }

    /// A connection is gone without a UE CONTEXT RELEASE COMPLETE.
    pub(in crate::amf) fn connection_lost(&mut self, now: Instant, key: Key, out: &mut Outbox) {
        let ue = self.shared.connections.get(key).and_then(|connection| connection.ue);
        self.with_env(now, out, |env| close(env, key));
        if let Some(ue) = ue {
            self.with_ue(now, ue, out, |ue, env| {
                ue.connection = None;
                ue_context_release::lost(ue, env);
                ue_context_release::went_idle(ue, env);
            });
        }
    }
}
