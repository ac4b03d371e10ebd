//! Identification and security mode control (TS 24.501 8.2.21, 8.2.22, 8.2.25 to 8.2.27).

use crate::cause::GmmCause;
use crate::ie::*;
use crate::table::message;

message! {
    /// IDENTITY REQUEST (TS 24.501 Table 8.2.21.1.1), network to UE.
    IdentityRequest {
        /// Requested identity type.
        identity_type: IdentityType = Half;
    }
    optional {}
}

message! {
    /// IDENTITY RESPONSE (TS 24.501 Table 8.2.22.1.1), UE to network.
    IdentityResponse {
        /// The requested identity, or none.
        mobile_identity: MobileIdentity = LvE(3, ANY);
    }
    optional {}
}

message! {
    /// SECURITY MODE COMMAND (TS 24.501 Table 8.2.25.1.1), network to UE.
    SecurityModeCommand {
        /// Selected algorithms.
        algorithms: NasSecurityAlgorithms = V(1);
        /// Key set identifier of the security context.
        ng_ksi: NgKsi = Half;
        /// The UE's security capability as the network received it, against bidding down.
        replayed_ue_security_capability: UeSecurityCapability = Lv(3, 9);
    }
    optional {
        /// Requests the IMEISV in the answer.
        0xe0 imeisv_request: ImeisvRequest = Tv1;
        /// EPS algorithms after a move to S1 mode: ciphering in bits 7 to 5, integrity in 3 to 1.
        0x57 selected_eps_algorithms: u8 = Tv(2);
        /// Derivation, and retransmission of the initial message.
        0x36 additional_security_information: AdditionalSecurityInformation = Tlv(3, 3);
        /// EAP-success.
        0x78 eap_message: Vec<u8> = TlvE(7, 1503);
        /// Anti-bidding down between architectures.
        0x38 abba: Vec<u8> = Tlv(4, ANY);
        /// EPS capability of the UE.
        0x19 replayed_s1_ue_security_capability: Vec<u8> = Tlv(4, 7);
    }
}

message! {
    /// SECURITY MODE COMPLETE (TS 24.501 Table 8.2.26.1.1), UE to network.
    SecurityModeComplete {}
    optional {
        /// IMEISV, if requested.
        0x77 imeisv: MobileIdentity = TlvE(12, 12);
        /// The complete REGISTRATION REQUEST or SERVICE REQUEST (TS 24.501 4.4.6).
        0x71 nas_message_container: Vec<u8> = TlvE(4, ANY);
        /// MAC address or EUI-64 of a device without IMEI.
        0x78 non_imeisv_pei: MobileIdentity = TlvE(7, ANY);
    }
}

message! {
    /// SECURITY MODE REJECT (TS 24.501 Table 8.2.27.1.1), UE to network.
    SecurityModeReject {
        /// Cause of the reject.
        cause: GmmCause = V(1);
    }
    optional {}
}
