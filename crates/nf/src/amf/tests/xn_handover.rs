//! Xn handover (TS 23.502 4.9.1.2, TS 38.413 8.4.4).

use super::absent::{has_no_copy, stateless};
use super::n2_handover::updates;
use super::world::*;
use crate::kit::{Duration, GnbHandle, Input, N2Input, NetworkFunction, Timer};
use pith_crypto::kdf::{self, AccessType};
use pith_crypto::keys::{KAmf, Nh};
use pith_nas::GmmMessage;
use pith_nas::gmm;
use pith_nas::ie::RegistrationKind;
use pith_ngap::transfer::PathSwitchRequestUnsuccessfulTransfer;
use pith_ngap::{
    Message, PathSwitchRequest, PathSwitchRequestAcknowledge, PathSwitchRequestFailure, SecurityCapabilities,
    SessionTransfer,
};
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdateErrorData, SmContextUpdatedData, UpCnxState};
use pith_sbi::{Cause as SbiCause, Operation, Problem, ProblemMore, Reply, Request, Response};
use pith_types::{AmfUeNgapId, RanUeNgapId, Snssai, Tac, Tai};

/// RAN-UE-NGAP-ID at the target gNB.
const AT_TARGET: RanUeNgapId = RanUeNgapId(77);

/// The phone's algorithms, 5G-EA1, EA2, IA1 and IA2, in NGAP's format.
const CAPABILITIES: SecurityCapabilities = SecurityCapabilities {
    nr_encryption: 0xc000,
    nr_integrity: 0xc000,
    eutra_encryption: 0,
    eutra_integrity: 0,
};

fn connected(sessions: &[u8]) -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    sessions.iter().for_each(|id| phone.establish(&mut world, *id));
    world.script.insert(Operation::UpdateSmContext, Some(acknowledged()));
    world.take_ladder();
    (world, phone)
}

/// The SMF has switched the session's path.
pub(super) fn acknowledged() -> Reply {
    Ok(Response::SmContextUpdated(Box::new(SmContextUpdatedData {
        n2_sm_info: Some(b"acknowledge".to_vec().into()),
        n2_sm_info_type: Some(N2SmInfoType::PathSwitchReqAck),
        ..Default::default()
    })))
}

/// The SMF refuses, with a transfer for the gNB.
fn refused(status: SbiCause) -> Reply {
    let mut data = SmContextUpdateErrorData::default();
    data.n2_sm_info = Some(b"refusal".to_vec().into());
    data.n2_sm_info_type = Some(N2SmInfoType::PathSwitchReqFail);
    Err(Box::new(Problem::new(status).with(ProblemMore::SmContextUpdateError(Box::new(data)))))
}

pub(super) fn request(id: AmfUeNgapId, sessions: &[u8]) -> PathSwitchRequest {
    PathSwitchRequest {
        ran_ue_ngap_id: AT_TARGET,
        source_amf_ue_ngap_id: id,
        location: Some(location()),
        security_capabilities: Some(CAPABILITIES),
        sessions: transfers(sessions),
        failed: None,
    }
}

pub(super) fn switch(world: &mut World, gnb: GnbHandle, request: &PathSwitchRequest) {
    world.ngap(gnb, "PathSwitchRequest", request.encode());
}

pub(super) fn acknowledge(world: &mut World, gnb: GnbHandle) -> PathSwitchRequestAcknowledge {
    match world.downlinks.pop_front() {
        Some((to, Message::PathSwitchRequestAcknowledge(message))) if to == gnb => message,
        other => panic!("{other:?}"),
    }
}

fn failure(world: &mut World, gnb: GnbHandle) -> PathSwitchRequestFailure {
    match world.downlinks.pop_front() {
        Some((to, Message::PathSwitchRequestFailure(message))) if to == gnb => message,
        other => panic!("{other:?}"),
    }
}

pub(super) fn ids(list: &Option<Vec<SessionTransfer>>) -> Vec<u8> {
    list.iter().flatten().map(|item| item.pdu_session_id).collect()
}

/// The phone is at the target gNB.
fn arrive(phone: &mut Phone) {
    (phone.gnb, phone.ran_id) = (OTHER_GNB, AT_TARGET);
}

fn k_amf(world: &World) -> (KAmf, u32) {
    let key = world.amf.shared.index.find_supi(&supi()).unwrap();
    let ue = world.amf.ues.view(key).unwrap();
    (ue.security.as_ref().unwrap().k_amf.clone(), ue.k_gnb_count.value())
}

/// The NH with that NCC, derived from K_gNB as the UE does (TS 33.501 A.10).
fn nh(world: &World, chaining_count: u8) -> [u8; 32] {
    let (k_amf, count) = k_amf(world);
    let mut nh: Nh = kdf::first_nh(&k_amf, &kdf::k_gnb(&k_amf, count, AccessType::ThreeGpp));
    for _ in 1..chaining_count {
        nh = kdf::next_nh(&k_amf, &nh);
    }
    *nh.as_bytes()
}

#[test]
fn the_paths_of_all_sessions_are_switched_to_the_target_gnb() {
    let (mut world, mut phone) = connected(&[5, 6]);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5, 6]));
    assert_eq!(
        world.take_ladder(),
        "gnb2 -> PathSwitchRequest\n\
         smf  <- UpdateSmContext\n\
         smf  <- UpdateSmContext\n\
         gnb2 <- PathSwitchRequestAcknowledge"
    );
    let answer = acknowledge(&mut world, OTHER_GNB);
    assert_eq!((answer.amf_ue_ngap_id, answer.ran_ue_ngap_id), (phone.amf_id.unwrap(), AT_TARGET));
    assert_eq!(
        (ids(&answer.switched), answer.released, answer.security_capabilities),
        (vec![5, 6], None, None)
    );
    assert_eq!(answer.switched.unwrap()[0].transfer, b"acknowledge");
    assert_eq!(answer.allowed_nssai, [pith_types::Snssai::of_sst(1)]);
    // Messages of the UE arrive over the target gNB from now on.
    arrive(&mut phone);
    world.script.remove(&Operation::UpdateSmContext);
    phone.send(&mut world, establishment(7));
    assert!(world.take_ladder().contains("smf  <- PostSmContexts"));
    phone.release(&mut world);
    assert_eq!(world.amf.audit().connected, 0);
}

#[test]
fn a_subscription_that_changes_during_a_handover_is_sent_after_it() {
    let (mut world, mut phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5]));
    let mut data = subscription(&[1]);
    let forbidden = pith_sbi::common::Area { area_code: None, tacs: vec![Tac::new(9)] };
    data.am_data.as_mut().unwrap().forbidden_areas = vec![forbidden];
    world.script.insert(Operation::GetDataSets, Some(Ok(Response::SubscriptionDataSets(Box::new(data)))));
    super::subscription_change::notified(&mut world);
    assert!(!world.take_ladder().contains("DownlinkNasTransport"));
    world.reply_to(Operation::UpdateSmContext, acknowledged());
    acknowledge(&mut world, OTHER_GNB);
    arrive(&mut phone);
    let GmmMessage::ConfigurationUpdateCommand(command) = phone.receive(&mut world) else { panic!() };
    assert!(command.tai_list.is_some());
}

#[test]
fn the_smf_gets_the_transfer_and_the_location_of_the_target_gnb() {
    let (mut world, phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    let there = Tai { tac: Tac::new(2), ..tai() };
    let mut info = World::gnb_info(OTHER_GNB);
    info.supported.push((there, vec![Snssai::of_sst(1)]));
    world.input(Input::N2(N2Input::GnbUp { gnb: OTHER_GNB, info: info.into() }));
    let seen = pith_ngap::UserLocation { tai: there, ..location() };
    switch(
        &mut world,
        OTHER_GNB,
        &PathSwitchRequest { location: Some(seen), ..request(phone.amf_id.unwrap(), &[5]) },
    );
    let Request::UpdateSmContext(update) = world.open_call(Operation::UpdateSmContext) else { panic!() };
    let body = update.body;
    assert_eq!((body.to_be_switched, body.n2_sm_info_type), (Some(true), Some(N2SmInfoType::PathSwitchReq)));
    assert_eq!(body.n2_sm_info.unwrap().content, b"done"[..]);
    assert_eq!(body.ue_location.unwrap().nr_location.unwrap().tai, there);
}

#[test]
fn each_handover_gets_the_next_nh_of_the_chain() {
    let (mut world, phone) = connected(&[5]);
    for (gnb, ncc) in
        [(OTHER_GNB, 2_u8), (GNB, 3), (OTHER_GNB, 4), (GNB, 5), (OTHER_GNB, 6), (GNB, 7), (OTHER_GNB, 8)]
    {
        switch(&mut world, gnb, &request(phone.amf_id.unwrap(), &[5]));
        let answer = acknowledge(&mut world, gnb);
        assert_eq!(answer.security_context.chaining_count, ncc & 7);
        assert_eq!(answer.security_context.nh, nh(&world, ncc), "NCC {ncc}");
    }
}

#[test]
fn wrong_security_capabilities_are_replaced() {
    for wrong in [None, Some(SecurityCapabilities { nr_integrity: 0x8000, ..CAPABILITIES })] {
        let (mut world, phone) = connected(&[5]);
        let request =
            PathSwitchRequest { security_capabilities: wrong, ..request(phone.amf_id.unwrap(), &[5]) };
        switch(&mut world, OTHER_GNB, &request);
        assert_eq!(acknowledge(&mut world, OTHER_GNB).security_capabilities, Some(CAPABILITIES));
        let warned = world.events.iter().any(|event| event.text.contains("TS 33.501 6.7.3.1"));
        assert!(warned, "the operator learns it");
    }
}

#[test]
fn sessions_that_are_not_switched_are_released_at_the_target_gnb() {
    let (mut world, phone) = connected(&[5, 6]);
    world.script.insert(Operation::UpdateSmContext, None);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5, 6, 9]));
    world.reply_to(Operation::UpdateSmContext, acknowledged());
    world.reply_to(Operation::UpdateSmContext, refused(SbiCause::InsufficientResources));
    let answer = acknowledge(&mut world, OTHER_GNB);
    assert_eq!((ids(&answer.switched), ids(&answer.released)), (vec![5], vec![9, 6]));
    let released = answer.released.unwrap();
    assert!(
        PathSwitchRequestUnsuccessfulTransfer::decode(&released[0].transfer).is_ok(),
        "an unknown session"
    );
    assert_eq!(released[1].transfer, b"refusal", "the SMF's transfer");
    let Request::UpdateSmContext(update) = world.open_call(Operation::UpdateSmContext) else { panic!() };
    assert_eq!(update.body.up_cnx_state, Some(UpCnxState::Deactivated), "the SMF of session 6");
}

#[test]
fn sessions_that_failed_or_are_not_listed_lose_their_user_plane() {
    let (mut world, phone) = connected(&[5, 6, 7]);
    let failed = PathSwitchRequest { failed: Some(transfers(&[6])), ..request(phone.amf_id.unwrap(), &[5]) };
    world.script.insert(Operation::UpdateSmContext, None);
    switch(&mut world, OTHER_GNB, &failed);
    let mut updates = Vec::new();
    for _ in 0..3 {
        let Request::UpdateSmContext(update) = world.open_call(Operation::UpdateSmContext) else { panic!() };
        let body = update.body;
        updates.push((
            update.sm_context_ref,
            body.n2_sm_info_type,
            body.failed_to_be_switched,
            body.up_cnx_state,
        ));
    }
    let failed = ("sm-6".to_owned(), Some(N2SmInfoType::PathSwitchSetupFail), Some(true), None);
    let missing = ("sm-7".to_owned(), None, None, Some(UpCnxState::Deactivated));
    assert!(updates.contains(&failed) && updates.contains(&missing), "{updates:?}");
}

#[test]
fn without_a_switched_session_both_gnbs_release_the_ue() {
    let (mut world, mut phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5]));
    world.reply_to(Operation::UpdateSmContext, refused(SbiCause::PeerNotResponding));
    let answer = failure(&mut world, OTHER_GNB);
    assert_eq!((answer.amf_ue_ngap_id, answer.ran_ue_ngap_id), (phone.amf_id.unwrap(), AT_TARGET));
    assert_eq!(answer.released.unwrap()[0].transfer, b"refusal");
    phone.released(&mut world);
    assert_eq!((world.amf.audit().connected, world.amf.audit().connections), (0, 0), "at the source gNB");
}

#[test]
fn the_source_gnb_is_gone_when_the_path_switch_fails() {
    let (mut world, phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5]));
    world.input(Input::N2(N2Input::GnbDown { gnb: GNB }));
    assert_eq!(world.amf.audit().connected, 1, "the UE is at the target gNB");
    world.reply_to(Operation::UpdateSmContext, refused(SbiCause::PeerNotResponding));
    failure(&mut world, OTHER_GNB);
    assert_eq!((world.amf.audit().connected, world.amf.audit().connections), (0, 0));
    assert_eq!(world.running(), [Timer::MobileReachable]);
}

/// The target gNB is gone while the path of a session is switched.
fn world_of_lost_target() -> World {
    let (mut world, phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5]));
    world.input(Input::N2(N2Input::GnbDown { gnb: OTHER_GNB }));
    assert_eq!((world.amf.audit().connected, world.amf.audit().in_procedure), (0, 0));
    world.take_ladder();
    world
}

#[test]
fn the_target_gnb_is_gone_while_paths_are_switched() {
    // SBI messages have no order: the SMF may have got the deactivation before the request to switch the path.
    for late in [acknowledged(), Err(Problem::timed_out().into())] {
        let mut world = world_of_lost_target();
        world.reply_to(Operation::UpdateSmContext, late);
        assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext", "once");
        let states: Vec<_> = updates(&world).into_iter().map(|body| body.up_cnx_state).collect();
        assert_eq!(states, vec![Some(UpCnxState::Deactivated); 2]);
    }
}

#[test]
fn a_refused_switch_to_a_gnb_that_is_gone_needs_no_deactivation() {
    let mut world = world_of_lost_target();
    world.reply_to(Operation::UpdateSmContext, refused(SbiCause::N2SmError));
    assert_eq!(world.take_ladder(), "");
}

#[test]
fn an_unregistered_or_unknown_ue_is_refused() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let nas = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(nas);
    phone.connect(&mut world, nas);
    phone.receive(&mut world);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5]));
    assert_eq!(ids(&failure(&mut world, OTHER_GNB).released), [5]);
    let unknown = AmfUeNgapId::from_wire(phone.amf_id.unwrap().value() ^ 1).unwrap();
    switch(&mut world, OTHER_GNB, &request(unknown, &[5]));
    let Message::ErrorIndication(error) = world.next() else { panic!("an ERROR INDICATION") };
    assert_eq!((error.amf_ue_ngap_id, error.ran_ue_ngap_id), (Some(unknown), Some(AT_TARGET)));
    let left = |id| (OTHER_GNB, AT_TARGET, id);
    assert_eq!(world.left, [left(phone.amf_id.unwrap()), left(unknown)], "the gateway forgets both");
}

#[test]
fn a_gnb_that_guesses_ids_of_ues_gets_no_answer_to_a_correct_one() {
    let (mut world, phone) = connected(&[5]);
    let own = phone.amf_id.unwrap();
    let answer = |world: &mut World, gnb, id| {
        switch(world, gnb, &request(id, &[5]));
        world.downlinks.pop_front().map(|(to, message)| (to, message.name()))
    };
    for guess in 1..=16 {
        let guess = AmfUeNgapId::from_wire(own.value() ^ guess).unwrap();
        assert_eq!(answer(&mut world, OTHER_GNB, guess), Some((OTHER_GNB, "ErrorIndication")));
    }
    assert_eq!(answer(&mut world, OTHER_GNB, own), Some((OTHER_GNB, "ErrorIndication")));
    assert!(world.calls.is_empty());
    world.now = world.now + Duration::from_secs(3);
    assert_eq!(answer(&mut world, OTHER_GNB, own), Some((OTHER_GNB, "PathSwitchRequestAcknowledge")));
    assert_eq!(answer(&mut world, GNB, own), Some((GNB, "PathSwitchRequestAcknowledge")), "another gNB");
}

#[test]
fn a_refused_request_changes_nothing() {
    let (mut world, mut phone, _) = super::n2_handover::commanded(&[5]);
    let mut elsewhere = request(phone.amf_id.unwrap(), &[5]);
    elsewhere.ran_ue_ngap_id = RanUeNgapId(99);
    elsewhere.location.as_mut().unwrap().tai.tac = Tac::new(0x77);
    let calls = world.calls.len();
    switch(&mut world, OTHER_GNB, &elsewhere);
    assert_eq!(ids(&failure(&mut world, OTHER_GNB).released), [5], "the gNB does not serve that area");
    assert!(world.downlinks.is_empty(), "the N2 handover goes on: {:?}", world.downlinks);
    assert_eq!(world.calls.len(), calls);
    assert!(world.request(transfer(5, Some(b"5GSM"), None)).is_ok());
    world.ngap(GNB, "HandoverCancel", {
        let (amf_ue_ngap_id, ran_ue_ngap_id) = (phone.amf_id.unwrap(), phone.ran_id);
        pith_ngap::HandoverCancel { amf_ue_ngap_id, ran_ue_ngap_id, cause: None }.encode()
    });
    world.downlinks.retain(|(_, message)| matches!(message, Message::DownlinkNasTransport(_)));
    let GmmMessage::DlNasTransport(message) = phone.receive(&mut world) else { panic!("the 5GSM message") };
    assert_eq!(message.payload_container, b"5GSM", "the UE is at its source gNB");
}

#[test]
fn nas_messages_follow_a_ue_that_moves_on_before_the_acknowledgement() {
    let (mut world, mut phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    let first = request(phone.amf_id.unwrap(), &[5]);
    switch(&mut world, OTHER_GNB, &first);
    assert!(world.request(transfer(5, Some(b"5GSM"), None)).is_ok());
    let back = PathSwitchRequest { ran_ue_ngap_id: RanUeNgapId(9), ..first };
    switch(&mut world, GNB, &back);
    failure(&mut world, OTHER_GNB);
    world.reply_to(Operation::UpdateSmContext, acknowledged());
    world.reply_to(Operation::UpdateSmContext, acknowledged());
    acknowledge(&mut world, GNB);
    (phone.gnb, phone.ran_id) = (GNB, RanUeNgapId(9));
    let GmmMessage::DlNasTransport(message) = phone.receive(&mut world) else { panic!("the 5GSM message") };
    assert_eq!(message.payload_container, b"5GSM");
}

#[test]
fn a_ue_that_was_handed_over_from_a_lost_gnb_stays_connected() {
    let (mut world, phone) = connected(&[5]);
    let others: Vec<_> = (0..70).map(|ran| (crate::kit::Key::from_u64(ran + 1000), GNB)).collect();
    world.amf.lost.extend(others);
    world.input(Input::N2(N2Input::GnbDown { gnb: GNB }));
    assert_eq!(world.amf.audit().connected, 1, "its connection is to be closed in the next batch");
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5]));
    acknowledge(&mut world, OTHER_GNB);
    world.expire(Timer::LostConnections);
    assert_eq!(world.amf.audit().connected, 1);
    let left: Vec<_> = world.left.iter().map(|(_, ran_id, amf_id)| (*ran_id, Some(*amf_id))).collect();
    assert_eq!(left, [(phone.ran_id, phone.amf_id)]);
}

#[test]
fn a_setup_that_waits_for_a_release_at_the_source_gnb_ends_with_the_handover() {
    let (mut world, phone) = connected(&[5, 6]);
    for id in [5, 6] {
        assert!(world.request(transfer(id, None, Some((NgapIe::PduResSetupReq, b"setup")))).is_ok());
        assert_eq!(world.next().name(), "PduSessionResourceReleaseCommand");
    }
    assert_eq!(world.running(), [Timer::NgapGuard]);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5]));
    acknowledge(&mut world, OTHER_GNB);
    assert_eq!(
        world.running(),
        [Timer::NgapGuard],
        "the source gNB releases nothing any longer, and the target is to answer"
    );
    let Message::PduSessionResourceSetupRequest(setup) = world.next() else { panic!("the setup") };
    assert_eq!((setup.ran_ue_ngap_id, setup.sessions[0].pdu_session_id), (AT_TARGET, 6));
    assert!(world.downlinks.is_empty(), "session 5 has its resources");
}

#[test]
fn a_repeated_request_is_ignored_and_another_gnb_supersedes_the_first() {
    let (mut world, phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    let first = request(phone.amf_id.unwrap(), &[5]);
    switch(&mut world, OTHER_GNB, &first);
    switch(&mut world, OTHER_GNB, &first);
    assert_eq!(world.calls.len(), 1);
    let back = PathSwitchRequest { ran_ue_ngap_id: RanUeNgapId(9), ..first };
    switch(&mut world, GNB, &back);
    assert_eq!(ids(&failure(&mut world, OTHER_GNB).released), [5]);
    world.reply_to(Operation::UpdateSmContext, acknowledged());
    assert!(world.downlinks.is_empty(), "the reply to the first request");
    world.reply_to(Operation::UpdateSmContext, acknowledged());
    assert_eq!(acknowledge(&mut world, GNB).ran_ue_ngap_id, RanUeNgapId(9));
}

#[test]
fn downlink_messages_wait_for_the_acknowledgement() {
    let (mut world, mut phone) = connected(&[5, 6]);
    world.script.insert(Operation::UpdateSmContext, None);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5]));
    assert!(world.request(transfer(5, Some(b"5GSM"), None)).is_ok());
    assert!(world.request(transfer(6, None, Some((NgapIe::PduResSetupReq, b"setup")))).is_ok());
    assert!(world.downlinks.is_empty(), "nothing is sent to a gNB that may not have the UE");
    // The deactivation of session 6, which the target gNB does not list, and the path switch of session 5.
    world.reply_to(Operation::UpdateSmContext, Ok(Response::NoContent));
    world.reply_to(Operation::UpdateSmContext, acknowledged());
    acknowledge(&mut world, OTHER_GNB);
    arrive(&mut phone);
    let GmmMessage::DlNasTransport(message) = phone.receive(&mut world) else { panic!("the 5GSM message") };
    assert_eq!(message.payload_container, b"5GSM");
    let Message::PduSessionResourceSetupRequest(setup) = world.next() else { panic!("the setup") };
    assert_eq!((setup.ran_ue_ngap_id, setup.sessions[0].pdu_session_id), (AT_TARGET, 6));
}

/// The gNB has no resources of such a session (TS 38.413 8.4.4.2): it would refuse the request. The UE gets its message.
#[test]
fn a_modification_that_waited_is_not_sent_for_a_session_that_is_not_switched() {
    let (mut world, phone) = connected(&[5, 6]);
    world.script.insert(Operation::UpdateSmContext, None);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5, 6]));
    for id in [5, 6] {
        let modify = transfer(id, Some(b"5GSM"), Some((NgapIe::PduResModReq, b"modify")));
        assert!(world.request(modify).is_ok());
    }
    world.reply_to(Operation::UpdateSmContext, acknowledged());
    world.reply_to(Operation::UpdateSmContext, refused(SbiCause::InsufficientResources));
    assert_eq!(ids(&acknowledge(&mut world, OTHER_GNB).released), [6]);
    let Message::PduSessionResourceModifyRequest(modify) = world.next() else { panic!("of session 5") };
    assert_eq!(modify.sessions.iter().map(|item| item.pdu_session_id).collect::<Vec<_>>(), [5]);
    let Message::DownlinkNasTransport(_) = world.next() else { panic!("the 5GSM message of session 6") };
    assert!(world.downlinks.is_empty());
}

/// As above: the UE requested the release of the session before the handover.
#[test]
fn a_release_that_waited_is_not_sent_for_a_session_that_is_not_switched() {
    let (mut world, phone) = connected(&[5, 6]);
    world.script.insert(Operation::UpdateSmContext, None);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5, 6]));
    for id in [5, 6] {
        let release = transfer(id, Some(b"5GSM"), Some((NgapIe::PduResRelCmd, b"release")));
        assert!(world.request(release).is_ok());
    }
    world.reply_to(Operation::UpdateSmContext, acknowledged());
    world.reply_to(Operation::UpdateSmContext, refused(SbiCause::InsufficientResources));
    assert_eq!(ids(&acknowledge(&mut world, OTHER_GNB).released), [6]);
    let Message::PduSessionResourceReleaseCommand(release) = world.next() else { panic!("of session 5") };
    assert_eq!(release.sessions.iter().map(|item| item.pdu_session_id).collect::<Vec<_>>(), [5]);
    let Message::DownlinkNasTransport(_) = world.next() else { panic!("the 5GSM message of session 6") };
    assert!(world.downlinks.is_empty());
}

/// It means the resources at the source gNB: after the handover it would release those at the target.
#[test]
fn a_command_to_release_resources_is_refused_during_a_handover() {
    let (mut world, phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5]));
    let command = transfer(5, None, Some((NgapIe::PduResRelCmd, b"release")));
    let refusal = world.request(command).unwrap_err();
    assert_eq!(refusal.cause(), Some(&SbiCause::TemporaryRejectHandoverOngoing));
    world.reply_to(Operation::UpdateSmContext, acknowledged());
    acknowledge(&mut world, OTHER_GNB);
    assert!(world.downlinks.is_empty());
}

#[test]
fn a_5gmm_procedure_runs_beside_the_handover() {
    let (mut world, mut phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    let update = phone.registration_request(RegistrationKind::MobilityUpdating);
    phone.send(&mut world, update);
    phone.accepted(&mut world);
    assert_eq!(world.running(), [Timer::T3550]);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5]));
    world.reply_to(Operation::UpdateSmContext, acknowledged());
    acknowledge(&mut world, OTHER_GNB);
    arrive(&mut phone);
    assert_eq!(world.running(), [Timer::T3550], "the registration goes on");
    phone.send(&mut world, gmm::RegistrationComplete::new());
    assert_eq!(world.amf.audit().in_procedure, 0);
}

#[test]
fn late_messages_of_the_source_gnb_do_not_end_the_connection() {
    let (mut world, mut phone) = connected(&[5]);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5]));
    acknowledge(&mut world, OTHER_GNB);
    world.take_ladder();
    let release = pith_ngap::UeContextReleaseRequest {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        sessions: None,
        cause: None,
    };
    world.ngap(GNB, "UeContextReleaseRequest", release.encode());
    assert_eq!(world.take_ladder(), "gnb1 -> UeContextReleaseRequest");
    world.script.remove(&Operation::UpdateSmContext);
    // The UE sent it before it left.
    phone.send(&mut world, establishment(7));
    assert!(world.take_ladder().contains("smf  <- PostSmContexts"));
    assert_eq!(world.amf.audit().connected, 1);
}

#[test]
fn late_messages_of_the_source_gnb_find_their_context_in_the_store() {
    let (mut world, mut phone, store) = stateless();
    world.script.insert(Operation::UpdateSmContext, Some(acknowledged()));
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5]));
    acknowledge(&mut world, OTHER_GNB);
    world.script.remove(&Operation::UpdateSmContext);
    assert!(has_no_copy(&world, &store));
    phone.send(&mut world, establishment(7));
    assert!(world.take_ladder().contains("smf  <- PostSmContexts"));
}

/// Seed 311836 of the world: with `stateless` the request waits for the UE's context, and UPLINK NAS TRANSPORT behind it overtook it.
#[test]
fn messages_of_the_target_gnb_wait_for_the_context_behind_the_request() {
    let (world, phone, store) = stateless();
    assert!(has_no_copy(&world, &store));
    let context = |pdu: Result<Vec<u8>, pith_ngap::EncodeError>| {
        let pdu = pdu.expect("a gNB sends what can be encoded").into();
        world.amf.context_of(&Input::N2(N2Input::Pdu {
            gnb: OTHER_GNB,
            binding: crate::kit::TnlaBinding::unbound(1),
            pdu,
        }))
    };
    let amf_ue_ngap_id = phone.amf_id.unwrap();
    let uplink = pith_ngap::UplinkNasTransport {
        amf_ue_ngap_id,
        ran_ue_ngap_id: AT_TARGET,
        nas_pdu: vec![0x7e, 0, 0x43],
        location: None,
    };
    let of_request = context(request(amf_ue_ngap_id, &[5]).encode());
    assert!(of_request.is_some());
    assert_eq!(context(uplink.encode()), of_request);
}

#[test]
fn a_session_that_was_being_set_up_has_failed() {
    let (mut world, mut phone) = connected(&[5]);
    world.script.remove(&Operation::UpdateSmContext);
    phone.send(&mut world, establishment(6));
    assert!(world.request(transfer(6, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")))).is_ok());
    world.script.insert(Operation::UpdateSmContext, None);
    world.downlinks.clear();
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5]));
    let kinds: Vec<_> = world
        .calls
        .iter()
        .filter_map(|(_, _, request)| match request {
            Request::UpdateSmContext(update) => update.body.n2_sm_info_type.clone(),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, [N2SmInfoType::PduResSetupFail, N2SmInfoType::PathSwitchReq]);
}

#[test]
fn an_an_release_while_paths_are_switched_ends_the_handover() {
    let (mut world, mut phone) = connected(&[5]);
    world.script.insert(Operation::UpdateSmContext, None);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5]));
    arrive(&mut phone);
    phone.release(&mut world);
    assert_eq!((world.amf.audit().connected, world.amf.audit().in_procedure), (0, 0));
}

/// TS 38.413 8.4.4.4: which of two tunnels the session has is not known.
#[test]
fn a_path_switch_request_that_names_a_session_twice_is_refused_and_changes_nothing() {
    for (sessions, failed) in [(&[5, 5][..], &[][..]), (&[5, 6, 5], &[]), (&[5], &[6, 5]), (&[5], &[6, 6])] {
        let (mut world, mut phone) = connected(&[5, 6]);
        let id = phone.amf_id.unwrap();
        let request = PathSwitchRequest {
            failed: (!failed.is_empty()).then(|| transfers(failed)),
            ..request(id, sessions)
        };
        switch(&mut world, OTHER_GNB, &request);
        let failure = failure(&mut world, OTHER_GNB);
        let listed: std::collections::BTreeSet<u8> = sessions.iter().copied().collect();
        assert_eq!(ids(&failure.released), listed.into_iter().collect::<Vec<_>>(), "each once");
        let refusal = &failure.released.unwrap()[0].transfer;
        let cause = pith_ngap::CauseRadioNetwork::multiple_PDU_session_ID_instances;
        let refusal = PathSwitchRequestUnsuccessfulTransfer::decode(refusal).unwrap();
        assert_eq!(refusal.cause, pith_ngap::Cause::RadioNetwork(cause));
        assert!(!world.take_ladder().contains("smf"), "the UE's sessions are as before");
        // The UE is at its gNB.
        phone.release(&mut world);
        assert_eq!(world.amf.audit().connected, 0);
    }
}

/// The UE has left the area of a LADN: the SMF's command to release its resources waits for the acknowledge, after which the session stays one that is
/// being released.
#[test]
fn a_session_that_is_released_during_the_path_switch_is_released_once() {
    let (mut world, mut phone) = connected(&[5, 6]);
    world.script.insert(Operation::UpdateSmContext, None);
    switch(&mut world, OTHER_GNB, &request(phone.amf_id.unwrap(), &[5, 6]));
    let release = transfer(5, Some(b"5GSM"), Some((NgapIeType::PduResRelCmd, b"release")));
    world.request(release).unwrap();
    for _ in [5, 6] {
        world.reply_to(Operation::UpdateSmContext, acknowledged());
    }
    acknowledge(&mut world, OTHER_GNB);
    let command = world.downlinks.pop_front();
    assert!(matches!(command, Some((_, Message::PduSessionResourceReleaseCommand(_)))), "{command:?}");
    arrive(&mut phone);
    world.calls.clear();
    super::pdu_session::release_response(&mut world, &phone);
    assert_eq!(super::pdu_session::reported(&mut world), [N2SmInfoType::PduResRelRsp]);
    super::pdu_session::status_notify(&mut world, 5).unwrap();
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
}
