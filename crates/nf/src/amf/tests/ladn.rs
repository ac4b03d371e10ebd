//! Local area data networks (TS 23.501 5.6.5): `internet` is available in the first of two tracking areas.

use super::context_transfer::{self, carry};
use super::world::{GNB, OTHER_GNB, Phone, World, config, establishment, location, tai};
use crate::amf::{Amf, AmfConfig, Ladn};
use crate::kit::{GnbInfo, NetworkFunction, Rng, StoreScope, Tracking};
use crate::testing::Stored;
use pith_nas::GmmMessage;
use pith_nas::gmm::{RegistrationAccept, RegistrationComplete};
use pith_nas::ie::{LadnIndication, LadnInformation, RegistrationKind, ServiceType, TaiList};
use pith_sbi::common::PresenceState;
use pith_sbi::nsmf_pdusession::UpCnxState;
use pith_sbi::{Operation, Problem, Request, Response};
use pith_types::{Snssai, Tac, Tai};

fn other_area() -> Tai {
    Tai { tac: Tac::new(2), ..tai() }
}

fn ladn(name: &str, tais: Vec<Tai>) -> Ladn {
    Ladn { dnn: name.parse().unwrap(), tais }
}

fn with_ladns(config: AmfConfig) -> AmfConfig {
    let tais = vec![tai(), other_area()];
    let far = Tai { tac: Tac::new(99), ..tai() };
    let ladns = vec![ladn("internet", vec![tai(), far]), ladn("other", vec![tai()]), ladn("far", vec![far])];
    AmfConfig { tais, ladns, ..config }
}

/// Both gNBs serve both areas.
fn connect_gnbs(world: &mut World) {
    for gnb in [GNB, OTHER_GNB] {
        let slices = vec![Snssai::of_sst(1)];
        let supported = vec![(tai(), slices.clone()), (other_area(), slices)];
        world.set_up_gnb(gnb, GnbInfo { supported, ..World::gnb_info(gnb) }, false);
    }
}

fn world() -> World {
    let mut world = World::with(with_ladns(config()));
    connect_gnbs(&mut world);
    world
}

/// A registered UE with a session in the service area; the SMF does not answer from now on.
fn with_session() -> (World, Phone) {
    let (mut world, mut phone) = (world(), Phone::default());
    registers(&mut world, &mut phone, None);
    phone.establish(&mut world, 5);
    world.script.insert(Operation::UpdateSmContext, None);
    (world, phone)
}

/// The gNB says where the UE is.
fn moves(world: &mut World, phone: &mut Phone, tai: Tai) {
    let message = pith_ngap::UplinkNasTransport {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        nas_pdu: phone.nas(pith_nas::gmm::GmmStatus::new(pith_nas::GmmCause::ProtocolErrorUnspecified)),
        location: Some(pith_ngap::UserLocation { tai, ..location() }),
    };
    world.ngap(GNB, "UplinkNasTransport", message.encode());
}

/// The requests to the SMF that are not answered: what each says of the user plane and of the presence.
fn pending(world: &World) -> Vec<(Option<UpCnxState>, Option<PresenceState>)> {
    let of_session = |request: &Request| match request {
        Request::UpdateSmContext(it) => {
            Some((it.body.up_cnx_state.clone(), it.body.presence_in_ladn.clone()))
        }
        _ => None,
    };
    world.calls.iter().filter_map(|(.., request)| of_session(request)).collect()
}

fn comes(world: &mut World, phone: &mut Phone, tai: Tai) {
    phone.location.tai = tai;
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(world, nas);
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
    let areas = [(tai(), vec![]), (other_area(), vec![PresenceState::OutOfArea]), (other_area(), vec![])];
    for (area, presence) in areas {
        moves(&mut world, &mut phone, area);
        assert_eq!(told(&mut world), presence, "{area:?}");
    }
    comes(&mut world, &mut phone, tai());
    assert!(told(&mut world).contains(&PresenceState::InArea));
    assert!(matches!(phone.receive(&mut world), GmmMessage::ServiceAccept(_)));
}

#[test]
fn the_smf_is_told_of_a_move_while_it_creates_the_session() {
    let (mut world, mut phone) = (world(), Phone::default());
    registers(&mut world, &mut phone, None);
    world.script.insert(Operation::PostSmContexts, None);
    world.script.insert(Operation::UpdateSmContext, None);
    phone.send(&mut world, establishment(5));
    moves(&mut world, &mut phone, other_area());
    assert_eq!(pending(&world), []);
    let usual = world.usual(&world.calls[0].2.clone());
    world.reply_to(Operation::PostSmContexts, usual);
    assert_eq!(pending(&world), [(None, Some(PresenceState::OutOfArea))]);
}

/// A lost deactivation is repeated, although the SMF has got the presence later.
#[test]
fn a_report_of_presence_supersedes_no_deactivation() {
    let (mut world, mut phone) = with_session();
    phone.release(&mut world);
    let deactivation = (Some(UpCnxState::Deactivated), None);
    assert_eq!(pending(&world), std::slice::from_ref(&deactivation));
    comes(&mut world, &mut phone, other_area());
    let presence = (None, Some(PresenceState::OutOfArea));
    assert_eq!(pending(&world), [deactivation.clone(), presence.clone()]);
    world.reply_to(Operation::UpdateSmContext, Err(Problem::timed_out().into()));
    assert_eq!(pending(&world), [presence.clone(), deactivation.clone()]);
    // And a lost report of presence.
    world.reply_to(Operation::UpdateSmContext, Err(Problem::timed_out().into()));
    assert_eq!(pending(&world), [deactivation, presence]);
}

/// The SMF answers nothing.
#[test]
fn lost_reports_of_presence_leave_the_user_plane_its_repetitions() {
    let (mut world, mut phone) = with_session();
    let lose = |world: &mut World| {
        world.reply_to(Operation::UpdateSmContext, Err(Problem::timed_out().into()));
        pending(world)
    };
    let most = config().max_retransmissions;
    moves(&mut world, &mut phone, other_area());
    for _ in 0..most {
        assert_eq!(lose(&mut world), [(None, Some(PresenceState::OutOfArea))]);
    }
    assert_eq!(lose(&mut world), []);
    phone.release(&mut world);
    for _ in 0..most {
        assert_eq!(lose(&mut world), [(Some(UpCnxState::Deactivated), None)]);
    }
    assert_eq!(lose(&mut world), []);
}

/// Reports could overtake each other: the SMF would keep a session outside, or end one inside.
#[test]
fn one_report_of_presence_is_pending_at_a_time() {
    let (mut world, mut phone) = with_session();
    let out = (None, Some(PresenceState::OutOfArea));
    for area in [other_area(), tai(), other_area(), tai()] {
        moves(&mut world, &mut phone, area);
        assert_eq!(pending(&world), std::slice::from_ref(&out), "{area:?}");
    }
    world.reply_to(Operation::UpdateSmContext, Ok(Response::NoContent));
    assert_eq!(pending(&world), [(None, Some(PresenceState::InArea))], "it is back");
    world.reply_to(Operation::UpdateSmContext, Ok(Response::NoContent));
    assert_eq!(pending(&world), []);
}

/// The deactivation is first: without a user plane the session ends without a message to the UE.
#[test]
fn the_smf_is_told_where_the_ue_was_when_its_connection_ended() {
    let (mut world, phone) = with_session();
    let cause = pith_ngap::Cause::RadioNetwork(pith_ngap::CauseRadioNetwork::user_inactivity);
    let ids = (phone.amf_id.unwrap(), phone.ran_id);
    let request = pith_ngap::UeContextReleaseRequest {
        amf_ue_ngap_id: ids.0,
        ran_ue_ngap_id: ids.1,
        sessions: None,
        cause: Some(cause),
    };
    world.ngap(GNB, "UeContextReleaseRequest", request.encode());
    let complete = pith_ngap::UeContextReleaseComplete {
        amf_ue_ngap_id: ids.0,
        ran_ue_ngap_id: ids.1,
        location: Some(pith_ngap::UserLocation { tai: other_area(), ..location() }),
        sessions: None,
        diagnostics: None,
    };
    world.ngap(GNB, "UeContextReleaseComplete", complete.encode());
    let expected = [(Some(UpCnxState::Deactivated), None), (None, Some(PresenceState::OutOfArea))];
    assert_eq!(pending(&world), expected);
}

#[test]
fn the_smf_is_told_by_the_amf_to_which_the_ue_has_moved() {
    for (area, presence) in [(tai(), PresenceState::InArea), (other_area(), PresenceState::OutOfArea)] {
        let (mut old, mut phone) = with_session();
        old.script.remove(&Operation::UpdateSmContext);
        phone.release(&mut old);
        let mut new = World::with(with_ladns(super::handover_between_amfs::target_config()));
        connect_gnbs(&mut new);
        new.script.insert(Operation::UpdateSmContext, None);
        phone.location.tai = area;
        context_transfer::comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
        carry(&mut new, &mut old, Operation::UeContextTransfer);
        let of_session = new.calls.iter().filter_map(|(.., request)| match request {
            Request::UpdateSmContext(update) => Some(&update.body),
            _ => None,
        });
        let announced: Vec<_> = of_session.collect();
        assert_eq!(announced.len(), 1);
        assert!(announced[0].serving_nf_id.is_some());
        assert_eq!(announced[0].presence_in_ladn, Some(presence));
    }
}

/// Anyone may have repeated the message of a UE with an outdated security context, from another place.
#[test]
fn the_presence_of_a_ue_with_an_outdated_context_is_reported_when_it_is_authenticated() {
    let mut world = World::with(with_ladns(AmfConfig { retains_ues: false, ..config() }));
    world.amf.track_contexts(Tracking::default());
    connect_gnbs(&mut world);
    let mut phone = Phone::default();
    registers(&mut world, &mut phone, None);
    phone.establish(&mut world, 5);
    phone.release(&mut world);
    let mut stored = Stored::default();
    stored.store(&mut world.amf, StoreScope::Changed);
    let mut amf = Amf::new(with_ladns(config()), Rng::from_number(2));
    amf.reload_contexts();
    amf.track_contexts(Tracking::default());
    stored.restore(world.now, &mut amf, true);
    world.replace_amf(amf);
    connect_gnbs(&mut world);
    world.script.insert(Operation::UpdateSmContext, None);
    for _ in 0..2 {
        comes(&mut world, &mut phone, other_area());
        let GmmMessage::AuthenticationRequest(_) = phone.receive(&mut world) else { panic!() };
        assert!(pending(&world).iter().all(|(_, presence)| presence.is_none()), "{:?}", pending(&world));
    }
    phone.send(&mut world, Phone::authentication_response());
    let GmmMessage::SecurityModeCommand(_) = phone.receive(&mut world) else { panic!() };
    let complete = phone.protect(
        pith_nas::SecurityHeaderType::IntegrityProtectedAndCipheredWithNewContext,
        pith_nas::gmm::SecurityModeComplete::new(),
    );
    phone.send_pdu(&mut world, complete);
    assert!(pending(&world).contains(&(None, Some(PresenceState::OutOfArea))), "{:?}", pending(&world));
}
