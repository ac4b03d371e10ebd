//! Scopes of operations: what the OpenAPI files name beside the service (`security` of an operation).

use crate::Operation;

impl Operation {
    /// The additional scopes that cover the operation, any of them. They narrow a token: one with additional
    /// scopes of a service is good for what these cover, one with the service alone for all of it
    /// (TS 33.501 13.4.1.1.2, TS 29.501 4.12).
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
            | QueryAmData
            | QuerySmfSelectData
            | QuerySmData
            | QueryAmfContextThreeGpp
            | QuerySmfRegList
            | QuerySmfRegistration
            | CreateSdmSubscriptions
            | QuerySdmSubscriptions
            | UpdateSdmSubscriptions
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
