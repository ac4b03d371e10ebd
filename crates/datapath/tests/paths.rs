//! Both paths, packet by packet: input from tunnels and the data network, and the expected output. Each test
//! has its own network namespace; without the privilege to create one it is skipped.

mod support;

use pith_datapath::{
    BufferLimits, DatapathConfig, Enforcement, PortableDatapath, SharedRate, StartError, UserPlane,
};
use pith_pfcp::gtpu::{ErrorIndication, GTPU_PORT, Packet, Signalling};
use pith_upf::contract::*;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use support::*;

#[test]
fn an_uplink_packet_comes_out_at_the_data_network() {
    for mut lab in labs() {
        lab.install(session());
        let server = lab.data_network(7000);
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"hello"));
        assert_eq!(receive(&server), b"hello");
        let one = Traffic { packets: 1, bytes: 33 };
        wait_for("counters", || lab.upf.counters().n6_out == one);
        assert_eq!((lab.upf.counters().n3_in, lab.upf.counters().dropped), (one, vec![]));
    }
}

#[test]
fn a_downlink_packet_reaches_the_gnb_with_teid_and_qfi() {
    for mut lab in labs() {
        lab.install(session());
        lab.data_network(7000).send_to(b"hello", (UE, 5000)).unwrap();
        let gpdu = lab.downlink();
        assert_eq!((gpdu.teid, gpdu.qfi, gpdu.payload()), (GNB_TEID, Some(QFI), &b"hello"[..]));
        wait_for("counters", || lab.upf.counters().n3_out == Traffic { packets: 1, bytes: 33 });
    }
}

#[test]
fn common_packets_bypass_the_portable_path_and_rare_ones_take_it() {
    for mut lab in labs() {
        lab.install(session());
        let server = lab.data_network(7000);
        // Packets through user space, and those through its TUN interface.
        let carried = |lab: &Lab| {
            let before = (lab.user_packets(1), lab.tun_packets());
            lab.uplink(TEID, &udp(UE, SERVER, 7000, b"up"));
            assert_eq!(receive(&server), b"up");
            server.send_to(b"down", (UE, 5000)).unwrap();
            assert_eq!(lab.downlink().payload(), b"down");
            (lab.user_packets(1) - before.0, lab.tun_packets() - before.1)
        };
        assert_eq!(carried(&lab), if lab.kind == Kind::Portable { (2, 1) } else { (0, 0) });
        let mut second = session();
        let spi = SdfFilter { spi: Some(7), ..SdfFilter::default() };
        second.pdrs.push(Pdr { id: PdrId(3), precedence: 9, filters: vec![spi], ..second.pdrs[0].clone() });
        lab.install(second);
        // With the native hook, AF_XDP carries packets to user space and from it; the portable path alone sends up by a packet socket.
        let by_tun = match lab.kind {
            Kind::Portable => 1,
            Kind::Generic => 2,
            Kind::Native => 0,
        };
        assert_eq!(carried(&lab), (2, by_tun));
        assert_eq!(
            usage(&lab.upf),
            Volume { uplink: 60, downlink: 64, uplink_packets: 2, downlink_packets: 2 }
        );
    }
}

#[test]
fn an_idle_session_that_wakes_goes_back_to_the_program_and_nothing_stays_to_be_done() {
    for mut lab in labs() {
        lab.install(idle());
        lab.install(session());
        lab.install(session_of(2, "10.45.0.3".parse().unwrap(), 0x101, 0x201));
        let server = lab.data_network(7000);
        let by_user_space = |lab: &Lab| {
            let before = lab.user_packets(1);
            server.send_to(b"down", (UE, 5000)).unwrap();
            assert_eq!(lab.downlink().payload(), b"down");
            lab.user_packets(1) - before
        };
        assert_eq!(by_user_space(&lab), 1, "a session that was idle has packets in user space");
        wait_for("the program", || {
            lab.upf.poll_events(&mut Vec::new());
            std::thread::sleep(Duration::from_millis(20));
            lab.kind == Kind::Portable || by_user_space(&lab) == 0
        });
        lab.upf.remove(SessionId(1));
        lab.upf.poll_events(&mut Vec::new());
        assert!(!is_readable(&lab.upf.events_ready()));
    }
}

/// The program cannot match SPIs and must leave such a session to user space permanently.
#[test]
fn a_session_for_user_space_alone_stays_there_after_it_was_idle() {
    for mut lab in labs() {
        lab.install(idle());
        let mut watched = session();
        let spi = SdfFilter { spi: Some(7), ..SdfFilter::default() };
        watched.pdrs.push(Pdr { id: PdrId(3), precedence: 9, filters: vec![spi], ..watched.pdrs[0].clone() });
        lab.install(watched);
        let server = lab.data_network(7000);
        // Longer than an idle session takes to return to the program.
        for _ in 0..40 {
            lab.upf.poll_events(&mut Vec::new());
            std::thread::sleep(Duration::from_millis(10));
        }
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"up"));
        server.send_to(b"down", (UE, 5000)).unwrap();
        assert_eq!((receive(&server), lab.downlink().payload()), (b"up".to_vec(), &b"down"[..]));
        assert_eq!(lab.upf.counters().dropped, []);
    }
}

/// A failed answer does not count as a lost user packet.
#[test]
fn an_answer_that_cannot_be_sent_is_no_drop() {
    for lab in labs() {
        const NOWHERE: std::net::Ipv4Addr = std::net::Ipv4Addr::new(172, 16, 9, 9);
        for name in ["all", "n3"] {
            std::fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "0").unwrap();
        }
        let gnb = lab.radio.run(|| {
            run(&format!("ip addr add {NOWHERE}/32 dev eth0"));
            UdpSocket::bind((NOWHERE, GTPU_PORT)).unwrap()
        });
        gnb.send_to(&gpdu(0xdead, &udp(UE, SERVER, 7000, b"hello")), (UPF, GTPU_PORT)).unwrap();
        lab.wait_dropped(DropReason::UnknownTeid, 1);
        std::thread::sleep(Duration::from_millis(20));
        let counters = lab.upf.counters();
        assert_eq!((counters.n3_in.packets, counters.dropped), (1, vec![(DropReason::UnknownTeid, 1)]));
    }
}

#[test]
fn an_unknown_teid_gets_an_error_indication() {
    for lab in labs() {
        lab.uplink(0xdead, &udp(UE, SERVER, 7000, b"hello"));
        let (bytes, from) = lab.datagram();
        let signalling = Signalling::decode(&Packet::decode(&bytes).unwrap()).unwrap();
        let expected = ErrorIndication { teid: 0xdead, peer: IpAddr::V4(UPF) };
        assert_eq!(signalling, Some(Signalling::ErrorIndication(expected)));
        assert_eq!(from, (UPF, GTPU_PORT).into());
        assert_eq!(lab.upf.counters().dropped, [(DropReason::UnknownTeid, 1)]);
    }
}

#[test]
fn error_indications_are_bounded() {
    for lab in labs() {
        for _ in 0..1000 {
            lab.uplink(0xdead, &udp(UE, SERVER, 7000, b"hello"));
        }
        lab.wait_dropped(DropReason::UnknownTeid, 1000);
        lab.gnb.set_nonblocking(true).unwrap();
        let answers = std::iter::from_fn(|| lab.gnb.recv_from(&mut [0; 100]).ok()).count();
        assert!((1..=800).contains(&answers), "{answers}");
    }
}

#[test]
fn a_spoofed_source_is_dropped_and_counted() {
    for mut lab in labs() {
        lab.install(session());
        let server = lab.data_network(7000);
        lab.uplink(TEID, &udp("10.45.0.3".parse().unwrap(), SERVER, 7000, b"not mine"));
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"mine"));
        assert_eq!(receive(&server), b"mine");
        assert_eq!(lab.upf.counters().dropped, [(DropReason::SpoofedSource, 1)]);
        assert_eq!(lab.upf.usage(SessionId(1)).unwrap().urrs[0].volume.uplink_packets, 1);
    }
}

/// TS 23.501 5.7.1.7; the marking of a flow of the session that other filters select leaves the packet to the rule of all packets.
#[test]
fn a_packet_with_a_qfi_of_no_flow_of_its_session_is_dropped_and_counted() {
    for mut lab in labs() {
        let mut session = session_with_flow(5, false);
        let filters = session.pdrs[2].filters.clone();
        let (id, precedence, qers, qfis) = (PdrId(4), 10, vec![QerId(3)], vec![Qfi(5)]);
        session.pdrs.push(Pdr { id, precedence, filters, qers, qfis, ..session.pdrs[0].clone() });
        lab.install(session.clone());
        let (server, special) = (lab.data_network(7000), lab.data_network(7001));
        lab.uplink_in(6, TEID, &udp(UE, SERVER, 7001, b"not a flow of the session"));
        lab.uplink_in(0, TEID, &udp(UE, SERVER, 7000, b"neither"));
        lab.wait_dropped(DropReason::UnknownQfi, 2);
        for qfi in [5, QFI] {
            for (to, port) in [(&server, 7000), (&special, 7001)] {
                lab.uplink_in(qfi, TEID, &udp(UE, SERVER, port, &[qfi]));
                assert_eq!(receive(to), [qfi]);
            }
        }
        let bare = udp(UE, SERVER, 7000, b"without a container");
        let length = (bare.len() as u16).to_be_bytes();
        let header = [&[0x30, 255, length[0], length[1]], &TEID.to_be_bytes()[..]].concat();
        lab.gnb.send_to(&[header, bare].concat(), (UPF, GTPU_PORT)).unwrap();
        assert_eq!(receive(&server), b"without a container");
        assert_eq!(lab.upf.counters().dropped, [(DropReason::UnknownQfi, 2)]);
        assert_eq!(lab.upf.usage(SessionId(1)).unwrap().urrs[0].volume.uplink_packets, 5);

        // The flow ends while its packets are on the way.
        lab.install(Session { former_qfis: vec![Qfi(5)], ..support::session() });
        lab.uplink_in(5, TEID, &udp(UE, SERVER, 7001, b"late"));
        assert_eq!(receive(&special), b"late");
        lab.install(support::session());
        lab.uplink_in(5, TEID, &udp(UE, SERVER, 7001, b"too late"));
        lab.wait_dropped(DropReason::UnknownQfi, 3);
    }
}

#[test]
fn a_ue_cannot_impersonate_another_by_a_nested_tunnel() {
    for mut lab in labs() {
        let other = "10.45.0.3".parse().unwrap();
        lab.install(session());
        lab.install(session_of(2, other, 0x101, 0x201));
        let server = lab.data_network(7000);
        let forged = gpdu(0x101, &udp(other, SERVER, 7000, b"forged"));
        lab.uplink(TEID, &udp(UE, UPF, GTPU_PORT, &forged));
        lab.wait_dropped(DropReason::ClosedDestination, 1);
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"own"));
        assert_eq!(receive(&server), b"own");
        assert_eq!(lab.upf.usage(SessionId(2)).unwrap().urrs[0].volume.total(), 0);
    }
}

#[test]
fn broken_packets_are_dropped_by_name() {
    for mut lab in labs() {
        lab.install(session());
        let mut short = udp(UE, SERVER, 7000, b"hello");
        short.truncate(30);
        lab.uplink(TEID, &short);
        lab.uplink(TEID, b"no IP");
        lab.gnb.send_to(&[0x30, 255, 0, 9, 0, 0, 1, 0], (UPF, GTPU_PORT)).unwrap();
        lab.gnb.send_to(&[0x50, 255, 0, 0, 0, 0, 1, 0], (UPF, GTPU_PORT)).unwrap();
        lab.gnb.send_to(b"", (UPF, GTPU_PORT)).unwrap();
        lab.gnb.send_to(&[0x30, 99, 0, 0, 0, 0, 0, 0], (UPF, GTPU_PORT)).unwrap();
        lab.wait_dropped(DropReason::MalformedInner, 2);
        lab.wait_dropped(DropReason::UnsupportedGtpu, 1);
        lab.wait_dropped(DropReason::MalformedGtpu, 3);
    }
}

/// Packets with a damaged header that the hosts in a namespace received.
fn header_errors() -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut rows = table.lines().filter(|line| line.starts_with("Ip:")).map(str::split_whitespace);
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    names.zip(values).find(|(name, _)| *name == "InHdrErrors").unwrap().1.parse().unwrap()
}

/// A router discards packets with a wrong header checksum (RFC 1812 5.2.2).
#[test]
fn a_packet_with_a_damaged_header_does_not_reach_the_data_network() {
    for mut lab in labs() {
        lab.install(session());
        let server = lab.data_network(7000);
        let mut damaged = udp(UE, SERVER, 7000, b"damaged");
        damaged[10] ^= 1;
        lab.uplink(TEID, &damaged);
        // With an option, whose checksum is wrong, too.
        let mut long = udp(UE, SERVER, 7000, b"with an option");
        long[0] += 1;
        long.splice(20..20, [1, 1, 1, 0]);
        long[3] += 4;
        lab.uplink(TEID, &long);
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"whole"));
        assert_eq!(receive(&server), b"whole");
        wait_for("all to be forwarded", || lab.upf.counters().n6_out.packets == 3);
        assert_eq!(lab.server.run(header_errors), 0, "{:?}", lab.kind);
    }
}

#[test]
fn a_packet_longer_than_the_mtu_of_its_route_is_answered_by_icmp() {
    const FAR: std::net::Ipv4Addr = std::net::Ipv4Addr::new(198, 51, 100, 1);
    const NEAR: std::net::Ipv4Addr = std::net::Ipv4Addr::new(198, 51, 100, 200);
    for mut lab in labs() {
        lab.install(session());
        run(&format!("ip route add 198.51.100.0/24 via {SERVER} mtu 1300"));
        run(&format!("ip route add 198.51.100.128/25 via {SERVER}"));
        lab.server.run(|| drop(run(&format!("ip addr add {NEAR}/32 dev eth0"))));
        let near = lab.server.run(|| UdpSocket::bind((NEAR, 7000)).unwrap());
        near.set_read_timeout(Some(PATIENCE)).unwrap();
        // The program looks routes up again after 100 ms.
        std::thread::sleep(Duration::from_millis(300));
        let by_user_space = lab.user_packets(1);
        lab.uplink(TEID, &udp(UE, NEAR, 7000, &[7; 1300]));
        assert_eq!(receive(&near), [7; 1300], "a longer route has no limit");
        let is_fast = lab.kind != Kind::Portable;
        assert_eq!(lab.user_packets(1) == by_user_space, is_fast);
        lab.uplink(TEID, &udp(UE, FAR, 7000, &[7; 1300]));
        let answer = lab.downlink().inner;
        // Fragmentation needed, with the next hop's MTU (RFC 1191 4).
        assert_eq!(
            (answer[9], &answer[20..22], &answer[26..28]),
            (1, &[3, 4][..], &1300u16.to_be_bytes()[..])
        );
    }
}

#[test]
fn an_echo_request_is_answered_to_its_port() {
    for lab in labs() {
        let probe = lab.radio.run(|| UdpSocket::bind((GNB, 0)).unwrap());
        probe.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request = Vec::new();
        Signalling::EchoRequest { sequence: 77 }.encode(&mut request);
        probe.send_to(&request, (UPF, GTPU_PORT)).unwrap();
        let answer = receive(&probe);
        let signalling = Signalling::decode(&Packet::decode(&answer).unwrap()).unwrap();
        assert_eq!(signalling, Some(Signalling::EchoResponse { sequence: 77 }));
        drop(lab);
    }
}

#[test]
fn an_extension_header_that_must_be_understood_is_refused() {
    for mut lab in labs() {
        lab.install(session());
        let inner = udp(UE, SERVER, 7000, b"hello");
        let length = (inner.len() as u16 + 8).to_be_bytes();
        let header = [0x34, 255, length[0], length[1], 0, 0, 1, 0, 0, 0, 0, 0xc1, 1, 0, 0, 0];
        lab.gnb.send_to(&[&header[..], &inner].concat(), (UPF, GTPU_PORT)).unwrap();
        let (bytes, _) = lab.datagram();
        let answer = Signalling::decode(&Packet::decode(&bytes).unwrap()).unwrap();
        let header_types = vec![0x85];
        assert_eq!(answer, Some(Signalling::SupportedExtensionHeadersNotification { header_types }));
        assert_eq!(lab.upf.counters().dropped, [(DropReason::UnsupportedGtpu, 1)]);
    }
}

#[test]
fn a_peers_error_indication_becomes_an_event() {
    for mut lab in labs() {
        lab.install(session());
        let mut message = Vec::new();
        let peer = IpAddr::V4(GNB);
        Signalling::ErrorIndication(ErrorIndication { teid: GNB_TEID, peer }).encode(&mut message);
        lab.gnb.send_to(&message, (UPF, GTPU_PORT)).unwrap();
        assert_eq!(lab.event(), Event::ErrorIndication { peer, teid: Teid(GNB_TEID) });
    }
}

#[test]
fn an_error_indication_that_names_another_peer_than_its_sender_is_dropped() {
    for mut lab in labs() {
        lab.install(session());
        lab.install(session());
        let mut message = Vec::new();
        let peer = IpAddr::from([192, 0, 2, 66]);
        Signalling::ErrorIndication(ErrorIndication { teid: GNB_TEID, peer }).encode(&mut message);
        lab.gnb.send_to(&message, (UPF, GTPU_PORT)).unwrap();
        lab.wait_dropped(DropReason::StrayErrorIndication, 1);
        let mut events = Vec::new();
        lab.upf.poll_events(&mut events);
        assert_eq!(events, []);
    }
}

#[test]
fn session_ambr_is_policed_both_ways_where_that_is_asked_for() {
    let config = DatapathConfig { workers: 2, enforcement: Enforcement::Police, ..DatapathConfig::default() };
    for mut lab in labs_with(config) {
        let mut session = session();
        let rate = 4_000_000;
        session.qers[1].mbr = Some(Rates { uplink: rate, downlink: rate });
        lab.install(session);
        let server = lab.data_network(7000);
        let begin = Instant::now();
        for _ in 0..400 {
            lab.uplink(TEID, &udp(UE, SERVER, 7000, &[0; 972]));
            server.send_to(&[0; 972], (UE, 5000)).unwrap();
        }
        let volume = || usage(&lab.upf);
        let dropped = || lab.upf.counters().dropped(DropReason::RateExceeded);
        wait_for("all packets", || {
            let volume = volume();
            volume.uplink_packets + volume.downlink_packets + dropped() == 800
        });
        // A burst of a tenth of a second, plus the tokens of the elapsed time and of one tick of the
        // program's clock (at most 10 ms), plus one packet.
        let meanwhile = begin.elapsed() + Duration::from_millis(10);
        let most = rate / 80 + meanwhile.as_micros() as u64 * rate / 8_000_000 + 1000;
        for bytes in [volume().uplink, volume().downlink] {
            assert!((rate / 80..=most).contains(&bytes), "{bytes} of at most {most}");
        }
    }
}

#[test]
fn sessions_of_a_slice_have_its_rate_together_and_the_program_keeps_them() {
    let rates = Rates { uplink: 4_000_000, downlink: 4_000_000 };
    let shared = SharedRate { network: GATEWAY.into(), prefix: 16, prefixes: None, rates };
    let config = DatapathConfig {
        workers: 1,
        enforcement: Enforcement::Police,
        shared_rates: vec![shared],
        ..DatapathConfig::default()
    };
    for mut lab in labs_with(config) {
        let other = "10.45.0.3".parse().unwrap();
        for mut session in [session(), session_of(2, other, 0x101, 0x201)] {
            session.qers[0].mbr = Some(Rates { uplink: 1_000_000_000, downlink: 1_000_000_000 });
            lab.install(session);
        }
        let _server = lab.data_network(7000);
        let begin = Instant::now();
        for _ in 0..200 {
            lab.uplink(TEID, &udp(UE, SERVER, 7000, &[0; 972]));
            lab.uplink(0x101, &udp(other, SERVER, 7000, &[0; 972]));
        }
        let passed = || lab.upf.counters().n6_out;
        let dropped = || lab.upf.counters().dropped(DropReason::RateExceeded);
        wait_for("all packets", || passed().packets + dropped() == 400);
        let meanwhile = begin.elapsed() + Duration::from_millis(20);
        let most = 4_000_000 / 80 + meanwhile.as_micros() as u64 / 2 + 1000;
        assert!((50_000..=most).contains(&passed().bytes), "{} of at most {most}", passed().bytes);
        assert_eq!(lab.user_packets(1) == 0, lab.kind != Kind::Portable);
    }
}

fn usage(upf: &UserPlane) -> Volume {
    upf.usage(SessionId(1)).unwrap().urrs[0].volume
}

#[test]
fn a_closed_gate_and_a_drop_rule_drop_by_name() {
    for mut lab in labs() {
        let mut closed = session();
        closed.qers[0].gates.uplink = Gate::Closed;
        closed.fars[1].action = Action::Drop;
        lab.install(closed);
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"hello"));
        lab.data_network(7000).send_to(b"hello", (UE, 5000)).unwrap();
        lab.wait_dropped(DropReason::GateClosed, 1);
        lab.wait_dropped(DropReason::RuleDrop, 1);
    }
}

#[test]
fn downlink_is_buffered_reported_once_and_released_in_order() {
    for mut lab in labs() {
        lab.install(idle());
        let server = lab.data_network(7000);
        for n in 0..100u8 {
            server.send_to(&[n], (UE, 5000)).unwrap();
        }
        let expected =
            Event::DownlinkData { session: SessionId(1), pdr: PdrId(2), qfi: Some(Qfi(QFI)), dscp: 0 };
        assert_eq!(lab.event(), expected);
        wait_for("all held", || lab.upf.counters().buffered == 100);
        assert!(lab.no_event() && lab.gnb_hears_nothing());

        lab.install(session());
        server.send_to(&[100], (UE, 5000)).unwrap();
        let order: Vec<u8> = (0..=100).map(|_| lab.downlink().payload()[0]).collect();
        assert_eq!(order, (0..=100).collect::<Vec<_>>());
        assert_eq!(lab.upf.counters().buffered, 0);
        let volume = usage(&lab.upf);
        assert_eq!((volume.downlink_packets, volume.downlink), (101, 101 * 29));

        lab.install(idle());
        server.send_to(&[0], (UE, 5000)).unwrap();
        assert_eq!(lab.event(), expected, "told anew once the buffer was empty");
    }
}

#[test]
fn buffers_are_bounded_and_emptied_by_drop_discard_and_removal() {
    let buffer = BufferLimits { session_packets: 3, packets: 5, bytes: 10_000 };
    let config = DatapathConfig { workers: 1, buffer, ..DatapathConfig::default() };
    for mut lab in labs_with(config) {
        let server = lab.data_network(7000);
        let fill = |lab: &mut Lab, full: u64| {
            lab.install(idle());
            for _ in 0..4 {
                server.send_to(&[0; 100], (UE, 5000)).unwrap();
            }
            lab.wait_dropped(DropReason::BufferFull, full);
            assert_eq!(lab.upf.counters().buffered, 3);
        };
        fill(&mut lab, 1);
        let mut dropping = session();
        dropping.fars[1].action = Action::Drop;
        lab.install(dropping);
        lab.wait_dropped(DropReason::BufferDiscarded, 3);
        fill(&mut lab, 2);
        lab.upf.discard_buffered(SessionId(1));
        lab.wait_dropped(DropReason::BufferDiscarded, 6);
        fill(&mut lab, 3);
        lab.upf.remove(SessionId(1)).unwrap();
        lab.wait_dropped(DropReason::BufferDiscarded, 9);
        assert_eq!(lab.upf.counters().buffered, 0);
        assert!(lab.gnb_hears_nothing());
    }
}

#[test]
fn a_handover_moves_the_tunnel_and_ends_the_old_with_a_marker() {
    for mut lab in labs() {
        lab.install(session());
        let server = lab.data_network(7000);
        server.send_to(b"before", (UE, 5000)).unwrap();
        assert_eq!(lab.downlink().teid, GNB_TEID);
        let mut moved = session();
        moved.fars[1].action = Action::Forward(Destination::Tunnel(tunnel_to(GNB, 0x300)));
        lab.install(moved);
        lab.upf.send_end_marker(&tunnel_to(GNB, GNB_TEID));
        server.send_to(b"after", (UE, 5000)).unwrap();
        let (marker, _) = lab.datagram();
        assert_eq!(marker, [0x30, 254, 0, 0, 0, 0, 2, 0]);
        assert_eq!(lab.downlink().teid, 0x300);
    }
}

#[test]
fn usage_is_exact_to_the_byte_and_final_at_removal() {
    for mut lab in labs() {
        lab.install(session());
        let server = lab.data_network(7000);
        let mut expected = Volume::default();
        for size in (0..1200).step_by(7) {
            lab.uplink(TEID, &udp(UE, SERVER, 7000, &vec![1; size]));
            server.send_to(&vec![2; size], (UE, 5000)).unwrap();
            expected.add(Direction::Uplink, 1, size as u64 + 28);
            expected.add(Direction::Downlink, 1, size as u64 + 28);
        }
        wait_for("all packets", || usage(&lab.upf) == expected);
        let last = lab.upf.remove(SessionId(1)).unwrap();
        assert_eq!(last.urrs[0].volume, expected);
        assert!(last.last_packet <= last.urrs[0].first_packet);
        assert_eq!(lab.upf.usage(SessionId(1)), None);
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"too late"));
        lab.wait_dropped(DropReason::UnknownTeid, 1);
    }
}

#[test]
fn threshold_and_quota_are_reported_once_and_a_quota_stops_the_flow() {
    for mut lab in labs() {
        let mut session = session();
        session.urrs[0].threshold.uplink = Some(100);
        session.urrs[0].quota.total = Some(300);
        lab.install(session);
        let _server = lab.data_network(7000);
        for _ in 0..20 {
            lab.uplink(TEID, &udp(UE, SERVER, 7000, &[0; 22]));
        }
        lab.wait_dropped(DropReason::QuotaExhausted, 14);
        let told = |packets| {
            let volume = Volume { uplink: packets * 50, uplink_packets: packets, ..Volume::default() };
            Event::Usage { session: SessionId(1), urr: UrrId(1), volume }
        };
        let mut events = Vec::new();
        lab.upf.poll_events(&mut events);
        assert_eq!(events, [told(2), told(6)]);
        assert_eq!(usage(&lab.upf).uplink, 300);
    }
}

#[test]
fn packets_between_ues_have_a_decremented_ttl() {
    for mut lab in labs() {
        let other = "10.45.0.3".parse().unwrap();
        lab.install(session());
        lab.install(session_of(2, other, 0x101, 0x201));
        lab.uplink(TEID, &udp(UE, other, 7000, b"hello"));
        let gpdu = lab.downlink();
        assert_eq!((gpdu.teid, gpdu.payload(), gpdu.inner[8]), (0x201, &b"hello"[..], 63));
        let mut last_hop = udp(UE, other, 7000, b"hello");
        last_hop[8] = 1;
        lab.uplink(TEID, &last_hop);
        lab.wait_dropped(DropReason::TtlExceeded, 1);
    }
}

/// A session whose packets from port 7001 of the server are those of another QoS flow.
fn session_with_flow(qfi: u8, rqi: bool) -> Session {
    let mut session = session();
    let description = format!("permit out 17 from {SERVER} 7001 to assigned");
    session.pdrs.push(Pdr {
        id: PdrId(3),
        precedence: 10,
        filters: description.parse::<FlowDescription>().unwrap().filters,
        qers: vec![QerId(3)],
        ..session.pdrs[1].clone()
    });
    let gates = Gates::OPEN;
    session.qers.push(Qer { id: QerId(3), gates, mbr: None, gbr: None, qfi: Some(Qfi(qfi)), rqi });
    session
}

#[test]
fn a_filter_sends_its_flow_by_its_own_rule() {
    for mut lab in labs() {
        lab.install(session_with_flow(5, false));
        lab.data_network(7000).send_to(b"default", (UE, 5000)).unwrap();
        assert_eq!(lab.downlink().qfi, Some(QFI));
        lab.data_network(7001).send_to(b"special", (UE, 5000)).unwrap();
        assert_eq!(lab.downlink().qfi, Some(5));
    }
}

/// The RQI is set while the QER of the flow says so, in its packets only (TS 29.244 5.4.12), whatever the size.
#[test]
fn packets_of_a_reflective_flow_have_the_rqi_until_it_is_off() {
    for mut lab in labs() {
        let mut session = session_with_flow(5, true);
        for rqi in [true, false] {
            session.qers[2].rqi = rqi;
            lab.install(session.clone());
            for payload in [&b"special"[..], &[7; 1200]] {
                lab.data_network(7001).send_to(payload, (UE, 5000)).unwrap();
                let gpdu = lab.downlink();
                assert_eq!((gpdu.qfi, gpdu.rqi, gpdu.payload()), (Some(5), rqi, payload));
            }
            lab.data_network(7000).send_to(b"default", (UE, 5000)).unwrap();
            let gpdu = lab.downlink();
            assert_eq!((gpdu.qfi, gpdu.rqi), (Some(QFI), false));
        }
    }
}

#[test]
fn tunnels_are_joined_and_marked_uplink_towards_another_upf() {
    for mut lab in labs() {
        let mut session = session();
        session.ue = UeAddress::default();
        session.fars[0].action = Action::Forward(Destination::Tunnel(tunnel_to(GNB, 0x900)));
        lab.install(session);
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"hello"));
        let (bytes, _) = lab.datagram();
        assert_eq!(bytes[..16], [0x34, 255, 0, 41, 0, 0, 9, 0, 0, 0, 0, 0x85, 1, 0x10, QFI, 0]);
        assert_eq!(bytes[16..], udp(UE, SERVER, 7000, b"hello"));
    }
}

#[test]
fn trains_of_datagrams_pass_whole_both_ways() {
    for mut lab in labs() {
        lab.install(session());
        let server = lab.data_network(7000);
        let segment: libc::c_int = 100;
        // SAFETY: the option's value is a readable C int.
        #[allow(unsafe_code)]
        let set = unsafe {
            let value = (&raw const segment).cast();
            libc::setsockopt(server.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, value, 4)
        };
        assert_eq!(set, 0);
        let payload: Vec<u8> = (0..3050u32).map(|n| (n / 100) as u8).collect();
        server.send_to(&payload, (UE, 5000)).unwrap();
        let mut received = Vec::new();
        for _ in 0..31 {
            let gpdu = lab.downlink();
            assert_eq!(gpdu.inner.len(), 28 + gpdu.payload().len());
            received.extend_from_slice(gpdu.payload());
        }
        assert_eq!(received, payload);
        assert_eq!(usage(&lab.upf).downlink, 31 * 28 + 3050);

        for n in 0..50u8 {
            lab.uplink(TEID, &udp(UE, SERVER, 7000, &[n; 100]));
        }
        let order: Vec<u8> = (0..50).map(|_| receive(&server)[0]).collect();
        assert_eq!(order, (0..50).collect::<Vec<_>>());
    }
}

#[test]
fn the_system_is_left_as_it_was() {
    if !enter_namespace() {
        return;
    }
    let forwarding = || std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap();
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "0").unwrap();
    let before = (run("ip -o addr"), run("ip route show table all"), run("nft list ruleset"), forwarding());
    let config = DatapathConfig { nat: true, ..DatapathConfig::default() };
    let upf = PortableDatapath::start(config.clone()).unwrap();
    assert!(run("ip -o addr").contains("10.45.0.1/16"));
    assert!(run("ip link show pith0").contains("mtu 1400"));
    assert!(run("nft list ruleset").contains("masquerade"));
    assert_eq!(forwarding(), "1\n");

    let second = PortableDatapath::start(DatapathConfig { tun: "pith1".into(), ..config });
    assert!(matches!(second, Err(StartError::Bind { .. })), "{second:?}");
    upf.stop();
    let after = (run("ip -o addr"), run("ip route show table all"), run("nft list ruleset"), forwarding());
    assert_eq!(after, before);
}

#[test]
fn a_start_that_fails_says_what_to_do_and_leaves_nothing() {
    if !enter_namespace() {
        return;
    }
    let start = |config| PortableDatapath::start(config).unwrap_err().to_string();
    let config = DatapathConfig::default();
    let away = DatapathConfig { n3_addresses: vec!["192.0.2.1".parse().unwrap()], ..config.clone() };
    assert!(start(away).contains("must be one of this host's"));
    assert!(start(DatapathConfig { n3_addresses: vec![], ..config.clone() }).contains("N3 address"));
    let long = DatapathConfig { tun: "a-name-that-is-too-long".into(), ..config.clone() };
    assert!(start(long).contains("at most 15 bytes"));
    let tiny = DatapathConfig { mtu: 20, ..config };
    assert!(start(tiny).contains("MTU 20"));
    assert!(!run("ip link").contains("pith0"));
}
