//! The REST API: everything that the operator's commands do.
//!
//! ```text
//!  request ──> guard ──> routes ──> handler ──> subscribers ──> store
//!                          │                ├─> inspect ─────> shards, edge ──> gather
//!                          │                └─> upf ─────────> UPF thread
//!                          └──> openapi (GET /openapi.json)
//! ```
//!
//! [`routes`](route::ROUTES) is the one table: requests are matched by it, and the OpenAPI
//! description is made of it. Errors are `ProblemDetails` (RFC 9457). Keys of subscribers are shown
//! only where `keys=true` asks for them.

mod call;
mod gather;
mod guard;
mod inspect;
mod openapi;
mod operate;
mod route;
mod subscribers;
mod upf;

pub use call::ApiError;
pub use gather::{Gather, Topic};
pub use guard::Guard;
pub use inspect::Status;
pub use openapi::description;

use crate::config::Config;
use crate::http::Handler;
use crate::store::{Database, StoreHandle, StoreThread, start};
use crate::token::ShardToken;
use crate::upf::UpfHandle;
use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{Request, Response};
use std::rc::Rc;

/// What the API shows and changes.
pub struct Api {
    /// Who may ask.
    pub guard: Guard,
    /// Subscribers; `None` where another process has the database.
    pub store: Option<StoreHandle<ShardToken>>,
    /// The UPF; `None` where another process has it.
    pub upf: Option<UpfHandle>,
    /// What lives in shards and gateways.
    pub gather: Rc<Gather>,
    /// What the process is and does.
    pub status: Box<dyn Fn() -> Status>,
    /// The configuration in effect.
    pub config: Config,
}

impl Api {
    /// The API of a core that does not run: its subscribers, and nothing that lives.
    ///
    /// Close the thread after the last request, so that the database is closed.
    pub fn on_database(
        database: Database,
        config: Config,
    ) -> std::io::Result<(Rc<Self>, StoreThread<ShardToken>)> {
        let (store, thread) = start(database, |_: ShardToken, _| ())?;
        let status = || Status {
            state: "stopped",
            version: env!("CARGO_PKG_VERSION"),
            uptime_s: 0,
            ready_after_ms: None,
            nfs: Vec::new(),
            shards: 0,
        };
        let api = Rc::new(Self {
            guard: Guard::new(None),
            store: Some(store),
            upf: None,
            gather: Rc::new(Gather::new(Box::new(|_, _| 0))),
            status: Box::new(status),
            config,
        });
        Ok((api, thread))
    }
}

/// Answers requests of the API.
pub struct ApiHandler(pub Rc<Api>);

impl Handler for ApiHandler {
    /// Who may not ask is told so before a body is read, and only an import may be large.
    fn admit(&self, head: &Parts) -> Result<usize, Response<Bytes>> {
        self.0.guard.check(head).map_err(ApiError::into_response)?;
        Ok(route::largest_body(head))
    }

    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        route::dispatch(&self.0, request).await.unwrap_or_else(ApiError::into_response)
    }
}

#[cfg(test)]
mod tests;
