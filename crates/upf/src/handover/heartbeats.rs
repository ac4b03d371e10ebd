//! Heartbeats while the state is handed over, when no other message is handled: an SMF must not regard the UPF as failed
//! (TS 29.244 6.2.2).

use std::net::SocketAddr;

use pith_pfcp::Message;
use pith_pfcp::ie::NtpSeconds;
use pith_pfcp::message::HeartbeatResponse;

use crate::association::{Association, PathState};
use crate::upf::Upf;

/// Answers the heartbeats that change nothing.
#[derive(Debug)]
pub struct Heartbeats {
    own: NtpSeconds,
    associations: Vec<Association>,
}

impl Upf {
    /// The answers by the current state.
    pub fn heartbeats(&self) -> Heartbeats {
        Heartbeats {
            own: self.config.recovery_time_stamp(),
            associations: self.associations.values().cloned().collect(),
        }
    }
}

impl Heartbeats {
    /// The response to a datagram; `None` if UPF-C must handle it: it is no heartbeat, of no SMF with an association, or of one that
    /// has restarted or recovered.
    pub fn answer(&self, peer: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        let Ok((header, Message::HeartbeatRequest(request))) = Message::decode(datagram) else { return None };
        let mut known = self.associations.iter().filter(|known| known.address.ip() == peer.ip()).peekable();
        known.peek()?;
        let is_news = |known: &Association| {
            known.is_port(peer.port())
                && (known.recovery != Some(request.recovery_time_stamp) || known.path != PathState::Up)
        };
        if header.follow_on || known.any(is_news) {
            return None;
        }
        let mut response = Vec::new();
        let message = Message::from(HeartbeatResponse::new(self.own));
        message.encode(0, header.sequence, &mut response).ok()?;
        Some(response)
    }
}
