//! Trace of a subscriber (TS 29.571 5.6).

use crate::record::{open_enum, record};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

open_enum! {
    /// How much of each message is recorded (TS 29.571).
    TraceDepth {
        Minimum = "MINIMUM",
        Medium = "MEDIUM",
        Maximum = "MAXIMUM",
        MinimumWoVendorExtension = "MINIMUM_WO_VENDOR_EXTENSION",
        MediumWoVendorExtension = "MEDIUM_WO_VENDOR_EXTENSION",
        MaximumWoVendorExtension = "MAXIMUM_WO_VENDOR_EXTENSION",
    }
}

record! {
    /// Control and configuration of a trace (TS 29.571). The texts are as received: an invalid trace does not invalidate the
    /// subscription.
    TraceData {
        required {
            /// Trace Reference: MCC and MNC, a hyphen, and the Trace ID in six hexadecimal digits, such as `99970-00000a`.
            trace_ref: Arc<str>,
            /// How much is recorded.
            trace_depth: TraceDepth,
            /// Types of NFs that record, in hexadecimal digits (TS 32.422 5.4).
            ne_type_list: Arc<str>,
            /// Triggering events, in hexadecimal digits (TS 32.422 5.1).
            event_list: Arc<str>,
        }
        optional {
            /// IPv4 address of the trace collection entity.
            collection_entity_ipv4_addr: Ipv4Addr,
            /// IPv6 address of the trace collection entity.
            collection_entity_ipv6_addr: Ipv6Addr,
            /// Interfaces, in hexadecimal digits (TS 32.422 5.5); without it, all interfaces of the NFs.
            interface_list: Arc<str>,
        }
    }
}
