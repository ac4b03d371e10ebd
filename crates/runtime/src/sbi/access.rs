//! Authorization of requests: the access token, and the client's certificate (TS 33.501 13.4.1).
//!
//! ```text
//!  head ─> authenticate   signature, expiry, audience, service    401, 403 insufficient_scope
//!  body ─> authorize      operation, type of the client's NF      403
//! ```
//!
//! The keys of the NRF are fetched from the NRF (`/oauth2/jwks`, a path specific to Pith), or read from a
//! file.

use crate::http::{self, PeerIdentity};
use crate::token_keys::TokenKeys;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use pith_nf::fabric::guard;
use pith_nf::kit::Client;
use pith_sbi::token::{KeySet, Producer, Refusal, Verified, Verifier};
use pith_sbi::{ApiRoot, NfType, Problem, Request, ServiceName};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Mutex;
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
    /// The NRF of this process, which publishes them.
    Own(Arc<TokenKeys>),
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
    /// Pith's NFs use certificates. If set, a client without one is an NF of another vendor, recognized by
    /// its address.
    certified: bool,
    verifier: RefCell<Verifier>,
    client: Rc<http::Client>,
    /// When the keys were last fetched.
    asked: Cell<Option<Instant>>,
    asking: Mutex<()>,
}

/// The authenticated properties of a client.
#[derive(Debug, Default)]
pub(super) struct Caller {
    claims: Option<Verified>,
    peer: Option<Arc<PeerIdentity>>,
}

impl Caller {
    /// The client as authenticated by certificate and token, for the owners of resources.
    pub(super) fn client(&self) -> Option<Client> {
        let certified = self.peer.as_ref().and_then(|peer| peer.instances.first().copied());
        let instance = self.claims.as_ref().map(|claims| claims.sub).or(certified)?;
        Some(Client { instance, process: certified.unwrap_or(instance) })
    }
}

impl Access {
    pub(super) fn new(settings: AccessSettings, certified: bool, client: Rc<http::Client>) -> Self {
        let keys = match &settings.keys {
            KeySource::File(keys) => keys.clone(),
            KeySource::Own(_) | KeySource::Nrf(_) => KeySet::default(),
        };
        Self {
            producer: settings.producer,
            source: settings.keys,
            exempt: settings.exempt,
            certified,
            verifier: RefCell::new(Verifier::new(keys)),
            client,
            asked: Cell::new(None),
            asking: Mutex::new(()),
        }
    }

    /// The keys that this process publishes if it has the NRF.
    pub(super) fn published(&self) -> Option<Vec<u8>> {
        match &self.source {
            KeySource::Own(keys) => Some(keys.published()),
            KeySource::Nrf(_) | KeySource::File(_) => None,
        }
    }

    /// Checks the head of a request, before its body is parsed.
    pub(super) async fn authenticate(
        &self,
        path: &str,
        headers: &HeaderMap,
        peer: Option<Arc<PeerIdentity>>,
    ) -> Result<Caller, Box<Problem>> {
        let service = path.strip_prefix('/').and_then(|rest| rest.split('/').next()).map(ServiceName::from);
        let Some(service) = service.filter(wants_token).filter(|_| self.producer.is_some()) else {
            return Ok(Caller { claims: None, peer });
        };
        if self.is_exempt(peer.as_deref()) && !headers.contains_key(AUTHORIZATION) {
            return Ok(Caller { claims: None, peer });
        }
        let claims = self.claims(&service, headers, peer.as_deref()).await;
        let claims = claims.map_err(|refusal| Box::new(refusal.problem()))?;
        Ok(Caller { claims: Some(claims), peer })
    }

    /// Whether the client is another vendor's NF without token support.
    fn is_exempt(&self, peer: Option<&PeerIdentity>) -> bool {
        match peer {
            Some(peer) => {
                !peer.nf_types.is_empty() && peer.nf_types.iter().all(|nf_type| self.exempt.contains(nf_type))
            }
            None => self.certified && !self.exempt.is_empty(),
        }
    }

    async fn claims(
        &self,
        service: &ServiceName,
        headers: &HeaderMap,
        peer: Option<&PeerIdentity>,
    ) -> Result<Verified, Refusal> {
        let token = bearer(headers)?.ok_or_else(|| Refusal::Missing(service.clone()))?;
        let claims = self.verify(token).await?;
        let producer = self.producer.as_ref().ok_or_else(|| Refusal::Missing(service.clone()))?;
        producer.admit(&claims, service)?;
        // A stolen token is useless without the certificate of the NF that it was issued to.
        if peer.is_some_and(|peer| !peer.instances.contains(&claims.sub)) {
            return Err(Refusal::Subject);
        }
        Ok(claims)
    }

    /// Checks the complete request: its operation and the client's NF type.
    pub(super) fn authorize(&self, caller: &Caller, request: &Request) -> Result<(), Box<Problem>> {
        let service = request.service();
        let is_service = request.target_uri().is_none() && wants_token(&service);
        let is_exempt = caller.claims.is_none() && self.is_exempt(caller.peer.as_deref());
        if is_service && self.producer.is_some() && !is_exempt {
            let claims = caller.claims.as_ref().ok_or(Refusal::Missing(service));
            let covered = claims.and_then(|claims| claims.covers(request.operation()));
            covered.map_err(|refusal| Box::new(refusal.problem()))?;
        }
        let Some(peer) = &caller.peer else { return Ok(()) };
        guard::Client { instances: &peer.instances, nf_types: &peer.nf_types }.check(request)
    }

    async fn verify(&self, token: &str) -> Result<Verified, Refusal> {
        let first = self.verifier.borrow_mut().verify(unix_s(), token);
        let is_old = self.asked.get().is_some_and(|asked| asked.elapsed() > REFRESH);
        if first != Err(Refusal::UnknownKey) && !is_old {
            return first;
        }
        // One task fetches the keys; the others wait for the result.
        let _asking = self.asking.lock().await;
        let again = self.verifier.borrow_mut().verify(unix_s(), token);
        let may_ask = self.asked.get().is_none_or(|asked| asked.elapsed() > PAUSE);
        if !may_ask || (again != Err(Refusal::UnknownKey) && !is_old) {
            return again;
        }
        self.asked.set(Some(Instant::now()));
        if let Some(keys) = self.fetch_keys().await {
            self.verifier.borrow_mut().set_keys(keys);
        }
        self.verifier.borrow_mut().verify(unix_s(), token)
    }

    /// Fetches the NRF's keys; `None` if that fails.
    async fn fetch_keys(&self) -> Option<KeySet> {
        let json = match &self.source {
            KeySource::Own(keys) => keys.published(),
            KeySource::Nrf(root) => {
                let origin = root.clone().as_ref().clone().with_prefix("");
                let uri = format!("{origin}{KEYS_PATH}");
                let request = hyper::Request::get(&uri).body(Bytes::new()).ok()?;
                match self.client.call(request).await {
                    Ok(response) if response.status().is_success() => response.into_body().to_vec(),
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
