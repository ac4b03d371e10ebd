//! A server: accepts connections, reads requests whole, hands them to a handler.

use super::activity::{Activity, Open};
use super::connection::{self, BodyError, Limits};
use super::share::{Exhausted, Peer, Share, Standing, Taken};
use super::{PeerIdentity, Tls, problem};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::UCred;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Notify, watch};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, timeout};

/// Connections that a server has at once.
const CONNECTIONS: usize = 1024;
/// Time before the next try to accept after one failed: for want of file descriptors, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time between two words to the operator that all connections are taken.
const WARNING_PAUSE: Duration = Duration::from_secs(60);
/// Time from a connection to its first request; less where an exchange has less.
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// Time that a client has to go once it is told that its connection is of no use.
const PARTING: Duration = Duration::from_secs(1);

/// Time without an exchange after which a stranger's connection gives way to another, and that it then has to go.
const YIELDING: Duration = Duration::from_millis(100);
/// Time without an exchange after which a stranger's connection is closed although nobody needs its place.
const STRANGER_IDLE: Duration = Duration::from_secs(60);

/// Why cleartext is refused.
const NOT_NAMED: &str = "cleartext is for the NFs of 'sbi.external' with 'security: none' only; 'callers' there names addresses that they call from";

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

/// What is between a server and its TCP sockets.
#[derive(Clone)]
pub enum Transport {
    /// Nothing.
    Plain,
    /// TLS, with the client's certificate.
    Tls(Rc<Tls>),
    /// Nothing, for the NFs of other vendors that the configuration names.
    PlainForForeign(Rc<Tls>),
}

/// Who a client proved to be; the extensions of its requests say so.
#[derive(Clone)]
enum Proof {
    /// Nobody.
    None,
    /// A user of this machine.
    User(UCred),
    /// An NF.
    Certificate(Arc<PeerIdentity>),
}

/// Becomes true when servers are to finish.
pub type Drain = watch::Receiver<bool>;

/// Tells which peers are known: those that the configuration names.
pub type Known = Rc<dyn Fn(IpAddr) -> bool>;

/// Where connections come in.
pub enum Listener {
    /// From hosts.
    Tcp(TcpListener),
    /// From users of this machine.
    Unix(UnixListener),
}

/// A connection that came in.
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
    /// What answers.
    pub handler: H,
    /// What it speaks.
    pub protocol: Protocol,
    /// How much it takes.
    pub limits: Limits,
    /// For whom half of it is kept.
    pub known: Known,
}

impl<H: Handler> Server<H> {
    /// Serves until `drain`, then until every connection has answered what it took.
    pub async fn run(self, listener: Listener, drain: Drain) {
        self.run_over(Transport::Plain, listener, drain).await;
    }

    /// The same over TLS, or for some clients only.
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
        while !serving.seats.borrow().is_empty() {
            serving.ended.notified().await;
        }
    }
}

/// The seat of a connection.
struct Seat {
    peer: Peer,
    standing: Standing,
    activity: Rc<Activity>,
    /// Asks the connection to end, for another needs its place.
    give_way: Rc<Notify>,
    /// `None` once it was given to another.
    place: Option<Taken>,
}

/// A server at work.
struct Serving<H> {
    server: Server<H>,
    transport: Transport,
    places: Rc<Share>,
    exchanges: Rc<Share>,
    octets: Rc<Share>,
    seats: RefCell<BTreeMap<u64, Seat>>,
    numbered: Cell<u64>,
    /// A connection ended.
    ended: Notify,
    /// When the operator was last told that there was no place.
    warned: Cell<Option<Instant>>,
}

impl<H: Handler> Serving<H> {
    fn new(server: Server<H>, transport: Transport) -> Rc<Self> {
        Rc::new(Self {
            places: Share::of(CONNECTIONS),
            exchanges: Share::of(server.limits.exchanges),
            octets: Share::of(server.limits.buffered),
            server,
            transport,
            seats: RefCell::default(),
            numbered: Cell::new(0),
            ended: Notify::new(),
            warned: Cell::new(None),
        })
    }

    fn accepted(self: &Rc<Self>, accepted: Accepted, drain: &Drain, listener: &Listener) {
        let (peer, standing) = match &accepted {
            // Before its handshake of TLS a peer proved nothing, whatever its address.
            Accepted::Tcp(_, from) if matches!(self.transport, Transport::Tls(_)) => {
                (Peer::at(*from), Standing::Stranger)
            }
            Accepted::Tcp(_, from) => (Peer::at(*from), self.standing_of(*from)),
            Accepted::Unix(_, credentials) => (Peer::User(credentials.uid()), Standing::Known),
        };
        let Some(place) = self.place(peer, standing) else { return self.warn(peer, listener) };
        let seat =
            Seat { peer, standing, activity: Activity::new(), give_way: Rc::default(), place: Some(place) };
        let number = self.seat(seat);
        let (serving, drain) = (self.clone(), drain.clone());
        spawn_local(async move {
            match accepted {
                Accepted::Tcp(stream, from) => {
                    // Without it answers are late, not wrong.
                    let _ = stream.set_nodelay(true);
                    serving.clone().secure(number, stream, from, drain).await;
                }
                Accepted::Unix(stream, credentials) => {
                    serving.clone().connection(number, stream, Proof::User(credentials), drain).await;
                }
            }
            serving.seats.borrow_mut().remove(&number);
            serving.ended.notify_one();
        });
    }

    /// A place for a connection of that peer, if need be that of a stranger whose connection is idle: the peer's
    /// own where its share is used up.
    fn place(&self, peer: Peer, standing: Standing) -> Option<Taken> {
        let exhausted = match self.places.take(peer, standing, 1) {
            Ok(place) => return Some(place),
            Err(exhausted) => exhausted,
        };
        let mut seats = self.seats.borrow_mut();
        let idle = seats.values_mut().filter(|seat| {
            let stranger = seat.standing == Standing::Stranger && seat.place.is_some();
            stranger && (exhausted == Exhausted::All || seat.peer == peer)
        });
        let longest = idle.max_by_key(|seat| seat.activity.silence())?;
        if longest.activity.silence() < YIELDING {
            return None;
        }
        longest.give_way.notify_one();
        drop(longest.place.take());
        self.places.take(peer, standing, 1).ok()
    }

    fn warn(&self, peer: Peer, listener: &Listener) {
        if self.warned.get().is_none_or(|at| at.elapsed() > WARNING_PAUSE) {
            tracing::warn!("{}: no place for another connection of {peer}: refused", listener.name());
            self.warned.set(Some(Instant::now()));
        }
    }

    fn seat(&self, seat: Seat) -> u64 {
        let number = self.numbered.get();
        self.numbered.set(number + 1);
        self.seats.borrow_mut().insert(number, seat);
        number
    }

    fn standing_of(&self, address: IpAddr) -> Standing {
        if (self.server.known)(address) { Standing::Known } else { Standing::Stranger }
    }

    /// The peer turned out to be a known one: its connection takes no more of what strangers share.
    fn promote(&self, number: u64) {
        let mut seats = self.seats.borrow_mut();
        let Some(seat) = seats.get_mut(&number) else { return };
        seat.standing = Standing::Known;
        if seat.place.is_some()
            && let Ok(place) = self.places.take(seat.peer, Standing::Known, 1)
        {
            seat.place = Some(place);
        }
    }

    /// Has the client prove who it is, as the transport wants.
    async fn secure(self: Rc<Self>, number: u64, stream: TcpStream, from: IpAddr, mut drain: Drain) {
        let tls = match &self.transport {
            Transport::Plain => return self.connection(number, stream, Proof::None, drain).await,
            Transport::PlainForForeign(tls) if tls.takes_cleartext(from) => {
                return self.connection(number, stream, Proof::None, drain).await;
            }
            Transport::PlainForForeign(tls) => return tls.warn(from, NOT_NAMED),
            Transport::Tls(tls) => tls.clone(),
        };
        let give_way = self.seats.borrow().get(&number).map(|seat| seat.give_way.clone());
        let Some(give_way) = give_way else { return };
        let patience = self.server.limits.time.min(FIRST_REQUEST);
        let accepted = tokio::select! {
            accepted = timeout(patience, tls.accept(stream, from)) => accepted,
            _ = drain.wait_for(|drain| *drain) => return,
            () = give_way.notified() => return,
        };
        match accepted {
            Ok(Ok((stream, Some(identity)))) => {
                // Whoever has a certificate of the CA is known, wherever it is.
                self.promote(number);
                self.connection(number, stream, Proof::Certificate(Arc::new(identity)), drain).await;
            }
            Ok(Ok((stream, None))) => {
                if self.standing_of(from) == Standing::Known {
                    self.promote(number);
                }
                self.connection(number, stream, Proof::None, drain).await;
            }
            Ok(Err(why)) => tls.warn(from, &why),
            Err(_) => tls.warn(from, "it did not finish the handshake of TLS in time"),
        }
    }

    async fn connection(
        self: Rc<Self>,
        number: u64,
        stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
        proof: Proof,
        mut drain: Drain,
    ) {
        let seat = self
            .seats
            .borrow()
            .get(&number)
            .map(|seat| (seat.peer, seat.standing, seat.activity.clone(), seat.give_way.clone()));
        let Some((peer, standing, activity, give_way)) = seat else { return };
        let Limits { time, .. } = self.server.limits;
        // NFs keep connections that they do not need just now; pings tell whether they are there.
        let (builder, idle) = match (self.server.protocol, standing) {
            (Protocol::Http2, Standing::Known) => (connection::server(standing).http2_only(), None),
            (Protocol::Http2, Standing::Stranger) => {
                (connection::server(standing).http2_only(), Some(STRANGER_IDLE.max(time)))
            }
            (Protocol::Any, _) => (connection::server(standing), Some(time * 2)),
        };
        let service = service_fn(|mut request: Request<Incoming>| {
            match &proof {
                Proof::None => {}
                Proof::User(user) => drop(request.extensions_mut().insert(*user)),
                Proof::Certificate(identity) => drop(request.extensions_mut().insert(identity.clone())),
            }
            request.extensions_mut().insert(peer);
            self.clone().exchange(activity.begin(), peer, standing, request)
        });
        let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let patience = tokio::select! {
            // In this order: a request that is there counts, even where its time is over.
            biased;
            ended = served.as_mut() => return log(ended),
            _ = drain.wait_for(|drain| *drain) => time * 2,
            () = give_way.notified() => YIELDING,
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
        peer: Peer,
        standing: Standing,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let late =
            || problem(StatusCode::GATEWAY_TIMEOUT, "TIMED_OUT_REQUEST", "there was no answer in time");
        let answer = timeout(self.server.limits.time, self.answer(peer, standing, request)).await;
        Ok(answer.unwrap_or_else(|_| late()).map(Full::new))
    }

    /// The head alone decides whether the body is read: bodies of those who may not ask, or who are too
    /// many, take no memory.
    async fn answer(&self, peer: Peer, standing: Standing, request: Request<Incoming>) -> Response<Bytes> {
        let (head, body) = request.into_parts();
        let limits = self.server.limits;
        let limit = match self.server.handler.admit(&head) {
            Ok(limit) => limit.min(limits.body),
            Err(refusal) => return refusal,
        };
        let Ok(_permit) = self.exchanges.take(peer, standing, 1) else { return congested() };
        let Ok(mut room) = self.octets.take(peer, standing, 0) else { return congested() };
        match connection::whole_in_time(body, limit, limits.body_time, &mut room).await {
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

/// Too many exchanges are open (TS 29.500 table 5.2.7.2-1).
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
