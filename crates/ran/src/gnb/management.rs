//! Interface management: NG Setup, AMF Configuration Update, Overload, Error Indication, Paging
//! (TS 38.413 8.5, 8.7).
//!
//! ```text
//!  gNB                          AMF
//!   |    NG SETUP REQUEST ->     |
//!   | <- NG SETUP RESPONSE       |
//!   | <- NG SETUP FAILURE        |   instead; again after Time To Wait
//! ```

use super::{Amf, Event, Gnb, N2Stream, NgState, Output, SETUP_PATIENCE};
use crate::ue::PagedWith;
use pith_ngap::{
    AmfConfigurationUpdate, Cause, CauseRadioNetwork, ErrorIndication, NgSetupFailure, NgSetupResponse,
    Paging, TimeToWait, UeRetentionInformation,
};
use std::time::Duration;

impl Gnb {
    /// NG Setup over the first association (TS 38.413 8.7.1.2).
    pub(super) fn send_ng_setup_request(&mut self) {
        let retained = self.proposes_retention().then_some(UeRetentionInformation::ues_retained);
        let request = self.ng_setup_request(retained);
        self.state = NgState::AwaitingNgSetupResponse;
        self.deadline = Some(self.now + SETUP_PATIENCE);
        let stream = N2Stream { association: self.links.set_up_over(), number: 0 };
        self.send(stream, request.encode());
    }

    pub(super) fn receive_ng_setup_response(&mut self, stream: N2Stream, response: NgSetupResponse) {
        if self.state == NgState::Up
            && self.settings.joins_by_ng_setup
            && !self.links.is_ready(stream.association)
        {
            if response.ue_retention.is_none() {
                self.violation("TS 38.413 8.7.1.2", "UEs of another association are not retained");
                self.release_all();
            }
            return self.receive_joined();
        }
        if self.state != NgState::AwaitingNgSetupResponse {
            return self.violation("TS 38.413 10.4", "NG SETUP RESPONSE without NG SETUP REQUEST");
        }
        self.check_ng_setup_response(&response);
        self.settle_retention(response.ue_retention);
        self.state = NgState::Up;
        self.deadline = None;
        self.amf = Amf {
            name: response.amf_name,
            guamis: response.served_guamis,
            capacity: response.relative_amf_capacity,
            overload: None,
        };
        self.join_all();
        self.out.push(Output::Event(Event::Up));
        self.perform_deferred();
        self.connect_barred();
    }

    /// Checks that the AMF serves the gNB's network and at least one of its slices (TS 38.413
    /// 8.7.1.2, 9.2.6.2).
    fn check_ng_setup_response(&mut self, response: &NgSetupResponse) {
        let clause = "TS 38.413 9.2.6.2";
        if response.served_guamis.is_empty() {
            self.violation(clause, "no served GUAMI");
        }
        let plmn = self.settings.plmn;
        match response.plmn_support.iter().find(|(served, _)| *served == plmn) {
            None => self.violation(clause, format!("PLMN Support List is without the gNB's {plmn:?}")),
            Some((_, slices)) if !self.settings.slices.iter().any(|slice| slices.contains(slice)) => {
                self.violation(clause, "no slice in common with the gNB");
            }
            Some(_) => {}
        }
    }

    /// NG SETUP FAILURE: another attempt only after Time To Wait (TS 38.413 8.7.1.3).
    pub(super) fn receive_ng_setup_failure(&mut self, failure: &NgSetupFailure) {
        if self.state == NgState::Up && self.settings.joins_by_ng_setup {
            return self.receive_not_joined(failure.cause, failure.time_to_wait);
        }
        if self.state != NgState::AwaitingNgSetupResponse {
            return self.violation("TS 38.413 10.4", "NG SETUP FAILURE without NG SETUP REQUEST");
        }
        self.state = NgState::Waiting;
        self.deadline = failure.time_to_wait.map(|wait| self.now + length_of(wait));
        self.out.push(Output::Event(Event::SetupRejected(failure.cause)));
    }

    pub(super) fn on_timeout(&mut self) {
        self.request_overdue_releases();
        self.join_again();
        if self.deadline.is_none_or(|deadline| deadline > self.now) {
            return;
        }
        self.deadline = None;
        match self.state {
            NgState::Waiting => self.send_ng_setup_request(),
            NgState::AwaitingNgSetupResponse => self.out.push(Output::Event(Event::SetupUnanswered)),
            NgState::Down | NgState::Up => {}
        }
    }

    /// The last association is lost: deletes all state that depends on it (TS 38.412 7). A gNB that retains its UEs keeps those with a
    /// complete context, unless a handover is in progress.
    pub(super) fn lose_amf(&mut self) {
        let is_kept = |context: &super::UeContext| self.settings.retains_ues && context.is_retainable();
        let lost = self.contexts.iter().filter(|(_, context)| !is_kept(context));
        let mut ids: Vec<_> = lost.map(|(id, _)| *id).collect();
        ids.sort_unstable();
        self.note_lost(&ids);
        for id in ids {
            self.release_context(id);
        }
        self.unanswered.clear();
        self.departed.clear();
        self.departures.clear();
        // The AMF begins with other endpoints after NG Setup.
        self.links.forget_updates();
        self.state = NgState::Down;
        self.amf = Amf::default();
        self.deadline = None;
        self.out.push(Output::Event(Event::Down));
    }

    /// AMF CONFIGURATION UPDATE (TS 38.413 8.7.3.2).
    pub(super) fn receive_amf_configuration_update(&mut self, update: AmfConfigurationUpdate) {
        if let Some(name) = &update.amf_name {
            self.amf.name.clone_from(name);
        }
        if let Some(guamis) = &update.served_guamis {
            self.amf.guamis.clone_from(guamis);
        }
        if let Some(capacity) = update.relative_amf_capacity {
            self.amf.capacity = capacity;
        }
        self.change_endpoints(&update);
    }

    pub(super) fn note_overload(&mut self, reduction: Option<u8>) {
        self.amf.overload = reduction;
        self.out.push(Output::Event(Event::Overload(reduction.is_some())));
    }

    /// ERROR INDICATION: the AMF reports an error in a message of the gNB, or of its own (TS 38.413 8.7.5).
    pub(super) fn receive_error_indication(&mut self, indication: &ErrorIndication) {
        let cause = indication.cause.map_or_else(|| "no cause".into(), |cause| cause.to_string());
        // The AMF may have released a UE while it was handed over to this gNB.
        let is_switching = |ran_id| self.contexts.get(&ran_id).is_some_and(|it| !it.switching.is_empty());
        if !indication.ran_ue_ngap_id.is_some_and(is_switching) {
            self.violation("TS 38.413 8.7.5", format!("the AMF sent ERROR INDICATION: {cause}"));
        }
        // Only erroneous ids end the UE's connection (TS 38.413 10.6); other causes do not.
        let has_erroneous_ids = matches!(
            indication.cause,
            Some(Cause::RadioNetwork(
                CauseRadioNetwork::unknown_local_UE_NGAP_ID
                    | CauseRadioNetwork::inconsistent_remote_UE_NGAP_ID
            ))
        );
        let by_amf_id = || indication.amf_ue_ngap_id.and_then(|amf_id| self.find_by_amf_id(amf_id));
        if let Some(ran_id) = indication.ran_ue_ngap_id.or_else(by_amf_id).filter(|_| has_erroneous_ids) {
            self.release_context(ran_id);
        }
    }

    /// PAGING (TS 38.413 8.5.1.2); its list must contain the gNB's tracking area.
    pub(super) fn receive_paging(&mut self, paging: &Paging) {
        if !paging.tais.contains(&self.settings.tai()) {
            self.violation("TS 38.413 8.5.1.2", "PAGING for tracking areas that are not the gNB's");
        }
        let with = PagedWith { drx: paging.paging_drx, is_extended: paging.nr_edrx.is_some() };
        self.out.push(Output::Paging { s_tmsi: paging.s_tmsi, with });
    }
}

/// Time To Wait (TS 38.413 9.3.1.56).
pub(super) fn length_of(wait: TimeToWait) -> Duration {
    Duration::from_secs(match wait {
        TimeToWait::v1s => 1,
        TimeToWait::v2s => 2,
        TimeToWait::v5s => 5,
        TimeToWait::v10s => 10,
        TimeToWait::v20s => 20,
        _ => 60,
    })
}
