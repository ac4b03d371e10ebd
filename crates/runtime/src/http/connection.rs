//! Settings of HTTP connections, for server and client.

use super::local::Local;
use super::share::{Standing, Taken};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2 as client;
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto;
use std::time::Duration;
use tokio::time::timeout;

/// Flow control windows of a stream and of a connection, in octets: large enough that no body of a known peer
/// waits for a WINDOW_UPDATE.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 1 << 24;
/// Flow control windows for unknown peers: they bound the octets that h2 may have to buffer for a connection.
const UNKNOWN_PEER_STREAM_WINDOW: u32 = 64 << 10;
const UNKNOWN_PEER_CONNECTION_WINDOW: u32 = 1 << 20;
/// Streams that a known peer, or an unknown one, may have open on one connection.
const STREAMS: u32 = 1024;
const UNKNOWN_PEER_STREAMS: u32 = 128;
/// Size of all header fields of a message, in octets. h2 adds 32 for each field (RFC 9113 6.5.2), so that
/// there are at most 512 fields, and derives the number of CONTINUATION frames that it accepts.
const HEADERS: u32 = 16 << 10;
/// Header fields of an HTTP/1.1 request.
const FIELDS: usize = 64;
/// Streams that a peer opened and reset before the server handled them (CVE-2023-44487), and streams that the
/// server reset because of the peer's errors: above either limit, h2 closes the connection with
/// ENHANCE_YOUR_CALM. A request refused before its body was read counts as such an error, so known peers have
/// a high limit for times of overload.
const PENDING_RESETS: usize = 20;
const ERROR_RESETS: usize = 1024;
const UNKNOWN_PEER_ERROR_RESETS: usize = 64;
/// Octets of responses queued on a stream for a peer that does not read.
const SEND_BUFFER: usize = 256 << 10;
/// Interval of pings on a connection, and time for their answers, after which the peer counts as dead.
const PING: Duration = Duration::from_secs(10);
const PONG: Duration = Duration::from_secs(5);
/// Time within which an HTTP/1.1 client must send the header of a request.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// Limits of requests.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time for an exchange, from the request's first octet to the response.
    pub time: Duration,
    /// Time for the body of a request: shorter than for the exchange, so that slow senders release their
    /// resources soon.
    pub body_time: Duration,
    /// Largest body, in octets.
    pub body: usize,
    /// Octets of the bodies of all open exchanges.
    pub buffered: usize,
    /// Exchanges open at once; an exchange begins with the request's head.
    pub exchanges: usize,
}

/// Builder of server connections.
pub(super) fn server(standing: Standing) -> auto::Builder<Local> {
    let (stream, connection, streams, resets) = match standing {
        Standing::Known => (STREAM_WINDOW, CONNECTION_WINDOW, STREAMS, ERROR_RESETS),
        Standing::Unknown => (
            UNKNOWN_PEER_STREAM_WINDOW,
            UNKNOWN_PEER_CONNECTION_WINDOW,
            UNKNOWN_PEER_STREAMS,
            UNKNOWN_PEER_ERROR_RESETS,
        ),
    };
    let mut builder = auto::Builder::new(Local);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(HEADERS as usize)
        .max_headers(FIELDS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(stream)
        .initial_connection_window_size(connection)
        .max_concurrent_streams(streams)
        .max_header_list_size(HEADERS)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(resets)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG);
    builder
}

/// Builder of client connections.
pub(super) fn client() -> client::Builder<Local> {
    let mut builder = client::Builder::new(Local);
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEADERS)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG)
        .keep_alive_while_idle(true);
    builder
}

/// The reason why a body was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// The body is larger than the limit.
    #[error("the body is larger than {0} octets")]
    TooLarge(usize),
    /// The connection ended before the end of the body.
    #[error("the connection ended within the body")]
    Cut,
    /// The body did not arrive in time.
    #[error("the body was not complete within {} ms", .0.as_millis())]
    Slow(Duration),
    /// The bodies of this peer, or of all peers, use too much memory.
    #[error("too many octets of bodies are buffered")]
    NoRoom,
}

/// The complete body, if it is no larger than the limit.
pub(super) async fn read_body(body: Incoming, limit: usize) -> Result<Bytes, BodyError> {
    collect(body, limit, |_| Ok(())).await
}

/// The complete body of a request, if it arrives in time and within the memory limits.
pub(super) async fn whole_in_time(
    body: Incoming,
    limit: usize,
    time: Duration,
    room: &mut Taken,
) -> Result<Bytes, BodyError> {
    let take = |octets: usize| room.grow(octets).map_err(|_| BodyError::NoRoom);
    timeout(time, collect(body, limit, take)).await.unwrap_or(Err(BodyError::Slow(time)))
}

async fn collect(
    mut body: Incoming,
    limit: usize,
    mut take: impl FnMut(usize) -> Result<(), BodyError>,
) -> Result<Bytes, BodyError> {
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Cut)?.into_data() else { continue };
        if first.len() + rest.len() + data.len() > limit {
            return Err(BodyError::TooLarge(limit));
        }
        take(data.len())?;
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    Ok([first, rest.freeze()].concat().into())
}
