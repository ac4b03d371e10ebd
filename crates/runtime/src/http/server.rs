//! An HTTP server: accepts connections, reads complete requests, and passes them to a handler.

use super::activity::{Activity, Open};
use super::connection::{self, BodyError, Limits};
use super::identity::{ExternalPeers, Security};
use super::rate::HandshakeRates;
use super::refusals::Refusals;
use super::share::{Exhausted, Peer, Share, Standing, Taken};
use super::tls::Trust;
use super::{Tls, problem, same_user};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use pith_nf::fabric::guard::ClientIdentity;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::UCred;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Notify, watch};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, timeout};

/// Largest number of connections of a server.
const CONNECTIONS: usize = 1024;
/// Maximum number of connections in the TLS handshake. They take no place of the others, as the peer is not authenticated.
const HANDSHAKES: usize = 256;
/// Time before the next attempt after a failed accept, such as for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Interval of warnings that no connection is free.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);
/// Time from the connection's start to its first request; shorter if the time for an exchange is shorter.
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// Time that a client has to close an unused connection after the server's request to do so.
const CLOSING_TIME: Duration = Duration::from_secs(1);

/// Idle time after which a connection may be closed in favour of another, and time for closing it.
const YIELD_TIME: Duration = Duration::from_millis(100);
/// Idle time after which an unknown peer's connection is closed in any case.
const UNKNOWN_PEER_IDLE: Duration = Duration::from_secs(60);

/// The reason for refusing cleartext.
const NOT_NAMED: &str = "cleartext is only for NFs in 'sbi.external' with 'security: none'; list the addresses from which such an NF calls in its 'callers'";

/// Why another user's process is refused.
const NOT_OF_USER: &str = "with 'sbi.security: none' only processes of the user that runs this one are served, and NFs in 'sbi.external' with 'security: none' from the addresses in their 'callers'";

/// Handles requests.
pub trait Handler: 'static {
    /// Decides by the head, before any of the body is read: returns the largest permitted body in octets, or
    /// the response that refuses the request. The server's own limit applies too.
    fn admit(&self, _head: &Parts) -> Result<usize, Response<Bytes>> {
        Ok(usize::MAX)
    }

    /// Whether a request is handled to its end even if the client disconnects or the time limit passes: for changes that
    /// must be audited.
    fn runs_to_end(&self, _head: &Parts) -> bool {
        false
    }

    /// Handles a request. Unless it runs to its end, the future is dropped if the client disconnects or the time limit
    /// passes.
    fn handle(&self, request: Request<Bytes>) -> impl Future<Output = Response<Bytes>>;
}

/// The HTTP versions of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2 with prior knowledge, for NFs.
    Http2,
    /// HTTP/2 or HTTP/1.1, for browsers and other tools.
    Any,
}

/// The security layer between HTTP and TCP.
#[derive(Clone)]
pub enum Transport {
    /// Cleartext.
    Plain,
    /// TLS, with the client's certificate.
    Tls(Rc<Tls>),
    /// Cleartext, for the NFs of other vendors that the configuration permits.
    PlainForExternal(Rc<Tls>),
    /// Nothing, for processes of the user that runs this one, and for those NFs.
    PlainForUser(ExternalPeers),
}

/// The authentication of a client, added to the extensions of its requests.
#[derive(Clone)]
enum Proof {
    /// None.
    None,
    /// A user of this machine.
    User(UCred),
    /// An NF.
    Nf(Arc<ClientIdentity>),
}

/// Becomes true when servers must finish.
pub type Drain = watch::Receiver<bool>;

/// Decides whether an address is a known peer's, by the configuration.
pub type Known = Rc<dyn Fn(IpAddr) -> bool>;

/// The source of connections.
pub enum Listener {
    /// From hosts, over TCP.
    Tcp(TcpListener),
    /// From users of this machine, over a Unix socket.
    Unix(UnixListener),
}

/// An accepted connection.
enum Accepted {
    Tcp(TcpStream, IpAddr),
    Unix(UnixStream, UCred),
}

impl Listener {
    async fn accept(&self) -> io::Result<Accepted> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                Accepted::Tcp(stream, from.ip())
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let credentials = stream.peer_cred()?;
                Accepted::Unix(stream, credentials)
            }
        })
    }

    fn name(&self) -> String {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(|at| at.to_string()).unwrap_or_default(),
            Self::Unix(listener) => {
                let address = listener.local_addr().ok();
                let path = address.as_ref().and_then(|address| address.as_pathname());
                path.map(|path| path.display().to_string()).unwrap_or_default()
            }
        }
    }
}

/// A server on one address.
pub struct Server<H> {
    /// Handles the requests.
    pub handler: H,
    /// The HTTP versions.
    pub protocol: Protocol,
    /// Limits of requests.
    pub limits: Limits,
    /// Known peers, for which half of each resource is reserved.
    pub known: Known,
}

impl<H: Handler> Server<H> {
    /// Serves in cleartext until `drain`, then completes open exchanges.
    pub async fn run(self, listener: Listener, drain: Drain) {
        self.run_over(Transport::Plain, listener, drain).await;
    }

    /// Serves over a transport until `drain`, then completes open exchanges.
    pub async fn run_over(self, transport: Transport, listener: Listener, mut drain: Drain) {
        let serving = Serving::new(self, transport);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = drain.wait_for(|drain| *drain) => break,
            };
            match accepted {
                Ok(accepted) => serving.accepted(accepted, &drain, &listener),
                Err(error) => {
                    tracing::warn!("can't accept a connection: {error}");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        while !serving.connections.borrow().is_empty() || serving.unfinished.get() > 0 {
            serving.ended.notified().await;
        }
    }
}

/// The stage of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The peer is not authenticated yet.
    Handshake,
    /// The peer is authenticated, or need not be.
    Open,
}

/// An open connection.
struct OpenConnection {
    peer: Peer,
    standing: Standing,
    stage: Stage,
    activity: Rc<Activity>,
    /// Notified when the connection must close in favour of another.
    close_request: Rc<Notify>,
    /// The connection's part of the capacity; `None` once another connection has it.
    place: Option<Taken>,
}

/// A running server.
struct Serving<H> {
    server: Server<H>,
    transport: Transport,
    handshakes: Rc<Share>,
    handshake_rates: RefCell<HandshakeRates>,
    refusals: Refusals,
    places: Rc<Share>,
    exchanges: Rc<Share>,
    octets: Rc<Share>,
    connections: RefCell<BTreeMap<u64, OpenConnection>>,
    numbered: Cell<u64>,
    /// Number of open requests that run to their end.
    unfinished: Cell<usize>,
    /// Signals the end of a connection, or of a request that runs to its end.
    ended: Notify,
    /// When the operator was last warned of refused connections.
    warned: Cell<Option<Instant>>,
}

impl<H: Handler> Serving<H> {
    fn new(server: Server<H>, transport: Transport) -> Rc<Self> {
        Rc::new(Self {
            handshakes: Share::of(HANDSHAKES),
            handshake_rates: HandshakeRates::new(Instant::now()).into(),
            refusals: Refusals::default(),
            places: Share::of(CONNECTIONS),
            exchanges: Share::of(server.limits.exchanges),
            octets: Share::of(server.limits.buffered),
            server,
            transport,
            connections: RefCell::default(),
            numbered: Cell::new(0),
            unfinished: Cell::new(0),
            ended: Notify::new(),
            warned: Cell::new(None),
        })
    }

    fn accepted(self: &Rc<Self>, accepted: Accepted, drain: &Drain, listener: &Listener) {
        let (peer, standing) = match &accepted {
            Accepted::Tcp(_, from) => (Peer::at(*from), self.standing_of(*from)),
            Accepted::Unix(_, credentials) => (Peer::User(credentials.uid()), Standing::Known),
        };
        let stage = match (&accepted, &self.transport) {
            (Accepted::Tcp(..), Transport::Tls(_)) => Stage::Handshake,
            _ => Stage::Open,
        };
        if stage == Stage::Handshake && standing == Standing::Unknown {
            let is_within_rate = self.handshake_rates.borrow_mut().take(peer, Instant::now());
            if !is_within_rate {
                return self.warn(peer, &listener.name());
            }
        }
        let Some(place) = self.place(stage, peer, standing) else {
            return self.warn(peer, &listener.name());
        };
        let (activity, close_request) = (Activity::new(), Rc::default());
        let open = OpenConnection { peer, standing, stage, activity, close_request, place: Some(place) };
        let number = self.register(open);
        let (serving, drain) = (self.clone(), drain.clone());
        spawn_local(async move {
            match accepted {
                Accepted::Tcp(stream, from) => {
                    // A failure only delays responses.
                    let _ = stream.set_nodelay(true);
                    serving.clone().secure(number, stream, from, drain).await;
                }
                Accepted::Unix(stream, credentials) => {
                    serving.clone().connection(number, stream, Proof::User(credentials), None, drain).await;
                }
            }
            serving.connections.borrow_mut().remove(&number);
            serving.ended.notify_one();
        });
    }

    /// Allocates a place for a connection of the peer. If there is none, takes the place of an idle connection: one of
    /// the same peer if the peer's own share is used up, else one of an unknown peer, or for a known peer one of the peer with
    /// the most connections.
    fn place(&self, stage: Stage, peer: Peer, standing: Standing) -> Option<Taken> {
        let share = match stage {
            Stage::Handshake => &self.handshakes,
            Stage::Open => &self.places,
        };
        let exhausted = match share.take(peer, standing, 1) {
            Ok(place) => return Some(place),
            Err(exhausted) => exhausted,
        };
        let mut connections = self.connections.borrow_mut();
        let longest_idle = |may_go: &dyn Fn(&OpenConnection) -> bool| {
            let idle = connections.iter().filter(|(_, open)| {
                let is_idle = open.stage == stage && open.activity.silence() >= YIELD_TIME;
                is_idle && open.place.is_some() && may_go(open)
            });
            idle.max_by_key(|(_, open)| open.activity.silence()).map(|(number, _)| *number)
        };
        let victim = match exhausted {
            Exhausted::Own => longest_idle(&|open| open.peer == peer),
            _ => longest_idle(&|open| open.standing == Standing::Unknown).or_else(|| {
                let largest = share.largest().filter(|_| standing == Standing::Known)?;
                let has_more = share.held_by(largest) > share.held_by(peer);
                longest_idle(&|open| has_more && open.peer == largest)
            }),
        };
        let victim = connections.get_mut(&victim?)?;
        victim.close_request.notify_one();
        drop(victim.place.take());
        share.take(peer, standing, 1).ok()
    }

    fn warn(&self, peer: Peer, listener: &str) {
        if self.may_warn() {
            tracing::warn!("{listener}: refused a connection of {peer}: too many connections");
        }
    }

    /// Whether the last warning is long ago.
    fn may_warn(&self) -> bool {
        let may = self.warned.get().is_none_or(|at| at.elapsed() > WARNING_INTERVAL);
        if may {
            self.warned.set(Some(Instant::now()));
        }
        may
    }

    fn register(&self, open: OpenConnection) -> u64 {
        let number = self.numbered.get();
        self.numbered.set(number + 1);
        self.connections.borrow_mut().insert(number, open);
        number
    }

    fn standing_of(&self, address: IpAddr) -> Standing {
        if (self.server.known)(address) { Standing::Known } else { Standing::Unknown }
    }

    /// Moves a connection whose handshake has ended to the share of its peer. Returns false if there is no place.
    fn open(&self, number: u64, peer: Peer, standing: Standing) -> bool {
        let Some(place) = self.place(Stage::Open, peer, standing) else {
            self.warn(peer, "the SBI");
            return false;
        };
        let mut connections = self.connections.borrow_mut();
        let Some(open) = connections.get_mut(&number) else { return false };
        let (activity, close_request) = (Activity::new(), Rc::default());
        *open = OpenConnection {
            peer,
            standing,
            stage: Stage::Open,
            activity,
            close_request,
            place: Some(place),
        };
        true
    }

    /// Authenticates the client as the transport requires, and serves it.
    async fn secure(self: Rc<Self>, number: u64, stream: TcpStream, from: IpAddr, mut drain: Drain) {
        let nf = |identity| Proof::Nf(Arc::new(identity));
        let tls = match &self.transport {
            Transport::Plain => return self.connection(number, stream, Proof::None, None, drain).await,
            Transport::PlainForExternal(tls) => match tls.in_cleartext(from) {
                Some(identity) => return self.connection(number, stream, nf(identity), None, drain).await,
                None => return tls.warn(from, NOT_NAMED),
            },
            Transport::PlainForUser(external) => {
                let identity = if same_user::is_same_user(&stream) {
                    Some(ClientIdentity::same_user())
                } else {
                    external.by_address(from, Security::None)
                };
                match identity {
                    Some(identity) => {
                        return self.connection(number, stream, nf(identity), None, drain).await;
                    }
                    None => {
                        if self.may_warn() {
                            tracing::warn!("refused a connection of {from} to the SBI: {NOT_OF_USER}");
                        }
                        return;
                    }
                }
            }
            Transport::Tls(tls) => tls.clone(),
        };
        let close_request = self.connections.borrow().get(&number).map(|open| open.close_request.clone());
        let Some(close_request) = close_request else { return };
        let handshake_time = self.server.limits.time.min(FIRST_REQUEST);
        let accepted = tokio::select! {
            accepted = timeout(handshake_time, tls.accept(stream, from)) => accepted,
            _ = drain.wait_for(|drain| *drain) => return,
            () = close_request.notified() => return,
        };
        match accepted {
            Ok(Ok((stream, identity, trust))) => {
                // A peer with a certificate is known, whatever its address.
                let standing = if trust.is_some() { Standing::Known } else { self.standing_of(from) };
                if self.open(number, peer_of(&identity, from), standing) {
                    self.connection(number, stream, nf(identity), trust, drain).await;
                }
            }
            Ok(Err(why)) => tls.warn(from, &why),
            Err(_) => tls.warn(from, "the client did not finish the TLS handshake in time"),
        }
    }

    async fn connection(
        self: Rc<Self>,
        number: u64,
        stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
        proof: Proof,
        trust: Option<Trust>,
        mut drain: Drain,
    ) {
        let open = self
            .connections
            .borrow()
            .get(&number)
            .map(|open| (open.peer, open.standing, open.activity.clone(), open.close_request.clone()));
        let Some((peer, standing, activity, close_request)) = open else { return };
        let Limits { time, .. } = self.server.limits;
        // NFs keep idle connections open; pings detect dead peers.
        let (builder, idle) = match (self.server.protocol, standing) {
            (Protocol::Http2, Standing::Known) => (connection::server(standing).http2_only(), None),
            (Protocol::Http2, Standing::Unknown) => {
                (connection::server(standing).http2_only(), Some(UNKNOWN_PEER_IDLE.max(time)))
            }
            (Protocol::Any, _) => (connection::server(standing), Some(time * 2)),
        };
        let service = service_fn(|mut request: Request<Incoming>| {
            match &proof {
                Proof::None => {}
                Proof::User(user) => drop(request.extensions_mut().insert(*user)),
                Proof::Nf(identity) => drop(request.extensions_mut().insert(identity.clone())),
            }
            request.extensions_mut().insert(peer);
            self.clone().exchange(activity.begin(), peer, standing, request)
        });
        let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let mut pause = pin!(sleep(Duration::ZERO));
        // A connection that is not polled reads no further requests.
        let mut paced = poll_fn(|context| {
            if let Some(until) = self.refusals.paused_until(peer, Instant::now()) {
                pause.as_mut().reset(until);
                ready!(pause.as_mut().poll(context));
            }
            served.as_mut().poll(context)
        });
        let closing_time = tokio::select! {
            // In this order, so that a request that has arrived counts even if the time has passed.
            biased;
            ended = &mut paced => return log(ended),
            _ = drain.wait_for(|drain| *drain) => time * 2,
            () = close_request.notified() => YIELD_TIME,
            // What was taken is still answered; the client makes another connection with what it has then.
            () = ends(trust.as_ref()) => time * 2,
            () = activity.ceases(time.min(FIRST_REQUEST), idle) => CLOSING_TIME,
        };
        served.as_mut().graceful_shutdown();
        tokio::select! {
            ended = timeout(closing_time, served) => {
                if let Ok(ended) = ended {
                    log(ended);
                }
            }
            // A client that reads its connection only with its next request (libcurl's multi interface) does not see GOAWAY.
            () = activity.rests(CLOSING_TIME) => {}
        }
    }

    async fn exchange(
        self: Rc<Self>,
        open: Open,
        peer: Peer,
        standing: Standing,
        request: Request<Incoming>,
    ) -> Result<Response<HeldBody>, Infallible> {
        let late =
            || problem(StatusCode::GATEWAY_TIMEOUT, "TIMED_OUT_REQUEST", "there was no answer in time");
        // The response is part of the exchange until the client has taken it.
        let (Ok(permit), Ok(mut room)) =
            (self.exchanges.take(peer, standing, 1), self.octets.take(peer, standing, 0))
        else {
            return Ok(congested().map(|body| HeldBody::free(body, open)));
        };
        // A request that runs to its end holds it, too.
        let permit = Rc::new(permit);
        let answer = timeout(self.server.limits.time, self.answer(peer, standing, &permit, request)).await;
        let answer = answer.unwrap_or_else(|_| late());
        self.refusals.count(peer, answer.status(), Instant::now());
        Ok(match room.grow(answer.body().len()) {
            Ok(()) => answer.map(|body| HeldBody {
                body: Full::new(body),
                _open: open,
                _taken: Some((permit, room)),
            }),
            Err(_) => congested().map(|body| HeldBody::free(body, open)),
        })
    }

    /// Refuses by the head alone if possible: bodies of unauthorized requests use no memory.
    async fn answer(
        self: &Rc<Self>,
        peer: Peer,
        standing: Standing,
        permit: &Rc<Taken>,
        request: Request<Incoming>,
    ) -> Response<Bytes> {
        let (head, body) = request.into_parts();
        let limits = self.server.limits;
        let limit = match self.server.handler.admit(&head) {
            Ok(limit) => limit.min(limits.body),
            Err(refusal) => return refusal,
        };
        let Ok(mut room) = self.octets.take(peer, standing, 0) else { return congested() };
        match connection::whole_in_time(body, limit, limits.body_time, &mut room).await {
            Ok(body) if self.server.handler.runs_to_end(&head) => {
                self.run_to_end(Request::from_parts(head, body), (permit.clone(), room)).await
            }
            Ok(body) => self.server.handler.handle(Request::from_parts(head, body)).await,
            Err(error @ BodyError::TooLarge(_)) => {
                problem(StatusCode::PAYLOAD_TOO_LARGE, "", &error.to_string())
            }
            Err(error @ BodyError::Cut) => {
                problem(StatusCode::BAD_REQUEST, "INVALID_MSG_FORMAT", &error.to_string())
            }
            Err(error @ BodyError::Slow(_)) => problem(StatusCode::REQUEST_TIMEOUT, "", &error.to_string()),
            Err(BodyError::NoRoom) => congested(),
        }
    }
}

impl<H: Handler> Serving<H> {
    /// Handles a request in a task of its own, which holds the request's part of the peer's shares.
    async fn run_to_end(
        self: &Rc<Self>,
        request: Request<Bytes>,
        taken: (Rc<Taken>, Taken),
    ) -> Response<Bytes> {
        let serving = self.clone();
        self.unfinished.set(self.unfinished.get() + 1);
        let work = spawn_local(async move {
            let unfinished = Unfinished(serving.clone());
            let response = serving.server.handler.handle(request).await;
            drop((unfinished, taken));
            response
        });
        work.await.unwrap_or_else(|error| {
            tracing::error!("a request failed: {error}; this is a bug in Pith, please report it");
            problem(StatusCode::INTERNAL_SERVER_ERROR, "SYSTEM_FAILURE", "the request failed")
        })
    }
}

/// A response that holds its part of the peer's shares until the client has taken it: a client with a flow control window
/// of zero would otherwise have any number of responses kept.
struct HeldBody {
    body: Full<Bytes>,
    /// A connection that is to be closed is not closed before.
    _open: Open,
    _taken: Option<(Rc<Taken>, Taken)>,
}

impl HeldBody {
    /// A body that takes part in no share, of a few octets.
    fn free(body: Bytes, open: Open) -> Self {
        Self { body: Full::new(body), _open: open, _taken: None }
    }
}

impl Body for HeldBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Counts an open request that runs to its end.
struct Unfinished<H>(Rc<Serving<H>>);

impl<H> Drop for Unfinished<H> {
    fn drop(&mut self) {
        self.0.unfinished.set(self.0.unfinished.get() - 1);
        self.0.ended.notify_one();
    }
}

/// The peer whose shares a connection uses: the process of an NF by the first instance id of its certificate, else the
/// host.
fn peer_of(identity: &ClientIdentity, from: IpAddr) -> Peer {
    let first = identity.instances.iter().min();
    first.map_or_else(|| Peer::at(from), |instance| Peer::Nf(*instance))
}

/// Waits until the certificate on which a connection relies is no longer valid.
async fn ends(trust: Option<&Trust>) {
    match trust {
        Some(trust) => trust.ends().await,
        None => std::future::pending().await,
    }
}

/// There are too many open exchanges (TS 29.500 table 5.2.7.2-1).
fn congested() -> Response<Bytes> {
    let mut response =
        problem(StatusCode::SERVICE_UNAVAILABLE, "NF_CONGESTION", "too many requests are open");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn log<E: std::fmt::Display>(ended: Result<(), E>) {
    if let Err(error) = ended {
        tracing::debug!("an HTTP connection ended: {error}");
    }
}
