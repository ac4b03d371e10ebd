//! SMF sets: sessions that another SMF of the set takes over, and that an SMF outside of it does not get (TS 29.244 5.22.3).

use std::net::SocketAddr;

use crate::support::*;
use pith_pfcp::ie::*;
use pith_pfcp::message::*;
use pith_pfcp::{Header, Message};
use pith_upf::contract::{self, Event, SessionId};

const SET: &str = "set1.smfset.5gc.example.org";
const OTHER: [u8; 4] = [192, 168, 4, 3];
const STRANGER: [u8; 4] = [192, 168, 4, 9];

fn setup(node: NodeId, set: Option<&str>) -> AssociationSetupRequest {
    AssociationSetupRequest {
        cp_function_features: Some(CpFunctionFeatures::MPAS),
        smf_set_id: set.map(SmfSetId::of_name),
        ..AssociationSetupRequest::new(node, ntp(5))
    }
}

fn at(address: [u8; 4]) -> SocketAddr {
    SocketAddr::from((address, 8805))
}

/// Three SMFs, of which the first two are in the set, and a session of the first.
fn world() -> (World, u64) {
    let mut world = World::configured(|config| config.smf_sets = vec![SET.into()]);
    let response = world.associate(setup(smf_node(), Some(SET)));
    assert!(response.up_function_features.unwrap().contains(UpFunctionFeatures::MPAS));
    for (address, set) in [(OTHER, Some(SET)), (STRANGER, None)] {
        as_smf(&mut world, address, |world| world.associate(setup(NodeId::Ipv4(address.into()), set)));
    }
    let (seid, _) = world.establish(pdu_session());
    (world, seid)
}

fn as_smf<T>(world: &mut World, address: [u8; 4], act: impl FnOnce(&mut World) -> T) -> T {
    let own = std::mem::replace(&mut world.smf, at(address));
    let done = act(world);
    world.smf = own;
    done
}

fn take_over(address: [u8; 4]) -> SessionModificationRequest {
    SessionModificationRequest {
        cp_f_seid: Some(FSeid::new(0x7777, address.into())),
        node_id: Some(NodeId::Ipv4(address.into())),
        ..SessionModificationRequest::new()
    }
}

fn downlink_data(seid: u64) -> Event {
    Event::DownlinkData { session: SessionId(seid), pdr: contract::PdrId(2), qfi: None, dscp: 0 }
}

#[test]
fn another_smf_of_the_set_takes_a_session_over() {
    let (mut world, seid) = world();
    let response = as_smf(&mut world, OTHER, |world| world.modify(seid, take_over(OTHER)));
    assert_eq!(response.cause, Cause::RequestAccepted);
    let sent = world.event(downlink_data(seid));
    assert_eq!((sent[0].peer, sent[0].header.seid), (at(OTHER), Some(0x7777)));
    let response = world.modify(seid, SessionModificationRequest::new());
    assert_eq!(response.cause, Cause::SessionContextNotFound, "it is no longer the first one's");
    world.ask(0, AssociationReleaseRequest::new(smf_node()));
    assert_eq!(world.upf.sessions().count(), 1);
}

/// It has read of the session, which is to end: the deletion may overtake the request that takes it over.
#[test]
fn another_smf_of_the_set_deletes_a_session_that_it_has_not_taken_over() {
    let (mut world, seid) = world();
    let delete = |world: &mut World, address: [u8; 4], node: Option<[u8; 4]>| {
        let node_id = node.map(|node| NodeId::Ipv4(node.into()));
        let request = SessionDeletionRequest { node_id, ..SessionDeletionRequest::new() };
        let sent = as_smf(world, address, |world| world.ask(seid, request));
        let Message::SessionDeletionResponse(response) = sent.message else { panic!() };
        response.cause
    };
    for (address, node) in [(OTHER, None), (STRANGER, Some(STRANGER)), (STRANGER, Some(OTHER))] {
        assert_eq!(delete(&mut world, address, node), Cause::SessionContextNotFound);
    }
    assert_eq!(delete(&mut world, OTHER, Some(OTHER)), Cause::RequestAccepted);
    assert_eq!((world.upf.sessions().count(), world.upf.teids_in_use()), (0, 0));
}

#[test]
fn an_smf_outside_of_the_set_does_not_get_a_session() {
    let (mut world, seid) = world();
    let response = as_smf(&mut world, STRANGER, |world| world.modify(seid, take_over(STRANGER)));
    assert_eq!(response.cause, Cause::SessionContextNotFound);
    // Nor one that names itself as a member of the set, and the address of one that is not.
    let response = as_smf(&mut world, STRANGER, |world| world.modify(seid, take_over(OTHER)));
    assert_eq!(response.cause, Cause::SessionContextNotFound);
    // Nor one of the set that does not say that it takes the session over.
    let response = as_smf(&mut world, OTHER, |world| world.modify(seid, SessionModificationRequest::new()));
    assert_eq!(response.cause, Cause::SessionContextNotFound);
    assert_eq!(world.event(downlink_data(seid))[0].peer, world.smf);
}

#[test]
fn a_set_that_the_operator_does_not_name_is_none() {
    let mut world = World::new();
    let response = world.associate(setup(smf_node(), Some(SET)));
    assert!(!response.up_function_features.unwrap().contains(UpFunctionFeatures::MPAS));
    as_smf(&mut world, OTHER, |world| world.associate(setup(NodeId::Ipv4(OTHER.into()), Some(SET))));
    let (seid, _) = world.establish(pdu_session());
    let response = as_smf(&mut world, OTHER, |world| world.modify(seid, take_over(OTHER)));
    assert_eq!(response.cause, Cause::SessionContextNotFound);
}

/// The reports among the messages to that SMF.
fn reports_to(sent: Vec<Sent>, address: [u8; 4]) -> Vec<(Header, SessionReportRequest)> {
    reports(sent.into_iter().filter(|sent| sent.peer == at(address)).collect())
}

#[test]
fn a_report_that_the_smf_does_not_answer_goes_to_another_of_its_set() {
    let (mut world, seid) = world();
    world.event(downlink_data(seid));
    let sent = reports_to(world.wait(10), OTHER);
    let (header, report) = &sent[0];
    assert_eq!(header.seid, Some(0), "that SMF has given none");
    assert_eq!(report.old_cp_f_seid.map(|former| former.seid), Some(0x5111));
    assert_eq!(report.report_type, ReportType::DLDR);
    let response = SessionReportResponse {
        cp_f_seid: Some(FSeid::new(0x7777, OTHER.into())),
        ..SessionReportResponse::new(Cause::RequestAccepted)
    };
    let octets = encode(seid, header.sequence, response);
    as_smf(&mut world, OTHER, |world| world.send(&octets));
    let sent = world.event(Event::ErrorIndication { peer: GNB.into(), teid: contract::Teid(0) });
    assert!(sent.is_empty());
    let sent = world.event(downlink_data(seid));
    assert_eq!((sent[0].peer, sent[0].header.seid), (at(OTHER), Some(0x7777)));
}

#[test]
fn an_smf_that_does_not_have_the_session_yet_does_not_end_it() {
    let (mut world, seid) = world();
    world.event(downlink_data(seid));
    let sent = reports_to(world.wait(10), OTHER);
    let octets = encode(0, sent[0].0.sequence, SessionReportResponse::new(Cause::SessionContextNotFound));
    as_smf(&mut world, OTHER, |world| world.send(&octets));
    assert_eq!(world.upf.sessions().count(), 1);
}

/// Time passes, and only these SMFs answer heartbeats.
fn silence(world: &mut World, answering: &[[u8; 4]], seconds: u64) {
    let beats = |sent: &Sent| match &sent.message {
        Message::HeartbeatRequest(_) => Some((sent.peer, sent.header.sequence)),
        _ => None,
    };
    for _ in 0..seconds {
        for (peer, sequence) in world.wait(1).iter().filter_map(beats).collect::<Vec<_>>() {
            if let Some(address) = answering.iter().find(|address| at(**address) == peer) {
                let octets = encode(0, sequence, HeartbeatResponse::new(ntp(5)));
                as_smf(world, *address, |world| world.send(&octets));
            }
        }
    }
}

#[test]
fn sessions_outlive_the_association_of_their_smf_as_long_as_another_of_the_set_has_one() {
    let (mut world, _) = world();
    silence(&mut world, &[OTHER, STRANGER], 120);
    assert_eq!((world.upf.associations().count(), world.upf.sessions().count()), (2, 1));
    silence(&mut world, &[STRANGER], 120);
    assert_eq!((world.upf.associations().count(), world.upf.sessions().count()), (1, 0), "the set is gone");
}

/// The SMF that takes over has lost the SEID, or the UPF's answer.
#[test]
fn an_smf_of_the_set_may_restore_a_session_that_the_upf_still_has() {
    let (mut world, seid) = world();
    let before: Vec<_> = world
        .installed(seid)
        .pdrs
        .iter()
        .filter_map(|pdr| match pdr.source {
            contract::Source::Tunnel { teid, .. } => Some(teid.0),
            contract::Source::Network => None,
        })
        .collect();
    let mut request = pdu_session();
    request.node_id = NodeId::Ipv4(OTHER.into());
    request.cp_f_seid = FSeid::new(0x7777, OTHER.into());
    request.pfcp_se_req_flags = Some(PfcpSeReqFlags::RESTI);
    let f_teid = FTeid::Allocated { teid: before[0], ipv4: Some(N3), ipv6: None };
    request.create_pdrs[0].pdi.local_f_teid = Some(f_teid);
    let sent = as_smf(&mut world, OTHER, |world| world.ask(0, request));
    let Message::SessionEstablishmentResponse(response) = sent.message else { panic!() };
    assert_eq!(response.cause, Cause::RequestAccepted);
    assert_eq!((world.upf.sessions().count(), world.upf.teids_in_use()), (1, 1));
}

fn setup_cause(world: &mut World, request: AssociationSetupRequest) -> (Cause, bool) {
    let Message::AssociationSetupResponse(response) = world.ask(0, request).message else { panic!() };
    (response.cause, response.pfcp_as_rsp_flags.is_some_and(|flags| flags.contains(PfcpAsRspFlags::PSREI)))
}

#[test]
fn the_node_id_of_an_smf_that_is_gone_gives_a_stranger_no_session() {
    let (mut world, seid) = world();
    silence(&mut world, &[OTHER, STRANGER], 120);
    let claim = setup(smf_node(), None);
    let answer = as_smf(&mut world, STRANGER, |world| setup_cause(world, claim.clone()));
    assert_eq!(answer, (Cause::RequestRejected, false));
    let response =
        as_smf(&mut world, STRANGER, |world| world.modify(seid, SessionModificationRequest::new()));
    assert_eq!(response.cause, Cause::SessionContextNotFound);
    // The SMF itself returns, and retains its session.
    let returns = AssociationSetupRequest {
        session_retention_information: Some(SessionRetentionInformation::new()),
        ..setup(smf_node(), Some(SET))
    };
    assert_eq!(setup_cause(&mut world, returns), (Cause::RequestAccepted, true));
    assert_eq!(world.modify(seid, SessionModificationRequest::new()).cause, Cause::RequestAccepted);
    silence(&mut world, &[OTHER, STRANGER], 120);
    assert_eq!(setup_cause(&mut world, claim), (Cause::RequestAccepted, false));
    assert_eq!(world.upf.sessions().count(), 0, "it retains none");
}

#[test]
fn no_session_is_left_when_the_last_smf_of_the_set_releases_its_association() {
    let (mut world, _) = world();
    silence(&mut world, &[OTHER, STRANGER], 120);
    assert_eq!(world.upf.sessions().count(), 1);
    let release = AssociationReleaseRequest::new(NodeId::Ipv4(OTHER.into()));
    as_smf(&mut world, OTHER, |world| world.ask(0, release));
    assert_eq!((world.upf.associations().count(), world.upf.sessions().count()), (1, 0));
}

#[test]
fn a_request_has_no_more_session_sets_than_there_are_types_of_nodes() {
    let (mut world, seid) = world();
    let sets = |count| {
        (0..count)
            .map(|id| FqCsid {
                node: CsidNode::Ipv4([1, 2, 3, 4].into()),
                csids: vec![id],
                node_type: Some(2),
            })
            .collect::<Vec<_>>()
    };
    let modification =
        |count| SessionModificationRequest { fq_csids: sets(count), ..SessionModificationRequest::new() };
    assert_eq!(world.modify(seid, modification(8)).cause, Cause::RequestAccepted);
    assert_eq!(world.modify(seid, modification(9)).cause, Cause::NoResourcesAvailable);
    let mut establishment = pdu_session();
    establishment.fq_csids = sets(9);
    let Message::SessionEstablishmentResponse(response) = world.ask(0, establishment).message else {
        panic!()
    };
    assert_eq!(response.cause, Cause::NoResourcesAvailable);
    let mut deletion = SessionSetDeletionRequest::new(smf_node());
    deletion.fq_csids = sets(9);
    let Message::SessionSetDeletionResponse(response) = world.ask(0, deletion).message else { panic!() };
    assert_eq!(response.cause, Cause::NoResourcesAvailable);
}
