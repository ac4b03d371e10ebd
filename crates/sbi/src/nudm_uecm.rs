//! Nudm_UEContextManagement (TS 29.503 clause 6.2): registrations of the AMF and SMFs that serve a UE.

use crate::common::{
    AccessType, BackupAmfInfo, DateTime, NfInstanceId, RatType, ServiceName, SupportedFeatures,
};
use crate::http::json_bodies;
use crate::operation::{callbacks, operations};
use crate::record::{open_enum, record};
use crate::uri::Uri;
use pith_types::{Dnn, Guami, Pei, Plmn, Snssai, Supi};
use std::sync::Arc;

open_enum! {
    /// Support of IMS voice over PS in the registration area.
    ImsVoPs {
        HomogeneousSupport = "HOMOGENEOUS_SUPPORT",
        HomogeneousNonSupport = "HOMOGENEOUS_NON_SUPPORT",
        NonHomogeneousOrUnknown = "NON_HOMOGENEOUS_OR_UNKNOWN",
    }
}

record! {
    /// Registration of the AMF that serves a UE over 3GPP access.
    Amf3GppAccessRegistration {
        required {
            /// NF instance of the AMF.
            amf_instance_id: NfInstanceId,
            /// Callback URI for the AMF's deregistration.
            dereg_callback_uri: Uri,
            /// GUAMI of the AMF.
            guami: Guami,
            /// Radio access technology.
            rat_type: RatType,
        }
        optional {
            /// Optional features of the AMF.
            supported_features: SupportedFeatures,
            /// Whether the AMF has deregistered the UE.
            purge_flag: bool,
            /// PEI of the UE.
            pei: Pei,
            /// IMS voice over PS.
            ims_vo_ps: ImsVoPs,
            /// Service of the callback.
            amf_service_name_dereg: ServiceName,
            /// Whether it is an initial registration.
            initial_registration_ind: bool,
            /// Whether it is an emergency registration.
            emergency_registration_ind: bool,
            /// Whether the UE is also registered in EPS.
            dr_flag: bool,
            /// Time of the registration.
            registration_time: DateTime,
            /// SUPI of the subscriber.
            supi: Supi,
        }
        repeated {
            /// Backup AMFs.
            backup_amf_info: Vec<BackupAmfInfo>,
        }
    }
}

record! {
    /// A modification of an AMF's registration.
    Amf3GppAccessRegistrationModification {
        required {
            /// GUAMI of the AMF, which must be the registered one.
            guami: Guami,
        }
        optional {
            /// Whether the AMF has deregistered the UE.
            purge_flag: bool,
            /// PEI of the UE.
            pei: Pei,
            /// IMS voice over PS.
            ims_vo_ps: ImsVoPs,
        }
        repeated {
            /// Backup AMFs.
            backup_amf_info: Vec<BackupAmfInfo>,
        }
    }
}

open_enum! {
    /// The reason for an SMF's registration.
    RegistrationReason {
        SmfContextTransferred = "SMF_CONTEXT_TRANSFERRED",
    }
}

record! {
    /// Registration of the SMF that serves a PDU session.
    SmfRegistration {
        required {
            /// NF instance of the SMF.
            smf_instance_id: NfInstanceId,
            /// PDU session identity, 0 to 255.
            pdu_session_id: u8,
            /// Slice.
            single_nssai: Snssai,
            /// The serving network.
            plmn_id: Plmn,
        }
        optional {
            /// NF set of the SMF.
            smf_set_id: Arc<str>,
            /// Optional features of the SMF.
            supported_features: SupportedFeatures,
            /// DNN.
            dnn: Dnn,
            /// Whether it is an emergency session.
            emergency_services: bool,
            /// Callback URI for the SMF's deregistration.
            dereg_callback_uri: Uri,
            /// The reason.
            registration_reason: RegistrationReason,
            /// Time of the registration.
            registration_time: DateTime,
            /// PCF of the session.
            pcf_id: NfInstanceId,
        }
    }
}

record! {
    /// Registrations of the SMFs that serve a UE.
    SmfRegistrationInfo {
        required {
            /// One registration per PDU session, at least one.
            smf_registration_list: Vec<SmfRegistration>,
        }
    }
}

open_enum! {
    /// The reason for the UDM's deregistration of an NF.
    DeregistrationReason {
        UeInitialRegistration = "UE_INITIAL_REGISTRATION",
        UeRegistrationAreaChange = "UE_REGISTRATION_AREA_CHANGE",
        SubscriptionWithdrawn = "SUBSCRIPTION_WITHDRAWN",
        FiveGsToEpsMobility = "5GS_TO_EPS_MOBILITY",
        FiveGsToEpsMobilityUeInitialRegistration = "5GS_TO_EPS_MOBILITY_UE_INITIAL_REGISTRATION",
        ReregistrationRequired = "REREGISTRATION_REQUIRED",
        SmfContextTransferred = "SMF_CONTEXT_TRANSFERRED",
        DuplicatePduSession = "DUPLICATE_PDU_SESSION",
        DisasterConditionTerminated = "DISASTER_CONDITION_TERMINATED",
    }
}

record! {
    /// A deregistration by the UDM.
    DeregistrationData {
        required {
            /// The reason.
            dereg_reason: DeregistrationReason,
        }
        optional {
            /// Access type, for an AMF.
            access_type: AccessType,
            /// PDU session identity, for an SMF.
            pdu_session_id: u8,
            /// The new SMF, for an SMF.
            new_smf_instance_id: NfInstanceId,
        }
    }
}

json_bodies! {
    JSON: Amf3GppAccessRegistration, SmfRegistration, SmfRegistrationInfo, DeregistrationData;
    MERGE_PATCH: Amf3GppAccessRegistrationModification;
}

operations! {
    NudmUecm "/nudm-uecm/v1";

    /// Registers the AMF that serves a UE.
    ThreeGppRegistration "Nudm_UECM_Registration" "3GppRegistration"
    Put [ue_id, "registrations", "amf-3gpp-access"] { ue_id: Supi }
    body Amf3GppAccessRegistration
    => [Amf3GppAccessRegistrationCreated, Amf3GppAccessRegistration, NoContent];

    /// Updates the AMF's registration; `purge_flag` deregisters it.
    UpdateThreeGppRegistration "Nudm_UECM_Update" "Update3GppRegistration"
    Patch [ue_id, "registrations", "amf-3gpp-access"] { ue_id: Supi }
    body Amf3GppAccessRegistrationModification
    => [NoContent, PatchResult];

    /// Retrieves the AMF that serves a UE.
    GetThreeGppRegistration "Nudm_UECM_Get" "Get3GppRegistration"
    Get [ue_id, "registrations", "amf-3gpp-access"] { ue_id: Supi }
    => [Amf3GppAccessRegistration];

    /// Retrieves the SMFs that serve a UE.
    GetSmfRegistration "Nudm_UECM_Get" "GetSmfRegistration"
    Get [ue_id, "registrations", "smf-registrations"] { ue_id: Supi }
    query { single_nssai: Snssai = "single-nssai", dnn: Dnn = "dnn" }
    => [SmfRegistrationInfo];

    /// Registers the SMF that serves a PDU session.
    RegisterSmf "Nudm_UECM_Registration" "Registration"
    Put [ue_id, "registrations", "smf-registrations", pdu_session_id]
    { ue_id: Supi, pdu_session_id: u8 }
    body SmfRegistration
    => [SmfRegistrationCreated, SmfRegistration, NoContent];

    /// Deregisters an SMF.
    SmfDeregistration "Nudm_UECM_Deregistration" "SmfDeregistration"
    Delete [ue_id, "registrations", "smf-registrations", pdu_session_id]
    { ue_id: Supi, pdu_session_id: u8 }
    query { smf_instance_id: NfInstanceId = "smf-instance-id" }
    => [NoContent];

    /// Retrieves the SMF that serves a PDU session.
    RetrieveSmfRegistration "Nudm_UECM_Get" "RetrieveSmfRegistration"
    Get [ue_id, "registrations", "smf-registrations", pdu_session_id]
    { ue_id: Supi, pdu_session_id: u8 }
    => [SmfRegistration];
}

callbacks! {
    NudmUecm;

    /// Notifies an AMF or SMF of its deregistration.
    DeregistrationNotification "Nudm_UECM_DeregistrationNotification" "dereg-notify" ""
    body DeregistrationData
    => [NoContent];
}
