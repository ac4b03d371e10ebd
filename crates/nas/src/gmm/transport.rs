//! NAS transport and 5GMM status (TS 24.501 8.2.10, 8.2.11, 8.2.29).

use crate::cause::GmmCause;
use crate::ie::*;
use crate::table::message;
use pith_types::Dnn;

message! {
    /// UL NAS TRANSPORT (TS 24.501 Table 8.2.10.1.1).
    UlNasTransport {
        /// Type of the payload container.
        payload_container_type: PayloadContainerType = Half;
        /// Usually a 5GSM message.
        payload_container: Vec<u8> = LvE(3, 65537);
    }
    optional {
        /// PDU session of the message.
        0x12 pdu_session_id: u8 = Tv(2);
        /// PDU session that the new one replaces (SSC mode 3).
        0x59 old_pdu_session_id: u8 = Tv(2);
        /// Type: new session, existing session, modification.
        0x80 request_type: RequestType = Tv1;
        /// Slice of the session.
        0x22 snssai: MappedSnssai = Tlv(3, 10);
        /// Data network of the session.
        0x25 dnn: Dnn = Tlv(3, 102);
        /// Routing of location or other payloads.
        0x24 additional_information: Vec<u8> = Tlv(3, ANY);
        /// Multi-access.
        0xa0 ma_pdu_session_information: u8 = Tv1;
        /// Whether more data is expected.
        0xf0 release_assistance_indication: u8 = Tv1;
    }
}

message! {
    /// DL NAS TRANSPORT (TS 24.501 Table 8.2.11.1.1).
    DlNasTransport {
        /// Type of the payload container.
        payload_container_type: PayloadContainerType = Half;
        /// Usually a 5GSM message.
        payload_container: Vec<u8> = LvE(3, 65537);
    }
    optional {
        /// PDU session of the message.
        0x12 pdu_session_id: u8 = Tv(2);
        /// Routing of location or other payloads.
        0x24 additional_information: Vec<u8> = Tlv(3, ANY);
        /// Why an uplink payload is returned.
        0x58 cause: GmmCause = Tv(2);
        /// Back-off before another attempt.
        0x37 back_off_timer: GprsTimer3 = Tlv(3, 3);
        /// Minimum time for which the PLMN is not allowed at this location.
        0x3a lower_bound_timer: GprsTimer3 = Tlv(3, 3);
    }
}

message! {
    /// 5GMM STATUS (TS 24.501 Table 8.2.29.1.1), both ways.
    GmmStatus {
        /// The error in a received message.
        cause: GmmCause = V(1);
    }
    optional {}
}
