//! PFCP from unknown peers, that is UPFs that are not configured: answered where TS 29.244 defines
//! an answer, without keeping state.

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

/// Period in which messages of unknown peers are counted, and logged once.
const SPAN: Duration = Duration::from_secs(10);
/// Maximum number of answers to unknown peers in [`SPAN`]: with a forged source address the answers
/// would flood a third party.
const MAX_ANSWERS: u64 = 1000;

impl N4Gateway {
    /// Answers a heartbeat (TS 29.244 6.2.2.2), rejects an association, and answers other requests with cause
    /// 72, no association (TS 29.244 8.2.1). No state is kept: a duplicate is answered again.
    pub(super) fn answer_unknown_peer(&mut self, from: SocketAddr, header: &Header, request: &Message) {
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
            _ => return self.count_unknown_peer(from),
        };
        if self.unknown_peers < MAX_ANSWERS {
            self.send(from, Seid(0), header.sequence, &answer);
        }
        self.count_unknown_peer(from);
    }

    /// Counts a message, and logs the first of a period.
    pub(super) fn count_unknown_peer(&mut self, from: SocketAddr) {
        self.unknown_peers = self.unknown_peers.saturating_add(1);
        if self.unknown_peers == 1 {
            let key = TimerKey { owner: 0, timer: Timer::PfcpUnknownPeers };
            self.out.push(N4GatewayEffect::StartTimer { key, after: SPAN });
            let text = format!(
                "PFCP from {from}, which is not a UPF of 'n4.upfs', is refused; to use it, add it there"
            );
            self.event(Level::Warn, text);
        }
    }

    /// Starts a new period.
    pub(super) fn reset_unknown_peers(&mut self) {
        if self.unknown_peers > 1 {
            let text = format!("{} PFCP messages of unknown peers were refused in 10 s", self.unknown_peers);
            self.event(Level::Warn, text);
        }
        self.unknown_peers = 0;
    }
}
