//! Packets of connections with NAT: those with which connections begin, and ICMP errors about them.

use super::case::{Case, framed, header};
use super::cast::{Cast, Member};
use super::lasting::{self, Step};
use super::nat::Nat;
use super::octets::{V4, sum, transport_sum, udp};
use super::oracle::Side;
use super::tunnel;
use crate::support::conntrack::{Connection, ICMP, TCP, UDP};
use crate::support::random::Random;
use crate::support::{GNB, UPF};
use pith_upf::contract::Direction;
use std::net::{IpAddr, Ipv4Addr};

const SYN: u8 = 2;
const SYN_ACK: u8 = 0x12;
const ACK: u8 = 0x10;

/// The packets of one step of each session's connection of that number. TCP connections of `begun` do not begin again, and
/// those that may end at any time begin in the course of things.
pub fn opening(
    first: u64,
    step: Step,
    number: usize,
    cast: &Cast,
    begun: &Nat,
    links: &[[u8; 6]; 2],
) -> Vec<Case> {
    let is_tcp = matches!(step, Step::Syn | Step::SynAck | Step::Ack);
    let is_wanted = |member: &&Member| {
        let connection = connection(TCP, member, number);
        !is_tcp || lasting::is_steady(&connection) && !begun.knows(&connection)
    };
    let case = |member| one(first, step, number, member, cast, links);
    cast.members.iter().filter(is_wanted).map(case).collect()
}

fn connection(protocol: u8, member: &Member, number: usize) -> Connection {
    let ([own, far], last) = lasting::ends_of(number);
    Connection { protocol, ue: (member.v4, own), remote: (Ipv4Addr::new(198, 51, 100, last), far) }
}

fn one(first: u64, step: Step, number: usize, member: &Member, cast: &Cast, links: &[[u8; 6]; 2]) -> Case {
    let packet = packet(first, step, connection(TCP, member, number));
    let case = match step.direction() {
        Direction::Uplink => {
            let message = tunnel::plain_gpdu(member.teid, &packet);
            let outer = V4 { source: GNB.octets(), destination: UPF.octets(), ..header() };
            let outer = outer.before(&udp((GNB.into(), 2152), (UPF.into(), 2152), &message));
            Case::of_frame(cast, first, Side::Radio, framed(&links[0], &outer), &links[0])
        }
        Direction::Downlink => {
            Case::of_frame(cast, first, Side::Network, framed(&links[1], &packet), &links[1])
        }
    };
    Case { verdict: case.verdict.first(), ..case }
}

fn packet(first: u64, step: Step, connection: Connection) -> Vec<u8> {
    let Connection { ue, remote, .. } = connection;
    let (from, to) = if step.direction() == Direction::Uplink { (ue, remote) } else { (remote, ue) };
    // No two are the same, so that it is known which came.
    let own = u32::from(ue.0.octets()[3]) << 16 | u32::from(ue.1);
    let payload = [&b"opening"[..], &[step as u8], &first.to_be_bytes(), &own.to_be_bytes()].concat();
    let ends = [(IpAddr::from(from.0), from.1), (IpAddr::from(to.0), to.1)];
    let (protocol, transport) = match step {
        Step::UdpUp | Step::UdpDown => (UDP, udp(ends[0], ends[1], &payload)),
        Step::EchoUp => (ICMP, icmp([8, 0], [ue.1, 1], &payload)),
        Step::EchoDown => (ICMP, icmp([0, 0], [ue.1, 1], &payload)),
        Step::Syn => (TCP, tcp(ends, [own, 0], SYN, &[])),
        Step::SynAck => (TCP, tcp(ends, [own, own + 1], SYN_ACK, &[])),
        Step::Ack => (TCP, tcp(ends, [own + 1, own + 1], ACK, &payload)),
    };
    V4 { source: from.0.octets(), destination: to.0.octets(), protocol, ..header() }.before(&transport)
}

fn tcp(ends: [(IpAddr, u16); 2], numbers: [u32; 2], flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut segment = ends.map(|(_, port)| port.to_be_bytes()).concat();
    segment.extend(numbers.map(u32::to_be_bytes).concat());
    segment.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend(payload);
    let checksum = !transport_sum(ends[0].0, ends[1].0, TCP, &segment);
    segment[16..18].copy_from_slice(&checksum.to_be_bytes());
    segment
}

fn icmp(kind: [u8; 2], words: [u16; 2], body: &[u8]) -> Vec<u8> {
    let mut message = [&kind[..], &[0, 0], &words.map(u16::to_be_bytes).concat(), body].concat();
    let checksum = !sum(&[&message]);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message
}

/// An ICMP error about a packet of a UE, from its destination or a router on the way (RFC 792).
pub fn error(random: &mut Random, member: &Member, number: u64) -> Vec<u8> {
    let Connection { ue, remote, .. } = connection(UDP, member, random.below(lasting::CONNECTIONS));
    // Sometimes about a connection that is not there.
    let port = if random.once_in(4) { random.number() as u16 } else { ue.1 };
    let datagram = udp((ue.0.into(), port), (remote.0.into(), remote.1), &number.to_be_bytes());
    let sent =
        V4 { source: ue.0.octets(), destination: remote.0.octets(), ttl: 60, ..header() }.before(&datagram);
    let quoted = &sent[..28 + random.pick(&[0, 4, 8])];
    let (kind, mtu) = random.pick(&[([3, 1], 0), ([3, 3], 0), ([3, 4], 1400), ([11, 0], 0)]);
    let reporter = random.pick(&[remote.0, Ipv4Addr::new(198, 51, 100, 99)]);
    let header = V4 {
        source: reporter.octets(),
        destination: ue.0.octets(),
        protocol: ICMP,
        id: number as u16,
        ..header()
    };
    header.before(&icmp(kind, [number as u16, mtu], quoted))
}
