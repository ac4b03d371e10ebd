//! Resources that a gNB does not set up, or sets up without the default QoS flow (TS 23.501 5.7.1.1; TS 38.413 8.2.1.2,
//! 9.3.4.2).

use super::flows::{gnb_sends, with_voice};
use super::handover::{self, completed, prepared_flows, required, switch_to};
use super::world::*;
use crate::kit::Timer;
use pith_nas::gsm::PduSessionReleaseComplete;
use pith_nas::{GsmBody, GsmCause};
use pith_ngap::transfer::{
    FlowTunnel, HandoverCommandTransfer, NotifyTransfer, SetupResponseTransfer, SetupUnsuccessfulTransfer,
    Tunnel,
};
use pith_ngap::{Cause as NgapCause, CauseRadioNetwork};
use pith_pfcp::Message;
use pith_pfcp::ie::{ApplyAction, PfcpSmReqFlags, ReportType};
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdatedData, UpCnxState};
use pith_sbi::{Operation, Response};
use pith_types::Teid;

/// The gNB sets up flows, and names no others.
fn sets_up(world: &mut World, flows: &[u8]) {
    let transfer = SetupResponseTransfer {
        downlink: GNB_TUNNEL,
        flows: flows.to_vec(),
        additional: vec![],
        failed: vec![],
    };
    gnb_sends(world, N2SmInfoType::PduResSetupRsp, transfer.encode());
}

fn fails(world: &mut World, cause: CauseRadioNetwork) {
    let transfer = SetupUnsuccessfulTransfer { cause: NgapCause::RadioNetwork(cause) };
    gnb_sends(world, N2SmInfoType::PduResSetupFail, transfer.encode());
}

fn activates(world: &mut World) {
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    world.take_ladder();
}

fn answer(world: &World) -> &SmContextUpdatedData {
    match world.answers.last() {
        Some(Ok(Response::SmContextUpdated(data))) => data,
        other => panic!("{other:?}"),
    }
}

/// The N2 information of the last message to the AMF.
fn command(world: &World) -> Option<NgapIeType> {
    let container = world.transfers.last()?.n2_info_container.as_ref()?;
    container.sm_info.as_ref()?.n2_info_content.as_ref()?.ngap_ie_type.clone()
}

fn drops_buffered(world: &World) -> bool {
    let Some(Message::SessionModificationRequest(request)) = world.n4.last() else { return false };
    request.pfcp_sm_req_flags == Some(PfcpSmReqFlags::DROBU)
}

#[test]
fn a_session_that_is_set_up_without_its_default_flow_ends_at_gnb_and_ue() {
    for flows in [&[55][..], &[2, 3]] {
        let mut world = World::new();
        world.establish();
        world.take_ladder();
        sets_up(&mut world, flows);
        assert_eq!(
            world.take_ladder(),
            "amf <- 204\nupf <- SessionDeletionRequest\namf <- N1N2MessageTransfer"
        );
        assert_eq!(command(&world), Some(NgapIeType::PduResRelCmd), "{flows:?}");
        let GsmBody::PduSessionReleaseCommand(release) = &world.n1.last().unwrap().body else { panic!() };
        assert_eq!(release.cause, GsmCause::InsufficientResources);
        world.uplink(PduSessionReleaseComplete::new());
        world.is_quiet();
    }
}

#[test]
fn an_idle_session_without_its_default_flow_stays_inactive_and_the_gnb_releases_its_resources() {
    let mut world = World::established();
    world.deactivate();
    activates(&mut world);
    sets_up(&mut world, &[55]);
    assert_eq!(world.take_ladder(), "amf <- 200\nupf <- SessionModificationRequest");
    assert_eq!(answer(&world).n2_sm_info_type, Some(N2SmInfoType::PduResRelCmd));
    assert!(drops_buffered(&world));
    assert_eq!(world.user_plane().unwrap().gnb, None);
    // Packets that follow are reported.
    world.report(ReportType::DLDR);
    assert_eq!(command(&world), Some(NgapIeType::PduResSetupReq));
    world.gnb_answers();
    assert_eq!(world.user_plane().unwrap().gnb, Some(GNB_TUNNEL));
}

#[test]
fn a_setup_without_the_default_flow_ends_the_tunnel_of_earlier_resources() {
    let mut world = World::established();
    activates(&mut world);
    sets_up(&mut world, &[55]);
    assert_eq!(
        world.take_ladder(),
        "amf <- 204\nupf <- SessionModificationRequest\namf <- N1N2MessageTransfer"
    );
    assert_eq!(command(&world), Some(NgapIeType::PduResRelCmd));
    assert_eq!(downlink_action(&world), ApplyAction::BUFF | ApplyAction::NOCP);
    world.update(|data| data.n2_sm_info_type = Some(N2SmInfoType::PduResRelRsp));
    assert_eq!(world.user_plane().unwrap().gnb, None);
    assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
}

/// TS 38.413 8.2.4.2: the gNB keeps the session with its other flows, if there are some.
#[test]
fn resources_without_their_default_flow_are_released_and_the_session_stays() {
    for others in [&[][..], &[2]] {
        let mut world = with_voice();
        world.script.insert(Operation::UpdateSmPolicy, None);
        let cause = NgapCause::RadioNetwork(CauseRadioNetwork::radio_resources_not_available);
        let released = others.iter().chain(&[1]).map(|qfi| (*qfi, cause)).collect();
        let transfer = NotifyTransfer { flows: vec![], released };
        gnb_sends(&mut world, N2SmInfoType::PduResNty, transfer.encode());
        let ladder = world.take_ladder();
        let expected = "amf <- 204\nupf <- SessionModificationRequest\namf <- N1N2MessageTransfer";
        assert!(ladder.ends_with(expected), "{ladder}");
        assert_eq!(ladder.contains("pcf <- UpdateSmPolicy"), !others.is_empty(), "rules of other flows fail");
        assert_eq!(command(&world), Some(NgapIeType::PduResRelCmd));
        assert_eq!(downlink_action(&world), ApplyAction::BUFF | ApplyAction::NOCP);
        world.update(|data| data.n2_sm_info_type = Some(N2SmInfoType::PduResRelRsp));
        assert_eq!(world.user_plane().unwrap().gnb, None);
        // Packets are reported, and the gNB sets the session up again.
        world.report(ReportType::DLDR);
        assert_eq!(command(&world), Some(NgapIeType::PduResSetupReq));
        sets_up(&mut world, &[1, 2]);
        assert_eq!(world.user_plane().unwrap().gnb, Some(GNB_TUNNEL));
    }
}

/// During a handover the AMF refuses the command to release resources (TS 29.518 5.2.2.3.1); the target gNB gets all flows.
#[test]
fn a_released_default_flow_changes_nothing_without_resources_and_in_a_handover() {
    let is_prepared: fn(&mut World) = |world| {
        handover::required(world);
        handover::prepared(world);
    };
    let in_state = [World::deactivate, handover::required, is_prepared];
    for begin in in_state {
        let mut world = World::established();
        begin(&mut world);
        world.take_ladder();
        let cause = NgapCause::RadioNetwork(CauseRadioNetwork::radio_resources_not_available);
        let transfer = NotifyTransfer { flows: vec![], released: vec![(1, cause)] };
        gnb_sends(&mut world, N2SmInfoType::PduResNty, transfer.encode());
        assert_eq!(world.take_ladder(), "amf <- 204");
    }
}

#[test]
fn a_secondary_gnb_may_have_the_default_flow() {
    let mut world = World::new();
    world.establish();
    let secondary = Tunnel { teid: Teid(0x43), ..GNB_TUNNEL };
    let additional = vec![FlowTunnel { tunnel: secondary, flows: vec![1] }];
    let transfer = SetupResponseTransfer { downlink: GNB_TUNNEL, flows: vec![2], additional, failed: vec![] };
    gnb_sends(&mut world, N2SmInfoType::PduResSetupRsp, transfer.encode());
    assert_eq!(world.user_plane().unwrap().gnb, Some(secondary));
}

#[test]
fn flows_that_the_session_does_not_have_are_ignored() {
    let mut world = World::new();
    world.establish();
    sets_up(&mut world, &[1, 55]);
    assert_eq!(answer(&world).up_cnx_state, Some(UpCnxState::Activated));
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert_eq!(session.flows(), [1]);
    assert!(session.tunnels.is_empty());
}

/// The source gNB is not asked to forward packets of a flow that there is not.
#[test]
fn a_handover_command_has_the_flows_of_the_session_only() {
    let mut world = with_voice();
    required(&mut world);
    prepared_flows(&mut world, &[(1, true), (2, true), (55, true)]);
    let command = &answer(&world).n2_sm_info.as_ref().unwrap().content;
    assert_eq!(HandoverCommandTransfer::decode(command).unwrap().flows, [1, 2]);
    completed(&mut world);
    switch_to(&mut world, GNB_TUNNEL, &[1, 2, 55]);
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert_eq!(session.flows(), [1, 2]);
}

/// The AMF takes the session for inactive: the UPF must not send to a tunnel that the gNB no longer has.
#[test]
fn a_failed_setup_ends_the_tunnel_of_earlier_resources() {
    let mut world = World::established();
    activates(&mut world);
    fails(&mut world, CauseRadioNetwork::radio_resources_not_available);
    assert_eq!(world.take_ladder(), "upf <- SessionModificationRequest\namf <- 200");
    assert_eq!(world.user_plane().unwrap().gnb, None);
    assert_eq!(downlink_action(&world), ApplyAction::BUFF | ApplyAction::NOCP);
    assert_eq!(answer(&world).up_cnx_state, Some(UpCnxState::Deactivated));
}

/// TS 38.413 8.2.1.4: the gNB has the session already.
#[test]
fn a_refused_second_instance_leaves_the_tunnel() {
    let mut world = World::established();
    activates(&mut world);
    fails(&mut world, CauseRadioNetwork::multiple_PDU_session_ID_instances);
    assert_eq!(world.take_ladder(), "amf <- 204");
    assert_eq!(world.user_plane().unwrap().gnb, Some(GNB_TUNNEL));
}

#[test]
fn a_failed_setup_of_an_idle_session_drops_the_buffered_packets() {
    let mut world = World::established();
    world.deactivate();
    activates(&mut world);
    fails(&mut world, CauseRadioNetwork::radio_resources_not_available);
    assert_eq!(world.take_ladder(), "amf <- 204\nupf <- SessionModificationRequest");
    assert!(drops_buffered(&world));
    assert!(world.bench.timers.keys().all(|key| key.timer != Timer::SbiGuard));
}

/// TS 38.413 9.3.4.2: which tunnel the flow has, or whether it has one, is not known.
#[test]
fn a_setup_that_contradicts_itself_is_wrong() {
    let second = Tunnel { teid: Teid(0x43), ..GNB_TUNNEL };
    let third = Tunnel { teid: Teid(0x44), ..GNB_TUNNEL };
    let at = |tunnel, flows: &[u8]| FlowTunnel { tunnel, flows: flows.to_vec() };
    let cause = NgapCause::RadioNetwork(CauseRadioNetwork::radio_resources_not_available);
    for (additional, failed) in [
        (vec![at(second, &[1])], vec![]),
        (vec![at(second, &[2]), at(third, &[2])], vec![]),
        (vec![], vec![(1, cause)]),
    ] {
        let transfer = SetupResponseTransfer { downlink: GNB_TUNNEL, flows: vec![1], additional, failed };
        for is_new in [true, false] {
            let mut world = World::established();
            if is_new {
                world = World::new();
                world.establish();
            } else {
                world.deactivate();
                activates(&mut world);
            }
            gnb_sends(&mut world, N2SmInfoType::PduResSetupRsp, transfer.encode());
            assert_eq!(*world.refusal(), pith_sbi::Cause::N2SmError);
            assert_eq!(command(&world), Some(NgapIeType::PduResRelCmd));
            let GsmBody::PduSessionReleaseCommand(release) = &world.n1.last().unwrap().body else { panic!() };
            assert_eq!(release.cause, GsmCause::InsufficientResources);
        }
    }
}
