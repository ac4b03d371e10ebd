//! Npcf_PolicyAuthorization (TS 29.514): an application requests QoS for its media in a UE's PDU session.

mod context;
mod enums;
mod media;
mod notification;
mod operations;

pub use context::{AppSessionContext, AppSessionContextReqData, AppSessionContextRespData};
pub use enums::{AfEvent, AfNotifMethod, FlowUsage, MediaType, TerminationCause};
pub use media::{MediaComponent, MediaSubComponent};
pub use notification::{
    AfEventNotification, AfEventSubscription, AppSessionContextUpdateDataPatch, EventsNotification,
    EventsSubscReqData, Flows, ResourcesAllocationInfo, TerminationInfo,
};
pub use operations::{
    AppSessionEventNotify, AppSessionTerminate, DeleteAppSession, DeleteEventsSubsc, GetAppSession,
    ModAppSession, PostAppSession, UpdateEventsSubsc,
};
pub(crate) use operations::{route, route_callback};
