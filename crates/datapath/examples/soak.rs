//! Mixed load of any duration, with packet conservation: received packets are sent, dropped by name, or
//! queued; and sent packets are charged.
//!
//! Both directions at once, for sessions below and above their rates, idle and paged, changed, removed and
//! re-established, among forbidden packets. Every few seconds the senders pause and all packets are accounted
//! for; then each session must pass a packet in both directions. First on the portable path, then with XDP's
//! native hook and AF_XDP.
//!
//! `cargo run --release -p pith-datapath --example soak [SECONDS]` (60). Needs root; nothing leaves namespaces of its own.

#[path = "../tests/support/mod.rs"]
mod support;

use pith_datapath::DatapathConfig;
use pith_upf::contract::*;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use support::random::Random;
use support::*;

const SESSIONS: u64 = 200;
/// Time between two counts.
const ROUND: Duration = Duration::from_secs(5);
const UE_PORT: u16 = 5000;
const SERVER_PORT: u16 = 7000;
/// An id without a session.
const NOBODY: u64 = SESSIONS + 1000;

fn main() {
    let seconds = std::env::args().nth(1).map_or(60, |text| text.parse().expect("seconds"));
    for kind in [Kind::Portable, Kind::Native] {
        thread::spawn(move || soak(kind, Duration::from_secs(seconds) / 2)).join().unwrap();
    }
    println!("in = out + dropped by name + waiting, to the packet, all the time");
}

fn soak(kind: Kind, time: Duration) {
    let config = DatapathConfig { workers: 2, ..DatapathConfig::default() };
    let mut lab = lab(kind, config).expect("root");
    let mut soak = Soak { noise: Random::of(1), removed: Volume::default() };
    (1..=SESSIONS).for_each(|id| lab.install(soak.session(id)));
    let load = Load::start(&lab);
    let begin = Instant::now();
    while begin.elapsed() < time {
        load.pause.store(false, Relaxed);
        let round = Instant::now();
        while round.elapsed() < ROUND {
            soak.change_one(&mut lab);
            lab.upf.poll_events(&mut Vec::new());
            thread::sleep(Duration::from_millis(5));
        }
        load.stop_for_a_while();
        let counters = soak.count(&lab);
        soak.all_let_packets_through(&mut lab, &load);
        println!("{:>5.0} s  {}", begin.elapsed().as_secs_f64(), line(&counters));
    }
    load.end.store(true, Relaxed);
    load.threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn line(counters: &Counters) -> String {
    let dropped: BTreeMap<_, _> =
        counters.dropped.iter().map(|(reason, count)| (reason.name(), *count)).collect();
    let (up, down) = (counters.n3_in.packets, counters.n6_in.packets);
    format!(
        "in {up} up {down} down, out {} {}, dropped {dropped:?}",
        counters.n6_out.packets, counters.n3_out.packets
    )
}

/// Every received packet was sent, dropped or is queued; frames other than GTP-U are not counted as received.
fn is_balanced(counters: &Counters) -> bool {
    let named = counters.dropped.iter().filter(|(reason, _)| *reason != DropReason::MalformedGtpu);
    let dropped: u64 = named.map(|(_, count)| count).sum();
    let gone = counters.n3_out.packets + counters.n6_out.packets + dropped + counters.buffered;
    gone == counters.n3_in.packets + counters.n6_in.packets
}

/// The id of a session.
fn any_session(random: &mut Random) -> u64 {
    1 + random.below(SESSIONS as usize) as u64
}

struct Soak {
    noise: Random,
    /// The usage of removed sessions.
    removed: Volume,
}

impl Soak {
    /// A session of one of several kinds.
    fn session(&mut self, id: u64) -> Session {
        let mut session = session_of(id, ue(id), teid(id), 0x10_0000 + id as u32);
        let rate = [200_000, 2_000_000, 50_000_000, 10_000_000_000][self.noise.below(4)];
        session.qers[1].mbr = Some(Rates { uplink: rate, downlink: rate });
        match self.noise.below(8) {
            0 => session.fars[1].action = Action::Buffer { notify: true, packets: Some(20) },
            1 => session.qers[0].gates.uplink = Gate::Closed,
            2 => session.urrs[0].quota.total = Some(1_000_000),
            _ => {}
        }
        session
    }

    fn change_one(&mut self, lab: &mut Lab) {
        let id = any_session(&mut self.noise);
        match self.noise.below(4) {
            0 => self.remove(lab, id),
            1 => lab.upf.discard_buffered(SessionId(id)),
            _ => lab.install(self.session(id)),
        }
    }

    /// Checks conservation, once no packet is in transit.
    fn count(&self, lab: &Lab) -> Counters {
        let mut counted = (Volume::default(), Counters::default());
        wait_for("as many out, dropped or waiting as in, and nothing late", || {
            // A worker that was not scheduled still has packets in its socket, which may be counted between
            // two readings.
            let before = lab.upf.counters();
            counted = (self.used(lab), lab.upf.counters());
            before == counted.1 && is_balanced(&before)
        });
        let (used, counters) = counted;
        let failed = |reason| counters.dropped(reason);
        let out = (
            counters.n6_out.packets + failed(DropReason::N6SendFailed),
            counters.n3_out.packets + failed(DropReason::N3SendFailed),
        );
        assert_eq!((used.uplink_packets, used.downlink_packets), out, "what is charged is what was sent");
        if failed(DropReason::N6SendFailed) + failed(DropReason::N3SendFailed) == 0 {
            assert_eq!((used.uplink, used.downlink), (counters.n6_out.bytes, counters.n3_out.bytes));
        }
        counters
    }

    /// The usage of all sessions, including removed ones.
    fn used(&self, lab: &Lab) -> Volume {
        let mut used = self.removed;
        for usage in (1..=SESSIONS).filter_map(|id| lab.upf.usage(SessionId(id))) {
            let volume = usage.urrs[0].volume;
            used.add(Direction::Uplink, volume.uplink_packets, volume.uplink);
            used.add(Direction::Downlink, volume.downlink_packets, volume.downlink);
        }
        used
    }

    /// No session is stuck: sessions without limits pass packets, whatever happened before.
    fn all_let_packets_through(&mut self, lab: &mut Lab, load: &Load) {
        for id in 1..=SESSIONS {
            self.remove(lab, id);
            lab.install(session_of(id, ue(id), teid(id), 0x10_0000 + id as u32));
        }
        let before = (load.up.load(Relaxed), load.down.load(Relaxed));
        let sender = lab.server.run(|| UdpSocket::bind((SERVER, 0)).unwrap());
        for id in 1..=SESSIONS {
            lab.uplink(teid(id), &udp(ue(id), SERVER, SERVER_PORT, b"through"));
            sender.send_to(b"through", (ue(id), UE_PORT)).unwrap();
        }
        wait_for("a packet of each session, both ways", || {
            (load.up.load(Relaxed), load.down.load(Relaxed)) >= (before.0 + SESSIONS, before.1 + SESSIONS)
        });
        for id in 1..=SESSIONS {
            self.remove(lab, id);
            let session = self.session(id);
            lab.install(session);
        }
    }

    /// Removes a session and keeps its usage.
    fn remove(&mut self, lab: &mut Lab, id: u64) {
        if let Some(usage) = lab.upf.remove(SessionId(id)) {
            let Volume { uplink, downlink, uplink_packets, downlink_packets } = usage.urrs[0].volume;
            self.removed.add(Direction::Uplink, uplink_packets, uplink);
            self.removed.add(Direction::Downlink, downlink_packets, downlink);
        }
    }
}

fn ue(id: u64) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 45, 1, 0).to_bits() + id as u32)
}

fn teid(id: u64) -> u32 {
    0x100 + id as u32
}

/// Senders and receivers on both sides.
struct Load {
    pause: Arc<AtomicBool>,
    end: Arc<AtomicBool>,
    /// Number of active senders.
    busy: Arc<AtomicU64>,
    /// Packets received by the data network, and by the gNB.
    up: Arc<AtomicU64>,
    down: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(lab: &Lab) -> Self {
        let server = lab.data_network(SERVER_PORT);
        let mut load = Self {
            pause: Arc::new(AtomicBool::new(true)),
            end: Arc::default(),
            busy: Arc::default(),
            up: Arc::default(),
            down: Arc::default(),
            threads: Vec::new(),
        };
        let gnb = lab.gnb.try_clone().unwrap();
        load.send(2, move |noise| send_uplink(&gnb, noise));
        let out = lab.server.run(|| UdpSocket::bind((SERVER, 0)).unwrap());
        load.send(3, move |noise| send_downlink(&out, noise));
        load.receive(server, Arc::clone(&load.up));
        load.receive(lab.gnb.try_clone().unwrap(), Arc::clone(&load.down));
        load
    }

    /// Sends in bursts, with pauses in which most queued packets can be sent.
    fn send(&mut self, seed: u64, one: impl Fn(&mut Random) + Send + 'static) {
        let (pause, end, busy) = (Arc::clone(&self.pause), Arc::clone(&self.end), Arc::clone(&self.busy));
        self.threads.push(thread::spawn(move || {
            let mut noise = Random::of(seed);
            while !end.load(Relaxed) {
                busy.fetch_add(1, Relaxed);
                if !pause.load(Relaxed) {
                    (0..noise.below(300)).for_each(|_| one(&mut noise));
                }
                busy.fetch_sub(1, Relaxed);
                thread::sleep(Duration::from_micros(500 + noise.below(20_000) as u64));
            }
        }));
    }

    fn receive(&mut self, socket: UdpSocket, count: Arc<AtomicU64>) {
        let end = Arc::clone(&self.end);
        receive_much(&socket);
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        self.threads.push(thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !end.load(Relaxed) {
                if socket.recv(&mut buffer).is_ok() {
                    count.fetch_add(1, Relaxed);
                }
            }
        }));
    }

    fn stop_for_a_while(&self) {
        self.pause.store(true, Relaxed);
        wait_for("the senders", || self.busy.load(Relaxed) == 0);
        // Packets in the kernel's queues and in short queues of sessions.
        thread::sleep(Duration::from_millis(100));
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
