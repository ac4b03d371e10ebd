//! What server and client settle the same way for each connection.

use super::local::Local;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2 as client;
use hyper_util::rt::TokioTimer;
use hyper_util::server::conn::auto;
use std::time::Duration;

/// Window of a stream and of a connection, in octets: no body waits for a WINDOW_UPDATE.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 1 << 24;
/// Streams that a peer may have open on one connection.
const STREAMS: u32 = 1024;
/// All header fields of a message together, in octets.
const HEADERS: u32 = 16 << 10;
/// Time between pings on a connection, and for their answers: finds a peer that went silent.
const PING: Duration = Duration::from_secs(10);
const PONG: Duration = Duration::from_secs(5);
/// Time that a client of HTTP/1.1 has for the header of a request.
const HEADER_TIME: Duration = Duration::from_secs(10);

/// How much of a peer's requests is taken.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time for an exchange, from the request's first octet to the answer.
    pub time: Duration,
    /// Largest body, in octets.
    pub body: usize,
    /// Exchanges open at once, from the request's head on.
    pub exchanges: usize,
}

/// How a server speaks.
pub(super) fn server() -> auto::Builder<Local> {
    let mut builder = auto::Builder::new(Local);
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIME).max_buf_size(HEADERS as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADERS)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG);
    builder
}

/// How a client speaks.
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

/// Why there is no body.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// It is larger than the limit.
    #[error("the body is larger than {0} octets")]
    TooLarge(usize),
    /// The connection ended before the body.
    #[error("the connection ended within the body")]
    Cut,
}

/// The whole body, if it is no larger than the limit.
pub(super) async fn whole(body: Incoming, limit: usize) -> Result<Bytes, BodyError> {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(BodyError::TooLarge(limit)),
        Err(_) => Err(BodyError::Cut),
    }
}
