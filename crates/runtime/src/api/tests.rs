//! Tests of the API through its handler.

use super::*;
use crate::config::{Config, Role};
use crate::http::{Limits, Listener, Protocol, Server};
use crate::residency::Statistics;
use crate::store::{Database, DatabaseLocation, Existing, start};
use audit::{State, Wanted};
use hyper::StatusCode;
use pith_nf::kit::Subscriber;
use pith_types::Supi;
use serde_json::{Value, json};
use std::cell::Cell;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

/// Time that shards take for an order.
const WORK: Duration = Duration::from_millis(100);

struct Client(ApiHandler);

impl Client {
    fn new() -> Self {
        Self::behind(Guard::open("test", Tokens::in_memory()))
    }

    fn behind(guard: Guard) -> Self {
        let database = Database::open(&DatabaseLocation::Memory).unwrap();
        let (store, _) = start(database, |_: ShardToken, _| ()).unwrap();
        let status = || Status {
            state: "ready",
            version: "0",
            uptime_s: 1,
            ready_after_ms: Some(7),
            nfs: vec!["amf".into()],
            shards: 2,
            contexts: Some(crate::api::ContextStatus {
                residency: "durable".into(),
                engine: "file".into(),
                write: "replace".into(),
                operations: Statistics { writes: 5, write_ns: 7_000, ..Statistics::default() }.into(),
                procedures: std::collections::BTreeMap::new(),
                between_transactions: crate::api::ContextStatus::between_transactions(&Default::default()),
                embedded: None,
                restored: 3,
                unreadable: 0,
                error: None,
            }),
            set: Some(crate::api::SetStatus {
                instance: 1,
                lease_ms: 3000,
                error: Some("no server".into()),
                instances: vec![crate::api::InstanceStatus {
                    instance: 1,
                    root: "http://10.0.0.1:80".into(),
                    lives: true,
                    blocks: 1024,
                    homes: 512,
                }],
            }),
            user_plane: Some(crate::api::inspect::UserPlaneStatus {
                path: "portable",
                detail: "no interface".into(),
                faster: Some("name the interfaces".into()),
            }),
        };
        Self(ApiHandler::new(Rc::new_cyclic(|api: &std::rc::Weak<Api>| {
            let shards = api.clone();
            let ask = move |topic: Topic, id: u64| {
                let (api, asked) = (shards.clone(), topic.clone());
                tokio::task::spawn_local(async move {
                    if matches!(topic, Topic::Order(_)) {
                        sleep(WORK).await;
                    }
                    let gather = api.upgrade().unwrap().gather.clone();
                    if let Topic::Ues(shard, page) | Topic::Sessions(shard, page) = &topic {
                        let (list, next) = played(*shard, page);
                        return gather.answer(id, list, next);
                    }
                    gather.answer(id, vec![json!({ "shard": 0, "topic": format!("{topic:?}") })], None);
                    gather.answer(id, vec![json!({ "shard": 1 })], None);
                    gather.answer(id, vec![json!("too late")], None);
                });
                if matches!(asked, Topic::Ues(..) | Topic::Sessions(..)) { 1 } else { 2 }
            };
            Api {
                guard,
                audit: Audit::in_memory(),
                store: Some(store),
                upf: None,
                gather: Rc::new(Gather::new(Box::new(ask))),
                status: Box::new(status),
                config: Config::default(),
            }
        })))
    }

    async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
        self.send_with("", method, path, body).await
    }

    async fn send_with(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let mut request = Request::builder().method(method).uri(path).header("host", "127.0.0.1");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let response = self.0.handle(request.body(body.into()).unwrap()).await;
        let value = serde_json::from_slice(response.body()).unwrap_or(Value::Null);
        (response.status(), value)
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(LocalSet::new().run_until(test));
}

fn subscriber_of(number: u64) -> Subscriber {
    let supi = Supi::from_imsi(&format!("99970{number:010}")).unwrap();
    Subscriber::with_defaults(supi, [0x46; 16], [2; 16])
}

fn subscriber(number: u64) -> Value {
    serde_json::to_value(subscriber_of(number)).unwrap()
}

/// A core that is not running can deregister no UE: its next start does.
#[test]
fn ues_of_subscribers_that_are_deleted_while_no_core_runs_are_deregistered_at_its_start() {
    run(async {
        let withdrawn = |store: &mut Database| store.withdrawn(10);
        let running = Client::new();
        let of_running = running.0.api().store.clone().unwrap();
        running.send("POST", "/v1/subscribers", Some(&subscriber(1))).await;
        running.send("DELETE", "/v1/subscribers/imsi-999700000000001", None).await;
        assert!(of_running.run(withdrawn).await.unwrap().is_empty(), "the AMFs have confirmed it");

        let database = Database::open(&DatabaseLocation::Memory).unwrap();
        let (api, _thread) = Api::on_database(database, Config::default()).unwrap();
        let store = api.store.clone().unwrap();
        let stopped = Client(ApiHandler::new(Rc::clone(&api)));
        stopped.send("POST", "/v1/subscribers", Some(&subscriber(1))).await;
        stopped.send("DELETE", "/v1/subscribers/imsi-999700000000001", None).await;
        stopped.send("DELETE", "/v1/subscribers/imsi-999700000000002", None).await;
        let supi = Supi::from_imsi("999700000000001").unwrap();
        assert_eq!(store.run(withdrawn).await.unwrap(), std::slice::from_ref(&supi));
        // As with another SIM: the registration of the former one ends, too.
        stopped.send("POST", "/v1/subscribers", Some(&subscriber(1))).await;
        assert_eq!(store.run(withdrawn).await.unwrap(), [supi]);
        api.end_withdrawn().await;
        assert_eq!(store.run(withdrawn).await.unwrap().len(), 1, "it is still not running");
        let api = running.0.api();
        of_running
            .run(|store| store.add_subscribers(vec![subscriber_of(3)], Existing::Refuse))
            .await
            .unwrap();
        of_running
            .run(|store| store.delete_subscribers(&[Supi::from_imsi("999700000000003").unwrap()]))
            .await
            .unwrap();
        api.end_withdrawn().await;
        assert!(of_running.run(withdrawn).await.unwrap().is_empty());
    });
}

#[test]
fn a_subscriber_is_added_shown_replaced_and_deleted() {
    run(async {
        let client = Client::new();
        let path = "/v1/subscribers/imsi-999700000000001";
        assert_eq!(client.send("GET", path, None).await.0, StatusCode::NOT_FOUND);
        let (status, added) = client.send("POST", "/v1/subscribers", Some(&subscriber(1))).await;
        assert_eq!((status, added), (StatusCode::CREATED, json!({ "added": 1, "replaced": 0, "kept": 0 })));
        let (status, problem) = client.send("POST", "/v1/subscribers", Some(&subscriber(1))).await;
        assert_eq!(status, StatusCode::CONFLICT);
        assert!(problem["detail"].as_str().unwrap().contains("imsi-999700000000001"), "{problem}");
        assert_eq!(client.send("PUT", path, Some(&subscriber(1))).await.0, StatusCode::OK);
        assert_eq!(client.send("PUT", path, Some(&subscriber(2))).await.0, StatusCode::BAD_REQUEST);
        assert_eq!(client.send("DELETE", path, None).await.0, StatusCode::NO_CONTENT);
        assert_eq!(client.send("DELETE", path, None).await.0, StatusCode::NOT_FOUND);
    });
}

/// The NFs that serve the UE get the change at once, or after the next start.
#[test]
fn a_replaced_subscriber_is_left_to_the_udr() {
    run(async {
        let client = Client::new();
        let store = client.0.api().store.clone().unwrap();
        client.send("POST", "/v1/subscribers", Some(&subscriber(1))).await;
        let supi = Supi::from_imsi("999700000000001").unwrap();
        let resource = "context-data/amf-3gpp-access".to_owned();
        let put = pith_nf::kit::StoreRequest::PutDocument { supi, resource, body: "{}".into() };
        store.run(move |store| store.handle(&put).map(drop)).await.unwrap();
        let mut changed = subscriber(1);
        changed["ambr"]["uplink"] = json!("5 Mbps");
        let path = "/v1/subscribers/imsi-999700000000001";
        assert_eq!(client.send("PUT", path, Some(&changed)).await.0, StatusCode::OK);
        let rows = store.run(|store| store.changed(0, 10)).await.unwrap();
        assert_eq!(rows.len(), 1);
    });
}

#[test]
fn keys_are_returned_only_on_request() {
    run(async {
        let client = Client::new();
        client.send("POST", "/v1/subscribers", Some(&subscriber(1))).await;
        for path in ["/v1/subscribers", "/v1/subscribers/imsi-999700000000001"] {
            let shown = client.send("GET", path, None).await.1.to_string();
            assert!(!shown.contains("4646") && !shown.contains("opc"), "{shown}");
            let all = client.send("GET", &format!("{path}?keys=true"), None).await.1.to_string();
            assert!(all.contains("4646") && all.contains("opc"), "{all}");
        }
    });
}

#[test]
fn a_range_is_added_listed_in_pages_and_deleted() {
    run(async {
        let client = Client::new();
        let (status, added) = client.send("POST", "/v1/subscribers?count=250", Some(&subscriber(1))).await;
        assert_eq!((status, &added["added"]), (StatusCode::CREATED, &json!(250)));
        let (_, page) = client.send("GET", "/v1/subscribers?after=imsi-999700000000100", None).await;
        assert_eq!((&page["total"], &page["next"]), (&json!(250), &json!("imsi-999700000000200")));
        let (_, last) = client.send("GET", "/v1/subscribers?after=imsi-999700000000200", None).await;
        assert_eq!((last["subscribers"].as_array().unwrap().len(), &last["next"]), (50, &Value::Null));
        let path = "/v1/subscribers/imsi-999700000000101?count=1000";
        assert_eq!(client.send("DELETE", path, None).await.1, json!({ "deleted": 150 }));
    });
}

#[test]
fn a_ue_is_deregistered_by_its_supi() {
    run(async {
        let client = Client::new();
        let (status, _) = client.send("DELETE", "/v1/ues/imsi-999700000000001", None).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
        let (status, problem) = client.send("DELETE", "/v1/ues/999", None).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
    });
}

#[test]
fn orders_for_the_amf_name_a_ue_a_gnb_or_a_capacity() {
    run(async {
        let client = Client::new();
        let right = [
            ("POST", "/v1/ues/imsi-999700000000001/locate"),
            ("POST", "/v1/gnbs/reset?gnb=999/70-gnb-000001"),
            ("PUT", "/v1/amf/capacity/255"),
            ("PUT", "/v1/amf/endpoints/10.0.0.6?weight=0"),
            ("DELETE", "/v1/amf/endpoints/10.0.0.6"),
        ];
        for (method, path) in right {
            assert_eq!(client.send(method, path, None).await.0, StatusCode::NO_CONTENT, "{path}");
        }
        let wrong = [
            ("POST", "/v1/ues/999/locate"),
            ("POST", "/v1/gnbs/reset"),
            ("PUT", "/v1/amf/capacity/256"),
            ("PUT", "/v1/amf/endpoints/10.0.0.6"),
            ("DELETE", "/v1/amf/endpoints/10.0.0"),
        ];
        for (method, path) in wrong {
            assert_eq!(client.send(method, path, None).await.0, StatusCode::BAD_REQUEST, "{path}");
        }
    });
}

#[test]
fn a_session_is_branched_by_supi_and_identity() {
    run(async {
        let client = Client::new();
        let path = "/v1/sessions/imsi-999700000000001/1/breakout";
        let body = json!({ "upf": "edge", "destinations": ["192.0.2.0/24"] });
        assert_eq!(client.send("PUT", path, Some(&body)).await.0, StatusCode::NO_CONTENT);
        assert_eq!(client.send("DELETE", path, None).await.0, StatusCode::NO_CONTENT);
        let none = json!({ "upf": "edge", "destinations": [] });
        let two = json!([body, body]);
        let far = "/v1/sessions/imsi-999700000000001/16/breakout";
        for (path, body, detail) in [(path, &none, "1 to 64"), (path, &two, "one"), (far, &body, "1 to 15")] {
            let (status, problem) = client.send("PUT", path, Some(body)).await;
            assert_eq!(status, StatusCode::BAD_REQUEST);
            assert!(problem["detail"].as_str().unwrap().contains(detail), "{problem}");
        }
    });
}

#[test]
fn an_export_can_be_imported() {
    run(async {
        let (from, to) = (Client::new(), Client::new());
        from.send("POST", "/v1/subscribers?count=3", Some(&subscriber(1))).await;
        let page = from.send("GET", "/v1/subscribers?keys=true", None).await.1;
        let (status, _) = to.send("POST", "/v1/subscribers", Some(&page["subscribers"])).await;
        assert_eq!(status, StatusCode::CREATED);
        assert_eq!(to.send("GET", "/v1/subscribers?keys=true", None).await.1, page);
    });
}

#[test]
fn errors_name_the_problem() {
    run(async {
        let client = Client::new();
        let mut misspelt = subscriber(1);
        misspelt["slicez"] = json!([]);
        let edge = "imsi-999999999999999";
        let mut last = subscriber(1);
        last["supi"] = json!(edge);
        for (method, path, body, status, detail) in [
            ("GET", "/v1/nothing", None, 404, "/openapi.json"),
            ("PATCH", "/v1/subscribers", None, 405, "GET, POST"),
            ("GET", "/v1/subscribers/imsi-x", None, 400, "imsi-999700000000001"),
            ("GET", "/v1/subscribers?limit=many", None, 400, "limit"),
            ("GET", "/v1/subscribers?page=2", None, 400, "no parameter 'page'"),
            ("POST", "/v1/subscribers", None, 415, "application/json"),
            ("POST", "/v1/subscribers", Some(&misspelt), 400, "slicez"),
            ("POST", "/v1/subscribers?count=0", Some(&subscriber(1)), 400, "'count' must be 1"),
            ("POST", "/v1/subscribers?count=2", Some(&last), 400, "no 2 SUPIs from"),
            ("POST", "/v1/subscribers?existing=maybe", Some(&subscriber(1)), 400, "refuse, replace, keep"),
        ] {
            let (found, problem) = client.send(method, path, body).await;
            assert_eq!(found.as_u16(), status, "{method} {path}: {problem}");
            assert!(problem["detail"].as_str().unwrap().contains(detail), "{method} {path}: {problem}");
        }
    });
}

/// TS 33.117 4.2.3.4: roles restrict operations.
#[test]
fn roles_restrict_operations_and_changes_are_audited() {
    run(async {
        let tokens = Tokens::in_memory();
        let secret = |role| tokens.add("test", role).unwrap().token;
        let (viewer, operator, admin) = (secret(Role::Viewer), secret(Role::Operator), secret(Role::Admin));
        let client = Client::behind(Guard::new(None, None, tokens));
        let path = "/v1/subscribers/imsi-999700000000001";
        let wanted = json!({ "name": "console", "role": "viewer" });
        for (method, path, body, least) in [
            ("GET", "/v1/status", None, 0),
            ("GET", "/v1/subscribers", None, 0),
            ("PUT", path, Some(&subscriber(1)), 1),
            ("GET", path, None, 0),
            ("GET", "/v1/subscribers/imsi-999700000000001?keys=true", None, 2),
            ("GET", "/v1/subscribers?keys=false&keys=true", None, 2),
            ("DELETE", "/v1/ues/imsi-999700000000001", None, 1),
            ("GET", "/v1/tokens", None, 2),
            ("POST", "/v1/tokens", Some(&wanted), 2),
            ("GET", "/v1/audit", None, 2),
        ] {
            for (rank, token) in [&viewer, &operator, &admin].into_iter().enumerate() {
                let (status, said) = client.send_with(token, method, path, body).await;
                assert_eq!(status != StatusCode::FORBIDDEN, rank >= least, "{method} {path} {rank}: {said}");
            }
            assert_eq!(client.send_with("x", method, path, body).await.0, StatusCode::UNAUTHORIZED);
        }
        let entries = client.send_with(&admin, "GET", "/v1/audit", None).await.1;
        let operations: Vec<_> =
            entries.as_array().unwrap().iter().map(|entry| entry["operation"].as_str().unwrap()).collect();
        for operation in ["putSubscriber", "showSubscriber", "deregisterUe", "addToken", "denied"] {
            assert!(operations.contains(&operation), "{operation}: {operations:?}");
        }
        assert!(entries.to_string().contains("(test)") && !entries.to_string().contains(&admin));
        agrees("AuditEntry", &entries[0]);
        let listed = client.send_with(&admin, "GET", "/v1/tokens", None).await.1;
        agrees("Token", &listed[0]);
        agrees("IssuedToken", &client.send_with(&admin, "POST", "/v1/tokens", Some(&wanted)).await.1);
    });
}

/// The client closes its connection as soon as its request is sent.
#[test]
fn a_change_is_made_and_recorded_to_its_end_although_its_client_is_gone() {
    const LIMITS: Limits = Limits {
        time: Duration::from_secs(5),
        body_time: Duration::from_secs(5),
        body: 1 << 20,
        buffered: 1 << 20,
        exchanges: 8,
    };
    run(async {
        let Client(handler) = Client::new();
        let api = handler.api.clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (drain, draining) = watch::channel(false);
        let server = Server { handler, protocol: Protocol::Any, limits: LIMITS, known: Rc::new(|_| false) };
        let serving = spawn_local(server.run(Listener::Tcp(listener), draining));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = "DELETE /v1/ues/imsi-999700000000001 HTTP/1.1\r\nhost: localhost\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        sleep(WORK / 3).await;
        let recorded = || -> Vec<(State, u16)> {
            let entries = api.audit.last(9, Wanted::All).unwrap();
            entries.iter().map(|entry| (entry.state, entry.status)).collect()
        };
        assert_eq!(recorded(), [(State::Begun, 0)], "before the change is made");
        drop(stream);
        drain.send(true).unwrap();
        timeout(LIMITS.time, serving).await.unwrap().unwrap();
        assert_eq!(recorded(), [(State::Ended, 204)], "the server does not end before the change");
    });
}

#[test]
fn an_unsupported_method_gets_405_with_allow() {
    run(async {
        let client = Client::new();
        for method in ["TRACE", "OPTIONS", "PATCH", "CONNECT"] {
            let request =
                Request::builder().method(method).uri("/v1/subscribers").body(Bytes::new()).unwrap();
            let response = client.0.handle(request).await;
            assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{method}");
            assert_eq!(response.headers()["allow"], "GET, POST");
            assert!(!response.headers().contains_key("server"));
        }
        let plain = Request::post("/v1/subscribers").body("{}".into()).unwrap();
        assert_eq!(client.0.handle(plain).await.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
        let body = Request::delete("/v1/ues/imsi-999700000000001").body("x".into()).unwrap();
        assert_eq!(client.0.handle(body).await.status(), StatusCode::BAD_REQUEST);
    });
}

/// Shard 0 has the entries 0 to 4, shard 1 the entries 10 and 11.
fn played(shard: u16, page: &pith_nf::kit::Page) -> (Vec<Value>, Option<u32>) {
    let last = if shard == 0 { 5 } else { 2 };
    let end = page.first.saturating_add(page.limit).min(last);
    let list = (page.first..end).map(|number| json!(u32::from(shard) * 10 + number)).collect();
    (list, (end < last).then_some(end))
}

#[test]
fn lists_of_what_shards_have_come_in_pages() {
    run(async {
        let client = Client::new();
        for path in ["/v1/ues", "/v1/sessions"] {
            let (mut pages, mut next) = (Vec::new(), Some(format!("{path}?limit=3")));
            while let Some(path) = next {
                let request = Request::get(path).header("host", "localhost").body(Bytes::new()).unwrap();
                let response = client.0.handle(request).await;
                let page: Value = serde_json::from_slice(response.body()).unwrap();
                pages.push(page);
                let link = response.headers().get("link").map(|link| link.to_str().unwrap());
                next = link.map(|link| link[1..link.find('>').unwrap()].to_owned());
            }
            assert_eq!(pages, [json!([0, 1, 2]), json!([3, 4, 10]), json!([11])]);
            let (_, whole) = client.send("GET", path, None).await;
            assert_eq!(whole, json!([0, 1, 2, 3, 4, 10, 11]));
            for after in ["x", "0", "1.x", "-1.0"] {
                let (status, _) = client.send("GET", &format!("{path}?after={after}"), None).await;
                assert_eq!(status, StatusCode::BAD_REQUEST, "{after}");
            }
            assert_eq!(client.send("GET", &format!("{path}?after=7.0"), None).await.1, json!([]));
        }
    });
}

/// Permanent queries leave most of the time of the shards to UEs.
#[test]
fn questions_are_asked_one_after_another_and_seldom() {
    const ANSWERING: Duration = Duration::from_millis(20);
    run(async {
        let (open, most) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let gather = Rc::new_cyclic(|gather: &std::rc::Weak<Gather>| {
            let (gather, open, most) = (gather.clone(), open.clone(), most.clone());
            Gather::new(Box::new(move |_, id| {
                open.set(open.get() + 1);
                most.set(most.get().max(open.get()));
                let (gather, open) = (gather.clone(), open.clone());
                spawn_local(async move {
                    sleep(ANSWERING).await;
                    open.set(open.get() - 1);
                    gather.upgrade().unwrap().answer(id, Vec::new(), None);
                });
                1
            }))
        });
        let begun = tokio::time::Instant::now();
        let asks = (0..5).map(|_| {
            let gather = gather.clone();
            spawn_local(async move { gather.inspect(Topic::Gnbs).await.unwrap() })
        });
        for ask in asks.collect::<Vec<_>>() {
            ask.await.unwrap();
        }
        assert_eq!(most.get(), 1);
        assert!(begun.elapsed() >= ANSWERING * (5 + 3 * 4), "{:?}", begun.elapsed());
    });
}

#[test]
fn lists_merge_all_shards() {
    run(async {
        let client = Client::new();
        for (path, topic) in [("gnbs", "Gnbs"), ("upfs", "Upfs"), ("nfs", "Instances")] {
            let (status, list) = client.send("GET", &format!("/v1/{path}"), None).await;
            assert_eq!(status, StatusCode::OK);
            assert_eq!(list, json!([{ "shard": 0, "topic": topic }, { "shard": 1 }]));
        }
    });
}

#[test]
fn status_health_and_config_are_shown() {
    run(async {
        let client = Client::new();
        let (_, status) = client.send("GET", "/v1/status", None).await;
        assert_eq!((&status["state"], &status["readyAfterMs"]), (&json!("ready"), &json!(7)));
        assert_eq!(client.send("GET", "/v1/health", None).await.0, StatusCode::OK);
        assert_eq!(client.send("GET", "/v1/config", None).await.1["network"]["plmns"], json!(["999/70"]));
    });
}

#[test]
fn every_reference_of_the_description_resolves() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => members.iter().for_each(|(name, value)| match value {
                Value::String(target) if name == "$ref" => found.push(target.clone()),
                _ => references(value, found),
            }),
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let description = description();
    let mut found = Vec::new();
    references(&description, &mut found);
    assert!(found.len() > 20);
    for target in found {
        assert!(description.pointer(&target[1..]).is_some(), "{target}");
    }
}

#[test]
fn schemas_and_values_have_the_same_members() {
    let mut full = Subscriber::with_defaults("imsi-999700000000001".parse().unwrap(), [1; 16], [2; 16]);
    full.gpsi = Some("msisdn-1".into());
    full.authentication.topc = Some(pith_nf::kit::Secret([3; 32]));
    full.slices[0].snssai.sd = Some([1, 2, 3]);
    let restrictions = json!({"ratRestrictions": ["NR"], "coreNetworkTypeRestrictions": ["EPC"],
        "forbiddenTacs": ["000002"], "allowedTacs": ["000001"], "notAllowedTacs": ["000003"]});
    let dnn = json!({"dnn": "internet", "ambr": full.ambr, "staticIpAddress": [{"ipv4Addr": "10.45.255.7"}],
        "ipv4FrameRouteList": [{"ipv4Mask": "192.168.7.0/24"}], "ipv6FrameRouteList": [{"ipv6Prefix": "2001:db8:5::/48"}]});
    full.slices[0].dnns = vec![serde_json::from_value(dnn).unwrap()];
    full.restrictions = serde_json::from_value(restrictions).unwrap();
    let trace = json!({"traceRef": "99970-00000a", "traceDepth": "MINIMUM", "neTypeList": "0040", "eventList": "01",
        "collectionEntityIpv4Addr": "192.0.2.9", "collectionEntityIpv6Addr": "2001:db8::9", "interfaceList": "f8"});
    full.trace = serde_json::from_value(trace).unwrap();
    agrees("Subscriber", &serde_json::to_value(full).unwrap());
    agrees("Added", &serde_json::to_value(crate::store::Added::default()).unwrap());
    run(async { agrees("Status", &Client::new().send("GET", "/v1/status", None).await.1) });
}

/// Asserts that the value has exactly the members of the schema.
fn agrees(schema: &str, value: &Value) {
    let schemas = openapi::schemas();
    let properties = schemas[schema]["properties"].as_object().unwrap();
    let members = value.as_object().unwrap();
    assert_eq!(members.keys().collect::<Vec<_>>(), properties.keys().collect::<Vec<_>>(), "{schema}");
    for (name, property) in properties {
        let target = property["$ref"].as_str().or(property["items"]["$ref"].as_str());
        let inner = members[name].get(0).unwrap_or(&members[name]);
        if let Some(target) = target.and_then(|target| target.rsplit('/').next()) {
            agrees(target, inner);
        }
    }
}
