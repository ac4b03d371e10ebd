//! N1MessageNotify: a UE's NAS message for another NF; here the REGISTRATION REQUEST of a UE that another AMF is to serve (TS 29.518
//! 5.2.2.3.5; TS 23.502 4.2.2.2.3).

use super::{N1MessageContainer, UeContext};
use crate::common::{AccessType, GlobalRanNodeId, UserLocation};
use crate::nnssf_nsselection::{AllowedNssai, ConfiguredSnssai};
use crate::record::record;
use pith_types::{Guami, Snssai};
use std::sync::Arc;

record! {
    /// A NAS message of a UE.
    N1MessageNotification {
        required {
            /// The message.
            n1_message_container: N1MessageContainer,
        }
        optional {
            /// The subscription, if it is no default one.
            n1_notify_subscription_id: Arc<str>,
            /// What the target AMF needs to serve the UE.
            registration_ctxt_container: RegistrationContextContainer,
            /// The sending AMF.
            guami: Guami,
        }
    }
}

record! {
    /// A UE that is registering, for the AMF that is to serve it.
    RegistrationContextContainer {
        required {
            /// Identity, keys and sessions.
            ue_context: UeContext,
            /// Access of the UE.
            an_type: AccessType,
            /// RAN UE NGAP ID.
            an_n2_ap_id: u32,
            /// The UE's gNB.
            ran_node_id: GlobalRanNodeId,
            /// AMF Name of the initial AMF.
            initial_amf_name: Arc<str>,
            /// Location of the UE.
            user_location: UserLocation,
        }
        optional {
            /// Whether the gNB requests a UE context.
            ue_context_request: bool,
            /// AMF UE NGAP ID of the initial AMF.
            initial_amf_n2_ap_id: u64,
            /// RRC establishment cause, in hexadecimal.
            rrc_est_cause: Arc<str>,
            /// Slices that the NSSF allows.
            allowed_nssai: AllowedNssai,
        }
        repeated {
            /// Slices that the NSSF configures.
            configured_nssai: Vec<ConfiguredSnssai>,
            /// Requested slices that the network does not have.
            rejected_nssai_in_plmn: Vec<Snssai>,
            /// Requested slices that the tracking area does not have.
            rejected_nssai_in_ta: Vec<Snssai>,
        }
    }
}
