//! TCP through a tunnel in both directions between real stacks: segmentation and coalescing must preserve the
//! stream.
//!
//! ```text
//!   UE's stack ─ modem (a datapath facing the other way) ─ GTP-U over veth ─ UPF ─ data network
//! ```

mod support;

use pith_datapath::{DatapathConfig, PortableDatapath, UePool};
use pith_upf::contract::*;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use support::*;

const BYTES: usize = 8 << 20;
const FLOOD: Duration = Duration::from_secs(2);

/// A UPF in this thread's namespace, and a UE with its modem; `None` if the test must be skipped.
fn start(session: Session) -> Option<(PortableDatapath, Host, PortableDatapath)> {
    if !enter_namespace() {
        return None;
    }
    let ue = Host::start();
    run(&format!("ip link add n3 type veth peer name eth0 netns {}", ue.thread));
    run(&format!("ip addr add {UPF}/24 dev n3"));
    run("ip link set n3 up");
    let config = DatapathConfig {
        n3_addresses: vec![UPF.into()],
        boundary: permitting(&["10.45.0.1"]),
        workers: 2,
        ..DatapathConfig::default()
    };
    let mut upf = PortableDatapath::start(config).unwrap();
    upf.install(Arc::new(session));
    let modem = ue.run(start_modem);
    Some((upf, ue, modem))
}

#[test]
fn a_stream_arrives_whole_both_ways() {
    let mut session = session();
    session.qers[1].mbr = None;
    let Some((upf, ue, modem)) = start(session) else { return };
    let listener = TcpListener::bind((GATEWAY, 7000)).unwrap();
    let exchanged = ue.begin(|| exchange(TcpStream::connect((GATEWAY, 7000)).unwrap(), 1, 2));
    let (stream, _) = listener.accept().unwrap();
    exchange(stream, 2, 1);
    exchanged.recv().unwrap();
    let volume = upf.usage(SessionId(1)).unwrap().urrs[0].volume;
    assert!(volume.uplink > BYTES as u64 && volume.downlink > BYTES as u64);
    assert_eq!(upf.counters().dropped, []);
    ue.run(move || drop(modem));
}

#[test]
fn tcp_has_its_share_beside_a_flood_of_udp() {
    let mut session = session();
    session.qers[1].mbr = Some(Rates { uplink: 10_000_000, downlink: 10_000_000 });
    let Some((_upf, ue, modem)) = start(session) else { return };
    let listener = TcpListener::bind((GATEWAY, 7000)).unwrap();
    let counted = ue.begin(|| count(TcpStream::connect((GATEWAY, 7000)).unwrap()));
    let (mut stream, _) = listener.accept().unwrap();
    let writer = thread::spawn(move || while stream.write_all(&[0; 16_384]).is_ok() {});
    let flood = UdpSocket::bind((GATEWAY, 7001)).unwrap();
    let begin = Instant::now();
    while begin.elapsed() < FLOOD {
        // Some 20 Mbit/s: twice the available rate.
        flood.send_to(&[0; 1222], (UE, 5000)).unwrap();
        thread::sleep(Duration::from_micros(400));
    }
    // A busy machine slows the flood first, and TCP may take the remaining rate.
    let rate = counted.recv().unwrap();
    assert!((4.0..10.1).contains(&rate), "{rate} Mbit/s beside a flood of 20 under 10");
    writer.join().unwrap();
    ue.run(move || drop(modem));
}

/// Mbit/s received of a stream, from its start-up until the flood's end.
fn count(mut stream: TcpStream) -> f64 {
    let (begin, mut bytes, mut buffer) = (Instant::now(), 0, [0; 16_384]);
    let warm = FLOOD / 4;
    while begin.elapsed() < FLOOD {
        let length = stream.read(&mut buffer).unwrap();
        bytes += if begin.elapsed() > warm { length } else { 0 };
    }
    bytes as f64 * 8e-6 / (FLOOD - warm).as_secs_f64()
}

/// The UE's side: packets to the gateway are sent into the UPF's tunnel; received packets are delivered to
/// its stack.
fn start_modem() -> PortableDatapath {
    run(&format!("ip addr add {GNB}/24 dev eth0"));
    run("ip link set eth0 up");
    let pool = UePool { gateway: IpAddr::V4(UE), prefix: 32 };
    let config = DatapathConfig {
        n3_addresses: vec![GNB.into()],
        tun: "modem".into(),
        pools: vec![pool],
        boundary: permitting(&["10.45.0.2"]),
        workers: 1,
        ..DatapathConfig::default()
    };
    let mut modem = PortableDatapath::start(config).unwrap();
    run(&format!("ip route add {GATEWAY}/32 dev modem"));
    let mut session = session_of(1, GATEWAY, GNB_TEID, TEID);
    session.fars[1].action = Action::Forward(Destination::Tunnel(tunnel_to(UPF, TEID)));
    session.qers[1].mbr = None;
    modem.install(Arc::new(session));
    modem
}

/// Sends the bytes of one seed and checks received bytes against another.
fn exchange(stream: TcpStream, send: u32, expect: u32) {
    let mut out = stream.try_clone().unwrap();
    let sender = thread::spawn(move || {
        out.write_all(&bytes(send)).unwrap();
        out.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    let mut stream = stream;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.read_to_end(&mut received).unwrap();
    assert!(received == bytes(expect), "{} of {BYTES} bytes, or others", received.len());
    sender.join().unwrap();
}

fn bytes(seed: u32) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(BYTES).collect()
}
