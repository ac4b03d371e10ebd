//! The served network, and the private keys for its subscribers' SUCIs.

use super::section::{item, section};
use super::text::{list, words};
use pith_types::{Plmn, Snssai, Tac};
use std::path::PathBuf;

section! {
    /// The network that this core serves.
    Network {
        /// PLMNs, MCC/MNC; the first is the home network. 999 is the MCC of private networks.
        #[serde(with = "list")]
        plmns: Vec<Plmn> = vec![Plmn::new("999", "70").expect("a constant that is a PLMN")],
        /// Tracking Area Codes, four or six hexadecimal digits, as broadcast by the gNBs.
        tracking_areas: Vec<Tac> = vec![Tac::new(1)],
        /// Slices (S-NSSAI): SST, or SST-SD such as 1-010203.
        #[serde(with = "list")]
        slices: Vec<Snssai> = vec![Snssai::of_sst(1)],
    }
}

item! {
    /// A private key of the home network (TS 33.501 Annex C.3).
    HomeNetworkKey {
        /// Home Network Public Key Identifier, 1 to 255, as configured in the USIMs.
        id: u8,
        /// Protection scheme: a (X25519) or b (P-256).
        profile: SuciProfile,
        /// File with the private key: 64 hexadecimal digits, readable by its owner only.
        private_key_file: PathBuf,
    }
}

words! {
    /// A protection scheme of SUCIs (TS 33.501 Annex C.3.4).
    SuciProfile, "a protection scheme" {
        /// Profile A: X25519.
        A = "a",
        /// Profile B: P-256.
        B = "b",
    }
}
