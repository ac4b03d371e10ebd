//! Load and overload control: reports of the UPF's load to SMFs (TS 29.244 6.2.3, 6.2.4).

use std::net::SocketAddr;

use pith_pfcp::Message;
use pith_pfcp::ie::{CodedDuration, CpFunctionFeatures, Metric, SequenceNumber};
use pith_pfcp::message::{LoadControlInformation, OverloadControlInformation};

use serde::{Deserialize, Serialize};

use crate::contract::Rates;
use crate::upf::Upf;

/// Metrics are rounded to this many percent, so that sequence numbers change only with significant changes.
const STEP: u8 = 5;
/// Overload threshold in percent of UPF-C's time: above it the UPF requests a reduction from the SMFs.
const OVERLOADED: u8 = 85;
/// Validity of an overload report, in seconds.
const VALIDITY: u64 = 10;

/// A metric with the sequence number of its last change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ReportedMetric {
    metric: u8,
    sequence: u32,
}

impl ReportedMetric {
    fn update(&mut self, metric: u8) {
        if metric != self.metric {
            (self.metric, self.sequence) = (metric, self.sequence.wrapping_add(1));
        }
    }
}

/// The reported values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// UPF-C's share of its time that it is busy, in percent.
    pub busy: u8,
    load: ReportedMetric,
    reduction: ReportedMetric,
}

impl Upf {
    /// Adds load and overload information to a response, if the SMF supports them.
    pub(crate) fn add_load_information(&mut self, peer: SocketAddr, response: &mut Message) {
        let (load, overload) = match response {
            Message::SessionEstablishmentResponse(response) => {
                (&mut response.load_control_information, &mut response.overload_control_information)
            }
            Message::SessionModificationResponse(response) => {
                (&mut response.load_control_information, &mut response.overload_control_information)
            }
            Message::SessionDeletionResponse(response) => {
                (&mut response.load_control_information, &mut response.overload_control_information)
            }
            _ => return,
        };
        let mut associations = self.associations.values();
        let Some(smf) = associations.find(|association| association.address.ip() == peer.ip()) else {
            return;
        };
        let features = smf.cp_features;
        let metric = self.load_metric();
        self.load.load.update(metric / STEP * STEP);
        self.load.reduction.update(reduction(self.load.busy));
        *load = features.contains(CpFunctionFeatures::LOAD).then(|| self.load.information());
        let has_news = self.load.reduction.sequence != 0;
        *overload = (features.contains(CpFunctionFeatures::OVRL) && has_news).then(|| self.load.overload());
    }

    /// The most used resource, in percent: time, sessions, or guaranteed rates.
    fn load_metric(&self) -> u8 {
        let percent = |used: u64, all: u64| (used.saturating_mul(100) / all.max(1)).min(100) as u8;
        let sessions = percent(self.sessions.len() as u64, self.config.max_sessions as u64);
        let admitted = self.config.guaranteed.map_or(0, |all: Rates| {
            let sum = self.sessions.admitted_rates();
            percent(sum.uplink, all.uplink).max(percent(sum.downlink, all.downlink))
        });
        self.load.busy.min(100).max(sessions).max(admitted)
    }
}

/// The requested reduction of requests, in percent: 0 up to the threshold, 75 without any time left.
fn reduction(busy: u8) -> u8 {
    busy.min(100).saturating_sub(OVERLOADED).saturating_mul(5) / STEP * STEP
}

impl Load {
    fn information(&self) -> LoadControlInformation {
        LoadControlInformation::new(SequenceNumber(self.load.sequence), Metric(self.load.metric))
    }

    fn overload(&self) -> OverloadControlInformation {
        OverloadControlInformation::new(
            SequenceNumber(self.reduction.sequence),
            Metric(self.reduction.metric),
            CodedDuration::at_least(VALIDITY),
        )
    }
}
