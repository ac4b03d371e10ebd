//! Authentication vectors, UE context management, subscription data; the test acts as the UDR.

mod data_change;
mod sequence_number;
mod subscription;

use super::*;
use crate::kit::{Caller, Nf, ReferenceKey, References};
use crate::testing::{self, Bench, Seen, instance, plmn, root, supi};
use pith_crypto::Algorithm;
use pith_crypto::aka;
use pith_crypto::keys::{Autn, Opc, Rand, SubscriberKey};
use pith_crypto::milenage::Milenage;
use pith_crypto::sqn::Sqn;
use pith_crypto::suci::{HomeNetworkPrivateKey, Profile, encode_msin};
use pith_sbi::common::{AuthType, DateTime, RatType, SupiOrSuci};
use pith_sbi::nausf_ueauthentication::ResynchronizationInfo;
use pith_sbi::nudm_sdm::{
    AccessAndMobilitySubscriptionData, DataSetName, GetDataSets, GetUeCtxInSmfData, SdmSubscribe,
    SdmSubscription, SdmUnsubscribe, SmfSelectionSubscriptionData,
};
use pith_sbi::nudm_ueau::{AuthenticationInfoRequest, AuthenticationVector, GenerateAuthData};
use pith_sbi::nudm_uecm::{
    Amf3GppAccessRegistration, Amf3GppAccessRegistrationModification, DeregistrationReason, RegisterSmf,
    RegistrationReason, SmfDeregistration, SmfRegistration, ThreeGppRegistration, UpdateThreeGppRegistration,
};
use pith_sbi::nudr_dr::{AuthenticationSubscription, SequenceNumber};
use pith_sbi::{Cause, Created, Hex, NfType, Operation, ResourceUri, Response, SecretText, Uri};
use pith_types::{ContextId, Guami, Snssai, Supi};
use std::sync::Arc;

const K: [u8; 16] = [0x46; 16];
const OPC: [u8; 16] = [0xe8; 16];
const SQN: u64 = 0x20;

fn private_key(profile: Profile) -> Arc<HomeNetworkPrivateKey> {
    Arc::new(HomeNetworkPrivateKey::new(profile, &[0x1d; 32]).unwrap())
}

/// The call whose reply the UDM waits for; removals may precede it.
fn awaited(seen: &Seen) -> (Tag, &Request) {
    let (tag, _, request) = seen.calls().pop().unwrap();
    (tag, request)
}

/// A data set of the subscriber, as a monitored resource.
fn resource(data: &str) -> ResourceUri {
    format!("/nudm-sdm/v2/{}/{data}", supi()).as_str().into()
}

fn bench() -> Bench<Udm> {
    let key = |id, profile| HomeNetworkKey { id, key: private_key(profile) };
    let home_network_keys = vec![key(1, Profile::A), key(2, Profile::B)];
    let config = UdmConfig { identity: testing::identity(), plmn: plmn(), home_network_keys };
    Bench::new(Udm::new(config, Rng::from_number(1)))
}

/// The home network's functions of the subscriber.
fn algorithm() -> Algorithm {
    Algorithm::Milenage(Milenage::new(&SubscriberKey::new(K), &Opc::new(OPC)))
}

fn generate(bench: &mut Bench<Udm>, whose: &str, resync: Option<ResynchronizationInfo>) -> Seen {
    let mut body = AuthenticationInfoRequest::new("5G:mnc070.mcc999.3gppnetwork.org", instance(3));
    body.resynchronization_info = resync;
    let supi_or_suci: SupiOrSuci = whose.parse().unwrap();
    bench.request(GenerateAuthData { supi_or_suci, body })
}

fn keys() -> Reply {
    keys_and(SQN)
}

fn keys_and(sqn: u64) -> Reply {
    let mut subscription = AuthenticationSubscription::new(AuthType::FiveGAka);
    subscription.enc_permanent_key = Some(SecretText::from(Hex(K).to_string()));
    subscription.enc_opc_key = Some(SecretText::from(Hex(OPC).to_string()));
    let mut number = SequenceNumber::default();
    number.sqn = Some(Hex(Sqn::new(sqn).to_bytes()));
    subscription.sequence_number = Some(number);
    Ok(Response::AuthenticationSubscription(Box::new(subscription)))
}

/// The SUPI whose keys are requested.
fn asked_for(seen: &Seen) -> &Supi {
    let (_, Request::QueryAuthSubsData(query)) = seen.call() else { panic!("{seen:?}") };
    &query.ue_id
}

/// The SQN that the UDR is to store.
fn kept(seen: &Seen) -> u64 {
    let (_, Request::ModifyAuthenticationSubscription(modify)) = seen.call() else { panic!("{seen:?}") };
    let text = modify.body.last().unwrap().value.as_ref().unwrap().as_str().unwrap();
    u64::from_str_radix(text, 16).unwrap()
}

/// Continues from the keys to the vector; returns the SQN in AUTN, as the USIM reads it.
fn sqn_of_vector(bench: &mut Bench<Udm>, asked: &Seen) -> u64 {
    let keep = bench.reply(asked.call().0, keys());
    assert!(keep.answers().is_empty(), "no vector before its SQN is kept");
    let seen = bench.reply(keep.call().0, Ok(Response::NoContent));
    let sqn = sqn_in(seen.answer());
    assert_eq!(kept(&keep), sqn, "what is kept is what is used");
    sqn
}

/// The SQN in AUTN, as the USIM reads it.
fn sqn_in(answer: &Response) -> u64 {
    let Response::AuthenticationInfoResult(result) = answer else { panic!("{answer:?}") };
    let Some(AuthenticationVector::FiveGHeAka(vector)) = &result.authentication_vector else { panic!() };
    let challenge =
        aka::check_challenge(&algorithm(), &Rand::new(vector.rand.0), &Autn::new(vector.autn.0)).unwrap();
    challenge.sqn.into()
}

/// AUTS of a USIM whose highest SQN is `sqn_ms`.
fn synchronisation_failure(sqn_ms: u64) -> ResynchronizationInfo {
    let auts = aka::auts(&algorithm(), &Rand::new([5; 16]), Sqn::new(sqn_ms));
    ResynchronizationInfo::new(Hex([5; 16]), Hex(*auts.as_bytes()))
}

fn conceal(profile: Profile, msin: &str) -> String {
    let output = private_key(profile).public_key().unwrap();
    let output = output.conceal(&[0x77; 32], &encode_msin(msin).unwrap()).unwrap();
    output.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[test]
fn the_suci_of_each_scheme_is_deconcealed() {
    let a = format!("suci-0-999-70-0-1-1-{}", conceal(Profile::A, "0000000001"));
    let b = format!("suci-0-999-70-0-2-2-{}", conceal(Profile::B, "0000000001"));
    for suci in ["suci-0-999-70-0-0-0-0000000001", &a, &b, "imsi-999700000000001"] {
        assert_eq!(asked_for(&generate(&mut bench(), suci, None)), &supi(), "{suci}");
    }
}

#[test]
fn a_suci_that_can_not_be_deconcealed_is_refused_with_the_reason() {
    let a = conceal(Profile::A, "0000000001");
    let spoiled = format!("{}00", &a[..a.len() - 2]);
    let cases = [
        (format!("suci-0-999-70-0-1-9-{a}"), Cause::InvalidHnPublicKeyIdentifier),
        (format!("suci-0-999-70-0-2-1-{a}"), Cause::UnsupportedProtectionScheme),
        (format!("suci-0-999-70-0-1-1-{spoiled}"), Cause::InvalidSchemeOutput),
        (format!("suci-0-999-70-0-1-1-{}", &a[..20]), Cause::InvalidSchemeOutput),
    ];
    for (suci, cause) in cases {
        let mut bench = bench();
        assert_eq!(generate(&mut bench, &suci, None).cause(), Some(&cause), "{suci}");
        assert!(bench.nf.entries.is_empty());
    }
}

#[test]
fn a_vector_is_returned_after_its_sqn_is_stored() {
    let mut bench = bench();
    let asked = generate(&mut bench, "imsi-999700000000001", None);
    assert!(sqn_of_vector(&mut bench, &asked) > SQN);
    assert!(bench.nf.entries.is_empty());
}

#[test]
fn no_vector_is_returned_if_its_sqn_can_not_be_stored() {
    let mut bench = bench();
    let asked = generate(&mut bench, "imsi-999700000000001", None);
    let keep = bench.reply(asked.call().0, keys());
    let failed = bench.reply(keep.call().0, Err(Problem::system_failure("the disk is full").into()));
    assert_eq!(failed.cause(), Some(&Cause::SystemFailure));
    assert!(bench.nf.entries.is_empty());
}

#[test]
fn a_valid_auts_advances_the_sqn_past_that_of_the_usim() {
    let mut bench = bench();
    let sqn_ms = 0x4_0000;
    let asked = generate(&mut bench, "imsi-999700000000001", Some(synchronisation_failure(sqn_ms)));
    assert!(sqn_of_vector(&mut bench, &asked) > sqn_ms);
}

#[test]
fn an_invalid_auts_changes_nothing() {
    let mut bench = bench();
    let info = ResynchronizationInfo::new(Hex([5; 16]), Hex([9; 14]));
    let asked = generate(&mut bench, "imsi-999700000000001", Some(info));
    let seen = bench.reply(asked.call().0, keys());
    assert_eq!(seen.cause(), Some(&Cause::AuthenticationRejected));
    assert!(seen.operations().is_empty(), "no SQN is kept");
}

#[test]
fn an_unknown_subscriber_is_refused() {
    let mut bench = bench();
    let asked = generate(&mut bench, "imsi-999700000000009", None);
    let seen = bench.reply(asked.call().0, Err(Problem::user_not_found().into()));
    assert_eq!(seen.cause(), Some(&Cause::UserNotFound));
}

#[test]
fn a_late_or_repeated_answer_changes_nothing() {
    let mut bench = bench();
    let asked = generate(&mut bench, "imsi-999700000000001", None);
    bench.reply(asked.call().0, keys());
    assert!(bench.reply(asked.call().0, keys()).is_empty());
}

fn guami(pointer: &str) -> Guami {
    Guami { plmn_id: plmn(), amf_id: pointer.parse().unwrap() }
}

fn registration(amf: u128) -> Amf3GppAccessRegistration {
    let callback = Uri::new(&root(&format!("amf{amf}")), "/namf-callback/v1/dereg-notify/1");
    let mut body = Amf3GppAccessRegistration::new(instance(amf), callback, guami("020040"), RatType::Nr);
    body.initial_registration_ind = Some(true);
    body
}

/// An AMF registers while the UDR has `old`; returns the UDM's last effects.
fn register(new: u128, old: Option<Amf3GppAccessRegistration>) -> Seen {
    let mut bench = bench();
    let asked = bench.request(ThreeGppRegistration { ue_id: supi(), body: registration(new) });
    assert_eq!(asked.operations(), [Operation::QueryAmfContextThreeGpp]);
    let held = old.map(|old| Response::Amf3GppAccessRegistration(Box::new(old)));
    let create = bench.reply(asked.call().0, held.ok_or_else(|| Problem::data_not_found().into()));
    assert_eq!(create.operations(), [Operation::CreateAmfContextThreeGpp]);
    let done = bench.reply(create.call().0, Ok(Response::NoContent));
    assert!(bench.nf.entries.is_empty());
    done
}

#[test]
fn the_first_amf_registers_and_nobody_is_notified() {
    let seen = register(1, None);
    let Response::Amf3GppAccessRegistrationCreated(created) = seen.answer() else { panic!("{seen:?}") };
    assert!(created.location.path.ends_with("/registrations/amf-3gpp-access"));
    assert!(seen.operations().is_empty());
}

#[test]
fn the_old_amf_is_notified_of_the_new_one() {
    let seen = register(2, Some(registration(1)));
    assert_eq!(seen.answer().outcome().status(), 200);
    let (_, target, Request::DeregistrationNotification(notification)) = seen.calls()[0] else { panic!() };
    assert_eq!(*target, Target::Root(root("amf1")));
    assert_eq!(notification.body.dereg_reason, DeregistrationReason::UeInitialRegistration);
}

#[test]
fn an_amf_that_registers_again_or_has_purged_the_ue_is_not_notified() {
    assert!(register(1, Some(registration(1))).operations().is_empty());
    let mut purged = registration(1);
    purged.purge_flag = Some(true);
    assert!(register(2, Some(purged)).operations().is_empty());
}

/// A reference to a UE context of a shard of the AMF.
fn reference(shard: u8) -> String {
    let id = ContextId { block: testing::block(shard), number: 7 };
    References::new(&ReferenceKey::new([1; 32])).of_id(id)
}

/// The registration of AMF 1 for a UE context of that shard.
fn registration_of_shard(shard: u8) -> Amf3GppAccessRegistration {
    let path = format!("/namf-callback/v1/dereg-notify/{}", reference(shard));
    Amf3GppAccessRegistration { dereg_callback_uri: Uri::new(&root("nf"), &path), ..registration(1) }
}

#[test]
fn the_former_shard_of_the_same_amf_is_notified_and_its_subscription_ends() {
    let register = |new: u8, old: u8| {
        let mut bench = bench();
        let asked = bench.request(ThreeGppRegistration { ue_id: supi(), body: registration_of_shard(new) });
        let held = Response::Amf3GppAccessRegistration(Box::new(registration_of_shard(old)));
        let create = bench.reply(asked.call().0, Ok(held));
        bench.reply(create.call().0, Ok(Response::NoContent))
    };
    assert!(register(0, 0).operations().is_empty(), "the same UE context registers again");
    let moved = register(1, 0);
    let [
        (_, _, Request::DeregistrationNotification(notification)),
        (_, _, Request::RemoveSdmSubscriptions(end)),
        (_, _, Request::RemoveSdmSubscriptions(_)),
    ] = moved.calls()[..]
    else {
        panic!("{moved:?}")
    };
    assert_eq!(notification.uri.id(), reference(0));
    let mut ids = [0, 1].map(|shard| implicit_subscription_of(&reference(shard)));
    assert_eq!(end.subs_id, ids[0]);
    ids.sort();
    assert_ne!(ids[0], ids[1], "the subscription of the new shard stays");
}

/// The id of the implicit subscription of AMF 1 with that callback reference.
fn implicit_subscription_of(reference: &str) -> String {
    let mut bench = bench();
    let callback = Uri::new(&root("nf"), &format!("/namf-callback/v1/sdm-change/{reference}"));
    let mut body = SdmSubscription::new(instance(1), callback, vec![resource("am-data")]);
    body.implicit_unsubscribe = Some(true);
    let seen = bench.request(SdmSubscribe { ue_id: supi(), body });
    let (_, Request::CreateSdmSubscriptions(create)) = seen.call() else { panic!("{seen:?}") };
    let id = create.body.subscription_id.as_deref().unwrap().to_owned();
    bench.caller = testing::client(2);
    let end = SdmUnsubscribe { ue_id: supi(), subscription_id: id.clone() };
    assert_eq!(bench.request(end).problem().status, 403, "it is that of AMF 1");
    id
}

#[test]
fn the_former_shard_of_the_same_amf_can_not_purge_the_ue() {
    let mut bench = bench();
    let mut purge = |shard| {
        bench.caller = Caller::Shard { shard, nf: Nf::Amf, tag: Tag::new(1, 1) };
        let mut body = Amf3GppAccessRegistrationModification::new(guami("020040"));
        body.purge_flag = Some(true);
        let asked = bench.request(UpdateThreeGppRegistration { ue_id: supi(), body });
        let held = Response::Amf3GppAccessRegistration(Box::new(registration_of_shard(0)));
        bench.reply(asked.call().0, Ok(held))
    };
    assert_eq!(purge(1).problem().status, 403, "shard 0 has registered meanwhile");
    assert_eq!(purge(0).operations(), [Operation::ModifyAmfContextThreeGpp]);
}

/// An AMF of that identity purges the UE, which is registered at AMF 1.
fn purge(bench: &mut Bench<Udm>, pointer: &str) -> Seen {
    let mut body = Amf3GppAccessRegistrationModification::new(guami(pointer));
    body.purge_flag = Some(true);
    let asked = bench.request(UpdateThreeGppRegistration { ue_id: supi(), body });
    let held = Response::Amf3GppAccessRegistration(Box::new(registration(1)));
    bench.reply(asked.call().0, Ok(held))
}

#[test]
fn only_the_serving_amf_can_purge_the_ue() {
    let mut bench = bench();
    assert_eq!(purge(&mut bench, "020080").cause(), Some(&Cause::InvalidGuami), "another set");
    let modify = purge(&mut bench, "020040");
    assert_eq!(modify.operations(), [Operation::ModifyAmfContextThreeGpp]);
    let asked = bench.reply(modify.call().0, Ok(Response::NoContent));
    assert_eq!(asked.operations(), [Operation::QuerySdmSubscriptions]);
    let lost = bench.reply(asked.call().0, Err(Box::new(Problem::timed_out())));
    assert_eq!(lost.answer(), &Response::NoContent);
    assert_eq!(lost.operations(), [Operation::RemoveSdmSubscriptions], "its own");
}

/// A UDR that was killed has a subscription, and not the registration with which it would end.
#[test]
fn a_purge_ends_the_implicit_subscriptions_of_smfs_that_are_not_registered() {
    let mut bench = bench();
    let modify = purge(&mut bench, "020040");
    let asked = bench.reply(modify.call().0, Ok(Response::NoContent));
    let session = |context: u8| {
        let mut registration = SmfRegistration::new(instance(1), context, Snssai::of_sst(1), plmn());
        let path = format!("/nsmf-callback/v1/dereg-notify/{}", reference(context));
        registration.dereg_callback_uri = Some(Uri::new(&root("smf"), &path));
        registration
    };
    let [lost, registered] = [1, 2].map(|context| implicit_subscription_of(&reference(context)));
    let ids = [lost.as_str(), registered.as_str(), "5e8-of-another-nf"];
    let subscription = |id: &str| {
        let callback = Uri::new(&root("smf"), "/nsmf-callback/v1/sdm/1");
        let mut body = SdmSubscription::new(instance(2), callback, vec![]);
        body.subscription_id = Some(id.into());
        body
    };
    let stored = ids.iter().map(|id| subscription(id)).collect();
    let asked = bench.reply(asked.call().0, Ok(Response::SdmSubscriptions(Box::new(stored))));
    assert_eq!(asked.operations(), [Operation::QuerySmfRegList]);
    let done = bench.reply(asked.call().0, Ok(Response::SmfRegList(Box::new(vec![session(2)]))));
    assert_eq!(done.answer(), &Response::NoContent);
    let removed = done.calls().into_iter().filter_map(|(_, _, request)| match request {
        Request::RemoveSdmSubscriptions(remove) => Some(remove.subs_id.to_string()),
        _ => None,
    });
    let removed: Vec<String> = removed.collect();
    assert_eq!((removed.len(), removed[0].as_str()), (2, ids[0]), "and its own: {removed:?}");
}

/// The UE's block has passed to another AMF of the set, with another AMF Pointer.
#[test]
fn another_amf_of_the_set_can_purge_the_ue() {
    let mut bench = bench();
    let modify = purge(&mut bench, "020041");
    assert_eq!(modify.operations(), [Operation::ModifyAmfContextThreeGpp]);
    bench.caller = testing::client(99);
    let refused = purge(&mut bench, "020041");
    assert_eq!(
        refused.problem().status,
        403,
        "its certificate says that it is not the AMF of the registration"
    );
}

/// Another AMF may register between the check and the change: the UDR compares what was checked.
#[test]
fn a_purge_changes_only_the_registration_that_was_checked() {
    let mut bench = bench();
    let modify = purge(&mut bench, "020040");
    let (_, Request::ModifyAmfContextThreeGpp(request)) = modify.call() else { panic!("{modify:?}") };
    let patched = |held: &Amf3GppAccessRegistration| {
        pith_sbi::patch::apply(held, &request.body).map(|patched| patched.purge_flag)
    };
    assert_eq!(patched(&registration(1)).unwrap(), Some(true));
    assert!(patched(&registration(2)).is_err(), "another AMF");
    let mut other_shard = registration(1);
    other_shard.dereg_callback_uri = Uri::new(&root("amf"), "/namf-callback/v1/dereg-notify/other");
    assert!(patched(&other_shard).is_err(), "another shard of the instance");
}

#[test]
fn an_amf_changes_only_its_own_registration() {
    let mut bench = bench();
    bench.caller = testing::client(2);
    assert_eq!(purge(&mut bench, "020040").problem().status, 403, "it is that of AMF 1");
    bench.caller = testing::client(1);
    assert_eq!(purge(&mut bench, "020040").operations(), [Operation::ModifyAmfContextThreeGpp]);
}

#[test]
fn an_smf_deletes_only_its_own_registration() {
    let mut bench = bench();
    let mut delete = |smf: u128| {
        // An earlier version stored a registration with any session in it.
        let in_body = 6;
        bench.caller = testing::client(smf);
        let smf_instance_id = Some(instance(smf));
        let asked = bench.request(SmfDeregistration { ue_id: supi(), pdu_session_id: 1, smf_instance_id });
        assert_eq!(asked.operations(), [Operation::QuerySmfRegistration]);
        let held = SmfRegistration::new(instance(1), in_body, Snssai::of_sst(1), plmn());
        bench.reply(asked.call().0, Ok(Response::SmfRegistration(Box::new(held))))
    };
    assert_eq!(delete(2).problem().status, 403);
    let seen = delete(1);
    let Request::DeleteSmfRegistration(delete) = seen.call().1 else { panic!() };
    assert_eq!(delete.pdu_session_id, 1);
}

/// The context that had the session was lost, and its subscription would stay; or it is still there, and is to end.
#[test]
fn the_smf_context_that_had_the_session_is_notified_and_its_implicit_subscription_ends() {
    let registration = |context: u8| {
        let mut registration = SmfRegistration::new(instance(1), 5, Snssai::of_sst(1), plmn());
        let path = format!("/nsmf-callback/v1/dereg-notify/{}", reference(context));
        registration.dereg_callback_uri = Some(Uri::new(&root("smf"), &path));
        registration
    };
    let register = |former: Option<u8>| {
        let mut bench = bench();
        let request = RegisterSmf { ue_id: supi(), pdu_session_id: 5, body: registration(1) };
        let asked = bench.request(request);
        assert_eq!(asked.operations(), [Operation::QuerySmfRegistration]);
        let held = former.map(|context| Response::SmfRegistration(Box::new(registration(context))));
        let reply = held.ok_or_else(|| Box::new(Problem::data_not_found()));
        let seen = bench.reply(asked.call().0, reply);
        let (tag, request) = awaited(&seen);
        let Request::RemoveSdmSubscriptions(remove) = request else {
            return (None, seen.operations());
        };
        let ended = remove.subs_id.clone();
        let seen = bench.reply(tag, Ok(Response::NoContent));
        let operations = seen.operations();
        let notified = bench.reply(seen.call().0, Ok(Response::NoContent));
        let Request::DeregistrationNotification(notification) = notified.call().1 else {
            panic!("{notified:?}")
        };
        assert_eq!(notification.body.dereg_reason, DeregistrationReason::DuplicatePduSession);
        assert!(notification.uri.id() == reference(2), "{:?}", notification.uri);
        (Some(ended), operations)
    };
    let stored = vec![Operation::CreateOrUpdateSmfRegistration];
    assert_eq!(register(None), (None, stored.clone()));
    assert_eq!(register(Some(1)), (None, stored.clone()), "the same context");
    let ended = implicit_subscription_of(&reference(2));
    assert_eq!(register(Some(2)), (Some(ended), stored));
}

/// TS 24.501 9.4, TS 29.571 5.4.2. The UDR has room for each of these sessions.
#[test]
fn an_smf_registers_for_ids_of_sessions_only() {
    let mut bench = bench();
    let mut register = |at: u8, id: u8| {
        let body = SmfRegistration::new(instance(1), id, Snssai::of_sst(1), plmn());
        let seen = bench.request(RegisterSmf { ue_id: supi(), pdu_session_id: at, body });
        let is_refused = seen.operations().is_empty();
        assert!(!is_refused || seen.cause() == Some(&Cause::MandatoryIeIncorrect));
        !is_refused
    };
    let ids: Vec<u8> = (0..=255).filter(|id| register(*id, *id)).collect();
    assert_eq!(ids, (1..=15).chain(64..=95).collect::<Vec<u8>>());
    assert!(!register(1, 2), "the SMF could delete another's registration");
    let mut documents: Vec<String> = Vec::new();
    for id in ids {
        let document = format!("context-data/smf-registrations/{id}");
        assert!(crate::kit::has_room(&document, documents.iter().map(String::as_str)), "{id}");
        documents.push(document);
    }
}

/// The registration `new` after `former`: the reason in the notification of the former SMF; `Err` if it is refused.
fn replaced(former: SmfRegistration, new: SmfRegistration) -> Result<Option<DeregistrationReason>, u16> {
    let mut bench = bench();
    let asked = bench.request(RegisterSmf { ue_id: supi(), pdu_session_id: 5, body: new });
    let mut seen = bench.reply(asked.call().0, Ok(Response::SmfRegistration(Box::new(former))));
    if seen.calls().is_empty() {
        return Err(seen.problem().status);
    }
    if let Request::RemoveSdmSubscriptions(_) = awaited(&seen).1 {
        seen = bench.reply(awaited(&seen).0, Ok(Response::NoContent));
    }
    let seen = bench.reply(seen.call().0, Ok(Response::NoContent));
    Ok(seen.calls().into_iter().find_map(|(_, _, request)| match request {
        Request::DeregistrationNotification(it) => Some(it.body.dereg_reason.clone()),
        _ => None,
    }))
}

/// An SMF of the same set, or one that got the context from the former one, has not made a second session.
#[test]
fn only_another_smf_context_is_a_duplicate() {
    let registration = |smf: u128, callback: &str| {
        let mut registration = SmfRegistration::new(instance(smf), 5, Snssai::of_sst(1), plmn());
        registration.dereg_callback_uri = Some(Uri::new(&root("smf"), callback));
        registration
    };
    let duplicate = Ok(Some(DeregistrationReason::DuplicatePduSession));
    assert_eq!(replaced(registration(1, "/a"), registration(2, "/b")), duplicate);
    assert_eq!(replaced(registration(1, "/a"), registration(2, "/a")), Ok(None), "the set's callback URI");
    let of_set = |smf, callback| {
        let mut registration = registration(smf, callback);
        registration.smf_set_id = Some("set1.smfset.5gc.mnc070.mcc999".into());
        registration
    };
    assert_eq!(replaced(of_set(1, "/a"), of_set(2, "/b")), Ok(None));
    let mut transferred = registration(2, "/b");
    transferred.registration_reason = Some(RegistrationReason::SmfContextTransferred);
    let reason = Ok(Some(DeregistrationReason::SmfContextTransferred));
    assert_eq!(replaced(registration(1, "/a"), transferred), reason);
}

/// Each instance of a set has its own instance id and apiRoot. One that takes a context over registers again.
#[test]
fn an_smf_instance_that_takes_a_context_over_makes_no_duplicate() {
    let registration = |smf: u128, reference: &str, time: i64| {
        let mut registration = SmfRegistration::new(instance(smf), 5, Snssai::of_sst(1), plmn());
        let callback = Uri::callback(&root(&format!("smf-{smf}")), &NfType::Smf, "dereg-notify", reference);
        registration.dereg_callback_uri = Some(callback);
        registration.registration_time = Some(DateTime::from_unix_ms(time));
        registration
    };
    let of_set = |smf, reference, time| {
        let smf_set_id = Some("set001.smfset.5gc.mnc070.mcc999".into());
        SmfRegistration { smf_set_id, ..registration(smf, reference, time) }
    };
    let (context, other) = (reference(1), reference(2));
    let duplicate = Ok(Some(DeregistrationReason::DuplicatePduSession));
    let taken_over = replaced(registration(1, &context, 1000), registration(2, &context, 2000));
    assert_eq!(taken_over, Ok(None), "the same context");
    assert_eq!(replaced(of_set(1, &context, 1000), of_set(2, &context, 2000)), Ok(None));
    let earlier = replaced(registration(1, &context, 2000), registration(2, &context, 1000));
    assert_eq!(earlier, Ok(None), "clocks of instances differ");
    assert_eq!(replaced(of_set(1, &context, 1000), of_set(2, &other, 2000)), duplicate, "of the same set");
    // The same context id, under another installation's key.
    let id = context.split_once('.').unwrap().0;
    let foreign = format!("{id}.0123456789abcdef");
    assert_eq!(replaced(registration(1, &context, 1000), registration(2, &foreign, 2000)), duplicate);
    // References of other vendors' SMFs may be equal by chance.
    assert_eq!(replaced(registration(1, "5", 1000), registration(2, "5", 2000)), duplicate);

    let mut bench = bench();
    let body = registration(2, &context, 2000);
    let asked = bench.request(RegisterSmf { ue_id: supi(), pdu_session_id: 5, body });
    let former = Response::SmfRegistration(Box::new(registration(1, &context, 1000)));
    let seen = bench.reply(asked.call().0, Ok(former));
    let (_, Request::RemoveSdmSubscriptions(remove)) = awaited(&seen) else { panic!("{seen:?}") };
    assert_eq!(remove.subs_id, implicit_subscription_of(&context), "that of instance 1");
}

/// Its answer was lost, and the session has been established again meanwhile.
#[test]
fn a_repeated_registration_of_a_former_smf_context_is_refused() {
    let registration = |smf: u128, time: i64| {
        let mut registration = SmfRegistration::new(instance(smf), 5, Snssai::of_sst(1), plmn());
        registration.dereg_callback_uri = Some(Uri::new(&root("smf"), &format!("/{smf}")));
        registration.registration_time = Some(DateTime::from_unix_ms(time));
        registration
    };
    assert_eq!(replaced(registration(2, 2000), registration(1, 1000)), Err(403));
    let duplicate = Ok(Some(DeregistrationReason::DuplicatePduSession));
    assert_eq!(replaced(registration(1, 1000), registration(2, 2000)), duplicate);
    assert_eq!(replaced(registration(1, 900_000), registration(2, 2000)), duplicate, "a clock that is wrong");
}

/// TS 29.503 5.2.2.3.2: `implicitUnsubscribe`.
#[test]
fn the_implicit_subscription_of_a_former_amf_ends() {
    let seen = register(2, Some(registration(1)));
    let ended = seen.calls().into_iter().find_map(|(_, _, request)| match request {
        Request::RemoveSdmSubscriptions(remove) => Some(remove.subs_id.clone()),
        _ => None,
    });
    let mut bench = bench();
    let callback = Uri::new(&root("amf"), "/namf-callback/v1/sdm/1");
    let mut body = SdmSubscription::new(instance(1), callback, vec![resource("am-data")]);
    body.implicit_unsubscribe = Some(true);
    let seen = bench.request(SdmSubscribe { ue_id: supi(), body });
    let (_, Request::CreateSdmSubscriptions(create)) = seen.call() else { panic!("{seen:?}") };
    assert_eq!(
        (ended.as_deref(), create.body.subscription_id.is_some()),
        (create.body.subscription_id.as_deref(), true)
    );
}

#[test]
fn an_nf_ends_only_its_own_subscription() {
    let mut bench = bench();
    bench.caller = testing::client(1);
    let callback = Uri::new(&root("amf"), "/namf-callback/v1/sdm/1");
    let body = SdmSubscription::new(instance(1), callback, vec![resource("am-data")]);
    let asked = bench.request(SdmSubscribe { ue_id: supi(), body });
    let (tag, Request::CreateSdmSubscriptions(create)) = asked.call() else { panic!("{asked:?}") };
    let created = Created { location: Uri::new(&root("udr"), "/x"), body: create.body.clone() };
    let seen = bench.reply(tag, Ok(Response::SdmSubscriptionCreated(Box::new(created))));
    let Response::SdmSubscriptionCreated(created) = seen.answer() else { panic!("{seen:?}") };
    let end = SdmUnsubscribe { ue_id: supi(), subscription_id: created.location.id().into() };
    bench.caller = testing::client(2);
    assert_eq!(bench.request(end.clone()).problem().status, 403);
    bench.caller = testing::client(1);
    assert_eq!(bench.request(end).operations(), [Operation::RemoveSdmSubscriptions]);
}

#[test]
fn data_sets_are_returned_in_one_answer() {
    let mut bench = bench();
    let dataset_names = vec![DataSetName::Am, DataSetName::SmfSel, DataSetName::Trace];
    let first = bench.request(GetDataSets { supi: supi(), dataset_names, plmn_id: None });
    assert_eq!(first.operations(), [Operation::QueryAmData]);
    let am = AccessAndMobilitySubscriptionData::default();
    let second = bench.reply(first.call().0, Ok(Response::AmData(Box::new(am))));
    assert_eq!(second.operations(), [Operation::QuerySmfSelectData]);
    let selection = SmfSelectionSubscriptionData::default();
    let done = bench.reply(second.call().0, Ok(Response::SmfSelData(Box::new(selection))));
    let Response::SubscriptionDataSets(sets) = done.answer() else { panic!("{done:?}") };
    assert!(sets.am_data.is_some() && sets.smf_sel_data.is_some() && sets.sm_data.is_none());
}

/// Each name of a request would cost a read of the database.
#[test]
fn a_data_set_is_read_once_however_often_it_is_named() {
    let mut bench = bench();
    let dataset_names = vec![DataSetName::Am; 5000];
    let first = bench.request(GetDataSets { supi: supi(), dataset_names, plmn_id: None });
    let am = AccessAndMobilitySubscriptionData::default();
    let done = bench.reply(first.call().0, Ok(Response::AmData(Box::new(am))));
    let Response::SubscriptionDataSets(sets) = done.answer() else { panic!("{done:?}") };
    assert!(sets.am_data.is_some());
}

#[test]
fn one_data_set_that_fails_fails_all() {
    let mut bench = bench();
    let dataset_names = vec![DataSetName::Am, DataSetName::Sm];
    let first = bench.request(GetDataSets { supi: supi(), dataset_names, plmn_id: None });
    let done = bench.reply(first.call().0, Err(Problem::user_not_found().into()));
    assert_eq!(done.cause(), Some(&Cause::UserNotFound));
    assert!(bench.nf.entries.is_empty());
}

#[test]
fn a_subscription_is_a_resource_of_the_udm() {
    use pith_sbi::nudm_sdm::{SdmSubscribe, SdmSubscription};
    let mut bench = bench();
    let callback = Uri::new(&root("amf"), "/namf-callback/v1/sdm-change/1");
    let body = SdmSubscription::new(instance(1), callback, vec![resource("am-data")]);
    let asked = bench.request(SdmSubscribe { ue_id: supi(), body });
    let (tag, Request::CreateSdmSubscriptions(create)) = asked.call() else { panic!("{asked:?}") };
    let at_udr = Uri::new(&root("udr"), "/nudr-dr/v2/elsewhere");
    let created = Created { location: at_udr, body: create.body.clone() };
    let done = bench.reply(tag, Ok(Response::SdmSubscriptionCreated(Box::new(created))));
    let Response::SdmSubscriptionCreated(created) = done.answer() else { panic!("{done:?}") };
    assert_eq!(created.location.root, root("nf"));
    assert_eq!(Some(created.location.id()), created.body.subscription_id.as_deref());
}

#[test]
fn the_sessions_of_a_ue_are_derived_from_smf_registrations() {
    let mut bench = bench();
    let asked = bench.request(GetUeCtxInSmfData { supi: supi() });
    assert_eq!(asked.operations(), [Operation::QuerySmfRegList]);
    let mut registration = SmfRegistration::new(instance(7), 5, pith_types::Snssai::of_sst(1), plmn());
    registration.dnn = Some("internet".parse().unwrap());
    let seen = bench.reply(asked.call().0, Ok(Response::SmfRegList(Box::new(vec![registration]))));
    let Response::UeContextInSmfData(data) = seen.answer() else { panic!("{seen:?}") };
    let session = &data.pdu_sessions["5"];
    assert_eq!((session.smf_instance_id, session.dnn.as_str()), (instance(7), "internet"));
}

#[test]
fn a_ue_without_sessions_has_an_empty_context_in_smfs() {
    let mut bench = bench();
    let asked = bench.request(GetUeCtxInSmfData { supi: supi() });
    let seen = bench.reply(asked.call().0, Err(pith_sbi::Problem::data_not_found().into()));
    let Response::UeContextInSmfData(data) = seen.answer() else { panic!("{seen:?}") };
    assert!(data.pdu_sessions.is_empty());
    let dataset_names = vec![DataSetName::UecSmf];
    let asked = bench.request(GetDataSets { supi: supi(), dataset_names, plmn_id: None });
    let seen = bench.reply(asked.call().0, Err(pith_sbi::Problem::data_not_found().into()));
    let Response::SubscriptionDataSets(sets) = seen.answer() else { panic!("{seen:?}") };
    assert!(sets.uec_smf_data.is_some());
}
