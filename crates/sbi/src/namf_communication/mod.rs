//! Namf_Communication (TS 29.518): message transfer to UEs through the AMF, and transfer of UE contexts
//! between AMFs, at a registration and at a handover.

mod enums;
mod n1_message_notify;
mod n1_n2_message;
mod operations;
mod ue_context;
mod ue_context_creation;
mod ue_context_transfer;

pub use enums::{
    CipheringAlgorithm, IntegrityAlgorithm, KeyAmfType, N1MessageClass, N1N2MessageTransferCause,
    N2InfoNotifyReason, N2InformationClass, NgapIeType, ScType, TransferReason, UeContextTransferStatus,
};
pub use n1_message_notify::{N1MessageNotification, RegistrationContextContainer};
pub use n1_n2_message::{
    N1MessageContainer, N1N2MessageTransferReqData, N1N2MessageTransferRspData, N1N2MsgTxfrErrDetail,
    N1N2MsgTxfrFailureNotification, N2InfoContainer, N2InfoContent, N2RanInformation, N2SmInformation,
};
pub use operations::{
    CreateUeContext, N1MessageNotify, N1N2MessageTransfer, N1N2TransferFailureNotification, N2InfoNotify,
    RegistrationStatusUpdate, ReleaseUeContext, UeContextTransfer,
};
pub(crate) use operations::{route, route_callback};
pub use ue_context::{
    KeyAmf, MmContext, NasSecurityMode, NgKsi, NssaiMapping, PduSessionContext, SeafData, UeContext,
};
pub use ue_context_creation::{
    N2InfoNotificationRspData, N2InformationNotification, UeContextCreateData, UeContextCreateErrorData,
    UeContextCreatedData, UeContextRelease,
};
pub use ue_context_transfer::{
    UeContextTransferReqData, UeContextTransferRspData, UeRegStatusUpdateReqData, UeRegStatusUpdateRspData,
};
