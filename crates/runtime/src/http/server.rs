//! A server: accepts connections, reads requests whole, hands them to a handler.

use super::connection::{self, BodyError, Limits};
use super::problem;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

/// Connections that a server has at once; the next ones wait in the kernel's queue.
const CONNECTIONS: usize = 1024;
/// Time before the next try to accept after one failed: for want of file descriptors, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers requests.
pub trait Handler: 'static {
    /// Answers one. It is dropped when the client goes away or the time is over.
    fn handle(&self, request: Request<Bytes>) -> impl Future<Output = Response<Bytes>>;
}

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2 with prior knowledge: NFs.
    Http2,
    /// That or HTTP/1.1: people and their tools.
    Any,
}

/// Becomes true when servers are to finish.
pub type Drain = watch::Receiver<bool>;

/// A server on one address.
pub struct Server<H> {
    /// What answers.
    pub handler: H,
    /// What it speaks.
    pub protocol: Protocol,
    /// How much it takes.
    pub limits: Limits,
}

impl<H: Handler> Server<H> {
    /// Serves until `drain`, then until every connection has answered what it took.
    pub async fn run(self, listener: TcpListener, mut drain: Drain) {
        let server = Rc::new(self);
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        // The semaphore is never closed: only `drain` ends the loop.
        while let Ok(permit) = connections.clone().acquire_owned().await {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = drain.wait_for(|drain| *drain) => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (server, drain) = (server.clone(), drain.clone());
                    spawn_local(async move {
                        server.connection(stream, drain).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!("can't accept a connection: {error}");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        let _ended = connections.acquire_many(CONNECTIONS as u32).await;
    }

    async fn connection(self: Rc<Self>, stream: TcpStream, mut drain: Drain) {
        let limit = self.limits.time * 2;
        // Without it answers are late, not wrong.
        let _ = stream.set_nodelay(true);
        let builder = match self.protocol {
            Protocol::Http2 => connection::server().http2_only(),
            Protocol::Any => connection::server(),
        };
        let service = service_fn(|request| self.clone().exchange(request));
        let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            ended = served.as_mut() => return log(ended),
            _ = drain.wait_for(|drain| *drain) => served.as_mut().graceful_shutdown(),
        }
        if let Ok(ended) = timeout(limit, served).await {
            log(ended);
        }
    }

    async fn exchange(
        self: Rc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let late =
            || problem(StatusCode::GATEWAY_TIMEOUT, "TIMED_OUT_REQUEST", "there was no answer in time");
        let answer = timeout(self.limits.time, self.answer(request)).await;
        Ok(answer.unwrap_or_else(|_| late()).map(Full::new))
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Bytes> {
        let (head, body) = request.into_parts();
        match connection::whole(body, self.limits.body).await {
            Ok(body) => self.handler.handle(Request::from_parts(head, body)).await,
            Err(error @ BodyError::TooLarge(_)) => {
                problem(StatusCode::PAYLOAD_TOO_LARGE, "", &error.to_string())
            }
            Err(error @ BodyError::Cut) => {
                problem(StatusCode::BAD_REQUEST, "INVALID_MSG_FORMAT", &error.to_string())
            }
        }
    }
}

fn log<E: std::fmt::Display>(ended: Result<(), E>) {
    if let Err(error) = ended {
        tracing::debug!("an HTTP connection ended: {error}");
    }
}
