//! An example of every request, every answer and every kind of error. Bodies are written as the JSON of
//! the OpenAPI files, and none of their members may be lost on the way in and out.

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

/// Where the peer's services stand.
pub fn root() -> Arc<ApiRoot> {
    Arc::new(ApiRoot::new(Scheme::Http, "127.0.0.1:7777").with_prefix("/s1"))
}

/// A value out of JSON that keeps every member.
fn read<T: DeserializeOwned + Serialize>(json: Value) -> T {
    let value: T = serde_json::from_value(json.clone()).unwrap_or_else(|e| panic!("{e}: {json}"));
    let again = serde_json::to_value(&value).expect("JSON");
    assert_eq!(again, json, "members were lost");
    value
}

/// A value out of text.
fn text<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect("an example of its type")
}

/// A URI of the peer's.
fn uri(path: &str) -> Uri {
    Uri::new(&root(), path)
}

/// The `T` with its octets in place.
fn with<T>(mut value: T, put: impl FnOnce(&mut T)) -> T {
    put(&mut value);
    value
}
