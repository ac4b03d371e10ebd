//! The measurement of a URR: from counted packets to reached thresholds and due reports (TS 29.244 5.2.2).
//!
//! The datapath's counters and the active time kept here never decrease. A report, a threshold or a quota
//! covers the difference from the totals at its own start.

use std::time::Duration;

use pith_pfcp::ie::*;
use pith_pfcp::rules::{CreateUrr, UpdateUrr, UsageReport};
use serde::{Deserialize, Serialize};

use super::monitoring::Monitoring;
use crate::config::Config;
use crate::contract::{self, UrrUsage, VolumeLimits};
use crate::handover::micros;

/// Interval of checks for changes that no event reports: whether a time measurement has started or resumed.
const POLL: Duration = Duration::from_secs(1);

/// Ages of packets are exact to a batch: a packet is newer if its time is later by at least this.
pub const PACKET_AGE_ERROR: Duration = Duration::from_millis(100);

/// Totals since the URR was provisioned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Totals {
    volume: contract::Volume,
    #[serde(with = "micros")]
    active: Duration,
}

/// The measurement of a URR. Its fields are part of the format of a handover ([`crate::handover`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meter {
    totals: Totals,
    /// Totals at the last report.
    reported: Totals,
    /// Totals at the start of the thresholds.
    threshold_from: Totals,
    /// Totals at the start of the quotas.
    quota_from: Totals,
    /// The quota is exhausted, and this was handled.
    quota_exhausted: bool,
    /// UR-SEQN of the next report.
    ur_seqn: u32,
    /// Start of the next report's measurement.
    #[serde(with = "micros")]
    since: Duration,
    /// Time at which the URR, or the current quota, was provisioned.
    #[serde(with = "micros")]
    provisioned: Duration,
    #[serde(with = "micros::optional")]
    first_packet: Option<Duration>,
    #[serde(with = "micros::optional")]
    last_packet: Option<Duration>,
    /// Time up to which active time is counted.
    #[serde(with = "micros")]
    metered_until: Duration,
    /// Counting was suspended before the last check, because no packets arrived.
    suspended: bool,
    #[serde(with = "micros::optional")]
    next_period: Option<Duration>,
    /// The current user plane inactivity was reported.
    idle_reported: bool,
    monitoring: Monitoring,
}

fn seconds(seconds: Option<Seconds>) -> Option<Duration> {
    seconds.map(|seconds| Duration::from_secs(seconds.0.into()))
}

/// Whether the measurement is paused (flag INAM): packets pass uncounted, and time does not advance.
pub fn is_paused(rule: &CreateUrr) -> bool {
    rule.measurement_information.is_some_and(|info| info.contains(MeasurementInformation::INAM))
}

fn period(rule: &CreateUrr) -> Option<Duration> {
    seconds(rule.measurement_period).filter(|period| !period.is_zero())
}

impl Meter {
    /// The measurement of a URR provisioned at `now`.
    pub fn new(rule: &CreateUrr, now: Duration) -> Self {
        Meter {
            totals: Totals::default(),
            reported: Totals::default(),
            threshold_from: Totals::default(),
            quota_from: Totals::default(),
            quota_exhausted: false,
            ur_seqn: 0,
            since: now,
            provisioned: now,
            first_packet: None,
            last_packet: None,
            metered_until: now,
            suspended: false,
            next_period: period(rule).map(|period| now + period),
            idle_reported: false,
            monitoring: Monitoring::default(),
        }
    }

    /// The measurement of another URR that reuses the id at `now`, and therefore the datapath's counters.
    pub fn succeeded_by(&self, rule: &CreateUrr, now: Duration) -> Meter {
        let begin = Totals { volume: self.totals.volume, ..Totals::default() };
        Meter {
            totals: begin,
            reported: begin,
            threshold_from: begin,
            quota_from: begin,
            last_packet: self.last_packet,
            ..Meter::new(rule, now)
        }
    }

    /// Applies an Update: the measurement since the last report counts towards a new threshold or quota, and
    /// the rest of an old quota is void (TS 29.244 5.2.2.3.1).
    pub fn update(&mut self, update: &UpdateUrr, rule: &CreateUrr, now: Duration) {
        if update.volume_threshold.is_some() {
            self.threshold_from.volume = self.reported.volume;
        }
        if update.time_threshold.is_some() {
            self.threshold_from.active = self.reported.active;
        }
        let new_quota = update.volume_quota.is_some() || update.time_quota.is_some();
        if new_quota || update.quota_holding_time.is_some() || update.quota_validity_time.is_some() {
            self.quota_from = self.reported;
            self.quota_exhausted = false;
            self.provisioned = now;
        }
        if update.measurement_period.is_some() {
            self.next_period = period(rule).map(|period| now + period);
        }
        if update.monitoring_time.is_some() || update.additional_monitoring_times.is_some() {
            self.monitoring = Monitoring::default();
        }
    }

    /// Takes the datapath's counters.
    pub fn sample(&mut self, rule: &CreateUrr, now: Duration, usage: &UrrUsage) {
        let time = |age: Option<Duration>| age.map(|age| now.saturating_sub(age));
        self.totals.volume = usage.volume;
        let (first, last) = (time(usage.first_packet), time(usage.last_packet));
        let known = self.last_packet.map(|known| known + PACKET_AGE_ERROR);
        if last > known {
            // The first packet of the counters may belong to the previous URR.
            self.first_packet = self.first_packet.or(if first > known { first } else { last });
            self.last_packet = last;
            self.idle_reported = false;
        }
        self.meter_time(rule, now);
    }

    /// Counts active time: from the first packet, or at once if so instructed, up to the Inactivity Detection
    /// Time after the last packet (TS 29.244 5.2.2.2.1).
    fn meter_time(&mut self, rule: &CreateUrr, now: Duration) {
        if is_paused(rule) {
            self.metered_until = now;
            return;
        }
        let at_once =
            rule.measurement_information.is_some_and(|info| info.contains(MeasurementInformation::ISTM));
        let Some(start) = (if at_once { Some(self.provisioned) } else { self.first_packet }) else { return };
        let last = self.last_packet.unwrap_or(start);
        let end = match seconds(rule.inactivity_detection_time) {
            Some(inactivity) if !inactivity.is_zero() => now.min(last + inactivity),
            _ => now,
        };
        let resumed = if self.suspended { last } else { Duration::ZERO };
        let begin = self.metered_until.max(start).max(resumed);
        if end > begin {
            self.totals.active += end - begin;
            self.metered_until = end;
        }
        self.suspended = end < now;
    }

    /// The current volume threshold.
    fn volume_threshold(&self, rule: &CreateUrr) -> Option<Volume> {
        let subsequent = self.monitoring.in_force(rule).and_then(|time| time.subsequent_volume_threshold);
        subsequent.or(rule.volume_threshold)
    }

    fn time_threshold(&self, rule: &CreateUrr) -> Option<Duration> {
        let subsequent = self.monitoring.in_force(rule).and_then(|time| time.subsequent_time_threshold);
        seconds(subsequent.or(rule.time_threshold))
    }

    fn volume_quota(&self, rule: &CreateUrr) -> Option<Volume> {
        let subsequent = self.monitoring.in_force(rule).and_then(|time| time.subsequent_volume_quota);
        subsequent.or(rule.volume_quota)
    }

    fn time_quota(&self, rule: &CreateUrr) -> Option<Duration> {
        let subsequent = self.monitoring.in_force(rule).and_then(|time| time.subsequent_time_quota);
        seconds(subsequent.or(rule.time_quota))
    }

    /// Threshold and quota, relative to the datapath's counters.
    pub fn limits(&self, rule: &CreateUrr) -> (VolumeLimits, VolumeLimits) {
        let wanted = rule.reporting_triggers.contains(ReportingTriggers::VOLTH);
        let threshold = self.volume_threshold(rule).filter(|_| wanted);
        let quota = self.volume_quota(rule);
        (
            threshold.map(|volume| absolute(volume, self.threshold_from.volume)).unwrap_or_default(),
            match self.stopped(rule) {
                // Another FAR applies from now on.
                true if rule.far_id_for_quota_action.is_some() && self.quota_exhausted => {
                    VolumeLimits::default()
                }
                true => VolumeLimits { total: Some(0), ..VolumeLimits::default() },
                false => quota.map(|volume| absolute(volume, self.quota_from.volume)).unwrap_or_default(),
            },
        )
    }

    /// Whether the quota is exhausted, and this was handled.
    pub fn is_exhausted(&self) -> bool {
        self.quota_exhausted
    }

    /// Whether the quota is exhausted for a reason other than volume.
    fn stopped(&self, rule: &CreateUrr) -> bool {
        self.quota_exhausted || self.time_quota_reached(rule)
    }

    fn volume_quota_reached(&self, rule: &CreateUrr) -> bool {
        let quota = self.volume_quota(rule).map(|volume| absolute(volume, self.quota_from.volume));
        quota.is_some_and(|quota| quota.reached_by(&self.totals.volume))
    }

    fn time_quota_reached(&self, rule: &CreateUrr) -> bool {
        let used = self.totals.active.saturating_sub(self.quota_from.active);
        self.time_quota(rule).is_some_and(|quota| used >= quota)
    }

    /// The start of the current pause in packets.
    fn idle_since(&self) -> Duration {
        self.last_packet.unwrap_or_default().max(self.provisioned)
    }

    /// The triggers that have occurred and are to be reported.
    pub fn check(&mut self, rule: &CreateUrr, now: Duration, config: &Config) -> UsageReportTrigger {
        let mut fired = self.check_thresholds(rule) | self.check_quota(rule, now);
        if self.next_period.is_some_and(|due| due <= now) {
            self.next_period = period(rule).map(|period| now + period);
            let wanted = rule.reporting_triggers.contains(ReportingTriggers::PERIO);
            fired = fired.with(UsageReportTrigger::PERIO, wanted);
        }
        let idle = seconds(rule.user_plane_inactivity_timer)
            .is_some_and(|timer| !timer.is_zero() && self.idle_since() + timer <= now);
        if idle && !self.idle_reported {
            self.idle_reported = true;
            let wanted = rule.reporting_triggers.contains(ReportingTriggers::UPINT);
            fired = fired.with(UsageReportTrigger::UPINT, wanted);
        }
        let reached = self.monitoring.next(rule, config).is_some_and(|time| time <= now);
        fired.with(UsageReportTrigger::MONIT, reached)
    }

    fn check_thresholds(&self, rule: &CreateUrr) -> UsageReportTrigger {
        let triggers = rule.reporting_triggers;
        let volume = self.volume_threshold(rule).map(|volume| absolute(volume, self.threshold_from.volume));
        let volume = volume.is_some_and(|threshold| threshold.reached_by(&self.totals.volume));
        let active = self.totals.active.saturating_sub(self.threshold_from.active);
        let time = self.time_threshold(rule).is_some_and(|threshold| active >= threshold);
        UsageReportTrigger::default()
            .with(UsageReportTrigger::VOLTH, volume && triggers.contains(ReportingTriggers::VOLTH))
            .with(UsageReportTrigger::TIMTH, time && triggers.contains(ReportingTriggers::TIMTH))
    }

    /// The triggers of a quota's end; each once, until a new quota is provisioned.
    fn check_quota(&mut self, rule: &CreateUrr, now: Duration) -> UsageReportTrigger {
        if self.quota_exhausted {
            return UsageReportTrigger::default();
        }
        let over = |limit: Option<Duration>, since: Duration| {
            limit.is_some_and(|limit| !limit.is_zero() && since + limit <= now)
        };
        let ends = [
            (self.volume_quota_reached(rule), ReportingTriggers::VOLQU, UsageReportTrigger::VOLQU),
            (self.time_quota_reached(rule), ReportingTriggers::TIMQU, UsageReportTrigger::TIMQU),
            (
                over(seconds(rule.quota_holding_time), self.idle_since()),
                ReportingTriggers::QUHTI,
                UsageReportTrigger::QUHTI,
            ),
            (
                over(seconds(rule.quota_validity_time), self.provisioned),
                ReportingTriggers::QUVTI,
                UsageReportTrigger::QUVTI,
            ),
        ];
        self.quota_exhausted = ends.iter().any(|(ended, ..)| *ended);
        let reported =
            ends.iter().filter(|(ended, wanted, _)| *ended && rule.reporting_triggers.contains(*wanted));
        reported.fold(UsageReportTrigger::default(), |fired, (.., trigger)| fired | *trigger)
    }

    /// The time of the next check without other events.
    pub fn due(&self, rule: &CreateUrr, now: Duration, config: &Config) -> Option<Duration> {
        let after = |since: Duration, limit: Option<Duration>| {
            limit.filter(|limit| !limit.is_zero()).map(|limit| since + limit)
        };
        let quota = |due: Option<Duration>| due.filter(|_| !self.quota_exhausted);
        let inactivity = match seconds(rule.user_plane_inactivity_timer) {
            timer if self.idle_reported => after(now, timer),
            timer => after(self.idle_since(), timer),
        };
        let dues = [
            self.next_period,
            self.time_due(rule, now),
            quota(after(self.idle_since(), seconds(rule.quota_holding_time))),
            quota(after(self.provisioned, seconds(rule.quota_validity_time))),
            inactivity,
            self.monitoring.next(rule, config),
        ];
        dues.into_iter().flatten().min()
    }

    /// The time at which a time threshold or quota may be reached.
    fn time_due(&self, rule: &CreateUrr, now: Duration) -> Option<Duration> {
        let left = |limit: Option<Duration>, from: Totals| {
            limit.map(|limit| (limit + from.active).saturating_sub(self.totals.active))
        };
        let wanted = rule.reporting_triggers.contains(ReportingTriggers::TIMTH);
        let threshold = left(self.time_threshold(rule).filter(|_| wanted), self.threshold_from);
        let quota = left(self.time_quota(rule).filter(|_| !self.quota_exhausted), self.quota_from);
        let left = threshold.into_iter().chain(quota).min()?;
        let running = self.metered_until == now;
        Some(now + if running { left } else { POLL })
    }

    /// Whether there is usage since the last report.
    pub fn has_usage(&self) -> bool {
        self.totals.volume != self.reported.volume || self.totals.active != self.reported.active
    }

    /// Reports the usage since the last report, and starts a new measurement. A reached threshold restarts in
    /// full; others continue (TS 29.244 5.2.2.3.1).
    pub fn report(
        &mut self,
        rule: &CreateUrr,
        now: Duration,
        trigger: UsageReportTrigger,
        config: &Config,
    ) -> UsageReport {
        let mut report = UsageReport::new(rule.urr_id, UrSeqn(self.ur_seqn), trigger);
        report.start_time = Some(config.time(self.since));
        report.end_time = Some(config.time(now));
        self.put_measurements(rule, &mut report);
        report.time_of_first_packet =
            self.first_packet.filter(|time| *time >= self.since).map(|time| config.time(time));
        report.time_of_last_packet =
            self.last_packet.filter(|time| *time >= self.since).map(|time| config.time(time));
        report.usage_information = self.pass_monitoring_time(trigger);
        self.restart(trigger, now);
        report
    }

    fn put_measurements(&self, rule: &CreateUrr, report: &mut UsageReport) {
        let volume = self.totals.volume.since(&self.reported.volume);
        let info = rule.measurement_information.unwrap_or_default();
        let packets = |packets: u64| info.contains(MeasurementInformation::MNOP).then_some(packets);
        let active = self.totals.active.saturating_sub(self.reported.active);
        let method = rule.measurement_method;
        report.volume_measurement = method.contains(MeasurementMethod::VOLUM).then(|| VolumeMeasurement {
            total: Some(volume.total()),
            uplink: Some(volume.uplink),
            downlink: Some(volume.downlink),
            total_packets: packets(volume.uplink_packets.saturating_add(volume.downlink_packets)),
            uplink_packets: packets(volume.uplink_packets),
            downlink_packets: packets(volume.downlink_packets),
        });
        report.duration_measurement = method
            .contains(MeasurementMethod::DURAT)
            .then(|| Seconds(u32::try_from(active.as_secs()).unwrap_or(u32::MAX)));
    }

    /// Whether the report covers the usage before or after the Monitoring Time.
    fn pass_monitoring_time(&mut self, trigger: UsageReportTrigger) -> Option<UsageInformation> {
        if !trigger.contains(UsageReportTrigger::MONIT) {
            return self.monitoring.report();
        }
        // Thresholds and quotas restart, with the subsequent values if provided.
        self.threshold_from = self.totals;
        self.quota_from = self.totals;
        Some(self.monitoring.pass())
    }

    fn restart(&mut self, trigger: UsageReportTrigger, now: Duration) {
        if trigger.contains(UsageReportTrigger::VOLTH) {
            self.threshold_from.volume = self.totals.volume;
        }
        if trigger.contains(UsageReportTrigger::TIMTH) {
            self.threshold_from.active = self.totals.active;
        }
        self.ur_seqn = self.ur_seqn.wrapping_add(1);
        self.reported = self.totals;
        self.since = now;
    }

    /// Resets the measurement when the URR's last PDR is removed: thresholds and quota are as provisioned (TS
    /// 29.244 5.2.2.3.1).
    pub fn reset(&mut self, now: Duration) {
        self.reported = self.totals;
        self.threshold_from = self.totals;
        self.quota_from = self.totals;
        self.quota_exhausted = false;
        self.since = now;
        self.provisioned = now;
    }
}

/// Limits relative to counters that were at `from` when the limits started.
fn absolute(limits: Volume, from: contract::Volume) -> VolumeLimits {
    VolumeLimits {
        total: limits.total.map(|limit| limit.saturating_add(from.total())),
        uplink: limits.uplink.map(|limit| limit.saturating_add(from.uplink)),
        downlink: limits.downlink.map(|limit| limit.saturating_add(from.downlink)),
    }
}
