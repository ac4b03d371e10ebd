//! PFCP of a UPF that is not configured: it gets an answer where TS 29.244 has one, and leaves nothing behind.

use super::{N4Gateway, N4GatewayEffect};
use crate::kit::{Duration, Level, Timer, TimerKey};
use pith_pfcp::ie::Cause;
use pith_pfcp::message::{
    AssociationReleaseResponse, AssociationSetupResponse, AssociationUpdateResponse, HeartbeatResponse,
    NodeReportResponse, SessionReportResponse,
};
use pith_pfcp::{Header, Message};
use pith_types::Seid;
use std::net::SocketAddr;

/// Over which messages of strangers are counted, and told of once.
const SPAN: Duration = Duration::from_secs(10);
/// Most answers to strangers in [`SPAN`]: a forged sender address makes the SMF send packets to others.
const MAX_ANSWERS: u64 = 1000;

impl N4Gateway {
    /// Answers a heartbeat (TS 29.244 6.2.2.2), rejects an association, and tells others that they have none
    /// (TS 29.244 8.2.1, cause 72). Nothing is kept: a duplicate is answered anew.
    pub(super) fn stranger_asks(&mut self, from: SocketAddr, header: &Header, request: &Message) {
        let (node, none) = (self.node_id(), Cause::NoEstablishedPfcpAssociation);
        let answer = match request {
            Message::HeartbeatRequest(_) => {
                Message::HeartbeatResponse(HeartbeatResponse::new(self.recovery()))
            }
            Message::AssociationSetupRequest(_) => Message::AssociationSetupResponse(
                AssociationSetupResponse::new(node, Cause::RequestRejected, self.recovery()),
            ),
            Message::AssociationUpdateRequest(_) => {
                Message::AssociationUpdateResponse(AssociationUpdateResponse::new(node, none))
            }
            Message::AssociationReleaseRequest(_) => {
                Message::AssociationReleaseResponse(AssociationReleaseResponse::new(node, none))
            }
            Message::NodeReportRequest(_) => Message::NodeReportResponse(NodeReportResponse::new(node, none)),
            Message::SessionReportRequest(_) => {
                Message::SessionReportResponse(SessionReportResponse::new(none))
            }
            _ => return self.note_stranger(from),
        };
        if self.strangers < MAX_ANSWERS {
            self.send(from, Seid(0), header.sequence, &answer);
        }
        self.note_stranger(from);
    }

    /// Counts a message, and tells the operator of the first.
    pub(super) fn note_stranger(&mut self, from: SocketAddr) {
        self.strangers = self.strangers.saturating_add(1);
        if self.strangers == 1 {
            let key = TimerKey { owner: 0, timer: Timer::PfcpStrangers };
            self.out.push(N4GatewayEffect::StartTimer { key, after: SPAN });
            let text =
                format!("PFCP of {from}, which is no UPF of 'n4.upfs', is refused; to use it, add it there");
            self.event(Level::Warn, text);
        }
    }

    /// The span is over.
    pub(super) fn forget_strangers(&mut self) {
        if self.strangers > 1 {
            let text = format!("{} PFCP messages of strangers were refused in 10 s", self.strangers);
            self.event(Level::Warn, text);
        }
        self.strangers = 0;
    }
}
