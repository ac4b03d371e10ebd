//! Tests of the program's stages with frames given directly (BPF_PROG_TEST_RUN): the output octet by octet,
//! the counters, and that passed frames are unchanged.

mod ecn;
mod entropy;
mod nat;
#[path = "../../tests/support/random.rs"]
#[allow(dead_code)]
mod random;
mod scalable;
mod sets;
mod shared;

use super::areas::Areas;
use super::compile::{N3Side, compile};
use super::conntrack::Conntrack;
use super::events::Events;
use super::program::{Interface, Program, Sizes};
use super::tables::Tables;
use crate::boundary::{Boundary, Host, Mirror, Reach, Tenant};
use crate::config::DatapathConfig;
use crate::packet::source_port;
use crate::rules::{Clock, Sessions};
use crate::sys::layout::{Action as State, Link, UE_NAT};
use crate::sys::{enter_namespace, interface_index};
use libbpf_rs::{MapCore, MapFlags};
use pith_upf::contract::*;
use pith_upf::qos::Enforcement;
use random::Random;
use std::net::Ipv4Addr;
use std::process::Command;

const DROP: u32 = 1;
const PASS: u32 = 2;
const REDIRECT: u32 = 4;

const UPF: [u8; 4] = [172, 16, 0, 1];
const GNB: [u8; 4] = [172, 16, 0, 2];
const SERVER: [u8; 4] = [172, 17, 0, 2];
const UE: [u8; 4] = [10, 45, 0, 2];
const UE_PREFIX: [u8; 8] = [0x20, 1, 0xd, 0xb8, 0, 45, 0, 2];
const TEID: u32 = 0x100;
const NEIGHBOUR: [u8; 6] = [2, 0, 0, 0, 0, 2];
const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
const N3: N3Side = N3Side { v4: true, v6: true, has_radios: false };
const TO_US: [u8; 12] = [2, 0, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9];
/// The VLAN of an interface without gNBs.
const NO_RADIOS: u16 = 200;

const UPF_PEER: &str = "172.16.0.2";
const UPF_PEER_V6: &str = "fd00::2";

/// Closed: N3's network, a network of the core, another with a permit in it, gNBs, another tenant's pool.
fn reach() -> Reach {
    Reach::compile(&boundary(), &[], &Host::default(), (&[], &[]))
}

fn boundary() -> Boundary {
    let range = |text: &str| crate::system::parse_network(text).unwrap();
    let permits = vec!["198.18.7.0/24 udp port 53".parse().unwrap()];
    let own = Tenant { pools: vec![range("10.45.0.0/16"), range("2001:db8:2d::/48")], permits };
    let other = Tenant { pools: vec![range("10.46.0.0/16")], permits: vec![] };
    Boundary {
        core: ["172.16.0.0/24", "198.18.0.0/15", "2001:db8:99::/48"].map(range).to_vec(),
        radios: vec![range("198.51.100.0/24")],
        tenants: vec![own, other],
        ..Boundary::default()
    }
}

struct Lab {
    program: Program,
    areas: Areas,
    tables: Tables,
    sessions: Sessions,
    conntrack: Option<Conntrack>,
}

/// The program with one session; `None` if the test must be skipped.
fn lab(session: &Session) -> Option<Lab> {
    lab_with(session, 0)
}

fn lab_with(session: &Session, vlan: u16) -> Option<Lab> {
    lab_of(session, vlan, Settings::default())
}

/// Settings of the program.
#[derive(Debug, Clone, Copy, Default)]
struct Settings {
    /// The program translates the UE's packets.
    nat: bool,
    /// Packets above rates wait in user space; otherwise they are dropped.
    shapes: bool,
    /// Outer headers have zero ECN and the GTP-U port.
    plain: bool,
}

fn lab_of(session: &Session, vlan: u16, settings: Settings) -> Option<Lab> {
    if !enter_namespace() {
        return None;
    }
    for command in [
        "link set lo up",
        "link add n3 type veth peer name radio",
        "link add n6 type veth peer name server",
        "link set n3 address 02:00:00:00:00:01 up",
        "link set n6 address 02:00:00:00:00:01 up",
        "link set radio up",
        "link set server up",
        "addr add 172.16.0.1/24 dev n3",
        "addr add 172.17.0.1/24 dev n6",
        "addr add fd00::1/64 dev n3 nodad",
        "neigh replace fd00::2 lladdr 02:00:00:00:00:02 dev n3 nud permanent",
        "addr add 2001:db8:46::1/64 dev n6 nodad",
        "neigh replace 172.16.0.2 lladdr 02:00:00:00:00:02 dev n3 nud permanent",
        "neigh replace 172.17.0.2 lladdr 02:00:00:00:00:02 dev n6 nud permanent",
        "neigh replace 2001:db8:46::2 lladdr 02:00:00:00:00:02 dev n6 nud permanent",
    ] {
        assert!(Command::new("ip").args(command.split(' ')).status().unwrap().success(), "{command}");
    }
    for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
        std::fs::write(format!("/proc/sys/net/{setting}"), "1").unwrap();
    }
    let config = DatapathConfig {
        n3_addresses: vec![UPF.into(), "fd00::1".parse().unwrap()],
        sessions: 16,
        workers: 1,
        enforcement: if settings.shapes { Enforcement::Shape } else { Enforcement::Police },
        flow_ports: !settings.plain,
        outer_ecn: !settings.plain,
        ..DatapathConfig::default()
    };
    let mut sizes = Sizes::of(&config, 1).unwrap();
    // A test can fill the ring.
    sizes.events = 4096;
    // Test frames appear as received by the loopback interface.
    let link = |vlan, tunnels| Link { device: 1, vlan, ethernet: OWN, tunnels };
    let links = vec![link(vlan, true), link(NO_RADIOS, false)];
    let conntrack = settings.nat.then(|| Conntrack::prepare().expect("a kernel with connection tracking"));
    let program = Program::load(&config, &Clock::start(), sizes, links, conntrack.as_ref())
        .expect("clang at build time, and root");
    let interfaces = ["n3", "n6"].map(|name| {
        let index = interface_index(name).unwrap();
        Interface { index, device: index, vlan, driver: "veth".into(), one_sided: name == "n3" }
    });
    program.make_ports(&interfaces).unwrap();
    let mut areas = Areas::of(&program).unwrap();
    areas.set_areas(&reach());
    [UPF_PEER, UPF_PEER_V6].iter().for_each(|peer| areas.set_peer(peer.parse().unwrap(), true));
    let tables = Tables::of(&program, sizes).unwrap();
    let sessions = Sessions::new(program.pools().unwrap(), config.enforcement);
    let mut lab = Lab { program, areas, tables, sessions, conntrack };
    lab.install(session);
    Some(lab)
}

impl Lab {
    fn install(&mut self, session: &Session) {
        let rules = self.sessions.install(session).rules;
        let mut compiled = compile(&rules, N3, Some(0));
        compiled.session.flags |= if self.conntrack.is_some() { UE_NAT } else { 0 };
        let published = self.tables.publish(compiled, rules, State::Forward, None);
        // Its slots stay allocated until the lab ends.
        std::mem::forget(published.expect("room for a session"));
    }

    fn run(&self, frame: &[u8]) -> (u32, Vec<u8>) {
        self.program.run(frame)
    }

    fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        self.tables.add_counters(&mut counters);
        counters
    }

    fn volume(&self) -> Volume {
        self.sessions.usage(SessionId(1), crate::rules::Now(u64::MAX)).unwrap().urrs[0].volume
    }

    /// The frame is passed to user space unchanged.
    fn passes(&self, what: &str, frame: &[u8]) {
        let before = self.counters();
        assert_eq!(self.run(frame), (PASS, frame.to_vec()), "{what}");
        assert_eq!(self.counters(), before, "{what}");
    }

    fn drops(&self, frame: &[u8], reason: DropReason) {
        self.drops_only(frame, reason);
        assert_eq!(self.volume(), Volume::default());
    }

    fn drops_only(&self, frame: &[u8], reason: DropReason) {
        let before = (self.counters().dropped(reason), self.volume());
        assert_eq!(self.run(frame).0, DROP, "{reason:?}");
        assert_eq!((self.counters().dropped(reason), self.volume()), (before.0 + 1, before.1), "{reason:?}");
    }
}

fn session() -> Session {
    let rates = Rates { uplink: 1_000_000_000, downlink: 1_000_000_000 };
    let pdr = |id, source, far| Pdr {
        id: PdrId(id),
        precedence: 255,
        source,
        filters: vec![],
        qfis: vec![],
        far: FarId(far),
        qers: vec![QerId(1)],
        urrs: vec![UrrId(1)],
    };
    let uplink = Source::Tunnel { teid: Teid(TEID), direction: Direction::Uplink };
    let to_gnb = Tunnel { peer: GNB.into(), teid: Teid(0x200), dscp: Some(46) };
    let no_limits = VolumeLimits::default();
    let prefix = [&UE_PREFIX[..], &[0; 8]].concat();
    Session {
        id: SessionId(1),
        ue: UeAddress {
            v4: Some(Ipv4Addr::from(UE)),
            ..UeAddress::v6(<[u8; 16]>::try_from(&prefix[..]).unwrap().into())
        },
        framed_routes: vec![],
        pdrs: vec![pdr(1, uplink, 1), pdr(2, Source::Network, 2)],
        fars: vec![
            Far { id: FarId(1), action: Action::Forward(Destination::Network) },
            Far { id: FarId(2), action: Action::Forward(Destination::Tunnel(to_gnb)) },
        ],
        qers: vec![Qer {
            id: QerId(1),
            gates: Gates::OPEN,
            mbr: Some(rates),
            gbr: None,
            qfi: Some(Qfi(9)),
            rqi: false,
        }],
        urrs: vec![Urr { id: UrrId(1), threshold: no_limits, quota: no_limits }],
        former_qfis: vec![],
    }
}

fn ethernet(addresses: &[u8], kind: u16) -> Vec<u8> {
    [addresses, &kind.to_be_bytes()].concat()
}

fn ipv4(source: [u8; 4], destination: [u8; 4], ttl: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len() as u16).to_be_bytes();
    let mut header = vec![0x45, 0, length[0], length[1], 0, 0, 0, 0, ttl, protocol, 0, 0];
    header.extend([source, destination].concat());
    set_checksum(&mut header);
    [&header, payload].concat()
}

fn set_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let words = header[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    header[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
}

fn ipv6(source: [u8; 16], destination: [u8; 16], next: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0, length[0], length[1], next, 64], &source[..], &destination, payload].concat()
}

fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    [&[from, to, length, 0].map(u16::to_be_bytes).concat()[..], payload].concat()
}

/// A packet of the UE to the server.
fn up(ttl: u8) -> Vec<u8> {
    ipv4(UE, SERVER, ttl, 17, &udp(5000, 7000, b"hello"))
}

fn down(ttl: u8) -> Vec<u8> {
    ipv4(SERVER, UE, ttl, 17, &udp(7000, 5000, b"hello"))
}

/// A G-PDU with the container of an uplink packet of QoS flow 9.
fn gpdu(teid: u32, inner: &[u8]) -> Vec<u8> {
    let length = (inner.len() as u16 + 8).to_be_bytes();
    let header =
        [&[0x34, 255, length[0], length[1]], &teid.to_be_bytes()[..], &[0, 0, 0, 0x85, 1, 0x10, 9, 0]];
    [&header.concat(), inner].concat()
}

fn tunnelled(message: &[u8]) -> Vec<u8> {
    [ethernet(&TO_US, 0x800), ipv4(GNB, UPF, 64, 17, &udp(2152, 2152, message))].concat()
}

fn to_ue(packet: &[u8]) -> Vec<u8> {
    [ethernet(&TO_US, 0x800), packet.to_vec()].concat()
}

fn sent(packet: &[u8]) -> (u32, Vec<u8>) {
    (REDIRECT, [ethernet(&[NEIGHBOUR, OWN].concat(), 0x800), packet.to_vec()].concat())
}

/// A tunnel frame over IPv4 with identification 0, which depends on the CPU, and source port 2152, which depends on the flow.
fn without_id(mut frame: Vec<u8>) -> Vec<u8> {
    frame[18..20].fill(0);
    frame[34..36].copy_from_slice(&2152u16.to_be_bytes());
    set_checksum(&mut frame[14..34]);
    frame
}

#[test]
fn identifications_of_outer_headers_are_distinct_over_cpus() {
    let Some(lab) = lab(&session()) else { return };
    // More than a CPU has: they begin again.
    const PACKETS: usize = 20_000;
    let mut owners = std::collections::BTreeMap::new();
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    let thread = thread.file_name().unwrap().to_str().unwrap().to_owned();
    let cpus = std::thread::available_parallelism().unwrap().get();
    // With the lab's worker.
    let places = (cpus + 1).next_power_of_two() as u16;
    for cpu in 0..cpus {
        let pinned = Command::new("taskset").args(["-pc", &cpu.to_string(), &thread]).output();
        assert!(pinned.unwrap().status.success());
        for _ in 0..PACKETS {
            let (_, frame) = lab.run(&to_ue(&down(64)));
            let id = u16::from_be_bytes([frame[18], frame[19]]);
            assert_eq!(*owners.entry(id % places).or_insert(cpu), cpu, "{id:#x}");
        }
    }
    assert_eq!(owners.len(), cpus, "each CPU has a place");
}

#[test]
fn uplink_is_decapsulated_and_its_ttl_decremented() {
    let Some(lab) = lab(&session()) else { return };
    assert_eq!(lab.run(&tunnelled(&gpdu(TEID, &up(64)))), sent(&up(63)));
    let one = Traffic { packets: 1, bytes: 33 };
    assert_eq!((lab.counters().n3_in, lab.counters().n6_out), (one, one));
    assert_eq!(lab.volume(), Volume { uplink: 33, uplink_packets: 1, ..Volume::default() });
}

#[test]
fn downlink_is_encapsulated_with_teid_qfi_and_dscp_without_padding() {
    let Some(lab) = lab(&session()) else { return };
    let mut padded = to_ue(&down(64));
    padded.resize(60, 0);
    let (verdict, frame) = lab.run(&padded);
    let inner = down(63);
    let length = (inner.len() as u16 + 8).to_be_bytes();
    let header =
        [&[0x34, 255, length[0], length[1], 0, 0, 2, 0, 0, 0, 0, 0x85, 1, 0, 9, 0], &inner[..]].concat();
    let mut outer = ipv4(UPF, GNB, 64, 17, &udp(2152, 2152, &header));
    outer[1] = 46 << 2;
    set_checksum(&mut outer);
    assert_eq!((verdict, without_id(frame)), sent(&outer));
    assert_eq!(lab.volume(), Volume { downlink: 33, downlink_packets: 1, ..Volume::default() });
}

#[test]
fn vlan_tags_are_removed_and_added() {
    let Some(lab) = lab_with(&session(), 100) else { return };
    let plain = tunnelled(&gpdu(TEID, &up(64)));
    let (verdict, frame) = lab.run(&tagged(100, &plain));
    let addresses = [NEIGHBOUR, OWN].concat();
    assert_eq!((verdict, frame), (REDIRECT, [&addresses[..], &[0x81, 0, 0, 100, 8, 0], &up(63)].concat()));
    let (verdict, frame) = lab.run(&tagged(100, &to_ue(&down(64))));
    assert_eq!((verdict, &frame[12..20]), (REDIRECT, &[0x81, 0, 0, 100, 8, 0, 0x45, 46 << 2][..]));
}

fn tagged(vlan: u16, frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x81, 0], &vlan.to_be_bytes(), &frame[12..]].concat()
}

#[test]
fn frames_of_other_vlans_and_for_other_hosts_are_passed_to_the_kernel() {
    for vlan in [0, 100] {
        let Some(lab) = lab_with(&session(), vlan) else { return };
        for plain in [tunnelled(&gpdu(TEID, &up(64))), to_ue(&down(64))] {
            let frame = if vlan == 0 { plain.clone() } else { tagged(vlan, &plain) };
            // With priority 5.
            assert_eq!(lab.run(&tagged(0xa000 | vlan, &plain)).0, REDIRECT, "{vlan}");
            for other in [1, 7, 99, 0xfff].map(|other| tagged(other, &plain)) {
                match plain == to_ue(&down(64)) {
                    true => lab.passes("another VLAN", &other),
                    // The kernel would accept it.
                    false => lab.drops_only(&other, DropReason::UnsupportedGtpu),
                }
            }
            lab.passes("a tag in a tag", &tagged(vlan, &tagged(vlan, &plain)));
            lab.passes("a tag of a provider", &[&plain[..12], &[0x88, 0xa8, 0, 0], &plain[12..]].concat());
            for other in [[0xff; 6], [1, 0, 0x5e, 0, 0, 1], [2, 0, 0, 0, 0, 3], [3, 0, 0, 0, 0, 1]] {
                lab.passes("another host", &[&other, &frame[6..]].concat());
            }
            assert_eq!(lab.run(&frame).0, REDIRECT);
        }
        if vlan != 0 {
            lab.drops_only(&tunnelled(&gpdu(TEID, &up(64))), DropReason::UnsupportedGtpu);
            lab.passes("no VLAN", &to_ue(&down(64)));
        }
    }
}

#[test]
fn gtpu_on_interfaces_without_gnbs_is_dropped() {
    let Some(lab) = lab(&session()) else { return };
    let from_network = |frame: &[u8]| tagged(NO_RADIOS, frame);
    let message = tunnelled(&gpdu(TEID, &up(64)));
    let mut fragment = message.clone();
    fragment[20] = 0x20;
    let mut with_options = message.clone();
    with_options[14] = 0x46;
    with_options.splice(34..34, [1; 4]);
    let echo = tunnelled(&[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 7, 0, 0]);
    let [upf, gnb] = ["fd00::1", "fd00::2"].map(|text| text.parse::<std::net::Ipv6Addr>().unwrap().octets());
    let over_v6 = |next| {
        let outer = ipv6(gnb, upf, next, &udp(2152, 2152, &gpdu(TEID, &up(64))));
        [ethernet(&TO_US, 0x86dd), outer].concat()
    };
    for frame in [&message, &fragment, &with_options, &echo, &over_v6(17), &over_v6(44)] {
        lab.drops(&from_network(frame), DropReason::UnsupportedGtpu);
    }
    assert_eq!(lab.counters().n6_in.packets, 6);
    // Other packets for that address are passed to the kernel, as are GTP-U for other hosts and truncated
    // frames.
    let mut other_port = message.clone();
    other_port[37] = 1;
    let mut tcp = message.clone();
    tcp[23] = 6;
    let mut other_host = message.clone();
    other_host[33] = 9;
    for frame in [&other_port, &tcp, &other_host, &over_v6(58), &message[..33].to_vec()] {
        lab.passes("no GTP-U for us", &from_network(frame));
    }
    let (verdict, _) = lab.run(&from_network(&to_ue(&down(64))));
    assert_eq!(verdict, REDIRECT);
}

#[test]
fn a_wrong_outer_ipv4_checksum_is_dropped_by_name() {
    let Some(lab) = lab(&session()) else { return };
    let mut with_options = [&[0x46, 0], &down(64)[2..20], &[1; 4][..], &down(64)[20..]].concat();
    with_options[3] += 4;
    let sum: u32 = with_options[..24].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let before = u16::from_be_bytes([with_options[10], with_options[11]]);
    let check = before.wrapping_sub(sum as u16).wrapping_sub(u16::from(sum as u16 > before));
    with_options[10..12].copy_from_slice(&check.to_be_bytes());
    for frame in [tunnelled(&gpdu(TEID, &up(64))), to_ue(&down(64)), to_ue(&with_options)] {
        // Type of service, identification, flags, time to live, checksum, source.
        for at in [1, 4, 5, 6, 8, 10, 11, 12, 15] {
            let mut wrong = frame.clone();
            wrong[14 + at] ^= 0x40;
            lab.drops_only(&wrong, DropReason::BadChecksum);
        }
        assert_eq!(lab.run(&frame).0, REDIRECT);
    }
    let mut options = to_ue(&with_options);
    options[14 + 21] = 7;
    lab.drops_only(&options, DropReason::BadChecksum);
    // The checksum of UDP is not verified; a user packet with a damaged header is left to the kernel.
    for (at, verdict) in [(14 + 20 + 6, REDIRECT), (14 + 20 + 8 + 16 + 10, PASS)] {
        let mut message = tunnelled(&gpdu(TEID, &up(64)));
        message[at] ^= 0x40;
        assert_eq!(lab.run(&message).0, verdict);
    }
}

#[test]
fn ipv6_passes_inside_and_the_tunnel_may_be_ipv6() {
    let Some(lab) = lab(&session()) else { return };
    let ue = <[u8; 16]>::try_from([&UE_PREFIX[..], &[7; 8]].concat()).unwrap();
    let server = "2001:db8:46::2".parse::<std::net::Ipv6Addr>().unwrap().octets();
    let inner = ipv6(ue, server, 17, &udp(1, 2, b"hello"));
    let [upf, gnb] = ["fd00::1", "fd00::2"].map(|text| text.parse::<std::net::Ipv6Addr>().unwrap().octets());
    let outer = ipv6(gnb, upf, 17, &udp(2152, 2152, &gpdu(TEID, &inner)));
    let (verdict, frame) = lab.run(&[ethernet(&TO_US, 0x86dd), outer].concat());
    let mut expected = inner.clone();
    expected[7] = 63;
    let link = ethernet(&[NEIGHBOUR, OWN].concat(), 0x86dd);
    assert_eq!((verdict, frame), (REDIRECT, [link, expected].concat()));
    let mut back = ipv6(server, ue, 17, &udp(2, 1, b"hello"));
    let (verdict, frame) = lab.run(&[ethernet(&TO_US, 0x86dd), back.clone()].concat());
    back[7] = 63;
    assert_eq!((verdict, &frame[12..14], &frame[58..]), (REDIRECT, &[8, 0][..], &back[..]));
}

/// 172.17.0.2 and ::ac11:2:0:0 have the same octets in the program's cache of routes.
#[test]
fn a_cached_route_is_that_of_its_address_family() {
    let Some(lab) = lab(&session()) else { return };
    let ue = <[u8; 16]>::try_from([&UE_PREFIX[..], &[7; 8]].concat()).unwrap();
    let v4 = tunnelled(&gpdu(TEID, &up(64)));
    let mut destination = [0; 16];
    destination[8..12].copy_from_slice(&[172, 17, 0, 2]);
    assert_eq!(v4[v4.len() - up(64).len() + 16..][..4], destination[8..12], "the same destination");
    assert_eq!(lab.run(&v4).0, REDIRECT);
    let v6 = tunnelled(&gpdu(TEID, &ipv6(ue, destination, 17, &udp(1, 2, b"hello"))));
    assert_ne!(lab.run(&v6).0, REDIRECT, "there is no such route");
    assert_eq!(lab.run(&v4).0, REDIRECT);
}

/// The checksum of UDP over IPv6 (RFC 8200 8.1); 0 if it is correct.
fn sum_v6(packet: &[u8]) -> u16 {
    let pseudo = [&packet[8..40], &[0, 0], &packet[4..6], &[0, 0, 0, 17], &packet[40..]].concat();
    let words = pseudo.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], *w.get(1).unwrap_or(&0)])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[test]
fn ipv6_tunnels_have_a_correct_udp_checksum_for_any_length() {
    let mut session = session();
    let to_gnb = Tunnel { peer: "fd00::2".parse().unwrap(), teid: Teid(0x200), dscp: Some(46) };
    session.fars[1].action = Action::Forward(Destination::Tunnel(to_gnb));
    let Some(mut lab) = lab(&session) else { return };
    let [upf, gnb] = ["fd00::1", "fd00::2"].map(|text| text.parse::<std::net::Ipv6Addr>().unwrap().octets());
    for qfi in [Some(Qfi(9)), None] {
        session.qers[0].qfi = qfi;
        lab.install(&session);
        for length in (0..300).chain(1270..1300) {
            let payload: Vec<u8> = (0..length).map(|n| (n * 89 + length) as u8).collect();
            let inner = |ttl| ipv4(SERVER, UE, ttl, 17, &udp(7000, 5000, &payload));
            let (verdict, frame) = lab.run(&to_ue(&inner(64)));
            let marking: &[u8] = if qfi.is_some() { &[0, 0, 0, 0x85, 1, 0, 9, 0] } else { &[] };
            let flags = if qfi.is_some() { 0x34 } else { 0x30 };
            let octets = (marking.len() as u16 + inner(63).len() as u16).to_be_bytes();
            let header = [&[flags, 255, octets[0], octets[1], 0, 0, 2, 0], marking, &inner(63)].concat();
            let mut outer = ipv6(upf, gnb, 17, &udp(source_port(&inner(63)), 2152, &header));
            // Traffic class 46 << 2, and the flow label.
            (outer[0], outer[1]) = (0x6b, 0x80 | frame[15] & 0x0f);
            outer[2..4].copy_from_slice(&frame[16..18]);
            outer[46..48].copy_from_slice(&frame[14 + 46..14 + 48]);
            let link = ethernet(&[NEIGHBOUR, OWN].concat(), 0x86dd);
            assert_eq!((verdict, &frame), (REDIRECT, &[link, outer.clone()].concat()), "{length}");
            assert_eq!((sum_v6(&outer), outer[46..48] == [0, 0]), (0, false), "{length}");
        }
    }
}

/// The RQI is in the octet of the QFI, over both IP versions; uplink packets into a tunnel have none (TS 38.415 5.5.2).
#[test]
fn the_rqi_marks_downlink_packets_only() {
    let mut session = session();
    session.qers[0].rqi = true;
    let Some(mut lab) = lab(&session) else { return };
    for peer in ["172.16.0.2", "fd00::2"] {
        let to_gnb = Tunnel { peer: peer.parse().unwrap(), teid: Teid(0x200), dscp: None };
        session.fars[1].action = Action::Forward(Destination::Tunnel(to_gnb));
        for (rqi, mark) in [(true, 0x49), (false, 9)] {
            session.qers[0].rqi = rqi;
            lab.install(&session);
            let inner = ipv4(SERVER, UE, 64, 17, &udp(7000, 5000, b"hello"));
            let (verdict, frame) = lab.run(&to_ue(&inner));
            let outer = if to_gnb.peer.is_ipv4() { 20 } else { 40 };
            let at = 14 + outer + 8 + 8;
            assert_eq!((verdict, &frame[at..at + 8]), (REDIRECT, &[0, 0, 0, 0x85, 1, 0, mark, 0][..]));
            if outer == 40 {
                assert_eq!(sum_v6(&frame[14..]), 0);
            }
        }
    }
    let onward = Tunnel { peer: "172.16.0.2".parse().unwrap(), teid: Teid(0x900), dscp: None };
    session.fars[0].action = Action::Forward(Destination::Tunnel(onward));
    session.qers[0].rqi = true;
    lab.install(&session);
    let (verdict, frame) = lab.run(&tunnelled(&gpdu(TEID, &up(1))));
    assert_eq!((verdict, &frame[14 + 36..14 + 44]), (REDIRECT, &[0, 0, 0, 0x85, 1, 0x10, 9, 0][..]));
}

/// A session that forwards packets from a tunnel unchanged into another.
fn onward(peer: &str) -> Session {
    let mut session = session();
    let next = Tunnel { peer: peer.parse().unwrap(), teid: Teid(0x900), dscp: None };
    session.fars[0].action = Action::Forward(Destination::Tunnel(next));
    session.qers[0].qfi = None;
    session
}

#[test]
fn a_packet_forwarded_between_tunnels_keeps_its_qfi() {
    let Some(lab) = lab(&onward("172.16.0.2")) else { return };
    let length = (up(1).len() as u16 + 8).to_be_bytes();
    let header = [0x34, 255, length[0], length[1], 0, 0, 9, 0, 0, 0, 0, 0x85, 1, 0x10, 9, 0];
    let outer = ipv4(UPF, GNB, 64, 17, &udp(2152, 2152, &[&header[..], &up(1)].concat()));
    // No hop is decremented: nothing is routed.
    for _ in 0..2 {
        let (verdict, frame) = lab.run(&tunnelled(&gpdu(TEID, &up(1))));
        assert_eq!((verdict, without_id(frame)), sent(&outer));
    }
    let two = Traffic { packets: 2, bytes: 66 };
    assert_eq!((lab.counters().n3_in, lab.counters().n3_out), (two, two));
    assert_eq!(lab.volume(), Volume { uplink: 66, uplink_packets: 2, ..Volume::default() });
    lab.drops_only(
        &tunnelled(&gpdu(TEID, &ipv4([10, 45, 0, 3], SERVER, 64, 17, &[]))),
        DropReason::SpoofedSource,
    );
}

#[test]
fn a_packet_to_another_ue_is_tunnelled_with_decremented_ttl() {
    let mut to_itself = session();
    to_itself.fars[1].action =
        Action::Forward(Destination::Tunnel(Tunnel { peer: GNB.into(), teid: Teid(0x201), dscp: None }));
    let Some(lab) = lab(&to_itself) else { return };
    // A UE sends to itself as to any other UE.
    let packet = |ttl| ipv4(UE, UE, ttl, 17, &udp(5000, 7000, b"hello"));
    let length = (packet(1).len() as u16 + 8).to_be_bytes();
    let header = [&[0x34, 255, length[0], length[1], 0, 0, 2, 1, 0, 0, 0, 0x85, 1, 0, 9, 0], &packet(63)[..]];
    let outer = ipv4(UPF, GNB, 64, 17, &udp(2152, 2152, &header.concat()));
    let (verdict, frame) = lab.run(&tunnelled(&gpdu(TEID, &packet(64))));
    assert_eq!((verdict, without_id(frame)), sent(&outer));
    let both = Volume { uplink: 33, uplink_packets: 1, downlink: 33, downlink_packets: 1 };
    assert_eq!(lab.volume(), both);
    assert_eq!((lab.counters().n3_in.packets, lab.counters().n3_out.packets), (1, 1));
    lab.passes("the last hop", &tunnelled(&gpdu(TEID, &packet(1))));
}

#[test]
fn forbidden_packets_are_dropped_by_name_and_not_counted_as_usage() {
    let Some(mut lab) = lab(&session()) else { return };
    let spoofed = ipv4([10, 45, 0, 3], SERVER, 64, 17, &udp(1, 2, b"x"));
    lab.drops(&tunnelled(&gpdu(TEID, &spoofed)), DropReason::SpoofedSource);
    let mut closed = session();
    closed.qers[0].gates.uplink = Gate::Closed;
    closed.fars[1].action = Action::Drop;
    lab.install(&closed);
    lab.drops(&tunnelled(&gpdu(TEID, &up(64))), DropReason::GateClosed);
    lab.drops(&to_ue(&down(64)), DropReason::RuleDrop);
    let mut barred = session();
    barred.qers[0].mbr = Some(Rates { uplink: 0, downlink: 0 });
    barred.pdrs[1].filters = vec![SdfFilter { protocol: Some(6), ..SdfFilter::default() }];
    lab.install(&barred);
    lab.drops(&tunnelled(&gpdu(TEID, &up(64))), DropReason::RateExceeded);
    lab.drops(&to_ue(&down(64)), DropReason::NoRule);
    let mut used_up = session();
    used_up.urrs[0].quota.total = Some(0);
    lab.install(&used_up);
    lab.drops(&to_ue(&down(64)), DropReason::QuotaExhausted);
}

/// Routes by the server, to closed networks and to an open one.
fn route_everywhere() {
    for command in [
        "route add default via 172.17.0.2 dev n6",
        "-6 route add default via 2001:db8:46::2 dev n6",
        "route add 203.0.113.0/24 via 172.16.0.2 dev n3",
    ] {
        assert!(Command::new("ip").args(command.split(' ')).status().unwrap().success(), "{command}");
    }
}

#[test]
fn closed_destinations_are_dropped_by_name_and_not_counted_as_usage() {
    let Some(lab) = lab(&session()) else { return };
    route_everywhere();
    let to =
        |destination, kind| tunnelled(&gpdu(TEID, &ipv4(UE, destination, 64, kind, &udp(5000, 53, b"x"))));
    for destination in [
        [172, 16, 0, 2],
        [198, 18, 0, 1],
        [198, 19, 255, 255],
        [198, 51, 100, 9],
        [169, 254, 169, 254],
        // By an interface with gNBs only.
        [203, 0, 113, 9],
    ] {
        // UDP, SCTP, IP in IP.
        for kind in [17, 132, 4] {
            lab.drops(&to(destination, kind), DropReason::ClosedDestination);
        }
    }
    let [ue, core] = [[0x20, 1, 0xd, 0xb8, 0, 45, 0, 2], [0x20, 1, 0xd, 0xb8, 0, 0x99, 0, 0]]
        .map(|half: [u8; 8]| <[u8; 16]>::try_from([&half[..], &[9; 8]].concat()).unwrap());
    lab.drops(&tunnelled(&gpdu(TEID, &ipv6(ue, core, 17, &udp(1, 2, b"x")))), DropReason::ClosedDestination);
    // Later fragments and packets with options are dropped, too.
    let mut fragment = ipv4(UE, [198, 18, 0, 1], 64, 17, &[0; 8]);
    fragment[7] = 9;
    set_checksum(&mut fragment);
    lab.drops(&tunnelled(&gpdu(TEID, &fragment)), DropReason::ClosedDestination);
    for (what, destination) in [
        ("user space knows the permit", [198, 18, 7, 1]),
        ("another tenant's UE", [10, 46, 0, 2]),
        ("this host", [172, 17, 0, 1]),
        ("loopback", [127, 0, 0, 1]),
    ] {
        lab.passes(what, &to(destination, 17));
    }
    assert_eq!(lab.run(&to([192, 0, 2, 1], 17)).0, REDIRECT);
}

/// A full table must not open what it has no room for.
#[test]
fn user_space_decides_while_the_table_of_closed_destinations_is_full() {
    let Some(mut lab) = lab(&session()) else { return };
    route_everywhere();
    let table = lab.program.table("areas").unwrap();
    // struct area_key: addresses of 100.64.0.0/10.
    let key = |number: u32| {
        let address = (0x6440_0000 + number).to_be_bytes();
        [&64u32.to_ne_bytes()[..], &4u32.to_ne_bytes(), &address, &[0; 12]].concat()
    };
    let is_put = |number: &u32| table.update(&key(*number), &[0; 4], MapFlags::ANY).is_ok();
    let filled = (0..).take_while(is_put).count() as u32;
    let to = |destination| tunnelled(&gpdu(TEID, &ipv4(UE, destination, 64, 17, &udp(5000, 53, b"x"))));
    let closed: [[u8; 4]; 2] = [[192, 0, 2, 1], [192, 0, 2, 2]];
    let more = closed.map(std::net::IpAddr::from);
    let reach = Reach::compile(&boundary(), &[], &Host::default(), (&more, &[]));
    lab.areas.set_areas(&reach);
    lab.passes("closed, and not in the table", &to(closed[0]));
    lab.passes("open, but the table is not complete", &to([192, 0, 2, 3]));
    lab.drops(&to([198, 18, 0, 1]), DropReason::ClosedDestination);
    (0..filled).for_each(|number| table.delete(&key(number)).unwrap());
    lab.areas.set_areas(&reach);
    lab.drops(&to(closed[1]), DropReason::ClosedDestination);
    assert_eq!(lab.run(&to([192, 0, 2, 4])).0, REDIRECT);
}

#[test]
fn a_closed_gate_takes_precedence_over_a_closed_destination() {
    let mut closed = session();
    closed.qers[0].gates.uplink = Gate::Closed;
    let Some(lab) = lab(&closed) else { return };
    route_everywhere();
    let frame = tunnelled(&gpdu(TEID, &ipv4(UE, [198, 18, 0, 1], 64, 17, &udp(5000, 53, b"x"))));
    lab.drops(&frame, DropReason::GateClosed);
}

#[test]
fn gtpu_is_accepted_from_tunnel_peers() {
    let Some(mut lab) = lab(&session()) else { return };
    let from = |source: [u8; 4]| {
        let mut frame = tunnelled(&gpdu(TEID, &up(64)));
        frame[26..30].copy_from_slice(&source);
        set_checksum(&mut frame[14..34]);
        frame
    };
    lab.passes("the first, which user space reports", &from([172, 16, 0, 3]));
    lab.drops(&from([172, 16, 0, 3]), DropReason::UnknownPeer);
    assert_eq!(lab.counters().n3_in.packets, 1);
    for known in [GNB, [198, 51, 100, 77]] {
        assert_eq!(lab.run(&from(known)).0, REDIRECT, "{known:?}");
    }
    let mut idle = session();
    idle.fars[1].action = Action::Buffer { notify: true, packets: None };
    lab.install(&idle);
    assert_eq!(lab.run(&from([172, 16, 0, 3])).0, REDIRECT, "nobody knows yet whose it has to be");
}

#[test]
fn rare_packets_are_passed_to_user_space_unchanged() {
    let Some(lab) = lab(&session()) else { return };
    lab.passes("an echo request", &tunnelled(&[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 7, 0, 0]));
    lab.passes("an unknown TEID", &tunnelled(&gpdu(TEID + 1, &up(64))));
    lab.passes("the last hop, up", &tunnelled(&gpdu(TEID, &up(1))));
    lab.passes("the last hop, down", &to_ue(&down(1)));
    lab.passes("no IP", &tunnelled(&gpdu(TEID, b"no IP packet at all")));
    lab.passes("bytes after the packet", &tunnelled(&gpdu(TEID, &[up(64), vec![0]].concat())));
    lab.passes("too long for the UE", &to_ue(&ipv4(SERVER, UE, 64, 17, &[0; 1400])));
    lab.passes("not for a UE", &to_ue(&ipv4(SERVER, [10, 45, 0, 9], 64, 17, &[0; 40])));
    lab.passes("to another UE", &tunnelled(&gpdu(TEID, &ipv4(UE, [10, 45, 0, 9], 64, 17, &[0; 40]))));
    let mut required = gpdu(TEID, &up(64));
    required[11] = 0xc1;
    lab.passes("an extension header to be comprehended", &tunnelled(&required));
    for (what, kind, qfi) in
        [("time stamps", 0x18, 9), ("a paging policy", 0, 0x89), ("a type that nobody knows", 0x20, 9)]
    {
        let mut container = gpdu(TEID, &up(64));
        (container[13], container[14]) = (kind, qfi);
        lab.passes(&format!("a PDU Session Container without {what}"), &tunnelled(&container));
    }
    let mut header_too_long = ipv4(UE, SERVER, 64, 17, &[0; 20]);
    header_too_long[0] = 0x4f;
    lab.passes("an IP header longer than the packet", &tunnelled(&gpdu(TEID, &header_too_long)));
    let mut fragment = tunnelled(&gpdu(TEID, &up(64)));
    fragment[20] = 0x20;
    lab.passes("a fragment of a tunnel's packet", &fragment);
    let mut other_version = tunnelled(&gpdu(TEID, &up(64)));
    other_version[14] = 0x55;
    lab.passes("another version of IP", &other_version);
    lab.passes("a frame cut short", &tunnelled(&gpdu(TEID, &up(64)))[..60]);
    lab.passes("another protocol", &[ethernet(&TO_US, 0x806), vec![0; 46]].concat());
}

/// The ring has room for 73 events: the quotas of further sessions are reported once it has been read.
#[test]
fn a_limit_that_the_full_ring_could_not_report_is_reported_by_a_later_packet() {
    let limited = |number: u32| {
        let mut session = session();
        session.id = SessionId(u64::from(number));
        session.ue = UeAddress::v4([10, 45, 1, number as u8].into());
        session.pdrs[0].source = Source::Tunnel { teid: Teid(number), direction: Direction::Uplink };
        session.urrs[0].quota.total = Some(1);
        session
    };
    let packet = |number: u32| {
        let source = [10, 45, 1, number as u8];
        tunnelled(&gpdu(number, &ipv4(source, SERVER, 64, 17, &udp(5000, 7000, b"x"))))
    };
    const SESSIONS: u32 = 75;
    let Some(mut lab) = lab(&limited(1)) else { return };
    (2..=SESSIONS).for_each(|number| lab.install(&limited(number)));
    let mut events = Events::new(&lab.program).unwrap();
    for number in 1..=SESSIONS {
        assert_eq!(lab.run(&packet(number)).0, REDIRECT, "{number}");
    }
    let read = |events: &mut Events| {
        let mut found = Vec::new();
        events.drain_into(&mut found);
        let session = |event: &Event| match event {
            Event::Usage { session, .. } => session.0,
            other => panic!("{other:?}"),
        };
        found.iter().map(session).collect::<Vec<_>>()
    };
    let reported = read(&mut events);
    assert!(reported.len() < SESSIONS as usize, "the ring was never full");
    for number in 1..=SESSIONS {
        assert_eq!(lab.run(&packet(number)).0, DROP, "{number}");
    }
    let all: Vec<_> = reported.into_iter().chain(read(&mut events)).collect();
    assert_eq!(all, (1..=u64::from(SESSIONS)).collect::<Vec<_>>(), "each once, in order");
}

#[test]
fn a_rule_is_chosen_by_its_filters_in_their_order() {
    let mut session = session();
    let text = "permit out 17 from 172.17.0.0/24 7000-7009 to assigned 5000";
    let mut special = Pdr { id: PdrId(3), precedence: 1, far: FarId(3), ..session.pdrs[1].clone() };
    special.filters = text.parse::<FlowDescription>().unwrap().filters;
    let mut upward = Pdr { id: PdrId(4), qfis: vec![Qfi(9)], ..session.pdrs[0].clone() };
    upward.filters = special.filters.clone();
    upward.far = FarId(3);
    session.pdrs.extend([special, upward]);
    session.pdrs[0].precedence = 900;
    session.fars.push(Far { id: FarId(3), action: Action::Drop });
    session.qers.push(Qer { id: QerId(2), qfi: Some(Qfi(8)), ..session.qers[0].clone() });
    let Some(lab) = lab(&session) else { return };
    let from = |source, port, to| to_ue(&ipv4(source, UE, 64, 17, &udp(port, to, b"x")));
    for (frame, verdict) in [
        (from(SERVER, 7000, 5000), DROP),
        (from(SERVER, 7009, 5000), DROP),
        (from(SERVER, 7010, 5000), REDIRECT),
        (from(SERVER, 7000, 5001), REDIRECT),
        (from([172, 17, 1, 2], 7000, 5000), REDIRECT),
        (to_ue(&ipv4(SERVER, UE, 64, 6, &udp(7000, 5000, b"x"))), REDIRECT),
        (tunnelled(&gpdu(TEID, &up(64))), DROP),
        // The packet has no ports; its frame's padding looks like ports.
        ([to_ue(&ipv4(SERVER, UE, 64, 17, &[])), udp(7000, 5000, &[0; 30])].concat(), REDIRECT),
    ] {
        assert_eq!(lab.run(&frame).0, verdict, "{frame:02x?}");
    }
    let mut other_flow = gpdu(TEID, &up(64));
    other_flow[14] = 8;
    assert_eq!(lab.run(&tunnelled(&other_flow)).0, REDIRECT);
}

/// TS 23.501 5.7.1.7: by the rule without filters and by several, and at once after a change of flows.
#[test]
fn a_packet_with_a_qfi_of_no_flow_of_its_session_is_dropped() {
    let marked = |qfi| {
        let mut message = gpdu(TEID, &up(64));
        message[14] = qfi;
        tunnelled(&message)
    };
    let Some(mut lab) = lab(&session()) else { return };
    for qfi in [0, 8, 10, 63] {
        lab.drops(&marked(qfi), DropReason::UnknownQfi);
    }
    let mut other_source = gpdu(TEID, &ipv4([10, 45, 0, 3], SERVER, 64, 17, &[]));
    other_source[14] = 8;
    lab.drops(&tunnelled(&other_source), DropReason::UnknownQfi);
    assert_eq!(lab.run(&marked(9)).0, REDIRECT);
    let bare = [&[0x30, 255, 0, up(64).len() as u8], &TEID.to_be_bytes()[..], &up(64)].concat();
    assert_eq!(lab.run(&tunnelled(&bare)).0, REDIRECT, "without a PDU Session Container");

    let mut with_flow = session();
    let filters =
        "permit out 17 from 172.17.0.0/24 7000 to assigned".parse::<FlowDescription>().unwrap().filters;
    let flow = Pdr {
        id: PdrId(3),
        precedence: 1,
        filters,
        qfis: vec![Qfi(8)],
        qers: vec![QerId(2)],
        ..with_flow.pdrs[0].clone()
    };
    with_flow.pdrs.push(flow);
    with_flow.qers.push(Qer { id: QerId(2), qfi: Some(Qfi(8)), ..with_flow.qers[0].clone() });
    lab.install(&with_flow);
    for qfi in [8, 9] {
        assert_eq!(lab.run(&marked(qfi)).0, REDIRECT, "{qfi}");
    }
    lab.drops_only(&marked(10), DropReason::UnknownQfi);
    lab.install(&Session { former_qfis: vec![Qfi(8)], ..session() });
    assert_eq!(lab.run(&marked(8)).0, REDIRECT, "of a flow that was there until now");
    lab.install(&session());
    lab.drops_only(&marked(8), DropReason::UnknownQfi);
}

#[test]
fn a_upf_between_gnb_and_anchor_passes_packets_of_any_flow() {
    let mut onward = onward("172.16.0.2");
    onward.qers[0].qfi = Some(Qfi(9));
    let Some(lab) = lab(&onward) else { return };
    let mut message = gpdu(TEID, &up(64));
    message[14] = 8;
    assert_eq!(lab.run(&tunnelled(&message)).0, REDIRECT);
}

/// Two sessions whose TEIDs, addresses and prefixes have the same low bits, and therefore the same set.
#[test]
fn sessions_with_colliding_keys_are_found() {
    let Some(mut lab) = lab(&session()) else { return };
    let mut other = session();
    other.id = SessionId(2);
    let prefix = "2001:db9:2d:2::".parse().unwrap();
    other.ue = UeAddress { v4: Some([10, 45, 0x40, 2].into()), ..UeAddress::v6(prefix) };
    other.pdrs[0].source = Source::Tunnel { teid: Teid(TEID + 0x4000), direction: Direction::Uplink };
    let rules = lab.sessions.install(&other).rules;
    let publish = |lab: &mut Lab, before| {
        let compiled = compile(&rules, N3, Some(0));
        lab.tables.publish(compiled, std::sync::Arc::clone(&rules), State::Forward, before).unwrap()
    };
    let first = publish(&mut lab, None);
    let second = publish(&mut lab, Some(first));
    let server = "2001:db8:46::2".parse::<std::net::Ipv6Addr>().unwrap().octets();
    let down_v6 = |ue: &str| {
        let packet = ipv6(server, ue.parse::<std::net::Ipv6Addr>().unwrap().octets(), 17, &udp(2, 1, b"x"));
        [ethernet(&TO_US, 0x86dd), packet].concat()
    };
    let of_other = |teid| tunnelled(&gpdu(teid, &ipv4([10, 45, 0x40, 2], SERVER, 64, 17, &udp(5, 7, b"x"))));
    let verdicts = |lab: &Lab| {
        [
            lab.run(&tunnelled(&gpdu(TEID, &up(64)))).0,
            lab.run(&to_ue(&down(64))).0,
            lab.run(&down_v6("2001:db8:2d:2::1")).0,
            lab.run(&of_other(TEID + 0x4000)).0,
            lab.run(&to_ue(&ipv4(SERVER, [10, 45, 0x40, 2], 64, 17, &udp(7, 5, b"x")))).0,
            lab.run(&down_v6("2001:db9:2d:2::1")).0,
        ]
    };
    assert_eq!(lab.run(&of_other(TEID)).0, DROP, "another's source");
    assert_eq!(verdicts(&lab), [REDIRECT; 6]);
    lab.tables.withdraw(second);
    assert_eq!(verdicts(&lab), [REDIRECT, REDIRECT, REDIRECT, PASS, PASS, PASS]);
}

#[test]
fn any_frame_is_counted_once_or_passed_unchanged() {
    let Some(lab) = lab(&session()) else { return };
    let seeds = [tunnelled(&gpdu(TEID, &up(64))), to_ue(&down(64)), tunnelled(&gpdu(TEID, &up(1)))];
    let mut random = Random::of(1);
    let mut next = |below| random.below(below);
    let mut verdicts = [0u64; 5];
    for _ in 0..100_000 {
        let mut frame = seeds[next(seeds.len())].clone();
        for _ in 0..next(4) {
            let at = next(frame.len());
            frame[at] = next(256) as u8;
        }
        if next(8) == 0 {
            frame.truncate(14 + next(frame.len() - 14));
        }
        let (verdict, out) = lab.run(&frame);
        verdicts[verdict as usize] += 1;
        assert!(verdict != PASS || out == frame, "{frame:02x?}");
    }
    let Counters { n3_in, n3_out, n6_in, n6_out, dropped, .. } = lab.counters();
    let dropped: u64 = dropped.iter().map(|(_, count)| count).sum();
    assert_eq!((dropped, n3_out.packets + n6_out.packets), (verdicts[1], verdicts[4]));
    assert_eq!(n3_in.packets + n6_in.packets, verdicts[1] + verdicts[4]);
    assert!(verdicts[1] > 100 && verdicts[2] > 10_000 && verdicts[4] > 10_000, "{verdicts:?}");
    let volume = lab.volume();
    assert_eq!((volume.uplink, volume.downlink), (n6_out.bytes, n3_out.bytes));
}

#[test]
fn advice_mentions_privileges_only_if_they_are_missing() {
    use super::{has_privileges, load_advice};
    use libbpf_rs::ErrorKind;
    let status = |effective: &str| format!("Name:\tpith\nCapInh:\t0\nCapEff:\t{effective}\nCapBnd:\t0\n");
    assert_eq!(has_privileges(&status("000001ffffffffff")), Some(true));
    assert_eq!(has_privileges(&status("0000008000001000")), Some(true), "CAP_BPF and CAP_NET_ADMIN");
    assert_eq!(has_privileges(&status("0000000000001000")), Some(false));
    assert_eq!(has_privileges("Name:\tpith\n"), None);
    assert!(load_advice(ErrorKind::PermissionDenied, Some(false)).contains("run as root"));
    for kind in [ErrorKind::PermissionDenied, ErrorKind::InvalidInput] {
        assert!(!load_advice(kind, Some(true)).contains("run as root"));
    }
}
