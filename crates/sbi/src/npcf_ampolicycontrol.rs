//! Npcf_AMPolicyControl (TS 29.507): access and mobility policies of UEs.

use crate::common::{
    AccessType, PlmnIdNid, PresenceInfo, RatType, ServiceAreaRestriction, ServiceName, SupportedFeatures,
    UserLocation,
};
use crate::embedded::EmbeddedDocument;
use crate::http::json_bodies;
use crate::operation::{callbacks, operations};
use crate::record::{open_enum, record};
use crate::uri::Uri;
use pith_types::{Ambr, Guami, Pei, Snssai, Supi};
use std::collections::BTreeMap;
use std::sync::Arc;

open_enum! {
    /// Triggers of updates to the PCF.
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
    /// A request for an AM policy association.
    PolicyAssociationRequest {
        required {
            /// Callback URI, to which `/update` and `/terminate` are appended.
            notification_uri: Uri,
            /// SUPI of the subscriber.
            supi: Supi,
            /// Optional features of the AMF.
            supp_feat: SupportedFeatures,
        }
        optional {
            /// GPSI.
            gpsi: Arc<str>,
            /// Access type.
            access_type: AccessType,
            /// PEI of the UE.
            pei: Pei,
            /// Location of the UE.
            user_loc: UserLocation,
            /// Time zone of the UE, such as `+01:00`.
            time_zone: Arc<str>,
            /// The serving network.
            serving_plmn: PlmnIdNid,
            /// Radio access technology.
            rat_type: RatType,
            /// Subscribed service area.
            serv_area_res: ServiceAreaRestriction,
            /// Subscribed index to RAT/Frequency Selection Priority, 1 to 256.
            rfsp: u16,
            /// Subscribed UE-AMBR.
            ue_ambr: Ambr,
            /// GUAMI of the AMF.
            guami: Guami,
            /// Service of the callback; spelt as in the OpenAPI file.
            #[serde(rename = "serviveName")]
            service_name: ServiceName,
            /// Stored contexts of the UE, between instances of Pith ([`crate::embedded`]).
            #[serde(rename = "vendorSpecific-032473")]
            embedded: EmbeddedDocument,
        }
        repeated {
            /// Access types.
            access_types: Vec<AccessType>,
            /// Radio access technologies.
            rat_types: Vec<RatType>,
            /// Internal group identifiers.
            group_ids: Vec<Arc<str>>,
            /// Allowed slices.
            allowed_snssais: Vec<Snssai>,
        }
    }
}

record! {
    /// An AM policy association.
    PolicyAssociation {
        required {
            /// Optional features of both sides.
            supp_feat: SupportedFeatures,
        }
        optional {
            /// The request, in a GET response.
            request: PolicyAssociationRequest,
            /// Service area restriction.
            serv_area_res: ServiceAreaRestriction,
            /// RFSP index, 1 to 256.
            rfsp: u16,
            /// UE-AMBR.
            ue_ambr: Ambr,
            /// Stored contexts of the UE, between instances of Pith ([`crate::embedded`]).
            #[serde(rename = "vendorSpecific-032473")]
            embedded: EmbeddedDocument,
        }
        repeated {
            /// Triggers of updates.
            triggers: Vec<RequestTrigger>,
            /// Presence reporting areas.
            pras: BTreeMap<Arc<str>, PresenceInfo>,
        }
    }
}

record! {
    /// An update from the AMF.
    PolicyAssociationUpdateRequest {
        optional {
            /// New callback URI.
            notification_uri: Uri,
            /// Subscribed service area.
            serv_area_res: ServiceAreaRestriction,
            /// Subscribed index to RAT/Frequency Selection Priority.
            rfsp: u16,
            /// Subscribed UE-AMBR.
            ue_ambr: Ambr,
            /// Location of the UE.
            user_loc: UserLocation,
            /// GUAMI of the AMF.
            guami: Guami,
        }
        repeated {
            /// Triggers that occurred.
            triggers: Vec<RequestTrigger>,
            /// Presence in reporting areas.
            pra_statuses: BTreeMap<Arc<str>, PresenceInfo>,
            /// Allowed slices.
            allowed_snssais: Vec<Snssai>,
            /// Access types.
            access_types: Vec<AccessType>,
            /// Radio access technologies.
            rat_types: Vec<RatType>,
        }
    }
}

record! {
    /// A change of a policy by the PCF.
    PolicyUpdate {
        required {
            /// URI of the policy association.
            resource_uri: Uri,
        }
        optional {
            /// Service area restriction.
            serv_area_res: ServiceAreaRestriction,
            /// RFSP index.
            rfsp: u16,
            /// UE-AMBR.
            ue_ambr: Ambr,
        }
        repeated {
            /// Triggers of updates.
            triggers: Vec<RequestTrigger>,
            /// Presence reporting areas.
            pras: BTreeMap<Arc<str>, PresenceInfo>,
        }
    }
}

record! {
    /// Values requested by the PCF when it changed a policy.
    AmRequestedValueRep {
        optional {
            /// Location of the UE.
            user_loc: UserLocation,
        }
        repeated {
            /// Presence in reporting areas.
            pra_statuses: BTreeMap<Arc<str>, PresenceInfo>,
            /// Access types.
            access_types: Vec<AccessType>,
            /// Radio access technologies.
            rat_types: Vec<RatType>,
            /// Allowed slices.
            allowed_snssais: Vec<Snssai>,
        }
    }
}

open_enum! {
    /// The reason for the PCF's termination of a policy association.
    PolicyAssociationReleaseCause {
        Unspecified = "UNSPECIFIED",
        UeSubscription = "UE_SUBSCRIPTION",
        InsufficientRes = "INSUFFICIENT_RES",
    }
}

record! {
    /// Request of the PCF to terminate a policy association.
    TerminationNotification {
        required {
            /// URI of the policy association.
            resource_uri: Uri,
            /// The reason.
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

    /// Creates an AM policy association.
    CreateAmPolicyAssociation
    "Npcf_AMPolicyControl_Create" "CreateIndividualAMPolicyAssociation"
    Post ["policies"] {}
    body PolicyAssociationRequest
    => [PolicyAssociationCreated];

    /// Reads an AM policy association.
    ReadAmPolicyAssociation "Npcf_AMPolicyControl_Get" "ReadIndividualAMPolicyAssociation"
    Get ["policies", pol_asso_id] { pol_asso_id: String }
    => [PolicyAssociation];

    /// Reports events of the UE.
    UpdateAmPolicyAssociation "Npcf_AMPolicyControl_Update"
    "ReportObservedEventTriggersForIndividualAMPolicyAssociation"
    Post ["policies", pol_asso_id, "update"] { pol_asso_id: String }
    body PolicyAssociationUpdateRequest
    => [PolicyUpdate];

    /// Deletes an AM policy association.
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

    /// Requests the AMF to delete a policy association.
    AmPolicyTerminateNotify "Npcf_AMPolicyControl_UpdateNotify" "am-policy" "/terminate"
    body TerminationNotification
    => [NoContent];
}
