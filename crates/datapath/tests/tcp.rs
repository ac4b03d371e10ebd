//! TCP through a tunnel, both ways, between real stacks: segments cut from the kernel's frames and frames
//! put together from segments must carry the stream whole.
//!
//! ```text
//!   UE's stack ─ modem (a datapath facing the other way) ─ GTP-U over veth ─ UPF ─ data network
//! ```

mod support;

use pith_datapath::{DatapathConfig, PortableDatapath, UePool};
use pith_upf::contract::*;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use support::*;

const N3: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 1);
const RADIO: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 2);
const BYTES: usize = 8 << 20;

#[test]
fn a_stream_arrives_whole_both_ways() {
    if !enter_namespace() {
        return;
    }
    let (tell, told) = mpsc::channel();
    let (start, started) = mpsc::channel();
    let ue = thread::spawn(move || {
        assert!(enter_namespace());
        tell.send(thread_id()).unwrap();
        started.recv().unwrap();
        let _modem = start_modem();
        let stream = TcpStream::connect((GATEWAY, 7000)).unwrap();
        exchange(stream, 1, 2)
    });
    let thread = told.recv().unwrap();
    run(&format!("ip link add n3 type veth peer name eth0 netns {thread}"));
    run(&format!("ip addr add {N3}/24 dev n3"));
    run("ip link set n3 up");
    let config = DatapathConfig { n3_addresses: vec![N3.into()], workers: 2, ..DatapathConfig::default() };
    let mut upf = PortableDatapath::start(config).unwrap();
    let mut session = session();
    session.fars[1].action = Action::Forward(Destination::Tunnel(tunnel_to(RADIO, GNB_TEID)));
    upf.install(Arc::new(session));
    let listener = TcpListener::bind((GATEWAY, 7000)).unwrap();
    start.send(()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    exchange(stream, 2, 1);
    ue.join().unwrap();

    let volume = upf.usage(SessionId(1)).unwrap().urrs[0].volume;
    assert!(volume.uplink > BYTES as u64 && volume.downlink > BYTES as u64);
    assert_eq!(upf.counters().dropped, []);
}

/// The UE's side: what it sends to the gateway goes into the UPF's tunnel, what comes goes to its stack.
fn start_modem() -> PortableDatapath {
    run(&format!("ip addr add {RADIO}/24 dev eth0"));
    run("ip link set eth0 up");
    let pool = UePool { gateway: IpAddr::V4(UE), prefix: 32 };
    let config = DatapathConfig {
        n3_addresses: vec![RADIO.into()],
        tun: "modem".into(),
        pools: vec![pool],
        workers: 1,
        ..DatapathConfig::default()
    };
    let mut modem = PortableDatapath::start(config).unwrap();
    run(&format!("ip route add {GATEWAY}/32 dev modem"));
    let mut session = session_of(1, GATEWAY, GNB_TEID, TEID);
    session.fars[1].action = Action::Forward(Destination::Tunnel(tunnel_to(N3, TEID)));
    modem.install(Arc::new(session));
    modem
}

/// Sends the bytes of one seed while it checks that those of the other come.
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
