//! Limits of unauthenticated registrations, for each gNB and in total.

use super::world::{GNB, OTHER_GNB, Phone, World, location, problem};
use crate::amf::config::{HALF_OPEN, HALF_OPEN_CONTEXT, RELEASING};
use pith_nas::GmmMessage;
use pith_nas::ie::RegistrationKind;
use pith_sbi::Operation;
use pith_types::RanUeNgapId;

/// A registration that the UE does not continue; `padding` octets make the message longer.
fn begin(world: &mut World, gnb: crate::kit::GnbHandle, ran: u32, padding: usize) {
    let mut request = Phone::default().registration_request(RegistrationKind::Initial);
    request.nas_message_container = (padding > 0).then(|| vec![0; padding]);
    let nas_pdu = GmmMessage::from(request).encode();
    let message = pith_ngap::InitialUeMessage {
        ran_ue_ngap_id: RanUeNgapId(ran),
        nas_pdu,
        location: location(),
        establishment_cause: None,
        s_tmsi: None,
        ue_context_request: Some(()),
        allowed_nssai: None,
    };
    world.ngap(gnb, "InitialUeMessage", message.encode());
    world.ladder.clear();
    world.downlinks.clear();
    world.events.clear();
}

#[test]
fn a_flood_from_one_gnb_evicts_only_its_own_registrations() {
    let mut world = World::new();
    let mut phone = Phone { gnb: OTHER_GNB, ..Phone::default() };
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    let challenge = world.downlinks.pop_back().unwrap();
    for ran in 0..HALF_OPEN.entries_of_gnb as u32 + RELEASING.entries_of_gnb as u32 + 1000 {
        begin(&mut world, GNB, ran, 0);
    }
    let audit = world.amf.audit();
    assert_eq!(audit.half_open, HALF_OPEN.entries_of_gnb + 1);
    assert_eq!(audit.contexts, audit.half_open);
    assert_eq!(audit.connections, audit.half_open + RELEASING.entries_of_gnb);
    assert_eq!((audit.orphaned_connections, audit.releasing), (0, RELEASING.entries_of_gnb));
    world.downlinks.push_back(challenge);
    phone.authenticate(&mut world, request);
    assert_eq!(world.amf.audit().registered, 1);
}

#[test]
fn long_messages_are_limited_by_octets() {
    let mut world = World::new();
    for ran in 0..1000 {
        begin(&mut world, GNB, ran, 60_000);
    }
    let audit = world.amf.audit();
    let most = HALF_OPEN.octets / (HALF_OPEN_CONTEXT + 2 * 60_000);
    assert!((most - 1..=most).contains(&audit.half_open), "{audit:?}");
}

#[test]
fn the_counted_size_of_a_context_is_its_real_size() {
    let of_tables = 4 * 64;
    let context = std::mem::size_of::<crate::amf::context::UeContext>();
    let request = std::mem::size_of::<pith_nas::gmm::RegistrationRequest>();
    let connection = std::mem::size_of::<crate::amf::connection::NgConnection>();
    assert!(
        context + request + connection + of_tables <= HALF_OPEN_CONTEXT,
        "{context} {request} {connection}"
    );
}

#[test]
fn authenticated_and_refused_registrations_do_not_count() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    assert_eq!(world.amf.audit().half_open, 0);
    world.script.insert(Operation::Authenticate, problem(pith_sbi::Cause::UserNotFound));
    let mut unknown = Phone { ran_id: RanUeNgapId(70), ..Phone::default() };
    let request = unknown.registration_request(RegistrationKind::Initial);
    let nas = unknown.initial_nas(request);
    unknown.connect(&mut world, nas);
    assert_eq!(world.amf.audit().half_open, 0);
}
