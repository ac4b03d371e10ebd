//! An AMF that serves two networks, whose gNBs broadcast both (TS 23.501 5.18): identities of AMF and serving network are those of the network
//! that the UE has selected, or that the source gNB has selected for it in a handover.

use super::n2_handover::required;
use super::world::*;
use crate::amf::config::ServedPlmn;
use crate::kit::{GnbInfo, Input, N2Input};
use pith_nas::GmmMessage;
use pith_nas::gmm::RegistrationComplete;
use pith_nas::ie::{MobileIdentity, RegistrationKind};
use pith_ngap::{
    GlobalRanNodeId, HandoverNotify, HandoverRequest, HandoverRequestAcknowledge, HandoverRequired, Message,
    TargetId, UserLocation,
};
use pith_sbi::common::Area;
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdatedData};
use pith_sbi::nudm_sdm::AccessAndMobilitySubscriptionData;
use pith_sbi::{Operation, Request, Response};
use pith_types::{Guami, Plmn, RanUeNgapId, Snssai, Tac, Tai};

fn plmns() -> [Plmn; 2] {
    [tai().plmn_id, "001/01".parse().unwrap()]
}

/// The tracking area in that network.
fn area(plmn: Plmn) -> Tai {
    Tai { plmn_id: plmn, ..tai() }
}

fn at(plmn: Plmn) -> UserLocation {
    UserLocation { tai: area(plmn), ..location() }
}

fn guami(plmn: Plmn) -> Guami {
    Guami { plmn_id: plmn, ..config().guami }
}

/// An AMF and gNBs of both networks. Requests of these operations stay open.
fn world(open: &[Operation]) -> World {
    let [_, second] = plmns();
    let mut config = config();
    config.plmns.push(ServedPlmn { plmn: second, slices: vec![Snssai::of_sst(1)] });
    config.tais.push(area(second));
    let mut world = World::with(config);
    set_up_gnbs(&mut world);
    open.iter().for_each(|operation| _ = world.script.insert(*operation, None));
    world
}

fn set_up_gnbs(world: &mut World) {
    for gnb in [GNB, OTHER_GNB] {
        let supported = plmns().map(|plmn| (area(plmn), vec![Snssai::of_sst(1)])).to_vec();
        world.set_up_gnb(gnb, GnbInfo { supported, ..World::gnb_info(gnb) }, false);
    }
}

/// Answers the open request of that operation with success, and returns it.
fn answer(world: &mut World, operation: Operation) -> Request {
    let request = world.calls.iter().find(|(_, _, request)| request.operation() == operation);
    let request = request.unwrap_or_else(|| panic!("{operation:?} was not called")).2.clone();
    let reply = world.usual(&request);
    world.reply_to(operation, reply);
    request
}

macro_rules! answered {
    ($world:expr, $operation:ident) => {
        match answer(&mut $world, Operation::$operation) {
            Request::$operation(request) => request,
            other => panic!("{other:?}"),
        }
    };
}

/// TS 33.501 6.1.1.4, TS 24.501 9.12.1: a UE derives its keys with the name of the network that it has selected, whichever is its home.
#[test]
fn a_ue_is_authenticated_for_the_network_that_it_has_selected() {
    let names = ["5G:mnc070.mcc999.3gppnetwork.org", "5G:mnc001.mcc001.3gppnetwork.org"];
    for (selected, name) in plmns().into_iter().zip(names) {
        for (suci, supi) in [
            ("suci-0-999-70-0-0-0-0000000001", "imsi-999700000000001"),
            ("suci-0-001-01-0-0-0-0000000001", "imsi-001010000000001"),
        ] {
            let mut world = world(&[Operation::Authenticate]);
            world.found = supi.parse().unwrap();
            let mut phone = Phone { location: at(selected), supi: supi.parse().unwrap(), ..Phone::default() };
            let mut request = phone.registration_request(RegistrationKind::Initial);
            request.mobile_identity = MobileIdentity::Suci(suci.parse().unwrap());
            let nas = phone.initial_nas(request.clone());
            phone.connect(&mut world, nas);
            let authenticate = answered!(world, Authenticate);
            assert_eq!(&*authenticate.body.serving_network_name, name);
            phone.authenticate(&mut world, request);
            assert_eq!(phone.guti.unwrap().guami, guami(selected));
        }
    }
}

#[test]
fn other_nfs_get_the_guami_and_the_serving_network_that_the_ue_has_selected() {
    for selected in plmns() {
        let mut world = world(&[
            Operation::ThreeGppRegistration,
            Operation::GetDataSets,
            Operation::CreateAmPolicyAssociation,
            Operation::PostSmContexts,
            Operation::UpdateThreeGppRegistration,
        ]);
        let mut phone = Phone { location: at(selected), ..Phone::default() };
        let request = phone.registration_request(RegistrationKind::Initial);
        let nas = phone.initial_nas(request.clone());
        phone.connect(&mut world, nas);
        phone.secure(&mut world, request);
        assert_eq!(answered!(world, ThreeGppRegistration).body.guami, guami(selected));
        assert_eq!(answered!(world, GetDataSets).plmn_id, Some(selected.into()));
        let policy = answered!(world, CreateAmPolicyAssociation).body;
        assert_eq!((policy.serving_plmn, policy.guami), (Some(selected.into()), Some(guami(selected))));
        let Some((_, Message::InitialContextSetupRequest(setup))) = world.downlinks.back() else { panic!() };
        assert_eq!(setup.guami, guami(selected));
        phone.accepted(&mut world);
        assert_eq!(phone.guti.unwrap().guami, guami(selected));
        phone.context_setup_response(&mut world, &[]);
        phone.send(&mut world, RegistrationComplete::new());
        phone.send(&mut world, establishment(5));
        let session = answered!(world, PostSmContexts).body;
        assert_eq!((session.serving_network.plmn_id, session.guami), (selected, Some(guami(selected))));
        let request = phone.deregistration_request(true);
        phone.send(&mut world, request);
        assert_eq!(answered!(world, UpdateThreeGppRegistration).body.guami, guami(selected));
    }
}

/// The AMF registers with its other GUAMI, and the subscription may be another one there.
#[test]
fn a_ue_that_moves_to_the_other_network_is_registered_there() {
    let [_, second] = plmns();
    let mut world = world(&[Operation::UpdateThreeGppRegistration]);
    let mut phone = Phone::default();
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    phone.release(&mut world);
    phone.location = at(second);
    world.script.insert(Operation::ThreeGppRegistration, None);
    world.script.insert(Operation::GetDataSets, None);
    for _ in 0..2 {
        let request = phone.registration_request(RegistrationKind::MobilityUpdating);
        let nas = phone.initial_nas(request);
        phone.connect(&mut world, nas);
        if !world.calls.is_empty() {
            assert_eq!(answered!(world, ThreeGppRegistration).body.guami, guami(second));
            assert_eq!(answered!(world, GetDataSets).plmn_id, Some(second.into()));
        }
        phone.accepted(&mut world);
        assert_eq!((phone.guti.unwrap().guami, world.amf.audit().sessions), (guami(second), 1));
        phone.context_setup_response(&mut world, &[]);
        phone.send(&mut world, RegistrationComplete::new());
        phone.release(&mut world);
    }
    assert!(!world.take_ladder().contains("SdmUnsubscribe"));
    // It is back at the first network, where it is not registered yet.
    phone.location = at(tai().plmn_id);
    let request = phone.deregistration_request(true);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    assert_eq!(answered!(world, UpdateThreeGppRegistration).body.guami, guami(second), "as registered");
}

/// The UE requests a registration update in the second network, up to the open request to the UDM.
fn moves(world: &mut World, phone: &mut Phone) {
    let [_, second] = plmns();
    phone.location = at(second);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request);
    phone.connect(world, nas);
}

/// The gNB fails before the UDM has answered.
#[test]
fn the_subscription_of_the_former_network_is_not_used_after_an_interrupted_registration() {
    let [_, second] = plmns();
    for is_registered in [false, true] {
        let (mut world, mut phone) = (world(&[]), Phone::default());
        phone.register(&mut world);
        phone.release(&mut world);
        world.script.insert(Operation::ThreeGppRegistration, None);
        world.script.insert(Operation::GetDataSets, None);
        moves(&mut world, &mut phone);
        if is_registered {
            answered!(world, ThreeGppRegistration);
        }
        world.input(Input::N2(N2Input::GnbDown { gnb: GNB }));
        set_up_gnbs(&mut world);
        world.calls.clear();
        moves(&mut world, &mut phone);
        assert_eq!(answered!(world, ThreeGppRegistration).body.guami, guami(second));
        assert_eq!(answered!(world, GetDataSets).plmn_id, Some(second.into()));
        phone.accepted(&mut world);
    }
}

/// The UDM has the AMF's registration in the first network still.
#[test]
fn a_ue_that_may_not_use_the_other_network_is_purged_in_the_first() {
    let [first, _] = plmns();
    let mut world = world(&[Operation::UpdateThreeGppRegistration]);
    let mut phone = Phone::default();
    phone.register(&mut world);
    phone.release(&mut world);
    let refusal = problem(pith_sbi::Cause::RoamingNotAllowed);
    world.script.insert(Operation::ThreeGppRegistration, refusal);
    moves(&mut world, &mut phone);
    let GmmMessage::RegistrationReject(_) = phone.receive(&mut world) else { panic!() };
    phone.released(&mut world);
    assert_eq!(answered!(world, UpdateThreeGppRegistration).body.guami, guami(first));
}

/// The SMF has prepared the session of a UE for a handover from the first network to the second.
fn prepared() -> (World, Phone, HandoverRequest) {
    let [_, second] = plmns();
    let mut world = world(&[]);
    let mut subscription = subscription(&[1]);
    let am_data = AccessAndMobilitySubscriptionData {
        forbidden_areas: vec![Area { area_code: None, tacs: vec![Tac::new(9)] }],
        ..subscription.am_data.take().unwrap_or_default()
    };
    subscription.am_data = Some(am_data);
    let subscription = Response::SubscriptionDataSets(Box::new(subscription));
    world.script.insert(Operation::GetDataSets, Some(Ok(subscription)));
    let mut phone = Phone::default();
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    world.script.insert(Operation::UpdateSmContext, None);
    let node = GlobalRanNodeId::Gnb { plmn: tai().plmn_id, id: 2, bits: 32 };
    let target = TargetId::RanNode { node, tai: area(second) };
    let message = HandoverRequired { target, ..required(&phone, &[5]) };
    world.ngap(GNB, "HandoverRequired", message.encode());
    smf_answers(&mut world, N2SmInfoType::PduResSetupReq);
    let Some((OTHER_GNB, Message::HandoverRequest(request))) = world.downlinks.pop_back() else { panic!() };
    (world, phone, request)
}

fn smf_answers(world: &mut World, kind: N2SmInfoType) {
    let reply = SmContextUpdatedData {
        n2_sm_info: Some(b"transfer".to_vec().into()),
        n2_sm_info_type: Some(kind),
        ..Default::default()
    };
    world.reply_to(Operation::UpdateSmContext, Ok(Response::SmContextUpdated(Box::new(reply))));
}

/// TS 23.502 4.9.1.3.1: the source gNB selects a network of the target. The GUAMI is as in INITIAL CONTEXT SETUP REQUEST afterwards.
#[test]
fn the_target_gnb_gets_the_guami_in_the_network_that_was_selected_for_it() {
    let [_, second] = plmns();
    let (mut world, mut phone, request) = prepared();
    assert_eq!(request.guami, guami(second));
    assert_eq!(request.mobility_restrictions.unwrap().serving_plmn, second);
    let message = HandoverRequestAcknowledge {
        amf_ue_ngap_id: request.amf_ue_ngap_id,
        ran_ue_ngap_id: RanUeNgapId(77),
        admitted: Some(transfers(&[5])),
        failed: None,
        target_to_source: b"to source".to_vec(),
        diagnostics: None,
    };
    world.ngap(OTHER_GNB, "HandoverRequestAcknowledge", message.encode());
    smf_answers(&mut world, N2SmInfoType::HandoverCmd);
    let message = HandoverNotify {
        amf_ue_ngap_id: request.amf_ue_ngap_id,
        ran_ue_ngap_id: RanUeNgapId(77),
        location: Some(at(second)),
    };
    world.ngap(OTHER_GNB, "HandoverNotify", message.encode());
    world.script.clear();
    world.reply_to(Operation::UpdateSmContext, Ok(Response::SmContextUpdated(Default::default())));
    phone.released(&mut world);
    (phone.gnb, phone.ran_id, phone.amf_id) = (OTHER_GNB, RanUeNgapId(77), Some(request.amf_ue_ngap_id));
    phone.location = at(second);
    world.downlinks.clear();
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    phone.send(&mut world, request);
    phone.accepted(&mut world);
    assert_eq!(phone.guti.unwrap().guami, guami(second));
    phone.send(&mut world, RegistrationComplete::new());
    phone.release(&mut world);
    let request = phone.service_request(pith_nas::ie::ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let Some((_, Message::InitialContextSetupRequest(setup))) = world.downlinks.back() else { panic!() };
    assert_eq!(setup.guami, guami(second));
}

/// The context of a UE in the AMF's second network, which is to be handed over to the first.
pub(super) fn in_second_network() -> World {
    let [first, second] = plmns();
    let mut world = world(&[]);
    let mut phone = Phone { location: at(second), ..Phone::default() };
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    world.script.insert(Operation::UpdateSmContext, None);
    let node = GlobalRanNodeId::Gnb { plmn: first, id: 2, bits: 32 };
    let target = TargetId::RanNode { node, tai: area(first) };
    let message = HandoverRequired { target, ..required(&phone, &[5]) };
    world.ngap(GNB, "HandoverRequired", message.encode());
    world
}

#[test]
fn the_network_that_was_selected_is_forgotten_with_the_handover() {
    let mut world = in_second_network();
    let networks = |world: &World| {
        let (_, ue) = world.amf.ues.iter().next().unwrap();
        (ue.udm_plmn, ue.target_plmn)
    };
    let [first, second] = plmns();
    assert_eq!(networks(&world), (Some(second), Some(first)));
    world.reply_to(Operation::UpdateSmContext, problem(pith_sbi::Cause::N2SmError).unwrap());
    assert_eq!(networks(&world), (Some(second), None));
}
