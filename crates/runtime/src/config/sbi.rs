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
    /// How NFs reach each other.
    Sbi {
        /// Where 'pith up' serves its NFs over HTTP/2. Without it, 'pith up' opens no socket for the SBI
        /// unless another NF needs one ('external', or a binding of http2): 127.0.0.1:7777 then.
        listen: Option<SocketAddr> = None,
        /// Where an NF that runs as a process of its own ('pith nf') is served instead; those not named
        /// keep their default.
        addresses: BTreeMap<HostedNf, SocketAddr> = split_addresses(),
        /// auto: NFs of one process call each other without serialisation, others over HTTP/2.
        /// http2: all calls go over HTTP/2.
        binding: Binding = Binding::Auto,
        /// NFs for which another binding is forced, such as {udm: http2}.
        bindings: BTreeMap<HostedNf, Binding> = BTreeMap::new(),
        /// mtls: TLS 1.3, each side shows a certificate (TS 33.210 6.2, TS 33.501 13.1).
        /// none: cleartext between processes of this machine, on loopback addresses only, for tests.
        security: SbiSecurity = SbiSecurity::Mtls,
        /// Directory of Pith's own CA and of what it issues. auto: 'pki' beside the file of 'store.path'.
        /// The first 'pith nf' of a machine makes it; 'pith pki list' shows what is in it.
        pki: PkiPath = PkiPath::Auto,
        /// Certificate of another CA instead, read again when the files change:
        /// {ca: ca.crt, certificate: nf.crt, key: nf.key}. It names each NF instance (urn:uuid:…).
        tls: Option<TlsFiles> = None,
        /// NFs of another vendor and where they stand; Pith does not start its own then.
        /// Example: {udm: {url: 'https://10.0.0.9:8000', security: mtls, oauth2: on, ca: their-ca.crt}}.
        /// security: mtls; tls (they show a certificate, and none is asked of them); none (cleartext).
        /// oauth2: off where they know no access tokens. ca: the CA of their certificates, if not ours.
        /// callers: addresses they call from, if not that of the URL. 'https://10.0.0.9:8000' alone is mtls.
        #[serde(deserialize_with = "externals")]
        external: BTreeMap<HostedNf, ExternalNf> = BTreeMap::new(),
        /// Where NFs of another vendor with 'security: none' call this process, in cleartext; none by
        /// default. Others are refused there.
        plain_listen: Option<SocketAddr> = None,
        /// Time before a call without an answer fails with 504.
        request_timeout: Period = Period::seconds(5),
        /// Requests of others that may wait for an answer at once; the next are told 503.
        max_exchanges: u32 = 4096,
        /// Largest body taken, in octets; larger ones are told 413.
        max_body: u32 = 1 << 20,
        /// auto: services want access tokens of the NRF (OAuth2, TS 33.501 13.4.1) where NFs are processes of
        /// their own ('pith nf'). on: also of those that call 'pith up'. off: nobody is asked for one.
        oauth2: OAuth2 = OAuth2::Auto,
        /// File with the keys of an NRF of another vendor that signs access tokens: a JWK Set, or a public
        /// key in PEM. Pith's own NRF tells its keys.
        nrf_keys: Option<PathBuf> = None,
        /// How that NRF signs, if the file is PEM: ES256, RS256 or RS512.
        nrf_algorithm: TokenAlgorithm = TokenAlgorithm::Es256,
        /// Directory in which every exchange over HTTP/2 is recorded as JSON lines, keys included:
        /// for tests only.
        record: Option<PathBuf> = None,
    }
}

words! {
    /// How processes of Pith speak with each other.
    SbiSecurity, "a security" {
        /// TLS 1.3, each side shows a certificate.
        Mtls = "mtls",
        /// Cleartext.
        None = "none",
    }
}

words! {
    /// How an NF of another vendor is spoken with.
    ExternalSecurity, "a security" {
        /// TLS, each side shows a certificate.
        Mtls = "mtls",
        /// TLS; no certificate is asked of the other NF when it calls.
        Tls = "tls",
        /// Cleartext.
        None = "none",
    }
}

words! {
    /// Whether something is used.
    Switch, "on or off" {
        /// Used.
        On = "on",
        /// Not used.
        Off = "off",
    }
}

/// Files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// Certificates of the CAs that are trusted.
    pub ca: PathBuf,
    /// The certificate, and those up to the CA.
    pub certificate: PathBuf,
    /// Its private key, readable by its owner only.
    pub key: PathBuf,
}

plain!(TlsFiles);

item! {
    /// An NF of another vendor.
    ExternalNf {
        /// Its apiRoot.
        url: String,
        /// How it is spoken with: by default what the URL says.
        security: Option<ExternalSecurity>,
        /// Whether it takes and shows access tokens.
        #[serde(default = "on")]
        oauth2: Switch,
        /// The CA of its certificates, if not ours.
        ca: Option<PathBuf>,
        /// Addresses from which it calls, if not that of the URL.
        #[serde(default)]
        callers: Vec<IpAddr>,
    }
}

const fn on() -> Switch {
    Switch::On
}

impl ExternalNf {
    /// One of which only the URL is known.
    pub fn at(url: &str) -> Self {
        Self { url: url.to_owned(), security: None, oauth2: Switch::On, ca: None, callers: Vec::new() }
    }

    /// Its apiRoot; `None` if the URL is none.
    pub fn root(&self) -> Option<ApiRoot> {
        self.url.parse().ok()
    }

    /// How it is spoken with.
    pub fn security(&self) -> ExternalSecurity {
        let by_url =
            if self.url.starts_with("http://") { ExternalSecurity::None } else { ExternalSecurity::Mtls };
        self.security.unwrap_or(by_url)
    }

    /// The host of its URL, without brackets.
    pub fn host(&self) -> Option<String> {
        let root = self.root()?;
        let host = root.authority.rsplit_once(':').map_or(&*root.authority, |(host, _)| host);
        Some(host.trim_matches(['[', ']']).to_owned())
    }

    /// Whether the URL names a loopback address.
    pub fn is_loopback(&self) -> bool {
        let host = self.host().unwrap_or_default();
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// Reads each as its URL alone or as a section.
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

/// The directory of the CA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PkiPath {
    /// Beside the store.
    Auto,
    /// That directory.
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
            "" => Err("'pki' is empty: write a directory's path or auto".into()),
            "auto" => Ok(Self::Auto),
            path => Ok(Self::Directory(path.into())),
        }
    }
}

impl Config {
    /// The directory of Pith's own CA.
    pub fn pki_directory(&self) -> PathBuf {
        match (&self.sbi.pki, &self.store.path) {
            (PkiPath::Directory(path), _) => path.clone(),
            (PkiPath::Auto, StorePath::File(file)) => file.with_file_name("pki"),
            (PkiPath::Auto, StorePath::Auto | StorePath::Memory) => state_directory().join("pki"),
        }
    }
}

words! {
    /// How an NF is reached.
    Binding, "a binding" {
        /// Without serialisation in one process, else over HTTP/2.
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
    /// How an NRF of another vendor signs.
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
    /// An NF by its name in the configuration.
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
    /// All of them, in the order in which they start.
    pub const ALL: [Self; 8] =
        [Self::Nrf, Self::Udr, Self::Udm, Self::Ausf, Self::Pcf, Self::Nssf, Self::Smf, Self::Amf];
}

impl Sbi {
    /// Where the NFs of one process are served, or are named as if they were.
    pub fn listen(&self) -> SocketAddr {
        self.listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 7777)))
    }

    /// Whether NFs of one process are called over HTTP/2: by others, or among themselves.
    pub fn is_served(&self) -> bool {
        let bindings = [&self.binding].into_iter().chain(self.bindings.values());
        let forced = bindings.into_iter().any(|binding| *binding == Binding::Http2);
        self.listen.is_some() || !self.external.is_empty() || forced
    }

    /// Where an NF that runs as a process of its own is served.
    pub fn address(&self, nf: HostedNf) -> SocketAddr {
        let usual = || split_addresses().get(&nf).copied().unwrap_or(self.listen());
        self.addresses.get(&nf).copied().unwrap_or_else(usual)
    }
}

/// A loopback address for each NF, so that all of them can be processes of one machine.
fn split_addresses() -> BTreeMap<HostedNf, SocketAddr> {
    let hosts = [10, 20, 12, 11, 13, 14, 4, 5];
    let address = |host| SocketAddr::from(([127, 0, 0, host], 7777));
    HostedNf::ALL.into_iter().zip(hosts.map(address)).collect()
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn the_sbi_has_a_socket_only_where_another_nf_needs_it() {
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
