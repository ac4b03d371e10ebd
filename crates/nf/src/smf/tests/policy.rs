//! The policy association: the context that the PCF receives, new rates, and the end of a session.

use super::world::*;
use crate::kit::NetworkFunction;
use crate::kit::Timer;
use crate::testing::{ambr, instance, root};
use pith_nas::gsm::{
    GsmStatus, PduSessionModificationCommandReject, PduSessionModificationComplete,
    PduSessionModificationRequest, PduSessionReleaseComplete,
};
use pith_nas::{GsmBody, GsmCause, GsmMessage};
use pith_pfcp::Message;
use pith_sbi::common::{AccessType, RatType};
use pith_sbi::npcf_smpolicycontrol::{
    AuthorizedDefaultQos, ErrorReport, FailureCode, PccRule, RuleReport, RuleStatus, SessionRule,
    SmPolicyAssociationReleaseCause, SmPolicyContextData, SmPolicyDecision, SmPolicyNotification,
    SmPolicyTerminateNotify, SmPolicyTerminationNotification, SmPolicyUpdateNotify,
    SmPolicyUpdateNotifyResult,
};
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use pith_sbi::{Cause, NfType, Operation, ProblemMore, Request, Response, Uri};

fn callback(world: &World) -> Uri {
    Uri::callback(&root("smf"), &NfType::Smf, "sm-policy", &world.reference)
}

pub(super) fn notify(world: &mut World, change: impl FnOnce(&mut SmPolicyDecision)) {
    let mut decision = SmPolicyDecision::default();
    change(&mut decision);
    let mut body = SmPolicyNotification::default();
    body.sm_policy_decision = Some(decision);
    let uri = callback(world);
    let seen = world.bench.request(SmPolicyUpdateNotify { uri, body });
    world.follow(seen);
}

pub(super) fn terminate(world: &mut World, cause: SmPolicyAssociationReleaseCause) {
    let uri = callback(world);
    let body = SmPolicyTerminationNotification::new(uri.clone(), cause);
    let seen = world.bench.request(SmPolicyTerminateNotify { uri, body });
    world.follow(seen);
}

/// A session rule with that session-AMBR and 5QI.
pub(super) fn rule(mbps: u64, five_qi: u8) -> impl FnOnce(&mut SmPolicyDecision) {
    move |decision| {
        let mut rule = SessionRule::new("r");
        rule.auth_sess_ambr = Some(ambr(mbps));
        rule.auth_def_qos = Some(AuthorizedDefaultQos { five_qi: Some(five_qi), ..Default::default() });
        decision.sess_rules.insert("r".into(), Some(rule));
    }
}

/// The session-AMBR that the last PFCP request sets, in kbit/s.
pub(super) fn enforced(world: &World) -> u64 {
    let Some(Message::SessionModificationRequest(request)) = world.n4.last() else { panic!() };
    match &request.update_qers[0].maximum_bitrate {
        Some(pith_pfcp::Change::Set(rates)) => rates.downlink,
        other => panic!("{other:?}"),
    }
}

/// A reply follows a session to another shard, but not to another instance, where its establishment would end.
#[test]
fn a_session_that_waits_for_the_pcf_does_not_pass_to_another_instance() {
    let mut world = World::new();
    world.script.insert(Operation::CreateSmPolicy, None);
    world.establish();
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    let id = session.id;
    assert_eq!(world.bench.nf.unsettled(id.block), None);
    assert_eq!(world.bench.nf.unsettled_for_instance(id.block), Some(id));
    let (tag, request) = world.open.remove(0);
    let seen = world.bench.reply(tag, usual(&request));
    world.follow(seen);
    world.gnb_answers();
    assert_eq!(world.bench.nf.unsettled_for_instance(id.block), None);
}

#[test]
fn the_pcf_receives_access_location_identities_and_address() {
    let mut world = World::new();
    world.script.insert(Operation::CreateSmPolicy, None);
    world.establish();
    let Request::CreateSmPolicy(create) = &world.open[0].1 else { panic!() };
    let SmPolicyContextData { access_type, rat_type, serving_network, user_location_info, .. } = &create.body;
    assert_eq!((access_type, rat_type), (&Some(AccessType::ThreeGppAccess), &Some(RatType::Nr)));
    assert!(serving_network.is_some() && user_location_info.is_some());
    assert_eq!(create.body.gpsi.as_deref(), Some("msisdn-15551234567"));
    assert!(create.body.pei.is_some());
    assert_eq!(create.body.ipv4_address, Some("10.45.0.2".parse().unwrap()));
    assert_eq!(create.body.serv_nf_id.as_ref().unwrap().serv_nf_inst_id, Some(instance(2)));
}

#[test]
fn new_rates_of_the_pcf_reach_upf_gnb_and_ue() {
    let mut world = World::established();
    notify(&mut world, rule(50, 8));
    assert_eq!(
        world.take_ladder(),
        "amf <- 204\nupf <- SessionModificationRequest\namf <- N1N2MessageTransfer"
    );
    assert_eq!(enforced(&world), 50_000);
    let GsmBody::PduSessionModificationCommand(command) = &world.n1.last().unwrap().body else { panic!() };
    assert_eq!(command.session_ambr, Some(ambr(50)));
    assert!(world.transfers.last().unwrap().n2_info_container.is_some(), "the gNB is told as well");
    world.uplink(PduSessionModificationComplete::new());
    assert!(world.bench.timers.is_empty());
    notify(&mut world, rule(50, 8));
    assert!(world.take_ladder().ends_with("amf <- 204"), "nothing is new");
}

#[test]
fn an_unanswered_modification_command_is_retransmitted_four_times() {
    let mut world = World::established();
    notify(&mut world, rule(50, 9));
    world.take_ladder();
    for _ in 0..4 {
        world.expire(Timer::T3591);
        assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
    }
    world.expire(Timer::T3591);
    assert_eq!((world.take_ladder().as_str(), world.bench.timers.len()), ("", 0));
}

#[test]
fn a_ue_that_does_not_know_the_session_ends_it() {
    let mut world = World::established();
    notify(&mut world, rule(50, 9));
    world.uplink(PduSessionModificationCommandReject::new(GsmCause::InvalidPduSessionIdentity));
    world.is_quiet();
}

/// The report of the last refusal (TS 29.512 table 5.7.3-2).
pub(super) fn rule_errors(world: &World) -> ErrorReport {
    match world.answers.last() {
        Some(Err(problem)) if problem.status == 400 => match &problem.more {
            Some(ProblemMore::SmPolicyUpdateNotifyError(report)) => (**report).clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn rules_that_can_not_be_enforced_are_reported_to_the_pcf() {
    let mut world = World::established();
    world.take_ladder();
    let pcc = |decision: &mut SmPolicyDecision| {
        decision.pcc_rules.insert("p".into(), Some(PccRule::new("p")));
    };
    notify(&mut world, pcc);
    assert_eq!(world.refusal(), &Cause::PccRuleEvent);
    let report = rule_errors(&world);
    let expected = (RuleStatus::Inactive, Some(FailureCode::MissFlowInfo));
    let of_rule = |report: &RuleReport| (report.rule_status.clone(), report.failure_code.clone());
    assert_eq!(report.rule_reports.iter().map(of_rule).collect::<Vec<_>>(), [expected]);
    assert_eq!(report.rule_reports[0].pcc_rule_ids, ["p".into()]);
    notify(&mut world, rule(50, 1));
    assert_eq!(world.refusal(), &Cause::RulePermanentError, "5QI 1 is GBR");
    let report = rule_errors(&world);
    assert_eq!(
        (report.rule_reports.len(), report.sess_rule_reports[0].rule_ids.clone()),
        (0, vec!["r".into()])
    );
    world.take_ladder();
    notify(&mut world, |decision| {
        rule(50, 9)(decision);
        pcc(decision);
    });
    let Some(Ok(Response::SmPolicyUpdateNotifyResult(result))) = world.answers.last() else { panic!() };
    assert!(matches!(&**result, SmPolicyUpdateNotifyResult::PartialSuccess(reports) if reports.len() == 1));
    assert_eq!(enforced(&world), 50_000);
}

#[test]
fn new_rates_are_pending_until_the_session_is_established() {
    let mut world = World::new();
    world.establish();
    notify(&mut world, rule(50, 9));
    world.take_ladder();
    world.gnb_answers();
    assert!(world.take_ladder().ends_with("upf <- SessionModificationRequest\namf <- N1N2MessageTransfer"));
    assert_eq!(enforced(&world), 50_000);
}

#[test]
fn the_pcf_ends_a_session() {
    let mut world = World::established();
    terminate(&mut world, SmPolicyAssociationReleaseCause::ReactivationRequested);
    assert_eq!(world.take_ladder(), "amf <- 204\nupf <- SessionDeletionRequest\namf <- N1N2MessageTransfer");
    let GsmBody::PduSessionReleaseCommand(command) = &world.n1.last().unwrap().body else { panic!() };
    assert_eq!(command.cause, GsmCause::ReactivationRequested);
    world.uplink(PduSessionReleaseComplete::new());
    assert!(world.take_ladder().contains("pcf <- DeleteSmPolicy"));
    world.is_quiet();
}

/// The UE has sent its request twice, and has the session of the first one.
#[test]
fn a_session_whose_accept_the_ue_refuses_is_released() {
    let mut world = World::established();
    world.uplink(GsmStatus::new(GsmCause::PtiMismatch));
    assert!(world.take_ladder().ends_with("upf <- SessionDeletionRequest\namf <- N1N2MessageTransfer"));
    let GsmBody::PduSessionReleaseCommand(command) = &world.n1.last().unwrap().body else { panic!() };
    assert_eq!(command.cause, GsmCause::ReactivationRequested);
    world.uplink(GsmStatus::new(GsmCause::InvalidPduSessionIdentity));
    assert!(world.take_ladder().contains("pcf <- DeleteSmPolicy"));
    world.is_quiet();
}

/// The UE has given its request up when the reject arrives (TS 24.501 7.3.1).
#[test]
fn a_session_whose_late_reject_the_ue_refuses_stays() {
    let mut world = World::established();
    world.uplink(PduSessionModificationRequest::new());
    let GsmBody::PduSessionModificationReject(_) = &world.n1.last().unwrap().body else { panic!() };
    world.take_ladder();
    world.uplink(GsmStatus::new(GsmCause::PtiMismatch));
    assert_eq!(world.take_ladder(), "amf <- 204", "nothing is released");
    // With the PTI of another procedure it is the accept that the UE refuses.
    let status = GsmMessage::new(5, 10, GsmStatus::new(GsmCause::PtiMismatch)).encode();
    world.update(|data| data.n1_sm_msg = Some(status.into()));
    assert!(world.take_ladder().ends_with("upf <- SessionDeletionRequest\namf <- N1N2MessageTransfer"));
}

#[test]
fn notifications_of_an_unknown_session_are_refused() {
    let mut world = World::new();
    world.reference = "0".into();
    terminate(&mut world, SmPolicyAssociationReleaseCause::Unspecified);
    assert_eq!(world.refusal(), &Cause::ContextNotFound);
    notify(&mut world, rule(50, 9));
    assert_eq!(world.refusal(), &Cause::ContextNotFound);
}

#[test]
fn n2_information_that_is_not_served_is_refused_with_what_the_gnb_is_told() {
    for (kind, answer) in [
        (N2SmInfoType::PathSwitchReq, Some(N2SmInfoType::PathSwitchReqFail)),
        (N2SmInfoType::HandoverRequired, Some(N2SmInfoType::HandoverPrepFail)),
        (N2SmInfoType::PduResModInd, Some(N2SmInfoType::PduResModIndFail)),
        (N2SmInfoType::UeContextResumeReq, None),
    ] {
        let mut world = World::established();
        world.update(|data| data.n2_sm_info_type = Some(kind.clone()));
        let Some(Err(problem)) = world.answers.last() else { panic!("{kind:?}: {:?}", world.answers.last()) };
        assert_eq!((problem.status, problem.cause()), (403, Some(&Cause::N2SmError)));
        let told = match &problem.more {
            Some(ProblemMore::SmContextUpdateError(data)) => data.n2_sm_info_type.clone(),
            _ => None,
        };
        assert_eq!(told, answer);
    }
}
