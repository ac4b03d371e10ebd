//! Services of an NF instance, and their addresses.

use crate::common::{DateTime, ExtSnssai, NfType, ServiceName, SupportedFeatures};
use crate::record::{open_enum, record};
use crate::uri::{ApiRoot, Scheme};
use pith_types::Plmn;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

open_enum! {
    /// The URI scheme.
    UriScheme {
        Http = "http",
        Https = "https",
    }
}

open_enum! {
    /// Status of a service.
    NfServiceStatus {
        Registered = "REGISTERED",
        /// Heart-beats of the NF instance are missing.
        Suspended = "SUSPENDED",
        Undiscoverable = "UNDISCOVERABLE",
    }
}

record! {
    /// A service of an NF instance.
    NfService {
        required {
            /// Id within the NF instance.
            service_instance_id: Arc<str>,
            /// Name of the service.
            service_name: ServiceName,
            /// Versions, at least one.
            versions: Vec<NfServiceVersion>,
            /// URI scheme.
            scheme: UriScheme,
            /// Status.
            nf_service_status: NfServiceStatus,
        }
        optional {
            /// FQDN.
            fqdn: Arc<str>,
            /// Path prefix before the API name, without slashes at its ends.
            api_prefix: Arc<str>,
            /// Priority, 0 to 65535; lower is preferred.
            priority: u16,
            /// Weight among services of the same priority, 0 to 65535.
            capacity: u16,
            /// Load in percent, 0 to 100.
            load: u8,
            /// Time of the load value.
            load_time_stamp: DateTime,
            /// Time of the last restart with loss of contexts.
            recovery_time: DateTime,
            /// Optional features.
            supported_features: SupportedFeatures,
            /// Whether an access token is required.
            oauth2_required: bool,
        }
        repeated {
            /// Addresses.
            ip_end_points: Vec<IpEndPoint>,
            /// PLMNs that may use it; all if empty.
            allowed_plmns: Vec<Plmn>,
            /// NF types that may use it; all if empty.
            allowed_nf_types: Vec<NfType>,
            /// NF domains that may use it; all if empty.
            allowed_nf_domains: Vec<Arc<str>>,
            /// Slices that may use it; all if empty.
            allowed_nssais: Vec<ExtSnssai>,
            /// Permitted scopes by NF type; unlisted types may use all (`allowedOperationsPerNfType`).
            allowed_operations_per_nf_type: BTreeMap<Arc<str>, Vec<Arc<str>>>,
            /// Slices of the service; all of the NF instance if empty.
            s_nssais: Vec<ExtSnssai>,
        }
        rest {
            /// Members unknown to Pith, kept for other readers.
            rest,
        }
    }
}

impl NfService {
    /// The apiRoot from the service's FQDN or first address; `None` if it has neither, so that the NF
    /// instance's address applies.
    pub fn api_root(&self) -> Option<ApiRoot> {
        let end_point = self.ip_end_points.first();
        let host = match (&self.fqdn, end_point) {
            (Some(fqdn), _) => fqdn.to_string(),
            (None, Some(end_point)) => end_point.host()?,
            (None, None) => return None,
        };
        Some(self.api_root_at(&host))
    }

    /// The apiRoot with the given host.
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

    /// Addresses (without brackets) and the name at which it is reached.
    pub(super) fn hosts(&self) -> impl Iterator<Item = String> {
        let named = self.fqdn.iter().map(ToString::to_string);
        named.chain(self.ip_end_points.iter().flat_map(|end_point| {
            let v4 = end_point.ipv4_address.map(|address| address.to_string());
            v4.into_iter().chain(end_point.ipv6_address.map(|address| address.to_string()))
        }))
    }

    /// Removes the authorization members (TS 29.510, `NFService` of Nnrf_NFDiscovery).
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
            /// Version in paths, such as `v1`.
            api_version_in_uri: Arc<str>,
            /// Full version, such as `1.2.3`.
            api_full_version: Arc<str>,
        }
        optional {
            /// Time of expiry.
            expiry: DateTime,
        }
    }
}

record! {
    /// An address of a service.
    IpEndPoint {
        optional {
            /// IPv4 address.
            ipv4_address: Ipv4Addr,
            /// IPv6 address.
            ipv6_address: Ipv6Addr,
            /// Transport protocol, `TCP`.
            transport: Arc<str>,
            /// Port; 80 or 443 if `None`.
            port: u16,
        }
    }
}

impl IpEndPoint {
    /// The address in the format of a URI.
    pub fn host(&self) -> Option<String> {
        let ipv6 = || self.ipv6_address.map(|address| format!("[{address}]"));
        self.ipv4_address.map(|address| address.to_string()).or_else(ipv6)
    }
}
