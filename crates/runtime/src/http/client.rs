//! The client: one connection to each peer, made when first needed, made anew when it broke, given up
//! when others are called instead.

use super::Tls;
use super::connection::{self, Limits};
use super::peers::Peers;
use super::tls::{Explained, host_and_port};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http2::SendRequest;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use pith_sbi::NfInstanceId;
use std::cell::RefCell;
use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Mutex;
use tokio::task::spawn_local;
use tokio::time::{Instant, timeout};

/// Times that a request is sent at most: the peer may be about to go away behind two more addresses.
const ATTEMPTS: u32 = 3;

type Sender = SendRequest<Full<Bytes>>;

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Not in time.
    #[error("{0} did not answer in time")]
    Late(String),
    /// There is no connection to the peer.
    #[error("can't reach {0}: {1}")]
    Unreachable(String, String),
    /// The connection broke, or the peer reset the stream.
    #[error("{0} broke off: {1}")]
    Broken(String, String),
}

/// Calls others.
pub struct Client {
    limits: Limits,
    /// The Unix socket to which all calls go; over TCP without.
    socket: Option<PathBuf>,
    peers: RefCell<Peers<Peer>>,
    tls: Option<Rc<Tls>>,
}

impl Client {
    /// One without connections, for `http` URIs.
    pub fn new(limits: Limits) -> Self {
        Self { limits, socket: None, peers: RefCell::default(), tls: None }
    }

    /// One that calls whoever serves a Unix socket.
    pub fn over(socket: PathBuf, limits: Limits) -> Self {
        Self { socket: Some(socket), ..Self::new(limits) }
    }

    /// One for `https` URIs, and for `http` ones of the NFs that the configuration names.
    pub fn with_tls(limits: Limits, tls: Rc<Tls>) -> Self {
        Self { tls: Some(tls), ..Self::new(limits) }
    }

    /// Sends a request whose URI is absolute; waits for the whole answer.
    pub async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, CallError> {
        self.call_instance(request, None).await
    }

    /// The same to an NF instance: the server's certificate must name it.
    pub async fn call_instance(
        &self,
        request: Request<Bytes>,
        instance: Option<NfInstanceId>,
    ) -> Result<Response<Bytes>, CallError> {
        let place = Place::of(request.uri());
        let peer = self.peers.borrow_mut().called(&place.key, Instant::now());
        let body = self.limits.body;
        let route = match &self.socket {
            Some(path) => Route::Socket(path),
            None => Route::Tcp(self.tls.as_ref()),
        };
        let call = peer.call(&place, route, instance, request.map(Full::new), body);
        timeout(self.limits.time, call).await.unwrap_or(Err(CallError::Late(place.name.clone())))
    }
}

/// How a peer is reached.
#[derive(Clone, Copy)]
enum Route<'a> {
    /// By a Unix socket.
    Socket(&'a Path),
    /// By TCP.
    Tcp(Option<&'a Rc<Tls>>),
}

/// Where a request goes.
struct Place {
    /// Scheme and authority.
    key: String,
    /// The authority, for people.
    name: String,
    host: String,
    port: u16,
    is_tls: bool,
}

impl Place {
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

/// One peer; the lock is held while its connection is made, so that it is made once.
#[derive(Default)]
struct Peer(Mutex<Connection>);

#[derive(Default)]
struct Connection {
    sender: Option<Sender>,
    /// NF instances that the server's certificate names.
    instances: Option<Vec<NfInstanceId>>,
    /// Counts the connections, so that each is given up once.
    number: u64,
}

impl Peer {
    /// Sends a request until the peer processes it: a request that it has not processed is sent again, on a new
    /// connection.
    async fn call(
        &self,
        place: &Place,
        route: Route<'_>,
        instance: Option<NfInstanceId>,
        request: Request<Full<Bytes>>,
        limit: usize,
    ) -> Result<Response<Bytes>, CallError> {
        let broken = |error: String| CallError::Broken(place.name.clone(), error);
        let mut attempts = 1;
        let response = loop {
            let (mut sender, number) = self.sender(place, route, instance).await?;
            match sender.try_send_request(request.clone()).await {
                Ok(response) => break response,
                Err(error) if attempts < ATTEMPTS && was_not_processed(&error) => {
                    attempts += 1;
                    self.give_up(number).await;
                }
                Err(error) => return Err(broken(chain(error.error()))),
            }
        };
        let (head, body) = response.into_parts();
        let body = connection::whole(body, limit).await.map_err(|error| broken(error.to_string()))?;
        Ok(Response::from_parts(head, body))
    }

    /// The connection and its number; made if there is none or it broke.
    async fn sender(
        &self,
        place: &Place,
        route: Route<'_>,
        instance: Option<NfInstanceId>,
    ) -> Result<(Sender, u64), CallError> {
        let mut connection = self.0.lock().await;
        let open = connection.sender.as_ref().filter(|sender| !sender.is_closed()).cloned();
        let sender = match open {
            Some(sender) => sender,
            None => {
                let (sender, instances) = match route {
                    Route::Socket(path) => (connect_locally(place, path).await?, None),
                    Route::Tcp(tls) => connect(place, tls).await?,
                };
                connection.sender = Some(sender.clone());
                connection.instances = instances;
                connection.number += 1;
                sender
            }
        };
        match (&connection.instances, instance) {
            (Some(certified), Some(meant)) if !certified.contains(&meant) => Err(place.unreachable(format!(
                "its certificate does not name the NF instance {meant} that is called (TS 33.310 6.1.3c)"
            ))),
            _ => Ok((sender, connection.number)),
        }
    }

    /// Sends nothing more on that connection; what is open there is still answered.
    async fn give_up(&self, number: u64) {
        let mut connection = self.0.lock().await;
        if connection.number == number {
            connection.sender = None;
        }
    }
}

/// Whether the peer is known not to have processed the request (RFC 9113 8.7): it was not sent, its stream is above
/// the last one of a GOAWAY (6.8; h2 ends only those with that error), or it was reset by REFUSED_STREAM.
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
    place: &Place,
    tls: Option<&Rc<Tls>>,
) -> Result<(Sender, Option<Vec<NfInstanceId>>), CallError> {
    let cleartext = !place.is_tls;
    match tls {
        None if place.is_tls => {
            return Err(place.unreachable("it wants TLS, and this process has no certificate"));
        }
        Some(tls) if cleartext && !tls.allows_cleartext(&place.host) => {
            return Err(
                place.unreachable("cleartext is for NFs of 'sbi.external' with 'security: none' only")
            );
        }
        _ => {}
    }
    let stream = TcpStream::connect((place.host.as_str(), place.port)).await;
    let stream = stream.map_err(|error| place.unreachable(error.to_string()))?;
    // Without it requests are late, not wrong.
    let _ = stream.set_nodelay(true);
    match tls.filter(|_| place.is_tls) {
        None => Ok((handshake(place, stream).await?, None)),
        Some(tls) => match tls.connect(stream, &place.host).await {
            Ok((stream, instances)) => {
                let stream = Explained { stream, tls: tls.clone(), name: place.name.clone() };
                let sender = handshake(place, stream).await?;
                Ok((sender, instances))
            }
            Err(why) => {
                tls.warn_of_server(&place.name, &why);
                Err(place.unreachable(why))
            }
        },
    }
}

async fn connect_locally(place: &Place, path: &Path) -> Result<Sender, CallError> {
    let stream = UnixStream::connect(path).await;
    let unreachable =
        |error: std::io::Error| CallError::Unreachable(path.display().to_string(), error.to_string());
    handshake(place, stream.map_err(unreachable)?).await
}

async fn handshake(
    place: &Place,
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
) -> Result<Sender, CallError> {
    let (sender, connection) = connection::client()
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| place.unreachable(chain(&error)))?;
    let name = place.name.clone();
    spawn_local(async move {
        if let Err(error) = connection.await {
            tracing::debug!("the connection to {name} ended: {}", chain(&error));
        }
    });
    Ok(sender)
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
