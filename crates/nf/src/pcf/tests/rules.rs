//! PCC rules of operators and applications: what the SMF is notified of, and what becomes of rules that it does not enforce.

use super::*;
use crate::kit::{Level, PolicyRule};
use pith_sbi::ProblemMore;
use pith_sbi::npcf_policyauthorization::{
    AfEvent, AfEventSubscription, AfNotifMethod, AppSessionContext, AppSessionContextReqData,
    AppSessionContextUpdateDataPatch, DeleteAppSession, DeleteEventsSubsc, EventsSubscReqData, GetAppSession,
    MediaComponent, MediaSubComponent, MediaType, ModAppSession, PostAppSession, UpdateEventsSubsc,
};
use pith_sbi::npcf_smpolicycontrol::{
    ErrorReport, FailureCause, FlowStatus, PartialSuccessReport, PolicyControlRequestTrigger, QosData,
    RuleReport, RuleStatus, SmPolicyDecision, SmPolicyUpdateNotifyResult,
};
use pith_types::BitRate;

fn with_session() -> (Bench<Pcf>, String) {
    let mut bench = bench();
    let asked = ask_session(&mut bench);
    let id = created(&mut bench, &asked);
    (bench, id)
}

fn voice() -> PolicyRule {
    PolicyRule {
        name: "voice".into(),
        five_qi: 1,
        priority_level: 2,
        precedence: 10,
        guaranteed: Some(ambr(1)),
        maximum: None,
        flows: vec!["permit out 17 from 192.0.2.9 5004 to assigned".into()],
        reflective: false,
    }
}

/// A rule whose QoS rule the UE derives.
fn game() -> PolicyRule {
    PolicyRule { name: "game".into(), five_qi: 7, guaranteed: None, reflective: true, ..voice() }
}

/// With a session whose UE supports reflective QoS.
fn with_reflective_session() -> (Bench<Pcf>, String) {
    let mut bench = bench();
    let asked = ask_session_with(&mut bench, |body| body.ref_qos_indication = Some(true));
    let id = created(&mut bench, &asked);
    (bench, id)
}

fn order(bench: &mut Bench<Pcf>, order: &Order) -> (Vec<Value>, Seen) {
    let (mut out, mut list) = (Outbox::new(Level::Info), Vec::new());
    bench.nf.operate(bench.now, order, &mut out, &mut list);
    (list, bench.take(out))
}

fn add(rule: PolicyRule) -> Order {
    Order::AddRule { supi: supi(), pdu_session_id: 5, rule }
}

fn remove(name: &str) -> Order {
    Order::RemoveRule { supi: supi(), pdu_session_id: 5, name: name.into() }
}

/// The decision in the notification for the SMF.
fn notified(seen: &Seen) -> (Tag, &SmPolicyDecision) {
    match seen.call() {
        (tag, Request::SmPolicyUpdateNotify(request)) => {
            (tag, request.body.sm_policy_decision.as_ref().unwrap())
        }
        other => panic!("{other:?}"),
    }
}

fn failure(ids: &[&str]) -> Reply {
    let ids: Vec<Arc<str>> = ids.iter().map(|id| Arc::from(*id)).collect();
    let mut report = PartialSuccessReport::new(FailureCause::PccRuleEvent);
    report.rule_reports = vec![RuleReport::new(ids, RuleStatus::Inactive)];
    let result = SmPolicyUpdateNotifyResult::PartialSuccess(vec![report]);
    Ok(Response::SmPolicyUpdateNotifyResult(Box::new(result)))
}

fn decision(bench: &mut Bench<Pcf>, id: &str) -> SmPolicyDecision {
    let seen = bench.request(GetSmPolicy { sm_policy_id: id.into() });
    let Response::SmPolicyControl(control) = seen.answer() else { panic!("{seen:?}") };
    control.policy.clone()
}

/// An association with a rule of an operator and an application session.
pub(super) fn document() -> Vec<u8> {
    let (mut bench, _) = with_session();
    order(&mut bench, &add(voice()));
    bench.request(PostAppSession { body: call(Some(MediaType::Video)) });
    bench.nf.documents()[0].octets().to_vec()
}

#[test]
fn an_operators_rule_reaches_the_smf_and_is_removed_again() {
    let (mut bench, id) = with_session();
    let (list, seen) = order(&mut bench, &add(voice()));
    assert_eq!(list, [json!({ "refusal": null })]);
    let (tag, sent) = notified(&seen);
    let qos = sent.qos_decs["operator-voice"].as_ref().unwrap();
    assert_eq!(
        (qos.five_qi, qos.gbr_dl, qos.maxbr_dl),
        (Some(1), Some(BitRate::mbps(1)), Some(BitRate::mbps(1)))
    );
    let rule = sent.pcc_rules["operator-voice"].as_ref().unwrap();
    assert_eq!((rule.precedence, rule.flow_infos[0].packet_filter_usage), (Some(10), Some(true)));
    assert!(bench.reply(tag, Ok(Response::NoContent)).is_empty());
    assert_eq!(decision(&mut bench, &id).pcc_rules.len(), 1);
    let (_, seen) = order(&mut bench, &add(voice()));
    assert!(seen.is_empty(), "nothing is new");
    let (_, seen) = order(&mut bench, &remove("voice"));
    let (tag, sent) = notified(&seen);
    assert_eq!((sent.pcc_rules["operator-voice"].is_none(), sent.qos_decs.len()), (true, 1));
    bench.reply(tag, Ok(Response::NoContent));
    assert!(decision(&mut bench, &id).pcc_rules.is_empty());
    let (list, _) = order(&mut bench, &remove("voice"));
    assert!(list[0]["refusal"].is_string());
}

/// The UE does not get the flows of a reflective rule.
#[test]
fn a_reflective_rule_reaches_the_smf_without_filters_for_the_ue() {
    let (mut bench, id) = with_reflective_session();
    let (list, seen) = order(&mut bench, &add(game()));
    assert_eq!(list, [json!({ "refusal": null })]);
    let (tag, sent) = notified(&seen);
    assert_eq!(sent.qos_decs["operator-game"].as_ref().unwrap().reflective_qos, Some(true));
    let rule = sent.pcc_rules["operator-game"].as_ref().unwrap();
    assert_eq!(rule.flow_infos[0].packet_filter_usage, None);
    bench.reply(tag, Ok(Response::NoContent));
    // The same rule, and the UE gets the flow.
    let (_, seen) = order(&mut bench, &add(PolicyRule { reflective: false, ..game() }));
    let (_, sent) = notified(&seen);
    assert_eq!(sent.qos_decs["operator-game"].as_ref().unwrap().reflective_qos, None);
    assert_eq!(decision(&mut bench, &id).pcc_rules.len(), 1);
}

#[test]
fn reflective_rules_need_a_ue_that_supports_them_a_protocol_and_no_guaranteed_rate() {
    let (mut bench, _) = with_session();
    let (list, seen) = order(&mut bench, &add(game()));
    assert!(list[0]["refusal"].as_str().unwrap().contains("does not support") && seen.is_empty());
    let (mut bench, _) = with_reflective_session();
    for rule in [
        PolicyRule { five_qi: 1, guaranteed: Some(ambr(1)), ..game() },
        PolicyRule { flows: vec!["permit out 1 from any to assigned".into()], ..game() },
    ] {
        let (list, seen) = order(&mut bench, &add(rule));
        assert!(list[0]["refusal"].is_string() && seen.is_empty());
    }
    for flow in ["permit out ip from any to assigned", "permit out 50 from any to assigned"] {
        let (list, _) = order(&mut bench, &add(PolicyRule { flows: vec![flow.into()], ..game() }));
        assert_eq!(list, [json!({ "refusal": null })], "{flow}");
    }
}

/// REF_QOS_IND_CH: the UE revokes its support (TS 29.512 table 5.6.3.6-1).
#[test]
fn the_ue_gets_the_flows_of_reflective_rules_when_it_no_longer_supports_them() {
    let (mut bench, id) = with_reflective_session();
    for rule in [game(), voice()] {
        let (_, seen) = order(&mut bench, &add(rule));
        bench.reply(notified(&seen).0, Ok(Response::NoContent));
    }
    let mut body = SmPolicyUpdateContextData::default();
    body.rep_policy_ctrl_req_triggers = vec![PolicyControlRequestTrigger::RefQosIndCh];
    body.ref_qos_indication = Some(false);
    let seen = bench.request(UpdateSmPolicy { sm_policy_id: id.clone(), body });
    let (_, sent) = notified(&seen);
    assert_eq!(sent.qos_decs["operator-game"].as_ref().unwrap().reflective_qos, None);
    let rule = sent.pcc_rules["operator-game"].as_ref().unwrap();
    assert_eq!(rule.flow_infos[0].packet_filter_usage, Some(true));
    assert_eq!(decision(&mut bench, &id).pcc_rules.len(), 2);
    let (list, _) = order(&mut bench, &add(game()));
    assert!(list[0]["refusal"].is_string());
}

#[test]
fn wrong_rules_and_unknown_sessions_are_refused() {
    let (mut bench, _) = with_session();
    for rule in [
        PolicyRule { name: "a b".into(), ..voice() },
        PolicyRule { name: "x".repeat(65), ..voice() },
        PolicyRule { flows: vec![], ..voice() },
        PolicyRule { flows: vec!["x".repeat(513)], ..voice() },
        PolicyRule { priority_level: 16, ..voice() },
        PolicyRule { flows: vec!["permit out udp from any to assigned".into()], ..voice() },
        PolicyRule { guaranteed: Some(ambr(4_000_001)), ..voice() },
        PolicyRule { guaranteed: Some(ambr(0)), ..voice() },
    ] {
        let (list, seen) = order(&mut bench, &add(rule));
        assert!(list[0]["refusal"].is_string() && seen.is_empty());
    }
    for number in 0..40 {
        order(&mut bench, &add(PolicyRule { name: format!("rule-{number}"), ..voice() }));
    }
    assert!(order(&mut bench, &add(voice())).0[0]["refusal"].is_string(), "too many");
    let other = Order::AddRule { supi: supi(), pdu_session_id: 6, rule: voice() };
    assert!(order(&mut bench, &other).0.is_empty(), "another shard may have it");
}

#[test]
fn rules_that_the_smf_does_not_enforce_end() {
    let (mut bench, id) = with_session();
    let (_, seen) = order(&mut bench, &add(voice()));
    let (tag, _) = notified(&seen);
    bench.reply(tag, failure(&["operator-voice"]));
    assert!(decision(&mut bench, &id).pcc_rules.is_empty());

    let (_, seen) = order(&mut bench, &add(voice()));
    let (tag, _) = notified(&seen);
    bench.reply(tag, Err(Problem::new(Cause::UnprocessableRequest).into()));
    assert!(decision(&mut bench, &id).pcc_rules.is_empty());

    for (reported, stays) in
        [(vec![], false), (vec![RuleStatus::Inactive], false), (vec![RuleStatus::Active], true)]
    {
        let (_, seen) = order(&mut bench, &add(voice()));
        let (tag, _) = notified(&seen);
        let mut errors = ErrorReport::default();
        let of_status = |status: RuleStatus| RuleReport::new(vec!["operator-voice".into()], status);
        errors.rule_reports = reported.into_iter().map(of_status).collect();
        let more = ProblemMore::SmPolicyUpdateNotifyError(Box::new(errors));
        bench.reply(tag, Err(Problem::new(Cause::PccRuleEvent).with(more).into()));
        assert_eq!(
            decision(&mut bench, &id).pcc_rules.len(),
            usize::from(stays),
            "the SMF keeps the former one"
        );
    }

    let (_, seen) = order(&mut bench, &remove("voice"));
    bench.reply(notified(&seen).0, Ok(Response::NoContent));
    let (_, seen) = order(&mut bench, &add(voice()));
    let (tag, _) = notified(&seen);
    bench.reply(tag, Ok(Response::NoContent));
    let mut body = SmPolicyUpdateContextData::default();
    body.rule_reports = vec![RuleReport::new(vec!["operator-voice".into()], RuleStatus::Inactive)];
    bench.request(UpdateSmPolicy { sm_policy_id: id.clone(), body });
    assert!(decision(&mut bench, &id).pcc_rules.is_empty());
}

/// The SMF answers the first of two notifications: it may not have got the second one.
#[test]
fn the_answer_to_an_earlier_notification_does_not_count_for_a_later_one() {
    for is_refused in [false, true] {
        let (mut bench, id) = with_session();
        let (_, seen) = order(&mut bench, &add(voice()));
        let (first, _) = notified(&seen);
        let (_, seen) = order(&mut bench, &add(PolicyRule { name: "more".into(), ..voice() }));
        let (second, _) = notified(&seen);
        let refusal = || Err(Problem::new(Cause::UnprocessableRequest).into());
        bench.reply(first, if is_refused { refusal() } else { Ok(Response::NoContent) });
        assert_eq!(decision(&mut bench, &id).pcc_rules.len(), 2);
        let (_, seen) = order(&mut bench, &remove("more"));
        let (third, _) = notified(&seen);
        bench.reply(second, Ok(Response::NoContent));
        assert!(bench.reply(third, refusal()).is_empty());
        assert!(decision(&mut bench, &id).pcc_rules.is_empty(), "the third one had the first rule, too");
    }
}

/// A lost notification is repeated with the next one, and after a restart.
#[test]
fn a_notification_without_answer_is_sent_again() {
    let (mut bench, _) = with_session();
    bench.nf.track_contexts(Tracking::default());
    let (_, seen) = order(&mut bench, &add(voice()));
    let (tag, _) = notified(&seen);
    assert!(bench.reply(tag, Err(Problem::timed_out().into())).is_empty());
    let (_, seen) = order(&mut bench, &add(PolicyRule { name: "more".into(), ..voice() }));
    assert_eq!(notified(&seen).1.pcc_rules.len(), 2);
    let mut stored = Stored::default();
    stored.store(&mut bench.nf, StoreScope::Changed);
    let mut next = self::bench();
    next.nf.track_contexts(Tracking::default());
    stored.restore(next.now, &mut next.nf, false);
    let mut out = Outbox::new(Level::Info);
    next.nf.resume_contexts(next.now, &mut out);
    let seen = next.take(out);
    let (tag, sent) = notified(&seen);
    assert_eq!(sent.pcc_rules.len(), 2);
    next.reply(tag, Ok(Response::NoContent));
    let mut out = Outbox::new(Level::Info);
    next.nf.resume_contexts(next.now, &mut out);
    assert!(next.take(out).is_empty(), "once");
}

/// A call with one medium.
fn call(kind: Option<MediaType>) -> AppSessionContext {
    let uri = Uri::new(&root("af"), "/calls/1");
    let mut data = AppSessionContextReqData::new(uri, SupportedFeatures(0));
    data.ue_ipv4 = Some("10.45.0.2".parse().unwrap());
    data.dnn = Some("internet".parse().unwrap());
    let mut flows = MediaSubComponent::new(1_u32);
    flows.f_descs = vec![
        "permit out 17 from 192.0.2.9 5004 to 10.45.0.2 4000".into(),
        "permit in 17 from 10.45.0.2 4000 to 192.0.2.9 5004".into(),
    ];
    let mut medium = MediaComponent::new(1_u32);
    medium.med_type = kind;
    medium.mar_bw_dl = Some(BitRate::kbps(100));
    medium.mir_bw_dl = Some(BitRate::kbps(80));
    medium.med_sub_comps.insert("1".into(), flows);
    data.med_components.insert("1".into(), medium);
    let event = AfEventSubscription::new(AfEvent::FailedResourcesAllocation);
    data.ev_subsc = Some(EventsSubscReqData::new(vec![event]));
    let mut context = AppSessionContext::default();
    context.asc_req_data = Some(data);
    context
}

/// The id of an application session, and the effects of its creation.
fn called(bench: &mut Bench<Pcf>, context: AppSessionContext) -> (String, Seen) {
    let seen = bench.request(PostAppSession { body: context });
    match seen.answer() {
        Response::AppSessionCreated(created) => (created.location.id().to_owned(), seen),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_media_of_an_application_become_rules_of_the_session_with_its_address() {
    let (mut bench, _) = with_session();
    bench.caller = client(3);
    let (id, seen) = called(&mut bench, call(Some(MediaType::Audio)));
    let (tag, sent) = notified(&seen);
    let (rule, qos) = (sent.pcc_rules.values().flatten().next(), sent.qos_decs.values().flatten().next());
    let (rule, qos) = (rule.unwrap(), qos.unwrap());
    assert_eq!(
        (qos.five_qi, qos.gbr_dl, qos.maxbr_dl),
        (Some(1), Some(BitRate::kbps(80)), Some(BitRate::kbps(100)))
    );
    assert_eq!(qos.gbr_ul, Some(BitRate::kbps(64)), "the usual rate of audio");
    let uplink = &rule.flow_infos[1];
    assert_eq!(
        uplink.flow_description.as_deref(),
        Some("permit out 17 from 192.0.2.9 5004 to 10.45.0.2 4000"),
        "turned around"
    );
    assert_eq!(uplink.flow_direction.as_ref().unwrap().as_str(), "UPLINK");
    bench.reply(tag, Ok(Response::NoContent));

    let seen = bench.request(GetAppSession { app_session_id: id.clone() });
    assert!(matches!(seen.answer(), Response::AppSessionContext(_)));
    let seen = patch(&mut bench, &id, json!({ "medComponents": { "1": null } }));
    let (tag, sent) = notified(&seen);
    assert!(sent.pcc_rules.values().all(Option::is_none), "its only medium is removed");
    bench.reply(tag, Ok(Response::NoContent));

    bench.caller = client(4);
    assert_eq!(bench.request(DeleteAppSession { app_session_id: id.clone() }).problem().status, 403);
    bench.caller = client(3);
    assert_eq!(bench.request(DeleteAppSession { app_session_id: id.clone() }).answer(), &Response::NoContent);
    let seen = bench.request(DeleteAppSession { app_session_id: id });
    assert_eq!(seen.cause(), Some(&Cause::ApplicationSessionContextNotFound));
}

/// An AF that has no answer to its deletion repeats it.
#[test]
fn no_application_session_gets_the_id_of_a_deleted_one() {
    let (mut bench, _) = with_session();
    bench.nf.track_contexts(Tracking::default());
    let (first, seen) = called(&mut bench, call(None));
    bench.reply(notified(&seen).0, Ok(Response::NoContent));
    let delete = DeleteAppSession { app_session_id: first.clone() };
    let seen = bench.request(delete.clone());
    assert_eq!(seen.answer(), &Response::NoContent);
    bench.reply(notified(&seen).0, Ok(Response::NoContent));
    // An operator's rule comes and goes, too.
    for order in [add(voice()), remove("voice")] {
        let (_, seen) = self::order(&mut bench, &order);
        bench.reply(notified(&seen).0, Ok(Response::NoContent));
    }
    let mut stored = Stored::default();
    stored.store(&mut bench.nf, StoreScope::Changed);
    let mut next = self::bench();
    next.nf.track_contexts(Tracking::default());
    stored.restore(next.now, &mut next.nf, false);
    for mut bench in [bench, next] {
        let (second, seen) = called(&mut bench, call(None));
        assert_ne!(second, first);
        bench.reply(notified(&seen).0, Ok(Response::NoContent));
        let seen = bench.request(delete.clone());
        assert_eq!(seen.cause(), Some(&Cause::ApplicationSessionContextNotFound));
        let seen = bench.request(GetAppSession { app_session_id: second });
        assert!(matches!(seen.answer(), Response::AppSessionContext(_)));
    }
}

/// Changes an application session.
fn patch(bench: &mut Bench<Pcf>, id: &str, update: Value) -> Seen {
    let body: AppSessionContextUpdateDataPatch =
        serde_json::from_value(json!({ "ascReqData": update })).unwrap();
    bench.request(ModAppSession { app_session_id: id.into(), body })
}

/// The one rule that a notification has, with its QoS and gates.
fn rule_in(seen: &Seen) -> (usize, QosData, Option<FlowStatus>) {
    let (_, sent) = notified(seen);
    let rule = sent.pcc_rules.values().flatten().next().unwrap();
    let tc = sent.traff_cont_decs[&rule.ref_tc_data[0]].clone().unwrap();
    (rule.flow_infos.len(), sent.qos_decs[&rule.ref_qos_data[0]].clone().unwrap(), tc.flow_status)
}

#[test]
fn a_change_of_an_application_session_is_a_merge_patch() {
    let (mut bench, _) = with_session();
    let (id, seen) = called(&mut bench, call(Some(MediaType::Audio)));
    assert_eq!(rule_in(&seen).2, Some(FlowStatus::Enabled));
    let seen =
        patch(&mut bench, &id, json!({"medComponents": {"1": {"medCompN": 1, "fStatus": "DISABLED"}}}));
    let (flows, qos, status) = rule_in(&seen);
    assert_eq!((flows, qos.maxbr_dl, status), (2, Some(BitRate::kbps(100)), Some(FlowStatus::Disabled)));
    // On hold: no rate (RFC 3264 8.4).
    let silent = json!({"marBwUl": "0 bps", "marBwDl": "0 bps", "mirBwDl": "0 bps"});
    let seen = patch(&mut bench, &id, json!({"medComponents": {"1": silent}}));
    let (_, qos, status) = rule_in(&seen);
    let usual = Some(BitRate::kbps(64));
    assert_eq!((qos.gbr_ul, qos.gbr_dl, status), (usual, usual, Some(FlowStatus::Disabled)));
    // The status of the IP flows counts more than that of the component.
    let flow = json!({"fNum": 1, "fStatus": "ENABLED-UPLINK"});
    let seen = patch(
        &mut bench,
        &id,
        json!({"medComponents": {"1": {"marBwDl": "200 Kbps", "medSubComps": {"1": flow}}}}),
    );
    let (flows, qos, status) = rule_in(&seen);
    assert_eq!((flows, qos.maxbr_dl, status), (2, Some(BitRate::kbps(200)), Some(FlowStatus::EnabledUplink)));
    let seen = patch(
        &mut bench,
        &id,
        json!({"medComponents": {"1": {"mirBwDl": null, "fStatus": null,
        "medSubComps": {"1": {"fStatus": null}}}}}),
    );
    let (_, qos, status) = rule_in(&seen);
    assert_eq!((qos.gbr_dl, status), (Some(BitRate::kbps(200)), Some(FlowStatus::Enabled)));
    // What an application may not change stays.
    let once = json!([{"event": "FAILED_RESOURCES_ALLOCATION", "notifMethod": "ONE_TIME"}]);
    let seen = patch(&mut bench, &id, json!({"ueIpv4": "10.45.0.9", "evSubsc": {"events": once}}));
    let Response::AppSessionContext(context) = seen.answer() else { panic!("{seen:?}") };
    let request = context.asc_req_data.as_ref().unwrap();
    assert_eq!(request.ue_ipv4, Some("10.45.0.2".parse().unwrap()));
    assert_eq!(request.ev_subsc.as_ref().unwrap().events[0].notif_method, Some(AfNotifMethod::OneTime));
    let seen = patch(&mut bench, &id, json!({"medComponents": {"1": {"medCompN": "x"}}}));
    assert_eq!(seen.problem().status, 400);
    let seen = patch(&mut bench, &id, json!({"medComponents": {"1": {"fStatus": "REMOVED"}}}));
    let (_, sent) = notified(&seen);
    assert!(
        sent.pcc_rules.values().all(Option::is_none) && sent.traff_cont_decs.values().all(Option::is_none)
    );
}

#[test]
fn an_application_subscribes_to_events_and_unsubscribes() {
    let (mut bench, _) = with_session();
    let mut silent = call(Some(MediaType::Video));
    silent.asc_req_data.as_mut().unwrap().ev_subsc = None;
    let (id, seen) = called(&mut bench, silent);
    let (tag, _) = notified(&seen);
    let event = AfEventSubscription::new(AfEvent::FailedResourcesAllocation);
    let body = EventsSubscReqData::new(vec![event]);
    let put = UpdateEventsSubsc { app_session_id: id.clone(), body };
    let seen = bench.request(put.clone());
    let Response::EventsSubscCreated(created) = seen.answer() else { panic!("{seen:?}") };
    assert!(created.location.path.ends_with(&format!("{id}/events-subscription")));
    assert_eq!(bench.request(put).answer(), &Response::NoContent);
    let delete = DeleteEventsSubsc { app_session_id: id };
    assert_eq!(bench.request(delete.clone()).answer(), &Response::NoContent);
    assert_eq!(bench.request(delete.clone()).problem().status, 404, "it has ended");
    assert!(bench.reply(tag, failure(&["app1-1-1"])).is_empty(), "no event without subscription");
    bench.caller = client(4);
    assert_eq!(bench.request(delete).problem().status, 403);
}

fn events(events: &[AfEvent]) -> EventsSubscReqData {
    EventsSubscReqData::new(events.iter().cloned().map(AfEventSubscription::new).collect::<Vec<_>>())
}

/// An application that gets no notification of success would wait for it (TS 29.514 4.2.2.2, 4.2.3.2).
#[test]
fn an_answer_to_an_application_has_the_events_that_are_reported() {
    let (mut bench, _) = with_session();
    let failed = events(&[AfEvent::FailedResourcesAllocation]);
    let all = [AfEvent::SuccessfulResourcesAllocation, AfEvent::FailedResourcesAllocation, AfEvent::QosNotif];
    let granted = |requested: EventsSubscReqData, bench: &mut Bench<Pcf>| {
        let mut context = call(None);
        context.asc_req_data.as_mut().unwrap().ev_subsc = Some(requested);
        let (id, seen) = called(bench, context);
        let Response::AppSessionCreated(created) = seen.answer() else { panic!("{seen:?}") };
        (id, created.body.asc_req_data.as_ref().unwrap().ev_subsc.clone())
    };
    assert_eq!(granted(events(&all), &mut bench).1, Some(failed.clone()));
    let (id, none) = granted(events(&[AfEvent::QosNotif, AfEvent::UsageReport]), &mut bench);
    assert_eq!(none, None);
    let more =
        json!({"evSubsc": {"events": [{"event": "QOS_NOTIF"}, {"event": "FAILED_RESOURCES_ALLOCATION"}]}});
    let seen = patch(&mut bench, &id, more);
    let Response::AppSessionContext(context) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(context.asc_req_data.as_ref().unwrap().ev_subsc, Some(failed));
}

/// TS 29.514 5.6.2.6: one event at least.
#[test]
fn a_subscription_without_events_is_refused() {
    let (mut bench, _) = with_session();
    let mut context = call(None);
    context.asc_req_data.as_mut().unwrap().ev_subsc = Some(events(&[]));
    assert_eq!(bench.request(PostAppSession { body: context }).problem().status, 400);
    let (id, _) = called(&mut bench, call(None));
    let seen = patch(&mut bench, &id, json!({"evSubsc": {"events": []}}));
    assert_eq!(seen.cause(), Some(&Cause::MandatoryIeIncorrect));
    let seen = bench.request(UpdateEventsSubsc { app_session_id: id, body: events(&[]) });
    assert_eq!(seen.cause(), Some(&Cause::MandatoryIeIncorrect));
}

/// It has them sent to itself only: the answer says so.
#[test]
fn the_events_of_an_application_go_to_its_own_host() {
    for (host, is_its) in [("af", true), ("elsewhere", false)] {
        let (mut bench, _) = with_session();
        let uri = Uri::new(&root(host), "/events/1");
        let mut context = call(None);
        let request = context.asc_req_data.as_mut().unwrap();
        request.ev_subsc.as_mut().unwrap().notif_uri = Some(uri.clone());
        let (id, seen) = called(&mut bench, context);
        let Response::AppSessionCreated(created) = seen.answer() else { panic!("{seen:?}") };
        let granted = created.body.asc_req_data.as_ref().unwrap().ev_subsc.as_ref().unwrap();
        assert_eq!(granted.notif_uri, is_its.then(|| uri.clone()));
        let mut body = events(&[AfEvent::FailedResourcesAllocation]);
        body.notif_uri = Some(uri.clone());
        let seen = bench.request(UpdateEventsSubsc { app_session_id: id, body });
        assert_eq!(*seen.answer() == Response::NoContent, is_its, "{seen:?}");
    }
}

/// TS 29.514 4.2.6.2.
#[test]
fn a_subscription_to_events_has_those_that_are_reported() {
    let (mut bench, _) = with_session();
    let mut silent = call(None);
    silent.asc_req_data.as_mut().unwrap().ev_subsc = None;
    let (id, _) = called(&mut bench, silent);
    let mut subscribe = |body| bench.request(UpdateEventsSubsc { app_session_id: id.clone(), body });
    let refused = subscribe(events(&[AfEvent::SuccessfulResourcesAllocation]));
    assert_eq!(refused.cause(), Some(&Cause::RequestedServiceNotAuthorized));
    let some = || events(&[AfEvent::PlmnChg, AfEvent::FailedResourcesAllocation]);
    let failed = events(&[AfEvent::FailedResourcesAllocation]);
    let seen = subscribe(some());
    let Response::EventsSubscCreated(created) = seen.answer() else { panic!("{seen:?}") };
    assert_eq!(created.body, failed);
    assert_eq!(subscribe(some()).answer(), &Response::EventsSubsc(Box::new(failed.clone())));
    assert_eq!(subscribe(failed).answer(), &Response::NoContent);
}

/// The SMF enforces the medium as it was before the change (TS 29.514 4.2.5.8).
#[test]
fn an_application_gets_to_know_that_its_change_has_no_resources() {
    let (mut bench, _) = with_session();
    let (id, seen) = called(&mut bench, call(Some(MediaType::Audio)));
    bench.reply(notified(&seen).0, Ok(Response::NoContent));
    let kept = || vec![RuleReport::new(vec!["app1-1-1".into()], RuleStatus::Active)];
    let mut errors = ErrorReport::default();
    errors.rule_reports = kept();
    let refusal = Problem::new(Cause::PccRuleEvent);
    let refusal = refusal.with(ProblemMore::SmPolicyUpdateNotifyError(Box::new(errors)));
    let partial = SmPolicyUpdateNotifyResult::PartialSuccess(vec![PartialSuccessReport {
        rule_reports: kept(),
        ..PartialSuccessReport::new(FailureCause::PccRuleEvent)
    }]);
    let partial = Response::SmPolicyUpdateNotifyResult(Box::new(partial));
    for (kbps, reply) in [(200, Err(refusal.into())), (300, Ok(partial))] {
        let rate = format!("{kbps} Kbps");
        let seen = patch(&mut bench, &id, json!({"medComponents": {"1": {"marBwDl": rate}}}));
        let seen = bench.reply(notified(&seen).0, reply);
        let (_, Request::AppSessionEventNotify(event)) = seen.call() else { panic!("{seen:?}") };
        let report = &event.body.failed_resourc_alloc_reports[0];
        assert_eq!(report.mc_resourc_status.as_deref(), Some("ACTIVE"));
    }
}

#[test]
fn wrong_media_are_refused_with_their_place() {
    let (mut bench, _) = with_session();
    type Change = fn(&mut MediaComponent);
    fn flow(component: &mut MediaComponent) -> &mut MediaSubComponent {
        component.med_sub_comps.get_mut("1").unwrap()
    }
    let cases: [(Change, u16, &str); 10] = [
        (
            |it| flow(it).f_descs[0] = "permit out 17 from 2001:db8::1 to assigned".into(),
            403,
            "FILTER_RESTRICTIONS",
        ),
        (|it| flow(it).f_descs[0] = "permit out udp from any to any".into(), 403, "FILTER_RESTRICTIONS"),
        (
            |it| flow(it).f_descs[1] = "permit in ip from 10.45.0.2 to any frag".into(),
            403,
            "FILTER_RESTRICTIONS",
        ),
        (
            |it| flow(it).f_descs[0] = "permit out 6 from any 1,2,3,4 to any 1,2,3,4".into(),
            403,
            "FILTER_RESTRICTIONS",
        ),
        (|it| flow(it).tos_tr_cl = Some("xyz".into()), 403, "FILTER_RESTRICTIONS"),
        (
            |it| flow(it).f_descs[0] = "permit out 17 from any to 10.45.0.3".into(),
            400,
            "INVALID_SERVICE_INFORMATION",
        ),
        (|it| flow(it).f_descs.clear(), 400, "INVALID_SERVICE_INFORMATION"),
        (
            |it| {
                it.med_type = Some(MediaType::Audio);
                (it.mar_bw_ul, it.mar_bw_dl) = (Some(BitRate(0)), Some(BitRate(0)));
            },
            400,
            "INVALID_SERVICE_INFORMATION",
        ),
        (|it| it.mar_bw_ul = Some(BitRate(4_000_000_000_001)), 400, "INVALID_SERVICE_INFORMATION"),
        (
            |it| {
                let flows = flow(it).clone();
                it.med_sub_comps.insert("2".into(), flows);
            },
            400,
            "INVALID_SERVICE_INFORMATION",
        ),
    ];
    for (change, status, cause) in cases {
        let mut wrong = call(None);
        change(wrong.asc_req_data.as_mut().unwrap().med_components.get_mut("1").unwrap());
        let seen = bench.request(PostAppSession { body: wrong });
        let details = &seen.problem().details;
        assert_eq!((seen.problem().status, seen.cause().unwrap().as_str()), (status, cause));
        assert!(details.invalid_params[0].param.starts_with("/ascReqData/medComponents/1"), "{details:?}");
    }
    let mut twice = call(None);
    let media = &mut twice.asc_req_data.as_mut().unwrap().med_components;
    media.insert("2".into(), media["1"].clone());
    assert_eq!(bench.request(PostAppSession { body: twice }).problem().status, 400);
}

#[test]
fn an_application_is_bound_by_address_and_data_network() {
    let (mut bench, id) = with_session();
    type Change = fn(&mut AppSessionContextReqData);
    let wrong: [Change; 3] = [
        |data| data.ue_ipv4 = Some("10.45.0.3".parse().unwrap()),
        |data| data.dnn = Some("ims".parse().unwrap()),
        |data| data.supi = Some("imsi-999700000000009".parse().unwrap()),
    ];
    for change in wrong {
        let mut context = call(None);
        change(context.asc_req_data.as_mut().unwrap());
        let request = PostAppSession { body: context };
        assert!(!bench.nf.has_context(&request.clone().into()), "the next shard is asked");
        assert_eq!(bench.request(request).cause(), Some(&Cause::PduSessionNotAvailable));
    }
    let mut full = call(None);
    full.asc_req_data.as_mut().unwrap().dnn = Some("internet.mnc070.mcc999.gprs".parse().unwrap());
    called(&mut bench, full);
    let mut none = call(None);
    none.asc_req_data.as_mut().unwrap().ue_ipv4 = None;
    assert_eq!(bench.request(PostAppSession { body: none }).problem().status, 400);
    // The SMF has given the session another address.
    let mut body = SmPolicyUpdateContextData::default();
    (body.rel_ipv4_address, body.ipv4_address) =
        (Some("10.45.0.2".parse().unwrap()), Some("10.45.0.3".parse().unwrap()));
    bench.request(UpdateSmPolicy { sm_policy_id: id, body });
    let mut context = call(None);
    let data = context.asc_req_data.as_mut().unwrap();
    data.ue_ipv4 = Some("10.45.0.3".parse().unwrap());
    let flows = data.med_components.get_mut("1").unwrap().med_sub_comps.get_mut("1").unwrap();
    flows.f_descs = vec!["permit out 17 from 192.0.2.9 to 10.45.0.3".into()];
    called(&mut bench, context);
}

/// TS 29.514 A.2: `oneOf`.
#[test]
fn an_application_names_one_address_of_the_ue() {
    let (mut bench, _) = with_session();
    type Change = fn(&mut AppSessionContextReqData);
    let wrong: [(Change, &str); 3] = [
        (|data| data.ue_ipv6 = Some("2001:db8::1".parse().unwrap()), "/ascReqData/ueIpv6"),
        (|data| data.ue_mac = Some("02-00-00-00-00-01".into()), "/ascReqData/ueMac"),
        (
            |data| {
                (data.ue_ipv4, data.ue_ipv6) = (None, Some("2001:db8::1".parse().unwrap()));
                data.ue_mac = Some("02-00-00-00-00-01".into());
            },
            "/ascReqData/ueMac",
        ),
    ];
    for (change, param) in wrong {
        let mut context = call(None);
        change(context.asc_req_data.as_mut().unwrap());
        let seen = bench.request(PostAppSession { body: context });
        let problem = seen.problem();
        assert_eq!((problem.status, &*problem.details.invalid_params[0].param), (400, param));
    }
    let mut ethernet = call(None);
    let data = ethernet.asc_req_data.as_mut().unwrap();
    (data.ue_ipv4, data.ue_mac) = (None, Some("02-00-00-00-00-01".into()));
    let seen = bench.request(PostAppSession { body: ethernet });
    assert_eq!(seen.cause(), Some(&Cause::PduSessionNotAvailable));
}

#[test]
fn an_application_is_notified_of_media_without_resources_and_of_the_end() {
    let (mut bench, policy) = with_session();
    let (_, seen) = called(&mut bench, call(Some(MediaType::Video)));
    let (tag, _) = notified(&seen);
    let seen = bench.reply(tag, failure(&["app1-1-1"]));
    let (_, Request::AppSessionEventNotify(notification)) = seen.call() else { panic!("{seen:?}") };
    assert_eq!(notification.body.ev_notifs[0].flows[0].med_comp_n, 1);
    assert_eq!(notification.uri, Uri::new(&root("af"), "/calls/1"));
    let delete = DeleteSmPolicy { sm_policy_id: policy, body: SmPolicyDeleteData::default() };
    let seen = bench.request(delete);
    assert_eq!(seen.operations(), [Operation::AppSessionTerminate]);
}

#[test]
fn what_an_application_requests_is_bounded() {
    let (mut bench, _) = with_session();
    let mut many = call(None);
    let media = &mut many.asc_req_data.as_mut().unwrap().med_components;
    let medium = media["1"].clone();
    media.extend((2..20).map(|number| (Arc::from(number.to_string()), medium.clone())));
    assert_eq!(
        bench.request(PostAppSession { body: many }).cause(),
        Some(&Cause::RequestedServiceNotAuthorized)
    );
    let mut wrong = call(None);
    let media = &mut wrong.asc_req_data.as_mut().unwrap().med_components;
    let flows = media.get_mut("1").unwrap().med_sub_comps.get_mut("1").unwrap();
    flows.f_descs = vec!["deny in ip from any to any".into()];
    assert_eq!(bench.request(PostAppSession { body: wrong }).problem().status, 403);
    (0..8).for_each(|_| drop(called(&mut bench, call(None))));
    let seen = bench.request(PostAppSession { body: call(None) });
    assert_eq!(seen.cause(), Some(&Cause::RequestedServiceTemporarilyNotAuthorized));
}
