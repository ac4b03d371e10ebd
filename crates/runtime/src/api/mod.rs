//! The operator API: a REST API, which the `pith` commands use.
//!
//! ```text
//!  request ──> guard ──> routes ──> handler ──> subscribers ──> store
//!                          │                ├─> inspect ─────> shards, edge ──> gather
//!                          │                └─> upf ─────────> UPF thread
//!                          └──> openapi (GET /openapi.json)
//! ```
//!
//! [`routes`](route::ROUTES) is the only table of operations: requests are matched against it, and the
//! OpenAPI description is generated from it. Errors are `ProblemDetails` (RFC 9457). Subscribers' keys are
//! returned only with `keys=true`.
//!
//! A request arrives over a Unix socket, where the kernel provides the calling user, or over TCP with a
//! token. A role (`viewer`, `operator`, `admin`) decides which routes the caller may use. Changes are written
//! to [`Audit`].

mod access;
mod audit;
mod call;
mod gather;
mod guard;
mod inspect;
mod openapi;
mod operate;
mod route;
mod shards;
mod socket;
mod subscribers;
mod time;
mod tokens;
mod upf;

pub use audit::Audit;
pub use call::ApiError;
pub use gather::{Gather, Topic};
pub use guard::{Caller, Guard};
pub use inspect::{ContextStatus, EmbeddedDocuments, InstanceStatus, SetStatus, Status};
pub use openapi::description;
pub use socket::{Unnamed, bind as bind_socket};
pub use tokens::Tokens;

use crate::config::Config;
use crate::http::{Handler, Peer};
use crate::store::{Database, StoreHandle, StoreThread, start};
use crate::token::ShardToken;
use crate::upf::UpfHandle;
use audit::Entry;
use bytes::Bytes;
use guard::Denials;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode};
use std::rc::Rc;

/// The state of a core that is not running.
const STOPPED: &str = "stopped";

/// What the handlers of the API use.
pub struct Api {
    /// Authenticates callers.
    pub guard: Guard,
    /// The audit log.
    pub audit: Audit,
    /// The subscriber store; `None` if another process has the database.
    pub store: Option<StoreHandle<ShardToken>>,
    /// The UPF; `None` if another process has it.
    pub upf: Option<UpfHandle>,
    /// Queries and commands to shards and gateways.
    pub gather: Rc<Gather>,
    /// Returns the state of the process.
    pub status: Box<dyn Fn() -> Status>,
    /// The configuration in effect.
    pub config: Config,
}

impl Api {
    /// The API of a core that is not running: subscribers only.
    ///
    /// Close the thread after the last request to close the database.
    pub fn on_database(
        database: Database,
        config: Config,
    ) -> std::io::Result<(Rc<Self>, StoreThread<ShardToken>)> {
        let (store, thread) = start(database, |_: ShardToken, _| ())?;
        let status = || Status {
            state: STOPPED,
            version: env!("CARGO_PKG_VERSION"),
            uptime_s: 0,
            ready_after_ms: None,
            nfs: Vec::new(),
            shards: 0,
            contexts: None,
            set: None,
            user_plane: None,
        };
        let api = Rc::new(Self {
            guard: Guard::open(&format!("user {}", crate::config::user()), tokens(&config)),
            audit: audit(&config),
            store: Some(store),
            upf: None,
            gather: Rc::new(Gather::new(Box::new(|_, _| 0))),
            status: Box::new(status),
            config,
        });
        Ok((api, thread))
    }
}

/// The API tokens of a core, in its state directory.
pub fn tokens(config: &Config) -> Tokens {
    config.state_directory().map_or_else(Tokens::in_memory, |at| Tokens::of_file(at.join("api-tokens.json")))
}

/// The audit log of a core, in its state directory.
pub fn audit(config: &Config) -> Audit {
    config.state_directory().map_or_else(Audit::in_memory, |at| Audit::to_file(at.join("audit.jsonl")))
}

/// Answers requests of the API.
pub struct ApiHandler {
    api: Rc<Api>,
    denials: Denials,
}

impl ApiHandler {
    #[cfg(test)]
    fn api(&self) -> Rc<Api> {
        Rc::clone(&self.api)
    }

    /// Serves this API.
    pub fn new(api: Rc<Api>) -> Self {
        Self { api, denials: Denials::default() }
    }

    /// The caller, if its role permits the request.
    fn authorize(&self, head: &Parts) -> Result<Caller, ApiError> {
        let caller = self.api.guard.identify(head)?;
        route::check_role(head, caller.role)?;
        Ok(caller)
    }

    fn denied(&self, head: &Parts, error: ApiError) -> Response<Bytes> {
        let error = match error.status {
            StatusCode::UNAUTHORIZED => self.api.guard.failed(head, error),
            _ => error,
        };
        let peer = head.extensions.get::<Peer>().copied();
        if matches!(error.status.as_u16(), 401 | 403 | 429) && self.denials.is_recorded(peer) {
            let caller = self.api.guard.identify(head).ok();
            self.api.audit.denied(caller.as_ref(), entry(head, "denied", error.status.as_u16()));
        }
        sealed(head, error.into_response())
    }
}

/// The audit entry of a request.
fn entry(head: &Parts, operation: &str, status: u16) -> Entry {
    let from = head.extensions.get::<Peer>().map_or_else(|| "this process".into(), ToString::to_string);
    let target: String = head.uri.path_and_query().map(|target| target.as_str()).unwrap_or_default().into();
    let target = target.chars().take(256).collect();
    let (id, state, time, who, role) = Default::default();
    Entry { id, state, time, who, role, from, operation: operation.into(), target, status }
}

/// Sets the headers of every response: no caching, no content sniffing (TS 33.117 4.3.4).
fn sealed(head: &Parts, mut response: Response<Bytes>) -> Response<Bytes> {
    let (status, headers) = (response.status(), response.headers_mut());
    headers.insert(hyper::header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(hyper::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if status == StatusCode::METHOD_NOT_ALLOWED
        && let Ok(allowed) = HeaderValue::from_str(&route::allowed(head.uri.path()))
    {
        headers.insert(hyper::header::ALLOW, allowed);
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        headers.insert(hyper::header::RETRY_AFTER, HeaderValue::from_static("60"));
    }
    response
}

impl Handler for ApiHandler {
    /// Authorizes before the body is read. Only an import may have a large body.
    fn admit(&self, head: &Parts) -> Result<usize, Response<Bytes>> {
        self.authorize(head).map_err(|error| self.denied(head, error))?;
        Ok(route::largest_body(head))
    }

    /// A change is made and recorded to its end, whether its client waits or not.
    fn runs_to_end(&self, head: &Parts) -> bool {
        route::audited(head).is_some()
    }

    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (head, body) = request.into_parts();
        let caller = match self.authorize(&head) {
            Ok(caller) => caller,
            Err(error) => return self.denied(&head, error),
        };
        let audited = route::audited(&head);
        let begun = audited.map(|operation| self.api.audit.begun(&caller, entry(&head, operation, 0)));
        let answered = route::dispatch(&self.api, &head, body).await;
        let response = answered.unwrap_or_else(ApiError::into_response);
        if let Some(begun) = begun {
            self.api.audit.ended(begun, response.status().as_u16());
        }
        sealed(&head, response)
    }
}

#[cfg(test)]
mod tests;
