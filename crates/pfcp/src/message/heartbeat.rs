//! Heartbeat: detects whether the peer is alive and whether it has restarted (TS 29.244 7.4.2).

use crate::group::group;
use crate::ie::*;

group! {
    /// Heartbeat Request (TS 29.244 table 7.4.2.1-1).
    pub struct HeartbeatRequest {
        M recovery_time_stamp: NtpSeconds = RECOVERY_TIME_STAMP,
        O source_ip_address: SourceIpAddress = SOURCE_IP_ADDRESS,
    }

    /// Heartbeat Response (TS 29.244 table 7.4.2.2-1).
    pub struct HeartbeatResponse {
        M recovery_time_stamp: NtpSeconds = RECOVERY_TIME_STAMP,
    }

    /// Version Not Supported Response: a header alone (TS 29.244 7.4.4.7).
    pub struct VersionNotSupportedResponse {}
}
