//! Nudm_SubscriberDataManagement (TS 29.503 clause 6.1): subscription data.

mod access_and_mobility;
mod operations;
mod session_management;
mod subscription;

pub use access_and_mobility::{
    AccessAndMobilitySubscriptionData, AdditionalSnssaiData, DnnInfo, Nssai, SmfSelectionSubscriptionData,
    SnssaiInfo,
};
pub use operations::{
    GetAmData, GetDataSets, GetNssai, GetSmData, GetSmfSelData, GetUeCtxInSmfData, SdmChangeNotification,
    SdmModifySubscription, SdmSubscribe, SdmUnsubscribe,
};
pub(crate) use operations::{route, route_callback};
pub use session_management::{
    DnnConfiguration, FrameRouteInfo, IpAddress, PduSessionTypes, SessionManagementSubscriptionData,
    SmSubsData, SscModes,
};
pub use subscription::{
    DataSetName, ModificationNotification, PduSession, PgwInfo, SdmSubsModification, SdmSubscription,
    SubscriptionDataSets, UeContextInSmfData,
};
