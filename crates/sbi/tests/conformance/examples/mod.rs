//! An example of every request, response and kind of error. Bodies are JSON of the OpenAPI files; reading and
//! writing must keep all members.

pub mod bodies;
mod problems;
mod requests;
mod responses;

pub use problems::problems;
pub use requests::request;
pub use responses::response;

use pith_sbi::{ApiRoot, Scheme, Uri};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// apiRoot of the peer.
pub fn root() -> Arc<ApiRoot> {
    Arc::new(ApiRoot::new(Scheme::Http, "127.0.0.1:7777").with_prefix("/s1"))
}

/// Reads a value from JSON and checks that every member is kept.
fn read<T: DeserializeOwned + Serialize>(json: Value) -> T {
    let value: T = serde_json::from_value(json.clone()).unwrap_or_else(|e| panic!("{e}: {json}"));
    let again = serde_json::to_value(&value).expect("JSON");
    assert_eq!(again, json, "members were lost");
    value
}

/// Parses a value from text.
fn text<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect("an example of its type")
}

/// A URI of the peer.
fn uri(path: &str) -> Uri {
    Uri::new(&root(), path)
}

/// Inserts octets into a value.
fn with<T>(mut value: T, put: impl FnOnce(&mut T)) -> T {
    put(&mut value);
    value
}
