//! Events of an application session, and its modification.

use super::{AfEvent, AfNotifMethod, TerminationCause};
use crate::record::record;
use crate::uri::Uri;
use std::sync::Arc;

record! {
    /// A subscription to events.
    EventsSubscReqData {
        required {
            /// The events, at least one.
            events: Vec<AfEventSubscription>,
        }
        optional {
            /// Callback URI, to which `/notify` is appended.
            notif_uri: Uri,
        }
    }
}

record! {
    /// An event that an application subscribes to.
    AfEventSubscription {
        required {
            /// The event.
            event: AfEvent,
        }
        optional {
            /// When it is reported.
            notif_method: AfNotifMethod,
        }
    }
}

record! {
    /// Events that have occurred.
    EventsNotification {
        required {
            /// The subscription.
            ev_subs_uri: Uri,
            /// The events, at least one.
            ev_notifs: Vec<AfEventNotification>,
        }
        repeated {
            /// Media whose resources could not be allocated.
            failed_resourc_alloc_reports: Vec<ResourcesAllocationInfo>,
        }
    }
}

record! {
    /// An event that has occurred.
    AfEventNotification {
        required {
            /// The event.
            event: AfEvent,
        }
        repeated {
            /// The media concerned; all if absent.
            flows: Vec<Flows>,
        }
    }
}

record! {
    /// Media of an application session.
    Flows {
        required {
            /// Number of the media component.
            med_comp_n: u32,
        }
        repeated {
            /// Numbers of its IP flows; all if absent.
            f_nums: Vec<u32>,
        }
    }
}

record! {
    /// The status of resources of media.
    ResourcesAllocationInfo {
        optional {
            /// Status of the PCC rules: `ACTIVE` or `INACTIVE`.
            mc_resourc_status: Arc<str>,
        }
        repeated {
            /// The media concerned.
            flows: Vec<Flows>,
        }
    }
}

record! {
    /// The end of an application session, from the PCF.
    TerminationInfo {
        required {
            /// The reason.
            term_cause: TerminationCause,
            /// URI of the application session.
            res_uri: Uri,
        }
    }
}

record! {
    /// A modification of an application session (JSON Merge Patch).
    AppSessionContextUpdateDataPatch {
        optional {
            /// What changes of [`AppSessionContextReqData`](super::AppSessionContextReqData): a merge patch, in which an absent member
            /// and `null` differ ([`crate::patch::merge`]).
            asc_req_data: serde_json::Map<String, serde_json::Value>,
        }
    }
}
