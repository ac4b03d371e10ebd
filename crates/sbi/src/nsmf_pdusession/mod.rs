//! Nsmf_PDUSession (TS 29.502): creation, modification and release of PDU sessions by the AMF.
//!
//! NAS messages (`n1_sm_msg`) and NGAP transfers (`n2_sm_info`) are octets that the AMF forwards between UE,
//! gNB and SMF without parsing them.

mod create;
mod enums;
mod error;
mod operations;
mod release;
mod retrieve;
mod update;

pub use create::{EbiArpMapping, SmContextCreateData, SmContextCreatedData};
pub use enums::{
    DnnSelectionMode, HoState, N2SmInfoType, RequestType, ResourceStatus, SmContextCause, SmContextType,
    UpCnxState,
};
pub use error::{SmContextCreateErrorData, SmContextUpdateErrorData};
pub use operations::{
    PostSmContexts, ReleaseSmContext, RetrieveSmContext, SmContextStatusNotify, UpdateSmContext,
};
pub(crate) use operations::{route, route_callback};
pub use release::{SmContextReleaseData, SmContextReleasedData, SmContextStatusNotification, StatusInfo};
pub use retrieve::{SmContext, SmContextRetrieveData, SmContextRetrievedData};
pub use update::{NgRanTargetId, SmContextUpdateData, SmContextUpdatedData};
