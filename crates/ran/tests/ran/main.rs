//! A radio network with a scripted core: many UEs, their plan, and the user plane.

mod core;
mod mobility;
#[allow(dead_code)]
#[path = "../ue/network.rs"]
mod network;

use crate::core::{Core, Fault, REFLECTIVE};
use pith_nas::ie::PduSessionType;
use pith_ngap::Message;
use pith_ran::gnb::{self, UeKey};
use pith_ran::journey::{Arrivals, Packets, PingPlan, Plan, Profile, Progress, Step, TrafficPlan};
use pith_ran::ran::{Input, Output, UeSetup};
use pith_ran::ue::{self, Service, SessionRequest, Settings, Subscription};
use pith_ran::{Instant, Ran};
use pith_types::{Snssai, Tac};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

const DN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

fn ping(count: u32) -> PingPlan {
    let timeout = Duration::from_secs(1);
    PingPlan { target: DN.into(), count, interval: Duration::from_millis(100), size: 56, timeout }
}

fn plan(profile: Profile, ping: Option<PingPlan>, rounds: u32) -> Plan {
    Plan::new(profile, Packets { ping, traffic: None }, Duration::ZERO, rounds)
}

/// A radio network, a core, and virtual time.
struct World {
    ran: Ran,
    core: Core,
    now: Instant,
    out: Vec<Output>,
    packets: usize,
    /// Prefixes that were delegated.
    delegated: Vec<(UeKey, String)>,
}

impl World {
    fn new(plan: Plan, gnbs: u32, ues: u32, arrivals: Arrivals) -> Self {
        Self::of_type(PduSessionType::Ipv4, plan, gnbs, ues, arrivals)
    }

    /// UEs that request sessions of this type.
    fn of_type(session_type: PduSessionType, plan: Plan, gnbs: u32, ues: u32, arrivals: Arrivals) -> Self {
        let request = SessionRequest { session_type, ..network::session_request(1) };
        Self::of_request(&request, plan, gnbs, ues, arrivals)
    }

    /// UEs that request this session.
    fn of_request(request: &SessionRequest, plan: Plan, gnbs: u32, ues: u32, arrivals: Arrivals) -> Self {
        let gnb = |index: u32| gnb::Settings {
            name: format!("gnb-{index}"),
            plmn: network::plmn(),
            id: index,
            tac: Tac::new(1),
            slices: vec![Snssai::of_sst(1)],
            n3: "10.0.0.1".parse().unwrap(),
            first_teid: (index << 20) + 1,
            retains_ues: false,
            joins_by_ng_setup: false,
        };
        let mut ran = Ran::new((0..gnbs).map(gnb).collect(), plan);
        let settings = Arc::new(Settings {
            plmn: network::plmn(),
            security_capability: network::capability(),
            requested_nssai: vec![Snssai::of_sst(1)],
            service: Service::Normal,
            follow_on_request: true,
        });
        for (index, begins) in (0..ues).zip(arrivals.times(ues as usize, 1)) {
            let supi = format!("imsi-99970{:010}", index + 1).parse().unwrap();
            let setup = UeSetup {
                subscription: Subscription { supi, ..network::subscription() },
                imeisv: "imeisv-4901542032375101".parse().unwrap(),
                gnb: (index % gnbs) as usize,
                sessions: vec![request.clone()],
                begins,
            };
            ran.add_ue(Arc::clone(&settings), setup).unwrap();
        }
        let mut world = Self {
            ran,
            core: Core::default(),
            now: Instant::START,
            out: Vec::new(),
            packets: 0,
            delegated: Vec::new(),
        };
        (0..gnbs as usize)
            .for_each(|gnb| world.handle(Input::N2Up { gnb, association: 0, outbound_streams: 2 }));
        assert_eq!(world.ran.gnbs_up(), gnbs as usize);
        world
    }

    fn begin(&mut self) {
        let mut out = Vec::new();
        self.ran.begin(self.now, &mut out);
        self.out.append(&mut out);
        self.settle();
    }

    fn handle(&mut self, input: Input<'_>) {
        self.ran.handle(self.now, input, &mut self.out);
        self.settle();
    }

    /// Delivers all messages until both sides wait.
    fn settle(&mut self) {
        while !self.out.is_empty() {
            for output in std::mem::take(&mut self.out) {
                match output {
                    Output::N2 { gnb, stream, pdu, .. } => {
                        for pdu in self.core.receive(gnb, &pdu) {
                            self.ran.handle(
                                self.now,
                                Input::N2 { gnb, association: 0, stream, pdu: &pdu },
                                &mut self.out,
                            );
                        }
                        self.deliver_elsewhere();
                    }
                    Output::FromNetwork { to, data } => {
                        self.core.receive_from_network(to, &data);
                        self.deliver_elsewhere();
                    }
                    Output::N3 { to, datagram } => {
                        for datagram in self.core.forward(to, &datagram) {
                            let from = to;
                            self.ran.handle(self.now, Input::N3 { from, datagram: &datagram }, &mut self.out);
                        }
                    }
                    Output::Packet { .. } => self.packets += 1,
                    Output::Associate { .. } | Output::Disassociate { .. } => {
                        panic!("this AMF has one endpoint")
                    }
                    Output::Delegated { ue, prefix, .. } => self.delegated.push((ue, prefix.to_string())),
                    Output::GnbEvent { .. } | Output::UeEvent { .. } => {}
                }
            }
        }
    }

    /// Delivers what the core sends to other gNBs, and without being asked.
    fn deliver_elsewhere(&mut self) {
        for (gnb, pdu) in std::mem::take(&mut self.core.elsewhere) {
            let stream = u16::from(!matches!(Message::decode(&pdu), Ok(Message::Paging(_))));
            self.ran.handle(self.now, Input::N2 { gnb, association: 0, stream, pdu: &pdu }, &mut self.out);
        }
        for datagram in std::mem::take(&mut self.core.datagrams) {
            let from = "10.0.0.9:2152".parse().unwrap();
            self.ran.handle(self.now, Input::N3 { from, datagram: &datagram }, &mut self.out);
        }
    }

    /// Advances time, timer by timer, until all UEs have ended or `at_most` has passed.
    fn run(&mut self, at_most: Duration) {
        let end = self.now + at_most;
        while !self.ran.tally().is_over() {
            match self.ran.next_timeout().filter(|at| *at <= end) {
                Some(at) => self.now = at,
                None => return self.now = end,
            }
            self.handle(Input::Timeout);
        }
    }

    fn violations(&self) -> Vec<String> {
        let all = self.ran.statistics().violations.iter();
        all.flat_map(|(clause, breach)| breach.examples.iter().map(move |text| format!("{clause}: {text}")))
            .collect()
    }
}

fn ran_well(plan: Plan, gnbs: u32, ues: u32) -> World {
    let mut world = World::new(plan, gnbs, ues, Arrivals::AtOnce);
    world.begin();
    world.run(Duration::from_secs(60));
    assert_eq!(world.violations(), Vec::<String>::new());
    assert_eq!(world.ran.statistics().failures.len(), 0, "{:?}", world.ran.statistics().failures);
    assert_eq!(world.ran.tally().done, ues as usize);
    world
}

#[test]
fn many_ues_of_many_gnbs_register_open_sessions_and_ping() {
    let world = ran_well(plan(Profile::Session, Some(ping(3)), 1), 3, 50);
    let statistics = world.ran.statistics();
    assert_eq!((statistics.registration.len(), statistics.session.len()), (50, 50));
    assert_eq!((statistics.ping.sent, statistics.ping.received), (150, 150));
    assert_eq!(world.now - Instant::START, Duration::from_millis(200), "two intervals of three pings");
}

#[test]
fn idle_and_service_request_take_turns() {
    let world = ran_well(plan(Profile::Idle, Some(ping(1)), 3), 1, 2);
    let statistics = world.ran.statistics();
    assert_eq!((statistics.registration.len(), statistics.service.len()), (2, 6));
    assert_eq!(statistics.ping.received, 2 + 6);
}

#[test]
fn sessions_come_and_go() {
    let world = ran_well(plan(Profile::Release, Some(ping(1)), 4), 1, 2);
    assert_eq!(world.ran.statistics().session.len(), 8);
    assert_eq!(world.ran.ue(UeKey(0)).unwrap().sessions().count(), 0);
}

#[test]
fn ues_leave_and_come_back() {
    let world = ran_well(plan(Profile::Deregister, None, 3), 2, 4);
    let statistics = world.ran.statistics();
    assert_eq!((statistics.registration.len(), statistics.deregistration.len()), (12, 12));
    assert_eq!(world.ran.gnb(0).unwrap().ue_count(), 0);
}

#[test]
fn ues_start_at_their_planned_times() {
    let mut world = World::new(plan(Profile::Register, None, 1), 1, 5, Arrivals::Rate(1.0));
    world.begin();
    world.run(Duration::from_millis(2500));
    assert_eq!((world.ran.tally().done, world.ran.tally().under_way), (3, 0));
    assert_eq!(world.ran.progress(UeKey(4)), Some(Progress::Waiting));
    world.run(Duration::from_secs(10));
    assert_eq!(world.ran.tally().done, 5);
}

#[test]
fn lost_pings_make_a_ue_fail() {
    let mut world = World::new(plan(Profile::Session, Some(ping(2)), 1), 1, 1, Arrivals::AtOnce);
    world.core.fault = Some(Fault::DropEcho);
    world.begin();
    world.run(Duration::from_secs(60));
    assert_eq!((world.ran.tally().failed, world.ran.statistics().ping.received), (1, 0));
    assert_eq!(world.ran.statistics().failures.get("ping: lost replies"), Some(&1));
}

#[test]
fn ues_make_their_addresses_from_router_advertisements() {
    for (session_type, target) in [
        (PduSessionType::Ipv6, "2001:db8::1"),
        (PduSessionType::Ipv4v6, "2001:db8::1"),
        (PduSessionType::Ipv4v6, "192.0.2.1"),
    ] {
        let ping = PingPlan { target: target.parse().unwrap(), ..ping(3) };
        let plan = plan(Profile::Idle, Some(ping), 2);
        let mut world = World::of_type(session_type, plan, 2, 3, Arrivals::AtOnce);
        world.begin();
        world.run(Duration::from_secs(60));
        assert_eq!(world.violations(), Vec::<String>::new());
        assert_eq!(world.ran.statistics().ping.received, 3 * 9, "{:?}", world.ran.statistics().failures);
        let session = world.ran.ue(UeKey(0)).unwrap().sessions().next().unwrap();
        let address = session.ipv6.unwrap();
        assert!(address.to_string().starts_with("2001:db8:45:2:"), "{address}");
        assert_eq!(session.ipv4.is_some(), session_type == PduSessionType::Ipv4v6);
    }
}

#[test]
fn a_ue_without_a_usable_router_has_no_session() {
    for (fault, clause) in [(Fault::NoRouter, None), (Fault::OnLink, Some("TS 23.501 5.8.2.2.3"))] {
        let plan = plan(Profile::Session, None, 1);
        let mut world = World::of_type(PduSessionType::Ipv6, plan, 1, 1, Arrivals::AtOnce);
        world.core.fault = Some(fault);
        world.begin();
        world.run(Duration::from_secs(60));
        let statistics = world.ran.statistics();
        assert_eq!(
            statistics.failures.get("session: no Router Advertisement"),
            Some(&1),
            "{:?}",
            statistics.failures
        );
        assert_eq!(world.now - Instant::START, Duration::from_secs(12), "three solicitations");
        assert_eq!(statistics.violations.iter().next().map(|(clause, _)| clause), clause);
    }
}

#[test]
fn hosts_behind_ues_have_addresses_of_delegated_prefixes() {
    for session_type in [PduSessionType::Ipv6, PduSessionType::Ipv4v6] {
        let ping = PingPlan { target: "2001:db8::1".parse().unwrap(), ..ping(4) };
        let plan = Plan { requests_prefix: true, ..plan(Profile::Idle, Some(ping), 2) };
        let mut world = World::of_type(session_type, plan, 2, 2, Arrivals::AtOnce);
        world.begin();
        world.run(Duration::from_secs(60));
        assert_eq!(world.violations(), Vec::<String>::new());
        assert_eq!(world.ran.statistics().ping.received, 2 * 12, "{:?}", world.ran.statistics().failures);
        let prefix = "2001:db8:45::/56 without 2001:db8:45:2::/64".to_owned();
        assert_eq!(world.delegated, [(UeKey(0), prefix.clone()), (UeKey(1), prefix)]);
        let session = world.ran.ue(UeKey(0)).unwrap().sessions().next().unwrap();
        let host = session.host_behind().unwrap().to_string();
        assert!(host.starts_with("2001:db8:45:ff:"), "{host}");
    }
}

#[test]
fn a_ue_without_a_delegated_prefix_has_no_session() {
    let plan = Plan { requests_prefix: true, ..plan(Profile::Session, None, 1) };
    let mut world = World::of_type(PduSessionType::Ipv6, plan, 1, 1, Arrivals::AtOnce);
    world.core.fault = Some(Fault::NoPrefix);
    world.begin();
    world.run(Duration::from_secs(60));
    let statistics = world.ran.statistics();
    assert_eq!(
        statistics.failures.get("session: no delegated prefix"),
        Some(&1),
        "{:?}",
        statistics.failures
    );
    assert_eq!(world.now - Instant::START, Duration::from_secs(3), "three requests");
    assert_eq!(world.violations(), Vec::<String>::new());
}

/// 100 packets of 1250 octets a second: 1 Mbit/s.
fn streaming(seconds: u64) -> Plan {
    let traffic = TrafficPlan {
        target: SocketAddrV4::new(DN, 7),
        bits_per_second: 1_000_000,
        size: 1250,
        duration: Duration::from_secs(seconds),
        timeout: Duration::from_secs(1),
    };
    let packets = Packets { ping: None, traffic: Some(traffic) };
    Plan::new(Profile::Session, packets, Duration::ZERO, 1)
}

#[test]
fn ues_stream_at_their_rate_and_count_returned_datagrams() {
    let world = ran_well(streaming(3), 1, 2);
    let traffic = &world.ran.statistics().traffic;
    assert_eq!((traffic.sent, traffic.received, traffic.round_trip.len()), (600, 600, 600));
    let (sent, received) = traffic.megabits_per_second(1250);
    assert!((sent - 2.0).abs() < 0.02 && sent == received, "{sent} {received}");
}

/// A UE that streams for 200 s, whose returned packets have the RQI in that flow.
fn reflecting(reflective_qos: bool, qfi: u8) -> World {
    let request = SessionRequest { reflective_qos, ..network::session_request(1) };
    let mut world = World::of_request(&request, streaming(200), 1, 1, Arrivals::AtOnce);
    world.core.reflects = Some(qfi);
    world.begin();
    world
}

impl World {
    /// The flows of the uplink packets of the next seconds.
    fn uplink_flows(&mut self, seconds: u64) -> Vec<u8> {
        self.core.uplink_qfis.clear();
        self.run(Duration::from_secs(seconds));
        assert!(self.core.uplink_qfis.len() as u64 >= 100 * seconds - 1);
        let mut flows = self.core.uplink_qfis.clone();
        flows.dedup();
        flows
    }
}

/// T3583 is 60 s without a value of the network (TS 24.501 6.2.5.1.4).
#[test]
fn uplink_packets_take_the_flow_of_packets_with_the_rqi_until_t3583_expires() {
    let mut world = reflecting(true, REFLECTIVE);
    assert_eq!(world.core.uplink_qfis, [9], "before the first packet with the RQI");
    assert_eq!(world.uplink_flows(2), [REFLECTIVE]);
    world.core.reflects = None;
    assert_eq!(world.uplink_flows(58), [REFLECTIVE]);
    assert_eq!(world.uplink_flows(4), [REFLECTIVE, 9]);
    world.core.reflects = Some(REFLECTIVE);
    assert_eq!(world.uplink_flows(1), [9, REFLECTIVE]);
    assert_eq!(world.violations(), Vec::<String>::new());
}

/// The gNB ignores the RQI in flows without the Reflective QoS Attribute (TS 38.415 5.5.3.4).
#[test]
fn the_rqi_in_a_flow_without_the_attribute_is_ignored() {
    let mut world = reflecting(true, 9);
    assert_eq!(world.uplink_flows(1), [9]);
    let session = world.ran.ue(UeKey(0)).unwrap().sessions().next().unwrap().clone();
    assert_eq!((session.derived.count(world.now), world.violations().len()), (0, 0));
}

#[test]
fn the_rqi_for_a_ue_without_reflective_qos_is_a_violation() {
    let mut world = reflecting(false, REFLECTIVE);
    assert_eq!(world.uplink_flows(1), [9]);
    assert!(world.violations()[0].contains("TS 23.501 5.7.5.1"), "{:?}", world.violations());
}

#[test]
fn a_stream_without_returned_datagrams_fails_the_ue() {
    let mut world = World::new(streaming(1), 1, 1, Arrivals::AtOnce);
    world.core.fault = Some(Fault::DropEcho);
    world.begin();
    world.run(Duration::from_secs(60));
    assert_eq!(world.ran.statistics().failures.get("traffic: no datagram was returned"), Some(&1));
    assert_eq!(world.now - Instant::START, Duration::from_millis(990 + 1000), "a second after the last");
}

#[test]
fn a_silent_core_makes_ues_fail_after_t3510() {
    let mut world = World::new(plan(Profile::Register, None, 1), 1, 2, Arrivals::AtOnce);
    world.core.fault = Some(Fault::Silent);
    world.begin();
    world.run(Duration::from_secs(60));
    assert_eq!(world.ran.tally().failed, 2);
    assert_eq!(world.now - Instant::START, Duration::from_secs(15));
}

#[test]
fn a_release_without_accept_fails_the_deregistration() {
    let mut world = World::new(plan(Profile::Deregister, None, 1), 1, 2, Arrivals::AtOnce);
    world.core.fault = Some(Fault::ReleaseWithoutAccept);
    world.begin();
    world.run(Duration::from_secs(60));
    assert!(world.ran.tally().is_over());
    let failures = &world.ran.statistics().failures;
    assert_eq!(failures.get("de-registration: connection lost"), Some(&2), "{failures:?}");
}

#[test]
fn unfinished_ues_report_step_state_and_timer() {
    let mut world = World::new(plan(Profile::Register, None, 1), 1, 3, Arrivals::Rate(0.2));
    world.core.fault = Some(Fault::Silent);
    world.begin();
    world.run(Duration::from_secs(6));
    world.ran.count_unfinished();
    let failures: Vec<_> = world.ran.statistics().failures.clone().into_iter().collect();
    let under_way =
        "unfinished: in registration; 5GMM-REGISTERED-INITIATED, 5GMM-CONNECTED; T3510, T3519 running";
    let not_begun = "unfinished: not begun; 5GMM-DEREGISTERED, 5GMM-IDLE; no timer running";
    assert_eq!(failures, [(under_way.to_owned(), 2), (not_begun.to_owned(), 1)]);
}

#[test]
fn a_persistent_ue_tries_again_until_it_is_served() {
    let plan = Plan { persistent: true, ..plan(Profile::Register, None, 1) };
    let mut world = World::new(plan, 1, 1, Arrivals::AtOnce);
    world.core.fault = Some(Fault::Silent);
    world.begin();
    world.run(Duration::from_secs(20));
    world.core.fault = None;
    world.run(Duration::from_secs(60));
    assert_eq!((world.ran.tally().done, world.now - Instant::START), (1, Duration::from_secs(25)));
}

#[test]
fn faults_of_the_user_plane_are_violations() {
    let cases = [
        (Fault::NoContainer, "TS 38.415 5.5.2.1"),
        (Fault::WrongQfi, "TS 38.415 5.5.3.3"),
        (Fault::WrongUe, "TS 23.501 5.8.2"),
    ];
    for (fault, clause) in cases {
        let mut world = World::new(plan(Profile::Session, Some(ping(1)), 1), 1, 1, Arrivals::AtOnce);
        world.core.fault = Some(fault);
        world.begin();
        world.run(Duration::from_secs(60));
        let (found, _) = world.ran.statistics().violations.iter().next().expect("a violation");
        assert_eq!(found, clause);
    }
}

#[test]
fn an_unknown_tunnel_gets_an_error_indication_and_an_echo_request_its_response() {
    let mut world = World::new(plan(Profile::Register, None, 1), 1, 1, Arrivals::AtOnce);
    // A UPF may send the packets of each flow from a port of its own.
    let from: SocketAddr = "10.0.0.9:61096".parse().unwrap();
    let mut out = Vec::new();
    let unknown = [0x30, 255, 0, 1, 0, 0, 0xab, 0xcd, 0x45];
    world.ran.handle(world.now, Input::N3 { from, datagram: &unknown }, &mut out);
    let [Output::N3 { to, datagram }] = &out[..] else { panic!("{out:?}") };
    assert_eq!((*to, datagram[1]), ("10.0.0.9:2152".parse().unwrap(), 26));
    out.clear();
    let echo = [0x32, 1, 0, 4, 0, 0, 0, 0, 0x12, 0x34, 0, 0];
    world.ran.handle(world.now, Input::N3 { from, datagram: &echo }, &mut out);
    let [Output::N3 { to, datagram }] = &out[..] else { panic!("{out:?}") };
    assert_eq!((*to, datagram[1], &datagram[8..10]), (from, 2, &[0x12, 0x34][..]));
}

#[test]
fn a_lost_association_ends_connections_and_tunnels() {
    let mut world = ran_well(plan(Profile::Session, None, 1), 1, 3);
    world.handle(Input::N2Down { gnb: 0, association: 0 });
    assert!((0..3).all(|ue| !world.ran.ue(UeKey(ue)).unwrap().is_connected()));
    assert_eq!(world.ran.gnb(0).unwrap().ue_count(), 0);
}

/// The core was killed: users whose UEs were connecting request service again.
#[test]
fn a_user_whose_connection_is_lost_requests_service_again() {
    let steps = Plan::new(Profile::Idle, Packets::default(), Duration::from_secs(1), 1);
    let mut world = World::new(Plan { survives_loss: true, ..steps }, 1, 1, Arrivals::AtOnce);
    world.begin();
    world.core.fault = Some(Fault::Silent);
    world.run(Duration::from_secs(2));
    assert_eq!(world.ran.progress(UeKey(0)), Some(Progress::Under(Step::RequestService)));
    world.handle(Input::N2Down { gnb: 0, association: 0 });
    world.core.fault = None;
    world.handle(Input::N2Up { gnb: 0, association: 0, outbound_streams: 8 });
    world.run(Duration::from_secs(60));
    let statistics = world.ran.statistics();
    assert_eq!((world.ran.tally().done, &statistics.failures), (1, &Default::default()));
    assert_eq!((statistics.lost_connections, statistics.service.len()), (1, 1));
}

#[test]
fn in_a_barred_cell_ues_wait_for_the_amf() {
    let mut world = World::new(plan(Profile::Session, None, 1), 1, 3, Arrivals::AtOnce);
    world.ran.bar_cells_without_amf();
    world.handle(Input::N2Down { gnb: 0, association: 0 });
    world.begin();
    world.run(Duration::from_secs(5));
    assert_eq!((world.ran.tally().done, &world.ran.statistics().failures), (0, &Default::default()));
    world.handle(Input::N2Up { gnb: 0, association: 0, outbound_streams: 8 });
    world.run(Duration::ZERO);
    assert_eq!((world.ran.tally().done, world.violations()), (3, vec![]));
}

#[test]
fn a_packet_in_idle_requests_the_user_plane() {
    let mut world = ran_well(plan(Profile::Session, None, 1), 1, 1);
    let cause = pith_ngap::CauseRadioNetwork::user_inactivity;
    world.handle(Input::Gnb { gnb: 0, input: gnb::Input::ReleaseContext { ue: UeKey(0), cause } });
    assert!(!world.ran.ue(UeKey(0)).unwrap().is_connected());
    world.handle(Input::Packet { ue: UeKey(0), session: 1, packet: &[0x45; 40] });
    assert!(world.ran.ue(UeKey(0)).unwrap().is_connected());
    assert!(world.ran.ue(UeKey(0)).unwrap().sessions().all(|session| session.user_plane));
    assert_eq!(world.violations(), Vec::<String>::new());
}

#[test]
fn paging_brings_a_ue_back() {
    let mut world = ran_well(plan(Profile::Session, None, 1), 1, 3);
    let cause = pith_ngap::CauseRadioNetwork::user_inactivity;
    world.handle(Input::Gnb { gnb: 0, input: gnb::Input::ReleaseContext { ue: UeKey(1), cause } });
    let s_tmsi = world.ran.ue(UeKey(1)).unwrap().guti().unwrap().s_tmsi();
    let tais = vec![network::tai()];
    let pdu = pith_ngap::Paging { s_tmsi, tais }.encode().unwrap();
    world.handle(Input::N2 { gnb: 0, association: 0, stream: 0, pdu: &pdu });
    assert!(world.ran.ue(UeKey(1)).unwrap().is_connected());
    assert_eq!(world.violations(), Vec::<String>::new());
}

#[test]
fn an_input_of_the_tester_reaches_its_ue() {
    let mut world = ran_well(plan(Profile::Session, None, 1), 1, 1);
    world.handle(Input::Ue { ue: UeKey(0), input: ue::Input::Deregister { switch_off: false } });
    assert_eq!(world.ran.ue(UeKey(0)).unwrap().state(), ue::State::Deregistered);
}

#[test]
fn parked_ues_start_one_after_the_other_and_request_service_later() {
    let mut world = World::new(plan(Profile::Parked, None, 1), 2, 6, Arrivals::AtOnce);
    world.ran.limit_in_flight(1);
    world.begin();
    world.run(Duration::from_secs(1));
    let tally = world.ran.tally();
    assert_eq!(
        (tally.done, tally.under_way, tally.failed),
        (6, 0, 0),
        "{:?}",
        world.ran.statistics().failures
    );
    assert!((0..6).all(|ue| world.ran.ue(UeKey(ue)).is_some_and(|ue| !ue.is_connected())));
    for _ in 0..3 {
        let mut out = Vec::new();
        assert!(world.ran.visit(world.now, UeKey(4), &mut out));
        world.out.append(&mut out);
        world.settle();
        assert_eq!(world.ran.progress(UeKey(4)), Some(Progress::Done));
        assert!(!world.ran.ue(UeKey(4)).unwrap().is_connected());
    }
    assert_eq!(world.ran.statistics().service.summary().count, 3);
    assert!(!world.ran.visit(world.now, UeKey(9), &mut Vec::new()), "there is no such UE");
}

#[test]
fn a_closed_loop_begins_as_many_ues_as_it_may() {
    let mut world = World::new(plan(Profile::Register, None, 1), 1, 5, Arrivals::AtOnce);
    world.ran.limit_in_flight(2);
    let mut out = Vec::new();
    world.ran.begin(world.now, &mut out);
    assert_eq!(world.ran.tally().under_way, 2, "the others begin when these have ended");
    world.out.append(&mut out);
    world.settle();
    world.run(Duration::from_secs(1));
    assert_eq!(world.ran.tally().done, 5);
}
