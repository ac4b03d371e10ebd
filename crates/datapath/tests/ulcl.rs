//! Several UPFs: an uplink classifier is inserted into an active session and removed again, by PFCP as from
//! an SMF (TS 23.502 4.3.5.4, 4.3.5.5), while packets flow.
//!
//! ```text
//!                      ┌──────────── N3 ───────────┐
//!   gNB (radio host) ──┤                           ├── anchor UPF ── N6 ── server
//!                      └── N3 ── classifier ── N9 ─┘
//!                                    └── N6 ── edge server
//! ```
#![allow(unsafe_code)]

mod support;

use pith_datapath::{DatapathConfig, UePool, UserPlane};
use pith_pfcp::gtpu::{GtpuMessageType, Packet, UlPduSessionInformation};
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_pfcp::rules::*;
use pith_pfcp::{Change, Message};
use pith_upf::contract::{self, Datapath};
use pith_upf::{Config, Effect, GtpuAddress, Input, PermittedSmf, Upf};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Instant;
use support::*;

const SMF: Ipv4Addr = Ipv4Addr::new(192, 168, 4, 2);
/// The classifier's address for N3 and N9.
const CLASSIFIER: Ipv4Addr = Ipv4Addr::new(172, 18, 0, 1);
/// The classifier's address towards the edge, and a server there.
const EDGE_N6: Ipv4Addr = Ipv4Addr::new(172, 20, 0, 1);
const EDGE: Ipv4Addr = Ipv4Addr::new(172, 20, 0, 2);

/// A UPF-C on a datapath, controlled by a simulated SMF.
struct Node {
    upf: Upf,
    sequence: u32,
    begun: Instant,
}

impl Node {
    fn new(address: Ipv4Addr, plane: &mut UserPlane) -> Self {
        let n3 = GtpuAddress { v4: Some(address), v6: None };
        let config = Config::new(address.into(), n3, 1_700_000_000);
        let upf = Upf::new(Config { smfs: vec![PermittedSmf::at(SMF.into())], ..config }, [7; 32]);
        let mut node = Self { upf, sequence: 0, begun: Instant::now() };
        node.ask(plane, 0, AssociationSetupRequest::new(NodeId::Ipv4(SMF), NtpSeconds::from_unix(1)));
        node
    }

    fn ask(&mut self, plane: &mut UserPlane, seid: u64, request: impl Into<Message>) -> Message {
        self.sequence += 1;
        let (mut octets, mut effects) = (Vec::new(), Vec::new());
        request.into().encode(seid, self.sequence, &mut octets).unwrap();
        let peer = SocketAddr::from((SMF, 8805));
        let input = Input::Datagram { peer, octets: &octets };
        self.upf.handle(self.begun.elapsed(), input, plane, &mut effects);
        let sent = effects.into_iter().find_map(|effect| match effect {
            Effect::Send { octets, .. } => Some(Message::decode(&octets).unwrap().1),
            Effect::Notice(_) => None,
        });
        sent.expect("a response")
    }

    /// Establishes a session, and returns its SEID and the TEIDs of its PDRs.
    fn establish(&mut self, plane: &mut UserPlane, request: SessionEstablishmentRequest) -> (u64, Vec<u32>) {
        let response = self.ask(plane, 0, request);
        let Message::SessionEstablishmentResponse(response) = response else { panic!("{response:?}") };
        assert_eq!(response.cause, Cause::RequestAccepted, "{response:?}");
        let teid = |pdr: &CreatedPdr| match pdr.local_f_teids[0] {
            FTeid::Allocated { teid, .. } => teid,
            FTeid::Choose { .. } => panic!("not allocated"),
        };
        (response.up_f_seid.unwrap().seid, response.created_pdrs.iter().map(teid).collect())
    }

    fn modify(&mut self, plane: &mut UserPlane, seid: u64, request: SessionModificationRequest) {
        let response = self.ask(plane, seid, request);
        let Message::SessionModificationResponse(response) = response else { panic!("{response:?}") };
        assert_eq!(response.cause, Cause::RequestAccepted, "{response:?}");
    }
}

fn pdr(id: u16, precedence: u32, far: u32, pdi: Pdi) -> CreatePdr {
    let far_id = Some(FarId(far));
    CreatePdr { far_id, urr_ids: vec![UrrId(1)], ..CreatePdr::new(PdrId(id), Precedence(precedence), pdi) }
}

/// A PDI of a tunnel whose TEID the UPF allocates; PDRs with the same `choose_id` share it.
fn by_tunnel(interface: SourceInterface, choose_id: u8) -> Pdi {
    let choose = FTeid::Choose { ipv4: true, ipv6: false, choose_id: Some(choose_id) };
    Pdi { local_f_teid: Some(choose), ..Pdi::new(interface) }
}

fn to_ue() -> Pdi {
    let ue_ip_addresses = vec![UeIpAddress::new(IpAddr::V4(UE), PacketEnd::Destination)];
    Pdi { ue_ip_addresses, ..Pdi::new(SourceInterface::Core) }
}

fn far(id: u32, interface: DestinationInterface, tunnel: Option<(Ipv4Addr, u32)>) -> CreateFar {
    let header = tunnel.map(|(peer, teid)| OuterHeaderCreation::gtpu(teid, peer.into()));
    let parameters =
        ForwardingParameters { outer_header_creation: header, ..ForwardingParameters::new(interface) };
    CreateFar { forwarding_parameters: Some(parameters), ..CreateFar::new(FarId(id), ApplyAction::FORW) }
}

fn session_of_rules(pdrs: Vec<CreatePdr>, fars: Vec<CreateFar>) -> SessionEstablishmentRequest {
    let urr = CreateUrr::new(UrrId(1), MeasurementMethod::VOLUM, ReportingTriggers::default());
    SessionEstablishmentRequest {
        create_urrs: vec![urr],
        ..SessionEstablishmentRequest::new(NodeId::Ipv4(SMF), FSeid::new(7, SMF.into()), pdrs, fars)
    }
}

/// The anchor's initial PDU session; its packets get a QFI.
fn anchor_session() -> SessionEstablishmentRequest {
    let uplink = Pdi {
        ue_ip_addresses: vec![UeIpAddress::new(IpAddr::V4(UE), PacketEnd::Source)],
        ..by_tunnel(SourceInterface::Access, 1)
    };
    let qer = CreateQer { qfi: Some(Qfi(QFI)), ..CreateQer::new(QerId(1), GateStatus::OPEN) };
    let downlink = CreatePdr { qer_ids: vec![QerId(1)], ..pdr(2, 255, 2, to_ue()) };
    let fars = vec![
        far(1, DestinationInterface::Core, None),
        far(2, DestinationInterface::Access, Some((GNB, GNB_TEID))),
    ];
    SessionEstablishmentRequest {
        create_qers: vec![qer],
        ..session_of_rules(vec![pdr(1, 255, 1, uplink), downlink], fars)
    }
}

/// The classifier's session: packets for the edge leave there, others are sent to the anchor; packets from
/// either are sent to the gNB.
fn classifier_session(anchor_teid: u32) -> SessionEstablishmentRequest {
    let filter = SdfFilter {
        flow_description: Some(b"permit out ip from 172.20.0.0/24 to assigned".to_vec()),
        ..SdfFilter::default()
    };
    let to_edge = Pdi { sdf_filters: vec![filter], ..by_tunnel(SourceInterface::Access, 1) };
    let qer = CreateQer { qfi: Some(Qfi(QFI + 1)), ..CreateQer::new(QerId(1), GateStatus::OPEN) };
    let from_edge = CreatePdr { qer_ids: vec![QerId(1)], ..pdr(4, 255, 3, to_ue()) };
    let pdrs = vec![
        pdr(1, 255, 1, by_tunnel(SourceInterface::Access, 1)),
        pdr(2, 100, 2, to_edge),
        pdr(3, 255, 3, by_tunnel(SourceInterface::Core, 2)),
        from_edge,
    ];
    let fars = vec![
        far(1, DestinationInterface::Core, Some((UPF, anchor_teid))),
        far(2, DestinationInterface::Core, None),
        far(3, DestinationInterface::Access, Some((GNB, GNB_TEID + 1))),
    ];
    SessionEstablishmentRequest { create_qers: vec![qer], ..session_of_rules(pdrs, fars) }
}

/// Switches the anchor's downlink to another tunnel, with an End Marker in the old one.
fn downlink_to(peer: Ipv4Addr, teid: u32, interface: DestinationInterface) -> SessionModificationRequest {
    let parameters = UpdateForwardingParameters {
        destination_interface: Some(interface),
        outer_header_creation: Some(Change::Set(OuterHeaderCreation::gtpu(teid, peer.into()))),
        pfcp_sm_req_flags: Some(PfcpSmReqFlags::SNDEM),
        ..UpdateForwardingParameters::new()
    };
    let update = UpdateFar { update_forwarding_parameters: Some(parameters), ..UpdateFar::new(FarId(2)) };
    SessionModificationRequest { update_fars: vec![update], ..SessionModificationRequest::new() }
}

/// The classifier's host with its networks, and the edge server.
struct Edge {
    _classifier: Host,
    _host: Host,
    plane: UserPlane,
    server: UdpSocket,
}

impl Edge {
    fn new(lab: &Lab) -> Self {
        let (classifier, host) = (Host::start(), Host::start());
        let (radio, own, edge) = (lab.radio.thread, thread_id(), host.thread);
        classifier.run(move || {
            link("n3", Ipv4Addr::new(172, 18, 0, 1), "eth1", radio);
            link("n9", Ipv4Addr::new(172, 19, 0, 1), "n9", own);
            link("n6", EDGE_N6, "eth0", edge);
            run(&format!("ip route add {GNB} dev n3"));
        });
        up("n9", Ipv4Addr::new(172, 19, 0, 2));
        run(&format!("ip route add {CLASSIFIER} via 172.19.0.1"));
        lab.radio.run(|| {
            up("eth1", Ipv4Addr::new(172, 18, 0, 2));
        });
        let server = host.run(|| {
            up("eth0", EDGE);
            run(&format!("ip route add 10.45.0.0/16 via {EDGE_N6}"));
            UdpSocket::bind((EDGE, 7000)).unwrap()
        });
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        let plane = classifier.run(|| {
            run(&format!("ip route add {UPF} via 172.19.0.2"));
            let pools = vec![UePool { gateway: IpAddr::from([10, 45, 0, 254]), prefix: 16 }];
            let n3_addresses = vec![CLASSIFIER.into()];
            let config = DatapathConfig { n3_addresses, pools, workers: 1, ..DatapathConfig::default() };
            UserPlane::start(config).unwrap()
        });
        Self { _classifier: classifier, _host: host, plane, server }
    }
}

/// A wire from this namespace to that of a thread.
fn link(here: &str, address: Ipv4Addr, there: &str, thread: i32) {
    run(&format!("ip link add {here} type veth peer name {there} netns {thread}"));
    up(here, address);
}

fn up(interface: &str, address: Ipv4Addr) {
    run(&format!("ip addr add {address}/24 dev {interface}"));
    run(&format!("ip link set {interface} up"));
}

/// Sends an uplink packet to a UPF, and returns the packet that a server receives.
fn ping(lab: &Lab, upf: Ipv4Addr, teid: u32, server: &UdpSocket, payload: &'static [u8]) {
    let IpAddr::V4(to) = server.local_addr().unwrap().ip() else { panic!() };
    let inner = udp(UE, to, 7000, payload);
    let information = UlPduSessionInformation { qfi: QFI, qos_monitoring: None };
    let header = information.gpdu_header(teid, inner.len()).unwrap();
    lab.gnb.send_to(&[&header[..], &inner].concat(), (upf, 2152)).unwrap();
    assert_eq!(receive(server), payload);
}

/// Sends a datagram with each number to the UE.
fn send_numbers(server: &UdpSocket, numbers: std::ops::Range<u8>) {
    for number in numbers {
        server.send_to(&[number], (UE, 5000)).unwrap();
    }
}

/// Sends datagrams from the data network until the gNB has received all; returns TEIDs and payloads, and End
/// Markers by TEID.
fn until_end_marker(lab: &Lab) -> (Vec<u8>, u32) {
    let mut payloads = Vec::new();
    loop {
        let (bytes, _) = lab.datagram();
        let packet = Packet::decode(&bytes).unwrap();
        if packet.message_type == GtpuMessageType::END_MARKER {
            return (payloads, packet.teid);
        }
        payloads.push(packet.payload[28]);
    }
}

#[test]
fn a_classifier_is_inserted_into_an_active_session_and_removed() {
    for mut lab in labs() {
        let mut edge = Edge::new(&lab);
        let far = lab.data_network(7000);
        let mut anchor = Node::new(UPF, &mut lab.upf);
        let mut classifier = Node::new(CLASSIFIER, &mut edge.plane);

        // The session without a classifier.
        let (anchor_seid, teids) = anchor.establish(&mut lab.upf, anchor_session());
        let anchor_teid = teids[0];
        ping(&lab, UPF, anchor_teid, &far, b"direct");

        // Inserts the classifier: first the classifier, then downlink through it, then uplink (TS 23.502
        // 4.3.5.4).
        let (seid, teids) = classifier.establish(&mut edge.plane, classifier_session(anchor_teid));
        let (uplink_teid, n9_teid) = (teids[0], teids[2]);
        assert_eq!(teids[0], teids[1], "both uplink PDRs are of one tunnel");
        send_numbers(&far, 0..50);
        wait_for("the first packets", || lab.upf.counters().n3_out.packets == 50);
        anchor.modify(
            &mut lab.upf,
            anchor_seid,
            downlink_to(CLASSIFIER, n9_teid, DestinationInterface::Core),
        );
        send_numbers(&far, 50..100);
        assert_eq!(until_end_marker(&lab), ((0..50).collect(), GNB_TEID), "all of the old way, then its end");
        for number in 50..100 {
            let gpdu = lab.downlink();
            assert_eq!((gpdu.teid, gpdu.payload()), (GNB_TEID + 1, &[number][..]));
            assert_eq!(gpdu.qfi, Some(QFI), "the anchor's mark");
        }
        ping(&lab, CLASSIFIER, uplink_teid, &far, b"by the anchor");
        ping(&lab, CLASSIFIER, uplink_teid, &edge.server, b"at the edge");
        edge.server.send_to(b"local", (UE, 5000)).unwrap();
        let gpdu = lab.downlink();
        assert_eq!((gpdu.teid, gpdu.qfi, gpdu.payload()), (GNB_TEID + 1, Some(QFI + 1), &b"local"[..]));

        // Removes the classifier: downlink past it, with an End Marker that it forwards; then it is released.
        anchor.modify(&mut lab.upf, anchor_seid, downlink_to(GNB, GNB_TEID, DestinationInterface::Access));
        assert_eq!(until_end_marker(&lab), (vec![], GNB_TEID + 1));
        let response = classifier.ask(&mut edge.plane, seid, SessionDeletionRequest::new());
        let Message::SessionDeletionResponse(response) = response else { panic!("{response:?}") };
        let used = response.usage_reports[0].volume_measurement.unwrap();
        assert_eq!((used.uplink, used.downlink), (Some(28 + 13 + 28 + 11), Some(50 * 29 + 33)));
        ping(&lab, UPF, anchor_teid, &far, b"direct again");
        far.send_to(b"back", (UE, 5000)).unwrap();
        assert_eq!(lab.downlink().payload(), b"back");
        assert_eq!(edge.plane.counters().dropped, []);
    }
}

/// An IPv6 packet of a UE with that prefix.
fn from_prefix(prefix: &str) -> Vec<u8> {
    let source: std::net::Ipv6Addr = format!("{prefix}::77").parse().unwrap();
    let destination: std::net::Ipv6Addr = "2001:db8:ff::1".parse().unwrap();
    let head = [0x60, 0, 0, 0, 0, 8, 17, 64];
    let udp = [0x13, 0x88, 0x1b, 0x58, 0, 8, 0, 0];
    [&head[..], &source.octets(), &destination.octets(), &udp].concat()
}

#[test]
fn a_branching_point_chooses_the_anchor_by_the_source_prefix() {
    for mut lab in labs() {
        let mut node = Node::new(UPF, &mut lab.upf);
        let anchors = [(1, "2001:db8:a", 0x301), (2, "2001:db8:b", 0x302)];
        let pdr = |(number, prefix, _): &(u16, &str, u32)| {
            let text = format!("permit out ip from any to {prefix}::/64");
            let filter = SdfFilter { flow_description: Some(text.into_bytes()), ..SdfFilter::default() };
            let pdi = Pdi { sdf_filters: vec![filter], ..by_tunnel(SourceInterface::Access, 1) };
            pdr(*number, 100, (*number).into(), pdi)
        };
        let far = |(number, _, teid): &(u16, &str, u32)| {
            far((*number).into(), DestinationInterface::Core, Some((GNB, *teid)))
        };
        let rules = session_of_rules(anchors.iter().map(pdr).collect(), anchors.iter().map(far).collect());
        let (_, teids) = node.establish(&mut lab.upf, rules);
        for (_, prefix, teid) in anchors {
            lab.uplink(teids[0], &from_prefix(prefix));
            let (bytes, _) = lab.datagram();
            let packet = Packet::decode(&bytes).unwrap();
            assert_eq!((packet.teid, packet.payload), (teid, &from_prefix(prefix)[..]));
            let mark = packet.pdu_session_information().map(|information| information.qfi());
            assert_eq!(mark, Some(QFI), "the gNB's mark goes on");
        }
        lab.uplink(teids[0], &from_prefix("2001:db8:c"));
        lab.wait_dropped(contract::DropReason::NoRule, 1);
    }
}
