//! Peers that are no permitted SMFs: answered as TS 29.244 requires, without creating state.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use pith_pfcp::ie::Cause;
use pith_pfcp::message::HeartbeatResponse;
use pith_pfcp::{Header, Message};

use crate::port::{Context, Notice};
use crate::rejection::Rejection;
use crate::upf::{Upf, requester_seid};

/// Maximum number of answers to such peers in [`SPAN`]: with a forged source address, the UPF's answers are sent to third
/// hosts.
const MAX_ANSWERS: u32 = 100;
/// The interval in which answers are counted.
const SPAN: Duration = Duration::from_secs(1);
/// Shortest time between two notices about such peers: anyone can cause them.
const NOTICE_INTERVAL: Duration = Duration::from_secs(10);

/// Hosts that are named in notices about GTP-U within [`FORGET_AFTER`]; their number is bounded because anyone can cause them.
const MAX_NAMED: usize = 64;
/// A host is named again after this time.
const FORGET_AFTER: Duration = Duration::from_secs(3600);

/// Hosts that sent GTP-U for tunnels of others, and were named in a notice.
#[derive(Debug, Default)]
pub struct UnknownSources {
    since: Duration,
    named: BTreeSet<IpAddr>,
}

impl UnknownSources {
    /// Whether the host is to be named now.
    fn is_new(&mut self, now: Duration, source: IpAddr) -> bool {
        if now >= self.since + FORGET_AFTER {
            (self.since, self.named) = (now, BTreeSet::new());
        }
        self.named.len() < MAX_NAMED && self.named.insert(source)
    }
}

/// Recent answers to such peers.
#[derive(Debug, Default)]
pub struct UnknownPeers {
    span_begun: Duration,
    answers: u32,
    noticed: Option<Duration>,
    messages: u64,
}

impl UnknownPeers {
    fn may_answer(&mut self, now: Duration) -> bool {
        if now >= self.span_begun + SPAN {
            (self.span_begun, self.answers) = (now, 0);
        }
        self.answers += 1;
        self.answers <= MAX_ANSWERS
    }

    /// The number of messages since the last notice, if the next one is due.
    fn notice(&mut self, now: Duration) -> Option<u64> {
        self.messages += 1;
        if self.noticed.is_some_and(|noticed| now < noticed + NOTICE_INTERVAL) {
            return None;
        }
        self.noticed = Some(now);
        Some(std::mem::take(&mut self.messages))
    }
}

impl Upf {
    /// Answers a heartbeat (TS 29.244 6.2.2.2), rejects an association, and answers other requests that there
    /// is no association (TS 29.244 8.2.1, cause 72). Nothing is stored: a duplicate is answered again.
    pub(crate) fn handle_unknown_peer(
        &mut self,
        context: &mut Context<'_>,
        peer: SocketAddr,
        header: &Header,
        message: &Message,
    ) {
        let answer = match message {
            Message::HeartbeatRequest(_) => {
                Some(HeartbeatResponse::new(self.config.recovery_time_stamp()).into())
            }
            Message::AssociationSetupRequest(_) => {
                self.rejection_message(header.message_type, Rejection::new(Cause::RequestRejected))
            }
            _ => {
                let rejection = Rejection::new(Cause::NoEstablishedPfcpAssociation);
                self.rejection_message(header.message_type, rejection)
            }
        };
        if let Some(answer) = answer.filter(|_| self.unknown_peers.may_answer(context.now)) {
            context.send(peer, requester_seid(message), header.sequence, &answer);
        }
        if !matches!(message, Message::HeartbeatRequest(_)) {
            self.notify_unknown_peer(context, peer);
        }
    }

    /// Logs a host that sends GTP-U for another's tunnel, once: often it is the gNB itself.
    pub(crate) fn report_unknown_source(&mut self, context: &mut Context<'_>, source: IpAddr, peer: IpAddr) {
        if self.gtpu_sources.is_new(context.now, source) {
            context.notice(Notice::UnknownGtpuSource { source, peer });
        }
    }

    /// Logs a notice, if one is due.
    pub(crate) fn notify_unknown_peer(&mut self, context: &mut Context<'_>, peer: SocketAddr) {
        if let Some(messages) = self.unknown_peers.notice(context.now) {
            context.notice(Notice::UnknownPeer { peer, messages });
        }
    }
}
