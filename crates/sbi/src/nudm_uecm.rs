//! Nudm_UEContextManagement (TS 29.503 clause 6.2): which AMF and which SMFs serve a UE.

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
    /// Whether voice over IMS works all over the registration area.
    ImsVoPs {
        HomogeneousSupport = "HOMOGENEOUS_SUPPORT",
        HomogeneousNonSupport = "HOMOGENEOUS_NON_SUPPORT",
        NonHomogeneousOrUnknown = "NON_HOMOGENEOUS_OR_UNKNOWN",
    }
}

record! {
    /// The AMF that serves a UE over 3GPP access.
    Amf3GppAccessRegistration {
        required {
            /// The AMF.
            amf_instance_id: NfInstanceId,
            /// Where the UDM tells it that another AMF took over.
            dereg_callback_uri: Uri,
            /// Its identity.
            guami: Guami,
            /// The radio.
            rat_type: RatType,
        }
        optional {
            /// Optional features that the AMF has.
            supported_features: SupportedFeatures,
            /// The AMF has deregistered the UE.
            purge_flag: bool,
            /// The equipment.
            pei: Pei,
            /// Voice over IMS.
            ims_vo_ps: ImsVoPs,
            /// The service that takes the callback.
            amf_service_name_dereg: ServiceName,
            /// It is an initial registration.
            initial_registration_ind: bool,
            /// It is an emergency registration.
            emergency_registration_ind: bool,
            /// Registered in EPS as well.
            dr_flag: bool,
            /// When.
            registration_time: DateTime,
            /// The subscriber.
            supi: Supi,
        }
        repeated {
            /// AMFs that take over when this one fails.
            backup_amf_info: Vec<BackupAmfInfo>,
        }
    }
}

record! {
    /// What changes of an AMF's registration.
    Amf3GppAccessRegistrationModification {
        required {
            /// The AMF, which must be the registered one.
            guami: Guami,
        }
        optional {
            /// The AMF has deregistered the UE.
            purge_flag: bool,
            /// The equipment.
            pei: Pei,
            /// Voice over IMS.
            ims_vo_ps: ImsVoPs,
        }
        repeated {
            /// AMFs that take over when this one fails.
            backup_amf_info: Vec<BackupAmfInfo>,
        }
    }
}

open_enum! {
    /// Why an SMF registers.
    RegistrationReason {
        SmfContextTransferred = "SMF_CONTEXT_TRANSFERRED",
    }
}

record! {
    /// The SMF that serves a PDU session.
    SmfRegistration {
        required {
            /// The SMF.
            smf_instance_id: NfInstanceId,
            /// The PDU session, 0 to 255.
            pdu_session_id: u8,
            /// Its slice.
            single_nssai: Snssai,
            /// The serving network.
            plmn_id: Plmn,
        }
        optional {
            /// The set that the SMF is in.
            smf_set_id: Arc<str>,
            /// Optional features that the SMF has.
            supported_features: SupportedFeatures,
            /// Its data network.
            dnn: Dnn,
            /// It is an emergency session.
            emergency_services: bool,
            /// Where the UDM tells it that the registration ends.
            dereg_callback_uri: Uri,
            /// Why it registers.
            registration_reason: RegistrationReason,
            /// When.
            registration_time: DateTime,
            /// The PCF of the session.
            pcf_id: NfInstanceId,
        }
    }
}

record! {
    /// The SMFs that serve a UE.
    SmfRegistrationInfo {
        required {
            /// A registration a PDU session, at least one.
            smf_registration_list: Vec<SmfRegistration>,
        }
    }
}

open_enum! {
    /// Why the UDM ends a registration.
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
    /// The UDM ends a registration.
    DeregistrationData {
        required {
            /// Why.
            dereg_reason: DeregistrationReason,
        }
        optional {
            /// Over which access; to an AMF.
            access_type: AccessType,
            /// Which PDU session; to an SMF.
            pdu_session_id: u8,
            /// Who took over; to an SMF.
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

    /// An AMF registers as the one that serves a UE.
    ThreeGppRegistration "Nudm_UECM_Registration" "3GppRegistration"
    Put [ue_id, "registrations", "amf-3gpp-access"] { ue_id: Supi }
    body Amf3GppAccessRegistration
    => [Amf3GppAccessRegistrationCreated, Amf3GppAccessRegistration, NoContent];

    /// The AMF changes its registration; with `purge_flag` it deregisters.
    UpdateThreeGppRegistration "Nudm_UECM_Update" "Update3GppRegistration"
    Patch [ue_id, "registrations", "amf-3gpp-access"] { ue_id: Supi }
    body Amf3GppAccessRegistrationModification
    => [NoContent, PatchResult];

    /// Asks which AMF serves a UE.
    GetThreeGppRegistration "Nudm_UECM_Get" "Get3GppRegistration"
    Get [ue_id, "registrations", "amf-3gpp-access"] { ue_id: Supi }
    => [Amf3GppAccessRegistration];

    /// Asks which SMFs serve a UE.
    GetSmfRegistration "Nudm_UECM_Get" "GetSmfRegistration"
    Get [ue_id, "registrations", "smf-registrations"] { ue_id: Supi }
    query { single_nssai: Snssai = "single-nssai", dnn: Dnn = "dnn" }
    => [SmfRegistrationInfo];

    /// An SMF registers as the one that serves a PDU session.
    RegisterSmf "Nudm_UECM_Registration" "Registration"
    Put [ue_id, "registrations", "smf-registrations", pdu_session_id]
    { ue_id: Supi, pdu_session_id: u8 }
    body SmfRegistration
    => [SmfRegistrationCreated, SmfRegistration, NoContent];

    /// The SMF deregisters.
    SmfDeregistration "Nudm_UECM_Deregistration" "SmfDeregistration"
    Delete [ue_id, "registrations", "smf-registrations", pdu_session_id]
    { ue_id: Supi, pdu_session_id: u8 }
    query { smf_instance_id: NfInstanceId = "smf-instance-id" }
    => [NoContent];

    /// Asks which SMF serves a PDU session.
    RetrieveSmfRegistration "Nudm_UECM_Get" "RetrieveSmfRegistration"
    Get [ue_id, "registrations", "smf-registrations", pdu_session_id]
    { ue_id: Supi, pdu_session_id: u8 }
    => [SmfRegistration];
}

callbacks! {
    NudmUecm;

    /// Tells an AMF or SMF that its registration has ended.
    DeregistrationNotification "Nudm_UECM_DeregistrationNotification" "dereg-notify" ""
    body DeregistrationData
    => [NoContent];
}
