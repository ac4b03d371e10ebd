//! UE context transfer between two shards, and between two AMFs of different AMF Sets (TS 23.502 4.2.2.2.2 steps 4, 5, 10, 14).

use super::deregistration::notified;
use super::emergency;
use super::handover_between_amfs::{Amfs, take_call, target_config};
use super::world::{OTHER_GNB, Phone, World, config, k_amf_of};
use crate::amf::AmfConfig;
use crate::kit::{Caller, Input, NetworkFunction, Nf, Owner, StoreScope, Tag, Target, Timer, Tracking};
use crate::testing::{Stored, client};
use pith_crypto::nas::IntegrityAlgorithm;
use pith_nas::GmmMessage;
use pith_nas::gmm::RegistrationComplete;
use pith_nas::ie::{RegistrationKind, UeSecurityCapability};
use pith_sbi::Operation;
use pith_sbi::common::{AccessType, UeContextId};
use pith_sbi::namf_communication as namf;
use pith_sbi::nsmf_pdusession::UpCnxState;
use pith_sbi::{ApiRoot, Cause, Problem, Reply, Request, Response};
use pith_types::{BlockOwner, FiveGGuti, FiveGTmsi, InstanceId, OwnerMap, RanUeNgapId, ShardId};
use std::sync::Arc;

/// Two shards of one AMF; the UE is registered at the first, with a session.
fn shards() -> (World, World, Phone) {
    let (mut old, mut phone) = (World::new(), Phone::default());
    phone.register(&mut old);
    phone.establish(&mut old, 5);
    phone.release(&mut old);
    old.take_ladder();
    (old, World::with(second()), phone)
}

fn second() -> AmfConfig {
    let mut second = config();
    second.identity.owner.shard = ShardId(3);
    second
}

/// Delivers the open call of that operation to the other shard, and its answer back.
pub(super) fn carry(from: &mut World, to: &mut World, operation: Operation) {
    let at = from.calls.iter().position(|(_, _, request)| request.operation() == operation).unwrap();
    let (tag, _, request) = from.calls.remove(at);
    let reply = to.request(request);
    from.reply(tag, reply);
}

pub(super) fn comes(new: &mut World, phone: &mut Phone, kind: RegistrationKind) {
    new.script.insert(Operation::UeContextTransfer, None);
    new.script.insert(Operation::RegistrationStatusUpdate, None);
    let request = phone.registration_request(kind);
    let nas = phone.initial_nas(request);
    phone.connect(new, nas);
}

#[test]
fn a_phone_that_registers_at_another_shard_keeps_its_sessions_without_authentication() {
    let (mut old, mut new, mut phone) = shards();
    old.caller = Caller::Shard { shard: 3, nf: Nf::Amf, tag: Tag::new(1, 1) };
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
    let owner = config().identity.owners.owner(phone.guti.unwrap().tmsi.block());
    assert_eq!(owner.shard, ShardId(3));
    phone.send(&mut new, RegistrationComplete::new());
    assert_eq!((new.amf.audit().registered, new.amf.audit().sessions), (1, 1));
    let ladder = old.take_ladder();
    assert!(!ladder.contains("ReleaseSmContext") && !ladder.contains("UpdateThreeGpp"), "{ladder}");
    old.assert_empty();
}

/// TS 23.501 5.16.4.1: no subscription applies to it at the other shard either.
#[test]
fn an_emergency_registered_phone_with_its_session_stays_so_at_another_shard() {
    let services = emergency::with_emergency(0);
    let (mut old, mut phone) = (World::with(services.clone()), Phone::default());
    emergency::register_with_sim(&mut old, &mut phone);
    phone.send(&mut old, emergency::emergency_request(5));
    phone.release(&mut old);
    let mut new = World::with(AmfConfig { emergency: services.emergency, ..second() });
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    carry(&mut new, &mut old, Operation::RegistrationStatusUpdate);
    let ladder = new.take_ladder();
    assert!(ladder.contains("smf  <- UpdateSmContext"), "{ladder}");
    assert!(ladder.ends_with("udm  <- ThreeGppRegistration\ngnb1 <- InitialContextSetupRequest"), "{ladder}");
    let accept = phone.accepted(&mut new);
    assert!(accept.result.emergency_registered && accept.allowed_nssai.is_none());
    phone.send(&mut new, RegistrationComplete::new());
    let (_, ue) = new.amf.ues.iter().next().unwrap();
    assert_eq!((ue.emergency_session(), ue.subscription.is_none()), (Some(5), true));
    old.assert_empty();
}

/// TS 33.512 4.2.2.4.2 at a mobility registration update (TS 33.501 6.7.1.2): the new AMF selects and uses the algorithms
/// of its own highest priority.
#[test]
fn tc_nas_alg_amf_change_amf() {
    let (mut old, _, mut phone) = shards();
    let mut new = World::with(AmfConfig {
        integrity: vec![IntegrityAlgorithm::Nia1, IntegrityAlgorithm::Nia2],
        ..second()
    });
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    let GmmMessage::AuthenticationRequest(_) = phone.receive(&mut new) else { panic!("new keys") };
    phone.send(&mut new, Phone::authentication_response());
    let GmmMessage::SecurityModeCommand(command) = phone.receive(&mut new) else { panic!() };
    assert_eq!(command.algorithms.integrity, IntegrityAlgorithm::Nia1 as u8);
    let complete = phone.security_mode_complete(request);
    phone.send_pdu(&mut new, complete);
    carry(&mut new, &mut old, Operation::RegistrationStatusUpdate);
    phone.accepted(&mut new);
    assert_eq!((new.amf.audit().registered, new.amf.audit().sessions), (1, 1));
    old.assert_empty();
}

#[test]
fn ue_specific_drx_stays_in_a_periodic_update_at_another_shard() {
    let (mut old, mut new, mut phone) = shards();
    let mut request = phone.registration_request(RegistrationKind::MobilityUpdating);
    request.requested_drx_parameters = Some(pith_nas::ie::DrxParameters::T64);
    let nas = phone.initial_nas(request);
    phone.connect(&mut old, nas);
    phone.accepted(&mut old);
    phone.send(&mut old, RegistrationComplete::new());
    phone.release(&mut old);
    comes(&mut new, &mut phone, RegistrationKind::PeriodicUpdating);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    carry(&mut new, &mut old, Operation::RegistrationStatusUpdate);
    phone.accepted(&mut new);
    let (_, ue) = new.amf.ues.iter().next().unwrap();
    assert_eq!(ue.reachability.drx, Some(crate::amf::reachability::Drx::T64));
}

#[test]
fn an_initial_registration_transfers_no_sessions() {
    let (mut old, mut new, mut phone) = shards();
    comes(&mut new, &mut phone, RegistrationKind::Initial);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    carry(&mut new, &mut old, Operation::RegistrationStatusUpdate);
    phone.accepted(&mut new);
    assert!(!new.take_ladder().contains("SmContext"));
    assert!(old.take_ladder().contains("smf  <- ReleaseSmContext"), "they are its own");
    old.assert_empty();
}

#[test]
fn a_message_that_the_old_shard_can_not_verify_transfers_nothing() {
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
fn a_failed_transfer_leaves_the_context_at_the_old_shard() {
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
fn a_shard_without_the_context_answers_not_found() {
    let (_, mut new, mut phone) = shards();
    let mut forgetful = World::new();
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    carry(&mut new, &mut forgetful, Operation::UeContextTransfer);
    phone.security = None;
    assert!(matches!(phone.receive(&mut new), GmmMessage::IdentityRequest(_)));
}

/// The UE updates its registration with a 5G-GUTI of a shard that does not know it: it has not got the one that another shard has allocated since. It
/// is authenticated there.
fn with_unknown_guti() -> (World, World, Phone) {
    let (old, mut new, mut phone) = shards();
    new.script.insert(Operation::UeContextTransfer, None);
    new.script.insert(Operation::RegistrationStatusUpdate, None);
    (phone.guti, phone.security) = (Some(unknown_guti(&second())), None);
    updates_with_unknown_guti(&mut new, &mut phone);
    (old, new, phone)
}

/// A 5G-GUTI of the shard that no UE has.
fn unknown_guti(shard: &AmfConfig) -> FiveGGuti {
    let tmsi = FiveGTmsi::new(shard.identity.blocks().next().unwrap(), 7);
    FiveGGuti { guami: shard.guami, tmsi }
}

fn updates_with_unknown_guti(world: &mut World, phone: &mut Phone) {
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request.clone());
    phone.connect(world, nas);
    let GmmMessage::IdentityRequest(_) = phone.receive(world) else { panic!("no other shard verifies it") };
    let is_transfer = |request: &Request| request.operation() == Operation::UeContextTransfer;
    assert!(!world.calls.iter().any(|(_, _, request)| is_transfer(request)), "{:?}", world.calls);
    phone.send(world, pith_nas::gmm::IdentityResponse::new(Phone::suci()));
    phone.secure(world, request);
}

/// The UE tries again at another gNB.
fn second_attempt(world: &mut World, shard: &AmfConfig) -> Phone {
    let guti = Some(unknown_guti(shard));
    let mut phone = Phone { gnb: OTHER_GNB, ran_id: RanUeNgapId(70), guti, ..Phone::default() };
    updates_with_unknown_guti(world, &mut phone);
    phone
}

const OTHER_SHARD: Caller = Caller::Shard { shard: 3, nf: Nf::Amf, tag: Tag::new(1, 1) };

/// The UE is registered at the new AMF with its session, which the old one has neither ended nor left.
fn assert_passed(old: &mut World, new: &World) {
    let audit = new.amf.audit();
    assert_eq!((audit.contexts, audit.registered, audit.sessions), (1, 1, 1));
    let ladder = old.take_ladder();
    assert!(!ladder.contains("ReleaseSmContext") && !ladder.contains("UpdateThreeGpp"), "{ladder}");
    old.assert_empty();
}

/// The old shard has answered the first attempt, which ends before the answer arrives.
#[test]
fn a_second_attempt_gets_the_sessions_that_the_first_one_awaits() {
    let (mut old, mut new, _) = with_unknown_guti();
    old.caller = OTHER_SHARD;
    let (tag, request) = take_call(&mut new, Operation::UeContextTransfer);
    let late = old.request(request);
    let mut phone = second_attempt(&mut new, &second());
    new.reply(tag, late);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    carry(&mut new, &mut old, Operation::RegistrationStatusUpdate);
    phone.accepted(&mut new);
    phone.send(&mut new, RegistrationComplete::new());
    assert_passed(&mut old, &new);
}

/// The shard that has sent the sessions to the first attempt takes the second one.
#[test]
fn a_second_attempt_at_the_old_shard_ends_the_first_one_and_keeps_the_sessions() {
    let (mut old, mut new, _) = with_unknown_guti();
    (old.caller, new.caller) = (OTHER_SHARD, OTHER_SHARD);
    for operation in [Operation::UeContextTransfer, Operation::RegistrationStatusUpdate] {
        old.script.insert(operation, None);
    }
    new.script.insert(Operation::ThreeGppRegistration, None);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    let mut phone = second_attempt(&mut old, &config());
    carry(&mut old, &mut new, Operation::UeContextTransfer);
    // The report of the first attempt is late.
    carry(&mut new, &mut old, Operation::RegistrationStatusUpdate);
    carry(&mut old, &mut new, Operation::RegistrationStatusUpdate);
    phone.accepted(&mut old);
    phone.send(&mut old, RegistrationComplete::new());
    let audits = [&old, &new].map(|world| world.amf.audit());
    let counts = audits.map(|audit| (audit.contexts, audit.registered, audit.sessions));
    assert_eq!(counts, [(1, 1, 1), (0, 0, 0)]);
    for world in [&mut old, &mut new] {
        let ladder = world.take_ladder();
        assert!(!ladder.contains("ReleaseSmContext") && !ladder.contains("UpdateThreeGpp"), "{ladder}");
    }
}

/// Another shard was sent the context, and its attempt has ended without a report. The UE is registered elsewhere without its sessions.
#[test]
fn sessions_that_no_other_shard_reports_as_taken_end() {
    let (mut old, mut new, mut phone) = shards();
    old.caller = OTHER_SHARD;
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    notified(&mut old, AREA_CHANGE);
    assert_eq!(old.amf.audit().sessions, 1, "the report is awaited");
    old.expire(Timer::TransferredContext);
    let ladder = old.take_ladder();
    assert!(ladder.contains("smf  <- ReleaseSmContext"), "{ladder}");
    old.assert_empty();
}

/// The shard passes a request that names the UE by its SUPI on, until one has the context ([`NetworkFunction::has_context`]).
#[test]
fn a_phone_with_an_unknown_guti_keeps_its_sessions_of_another_shard() {
    let (mut old, mut new, mut phone) = with_unknown_guti();
    old.caller = Caller::Shard { shard: 3, nf: Nf::Amf, tag: Tag::new(1, 1) };
    for operation in [Operation::UeContextTransfer, Operation::RegistrationStatusUpdate] {
        let open = new.calls.iter().find(|(_, _, request)| request.operation() == operation);
        let Some((_, target, request)) = open else { panic!("{operation:?} is not requested") };
        assert_eq!(*target, Target::Root(config().identity.api_root));
        assert_eq!((new.amf.has_context(request), old.amf.has_context(request)), (false, true));
        carry(&mut new, &mut old, operation);
    }
    phone.accepted(&mut new);
    phone.send(&mut new, RegistrationComplete::new());
    assert_passed(&mut old, &new);
}

/// The request returns to the shard that sent it, if it is the last one.
#[test]
fn a_phone_that_no_shard_knows_registers_without_sessions() {
    let (_, mut new, mut phone) = with_unknown_guti();
    let (tag, request) = take_call(&mut new, Operation::UeContextTransfer);
    let reply = new.request(request);
    assert_eq!(reply.as_ref().unwrap_err().status, 404, "not its own new context");
    new.reply(tag, reply);
    phone.accepted(&mut new);
    let audit = new.amf.audit();
    assert_eq!((audit.contexts, audit.registered, audit.sessions), (1, 1, 0));
    let ladder = new.take_ladder();
    assert_eq!(ladder.matches("amf  <- UeContextTransfer").count(), 1, "{ladder}");
    assert!(!ladder.contains("RegistrationStatusUpdate"), "{ladder}");
}

/// A UE was handed over to a shard of another AMF, and its connection was lost before it got a 5G-GUTI there: it comes to another shard of that AMF with
/// the one of the source AMF, which answers so. It is authenticated. Returns both shards of the target AMF.
fn with_guti_of_source_amf(from: Option<Arc<ApiRoot>>, problem: Problem) -> (World, World, Phone) {
    let mut amfs = Amfs::new(&[5]);
    amfs.completed(&[5]);
    let Amfs { target: mut first, mut phone, .. } = amfs;
    first.script.remove(&Operation::UpdateSmContext);
    first.input(Input::N2(crate::kit::N2Input::GnbDown { gnb: phone.gnb }));
    first.take_ladder();
    first.caller = Caller::Shard { shard: 3, nf: Nf::Amf, tag: Tag::new(1, 1) };
    assert_eq!(phone.guti.map(|guti| guti.guami), Some(config().guami));
    let mut config = target_config();
    config.identity.owner.shard = ShardId(3);
    let mut second = World::with(config);
    comes(&mut second, &mut phone, RegistrationKind::MobilityUpdating);
    let (tag, _) = take_call(&mut second, Operation::UeContextTransfer);
    second.input(Input::Reply { tag, from, reply: Err(problem.into()) });
    phone.security = None;
    assert!(matches!(phone.receive(&mut second), GmmMessage::IdentityRequest(_)));
    phone.send(&mut second, pith_nas::gmm::IdentityResponse::new(Phone::suci()));
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    phone.secure(&mut second, request);
    (first, second, phone)
}

/// TS 24.501 5.5.1.3.8: the source AMF does not have the context, is not found, or can't verify the message.
#[test]
fn a_phone_with_the_guti_of_its_source_amf_keeps_its_sessions_of_another_shard() {
    let source = || Some(config().identity.api_root);
    let answers = [
        (source(), Problem::context_not_found()),
        (source(), Problem::new(Cause::IntegrityCheckFail)),
        (None, Problem::new(Cause::NfDiscoveryFailure)),
    ];
    for (from, problem) in answers {
        let (mut first, mut second, mut phone) = with_guti_of_source_amf(from, problem);
        for operation in [Operation::UeContextTransfer, Operation::RegistrationStatusUpdate] {
            let open = second.calls.iter().find(|(_, _, request)| request.operation() == operation);
            let Some((_, target, request)) = open else { panic!("{operation:?} is not requested") };
            assert_eq!(*target, Target::Root(target_config().identity.api_root));
            assert_eq!((second.amf.has_context(request), first.amf.has_context(request)), (false, true));
            carry(&mut second, &mut first, operation);
        }
        phone.accepted(&mut second);
        phone.send(&mut second, RegistrationComplete::new());
        let is_transfer = |request: &Request| request.operation() == Operation::UeContextTransfer;
        assert!(!second.calls.iter().any(|(_, _, it)| is_transfer(it)), "the source AMF is not asked again");
        assert_passed(&mut first, &second);
    }
}

#[test]
fn a_transferred_key_with_an_invalid_ng_ksi_is_not_used() {
    for ksi in [7, 255] {
        let (mut old, mut new, mut phone) = shards();
        comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
        let is_transfer = |request: &Request| request.operation() == Operation::UeContextTransfer;
        let at = new.calls.iter().position(|(_, _, request)| is_transfer(request)).unwrap();
        let (tag, _, request) = new.calls.remove(at);
        let mut reply = old.request(request);
        let Ok(Response::UeContextTransferred(transferred)) = &mut reply else { panic!("{reply:?}") };
        transferred.ue_context.seaf_data.as_mut().unwrap().ng_ksi.ksi = ksi;
        new.reply(tag, reply);
        phone.security = None;
        assert!(matches!(phone.receive(&mut new), GmmMessage::IdentityRequest(_)), "ngKSI {ksi}");
    }
}

#[test]
fn a_block_of_an_unknown_instance_leads_to_identification() {
    let (_, _, mut phone) = shards();
    let mut alone = second();
    let own = alone.identity.owner;
    let other = BlockOwner { instance: InstanceId(9), ..own };
    let owners = OwnerMap::new(2, |block| if block.number() < 1023 { other } else { own });
    alone.identity.owners = Arc::new(owners);
    let mut alone = World::with(alone);
    comes(&mut alone, &mut phone, RegistrationKind::MobilityUpdating);
    phone.security = None;
    assert!(matches!(phone.receive(&mut alone), GmmMessage::IdentityRequest(_)));
}

/// A caller requests the UE's context with that NAS message.
fn ask(old: &mut World, id: UeContextId, reason: namf::TransferReason, nas: Option<Vec<u8>>) -> Reply {
    let mut body = namf::UeContextTransferReqData::new(reason, AccessType::ThreeGppAccess);
    let container = |nas: Vec<u8>| namf::N1MessageContainer::new(namf::N1MessageClass::FiveGmm, nas);
    body.reg_request = nas.map(container);
    old.request(namf::UeContextTransfer { ue_context_id: id, body })
}

/// The distance between the COUNT of the AMF's next message and that of the last one.
fn next_downlink(old: &mut World, phone: &mut Phone) -> u32 {
    let count = |phone: &Phone| phone.security.as_ref().unwrap().last_received().unwrap().value();
    let before = count(phone);
    let request = phone.registration_request(RegistrationKind::PeriodicUpdating);
    let nas = phone.initial_nas(request);
    phone.connect(old, nas);
    phone.accepted(old);
    phone.context_setup_response(old, &[]);
    phone.release(old);
    count(phone) - before
}

#[test]
fn keys_are_transferred_only_for_a_registration_request_of_the_phone() {
    use namf::TransferReason::{InitReg, MobiReg, MobiRegUeValidated};
    let (mut old, _, mut phone) = shards();
    let guti = UeContextId::FiveGGuti(phone.guti.unwrap());
    let supi = UeContextId::Supi(super::world::supi());
    let mut other_message = phone.nas(super::world::establishment(6));
    for id in [guti.clone(), supi] {
        for reason in [InitReg, MobiReg] {
            let plain = phone.registration_request(RegistrationKind::Initial);
            let plain = GmmMessage::from(plain).encode();
            for nas in
                [None, Some(Vec::new()), Some(plain), Some(vec![0x7e, 1, 0, 0, 0, 0, 0, 0x7e, 0, 0x41])]
            {
                let refused = ask(&mut old, id.clone(), reason.clone(), nas).unwrap_err();
                assert_eq!(refused.cause(), Some(&Cause::IntegrityCheckFail));
            }
        }
    }
    let refused = ask(&mut old, guti.clone(), MobiReg, Some(std::mem::take(&mut other_message))).unwrap_err();
    assert_eq!(refused.cause(), Some(&Cause::IntegrityCheckFail), "protected, but no registration request");
    let refused = ask(&mut old, guti, MobiRegUeValidated, None).unwrap_err();
    assert_eq!(refused.cause(), Some(&Cause::IntegrityCheckFail), "the 5G-GUTI proves nobody's identity");
}

#[test]
fn an_amf_that_authenticated_the_phone_gets_the_context_without_keys() {
    let (mut old, _, _) = shards();
    let supi = UeContextId::Supi(super::world::supi());
    let reply = ask(&mut old, supi, namf::TransferReason::MobiRegUeValidated, None).unwrap();
    let Response::UeContextTransferred(transferred) = reply else { panic!() };
    let context = transferred.ue_context;
    assert_eq!((context.seaf_data.is_none(), context.session_context_list.len()), (true, 1));
    let mm = &context.mm_context_list[0];
    assert_eq!((mm.nas_downlink_count, mm.nas_uplink_count), (None, None));
}

/// The operator sees which AMF took a UE that was connected.
#[test]
fn a_transfer_of_a_connected_phone_is_logged_with_the_other_amf() {
    for is_connected in [true, false] {
        let (mut old, mut phone) = (World::new(), Phone::default());
        phone.register(&mut old);
        phone.establish(&mut old, 5);
        if !is_connected {
            phone.release(&mut old);
        }
        old.caller = client(8);
        let supi = UeContextId::Supi(super::world::supi());
        assert!(ask(&mut old, supi, namf::TransferReason::MobiRegUeValidated, None).is_ok());
        let name = format!("({})", Owner::of(client(8)));
        assert_eq!(old.events.iter().any(|event| event.text.contains(&name)), is_connected);
    }
}

/// TS 29.518 5.2.2.2.1, 5.2.2.2.2.
#[test]
fn a_context_at_another_access_and_an_unknown_result_of_a_transfer_are_refused() {
    let (mut old, _, mut phone) = shards();
    let guti = UeContextId::FiveGGuti(phone.guti.unwrap());
    let supi = UeContextId::Supi(super::world::supi());
    let reason = namf::TransferReason::MobiRegUeValidated;
    let body = namf::UeContextTransferReqData::new(reason, AccessType::NonThreeGppAccess);
    let refused = old.request(namf::UeContextTransfer { ue_context_id: supi, body }).unwrap_err();
    assert_eq!(refused.cause(), Some(&Cause::ContextNotFound));

    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request);
    assert!(ask(&mut old, guti.clone(), namf::TransferReason::MobiReg, Some(nas)).is_ok());
    let report = |status: &str| {
        let status = namf::UeContextTransferStatus::from(status);
        let body = namf::UeRegStatusUpdateReqData::new(status);
        namf::RegistrationStatusUpdate { ue_context_id: guti.clone(), body }
    };
    let refused = old.request(report("BOGUS")).unwrap_err();
    assert_eq!(refused.cause(), Some(&Cause::MandatoryIeIncorrect));
    assert!(old.request(report("TRANSFERRED")).is_ok(), "the transfer goes on");
}

#[test]
fn a_refused_transfer_consumes_no_count_and_a_captured_message_works_once() {
    let (mut old, _, mut phone) = shards();
    let guti = UeContextId::FiveGGuti(phone.guti.unwrap());
    let reason = || namf::TransferReason::MobiReg;
    assert_eq!(next_downlink(&mut old, &mut phone), 1);
    for _ in 0..100 {
        assert!(ask(&mut old, guti.clone(), reason(), None).is_err());
    }
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request);
    assert!(ask(&mut old, guti.clone(), reason(), Some(nas.clone())).is_ok());
    for _ in 0..100 {
        assert!(ask(&mut old, guti.clone(), reason(), Some(nas.clone())).is_err(), "a replay");
    }
    assert_eq!(next_downlink(&mut old, &mut phone), 1 + crate::amf::services::RESERVED_NAS_COUNTS);
}

#[test]
fn reserved_counts_stay_within_the_phones_estimate() {
    let (mut old, _, mut phone) = shards();
    let guti = UeContextId::FiveGGuti(phone.guti.unwrap());
    let mut given = 0;
    for _ in 0..50 {
        let request = phone.registration_request(RegistrationKind::MobilityUpdating);
        let nas = phone.initial_nas(request);
        given += usize::from(ask(&mut old, guti.clone(), namf::TransferReason::MobiReg, Some(nas)).is_ok());
    }
    assert_eq!(given, 6);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request);
    phone.connect(&mut old, nas);
    phone.accepted(&mut old);
    phone.send(&mut old, RegistrationComplete::new());
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request);
    let guti = UeContextId::FiveGGuti(phone.guti.unwrap());
    assert!(ask(&mut old, guti, namf::TransferReason::MobiReg, Some(nas)).is_ok(), "the UE has answered");
}

#[test]
fn only_an_amf_that_received_the_context_can_end_it() {
    let (mut old, _, mut phone) = shards();
    let guti = UeContextId::FiveGGuti(phone.guti.unwrap());
    let update = || {
        let body = namf::UeRegStatusUpdateReqData::new(namf::UeContextTransferStatus::Transferred);
        namf::RegistrationStatusUpdate { ue_context_id: guti.clone(), body }
    };
    assert_eq!(old.request(update()).unwrap_err().cause(), Some(&Cause::ContextNotFound));
    assert_eq!(old.amf.audit().registered, 1);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request);
    assert!(ask(&mut old, guti.clone(), namf::TransferReason::MobiReg, Some(nas)).is_ok());
    assert!(old.request(update()).is_ok());
    assert_eq!(old.amf.audit().registered, 0);
    assert_eq!(old.amf.audit().retained, 0, "the security context is the other AMF's");
}

/// The UDM's reason: the UE has registered at another AMF, not initially.
pub(super) const AREA_CHANGE: &str = "UE_REGISTRATION_AREA_CHANGE";

/// Two AMFs of different AMF Sets; the UE is registered at the first, with a session.
fn sets() -> (World, World, Phone) {
    let (old, _, phone) = shards();
    (old, World::with(target_config()), phone)
}

/// The new AMF gets the context of a phone that comes to it.
fn transferred() -> (World, World, Phone) {
    let (mut old, mut new, mut phone) = sets();
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    (old, new, phone)
}

#[test]
fn a_phone_from_another_amf_set_keeps_its_sessions_without_authentication() {
    let (mut old, mut new, mut phone) = sets();
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    let Some((_, Target::Service(selection), _)) = new.calls.first() else { panic!("{:?}", new.calls) };
    assert_eq!((selection.guami, selection.is_other), (Some(config().guami), true));
    new.script.insert(Operation::UpdateSmContext, None);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    let Request::UpdateSmContext(update) = new.open_call(Operation::UpdateSmContext) else { panic!() };
    assert_eq!(update.body.up_cnx_state, Some(UpCnxState::Deactivated), "at the old AMF it may be active");
    assert_eq!(update.body.guami, Some(target_config().guami));
    carry(&mut new, &mut old, Operation::RegistrationStatusUpdate);
    phone.accepted(&mut new);
    assert_eq!(phone.guti.map(|guti| guti.guami), Some(target_config().guami));
    assert_eq!((new.amf.audit().registered, new.amf.audit().sessions), (1, 1));
    let ladder = old.take_ladder();
    assert!(!ladder.contains("ReleaseSmContext") && !ladder.contains("UpdateThreeGpp"), "{ladder}");
    old.assert_empty();
}

/// The report goes to the AMF that has answered.
#[test]
fn the_old_amf_gets_the_report() {
    let (mut old, mut new, mut phone) = sets();
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    let (tag, _, request) = new.calls.remove(0);
    let root = config().identity.api_root;
    let reply = old.request(request);
    new.input(Input::Reply { tag, from: Some(Arc::clone(&root)), reply });
    let is_report = |request: &Request| request.operation() == Operation::RegistrationStatusUpdate;
    let report = new.calls.iter().find(|(_, _, request)| is_report(request));
    assert!(matches!(report, Some((_, Target::Root(to), _)) if *to == root), "{report:?}");
}

#[test]
fn a_guti_of_another_network_or_of_no_amf_leads_to_identification() {
    let (_, mut new, mut phone) = sets();
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    new.reply_to(Operation::UeContextTransfer, Err(Problem::new(Cause::NfDiscoveryFailure).into()));
    assert!(!new.calls.iter().any(|(_, _, it)| it.operation() == Operation::RegistrationStatusUpdate));
    phone.security = None;
    assert!(matches!(phone.receive(&mut new), GmmMessage::IdentityRequest(_)));
    let (_, mut new, mut phone) = sets();
    phone.guti.as_mut().unwrap().guami.plmn_id = pith_types::Plmn::new("001", "01").unwrap();
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    phone.security = None;
    assert!(matches!(phone.receive(&mut new), GmmMessage::IdentityRequest(_)), "the NRF is not asked");
}

/// The UDM's notification may arrive before the report (step 14d).
#[test]
fn the_old_amf_waits_for_the_report_of_the_new_one() {
    let (mut old, mut new, _) = transferred();
    notified(&mut old, AREA_CHANGE);
    assert_eq!(old.amf.audit().sessions, 1);
    carry(&mut new, &mut old, Operation::RegistrationStatusUpdate);
    let ladder = old.take_ladder();
    assert!(!ladder.contains("ReleaseSmContext"), "{ladder}");
    old.assert_empty();
}

/// The sessions may be the new AMF's. An SMF that knows AMFs from each other refuses their release then.
#[test]
fn without_the_report_the_old_amf_releases_sessions_only_if_amfs_are_identified() {
    for is_identified in [false, true] {
        let (mut old, mut new, mut phone) = sets();
        comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
        if is_identified {
            old.caller = client(7);
        }
        carry(&mut new, &mut old, Operation::UeContextTransfer);
        notified(&mut old, AREA_CHANGE);
        old.expire(Timer::TransferredContext);
        let ladder = old.take_ladder();
        assert_eq!(ladder.contains("ReleaseSmContext"), is_identified, "{ladder}");
        old.assert_empty();
    }
}

/// It may be served by the other AMF meanwhile, for the SMF.
#[test]
fn an_amf_to_which_the_phone_returns_announces_itself() {
    let (mut old, _, mut phone) = transferred();
    old.script.insert(Operation::UpdateSmContext, None);
    let mut request = phone.registration_request(RegistrationKind::MobilityUpdating);
    request.uplink_data_status = Some([5].into_iter().collect());
    let nas = phone.initial_nas(request);
    phone.connect(&mut old, nas);
    let Request::UpdateSmContext(update) = old.open_call(Operation::UpdateSmContext) else { panic!() };
    assert_eq!(update.body.up_cnx_state, Some(UpCnxState::Activating));
    assert_eq!(update.body.guami, Some(config().guami), "it names itself");
}

/// A key that the phone does not use yet, or sessions that no phone has.
#[test]
fn an_unusable_context_is_reported_as_not_transferred() {
    type Change = fn(&mut namf::UeContext);
    let changes: [Change; 4] = [
        |context| context.seaf_data.as_mut().unwrap().key_amf_change_ind = Some(true),
        |context| context.session_context_list[0].pdu_session_id = 200,
        |context| {
            let twice = context.session_context_list[0].clone();
            context.session_context_list.push(twice);
        },
        |context| {
            let session = context.session_context_list[0].clone();
            let with_its_context = namf::PduSessionContext { pdu_session_id: 6, ..session };
            context.session_context_list.push(with_its_context);
        },
    ];
    for change in changes {
        let (mut old, mut new, mut phone) = sets();
        comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
        let (tag, _, request) = new.calls.remove(0);
        let Ok(Response::UeContextTransferred(mut transferred)) = old.request(request) else { panic!() };
        change(&mut transferred.ue_context);
        let from = Some(config().identity.api_root);
        new.input(Input::Reply { tag, from, reply: Ok(Response::UeContextTransferred(transferred)) });
        let report = new.open_call(Operation::RegistrationStatusUpdate);
        let Request::RegistrationStatusUpdate(report) = report else { panic!() };
        assert_eq!(report.body.transfer_status, namf::UeContextTransferStatus::NotTransferred);
        phone.security = None;
        assert!(matches!(phone.receive(&mut new), GmmMessage::IdentityRequest(_)));
    }
}

#[test]
fn the_sessions_end_if_the_new_amf_registers_the_phone_without_the_context() {
    for reports_first in [false, true] {
        let (mut old, _, phone) = transferred();
        let guti = UeContextId::FiveGGuti(phone.guti.unwrap());
        let report = |old: &mut World| {
            let body = namf::UeRegStatusUpdateReqData::new(namf::UeContextTransferStatus::NotTransferred);
            assert!(
                old.request(namf::RegistrationStatusUpdate { ue_context_id: guti.clone(), body }).is_ok()
            );
        };
        if reports_first {
            report(&mut old);
            assert_eq!(old.amf.audit().sessions, 1, "it serves the phone as before");
        }
        notified(&mut old, AREA_CHANGE);
        if !reports_first {
            report(&mut old);
        }
        let ladder = old.take_ladder();
        assert!(ladder.contains("ReleaseSmContext"), "{ladder}");
        old.assert_empty();
    }
}

/// Answers a call of the new AMF, as the old one.
fn carry_from_old(new: &mut World, old: &mut World, operation: Operation) {
    let at = new.calls.iter().position(|(_, _, request)| request.operation() == operation).unwrap();
    let (tag, _, request) = new.calls.remove(at);
    let reply = old.request(request);
    new.input(Input::Reply { tag, from: Some(config().identity.api_root), reply });
}

/// The old AMF has other keys than the phone, as after a handover to an AMF that has changed them, and that has lost its context since: the phone is
/// authenticated, and keeps its sessions (TS 29.518 5.2.2.2.1, MOBI_REG_UE_VALIDATED).
#[test]
fn a_phone_whose_message_the_old_amf_can_not_verify_keeps_its_sessions_once_it_is_authenticated() {
    for is_known in [true, false] {
        let (mut old, mut new, mut phone) = sets();
        new.script.insert(Operation::UeContextTransfer, None);
        new.script.insert(Operation::RegistrationStatusUpdate, None);
        let request = phone.registration_request(RegistrationKind::MobilityUpdating);
        let mut nas = phone.initial_nas(request.clone());
        nas[4] ^= 1;
        phone.connect(&mut new, nas);
        carry_from_old(&mut new, &mut old, Operation::UeContextTransfer);
        phone.security = None;
        assert!(matches!(phone.receive(&mut new), GmmMessage::IdentityRequest(_)));
        phone.send(&mut new, pith_nas::gmm::IdentityResponse::new(Phone::suci()));
        phone.secure(&mut new, request);
        // The other shards of the new AMF get the first request: their contexts are later ones.
        let own = Target::Root(target_config().identity.api_root);
        assert!(new.calls.iter().any(|(_, target, _)| *target == own), "{:?}", new.calls);
        new.reply_to(Operation::UeContextTransfer, Err(Problem::context_not_found().into()));
        let old_root = Target::Root(config().identity.api_root);
        assert!(new.calls.iter().any(|(_, target, _)| *target == old_root), "{:?}", new.calls);
        let again = new.calls.iter().find_map(|(_, _, request)| match request {
            Request::UeContextTransfer(again) => Some(again),
            _ => None,
        });
        let again = again.expect("it is asked again");
        assert_eq!(again.ue_context_id, UeContextId::Supi(super::world::supi()), "not that of another phone");
        assert_eq!(again.body.reason, namf::TransferReason::MobiRegUeValidated);
        if is_known {
            carry_from_old(&mut new, &mut old, Operation::UeContextTransfer);
            carry_from_old(&mut new, &mut old, Operation::RegistrationStatusUpdate);
            assert!(!old.take_ladder().contains("ReleaseSmContext"), "they are the new AMF's");
            old.assert_empty();
        } else {
            new.reply_to(Operation::UeContextTransfer, Err(Problem::context_not_found().into()));
        }
        phone.accepted(&mut new);
        let audit = new.amf.audit();
        assert_eq!((audit.registered, audit.sessions), (1, usize::from(is_known)));
    }
}

#[test]
fn an_unanswered_request_is_reported_as_failed() {
    let (_, mut new, mut phone) = sets();
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    let (tag, ..) = new.calls.remove(0);
    let from = Some(config().identity.api_root);
    let reply = Err(Problem::of_status(504).into());
    new.input(Input::Reply { tag, from, reply });
    let Request::RegistrationStatusUpdate(report) = new.open_call(Operation::RegistrationStatusUpdate) else {
        panic!()
    };
    assert_eq!(report.body.transfer_status, namf::UeContextTransferStatus::NotTransferred);
}

/// As [`transferred`], while the UDM does not answer the new AMF.
fn unfinished() -> (World, World, Phone) {
    let (mut old, mut new, mut phone) = sets();
    new.script.insert(Operation::ThreeGppRegistration, None);
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    (old, new, phone)
}

/// Two AMFs that know each other by certificate.
fn other_amfs() -> (World, World, Phone) {
    let (mut old, new, phone) = sets();
    old.caller = client(8);
    (old, new, phone)
}

/// The pending report to the old AMF.
fn reported(new: &World) -> namf::UeRegStatusUpdateReqData {
    let report = new.calls.iter().find_map(|(_, _, request)| match request {
        Request::RegistrationStatusUpdate(report) => Some(report.body.clone()),
        _ => None,
    });
    report.expect("a report")
}

/// TS 23.502 4.2.2.2.2 steps 10 and 15.
#[test]
fn the_new_amf_goes_on_with_the_am_policy_of_the_old_one() {
    let (mut old, mut new, mut phone) = other_amfs();
    new.script.insert(Operation::UpdateAmPolicyAssociation, None);
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    assert_eq!(reported(&new).pcf_reselected_ind, None);
    carry(&mut new, &mut old, Operation::RegistrationStatusUpdate);
    let (tag, request) = take_call(&mut new, Operation::UpdateAmPolicyAssociation);
    let Request::UpdateAmPolicyAssociation(update) = &request else { panic!("{request:?}") };
    assert_eq!((update.pol_asso_id.as_str(), update.body.guami), ("9", Some(target_config().guami)));
    let callback = update.body.notification_uri.as_ref().unwrap();
    assert_eq!(callback.root, target_config().identity.api_root);
    let reply = new.usual(&request);
    new.reply(tag, reply);
    phone.accepted(&mut new);
    phone.send(&mut new, RegistrationComplete::new());
    let ladder = new.take_ladder();
    assert!(
        ladder.contains("pcf  <- UpdateAmPolicyAssociation\npcf  <- ReadAmPolicyAssociation\n"),
        "{ladder}"
    );
    assert!(!ladder.contains("CreateAmPolicyAssociation"), "{ladder}");
    let (_, ue) = new.amf.ues.iter().next().unwrap();
    assert_eq!(ue.policy.as_ref().and_then(|policy| policy.rfsp), Some(77), "the whole policy");
    assert_eq!(ue.transferred_policy, None);
    let ladder = old.take_ladder();
    assert!(!ladder.contains("DeleteAmPolicyAssociation"), "{ladder}");
    old.assert_empty();
}

#[test]
fn without_its_am_policy_the_new_amf_creates_one() {
    for (status, is_created) in [(403, true), (404, true), (504, false)] {
        let (mut old, mut new, mut phone) = other_amfs();
        new.script.insert(Operation::UpdateAmPolicyAssociation, Some(Err(Problem::of_status(status).into())));
        comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
        carry(&mut new, &mut old, Operation::UeContextTransfer);
        carry(&mut new, &mut old, Operation::RegistrationStatusUpdate);
        phone.accepted(&mut new);
        let ladder = new.take_ladder();
        assert_eq!(ladder.contains("pcf  <- CreateAmPolicyAssociation"), is_created, "{status}: {ladder}");
        // Without an answer the association may be the new AMF's: the next registration goes on with it.
        let (_, ue) = new.amf.ues.iter().next().unwrap();
        assert_eq!((ue.policy.is_some(), ue.transferred_policy.is_some()), (is_created, !is_created));
    }
}

#[test]
fn an_am_policy_that_is_not_transferred_is_deleted_by_the_old_amf() {
    // At an initial registration, and if the new AMF does not go on with it.
    for kind in [RegistrationKind::Initial, RegistrationKind::MobilityUpdating] {
        let (mut old, mut new, mut phone) = other_amfs();
        comes(&mut new, &mut phone, kind);
        let (tag, request) = take_call(&mut new, Operation::UeContextTransfer);
        let mut reply = old.request(request);
        let Ok(Response::UeContextTransferred(transferred)) = &mut reply else { panic!("{reply:?}") };
        assert!(transferred.ue_context.pcf_am_policy_uri.is_some());
        if kind != RegistrationKind::Initial {
            // No association's.
            let uri = "http://127.0.0.9:7000/nudm-sdm/v2/imsi-1/x".parse().unwrap();
            transferred.ue_context.pcf_am_policy_uri = Some(uri);
        }
        new.reply(tag, reply);
        assert_eq!(reported(&new).pcf_reselected_ind, Some(true));
        carry(&mut new, &mut old, Operation::RegistrationStatusUpdate);
        phone.accepted(&mut new);
        let ladder = new.take_ladder();
        assert!(
            ladder.contains("pcf  <- CreateAmPolicyAssociation") && !ladder.contains("pcf  <- Update"),
            "{ladder}"
        );
        assert!(old.take_ladder().contains("pcf  <- DeleteAmPolicyAssociation"));
        old.assert_empty();
    }
}

/// The UE leaves before the new AMF has got to its policy: the association is this AMF's, as the old one was notified.
#[test]
fn a_taken_am_policy_ends_with_the_registration() {
    let (mut old, mut new, mut phone) = other_amfs();
    let mut stored = Stored::default();
    new.amf.track_contexts(Tracking::default());
    for operation in [Operation::ThreeGppRegistration, Operation::DeleteAmPolicyAssociation] {
        new.script.insert(operation, None);
    }
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    new.input(Input::N2(crate::kit::N2Input::GnbDown { gnb: super::world::GNB }));
    new.expire(Timer::ImplicitDeregistration);
    let ladder = new.take_ladder();
    assert!(
        ladder.contains("pcf  <- UpdateAmPolicyAssociation\npcf  <- DeleteAmPolicyAssociation"),
        "{ladder}"
    );
    // An AMF that is killed now deletes it after its restart.
    let mut documents = |new: &mut World| {
        stored.store(&mut new.amf, StoreScope::Changed);
        stored.documents.len()
    };
    let before = documents(&mut new);
    new.reply_to(Operation::DeleteAmPolicyAssociation, Ok(Response::NoContent));
    assert_eq!((before, documents(&mut new)), (1, 0));
    new.assert_empty();
}

/// It may come to another shard next, or stay away: this AMF cannot page it.
#[test]
fn a_phone_that_does_not_complete_its_registration_is_not_kept_for_long() {
    let (_, mut new, _) = unfinished();
    assert_eq!(new.amf.audit().registered, 1, "the old AMF deletes its context");
    new.input(Input::N2(crate::kit::N2Input::GnbDown { gnb: super::world::GNB }));
    assert!(!new.running().contains(&Timer::MobileReachable));
    new.expire(Timer::ImplicitDeregistration);
    assert!(new.take_ladder().contains("smf  <- ReleaseSmContext"));
    new.assert_empty();
}

/// The SMF has not got the announcement of the new AMF, so that it would refuse ReleaseSMContext from it.
#[test]
fn sessions_that_are_not_announced_yet_end_with_the_registration() {
    let (mut old, mut new, mut phone) = sets();
    new.script.insert(Operation::ThreeGppRegistration, None);
    new.script.insert(Operation::UpdateSmContext, None);
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    let announced = new.calls.len();
    new.take_ladder();
    new.reply_to(Operation::ThreeGppRegistration, Err(Problem::timed_out().into()));
    let ladder = new.take_ladder();
    assert!(!ladder.contains("ReleaseSmContext"), "{ladder}");
    let release = new.calls.iter().skip(announced - 1).find_map(|(_, _, request)| match request {
        Request::UpdateSmContext(update) => Some(update.body.clone()),
        _ => None,
    });
    let release = release.expect("the session ends");
    assert_eq!((release.release, release.guami), (Some(true), Some(target_config().guami)));
}

/// The UE returned to this AMF, whose announcement the SMF has not answered, and has left it for good now: its sessions may be the other AMF's, which
/// has announced itself. The SMF refuses ReleaseSMContext then; it would believe an AMF that names itself.
#[test]
fn an_amf_that_the_ue_has_left_does_not_announce_itself_to_end_sessions() {
    for is_asked in [true, false] {
        let (mut old, mut new, mut phone) = other_amfs();
        comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
        carry(&mut new, &mut old, Operation::UeContextTransfer);
        old.script.insert(Operation::UpdateSmContext, None);
        let request = phone.registration_request(RegistrationKind::MobilityUpdating);
        let nas = phone.initial_nas(request);
        phone.connect(&mut old, nas);
        phone.accepted(&mut old);
        phone.send(&mut old, RegistrationComplete::new());
        phone.release(&mut old);
        if is_asked {
            let request = phone.registration_request(RegistrationKind::MobilityUpdating);
            let nas = phone.initial_nas(request);
            let guti = UeContextId::FiveGGuti(phone.guti.unwrap());
            assert!(ask(&mut old, guti, namf::TransferReason::MobiReg, Some(nas)).is_ok());
        }
        notified(&mut old, AREA_CHANGE);
        if is_asked {
            old.expire(Timer::TransferredContext);
        }
        let ladder = old.take_ladder();
        assert!(ladder.contains("smf  <- ReleaseSmContext"), "{ladder}");
        let ends = |request: &Request| match request {
            Request::UpdateSmContext(update) => update.body.release.is_some(),
            _ => false,
        };
        assert!(!old.calls.iter().any(|(_, _, request)| ends(request)), "{:?}", old.calls);
        old.assert_empty();
    }
}

/// A UE that registers at another AMF, which has got its context by the policy of the old one.
fn with_derived_key() -> (World, World, Phone, Box<namf::UeContext>) {
    let (mut old, mut phone) = (World::with(AmfConfig { derives_k_amf: true, ..config() }), Phone::default());
    phone.register(&mut old);
    phone.establish(&mut old, 5);
    phone.release(&mut old);
    old.take_ladder();
    let mut new = World::with(target_config());
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    let (tag, _, request) = new.calls.pop().unwrap();
    let reply = old.request(request);
    let Ok(Response::UeContextTransferred(transferred)) = &reply else { panic!("{reply:?}") };
    let context = Box::new(transferred.ue_context.clone());
    new.reply(tag, reply);
    (old, new, phone, context)
}

/// Horizontal derivation (TS 33.501 6.9.3): the new AMF does not get K_AMF, and needs no authentication.
#[test]
fn the_ue_takes_the_key_that_its_former_amf_has_derived() {
    let (mut old, mut new, mut phone, context) = with_derived_key();
    let seaf = context.seaf_data.unwrap();
    assert_eq!((seaf.key_amf_h_derivation_ind, seaf.key_amf_change_ind), (Some(true), None));
    assert_eq!(seaf.key_amf.key_type, namf::KeyAmfType::Kprimeamf);
    assert_ne!(seaf.key_amf.octets(), Some(*k_amf_of(&phone.supi).as_bytes()));
    let GmmMessage::SecurityModeCommand(command) = phone.receive(&mut new) else { panic!() };
    let information = command.additional_security_information.unwrap();
    assert!(information.horizontal_derivation && information.retransmit_initial_nas_message);
    assert!(!old.take_ladder().contains("RegistrationStatusUpdate"), "not before the UE has the key");
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let complete = phone.security_mode_complete(request);
    phone.send_pdu(&mut new, complete);
    carry(&mut new, &mut old, Operation::RegistrationStatusUpdate);
    phone.accepted(&mut new);
    phone.send(&mut new, RegistrationComplete::new());
    assert_eq!((new.amf.audit().registered, new.amf.audit().sessions), (1, 1));
    assert!(!new.take_ladder().contains("ausf"));
    old.assert_empty();
}

/// The old AMF goes on with the UE's key.
#[test]
fn a_ue_that_does_not_take_the_derived_key_stays_with_its_former_amf() {
    let (old, mut new, mut phone, _) = with_derived_key();
    let GmmMessage::SecurityModeCommand(_) = phone.receive(&mut new) else { panic!() };
    for _ in 0..5 {
        new.expire(Timer::T3560);
    }
    phone.released(&mut new);
    assert!(!new.take_ladder().contains("SmContext"));
    new.assert_empty();
    assert_eq!((old.amf.audit().registered, old.amf.audit().sessions), (1, 1));
}

#[test]
fn the_shards_of_an_amf_give_each_other_the_key_itself() {
    let (mut old, mut phone) = (World::with(AmfConfig { derives_k_amf: true, ..config() }), Phone::default());
    phone.register(&mut old);
    phone.release(&mut old);
    let tag = crate::kit::Tag::new(1, 1);
    old.caller = crate::kit::Caller::Shard { shard: 3, nf: crate::kit::Nf::Amf, tag };
    let mut new = World::with(second());
    comes(&mut new, &mut phone, RegistrationKind::MobilityUpdating);
    carry(&mut new, &mut old, Operation::UeContextTransfer);
    assert!(matches!(phone.receive(&mut new), GmmMessage::RegistrationAccept(_)));
}
