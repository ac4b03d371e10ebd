//! N2 handover (TS 23.502 4.9.1.3, TS 38.413 8.4.1 to 8.4.7).

use super::world::*;
use crate::kit::{GnbHandle, Input, N2Input, NetworkFunction, Timer, Tracking};
use crate::testing::with_ie_to_reject;
use pith_nas::GmmMessage;
use pith_ngap::{
    Cause, CauseRadioNetwork, GlobalRanNodeId, HandoverCancel, HandoverCommand, HandoverFailure,
    HandoverNotify, HandoverPreparationFailure, HandoverRequest, HandoverRequestAcknowledge,
    HandoverRequired, HandoverType, Message, SessionTransfer, TargetId, UeContextReleaseCommand,
    UeContextReleaseRequest, UeNgapIds,
};
use pith_sbi::nsmf_pdusession::{
    HoState, N2SmInfoType, SmContextUpdateData, SmContextUpdatedData, UpCnxState,
};
use pith_sbi::{Cause as SbiCause, Operation, Problem, Reply, Request, Response};
use pith_types::{AmfUeNgapId, RanUeNgapId, Tac, Tai};

/// RAN-UE-NGAP-ID at the target gNB.
pub(super) const AT_TARGET: RanUeNgapId = RanUeNgapId(77);

pub(super) fn connected(sessions: &[u8]) -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    world.amf.track_contexts(Tracking::default());
    phone.register(&mut world);
    sessions.iter().for_each(|id| phone.establish(&mut world, *id));
    world.script.insert(Operation::UpdateSmContext, None);
    world.take_ladder();
    (world, phone)
}

fn target() -> TargetId {
    gnb_target(2)
}

pub(super) fn gnb_target(id: u32) -> TargetId {
    let node = GlobalRanNodeId::Gnb { plmn: tai().plmn_id, id, bits: 32 };
    TargetId::RanNode { node, tai: tai() }
}

pub(super) fn required(phone: &Phone, sessions: &[u8]) -> HandoverRequired {
    HandoverRequired {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        handover_type: HandoverType::intra5gs,
        cause: Some(Cause::RadioNetwork(CauseRadioNetwork::handover_desirable_for_radio_reason)),
        target: target(),
        direct_forwarding_path: None,
        sessions: transfers(sessions),
        source_to_target: b"to target".to_vec(),
    }
}

/// TS 23.502 4.9.1.3: it is a handover between gNBs.
#[test]
fn a_handover_to_the_source_gnb_is_refused_at_once() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    world.downlinks.clear();
    world.take_ladder();
    let message = HandoverRequired { target: gnb_target(GNB.0 as u32), ..required(&phone, &[5]) };
    world.ngap(GNB, "HandoverRequired", message.encode());
    assert_eq!(world.take_ladder(), "gnb1 -> HandoverRequired\ngnb1 <- HandoverPreparationFailure");
    let Some((GNB, Message::HandoverPreparationFailure(failure))) = world.downlinks.pop_front() else {
        panic!()
    };
    assert_eq!(failure.cause, Some(Cause::RadioNetwork(CauseRadioNetwork::ho_target_not_allowed)));
}

pub(super) fn require(world: &mut World, phone: &Phone, sessions: &[u8]) {
    world.ngap(GNB, "HandoverRequired", required(phone, sessions).encode());
}

/// The open UpdateSmContext requests, the oldest first.
pub(super) fn updates(world: &World) -> Vec<SmContextUpdateData> {
    let body = |request: &Request| match request {
        Request::UpdateSmContext(update) => Some(update.body.clone()),
        _ => None,
    };
    world.calls.iter().filter_map(|(_, _, request)| body(request)).collect()
}

/// The source gNB gets UE CONTEXT RELEASE COMMAND after the handover.
pub(super) fn source_released(world: &mut World) {
    let is_it = |(gnb, message): &(GnbHandle, Message)| {
        *gnb == GNB && matches!(message, Message::UeContextReleaseCommand(_))
    };
    let at = world.downlinks.iter().position(is_it).expect("UE CONTEXT RELEASE COMMAND");
    world.downlinks.remove(at);
}

/// SMFs do not answer that they have switched the paths.
#[test]
fn the_source_gnb_is_released_also_if_smfs_do_not_answer() {
    let (mut world, _, id) = commanded(&[5]);
    notify(&mut world, id);
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    world.expire(Timer::NgapGuard);
    source_released(&mut world);
}

pub(super) fn states(world: &World) -> Vec<Option<HoState>> {
    updates(world).into_iter().map(|body| body.ho_state).collect()
}

pub(super) fn answer(world: &mut World, kind: Option<N2SmInfoType>) {
    let reply = SmContextUpdatedData {
        n2_sm_info: kind.as_ref().map(|kind| kind.as_str().as_bytes().to_vec().into()),
        n2_sm_info_type: kind,
        ..Default::default()
    };
    world.reply_to(Operation::UpdateSmContext, Ok(Response::SmContextUpdated(Box::new(reply))));
}

pub(super) fn refuse(world: &mut World) {
    let reply: Reply = Err(Box::new(Problem::new(SbiCause::N2SmError)));
    world.reply_to(Operation::UpdateSmContext, reply);
}

macro_rules! take {
    ($world:expr, $gnb:expr, $message:ident) => {
        match $world.downlinks.pop_front() {
            Some((gnb, Message::$message(message))) if gnb == $gnb => message,
            other => panic!("not {}: {other:?}", stringify!($message)),
        }
    };
}

/// HANDOVER REQUEST is sent: the SMFs have prepared the sessions.
pub(super) fn requested(sessions: &[u8]) -> (World, Phone, HandoverRequest) {
    let (mut world, phone) = connected(sessions);
    require(&mut world, &phone, sessions);
    sessions.iter().for_each(|_| answer(&mut world, Some(N2SmInfoType::PduResSetupReq)));
    let request: HandoverRequest = take!(world, OTHER_GNB, HandoverRequest);
    (world, phone, request)
}

pub(super) fn acknowledge(world: &mut World, id: AmfUeNgapId, admitted: &[u8], failed: &[u8]) {
    let list = |ids: &[u8]| (!ids.is_empty()).then(|| transfers(ids));
    let message = HandoverRequestAcknowledge {
        amf_ue_ngap_id: id,
        ran_ue_ngap_id: AT_TARGET,
        admitted: list(admitted),
        failed: list(failed),
        target_to_source: b"to source".to_vec(),
        diagnostics: None,
    };
    world.ngap(OTHER_GNB, "HandoverRequestAcknowledge", message.encode());
}

/// HANDOVER COMMAND is sent.
pub(super) fn commanded(sessions: &[u8]) -> (World, Phone, AmfUeNgapId) {
    let (mut world, phone, request) = requested(sessions);
    acknowledge(&mut world, request.amf_ue_ngap_id, sessions, &[]);
    sessions.iter().for_each(|_| answer(&mut world, Some(N2SmInfoType::HandoverCmd)));
    let _: HandoverCommand = take!(world, GNB, HandoverCommand);
    world.take_ladder();
    (world, phone, request.amf_ue_ngap_id)
}

pub(super) fn notify(world: &mut World, id: AmfUeNgapId) {
    let there = Tai { tac: Tac::new(2), ..tai() };
    let message = HandoverNotify {
        amf_ue_ngap_id: id,
        ran_ue_ngap_id: AT_TARGET,
        location: Some(pith_ngap::UserLocation { tai: there, ..location() }),
    };
    world.ngap(OTHER_GNB, "HandoverNotify", message.encode());
}

pub(super) fn failure(world: &mut World) -> CauseRadioNetwork {
    failure_at(world, GNB)
}

pub(super) fn failure_at(world: &mut World, gnb: GnbHandle) -> CauseRadioNetwork {
    let failure: HandoverPreparationFailure = take!(world, gnb, HandoverPreparationFailure);
    match failure.cause {
        Some(Cause::RadioNetwork(cause)) => cause,
        other => panic!("{other:?}"),
    }
}

pub(super) fn ids(list: &Option<Vec<SessionTransfer>>) -> Vec<u8> {
    list.iter().flatten().map(|item| item.pdu_session_id).collect()
}

/// The UE stays at its gNB, and nothing is left of the handover.
fn assert_stays(world: &mut World, mut phone: Phone) {
    let audit = world.amf.audit();
    assert_eq!((audit.connected, audit.in_procedure, audit.orphaned_connections), (1, 0, 0));
    assert_eq!(world.running(), []);
    phone.release(world);
    assert_eq!(world.amf.audit().connected, 0);
}

#[test]
fn a_session_that_is_named_twice_counts_once() {
    let (mut world, phone) = connected(&[5]);
    require(&mut world, &phone, &[5, 5]);
    answer(&mut world, Some(N2SmInfoType::PduResSetupReq));
    let request: HandoverRequest = take!(world, OTHER_GNB, HandoverRequest);
    assert_eq!(request.sessions.len(), 1);
    acknowledge(&mut world, request.amf_ue_ngap_id, &[5, 5], &[5]);
    answer(&mut world, Some(N2SmInfoType::HandoverCmd));
    let command: HandoverCommand = take!(world, GNB, HandoverCommand);
    assert_eq!((ids(&command.sessions), command.to_release), (vec![5], None));
}

#[test]
fn a_handover_takes_the_steps_of_the_specification() {
    let (mut world, mut phone) = connected(&[5]);
    require(&mut world, &phone, &[5]);
    let [preparing] = &updates(&world)[..] else { panic!() };
    assert_eq!(preparing.ho_state, Some(HoState::Preparing));
    assert_eq!(preparing.n2_sm_info_type, Some(N2SmInfoType::HandoverRequired));
    let at = preparing.target_id.as_ref().unwrap();
    assert_eq!((&*at.ran_node_id.g_nb_id.as_ref().unwrap().g_nb_value, at.tai), ("00000002", tai()));
    answer(&mut world, Some(N2SmInfoType::PduResSetupReq));
    let request: HandoverRequest = take!(world, OTHER_GNB, HandoverRequest);
    assert_ne!(request.amf_ue_ngap_id, phone.amf_id.unwrap(), "a connection of its own");
    assert_eq!(request.amf_ue_ngap_id.block(), phone.amf_id.unwrap().block());
    assert_eq!((request.security_context.chaining_count, request.nas_container), (2, None));
    assert_eq!(
        (request.sessions[0].pdu_session_id, &request.sessions[0].transfer[..]),
        (5, &b"PDU_RES_SETUP_REQ"[..])
    );
    assert_eq!(request.source_to_target, b"to target");
    let id = request.amf_ue_ngap_id;
    acknowledge(&mut world, id, &[5], &[]);
    let [prepared] = &updates(&world)[..] else { panic!() };
    assert_eq!(
        (prepared.ho_state.clone(), prepared.n2_sm_info_type.clone()),
        (Some(HoState::Prepared), Some(N2SmInfoType::HandoverReqAck))
    );
    answer(&mut world, Some(N2SmInfoType::HandoverCmd));
    let command: HandoverCommand = take!(world, GNB, HandoverCommand);
    assert_eq!((command.amf_ue_ngap_id, command.ran_ue_ngap_id), (phone.amf_id.unwrap(), phone.ran_id));
    assert_eq!(
        (ids(&command.sessions), command.to_release, &command.target_to_source[..]),
        (vec![5], None, &b"to source"[..])
    );
    notify(&mut world, id);
    assert_eq!(states(&world), [Some(HoState::Completed)]);
    assert!(world.downlinks.is_empty(), "the source gNB forwards packets until the paths are switched");
    answer(&mut world, None);
    let release: UeContextReleaseCommand = take!(world, GNB, UeContextReleaseCommand);
    assert_eq!(release.cause, Cause::RadioNetwork(CauseRadioNetwork::successful_handover));
    assert_eq!(world.amf.audit().in_procedure, 0);
    // The UE is in CM-CONNECTED over the target gNB, and the source gNB's answer does not change that.
    let UeNgapIds::Pair(amf_ue_ngap_id, ran_ue_ngap_id) = release.ids else { panic!() };
    let complete = pith_ngap::UeContextReleaseComplete {
        amf_ue_ngap_id,
        ran_ue_ngap_id,
        location: None,
        sessions: None,
        diagnostics: None,
    };
    world.ngap(GNB, "UeContextReleaseComplete", complete.encode());
    assert_eq!((world.amf.audit().connected, world.amf.audit().connections), (1, 1));
    (phone.gnb, phone.ran_id, phone.amf_id) = (OTHER_GNB, AT_TARGET, Some(id));
    phone.release(&mut world);
    assert_eq!(world.amf.audit().connections, 0);
}

#[test]
fn an_impossible_handover_is_refused_with_its_cause() {
    let unknown_gnb = GlobalRanNodeId::Gnb { plmn: tai().plmn_id, id: 9, bits: 32 };
    let other_area = Tai { tac: Tac::new(9), ..tai() };
    let enb = TargetId::Enb { plmn: tai().plmn_id, id: 1, bits: 20, tai_plmn: tai().plmn_id, tac: 1 };
    let TargetId::RanNode { node, .. } = target() else { panic!() };
    for (target, cause) in [
        (TargetId::RanNode { node: unknown_gnb, tai: tai() }, CauseRadioNetwork::unknown_targetID),
        (TargetId::RanNode { node, tai: other_area }, CauseRadioNetwork::unknown_targetID),
        (enb, CauseRadioNetwork::ho_target_not_allowed),
    ] {
        let (mut world, phone) = connected(&[5]);
        world.script.insert(Operation::CreateUeContext, problem(SbiCause::NfDiscoveryFailure));
        let message = HandoverRequired { target, ..required(&phone, &[5]) };
        world.ngap(GNB, "HandoverRequired", message.encode());
        assert_eq!(failure(&mut world), cause);
        assert_stays(&mut world, phone);
    }
}

#[test]
fn a_second_handover_required_is_refused() {
    let (mut world, phone, _) = requested(&[5]);
    require(&mut world, &phone, &[5]);
    assert_eq!(failure(&mut world), CauseRadioNetwork::interaction_with_other_procedure);
    assert_eq!(world.running(), [Timer::Handover], "the first one goes on");
}

#[test]
fn smfs_that_refuse_all_sessions_end_the_preparation() {
    let (mut world, phone) = connected(&[5, 6]);
    require(&mut world, &phone, &[5, 6]);
    refuse(&mut world);
    refuse(&mut world);
    failure(&mut world);
    assert_stays(&mut world, phone);
}

#[test]
fn sessions_that_are_not_handed_over_are_in_the_command_and_lose_their_user_plane() {
    let (mut world, phone) = connected(&[5, 6, 7]);
    require(&mut world, &phone, &[5, 6, 7, 9]);
    refuse(&mut world);
    answer(&mut world, Some(N2SmInfoType::PduResSetupReq));
    answer(&mut world, Some(N2SmInfoType::PduResSetupReq));
    let request: HandoverRequest = take!(world, OTHER_GNB, HandoverRequest);
    assert_eq!(request.sessions.iter().map(|item| item.pdu_session_id).collect::<Vec<_>>(), [6, 7]);
    acknowledge(&mut world, request.amf_ue_ngap_id, &[6], &[7]);
    let kinds: Vec<_> = updates(&world).into_iter().map(|body| body.n2_sm_info_type).collect();
    assert_eq!(kinds, [Some(N2SmInfoType::HandoverReqAck), Some(N2SmInfoType::HandoverResAllocFail)]);
    answer(&mut world, Some(N2SmInfoType::HandoverCmd));
    refuse(&mut world);
    let command: HandoverCommand = take!(world, GNB, HandoverCommand);
    assert_eq!((ids(&command.sessions), ids(&command.to_release)), (vec![6], vec![9, 5, 7]));
    notify(&mut world, request.amf_ue_ngap_id);
    let deactivated =
        updates(&world).iter().filter(|body| body.up_cnx_state == Some(UpCnxState::Deactivated)).count();
    assert_eq!((deactivated, states(&world).iter().filter(|state| state.is_some()).count()), (2, 1));
}

/// The SMF may have prepared the session, and its tunnel for forwarded packets would stay.
#[test]
fn an_smf_that_does_not_answer_is_told_that_the_session_is_not_handed_over() {
    let (mut world, _, request) = requested(&[5, 6]);
    acknowledge(&mut world, request.amf_ue_ngap_id, &[5, 6], &[]);
    world.reply_to(Operation::UpdateSmContext, Err(Problem::timed_out().into()));
    assert_eq!(states(&world), [Some(HoState::Prepared), Some(HoState::Cancelled)]);
    answer(&mut world, Some(N2SmInfoType::HandoverCmd));
    let command: HandoverCommand = take!(world, GNB, HandoverCommand);
    assert_eq!((ids(&command.sessions), ids(&command.to_release)), (vec![6], vec![5]));
}

#[test]
fn the_target_gnb_refuses() {
    let (mut world, phone, request) = requested(&[5]);
    let message = HandoverFailure { amf_ue_ngap_id: request.amf_ue_ngap_id, cause: None, diagnostics: None };
    world.ngap(OTHER_GNB, "HandoverFailure", message.encode());
    assert_eq!(failure(&mut world), CauseRadioNetwork::ho_failure_in_target_5GC_ngran_node_or_target_system);
    assert_eq!(states(&world), [Some(HoState::Cancelled)]);
    assert_eq!(world.amf.audit().connections, 1);
    assert_stays(&mut world, phone);
}

/// TS 38.413 10.3.4.2: the procedure has failed.
#[test]
fn an_answer_of_the_target_gnb_that_is_to_be_rejected_ends_the_preparation() {
    for accepts in [true, false] {
        let (mut world, phone, request) = requested(&[5]);
        let amf_ue_ngap_id = request.amf_ue_ngap_id;
        let pdu = if accepts {
            let message = HandoverRequestAcknowledge {
                amf_ue_ngap_id,
                ran_ue_ngap_id: AT_TARGET,
                admitted: Some(transfers(&[5])),
                failed: None,
                target_to_source: b"to source".to_vec(),
                diagnostics: None,
            };
            message.encode()
        } else {
            HandoverFailure { amf_ue_ngap_id, cause: None, diagnostics: None }.encode()
        };
        world.ngap(OTHER_GNB, "?", Ok(with_ie_to_reject(&pdu.unwrap())));
        if accepts {
            let release: UeContextReleaseCommand = take!(world, OTHER_GNB, UeContextReleaseCommand);
            assert_eq!(release.ids, UeNgapIds::Amf(amf_ue_ngap_id));
        }
        failure(&mut world);
        assert_eq!(states(&world), [Some(HoState::Cancelled)]);
        assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
        if !accepts {
            assert_eq!(world.amf.audit().connections, 1);
            assert_stays(&mut world, phone);
        }
    }
}

#[test]
fn the_target_gnb_admits_no_session() {
    let (mut world, phone, request) = requested(&[5]);
    acknowledge(&mut world, request.amf_ue_ngap_id, &[], &[5]);
    refuse(&mut world);
    let release: UeContextReleaseCommand = take!(world, OTHER_GNB, UeContextReleaseCommand);
    assert_eq!(release.ids, UeNgapIds::Pair(request.amf_ue_ngap_id, AT_TARGET));
    failure(&mut world);
    assert_eq!((world.amf.audit().in_procedure, world.amf.audit().releasing), (0, 1));
    drop(phone);
}

#[test]
fn a_target_gnb_that_does_not_answer_ends_the_preparation() {
    let (mut world, phone, request) = requested(&[5]);
    world.expire(Timer::Handover);
    let release: UeContextReleaseCommand = take!(world, OTHER_GNB, UeContextReleaseCommand);
    assert_eq!(release.ids, UeNgapIds::Amf(request.amf_ue_ngap_id));
    assert_eq!(failure(&mut world), CauseRadioNetwork::tngrelocprep_expiry);
    let complete = pith_ngap::UeContextReleaseComplete {
        amf_ue_ngap_id: request.amf_ue_ngap_id,
        ran_ue_ngap_id: AT_TARGET,
        location: None,
        sessions: None,
        diagnostics: None,
    };
    world.ngap(OTHER_GNB, "UeContextReleaseComplete", complete.encode());
    assert_eq!(world.amf.audit().connections, 1);
    assert_stays(&mut world, phone);
}

#[test]
fn a_target_gnb_that_is_gone_ends_the_preparation() {
    let (mut world, phone, _) = requested(&[5]);
    world.input(Input::N2(N2Input::GnbDown { gnb: OTHER_GNB }));
    failure(&mut world);
    assert_stays(&mut world, phone);
}

#[test]
fn a_ue_that_does_not_arrive_stays_with_its_source_gnb() {
    let (mut world, mut phone, id) = commanded(&[5]);
    world.expire(Timer::Handover);
    let release: UeContextReleaseCommand = take!(world, OTHER_GNB, UeContextReleaseCommand);
    assert_eq!(release.ids, UeNgapIds::Pair(id, AT_TARGET));
    assert_eq!(states(&world), [Some(HoState::Cancelled)]);
    assert_eq!((world.amf.audit().connected, world.amf.audit().in_procedure), (1, 0));
    phone.release(&mut world);
}

#[test]
fn the_source_gnb_cancels_at_each_step() {
    let cancel = |world: &mut World, phone: &Phone| {
        let message = HandoverCancel {
            amf_ue_ngap_id: phone.amf_id.unwrap(),
            ran_ue_ngap_id: phone.ran_id,
            cause: None,
        };
        world.ngap(GNB, "HandoverCancel", message.encode());
        let is_acknowledge = |(gnb, message): &(crate::kit::GnbHandle, Message)| {
            *gnb == GNB && matches!(message, Message::HandoverCancelAcknowledge(_))
        };
        assert!(world.downlinks.iter().any(is_acknowledge), "{:?}", world.downlinks);
        assert_eq!(world.amf.audit().in_procedure, 0);
        assert_eq!(states(world).last(), Some(&Some(HoState::Cancelled)));
    };
    let (mut world, phone) = connected(&[5]);
    require(&mut world, &phone, &[5]);
    cancel(&mut world, &phone);
    let (mut world, phone, _) = requested(&[5]);
    cancel(&mut world, &phone);
    let (mut world, phone, request) = requested(&[5]);
    acknowledge(&mut world, request.amf_ue_ngap_id, &[5], &[]);
    cancel(&mut world, &phone);
    let (mut world, phone, _) = commanded(&[5]);
    cancel(&mut world, &phone);
}

/// The UE has arrived at the target gNB, and the SMFs switch the paths.
#[test]
fn a_source_gnb_that_the_ue_has_left_may_cancel_or_release_it() {
    let (mut world, phone, id) = commanded(&[5]);
    notify(&mut world, id);
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (phone.amf_id.unwrap(), phone.ran_id);
    let cancel = HandoverCancel { amf_ue_ngap_id, ran_ue_ngap_id, cause: None };
    world.ngap(GNB, "HandoverCancel", cancel.encode());
    let acknowledge = take!(world, GNB, HandoverCancelAcknowledge);
    assert_eq!(acknowledge.amf_ue_ngap_id, amf_ue_ngap_id);
    let cause = Cause::RadioNetwork(CauseRadioNetwork::tngrelocoverall_expiry);
    let request =
        UeContextReleaseRequest { amf_ue_ngap_id, ran_ue_ngap_id, sessions: None, cause: Some(cause) };
    world.ngap(GNB, "UeContextReleaseRequest", request.encode());
    source_released(&mut world);
    assert_eq!(states(&world), [Some(HoState::Completed)], "the UE stays at the target gNB");
}

#[test]
fn messages_of_smfs_wait_for_the_ue_to_arrive() {
    let (mut world, mut phone, id) = commanded(&[5]);
    assert!(world.request(transfer(5, Some(b"5GSM"), None)).is_ok());
    assert!(world.downlinks.is_empty());
    notify(&mut world, id);
    (phone.gnb, phone.ran_id, phone.amf_id) = (OTHER_GNB, AT_TARGET, Some(id));
    let GmmMessage::DlNasTransport(message) = phone.receive(&mut world) else { panic!("the 5GSM message") };
    assert_eq!(message.payload_container, b"5GSM");
}

/// The UE repeats its request (T3580): the accept that waits is of a session that has ended.
#[test]
fn an_accept_that_waits_is_dropped_if_its_session_is_replaced() {
    let (mut world, mut phone, id) = commanded(&[5]);
    for (nas, setup) in [(b"first", b"old"), (b"other", b"new")] {
        phone.send(&mut world, establishment(6));
        world.request(transfer(6, Some(nas), Some((NgapIe::PduResSetupReq, setup)))).unwrap();
    }
    notify(&mut world, id);
    let setup = take!(world, OTHER_GNB, PduSessionResourceSetupRequest);
    assert_eq!(setup.sessions[0].transfer, b"new");
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
}

/// It may name the tunnels of the source gNB: the SMF does not know of the handover yet.
#[test]
fn a_change_of_resources_is_refused_until_the_smf_has_prepared_the_session() {
    let (mut world, phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    require(&mut world, &phone, &[5]);
    let modify = transfer(5, None, Some((NgapIe::PduResModReq, b"modify")));
    let refusal = world.request(modify.clone()).unwrap_err();
    assert_eq!(refusal.cause(), Some(&SbiCause::TemporaryRejectHandoverOngoing));
    answer(&mut world, Some(N2SmInfoType::PduResSetupReq));
    assert!(world.request(modify).is_ok(), "it waits for the UE to arrive");
}

#[test]
fn a_session_that_is_not_switched_is_released_at_the_target_gnb() {
    let (mut world, _, id) = commanded(&[5]);
    notify(&mut world, id);
    refuse(&mut world);
    let release = take!(world, OTHER_GNB, PduSessionResourceReleaseCommand);
    assert_eq!((release.ran_ue_ngap_id, release.sessions[0].pdu_session_id), (AT_TARGET, 5));
    assert_eq!(updates(&world).last().unwrap().up_cnx_state, Some(UpCnxState::Deactivated));
}

/// Its SMF has ended it meanwhile, as the UE left the area of a LADN, and refuses to switch it.
#[test]
fn a_session_that_the_target_gnb_has_released_is_not_released_again() {
    let (mut world, mut phone, id) = commanded(&[5]);
    notify(&mut world, id);
    let release = transfer(5, Some(b"5GSM"), Some((NgapIe::PduResRelCmd, b"release")));
    assert!(world.request(release).is_ok());
    let _ = take!(world, OTHER_GNB, PduSessionResourceReleaseCommand);
    (phone.gnb, phone.ran_id, phone.amf_id) = (OTHER_GNB, AT_TARGET, Some(id));
    super::pdu_session::release_response(&mut world, &phone);
    refuse(&mut world);
    source_released(&mut world);
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    assert_eq!(updates(&world).len(), 1, "the answer of the gNB");
}

/// The same, and the SMF's answer that it has switched the path comes late.
#[test]
fn a_late_answer_of_the_smf_activates_no_session_that_the_target_gnb_has_released() {
    let (mut world, mut phone, id) = commanded(&[5]);
    notify(&mut world, id);
    world.request(transfer(5, Some(b"5GSM"), Some((NgapIe::PduResRelCmd, b"release")))).unwrap();
    let _ = take!(world, OTHER_GNB, PduSessionResourceReleaseCommand);
    (phone.gnb, phone.ran_id, phone.amf_id) = (OTHER_GNB, AT_TARGET, Some(id));
    super::pdu_session::release_response(&mut world, &phone);
    answer(&mut world, None);
    source_released(&mut world);
    super::pdu_session::status_notify(&mut world, 5).unwrap();
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
}

/// Its SMF has restarted before it answered, and has ended it, as the UE left the area of a LADN. It has requested the release of the
/// resources, or could not.
#[test]
fn a_session_that_ends_while_its_path_is_switched_is_released_at_the_target_gnb_once() {
    for has_command in [true, false] {
        let (mut world, mut phone, id) = commanded(&[5]);
        notify(&mut world, id);
        (phone.gnb, phone.ran_id, phone.amf_id) = (OTHER_GNB, AT_TARGET, Some(id));
        let release = transfer(5, Some(b"5GSM"), Some((NgapIe::PduResRelCmd, b"release")));
        if has_command {
            assert!(world.request(release).is_ok());
            let _ = take!(world, OTHER_GNB, PduSessionResourceReleaseCommand);
            super::pdu_session::release_response(&mut world, &phone);
        }
        assert!(super::pdu_session::status_notify(&mut world, 5).is_ok());
        if !has_command {
            let _ = take!(world, OTHER_GNB, PduSessionResourceReleaseCommand);
            super::pdu_session::release_response(&mut world, &phone);
        }
        world.reply_to(Operation::UpdateSmContext, Err(Problem::timed_out().into()));
        source_released(&mut world);
        assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
        assert_eq!(world.amf.audit().sessions, 0);
    }
}

/// The SMF's command arrives after its refusal.
#[test]
fn the_target_gnb_gets_one_command_to_release_a_session() {
    let (mut world, mut phone, id) = commanded(&[5]);
    notify(&mut world, id);
    refuse(&mut world);
    let _ = take!(world, OTHER_GNB, PduSessionResourceReleaseCommand);
    source_released(&mut world);
    let before = updates(&world).len();
    let release = transfer(5, Some(b"5GSM"), Some((NgapIe::PduResRelCmd, b"release")));
    assert!(world.request(release).is_ok());
    let _: pith_ngap::DownlinkNasTransport = take!(world, OTHER_GNB, DownlinkNasTransport);
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    (phone.gnb, phone.ran_id, phone.amf_id) = (OTHER_GNB, AT_TARGET, Some(id));
    super::pdu_session::release_response(&mut world, &phone);
    assert_eq!(updates(&world).len(), before + 1, "the answer of the gNB");
}

/// The gNB is to release the resources of such a session: it would refuse to modify them.
#[test]
fn a_modification_that_waited_is_not_sent_for_a_session_that_is_not_handed_over() {
    let (mut world, _, request) = requested(&[5, 6]);
    acknowledge(&mut world, request.amf_ue_ngap_id, &[5, 6], &[]);
    answer(&mut world, Some(N2SmInfoType::HandoverCmd));
    refuse(&mut world);
    let command: HandoverCommand = take!(world, GNB, HandoverCommand);
    assert_eq!(ids(&command.sessions), [5]);
    for id in [5, 6] {
        assert!(world.request(transfer(id, None, Some((NgapIe::PduResModReq, b"modify")))).is_ok());
    }
    notify(&mut world, request.amf_ue_ngap_id);
    let release = take!(world, OTHER_GNB, PduSessionResourceReleaseCommand);
    assert_eq!(release.sessions[0].pdu_session_id, 6);
    answer(&mut world, None);
    answer(&mut world, None);
    source_released(&mut world);
    let modify = take!(world, OTHER_GNB, PduSessionResourceModifyRequest);
    assert_eq!(modify.sessions.iter().map(|item| item.pdu_session_id).collect::<Vec<_>>(), [5]);
    assert!(world.downlinks.is_empty());
}

/// It no longer knows the UE when HANDOVER COMMAND would arrive.
#[test]
fn a_source_gnb_that_releases_the_ue_gets_no_handover_command() {
    for accepts in [true, false] {
        let (mut world, phone, request) = requested(&[5]);
        acknowledge(&mut world, request.amf_ue_ngap_id, &[5], &[]);
        let message = pith_ngap::UeContextReleaseRequest {
            amf_ue_ngap_id: phone.amf_id.unwrap(),
            ran_ue_ngap_id: phone.ran_id,
            sessions: None,
            cause: Some(Cause::RadioNetwork(CauseRadioNetwork::user_inactivity)),
        };
        world.ngap(GNB, "UeContextReleaseRequest", message.encode());
        let _: UeContextReleaseCommand = take!(world, GNB, UeContextReleaseCommand);
        if accepts {
            answer(&mut world, Some(N2SmInfoType::HandoverCmd))
        } else {
            refuse(&mut world)
        }
        let _: UeContextReleaseCommand = take!(world, OTHER_GNB, UeContextReleaseCommand);
        assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    }
}

#[test]
fn an_an_release_at_the_source_ends_the_handover() {
    let (mut world, mut phone, _) = commanded(&[5]);
    phone.release(&mut world);
    let release: UeContextReleaseCommand = take!(world, OTHER_GNB, UeContextReleaseCommand);
    assert_eq!(release.cause, Cause::RadioNetwork(CauseRadioNetwork::handover_cancelled));
    assert_eq!((world.amf.audit().connected, world.amf.audit().in_procedure), (0, 0));
}

#[test]
fn a_path_switch_supersedes_an_n2_handover() {
    let (mut world, phone, _) = commanded(&[5]);
    let request = pith_ngap::PathSwitchRequest {
        ran_ue_ngap_id: RanUeNgapId(9),
        source_amf_ue_ngap_id: phone.amf_id.unwrap(),
        location: None,
        security_capabilities: None,
        sessions: transfers(&[5]),
        failed: None,
    };
    world.ngap(OTHER_GNB, "PathSwitchRequest", request.encode());
    let _: UeContextReleaseCommand = take!(world, OTHER_GNB, UeContextReleaseCommand);
    assert_eq!(states(&world), [Some(HoState::Cancelled), None]);
}

#[test]
fn a_deregistration_ends_the_handover() {
    let (mut world, mut phone, _) = commanded(&[5]);
    let request = phone.deregistration_request(true);
    phone.send(&mut world, request);
    let commands =
        world.downlinks.iter().filter(|(_, it)| matches!(it, Message::UeContextReleaseCommand(_))).count();
    assert_eq!((commands, world.amf.audit().contexts), (2, 0), "both connections are released");
}

#[test]
fn the_status_of_the_source_gnb_is_relayed_to_the_target() {
    let (mut world, phone, id) = commanded(&[5]);
    let status = pith_ngap::RanStatus::decode(&[0; 12]).unwrap();
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (phone.amf_id.unwrap(), phone.ran_id);
    let transfer =
        pith_ngap::UplinkRanStatusTransfer { amf_ue_ngap_id, ran_ue_ngap_id, status: status.clone() };
    world.ngap(GNB, "UplinkRanStatusTransfer", transfer.encode());
    let relayed = take!(world, OTHER_GNB, DownlinkRanStatusTransfer);
    assert_eq!((relayed.amf_ue_ngap_id, relayed.ran_ue_ngap_id, relayed.status), (id, AT_TARGET, status));
    let status = pith_ngap::EarlyRanStatus::decode(&[0; 7]).unwrap();
    let early =
        pith_ngap::UplinkRanEarlyStatusTransfer { amf_ue_ngap_id, ran_ue_ngap_id, status: status.clone() };
    world.ngap(GNB, "UplinkRanEarlyStatusTransfer", early.encode());
    let relayed = take!(world, OTHER_GNB, DownlinkRanEarlyStatusTransfer);
    assert_eq!((relayed.amf_ue_ngap_id, relayed.ran_ue_ngap_id, relayed.status), (id, AT_TARGET, status));
    world.expire(Timer::Handover);
    world.downlinks.clear();
    world.ngap(GNB, "UplinkRanStatusTransfer", transfer.encode());
    world.ngap(GNB, "UplinkRanEarlyStatusTransfer", early.encode());
    assert!(world.downlinks.is_empty(), "ignored without a prepared handover");
}
