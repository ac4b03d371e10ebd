//! Nudr_DataRepository (TS 29.504): subscription data (TS 29.505) and policy data (TS 29.519).

mod operations;
mod policy_data;
mod subscription_data;

pub use operations::{
    CreateAmfContextThreeGpp, CreateAuthenticationStatus, CreateOrUpdateSmfRegistration,
    CreateSdmSubscriptions, DataChangeNotification, DeleteAuthenticationStatus, DeleteSmfRegistration,
    ModifyAmfContextThreeGpp, ModifyAuthenticationSubscription, ModifySdmSubscription, QueryAmData,
    QueryAmfContextThreeGpp, QueryAuthSubsData, QueryAuthenticationStatus, QueryProvisionedData,
    QuerySdmSubscriptions, QuerySmData, QuerySmfRegList, QuerySmfRegistration, QuerySmfSelectData,
    ReadAccessAndMobilityPolicyData, ReadSessionManagementPolicyData, RemoveSdmSubscriptions,
    UpdateSdmSubscriptions,
};
pub(crate) use operations::{route, route_callback};
pub use policy_data::{AmPolicyData, SmPolicyData, SmPolicyDnnData, SmPolicySnssaiData};
pub use subscription_data::{AuthenticationSubscription, DataChangeNotify, SequenceNumber, Sign, SqnScheme};
