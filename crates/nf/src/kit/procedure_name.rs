//! The procedures by which the store counts what contexts cost.

/// A procedure of TS 23.502 that changes a context. Of several that one write has in common, the first in this order counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum ProcedureName {
    /// 4.2.2.2, including identification, authentication and security mode control.
    Registration,
    /// 4.2.2.3.
    Deregistration,
    /// 4.3.2.
    SessionEstablishment,
    /// 4.3.3, including an uplink classifier that is inserted or removed (4.3.5).
    SessionModification,
    /// 4.3.4.
    SessionRelease,
    /// 4.2.3, including paging.
    ServiceRequest,
    /// 4.9.1.
    Handover,
    /// 4.2.6, including connections that are lost.
    AnRelease,
    /// Anything else, such as what a restarted process stores again.
    #[default]
    Other,
}

impl ProcedureName {
    /// All, in their order.
    pub const ALL: [Self; 9] = [
        Self::Registration,
        Self::Deregistration,
        Self::SessionEstablishment,
        Self::SessionModification,
        Self::SessionRelease,
        Self::ServiceRequest,
        Self::Handover,
        Self::AnRelease,
        Self::Other,
    ];

    /// Its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Registration => "registration",
            Self::Deregistration => "deregistration",
            Self::SessionEstablishment => "sessionEstablishment",
            Self::SessionModification => "sessionModification",
            Self::SessionRelease => "sessionRelease",
            Self::ServiceRequest => "serviceRequest",
            Self::Handover => "handover",
            Self::AnRelease => "anRelease",
            Self::Other => "other",
        }
    }
}
