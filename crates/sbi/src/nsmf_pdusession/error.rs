//! Errors of Nsmf_PDUSession with messages for the UE or the gNB, in addition to `ProblemDetails` in the
//! member `error`.

use super::{N2SmInfoType, UpCnxState};
use crate::common::{BinaryData, DateTime};
use crate::record::record;

record! {
    /// Members of `SmContextCreateError` besides `error`.
    SmContextCreateErrorData {
        optional {
            /// PDU SESSION ESTABLISHMENT REJECT.
            n1_sm_msg: BinaryData,
            /// NGAP information for the gNB.
            n2_sm_info: BinaryData,
            /// Type of the NGAP information.
            n2_sm_info_type: N2SmInfoType,
            /// Time of the SMF's last restart with loss of contexts.
            recovery_time: DateTime,
        }
    }
}

record! {
    /// Members of `SmContextUpdateError` besides `error`.
    SmContextUpdateErrorData {
        optional {
            /// A 5GSM message to the UE.
            n1_sm_msg: BinaryData,
            /// NGAP information for the gNB.
            n2_sm_info: BinaryData,
            /// Type of the NGAP information.
            n2_sm_info_type: N2SmInfoType,
            /// State of the user plane.
            up_cnx_state: UpCnxState,
            /// Time of the SMF's last restart with loss of contexts.
            recovery_time: DateTime,
        }
    }
}
