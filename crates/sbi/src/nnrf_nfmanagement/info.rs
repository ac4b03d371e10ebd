//! NF-specific parts of a profile.

use crate::common::{AccessType, ExtSnssai, PduSessionType};
use crate::octets::Hex;
use crate::record::record;
use pith_types::{Dnn, Guami, Plmn, Supi, Tai};
use std::sync::Arc;

record! {
    /// AMF-specific data.
    AmfInfo {
        required {
            /// AMF Set ID, three hexadecimal digits of which the first is 0 to 3.
            amf_set_id: Arc<str>,
            /// AMF Region ID, two hexadecimal digits.
            amf_region_id: Hex<1>,
            /// GUAMIs, at least one.
            guami_list: Vec<Guami>,
        }
        repeated {
            /// Tracking areas.
            tai_list: Vec<Tai>,
            /// Ranges of tracking areas.
            tai_range_list: Vec<TaiRange>,
            /// GUAMIs for which the AMF is a backup in case of failure.
            backup_info_amf_failure: Vec<Guami>,
            /// GUAMIs for which the AMF is a backup in case of planned removal.
            backup_info_amf_removal: Vec<Guami>,
        }
    }
}

record! {
    /// SMF-specific data.
    SmfInfo {
        required {
            /// Slices with their data networks, at least one.
            s_nssai_smf_info_list: Vec<SnssaiSmfInfoItem>,
        }
        optional {
            /// Priority, 0 to 65535; lower is preferred.
            priority: u16,
            /// Whether it supports the V-SMF role of home-routed sessions.
            vsmf_support_ind: bool,
        }
        repeated {
            /// Tracking areas; all if empty.
            tai_list: Vec<Tai>,
            /// Ranges of tracking areas.
            tai_range_list: Vec<TaiRange>,
            /// Accesses; both if empty.
            access_type: Vec<AccessType>,
        }
    }
}

record! {
    /// A slice of an SMF.
    SnssaiSmfInfoItem {
        required {
            /// The slice.
            s_nssai: ExtSnssai,
            /// Data networks of the slice, at least one.
            dnn_smf_info_list: Vec<DnnSmfInfoItem>,
        }
    }
}

record! {
    /// A data network of an SMF.
    DnnSmfInfoItem {
        required {
            /// DNN; `*` for any.
            dnn: Arc<str>,
        }
        repeated {
            /// DNAIs.
            dnai_list: Vec<Arc<str>>,
        }
    }
}

record! {
    /// UPF-specific data.
    UpfInfo {
        required {
            /// Slices with their data networks, at least one.
            s_nssai_upf_info_list: Vec<SnssaiUpfInfoItem>,
        }
        optional {
            /// Priority, 0 to 65535; lower is preferred.
            priority: u16,
        }
        repeated {
            /// SMF serving areas of the SMFs that may use the UPF.
            smf_serving_area: Vec<Arc<str>>,
            /// PDU session types.
            pdu_session_types: Vec<PduSessionType>,
            /// Tracking areas.
            tai_list: Vec<Tai>,
        }
    }
}

record! {
    /// A slice of a UPF.
    SnssaiUpfInfoItem {
        required {
            /// The slice.
            s_nssai: ExtSnssai,
            /// Data networks of the slice, at least one.
            dnn_upf_info_list: Vec<DnnUpfInfoItem>,
        }
    }
}

record! {
    /// A data network of a UPF.
    DnnUpfInfoItem {
        required {
            /// DNN.
            dnn: Dnn,
        }
        repeated {
            /// DNAIs.
            dnai_list: Vec<Arc<str>>,
            /// PDU session types.
            pdu_session_types: Vec<PduSessionType>,
        }
    }
}

record! {
    /// UDM-specific data.
    UdmInfo {
        optional {
            /// UDM group.
            group_id: Arc<str>,
        }
        repeated {
            /// Ranges of SUPIs; all if empty.
            supi_ranges: Vec<SupiRange>,
            /// Routing Indicators; all if empty.
            routing_indicators: Vec<Arc<str>>,
            /// Routing Indicators with their home network public keys.
            suci_infos: Vec<SuciInfo>,
        }
    }
}

record! {
    /// AUSF-specific data.
    AusfInfo {
        optional {
            /// AUSF group.
            group_id: Arc<str>,
        }
        repeated {
            /// Ranges of SUPIs; all if empty.
            supi_ranges: Vec<SupiRange>,
            /// Routing Indicators; all if empty.
            routing_indicators: Vec<Arc<str>>,
            /// Routing Indicators with their home network public keys.
            suci_infos: Vec<SuciInfo>,
        }
    }
}

record! {
    /// UDR-specific data.
    UdrInfo {
        optional {
            /// UDR group.
            group_id: Arc<str>,
        }
        repeated {
            /// Ranges of SUPIs; all if empty.
            supi_ranges: Vec<SupiRange>,
            /// Data sets: `SUBSCRIPTION`, `POLICY`, …; all if empty.
            supported_data_sets: Vec<Arc<str>>,
        }
    }
}

record! {
    /// PCF-specific data.
    PcfInfo {
        optional {
            /// PCF group.
            group_id: Arc<str>,
        }
        repeated {
            /// DNNs; all if empty.
            dnn_list: Vec<Dnn>,
            /// Ranges of SUPIs; all if empty.
            supi_ranges: Vec<SupiRange>,
        }
    }
}

record! {
    /// Subscribers: a range of IMSIs, or a pattern.
    SupiRange {
        optional {
            /// First IMSI.
            start: Arc<str>,
            /// Last IMSI.
            end: Arc<str>,
            /// Regular expression (ECMA-262) for the whole SUPI.
            pattern: Arc<str>,
        }
    }
}

impl SupiRange {
    /// Whether the range contains a subscriber. Patterns are not evaluated and count as matching.
    pub fn contains(&self, supi: &Supi) -> bool {
        let imsi = supi.imsi();
        match (&self.start, &self.end) {
            (Some(start), Some(end)) => imsi.len() == start.len() && &**start <= imsi && imsi <= &**end,
            _ => self.pattern.is_some(),
        }
    }
}

record! {
    /// Routing Indicators with their home network public keys.
    SuciInfo {
        repeated {
            /// Routing Indicators.
            routing_inds: Vec<Arc<str>>,
            /// Home Network Public Key Identifiers.
            h_nw_pub_key_ids: Vec<u8>,
        }
    }
}

record! {
    /// Tracking areas of a PLMN.
    TaiRange {
        required {
            /// The PLMN.
            plmn_id: Plmn,
            /// Ranges of TACs, at least one.
            tac_range_list: Vec<TacRange>,
        }
    }
}

record! {
    /// Tracking area codes: a range, or a pattern.
    TacRange {
        optional {
            /// First TAC, four or six hexadecimal digits.
            start: Arc<str>,
            /// Last TAC.
            end: Arc<str>,
            /// A regular expression (ECMA-262).
            pattern: Arc<str>,
        }
    }
}
