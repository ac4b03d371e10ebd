//! De-registration (TS 24.501 5.5.2).

use super::world::{Phone, World, problem, supi};
use crate::kit::{Deregister, Timer};
use pith_nas::gmm::{DeregistrationAcceptUeTerminated, DeregistrationRequestUeTerminated};
use pith_nas::ie::{AccessType, RegistrationKind, ServiceType};
use pith_nas::{GmmCause, GmmMessage};
use pith_ngap::{Cause, CauseNas};
use pith_sbi::{Operation, Request};

fn with_session() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    world.take_ladder();
    (world, phone)
}

const EVERYTHING_ENDS: &str = "\
smf  <- ReleaseSmContext
pcf  <- DeleteAmPolicyAssociation
udm  <- SdmUnsubscribe
udm  <- UpdateThreeGppRegistration";

#[test]
fn a_deregistered_phone_leaves_no_state() {
    let (mut world, mut phone) = with_session();
    let request = phone.deregistration_request(false);
    phone.send(&mut world, request);
    assert_eq!(
        world.take_ladder(),
        format!(
            "\
gnb1 -> UplinkNasTransport
gnb1 <- DownlinkNasTransport
gnb1 <- UeContextReleaseCommand
{EVERYTHING_ENDS}"
        )
    );
    assert!(matches!(phone.receive(&mut world), GmmMessage::DeregistrationAcceptUeOriginating(_)));
    assert_eq!(phone.released(&mut world), Cause::Nas(CauseNas::deregister));
    world.assert_empty();
}

#[test]
fn a_phone_that_is_switched_off_gets_no_answer() {
    let (mut world, mut phone) = with_session();
    let request = phone.deregistration_request(true);
    phone.send(&mut world, request);
    assert!(!world.take_ladder().contains("DownlinkNasTransport"));
    phone.released(&mut world);
    world.assert_empty();
}

/// TS 24.501 5.5.2.2.3: it is not registered there.
#[test]
fn a_phone_that_leaves_non_3gpp_access_stays_registered_over_3gpp_access() {
    let (mut world, mut phone) = with_session();
    let mut request = phone.deregistration_request(false);
    request.deregistration_type.access = AccessType::NonThreeGpp;
    phone.send(&mut world, request);
    assert!(matches!(phone.receive(&mut world), GmmMessage::DeregistrationAcceptUeOriginating(_)));
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.sessions, audit.connected), (1, 1, 1));
}

#[test]
fn a_phone_deregisters_from_cm_idle() {
    let (mut world, mut phone) = with_session();
    phone.release(&mut world);
    let request = phone.deregistration_request(false);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    assert!(matches!(phone.receive(&mut world), GmmMessage::DeregistrationAcceptUeOriginating(_)));
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn the_deregistration_of_an_unknown_phone_is_accepted() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let request = phone.deregistration_request(false);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    assert!(matches!(phone.receive(&mut world), GmmMessage::DeregistrationAcceptUeOriginating(_)));
    phone.released(&mut world);
    world.assert_empty();
}

/// The UDM sends a DeregistrationNotification.
pub(super) fn notified(world: &mut World, reason: &str) {
    use pith_sbi::nudm_uecm::{DeregistrationData, DeregistrationNotification};
    let key = world.amf.key_of(&supi());
    let root = &super::world::identity().api_root;
    let uri = DeregistrationNotification::callback_uri(root, &pith_sbi::NfType::Amf, &key);
    let reply = world.request(DeregistrationNotification { uri, body: DeregistrationData::new(reason) });
    assert!(reply.is_ok(), "{reply:?}");
}

fn told(world: &mut World, phone: &mut Phone) -> Box<DeregistrationRequestUeTerminated> {
    let GmmMessage::DeregistrationRequestUeTerminated(request) = phone.receive(world) else { panic!() };
    request
}

/// A UE with a session that received DEREGISTRATION REQUEST, because its subscription is withdrawn.
fn withdrawn() -> (World, Phone) {
    let (mut world, mut phone) = with_session();
    notified(&mut world, "SUBSCRIPTION_WITHDRAWN");
    told(&mut world, &mut phone);
    world.take_ladder();
    (world, phone)
}

#[test]
fn a_withdrawn_subscription_deregisters_the_phone() {
    let (mut world, mut phone) = with_session();
    notified(&mut world, "SUBSCRIPTION_WITHDRAWN");
    let request = told(&mut world, &mut phone);
    assert_eq!(request.cause, Some(GmmCause::FiveGsServicesNotAllowed));
    assert!(!request.deregistration_type.re_registration_required);
    phone.send(&mut world, DeregistrationAcceptUeTerminated::new());
    phone.released(&mut world);
    world.assert_empty();
}

/// The UDM repeats it, and an operator, too: the UE has the request, and T3522 goes on.
#[test]
fn a_withdrawal_that_is_notified_again_sends_no_second_request() {
    let (mut world, mut phone) = withdrawn();
    let until = *world.timers.values().next().unwrap();
    world.now = world.now + crate::kit::Duration::from_secs(3);
    notified(&mut world, "SUBSCRIPTION_WITHDRAWN");
    world.operate(supi(), Deregister::Withdrawn);
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    assert_eq!(world.timers.values().collect::<Vec<_>>(), [&until]);
    phone.send(&mut world, DeregistrationAcceptUeTerminated::new());
    phone.released(&mut world);
    world.assert_empty();
}

/// It was to register again: its next registration is refused by the UDM.
#[test]
fn a_withdrawal_while_the_phone_is_to_register_again_deletes_its_keys() {
    let (mut world, mut phone) = with_session();
    world.operate(supi(), Deregister::Anew);
    told(&mut world, &mut phone);
    notified(&mut world, "SUBSCRIPTION_WITHDRAWN");
    phone.send(&mut world, DeregistrationAcceptUeTerminated::new());
    phone.released(&mut world);
    world.assert_empty();
    assert_eq!(world.amf.audit().retained, 0);
}

#[test]
fn an_operator_deregisters_phones_of_this_shard() {
    let (mut world, mut phone) = with_session();
    let nobody = supi().consecutive(2).unwrap().pop().unwrap();
    assert_eq!(world.operate(nobody, Deregister::Anew), [] as [serde_json::Value; 0]);
    assert_eq!(world.operate(supi(), Deregister::Anew), [serde_json::json!({ "supi": supi() })]);
    assert!(told(&mut world, &mut phone).deregistration_type.re_registration_required);
    phone.send(&mut world, DeregistrationAcceptUeTerminated::new());
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn a_phone_in_cm_idle_is_deregistered_without_signalling() {
    let (mut world, mut phone) = with_session();
    phone.release(&mut world);
    assert_eq!(world.operate(supi(), Deregister::Withdrawn).len(), 1);
    world.assert_empty();
}

#[test]
fn case_a_t3522_retransmits_the_request_and_then_deregisters_locally() {
    let (mut world, mut phone) = with_session();
    notified(&mut world, "REREGISTRATION_REQUIRED");
    assert!(told(&mut world, &mut phone).deregistration_type.re_registration_required);
    for _ in 0..4 {
        world.expire(Timer::T3522);
        told(&mut world, &mut phone);
    }
    world.expire(Timer::T3522);
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn case_b_a_lost_connection_ends_the_deregistration() {
    let (mut world, mut phone) = withdrawn();
    phone.release(&mut world);
    world.assert_empty();
}

#[test]
fn a_service_request_does_not_stop_the_deregistration() {
    let (mut world, mut phone) = withdrawn();
    let request = phone.service_request(ServiceType::Signalling);
    phone.send(&mut world, request);
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport");
}

#[test]
fn an_update_does_not_stop_the_deregistration() {
    let (mut world, mut phone) = withdrawn();
    for kind in [RegistrationKind::MobilityUpdating, RegistrationKind::PeriodicUpdating] {
        let request = phone.registration_request(kind);
        phone.send(&mut world, request);
        assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport");
    }
    assert_eq!(world.running(), [Timer::T3522]);
}

#[test]
fn a_removed_subscriber_can_not_register_again() {
    for connects_anew in [false, true] {
        let (mut world, mut phone) = withdrawn();
        world.script.insert(Operation::ThreeGppRegistration, problem(pith_sbi::Cause::UserNotFound));
        if connects_anew {
            let request = phone.registration_request(RegistrationKind::MobilityUpdating);
            let nas = phone.initial_nas(request);
            phone.connect(&mut world, nas);
        } else {
            let request = phone.registration_request(RegistrationKind::Initial);
            phone.send(&mut world, request);
        }
        let GmmMessage::RegistrationReject(_) = phone.receive(&mut world) else {
            panic!("anew: {connects_anew}")
        };
        let ladder = world.take_ladder();
        assert!(ladder.contains("smf  <- ReleaseSmContext"), "{ladder}");
        assert!(ladder.contains("udm  <- ThreeGppRegistration"), "{ladder}");
        assert_eq!((world.amf.audit().registered, world.amf.audit().sessions), (0, 0));
    }
}

#[test]
fn an_initial_registration_stops_the_deregistration() {
    let (mut world, mut phone) = with_session();
    notified(&mut world, "REREGISTRATION_REQUIRED");
    told(&mut world, &mut phone);
    let request = phone.registration_request(RegistrationKind::Initial);
    phone.send(&mut world, request);
    phone.accepted(&mut world);
    assert_eq!(world.amf.audit().registered, 1);
}

#[test]
fn a_phone_served_elsewhere_is_removed_without_signalling_to_it_or_the_udm() {
    let (mut world, mut phone) = with_session();
    notified(&mut world, "UE_INITIAL_REGISTRATION");
    let ladder = world.take_ladder();
    assert!(
        !ladder.contains("UpdateThreeGppRegistration") && !ladder.contains("DownlinkNasTransport"),
        "{ladder}"
    );
    assert!(ladder.contains("smf  <- ReleaseSmContext"), "{ladder}");
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn a_phone_in_cm_idle_is_removed_without_paging() {
    let (mut world, mut phone) = with_session();
    phone.release(&mut world);
    world.take_ladder();
    notified(&mut world, "SUBSCRIPTION_WITHDRAWN");
    assert!(!world.take_ladder().contains("Paging"));
    world.assert_empty();
    // The UE gets the reject when it connects again.
    let request = phone.service_request(ServiceType::Data);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    phone.security = None;
    let GmmMessage::ServiceReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::UeIdentityCannotBeDerivedByTheNetwork);
}

#[test]
fn a_silent_phone_is_deregistered_implicitly() {
    let (mut world, mut phone) = with_session();
    phone.release(&mut world);
    world.take_ladder();
    world.expire(Timer::MobileReachable);
    assert_eq!(world.amf.audit().registered, 1, "it has some time more");
    world.expire(Timer::ImplicitDeregistration);
    assert_eq!(
        world.take_ladder(),
        format!("      MobileReachable\n      ImplicitDeregistration\n{EVERYTHING_ENDS}")
    );
    world.assert_empty();
}

#[test]
fn resources_at_other_nfs_are_deleted_by_their_own_uris() {
    let (mut world, mut phone) = with_session();
    for operation in
        [Operation::ReleaseSmContext, Operation::DeleteAmPolicyAssociation, Operation::SdmUnsubscribe]
    {
        world.script.insert(operation, None);
    }
    let request = phone.deregistration_request(true);
    phone.send(&mut world, request);
    let names = world.calls.iter().map(|(_, _, request)| match request {
        Request::ReleaseSmContext(request) => request.sm_context_ref.clone(),
        Request::DeleteAmPolicyAssociation(request) => request.pol_asso_id.clone(),
        Request::SdmUnsubscribe(request) => request.subscription_id.clone(),
        other => panic!("{other:?}"),
    });
    assert_eq!(names.collect::<Vec<_>>(), ["sm-5", "9", "77"]);
}

/// The UE registers initially by its 5G-GUTI, with the security context that it kept.
pub(super) fn comes_back(world: &mut World, phone: &mut Phone) {
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request);
    phone.connect(world, nas);
}

/// A UE that has deregistered.
fn gone(switch_off: bool) -> (World, Phone) {
    let (mut world, mut phone) = with_session();
    let request = phone.deregistration_request(switch_off);
    phone.send(&mut world, request);
    if !switch_off {
        phone.receive(&mut world);
    }
    phone.released(&mut world);
    world.take_ladder();
    (world, phone)
}

#[test]
fn a_phone_that_returns_with_its_5g_guti_needs_no_authentication() {
    for switch_off in [false, true] {
        let (mut world, mut phone) = gone(switch_off);
        assert_eq!(world.amf.audit().retained, 1);
        comes_back(&mut world, &mut phone);
        let ladder = world.take_ladder();
        assert!(!ladder.contains("ausf") && ladder.contains("udm  <- ThreeGppRegistration"), "{ladder}");
        phone.accepted(&mut world);
        phone.context_setup_response(&mut world, &[]);
        phone.send(&mut world, pith_nas::gmm::RegistrationComplete::new());
        let audit = world.amf.audit();
        assert_eq!((audit.registered, audit.retained, audit.sessions), (1, 0, 0));
        let request = phone.deregistration_request(false);
        phone.send(&mut world, request);
        phone.receive(&mut world);
        phone.released(&mut world);
        world.assert_empty();
    }
}

#[test]
fn an_attacker_with_the_5g_guti_of_a_deregistered_phone_has_no_effect() {
    let (mut world, mut phone) = gone(false);
    let mut stranger = Phone { guti: phone.guti, ran_id: pith_types::RanUeNgapId(50), ..Phone::default() };
    let request = stranger.registration_request(RegistrationKind::Initial);
    let nas = stranger.initial_nas(request);
    stranger.connect(&mut world, nas);
    assert!(matches!(stranger.receive(&mut world), GmmMessage::IdentityRequest(_)));
    comes_back(&mut world, &mut phone);
    phone.accepted(&mut world);
}

#[test]
fn authentication_by_suci_replaces_the_retained_security_context() {
    let (mut world, phone) = gone(false);
    let mut anew = Phone { ran_id: phone.ran_id, ..Phone::default() };
    anew.register(&mut world);
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.retained), (1, 0));
}

#[test]
fn a_service_request_of_a_deregistered_phone_gets_a_protected_reject() {
    let (mut world, mut phone) = gone(false);
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::ServiceReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::ImplicitlyDeregistered);
    phone.released(&mut world);
    comes_back(&mut world, &mut phone);
    phone.accepted(&mut world);
}

#[test]
fn a_withdrawn_subscription_deletes_the_security_context() {
    let (mut world, mut phone) = with_session();
    world.operate(supi(), Deregister::Withdrawn);
    phone.receive(&mut world);
    phone.send(&mut world, DeregistrationAcceptUeTerminated::new());
    phone.released(&mut world);
    assert_eq!(world.amf.audit().retained, 0);
    world.operate(supi(), Deregister::Anew);
    world.assert_empty();
}

#[test]
fn retained_security_contexts_are_limited_in_time_and_number() {
    let (mut world, mut phone) = gone(false);
    world.now = world.now + crate::kit::Duration::from_secs(24 * 3600);
    phone.security = phone.security.take();
    comes_back(&mut world, &mut phone);
    phone.security = None;
    assert!(matches!(phone.receive(&mut world), GmmMessage::IdentityRequest(_)));
    let mut config = super::world::config();
    config.retention.contexts = 2;
    let mut world = World::with(config);
    for number in 1..=5 {
        let supi: pith_types::Supi = format!("imsi-99970000000000{number}").parse().unwrap();
        world.found = supi.clone();
        let mut phone = Phone { supi, ran_id: pith_types::RanUeNgapId(10 * number), ..Phone::default() };
        phone.register(&mut world);
        let request = phone.deregistration_request(false);
        phone.send(&mut world, request);
        phone.receive(&mut world);
        phone.released(&mut world);
    }
    assert_eq!(world.amf.audit().retained, 2);
}
