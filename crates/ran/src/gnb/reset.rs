//! NG Reset, by either side (TS 38.413 8.7.4).

use super::{COMMON_STREAM, Event, Gnb, Output};
use pith_ngap::{Cause, CauseMisc, NgConnection, NgReset, NgResetAcknowledge, ResetScope};
use pith_types::RanUeNgapId;

impl Gnb {
    /// The gNB lost its state (TS 38.413 8.7.4.2.2): its UEs lose their connections at once.
    pub(super) fn reset(&mut self) {
        self.release_all();
        let cause = Cause::Misc(CauseMisc::om_intervention);
        let reset = NgReset { cause, scope: ResetScope::NgInterface };
        self.send(COMMON_STREAM, reset.encode());
    }

    pub(super) fn release_all(&mut self) {
        let mut ids: Vec<_> = self.contexts.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            self.release_context(id);
        }
    }

    pub(super) fn receive_ng_reset_acknowledge(&mut self) {
        self.out.push(Output::Event(Event::ResetAcknowledged));
    }

    /// NG RESET: releases the listed connections; the answer lists all of them in the same order
    /// (TS 38.413 8.7.4.2.1).
    pub(super) fn receive_ng_reset(&mut self, reset: NgReset) {
        let connections = match reset.scope {
            ResetScope::NgInterface => {
                self.release_all();
                None
            }
            ResetScope::Part(connections) => {
                connections
                    .iter()
                    .filter_map(|named| self.find(named))
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|ran_id| {
                        self.release_context(ran_id);
                    });
                Some(connections)
            }
        };
        self.send(COMMON_STREAM, NgResetAcknowledge { connections, diagnostics: None }.encode());
    }

    fn find(&self, named: &NgConnection) -> Option<RanUeNgapId> {
        let by_amf_id = || named.amf_ue_ngap_id.and_then(|amf_id| self.find_by_amf_id(amf_id));
        named.ran_ue_ngap_id.or_else(by_amf_id)
    }
}
