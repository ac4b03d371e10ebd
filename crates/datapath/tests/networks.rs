//! IPv6 inside and outside tunnels, and NAT towards another host.

mod support;

use pith_datapath::{DatapathConfig, PortableDatapath, UePool};
use pith_pfcp::gtpu::{GTPU_PORT, Packet};
use pith_upf::contract::*;
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::sync::Arc;
use support::*;

const UE_PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 45, 2, 0, 0, 0, 0);
const UE_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 45, 2, 0, 0, 0, 0x77);
const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 45, 0, 0, 0, 0, 1);
const N6_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 46, 0, 0, 0, 0, 1);
const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 46, 0, 0, 0, 0, 2);

/// A UDP packet over IPv6, with its checksum.
fn udp_v6(source: Ipv6Addr, port: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let mut udp = [5000u16, port, length, 0].map(u16::to_be_bytes).concat();
    udp.extend(payload);
    let pseudo = [&source.octets()[..], &SERVER_V6.octets(), &[0, 17], &length.to_be_bytes(), &udp].concat();
    let words = pseudo.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], *w.get(1).unwrap_or(&0)])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    udp[6..8].copy_from_slice(&(!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes());
    let head = [0x60, 0, 0, 0, (length >> 8) as u8, length as u8, 17, 64];
    [&head[..], &source.octets(), &SERVER_V6.octets(), &udp].concat()
}

#[test]
fn ipv6_passes_both_ways_within_the_ues_prefix() {
    let pools = vec![
        UePool { gateway: IpAddr::V4(GATEWAY), prefix: 16 },
        UePool { gateway: IpAddr::V6(GATEWAY_V6), prefix: 48 },
    ];
    let config = DatapathConfig { pools, workers: 2, ..DatapathConfig::default() };
    for mut lab in labs_with(config) {
        lab.server.run(|| {
            add_v6(SERVER_V6, 64, "eth0");
            run(&format!("ip route add 2001:db8:2d::/48 via {N6_V6}"));
        });
        add_v6(N6_V6, 64, "n6");
        run(&format!("ip neigh replace {SERVER_V6} lladdr 02:00:00:00:00:02 dev n6 nud permanent"));
        let mut session = session();
        session.ue.v6 = Some(UE_PREFIX);
        lab.install(session);
        let advertisement = lab.downlink().inner;
        assert_eq!((advertisement[6], advertisement[40]), (58, 134), "a Router Advertisement");
        let server = lab.server.run(|| UdpSocket::bind((SERVER_V6, 7000)).unwrap());
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        lab.uplink(TEID, &udp_v6(SERVER_V6, 7000, b"spoofed"));
        lab.uplink(TEID, &udp_v6(UE_V6, 7000, b"hello"));
        assert_eq!(receive(&server), b"hello");
        assert_eq!(lab.upf.counters().dropped(DropReason::SpoofedSource), 1);
        server.send_to(b"and back", (UE_V6, 5000)).unwrap();
        let gpdu = lab.downlink();
        assert_eq!((gpdu.teid, gpdu.inner[0] >> 4, &gpdu.inner[48..]), (GNB_TEID, 6, &b"and back"[..]));
        assert_eq!(lab.upf.usage(SessionId(1)).unwrap().urrs[0].volume.total(), 53 + 56);
    }
}

/// An ICMPv6 message with its checksum.
fn icmp_v6(source: Ipv6Addr, destination: &str, hop_limit: u8, message: &[u8]) -> Vec<u8> {
    let destination: Ipv6Addr = destination.parse().unwrap();
    let (mut message, length) = (message.to_vec(), message.len() as u16);
    let pseudo =
        [&source.octets()[..], &destination.octets(), &length.to_be_bytes(), &[0, 58], &message].concat();
    let sum: u32 = pseudo.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    message[2..4].copy_from_slice(&(!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes());
    let head = [0x60, 0, 0, 0, (length >> 8) as u8, length as u8, 58, hop_limit];
    [&head[..], &source.octets(), &destination.octets(), &message].concat()
}

#[test]
fn the_upf_is_the_router_on_the_link_of_its_ue() {
    let pools = vec![UePool { gateway: IpAddr::V6(GATEWAY_V6), prefix: 48 }];
    for mut lab in labs_with(DatapathConfig { pools, workers: 2, ..DatapathConfig::default() }) {
        let of_v6 = |mut session: Session| {
            session.ue = UeAddress { v4: None, v6: Some(UE_PREFIX) };
            session
        };
        let advertises = |lab: &mut Lab, to: &str| {
            let Gpdu { teid, qfi, inner, .. } = lab.downlink();
            let addresses = ["fe80::1", to].map(|text| text.parse::<Ipv6Addr>().unwrap().octets()).concat();
            assert_eq!((teid, qfi, &inner[8..40]), (GNB_TEID, Some(QFI), &addresses[..]));
            assert_eq!((inner[7], inner[40], &inner[80..96]), (255, 134, &UE_PREFIX.octets()[..]));
        };
        lab.install(of_v6(idle()));
        lab.install(of_v6(session()));
        advertises(&mut lab, "ff02::1");
        // Not again, when the tunnel changes.
        lab.install(of_v6(session()));
        let own: Ipv6Addr = "fe80::77".parse().unwrap();
        let solicitation = [133, 0, 0, 0, 0, 0, 0, 0];
        lab.uplink(TEID, &icmp_v6(own, "ff02::2", 255, &solicitation));
        advertises(&mut lab, "fe80::77");
        lab.uplink(TEID, &icmp_v6(Ipv6Addr::UNSPECIFIED, "ff02::2", 255, &solicitation));
        advertises(&mut lab, "ff02::1");
        // Routed, of another UE, for a host of the link, a multicast listener's report.
        let other = "2001:db8:45:3::1".parse().unwrap();
        lab.uplink(TEID, &icmp_v6(own, "ff02::2", 254, &solicitation));
        lab.uplink(TEID, &icmp_v6(other, "ff02::2", 255, &solicitation));
        lab.uplink(TEID, &icmp_v6(own, "fe80::1", 255, &[128, 0, 0, 0, 0, 1, 0, 1]));
        lab.uplink(TEID, &icmp_v6(own, "ff02::16", 1, &[143, 0, 0, 0, 0, 0, 0, 0]));
        // A link-local source has no use beyond the link.
        lab.uplink(TEID, &udp_v6(own, 7000, b"hello"));
        wait_for("drops", || lab.upf.counters().dropped(DropReason::SpoofedSource) == 5);
        let of_prefix = "2001:db8:2d:2::1".parse().unwrap();
        lab.uplink(TEID, &icmp_v6(of_prefix, "fe80::1", 255, &[128, 0, 0, 0, 0, 1, 0, 1]));
        lab.uplink(TEID, &icmp_v6(of_prefix, "::1", 64, &[128, 0, 0, 0, 0, 1, 0, 1]));
        wait_for("drops", || lab.upf.counters().dropped(DropReason::ClosedDestination) == 2);
        assert!(lab.gnb_hears_nothing());
        let neighbour = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &"fe80::1".parse::<Ipv6Addr>().unwrap().octets()];
        lab.uplink(TEID, &icmp_v6(own, "fe80::1", 255, &neighbour.concat()));
        let answer = lab.downlink().inner;
        assert_eq!((answer[40], answer[44]), (136, 0xc0), "a Neighbour Advertisement of a router");
    }
}

#[test]
fn tunnels_run_over_ipv6() {
    if !enter_namespace() {
        return;
    }
    let [upf_address, gnb_address] = ["fd00::1", "fd00::2"].map(|text| text.parse::<Ipv6Addr>().unwrap());
    [upf_address, gnb_address].into_iter().for_each(|address| add_v6(address, 128, "lo"));
    let config = DatapathConfig {
        n3_addresses: vec![upf_address.into()],
        boundary: permitting(&["10.45.0.1 udp port 7000"]),
        ..DatapathConfig::default()
    };
    let mut upf = PortableDatapath::start(config).unwrap();
    let mut session = session();
    let tunnel = Tunnel { dscp: Some(46), ..tunnel_to(gnb_address, GNB_TEID) };
    session.fars[1].action = Action::Forward(Destination::Tunnel(tunnel));
    upf.install(Arc::new(session));
    let gnb = UdpSocket::bind((gnb_address, GTPU_PORT)).unwrap();
    gnb.set_read_timeout(Some(PATIENCE)).unwrap();
    let server = UdpSocket::bind((GATEWAY, 7000)).unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let inner = udp(UE, GATEWAY, 7000, b"hello");
    let header = [0x30, 255, 0, inner.len() as u8, 0, 0, 1, 0];
    gnb.send_to(&[&header[..], &inner].concat(), (upf_address, GTPU_PORT)).unwrap();
    assert_eq!(receive(&server), b"hello");
    server.send_to(b"and back", (UE, 5000)).unwrap();
    let datagram = receive(&gnb);
    assert_eq!(Packet::decode(&datagram).unwrap().teid, GNB_TEID);
}

#[test]
fn an_end_marker_goes_on_over_the_ip_version_of_the_next_tunnel() {
    if !enter_namespace() {
        return;
    }
    let [upf_address, gnb_address] = ["fd00::1", "fd00::2"].map(|text| text.parse::<Ipv6Addr>().unwrap());
    [upf_address, gnb_address].into_iter().for_each(|address| add_v6(address, 128, "lo"));
    [UPF, GNB].iter().for_each(|address| drop(run(&format!("ip addr add {address}/32 dev lo"))));
    let n3_addresses = vec![upf_address.into(), UPF.into()];
    let mut upf =
        PortableDatapath::start(DatapathConfig { n3_addresses, ..DatapathConfig::default() }).unwrap();
    let mut relay = session();
    relay.fars[0].action = Action::Forward(Destination::Tunnel(tunnel_to(GNB, GNB_TEID)));
    relay.fars[1].action = Action::Forward(Destination::Tunnel(tunnel_to(gnb_address, GNB_TEID)));
    upf.install(Arc::new(relay));
    let next = UdpSocket::bind((GNB, GTPU_PORT)).unwrap();
    next.set_read_timeout(Some(PATIENCE)).unwrap();
    let gnb = UdpSocket::bind((gnb_address, GTPU_PORT)).unwrap();
    gnb.send_to(&[0x30, 254, 0, 0, 0, 0, 1, 0], (upf_address, GTPU_PORT)).unwrap();
    assert_eq!(receive(&next), [0x30, 254, 0, 0, 0, 0, 2, 0]);
    assert_eq!(upf.counters().dropped, []);
}

#[test]
fn nat_reaches_a_host_without_a_return_route() {
    let config = DatapathConfig { nat: true, workers: 1, ..DatapathConfig::default() };
    let Some(mut lab) = lab(Kind::Portable, config) else { return };
    lab.server.run(|| drop(run(&format!("ip route del 10.45.0.0/16 via {UPF_N6}"))));
    lab.install(session());
    let server = lab.data_network(7000);
    lab.uplink(TEID, &udp(UE, SERVER, 7000, b"ping"));
    let mut buffer = [0; 100];
    let (length, from) = server.recv_from(&mut buffer).unwrap();
    assert_eq!(from.ip(), UPF_N6);
    server.send_to(&buffer[..length], from).unwrap();
    assert_eq!(lab.downlink().payload(), b"ping");
}
