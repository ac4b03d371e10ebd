//! PDU session authentication by the data network (TS 24.501 8.3.4 to 8.3.6).

use crate::ie::*;
use crate::table::message;

message! {
    /// PDU SESSION AUTHENTICATION COMMAND (TS 24.501 Table 8.3.4.1.1), network to UE.
    PduSessionAuthenticationCommand {
        /// EAP-request.
        eap_message: Vec<u8> = LvE(6, 1502);
    }
    optional {
        /// Data network parameters for the UE.
        0x7b extended_pco: DownlinkPco = TlvE(4, 65538);
    }
}

message! {
    /// PDU SESSION AUTHENTICATION COMPLETE (TS 24.501 Table 8.3.5.1.1), UE to network.
    PduSessionAuthenticationComplete {
        /// EAP-response.
        eap_message: Vec<u8> = LvE(6, 1502);
    }
    optional {
        /// Data network parameters that the UE requests.
        0x7b extended_pco: UplinkPco = TlvE(4, 65538);
    }
}

message! {
    /// PDU SESSION AUTHENTICATION RESULT (TS 24.501 Table 8.3.6.1.1), network to UE.
    PduSessionAuthenticationResult {}
    optional {
        /// EAP-success.
        0x78 eap_message: Vec<u8> = TlvE(7, 1503);
        /// Data network parameters for the UE.
        0x7b extended_pco: DownlinkPco = TlvE(4, 65538);
    }
}
