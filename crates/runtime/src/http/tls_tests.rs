//! Tests of mutual authentication: accepted and refused peers, and the errors on both sides.

use super::tls::{Side, describe_io_error};
use super::*;
use crate::config::TlsFiles;
use crate::pki::tests::Scratch;
use crate::pki::{Credentials, Directory, Member, Source};
use bytes::Bytes;
use hyper::{Request, Response};
use pith_nf::fabric::guard::{ClientIdentity, Proof};
use pith_nf::kit::Nf;
use pith_sbi::{NfInstanceId, NfType};
use rustls::pki_types::ServerName;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use std::cell::RefCell;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
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
struct Asked(Rc<RefCell<Vec<Option<ClientIdentity>>>>);

impl Handler for Asked {
    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        let identity = request.extensions().get::<Arc<ClientIdentity>>();
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
        Member::new(&[nf], SocketAddr::from(([127, 0, 0, 1], 7777)))
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
    asked: Rc<RefCell<Vec<Option<ClientIdentity>>>>,
    _drain: watch::Sender<bool>,
}

async fn serve(transport: Transport) -> Running {
    serve_to(transport, Rc::new(|_| true)).await
}

async fn serve_to(transport: Transport, known: Known) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (drain, draining) = watch::channel(false);
    let asked = Rc::new(RefCell::default());
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
        Err(error) => describe_io_error(&error, Side::Client),
    }
}

#[test]
fn both_sides_authenticate() {
    run(async {
        let network = Network::new("mutual");
        let server = serve(Transport::Tls(network.tls(Nf::Udm))).await;
        let client = network.client(Nf::Amf);
        let udm = network.directory.assigned(&network.member(Nf::Udm)).unwrap()[&Nf::Udm];
        let expected = |id, nf_type: NfType| Expected { instance: Some(id), nf_type: Some(nf_type) };
        client.call_nf(get("https", server.address), expected(udm, NfType::Udm)).await.unwrap();
        let identity = server.asked.borrow()[0].clone().unwrap();
        assert_eq!(identity.nf_types, [NfType::Amf]);
        let ids = network.directory.assigned(&network.member(Nf::Amf)).unwrap();
        assert_eq!(identity.instances, ids.into_values().collect::<Vec<_>>());
        assert_eq!((identity.proof, identity.hosts), (Proof::Certificate, vec!["127.0.0.1".to_owned()]));

        let other =
            client.call_nf(get("https", server.address), expected(NfInstanceId(7), NfType::Udm)).await;
        assert!(other.unwrap_err().to_string().contains("does not name the called NF instance"));
        let nrf = client.call_nf(get("https", server.address), Expected::of_type(NfType::Nrf)).await;
        assert!(nrf.unwrap_err().to_string().contains("does not name the called NF type NRF"));
        assert_eq!(server.asked.borrow().len(), 1);
    });
}

#[test]
fn handshakes_have_a_thread_of_their_own() {
    run(async {
        let network = Network::new("thread");
        let server = serve(Transport::Tls(network.tls(Nf::Udm))).await;
        network.client(Nf::Amf).call(get("https", server.address)).await.unwrap();
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let mut names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        assert!(names.any(|name| name.trim() == super::handshake::NAME));
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
        assert!(none.contains("this process sent none: configure one in 'sbi.tls'"), "{none}");
        let foreign = shows(Some(other.source(Nf::Smf).load().unwrap()), &network, server.address).await;
        assert!(foreign.contains("the peer does not trust its CA"), "{foreign}");

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
        assert!(why.contains("issued by another CA: use the same directory 'sbi.pki'"), "{why}");
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
        assert!(error.contains("the peer's certificate was issued by another CA"), "{error}");

        let elsewhere = Member::new(&[Nf::Udm], SocketAddr::from(([127, 0, 0, 2], 7777)));
        let tls = Tls::open(Source::Directory(network.directory.clone(), elsewhere), Vec::new()).unwrap();
        let server = serve(Transport::Tls(Rc::new(tls))).await;
        let error = client.call(get("https", server.address)).await.unwrap_err().to_string();
        assert!(error.contains("the peer's certificate is for another address"), "{error}");

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
        assert!(error.contains("the peer rejected the certificate of this process"), "{error}");
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

/// Without the CA's key the process can't renew its certificate: reading the same files again changes nothing.
#[test]
fn a_certificate_that_ends_soon_is_read_again_only_where_it_can_be_renewed() {
    let network = Network::new("keyless");
    // Valid from 300 s ago for 100 s from now: in the last third of its time.
    network.directory.issue_for(&network.member(Nf::Udm), false, Duration::from_secs(100)).unwrap();
    let old = network.directory.file("ca.key");
    let away = network.directory.file("away");
    std::fs::rename(&old, &away).unwrap();
    let source = network.source(Nf::Udm);
    let tls = Tls::open(source.clone(), Vec::new()).unwrap();
    let before = tls.certificate();
    assert!(!source.is_due(&before) && source.ends_unless_replaced(&before));
    tls.refresh(false);
    assert_eq!(tls.certificate(), before);
    std::fs::rename(&away, &old).unwrap();
    assert!(source.is_due(&before) && !source.ends_unless_replaced(&before));
    tls.refresh(false);
    assert!(tls.certificate().not_after > before.not_after);
}

const OWN: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
const ELSEWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

/// A foreign NF at that port of this machine.
fn foreign(nf_type: NfType, port: u16, security: Security, caller: IpAddr) -> ExternalPeer {
    ExternalPeer { nf_type, host: OWN.to_string(), port, callers: vec![caller], security, roots: None }
}

#[test]
fn foreign_nfs_get_only_the_configured_security() {
    run(async {
        let network = Network::new("foreign");
        let open =
            |foreign: ExternalPeer| Rc::new(Tls::open(network.source(Nf::Amf), vec![foreign]).unwrap());
        let udm = |port, security, caller| open(foreign(NfType::Udm, port, security, caller));
        // Cleartext to and from the configured NF.
        let server = serve(Transport::PlainForExternal(udm(80, Security::None, OWN))).await;
        let port = server.address.port();
        let call = async |tls| Client::with_tls(LIMITS, tls).call(get("http", server.address)).await;
        call(udm(port, Security::None, OWN)).await.unwrap();
        call(udm(port + 1, Security::None, OWN)).await.unwrap_err();
        {
            let asked = server.asked.borrow();
            let [Some(client)] = &asked[..] else { panic!("{asked:?}") };
            assert_eq!((client.proof, &client.nf_types[..]), (Proof::Address, &[NfType::Udm][..]));
        }
        let server = serve(Transport::PlainForExternal(udm(80, Security::None, ELSEWHERE))).await;
        Client::new(LIMITS).call(get("http", server.address)).await.unwrap_err();
        assert!(server.asked.borrow().is_empty());

        // TLS without a certificate of the caller.
        let server = serve(Transport::Tls(udm(443, Security::Server, OWN))).await;
        assert_eq!(shows(None, &network, server.address).await, "accepted");
        let server = serve(Transport::Tls(udm(443, Security::Server, ELSEWHERE))).await;
        assert_ne!(shows(None, &network, server.address).await, "accepted");
    });
}

#[test]
fn a_certificate_without_nf_types_is_that_of_a_configured_nf_or_of_nobody() {
    run(async {
        let network = Network::new("typeless");
        let nameless = Member::new(&[], SocketAddr::from(([127, 0, 0, 1], 7778)));
        let source = Source::Directory(network.directory.clone(), nameless);
        let client = Client::with_tls(LIMITS, Rc::new(Tls::open(source, Vec::new()).unwrap()));
        let server = serve(Transport::Tls(network.tls(Nf::Udm))).await;
        let refused = client.call(get("https", server.address)).await;
        assert!(refused.is_err(), "{refused:?}");
        assert!(server.asked.borrow().is_empty());

        let ausf = foreign(NfType::Ausf, 443, Security::Mutual, OWN);
        let tls = Tls::open(network.source(Nf::Udm), vec![ausf]).unwrap();
        let server = serve(Transport::Tls(Rc::new(tls))).await;
        client.call(get("https", server.address)).await.unwrap();
        assert_eq!(server.asked.borrow()[0].as_ref().unwrap().nf_types, [NfType::Ausf]);
    });
}

#[test]
fn several_foreign_nfs_at_one_address_are_told_from_others() {
    let list = vec![
        foreign(NfType::Udm, 1, Security::None, OWN),
        foreign(NfType::Ausf, 2, Security::None, OWN),
        foreign(NfType::Pcf, 3, Security::Server, OWN),
        foreign(NfType::Nssf, 4, Security::None, ELSEWHERE),
    ];
    let known = ExternalPeers::from(list);
    let types = |from, security| known.by_address(from, security).map(|client| client.nf_types);
    assert_eq!(types(OWN, Security::None), Some(vec![NfType::Udm, NfType::Ausf]));
    assert_eq!(types(OWN, Security::Server), Some(vec![NfType::Pcf]));
    assert_eq!(types(ELSEWHERE, Security::Server), None);
}

/// The CA of a foreign NF makes that NF, and neither others nor ours.
#[test]
fn the_ca_that_verified_a_certificate_decides_what_its_holder_may_be() {
    run(async {
        let (network, other) = (Network::new("roots"), Network::new("roots-other"));
        let roots = {
            other.source(Nf::Udm).load().unwrap();
            crate::pki::certificates(&other.directory.ca_file()).unwrap()
        };
        let mut udm = foreign(NfType::Udm, 443, Security::Mutual, ELSEWHERE);
        udm.roots = Some(roots);
        let pcf = foreign(NfType::Pcf, 444, Security::Mutual, OWN);
        let tls = Rc::new(Tls::open(network.source(Nf::Amf), vec![udm, pcf]).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let who = async |credentials: Credentials| {
            let accept = async {
                let (stream, from) = listener.accept().await.unwrap();
                tls.accept(stream, from.ip()).await.map(|(_, identity, _)| identity)
            };
            tokio::join!(accept, shows(Some(credentials), &network, address)).0
        };
        let of_own = who(network.source(Nf::Smf).load().unwrap()).await.unwrap();
        assert_eq!(of_own.nf_types, [NfType::Smf]);
        let of_other = who(other.source(Nf::Udm).load().unwrap()).await.unwrap();
        assert_eq!((of_other.nf_types, of_other.instances.len()), (vec![NfType::Udm], 1));
        let why = who(other.source(Nf::Amf).load().unwrap()).await.unwrap_err();
        assert!(why.contains("names no NF type for which"), "{why}");

        // Without a type in it a certificate is good for what the configuration says of its CA or of its address.
        let untyped = |network: &Network| {
            let member = Member { nfs: Vec::new(), ..network.member(Nf::Udm) };
            Source::Directory(network.directory.clone(), Member { role: "untyped".into(), ..member })
        };
        let of_other = who(untyped(&other).load().unwrap()).await.unwrap();
        assert_eq!((of_other.nf_types, of_other.instances), (vec![NfType::Udm], vec![]));
        let of_own = who(untyped(&network).load().unwrap()).await.unwrap();
        assert_eq!(of_own.nf_types, [NfType::Pcf]);

        // It names one of our instances.
        let ids =
            |network: &Network| network.directory.file(&format!("{}.json", network.member(Nf::Udm).role));
        network.source(Nf::Udm).load().unwrap();
        std::fs::copy(ids(&network), ids(&other)).unwrap();
        let why = who(other.source(Nf::Udm).load().unwrap()).await.unwrap_err();
        assert!(why.contains("of this process"), "{why}");
    });
}

/// Certificates of both ends: connections don't outlive them.
#[test]
fn connections_end_with_the_certificates_of_either_end() {
    run(async {
        let network = Network::new("ends");
        let brief = |nf| {
            let member = network.member(nf);
            network.directory.issue_for(&member, true, Duration::from_secs(2)).unwrap();
            let both = network.directory.role_file(&member.role);
            let files = TlsFiles { ca: network.directory.ca_file(), certificate: both.clone(), key: both };
            Rc::new(Tls::open(Source::Files(files, member), Vec::new()).unwrap())
        };
        let (lasting, ending) = (serve(Transport::Tls(network.tls(Nf::Udm))).await, brief(Nf::Ausf));
        let ending = serve(Transport::Tls(ending)).await;
        let (client, brief_client) = (network.client(Nf::Amf), Client::with_tls(LIMITS, brief(Nf::Smf)));
        brief_client.call(get("https", lasting.address)).await.unwrap();
        client.call(get("https", ending.address)).await.unwrap();
        sleep(Duration::from_secs(4)).await;
        brief_client.call(get("https", lasting.address)).await.unwrap_err();
        let error = client.call(get("https", ending.address)).await.unwrap_err().to_string();
        assert!(error.contains("has expired"), "{error}");
        assert_eq!((lasting.asked.borrow().len(), ending.asked.borrow().len()), (1, 1));
    });
}

#[test]
fn connections_end_with_the_trust_in_their_ca() {
    run(async {
        let (network, other) = (Network::new("trust"), Network::new("trust-other"));
        let member = network.member(Nf::Udm);
        network.source(Nf::Udm).load().unwrap();
        other.source(Nf::Amf).load().unwrap();
        let ca = |network: &Network| std::fs::read(network.directory.ca_file()).unwrap();
        let bundle = network.directory.file("bundle.crt");
        std::fs::write(&bundle, [ca(&network), ca(&other)].concat()).unwrap();
        let both = network.directory.role_file(&member.role);
        let files = TlsFiles { ca: bundle.clone(), certificate: both.clone(), key: both };
        let tls = Rc::new(Tls::open(Source::Files(files, member), Vec::new()).unwrap());
        let server = serve(Transport::Tls(tls.clone())).await;

        let member = other.member(Nf::Amf);
        let both = other.directory.role_file(&member.role);
        let files = TlsFiles { ca: network.directory.ca_file(), certificate: both.clone(), key: both };
        let client =
            Client::with_tls(LIMITS, Rc::new(Tls::open(Source::Files(files, member), Vec::new()).unwrap()));
        client.call(get("https", server.address)).await.unwrap();
        std::fs::write(&bundle, ca(&network)).unwrap();
        tls.refresh(false);
        sleep(Duration::from_millis(200)).await;
        client.call(get("https", server.address)).await.unwrap_err();
        assert_eq!(server.asked.borrow().len(), 1);
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

/// Strangers that connect faster than they could be found idle, from several addresses.
#[test]
fn handshakes_of_strangers_leave_room_for_those_of_configured_addresses() {
    run(async {
        let network = Network::new("flood");
        let own: std::net::IpAddr = [127, 0, 0, 1].into();
        let server =
            serve_to(Transport::Tls(network.tls(Nf::Udm)), Rc::new(move |address| address == own)).await;
        let mut silent = Vec::new();
        for stranger in 2..8 {
            for _ in 0..120 {
                let socket = tokio::net::TcpSocket::new_v4().unwrap();
                socket.bind(SocketAddr::from(([127, 0, 0, stranger], 0))).unwrap();
                silent.push(socket.connect(server.address).await.unwrap());
            }
        }
        network.client(Nf::Amf).call(get("https", server.address)).await.unwrap();
        assert_eq!(server.asked.borrow().len(), 1);
    });
}
