//! The table of routes, and the dispatch of requests.

use super::call::Call;
use super::{Api, ApiError, access, inspect, operate, shards, subscribers, upf};
use crate::config::Role;
use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// The future of a handler's response.
pub(super) type Handling = Pin<Box<dyn Future<Output = Result<Response<Bytes>, ApiError>>>>;

/// An operation of the API.
pub(super) struct Route {
    pub method: Method,
    /// The lowest role that may use the operation.
    pub role: Role,
    /// Segments in braces are parameters.
    pub path: &'static str,
    /// `operationId` of the description.
    pub name: &'static str,
    /// One sentence for the OpenAPI description.
    pub about: &'static str,
    pub query: &'static [Parameter],
    /// Name of the body's schema.
    pub body: Option<&'static str>,
    pub answer: Answer,
    pub handle: fn(Rc<Api>, Call) -> Handling,
}

/// A query parameter.
pub(super) struct Parameter {
    pub name: &'static str,
    /// Its JSON type.
    pub kind: &'static str,
    pub about: &'static str,
}

/// The content of a successful response.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    /// An object of this schema, with this status.
    One(u16, &'static str),
    /// A list of objects of this schema.
    List(&'static str),
    /// No content (204).
    Nothing,
    /// No content (204), or with `count` an object of this schema.
    NothingOr(&'static str),
}

const KEYS: Parameter =
    Parameter { name: "keys", kind: "boolean", about: "true: include the secret keys, as for an export" };

/// Parameters of lists that are read in pages.
const PAGES: &[Parameter] = &[
    Parameter {
        name: "after",
        kind: "string",
        about: "start of the page, from the 'Link' of the previous page; entries that are added meanwhile may be missing",
    },
    Parameter { name: "limit", kind: "integer", about: "entries per page, 1 to 2000; 500 by default" },
    Parameter { name: "supi", kind: "string", about: "only entries of this subscriber" },
];

/// Every operation of the API.
pub(super) const ROUTES: &[Route] = &[
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/v1/status",
        name: "showStatus",
        about: "State of the process.",
        query: &[],
        body: None,
        answer: Answer::One(200, "Status"),
        handle: inspect::status,
    },
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/v1/health",
        name: "checkHealth",
        about: "200 if the process is ready, else 503.",
        query: &[],
        body: None,
        answer: Answer::One(200, "Health"),
        handle: inspect::health,
    },
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/v1/config",
        name: "showConfig",
        about: "The configuration in effect, as 'pith config default' describes it.",
        query: &[],
        body: None,
        answer: Answer::One(200, "Config"),
        handle: inspect::config,
    },
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/v1/subscribers",
        name: "listSubscribers",
        about: "Subscribers ordered by SUPI, in pages.",
        query: &[
            Parameter {
                name: "after",
                kind: "string",
                about: "the SUPI after which the page begins: 'next' of the previous page",
            },
            Parameter {
                name: "limit",
                kind: "integer",
                about: "subscribers per page, 1 to 10000; 100 by default",
            },
            KEYS,
        ],
        body: None,
        answer: Answer::One(200, "SubscriberPage"),
        handle: subscribers::list,
    },
    Route {
        method: Method::POST,
        role: Role::Operator,
        path: "/v1/subscribers",
        name: "addSubscribers",
        about: "Adds the subscribers of the body: one object, a list, or one object per line (application/x-ndjson). Adds all or none.",
        query: &[
            Parameter {
                name: "count",
                kind: "integer",
                about: "adds this many subscribers like the one in the body, with consecutive SUPIs",
            },
            Parameter {
                name: "existing",
                kind: "string",
                about: "how to treat existing subscribers: refuse (default), replace or keep",
            },
        ],
        body: Some("Subscriber"),
        answer: Answer::One(201, "Added"),
        handle: subscribers::add,
    },
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/v1/subscribers/{supi}",
        name: "showSubscriber",
        about: "One subscriber.",
        query: &[KEYS],
        body: None,
        answer: Answer::One(200, "Subscriber"),
        handle: subscribers::show,
    },
    Route {
        method: Method::PUT,
        role: Role::Operator,
        path: "/v1/subscribers/{supi}",
        name: "putSubscriber",
        about: "Adds or replaces one subscriber.",
        query: &[],
        body: Some("Subscriber"),
        answer: Answer::One(200, "Added"),
        handle: subscribers::replace,
    },
    Route {
        method: Method::DELETE,
        role: Role::Operator,
        path: "/v1/subscribers/{supi}",
        name: "deleteSubscriber",
        about: "Deletes one subscriber and what NFs stored about it, or 'count' from it on.",
        query: &[Parameter {
            name: "count",
            kind: "integer",
            about: "deletes the existing subscribers among this many consecutive SUPIs",
        }],
        body: None,
        answer: Answer::NothingOr("Deleted"),
        handle: subscribers::delete,
    },
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/v1/ues",
        name: "listUes",
        about: "UEs with a context in the AMF, in pages: the header 'Link' names the next page.",
        query: PAGES,
        body: None,
        answer: Answer::List("Ue"),
        handle: inspect::ues,
    },
    Route {
        method: Method::DELETE,
        role: Role::Operator,
        path: "/v1/ues/{supi}",
        name: "deregisterUe",
        about: "Ends a UE's registration and its sessions, and requests the UE to register again.",
        query: &[],
        body: None,
        answer: Answer::Nothing,
        handle: operate::deregister,
    },
    Route {
        method: Method::POST,
        role: Role::Operator,
        path: "/v1/ues/{supi}/locate",
        name: "locateUe",
        about: "Requests the gNB of a connected UE to report the UE's cell; the UE's entry shows it.",
        query: &[],
        body: None,
        answer: Answer::Nothing,
        handle: operate::locate,
    },
    Route {
        method: Method::POST,
        role: Role::Operator,
        path: "/v1/gnbs/reset",
        name: "resetGnb",
        about: "Resets the interface to a gNB: its UEs lose their connections, and stay registered.",
        query: &[Parameter {
            name: "gnb",
            kind: "string",
            about: "its 'globalId', such as 999/70-gnb-000001, or its name",
        }],
        body: None,
        answer: Answer::Nothing,
        handle: operate::reset_gnb,
    },
    Route {
        method: Method::PUT,
        role: Role::Operator,
        path: "/v1/amf/capacity/{capacity}",
        name: "setAmfCapacity",
        about: "Changes the relative capacity of the AMF, 0 to 255, until its next start, and informs all gNBs: they select AMFs of a set in proportion to it.",
        query: &[],
        body: None,
        answer: Answer::Nothing,
        handle: operate::set_capacity,
    },
    Route {
        method: Method::PUT,
        role: Role::Operator,
        path: "/v1/amf/endpoints/{address}",
        name: "setN2EndpointWeight",
        about: "Changes the weight of an N2 endpoint until the AMF's next start, and informs all gNBs. With the weight 0 UEs leave it.",
        query: &[Parameter { name: "weight", kind: "integer", about: "0 to 255" }],
        body: None,
        answer: Answer::Nothing,
        handle: operate::set_endpoint_weight,
    },
    Route {
        method: Method::DELETE,
        role: Role::Operator,
        path: "/v1/amf/endpoints/{address}",
        name: "removeN2Endpoint",
        about: "Has gNBs remove their associations with an N2 endpoint, which UEs leave before, until the AMF's next start or another weight.",
        query: &[],
        body: None,
        answer: Answer::Nothing,
        handle: operate::remove_endpoint,
    },
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/v1/gnbs",
        name: "listGnbs",
        about: "Connected gNBs.",
        query: &[],
        body: None,
        answer: Answer::List("Gnb"),
        handle: inspect::gnbs,
    },
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/v1/sessions",
        name: "listSessions",
        about: "PDU sessions with a context in the SMF, in pages: the header 'Link' names the next page.",
        query: PAGES,
        body: None,
        answer: Answer::List("Session"),
        handle: inspect::sessions,
    },
    Route {
        method: Method::PUT,
        role: Role::Operator,
        path: "/v1/sessions/{supi}/{id}/breakout",
        name: "branchSession",
        about: "Starts local breakout for some destinations: an uplink classifier at another UPF sends their packets to the data network. The session's entry shows the result.",
        query: &[],
        body: Some("Breakout"),
        answer: Answer::Nothing,
        handle: operate::branch,
    },
    Route {
        method: Method::DELETE,
        role: Role::Operator,
        path: "/v1/sessions/{supi}/{id}/breakout",
        name: "unbranchSession",
        about: "Starts removing local breakout, so that all packets of the session use its anchor again. For an idle UE this happens when it next becomes connected.",
        query: &[],
        body: None,
        answer: Answer::Nothing,
        handle: operate::unbranch,
    },
    Route {
        method: Method::PUT,
        role: Role::Operator,
        path: "/v1/sessions/{supi}/{id}/rules/{name}",
        name: "addRule",
        about: "Adds a PCC rule with a QoS flow to a session at the PCF, or replaces it. The session's entry at the SMF shows the flow once UPF and gNB are requested to have it.",
        query: &[],
        body: Some("PolicyRule"),
        answer: Answer::Nothing,
        handle: operate::add_rule,
    },
    Route {
        method: Method::DELETE,
        role: Role::Operator,
        path: "/v1/sessions/{supi}/{id}/rules/{name}",
        name: "removeRule",
        about: "Removes a PCC rule that was added to a session.",
        query: &[],
        body: None,
        answer: Answer::Nothing,
        handle: operate::remove_rule,
    },
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/v1/shards",
        name: "listShards",
        about: "Shards of the process, with the blocks of ids that each owns.",
        query: &[],
        body: None,
        answer: Answer::List("Shard"),
        handle: shards::list,
    },
    Route {
        method: Method::PUT,
        role: Role::Operator,
        path: "/v1/shards/{shard}/blocks/{block}",
        name: "moveBlock",
        about: "Moves a block of ids to a shard, with the UEs and sessions that have its ids. They are served all the while; their messages wait for some milliseconds.",
        query: &[],
        body: None,
        answer: Answer::One(200, "MovedBlock"),
        handle: shards::move_block,
    },
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/v1/nfs",
        name: "listNfInstances",
        about: "NF instances registered with the NRF.",
        query: &[],
        body: None,
        answer: Answer::List("NfInstance"),
        handle: inspect::instances,
    },
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/v1/upfs",
        name: "listUpfs",
        about: "UPFs with a PFCP association.",
        query: &[],
        body: None,
        answer: Answer::List("Upf"),
        handle: inspect::upfs,
    },
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/v1/upf/sessions",
        name: "listUpfSessions",
        about: "Sessions of the UPF ordered by SEID, in pages.",
        query: &[
            Parameter {
                name: "after",
                kind: "string",
                about: "the SEID after which the page begins: 'next' of the previous page",
            },
            Parameter {
                name: "limit",
                kind: "integer",
                about: "sessions per page, 1 to 10000; 100 by default",
            },
            Parameter { name: "ue", kind: "string", about: "only the session of this UE address" },
            Parameter {
                name: "teid",
                kind: "string",
                about: "only the session with a tunnel of this TEID, at either end",
            },
        ],
        body: None,
        answer: Answer::One(200, "UpfSessionPage"),
        handle: upf::sessions,
    },
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/v1/upf/sessions/{session}/rules",
        name: "showUpfRules",
        about: "PDRs, FARs, QERs and URRs of a session, given by its SEID or its UE's address.",
        query: &[],
        body: None,
        answer: Answer::One(200, "UpfRules"),
        handle: upf::rules,
    },
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/v1/upf/sessions/{session}/flows",
        name: "showUpfFlows",
        about: "Traffic offered and forwarded for each flow of a session, since the session began.",
        query: &[],
        body: None,
        answer: Answer::List("UpfFlow"),
        handle: upf::flows,
    },
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/v1/upf/counters",
        name: "showUpfCounters",
        about: "Traffic of the UPF and dropped packets by reason, since its start.",
        query: &[],
        body: None,
        answer: Answer::One(200, "UpfCounters"),
        handle: upf::counters,
    },
    Route {
        method: Method::POST,
        role: Role::Operator,
        path: "/v1/upf/traces",
        name: "beginUpfTrace",
        about: "Traces the packets of a tunnel's session in both directions, until a limit is reached or the trace was not read for 10 seconds.",
        query: &[
            Parameter { name: "teid", kind: "string", about: "the TEID of either end" },
            Parameter {
                name: "packets",
                kind: "integer",
                about: "packets to trace, 1 to 10000; 1000 by default",
            },
            Parameter { name: "seconds", kind: "integer", about: "duration, 1 to 600; 60 by default" },
        ],
        body: None,
        answer: Answer::One(201, "UpfTrace"),
        handle: upf::begin_trace,
    },
    Route {
        method: Method::GET,
        role: Role::Operator,
        path: "/v1/upf/traces/{trace}",
        name: "readUpfTrace",
        about: "The packets of a trace. A trace is kept for a minute after its end.",
        query: &[Parameter {
            name: "after",
            kind: "integer",
            about: "skips this many packets, which the caller has already read",
        }],
        body: None,
        answer: Answer::One(200, "UpfTrace"),
        handle: upf::read_trace,
    },
    Route {
        method: Method::DELETE,
        role: Role::Operator,
        path: "/v1/upf/traces/{trace}",
        name: "endUpfTrace",
        about: "Ends a trace and deletes its packets.",
        query: &[],
        body: None,
        answer: Answer::Nothing,
        handle: upf::end_trace,
    },
    Route {
        method: Method::GET,
        role: Role::Admin,
        path: "/v1/tokens",
        name: "listTokens",
        about: "Tokens of the API, without their secrets.",
        query: &[],
        body: None,
        answer: Answer::List("Token"),
        handle: access::tokens,
    },
    Route {
        method: Method::POST,
        role: Role::Admin,
        path: "/v1/tokens",
        name: "addToken",
        about: "Creates a token. Only this response contains its secret.",
        query: &[],
        body: Some("NewToken"),
        answer: Answer::One(201, "IssuedToken"),
        handle: access::add_token,
    },
    Route {
        method: Method::DELETE,
        role: Role::Admin,
        path: "/v1/tokens/{id}",
        name: "revokeToken",
        about: "Revokes a token with immediate effect.",
        query: &[],
        body: None,
        answer: Answer::Nothing,
        handle: access::revoke_token,
    },
    Route {
        method: Method::GET,
        role: Role::Admin,
        path: "/v1/audit",
        name: "listAudit",
        about: "The last entries of the audit log, oldest first: changes, reads of keys, and denied requests.",
        query: &[
            Parameter { name: "limit", kind: "integer", about: "entries, 1 to 10000; 100 by default" },
            Parameter {
                name: "denied",
                kind: "boolean",
                about: "true: only denied requests; false: all others",
            },
        ],
        body: None,
        answer: Answer::List("AuditEntry"),
        handle: access::audit,
    },
    Route {
        method: Method::GET,
        role: Role::Viewer,
        path: "/openapi.json",
        name: "describe",
        about: "This description.",
        query: &[],
        body: None,
        answer: Answer::One(200, "Description"),
        handle: inspect::description,
    },
];

/// Largest body of all operations but the import of subscribers, in octets.
const SMALL_BODY: usize = 1 << 20;

/// The largest body permitted for a request, in octets.
pub(super) fn largest_body(head: &Parts) -> usize {
    match find(&head.method, head.uri.path()) {
        Ok((route, _)) if route.name == "addSubscribers" => usize::MAX,
        _ => SMALL_BODY,
    }
}

/// Checks that a role permits the request; only the administrator may read keys. A request for an unknown
/// path passes: every caller gets the same 404.
pub(super) fn check_role(head: &Parts, role: Role) -> Result<(), ApiError> {
    let Ok((route, _)) = find(&head.method, head.uri.path()) else { return Ok(()) };
    let wanted = if asks_for_keys(head) { Role::Admin } else { route.role };
    if role >= wanted {
        return Ok(());
    }
    let detail = format!("'{}' needs the role {wanted}; this token or user is {role}", route.name);
    Err(ApiError { status: StatusCode::FORBIDDEN, detail })
}

/// Any value but `false` counts as a request for keys.
fn asks_for_keys(head: &Parts) -> bool {
    let query = parse_query(head.uri.query().unwrap_or_default());
    query.iter().any(|(name, value)| name == "keys" && value != "false")
}

/// The operation's name if the audit log records it: the operation changes something or returns keys.
pub(super) fn audited(head: &Parts) -> Option<&'static str> {
    let (route, _) = find(&head.method, head.uri.path()).ok()?;
    (route.method != Method::GET || asks_for_keys(head)).then_some(route.name)
}

/// The methods of a path, for the header 'Allow'.
pub(super) fn allowed(path: &str) -> String {
    let routes = ROUTES.iter().filter(|route| values(route.path, path).is_some());
    routes.map(|route| route.method.as_str()).collect::<Vec<_>>().join(", ")
}

/// Finds the route of a request and calls its handler.
pub(super) async fn dispatch(api: &Rc<Api>, head: &Parts, body: Bytes) -> Result<Response<Bytes>, ApiError> {
    let (route, path) = find(&head.method, head.uri.path())?;
    let text = head.uri.query().unwrap_or_default();
    let query = parse_query(text);
    if query.len() < text.split('&').filter(|pair| !pair.is_empty()).count() {
        return Err(ApiError::bad_request("a parameter of the query occurs twice"));
    }
    if let Some(unknown) = query.keys().find(|name| !route.query.iter().any(|known| known.name == **name)) {
        return Err(ApiError::bad_request(format!("'{}' has no parameter '{unknown}'", route.path)));
    }
    if route.body.is_none() && !body.is_empty() {
        return Err(ApiError::bad_request(format!("'{}' takes no request body", route.name)));
    }
    (route.handle)(api.clone(), Call { path, query, headers: head.headers.clone(), body }).await
}

/// The route of a path and method, and the values of the path's parameters.
fn find(method: &Method, path: &str) -> Result<(&'static Route, Vec<String>), ApiError> {
    let matching: Vec<_> =
        ROUTES.iter().filter_map(|route| Some((route, values(route.path, path)?))).collect();
    if matching.is_empty() {
        return Err(ApiError::not_found(format!("there is no '{path}': /openapi.json lists all paths")));
    }
    let allowed: Vec<_> = matching.iter().map(|(route, _)| route.method.as_str()).collect();
    let detail = format!("'{path}' supports {}", allowed.join(", "));
    let found = matching.into_iter().find(|(route, _)| route.method == method);
    found.ok_or(ApiError { status: StatusCode::METHOD_NOT_ALLOWED, detail })
}

/// The values of a template's parameters in a path, if the path matches the template.
fn values(template: &str, path: &str) -> Option<Vec<String>> {
    let (mut parts, mut values) = (path.split('/'), Vec::new());
    for expected in template.split('/') {
        let part = parts.next()?;
        if expected.starts_with('{') && !part.is_empty() {
            values.push(part.to_owned());
        } else if expected != part {
            return None;
        }
    }
    parts.next().is_none().then_some(values)
}

/// Values of this API consist of letters, digits, hyphens, dots and colons, so that nothing is
/// percent-decoded.
fn parse_query(query: &str) -> HashMap<String, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    pairs.map(|text| pair(text).unwrap_or_else(|| (text.to_owned(), "true".to_owned()))).collect()
}
