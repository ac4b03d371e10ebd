//! Limits of unauthenticated registrations, for each host of gNBs and in total.

use super::world::{GNB, OTHER_GNB, Phone, World, location, problem};
use crate::amf::config::{HALF_OPEN, HALF_OPEN_CONTEXT, RELEASING};
use crate::kit::{GnbHandle, Input, N2Input};
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
        amf_set_id: None,
        ue_context_request: Some(()),
        allowed_nssai: None,
        reroute: None,
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
    for ran in 0..HALF_OPEN.entries_of_host as u32 + RELEASING.entries_of_host as u32 + 1000 {
        begin(&mut world, GNB, ran, 0);
    }
    let audit = world.amf.audit();
    assert_eq!(audit.half_open, HALF_OPEN.entries_of_host + 1);
    assert_eq!(audit.contexts, audit.half_open);
    assert_eq!(audit.connections, audit.half_open + RELEASING.entries_of_host);
    assert_eq!((audit.orphaned_connections, audit.releasing), (0, RELEASING.entries_of_host));
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

/// A registration that waits for the response to its challenge.
fn challenged(world: &mut World, gnb: GnbHandle, ran: u32) -> Phone {
    let mut phone = Phone { gnb, ran_id: RanUeNgapId(ran), ..Phone::default() };
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request);
    phone.connect(world, nas);
    let GmmMessage::AuthenticationRequest(_) = phone.receive(world) else { panic!("a challenge") };
    phone
}

fn report_capability(world: &mut World, phone: &Phone, octets: usize) {
    let message = pith_ngap::UeRadioCapabilityInfoIndication {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        ue_radio_capability: Some(vec![0xcc; octets]),
    };
    world.ngap(phone.gnb, "UeRadioCapabilityInfoIndication", message.encode());
}

fn octets_of_contexts(world: &World) -> usize {
    world.amf.documents().iter().map(|document| document.octets().len()).sum()
}

#[test]
fn a_radio_capability_is_kept_after_authentication_only_and_up_to_a_limit() {
    let mut world = World::new();
    let mut phone = challenged(&mut world, GNB, 1);
    report_capability(&mut world, &phone, 60_000);
    assert!(octets_of_contexts(&world) < 10_000, "the UE is not authenticated");
    phone.send(&mut world, Phone::authentication_response());
    report_capability(&mut world, &phone, 60_000);
    assert!(octets_of_contexts(&world) < 10_000, "it has no security yet");
    let GmmMessage::SecurityModeCommand(_) = phone.receive(&mut world) else { panic!() };
    let request = phone.registration_request(RegistrationKind::Initial);
    let complete = phone.security_mode_complete(request);
    phone.send_pdu(&mut world, complete);
    phone.accepted(&mut world);
    report_capability(&mut world, &phone, (64 << 10) + 1);
    assert!(octets_of_contexts(&world) < 10_000, "too long");
    report_capability(&mut world, &phone, 64 << 10);
    assert!(octets_of_contexts(&world) > 64 << 10);
}

#[test]
fn later_messages_count_in_the_octets_of_an_unauthenticated_ue() {
    let mut world = World::new();
    for ran in 0..600 {
        let mut phone = challenged(&mut world, GNB, ran);
        let mut request = phone.registration_request(RegistrationKind::Initial);
        request.nas_message_container = Some(vec![0; 60_000]);
        let nas_pdu = phone.initial_nas(request);
        phone.send_pdu(&mut world, nas_pdu);
        world.ladder.clear();
        world.downlinks.clear();
        world.events.clear();
    }
    let audit = world.amf.audit();
    let most = HALF_OPEN.octets / (HALF_OPEN_CONTEXT + 2 * 60_000);
    assert!((most - 2..=most).contains(&audit.half_open), "{audit:?}");
}

/// A host may open associations with as many gNB IDs as it likes.
#[test]
fn gnbs_of_one_host_share_its_limit() {
    let mut world = World::new();
    let gnbs = [GNB, GnbHandle(11), GnbHandle(12), GnbHandle(13)];
    let host = std::net::Ipv4Addr::from(0xc000_0201).into();
    for gnb in &gnbs[1..] {
        let mut info = World::gnb_info(*gnb);
        info.host = host;
        world.input(Input::N2(N2Input::GnbUp { gnb: *gnb, info: info.into() }));
    }
    for ran in 0..HALF_OPEN.entries_of_host as u32 + 1000 {
        begin(&mut world, gnbs[ran as usize % gnbs.len()], ran, 0);
    }
    assert_eq!(world.amf.audit().half_open, HALF_OPEN.entries_of_host);
    begin(&mut world, OTHER_GNB, 1, 0);
    assert_eq!(world.amf.audit().half_open, HALF_OPEN.entries_of_host + 1, "another host has its own");
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
