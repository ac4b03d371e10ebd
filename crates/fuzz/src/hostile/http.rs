//! A client of the SBI or of the operator API: mutated requests of a corpus, with invalid tokens; some
//! connections start a body and never end it.

use crate::pace::Pace;
use anyhow::Result;
use bytes::Bytes;
use hyper::Request;
use pith_fuzz::corpus;
use pith_fuzz::mutate::Mutator;
use pith_fuzz::random::Random;
use pith_fuzz::target::Shape;
use pith_runtime::http::{Client, Limits};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::time::Duration;
use tokio::task::{LocalSet, spawn_local};

/// Connections with an unfinished body.
const SLOW: usize = 64;
/// Maximum number of open exchanges.
const OPEN: usize = 256;

/// Number of answers by status; 0 counts missing answers.
pub type Answers = Rc<RefCell<BTreeMap<u16, u64>>>;

/// How a request is sent: over which connection, and with what in `Authorization`.
#[derive(Clone)]
pub struct Guise {
    pub client: Rc<Client>,
    /// `http` or `https`.
    pub scheme: &'static str,
    pub authorization: Option<Rc<str>>,
}

impl Guise {
    /// A client in cleartext whose token is none.
    pub fn stranger() -> Self {
        let client = Rc::new(Client::new(limits()));
        Self { client, scheme: "http", authorization: Some("Bearer not-a-token".into()) }
    }
}

/// The limits of an attacker's client.
pub fn limits() -> Limits {
    let time = Duration::from_secs(2);
    Limits { time, body_time: time, body: 1 << 20, buffered: 1 << 20, exchanges: OPEN }
}

pub fn attack(target: SocketAddr, corpus: &str, seed: u64, pace: &mut Pace) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answers = Answers::default();
    let slow = slow_bodies(target);
    let stranger = Guise::stranger();
    let send = send(target, corpus, seed, pace, |_| Some(stranger.clone()), answers.clone());
    runtime.block_on(LocalSet::new().run_until(send))?;
    let answers = answers.borrow().clone();
    Ok(json!({ "answers by status": answers, "slow connections": slow.len() }))
}

/// HTTP/1.1 requests whose body is never sent. A server without HTTP/1.1 closes them.
pub fn slow_bodies(target: SocketAddr) -> Vec<TcpStream> {
    let begin = |_| {
        let mut stream = TcpStream::connect_timeout(&target, Duration::from_millis(200)).ok()?;
        let head = "POST /v1/subscribers HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n{";
        stream.write_all(head.as_bytes()).ok()?;
        Some(stream)
    };
    (0..SLOW).filter_map(begin).collect()
}

/// Sends spoiled requests of a corpus until the time is over. `guise` says how each is sent, by its number; `None` counts as
/// sent, as the caller sent something else instead.
pub async fn send(
    target: SocketAddr,
    corpus: &str,
    seed: u64,
    pace: &mut Pace,
    guise: impl Fn(u64) -> Option<Guise>,
    answers: Answers,
) -> Result<()> {
    let seeds = corpus::read(corpus)?;
    let mut random = Random::new(seed);
    let open = Rc::new(());
    let mut number = 0;
    while pace.is_on() {
        let due = pace.due();
        let mut sent = 0;
        while sent < due && Rc::strong_count(&open) < OPEN {
            let text = Mutator::new(Shape::Text, &seeds).make(&mut random);
            sent += 1;
            number += 1;
            let Some(guise) = guise(number) else { continue };
            let Some(request) = request(target, &guise, &text) else { continue };
            let (answers, open) = (answers.clone(), open.clone());
            spawn_local(async move {
                let status = guise.client.call(request).await.map_or(0, |answer| answer.status().as_u16());
                *answers.borrow_mut().entry(status).or_default() += 1;
                drop(open);
            });
        }
        pace.count(sent);
        tokio::time::sleep(pace.tick()).await;
    }
    Ok(())
}

/// A request in the corpus's text form: first line, headers, an empty line, body.
fn request(target: SocketAddr, guise: &Guise, text: &[u8]) -> Option<Request<Bytes>> {
    let end = text.windows(2).position(|pair| pair == b"\n\n").unwrap_or(text.len());
    let head = std::str::from_utf8(text.get(..end)?).ok()?;
    let mut lines = head.split('\n');
    let (method, path) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(format!("{}://{target}{path}", guise.scheme));
    if let Some(authorization) = &guise.authorization {
        request = request.header("authorization", &**authorization);
    }
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        request = request.header(name, value);
    }
    let body = text.get(end + 2..).unwrap_or_default();
    request.body(Bytes::copy_from_slice(body)).ok()
}
