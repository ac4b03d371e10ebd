//! PDU session release and 5GSM status (TS 24.501 8.3.12 to 8.3.16).

use crate::cause::GsmCause;
use crate::ie::*;
use crate::table::message;

message! {
    /// PDU SESSION RELEASE REQUEST (TS 24.501 Table 8.3.12.1.1), UE to network.
    PduSessionReleaseRequest {}
    optional {
        /// Cause of the release.
        0x59 cause: GsmCause = Tv(2);
        /// Data network parameters that the UE requests.
        0x7b extended_pco: UplinkPco = TlvE(4, 65538);
    }
}

message! {
    /// PDU SESSION RELEASE REJECT (TS 24.501 Table 8.3.13.1.1), network to UE.
    PduSessionReleaseReject {
        /// Cause of the reject.
        cause: GsmCause = V(1);
    }
    optional {
        /// Data network parameters for the UE.
        0x7b extended_pco: DownlinkPco = TlvE(4, 65538);
    }
}

message! {
    /// PDU SESSION RELEASE COMMAND (TS 24.501 Table 8.3.14.1.1), network to UE.
    PduSessionReleaseCommand {
        /// Cause of the release.
        cause: GsmCause = V(1);
    }
    optional {
        /// Back-off before another attempt.
        0x37 back_off_timer: GprsTimer3 = Tlv(3, 3);
        /// EAP-failure.
        0x78 eap_message: Vec<u8> = TlvE(7, 1503);
        /// Scope of the back-off.
        0x61 congestion_re_attempt_indicator: CongestionReAttemptIndicator = Tlv(3, 3);
        /// Data network parameters for the UE.
        0x7b extended_pco: DownlinkPco = TlvE(4, 65538);
        /// The access whose part of a multi-access session is released.
        0xd0 access_type: AccessType = Tv1;
        /// Service-level authentication and authorization.
        0x72 service_level_aa_container: Vec<u8> = TlvE(4, ANY);
    }
}

message! {
    /// PDU SESSION RELEASE COMPLETE (TS 24.501 Table 8.3.15.1.1), UE to network.
    PduSessionReleaseComplete {}
    optional {
        /// Cause of the release.
        0x59 cause: GsmCause = Tv(2);
        /// Data network parameters that the UE requests.
        0x7b extended_pco: UplinkPco = TlvE(4, 65538);
    }
}

message! {
    /// 5GSM STATUS (TS 24.501 Table 8.3.16.1.1), both ways.
    GsmStatus {
        /// The error in a received message.
        cause: GsmCause = V(1);
    }
    optional {}
}
