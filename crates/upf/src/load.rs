//! Load and overload control: what SMFs are told of how busy the UPF is (TS 29.244 6.2.3, 6.2.4).

use std::net::SocketAddr;

use pith_pfcp::Message;
use pith_pfcp::ie::{CodedDuration, CpFunctionFeatures, Metric, SequenceNumber};
use pith_pfcp::message::{LoadControlInformation, OverloadControlInformation};

use crate::contract::Rates;
use crate::upf::Upf;

/// Metrics are told in steps of so many percent, so that sequence numbers stand for changes that matter.
const STEP: u8 = 5;
/// From here on SMFs are asked for fewer requests, in percent of UPF-C's time.
const OVERLOADED: u8 = 85;
/// For how long a wish for fewer requests holds, in seconds.
const VALIDITY: u64 = 10;

/// A metric with the sequence number of its last change.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    metric: u8,
    sequence: u32,
}

impl Told {
    fn update(&mut self, metric: u8) {
        if metric != self.metric {
            (self.metric, self.sequence) = (metric, self.sequence.wrapping_add(1));
        }
    }
}

/// What was told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    /// Share of its time that UPF-C is at work, in percent.
    pub busy: u8,
    load: Told,
    reduction: Told,
}

impl Upf {
    /// Puts load and overload into a response, if the SMF heeds them.
    pub(crate) fn tell_load(&mut self, peer: SocketAddr, response: &mut Message) {
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

    /// What is used most, in percent: time, room for sessions, or rates that may be promised.
    fn load_metric(&self) -> u8 {
        let percent = |used: u64, all: u64| (used.saturating_mul(100) / all.max(1)).min(100) as u8;
        let sessions = percent(self.sessions.len() as u64, self.config.max_sessions as u64);
        let promised = self.config.guaranteed.map_or(0, |all: Rates| {
            let given = self.sessions.promised();
            percent(given.uplink, all.uplink).max(percent(given.downlink, all.downlink))
        });
        self.load.busy.min(100).max(sessions).max(promised)
    }
}

/// How much less SMFs are to ask, in percent: nothing up to the bound, three quarters where no time is left.
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
