//! NAT on each path: the kernel's masquerade translates the first packets of a connection, and the XDP program those that
//! follow, with the same public address and port.

#![allow(unsafe_code)]

mod support;

use pith_datapath::DatapathConfig;
use pith_upf::contract::*;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::time::Duration;
use support::*;

fn nat_labs() -> impl Iterator<Item = Lab> {
    labs_with(DatapathConfig { nat: true, workers: 2, ..DatapathConfig::default() }).inspect(|lab| {
        lab.server.run(|| {
            // Complete checksums, as a network card delivers them; no route to UEs.
            run("ethtool -K eth0 tx off");
            run("ip route del 10.45.0.0/16");
        });
    })
}

/// The address and port that a server's packet came from.
fn receive_from(server: &UdpSocket, expected: &[u8]) -> SocketAddr {
    let mut buffer = [0; 2048];
    let (length, from) = server.recv_from(&mut buffer).expect("a datagram");
    assert!(&buffer[..length] == expected, "{:?}…", &buffer[..length.min(8)]);
    from
}

/// Packets of the session that the program forwarded.
fn fast_packets(lab: &Lab) -> u64 {
    lab.upf.flows(SessionId(1)).iter().map(|flow| flow.count.fast.packets).sum()
}

#[test]
fn a_connection_keeps_its_public_address_on_whichever_path_its_packets_take() {
    for mut lab in nat_labs() {
        lab.install(session());
        let server = lab.data_network(7000);
        let mut public = None;
        for number in 0..20u8 {
            lab.uplink(TEID, &udp(UE, SERVER, 7000, &[number]));
            let from = receive_from(&server, &[number]);
            assert_eq!(from.ip(), IpAddr::V4(UPF_N6), "{number}");
            assert_eq!(*public.get_or_insert(from), from, "{number}");
            server.send_to(&[number, 1], from).unwrap();
            let gpdu = lab.downlink();
            assert_eq!((gpdu.teid, gpdu.payload()), (GNB_TEID, &[number, 1][..]));
            assert_eq!(
                (&gpdu.inner[16..20], &gpdu.inner[22..24]),
                (&UE.octets()[..], &5000u16.to_be_bytes()[..])
            );
        }
        let volume = lab.upf.usage(SessionId(1)).unwrap().urrs[0].volume;
        let expected =
            Volume { uplink: 20 * 29, downlink: 20 * 30, uplink_packets: 20, downlink_packets: 20 };
        assert_eq!(volume, expected);
        // By the kernel: the first packet of each direction.
        assert_eq!(fast_packets(&lab), if lab.kind == Kind::Portable { 0 } else { 38 });
        assert_eq!(lab.upf.counters().dropped, []);
    }
}

#[test]
fn a_packet_without_connection_does_not_reach_the_ue() {
    for mut lab in nat_labs() {
        lab.install(session());
        let server = lab.data_network(7000);
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"up"));
        let public = receive_from(&server, b"up");
        lab.data_network(7001).send_to(b"from another port", public).unwrap();
        assert!(lab.gnb_hears_nothing());
        server.send_to(b"answer", public).unwrap();
        assert_eq!(lab.downlink().payload(), b"answer");
    }
}

/// Also if it knows the UE's own address (RFC 4787 REQ-8).
#[test]
fn no_host_begins_a_connection_to_a_ue() {
    for mut lab in nat_labs() {
        lab.install(session());
        let server = lab.data_network(7000);
        lab.server.run(|| {
            run(&format!("ip route add 10.45.0.0/16 via {UPF_N6}"));
            let patience = Duration::from_millis(100);
            assert!(TcpStream::connect_timeout(&(UE, 5000).into(), patience).is_err());
            let ping = Command::new("ping").args(["-c1", "-W0.1", &UE.to_string()]).output();
            ping.expect("ping (iputils)");
        });
        let to_ue = || server.send_to(b"unsolicited", (UE, 5000)).unwrap();
        to_ue();
        assert!(lab.gnb_hears_nothing());
        // A connection with that server opens its public address only.
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"up"));
        let public = receive_from(&server, b"up");
        to_ue();
        assert!(lab.gnb_hears_nothing());
        server.send_to(b"answer", public).unwrap();
        assert_eq!(lab.downlink().payload(), b"answer");
        // This host is not of another network, and may forward ports to UEs.
        UdpSocket::bind((GATEWAY, 7000)).unwrap().send_to(b"of the host", (UE, 5000)).unwrap();
        assert_eq!(lab.downlink().payload(), b"of the host");
        run("nft add table ip others");
        run("nft add chain ip others prerouting { type nat hook prerouting priority -100 ; }");
        run(&format!("nft add rule ip others prerouting ip daddr {UPF_N6} udp dport 7070 dnat to {UE}:5000"));
        server.send_to(b"forwarded", (UPF_N6, 7070)).unwrap();
        assert_eq!(lab.downlink().payload(), b"forwarded");
    }
}

/// A UE takes neither all ports nor the kernel's whole table (RFC 6888 REQ-4).
#[test]
fn a_ue_has_a_limited_number_of_connections() {
    let config = DatapathConfig { nat: true, nat_connections: 10, workers: 2, ..DatapathConfig::default() };
    for mut lab in labs_with(config) {
        lab.server.run(|| drop(run("ethtool -K eth0 tx off")));
        lab.install(session());
        let other = Ipv4Addr::new(10, 45, 0, 3);
        lab.install(session_of(2, other, TEID + 1, GNB_TEID + 1));
        let server = lab.data_network(7000);
        let server_of = |number: u16| lab.data_network(7100 + number);
        let servers: Vec<_> = (0..10).map(server_of).collect();
        for (server, port) in servers.iter().zip(7100..) {
            lab.uplink(TEID, &udp(UE, SERVER, port, b"one more"));
            receive_from(server, b"one more");
        }
        // The kernel answers no packet without checksum.
        let mut packet = udp(UE, SERVER, 7000, b"too many");
        let pseudo = [&packet[12..20], &[0, 17, 0, 16]].concat();
        set_sum(&mut packet[20..], 6, &pseudo);
        lab.uplink(TEID, &packet);
        let answer = lab.downlink().inner;
        assert_eq!(
            (answer[9], &answer[16..22]),
            (1, &[&UE.octets()[..], &[3, 13]].concat()[..]),
            "prohibited"
        );
        let table = run("nft list table ip pith_pith0");
        assert!(table.contains("ct count over 10 } counter packets 1 bytes"), "{table}");
        // Its connections go on, and those of others begin.
        lab.uplink(TEID, &udp(UE, SERVER, 7100, b"old"));
        receive_from(&servers[0], b"old");
        lab.uplink(TEID + 1, &udp(other, SERVER, 7000, b"of another UE"));
        receive_from(&server, b"of another UE");
    }
}

/// What the network's firewall allows is no unsolicited packet.
#[test]
fn a_firewall_opens_a_ue_behind_nat() {
    let pool = DatapathConfig::default().pools[0];
    let rules = [format!("allow down udp to {UE} port 7000"), "deny down".to_owned()];
    let firewall = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    let policies =
        vec![pith_datapath::NetworkPolicy { firewall, ..pith_datapath::NetworkPolicy::none(pool) }];
    let config = DatapathConfig { nat: true, policies, ..DatapathConfig::default() };
    let Some(mut lab) = lab(Kind::Portable, config) else { return };
    lab.install(session());
    let server = lab.data_network(7001);
    server.send_to(b"closed", (UE, 7002)).unwrap();
    assert!(lab.gnb_hears_nothing());
    let mut answer = udp(UE, SERVER, 7001, b"answer");
    answer[20..22].copy_from_slice(&7000u16.to_be_bytes());
    for _ in 0..3 {
        server.send_to(b"open", (UE, 7000)).unwrap();
        assert_eq!(lab.downlink().payload(), b"open");
        lab.uplink(TEID, &answer);
        assert_eq!(receive_from(&server, b"answer"), (UE, 7000).into());
    }
    // Connections that hosts have begun end with the session, too.
    assert_eq!((tracked_ues(), connections_to(UE)), (vec![], 1));
    lab.upf.remove(SessionId(1));
    wait_for("the end of the connection", || connections_to(UE) == 0);
}

/// Connections in the kernel's table that hosts have begun to a UE.
fn connections_to(ue: std::net::Ipv4Addr) -> usize {
    support::conntrack::public_ends().keys().filter(|connection| connection.remote.0 == ue).count()
}

/// UEs with a connection in the kernel's table.
fn tracked_ues() -> Vec<std::net::Ipv4Addr> {
    let pool = DatapathConfig::default().pools[0];
    let ues = support::conntrack::public_ends().into_keys().map(|connection| connection.ue.0);
    ues.filter(|ue| pool.contains((*ue).into())).collect()
}

/// The next UE with an address gets nothing of the former one's connections.
#[test]
fn connections_end_with_their_session() {
    for mut lab in nat_labs() {
        lab.install(session());
        let server = lab.data_network(7000);
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"up"));
        let public = receive_from(&server, b"up");
        server.send_to(b"answer", public).unwrap();
        assert_eq!(lab.downlink().payload(), b"answer");
        assert_eq!(tracked_ues(), [UE]);
        lab.upf.remove(SessionId(1));
        wait_for("the end of the connection", || tracked_ues().is_empty());
        lab.upf.begin(UeAddress::v4(UE), false);
        lab.install(session_of(2, UE, TEID + 1, GNB_TEID + 1));
        server.send_to(b"of the former UE", public).unwrap();
        assert!(lab.gnb_hears_nothing());
    }
}

/// Connections that a killed UPF has left go on with restored sessions, and end when another UE gets the address.
#[test]
fn connections_outlive_the_process_for_restored_sessions_only() {
    const OTHER: std::net::Ipv4Addr = std::net::Ipv4Addr::new(10, 45, 0, 3);
    for mut lab in nat_labs() {
        lab.install(session());
        lab.install(session_of(2, OTHER, TEID + 1, GNB_TEID + 1));
        let server = lab.data_network(7000);
        for (ue, teid) in [(UE, TEID), (OTHER, TEID + 1)] {
            lab.uplink(teid, &udp(ue, SERVER, 7000, b"up"));
            receive_from(&server, b"up");
        }
        assert_eq!(tracked_ues().len(), 2);
        let config = DatapathConfig {
            nat: true,
            tun: "pith1".into(),
            n3_addresses: vec![UPF_N6.into()],
            path: pith_datapath::PathChoice::Portable,
            ..DatapathConfig::default()
        };
        // The sweep of a process that starts.
        let mut next = pith_datapath::UserPlane::start(config).unwrap();
        next.begin(UeAddress::v4(OTHER), true);
        next.begin(UeAddress::v4(UE), false);
        wait_for("the end of the connection", || tracked_ues() == [OTHER]);
        next.begin(UeAddress::v4(OTHER), false);
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(tracked_ues(), [OTHER], "it is the restored session's");
    }
}

/// Packets above the rate are queued in user space, where the kernel translates them.
#[test]
fn a_session_above_its_rate_is_shaped_and_translated() {
    for mut lab in nat_labs() {
        let mut session = session();
        session.qers[1].mbr = Some(Rates { uplink: 4_000_000, downlink: 4_000_000 });
        lab.install(session);
        let server = lab.data_network(7000);
        receive_much(&server);
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"first"));
        let public = receive_from(&server, b"first");
        server.send_to(b"first", public).unwrap();
        assert_eq!(lab.downlink().payload(), b"first");
        for number in 0..12u8 {
            lab.uplink(TEID, &udp(UE, SERVER, 7000, &[number; 1000]));
            server.send_to(&[number; 1000], public).unwrap();
        }
        for number in 0..12u8 {
            assert_eq!(receive_from(&server, &[number; 1000]), public, "{number}");
            assert!(lab.downlink().payload() == [number; 1000], "{number}");
        }
        lab.upf.poll_events(&mut Vec::new());
    }
}

/// A TCP connection of the UE, whose segments the test writes: the handshake by the kernel, data by the program, the end by
/// the kernel, which has to accept sequence numbers beyond those that it has seen.
#[test]
fn a_tcp_connection_begins_and_ends_in_the_kernel() {
    for mut lab in nat_labs() {
        lab.install(session());
        let listener = lab.server.run(|| std::net::TcpListener::bind((SERVER, 7000)).unwrap());
        let mut ue = TcpUe { next: 1_000, acknowledged: 0 };
        lab.uplink(TEID, &ue.segment(SYN, &[]));
        let answer = lab.downlink().inner;
        ue.acknowledged = sequence(&answer).wrapping_add(1);
        lab.uplink(TEID, &ue.segment(ACK, &[]));
        let (mut stream, from) = lab.server.run(move || listener.accept().unwrap());
        assert_eq!(from.ip(), IpAddr::V4(UPF_N6));
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let before = fast_packets(&lab);
        // More than the window that connection tracking has seen.
        let mut received = vec![0; 1000];
        for number in 0..200u8 {
            lab.uplink(TEID, &ue.segment(ACK, &[number; 1000]));
            std::io::Read::read_exact(&mut stream, &mut received).unwrap();
            assert_eq!(received, [number; 1000]);
        }
        if lab.kind != Kind::Portable {
            assert!(fast_packets(&lab) >= before + 200, "{before} {}", fast_packets(&lab));
        }
        lab.uplink(TEID, &ue.segment(ACK | FIN, &[]));
        assert_eq!(std::io::Read::read(&mut stream, &mut received).unwrap(), 0, "the end arrives");
        drop(stream);
        let is_end = || lab.downlink().inner[33] & FIN != 0;
        wait_for("the server's end", is_end);
        let states = std::fs::read_to_string("/proc/thread-self/net/nf_conntrack").unwrap();
        assert!(!states.contains("ESTABLISHED"), "{states}");
    }
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 0x10;

struct TcpUe {
    next: u32,
    acknowledged: u32,
}

impl TcpUe {
    /// The UE's next segment, from port 5000 to the server's port 7000.
    fn segment(&mut self, flags: u8, payload: &[u8]) -> Vec<u8> {
        let mut tcp = [5000u16.to_be_bytes(), 7000u16.to_be_bytes()].concat();
        tcp.extend(self.next.to_be_bytes());
        tcp.extend(self.acknowledged.to_be_bytes());
        tcp.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend(payload);
        let begins_or_ends = u32::from(flags & (SYN | FIN) != 0);
        self.next = self.next.wrapping_add(payload.len() as u32 + begins_or_ends);
        // The header of a UDP packet of that length, with another protocol.
        let mut packet = udp(UE, SERVER, 7000, &vec![0; tcp.len() - 8])[..20].to_vec();
        packet[9] = 6;
        set_sum(&mut packet, 10, &[]);
        let length = (tcp.len() as u16).to_be_bytes();
        let pseudo = [&packet[12..20], &[0, 6], &length].concat();
        set_sum(&mut tcp, 16, &pseudo);
        [packet, tcp].concat()
    }
}

/// Writes the checksum of `octets`, and of `before` them, at an offset.
fn set_sum(octets: &mut [u8], at: usize, before: &[u8]) {
    octets[at..at + 2].fill(0);
    let words = before.chunks(2).chain(octets.chunks(2));
    let sum: u32 = words.map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    octets[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

fn sequence(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[24..28].try_into().unwrap())
}

/// The setting that connection tracking needs is restored.
#[test]
fn the_system_is_left_as_it_was() {
    for lab in nat_labs() {
        let setting =
            || std::fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal").unwrap();
        assert_eq!(setting().trim() == "1", lab.kind != Kind::Portable);
        lab.upf.stop();
        assert_eq!(setting().trim(), "0");
        std::thread::sleep(Duration::from_millis(1));
    }
}
