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

/// A UDP packet over IPv6 to the server, with its checksum.
fn udp_v6(source: Ipv6Addr, port: u16, payload: &[u8]) -> Vec<u8> {
    udp_v6_to((source, 5000), (SERVER_V6, port), payload)
}

fn udp_v6_to(
    (source, from): (Ipv6Addr, u16),
    (destination, port): (Ipv6Addr, u16),
    payload: &[u8],
) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let mut udp = [from, port, length, 0].map(u16::to_be_bytes).concat();
    udp.extend(payload);
    let pseudo =
        [&source.octets()[..], &destination.octets(), &[0, 17], &length.to_be_bytes(), &udp].concat();
    let words = pseudo.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], *w.get(1).unwrap_or(&0)])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    udp[6..8].copy_from_slice(&(!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes());
    let head = [0x60, 0, 0, 0, (length >> 8) as u8, length as u8, 17, 64];
    [&head[..], &source.octets(), &destination.octets(), &udp].concat()
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
            session.ue = UeAddress::v6(UE_PREFIX);
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
fn a_router_behind_a_ue_gets_a_prefix_and_its_hosts_exchange_packets() {
    let pools = vec![UePool { gateway: IpAddr::V6(GATEWAY_V6), prefix: 48 }];
    let pool = pools[0].network();
    let dns = vec![(pool, vec!["2001:db8::53".parse().unwrap()])];
    for mut lab in labs_with(DatapathConfig { pools, dns, workers: 2, ..DatapathConfig::default() }) {
        lab.server.run(|| {
            add_v6(SERVER_V6, 64, "eth0");
            run(&format!("ip route add 2001:db8:2d::/48 via {N6_V6}"));
        });
        add_v6(N6_V6, 64, "n6");
        run(&format!("ip neigh replace {SERVER_V6} lladdr 02:00:00:00:00:02 dev n6 nud permanent"));
        let mut session = session();
        let prefix = "2001:db8:2d:100::".parse().unwrap();
        session.ue = UeAddress { delegation: 8, ..UeAddress::v6(prefix) };
        lab.install(session);
        let advertisement = lab.downlink().inner;
        let info = &advertisement[advertisement.len() - 32..];
        assert_eq!(
            (advertisement[40], advertisement[45], info[2], &info[16..]),
            (134, 0x40, 64, &prefix.octets()[..])
        );

        let own: Ipv6Addr = "fe80::77".parse().unwrap();
        let servers: Ipv6Addr = "ff02::1:2".parse().unwrap();
        // Client identifier, option request, IA_PD: without and with prefix exclusion.
        let solicit = |requested: [u8; 2]| {
            let request = [0, 6, 0, 4, 0, 23, requested[0], requested[1]];
            let client = [1, 9, 8, 7, 0, 1, 0, 4, 0, 3, 0, 1];
            [&client[..], &request, &[0, 25, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]].concat()
        };
        let delegates = |lab: &mut Lab, requested, length: u8, delegated: &str| {
            lab.uplink(TEID, &udp_v6_to((own, 546), (servers, 547), &solicit(requested)));
            let Gpdu { teid, qfi, inner, .. } = lab.downlink();
            assert_eq!((teid, qfi, inner[6], inner[7]), (GNB_TEID, Some(QFI), 17, 64));
            assert_eq!(
                (&inner[40..44], &inner[48..52]),
                (&[2, 35, 2, 34][..], &[2, 9, 8, 7][..]),
                "an Advertise"
            );
            let delegated: Ipv6Addr = delegated.parse().unwrap();
            let lease = [&[0xff; 8][..], &[length], &delegated.octets()].concat();
            assert!(inner.windows(25).any(|octets| octets == lease), "{inner:02x?}");
            let server =
                [&[0, 23, 0, 16][..], &"2001:db8::53".parse::<Ipv6Addr>().unwrap().octets()].concat();
            assert!(inner.windows(20).any(|octets| octets == server), "{inner:02x?}");
        };
        delegates(&mut lab, [0, 24], 57, "2001:db8:2d:180::");
        delegates(&mut lab, [0, 67], 56, "2001:db8:2d:100::");

        // A host with an address of the delegated prefix.
        let host: Ipv6Addr = "2001:db8:2d:1ab::7".parse().unwrap();
        let server = lab.server.run(|| UdpSocket::bind((SERVER_V6, 7000)).unwrap());
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        lab.uplink(TEID, &udp_v6(host, 7000, b"from behind the UE"));
        assert_eq!(receive(&server), b"from behind the UE");
        server.send_to(b"and back", (host, 5000)).unwrap();
        let gpdu = lab.downlink();
        assert_eq!(
            (gpdu.teid, &gpdu.inner[24..40], &gpdu.inner[48..]),
            (GNB_TEID, &host.octets()[..], &b"and back"[..])
        );
        // The UE itself, with the prefix of its link.
        let ue: Ipv6Addr = "2001:db8:2d:100::77".parse().unwrap();
        lab.uplink(TEID, &udp_v6(ue, 7000, b"of the UE"));
        assert_eq!(receive(&server), b"of the UE");
        server.send_to(b"to the UE", (ue, 5000)).unwrap();
        assert_eq!(&lab.downlink().inner[24..40], &ue.octets()[..]);

        // Beside the prefix; and what is no DHCPv6 of a client on the link.
        let beside = "2001:db8:2d:200::7".parse().unwrap();
        lab.uplink(TEID, &udp_v6(beside, 7000, b"spoofed"));
        lab.uplink(TEID, &udp_v6_to((own, 546), (servers, 548), &solicit([0, 67])));
        lab.uplink(TEID, &udp_v6_to((own, 546), (servers, 547), &solicit([0, 67])[..10]));
        lab.uplink(TEID, &udp_v6_to((own, 546), (servers, 547), &[12; 60]));
        lab.wait_dropped(DropReason::SpoofedSource, 4);
        server.send_to(b"beside it", (beside, 5000)).unwrap();
        wait_for("a drop", || lab.upf.counters().dropped(DropReason::UnknownUe) > 0);
        assert!(lab.gnb_hears_nothing());

        // A session without delegation: the prefix is no longer the UE's.
        let mut session = support::session();
        session.ue = UeAddress::v6(prefix);
        lab.install(session);
        lab.uplink(TEID, &udp_v6(host, 7000, b"no longer"));
        lab.wait_dropped(DropReason::SpoofedSource, 5);
        lab.uplink(TEID, &udp_v6(ue, 7000, b"still"));
        assert_eq!(receive(&server), b"still");
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
