//! Mobility restrictions (TS 23.501 5.3.4.1; TS 24.501 5.3.5).

use super::n2_handover::required;
use super::world::*;
use crate::amf::AmfConfig;
use crate::kit::{GnbInfo, Timer};
use pith_nas::gmm;
use pith_nas::ie::{
    PartialTaiList, PduSessionSet, RegistrationKind, RequestType, ServiceArea, ServiceAreaList, ServiceType,
    TaiList,
};
use pith_nas::{GmmCause, GmmMessage};
use pith_ngap::{
    Cause, CauseRadioNetwork, GlobalRanNodeId, HandoverRequired, Message, MobilityRestrictions,
    PathSwitchRequest, TargetId, UserLocation,
};
use pith_sbi::common::{Area, CoreNetworkType, RatType, RestrictionType, ServiceAreaRestriction};
use pith_sbi::npcf_ampolicycontrol::{AmPolicyUpdateNotify, PolicyAssociation, PolicyUpdate};
use pith_sbi::nudm_sdm::{
    AccessAndMobilitySubscriptionData, ModificationNotification, SdmChangeNotification,
};
use pith_sbi::{Created, NfType, Operation, Request, Response, Uri};
use pith_types::{Tac, Tai};

/// The tracking area of the second gNB.
fn second() -> Tai {
    Tai { tac: Tac::new(2), ..tai() }
}

fn third() -> Tai {
    Tai { tac: Tac::new(3), ..tai() }
}

/// An AMF with three tracking areas: the first gNB is in the first, the other one in the second.
fn three_areas() -> World {
    let mut world = World::with(AmfConfig { tais: vec![tai(), second(), third()], ..config() });
    let info = World::gnb_info(OTHER_GNB);
    let supported = info.supported.iter().map(|(_, slices)| (second(), slices.clone())).collect();
    world.set_up_gnb(OTHER_GNB, GnbInfo { supported, ..info }, false);
    world
}

fn areas(tacs: &[u32]) -> Vec<Area> {
    vec![Area { area_code: None, tacs: tacs.iter().copied().map(Tac::new).collect() }]
}

fn service_area(kind: RestrictionType, tacs: &[u32]) -> Option<ServiceAreaRestriction> {
    Some(ServiceAreaRestriction { restriction_type: Some(kind), max_num_of_tas: None, areas: areas(tacs) })
}

fn allowed(tacs: &[u32]) -> AccessAndMobilitySubscriptionData {
    let service_area_restriction = service_area(RestrictionType::AllowedAreas, tacs);
    AccessAndMobilitySubscriptionData { service_area_restriction, ..Default::default() }
}

fn forbidden(tacs: &[u32]) -> AccessAndMobilitySubscriptionData {
    AccessAndMobilitySubscriptionData { forbidden_areas: areas(tacs), ..Default::default() }
}

/// The UDM has a subscription with these restrictions.
fn subscribe(world: &mut World, restrictions: AccessAndMobilitySubscriptionData) {
    let mut data = subscription(&[1]);
    let plain = data.am_data.take().unwrap();
    data.am_data = Some(AccessAndMobilitySubscriptionData {
        nssai: plain.nssai,
        subscribed_ue_ambr: plain.subscribed_ue_ambr,
        ..restrictions
    });
    world.script.insert(Operation::GetDataSets, Some(Ok(Response::SubscriptionDataSets(Box::new(data)))));
}

/// The subscription changes while the UE is registered.
fn change(world: &mut World, restrictions: AccessAndMobilitySubscriptionData) {
    subscribe(world, restrictions);
    let key = world.amf.key_of(&supi());
    let uri = SdmChangeNotification::callback_uri(&identity().api_root, &NfType::Amf, &key);
    let body = ModificationNotification::new(Vec::new());
    world.request(SdmChangeNotification { uri, body }).unwrap();
}

/// The UE reselects the cell of a gNB, from which it connects the next time.
fn camp(phone: &mut Phone, gnb: crate::kit::GnbHandle) {
    phone.gnb = gnb;
    phone.location = UserLocation { tai: if gnb == GNB { tai() } else { second() }, ..location() };
}

/// Registers in the cell where it is, and returns the answer with the list for the gNB.
fn register(
    world: &mut World,
    phone: &mut Phone,
) -> (Box<gmm::RegistrationAccept>, Option<MobilityRestrictions>) {
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(world, nas);
    phone.secure(world, request);
    let Message::InitialContextSetupRequest(setup) = world.downlinks[0].1.clone() else { panic!() };
    let accept = phone.accepted(world);
    phone.context_setup_response(world, &[]);
    phone.send(world, gmm::RegistrationComplete::new());
    (accept, setup.mobility_restrictions)
}

fn rejected(world: &mut World, phone: &mut Phone) -> GmmCause {
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(world, nas);
    phone.secure(world, request);
    let GmmMessage::RegistrationReject(reject) = phone.receive(world) else { panic!() };
    phone.released(world);
    reject.cause
}

fn list(allowed: bool, tais: &[Tai]) -> ServiceAreaList {
    let parts = TaiList::of(tais).0.into_iter();
    ServiceAreaList(parts.map(|areas| ServiceArea { allowed, areas }).collect())
}

#[test]
fn a_registration_in_a_forbidden_area_is_rejected() {
    let mut world = three_areas();
    subscribe(&mut world, forbidden(&[1]));
    assert_eq!(rejected(&mut world, &mut Phone::default()), GmmCause::TrackingAreaNotAllowed);
    world.assert_empty();
}

#[test]
fn a_subscription_without_nr_or_without_5gc_is_rejected() {
    let nr = AccessAndMobilitySubscriptionData { rat_restrictions: vec![RatType::Nr], ..Default::default() };
    let core = AccessAndMobilitySubscriptionData {
        core_network_type_restrictions: vec![CoreNetworkType::FiveGc],
        ..Default::default()
    };
    for restrictions in [nr, core] {
        let mut world = three_areas();
        subscribe(&mut world, restrictions);
        assert_eq!(rejected(&mut world, &mut Phone::default()), GmmCause::N1ModeNotAllowed);
        world.assert_empty();
    }
}

#[test]
fn a_forbidden_area_is_no_part_of_the_registration_area_and_known_to_the_gnb() {
    let mut world = three_areas();
    subscribe(
        &mut world,
        AccessAndMobilitySubscriptionData { rat_restrictions: vec![RatType::Eutra], ..forbidden(&[2, 9]) },
    );
    let (accept, restrictions) = register(&mut world, &mut Phone::default());
    let area = accept.tai_list.unwrap();
    assert!(area.contains(&tai()) && area.contains(&third()) && !area.contains(&second()));
    assert_eq!(accept.service_area_list, None);
    let plmn = tai().plmn_id;
    let expected = MobilityRestrictions {
        serving_plmn: plmn,
        equivalent_plmns: Vec::new(),
        rat_restrictions: vec![(plmn, 0x80)],
        forbidden_areas: vec![(plmn, vec![Tac::new(2), Tac::new(9)])],
        service_areas: Vec::new(),
    };
    assert_eq!(restrictions, Some(expected));
}

#[test]
fn a_subscription_without_restrictions_has_no_list() {
    let mut world = three_areas();
    let (accept, restrictions) = register(&mut world, &mut Phone::default());
    assert_eq!((accept.service_area_list, restrictions), (None, None));
}

#[test]
fn ue_and_gnb_get_the_service_area_with_the_registration() {
    let not_allowed = AccessAndMobilitySubscriptionData {
        service_area_restriction: service_area(RestrictionType::NotAllowedAreas, &[2]),
        ..Default::default()
    };
    let cases = [
        (allowed(&[1, 3, 7]), list(true, &[tai(), third()])),
        (not_allowed, list(false, &[second()])),
        // No part of the registration area is allowed.
        (allowed(&[7]), list(false, &[tai(), second(), third()])),
    ];
    for (restrictions, expected) in cases {
        let mut world = three_areas();
        let is_allowed = restrictions.service_area_restriction.as_ref().unwrap().restriction_type
            == Some(RestrictionType::AllowedAreas);
        let tacs = restrictions.service_area_restriction.as_ref().unwrap().areas[0].tacs.clone();
        subscribe(&mut world, restrictions);
        let (accept, list) = register(&mut world, &mut Phone::default());
        assert_eq!(accept.service_area_list, Some(expected));
        let area = list.unwrap().service_areas.pop().unwrap();
        assert_eq!(if is_allowed { area.allowed } else { area.not_allowed }, tacs);
    }
}

/// A UE with a session that is CM-IDLE in a cell of the second tracking area, where it gets no service.
fn outside() -> (World, Phone) {
    let (mut world, mut phone) = (three_areas(), Phone::default());
    subscribe(&mut world, allowed(&[1]));
    register(&mut world, &mut phone);
    phone.establish(&mut world, 5);
    phone.release(&mut world);
    camp(&mut phone, OTHER_GNB);
    world.take_ladder();
    (world, phone)
}

fn data(phone: &Phone) -> gmm::ServiceRequest {
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    request
}

#[test]
fn outside_its_service_area_a_ue_gets_no_service_and_registers() {
    let (mut world, mut phone) = outside();
    let request = data(&phone);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::ServiceReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::RestrictedServiceArea);
    assert_eq!(world.take_ladder(), "gnb2 -> InitialUeMessage\ngnb2 <- DownlinkNasTransport");
    // The UE registers over the same connection (TS 24.501 5.6.1.5).
    let mut request = phone.registration_request(RegistrationKind::MobilityUpdating);
    request.uplink_data_status = Some([5].into_iter().collect());
    phone.send(&mut world, request);
    let accept = phone.accepted(&mut world);
    assert_eq!(accept.service_area_list, Some(list(true, &[tai()])));
    assert_eq!(accept.reactivation_result, Some([5].into_iter().collect::<PduSessionSet>()));
    assert_eq!(accept.reactivation_result_error_cause.unwrap().0, [(5, GmmCause::RestrictedServiceArea)]);
    assert!(!world.take_ladder().contains("UpdateSmContext"), "no user plane is requested");
    assert_eq!(world.amf.audit().registered, 1);
}

#[test]
fn outside_its_service_area_a_ue_may_deregister_and_release_sessions_only() {
    let (mut world, mut phone) = outside();
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    phone.accepted(&mut world);
    phone.context_setup_response(&mut world, &[]);
    phone.send(&mut world, gmm::RegistrationComplete::new());
    for (id, kind) in [(6, RequestType::InitialRequest), (5, RequestType::ModificationRequest)] {
        let mut transport = establishment(id);
        transport.request_type = Some(kind);
        phone.send(&mut world, transport);
        let GmmMessage::DlNasTransport(returned) = phone.receive(&mut world) else { panic!() };
        assert_eq!(
            (returned.cause, returned.pdu_session_id),
            (Some(GmmCause::RestrictedServiceArea), Some(id))
        );
    }
    world.take_ladder();
    let mut release = establishment(5);
    release.request_type = None;
    phone.send(&mut world, release);
    assert!(world.take_ladder().contains("smf  <- UpdateSmContext"));
    let setup = Some((NgapIe::PduResSetupReq, &b"setup"[..]));
    let problem = world.request(transfer(5, None, setup)).unwrap_err();
    assert_eq!(problem.cause(), Some(&pith_sbi::Cause::UeInNonAllowedArea));
    assert!(world.request(transfer(5, Some(b"release command"), None)).is_ok());
    let request = phone.deregistration_request(true);
    phone.send(&mut world, request);
    assert_eq!(world.amf.audit().registered, 0);
}

#[test]
fn outside_its_service_area_a_ue_answers_paging_without_user_plane() {
    let (mut world, mut phone) = outside();
    let setup = Some((NgapIe::PduResSetupReq, &b"setup"[..]));
    assert!(world.request(transfer(5, None, setup)).is_ok(), "a part of the registration area is allowed");
    let mut request = phone.service_request(ServiceType::MobileTerminatedServices);
    request.uplink_data_status = Some([5].into_iter().collect());
    let nas = phone.initial_nas(request);
    world.downlinks.clear();
    phone.connect(&mut world, nas);
    let GmmMessage::ServiceAccept(accept) = phone.receive(&mut world) else { panic!() };
    assert_eq!(accept.reactivation_result_error_cause.unwrap().0, [(5, GmmCause::RestrictedServiceArea)]);
    let ladder = world.take_ladder();
    assert!(!ladder.contains("UpdateSmContext"), "{ladder}");
    assert!(ladder.contains("smf  <- N1N2TransferFailureNotification"), "the SMF learns it: {ladder}");
}

#[test]
fn a_ue_whose_registration_area_is_not_allowed_is_not_paged_for_data() {
    let (mut world, mut phone) = (three_areas(), Phone::default());
    register(&mut world, &mut phone);
    phone.establish(&mut world, 5);
    phone.release(&mut world);
    change(&mut world, allowed(&[7]));
    world.take_ladder();
    let setup = Some((NgapIe::PduResSetupReq, &b"setup"[..]));
    let problem = world.request(transfer(5, None, setup)).unwrap_err();
    assert_eq!(problem.cause(), Some(&pith_sbi::Cause::UeInNonAllowedArea));
    assert!(!world.take_ladder().contains("Paging"));
}

/// A connected UE with restrictions that it has not confirmed, and with a message that its gNB has returned.
pub(super) fn restricted() -> World {
    let (mut world, mut phone) = (three_areas(), Phone::default());
    subscribe(
        &mut world,
        AccessAndMobilitySubscriptionData { forbidden_areas: areas(&[3]), ..allowed(&[1]) },
    );
    register(&mut world, &mut phone);
    phone.establish(&mut world, 5);
    let pdu = super::nas_non_delivery::undelivered(&mut world, b"command");
    super::nas_non_delivery::returns(&mut world, &phone, pdu, CauseRadioNetwork::xn_handover_triggered);
    change(&mut world, allowed(&[1, 2]));
    world
}

/// The next command over the UE's connection, and the list for its gNB.
fn commanded(
    world: &mut World,
    phone: &mut Phone,
) -> (Box<gmm::ConfigurationUpdateCommand>, Option<MobilityRestrictions>) {
    let at =
        world.downlinks.iter().position(|(_, it)| matches!(it, Message::DownlinkNasTransport(_))).unwrap();
    let Message::DownlinkNasTransport(transport) = world.downlinks[at].1.clone() else { panic!() };
    let GmmMessage::ConfigurationUpdateCommand(command) = phone.receive(world) else { panic!() };
    assert!(command.indication.unwrap().acknowledgement);
    (command, transport.mobility_restrictions)
}

#[test]
fn a_changed_service_area_is_sent_to_a_connected_ue_and_its_gnb() {
    let (mut world, mut phone) = (three_areas(), Phone::default());
    register(&mut world, &mut phone);
    change(&mut world, AccessAndMobilitySubscriptionData { forbidden_areas: areas(&[3]), ..allowed(&[1]) });
    let (command, gnb) = commanded(&mut world, &mut phone);
    assert_eq!(command.service_area_list, Some(list(true, &[tai()])));
    assert!(!command.tai_list.unwrap().contains(&third()), "a forbidden area");
    let gnb = gnb.unwrap();
    assert_eq!(gnb.service_areas[0].allowed, [Tac::new(1)]);
    assert_eq!(gnb.forbidden_areas[0].1, [Tac::new(3)]);
    world.expire(Timer::T3555);
    assert!(commanded(&mut world, &mut phone).1.is_some(), "repeated");
    phone.send(&mut world, gmm::ConfigurationUpdateComplete::new());
    assert_eq!(world.running(), []);
    // Without restrictions again, the whole network is allowed.
    change(&mut world, AccessAndMobilitySubscriptionData::default());
    let (command, gnb) = commanded(&mut world, &mut phone);
    let whole = PartialTaiList::WholePlmn(tai().plmn_id);
    let expected = ServiceAreaList(vec![ServiceArea { allowed: true, areas: whole }]);
    assert_eq!(command.service_area_list, Some(expected));
    assert!(command.tai_list.unwrap().contains(&third()));
    assert_eq!(gnb.unwrap().service_areas, []);
    phone.send(&mut world, gmm::ConfigurationUpdateComplete::new());
    let key = world.amf.shared.index.find_supi(&supi()).unwrap();
    assert_eq!(world.amf.ues.view(key).unwrap().restrictions, None);
}

#[test]
fn a_change_during_the_command_is_sent_after_it() {
    let (mut world, mut phone) = (three_areas(), Phone::default());
    register(&mut world, &mut phone);
    change(&mut world, allowed(&[1]));
    commanded(&mut world, &mut phone);
    change(&mut world, allowed(&[1, 2]));
    assert!(world.downlinks.is_empty());
    phone.send(&mut world, gmm::ConfigurationUpdateComplete::new());
    let (command, _) = commanded(&mut world, &mut phone);
    assert_eq!(command.service_area_list, Some(list(true, &[tai(), second()])));
}

#[test]
fn an_idle_ue_gets_a_changed_service_area_when_it_connects() {
    let (mut world, mut phone) = (three_areas(), Phone::default());
    register(&mut world, &mut phone);
    phone.release(&mut world);
    change(&mut world, allowed(&[1]));
    assert!(world.downlinks.is_empty());
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::ServiceAccept(_) = phone.receive(&mut world) else { panic!() };
    assert_eq!(commanded(&mut world, &mut phone).0.service_area_list, Some(list(true, &[tai()])));
    phone.context_setup_response(&mut world, &[]);
    phone.send(&mut world, gmm::ConfigurationUpdateComplete::new());
    assert_eq!(world.running(), []);
}

#[test]
fn a_connected_ue_that_is_outside_after_a_change_loses_its_user_plane() {
    let (mut world, mut phone) = (three_areas(), Phone::default());
    register(&mut world, &mut phone);
    phone.establish(&mut world, 5);
    change(&mut world, allowed(&[2]));
    assert_eq!(commanded(&mut world, &mut phone).0.service_area_list, Some(list(true, &[second()])));
    phone.send(&mut world, gmm::ConfigurationUpdateComplete::new());
    phone.released(&mut world);
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.sessions), (1, 0, 1));
}

#[test]
fn a_change_that_excludes_a_ue_ends_its_registration() {
    let nr = AccessAndMobilitySubscriptionData { rat_restrictions: vec![RatType::Nr], ..Default::default() };
    let cases = [(forbidden(&[1]), GmmCause::TrackingAreaNotAllowed), (nr, GmmCause::N1ModeNotAllowed)];
    for (restrictions, cause) in cases {
        let (mut world, mut phone) = (three_areas(), Phone::default());
        register(&mut world, &mut phone);
        change(&mut world, restrictions);
        let GmmMessage::DeregistrationRequestUeTerminated(request) = phone.receive(&mut world) else {
            panic!()
        };
        assert_eq!(request.cause, Some(cause));
        assert!(!request.deregistration_type.re_registration_required);
        phone.send(&mut world, gmm::DeregistrationAcceptUeTerminated::new());
        phone.released(&mut world);
        world.assert_empty();
    }
}

#[test]
fn the_pcf_gets_the_subscribed_service_area_and_its_own_applies() {
    let (mut world, mut phone) = (three_areas(), Phone::default());
    subscribe(&mut world, allowed(&[1, 2, 3]));
    world.script.insert(Operation::CreateAmPolicyAssociation, None);
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    phone.secure(&mut world, request);
    let Some((_, _, Request::CreateAmPolicyAssociation(create))) = world.calls.first() else { panic!() };
    assert_eq!(create.body.serv_area_res, service_area(RestrictionType::AllowedAreas, &[1, 2, 3]));
    let mut body = PolicyAssociation::new(pith_sbi::common::SupportedFeatures::default());
    body.serv_area_res = service_area(RestrictionType::NotAllowedAreas, &[3]);
    let location: Uri = "http://pcf:80/npcf-am-policy-control/v1/policies/9".parse().unwrap();
    let created = Response::PolicyAssociationCreated(Box::new(Created { location, body }));
    world.reply_to(Operation::CreateAmPolicyAssociation, Ok(created));
    assert_eq!(phone.accepted(&mut world).service_area_list, Some(list(false, &[third()])));
    phone.context_setup_response(&mut world, &[]);
    phone.send(&mut world, gmm::RegistrationComplete::new());
    let key = world.amf.key_of(&supi());
    let uri = AmPolicyUpdateNotify::callback_uri(&identity().api_root, &NfType::Amf, &key);
    let mut body = PolicyUpdate::new(uri.clone());
    body.serv_area_res = service_area(RestrictionType::NotAllowedAreas, &[2, 3]);
    world.downlinks.clear();
    world.request(AmPolicyUpdateNotify { uri, body }).unwrap();
    assert_eq!(
        commanded(&mut world, &mut phone).0.service_area_list,
        Some(list(false, &[second(), third()]))
    );
}

/// A connected UE with a session in the first area, the only one where it gets service.
fn connected() -> (World, Phone) {
    let (mut world, mut phone) = (three_areas(), Phone::default());
    subscribe(&mut world, allowed(&[1]));
    register(&mut world, &mut phone);
    phone.establish(&mut world, 5);
    world.take_ladder();
    (world, phone)
}

/// HANDOVER REQUIRED to the gNB of the second area.
fn require(world: &mut World, phone: &Phone) {
    let node = GlobalRanNodeId::Gnb { plmn: tai().plmn_id, id: 2, bits: 32 };
    let message =
        HandoverRequired { target: TargetId::RanNode { node, tai: second() }, ..required(phone, &[5]) };
    world.ngap(GNB, "HandoverRequired", message.encode());
}

#[test]
fn a_handover_to_a_tracking_area_without_service_is_refused() {
    let (mut world, phone) = connected();
    require(&mut world, &phone);
    let Some((GNB, Message::HandoverPreparationFailure(failure))) = world.downlinks.pop_back() else {
        panic!()
    };
    assert_eq!(failure.cause, Some(Cause::RadioNetwork(CauseRadioNetwork::ho_target_not_allowed)));
    assert_eq!(world.take_ladder(), "gnb1 -> HandoverRequired\ngnb1 <- HandoverPreparationFailure");
}

#[test]
fn the_target_gnb_of_a_handover_gets_the_restrictions() {
    let (mut world, mut phone) = (three_areas(), Phone::default());
    subscribe(&mut world, allowed(&[1, 2]));
    register(&mut world, &mut phone);
    phone.establish(&mut world, 5);
    world.script.insert(Operation::UpdateSmContext, None);
    require(&mut world, &phone);
    let reply = pith_sbi::nsmf_pdusession::SmContextUpdatedData {
        n2_sm_info: Some(b"setup".to_vec().into()),
        n2_sm_info_type: Some(pith_sbi::nsmf_pdusession::N2SmInfoType::PduResSetupReq),
        ..Default::default()
    };
    world.reply_to(Operation::UpdateSmContext, Ok(Response::SmContextUpdated(Box::new(reply))));
    let Some((OTHER_GNB, Message::HandoverRequest(request))) = world.downlinks.pop_back() else { panic!() };
    let restrictions = request.mobility_restrictions.unwrap();
    assert_eq!(restrictions.service_areas[0].allowed, [Tac::new(1), Tac::new(2)]);
}

#[test]
fn a_path_switch_to_a_tracking_area_without_service_fails_and_the_ue_is_released() {
    let (mut world, phone) = connected();
    let message = PathSwitchRequest {
        ran_ue_ngap_id: pith_types::RanUeNgapId(77),
        source_amf_ue_ngap_id: phone.amf_id.unwrap(),
        location: Some(UserLocation { tai: second(), ..location() }),
        security_capabilities: None,
        sessions: transfers(&[5]),
        failed: None,
    };
    world.ngap(OTHER_GNB, "PathSwitchRequest", message.encode());
    let at = |gnb, name: &str| world.downlinks.iter().any(|(to, it)| *to == gnb && it.name() == name);
    assert!(at(OTHER_GNB, "PathSwitchRequestFailure"), "{:?}", world.ladder);
    assert!(at(GNB, "UeContextReleaseCommand"), "{:?}", world.ladder);
    let updates = world.ladder.iter().filter(|line| line.contains("UpdateSmContext")).count();
    assert_eq!(updates, 1, "the session is deactivated: {:?}", world.ladder);
    assert_eq!(world.amf.audit().registered, 1);
}
