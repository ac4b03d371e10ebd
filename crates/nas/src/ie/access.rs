//! Access type, and UE settings that a core forwards.

use crate::wire::coded;

coded! {
    /// Access type (TS 24.501 Table 9.11.2.1A.1; the values of the registration result too).
    AccessType {
        /// NG-RAN.
        ThreeGpp = 1,
        /// N3IWF, TNGF, W-AGF.
        NonThreeGpp = 2,
        /// Both.
        Both = 3,
    }
}

coded! {
    /// UE's usage setting (TS 24.501 Table 9.11.3.55.1).
    UeUsageSetting {
        /// Voice is preferred.
        VoiceCentric = 0,
        /// Data is preferred.
        DataCentric = 1,
    }
}

coded! {
    /// IMEISV request (TS 24.008 10.5.5.10), half an octet.
    ImeisvRequest {
        /// The IMEISV is not requested.
        NotRequested = 0,
        /// SECURITY MODE COMPLETE must contain the IMEISV.
        Requested = 1,
    }
}
