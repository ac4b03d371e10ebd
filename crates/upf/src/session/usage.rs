//! The measurements of a session, and the usage reports that come of them (TS 29.244 5.2.2.3).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pith_pfcp::ie::{QueryUrrReference, ReportingTriggers, UrrId, UsageReportTrigger};
use pith_pfcp::rules::{UpdateUrr, UsageReport};

use super::meter::Meter;
use super::provision::RuleSet;
use crate::config::Config;
use crate::contract::{self, SessionUsage, VolumeLimits};

/// What the SMF wants to know at once.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The URRs asked for.
    pub urrs: BTreeSet<UrrId>,
    /// The reference that the answers bear.
    pub reference: Option<QueryUrrReference>,
}

/// A meter for each URR, with the limits that the datapath shall watch.
#[derive(Clone, Debug, Default)]
pub struct Measurements {
    meters: BTreeMap<UrrId, Meter>,
    limits: BTreeMap<UrrId, (VolumeLimits, VolumeLimits)>,
}

impl Measurements {
    /// The measurements of a session that is established at `now`.
    pub fn new(rules: &RuleSet, now: Duration) -> Self {
        let mut measurements = Measurements::default();
        measurements.adopt(rules, &[], now);
        measurements
    }

    /// Starts meters of URRs that are new in `rules`, drops those that are not in them, and takes over updates.
    pub fn adopt(&mut self, rules: &RuleSet, updates: &[UpdateUrr], now: Duration) {
        self.meters.retain(|id, _| rules.urrs.contains_key(id));
        for (id, rule) in &rules.urrs {
            self.meters.entry(*id).or_insert_with(|| Meter::new(rule, now));
        }
        for update in updates {
            if let (Some(meter), Some(rule)) =
                (self.meters.get_mut(&update.urr_id), rules.urrs.get(&update.urr_id))
            {
                meter.update(update, rule, now);
            }
        }
        self.refresh_limits(rules);
    }

    /// Computes the limits anew. Have they changed, so that the datapath has to be told?
    fn refresh_limits(&mut self, rules: &RuleSet) -> bool {
        let meters = self.meters.iter();
        let limits =
            meters.filter_map(|(id, meter)| Some((*id, meter.limits(rules.urrs.get(id)?)))).collect();
        let changed = self.limits != limits;
        self.limits = limits;
        changed
    }

    /// Threshold and quota of a URR on the datapath's counters.
    pub fn limits(&self, id: UrrId) -> (VolumeLimits, VolumeLimits) {
        self.limits.get(&id).copied().unwrap_or_default()
    }

    /// Takes the datapath's counters.
    pub fn sample(&mut self, rules: &RuleSet, now: Duration, usage: &SessionUsage) {
        for (id, meter) in &mut self.meters {
            let counted = usage.urr(contract::UrrId(id.0));
            if let (Some(rule), Some(counted)) = (rules.urrs.get(id), counted) {
                meter.sample(rule, now, counted);
            }
        }
    }

    /// Reports what triggers call for. The flag says whether the datapath has to be given new limits.
    pub fn check(&mut self, rules: &RuleSet, now: Duration, config: &Config) -> (Vec<UsageReport>, bool) {
        let mut fired = BTreeMap::new();
        for (id, meter) in &mut self.meters {
            let trigger = rules.urrs.get(id).map(|rule| meter.check(rule, now, config)).unwrap_or_default();
            if !trigger.is_empty() {
                fired.insert(*id, trigger);
            }
        }
        add_linked(rules, &mut fired);
        let reports = self.report(rules, now, &fired, config);
        (reports, self.refresh_limits(rules))
    }

    /// Reports what the SMF asks for, and what is linked to it (TS 29.244 5.2.2.3.1).
    pub fn query(
        &mut self,
        rules: &RuleSet,
        now: Duration,
        query: &Query,
        config: &Config,
    ) -> Vec<UsageReport> {
        let asked = query.urrs.iter().filter(|id| self.meters.contains_key(id));
        let mut fired: BTreeMap<_, _> = asked.map(|id| (*id, UsageReportTrigger::IMMER)).collect();
        add_linked(rules, &mut fired);
        let mut reports = self.report(rules, now, &fired, config);
        reports.iter_mut().for_each(|report| report.query_urr_reference = query.reference);
        self.refresh_limits(rules);
        reports
    }

    /// Reports what was measured by URRs that lose their last PDR, or are removed, when `rules` give way to `next`.
    pub fn leave(
        &mut self,
        rules: &RuleSet,
        next: &RuleSet,
        now: Duration,
        config: &Config,
    ) -> Vec<UsageReport> {
        let (before, after) = (in_use(rules), in_use(next));
        let left = rules.urrs.keys().filter(|id| {
            let removed = !next.urrs.contains_key(id);
            removed || before.contains(id) && !after.contains(id)
        });
        let left: Vec<_> = left.copied().collect();
        let used = left.iter().filter(|id| self.meters.get(id).is_some_and(Meter::has_usage));
        let fired = used.map(|id| (*id, UsageReportTrigger::TERMR)).collect();
        let reports = self.report(rules, now, &fired, config);
        left.iter().for_each(|id| self.meters.get_mut(id).into_iter().for_each(|meter| meter.reset(now)));
        reports
    }

    /// Reports all that was measured, at the end of the session.
    pub fn terminate(&mut self, rules: &RuleSet, now: Duration, config: &Config) -> Vec<UsageReport> {
        let fired = self.meters.keys().map(|id| (*id, UsageReportTrigger::TERMR)).collect();
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
        for (id, trigger) in fired {
            if let (Some(meter), Some(rule)) = (self.meters.get_mut(id), rules.urrs.get(id)) {
                reports.push(meter.report(rule, now, *trigger, config));
            }
        }
        reports
    }

    /// When to check next, if nothing else happens.
    pub fn due(&self, rules: &RuleSet, now: Duration, config: &Config) -> Option<Duration> {
        let meters = self.meters.iter();
        meters.filter_map(|(id, meter)| meter.due(rules.urrs.get(id)?, now, config)).min()
    }

    /// Is nothing measured?
    pub fn is_empty(&self) -> bool {
        self.meters.is_empty()
    }
}

/// URRs that a PDR names.
fn in_use(rules: &RuleSet) -> BTreeSet<UrrId> {
    rules.pdrs.values().flat_map(|pdr| pdr.urr_ids.iter().copied()).collect()
}

/// Adds the URRs that report because a URR that they are linked to does (TS 29.244 5.2.2.4).
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
