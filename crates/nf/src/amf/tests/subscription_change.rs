//! Changed subscription data of a registered UE (TS 23.502 4.5.1; TS 23.501 5.15.5.2.2).

use super::world::*;
use crate::amf::{Amf, AmfConfig};
use crate::kit::{GnbInfo, Input, N2Input, NetworkFunction, Rng, StoreScope, Timer, Tracking};
use crate::testing::Stored;
use pith_nas::gmm::{ConfigurationUpdateCommand, ConfigurationUpdateComplete};
use pith_nas::ie::{Nssai, RegistrationKind, ServiceType, SnssaiRejection, TaiList};
use pith_nas::{GmmMessage, gmm};
use pith_ngap::Message;
use pith_sbi::common::SupportedFeatures;
use pith_sbi::npcf_ampolicycontrol::PolicyAssociation;
use pith_sbi::nudm_sdm::{ModificationNotification, SdmChangeNotification};
use pith_sbi::{Cause, Created, NfType, Operation, Problem, Response, Uri};
use pith_types::{Ambr, BitRate, Snssai, Tac, Tai};

/// An AMF with the slices 1 and 2, and a subscription to these SSTs.
fn served(slices: &[u8], ssts: &[u8]) -> World {
    let mut world = World::with(serving(slices));
    world.amf.track_contexts(TRACKING);
    subscribe(&mut world, ssts, 100);
    world
}

fn serving(slices: &[u8]) -> AmfConfig {
    let slices = slices.iter().copied().map(Snssai::of_sst).collect();
    AmfConfig { retains_ues: true, ..AmfConfig::new(identity(), config().guami, slices, vec![tai()]) }
}

const TRACKING: Tracking =
    Tracking { reserved_counts: 16, is_late: false, whole: false, by_procedure: false };

/// The process ends, and the next one serves these slices.
fn restart(world: &mut World, slices: &[u8]) {
    let mut stored = Stored::default();
    stored.store(&mut world.amf, StoreScope::Changed);
    let mut amf = Amf::new(serving(slices), Rng::from_number(2));
    amf.reload_contexts();
    amf.track_contexts(TRACKING);
    stored.restore(world.now, &mut amf, false);
    world.replace_amf(amf);
    world.connect_gnbs();
}

fn subscribe(world: &mut World, ssts: &[u8], mbps: u64) {
    let mut data = subscription(ssts);
    let ambr = Ambr { uplink: BitRate::mbps(mbps), downlink: BitRate::mbps(mbps) };
    data.am_data.as_mut().unwrap().subscribed_ue_ambr = Some(ambr);
    world.script.insert(Operation::GetDataSets, Some(Ok(Response::SubscriptionDataSets(Box::new(data)))));
}

pub(super) fn notified(world: &mut World) {
    let key = world.amf.key_of(&supi());
    let uri = SdmChangeNotification::callback_uri(&identity().api_root, &NfType::Amf, &key);
    world.request(SdmChangeNotification { uri, body: ModificationNotification::new(Vec::new()) }).unwrap();
}

/// Registers with a request for those slices.
fn register(world: &mut World, phone: &mut Phone, ssts: &[u8]) {
    let mut request = phone.registration_request(RegistrationKind::Initial);
    request.requested_nssai = Some(ssts.iter().map(|sst| Snssai::of_sst(*sst)).collect());
    let nas = phone.initial_nas(request.clone());
    phone.connect(world, nas);
    phone.secure(world, request);
    let accept = phone.accepted(world);
    assert_eq!(sst_of(accept.allowed_nssai.as_ref()), ssts);
    phone.context_setup_response(world, &[]);
    phone.send(world, gmm::RegistrationComplete::new());
    world.take_ladder();
    world.downlinks.clear();
}

fn sst_of(nssai: Option<&Nssai>) -> Vec<u8> {
    nssai.into_iter().flat_map(Nssai::iter).map(|slice| slice.sst).collect()
}

/// The command for the UE, and the Allowed NSSAI for its gNB.
fn commanded(world: &mut World, phone: &mut Phone) -> (Box<ConfigurationUpdateCommand>, Vec<u8>) {
    let at = world.downlinks.iter().position(|(_, it)| matches!(it, Message::DownlinkNasTransport(_)));
    let Message::DownlinkNasTransport(transport) = world.downlinks[at.unwrap()].1.clone() else { panic!() };
    let GmmMessage::ConfigurationUpdateCommand(command) = phone.receive(world) else { panic!() };
    assert!(command.indication.unwrap().acknowledgement);
    (command, transport.allowed_nssai.iter().flatten().map(|slice| slice.sst).collect())
}

#[test]
fn a_slice_that_is_not_subscribed_any_longer_leaves_the_allowed_nssai() {
    let (mut world, mut phone) = (served(&[1, 2], &[1, 2]), Phone::default());
    register(&mut world, &mut phone, &[1, 2]);
    subscribe(&mut world, &[1], 100);
    notified(&mut world);
    let (command, of_gnb) = commanded(&mut world, &mut phone);
    assert_eq!((sst_of(command.allowed_nssai.as_ref()), of_gnb), (vec![1], vec![1]));
    assert_eq!(command.rejected_nssai.unwrap().0, [(Snssai::of_sst(2), SnssaiRejection::NotAvailableInPlmn)]);
    assert_eq!(sst_of(command.configured_nssai.as_ref()), [1]);
    assert!(command.network_slicing_indication.unwrap().subscription_changed);
    phone.send(&mut world, ConfigurationUpdateComplete::new());
    assert!(!world.running().contains(&Timer::T3555));
    world.take_ladder();
    notified(&mut world);
    assert!(!world.take_ladder().contains("DownlinkNasTransport"), "it has them");
}

#[test]
fn a_further_slice_is_sent_as_a_configured_one() {
    let (mut world, mut phone) = (served(&[1, 2], &[1]), Phone::default());
    register(&mut world, &mut phone, &[1]);
    subscribe(&mut world, &[1, 2, 7], 100);
    notified(&mut world);
    let (command, of_gnb) = commanded(&mut world, &mut phone);
    assert_eq!((command.allowed_nssai, of_gnb), (None, vec![]));
    assert_eq!(sst_of(command.configured_nssai.as_ref()), [1, 2], "slice 7 is not served here");
}

#[test]
fn a_ue_that_loses_all_its_slices_uses_the_default_ones() {
    let (mut world, mut phone) = (served(&[1, 2], &[1, 2]), Phone::default());
    register(&mut world, &mut phone, &[2]);
    subscribe(&mut world, &[1], 100);
    notified(&mut world);
    assert_eq!(sst_of(commanded(&mut world, &mut phone).0.allowed_nssai.as_ref()), [1]);
}

#[test]
fn an_idle_ue_gets_its_slices_when_it_connects() {
    let (mut world, mut phone) = (served(&[1, 2], &[1, 2]), Phone::default());
    register(&mut world, &mut phone, &[1, 2]);
    phone.release(&mut world);
    world.take_ladder();
    subscribe(&mut world, &[1], 100);
    notified(&mut world);
    assert_eq!(world.take_ladder(), "nf   -> SdmChangeNotification\nnf   <- 204\nudm  <- GetDataSets");
    serve(&mut world, &mut phone);
    assert_eq!(sst_of(commanded(&mut world, &mut phone).0.allowed_nssai.as_ref()), [1]);
}

/// The notification has been answered, and comes once: for example the NRF is not reachable when the data are to be requested.
#[test]
fn data_that_the_udm_does_not_give_are_requested_again_after_some_time() {
    for cause in [Cause::NfDiscoveryFailure, Cause::TimedOutRequest, Cause::NfCongestion] {
        let (mut world, mut phone) = (served(&[1, 2], &[1, 2]), Phone::default());
        register(&mut world, &mut phone, &[1, 2]);
        world.script.insert(Operation::GetDataSets, Some(Err(Problem::new(cause).into())));
        notified(&mut world);
        subscribe(&mut world, &[1], 100);
        world.take_ladder();
        phone.release(&mut world);
        serve(&mut world, &mut phone);
        assert!(!world.take_ladder().contains("GetDataSets"), "not before its time");
        world.expire(Timer::SubscriptionData);
        assert!(world.take_ladder().contains("udm  <- GetDataSets"));
        assert_eq!(sst_of(commanded(&mut world, &mut phone).0.allowed_nssai.as_ref()), [1]);
    }
}

/// Two areas: one with slice 1, one with the slices 1 and 2.
fn in_two_areas(ssts: &[u8]) -> World {
    let mut config = serving(&[1, 2]);
    config.tais.push(there());
    let mut world = World::with(config);
    world.amf.track_contexts(TRACKING);
    let slices = |ssts: &[u8]| ssts.iter().copied().map(Snssai::of_sst).collect();
    let supported = vec![(tai(), slices(&[1])), (there(), slices(&[1, 2]))];
    world.set_up_gnb(GNB, GnbInfo { supported, ..World::gnb_info(GNB) }, false);
    world.input(Input::N2(N2Input::GnbDown { gnb: OTHER_GNB }));
    world.downlinks.clear();
    subscribe(&mut world, ssts, 100);
    world
}

fn there() -> Tai {
    Tai { tac: Tac::new(2), ..tai() }
}

/// A connected UE gets DEREGISTRATION REQUEST, an idle one when it connects, or is deregistered. TS 23.501 5.15.5.2.2.
#[test]
fn a_slice_that_the_tracking_area_does_not_support_is_not_allowed_after_a_change() {
    for is_idle in [false, true] {
        let (mut world, mut phone) = (in_two_areas(&[1]), Phone::default());
        register(&mut world, &mut phone, &[1]);
        let (_, ue) = world.amf.ues.iter().next().unwrap();
        assert_eq!(ue.registration_area, [tai(), there()]);
        drop(ue);
        if is_idle {
            phone.release(&mut world);
        }
        subscribe(&mut world, &[2], 100);
        notified(&mut world);
        if is_idle {
            serve(&mut world, &mut phone);
        }
        let GmmMessage::DeregistrationRequestUeTerminated(request) = phone.receive(&mut world) else {
            panic!()
        };
        assert!(request.deregistration_type.re_registration_required);
    }
}

#[test]
fn the_registration_area_supports_the_slices_that_are_allowed_after_a_change() {
    let (mut world, mut phone) = (in_two_areas(&[1]), Phone::default());
    phone.location.tai = there();
    register(&mut world, &mut phone, &[1]);
    subscribe(&mut world, &[2], 100);
    notified(&mut world);
    let (command, of_gnb) = commanded(&mut world, &mut phone);
    assert_eq!((sst_of(command.allowed_nssai.as_ref()), of_gnb), (vec![2], vec![2]));
    assert_eq!(command.tai_list, Some(TaiList::of(&[there()])));
    let area = |world: &World| world.amf.ues.iter().next().unwrap().1.registration_area.clone();
    assert_eq!(area(&world), [tai(), there()], "it may be paged there until it confirms");
    phone.send(&mut world, ConfigurationUpdateComplete::new());
    assert_eq!(area(&world), [there()]);
}

/// TS 23.501 5.15.4.2; TS 24.501 5.4.4.2.
#[test]
fn an_idle_ue_gets_its_configured_nssai_when_it_requests_service() {
    let (mut world, mut phone) = (served(&[1, 2], &[1]), Phone::default());
    register(&mut world, &mut phone, &[1]);
    phone.release(&mut world);
    subscribe(&mut world, &[1, 2], 100);
    notified(&mut world);
    restart(&mut world, &[1, 2]);
    // The first command is not answered.
    for _ in 0..2 {
        serve(&mut world, &mut phone);
        let command = commanded(&mut world, &mut phone).0;
        assert_eq!(sst_of(command.configured_nssai.as_ref()), [1, 2]);
        assert!(command.network_slicing_indication.unwrap().subscription_changed);
    }
    phone.send(&mut world, ConfigurationUpdateComplete::new());
    phone.release(&mut world);
    serve(&mut world, &mut phone);
    assert!(!world.running().contains(&Timer::T3555), "it has it");
}

/// TS 24.501 5.5.1.3.4.
#[test]
fn an_idle_ue_gets_its_configured_nssai_when_it_registers() {
    for kind in [RegistrationKind::MobilityUpdating, RegistrationKind::PeriodicUpdating] {
        let (mut world, mut phone) = (served(&[1, 2], &[1]), Phone::default());
        register(&mut world, &mut phone, &[1]);
        phone.release(&mut world);
        subscribe(&mut world, &[1, 2], 100);
        notified(&mut world);
        for is_new in [true, false] {
            let mut request = phone.registration_request(kind);
            let is_mobile = kind == RegistrationKind::MobilityUpdating;
            request.requested_nssai = is_mobile.then(|| [Snssai::of_sst(1)].into_iter().collect());
            let nas = phone.initial_nas(request);
            phone.connect(&mut world, nas);
            let accept = phone.accepted(&mut world);
            assert_eq!(sst_of(accept.configured_nssai.as_ref()), if is_new { vec![1, 2] } else { vec![] });
            let indication = accept.network_slicing_indication.unwrap_or_default();
            assert_eq!(indication.subscription_changed, is_new);
            assert_eq!(world.running().contains(&Timer::T3550), is_new || is_mobile);
            phone.send(&mut world, gmm::RegistrationComplete::new());
            assert!(!world.running().contains(&Timer::T3555));
            phone.release(&mut world);
        }
    }
}

/// A registered UE in CM-IDLE that is to get a Configured NSSAI.
pub(super) fn with_new_slice() -> World {
    let (mut world, mut phone) = (served(&[1, 2], &[1]), Phone::default());
    register(&mut world, &mut phone, &[1]);
    phone.release(&mut world);
    subscribe(&mut world, &[1, 2], 100);
    notified(&mut world);
    world
}

fn serve(world: &mut World, phone: &mut Phone) {
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    world.downlinks.clear();
    phone.connect(world, nas);
    let GmmMessage::ServiceAccept(_) = phone.receive(world) else { panic!() };
}

/// A slice leaves `network.slices` while the core does not run.
#[test]
fn after_a_restart_a_ue_gets_slices_that_are_served() {
    let (mut world, mut phone) = (served(&[1, 2], &[1, 2]), Phone::default());
    register(&mut world, &mut phone, &[1, 2]);
    phone.release(&mut world);
    restart(&mut world, &[1]);
    serve(&mut world, &mut phone);
    let command = commanded(&mut world, &mut phone).0;
    assert_eq!(sst_of(command.allowed_nssai.as_ref()), [1]);
    let rejected = command.rejected_nssai.unwrap().0;
    assert_eq!(rejected, [(Snssai::of_sst(2), SnssaiRejection::NotAvailableInRegistrationArea)]);
}

#[test]
fn a_connecting_ue_without_any_slice_registers_again() {
    let (mut world, mut phone) = (served(&[1, 2], &[1, 2]), Phone::default());
    register(&mut world, &mut phone, &[2]);
    phone.release(&mut world);
    restart(&mut world, &[3]);
    serve(&mut world, &mut phone);
    let GmmMessage::DeregistrationRequestUeTerminated(request) = phone.receive(&mut world) else { panic!() };
    assert!(request.deregistration_type.re_registration_required);
}

#[test]
fn a_change_during_a_registration_is_read_after_it() {
    let (mut world, mut phone) = (served(&[1], &[1]), Phone::default());
    world.script.insert(Operation::CreateAmPolicyAssociation, None);
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    phone.secure(&mut world, request);
    subscribe(&mut world, &[1], 50);
    world.take_ladder();
    notified(&mut world);
    assert_eq!(world.take_ladder(), "nf   -> SdmChangeNotification\nnf   <- 204");
    let location = Uri::new(&identity().api_root, "/npcf-am-policy-control/v1/policies/9");
    let body = PolicyAssociation::new(SupportedFeatures::default());
    let policy = Ok(Response::PolicyAssociationCreated(Box::new(Created { location, body })));
    world.reply_to(Operation::CreateAmPolicyAssociation, policy);
    phone.accepted(&mut world);
    assert!(world.take_ladder().contains("udm  <- GetDataSets"));
}

/// A PCF of an earlier version, or another vendor's, decides what was subscribed.
#[test]
fn a_policy_that_was_the_subscription_does_not_hide_a_change() {
    let (mut world, mut phone) = (served(&[1], &[1]), Phone::default());
    let location = Uri::new(&identity().api_root, "/npcf-am-policy-control/v1/policies/9");
    let mut body = PolicyAssociation::new(SupportedFeatures::default());
    body.ue_ambr = Some(Ambr { uplink: BitRate::mbps(100), downlink: BitRate::mbps(100) });
    let created = Response::PolicyAssociationCreated(Box::new(Created { location, body }));
    world.script.insert(Operation::CreateAmPolicyAssociation, Some(Ok(created)));
    register(&mut world, &mut phone, &[1]);
    subscribe(&mut world, &[1], 50);
    notified(&mut world);
    let Some((_, Message::UeContextModificationRequest(message))) = world.downlinks.pop_back() else {
        panic!()
    };
    assert_eq!(message.ue_ambr.unwrap().uplink, BitRate::mbps(50));
}

/// The document says that the data are to be read.
#[test]
fn a_change_that_a_restart_interrupts_is_read_by_the_next_process() {
    let (mut world, mut phone) = (served(&[1], &[1]), Phone::default());
    register(&mut world, &mut phone, &[1]);
    phone.release(&mut world);
    world.script.insert(Operation::GetDataSets, None);
    notified(&mut world);
    subscribe(&mut world, &[1], 50);
    world.take_ladder();
    restart(&mut world, &[1]);
    assert!(world.take_ladder().contains("udm  <- GetDataSets"));
}
