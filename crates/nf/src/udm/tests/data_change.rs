//! Notifications of changed data; the test acts as the UDR and as the NFs that have subscribed.

use super::*;
use pith_sbi::NfType;
use pith_sbi::Problem;
use pith_sbi::nudm_sdm::{ModificationNotification, SubscriptionDataSets};
use pith_sbi::nudr_dr::{DataChangeNotification, DataChangeNotify};

fn notification() -> DataChangeNotification {
    let uri = DataChangeNotification::callback_uri(&root("udm"), &NfType::Udm, supi().as_str());
    let mut body = DataChangeNotify::default();
    body.ue_id = Some(supi());
    DataChangeNotification { uri, body }
}

fn subscription(nf: &str, data: &[&str]) -> SdmSubscription {
    let callback = Uri::new(&root(nf), &format!("/n{nf}-callback/v1/sdm-change/{nf}-1"));
    let resource = |data: &&str| format!("/nudm-sdm/v2/{}/{data}", supi()).as_str().into();
    let monitored: Vec<_> = data.iter().map(resource).collect();
    let number = if nf == "amf" { 4 } else { 1 };
    let mut subscription = SdmSubscription::new(instance(number), callback, monitored);
    subscription.subscription_id = Some(format!("implicit-{nf}").into());
    subscription
}

fn data_sets() -> Reply {
    let mut sets = SubscriptionDataSets::default();
    let mut data = AccessAndMobilitySubscriptionData::default();
    data.subscribed_ue_ambr = Some(testing::ambr(10));
    sets.am_data = Some(data);
    sets.smf_sel_data = Some(SmfSelectionSubscriptionData::default());
    Ok(Response::SubscriptionDataSets(Box::new(sets)))
}

fn subscriptions() -> Vec<SdmSubscription> {
    vec![subscription("smf", &["sm-data"]), subscription("amf", &["am-data", "smf-select-data"])]
}

/// The UDM notifies the first of the NFs.
fn notifying(bench: &mut Bench<Udm>, subscriptions: Vec<SdmSubscription>) -> Seen {
    let asked = bench.request(notification());
    assert_eq!(asked.operations(), [Operation::QuerySdmSubscriptions]);
    let asked = bench.reply(asked.call().0, Ok(Response::SdmSubscriptions(Box::new(subscriptions))));
    assert_eq!(asked.operations(), [Operation::QueryProvisionedData]);
    bench.reply(asked.call().0, data_sets())
}

fn notified(seen: &Seen) -> (Tag, String, ModificationNotification) {
    let [(tag, Target::Root(target), Request::SdmChangeNotification(notification))] = seen.calls()[..] else {
        panic!("{seen:?}")
    };
    assert_eq!(**target, *notification.uri.root);
    (tag, target.authority.to_string(), notification.body.clone())
}

#[test]
fn each_nf_that_has_subscribed_gets_the_new_values_of_what_it_monitors() {
    let mut bench = bench();
    let to_amf = notifying(&mut bench, subscriptions());
    let (tag, host, body) = notified(&to_amf);
    assert_eq!(host, "amf:80");
    let paths: Vec<_> = body.notify_items.iter().map(|item| item.resource_id.0.rsplit('/').next()).collect();
    assert_eq!(paths, [Some("am-data"), Some("smf-select-data")]);
    let value = body.notify_items[0].changes[0].new_value.as_ref().unwrap();
    assert_eq!(value["subscribedUeAmbr"]["uplink"], "10 Mbps");
    let to_smf = bench.reply(tag, Ok(Response::NoContent));
    let (tag, host, body) = notified(&to_smf);
    assert_eq!((&*host, body.notify_items.len()), ("smf:80", 1));
    assert_eq!(bench.reply(tag, Ok(Response::NoContent)).answer(), &Response::NoContent);
}

#[test]
fn a_subscriber_whose_data_no_nf_monitors_is_acknowledged() {
    let mut bench = bench();
    let asked = bench.request(notification());
    let none = Err(Box::new(Problem::data_not_found()));
    let asked = bench.reply(asked.call().0, none);
    assert_eq!(bench.reply(asked.call().0, data_sets()).answer(), &Response::NoContent);
    let other = notifying(&mut bench, vec![subscription("amf", &["trace-data"])]);
    assert_eq!(other.answer(), &Response::NoContent);
}

/// The other NFs are notified nevertheless.
#[test]
fn an_nf_that_does_not_answer_is_notified_again_by_the_udr() {
    for problem in [Problem::timed_out(), Problem::congestion(1), Problem::of_status(403)] {
        let mut bench = bench();
        let (tag, ..) = notified(&notifying(&mut bench, subscriptions()));
        let status = problem.status;
        let to_smf = bench.reply(tag, Err(Box::new(problem)));
        let (tag, ..) = notified(&to_smf);
        assert_eq!(bench.reply(tag, Ok(Response::NoContent)).problem().status, status);
    }
}

#[test]
fn an_nf_that_does_not_know_the_ue_has_no_subscription_any_longer() {
    let mut bench = bench();
    let (tag, ..) = notified(&notifying(&mut bench, vec![subscription("amf", &["am-data"])]));
    let seen = bench.reply(tag, Err(Box::new(Problem::context_not_found())));
    assert_eq!(seen.answer(), &Response::NoContent);
    let (_, Request::RemoveSdmSubscriptions(removed)) = seen.call() else { panic!("{seen:?}") };
    assert_eq!(removed.subs_id, "implicit-amf");
}

/// An NF that has lost its context may subscribe again, with the same id, while others are notified.
#[test]
fn a_subscription_that_has_ended_is_removed_before_the_next_nf_is_notified() {
    let mut bench = bench();
    let (tag, ..) = notified(&notifying(&mut bench, subscriptions()));
    let seen = bench.reply(tag, Err(Box::new(Problem::context_not_found())));
    assert_eq!(seen.operations(), [Operation::RemoveSdmSubscriptions, Operation::SdmChangeNotification]);
    let seen = bench.reply(seen.calls()[1].0, Ok(Response::NoContent));
    assert_eq!((seen.answer(), seen.operations()), (&Response::NoContent, vec![]));
}

#[test]
fn a_failure_of_the_udr_is_reported_to_it() {
    let mut bench = bench();
    let asked = bench.request(notification());
    let failed = || Err(Box::new(Problem::system_failure("the disk is full")));
    assert_eq!(bench.reply(asked.call().0, failed()).problem().status, 500);
    let asked = bench.request(notification());
    let list = Response::SdmSubscriptions(Box::new(subscriptions()));
    let asked = bench.reply(asked.call().0, Ok(list));
    assert_eq!(bench.reply(asked.call().0, failed()).problem().status, 500);
    let mut without_ue = notification();
    without_ue.body.ue_id = None;
    assert_eq!(bench.request(without_ue).problem().status, 400);
}

/// The subscriber was deleted: its data are gone, and the registration of the AMF is still there.
fn deleted(bench: &mut Bench<Udm>, subscriptions: Reply, registration: Reply) -> Seen {
    let asked = bench.request(notification());
    let asked = bench.reply(asked.call().0, subscriptions);
    assert_eq!(asked.operations(), [Operation::QueryProvisionedData]);
    let asked = bench.reply(asked.call().0, Err(Box::new(Problem::user_not_found())));
    assert_eq!(asked.operations(), [Operation::QueryAmfContextThreeGpp]);
    bench.reply(asked.call().0, registration)
}

fn of_amf(purge_flag: Option<bool>) -> Reply {
    let mut registration = registration(4);
    registration.purge_flag = purge_flag;
    Ok(Response::Amf3GppAccessRegistration(Box::new(registration)))
}

fn withdrawal(seen: &Seen) -> Tag {
    let [(tag, Target::Root(target), Request::DeregistrationNotification(notification))] = seen.calls()[..]
    else {
        panic!("{seen:?}")
    };
    assert_eq!(notification.uri, registration(4).dereg_callback_uri);
    assert_eq!(*target, notification.uri.root);
    assert_eq!(notification.body.dereg_reason, DeregistrationReason::SubscriptionWithdrawn);
    tag
}

/// TS 23.502 4.2.2.3.3, TS 29.503 5.3.2.3.2.
#[test]
fn the_amf_of_a_deleted_subscriber_is_notified_that_the_subscription_is_withdrawn() {
    let missing = || Err(Box::new(Problem::data_not_found()));
    let list = || Ok(Response::SdmSubscriptions(Box::new(subscriptions())));
    for (of_nfs, is_subscribed) in [(list(), true), (missing(), false)] {
        let mut bench = bench();
        let tag = withdrawal(&deleted(&mut bench, of_nfs, of_amf(None)));
        let seen = bench.reply(tag, Ok(Response::NoContent));
        assert_eq!(seen.answer(), &Response::NoContent, "the AMF releases the sessions");
        assert_eq!(removed(&seen), if is_subscribed { vec!["implicit-amf"] } else { vec![] });
    }
}

/// The subscriptions that the UDR is to remove.
fn removed(seen: &Seen) -> Vec<&str> {
    let removals = seen.calls().into_iter().filter_map(|(_, _, request)| match request {
        Request::RemoveSdmSubscriptions(remove) => Some(&*remove.subs_id),
        _ => None,
    });
    removals.collect()
}

/// They would get the data of a new subscriber with the same SUPI.
#[test]
fn subscriptions_of_other_nfs_to_a_deleted_subscriber_end_with_a_notification() {
    let mut bench = bench();
    let of_nfs = [subscriptions(), vec![subscription("nef", &["am-data"])]].concat();
    let seen = deleted(&mut bench, Ok(Response::SdmSubscriptions(Box::new(of_nfs))), of_amf(None));
    let operations = [
        Operation::SdmChangeNotification,
        Operation::RemoveSdmSubscriptions,
        Operation::DeregistrationNotification,
    ];
    assert_eq!(seen.operations(), operations);
    assert_eq!(removed(&seen), ["implicit-nef"]);
    let calls = seen.calls();
    let (_, Target::Root(host), Request::SdmChangeNotification(changed)) = &calls[0] else {
        panic!("{seen:?}")
    };
    assert_eq!(&*host.authority, "nef:80");
    assert_eq!(changed.body.notify_items[0].changes[0].new_value, Some(serde_json::Value::Null));
    // The AMF does not answer: it is notified again, the other NF is not.
    let asked = bench.reply(calls[2].0, Err(Box::new(Problem::timed_out())));
    assert_eq!(asked.operations(), [Operation::QuerySmfRegList]);
}

#[test]
fn a_withdrawal_that_the_amf_does_not_get_is_notified_again_by_the_udr() {
    for problem in [Problem::timed_out(), Problem::congestion(1)] {
        let mut bench = bench();
        let list = Ok(Response::SdmSubscriptions(Box::new(subscriptions())));
        let tag = withdrawal(&deleted(&mut bench, list, of_amf(None)));
        let status = problem.status;
        let asked = bench.reply(tag, Err(Box::new(problem)));
        let none = Err(Box::new(Problem::data_not_found()));
        assert_eq!(bench.reply(asked.call().0, none).problem().status, status);
    }
}

/// A notification is redirected to the instance of the set that has the context's block (TS 29.500 6.10.9).
#[test]
fn a_subscription_ends_when_another_instance_of_the_set_does_not_know_the_context() {
    let mut bench = bench();
    let (to_smf, ..) = notified(&notifying(&mut bench, vec![subscription("smf", &["smf-select-data"])]));
    let seen = bench.reply_from(to_smf, root("other"), Err(Problem::context_not_found().into()));
    assert_eq!(removed(&seen), ["implicit-smf"]);
    assert_eq!(seen.answer(), &Response::NoContent, "the UDR does not repeat its notification");
}

/// The registrations of two sessions and an emergency session. The SMF of one session has given no callback URI.
fn of_smfs() -> Vec<SmfRegistration> {
    let registration = |smf: u128, id, callback: Option<&str>| {
        let mut registration = SmfRegistration::new(instance(smf), id, Snssai::of_sst(1), plmn());
        registration.dereg_callback_uri = callback.map(|path| Uri::new(&root("nf"), path));
        registration
    };
    let mut of_emergency = registration(7, 2, Some("/nsmf-callback/v1/dereg-notify/2"));
    of_emergency.emergency_services = Some(true);
    vec![registration(7, 1, Some("/nsmf-callback/v1/dereg-notify/1")), of_emergency, registration(8, 3, None)]
}

/// The UDR repeats its notification for hours: traffic of a deleted subscriber must not continue until then.
#[test]
fn smfs_end_the_sessions_of_a_deleted_subscriber_whose_amf_does_not_answer() {
    for problem in [Problem::timed_out(), Problem::not_reachable("gone"), Problem::congestion(1)] {
        let mut bench = bench();
        let of_smf = |smf: &str, number| {
            let mut subscription = subscription(smf, &["sm-data"]);
            subscription.nf_instance_id = instance(number);
            subscription
        };
        let list = vec![of_smf("smf-a", 7), of_smf("smf-b", 8), subscription("amf", &["am-data"])];
        let tag =
            withdrawal(&deleted(&mut bench, Ok(Response::SdmSubscriptions(Box::new(list))), of_amf(None)));
        let status = problem.status;
        let asked = bench.reply(tag, Err(Box::new(problem)));
        assert_eq!(asked.operations(), [Operation::QuerySmfRegList]);
        let seen = bench.reply(asked.call().0, Ok(Response::SmfRegList(Box::new(of_smfs()))));
        assert_eq!(seen.problem().status, status, "the AMF is notified again");
        let [
            (_, _, Request::DeregistrationNotification(ended)),
            (_, Target::Root(host), Request::SdmChangeNotification(changed)),
        ] = &seen.calls()[..]
        else {
            panic!("{seen:?}")
        };
        assert_eq!(&*ended.uri.path, "/nsmf-callback/v1/dereg-notify/1");
        assert_eq!(ended.body.dereg_reason, DeregistrationReason::SubscriptionWithdrawn);
        assert_eq!(ended.body.pdu_session_id, Some(1));
        assert_eq!(&*host.authority, "smf-b:80");
        assert_eq!(changed.body.notify_items[0].changes[0].new_value, Some(serde_json::Value::Null));
    }
}

#[test]
fn smfs_of_a_deleted_subscriber_are_notified_by_their_subscriptions_without_registrations() {
    for failure in [Problem::data_not_found(), Problem::system_failure("the disk is full")] {
        let mut bench = bench();
        let list = Ok(Response::SdmSubscriptions(Box::new(subscriptions())));
        let tag = withdrawal(&deleted(&mut bench, list, of_amf(None)));
        let asked = bench.reply(tag, Err(Box::new(Problem::timed_out())));
        let seen = bench.reply(asked.call().0, Err(Box::new(failure)));
        assert_eq!(seen.problem().status, 504);
        assert_eq!(notified(&seen).1, "smf:80");
    }
}

/// The AMF has lost the context, or has purged it: the SMFs have no data network of the subscriber any longer.
#[test]
fn sessions_of_a_deleted_subscriber_whom_no_amf_serves_end() {
    let missing = || Err(Box::new(Problem::data_not_found()));
    let list = || Ok(Response::SdmSubscriptions(Box::new(subscriptions())));
    let mut lost = bench();
    let tag = withdrawal(&deleted(&mut lost, list(), of_amf(None)));
    let seen = lost.reply(tag, Err(Box::new(Problem::context_not_found())));
    let mut purged = bench();
    let of_purged = deleted(&mut purged, list(), of_amf(Some(true)));
    let mut none = bench();
    let of_none = deleted(&mut none, list(), missing());
    assert_eq!(of_none.operations()[0], Operation::SdmChangeNotification, "the AMF, which may have lost it");
    for (mut bench, seen) in [(lost, seen), (purged, of_purged), (none, of_none)] {
        assert_eq!(removed(&seen), ["implicit-amf"]);
        let (tag, target, request) = seen.calls().pop().unwrap();
        let (Target::Root(host), Request::SdmChangeNotification(changed)) = (target, request) else {
            panic!("{seen:?}")
        };
        assert_eq!((&*host.authority, changed.body.notify_items.len()), ("smf:80", 1));
        assert_eq!(changed.body.notify_items[0].changes[0].new_value, Some(serde_json::Value::Null));
        assert_eq!(bench.reply(tag, Ok(Response::NoContent)).answer(), &Response::NoContent);
    }
    let mut nobody = bench();
    assert_eq!(deleted(&mut nobody, missing(), missing()).answer(), &Response::NoContent);
    let mut failed = bench();
    let failure = Err(Box::new(Problem::system_failure("the disk is full")));
    assert_eq!(deleted(&mut failed, list(), failure).problem().status, 500);
}

/// The callback URIs of the registration name the session's context.
#[test]
fn the_subscription_of_a_session_ends_with_its_registration() {
    let mut bench = bench();
    let references = References::new(&ReferenceKey::new([7; 32]));
    let id = ContextId { block: testing::block(0), number: 5 };
    let reference = references.of_id(id);
    let smf_instance_id = Some(instance(1));
    let asked = bench.request(SmfDeregistration { ue_id: supi(), pdu_session_id: 1, smf_instance_id });
    let mut held = SmfRegistration::new(instance(1), 1, Snssai::of_sst(1), plmn());
    held.dereg_callback_uri =
        Some(Uri::new(&root("nf"), &format!("/nsmf-callback/v1/dereg-notify/{reference}")));
    let asked = bench.reply(asked.call().0, Ok(Response::SmfRegistration(Box::new(held))));
    let (tag, Request::RemoveSdmSubscriptions(removed)) = asked.call() else { panic!("{asked:?}") };
    assert_eq!(removed.subs_id, super::implicit_subscription_of(&reference));
    let asked = bench.reply(tag, Err(Box::new(Problem::data_not_found())));
    assert_eq!(asked.operations(), [Operation::DeleteSmfRegistration], "a repetition");
    assert_eq!(bench.reply(asked.call().0, Ok(Response::NoContent)).answer(), &Response::NoContent);
}
