//! Authorization of requests: the client's identity and the access token (TS 33.501 13.4.1).
//!
//! ```text
//!  head ─> authenticate   signature, expiry, audience, service    401, 403 insufficient_scope
//!  body ─> authorize      operation, type of the client's NF      403
//! ```
//!
//! The keys of the NRF are fetched from the NRF (`/oauth2/jwks`, a path specific to Pith), or read from a
//! file.

use crate::http::{self, Expected, ServerIdentity};
use crate::token_keys::TokenKeys;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use pith_nf::fabric::guard::ClientIdentity;
use pith_nf::kit::Client;
use pith_sbi::token::{KeySet, Producer, Refusal, Verified, Verifier};
use pith_sbi::{ApiRoot, NfInstanceId, NfType, Problem, Request, ServiceName};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Mutex;
use tokio::task::spawn_local;
use tokio::time::Instant;

/// Path at which the NRF publishes its keys.
pub(super) const KEYS_PATH: &str = "/oauth2/jwks";

/// Shortest interval of requests to the NRF for its keys, so that tokens with invented key names cannot
/// overload it.
const PAUSE: Duration = Duration::from_secs(1);

/// Age after which the keys are fetched again: the NRF may have replaced or removed one.
const REFRESH: Duration = Duration::from_secs(3600);

/// Settings of the authorization.
pub struct AccessSettings {
    /// The NFs of the process, as named in tokens; `None` if no token is required.
    pub producer: Option<Producer>,
    /// The source of the NRF's keys.
    pub keys: KeySource,
    /// Types of other vendors' NFs without token support (`sbi.external.<nf>.oauth2: off`).
    pub exempt: Vec<NfType>,
}

/// The source of the NRF's keys.
#[derive(Clone)]
pub enum KeySource {
    /// The NRF is in this process, which publishes them; that is its instance.
    Own(Arc<TokenKeys>, NfInstanceId),
    /// The NRF with this apiRoot.
    Nrf(Arc<ApiRoot>),
    /// A file.
    File(KeySet),
}

/// Authorizes requests.
pub(super) struct Access {
    producer: Option<Producer>,
    source: KeySource,
    exempt: Vec<NfType>,
    verifier: RefCell<Verifier>,
    client: Rc<http::Client>,
    /// When the keys were last requested from the NRF.
    asked: Cell<Option<Instant>>,
    /// Number of such requests that have ended.
    requests: Cell<u64>,
    asking: Mutex<()>,
}

/// The client of a request, and the access token that it showed.
#[derive(Debug)]
pub(super) struct Caller {
    claims: Option<Verified>,
    identity: Arc<ClientIdentity>,
}

impl Caller {
    /// The client as owners of resources know it.
    pub(super) fn client(&self) -> Option<Client> {
        self.identity.client(self.claims.as_ref().map(|claims| claims.sub))
    }
}

impl Access {
    pub(super) fn new(settings: AccessSettings, client: Rc<http::Client>) -> Self {
        let keys = match &settings.keys {
            KeySource::File(keys) => keys.clone(),
            KeySource::Own(..) | KeySource::Nrf(_) => KeySet::default(),
        };
        Self {
            producer: settings.producer,
            source: settings.keys,
            exempt: settings.exempt,
            verifier: RefCell::new(Verifier::new(keys)),
            client,
            asked: Cell::new(None),
            requests: Cell::new(0),
            asking: Mutex::new(()),
        }
    }

    /// The keys that this process publishes if it has the NRF.
    pub(super) fn published(&self) -> Option<Vec<u8>> {
        match &self.source {
            KeySource::Own(keys, _) => Some(keys.published(unix_s())),
            KeySource::Nrf(_) | KeySource::File(_) => None,
        }
    }

    /// Checks what the head of a request shows, before anything of its body is understood. A request that can't be
    /// attributed to anyone is refused, whatever the configuration.
    pub(super) async fn authenticate(
        self: &Rc<Self>,
        path: &str,
        headers: &HeaderMap,
        identity: Option<Arc<ClientIdentity>>,
    ) -> Result<Caller, Box<Problem>> {
        let identity =
            identity.ok_or_else(|| Box::new(Problem::of_status(403).detail("the client is not known")))?;
        let service = path.strip_prefix('/').and_then(|rest| rest.split('/').next()).map(ServiceName::from);
        let Some(service) = service.filter(wants_token).filter(|_| self.producer.is_some()) else {
            return Ok(Caller { claims: None, identity });
        };
        if self.may_be_exempt(&identity) && !headers.contains_key(AUTHORIZATION) {
            return Ok(Caller { claims: None, identity });
        }
        let claims = self.claims(&service, headers, &identity).await;
        let claims = claims.map_err(|refusal| Box::new(refusal.problem()))?;
        Ok(Caller { claims: Some(claims), identity })
    }

    /// Whether the client is, among others, a foreign NF that knows no tokens.
    fn may_be_exempt(&self, identity: &ClientIdentity) -> bool {
        identity.nf_types.iter().any(|nf_type| self.exempt.contains(nf_type))
    }

    async fn claims(
        self: &Rc<Self>,
        service: &ServiceName,
        headers: &HeaderMap,
        identity: &ClientIdentity,
    ) -> Result<Verified, Refusal> {
        let token = bearer(headers)?.ok_or_else(|| Refusal::Missing(service.clone()))?;
        let claims = self.verify(token).await?;
        let producer = self.producer.as_ref().ok_or_else(|| Refusal::Missing(service.clone()))?;
        producer.admit(&claims, service)?;
        // A token that was stolen is of no use without the certificate of the NF that it was given to. NFs of other
        // vendors need not have their id in it: then the NF type alone limits them.
        if !identity.instances.is_empty() && !identity.instances.contains(&claims.sub) {
            return Err(Refusal::Subject);
        }
        Ok(claims)
    }

    /// Checks what the whole request asks for. A client without a token where one is needed acts only as the
    /// NFs that know none.
    pub(super) fn authorize(&self, caller: &Caller, request: &Request) -> Result<(), Box<Problem>> {
        let service = request.service();
        let needs_token = self.producer.is_some() && request.target_uri().is_none() && wants_token(&service);
        match &caller.claims {
            _ if !needs_token => caller.identity.check(request),
            Some(claims) => {
                claims.covers(request.operation()).map_err(|refusal| Box::new(refusal.problem()))?;
                caller.identity.check(request)
            }
            None if self.may_be_exempt(&caller.identity) => {
                caller.identity.limited_to(&self.exempt).check(request)
            }
            None => Err(Box::new(Refusal::Missing(service).problem())),
        }
    }

    /// Verifies a token. If no known key fits, the keys are requested from the NRF first: once for all tokens that wait
    /// for them. Old keys are replaced in the background.
    async fn verify(self: &Rc<Self>, token: &str) -> Result<Verified, Refusal> {
        let first = self.verifier.borrow_mut().verify(unix_s(), token);
        if first != Err(Refusal::UnknownKey) {
            self.refresh_old_keys();
            return first;
        }
        let before = self.requests.get();
        let _asking = self.asking.lock().await;
        if self.requests.get() == before {
            self.renew_keys().await;
        }
        self.verifier.borrow_mut().verify(unix_s(), token)
    }

    fn refresh_old_keys(self: &Rc<Self>) {
        if self.asked.get().is_some_and(|asked| asked.elapsed() > REFRESH)
            && let Ok(_asking) = self.asking.try_lock()
        {
            // The next one that finds them old waits for REFRESH again.
            self.asked.set(Some(Instant::now()));
            let this = Rc::clone(self);
            spawn_local(async move {
                if let Some(keys) = this.fetch_keys().await {
                    this.verifier.borrow_mut().set_keys(keys);
                }
            });
        }
    }

    /// Requests the keys, unless that was done within [`PAUSE`].
    async fn renew_keys(&self) {
        if self.asked.get().is_some_and(|asked| asked.elapsed() <= PAUSE) {
            return;
        }
        self.asked.set(Some(Instant::now()));
        let keys = self.fetch_keys().await;
        self.asked.set(Some(Instant::now()));
        self.requests.set(self.requests.get() + 1);
        if let Some(keys) = keys {
            self.verifier.borrow_mut().set_keys(keys);
        }
    }

    /// Fetches the NRF's keys; `None` if that fails.
    async fn fetch_keys(&self) -> Option<KeySet> {
        let (json, issuers) = match &self.source {
            KeySource::Own(keys, nrf) => (keys.published(unix_s()), vec![*nrf]),
            KeySource::Nrf(root) => {
                let origin = root.clone().as_ref().clone().with_prefix("");
                let uri = format!("{origin}{KEYS_PATH}");
                let request = hyper::Request::get(&uri).body(Bytes::new()).ok()?;
                match self.client.call_nf(request, Expected::of_type(NfType::Nrf)).await {
                    Ok(response) if response.status().is_success() => {
                        let nrf = response.extensions().get::<Arc<ServerIdentity>>();
                        let issuers = nrf.and_then(|nrf| nrf.instances.clone()).unwrap_or_default();
                        (response.into_body().to_vec(), issuers)
                    }
                    Ok(response) => {
                        tracing::warn!(
                            "{uri}: {}: cannot fetch the keys for access tokens; for an NRF of another vendor, set 'sbi.nrf_keys'",
                            response.status()
                        );
                        return None;
                    }
                    Err(error) => {
                        tracing::warn!("{uri}: cannot fetch the keys for access tokens: {error}");
                        return None;
                    }
                }
            }
            KeySource::File(_) => return None,
        };
        KeySet::from_jwks(&json)
            .inspect_err(|error| tracing::warn!("the NRF's keys for access tokens are invalid: {error}"))
            .ok()
            .map(|keys| keys.of_issuers(&issuers))
    }
}

/// Services that require a token: all but those of the NRF, which an NF uses before it can have a token. For
/// these the certificate decides.
fn wants_token(service: &ServiceName) -> bool {
    service.producer().is_some_and(|producer| producer != NfType::Nrf)
}

/// The token of the header 'Authorization' (RFC 6750 2.1).
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().map_err(|_| Refusal::Form)?;
    let (scheme, token) = text.split_once(' ').ok_or(Refusal::Form)?;
    if values.next().is_some() || !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Refusal::Form);
    }
    Ok(Some(token.trim()))
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Limits;
    use pith_nf::fabric::guard::Proof;
    use pith_nf::nrf::TokenSigner;
    use pith_sbi::Scheme;
    use pith_sbi::nnrf_accesstoken::{AccessTokenReq, AccessTokenRequest};
    use pith_sbi::nudr_dr::QueryAuthSubsData;
    use pith_sbi::token::AccessTokenClaims;
    use tokio::task::LocalSet;

    const LIMITS: Limits = Limits {
        time: Duration::from_millis(1200),
        body_time: Duration::from_millis(1200),
        body: 1 << 20,
        buffered: 1 << 20,
        exchanges: 8,
    };

    /// Tokens with unknown keys, while the NRF does not answer: they wait for one request, not one after another.
    #[test]
    fn tokens_with_unknown_keys_wait_for_one_request_to_the_nrf() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(LocalSet::new().run_until(async {
            let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let root = ApiRoot::new(Scheme::Http, &silent.local_addr().unwrap().to_string());
            let keys = KeySource::Nrf(Arc::new(root));
            let settings = AccessSettings { producer: None, keys, exempt: vec![] };
            let access = Rc::new(Access::new(settings, Rc::new(http::Client::new(LIMITS))));
            let claims =
                AccessTokenClaims::new(NfInstanceId(1), NfInstanceId(2), NfType::Udm, "nudm-sdm", u64::MAX);
            let token = TokenKeys::open(None).unwrap().sign(unix_s(), &claims).unwrap();
            let begun = Instant::now();
            let all: Vec<_> = (0..4)
                .map(|_| {
                    let (access, token) = (access.clone(), token.clone());
                    spawn_local(async move { access.verify(&token).await })
                })
                .collect();
            for each in all {
                assert_eq!(each.await.unwrap(), Err(Refusal::UnknownKey));
            }
            assert!(begun.elapsed() < LIMITS.time * 2, "{:?}", begun.elapsed());
        }));
    }

    fn access(exempt: Vec<NfType>) -> Rc<Access> {
        let producer = Producer { instances: vec![(NfType::Udr, NfInstanceId(3))], ..Producer::default() };
        let keys = KeySource::File(KeySet::default());
        let settings = AccessSettings { producer: Some(producer), keys, exempt };
        Rc::new(Access::new(settings, Rc::new(http::Client::new(LIMITS))))
    }

    /// The status of the answer to a foreign NF that has neither a certificate nor a token.
    fn status(exempt: &[NfType], nf_types: &[NfType], path: &str, request: impl Into<Request>) -> u16 {
        let identity = ClientIdentity {
            proof: Proof::Address,
            instances: Vec::new(),
            nf_types: nf_types.to_vec(),
            hosts: Vec::new(),
            issuer: pith_nf::kit::Issuer::Address,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let access = access(exempt.to_vec());
        let checked = runtime.block_on(async {
            let caller = access.authenticate(path, &HeaderMap::new(), Some(Arc::new(identity))).await?;
            access.authorize(&caller, &request.into())
        });
        checked.map_or_else(|problem| problem.status, |()| 200)
    }

    #[test]
    fn a_foreign_nf_without_a_certificate_is_itself_only() {
        let keys = || QueryAuthSubsData { ue_id: "imsi-999700000000001".parse().unwrap() };
        let (udr, nrf) = ("/nudr-dr/v2/x", "/oauth2/token");
        let (ausf, udm) = (&[NfType::Ausf][..], &[NfType::Udm][..]);
        assert_eq!(status(ausf, ausf, udr, keys()), 403, "it knows no tokens and is no UDM");
        assert_eq!(status(ausf, udm, udr, keys()), 401, "tokens are for others to omit");
        assert_eq!(status(ausf, &[NfType::Ausf, NfType::Udm], udr, keys()), 403, "as an AUSF it may not");
        assert_eq!(status(udm, udm, udr, keys()), 200);
        let token = AccessTokenRequest { body: AccessTokenReq::new(NfInstanceId(7), "nudr-dr") };
        assert_eq!(status(udm, udm, nrf, token), 400);
    }

    #[test]
    fn a_request_of_nobody_is_refused() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let settings =
            AccessSettings { producer: None, keys: KeySource::File(KeySet::default()), exempt: vec![] };
        let access = Rc::new(Access::new(settings, Rc::new(http::Client::new(LIMITS))));
        let refused = runtime.block_on(access.authenticate("/nudr-dr/v2/x", &HeaderMap::new(), None));
        assert_eq!(refused.unwrap_err().status, 403);
    }
}
