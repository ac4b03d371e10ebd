//! The SBI's server: from a request of a peer to a shard, and back.

use super::access::{Access, Caller, KEYS_PATH};
use super::{Exchange, Recorder, Shards, convert};
use crate::http::{Exchanges, Handler, PeerIdentity};
use bytes::Bytes;
use hyper::header::AUTHORIZATION;
use pith_nf::kit::Nf;
use pith_sbi::{ApiRoot, Cause, HttpRequest, Problem, Reply, Request, Scheme};
use pith_types::Supi;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// Answers requests of peers.
pub(super) struct SbiHandler<S> {
    /// Where it stands.
    pub authority: Arc<str>,
    /// With or without TLS.
    pub scheme: Scheme,
    pub shards: Rc<S>,
    pub exchanges: Rc<Exchanges<Reply>>,
    pub recorder: Option<Rc<Recorder>>,
    /// Who is let in.
    pub access: Rc<Access>,
    /// The shard that takes the next request that is nobody's.
    pub turn: Cell<u16>,
}

impl<S: Shards> Handler for SbiHandler<S> {
    async fn handle(&self, mut request: hyper::Request<Bytes>) -> hyper::Response<Bytes> {
        let path = request.uri().path().to_owned();
        let (shard, prefix, rest) = convert::split_shard(&path);
        if let (KEYS_PATH, Some(keys)) = (rest, self.access.published()) {
            return hyper::Response::new(keys.into());
        }
        let peer = request.extensions().get::<Arc<PeerIdentity>>().cloned();
        let caller = match self.access.authenticate(rest, request.headers(), peer).await {
            Ok(caller) => caller,
            Err(problem) => return convert::to_response(problem.to_http(None)),
        };
        // Nobody behind this has a use for it, least of all a record.
        request.headers_mut().remove(AUTHORIZATION);
        let http = match convert::from_request(rest, request) {
            Ok(http) => http,
            Err(problem) => return convert::to_response(problem.to_http(None)),
        };
        let record = self.recorder.as_ref().map(|_| http.clone());
        let answer = match self.admit_request(prefix, &http, &caller) {
            Ok(request) => self.exchange(shard, request, &caller).await,
            Err(problem) => problem.to_http(None),
        };
        if let (Some(recorder), Some(record)) = (&self.recorder, record) {
            recorder.write(&record, &answer);
        }
        convert::to_response(answer)
    }
}

impl<S: Shards> SbiHandler<S> {
    fn admit_request(&self, prefix: &str, http: &HttpRequest, caller: &Caller) -> pith_sbi::Result<Request> {
        let request = self.read(prefix, http)?;
        self.access.authorize(caller, &request)?;
        Ok(request)
    }

    fn read(&self, prefix: &str, http: &HttpRequest) -> pith_sbi::Result<Request> {
        let root = ApiRoot { scheme: self.scheme, authority: self.authority.clone(), prefix: prefix.into() };
        Request::from_http(&Arc::new(root), http)
    }

    async fn exchange(
        &self,
        shard: Option<u16>,
        request: Request,
        caller: &Caller,
    ) -> pith_sbi::HttpResponse {
        let operation = request.operation();
        match self.ask(shard, request, caller).await {
            Ok(response) => response.to_http(),
            Err(problem) => problem.to_http(Some(operation)),
        }
    }

    /// Has a shard answer.
    async fn ask(&self, shard: Option<u16>, request: Request, caller: &Caller) -> Reply {
        let nf = target(&request).ok_or(Cause::InvalidApi)?;
        let shard = match shard {
            Some(shard) if shard < self.shards.count() => shard,
            Some(_) => {
                return Err(Problem::context_not_found().detail("there is no such shard any more").into());
            }
            // There is one NRF in a core: that of the first shard.
            None if nf == Nf::Nrf => 0,
            None => self.any_shard(&request),
        };
        if self.shards.is_full(shard) {
            return Err(Problem::congestion(1).into());
        }
        let exchange = self.exchanges.open().ok_or_else(|| Problem::congestion(1))?;
        let from = Exchange { id: exchange.id, client: caller.instance() };
        self.shards.request(shard, from, nf, request);
        exchange.answer().await
    }

    /// One shard for all requests about a subscriber; else each in turn.
    fn any_shard(&self, request: &Request) -> u16 {
        let count = self.shards.count();
        match request.supi() {
            Some(supi) => (number(&supi) % u64::from(count)) as u16,
            None => self.turn.replace((self.turn.get() + 1) % count) % count,
        }
    }
}

/// Whom a request is for; the NRF tells the agents of shards what becomes of NF instances.
fn target(request: &Request) -> Option<Nf> {
    match request {
        Request::NfStatusNotify(_) => Some(Nf::Agent),
        request => Nf::of_type(&request.target_nf()?),
    }
}

/// The digits of a SUPI; neighbours get different numbers.
fn number(supi: &Supi) -> u64 {
    supi.imsi().bytes().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}
