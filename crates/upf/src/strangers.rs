//! Peers that are no permitted SMFs: answered as TS 29.244 requires, without creating state.

use std::net::SocketAddr;
use std::time::Duration;

use pith_pfcp::ie::Cause;
use pith_pfcp::message::HeartbeatResponse;
use pith_pfcp::{Header, Message};

use crate::port::{Notice, Turn};
use crate::rejection::Rejection;
use crate::upf::{Upf, asker};

/// Most answers to such peers in [`SPAN`]: with a forged source address, the UPF's answers are sent to third
/// hosts.
const MAX_ANSWERS: u32 = 100;
/// The interval in which answers are counted.
const SPAN: Duration = Duration::from_secs(1);
/// Shortest time between two notices about such peers: anyone can cause them.
const NOTICE_INTERVAL: Duration = Duration::from_secs(10);

/// Recent answers to such peers.
#[derive(Debug, Default)]
pub struct Strangers {
    span_begun: Duration,
    answers: u32,
    noticed: Option<Duration>,
    messages: u64,
}

impl Strangers {
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
    pub(crate) fn on_stranger(
        &mut self,
        turn: &mut Turn<'_>,
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
        if let Some(answer) = answer.filter(|_| self.strangers.may_answer(turn.now)) {
            turn.send(peer, asker(message), header.sequence, &answer);
        }
        if !matches!(message, Message::HeartbeatRequest(_)) {
            self.note_stranger(turn, peer);
        }
    }

    /// Logs a notice, if one is due.
    pub(crate) fn note_stranger(&mut self, turn: &mut Turn<'_>, peer: SocketAddr) {
        if let Some(messages) = self.strangers.notice(turn.now) {
            turn.notice(Notice::Stranger { peer, messages });
        }
    }
}
