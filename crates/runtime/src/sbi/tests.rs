//! Tests of two processes' HTTP threads with simulated shards.

use super::*;
use crate::api::Status;
use crate::config::Config;
use crate::http::Limits;
use crate::token_keys::TokenKeys;
use hyper::StatusCode;
use pith_nf::kit::Tag;
use pith_nf::nrf::TokenSigner;
use pith_sbi::nnrf_nfmanagement::{GetNfInstance, NfStatusNotify, NotificationData, NotificationEventType};
use pith_sbi::npcf_ampolicycontrol::DeleteAmPolicyAssociation;
use pith_sbi::nudm_ueau::DeleteAuth;
use pith_sbi::token::{AccessTokenClaims, Producer};
use pith_sbi::{Cause, ChallengeError, NfInstanceId, NfType, Problem, ProblemMore, Response, Scheme};
use pith_types::{BlockOwner, ContextId, InstanceId, OwnerMap, ShardId};
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The result of a call with its token and the called apiRoot.
type Replied = (ShardToken, Option<Arc<ApiRoot>>, Reply);

const LIMITS: Limits = Limits {
    time: Duration::from_millis(400),
    body_time: Duration::from_millis(400),
    body: 1 << 20,
    buffered: 8 << 20,
    exchanges: 8,
};

/// The new tokens of the simulated shards.
#[derive(Default)]
struct Renewal {
    /// The token that replaces a refused one; the same one if `None`.
    token: Mutex<Option<Arc<str>>>,
    /// Number of tokens that were replaced.
    count: AtomicU32,
}

/// Two simulated shards. Deleting a policy association is answered at once, except `slow`, which is never
/// answered, and `none`, which does not exist. Shard 1 is full.
struct Played {
    http: Arc<OnceLock<HttpHandle>>,
    renewal: Arc<Renewal>,
    replies: Mutex<Sender<Replied>>,
    requests: Mutex<Sender<(u16, Request)>>,
}

impl Shards for Played {
    fn count(&self) -> u16 {
        2
    }

    fn owner(&self, request: &Request) -> Option<u16> {
        pith_nf::fabric::shard_of(&owners(), InstanceId(0), request)
    }

    fn is_full(&self, shard: u16) -> bool {
        shard == 1
    }

    fn request(&self, shard: u16, from: Exchange, nf: Nf, request: Request) {
        let exchange = from.id;
        let http = self.http.get().unwrap();
        match &request {
            Request::DeleteAmPolicyAssociation(delete) => {
                assert_eq!(nf, Nf::Pcf);
                match delete.pol_asso_id.split(['-', '.']).nth(1) {
                    Some("slow") => {}
                    Some("none") => http.answer(exchange, Err(Box::new(Problem::context_not_found()))),
                    _ => http.answer(exchange, Ok(Response::NoContent)),
                }
            }
            Request::NfStatusNotify(_) if nf == Nf::Agent => http.answer(exchange, Ok(Response::NoContent)),
            _ => http.answer(exchange, Err(Box::new(Problem::system_failure("not simulated")))),
        }
        self.requests.lock().unwrap().send((shard, request)).unwrap();
    }

    fn reply(&self, token: ShardToken, from: Option<Arc<ApiRoot>>, reply: Reply) {
        self.replies.lock().unwrap().send((token, from, reply)).unwrap();
    }

    fn token_refused(&self, token: ShardToken, root: Arc<ApiRoot>, request: Box<Request>, bearer: Bearer) {
        let renewed = self.renewal.token.lock().unwrap().clone();
        self.renewal.count.fetch_add(1, Ordering::Relaxed);
        let bearer = Bearer { token: renewed.unwrap_or(bearer.token), renewed: true };
        self.http.get().unwrap().call(token, root, None, *request, Some(bearer));
    }

    fn connection_lost(&self, _authority: &str) {}

    fn inspect(&self, topic: Topic, exchange: u64) -> usize {
        let http = self.http.get().unwrap();
        if let Topic::Ues(shard, page) = topic {
            http.inspected(exchange, vec![json!(format!("{shard} {}", page.limit))], None);
            return 1;
        }
        http.inspected(exchange, vec![json!(format!("{topic:?}"))], None);
        http.inspected(exchange, vec![json!(2)], None);
        2
    }
}

struct Process {
    http: HttpHandle,
    thread: Option<HttpThread>,
    sbi: SocketAddr,
    api: SocketAddr,
    replies: Receiver<Replied>,
    requests: Receiver<(u16, Request)>,
    renewal: Arc<Renewal>,
}

impl Process {
    fn start(recorder: Option<Recorder>) -> Self {
        let keys = KeySource::File(pith_sbi::token::KeySet::default());
        Self::start_with(recorder, AccessSettings { producer: None, keys, exempt: vec![] })
    }

    fn start_with(recorder: Option<Recorder>, access: AccessSettings) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (listener, api) = (bind(any, "sbi.listen").unwrap(), bind(any, "api.listen").unwrap());
        let (sbi, api_address) = (listener.local_addr().unwrap(), api.local_addr().unwrap());
        let ((replies_in, replies), (requests_in, requests)) = (channel(), channel());
        let own = Arc::new(OnceLock::new());
        let renewal = Arc::new(Renewal::default());
        let shards = Played {
            http: own.clone(),
            renewal: renewal.clone(),
            replies: replies_in.into(),
            requests: requests_in.into(),
        };
        let settings = SbiSettings {
            listeners: vec![listener],
            plain_listener: None,
            tls: None,
            external_peers: vec![],
            limits: LIMITS,
            recorder,
            known: [any.ip()].into(),
            access,
        };
        let status = || Status {
            state: "ready",
            version: "0",
            uptime_s: 0,
            ready_after_ms: None,
            nfs: vec![],
            shards: 2,
            contexts: None,
            set: None,
            user_plane: None,
        };
        let api = ApiSettings {
            listeners: vec![ApiListener::Tcp(api)],
            guard: crate::api::Guard::open("test", crate::api::Tokens::in_memory()),
            audit: crate::api::Audit::in_memory(),
            upf: None,
            store: None,
            status: Box::new(status),
            config: Config::default(),
        };
        let (http, thread) = start(settings, Some(api), shards, crate::gate::Gate::opened()).unwrap();
        own.set(http.clone()).ok().unwrap();
        Self { http, thread: Some(thread), sbi, api: api_address, replies, requests, renewal }
    }

    fn root(&self) -> Arc<ApiRoot> {
        Arc::new(ApiRoot::new(Scheme::Http, &self.sbi.to_string()))
    }

    fn call(&self, step: u32, root: &Arc<ApiRoot>, request: impl Into<Request>) {
        let token = ShardToken { shard: 0, nf: Nf::Amf, tag: Tag::new(7, step) };
        self.http.call(token, root.clone(), None, request.into(), None);
    }

    /// Calls with an access token that is not renewed after a refusal.
    fn call_with(&self, access: &str, root: &Arc<ApiRoot>, request: impl Into<Request>) {
        self.call_with_bearer(Bearer { token: access.into(), renewed: true }, root, request);
    }

    fn call_with_bearer(&self, bearer: Bearer, root: &Arc<ApiRoot>, request: impl Into<Request>) {
        let token = ShardToken { shard: 0, nf: Nf::Amf, tag: Tag::new(7, 1) };
        self.http.call(token, root.clone(), None, request.into(), Some(bearer));
    }

    fn reply(&self) -> (u32, Reply) {
        let (token, _, reply) = self.replies.recv_timeout(Duration::from_secs(5)).unwrap();
        (token.tag.step, reply)
    }

    fn problem(&self) -> Problem {
        *self.reply().1.unwrap_err()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.http.drain();
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

/// The owner map of the two shards.
fn owners() -> OwnerMap {
    OwnerMap::of_instance(InstanceId(0), 2)
}

/// The deletion of an association of the first shard.
fn delete(name: &str) -> DeleteAmPolicyAssociation {
    delete_at(0, name)
}

/// The deletion of an association of a shard.
fn delete_at(shard: u8, name: &str) -> DeleteAmPolicyAssociation {
    let owner = BlockOwner { instance: InstanceId(0), shard: ShardId(shard) };
    let block = owners().blocks_of(owner).next().unwrap();
    let id = ContextId { block, number: 1 };
    DeleteAmPolicyAssociation { pol_asso_id: format!("{id}-{name}.0000000000000000") }
}

#[test]
fn a_call_over_http_2_returns_its_response_to_the_caller() {
    let (amf, pcf) = (Process::start(None), Process::start(None));
    let root = pcf.root();
    amf.call(1, &root, delete("a b/c"));
    let (token, from, reply) = amf.replies.recv_timeout(Duration::from_secs(5)).unwrap();
    assert_eq!((token.tag, from, reply), (Tag::new(7, 1), Some(root), Ok(Response::NoContent)));
    assert_eq!(pcf.requests.recv().unwrap(), (0, delete("a b/c").into()));
}

#[test]
fn problems_keep_their_causes_over_http_2() {
    let (amf, pcf) = (Process::start(None), Process::start(None));
    amf.call(1, &pcf.root(), delete("none"));
    assert!(amf.problem().is(&Cause::ContextNotFound));
    amf.call(2, &pcf.root(), delete_at(1, "a"));
    assert!(amf.problem().is(&Cause::NfCongestion), "the association is on a full shard");
    let strange = ApiRoot::clone(&pcf.root()).with_prefix("/s0");
    amf.call(3, &Arc::new(strange), delete("a"));
    assert_eq!(amf.problem().status, 400, "a process has one apiRoot, without a prefix");
}

#[test]
fn an_unanswered_request_fails_with_504() {
    let (amf, pcf) = (Process::start(None), Process::start(None));
    let begun = Instant::now();
    amf.call(1, &pcf.root(), delete("slow"));
    assert_eq!(amf.problem().status, 504);
    assert!(begun.elapsed() < Duration::from_secs(2));
    amf.call(2, &pcf.root(), delete("quick"));
    assert_eq!(amf.reply(), (2, Ok(Response::NoContent)), "other requests are not delayed");
}

#[test]
fn more_open_exchanges_than_allowed_are_refused() {
    let (amf, pcf) = (Process::start(None), Process::start(None));
    for step in 0..=8 {
        amf.call(step, &pcf.root(), delete("slow"));
    }
    assert!(amf.problem().is(&Cause::NfCongestion));
}

#[test]
fn a_missing_peer_and_one_that_requires_tls_are_not_reachable() {
    let amf = Process::start(None);
    let gone = Process::start(None).root();
    amf.call(1, &gone, delete("a"));
    assert!(amf.problem().is(&Cause::TargetNfNotReachable));
    amf.call(2, &Arc::new(ApiRoot::new(Scheme::Https, "127.0.0.1:1")), delete("a"));
    assert!(amf.problem().to_string().contains("TLS"));
}

/// The peer may have processed the request: for a peer that was not reached the cause is another one.
#[test]
fn a_connection_that_ends_before_the_answer_is_a_network_failure() {
    let peer = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let root = Arc::new(ApiRoot::new(Scheme::Http, &peer.local_addr().unwrap().to_string()));
    std::thread::spawn(move || {
        for stream in peer.incoming() {
            let mut stream = stream.unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            while std::io::Read::read(&mut stream, &mut [0; 4096]).is_ok_and(|octets| octets > 0) {}
        }
    });
    let amf = Process::start(None);
    amf.call(1, &root, delete("a"));
    assert!(amf.problem().is(&Cause::NetworkFailure));
}

#[test]
fn requests_for_a_subscriber_use_the_same_shard() {
    let (ausf, udm) = (Process::start(None), Process::start(None));
    for _ in 0..3 {
        let supi = "imsi-999700000000002".parse().unwrap();
        let body = serde_json::from_value(json!({
            "nfInstanceId": "b0b5c1c5-7ba2-4d2a-8e3b-3a5f6a7c8d9e", "success": true, "authRemovalInd": true,
            "timeStamp": "2026-01-01T00:00:00Z", "authType": "5G_AKA", "servingNetworkName": "5G:mnc070.mcc999.3gppnetwork.org",
        }));
        let request = DeleteAuth { supi, auth_event_id: "1".into(), body: body.unwrap() };
        ausf.call(1, &udm.root(), request);
        assert_eq!(udm.requests.recv_timeout(Duration::from_secs(5)).unwrap().0, 0);
    }
    ausf.call(
        2,
        &udm.root(),
        GetNfInstance {
            nf_instance_id: "b0b5c1c5-7ba2-4d2a-8e3b-3a5f6a7c8d9e".parse().unwrap(),
            requester_features: None,
        },
    );
    assert!(ausf.reply().1.is_err());
}

#[test]
fn notifications_of_the_nrf_reach_the_agent() {
    let (nrf, amf) = (Process::start(None), Process::start(None));
    let uri = NfStatusNotify::callback_uri(&amf.root(), &NfType::Amf, "000000000-SMF.0000000000000000");
    let body = NotificationData::new(NotificationEventType::NfDeregistered, uri.clone());
    nrf.call(1, &amf.root(), NfStatusNotify { uri, body });
    assert_eq!(nrf.reply(), (1, Ok(Response::NoContent)));
}

/// An AMF, a PCF that requires tokens, and the keys of their NRF.
struct Guarded {
    amf: Process,
    pcf: Process,
    keys: Arc<TokenKeys>,
}

impl Guarded {
    fn start() -> Self {
        let keys = Arc::new(TokenKeys::open(None).unwrap());
        let producer = Producer {
            instances: vec![(NfType::Pcf, NfInstanceId(3))],
            plmns: vec!["999/70".parse().unwrap()],
            ..Producer::default()
        };
        let source = KeySource::Own(Arc::clone(&keys), NfInstanceId(1));
        let access = AccessSettings { producer: Some(producer), keys: source, exempt: vec![] };
        Self { amf: Process::start(None), pcf: Process::start_with(None, access), keys }
    }

    fn claims() -> AccessTokenClaims {
        let (nrf, amf) = (NfInstanceId(1), NfInstanceId(2));
        let mut claims =
            AccessTokenClaims::new(nrf, amf, NfType::Pcf, "npcf-am-policy-control", unix_s() + 60);
        claims.producer_plmn_id = Some("999/70".parse().unwrap());
        claims
    }

    fn token(&self, change: impl FnOnce(&mut AccessTokenClaims)) -> String {
        let mut claims = Self::claims();
        change(&mut claims);
        self.keys.sign(unix_s(), &claims).unwrap()
    }

    /// Asserts that the request is accepted.
    fn admits(&self, token: &str) {
        self.amf.call_with(token, &self.pcf.root(), delete("a"));
        assert_eq!(self.amf.reply().1, Ok(Response::NoContent));
        assert!(self.pcf.requests.recv_timeout(Duration::from_secs(5)).is_ok());
    }

    /// Calls with a token of which the client does not know whether the producer accepts it.
    fn call_with_first(&self, token: &str) -> Reply {
        let bearer = Bearer { token: token.into(), renewed: false };
        self.amf.call_with_bearer(bearer, &self.pcf.root(), delete("a"));
        self.amf.reply().1
    }

    /// Number of tokens that the client has replaced.
    fn renewals(&self) -> u32 {
        self.amf.renewal.count.load(Ordering::Relaxed)
    }

    /// Asserts that the request is refused with this status and challenge before it reaches a shard.
    fn refuses(&self, token: &str, status: u16, error: ChallengeError) {
        self.amf.call_with(token, &self.pcf.root(), delete("a"));
        let problem = self.amf.problem();
        assert_eq!(problem.status, status, "{problem}");
        let Some(ProblemMore::Challenge(challenge)) = &problem.more else { panic!("{problem:?}") };
        assert_eq!(challenge.error, Some(error), "{problem}");
        assert!(self.pcf.requests.try_recv().is_err(), "{problem}");
    }
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// TS 33.117 4.2.2.2.3.1.
#[test]
fn tc_authorization_token_verification_failure_one_plmn() {
    let guarded = Guarded::start();
    guarded.admits(&guarded.token(|_| {}));
    guarded.admits(&guarded.token(|claims| claims.aud = NfInstanceId(3).into()));
    let strange = TokenKeys::open(None).unwrap().sign(unix_s(), &Guarded::claims()).unwrap();
    guarded.refuses(&strange, 401, ChallengeError::InvalidToken);
    let (signed, _) = strange.rsplit_once('.').unwrap();
    let good = guarded.token(|_| {});
    let (head, signature) = good.rsplit_once('.').unwrap();
    guarded.refuses(&format!("{signed}.{signature}"), 401, ChallengeError::InvalidToken);
    let longer = guarded.token(|claims| claims.exp += 600);
    let (_, of_another) = longer.rsplit_once('.').unwrap();
    guarded.refuses(&format!("{head}.{of_another}"), 401, ChallengeError::InvalidToken);
    guarded.refuses(&format!("{head}."), 401, ChallengeError::InvalidToken);
    guarded.refuses("a.b.c", 401, ChallengeError::InvalidToken);
    let of_another_nrf = guarded.token(|claims| claims.iss = NfInstanceId(5));
    guarded.refuses(&of_another_nrf, 401, ChallengeError::InvalidToken);
    let expired = guarded.token(|claims| claims.exp = unix_s() - 60);
    guarded.refuses(&expired, 401, ChallengeError::InvalidToken);
    let of_udm = guarded.token(|claims| claims.aud = NfType::Udm.into());
    guarded.refuses(&of_udm, 401, ChallengeError::InvalidToken);
    let of_other_instance = guarded.token(|claims| claims.aud = NfInstanceId(4).into());
    guarded.refuses(&of_other_instance, 401, ChallengeError::InvalidToken);
    let of_other_service = guarded.token(|claims| claims.scope = "npcf-smpolicycontrol".into());
    guarded.refuses(&of_other_service, 403, ChallengeError::InsufficientScope);
    // Without a token there is no error code (RFC 6750 3.1).
    guarded.amf.call(1, &guarded.pcf.root(), delete("a"));
    let problem = guarded.amf.problem();
    let Some(ProblemMore::Challenge(challenge)) = &problem.more else { panic!("{problem:?}") };
    assert_eq!((problem.status, &challenge.error), (401, &None));
    assert_eq!(challenge.scope.as_deref(), Some("npcf-am-policy-control"));
    guarded.admits(&good);
}

/// TS 33.117 4.2.2.2.3.2.
#[test]
fn tc_authorization_token_verification_failure_diff_plmn() {
    let guarded = Guarded::start();
    guarded.admits(&guarded.token(|claims| claims.consumer_plmn_id = Some("001/01".parse().unwrap())));
    let of_other_plmn = guarded.token(|claims| claims.producer_plmn_id = Some("001/01".parse().unwrap()));
    guarded.refuses(&of_other_plmn, 401, ChallengeError::InvalidToken);
}

/// The clock of the producer is ahead of the token's expiry (RFC 6750 3.1).
#[test]
fn a_call_with_a_refused_token_is_repeated_once_with_a_new_one() {
    let guarded = Guarded::start();
    *guarded.amf.renewal.token.lock().unwrap() = Some(guarded.token(|_| {}).into());
    let expired = guarded.token(|claims| claims.exp = unix_s() - 60);
    assert_eq!(guarded.call_with_first(&expired), Ok(Response::NoContent));
    assert_eq!(guarded.renewals(), 1);
    assert!(guarded.pcf.requests.recv_timeout(Duration::from_secs(5)).is_ok());
    assert!(guarded.pcf.requests.try_recv().is_err(), "the refused request did not reach a shard");
}

#[test]
fn a_producer_that_refuses_all_tokens_does_not_cost_one_for_each_call() {
    let guarded = Guarded::start();
    for number in 0..10 {
        let expired = guarded.token(|claims| claims.exp = unix_s() - 60 - number);
        let problem = guarded.call_with_first(&expired).unwrap_err();
        assert!(problem.is_invalid_token(), "{problem}");
    }
    assert_eq!(guarded.renewals(), 1);
    // Another producer is not affected.
    let other = Guarded::start();
    let expired = other.token(|claims| claims.exp = unix_s() - 60);
    let bearer = Bearer { token: expired.as_str().into(), renewed: false };
    guarded.amf.call_with_bearer(bearer, &other.pcf.root(), delete("a"));
    assert!(guarded.amf.problem().is_invalid_token());
    assert_eq!(guarded.renewals(), 2);
    // What a producer accepts is accepted at once, also by the first one.
    assert_eq!(guarded.call_with_first(&guarded.token(|_| {})), Ok(Response::NoContent));
}

#[test]
fn draining_completes_open_requests_before_the_thread_ends() {
    let (amf, mut pcf) = (Process::start(None), Process::start(None));
    amf.call(1, &pcf.root(), delete("slow"));
    pcf.requests.recv_timeout(Duration::from_secs(5)).unwrap();
    pcf.http.drain();
    pcf.http.answer(1, Ok(Response::NoContent));
    assert_eq!(amf.reply(), (1, Ok(Response::NoContent)));
    pcf.thread.take().unwrap().join();
}

#[test]
fn exchanges_are_recorded_as_json_lines() {
    let directory = std::env::temp_dir().join(format!("pith-record-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    {
        let (amf, pcf) = (Process::start(None), Process::start(Some(Recorder::new(&directory).unwrap())));
        amf.call(1, &pcf.root(), delete("none"));
        let _ = amf.reply();
    }
    let file = std::fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let path = format!("/npcf-am-policy-control/v1/policies/{}", delete("none").pol_asso_id);
    assert_eq!(lines[0]["path"], path);
    assert_eq!((&lines[1]["direction"], &lines[1]["status"]), (&"response".into(), &404.into()));
    assert!(lines[1].to_string().contains("CONTEXT_NOT_FOUND"));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn the_api_is_served_by_the_same_thread() {
    let process = Process::start(None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(tokio::task::LocalSet::new().run_until(async {
        let client = crate::http::Client::new(LIMITS);
        let get = |path: &str| {
            let uri = format!("http://{}{path}", process.api);
            client.call(hyper::Request::get(uri).body(bytes::Bytes::new()).unwrap())
        };
        let gnbs = get("/v1/gnbs").await.unwrap();
        assert_eq!((gnbs.status(), gnbs.body().as_ref()), (StatusCode::OK, br#"["Gnbs",2]"#.as_ref()));
        let ues = get("/v1/ues?limit=5").await.unwrap();
        assert_eq!(
            ues.body().as_ref(),
            br#"["0 5","1 4"]"#.as_ref(),
            "the rest of a page is of the next shard"
        );
        assert_eq!(get("/v1/subscribers").await.unwrap().status(), StatusCode::NOT_IMPLEMENTED);
    }));
}

#[test]
fn the_api_refuses_before_reading_the_body() {
    let process = Process::start(None);
    let mut stream = std::net::TcpStream::connect(process.api).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let head = "POST /v1/subscribers HTTP/1.1\r\nhost: x\r\norigin: http://evil.example\r\ncontent-length: 268435456\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut line = String::new();
    std::io::BufReader::new(stream).read_line(&mut line).expect("an answer without the body");
    assert!(line.starts_with("HTTP/1.1 403"), "{line}");
}

#[test]
fn only_an_import_may_have_a_large_body() {
    let process = Process::start(None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(tokio::task::LocalSet::new().run_until(async {
        let client = crate::http::Client::new(Limits { time: Duration::from_secs(10), ..LIMITS });
        let send = |method: &str, path: &str| {
            let request =
                hyper::Request::builder().method(method).uri(format!("http://{}{path}", process.api));
            client.call(request.body(vec![b' '; 2 << 20].into()).unwrap())
        };
        let put = send("PUT", "/v1/subscribers/imsi-999700000000001").await.unwrap();
        assert_eq!(put.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let import = send("POST", "/v1/subscribers").await.unwrap();
        assert_eq!(import.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "the whole body was read");
    }));
}

#[test]
fn an_address_in_use_names_the_setting_to_change() {
    let taken = bind(SocketAddr::from(([127, 0, 0, 1], 0)), "x").unwrap();
    let error = bind(taken.local_addr().unwrap(), "sbi.listen").unwrap_err().to_string();
    assert!(error.contains("'sbi.listen'"), "{error}");
}
