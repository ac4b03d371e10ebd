//! Types that several messages contain.

use oxirush_ngap::ngap::{CauseMisc, CauseNas, CauseProtocol, CauseRadioNetwork, CauseTransport};
use pith_types::{AmfUeNgapId, NrCellIdentity, Plmn, RanUeNgapId, Snssai, Tac, Tai};
use std::fmt;

/// Cause (TS 38.413 9.3.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Radio network layer.
    RadioNetwork(CauseRadioNetwork),
    /// Transport layer.
    Transport(CauseTransport),
    /// NAS.
    Nas(CauseNas),
    /// Protocol.
    Protocol(CauseProtocol),
    /// Miscellaneous.
    Misc(CauseMisc),
}

impl Cause {
    /// Whether a gNB refuses because it hands the UE over (TS 38.413 8.2.1.2, 8.2.3.2, 8.6.4).
    pub const fn is_handover(self) -> bool {
        matches!(
            self,
            Self::RadioNetwork(
                CauseRadioNetwork::xn_handover_triggered
                    | CauseRadioNetwork::ng_intra_system_handover_triggered
                    | CauseRadioNetwork::ng_inter_system_handover_triggered
            )
        )
    }

    /// Group and value as in `NgApCause` (TS 29.571 5.4.4.12).
    pub fn group_and_value(self) -> (u32, u32) {
        match self {
            Self::RadioNetwork(cause) => (0, cause as u32),
            Self::Transport(cause) => (1, cause as u32),
            Self::Nas(cause) => (2, cause as u32),
            Self::Protocol(cause) => (3, cause as u32),
            Self::Misc(cause) => (4, cause as u32),
        }
    }
}

impl fmt::Display for Cause {
    /// The name in TS 38.413, with spaces: `user inactivity`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::RadioNetwork(cause) => format!("{cause:?}"),
            Self::Transport(cause) => format!("{cause:?}"),
            Self::Nas(cause) => format!("{cause:?}"),
            Self::Protocol(cause) => format!("{cause:?}"),
            Self::Misc(cause) => format!("{cause:?}"),
        };
        f.write_str(&name.replace('_', " "))
    }
}

/// Global RAN Node ID (TS 38.413 9.3.1.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GlobalRanNodeId {
    /// A gNB.
    Gnb {
        /// The node's PLMN.
        plmn: Plmn,
        /// gNB ID.
        id: u32,
        /// Length of the gNB ID, 22 to 32 bits.
        bits: u8,
    },
    /// An ng-eNB.
    NgEnb {
        /// The node's PLMN.
        plmn: Plmn,
        /// ng-eNB ID.
        id: u32,
        /// Length of the ng-eNB ID: 18 short macro, 20 macro, 21 long macro.
        bits: u8,
    },
    /// An N3IWF.
    N3iwf {
        /// The node's PLMN.
        plmn: Plmn,
        /// N3IWF ID.
        id: u16,
    },
}

impl GlobalRanNodeId {
    /// The node's PLMN.
    pub const fn plmn(&self) -> Plmn {
        match self {
            Self::Gnb { plmn, .. } | Self::NgEnb { plmn, .. } | Self::N3iwf { plmn, .. } => *plmn,
        }
    }
}

impl fmt::Display for GlobalRanNodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gnb { plmn, id, bits } => {
                write!(f, "{plmn}-gnb-{id:0width$x}", width = usize::from(bits.div_ceil(4)))
            }
            Self::NgEnb { plmn, id, .. } => write!(f, "{plmn}-ng-enb-{id:05x}"),
            Self::N3iwf { plmn, id } => write!(f, "{plmn}-n3iwf-{id:04x}"),
        }
    }
}

/// Whether an NGAP message can carry the text as AMF Name: a PrintableString of 1 to 150 characters (TS 38.413 9.3.3.21).
pub fn is_amf_name(name: &str) -> bool {
    (1..=150).contains(&name.len()) && name.bytes().all(is_printable)
}

/// Whether an octet is a character of PrintableString (X.680 41.4).
const fn is_printable(octet: u8) -> bool {
    octet.is_ascii_alphanumeric()
        || matches!(octet, b' ' | b'\'' | b'(' | b')' | b'+'..=b'/' | b':' | b'=' | b'?')
}

/// A tracking area of a gNB, with the slices of each network in it (Supported TA List, TS 38.413 9.2.6.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupportedTa {
    /// The tracking area code.
    pub tac: Tac,
    /// Networks broadcast there, each with its slices.
    pub plmns: Vec<(Plmn, Vec<Snssai>)>,
}

/// The UE's location as reported by its gNB (TS 38.413 9.3.1.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserLocation {
    /// The PLMN of the cell.
    pub cell_plmn: Plmn,
    /// The cell.
    pub cell: NrCellIdentity,
    /// The tracking area.
    pub tai: Tai,
}

/// The UE NGAP IDs in a UE CONTEXT RELEASE COMMAND (TS 38.413 9.2.2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UeNgapIds {
    /// Both ids.
    Pair(AmfUeNgapId, RanUeNgapId),
    /// The AMF's id only.
    Amf(AmfUeNgapId),
}

/// A UE-associated logical NG-connection (TS 38.413 9.3.3.25).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NgConnection {
    /// Assigned by the AMF.
    pub amf_ue_ngap_id: Option<AmfUeNgapId>,
    /// Assigned by the gNB.
    pub ran_ue_ngap_id: Option<RanUeNgapId>,
}

/// The scope of an NG RESET (TS 38.413 9.2.6.11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResetScope {
    /// The whole interface.
    NgInterface,
    /// These connections.
    Part(Vec<NgConnection>),
}

/// UE Security Capabilities (TS 38.413 9.3.1.86): algorithm 1 is the leading bit of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecurityCapabilities {
    /// NEA1, NEA2, NEA3, ….
    pub nr_encryption: u16,
    /// NIA1, NIA2, NIA3, ….
    pub nr_integrity: u16,
    /// EEA1, ….
    pub eutra_encryption: u16,
    /// EIA1, ….
    pub eutra_integrity: u16,
}

/// A PDU session to be set up (TS 38.413 9.2.1.1, 9.2.2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupItem {
    /// PDU Session ID.
    pub pdu_session_id: u8,
    /// The NAS message for the UE.
    pub nas_pdu: Option<Vec<u8>>,
    /// The session's slice.
    pub snssai: Snssai,
    /// PDU Session Resource Setup Request Transfer, from the SMF.
    pub transfer: Vec<u8>,
}

/// A PDU session to be modified (TS 38.413 9.2.1.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModifyItem {
    /// PDU Session ID.
    pub pdu_session_id: u8,
    /// The NAS message for the UE.
    pub nas_pdu: Option<Vec<u8>>,
    /// PDU Session Resource Modify Request Transfer, from the SMF.
    pub transfer: Vec<u8>,
}

/// A PDU session and its transfer between SMF and gNB, which is transparent to the AMF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTransfer {
    /// PDU Session ID.
    pub pdu_session_id: u8,
    /// The transfer; its type follows from message and list.
    pub transfer: Vec<u8>,
}
