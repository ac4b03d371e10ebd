//! The operations of Nsmf_PDUSession.

use super::{
    SmContextCreateData, SmContextCreatedData, SmContextReleaseData, SmContextReleasedData,
    SmContextRetrieveData, SmContextRetrievedData, SmContextStatusNotification, SmContextUpdateData,
    SmContextUpdatedData,
};
use crate::common::MediaType;
use crate::http::{Parts, Visit, json_bodies, multipart_bodies};
use crate::operation::{callbacks, operations};

json_bodies! {
    JSON: SmContextReleasedData, SmContextRetrieveData, SmContextRetrievedData,
        SmContextStatusNotification;
}

impl Parts for SmContextCreateData {
    /// The OpenAPI file defines no other media type for this body.
    const ALWAYS_MULTIPART: bool = true;

    fn visit(&mut self, visit: Visit<'_>) {
        if let Some(message) = &mut self.n1_sm_msg {
            visit("n1SmMsg", MediaType::FiveGNas, message);
        }
        if let Some(information) = &mut self.n2_sm_info {
            visit("n2SmInfo", MediaType::Ngap, information);
        }
    }
}

multipart_bodies!(@body SmContextCreateData);

multipart_bodies! {
    SmContextCreatedData { n2_sm_info as Ngap "n2SmInfo" }
    SmContextUpdateData {
        n1_sm_msg as FiveGNas "n1SmMsg",
        n2_sm_info as Ngap "n2SmInfo",
        n2_sm_info_ext1 as Ngap "n2SmInfoExt1"
    }
    SmContextUpdatedData { n1_sm_msg as FiveGNas "n1SmMsg", n2_sm_info as Ngap "n2SmInfo" }
    SmContextReleaseData { n2_sm_info as Ngap "n2SmInfo" }
}

operations! {
    NsmfPdusession "/nsmf-pdusession/v1";

    /// Creates a PDU session.
    PostSmContexts "Nsmf_PDUSession_CreateSMContext" "PostSmContexts"
    Post ["sm-contexts"] {}
    body SmContextCreateData
    => [SmContextCreated];

    /// Modifies a PDU session.
    UpdateSmContext "Nsmf_PDUSession_UpdateSMContext" "UpdateSmContext"
    Post ["sm-contexts", sm_context_ref, "modify"] { sm_context_ref: String }
    body SmContextUpdateData
    => [SmContextUpdated, NoContent];

    /// Releases a PDU session.
    ReleaseSmContext "Nsmf_PDUSession_ReleaseSMContext" "ReleaseSmContext"
    Post ["sm-contexts", sm_context_ref, "release"] { sm_context_ref: String }
    body SmContextReleaseData
    => [NoContent, SmContextReleased];

    /// Retrieves an SM context.
    RetrieveSmContext "Nsmf_PDUSession_ContextRequest" "RetrieveSmContext"
    Post ["sm-contexts", sm_context_ref, "retrieve"] { sm_context_ref: String }
    body SmContextRetrieveData
    => [SmContextRetrieved];
}

callbacks! {
    NsmfPdusession;

    /// Notifies the AMF of a PDU session's status.
    SmContextStatusNotify "Nsmf_PDUSession_SMContextStatusNotify" "sm-context-status" ""
    body SmContextStatusNotification
    => [NoContent];
}
