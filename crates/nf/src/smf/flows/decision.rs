//! The PCF's decisions on PCC rules (TS 29.512 4.2.6.2), and the binding of rules to QoS flows (TS 23.503 6.1.3.2.4).
//!
//! A rule that this SMF can't enforce fails alone, with the code for the PCF (TS 29.512 5.6.3.9). If it replaces a rule that is in force, that
//! one stays (TS 29.512 4.2.3.2). So does one whose QoS or traffic control data the PCF removes: the rule needs them.

use super::{Content, Flows, Gates, MAX_RULES, Rule, RuleQos};
use crate::kit::{FlowFilter, MAX_PACKET_FILTERS, MAX_RATE};
use crate::smf::context::{DEFAULT_QFI, Qos, ReflectiveQos};
use crate::smf::flows::DEFAULT_RULE;
use pith_ngap::transfer::Arp;
use pith_sbi::common::{self, PreemptionCapability, PreemptionVulnerability};
use pith_sbi::npcf_smpolicycontrol::{
    FailureCode, FlowStatus, PccRule, QosData, RuleReport, RuleStatus, SmPolicyDecision, TrafficControlData,
};
use pith_types::{Ambr, BitRate, five_qi};
use std::sync::Arc;

/// Octets of an identifier of the PCF at most: the session keeps it.
const MAX_NAME: usize = 255;

/// Precedences of rules that UEs make: derived and requested ones.
const PRECEDENCES_OF_UES: std::ops::RangeInclusive<u8> = 70..=99;

/// A rule that this SMF can't enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::smf) struct Failure {
    pub id: Arc<str>,
    pub code: FailureCode,
    /// Whether the rule was in force before, and stays.
    pub is_active: bool,
}

impl Failure {
    /// A rule that is not in force.
    pub(in crate::smf) fn of(id: &Arc<str>, code: FailureCode) -> Self {
        Self { id: Arc::clone(id), code, is_active: false }
    }

    /// The report for the PCF.
    pub(in crate::smf) fn into_report(self) -> RuleReport {
        let status = if self.is_active { RuleStatus::Active } else { RuleStatus::Inactive };
        let mut report = RuleReport::new(vec![self.id], status);
        report.failure_code = Some(self.code);
        report
    }
}

impl Flows {
    /// The rules after a decision, and those that fail. `taken`: rules whose numbers and precedences are not given to others yet.
    pub(in crate::smf) fn after(
        &self,
        decision: &SmPolicyDecision,
        taken: &[&Self],
        (default, reflective): (&Qos, ReflectiveQos),
    ) -> (Self, Vec<Failure>) {
        let (mut flows, mut failures) = (self.clone(), Vec::new());
        for id in decision.pcc_rules.iter().filter(|(_, rule)| rule.is_none()).map(|(id, _)| id) {
            flows.rules.retain(|rule| rule.id != *id);
        }
        for (id, content) in contents(self, decision) {
            let content = content.and_then(|content| check_reflection(content, reflective));
            let result = content.and_then(|content| flows.install(&id, content, (self, taken), default));
            if let Err(code) = result {
                let is_active = flows.find(&id).is_some();
                failures.push(Failure { id, code, is_active });
            }
        }
        (flows, failures)
    }

    /// The rules, none of which is reflective any longer, and those that can't be kept.
    pub(in crate::smf) fn without_reflection(&self, taken: &[&Self], default: &Qos) -> (Self, Vec<Arc<str>>) {
        let (mut flows, mut failed) = (self.clone(), Vec::new());
        for Rule { id, content, .. } in self.rules.iter().filter(|rule| rule.is_reflective()) {
            let content = Content { is_reflective: false, ..content.clone() };
            if flows.install(id, content, (self, taken), default).is_err() {
                flows.rules.retain(|rule| rule.id != *id);
                failed.push(Arc::clone(id));
            }
        }
        (flows, failed)
    }

    /// Installs a rule, in place of one with that identifier. If it fails, nothing changes.
    fn install(
        &mut self,
        id: &Arc<str>,
        content: Content,
        (before, taken): (&Self, &[&Self]),
        default: &Qos,
    ) -> Result<(), FailureCode> {
        if self.find(id).is_some_and(|rule| rule.content == content) {
            return Ok(());
        }
        let others: Vec<&Rule> = self.rules.iter().filter(|rule| rule.id != *id).collect();
        if others.len() >= MAX_RULES {
            return Err(FailureCode::MaxNrQosFlow);
        }
        let filters: usize = others.iter().map(|rule| rule.content.packet_filters()).sum();
        if filters + content.packet_filters() > MAX_PACKET_FILTERS {
            return Err(FailureCode::MaxNrPacketFiltersExceeded);
        }
        let known: Vec<&Rule> = (self.rules.iter().chain(&before.rules))
            .chain(taken.iter().flat_map(|flows| &flows.rules))
            .collect();
        let qfi = bind(&content, &known, default)?;
        // A rule that changes keeps its place: rules with the same precedence are evaluated in the order of their arrival.
        let place = self.rules.iter().position(|rule| rule.id == *id).unwrap_or(self.rules.len());
        let mut slots: Vec<Slot> = self.rules.iter().map(Slot::of).collect();
        let new = Slot { asked: content.precedence, precedence: None };
        if place < slots.len() {
            slots[place] = new;
        } else {
            slots.push(new);
        }
        let used: Vec<u8> = known.iter().map(|rule| rule.precedence).collect();
        let precedences = place_in_order(&slots, place, &used).ok_or(FailureCode::ResLim)?;
        let mut numbers =
            (DEFAULT_RULE + 1..=u8::MAX).filter(|it| known.iter().all(|rule| rule.number != *it));
        let number = numbers.next().ok_or(FailureCode::ResLim)?;
        let rule = Rule { id: Arc::clone(id), number, precedence: precedences[place], qfi, content };
        let mut rules = self.rules.clone();
        if place < rules.len() {
            rules[place] = rule;
        } else {
            rules.push(rule);
        }
        for (rule, precedence) in
            rules.iter_mut().zip(precedences).filter(|(rule, new)| rule.precedence != *new)
        {
            // UPF and UE get another rule.
            (rule.number, rule.precedence) = (numbers.next().ok_or(FailureCode::ResLim)?, precedence);
        }
        self.rules = rules;
        Ok(())
    }
}

/// A rule is reflective only if the UE supports it, and if it has no guaranteed rate (TS 23.501 5.7.5.1, 5.7.2.3).
fn check_reflection(content: Content, reflective: ReflectiveQos) -> Result<Content, FailureCode> {
    let may_be = reflective.is_supported && content.qos.guaranteed.is_none();
    if content.is_reflective && !may_be { Err(FailureCode::UnsuccQosVal) } else { Ok(content) }
}

/// What decides the order of a rule.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// The PCF's precedence.
    asked: u8,
    /// The precedence that the rule has; `None`: it is new.
    precedence: Option<u8>,
}

impl Slot {
    const fn of(rule: &Rule) -> Self {
        Self { asked: rule.content.precedence, precedence: Some(rule.precedence) }
    }
}

/// The precedences of rules after the one at `place` has got one: each has its own (TS 24.501 6.3.2.4), in the order of those of the PCF, equal
/// ones in the order of arrival (TS 23.503 6.3.1). The rule gets the PCF's value or the nearest free one; if there is none between its
/// neighbours, they make room. `used`: values that rules have or had, which no other rule gets.
fn place_in_order(slots: &[Slot], place: usize, used: &[u8]) -> Option<Vec<u8>> {
    let is_free = |value: &u8| !PRECEDENCES_OF_UES.contains(value) && !used.contains(value);
    let asked = slots[place].asked;
    let mut order: Vec<usize> = (0..slots.len()).collect();
    order.sort_by_key(|index| (slots[*index].asked, *index));
    let rank = order.iter().position(|index| *index == place)?;
    let mut values: Vec<u8> = slots.iter().map(|slot| slot.precedence.unwrap_or(0)).collect();
    let above = |rank: usize, values: &[u8]| rank.checked_sub(1).map_or(0, |it| values[order[it]]);
    let low = above(rank, &values);
    let high = order.get(rank + 1).map_or(255, |next| values[*next]);
    let wanted = asked.clamp(1, 254).clamp(low.min(253) + 1, 254);
    let between = (wanted..high).find(is_free).or_else(|| (low + 1..wanted.min(high)).rev().find(is_free));
    if let Some(value) = between {
        values[place] = value;
        return Some(values);
    }
    move_later(&order, rank, &values, is_free).or_else(|| move_earlier(&order, rank, &values, is_free))
}

/// Values that a rule which makes room leaves free before it, if it can: those of later calls.
const ROOM: u8 = 8;

/// The rule at `rank` gets the next free value after its predecessor, and those after it make room.
fn move_later(order: &[usize], rank: usize, values: &[u8], is_free: impl Fn(&u8) -> bool) -> Option<Vec<u8>> {
    let mut values = values.to_vec();
    let mut last = rank.checked_sub(1).map_or(0, |it| values[order[it]]);
    values[order[rank]] = 0;
    for index in &order[rank..] {
        if values[*index] <= last {
            let next = last.checked_add(1)?;
            let roomy = next.saturating_add(if *index == order[rank] { 0 } else { ROOM });
            values[*index] = (roomy..=254).chain(next..=254).find(&is_free)?;
        }
        last = values[*index];
    }
    Some(values)
}

/// The rule at `rank` gets the next free value before its successor, and those before it make room.
fn move_earlier(
    order: &[usize],
    rank: usize,
    values: &[u8],
    is_free: impl Fn(&u8) -> bool,
) -> Option<Vec<u8>> {
    let mut values = values.to_vec();
    let mut next = order.get(rank + 1).map_or(255, |it| values[*it]);
    values[order[rank]] = 255;
    for index in order[..=rank].iter().rev() {
        if values[*index] >= next {
            values[*index] = (1..next).rev().find(&is_free)?;
        }
        next = values[*index];
    }
    Some(values)
}

/// The flow of a rule: the default one, that of a rule with the same 5QI and ARP, or a new one.
fn bind(content: &Content, known: &[&Rule], default: &Qos) -> Result<u8, FailureCode> {
    let RuleQos { five_qi, arp, guaranteed, .. } = content.qos;
    let of_default = Arp { priority_level: default.arp_priority, may_preempt: false, preemptable: true };
    if content.is_of_default_flow && guaranteed.is_some() {
        return Err(FailureCode::UnsuccQosVal);
    }
    if content.is_of_default_flow || (five_qi, arp) == (default.five_qi, of_default) {
        return Ok(DEFAULT_QFI);
    }
    // Also that of the rule which this one replaces.
    let is_same =
        |rule: &&&Rule| rule.qfi != DEFAULT_QFI && (rule.qos().five_qi, rule.qos().arp) == (five_qi, arp);
    if let Some(rule) = known.iter().find(is_same) {
        return Ok(rule.qfi);
    }
    let is_free = |qfi: &u8| known.iter().all(|rule| rule.qfi != *qfi);
    (DEFAULT_QFI + 1..=63).find(is_free).ok_or(FailureCode::MaxNrQosFlow)
}

/// The rules that a decision installs or changes.
fn contents(flows: &Flows, decision: &SmPolicyDecision) -> Vec<(Arc<str>, Result<Content, FailureCode>)> {
    let named = decision.pcc_rules.iter().filter_map(|(id, rule)| Some((id, rule.as_ref()?)));
    let mut contents: Vec<_> =
        named.map(|(id, rule)| (Arc::clone(id), content(flows, id, rule, decision))).collect();
    // Rules whose QoS or traffic control data change, or are removed.
    for rule in flows.rules().filter(|rule| !decision.pcc_rules.contains_key(&rule.id)) {
        let Content { qos_id, tc_id, .. } = &rule.content;
        let has_tc = tc_id.as_ref().is_some_and(|id| decision.traff_cont_decs.contains_key(id));
        if !decision.qos_decs.contains_key(qos_id) && !has_tc {
            continue;
        }
        let unchanged = PccRule::new(Arc::clone(&rule.id));
        contents.push((Arc::clone(&rule.id), content(flows, &rule.id, &unchanged, decision)));
    }
    contents
}

/// The content of a rule; what an update leaves out stays as it is (TS 29.512 4.2.6.2.1).
fn content(
    flows: &Flows,
    id: &Arc<str>,
    rule: &PccRule,
    decision: &SmPolicyDecision,
) -> Result<Content, FailureCode> {
    let former = flows.find(id).map(|rule| &rule.content);
    let names = [Some(id), rule.ref_qos_data.first(), rule.ref_tc_data.first()];
    if names.into_iter().flatten().any(|name| name.len() > MAX_NAME) {
        return Err(FailureCode::ResLim);
    }
    if rule.app_id.is_some() {
        return Err(FailureCode::AppIdErr);
    }
    if rule.ref_cond_data.is_some() {
        return Err(FailureCode::IncorrectCondData);
    }
    if !rule.ref_um_data.is_empty() {
        return Err(FailureCode::NfMal);
    }
    let filters = match (&rule.flow_infos[..], former) {
        ([], Some(former)) => former.filters.clone(),
        ([], None) => return Err(FailureCode::MissFlowInfo),
        (infos, _) => {
            let filters: Option<Vec<_>> =
                infos.iter().take(MAX_PACKET_FILTERS + 1).map(FlowFilter::of).collect();
            filters.ok_or(FailureCode::IncorFlowInfo)?
        }
    };
    if filters.len() > MAX_PACKET_FILTERS {
        return Err(FailureCode::MaxNrPacketFiltersExceeded);
    }
    let qos_id = rule.ref_qos_data.first().or(former.map(|former| &former.qos_id));
    let qos_id = Arc::clone(qos_id.ok_or(FailureCode::NoQosFlowBound)?);
    let (qos, is_of_default_flow, is_reflective) = match decision.qos_decs.get(&qos_id) {
        Some(None) => return Err(FailureCode::UnknownRefId),
        Some(Some(data)) => {
            let qos = qos(data).ok_or(FailureCode::UnsuccQosVal)?;
            (qos, data.def_qos_flow_indication == Some(true), data.reflective_qos == Some(true))
        }
        None => {
            let known = flows.rules().find(|rule| rule.content.qos_id == qos_id);
            let known = &known.ok_or(FailureCode::UnknownRefId)?.content;
            (known.qos, known.is_of_default_flow, known.is_reflective)
        }
    };
    let tc_id = rule.ref_tc_data.first().or(former.and_then(|former| former.tc_id.as_ref())).cloned();
    let gates = match &tc_id {
        None => Gates::OPEN,
        Some(id) => match decision.traff_cont_decs.get(id) {
            Some(None) => return Err(FailureCode::UnknownRefId),
            Some(Some(data)) => gates(data),
            None => {
                let known = flows.rules().find(|rule| rule.content.tc_id.as_ref() == Some(id));
                known.ok_or(FailureCode::UnknownRefId)?.content.gates
            }
        },
    };
    let asked = rule.precedence.map(|precedence| u8::try_from(precedence).unwrap_or(u8::MAX));
    let precedence = asked.or(former.map(|former| former.precedence)).unwrap_or(u8::MAX);
    Ok(Content { precedence, filters, qos_id, qos, is_of_default_flow, is_reflective, tc_id, gates })
}

fn gates(data: &TrafficControlData) -> Gates {
    match data.flow_status {
        None | Some(FlowStatus::Enabled) => Gates::OPEN,
        Some(FlowStatus::EnabledUplink) => Gates { uplink: true, downlink: false },
        Some(FlowStatus::EnabledDownlink) => Gates { uplink: false, downlink: true },
        Some(_) => Gates { uplink: false, downlink: false },
    }
}

/// The QoS of a rule. `None`: it contradicts itself, guarantees nothing although it is a GBR one, or has a 5QI whose characteristics gNBs do not know.
fn qos(data: &QosData) -> Option<RuleQos> {
    let five_qi = data.five_qi?;
    let pair = |uplink: Option<BitRate>, downlink: Option<BitRate>| {
        let none = BitRate(0);
        (uplink.is_some() || downlink.is_some())
            .then(|| Ambr { uplink: uplink.unwrap_or(none), downlink: downlink.unwrap_or(none) })
    };
    let guaranteed = pair(data.gbr_ul, data.gbr_dl);
    let maximum = pair(data.maxbr_ul, data.maxbr_dl).or(guaranteed);
    let exceeds = |guaranteed: Ambr, maximum: Ambr| {
        guaranteed.uplink > maximum.uplink || guaranteed.downlink > maximum.downlink
    };
    let is_right = five_qi::is_gbr(five_qi) == guaranteed.is_some()
        && five_qi::is_standardised(five_qi)
        && guaranteed.is_none_or(|it| it.uplink.max(it.downlink) > BitRate(0))
        && [guaranteed, maximum].iter().flatten().all(|it| it.uplink.max(it.downlink) <= MAX_RATE)
        && !guaranteed.zip(maximum).is_some_and(|(guaranteed, maximum)| exceeds(guaranteed, maximum));
    let arp = arp(data.arp.as_ref())?;
    is_right.then_some(RuleQos { five_qi, arp, guaranteed, maximum })
}

fn arp(arp: Option<&common::Arp>) -> Option<Arp> {
    let arp = arp?;
    (1..=15).contains(&arp.priority_level).then(|| Arp {
        priority_level: arp.priority_level,
        may_preempt: arp.preempt_cap == PreemptionCapability::MayPreempt,
        preemptable: arp.preempt_vuln == PreemptionVulnerability::Preemptable,
    })
}
