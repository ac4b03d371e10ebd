//! Authentication of API callers and their roles.
//!
//! ```text
//!  Unix socket ─ credentials of the peer: root, the core's own user, a group ─┐
//!  TCP ─ Host, Origin ─ Authorization: Bearer … ──────────────────────────────┴─> Caller, with a role
//! ```
//!
//! A valid token is accepted whatever its peer sent before: peers with one address, behind NAT or on one machine, could
//! otherwise lock each other out. Tokens are too long to guess: 256 random bits, or for the secret of `api.token_file`
//! at least 32 characters. Repeated wrong tokens are answered with 429 and recorded.

use super::{ApiError, Tokens};
use crate::config::Role;
use crate::http::Peer;
use hyper::HeaderMap;
use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tokio::net::unix::UCred;

/// Number of wrong tokens after which the answer is 429, and the time after which one of them is forgotten.
const FREE_FAILURES: u32 = 5;
const FORGETTING: Duration = Duration::from_secs(60);
/// Peers whose failures are remembered.
const PEERS: usize = 1024;
/// Time between two recorded denials, and time after which the count of a peer's denials starts again.
const DENIAL_PAUSE: Duration = Duration::from_secs(1);
const DENIAL_MEMORY: Duration = Duration::from_secs(3600);

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// `user 0`, `token 3f…`.
    pub name: String,
    /// What the caller may do.
    pub role: Role,
}

/// Authenticates requests.
pub struct Guard {
    /// The user that runs this process.
    own: Option<u32>,
    /// The role of other users that the socket's permissions admit.
    group: Option<Role>,
    /// The secret of `api.token_file`.
    secret: Option<String>,
    tokens: Tokens,
    /// If set, every request has this caller: a local command that already has access to the database file.
    everyone: Option<Caller>,
    /// Wrong tokens of each peer.
    failures: RefCell<Counts>,
}

impl Guard {
    /// Authenticates users by the credentials of a Unix socket, and other callers by tokens.
    pub fn new(group: Option<Role>, secret: Option<String>, tokens: Tokens) -> Self {
        let own = Some(crate::config::user());
        Self { own, group, secret, tokens, everyone: None, failures: RefCell::default() }
    }

    /// Grants every request the administrator role, for calls within one process.
    pub fn open(name: &str, tokens: Tokens) -> Self {
        let everyone = Some(Caller { name: name.into(), role: Role::Admin });
        Self { own: None, group: None, secret: None, tokens, everyone, failures: RefCell::default() }
    }

    /// The known tokens.
    pub(super) const fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// The caller of a request with this head.
    pub(super) fn identify(&self, head: &Parts) -> Result<Caller, ApiError> {
        check_origin(head)?;
        if let Some(caller) = &self.everyone {
            return Ok(caller.clone());
        }
        if let Some(user) = head.extensions.get::<UCred>() {
            return self.user(user.uid());
        }
        check_host(head)?;
        let Some(shown) = bearer(&head.headers)? else { return Err(unauthorized()) };
        let known = self.tokens.find(shown).or_else(|| self.holder_of_secret(shown));
        let caller = known.ok_or_else(unauthorized)?;
        if let Some(peer) = head.extensions.get::<Peer>() {
            self.failures.borrow_mut().forget(*peer);
        }
        Ok(caller)
    }

    fn holder_of_secret(&self, shown: &str) -> Option<Caller> {
        let secret = self.secret.as_ref()?;
        let is_right = same(shown.as_bytes(), secret.as_bytes());
        is_right.then(|| Caller { name: "token_file".into(), role: Role::Admin })
    }

    fn user(&self, uid: u32) -> Result<Caller, ApiError> {
        let own = uid == 0 || Some(uid) == self.own;
        let role = if own { Some(Role::Admin) } else { self.group };
        let detail = "only root and the user that runs the core may use the API: see 'api.socket_group'";
        let role = role.ok_or_else(|| ApiError { status: StatusCode::FORBIDDEN, detail: detail.into() })?;
        Ok(Caller { name: format!("user {uid}"), role })
    }

    /// The error for a request with a wrong token or without one. Counts wrong tokens.
    pub(super) fn failed(&self, head: &Parts, error: ApiError) -> ApiError {
        let has_token = bearer(&head.headers).is_ok_and(|shown| shown.is_some());
        let Some(peer) = head.extensions.get::<Peer>().filter(|_| has_token) else { return error };
        let count = self.failures.borrow_mut().add(*peer, Instant::now(), |count, since| {
            let forgotten = since.as_secs() / FORGETTING.as_secs();
            count.saturating_sub(u32::try_from(forgotten).unwrap_or(u32::MAX))
        });
        if count <= FREE_FAILURES {
            return error;
        }
        ApiError {
            status: StatusCode::TOO_MANY_REQUESTS,
            detail: "too many wrong tokens: wait a minute".into(),
        }
    }
}

/// Counters of the peers that were active last.
#[derive(Default)]
struct Counts(HashMap<Peer, (u32, Instant)>);

impl Counts {
    /// Increments a counter; `kept` reduces its value by the time since its last change.
    fn add(&mut self, peer: Peer, now: Instant, kept: impl Fn(u32, Duration) -> u32) -> u32 {
        if self.0.len() >= PEERS && !self.0.contains_key(&peer) {
            let oldest = self.0.iter().min_by_key(|(_, (_, last))| *last).map(|(peer, _)| *peer);
            oldest.map(|oldest| self.0.remove(&oldest));
        }
        let (count, last) = self.0.entry(peer).or_insert((0, now));
        *count = kept(*count, now - *last).saturating_add(1);
        *last = now;
        *count
    }

    fn forget(&mut self, peer: Peer) {
        self.0.remove(&peer);
    }
}

fn unauthorized() -> ApiError {
    let detail = "send 'Authorization: Bearer …' with a token: create one with 'pith api token add'";
    ApiError { status: StatusCode::UNAUTHORIZED, detail: detail.into() }
}

/// The bearer token of the request, if any.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let value = one(headers, AUTHORIZATION)?;
    // The scheme's name is case-insensitive (RFC 9110 11.1).
    let scheme = |value: &&str| value.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("Bearer "));
    Ok(value.filter(scheme).and_then(|value| value.get(7..)).map(str::trim))
}

/// The value of a header that may occur at most once.
fn one(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, ApiError> {
    let mut values = headers.get_all(&name).iter();
    let first = values.next().map(|value| value.to_str());
    match (first, values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(value)), None) => Ok(Some(value)),
        _ => Err(ApiError::bad_request(format!("the header '{name}' is not text, or occurs twice"))),
    }
}

/// Compares in constant time for texts of the same length.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

/// Refuses requests that a browser sends on behalf of another origin's web page (CSRF).
fn check_origin(head: &Parts) -> Result<(), ApiError> {
    let foreign = || ApiError {
        status: StatusCode::FORBIDDEN,
        detail: "a web page of another origin may not use the API".into(),
    };
    if let Some(site) = one(&head.headers, HeaderName::from_static("sec-fetch-site"))?
        && !matches!(site, "same-origin" | "none")
    {
        return Err(foreign());
    }
    let Some(origin) = one(&head.headers, ORIGIN)? else { return Ok(()) };
    let asked = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let own = authority(head)?;
    if asked.is_some_and(|asked| own.as_ref().is_some_and(|own| asked.eq_ignore_ascii_case(own.as_str()))) {
        Ok(())
    } else {
        Err(foreign())
    }
}

/// The host and port of the request: named once, or twice with the same value (RFC 9112 3.2, RFC 9113 8.3.1).
fn authority(head: &Parts) -> Result<Option<Authority>, ApiError> {
    let wrong = || ApiError::bad_request("'Host' must be one host, with or without a port");
    let header = one(&head.headers, HOST)?.map(|host| host.parse::<Authority>().map_err(|_| wrong()));
    let header = header.transpose()?;
    match (header, head.uri.authority().cloned()) {
        (Some(header), Some(target)) if header != target => Err(wrong()),
        (header, target) => Ok(header.or(target)),
    }
}

/// Refuses a request without a valid host (RFC 9112 3.2).
fn check_host(head: &Parts) -> Result<(), ApiError> {
    let wrong = || ApiError::bad_request("'Host' must be one host, with or without a port");
    let authority = authority(head)?.ok_or_else(wrong)?;
    let text = authority.as_str();
    let host = authority.host();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let address = bare.unwrap_or(host).parse::<IpAddr>();
    let letters = |octet: u8| octet.is_ascii_alphanumeric() || b"-.".contains(&octet);
    let name = host.len() <= 253 && !host.is_empty() && host.bytes().all(letters);
    let sound = match address {
        Ok(address) => address.is_ipv6() == bare.is_some(),
        Err(_) => name,
    };
    let port = text.get(host.len()..).unwrap_or_default();
    let port = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    if sound && port && !text.contains('@') { Ok(()) } else { Err(wrong()) }
}

/// Limits the denials that are recorded: of each peer the first, second, fourth, … in an hour, and at most one a
/// second in total.
#[derive(Default)]
pub(super) struct Denials {
    last: Cell<Option<Instant>>,
    of_peers: RefCell<Counts>,
}

impl Denials {
    pub fn is_recorded(&self, peer: Option<Peer>) -> bool {
        let now = Instant::now();
        let in_an_hour = |count, since| if since > DENIAL_MEMORY { 0 } else { count };
        let count = peer.map_or(1, |peer| self.of_peers.borrow_mut().add(peer, now, in_an_hour));
        let is_quiet = self.last.get().is_none_or(|last| now - last >= DENIAL_PAUSE);
        let is_recorded = count.is_power_of_two() && is_quiet;
        if is_recorded {
            self.last.set(Some(now));
        }
        is_recorded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&str, &str)]) -> Parts {
        let mut request = hyper::Request::get("/");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn status(guard: &Guard, fields: &[(&str, &str)]) -> u16 {
        guard.identify(&head(fields)).map_or_else(|error| error.status.as_u16(), |_| 200)
    }

    #[test]
    fn a_loopback_client_needs_a_token() {
        let guard = Guard::new(None, None, Tokens::in_memory());
        assert_eq!(status(&guard, &[("host", "127.0.0.1:5100")]), 401);
        assert_eq!(status(&guard, &[("host", "localhost"), ("authorization", "Bearer x")]), 401);
    }

    #[test]
    fn only_the_whole_secret_is_accepted() {
        let guard = Guard::new(None, Some("secret".into()), Tokens::in_memory());
        let shown = |text: &str| status(&guard, &[("host", "[::1]:5100"), ("authorization", text)]);
        assert_eq!((shown("Bearer secret"), shown("bearer secret")), (200, 200));
        for wrong in ["Bearer secre", "Bearer secret2", "secret", "Bearer ", "Basic secret"] {
            assert_eq!(shown(wrong), 401, "{wrong}");
        }
    }

    #[test]
    fn an_invalid_host_is_refused() {
        let guard = Guard::new(None, None, Tokens::in_memory());
        for host in ["127.0.0.1:5100", "localhost", "[::1]:5100", "core.example:80"] {
            assert_eq!(status(&guard, &[("host", host)]), 401, "{host}");
        }
        for host in ["", "127.0.0.1:evil", "[::1]evil", "a@b", "::1", "127.0.0.1:99999", "a/b", "a b", "a_b"]
        {
            assert_eq!(status(&guard, &[("host", host)]), 400, "{host}");
        }
        assert_eq!(status(&guard, &[]), 400);
        assert_eq!(status(&guard, &[("host", "a"), ("host", "b")]), 400);
    }

    #[test]
    fn requests_of_other_origins_are_refused_for_every_caller() {
        let guard = Guard::open("test", Tokens::in_memory());
        let with = |name, value| status(&guard, &[("host", "127.0.0.1:5100"), (name, value)]);
        assert_eq!(with("origin", "http://127.0.0.1:5100"), 200);
        for origin in ["http://evil.example", "null", "http://127.0.0.1:5101", "127.0.0.1:5100"] {
            assert_eq!(with("origin", origin), 403, "{origin}");
        }
        assert_eq!((with("sec-fetch-site", "same-origin"), with("sec-fetch-site", "cross-site")), (200, 403));
    }

    #[test]
    fn a_token_has_its_role_until_it_is_revoked() {
        let guard = Guard::new(None, None, Tokens::in_memory());
        let issued = guard.tokens().add("console", Role::Viewer).unwrap();
        let shown = format!("Bearer {}", issued.token);
        let fields = [("host", "localhost"), ("authorization", shown.as_str())];
        assert_eq!(guard.identify(&head(&fields)).unwrap().role, Role::Viewer);
        assert!(guard.tokens().revoke(&issued.id).unwrap());
        assert_eq!(status(&guard, &fields), 401);
    }

    fn from(peer: Peer, token: &str) -> Parts {
        let mut head = match token {
            "" => head(&[("host", "localhost")]),
            token => head(&[("host", "localhost"), ("authorization", &format!("Bearer {token}"))]),
        };
        head.extensions.insert(peer);
        head
    }

    #[test]
    fn wrong_tokens_are_answered_with_429_and_lock_no_holder_out() {
        let secret = "a secret that is too long to guess";
        let guard = Guard::new(None, Some(secret.into()), Tokens::in_memory());
        let issued = guard.tokens().add("console", Role::Admin).unwrap();
        let peer = Peer::at(IpAddr::from([192, 0, 2, 1]));
        let answer = |token: &str| {
            let head = from(peer, token);
            let denied = |error| guard.failed(&head, error).status.as_u16();
            guard.identify(&head).map_or_else(denied, |_| 200)
        };
        for _ in 0..100 {
            assert_eq!(answer(""), 401, "a request without a token guesses nothing");
        }
        for attempt in 0..FREE_FAILURES * 2 {
            assert_eq!(answer("wrong"), if attempt < FREE_FAILURES { 401 } else { 429 });
        }
        assert_eq!((answer(secret), answer("wrong")), (200, 401), "success ends the wait");
        (0..FREE_FAILURES).for_each(|_| assert_ne!(answer("wrong"), 200));
        assert_eq!((answer("wrong"), answer(&issued.token)), (429, 200));
    }

    #[test]
    fn counters_decay_and_the_oldest_are_dropped() {
        let (mut counts, begun) = (Counts::default(), Instant::now());
        let peer = |number: usize| Peer::at(IpAddr::from((number as u32).to_be_bytes()));
        let add = |counts: &mut Counts, number, seconds| {
            counts.add(peer(number), begun + Duration::from_secs(seconds), |count, since| {
                count.saturating_sub(since.as_secs() as u32 / 60)
            })
        };
        for expected in 1..=3 {
            assert_eq!(add(&mut counts, 0, 0), expected);
        }
        assert_eq!((add(&mut counts, 0, 60), add(&mut counts, 0, 600)), (3, 1));
        for number in 1..PEERS + 10 {
            add(&mut counts, number, 600 + number as u64);
        }
        assert_eq!(counts.0.len(), PEERS);
        let later = 600 + PEERS as u64 + 10;
        assert_eq!((add(&mut counts, PEERS, later), add(&mut counts, 0, later)), (2, 1));
    }

    #[test]
    fn repeated_denials_of_a_peer_are_recorded_at_powers_of_two() {
        let denials = Denials::default();
        let peer = Some(Peer::User(1));
        let recorded = (0..1000).filter(|_| {
            denials.last.set(None);
            denials.is_recorded(peer)
        });
        assert_eq!(recorded.count(), 10);
        denials.last.set(None);
        assert!(denials.is_recorded(Some(Peer::User(2))) && !denials.is_recorded(Some(Peer::User(3))));
    }
}
