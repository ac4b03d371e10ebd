//! The settings of the service-based interface.

use super::section::{item, plain, section};
use super::shell::state_directory;
use super::text::{Period, text_value, words};
use super::{Config, StorePath};
use pith_sbi::ApiRoot;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

section! {
    /// Service-based interface between NFs.
    Sbi {
        /// Address at which 'pith up' serves its NFs over HTTP/2. If absent, 'pith up' opens no SBI socket
        /// unless another NF needs it ('external', or a binding of http2); then the address is
        /// 127.0.0.1:7777.
        listen: Option<SocketAddr> = None,
        /// Addresses of NFs that run as processes of their own ('pith nf'); NFs not listed keep their
        /// default.
        addresses: BTreeMap<HostedNf, SocketAddr> = split_addresses(),
        /// auto: NFs of one process call each other without serialisation, other NFs over HTTP/2.
        /// http2: all calls use HTTP/2.
        binding: Binding = Binding::Auto,
        /// NFs with another binding, such as {udm: http2}.
        bindings: BTreeMap<HostedNf, Binding> = BTreeMap::new(),
        /// mtls: TLS 1.3 with certificates on both sides (TS 33.210 6.2, TS 33.501 13.1).
        /// none: cleartext between processes of one user of this machine, on loopback addresses only, for tests.
        security: SbiSecurity = SbiSecurity::Mtls,
        /// Directory of Pith's CA and its certificates. auto: 'pki' beside the file of 'store.path'.
        /// The first 'pith nf' on a machine creates it; 'pith pki list' lists its certificates.
        pki: PkiPath = PkiPath::Auto,
        /// Certificate of another CA in place of Pith's, read again when the files change:
        /// {ca: ca.crt, certificate: nf.crt, key: nf.key}. The certificate names each NF instance
        /// (urn:uuid:…).
        tls: Option<TlsFiles> = None,
        /// NFs of other vendors, which Pith uses in place of its own.
        /// Example: {udm: {url: 'https://10.0.0.9:8000', security: mtls, oauth2: on, ca: their-ca.crt}}.
        /// security: mtls; tls (only the server has a certificate); none (cleartext).
        /// oauth2: off if the NF does not support access tokens. ca: the CA of its certificate, if not
        /// Pith's.
        /// callers: addresses from which the NF calls, if not that of the URL (on loopback 127.0.0.1, unless it binds
        /// another). A plain
        /// 'https://10.0.0.9:8000' means mtls.
        /// Requests from there, or with a certificate of 'ca', are those of this NF: they may do what an NF of its
        /// type may, and nothing else. Access tokens are given to NFs with a certificate only.
        #[serde(deserialize_with = "externals")]
        external: BTreeMap<HostedNf, ExternalNf> = BTreeMap::new(),
        /// Cleartext address of this process for NFs of other vendors with 'security: none'; none by
        /// default. All other callers are refused there. Such NFs get it in callbacks and from Pith's NRF, such an NRF
        /// in profiles. Each process of 'pith nf' needs one that such an NF calls.
        plain_listen: Option<SocketAddr> = None,
        /// Time after which an unanswered request fails with 504.
        request_timeout: Period = Period::seconds(5),
        /// Largest number of requests in progress as a server; further requests get 503.
        max_exchanges: u32 = 4096,
        /// Largest body accepted, in octets; larger ones get 413.
        max_body: u32 = 1 << 20,
        /// auto: services require access tokens of the NRF (OAuth2, TS 33.501 13.4.1) if NFs are separate
        /// processes ('pith nf'), unless the NRF is external with 'oauth2: off'. on: 'pith up' requires them too. off: no service requires them.
        oauth2: OAuth2 = OAuth2::Auto,
        /// Key file of another vendor's NRF that signs access tokens: a JWK Set, or a public key in PEM.
        /// Not needed for Pith's NRF.
        nrf_keys: Option<PathBuf> = None,
        /// Signature algorithm of that NRF if the file is PEM: ES256, RS256 or RS512.
        nrf_algorithm: TokenAlgorithm = TokenAlgorithm::Es256,
        /// Directory in which every exchange over HTTP/2 is recorded as JSON lines, keys included:
        /// for tests only.
        record: Option<PathBuf> = None,
    }
}

words! {
    /// Security of the SBI between Pith's processes.
    SbiSecurity, "a security" {
        /// TLS 1.3 with certificates on both sides.
        Mtls = "mtls",
        /// Cleartext.
        None = "none",
    }
}

words! {
    /// Security of the SBI towards an NF of another vendor.
    ExternalSecurity, "a security" {
        /// TLS with certificates on both sides.
        Mtls = "mtls",
        /// TLS without a client certificate of the other NF.
        Tls = "tls",
        /// Cleartext.
        None = "none",
    }
}

words! {
    /// Whether a function is used.
    Switch, "on or off" {
        /// Used.
        On = "on",
        /// Not used.
        Off = "off",
    }
}

/// Files of a certificate chain and its key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// Certificates of the trusted CAs.
    pub ca: PathBuf,
    /// The certificate, followed by those up to the CA.
    pub certificate: PathBuf,
    /// The private key, owned by root or by the user that runs Pith, and readable by its owner and group only.
    pub key: PathBuf,
}

plain!(TlsFiles);

item! {
    /// An NF of another vendor.
    ExternalNf {
        /// apiRoot of the NF.
        url: String,
        /// Security; by default derived from the URL.
        security: Option<ExternalSecurity>,
        /// Whether the NF supports access tokens.
        #[serde(default = "on")]
        oauth2: Switch,
        /// The CA of its certificates, if not Pith's.
        ca: Option<PathBuf>,
        /// Addresses from which the NF calls, if not that of the URL.
        #[serde(default)]
        callers: Vec<IpAddr>,
    }
}

const fn on() -> Switch {
    Switch::On
}

impl ExternalNf {
    /// An NF given by its URL only.
    pub fn at(url: &str) -> Self {
        Self { url: url.to_owned(), security: None, oauth2: Switch::On, ca: None, callers: Vec::new() }
    }

    /// The apiRoot; `None` if the URL is not valid.
    pub fn root(&self) -> Option<ApiRoot> {
        self.url.parse().ok()
    }

    /// The configured security, or the default for the URL.
    pub fn security(&self) -> ExternalSecurity {
        let by_url =
            if self.url.starts_with("http://") { ExternalSecurity::None } else { ExternalSecurity::Mtls };
        self.security.unwrap_or(by_url)
    }

    /// Host of the URL, without brackets.
    pub fn host(&self) -> Option<String> {
        let root = self.root()?;
        let host = root.authority.rsplit_once(':').map_or(&*root.authority, |(host, _)| host);
        Some(host.trim_matches(['[', ']']).to_owned())
    }

    /// The port of its URL, or the one that its scheme has.
    pub fn port(&self) -> Option<u16> {
        let root = self.root()?;
        let port = root.authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        Some(port.unwrap_or(if self.url.starts_with("https://") { 443 } else { 80 }))
    }

    /// Whether the URL names a loopback address.
    pub fn is_loopback(&self) -> bool {
        let host = self.host().unwrap_or_default();
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// Reads each entry as a URL or as a section.
fn externals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<HostedNf, ExternalNf>, D::Error> {
    let list = BTreeMap::<HostedNf, UrlOrSection>::deserialize(deserializer)?;
    Ok(list.into_iter().map(|(nf, UrlOrSection(external))| (nf, external)).collect())
}

struct UrlOrSection(ExternalNf);

impl<'de> Deserialize<'de> for UrlOrSection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UrlOrSectionVisitor)
    }
}

struct UrlOrSectionVisitor;

impl<'de> Visitor<'de> for UrlOrSectionVisitor {
    type Value = UrlOrSection;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a URL, or {url: …, security: …}")
    }

    fn visit_str<E: Error>(self, url: &str) -> Result<UrlOrSection, E> {
        Ok(UrlOrSection(ExternalNf::at(url)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<UrlOrSection, A::Error> {
        ExternalNf::deserialize(MapAccessDeserializer::new(map)).map(UrlOrSection)
    }
}

/// Setting of the CA's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PkiPath {
    /// Beside the store.
    Auto,
    /// This directory.
    Directory(PathBuf),
}

text_value!(PkiPath);

impl fmt::Display for PkiPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Directory(path) => path.display().fmt(f),
        }
    }
}

impl FromStr for PkiPath {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("'pki' is empty: write the path of a directory, or auto".into()),
            "auto" => Ok(Self::Auto),
            path => Ok(Self::Directory(path.into())),
        }
    }
}

impl Config {
    /// The directory of Pith's CA.
    pub fn pki_directory(&self) -> PathBuf {
        match (&self.sbi.pki, &self.store.path) {
            (PkiPath::Directory(path), _) => path.clone(),
            (PkiPath::Auto, StorePath::File(file)) => file.with_file_name("pki"),
            (PkiPath::Auto, StorePath::Auto | StorePath::Memory) => state_directory().join("pki"),
        }
    }
}

words! {
    /// How an NF is called.
    Binding, "a binding" {
        /// Without serialisation within a process, else over HTTP/2.
        Auto = "auto",
        /// Over HTTP/2.
        Http2 = "http2",
    }
}

words! {
    /// Where access tokens are used.
    OAuth2, "a choice for access tokens" {
        /// Between processes of 'pith nf'.
        Auto = "auto",
        /// Everywhere.
        On = "on",
        /// Nowhere.
        Off = "off",
    }
}

words! {
    /// Signature algorithm of another vendor's NRF.
    TokenAlgorithm, "an algorithm" {
        /// ECDSA with P-256 and SHA-256.
        Es256 = "ES256",
        /// RSASSA-PKCS1-v1_5 with SHA-256.
        Rs256 = "RS256",
        /// RSASSA-PKCS1-v1_5 with SHA-512.
        Rs512 = "RS512",
    }
}

words! {
    /// An NF by its configuration name.
    HostedNf, "an NF" {
        /// Network Repository Function.
        Nrf = "nrf",
        /// Unified Data Repository.
        Udr = "udr",
        /// Unified Data Management.
        Udm = "udm",
        /// Authentication Server Function.
        Ausf = "ausf",
        /// Policy Control Function.
        Pcf = "pcf",
        /// Network Slice Selection Function.
        Nssf = "nssf",
        /// Session Management Function.
        Smf = "smf",
        /// Access and Mobility Management Function.
        Amf = "amf",
    }
}

impl HostedNf {
    /// All NFs, in the order in which they start.
    pub const ALL: [Self; 8] =
        [Self::Nrf, Self::Udr, Self::Udm, Self::Ausf, Self::Pcf, Self::Nssf, Self::Smf, Self::Amf];
}

impl Sbi {
    /// Address at which the NFs of one process are served, or which is in their URIs if there is no socket.
    pub fn listen(&self) -> SocketAddr {
        self.listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 7777)))
    }

    /// Whether the NFs of one process are called over HTTP/2, by other processes or by each other.
    pub fn is_served(&self) -> bool {
        let bindings = [&self.binding].into_iter().chain(self.bindings.values());
        let forced = bindings.into_iter().any(|binding| *binding == Binding::Http2);
        self.listen.is_some() || !self.external.is_empty() || forced
    }

    /// Address of an NF that runs as a process of its own.
    pub fn address(&self, nf: HostedNf) -> SocketAddr {
        let usual = || split_addresses().get(&nf).copied().unwrap_or(self.listen());
        self.addresses.get(&nf).copied().unwrap_or_else(usual)
    }
}

/// A loopback address for each NF, so that all NFs can run as processes of one machine.
fn split_addresses() -> BTreeMap<HostedNf, SocketAddr> {
    let hosts = [10, 20, 12, 11, 13, 14, 4, 5];
    let address = |host| SocketAddr::from(([127, 0, 0, host], 7777));
    HostedNf::ALL.into_iter().zip(hosts.map(address)).collect()
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn the_sbi_opens_a_socket_only_if_an_nf_needs_it() {
        let served = |yaml: &str| Config::parse(yaml, "f").unwrap().sbi.is_served();
        assert!(!served(""));
        for yaml in [
            "sbi: {listen: '127.0.0.1:7777'}",
            "sbi: {external: {udm: {url: 'http://10.0.0.9:8000', security: none}}}",
            "sbi: {binding: http2}",
            "sbi: {bindings: {udm: http2}}",
        ] {
            assert!(served(yaml), "{yaml}");
        }
    }
}
