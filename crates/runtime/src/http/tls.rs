//! TLS 1.3 of server and client: trusted CAs, certificates, and explanations of failures.

use super::PeerIdentity;
use crate::pki::{Certificate, Credentials, PkiError, Source, Stamp};
use hyper::Uri;
use pith_nf::kit::Nf;
use pith_sbi::{NfInstanceId, NfType};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, CommonState, RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// HTTP/2 over TLS (RFC 9113 3.2).
const ALPN: &[u8] = b"h2";
/// Interval at which files and the certificate's validity are checked.
pub(crate) const LOOK: Duration = Duration::from_secs(5);
/// Interval of warnings about one address whose connections are refused.
const WARNING_PAUSE: Duration = Duration::from_secs(60);
/// Largest number of addresses with suppressed warnings.
const WARNED: usize = 256;

/// An NF of another vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Configuration name of the NF, such as `udm`.
    pub name: String,
    /// Host of its URL, without brackets.
    pub host: String,
    /// Addresses from which the NF calls.
    pub callers: Vec<IpAddr>,
    /// Security of calls to and from the NF.
    pub security: Security,
    /// The CAs of its certificates, if not Pith's.
    pub roots: Option<Vec<CertificateDer<'static>>>,
}

/// Security between Pith and an NF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// TLS with certificates on both sides.
    Mutual,
    /// TLS without a certificate of the NF when it calls.
    Server,
    /// Cleartext.
    None,
}

/// The TLS configuration of a process.
pub struct Tls {
    source: Source,
    foreign: Vec<Foreign>,
    current: RefCell<Current>,
    warned: RefCell<HashMap<String, Instant>>,
}

/// The state built from the current files.
struct Current {
    stamp: Stamp,
    certificate: Certificate,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    /// Clients by host, for NFs with their own CA.
    foreign: HashMap<String, Arc<ClientConfig>>,
    /// The last failure to read the files, so that it is logged only once.
    failure: Option<PkiError>,
}

impl Tls {
    /// Reads the certificate. If there is none, the CA issues it.
    pub fn open(source: Source, foreign: Vec<Foreign>) -> Result<Self, PkiError> {
        let current = Current::load(&source, &foreign)?;
        Ok(Self { source, foreign, current: RefCell::new(current), warned: RefCell::default() })
    }

    /// Reads the files again if they changed or `anyway`, and has the CA renew the certificate if due. Open
    /// connections keep their certificates.
    pub fn refresh(&self, anyway: bool) {
        let (stamp, is_due) = {
            let current = self.current.borrow();
            (current.stamp.clone(), self.source.is_due(&current.certificate))
        };
        if !anyway && !is_due && stamp == self.source.stamp() {
            return;
        }
        match Current::load(&self.source, &self.foreign) {
            Ok(new) => {
                tracing::info!("certificate '{}' reloaded", new.certificate.subject);
                *self.current.borrow_mut() = new;
            }
            Err(error) => self.current.borrow_mut().failed(error),
        }
    }

    /// The certificate of the process.
    pub fn certificate(&self) -> Certificate {
        self.current.borrow().certificate.clone()
    }

    /// Server side of a handshake. Returns the client's identity; `None` for an NF that needs no certificate.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
        from: IpAddr,
    ) -> Result<(server::TlsStream<TcpStream>, Option<PeerIdentity>), String> {
        let config = self.current.borrow().server.clone();
        let stream = TlsAcceptor::from(config).accept(stream).await.map_err(|error| refusal(&error))?;
        let mut identity = peer(stream.get_ref().1)?.map(|certificate| certificate.identity);
        if let Some(identity) = identity.as_mut().filter(|identity| identity.nf_types.is_empty()) {
            identity.nf_types = self.configured_types(from);
            if identity.nf_types.is_empty() {
                return Err(NO_TYPE.into());
            }
        }
        let may_be_nobody =
            |foreign: &Foreign| foreign.security == Security::Server && foreign.callers.contains(&from);
        if identity.is_none() && !self.foreign.iter().any(may_be_nobody) {
            return Err(NO_CERTIFICATE.into());
        }
        Ok((stream, identity))
    }

    /// The types of the foreign NFs that call from that address. A certificate of another vendor need not name NF types; one
    /// that does not is good for these only. Without that, it would be good for any type of NF.
    fn configured_types(&self, from: IpAddr) -> Vec<NfType> {
        let callers = self.foreign.iter().filter(|foreign| foreign.callers.contains(&from));
        callers.filter_map(|foreign| Nf::of_name(&foreign.name)?.nf_type()).collect()
    }

    /// Client side of a handshake with a host. Returns the NF instances of the server's certificate; `None`
    /// if it is an NF of another vendor whose certificate names no instances.
    pub(super) async fn connect(
        &self,
        stream: TcpStream,
        host: &str,
    ) -> Result<(client::TlsStream<TcpStream>, Option<Vec<NfInstanceId>>), String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| format!("'{host}': {error}"))?;
        let config = self.client(host);
        let stream = TlsConnector::from(config).connect(name, stream).await;
        let stream = stream.map_err(|error| refusal(&error))?;
        let certificate = peer(stream.get_ref().1)?.ok_or("the server sent no certificate")?;
        let is_foreign = self.foreign.iter().any(|foreign| foreign.host == host);
        let instances = certificate.identity.instances;
        Ok((stream, (!is_foreign || !instances.is_empty()).then_some(instances)))
    }

    fn client(&self, host: &str) -> Arc<ClientConfig> {
        let current = self.current.borrow();
        current.foreign.get(host).unwrap_or(&current.client).clone()
    }

    /// Whether calls to the host may use cleartext.
    pub(super) fn allows_cleartext(&self, host: &str) -> bool {
        self.foreign.iter().any(|foreign| foreign.security == Security::None && foreign.host == host)
    }

    /// Whether cleartext requests from the address are accepted.
    pub(super) fn takes_cleartext(&self, from: IpAddr) -> bool {
        let is_caller =
            |foreign: &Foreign| foreign.security == Security::None && foreign.callers.contains(&from);
        self.foreign.iter().any(is_caller)
    }

    /// Logs a refused connection, at most once a minute for each address.
    pub(super) fn warn(&self, from: IpAddr, why: &str) {
        if self.is_news(&from.to_string()) {
            tracing::warn!("refused an SBI connection from {from}: {why}");
        }
    }

    /// Logs a server that cannot be called, at most once a minute.
    pub(super) fn warn_of_server(&self, name: &str, why: &str) {
        if self.is_news(name) {
            tracing::warn!("no connection to {name}: {why}");
        }
    }

    fn is_news(&self, about: &str) -> bool {
        let (mut warned, now) = (self.warned.borrow_mut(), Instant::now());
        if warned.len() >= WARNED {
            warned.retain(|_, at| now - *at < WARNING_PAUSE);
        }
        if warned.len() >= WARNED || warned.get(about).is_some_and(|at| now - *at < WARNING_PAUSE) {
            return false;
        }
        warned.insert(about.to_owned(), now);
        true
    }
}

impl Current {
    fn load(source: &Source, foreign: &[Foreign]) -> Result<Self, PkiError> {
        let Credentials { chain, key, roots, certificate } = source.load()?;
        // The stamp is taken after the CA has issued, so that later changes are noticed.
        let stamp = source.stamp();
        if !certificate.is_valid_at(now()) {
            let (_, file, _) = source.paths();
            return Err(PkiError(format!(
                "the certificate {} is not valid now: 'pith pki list' shows its validity, 'pith pki renew' issues a new one",
                file.display()
            )));
        }
        let cannot =
            |error: &dyn std::fmt::Display| PkiError(format!("the certificate can't be used: {error}"));
        let own = store(roots.iter())?;
        let of_foreign = foreign.iter().filter(|foreign| foreign.security == Security::Mutual);
        let of_foreign = of_foreign.filter_map(|foreign| foreign.roots.as_ref()).flatten();
        let clients = store(roots.iter().chain(of_foreign))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut verifier = WebPkiClientVerifier::builder_with_provider(clients.into(), provider.clone());
        if foreign.iter().any(|foreign| foreign.security == Security::Server) {
            verifier = verifier.allow_unauthenticated();
        }
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| cannot(&error))?
            .with_client_cert_verifier(verifier.build().map_err(|error| cannot(&error))?)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(|error| cannot(&error))?;
        server.alpn_protocols = vec![ALPN.to_vec()];
        server.ticketer = aws_lc_rs::Ticketer::new().map_err(|error| cannot(&error))?;
        let client = |roots: RootCertStore| -> Result<Arc<ClientConfig>, PkiError> {
            let mut client = ClientConfig::builder_with_provider(provider.clone())
                .with_protocol_versions(&[&TLS13])
                .map_err(|error| cannot(&error))?
                .with_root_certificates(roots)
                .with_client_auth_cert(chain.clone(), key.clone_key())
                .map_err(|error| cannot(&error))?;
            client.alpn_protocols = vec![ALPN.to_vec()];
            Ok(Arc::new(client))
        };
        let mut by_host = HashMap::new();
        for foreign in foreign {
            if let Some(roots) = &foreign.roots {
                by_host.insert(foreign.host.clone(), client(store(roots.iter())?)?);
            }
        }
        let client = client(own)?;
        Ok(Self { stamp, certificate, server: server.into(), client, foreign: by_host, failure: None })
    }

    /// Keeps the previous state and logs the failure.
    fn failed(&mut self, error: PkiError) {
        if self.failure.as_ref() != Some(&error) {
            tracing::error!("cannot reload the certificate, the previous one stays in use: {error}");
            self.failure = Some(error);
        }
    }
}

fn store<'a>(roots: impl Iterator<Item = &'a CertificateDer<'static>>) -> Result<RootCertStore, PkiError> {
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(root.clone()).map_err(|error| PkiError(format!("the CA's certificate: {error}")))?;
    }
    Ok(store)
}

/// Seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The peer's certificate. Its validity is checked here because a resumed session is not verified again.
fn peer(connection: &CommonState) -> Result<Option<Certificate>, String> {
    if connection.alpn_protocol() != Some(ALPN) {
        return Err("it does not speak HTTP/2 (ALPN h2)".into());
    }
    let Some(der) = connection.peer_certificates().and_then(|chain| chain.first()) else { return Ok(None) };
    let certificate = Certificate::read(der).map_err(|error| error.to_string())?;
    if certificate.is_valid_at(now()) { Ok(Some(certificate)) } else { Err(EXPIRED.into()) }
}

/// The host of an authority, without brackets, and its port.
pub(super) fn host_and_port(uri: &Uri) -> (String, u16) {
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    (host.to_owned(), uri.port_u16().unwrap_or(usual))
}

const NO_CERTIFICATE: &str = "it sent no certificate: 'pith pki issue' issues one for a process on another host; for an NF of another vendor without a certificate, write 'security: tls' in 'sbi.external'";
const NO_TYPE: &str = "its certificate names no NF type (RFC 9310): issue one that does, or name this address in 'sbi.external.<nf>.callers' if it is an NF of another vendor";
const OTHER_CA: &str = "its certificate is of another CA: use the same directory 'sbi.pki' for both, issue a certificate with 'pith pki issue', or configure the other CA in 'sbi.external.<nf>.ca' or 'sbi.tls.ca'";
const EXPIRED: &str = "its certificate has expired, or one of the two clocks is wrong: 'pith pki list' shows its validity, 'pith pki renew' issues a new one";
const REFUSED_OURS: &str = "it refused the certificate of this process";

/// The client side of a connection, with explained errors. With TLS 1.3 a server refuses the client's
/// certificate after the client has finished its handshake (RFC 8446 4.4.2.4), so that the client learns of
/// it at its first read; HTTP/2 keeps only the text of an error.
pub(super) struct Explained {
    pub stream: client::TlsStream<TcpStream>,
    pub tls: Rc<Tls>,
    pub name: String,
}

impl AsyncRead for Explained {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        Poll::Ready(read.map_err(|error| {
            let why = refusal(&error);
            self.tls.warn_of_server(&self.name, &why);
            io::Error::new(error.kind(), why)
        }))
    }
}

impl AsyncWrite for Explained {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, octets)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The reason for a failed handshake, and what to do.
pub(super) fn refusal(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    inner.map_or_else(|| error.to_string(), explain)
}

/// The meaning of a TLS error, and what to do.
fn explain(error: &rustls::Error) -> String {
    use rustls::Error as E;
    match error {
        E::NoCertificatesPresented => NO_CERTIFICATE.into(),
        E::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            OTHER_CA.into()
        }
        E::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        ) => EXPIRED.into(),
        E::InvalidCertificate(
            error @ (CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }),
        ) => {
            format!("its certificate is for another address: {error}; issue one for this address")
        }
        E::InvalidMessage(_) => {
            "it does not use TLS: its URI of this process must begin with https://".into()
        }
        E::AlertReceived(AlertDescription::UnknownCA | AlertDescription::DecryptError) => {
            format!("{REFUSED_OURS}, as it does not trust the CA: use the same CA for both")
        }
        E::AlertReceived(AlertDescription::CertificateExpired) => {
            format!("{REFUSED_OURS}, which has expired: 'pith pki renew' issues a new one")
        }
        E::AlertReceived(AlertDescription::CertificateRequired) => {
            format!("{REFUSED_OURS}, or there is none: configure one in 'sbi.tls'")
        }
        other => other.to_string(),
    }
}
