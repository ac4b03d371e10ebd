//! A UPF is upgraded while packets flow: a new process takes over, again and again. No packet is lost, usage is exact, and the SMF
//! sees one UPF. The processes are instances of this test's own program.
//!
//! `PITH_UPGRADES=100 PITH_UPGRADE_PPS=10000 cargo test --release -p pith-runtime --test upgrade -- --nocapture` measures more of them.
#![allow(unsafe_code)]

mod process;
mod smf;
#[path = "../../../datapath/tests/support/mod.rs"]
mod support;
mod traffic;

use pith_pfcp::ie::Cause;
use process::{Case, Process};
use smf::Smf;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::*;
use traffic::Traffic;

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The process to be upgraded. Without its environment it does nothing.
#[test]
fn process() {
    process::run();
}

/// Stages one after the other: receivers that wait for a CPU lose packets.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The UPF, its SMF and traffic in both directions.
struct Stage {
    _turn: MutexGuard<'static, ()>,
    folder: process::Folder,
    _hosts: [Host; 2],
    upf: Process,
    smf: Smf,
    traffic: Traffic,
    seid: u64,
}

impl Stage {
    fn set(case: Case) -> Option<Self> {
        if !enter_namespace() {
            return None;
        }
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = process::Folder::new();
        let (radio, data) = (wire("n3", UPF, GNB, case.kind), wire("n6", UPF_N6, SERVER, case.kind));
        data.run(|| drop(run(&format!("ip route add 10.45.0.0/16 via {UPF_N6}"))));
        let upf = Process::start(&folder, case, false);
        let smf = Smf::start();
        smf.associate();
        let (seid, teid) = smf.establish();
        let traffic = Traffic::start(&radio, &data, teid, setting("PITH_UPGRADE_PPS", 500));
        Some(Self { _turn: turn, folder, _hosts: [radio, data], upf, smf, traffic, seid })
    }

    /// Ends traffic and session, and checks that nothing was lost, counted wrongly or noticed. With NAT the
    /// kernel gets a packet of a connection now and then (ADR 0023), which later ones overtake; after a successor that failed late,
    /// packets that waited may arrive behind those that the program has forwarded again.
    fn end(self, keeps_order: bool) {
        let Self { upf, smf, traffic, seid, .. } = self;
        let sums = traffic.end();
        let usage = smf.delete(seid);
        eprintln!("{sums}\nreported to the SMF: {usage:?}");
        assert!(sums.up.sent > 30 && sums.down.sent > 30);
        assert_eq!((sums.up.lost(), sums.down.lost()), (0, 0), "lost");
        assert!(!keeps_order || (sums.up.late, sums.down.late) == (0, 0), "out of order");
        let octets = |direction: &traffic::Sum| direction.sent * traffic::INNER as u64;
        assert_eq!(usage, [octets(&sums.up), octets(&sums.down), sums.up.sent, sums.down.sent]);
        let (restarts, unexpected) = smf.noticed();
        assert_eq!((restarts, unexpected), (1, vec![]), "one Recovery Time Stamp, and no request");
        upf.stop();
    }
}

fn upgraded(case: Case) {
    let Some(mut stage) = Stage::set(case) else { return };
    std::thread::sleep(Duration::from_millis(200));
    let (mut times, mut silences) = (Vec::new(), Vec::new());
    for _ in 0..setting("PITH_UPGRADES", 3) {
        let begun = Instant::now();
        let next = Process::start(&stage.folder, case, true);
        let former = std::mem::replace(&mut stage.upf, next);
        times.push(begun.elapsed());
        former.has_ended();
        silences.push(stage.smf.longest_silence());
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(200));
    eprintln!("-- {case:?}: {} upgrades", times.len());
    print_times("start to take-over", times);
    print_times("SMF's heartbeats unanswered", silences);
    stage.end(!case.nat);
}

fn print_times(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let (median, most) = (times[times.len() / 2], times[times.len() - 1]);
    eprintln!("{what}: median {} ms, longest {} ms", median.as_millis(), most.as_millis());
}

#[test]
fn on_the_portable_path_nothing_is_lost() {
    upgraded(Case { kind: Kind::Portable, nat: false });
}

#[test]
fn with_xdp_in_the_driver_nothing_is_lost() {
    upgraded(Case { kind: Kind::Native, nat: false });
}

#[test]
fn with_xdp_after_the_driver_nothing_is_lost() {
    upgraded(Case { kind: Kind::Generic, nat: false });
}

#[test]
fn with_xdp_and_nat_nothing_is_lost() {
    upgraded(Case { kind: Kind::Native, nat: true });
}

/// A successor by hand, which ends where a test wants it to.
struct Fake(UnixStream);

impl Fake {
    fn new(stage: &Stage) -> Self {
        let stream = UnixStream::connect(stage.folder.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    fn send(&mut self, kind: u8, body: &str) {
        let head = [&(body.len() as u32).to_be_bytes()[..], &[kind]].concat();
        self.0.write_all(&[&head, body.as_bytes()].concat()).unwrap();
    }

    fn receive(&mut self) -> (u8, String) {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).unwrap();
        let mut body = vec![0; u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize];
        self.0.read_exact(&mut body).unwrap();
        (head[4], String::from_utf8_lossy(&body).into_owned())
    }

    /// One that may begin: the end of the one before is perhaps not yet known.
    fn accepted(stage: &Stage, case: Case) -> Self {
        let begin = Instant::now();
        loop {
            let mut fake = Self::new(stage);
            match fake.hello(1, case) {
                (ACCEPT, _) => return fake,
                (_, answer) => assert!(begin.elapsed() < Duration::from_secs(5), "{answer}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn hello(&mut self, format: u32, case: Case) -> (u8, String) {
        let settings = process::settings_of(case);
        let settings: Vec<_> = settings.iter().map(|(name, value)| format!("{name:?}:{value:?}")).collect();
        let settings = settings.join(",");
        self.send(
            1,
            &format!(r#"{{"protocol":1,"format":{format},"version":"9.9","settings":{{{settings}}}}}"#),
        );
        self.receive()
    }
}

const ACCEPT: u8 = 2;
const REFUSE: u8 = 3;
const STATE: u8 = 5;
const HELD: u8 = 8;

/// An SMF must not regard the UPF as failed because the successor needs time for many sessions.
#[test]
fn heartbeats_are_answered_and_requests_wait_while_the_state_is_handed_over() {
    let case = Case { kind: Kind::Portable, nat: false };
    let Some(stage) = Stage::set(case) else { return };
    let mut fake = Fake::accepted(&stage, case);
    fake.0.read_exact(&mut [0]).unwrap();
    stage.smf.longest_silence();
    fake.send(4, "");
    while fake.receive().0 == STATE {}
    let begun = Instant::now();
    let failing = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1500));
        drop(fake);
    });
    let cause = stage.smf.modify(stage.seid);
    failing.join().unwrap();
    assert_eq!(cause, Cause::RequestAccepted);
    assert!(begun.elapsed() > Duration::from_millis(1500), "the request waited");
    let silence = stage.smf.longest_silence();
    assert!(silence < Duration::from_millis(700), "{silence:?}");
    stage.end(true);
}

#[test]
fn a_successor_that_fails_changes_nothing() {
    for kind in [Kind::Native, Kind::Portable] {
        let case = Case { kind, nat: false };
        let Some(mut stage) = Stage::set(case) else { return };
        for ends_after in ["accept", "state", "held", "swapped"] {
            let mut fake = Fake::accepted(&stage, case);
            let mut octet = [0];
            fake.0.read_exact(&mut octet).unwrap();
            if ends_after == "accept" {
                continue;
            }
            fake.send(4, "");
            while fake.receive().0 == STATE {}
            if ends_after == "state" {
                continue;
            }
            fake.send(7, "");
            assert_eq!(fake.receive().0, HELD);
            if ends_after == "swapped" {
                fake.send(9, "");
                fake.receive();
            }
        }
        let (kind, reason) = Fake::new(&stage).hello(2, case);
        assert!(kind == REFUSE && reason.contains("1.1") && reason.contains("(Pith 9.9) in 1.2"), "{reason}");
        let (kind, reason) = Fake::new(&stage).hello(1, Case { nat: true, ..case });
        assert_eq!(kind, ACCEPT, "NAT may change: {reason}");
        assert_eq!(stage.smf.modify(stage.seid), Cause::RequestAccepted);
        // After all that, a real one.
        let next = Process::start(&stage.folder, case, true);
        std::mem::replace(&mut stage.upf, next).has_ended();
        stage.end(false);
    }
}
