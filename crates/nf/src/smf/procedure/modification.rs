//! Network-requested PDU session modification, initiated by the PCF (TS 23.502 4.3.3.2; TS 29.512 4.2.3; TS 24.501 6.3.2).
//!
//! ```text
//!  PCF ─> SmPolicyUpdateNotify      step 1b   answered at once, with the rules that the SMF does not enforce
//!         AwaitingRates             2         <─ UPFs: session-AMBR
//!         Established               3 to 9    command ─> AMF ─> UE, gNB
//!         AwaitingModificationComplete  10    <─ UE    T3591, up to 4 retransmissions
//!  PCF ─> SmPolicyTerminateNotify             the session is released (release.rs)
//! ```
//!
//! A session has only the default QoS flow: session rules are enforced, PCC rules are refused. [`AwaitingModificationComplete`]
//! is stored separately from the state, because the user plane may change while the SMF waits for the UE's answer.

use super::establishment::authorise;
use super::{Established, State, release};
use crate::kit::document::{pack_enum, pack_struct};
use crate::kit::{Level, N4Error, PendingReply};
use crate::smf::context::{CallId, Qos, SmContext, UserPlane};
use crate::smf::env::Env;
use crate::smf::timers::SessionTimer;
use crate::smf::{consumer, n1, n2, n4};
use pith_nas::GsmCause;
use pith_ngap::transfer::Tunnel;
use pith_pfcp::Message;
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::npcf_smpolicycontrol::{
    FailureCause, FailureCode, PartialSuccessReport, RuleReport, RuleStatus, SessionRuleFailureCode,
    SessionRuleReport, SmPolicyAssociationReleaseCause, SmPolicyDecision, SmPolicyNotification,
    SmPolicyUpdateNotifyResult,
};
use pith_sbi::{Cause, Problem, Response};
use pith_types::five_qi;
use std::sync::Arc;

/// New rates were sent to a UPF.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingRates {
    /// Unchanged by the modification.
    pub user_plane: UserPlane,
    sent_to: RatesSentTo,
    /// The request.
    pub call: CallId,
}

/// The UPF to which new rates were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RatesSentTo {
    /// The anchor; the front UPF is next, if there is one.
    Anchor,
    /// The UPF between gNB and anchor.
    Front,
}

/// The UE has not yet answered a PDU SESSION MODIFICATION COMMAND.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingModificationComplete {
    /// Number of retransmissions of the command so far.
    retransmissions: u8,
}

pack_struct!(AwaitingRates { user_plane, sent_to, call });
pack_enum!(RatesSentTo { 0 => Anchor, 1 => Front });
pack_struct!(AwaitingModificationComplete { retransmissions });

/// The PCF has changed its decision (TS 29.512 4.2.3.2). The answer reports the rules that the SMF does not enforce: as a
/// partial success, or as an error if the decision has no other rules.
pub(in crate::smf) fn on_policy_update(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    notification: SmPolicyNotification,
) -> State {
    let Some(decision) = notification.sm_policy_decision else {
        reply.answer(Response::NoContent, env.out);
        return state;
    };
    let mut qos = session.pending.qos.as_ref().unwrap_or(&session.qos).clone();
    let report = failures(&decision);
    let has_session_rules = decision.sess_rules.values().flatten().count() > report.sess_rule_reports.len();
    if report.sess_rule_reports.is_empty() {
        authorise(&mut qos, &decision);
    }
    let has_failures = !(report.rule_reports.is_empty() && report.sess_rule_reports.is_empty());
    if has_failures && !has_session_rules {
        let problem = Problem::new(Cause::UnprocessableRequest);
        reply.refuse(problem.detail("this SMF enforces session rules of non-GBR QoS only"), env.out);
        return state;
    }
    let response = if has_failures {
        let result = SmPolicyUpdateNotifyResult::PartialSuccess(vec![report]);
        Response::SmPolicyUpdateNotifyResult(Box::new(result))
    } else {
        Response::NoContent
    };
    reply.answer(response, env.out);
    match &decision.rel_cause {
        Some(cause) => on_policy_end(state, session, env, cause),
        None => {
            apply_decision(&state, session, qos);
            state
        }
    }
}

/// Before requests to the UPFs are sent, a decision applies at once. Later it is pending until the session is established.
fn apply_decision(state: &State, session: &mut SmContext, qos: Qos) {
    match state {
        State::AwaitingSubscriptionData(_) | State::AwaitingPolicyDecision(_) => session.qos = qos,
        State::AwaitingN4Establishment(_)
        | State::AwaitingFrontEstablishment(_)
        | State::AwaitingN9Modification(_)
        | State::AwaitingResourceSetup(_)
        | State::Established(_)
        | State::AwaitingN4Modification(_)
        | State::AwaitingPathSwitch(_)
        | State::AwaitingFlowMobility(_)
        | State::AwaitingRates(_)
        | State::AwaitingClassifier(_)
        | State::AwaitingDownlinkSwitch(_)
        | State::AwaitingUplinkSwitch(_)
        | State::AwaitingBuffering(_)
        | State::AwaitingResourceRelease(_)
        | State::AwaitingRestoration(_)
        | State::AwaitingConfirmation(_) => session.pending.qos = Some(qos).filter(|qos| *qos != session.qos),
        // The session ends.
        State::AwaitingReleaseComplete(_) | State::Abandoned(_) | State::Over => {}
    }
}

/// The PCF ends the policy association, and therefore the session (TS 29.512 4.2.3.3). If the PCF requests reactivation, the
/// cause permits the UE to establish the session again at once.
pub(in crate::smf) fn on_policy_end(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    cause: &SmPolicyAssociationReleaseCause,
) -> State {
    session.log(env, Level::Info, || format!("the PCF ends the session: {}", cause.as_str()));
    let cause = match cause {
        SmPolicyAssociationReleaseCause::ReactivationRequested => GsmCause::ReactivationRequested,
        SmPolicyAssociationReleaseCause::InsufficientRes => GsmCause::InsufficientResources,
        _ => GsmCause::RegularDeactivation,
    };
    release::release_when_established(state, session, cause)
}

/// Applies a pending decision of the PCF: sends the new rates to the anchor first.
pub(in crate::smf) fn resume(established: Established, session: &mut SmContext, env: &mut Env<'_>) -> State {
    let Some(qos) = session.pending.qos.take() else { return established.into() };
    session.qos = qos;
    let Established { user_plane } = established;
    AwaitingRates::begin(user_plane, session, env)
}

impl AwaitingRates {
    fn begin(user_plane: UserPlane, session: &mut SmContext, env: &mut Env<'_>) -> State {
        let (upf, seid) = (user_plane.anchor.upf, user_plane.anchor.seid);
        let call = session.ask_upf(env, upf, seid, n4::new_rates(session));
        State::AwaitingRates(Self { user_plane, sent_to: RatesSentTo::Anchor, call })
    }

    /// Sends the requests again: the response to the former one cannot be matched.
    pub(in crate::smf) fn repeat(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        Self::begin(self.user_plane, session, env)
    }

    /// Handles a UPF's response (step 2b).
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        let Self { user_plane, sent_to, .. } = self;
        if let Err(why) = n4::modified(result) {
            return release::end_refused(
                user_plane,
                session,
                env,
                "the UPF did not accept the PCF's rates",
                why,
            );
        }
        if let (RatesSentTo::Anchor, Some(front)) = (sent_to, &user_plane.front) {
            let (upf, seid) = (front.session.upf, front.session.seid);
            let call = session.ask_upf(env, upf, seid, n4::new_rates(session));
            return State::AwaitingRates(Self { user_plane, sent_to: RatesSentTo::Front, call });
        }
        send_command(session, env, user_plane.gnb, 0);
        State::established(user_plane)
    }
}

/// PDU SESSION MODIFICATION COMMAND, and N2 information if the gNB has resources (steps 3 to 5).
fn send_command(session: &mut SmContext, env: &mut Env<'_>, gnb: Option<Tunnel>, retransmissions: u8) {
    session.modification = Some(AwaitingModificationComplete { retransmissions });
    let n2 = gnb.map(|_| (NgapIeType::PduResModReq, n2::modify_qos_request(session)));
    let transfer = consumer::transfer(session, Some(n1::modification_command(session)), n2);
    consumer::notify_amf(session, env, transfer);
    session.start(env, SessionTimer::T3591, env.config.t3591);
}

impl AwaitingModificationComplete {
    /// T3591 expired: retransmits the command, or ends the procedure (TS 24.501 6.3.2.5 a). UPF and gNB keep the new rates.
    pub(in crate::smf) fn on_t3591(self, state: &State, session: &mut SmContext, env: &mut Env<'_>) {
        if self.retransmissions >= env.config.retransmissions {
            return session.log(env, Level::Warn, || "the UE did not confirm the modification".to_owned());
        }
        let gnb = state.user_plane().and_then(|user_plane| user_plane.gnb);
        send_command(session, env, gnb, self.retransmissions + 1);
    }
}

/// The UE has modified the session (TS 24.501 6.3.2.3).
pub(in crate::smf) fn on_modification_complete(session: &mut SmContext, env: &mut Env<'_>) {
    session.stop(env, SessionTimer::T3591);
    match session.modification.take() {
        Some(_) => session.log(env, Level::Info, || format!("modified: {}", describe(&session.qos))),
        None => {
            session.log(env, Level::Debug, || "the UE confirmed a modification that had ended".to_owned())
        }
    }
}

/// The UE rejected the modification (TS 24.501 6.3.2.4). If the UE does not have the session, the SMF ends it.
pub(in crate::smf) fn on_modification_reject(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    cause: GsmCause,
) -> State {
    session.stop(env, SessionTimer::T3591);
    if session.modification.take().is_none() {
        session.log(env, Level::Debug, || format!("the UE rejected a modification that had ended: {cause}"));
        return state;
    }
    session.log(env, Level::Warn, || format!("the UE rejected the modification: {cause}"));
    if cause == GsmCause::InvalidPduSessionIdentity {
        return release::end_and_notify_amf(state.into_held(), session, env);
    }
    state
}

/// The rules of a decision that this SMF does not enforce.
fn failures(decision: &SmPolicyDecision) -> PartialSuccessReport {
    let mut report = PartialSuccessReport::new(FailureCause::RulePermanentError);
    let installed = |(id, rule): (&Arc<str>, bool)| rule.then(|| Arc::clone(id));
    let pcc: Vec<_> =
        decision.pcc_rules.iter().map(|(id, rule)| (id, rule.is_some())).filter_map(installed).collect();
    if !pcc.is_empty() {
        let mut rules = RuleReport::new(pcc, RuleStatus::Inactive);
        rules.failure_code = Some(FailureCode::NfMal);
        report.rule_reports.push(rules);
    }
    let is_gbr = |five_qi: Option<u8>| five_qi.is_some_and(five_qi::is_gbr);
    let gbr: Vec<_> = decision
        .sess_rules
        .iter()
        .filter(|(_, rule)| {
            let default = rule.as_ref().and_then(|rule| rule.auth_def_qos.as_ref());
            is_gbr(default.and_then(|qos| qos.five_qi))
        })
        .map(|(id, _)| Arc::clone(id))
        .collect();
    if !gbr.is_empty() {
        // The flow of the default QoS rule has no guaranteed rate (TS 23.501 5.7.2.7).
        let mut rules = SessionRuleReport::new(gbr, RuleStatus::Inactive);
        rules.sess_rule_failure_code = Some(SessionRuleFailureCode::UnsuccQosVal);
        report.sess_rule_reports.push(rules);
    }
    report
}

fn describe(qos: &Qos) -> String {
    let Qos { ambr, five_qi, arp_priority } = qos;
    format!("session-AMBR {} up, {} down, 5QI {five_qi}, ARP {arp_priority}", ambr.uplink, ambr.downlink)
}
