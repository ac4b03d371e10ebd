//! Paging (TS 38.413 8.5, 9.2.4).

use crate::macros::message;
use pith_types::{FiveGSTmsi, Tai};

message! {
    /// PAGING (TS 38.413 9.2.4.1).
    Paging = InitiatingMessage Paging Paging {
        /// The UE.
        req s_tmsi: FiveGSTmsi = UEPagingIdentity,
        /// Areas to page in.
        req tais: Vec<Tai> = TAIListForPaging,
    }
}
