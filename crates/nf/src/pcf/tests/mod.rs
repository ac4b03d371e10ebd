//! Policy associations of both kinds, from creation to deletion.

mod rules;

use super::*;
use crate::kit::Tracking;
use crate::testing::{self, Bench, Seen, Stored, ambr, client, root, supi};
use pith_sbi::Operation;
use pith_sbi::common::{PduSessionType, SupportedFeatures};
use pith_sbi::npcf_ampolicycontrol::{
    CreateAmPolicyAssociation, DeleteAmPolicyAssociation, PolicyAssociationUpdateRequest,
    ReadAmPolicyAssociation, UpdateAmPolicyAssociation,
};
use pith_sbi::npcf_smpolicycontrol::{
    CreateSmPolicy, DeleteSmPolicy, GetSmPolicy, SmPolicyDeleteData, SmPolicyUpdateContextData,
    UpdateSmPolicy,
};
use pith_types::{BlockMove, Snssai};

fn bench() -> Bench<Pcf> {
    Bench::new(Pcf::new(&testing::identity(), Rng::from_number(1)))
}

fn ask_access(bench: &mut Bench<Pcf>) -> Seen {
    let notification = Uri::new(&root("amf"), "/namf-callback/v1/am-policy/1");
    let mut body = PolicyAssociationRequest::new(notification, supi(), SupportedFeatures(0));
    body.ue_ambr = Some(ambr(100));
    body.rfsp = Some(7);
    bench.request(CreateAmPolicyAssociation { body })
}

fn ask_session(bench: &mut Bench<Pcf>) -> Seen {
    ask_session_with(bench, |_| {})
}

/// A request with a change.
fn ask_session_with(bench: &mut Bench<Pcf>, change: impl FnOnce(&mut SmPolicyContextData)) -> Seen {
    let notification = Uri::new(&root("smf"), "/nsmf-callback/v1/sm-policy/1");
    let dnn: pith_types::Dnn = "internet".parse().unwrap();
    let slice = Snssai::of_sst(1);
    let mut body = SmPolicyContextData::new(supi(), 5, PduSessionType::Ipv4, dnn, notification, slice);
    body.subs_sess_ambr = Some(ambr(200));
    body.ipv4_address = Some("10.45.0.2".parse().unwrap());
    change(&mut body);
    bench.request(CreateSmPolicy { body })
}

fn policy_data() -> Reply {
    Ok(Response::AmPolicyData(Box::default()))
}

/// The id of an association, after the UDR has answered.
fn created(bench: &mut Bench<Pcf>, asked: &Seen) -> String {
    let seen = bench.reply(asked.call().0, policy_data());
    match seen.answer() {
        Response::PolicyAssociationCreated(created) => created.location.id().to_owned(),
        Response::SmPolicyDecisionCreated(created) => created.location.id().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_access_policy_contains_the_subscribed_values() {
    let mut bench = bench();
    let asked = ask_access(&mut bench);
    assert_eq!(asked.operations(), [Operation::ReadAccessAndMobilityPolicyData]);
    let seen = bench.reply(asked.call().0, policy_data());
    let Response::PolicyAssociationCreated(created) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(
        (created.body.ue_ambr, created.body.rfsp),
        (None, None),
        "the subscription decides, and may change"
    );
    assert_eq!(created.location.root, root("nf"));
}

#[test]
fn a_session_policy_authorises_what_is_subscribed() {
    let mut bench = bench();
    let asked = ask_session(&mut bench);
    assert_eq!(asked.operations(), [Operation::ReadSessionManagementPolicyData]);
    let seen = bench.reply(asked.call().0, policy_data());
    let Response::SmPolicyDecisionCreated(created) = seen.answer() else { panic!("{seen:?}") };
    let rule = created.body.sess_rules.values().flatten().next().unwrap();
    assert_eq!(rule.auth_sess_ambr, Some(ambr(200)));
}

#[test]
fn an_access_policy_is_read_updated_and_deleted_once() {
    let mut bench = bench();
    let asked = ask_access(&mut bench);
    let id = created(&mut bench, &asked);
    let seen = bench.request(ReadAmPolicyAssociation { pol_asso_id: id.clone() });
    let Response::PolicyAssociation(association) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(association.request.as_ref().unwrap().supi, supi());
    let body = PolicyAssociationUpdateRequest::default();
    let seen = bench.request(UpdateAmPolicyAssociation { pol_asso_id: id.clone(), body });
    let Response::PolicyUpdate(update) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(update.resource_uri.id(), id);
    let delete = DeleteAmPolicyAssociation { pol_asso_id: id };
    assert_eq!(bench.request(delete.clone()).answer(), &Response::NoContent);
    assert_eq!(bench.nf.associations(), 0);
    assert_eq!(bench.request(delete).cause(), Some(&Cause::PolicyAssociationNotFound));
}

#[test]
fn a_session_policy_is_read_updated_and_deleted_once() {
    let mut bench = bench();
    let asked = ask_session(&mut bench);
    let id = created(&mut bench, &asked);
    let seen = bench.request(GetSmPolicy { sm_policy_id: id.clone() });
    let Response::SmPolicyControl(control) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(control.context.pdu_session_id, 5);
    let body = SmPolicyUpdateContextData::default();
    let seen = bench.request(UpdateSmPolicy { sm_policy_id: id.clone(), body });
    assert!(matches!(seen.answer(), Response::SmPolicyDecision(_)));
    let delete = DeleteSmPolicy { sm_policy_id: id, body: SmPolicyDeleteData::default() };
    assert_eq!(bench.request(delete.clone()).answer(), &Response::NoContent);
    assert_eq!(bench.nf.associations(), 0);
    assert_eq!(bench.request(delete).cause(), Some(&Cause::PolicyAssociationNotFound));
}

/// An AMF or SMF that was killed before it got or stored the answer creates the association again.
#[test]
fn an_association_replaces_the_former_one_of_its_purpose() {
    for ask in [ask_access, ask_session] {
        let mut bench = bench();
        let asked = ask(&mut bench);
        let former = created(&mut bench, &asked);
        let asked = ask(&mut bench);
        let latest = created(&mut bench, &asked);
        assert_ne!(former, latest);
        assert_eq!(bench.nf.associations(), 1);
        let asked = [ask(&mut bench), ask(&mut bench)];
        assert_eq!(bench.nf.associations(), 2, "both are being created");
        let refused = bench.reply(asked[0].call().0, policy_data());
        assert_eq!(refused.problem().status, 409);
        created(&mut bench, &asked[1]);
        assert_eq!(bench.nf.associations(), 1);
    }
}

/// A request of another process reaches the shard that has the subscriber's block. The association passes with that block, so that a later one
/// replaces it there.
#[test]
fn an_association_of_another_process_passes_with_the_block_of_its_subscriber() {
    let block = block_of_subscriber(&supi()).unwrap();
    let identities = [0, 1].map(|shard| testing::identity_of_shard(shard, 2));
    let from = usize::from(identities[0].owners.owner(block) != identities[0].owner);
    let (from, to) = (&identities[from], &identities[1 - from]);
    let owners = Arc::new(from.owners.moved(BlockMove { block, to: to.owner, version: 2 }).unwrap());
    for ask in [ask_access, ask_session] {
        let [mut former, mut next] =
            [from, to].map(|identity| Bench::new(Pcf::new(identity, Rng::from_number(1))));
        (former.caller, next.caller) = (client(1), client(1));
        let asked = ask(&mut former);
        created(&mut former, &asked);
        let mut out = Outbox::new(Level::Debug);
        let part = former.nf.pass_block(former.now, block, &mut out);
        former.nf.change_owners(&owners);
        next.nf.change_owners(&owners);
        next.nf.take_block(next.now, block, part, &mut out);
        assert_eq!((former.nf.associations(), next.nf.associations()), (0, 1));
        // The answer was lost, and the other process creates it again.
        let asked = ask(&mut next);
        created(&mut next, &asked);
        assert_eq!(next.nf.associations(), 1, "it replaces the former one");
    }
}

#[test]
fn associations_of_other_purposes_stay() {
    let mut bench = bench();
    for ask in [ask_access, ask_session] {
        let asked = ask(&mut bench);
        created(&mut bench, &asked);
    }
    for (process, expected) in [(1, 3), (2, 4), (1, 4)] {
        let notification = Uri::new(&root("amf"), "/namf-callback/v1/am-policy/1");
        let body = PolicyAssociationRequest::new(notification, supi(), SupportedFeatures(0));
        bench.caller = client(process);
        let asked = bench.request(CreateAmPolicyAssociation { body });
        created(&mut bench, &asked);
        assert_eq!(bench.nf.associations(), expected, "process {process}");
    }
}

#[test]
fn an_am_association_is_not_found_as_an_sm_association() {
    let mut bench = bench();
    let asked = ask_access(&mut bench);
    let id = created(&mut bench, &asked);
    let seen = bench.request(GetSmPolicy { sm_policy_id: id });
    assert_eq!(seen.cause(), Some(&Cause::PolicyAssociationNotFound));
}

#[test]
fn an_unknown_user_gets_no_association() {
    for ask in [ask_access, ask_session] {
        let mut bench = bench();
        let asked = ask(&mut bench);
        let seen = bench.reply(asked.call().0, Err(Problem::user_not_found().into()));
        assert_eq!(seen.cause(), Some(&Cause::UserUnknown));
        assert_eq!(bench.nf.associations(), 0);
    }
}

#[test]
fn a_user_without_policy_data_gets_what_is_subscribed() {
    let mut bench = bench();
    let asked = ask_session(&mut bench);
    let seen = bench.reply(asked.call().0, Err(Problem::data_not_found().into()));
    assert!(matches!(seen.answer(), Response::SmPolicyDecisionCreated(_)));
}

#[test]
fn a_duplicate_reply_is_answered_once() {
    let mut bench = bench();
    let asked = ask_access(&mut bench);
    created(&mut bench, &asked);
    assert!(bench.reply(asked.call().0, policy_data()).is_empty());
}

#[test]
fn an_association_is_used_by_the_nf_that_made_it_only() {
    let mut bench = bench();
    bench.caller = client(1);
    let asked = ask_session(&mut bench);
    let id = created(&mut bench, &asked);
    let delete = DeleteSmPolicy { sm_policy_id: id.clone(), body: SmPolicyDeleteData::default() };
    bench.caller = client(2);
    assert_eq!(bench.request(GetSmPolicy { sm_policy_id: id }).problem().status, 403);
    assert_eq!(bench.request(delete.clone()).problem().status, 403);
    assert_eq!(bench.nf.associations(), 1);
    bench.caller = client(1);
    assert_eq!(bench.request(delete).answer(), &Response::NoContent);
}

/// TS 23.502 4.16.2.2: an AMF that got the UE's context goes on with the association; the former AMF has none any longer.
#[test]
fn an_am_association_follows_the_ue_to_another_amf() {
    let mut bench = bench();
    bench.nf.track_contexts(Tracking::default());
    bench.caller = client(1);
    let asked = ask_access(&mut bench);
    let id = created(&mut bench, &asked);
    // The new AMF has an association from before.
    bench.caller = client(2);
    let asked = ask_access(&mut bench);
    created(&mut bench, &asked);
    assert_eq!(bench.nf.associations(), 2);
    let other_guami =
        pith_types::Guami { plmn_id: "999/70".parse().unwrap(), amf_id: "030080".parse().unwrap() };
    let update = |uri: bool, guami: bool| {
        let mut body = PolicyAssociationUpdateRequest::default();
        body.notification_uri = uri.then(|| Uri::new(&root("amf2"), "/namf-callback/v1/am-policy/7"));
        body.guami = guami.then_some(other_guami);
        UpdateAmPolicyAssociation { pol_asso_id: id.clone(), body }
    };
    for (uri, guami) in [(false, false), (true, false), (false, true)] {
        assert_eq!(bench.request(update(uri, guami)).problem().status, 403, "{uri} {guami}");
    }
    let seen = bench.request(update(true, true));
    let Response::PolicyUpdate(policy) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(policy.resource_uri.id(), id);
    assert_eq!(bench.nf.associations(), 1, "it replaces the other one of the new AMF");
    let seen = bench.request(ReadAmPolicyAssociation { pol_asso_id: id.clone() });
    let Response::PolicyAssociation(association) = seen.answer() else { panic!("{seen:?}") };
    let request = association.request.as_ref().unwrap();
    assert_eq!(request.notification_uri.root, root("amf2"));
    assert_eq!((request.guami, request.rfsp), (Some(other_guami), Some(7)));

    // After a restart it is the new AMF's, too.
    let mut stored = Stored::default();
    stored.store(&mut bench.nf, StoreScope::Changed);
    let mut pcf = Pcf::new(&testing::identity(), Rng::from_number(2));
    pcf.track_contexts(Tracking::default());
    stored.restore(bench.now, &mut pcf, false);
    let mut next = Bench::new(pcf);
    for bench in [&mut bench, &mut next] {
        let delete = DeleteAmPolicyAssociation { pol_asso_id: id.clone() };
        bench.caller = client(1);
        assert_eq!(bench.request(delete.clone()).problem().status, 403);
        bench.caller = client(2);
        assert_eq!(bench.request(delete).answer(), &Response::NoContent);
        assert_eq!(bench.nf.associations(), 0);
    }
}

#[test]
fn an_amf_of_the_pcfs_process_becomes_the_owner() {
    let mut bench = bench();
    bench.caller = client(1);
    let asked = ask_access(&mut bench);
    let pol_asso_id = created(&mut bench, &asked);
    bench.caller = Caller::Shard { shard: 1, nf: Nf::Amf, tag: Tag::new(1, 1) };
    let mut body = PolicyAssociationUpdateRequest::default();
    body.notification_uri = Some(Uri::new(&root("amf2"), "/namf-callback/v1/am-policy/7"));
    body.guami =
        Some(pith_types::Guami { plmn_id: "999/70".parse().unwrap(), amf_id: "030080".parse().unwrap() });
    bench.request(UpdateAmPolicyAssociation { pol_asso_id: pol_asso_id.clone(), body });
    bench.caller = client(1);
    let seen = bench.request(DeleteAmPolicyAssociation { pol_asso_id });
    assert_eq!(seen.problem().status, 403);
}

#[test]
fn the_id_of_an_association_cannot_be_guessed() {
    let mut bench = bench();
    let asked = ask_session(&mut bench);
    let id = created(&mut bench, &asked);
    for guess in ["0", "1", "0.0", &format!("1{id}"), &id[..id.len() - 1]] {
        let seen = bench.request(GetSmPolicy { sm_policy_id: guess.into() });
        assert_eq!(seen.cause(), Some(&Cause::PolicyAssociationNotFound), "{guess}");
    }
}

const GOLDEN: &[(&str, &str)] = &[
    ("pcf-access-1", include_str!("../../../tests/golden/pcf-access-1.hex")),
    ("pcf-session-1", include_str!("../../../tests/golden/pcf-session-1.hex")),
    ("pcf-access-2", include_str!("../../../tests/golden/pcf-access-2.hex")),
    ("pcf-session-2", include_str!("../../../tests/golden/pcf-session-2.hex")),
    ("pcf-rules-1", include_str!("../../../tests/golden/pcf-rules-1.hex")),
];

/// The document of the association that was asked for.
fn document(ask: fn(&mut Bench<Pcf>) -> Seen) -> Vec<u8> {
    let mut bench = bench();
    let asked = ask(&mut bench);
    created(&mut bench, &asked);
    bench.nf.documents()[0].octets().to_vec()
}

#[test]
fn shared_documents_have_room_for_each_section() {
    crate::testing::check_sections(crate::pcf::document::SECTIONS);
}

#[test]
fn documents_of_earlier_versions_are_read_and_damaged_ones_refused() {
    let written = [
        ("pcf-access", document(ask_access)),
        ("pcf-session", document(ask_session)),
        ("pcf-rules", rules::document()),
    ];
    crate::testing::check_documents(GOLDEN, &written, Pcf::repack);
}

#[test]
fn both_associations_of_a_ue_take_less_than_a_kilobyte() {
    let octets = document(ask_access).len() + document(ask_session).len();
    println!("PCF, both associations: {octets} octets");
    assert!(octets < 1024, "{octets} octets");
}

#[test]
fn an_association_of_a_former_process_has_its_reference_and_no_other_gets_its_id() {
    let mut bench = bench();
    bench.nf.track_contexts(Tracking::default());
    let asked = ask_access(&mut bench);
    let reference = created(&mut bench, &asked);
    let mut stored = Stored::default();
    stored.store(&mut bench.nf, StoreScope::Changed);
    let id = *stored.documents.keys().next().unwrap();

    // With the same random numbers as its predecessor.
    let mut next = self::bench();
    next.nf.track_contexts(Tracking::default());
    stored.restore(next.now, &mut next.nf, false);
    let document = &stored.documents[&id];
    assert_eq!(next.nf.restore_context(next.now, id, document, false), Err(UnpackError::IdInUse(id)));
    let asked = ask_session(&mut next);
    assert_ne!(created(&mut next, &asked), reference);
    let seen = next.request(DeleteAmPolicyAssociation { pol_asso_id: reference });
    assert_eq!(seen.answer(), &Response::NoContent);
    stored.store(&mut next.nf, StoreScope::Required);
    assert!(!stored.documents.contains_key(&id), "its end deletes its document");

    let mut other = Pcf::new(&testing::identity_of_shard(1, 2), Rng::from_number(1));
    let of_first = ContextId { block: testing::block(0), ..id };
    let refused = other.restore_context(next.now, of_first, &[], false);
    assert_eq!(refused, Err(UnpackError::OtherOwner(of_first.block)));
    assert_eq!(other.associations(), 0);
}

#[test]
fn an_association_of_a_former_process_is_replaced_as_any_other() {
    let mut bench = bench();
    bench.nf.track_contexts(Tracking::default());
    let asked = ask_access(&mut bench);
    created(&mut bench, &asked);
    let mut stored = Stored::default();
    stored.store(&mut bench.nf, StoreScope::Changed);
    let former = *stored.documents.keys().next().unwrap();

    let mut next = self::bench();
    next.nf.track_contexts(Tracking::default());
    stored.restore(next.now, &mut next.nf, false);
    let asked = ask_access(&mut next);
    created(&mut next, &asked);
    assert_eq!(next.nf.associations(), 1);
    stored.store(&mut next.nf, StoreScope::Changed);
    assert_eq!(stored.documents.len(), 1);
    assert!(!stored.documents.contains_key(&former));
}
