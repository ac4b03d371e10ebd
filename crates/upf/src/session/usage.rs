//! The measurements of a session, and the resulting usage reports (TS 29.244 5.2.2.3).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pith_pfcp::ie::{FarId, QueryUrrReference, ReportingTriggers, UrrId, UsageReportTrigger};
use pith_pfcp::rules::{CreateUrr, UpdateUrr, UsageReport};

use super::meter::Meter;
use super::provision::RuleSet;
use super::rule_map::RuleMap;
use crate::config::Config;
use crate::contract::{self, SessionUsage, VolumeLimits};

/// The SMF's query for immediate reports.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The queried URRs.
    pub urrs: BTreeSet<UrrId>,
    /// The reference to be returned in the reports.
    pub reference: Option<QueryUrrReference>,
}

/// A meter, and its limits in the datapath.
#[derive(Clone, Debug)]
struct Measured {
    meter: Meter,
    threshold: VolumeLimits,
    quota: VolumeLimits,
}

/// A meter for each URR of a session.
#[derive(Clone, Debug, Default)]
pub struct Measurements(RuleMap<UrrId, Measured>);

impl Measurements {
    /// The measurements of a session that is established at `now`.
    pub fn new(rules: &RuleSet, now: Duration) -> Self {
        let mut measurements = Measurements::default();
        measurements.adopt(rules, &[], now);
        measurements
    }

    /// The measurements that the UPF's predecessor began; `None` unless there is one for each URR.
    pub fn resumed(rules: &RuleSet, meters: impl IntoIterator<Item = (UrrId, Meter)>) -> Option<Self> {
        let none = VolumeLimits::default();
        let mut measurements = Measurements::default();
        for (id, meter) in meters {
            measurements.0.add(id, Measured { meter, threshold: none, quota: none });
        }
        measurements.refresh_limits(rules);
        measurements.0.ids().eq(rules.urrs.ids()).then_some(measurements)
    }

    /// The meters.
    pub fn meters(&self) -> impl Iterator<Item = (UrrId, &Meter)> {
        self.0.iter().map(|(id, measured)| (id, &measured.meter))
    }

    /// Starts the meters of new URRs in `rules`, removes those of removed URRs, and applies updates.
    pub fn adopt(&mut self, rules: &RuleSet, updates: &[UpdateUrr], now: Duration) {
        self.0.retain(|id, _| rules.urrs.contains(id));
        let none = VolumeLimits::default();
        for (id, rule) in rules.urrs.iter() {
            // An existing one is unchanged.
            self.0.add(id, Measured { meter: Meter::new(rule, now), threshold: none, quota: none });
        }
        for update in updates {
            let measured = self.0.get_mut(update.urr_id);
            if let (Some(measured), Some(rule)) = (measured, rules.urrs.get(update.urr_id)) {
                measured.meter.update(update, rule, now);
            }
        }
        self.refresh_limits(rules);
    }

    /// Recomputes the limits. Returns whether they have changed, so that the datapath must be updated.
    fn refresh_limits(&mut self, rules: &RuleSet) -> bool {
        let mut changed = false;
        for (measured, rule) in with_rules(&mut self.0, rules) {
            let (threshold, quota) = measured.meter.limits(rule);
            changed |= (measured.threshold, measured.quota) != (threshold, quota);
            (measured.threshold, measured.quota) = (threshold, quota);
        }
        changed
    }

    /// Threshold and quota of a URR, relative to the datapath's counters.
    pub fn limits(&self, id: UrrId) -> (VolumeLimits, VolumeLimits) {
        self.0.get(id).map(|measured| (measured.threshold, measured.quota)).unwrap_or_default()
    }

    /// The FAR that replaces the PDR's own because the quota of one of these URRs is exhausted, if the SMF
    /// provided one.
    pub fn quota_action(&self, rules: &RuleSet, urrs: &[UrrId]) -> Option<FarId> {
        let exhausted = |id: &&UrrId| self.0.get(**id).is_some_and(|measured| measured.meter.is_exhausted());
        urrs.iter().filter(exhausted).find_map(|id| rules.urrs.get(*id)?.far_id_for_quota_action)
    }

    /// Takes the datapath's counters.
    pub fn sample(&mut self, rules: &RuleSet, now: Duration, usage: &SessionUsage) {
        for (measured, rule) in with_rules(&mut self.0, rules) {
            if let Some(counted) = usage.urr(contract::UrrId(rule.urr_id.0)) {
                measured.meter.sample(rule, now, counted);
            }
        }
    }

    /// Reports by triggers. The flag says whether the datapath needs new limits.
    pub fn check(&mut self, rules: &RuleSet, now: Duration, config: &Config) -> (Vec<UsageReport>, bool) {
        let mut fired = BTreeMap::new();
        for (measured, rule) in with_rules(&mut self.0, rules) {
            let trigger = measured.meter.check(rule, now, config);
            if !trigger.is_empty() {
                fired.insert(rule.urr_id, trigger);
            }
        }
        add_linked(rules, &mut fired);
        let reports = self.report(rules, now, &fired, config);
        (reports, self.refresh_limits(rules))
    }

    /// Reports the queried URRs and those linked to them (TS 29.244 5.2.2.3.1).
    pub fn query(
        &mut self,
        rules: &RuleSet,
        now: Duration,
        query: &Query,
        config: &Config,
    ) -> Vec<UsageReport> {
        let asked = query.urrs.iter().filter(|id| self.0.contains(**id));
        let mut fired: BTreeMap<_, _> = asked.map(|id| (*id, UsageReportTrigger::IMMER)).collect();
        add_linked(rules, &mut fired);
        let mut reports = self.report(rules, now, &fired, config);
        reports.iter_mut().for_each(|report| report.query_urr_reference = query.reference);
        self.refresh_limits(rules);
        reports
    }

    /// Reports the URRs that lose their last PDR, or are `removed`, when `next` replaces `rules`; a removed
    /// one may have a successor with the same id there.
    pub fn leave(
        &mut self,
        rules: &RuleSet,
        next: &RuleSet,
        removed: &BTreeSet<UrrId>,
        now: Duration,
        config: &Config,
    ) -> Vec<UsageReport> {
        let (before, after) = (in_use(rules), in_use(next));
        let left =
            rules.urrs.ids().filter(|id| removed.contains(id) || before.contains(id) && !after.contains(id));
        let left: Vec<_> = left.collect();
        let used =
            left.iter().filter(|id| self.0.get(**id).is_some_and(|measured| measured.meter.has_usage()));
        let fired = used.map(|id| (*id, UsageReportTrigger::TERMR)).collect();
        let reports = self.report(rules, now, &fired, config);
        for id in left {
            let Some(Measured { meter, .. }) = self.0.get_mut(id) else { continue };
            match next.urrs.get(id).filter(|_| removed.contains(&id)) {
                Some(successor) => *meter = meter.succeeded_by(successor, now),
                None => meter.reset(now),
            }
        }
        reports
    }

    /// Reports all usage at the end of the session.
    pub fn terminate(&mut self, rules: &RuleSet, now: Duration, config: &Config) -> Vec<UsageReport> {
        let fired = self.0.ids().map(|id| (id, UsageReportTrigger::TERMR)).collect();
        self.report(rules, now, &fired, config)
    }

    fn report(
        &mut self,
        rules: &RuleSet,
        now: Duration,
        fired: &BTreeMap<UrrId, UsageReportTrigger>,
        config: &Config,
    ) -> Vec<UsageReport> {
        let mut reports = Vec::with_capacity(fired.len());
        for (measured, rule) in with_rules(&mut self.0, rules) {
            if let Some(trigger) = fired.get(&rule.urr_id) {
                reports.push(measured.meter.report(rule, now, *trigger, config));
            }
        }
        reports
    }

    /// The time of the next check without other events.
    pub fn due(&self, rules: &RuleSet, now: Duration, config: &Config) -> Option<Duration> {
        self.0.iter().filter_map(|(id, measured)| measured.meter.due(rules.urrs.get(id)?, now, config)).min()
    }

    /// Whether nothing is measured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The meters with their rules.
fn with_rules<'a>(
    measured: &'a mut RuleMap<UrrId, Measured>,
    rules: &'a RuleSet,
) -> impl Iterator<Item = (&'a mut Measured, &'a CreateUrr)> {
    measured.iter_mut().filter_map(|(id, measured)| Some((measured, rules.urrs.get(id)?)))
}

/// The URRs of PDRs.
fn in_use(rules: &RuleSet) -> BTreeSet<UrrId> {
    rules.pdrs.values().flat_map(|pdr| pdr.urr_ids.iter().copied()).collect()
}

/// Adds the URRs that report because a linked URR reports (TS 29.244 5.2.2.4).
fn add_linked(rules: &RuleSet, fired: &mut BTreeMap<UrrId, UsageReportTrigger>) {
    let linked = rules.urrs.values().filter(|rule| {
        let wanted = rule.reporting_triggers.contains(ReportingTriggers::LIUSA);
        wanted
            && !fired.contains_key(&rule.urr_id)
            && rule.linked_urr_ids.iter().any(|id| fired.contains_key(id))
    });
    let linked: Vec<_> = linked.map(|rule| (rule.urr_id, UsageReportTrigger::LIUSA)).collect();
    fired.extend(linked);
}
