//! TLS 1.3 of server and client: trusted CAs, certificates, and explanations of failures.

use super::identity::{Foreign, ForeignNfs, Security, ServerIdentity, identity_of};
use crate::pki::{Certificate, Credentials, PkiError, Source, Stamp};
use hyper::Uri;
use pith_nf::fabric::guard::{ClientIdentity, Proof};
use pith_sbi::NfType;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, CommonState, RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
};
use std::cell::{Cell, RefCell};
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
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// HTTP/2 over TLS (RFC 9113 3.2).
const ALPN: &[u8] = b"h2";
/// Interval at which files and the certificate's validity are checked.
pub(crate) const LOOK: Duration = Duration::from_secs(5);
/// Interval of warnings about one address whose connections are refused.
const WARNING_PAUSE: Duration = Duration::from_secs(60);
/// Time between two looks whether the certificate of a peer has expired.
const TRUST_LOOK: Duration = Duration::from_secs(3600);
/// Time between two warnings of the same certificate that ends soon.
const END_WARNING_PAUSE: Duration = Duration::from_secs(24 * 3600);
/// Largest number of addresses with suppressed warnings.
const WARNED: usize = 256;

/// The TLS configuration of a process.
pub struct Tls {
    source: Source,
    foreign: ForeignNfs,
    current: RefCell<Current>,
    /// Counts the changes of the CAs that are trusted.
    roots_changed: watch::Sender<u64>,
    warned: RefCell<HashMap<String, Instant>>,
    warned_of_end: Cell<Option<Instant>>,
}

/// The state built from the current files.
struct Current {
    stamp: Stamp,
    certificate: Certificate,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    /// By host and port, where the CA differs.
    foreign: HashMap<(String, u16), Arc<ClientConfig>>,
    /// Certificates of our CAs.
    roots: Vec<CertificateDer<'static>>,
    /// Verifiers of clients: which one accepts a certificate decides what its holder may be.
    verifiers: Vec<Verifier>,
    /// The last failure to read the files, so that it is logged only once.
    failure: Option<PkiError>,
}

/// Verifies certificates of clients by the CAs of one owner.
struct Verifier {
    verifier: Arc<dyn ClientCertVerifier>,
    /// The NF types of the foreign NFs whose CA it is; `None` for our own CA.
    foreign: Option<Vec<NfType>>,
}

/// What a connection relies on.
pub(super) struct Trust {
    tls: Rc<Tls>,
    chain: Vec<CertificateDer<'static>>,
    not_after: i64,
}

impl Trust {
    /// Waits until the peer's certificate has expired or its CA is trusted no more.
    pub async fn ends(&self) {
        let mut changed = self.tls.roots_changed.subscribe();
        loop {
            let left = self.not_after.saturating_sub(now());
            if left < 0 || self.tls.verify(&self.chain).is_none() {
                return;
            }
            // The wall clock may be set: look now and then.
            let pause = Duration::from_secs(left.unsigned_abs() + 1).min(TRUST_LOOK);
            tokio::select! {
                () = sleep(pause) => {}
                _ = changed.changed() => {}
            }
        }
    }
}

/// Until when a client may use a connection for new requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    not_after: i64,
    roots: u64,
}

impl Tls {
    /// Reads the certificate. If there is none, the CA issues it.
    pub fn open(source: Source, foreign: Vec<Foreign>) -> Result<Self, PkiError> {
        let foreign = ForeignNfs::from(foreign);
        let current = Current::load(&source, &foreign)?;
        Ok(Self {
            source,
            foreign,
            current: RefCell::new(current),
            roots_changed: watch::Sender::new(0),
            warned: RefCell::default(),
            warned_of_end: Cell::default(),
        })
    }

    /// Reads the files again if they changed or `anyway`, and has the CA renew the certificate if due. Open
    /// is due. Connections of peers whose CA is gone end.
    pub fn refresh(&self, anyway: bool) {
        let (stamp, is_due) = {
            let current = self.current.borrow();
            (current.stamp.clone(), self.source.is_due(&current.certificate))
        };
        if anyway || is_due || stamp != self.source.stamp() {
            match Current::load(&self.source, &self.foreign) {
                Ok(new) => {
                    tracing::info!("certificate '{}' read again", new.certificate.subject);
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

    /// Warns once a day of a certificate that ends soon, if this process can't replace it.
    fn warn_of_end(&self) {
        let certificate = self.certificate();
        let was_warned = self.warned_of_end.get().is_some_and(|at| at.elapsed() < END_WARNING_PAUSE);
        if was_warned || !self.source.ends_unless_replaced(&certificate) {
            return;
        }
        self.warned_of_end.set(Some(Instant::now()));
        let (_, file, _) = self.source.paths();
        tracing::warn!(
            "the certificate {} ends on {}: issue another one where the CA's key is ('pith pki renew'); new files are read without a restart",
            file.display(),
            certificate.until()
        );
    }

    /// The certificate of the process.
    pub fn certificate(&self) -> Certificate {
        self.current.borrow().certificate.clone()
    }

    /// The server's side of a connection, who the client is, and what that relies on: a certificate, or
    /// the address of an NF that need not show one.
    pub(super) async fn accept(
        self: &Rc<Self>,
        stream: TcpStream,
        from: IpAddr,
    ) -> Result<(server::TlsStream<TcpStream>, ClientIdentity, Option<Trust>), String> {
        let config = self.current.borrow().server.clone();
        let stream = TlsAcceptor::from(config).accept(stream).await.map_err(|error| refusal(&error))?;
        let connection = stream.get_ref().1;
        let Some(certificate) = peer(connection)? else {
            let identity = self.foreign.by_address(from, Security::Server).ok_or(NO_CERTIFICATE)?;
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

    /// The owner of the CA that a chain of certificates leads to.
    fn verify(&self, chain: &[CertificateDer<'static>]) -> Option<Option<Vec<NfType>>> {
        let (first, others) = chain.split_first()?;
        let current = self.current.borrow();
        let accepts = |verifier: &&Verifier| {
            verifier.verifier.verify_client_cert(first, others, UnixTime::now()).is_ok()
        };
        current.verifiers.iter().find(accepts).map(|verifier| verifier.foreign.clone())
    }

    /// Who the holder of a certificate is. Our CA says of what types it is. The CA of a foreign NF says so within the types
    /// for which the configuration names that CA, and can't make anyone one of our instances. A certificate that names
    /// no type is good for what the configuration says of its CA, or of the caller's address.
    fn identify(
        &self,
        chain: &[CertificateDer<'static>],
        certificate: &Certificate,
        from: IpAddr,
    ) -> Result<ClientIdentity, String> {
        let named = &certificate.identity;
        let from = from.to_canonical();
        let foreign = match self.verify(chain).ok_or(OTHER_CA)? {
            Some(types) => {
                let own = self.source.own_instances(&self.certificate());
                if let Some(taken) = named.instances.iter().find(|id| own.contains(id)) {
                    return Err(format!(
                        "its certificate is of another CA and names our own NF instance {taken}"
                    ));
                }
                identity_of(self.foreign.iter().filter(|f| types.contains(&f.nf_type)), Proof::Certificate)
            }
            None if named.nf_types.is_empty() => {
                let callers = self.foreign.iter().filter(|f| {
                    f.security == Security::Mutual && f.roots.is_none() && f.callers.contains(&from)
                });
                identity_of(callers, Proof::Certificate)
            }
            None => Some(ClientIdentity {
                proof: Proof::Certificate,
                instances: Vec::new(),
                nf_types: named.nf_types.clone(),
                hosts: Vec::new(),
            }),
        };
        let mut identity = foreign.ok_or(NO_TYPE)?;
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

    /// The client's side of a connection to that host and port, who the server is, and how long that is valid.
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
        let stream = stream.map_err(|error| refusal(&error))?;
        let certificate = peer(stream.get_ref().1)?.ok_or("the server sent no certificate")?;
        let validity = Validity { not_after: certificate.not_after, roots };
        let named = certificate.identity;
        let foreign: Vec<NfType> =
            self.foreign.at(host, port).map(|foreign| foreign.nf_type.clone()).collect();
        let server = if foreign.is_empty() {
            ServerIdentity { instances: Some(named.instances), nf_types: named.nf_types }
        } else {
            // An NF of another vendor is what the configuration calls it; its certificate can only say less.
            let is_named = |nf_type: &NfType| named.nf_types.is_empty() || named.nf_types.contains(nf_type);
            ServerIdentity {
                nf_types: foreign.into_iter().filter(is_named).collect(),
                instances: Some(named.instances).filter(|instances| !instances.is_empty()),
            }
        };
        Ok((stream, server, validity))
    }

    /// Whether a connection may be used for new requests: the server's certificate has not expired, and the same CAs
    /// are trusted as when it was made.
    pub(super) fn is_valid(&self, validity: Validity) -> bool {
        validity.not_after >= now() && validity.roots == *self.roots_changed.borrow()
    }

    fn client(&self, host: &str, port: u16) -> Arc<ClientConfig> {
        let current = self.current.borrow();
        current.foreign.get(&(host.to_owned(), port)).unwrap_or(&current.client).clone()
    }

    /// Whether a call to that host and port may go in cleartext.
    pub(super) fn allows_cleartext(&self, host: &str, port: u16) -> bool {
        self.foreign.at(host, port).any(|foreign| foreign.security == Security::None)
    }

    /// The client of a connection in cleartext, if such ones are taken from that address.
    pub(super) fn in_cleartext(&self, from: IpAddr) -> Option<ClientIdentity> {
        self.foreign.by_address(from, Security::None)
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
    fn load(source: &Source, foreign: &ForeignNfs) -> Result<Self, PkiError> {
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
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = |roots: RootCertStore| {
            WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone())
        };
        let mutual = || foreign.iter().filter(|foreign| foreign.security == Security::Mutual);
        let mut verifiers = vec![Verifier {
            verifier: verifier(own.clone()).build().map_err(|error| cannot(&error))?,
            foreign: None,
        }];
        for named in mutual().filter_map(|foreign| foreign.roots.as_ref()) {
            let types = mutual().filter(|foreign| foreign.roots.as_ref() == Some(named));
            verifiers.push(Verifier {
                verifier: verifier(store(named.iter())?).build().map_err(|error| cannot(&error))?,
                foreign: Some(types.map(|foreign| foreign.nf_type.clone()).collect()),
            });
        }
        // The handshake takes any of these; 'identify' tells which one it was.
        let of_foreign = mutual().filter_map(|foreign| foreign.roots.as_ref()).flatten();
        let mut any = verifier(store(roots.iter().chain(of_foreign))?);
        if foreign.iter().any(|foreign| foreign.security == Security::Server) {
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
        for foreign in foreign.iter() {
            if let Some(roots) = &foreign.roots {
                let place = (foreign.host.clone(), foreign.port);
                by_place.insert(place, client(store(roots.iter())?)?);
            }
        }
        Ok(Self {
            stamp,
            certificate,
            server: server.into(),
            client: client(own)?,
            foreign: by_place,
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
const OTHER_TYPE: &str =
    "its certificate names other NF types than those for which 'sbi.external' names its CA";
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
