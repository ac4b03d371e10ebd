//! UE contexts that outlive the process.

use super::deregistration::comes_back;
use super::outdated;
use super::paging::{comes, data};
use super::pdu_session::status_notify;
use super::world::{Phone, World, config, establishment, supi, transfer};
use crate::amf::{Amf, AmfConfig};
use crate::kit::{Deregister, N2Effect, NetworkFunction, Rng, StoreScope, Timer, Tracking};
use crate::testing::Stored;
use pith_nas::GmmMessage;
use pith_nas::gmm::ConfigurationUpdateComplete;
use pith_nas::ie::{MobileIdentity, RegistrationKind, ServiceType};
use pith_ngap::Message;
use pith_sbi::Operation;
use pith_sbi::namf_communication::NgapIeType;
use pith_types::ContextId;
use std::collections::BTreeSet;

fn tracked(reserved: u32) -> World {
    let mut world = World::new();
    world.amf.track_contexts(Tracking { reserved_counts: reserved, ..Tracking::default() });
    world
}

/// The process ends, and the next one has what was stored.
pub(super) fn restart(world: &mut World, stored: &Stored, (run, reserved): (u64, u32), is_stale: bool) {
    let mut amf = Amf::new(config(), Rng::from_number(1 + run));
    amf.reload_contexts();
    amf.track_contexts(Tracking { reserved_counts: reserved, ..Tracking::default() });
    stored.restore(world.now, &mut amf, is_stale);
    world.replace_amf(amf);
}

pub(super) fn registered(reserved: u32) -> (World, Phone, Stored) {
    registered_in(tracked(reserved))
}

/// As [`registered`], at an AMF that keeps no connection after a restart.
fn registered_without_retention(reserved: u32) -> (World, Phone, Stored) {
    let mut world = World::with(AmfConfig { retains_ues: false, ..config() });
    world.amf.track_contexts(Tracking { reserved_counts: reserved, ..Tracking::default() });
    registered_in(world)
}

fn registered_in(mut world: World) -> (World, Phone, Stored) {
    let (mut phone, mut stored) = (Phone::default(), Stored::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    stored.store(&mut world.amf, StoreScope::Changed);
    world.take_ladder();
    (world, phone, stored)
}

/// As [`restart`], with an AMF that keeps no connection.
fn restart_without_retention(world: &mut World, stored: &Stored) {
    let mut amf = Amf::new(AmfConfig { retains_ues: false, ..config() }, Rng::from_number(2));
    amf.reload_contexts();
    amf.track_contexts(Tracking { reserved_counts: 16, ..Tracking::default() });
    stored.restore(world.now, &mut amf, false);
    world.replace_amf(amf);
}

pub(super) fn request_service(world: &mut World, phone: &mut Phone) -> GmmMessage {
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    let nas = phone.initial_nas(request);
    phone.connect(world, nas);
    phone.receive(world)
}

#[test]
fn a_registered_phone_gets_service_from_the_next_process() {
    let (mut world, mut phone, stored) = registered(0);
    restart(&mut world, &stored, (1, 0), false);
    assert_eq!(world.take_ladder(), "", "its gNB may have retained it");
    world.connect_gnbs();
    assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext", "its user plane ends");
    assert!(world.running().contains(&Timer::MobileReachable));
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.sessions, audit.dangling), (1, 0, 1, 0));
    let GmmMessage::ServiceAccept(accept) = request_service(&mut world, &mut phone) else { panic!() };
    assert!(accept.pdu_session_status.unwrap().contains(5) && accept.reactivation_result.unwrap().is_empty());
    phone.context_setup_response(&mut world, &[5]);
    assert_eq!(
        world.take_ladder(),
        "\
gnb1 -> InitialUeMessage
smf  <- UpdateSmContext
gnb1 <- InitialContextSetupRequest
gnb1 -> InitialContextSetupResponse
smf  <- UpdateSmContext"
    );
}

#[test]
fn nothing_of_an_unauthenticated_phone_is_stored() {
    let (mut world, mut phone, mut stored) = (tracked(0), Phone::default(), Stored::default());
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 0);
    phone.authenticate(&mut world, request);
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 1, "when REGISTRATION ACCEPT is sent");
}

#[test]
fn an_unchanged_context_is_not_written_again() {
    let (mut world, _, mut stored) = registered(0);
    assert_eq!(stored.writes, 1, "one document for the turn");
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 1);
}

#[test]
fn a_context_that_ends_is_deleted_before_the_sends_of_the_turn() {
    let (mut world, mut phone, mut stored) = registered(16);
    let request = phone.deregistration_request(true);
    phone.send(&mut world, request);
    stored.store(&mut world.amf, StoreScope::Required);
    assert!(stored.documents.is_empty());
}

#[test]
fn a_registration_that_the_network_ends_does_not_return() {
    let (mut world, _, mut stored) = registered(0);
    world.operate(supi(), Deregister::Anew);
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.documents.len(), 1, "it waits for the UE, and has resources at other NFs");
    restart(&mut world, &stored, (1, 0), false);
    assert!(world.take_ladder().contains("ReleaseSmContext"), "the resources are released");
    world.expire(Timer::AbsentGnbs);
    world.assert_empty();
}

/// A UE that has deregistered, stored.
fn deregistered() -> (World, Phone, Stored) {
    let (mut world, mut phone, mut stored) = registered(16);
    let request = phone.deregistration_request(false);
    phone.send(&mut world, request);
    phone.receive(&mut world);
    phone.released(&mut world);
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.documents.len(), 1, "its security context");
    (world, phone, stored)
}

#[test]
fn a_deregistered_phone_needs_no_authentication_after_a_restart() {
    let (mut world, mut phone, mut stored) = deregistered();
    restart(&mut world, &stored, (1, 16), false);
    world.connect_gnbs();
    world.take_ladder();
    assert_eq!(world.amf.audit().retained, 1);
    let last = phone.security.as_ref().unwrap().last_received().unwrap();
    comes_back(&mut world, &mut phone);
    stored.store(&mut world.amf, StoreScope::Required);
    assert!(stored.documents.is_empty(), "before a message with one of its COUNTs leaves");
    let ladder = world.take_ladder();
    assert!(!ladder.contains("ausf") && ladder.contains("udm  <- ThreeGppRegistration"), "{ladder}");
    phone.accepted(&mut world);
    let next = phone.security.as_ref().unwrap().last_received().unwrap();
    assert!(next.value() > last.value() + 16, "those before may have been used");
}

/// The end of its document can't be stored: a message with one of its COUNTs would be followed by another one with that COUNT after a restart.
#[test]
fn no_count_of_a_deregistered_phone_is_used_while_nothing_is_stored() {
    let (mut world, mut phone, stored) = deregistered();
    restart(&mut world, &stored, (1, 16), false);
    world.connect_gnbs();
    world.amf.accept_new_contexts(false);
    let last = phone.security.as_ref().unwrap().last_received();
    comes_back(&mut world, &mut phone);
    assert!(matches!(phone.receive(&mut world), GmmMessage::RegistrationReject(_)));
    assert_eq!(phone.security.as_ref().unwrap().last_received(), last, "without protection");
    phone.released(&mut world);
    assert_eq!(world.amf.audit().retained, 1);
    world.amf.accept_new_contexts(true);
    comes_back(&mut world, &mut phone);
    phone.accepted(&mut world);
}

/// The store fails at the end of the turn: whether the NAS messages of the turn are withheld.
fn are_withheld(world: &mut World, mut stored: Stored) -> Vec<bool> {
    let mut ids: BTreeSet<ContextId> = stored.documents.keys().copied().collect();
    stored.store(&mut world.amf, StoreScope::Changed);
    ids.extend(stored.documents.keys());
    ids.into_iter().for_each(|id| world.amf.store_failed(id));
    world.amf.accept_new_contexts(false);
    let messages = std::mem::take(&mut world.downlinks).into_iter();
    let nas = messages.filter(|(_, message)| !matches!(message, Message::UeContextReleaseCommand(_)));
    nas.map(|(gnb, message)| {
        let pdu = message.encode().unwrap().into();
        world.amf.withholds(&N2Effect::Send { gnb, binding: world.arrival, pdu })
    })
    .collect()
}

/// The instances of a set may restore a UE from the same document, one after the other.
#[test]
fn no_message_of_a_context_that_ends_has_a_count_that_no_document_reserves() {
    for is_answered in [true, false] {
        let (mut world, mut phone, stored) = registered_without_retention(16);
        restart_without_retention(&mut world, &stored);
        if !is_answered {
            world.script.insert(Operation::DeleteAmPolicyAssociation, None);
        }
        world.connect_gnbs();
        let request = phone.deregistration_request(false);
        let nas = phone.initial_nas(request);
        phone.connect(&mut world, nas);
        assert_eq!(are_withheld(&mut world, stored), [true], "DEREGISTRATION ACCEPT");
    }
}

#[test]
fn no_message_of_a_phone_that_returns_has_a_count_that_no_document_reserves() {
    let (mut world, mut phone, stored) = deregistered();
    restart(&mut world, &stored, (1, 16), false);
    world.connect_gnbs();
    comes_back(&mut world, &mut phone);
    assert_eq!(
        are_withheld(&mut world, stored),
        [true],
        "the document of its security context is not deleted"
    );
}

#[test]
fn counts_that_a_document_reserves_are_used_while_nothing_is_stored() {
    let (mut world, mut phone, stored) = registered(16);
    let request = phone.deregistration_request(false);
    phone.send(&mut world, request);
    assert_eq!(are_withheld(&mut world, stored), [false]);
    let (mut world, mut phone, stored) = deregistered();
    comes_back(&mut world, &mut phone);
    assert_eq!(are_withheld(&mut world, stored), [false]);
}

#[test]
fn a_deregistered_phone_whose_document_may_be_outdated_is_authenticated_again() {
    let (mut world, mut phone, mut stored) = deregistered();
    restart(&mut world, &stored, (1, 16), true);
    world.connect_gnbs();
    assert_eq!(world.amf.audit().retained, 0);
    comes_back(&mut world, &mut phone);
    assert!(matches!(phone.receive(&mut world), GmmMessage::IdentityRequest(_)));
    stored.store(&mut world.amf, StoreScope::Required);
    assert!(stored.documents.is_empty());
}

#[test]
fn a_retained_security_context_that_is_too_old_does_not_return() {
    let (mut world, _, mut stored) = deregistered();
    world.now = world.now + config().retention.time;
    restart(&mut world, &stored, (1, 16), false);
    assert_eq!(world.amf.audit().retained, 0);
    stored.store(&mut world.amf, StoreScope::Required);
    assert!(stored.documents.is_empty());
}

#[test]
fn in_a_transaction_the_former_document_stays() {
    let (mut world, mut phone, mut stored) = registered_without_retention(0);
    world.script.insert(Operation::UpdateSmContext, None);
    phone.release(&mut world);
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 1, "the SMF has not answered");
    world.reply_to(Operation::UpdateSmContext, Ok(pith_sbi::Response::NoContent));
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 2);
}

/// The document of the transaction before is lost, too. With one document for all NFs of a UE another NF's write would leave the AMF none.
#[test]
fn after_a_loss_of_the_store_a_ue_is_stored_in_a_transaction_too() {
    let (mut world, mut phone, mut stored) = registered_without_retention(16);
    world.script.insert(Operation::UpdateSmContext, None);
    phone.release(&mut world);
    let before = std::mem::take(&mut stored.documents);
    world.amf.store_all_contexts();
    stored.store(&mut world.amf, StoreScope::Changed);
    assert!(stored.documents.keys().eq(before.keys()), "the SMF has not answered");
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 2, "once");
    restart_without_retention(&mut world, &stored);
    assert_eq!(world.amf.audit().registered, 1);
}

/// The gNB gets a session while another one is being created: the next process has its user plane deactivated.
#[test]
fn a_user_plane_that_is_set_up_is_stored_in_a_transaction_too() {
    let (mut world, mut phone, mut stored) = registered(16);
    phone.send(&mut world, establishment(6));
    world.script.insert(Operation::PostSmContexts, None);
    phone.send(&mut world, establishment(7));
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 1, "the SMF has not answered");
    let setup = transfer(6, Some(b"accept"), Some((NgapIeType::PduResSetupReq, b"setup")));
    assert!(world.request(setup).is_ok());
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 2);
    world.take_ladder();
    restart(&mut world, &stored, (1, 16), false);
    world.connect_gnbs();
    assert_eq!(world.take_ladder().matches("UpdateSmContext").count(), 2, "of sessions 5 and 6");
}

/// The SMF has got the answer, and does not notify the AMF again: the next process would keep the session, and the UE would not learn its end.
#[test]
fn a_session_that_its_smf_has_ended_does_not_return_although_another_one_is_in_a_transaction() {
    let (mut world, mut phone, mut stored) = registered_without_retention(16);
    phone.establish(&mut world, 6);
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 2);
    world.script.insert(Operation::UpdateSmContext, None);
    phone.release(&mut world);
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 2, "the SMFs have not answered");
    status_notify(&mut world, 5).unwrap();
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 3, "that of session 6 has not answered");
    world.script.clear();
    restart(&mut world, &stored, (1, 16), false);
    world.connect_gnbs();
    assert_eq!(world.amf.audit().sessions, 1);
    let GmmMessage::ServiceAccept(accept) = request_service(&mut world, &mut phone) else { panic!() };
    let status = accept.pdu_session_status.unwrap();
    assert!(status.contains(6) && !status.contains(5));
}

/// With `procedural` the gNB has answered when the UE is stored; that the SMF of another session has not does not matter.
#[test]
fn a_session_that_is_set_up_is_stored_after_its_procedure_although_another_one_is_in_a_transaction() {
    let mut world = World::new();
    let tracking = Tracking { reserved_counts: 16, by_procedure: true, ..Tracking::default() };
    world.amf.track_contexts(tracking);
    let (mut world, mut phone, mut stored) = registered_in(world);
    phone.send(&mut world, establishment(6));
    world.script.insert(Operation::PostSmContexts, None);
    phone.send(&mut world, establishment(7));
    let setup = transfer(6, Some(b"accept"), Some((NgapIeType::PduResSetupReq, b"setup")));
    assert!(world.request(setup).is_ok());
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 1, "the gNB has not answered");
    world.script.insert(Operation::UpdateSmContext, None);
    phone.session_setup_response(&mut world, 6);
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 2, "the SMFs have not answered");
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 2, "once");
    restart(&mut world, &stored, (1, 16), false);
    assert_eq!(world.amf.audit().sessions, 2);
}

/// The SMF has not answered the release of the connection when the phone is paged, and gets a new 5G-GUTI.
#[test]
fn a_new_guti_is_stored_in_a_transaction_too() {
    let (mut world, mut phone, mut stored) = registered_without_retention(16);
    world.script.insert(Operation::UpdateSmContext, None);
    phone.release(&mut world);
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 1, "the SMF has not answered");
    data(&mut world);
    world.downlinks.clear();
    comes(&mut world, &mut phone);
    assert!(matches!(phone.receive(&mut world), GmmMessage::ServiceAccept(_)));
    let GmmMessage::ConfigurationUpdateCommand(command) = phone.receive(&mut world) else { panic!() };
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.writes, 2);
    let Some(MobileIdentity::FiveGGuti(guti)) = command.guti else { panic!() };
    phone.guti = Some(guti);
    phone.send(&mut world, ConfigurationUpdateComplete::new());
    restart(&mut world, &stored, (1, 16), false);
    world.connect_gnbs();
    world.script.remove(&Operation::UpdateSmContext);
    assert!(matches!(request_service(&mut world, &mut phone), GmmMessage::ServiceAccept(_)));
}

/// The UE has another context, which took its session over; the SMF has not answered that when the UE gets REGISTRATION ACCEPT.
#[test]
fn a_registration_that_is_accepted_is_stored_in_a_transaction_too() {
    let (mut world, mut phone, mut stored) = registered_without_retention(16);
    phone.release(&mut world);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let mut nas = phone.initial_nas(request.clone());
    nas[2] ^= 1;
    phone.connect(&mut world, nas);
    phone.security = None;
    let GmmMessage::IdentityRequest(_) = phone.receive(&mut world) else { panic!() };
    phone.send(&mut world, pith_nas::gmm::IdentityResponse::new(Phone::suci()));
    world.script.insert(Operation::UpdateSmContext, None);
    world.script.insert(Operation::CreateAmPolicyAssociation, None);
    phone.secure(&mut world, request);
    stored.store(&mut world.amf, StoreScope::Changed);
    world.reply_to(Operation::CreateAmPolicyAssociation, Ok(pith_sbi::Response::NoContent));
    phone.accepted(&mut world);
    stored.store(&mut world.amf, StoreScope::Changed);
    world.script.clear();
    restart(&mut world, &stored, (1, 16), false);
    world.connect_gnbs();
    assert!(matches!(request_service(&mut world, &mut phone), GmmMessage::ServiceAccept(_)));
}

/// Each message that the UE accepts has a higher COUNT than the one before, whatever the store missed.
#[test]
fn no_downlink_count_is_used_twice() {
    let reserved = 3;
    let (mut world, mut phone, mut stored) = registered(reserved);
    let next = |phone: &Phone| phone.security.as_ref().unwrap().last_received().unwrap();
    for run in 1..9 {
        for _ in 0..=run % 3 {
            phone.release(&mut world);
            let before = next(&phone);
            let GmmMessage::ServiceAccept(_) = request_service(&mut world, &mut phone) else { panic!() };
            assert!(next(&phone) > before);
            phone.context_setup_response(&mut world, &[5]);
            // The shell stores in between only what it must.
            stored.store(&mut world.amf, StoreScope::Required);
        }
        restart(&mut world, &stored, (run, reserved), false);
        world.connect_gnbs();
        let before = next(&phone);
        let GmmMessage::ServiceAccept(_) = request_service(&mut world, &mut phone) else { panic!() };
        assert!(next(&phone) > before, "run {run}");
        phone.context_setup_response(&mut world, &[5]);
        stored.store(&mut world.amf, StoreScope::Required);
    }
}

#[test]
fn reserved_counts_that_the_phone_did_not_confirm_are_bounded() {
    let (mut world, mut phone, mut stored) = registered(100);
    for run in 1..=2 {
        restart(&mut world, &stored, (run, 100), false);
        world.connect_gnbs();
        if run == 1 {
            // Stores the UE with a further reservation.
            let GmmMessage::ServiceAccept(_) = request_service(&mut world, &mut phone) else { panic!() };
            stored.store(&mut world.amf, StoreScope::Changed);
        }
    }
    outdated::authenticated_service(&mut world, &mut phone);
}

#[test]
fn of_two_contexts_of_a_subscriber_the_registered_one_counts() {
    let (mut world, _, mut stored) = registered(0);
    // The process ended after another context was stored, and before the former one was deleted.
    let (id, document) = stored.documents.iter().next().map(|(a, b)| (*a, b.clone())).unwrap();
    stored.documents.insert(ContextId { number: id.number ^ 1, ..id }, document);
    restart(&mut world, &stored, (1, 0), false);
    let audit = world.amf.audit();
    assert_eq!((audit.contexts, audit.supis, audit.dangling), (1, 1, 0));
}

/// The process ended before the document of the retained security context was deleted.
#[test]
fn a_restored_ue_replaces_its_retained_security_context_before_it_is_resumed() {
    let (_, _, retained) = deregistered();
    let (world, _, registered) = registered(16);
    for reverse in [false, true] {
        let mut amf = Amf::new(config(), Rng::from_number(2));
        amf.reload_contexts();
        amf.track_contexts(Tracking { reserved_counts: 16, ..Tracking::default() });
        let mut documents: Vec<_> = retained.documents.iter().chain(&registered.documents).collect();
        assert_eq!(documents.len(), 2);
        if reverse {
            documents.reverse();
        }
        for (id, document) in documents {
            amf.restore_context(world.now, *id, document, false).unwrap();
        }
        let audit = amf.audit();
        assert_eq!((audit.contexts, audit.retained, audit.dangling), (1, 0, 0));
    }
}

/// The next process does not know of the request: what it was to do later would answer another one.
#[test]
fn nothing_of_a_request_in_progress_is_left_after_a_restart() {
    let (world, phone, _) = registered(0);
    let (_, ue) = world.amf.ues.iter().next().unwrap();
    let mut ue = crate::amf::context::UeContext::new((crate::kit::UNPLACED, ue.id), ue.since);
    ue.postpone(phone.service_request(ServiceType::Data));
    ue.note_service_request(phone.service_request(ServiceType::Data));
    crate::amf::residency::end_procedure(&mut ue);
    assert!(ue.in_progress.is_none());
}
