//! Framed routes: packets to and from networks behind a UE belong to the UE, on both paths.

mod support;

use pith_upf::contract::*;
use std::net::{IpAddr, Ipv4Addr};
use support::*;

/// Behind the UE.
const BEHIND: Ipv4Addr = Ipv4Addr::new(192, 168, 7, 9);
/// Behind another UE, in a network within the first one's.
const BEHIND_OTHER: Ipv4Addr = Ipv4Addr::new(192, 168, 8, 9);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 3);
const OTHER_TEID: u32 = 0x101;
const OTHER_GNB_TEID: u32 = 0x201;

fn network(address: impl Into<IpAddr>, prefix: u8) -> AddressRange {
    AddressRange { address: address.into(), prefix }
}

fn framed() -> Session {
    Session { framed_routes: vec![network([192, 168, 0, 0], 16)], ..session() }
}

fn framed_other() -> Session {
    let other = session_of(2, OTHER, OTHER_TEID, OTHER_GNB_TEID);
    Session { framed_routes: vec![network([192, 168, 8, 0], 24)], ..other }
}

fn by_user_space(lab: &Lab) -> u64 {
    lab.user_packets(1) + lab.user_packets(2)
}

fn lead_there(lab: &Lab) {
    lab.server.run(|| drop(run(&format!("ip route add 192.168.0.0/16 via {UPF_N6}"))));
}

#[test]
fn framed_routes_work_in_both_directions() {
    for mut lab in labs() {
        lead_there(&lab);
        lab.install(framed());
        lab.install(framed_other());
        let server = lab.data_network(7000);
        lab.uplink(TEID, &udp(BEHIND, SERVER, 7000, b"from behind"));
        assert_eq!(receive(&server), b"from behind");
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"from the UE"));
        assert_eq!(receive(&server), b"from the UE");
        for (to, teid) in
            [(BEHIND, GNB_TEID), (BEHIND_OTHER, OTHER_GNB_TEID), (UE, GNB_TEID), (OTHER, OTHER_GNB_TEID)]
        {
            server.send_to(b"hello", (to, 5000)).unwrap();
            let gpdu = lab.downlink();
            assert_eq!(
                (gpdu.teid, gpdu.payload(), &gpdu.inner[16..20]),
                (teid, &b"hello"[..], &to.octets()[..])
            );
        }
        // Between the networks, by both sessions' rules.
        lab.uplink(TEID, &udp(BEHIND, BEHIND_OTHER, 7000, b"across"));
        let gpdu = lab.downlink();
        assert_eq!((gpdu.teid, gpdu.payload(), gpdu.inner[8]), (OTHER_GNB_TEID, &b"across"[..], 63));
        assert_eq!(by_user_space(&lab) == 0, lab.kind != Kind::Portable);
        assert_eq!(lab.upf.counters().dropped, []);
    }
}

#[test]
fn sources_behind_another_ue_or_none_are_spoofed() {
    for mut lab in labs() {
        lab.install(framed());
        lab.install(framed_other());
        let server = lab.data_network(7000);
        for source in [BEHIND, UE, "192.0.2.1".parse().unwrap()] {
            lab.uplink(OTHER_TEID, &udp(source, SERVER, 7000, b"not mine"));
        }
        lab.wait_dropped(DropReason::SpoofedSource, 3);
        // With overlapping networks, each UE may use all addresses of its own networks.
        lab.uplink(TEID, &udp(BEHIND_OTHER, SERVER, 7000, b"of both"));
        assert_eq!(receive(&server), b"of both");
    }
}

#[test]
fn networks_come_and_go_with_rules_and_session() {
    for mut lab in labs() {
        lead_there(&lab);
        let routes = || run("ip route show proto 197");
        lab.install(session());
        let server = lab.data_network(7000);
        lab.uplink(TEID, &udp(BEHIND, SERVER, 7000, b"too early"));
        lab.wait_dropped(DropReason::SpoofedSource, 1);
        lab.install(framed());
        assert!(routes().contains("192.168.0.0/16 dev pith0"), "{}", routes());
        server.send_to(b"hello", (BEHIND, 5000)).unwrap();
        assert_eq!(lab.downlink().payload(), b"hello");
        lab.install(Session { framed_routes: vec![network([192, 168, 7, 0], 24)], ..session() });
        lab.uplink(TEID, &udp(BEHIND_OTHER, SERVER, 7000, b"no longer"));
        lab.wait_dropped(DropReason::SpoofedSource, 2);
        lab.uplink(TEID, &udp(BEHIND, SERVER, 7000, b"still"));
        assert_eq!(receive(&server), b"still");
        lab.upf.remove(SessionId(1)).unwrap();
        assert_eq!(routes(), "");
        server.send_to(b"gone", (BEHIND, 5000)).unwrap();
        assert!(lab.gnb_hears_nothing());
    }
}

#[test]
fn downlink_to_a_network_behind_an_idle_ue_is_held_for_it() {
    for mut lab in labs() {
        lead_there(&lab);
        let mut idle = framed();
        idle.fars[1].action = Action::Buffer { notify: true, packets: None };
        lab.install(idle);
        let server = lab.data_network(7000);
        server.send_to(b"wake up", (BEHIND, 5000)).unwrap();
        let told = Event::DownlinkData { session: SessionId(1), pdr: PdrId(2), qfi: Some(Qfi(QFI)), dscp: 0 };
        assert_eq!(lab.event(), told);
        lab.install(framed());
        assert_eq!(lab.downlink().payload(), b"wake up");
    }
}
