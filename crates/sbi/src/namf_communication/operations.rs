//! The operations of Namf_Communication.

use super::{
    N1MessageNotification, N1N2MessageTransferReqData, N1N2MessageTransferRspData,
    N1N2MsgTxfrFailureNotification, N2InfoContainer, N2InfoContent, N2InfoNotificationRspData,
    N2InformationNotification, N2SmInformation, UeContextCreateData, UeContextCreatedData, UeContextRelease,
    UeContextTransferReqData, UeContextTransferRspData, UeRegStatusUpdateReqData, UeRegStatusUpdateRspData,
};
use crate::common::{BinaryData, MediaType, UeContextId};
use crate::http::{Parts, Visit, json_bodies, multipart_bodies};
use crate::operation::{callbacks, operations};

json_bodies! {
    JSON: N1N2MessageTransferRspData, N1N2MsgTxfrFailureNotification, UeContextRelease,
        UeRegStatusUpdateReqData, UeRegStatusUpdateRspData;
}

multipart_bodies!(@body N1N2MessageTransferReqData);
multipart_bodies!(@body UeContextTransferReqData);
multipart_bodies!(@body UeContextTransferRspData);
multipart_bodies!(@body UeContextCreateData);
multipart_bodies!(@body UeContextCreatedData);
multipart_bodies!(@body N2InformationNotification);
multipart_bodies!(@body N2InfoNotificationRspData);
multipart_bodies!(@body N1MessageNotification);

impl Parts for N1N2MessageTransferReqData {
    fn visit(&mut self, visit: Visit<'_>) {
        if let Some(container) = &mut self.n1_message_container {
            visit("n1Message", MediaType::FiveGNas, &mut container.n1_message_content);
        }
        if let Some(information) = self.n2_info_container.as_mut().and_then(ngap_data) {
            visit("n2Information", MediaType::Ngap, information);
        }
    }
}

/// The information element of a container.
fn ngap_data(container: &mut N2InfoContainer) -> Option<&mut BinaryData> {
    let content: &mut N2InfoContent = match (&mut container.sm_info, &mut container.ran_info) {
        (Some(information), _) => information.n2_info_content.as_mut()?,
        (None, Some(information)) => &mut information.n2_info_content,
        (None, None) => return None,
    };
    Some(&mut content.ngap_data)
}

impl Parts for UeContextTransferReqData {
    fn visit(&mut self, visit: Visit<'_>) {
        if let Some(container) = &mut self.reg_request {
            visit("n1Message", MediaType::FiveGNas, &mut container.n1_message_content);
        }
    }
}

impl Parts for N1MessageNotification {
    fn visit(&mut self, visit: Visit<'_>) {
        visit("n1Message", MediaType::FiveGNas, &mut self.n1_message_container.n1_message_content);
    }
}

impl Parts for UeContextTransferRspData {
    fn visit(&mut self, visit: Visit<'_>) {
        if let Some(capability) = &mut self.ue_radio_capability {
            visit("ueRadioCapability", MediaType::Ngap, &mut capability.ngap_data);
        }
        if let Some(capability) = &mut self.ue_radio_capability_for_paging {
            visit("ueRadioCapabilityForPaging", MediaType::Ngap, &mut capability.ngap_data);
        }
    }
}

/// Content ids of the N2 information in one body: as many as the OpenAPI file has parts.
const N2_INFORMATION: [&str; 18] = [
    "n2Information",
    "n2InformationExt1",
    "n2InformationExt2",
    "n2InformationExt3",
    "n2InformationExt4",
    "n2InformationExt5",
    "n2InformationExt6",
    "n2InformationExt7",
    "n2InformationExt8",
    "n2InformationExt9",
    "n2InformationExt10",
    "n2InformationExt11",
    "n2InformationExt12",
    "n2InformationExt13",
    "n2InformationExt14",
    "n2InformationExt15",
    "n2InformationExt16",
    "n2InformationExt17",
];

/// Visits each N2 information. A body with more than it may have is not encoded correctly; the AMF sends no such body.
fn visit_all<'a>(visit: Visit<'_>, information: impl Iterator<Item = &'a mut N2InfoContent>) {
    let ids = N2_INFORMATION.iter().chain(std::iter::repeat(&N2_INFORMATION[17]));
    for (content_id, information) in ids.zip(information) {
        visit(content_id, MediaType::Ngap, &mut information.ngap_data);
    }
}

fn contents(sessions: &mut [N2SmInformation]) -> impl Iterator<Item = &mut N2InfoContent> {
    sessions.iter_mut().filter_map(|session| session.n2_info_content.as_mut())
}

impl Parts for UeContextCreateData {
    fn visit(&mut self, visit: Visit<'_>) {
        let capabilities =
            self.ue_radio_capability.iter_mut().chain(&mut self.ue_radio_capability_for_paging);
        let containers = std::iter::once(&mut self.source_to_target_data);
        visit_all(visit, containers.chain(contents(&mut self.pdu_session_list)).chain(capabilities));
    }
}

impl Parts for UeContextCreatedData {
    fn visit(&mut self, visit: Visit<'_>) {
        let containers = std::iter::once(&mut self.target_to_source_data);
        let failed = contents(&mut self.failed_session_list);
        visit_all(visit, containers.chain(contents(&mut self.pdu_session_list)).chain(failed));
    }
}

impl Parts for N2InformationNotification {
    fn visit(&mut self, visit: Visit<'_>) {
        if let Some(information) = self.n2_info_container.as_mut().and_then(ngap_data) {
            visit("n2Information", MediaType::Ngap, information);
        }
    }
}

impl Parts for N2InfoNotificationRspData {
    fn visit(&mut self, visit: Visit<'_>) {
        visit_all(visit, contents(&mut self.sec_rat_data_usage_list));
    }
}

operations! {
    NamfComm "/namf-comm/v1";

    /// Sends a message to a UE, to its gNB, or to both.
    N1N2MessageTransfer "Namf_Communication_N1N2MessageTransfer" "N1N2MessageTransfer"
    Post ["ue-contexts", ue_context_id, "n1-n2-messages"] { ue_context_id: UeContextId }
    body N1N2MessageTransferReqData
    => [N1N2MessageTransferInitiated, N1N2MessageTransferAccepted];

    /// Requests a UE context from the old AMF.
    UeContextTransfer "Namf_Communication_UEContextTransfer" "UEContextTransfer"
    Post ["ue-contexts", ue_context_id, "transfer"] { ue_context_id: UeContextId }
    body UeContextTransferReqData
    => [UeContextTransferred];

    /// Reports to the old AMF whether the new AMF accepted the UE context.
    RegistrationStatusUpdate
    "Namf_Communication_RegistrationStatusUpdate" "RegistrationStatusUpdate"
    Post ["ue-contexts", ue_context_id, "transfer-update"] { ue_context_id: UeContextId }
    body UeRegStatusUpdateReqData
    => [RegistrationStatusUpdated];

    /// Prepares the handover of a UE from another AMF.
    CreateUeContext "Namf_Communication_CreateUEContext" "CreateUEContext"
    Put ["ue-contexts", ue_context_id] { ue_context_id: UeContextId }
    body UeContextCreateData
    => [UeContextCreated];

    /// Deletes the UE context of a handover that does not take place.
    ReleaseUeContext "Namf_Communication_ReleaseUEContext" "ReleaseUEContext"
    Post ["ue-contexts", ue_context_id, "release"] { ue_context_id: UeContextId }
    body UeContextRelease
    => [NoContent];
}

callbacks! {
    NamfComm;

    /// Reports that a UE could not be reached.
    N1N2TransferFailureNotification
    "Namf_Communication_N1N2TransferFailureNotification" "n1n2-failure" ""
    body N1N2MsgTxfrFailureNotification
    => [NoContent];

    /// Reports to the source AMF of a handover that the UE has arrived at the target.
    N2InfoNotify "Namf_Communication_N2InfoNotify" "n2-info" ""
    body N2InformationNotification
    => [NoContent, N2InfoNotified];

    /// Passes the REGISTRATION REQUEST of a UE on to the AMF that is to serve it.
    N1MessageNotify "Namf_Communication_N1MessageNotify" "n1-message" ""
    body N1MessageNotification
    => [NoContent];
}
