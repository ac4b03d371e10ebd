//! Paging, and the messages queued for it (TS 24.501 5.6.2; TS 23.502 4.2.3.3).

use super::world::{NgapIe, Phone, World, transfer};
use crate::kit::Timer;
use pith_nas::GmmMessage;
use pith_nas::gmm::ConfigurationUpdateComplete;
use pith_nas::ie::{MobileIdentity, ServiceType};
use pith_ngap::Message;
use pith_sbi::namf_communication::N1N2MessageTransferCause;
use pith_sbi::{Cause, Operation, Request, Response};

fn idle() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    phone.release(&mut world);
    world.take_ladder();
    (world, phone)
}

/// An SMF has data for the UE.
pub(super) fn data(world: &mut World) {
    let reply = world.request(transfer(5, None, Some((NgapIe::PduResSetupReq, b"setup"))));
    assert!(matches!(reply, Ok(Response::N1N2MessageTransferAccepted(_))), "{reply:?}");
}

#[test]
fn repeated_data_notifications_cause_one_setup() {
    let (mut world, mut phone) = idle();
    data(&mut world);
    world.downlinks.clear();
    comes(&mut world, &mut phone);
    phone.receive(&mut world);
    let again = |world: &mut World| {
        let reply = world.request(transfer(5, None, Some((NgapIe::PduResSetupReq, b"setup"))));
        assert!(reply.is_ok());
        let ladder = world.take_ladder();
        assert!(!ladder.contains("PduSessionResource"), "{ladder}");
    };
    again(&mut world);
    world.script.insert(Operation::UpdateSmContext, None);
    phone.context_setup_response(&mut world, &[5]);
    again(&mut world);
}

#[test]
fn a_phone_is_paged_and_gets_its_user_plane_with_the_answer() {
    let (mut world, mut phone) = idle();
    data(&mut world);
    let (Message::Paging(paging), Message::Paging(_)) = (world.next(), world.next()) else { panic!() };
    assert_eq!(paging.s_tmsi, phone.guti.unwrap().s_tmsi());
    comes(&mut world, &mut phone);
    let Message::InitialContextSetupRequest(setup) = world.downlinks[0].1.clone() else { panic!() };
    assert_eq!(setup.sessions.unwrap()[0].transfer, b"setup");
    assert!(matches!(phone.receive(&mut world), GmmMessage::ServiceAccept(_)));
    assert_eq!(
        world.take_ladder(),
        "\
nf   -> N1N2MessageTransfer
gnb1 <- Paging
gnb2 <- Paging
nf   <- 202
gnb1 -> InitialUeMessage
gnb1 <- InitialContextSetupRequest
gnb1 <- DownlinkNasTransport"
    );
    // The 5G-GUTI that was sent in clear in paging is replaced.
    let GmmMessage::ConfigurationUpdateCommand(command) = phone.receive(&mut world) else { panic!() };
    let Some(MobileIdentity::FiveGGuti(guti)) = command.guti else { panic!() };
    assert_ne!(Some(guti), phone.guti);
    phone.send(&mut world, ConfigurationUpdateComplete::new());
    assert_eq!((world.amf.audit().tmsis, world.amf.audit().in_procedure), (1, 0));
}

#[test]
fn t3555_retransmits_the_new_guti_and_then_both_stay_valid() {
    let (mut world, mut phone) = idle();
    data(&mut world);
    world.downlinks.clear();
    comes(&mut world, &mut phone);
    phone.receive(&mut world);
    phone.receive(&mut world);
    for _ in 0..4 {
        world.expire(Timer::T3555);
        assert!(matches!(phone.receive(&mut world), GmmMessage::ConfigurationUpdateCommand(_)));
    }
    world.expire(Timer::T3555);
    assert_eq!((world.amf.audit().tmsis, world.amf.audit().in_procedure), (2, 0));
}

#[test]
fn a_phone_with_an_unconfirmed_guti_is_paged_by_both() {
    let (mut world, mut phone) = idle();
    data(&mut world);
    world.downlinks.clear();
    comes(&mut world, &mut phone);
    phone.receive(&mut world);
    phone.release(&mut world);
    world.downlinks.clear();
    data(&mut world);
    let pages: Vec<_> = std::iter::from_fn(|| world.downlinks.pop_front())
        .map(|(gnb, message)| match message {
            Message::Paging(paging) => (gnb, paging.s_tmsi),
            other => panic!("{}", other.name()),
        })
        .collect();
    let by_old = pages.iter().filter(|(_, s_tmsi)| *s_tmsi == phone.guti.unwrap().s_tmsi()).count();
    assert_eq!((pages.len(), by_old), (4, 2), "two gNBs, two identities: {pages:?}");
}

#[test]
fn t3513_repeats_paging_and_then_the_smf_is_notified() {
    let (mut world, _) = idle();
    data(&mut world);
    world.script.insert(Operation::N1N2TransferFailureNotification, None);
    for _ in 0..4 {
        world.downlinks.clear();
        world.expire(Timer::T3513);
        assert_eq!(world.downlinks.len(), 2);
    }
    world.expire(Timer::T3513);
    let Request::N1N2TransferFailureNotification(failure) =
        world.open_call(Operation::N1N2TransferFailureNotification)
    else {
        panic!()
    };
    assert_eq!(failure.body.cause.as_str(), "UE_NOT_RESPONDING");
    assert_eq!(&*failure.uri.path, "/nsmf-callback/v1/n1n2-failure/5");
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.undelivered, audit.in_procedure), (1, 0, 0));
}

#[test]
fn a_second_message_does_not_page_again() {
    let (mut world, _) = idle();
    data(&mut world);
    world.downlinks.clear();
    world.request(transfer(5, Some(b"modify"), None)).unwrap();
    assert!(world.downlinks.is_empty());
    assert_eq!(world.amf.audit().undelivered, 2);
}

#[test]
fn messages_queued_for_a_ue_that_is_paged_are_bounded() {
    let (mut world, _) = idle();
    let large = [b'x'; 40_000];
    assert!(world.request(transfer(5, Some(&large), None)).is_ok());
    let other = [b'y'; 40_000];
    let Err(refusal) = world.request(transfer(5, Some(&other), None)) else { panic!("too many octets") };
    assert_eq!(refusal.cause(), Some(&Cause::NfCongestion));
    let accepted = (0..100).filter(|number| world.request(transfer(5, Some(&[*number]), None)).is_ok());
    assert_eq!((accepted.count(), world.amf.audit().undelivered), (23, 24));
}

#[test]
fn a_command_that_the_smf_retransmits_meanwhile_is_sent_once() {
    let (mut world, mut phone) = idle();
    for _ in 0..2 {
        world.request(transfer(5, Some(b"release"), None)).unwrap();
    }
    assert_eq!(world.amf.audit().undelivered, 1);
    it_comes_for(&mut world, &mut phone, b"release");
}

/// The paged UE responds.
pub(super) fn comes(world: &mut World, phone: &mut Phone) {
    let request = phone.service_request(ServiceType::MobileTerminatedServices);
    let nas = phone.initial_nas(request);
    phone.connect(world, nas);
}

/// The paged UE responds, and gets the queued message.
fn it_comes_for(world: &mut World, phone: &mut Phone, message: &[u8]) {
    world.downlinks.clear();
    comes(world, phone);
    assert!(matches!(phone.receive(world), GmmMessage::ServiceAccept(_)));
    let GmmMessage::DlNasTransport(transport) = phone.receive(world) else { panic!() };
    assert_eq!(&transport.payload_container[..], message);
}

#[test]
fn a_nas_message_is_queued_for_the_phone() {
    let (mut world, mut phone) = idle();
    world.request(transfer(5, Some(b"modify"), None)).unwrap();
    it_comes_for(&mut world, &mut phone, b"modify");
}

/// The SMF's command crosses the UE's release of the session, which its answer shows (TS 24.501 5.6.1.4.1).
#[test]
fn a_queued_message_of_a_session_that_the_phone_does_not_have_is_dropped() {
    let (mut world, mut phone) = idle();
    world.request(transfer(5, Some(b"modify"), None)).unwrap();
    world.downlinks.clear();
    let mut request = phone.service_request(ServiceType::MobileTerminatedServices);
    request.pdu_session_status = Some([6].into_iter().collect());
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    assert!(matches!(phone.receive(&mut world), GmmMessage::ServiceAccept(_)));
    let new_guti = phone.receive(&mut world);
    assert!(matches!(new_guti, GmmMessage::ConfigurationUpdateCommand(_)), "{new_guti:?}");
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
}

#[test]
fn a_message_with_skip_indication_is_not_transferred() {
    let (mut world, _) = idle();
    let mut request = transfer(5, Some(b"modify"), None);
    request.body.skip_ind = Some(true);
    let Ok(Response::N1N2MessageTransferInitiated(answer)) = world.request(request) else { panic!() };
    assert_eq!(answer.cause, N1N2MessageTransferCause::N1MsgNotTransferred);
    assert!(world.downlinks.is_empty());
    assert_eq!(world.amf.audit().undelivered, 0);
}

#[test]
fn messages_for_resources_of_an_idle_phone_are_refused() {
    for kind in [NgapIe::PduResModReq, NgapIe::PduResRelCmd] {
        for skip in [None, Some(true)] {
            let (mut world, _) = idle();
            let mut request = transfer(5, None, Some((kind.clone(), b"tunnel")));
            request.body.skip_ind = skip;
            let refused = world.request(request).unwrap_err();
            assert!(refused.is(&Cause::UeInCmIdleState) && refused.status == 409, "{refused}");
            assert!(world.downlinks.is_empty(), "nobody is paged");
            assert_eq!(world.amf.audit().undelivered, 0);
        }
    }
}

/// A setup without downlink data, such as one that the gNB refused because of a handover.
#[test]
fn a_setup_with_skip_indication_does_not_page() {
    let (mut world, _) = idle();
    let mut request = transfer(5, None, Some((NgapIe::PduResSetupReq, b"tunnel")));
    request.body.skip_ind = Some(true);
    assert!(world.request(request.clone()).unwrap_err().is(&Cause::UeInCmIdleState));
    assert!(world.downlinks.is_empty(), "the phone is not paged");
    assert_eq!(world.amf.audit().undelivered, 0);
    request.body.skip_ind = None;
    world.request(request).unwrap();
    assert!(!world.downlinks.is_empty(), "downlink data");
}

#[test]
fn a_command_that_comes_with_a_modification_of_resources_reaches_the_phone_alone() {
    let (mut world, mut phone) = idle();
    world.request(transfer(5, Some(b"modify"), Some((NgapIe::PduResModReq, b"tunnel")))).unwrap();
    assert!(!world.downlinks.is_empty(), "it is paged for the command");
    it_comes_for(&mut world, &mut phone, b"modify");
}

#[test]
fn a_message_for_an_unknown_ue_is_refused() {
    let (mut world, _) = idle();
    let mut unknown = transfer(5, Some(b"x"), None);
    unknown.ue_context_id = "imsi-999700000000002".parse().unwrap();
    assert_eq!(world.request(unknown).unwrap_err().status, 404);
    assert_eq!(world.request(transfer(6, Some(b"x"), None)).unwrap_err().status, 404);
    assert_eq!(world.request(transfer(5, None, None)).unwrap_err().status, 400);
}

#[test]
fn a_message_during_connection_release_causes_paging_afterwards() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    let message = pith_ngap::UeContextReleaseRequest {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        sessions: None,
        cause: None,
    };
    world.ngap(phone.gnb, "UeContextReleaseRequest", message.encode());
    data(&mut world);
    world.take_ladder();
    phone.released(&mut world);
    assert!(world.take_ladder().contains("gnb1 <- Paging"));
}

#[test]
fn deregistration_drops_queued_messages() {
    let (mut world, mut phone) = idle();
    data(&mut world);
    world.downlinks.clear();
    let request = phone.deregistration_request(true);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    assert!(world.take_ladder().contains("N1N2TransferFailureNotification"));
    phone.released(&mut world);
    world.assert_empty();
}
