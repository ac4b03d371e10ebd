//! Monitoring Times: usage after such a time is reported separately, and other thresholds and quotas may
//! apply (TS 29.244 5.2.2.2.1).

use std::time::Duration;

use pith_pfcp::ie::{NtpSeconds, UsageInformation};
use pith_pfcp::rules::{AdditionalMonitoringTime, CreateUrr};

use serde::{Deserialize, Serialize};

use crate::config::Config;

/// The number of past Monitoring Times, and whether the usage since the last is still unreported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitoring {
    passed: u16,
    is_after: bool,
}

impl Monitoring {
    /// The values that apply since the last past Monitoring Time.
    pub fn in_force(&self, rule: &CreateUrr) -> Option<AdditionalMonitoringTime> {
        times(rule).into_iter().nth(self.passed.checked_sub(1)?.into())
    }

    /// The next Monitoring Time, on the clock of inputs.
    pub fn next(&self, rule: &CreateUrr, config: &Config) -> Option<Duration> {
        let next = times(rule).into_iter().nth(self.passed.into())?;
        Some(Duration::from_secs(next.monitoring_time.to_unix().saturating_sub(config.started)))
    }

    /// A Monitoring Time has passed, and the usage before it is reported.
    pub fn pass(&mut self) -> UsageInformation {
        (self.passed, self.is_after) = (self.passed.saturating_add(1), true);
        UsageInformation::BEF
    }

    /// Usage is reported; returns whether it is that after a Monitoring Time.
    pub fn report(&mut self) -> Option<UsageInformation> {
        std::mem::take(&mut self.is_after).then_some(UsageInformation::AFT)
    }
}

/// All Monitoring Times of a rule, in order.
fn times(rule: &CreateUrr) -> Vec<AdditionalMonitoringTime> {
    let Some(first) = rule.monitoring_time else { return Vec::new() };
    let mut times = vec![with_subsequent(rule, first)];
    times.extend(rule.additional_monitoring_times.iter().cloned());
    times.sort_by_key(|time| time.monitoring_time.to_unix());
    times
}

fn with_subsequent(rule: &CreateUrr, time: NtpSeconds) -> AdditionalMonitoringTime {
    AdditionalMonitoringTime {
        subsequent_volume_threshold: rule.subsequent_volume_threshold,
        subsequent_time_threshold: rule.subsequent_time_threshold,
        subsequent_volume_quota: rule.subsequent_volume_quota,
        subsequent_time_quota: rule.subsequent_time_quota,
        ..AdditionalMonitoringTime::new(time)
    }
}
