//! Registration, heart-beat, discovery, subscription.

mod residency;

use super::*;
use crate::fabric::{ProfileConfig, profile};
use crate::kit::{Duration, Nf, Target};
use crate::testing::{self, Bench, Seen, instance, root};
use pith_sbi::common::{DateTime, PatchItem, PatchOperation};
use pith_sbi::nnrf_accesstoken::{AccessTokenReq, AccessTokenRequest};
use pith_sbi::nnrf_nfdiscovery::SearchNfInstances;
use pith_sbi::nnrf_nfmanagement::{
    CreateSubscription, DeregisterNfInstance, GetNfInstance, GetNfInstances, NotificationEventType,
    RegisterNfInstance, RemoveSubscription, SubscrCond, SubscriptionData, UpdateNfInstance,
    UpdateSubscription,
};
use pith_sbi::token::AccessTokenClaims;
use pith_sbi::{Cause, NfType, Response, ServiceName, Uri};
use pith_types::{Plmn, Snssai};

fn bench() -> Bench<Nrf> {
    Bench::new(Nrf::new(root("nrf"), NrfConfig::default()))
}

/// The NRF of these networks.
fn bench_in(plmns: Vec<Plmn>) -> Bench<Nrf> {
    Bench::new(Nrf::new(root("nrf"), NrfConfig { plmns, ..NrfConfig::default() }))
}

/// The identity of an NF with an address.
fn identity() -> crate::kit::Identity {
    crate::kit::Identity { api_root: root("192.0.2.1"), ..testing::identity() }
}

/// Registers an NF that serves slice 1 and, if it is an SMF, `internet`.
fn register(bench: &mut Bench<Nrf>, nf: Nf, number: u128) -> Seen {
    let identity = crate::kit::Identity { instance_id: instance(number), ..identity() };
    let slice = Snssai::of_sst(1);
    let config = ProfileConfig {
        slices: vec![slice],
        data_networks: vec![(slice, "internet".parse().unwrap())],
        oauth2: true,
        ..ProfileConfig::default()
    };
    let body = profile(nf, &identity, &config);
    bench.request(RegisterNfInstance { nf_instance_id: instance(number), body })
}

#[test]
fn a_slice_instance_finds_its_smfs_and_those_of_any() {
    let mut bench = bench();
    for (number, slice_instances) in [(1, vec!["site-a".into()]), (2, vec!["site-b".into()]), (3, vec![])] {
        let identity = crate::kit::Identity { instance_id: instance(number), ..identity() };
        let body =
            profile(Nf::Smf, &identity, &ProfileConfig { slice_instances, ..ProfileConfig::default() });
        assert!(body.nsi_list.len() < 2);
        bench.request(RegisterNfInstance { nf_instance_id: instance(number), body });
    }
    let wanted = Some(vec!["site-a".into(), "site-c".into()]);
    let found = found(&mut bench, SearchNfInstances { nsi_list: wanted, ..query(NfType::Smf) });
    assert_eq!(found, [instance(1), instance(3)]);
}

fn beat(bench: &mut Bench<Nrf>, number: u128) -> Seen {
    patch(bench, number, vec![PatchItem::replace("/nfStatus", "REGISTERED")])
}

fn patch(bench: &mut Bench<Nrf>, number: u128, body: Vec<PatchItem>) -> Seen {
    bench.request(UpdateNfInstance { nf_instance_id: instance(number), body })
}

/// The NRF's profile of an instance.
fn shown(bench: &mut Bench<Nrf>, number: u128) -> NfProfile {
    let seen = bench.request(GetNfInstance { nf_instance_id: instance(number), requester_features: None });
    let Response::NfProfile(profile) = seen.answer() else { panic!("{seen:?}") };
    (**profile).clone()
}

fn deregister(bench: &mut Bench<Nrf>, number: u128) -> Seen {
    bench.request(DeregisterNfInstance { nf_instance_id: instance(number) })
}

fn query(nf_type: NfType) -> SearchNfInstances {
    SearchNfInstances::new(nf_type, NfType::Amf)
}

fn found(bench: &mut Bench<Nrf>, query: SearchNfInstances) -> Vec<NfInstanceId> {
    let seen = bench.request(query);
    let Response::SearchResult(result) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(result.validity_period, Some(60));
    result.nf_instances.iter().map(|profile| profile.nf_instance_id).collect()
}

fn subscribe(bench: &mut Bench<Nrf>, change: impl FnOnce(&mut SubscriptionData)) -> Uri {
    subscription(bench, change).0
}

/// Subscribes; returns the URI of the subscription and its end.
fn subscription(
    bench: &mut Bench<Nrf>,
    change: impl FnOnce(&mut SubscriptionData),
) -> (Uri, Option<DateTime>) {
    let mut body = SubscriptionData::new(Uri::new(&root("amf"), "/namf-callback/v1/nf-status/smf"));
    change(&mut body);
    let seen = bench.request(CreateSubscription { body });
    let Response::SubscriptionDataCreated(created) = seen.answer() else { panic!("{seen:?}") };
    (created.location.clone(), created.body.validity_time)
}

fn minutes(count: i64) -> DateTime {
    DateTime::from_unix_ms(count * 60_000)
}

/// The event of which the action has the subscriber notified; it accepts the notification.
fn told(bench: &mut Bench<Nrf>, act: impl FnOnce(&mut Bench<Nrf>) -> Seen) -> Option<NotificationEventType> {
    let seen = act(bench);
    let calls = seen.calls();
    let (tag, target, Request::NfStatusNotify(notify)) = calls.first()? else { panic!("{seen:?}") };
    assert_eq!(**target, Target::Root(root("amf")));
    bench.reply(*tag, Ok(Response::NoContent));
    Some(notify.body.event.clone())
}

#[test]
fn an_instance_registers_and_gets_its_heart_beat_interval() {
    let mut bench = bench();
    let seen = register(&mut bench, Nf::Smf, 1);
    let Response::NfProfileCreated(created) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(created.body.heart_beat_timer, Some(10));
    assert_eq!(created.location.id(), instance(1).to_string());
    let again = register(&mut bench, Nf::Smf, 1);
    assert!(matches!(again.answer(), Response::NfProfile(_)), "it was known already");
    assert_eq!(found(&mut bench, query(NfType::Smf)), [instance(1)]);
}

#[test]
fn the_id_in_the_path_and_in_the_profile_must_be_the_same() {
    let mut bench = bench();
    let body = profile(Nf::Smf, &identity(), &ProfileConfig::default());
    let seen = bench.request(RegisterNfInstance { nf_instance_id: instance(1), body });
    assert_eq!(seen.problem().status, 400);
    assert!(found(&mut bench, query(NfType::Smf)).is_empty());
}

/// TS 29.510 6.1.6.2.2.
#[test]
fn a_profile_stays_valid_when_it_is_changed() {
    let mut bench = bench();
    register(&mut bench, Nf::Smf, 1);
    let before = shown(&mut bench, 1);
    for (path, value) in [("/load", serde_json::Value::from(101)), ("/nfServices/0/load", 101.into())] {
        let seen = patch(&mut bench, 1, vec![PatchItem::add(path, value)]);
        assert_eq!(seen.problem().status, 400, "{path}");
    }
    assert_eq!(shown(&mut bench, 1), before);
    let mut body = before;
    body.load = Some(101);
    let seen = bench.request(RegisterNfInstance { nf_instance_id: instance(1), body });
    assert_eq!(seen.problem().status, 400);
    let seen = patch(&mut bench, 1, vec![PatchItem::add("/load", 100)]);
    assert_eq!(*seen.answer(), Response::NoContent);
}

/// An earlier version accepted more. The instance would get 400 for each heart-beat, and would not be discovered.
#[test]
fn a_stored_profile_that_is_not_valid_keeps_its_heart_beat() {
    let without_address = |profile: &mut NfProfile| {
        (profile.fqdn, profile.ipv4_addresses, profile.ipv6_addresses) = (None, vec![], vec![]);
    };
    let overloaded = |profile: &mut NfProfile| profile.load = Some(101);
    let with_service_twice = |profile: &mut NfProfile| {
        let again = profile.services().next().unwrap().clone();
        profile.nf_services = vec![again.clone(), again];
    };
    let changes: [&dyn Fn(&mut NfProfile); 3] = [&without_address, &overloaded, &with_service_twice];
    for change in changes {
        let mut bench = bench();
        register(&mut bench, Nf::Smf, 1);
        change(&mut bench.nf.instances.get_mut(&instance(1)).unwrap().profile);
        assert_eq!(*beat(&mut bench, 1).answer(), Response::NoContent);
        let seen = patch(&mut bench, 1, vec![PatchItem::add("/capacity", 7)]);
        assert!(matches!(seen.answer(), Response::NfProfile(_)), "{seen:?}");
    }
}

/// TS 29.510 6.1.6.2.2 note 1, 6.1.6.2.3 `serviceInstanceId`.
#[test]
fn a_profile_has_an_address_and_different_services() {
    let mut bench = bench();
    register(&mut bench, Nf::Udm, 1);
    let known = shown(&mut bench, 1);
    let mut put = |change: &dyn Fn(&mut NfProfile)| {
        let mut body = known.clone();
        change(&mut body);
        bench.request(RegisterNfInstance { nf_instance_id: instance(1), body })
    };
    let without_address = put(&|profile| profile.ipv4_addresses.clear());
    assert_eq!(without_address.cause(), Some(&Cause::MandatoryIeMissing));
    put(&|profile| {
        profile.ipv4_addresses.clear();
        profile.fqdn = Some("udm.5gc.example".into());
    })
    .answer();
    put(&|profile| {
        profile.ipv4_addresses.clear();
        profile.ipv6_addresses = vec!["2001:db8::1".parse().unwrap()];
    })
    .answer();
    let twice = |profile: &mut NfProfile| {
        let id = profile.nf_services[0].service_instance_id.clone();
        profile.nf_services[1].service_instance_id = id;
    };
    assert_eq!(put(&twice).cause(), Some(&Cause::OptionalIeIncorrect));
    let by_id = |profile: &mut NfProfile| {
        let services = std::mem::take(&mut profile.nf_services).into_iter();
        let keyed = services.map(|service| (service.service_instance_id.clone(), service));
        profile.nf_service_list = keyed.collect();
    };
    put(&|profile| {
        let services = profile.nf_services.clone();
        by_id(profile);
        profile.nf_services = services;
    })
    .answer();
    let twice_in_map = put(&|profile| {
        twice(profile);
        let services = std::mem::take(&mut profile.nf_services).into_iter();
        profile.nf_service_list = services.zip(["1", "2"]).map(|(it, key)| (key.into(), it)).collect();
    });
    assert_eq!(twice_in_map.cause(), Some(&Cause::OptionalIeIncorrect));
    put(&|_| {}).answer();
    let removed = patch(&mut bench, 1, vec![PatchItem::remove("/ipv4Addresses")]);
    assert_eq!(removed.cause(), Some(&Cause::MandatoryIeMissing));
    let id = known.nf_services[0].service_instance_id.to_string();
    let changed = patch(&mut bench, 1, vec![PatchItem::replace("/nfServices/1/serviceInstanceId", id)]);
    assert_eq!(changed.cause(), Some(&Cause::OptionalIeIncorrect));
    assert_eq!(shown(&mut bench, 1), known);
}

#[test]
fn a_result_has_at_least_one_place() {
    let mut bench = bench();
    register(&mut bench, Nf::Smf, 1);
    let limited = |limit| SearchNfInstances { limit: Some(limit), ..query(NfType::Smf) };
    assert_eq!(bench.request(limited(0)).cause(), Some(&Cause::OptionalQueryParamIncorrect));
    assert_eq!(found(&mut bench, limited(1)), [instance(1)]);
    let list = |limit| GetNfInstances { nf_type: None, limit: Some(limit) };
    assert_eq!(bench.request(list(0)).cause(), Some(&Cause::OptionalQueryParamIncorrect));
    bench.request(list(1)).answer();
}

#[test]
fn a_subscription_that_would_be_over_gets_an_end_in_the_future() {
    let mut bench = bench();
    let wished = DateTime::from_unix_ms(-60_000);
    let (_, end) = subscription(&mut bench, |body| body.validity_time = Some(wished));
    assert_eq!(end, Some(minutes(10)));
}

#[test]
fn a_silent_instance_is_suspended_until_its_next_heart_beat() {
    let mut bench = bench();
    register(&mut bench, Nf::Smf, 1);
    for _ in 0..3 {
        bench.expire(Timer::NrfSweep);
        assert_eq!(found(&mut bench, query(NfType::Smf)), [instance(1)], "three beats may be missed");
    }
    bench.expire(Timer::NrfSweep);
    assert!(found(&mut bench, query(NfType::Smf)).is_empty());
    assert_eq!(beat(&mut bench, 1).answer(), &Response::NoContent);
    assert_eq!(found(&mut bench, query(NfType::Smf)), [instance(1)]);
}

#[test]
fn an_instance_with_heart_beats_stays_registered() {
    let mut bench = bench();
    register(&mut bench, Nf::Smf, 1);
    for _ in 0..10 {
        bench.expire(Timer::NrfSweep);
        assert_eq!(beat(&mut bench, 1).answer(), &Response::NoContent);
    }
    assert_eq!(found(&mut bench, query(NfType::Smf)), [instance(1)]);
}

#[test]
fn a_heart_beat_of_an_unknown_instance_gets_404() {
    assert_eq!(beat(&mut bench(), 1).problem().status, 404);
}

#[test]
fn a_patch_changes_the_profile_but_not_its_identity() {
    let mut bench = bench();
    register(&mut bench, Nf::Smf, 1);
    let patch = |path, value: serde_json::Value| UpdateNfInstance {
        nf_instance_id: instance(1),
        body: vec![PatchItem::add(path, value)],
    };
    let seen = bench.request(patch("/priority", json!(3)));
    let Response::NfProfile(profile) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(profile.priority, Some(3));
    let other = json!(instance(2).to_string());
    assert_eq!(bench.request(patch("/nfInstanceId", other)).cause(), Some(&Cause::ModificationNotAllowed));
    assert_eq!(bench.request(patch("/priority", json!("high"))).problem().status, 400);
}

#[test]
fn a_patch_is_json_patch() {
    let mut bench = bench();
    register(&mut bench, Nf::Smf, 1);
    let before = shown(&mut bench, 1);
    let from = |op, from: &str, path: &str| PatchItem { from: Some(from.into()), ..PatchItem::new(op, path) };
    let test = |value: &str| PatchItem {
        value: Some(value.into()),
        ..PatchItem::new(PatchOperation::Test, "/nfStatus")
    };
    for refused in [
        vec![test("SUSPENDED")],
        vec![PatchItem::replace("/capacity", 5)],
        vec![PatchItem::remove("/capacity")],
        vec![PatchItem::add("/capacity", 5), test("SUSPENDED")],
        vec![from(PatchOperation::Copy, "/capacity", "/priority")],
    ] {
        assert_eq!(patch(&mut bench, 1, refused.clone()).problem().status, 403, "{refused:?}");
        assert_eq!(shown(&mut bench, 1), before, "all of it or nothing: {refused:?}");
    }
    let done = vec![
        test("REGISTERED"),
        PatchItem::add("/capacity", 5),
        from(PatchOperation::Copy, "/capacity", "/priority"),
        from(PatchOperation::Move, "/capacity", "/load"),
    ];
    patch(&mut bench, 1, done).answer();
    let after = shown(&mut bench, 1);
    assert_eq!((after.capacity, after.priority, after.load), (None, Some(5), Some(5)));
}

#[test]
fn the_load_of_a_service_comes_with_a_heart_beat() {
    let mut bench = bench();
    register(&mut bench, Nf::Smf, 1);
    subscribe(&mut bench, |_| {});
    let path = if shown(&mut bench, 1).nf_services.is_empty() {
        format!("/nfServiceList/{}/load", shown(&mut bench, 1).nf_service_list.keys().next().unwrap())
    } else {
        "/nfServices/0/load".to_owned()
    };
    let seen =
        patch(&mut bench, 1, vec![PatchItem::replace("/nfStatus", "REGISTERED"), PatchItem::add(&path, 7)]);
    assert_eq!(seen.answer(), &Response::NoContent);
    assert!(seen.calls().is_empty(), "a heart-beat is no news");
    assert_eq!(shown(&mut bench, 1).services().next().unwrap().load, Some(7));
}

#[test]
fn a_refused_change_counts_as_a_heart_beat() {
    let mut bench = bench();
    register(&mut bench, Nf::Smf, 1);
    for _ in 0..10 {
        bench.expire(Timer::NrfSweep);
        assert_eq!(patch(&mut bench, 1, vec![PatchItem::replace("/x/y", 1)]).problem().status, 403);
    }
    assert_eq!(found(&mut bench, query(NfType::Smf)), [instance(1)]);
}

#[test]
fn an_instance_that_stays_silent_is_deleted() {
    let mut bench = bench();
    register(&mut bench, Nf::Smf, 1);
    subscribe(&mut bench, |data| data.req_notif_events = vec![NotificationEventType::NfDeregistered]);
    let mut sweep = || told(&mut bench, |bench| bench.expire(Timer::NrfSweep));
    assert!((0..13).all(|_| sweep().is_none()));
    assert_eq!(sweep(), Some(NotificationEventType::NfDeregistered));
    assert_eq!(beat(&mut bench, 1).problem().status, 404, "it has to register anew");
}

#[test]
fn discovery_finds_by_type_service_slice_data_network_and_instance() {
    let mut bench = bench_in(vec!["999/70".parse().unwrap()]);
    register(&mut bench, Nf::Smf, 1);
    register(&mut bench, Nf::Udm, 2);
    let mut smf = |change: &dyn Fn(&mut SearchNfInstances)| {
        let mut query = query(NfType::Smf);
        change(&mut query);
        found(&mut bench, query) == [instance(1)]
    };
    assert!(smf(&|_| {}));
    assert!(smf(&|query| query.service_names = Some(vec![ServiceName::NsmfPdusession])));
    assert!(!smf(&|query| query.service_names = Some(vec![ServiceName::NudmSdm])));
    assert!(smf(&|query| query.snssais = Some(vec![Snssai::of_sst(1)])));
    assert!(!smf(&|query| query.snssais = Some(vec![Snssai::of_sst(2)])));
    assert!(smf(&|query| query.dnn = Some("Internet".parse().unwrap())));
    assert!(!smf(&|query| query.dnn = Some("ims".parse().unwrap())));
    let with_operator = |name: &str| format!("{name}.mnc070.mcc999.gprs").parse().unwrap();
    assert!(smf(&|query| query.dnn = Some(with_operator("internet"))));
    assert!(!smf(&|query| query.dnn = Some(with_operator("ims"))));
    assert!(!smf(&|query| query.dnn = Some("internet.mnc001.mcc001.gprs".parse().unwrap())));
    assert!(smf(&|query| query.target_nf_instance_id = Some(instance(1))));
    assert!(!smf(&|query| query.target_nf_instance_id = Some(instance(2))));
}

#[test]
fn subscribers_are_notified_of_registration_suspension_return_and_deregistration() {
    let mut bench = bench();
    subscribe(&mut bench, |data| data.subscr_cond = Some(SubscrCond::of_type(NfType::Smf)));
    assert_eq!(
        told(&mut bench, |bench| register(bench, Nf::Smf, 1)),
        Some(NotificationEventType::NfRegistered)
    );
    assert_eq!(told(&mut bench, |bench| beat(bench, 1)), None, "a heart-beat is no news");
    (0..3).for_each(|_| drop(bench.expire(Timer::NrfSweep)));
    assert_eq!(
        told(&mut bench, |bench| bench.expire(Timer::NrfSweep)),
        Some(NotificationEventType::NfProfileChanged)
    );
    assert_eq!(told(&mut bench, |bench| beat(bench, 1)), Some(NotificationEventType::NfProfileChanged));
    assert_eq!(told(&mut bench, |bench| deregister(bench, 1)), Some(NotificationEventType::NfDeregistered));
}

#[test]
fn subscribers_are_notified_only_of_their_conditions() {
    let mut bench = bench();
    subscribe(&mut bench, |data| {
        data.subscr_cond = Some(SubscrCond::of_service(ServiceName::NudmSdm));
        data.req_notif_events = vec![NotificationEventType::NfDeregistered];
    });
    assert_eq!(told(&mut bench, |bench| register(bench, Nf::Smf, 1)), None);
    assert_eq!(told(&mut bench, |bench| register(bench, Nf::Udm, 2)), None);
    assert_eq!(told(&mut bench, |bench| deregister(bench, 1)), None);
    assert_eq!(told(&mut bench, |bench| deregister(bench, 2)), Some(NotificationEventType::NfDeregistered));
}

#[test]
fn an_unsubscribed_nf_gets_no_notifications() {
    let mut bench = bench();
    let subscription = subscribe(&mut bench, |_| {});
    let remove = RemoveSubscription { subscription_id: subscription.id().to_owned() };
    assert_eq!(bench.request(remove.clone()).answer(), &Response::NoContent);
    assert_eq!(bench.request(remove).cause(), Some(&Cause::SubscriptionNotFound));
    assert_eq!(told(&mut bench, |bench| register(bench, Nf::Smf, 1)), None);
}

#[test]
fn a_subscription_ends_at_its_validity_time() {
    let mut bench = bench();
    let (_, end) = subscription(&mut bench, |_| {});
    assert_eq!(end, Some(minutes(10)));
    let (_, wished) = subscription(&mut bench, |data| {
        data.subscr_cond = Some(SubscrCond::of_type(NfType::Udm));
        data.validity_time = Some(minutes(20));
    });
    assert_eq!(wished, Some(minutes(20)));
    let (_, endless) =
        subscription(&mut bench, |data| data.validity_time = "9999-01-01T00:00:00Z".parse().ok());
    assert_eq!(endless, Some(minutes(24 * 60)), "nobody is told for ever");
    let answered = |bench: &mut Bench<Nrf>, seen: Seen| {
        let tags: Vec<_> = seen.calls().iter().map(|(tag, ..)| *tag).collect();
        tags.iter().for_each(|tag| drop(bench.reply(*tag, Ok(Response::NoContent))));
        tags.len()
    };
    let calls = |bench: &mut Bench<Nrf>| {
        let seen = register(bench, Nf::Udm, 1);
        answered(bench, seen)
    };
    let sweep = |bench: &mut Bench<Nrf>| {
        let seen = bench.expire(Timer::NrfSweep);
        answered(bench, seen)
    };
    assert_eq!(calls(&mut bench), 3);
    while bench.now.as_micros() <= 600_000_000 {
        sweep(&mut bench);
    }
    assert_eq!(calls(&mut bench), 2);
    while bench.now.as_micros() <= 1_200_000_000 {
        sweep(&mut bench);
    }
    assert_eq!(calls(&mut bench), 1);
}

#[test]
fn a_subscription_is_renewed() {
    let mut bench = bench();
    let (uri, _) = subscription(&mut bench, |_| {});
    let renew = |bench: &mut Bench<Nrf>, end: DateTime| {
        let body = vec![PatchItem::replace("/validityTime", end.to_string())];
        bench.request(UpdateSubscription { subscription_id: uri.id().to_owned(), body })
    };
    assert_eq!(renew(&mut bench, minutes(15)).answer(), &Response::NoContent);
    let seen = renew(&mut bench, minutes(10_000));
    let Response::SubscriptionData(data) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(data.validity_time, Some(minutes(24 * 60)), "less than was wished");
    assert_eq!(renew(&mut bench, minutes(11)).answer(), &Response::NoContent);
    while bench.now.as_micros() <= 640_000_000 {
        bench.expire(Timer::NrfSweep);
    }
    assert!(told(&mut bench, |bench| register(bench, Nf::Smf, 1)).is_some());
    bench.expire(Timer::NrfSweep);
    assert_eq!(renew(&mut bench, minutes(30)).cause(), Some(&Cause::SubscriptionNotFound));
}

#[test]
fn a_subscription_stays_but_for_its_end() {
    let mut bench = bench();
    let (uri, _) = subscription(&mut bench, |_| {});
    for (path, value) in [("/nfStatusNotificationUri", "http://elsewhere/x"), ("/reqNfType", "AMF")] {
        let added = PatchItem { op: PatchOperation::Add, ..PatchItem::replace(path, value) };
        let end = PatchItem::replace("/validityTime", minutes(15).to_string());
        let request = UpdateSubscription { subscription_id: uri.id().to_owned(), body: vec![end, added] };
        assert_eq!(bench.request(request).cause(), Some(&Cause::ModificationNotAllowed), "{path}");
    }
}

#[test]
fn the_subscription_of_a_silent_subscriber_is_deleted() {
    let mut bench = bench();
    subscribe(&mut bench, |_| {});
    let tell = |bench: &mut Bench<Nrf>| register(bench, Nf::Smf, 1).calls().first().map(|(tag, ..)| *tag);
    for answered in [false, true, false] {
        for _ in 0..4 {
            let tag = tell(&mut bench).expect("a notification");
            bench.reply(tag, Err(Problem::timed_out().into()));
        }
        let tag = tell(&mut bench).expect("a notification");
        let reply = if answered { Ok(Response::NoContent) } else { Err(Problem::timed_out().into()) };
        bench.reply(tag, reply);
        if !answered {
            assert_eq!(tell(&mut bench), None, "five in a row");
            subscribe(&mut bench, |_| {});
        }
    }
}

/// A subscriber that does not answer costs the NRF one notification, whatever happens meanwhile.
#[test]
fn a_subscriber_has_one_open_notification_and_then_gets_the_latest_state() {
    let mut bench = bench();
    subscribe(&mut bench, |_| {});
    let seen = register(&mut bench, Nf::Smf, 1);
    let (first, ..) = seen.calls()[0];
    for _ in 0..50 {
        assert!(register(&mut bench, Nf::Smf, 1).calls().is_empty(), "the first one is not answered");
    }
    register(&mut bench, Nf::Udm, 2);
    deregister(&mut bench, 1);
    let mut seen = bench.reply(first, Ok(Response::NoContent));
    let mut events = Vec::new();
    while let Some((tag, _, request)) = seen.calls().first() {
        let Request::NfStatusNotify(notify) = request else { panic!("{request:?}") };
        events.push((notify.body.nf_instance_uri.id().to_owned(), notify.body.event.clone()));
        let tag = *tag;
        seen = bench.reply(tag, Ok(Response::NoContent));
    }
    let of = |number, event| (instance(number).to_string(), event);
    let expected = [of(1, NotificationEventType::NfDeregistered), of(2, NotificationEventType::NfRegistered)];
    assert_eq!(events, expected);
}

#[test]
fn a_process_has_a_share_of_open_notifications() {
    let mut bench = bench();
    let (many, one) = (remote(50, false), remote(51, false));
    for from in [&[many; 40][..], &[one]].concat() {
        let mut body = SubscriptionData::new(Uri::new(&root("amf"), "/namf-callback/v1/nf-status/smf"));
        body.req_nf_type = Some(NfType::Amf);
        request_from(&mut bench, from, CreateSubscription { body }).answer();
    }
    let seen = register(&mut bench, Nf::Smf, 1);
    let open: Vec<_> = seen.calls().iter().map(|(tag, ..)| *tag).collect();
    assert_eq!(open.len(), 17, "16 of the one and one of the other");
    let next = bench.reply(open[0], Err(Problem::timed_out().into()));
    assert_eq!(next.calls().len(), 1, "one has ended, the next one is sent");
}

#[test]
fn a_deregistered_instance_is_not_found() {
    let mut bench = bench();
    register(&mut bench, Nf::Smf, 1);
    assert_eq!(deregister(&mut bench, 1).answer(), &Response::NoContent);
    assert!(found(&mut bench, query(NfType::Smf)).is_empty());
    let get = GetNfInstance { nf_instance_id: instance(1), requester_features: None };
    assert_eq!(bench.request(get).problem().status, 404);
    assert_eq!(deregister(&mut bench, 1).problem().status, 404);
}

#[test]
fn instances_and_profiles_are_limited() {
    let mut bench = bench();
    let mut body =
        NfProfile::new(instance(1), NfType::Amf, pith_sbi::nnrf_nfmanagement::NfStatus::Registered);
    body.fqdn = Some("amf.5gc.example".into());
    for number in 0..4096 {
        body.nf_instance_id = instance(number);
        bench.request(RegisterNfInstance { nf_instance_id: instance(number), body: body.clone() }).answer();
    }
    let one_more = |body: &NfProfile, number| RegisterNfInstance {
        nf_instance_id: instance(number),
        body: NfProfile { nf_instance_id: instance(number), ..body.clone() },
    };
    assert_eq!(bench.request(one_more(&body, 5000)).cause(), Some(&Cause::InsufficientResources));
    bench.request(one_more(&body, 7)).answer();
    body.fqdn = Some("x".repeat(65 << 10).into());
    assert_eq!(bench.request(one_more(&body, 7)).problem().status, 413);
}

/// TS 33.518 4.2.2.2.1: a requester in a slice that the producer does not allow gets 403.
#[test]
fn tc_disc_authorization_slice_nrf() {
    let mut bench = bench();
    register(&mut bench, Nf::Smf, 1);
    let mut producer = shown(&mut bench, 1);
    producer.allowed_nssais = vec![Snssai::of_sst(1).into()];
    bench.request(RegisterNfInstance { nf_instance_id: instance(1), body: producer });
    let of_slice =
        |sst| SearchNfInstances { requester_snssais: Some(vec![Snssai::of_sst(sst)]), ..query(NfType::Smf) };
    assert_eq!(found(&mut bench, of_slice(1)), [instance(1)]);
    assert_eq!(bench.request(of_slice(2)).problem().status, 403);
    // A requester without slices is in none of the allowed slices.
    assert_eq!(bench.request(query(NfType::Smf)).problem().status, 403);
    // A requester that sends no slices has those that it registered.
    register(&mut bench, Nf::Amf, 2);
    let of_amf = SearchNfInstances { requester_nf_instance_id: Some(instance(2)), ..query(NfType::Smf) };
    assert_eq!(found(&mut bench, of_amf), [instance(1)]);
}

/// Returns the claims in place of a signed token.
struct Shown;

impl TokenSigner for Shown {
    fn sign(&self, _: u64, claims: &AccessTokenClaims) -> Option<String> {
        serde_json::to_string(claims).ok()
    }
}

fn issuing() -> Bench<Nrf> {
    let plmn = testing::plmn();
    let tokens = TokenIssuer {
        signer: Arc::new(Shown),
        instance: instance(9),
        plmn,
        lifetime: Duration::from_secs(3600),
    };
    Bench::new(Nrf::new(root("nrf"), NrfConfig::default()).with_tokens(tokens))
}

fn token_request(number: u128, scope: &str, target: NfType) -> AccessTokenRequest {
    let mut body = AccessTokenReq::new(instance(number), scope);
    body.target_nf_type = Some(target);
    AccessTokenRequest { body }
}

fn claims(seen: &Seen) -> AccessTokenClaims {
    let Response::AccessTokenRsp(token) = seen.answer() else { panic!("{seen:?}") };
    serde_json::from_str(&token.access_token.0).unwrap()
}

#[test]
fn a_token_contains_consumer_producer_and_allowed_scope() {
    let mut bench = issuing();
    register(&mut bench, Nf::Pcf, 1);
    register(&mut bench, Nf::Udr, 2);
    let seen = bench.request(token_request(1, "nudr-dr", NfType::Udr));
    let claims = claims(&seen);
    assert_eq!((claims.iss, claims.sub), (instance(9), instance(1)));
    assert_eq!(claims.aud, NfType::Udr.into());
    assert_eq!(&*claims.scope, "nudr-dr nudr-dr:policy-data", "a PCF reads no keys");
    assert_eq!(claims.producer_plmn_id, Some(testing::plmn()));
}

#[test]
fn a_token_that_no_producer_allows_is_not_issued() {
    let mut bench = issuing();
    register(&mut bench, Nf::Smf, 1);
    register(&mut bench, Nf::Udr, 2);
    let error = |seen: &Seen| seen.problem().access_token_error();
    let udr = bench.request(token_request(1, "nudr-dr", NfType::Udr));
    assert_eq!(error(&udr).as_deref(), Some("unauthorized_client"), "no SMF uses the UDR");
    let udm = bench.request(token_request(1, "nudm-sdm", NfType::Udm));
    assert_eq!(error(&udm).as_deref(), Some("invalid_scope"), "there is no UDM");
    let stranger = bench.request(token_request(7, "nudr-dr", NfType::Udr));
    assert_eq!(error(&stranger).as_deref(), Some("invalid_client"), "nobody knows it");
    let mut posing = token_request(1, "nudr-dr", NfType::Udr);
    posing.body.nf_type = Some(NfType::Udm);
    assert_eq!(error(&bench.request(posing)).as_deref(), Some("invalid_client"), "an SMF is no UDM");
}

/// A client with a certificate that names its instance, or a foreign NF that proves its type only.
fn remote(number: u128, is_named: bool) -> Caller {
    let id = instance(number);
    Caller::Remote {
        exchange: 1,
        client: Some(crate::kit::Client {
            instance: id,
            process: id,
            is_named,
            is_proven: is_named,
            issuer: crate::kit::Issuer::Own,
        }),
    }
}

fn request_from(bench: &mut Bench<Nrf>, from: Caller, request: impl Into<Request>) -> Seen {
    bench.input(Input::Request { reply: PendingReply::owed_to(from), request: request.into() })
}

#[test]
fn a_foreign_nf_changes_its_own_profile_only() {
    let mut bench = bench();
    register(&mut bench, Nf::Smf, 1);
    let smf = shown(&mut bench, 1);
    let put = |number, body: &NfProfile| RegisterNfInstance {
        nf_instance_id: instance(number),
        body: NfProfile { nf_instance_id: instance(number), ..body.clone() },
    };
    let (foreign, other) = (remote(50, false), remote(51, false));
    assert_eq!(request_from(&mut bench, foreign, put(1, &smf)).problem().status, 403, "not its instance");
    let remove = |number| DeregisterNfInstance { nf_instance_id: instance(number) };
    assert_eq!(request_from(&mut bench, foreign, remove(1)).problem().status, 403);
    request_from(&mut bench, foreign, put(2, &smf)).answer();
    request_from(&mut bench, foreign, put(2, &smf)).answer();
    let beat = || UpdateNfInstance {
        nf_instance_id: instance(2),
        body: vec![PatchItem::replace("/nfStatus", "REGISTERED")],
    };
    assert_eq!(request_from(&mut bench, other, beat()).problem().status, 403);
    request_from(&mut bench, foreign, beat()).answer();
    // The guard compared the id with the certificate, which proves more than a registration.
    request_from(&mut bench, remote(2, true), put(2, &smf)).answer();
    assert_eq!(request_from(&mut bench, foreign, beat()).problem().status, 403);
    let amf = profile(Nf::Amf, &identity(), &ProfileConfig::default());
    assert_eq!(
        request_from(&mut bench, remote(2, true), put(2, &amf)).cause(),
        Some(&Cause::ModificationNotAllowed),
        "an SMF does not become an AMF"
    );
}

#[test]
fn a_patch_brings_no_new_address() {
    let mut bench = bench();
    let mut body = profile(Nf::Smf, &identity(), &ProfileConfig::default());
    body.nf_instance_id = instance(1);
    body.ipv4_addresses = vec!["192.0.2.1".parse().unwrap()];
    bench.request(RegisterNfInstance { nf_instance_id: instance(1), body }).answer();
    let elsewhere = PatchItem::add("/ipv4Addresses/0", "192.0.2.2");
    assert_eq!(patch(&mut bench, 1, vec![elsewhere]).cause(), Some(&Cause::ModificationNotAllowed));
    patch(&mut bench, 1, vec![PatchItem::add("/priority", 1)]).answer();
}

#[test]
fn what_a_requester_says_of_itself_must_be_in_its_profile() {
    let mut bench = issuing();
    let mut producer = profile(Nf::Smf, &identity(), &ProfileConfig::default());
    producer.nf_instance_id = instance(1);
    for service in &mut producer.nf_services {
        service.allowed_nssais = vec![Snssai::of_sst(1).into()];
        service.allowed_nf_domains = vec![".*\\.5gc\\.example".into()];
    }
    bench.request(RegisterNfInstance { nf_instance_id: instance(1), body: producer }).answer();
    let registers = |bench: &mut Bench<Nrf>, number, sst, fqdn: &str| {
        let mut amf = profile(Nf::Amf, &identity(), &ProfileConfig::default());
        amf.nf_instance_id = instance(number);
        amf.s_nssais = vec![Snssai::of_sst(sst).into()];
        amf.fqdn = Some(fqdn.into());
        amf.plmn_list = vec![testing::plmn()];
        let request = RegisterNfInstance { nf_instance_id: instance(number), body: amf };
        request_from(bench, remote(number, true), request).answer();
    };
    registers(&mut bench, 2, 1, "amf2.5gc.example");
    registers(&mut bench, 3, 2, "amf3.5gc.example");
    registers(&mut bench, 4, 1, "amf4.example");
    let claims = |number, plmn: &str| {
        let mut request = token_request(number, "nsmf-pdusession", NfType::Smf);
        request.body.nf_type = Some(NfType::Amf);
        request.body.requester_plmn = Some(plmn.parse().unwrap());
        request.body.requester_snssais = Some(vec![Snssai::of_sst(1)]);
        request.body.requester_fqdn = Some(format!("amf{number}.5gc.example").into());
        request
    };
    let mut error = |number, plmn: &str| {
        let seen = request_from(&mut bench, remote(number, true), claims(number, plmn));
        seen.answers().first().and_then(|reply| reply.as_ref().err()).and_then(|p| p.access_token_error())
    };
    assert_eq!(error(2, "999/70"), None);
    assert_eq!(error(2, "001/01").as_deref(), Some("invalid_client"), "another network");
    assert_eq!(error(3, "999/70").as_deref(), Some("unauthorized_client"), "another slice");
    assert_eq!(error(4, "999/70").as_deref(), Some("unauthorized_client"), "another domain");
    assert_eq!(error(5, "999/70").as_deref(), Some("invalid_client"), "no profile yet, so no network");
    let mut query = |number, plmn: &str| {
        let mut query = SearchNfInstances::new(NfType::Smf, NfType::Amf);
        query.requester_nf_instance_id = Some(instance(number));
        query.requester_plmn_list = Some(vec![plmn.parse().unwrap()]);
        query.requester_snssais = Some(vec![Snssai::of_sst(1)]);
        query.requester_nf_instance_fqdn = Some(format!("amf{number}.5gc.example").into());
        let seen = request_from(&mut bench, remote(number, true), query);
        seen.answers()[0].as_ref().map_or_else(|problem| problem.status, |_| 200)
    };
    assert_eq!(query(2, "999/70"), 200);
    assert_eq!((query(2, "001/01"), query(3, "999/70"), query(4, "999/70")), (403, 403, 403));
}

#[test]
fn a_token_is_for_a_requester_whose_instance_is_proven() {
    let mut bench = issuing();
    register(&mut bench, Nf::Udr, 2);
    let error = |bench: &mut Bench<Nrf>, from| {
        let mut request = token_request(1, "nudr-dr", NfType::Udr);
        request.body.nf_type = Some(NfType::Pcf);
        let seen = request_from(bench, from, request);
        seen.answers().first().and_then(|reply| reply.as_ref().err()).and_then(|p| p.access_token_error())
    };
    assert_eq!(error(&mut bench, remote(1, true)), None, "its certificate names the instance");
    assert_eq!(error(&mut bench, remote(50, false)).as_deref(), Some("invalid_client"));
    let body =
        NfProfile { nf_instance_id: instance(1), ..profile(Nf::Pcf, &identity(), &ProfileConfig::default()) };
    request_from(&mut bench, remote(50, false), RegisterNfInstance { nf_instance_id: instance(1), body })
        .answer();
    assert_eq!(error(&mut bench, remote(50, false)), None, "it registered the instance");
    assert_eq!(error(&mut bench, remote(51, false)).as_deref(), Some("invalid_client"), "another one did");
}

#[test]
fn subscriptions_are_their_owners_and_have_a_share() {
    let mut bench = bench();
    let subscribe = |bench: &mut Bench<Nrf>, from| {
        let body = SubscriptionData::new(Uri::new(&root("amf"), "/namf-callback/v1/nf-status/smf"));
        request_from(bench, from, CreateSubscription { body })
    };
    let (foreign, other) = (remote(50, false), remote(51, false));
    let seen = subscribe(&mut bench, foreign);
    let Response::SubscriptionDataCreated(created) = seen.answer() else { panic!("{seen:?}") };
    let remove = || RemoveSubscription { subscription_id: created.location.id().into() };
    assert_eq!(request_from(&mut bench, other, remove()).problem().status, 403);
    request_from(&mut bench, foreign, remove()).answer();
    for _ in 0..512 {
        subscribe(&mut bench, foreign).answer();
    }
    assert_eq!(subscribe(&mut bench, foreign).problem().status, 503);
    subscribe(&mut bench, other).answer();
}

/// A service at an https and an http address: each requester gets the one that it can use, in discovery and in
/// notifications.
#[test]
fn an_nf_in_cleartext_gets_the_cleartext_addresses_of_services() {
    let config = NrfConfig { cleartext: vec![NfType::Ausf], ..NrfConfig::default() };
    let mut bench = Bench::new(Nrf::new(root("nrf"), config));
    for (nf_type, path) in [(NfType::Ausf, "/ausf"), (NfType::Amf, "/amf")] {
        let mut body = SubscriptionData::new(Uri::new(&root("consumer"), path));
        body.req_nf_type = Some(nf_type);
        bench.request(CreateSubscription { body }).answer();
    }
    let api_root = pith_sbi::ApiRoot::new(pith_sbi::Scheme::Https, "10.0.0.7:7777");
    let config = ProfileConfig { plain: "10.0.0.7:80".parse().ok(), ..ProfileConfig::default() };
    let identity = crate::kit::Identity { api_root: Arc::new(api_root), ..identity() };
    let body = profile(Nf::Udm, &identity, &config);
    let seen = bench.request(RegisterNfInstance { nf_instance_id: identity.instance_id, body });
    let roots = |profile: &NfProfile| {
        let mut roots: Vec<_> = profile.services().map(|s| s.api_root().unwrap().to_string()).collect();
        roots.dedup();
        roots
    };
    let (secure, plain) = (vec!["https://10.0.0.7:7777".to_owned()], vec!["http://10.0.0.7:80".to_owned()]);
    let notified = |path: &str| {
        let request = seen.calls().into_iter().find_map(|(_, _, request)| match request {
            Request::NfStatusNotify(notify) if notify.uri.to_string().ends_with(path) => Some(notify),
            _ => None,
        });
        roots(request.unwrap().body.nf_profile.as_ref().unwrap())
    };
    assert_eq!((notified("/ausf"), notified("/amf")), (plain.clone(), secure.clone()));
    let ausf = profile(Nf::Ausf, &self::identity(), &ProfileConfig::default());
    let body = NfProfile { nf_instance_id: instance(50), ..ausf };
    request_from(&mut bench, remote(50, false), RegisterNfInstance { nf_instance_id: instance(50), body });
    let get = GetNfInstance { nf_instance_id: identity.instance_id, requester_features: None };
    let seen = request_from(&mut bench, remote(50, false), get);
    let Response::NfProfile(read) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(roots(read), plain, "the AUSF reads the profile");
    let mut discovered = |requester| {
        let seen = bench.request(SearchNfInstances::new(NfType::Udm, requester));
        let Response::SearchResult(result) = seen.answer() else { panic!("{seen:?}") };
        roots(&result.nf_instances[0])
    };
    assert_eq!((discovered(NfType::Ausf), discovered(NfType::Amf)), (plain, secure));
}

/// A foreign NF without instance ids in its certificate may name any id.
#[test]
fn a_client_has_a_share_of_the_instances() {
    use super::management::SHARE_UNNAMED;
    let mut bench = bench();
    let mut body =
        NfProfile::new(instance(1), NfType::Smf, pith_sbi::nnrf_nfmanagement::NfStatus::Registered);
    body.fqdn = Some("smf.5gc.example".into());
    let put = |number| RegisterNfInstance {
        nf_instance_id: instance(number),
        body: NfProfile { nf_instance_id: instance(number), ..body.clone() },
    };
    let foreign = remote(5000, false);
    for number in 0..SHARE_UNNAMED as u128 {
        request_from(&mut bench, foreign, put(number)).answer();
    }
    let refused = request_from(&mut bench, foreign, put(1000));
    assert_eq!(refused.cause(), Some(&Cause::InsufficientResources));
    request_from(&mut bench, foreign, put(0)).answer();
    request_from(&mut bench, remote(5001, false), put(1000)).answer();
    request_from(&mut bench, remote(1001, true), put(1001)).answer();
}

/// A foreign CA writes any id into a certificate: it is not the NF of this core with that id.
#[test]
fn a_certificate_of_another_ca_is_not_that_of_our_nf() {
    let mut bench = bench();
    let foreign = |number| match remote(number, true) {
        Caller::Remote { exchange, client: Some(client) } => {
            let client = Client { issuer: Issuer::External(7), ..client };
            Caller::Remote { exchange, client: Some(client) }
        }
        other => other,
    };
    let put = |number| {
        let mut body = profile(Nf::Smf, &identity(), &ProfileConfig::default());
        body.nf_instance_id = instance(number);
        RegisterNfInstance { nf_instance_id: instance(number), body }
    };
    let remove = |number| DeregisterNfInstance { nf_instance_id: instance(number) };
    request_from(&mut bench, remote(1, true), put(1)).answer();
    assert_eq!(request_from(&mut bench, foreign(1), put(1)).problem().status, 403);
    assert_eq!(request_from(&mut bench, foreign(1), remove(1)).problem().status, 403);
    request_from(&mut bench, foreign(2), put(2)).answer();
    request_from(&mut bench, foreign(2), put(2)).answer();
    // An id of ours that the foreign NF took first is given back to our NF, of whatever type.
    let mut amf = profile(Nf::Amf, &identity(), &ProfileConfig::default());
    amf.nf_instance_id = instance(2);
    let own = RegisterNfInstance { nf_instance_id: instance(2), body: amf };
    request_from(&mut bench, remote(2, true), own).answer();
    assert_eq!(request_from(&mut bench, foreign(2), remove(2)).problem().status, 403);
}

/// `allowedNfTypes` and the like bind the readers of profiles, not discovery alone.
#[test]
fn profiles_and_notifications_are_for_those_that_the_nf_allows() {
    let mut bench = bench();
    let registers = |bench: &mut Bench<Nrf>, nf, number| {
        let mut body = profile(nf, &identity(), &ProfileConfig::default());
        body.nf_instance_id = instance(number);
        let request = RegisterNfInstance { nf_instance_id: instance(number), body };
        request_from(bench, remote(number, true), request)
    };
    // A UDR allows UDM and PCF.
    for (nf, number) in [(Nf::Udr, 1), (Nf::Udm, 2), (Nf::Amf, 3), (Nf::Udr, 4)] {
        registers(&mut bench, nf, number).answer();
    }
    let get = || GetNfInstance { nf_instance_id: instance(1), requester_features: None };
    let status = |seen: &Seen| seen.answers()[0].as_ref().map_or_else(|problem| problem.status, |_| 200);
    let mut read = |number| status(&request_from(&mut bench, remote(number, true), get()));
    assert_eq!((read(1), read(2), read(3), read(4), read(9)), (200, 200, 403, 200, 403));
    let mut links = |number| {
        let list = pith_sbi::nnrf_nfmanagement::GetNfInstances { nf_type: None, limit: None };
        let seen = request_from(&mut bench, remote(number, true), list);
        let Response::UriList(list) = seen.answer() else { panic!("{seen:?}") };
        match list.links.get("item") {
            Some(pith_sbi::common::LinksValue::Many(links)) => links.len(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((links(2), links(9)), (3, 0), "itself and the UDRs");
    for number in [2, 3] {
        let mut body = SubscriptionData::new(Uri::new(&root("amf"), &format!("/namf-callback/v1/{number}")));
        body.subscr_cond = Some(SubscrCond::of_type(NfType::Udr));
        request_from(&mut bench, remote(number, true), CreateSubscription { body }).answer();
    }
    let told = registers(&mut bench, Nf::Udr, 1);
    let notified = told.calls().into_iter().map(|(.., request)| match request {
        Request::NfStatusNotify(notify) => notify.uri.id().to_owned(),
        other => panic!("{other:?}"),
    });
    assert_eq!(notified.collect::<Vec<_>>(), ["2"]);
}
