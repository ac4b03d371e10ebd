//! GTP-U signalling (TS 29.281 7), answered by the worker that receives it.

use super::path::Path;
use crate::rules::Now;
use crate::sys::GtpuSocket;
use pith_pfcp::gtpu::{ErrorIndication, ExtensionHeader, GTPU_PORT, GtpuMessageType, Packet, Signalling};
use pith_upf::contract::{DropReason, Event, Teid};
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

/// Answers per second and worker, so that peers cannot use them to flood a third host.
const ANSWERS_PER_SECOND: u32 = 200;
/// Answers per second and worker to hosts that are the peer of no tunnel. They are counted separately, so that such hosts
/// cannot use up the answers for peers.
const ANSWERS_TO_UNKNOWN_PEERS: u32 = 50;
const SECOND: u64 = 1_000_000_000;

/// The sender of a message, the index of the receiving socket, and whether the sender is a tunnel's peer.
pub type Sender = (SocketAddr, usize, bool);

/// Answers at a limited rate.
#[derive(Debug)]
pub struct Signaller {
    second: u64,
    /// Answers left in this second: to peers, to others.
    answers: [u32; 2],
    message: Vec<u8>,
}

impl Signaller {
    pub fn new() -> Self {
        Self { second: 0, answers: [0; 2], message: Vec::new() }
    }

    /// Handles a message other than a G-PDU.
    pub fn answer(&mut self, path: &Path, packet: &Packet<'_>, from: Sender) {
        match Signalling::decode(packet) {
            Ok(Some(Signalling::EchoRequest { sequence })) => {
                self.send(path, &Signalling::EchoResponse { sequence }, from);
            }
            // An Error Indication contains its sender's address (TS 29.281 7.3.1); one with another address
            // is ignored.
            Ok(Some(Signalling::ErrorIndication(indication))) if indication.peer != from.0.ip() => {
                path.drop(DropReason::StrayErrorIndication, 1);
            }
            Ok(Some(Signalling::ErrorIndication(indication))) => {
                let event = Event::ErrorIndication { peer: indication.peer, teid: Teid(indication.teid) };
                path.shared.events.push(event);
            }
            // Ignored: no Echo Request is sent, and tunnels are released by PFCP.
            Ok(Some(_)) => {}
            Ok(None) if packet.message_type == GtpuMessageType::TUNNEL_STATUS => {}
            Ok(None) => path.drop(DropReason::UnsupportedGtpu, 1),
            Err(_) => path.drop(DropReason::MalformedGtpu, 1),
        }
    }

    /// Answers a G-PDU with an unknown TEID (TS 29.281 7.3.1).
    pub fn refuse_teid(&mut self, path: &Path, teid: Teid, (peer, socket, is_peer): Sender) {
        path.drop(DropReason::UnknownTeid, 1);
        if !path.shared.refuses.load(Relaxed) {
            return;
        }
        let Some(own) = path.sockets.get(socket).map(|socket| socket.address().ip()) else { return };
        let indication = Signalling::ErrorIndication(ErrorIndication { teid: teid.0, peer: own });
        self.send(path, &indication, (SocketAddr::new(peer.ip(), GTPU_PORT), socket, is_peer));
    }

    /// Answers a G-PDU with an unsupported extension header whose comprehension is required (TS 29.281 5.2.1,
    /// 7.2.3).
    pub fn refuse_extension(&mut self, path: &Path, (peer, socket, is_peer): Sender) {
        path.drop(DropReason::UnsupportedGtpu, 1);
        let header_types = vec![ExtensionHeader::PDU_SESSION_CONTAINER];
        let notification = Signalling::SupportedExtensionHeadersNotification { header_types };
        self.send(path, &notification, (SocketAddr::new(peer.ip(), GTPU_PORT), socket, is_peer));
    }

    fn send(&mut self, path: &Path, message: &Signalling, (peer, socket, is_peer): Sender) {
        if !self.may_answer(path.now, is_peer) {
            return;
        }
        self.message.clear();
        message.encode(&mut self.message);
        send_signalling(path.sockets.get(socket), &self.message, peer);
    }

    fn may_answer(&mut self, now: Now, is_peer: bool) -> bool {
        let second = now.0 / SECOND;
        if self.second != second {
            (self.second, self.answers) = (second, [0; 2]);
        }
        let [to_peers, to_unknown_peers] = &mut self.answers;
        let (answers, most) = if is_peer {
            (to_peers, ANSWERS_PER_SECOND)
        } else {
            (to_unknown_peers, ANSWERS_TO_UNKNOWN_PEERS)
        };
        *answers += 1;
        *answers <= most
    }
}

/// Sends a path message. A failure is logged only: the counters are for user packets.
pub fn send_signalling(socket: Option<&GtpuSocket>, message: &[u8], peer: SocketAddr) {
    match socket.map(|socket| socket.send_to(message, peer)) {
        Some(Ok(_)) => {}
        Some(Err(error)) => tracing::debug!(%peer, %error, "GTP-U signalling could not be sent"),
        None => tracing::debug!(%peer, "no N3 address to send GTP-U signalling from"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_bounded_each_second() {
        let mut signaller = Signaller::new();
        let answered = |signaller: &mut Signaller, now, is_peer| {
            (0..1000).filter(|_| signaller.may_answer(now, is_peer)).count()
        };
        assert_eq!(answered(&mut signaller, Now(SECOND), false), 50, "unknown peers");
        assert_eq!(answered(&mut signaller, Now(SECOND), true), 200, "peers, all the same");
        assert_eq!(answered(&mut signaller, Now(2 * SECOND - 1), true), 0);
        assert_eq!(answered(&mut signaller, Now(2 * SECOND), true), 200);
    }
}
