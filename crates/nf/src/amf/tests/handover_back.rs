//! A UE that is handed over to another AMF and back, without registering in between (TS 23.502 4.9.1.3). It is in the registration area that it got
//! from the first AMF, so that it does not register by itself; and that AMF has ended the context with the 5G-GUTI that the UE holds.

use super::handover_between_amfs::{Amfs, deliver, take_call, take_message};
use super::n2_handover::{answer, gnb_target, required};
use super::paging::data;
use super::world::*;
use super::xn_handover;
use crate::kit::{GnbHandle, Timer};
use pith_nas::GmmMessage;
use pith_nas::gmm::{ConfigurationUpdateComplete, RegistrationComplete};
use pith_nas::ie::{RegistrationKind, ServiceType};
use pith_ngap::{
    Cause, CauseNas, CauseRadioNetwork, HandoverNotify, HandoverRequestAcknowledge, HandoverRequired,
    Message, UeContextReleaseRequest,
};
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use pith_sbi::{Operation, Response};
use pith_types::{AmfUeNgapId, RanUeNgapId};

/// The gNB of the first AMF to which the UE returns.
const THIRD_GNB: GnbHandle = GnbHandle(3);

/// RAN-UE-NGAP-ID at that gNB.
const AT_THIRD: RanUeNgapId = RanUeNgapId(91);

fn acknowledge(world: &mut World, id: AmfUeNgapId) {
    let message = HandoverRequestAcknowledge {
        amf_ue_ngap_id: id,
        ran_ue_ngap_id: AT_THIRD,
        admitted: Some(transfers(&[5])),
        failed: None,
        target_to_source: b"to source".to_vec(),
        diagnostics: None,
    };
    world.ngap(THIRD_GNB, "HandoverRequestAcknowledge", message.encode());
}

/// The first AMF, to which the UE has returned.
fn returned() -> (World, Phone) {
    let mut amfs = Amfs::new(&[5]);
    amfs.completed(&[5]);
    let Amfs { source: mut world, target: mut other, mut phone, .. } = amfs;
    world.set_up_gnb(THIRD_GNB, World::gnb_info(THIRD_GNB), false);
    let message = HandoverRequired { target: gnb_target(3), ..required(&phone, &[5]) };
    other.ngap(OTHER_GNB, "HandoverRequired", message.encode());
    let (tag, creation) = take_call(&mut other, Operation::CreateUeContext);
    deliver(&mut world, creation);
    answer(&mut world, Some(N2SmInfoType::PduResSetupReq));
    let id = take_message!(world, THIRD_GNB, HandoverRequest).amf_ue_ngap_id;
    acknowledge(&mut world, id);
    answer(&mut world, Some(N2SmInfoType::HandoverCmd));
    other.reply(tag, world.answers.pop().expect("the first AMF answers"));
    let _ = take_message!(other, OTHER_GNB, HandoverCommand);
    let message = HandoverNotify { amf_ue_ngap_id: id, ran_ue_ngap_id: AT_THIRD, location: Some(location()) };
    world.ngap(THIRD_GNB, "HandoverNotify", message.encode());
    let (_, notification) = take_call(&mut world, Operation::N2InfoNotify);
    assert_eq!(other.request(notification), Ok(Response::NoContent));
    answer(&mut world, None);
    world.script.remove(&Operation::UpdateSmContext);
    (phone.gnb, phone.ran_id, phone.amf_id) = (THIRD_GNB, AT_THIRD, Some(id));
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.tmsis), (1, 1, 0), "it has no 5G-GUTI");
    (world, phone)
}

pub(super) fn request_release(world: &mut World, phone: &Phone, cause: CauseRadioNetwork) {
    let message = UeContextReleaseRequest {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        sessions: None,
        cause: Some(Cause::RadioNetwork(cause)),
    };
    world.ngap(phone.gnb, "UeContextReleaseRequest", message.encode());
}

/// Its gNB has requested the release of the UE, which has got a 5G-GUTI.
fn offered_guti() -> (World, Phone) {
    let (mut world, mut phone) = returned();
    request_release(&mut world, &phone, CauseRadioNetwork::user_inactivity);
    phone.take_guti(&mut world);
    (world, phone)
}

/// The UE is in CM-IDLE. When data arrive, it is paged with the 5G-GUTI that it holds.
fn assert_paged(world: &mut World, phone: &Phone) {
    assert_eq!((world.amf.audit().registered, world.amf.audit().connected), (1, 0));
    data(world);
    let s_tmsi = |(_, message): (GnbHandle, Message)| match message {
        Message::Paging(paging) => Some(paging.s_tmsi),
        _ => None,
    };
    let paged: Vec<_> = world.downlinks.drain(..).filter_map(s_tmsi).collect();
    assert_eq!(paged, [phone.guti.unwrap().s_tmsi(); 2], "over both gNBs");
}

#[test]
fn an_inactive_ue_gets_a_5g_guti_before_it_is_released() {
    let (mut world, mut phone) = returned();
    request_release(&mut world, &phone, CauseRadioNetwork::user_inactivity);
    let command = phone.take_guti(&mut world);
    assert!(command.indication.unwrap().registration_requested);
    assert!(world.downlinks.is_empty(), "it answers first: {:?}", world.downlinks);
    phone.send(&mut world, ConfigurationUpdateComplete::new());
    assert_eq!(phone.released(&mut world), Cause::Nas(CauseNas::normal_release));
    assert_paged(&mut world, &phone);
}

#[test]
fn an_inactive_ue_that_does_not_answer_is_released() {
    let (mut world, mut phone) = offered_guti();
    world.expire(Timer::T3555);
    assert_eq!(phone.released(&mut world), Cause::RadioNetwork(CauseRadioNetwork::user_inactivity));
    assert!(!world.running().contains(&Timer::T3555));
    assert_paged(&mut world, &phone);
}

/// Its gNB requests the release again.
#[test]
fn a_ue_that_requests_service_before_it_answers_is_not_released() {
    let (mut world, mut phone) = offered_guti();
    let request = phone.service_request(ServiceType::Signalling);
    phone.send(&mut world, request);
    let message = phone.receive(&mut world);
    assert!(matches!(message, GmmMessage::ServiceAccept(_)), "{message:?}");
    world.expire(Timer::T3555);
    let message = phone.receive(&mut world);
    assert!(matches!(message, GmmMessage::ConfigurationUpdateCommand(_)), "{message:?}");
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    request_release(&mut world, &phone, CauseRadioNetwork::user_inactivity);
    phone.released(&mut world);
}

/// The command is lost in the handover. The other gNB requests the release if the UE is inactive there.
#[test]
fn a_ue_that_moves_before_it_answers_is_not_released() {
    let (mut world, mut phone) = offered_guti();
    world.script.insert(Operation::UpdateSmContext, Some(xn_handover::acknowledged()));
    xn_handover::switch(&mut world, GNB, &xn_handover::request(phone.amf_id.unwrap(), &[5]));
    xn_handover::acknowledge(&mut world, GNB);
    phone.gnb = GNB;
    world.expire(Timer::T3555);
    let message = phone.receive(&mut world);
    assert!(matches!(message, GmmMessage::ConfigurationUpdateCommand(_)), "{message:?}");
    assert!(world.running().contains(&Timer::T3555));
}

#[test]
fn a_ue_with_its_new_5g_guti_registers_with_its_session() {
    let (mut world, mut phone) = offered_guti();
    phone.send(&mut world, ConfigurationUpdateComplete::new());
    phone.released(&mut world);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    phone.accepted(&mut world);
    phone.send(&mut world, RegistrationComplete::new());
    let audit = world.amf.audit();
    assert_eq!((audit.contexts, audit.registered, audit.sessions, audit.tmsis), (1, 1, 1, 1));
}

/// It may have got the command: the release does not wait for its answer.
#[test]
fn a_ue_that_is_released_at_once_is_paged_with_its_new_5g_guti() {
    use CauseRadioNetwork::{release_due_to_ngran_generated_reason, user_inactivity};
    for causes in [&[release_due_to_ngran_generated_reason][..], &[user_inactivity; 2][..]] {
        let (mut world, mut phone) = returned();
        causes.iter().for_each(|cause| request_release(&mut world, &phone, *cause));
        phone.take_guti(&mut world);
        phone.released(&mut world);
        assert_paged(&mut world, &phone);
    }
}

/// It registers by itself (TS 24.501 5.5.1.3.2 f).
#[test]
fn a_ue_that_has_lost_its_radio_connection_gets_no_command() {
    let (mut world, mut phone) = returned();
    request_release(&mut world, &phone, CauseRadioNetwork::radio_connection_with_ue_lost);
    phone.released(&mut world);
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    assert!(world.running().contains(&Timer::ImplicitDeregistration));
}
