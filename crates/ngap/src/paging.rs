//! Paging (TS 38.413 8.5, 9.2.4).

use crate::macros::message;
use oxirush_ngap::ngap::{NRPagingEDRXCycle, NRPagingTimeWindow, PagingDRX, PagingPriority};
use pith_types::{FiveGSTmsi, Tai};

message! {
    /// PAGING (TS 38.413 9.2.4.1).
    Paging = InitiatingMessage Paging Paging {
        /// The UE.
        req s_tmsi: FiveGSTmsi = UEPagingIdentity,
        /// UE-specific DRX.
        lax paging_drx: PagingDRX = PagingDRX,
        /// Areas to page in.
        req tais: Vec<Tai> = TAIListForPaging,
        /// Priority of the service for which the UE is paged.
        lax priority: PagingPriority = PagingPriority,
        /// Extended DRX of the UE in NR.
        lax nr_edrx: NrPagingEdrx = NR_PagingeDRXInformation,
    }
}

/// NR Paging eDRX Information (TS 38.413 9.3.1.227).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NrPagingEdrx {
    /// The cycle, in hyperframes of 10.24 s.
    pub cycle: NRPagingEDRXCycle,
    /// The paging time window, in units of 1.28 s, of cycles that have one.
    pub window: Option<NRPagingTimeWindow>,
}

impl Paging {
    /// PAGING of a UE without DRX of its own.
    pub const fn new(s_tmsi: FiveGSTmsi, tais: Vec<Tai>) -> Self {
        Self { s_tmsi, paging_drx: None, tais, priority: None, nr_edrx: None }
    }
}
