//! Operator input: configuration, subscribers, requests of the operator API.

use super::sbi::Http;
use crate::target::{CheckFailed, ensure, same};
use bytes::Bytes;
use hyper::Request;
use pith_nf::kit::Subscriber;
use pith_runtime::api::{Api, ApiHandler};
use pith_runtime::config::{Config, ConfigError, StorePath};
use pith_runtime::http::Handler;
use pith_runtime::store::{Database, DatabaseLocation};
use tokio::runtime::{Builder, Runtime};

/// A configuration: parsed, or refused with the reason and the line.
pub fn config(input: &[u8]) -> Result<(), CheckFailed> {
    let Ok(text) = std::str::from_utf8(input) else { return Ok(()) };
    // YAML 1.2, 5.4: a carriage return alone is also a line break.
    let lines = text.matches(['\n', '\r']).count() as u64 + 1;
    match Config::parse(text, "pith.yaml") {
        Ok(config) => ensure(config.shards() > 0, || "no shard".into()),
        Err(ConfigError::Wrong(wrongs)) => {
            ensure(!wrongs.is_empty(), || "no error, but it is not accepted".into())?;
            let sound =
                wrongs.iter().all(|wrong| (1..=lines).contains(&wrong.line) && !wrong.sentence.is_empty());
            ensure(sound, || format!("an invalid line, or an empty text: {wrongs:?}"))
        }
        Err(error) => Err(CheckFailed(format!("a text can not be unreadable: {error}"))),
    }
}

/// The key of every subscriber of the corpus.
const K: &str = "465b5ce8b199b49faa5f0a2ee238a6bc";

/// One or more exported subscribers.
pub fn subscriber(input: &[u8]) -> Result<(), CheckFailed> {
    for subscriber in
        serde_json::Deserializer::from_slice(input).into_iter::<Subscriber>().map_while(Result::ok)
    {
        let text = serde_json::to_string(&subscriber).map_err(|error| CheckFailed(error.to_string()))?;
        same(&subscriber, serde_json::from_str(&text))?;
        ensure(!format!("{:?}", subscriber.authentication).contains(K), || "Debug shows a key".into())?;
    }
    Ok(())
}

thread_local! {
    static API: (Runtime, ApiHandler) = api();
}

fn api() -> (Runtime, ApiHandler) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime needs no privilege");
    let database = Database::open(&DatabaseLocation::Memory).expect("memory can be opened");
    let mut config = Config::default();
    // No file of this machine is used.
    config.store.path = StorePath::Memory;
    let (api, _) = Api::on_database(database, config).expect("a thread can be started");
    (runtime, ApiHandler::new(api))
}

/// A request of the operator API, as text: answered, and never with an internal error.
pub fn request(input: &[u8]) -> Result<(), CheckFailed> {
    let Some(http) = Http::of(input) else { return Ok(()) };
    let mut request = Request::builder().method(http.first).uri(http.second).header("host", "127.0.0.1");
    if let Some(content_type) = &http.content_type {
        request = request.header("content-type", content_type.as_str());
    }
    let Ok(request) = request.body(Bytes::copy_from_slice(http.body)) else { return Ok(()) };
    let response = API.with(|(runtime, api)| runtime.block_on(api.handle(request)));
    let status = response.status().as_u16();
    let text = String::from_utf8_lossy(response.body());
    ensure(status < 500 || status == 501 || status == 503, || format!("{status} {text}"))?;
    let said = status < 400 || serde_json::from_str::<serde_json::Value>(&text).is_ok();
    ensure(said, || format!("{status} without a problem: {text}"))
}
