//! RetrieveSMContext: a PDU session moves to EPS or to another SMF.

use super::SmContextType;
use crate::common::{NfInstanceId, PduSessionType};
use crate::record::record;
use pith_types::{Ambr, Dnn, Plmn, Snssai};
use serde_json::Value;
use std::net::Ipv4Addr;
use std::sync::Arc;

record! {
    /// What of an SM context is asked for.
    SmContextRetrieveData {
        optional {
            /// Which part.
            sm_context_type: SmContextType,
            /// The serving network.
            serving_network: Plmn,
            /// The gNB stays.
            ran_unchanged_ind: bool,
        }
        repeated {
            /// EPS bearers to be left out.
            not_to_transfer_ebi_list: Vec<u8>,
        }
    }
}

record! {
    /// An SM context, or the EPS connection that it would be.
    SmContextRetrievedData {
        required {
            /// UE EPS PDN Connection (TS 29.274 8.39) in base64; empty where there is none.
            ue_eps_pdn_connection: Arc<str>,
        }
        optional {
            /// The SM context.
            sm_context: SmContext,
        }
    }
}

record! {
    /// An SM context, for another SMF to go on with.
    SmContext {
        required {
            /// The UE's number for the session.
            pdu_session_id: u8,
            /// The data network.
            dnn: Dnn,
            /// The slice in the serving network.
            s_nssai: Snssai,
            /// What the session carries.
            pdu_session_type: PduSessionType,
            /// Session AMBR.
            session_ambr: Ambr,
            /// QoS flows, at least one: `QosFlowSetupItem` of TS 29.502.
            qos_flows_list: Vec<Value>,
        }
        optional {
            /// The data network chosen instead.
            selected_dnn: Dnn,
            /// The slice in the home network.
            hplmn_snssai: Snssai,
            /// Public identity.
            gpsi: Arc<str>,
            /// The PCF of the session.
            pcf_id: NfInstanceId,
            /// The SMF of the session.
            smf_instance_id: NfInstanceId,
            /// The UE's address.
            ue_ipv4_address: Ipv4Addr,
            /// The UE's prefix.
            ue_ipv6_prefix: Arc<str>,
        }
    }
}
