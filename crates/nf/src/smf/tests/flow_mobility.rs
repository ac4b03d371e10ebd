//! Dual connectivity: a gNB moves QoS flows to a secondary gNB (TS 23.502 4.14.1), and reports what a secondary RAT has carried.

use super::branching::plain;
use super::policy::{notify, rule};
use super::world::*;
use pith_ngap::transfer::{
    AdditionalTarget, FlowTunnel, HandoverRequestAcknowledgeTransfer, ModifyConfirmTransfer,
    ModifyIndicationTransfer, ModifyIndicationUnsuccessfulTransfer, ModifyResponseTransfer,
    PathSwitchRequestTransfer, SecondaryRatUsage, SecondaryRatUsageTransfer, SetupResponseTransfer, Tunnel,
};
use pith_ngap::{Cause as NgapCause, CauseRadioNetwork};
use pith_pfcp::ie::{ApplyAction, Cause as N4Cause, OuterHeaderCreation, PfcpSmReqFlags};
use pith_pfcp::{Change, Message};
use pith_sbi::nsmf_pdusession::{HoState, N2SmInfoType, SmContextUpdatedData};
use pith_sbi::{ProblemMore, Response};
use pith_types::Teid;

/// The secondary gNB's endpoint.
pub(super) const SECONDARY: Tunnel =
    Tunnel { address: std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 9)), teid: Teid(0x99) };

const BUSY: CauseRadioNetwork = CauseRadioNetwork::interaction_with_other_procedure;

pub(super) fn indicate_with(world: &mut World, transfer: &ModifyIndicationTransfer) {
    let transfer = transfer.encode();
    world.update(|data| {
        data.n2_sm_info_type = Some(N2SmInfoType::PduResModInd);
        data.n2_sm_info = Some(transfer.into());
    });
}

pub(super) fn indicate(world: &mut World) {
    move_to(world, SECONDARY, &[1]);
}

pub(super) fn move_to(world: &mut World, tunnel: Tunnel, flows: &[u8]) {
    let downlink = FlowTunnel { tunnel, flows: flows.to_vec() };
    indicate_with(world, &ModifyIndicationTransfer { downlink, additional: vec![], usage: None });
}

fn answer(world: &World) -> &SmContextUpdatedData {
    match world.answers.last() {
        Some(Ok(Response::SmContextUpdated(data))) => data,
        other => panic!("{other:?}"),
    }
}

fn confirmed(world: &World) -> ModifyConfirmTransfer {
    let data = answer(world);
    assert_eq!(data.n2_sm_info_type, Some(N2SmInfoType::PduResModCfm));
    ModifyConfirmTransfer::decode(&data.n2_sm_info.as_ref().unwrap().content).unwrap()
}

/// The cause for the gNB in the last refusal.
fn refused(world: &World) -> CauseRadioNetwork {
    let problem = world.answers.iter().rev().find_map(|answer| answer.as_ref().err()).unwrap();
    let Some(ProblemMore::SmContextUpdateError(data)) = &problem.more else { panic!("{problem:?}") };
    assert_eq!(data.n2_sm_info_type, Some(N2SmInfoType::PduResModIndFail));
    let transfer = data.n2_sm_info.as_ref().unwrap();
    match ModifyIndicationUnsuccessfulTransfer::decode(&transfer.content).unwrap().cause {
        NgapCause::RadioNetwork(cause) => cause,
        other => panic!("{other:?}"),
    }
}

fn gnb(world: &World) -> Option<Tunnel> {
    world.user_plane().unwrap().gnb
}

/// Where the last request sends downlink packets, with the flags.
fn downlink(world: &World) -> (Tunnel, Option<PfcpSmReqFlags>) {
    let Some(Message::SessionModificationRequest(request)) = world.n4.last() else { panic!() };
    assert_eq!((request.update_fars.len(), request.create_fars.len()), (1, 0));
    let far = &request.update_fars[0];
    assert_eq!(far.apply_action, Some(ApplyAction::FORW));
    let parameters = far.update_forwarding_parameters.as_ref().unwrap();
    let to = [GNB_TUNNEL, SECONDARY].into_iter().find(|tunnel| {
        let header = OuterHeaderCreation::gtpu(tunnel.teid.0, tunnel.address);
        parameters.outer_header_creation == Some(Change::Set(header))
    });
    (to.expect("a known tunnel"), parameters.pfcp_sm_req_flags)
}

#[test]
fn a_session_moves_to_the_secondary_gnb_and_back() {
    let mut world = World::established();
    for (to, from) in [(SECONDARY, GNB_TUNNEL), (GNB_TUNNEL, SECONDARY)] {
        assert_eq!(gnb(&world), Some(from));
        move_to(&mut world, to, &[1]);
        assert_eq!(world.take_ladder(), "upf <- SessionModificationRequest\namf <- 200");
        assert_eq!(downlink(&world), (to, Some(PfcpSmReqFlags::SNDEM)));
        let uplink = world.user_plane().unwrap().n3_session().tunnel;
        let transfer = ModifyConfirmTransfer { flows: vec![1], uplink, additional: vec![], failed: vec![] };
        assert_eq!(confirmed(&world), transfer);
        assert_eq!(gnb(&world), Some(to));
    }
}

#[test]
fn a_repeated_indication_sends_no_second_end_marker() {
    let mut world = World::established();
    indicate(&mut world);
    indicate(&mut world);
    assert_eq!(downlink(&world), (SECONDARY, None));
    assert_eq!(confirmed(&world).flows, [1]);
}

#[test]
fn flows_that_the_session_does_not_have_fail_and_the_others_move() {
    let mut world = World::established();
    move_to(&mut world, SECONDARY, &[1, 7]);
    let unknown = NgapCause::RadioNetwork(CauseRadioNetwork::unkown_qos_flow_ID);
    let transfer = confirmed(&world);
    assert_eq!((transfer.flows, transfer.failed), (vec![1], vec![(7, unknown)]));
    move_to(&mut world, GNB_TUNNEL, &[7]);
    assert_eq!(refused(&world), CauseRadioNetwork::unkown_qos_flow_ID);
    assert_eq!(gnb(&world), Some(SECONDARY));
}

#[test]
fn a_flow_in_two_tunnels_stays() {
    let mut world = World::established();
    let tunnel = |tunnel| FlowTunnel { tunnel, flows: vec![1] };
    let twice = ModifyIndicationTransfer {
        downlink: tunnel(SECONDARY),
        additional: vec![tunnel(GNB_TUNNEL)],
        usage: None,
    };
    indicate_with(&mut world, &twice);
    assert_eq!(refused(&world), CauseRadioNetwork::multiple_qos_flow_ID_instances);
    assert_eq!(gnb(&world), Some(GNB_TUNNEL));
}

#[test]
fn an_endpoint_that_is_no_host_is_refused() {
    for address in ["0.0.0.0", "239.1.1.1", "2001:db8::1"] {
        let mut world = World::established();
        world.take_ladder();
        move_to(&mut world, Tunnel { address: address.parse().unwrap(), ..SECONDARY }, &[1]);
        assert_eq!(refused(&world), CauseRadioNetwork::unspecified, "{address}");
        assert_eq!(world.take_ladder(), "amf <- 403");
        assert_eq!(gnb(&world), Some(GNB_TUNNEL));
    }
}

#[test]
fn an_indication_of_an_idle_session_is_refused() {
    let mut world = World::established();
    world.deactivate();
    indicate(&mut world);
    assert_eq!((refused(&world), gnb(&world)), (BUSY, None));
}

#[test]
fn an_indication_during_the_establishment_is_refused() {
    let mut world = World::new();
    world.establish();
    indicate(&mut world);
    assert_eq!((refused(&world), gnb(&world)), (BUSY, None));
}

/// The AMF sends the gNB the request for another uplink endpoint after the answer to the indication, if that was first: they would wait for
/// each other until the guard timer expires.
#[test]
fn an_indication_that_crosses_the_switch_to_a_classifier_is_refused() {
    let mut world = super::branching::established();
    world.silent.insert(EDGE);
    world.branch("edge");
    indicate(&mut world);
    world.upf_answers_late();
    assert_eq!(refused(&world), BUSY, "before the switch");
    indicate(&mut world);
    assert_eq!(refused(&world), BUSY, "while the gNB is to switch");
    world.gnb_modifies(true);
    assert_eq!(world.user_plane().unwrap().front.as_ref().unwrap().session.upf, EDGE);
    assert_eq!(world.bench.timers.len(), 0);
}

#[test]
fn an_undecodable_indication_is_refused() {
    let mut world = World::established();
    world.update(|data| {
        data.n2_sm_info_type = Some(N2SmInfoType::PduResModInd);
        data.n2_sm_info = Some(vec![0xff; 3].into());
    });
    let Some(Err(problem)) = world.answers.last() else { panic!() };
    assert_eq!(problem.status, 403);
    assert_eq!(gnb(&world), Some(GNB_TUNNEL));
}

#[test]
fn a_upf_that_refuses_leaves_the_session_as_it_is() {
    let mut world = World::established();
    world.upf = Some(Ok(N4Cause::RuleCreationModificationFailure));
    indicate(&mut world);
    assert_eq!(refused(&world), CauseRadioNetwork::unspecified);
    assert_eq!(gnb(&world), Some(GNB_TUNNEL));
    world.upf = Some(Ok(N4Cause::RequestAccepted));
    indicate(&mut world);
    assert_eq!(downlink(&world), (SECONDARY, Some(PfcpSmReqFlags::SNDEM)));
    assert_eq!(confirmed(&world).flows, [1]);
}

#[test]
fn a_handover_after_an_indication_leaves_the_secondary_gnb() {
    let mut world = World::established();
    world.upf = None;
    indicate(&mut world);
    super::handover::switch(&mut world);
    assert_eq!(world.take_ladder(), "upf <- SessionModificationRequest");
    world.upf_answers_late();
    let kind_of = |answer: &pith_sbi::Reply| match answer {
        Ok(Response::SmContextUpdated(data)) => data.n2_sm_info_type.clone(),
        other => panic!("{other:?}"),
    };
    let kinds: Vec<_> = world.answers.iter().rev().take(2).map(kind_of).collect();
    assert_eq!(kinds, [Some(N2SmInfoType::PathSwitchReqAck), Some(N2SmInfoType::PduResModCfm)]);
    assert_eq!(gnb(&world), Some(super::handover::TARGET));
}

#[test]
fn an_error_indication_of_the_secondary_gnb_sets_the_resources_up_again() {
    let mut world = World::established();
    indicate(&mut world);
    world.report_lost(GNB_TUNNEL);
    assert_eq!(gnb(&world), Some(SECONDARY), "a tunnel that was left");
    world.report_lost(SECONDARY);
    assert_eq!(gnb(&world), None);
}

#[test]
fn a_session_with_a_front_upf_moves_as_a_whole() {
    let mut world = World::with(plain(), &["upf", "edge"]);
    world.establish();
    world.gnb_answers();
    assert_eq!(world.branch("edge"), None);
    world.gnb_modifies(true);
    world.take_ladder();
    indicate(&mut world);
    assert_eq!(world.take_ladder(), "edge <- SessionModificationRequest\namf <- 200");
    assert_eq!(downlink(&world), (SECONDARY, Some(PfcpSmReqFlags::SNDEM)));
    assert_eq!(confirmed(&world).uplink, world.user_plane().unwrap().n3_session().tunnel);
}

#[test]
fn a_modification_response_can_move_the_tunnel() {
    let mut world = World::established();
    let respond = |world: &mut World, downlink| {
        let transfer = ModifyResponseTransfer { downlink, flows: vec![1], ..Default::default() }.encode();
        world.update(|data| {
            data.n2_sm_info_type = Some(N2SmInfoType::PduResModRsp);
            data.n2_sm_info = Some(transfer.into());
        });
    };
    for downlink in [None, Some(SECONDARY)] {
        notify(&mut world, rule(if downlink.is_none() { 20 } else { 30 }, 9));
        // It comes after the UE's answer.
        world.uplink(pith_nas::gsm::PduSessionModificationComplete::new());
        world.take_ladder();
        respond(&mut world, downlink);
        let ladder = world.take_ladder();
        let expected =
            if downlink.is_none() { "amf <- 204" } else { "upf <- SessionModificationRequest\namf <- 200" };
        assert_eq!(ladder, expected);
    }
    assert_eq!((answer(&world).n2_sm_info_type.clone(), gnb(&world)), (None, Some(SECONDARY)));
}

/// The tunnel of the secondary gNB, for the default flow.
fn additional() -> Vec<FlowTunnel> {
    vec![FlowTunnel { tunnel: SECONDARY, flows: vec![1] }]
}

#[test]
fn a_session_can_be_set_up_at_a_secondary_gnb() {
    let mut world = World::new();
    world.establish();
    let transfer = SetupResponseTransfer {
        downlink: GNB_TUNNEL,
        flows: vec![2],
        additional: additional(),
        failed: vec![],
    };
    let transfer = transfer.encode();
    world.update(|data| {
        data.n2_sm_info_type = Some(N2SmInfoType::PduResSetupRsp);
        data.n2_sm_info = Some(transfer.into());
    });
    assert_eq!(downlink(&world), (SECONDARY, None));
}

#[test]
fn a_path_switch_leaves_the_secondary_gnb_or_keeps_it() {
    for (additional, to, flags) in
        [(vec![], GNB_TUNNEL, Some(PfcpSmReqFlags::SNDEM)), (additional(), SECONDARY, None)]
    {
        let mut world = World::established();
        indicate(&mut world);
        let transfer = PathSwitchRequestTransfer { downlink: GNB_TUNNEL, flows: vec![1], additional };
        let transfer = transfer.encode();
        world.update(|data| {
            data.to_be_switched = Some(true);
            data.n2_sm_info_type = Some(N2SmInfoType::PathSwitchReq);
            data.n2_sm_info = Some(transfer.into());
        });
        assert_eq!(downlink(&world), (to, flags));
        assert_eq!(answer(&world).n2_sm_info_type, Some(N2SmInfoType::PathSwitchReqAck));
    }
}

#[test]
fn an_n2_handover_can_have_a_secondary_gnb() {
    let mut world = World::established();
    super::handover::required(&mut world);
    let transfer = HandoverRequestAcknowledgeTransfer {
        downlink: super::handover::TARGET,
        forwarding: None,
        flows: vec![],
        additional: vec![AdditionalTarget { downlink: SECONDARY, forwarding: None, flows: vec![(1, false)] }],
        failed: vec![],
    };
    // The list of the target gNB has at least one flow (TS 38.413 9.3.4.11).
    let transfer = HandoverRequestAcknowledgeTransfer { flows: vec![(2, false)], ..transfer }.encode();
    world.update(|data| {
        data.ho_state = Some(HoState::Prepared);
        data.n2_sm_info_type = Some(N2SmInfoType::HandoverReqAck);
        data.n2_sm_info = Some(transfer.into());
    });
    assert_eq!(answer(&world).ho_state, Some(HoState::Prepared));
    super::handover::completed(&mut world);
    assert_eq!(downlink(&world), (SECONDARY, Some(PfcpSmReqFlags::SNDEM)));
}

#[test]
fn usage_of_a_secondary_rat_is_counted_and_bounded() {
    let mut world = World::established();
    let report = |world: &mut World, usage| {
        let transfer = SecondaryRatUsageTransfer { usage }.encode();
        world.update(|data| {
            data.n2_sm_info_type = Some(N2SmInfoType::SecondaryRatUsage);
            data.n2_sm_info = Some(transfer.into());
        });
        assert_eq!(world.take_ladder(), "amf <- 204");
    };
    let counted = |world: &World| world.bench.nf.sessions.iter().next().unwrap().1.secondary_rat;
    report(&mut world, Some(SecondaryRatUsage { uplink: 1000, downlink: 50 }));
    report(&mut world, None);
    let downlink = FlowTunnel { tunnel: SECONDARY, flows: vec![1] };
    let usage = Some(SecondaryRatUsage { uplink: 1, downlink: 2 });
    indicate_with(&mut world, &ModifyIndicationTransfer { downlink, additional: vec![], usage });
    assert_eq!(counted(&world), SecondaryRatUsage { uplink: 1001, downlink: 52 });
    world.take_ladder();
    report(&mut world, Some(SecondaryRatUsage { uplink: u64::MAX, downlink: 0 }));
    assert_eq!(counted(&world), SecondaryRatUsage { uplink: u64::MAX, downlink: 52 });
    world.update(|data| {
        data.n2_sm_info_type = Some(N2SmInfoType::SecondaryRatUsage);
        data.n2_sm_info = Some(vec![0xff; 3].into());
    });
    assert_eq!(world.take_ladder(), "amf <- 403");
}
