//! What messages are made of.

use oxirush_ngap::ngap::{CauseMisc, CauseNas, CauseProtocol, CauseRadioNetwork, CauseTransport};
use pith_types::{AmfUeNgapId, NrCellIdentity, Plmn, RanUeNgapId, Snssai, Tac, Tai};
use std::fmt;

/// Why (TS 38.413 9.3.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Of the radio network layer.
    RadioNetwork(CauseRadioNetwork),
    /// Of the transport layer.
    Transport(CauseTransport),
    /// Of NAS.
    Nas(CauseNas),
    /// Of the protocol.
    Protocol(CauseProtocol),
    /// Of anything else.
    Misc(CauseMisc),
}

impl Cause {
    /// Group and value as in `NgApCause` of TS 29.571 5.4.4.12.
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
    /// The name in TS 38.413, with blanks: `user inactivity`.
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
        /// Its network.
        plmn: Plmn,
        /// gNB ID.
        id: u32,
        /// Length of the gNB ID, 22 to 32 bits.
        bits: u8,
    },
    /// An ng-eNB.
    NgEnb {
        /// Its network.
        plmn: Plmn,
        /// ng-eNB ID.
        id: u32,
        /// Length of the ng-eNB ID: 18 short macro, 20 macro, 21 long macro.
        bits: u8,
    },
    /// An N3IWF.
    N3iwf {
        /// Its network.
        plmn: Plmn,
        /// N3IWF ID.
        id: u16,
    },
}

impl GlobalRanNodeId {
    /// The node's network.
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

/// A tracking area that a gNB serves, with the slices of each network in it
/// (TS 38.413 9.2.6.1 Supported TA List).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupportedTa {
    /// The area.
    pub tac: Tac,
    /// Networks broadcast there, each with its slices.
    pub plmns: Vec<(Plmn, Vec<Snssai>)>,
}

/// Where a UE is, as its gNB says (TS 38.413 9.3.1.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserLocation {
    /// The network of the cell.
    pub cell_plmn: Plmn,
    /// The cell.
    pub cell: NrCellIdentity,
    /// The tracking area.
    pub tai: Tai,
}

/// What UE NGAP IDs a UE CONTEXT RELEASE COMMAND names (TS 38.413 9.2.2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UeNgapIds {
    /// Both.
    Pair(AmfUeNgapId, RanUeNgapId),
    /// The AMF's only.
    Amf(AmfUeNgapId),
}

/// A UE-associated logical NG-connection (TS 38.413 9.3.3.25).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NgConnection {
    /// As the AMF numbered it.
    pub amf_ue_ngap_id: Option<AmfUeNgapId>,
    /// As the gNB numbered it.
    pub ran_ue_ngap_id: Option<RanUeNgapId>,
}

/// What an NG RESET resets (TS 38.413 9.2.6.11).
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
    /// Its slice.
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

/// A PDU session and what SMF and gNB tell each other of it, which the AMF passes on unread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTransfer {
    /// PDU Session ID.
    pub pdu_session_id: u8,
    /// The transfer that belongs to the message and the list.
    pub transfer: Vec<u8>,
}
