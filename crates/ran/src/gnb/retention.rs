//! UEs that the gNB retains while it has no association (TS 38.413 8.7.1.2, UE Retention Information).
//!
//! ```text
//!  gNB                                          AMF
//!   |    (association lost)                      |   UEs with a complete context stay connected
//!   |    NG SETUP REQUEST (ues-retained) ->      |
//!   | <- NG SETUP RESPONSE (ues-retained)        |   the connections continue
//!   |    NG RESET ->                             |   UEs that were in a handover, or have left, are not retained
//!   | <- NG SETUP RESPONSE                       |   instead: all UEs are released, and their TEIDs are used again
//! ```

use super::{COMMON_STREAM, Gnb, NgState, UeContext, UeKey};
use crate::clock::Instant;
use pith_ngap::{Cause, CauseRadioNetwork, NgConnection, NgReset, ResetScope, UeRetentionInformation};
use pith_types::RanUeNgapId;
use std::time::Duration;

/// Time in which the AMF switches a path. A UE that left earlier is at its target gNB.
const PATH_SWITCH: Duration = Duration::from_secs(10);

/// Connections in one NG RESET (TS 38.413 9.2.6.11, maxnoofNGConnectionsToReset).
const MOST_IN_RESET: usize = 65_536;

/// What a retained UE did while there was no association.
#[derive(Debug)]
pub(super) enum Deferred {
    Uplink { ue: UeKey, nas: Vec<u8> },
    Release { ue: UeKey, cause: CauseRadioNetwork },
}

impl UeContext {
    /// Whether the connection may go on after a time without an association.
    pub(super) fn is_retainable(&self) -> bool {
        self.is_set_up
            && self.switching.is_empty()
            && self.moving.is_empty()
            && self.part == Default::default()
    }
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
            self.contexts.values_mut().for_each(|it| (it.association, it.amf_stream) = (None, None));
            return self.report_lost();
        }
        self.lost.clear();
        self.deferred.clear();
        self.release_all();
        if !self.has_lent_tunnels {
            self.next_teid = self.settings.first_teid;
        }
    }

    /// The association is lost: the AMF may retain these connections, and those of UEs whose path it may not have switched.
    pub(super) fn note_lost(&mut self, ids: &[RanUeNgapId]) {
        if self.settings.retains_ues {
            let is_recent = |since: &Instant| self.now < *since + PATH_SWITCH;
            let departed = self.departed.iter().filter(|(_, since)| is_recent(since)).map(|(id, _)| *id);
            self.lost.extend(ids.iter().copied().chain(departed));
            self.lost.sort_unstable();
            self.lost.dedup();
        }
    }

    /// NG RESET of connections that the gNB has not retained (TS 38.413 8.7.4.2.2).
    fn report_lost(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        if lost.is_empty() {
            return;
        }
        let named = |id| NgConnection { amf_ue_ngap_id: None, ran_ue_ngap_id: Some(id) };
        let cause = Cause::RadioNetwork(CauseRadioNetwork::radio_connection_with_ue_lost);
        let scope = ResetScope::Part(lost.into_iter().take(MOST_IN_RESET).map(named).collect());
        self.send(COMMON_STREAM, NgReset { cause, scope }.encode());
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
