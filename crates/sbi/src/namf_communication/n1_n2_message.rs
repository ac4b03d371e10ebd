//! N1N2MessageTransfer: a NAS message to a UE, NGAP information to its gNB, or both.

use super::{N1MessageClass, N1N2MessageTransferCause, N2InformationClass, NgapIeType};
use crate::common::{AccessType, Arp, BinaryData, NfInstanceId, SupportedFeatures};
use crate::embedded::EmbeddedDocument;
use crate::record::record;
use crate::uri::Uri;
use pith_types::{Guami, Snssai};

record! {
    /// A message transfer.
    N1N2MessageTransferReqData {
        optional {
            /// NAS message to the UE.
            n1_message_container: N1MessageContainer,
            /// NGAP information to the gNB.
            n2_info_container: N2InfoContainer,
            /// Whether the AMF must not page the UE for the NAS message alone.
            skip_ind: bool,
            /// Whether no further message follows.
            last_msg_indication: bool,
            /// The PDU session concerned.
            pdu_session_id: u8,
            /// Paging Policy Indicator, 0 to 7.
            ppi: u8,
            /// Priority of the QoS flow that has downlink data.
            arp: Arp,
            /// 5QI of that QoS flow.
            #[serde(rename = "5qi")]
            five_qi: u8,
            /// Callback URI for a failed transfer.
            #[serde(rename = "n1n2FailureTxfNotifURI")]
            n1n2_failure_txf_notif_uri: Uri,
            /// Whether the SMF may have to be reselected.
            smf_reallocation_ind: bool,
            /// Optional features of the sender.
            supported_features: SupportedFeatures,
            /// The GUAMI of the previous AMF.
            old_guami: Guami,
            /// Whether the UPF supports extended buffering.
            ext_buf_support: bool,
            /// The access to use.
            target_access: AccessType,
            /// NF instance of the sender.
            nf_id: NfInstanceId,
            /// Stored contexts of the UE, between instances of Pith ([`crate::embedded`]).
            #[serde(rename = "vendorSpecific-032473")]
            embedded: EmbeddedDocument,
        }
    }
}

record! {
    /// A NAS message.
    N1MessageContainer {
        required {
            /// Class of the message.
            n1_message_class: N1MessageClass,
            /// The message.
            n1_message_content: BinaryData,
        }
        optional {
            /// NF instance that receives the UE's answer.
            nf_id: NfInstanceId,
        }
    }
}

record! {
    /// NGAP information for the gNB.
    N2InfoContainer {
        required {
            /// Class of the information.
            n2_information_class: N2InformationClass,
        }
        optional {
            /// Information for a PDU session.
            sm_info: N2SmInformation,
            /// Information for the RAN.
            ran_info: N2RanInformation,
        }
    }
}

record! {
    /// NGAP information for a PDU session.
    N2SmInformation {
        required {
            /// The PDU session.
            pdu_session_id: u8,
        }
        optional {
            /// The information.
            n2_info_content: N2InfoContent,
            /// The slice of the session.
            s_nssai: Snssai,
            /// Whether the session takes part in a handover.
            subject_to_ho: bool,
        }
    }
}

record! {
    /// NGAP information for the RAN.
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
            /// Procedure code of the NGAP message.
            ngap_message_type: u32,
            /// Type of the element.
            ngap_ie_type: NgapIeType,
        }
    }
}

record! {
    /// The result of a message transfer.
    N1N2MessageTransferRspData {
        required {
            /// The result.
            cause: N1N2MessageTransferCause,
        }
        optional {
            /// Optional features of both sides.
            supported_features: SupportedFeatures,
            /// Stored contexts of the UE, between instances of Pith ([`crate::embedded`]).
            #[serde(rename = "vendorSpecific-032473")]
            embedded: EmbeddedDocument,
        }
    }
}

record! {
    /// Retry information (`errInfo` of `N1N2MessageTransferError`).
    N1N2MsgTxfrErrDetail {
        optional {
            /// Seconds until the next attempt.
            retry_after: u32,
            /// Priority of the flow for which the UE is paged.
            highest_prio_arp: Arp,
            /// Seconds until the UE may be reachable.
            max_waiting_time: u32,
        }
    }
}

record! {
    /// Notification of a failed transfer.
    N1N2MsgTxfrFailureNotification {
        required {
            /// The reason.
            cause: N1N2MessageTransferCause,
            /// The message, by the `Location` in the response to the transfer.
            n1n2_msg_data_uri: Uri,
        }
    }
}
