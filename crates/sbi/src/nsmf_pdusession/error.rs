//! Errors of Nsmf_PDUSession that bring messages for the UE or the gNB, beside the
//! `ProblemDetails` in their member `error`.

use super::{N2SmInfoType, UpCnxState};
use crate::common::{BinaryData, DateTime};
use crate::record::record;

record! {
    /// What `SmContextCreateError` has beside `error`.
    SmContextCreateErrorData {
        optional {
            /// PDU SESSION ESTABLISHMENT REJECT.
            n1_sm_msg: BinaryData,
            /// NGAP information for the gNB.
            n2_sm_info: BinaryData,
            /// Which.
            n2_sm_info_type: N2SmInfoType,
            /// When the SMF last lost its contexts.
            recovery_time: DateTime,
        }
    }
}

record! {
    /// What `SmContextUpdateError` has beside `error`.
    SmContextUpdateErrorData {
        optional {
            /// A 5GSM message to the UE.
            n1_sm_msg: BinaryData,
            /// NGAP information for the gNB.
            n2_sm_info: BinaryData,
            /// Which.
            n2_sm_info_type: N2SmInfoType,
            /// State of the user plane.
            up_cnx_state: UpCnxState,
            /// When the SMF last lost its contexts.
            recovery_time: DateTime,
        }
    }
}
