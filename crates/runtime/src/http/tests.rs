//! Tests of client and server against each other and against misbehaving peers.

use super::peers::{AGE, LIMIT, Peers};
use super::*;
use bytes::Bytes;
use hyper::{Request, Response, StatusCode};
use std::cell::Cell;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{Instant, sleep, timeout};

const LIMITS: Limits = Limits {
    time: Duration::from_millis(300),
    body_time: Duration::from_millis(300),
    body: 1 << 20,
    buffered: 64 << 20,
    exchanges: 1000,
};

/// Responds with the path and the body; to `/slow` after 100 ms, to `/never` never, to `/refused` with 403.
struct Echo {
    /// Requests dropped before the response.
    dropped: Rc<Cell<u32>>,
}

struct Waiting<'a>(&'a Cell<u32>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

impl Handler for Echo {
    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        let waiting = Waiting(&self.dropped);
        match request.uri().path() {
            "/slow" => sleep(Duration::from_millis(100)).await,
            "/never" => std::future::pending().await,
            "/refused" => {
                std::mem::forget(waiting);
                return problem(StatusCode::FORBIDDEN, "", "");
            }
            _ => {}
        }
        std::mem::forget(waiting);
        let body = [request.uri().path().as_bytes(), request.body()].concat();
        Response::new(body.into())
    }
}

struct Running {
    address: SocketAddr,
    drain: watch::Sender<bool>,
    ended: tokio::task::JoinHandle<()>,
    dropped: Rc<Cell<u32>>,
}

async fn serve_on(address: &str, protocol: Protocol) -> Running {
    serve_within(address, protocol, LIMITS).await
}

async fn serve_within(address: &str, protocol: Protocol, limits: Limits) -> Running {
    serve_to(address, protocol, limits, Rc::new(|_| true)).await
}

async fn serve_to(address: &str, protocol: Protocol, limits: Limits, known: Known) -> Running {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (drain, draining) = watch::channel(false);
    let dropped = Rc::new(Cell::new(0));
    let server = Server { handler: Echo { dropped: dropped.clone() }, protocol, limits, known };
    let ended = spawn_local(server.run(Listener::Tcp(listener), draining));
    Running { address, drain, ended, dropped }
}

async fn serve() -> Running {
    serve_on("127.0.0.1:0", Protocol::Http2).await
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(LocalSet::new().run_until(test));
}

fn get(address: SocketAddr, path: &str) -> Request<Bytes> {
    Request::get(format!("http://{address}{path}")).body(Bytes::new()).unwrap()
}

/// A client that repeats refused requests is read at the rate of `refusals`, and each request is answered.
#[test]
fn refused_requests_beyond_the_rate_are_answered_later() {
    run(async {
        let patient = Limits { time: Duration::from_secs(10), ..LIMITS };
        let server = serve_within("127.0.0.1:0", Protocol::Http2, patient).await;
        let client = Rc::new(Client::new(patient));
        let began = Instant::now();
        for _ in 0..10 {
            let calls: Vec<_> = (0..200)
                .map(|_| {
                    let (client, request) = (client.clone(), get(server.address, "/refused"));
                    spawn_local(async move { client.call(request).await.unwrap().status() })
                })
                .collect();
            for call in calls {
                assert_eq!(call.await.unwrap(), StatusCode::FORBIDDEN);
            }
        }
        // The last 200 requests are not read before 1,800 refusals less the burst are within the rate.
        assert!(began.elapsed() > Duration::from_millis(850), "{:?}", began.elapsed());
        let answer = client.call(get(server.address, "/allowed")).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
    });
}

#[test]
fn many_calls_share_one_connection() {
    run(async {
        let patient = Limits { time: Duration::from_secs(10), ..LIMITS };
        let server = serve_within("127.0.0.1:0", Protocol::Http2, patient).await;
        let client = Rc::new(Client::new(patient));
        let calls: Vec<_> = (0..200)
            .map(|at| {
                let (client, address) = (client.clone(), server.address);
                spawn_local(async move {
                    let body = Bytes::from(vec![b'x'; at * 100]);
                    let request = Request::post(format!("http://{address}/{at}")).body(body.clone()).unwrap();
                    let answer = client.call(request).await.unwrap();
                    assert_eq!(answer.body(), &[format!("/{at}").as_bytes(), &body].concat());
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
    });
}

#[test]
fn an_unanswered_call_times_out_on_both_sides() {
    run(async {
        let server = serve().await;
        let begun = Instant::now();
        let patient = Limits { time: Duration::from_secs(5), ..LIMITS };
        let answer = Client::new(patient).call(get(server.address, "/never")).await.unwrap();
        assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);
        let hasty = Limits { time: Duration::from_millis(50), ..LIMITS };
        let error = Client::new(hasty).call(get(server.address, "/never")).await.unwrap_err();
        assert!(matches!(error, CallError::Late(_)));
        assert!(begun.elapsed() < Duration::from_secs(1));
        sleep(Duration::from_millis(50)).await;
        assert_eq!(server.dropped.get(), 2, "the handler of an abandoned call is dropped");
    });
}

#[test]
fn a_body_beyond_the_limit_gets_413() {
    run(async {
        let server = serve().await;
        let large = Bytes::from(vec![0; LIMITS.body + 1]);
        let request = Request::post(format!("http://{}/", server.address)).body(large).unwrap();
        let answer = Client::new(LIMITS).call(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
    });
}

#[test]
fn a_response_beyond_the_limit_fails_only_its_call() {
    run(async {
        let server = serve().await;
        let client = Client::new(Limits { body: 10, ..LIMITS });
        let error = client.call(get(server.address, "/more-than-ten-octets")).await.unwrap_err();
        assert!(error.to_string().contains("larger than 10 octets"), "{error}");
        assert_eq!(client.call(get(server.address, "/short")).await.unwrap().body(), "/short");
    });
}

#[test]
fn a_client_reconnects_to_a_peer_that_was_down() {
    run(async {
        let first = serve().await;
        let client = Client::new(Limits { time: Duration::from_secs(10), ..LIMITS });
        assert!(client.call(get(first.address, "/")).await.is_ok());
        first.drain.send(true).unwrap();
        first.ended.await.unwrap();
        let error = client.call(get(first.address, "/")).await.unwrap_err();
        assert!(matches!(error, CallError::Unreachable(..)), "{error}");
        let again = serve_on(&first.address.to_string(), Protocol::Http2).await;
        assert_eq!(client.call(get(again.address, "/back")).await.unwrap().body(), "/back");
    });
}

/// A process that was killed is started again while calls to it wait.
#[test]
fn a_peer_that_is_started_again_gets_the_calls_of_the_meantime() {
    run(async {
        let first = serve().await;
        let client = Client::new(Limits { time: Duration::from_secs(10), ..LIMITS });
        client.call(get(first.address, "/")).await.unwrap();
        first.drain.send(true).unwrap();
        first.ended.await.unwrap();
        let waiting = async {
            let post =
                Request::post(format!("http://{}/meantime", first.address)).body(Bytes::new()).unwrap();
            client.call(post).await
        };
        let again = async {
            sleep(Duration::from_millis(200)).await;
            serve_on(&first.address.to_string(), Protocol::Http2).await
        };
        let (answer, _again) = tokio::join!(waiting, again);
        assert_eq!(answer.unwrap().body(), "/meantime");
    });
}

#[test]
fn the_end_of_a_connection_is_reported() {
    run(async {
        let server = serve().await;
        let lost = Rc::new(std::cell::RefCell::new(Vec::new()));
        let seen = lost.clone();
        let client =
            Client::new(LIMITS).on_loss(Rc::new(move |peer| seen.borrow_mut().push(peer.to_owned())));
        client.call(get(server.address, "/a")).await.unwrap();
        assert!(lost.borrow().is_empty());
        server.drain.send_replace(true);
        server.ended.await.unwrap();
        sleep(Duration::from_millis(50)).await;
        assert_eq!(*lost.borrow(), [server.address.to_string()]);
    });
}

#[test]
fn draining_completes_open_requests_and_refuses_new_ones() {
    run(async {
        let server = serve().await;
        let client = Rc::new(Client::new(LIMITS));
        let call = spawn_local({
            let (client, address) = (client.clone(), server.address);
            async move { client.call(get(address, "/slow")).await }
        });
        sleep(Duration::from_millis(30)).await;
        server.drain.send(true).unwrap();
        assert_eq!(call.await.unwrap().unwrap().body(), "/slow");
        server.ended.await.unwrap();
        assert!(client.call(get(server.address, "/")).await.is_err());
    });
}

/// Clients of other NFs (libcurl's) read an idle connection only with their next request: they do not acknowledge the PING
/// that follows GOAWAY (RFC 9113 6.8).
#[test]
fn draining_does_not_wait_for_a_client_that_does_not_read() {
    run(async {
        let patient = Limits { time: Duration::from_secs(20), ..LIMITS };
        let server = serve_within("127.0.0.1:0", Protocol::Http2, patient).await;
        let mut idle = TcpStream::connect(server.address).await.unwrap();
        // The preface with empty SETTINGS, their acknowledgement, and one GET (RFC 7541 B: `:method: GET`, `:scheme: http`, `:path: /`).
        idle.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0")
            .await
            .unwrap();
        idle.write_all(b"\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x41\x01x").await.unwrap();
        let busy = spawn_local({
            let address = server.address;
            async move { Client::new(LIMITS).call(get(address, "/slow")).await }
        });
        sleep(Duration::from_millis(50)).await;
        server.drain.send(true).unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(10), server.ended).await;
        ended.expect("the server waits for a client that does not read").unwrap();
        assert_eq!(busy.await.unwrap().unwrap().body(), "/slow", "open requests are answered");
    });
}

#[test]
fn data_that_is_not_http_2_is_survived() {
    run(async {
        let server = serve().await;
        for garbage in [
            b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(),
            vec![0xff; 4096],
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(),
            Vec::new(),
        ] {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            stream.write_all(&garbage).await.unwrap();
            stream.shutdown().await.unwrap();
            // Whatever the server sends, it closes the connection.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
        assert!(Client::new(LIMITS).call(get(server.address, "/")).await.is_ok());
    });
}

#[test]
fn http_1_1_works_if_the_protocol_permits_it() {
    run(async {
        let server = serve_on("127.0.0.1:0", Protocol::Any).await;
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("/hello"), "{answer}");
        assert!(Client::new(LIMITS).call(get(server.address, "/")).await.is_ok(), "HTTP/2 too");
    });
}

/// Sends octets and reads until the server closes the connection, which must happen within seconds.
async fn response_until_close(address: SocketAddr, sent: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(sent).await.unwrap();
    let mut answer = Vec::new();
    // A reset counts as closing too.
    let closed = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
    assert!(closed.is_ok(), "the server holds the connection");
    answer
}

#[test]
fn a_connection_without_requests_is_closed() {
    /// The HTTP/2 preface and empty SETTINGS: a client that sends no request.
    const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    run(async {
        for protocol in [Protocol::Http2, Protocol::Any] {
            let server = serve_on("127.0.0.1:0", protocol).await;
            response_until_close(server.address, b"").await;
            response_until_close(server.address, b"PRI * HT").await;
            response_until_close(server.address, HELLO).await;
        }
    });
}

#[test]
fn an_idle_connection_is_closed() {
    run(async {
        let server = serve_on("127.0.0.1:0", Protocol::Any).await;
        let answer = response_until_close(server.address, b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(answer.starts_with(b"HTTP/1.1 200") && answer.ends_with(b"/slow"));
    });
}

#[test]
fn an_exchange_counts_from_its_head() {
    run(async {
        let limits = Limits { exchanges: 2, time: Duration::from_secs(5), ..LIMITS };
        let server = serve_within("127.0.0.1:0", Protocol::Any, limits).await;
        let upload = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n";
        let mut uploads = Vec::new();
        for _ in 0..limits.exchanges {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            stream.write_all(upload).await.unwrap();
            uploads.push(stream);
        }
        sleep(Duration::from_millis(200)).await;
        let refused = Client::new(LIMITS).call(get(server.address, "/")).await.unwrap();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()["retry-after"], "1");
        uploads.clear();
        sleep(Duration::from_millis(200)).await;
        assert!(Client::new(LIMITS).call(get(server.address, "/")).await.unwrap().status().is_success());
    });
}

/// Connects from a given loopback address.
async fn connect_from(source: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((source, 0))).unwrap();
    socket.connect(to).await.unwrap()
}

/// Only 127.0.0.1 is known.
fn only_localhost() -> Known {
    Rc::new(|address| address == std::net::IpAddr::from([127, 0, 0, 1]))
}

#[test]
fn slow_bodies_of_strangers_leave_capacity_for_known_peers() {
    run(async {
        let limits = Limits {
            exchanges: 16,
            time: Duration::from_secs(5),
            body_time: Duration::from_secs(1),
            ..LIMITS
        };
        let server = serve_to("127.0.0.1:0", Protocol::Any, limits, only_localhost()).await;
        let mut slow = Vec::new();
        for peer in 2..7 {
            for _ in 0..20 {
                let mut stream = connect_from([127, 0, 0, peer], server.address).await;
                stream.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n").await.unwrap();
                slow.push(stream);
            }
        }
        sleep(Duration::from_millis(100)).await;
        let client = Client::new(limits);
        assert!(client.call(get(server.address, "/")).await.unwrap().status().is_success());
        let mut answer = [0; 12];
        timeout(Duration::from_secs(3), slow[0].read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(&answer, b"HTTP/1.1 408");
    });
}

#[test]
fn idle_connections_of_strangers_are_replaced() {
    run(async {
        let limits = Limits { time: Duration::from_secs(5), ..LIMITS };
        let server = serve_to("127.0.0.1:0", Protocol::Any, limits, only_localhost()).await;
        let mut strangers = Vec::new();
        for number in 0..600u16 {
            let peer = [127, 0, 1, (number / 60) as u8 + 1];
            strangers.push(connect_from(peer, server.address).await);
        }
        sleep(Duration::from_millis(300)).await;
        let client = Client::new(limits);
        assert!(client.call(get(server.address, "/")).await.unwrap().status().is_success());
        let mut late = connect_from([127, 0, 2, 1], server.address).await;
        late.write_all(b"GET /late HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        late.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("/late"), "a new stranger takes the place of an idle one: {answer}");
    });
}

/// The answer to a request of that peer.
async fn asks_from(source: [u8; 4], to: SocketAddr) -> String {
    let mut stream = connect_from(source, to).await;
    let mut answer = String::new();
    let sent = stream.write_all(b"GET /asked HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    // A server that has no place for the connection resets it.
    let _ = sent.and(stream.read_to_string(&mut answer).await);
    answer
}

#[test]
fn a_known_peer_leaves_exchanges_to_others() {
    run(async {
        let limits = Limits { exchanges: 16, time: Duration::from_secs(5), ..LIMITS };
        let limits = Limits { body_time: Duration::from_secs(5), ..limits };
        let server = serve_within("127.0.0.1:0", Protocol::Any, limits).await;
        let mut slow = Vec::new();
        for _ in 0..20 {
            let mut stream = connect_from([127, 0, 0, 2], server.address).await;
            stream.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n").await.unwrap();
            slow.push(stream);
        }
        sleep(Duration::from_millis(100)).await;
        let answer = asks_from([127, 0, 0, 3], server.address).await;
        assert!(answer.ends_with("/asked"), "{answer}");
    });
}

#[test]
fn a_known_peer_leaves_connections_to_others() {
    run(async {
        let limits = Limits { time: Duration::from_secs(30), ..LIMITS };
        let server = serve_within("127.0.0.1:0", Protocol::Any, limits).await;
        let mut open = Vec::new();
        for _ in 0..1100 {
            let mut stream = connect_from([127, 0, 0, 2], server.address).await;
            // The server may have no place for it.
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
            open.push(stream);
        }
        let answer = asks_from([127, 0, 0, 3], server.address).await;
        assert!(answer.ends_with("/asked"), "{answer}");
        sleep(Duration::from_millis(300)).await;
        let answer = asks_from([127, 0, 0, 2], server.address).await;
        assert!(answer.ends_with("/asked"), "its own idle connection gives way: {answer}");
    });
}

#[test]
fn bodies_of_a_stranger_are_bounded_together() {
    run(async {
        let limits = Limits { buffered: 8 << 10, time: Duration::from_secs(5), ..LIMITS };
        let server = serve_to("127.0.0.1:0", Protocol::Http2, limits, Rc::new(|_| false)).await;
        for (size, status) in [(1000, StatusCode::OK), (1025, StatusCode::SERVICE_UNAVAILABLE)] {
            let uri = format!("http://{}/", server.address);
            let request = Request::post(uri).body(vec![0; size].into()).unwrap();
            assert_eq!(Client::new(limits).call(request).await.unwrap().status(), status);
        }
    });
}

/// An HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Reads frames up to the HEADERS of the client's first request.
async fn first_request(stream: &mut TcpStream) {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.unwrap();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        stream.read_exact(&mut vec![0; length as usize]).await.unwrap();
        if head[3] == 1 {
            return;
        }
    }
}

/// A server that answers the first request on its first connection with these frames, and on the next
/// connection with 204.
async fn refusing(frames: Vec<u8>) -> (SocketAddr, tokio::task::JoinHandle<u32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = spawn_local(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        first.write_all(&frame(4, 0, 0, &[])).await.unwrap();
        first_request(&mut first).await;
        first.write_all(&frames).await.unwrap();
        let next = timeout(Duration::from_secs(1), listener.accept()).await;
        let Ok(Ok((mut second, _))) = next else { return 1 };
        second.write_all(&frame(4, 0, 0, &[])).await.unwrap();
        first_request(&mut second).await;
        // HEADERS with END_HEADERS and END_STREAM: ':status: 204' of HPACK's static table.
        second.write_all(&frame(1, 5, 1, &[0x89])).await.unwrap();
        sleep(Duration::from_millis(100)).await;
        2
    });
    (address, serving)
}

/// RFC 9113 6.8, 8.7.
#[test]
fn a_request_not_processed_by_the_peer_is_sent_again() {
    const NO_ERROR: [u8; 4] = [0; 4];
    const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];
    const CANCEL: [u8; 4] = [0, 0, 0, 8];
    let go_away = |last: u32| frame(7, 0, 0, &[last.to_be_bytes(), NO_ERROR].concat());
    run(async {
        let patient = Limits { time: Duration::from_secs(5), ..LIMITS };
        for (frames, sent) in [
            (go_away(0), 2),
            (frame(3, 0, 1, &REFUSED_STREAM), 2),
            (frame(3, 0, 1, &CANCEL), 1),
            ([go_away(1), frame(3, 0, 1, &CANCEL)].concat(), 1),
        ] {
            let (address, serving) = refusing(frames.clone()).await;
            let answer = Client::new(patient).call(get(address, "/")).await;
            assert_eq!(answer.is_ok(), sent == 2, "{frames:?}: {answer:?}");
            assert_eq!(serving.await.unwrap(), sent, "{frames:?}");
        }
    });
}

/// CVE-2023-44487: streams that are opened and reset immediately.
#[test]
fn a_rapid_reset_closes_the_connection() {
    run(async {
        let server = serve_to("127.0.0.1:0", Protocol::Http2, LIMITS, Rc::new(|_| false)).await;
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        sent.extend(frame(4, 0, 0, &[]));
        for number in 0..2000 {
            // ':method: GET', ':scheme: http', ':path: /' of HPACK's static table.
            sent.extend(frame(1, 5, 2 * number + 1, &[0x82, 0x86, 0x84]));
            sent.extend(frame(3, 0, 2 * number + 1, &[0, 0, 0, 8]));
        }
        // The server may close the connection before it has read everything.
        let _ = stream.write_all(&sent).await;
        let mut answer = Vec::new();
        let _ = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
        let calm = answer.windows(9).any(|head| head[3] == 7);
        assert!(calm || answer.is_empty(), "a GOAWAY, or the end");
        assert!(Client::new(LIMITS).call(get(server.address, "/")).await.is_ok());
    });
}

/// Responses that a client does not take (SETTINGS_INITIAL_WINDOW_SIZE of 0) are in its share until it is gone.
#[test]
fn responses_that_are_not_taken_count_as_open() {
    run(async {
        let limits = Limits { time: Duration::from_secs(5), exchanges: 160, ..LIMITS };
        let server = serve_to("127.0.0.1:0", Protocol::Http2, limits, Rc::new(|_| false)).await;
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        sent.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
        // A stranger may have an eighth of the exchanges open.
        for number in 0..20 {
            // ':method: GET', ':scheme: http', ':path: /' of HPACK's static table.
            sent.extend(frame(1, 5, 2 * number + 1, &[0x82, 0x86, 0x84]));
        }
        stream.write_all(&sent).await.unwrap();
        sleep(Duration::from_millis(200)).await;
        let other = async || {
            let answer = Client::new(LIMITS).call(get(server.address, "/other")).await;
            answer.map(|answer| answer.status()).ok()
        };
        assert_eq!(other().await, Some(StatusCode::SERVICE_UNAVAILABLE));
        drop(stream);
        sleep(Duration::from_millis(200)).await;
        assert_eq!(other().await, Some(StatusCode::OK));
    });
}

/// A field that fills the HPACK table and is then referenced by one octet each time, and a header that never
/// ends.
#[test]
fn oversized_headers_are_refused() {
    let hello = || {
        let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        sent.extend(frame(4, 0, 0, &[]));
        sent
    };
    let mut bomb = hello();
    // 'x: ' and 4,000 octets, added to the dynamic table, then that entry 12,000 times: 48 MB.
    let mut block = vec![0x82, 0x86, 0x84, 0x40, 1, b'x', 0x7f, 0xa1, 0x1e];
    block.extend(vec![b'y'; 4000]);
    block.extend(vec![0xbe; 12_000]);
    bomb.extend(frame(1, 5, 1, &block));
    let mut flood = hello();
    flood.extend(frame(1, 1, 1, &[0x82, 0x86, 0x84]));
    (0..2000).for_each(|_| flood.extend(frame(9, 0, 1, &[0x0f, 0x00, 0x00].repeat(400))));
    run(async {
        let server = serve_to("127.0.0.1:0", Protocol::Http2, LIMITS, Rc::new(|_| false)).await;
        for sent in [bomb, flood] {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            // The server may close the connection before it has read everything.
            let _ = stream.write_all(&sent).await;
            let mut answer = Vec::new();
            let ended = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
            let refused = answer.windows(3).any(|octets| octets == b"431") || answer.len() < 4096;
            assert!(ended.is_ok() && refused, "{} octets", answer.len());
        }
        assert!(Client::new(LIMITS).call(get(server.address, "/")).await.is_ok());
    });
}

#[test]
fn unused_peers_are_removed_and_their_number_is_bounded() {
    let (mut peers, begun) = (Peers::<Cell<bool>>::default(), Instant::now());
    let used = peers.get_or_insert("used", begun);
    used.set(true);
    peers.get_or_insert("old", begun).set(true);
    peers.get_or_insert("new", begun + AGE / 2).set(true);
    peers.get_or_insert("another", begun + AGE);
    assert_eq!(peers.len(), 3);
    assert!(!peers.get_or_insert("old", begun + AGE).get(), "the entry is new");
    for number in 0..2 * LIMIT {
        peers
            .get_or_insert(&format!("10.0.0.1:{number}"), begun + AGE + Duration::from_micros(number as u64));
        assert!(peers.len() <= LIMIT);
    }
    assert!(peers.get_or_insert("used", begun + AGE).get());
    assert!(!peers.get_or_insert("new", begun + AGE).get());
}

#[test]
fn exchanges_have_a_limit_and_are_removed_when_dropped() {
    run(async {
        let exchanges = Exchanges::new(2);
        let (first, second) = (exchanges.open().unwrap(), exchanges.open().unwrap());
        assert!(exchanges.open().is_none());
        let gone = first.id;
        drop(first);
        exchanges.answer(gone, 1);
        let third = exchanges.open().unwrap();
        assert_ne!(third.id, gone);
        exchanges.answer(second.id, 2);
        exchanges.answer(third.id, 3);
        assert_eq!((second.answer().await, third.answer().await), (2, 3));
        assert!(exchanges.is_empty());
    });
}
