//! Tests of mutual authentication: accepted and refused peers, and the errors on both sides.

use super::tls::refusal;
use super::*;
use crate::config::TlsFiles;
use crate::pki::tests::Scratch;
use crate::pki::{Credentials, Directory, Member, Source};
use bytes::Bytes;
use hyper::{Request, Response};
use pith_nf::kit::Nf;
use pith_sbi::{NfInstanceId, NfType};
use rustls::pki_types::ServerName;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

const LIMITS: Limits = Limits {
    time: Duration::from_secs(2),
    body: 1 << 20,
    body_time: Duration::from_secs(2),
    buffered: 1 << 24,
    exchanges: 1000,
};

/// Records the identities of callers.
struct Asked(Rc<RefCell<Vec<Option<PeerIdentity>>>>);

impl Handler for Asked {
    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        let identity = request.extensions().get::<Arc<PeerIdentity>>();
        self.0.borrow_mut().push(identity.map(|identity| (**identity).clone()));
        Response::new(Bytes::new())
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(LocalSet::new().run_until(test));
}

/// A CA that issues certificates for NFs at 127.0.0.1.
struct Network {
    _scratch: Scratch,
    directory: Directory,
}

impl Network {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        Self { directory: Directory::open(&scratch.0).unwrap(), _scratch: scratch }
    }

    fn member(&self, nf: Nf) -> Member {
        Member::new(&[nf], 2, SocketAddr::from(([127, 0, 0, 1], 7777)))
    }

    fn source(&self, nf: Nf) -> Source {
        Source::Directory(self.directory.clone(), self.member(nf))
    }

    fn tls(&self, nf: Nf) -> Rc<Tls> {
        Rc::new(Tls::open(self.source(nf), Vec::new()).unwrap())
    }

    fn client(&self, nf: Nf) -> Client {
        Client::with_tls(LIMITS, self.tls(nf))
    }
}

struct Running {
    address: SocketAddr,
    asked: Rc<RefCell<Vec<Option<PeerIdentity>>>>,
    _drain: watch::Sender<bool>,
}

async fn serve(transport: Transport) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (drain, draining) = watch::channel(false);
    let asked = Rc::new(RefCell::default());
    let known: Known = Rc::new(|_| true);
    let handler = Asked(Rc::clone(&asked));
    let server = Server { handler, protocol: Protocol::Http2, limits: LIMITS, known };
    spawn_local(server.run_over(transport, Listener::Tcp(listener), draining));
    Running { address, asked, _drain: drain }
}

fn get(scheme: &str, address: SocketAddr) -> Request<Bytes> {
    Request::get(format!("{scheme}://{address}/")).body(Bytes::new()).unwrap()
}

/// The result for a client with this certificate, or none, that trusts the server's CA: "accepted" or the
/// error.
async fn shows(credentials: Option<Credentials>, network: &Network, address: SocketAddr) -> String {
    let mut roots = RootCertStore::empty();
    for root in crate::pki::certificates(&network.directory.ca_file()).unwrap() {
        roots.add(root).unwrap();
    }
    let builder = ClientConfig::builder_with_provider(aws_lc_rs::default_provider().into());
    let builder = builder.with_protocol_versions(&[&TLS13]).unwrap().with_root_certificates(roots);
    let mut config = match credentials {
        Some(own) => builder.with_client_auth_cert(own.chain, own.key).unwrap(),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let mut octet = [0];
    match stream.read_exact(&mut octet).await {
        Ok(_) => "accepted".into(),
        Err(error) => refusal(&error),
    }
}

#[test]
fn both_sides_authenticate() {
    run(async {
        let network = Network::new("mutual");
        let server = serve(Transport::Tls(network.tls(Nf::Udm))).await;
        let client = network.client(Nf::Amf);
        let udm = network.directory.assigned(&network.member(Nf::Udm)).unwrap()[&(1, Nf::Udm)];
        client.call_instance(get("https", server.address), Some(udm)).await.unwrap();
        let identity = server.asked.borrow()[0].clone().unwrap();
        assert_eq!(identity.nf_types, [NfType::Amf]);
        let ids = network.directory.assigned(&network.member(Nf::Amf)).unwrap();
        assert_eq!(identity.instances, ids.into_values().collect::<Vec<_>>());

        let other = client.call_instance(get("https", server.address), Some(NfInstanceId(7))).await;
        assert!(other.unwrap_err().to_string().contains("does not name the called NF instance"));
        assert_eq!(server.asked.borrow().len(), 1);
    });
}

#[test]
fn missing_foreign_and_expired_certificates_are_refused() {
    run(async {
        let (network, other) = (Network::new("ours"), Network::new("other"));
        let server = serve(Transport::Tls(network.tls(Nf::Udm))).await;
        assert_eq!(
            shows(Some(network.source(Nf::Smf).load().unwrap()), &network, server.address).await,
            "accepted"
        );
        let none = shows(None, &network, server.address).await;
        assert!(none.contains("or there is none: configure one in 'sbi.tls'"), "{none}");
        let foreign = shows(Some(other.source(Nf::Smf).load().unwrap()), &network, server.address).await;
        assert!(foreign.contains("as it does not trust the CA"), "{foreign}");

        let member = network.member(Nf::Amf);
        network.directory.issue_for(&member, true, Duration::ZERO).unwrap();
        let both = network.directory.role_file(&member.role);
        let files = TlsFiles { ca: network.directory.ca_file(), certificate: both.clone(), key: both };
        let source = Source::Files(files, member);
        sleep(Duration::from_millis(2100)).await;
        let expired = shows(Some(source.load().unwrap()), &network, server.address).await;
        assert!(expired.contains("has expired: 'pith pki renew'"), "{expired}");
        let error = Tls::open(source, Vec::new()).err().unwrap().to_string();
        assert!(error.contains("is not valid now: 'pith pki list'"), "{error}");
        assert!(server.asked.borrow().is_empty());
    });
}

#[test]
fn the_server_reports_why_it_refuses() {
    run(async {
        let (network, other) = (Network::new("why"), Network::new("why-other"));
        let tls = network.tls(Nf::Udm);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let handshake_error = async || {
            let (stream, from) = listener.accept().await.unwrap();
            tls.accept(stream, from.ip()).await.err().unwrap_or_default()
        };
        let (why, _) = tokio::join!(handshake_error(), shows(None, &network, address));
        assert!(why.contains("sent no certificate: 'pith pki issue'"), "{why}");
        let foreign = other.source(Nf::Smf).load().unwrap();
        let (why, _) = tokio::join!(handshake_error(), shows(Some(foreign), &network, address));
        assert!(why.contains("of another CA: use the same directory 'sbi.pki'"), "{why}");
        let mut plain = TcpStream::connect(address).await.unwrap();
        plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        let why = handshake_error().await;
        assert!(why.contains("must begin with https://"), "{why}");
    });
}

#[test]
fn a_client_refuses_other_cas_other_addresses_and_cleartext() {
    run(async {
        let (network, other) = (Network::new("client"), Network::new("client-other"));
        let foreign = serve(Transport::Tls(other.tls(Nf::Udm))).await;
        let client = network.client(Nf::Amf);
        let error = client.call(get("https", foreign.address)).await.unwrap_err().to_string();
        assert!(error.contains("its certificate is of another CA"), "{error}");

        let elsewhere = Member::new(&[Nf::Udm], 1, SocketAddr::from(([127, 0, 0, 2], 7777)));
        let tls = Tls::open(Source::Directory(network.directory.clone(), elsewhere), Vec::new()).unwrap();
        let server = serve(Transport::Tls(Rc::new(tls))).await;
        let error = client.call(get("https", server.address)).await.unwrap_err().to_string();
        assert!(error.contains("its certificate is for another address"), "{error}");

        let plain = serve(Transport::Plain).await;
        let error = client.call(get("http", plain.address)).await.unwrap_err().to_string();
        assert!(error.contains("'security: none'"), "{error}");
        let error = Client::new(LIMITS).call(get("https", plain.address)).await.unwrap_err().to_string();
        assert!(error.contains("no certificate"), "{error}");
        assert!(foreign.asked.borrow().is_empty() && server.asked.borrow().is_empty());
        assert!(plain.asked.borrow().is_empty());
    });
}

#[test]
fn a_client_learns_why_the_server_refuses_it() {
    run(async {
        let (network, other) = (Network::new("handshake_error"), Network::new("handshake_error-other"));
        let server = serve(Transport::Tls(network.tls(Nf::Udm))).await;
        // The client trusts both CAs and has a certificate of the other.
        let member = other.member(Nf::Amf);
        other.directory.issue(&member, false).unwrap();
        let read = |directory: &Directory| std::fs::read(directory.ca_file()).unwrap();
        let bundle = other.directory.file("both.crt");
        std::fs::write(&bundle, [read(&other.directory), read(&network.directory)].concat()).unwrap();
        let both = other.directory.role_file(&member.role);
        let files = TlsFiles { ca: bundle, certificate: both.clone(), key: both };
        let tls = Tls::open(Source::Files(files, member), Vec::new()).unwrap();
        let client = Client::with_tls(LIMITS, Rc::new(tls));
        let error = client.call(get("https", server.address)).await.unwrap_err().to_string();
        assert!(error.contains("refused the certificate of this process"), "{error}");
    });
}

#[test]
fn changed_files_are_read_without_a_restart() {
    run(async {
        let network = Network::new("reload");
        let tls = network.tls(Nf::Udm);
        let server = serve(Transport::Tls(tls.clone())).await;
        let before = tls.certificate();
        tls.refresh(false);
        assert_eq!(tls.certificate(), before);
        let renewed = network.directory.issue(&network.member(Nf::Udm), true).unwrap();
        tls.refresh(false);
        assert_eq!(tls.certificate(), renewed);
        network.client(Nf::Amf).call(get("https", server.address)).await.unwrap();

        std::fs::write(network.directory.ca_file(), "nothing").unwrap();
        tls.refresh(false);
        assert_eq!(tls.certificate(), renewed, "the previous certificate stays in use");
    });
}

#[test]
fn foreign_nfs_get_only_the_configured_security() {
    run(async {
        let network = Network::new("foreign");
        let own = "127.0.0.1".parse().unwrap();
        let open = |security, callers: Vec<_>| {
            let (name, host) = ("udm".to_owned(), "127.0.0.1".to_owned());
            let foreign = Foreign { name, host, callers, security, roots: None };
            Rc::new(Tls::open(network.source(Nf::Amf), vec![foreign]).unwrap())
        };
        // Cleartext to and from the configured NF.
        let plain = open(Security::None, vec![own]);
        let server = serve(Transport::PlainForForeign(plain.clone())).await;
        Client::with_tls(LIMITS, plain.clone()).call(get("http", server.address)).await.unwrap();
        assert_eq!(*server.asked.borrow(), [None]);
        let elsewhere = open(Security::None, vec!["192.0.2.1".parse().unwrap()]);
        let server = serve(Transport::PlainForForeign(elsewhere)).await;
        Client::new(LIMITS).call(get("http", server.address)).await.unwrap_err();
        assert!(server.asked.borrow().is_empty());

        // TLS without a certificate of the caller.
        let server = serve(Transport::Tls(open(Security::Server, vec![own]))).await;
        assert_eq!(shows(None, &network, server.address).await, "accepted");
        let server = serve(Transport::Tls(open(Security::Server, vec!["192.0.2.1".parse().unwrap()]))).await;
        assert_ne!(shows(None, &network, server.address).await, "accepted");
    });
}

#[test]
fn a_certificate_without_nf_types_is_that_of_a_configured_nf_or_of_nobody() {
    run(async {
        let network = Network::new("typeless");
        let nameless = Member::new(&[], 1, SocketAddr::from(([127, 0, 0, 1], 7778)));
        let source = Source::Directory(network.directory.clone(), nameless);
        let client = Client::with_tls(LIMITS, Rc::new(Tls::open(source, Vec::new()).unwrap()));
        let server = serve(Transport::Tls(network.tls(Nf::Udm))).await;
        let refused = client.call(get("https", server.address)).await;
        assert!(refused.is_err(), "{refused:?}");
        assert!(server.asked.borrow().is_empty());

        let ausf = Foreign {
            name: "ausf".into(),
            host: "127.0.0.1".into(),
            callers: vec![[127, 0, 0, 1].into()],
            security: Security::Mutual,
            roots: None,
        };
        let tls = Tls::open(network.source(Nf::Udm), vec![ausf]).unwrap();
        let server = serve(Transport::Tls(Rc::new(tls))).await;
        client.call(get("https", server.address)).await.unwrap();
        assert_eq!(server.asked.borrow()[0].as_ref().unwrap().nf_types, [NfType::Ausf]);
    });
}

#[test]
fn a_connection_without_handshake_is_closed() {
    run(async {
        let network = Network::new("silent");
        let server = serve(Transport::Tls(network.tls(Nf::Udm))).await;
        let mut silent = TcpStream::connect(server.address).await.unwrap();
        let mut octet = [0];
        let ended = timeout(LIMITS.time * 2, silent.read(&mut octet)).await.expect("the server ends it");
        assert_eq!(ended.unwrap_or(0), 0);
    });
}

/// More connections than the server has places, from the address of an NF: unauthenticated ones are closed
/// first.
#[test]
fn unauthenticated_connections_are_replaced_by_authenticated_ones() {
    run(async {
        let network = Network::new("places");
        let server = serve(Transport::Tls(network.tls(Nf::Udm))).await;
        let mut silent = Vec::new();
        for _ in 0..1100 {
            silent.push(TcpStream::connect(server.address).await.unwrap());
        }
        sleep(Duration::from_millis(200)).await;
        network.client(Nf::Amf).call(get("https", server.address)).await.unwrap();
        assert_eq!(server.asked.borrow().len(), 1);
    });
}
