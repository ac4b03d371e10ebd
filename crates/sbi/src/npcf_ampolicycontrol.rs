//! Npcf_AMPolicyControl (TS 29.507): policies on where and how a UE gets access.

use crate::common::{
    AccessType, PlmnIdNid, PresenceInfo, RatType, ServiceAreaRestriction, ServiceName, SupportedFeatures,
    UserLocation,
};
use crate::http::json_bodies;
use crate::operation::{callbacks, operations};
use crate::record::{open_enum, record};
use crate::uri::Uri;
use pith_types::{Ambr, Guami, Pei, Snssai, Supi};
use std::collections::BTreeMap;
use std::sync::Arc;

open_enum! {
    /// What the PCF wants to be told of.
    RequestTrigger {
        LocCh = "LOC_CH",
        PraCh = "PRA_CH",
        ServAreaCh = "SERV_AREA_CH",
        RfspCh = "RFSP_CH",
        AllowedNssaiCh = "ALLOWED_NSSAI_CH",
        UeAmbrCh = "UE_AMBR_CH",
        UeSliceMbrCh = "UE_SLICE_MBR_CH",
        SmfSelectCh = "SMF_SELECT_CH",
        AccessTypeCh = "ACCESS_TYPE_CH",
        TargetNssai = "TARGET_NSSAI",
    }
}

record! {
    /// For whom a policy is asked for.
    PolicyAssociationRequest {
        required {
            /// Where to tell changes: `/update` and `/terminate` are put behind it.
            notification_uri: Uri,
            /// The subscriber.
            supi: Supi,
            /// Optional features that the AMF has.
            supp_feat: SupportedFeatures,
        }
        optional {
            /// Public identity.
            gpsi: Arc<str>,
            /// The access.
            access_type: AccessType,
            /// The equipment.
            pei: Pei,
            /// Where the UE is.
            user_loc: UserLocation,
            /// Its time zone, `+01:00`.
            time_zone: Arc<str>,
            /// The serving network.
            serving_plmn: PlmnIdNid,
            /// The radio.
            rat_type: RatType,
            /// Subscribed service area.
            serv_area_res: ServiceAreaRestriction,
            /// Subscribed index to RAT/Frequency Selection Priority, 1 to 256.
            rfsp: u16,
            /// Subscribed aggregate maximum bit rate.
            ue_ambr: Ambr,
            /// The AMF's identity.
            guami: Guami,
            /// The service that takes the callback; so spelt in the OpenAPI file.
            #[serde(rename = "serviveName")]
            service_name: ServiceName,
        }
        repeated {
            /// Accesses.
            access_types: Vec<AccessType>,
            /// Radios.
            rat_types: Vec<RatType>,
            /// Groups.
            group_ids: Vec<Arc<str>>,
            /// Allowed slices.
            allowed_snssais: Vec<Snssai>,
        }
    }
}

record! {
    /// A policy.
    PolicyAssociation {
        required {
            /// Optional features that both have.
            supp_feat: SupportedFeatures,
        }
        optional {
            /// What was asked; in a GET.
            request: PolicyAssociationRequest,
            /// Where the UE gets service.
            serv_area_res: ServiceAreaRestriction,
            /// Index to RAT/Frequency Selection Priority, 1 to 256.
            rfsp: u16,
            /// Aggregate maximum bit rate.
            ue_ambr: Ambr,
        }
        repeated {
            /// What the PCF wants to be told of.
            triggers: Vec<RequestTrigger>,
            /// Areas whose entry and leaving is reported.
            pras: BTreeMap<Arc<str>, PresenceInfo>,
        }
    }
}

record! {
    /// What happened to a UE, or changed.
    PolicyAssociationUpdateRequest {
        optional {
            /// Where to tell changes from now on.
            notification_uri: Uri,
            /// Subscribed service area.
            serv_area_res: ServiceAreaRestriction,
            /// Subscribed index to RAT/Frequency Selection Priority.
            rfsp: u16,
            /// Subscribed aggregate maximum bit rate.
            ue_ambr: Ambr,
            /// Where the UE is.
            user_loc: UserLocation,
            /// The AMF's identity.
            guami: Guami,
        }
        repeated {
            /// What happened.
            triggers: Vec<RequestTrigger>,
            /// Areas entered and left.
            pra_statuses: BTreeMap<Arc<str>, PresenceInfo>,
            /// Allowed slices.
            allowed_snssais: Vec<Snssai>,
            /// Accesses.
            access_types: Vec<AccessType>,
            /// Radios.
            rat_types: Vec<RatType>,
        }
    }
}

record! {
    /// What changes of a policy.
    PolicyUpdate {
        required {
            /// Which policy.
            resource_uri: Uri,
        }
        optional {
            /// Where the UE gets service.
            serv_area_res: ServiceAreaRestriction,
            /// Index to RAT/Frequency Selection Priority.
            rfsp: u16,
            /// Aggregate maximum bit rate.
            ue_ambr: Ambr,
        }
        repeated {
            /// What the PCF wants to be told of.
            triggers: Vec<RequestTrigger>,
            /// Areas whose entry and leaving is reported.
            pras: BTreeMap<Arc<str>, PresenceInfo>,
        }
    }
}

record! {
    /// What the PCF asked to be told when it changed a policy.
    AmRequestedValueRep {
        optional {
            /// Where the UE is.
            user_loc: UserLocation,
        }
        repeated {
            /// Areas that the UE is in or not.
            pra_statuses: BTreeMap<Arc<str>, PresenceInfo>,
            /// Accesses.
            access_types: Vec<AccessType>,
            /// Radios.
            rat_types: Vec<RatType>,
            /// Allowed slices.
            allowed_snssais: Vec<Snssai>,
        }
    }
}

open_enum! {
    /// Why the PCF wants a policy association to end.
    PolicyAssociationReleaseCause {
        Unspecified = "UNSPECIFIED",
        UeSubscription = "UE_SUBSCRIPTION",
        InsufficientRes = "INSUFFICIENT_RES",
    }
}

record! {
    /// The PCF wants a policy association to end.
    TerminationNotification {
        required {
            /// Which.
            resource_uri: Uri,
            /// Why.
            cause: PolicyAssociationReleaseCause,
        }
    }
}

json_bodies! {
    JSON: PolicyAssociationRequest, PolicyAssociation, PolicyAssociationUpdateRequest, PolicyUpdate,
        AmRequestedValueRep, TerminationNotification;
}

operations! {
    NpcfAmPolicyControl "/npcf-am-policy-control/v1";

    /// Asks for a policy.
    CreateAmPolicyAssociation
    "Npcf_AMPolicyControl_Create" "CreateIndividualAMPolicyAssociation"
    Post ["policies"] {}
    body PolicyAssociationRequest
    => [PolicyAssociationCreated];

    /// Reads a policy.
    ReadAmPolicyAssociation "Npcf_AMPolicyControl_Get" "ReadIndividualAMPolicyAssociation"
    Get ["policies", pol_asso_id] { pol_asso_id: String }
    => [PolicyAssociation];

    /// Tells what happened to the UE.
    UpdateAmPolicyAssociation "Npcf_AMPolicyControl_Update"
    "ReportObservedEventTriggersForIndividualAMPolicyAssociation"
    Post ["policies", pol_asso_id, "update"] { pol_asso_id: String }
    body PolicyAssociationUpdateRequest
    => [PolicyUpdate];

    /// Ends a policy.
    DeleteAmPolicyAssociation
    "Npcf_AMPolicyControl_Delete" "DeleteIndividualAMPolicyAssociation"
    Delete ["policies", pol_asso_id] { pol_asso_id: String }
    => [NoContent];
}

callbacks! {
    NpcfAmPolicyControl;

    /// Changes a policy.
    AmPolicyUpdateNotify "Npcf_AMPolicyControl_UpdateNotify" "am-policy" "/update"
    body PolicyUpdate
    => [NoContent, AmRequestedValueRep];

    /// Has the AMF end a policy.
    AmPolicyTerminateNotify "Npcf_AMPolicyControl_UpdateNotify" "am-policy" "/terminate"
    body TerminationNotification
    => [NoContent];
}
