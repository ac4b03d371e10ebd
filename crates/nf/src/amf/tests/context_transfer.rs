//! UE context transfer between two shards (TS 23.502 4.2.2.2.2 steps 4, 5, 10).

use super::world::{Phone, World, config};
use crate::amf::{AmfConfig, Peer};
use crate::kit::Timer;
use pith_nas::GmmMessage;
use pith_nas::gmm::RegistrationComplete;
use pith_nas::ie::{RegistrationKind, UeSecurityCapability};
use pith_sbi::{ApiRoot, Operation, Scheme};
use pith_types::ShardId;
use std::sync::Arc;

/// Two shards of one AMF that know each other; the phone is registered at the first, with a session.
fn shards() -> (World, World, Phone) {
    let (mut old, mut phone) = (World::new(), Phone::default());
    phone.register(&mut old);
    phone.establish(&mut old, 5);
    phone.release(&mut old);
    old.take_ladder();
    (old, World::with(second()), phone)
}

fn second() -> AmfConfig {
    let first = config();
    let mut second = config();
    second.identity.shard = ShardId(3);
    second.identity.api_root = Arc::new(ApiRoot::new(Scheme::Http, "127.0.0.1:7000").with_prefix("/s3"));
    second.peers = vec![Peer {
        instance: first.identity.instance,
        shard: first.identity.shard,
        api_root: first.identity.api_root,
    }];
    second
}

/// Carries the open call of that operation to the other shard, and its answer back.
fn carry(from: &mut World, to: &mut World, operation: Operation) {
    let at = from.calls.iter().position(|(_, _, request)| request.operation() == operation).unwrap();
    let (tag, _, request) = from.calls.remove(at);
    let reply = to.request(request);
    from.reply(tag, reply);
}

fn comes(new: &mut World, phone: &mut Phone, kind: RegistrationKind) {
    new.script.insert(Operation::UeContextTransfer, None);
    new.script.insert(Operation::RegistrationStatusUpdate, None);
    let request = phone.registration_request(kind);
    let nas = phone.initial_nas(request);
    phone.connect(new, nas);
}

#[test]
fn a_phone_that_comes_to_another_shard_brings_its_sessions_and_needs_no_authentication() {
    let (mut old, mut new, mut phone) = shards();
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    carry(&mut new, &mut old, Operation::RegistrationStatusUpdate);
    assert_eq!(
        new.take_ladder(),
        "\
gnb1 -> InitialUeMessage
amf  <- UeContextTransfer
amf  <- RegistrationStatusUpdate
smf  <- UpdateSmContext
udm  <- ThreeGppRegistration
udm  <- GetDataSets
udm  <- SdmSubscribe
pcf  <- CreateAmPolicyAssociation
gnb1 <- InitialContextSetupRequest"
    );
    phone.accepted(&mut new);
    assert_eq!(phone.guti.unwrap().tmsi.shard(), ShardId(3));
    phone.send(&mut new, RegistrationComplete::new());
    assert_eq!((new.amf.audit().registered, new.amf.audit().sessions), (1, 1));
    let ladder = old.take_ladder();
    assert!(!ladder.contains("ReleaseSmContext") && !ladder.contains("UpdateThreeGpp"), "{ladder}");
    old.assert_empty();
}

#[test]
fn an_initial_registration_brings_no_sessions() {
    let (mut old, mut new, mut phone) = shards();
    comes(&mut new, &mut phone, RegistrationKind::Initial);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    carry(&mut new, &mut old, Operation::RegistrationStatusUpdate);
    phone.accepted(&mut new);
    assert!(new.take_ladder().contains("smf  <- ReleaseSmContext"));
    old.assert_empty();
}

#[test]
fn a_message_that_the_old_shard_does_not_vouch_for_moves_nothing() {
    let (mut old, mut new, mut phone) = shards();
    new.script.insert(Operation::UeContextTransfer, None);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let mut nas = phone.initial_nas(request);
    nas[4] ^= 1;
    phone.connect(&mut new, nas);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    phone.security = None;
    assert!(matches!(phone.receive(&mut new), GmmMessage::IdentityRequest(_)));
    assert_eq!((old.amf.audit().registered, old.amf.audit().sessions), (1, 1));
    assert!(old.take_ladder().ends_with("nf   <- 403 INTEGRITY_CHECK_FAIL"));
}

#[test]
fn a_transfer_that_comes_to_nothing_leaves_the_phone_where_it_was() {
    let (mut old, mut new, mut phone) = shards();
    let capability = phone.capability;
    phone.capability = UeSecurityCapability::of_5gs(0xf0, 0xf0);
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    for _ in 0..5 {
        let GmmMessage::AuthenticationRequest(_) = phone.receive(&mut new) else { panic!() };
        new.expire(Timer::T3560);
    }
    let ladder = new.take_ladder();
    assert!(!ladder.contains("smf ") && !ladder.contains("RegistrationStatusUpdate"), "{ladder}");
    assert_eq!((new.amf.audit().contexts, old.amf.audit().sessions), (0, 1));
    phone.capability = capability;
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request);
    phone.connect(&mut old, nas);
    phone.accepted(&mut old);
}

#[test]
fn a_shard_that_knows_no_such_phone_says_so() {
    let (_, mut new, mut phone) = shards();
    let mut forgetful = World::new();
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    carry(&mut new, &mut forgetful, Operation::UeContextTransfer);
    phone.security = None;
    assert!(matches!(phone.receive(&mut new), GmmMessage::IdentityRequest(_)));
}

#[test]
fn a_block_that_is_nobodys_leads_to_identification_at_once() {
    let (_, _, mut phone) = shards();
    let mut alone = second();
    alone.peers.clear();
    let mut alone = World::with(alone);
    comes(&mut alone, &mut phone, RegistrationKind::MobilityUpdating);
    phone.security = None;
    assert!(matches!(phone.receive(&mut alone), GmmMessage::IdentityRequest(_)));
}
