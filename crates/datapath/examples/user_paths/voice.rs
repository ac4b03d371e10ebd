//! Delay and jitter of voice, on a QoS flow of its own (5QI 1, GBR), beside bulk traffic above the session AMBR: of the same
//! session, and of others. Downlink; the receiver is the gNB's socket, with the kernel's time stamps.
//!
//! The voice sender keeps to its schedule whatever becomes of its packets, and says in each packet when it was sent, and how
//! late that was; the delay counts from there.

use super::cpu::{pin, set_nice};
use super::net::UPF_CPU;
use super::progress::Progress;
use super::row::Spread;
use super::stamps;
use super::support::{GNB_TEID, Kind, Lab, SERVER, TEID, lab, receive_much, session_of};
use pith_datapath::DatapathConfig;
use pith_upf::contract::*;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// Sessions with voice; as many are beside them.
const CALLS: u32 = 4;
const SESSIONS: u32 = 2 * CALLS;
const RUN: Duration = Duration::from_secs(5);
/// Time between a call's packets: 50 a second.
const FRAME: Duration = Duration::from_millis(20);
/// RTP header and a voice frame.
const VOICE: usize = 12 + 32;
const BULK: usize = 1372;
const VOICE_PORT: u16 = 5004;
const BULK_PORT: u16 = 7000;
/// Session AMBR and offered bulk traffic of a session, in bit/s.
const AMBR: u64 = 20_000_000;
const OFFERED: u64 = 2 * AMBR;
/// Of the voice flow, in bit/s.
const GBR: Rates = Rates { uplink: 64_000, downlink: 64_000 };
/// The time in which the sender of bulk traffic makes up for its sleep.
const TURN: Duration = Duration::from_millis(1);
/// Shorter sleeps are not exact.
const SPIN: Duration = Duration::from_micros(200);

/// The sessions with bulk traffic.
const CASES: [(&str, std::ops::Range<u32>); 4] = [
    ("no bulk", 0..0),
    ("bulk of the same session", 0..CALLS),
    ("bulk of other sessions", CALLS..SESSIONS),
    ("bulk of all sessions", 0..SESSIONS),
];
const PATHS: [(&str, Kind); 2] = [("xdp", Kind::Native), ("portable", Kind::Portable)];

/// A received packet of a call.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    call: u32,
    due: Duration,
    sent: Duration,
    came: Duration,
}

/// As JSON, and a table.
pub fn run() -> String {
    let mut progress = Progress::of("voice", PATHS.len() * CASES.len());
    let mut rows = Vec::new();
    println!(
        "{:<36} {:>8} {:>24} {:>10} {:>14}",
        "voice, µs", "lost", "delay: p50, p99, max", "jitter", "sender late p99"
    );
    for (path, kind) in PATHS {
        for (beside, bulk) in CASES {
            let job = move || {
                pin(UPF_CPU);
                measure(kind, bulk)
            };
            let (sent, arrivals) = thread::spawn(job).join().unwrap();
            rows.push(report(path, beside, sent, &arrivals));
            progress.step(beside);
        }
    }
    format!("[{}]", rows.join(",\n"))
}

/// The number of voice packets sent, and those received.
fn measure(kind: Kind, bulk: std::ops::Range<u32>) -> (u32, Vec<Arrival>) {
    let config = DatapathConfig { workers: 1, ..DatapathConfig::default() };
    let mut lab = lab(kind, config).expect("needs root");
    (0..SESSIONS).for_each(|number| lab.install(session(number)));
    receive_much(&lab.gnb);
    stamps::enable(&lab.gnb);
    let gnb = lab.gnb.try_clone().unwrap();
    let receiver = thread::spawn(move || receive(&gnb));
    let begin = Instant::now() + Duration::from_millis(50);
    let (voice, bulk) = start_senders(&lab, begin, bulk);
    while !voice.is_finished() || !bulk.is_finished() {
        lab.upf.poll_events(&mut Vec::new());
        thread::sleep(Duration::from_millis(5));
    }
    bulk.join().unwrap();
    (voice.join().unwrap(), receiver.join().unwrap())
}

/// Starts the senders of voice and bulk traffic, which inherit the server's namespace.
fn start_senders(
    lab: &Lab,
    begin: Instant,
    bulk: std::ops::Range<u32>,
) -> (thread::JoinHandle<u32>, thread::JoinHandle<()>) {
    lab.server.run(move || {
        (thread::spawn(move || send_voice(begin)), thread::spawn(move || send_bulk(begin, bulk)))
    })
}

fn ue(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 45, 1, 0).to_bits() + number)
}

fn session(number: u32) -> Session {
    let mut session = session_of(u64::from(number) + 1, ue(number), TEID + number, GNB_TEID + number);
    session.qers[1].mbr = Some(Rates { uplink: AMBR, downlink: AMBR });
    let own = Qer {
        id: QerId(3),
        gates: Gates::OPEN,
        mbr: Some(GBR),
        gbr: Some(GBR),
        qfi: Some(Qfi(1)),
        rqi: false,
    };
    session.qers.push(own);
    let text = format!("permit out 17 from any {VOICE_PORT} to assigned");
    let filters = text.parse::<FlowDescription>().unwrap().filters;
    let pdr = Pdr { id: PdrId(3), precedence: 1, filters, ..session.pdrs[1].clone() };
    session.pdrs.push(Pdr { qers: vec![QerId(3)], ..pdr });
    session
}

/// Sends the calls' packets, evenly distributed over time; returns their number.
fn send_voice(begin: Instant) -> u32 {
    pin(UPF_CPU + 1);
    set_nice(-20);
    let socket = UdpSocket::bind((SERVER, VOICE_PORT)).unwrap();
    let between = FRAME / CALLS;
    let count = (RUN.as_nanos() / between.as_nanos()) as u32;
    for number in 0..count {
        let due = begin + between * number;
        thread::sleep(due.saturating_duration_since(Instant::now()).saturating_sub(SPIN));
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        let late = due.elapsed().as_nanos() as u64;
        let sent = stamps::now().as_nanos() as u64;
        let mut payload = [0; VOICE];
        payload[..8].copy_from_slice(&sent.to_ne_bytes());
        payload[8..16].copy_from_slice(&(sent - late).to_ne_bytes());
        socket.send_to(&payload, (ue(number % CALLS), 5000)).unwrap();
    }
    count
}

/// Sends to these sessions in turn.
fn send_bulk(begin: Instant, sessions: std::ops::Range<u32>) {
    pin(UPF_CPU + 1);
    let socket = UdpSocket::bind((SERVER, BULK_PORT)).unwrap();
    let rate = OFFERED * u64::from(sessions.end - sessions.start);
    let payload = [0; BULK];
    let mut sent = 0u64;
    while begin.elapsed() < RUN {
        let due = begin.elapsed().as_nanos() as u64 * rate / (8_000_000_000 * (BULK as u64 + 28));
        while sent < due {
            let to = sessions.start + (sent % u64::from(sessions.end - sessions.start)) as u32;
            let _ = socket.send_to(&payload, (ue(to), 5000));
            sent += 1;
        }
        thread::sleep(TURN);
    }
}

/// Voice packets, until no more packets are received.
fn receive(gnb: &UdpSocket) -> Vec<Arrival> {
    pin(UPF_CPU + 1);
    gnb.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let (mut arrivals, mut buffer) = (Vec::new(), [0; 2048]);
    while let Some((length, came)) = stamps::receive(gnb, &mut buffer) {
        let Some(payload) = length.checked_sub(VOICE).filter(|_| length < BULK) else { continue };
        let word = |at: usize| {
            u64::from_ne_bytes(buffer[payload + at..payload + at + 8].try_into().expect("eight octets"))
        };
        let teid = u32::from_be_bytes(buffer[4..8].try_into().expect("four octets"));
        let [sent, due] = [word(0), word(8)].map(Duration::from_nanos);
        arrivals.push(Arrival { call: teid.wrapping_sub(GNB_TEID), due, sent, came });
    }
    arrivals
}

fn report(path: &str, beside: &str, sent: u32, arrivals: &[Arrival]) -> String {
    let micros = |of: &dyn Fn(&Arrival) -> Duration| -> Vec<f64> {
        let mut all: Vec<_> = arrivals.iter().map(|arrival| of(arrival).as_secs_f64() * 1e6).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let delay = micros(&|arrival| arrival.came.saturating_sub(arrival.sent));
    let late = micros(&|arrival| arrival.sent.saturating_sub(arrival.due));
    let at = |sorted: &[f64], part: f64| sorted[((sorted.len() - 1) as f64 * part) as usize];
    let jitter = Spread::of((0..CALLS).map(|call| jitter_of(call, arrivals)).collect());
    let lost = (sent as usize).saturating_sub(arrivals.len());
    let [p50, p99, p999, most] = [0.5, 0.99, 0.999, 1.0].map(|part| at(&delay, part));
    let late = at(&late, 0.99);
    println!(
        "{:<36} {lost:>8} {:>24} {:>10.0} {late:>14.0}",
        format!("{path}, {beside}"),
        format!("{p50:.0}, {p99:.0}, {most:.0}"),
        jitter.median
    );
    format!(
        "{{\"path\":\"{path}\",\"beside\":\"{beside}\",\"packets\":{},\"lost\":{lost},\"p50_us\":{p50:.1},\
         \"p99_us\":{p99:.1},\"p999_us\":{p999:.1},\"max_us\":{most:.1},\"jitter_us\":{:.1},\"sender_late_p99_us\":{late:.1}}}",
        arrivals.len(),
        jitter.median
    )
}

/// Interarrival jitter of a call at its end, in microseconds (RFC 3550 6.4.1).
fn jitter_of(call: u32, arrivals: &[Arrival]) -> f64 {
    let of_call = arrivals.iter().filter(|arrival| arrival.call == call);
    let transit: Vec<_> = of_call.map(|it| it.came.saturating_sub(it.sent).as_secs_f64()).collect();
    let step = |jitter: f64, pair: &[f64]| jitter + ((pair[1] - pair[0]).abs() - jitter) / 16.0;
    transit.windows(2).fold(0.0, step) * 1e6
}
