//! One subscriber, one context: the take-over.

use super::world::{OTHER_GNB, Phone, World, supi};
use pith_nas::ie::{RegistrationKind, UeSecurityCapability};
use pith_types::RanUeNgapId;

#[test]
fn a_second_registration_by_suci_supersedes_the_first_cleanly() {
    let (mut world, mut first) = (World::new(), Phone::default());
    first.register(&mut world);
    first.establish(&mut world, 5);
    world.take_ladder();
    let mut again = Phone { gnb: OTHER_GNB, ran_id: RanUeNgapId(70), ..Phone::default() };
    again.register(&mut world);
    let ladder = world.take_ladder();
    assert!(ladder.contains("gnb1 <- UeContextReleaseCommand"), "{ladder}");
    assert!(ladder.contains("smf  <- ReleaseSmContext"), "{ladder}");
    assert!(ladder.contains("pcf  <- DeleteAmPolicyAssociation"), "{ladder}");
    assert!(!ladder.contains("UpdateThreeGppRegistration"), "the UDM is not told to purge: {ladder}");
    first.released(&mut world);
    let audit = world.amf.audit();
    assert_eq!((audit.contexts, audit.registered, audit.supis, audit.tmsis), (1, 1, 1, 1));
    assert_eq!((audit.sessions, audit.connections, audit.dangling, audit.orphaned_connections), (0, 1, 0, 0));
}

#[test]
fn concurrent_registrations_of_one_subscriber_leave_one_context() {
    let mut world = World::new();
    let mut phones = [10, 20].map(|ran| Phone { ran_id: RanUeNgapId(ran), ..Phone::default() });
    for phone in &mut phones {
        let request = phone.registration_request(RegistrationKind::Initial);
        let nas = phone.initial_nas(request);
        phone.connect(&mut world, nas);
        phone.receive(&mut world);
    }
    for phone in &mut phones {
        phone.send(&mut world, Phone::authentication_response());
        phone.receive(&mut world);
    }
    for phone in &mut phones {
        let request = phone.registration_request(RegistrationKind::Initial);
        let complete = phone.security_mode_complete(request);
        phone.send_pdu(&mut world, complete);
    }
    let audit = world.amf.audit();
    assert_eq!((audit.contexts, audit.registered, audit.supis), (1, 1, 1));
    assert_eq!((audit.connections, audit.releasing), (2, 1));
}

#[test]
fn a_context_authenticated_as_another_subscriber_loses_its_old_state() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    phone.capability = UeSecurityCapability::of_5gs(0xf0, 0xf0);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    phone.send(&mut world, request.clone());
    let other = supi().consecutive(2).unwrap().pop().unwrap();
    world.found = other.clone();
    phone.supi = other;
    world.take_ladder();
    let accept = phone.authenticate(&mut world, request);
    let ladder = world.take_ladder();
    for told in ["smf  <- ReleaseSmContext", "udm  <- SdmUnsubscribe", "udm  <- UpdateThreeGppRegistration"] {
        assert!(ladder.contains(told), "{told}: {ladder}");
    }
    let of_the_other = ladder.split("udm  <- UpdateThreeGppRegistration").nth(1).unwrap();
    assert!(of_the_other.contains("udm  <- ThreeGppRegistration\nudm  <- GetDataSets"), "{ladder}");
    assert!(accept.guti.is_some());
    let audit = world.amf.audit();
    assert_eq!((audit.contexts, audit.registered, audit.supis, audit.sessions), (1, 1, 1, 0));
}
