//! De-registration (TS 24.501 8.2.12 to 8.2.15).

use crate::cause::GmmCause;
use crate::ie::*;
use crate::table::message;

message! {
    /// DEREGISTRATION REQUEST (UE originating) (TS 24.501 Table 8.2.12.1.1).
    DeregistrationRequestUeOriginating {
        /// Switch-off flag and access type.
        deregistration_type: DeregistrationType = Low;
        /// Which security context the message is protected with.
        ng_ksi: NgKsi = High;
        /// 5G-GUTI, else SUCI.
        mobile_identity: MobileIdentity = LvE(6, ANY);
    }
    optional {
        /// The complete message, ciphered (TS 24.501 4.4.6).
        0x71 nas_message_container: Vec<u8> = TlvE(4, ANY);
    }
}

message! {
    /// DEREGISTRATION ACCEPT (UE originating) (TS 24.501 Table 8.2.13.1.1), network to UE.
    DeregistrationAcceptUeOriginating {}
    optional {}
}

message! {
    /// DEREGISTRATION REQUEST (UE terminated) (TS 24.501 Table 8.2.14.1.1), network to UE.
    DeregistrationRequestUeTerminated {
        /// Re-registration flag and access type.
        deregistration_type: DeregistrationType = Half;
    }
    optional {
        /// Cause of the de-registration.
        0x58 cause: GmmCause = Tv(2);
        /// Back-off in congestion.
        0x5f t3346: GprsTimer2 = Tlv(3, 3);
        /// Slices that are not allowed.
        0x6d rejected_nssai: RejectedNssai = Tlv(4, 42);
        /// Closed access groups.
        0x75 cag_information_list: Vec<u8> = TlvE(3, ANY);
        /// Rejected slices with a back-off timer.
        0x68 extended_rejected_nssai: Vec<u8> = Tlv(5, 90);
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
    /// DEREGISTRATION ACCEPT (UE terminated) (TS 24.501 Table 8.2.15.1.1), UE to network.
    DeregistrationAcceptUeTerminated {}
    optional {}
}
