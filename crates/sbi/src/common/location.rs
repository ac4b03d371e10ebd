//! Where a UE is, and where it may be (TS 29.571).

use super::{DateTime, PresenceState, RestrictionType};
use crate::record::record;
use pith_types::{NrCellIdentity, Plmn, Tac, Tai};
use std::sync::Arc;

record! {
    /// Where a UE is (TS 29.571). Accesses other than NR are not read yet.
    UserLocation {
        optional {
            /// In an NR cell.
            nr_location: NrLocation,
        }
    }
}

record! {
    /// A place in an NR network (TS 29.571).
    NrLocation {
        required {
            /// Tracking area.
            tai: Tai,
            /// Cell.
            ncgi: Ncgi,
        }
        optional {
            /// Minutes since the UE was seen there, 0 to 32767.
            age_of_location_information: u16,
            /// When the UE was seen there.
            ue_location_timestamp: DateTime,
            /// The gNB.
            global_gnb_id: GlobalRanNodeId,
        }
    }
}

record! {
    /// NR Cell Global Identity (TS 29.571).
    Ncgi {
        required {
            /// The network.
            plmn_id: Plmn,
            /// The cell in it.
            nr_cell_id: NrCellIdentity,
        }
        optional {
            /// Network identifier of a stand-alone non-public network.
            nid: Arc<str>,
        }
    }
}

record! {
    /// A radio access node (TS 29.571). Nodes other than gNBs are not read yet.
    GlobalRanNodeId {
        required {
            /// The network.
            plmn_id: Plmn,
        }
        optional {
            /// A gNB in it.
            g_nb_id: GNbId,
        }
    }
}

/// A gNB (TS 29.571).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GNbId {
    /// How long the identity is, 22 to 32 bits.
    pub bit_length: u8,
    /// Its bits, in six to eight hexadecimal digits.
    #[serde(rename = "gNBValue")]
    pub g_nb_value: Arc<str>,
}

record! {
    /// An area: tracking areas, or one of the operator's own (TS 29.571).
    Area {
        optional {
            /// The operator's own code.
            area_code: Arc<str>,
        }
        repeated {
            /// Tracking areas.
            tacs: Vec<Tac>,
        }
    }
}

record! {
    /// Where a UE gets service, or gets none (TS 29.571).
    ServiceAreaRestriction {
        optional {
            /// Which of the two.
            restriction_type: RestrictionType,
            /// How many tracking areas are allowed at most.
            #[serde(rename = "maxNumOfTAs")]
            max_num_of_tas: u32,
        }
        repeated {
            /// The areas.
            areas: Vec<Area>,
        }
    }
}

record! {
    /// An area that is watched for a UE's presence (TS 29.571).
    PresenceInfo {
        optional {
            /// The area's name.
            pra_id: Arc<str>,
            /// Whether the UE is in it.
            presence_state: PresenceState,
        }
        repeated {
            /// Its tracking areas.
            tracking_area_list: Vec<Tai>,
            /// Its NR cells.
            ncgi_list: Vec<Ncgi>,
        }
    }
}
