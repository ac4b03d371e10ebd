//! UE contexts (TS 38.413 8.3).
//!
//! ```text
//!  gNB                                     AMF
//!   | <- INITIAL CONTEXT SETUP REQUEST      |   K_gNB, UE security capabilities, allowed NSSAI, sessions, NAS
//!   |    INITIAL CONTEXT SETUP RESPONSE ->  |
//!   |    UE CONTEXT RELEASE REQUEST ->      |   user inactivity
//!   | <- UE CONTEXT RELEASE COMMAND         |
//!   |    UE CONTEXT RELEASE COMPLETE ->     |
//! ```

use super::handover::AsKeys;
use super::{Gnb, Output, UeKey};
use pith_ngap::{
    Cause, CauseProtocol, CauseRadioNetwork, InitialContextSetupFailure, InitialContextSetupRequest,
    InitialContextSetupResponse, LocationEvent, LocationReport, LocationReportingControl,
    LocationReportingFailureIndication, UeContextModificationRequest, UeContextModificationResponse,
    UeContextReleaseCommand, UeContextReleaseComplete, UeContextReleaseRequest, UeNgapIds,
    UeRadioCapabilityCheckRequest, UeRadioCapabilityCheckResponse,
};
use pith_types::{AmfUeNgapId, RanUeNgapId};

impl Gnb {
    /// INITIAL CONTEXT SETUP REQUEST (TS 38.413 8.3.1.2). Security first, then bearers, then NAS.
    pub(super) fn receive_initial_context_setup_request(
        &mut self,
        stream: super::N2Stream,
        request: InitialContextSetupRequest,
    ) {
        let (amf_ue_ngap_id, ran_ue_ngap_id) = (request.amf_ue_ngap_id, request.ran_ue_ngap_id);
        if let Some(old_amf) = self.redirected_from(request.old_amf.as_ref(), ran_ue_ngap_id) {
            return self.await_redirected((old_amf, ran_ue_ngap_id), stream, request.into());
        }
        let known = self.check_ids("InitialContextSetupRequest", amf_ue_ngap_id, ran_ue_ngap_id, stream);
        let Some(known) = known else { return };
        let stream = self.stream_for(known.0);
        if !self.check_initial_context_setup(&request) {
            return self.fail_initial_context_setup(&request, stream);
        }
        let Some(context) = self.contexts.get_mut(&known.0) else { return };
        context.is_set_up = true;
        let (ue, k_gnb, capabilities) = (context.ue, request.security_key, request.security_capabilities);
        context.keys = Some(AsKeys::new(k_gnb, capabilities));
        self.out.push(Output::SecurityActivated { ue, k_gnb, capabilities });
        if let Some(activation) = &request.trace {
            self.activate_trace(known.0, activation);
        }
        let sessions = self.set_up_sessions(known.0, request.sessions.unwrap_or_default());
        let response = InitialContextSetupResponse {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            setup: sessions.setup,
            failed: sessions.failed,
            diagnostics: None,
        };
        self.send(stream, response.encode());
        for nas in request.nas_pdu.into_iter().chain(sessions.nas) {
            self.deliver_nas(known.0, nas);
        }
    }

    fn check_initial_context_setup(&mut self, request: &InitialContextSetupRequest) -> bool {
        let is_set_up = self.contexts.get(&request.ran_ue_ngap_id).is_some_and(|context| context.is_set_up);
        if is_set_up {
            self.violation("TS 38.413 8.3.1.1", "a second INITIAL CONTEXT SETUP REQUEST for a UE");
            return false;
        }
        if !self.amf.guamis.contains(&request.guami) {
            let text = format!("GUAMI {:?} is not served by the AMF", request.guami);
            self.violation("TS 38.413 9.2.2.1", text);
        }
        if request.sessions.is_some() && request.ue_ambr.is_none() {
            self.violation("TS 38.413 9.2.2.1", "PDU sessions without UE Aggregate Maximum Bit Rate");
        }
        self.check_restrictions(request.mobility_restrictions.as_ref(), request.sessions.is_some());
        let slices = &request.allowed_nssai;
        if slices.is_empty() || slices.len() > 8 {
            let text = format!("{} slices in Allowed NSSAI", slices.len());
            self.violation("TS 38.413 9.3.1.31", text);
        }
        if let Some(unsupported) = slices.iter().find(|slice| !self.settings.slices.contains(slice)) {
            let text = format!("slice {unsupported} of Allowed NSSAI is not supported by the gNB");
            self.violation("TS 23.501 5.15.5.2.1", text);
        }
        self.check_algorithms(request)
    }

    /// The gNB supports NEA1 to NEA3 and NIA1 to NIA3, and requires integrity protection except for emergency services (TS 38.413
    /// 8.3.1.4, TS 33.501 5.3.3, 10.2.2.2).
    fn check_algorithms(&mut self, request: &InitialContextSetupRequest) -> bool {
        const OWN: u16 = 0xe000;
        let context = self.contexts.get(&request.ran_ue_ngap_id);
        let may_be_null = context.is_some_and(|context| context.is_emergency);
        let usable = may_be_null || request.security_capabilities.nr_integrity & OWN != 0;
        if !usable {
            self.violation("TS 38.413 8.3.1.4", "UE Security Capabilities without any integrity algorithm");
        }
        usable
    }

    fn fail_initial_context_setup(&mut self, request: &InitialContextSetupRequest, stream: super::N2Stream) {
        let cause = CauseProtocol::message_not_compatible_with_receiver_state;
        let failure = InitialContextSetupFailure {
            amf_ue_ngap_id: request.amf_ue_ngap_id,
            ran_ue_ngap_id: request.ran_ue_ngap_id,
            failed: None,
            cause: Some(Cause::Protocol(cause)),
            diagnostics: None,
        };
        self.send(stream, failure.encode());
    }

    /// UE RADIO CAPABILITY CHECK REQUEST (TS 38.413 8.14.2.2). Without the capability in it the gNB needs the UE's, for which it needs AS security
    /// (TS 38.331 5.6.1.2).
    pub(super) fn receive_radio_capability_check(
        &mut self,
        stream: super::N2Stream,
        request: &UeRadioCapabilityCheckRequest,
    ) {
        let (amf_ue_ngap_id, ran_ue_ngap_id) = (request.amf_ue_ngap_id, request.ran_ue_ngap_id);
        let known = self.check_ids("UeRadioCapabilityCheckRequest", amf_ue_ngap_id, ran_ue_ngap_id, stream);
        let Some(known) = known else { return };
        let has_security = self.contexts.get(&known.0).is_some_and(|context| context.is_set_up);
        if request.ue_radio_capability.is_none() && !has_security {
            return self.violation("TS 38.331 5.6.1.2", "a capability check without AS security");
        }
        let response = UeRadioCapabilityCheckResponse {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            ims_voice_support: self.ims_voice,
            diagnostics: None,
        };
        self.send(self.stream_for(known.0), response.encode());
    }

    /// UE CONTEXT MODIFICATION REQUEST (TS 38.413 8.3.4.2).
    pub(super) fn receive_ue_context_modification_request(
        &mut self,
        stream: super::N2Stream,
        request: &UeContextModificationRequest,
    ) {
        let (amf_ue_ngap_id, ran_ue_ngap_id) = (request.amf_ue_ngap_id, request.ran_ue_ngap_id);
        let known = self.check_ids("UeContextModificationRequest", amf_ue_ngap_id, ran_ue_ngap_id, stream);
        let Some(known) = known else { return };
        let stream = self.stream_for(known.0);
        if !self.contexts.get(&known.0).is_some_and(|context| context.is_set_up) {
            self.violation(
                "TS 38.413 8.3.4.1",
                "UE CONTEXT MODIFICATION REQUEST before Initial Context Setup",
            );
        }
        let context = self.contexts.get_mut(&known.0).filter(|context| context.is_set_up);
        if let (Some(k_gnb), Some(context)) = (request.security_key, context) {
            // The gNB takes the key into use by a handover within the cell (TS 33.501 6.9.4.4).
            let former = context.keys.as_ref().map(|keys| keys.capabilities);
            if let Some(capabilities) = request.security_capabilities.or(former) {
                context.keys = Some(AsKeys::new(k_gnb, capabilities));
                let ue = context.ue;
                self.out.push(Output::SecurityActivated { ue, k_gnb, capabilities });
            }
        }
        let response = UeContextModificationResponse { amf_ue_ngap_id, ran_ue_ngap_id, diagnostics: None };
        self.send(stream, response.encode());
    }

    /// The gNB requests the release of a UE's context (TS 38.413 8.3.2.2). Before the AMF has
    /// answered, the context is released locally.
    pub(super) fn request_context_release(&mut self, ue: UeKey, cause: CauseRadioNetwork) {
        let Some((ran_ue_ngap_id, amf_id)) = self.ids_of(ue) else { return };
        if self.is_retaining(ue) {
            return self.deferred.push(super::Deferred::Release { ue, cause });
        }
        let Some(amf_ue_ngap_id) = amf_id else {
            self.release_context(ran_ue_ngap_id);
            self.unanswered.insert(ran_ue_ngap_id);
            return;
        };
        let sessions = self.session_ids(ran_ue_ngap_id);
        let cause = Some(Cause::RadioNetwork(cause));
        let request = UeContextReleaseRequest { amf_ue_ngap_id, ran_ue_ngap_id, sessions, cause };
        self.send(self.stream_for(ran_ue_ngap_id), request.encode());
    }

    /// The UE's sessions with an active user plane; `None` if there are none, because the list must
    /// not be empty.
    fn session_ids(&self, ran_id: RanUeNgapId) -> Option<Vec<u8>> {
        let bearers = &self.contexts.get(&ran_id)?.bearers;
        (!bearers.is_empty()).then(|| bearers.iter().map(|bearer| bearer.session).collect())
    }

    /// UE CONTEXT RELEASE COMMAND (TS 38.413 8.3.3.2).
    pub(super) fn receive_ue_context_release_command(
        &mut self,
        stream: super::N2Stream,
        command: &UeContextReleaseCommand,
    ) {
        let (amf_ue_ngap_id, ran_ue_ngap_id) = match command.ids {
            UeNgapIds::Pair(amf_id, ran_id) => (amf_id, Some(ran_id)),
            UeNgapIds::Amf(amf_id) => (amf_id, self.find_by_amf_id(amf_id)),
        };
        let Some(ran_ue_ngap_id) = ran_ue_ngap_id else {
            let text =
                format!("UeContextReleaseCommand for AMF UE NGAP ID {}, unknown", amf_ue_ngap_id.value());
            self.violation("TS 38.413 10.6", text);
            let cause = Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID);
            return self.indicate_error((Some(amf_ue_ngap_id), None), cause, stream);
        };
        if self.departed.remove(&ran_ue_ngap_id).is_some() {
            // The UE has left, and its path was not switched yet.
            let complete = UeContextReleaseComplete {
                amf_ue_ngap_id,
                ran_ue_ngap_id,
                location: None,
                sessions: None,
                diagnostics: None,
            };
            return self.send(self.stream_for(ran_ue_ngap_id), complete.encode());
        }
        let known = self.check_ids("UeContextReleaseCommand", amf_ue_ngap_id, ran_ue_ngap_id, stream);
        let Some(known) = known else { return };
        let stream = self.stream_for(known.0);
        let sessions = self.session_ids(known.0);
        let location = Some(self.location());
        let complete = UeContextReleaseComplete {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            location,
            sessions,
            diagnostics: None,
        };
        self.send(stream, complete.encode());
        self.release_context(known.0);
    }

    /// LOCATION REPORTING CONTROL with the event `direct`: reports the cell once (TS 38.413 8.12.1.2). Other events are refused.
    pub(super) fn receive_location_reporting_control(
        &mut self,
        stream: super::N2Stream,
        control: &LocationReportingControl,
    ) {
        let (amf_ue_ngap_id, ran_ue_ngap_id) = (control.amf_ue_ngap_id, control.ran_ue_ngap_id);
        let known = self.check_ids("LocationReportingControl", amf_ue_ngap_id, ran_ue_ngap_id, stream);
        let Some(known) = known else { return };
        let stream = self.stream_for(known.0);
        let is_direct = control.request.is_some_and(|request| request.event == LocationEvent::direct);
        if !is_direct {
            let cause = Some(Cause::RadioNetwork(CauseRadioNetwork::unspecified));
            let failure = LocationReportingFailureIndication { amf_ue_ngap_id, ran_ue_ngap_id, cause };
            return self.send(stream, failure.encode());
        }
        let location = Some(self.location());
        let report = LocationReport { amf_ue_ngap_id, ran_ue_ngap_id, location, request: control.request };
        self.send(stream, report.encode());
    }

    pub(super) fn find_by_amf_id(&self, amf_id: AmfUeNgapId) -> Option<RanUeNgapId> {
        let mut contexts = self.contexts.iter();
        contexts.find(|(_, context)| context.amf_id == Some(amf_id)).map(|(ran_id, _)| *ran_id)
    }
}
