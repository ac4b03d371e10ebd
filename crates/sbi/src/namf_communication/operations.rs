//! The operations of Namf_Communication.

use super::{
    N1N2MessageTransferReqData, N1N2MessageTransferRspData, N1N2MsgTxfrFailureNotification, N2InfoContainer,
    N2InfoContent, UeContextTransferReqData, UeContextTransferRspData, UeRegStatusUpdateReqData,
    UeRegStatusUpdateRspData,
};
use crate::common::{BinaryData, MediaType, UeContextId};
use crate::http::{Parts, Visit, json_bodies, multipart_bodies};
use crate::operation::{callbacks, operations};

json_bodies! {
    JSON: N1N2MessageTransferRspData, N1N2MsgTxfrFailureNotification, UeRegStatusUpdateReqData,
        UeRegStatusUpdateRspData;
}

multipart_bodies!(@body N1N2MessageTransferReqData);
multipart_bodies!(@body UeContextTransferReqData);
multipart_bodies!(@body UeContextTransferRspData);

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
}

callbacks! {
    NamfComm;

    /// Reports that a UE could not be reached.
    N1N2TransferFailureNotification
    "Namf_Communication_N1N2TransferFailureNotification" "n1n2-failure" ""
    body N1N2MsgTxfrFailureNotification
    => [NoContent];
}
