//! Load and overload control information from UPFs, and throttling of new sessions (TS 29.244 6.2.3, 6.2.4).
//!
//! For a reduction metric of `n` percent, `n` of 100 new sessions are refused here, spread evenly.
//! Modifications, deletions and restorations continue: they serve existing sessions, and deletions reduce load.

use super::{N4Gateway, N4GatewayEffect};
use crate::kit::{Duration, Level, N4Input, Timer, TimerKey};
use pith_pfcp::Message;
use pith_pfcp::ie::{PfcpSeReqFlags, SequenceNumber};
use pith_pfcp::message::{LoadControlInformation, OverloadControlInformation, SessionEstablishmentRequest};

/// Load and overload information of a UPF.
#[derive(Debug, Default)]
pub(super) struct LoadControl {
    load: Option<(SequenceNumber, u8)>,
    overload: Option<SequenceNumber>,
    /// Requested reduction of new sessions, in percent.
    reduction: u8,
    /// Accumulated hundredths of a new session to refuse.
    debt: u8,
}

impl LoadControl {
    /// Its load, in percent.
    pub(super) fn load(&self) -> Option<u8> {
        self.load.map(|(_, metric)| metric)
    }

    /// Whether this new session is to be refused.
    fn refuses(&mut self) -> bool {
        self.debt += self.reduction;
        let refuses = self.debt >= 100;
        self.debt %= 100;
        refuses
    }
}

impl N4Gateway {
    /// Stores the load in a response; information older than the last is ignored (TS 29.244 6.2.3.3.2).
    pub(super) fn learn_load(&mut self, peer: usize, response: &Message) {
        let (load, overload) = match response {
            Message::SessionEstablishmentResponse(it) => {
                (&it.load_control_information, &it.overload_control_information)
            }
            Message::SessionModificationResponse(it) => {
                (&it.load_control_information, &it.overload_control_information)
            }
            Message::SessionDeletionResponse(it) => {
                (&it.load_control_information, &it.overload_control_information)
            }
            _ => return,
        };
        if let Some(load) = load {
            self.learn_metric(peer, load);
        }
        if let Some(overload) = overload {
            self.learn_overload(peer, overload);
        }
    }

    fn learn_metric(&mut self, peer: usize, load: &LoadControlInformation) {
        let Some(told) = self.peers.get_mut(peer).map(|peer| &mut peer.told) else { return };
        if told.load.is_none_or(|(known, _)| known.0 < load.sequence_number.0) {
            let before = told.load.replace((load.sequence_number, load.metric.0));
            if before.is_none_or(|(_, metric)| metric != load.metric.0) {
                self.report_load(peer, load.metric.0);
            }
        }
    }

    /// Sends the load to SMFs, which select UPFs by it (TS 23.501 6.3.3.3).
    fn report_load(&mut self, peer: usize, percent: u8) {
        if let Some(upf) = self.handle_of(peer) {
            self.send_to_all_shards(|| N4Input::UpfLoad { upf, percent });
        }
    }

    fn learn_overload(&mut self, peer: usize, overload: &OverloadControlInformation) {
        let Some(slot) = self.peers.get_mut(peer) else { return };
        if slot.told.overload.is_some_and(|known| known.0 > overload.sequence_number.0) {
            return;
        }
        let before = std::mem::replace(&mut slot.told.reduction, overload.reduction_metric.0);
        slot.told.overload = Some(overload.sequence_number);
        let name = slot.config.name.clone();
        let key = TimerKey { owner: peer as u64, timer: Timer::PfcpOverload };
        let until = overload.period_of_validity.seconds();
        self.out.push(match (overload.reduction_metric.0, until) {
            (0, _) | (_, None) => N4GatewayEffect::StopTimer(key),
            (_, Some(seconds)) => N4GatewayEffect::StartTimer { key, after: Duration::from_secs(seconds) },
        });
        let now = overload.reduction_metric.0;
        if before != now {
            self.event(Level::Warn, format!("UPF {name} requests {now}% fewer new sessions"));
        }
    }

    /// The UPF's overload information has expired.
    pub(super) fn forget_overload(&mut self, peer: usize) {
        if let Some(slot) = self.peers.get_mut(peer) {
            slot.told.reduction = 0;
        }
    }

    /// Whether a request is a new session that the UPF's overload information requires to refuse.
    pub(super) fn must_throttle(&mut self, peer: usize, request: &Message) -> bool {
        matches!(request, Message::SessionEstablishmentRequest(request) if !is_restoration(request))
            && self.peers.get_mut(peer).is_some_and(|peer| peer.told.refuses())
    }
}

/// Whether the request establishes a session that the UPF had before (TS 29.244 8.2.136).
fn is_restoration(request: &SessionEstablishmentRequest) -> bool {
    request.pfcp_se_req_flags.is_some_and(|flags| flags.contains(PfcpSeReqFlags::RESTI))
}
