//! Closed destinations: this host, the core's networks, gNBs, other tenants; forged sources from the data network; and GTP-U
//! from hosts that are no peers. On each path, packet by packet.

mod support;

use pith_datapath::{
    Boundary, DatapathConfig, NetworkPolicy, PathChoice, Tenant, UePool, UserPlane, XdpHook,
};
use pith_pfcp::gtpu::GTPU_PORT;
use pith_upf::contract::*;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use support::*;

/// A host on N3 that is no gNB.
const STRANGER: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 3);
/// A network of the core, routed by the server.
const CORE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 7);

fn range(text: &str) -> AddressRange {
    let (address, prefix) = text.split_once('/').unwrap();
    AddressRange { address: address.parse().unwrap(), prefix: prefix.parse().unwrap() }
}

/// With a second tenant, a network of the core, and these permits.
fn config(permits: &[&str]) -> DatapathConfig {
    let core = vec![range("198.18.0.0/15")];
    let mut boundary = Boundary { core, ..permitting(permits) };
    boundary.tenants.push(Tenant { pools: vec![range("10.46.0.0/16")], permits: vec![] });
    let pool = |second| UePool { gateway: IpAddr::from([10, second, 0, 1]), prefix: 16 };
    DatapathConfig { boundary, pools: vec![pool(45), pool(46)], workers: 2, ..DatapathConfig::default() }
}

/// The lab with a session of each tenant, and a default route by the server.
fn closed_lab(kind: Kind, config: DatapathConfig) -> Option<Lab> {
    let mut lab = lab(kind, config)?;
    run(&format!("ip route add default via {SERVER} dev n6"));
    lab.install(session());
    lab.install(session_of(2, Ipv4Addr::new(10, 46, 0, 2), TEID + 1, GNB_TEID + 1));
    Some(lab)
}

fn kinds() -> [(Kind, bool); 4] {
    [(Kind::Portable, false), (Kind::Portable, true), (Kind::Generic, false), (Kind::Native, false)]
}

#[test]
fn a_ue_reaches_neither_core_nor_host_nor_radios_nor_another_tenant() {
    for (kind, nat) in kinds() {
        let Some(lab) = closed_lab(kind, DatapathConfig { nat, ..config(&[]) }) else { return };
        let host = UdpSocket::bind(("0.0.0.0", 7777)).unwrap();
        let destinations = [
            "172.16.0.1",
            "172.16.0.2",
            "172.16.0.9",
            "172.16.0.255",
            "172.17.0.1",
            "172.17.0.255",
            "10.45.0.1",
            "10.45.255.255",
            "10.46.0.1",
            "10.46.0.2",
            "10.46.0.9",
            "198.18.0.7",
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "169.254.169.254",
            "224.0.0.1",
            "239.255.255.250",
            "255.255.255.255",
        ];
        let mut sent = 0;
        for destination in destinations {
            // Also to the ports of GTP-U and of N2 (38412), with a forged G-PDU as payload.
            for port in [7777, GTPU_PORT, 38412] {
                lab.uplink(
                    TEID,
                    &udp(UE, destination.parse().unwrap(), port, &gpdu(GNB_TEID + 1, b"forged")),
                );
                sent += 1;
            }
        }
        lab.wait_dropped(DropReason::ClosedDestination, sent);
        assert!(lab.gnb_hears_nothing());
        host.set_nonblocking(true).unwrap();
        assert!(host.recv(&mut [0; 100]).is_err());
        let server = lab.data_network(7000);
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"hello"));
        assert_eq!(receive(&server), b"hello");
        wait_for("it to be counted", || lab.upf.counters().n6_out.packets == 1);
        assert_eq!(lab.upf.counters().n3_out.packets, 0);
        assert_eq!(
            lab.upf.usage(SessionId(1)).unwrap().urrs[0].volume.uplink_packets,
            1,
            "of use is what passes"
        );
    }
}

#[test]
fn only_permitted_destinations_are_reached() {
    for (kind, nat) in kinds() {
        let permits = ["172.17.0.1 udp port 53", "198.18.0.7", "10.46.0.2 udp port 7001"];
        let Some(lab) = closed_lab(kind, DatapathConfig { nat, ..config(&permits) }) else { return };
        let dns = UdpSocket::bind((UPF_N6, 53)).unwrap();
        dns.set_read_timeout(Some(PATIENCE)).unwrap();
        lab.uplink(TEID, &udp(UE, UPF_N6, 54, b"another port"));
        lab.uplink(TEID + 1, &udp(Ipv4Addr::new(10, 46, 0, 2), UPF_N6, 53, b"another tenant"));
        lab.uplink(TEID, &udp(UE, Ipv4Addr::new(198, 18, 0, 8), 53, b"another host"));
        lab.wait_dropped(DropReason::ClosedDestination, 3);
        lab.uplink(TEID, &udp(UE, UPF_N6, 53, b"question"));
        let mut buffer = [0; 100];
        let (length, from) = dns.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..length], from.ip()), (&b"question"[..], IpAddr::V4(UE)));
        dns.send_to(b"answer", from).unwrap();
        assert_eq!(lab.downlink().payload(), b"answer");
        lab.uplink(TEID, &udp(UE, Ipv4Addr::new(10, 46, 0, 2), 7001, b"to the other tenant"));
        let gpdu = lab.downlink();
        assert_eq!((gpdu.teid, gpdu.payload()), (GNB_TEID + 1, &b"to the other tenant"[..]));
        lab.server.run(|| drop(run(&format!("ip addr add {CORE}/32 dev eth0"))));
        let core = lab.server.run(|| UdpSocket::bind((CORE, 7000)).unwrap());
        core.set_read_timeout(Some(PATIENCE)).unwrap();
        lab.uplink(TEID, &udp(UE, CORE, 7000, b"hello"));
        let (length, from) = core.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"hello");
        core.send_to(b"answer of the core", from).unwrap();
        assert_eq!(lab.downlink().payload(), b"answer of the core");
        lab.wait_dropped(DropReason::ClosedDestination, 3);
        assert_eq!(lab.upf.counters().dropped(DropReason::SpoofedSource), 0);
    }
}

/// Takes packets of all sources, as hosts with several interfaces are often set up.
fn trust_all_sources() {
    for of in ["all", "n6"] {
        std::fs::write(format!("/proc/sys/net/ipv4/conf/{of}/rp_filter"), "0").unwrap();
    }
}

/// A socket of the data network with an address that is not its own.
fn forger(lab: &Lab, source: Ipv4Addr) -> UdpSocket {
    lab.server.run(move || {
        run(&format!("ip addr replace {source}/32 dev eth0"));
        bound((source, 7000))
    })
}

const OTHER_UE: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 3);

/// UEs of this and of another tenant, unassigned addresses of both pools, a gNB, the core; the broadcast addresses of a pool and of
/// N3, which the kernel accepts as sources, unlike this host's own addresses.
const FORGED: [Ipv4Addr; 8] = [
    OTHER_UE,
    Ipv4Addr::new(10, 46, 0, 2),
    Ipv4Addr::new(10, 45, 9, 9),
    Ipv4Addr::new(10, 46, 9, 9),
    GNB,
    CORE,
    Ipv4Addr::new(10, 45, 255, 255),
    Ipv4Addr::new(172, 16, 0, 255),
];

/// Packets from N6 with each of the forged sources are dropped, and counted as such.
fn assert_forged_sources_are_dropped(lab: &Lab) {
    for (source, sent) in FORGED.into_iter().zip(1..) {
        assert!(forger(lab, source).send_to(b"forged", (UE, 7000)).is_ok());
        lab.wait_dropped(DropReason::SpoofedSource, sent);
    }
}

#[test]
fn a_host_of_the_data_network_speaks_neither_for_ues_nor_for_the_core() {
    for (kind, nat) in kinds() {
        let Some(mut lab) = closed_lab(kind, DatapathConfig { nat, ..config(&["10.46.0.0/16"]) }) else {
            return;
        };
        trust_all_sources();
        lab.install(session_of(3, OTHER_UE, TEID + 2, GNB_TEID + 2));
        let honest = u64::from(!nat);
        if nat {
            // The packet filter drops all that is unsolicited.
            for source in FORGED {
                assert!(forger(&lab, source).send_to(b"forged", (UE, 7000)).is_ok());
            }
            assert!(lab.gnb_hears_nothing());
        } else {
            assert_forged_sources_are_dropped(&lab);
            assert!(lab.gnb_hears_nothing());
            lab.data_network(7001).send_to(b"honest", (UE, 7000)).unwrap();
            assert_eq!(lab.downlink().payload(), b"honest");
        }
        lab.uplink(TEID + 2, &udp(OTHER_UE, UE, 7000, b"of the other UE"));
        assert_eq!(lab.downlink().payload(), b"of the other UE");
        assert_eq!(lab.upf.usage(SessionId(1)).unwrap().urrs[0].volume.downlink_packets, honest + 1);
    }
}

/// This host would answer to the UE, by ICMP if no socket receives the packet.
#[test]
fn a_host_of_the_data_network_does_not_speak_for_a_ue_to_this_host() {
    for (kind, nat) in kinds() {
        let Some(lab) = closed_lab(kind, DatapathConfig { nat, ..config(&[]) }) else { return };
        trust_all_sources();
        let host = UdpSocket::bind(("0.0.0.0", 7777)).unwrap();
        for port in [7777, 7778] {
            assert!(forger(&lab, UE).send_to(b"forged", (UPF_N6, port)).is_ok());
        }
        assert!(lab.gnb_hears_nothing());
        host.set_nonblocking(true).unwrap();
        assert!(host.recv(&mut [0; 100]).is_err());
        // This host itself has an address of the pool.
        host.set_nonblocking(false).unwrap();
        host.set_read_timeout(Some(PATIENCE)).unwrap();
        UdpSocket::bind((GATEWAY, 7779)).unwrap().send_to(b"own", (GATEWAY, 7777)).unwrap();
        assert_eq!(receive(&host), b"own");
    }
}

/// The data network's hosts are no gNBs, whatever their source address: neither a G-PDU nor an Error Indication of theirs is taken.
#[test]
fn the_data_network_does_not_speak_gtpu() {
    let named = || vec!["n3".to_owned(), "n6".to_owned()];
    for (interfaces, path) in
        [(vec![], PathChoice::Portable), (named(), PathChoice::Portable), (vec![], PathChoice::Auto)]
    {
        if !enter_namespace() {
            return;
        }
        let (radio, data) =
            (wire("n3", UPF, GNB, Kind::Portable), wire("n6", UPF_N6, SERVER, Kind::Portable));
        trust_all_sources();
        run(&format!("ip route add default via {SERVER}"));
        let config = DatapathConfig {
            n3_addresses: vec![UPF.into()],
            workers: 1,
            path,
            interfaces,
            // Also on interfaces that are no network cards.
            xdp_hook: XdpHook::Generic,
            ..DatapathConfig::default()
        };
        let mut upf = UserPlane::start(config).unwrap();
        assert_eq!(matches!(upf, UserPlane::Xdp(_)), path == PathChoice::Auto);
        upf.install(Arc::new(session_of(1, UE, TEID, GNB_TEID)));
        let receiver = data.run(|| UdpSocket::bind((SERVER, 7000)).unwrap());
        receiver.set_read_timeout(Some(PATIENCE)).unwrap();
        let message = gpdu(TEID, &udp(UE, SERVER, 7000, b"of a gNB"));
        let forged = gpdu(TEID, &udp(UE, SERVER, 7000, b"forged"));
        data.run(move || {
            run(&format!("ip addr add {GNB}/32 dev eth0"));
            run(&format!("ip route add {UPF} via {UPF_N6}"));
            UdpSocket::bind((GNB, GTPU_PORT)).unwrap().send_to(&forged, (UPF, GTPU_PORT)).unwrap();
        });
        std::thread::sleep(Duration::from_millis(50));
        radio.run(move || {
            UdpSocket::bind((GNB, GTPU_PORT)).unwrap().send_to(&message, (UPF, GTPU_PORT)).unwrap()
        });
        let mut first = [0; 32];
        let length = receiver.recv(&mut first).unwrap();
        assert_eq!(&first[..length], b"of a gNB");
        assert_eq!(upf.counters().n3_in.packets, 1);
    }
}

/// A host that names itself as the SMF would end all sessions.
#[test]
fn the_data_network_does_not_speak_pfcp() {
    const PFCP: u16 = 8805;
    if !enter_namespace() {
        return;
    }
    let (smf, data) = (wire("n3", UPF, GNB, Kind::Portable), wire("n6", UPF_N6, SERVER, Kind::Portable));
    trust_all_sources();
    let config = DatapathConfig {
        n3_addresses: vec![UPF.into()],
        n4_address: Some((UPF, PFCP).into()),
        workers: 1,
        path: PathChoice::Portable,
        ..DatapathConfig::default()
    };
    let upf = UserPlane::start(config).unwrap();
    let n4 = UdpSocket::bind((UPF, PFCP)).unwrap();
    n4.set_read_timeout(Some(PATIENCE)).unwrap();
    data.run(|| {
        run(&format!("ip addr add {GNB}/32 dev eth0"));
        run(&format!("ip route add {UPF} via {UPF_N6}"));
        UdpSocket::bind((GNB, PFCP)).unwrap().send_to(b"forged", (UPF, PFCP)).unwrap();
    });
    std::thread::sleep(Duration::from_millis(50));
    smf.run(|| UdpSocket::bind((GNB, PFCP)).unwrap().send_to(b"of the SMF", (UPF, PFCP)).unwrap());
    assert_eq!(receive(&n4), b"of the SMF");
    UdpSocket::bind((UPF, PFCP + 1)).unwrap().send_to(b"of this host", (UPF, PFCP)).unwrap();
    assert_eq!(receive(&n4), b"of this host");
    drop(upf);
}

/// With a firewall packets between UEs pass the kernel, and come to the UPF as those from outside do.
#[test]
fn between_ues_by_the_kernel_no_host_of_the_data_network_takes_part() {
    let pool = UePool { gateway: GATEWAY.into(), prefix: 16 };
    let firewall = vec!["deny down tcp".parse().unwrap()];
    let policies = vec![NetworkPolicy { firewall, ..NetworkPolicy::none(pool) }];
    let Some(mut lab) = closed_lab(Kind::Portable, DatapathConfig { policies, ..config(&[]) }) else {
        return;
    };
    trust_all_sources();
    lab.install(session_of(3, OTHER_UE, TEID + 2, GNB_TEID + 2));
    assert_forged_sources_are_dropped(&lab);
    lab.uplink(TEID + 2, &udp(OTHER_UE, UE, 7000, b"of the other UE"));
    assert_eq!(lab.downlink().payload(), b"of the other UE");
    lab.data_network(7001).send_to(b"honest", (UE, 7000)).unwrap();
    assert_eq!(lab.downlink().payload(), b"honest");
}

/// An echo request with its checksum, or another message of ICMP.
fn icmp(destination: Ipv4Addr, kind: u8) -> Vec<u8> {
    let mut packet = udp(UE, destination, 0, b"ping");
    packet[9] = 1;
    let mut message = [&[kind, 0, 0, 0, 0, 7, 0, 1][..], b"ping"].concat();
    let sum: u32 = message.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    message[2..4].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    packet.truncate(20);
    packet[10..12].fill(0);
    let sum: u32 = packet.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    [packet, message].concat()
}

#[test]
fn a_ue_may_ping_its_own_gateway_and_no_other_address_of_the_host() {
    for (kind, nat) in kinds() {
        let Some(lab) = closed_lab(kind, DatapathConfig { nat, ..config(&[]) }) else { return };
        lab.uplink(TEID, &icmp(GATEWAY, 8));
        let reply = lab.downlink().inner;
        assert_eq!((reply[9], reply[20], &reply[12..16]), (1, 0, &GATEWAY.octets()[..]));
        lab.uplink(TEID, &icmp(UPF_N6, 8));
        lab.uplink(TEID, &icmp(Ipv4Addr::new(10, 46, 0, 1), 8));
        lab.uplink(TEID, &icmp(GATEWAY, 13));
        lab.wait_dropped(DropReason::ClosedDestination, 3);
    }
}

#[test]
fn addresses_that_the_host_gets_later_are_closed_too() {
    for (kind, nat) in kinds() {
        let Some(lab) = closed_lab(kind, DatapathConfig { nat, ..config(&[]) }) else { return };
        let later = Ipv4Addr::new(192, 0, 2, 77);
        let mut dropped = 0;
        let mut is_closed = || {
            lab.uplink(TEID, &udp(UE, later, 7000, b"x"));
            std::thread::sleep(Duration::from_millis(10));
            let before =
                std::mem::replace(&mut dropped, lab.upf.counters().dropped(DropReason::ClosedDestination));
            dropped > before
        };
        assert!(!is_closed());
        run(&format!("ip addr add {later}/32 dev n6"));
        wait_for("the new address to be closed", &mut is_closed);
        run(&format!("ip addr del {later}/32 dev n6"));
        wait_for("the address to be open again", || !is_closed());
    }
}

/// What the kernel reaches by N3's interface is the core's, not only N3's own network.
#[test]
fn networks_behind_n3s_interface_are_closed() {
    for (kind, nat) in kinds() {
        let Some(lab) = closed_lab(kind, DatapathConfig { nat, ..config(&[]) }) else { return };
        let elsewhere = Ipv4Addr::new(203, 0, 113, 200);
        lab.server.run(move || drop(run(&format!("ip addr add {elsewhere}/32 dev eth0"))));
        let server = lab.server.run(move || UdpSocket::bind((elsewhere, 7000)).unwrap());
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        run("ip addr add 172.18.0.1/24 dev n3");
        run(&format!("ip route add 203.0.113.0/24 via {GNB} dev n3"));
        run(&format!("ip route add 203.0.113.128/25 via {SERVER} dev n6"));
        // The program looks routes up again after 100 ms.
        std::thread::sleep(Duration::from_millis(300));
        for (destination, sent) in ["172.18.0.9", "203.0.113.7", "203.0.113.127"].into_iter().zip(1..) {
            lab.uplink(TEID, &udp(UE, destination.parse().unwrap(), 7000, b"x"));
            lab.wait_dropped(DropReason::ClosedDestination, sent);
        }
        lab.uplink(TEID, &udp(UE, elsewhere, 7000, b"hello"));
        assert_eq!(receive(&server), b"hello");
        run(&format!("ip route replace 203.0.113.0/24 via {SERVER} dev n6"));
        std::thread::sleep(Duration::from_millis(300));
        lab.uplink(TEID, &udp(UE, Ipv4Addr::new(203, 0, 113, 7), 7000, b"x"));
        lab.uplink(TEID, &udp(UE, elsewhere, 7000, b"again"));
        assert_eq!(receive(&server), b"again");
        assert_eq!(lab.upf.counters().dropped(DropReason::ClosedDestination), 3);
    }
}

/// A DNAT rule of the host redirects packets after the UPF's check: the kernel's packet filter checks again.
#[test]
fn the_kernel_lets_no_packet_with_another_destination_through_either() {
    for nat in [false, true] {
        let Some(lab) = closed_lab(Kind::Portable, DatapathConfig { nat, ..config(&[]) }) else { return };
        let (to_radio, to_host) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        run("nft add table ip others");
        run("nft add chain ip others prerouting { type nat hook prerouting priority -100 ; }");
        run(&format!("nft add rule ip others prerouting ip daddr {to_radio} dnat to {GNB}"));
        run(&format!("nft add rule ip others prerouting ip daddr {to_host} redirect"));
        // The UPF notices the rules, and leaves packets to the kernel.
        std::thread::sleep(Duration::from_millis(500));
        let host = UdpSocket::bind(("0.0.0.0", GTPU_PORT + 1)).unwrap();
        lab.uplink(TEID, &udp(UE, to_radio, GTPU_PORT, &gpdu(GNB_TEID + 1, b"forged")));
        lab.uplink(TEID, &udp(UE, to_host, GTPU_PORT + 1, b"to the host"));
        wait_for("both to leave", || lab.upf.counters().n6_out.packets == 2);
        assert!(lab.gnb_hears_nothing());
        host.set_nonblocking(true).unwrap();
        assert!(host.recv(&mut [0; 100]).is_err());
    }
}

/// A gNB chooses the address of its tunnels: were all of it closed, it could close any host to UEs.
#[test]
fn a_gnb_behind_a_router_is_closed_to_gtpu_only() {
    for (kind, nat) in kinds() {
        let Some(mut lab) = closed_lab(kind, DatapathConfig { nat, ..config(&[]) }) else { return };
        let radio = Ipv4Addr::new(10, 99, 0, 5);
        let [gtpu, other] = lab.server.run(move || {
            run(&format!("ip addr add {radio}/32 dev eth0"));
            [GTPU_PORT, 7000].map(|port| UdpSocket::bind((radio, port)).unwrap())
        });
        [&gtpu, &other].iter().for_each(|socket| socket.set_read_timeout(Some(PATIENCE)).unwrap());
        lab.uplink(TEID, &udp(UE, radio, GTPU_PORT, b"no radio yet"));
        assert_eq!(receive(&gtpu), b"no radio yet");
        let mut second = session_of(2, Ipv4Addr::new(10, 46, 0, 2), TEID + 1, GNB_TEID + 1);
        second.fars[1].action = Action::Forward(Destination::Tunnel(tunnel_to(radio, 9)));
        lab.install(second);
        // The program refreshes routes and closed destinations every 100 ms.
        std::thread::sleep(Duration::from_millis(150));
        lab.uplink(TEID, &udp(UE, radio, GTPU_PORT, b"forged"));
        lab.wait_dropped(DropReason::ClosedDestination, 1);
        lab.uplink(TEID, &udp(UE, radio, 7000, b"hello"));
        assert_eq!(receive(&other), b"hello");
        if kind != Kind::Portable {
            continue;
        }
        // The packet filter finds a destination that a rule of the host has changed.
        run("nft add table ip others");
        run("nft add chain ip others prerouting { type nat hook prerouting priority -100 ; }");
        run(&format!("nft add rule ip others prerouting ip daddr 192.0.2.1 dnat to {radio}"));
        // The UPF notices the rule, and leaves packets to the kernel.
        std::thread::sleep(Duration::from_millis(500));
        let redirected = Ipv4Addr::new(192, 0, 2, 1);
        lab.uplink(TEID, &udp(UE, redirected, GTPU_PORT, b"forged"));
        lab.uplink(TEID, &udp(UE, redirected, 7000, b"hello"));
        assert_eq!(receive(&other), b"hello");
        gtpu.set_nonblocking(true).unwrap();
        assert!(gtpu.recv(&mut [0; 100]).is_err());
    }
}

#[test]
fn fragments_options_and_nested_packets_do_not_bypass_the_check() {
    for (kind, nat) in kinds() {
        let Some(lab) = closed_lab(kind, DatapathConfig { nat, ..config(&["172.17.0.1 udp port 53"]) })
        else {
            return;
        };
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut packet = udp(UE, UPF_N6, 53, b"0123456789abcdef");
            change(&mut packet);
            packet[10..12].fill(0);
            let header = usize::from(packet[0] & 15) * 4;
            let sum: u32 =
                packet[..header].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
            let sum = (sum & 0xffff) + (sum >> 16);
            packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
            packet
        };
        let packets = [
            // A later fragment, which has no port to match a permit.
            with(&|packet| packet[6..8].copy_from_slice(&[0, 9])),
            // IP in IP, GRE, SCTP.
            with(&|packet| packet[9] = 4),
            with(&|packet| packet[9] = 47),
            with(&|packet| packet[9] = 132),
            // Options before another port.
            with(&|packet| {
                packet[0] = 0x46;
                packet[3] += 4;
                drop(packet.splice(20..20, [1; 4]));
                packet[27] = 54;
            }),
        ];
        let sent = packets.len() as u64;
        packets.iter().for_each(|packet| lab.uplink(TEID, packet));
        lab.wait_dropped(DropReason::ClosedDestination, sent);
    }
}

#[test]
fn ues_of_one_tenant_reach_each_other() {
    for (kind, nat) in kinds() {
        let Some(mut lab) = closed_lab(kind, DatapathConfig { nat, ..config(&[]) }) else { return };
        let other = Ipv4Addr::new(10, 45, 0, 3);
        lab.install(session_of(3, other, TEID + 2, GNB_TEID + 2));
        lab.uplink(TEID, &udp(UE, other, 7000, b"hello"));
        let gpdu = lab.downlink();
        assert_eq!((gpdu.teid, gpdu.payload()), (GNB_TEID + 2, &b"hello"[..]));
        // A network behind another tenant's UE belongs to that tenant.
        let mut framed = session_of(2, Ipv4Addr::new(10, 46, 0, 2), TEID + 1, GNB_TEID + 1);
        framed.framed_routes = vec![range("192.168.7.0/24")];
        lab.install(framed);
        lab.uplink(TEID, &udp(UE, Ipv4Addr::new(192, 168, 7, 7), 7000, b"no"));
        lab.wait_dropped(DropReason::ClosedDestination, 1);
    }
}

/// A socket of a host that is no gNB.
fn stranger(lab: &Lab) -> UdpSocket {
    let socket = lab.radio.run(|| {
        run(&format!("ip addr add {STRANGER}/24 dev eth0"));
        bound((STRANGER, GTPU_PORT))
    });
    run(&format!("ip neigh replace {STRANGER} lladdr 02:00:00:00:00:02 dev n3 nud permanent"));
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

#[test]
fn an_unknown_host_on_n3_is_answered_echoes_only() {
    for mut lab in labs() {
        lab.install(session());
        let (stranger, server) = (stranger(&lab), lab.data_network(7000));
        let send = |message: &[u8]| assert!(stranger.send_to(message, (UPF, GTPU_PORT)).is_ok());
        send(&[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 7, 0, 0]);
        assert_eq!(receive(&stranger)[1], 2, "an Echo Response (TS 29.281 7.2.2)");
        // A user packet, an End Marker, a forged Error Indication, a Tunnel Status, an unknown message.
        send(&gpdu(TEID, &udp(UE, SERVER, 7000, b"forged")));
        send(&[&[0x30, 254, 0, 0][..], &TEID.to_be_bytes()].concat());
        let teid = GNB_TEID.to_be_bytes();
        send(
            &[&[0x32, 26, 0, 16, 0, 0, 0, 0, 0, 1, 0, 0, 16][..], &teid, &[133, 0, 4, 172, 16, 0, 2]]
                .concat(),
        );
        send(&[0x30, 253, 0, 0, 0, 0, 0, 0]);
        send(&[0x30, 77, 0, 0, 0, 0, 0, 0]);
        lab.wait_dropped(DropReason::UnknownPeer, 5);
        assert_eq!(lab.event(), Event::UnknownPeer { source: STRANGER.into(), peer: GNB.into() });
        send(&gpdu(TEID, &udp(UE, SERVER, 7000, b"forged")));
        lab.wait_dropped(DropReason::UnknownPeer, 6);
        assert!(lab.no_event(), "reported once: {:?}", lab.upf.counters());
        // An unknown TEID is answered by an Error Indication (TS 29.281 7.3.1), also to unknown hosts: a
        // restarted UPF knows no gNB.
        send(&gpdu(0x7777_7777, &udp(UE, SERVER, 7000, b"x")));
        assert_eq!(receive(&stranger)[1], 26);
        // The gNB itself is still served.
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"honest"));
        assert_eq!(receive(&server), b"honest");
        assert_eq!(lab.upf.usage(SessionId(1)).unwrap().urrs[0].volume.uplink_packets, 1);
    }
}

#[test]
fn a_flood_of_an_unknown_host_takes_no_answers_from_peers() {
    let Some(mut lab) = lab(Kind::Portable, DatapathConfig { workers: 1, ..DatapathConfig::default() })
    else {
        return;
    };
    lab.install(session());
    let stranger = stranger(&lab);
    let echo = [0x32, 1, 0, 4, 0, 0, 0, 0, 0, 7, 0, 0];
    for _ in 0..2000 {
        stranger.send_to(&echo, (UPF, GTPU_PORT)).unwrap();
    }
    lab.gnb.send_to(&echo, (UPF, GTPU_PORT)).unwrap();
    assert_eq!(lab.datagram().0[1], 2, "the radio is answered");
    stranger.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let answers = (0..).take_while(|_| stranger.recv(&mut [0; 100]).is_ok()).count();
    assert!((1..=200).contains(&answers), "{answers} within two seconds at most, 50 in each");
}

#[test]
fn uplink_is_accepted_before_the_gnbs_tunnel_is_known() {
    for mut lab in labs() {
        let mut idle = idle();
        idle.fars[1].action = Action::Buffer { notify: false, packets: None };
        lab.install(idle);
        let (stranger, server) = (stranger(&lab), lab.data_network(7000));
        stranger.send_to(&gpdu(TEID, &udp(UE, SERVER, 7000, b"early")), (UPF, GTPU_PORT)).unwrap();
        assert_eq!(receive(&server), b"early");
    }
}

#[test]
fn with_configured_radios_early_uplink_of_others_is_dropped() {
    let boundary = Boundary { radios: vec![range("172.16.0.2/32")], ..Boundary::default() };
    for mut lab in labs_with(DatapathConfig { boundary, workers: 2, ..DatapathConfig::default() }) {
        let mut idle = idle();
        idle.fars[1].action = Action::Buffer { notify: false, packets: None };
        lab.install(idle);
        let (stranger, server) = (stranger(&lab), lab.data_network(7000));
        stranger.send_to(&gpdu(TEID, &udp(UE, SERVER, 7000, b"early")), (UPF, GTPU_PORT)).unwrap();
        lab.wait_dropped(DropReason::UnknownPeer, 1);
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"of the radio"));
        assert_eq!(receive(&server), b"of the radio");
    }
}

#[test]
fn gtpu_is_accepted_from_configured_radios() {
    let radios = vec![range("172.16.0.3/32")];
    let boundary = Boundary { radios, ..Boundary::default() };
    for mut lab in labs_with(DatapathConfig { boundary, workers: 2, ..DatapathConfig::default() }) {
        lab.install(session());
        let (stranger, server) = (stranger(&lab), lab.data_network(7000));
        stranger.send_to(&gpdu(TEID, &udp(UE, SERVER, 7000, b"known")), (UPF, GTPU_PORT)).unwrap();
        assert_eq!(receive(&server), b"known");
    }
}

#[test]
fn nothing_is_left_of_chains_and_the_host_itself_is_not_closed() {
    let Some(lab) = closed_lab(Kind::Portable, config(&[])) else { return };
    let table = run("nft list table ip pith_pith0");
    assert!(table.contains("chain closed_input") && table.contains("chain closed_forward"), "{table}");
    // Hosts other than UEs still reach this host.
    let (host, server) = (UdpSocket::bind((UPF_N6, 7777)).unwrap(), lab.data_network(7778));
    host.set_read_timeout(Some(PATIENCE)).unwrap();
    server.send_to(b"hello", (UPF_N6, 7777)).unwrap();
    assert_eq!(receive(&host), b"hello");
    lab.upf.stop();
    assert_eq!(run("nft list tables"), "");
}
