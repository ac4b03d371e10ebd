//! Downlink NGAP: decoding, and checks that a message matches its UE (TS 38.413 clause 10, TS 38.412 7).

use super::{COMMON_STREAM, Gnb, NgState};
use pith_ngap::{Cause, CauseProtocol, CauseRadioNetwork, Message, NgapError};
use pith_types::{AmfUeNgapId, RanUeNgapId};

/// Proof that a message's ids match a UE's connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownUe(pub RanUeNgapId);

impl Gnb {
    /// Handles a PDU from the association.
    pub(super) fn receive(&mut self, stream: super::N2Stream, octets: &[u8]) {
        match Message::decode(octets) {
            Ok(message) => self.dispatch(stream, message),
            Err(error) => self.answer_undecodable(&error),
        }
    }

    fn answer_undecodable(&mut self, error: &NgapError) {
        self.violation("TS 38.413 10", error.to_string());
        let indication = pith_ngap::ErrorIndication {
            amf_ue_ngap_id: None,
            ran_ue_ngap_id: None,
            cause: Some(error.cause()),
            diagnostics: error.diagnostics(),
            s_tmsi: None,
        };
        self.send(COMMON_STREAM, indication.encode());
    }

    pub(super) fn dispatch(&mut self, stream: super::N2Stream, message: Message) {
        if self.state != NgState::Up && !is_of_setup(&message) && !is_of_update(&message) {
            return self.violation("TS 38.413 8.7.1.1", format!("{} before NG Setup", message.name()));
        }
        if !self.links.is_ready(stream.association) && !is_of_setup(&message) && !is_of_update(&message) {
            let text = format!("{} over an association that has not joined", message.name());
            return self.violation("TS 38.413 8.7.2.2", text);
        }
        self.check_stream(stream, &message);
        match message {
            Message::NgSetupResponse(response) => self.receive_ng_setup_response(stream, response),
            Message::NgSetupFailure(failure) => self.receive_ng_setup_failure(&failure),
            Message::AmfConfigurationUpdate(update) => self.receive_amf_configuration_update(update),
            Message::RanConfigurationUpdateAcknowledge(_) => self.receive_joined(),
            Message::RanConfigurationUpdateFailure(failure) => {
                self.receive_not_joined(failure.cause, failure.time_to_wait);
            }
            Message::UeTnlaBindingReleaseRequest(request) => self.receive_binding_release(stream, &request),
            Message::OverloadStart(start) => {
                self.note_overload(Some(start.traffic_load_reduction.unwrap_or(100)))
            }
            Message::OverloadStop(_) => self.note_overload(None),
            Message::ErrorIndication(indication) => self.receive_error_indication(&indication),
            Message::NgReset(reset) => self.receive_ng_reset(reset),
            Message::NgResetAcknowledge(_) => self.receive_ng_reset_acknowledge(),
            Message::Paging(paging) => self.receive_paging(&paging),
            Message::LocationReportingControl(control) => {
                self.receive_location_reporting_control(stream, &control);
            }
            Message::TraceStart(message) => self.receive_trace_start(stream, message),
            Message::DeactivateTrace(message) => self.receive_deactivate_trace(stream, &message),
            // The simulator has no Xn of its own: another gNB's request for its addresses has no answer (TS 38.413 8.8.2).
            Message::DownlinkRanConfigurationTransfer(_) => {}
            Message::DownlinkNasTransport(transport) => {
                self.receive_downlink_nas_transport(stream, transport)
            }
            Message::UeRadioCapabilityCheckRequest(request) => {
                self.receive_radio_capability_check(stream, &request);
            }
            Message::RerouteNasRequest(request) => self.receive_reroute_nas_request(stream, request),
            Message::InitialContextSetupRequest(request) => {
                self.receive_initial_context_setup_request(stream, request);
            }
            Message::UeContextModificationRequest(request) => {
                self.receive_ue_context_modification_request(stream, &request);
            }
            Message::UeContextReleaseCommand(command) => {
                self.receive_ue_context_release_command(stream, &command)
            }
            Message::PduSessionResourceSetupRequest(request) => self.receive_setup_request(stream, request),
            Message::PduSessionResourceReleaseCommand(command) => {
                self.receive_release_command(stream, command)
            }
            Message::PduSessionResourceModifyRequest(request) => self.receive_modify_request(stream, request),
            Message::PduSessionResourceModifyConfirm(message) => self.receive_modify_confirm(stream, message),
            Message::HandoverRequest(message) => self.receive_handover_request(stream, message),
            Message::HandoverCommand(message) => self.receive_handover_command(stream, message),
            Message::HandoverCancelAcknowledge(message) => self.receive_cancel_acknowledge(stream, &message),
            Message::HandoverPreparationFailure(message) => {
                self.receive_preparation_failure(stream, &message)
            }
            Message::DownlinkRanStatusTransfer(message) => self.receive_status_transfer(stream, &message),
            Message::PathSwitchRequestAcknowledge(message) => {
                self.receive_path_switch_acknowledge(stream, message);
            }
            Message::PathSwitchRequestFailure(message) => self.receive_path_switch_failure(stream, &message),
            other => self.refuse(&other),
        }
    }

    /// A procedure that an AMF does not start, or that the simulator does not support (TS 38.413
    /// 10.3.4.1, 10.4).
    fn refuse(&mut self, message: &Message) {
        let cause = match message {
            Message::Other(other) => other.answer,
            _ => Some(CauseProtocol::message_not_compatible_with_receiver_state),
        };
        self.violation("TS 38.413 10.4", format!("{} {message:?} to a gNB", message.name()));
        if let Some(cause) = cause {
            self.indicate_error((None, None), Cause::Protocol(cause), COMMON_STREAM);
        }
    }

    /// Non-UE-associated messages use a reserved stream (TS 38.412 7).
    fn check_stream(&mut self, stream: super::N2Stream, message: &Message) {
        if is_common(message) && stream.number != COMMON_STREAM.number {
            self.violation("TS 38.412 7", format!("{} on stream {}", message.name(), stream.number));
        }
    }

    /// The connection for the ids in a message, which must be those of earlier messages; the AMF's
    /// first message assigns its id (TS 38.413 10.6).
    pub(super) fn check_ids(
        &mut self,
        name: &str,
        amf_id: AmfUeNgapId,
        ran_id: RanUeNgapId,
        stream: super::N2Stream,
    ) -> Option<KnownUe> {
        let Some(context) = self.contexts.get_mut(&ran_id) else {
            if self.departed.contains_key(&ran_id) {
                return None;
            }
            if !self.unanswered.contains(&ran_id) {
                self.violation(
                    "TS 38.413 10.6",
                    format!("{name} for RAN UE NGAP ID {}, which is not in use", ran_id.0),
                );
            }
            let cause = Cause::RadioNetwork(CauseRadioNetwork::unknown_local_UE_NGAP_ID);
            self.indicate_error((Some(amf_id), Some(ran_id)), cause, stream);
            return None;
        };
        let expected = *context.amf_id.get_or_insert(amf_id);
        if stream.association.is_some() && stream.association != context.association {
            // The AMF has changed the binding (TS 23.502 4.2.7.2).
            (context.association, context.amf_stream) = (stream.association, None);
        }
        let earlier_stream = *context.amf_stream.get_or_insert(stream.number);
        let own_stream = self.stream_for(ran_id);
        if expected != amf_id {
            let text =
                format!("{name} with AMF UE NGAP ID {}, before it was {}", amf_id.value(), expected.value());
            self.violation("TS 38.413 10.6", text);
            let cause = Cause::RadioNetwork(CauseRadioNetwork::inconsistent_remote_UE_NGAP_ID);
            self.indicate_error((Some(amf_id), Some(ran_id)), cause, own_stream);
            self.release_context(ran_id);
            return None;
        }
        self.check_ue_stream(name, stream.number, (stream.association, earlier_stream));
        Some(KnownUe(ran_id))
    }

    /// The AMF may choose any downlink stream for a UE, except the one reserved for non-UE-associated
    /// messages. The stream stays the same while the connection exists (TS 38.412 7).
    fn check_ue_stream(&mut self, name: &str, stream: u16, (association, earlier): (Option<u8>, u16)) {
        if stream != earlier {
            let text = format!("{name} on stream {stream}, the AMF's stream of this UE was {earlier} before");
            self.violation("TS 38.412 7", text);
        }
        // With a single stream there is no choice.
        if stream == COMMON_STREAM.number && self.links.streams(association) > 1 {
            self.violation(
                "TS 38.412 7",
                format!("{name} on stream {stream}, which is reserved for messages without a UE"),
            );
        }
    }
}

fn is_of_setup(message: &Message) -> bool {
    matches!(message, Message::NgSetupResponse(_) | Message::NgSetupFailure(_) | Message::ErrorIndication(_))
}

fn is_of_update(message: &Message) -> bool {
    matches!(
        message,
        Message::RanConfigurationUpdateAcknowledge(_) | Message::RanConfigurationUpdateFailure(_)
    )
}

fn is_common(message: &Message) -> bool {
    matches!(
        message,
        Message::NgSetupResponse(_)
            | Message::NgSetupFailure(_)
            | Message::AmfConfigurationUpdate(_)
            | Message::RanConfigurationUpdateAcknowledge(_)
            | Message::RanConfigurationUpdateFailure(_)
            | Message::OverloadStart(_)
            | Message::OverloadStop(_)
            | Message::NgReset(_)
            | Message::NgResetAcknowledge(_)
            | Message::Paging(_)
            | Message::DownlinkRanConfigurationTransfer(_)
    )
}
