//! The PCC rules of a session besides its session rule (TS 29.512 4.2.3, 4.2.6.2): those of an operator, and those of applications
//! ([`super::applications`]).
//!
//! ```text
//!  operator, application ─> rule      ─> SMF: UpdateNotify with all rules of the session
//!  SMF ─> answer, or UpdateSmPolicy   rules that the SMF does not enforce end; their application is notified
//! ```
//!
//! Each notification has all rules, so that it may be repeated: the SMF ignores what does not change. One that gets no answer
//! or an error (5xx) is repeated some times (`fabric/retransmission.rs`), and after a restart.

use super::{Association, Context, Pcf, session};
use crate::kit::{DescribedFlow, Key, Level, MAX_RATE, Outbox, PolicyRule, Tag, Target, shrink};
use pith_sbi::common::{Arp, PreemptionCapability, PreemptionVulnerability};
use pith_sbi::npcf_smpolicycontrol::{
    FlowInformation, PccRule, QosData, RuleReport, RuleStatus, SmPolicyDecision, SmPolicyNotification,
    SmPolicyUpdateContextData, SmPolicyUpdateNotify, SmPolicyUpdateNotifyResult, TrafficControlData,
};
use pith_sbi::{Problem, ProblemMore, Reply, Response};
use pith_types::{BitRate, Supi};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Notifications of SMFs that are not answered, by session: the number of the latest one, which is the step of its call. Its answer counts
/// for all rules; that of an earlier one says nothing of what has changed since.
#[derive(Debug, Default)]
pub(super) struct Notifications {
    last: u32,
    latest: HashMap<Key, u32>,
}

impl Notifications {
    /// The number of a notification; never 0, the step of other calls.
    fn begin(&mut self, session: Key) -> u32 {
        self.last = self.last.wrapping_add(1).max(1);
        self.latest.insert(session, self.last);
        self.last
    }

    /// A notification was answered. Returns whether it is the latest one of the session.
    fn end(&mut self, session: Key, number: u32) -> bool {
        let is_latest = self.latest.get(&session) == Some(&number);
        if is_latest {
            self.latest.remove(&session);
            shrink(&mut self.latest);
        }
        is_latest
    }
}

/// Rules of a session at most.
pub(super) const MAX_RULES: usize = 32;

/// Octets of a rule's name at most.
const MAX_NAME: usize = 64;

/// Flow descriptions of a rule at most, and octets of one.
const MAX_FLOWS: usize = 15;
const MAX_DESCRIPTION: usize = 512;

/// The PCC rules of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Rules {
    pub(super) rules: BTreeMap<Arc<str>, Rule>,
    /// Rules that the SMF has not taken or refused yet, and those that it is to remove.
    pub(super) unanswered: Vec<Arc<str>>,
    /// Application sessions, by their numbers.
    pub(super) applications: BTreeMap<u32, super::applications::Application>,
    /// Number of the last application session, also if that is deleted; 0: there was none.
    pub(super) last: u32,
}

/// A rule, and its QoS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Rule {
    pub(super) pcc: PccRule,
    pub(super) qos: QosData,
    /// Its gates; those of a rule without are open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tc: Option<TrafficControlData>,
    /// The application session that it belongs to; `None`: an operator has made it.
    pub(super) application: Option<u32>,
}

impl Rules {
    /// Whether the session has none, and has had no application session: the number of a deleted one is not used again.
    pub(super) fn is_empty(&self) -> bool {
        let has_none = self.rules.is_empty() && self.unanswered.is_empty() && self.applications.is_empty();
        has_none && self.last == 0
    }

    /// Adds the rules to a decision.
    pub(super) fn add_to(&self, decision: &mut SmPolicyDecision) {
        for (id, Rule { pcc, qos, tc, .. }) in &self.rules {
            decision.pcc_rules.insert(Arc::clone(id), Some(pcc.clone()));
            decision.qos_decs.insert(Arc::clone(id), Some(qos.clone()));
            if let Some(tc) = tc {
                decision.traff_cont_decs.insert(Arc::clone(id), Some(tc.clone()));
            }
        }
    }

    /// All rules, and `null` for those that the SMF is to remove.
    fn notification(&self) -> SmPolicyDecision {
        let mut decision = SmPolicyDecision::default();
        for id in self.unanswered.iter().filter(|id| !self.rules.contains_key(*id)) {
            decision.pcc_rules.insert(Arc::clone(id), None);
            decision.qos_decs.insert(Arc::clone(id), None);
            if super::applications::is_of_application(id) {
                decision.traff_cont_decs.insert(Arc::clone(id), None);
            }
        }
        self.add_to(&mut decision);
        decision
    }

    /// Adds or replaces a rule.
    pub(super) fn put(&mut self, rule: Rule) {
        let id = Arc::clone(&rule.pcc.pcc_rule_id);
        if self.rules.get(&id) == Some(&rule) {
            return;
        }
        self.rules.insert(Arc::clone(&id), rule);
        self.note(id);
    }

    /// Removes a rule. Returns whether there was one.
    pub(super) fn remove(&mut self, id: &str) -> bool {
        match self.rules.remove_entry(id) {
            Some((id, _)) => {
                self.note(id);
                true
            }
            None => false,
        }
    }

    fn note(&mut self, id: Arc<str>) {
        if !self.unanswered.contains(&id) {
            self.unanswered.push(id);
        }
    }

    /// The SMF does not enforce these rules: they end. Returns the application sessions that had them, with their rules.
    fn end(&mut self, failed: &[Arc<str>]) -> BTreeMap<u32, Vec<Arc<str>>> {
        let concerned = self.of_applications(failed);
        for id in failed {
            self.unanswered.retain(|it| it != id);
            self.rules.remove(id);
        }
        concerned
    }

    /// The application sessions that have these rules, with their rules.
    fn of_applications(&self, ids: &[Arc<str>]) -> BTreeMap<u32, Vec<Arc<str>>> {
        let mut concerned = BTreeMap::<u32, Vec<Arc<str>>>::new();
        for id in ids {
            if let Some(Rule { application: Some(number), .. }) = self.rules.get(id) {
                concerned.entry(*number).or_default().push(Arc::clone(id));
            }
        }
        concerned
    }
}

/// Protocols of packets from which UEs derive QoS rules: TCP, UDP, ESP (TS 23.501 5.7.5.2).
const REFLECTED: [u8; 3] = [6, 17, 50];

/// The rule of an operator. The error says what is wrong.
fn rule_of(rule: &PolicyRule) -> Result<Rule, String> {
    let is_name = |name: &str| {
        (1..=MAX_NAME).contains(&name.len())
            && name.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_'))
    };
    if !is_name(&rule.name) {
        return Err("the name of a rule has letters, digits, '-' and '_', at most 64".into());
    }
    if !(1..=MAX_FLOWS).contains(&rule.flows.len()) {
        return Err(format!("a rule has 1 to {MAX_FLOWS} flows"));
    }
    if !(1..=15).contains(&rule.priority_level) {
        return Err("the priority level of ARP is 1 to 15".into());
    }
    let mut rates = [rule.guaranteed, rule.maximum].into_iter().flatten();
    if rates.any(|rates| rates.uplink.max(rates.downlink) > MAX_RATE) {
        return Err(format!("a rate is at most {MAX_RATE}"));
    }
    if rule.guaranteed.is_some_and(|rates| rates.uplink.max(rates.downlink) == BitRate(0)) {
        return Err("a guaranteed rate is greater than 0, in one direction at least".into());
    }
    let id: Arc<str> = format!("operator-{}", rule.name).into();
    let mut qos = QosData::new(Arc::clone(&id));
    qos.five_qi = Some(rule.five_qi);
    qos.arp = Some(Arp::new(
        rule.priority_level,
        PreemptionCapability::NotPreempt,
        PreemptionVulnerability::Preemptable,
    ));
    if let Some(rates) = rule.guaranteed {
        let maximum = rule.maximum.unwrap_or(rates);
        (qos.gbr_ul, qos.gbr_dl) = (Some(rates.uplink), Some(rates.downlink));
        (qos.maxbr_ul, qos.maxbr_dl) = (Some(maximum.uplink), Some(maximum.downlink));
    } else if let Some(rates) = rule.maximum {
        (qos.maxbr_ul, qos.maxbr_dl) = (Some(rates.uplink), Some(rates.downlink));
    }
    if rule.reflective && rule.guaranteed.is_some() {
        return Err("a rule with a guaranteed rate is not reflective".into());
    }
    qos.reflective_qos = rule.reflective.then_some(true);
    let mut pcc = PccRule::new(Arc::clone(&id));
    for flow in &rule.flows {
        if flow.len() > MAX_DESCRIPTION {
            return Err(format!("a flow description has at most {MAX_DESCRIPTION} characters"));
        }
        let mut flow_information = flow_information(flow);
        let Some(described) = DescribedFlow::of(&flow_information) else {
            return Err(format!("not a flow description that can be enforced: {flow}"));
        };
        if rule.reflective {
            if described.protocol.is_some_and(|protocol| !REFLECTED.contains(&protocol)) {
                return Err(format!("UEs derive rules for TCP, UDP and ESP only: {flow}"));
            }
            // The UE derives its rules instead.
            flow_information.packet_filter_usage = None;
        }
        pcc.flow_infos.push(flow_information);
    }
    pcc.precedence = Some(rule.precedence.into());
    pcc.ref_qos_data = vec![id];
    Ok(Rule { pcc, qos, tc: None, application: None })
}

/// A packet filter of both directions, which the UE gets, too (TS 29.512 5.6.2.14).
pub(super) fn flow_information(description: &str) -> FlowInformation {
    let mut flow = FlowInformation::default();
    flow.flow_description = Some(description.into());
    flow.packet_filter_usage = Some(true);
    flow
}

impl Pcf {
    /// The session association of that identity, of those of all SMFs the latest.
    pub(super) fn find_session(&self, supi: &Supi, pdu_session_id: u8) -> Option<Key> {
        let mark = super::latest::session_mark(supi, pdu_session_id);
        let is_it = |key: &Key| {
            self.associations.view(*key).is_none_or(|association| match &association.context {
                Context::Session(context) => {
                    context.supi == *supi && context.pdu_session_id == pdu_session_id
                }
                Context::Access(_) => false,
            })
        };
        self.associations.keys_with(|of| of.session == mark).filter(is_it).last()
    }

    /// Changes the rules of a session by an operator's order; `None`: this shard does not have the session. The value is why not.
    pub(super) fn order_rules(
        &mut self,
        (supi, pdu_session_id): (&Supi, u8),
        out: &mut Outbox,
        change: impl FnOnce(&mut Rules, &Context) -> Result<(), String>,
    ) -> Option<Option<String>> {
        let key = self.find_session(supi, pdu_session_id)?;
        if self.associations.misses(key) {
            return Some(Some("its context is being read: repeat the command".into()));
        }
        let association = self.associations.get_mut(key).filter(|it| it.creating.is_none())?;
        let result = change(association.rules.get_or_insert_default(), &association.context);
        self.settle(key, out);
        Some(result.err())
    }

    /// Adds or replaces an operator's rule. It is reflective only if the UE supports that (TS 29.512 5.6.2.3, refQosIndication).
    pub(super) fn add_rule(rules: &mut Rules, context: &Context, rule: &PolicyRule) -> Result<(), String> {
        if rule.reflective && !supports_reflective_qos(context) {
            return Err("the UE does not support reflective QoS in this session".into());
        }
        let rule = rule_of(rule)?;
        if rules.rules.len() >= MAX_RULES && !rules.rules.contains_key(&rule.pcc.pcc_rule_id) {
            return Err(format!("a session has at most {MAX_RULES} rules"));
        }
        rules.put(rule);
        Ok(())
    }

    /// Removes an operator's rule.
    pub(super) fn remove_rule(rules: &mut Rules, name: &str) -> Result<(), String> {
        if rules.remove(&format!("operator-{name}")) {
            return Ok(());
        }
        Err(format!("the session has no rule '{name}' of an operator: 'pith qos list' shows all rules"))
    }

    /// The rules of a session may have changed: notifies the SMF, and stores them.
    pub(super) fn settle(&mut self, key: Key, out: &mut Outbox) {
        let uri = self.session_uri(key);
        let Some(association) = self.associations.get_mut(key) else { return };
        if association.rules.as_ref().is_some_and(|rules| rules.is_empty()) {
            association.rules = None;
        }
        if let (Context::Session(context), Some(rules)) = (&association.context, &association.rules)
            && !rules.unanswered.is_empty()
        {
            let mut body = SmPolicyNotification::default();
            body.resource_uri = Some(uri);
            body.sm_policy_decision = Some(rules.notification());
            let uri = context.notification_uri.clone();
            let target = Target::Root(Arc::clone(&uri.root));
            let number = self.notifications.begin(key);
            out.call(Tag::new(key.to_u64(), number), target, SmPolicyUpdateNotify { uri, body }.into());
        }
        self.changed(key);
    }

    /// The SMF's answer to a notification.
    pub(super) fn notified(&mut self, tag: Tag, reply: Reply, out: &mut Outbox) {
        let key = Key::from_u64(tag.owner);
        if !self.notifications.end(key, tag.step) {
            return;
        }
        let Some(association) = self.associations.get_mut(key) else { return };
        let Some(rules) = &mut association.rules else { return };
        let refused = match reply {
            Ok(Response::SmPolicyUpdateNotifyResult(result)) => Refused::in_part(&result),
            Ok(_) => Refused::default(),
            Err(problem) if is_refusal(&problem) => {
                out.log(Level::Warn, || format!("the SMF refuses PCC rules: {problem}"));
                Refused::altogether(&rules.unanswered, &problem)
            }
            Err(problem) => {
                // The next notification has them, too.
                return out.log(Level::Warn, || format!("the SMF does not take PCC rules: {problem}"));
            }
        };
        rules.unanswered.clear();
        let kept = (&rules.of_applications(&refused.kept), &RuleStatus::Active);
        super::applications::notify_failures(&self.root, &self.references, association, kept, out);
        self.end_rules(key, &refused.ended, out);
    }

    /// The SMF reports rules that are not enforced (TS 29.512 4.2.4.15), new addresses (4.2.4.3), changed subscribed QoS (4.2.4.2), and whether the UE
    /// supports reflective QoS (trigger REF_QOS_IND_CH).
    pub(super) fn updated(&mut self, key: Key, body: &SmPolicyUpdateContextData, out: &mut Outbox) {
        if let Some(Association { context: Context::Session(context), .. }) = self.associations.get_mut(key) {
            context.ipv4_address = match body.rel_ipv4_address {
                released if released.is_some() && released == context.ipv4_address => body.ipv4_address,
                _ => body.ipv4_address.or(context.ipv4_address),
            };
            if body.rel_ipv6_address_prefix.is_some()
                && body.rel_ipv6_address_prefix == context.ipv6_address_prefix
            {
                context.ipv6_address_prefix = None;
            }
            if body.ipv6_address_prefix.is_some() {
                context.ipv6_address_prefix.clone_from(&body.ipv6_address_prefix);
            }
            context.subs_sess_ambr = body.subs_sess_ambr.or(context.subs_sess_ambr);
            if body.subs_def_qos.is_some() {
                context.subs_def_qos.clone_from(&body.subs_def_qos);
            }
            context.ref_qos_indication = body.ref_qos_indication.or(context.ref_qos_indication);
        }
        let failed = reported(&body.rule_reports, &RuleStatus::Inactive);
        self.end_rules(key, &failed, out);
        if body.ref_qos_indication == Some(false) {
            self.end_reflection(key, out);
        }
    }

    /// The UE no longer supports reflective QoS: it gets the flows of such rules instead, and the SMF is notified.
    fn end_reflection(&mut self, key: Key, out: &mut Outbox) {
        let rules = self.associations.get_mut(key).and_then(|association| association.rules.as_mut());
        let Some(rules) = rules else { return };
        let is_reflective = |rule: &&Rule| rule.qos.reflective_qos == Some(true);
        let changed: Vec<_> = rules.rules.values().filter(is_reflective).cloned().collect();
        if changed.is_empty() {
            return;
        }
        for mut rule in changed {
            rule.qos.reflective_qos = None;
            rule.pcc.flow_infos.iter_mut().for_each(|flow| flow.packet_filter_usage = Some(true));
            rules.put(rule);
        }
        self.settle(key, out);
    }

    fn end_rules(&mut self, key: Key, failed: &[Arc<str>], out: &mut Outbox) {
        let Some(association) = self.associations.get_mut(key) else { return };
        let Some(rules) = association.rules.as_mut() else { return self.changed(key) };
        if !failed.is_empty() {
            let ended = rules.end(failed);
            let ended = (&ended, &RuleStatus::Inactive);
            super::applications::notify_failures(&self.root, &self.references, association, ended, out);
        }
        if association.rules.as_ref().is_some_and(|rules| rules.is_empty()) {
            association.rules = None;
        }
        self.changed(key);
    }

    /// Repeats notifications that the former run sent, or was about to send.
    pub(super) fn repeat_notifications(&mut self, out: &mut Outbox) {
        for key in std::mem::take(&mut self.unanswered) {
            self.settle(key, out);
        }
    }

    /// The decision of a session, with its rules.
    pub(super) fn decision(association: &Association) -> Option<SmPolicyDecision> {
        let Context::Session(context) = &association.context else { return None };
        let mut decision = session::decide(context);
        if let Some(rules) = &association.rules {
            rules.add_to(&mut decision);
        }
        Some(decision)
    }
}

fn supports_reflective_qos(context: &Context) -> bool {
    matches!(context, Context::Session(data) if data.ref_qos_indication == Some(true))
}

fn is_refusal(problem: &Problem) -> bool {
    (400..500).contains(&problem.status) && problem.status != 404 && problem.status != 429
}

/// What the SMF has refused of a notification (TS 29.512 4.2.3.16, table 5.7.3-2).
#[derive(Debug, Default)]
struct Refused {
    /// These rules end.
    ended: Vec<Arc<str>>,
    /// The SMF keeps a former version of these.
    kept: Vec<Arc<str>>,
}

impl Refused {
    fn in_part(result: &SmPolicyUpdateNotifyResult) -> Self {
        let SmPolicyUpdateNotifyResult::PartialSuccess(reports) = result else { return Self::default() };
        let of = |status| reports.iter().flat_map(|report| reported(&report.rule_reports, status)).collect();
        Self { ended: of(&RuleStatus::Inactive), kept: of(&RuleStatus::Active) }
    }

    /// The rules of the notification end, without those of which the SMF keeps a former version, and others that it reports as inactive.
    fn altogether(notified: &[Arc<str>], problem: &Problem) -> Self {
        let Some(ProblemMore::SmPolicyUpdateNotifyError(report)) = &problem.more else {
            return Self { ended: notified.to_vec(), kept: Vec::new() };
        };
        let kept = reported(&report.rule_reports, &RuleStatus::Active);
        let mut ended: Vec<_> = notified.iter().filter(|id| !kept.contains(id)).cloned().collect();
        let others = reported(&report.rule_reports, &RuleStatus::Inactive);
        ended.extend(others.into_iter().filter(|id| !notified.contains(id)));
        Self { ended, kept }
    }
}

/// The rules that are reported with that status.
fn reported(reports: &[RuleReport], status: &RuleStatus) -> Vec<Arc<str>> {
    let of_status = reports.iter().filter(|report| report.rule_status == *status);
    of_status.flat_map(|report| report.pcc_rule_ids.iter().cloned()).collect()
}
