//! The HTTP/2 client: one connection per peer, opened when first needed, reopened after a failure, and closed
//! when its entry is needed for other peers.

use super::Tls;
use super::connection::{self, Limits};
use super::identity::{Expected, ServerIdentity};
use super::peers::Peers;
use super::tls::{ErrorReportingStream, Validity, host_and_port};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http2::SendRequest;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::error::Error as _;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Mutex;
use tokio::task::spawn_local;
use tokio::time::{Instant, timeout};

/// Largest number of attempts to send a request, each on a new connection: a request that the peer did not process, because
/// it was closing the connection, is sent again.
const ATTEMPTS: u32 = 3;

/// Time for which a peer that had a connection may refuse others: a process is started again in a tenth of it.
const RESTART: Duration = Duration::from_millis(1500);
const RESTART_PAUSE: Duration = Duration::from_millis(30);

type Sender = SendRequest<Full<Bytes>>;

/// The reason why a call has no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The time limit has passed.
    #[error("{0} did not answer in time")]
    Late(String),
    /// No connection to the peer could be opened.
    #[error("can't reach {0}: {1}")]
    Unreachable(String, String),
    /// The connection failed, or the peer reset the stream.
    #[error("the connection to {0} failed: {1}")]
    Broken(String, String),
    /// The server of a Unix socket runs as an unexpected user.
    #[error(
        "{0} is served by user {1}, which is neither root, nor you, nor the owner of its directory: nothing is sent"
    )]
    Untrusted(String, u32),
}

/// Sends requests to peers.
pub struct Client {
    limits: Limits,
    /// The Unix socket for all calls; `None`: calls use TCP.
    socket: Option<LocalServer>,
    peers: RefCell<Peers<Peer>>,
    tls: Option<Rc<Tls>>,
    /// Receives the authority of each connection that ends.
    on_loss: Option<OnLoss>,
}

/// Handles the end of a connection to an authority (host and port).
pub type OnLoss = Rc<dyn Fn(&str)>;

impl Client {
    /// A client for `http` URIs.
    pub fn new(limits: Limits) -> Self {
        Self { limits, socket: None, peers: RefCell::default(), tls: None, on_loss: None }
    }

    /// A client that sends all calls to a Unix socket, provided that its server runs as one of these users.
    pub fn over(socket: PathBuf, users: Vec<u32>, limits: Limits) -> Self {
        Self { socket: Some(LocalServer { socket, users }), ..Self::new(limits) }
    }

    /// A client for `https` URIs, and for `http` URIs of the NFs that the configuration permits.
    pub fn with_tls(limits: Limits, tls: Rc<Tls>) -> Self {
        Self { tls: Some(tls), ..Self::new(limits) }
    }

    /// Sets a function to be called when a connection ends.
    pub fn on_loss(mut self, on_loss: OnLoss) -> Self {
        self.on_loss = Some(on_loss);
        self
    }

    /// Sends a request with an absolute URI; returns the complete response.
    pub async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, CallError> {
        self.call_nf(request, Expected::default()).await
    }

    /// Sends a request to an NF: the server's certificate must match `expected`. The response has the
    /// [`ServerIdentity`] as an extension.
    pub async fn call_nf(
        &self,
        request: Request<Bytes>,
        expected: Expected,
    ) -> Result<Response<Bytes>, CallError> {
        let target = PeerAddress::of(request.uri());
        let peer = self.peers.borrow_mut().get_or_insert(&target.key, Instant::now());
        let body = self.limits.body;
        let transport = match &self.socket {
            Some(server) => PeerTransport::Socket(server),
            None => PeerTransport::Tcp(self.tls.as_ref(), self.on_loss.as_ref()),
        };
        let call = peer.call(&target, transport, &expected, request.map(Full::new), body);
        timeout(self.limits.time, call).await.unwrap_or(Err(CallError::Late(target.name.clone())))
    }
}

/// A server on this machine.
struct LocalServer {
    socket: PathBuf,
    /// The users that the server may run as.
    users: Vec<u32>,
}

/// The transport to a peer.
#[derive(Clone, Copy)]
enum PeerTransport<'a> {
    /// Through a Unix socket.
    Socket(&'a LocalServer),
    /// Over TCP, with TLS for `https` URIs.
    Tcp(Option<&'a Rc<Tls>>, Option<&'a OnLoss>),
}

/// The destination of a request.
struct PeerAddress {
    /// Scheme and authority.
    key: String,
    /// The authority, for error messages.
    name: String,
    host: String,
    port: u16,
    is_tls: bool,
}

impl PeerAddress {
    fn of(uri: &Uri) -> Self {
        let name = uri.authority().map(ToString::to_string).unwrap_or_default();
        let (host, port) = host_and_port(uri);
        let key = format!("{}://{name}", uri.scheme_str().unwrap_or_default());
        Self { key, name, host, port, is_tls: uri.scheme_str() == Some("https") }
    }

    fn unreachable(&self, why: impl Into<String>) -> CallError {
        CallError::Unreachable(self.name.clone(), why.into())
    }
}

/// One peer. The lock is held while its connection is opened, so that only one is opened.
#[derive(Default)]
struct Peer(Mutex<Connection>);

#[derive(Default)]
struct Connection {
    sender: Option<Sender>,
    /// With TLS, the server's identity, and until when its certificate is valid.
    server: Option<(Arc<ServerIdentity>, Validity)>,
    /// Connection number, so that each connection is abandoned only once.
    number: u64,
    /// Since when connections are refused by a peer that accepted one before.
    refused_since: Option<Instant>,
}

impl Connection {
    /// Opens a TCP connection. A peer that had one and now refuses is probably being started again: for [`RESTART`] attempts
    /// are repeated.
    async fn open_stream(&mut self, target: &PeerAddress) -> Result<TcpStream, CallError> {
        loop {
            let error = match TcpStream::connect((target.host.as_str(), target.port)).await {
                Ok(stream) => {
                    self.refused_since = None;
                    return Ok(stream);
                }
                Err(error) => error,
            };
            let may_return = self.number > 0 && error.kind() == std::io::ErrorKind::ConnectionRefused;
            let since = *self.refused_since.get_or_insert_with(Instant::now);
            if !may_return || since.elapsed() >= RESTART {
                return Err(target.unreachable(error.to_string()));
            }
            tokio::time::sleep(RESTART_PAUSE).await;
        }
    }
}

impl Peer {
    /// Sends a request. If the peer is known not to have processed it, sends it again on a new connection.
    async fn call(
        &self,
        target: &PeerAddress,
        transport: PeerTransport<'_>,
        expected: &Expected,
        request: Request<Full<Bytes>>,
        limit: usize,
    ) -> Result<Response<Bytes>, CallError> {
        let broken = |error: String| CallError::Broken(target.name.clone(), error);
        let mut attempts = 1;
        let (response, server) = loop {
            let (mut sender, number, server) = self.sender(target, transport, expected).await?;
            match sender.try_send_request(request.clone()).await {
                Ok(response) => break (response, server),
                Err(error) if attempts < ATTEMPTS && was_not_processed(&error) => {
                    attempts += 1;
                    self.discard_connection(number).await;
                }
                Err(error) => return Err(broken(chain(error.error()))),
            }
        };
        let (mut head, body) = response.into_parts();
        if let Some(server) = server {
            head.extensions.insert(server);
        }
        let body = connection::read_body(body, limit).await.map_err(|error| broken(error.to_string()))?;
        Ok(Response::from_parts(head, body))
    }

    /// The connection, its number and the server's identity. A new connection is opened if there is none, if it is closed, or
    /// if the server's certificate is no longer valid.
    async fn sender(
        &self,
        target: &PeerAddress,
        transport: PeerTransport<'_>,
        expected: &Expected,
    ) -> Result<(Sender, u64, Option<Arc<ServerIdentity>>), CallError> {
        let mut connection = self.0.lock().await;
        let is_valid = match (transport, &connection.server) {
            (PeerTransport::Tcp(Some(tls), _), Some((_, validity))) => tls.is_valid(*validity),
            _ => true,
        };
        let open = connection.sender.as_ref().filter(|sender| is_valid && !sender.is_closed()).cloned();
        let sender = match open {
            Some(sender) => sender,
            None => {
                let (sender, server) = match transport {
                    PeerTransport::Socket(local) => (connect_locally(target, local).await?, None),
                    PeerTransport::Tcp(tls, on_loss) => {
                        connect(&mut connection, target, tls, on_loss).await?
                    }
                };
                connection.sender = Some(sender.clone());
                connection.server = server.map(|(server, validity)| (Arc::new(server), validity));
                connection.number += 1;
                sender
            }
        };
        let server = connection.server.as_ref().map(|(server, _)| Arc::clone(server));
        if let Some(server) = &server {
            expected.check(server).map_err(|why| target.unreachable(why))?;
        }
        Ok((sender, connection.number, server))
    }

    /// Sends no further requests on this connection; requests in progress complete.
    async fn discard_connection(&self, number: u64) {
        let mut connection = self.0.lock().await;
        if connection.number == number {
            connection.sender = None;
        }
    }
}

/// Whether the peer is known not to have processed the request (RFC 9113 8.7): the request was not sent, its
/// stream is above the last one of a GOAWAY (6.8; h2 ends only those streams with that error), or the stream
/// was reset with REFUSED_STREAM.
fn was_not_processed<T>(error: &TrySendError<T>) -> bool {
    if error.message().is_some() {
        return true;
    }
    let mut cause = error.error().source();
    while let Some(source) = cause {
        if let Some(error) = source.downcast_ref::<h2::Error>() {
            let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
            return error.is_remote() && (error.is_go_away() || refused);
        }
        cause = source.source();
    }
    false
}

async fn connect(
    connection: &mut Connection,
    target: &PeerAddress,
    tls: Option<&Rc<Tls>>,
    on_loss: Option<&OnLoss>,
) -> Result<(Sender, Option<(ServerIdentity, Validity)>), CallError> {
    let cleartext = !target.is_tls;
    match tls {
        None if target.is_tls => {
            return Err(target.unreachable("the server requires TLS, and this process has no certificate"));
        }
        Some(tls) if cleartext && !tls.allows_cleartext(&target.host, target.port) => {
            return Err(
                target.unreachable("cleartext is for NFs of 'sbi.external' with 'security: none' only")
            );
        }
        _ => {}
    }
    let stream = connection.open_stream(target).await?;
    // A failure only delays requests.
    let _ = stream.set_nodelay(true);
    match tls.filter(|_| target.is_tls) {
        None => Ok((handshake(target, stream, on_loss).await?, None)),
        Some(tls) => match tls.connect(stream, &target.host, target.port).await {
            Ok((stream, server, validity)) => {
                let stream = ErrorReportingStream { stream, tls: tls.clone(), name: target.name.clone() };
                let sender = handshake(target, stream, on_loss).await?;
                Ok((sender, Some((server, validity))))
            }
            Err(why) => {
                tls.warn_of_server(&target.name, &why);
                Err(target.unreachable(why))
            }
        },
    }
}

async fn connect_locally(target: &PeerAddress, server: &LocalServer) -> Result<Sender, CallError> {
    let name = || server.socket.display().to_string();
    let unreachable = |error: std::io::Error| CallError::Unreachable(name(), error.to_string());
    let stream = UnixStream::connect(&server.socket).await.map_err(unreachable)?;
    // SO_PEERCRED: the user that called listen. Any user with write access to the directory can create the socket.
    let user = stream.peer_cred().map_err(unreachable)?.uid();
    if !server.users.contains(&user) {
        return Err(CallError::Untrusted(name(), user));
    }
    handshake(target, stream, None).await
}

async fn handshake(
    target: &PeerAddress,
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    on_loss: Option<&OnLoss>,
) -> Result<Sender, CallError> {
    let (sender, connection) = connection::client()
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| target.unreachable(chain(&error)))?;
    let (name, on_loss) = (target.name.clone(), on_loss.cloned());
    spawn_local(async move {
        if let Err(error) = connection.await {
            tracing::debug!("the connection to {name} ended: {}", chain(&error));
        }
        if let Some(on_loss) = on_loss {
            on_loss(&name);
        }
    });
    Ok(sender)
}

/// An error followed by its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
