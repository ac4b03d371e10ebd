//! Handover of UEs between gNBs of the radio network, over Xn or through the AMF (TS 23.502 4.9.1).

use super::{PendingOutput, Ran};
use crate::gnb::{self, Cell, UeKey};
use crate::journey::Journey;
use crate::ue;
use pith_types::Teid;

impl Ran {
    /// The UE moves to the next gNB that has an AMF.
    pub(super) fn start_xn_handover(&mut self, key: UeKey) {
        let Some(source) = self.subscribers.get(key.0 as usize).map(|subscriber| subscriber.gnb) else {
            return;
        };
        let target = self.neighbours(source).find(|gnb| self.gnbs[*gnb].is_up());
        let handover = target.and_then(|target| {
            let cell = self.gnbs[target].cell();
            Some((target, self.gnbs.get_mut(source)?.start_xn_handover(key, cell)?))
        });
        let Some((target, handover)) = handover else {
            return self.advance(key, Journey::on_handover_failed);
        };
        for bearer in handover.bearers() {
            if let Some(endpoint) = self.endpoints.remove(&bearer.downlink) {
                self.draining.insert(bearer.downlink, endpoint);
            }
        }
        if let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) {
            subscriber.gnb = target;
        }
        self.pending.push_back(PendingOutput::Gnb(target, gnb::Input::XnHandover(Box::new(handover))));
    }

    /// The UE's gNB requires a handover to the next gNB that has an AMF (TS 23.502 4.9.1.3).
    pub(super) fn require_n2_handover(&mut self, key: UeKey) {
        let Some(source) = self.subscribers.get(key.0 as usize).map(|subscriber| subscriber.gnb) else {
            return;
        };
        let target = self.neighbours(source).find(|gnb| self.gnbs[*gnb].is_up());
        let Some(target) = target else { return self.advance(key, Journey::on_handover_failed) };
        let (node, tai) = (self.gnbs[target].node(), self.gnbs[target].settings().tai());
        let input = gnb::Input::RequireHandover { ue: key, node, tai };
        self.pending.push_back(PendingOutput::Gnb(source, input));
    }

    /// The UE leaves its gNB for a cell that is prepared for it.
    pub(super) fn leave_for(&mut self, key: UeKey, cell: Cell) {
        let Some(source) = self.subscribers.get(key.0 as usize).map(|subscriber| subscriber.gnb) else {
            return;
        };
        let Some(target) = self.neighbours(source).find(|gnb| self.gnbs[*gnb].cell() == cell) else { return };
        let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) else { return };
        subscriber.gnb = target;
        for bearer in &subscriber.bearers {
            if let Some(endpoint) = self.endpoints.remove(&bearer.downlink) {
                self.draining.insert(bearer.downlink, endpoint);
            }
        }
        self.pending.push_back(PendingOutput::Gnb(target, gnb::Input::Arrive { ue: key }));
    }

    /// The UE is in the cell of the target gNB.
    pub(super) fn enter_cell(&mut self, key: UeKey, (k_ng_ran, chaining_count, cell): ([u8; 32], u8, Cell)) {
        self.ue_input(key, ue::Input::HandedOver { key: k_ng_ran, chaining_count, cell });
        let gnb = self.subscribers.get(key.0 as usize).and_then(|subscriber| self.gnbs.get(subscriber.gnb));
        if let Some(tai) = gnb.map(|gnb| gnb.settings().tai()) {
            self.ue_input(key, ue::Input::Camp(tai));
        }
    }

    /// The AMF has switched the path.
    pub(super) fn on_path_switched(&mut self, key: UeKey) {
        self.advance(key, Journey::on_handover);
        self.run_actions(key);
        self.reschedule_ue(key);
    }

    /// The UPF sends no packet into the tunnel any longer (TS 29.281 5.1, 7.3.2).
    pub(super) fn note_end_marker(&mut self, teid: Teid) {
        if self.draining.remove(&teid).is_some() {
            self.statistics.end_markers += 1;
        } else if self.endpoints.contains_key(&teid) {
            let text = format!("End Marker in the tunnel in use, TEID {:#x}", teid.0);
            self.note_n3_violation("TS 23.501 5.8.2.9", text);
        }
    }
}
