//! The media of an application session.

use super::{FlowUsage, MediaType};
use crate::common::{PreemptionCapability, PreemptionVulnerability};
use crate::npcf_smpolicycontrol::FlowStatus;
use crate::record::record;
use pith_types::BitRate;
use std::collections::BTreeMap;
use std::sync::Arc;

record! {
    /// A media component, such as a line `m=` of SDP.
    MediaComponent {
        required {
            /// Its number, unique in the session.
            med_comp_n: u32,
        }
        optional {
            /// The application.
            af_app_id: Arc<str>,
            /// Reference to a pre-defined QoS.
            qos_reference: Arc<str>,
            /// Gate status of its flows.
            f_status: FlowStatus,
            /// Maximum downlink bit rate.
            mar_bw_dl: BitRate,
            /// Maximum uplink bit rate.
            mar_bw_ul: BitRate,
            /// Requested guaranteed downlink bit rate.
            mir_bw_dl: BitRate,
            /// Requested guaranteed uplink bit rate.
            mir_bw_ul: BitRate,
            /// Kind of media.
            med_type: MediaType,
            /// Whether its flows may pre-empt others.
            preempt_cap: PreemptionCapability,
            /// Whether its flows may be pre-empted.
            preempt_vuln: PreemptionVulnerability,
            /// Reservation priority, `PRIO_1` (lowest) to `PRIO_16`.
            res_prio: Arc<str>,
        }
        repeated {
            /// Its IP flows, by their numbers.
            med_sub_comps: BTreeMap<Arc<str>, MediaSubComponent>,
        }
    }
}

record! {
    /// IP flows of a media component.
    MediaSubComponent {
        required {
            /// Their number, unique in the component.
            f_num: u32,
        }
        optional {
            /// Gate status, in place of that of the component.
            f_status: FlowStatus,
            /// Maximum downlink bit rate, in place of that of the component.
            mar_bw_dl: BitRate,
            /// Maximum uplink bit rate, in place of that of the component.
            mar_bw_ul: BitRate,
            /// Type of service and its mask, four hexadecimal digits.
            tos_tr_cl: Arc<str>,
            /// Use of the flows.
            flow_usage: FlowUsage,
        }
        repeated {
            /// Uplink and downlink flow, as IPFilterRules: `permit in` is uplink, `permit out` downlink.
            f_descs: Vec<Arc<str>>,
        }
    }
}
