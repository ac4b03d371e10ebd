//! User packets: mostly valid, some with an anomaly.

use super::cast::{
    Cast, GATEWAY_V6, GNB_V6, LOCAL_PORTS, Member, REMOTE_PORTS, REMOTE_V4, REMOTE_V6, UPF_V6,
};
use super::lasting::{self, CONNECTIONS};
use super::nat::INBOUND;
use super::octets::{V4, V6, octets_of, set_v4_checksum, sum, transport_sum, udp};
use crate::support::random::Random;
use crate::support::{GATEWAY, GNB, UPF, UPF_N6};
use pith_upf::contract::Direction;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// With NAT, remote hosts of other packets than those of connections that last have this bit in their last octet.
const OTHERS: u8 = 0x10;
/// Longest payload of a packet that is never fragmented.
const LONGEST: usize = 1280;

/// Source and destination of a packet.
struct Ends {
    source: IpAddr,
    destination: IpAddr,
    ports: [u16; 2],
    /// Of a connection with NAT that lasts, and the UE's identifier for Echo.
    lasts: bool,
    direction: Direction,
    echo: Option<(Direction, u16)>,
}

/// A packet from or for a UE.
pub fn packet(
    random: &mut Random,
    cast: &Cast,
    member: &Member,
    direction: Direction,
    number: u64,
) -> Vec<u8> {
    if random.once_in(200) {
        let length = random.below(80);
        return random.octets(length);
    }
    let ends = ends(random, cast, member, direction);
    let payload = payload(random, number);
    let (protocol, mut transport) = transport(random, &ends, &payload);
    if random.once_in(10) {
        transport.truncate(random.below(transport.len() + 1));
    }
    let mut packet = match (ends.source, ends.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            v4(random, (source, destination), protocol, &transport)
        }
        _ => v6(random, &ends, protocol, transport),
    };
    distort(random, &mut packet);
    packet
}

/// Contains the packet's number, so that all packets differ.
fn payload(random: &mut Random, number: u64) -> Vec<u8> {
    let length = match random.below(16) {
        0..9 => random.below(64),
        9..15 => random.below(LONGEST),
        _ => LONGEST - random.below(40),
    };
    let mut payload = number.to_be_bytes().to_vec();
    payload.extend((0..length).map(|at| (at as u64 * 31 + number) as u8));
    payload
}

fn ends(random: &mut Random, cast: &Cast, member: &Member, direction: Direction) -> Ends {
    let v6 = random.once_in(3);
    let mut local = address_of(random, member, v6);
    let translated = cast.nat.is_some() && !v6;
    let mut remote = match random.below(24) {
        0 | 1 => other(random, cast, v6),
        2 => special(random, v6),
        3 => core(random, v6),
        _ if translated => Ipv4Addr::new(198, 51, 100, random.octet() & !INBOUND | OTHERS).into(),
        _ => beyond(random, v6),
    };
    match random.below(40) {
        0 => local = other(random, cast, v6),
        1 => local = special(random, v6),
        2 => local = beyond(random, v6),
        _ => {}
    }
    let within = |random: &mut Random, [first, last]: [u16; 2]| {
        let odd = random.once_in(4);
        if odd { random.number() as u16 } else { first + random.below(usize::from(last - first) + 1) as u16 }
    };
    let mut ports = [within(random, LOCAL_PORTS), within(random, REMOTE_PORTS)];
    let mut lasts = false;
    if translated && !random.once_in(8) {
        let number = random.below(CONNECTIONS);
        let (own, last) = lasting::ends_of(number);
        (ports, lasts) = (own, true);
        if matches!(remote, IpAddr::V4(v4) if v4.octets()[..3] == REMOTE_V4) {
            remote = Ipv4Addr::new(198, 51, 100, last).into();
        }
    }
    let echo = translated.then_some((direction, ports[0]));
    match direction {
        Direction::Uplink => Ends { source: local, destination: remote, ports, lasts, direction, echo },
        Direction::Downlink => {
            Ends { source: remote, destination: local, ports: [ports[1], ports[0]], lasts, direction, echo }
        }
    }
}

fn address_of(random: &mut Random, member: &Member, v6: bool) -> IpAddr {
    if v6 {
        Ipv6Addr::from_bits(member.v6.to_bits() + u128::from(random.number() | 1)).into()
    } else {
        member.v4.into()
    }
}

fn other(random: &mut Random, cast: &Cast, v6: bool) -> IpAddr {
    let member = cast.any(random);
    address_of(random, member, v6)
}

fn beyond(random: &mut Random, v6: bool) -> IpAddr {
    let [a, b, c] = REMOTE_V4;
    if v6 {
        Ipv6Addr::from_bits(REMOTE_V6.to_bits() + 1 + random.below(200) as u128).into()
    } else {
        Ipv4Addr::new(a, b, c, random.octet()).into()
    }
}

/// Invalid or special addresses.
fn special(random: &mut Random, v6: bool) -> IpAddr {
    const V4: [Ipv4Addr; 9] = [
        Ipv4Addr::UNSPECIFIED,
        Ipv4Addr::LOCALHOST,
        Ipv4Addr::BROADCAST,
        Ipv4Addr::new(224, 0, 0, 1),
        Ipv4Addr::new(10, 45, 255, 255),
        Ipv4Addr::new(10, 45, 0, 0),
        Ipv4Addr::new(169, 254, 1, 1),
        GATEWAY,
        UPF_N6,
    ];
    const V6: [Ipv6Addr; 7] = [
        Ipv6Addr::UNSPECIFIED,
        Ipv6Addr::LOCALHOST,
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2),
        Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, 2),
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9),
        GATEWAY_V6,
    ];
    if v6 { random.pick(&V6).into() } else { random.pick(&V4).into() }
}

/// The UPF and gNBs on N3, and other forms of loopback.
fn core(random: &mut Random, v6: bool) -> IpAddr {
    const V4: [Ipv4Addr; 3] = [UPF, GNB, Ipv4Addr::new(172, 16, 0, 99)];
    const V6: [Ipv6Addr; 4] = [
        UPF_V6,
        GNB_V6,
        Ipv4Addr::new(127, 0, 0, 1).to_ipv6_mapped(),
        Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0xac10, 2),
    ];
    if v6 { random.pick(&V6).into() } else { random.pick(&V4).into() }
}

/// A protocol and its message.
fn transport(random: &mut Random, ends: &Ends, payload: &[u8]) -> (u8, Vec<u8>) {
    match random.below(20) {
        0..9 => (17, udp((ends.source, ends.ports[0]), (ends.destination, ends.ports[1]), payload)),
        9..14 => (6, tcp(random, ends, payload)),
        14 | 15 => (if ends.source.is_ipv6() { 58 } else { 1 }, icmp(random, ends, payload)),
        16 => {
            let spi = random.pick(&[0, 7, 8, u32::MAX]);
            (50, [&spi.to_be_bytes()[..], &random.number().to_be_bytes(), payload].concat())
        }
        17 => {
            let ports = ends.ports.map(u16::to_be_bytes).concat();
            (132, [&ports[..], &random.number().to_be_bytes(), payload].concat())
        }
        18 => (51, [&[59, 4, 0, 0, 0, 0, 0, 7][..], &[0; 16], payload].concat()),
        // No extension headers at random: they are built explicitly.
        _ => (random.pick(&[2, 4, 41, 47, 59, 89, 103, 253]), payload.to_vec()),
    }
}

fn tcp(random: &mut Random, ends: &Ends, payload: &[u8]) -> Vec<u8> {
    let words = 5 + random.below(3);
    let mut segment = ends.ports.map(u16::to_be_bytes).concat();
    segment.extend(random.number().to_be_bytes());
    segment.extend([
        (words as u8) << 4,
        if ends.lasts && ends.ports.iter().all(|port| !lasting::MAY_END.contains(port)) {
            random.pick(&[0x10, 0x18])
        } else {
            random.pick(&[0x10, 0x18, 0x02, 0x11, 0x04, 0xff])
        },
        1,
        0,
        0,
        0,
        0,
        0,
    ]);
    segment.resize(words * 4, 1);
    segment.extend(payload);
    let checksum = !transport_sum(ends.source, ends.destination, 6, &segment);
    segment[16..18].copy_from_slice(&checksum.to_be_bytes());
    segment
}

/// Of types on which no host acts: this UPF's host would take others as news about its routes.
fn icmp(random: &mut Random, ends: &Ends, payload: &[u8]) -> Vec<u8> {
    if let Some((direction, id)) = ends.echo {
        let kind = if direction == Direction::Uplink { 8 } else { 0 };
        let mut message = [&[kind, 0, 0, 0][..], &id.to_be_bytes(), &[0, 1], payload].concat();
        let checksum = !sum(&[&message]);
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        return message;
    }
    if ends.direction == Direction::Uplink && random.once_in(3) {
        return icmp_error(random, ends, payload);
    }
    let kind = random.pick(&[8, 0, 128, 129]);
    [&[kind, 0, random.octet(), random.octet(), 0, 1, 0, 1][..], payload].concat()
}

/// An error of a UE about a packet to an address that it may have, or to another one.
fn icmp_error(random: &mut Random, ends: &Ends, payload: &[u8]) -> Vec<u8> {
    let to = if random.once_in(3) { ends.destination } else { ends.source };
    let from = ends.destination;
    let quoted = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let (source, destination) = (from.octets(), to.octets());
            let header = V4 { source, destination, ..super::case::header() };
            header.before(payload)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let (source, destination) = (from.octets(), to.octets());
            V6 { source, destination, next: 17, class: 0, hops: 64 }.before(payload)
        }
        _ => payload.to_vec(),
    };
    let kind = if from.is_ipv6() { random.pick(&[1, 2, 3, 4]) } else { random.pick(&[3, 4, 11, 12]) };
    [&[kind, 0, random.octet(), random.octet(), 0, 0, 0, 0][..], &quoted].concat()
}

fn hops(random: &mut Random) -> u8 {
    if random.once_in(24) { random.pick(&[0, 1, 2, 255]) } else { 64 }
}

fn v4(
    random: &mut Random,
    (source, destination): (Ipv4Addr, Ipv4Addr),
    protocol: u8,
    transport: &[u8],
) -> Vec<u8> {
    let options = match random.below(40) {
        0..4 => vec![1; 4 * (1 + random.below(10))],
        4 => {
            let words = 1 + random.below(10);
            let kind = random.pick(&[0, 7, 68, 131, 137, 148, 130, 255]);
            [vec![kind, random.octet(), 4, 0], random.octets(words * 4 - 4)].concat()
        }
        _ => Vec::new(),
    };
    let fragment = match random.below(24) {
        0 => 0x2000,
        1 => 0x2000 | (1 + random.below(180)) as u16,
        2 => (1 + random.below(8000)) as u16,
        3..14 => 0x4000,
        _ => 0,
    };
    let header = V4 {
        source: source.octets(),
        destination: destination.octets(),
        protocol,
        tos: if random.once_in(4) { random.octet() } else { 0 },
        id: random.number() as u16,
        fragment,
        ttl: hops(random),
        options,
    };
    header.before(transport)
}

/// Some with a chain of extension headers.
fn v6(random: &mut Random, ends: &Ends, protocol: u8, mut rest: Vec<u8>) -> Vec<u8> {
    let mut next = protocol;
    let mut chain = Vec::new();
    if random.once_in(3) {
        let many = if random.once_in(12) { 10 } else { 4 };
        chain = (0..1 + random.below(many)).map(|_| random.pick(&[43, 44, 60, 60])).collect();
    }
    for kind in chain {
        rest = [extension(random, kind, next), rest].concat();
        next = kind;
    }
    if random.once_in(8) {
        let odd = random.once_in(4);
        let head = if odd { extension(random, 60, next) } else { vec![next, 0, 1, 4, 0, 0, 0, 0] };
        rest = [head, rest].concat();
        next = 0;
    }
    let octets = |address: IpAddr| octets_of(address).try_into().unwrap_or([0; 16]);
    let header = V6 {
        source: octets(ends.source),
        destination: octets(ends.destination),
        next,
        class: if random.once_in(4) { random.number() as u32 } else { 0 },
        hops: hops(random),
    };
    header.before(&rest)
}

fn extension(random: &mut Random, kind: u8, next: u8) -> Vec<u8> {
    if kind == 44 {
        let offset = if random.once_in(2) { 0 } else { 8 * random.below(100) as u16 };
        let offset = (offset | random.pick(&[0, 1])).to_be_bytes();
        return [&[next, 0][..], &offset, &random.octets(4)].concat();
    }
    let units = if random.once_in(6) { random.below(5) as u8 } else { 0 };
    // Padding, or an option that must not be skipped; in a routing header, no segments left.
    let first = if random.once_in(6) { random.octet() } else { 1 };
    let mut header = vec![next, units, if kind == 43 { 4 } else { first }, if kind == 43 { 0 } else { 4 }];
    header.resize(8 + 8 * usize::from(units), 0);
    header
}

/// Wrong lengths and checksums, truncation, and trailing octets.
fn distort(random: &mut Random, packet: &mut Vec<u8>) {
    let v4 = packet[0] >> 4 == 4;
    match random.below(60) {
        0 => {
            let at = if v4 { 2 } else { 4 };
            let length = u16::from_be_bytes([packet[at], packet[at + 1]]);
            let wrong =
                random.pick(&[0, 1, 19, 20, 24, length.wrapping_sub(1), length.wrapping_add(1), 0xffff]);
            packet[at..at + 2].copy_from_slice(&wrong.to_be_bytes());
            if v4 {
                set_v4_checksum(packet);
            }
        }
        1 if v4 => packet[10] = packet[10].wrapping_add(1),
        2 if v4 => {
            let words = random.below(16) as u8;
            packet[0] = 0x40 | words;
            if usize::from(words) * 4 <= packet.len() && words >= 5 {
                set_v4_checksum(packet);
            }
        }
        3 => packet[0] = packet[0] & 15 | random.octet() & 0xf0,
        4 => packet.truncate(random.below(packet.len() + 1)),
        5 => {
            let more = 1 + random.below(40);
            packet.extend(random.octets(more));
        }
        _ => {}
    }
}
