//! A service of an NF instance, and where it is reached.

use crate::common::{DateTime, ExtSnssai, NfType, ServiceName, SupportedFeatures};
use crate::record::{open_enum, record};
use crate::uri::{ApiRoot, Scheme};
use pith_types::Plmn;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

open_enum! {
    /// `http` or `https`.
    UriScheme {
        Http = "http",
        Https = "https",
    }
}

open_enum! {
    /// Whether a service can be used.
    NfServiceStatus {
        Registered = "REGISTERED",
        /// The heart-beats of its NF instance have stopped.
        Suspended = "SUSPENDED",
        Undiscoverable = "UNDISCOVERABLE",
    }
}

record! {
    /// A service of an NF instance.
    NfService {
        required {
            /// Its id within the NF instance.
            service_instance_id: Arc<str>,
            /// Which service.
            service_name: ServiceName,
            /// Its versions, at least one.
            versions: Vec<NfServiceVersion>,
            /// With TLS or without.
            scheme: UriScheme,
            /// Whether it can be used.
            nf_service_status: NfServiceStatus,
        }
        optional {
            /// Its name in DNS.
            fqdn: Arc<str>,
            /// What stands ahead of the API's name in paths, without a slash at either end.
            api_prefix: Arc<str>,
            /// Lower is preferred, 0 to 65535.
            priority: u16,
            /// Weight among those of the same priority, 0 to 65535.
            capacity: u16,
            /// Percent, 0 to 100.
            load: u8,
            /// When the load was so.
            load_time_stamp: DateTime,
            /// When it last lost its contexts.
            recovery_time: DateTime,
            /// Optional features that it has.
            supported_features: SupportedFeatures,
            /// A token is needed.
            oauth2_required: bool,
        }
        repeated {
            /// Its addresses.
            ip_end_points: Vec<IpEndPoint>,
            /// Who may use it: networks; anybody, where empty.
            allowed_plmns: Vec<Plmn>,
            /// Who may use it: types; anybody, where empty.
            allowed_nf_types: Vec<NfType>,
            /// Who may use it: domains; anybody, where empty.
            allowed_nf_domains: Vec<Arc<str>>,
            /// Who may use it: slices; anybody, where empty.
            allowed_nssais: Vec<ExtSnssai>,
            /// The scopes that a type of NF may have; all, where its type is not listed (`allowedOperationsPerNfType`).
            allowed_operations_per_nf_type: BTreeMap<Arc<str>, Vec<Arc<str>>>,
            /// The slices that it serves; all of the NF instance's, where empty.
            s_nssais: Vec<ExtSnssai>,
        }
        rest {
            /// Members that are not read here; kept for those who read them.
            rest,
        }
    }
}

impl NfService {
    /// Where it is reached: its own FQDN or first address; `None` if it has neither, and the NF
    /// instance's then counts.
    pub fn api_root(&self) -> Option<ApiRoot> {
        let end_point = self.ip_end_points.first();
        let host = match (&self.fqdn, end_point) {
            (Some(fqdn), _) => fqdn.to_string(),
            (None, Some(end_point)) => end_point.host()?,
            (None, None) => return None,
        };
        Some(self.api_root_at(&host))
    }

    /// Where it is reached if its host is that one.
    pub fn api_root_at(&self, host: &str) -> ApiRoot {
        let scheme = match self.scheme {
            UriScheme::Http => Scheme::Http,
            _ => Scheme::Https,
        };
        let port = self.ip_end_points.first().and_then(|end_point| end_point.port);
        let authority = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let prefix = self.api_prefix.as_deref().unwrap_or_default().trim_matches('/');
        let slash = if prefix.is_empty() { "" } else { "/" };
        ApiRoot::new(scheme, &authority).with_prefix(&format!("{slash}{prefix}"))
    }

    /// Takes away what says who may use it (TS 29.510, `NFService` of Nnrf_NFDiscovery).
    pub(super) fn hide_from_others(&mut self) {
        self.allowed_plmns.clear();
        self.allowed_nf_types.clear();
        self.allowed_nf_domains.clear();
        self.allowed_nssais.clear();
        self.allowed_operations_per_nf_type.clear();
        self.rest.remove("allowedSnpns");
    }
}

record! {
    /// A version of a service.
    NfServiceVersion {
        required {
            /// As in paths, `v1`.
            api_version_in_uri: Arc<str>,
            /// `1.2.3`.
            api_full_version: Arc<str>,
        }
        optional {
            /// When it ends.
            expiry: DateTime,
        }
    }
}

record! {
    /// An address of a service.
    IpEndPoint {
        optional {
            /// IPv4.
            ipv4_address: Ipv4Addr,
            /// IPv6.
            ipv6_address: Ipv6Addr,
            /// `TCP`.
            transport: Arc<str>,
            /// Port; 80 or 443 where `None`.
            port: u16,
        }
    }
}

impl IpEndPoint {
    /// The address as in a URI.
    pub fn host(&self) -> Option<String> {
        let ipv6 = || self.ipv6_address.map(|address| format!("[{address}]"));
        self.ipv4_address.map(|address| address.to_string()).or_else(ipv6)
    }
}
