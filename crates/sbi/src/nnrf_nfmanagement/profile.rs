//! NF profiles.

use super::{AmfInfo, AusfInfo, NfService, PcfInfo, SmfInfo, UdmInfo, UdrInfo, UpfInfo};
use crate::common::{DateTime, ExtSnssai, Links, NfInstanceId, NfType};
use crate::namf_communication::N1MessageClass;
use crate::record::{open_enum, record};
use crate::uri::Uri;
use pith_types::Plmn;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

open_enum! {
    /// Status of an NF instance.
    NfStatus {
        Registered = "REGISTERED",
        /// Heart-beats are missing.
        Suspended = "SUSPENDED",
        Undiscoverable = "UNDISCOVERABLE",
    }
}

record! {
    /// A feature of a vendor.
    VendorSpecificFeature {
        required {
            /// Its name.
            feature_name: Arc<str>,
            /// Its version.
            feature_version: Arc<str>,
        }
    }
}

open_enum! {
    /// What a default notification subscription is for.
    NotificationType {
        N1Messages = "N1_MESSAGES",
        N2Information = "N2_INFORMATION",
    }
}

record! {
    /// A notification that an NF receives without having subscribed (TS 29.510 6.1.6.2.4).
    DefaultNotificationSubscription {
        required {
            /// What it is for.
            notification_type: NotificationType,
            /// Where the notification is sent.
            callback_uri: Uri,
        }
        optional {
            /// Class of NAS messages.
            n1_message_class: N1MessageClass,
        }
    }
}

record! {
    /// The profile of an NF instance. It has an FQDN or an IP address.
    NfProfile {
        required {
            /// NF instance id.
            nf_instance_id: NfInstanceId,
            /// NF type.
            nf_type: NfType,
            /// Status.
            nf_status: NfStatus,
        }
        optional {
            /// A readable name.
            nf_instance_name: Arc<str>,
            /// Seconds between heart-beats.
            heart_beat_timer: u32,
            /// FQDN.
            fqdn: Arc<str>,
            /// Priority, 0 to 65535; lower is preferred.
            priority: u16,
            /// Weight among instances of the same priority, 0 to 65535.
            capacity: u16,
            /// Load in percent, 0 to 100.
            load: u8,
            /// Time of the load value.
            load_time_stamp: DateTime,
            /// Locality, defined by the operator.
            locality: Arc<str>,
            /// UDR-specific data.
            udr_info: UdrInfo,
            /// UDM-specific data.
            udm_info: UdmInfo,
            /// AUSF-specific data.
            ausf_info: AusfInfo,
            /// AMF-specific data.
            amf_info: AmfInfo,
            /// SMF-specific data.
            smf_info: SmfInfo,
            /// UPF-specific data.
            upf_info: UpfInfo,
            /// PCF-specific data.
            pcf_info: PcfInfo,
            /// Time of the last restart with loss of contexts.
            recovery_time: DateTime,
            /// Whether different instances of a service share contexts.
            nf_service_persistence: bool,
            /// Whether the NF accepts a response with only the changes.
            nf_profile_changes_support_ind: bool,
            /// Whether this is a response with only the changes.
            nf_profile_changes_ind: bool,
        }
        repeated {
            /// PLMNs.
            plmn_list: Vec<Plmn>,
            /// Slices.
            s_nssais: Vec<ExtSnssai>,
            /// Slices by PLMN.
            per_plmn_snssai_list: Vec<PlmnSnssai>,
            /// Slice instances.
            nsi_list: Vec<Arc<str>>,
            /// IPv4 addresses.
            ipv4_addresses: Vec<Ipv4Addr>,
            /// IPv6 addresses.
            ipv6_addresses: Vec<Ipv6Addr>,
            /// PLMNs that may discover it; all if empty.
            allowed_plmns: Vec<Plmn>,
            /// NF types that may discover it; all if empty.
            allowed_nf_types: Vec<NfType>,
            /// NF domains that may discover it; all if empty.
            allowed_nf_domains: Vec<Arc<str>>,
            /// Slices that may discover it; all if empty.
            allowed_nssais: Vec<ExtSnssai>,
            /// Services; deprecated in favour of the map, but still read by most NFs.
            nf_services: Vec<NfService>,
            /// Services by `serviceInstanceId`.
            nf_service_list: BTreeMap<Arc<str>, NfService>,
            /// NF sets.
            nf_set_id_list: Vec<Arc<str>>,
            /// Serving areas.
            serving_scope: Vec<Arc<str>>,
            /// Notifications that the NF receives without having subscribed.
            default_notification_subscriptions: Vec<DefaultNotificationSubscription>,
            /// Features of vendors, by their IANA private enterprise numbers.
            vendor_specific_features: BTreeMap<Arc<str>, Vec<VendorSpecificFeature>>,
        }
        rest {
            /// Members unknown to Pith, kept for other readers.
            rest,
        }
    }
}

impl NfProfile {
    /// Announces that the NF reads embedded documents ([`crate::embedded`]).
    pub fn announce_embedded(&mut self) {
        let feature = VendorSpecificFeature::new(crate::embedded::FEATURE, "1");
        self.vendor_specific_features.insert(crate::embedded::VENDOR.into(), vec![feature]);
    }

    /// Whether the NF reads embedded documents.
    pub fn reads_embedded(&self) -> bool {
        let features = self.vendor_specific_features.get(crate::embedded::VENDOR);
        features.into_iter().flatten().any(|feature| &*feature.feature_name == crate::embedded::FEATURE)
    }

    /// Where the NF, an AMF, receives registrations that another AMF passes on (TS 29.518 5.2.2.3.5).
    pub fn registration_callback(&self) -> Option<&Uri> {
        let is_that = |it: &&DefaultNotificationSubscription| {
            it.notification_type == NotificationType::N1Messages
                && it.n1_message_class == Some(N1MessageClass::FiveGmm)
        };
        self.default_notification_subscriptions.iter().find(is_that).map(|it| &it.callback_uri)
    }

    /// The services in either representation.
    pub fn services(&self) -> impl Iterator<Item = &NfService> {
        self.nf_services.iter().chain(self.nf_service_list.values())
    }

    /// Addresses (without brackets) and names at which the profile says that the NF is reached, by requests and by notifications.
    pub fn hosts(&self) -> Vec<String> {
        let v4 = self.ipv4_addresses.iter().map(ToString::to_string);
        let v6 = self.ipv6_addresses.iter().map(ToString::to_string);
        let named = self.fqdn.iter().map(ToString::to_string);
        let callbacks = self.default_notification_subscriptions.iter();
        let callbacks = callbacks.map(|it| it.callback_uri.root.host().to_owned());
        let services = self.services().flat_map(NfService::hosts);
        v4.chain(v6).chain(named).chain(services).chain(callbacks).collect()
    }

    /// The profile for a discovery result: without the authorization members and those for the NRF only.
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
            /// The PLMN.
            plmn_id: Plmn,
            /// Slices of the PLMN, at least one.
            s_nssai_list: Vec<ExtSnssai>,
        }
    }
}

record! {
    /// URIs of the NF instances at an NRF.
    UriList {
        optional {
            /// Number of all instances, independent of the limit.
            total_item_count: u32,
        }
        repeated {
            /// Links `item` and `self`.
            #[serde(rename = "_links")]
            links: Links,
        }
    }
}
