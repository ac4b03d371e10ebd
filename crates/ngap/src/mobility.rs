//! What handover, path switch and location reporting are made of (TS 38.413 9.3.1).

use crate::error::NgapError;
use crate::types::GlobalRanNodeId;
use oxirush_ngap::ngap as wire;
use pith_types::{Plmn, Snssai, Tac, Tai};
use std::fmt;

/// Where a handover goes (TS 38.413 9.3.1.25).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetId {
    /// To a node of 5GS.
    RanNode {
        /// Which node.
        node: GlobalRanNodeId,
        /// The tracking area there.
        tai: Tai,
    },
    /// To an eNB of EPS.
    Enb {
        /// Its network.
        plmn: Plmn,
        /// eNB ID.
        id: u32,
        /// Length of the eNB ID: 18 short macro, 20 macro, 21 long macro.
        bits: u8,
        /// Network of the tracking area there.
        tai_plmn: Plmn,
        /// Tracking area code there.
        tac: u16,
    },
}

/// NH and NCC (TS 38.413 9.3.1.88): a key, which `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct NextHop {
    /// NCC, 0 to 7.
    pub chaining_count: u8,
    /// NH (TS 33.501 6.9.2.1.1).
    pub nh: [u8; 32],
}

impl fmt::Debug for NextHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NextHop {{ chaining_count: {}, .. }}", self.chaining_count)
    }
}

/// A PDU session in a HANDOVER REQUEST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoverItem {
    /// PDU Session ID.
    pub pdu_session_id: u8,
    /// Its slice.
    pub snssai: Snssai,
    /// PDU Session Resource Setup Request Transfer, from the SMF.
    pub transfer: Vec<u8>,
}

/// Where a UE may go (TS 38.413 9.3.1.85).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MobilityRestrictions {
    /// The network that serves the UE.
    pub serving_plmn: Plmn,
    /// Networks that count as the same.
    pub equivalent_plmns: Vec<Plmn>,
    /// Radio access that is not allowed in a network: E-UTRA 0x80, NR 0x40.
    pub rat_restrictions: Vec<(Plmn, u8)>,
    /// Tracking areas of a network that are forbidden.
    pub forbidden_areas: Vec<(Plmn, Vec<Tac>)>,
    /// Where service is allowed, or is not.
    pub service_areas: Vec<ServiceArea>,
}

/// Tracking areas of a network where service is allowed, or is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceArea {
    /// The network.
    pub plmn: Plmn,
    /// The only areas where it is.
    pub allowed: Vec<Tac>,
    /// The areas where it is not.
    pub not_allowed: Vec<Tac>,
}

/// What to report of a location (TS 38.413 9.3.1.65), but for areas of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocationRequest {
    /// When to report.
    pub event: wire::EventType,
}

/// PDCP counts of radio bearers, which the AMF hands on unread (TS 38.413 9.3.1.108).
#[derive(Debug, Clone, PartialEq)]
pub struct RanStatus(pub(crate) wire::RANStatusTransferTransparentContainer<'static>);

impl RanStatus {
    /// Made of the octets of the container, as a gNB writes them.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        wire::decode_open_type::<wire::RANStatusTransferTransparentContainer<'_>>(octets)
            .map(|status| Self(status.into_owned()))
            .map_err(|error| NgapError::transfer_syntax(&error))
    }

    /// The octets of the container.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode_open_type(&self.0).map(|octets| octets.to_vec()).unwrap_or_default()
    }
}
