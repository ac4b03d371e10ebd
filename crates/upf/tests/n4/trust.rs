//! Which peers are served on N4, for which Node IDs, and the limits of each (TS 33.513 4.2.2; TS 29.244
//! 6.2.6, 8.2.1).

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};

use crate::support::*;
use pith_pfcp::Message;
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_upf::contract::{Event, PdrId, SessionId};
use pith_upf::{Notice, PermittedSmf};

const STRANGER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 66, 6, 6)), 8805);

fn other_smf() -> SocketAddr {
    SocketAddr::from(([192, 168, 4, 3], 8805))
}

fn other_node() -> NodeId {
    NodeId::Ipv4([192, 168, 4, 3].into())
}

fn setup(node: NodeId) -> AssociationSetupRequest {
    AssociationSetupRequest::new(node, ntp(0))
}

fn cause(message: &Message) -> Cause {
    match message {
        Message::AssociationSetupResponse(response) => response.cause,
        Message::AssociationUpdateResponse(response) => response.cause,
        Message::AssociationReleaseResponse(response) => response.cause,
        Message::SessionSetDeletionResponse(response) => response.cause,
        Message::SessionEstablishmentResponse(response) => response.cause,
        Message::SessionModificationResponse(response) => response.cause,
        Message::SessionDeletionResponse(response) => response.cause,
        other => panic!("{other:?}"),
    }
}

fn asked(world: &mut World, seid: u64, request: impl Into<Message>) -> Cause {
    cause(&world.ask(seid, request).message)
}

#[test]
fn an_unknown_peer_is_refused_and_creates_no_state() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    world.smf = STRANGER;
    world.quiet();
    let stranger = NodeId::Fqdn("smf.stranger.example".into());
    assert_eq!(asked(&mut world, 0, setup(stranger.clone())), Cause::RequestRejected);
    let sent = world.ask(0, HeartbeatRequest::new(ntp(77)));
    assert!(matches!(sent.message, Message::HeartbeatResponse(_)), "TS 29.244 6.2.2.2");
    let of_stranger = SessionEstablishmentRequest { node_id: stranger, ..pdu_session() };
    assert_eq!(asked(&mut world, 0, of_stranger), Cause::NoEstablishedPfcpAssociation);
    assert_eq!(asked(&mut world, 0, pdu_session()), Cause::NoEstablishedPfcpAssociation);
    assert_eq!(
        asked(&mut world, seid, SessionModificationRequest::new()),
        Cause::NoEstablishedPfcpAssociation
    );
    assert_eq!(asked(&mut world, seid, SessionDeletionRequest::new()), Cause::NoEstablishedPfcpAssociation);
    assert_eq!(
        asked(&mut world, 0, AssociationReleaseRequest::new(smf_node())),
        Cause::NoEstablishedPfcpAssociation
    );
    assert_eq!((world.upf.associations().count(), world.upf.sessions().count()), (1, 1));
    assert!(matches!(world.notices.as_slice(), [Notice::UnknownPeer { peer: STRANGER, .. }]), "told once");
}

#[test]
fn answers_to_unknown_peers_and_notices_are_limited() {
    let mut world = World::new();
    let mut answers = 0;
    for number in 0..1000u32 {
        world.smf = SocketAddr::from(([10, 66, (number >> 8) as u8, number as u8], 8805));
        answers += world.send(&encode(0, number, setup(NodeId::Fqdn(format!("smf{number}"))))).len();
        world.send(&[0x20, 5, 0]);
    }
    assert_eq!((answers, world.upf.associations().count(), world.notices.len()), (100, 0, 1));
    world.wait(11);
    assert_eq!(world.send(&encode(0, 1, HeartbeatRequest::new(ntp(0)))).len(), 1);
    world.send(&encode(0, 2, setup(smf_node())));
    assert!(matches!(world.notices.last(), Some(Notice::UnknownPeer { messages: 2000, .. })));
}

#[test]
fn a_host_that_sends_gtpu_for_anothers_tunnel_is_named_once_with_advice() {
    let mut world = World::new();
    let event =
        |source: u32| Event::UnknownPeer { source: Ipv4Addr::from_bits(source).into(), peer: GNB.into() };
    for source in [0x0a42_0001, 0x0a42_0001, 0x0a42_0002] {
        world.event(event(source));
    }
    assert_eq!(world.notices.len(), 2);
    let text = world.notices[0].to_string();
    assert!(
        text.contains("10.66.0.1") && text.contains(&GNB.to_string()) && text.contains("'upf.radios'"),
        "{text}"
    );
    (0..1000).for_each(|source| drop(world.event(event(source))));
    assert_eq!(world.notices.len(), 64, "an attacker does not fill the log");
    world.wait(3600);
    world.event(event(0x0a42_0001));
    assert_eq!(world.notices.len(), 65);
}

#[test]
fn a_permitted_smf_may_be_bound_to_its_port() {
    let port = |port| PermittedSmf { port: Some(port), ..PermittedSmf::at([192, 168, 4, 2].into()) };
    let mut world = World::configured(|config| config.smfs = vec![port(8805)]);
    world.associate(setup(smf_node()));
    world.establish(pdu_session());
    world.ask(0, HeartbeatRequest::new(ntp(5)));
    world.smf.set_port(40_000);
    assert_eq!(asked(&mut world, 0, setup(smf_node())), Cause::RequestRejected);
    world.ask(0, HeartbeatRequest::new(ntp(9)));
    assert_eq!(world.upf.sessions().count(), 1, "a heartbeat of another process ends no session");
}

#[test]
fn a_node_id_is_bound_to_its_address_while_its_association_lives() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    for fails in [false, true] {
        if fails {
            world.wait(40);
            assert!(matches!(world.notices.last(), Some(Notice::PathFailed { .. })));
        }
        world.smf = other_smf();
        let refused = Cause::NoEstablishedPfcpAssociation;
        assert_eq!(asked(&mut world, 0, setup(smf_node())), Cause::RequestRejected);
        assert_eq!(asked(&mut world, 0, AssociationUpdateRequest::new(smf_node())), refused);
        assert_eq!(asked(&mut world, 0, AssociationReleaseRequest::new(smf_node())), refused);
        assert_eq!(asked(&mut world, 0, SessionSetDeletionRequest::new(smf_node())), refused);
        assert_eq!(asked(&mut world, 0, pdu_session_of(0x5222, [10, 45, 0, 9].into())), refused);
        assert_eq!(asked(&mut world, seid, SessionModificationRequest::new()), refused);
        assert_eq!(asked(&mut world, seid, SessionDeletionRequest::new()), refused);
        assert_eq!(world.upf.sessions().count(), 1);
    }
    world.wait(60);
    assert_eq!(world.upf.associations().count(), 0, "it did not answer");
    world.associate(setup(smf_node()));
}

#[test]
fn sessions_of_another_smf_are_unknown() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    world.smf = other_smf();
    world.associate(setup(other_node()));
    let sent = world.ask(seid, SessionDeletionRequest::new());
    assert_eq!((cause(&sent.message), sent.header.seid), (Cause::SessionContextNotFound, Some(0)));
    assert_eq!(asked(&mut world, seid, SessionModificationRequest::new()), Cause::SessionContextNotFound);
    let own = SessionEstablishmentRequest {
        node_id: other_node(),
        cp_f_seid: FSeid::new(1, [192, 168, 4, 3].into()),
        ..pdu_session_of(1, [10, 45, 0, 9].into())
    };
    let (own, _) = world.establish(own);
    let take = SessionModificationRequest { node_id: Some(smf_node()), ..SessionModificationRequest::new() };
    assert_eq!(asked(&mut world, own, take), Cause::NoEstablishedPfcpAssociation, "nor gives it its own");
    let faulty = encode(seid, 5, SessionModificationRequest::new());
    let faulty = [&faulty[..], &[0, 3, 0, 8, 0, 108, 0, 4, 0, 0, 0, 9]].concat();
    let mut faulty = faulty;
    faulty[3] += 12;
    assert_eq!(world.send(&faulty)[0].header.seid, Some(0), "nor learns the SEID of another's session");
}

#[test]
fn each_peer_has_its_share() {
    let mut world = World::configured(|config| {
        config.max_associations_of_peer = 2;
        config.max_sessions_of_peer = 3;
    });
    let named = |number: u8| NodeId::Fqdn(format!("smf{number}"));
    world.associate(setup(named(1)));
    world.associate(setup(named(2)));
    assert_eq!(asked(&mut world, 0, setup(named(3))), Cause::NoResourcesAvailable);
    let session = |node: NodeId, last: u8| SessionEstablishmentRequest {
        node_id: node,
        ..pdu_session_of(last.into(), [10, 45, 0, last].into())
    };
    let first = world.establish(session(named(1), 1)).0;
    world.establish(session(named(2), 2));
    world.establish(session(named(2), 3));
    assert_eq!(asked(&mut world, 0, session(named(1), 4)), Cause::NoResourcesAvailable, "by any name");
    world.smf = other_smf();
    world.associate(setup(other_node()));
    world.establish(session(other_node(), 5));
    world.smf.set_ip([192, 168, 4, 2].into());
    world.delete(first);
    world.establish(session(named(1), 4));
}

fn downlink_data(seid: u64) -> Event {
    Event::DownlinkData { session: SessionId(seid), pdr: PdrId(2), qfi: None, dscp: 0 }
}

/// An SMF that does not answer gets a limited number of requests; delayed reports are sent when answers
/// arrive.
#[test]
fn requests_to_a_peer_are_limited_and_downlink_data_is_reported_later() {
    let mut world = World::configured(|config| {
        config.max_requests_to_peer = 2;
        config.heartbeat_interval = std::time::Duration::from_secs(3600);
    });
    world.associate(setup(smf_node()));
    let session = |last: u8| pdu_session_of(last.into(), [10, 45, 0, last].into());
    let seids: Vec<_> = (1..=4).map(|last| world.establish(session(last)).0).collect();
    let sent: Vec<_> = seids.iter().flat_map(|seid| world.event(downlink_data(*seid))).collect();
    assert_eq!(sent.len(), 2);
    for report in &sent {
        let answer = SessionReportResponse::new(Cause::RequestAccepted);
        world.send(&encode(report.header.seid.unwrap(), report.header.sequence, answer));
    }
    let later = reports(world.wait(4));
    let told: HashSet<_> = later.iter().map(|(header, _)| header.seid).collect();
    assert_eq!(told, HashSet::from([Some(3), Some(4)]));
}

#[test]
fn teids_and_seids_are_unpredictable_and_differ_between_runs() {
    let run = |seed: u8| {
        let mut world = World::new();
        world.reseed([seed; 32]);
        world.associate(setup(smf_node()));
        let session = |last: u8| pdu_session_of(last.into(), [10, 45, 0, last].into());
        (1..=200).map(|last| world.establish(session(last))).collect::<Vec<_>>()
    };
    let (first, second) = (run(1), run(2));
    let of = |run: &[(u64, u32)]| -> (HashSet<u64>, HashSet<u32>) { run.iter().copied().unzip() };
    let ((seids, teids), (later_seids, later_teids)) = (of(&first), of(&second));
    assert_eq!((seids.len(), teids.len()), (200, 200), "each is one session's");
    assert!(seids.is_disjoint(&later_seids) && teids.is_disjoint(&later_teids));
    let steps: HashSet<_> = first.windows(2).map(|pair| pair[1].1.wrapping_sub(pair[0].1)).collect();
    let long_steps: HashSet<_> = first.windows(2).map(|pair| pair[1].0.wrapping_sub(pair[0].0)).collect();
    assert!(steps.len() == 199 && long_steps.len() == 199, "no step comes again");
}

/// Another process at the SMF's address, which sends from a port of its own.
#[test]
fn a_setup_from_another_port_ends_no_sessions_while_the_smf_answers() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let smf = world.smf;
    let answer = |world: &mut World, sent: &[Sent], recovery: u64| {
        let heartbeat = sent.iter().find(|sent| matches!(sent.message, Message::HeartbeatRequest(_)));
        let sequence = heartbeat.expect("the SMF is asked").header.sequence;
        world.smf = smf;
        world.send(&encode(0, sequence, HeartbeatResponse::new(ntp(recovery))));
    };
    for sequence in 0..3 {
        world.smf.set_port(40_000);
        let sent = world.send(&encode(0, 70 + sequence, AssociationSetupRequest::new(smf_node(), ntp(99))));
        assert!(!sent.iter().any(|sent| matches!(sent.message, Message::AssociationSetupResponse(_))));
        answer(&mut world, &sent, 5);
        assert_eq!(world.upf.sessions().map(|id| id.0).collect::<Vec<_>>(), [seid]);
    }
    world.smf.set_port(40_000);
    assert_eq!(
        asked(&mut world, 0, AssociationReleaseRequest::new(smf_node())),
        Cause::NoEstablishedPfcpAssociation
    );
    let delete = SessionSetDeletionRequest::new(smf_node());
    assert_eq!(asked(&mut world, 0, delete), Cause::NoEstablishedPfcpAssociation);
    let update = AssociationUpdateRequest::new(smf_node());
    assert_eq!(asked(&mut world, 0, update), Cause::NoEstablishedPfcpAssociation);
    assert_eq!(world.upf.sessions().count(), 1);
    assert_eq!(
        asked(&mut world, 0, pdu_session()),
        Cause::NoEstablishedPfcpAssociation,
        "nor takes it a UE's address"
    );
    assert_eq!(world.upf.sessions().map(|id| id.0).collect::<Vec<_>>(), [seid]);
    // The SMF itself has restarted, and sends from a new port: the repeated request is served.
    let request = encode(0, 80, AssociationSetupRequest::new(smf_node(), ntp(99)));
    let sent = world.send(&request);
    answer(&mut world, &sent, 99);
    assert_eq!(world.upf.sessions().count(), 0);
    world.smf.set_port(40_000);
    assert_eq!(cause(&world.send(&request).remove(0).message), Cause::RequestAccepted);
    assert_eq!(asked(&mut world, 0, pdu_session()), Cause::RequestAccepted, "this port is the SMF's now");
}

/// A port that sets up while there is nothing to lose would be the SMF's when there is.
#[test]
fn a_setup_from_another_port_is_verified_even_without_sessions() {
    let mut world = World::associated();
    world.smf.set_port(40_000);
    let request = encode(0, 80, setup(smf_node()));
    assert!(
        !world.send(&request).iter().any(|sent| matches!(sent.message, Message::AssociationSetupResponse(_)))
    );
}

/// A heartbeat with another Recovery Time Stamp than the set-up's is a restart for a while only.
#[test]
fn a_restart_permits_a_setup_from_another_port_for_a_minute() {
    let (mut world, ..) = World::with_session(pdu_session());
    let smf = world.smf;
    world.ask(0, HeartbeatRequest::new(ntp(77)));
    for _ in 0..70 {
        for heartbeat in world.wait(1) {
            let sequence = heartbeat.header.sequence;
            world.send(&encode(0, sequence, HeartbeatResponse::new(ntp(77))));
        }
    }
    world.smf.set_port(40_000);
    let request = encode(0, 80, setup(smf_node()));
    assert!(
        !world.send(&request).iter().any(|sent| matches!(sent.message, Message::AssociationSetupResponse(_)))
    );
    world.smf = smf;
    assert_eq!(asked(&mut world, 0, setup(smf_node())), Cause::RequestAccepted);
}

#[test]
fn a_setup_from_another_port_is_served_if_the_smf_is_silent() {
    let (mut world, ..) = World::with_session(pdu_session());
    world.smf.set_port(40_000);
    let request = encode(0, 80, setup(smf_node()));
    world.send(&request);
    world.wait(9);
    assert_eq!(cause(&world.send(&request).remove(0).message), Cause::RequestAccepted);
    assert_eq!(world.upf.sessions().count(), 0);
}
