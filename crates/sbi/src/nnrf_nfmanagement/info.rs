//! What belongs to one type of NF in its profile.

use crate::common::{AccessType, ExtSnssai, PduSessionType};
use crate::octets::Hex;
use crate::record::record;
use pith_types::{Dnn, Guami, Plmn, Supi, Tai};
use std::sync::Arc;

record! {
    /// Of an AMF.
    AmfInfo {
        required {
            /// AMF Set ID, three hexadecimal digits of which the first is 0 to 3.
            amf_set_id: Arc<str>,
            /// AMF Region ID, two hexadecimal digits.
            amf_region_id: Hex<1>,
            /// Its identities, at least one.
            guami_list: Vec<Guami>,
        }
        repeated {
            /// Tracking areas.
            tai_list: Vec<Tai>,
            /// Ranges of tracking areas.
            tai_range_list: Vec<TaiRange>,
            /// Identities that it takes over when their AMF fails.
            backup_info_amf_failure: Vec<Guami>,
            /// Identities that it takes over when their AMF is removed.
            backup_info_amf_removal: Vec<Guami>,
        }
    }
}

record! {
    /// Of an SMF.
    SmfInfo {
        required {
            /// Slices and their data networks, at least one.
            s_nssai_smf_info_list: Vec<SnssaiSmfInfoItem>,
        }
        optional {
            /// Lower is preferred, 0 to 65535.
            priority: u16,
            /// It serves the visited side of home-routed sessions.
            vsmf_support_ind: bool,
        }
        repeated {
            /// Tracking areas; all, where empty.
            tai_list: Vec<Tai>,
            /// Ranges of tracking areas.
            tai_range_list: Vec<TaiRange>,
            /// Accesses; both, where empty.
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
            /// Its data networks, at least one.
            dnn_smf_info_list: Vec<DnnSmfInfoItem>,
        }
    }
}

record! {
    /// A data network of an SMF.
    DnnSmfInfoItem {
        required {
            /// Its name; `*` for any.
            dnn: Arc<str>,
        }
        repeated {
            /// Accesses to it.
            dnai_list: Vec<Arc<str>>,
        }
    }
}

record! {
    /// Of a UPF.
    UpfInfo {
        required {
            /// Slices and their data networks, at least one.
            s_nssai_upf_info_list: Vec<SnssaiUpfInfoItem>,
        }
        optional {
            /// Lower is preferred, 0 to 65535.
            priority: u16,
        }
        repeated {
            /// The areas of the SMFs that may use it.
            smf_serving_area: Vec<Arc<str>>,
            /// Session types.
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
            /// Its data networks, at least one.
            dnn_upf_info_list: Vec<DnnUpfInfoItem>,
        }
    }
}

record! {
    /// A data network of a UPF.
    DnnUpfInfoItem {
        required {
            /// The data network.
            dnn: Dnn,
        }
        repeated {
            /// Accesses to it.
            dnai_list: Vec<Arc<str>>,
            /// Session types.
            pdu_session_types: Vec<PduSessionType>,
        }
    }
}

record! {
    /// Of a UDM.
    UdmInfo {
        optional {
            /// The group of UDM instances that it is in.
            group_id: Arc<str>,
        }
        repeated {
            /// Subscribers; all, where empty.
            supi_ranges: Vec<SupiRange>,
            /// Routing Indicators; all, where empty.
            routing_indicators: Vec<Arc<str>>,
            /// Routing Indicators and the keys that go with them.
            suci_infos: Vec<SuciInfo>,
        }
    }
}

record! {
    /// Of an AUSF.
    AusfInfo {
        optional {
            /// The group of AUSF instances that it is in.
            group_id: Arc<str>,
        }
        repeated {
            /// Subscribers; all, where empty.
            supi_ranges: Vec<SupiRange>,
            /// Routing Indicators; all, where empty.
            routing_indicators: Vec<Arc<str>>,
            /// Routing Indicators and the keys that go with them.
            suci_infos: Vec<SuciInfo>,
        }
    }
}

record! {
    /// Of a UDR.
    UdrInfo {
        optional {
            /// The group of UDR instances that it is in.
            group_id: Arc<str>,
        }
        repeated {
            /// Subscribers; all, where empty.
            supi_ranges: Vec<SupiRange>,
            /// `SUBSCRIPTION`, `POLICY`, …; all, where empty.
            supported_data_sets: Vec<Arc<str>>,
        }
    }
}

record! {
    /// Of a PCF.
    PcfInfo {
        optional {
            /// The group of PCF instances that it is in.
            group_id: Arc<str>,
        }
        repeated {
            /// Data networks; all, where empty.
            dnn_list: Vec<Dnn>,
            /// Subscribers; all, where empty.
            supi_ranges: Vec<SupiRange>,
        }
    }
}

record! {
    /// Subscribers by the digits of their IMSIs: from the one to the other, or by a pattern.
    SupiRange {
        optional {
            /// The first.
            start: Arc<str>,
            /// The last.
            end: Arc<str>,
            /// A regular expression (ECMA-262) on the whole SUPI.
            pattern: Arc<str>,
        }
    }
}

impl SupiRange {
    /// Whether the subscriber is in it. A pattern is not read, and then the answer is yes.
    pub fn contains(&self, supi: &Supi) -> bool {
        let imsi = supi.imsi();
        match (&self.start, &self.end) {
            (Some(start), Some(end)) => imsi.len() == start.len() && &**start <= imsi && imsi <= &**end,
            _ => self.pattern.is_some(),
        }
    }
}

record! {
    /// Routing Indicators and the home network keys that go with them.
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
    /// Tracking areas of a network.
    TaiRange {
        required {
            /// The network.
            plmn_id: Plmn,
            /// Its codes, at least one range.
            tac_range_list: Vec<TacRange>,
        }
    }
}

record! {
    /// Tracking area codes: from the one to the other, or by a pattern.
    TacRange {
        optional {
            /// The first, four or six hexadecimal digits.
            start: Arc<str>,
            /// The last.
            end: Arc<str>,
            /// A regular expression (ECMA-262).
            pattern: Arc<str>,
        }
    }
}
