//! RetrieveSMContext: transfer of a PDU session to EPS or to another SMF.

use super::SmContextType;
use crate::common::{NfInstanceId, PduSessionType};
use crate::record::record;
use pith_types::{Ambr, Dnn, Plmn, Snssai};
use serde_json::Value;
use std::net::Ipv4Addr;
use std::sync::Arc;

record! {
    /// A request for an SM context.
    SmContextRetrieveData {
        optional {
            /// The requested part.
            sm_context_type: SmContextType,
            /// The serving network.
            serving_network: Plmn,
            /// Whether the gNB is unchanged.
            ran_unchanged_ind: bool,
        }
        repeated {
            /// EPS bearers to omit.
            not_to_transfer_ebi_list: Vec<u8>,
        }
    }
}

record! {
    /// An SM context, or the equivalent EPS connection.
    SmContextRetrievedData {
        required {
            /// UE EPS PDN Connection (TS 29.274 8.39) in base64; empty if there is none.
            ue_eps_pdn_connection: Arc<str>,
        }
        optional {
            /// The SM context.
            sm_context: SmContext,
        }
    }
}

record! {
    /// An SM context for a transfer to another SMF.
    SmContext {
        required {
            /// PDU session identity.
            pdu_session_id: u8,
            /// DNN.
            dnn: Dnn,
            /// The slice in the serving network.
            s_nssai: Snssai,
            /// PDU session type.
            pdu_session_type: PduSessionType,
            /// Session AMBR.
            session_ambr: Ambr,
            /// QoS flows, at least one: `QosFlowSetupItem` of TS 29.502.
            qos_flows_list: Vec<Value>,
        }
        optional {
            /// The DNN selected in place of the requested one.
            selected_dnn: Dnn,
            /// The slice in the home network.
            hplmn_snssai: Snssai,
            /// GPSI.
            gpsi: Arc<str>,
            /// PCF of the session.
            pcf_id: NfInstanceId,
            /// SMF of the session.
            smf_instance_id: NfInstanceId,
            /// IPv4 address of the UE.
            ue_ipv4_address: Ipv4Addr,
            /// IPv6 prefix of the UE.
            ue_ipv6_prefix: Arc<str>,
        }
    }
}
