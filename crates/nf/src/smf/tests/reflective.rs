//! Reflective QoS (TS 23.501 5.7.5.3; TS 24.501 6.2.5.1.4; TS 29.512 5.6.2.8): UPF, gNB and UE get what they need for it.

use super::super::context::{DEFAULT_QFI, ReflectiveQos};
use super::flows::{complete, gnb_modifies, pcc, remove};
use super::policy::{notify, rule_errors};
use super::residency::{self, restarted};
use super::world::*;
use crate::kit::Timer;
use pith_nas::GsmBody;
use pith_nas::GsmCause;
use pith_nas::gsm::{
    GsmStatus, PduSessionEstablishmentAccept, PduSessionModificationCommand, PduSessionModificationComplete,
    PduSessionModificationRequest,
};
use pith_nas::ie::{FlowOperation, GprsTimer2, GsmCapability, QosRule, QosRules};
use pith_ngap::transfer::{ModifyRequestTransfer, SetupRequestTransfer};
use pith_pfcp::Message;
use pith_pfcp::ie::{PdrId, QerId, Qfi, Rqi};
use pith_pfcp::message::SessionModificationRequest;
use pith_sbi::npcf_smpolicycontrol::{
    FailureCode, FlowDirection, SmPolicyDecision, SmPolicyUpdateNotifyResult,
};
use pith_sbi::nsmf_pdusession::UpCnxState;
use pith_sbi::{Cause, Created, Operation, Request, Response, Uri};
use std::time::Duration;

fn with_capability(octets: &[u8]) -> Vec<u8> {
    establishment(|request| request.gsm_capability = Some(GsmCapability(octets.to_vec())))
}

/// An established session whose UE supports reflective QoS.
fn supporting() -> World {
    let mut world = World::new();
    world.post(with_capability(&[1]));
    world.gnb_answers();
    world.take_ladder();
    world
}

/// A reflective rule for a remote port; the UE does not get its filter.
fn reflective(decision: &mut SmPolicyDecision) {
    pcc(decision, "game", 5008, 7, None);
    reflect(decision, true);
}

fn reflect(decision: &mut SmPolicyDecision, is_on: bool) {
    decision.qos_decs.get_mut("game").unwrap().as_mut().unwrap().reflective_qos = is_on.then_some(true);
    let rule = decision.pcc_rules.get_mut("game").unwrap().as_mut().unwrap();
    rule.flow_infos[0].packet_filter_usage = None;
}

/// A session with a reflective rule whose command the UE has not answered.
pub(super) fn awaiting_complete() -> World {
    let mut world = supporting();
    notify(&mut world, reflective);
    world
}

fn accept(world: &World) -> &PduSessionEstablishmentAccept {
    let mut accepts = world.n1.iter().filter_map(|message| match &message.body {
        GsmBody::PduSessionEstablishmentAccept(accept) => Some(&**accept),
        _ => None,
    });
    accepts.next_back().unwrap()
}

fn command(world: &World) -> &PduSessionModificationCommand {
    match &world.n1.last().unwrap().body {
        GsmBody::PduSessionModificationCommand(command) => command,
        other => panic!("{other:?}"),
    }
}

fn n4(world: &World) -> &SessionModificationRequest {
    let Some(Message::SessionModificationRequest(request)) = world.n4.last() else { panic!() };
    request
}

/// QFI and Reflective QoS Attribute of each flow of the last N2 information.
fn flows_at_gnb(world: &World) -> Vec<(u8, bool)> {
    let container = world.transfers.last().unwrap().n2_info_container.as_ref().unwrap();
    let content = container.sm_info.as_ref().unwrap().n2_info_content.as_ref().unwrap();
    let transfer = ModifyRequestTransfer::decode(&content.ngap_data.content).unwrap();
    transfer.flows.iter().map(|flow| (flow.qfi, flow.reflective)).collect()
}

/// The codes of the rules that the last answer to the PCF reports.
fn refused(world: &World) -> Vec<FailureCode> {
    let rules = match world.answers.last().unwrap() {
        Ok(Response::SmPolicyUpdateNotifyResult(result)) => match &**result {
            SmPolicyUpdateNotifyResult::PartialSuccess(reports) => reports[0].rule_reports.clone(),
            other => panic!("{other:?}"),
        },
        Err(_) => rule_errors(world).rule_reports,
        other => panic!("{other:?}"),
    };
    rules.iter().filter_map(|report| report.failure_code.clone()).collect()
}

#[test]
fn the_ue_gets_the_rq_timer_only_if_it_supports_reflective_qos() {
    assert_eq!(accept(&World::established()).rq_timer, None);
    let world = supporting();
    let timer = accept(&world).rq_timer.and_then(GprsTimer2::duration);
    assert_eq!(timer, Some(Duration::from_secs(60)), "that of the configuration");
    let mut world = World::new();
    // Multi-homed IPv6 only.
    world.post(with_capability(&[2]));
    assert_eq!(accept(&world).rq_timer, None);
}

#[test]
fn the_pcf_is_told_of_the_support_and_decides_the_rq_timer() {
    let mut world = World::new();
    world.script.insert(Operation::CreateSmPolicy, None);
    world.post(with_capability(&[1]));
    let (tag, request) = world.open.remove(0);
    let Request::CreateSmPolicy(create) = &request else { panic!("{request:?}") };
    assert_eq!(create.body.ref_qos_indication, Some(true));
    let mut body = SmPolicyDecision::default();
    body.reflective_qos_timer = Some(31);
    let location = Uri::new(&crate::testing::root("pcf"), "/npcf-smpolicycontrol/v1/sm-policies/1");
    let created = Response::SmPolicyDecisionCreated(Box::new(Created { location, body }));
    let seen = world.bench.reply(tag, Ok(created));
    world.follow(seen);
    world.gnb_answers();
    let timer = |timer: Option<GprsTimer2>| timer.and_then(GprsTimer2::duration).map(|it| it.as_secs());
    assert_eq!(timer(accept(&world).rq_timer), Some(32), "in units of 2 s");
    // Another one: the UE gets it with a command.
    notify(&mut world, |decision| decision.reflective_qos_timer = Some(600));
    assert_eq!(timer(command(&world).rq_timer), Some(600));
    complete(&mut world);
    world.take_ladder();
    notify(&mut world, |decision| decision.reflective_qos_timer = Some(600));
    assert_eq!(world.take_ladder(), "amf <- 204", "nothing is new");
}

#[test]
fn a_reflective_rule_reaches_upf_and_gnb_and_its_flow_the_ue() {
    let mut world = awaiting_complete();
    let request = n4(&world);
    let [uplink, downlink] = &request.create_pdrs[..] else { panic!("{:?}", request.create_pdrs) };
    assert_eq!(
        (uplink.pdr_id, &uplink.pdi.qfis[..]),
        (PdrId(104), &[Qfi(2)][..]),
        "the UE's marking is verified"
    );
    assert_eq!(downlink.qer_ids, [QerId(256), QerId(1)], "without RQI, until the gNB has the flow");
    let qer = &request.create_qers[0];
    assert_eq!((qer.qfi, qer.rqi), (Some(Qfi(2)), Some(Rqi::RQI)));
    assert_eq!(flows_at_gnb(&world), [(DEFAULT_QFI, false), (2, true)]);
    let sent = command(&world);
    assert_eq!(sent.qos_rules, None, "the UE derives its rules");
    let flow = &sent.qos_flow_descriptions.as_ref().unwrap().0[1];
    assert_eq!((flow.qfi, flow.operation), (2, FlowOperation::Create));
    gnb_modifies(&mut world, &[2], &[]);
    let update = &n4(&world).update_pdrs[0];
    assert_eq!((update.pdr_id, update.qer_ids.as_deref()), (PdrId(105), Some(&[QerId(2), QerId(1)][..])));
    complete(&mut world);
}

#[test]
fn reflective_qos_ends_at_upf_and_gnb_while_the_rule_stays() {
    let mut world = awaiting_complete();
    gnb_modifies(&mut world, &[2], &[]);
    complete(&mut world);
    notify(&mut world, |decision| {
        pcc(decision, "game", 5008, 7, None);
        reflect(decision, false);
    });
    let request = n4(&world);
    assert_eq!((request.remove_qers.len(), request.create_qers[0].rqi), (1, None));
    assert_eq!(flows_at_gnb(&world), [(DEFAULT_QFI, false), (2, false)]);
    let flow = &command(&world).qos_flow_descriptions.as_ref().unwrap().0[1];
    assert_eq!((flow.qfi, flow.operation), (2, FlowOperation::Delete), "no rule of the UE uses it");
    gnb_modifies(&mut world, &[2], &[]);
    complete(&mut world);
    notify(&mut world, remove("game"));
    complete(&mut world);
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert!(session.flows.is_default() && session.flows.reflective_rules().is_empty());
}

/// The Reflective QoS Attribute is that of a flow: one reflective rule of several suffices (TS 23.501 5.7.2.3).
#[test]
fn a_flow_is_reflective_while_one_of_its_rules_is() {
    let mut world = awaiting_complete();
    gnb_modifies(&mut world, &[2], &[]);
    complete(&mut world);
    notify(&mut world, |decision| pcc(decision, "plain", 5010, 7, None));
    assert_eq!(n4(&world).create_qers[0].rqi, None, "its packets have no RQI");
    assert_eq!(flows_at_gnb(&world), [(DEFAULT_QFI, false)], "the flow is as before");
    complete(&mut world);
    notify(&mut world, remove("game"));
    assert_eq!(flows_at_gnb(&world), [(DEFAULT_QFI, false), (2, false)]);
}

/// A rule with the 5QI and ARP of the default flow is bound to it: the gNB gets the attribute of that.
#[test]
fn a_reflective_rule_of_the_default_flow_is_marked_there() {
    let mut world = supporting();
    notify(&mut world, |decision| {
        reflective(decision);
        let data = decision.qos_decs.get_mut("game").unwrap().as_mut().unwrap();
        data.def_qos_flow_indication = Some(true);
    });
    assert_eq!(n4(&world).create_qers[0].rqi, Some(Rqi::RQI));
    assert_eq!(flows_at_gnb(&world), [(DEFAULT_QFI, true)]);
    gnb_modifies(&mut world, &[DEFAULT_QFI], &[]);
    complete(&mut world);
    notify(&mut world, remove("game"));
    assert_eq!(flows_at_gnb(&world), [(DEFAULT_QFI, false)]);
}

/// The UE reverses downlink filters: the UPF accepts its packets in the flow.
#[test]
fn the_uplink_of_a_downlink_only_filter_is_accepted_in_the_flow() {
    for (is_reflective, pdrs) in [(true, 2), (false, 1)] {
        let mut world = supporting();
        notify(&mut world, |decision| {
            reflective(decision);
            reflect(decision, is_reflective);
            let rule = decision.pcc_rules.get_mut("game").unwrap().as_mut().unwrap();
            rule.flow_infos[0].flow_direction = Some(FlowDirection::Downlink);
        });
        assert_eq!(n4(&world).create_pdrs.len(), pdrs);
    }
}

#[test]
fn a_reflective_rule_needs_a_ue_that_supports_it_and_no_guaranteed_rate() {
    let mut world = World::established();
    notify(&mut world, reflective);
    assert_eq!(refused(&world), [FailureCode::UnsuccQosVal]);
    let mut world = supporting();
    notify(&mut world, |decision| {
        pcc(decision, "game", 5008, 1, Some(64));
        reflect(decision, true);
    });
    assert_eq!(refused(&world), [FailureCode::UnsuccQosVal]);
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert!(session.flows.is_default());
}

fn revocation(change: impl FnOnce(&mut PduSessionModificationRequest)) -> PduSessionModificationRequest {
    let mut request = PduSessionModificationRequest::new();
    request.gsm_capability = Some(GsmCapability(vec![0]));
    change(&mut request);
    request
}

/// TS 24.501 6.4.2.2, 6.4.2.3: the UE repeats its request until it gets the command.
#[test]
fn a_ue_revokes_its_support() {
    let mut world = awaiting_complete();
    gnb_modifies(&mut world, &[2], &[]);
    complete(&mut world);
    world.script.insert(Operation::UpdateSmPolicy, None);
    world.take_ladder();
    // Repeated, and requested again by a UE that has given up, which then gets the accept too late.
    for pti in [7, 7, 8] {
        world.n1.clear();
        world.uplink_with(pti, revocation(|_| {}));
        world.uplink_with(pti, GsmStatus::new(GsmCause::PtiMismatch));
        let accept = world.n1.iter().find(|message| message.pti == pti).unwrap();
        assert_eq!(accept.body.name(), "PduSessionModificationCommand");
    }
    let updates = world.open.iter().filter_map(|(_, request)| match request {
        Request::UpdateSmPolicy(update) => update.body.ref_qos_indication,
        _ => None,
    });
    assert_eq!(updates.collect::<Vec<_>>(), [false], "once");
    assert_eq!((n4(&world).remove_qers.len(), n4(&world).create_qers[0].rqi), (1, None));
    assert_eq!(flows_at_gnb(&world), [(DEFAULT_QFI, false), (2, false)]);
    world.n1.clear();
    world.uplink_with(8, PduSessionModificationComplete::new());
    assert!(world.n1.is_empty());
    world.uplink_with(8, PduSessionModificationComplete::new());
    let GsmBody::GsmStatus(status) = &world.n1.last().unwrap().body else { panic!() };
    assert_eq!(status.cause, GsmCause::PtiMismatch);
    complete(&mut world);
    notify(&mut world, reflective);
    assert_eq!(refused(&world), [FailureCode::UnsuccQosVal]);
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    let expected = ReflectiveQos { awaits_pcf: true, ..ReflectiveQos::default() };
    assert_eq!((session.reflective, session.flows.reflective_rules()), (expected, vec![]));
}

/// The SMF may have stored the revocation, and ended before it answered the UE or reported to the PCF.
#[test]
fn a_revocation_that_a_restart_interrupts_is_answered_and_reported_again() {
    for (ue_answers, pcf_answers) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut world = residency::tracked(awaiting_complete());
        gnb_modifies(&mut world, &[2], &[]);
        complete(&mut world);
        if !pcf_answers {
            world.script.insert(Operation::UpdateSmPolicy, None);
        }
        world.uplink_with(7, revocation(|_| {}));
        if ue_answers {
            world.uplink_with(7, PduSessionModificationComplete::new());
        }
        let stored = residency::stored(&mut world);
        let mut next = restarted(&world, &stored, config());
        next.associate(UPF, "upf");
        let answers = next.n1.iter().filter(|message| message.pti == 7).count();
        let reports = next.take_ladder().matches("pcf <- UpdateSmPolicy").count();
        let expected = (usize::from(!ue_answers), usize::from(!pcf_answers));
        assert_eq!((answers, reports), expected, "{ue_answers} {pcf_answers}");
        // A UE that has given its request up.
        next.uplink_with(7, GsmStatus::new(GsmCause::PtiMismatch));
        assert_eq!(next.bench.nf.sessions.iter().count(), 1);
    }
}

/// The SMF has stored that the UE revokes its support, and has restarted before the UE or the PCF answered.
fn restarted_while_revoking() -> World {
    let mut world = residency::tracked(awaiting_complete());
    gnb_modifies(&mut world, &[2], &[]);
    complete(&mut world);
    world.script.insert(Operation::UpdateSmPolicy, None);
    world.uplink_with(7, revocation(|_| {}));
    let stored = residency::stored(&mut world);
    restarted(&world, &stored, config())
}

/// Commands for the request of the UE.
fn answers_to_ue(world: &mut World) -> usize {
    std::mem::take(&mut world.n1).iter().filter(|message| message.pti == 7).count()
}

/// A handover or a registration is in progress, or the AMF is not reachable.
#[test]
fn the_command_of_a_revocation_that_the_amf_refuses_for_some_time_is_sent_again() {
    for cause in [
        Cause::TemporaryRejectHandoverOngoing,
        Cause::TemporaryRejectRegistrationOngoing,
        Cause::TimedOutRequest,
        Cause::TargetNfNotReachable,
    ] {
        let mut next = restarted_while_revoking();
        next.script.insert(Operation::N1N2MessageTransfer, problem(cause.clone()));
        next.associate(UPF, "upf");
        assert_eq!(answers_to_ue(&mut next), 1, "{cause:?}");
        next.expire(Timer::SbiGuard);
        assert_eq!(answers_to_ue(&mut next), 1, "{cause:?}");
        next.script.remove(&Operation::N1N2MessageTransfer);
        next.expire(Timer::SbiGuard);
        assert_eq!(answers_to_ue(&mut next), 1, "{cause:?}");
        assert!(next.bench.timers.keys().all(|key| key.timer != Timer::SbiGuard));
        next.deactivate();
        assert_eq!(answers_to_ue(&mut next), 0, "the AMF has it");
    }
}

/// Such as that the UE is in CM-IDLE, and waits for no answer.
#[test]
fn the_command_of_a_revocation_that_the_amf_refuses_for_good_is_not_sent_again() {
    for cause in [Cause::UeInCmIdleState, Cause::ContextNotFound] {
        let mut next = restarted_while_revoking();
        next.script.insert(Operation::N1N2MessageTransfer, problem(cause));
        next.associate(UPF, "upf");
        assert_eq!(answers_to_ue(&mut next), 1);
        assert!(next.bench.timers.keys().all(|key| key.timer != Timer::SbiGuard));
        next.deactivate();
        assert_eq!(answers_to_ue(&mut next), 0);
    }
}

/// The handover was in progress when the SMF had restarted.
#[test]
fn a_ue_that_has_answered_meanwhile_gets_no_further_command() {
    let mut next = restarted_while_revoking();
    next.script.insert(Operation::N1N2MessageTransfer, problem(Cause::TemporaryRejectHandoverOngoing));
    next.associate(UPF, "upf");
    assert_eq!(answers_to_ue(&mut next), 1);
    next.uplink_with(7, PduSessionModificationComplete::new());
    next.script.remove(&Operation::N1N2MessageTransfer);
    next.expire(Timer::SbiGuard);
    assert_eq!(answers_to_ue(&mut next), 0);
}

#[test]
fn a_report_of_a_revocation_that_the_pcf_does_not_answer_is_sent_again_after_a_restart() {
    for (cause, again) in [
        (Cause::TimedOutRequest, true),
        (Cause::TargetNfNotReachable, true),
        (Cause::PolicyAssociationNotFound, false),
    ] {
        let mut world = residency::tracked(awaiting_complete());
        gnb_modifies(&mut world, &[2], &[]);
        complete(&mut world);
        world.script.insert(Operation::UpdateSmPolicy, problem(cause.clone()));
        world.uplink_with(7, revocation(|_| {}));
        world.uplink_with(7, PduSessionModificationComplete::new());
        let stored = residency::stored(&mut world);
        let mut next = restarted(&world, &stored, config());
        next.associate(UPF, "upf");
        let reports = next.take_ladder().matches("pcf <- UpdateSmPolicy").count();
        assert_eq!(reports, usize::from(again), "{cause:?}");
    }
}

#[test]
fn the_pcfs_answer_to_a_revocation_is_applied() {
    let mut world = awaiting_complete();
    gnb_modifies(&mut world, &[2], &[]);
    complete(&mut world);
    let mut decision = SmPolicyDecision::default();
    remove("game")(&mut decision);
    let answer = Ok(Response::SmPolicyDecision(Box::new(decision)));
    world.script.insert(Operation::UpdateSmPolicy, Some(answer));
    world.uplink_with(7, revocation(|_| {}));
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert_eq!(session.flows.latest().rules().count(), 0);
}

#[test]
fn a_revocation_with_other_requests_is_rejected() {
    for (supports, request) in [
        (true, revocation(|request| request.gsm_capability = Some(GsmCapability(vec![1])))),
        (
            true,
            revocation(|request| {
                request.requested_qos_rules = Some(QosRules(vec![QosRule::match_all(0, 0)]))
            }),
        ),
        (false, revocation(|_| {})),
    ] {
        let mut world = if supports { supporting() } else { World::established() };
        world.uplink_with(7, request);
        let answer = world.n1.last().unwrap();
        assert_eq!((answer.body.name(), answer.pti), ("PduSessionModificationReject", 7));
        let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
        assert_eq!(session.reflective.is_supported, supports);
    }
}

/// An idle UE's gNB gets the attribute with the next activation, and a UPF that has lost the session the RQI.
#[test]
fn the_attribute_and_the_rqi_are_in_the_whole_session_again() {
    let mut world = awaiting_complete();
    gnb_modifies(&mut world, &[2], &[]);
    complete(&mut world);
    world.deactivate();
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    let Some(Ok(Response::SmContextUpdated(data))) = world.answers.last() else { panic!() };
    let transfer = SetupRequestTransfer::decode(&data.n2_sm_info.as_ref().unwrap().content).unwrap();
    let flows: Vec<_> = transfer.flows.iter().map(|flow| (flow.qfi, flow.reflective)).collect();
    assert_eq!(flows, [(DEFAULT_QFI, false), (2, true)]);

    let mut world = residency::tracked(awaiting_complete());
    gnb_modifies(&mut world, &[2], &[]);
    complete(&mut world);
    let stored = residency::stored(&mut world);
    let mut next = restarted(&world, &stored, config());
    next.associate(UPF, "upf");
    let request = residency::establishment(&next);
    let rule = request.create_qers.iter().find(|qer| qer.qer_id == QerId(2)).unwrap();
    assert_eq!(rule.rqi, Some(Rqi::RQI));
    let (_, session) = next.bench.nf.sessions.iter().next().unwrap();
    assert_eq!((session.flows.reflective_rules(), session.reflective.is_supported), (vec![2], true));
}
