//! Handover of UEs between gNBs of the radio network, over Xn or through the AMF (TS 23.502 4.9.1).

use super::user_plane::Endpoint;
use super::{PendingOutput, Ran};
use crate::clock::Instant;
use crate::gnb::{self, Bearer, Cell, UeKey};
use crate::journey::{HandoverFailure, HandoverPath, HandoverTarget, Journey};
use crate::ue;
use pith_ngap::transfer::Tunnel;
use pith_pfcp::gtpu::{GTPU_PORT, Signalling};
use pith_types::Teid;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// Maximum time from the end of a handover to the End Marker in the former tunnel.
const END_MARKER: Duration = Duration::from_secs(2);

/// Tunnels remembered after their End Marker.
const ENDED: usize = 1024;

/// Tunnels to gNBs that UEs have left.
#[derive(Default)]
pub(super) struct FormerTunnels {
    /// Packets arrive until the End Marker.
    draining: HashMap<Teid, Endpoint>,
    /// Tunnels of UEs whose path is switched, and until when the End Marker is due.
    due: VecDeque<(Instant, Teid)>,
    /// Tunnels whose End Marker has arrived: no packet may follow it.
    ended: VecDeque<Teid>,
    /// Tunnels of source gNBs without a path to the target, and the UPF's tunnels into which they forward packets.
    forwarded: HashMap<Teid, Tunnel>,
    /// Tunnels of target gNBs for forwarded packets, of UEs that have not arrived; whether the source gNB uses them.
    offered: HashMap<Teid, (Endpoint, bool)>,
}

impl FormerTunnels {
    /// The owner of a tunnel without End Marker.
    pub fn draining(&self, teid: Teid) -> Option<Endpoint> {
        self.draining.get(&teid).or_else(|| self.offered.get(&teid).map(|(endpoint, _)| endpoint)).copied()
    }

    /// A target gNB has a tunnel for forwarded packets. One of an earlier attempt of the UE is void.
    pub fn offer(&mut self, teid: Teid, endpoint: Endpoint) {
        self.offered.retain(|_, (other, _)| (other.ue, other.session) != (endpoint.ue, endpoint.session));
        self.offered.insert(teid, (endpoint, false));
    }

    /// The source gNB forwards packets from now on.
    pub fn forward(&mut self, ue: UeKey, bearer: Bearer, to: Tunnel) {
        self.forwarded.insert(bearer.downlink, to);
        for (endpoint, is_used) in self.offered.values_mut() {
            *is_used |= (endpoint.ue, endpoint.session) == (ue, bearer.session);
        }
    }

    /// The UE stays at the source gNB.
    fn withdraw(&mut self, ue: UeKey, bearers: &[Bearer]) {
        for bearer in bearers {
            self.forwarded.remove(&bearer.downlink);
        }
        self.offered.retain(|_, (endpoint, _)| endpoint.ue != ue);
    }

    /// The tunnel into which packets of this one are forwarded.
    pub fn forwarded(&self, teid: Teid) -> Option<Tunnel> {
        self.forwarded.get(&teid).copied()
    }

    /// The UE has arrived: an End Marker is due in its tunnels for forwarded packets, too.
    fn expect_forwarded(&mut self, ue: UeKey, due: Instant) {
        let of_ue = |_: &Teid, (endpoint, _): &mut (Endpoint, bool)| endpoint.ue == ue;
        for (teid, (endpoint, is_used)) in self.offered.extract_if(of_ue).collect::<Vec<_>>() {
            if is_used {
                self.draining.insert(teid, endpoint);
                self.due.push_back((due, teid));
            }
        }
    }

    /// Whether the End Marker of the tunnel has arrived.
    pub fn has_ended(&self, teid: Teid) -> bool {
        self.ended.contains(&teid)
    }

    /// Packets of a tunnel that is being left arrive until its End Marker.
    pub fn drain(&mut self, teid: Teid, endpoint: Endpoint) {
        self.draining.insert(teid, endpoint);
    }

    /// The tunnel is left: its End Marker is due, unless it has arrived.
    pub fn await_end(&mut self, now: Instant, teid: Teid) {
        self.due.push_back((now + END_MARKER, teid));
    }

    /// A gNB uses the TEID again.
    pub fn forget(&mut self, teid: Teid) {
        self.draining.remove(&teid);
        self.forwarded.remove(&teid);
        self.ended.retain(|ended| *ended != teid);
    }

    /// Records an End Marker; returns whether the tunnel waits for one.
    fn end(&mut self, teid: Teid) -> bool {
        let is_awaited = self.draining.remove(&teid).is_some();
        if is_awaited {
            self.ended.truncate(ENDED - 1);
            self.ended.push_front(teid);
        }
        is_awaited
    }

    /// A tunnel whose End Marker is overdue.
    fn take_overdue(&mut self, now: Instant) -> Option<Teid> {
        while let Some((_, teid)) = self.due.pop_front_if(|(due, _)| *due <= now) {
            self.forwarded.remove(&teid);
            if self.draining.remove(&teid).is_some() {
                return Some(teid);
            }
        }
        None
    }
}

impl Ran {
    /// The UE moves to another gNB that has an AMF.
    pub(super) fn hand_over(&mut self, key: UeKey, path: HandoverPath, to: HandoverTarget) {
        let Some(subscriber) = self.subscribers.get(key.0 as usize) else { return };
        let source = subscriber.gnb;
        let previous = subscriber.previous_gnb.filter(|_| to == HandoverTarget::Previous);
        let is_possible = |gnb: &usize| *gnb != source && self.gnbs[*gnb].is_up();
        let target = previous.into_iter().chain(self.neighbours(source)).find(is_possible);
        let Some(target) = target else { return self.fail_handover(key, HandoverFailure::NoTarget) };
        match path {
            HandoverPath::Xn => self.start_xn_handover(key, source, target),
            HandoverPath::N2 => {
                let (node, tai) = (self.gnbs[target].node(), self.gnbs[target].settings().tai());
                let input = gnb::Input::RequireHandover { ue: key, node, tai };
                self.pending.push_back(PendingOutput::Gnb(source, input));
            }
        }
    }

    /// An idle UE selects a cell of the next gNB, and registers if that is outside its registration area (TS 24.501 5.5.1.3.2 a).
    pub(super) fn reselect(&mut self, key: UeKey) {
        let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) else { return };
        if subscriber.ue.is_connected() {
            return self.fail_handover(key, HandoverFailure::NotIdle);
        }
        let source = subscriber.gnb;
        let Some(target) = self.neighbours(source).find(|gnb| self.gnbs[*gnb].is_up()) else {
            return self.fail_handover(key, HandoverFailure::NoTarget);
        };
        let tai = self.gnbs[target].settings().tai();
        if let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) {
            (subscriber.gnb, subscriber.previous_gnb) = (target, Some(source));
        }
        self.ue_input(key, ue::Input::Camp(tai));
        if self.ue(key).is_some_and(|ue| ue.state() == ue::State::Registered) {
            self.advance(key, Journey::on_reselected);
        }
    }

    /// The handover did not begin, or the core refused it.
    pub(super) fn fail_handover(&mut self, key: UeKey, why: HandoverFailure) {
        self.advance(key, |journey, scene| journey.on_handover_failed(why, scene));
    }

    fn start_xn_handover(&mut self, key: UeKey, source: usize, target: usize) {
        let cell = self.gnbs[target].cell();
        let Some(handover) = self.gnbs[source].start_xn_handover(key, cell) else {
            return self.fail_handover(key, HandoverFailure::NotPossible);
        };
        self.leave_gnb(key, target);
        self.pending.push_back(PendingOutput::Gnb(target, gnb::Input::XnHandover(Box::new(handover))));
    }

    /// The UE leaves its gNB for a cell that is prepared for it (TS 23.502 4.9.1.3), unless it does not accept the NAS container.
    pub(super) fn leave_for(&mut self, key: UeKey, cell: Cell, nas_container: Option<&[u8]>) {
        let Some(source) = self.subscribers.get(key.0 as usize).map(|subscriber| subscriber.gnb) else {
            return;
        };
        let Some(target) = self.neighbours(source).find(|gnb| self.gnbs[*gnb].cell() == cell) else { return };
        self.ue_input(key, ue::Input::HandoverCommand { nas_container });
        if self.ue(key).is_some_and(ue::Ue::refuses_handover) {
            return self.stay_at(key, source);
        }
        self.leave_gnb(key, target);
        self.pending.push_back(PendingOutput::Gnb(target, gnb::Input::Arrive { ue: key }));
    }

    /// The UE does not leave, and its gNB forwards no packets.
    fn stay_at(&mut self, key: UeKey, source: usize) {
        if let Some(subscriber) = self.subscribers.get(key.0 as usize) {
            self.former_tunnels.withdraw(key, &subscriber.bearers);
        }
        self.pending.push_back(PendingOutput::Gnb(source, gnb::Input::TakeBack { ue: key }));
        self.fail_handover(key, HandoverFailure::NotAccepted);
    }

    /// From now on the UE is at another gNB. The packets in its former tunnels still reach it.
    fn leave_gnb(&mut self, key: UeKey, target: usize) {
        let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) else { return };
        subscriber.previous_gnb = Some(subscriber.gnb);
        subscriber.gnb = target;
        for bearer in &subscriber.bearers {
            if let Some(endpoint) = self.endpoints.remove(&bearer.downlink) {
                self.former_tunnels.draining.insert(bearer.downlink, endpoint);
                subscriber.left_tunnels.push(bearer.downlink);
            }
        }
    }

    /// The UE is in the cell of the target gNB.
    pub(super) fn enter_cell(&mut self, key: UeKey, (k_ng_ran, chaining_count, cell): ([u8; 32], u8, Cell)) {
        self.ue_input(key, ue::Input::HandedOver { key: k_ng_ran, chaining_count, cell });
        let gnb = self.subscribers.get(key.0 as usize).and_then(|subscriber| self.gnbs.get(subscriber.gnb));
        if let Some(tai) = gnb.map(|gnb| gnb.settings().tai()) {
            self.ue_input(key, ue::Input::Camp(tai));
        }
    }

    /// The AMF has switched the path, or knows that the UE has arrived: End Markers are due in the former tunnels.
    pub(super) fn on_path_switched(&mut self, key: UeKey) {
        if let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) {
            let due = self.now + END_MARKER;
            let left = std::mem::take(&mut subscriber.left_tunnels);
            self.former_tunnels.due.extend(left.into_iter().map(|teid| (due, teid)));
            self.former_tunnels.expect_forwarded(key, due);
        }
        self.check_end_markers();
        self.advance(key, Journey::on_handover);
        self.run_actions(key);
        self.reschedule_ue(key);
    }

    /// Counts each End Marker that has not arrived in time as a violation (TS 23.501 5.8.2.9).
    pub fn check_end_markers(&mut self) {
        while let Some(teid) = self.former_tunnels.take_overdue(self.now) {
            let text = format!("no End Marker in the tunnel of the source gNB, TEID {:#x}", teid.0);
            self.note_n3_violation("TS 23.501 5.8.2.9", text);
        }
    }

    /// The time at which the last End Marker is overdue, if one is due.
    pub fn end_markers_due(&self) -> Option<Instant> {
        let former = &self.former_tunnels;
        former.due.iter().rev().find(|(_, teid)| former.draining.contains_key(teid)).map(|(due, _)| *due)
    }

    /// The UPF sends no packet into the tunnel any longer (TS 29.281 5.1, 7.3.2).
    pub(super) fn note_end_marker(&mut self, teid: Teid) {
        if let Some(to) = self.former_tunnels.forwarded.remove(&teid) {
            let marker = Signalling::EndMarker { teid: to.teid.0 };
            self.send_signalling(SocketAddr::new(to.address, GTPU_PORT), &marker);
        }
        if self.former_tunnels.end(teid) {
            self.statistics.end_markers += 1;
        } else if self.endpoints.contains_key(&teid) {
            let text = format!("End Marker in the tunnel in use, TEID {:#x}", teid.0);
            self.note_n3_violation("TS 23.501 5.8.2.9", text);
        }
    }
}
