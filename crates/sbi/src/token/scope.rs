//! Scopes of operations, besides the service, as in the OpenAPI files (`security` of an operation).

use crate::Operation;

impl Operation {
    /// Additional scopes of the operation; any of them covers it. Additional scopes restrict a token: a token
    /// with additional scopes of a service is valid only for the operations that they cover, a token with
    /// only the service for all of its operations (TS 33.501 13.4.1.1.2, TS 29.501 4.12).
    pub const fn additional_scopes(self) -> &'static [&'static str] {
        use Operation::*;
        match self {
            GenerateAuthData => &["nudm-ueau:security-information:generate-auth-data:invoke"],
            ConfirmAuth => &["nudm-ueau:auth-events:create"],
            DeleteAuth => &["nudm-ueau:auth-event-id:modify"],
            ThreeGppRegistration | UpdateThreeGppRegistration => &["nudm-uecm:amf-registration:write"],
            RegisterSmf | SmfDeregistration => &["nudm-uecm:smf-registration:write"],
            QueryAuthSubsData => &["nudr-dr:subscription-data:authentication-subscription:read"],
            ModifyAuthenticationSubscription => {
                &["nudr-dr:subscription-data:authentication-subscription:modify"]
            }
            CreateAuthenticationStatus
            | QueryAuthenticationStatus
            | DeleteAuthenticationStatus
            | QueryProvisionedData
            | QueryAmData
            | QuerySmfSelectData
            | QuerySmData
            | QueryAmfContextThreeGpp
            | QuerySmfRegList
            | QuerySmfRegistration
            | CreateSdmSubscriptions
            | QuerySdmSubscriptions
            | UpdateSdmSubscriptions
            | ModifySdmSubscription
            | RemoveSdmSubscriptions => &["nudr-dr:subscription-data"],
            CreateAmfContextThreeGpp
            | ModifyAmfContextThreeGpp
            | CreateOrUpdateSmfRegistration
            | DeleteSmfRegistration => {
                &["nudr-dr:subscription-data", "nudr-dr:subscription-data:registrations:write"]
            }
            ReadAccessAndMobilityPolicyData => {
                &["nudr-dr:policy-data", "nudr-dr:policy-data:ues:am-data:read"]
            }
            ReadSessionManagementPolicyData => {
                &["nudr-dr:policy-data", "nudr-dr:policy-data:ues:sm-data:read"]
            }
            GetNfInstances | GetNfInstance => &["nnrf-nfm:nf-instances:read"],
            _ => &[],
        }
    }
}
