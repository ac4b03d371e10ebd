//! UEs that the gNB retains while it has no association (TS 38.413 8.7.1.2, UE Retention Information).
//!
//! ```text
//!  gNB                                          AMF
//!   |    (association lost)                      |   UEs with a complete context stay connected
//!   |    NG SETUP REQUEST (ues-retained) ->      |
//!   | <- NG SETUP RESPONSE (ues-retained)        |   the connections continue
//!   | <- NG SETUP RESPONSE                       |   instead: all UEs are released, and their TEIDs are used again
//! ```

use super::{Gnb, NgState, UeKey};
use pith_ngap::{CauseRadioNetwork, UeRetentionInformation};

/// What a retained UE did while there was no association.
#[derive(Debug)]
pub(super) enum Deferred {
    Uplink { ue: UeKey, nas: Vec<u8> },
    Release { ue: UeKey, cause: CauseRadioNetwork },
}

impl Gnb {
    /// Whether NG SETUP REQUEST proposes to retain UEs.
    pub(super) fn proposes_retention(&self) -> bool {
        self.settings.retains_ues && !self.contexts.is_empty()
    }

    /// Whether the UE's connection has no association at present.
    pub(super) fn is_retaining(&self, ue: UeKey) -> bool {
        self.state != NgState::Up && self.ran_ids.contains_key(&ue)
    }

    /// NG SETUP RESPONSE: without the IE both sides have no UEs any longer.
    pub(super) fn settle_retention(&mut self, accepted: Option<UeRetentionInformation>) {
        let was_proposed = self.proposes_retention();
        if accepted.is_some() && !was_proposed {
            self.violation("TS 38.413 8.7.1.2", "UE Retention Information that the gNB did not propose");
        }
        if accepted.is_some() && was_proposed {
            // The AMF chooses the streams of the new association.
            self.contexts.values_mut().for_each(|context| context.amf_stream = None);
            return;
        }
        self.deferred.clear();
        self.release_all();
        self.next_teid = self.settings.first_teid;
    }

    /// The association is set up again.
    pub(super) fn perform_deferred(&mut self) {
        for deferred in std::mem::take(&mut self.deferred) {
            match deferred {
                Deferred::Uplink { ue, nas } => self.send_uplink(ue, nas),
                Deferred::Release { ue, cause } => self.request_context_release(ue, cause),
            }
        }
    }

    /// Number of UEs that the gNB retains without an association.
    pub fn retained(&self) -> usize {
        if self.state == NgState::Up { 0 } else { self.contexts.len() }
    }
}
