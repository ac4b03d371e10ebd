//! Service request and notification (TS 24.501 8.2.16 to 8.2.18, 8.2.23, 8.2.24).

use crate::cause::GmmCause;
use crate::ie::*;
use crate::table::message;

message! {
    /// SERVICE REQUEST (TS 24.501 Table 8.2.16.1.1), UE to network.
    ServiceRequest {
        /// Which security context the message is protected with.
        ng_ksi: NgKsi = Low;
        /// Type of the requested service.
        service_type: ServiceType = High;
        /// 5G-S-TMSI.
        s_tmsi: MobileIdentity = LvE(9, 9);
    }
    optional {
        /// Sessions with user data pending.
        0x40 uplink_data_status: PduSessionSet = Tlv(4, 34);
        /// Sessions that are active in the UE.
        0x50 pdu_session_status: PduSessionSet = Tlv(4, 34);
        /// Sessions of non-3GPP access that may move to 3GPP access.
        0x25 allowed_pdu_session_status: PduSessionSet = Tlv(4, 34);
        /// The complete SERVICE REQUEST, ciphered (TS 24.501 4.4.6).
        0x71 nas_message_container: Vec<u8> = TlvE(4, ANY);
        /// NAS signalling connection release, rejection of paging.
        0x29 ue_request_type: u8 = Tlv(3, 3);
        /// Paging restriction.
        0x28 paging_restriction: Vec<u8> = Tlv(3, 35);
    }
}

message! {
    /// SERVICE ACCEPT (TS 24.501 Table 8.2.17.1.1), network to UE.
    ServiceAccept {}
    optional {
        /// Sessions that are active in the network.
        0x50 pdu_session_status: PduSessionSet = Tlv(4, 34);
        /// Sessions whose user plane could not be set up.
        0x26 reactivation_result: PduSessionSet = Tlv(4, 34);
        /// Causes of the failed reactivations.
        0x72 reactivation_result_error_cause: ReactivationErrors = TlvE(5, 515);
        /// EAP-success.
        0x78 eap_message: Vec<u8> = TlvE(7, 1503);
        /// Back-off of the control plane data path.
        0x6b t3448: GprsTimer2 = Tlv(3, 3);
        /// Rejection of a paging restriction.
        0x34 additional_request_result: u8 = Tlv(3, 3);
        /// Forbidden tracking areas for roaming.
        0x1d forbidden_tais_roaming: TaiList = Tlv(9, 114);
        /// Forbidden tracking areas for regional provision of service.
        0x1e forbidden_tais_regional: TaiList = Tlv(9, 114);
    }
}

message! {
    /// SERVICE REJECT (TS 24.501 Table 8.2.18.1.1), network to UE.
    ServiceReject {
        /// Cause of the reject.
        cause: GmmCause = V(1);
    }
    optional {
        /// Sessions that are active in the network.
        0x50 pdu_session_status: PduSessionSet = Tlv(4, 34);
        /// Back-off in congestion.
        0x5f t3346: GprsTimer2 = Tlv(3, 3);
        /// EAP-failure.
        0x78 eap_message: Vec<u8> = TlvE(7, 1503);
        /// Back-off of the control plane data path.
        0x6b t3448: GprsTimer2 = Tlv(3, 3);
        /// Closed access groups.
        0x75 cag_information_list: Vec<u8> = TlvE(3, ANY);
        /// Wait before the return from disaster roaming.
        0x2c disaster_return_wait_range: [u8; 2] = Tlv(4, 4);
        /// Closed access groups, extended.
        0x71 extended_cag_information_list: Vec<u8> = TlvE(3, ANY);
        /// Minimum time for which the PLMN is not allowed at this location.
        0x3a lower_bound_timer: GprsTimer3 = Tlv(3, 3);
        /// Forbidden tracking areas for roaming.
        0x1d forbidden_tais_roaming: TaiList = Tlv(9, 114);
        /// Forbidden tracking areas for regional provision of service.
        0x1e forbidden_tais_regional: TaiList = Tlv(9, 114);
    }
}

message! {
    /// NOTIFICATION (TS 24.501 Table 8.2.23.1.1), network to UE.
    Notification {
        /// The access of the sessions with data.
        access_type: AccessType = Half;
    }
    optional {}
}

message! {
    /// NOTIFICATION RESPONSE (TS 24.501 Table 8.2.24.1.1), UE to network.
    NotificationResponse {}
    optional {
        /// Sessions that are active in the UE.
        0x50 pdu_session_status: PduSessionSet = Tlv(4, 34);
    }
}
