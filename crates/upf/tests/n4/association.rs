//! Associations, heartbeats, duplicates, retransmissions and hostile datagrams.

use std::net::SocketAddr;
use std::time::Duration;

use crate::support::*;
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_pfcp::{IeType, Message, MessageType};
use pith_upf::{Input, Notice};

#[test]
fn an_association_response_contains_node_id_and_features() {
    let mut world = World::new();
    let sent = world.ask(0, AssociationSetupRequest::new(smf_node(), ntp(0)));
    let Message::AssociationSetupResponse(response) = sent.message else { panic!() };
    assert_eq!(response.cause, Cause::RequestAccepted);
    assert_eq!(response.node_id, NodeId::Ipv4([192, 168, 4, 1].into()));
    assert_eq!(response.recovery_time_stamp.to_unix(), STARTED);
    let features = response.up_function_features.expect("features");
    assert!(features.contains(UpFunctionFeatures::FTUP | UpFunctionFeatures::EMPU), "mandatory ones");
    assert_eq!(world.upf.associations().count(), 1);
}

#[test]
fn several_smfs_have_associations_of_their_own() {
    let (mut world, first, _) = World::with_session(pdu_session());
    let other = NodeId::Fqdn("smf2.example".into());
    world.ask(0, AssociationSetupRequest::new(other.clone(), ntp(0)));
    let second = SessionEstablishmentRequest {
        node_id: other.clone(),
        ..pdu_session_of(0x5222, [10, 45, 0, 9].into())
    };
    let (second, _) = world.establish(second);
    world.ask(0, AssociationReleaseRequest::new(other));
    let left: Vec<_> = world.upf.sessions().map(|id| id.0).collect();
    assert_eq!(left, [first], "{second:#x} went with its association");
    assert_eq!((world.upf.associations().count(), world.upf.teids_in_use()), (1, 1));
}

#[test]
fn associations_are_limited_and_one_that_exists_may_be_set_up_anew() {
    let mut world = World::configured(|config| config.max_associations = 1);
    let setup = |node: NodeId| AssociationSetupRequest::new(node, ntp(0));
    world.associate(setup(smf_node()));
    let sent = world.ask(0, setup(NodeId::Fqdn("smf2.example".into())));
    let Message::AssociationSetupResponse(response) = sent.message else { panic!() };
    assert_eq!((response.cause, world.upf.associations().count()), (Cause::NoResourcesAvailable, 1));
    world.associate(setup(smf_node()));
}

#[test]
fn an_association_set_up_anew_loses_its_sessions() {
    let (mut world, ..) = World::with_session(pdu_session());
    let sent = world.ask(0, AssociationSetupRequest::new(smf_node(), ntp(9)));
    let Message::AssociationSetupResponse(response) = sent.message else { panic!() };
    assert_eq!((response.pfcp_as_rsp_flags, world.upf.sessions().count()), (None, 0));
    assert!(world.datapath.sessions.is_empty());
}

#[test]
fn an_association_set_up_anew_retains_the_sessions_asked_for() {
    for (entity, retained) in [(None, 1), (Some([192, 168, 4, 2]), 1), (Some([192, 168, 4, 77]), 0)] {
        let (mut world, ..) = World::with_session(pdu_session());
        let entity = entity.map(|address| EntityIpAddress { ipv4: Some(address.into()), ipv6: None });
        let information = SessionRetentionInformation {
            cp_pfcp_entity_ip_addresses: entity.into_iter().collect(),
            ..SessionRetentionInformation::new()
        };
        let request = AssociationSetupRequest {
            session_retention_information: Some(information),
            ..AssociationSetupRequest::new(smf_node(), ntp(9))
        };
        let sent = world.ask(0, request);
        let Message::AssociationSetupResponse(response) = sent.message else { panic!() };
        assert_eq!(response.pfcp_as_rsp_flags, Some(PfcpAsRspFlags::PSREI));
        assert_eq!(world.upf.sessions().count(), retained);
    }
}

#[test]
fn an_update_of_an_unknown_association_is_rejected_and_a_release_is_not() {
    let mut world = World::new();
    let Message::AssociationUpdateResponse(response) =
        world.ask(0, AssociationUpdateRequest::new(smf_node())).message
    else {
        panic!()
    };
    assert_eq!(response.cause, Cause::NoEstablishedPfcpAssociation);
    let Message::AssociationReleaseResponse(response) =
        world.ask(0, AssociationReleaseRequest::new(smf_node())).message
    else {
        panic!()
    };
    assert_eq!(response.cause, Cause::RequestAccepted);
}

#[test]
fn a_session_set_is_deleted_by_its_fq_csid() {
    let csid = |number| FqCsid {
        node: CsidNode::Ipv4([192, 168, 4, 2].into()),
        csids: vec![number],
        node_type: Some(2),
    };
    let mut request = pdu_session();
    request.fq_csids = vec![csid(1)];
    let (mut world, ..) = World::with_session(request);
    let (other, _) = world.establish(SessionEstablishmentRequest {
        fq_csids: vec![csid(2)],
        ..pdu_session_of(0x5222, [10, 45, 0, 9].into())
    });
    let delete =
        SessionSetDeletionRequest { fq_csids: vec![csid(1)], ..SessionSetDeletionRequest::new(smf_node()) };
    world.ask(0, delete);
    assert_eq!(world.upf.sessions().map(|id| id.0).collect::<Vec<_>>(), [other]);
}

#[test]
fn an_smf_cannot_delete_the_session_sets_of_another() {
    let set = FqCsid { node: CsidNode::Ipv4([192, 168, 4, 2].into()), csids: vec![1], node_type: Some(2) };
    let mut request = pdu_session();
    request.fq_csids = vec![set.clone()];
    let (mut world, seid, _) = World::with_session(request);
    let other = NodeId::Fqdn("smf2.example".into());
    let delete =
        SessionSetDeletionRequest { fq_csids: vec![set], ..SessionSetDeletionRequest::new(other.clone()) };
    let cause = |world: &mut World| {
        let Message::SessionSetDeletionResponse(response) = world.ask(0, delete.clone()).message else {
            panic!()
        };
        response.cause
    };
    assert_eq!(cause(&mut world), Cause::NoEstablishedPfcpAssociation);
    world.associate(AssociationSetupRequest::new(other, ntp(5)));
    assert_eq!(cause(&mut world), Cause::RequestAccepted);
    assert_eq!(world.upf.sessions().map(|id| id.0).collect::<Vec<_>>(), [seid]);
}

#[test]
fn a_stopping_upf_asks_every_smf_for_its_release() {
    let mut world = World::associated();
    let sent = world.input(Input::Shutdown { graceful: Duration::from_secs(60) });
    let Message::AssociationUpdateRequest(request) = &sent[0].message else { panic!() };
    assert_eq!(request.association_release_request, Some(ReleaseRequestFlags::SARR));
    assert_eq!(request.graceful_release_period.and_then(CodedDuration::seconds), Some(60));
}

#[test]
fn a_heartbeat_is_answered_even_without_association() {
    let mut world = World::new();
    let Message::HeartbeatResponse(response) = world.ask(0, HeartbeatRequest::new(ntp(1))).message else {
        panic!()
    };
    assert_eq!(response.recovery_time_stamp.to_unix(), STARTED);
}

#[test]
fn an_smf_that_restarted_loses_its_sessions_by_its_own_heartbeat() {
    let (mut world, ..) = World::with_session(pdu_session());
    world.ask(0, HeartbeatRequest::new(ntp(1)));
    world.ask(0, HeartbeatRequest::new(ntp(1)));
    assert_eq!(world.upf.sessions().count(), 1);
    world.quiet();
    let smf = world.smf;
    world.smf.set_port(40_000);
    world.ask(0, HeartbeatRequest::new(ntp(100)));
    assert_eq!(world.upf.sessions().count(), 1, "any process at the SMF's address may have sent it");
    world.smf = smf;
    world.ask(0, HeartbeatRequest::new(ntp(100)));
    assert_eq!((world.upf.sessions().count(), world.upf.associations().count()), (0, 1));
    assert!(matches!(world.notices.last(), Some(Notice::PeerRestarted { sessions: 1, .. })));
}

/// Answers the heartbeat in `sent`.
fn answer_heartbeat(world: &mut World, sent: &[Sent], recovery: NtpSeconds) {
    let is_heartbeat = |sent: &&Sent| matches!(sent.message, Message::HeartbeatRequest(_));
    let request = sent.iter().find(is_heartbeat).expect("a heartbeat");
    let response = encode(0, request.header.sequence, HeartbeatResponse::new(recovery));
    assert!(world.send(&response).is_empty());
}

#[test]
fn an_smf_that_restarted_loses_its_sessions_by_the_upfs_heartbeat() {
    let (mut world, ..) = World::with_session(pdu_session());
    for (recovery, sessions) in [(1, 1), (1, 1), (50, 0)] {
        let sent = world.wait(10);
        answer_heartbeat(&mut world, &sent, ntp(recovery));
        assert_eq!(world.upf.sessions().count(), sessions);
    }
}

#[test]
fn a_faulty_response_to_a_heartbeat_is_none_and_heartbeats_go_on() {
    let (mut world, ..) = World::with_session(pdu_session());
    let sent = world.wait(10);
    // Without its Recovery Time Stamp.
    let mut faulty = encode(0, sent[0].header.sequence, HeartbeatResponse::new(ntp(1)));
    faulty.truncate(8);
    faulty[3] = 4;
    assert!(world.send(&faulty).is_empty());
    assert!(matches!(world.notices.pop(), Some(Notice::PathFailed { .. })));
    let next = world.wait(10);
    assert_eq!(next.len(), 1, "the one before is not sent again, the next in its time: {next:?}");
    answer_heartbeat(&mut world, &next, ntp(1));
    assert!(matches!(world.notices.last(), Some(Notice::PathRecovered { .. })));
    assert_eq!(world.upf.sessions().count(), 1);
}

#[test]
fn a_heartbeat_is_sent_n1_times_and_then_the_path_has_failed() {
    let (mut world, ..) = World::with_session(pdu_session());
    let sent = world.wait(18);
    assert_eq!(sent.len(), 3, "at 10, 13 and 16 seconds");
    assert!(sent.iter().all(|again| again.octets == sent[0].octets), "the same message each time");
    assert!(!world.notices.iter().any(|notice| matches!(notice, Notice::PathFailed { .. })));
    world.wait(1);
    assert!(matches!(world.notices.last(), Some(Notice::PathFailed { .. })));
    assert_eq!(world.upf.sessions().count(), 1, "sessions live on for a while");
    let sent = world.wait(10);
    answer_heartbeat(&mut world, &sent, ntp(1));
    assert!(matches!(world.notices.last(), Some(Notice::PathRecovered { .. })));
    world.wait(15);
    assert_eq!(world.upf.sessions().count(), 1);
}

/// Only its answers are lost.
#[test]
fn an_smf_that_sends_heartbeats_is_not_forgotten() {
    let (mut world, ..) = World::with_session(pdu_session());
    for sequence in 50..60 {
        world.wait(15);
        world.send(&encode(0, sequence, HeartbeatRequest::new(ntp(1))));
    }
    assert_eq!((world.upf.sessions().count(), world.upf.associations().count()), (1, 1));
}

#[test]
fn an_smf_that_stays_silent_is_forgotten() {
    let (mut world, ..) = World::with_session(pdu_session());
    world.wait(18 + 62);
    assert_eq!((world.upf.sessions().count(), world.upf.associations().count()), (0, 0));
    assert_eq!(world.upf.teids_in_use(), 0);
    world.wait(20);
    assert_eq!(world.upf.next_timeout(), None, "nothing is left to wait for");
}

#[test]
fn a_duplicate_gets_the_same_response_and_changes_nothing() {
    let mut world = World::associated();
    let request = encode(0, 7, pdu_session());
    let first = world.send(&request);
    world.quiet();
    world.now += Duration::from_secs(3);
    let again = world.send(&request);
    assert_eq!(again[0].octets, first[0].octets);
    assert_eq!((world.upf.sessions().count(), world.datapath.ladder.len()), (1, 0));
}

#[test]
fn a_sequence_number_that_is_used_again_is_no_duplicate() {
    let mut world = World::associated();
    world.send(&encode(0, 7, pdu_session()));
    world.send(&encode(0, 7, pdu_session_of(0x5222, [10, 45, 0, 9].into())));
    assert_eq!(world.upf.sessions().count(), 2);
}

#[test]
fn the_same_request_of_another_peer_is_no_duplicate() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let request = encode(seid, 900, SessionDeletionRequest::new());
    world.send(&request);
    world.smf = SocketAddr::from(([192, 168, 4, 3], 8805));
    let Message::SessionDeletionResponse(response) = &world.send(&request)[0].message else { panic!() };
    assert_eq!(response.cause, Cause::NoEstablishedPfcpAssociation);
}

#[test]
fn a_missing_element_is_answered_with_cause_and_type() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    // Session Modification Request: Create FAR with a FAR ID alone.
    let ies = [0, 3, 0, 8, 0, 108, 0, 4, 0, 0, 0, 9];
    let mut octets = encode(seid, 5, SessionModificationRequest::new());
    octets[3] += ies.len() as u8;
    octets.extend(ies);
    let sent = world.send(&octets).remove(0);
    assert_eq!(sent.header.seid, Some(0x5111), "the peer's endpoint is looked up");
    let Message::SessionModificationResponse(response) = sent.message else { panic!() };
    assert_eq!(response.cause, Cause::MandatoryIeMissing);
    assert_eq!(response.offending_ie, Some(OffendingIe(IeType::APPLY_ACTION)));
}

#[test]
fn a_length_that_does_not_fit_the_datagram_is_answered() {
    let mut world = World::associated();
    let mut octets = encode(0, 5, pdu_session());
    octets.truncate(octets.len() - 3);
    let Message::SessionEstablishmentResponse(response) = &world.send(&octets)[0].message else { panic!() };
    assert_eq!(response.cause, Cause::InvalidLength);
}

#[test]
fn version_not_supported_is_sent_once() {
    let mut world = World::new();
    let mut octets = encode(0, 5, HeartbeatRequest::new(ntp(0)));
    octets[0] = 0x40;
    let sent = world.send(&octets);
    assert_eq!(sent[0].header.message_type, MessageType::VERSION_NOT_SUPPORTED_RESPONSE);
    octets[1] = 11;
    assert!(world.send(&octets).is_empty(), "no answer to such an answer");
}

#[test]
fn unsupported_messages_are_answered_or_discarded() {
    let mut world = World::associated();
    let Message::PfdManagementResponse(response) = world.ask(0, PfdManagementRequest::new()).message else {
        panic!()
    };
    assert_eq!(response.cause, Cause::ServiceNotSupported);
    let report = encode(1, 6, SessionReportRequest::new(ReportType::UPIR));
    assert!(world.send(&report).is_empty(), "a UPF sends reports and gets none");
    let stray = encode(1, 6, SessionReportResponse::new(Cause::RequestAccepted));
    assert!(world.send(&stray).is_empty());
    assert!(world.send(&[0x20, 99, 0, 4, 0, 0, 1, 0]).is_empty(), "an unknown message type");
    assert!(world.send(&[0x20]).is_empty());
    assert!(matches!(world.notices.last(), Some(Notice::Discarded { .. })));
}

#[test]
fn bundled_requests_are_each_answered() {
    let (mut world, seid, _) = World::with_session(pdu_session());
    let mut first = encode(seid, 50, SessionModificationRequest::new());
    first[0] |= 0x04;
    let sent = world.send(&[first, encode(seid, 51, SessionDeletionRequest::new())].concat());
    assert_eq!(sent.iter().map(|sent| sent.header.sequence).collect::<Vec<_>>(), [50, 51]);
}

#[test]
fn damaged_datagrams_never_panic_and_never_leak() {
    let mut world = World::associated();
    let request = encode(0, 900, pdu_session());
    for place in 0..request.len() {
        for octet in [0, 1, 0x7f, 0xff] {
            let mut damaged = request.clone();
            damaged[place] = octet;
            world.send(&damaged);
            world.send(&damaged[..place]);
        }
    }
    let seids: Vec<_> = world.upf.sessions().map(|id| id.0).collect();
    assert_eq!(world.datapath.sessions.len(), seids.len());
    seids.into_iter().for_each(|seid| assert_eq!(world.delete(seid).cause, Cause::RequestAccepted));
    assert_eq!((world.upf.teids_in_use(), world.datapath.sessions.len()), (0, 0));
}

#[test]
fn a_request_of_a_restarted_smf_is_none_of_before() {
    let mut world = World::associated();
    let request = encode(0, 77, pdu_session());
    world.send(&request);
    world.send(&request);
    assert_eq!(world.upf.sessions().count(), 1, "a duplicate");
    world.associate(AssociationSetupRequest::new(smf_node(), ntp(9)));
    assert_eq!(world.upf.sessions().count(), 0);
    // Its sequence numbers begin again, and it restores the session with the same request.
    world.send(&request);
    assert_eq!(world.upf.sessions().count(), 1);
}
