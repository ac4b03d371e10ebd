//! An NF instance, as the NRF knows it.

use super::{AmfInfo, AusfInfo, NfService, PcfInfo, SmfInfo, UdmInfo, UdrInfo, UpfInfo};
use crate::common::{DateTime, ExtSnssai, Links, NfInstanceId, NfType};
use crate::record::{open_enum, record};
use pith_types::Plmn;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

open_enum! {
    /// Whether an NF instance can be used.
    NfStatus {
        Registered = "REGISTERED",
        /// Its heart-beats have stopped.
        Suspended = "SUSPENDED",
        Undiscoverable = "UNDISCOVERABLE",
    }
}

record! {
    /// An NF instance. It has an `fqdn` or an address.
    NfProfile {
        required {
            /// The instance.
            nf_instance_id: NfInstanceId,
            /// What it is.
            nf_type: NfType,
            /// Whether it can be used.
            nf_status: NfStatus,
        }
        optional {
            /// A name for people.
            nf_instance_name: Arc<str>,
            /// Seconds between heart-beats.
            heart_beat_timer: u32,
            /// Its name in DNS.
            fqdn: Arc<str>,
            /// Lower is preferred, 0 to 65535.
            priority: u16,
            /// Weight among those of the same priority, 0 to 65535.
            capacity: u16,
            /// Percent, 0 to 100.
            load: u8,
            /// When the load was so.
            load_time_stamp: DateTime,
            /// Where it stands, in the operator's words.
            locality: Arc<str>,
            /// Of a UDR.
            udr_info: UdrInfo,
            /// Of a UDM.
            udm_info: UdmInfo,
            /// Of an AUSF.
            ausf_info: AusfInfo,
            /// Of an AMF.
            amf_info: AmfInfo,
            /// Of an SMF.
            smf_info: SmfInfo,
            /// Of a UPF.
            upf_info: UpfInfo,
            /// Of a PCF.
            pcf_info: PcfInfo,
            /// When it last lost its contexts.
            recovery_time: DateTime,
            /// Its services in different instances share contexts.
            nf_service_persistence: bool,
            /// It understands an answer with changes alone.
            nf_profile_changes_support_ind: bool,
            /// This is such an answer.
            nf_profile_changes_ind: bool,
        }
        repeated {
            /// Its networks.
            plmn_list: Vec<Plmn>,
            /// Its slices.
            s_nssais: Vec<ExtSnssai>,
            /// Its slices by network.
            per_plmn_snssai_list: Vec<PlmnSnssai>,
            /// Its slice instances.
            nsi_list: Vec<Arc<str>>,
            /// Its addresses.
            ipv4_addresses: Vec<Ipv4Addr>,
            /// Its addresses.
            ipv6_addresses: Vec<Ipv6Addr>,
            /// Who may discover it: networks; anybody, where empty.
            allowed_plmns: Vec<Plmn>,
            /// Who may discover it: types; anybody, where empty.
            allowed_nf_types: Vec<NfType>,
            /// Who may discover it: domains; anybody, where empty.
            allowed_nf_domains: Vec<Arc<str>>,
            /// Who may discover it: slices; anybody, where empty.
            allowed_nssais: Vec<ExtSnssai>,
            /// Its services; deprecated in favour of the map, and still what most NFs read.
            nf_services: Vec<NfService>,
            /// Its services by `serviceInstanceId`.
            nf_service_list: BTreeMap<Arc<str>, NfService>,
            /// The sets that it is in.
            nf_set_id_list: Vec<Arc<str>>,
            /// The areas that it serves.
            serving_scope: Vec<Arc<str>>,
        }
        rest {
            /// Members that are not read here; kept for those who read them.
            rest,
        }
    }
}

impl NfProfile {
    /// Its services, in whichever way the profile gives them.
    pub fn services(&self) -> impl Iterator<Item = &NfService> {
        self.nf_services.iter().chain(self.nf_service_list.values())
    }

    /// The profile as a discovery shows it: without what says who may see it, and without what
    /// concerns the NRF alone.
    #[must_use]
    pub fn for_discovery(mut self) -> Self {
        self.heart_beat_timer = None;
        self.nf_profile_changes_support_ind = None;
        self.nf_profile_changes_ind = None;
        self.allowed_plmns.clear();
        self.allowed_nf_types.clear();
        self.allowed_nf_domains.clear();
        self.allowed_nssais.clear();
        self.rest.remove("allowedSnpns");
        let mapped = self.nf_service_list.values_mut();
        self.nf_services.iter_mut().chain(mapped).for_each(NfService::hide_from_others);
        self
    }
}

record! {
    /// The slices of a network.
    PlmnSnssai {
        required {
            /// The network.
            plmn_id: Plmn,
            /// Its slices, at least one.
            s_nssai_list: Vec<ExtSnssai>,
        }
    }
}

record! {
    /// The NF instances of an NRF, by their URIs.
    UriList {
        optional {
            /// How many there are, whatever the limit.
            total_item_count: u32,
        }
        repeated {
            /// `item` and `self`.
            #[serde(rename = "_links")]
            links: Links,
        }
    }
}
