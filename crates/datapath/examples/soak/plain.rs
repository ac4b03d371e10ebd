//! Without NAT: UDP between UEs and a server, both by their own addresses.

use super::support::random::Random;
use super::support::*;
use super::{Load, NOBODY, SESSIONS, Senders, any_session, teid, ue};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const UE_PORT: u16 = 5000;
const SERVER_PORT: u16 = 7000;

pub struct PlainLoad {
    senders: Senders,
    /// Packets received by the data network, and by the gNB.
    up: Arc<AtomicU64>,
    down: Arc<AtomicU64>,
}

impl PlainLoad {
    pub fn start(lab: &Lab) -> Self {
        let server = lab.data_network(SERVER_PORT);
        let mut load = Self { senders: Senders::new(), up: Arc::default(), down: Arc::default() };
        let gnb = lab.gnb.try_clone().unwrap();
        load.senders.send(2, move |noise| send_uplink(&gnb, noise));
        let out = lab.server.run(|| UdpSocket::bind((SERVER, 0)).unwrap());
        load.senders.send(3, move |noise| send_downlink(&out, noise));
        for (socket, count) in [(server, &load.up), (lab.gnb.try_clone().unwrap(), &load.down)] {
            let count = Arc::clone(count);
            load.senders.receive(socket, move |_| {
                count.fetch_add(1, Relaxed);
            });
        }
        load
    }
}

impl Load for PlainLoad {
    fn senders(&mut self) -> &mut Senders {
        &mut self.senders
    }

    fn all_through(&self, lab: &Lab) {
        let before = (self.up.load(Relaxed), self.down.load(Relaxed));
        let sender = lab.server.run(|| UdpSocket::bind((SERVER, 0)).unwrap());
        for id in 1..=SESSIONS {
            lab.uplink(teid(id), &udp(ue(id), SERVER, SERVER_PORT, b"through"));
            sender.send_to(b"through", (ue(id), UE_PORT)).unwrap();
        }
        wait_for("a packet of each session, both ways", || {
            (self.up.load(Relaxed), self.down.load(Relaxed)) >= (before.0 + SESSIONS, before.1 + SESSIONS)
        });
    }

    fn account(&self, _: &Lab) -> String {
        String::new()
    }
}

/// Mostly packets of a UE; some for unknown TEIDs, with a foreign source, or not GTP-U.
fn send_uplink(gnb: &UdpSocket, noise: &mut Random) {
    let id = any_session(noise);
    let payload = vec![0; noise.below(1300)];
    let (tunnel, source) = match noise.below(50) {
        0 => (teid(NOBODY), ue(id)),
        1 => (teid(id), ue(NOBODY)),
        2 => return drop(gnb.send_to(&[0; 3], (UPF, 2152))),
        _ => (teid(id), ue(id)),
    };
    let inner = udp(source, SERVER, SERVER_PORT, &payload);
    let _ = gnb.send_to(&gpdu(tunnel, &inner), (UPF, 2152));
}

fn send_downlink(socket: &UdpSocket, noise: &mut Random) {
    let id = if noise.below(50) == 0 { NOBODY } else { any_session(noise) };
    let _ = socket.send_to(&vec![0; noise.below(1300)], (ue(id), UE_PORT));
}
