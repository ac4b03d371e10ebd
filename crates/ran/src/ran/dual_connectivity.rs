//! UEs in dual connectivity: their downlink moves to a secondary gNB, and back to the master (TS 37.340 4.1.3).

use super::user_plane::Endpoint;
use super::{PendingOutput, Ran};
use crate::gnb::{self, Bearer, UeKey};
use crate::journey::{DownlinkVia, HandoverFailure, Journey};
use pith_ngap::transfer::Tunnel;

/// A tunnel that a session's downlink is to take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moving {
    former: Bearer,
    next: Tunnel,
}

impl Ran {
    /// The downlink of all sessions of a UE is to go through the next gNB, or through the UE's own. Until the AMF has confirmed it, packets
    /// arrive in both tunnels.
    pub(super) fn move_flows(&mut self, key: UeKey, via: DownlinkVia) {
        let Some(subscriber) = self.subscribers.get(key.0 as usize) else { return };
        let master = subscriber.gnb;
        let bearers = subscriber.bearers.clone();
        let target = match via {
            DownlinkVia::Secondary => self.neighbours(master).find(|gnb| self.gnbs[*gnb].is_up()),
            DownlinkVia::Master => Some(master),
        };
        let Some(target) = target else { return self.fail_flow_mobility(key, HandoverFailure::NoTarget) };
        let mut tunnels = Vec::with_capacity(bearers.len());
        for former in bearers {
            let next = self.gnbs[target].open_tunnel();
            if let Some(endpoint) = self.endpoints.remove(&former.downlink) {
                self.former_tunnels.drain(former.downlink, endpoint);
            }
            self.endpoints.insert(next.teid, Endpoint::of(key, &former));
            self.former_tunnels.forget(next.teid);
            tunnels.push((former.session, next));
            if let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) {
                subscriber.moving.push(Moving { former, next });
            }
        }
        let input = gnb::Input::MoveFlows { ue: key, tunnels };
        self.pending.push_back(PendingOutput::Gnb(master, input));
    }

    /// The AMF has answered, or the gNB cannot ask it: End Markers are due in the tunnels that were left.
    pub(super) fn on_flows_moved(&mut self, key: UeKey, moved: &[Bearer], is_complete: bool) {
        let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) else { return };
        for Moving { former, next } in std::mem::take(&mut subscriber.moving) {
            let bearer = moved.iter().find(|bearer| bearer.session == former.session);
            if let Some(bearer) = bearer {
                // Flows that were added meanwhile have the new tunnel, too.
                self.endpoints.insert(next.teid, Endpoint::of(key, bearer));
                self.endpoints.remove(&former.downlink);
                self.former_tunnels.await_end(self.now, former.downlink);
                subscriber.bearers.retain(|other| other.session != bearer.session);
                subscriber.bearers.push(*bearer);
            } else {
                let bearer = subscriber.bearers.iter().find(|bearer| bearer.session == former.session);
                let bearer = bearer.copied().unwrap_or(former);
                self.endpoints.remove(&next.teid);
                self.former_tunnels.forget(former.downlink);
                self.endpoints.insert(former.downlink, Endpoint::of(key, &bearer));
            }
        }
        self.check_end_markers();
        if is_complete {
            self.advance(key, Journey::on_flows_moved);
        } else {
            self.fail_flow_mobility(key, HandoverFailure::NotConfirmed);
        }
        self.run_actions(key);
        self.reschedule_ue(key);
    }

    /// A session that is moving is released.
    pub(super) fn forget_moving(&mut self, key: UeKey, session: u8) {
        let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) else { return };
        let at = subscriber.moving.iter().position(|moving| moving.former.session == session);
        if let Some(Moving { former, next }) = at.map(|at| subscriber.moving.swap_remove(at)) {
            self.endpoints.remove(&next.teid);
            self.former_tunnels.forget(former.downlink);
        }
    }

    fn fail_flow_mobility(&mut self, key: UeKey, why: HandoverFailure) {
        self.advance(key, |journey, scene| journey.on_flows_not_moved(why, scene));
    }
}
