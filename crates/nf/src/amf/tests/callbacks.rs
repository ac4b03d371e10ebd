//! Callbacks of UDM and PCF.

use super::world::{Phone, World, identity, subscription, supi};
use pith_nas::GmmMessage;
use pith_ngap::Message;
use pith_sbi::npcf_ampolicycontrol::{
    AmPolicyTerminateNotify, AmPolicyUpdateNotify, PolicyUpdate, TerminationNotification,
};
use pith_sbi::nudm_sdm::{ModificationNotification, SdmChangeNotification};
use pith_sbi::{NfType, Operation, Response, Uri};
use pith_types::{Ambr, BitRate};

fn registered() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    world.take_ladder();
    (world, phone)
}

fn changed(world: &mut World) {
    let key = world.amf.key_of(&supi());
    let uri = SdmChangeNotification::callback_uri(&identity().api_root, &NfType::Amf, &key);
    let body = ModificationNotification::new(Vec::new());
    world.request(SdmChangeNotification { uri, body }).unwrap();
}

#[test]
fn a_subscription_that_keeps_its_slices_changes_nothing_for_the_phone() {
    let (mut world, _) = registered();
    changed(&mut world);
    assert_eq!(world.take_ladder(), "nf   -> SdmChangeNotification\nnf   <- 204\nudm  <- GetDataSets");
}

#[test]
fn a_changed_ambr_is_sent_to_the_gnb() {
    let (mut world, _) = registered();
    let mut data = subscription(&[1]);
    let ambr = Ambr { uplink: BitRate::mbps(1), downlink: BitRate::mbps(2) };
    data.am_data.as_mut().unwrap().subscribed_ue_ambr = Some(ambr);
    world.script.insert(Operation::GetDataSets, Some(Ok(Response::SubscriptionDataSets(Box::new(data)))));
    changed(&mut world);
    let Some((_, Message::UeContextModificationRequest(message))) = world.downlinks.pop_back() else {
        panic!()
    };
    assert_eq!((message.ue_ambr, message.security_key), (Some(ambr), None));
}

#[test]
fn a_phone_that_loses_its_slice_must_register_again() {
    let (mut world, mut phone) = registered();
    let data = Response::SubscriptionDataSets(Box::new(subscription(&[2])));
    world.script.insert(Operation::GetDataSets, Some(Ok(data)));
    world.downlinks.clear();
    changed(&mut world);
    let GmmMessage::DeregistrationRequestUeTerminated(request) = phone.receive(&mut world) else { panic!() };
    assert!(request.deregistration_type.re_registration_required);
}

fn policy_uri(world: &World) -> Uri {
    let key = world.amf.key_of(&supi());
    AmPolicyUpdateNotify::callback_uri(&identity().api_root, &NfType::Amf, &key)
}

#[test]
fn a_changed_policy_is_sent_to_the_gnb() {
    let (mut world, _) = registered();
    let uri = policy_uri(&world);
    let mut body = PolicyUpdate::new(uri.clone());
    body.rfsp = Some(7);
    world.request(AmPolicyUpdateNotify { uri, body }).unwrap();
    let Some((_, Message::UeContextModificationRequest(message))) = world.downlinks.pop_back() else {
        panic!()
    };
    assert_eq!(message.rfsp_index, Some(7));
}

/// TS 38.413 9.3.1.61: 1 to 256.
#[test]
fn a_policy_is_checked_and_sent_to_the_gnb_only_if_it_changes() {
    let (mut world, _) = registered();
    let uri = policy_uri(&world);
    let update = |rfsp| {
        let mut body = PolicyUpdate::new(uri.clone());
        body.rfsp = rfsp;
        AmPolicyUpdateNotify { uri: uri.clone(), body }
    };
    world.downlinks.clear();
    for wrong in [0, 257] {
        assert_eq!(world.request(update(Some(wrong))).unwrap_err().status, 400);
    }
    world.request(update(None)).unwrap();
    assert!(world.downlinks.is_empty());
    world.request(update(Some(256))).unwrap();
    assert_eq!(world.downlinks.len(), 1);
    world.request(update(Some(256))).unwrap();
    assert_eq!(world.downlinks.len(), 1);
    // One that a PCF gave when it created the policy.
    let key = world.amf.shared.index.find_supi(&supi()).unwrap();
    let ue = world.amf.ues.get_mut(key).unwrap();
    for (given, sent) in [(0, None), (300, None), (7, Some(7))] {
        ue.policy.as_mut().unwrap().rfsp = Some(given);
        assert_eq!(ue.rfsp(), sent);
    }
}

#[test]
fn the_pcf_can_terminate_the_policy() {
    let (mut world, _) = registered();
    let uri = policy_uri(&world);
    let body = TerminationNotification::new(uri.clone(), "UNSPECIFIED");
    world.request(AmPolicyTerminateNotify { uri, body }).unwrap();
    assert!(world.take_ladder().ends_with("pcf  <- DeleteAmPolicyAssociation"));
}

#[test]
fn a_callback_with_an_unknown_reference_is_not_found() {
    let mut world = World::new();
    for reference in ["", "0", "zz", "ffffffffffffffff"] {
        let uri = SdmChangeNotification::callback_uri(&identity().api_root, &NfType::Amf, reference);
        let body = ModificationNotification::new(Vec::new());
        assert_eq!(world.request(SdmChangeNotification { uri, body }).unwrap_err().status, 404);
    }
}
