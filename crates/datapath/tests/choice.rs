//! The choice of the path and its reason, on interfaces and with packet filters of a namespace.

#![allow(unsafe_code)]

mod support;

use pith_datapath::{DatapathConfig, PathChoice, PathReport, UePool, UserPlane, XdpHook};
use pith_pfcp::gtpu::GTPU_PORT;
use pith_upf::contract::{Datapath, DropReason};
use std::net::UdpSocket;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::*;

/// A host with N3 and N6; the default route is by N6.
fn host() -> Option<[Host; 2]> {
    if !enter_namespace() {
        return None;
    }
    let hosts = [wire("n3", UPF, GNB, Kind::Generic), wire("n6", UPF_N6, SERVER, Kind::Generic)];
    run(&format!("ip route add default via {SERVER}"));
    Some(hosts)
}

fn config() -> DatapathConfig {
    DatapathConfig { n3_addresses: vec![UPF.into()], workers: 1, ..DatapathConfig::default() }
}

fn named() -> DatapathConfig {
    DatapathConfig { interfaces: vec!["n3".into(), "n6".into()], ..config() }
}

fn report(config: DatapathConfig) -> PathReport {
    let (upf, report) = UserPlane::start_and_report(config).unwrap();
    assert_eq!(matches!(upf, UserPlane::Xdp(_)), report.path == "xdp");
    report
}

#[test]
fn xdp_does_not_choose_virtual_interfaces_unless_a_hook_is_configured() {
    let Some(_hosts) = host() else { return };
    let portable = report(config());
    assert_eq!(portable.path, "portable");
    assert!(portable.to_string().contains("n3 is a veth interface"), "{portable}");
    let generic = report(DatapathConfig { xdp_hook: XdpHook::Generic, nat: true, ..config() });
    assert_eq!(generic.path, "xdp");
    assert!(generic.to_string().contains("(generic) of n3, n6, with NAT"), "{generic}");
    let local = DatapathConfig { n3_addresses: vec!["127.0.0.7".parse().unwrap()], ..config() };
    assert!(report(local).detail.contains("127.0.0.7 is on the loopback interface"));
    assert_eq!(report(named()).path, "xdp", "named interfaces");
    run("ip route del default");
    assert!(report(config()).detail.contains("no default route"));
}

/// Whether user packets may not leave by N3's interface.
fn n3_is_for_tunnels_only() -> bool {
    run("nft list ruleset").contains("oifname \"n3\" drop")
}

#[test]
fn an_interface_that_was_not_configured_is_n6s_too_if_it_has_a_default_route() {
    let Some(_hosts) = host() else { return };
    let found = || DatapathConfig { xdp_hook: XdpHook::Generic, ..config() };
    let upf = UserPlane::start(found()).unwrap();
    assert!(matches!(upf, UserPlane::Xdp(_)) && n3_is_for_tunnels_only());
    upf.stop();
    run(&format!("ip route add default via {GNB} metric 100"));
    let upf = UserPlane::start(found()).unwrap();
    assert!(matches!(upf, UserPlane::Xdp(_)) && !n3_is_for_tunnels_only());
    upf.stop();
    let _upf = UserPlane::start(named()).unwrap();
    assert!(n3_is_for_tunnels_only());
}

/// Without configured interfaces N3's is the core's alone, unless it has a default route.
#[test]
fn networks_behind_an_n3_interface_that_was_found_are_closed() {
    let Some([radio, _data]) = host() else { return };
    run(&format!("ip route add 203.0.113.0/24 via {GNB} dev n3"));
    let mut upf = UserPlane::start(config()).unwrap();
    assert!(matches!(upf, UserPlane::Portable(_)));
    upf.install(Arc::new(session_of(1, UE, TEID, GNB_TEID)));
    let gnb = radio.run(|| UdpSocket::bind((GNB, GTPU_PORT)).unwrap());
    let is_closed = |destination: &str| {
        let counters = || {
            let counters = upf.counters();
            (counters.dropped(DropReason::ClosedDestination), counters.n6_out.packets)
        };
        let before = counters();
        let packet = udp(UE, destination.parse().unwrap(), 7000, b"x");
        gnb.send_to(&gpdu(TEID, &packet), (UPF, GTPU_PORT)).unwrap();
        wait_for("the packet", || counters() != before);
        counters().0 > before.0
    };
    assert!(is_closed("172.16.0.9") && is_closed("203.0.113.7") && !is_closed("198.51.100.1"));
    run(&format!("ip route add default via {GNB} dev n3 metric 100"));
    wait_for("the network to be open", || !is_closed("203.0.113.7"));
    assert!(is_closed("172.16.0.9"), "N3's own network");
    run(&format!("ip route del default via {GNB} dev n3 metric 100"));
    wait_for("the network to be closed", || is_closed("203.0.113.7"));
}

#[test]
fn forwarding_that_pith_enables_is_for_ues_alone() {
    for (before, nat) in [("0", false), ("0", true), ("1", false)] {
        let Some([radio, data]) = host() else { return };
        std::fs::write("/proc/sys/net/ipv4/ip_forward", before).unwrap();
        radio.run(|| drop(run(&format!("ip route add 172.17.0.0/24 via {UPF}"))));
        data.run(|| {
            run(&format!("ip route add 172.16.0.0/24 via {UPF_N6}"));
            run(&format!("ip route add 10.45.0.0/16 via {UPF_N6}"));
        });
        let mut upf =
            UserPlane::start(DatapathConfig { path: PathChoice::Portable, nat, ..named() }).unwrap();
        // Forwarding by two UPFs is for the UEs of both.
        let pools = vec![UePool { gateway: "10.46.0.1".parse().unwrap(), prefix: 16 }];
        run("ip address add 172.16.0.9/24 dev n3");
        let n3_addresses = vec!["172.16.0.9".parse().unwrap()];
        let second = DatapathConfig {
            n3_addresses,
            pools,
            path: PathChoice::Portable,
            tun: "pith1".into(),
            ..named()
        };
        let second = UserPlane::start(second).unwrap();
        upf.install(Arc::new(session_of(1, UE, TEID, GNB_TEID)));
        let of_core = radio.run(|| UdpSocket::bind((GNB, 9999)).unwrap());
        let gnb = radio.run(|| UdpSocket::bind((GNB, GTPU_PORT)).unwrap());
        let server = data.run(|| UdpSocket::bind((SERVER, 7000)).unwrap());
        for socket in [&of_core, &gnb, &server] {
            socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        }
        let hears = |socket: &UdpSocket| socket.recv_from(&mut [0; 100]).is_ok();
        server.send_to(b"to the core", (GNB, 9999)).unwrap();
        assert_eq!(hears(&of_core), before == "1");
        of_core.send_to(b"from the core", (SERVER, 7000)).unwrap();
        assert_eq!(hears(&server), before == "1");
        gnb.send_to(&gpdu(TEID, &udp(UE, SERVER, 7000, b"up")), (UPF, GTPU_PORT)).unwrap();
        let (_, from) = server.recv_from(&mut [0; 100]).unwrap();
        server.send_to(b"down", from).unwrap();
        assert!(hears(&gnb));
        drop(second);
        upf.stop();
        assert_eq!(std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap().trim(), before);
    }
}

#[test]
fn rules_of_the_hosts_packet_filter_are_not_bypassed_without_a_setting() {
    let Some(_hosts) = host() else { return };
    let nft = |text: &str| assert!(Command::new("nft").arg(text).status().unwrap().success(), "{text}");
    nft("add table inet site");
    nft("add chain inet site forward { type filter hook forward priority 0 ; }");
    assert_eq!(report(named()).path, "xdp", "a chain without rules");
    nft("add rule inet site forward ip daddr 192.0.2.1 drop");
    let filtered = report(named());
    assert_eq!(filtered.path, "portable");
    let (detail, faster) = (filtered.detail, filtered.faster.unwrap());
    assert!(
        detail.contains("chain forward of table inet site") && faster.contains("bypass_firewall"),
        "{detail}"
    );
    assert_eq!(report(DatapathConfig { bypass_firewall: true, ..named() }).path, "xdp");
    let translated = DatapathConfig { nat: true, ..named() };
    assert_eq!(
        report(translated).path,
        "portable",
        "the kernel would see the first packets of a connection only"
    );
}

#[test]
fn rules_that_the_host_gets_later_are_obeyed_and_named() {
    for nat in [false, true] {
        let Some([radio, data]) = host() else { return };
        data.run(|| drop(run(&format!("ip route add 10.45.0.0/16 via {UPF_N6}"))));
        let mut upf = UserPlane::start(DatapathConfig { nat, ..named() }).unwrap();
        upf.install(Arc::new(session_of(1, UE, TEID, GNB_TEID)));
        let gnb = radio.run(|| UdpSocket::bind((GNB, GTPU_PORT)).unwrap());
        let server = data.run(|| UdpSocket::bind((SERVER, 7000)).unwrap());
        server.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let until = |is_wanted: bool| {
            let begin = Instant::now();
            let is_forwarded = || {
                gnb.send_to(&gpdu(TEID, &udp(UE, SERVER, 7000, b"up")), (UPF, GTPU_PORT)).unwrap();
                server.recv_from(&mut [0; 16]).is_ok()
            };
            while is_forwarded() != is_wanted {
                assert!(begin.elapsed() < PATIENCE, "forwarded: {is_wanted}");
            }
        };
        let detour = || match &upf {
            UserPlane::Xdp(xdp) => xdp.detour().reason().unwrap_or_default(),
            UserPlane::Portable(_) => panic!("the portable path"),
        };
        until(true);
        assert_eq!(detour(), "");
        run("nft add table inet site");
        run("nft add chain inet site forward { type filter hook forward priority 0 ; }");
        run(&format!("nft add rule inet site forward ip daddr {SERVER} drop"));
        until(false);
        wait_for("its name", || detour().contains("chain forward of table inet site"));
        run("nft delete table inet site");
        until(true);
        run(&format!("ip rule add from {UE} blackhole priority 100"));
        until(false);
        wait_for("its name", || detour().contains("routing rule of priority 100"));
        run("ip rule del priority 100");
        until(true);
        wait_for("the way by XDP", || detour().is_empty());
    }
}

#[test]
fn a_second_upf_on_the_same_interfaces_takes_the_portable_path() {
    let Some(_hosts) = host() else { return };
    let found = DatapathConfig { xdp_hook: XdpHook::Generic, ..config() };
    let first = UserPlane::start(found.clone()).unwrap();
    assert!(matches!(first, UserPlane::Xdp(_)));
    let pools = vec![UePool { gateway: "10.46.0.1".parse().unwrap(), prefix: 16 }];
    run("ip address add 172.16.0.9/24 dev n3");
    let n3_addresses = vec!["172.16.0.9".parse().unwrap()];
    let second = DatapathConfig { n3_addresses, pools, tun: "pith1".into(), ..found };
    let (_second, report) = UserPlane::start_and_report(second).unwrap();
    assert_eq!(report.path, "portable");
    assert!(report.detail.contains("already has an XDP program of Pith"), "{report}");
}
