//! Nnrf_NFManagement (TS 29.510): registration, heart-beat and status subscriptions of NF instances.

mod info;
mod operations;
mod profile;
mod service;
mod subscription;

pub use info::{
    AmfInfo, AusfInfo, DnnSmfInfoItem, DnnUpfInfoItem, PcfInfo, SmfInfo, SnssaiSmfInfoItem,
    SnssaiUpfInfoItem, SuciInfo, SupiRange, TacRange, TaiRange, UdmInfo, UdrInfo, UpfInfo,
};
pub use operations::{
    CreateSubscription, DeregisterNfInstance, GetNfInstance, GetNfInstances, NfStatusNotify,
    RegisterNfInstance, RemoveSubscription, UpdateNfInstance, UpdateSubscription,
};
pub(crate) use operations::{route, route_callback};
pub use profile::{
    DefaultNotificationSubscription, NfProfile, NfStatus, NotificationType, PlmnSnssai, UriList,
    VendorSpecificFeature,
};
pub use service::{IpEndPoint, NfService, NfServiceStatus, NfServiceVersion, UriScheme};
pub use subscription::{
    ConditionEventType, NotifCondition, NotificationData, NotificationEventType, SubscrCond, SubscriptionData,
};
