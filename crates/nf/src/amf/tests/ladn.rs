//! Local area data networks (TS 23.501 5.6.5): `internet` is available in the first of two tracking areas.

use super::world::{GNB, OTHER_GNB, Phone, World, config, establishment, location, tai};
use crate::amf::{AmfConfig, Ladn};
use crate::kit::GnbInfo;
use pith_nas::GmmMessage;
use pith_nas::gmm::{RegistrationAccept, RegistrationComplete};
use pith_nas::ie::{LadnIndication, LadnInformation, RegistrationKind, ServiceType, TaiList};
use pith_sbi::common::PresenceState;
use pith_sbi::{Operation, Request};
use pith_types::{Snssai, Tac, Tai};

fn other_area() -> Tai {
    Tai { tac: Tac::new(2), ..tai() }
}

fn ladn(name: &str, tais: Vec<Tai>) -> Ladn {
    Ladn { dnn: name.parse().unwrap(), tais }
}

/// Both gNBs serve both areas.
fn world() -> World {
    let tais = vec![tai(), other_area()];
    let far = Tai { tac: Tac::new(99), ..tai() };
    let ladns = vec![ladn("internet", vec![tai(), far]), ladn("other", vec![tai()]), ladn("far", vec![far])];
    let mut world = World::with(AmfConfig { tais, ladns, ..config() });
    for gnb in [GNB, OTHER_GNB] {
        let slices = vec![Snssai::of_sst(1)];
        let supported = vec![(tai(), slices.clone()), (other_area(), slices)];
        world.set_up_gnb(gnb, GnbInfo { supported, ..World::gnb_info(gnb) }, false);
    }
    world
}

fn information() -> LadnInformation {
    LadnInformation(vec![("internet".parse().unwrap(), TaiList::of(&[tai()]))])
}

fn registers(world: &mut World, phone: &mut Phone, asked: Option<&str>) -> Box<RegistrationAccept> {
    let mut request = phone.registration_request(RegistrationKind::Initial);
    request.ladn_indication =
        asked.map(|name| LadnIndication(name.split_whitespace().map(|it| it.parse().unwrap()).collect()));
    let nas = phone.initial_nas(request.clone());
    phone.connect(world, nas);
    let accept = phone.authenticate(world, request);
    phone.context_setup_response(world, &[]);
    phone.send(world, RegistrationComplete::new());
    accept
}

/// Answers the open calls. Returns the presences in them.
fn told(world: &mut World) -> Vec<PresenceState> {
    let mut presences = Vec::new();
    while let Some((tag, _, request)) = world.calls.pop() {
        let presence = match &request {
            Request::PostSmContexts(request) => request.body.presence_in_ladn.clone(),
            Request::UpdateSmContext(request) => request.body.presence_in_ladn.clone(),
            _ => None,
        };
        presences.extend(presence);
        let reply = world.usual(&request);
        world.reply(tag, reply);
    }
    presences
}

#[test]
fn a_ue_gets_its_ladns_in_the_registration_area() {
    let cases = [(None, true), (Some(""), true), (Some("other internet"), true), (Some("other"), false)];
    for (asked, has_information) in cases {
        let (mut world, mut phone) = (world(), Phone::default());
        let accept = registers(&mut world, &mut phone, asked);
        // 'other' is not subscribed, and 'far' has no area here.
        assert_eq!(accept.ladn_information, has_information.then(information), "{asked:?}");
    }
}

#[test]
fn without_ladns_there_is_no_information() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    assert_eq!(registers(&mut world, &mut phone, Some("")).ladn_information, None);
    world.script.insert(Operation::PostSmContexts, None);
    phone.send(&mut world, establishment(5));
    assert_eq!(told(&mut world), []);
}

#[test]
fn the_smf_is_told_whether_the_ue_is_in_the_service_area() {
    for (area, presence) in [(tai(), PresenceState::InArea), (other_area(), PresenceState::OutOfArea)] {
        let (mut world, mut phone) = (world(), Phone::default());
        phone.location.tai = area;
        registers(&mut world, &mut phone, None);
        world.script.insert(Operation::PostSmContexts, None);
        phone.send(&mut world, establishment(5));
        assert_eq!(told(&mut world), [presence]);
    }
}

#[test]
fn the_smf_is_told_when_the_ue_leaves_and_enters_the_service_area() {
    let (mut world, mut phone) = (world(), Phone::default());
    registers(&mut world, &mut phone, None);
    phone.establish(&mut world, 5);
    world.script.insert(Operation::UpdateSmContext, None);
    let moves = [(tai(), vec![]), (other_area(), vec![PresenceState::OutOfArea]), (other_area(), vec![])];
    for (area, presence) in moves {
        let message = pith_ngap::UplinkNasTransport {
            amf_ue_ngap_id: phone.amf_id.unwrap(),
            ran_ue_ngap_id: phone.ran_id,
            nas_pdu: phone.nas(pith_nas::gmm::GmmStatus::new(pith_nas::GmmCause::ProtocolErrorUnspecified)),
            location: Some(pith_ngap::UserLocation { tai: area, ..location() }),
        };
        world.ngap(GNB, "UplinkNasTransport", message.encode());
        assert_eq!(told(&mut world), presence, "{area:?}");
    }
    phone.location.tai = tai();
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    assert!(told(&mut world).contains(&PresenceState::InArea));
    assert!(matches!(phone.receive(&mut world), GmmMessage::ServiceAccept(_)));
}
