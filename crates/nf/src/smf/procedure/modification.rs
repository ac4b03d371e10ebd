//! Network-requested PDU session modification, at the PCF's wish (TS 23.502 4.3.3.2; TS 29.512 4.2.3; TS 24.501 6.3.2).
//!
//! ```text
//!  PCF ─> SmPolicyUpdateNotify      step 1b   answered at once: what can be carried out, and what can't
//!         AwaitingRates             2         <─ UPFs: session-AMBR
//!         Established               3 to 9    command ─> AMF ─> UE, gNB    T3591, sent again up to 4 times
//!  UE ─>  PDU SESSION MODIFICATION COMPLETE   10
//!  PCF ─> SmPolicyTerminateNotify             the session is released (release.rs)
//! ```
//!
//! A session has the one default QoS flow: session rules are carried out, PCC rules are refused.

use super::super::context::{Enforcing, Qos, State};
use super::super::{NOBODY, Smf, n1, n2, n4};
use super::chain;
use super::establishment::{authorise, transfer};
use crate::kit::{Caller, Key, Level, N4Error, Outbox, Target, Timer};
use pith_nas::GsmCause;
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

impl Smf {
    /// The PCF has changed its decision (TS 29.512 4.2.3.2). What can't be carried out is told: in part, or as a whole.
    pub(in crate::smf) fn policy_changed(
        &mut self,
        key: Key,
        from: Caller,
        body: SmPolicyNotification,
        out: &mut Outbox,
    ) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        let Some(decision) = body.sm_policy_decision else {
            return out.answer(from, Response::NoContent);
        };
        let mut qos = context.decided.clone().unwrap_or_else(|| context.qos.clone());
        let report = failures(&decision);
        let has_session_rules =
            decision.sess_rules.values().flatten().count() > report.sess_rule_reports.len();
        if report.sess_rule_reports.is_empty() {
            authorise(&mut qos, &decision);
        }
        match (report.rule_reports.is_empty() && report.sess_rule_reports.is_empty(), has_session_rules) {
            (true, _) => out.answer(from, Response::NoContent),
            (false, true) => {
                let result = SmPolicyUpdateNotifyResult::PartialSuccess(vec![report]);
                out.answer(from, Response::SmPolicyUpdateNotifyResult(Box::new(result)));
            }
            (false, false) => {
                let problem = Problem::new(Cause::UnprocessableRequest);
                return out
                    .refuse(from, problem.detail("this SMF enforces session rules of non-GBR QoS only"));
            }
        }
        if let Some(cause) = &decision.rel_cause {
            return self.policy_ended(key, cause, out);
        }
        let Some(context) = self.contexts.get_mut(key) else { return };
        if matches!(context.state, State::AwaitingSubscriptionData(_) | State::AwaitingPolicy) {
            context.qos = qos;
            return;
        }
        context.decided = Some(qos).filter(|qos| *qos != context.qos);
        self.tend_policy(key, out);
    }

    /// The PCF ends the policy association, and with it the session (TS 29.512 4.2.3.3): the UE may ask for it again at
    /// once if the PCF wants that.
    pub(in crate::smf) fn policy_ended(
        &mut self,
        key: Key,
        cause: &SmPolicyAssociationReleaseCause,
        out: &mut Outbox,
    ) {
        self.log(key, Level::Info, out, |_| format!("the PCF ends the session: {}", cause.as_str()));
        let cause = match cause {
            SmPolicyAssociationReleaseCause::ReactivationRequested => GsmCause::ReactivationRequested,
            SmPolicyAssociationReleaseCause::InsufficientRes => GsmCause::InsufficientResources,
            _ => GsmCause::RegularDeactivation,
        };
        self.withdraw(key, cause, out);
    }

    /// A session that stands, and of which the PCF has decided something else: the anchor goes first.
    pub(in crate::smf) fn tend_policy(&mut self, key: Key, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        let (State::Established, Some(anchor)) = (&context.state, context.anchor) else { return };
        let Some(decided) = context.decided.take() else { return };
        context.qos = decided;
        context.state = State::AwaitingRates(Enforcing::Anchor);
        let message = n4::new_rates(context);
        self.ask_upf(key, anchor.upf, anchor.seid, message, out);
    }

    /// A UPF answered (step 2b).
    pub(in crate::smf) fn rates_enforced(
        &mut self,
        key: Key,
        upf: Enforcing,
        result: Result<Message, N4Error>,
        out: &mut Outbox,
    ) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        context.state = State::Established;
        if let Err(why) = chain::modified(result) {
            self.log(key, Level::Warn, out, |_| format!("the UPF does not take the PCF's rates: {why}"));
            return self.end_and_tell_amf(key, out);
        }
        let front = context.front.as_ref().map(|front| front.session).filter(|_| upf == Enforcing::Anchor);
        if let Some(front) = front {
            context.state = State::AwaitingRates(Enforcing::Front);
            let message = n4::new_rates(context);
            return self.ask_upf(key, front.upf, front.seid, message, out);
        }
        self.send_modification_command(key, 0, out);
        self.go_on(key, out);
    }

    /// PDU SESSION MODIFICATION COMMAND, and what the gNB is told if it has resources (steps 3 to 5).
    fn send_modification_command(&mut self, key: Key, retransmissions: u8, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        context.modifying = Some(retransmissions);
        let n2 = context.gnb.map(|_| (NgapIeType::PduResModReq, n2::modify_qos_request(context)));
        let request = transfer(context, Some(n1::modification_command(context)), n2);
        out.call(NOBODY, Target::Root(context.amf.root.clone()), request.into());
        out.start(key.to_u64(), Timer::T3591, self.config.t3591);
    }

    /// T3591 ran out: the command again, or an end to it (TS 24.501 6.3.2.5 a). UPF and gNB keep the new rates.
    pub(in crate::smf) fn modification_command_again(&mut self, key: Key, out: &mut Outbox) {
        let most = self.config.retransmissions;
        let Some(context) = self.contexts.get_mut(key) else { return };
        match context.modifying.take() {
            Some(retransmissions) if retransmissions < most => {
                self.send_modification_command(key, retransmissions + 1, out);
            }
            Some(_) => {
                self.log(key, Level::Warn, out, |_| "the UE does not confirm the modification".to_owned());
            }
            None => {}
        }
    }

    /// The UE has taken note (TS 24.501 6.3.2.3).
    pub(in crate::smf) fn modification_completed(&mut self, key: Key, out: &mut Outbox) {
        out.stop(key.to_u64(), Timer::T3591);
        let is_awaited = self.contexts.get_mut(key).and_then(|context| context.modifying.take()).is_some();
        if is_awaited {
            self.log(key, Level::Info, out, |context| format!("modified: {}", describe(&context.qos)));
        }
    }

    /// The UE has not (TS 24.501 6.3.2.4): one that does not know the session has none.
    pub(in crate::smf) fn modification_rejected(&mut self, key: Key, cause: GsmCause, out: &mut Outbox) {
        out.stop(key.to_u64(), Timer::T3591);
        let is_awaited = self.contexts.get_mut(key).and_then(|context| context.modifying.take()).is_some();
        if !is_awaited {
            return;
        }
        self.log(key, Level::Warn, out, |_| format!("the UE rejects the modification: {cause}"));
        if cause == GsmCause::InvalidPduSessionIdentity {
            self.end_and_tell_amf(key, out);
        }
    }
}

/// What of a decision this SMF does not carry out.
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
