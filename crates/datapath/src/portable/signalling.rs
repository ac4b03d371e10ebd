//! What GTP-U endpoints tell each other, answered by the worker that hears it (TS 29.281 7).

use super::path::Path;
use crate::rules::Now;
use crate::sys::GtpuSocket;
use pith_pfcp::gtpu::{ErrorIndication, ExtensionHeader, GTPU_PORT, GtpuMessageType, Packet, Signalling};
use pith_upf::contract::{DropReason, Event, Teid};
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

/// Answers that peers may cause per second and worker, so that nobody can use them to flood another.
const ANSWERS_PER_SECOND: u32 = 200;
/// The same for hosts that no tunnel leads to, which take none of the peers' answers.
const ANSWERS_TO_STRANGERS: u32 = 50;
const SECOND: u64 = 1_000_000_000;

/// Who sent a message, to which of the worker's sockets, and whether a tunnel leads there.
pub type Sender = (SocketAddr, usize, bool);

/// Answers, at a bounded rate.
#[derive(Debug)]
pub struct Signaller {
    second: u64,
    /// To peers, and to others.
    answers: [u32; 2],
    message: Vec<u8>,
}

impl Signaller {
    /// With all its answers left.
    pub fn new() -> Self {
        Self { second: 0, answers: [0; 2], message: Vec::new() }
    }

    /// Handles a message that is no G-PDU.
    pub fn answer(&mut self, path: &Path, packet: &Packet<'_>, from: Sender) {
        match Signalling::decode(packet) {
            Ok(Some(Signalling::EchoRequest { sequence })) => {
                self.send(path, &Signalling::EchoResponse { sequence }, from);
            }
            // A GTP-U peer names itself in the message (TS 29.281 7.3.1): one that names another is not believed.
            Ok(Some(Signalling::ErrorIndication(indication))) if indication.peer != from.0.ip() => {
                path.drop(DropReason::StrayErrorIndication, 1);
            }
            Ok(Some(Signalling::ErrorIndication(indication))) => {
                let event = Event::ErrorIndication { peer: indication.peer, teid: Teid(indication.teid) };
                path.shared.events.push(event);
            }
            // Nothing waits for these: no Echo Request is sent, and tunnels end by PFCP.
            Ok(Some(_)) => {}
            Ok(None) if packet.message_type == GtpuMessageType::TUNNEL_STATUS => {}
            Ok(None) => path.drop(DropReason::UnsupportedGtpu, 1),
            Err(_) => path.drop(DropReason::MalformedGtpu, 1),
        }
    }

    /// Refuses a G-PDU for a tunnel that is not there (TS 29.281 7.3.1).
    pub fn refuse_teid(&mut self, path: &Path, teid: Teid, (peer, socket, is_peer): Sender) {
        path.drop(DropReason::UnknownTeid, 1);
        if !path.shared.refuses.load(Relaxed) {
            return;
        }
        let Some(own) = path.sockets.get(socket).map(|socket| socket.address().ip()) else { return };
        let indication = Signalling::ErrorIndication(ErrorIndication { teid: teid.0, peer: own });
        self.send(path, &indication, (SocketAddr::new(peer.ip(), GTPU_PORT), socket, is_peer));
    }

    /// Refuses a G-PDU with an extension header that has to be understood and is not
    /// (TS 29.281 5.2.1, 7.2.3).
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
        let [to_peers, to_strangers] = &mut self.answers;
        let (answers, most) =
            if is_peer { (to_peers, ANSWERS_PER_SECOND) } else { (to_strangers, ANSWERS_TO_STRANGERS) };
        *answers += 1;
        *answers <= most
    }
}

/// Sends a message of the path. One that can't be sent is no packet of a user's, so no counter of these tells of it.
pub fn send_signalling(socket: Option<&GtpuSocket>, message: &[u8], peer: SocketAddr) {
    match socket.map(|socket| socket.send_to(message, peer)) {
        Some(Ok(_)) => {}
        Some(Err(error)) => tracing::debug!(%peer, %error, "GTP-U signalling can't be sent"),
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
        assert_eq!(answered(&mut signaller, Now(SECOND), false), 50, "strangers");
        assert_eq!(answered(&mut signaller, Now(SECOND), true), 200, "peers, all the same");
        assert_eq!(answered(&mut signaller, Now(2 * SECOND - 1), true), 0);
        assert_eq!(answered(&mut signaller, Now(2 * SECOND), true), 200);
    }
}
