//! TLS 1.3 of SBI server and client: trusted CAs, certificates, and texts that describe failures to the operator.

use super::handshake::HandshakeThread;
use super::identity::{ExternalPeer, ExternalPeers, Security, ServerIdentity, identity_of};
use crate::pki::{Certificate, Credentials, FileVersions, PkiError, Source};
use hyper::Uri;
use pith_nf::fabric::guard::{ClientIdentity, Proof, external_issuer};
use pith_nf::kit::Issuer;
use pith_sbi::NfType;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, CommonState, RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
};
use std::cell::{Cell, OnceCell, RefCell};
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
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_rustls::{TlsConnector, client, server};

/// The ALPN identifier of HTTP/2 over TLS (RFC 9113 3.2).
const ALPN: &[u8] = b"h2";
/// Interval of checks whether files have changed and whether the certificate must be renewed.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Minimum time between two warnings about the same peer.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum time between two checks whether a peer's certificate has expired.
const TRUST_CHECK_INTERVAL: Duration = Duration::from_secs(3600);
/// Minimum time between two warnings that the own certificate expires soon.
const EXPIRY_WARNING_INTERVAL: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of peers for which the time of the last warning is kept. Beyond it no further peers are warned about until
/// entries are older than [`WARNING_INTERVAL`].
const MAX_WARNED_PEERS: usize = 256;

/// The TLS configuration of a process.
pub struct Tls {
    source: Source,
    external: ExternalPeers,
    current: RefCell<Current>,
    /// Does the server side of handshakes.
    handshakes: OnceCell<HandshakeThread>,
    /// Number of changes of the trusted CAs.
    roots_changed: watch::Sender<u64>,
    /// Time of the last warning about a peer, by address or name.
    warned: RefCell<HashMap<String, Instant>>,
    /// Time of the last warning that the own certificate expires soon.
    warned_of_end: Cell<Option<Instant>>,
}

/// The state built from the current files.
struct Current {
    file_versions: FileVersions,
    certificate: Certificate,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    /// For calls to external NFs with their own CA, by host and port.
    external: HashMap<(String, u16), Arc<ClientConfig>>,
    /// Certificates of the CAs that this core trusts.
    roots: Vec<CertificateDer<'static>>,
    /// Verifiers of client certificates, one for each set of CAs. The NF types that a client may have depend on the verifier
    /// that accepts its certificate.
    verifiers: Vec<Verifier>,
    /// The last failure to read the files, so that it is logged only once.
    failure: Option<PkiError>,
}

/// Verifies client certificates by this core's CAs, or by those of external NFs.
struct Verifier {
    verifier: Arc<dyn ClientCertVerifier>,
    /// The NF types of the external NFs with these CAs; `None` for this core's CAs.
    external: Option<Vec<NfType>>,
}

/// The client certificate that a connection relies on.
pub(super) struct Trust {
    tls: Rc<Tls>,
    chain: Vec<CertificateDer<'static>>,
    not_after: i64,
}

impl Trust {
    /// Waits until the peer's certificate has expired or its CA is no longer trusted.
    pub async fn ends(&self) {
        let mut changed = self.tls.roots_changed.subscribe();
        loop {
            let remaining = self.not_after.saturating_sub(now());
            if remaining < 0 || self.tls.verify(&self.chain).is_none() {
                return;
            }
            // The wall clock may be set meanwhile, so that a long sleep would miss the end.
            let pause = Duration::from_secs(remaining.unsigned_abs() + 1).min(TRUST_CHECK_INTERVAL);
            tokio::select! {
                () = sleep(pause) => {}
                _ = changed.changed() => {}
            }
        }
    }
}

/// How long a client may use a connection for new requests ([`Tls::is_valid`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    not_after: i64,
    roots: u64,
}

impl Tls {
    /// Reads the certificate. If there is none, the CA issues it.
    pub fn open(source: Source, external: Vec<ExternalPeer>) -> Result<Self, PkiError> {
        let external = ExternalPeers::from(external);
        let current = Current::load(&source, &external)?;
        Ok(Self {
            source,
            external,
            current: RefCell::new(current),
            handshakes: OnceCell::new(),
            roots_changed: watch::Sender::new(0),
            warned: RefCell::default(),
            warned_of_end: Cell::default(),
        })
    }

    /// Reloads the files if they have changed, if the certificate is due for renewal (which the CA then issues), or if `force`
    /// is set. Connections of clients whose CA is no longer trusted are closed.
    pub fn refresh(&self, force: bool) {
        let (file_versions, is_due) = {
            let current = self.current.borrow();
            (current.file_versions.clone(), self.source.is_due(&current.certificate))
        };
        if force || is_due || file_versions != self.source.file_versions() {
            match Current::load(&self.source, &self.external) {
                Ok(new) => {
                    tracing::info!("certificate '{}' reloaded", new.certificate.subject);
                    let old = self.current.replace(new);
                    if old.roots != self.current.borrow().roots {
                        self.roots_changed.send_modify(|count| *count += 1);
                    }
                }
                Err(error) => self.current.borrow_mut().failed(error),
            }
        }
        self.warn_of_end();
    }

    /// Warns once a day that the certificate expires soon, if this process cannot renew it.
    fn warn_of_end(&self) {
        let certificate = self.certificate();
        let was_warned = self.warned_of_end.get().is_some_and(|at| at.elapsed() < EXPIRY_WARNING_INTERVAL);
        if was_warned || !self.source.ends_unless_replaced(&certificate) {
            return;
        }
        self.warned_of_end.set(Some(Instant::now()));
        let (_, file, _) = self.source.paths();
        tracing::warn!(
            "the certificate {} expires on {}: renew it on the host with the CA's key ('pith pki renew'); the process reads new files without a restart",
            file.display(),
            certificate.until()
        );
    }

    /// The certificate of the process.
    pub fn certificate(&self) -> Certificate {
        self.current.borrow().certificate.clone()
    }

    /// Server side of the handshake. Returns the client's identity and the certificate that it relies on; `None` if it relies
    /// on the address of an external NF that needs no certificate.
    pub(super) async fn accept(
        self: &Rc<Self>,
        stream: TcpStream,
        from: IpAddr,
    ) -> Result<(server::TlsStream<TcpStream>, ClientIdentity, Option<Trust>), String> {
        let config = self.current.borrow().server.clone();
        let describe = |error| describe_io_error(&error, Side::Server);
        let stream = self.handshakes().map_err(describe)?.accept(config, stream).await.map_err(describe)?;
        let connection = stream.get_ref().1;
        let Some(certificate) = peer(connection)? else {
            let identity = self.external.by_address(from, Security::Server).ok_or(NO_CERTIFICATE)?;
            return Ok((stream, identity, None));
        };
        let chain: Vec<_> = connection
            .peer_certificates()
            .unwrap_or_default()
            .iter()
            .map(|der| der.clone().into_owned())
            .collect();
        let identity = self.identify(&chain, &certificate, from)?;
        let trust = Trust { tls: Rc::clone(self), chain, not_after: certificate.not_after };
        Ok((stream, identity, Some(trust)))
    }

    /// The thread for handshakes; a process that only calls others has none.
    fn handshakes(&self) -> io::Result<&HandshakeThread> {
        match self.handshakes.get() {
            Some(thread) => Ok(thread),
            None => {
                let thread = HandshakeThread::start()?;
                Ok(self.handshakes.get_or_init(|| thread))
            }
        }
    }

    /// Verifies a chain of certificates. Returns the NF types of the external NFs whose CA issued it (`Some(None)` for this
    /// core's CA); `None` if no CA is trusted.
    fn verify(&self, chain: &[CertificateDer<'static>]) -> Option<Option<Vec<NfType>>> {
        let (first, others) = chain.split_first()?;
        let current = self.current.borrow();
        let accepts = |verifier: &&Verifier| {
            verifier.verifier.verify_client_cert(first, others, UnixTime::now()).is_ok()
        };
        current.verifiers.iter().find(accepts).map(|verifier| verifier.external.clone())
    }

    /// The identity of a client with a certificate.
    ///
    /// - Certificate of this core's CA: the client has the NF types that the certificate names. If it names none, the client
    ///   has those of the external NFs that call from this address.
    /// - Certificate of an external NF's CA: the client has only NF types for which the configuration names that CA, and of
    ///   these only those that the certificate names, if it names any. It cannot be an NF instance of this process.
    fn identify(
        &self,
        chain: &[CertificateDer<'static>],
        certificate: &Certificate,
        from: IpAddr,
    ) -> Result<ClientIdentity, String> {
        let named = &certificate.identity;
        let from = from.to_canonical();
        let external = match self.verify(chain).ok_or(OTHER_CA)? {
            Some(types) => {
                let own = self.source.own_instances(&self.certificate());
                if let Some(taken) = named.instances.iter().find(|id| own.contains(id)) {
                    return Err(format!(
                        "the peer's certificate was issued by another CA, but names NF instance {taken} of this process"
                    ));
                }
                let external = self.external.iter().filter(|f| types.contains(&f.nf_type));
                identity_of(external, Proof::Certificate)
                    .map(|identity| ClientIdentity { issuer: external_issuer(&types), ..identity })
            }
            None if named.nf_types.is_empty() => {
                let callers = self.external.iter().filter(|f| {
                    f.security == Security::Mutual && f.roots.is_none() && f.callers.contains(&from)
                });
                identity_of(callers, Proof::Certificate)
            }
            None => Some(ClientIdentity {
                proof: Proof::Certificate,
                instances: Vec::new(),
                nf_types: named.nf_types.clone(),
                hosts: Vec::new(),
                issuer: Issuer::Own,
            }),
        };
        let mut identity = external.ok_or(NO_TYPE)?;
        if !named.nf_types.is_empty() {
            identity.nf_types.retain(|nf_type| named.nf_types.contains(nf_type));
            if identity.nf_types.is_empty() {
                return Err(OTHER_TYPE.into());
            }
        }
        identity.instances.clone_from(&named.instances);
        identity.hosts.extend(certificate.names.iter().cloned());
        Ok(identity)
    }

    /// Client side of the handshake with a host. Returns the server's identity and how long it is valid.
    pub(super) async fn connect(
        &self,
        stream: TcpStream,
        host: &str,
        port: u16,
    ) -> Result<(client::TlsStream<TcpStream>, ServerIdentity, Validity), String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| format!("'{host}': {error}"))?;
        let config = self.client(host, port);
        let roots = *self.roots_changed.borrow();
        let stream = TlsConnector::from(config).connect(name, stream).await;
        let stream = stream.map_err(|error| describe_io_error(&error, Side::Client))?;
        let certificate = peer(stream.get_ref().1)?.ok_or("the server sent no certificate")?;
        let validity = Validity { not_after: certificate.not_after, roots };
        let named = certificate.identity;
        let external: Vec<NfType> =
            self.external.at(host, port).map(|external| external.nf_type.clone()).collect();
        let server = if external.is_empty() {
            ServerIdentity { instances: Some(named.instances), nf_types: named.nf_types }
        } else {
            // An external NF has the NF types of the configuration; its certificate may only restrict them.
            let is_named = |nf_type: &NfType| named.nf_types.is_empty() || named.nf_types.contains(nf_type);
            ServerIdentity {
                nf_types: external.into_iter().filter(is_named).collect(),
                instances: Some(named.instances).filter(|instances| !instances.is_empty()),
            }
        };
        Ok((stream, server, validity))
    }

    /// Whether a connection may be used for new requests: the server's certificate has not expired, and the trusted CAs have not
    /// changed since the handshake.
    pub(super) fn is_valid(&self, validity: Validity) -> bool {
        validity.not_after >= now() && validity.roots == *self.roots_changed.borrow()
    }

    fn client(&self, host: &str, port: u16) -> Arc<ClientConfig> {
        let current = self.current.borrow();
        current.external.get(&(host.to_owned(), port)).unwrap_or(&current.client).clone()
    }

    /// Whether calls to that host and port may use cleartext.
    pub(super) fn allows_cleartext(&self, host: &str, port: u16) -> bool {
        self.external.at(host, port).any(|external| external.security == Security::None)
    }

    /// The identity of a client in cleartext; `None` if cleartext from that address is rejected.
    pub(super) fn in_cleartext(&self, from: IpAddr) -> Option<ClientIdentity> {
        self.external.by_address(from, Security::None)
    }

    /// Logs a refused connection, at most once a minute for each address.
    pub(super) fn warn(&self, from: IpAddr, why: &str) {
        if self.should_warn(&from.to_string()) {
            tracing::warn!("refused an SBI connection from {from}: {why}");
        }
    }

    /// Logs a server that cannot be called, at most once a minute.
    pub(super) fn warn_of_server(&self, name: &str, why: &str) {
        if self.should_warn(name) {
            tracing::warn!("no connection to {name}: {why}");
        }
    }

    /// Whether to warn about a peer now.
    fn should_warn(&self, peer: &str) -> bool {
        let (mut warned, now) = (self.warned.borrow_mut(), Instant::now());
        if warned.len() >= MAX_WARNED_PEERS {
            warned.retain(|_, at| now - *at < WARNING_INTERVAL);
        }
        if warned.len() >= MAX_WARNED_PEERS || warned.get(peer).is_some_and(|at| now - *at < WARNING_INTERVAL)
        {
            return false;
        }
        warned.insert(peer.to_owned(), now);
        true
    }
}

impl Current {
    fn load(source: &Source, external: &ExternalPeers) -> Result<Self, PkiError> {
        let Credentials { chain, key, roots, certificate } = source.load()?;
        // The versions are read after the CA has issued the certificate, so that a later change is detected.
        let file_versions = source.file_versions();
        if !certificate.is_valid_at(now()) {
            let (_, file, _) = source.paths();
            return Err(PkiError(format!(
                "the certificate {} is not valid now: 'pith pki list' shows its validity, 'pith pki renew' issues a new one",
                file.display()
            )));
        }
        let cannot =
            |error: &dyn std::fmt::Display| PkiError(format!("the certificate cannot be used: {error}"));
        let own = store(roots.iter())?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = |roots: RootCertStore| {
            WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone())
        };
        let mutual = || external.iter().filter(|external| external.security == Security::Mutual);
        let mut verifiers = vec![Verifier {
            verifier: verifier(own.clone()).build().map_err(|error| cannot(&error))?,
            external: None,
        }];
        for named in mutual().filter_map(|external| external.roots.as_ref()) {
            let types = mutual().filter(|external| external.roots.as_ref() == Some(named));
            verifiers.push(Verifier {
                verifier: verifier(store(named.iter())?).build().map_err(|error| cannot(&error))?,
                external: Some(types.map(|external| external.nf_type.clone()).collect()),
            });
        }
        // The handshake accepts a certificate of any of these CAs; `identify` determines which one.
        let of_foreign = mutual().filter_map(|external| external.roots.as_ref()).flatten();
        let mut any = verifier(store(roots.iter().chain(of_foreign))?);
        if external.iter().any(|external| external.security == Security::Server) {
            any = any.allow_unauthenticated();
        }
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| cannot(&error))?
            .with_client_cert_verifier(any.build().map_err(|error| cannot(&error))?)
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
        let mut by_place = HashMap::new();
        for external in external.iter() {
            if let Some(roots) = &external.roots {
                let place = (external.host.clone(), external.port);
                by_place.insert(place, client(store(roots.iter())?)?);
            }
        }
        Ok(Self {
            file_versions,
            certificate,
            server: server.into(),
            client: client(own)?,
            external: by_place,
            roots,
            verifiers,
            failure: None,
        })
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
        return Err("the peer does not support HTTP/2 over TLS (ALPN h2)".into());
    }
    let Some(der) = connection.peer_certificates().and_then(|chain| chain.first()) else { return Ok(None) };
    let certificate = Certificate::read(der).map_err(|error| error.to_string())?;
    if certificate.is_valid_at(now()) { Ok(Some(certificate)) } else { Err(EXPIRED.into()) }
}

/// The host of an authority, without brackets, and its port.
pub(super) fn host_and_port(uri: &Uri) -> (String, u16) {
    let default_port = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    (host.to_owned(), uri.port_u16().unwrap_or(default_port))
}

const NO_CERTIFICATE: &str = "the peer sent no certificate: 'pith pki issue' issues one for a process on another host; for an NF of another vendor without a certificate, write 'security: tls' in 'sbi.external'";
const NO_TYPE: &str = "the peer's certificate names no NF type (RFC 9310): issue one that does, or name this address in 'sbi.external.<nf>.callers' if it is an NF of another vendor";
const OTHER_TYPE: &str = "the peer's certificate names no NF type for which 'sbi.external' trusts its CA";
const OTHER_CA: &str = "the peer's certificate was issued by another CA: use the same directory 'sbi.pki' for both, issue a certificate with 'pith pki issue', or configure the other CA in 'sbi.external.<nf>.ca' or 'sbi.tls.ca'";
const EXPIRED: &str = "the peer's certificate has expired or is not valid yet, or the clock of this host or of the peer is wrong: 'pith pki list' shows the certificate's validity, 'pith pki renew' issues a new one";
const REFUSED_OURS: &str = "the peer rejected the certificate of this process";

/// The client side of a connection, which logs read errors with a description. With TLS 1.3 a server rejects the client's
/// certificate after the client has finished its handshake (RFC 8446 4.4.2.4): the client receives the alert at its first
/// read, where the HTTP/2 library would keep only the text of the error.
pub(super) struct ErrorReportingStream {
    pub stream: client::TlsStream<TcpStream>,
    pub tls: Rc<Tls>,
    pub name: String,
}

impl AsyncRead for ErrorReportingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        Poll::Ready(read.map_err(|error| {
            let why = describe_io_error(&error, Side::Client);
            self.tls.warn_of_server(&self.name, &why);
            io::Error::new(error.kind(), why)
        }))
    }
}

impl AsyncWrite for ErrorReportingStream {
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

/// The own side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// The reason for a failed handshake or read, with the remedy.
pub(super) fn describe_io_error(error: &io::Error, side: Side) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    inner.map_or_else(|| error.to_string(), |error| describe_error(error, side))
}

/// The meaning of a TLS error, with the remedy.
fn describe_error(error: &rustls::Error, side: Side) -> String {
    use rustls::Error as E;
    match error {
        E::NoCertificatesPresented => NO_CERTIFICATE.into(),
        E::InvalidCertificate(CertificateError::UnknownIssuer) => OTHER_CA.into(),
        E::InvalidCertificate(CertificateError::BadSignature) => {
            "a signature of the peer's certificate is invalid: the certificate is damaged, or was issued by another CA with the same name; 'pith pki renew' issues a new one".into()
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
            format!("the peer's certificate is for another address: {error}; issue one for this address")
        }
        E::InvalidMessage(_) => match side {
            Side::Server => {
                "the client does not use TLS: its URI of this process must begin with https://".into()
            }
            Side::Client => {
                "the server does not use TLS: a URI of an NF without TLS must begin with http://, and the NF needs 'security: none' in 'sbi.external'".into()
            }
        },
        E::AlertReceived(AlertDescription::UnknownCA) => {
            format!("{REFUSED_OURS} because the peer does not trust its CA: use the same CA for both")
        }
        E::AlertReceived(AlertDescription::DecryptError) => {
            "the peer could not verify a signature of this process: check that the certificate and the key belong together and that the peer has the current CA certificate".into()
        }
        E::AlertReceived(AlertDescription::CertificateExpired) => {
            format!("{REFUSED_OURS} because it has expired: 'pith pki renew' issues a new one")
        }
        E::AlertReceived(AlertDescription::CertificateRequired) => {
            "the peer requires a certificate, and this process sent none: configure one in 'sbi.tls'".into()
        }
        other => other.to_string(),
    }
}
