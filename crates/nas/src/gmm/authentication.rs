//! Primary authentication (TS 24.501 8.2.1 to 8.2.5).

use crate::cause::GmmCause;
use crate::ie::*;
use crate::table::message;

message! {
    /// AUTHENTICATION REQUEST (TS 24.501 Table 8.2.1.1.1), network to UE.
    AuthenticationRequest {
        /// Key set identifier of the resulting security context.
        ng_ksi: NgKsi = Half;
        /// Anti-bidding down between architectures.
        abba: Vec<u8> = Lv(3, ANY);
    }
    optional {
        /// RAND of 5G-AKA.
        0x21 rand: [u8; 16] = Tv(17);
        /// AUTN of 5G-AKA.
        0x20 autn: [u8; 16] = Tlv(18, 18);
        /// EAP-request.
        0x78 eap_message: Vec<u8> = TlvE(7, 1503);
    }
}

message! {
    /// AUTHENTICATION RESPONSE (TS 24.501 Table 8.2.2.1.1), UE to network.
    AuthenticationResponse {}
    optional {
        /// RES* of 5G-AKA.
        0x2d res_star: [u8; 16] = Tlv(18, 18);
        /// EAP-response.
        0x78 eap_message: Vec<u8> = TlvE(7, 1503);
    }
}

message! {
    /// AUTHENTICATION RESULT (TS 24.501 Table 8.2.3.1.1), network to UE.
    AuthenticationResult {
        /// Key set identifier of the resulting security context.
        ng_ksi: NgKsi = Half;
        /// EAP-success or EAP-failure.
        eap_message: Vec<u8> = LvE(6, 1502);
    }
    optional {
        /// Anti-bidding down between architectures.
        0x38 abba: Vec<u8> = Tlv(4, ANY);
    }
}

message! {
    /// AUTHENTICATION FAILURE (TS 24.501 Table 8.2.4.1.1), UE to network.
    AuthenticationFailure {
        /// MAC failure, synch failure, ngKSI in use, non-5G authentication unacceptable.
        cause: GmmCause = V(1);
    }
    optional {
        /// AUTS, with a synch failure.
        0x30 auts: [u8; 14] = Tlv(16, 16);
    }
}

message! {
    /// AUTHENTICATION REJECT (TS 24.501 Table 8.2.5.1.1), network to UE.
    AuthenticationReject {}
    optional {
        /// EAP-failure.
        0x78 eap_message: Vec<u8> = TlvE(7, 1503);
    }
}
