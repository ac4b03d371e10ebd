//! Views of a subscriber, and documents that NFs wrote; the test acts as the database.

mod changes;

use super::*;
use crate::kit::{Effect, Subscriber};
use crate::testing::{Bench, Seen, ambr, instance, plmn, root, supi};
use pith_sbi::common::{AuthType, DateTime, PatchItem, RatType, ServingPlmnId};
use pith_sbi::nudm_sdm::{DataSetName, SdmSubscription};
use pith_sbi::nudm_ueau::AuthEvent;
use pith_sbi::nudm_uecm::{Amf3GppAccessRegistration, SmfRegistration};
use pith_sbi::nudr_dr::{
    CreateAmfContextThreeGpp, CreateAuthenticationStatus, CreateOrUpdateSmfRegistration,
    DeleteSmfRegistration, ModifyAmfContextThreeGpp, ModifyAuthenticationSubscription, ModifySdmSubscription,
    QueryAmData, QueryAmfContextThreeGpp, QueryAuthSubsData, QueryProvisionedData, QuerySmData,
    QuerySmfRegList, QuerySmfSelectData, ReadAccessAndMobilityPolicyData, ReadSessionManagementPolicyData,
    UpdateSdmSubscriptions,
};
use pith_sbi::{Cause, Hex, Response, Uri};
use pith_types::{Guami, Snssai};

fn bench() -> Bench<Udr> {
    Bench::new(Udr::new(root("udr")))
}

fn subscriber() -> Subscriber {
    let mut subscriber = Subscriber::with_defaults(supi(), [0x46; 16], [0xe8; 16]);
    subscriber.authentication.sqn = 0x1234;
    subscriber
}

/// Sends a request, and answers its database request.
fn ask(request: impl Into<Request>, stored: StoreResponse) -> Seen {
    let mut bench = bench();
    let asked = bench.request(request);
    let seen = bench.stored(asked.store().0, Ok(stored));
    assert!(bench.nf.pending.is_empty());
    seen
}

fn view(request: impl Into<Request>) -> Response {
    let known = StoreResponse::Subscriber(Some(std::sync::Arc::new(subscriber())));
    ask(request, known).answer().clone()
}

fn serving() -> ServingPlmnId {
    ServingPlmnId(plmn())
}

fn sm_data(sst: Option<u8>, dnn: Option<&str>) -> QuerySmData {
    QuerySmData {
        ue_id: supi(),
        serving_plmn_id: serving(),
        single_nssai: sst.map(Snssai::of_sst),
        dnn: dnn.map(|dnn| dnn.parse().unwrap()),
    }
}

#[test]
fn the_authentication_subscription_holds_keys_and_sqn() {
    let response = view(QueryAuthSubsData { ue_id: supi() });
    let Response::AuthenticationSubscription(view) = response else { panic!("{response:?}") };
    assert_eq!(view.authentication_method, AuthType::FiveGAka);
    assert_eq!(view.sequence_number.unwrap().sqn, Some(Hex([0, 0, 0, 0, 0x12, 0x34])));
    assert_eq!(view.authentication_management_field, Some(Hex([0x80, 0])));
    assert!(view.enc_permanent_key.unwrap().0.eq_ignore_ascii_case(&"46".repeat(16)));
    assert!(view.enc_opc_key.is_some() && view.enc_topc_key.is_none());
}

#[test]
fn access_and_mobility_data_holds_ambr_and_slices() {
    let response = view(QueryAmData { ue_id: supi(), serving_plmn_id: serving() });
    let Response::AmData(data) = response else { panic!("{response:?}") };
    assert_eq!(data.subscribed_ue_ambr, Some(ambr(1000)));
    assert_eq!(data.nssai.unwrap().default_single_nssais, [Snssai::of_sst(1)]);
}

#[test]
fn access_and_mobility_data_holds_the_trace() {
    let trace = serde_json::json!({"traceRef": "99970-00000A", "traceDepth": "MINIMUM_WO_VENDOR_EXTENSION", "neTypeList": "0040",
        "eventList": "01", "collectionEntityIpv6Addr": "2001:db8::9", "interfaceList": "f8"});
    let trace = Some(serde_json::from_value(trace).unwrap());
    let known = StoreResponse::Subscriber(Some(std::sync::Arc::new(Subscriber { trace, ..subscriber() })));
    let query = QueryAmData { ue_id: supi(), serving_plmn_id: serving() };
    let Response::AmData(data) = ask(query, known).answer().clone() else { panic!() };
    let data = data.trace_data.unwrap();
    assert_eq!((&*data.trace_ref, &*data.ne_type_list, &*data.event_list), ("99970-00000A", "0040", "01"));
    assert_eq!(data.trace_depth, pith_sbi::common::TraceDepth::MinimumWoVendorExtension);
    assert_eq!(data.collection_entity_ipv6_addr, Some("2001:db8::9".parse().unwrap()));
    assert_eq!((data.collection_entity_ipv4_addr, data.interface_list.as_deref()), (None, Some("f8")));
}

#[test]
fn several_data_sets_come_in_one_answer() {
    let query = |dataset_names| {
        let response =
            view(QueryProvisionedData { ue_id: supi(), serving_plmn_id: serving(), dataset_names });
        let Response::SubscriptionDataSets(sets) = response else { panic!("{response:?}") };
        (sets.am_data.is_some(), sets.smf_sel_data.is_some(), sets.sm_data.is_some())
    };
    assert_eq!(query(Some(vec![DataSetName::Am, DataSetName::Trace])), (true, false, false));
    assert_eq!(query(Some(vec![DataSetName::SmfSel, DataSetName::Sm])), (false, true, true));
    assert_eq!(query(None), (true, true, true));
}

#[test]
fn the_first_data_network_of_a_slice_is_its_default() {
    let response = view(QuerySmfSelectData { ue_id: supi(), serving_plmn_id: serving() });
    let Response::SmfSelData(data) = response else { panic!("{response:?}") };
    let infos = &data.subscribed_snssai_infos.values().next().unwrap().dnn_infos;
    assert_eq!((&*infos[0].dnn, infos[0].default_dnn_indicator), ("internet", Some(true)));
}

#[test]
fn session_management_data_is_that_of_slice_and_data_network() {
    for query in [sm_data(Some(1), Some("internet")), sm_data(None, None)] {
        let Response::SmData(data) = view(query) else { panic!() };
        let configuration = &data.individual()[0].dnn_configurations["internet"];
        assert_eq!(configuration.session_ambr, Some(ambr(1000)));
    }
    for query in [sm_data(Some(2), None), sm_data(Some(1), Some("ims"))] {
        let known = StoreResponse::Subscriber(Some(std::sync::Arc::new(subscriber())));
        assert_eq!(ask(query, known).cause(), Some(&Cause::DataNotFound));
    }
}

#[test]
fn policy_data_names_the_slices() {
    let access = view(ReadAccessAndMobilityPolicyData { ue_id: supi() });
    assert!(matches!(access, Response::AmPolicyData(_)));
    let query = ReadSessionManagementPolicyData { ue_id: supi(), snssai: None, dnn: None };
    let Response::SmPolicyData(data) = view(query) else { panic!() };
    assert_eq!(data.sm_policy_snssai_data.len(), 1);
}

#[test]
fn an_unknown_subscriber_has_no_data() {
    let nobody = || StoreResponse::Subscriber(None);
    let cause = |seen: Seen| seen.cause().cloned();
    let am = QueryAmData { ue_id: supi(), serving_plmn_id: serving() };
    assert_eq!(cause(ask(QueryAuthSubsData { ue_id: supi() }, nobody())), Some(Cause::UserNotFound));
    assert_eq!(cause(ask(am, nobody())), Some(Cause::UserNotFound));
    assert_eq!(cause(ask(sm_data(None, None), nobody())), Some(Cause::UserNotFound));
}

fn modify_sqn(path: &str, value: &str) -> ModifyAuthenticationSubscription {
    ModifyAuthenticationSubscription { ue_id: supi(), body: vec![PatchItem::replace(path, value)] }
}

fn put_sqn(expected: Option<u64>) -> StoreRequest {
    StoreRequest::PutSequenceNumber { supi: supi(), sqn: 0xff, expected }
}

#[test]
fn the_sqn_is_all_that_may_change_in_an_authentication_subscription() {
    let mut bench = bench();
    let asked = bench.request(modify_sqn("/sequenceNumber/sqn", "0000000000ff"));
    assert_eq!(asked.store().1, &put_sqn(None));
    for path in ["/encPermanentKey", "/sequenceNumber/lastIndexes", "", "/"] {
        let seen = bench.request(modify_sqn(path, "0000000000ff"));
        assert_eq!(seen.cause(), Some(&Cause::ModificationNotAllowed), "{path}");
    }
    assert_eq!(bench.request(modify_sqn("/sequenceNumber/sqn", "ff")).problem().status, 400);
}

/// The UDM's request to store an SQN that follows `known`.
fn keep_sqn(known: &str) -> ModifyAuthenticationSubscription {
    let mut modify = modify_sqn("/sequenceNumber/sqn", "0000000000ff");
    modify.body.insert(0, PatchItem::test("/sequenceNumber/sqn", known));
    modify
}

#[test]
fn a_patch_may_test_the_current_sqn() {
    let mut bench = bench();
    assert_eq!(bench.request(keep_sqn("0000000000DE")).store().1, &put_sqn(Some(0xde)));
    assert_eq!(bench.request(keep_sqn("de")).problem().status, 400);
    let mut only_test = keep_sqn("0000000000de");
    only_test.body.truncate(1);
    assert_eq!(bench.request(only_test).problem().status, 400);
    let whole = serde_json::json!({ "sqn": "0000000000de" });
    for odd in
        [PatchItem::test("/sequenceNumber/sqn", "0000000000ff"), PatchItem::test("/sequenceNumber", whole)]
    {
        let mut modify = keep_sqn("0000000000de");
        modify.body.insert(1, odd);
        assert_eq!(bench.request(modify).cause(), Some(&Cause::ModificationNotAllowed));
    }
    let mut test_last = keep_sqn("0000000000de");
    test_last.body.reverse();
    assert_eq!(bench.request(test_last).cause(), Some(&Cause::ModificationNotAllowed));
}

/// Requests to store an SQN, which the database refuses; then the subscriber is read as `found`.
fn not_kept(found: Option<Subscriber>) -> Seen {
    let mut bench = bench();
    let asked = bench.request(keep_sqn("0000000000de"));
    let why = bench.stored(asked.store().0, Ok(StoreResponse::Done { created_or_found: false }));
    assert_eq!(why.store().1, &StoreRequest::Subscriber(supi()));
    let seen = bench.stored(why.store().0, Ok(StoreResponse::Subscriber(found.map(Into::into))));
    assert!(bench.nf.pending.is_empty());
    seen
}

#[test]
fn an_sqn_is_not_stored_after_a_conflict_or_for_an_unknown_subscriber() {
    let kept = ask(keep_sqn("0000000000de"), StoreResponse::Done { created_or_found: true });
    assert_eq!(kept.answer(), &Response::NoContent);
    assert_eq!(not_kept(Some(subscriber())).problem().status, 409);
    assert_eq!(not_kept(None).cause(), Some(&Cause::UserNotFound));
}

fn amf_registration() -> Amf3GppAccessRegistration {
    let guami = Guami { plmn_id: plmn(), amf_id: "020040".parse().unwrap() };
    let callback = Uri::new(&root("amf"), "/namf-callback/v1/dereg-notify/1");
    Amf3GppAccessRegistration::new(instance(1), callback, guami, RatType::Nr)
}

/// The document in the database after `request`.
fn put(request: impl Into<Request>) -> (String, String) {
    let mut bench = bench();
    let asked = bench.request(request);
    let StoreRequest::PutDocument { resource, body, .. } = asked.store().1 else { panic!("{asked:?}") };
    (resource.clone(), body.clone())
}

#[test]
fn a_document_is_read_as_it_was_written() {
    let (resource, body) = put(CreateAmfContextThreeGpp { ue_id: supi(), body: amf_registration() });
    assert_eq!(resource, "context-data/amf-3gpp-access");
    let seen = ask(QueryAmfContextThreeGpp { ue_id: supi() }, StoreResponse::Document(Some(body)));
    assert_eq!(seen.answer(), &Response::Amf3GppAccessRegistration(Box::new(amf_registration())));
}

#[test]
fn a_new_document_is_created_and_an_old_one_replaced() {
    let create = || CreateAmfContextThreeGpp { ue_id: supi(), body: amf_registration() };
    let seen = ask(create(), StoreResponse::Done { created_or_found: true });
    let Response::Amf3GppAccessRegistrationCreated(created) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(created.location.id(), "amf-3gpp-access");
    let seen = ask(create(), StoreResponse::Done { created_or_found: false });
    assert_eq!(seen.answer(), &Response::NoContent);
}

#[test]
fn a_document_is_patched_in_two_steps() {
    let mut bench = bench();
    let body = vec![PatchItem::add("/purgeFlag", true)];
    let read = bench.request(ModifyAmfContextThreeGpp { ue_id: supi(), body });
    let held = serde_json::to_string(&amf_registration()).unwrap();
    let write = bench.stored(read.store().0, Ok(StoreResponse::Document(Some(held))));
    let (tag, StoreRequest::ReplaceDocument { body, .. }) = write.store() else { panic!("{write:?}") };
    let kept: Amf3GppAccessRegistration = serde_json::from_str(body).unwrap();
    assert_eq!(kept.purge_flag, Some(true));
    let done = bench.stored(tag, Ok(StoreResponse::Done { created_or_found: true }));
    assert_eq!(done.answer(), &Response::NoContent);
}

/// A patch does not overwrite what another NF wrote meanwhile: it is tried again on that.
#[test]
fn a_patch_of_a_document_that_has_changed_starts_again() {
    let mut bench = bench();
    let test = PatchItem {
        value: Some(instance(1).to_string().into()),
        ..PatchItem::new(pith_sbi::common::PatchOperation::Test, "/amfInstanceId")
    };
    let body = vec![test, PatchItem::add("/purgeFlag", true)];
    let read = bench.request(ModifyAmfContextThreeGpp { ue_id: supi(), body });
    let held = serde_json::to_string(&amf_registration()).unwrap();
    let write = bench.stored(read.store().0, Ok(StoreResponse::Document(Some(held.clone()))));
    let (tag, StoreRequest::ReplaceDocument { expected, .. }) = write.store() else { panic!("{write:?}") };
    assert_eq!(*expected, held);
    let again = bench.stored(tag, Ok(StoreResponse::Done { created_or_found: false }));
    let (tag, StoreRequest::Document { .. }) = again.store() else { panic!("{again:?}") };
    let other = Amf3GppAccessRegistration { amf_instance_id: instance(2), ..amf_registration() };
    let other = serde_json::to_string(&other).unwrap();
    let refused = bench.stored(tag, Ok(StoreResponse::Document(Some(other))));
    assert_eq!(refused.problem().status, 403, "the registration is another AMF's now");
    assert!(bench.nf.pending.is_empty());
}

/// Otherwise a change that overtakes the end of a subscription would create it again.
#[test]
fn only_a_subscription_that_is_there_is_updated() {
    let subscription = |data: &str| {
        let callback = Uri::new(&root("amf"), "/namf-callback/v1/sdm-change/1");
        SdmSubscription::new(instance(1), callback, vec![data.into()])
    };
    let (former, body) = (subscription("/a"), subscription("/b"));
    let update = || UpdateSdmSubscriptions { ue_id: supi(), subs_id: "5-a".into(), body: body.clone() };
    assert_eq!(ask(update(), StoreResponse::Document(None)).cause(), Some(&Cause::DataNotFound));
    let mut bench = bench();
    let read = bench.request(update());
    let held = serde_json::to_string(&former).unwrap();
    let write = bench.stored(read.store().0, Ok(StoreResponse::Document(Some(held.clone()))));
    let (tag, StoreRequest::ReplaceDocument { resource, expected, body: text, .. }) = write.store() else {
        panic!("{write:?}")
    };
    assert_eq!((resource.as_str(), expected), ("context-data/sdm-subscriptions/5-a", &held));
    assert_eq!(serde_json::from_str::<SdmSubscription>(text).unwrap(), body);
    let again = bench.stored(tag, Ok(StoreResponse::Done { created_or_found: false }));
    let gone = bench.stored(again.store().0, Ok(StoreResponse::Document(None)));
    assert_eq!(gone.problem().status, 404);
    assert!(bench.nf.pending.is_empty());
}

fn sdm_subscription(callback: &str) -> SdmSubscription {
    let callback = Uri::new(&root("amf"), callback);
    let monitored: Vec<pith_sbi::ResourceUri> = vec!["/a".into()];
    SdmSubscription::new(instance(1), callback, monitored)
}

fn subscription_text(callback: &str) -> String {
    serde_json::to_string(&sdm_subscription(callback)).unwrap()
}

/// The NF has subscribed again with the same id while its former subscription was changed.
#[test]
fn a_change_of_a_subscription_keeps_the_callback_uri_of_a_newer_one() {
    let mut bench = bench();
    let expires = DateTime::from_unix_ms(1_000_000);
    let body = vec![PatchItem::add("/expires", expires.to_string())];
    let read = bench.request(ModifySdmSubscription { ue_id: supi(), subs_id: "5-a".into(), body });
    let former = StoreResponse::Document(Some(subscription_text("/former")));
    let write = bench.stored(read.store().0, Ok(former));
    let again = bench.stored(write.store().0, Ok(StoreResponse::Done { created_or_found: false }));
    let newer = StoreResponse::Document(Some(subscription_text("/newer")));
    let write = bench.stored(again.store().0, Ok(newer));
    let (tag, StoreRequest::ReplaceDocument { resource, expected, body: text, .. }) = write.store() else {
        panic!("{write:?}")
    };
    assert_eq!(resource, "context-data/sdm-subscriptions/5-a");
    assert_eq!(*expected, subscription_text("/newer"));
    let mut changed = sdm_subscription("/newer");
    changed.expires = Some(expires);
    assert_eq!(serde_json::from_str::<SdmSubscription>(text).unwrap(), changed);
    let done = bench.stored(tag, Ok(StoreResponse::Done { created_or_found: true }));
    assert_eq!(done.answer(), &Response::NoContent);
}

#[test]
fn only_a_subscription_that_is_there_and_stays_one_is_changed() {
    let modify = |body| ModifySdmSubscription { ue_id: supi(), subs_id: "5-a".into(), body };
    let expiry = vec![PatchItem::add("/expires", "2026-03-31T00:00:00Z")];
    assert_eq!(ask(modify(expiry), StoreResponse::Document(None)).cause(), Some(&Cause::DataNotFound));
    let held = StoreResponse::Document(Some(subscription_text("/former")));
    let spoiled = ask(modify(vec![PatchItem::remove("/callbackReference")]), held);
    assert_eq!(spoiled.cause(), Some(&Cause::ModificationNotAllowed));
}

#[test]
fn documents_are_bounded_in_number_and_length() {
    let create = || CreateAmfContextThreeGpp { ue_id: supi(), body: amf_registration() };
    assert_eq!(ask(create(), StoreResponse::NoSubscriber).cause(), Some(&Cause::UserNotFound));
    let full = ask(create(), StoreResponse::Full);
    assert_eq!((full.problem().status, full.cause()), (500, Some(&Cause::InsufficientResources)));
    let mut bench = bench();
    let body = vec![PatchItem::add("/odd", "x".repeat(20_000))];
    let read = bench.request(ModifyAmfContextThreeGpp { ue_id: supi(), body });
    let held = serde_json::to_string(&amf_registration()).unwrap();
    let refused = bench.stored(read.store().0, Ok(StoreResponse::Document(Some(held))));
    assert_eq!(refused.problem().status, 413);
    assert!(bench.nf.pending.is_empty());
}

#[test]
fn smf_registrations_are_listed_one_document_each() {
    let slice = Snssai::of_sst(1);
    let body = SmfRegistration::new(instance(2), 5, slice, plmn());
    let (resource, text) =
        put(CreateOrUpdateSmfRegistration { ue_id: supi(), pdu_session_id: 5, body: body.clone() });
    assert_eq!(resource, "context-data/smf-registrations/5");
    let listed = StoreResponse::Documents(vec![(resource, text)]);
    let seen = ask(QuerySmfRegList { ue_id: supi() }, listed);
    assert_eq!(seen.answer(), &Response::SmfRegList(Box::new(vec![body])));
}

#[test]
fn a_missing_document_is_not_found() {
    let nothing = StoreResponse::Done { created_or_found: false };
    let delete = DeleteSmfRegistration { ue_id: supi(), pdu_session_id: 5 };
    assert_eq!(ask(delete, nothing).problem().status, 404);
    assert_eq!(
        ask(QuerySmfRegList { ue_id: supi() }, StoreResponse::Documents(vec![])).problem().status,
        404
    );
    let query = QueryAmfContextThreeGpp { ue_id: supi() };
    assert_eq!(ask(query, StoreResponse::Document(None)).problem().status, 404);
    let body = vec![PatchItem::add("/purgeFlag", true)];
    let modify = ModifyAmfContextThreeGpp { ue_id: supi(), body };
    assert_eq!(ask(modify, StoreResponse::Document(None)).problem().status, 404);
}

#[test]
fn the_result_of_an_authentication_is_stored() {
    let at = DateTime::from_unix_ms(0);
    let body = AuthEvent::new(instance(3), true, at, AuthType::FiveGAka, "5G:mnc070.mcc999.3gppnetwork.org");
    let (resource, _) = put(CreateAuthenticationStatus { ue_id: supi(), body });
    assert_eq!(resource, "authentication-data/authentication-status");
}

#[test]
fn a_database_failure_is_a_system_failure_and_ends_the_request() {
    let mut bench = bench();
    let asked = bench.request(QueryAuthSubsData { ue_id: supi() });
    let seen = bench.stored(asked.store().0, Err(StoreError("the disk is full".into())));
    assert_eq!(seen.cause(), Some(&Cause::SystemFailure));
    assert!(bench.nf.pending.is_empty());
}
