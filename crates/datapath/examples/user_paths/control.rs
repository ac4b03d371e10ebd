//! The rate of session establishment in the datapath, and the delay until a packet is handled by new rules of
//! an active session: by PFCP, from an SMF's request through UPF-C, and by the contract alone (`install`).

use super::support::{GNB, SERVER, UPF, wait_for};
use super::support::{Kind, Lab, TEID, UE, gpdu, lab, receive_much, session, session_of, udp};
use super::{cpu::pin, net::UPF_CPU, smf::Smf, stamps};
use pith_datapath::DatapathConfig;
use pith_upf::contract::*;
use std::collections::HashMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Sessions that are established.
const SESSIONS: u32 = 10_000;
/// Number of rule changes of a session, and the time between two.
const UPDATES: u32 = 300;
const BETWEEN: Duration = Duration::from_millis(3);
/// The first of the TEIDs to which the session's downlink is moved one after the other.
const FIRST_TEID: u32 = 0x1000;
/// Time between packets of the active session.
const PACE: Duration = Duration::from_micros(20);
/// A longer time between packets means that the sender was not scheduled.
const PAUSE: Duration = Duration::from_micros(200);
const PATHS: [Kind; 2] = [Kind::Portable, Kind::Native];

/// The interface through which rules are installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Through {
    Pfcp,
    Install,
}

/// Both results as JSON: `establishment` and `update`.
pub fn run() -> [String; 2] {
    [every(establish), every(update)]
}

fn every(measure: fn(Kind, Through) -> String) -> String {
    let cases = PATHS.into_iter().flat_map(|kind| [(kind, Through::Pfcp), (kind, Through::Install)]);
    let job = |kind, through| {
        move || {
            pin(UPF_CPU);
            measure(kind, through)
        }
    };
    let apart = |(kind, through)| thread::spawn(job(kind, through)).join().unwrap();
    format!("[{}]", cases.map(apart).collect::<Vec<_>>().join(","))
}

fn start(kind: Kind) -> Lab {
    let config = DatapathConfig { workers: 1, sessions: SESSIONS + 10, ..DatapathConfig::default() };
    lab(kind, config).expect("needs root")
}

/// The name of a path in `user.json`.
fn path(kind: Kind) -> &'static str {
    if kind == Kind::Portable { "portable" } else { "xdp" }
}

/// Sessions a second, until the last of them has passed a packet.
fn establish(kind: Kind, through: Through) -> String {
    let mut lab = start(kind);
    let (mut taken, teid) = match through {
        Through::Install => install_all(&mut lab),
        Through::Pfcp => request_all(&mut lab),
    };
    let begin = Instant::now();
    lab.gnb.send_to(&gpdu(teid, &udp(ue(SESSIONS - 1), SERVER, 7000, b"first")), (UPF, 2152)).unwrap();
    wait_for("a packet of the last session", || lab.upf.counters().n6_out.packets == 1);
    assert!(kind == Kind::Portable || lab.tun_packets() == 0, "the program has the session");
    taken += begin.elapsed();
    let (path, rate) = (path(kind), f64::from(SESSIONS) / taken.as_secs_f64());
    println!("{path}, by {through:?}: {rate:.0} sessions a second");
    format!(
        "{{\"path\":\"{path}\",\"through\":\"{through:?}\",\"sessions\":{SESSIONS},\"per_second\":{rate:.0}}}"
    )
}

fn ue(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 45, 1, 0).to_bits() + number)
}

/// The duration, and the last session's TEID.
fn install_all(lab: &mut Lab) -> (Duration, u32) {
    let session = |at| Arc::new(session_of(u64::from(at) + 1, ue(at), TEID + at, 0x2_0000 + at));
    let sessions: Vec<_> = (0..SESSIONS).map(session).collect();
    let begin = Instant::now();
    sessions.into_iter().for_each(|session| lab.upf.install(session));
    (begin.elapsed(), TEID + SESSIONS - 1)
}

/// The duration in UPF-C and the datapath, and the last session's TEID.
fn request_all(lab: &mut Lab) -> (Duration, u32) {
    let mut smf = Smf::associated(&mut lab.upf);
    let requests: Vec<_> = (0..SESSIONS).map(|at| smf.establishment(ue(at), 0x2_0000 + at)).collect();
    let begin = Instant::now();
    let answers: Vec<_> = requests.iter().map(|octets| smf.send(&mut lab.upf, octets)).collect();
    let taken = begin.elapsed();
    let teids: Vec<_> = answers.iter().map(|octets| Smf::accepted(octets).1).collect();
    (taken, teids[SESSIONS as usize - 1])
}

/// The delay from the call, or from the receipt of the request, to the first packet sent by the new rule.
fn update(kind: Kind, through: Through) -> String {
    let mut lab = start(kind);
    let mut smf = (through == Through::Pfcp).then(|| Smf::associated(&mut lab.upf));
    let mut seid = 0;
    match &mut smf {
        None => lab.install(session()),
        Some(smf) => {
            let octets = smf.establishment(UE, FIRST_TEID);
            seid = Smf::accepted(&smf.send(&mut lab.upf, &octets)).0;
        }
    }
    receive_much(&lab.gnb);
    stamps::enable(&lab.gnb);
    let stop = Arc::new(AtomicBool::new(false));
    let sender = lab.server.run({
        let stop = Arc::clone(&stop);
        move || thread::spawn(move || flow(&stop))
    });
    let gnb = lab.gnb.try_clone().unwrap();
    let receiver = thread::spawn(move || first_of_each_tunnel(&gnb));
    let mut called = Vec::new();
    for number in 1..=UPDATES {
        thread::sleep(BETWEEN);
        let teid = FIRST_TEID + number;
        let octets = smf.as_mut().map(|smf| smf.move_downlink(seid, teid));
        let moved = Arc::new(moved_to(teid));
        called.push((teid, stamps::now()));
        match (&mut smf, octets) {
            (Some(smf), Some(octets)) => drop(smf.send(&mut lab.upf, &octets)),
            _ => lab.upf.install(moved),
        }
    }
    thread::sleep(BETWEEN);
    stop.store(true, Relaxed);
    sender.join().unwrap();
    let seen = receiver.join().unwrap();
    let (mut delays, mut paused, mut unseen) = (Vec::new(), 0, 0);
    for (at, (teid, called)) in called.iter().enumerate() {
        let next = called_after(&seen, *teid);
        match seen.get(teid) {
            Some(first) if !first.after_pause => delays.push(first.came.saturating_sub(*called)),
            // The next update came before a packet used this one.
            None if at + 1 < UPDATES as usize && !next.is_some_and(|next| next.after_pause) => {
                unseen += 1;
                delays.push(BETWEEN);
            }
            _ => paused += 1,
        }
    }
    delays.sort();
    report(path(kind), through, &delays, (paused, unseen))
}

/// The first packet of the next tunnel that received any.
fn called_after(seen: &HashMap<u32, First>, teid: u32) -> Option<&First> {
    (teid + 1..=FIRST_TEID + UPDATES).find_map(|teid| seen.get(&teid))
}

fn report(path: &str, through: Through, delays: &[Duration], (paused, unseen): (u32, u32)) -> String {
    let at = |share: f64| delays[((delays.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    let (p50, p99, most) = (at(0.5), at(0.99), at(1.0));
    println!(
        "{path}, by {through:?}: seen after {p50:.0} µs, p99 {p99:.0}, at most {most:.0}; {unseen} not before the next, {paused} while nobody sent"
    );
    format!(
        "{{\"path\":\"{path}\",\"through\":\"{through:?}\",\"updates\":{UPDATES},\"p50_us\":{p50:.1},\"p99_us\":{p99:.1},\
         \"most_us\":{most:.1},\"unseen\":{unseen},\"paused\":{paused}}}"
    )
}

/// The session with its downlink in that tunnel.
fn moved_to(teid: u32) -> Session {
    let mut session = session();
    let tunnel = Tunnel { peer: GNB.into(), teid: Teid(teid), dscp: None };
    session.fars[1].action = Action::Forward(Destination::Tunnel(tunnel));
    session
}

/// Sends a packet to the UE every `PACE`, until stopped.
fn flow(stop: &AtomicBool) {
    pin(UPF_CPU + 1);
    let socket = UdpSocket::bind((SERVER, 7000)).unwrap();
    let mut due = Instant::now();
    while !stop.load(Relaxed) {
        due += PACE;
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        // Late packets are not made up for.
        due = due.max(Instant::now() - PACE);
        let sent = stamps::now().as_nanos() as u64;
        socket.send_to(&sent.to_ne_bytes(), (UE, 5000)).unwrap();
    }
}

/// The first packet of a tunnel.
struct First {
    /// Its receive time at the gNB, by the kernel's clock.
    came: Duration,
    /// Whether the sender was not scheduled for long before: new rules are observed only while packets are
    /// sent.
    after_pause: bool,
}

/// The first packet of each tunnel, until no more packets are received.
fn first_of_each_tunnel(gnb: &UdpSocket) -> HashMap<u32, First> {
    gnb.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let (mut first, mut buffer, mut last) = (HashMap::new(), [0; 2048], 0);
    while let Some((length, came)) = stamps::receive(gnb, &mut buffer) {
        if length > 16 && buffer[1] == 255 {
            let teid = u32::from_be_bytes(buffer[4..8].try_into().unwrap());
            let sent = u64::from_ne_bytes(buffer[length - 8..length].try_into().unwrap());
            let after_pause = sent - std::mem::replace(&mut last, sent) > PAUSE.as_nanos() as u64;
            first.entry(teid).or_insert(First { came, after_pause });
        }
    }
    first
}
