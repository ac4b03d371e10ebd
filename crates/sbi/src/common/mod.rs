//! Common data types of the SBI (TS 29.571) that `pith-types` does not define.

mod binary;
mod enums;
mod identity;
mod location;
mod patch;
mod qos;
mod time;
mod trace;

pub use binary::{BinaryData, MediaType};
pub use enums::*;
pub use identity::{NfInstanceId, PlmnIdNid, ServingPlmnId, SupiOrSuci, SupportedFeatures, UeContextId};
pub use location::{
    Area, GNbId, GlobalRanNodeId, Ncgi, NrLocation, PresenceInfo, ServiceAreaRestriction, UserLocation,
};
pub use patch::{ChangeItem, ChangeType, NotifyItem, PatchItem, PatchOperation, PatchResult, ReportItem};
pub use qos::{Arp, SubscribedDefaultQos, UpSecurity};
pub use time::{DateTime, DateTimeError};
pub use trace::{TraceData, TraceDepth};

use crate::record::record;
use crate::uri::Uri;
use pith_types::{Guami, Snssai};
use std::collections::BTreeMap;
use std::sync::Arc;

record! {
    /// A hyperlink (TS 29.571).
    Link {
        optional {
            /// The target.
            href: Uri,
        }
    }
}

/// One or several hyperlinks (TS 29.571 `LinksValueSchema`).
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum LinksValue {
    /// One link.
    One(Link),
    /// At least one link.
    Many(Vec<Link>),
}

impl From<Uri> for LinksValue {
    fn from(href: Uri) -> Self {
        Self::One(Link { href: Some(href) })
    }
}

/// Hyperlinks by relation (`_links`).
pub type Links = BTreeMap<Arc<str>, LinksValue>;

record! {
    /// Backup AMF after a failure (TS 29.571).
    BackupAmfInfo {
        required {
            /// FQDN of the backup AMF.
            backup_amf: Arc<str>,
        }
        repeated {
            /// GUAMIs that are backed up; all if empty.
            guami_list: Vec<Guami>,
        }
    }
}

record! {
    /// A cause of NGAP (TS 29.571).
    NgApCause {
        required {
            /// 0 radio network, 1 transport, 2 NAS, 3 protocol, 4 miscellaneous.
            group: u32,
            /// The value within the group (TS 38.413 9.3.1.2).
            value: u32,
        }
    }
}

/// A slice, or a set of slices of one SST (TS 29.571 `ExtSnssai`).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtSnssai {
    /// The slice.
    #[serde(flatten)]
    pub snssai: Snssai,
    /// Further slices with the same SST: ranges of SDs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sd_ranges: Vec<SdRange>,
    /// Whether all slices with the SST are included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wildcard_sd: Option<bool>,
}

impl From<Snssai> for ExtSnssai {
    fn from(snssai: Snssai) -> Self {
        Self { snssai, sd_ranges: Vec::new(), wildcard_sd: None }
    }
}

impl ExtSnssai {
    /// Whether the set contains a slice.
    pub fn contains(&self, snssai: Snssai) -> bool {
        let within = |sd| self.sd_ranges.iter().any(|range| range.start.0 <= sd && sd <= range.end.0);
        let same_sst = self.snssai.sst == snssai.sst;
        let wild = self.wildcard_sd == Some(true);
        self.snssai == snssai || (same_sst && (wild || snssai.sd.is_some_and(within)))
    }
}

/// A range of slice differentiators (TS 29.571).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SdRange {
    /// First value.
    pub start: crate::octets::Hex<3>,
    /// Last value.
    pub end: crate::octets::Hex<3>,
}
