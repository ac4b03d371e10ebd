//! N6 policies of a data network: firewall, port blocks, routes and MSS, packet by packet, and complete
//! removal.

#![allow(unsafe_code)]

mod support;

use pith_datapath::{DatapathConfig, NetworkPolicy, PortBlocks, StartError, UePool, UserPlane};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use support::*;

const OTHER_UE: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 3);

fn pool(prefix: u8) -> UePool {
    UePool { gateway: IpAddr::V4(GATEWAY), prefix }
}

/// A lab whose only network has that policy.
fn lab_with(kind: Kind, prefix: u8, policy: impl FnOnce(NetworkPolicy) -> NetworkPolicy) -> Option<Lab> {
    let policies = vec![policy(NetworkPolicy::none(pool(prefix)))];
    let more = UePool { gateway: IpAddr::from([10, 99, 0, 1]), prefix: 24 };
    let pools = vec![pool(prefix), more];
    lab(kind, DatapathConfig { pools, policies, workers: 1, ..DatapathConfig::default() })
}

fn firewalled(kind: Kind, rules: &[&str]) -> Option<Lab> {
    let firewall = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    lab_with(kind, 16, |policy| NetworkPolicy { firewall, ..policy })
}

/// Whether a socket receives nothing for some time.
fn hears_nothing(socket: &UdpSocket) -> bool {
    socket.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
    let nothing = socket.recv_from(&mut [0; 2048]).is_err();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    nothing
}

/// Sends from the UE's port 5000.
fn up(lab: &Lab, port: u16, payload: &[u8]) {
    lab.uplink(TEID, &udp(UE, SERVER, port, payload));
}

#[test]
fn a_firewall_drops_what_it_denies_and_passes_answers() {
    for kind in [Kind::Portable, Kind::Generic] {
        let rules =
            ["deny up udp to 172.17.0.0/24 port 7001-7009", "allow down udp to 10.45.0.3", "deny down"];
        let Some(mut lab) = firewalled(kind, &rules) else { return };
        lab.install(session());
        let (open, closed) = (lab.data_network(7000), lab.data_network(7001));
        open.send_to(b"unasked", (UE, 5000)).unwrap();
        assert!(lab.gnb_hears_nothing());
        up(&lab, 7001, b"denied");
        up(&lab, 7000, b"asked");
        assert_eq!(receive(&open), b"asked");
        open.send_to(b"answer", (UE, 5000)).unwrap();
        assert_eq!(lab.downlink().payload(), b"answer");
        assert!(hears_nothing(&closed));
        lab.install(session_of(2, OTHER_UE, TEID + 1, GNB_TEID + 1));
        closed.send_to(b"allowed", (OTHER_UE, 5000)).unwrap();
        assert_eq!((lab.downlink().payload(), lab.tun_packets()), (&b"allowed"[..], 4));
    }
}

#[test]
fn the_firewall_applies_between_ues() {
    let Some(mut lab) = firewalled(Kind::Portable, &["deny down udp from 10.45.0.2 port 7001"]) else {
        return;
    };
    lab.install(session());
    lab.install(session_of(2, OTHER_UE, TEID + 1, GNB_TEID + 1));
    lab.uplink(TEID, &udp(UE, OTHER_UE, 7001, b"denied"));
    lab.uplink(TEID, &udp(UE, OTHER_UE, 7000, b"hello"));
    let gpdu = lab.downlink();
    assert_eq!((gpdu.teid, gpdu.payload()), (GNB_TEID + 1, &b"hello"[..]));
    assert!(lab.gnb_hears_nothing(), "neither the packet that is denied nor a redirect");
}

#[test]
fn each_ue_has_a_public_address_and_ports_of_its_own() {
    let addresses = vec![Ipv4Addr::new(172, 17, 0, 50), Ipv4Addr::new(172, 17, 0, 51)];
    let blocks = PortBlocks { addresses, ports: 8000 };
    let port_blocks = Some(blocks.clone());
    let Some(mut lab) = lab_with(Kind::Portable, 28, |policy| NetworkPolicy { port_blocks, ..policy }) else {
        return;
    };
    lab.server.run(|| drop(run(&format!("ip route replace 172.17.0.48/29 via {UPF_N6}"))));
    lab.server.run(|| drop(run("ip route del 10.45.0.0/16")));
    let server = lab.data_network(7000);
    for (number, last) in [(1u64, 2u8), (2, 11)] {
        let ue = Ipv4Addr::new(10, 45, 0, last);
        let teid = TEID + number as u32;
        lab.install(session_of(number, ue, teid, GNB_TEID + number as u32));
        lab.uplink(teid, &udp(ue, SERVER, 7000, b"ping"));
        let (length, from) = server.recv_from(&mut [0; 100]).unwrap();
        let block = blocks.of(pool(28), ue).unwrap();
        assert_eq!((length, from.ip()), (4, IpAddr::V4(block.address)));
        assert!((block.first..=block.last).contains(&from.port()), "{from} of {block}");
        server.send_to(b"pong", from).unwrap();
        assert_eq!(lab.downlink().payload(), b"pong");
    }
}

#[test]
fn a_network_with_fewer_blocks_than_ues_does_not_start() {
    if !enter_namespace() {
        return;
    }
    let port_blocks = Some(PortBlocks { addresses: vec![UPF_N6], ports: 512 });
    let policies = vec![NetworkPolicy { port_blocks, ..NetworkPolicy::none(pool(16)) }];
    let config = DatapathConfig { policies, ..DatapathConfig::default() };
    let error = UserPlane::start(config).unwrap_err();
    assert!(matches!(error, StartError::PortBlocks { blocks: 126, .. }), "{error}");
}

/// A SYN of the UE with an MSS of 1460.
fn syn() -> Vec<u8> {
    let mut tcp =
        [5000u16, 7000, 0, 1, 0, 0, 0x6002, 65_535, 0, 0, 0x0204, 1460].map(u16::to_be_bytes).concat();
    let pseudo = [&UE.octets()[..], &SERVER.octets(), &[0, 6, 0, 24], &tcp].concat();
    let sum: u32 = pseudo.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    tcp[16..18].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    let mut packet = udp(UE, SERVER, 7000, &tcp[8..]);
    packet[9] = 6;
    packet[20..].copy_from_slice(&tcp);
    let sum: u32 = (0..10)
        .filter(|word| *word != 5)
        .map(|word| u32::from(u16::from_be_bytes([packet[2 * word], packet[2 * word + 1]])))
        .sum();
    packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    packet
}

#[test]
fn tcp_mss_is_limited_to_the_networks() {
    let Some(mut lab) = lab_with(Kind::Portable, 16, |policy| NetworkPolicy { mss: Some(1300), ..policy })
    else {
        return;
    };
    lab.install(session());
    let raw = lab.server.run(raw_tcp);
    lab.uplink(TEID, &syn());
    let packet = receive(&raw);
    let header = usize::from(packet[0] & 15) * 4;
    assert_eq!(packet[header + 20..header + 24], [2, 4, 0x05, 0x14], "MSS 1300");
}

/// A socket that receives all TCP of a host.
fn raw_tcp() -> UdpSocket {
    use std::os::fd::FromRawFd;
    // SAFETY: takes no pointers; the descriptor is new and has no other owner.
    let socket = unsafe {
        let descriptor = libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_TCP);
        assert!(descriptor >= 0);
        UdpSocket::from_raw_fd(descriptor)
    };
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

#[test]
fn a_networks_routes_are_for_its_packets_only_and_go_with_the_upf() {
    let beyond = Ipv4Addr::new(198, 51, 100, 1);
    let routes = vec![format!("198.51.100.0/24 via {SERVER}").parse().unwrap()];
    let Some(mut lab) = lab_with(Kind::Portable, 16, |policy| NetworkPolicy { routes, ..policy }) else {
        return;
    };
    lab.install(session());
    lab.server.run(move || drop(run(&format!("ip addr add {beyond}/32 dev eth0"))));
    let server = lab.server.run(move || UdpSocket::bind((beyond, 7000)).unwrap());
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    lab.uplink(TEID, &udp(UE, beyond, 7000, b"hello"));
    assert_eq!(receive(&server), b"hello");
    let own = UdpSocket::bind((UPF_N6, 0)).unwrap();
    assert!(own.send_to(b"x", (beyond, 7000)).is_err(), "the host itself has no such route");
    lab.upf.stop();
    assert!(!run("ip rule").contains("20000:"));
    assert!(!run("ip route show table all").contains("198.51.100"));
}

#[test]
fn nothing_is_left_of_tables_and_rules() {
    let Some(lab) = firewalled(Kind::Portable, &["deny down"]) else { return };
    assert!(run("nft list tables").contains("table inet pith_pith0"));
    lab.upf.stop();
    assert_eq!(run("nft list tables"), "");
}

/// The network's routes, and the UPF that installed them.
fn routed() -> (DatapathConfig, Option<Lab>) {
    let routes = vec![format!("198.51.100.0/24 via {SERVER}").parse().unwrap()];
    let policies = vec![NetworkPolicy { routes, ..NetworkPolicy::none(pool(16)) }];
    let config = DatapathConfig { policies, workers: 1, ..DatapathConfig::default() };
    (config.clone(), lab(Kind::Portable, config))
}

#[test]
fn routes_of_a_killed_process_are_replaced() {
    let (config, Some(lab)) = routed() else { return };
    let rules = run("ip rule");
    let table = rules.lines().find_map(|rule| rule.strip_prefix("20000:")?.split("lookup ").nth(1)).unwrap();
    let table = table.split(' ').next().unwrap();
    lab.upf.stop();
    // The state after `kill -9`: routes by an interface other than TUN, and the rule.
    for route in ["198.51.100.0/24", "203.0.113.0/24"] {
        run(&format!("ip route add {route} via {SERVER} table {table} proto 197"));
    }
    run(&format!("ip route add 192.0.2.0/24 via {SERVER} table {table} proto static"));
    run(&format!("ip rule add pref 20000 from 10.45.0.0/16 iif pith0 lookup {table} protocol 197"));
    let upf = UserPlane::start(DatapathConfig { n3_addresses: vec![UPF.into()], ..config }).unwrap();
    let routes = run(&format!("ip route show table {table}"));
    assert!(routes.contains("198.51.100.0/24") && !routes.contains("203.0.113.0/24"), "{routes}");
    upf.stop();
    assert!(!run("ip rule").contains("pith0"));
    let left = run("ip route show table all");
    assert!(!left.contains("198.51.100.0/24") && left.contains("192.0.2.0/24"), "another's stays: {left}");
}

#[test]
fn leftovers_of_a_killed_process_are_not_applied() {
    if !enter_namespace() {
        return;
    }
    for table in ["ip pith_pith0", "ip6 pith_pith0", "inet pith_pith0", "inet pith_pith1", "ip others"] {
        run(&format!("nft add table {table}"));
    }
    let rules = [
        "from 10.45.0.0/16 iif pith0 lookup 7777 protocol 197",
        "from 10.46.0.0/24 iif pith0 lookup 7778 protocol 197",
        "from 10.47.0.0/24 iif pith0 lookup 7779 protocol static",
        "from 10.45.0.0/16 iif pith1 lookup 7780 protocol 197",
    ];
    for rule in rules {
        run(&format!("ip rule add {rule}"));
    }
    run("ip -6 rule add from 2001:db8::/48 iif pith0 lookup 7777 protocol 197");
    let upf = UserPlane::start(DatapathConfig { workers: 1, ..DatapathConfig::default() }).unwrap();
    assert_eq!(
        run("nft list tables"),
        "table inet pith_pith1\ntable ip others\ntable ip pith_pith0\ntable ip6 pith_pith0\n"
    );
    assert!(!run("nft list table ip pith_pith0").contains("type filter hook output"), "its own alone");
    let left = run("ip rule") + &run("ip -6 rule");
    assert!(!left.contains("lookup 7777") && !left.contains("lookup 7778"), "{left}");
    assert!(left.contains("lookup 7779") && left.contains("lookup 7780"), "others' stay: {left}");
    upf.stop();
}
