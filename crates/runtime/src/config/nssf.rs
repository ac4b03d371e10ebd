//! The NSSF's settings.

use super::section::{item, section};
use super::text::list;
use pith_sbi::NfInstanceId;
use pith_types::{Snssai, Tac};

section! {
    /// Network Slice Selection Function.
    Nssf {
        /// AMFs of slices that not every AMF of the network serves, such as [{slices: [2], set: 7}]: an AMF without such a slice
        /// passes a UE that requests it on to these (AMF re-allocation, TS 23.502 4.2.2.2.3).
        amfs: Vec<AmfsOfSlices> = Vec::new(),
        /// Instances of slices, such as sites with SMFs and UPFs of their own: [{id: site-a, slices: [1], tracking_areas: ['000001']}]. A session gets
        /// an SMF of the first one that serves its slice where the UE is (TS 23.501 5.15.5.3).
        slice_instances: Vec<SliceInstance> = Vec::new(),
    }
}

item! {
    /// An instance of slices.
    SliceInstance {
        /// NSI ID: 1 to 64 letters, digits, '-', '_' and '.'.
        id: String,
        /// The slices, of network.slices.
        #[serde(with = "list")]
        slices: Vec<Snssai>,
        /// Tracking areas of network.tracking_areas that it serves; all by default.
        #[serde(default, with = "list")]
        tracking_areas: Vec<Tac>,
    }
}

item! {
    /// The AMFs of some slices.
    AmfsOfSlices {
        /// The slices, of network.slices.
        #[serde(with = "list")]
        slices: Vec<Snssai>,
        /// AMF Region ID of their AMF Set; that of this core's AMF by default.
        region: Option<u8>,
        /// AMF Set ID, 0 to 1023.
        set: Option<u16>,
        /// In place of a set: NF instance IDs of AMFs, the preferred one first.
        #[serde(default)]
        instances: Vec<NfInstanceId>,
    }
}
