//! The client: one connection to each peer, made when first needed, made anew when it broke, given up
//! when others are called instead.

use super::connection::{self, Limits};
use super::peers::Peers;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::SendRequest;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::spawn_local;
use tokio::time::{Instant, timeout};

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
    peers: RefCell<Peers<Peer>>,
}

impl Client {
    /// One without connections.
    pub fn new(limits: Limits) -> Self {
        Self { limits, peers: RefCell::default() }
    }

    /// Sends a request whose URI is absolute; waits for the whole answer.
    pub async fn call(&self, request: Request<Bytes>) -> Result<Response<Bytes>, CallError> {
        let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let peer = self.peers.borrow_mut().called(&authority, Instant::now());
        let call = peer.call(&authority, request.map(Full::new), self.limits.body);
        timeout(self.limits.time, call).await.unwrap_or(Err(CallError::Late(authority)))
    }
}

/// One peer; the lock is held while its connection is made, so that it is made once.
#[derive(Default)]
struct Peer(Mutex<Option<Sender>>);

impl Peer {
    async fn call(
        &self,
        name: &str,
        request: Request<Full<Bytes>>,
        limit: usize,
    ) -> Result<Response<Bytes>, CallError> {
        let broken = |error: hyper::Error| CallError::Broken(name.into(), chain(&error));
        let response = match self.sender(name).await?.try_send_request(request).await {
            Ok(response) => response,
            // The connection ended before the request left: once more, on a new one.
            Err(mut error) => match error.take_message() {
                Some(request) => self.sender(name).await?.send_request(request).await.map_err(broken)?,
                None => return Err(broken(error.into_error())),
            },
        };
        let (head, body) = response.into_parts();
        let body = connection::whole(body, limit).await;
        let body = body.map_err(|error| CallError::Broken(name.into(), error.to_string()))?;
        Ok(Response::from_parts(head, body))
    }

    /// The connection, made if there is none or it broke.
    async fn sender(&self, name: &str) -> Result<Sender, CallError> {
        let mut connection = self.0.lock().await;
        if let Some(sender) = connection.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let sender = connect(name).await?;
        *connection = Some(sender.clone());
        Ok(sender)
    }
}

async fn connect(name: &str) -> Result<Sender, CallError> {
    let unreachable = |error: String| CallError::Unreachable(name.into(), error);
    let address = if name.contains(':') { name.to_owned() } else { format!("{name}:80") };
    let stream = TcpStream::connect(&address).await.map_err(|error| unreachable(error.to_string()))?;
    // Without it requests are late, not wrong.
    let _ = stream.set_nodelay(true);
    let (sender, connection) = connection::client()
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| unreachable(chain(&error)))?;
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
