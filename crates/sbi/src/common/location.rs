//! Location and service areas of a UE (TS 29.571).

use super::{DateTime, PresenceState, RestrictionType};
use crate::record::record;
use pith_types::{NrCellIdentity, Plmn, Tac, Tai};
use std::sync::Arc;

record! {
    /// Location of a UE (TS 29.571). Only NR locations are supported.
    UserLocation {
        optional {
            /// Location in NR.
            nr_location: NrLocation,
        }
    }
}

record! {
    /// A location in NR (TS 29.571).
    NrLocation {
        required {
            /// Tracking area.
            tai: Tai,
            /// NR cell.
            ncgi: Ncgi,
        }
        optional {
            /// Age of the location in minutes, 0 to 32767.
            age_of_location_information: u16,
            /// Time of the location.
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
            /// The PLMN of the cell.
            plmn_id: Plmn,
            /// The identity of the cell.
            nr_cell_id: NrCellIdentity,
        }
        optional {
            /// Network identifier of a stand-alone non-public network.
            nid: Arc<str>,
        }
    }
}

record! {
    /// A radio access node (TS 29.571). Only gNBs are supported.
    GlobalRanNodeId {
        required {
            /// The PLMN of the node.
            plmn_id: Plmn,
        }
        optional {
            /// The gNB's identity.
            g_nb_id: GNbId,
        }
    }
}

/// A gNB's identity (TS 29.571).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GNbId {
    /// Length of the identity, 22 to 32 bits.
    pub bit_length: u8,
    /// The bits in six to eight hexadecimal digits.
    #[serde(rename = "gNBValue")]
    pub g_nb_value: Arc<str>,
}

record! {
    /// An area: tracking areas, or an operator-defined area (TS 29.571).
    Area {
        optional {
            /// Operator-defined area code.
            area_code: Arc<str>,
        }
        repeated {
            /// Tracking areas.
            tacs: Vec<Tac>,
        }
    }
}

record! {
    /// Areas in which a UE gets service, or gets none (TS 29.571).
    ServiceAreaRestriction {
        optional {
            /// Whether the areas are allowed or not allowed.
            restriction_type: RestrictionType,
            /// Largest number of allowed tracking areas.
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
    /// An area monitored for a UE's presence (TS 29.571).
    PresenceInfo {
        optional {
            /// Identifier of the area.
            pra_id: Arc<str>,
            /// Whether the UE is in it.
            presence_state: PresenceState,
        }
        repeated {
            /// Tracking areas of the area.
            tracking_area_list: Vec<Tai>,
            /// NR cells of the area.
            ncgi_list: Vec<Ncgi>,
        }
    }
}
