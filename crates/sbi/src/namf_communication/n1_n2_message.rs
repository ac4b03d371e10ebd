//! N1N2MessageTransfer: a NAS message to a UE, information to its gNB, or both.

use super::{N1MessageClass, N1N2MessageTransferCause, N2InformationClass, NgapIeType};
use crate::common::{AccessType, Arp, BinaryData, NfInstanceId, SupportedFeatures};
use crate::record::record;
use crate::uri::Uri;
use pith_types::{Guami, Snssai};

record! {
    /// What is to be sent.
    N1N2MessageTransferReqData {
        optional {
            /// To the UE.
            n1_message_container: N1MessageContainer,
            /// To the gNB.
            n2_info_container: N2InfoContainer,
            /// The UE is not to be paged for the NAS message alone.
            skip_ind: bool,
            /// No further message follows.
            last_msg_indication: bool,
            /// The session that it is about.
            pdu_session_id: u8,
            /// Paging Policy Indicator, 0 to 7.
            ppi: u8,
            /// Priority of the QoS flow that has downlink data.
            arp: Arp,
            /// 5QI of that QoS flow.
            #[serde(rename = "5qi")]
            five_qi: u8,
            /// Where to tell that the UE could not be reached.
            #[serde(rename = "n1n2FailureTxfNotifURI")]
            n1n2_failure_txf_notif_uri: Uri,
            /// The SMF may have to be chosen anew.
            smf_reallocation_ind: bool,
            /// Optional features that the sender has.
            supported_features: SupportedFeatures,
            /// The AMF that served the UE before.
            old_guami: Guami,
            /// The UPF buffers for longer.
            ext_buf_support: bool,
            /// Over which access.
            target_access: AccessType,
            /// The sender.
            nf_id: NfInstanceId,
        }
    }
}

record! {
    /// A NAS message.
    N1MessageContainer {
        required {
            /// What it is about.
            n1_message_class: N1MessageClass,
            /// The message.
            n1_message_content: BinaryData,
        }
        optional {
            /// Who shall have the answer.
            nf_id: NfInstanceId,
        }
    }
}

record! {
    /// Information for the gNB.
    N2InfoContainer {
        required {
            /// What it is about.
            n2_information_class: N2InformationClass,
        }
        optional {
            /// Of a PDU session.
            sm_info: N2SmInformation,
            /// Of the radio.
            ran_info: N2RanInformation,
        }
    }
}

record! {
    /// Information for the gNB on a PDU session.
    N2SmInformation {
        required {
            /// The session.
            pdu_session_id: u8,
        }
        optional {
            /// The information.
            n2_info_content: N2InfoContent,
            /// The slice of the session.
            s_nssai: Snssai,
            /// The session takes part in a handover.
            subject_to_ho: bool,
        }
    }
}

record! {
    /// Information for the gNB on the radio.
    N2RanInformation {
        required {
            /// The information.
            n2_info_content: N2InfoContent,
        }
    }
}

record! {
    /// An NGAP information element.
    N2InfoContent {
        required {
            /// The element.
            ngap_data: BinaryData,
        }
        optional {
            /// Procedure code of the NGAP message that it is for.
            ngap_message_type: u32,
            /// Which element.
            ngap_ie_type: NgapIeType,
        }
    }
}

record! {
    /// What became of it.
    N1N2MessageTransferRspData {
        required {
            /// What.
            cause: N1N2MessageTransferCause,
        }
        optional {
            /// Optional features that both have.
            supported_features: SupportedFeatures,
        }
    }
}

record! {
    /// When to try again (`errInfo` of `N1N2MessageTransferError`).
    N1N2MsgTxfrErrDetail {
        optional {
            /// After so many seconds.
            retry_after: u32,
            /// Priority of the flow for which the UE is being paged.
            highest_prio_arp: Arp,
            /// Seconds until the UE may be reachable.
            max_waiting_time: u32,
        }
    }
}

record! {
    /// The UE could not be reached.
    N1N2MsgTxfrFailureNotification {
        required {
            /// Why.
            cause: N1N2MessageTransferCause,
            /// Which message: the `Location` of the answer to the transfer.
            n1n2_msg_data_uri: Uri,
        }
    }
}
