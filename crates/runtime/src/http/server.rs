//! A server: accepts connections, reads requests whole, hands them to a handler.

use super::activity::{Activity, Open};
use super::connection::{self, BodyError, Limits};
use super::problem;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
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
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, timeout};

/// Connections that a server has at once; the next ones wait in the kernel's queue.
const CONNECTIONS: usize = 1024;
/// Time before the next try to accept after one failed: for want of file descriptors, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time between two words to the operator that all connections are taken.
const WARNING_PAUSE: Duration = Duration::from_secs(60);
/// Time from a connection to its first request; less where an exchange has less.
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// Time that a client has to go once it is told that its connection is of no use.
const PARTING: Duration = Duration::from_secs(1);

/// Answers requests.
pub trait Handler: 'static {
    /// Judges a request by its head, before anything of its body is read: gives the largest body that
    /// it may bring, in octets, or what it is told instead. The server's own limit holds too.
    fn admit(&self, _head: &Parts) -> Result<usize, Response<Bytes>> {
        Ok(usize::MAX)
    }

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
        let exchanges = Semaphore::new(self.limits.exchanges);
        let serving = Rc::new(Serving { server: self, exchanges });
        let mut places = Places { free: Arc::new(Semaphore::new(CONNECTIONS)), warned: None };
        // The semaphore is never closed: only `drain` ends the loop.
        while let Some(place) = places.take(&listener).await {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = drain.wait_for(|drain| *drain) => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (serving, drain) = (serving.clone(), drain.clone());
                    spawn_local(async move {
                        serving.connection(stream, drain).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!("can't accept a connection: {error}");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        let _ended = places.free.acquire_many(CONNECTIONS as u32).await;
    }
}

/// Places for connections.
struct Places {
    free: Arc<Semaphore>,
    /// When the operator was last told that none is free.
    warned: Option<Instant>,
}

impl Places {
    /// Waits for a place.
    async fn take(&mut self, listener: &TcpListener) -> Option<OwnedSemaphorePermit> {
        if self.free.available_permits() == 0 && self.warned.is_none_or(|at| at.elapsed() > WARNING_PAUSE) {
            let address = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
            tracing::warn!("{CONNECTIONS} connections to {address} are open: the next ones wait");
            self.warned = Some(Instant::now());
        }
        self.free.clone().acquire_owned().await.ok()
    }
}

/// A server at work.
struct Serving<H> {
    server: Server<H>,
    /// A permit for each exchange that may yet be opened.
    exchanges: Semaphore,
}

impl<H: Handler> Serving<H> {
    async fn connection(self: Rc<Self>, stream: TcpStream, mut drain: Drain) {
        let Limits { time, .. } = self.server.limits;
        // Without it answers are late, not wrong.
        let _ = stream.set_nodelay(true);
        // NFs keep connections that they do not need just now; pings tell whether they are there.
        let (builder, idle) = match self.server.protocol {
            Protocol::Http2 => (connection::server().http2_only(), None),
            Protocol::Any => (connection::server(), Some(time * 2)),
        };
        let activity = Activity::new();
        let service = service_fn(|request| self.clone().exchange(activity.begin(), request));
        let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let patience = tokio::select! {
            // In this order: a request that is there counts, even where its time is over.
            biased;
            ended = served.as_mut() => return log(ended),
            _ = drain.wait_for(|drain| *drain) => time * 2,
            () = activity.ceases(time.min(FIRST_REQUEST), idle) => PARTING,
        };
        served.as_mut().graceful_shutdown();
        if let Ok(ended) = timeout(patience, served).await {
            log(ended);
        }
    }

    async fn exchange(
        self: Rc<Self>,
        _open: Open,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let late =
            || problem(StatusCode::GATEWAY_TIMEOUT, "TIMED_OUT_REQUEST", "there was no answer in time");
        let answer = timeout(self.server.limits.time, self.answer(request)).await;
        Ok(answer.unwrap_or_else(|_| late()).map(Full::new))
    }

    /// The head alone decides whether the body is read: bodies of those who may not ask, or who are too
    /// many, take no memory.
    async fn answer(&self, request: Request<Incoming>) -> Response<Bytes> {
        let (head, body) = request.into_parts();
        let limit = match self.server.handler.admit(&head) {
            Ok(limit) => limit.min(self.server.limits.body),
            Err(refusal) => return refusal,
        };
        let Ok(_permit) = self.exchanges.try_acquire() else { return congested() };
        match connection::whole(body, limit).await {
            Ok(body) => self.server.handler.handle(Request::from_parts(head, body)).await,
            Err(error @ BodyError::TooLarge(_)) => {
                problem(StatusCode::PAYLOAD_TOO_LARGE, "", &error.to_string())
            }
            Err(error @ BodyError::Cut) => {
                problem(StatusCode::BAD_REQUEST, "INVALID_MSG_FORMAT", &error.to_string())
            }
        }
    }
}

/// Too many exchanges are open (TS 29.500 table 5.2.7.2-1).
fn congested() -> Response<Bytes> {
    let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, "NF_CONGESTION", "too much is asked at once");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn log<E: std::fmt::Display>(ended: Result<(), E>) {
    if let Err(error) = ended {
        tracing::debug!("an HTTP connection ended: {error}");
    }
}
