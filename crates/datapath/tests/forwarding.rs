//! Packets to the data network without the kernel's forwarding: what the portable path sends by a packet socket, what it leaves to
//! the kernel, and changes of routes and neighbours.

#![allow(unsafe_code)]

mod support;

use pith_datapath::{DatapathConfig, PortableDatapath};
use pith_upf::contract::Datapath;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::FromRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::*;

/// A lab with a session, and a socket of the server on port 7000.
fn lab_and_server(kind: Kind, prepare: impl FnOnce()) -> Option<(Lab, UdpSocket)> {
    let mut lab = lab(kind, DatapathConfig { workers: 2, ..DatapathConfig::default() })?;
    prepare();
    lab.install(session());
    let server = lab.data_network(7000);
    Some((lab, server))
}

fn send(lab: &Lab, payload: &[u8]) {
    lab.uplink(TEID, &udp(UE, SERVER, 7000, payload));
}

/// Sends until a packet arrives that took TUN, or none that did.
fn wait_until_by_tun(lab: &Lab, server: &UdpSocket, by_tun: bool) {
    wait_for("the other way", || {
        let before = lab.tun_packets();
        send(lab, b"probe");
        assert_eq!(receive(server), b"probe");
        (lab.tun_packets() > before) == by_tun
    });
}

#[test]
fn packets_to_a_known_next_hop_bypass_tun() {
    let Some((lab, server)) = lab_and_server(Kind::Portable, || {}) else { return };
    for number in 0..100u8 {
        send(&lab, &[number]);
        assert_eq!(receive(&server), [number]);
    }
    // A packet is counted when the system call has returned; the server may have it before.
    wait_for("the last one's count", || lab.upf.counters().n6_out.packets >= 100);
    let counters = lab.upf.counters();
    assert_eq!((lab.tun_packets(), counters.n6_out.packets, counters.dropped), (0, 100, vec![]));
}

#[test]
fn the_hop_limit_is_decremented() {
    let Some((lab, _server)) = lab_and_server(Kind::Portable, || {}) else { return };
    let capture = lab.server.run(|| {
        // SAFETY: takes no pointers; the descriptor is new and owned here alone.
        unsafe {
            let fd = libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_UDP);
            assert!(fd >= 0);
            UdpSocket::from_raw_fd(fd)
        }
    });
    capture.set_read_timeout(Some(PATIENCE)).unwrap();
    send(&lab, b"hello");
    let packet = receive(&capture);
    assert_eq!((packet[8], &packet[28..]), (63, &b"hello"[..]));
}

#[test]
fn the_kernel_answers_what_it_cannot_forward() {
    let Some((lab, server)) = lab_and_server(Kind::Portable, || drop(run("ip link set n6 mtu 600"))) else {
        return;
    };
    wait_until_by_tun(&lab, &server, false);
    let icmp = |packet: Vec<u8>| {
        lab.uplink(TEID, &packet);
        let answer = lab.downlink().inner;
        (answer[9], answer[20], answer[21])
    };
    let mut expired = udp(UE, SERVER, 7000, b"expired");
    // One hop left; the header's sum changes by 63 in the upper octet.
    expired[8] = 1;
    let sum = u32::from(u16::from_be_bytes([expired[10], expired[11]])) + (63 << 8);
    expired[10..12].copy_from_slice(&((sum & 0xffff) as u16 + (sum >> 16) as u16).to_be_bytes());
    assert_eq!(icmp(expired), (1, 11, 0), "time exceeded");
    wait_for("the MTU", || {
        lab.uplink(TEID, &udp(UE, SERVER, 7000, &[7; 700]));
        !lab.gnb_hears_nothing()
    });
    assert_eq!(icmp(udp(UE, SERVER, 7000, &[7; 700])), (1, 3, 4), "fragmentation needed");
    assert_eq!(icmp(udp(UE, Ipv4Addr::new(203, 0, 113, 1), 7000, b"nowhere")).1, 3, "unreachable");
}

#[test]
fn routing_that_only_the_kernel_knows_is_the_kernels() {
    let Some((lab, server)) = lab_and_server(Kind::Portable, || {}) else { return };
    wait_until_by_tun(&lab, &server, false);
    run(&format!("ip rule add from {UE} table 77 priority 500"));
    wait_until_by_tun(&lab, &server, true);
    run("ip rule del priority 500");
    wait_until_by_tun(&lab, &server, false);
    run(&format!(
        "ip route add {SERVER}/32 nexthop via {SERVER} dev n6 nexthop via 172.17.0.3 dev n6 onlink"
    ));
    run("ip neigh replace 172.17.0.3 lladdr 02:00:00:00:00:02 dev n6 nud permanent");
    wait_until_by_tun(&lab, &server, true);
    run(&format!("ip route replace {SERVER}/32 dev n6"));
    wait_until_by_tun(&lab, &server, false);
}

#[test]
fn rules_that_the_packet_filter_gets_later_are_not_bypassed() {
    let Some((lab, server)) = lab_and_server(Kind::Portable, || {}) else { return };
    wait_until_by_tun(&lab, &server, false);
    filter("add table inet site");
    filter("add chain inet site forward { type filter hook forward priority 0 ; }");
    filter("add rule inet site forward ip daddr 192.0.2.1 drop");
    wait_until_by_tun(&lab, &server, true);
    filter("delete table inet site");
    wait_until_by_tun(&lab, &server, false);
}

/// Runs a command of `nft`.
fn filter(text: &str) {
    assert!(std::process::Command::new("nft").arg(text).status().unwrap().success(), "{text}");
}

#[test]
fn rules_of_the_hosts_packet_filter_are_not_bypassed() {
    if !enter_namespace() {
        return;
    }
    let radio = wire("n3", UPF, GNB, Kind::Portable);
    let server = wire("n6", UPF_N6, SERVER, Kind::Portable);
    server.run(|| drop(run(&format!("ip route add 10.45.0.0/16 via {UPF_N6}"))));
    filter("add table inet site");
    filter("add chain inet site forward { type filter hook forward priority 0 ; }");
    filter("add rule inet site forward ip daddr 192.0.2.1 drop");
    let config = DatapathConfig { n3_addresses: vec![UPF.into()], workers: 1, ..DatapathConfig::default() };
    for (bypass_firewall, by_tun) in [(false, 1), (true, 0)] {
        let config = DatapathConfig { bypass_firewall, ..config.clone() };
        let mut upf = PortableDatapath::start(config).unwrap();
        upf.install(Arc::new(session()));
        let before = tun_received();
        let gnb = radio.run(|| UdpSocket::bind((GNB, 0)).unwrap());
        let socket = server.run(|| UdpSocket::bind((SERVER, 7000)).unwrap());
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        gnb.send_to(&gpdu(TEID, &udp(UE, SERVER, 7000, b"hello")), (UPF, 2152)).unwrap();
        assert_eq!(receive(&socket), b"hello");
        assert_eq!(tun_received() - before, by_tun);
    }
}

/// Packets that the kernel received by TUN.
fn tun_received() -> u64 {
    std::fs::read_to_string("/proc/thread-self/net/dev")
        .unwrap()
        .lines()
        .find_map(|line| line.trim().strip_prefix("pith0:")?.split_whitespace().nth(1)?.parse().ok())
        .unwrap()
}

#[test]
fn a_changed_neighbour_is_followed() {
    let Some((lab, server)) = lab_and_server(Kind::Portable, || {}) else { return };
    wait_until_by_tun(&lab, &server, false);
    lab.server.run(|| drop(run("ip link set eth0 address 02:00:00:00:00:07")));
    run(&format!("ip neigh replace {SERVER} lladdr 02:00:00:00:00:07 dev n6 nud permanent"));
    server.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    wait_for("a packet for the new address", || {
        send(&lab, b"moved");
        server.recv(&mut [0; 100]).is_ok()
    });
}

/// A neighbour that has another link address without announcing it: the kernel must ask it, though it sends nothing to it itself.
fn a_silent_move_is_noticed(kind: Kind) {
    let quick = || {
        for (setting, value) in
            [("delay_first_probe_time", "1"), ("ucast_solicit", "1"), ("retrans_time_ms", "50")]
        {
            std::fs::write(format!("/proc/sys/net/ipv4/neigh/n6/{setting}"), value).unwrap();
        }
        run(&format!("ip neigh del {SERVER} dev n6"));
        run(&format!("ip neigh add {SERVER} lladdr 02:00:00:00:00:02 dev n6 nud stale"));
    };
    let Some((lab, server)) = lab_and_server(kind, quick) else { return };
    send(&lab, b"before");
    assert_eq!(receive(&server), b"before");
    lab.server.run(|| drop(run("ip link set eth0 address 02:00:00:00:00:07")));
    run(&format!("ip neigh replace {SERVER} lladdr 02:00:00:00:00:02 dev n6 nud stale"));
    server.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        send(&lab, b"moved");
        if server.recv(&mut [0; 100]).is_ok() {
            return;
        }
        assert!(Instant::now() < deadline, "the neighbour is still sent to its old address");
    }
}

#[test]
fn the_portable_path_notices_a_silent_move_of_a_neighbour() {
    a_silent_move_is_noticed(Kind::Portable);
}

#[test]
fn xdp_notices_a_silent_move_of_a_neighbour() {
    a_silent_move_is_noticed(Kind::Generic);
}

/// Packets that the kernel must send, because they are too long, are not overtaken by others to the same destination.
#[test]
fn no_packet_overtakes_one_that_the_kernel_sends() {
    let Some((lab, server)) = lab_and_server(Kind::Portable, || drop(run("ip link set n6 mtu 600"))) else {
        return;
    };
    receive_much(&server);
    wait_until_by_tun(&lab, &server, false);
    for number in 0..200u32 {
        let length = if number % 3 == 0 { 900 } else { 40 };
        let mut payload = number.to_be_bytes().to_vec();
        payload.resize(length, 0);
        // Fragments may be sent.
        let mut packet = udp(UE, SERVER, 7000, &payload);
        packet[6] &= !0x40;
        pith_datapath::packet::set_ipv4_checksum(&mut packet[..20]);
        lab.uplink(TEID, &packet);
    }
    for number in 0..200u32 {
        let payload = receive(&server);
        assert_eq!(payload[..4], number.to_be_bytes());
    }
}
