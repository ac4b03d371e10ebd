//! Network-requested PDU session modification, initiated by the PCF (TS 23.502 4.3.3.2; TS 29.512 4.2.3; TS 24.501 6.3.2): new rates, and
//! QoS flows that are added, changed or removed.
//!
//! ```text
//!  PCF ─> SmPolicyUpdateNotify      step 1b   answered at once, with the rules that the SMF does not enforce
//!         AwaitingRates             2         <─ UPFs: session-AMBR, PDRs and QERs of PCC rules
//!         Established               3 to 9    command ─> AMF ─> UE, gNB
//!         AwaitingModificationComplete  10    <─ UE    T3591, up to 4 retransmissions
//!         UpdateSmPolicy ─> PCF     12        rules that UPF, gNB or UE refuse; they are removed from the others
//!  PCF ─> SmPolicyTerminateNotify             the session is released (release.rs)
//! ```
//!
//! [`AwaitingModificationComplete`] is stored separately from the state, because the user plane may change while the SMF waits for the UE's
//! answer. Until then no other change of flows begins. An idle UE is paged for the command; the gNB gets the flows with the next activation.

use super::establishment::authorise;
use super::path::{self, Towards};
use super::restoration::{self, Absence, give_again};
use super::{Established, State, branching, release, subscription_change, upf_failure};
use crate::kit::document::{pack_enum, pack_struct};
use crate::kit::{Level, N4Error, PendingReply};
use crate::smf::context::{CallId, DEFAULT_QFI, Qos, SmContext, UserPlane};
use crate::smf::env::Env;
use crate::smf::flows::{Failure, Flows};
use crate::smf::timers::SessionTimer;
use crate::smf::{consumer, n1, n2, n4};
use bytes::Bytes;
use pith_nas::GsmCause;
use pith_ngap::transfer::{
    FlowTunnel, ModifyResponseTransfer, NotifyTransfer, SetupResponseTransfer, Tunnel,
};
use pith_pfcp::Message;
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::npcf_smpolicycontrol::{
    ErrorReport, FailureCause, FailureCode, PartialSuccessReport, RuleReport, RuleStatus,
    SessionRuleFailureCode, SessionRuleReport, SmPolicyAssociationReleaseCause, SmPolicyDecision,
    SmPolicyNotification, SmPolicyUpdateNotifyResult,
};
use pith_sbi::{Cause, Problem, ProblemMore, Response};
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
    /// The anchor: downlink packets use the flows that the gNB has set up.
    Flows,
}

/// The UE has not yet answered a PDU SESSION MODIFICATION COMMAND.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingModificationComplete {
    /// Number of retransmissions of the command so far.
    retransmissions: u8,
}

pack_struct!(AwaitingRates { user_plane, sent_to, call });
pack_enum!(RatesSentTo { 0 => Anchor, 1 => Front, 2 => Flows });
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
    subscription_change::apply_deferred(session);
    let mut qos = session.pending.qos.as_ref().unwrap_or(&session.qos).clone();
    let (flows, failures) = rules_after(&state, session, &decision, &qos);
    let report = failure_report(&decision, failures);
    if report.sess_rule_reports.is_empty() {
        authorise(&mut qos, &decision);
    }
    let has_failures = !(report.rule_reports.is_empty() && report.sess_rule_reports.is_empty());
    if has_failures && flows == *session.flows.latest() && have_all_failed(&decision, &report) {
        reply.refuse(rule_errors(report), env.out);
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
            apply_decision(&state, session, qos, flows);
            apply_rq_timer(&state, session, &decision);
            state
        }
    }
}

/// The rules of the PCF's answer to a report, for a session with that QoS. Those that the SMF does not enforce are reported.
pub(in crate::smf) fn apply_rules(
    state: &State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    decision: &SmPolicyDecision,
    qos: &Qos,
) {
    let (flows, failures) = rules_after(state, session, decision, qos);
    consumer::report_rules(session, env, failures.into_iter().map(Failure::into_report).collect());
    let unchanged = session.pending.qos.as_ref().unwrap_or(&session.qos).clone();
    apply_decision(state, session, unchanged, flows);
    apply_rq_timer(state, session, decision);
}

/// The PCF's decision in its answer to a report.
pub(super) fn apply_answer(
    state: &State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    decision: &SmPolicyDecision,
) {
    subscription_change::apply_deferred(session);
    let mut qos = session.pending.qos.as_ref().unwrap_or(&session.qos).clone();
    apply_rules(state, session, env, decision, &qos);
    authorise(&mut qos, decision);
    let flows = session.flows.latest().clone();
    apply_decision(state, session, qos, flows);
}

/// Another RQ timer is for the UE, if it may have got the former one: it gets it with the next command (TS 24.501 6.3.2.2).
fn apply_rq_timer(state: &State, session: &mut SmContext, decision: &SmPolicyDecision) {
    if !session.reflective.is_supported {
        return;
    }
    let former = session.reflective.rq_timer();
    session.reflective.timer = decision.reflective_qos_timer.or(session.reflective.timer);
    let may_have_former =
        !matches!(state, State::AwaitingSubscriptionData(_) | State::AwaitingPolicyDecision(_));
    if may_have_former && session.reflective.rq_timer() != former {
        session.pending.qos.get_or_insert_with(|| session.qos.clone());
    }
}

/// The UE no longer derives QoS rules: UPF and gNB stop what they do for that (TS 23.501 5.7.5.1), and the PCF is notified.
pub(in crate::smf) fn revoke_reflective_qos(
    state: &State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    pti: u8,
) {
    let was_supported = std::mem::take(&mut session.reflective.is_supported);
    (session.reflective.timer, session.reflective.revocation) = (None, Some(pti));
    if !was_supported {
        return;
    }
    session.log(env, Level::Info, || "the UE revokes its support of reflective QoS".to_owned());
    consumer::report_revoked_reflective_qos(session, env);
    let qos = session.pending.qos.as_ref().unwrap_or(&session.qos).clone();
    let taken = session.flows.taken();
    let (flows, failed) = session.flows.latest().without_reflection(&taken, &qos);
    fail_rules(session, env, failed, "the UE does not derive their QoS rules");
    apply_decision(state, session, qos, flows);
}

/// The PCC rules after a decision, and those that fail. A session with a second UPF has no rules.
fn rules_after(
    state: &State,
    session: &SmContext,
    decision: &SmPolicyDecision,
    qos: &Qos,
) -> (Flows, Vec<Failure>) {
    let taken = session.flows.taken();
    let latest = session.flows.latest();
    let (flows, failures) = latest.after(decision, &taken, (qos, session.reflective));
    if state.user_plane().is_some_and(|user_plane| user_plane.front.is_some()) && !flows.is_empty() {
        let failed = flows.rules().map(|rule| Failure::of(&rule.id, FailureCode::ResAlloFail));
        return (Flows::default(), failed.chain(failures).collect());
    }
    (flows, failures)
}

/// Before requests to the UPFs are sent, a decision applies at once. Later it is pending until the session is established.
fn apply_decision(state: &State, session: &mut SmContext, qos: Qos, flows: Flows) {
    match state {
        State::AwaitingSubscriptionData(_) | State::AwaitingPolicyDecision(_) => {
            (session.qos, session.flows.current) = (qos, flows);
        }
        State::AwaitingN4Establishment(_)
        | State::AwaitingFrontEstablishment(_)
        | State::AwaitingN9Modification(_)
        | State::AwaitingResourceSetup(_)
        | State::Established(_)
        | State::AwaitingN4Modification(_)
        | State::AwaitingPathSwitch(_)
        | State::AwaitingFlowMobility(_)
        | State::AwaitingForwardingTunnel(_)
        | State::AwaitingRates(_)
        | State::AwaitingClassifier(_)
        | State::AwaitingDownlinkSwitch(_)
        | State::AwaitingUplinkSwitch(_)
        | State::AwaitingBuffering(_)
        | State::AwaitingResourceRelease(_)
        | State::AwaitingRestoration(_)
        | State::AwaitingConfirmation(_) => {
            // Rates that a UPF has not answered are pending until the UE has got them, too.
            let is_due = session.pending.qos.as_ref() == Some(&session.qos);
            session.pending.qos = Some(qos).filter(|qos| is_due || *qos != session.qos);
            session.flows.wanted = Some(flows).filter(|flows| *flows != session.flows.current);
        }
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

/// Applies the gNB's answer to a change of flows, or a pending decision of the PCF: sends the new rates to the anchor first.
pub(in crate::smf) fn resume(established: Established, session: &mut SmContext, env: &mut Env<'_>) -> State {
    let Established { mut user_plane } = established;
    if user_plane.gnb.is_some() && session.flows.awaits_gnb && session.flows.is_at_gnb {
        user_plane = match AwaitingRates::use_flows(user_plane, session, env) {
            State::Established(Established { user_plane }) => user_plane,
            state => return state,
        };
    }
    if session.flows.former.is_some() {
        let is_out_of_reach = user_plane.gnb.is_none() && subscription_change::awaits_user_plane(session);
        if session.modification.is_none() && !is_out_of_reach {
            // The change was interrupted, and the UPF has got the session with the new rules.
            send_command(session, env, user_plane.gnb, 0);
        }
        return State::established(user_plane);
    }
    if session.modification.is_some() {
        // PDU SESSION MODIFICATION COMPLETE does not say which of two commands the UE has got (TS 24.501 8.3.10).
        return State::established(user_plane);
    }
    if user_plane.front.is_some() {
        refuse_rules_beside_front(session, env);
    }
    let has_new_rules = session.flows.begin_change();
    match session.pending.qos.take() {
        Some(qos) => session.qos = qos,
        None if has_new_rules => {}
        None => return State::established(user_plane),
    }
    AwaitingRates::begin(user_plane, session, env)
}

/// Rules that were decided before the session got a second UPF can't be enforced.
fn refuse_rules_beside_front(session: &mut SmContext, env: &mut Env<'_>) {
    if let Some(wanted) = session.flows.wanted.take() {
        let failed = wanted.rules().map(|rule| Arc::clone(&rule.id)).collect();
        fail_rules(session, env, failed, "the session has a second UPF");
    }
}

/// Reports rules that UPF, gNB or UE have refused to the PCF (step 12).
pub(in crate::smf) fn fail_rules(session: &SmContext, env: &mut Env<'_>, rules: Vec<Arc<str>>, why: &str) {
    if rules.is_empty() {
        return;
    }
    session.log(env, Level::Warn, || format!("{} PCC rules are not enforced: {why}", rules.len()));
    let mut report = RuleReport::new(rules, RuleStatus::Inactive);
    report.failure_code = Some(FailureCode::ResAlloFail);
    consumer::report_rules(session, env, vec![report]);
}

/// The gNB has set up a session with these flows. Rules of flows that it has refused, or does not name, are removed (TS
/// 23.502 4.3.3.2 step 8a). The gNB may have got its request before a change in progress: it gets the change with the
/// next transmission of the command.
pub(in crate::smf) fn on_setup(session: &mut SmContext, env: &mut Env<'_>, transfer: &SetupResponseTransfer) {
    let accepted = accepted(&transfer.flows, &transfer.additional);
    ignore_unknown(session, env, &accepted);
    let has = |qfi: &u8| accepted.contains(qfi);
    let has_refused = |qfi: u8| transfer.failed.iter().any(|(failed, _)| *failed == qfi);
    let added = session.flows.added();
    session.flows.is_at_gnb = added.iter().all(|qfi| has(qfi) || has_refused(*qfi));
    let failed = session.flows.refuse(|qfi| has_refused(qfi) || !has(&qfi) && !added.contains(&qfi));
    fail_rules(session, env, failed, "the gNB has no resources for their flows");
}

/// The flows that a gNB, or a secondary one, accepts.
pub(super) fn accepted(flows: &[u8], additional: &[FlowTunnel]) -> Vec<u8> {
    flows.iter().chain(additional.iter().flat_map(|it| &it.flows)).copied().collect()
}

/// Flows that the session does not have are ignored.
pub(super) fn ignore_unknown(session: &SmContext, env: &mut Env<'_>, named: &[u8]) {
    let unknown: Vec<u8> = named.iter().copied().filter(|qfi| !session.flows.knows(*qfi)).collect();
    if !unknown.is_empty() {
        session.log(env, Level::Warn, || {
            format!("the gNB accepts QoS flows that the session does not have: {unknown:?}")
        });
    }
}

/// The gNB has modified the session. Refused are the flows that it names as failed, and those of the change that it
/// does not name (TS 38.413 8.2.3.2, 9.3.4.4); it need not list flows that it had before. An answer without flows is
/// that to a request for another uplink endpoint, and one that names no flow of the change may be that to an earlier command, since the UE's answer
/// may overtake it. Downlink packets use the new flows from now on (step 8a): [`resume`], after the change of tunnels if the gNB names other ones.
pub(in crate::smf) fn on_gnb_modified(
    session: &mut SmContext,
    env: &mut Env<'_>,
    transfer: &ModifyResponseTransfer,
) {
    let accepted = accepted(&transfer.flows, &transfer.additional);
    ignore_unknown(session, env, &accepted);
    let names_flows = !(accepted.is_empty() && transfer.failed.is_empty());
    let is_asked = session.modification.is_some() && !session.flows.is_at_gnb;
    let asked = if names_flows && is_asked { session.flows.added() } else { Vec::new() };
    let has_refused = |qfi: u8| transfer.failed.iter().any(|(failed, _)| *failed == qfi);
    let is_named = |qfi: &u8| accepted.contains(qfi) || has_refused(*qfi);
    if session.gnb.modifications > 0 && !asked.is_empty() && !asked.iter().any(is_named) {
        session.log(env, Level::Info, || "the gNB answers an earlier modification".to_owned());
        let late = (0..64).filter(|qfi| has_refused(*qfi)).fold(0, |bits, qfi| bits | bit(qfi));
        let late = late & session.gnb.unanswered_flows;
        session.gnb.unanswered_flows &= !late;
        let failed = session.flows.refuse(|qfi| late & bit(qfi) != 0);
        return fail_rules(session, env, failed, "the gNB has no resources for their flows");
    }
    session.flows.is_at_gnb = true;
    session.gnb.note_flows_answered(|qfi| accepted.contains(&qfi) || has_refused(qfi));
    let is_missing = |qfi: u8| asked.contains(&qfi) && !accepted.contains(&qfi);
    let failed = session.flows.refuse_change(|qfi| has_refused(qfi) || is_missing(qfi));
    fail_rules(session, env, failed, "the gNB has no resources for their flows");
}

/// The gNB has released flows, or no longer fulfils their rates (TS 38.413 8.2.4.2). Only the former changes rules. Returns whether the default flow
/// is released.
pub(in crate::smf) fn on_gnb_notification(session: &mut SmContext, env: &mut Env<'_>, info: &Bytes) -> bool {
    let Ok(transfer) = NotifyTransfer::decode(info) else { return false };
    let is_released = |qfi: u8| transfer.released.iter().any(|(released, _)| *released == qfi);
    let failed = session.flows.refuse(is_released);
    fail_rules(session, env, failed, "the gNB has released their flows");
    is_released(DEFAULT_QFI)
}

/// The gNB has not modified the session's resources: the rules that the change creates are removed. If the UE has confirmed an earlier change, of
/// which the gNB has not answered the request, it gets another command that removes its flows, as if the gNB had refused these.
pub(in crate::smf) fn on_gnb_failure(session: &mut SmContext, env: &mut Env<'_>) {
    let is_changing = session.flows.former.is_some() && !session.flows.is_at_gnb;
    if session.gnb.has_unanswered_flows() && (session.gnb.modifications > 0 || !is_changing) {
        let unanswered = std::mem::take(&mut session.gnb.unanswered_flows);
        let failed = session.flows.refuse(|qfi| unanswered & bit(qfi) != 0);
        return fail_rules(session, env, failed, "the gNB does not modify the session's resources");
    }
    if !is_changing {
        return;
    }
    session.stop(env, SessionTimer::T3591);
    session.modification = None;
    let failed = session.flows.revert_at_gnb();
    fail_rules(session, env, failed, "the gNB does not modify the session's resources");
}

/// The bit of a flow.
const fn bit(qfi: u8) -> u64 {
    1 << (qfi & 63)
}

impl AwaitingRates {
    fn use_flows(user_plane: UserPlane, session: &mut SmContext, env: &mut Env<'_>) -> State {
        session.flows.awaits_gnb = false;
        if session.flows.current.rules().all(|rule| session.flows.is_refused(rule.qfi)) {
            return State::established(user_plane);
        }
        let (upf, seid) = (user_plane.anchor.upf, user_plane.anchor.seid);
        let call = session.ask_upf(env, upf, seid, n4::use_flows(session));
        State::AwaitingRates(Self { user_plane, sent_to: RatesSentTo::Flows, call })
    }

    fn begin(user_plane: UserPlane, session: &mut SmContext, env: &mut Env<'_>) -> State {
        session.flows.awaits_gnb |= user_plane.gnb.is_some() && session.flows.creates();
        let (upf, seid) = (user_plane.anchor.upf, user_plane.anchor.seid);
        let call = session.ask_upf(env, upf, seid, n4::new_rules(session, user_plane.anchor.tunnel));
        State::AwaitingRates(Self { user_plane, sent_to: RatesSentTo::Anchor, call })
    }

    /// Sends the requests again: the response to the former one cannot be matched. If they change rules, the UPF gets the session again, as a
    /// second creation of a rule would be refused.
    pub(in crate::smf) fn repeat(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        if self.sent_to == RatesSentTo::Flows {
            return Self::use_flows(self.user_plane, session, env);
        }
        if session.flows.former.is_some() {
            return give_again(self.user_plane, session, env);
        }
        Self::begin(self.user_plane, session, env)
    }

    /// The classifier is lost: the anchor gets the rates once more when it sends to the gNB.
    pub(super) fn without_classifier(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        if self.sent_to != RatesSentTo::Flows {
            await_command(session, env);
        }
        upf_failure::without_classifier(self.user_plane, session, env)
    }

    /// Handles a UPF's response (step 2b).
    pub(in crate::smf) fn on_response(
        self,
        session: &mut SmContext,
        env: &mut Env<'_>,
        result: Result<Message, N4Error>,
    ) -> State {
        let Self { user_plane, sent_to, .. } = self;
        let absence = Absence::of(&result);
        if let Err(why) = n4::modified(result) {
            return not_modified(user_plane, session, env, (sent_to, absence), &why);
        }
        if let (RatesSentTo::Anchor, Some(front)) = (sent_to, &user_plane.front) {
            let (upf, seid) = (front.session.upf, front.session.seid);
            let call = session.ask_upf(env, upf, seid, n4::new_rates(session));
            return State::AwaitingRates(Self { user_plane, sent_to: RatesSentTo::Front, call });
        }
        if sent_to != RatesSentTo::Flows {
            session.tunnels.keep(&session.flows_at_upf());
            send_command(session, env, user_plane.gnb, 0);
        }
        State::established(user_plane)
    }
}

/// A UPF has not got the change. If it is away, it gets the session again, with the change; the command for UE and gNB follows ([`resume`]). A
/// classifier is removed from the path, and the anchor gets the change once more.
fn not_modified(
    mut user_plane: UserPlane,
    session: &mut SmContext,
    env: &mut Env<'_>,
    (sent_to, absence): (RatesSentTo, Option<Absence>),
    why: &str,
) -> State {
    let is_at_front = sent_to == RatesSentTo::Front;
    if is_at_front && user_plane.has_removable_front() {
        session.log(env, Level::Warn, || format!("the classifier is removed: {why}"));
        await_command(session, env);
        branching::drain_front(&mut user_plane, session, env);
        return path::switch_downlink(user_plane, session, env, Towards::Anchor);
    }
    match (absence, sent_to) {
        (Some(absence), _) => {
            if sent_to != RatesSentTo::Flows {
                await_command(session, env);
            }
            let front = user_plane.front.as_ref().filter(|_| is_at_front);
            let upf = front.map_or(user_plane.anchor, |front| front.session).upf;
            restoration::after_absence(user_plane, session, env, (upf, absence))
        }
        (None, RatesSentTo::Anchor) if session.flows.former.is_some() => {
            rules_refused(user_plane, session, env, why)
        }
        (None, RatesSentTo::Flows) => give_again(user_plane, session, env),
        (None, _) => {
            release::end_refused(user_plane, session, env, "the UPF did not accept the PCF's rates", why)
        }
    }
}

/// The change is in force without the command for UE and gNB, which [`resume`] sends: after a change of rules at once, else when the UPFs
/// have got the rates once more.
fn await_command(session: &mut SmContext, env: &mut Env<'_>) {
    if session.flows.former.is_none() {
        session.pending.qos.get_or_insert_with(|| session.qos.clone());
        return;
    }
    // A command that the UE has not answered yet has no rules.
    session.stop(env, SessionTimer::T3591);
    session.modification = None;
}

/// The anchor refuses the change of rules. Rules that can't be created are reported; if it refuses to remove some, it gets the session again.
fn rules_refused(user_plane: UserPlane, session: &mut SmContext, env: &mut Env<'_>, why: &str) -> State {
    if !session.flows.creates() {
        return give_again(user_plane, session, env);
    }
    let failed = session.flows.cancel();
    // The request had the rates, too.
    session.pending.qos.get_or_insert_with(|| session.qos.clone());
    fail_rules(session, env, failed, why);
    State::established(user_plane)
}

/// PDU SESSION MODIFICATION COMMAND, and N2 information if the gNB has resources (steps 3 to 5).
fn send_command(session: &mut SmContext, env: &mut Env<'_>, gnb: Option<Tunnel>, retransmissions: u8) {
    session.modification = Some(AwaitingModificationComplete { retransmissions });
    // The gNB gets all flows with the activation.
    session.flows.is_at_gnb |= gnb.is_none();
    let n2 = gnb.map(|_| {
        session.gnb.note_modification();
        (NgapIeType::PduResModReq, n2::modify_qos_request(session, &[]))
    });
    let transfer = consumer::transfer(session, Some(n1::modification_command(session)), n2);
    // No state waits for the answer. After a refusal for some time the command is sent again before T3591 expires (`refused_transfer`).
    consumer::call_amf(session, env, transfer);
    session.start(env, SessionTimer::T3591, env.config.t3591);
}

impl AwaitingModificationComplete {
    /// Number of retransmissions of the command so far.
    pub(super) const fn retransmissions(&self) -> u8 {
        self.retransmissions
    }

    /// T3591 expired, or the AMF may accept the command now that it has refused: retransmits the command, or ends the procedure (TS 24.501 6.3.2.5
    /// a). UPF and gNB keep the new rates, but not new rules.
    pub(in crate::smf) fn on_t3591(self, state: &State, session: &mut SmContext, env: &mut Env<'_>) {
        if self.retransmissions >= env.config.retransmissions {
            session.log(env, Level::Warn, || "the UE did not confirm the modification".to_owned());
            session.stop(env, SessionTimer::T3591);
            subscription_change::on_command_ended(session);
            if !state.has_tunnel() {
                subscription_change::repeat_with_user_plane(session);
                if session.flows.only_removes() {
                    // The UE still has the rules: `resume` sends the command when its user plane is active.
                    return;
                }
            }
            // Rules of which it does not know are removed from UPF and gNB. The command for that deletes what the change removes, too.
            let failed = session.flows.revert();
            return fail_rules(session, env, failed, "the UE did not confirm them");
        }
        let gnb = state.user_plane().and_then(|user_plane| user_plane.gnb);
        send_command(session, env, gnb, self.retransmissions + 1);
    }
}

/// The UE has modified the session (TS 24.501 6.3.2.3).
pub(in crate::smf) fn on_modification_complete(session: &mut SmContext, env: &mut Env<'_>) {
    session.stop(env, SessionTimer::T3591);
    match session.modification.take() {
        Some(_) => {
            subscription_change::on_command_ended(session);
            if !session.flows.is_at_gnb && session.gnb.modifications > 0 {
                // The gNB may refuse yet.
                let added = session.flows.added().into_iter();
                session.gnb.unanswered_flows |= added.fold(0, |bits, qfi| bits | bit(qfi));
            }
            session.flows.complete();
            session.log(env, Level::Info, || format!("modified: {}", describe(session)));
        }
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
    subscription_change::on_command_ended(session);
    let failed = session.flows.revert();
    fail_rules(session, env, failed, "the UE rejects them");
    if cause == GsmCause::InvalidPduSessionIdentity {
        return release::end_and_notify_amf(state.into_held(), session, env);
    }
    state
}

/// The rules of a decision that this SMF does not enforce. Errors of session rules have the cause for rules of both kinds.
fn failure_report(decision: &SmPolicyDecision, failures: Vec<Failure>) -> PartialSuccessReport {
    let mut report = PartialSuccessReport::new(FailureCause::PccRuleEvent);
    report.rule_reports = failures.into_iter().map(Failure::into_report).collect();
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
        report.failure_cause = FailureCause::RulePermanentError;
    }
    report
}

/// Whether the SMF enforces no rule of a decision: neither the PCC rules that it installs, changes or removes, nor its session rules.
fn have_all_failed(decision: &SmPolicyDecision, report: &PartialSuccessReport) -> bool {
    let pcc: Vec<_> = report.rule_reports.iter().flat_map(|report| &report.pcc_rule_ids).collect();
    let session: Vec<_> = report.sess_rule_reports.iter().flat_map(|report| &report.rule_ids).collect();
    let mut session_rules = decision.sess_rules.iter().filter(|(_, rule)| rule.is_some());
    decision.pcc_rules.keys().all(|id| pcc.contains(&id))
        && session_rules.all(|(id, _)| session.contains(&id))
}

/// The refusal of a decision of which no rule is enforced: 400, with a report on each rule (TS 29.512 4.2.3.2, table 5.7.3-2).
fn rule_errors(report: PartialSuccessReport) -> Problem {
    let has_session_rules = !report.sess_rule_reports.is_empty();
    let cause = if has_session_rules { Cause::RulePermanentError } else { Cause::PccRuleEvent };
    let problem = Problem::new(cause).detail(describe_failures(&report));
    let mut errors = ErrorReport::default();
    (errors.rule_reports, errors.sess_rule_reports) = (report.rule_reports, report.sess_rule_reports);
    problem.with(ProblemMore::SmPolicyUpdateNotifyError(Box::new(errors)))
}

/// Why a decision is refused, for the PCF's log.
fn describe_failures(report: &PartialSuccessReport) -> String {
    let of_rule = |report: &RuleReport| {
        let code = report.failure_code.as_ref().map_or("", FailureCode::as_str);
        format!("PCC rule {}: {code}", report.pcc_rule_ids.join(", "))
    };
    let of_rules = report.rule_reports.iter().map(of_rule);
    let of_session = (!report.sess_rule_reports.is_empty()).then(|| "the default flow is not GBR".to_owned());
    of_rules.chain(of_session).collect::<Vec<_>>().join("; ")
}

fn describe(session: &SmContext) -> String {
    let Qos { ambr, five_qi, arp_priority } = &session.qos;
    let flows = session.flows.current.flows();
    format!(
        "session-AMBR {} up, {} down, 5QI {five_qi}, ARP {arp_priority}, {} QoS flows",
        ambr.uplink,
        ambr.downlink,
        1 + flows.len()
    )
}
