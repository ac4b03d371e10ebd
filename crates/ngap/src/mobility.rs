//! Types of handover, path switch and location reporting (TS 38.413 9.3.1).

use crate::convert::{Read, Write};
use crate::error::NgapError;
use crate::types::GlobalRanNodeId;
use oxirush_ngap::ngap as wire;
use pith_types::{Plmn, Snssai, Tac, Tai};
use std::fmt;

/// The target of a handover (TS 38.413 9.3.1.25).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetId {
    /// A node of 5GS.
    RanNode {
        /// The node's identity.
        node: GlobalRanNodeId,
        /// The selected tracking area.
        tai: Tai,
    },
    /// An eNB of EPS.
    Enb {
        /// The node's PLMN.
        plmn: Plmn,
        /// eNB ID.
        id: u32,
        /// Length of the eNB ID: 18 short macro, 20 macro, 21 long macro.
        bits: u8,
        /// The PLMN of the selected tracking area.
        tai_plmn: Plmn,
        /// The selected tracking area code.
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
    /// The session's slice.
    pub snssai: Snssai,
    /// PDU Session Resource Setup Request Transfer, from the SMF.
    pub transfer: Vec<u8>,
}

/// Mobility Restriction List (TS 38.413 9.3.1.85).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MobilityRestrictions {
    /// The serving PLMN.
    pub serving_plmn: Plmn,
    /// Equivalent PLMNs.
    pub equivalent_plmns: Vec<Plmn>,
    /// RATs that are not allowed in a network: E-UTRA 0x80, NR 0x40.
    pub rat_restrictions: Vec<(Plmn, u8)>,
    /// Forbidden tracking areas of a network.
    pub forbidden_areas: Vec<(Plmn, Vec<Tac>)>,
    /// Service areas by network.
    pub service_areas: Vec<ServiceArea>,
}

/// Tracking areas of a network in which service is allowed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceArea {
    /// The network.
    pub plmn: Plmn,
    /// If not empty, service is allowed in these areas only.
    pub allowed: Vec<Tac>,
    /// Service is not allowed in these areas.
    pub not_allowed: Vec<Tac>,
}

/// The requested location report (TS 38.413 9.3.1.65), without areas of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocationRequest {
    /// The event to report.
    pub event: wire::EventType,
}

/// PDCP counts of radio bearers, transparent to the AMF (TS 38.413 9.3.1.108).
#[derive(Debug, Clone, PartialEq)]
pub struct RanStatus(pub(crate) wire::RANStatusTransferTransparentContainer<'static>);

impl RanStatus {
    /// Decodes the octets of the container.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        wire::decode_open_type::<wire::RANStatusTransferTransparentContainer<'_>>(octets)
            .map(|status| Self(status.into_owned()))
            .map_err(|error| NgapError::transfer_syntax(&error))
    }

    /// Encodes the container.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode_open_type(&self.0).map(|octets| octets.to_vec()).unwrap_or_default()
    }
}

/// First PDCP counts of radio bearers, transparent to the AMF (TS 38.413 9.3.1.218).
#[derive(Debug, Clone, PartialEq)]
pub struct EarlyRanStatus(pub(crate) wire::EarlyStatusTransferTransparentContainer<'static>);

impl EarlyRanStatus {
    /// Decodes the octets of the container.
    pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
        wire::decode_open_type::<wire::EarlyStatusTransferTransparentContainer<'_>>(octets)
            .map(|status| Self(status.into_owned()))
            .map_err(|error| NgapError::transfer_syntax(&error))
    }

    /// Encodes the container.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode_open_type(&self.0).map(|octets| octets.to_vec()).unwrap_or_default()
    }
}

/// SON Configuration Transfer (TS 38.413 9.3.3.6), transparent to the AMF but for its target and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct SonTransfer(pub(crate) wire::SONConfigurationTransfer<'static>);

impl SonTransfer {
    /// A gNB requests another gNB's addresses for Xn.
    pub fn request_of_xn_addresses(target: (GlobalRanNodeId, Tai), source: (GlobalRanNodeId, Tai)) -> Self {
        let (target, source) = ((target.0.write(), target.1.write()), (source.0.write(), source.1.write()));
        Self(wire::SONConfigurationTransfer::new(
            wire::TargetRANNodeIDSON::new(target.0, target.1, None),
            wire::SourceRANNodeID::new(source.0, source.1, None),
            wire::SONInformation::sONInformationRequest(
                wire::SONInformationRequest::xn_TNL_configuration_info,
            ),
            None,
            None,
        ))
    }

    /// The node for which it is; `None` if that is of an unknown kind.
    pub fn target(&self) -> Option<GlobalRanNodeId> {
        GlobalRanNodeId::read(self.0.target_ran_node_id_son.global_ran_node_id.clone()).ok()
    }

    /// The node from which it is; `None` if that is of an unknown kind.
    pub fn source(&self) -> Option<GlobalRanNodeId> {
        GlobalRanNodeId::read(self.0.source_ran_node_id.global_ran_node_id.clone()).ok()
    }
}
