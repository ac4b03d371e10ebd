//! The SBI server: passes peers' requests to shards and returns the responses.

use super::access::{Access, Caller, KEYS_PATH};
use super::log_rate::LogRate;
use super::plain::PlainUris;
use super::{Exchange, Recorder, Shards, convert};
use crate::http::{Exchanges, Handler};
use bytes::Bytes;
use hyper::Method;
use hyper::header::AUTHORIZATION;
use pith_nf::fabric::guard::{ClientIdentity, Proof};
use pith_nf::kit::Nf;
use pith_sbi::{ApiRoot, Cause, HttpRequest, Problem, Reply, Request, Scheme};
use pith_types::Supi;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// Handles requests of peers.
pub(super) struct SbiHandler<S> {
    /// Authority of the server's URIs.
    pub authority: Arc<str>,
    /// Scheme of the server's URIs.
    pub scheme: Scheme,
    pub shards: Rc<S>,
    pub exchanges: Rc<Exchanges<Reply>>,
    pub recorder: Option<Rc<Recorder>>,
    /// Authorizes requests.
    pub access: Rc<Access>,
    /// Rewrites answers, where clients speak cleartext and this process TLS.
    pub plain: Option<Rc<PlainUris>>,
    /// The shard for the next request without a subscriber.
    pub turn: Cell<u16>,
    /// Refused requests in the log.
    pub refusals: Rc<LogRate>,
}

impl<S: Shards> Handler for SbiHandler<S> {
    async fn handle(&self, mut request: hyper::Request<Bytes>) -> hyper::Response<Bytes> {
        let path = request.uri().path().to_owned();
        if let (KEYS_PATH, Some(keys)) = (path.as_str(), self.access.published()) {
            return hyper::Response::new(keys.into());
        }
        let identity = request.extensions().get::<Arc<ClientIdentity>>().cloned();
        let method = request.method().clone();
        let caller = match self.access.authenticate(&path, request.headers(), identity.clone()).await {
            Ok(caller) => caller,
            Err(problem) => {
                self.log_refusal(&method, &path, identity.as_deref(), &problem);
                return convert::to_response(problem.to_http(None));
            }
        };
        // No later code needs the token, and it must not be recorded.
        request.headers_mut().remove(AUTHORIZATION);
        let http = match convert::from_request(&path, request) {
            Ok(http) => http,
            Err(problem) => return convert::to_response(problem.to_http(None)),
        };
        let record = self.recorder.as_ref().map(|_| http.clone());
        let answer = match self.admit_request(&http, &caller) {
            Ok(request) => self.exchange(request, &caller).await,
            Err(problem) => {
                self.log_refusal(&method, &path, identity.as_deref(), &problem);
                problem.to_http(None)
            }
        };
        if let (Some(recorder), Some(record)) = (&self.recorder, record) {
            recorder.write(&record, &answer);
        }
        let mut response = convert::to_response(answer);
        if let Some(plain) = &self.plain {
            let mut body = std::mem::take(response.body_mut());
            plain.rewrite(response.headers_mut(), &mut body);
            *response.body_mut() = body;
        }
        response
    }
}

impl<S: Shards> SbiHandler<S> {
    fn admit_request(&self, http: &HttpRequest, caller: &Caller) -> pith_sbi::Result<Request> {
        let request = self.read(http)?;
        self.access.authorize(caller, &request)?;
        Ok(request)
    }

    /// Logs why a request is refused: not every client logs the reason that the response contains.
    fn log_refusal(&self, method: &Method, path: &str, identity: Option<&ClientIdentity>, problem: &Problem) {
        if self.refusals.should_log() {
            tracing::warn!("{}", refusal(method, path, identity, problem));
        }
    }

    fn read(&self, http: &HttpRequest) -> pith_sbi::Result<Request> {
        let root = ApiRoot::new(self.scheme, &self.authority);
        Request::from_http(&Arc::new(root), http)
    }

    async fn exchange(&self, request: Request, caller: &Caller) -> pith_sbi::HttpResponse {
        let operation = request.operation();
        match self.call_shard(request, caller).await {
            Ok(response) => response.to_http(),
            Err(problem) => problem.to_http(Some(operation)),
        }
    }

    /// Has a shard answer a request.
    async fn call_shard(&self, request: Request, caller: &Caller) -> Reply {
        let nf = target(&request).ok_or(Cause::InvalidApi)?;
        // A core has one NRF, on the first shard.
        let owner = if nf == Nf::Nrf { Some(0) } else { self.shards.owner(&request) };
        let shard = owner.unwrap_or_else(|| self.any_shard(&request));
        if self.shards.is_full(shard) {
            return Err(Problem::congestion(1).into());
        }
        let exchange = self.exchanges.open().ok_or_else(|| Problem::congestion(1))?;
        let from = Exchange { id: exchange.id, client: caller.client() };
        self.shards.request(shard, from, nf, request);
        exchange.answer().await
    }

    /// The shard for a request: for a subscriber always the same, else the next in rotation.
    fn any_shard(&self, request: &Request) -> u16 {
        let count = self.shards.count();
        match request.supi() {
            Some(supi) => (number(&supi) % u64::from(count)) as u16,
            None => self.turn.replace((self.turn.get() + 1) % count) % count,
        }
    }
}

/// The log line of a refused request. A foreign NF that is known by its address cannot get an access token.
fn refusal(method: &Method, path: &str, identity: Option<&ClientIdentity>, problem: &Problem) -> String {
    let client = identity.map_or_else(|| "an unknown client".to_owned(), ClientIdentity::to_string);
    let needs_token = problem.status == 401 && identity.is_some_and(|known| known.proof == Proof::Address);
    let advice = if needs_token {
        "; if the NF supports no access tokens, write 'oauth2: off' in its 'sbi.external'"
    } else {
        ""
    };
    format!("refused {method} {} of {client}: {problem}{advice}", pith_sbi::masked(path))
}

/// The NF that handles a request. Notifications of the NRF about NF instances are for the agents of shards.
fn target(request: &Request) -> Option<Nf> {
    match request {
        Request::NfStatusNotify(_) => Some(Nf::Agent),
        request => Nf::of_type(&request.target_nf()?),
    }
}

/// The digits of a SUPI as a number, so that consecutive SUPIs are spread over the shards.
fn number(supi: &Supi) -> u64 {
    supi.imsi().bytes().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_sbi::NfType;

    #[test]
    fn a_refusal_names_the_client_the_reason_and_the_setting() {
        let mut ausf = ClientIdentity {
            proof: Proof::Address,
            issuer: pith_nf::kit::Issuer::Address,
            instances: Vec::new(),
            nf_types: vec![NfType::Ausf],
            hosts: vec!["10.0.0.9".into()],
        };
        let line = |client: Option<&ClientIdentity>, status| {
            let problem = Problem::of_status(status).detail("why");
            refusal(&Method::GET, "/nudr-dr/v2/subscription-data/imsi-999700000000001/x", client, &problem)
        };
        let refused = "refused GET /nudr-dr/v2/subscription-data/imsi-99970********01/x of";
        let advice = "if the NF supports no access tokens, write 'oauth2: off' in its 'sbi.external'";
        assert_eq!(line(Some(&ausf), 403), format!("{refused} AUSF (10.0.0.9): 403: why"));
        assert_eq!(line(Some(&ausf), 401), format!("{refused} AUSF (10.0.0.9): 401: why; {advice}"));
        ausf.proof = Proof::Certificate;
        assert_eq!(line(Some(&ausf), 401), format!("{refused} AUSF (10.0.0.9): 401: why"));
        assert_eq!(line(None, 403), format!("{refused} an unknown client: 403: why"));
    }
}
