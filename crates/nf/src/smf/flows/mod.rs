//! The QoS flows of a session besides the default one (TS 23.501 5.7; TS 23.503 6.1.3.2.4; TS 29.512 4.2.6).
//!
//! The PCF decides PCC rules. A rule has packet filters, QoS and a precedence; rules with the same 5QI and ARP are bound to one QoS
//! flow, and rules with those of the default flow to that. The flows follow from the rules: a flow exists while a rule is bound to it, and its
//! bit rates are the sums of theirs.
//!
//! | | from a rule | from a flow |
//! |---|---|---|
//! | UPF | 2 PDRs, a QER with gates, rates and RQI | the QFI in the QER |
//! | gNB | | an item of the lists to set up, add or modify, or release |
//! | UE | a QoS rule, if the UE gets its filters | a QoS flow description |
//!
//! The downlink packets of a reflective rule have the RQI, from which a UE without the filters derives QoS rules (TS 23.501 5.7.5.3).
//!
//! A rule that changes is another rule: with a number that neither the rules in force nor those before have. So UPF and UE get only
//! creations and deletions.

mod decision;

use super::context::DEFAULT_QFI;
use crate::kit::document::{Pack, Reader, UnpackError, Writer, pack_struct};
use crate::kit::{FlowFilter, MAX_RATE};
pub(super) use decision::Failure;
use pith_nas::ie::{
    FlowOperation, FlowParameter, PrecedenceAndQfi, QosFlowDescription, QosRule, RuleOperation,
};
use pith_ngap::transfer::{Arp, GbrQos, QosFlow};
use pith_types::{Ambr, BitRate};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// QoS rule identifier of the default rule. Other rules have higher ones.
pub(super) const DEFAULT_RULE: u8 = 1;

/// PCC rules of a session at most.
const MAX_RULES: usize = 15;

/// The QoS of a PCC rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RuleQos {
    pub five_qi: u8,
    pub arp: Arp,
    /// Guaranteed bit rates of a GBR rule.
    pub guaranteed: Option<Ambr>,
    /// Maximum bit rates; a GBR rule has them.
    pub maximum: Option<Ambr>,
}

/// Which packets of a rule pass (TS 29.512 5.6.2.10, FlowStatus).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gates {
    pub uplink: bool,
    pub downlink: bool,
}

impl Gates {
    const OPEN: Self = Self { uplink: true, downlink: true };
}

/// A PCC rule in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    /// The PCF's identifier.
    pub id: Arc<str>,
    /// Its number in the session: the QoS rule identifier, 2 to 255.
    pub number: u8,
    /// Precedence of the QoS rule and the PDRs, 1 to 254; no other rule has it.
    pub precedence: u8,
    /// The QoS flow that it is bound to.
    pub qfi: u8,
    content: Content,
}

/// What the PCF decides of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Content {
    /// The PCF's precedence.
    precedence: u8,
    filters: Vec<FlowFilter>,
    qos_id: Arc<str>,
    qos: RuleQos,
    /// Whether the rule is bound to the default flow whatever its QoS.
    is_of_default_flow: bool,
    /// Whether the UE derives QoS rules from its downlink packets.
    is_reflective: bool,
    tc_id: Option<Arc<str>>,
    gates: Gates,
}

/// The PCC rules of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Flows {
    rules: Vec<Rule>,
}

/// The flows of a session, and their change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SessionFlows {
    /// The rules in force, or that a change in progress puts in force.
    pub current: Flows,
    /// Those before the change in progress, until the UE has answered.
    pub former: Option<Flows>,
    /// Those of the PCF's last decision, until the session can apply it.
    pub wanted: Option<Flows>,
    /// Flows that the gNB has refused, until they are removed: a bit for each QFI.
    pub refused: u64,
    /// The gNB has answered the change in progress.
    pub is_at_gnb: bool,
    /// Downlink packets of new rules use the default flow until the gNB has their flows.
    pub awaits_gnb: bool,
    /// Flows that the target gNB of a handover has refused: a bit for each QFI.
    pub refused_by_target: u64,
    /// Flows that the target gNB of a handover has, until downlink packets are sent to it: a bit for each QFI.
    pub at_target: u64,
    /// Rules that a failed change has removed, which the UE may still have: until the next command, which deletes them, is confirmed or has failed,
    /// too. `refused` has those of their flows that the gNB has released.
    pub left_at_ue: Flows,
}

pack_struct!(Arp { priority_level, may_preempt, preemptable });
pack_struct!(RuleQos { five_qi, arp, guaranteed, maximum });
pack_struct!(Gates { uplink, downlink });
pack_struct!(Rule { id, number, precedence, qfi, content });

/// Without whether the rule is reflective, which is in a section of its own.
impl Pack for Content {
    fn pack(&self, writer: &mut Writer<'_>) {
        let Self { precedence, filters, qos_id, qos, is_of_default_flow, is_reflective: _, tc_id, gates } =
            self;
        precedence.pack(writer);
        filters.pack(writer);
        qos_id.pack(writer);
        qos.pack(writer);
        is_of_default_flow.pack(writer);
        tc_id.pack(writer);
        gates.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let (precedence, filters, qos_id, qos, is_of_default_flow) = Pack::unpack(reader)?;
        let (tc_id, gates) = Pack::unpack(reader)?;
        Ok(Self { precedence, filters, qos_id, qos, is_of_default_flow, is_reflective: false, tc_id, gates })
    }
}

/// Without the flows at the target gNB and the rules left at the UE, which are in sections of their own.
impl Pack for SessionFlows {
    fn pack(&self, writer: &mut Writer<'_>) {
        let Self {
            current,
            former,
            wanted,
            refused,
            is_at_gnb,
            awaits_gnb,
            refused_by_target,
            at_target: _,
            left_at_ue: _,
        } = self;
        current.pack(writer);
        former.pack(writer);
        wanted.pack(writer);
        refused.pack(writer);
        is_at_gnb.pack(writer);
        awaits_gnb.pack(writer);
        refused_by_target.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let (current, former, wanted, refused) = Pack::unpack(reader)?;
        let (is_at_gnb, awaits_gnb, refused_by_target) = Pack::unpack(reader)?;
        Ok(Self {
            current,
            former,
            wanted,
            refused,
            is_at_gnb,
            awaits_gnb,
            refused_by_target,
            at_target: 0,
            left_at_ue: Flows::default(),
        })
    }
}

pack_struct!(Flows { rules });

impl Rule {
    /// Its packet filters.
    pub(super) fn filters(&self) -> &[FlowFilter] {
        &self.content.filters
    }

    /// Its QoS.
    pub(super) const fn qos(&self) -> &RuleQos {
        &self.content.qos
    }

    /// Its gates.
    pub(super) const fn gates(&self) -> Gates {
        self.content.gates
    }

    /// Whether the UE derives QoS rules from its downlink packets.
    pub(super) const fn is_reflective(&self) -> bool {
        self.content.is_reflective
    }

    /// The QoS rule of the UE. `None` if no filter of the rule is for the UE.
    fn qos_rule(&self) -> Option<QosRule> {
        let mut packet_filters = Vec::new();
        for filter in self.filters() {
            packet_filters.extend(filter.packet_filters(packet_filters.len() as u8 + 1));
        }
        let precedence_and_qfi =
            PrecedenceAndQfi { precedence: self.precedence, segregation: false, qfi: self.qfi };
        (!packet_filters.is_empty()).then_some(QosRule {
            id: self.number,
            operation: RuleOperation::Create,
            default: false,
            packet_filters,
            precedence_and_qfi: Some(precedence_and_qfi),
        })
    }
}

impl Content {
    /// Number of its packet filters at the UE.
    fn packet_filters(&self) -> usize {
        self.filters.iter().map(|filter| filter.packet_filters(0).len()).sum()
    }
}

impl Flows {
    /// Whether there is only the default flow, without rules.
    pub(super) const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules.
    pub(super) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// The flows besides the default one, by QFI.
    pub(super) fn flows(&self) -> Vec<QosFlow> {
        flows_of(self.rules.iter())
    }

    /// The flows of which the UE has a description: those with a QoS rule that it gets or derives.
    fn flows_of_ue(&self) -> Vec<QosFlow> {
        let has_rule = |it: &&Rule| it.is_reflective() || it.qos_rule().is_some();
        let ruled: Vec<u8> = self.rules.iter().filter(has_rule).map(|it| it.qfi).collect();
        let flows = self.flows().into_iter().filter(|flow| ruled.contains(&flow.qfi));
        // The description does not say it.
        flows.map(|flow| QosFlow { reflective: false, ..flow }).collect()
    }

    /// Whether the default flow has a reflective rule.
    pub(super) fn has_reflective_default(&self) -> bool {
        self.rules.iter().any(|rule| rule.qfi == DEFAULT_QFI && rule.is_reflective())
    }

    /// The QoS rules of the UE besides the default one.
    pub(super) fn qos_rules(&self) -> Vec<QosRule> {
        self.rules.iter().filter_map(Rule::qos_rule).collect()
    }

    /// The descriptions of the UE's flows besides the default one.
    pub(super) fn descriptions(&self) -> Vec<QosFlowDescription> {
        self.flows_of_ue().iter().map(|flow| description(flow, FlowOperation::Create)).collect()
    }

    /// Without the rules that are bound to these flows; their identifiers.
    pub(super) fn without(&self, is_gone: impl Fn(u8) -> bool) -> (Self, Vec<Arc<str>>) {
        let (gone, rules): (Vec<_>, Vec<_>) =
            self.rules.iter().cloned().partition(|rule| rule.qfi != DEFAULT_QFI && is_gone(rule.qfi));
        (Self { rules }, gone.into_iter().map(|rule| rule.id).collect())
    }

    /// The difference to former rules.
    pub(super) const fn since<'a>(&'a self, former: &'a Self) -> Difference<'a> {
        Difference { former, current: self }
    }

    fn find(&self, id: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| &*rule.id == id)
    }

    fn has_number(&self, number: u8) -> bool {
        self.rules.iter().any(|rule| rule.number == number)
    }
}

fn flows_of<'a>(rules: impl Iterator<Item = &'a Rule>) -> Vec<QosFlow> {
    let mut flows = BTreeMap::<u8, QosFlow>::new();
    for rule in rules.filter(|rule| rule.qfi != DEFAULT_QFI) {
        let RuleQos { five_qi, arp, guaranteed, maximum } = *rule.qos();
        let gbr = guaranteed.zip(maximum).map(|(guaranteed, maximum)| GbrQos { maximum, guaranteed });
        let reflective = rule.is_reflective();
        let add = |flow: &mut QosFlow| {
            flow.gbr = sum(flow.gbr, gbr);
            flow.reflective |= reflective;
        };
        let first = QosFlow { qfi: rule.qfi, five_qi, arp, gbr, reflective };
        flows.entry(rule.qfi).and_modify(add).or_insert(first);
    }
    flows.into_values().collect()
}

fn sum(one: Option<GbrQos>, other: Option<GbrQos>) -> Option<GbrQos> {
    let rates = |one: Ambr, other: Ambr| Ambr {
        uplink: BitRate(one.uplink.bps().saturating_add(other.uplink.bps())).min(MAX_RATE),
        downlink: BitRate(one.downlink.bps().saturating_add(other.downlink.bps())).min(MAX_RATE),
    };
    let (one, other) = one.zip(other)?;
    Some(GbrQos {
        maximum: rates(one.maximum, other.maximum),
        guaranteed: rates(one.guaranteed, other.guaranteed),
    })
}

/// The description of a flow for the UE; its parameters replace all former ones (TS 24.501 9.11.4.12, E bit).
fn description(flow: &QosFlow, operation: FlowOperation) -> QosFlowDescription {
    let mut parameters = vec![FlowParameter::FiveQi(flow.five_qi)];
    if let Some(GbrQos { maximum, guaranteed }) = flow.gbr {
        parameters.extend([
            FlowParameter::GfbrUplink(guaranteed.uplink),
            FlowParameter::GfbrDownlink(guaranteed.downlink),
            FlowParameter::MfbrUplink(maximum.uplink),
            FlowParameter::MfbrDownlink(maximum.downlink),
        ]);
    }
    QosFlowDescription { qfi: flow.qfi, operation, replaces: true, parameters }
}

/// The difference between the rules before a change and those after it.
pub(super) struct Difference<'a> {
    former: &'a Flows,
    current: &'a Flows,
}

impl<'a> Difference<'a> {
    /// Rules to remove.
    pub(super) fn removed(&self) -> impl Iterator<Item = &'a Rule> + use<'a> {
        let current = self.current;
        self.former.rules().filter(|rule| !current.has_number(rule.number))
    }

    /// Rules to create.
    pub(super) fn created(&self) -> impl Iterator<Item = &'a Rule> + use<'a> {
        let former = self.former;
        self.current.rules().filter(|rule| !former.has_number(rule.number))
    }

    /// Operations on the UE's QoS rules: deletions first, so that their precedences are free.
    pub(super) fn qos_rules(&self) -> Vec<QosRule> {
        let deleted = self.removed().filter_map(Rule::qos_rule).map(|rule| QosRule {
            operation: RuleOperation::Delete,
            packet_filters: Vec::new(),
            precedence_and_qfi: None,
            ..rule
        });
        deleted.chain(self.created().filter_map(Rule::qos_rule)).collect()
    }

    /// Operations on the UE's descriptions of flows.
    pub(super) fn descriptions(&self) -> Vec<QosFlowDescription> {
        let (former, current) = (self.former.flows_of_ue(), self.current.flows_of_ue());
        let deleted = gone(&former, &current).map(|flow| QosFlowDescription {
            qfi: flow.qfi,
            operation: FlowOperation::Delete,
            replaces: false,
            parameters: Vec::new(),
        });
        let changed = changed(&former, &current).map(|flow| {
            let is_known = former.iter().any(|known| known.qfi == flow.qfi);
            description(flow, if is_known { FlowOperation::Modify } else { FlowOperation::Create })
        });
        deleted.chain(changed).collect()
    }

    /// Flows of the gNB to add or to modify.
    pub(super) fn flows(&self) -> Vec<QosFlow> {
        changed(&self.former.flows(), &self.current.flows()).copied().collect()
    }

    /// Flows of the gNB to release.
    pub(super) fn released(&self) -> Vec<u8> {
        gone(&self.former.flows(), &self.current.flows()).map(|flow| flow.qfi).collect()
    }
}

/// A bit for each flow.
fn bits(qfis: &[u8]) -> u64 {
    qfis.iter().fold(0, |bits, qfi| bits | 1 << (qfi & 63))
}

fn gone<'a>(former: &'a [QosFlow], current: &'a [QosFlow]) -> impl Iterator<Item = &'a QosFlow> {
    former.iter().filter(|flow| current.iter().all(|other| other.qfi != flow.qfi))
}

fn changed<'a>(former: &'a [QosFlow], current: &'a [QosFlow]) -> impl Iterator<Item = &'a QosFlow> {
    current.iter().filter(|flow| !former.contains(flow))
}

impl SessionFlows {
    /// Whether the session has, and has had, only the default flow.
    pub(super) const fn is_default(&self) -> bool {
        self.current.is_empty()
            && self.former.is_none()
            && self.wanted.is_none()
            && self.refused == 0
            && !self.awaits_gnb
            && self.refused_by_target == 0
            && self.left_at_ue.is_empty()
    }

    /// The numbers of the reflective rules. (Rules with the same number are the same.)
    pub(super) fn reflective_rules(&self) -> Vec<u8> {
        let all = [Some(&self.current), self.former.as_ref(), self.wanted.as_ref(), Some(&self.left_at_ue)];
        let rules = all.into_iter().flatten().flat_map(Flows::rules);
        let numbers: BTreeSet<u8> =
            rules.filter(|rule| rule.is_reflective()).map(|rule| rule.number).collect();
        numbers.into_iter().collect()
    }

    /// The rules with these numbers are reflective: for a session that is read from a document.
    pub(super) fn note_reflective_rules(&mut self, numbers: &[u8]) {
        let (former, wanted) = (self.former.as_mut(), self.wanted.as_mut());
        let all = [Some(&mut self.current), former, wanted, Some(&mut self.left_at_ue)];
        for rule in all.into_iter().flatten().flat_map(|flows| &mut flows.rules) {
            rule.content.is_reflective = numbers.contains(&rule.number);
        }
    }

    /// The rules that the next decision changes.
    pub(super) fn latest(&self) -> &Flows {
        self.wanted.as_ref().unwrap_or(&self.current)
    }

    /// The rules that UPF, gNB or UE have, or may have. Their numbers and precedences are not given to others yet.
    pub(super) fn taken(&self) -> Vec<&Flows> {
        self.former.iter().chain([&self.current, &self.left_at_ue]).collect()
    }

    /// The rules that the UE has, or may have, before the change in progress.
    pub(super) fn at_ue(&self) -> Flows {
        let before = self.former.as_ref().unwrap_or(&self.current);
        Flows { rules: before.rules.iter().chain(&self.left_at_ue.rules).cloned().collect() }
    }

    /// The change in progress.
    pub(super) fn change(&self) -> Option<Difference<'_>> {
        Some(Difference { former: self.former.as_ref()?, current: &self.current })
    }

    /// Begins the change to the wanted rules, if there is one and none is in progress. Returns whether it has begun.
    pub(super) fn begin_change(&mut self) -> bool {
        match self.wanted.take_if(|_| self.former.is_none()) {
            Some(wanted) if wanted != self.current => {
                self.former = Some(std::mem::replace(&mut self.current, wanted));
                self.is_at_gnb = false;
                true
            }
            _ => false,
        }
    }

    /// The change is complete: UPF, gNB and UE have the rules.
    pub(super) fn complete(&mut self) {
        (self.former, self.left_at_ue) = (None, Flows::default());
        if self.wanted.is_none() {
            self.refused = 0;
        }
    }

    /// Whether the change in progress creates rules.
    pub(super) fn creates(&self) -> bool {
        self.change().is_some_and(|change| change.created().next().is_some())
    }

    /// Whether the change in progress removes rules, and creates none.
    pub(super) fn only_removes(&self) -> bool {
        self.change().is_some_and(|change| change.removed().next().is_some()) && !self.creates()
    }

    /// UE or gNB do not take the rules that the change in progress creates: they are to be removed. Returns them. The UE may still have those that the
    /// change removes: the next command deletes them, too.
    pub(super) fn revert(&mut self) -> Vec<Arc<str>> {
        let Some(former) = self.former.take() else { return Vec::new() };
        let (rest, failed) = self.without_created(&former);
        if failed.is_empty() {
            self.complete();
        } else {
            let removed = self.current.since(&former);
            self.refused |= bits(&removed.released());
            self.left_at_ue.rules.extend(removed.removed().cloned());
            self.wanted = Some(rest);
        }
        failed
    }

    /// As [`revert`](Self::revert): the gNB has refused the whole change, and still has the flows that it removes or modifies.
    pub(super) fn revert_at_gnb(&mut self) -> Vec<Arc<str>> {
        let (added, released) = (bits(&self.added()) & !self.modified(), bits(&self.released()));
        let failed = self.revert();
        self.refused = (self.refused | added) & !released;
        failed
    }

    /// The flows that the change in progress modifies at the gNB, which keeps them as they were if it refuses that (TS 38.413 8.2.3.2): a bit for each
    /// QFI.
    fn modified(&self) -> u64 {
        let had = self.former.as_ref().map_or_else(Vec::new, Flows::flows);
        let had: Vec<u8> = had.iter().map(|flow| flow.qfi).collect();
        bits(&self.added()) & bits(&had) & !self.refused
    }

    /// The gNB has refused to add or to modify these flows. Of one that it had before the change in progress only the rules fail that the change creates.
    /// Returns the rules that are to be removed.
    pub(super) fn refuse_change(&mut self, is_refused: impl Fn(u8) -> bool) -> Vec<Arc<str>> {
        let Some(former) = self.former.clone() else { return self.refuse(is_refused) };
        let modified = self.modified();
        let is_kept = |qfi: u8| modified & 1 << (qfi & 63) != 0;
        // Another precedence makes no other rule of it.
        let is_changed =
            |rule: &Rule| former.find(&rule.id).is_none_or(|before| before.content != rule.content);
        let fails = |rule: &&Rule| is_kept(rule.qfi) && is_refused(rule.qfi) && is_changed(rule);
        let created = self.current.since(&former).created().filter(fails);
        let created: Vec<u8> = created.map(|rule| rule.number).collect();
        let mut failed = self.refuse(|qfi| is_refused(qfi) && !is_kept(qfi));
        let mut rest = self.latest().clone();
        let gone = rest.rules.extract_if(.., |rule| created.contains(&rule.number));
        failed.extend(gone.map(|rule| rule.id));
        if !failed.is_empty() {
            self.wanted = Some(rest);
        }
        failed
    }

    /// The flows that the gNB is to release for the change in progress, and for failed ones before it.
    pub(super) fn released(&self) -> Vec<u8> {
        let released = self.current.since(&self.at_ue()).released();
        released.into_iter().filter(|qfi| !self.is_refused(*qfi)).collect()
    }

    /// The UPF has refused the change in progress, and has the rules before it. What the change removes is still to be removed. Returns the
    /// rules that it creates.
    pub(super) fn cancel(&mut self) -> Vec<Arc<str>> {
        let Some(former) = self.former.take() else { return Vec::new() };
        let (_, mut failed) = self.without_created(&former);
        // Rules that only got another precedence are in force as before.
        let as_before = |rule: &Rule| {
            let unchanged = former.has_number(rule.number) || !self.current.has_number(rule.number);
            let moved = former.find(&rule.id).filter(|it| it.content == rule.content);
            if unchanged { Some(rule.clone()) } else { moved.cloned() }
        };
        let rules: Vec<Rule> = self.latest().rules().filter_map(as_before).collect();
        failed.retain(|id| rules.iter().all(|rule| rule.id != *id));
        (self.current, self.wanted) = (former, Some(Flows { rules }));
        failed
    }

    /// The latest rules without those that the change creates, and these.
    fn without_created(&self, former: &Flows) -> (Flows, Vec<Arc<str>>) {
        let created: Vec<_> = self.current.rules().filter(|rule| !former.has_number(rule.number)).collect();
        let mut rest = self.latest().clone();
        rest.rules.retain(|rule| created.iter().all(|it| it.number != rule.number));
        (rest, created.into_iter().map(|rule| Arc::clone(&rule.id)).collect())
    }

    /// The target gNB of a handover has these flows, of those that it was to set up. Returns the rules of the others, which are to be removed. Flows of
    /// a change in progress are not among these: the target gNB gets the change, and its answer decides, as it may not have been offered them.
    pub(super) fn note_at_target(&mut self, has: impl Fn(u8) -> bool) -> Vec<Arc<str>> {
        let awaited = if self.is_at_gnb { Vec::new() } else { self.added() };
        // The source gNB may not have answered a change that the UE has confirmed.
        self.is_at_gnb |= self.former.is_none();
        self.forget_refusals();
        self.refuse(|qfi| !has(qfi) && !awaited.contains(&qfi))
    }

    /// The target gNB may have flows of the session that the source gNB has refused or released.
    fn forget_refusals(&mut self) {
        let flows = self.current.flows().into_iter().fold(0, |bits, flow| bits | 1 << (flow.qfi & 63));
        self.refused &= !(flows & self.at_target);
    }

    /// Flows of the target gNB that the session has not any longer, and of which it gets no release. `is_requested`: it gets what the SMF has requested
    /// during the handover.
    pub(super) fn take_stale(&mut self, is_requested: bool) -> Vec<u8> {
        let at_target = std::mem::take(&mut self.at_target);
        let released = match self.change() {
            Some(change) if is_requested && !self.is_at_gnb => change.released(),
            _ => Vec::new(),
        };
        let is_stale = |qfi: &u8| {
            let is_used = *qfi == DEFAULT_QFI || self.current.rules().any(|rule| rule.qfi == *qfi);
            // Requests have no release of flows that the source gNB has released.
            let is_released = released.contains(qfi) && !self.is_refused(*qfi);
            at_target & 1 << (qfi & 63) != 0 && !is_used && !is_released
        };
        let stale: Vec<u8> = (0..64).filter(is_stale).collect();
        // Further requests of the change have it.
        self.refused &= !bits(&stale);
        stale
    }

    /// The flows that the change in progress adds or modifies.
    pub(super) fn added(&self) -> Vec<u8> {
        self.change().iter().flat_map(|change| change.flows()).map(|flow| flow.qfi).collect()
    }

    /// The gNB does not have these flows: their rules are to be removed. Returns the rules.
    pub(super) fn refuse(&mut self, is_gone: impl Fn(u8) -> bool) -> Vec<Arc<str>> {
        let gone: Vec<u8> =
            self.current.flows().iter().map(|flow| flow.qfi).filter(|qfi| is_gone(*qfi)).collect();
        let (rest, failed) = self.latest().without(|qfi| gone.contains(&qfi));
        self.refused |= bits(&gone);
        if !failed.is_empty() {
            self.wanted = Some(rest);
        }
        failed
    }

    /// Whether it is a flow of the session, before or after the change in progress.
    pub(super) fn knows(&self, qfi: u8) -> bool {
        let mut rules = self.current.rules().chain(self.former.iter().flat_map(Flows::rules));
        qfi == DEFAULT_QFI || rules.any(|rule| rule.qfi == qfi)
    }

    /// Whether the gNB has refused a flow.
    pub(super) const fn is_refused(&self, qfi: u8) -> bool {
        self.refused & 1 << (qfi & 63) != 0
    }
}
