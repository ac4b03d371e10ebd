//! PAGING: gNBs broadcast it, and UEs hear it when they are awake.

use super::{SimEvent, World};
use crate::services::edrx;
use pith_ran::ue::{Input, PagedWith};
use pith_types::FiveGSTmsi;
use std::time::Duration;

impl World {
    /// Pages all UEs that camp on the gNB.
    pub(super) fn broadcast_paging(&mut self, gnb: usize, tmsi: FiveGSTmsi, with: PagedWith) {
        for ue in 0..self.ues.len() {
            let sim_ue = &self.ues[ue];
            let meant = sim_ue.ue.guti().is_some_and(|guti| guti.s_tmsi() == tmsi);
            let camps_here = sim_ue.gnb / self.plan.amfs() == gnb / self.plan.amfs();
            if meant && camps_here && !self.fault_occurs(self.plan.faults.radio_loss) {
                let after = self.dice.millis(1, 1280);
                if let Some(after) = self.time_of_hearing(ue, after) {
                    self.at(after, SimEvent::Page { ue, with });
                }
            }
        }
    }

    /// When a UE receives a PAGING that its gNB sends after that time. With extended DRX it is awake once a cycle: in its paging time window, or at
    /// the cycle's begin, until which the gNB keeps the PAGING (TS 38.304 7.4).
    fn time_of_hearing(&self, ue: usize, after: Duration) -> Option<Duration> {
        let sim_ue = &self.ues[ue].ue;
        let granted = sim_ue.reachability().edrx.as_ref().filter(|_| !sim_ue.has_emergency_session());
        let Some((cycle, window)) = granted.and_then(|it| edrx(it.value, it.paging_time_window)) else {
            return Some(after);
        };
        let cycle = cycle.as_micros() as u64;
        // Each UE has a begin of its own.
        let phase = (ue as u64 + 1) * 3_700_000;
        let in_cycle = ((self.now + after).as_micros() + phase) % cycle;
        match window {
            Some(window) => (u128::from(in_cycle) < window.as_micros()).then_some(after),
            None => Some(after + Duration::from_micros((cycle - in_cycle) % cycle)),
        }
    }

    pub(super) fn page(&mut self, ue: usize, with: PagedWith) {
        self.record("AMF", super::radio::name(ue), "Paging");
        self.ue_input(ue, Input::Paging(with));
    }

    /// Whether a UE is in MICO mode, in which it is not paged (TS 23.501 5.4.1.3).
    pub(super) fn is_in_mico_mode(&self, ue: usize) -> bool {
        self.ues[ue].ue.reachability().mico.is_some()
    }
}
