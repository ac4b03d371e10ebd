//! The context of an application session.

use super::{EventsNotification, EventsSubscReqData, MediaComponent};
use crate::common::SupportedFeatures;
use crate::record::record;
use crate::uri::Uri;
use pith_types::{Dnn, Snssai, Supi};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

record! {
    /// An application session context.
    AppSessionContext {
        optional {
            /// What the application requests.
            asc_req_data: AppSessionContextReqData,
            /// What the PCF returns.
            asc_resp_data: AppSessionContextRespData,
            /// Events that have occurred.
            evs_notif: EventsNotification,
        }
    }
}

record! {
    /// What an application requests.
    AppSessionContextReqData {
        required {
            /// Callback URI, to which `/terminate` is appended.
            notif_uri: Uri,
            /// Optional features of the application.
            supp_feat: SupportedFeatures,
        }
        optional {
            /// The application.
            af_app_id: Arc<str>,
            /// DNN of the PDU session.
            dnn: Dnn,
            /// Events that the application subscribes to.
            ev_subsc: EventsSubscReqData,
            /// IP domain, if addresses overlap.
            ip_domain: Arc<str>,
            /// Reservation priority of all media.
            res_prio: Arc<str>,
            /// Slice of the PDU session.
            slice_info: Snssai,
            /// SUPI of the UE.
            supi: Supi,
            /// GPSI of the UE.
            gpsi: Arc<str>,
            /// IPv4 address of the UE.
            ue_ipv4: Ipv4Addr,
            /// IPv6 address of the UE.
            ue_ipv6: Ipv6Addr,
            /// MAC address of the UE, in an Ethernet session.
            ue_mac: Arc<str>,
        }
        repeated {
            /// Its media components, by their numbers.
            med_components: BTreeMap<Arc<str>, MediaComponent>,
        }
    }
}

record! {
    /// What the PCF returns.
    AppSessionContextRespData {
        optional {
            /// Optional features of both sides.
            supp_feat: SupportedFeatures,
        }
    }
}
