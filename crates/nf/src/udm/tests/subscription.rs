//! Subscriptions to changes of data: monitored resources, expiry, changes; the test acts as the UDR.

use super::*;
use crate::kit::{Client, SDM_SUBSCRIPTIONS, has_room};
use pith_sbi::Problem;
use pith_sbi::common::{PatchItem, PatchResult, ReportItem};
use pith_sbi::nudm_sdm::{SdmModifySubscription, SdmSubsModification, SubscriptionDataSets};
use pith_sbi::nudr_dr::{DataChangeNotification, DataChangeNotify};

/// The time of all requests, in milliseconds since 1970.
const NOW_MS: i64 = 1_000_000;

fn bench_now() -> Bench<Udm> {
    let mut bench = bench();
    bench.now = Instant::from_micros(1_000_000_000);
    bench
}

fn at(seconds_from_now: i64) -> Option<DateTime> {
    Some(DateTime::from_unix_ms(NOW_MS + seconds_from_now * 1000))
}

fn subscription(resources: Vec<ResourceUri>, expires: Option<DateTime>) -> SdmSubscription {
    let callback = Uri::new(&root("smf"), "/nsmf-callback/v1/sdm-change/1");
    let mut body = SdmSubscription::new(instance(1), callback, resources);
    body.expires = expires;
    body
}

/// A subscription to SM data that the UDR has.
fn stored(id: &str, expires: Option<DateTime>) -> SdmSubscription {
    let mut body = subscription(vec![resource("sm-data")], expires);
    body.subscription_id = Some(id.into());
    body
}

fn list(subscriptions: Vec<SdmSubscription>) -> Reply {
    Ok(Response::SdmSubscriptions(Box::new(subscriptions)))
}

/// The monitored resources, or status and cause of the refusal.
type Granted = Result<Vec<ResourceUri>, (u16, Option<Cause>)>;

/// What the UDM stores of a subscription to those resources.
fn monitored(resources: Vec<ResourceUri>) -> Granted {
    let seen = bench().request(SdmSubscribe { ue_id: supi(), body: subscription(resources, None) });
    if seen.calls().is_empty() {
        return Err((seen.problem().status, seen.cause().cloned()));
    }
    let (_, Request::CreateSdmSubscriptions(create)) = seen.call() else { panic!("{seen:?}") };
    Ok(create.body.monitored_resource_uris.clone())
}

fn removed(seen: &Seen) -> Vec<String> {
    let removals = seen.calls().into_iter().filter_map(|(_, _, request)| match request {
        Request::RemoveSdmSubscriptions(remove) => Some(remove.subs_id.clone()),
        _ => None,
    });
    removals.collect()
}

/// TS 29.503 5.2.2.3.2. The UDM may be known by another host, port or prefix, such as that of an SCP.
#[test]
fn resources_of_the_subscriber_are_monitored() {
    for root in ["", "http://udm:8080", "https://scp.example:443/udm-1"] {
        let uri: ResourceUri = format!("{root}{}", resource("sm-data?single-nssai=1").0).as_str().into();
        assert_eq!(monitored(vec![uri.clone()]), Ok(vec![uri]));
    }
}

#[test]
fn resources_of_other_subscribers_and_apis_are_refused() {
    let incorrect: Granted = Err((400, Some(Cause::MandatoryIeIncorrect)));
    assert_eq!(monitored(vec![]), incorrect);
    for wrong in [
        "/nudm-sdm/v2/imsi-999700000000002/am-data",
        "http://udm:80/nudm-sdm/v2/imsi-999700000000002/am-data",
        "http://udm:80/nudm-sdm/v2/imsi-9997000000000010/am-data",
        "http://udm:80/nudm-sdm/v1/imsi-999700000000001/am-data",
        "http://udr:80/nudr-dr/v2/subscription-data/imsi-999700000000001/am-data",
        "http://udm:80?/nudm-sdm/v2/imsi-999700000000001/am-data",
        "nudm-sdm/v2/imsi-999700000000001/am-data",
        "am-data",
        "",
    ] {
        assert_eq!(monitored(vec![resource("am-data"), wrong.into()]), incorrect, "{wrong}");
    }
}

#[test]
fn resources_whose_changes_are_not_notified_are_not_granted() {
    let granted = monitored(vec![resource("trace-data"), resource("am-data"), resource("am-data/sor-ack")]);
    assert_eq!(granted, Ok(vec![resource("am-data")]));
    assert_eq!(monitored(vec![resource("trace-data")]), Err((501, Some(Cause::UnsupportedResourceUri))));
}

#[test]
fn a_subscription_that_expires_removes_those_that_have_expired() {
    let mut bench = bench_now();
    let over = SdmSubscribe { ue_id: supi(), body: subscription(vec![resource("sm-data")], at(0)) };
    assert_eq!(bench.request(over).cause(), Some(&Cause::OptionalIeIncorrect));
    let body = subscription(vec![resource("sm-data")], at(60));
    let asked = bench.request(SdmSubscribe { ue_id: supi(), body });
    assert_eq!(asked.operations(), [Operation::QuerySdmSubscriptions]);
    let earlier = vec![stored("1-a", at(-1)), stored("2-a", at(1)), stored("3-a", None)];
    let removing = bench.reply(asked.call().0, list(earlier));
    assert_eq!(removed(&removing), ["1-a"]);
    let asked = bench.reply(removing.call().0, Err(Box::new(Problem::data_not_found())));
    let seen = created(&mut bench, &asked);
    let Response::SdmSubscriptionCreated(created) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(created.body.expires, at(60), "as proposed");
    assert!(seen.calls().is_empty());
}

/// The UDR stores the subscription.
fn created(bench: &mut Bench<Udm>, asked: &Seen) -> Seen {
    let (tag, Request::CreateSdmSubscriptions(create)) = asked.call() else { panic!("{asked:?}") };
    let created = Created { location: Uri::new(&root("udr"), "/x"), body: create.body.clone() };
    bench.reply(tag, Ok(Response::SdmSubscriptionCreated(Box::new(created))))
}

fn full() -> Reply {
    Err(Box::new(Problem::new(Cause::InsufficientResources)))
}

/// The UDR has no room for a subscription that does not expire; the UDM asks it for the present ones.
fn without_room(bench: &mut Bench<Udm>) -> Tag {
    let body = subscription(vec![resource("sm-data")], None);
    let asked = bench.request(SdmSubscribe { ue_id: supi(), body });
    assert_eq!(asked.operations(), [Operation::CreateSdmSubscriptions]);
    let asked = bench.reply(asked.call().0, full());
    assert_eq!(asked.operations(), [Operation::QuerySdmSubscriptions]);
    asked.call().0
}

/// An NF that subscribes no more must not keep the others out.
#[test]
fn expired_subscriptions_make_room_for_one_that_does_not_expire() {
    let mut bench = bench_now();
    let tag = without_room(&mut bench);
    let earlier = list(vec![stored("1-a", at(-1)), stored("2-a", at(0)), stored("3-a", at(1))]);
    let removing = bench.reply(tag, earlier);
    assert_eq!(removed(&removing), ["1-a", "2-a"]);
    let asked = bench.reply(awaited(&removing).0, Ok(Response::NoContent));
    let seen = created(&mut bench, &asked);
    assert!(matches!(seen.answer(), Response::SdmSubscriptionCreated(_)), "{seen:?}");
}

#[test]
fn a_subscription_is_created_again_once_only() {
    let mut bench = bench_now();
    for earlier in [list(vec![stored("3-a", None)]), Err(Box::new(Problem::timed_out()))] {
        let tag = without_room(&mut bench);
        let asked = bench.reply(tag, earlier);
        assert_eq!(asked.operations(), [Operation::CreateSdmSubscriptions], "another UDM may have made room");
        let seen = bench.reply(asked.call().0, full());
        assert_eq!(seen.cause(), Some(&Cause::InsufficientResources));
    }
    assert!(bench.nf.entries.is_empty());
}

/// The NF may have taken its share of the room with subscriptions that have expired: it waits for the removal of one of its own.
#[test]
fn the_removal_of_an_own_expired_subscription_is_waited_for() {
    let mut bench = bench_now();
    let tag = without_room(&mut bench);
    let mut of_other = stored("2-b", at(-1));
    of_other.nf_instance_id = instance(2);
    let removing = bench.reply(tag, list(vec![stored("1-a", at(-1)), of_other]));
    assert_eq!(removed(&removing), ["2-b", "1-a"]);
}

/// The subscription that the UDM stores.
fn subscribed(bench: &mut Bench<Udm>, body: SdmSubscription) -> SdmSubscription {
    let asked = bench.request(SdmSubscribe { ue_id: supi(), body });
    let (_, Request::CreateSdmSubscriptions(create)) = asked.call() else { panic!("{asked:?}") };
    create.body.clone()
}

/// TS 29.500 6.6.2: only features of both sides are in the answer.
#[test]
fn what_the_udm_does_not_do_is_not_in_a_subscription() {
    let mut body = subscription(vec![resource("am-data")], None);
    body.supported_features = Some("ff".parse().unwrap());
    body.immediate_report = Some(true);
    body.report = Some(SubscriptionDataSets::default());
    let kept = subscribed(&mut bench_now(), body);
    assert_eq!((kept.supported_features, kept.immediate_report, kept.report), (None, None, None));
}

/// A foreign NF that proves its type only.
fn unnamed() -> Caller {
    let Caller::Remote { exchange, client: Some(client) } = testing::client(77) else { panic!() };
    Caller::Remote { exchange, client: Some(Client { is_named: false, is_proven: false, ..client }) }
}

/// A foreign NF that proves its type only would have a share of the UDR's room under each name.
#[test]
fn clients_that_prove_no_instance_have_one_share_under_all_names() {
    let mut bench = bench_now();
    let mut documents: Vec<String> = Vec::new();
    // Whether the subscription of an NF of that name has room.
    let mut subscribes = |caller: Caller, data: &str, name: u32| {
        bench.caller = caller;
        bench.now = Instant::from_micros(1_000_000_000 + u64::from(name));
        let mut body = subscription(vec![resource(data)], None);
        body.nf_instance_id = instance(name.into());
        body.implicit_unsubscribe = name.is_multiple_of(2).then_some(true);
        let id = subscribed(&mut bench, body).subscription_id.unwrap();
        let document = format!("{SDM_SUBSCRIPTIONS}{id}");
        let is_stored = has_room(&document, documents.iter().map(String::as_str));
        documents.extend(is_stored.then_some(document));
        is_stored
    };
    let stored = (1..=99).filter(|name| subscribes(unnamed(), "am-data", *name)).count();
    assert_eq!(stored, 24);
    assert!(subscribes(unnamed(), "sm-data", 100), "SMFs have another share than AMFs");
    assert!(subscribes(testing::client(100), "am-data", 100), "an AMF that proves the instance");
    assert!(!subscribes(unnamed(), "am-data", 100));
}

/// The id of the implicit subscription of instance 1 that a client does not prove.
fn implicit_of_unnamed(data: &str, callback: &str) -> String {
    let mut bench = bench_now();
    bench.caller = unnamed();
    let mut body = subscription(vec![resource(data)], None);
    body.callback_reference = Uri::new(&root("nf"), callback);
    body.implicit_unsubscribe = Some(true);
    let id = subscribed(&mut bench, body).subscription_id.unwrap().to_string();
    let end = || SdmUnsubscribe { ue_id: supi(), subscription_id: id.clone() };
    assert_eq!(bench.request(end()).operations(), [Operation::RemoveSdmSubscriptions]);
    bench.caller = testing::client(1);
    assert_eq!(bench.request(end()).problem().status, 403, "one that proves the instance has another");
    id
}

#[test]
fn the_implicit_subscription_of_an_amf_that_proves_no_instance_ends() {
    let id = implicit_of_unnamed("am-data", "/namf-callback/v1/sdm-change/1");
    assert!(removed(&register(2, Some(registration(1)))).contains(&id), "another AMF has registered");
    let mut bench = bench();
    bench.caller = unnamed();
    let modify = purge(&mut bench, "020040");
    let asked = bench.reply(modify.call().0, Ok(Response::NoContent));
    let seen = bench.reply(asked.call().0, Err(Box::new(Problem::timed_out())));
    assert_eq!(removed(&seen), [id]);
}

#[test]
fn the_implicit_subscription_of_an_smf_that_proves_no_instance_ends_with_its_registration() {
    let session = |context: u8| {
        let mut registration = SmfRegistration::new(instance(1), 5, Snssai::of_sst(1), plmn());
        let callback = Uri::callback(&root("nf"), &NfType::Smf, "dereg-notify", &reference(context));
        registration.dereg_callback_uri = Some(callback);
        registration
    };
    let held = |context: u8| Ok(Response::SmfRegistration(Box::new(session(context))));
    let id_of = |context: u8| {
        implicit_of_unnamed("sm-data", &format!("/nsmf-callback/v1/sdm-change/{}", reference(context)))
    };
    let mut bench = bench();
    bench.caller = unnamed();
    let smf_instance_id = Some(instance(1));
    let asked = bench.request(SmfDeregistration { ue_id: supi(), pdu_session_id: 5, smf_instance_id });
    assert_eq!(removed(&bench.reply(asked.call().0, held(2))), [id_of(2)]);

    let asked = bench.request(RegisterSmf { ue_id: supi(), pdu_session_id: 5, body: session(1) });
    assert!(removed(&bench.reply(asked.call().0, held(2))).contains(&id_of(2)), "another context has it");

    bench.caller = testing::CALLER;
    let modify = purge(&mut bench, "020040");
    let asked = bench.reply(modify.call().0, Ok(Response::NoContent));
    let asked = bench.reply(asked.call().0, list([1, 2].map(|context| stored(&id_of(context), None)).into()));
    let seen = bench.reply(asked.call().0, Ok(Response::SmfRegList(Box::new(vec![session(1)]))));
    let ended = removed(&seen);
    assert!(ended.contains(&id_of(2)) && !ended.contains(&id_of(1)), "{ended:?}");
}

/// As with a change of one.
#[test]
fn the_end_of_a_subscription_that_is_not_known_is_answered_by_subscription_not_found() {
    let mut bench = bench_now();
    for (cause, answer) in
        [(Cause::DataNotFound, Cause::SubscriptionNotFound), (Cause::UserNotFound, Cause::UserNotFound)]
    {
        let asked = bench.request(SdmUnsubscribe { ue_id: supi(), subscription_id: id() });
        let seen = bench.reply(asked.call().0, Err(Box::new(Problem::new(cause))));
        assert_eq!(seen.cause(), Some(&answer));
    }
}

/// Time passes without a timer: the UDM compares the stored expiry.
#[test]
fn an_expired_subscription_is_not_notified_and_removed() {
    let mut bench = bench_now();
    let uri = DataChangeNotification::callback_uri(&root("udm"), &NfType::Udm, supi().as_str());
    let mut body = DataChangeNotify::default();
    body.ue_id = Some(supi());
    let asked = bench.request(DataChangeNotification { uri, body });
    let asked = bench.reply(asked.call().0, list(vec![stored("1-a", at(-1)), stored("2-a", at(1))]));
    assert_eq!(removed(&asked), ["1-a"], "not later: the NF may subscribe again with that id");
    let sets = Response::SubscriptionDataSets(Box::default());
    let seen = bench.reply(awaited(&asked).0, Ok(sets));
    assert_eq!(seen.operations(), [Operation::SdmChangeNotification], "the second one");
    let seen = bench.reply(seen.call().0, Ok(Response::NoContent));
    assert_eq!((seen.answer(), seen.operations()), (&Response::NoContent, vec![]));
}

fn id() -> String {
    format!("5e8-{}", instance(1))
}

fn modify(bench: &mut Bench<Udm>, change: SdmSubsModification) -> Seen {
    bench.request(SdmModifySubscription { ue_id: supi(), subscription_id: id(), body: change })
}

/// TS 29.503 5.2.2.7.2.
#[test]
fn an_nf_changes_expiry_and_resources_of_its_subscription() {
    let mut bench = bench_now();
    let mut change = SdmSubsModification::default();
    change.expires = at(120);
    let asked = modify(&mut bench, change);
    assert_eq!(asked.operations(), [Operation::QuerySdmSubscriptions]);
    let asked = bench.reply(asked.call().0, list(vec![stored("1-a", at(-1)), stored(&id(), at(1))]));
    assert_eq!(removed(&asked), ["1-a"]);
    let (tag, Request::ModifySdmSubscription(change)) = awaited(&asked) else { panic!("{asked:?}") };
    let expiry = vec![PatchItem::add("/expires", at(120).unwrap().to_string())];
    assert_eq!((change.subs_id.as_str(), &change.body), (id().as_str(), &expiry), "the other members stay");
    let seen = bench.reply(tag, Ok(Response::NoContent));
    assert_eq!(seen.answer(), &Response::SdmSubscription(Box::new(stored(&id(), at(120)))));
    assert!(seen.calls().is_empty());

    let mut change = SdmSubsModification::default();
    change.monitored_resource_uris = vec![resource("am-data"), resource("trace-data")];
    let asked = modify(&mut bench, change);
    let asked = bench.reply(asked.call().0, list(vec![stored(&id(), at(1))]));
    let (tag, Request::ModifySdmSubscription(change)) = asked.call() else { panic!("{asked:?}") };
    let resources = vec![PatchItem::add("/monitoredResourceUris", vec![resource("am-data").0.to_string()])];
    assert_eq!(change.body, resources);
    let seen = bench.reply(tag, Ok(Response::NoContent));
    let Response::SdmSubscription(changed) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(changed.monitored_resource_uris, [resource("am-data")]);
    assert_eq!(changed.expires, at(1));

    let asked = modify(&mut bench, SdmSubsModification::default());
    let seen = bench.reply(asked.call().0, list(vec![stored(&id(), at(1))]));
    assert_eq!(seen.answer(), &Response::SdmSubscription(Box::new(stored(&id(), at(1)))), "as it is");
}

#[test]
fn a_change_of_a_subscription_is_refused_with_the_reason() {
    let mut bench = bench_now();
    let mut foreign = SdmSubsModification::default();
    foreign.monitored_resource_uris = vec!["/nudm-sdm/v2/imsi-999700000000002/am-data".into()];
    assert_eq!(modify(&mut bench, foreign).cause(), Some(&Cause::MandatoryIeIncorrect));
    let mut over = SdmSubsModification::default();
    over.expires = at(-1);
    assert_eq!(modify(&mut bench, over).cause(), Some(&Cause::OptionalIeIncorrect));
    bench.caller = testing::client(2);
    let of_other = modify(&mut bench, SdmSubsModification::default());
    assert_eq!(of_other.problem().status, 403, "it is that of NF 1");
    bench.caller = testing::client(1);
    let missing = || Err(Box::new(Problem::data_not_found()));
    for all in [missing(), list(vec![stored("1-a", None)]), list(vec![stored(&id(), at(0))])] {
        let asked = modify(&mut bench, SdmSubsModification::default());
        let seen = bench.reply(asked.call().0, all);
        assert_eq!(seen.cause(), Some(&Cause::SubscriptionNotFound));
    }
    let mut change = SdmSubsModification::default();
    change.expires = at(120);
    let report = vec![ReportItem::new("/expires")];
    let partial = Response::PatchResult(Box::new(PatchResult::new(report)));
    for (reply, cause) in [(missing(), Cause::SubscriptionNotFound), (Ok(partial), Cause::SystemFailure)] {
        let asked = modify(&mut bench, change.clone());
        let asked = bench.reply(asked.call().0, list(vec![stored(&id(), None)]));
        assert_eq!(bench.reply(asked.call().0, reply).cause(), Some(&cause));
    }
    assert!(bench.nf.entries.is_empty());
}
