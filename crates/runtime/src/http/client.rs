//! The client: one connection to each peer, made when first needed, made anew when it broke, given up
//! when others are called instead.

use super::connection::{self, Limits};
use super::peers::Peers;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http2::SendRequest;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};
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
}

impl Client {
    /// One without connections.
    pub fn new(limits: Limits) -> Self {
        Self { limits, socket: None, peers: RefCell::default() }
    }

    /// One that calls whoever serves a Unix socket.
    pub fn over(socket: PathBuf, limits: Limits) -> Self {
        Self { socket: Some(socket), ..Self::new(limits) }
    }

    /// Sends a request whose URI is absolute; waits for the whole answer.
    pub async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, CallError> {
        let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let peer = self.peers.borrow_mut().called(&authority, Instant::now());
        let socket = self.socket.as_deref();
        let call = peer.call(&authority, socket, request.map(Full::new), self.limits.body);
        timeout(self.limits.time, call).await.unwrap_or(Err(CallError::Late(authority)))
    }
}

/// One peer; the lock is held while its connection is made, so that it is made once.
#[derive(Default)]
struct Peer(Mutex<Connection>);

#[derive(Default)]
struct Connection {
    sender: Option<Sender>,
    /// Counts the connections, so that each is given up once.
    number: u64,
}

impl Peer {
    /// Sends a request until the peer processes it: a request that it has not processed is sent again, on a new
    /// connection.
    async fn call(
        &self,
        name: &str,
        socket: Option<&Path>,
        request: Request<Full<Bytes>>,
        limit: usize,
    ) -> Result<Response<Bytes>, CallError> {
        let broken = |error: String| CallError::Broken(name.into(), error);
        let mut attempts = 1;
        let response = loop {
            let (mut sender, number) = self.sender(name, socket).await?;
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
    async fn sender(&self, name: &str, socket: Option<&Path>) -> Result<(Sender, u64), CallError> {
        let mut connection = self.0.lock().await;
        if let Some(sender) = connection.sender.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok((sender.clone(), connection.number));
        }
        let sender = match socket {
            Some(path) => connect_locally(name, path).await?,
            None => connect(name).await?,
        };
        connection.sender = Some(sender.clone());
        connection.number += 1;
        Ok((sender, connection.number))
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

async fn connect(name: &str) -> Result<Sender, CallError> {
    let unreachable = |error: String| CallError::Unreachable(name.into(), error);
    let address = if name.contains(':') { name.to_owned() } else { format!("{name}:80") };
    let stream = TcpStream::connect(&address).await.map_err(|error| unreachable(error.to_string()))?;
    // Without it requests are late, not wrong.
    let _ = stream.set_nodelay(true);
    begin(name, stream).await
}

async fn connect_locally(name: &str, path: &Path) -> Result<Sender, CallError> {
    let unreachable =
        |error: io::Error| CallError::Unreachable(path.display().to_string(), error.to_string());
    begin(name, UnixStream::connect(path).await.map_err(unreachable)?).await
}

async fn begin(
    name: &str,
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
) -> Result<Sender, CallError> {
    let (sender, connection) = connection::client()
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| CallError::Unreachable(name.into(), chain(&error)))?;
    let name = name.to_owned();
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
