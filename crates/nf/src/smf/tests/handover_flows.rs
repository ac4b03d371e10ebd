//! QoS flows that change during a handover (TS 23.502 4.9.1.2.2, 4.9.1.3; TS 38.413 8.2.3): UPF, target gNB and UE get the same ones. Pith's AMF
//! queues the command until the UE is at the target gNB; other AMFs refuse it until then.

use super::flows::{
    complete, gnb_modifies, gnb_sends, is_settled, listening, n2, pcc, qfis, remove, reported, voice,
};
use super::handover::{TARGET, cancelled, completed, prepared_with, required, switch_to};
use super::handover_triggered::refuses_modification;
use super::policy::notify;
use super::world::*;
use crate::kit::Timer;
use pith_ngap::transfer::{
    FlowTunnel, ModifyRequestTransfer, ModifyResponseTransfer, NotifyTransfer, Tunnel,
};
use pith_ngap::{Cause as NgapCause, CauseRadioNetwork};
use pith_pfcp::Message;
use pith_pfcp::ie::{FarId, PdrId, QerId};
use pith_sbi::namf_communication::N1N2MessageTransferReqData;
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use pith_sbi::{Cause, Operation};
use pith_types::Teid;

/// The downlink PDR of the first rule.
const PDR: PdrId = PdrId(105);

/// The QERs and the FAR of that PDR at the UPF, after all requests.
fn downlink(world: &World) -> (Vec<QerId>, Option<FarId>) {
    let (mut qers, mut far) = (Vec::new(), None);
    for message in &world.n4 {
        let Message::SessionModificationRequest(request) = message else { continue };
        if request.remove_pdrs.iter().any(|it| it.pdr_id == PDR) {
            (qers, far) = (Vec::new(), None);
        }
        for create in request.create_pdrs.iter().filter(|it| it.pdr_id == PDR) {
            (qers, far) = (create.qer_ids.clone(), create.far_id);
        }
        for update in request.update_pdrs.iter().filter(|it| it.pdr_id == PDR) {
            qers = update.qer_ids.clone().unwrap_or(qers);
            far = update.far_id.or(far);
        }
    }
    (qers, far)
}

fn uses_flow(world: &World) -> bool {
    downlink(world).0.first() == Some(&QerId(2))
}

fn non_gbr(decision: &mut pith_sbi::npcf_smpolicycontrol::SmPolicyDecision) {
    pcc(decision, "voice", 5004, 7, None);
}

/// What the gNB answers to the command, and the UE; in either order.
fn confirmed(world: &mut World, is_ue_first: bool, answer: impl FnOnce(&mut World)) {
    if is_ue_first {
        complete(world);
        answer(world);
    } else {
        answer(world);
        complete(world);
    }
}

type Step = fn(&mut World);

/// Handovers during which a flow is added, up to HANDOVER NOTIFY.
const ADDITIONS: [(&str, Step); 7] = [
    ("in preparation", |world| {
        required(world);
        notify(world, voice);
        prepared_with(world, &[1]);
    }),
    ("in preparation, not GBR", |world| {
        required(world);
        notify(world, non_gbr);
        prepared_with(world, &[1]);
    }),
    ("after HANDOVER COMMAND", |world| {
        required(world);
        prepared_with(world, &[1]);
        notify(world, voice);
    }),
    ("refused by the source gNB", |world| {
        notify(world, voice);
        refuses_modification(world, CauseRadioNetwork::ng_intra_system_handover_triggered);
        required(world);
        prepared_with(world, &[1, 2]);
    }),
    ("refused by the source gNB in preparation", |world| {
        notify(world, voice);
        required(world);
        refuses_modification(world, CauseRadioNetwork::ng_intra_system_handover_triggered);
        prepared_with(world, &[1, 2]);
    }),
    ("refused by the AMF", |world| {
        required(world);
        world.script.insert(Operation::N1N2MessageTransfer, problem(Cause::TemporaryRejectHandoverOngoing));
        notify(world, voice);
        prepared_with(world, &[1]);
        world.script.remove(&Operation::N1N2MessageTransfer);
    }),
    ("after a cancelled handover", |world| {
        required(world);
        prepared_with(world, &[1]);
        cancelled(world);
        required(world);
        notify(world, voice);
        prepared_with(world, &[1]);
    }),
];

#[test]
fn downlink_packets_use_a_flow_that_was_added_during_a_handover() {
    for (name, begin) in ADDITIONS {
        for is_ue_first in [false, true] {
            let mut world = World::established();
            begin(&mut world);
            completed(&mut world);
            assert!(!uses_flow(&world), "{name}: the target gNB has not confirmed it");
            confirmed(&mut world, is_ue_first, |world| gnb_modifies(world, &[2], &[]));
            assert!(uses_flow(&world), "{name}");
            assert_eq!((qfis(&world), is_settled(&world)), (vec![2], true), "{name}");
            // Each request is answered.
            world.take_ladder();
            gnb_modifies(&mut world, &[1], &[2]);
            assert_eq!((world.take_ladder().as_str(), qfis(&world)), ("amf <- 204", vec![2]), "{name}");
            assert!(world.bench.timers.is_empty(), "{name}: {:?}", world.bench.timers);
        }
    }
}

#[test]
fn a_flow_that_the_target_gnb_refuses_after_the_handover_is_removed() {
    for (name, begin) in ADDITIONS {
        for is_ue_first in [false, true] {
            let mut world = listening();
            begin(&mut world);
            completed(&mut world);
            assert!(reported(&world).is_empty(), "{name}");
            confirmed(&mut world, is_ue_first, |world| gnb_modifies(world, &[1], &[2]));
            assert_eq!(reported(&world)[0].rule_reports[0].pcc_rule_ids, ["voice".into()], "{name}");
            assert!(!uses_flow(&world) && n2(&world).unwrap().to_release.is_empty(), "{name}");
            gnb_modifies(&mut world, &[1], &[]);
            complete(&mut world);
            assert!(qfis(&world).is_empty() && is_settled(&world), "{name}");
        }
    }
}

/// The target gNB has got the flow with HANDOVER REQUEST, and no other request about it.
#[test]
fn downlink_packets_use_a_flow_that_only_the_target_gnb_has_answered() {
    for is_xn in [false, true] {
        for accepts in [true, false] {
            let mut world = listening();
            notify(&mut world, voice);
            complete(&mut world);
            let flows: &[u8] = if accepts { &[1, 2] } else { &[1] };
            if is_xn {
                switch_to(&mut world, TARGET, flows);
            } else {
                required(&mut world);
                prepared_with(&mut world, flows);
                completed(&mut world);
            }
            assert_eq!((uses_flow(&world), reported(&world).len()), (accepts, usize::from(!accepts)));
            if accepts {
                world.take_ladder();
                gnb_modifies(&mut world, &[1], &[2]);
                assert_eq!(world.take_ladder(), "amf <- 204", "the source gNB's request is void");
                assert_eq!(qfis(&world), [2]);
            }
        }
    }
}

/// A secondary gNB at the target takes the flow.
#[test]
fn a_flow_that_was_added_during_a_handover_may_have_a_tunnel_of_its_own() {
    let mut world = World::established();
    required(&mut world);
    notify(&mut world, voice);
    prepared_with(&mut world, &[1]);
    completed(&mut world);
    let additional = FlowTunnel { tunnel: Tunnel { teid: Teid(0x99), ..TARGET }, flows: vec![2] };
    let transfer =
        ModifyResponseTransfer { additional: vec![additional], ..ModifyResponseTransfer::default() };
    gnb_sends(&mut world, N2SmInfoType::PduResModRsp, transfer.encode());
    complete(&mut world);
    assert_eq!(downlink(&world), (vec![QerId(2)], Some(FarId(16))));
}

fn with_voice() -> World {
    let mut world = listening();
    notify(&mut world, voice);
    gnb_modifies(&mut world, &[2], &[]);
    complete(&mut world);
    world
}

#[test]
fn a_flow_that_is_removed_during_a_handover_leaves_the_target_gnb() {
    let mut world = with_voice();
    required(&mut world);
    notify(&mut world, remove("voice"));
    prepared_with(&mut world, &[1, 2]);
    completed(&mut world);
    assert_eq!(n2(&world).unwrap().to_release[0].0, 2);
    gnb_modifies(&mut world, &[1], &[]);
    complete(&mut world);
    assert!(qfis(&world).is_empty() && is_settled(&world));
    world.take_ladder();
    gnb_modifies(&mut world, &[1], &[]);
    assert_eq!(world.take_ladder(), "amf <- 204");
}

/// The source gNB does not answer what it got before; that answer is not expected of the target gNB.
#[test]
fn requests_that_the_source_gnb_has_not_answered_end_with_the_handover() {
    let mut world = World::established();
    notify(&mut world, voice);
    world.expire(Timer::T3591);
    required(&mut world);
    prepared_with(&mut world, &[1, 2]);
    world.expire(Timer::T3591);
    completed(&mut world);
    // That to the command that was repeated during the handover.
    gnb_modifies(&mut world, &[2], &[]);
    complete(&mut world);
    assert!(uses_flow(&world));
    gnb_modifies(&mut world, &[1], &[2]);
    assert_eq!(qfis(&world), [2]);
}

fn source_releases_flow(world: &mut World) {
    let cause = NgapCause::RadioNetwork(CauseRadioNetwork::radio_resources_not_available);
    let transfer = NotifyTransfer { flows: Vec::new(), released: vec![(2, cause)] };
    gnb_sends(world, N2SmInfoType::PduResNty, transfer.encode());
}

/// The flows that a gNB is requested to release.
fn released(world: &World) -> Vec<u8> {
    let of_transfer = |transfer: &N1N2MessageTransferReqData| {
        let content = transfer.n2_info_container.as_ref()?.sm_info.as_ref()?.n2_info_content.as_ref()?;
        Some(ModifyRequestTransfer::decode(&content.ngap_data.content).unwrap().to_release)
    };
    world.transfers.iter().filter_map(of_transfer).flatten().map(|(qfi, _)| qfi).collect()
}

/// The target gNB has got the flow with HANDOVER REQUEST, or from the source gNB.
#[test]
fn a_flow_that_the_source_gnb_has_released_leaves_the_target_gnb() {
    for is_xn in [false, true] {
        for is_confirmed_before in [false, true] {
            let mut world = with_voice();
            if !is_xn {
                required(&mut world);
            }
            source_releases_flow(&mut world);
            if is_confirmed_before {
                gnb_modifies(&mut world, &[1], &[]);
                complete(&mut world);
            }
            assert!(released(&world).is_empty(), "the source gNB does not have it");
            if is_xn {
                switch_to(&mut world, TARGET, &[1, 2]);
            } else {
                prepared_with(&mut world, &[1, 2]);
                completed(&mut world);
            }
            assert_eq!(released(&world), [2], "Xn: {is_xn}, confirmed before: {is_confirmed_before}");
            if !is_confirmed_before {
                gnb_modifies(&mut world, &[1], &[]);
                complete(&mut world);
            }
            gnb_modifies(&mut world, &[1], &[]);
            assert!(qfis(&world).is_empty() && is_settled(&world) && !uses_flow(&world));
            assert_eq!(reported(&world).len(), 1);
            assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
        }
    }
}
