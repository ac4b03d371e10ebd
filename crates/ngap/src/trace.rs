//! Trace of a UE (TS 38.413 8.11, 9.2.10; TS 32.422).

use crate::macros::message;
use crate::types::Cause;
use oxirush_ngap::ngap::{PrivacyIndicator, TraceDepth};
use pith_types::{AmfUeNgapId, NrCellIdentity, Plmn, RanUeNgapId};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// NG-RAN Trace ID (TS 38.413 9.3.1.14): Trace Reference and Trace Recording Session Reference (TS 32.422 5.6, 5.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NgRanTraceId(pub [u8; 8]);

impl NgRanTraceId {
    /// The id of one recording session of a trace.
    pub const fn new(reference: [u8; 6], session: u16) -> Self {
        let ([a, b, c, d, e, f], [high, low]) = (reference, session.to_be_bytes());
        Self([a, b, c, d, e, f, high, low])
    }

    /// Trace Reference: PLMN and Trace ID.
    pub const fn reference(self) -> [u8; 6] {
        let [a, b, c, d, e, f, ..] = self.0;
        [a, b, c, d, e, f]
    }

    /// Trace Recording Session Reference.
    pub const fn session(self) -> u16 {
        let [.., high, low] = self.0;
        u16::from_be_bytes([high, low])
    }
}

impl fmt::Display for NgRanTraceId {
    /// 16 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Debug for NgRanTraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NgRanTraceId({self})")
    }
}

/// The addresses of a trace collection entity, at least one (TS 38.413 9.3.2.4, TS 38.414 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct CollectionEntity {
    pub ipv4: Option<Ipv4Addr>,
    pub ipv6: Option<Ipv6Addr>,
}

impl fmt::Display for CollectionEntity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.ipv4, self.ipv6) {
            (Some(ipv4), Some(ipv6)) => write!(f, "{ipv4} and {ipv6}"),
            (Some(ipv4), None) => write!(f, "{ipv4}"),
            (None, Some(ipv6)) => write!(f, "{ipv6}"),
            (None, None) => f.write_str("no address"),
        }
    }
}

/// Interfaces To Trace (TS 38.413 9.3.1.14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TracedInterfaces(pub u8);

impl TracedInterfaces {
    /// NG-C.
    pub const NG_C: Self = Self(0x80);
    /// Xn-C.
    pub const XN_C: Self = Self(0x40);
    /// Uu.
    pub const UU: Self = Self(0x20);
    /// F1-C.
    pub const F1_C: Self = Self(0x10);
    /// E1.
    pub const E1: Self = Self(0x08);
    /// All interfaces of an NG-RAN node; the other bits are reserved.
    pub const ALL: Self = Self(Self::NG_C.0 | Self::XN_C.0 | Self::UU.0 | Self::F1_C.0 | Self::E1.0);
}

/// Trace Activation (TS 38.413 9.3.1.14), without MDT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceActivation {
    /// The recording session.
    pub id: NgRanTraceId,
    /// Interfaces whose messages are recorded.
    pub interfaces: TracedInterfaces,
    /// How much is recorded.
    pub depth: TraceDepth,
    /// The receiver of the records.
    pub collection_entity: CollectionEntity,
}

/// A cell of NR (TS 38.413 9.3.1.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct NrCgi {
    pub plmn: Plmn,
    pub cell: NrCellIdentity,
}

message! {
    /// TRACE START (TS 38.413 9.2.10.1).
    TraceStart = InitiatingMessage TraceStart TraceStart {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// The trace.
        lax activation: TraceActivation = TraceActivation,
    }
}

message! {
    /// TRACE FAILURE INDICATION (TS 38.413 9.2.10.2).
    TraceFailureIndication = InitiatingMessage TraceFailureIndication TraceFailureIndication {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// The recording session that failed.
        lax trace: NgRanTraceId = NGRANTraceID,
        lax cause: Cause = Cause,
    }
}

message! {
    /// DEACTIVATE TRACE (TS 38.413 9.2.10.3).
    DeactivateTrace = InitiatingMessage DeactivateTrace DeactivateTrace {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// The trace to stop.
        lax trace: NgRanTraceId = NGRANTraceID,
    }
}

message! {
    /// CELL TRAFFIC TRACE (TS 38.413 9.2.10.4): the gNB records the UE for a trace of its cell.
    CellTrafficTrace = InitiatingMessage CellTrafficTrace CellTrafficTrace {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// The recording session.
        lax trace: NgRanTraceId = NGRANTraceID,
        /// The traced cell, if it is one of NR.
        lax cell: NrCgi = NGRAN_CGI,
        /// The receiver of the records.
        lax collection_entity: CollectionEntity = TraceCollectionEntityIPAddress,
        /// The kind of MDT, if the trace has one.
        lax privacy: PrivacyIndicator = PrivacyIndicator,
        /// The receiver of the records, as a URI.
        lax collection_entity_uri: String = TraceCollectionEntityURI,
    }
}
