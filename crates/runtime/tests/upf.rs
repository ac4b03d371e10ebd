//! Tests of the UPF through the API, with an SMF and a gNB on loopback in a network namespace.
#![allow(unsafe_code)]

#[path = "../../../tests/skipped.rs"]
mod skipped;

use bytes::Bytes;
use hyper::{Request, StatusCode};
use pith_datapath::DatapathConfig;
use pith_pfcp::Message;
use pith_pfcp::gtpu::UlPduSessionInformation;
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_pfcp::rules::*;
use pith_runtime::api::{Api, ApiHandler, Audit, Gather, Guard, Status, Tokens, description};
use pith_runtime::clock::Clock;
use pith_runtime::config::Config;
use pith_runtime::gate::Gate;
use pith_runtime::http::Handler;
use pith_runtime::upf::UpfThread;
use pith_upf::{GtpuAddress, PermittedSmf, Upf};
use serde_json::Value;
use std::net::{Ipv4Addr, UdpSocket};
use std::rc::Rc;
use std::time::{Duration, Instant};

const UPF: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 7);
const SMF: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 4);
const GNB: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);
const UE: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 2);
const GNB_TEID: u32 = 0x77;

/// Moves this thread and its children into a network namespace. Returns `false` and reports the test as
/// skipped if that is not permitted.
fn enter_namespace() -> bool {
    // SAFETY: takes no pointers; changes the namespace of the calling thread only.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        skipped::skipped("no permission to create a network namespace");
        return false;
    }
    let up = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
    up.is_ok_and(|status| status.success())
}

/// A UPF with one session, its SMF and gNB, and the API.
struct Lab {
    upf: Option<UpfThread>,
    smf: UdpSocket,
    gnb: UdpSocket,
    api: ApiHandler,
    sequence: u32,
    seid: u64,
    teid: u32,
}

impl Lab {
    fn new() -> Option<Self> {
        if !enter_namespace() {
            return None;
        }
        let clock = Clock::start();
        let n3 = GtpuAddress { v4: Some(UPF), v6: None };
        let mut config = pith_upf::Config::new(UPF.into(), n3, clock.unix_seconds());
        config.smfs = vec![PermittedSmf::at(SMF.into())];
        let n4 = UdpSocket::bind((UPF, 8805)).unwrap();
        let datapath =
            DatapathConfig { n3_addresses: vec![UPF.into()], workers: 1, ..DatapathConfig::default() };
        let upf =
            UpfThread::start(clock, Upf::new(config, [7; 32]), n4, datapath, Duration::ZERO, Gate::opened())
                .unwrap();
        let smf = UdpSocket::bind((SMF, 8805)).unwrap();
        smf.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let gnb = UdpSocket::bind((GNB, 2152)).unwrap();
        let api = ApiHandler::new(Rc::new(Api {
            guard: Guard::open("test", Tokens::in_memory()),
            audit: Audit::in_memory(),
            store: None,
            upf: Some(upf.handle()),
            gather: Rc::new(Gather::new(Box::new(|_, _| 0))),
            status: Box::new(|| Status {
                state: "ready",
                version: "0",
                uptime_s: 0,
                ready_after_ms: None,
                nfs: vec!["upf".into()],
                shards: 0,
                contexts: None,
                set: None,
                user_plane: None,
            }),
            config: Config::default(),
        }));
        let mut lab = Self { upf: Some(upf), smf, gnb, api, sequence: 0, seid: 0, teid: 0 };
        lab.ask(0, AssociationSetupRequest::new(SMF.into_node(), NtpSeconds::from_unix(1)));
        lab.establish();
        Some(lab)
    }

    /// Sends a request as the SMF, and returns the response.
    fn ask(&mut self, seid: u64, request: impl Into<Message>) -> Message {
        self.sequence += 1;
        let mut octets = Vec::new();
        request.into().encode(seid, self.sequence, &mut octets).unwrap();
        self.smf.send_to(&octets, (UPF, 8805)).unwrap();
        let mut buffer = vec![0; 65_535];
        let length = self.smf.recv(&mut buffer).unwrap();
        Message::decode(&buffer[..length]).unwrap().1
    }

    fn establish(&mut self) {
        let uplink = Pdi {
            local_f_teid: Some(FTeid::Choose { ipv4: true, ipv6: false, choose_id: None }),
            ue_ip_addresses: vec![UeIpAddress::new(UE.into(), PacketEnd::Source)],
            ..Pdi::new(SourceInterface::Access)
        };
        let downlink = Pdi {
            ue_ip_addresses: vec![UeIpAddress::new(UE.into(), PacketEnd::Destination)],
            ..Pdi::new(SourceInterface::Core)
        };
        let pdr = |id, far, pdi| CreatePdr {
            far_id: Some(FarId(far)),
            qer_ids: vec![QerId(1)],
            urr_ids: vec![UrrId(1)],
            ..CreatePdr::new(PdrId(id), Precedence(255), pdi)
        };
        let far = |id, parameters| CreateFar {
            forwarding_parameters: Some(parameters),
            ..CreateFar::new(FarId(id), ApplyAction::FORW)
        };
        let to_gnb = ForwardingParameters {
            outer_header_creation: Some(OuterHeaderCreation::gtpu(GNB_TEID, GNB.into())),
            ..ForwardingParameters::new(DestinationInterface::Access)
        };
        let request = SessionEstablishmentRequest {
            create_qers: vec![CreateQer {
                maximum_bitrate: Some(BitRates { uplink: 10_000, downlink: 20_000 }),
                qfi: Some(Qfi(9)),
                ..CreateQer::new(QerId(1), GateStatus::OPEN)
            }],
            create_urrs: vec![CreateUrr::new(
                UrrId(1),
                MeasurementMethod::VOLUM,
                ReportingTriggers::default(),
            )],
            apn_dnn: Some(ApnDnn::from_dnn("internet")),
            ..SessionEstablishmentRequest::new(
                SMF.into_node(),
                FSeid::new(0x5, SMF.into()),
                vec![pdr(1, 1, uplink), pdr(2, 2, downlink)],
                vec![far(1, ForwardingParameters::new(DestinationInterface::Core)), far(2, to_gnb)],
            )
        };
        let Message::SessionEstablishmentResponse(response) = self.ask(0, request) else { panic!() };
        self.seid = response.up_f_seid.unwrap().seid;
        let FTeid::Allocated { teid, .. } = response.created_pdrs[0].local_f_teids[0] else { panic!() };
        self.teid = teid;
    }

    /// Sends a UDP packet of the UE to an unused address.
    fn uplink(&self) {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0];
        packet.extend(UE.octets());
        packet.extend([192, 0, 2, 1, 0x13, 0x88, 0, 53, 0, 8, 0, 0]);
        let header = UlPduSessionInformation { qfi: 9, qos_monitoring: None };
        let header = header.gpdu_header(self.teid, packet.len()).unwrap();
        self.gnb.send_to(&[&header[..], &packet].concat(), (UPF, 2152)).unwrap();
    }

    /// Sends a request to the API, and checks the response against the OpenAPI description.
    async fn api(&self, method: &str, path: &str, schema: &str) -> Value {
        let (status, answer) = self.send(method, path).await;
        assert!(status.is_success(), "{method} {path}: {answer}");
        match answer.as_array() {
            Some(list) => list.iter().for_each(|item| agrees(schema, item)),
            None => agrees(schema, &answer),
        }
        answer
    }

    async fn send(&self, method: &str, path: &str) -> (StatusCode, Value) {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let response = self.api.handle(request.body(Bytes::new()).unwrap()).await;
        let status = response.status();
        (status, serde_json::from_slice(response.body()).unwrap_or(Value::Null))
    }

    fn run(mut self, test: impl AsyncFnOnce(&Self)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test(&self));
        self.upf.take().unwrap().close();
    }
}

trait IntoNode {
    fn into_node(self) -> NodeId;
}

impl IntoNode for Ipv4Addr {
    fn into_node(self) -> NodeId {
        NodeId::Ipv4(self)
    }
}

/// Asserts that the value has exactly the members of the schema.
fn agrees(schema: &str, value: &Value) {
    let described = description();
    let schema_of = &described["components"]["schemas"][schema];
    let Some(properties) = schema_of["properties"].as_object() else { panic!("no schema {schema}") };
    if value.is_null() && schema_of["nullable"] == true {
        return;
    }
    let members = value.as_object().unwrap_or_else(|| panic!("{schema}: {value}"));
    assert_eq!(members.keys().collect::<Vec<_>>(), properties.keys().collect::<Vec<_>>(), "{schema}");
    for (name, property) in properties {
        let target = property["$ref"].as_str().or(property["items"]["$ref"].as_str());
        let target = target.or(property["allOf"][0]["$ref"].as_str());
        let Some(target) = target.and_then(|target| target.rsplit('/').next()) else { continue };
        match &members[name] {
            Value::Array(items) => items.iter().for_each(|item| agrees(target, item)),
            Value::Null if property["nullable"] == true => {}
            one => agrees(target, one),
        }
    }
}

async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !done().await {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn sessions_rules_flows_and_counters_match_the_description() {
    let Some(lab) = Lab::new() else { return };
    lab.run(async |lab| {
        lab.uplink();
        until("the packet", async || lab.send("GET", "/v1/upf/counters").await.1["n6Out"]["packets"] == 1)
            .await;
        let page = lab.api("GET", "/v1/upf/sessions", "UpfSessionPage").await;
        let session = &page["sessions"][0];
        assert_eq!((&page["total"], &session["ipv4"]), (&1.into(), &"10.45.0.2".into()), "{page}");
        assert_eq!((&session["dnn"], &session["downlink"]), (&"internet".into(), &"forwarded".into()));
        assert_eq!(session["ambr"]["uplink"], 10_000_000);
        assert_eq!(
            (&session["volume"]["uplinkPackets"], &session["volume"]["uplinkBytes"]),
            (&1.into(), &28.into())
        );
        assert_eq!(session["tunnels"][0]["teid"], "0x00000077");
        let rules = lab.api("GET", "/v1/upf/sessions/10.45.0.2/rules", "UpfRules").await;
        assert_eq!(rules["seid"], session["seid"]);
        assert_eq!(
            (&rules["pdrs"][0]["teid"], &rules["fars"][1]["action"]),
            (&session["teids"][0], &"forward_to_tunnel".into())
        );
        let path = format!("/v1/upf/sessions/{}/flows", lab.seid);
        let flows = lab.api("GET", &path, "UpfFlow").await;
        let uplink = flows.as_array().unwrap().iter().find(|flow| flow["direction"] == "uplink").unwrap();
        assert_eq!((&uplink["offered"]["packets"], &uplink["passed"]["bytes"]), (&1.into(), &28.into()));
        let counters = lab.api("GET", "/v1/upf/counters", "UpfCounters").await;
        assert_eq!((&counters["n3In"]["bytes"], &counters["sessions"]), (&28.into(), &1.into()));
    });
}

#[test]
fn sessions_are_found_by_address_and_teid() {
    let Some(lab) = Lab::new() else { return };
    lab.run(async |lab| {
        for (query, found) in [
            ("ue=10.45.0.2".to_owned(), 1),
            ("ue=10.45.0.3".to_owned(), 0),
            (format!("teid={:#x}", lab.teid), 1),
            (format!("teid={GNB_TEID}"), 1),
            ("teid=0x1".to_owned(), 0),
            (format!("after={}", lab.seid), 0),
        ] {
            let page = lab.api("GET", &format!("/v1/upf/sessions?{query}"), "UpfSessionPage").await;
            assert_eq!(page["sessions"].as_array().unwrap().len(), found, "{query}: {page}");
        }
        for (path, status, detail) in [
            ("/v1/upf/sessions/10.45.0.3/rules", 404, "no session of the UE address 10.45.0.3"),
            ("/v1/upf/sessions/0x7/flows", 404, "no session 0x7"),
            ("/v1/upf/sessions/nobody/rules", 400, "such as 0x1f"),
            ("/v1/upf/sessions?teid=0x100000000", 400, "not a TEID"),
            ("/v1/upf/traces/77", 404, "no trace 77"),
        ] {
            let (found, problem) = lab.send("GET", path).await;
            assert_eq!(found.as_u16(), status, "{path}");
            assert!(problem["detail"].as_str().unwrap().contains(detail), "{path}: {problem}");
        }
    });
}

#[test]
fn a_trace_collects_packets_up_to_its_limit_and_can_be_deleted() {
    let Some(lab) = Lab::new() else { return };
    lab.run(async |lab| {
        let path = format!("/v1/upf/traces?teid={}&packets=2", lab.teid);
        let begun = lab.api("POST", &path, "UpfTrace").await;
        assert_eq!((&begun["ended"], &begun["packets"]), (&false.into(), &Value::Array(vec![])));
        let path = format!("/v1/upf/traces/{}", begun["id"]);
        (0..3).for_each(|_| lab.uplink());
        until("the trace's end", async || lab.api("GET", &path, "UpfTrace").await["ended"] == true).await;
        let trace = lab.api("GET", &path, "UpfTrace").await;
        let packet = &trace["packets"][0];
        assert_eq!(
            (packet["qfi"].as_u64(), packet["pdr"].as_u64(), packet["length"].as_u64()),
            (Some(9), Some(1), Some(28))
        );
        assert_eq!((&packet["fate"], &packet["destinationPort"]), (&"to_network".into(), &53.into()));
        assert_eq!(trace["packets"].as_array().unwrap().len(), 2, "{trace}");
        let rest = lab.api("GET", &format!("{path}?after=1"), "UpfTrace").await;
        assert_eq!(rest["packets"][0]["number"], 2);
        assert_eq!(lab.send("DELETE", &path).await.0, StatusCode::NO_CONTENT);
        assert_eq!(lab.send("GET", &path).await.0, StatusCode::NOT_FOUND);
    });
}

#[test]
fn traces_are_limited_and_errors_are_specific() {
    let Some(lab) = Lab::new() else { return };
    lab.run(async |lab| {
        for (query, status, detail) in [
            ("teid=0x1".to_owned(), 404, "no session has a tunnel"),
            (String::new(), 400, "'teid' is required"),
            (format!("teid={}&packets=0", lab.teid), 400, "1 to 10000"),
            (format!("teid={}&seconds=601", lab.teid), 400, "1 to 600"),
        ] {
            let (found, problem) = lab.send("POST", &format!("/v1/upf/traces?{query}")).await;
            assert_eq!(found.as_u16(), status, "{query}: {problem}");
            assert!(problem["detail"].as_str().unwrap().contains(detail), "{query}: {problem}");
        }
        let begin = format!("/v1/upf/traces?teid={}", lab.teid);
        for _ in 0..8 {
            assert_eq!(lab.send("POST", &begin).await.0, StatusCode::CREATED);
        }
        assert_eq!(lab.send("POST", &begin).await.0, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(lab.send("DELETE", "/v1/upf/traces/3").await.0, StatusCode::NO_CONTENT);
        assert_eq!(lab.send("POST", &begin).await.0, StatusCode::CREATED);
    });
}
