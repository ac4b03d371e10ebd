//! Mixed load of any duration, with packet conservation: received packets are sent, dropped by name, or
//! queued; and sent packets are charged. With NAT also what the kernel's path translates.
//!
//! Both directions at once, for sessions below and above their rates, idle and paged, changed, removed and
//! re-established, among forbidden packets. Every few seconds the senders pause and all packets are accounted
//! for; then each session must pass a packet in both directions. On the portable path and with XDP's native hook
//! and AF_XDP; each without NAT and with it.
//!
//! `cargo run --release -p pith-datapath --example soak [SECONDS] [plain | nat]` (60, both). Needs root; nothing leaves
//! namespaces of its own.

#![allow(unsafe_code)]

#[path = "../../tests/support/mod.rs"]
mod support;

#[path = "../../tests/packet_fuzz/fuzz/octets.rs"]
#[allow(dead_code)] // no IPv6 here
mod octets;
#[path = "../../tests/packet_fuzz/fuzz/wire.rs"]
#[allow(dead_code)] // no frames without a wire here
mod wire;

mod account;
mod nat;
mod packet;
mod plain;
mod senders;

use nat::NatLoad;
use pith_datapath::DatapathConfig;
use pith_upf::contract::*;
use plain::PlainLoad;
use senders::Senders;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::process::exit;
use std::thread;
use std::time::{Duration, Instant};
use support::random::Random;
use support::*;

const SESSIONS: u64 = 200;
/// Time between two counts.
const ROUND: Duration = Duration::from_secs(5);
/// An id without a session.
const NOBODY: u64 = SESSIONS + 1000;

fn main() {
    let (mut seconds, mut modes) = (60, Vec::new());
    for word in std::env::args().skip(1) {
        match (word.as_str(), word.parse::<u64>()) {
            ("plain", _) => modes.push(false),
            ("nat", _) => modes.push(true),
            (_, Ok(number)) => seconds = number,
            _ => {
                eprintln!("soak [SECONDS] [plain | nat]");
                exit(2)
            }
        }
    }
    if modes.is_empty() {
        modes = vec![false, true];
    }
    let time = Duration::from_secs(seconds) / (2 * modes.len() as u32);
    for nat in modes {
        for kind in [Kind::Portable, Kind::Native] {
            println!("{kind:?}{}", if nat { ", with NAT" } else { "" });
            let run = move || match nat {
                false => soak(kind, time, nat, PlainLoad::start),
                true => soak(kind, time, nat, NatLoad::start),
            };
            thread::spawn(run).join().unwrap();
        }
    }
    println!("in = out + dropped by name + waiting, to the packet, all the time");
}

/// The senders and receivers on both sides.
trait Load {
    fn senders(&mut self) -> &mut Senders;

    /// A session ends; its UE's address is soon another session's.
    fn session_ends(&self, _id: u64) {}

    /// Each UE has a new session.
    fn forget_former(&self) {}

    /// Every session passes a packet in both directions.
    fn all_through(&self, lab: &Lab);

    /// Compares what arrived on both sides with the counters; no packet is in transit.
    fn account(&self, lab: &Lab) -> String;
}

fn soak<L: Load>(kind: Kind, time: Duration, nat: bool, start: impl FnOnce(&Lab) -> L) {
    let config = DatapathConfig { workers: 2, nat, ..DatapathConfig::default() };
    let mut lab = lab(kind, config).expect("root");
    let mut soak = Soak { noise: Random::of(1), removed: Volume::default() };
    (1..=SESSIONS).for_each(|id| lab.install(soak.session(id)));
    let mut load = start(&lab);
    let begin = Instant::now();
    while begin.elapsed() < time {
        load.senders().resume();
        let round = Instant::now();
        while round.elapsed() < ROUND {
            soak.change_one(&mut lab, &load);
            lab.upf.poll_events(&mut Vec::new());
            thread::sleep(Duration::from_millis(5));
        }
        load.senders().stop_for_a_while();
        let counters = soak.count(&lab);
        let account = load.account(&lab);
        soak.all_let_packets_through(&mut lab, &load);
        println!("{:>5.0} s  {}{account}", begin.elapsed().as_secs_f64(), line(&counters));
    }
    load.senders().end();
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
        let mut session = session_of(id, ue(id), teid(id), gnb_teid(id));
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

    fn change_one(&mut self, lab: &mut Lab, load: &impl Load) {
        let id = any_session(&mut self.noise);
        match self.noise.below(4) {
            0 => self.remove(lab, id, load),
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
    fn all_let_packets_through(&mut self, lab: &mut Lab, load: &impl Load) {
        for id in 1..=SESSIONS {
            self.remove(lab, id, load);
            lab.install(session_of(id, ue(id), teid(id), gnb_teid(id)));
        }
        load.all_through(lab);
        for id in 1..=SESSIONS {
            self.remove(lab, id, load);
            let session = self.session(id);
            lab.install(session);
        }
        load.forget_former();
    }

    /// Removes a session and keeps its usage.
    fn remove(&mut self, lab: &mut Lab, id: u64, load: &impl Load) {
        load.session_ends(id);
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

fn gnb_teid(id: u64) -> u32 {
    0x10_0000 + id as u32
}
