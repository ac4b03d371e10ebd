//! Handover of a session: path switch after an Xn handover, and the handover states of an N2 handover (TS 29.502 5.2.2.3.3, 5.2.2.3.4).

use super::branching::plain;
use super::world::*;
use crate::kit::{N4Error, Timer};
use pith_nas::gsm::PduSessionReleaseComplete;
use pith_ngap::transfer::{
    HandoverCommandTransfer, HandoverRequestAcknowledgeTransfer, HandoverRequiredTransfer,
    PathSwitchRequestAcknowledgeTransfer, PathSwitchRequestTransfer, SetupRequestTransfer, Tunnel,
};
use pith_pfcp::Message;
use pith_pfcp::ie::{
    ApplyAction, Cause as N4Cause, DestinationInterface, InterfaceType, OuterHeaderCreation, PfcpSmReqFlags,
    SourceInterface,
};
use pith_sbi::nsmf_pdusession::{HoState, N2SmInfoType, SmContextUpdatedData, UpCnxState};
use pith_sbi::{Cause, ProblemMore, Response};
use pith_types::Teid;

/// The target gNB's endpoint.
pub(super) const TARGET: Tunnel =
    Tunnel { address: std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 3)), teid: Teid(0x77) };

/// The target gNB's endpoint for forwarded packets.
const FORWARDING: Tunnel = Tunnel { teid: Teid(0x78), ..TARGET };

pub(super) fn switch(world: &mut World) {
    switch_to(world, TARGET, &[1]);
}

pub(super) fn switch_to(world: &mut World, downlink: Tunnel, flows: &[u8]) {
    let transfer = PathSwitchRequestTransfer { downlink, flows: flows.to_vec(), additional: vec![] }.encode();
    world.update(|data| {
        data.to_be_switched = Some(true);
        data.n2_sm_info_type = Some(N2SmInfoType::PathSwitchReq);
        data.n2_sm_info = Some(transfer.into());
    });
}

fn handover(world: &mut World, state: HoState, n2: Option<(N2SmInfoType, Vec<u8>)>) {
    world.update(|data| {
        data.ho_state = Some(state);
        if let Some((kind, transfer)) = n2 {
            data.n2_sm_info = Some(transfer.into());
            data.n2_sm_info_type = Some(kind);
        }
    });
}

pub(super) fn required(world: &mut World) {
    required_with(world, true);
}

fn required_with(world: &mut World, direct_forwarding_path: bool) {
    let transfer = HandoverRequiredTransfer { direct_forwarding_path }.encode();
    handover(world, HoState::Preparing, Some((N2SmInfoType::HandoverRequired, transfer)));
}

pub(super) fn prepared(world: &mut World) {
    prepared_with(world, &[1]);
}

pub(super) fn prepared_with(world: &mut World, flows: &[u8]) {
    prepared_at(world, flows, FORWARDING);
}

/// The target gNB admits flows, and accepts forwarded packets of some.
pub(super) fn prepared_flows(world: &mut World, flows: &[(u8, bool)]) {
    acknowledged(world, flows.to_vec(), FORWARDING);
}

fn prepared_at(world: &mut World, flows: &[u8], forwarding: Tunnel) {
    acknowledged(world, flows.iter().map(|qfi| (*qfi, true)).collect(), forwarding);
}

fn acknowledged(world: &mut World, flows: Vec<(u8, bool)>, forwarding: Tunnel) {
    let transfer = HandoverRequestAcknowledgeTransfer {
        downlink: TARGET,
        forwarding: Some(forwarding),
        flows,
        additional: Vec::new(),
        failed: Vec::new(),
    };
    handover(world, HoState::Prepared, Some((N2SmInfoType::HandoverReqAck, transfer.encode())));
}

pub(super) fn completed(world: &mut World) {
    handover(world, HoState::Completed, None);
}

pub(super) fn cancelled(world: &mut World) {
    handover(world, HoState::Cancelled, None);
}

fn answer(world: &World) -> &SmContextUpdatedData {
    match world.answers.last() {
        Some(Ok(Response::SmContextUpdated(data))) => data,
        other => panic!("{other:?}"),
    }
}

/// Endpoint, action and flags of the last modification for downlink packets.
fn downlink(world: &World) -> (Option<OuterHeaderCreation>, Option<ApplyAction>, Option<PfcpSmReqFlags>) {
    let Some(Message::SessionModificationRequest(request)) = world.n4.last() else {
        panic!("{:?}", world.n4.last())
    };
    let far = &request.update_fars[0];
    let parameters = far.update_forwarding_parameters.as_ref().unwrap();
    let header = match parameters.outer_header_creation {
        Some(pith_pfcp::Change::Set(header)) => Some(header),
        _ => None,
    };
    (header, far.apply_action, parameters.pfcp_sm_req_flags)
}

fn to(tunnel: Tunnel) -> Option<OuterHeaderCreation> {
    Some(OuterHeaderCreation::gtpu(tunnel.teid.0, tunnel.address))
}

/// The N2 information of a refusal.
fn refused_transfer(world: &World) -> Option<N2SmInfoType> {
    match world.answers.last() {
        Some(Err(problem)) => match &problem.more {
            Some(ProblemMore::SmContextUpdateError(data)) => data.n2_sm_info_type.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// The UPF's endpoint in the acknowledgement for the target gNB, if the source gNB had another one.
pub(super) fn switched_uplink(world: &World) -> Option<Tunnel> {
    let data = answer(world);
    assert_eq!(data.n2_sm_info_type, Some(N2SmInfoType::PathSwitchReqAck));
    let transfer = &data.n2_sm_info.as_ref().unwrap().content;
    PathSwitchRequestAcknowledgeTransfer::decode(transfer).unwrap().uplink
}

#[test]
fn a_path_switch_sends_an_end_marker_into_the_former_tunnel() {
    let mut world = World::established();
    switch(&mut world);
    assert_eq!(world.take_ladder(), "upf <- SessionModificationRequest\namf <- 200");
    assert_eq!(downlink(&world), (to(TARGET), Some(ApplyAction::FORW), Some(PfcpSmReqFlags::SNDEM)));
    assert_eq!(switched_uplink(&world), None);
    assert_eq!(world.user_plane().unwrap().gnb, Some(TARGET));
}

#[test]
fn a_repeated_path_switch_sends_no_end_marker() {
    let mut world = World::established();
    switch(&mut world);
    switch(&mut world);
    assert_eq!(downlink(&world), (to(TARGET), Some(ApplyAction::FORW), None));
    assert_eq!(answer(&world).n2_sm_info_type, Some(N2SmInfoType::PathSwitchReqAck));
}

#[test]
fn a_path_switch_without_the_default_flow_is_refused() {
    let mut world = World::established();
    switch_to(&mut world, TARGET, &[2]);
    assert_eq!(
        (world.refusal(), refused_transfer(&world)),
        (&Cause::N2SmError, Some(N2SmInfoType::PathSwitchReqFail))
    );
    assert_eq!(world.user_plane().unwrap().gnb, Some(GNB_TUNNEL));
}

#[test]
fn a_path_switch_that_the_upf_refuses_ends_the_session() {
    let mut world = World::established();
    world.upf = Some(Ok(N4Cause::RuleCreationModificationFailure));
    switch(&mut world);
    let refusal = world.answers.iter().find_map(|answer| answer.as_ref().err()).unwrap();
    assert_eq!(refusal.cause(), Some(&Cause::InsufficientResources));
    world.upf = Some(Ok(N4Cause::RequestAccepted));
    world.upf_answers_late();
    world.uplink(PduSessionReleaseComplete::new());
    world.is_quiet();
}

#[test]
fn a_session_that_the_target_gnb_did_not_set_up_is_deactivated() {
    let mut world = World::established();
    world.update(|data| data.n2_sm_info_type = Some(N2SmInfoType::PathSwitchSetupFail));
    assert_eq!(answer(&world).up_cnx_state, Some(UpCnxState::Deactivated));
    assert_eq!(world.user_plane().unwrap().gnb, None);
}

/// The source gNB does not answer a switch of the uplink any longer; the target gets the endpoint with the acknowledgement.
#[test]
fn a_path_switch_ends_the_wait_for_the_source_gnb() {
    let mut world = World::with(plain(), &["upf", "edge"]);
    world.establish();
    world.gnb_answers();
    assert_eq!(world.branch("edge"), None);
    switch(&mut world);
    let user_plane = world.user_plane().unwrap();
    assert_eq!((user_plane.gnb, user_plane.gnb_uplink), (Some(TARGET), Some(user_plane.n3_session().tunnel)));
    assert_eq!(answer(&world).n2_sm_info_type, Some(N2SmInfoType::PathSwitchReqAck));
}

#[test]
fn an_n2_handover_keeps_the_path_until_the_ue_is_at_the_target() {
    let mut world = World::established();
    required(&mut world);
    let data = answer(&world);
    assert_eq!(
        (data.ho_state.clone(), data.n2_sm_info_type.clone()),
        (Some(HoState::Preparing), Some(N2SmInfoType::PduResSetupReq))
    );
    let setup = SetupRequestTransfer::decode(&data.n2_sm_info.as_ref().unwrap().content).unwrap();
    assert_eq!(setup.uplink, world.user_plane().unwrap().n3_session().tunnel);
    prepared(&mut world);
    let data = answer(&world);
    assert_eq!(
        (data.ho_state.clone(), data.n2_sm_info_type.clone()),
        (Some(HoState::Prepared), Some(N2SmInfoType::HandoverCmd))
    );
    let command = HandoverCommandTransfer::decode(&data.n2_sm_info.as_ref().unwrap().content).unwrap();
    assert_eq!((command.forwarding, command.flows), (Some(FORWARDING), vec![1]));
    assert_eq!(world.user_plane().unwrap().gnb, Some(GNB_TUNNEL));
    assert_eq!(world.take_ladder(), "amf <- 200\namf <- 200", "no message to the UPF");
    completed(&mut world);
    assert_eq!(downlink(&world), (to(TARGET), Some(ApplyAction::FORW), Some(PfcpSmReqFlags::SNDEM)));
    assert_eq!(answer(&world).ho_state, Some(HoState::Completed));
    let user_plane = world.user_plane().unwrap();
    assert_eq!((user_plane.gnb, user_plane.gnb_uplink), (Some(TARGET), Some(user_plane.n3_session().tunnel)));
}

/// The AMF repeats a request that it has not waited for: the UPF is away.
#[test]
fn a_handover_that_is_completed_again_meanwhile_is_answered_twice() {
    let mut world = World::established();
    required(&mut world);
    prepared(&mut world);
    world.upf = None;
    completed(&mut world);
    completed(&mut world);
    world.take_ladder();
    world.upf_answers_late();
    assert_eq!(world.take_ladder(), "amf <- 200\namf <- 200");
    assert_eq!(answer(&world).ho_state, Some(HoState::Completed));
    assert_eq!(world.user_plane().unwrap().gnb, Some(TARGET));
}

/// The AMF has not waited for the answer, and repeats its request after a pause.
#[test]
fn a_handover_that_is_completed_again_later_is_answered_at_once() {
    let mut world = World::established();
    required(&mut world);
    prepared(&mut world);
    completed(&mut world);
    world.take_ladder();
    completed(&mut world);
    assert_eq!(world.take_ladder(), "amf <- 200", "no message to the UPF");
    assert_eq!(answer(&world).ho_state, Some(HoState::Completed));
    assert_eq!(world.user_plane().unwrap().gnb, Some(TARGET));
}

#[test]
fn a_handover_that_is_followed_by_another_change_of_the_gnb_is_not_completed_again() {
    let changes: [(&str, fn(&mut World)); 4] = [
        ("another one is prepared", required),
        ("cancelled", cancelled),
        ("an Xn handover", switch),
        ("the UE is idle", World::deactivate),
    ];
    for (name, change) in changes {
        let mut world = World::established();
        required(&mut world);
        prepared(&mut world);
        completed(&mut world);
        change(&mut world);
        let gnb = world.user_plane().unwrap().gnb;
        completed(&mut world);
        assert_eq!(world.refusal(), &Cause::N2SmError, "{name}");
        assert_eq!(world.user_plane().unwrap().gnb, gnb, "{name}");
    }
}

#[test]
fn a_cancelled_handover_cannot_complete() {
    let mut world = World::established();
    required(&mut world);
    prepared(&mut world);
    cancelled(&mut world);
    assert_eq!(answer(&world).ho_state, Some(HoState::Cancelled));
    completed(&mut world);
    assert_eq!(world.refusal(), &Cause::N2SmError);
    assert_eq!(world.user_plane().unwrap().gnb, Some(GNB_TUNNEL));
}

/// The AMF has cancelled the handover, which has overtaken its request before. No tunnel for forwarded packets is left at the UPF.
#[test]
fn a_request_that_its_cancellation_has_overtaken_prepares_nothing() {
    let mut world = World::established();
    required_with(&mut world, false);
    cancelled(&mut world);
    world.take_ladder();
    prepared(&mut world);
    assert_eq!(world.refusal(), &Cause::N2SmError);
    assert_eq!(world.take_ladder(), "amf <- 403");
}

#[test]
fn a_target_without_resources_is_refused_with_the_transfer_for_the_source_gnb() {
    let mut world = World::established();
    required(&mut world);
    handover(&mut world, HoState::Prepared, Some((N2SmInfoType::HandoverResAllocFail, Vec::new())));
    assert_eq!(
        (world.refusal(), refused_transfer(&world)),
        (&Cause::N2SmError, Some(N2SmInfoType::HandoverPrepFail))
    );
}

#[test]
fn a_session_without_user_plane_is_not_handed_over() {
    let mut world = World::established();
    world.deactivate();
    required(&mut world);
    assert_eq!(refused_transfer(&world), Some(N2SmInfoType::HandoverPrepFail));
}

/// The transfer of the last answer, for the source gNB.
fn command(world: &World) -> HandoverCommandTransfer {
    let data = answer(world);
    assert_eq!(data.n2_sm_info_type, Some(N2SmInfoType::HandoverCmd));
    HandoverCommandTransfer::decode(&data.n2_sm_info.as_ref().unwrap().content).unwrap()
}

/// A session whose handover is prepared, between gNBs without a path. The UPF answers as the world has it.
fn prepared_without_path(mut world: World) -> World {
    prepare_without_path(&mut world);
    world
}

pub(super) fn prepare_without_path(world: &mut World) {
    required_with(world, false);
    world.take_ladder();
    prepared(world);
}

#[test]
fn the_upf_forwards_packets_between_gnbs_without_a_path() {
    let mut world = prepared_without_path(World::established());
    assert_eq!(world.take_ladder(), "upf <- SessionEstablishmentRequest\namf <- 200");
    let Some(Message::SessionEstablishmentRequest(request)) = world.n4.last() else { panic!() };
    let pdi = &request.create_pdrs[0].pdi;
    assert_eq!(
        (pdi.source_interface, pdi.source_interface_type),
        (SourceInterface::Access, Some(InterfaceType::N3DataForwarding))
    );
    let parameters = request.create_fars[0].forwarding_parameters.as_ref().unwrap();
    assert_eq!(parameters.destination_interface, DestinationInterface::Access);
    assert_eq!(parameters.outer_header_creation, to(FORWARDING));
    let of_session = world.seid();
    assert_ne!(request.cp_f_seid.seid, of_session.0, "the session at the UPF stays");
    let tunnel = command(&world).forwarding.unwrap();
    assert_eq!((tunnel, command(&world).flows), (tunnel_of(UPF, 0), vec![1]));
    completed(&mut world);
    world.take_ladder();
    assert_eq!(world.bench.nf.audit().n4_sessions, 2);
    world.expire(Timer::PathGrace);
    assert_eq!(world.take_ladder(), "upf <- SessionDeletionRequest", "after packets in transit");
    assert_eq!((world.bench.nf.audit().n4_sessions, world.bench.timers.len()), (1, 0));
}

#[test]
fn the_tunnel_for_forwarded_packets_ends_with_the_handover() {
    let ends: [(&str, fn(&mut World)); 5] = [
        ("cancelled", cancelled),
        ("prepared again", |world| {
            prepared(world);
            assert!(world.take_ladder().starts_with("upf <- SessionDeletionRequest\nupf <- SessionEst"));
            cancelled(world);
        }),
        ("not reported", |world| world.expire(Timer::PathGrace)),
        ("the UE is idle", World::deactivate),
        ("refused by the target", |world| {
            handover(world, HoState::Prepared, Some((N2SmInfoType::HandoverResAllocFail, Vec::new())));
        }),
    ];
    for (name, end) in ends {
        let mut world = prepared_without_path(World::established());
        world.take_ladder();
        end(&mut world);
        assert!(world.take_ladder().contains("upf <- SessionDeletionRequest"), "{name}");
        let audit = world.bench.nf.audit();
        assert_eq!((audit.n4_sessions, world.bench.timers.len()), (1, 0), "{name}");
    }
}

#[test]
fn a_upf_that_does_not_forward_does_not_end_the_handover() {
    for result in [Ok(N4Cause::NoResourcesAvailable), Err(N4Error::NoAnswer)] {
        let mut world = World::established();
        required_with(&mut world, false);
        world.upf = Some(result);
        prepared(&mut world);
        assert_eq!(command(&world), HandoverCommandTransfer { forwarding: None, flows: vec![] });
        world.upf = Some(Ok(N4Cause::RequestAccepted));
        completed(&mut world);
        assert_eq!(answer(&world).ho_state, Some(HoState::Completed));
        assert_eq!((world.bench.nf.audit().n4_sessions, world.bench.timers.len()), (1, 0));
    }
}

#[test]
fn an_endpoint_that_the_upf_can_not_send_to_does_not_end_the_handover() {
    let of_upf = tunnel_of(UPF, 0).address;
    for target in [
        Tunnel { teid: Teid(0), ..FORWARDING },
        Tunnel { address: of_upf, ..FORWARDING },
        Tunnel { address: std::net::Ipv6Addr::LOCALHOST.into(), ..FORWARDING },
    ] {
        let mut world = World::established();
        required_with(&mut world, false);
        world.take_ladder();
        prepared_at(&mut world, &[1], target);
        assert_eq!(world.take_ladder(), "amf <- 200", "{target:?}");
        assert_eq!(command(&world), HandoverCommandTransfer { forwarding: None, flows: vec![] });
        completed(&mut world);
        assert_eq!(world.bench.nf.audit().n4_sessions, 1);
    }
}

/// The AMF releases the session while the UPF has not answered: what it allocates yet is deleted.
#[test]
fn a_session_that_is_released_meanwhile_leaves_no_tunnel() {
    let mut world = World::established();
    required_with(&mut world, false);
    world.silent.insert(UPF);
    prepared(&mut world);
    world.take_ladder();
    world.release_by_amf();
    world.take_ladder();
    world.upf_answers_late();
    assert!(world.take_ladder().contains("upf <- SessionDeletionRequest"));
    world.is_quiet();
}

/// The classifier is to forward packets, and is taken out before it has answered.
#[test]
fn a_classifier_that_is_lost_before_packets_can_be_forwarded_leaves_no_tunnel() {
    let mut world = super::branching::branched();
    required_with(&mut world, false);
    world.silent.insert(EDGE);
    prepared(&mut world);
    world.take_ladder();
    world.report_lost(tunnel_of(EDGE, 2));
    assert!(world.take_ladder().contains("amf <- 200"));
    assert_eq!(command(&world).forwarding, None);
    assert!(world.user_plane().unwrap().front.is_none());
    world.upf_answers_late();
    assert!(world.take_ladder().contains("edge <- SessionDeletionRequest"), "the tunnel");
}

/// The session has two UPFs: that of N3 is to forward packets, and the other one restarts.
#[test]
fn the_amf_is_answered_if_the_anchor_restarts_before_packets_can_be_forwarded() {
    let mut world = super::branching::branched();
    required_with(&mut world, false);
    world.silent.insert(EDGE);
    prepared(&mut world);
    world.take_ladder();
    world.n4_input(crate::kit::N4Input::UpfRestarted { upf: UPF });
    // The session is established again at both UPFs.
    assert_eq!(world.take_ladder(), "amf <- 200\nedge <- SessionDeletionRequest");
    assert_eq!(command(&world).forwarding, None);
    world.upf_answers_late();
    assert_eq!(world.take_ladder(), "edge <- SessionDeletionRequest", "the tunnel");
}
