//! Packets of gNBs: GTP-U around user packets, and frames around GTP-U; mostly valid.

use super::cast::{Cast, GNB_V6, MEMBERS, Member, UPF_V6};
use super::inner;
use super::octets::{V4, V6, udp};
use crate::support::random::Random;
use crate::support::{GNB, QFI, UPF};
use pith_upf::contract::Direction;
use std::net::{IpAddr, Ipv4Addr};

const GTPU_PORT: u16 = 2152;
const STRANGER: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 3);
/// Longest IP packet in a frame.
pub const MTU: usize = 1500;

/// A GTP-U message.
pub fn message(random: &mut Random, cast: &Cast, number: u64) -> Vec<u8> {
    let member = cast.any(random);
    let mut message = match random.below(40) {
        0 => signalling(random, member),
        1 => long_gpdu(random, member, number),
        _ => {
            let packet = inner::packet(random, cast, member, Direction::Uplink, number);
            let teid = teid(random, member);
            gpdu(random, teid, &packet)
        }
    };
    distort(random, &mut message);
    message
}

fn teid(random: &mut Random, member: &Member) -> u32 {
    match random.below(60) {
        0 => random.number() as u32,
        1 => random.pick(&[0, u32::MAX, 0x100 + MEMBERS as u32, member.gnb_teid]),
        _ => member.teid,
    }
}

/// A user packet that is too long for a frame, but perhaps not for a tunnel.
fn long_gpdu(random: &mut Random, member: &Member, number: u64) -> Vec<u8> {
    let longest = if random.once_in(16) { 60_000 } else { 4000 };
    let mut payload = number.to_be_bytes().to_vec();
    payload.resize(1300 + random.below(longest - 1300), number as u8);
    let (local, remote) = (IpAddr::V4(member.v4), IpAddr::V4(Ipv4Addr::new(198, 51, 100, random.octet())));
    let header = V4 {
        source: member.v4.octets(),
        destination: remote_octets(remote),
        protocol: 17,
        tos: 0,
        id: number as u16,
        fragment: random.pick(&[0, 0x4000]),
        ttl: 64,
        options: Vec::new(),
    };
    gpdu(random, member.teid, &header.before(&udp((local, 5000), (remote, 7000), &payload)))
}

fn remote_octets(address: IpAddr) -> [u8; 4] {
    match address {
        IpAddr::V4(v4) => v4.octets(),
        IpAddr::V6(_) => [0; 4],
    }
}

fn gpdu(random: &mut Random, teid: u32, packet: &[u8]) -> Vec<u8> {
    match random.below(16) {
        0 | 1 => gtpu(0x30, 255, teid, packet),
        2 => {
            let flags = 0x30 | random.pick(&[1, 2, 3]);
            let options = random.octets(4);
            gtpu(flags, 255, teid, &[&options, packet].concat())
        }
        3 | 4 => {
            let chain = chain(random);
            gtpu(0x34 | random.below(4) as u8, 255, teid, &[&chain, packet].concat())
        }
        _ => plain_gpdu(teid, packet),
    }
}

/// As most gNBs send it.
pub fn plain_gpdu(teid: u32, packet: &[u8]) -> Vec<u8> {
    gtpu(0x34, 255, teid, &[&[0, 0, 0, 0x85, 1, 0x10, QFI, 0][..], packet].concat())
}

fn gtpu(flags: u8, kind: u8, teid: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u16).to_be_bytes();
    [&[flags, kind, length[0], length[1]][..], &teid.to_be_bytes(), body].concat()
}

/// Optional fields and a chain of extension headers: known and unknown ones, some with required
/// comprehension.
fn chain(random: &mut Random) -> Vec<u8> {
    const OPTIONAL: [u8; 5] = [0x85, 0x40, 0x03, 0x20, 0x7f];
    let demanding = random.once_in(6);
    let kinds: Vec<u8> = (0..1 + random.below(6))
        .map(
            |_| if demanding { random.pick(&[0x85, 0x81, 0xc0, 0xff, 0x03]) } else { random.pick(&OPTIONAL) },
        )
        .collect();
    let mut out = vec![random.octet(), random.octet(), 0, kinds[0]];
    for (at, kind) in kinds.iter().enumerate() {
        let next = kinds.get(at + 1).copied().unwrap_or(0);
        let content = if *kind == 0x85 { container(random) } else { random.octets(2) };
        let units = (content.len() + 2).div_ceil(4);
        let units = if random.once_in(40) { random.below(4) } else { units };
        out.push(units as u8);
        out.extend(&content);
        out.resize(out.len() + (units * 4).saturating_sub(content.len() + 2), 0);
        out.push(next);
    }
    out
}

/// A PDU Session Container of any type, with a correct or incorrect length.
fn container(random: &mut Random) -> Vec<u8> {
    let qfi = if random.once_in(4) { random.octet() & 0x3f } else { QFI };
    match random.below(8) {
        0 => vec![0, qfi],
        1 => vec![0, 0x80 | qfi],
        2 => vec![0, 0x80 | qfi, 0x20, 0, 0, 0],
        3 => vec![0x18, qfi],
        4 => [vec![0x18, qfi], random.octets(24)].concat(),
        5 => vec![random.octet(), random.octet()],
        6 => vec![0x10, qfi, 0, 0, 0, 0],
        _ => vec![0x10, qfi],
    }
}

/// Path and tunnel management messages, and unknown messages.
fn signalling(random: &mut Random, member: &Member) -> Vec<u8> {
    let sequence = [random.octet(), random.octet(), 0, 0];
    let body = |elements: &[u8]| [&sequence[..], elements].concat();
    let teid = member.gnb_teid.to_be_bytes();
    match random.below(8) {
        0 => gtpu(0x32, 1, 0, &body(&[])),
        1 => gtpu(0x32, 2, 0, &body(&[14, 0])),
        2 => gtpu(0x32, 26, 0, &body(&[&[16][..], &teid, &[133, 0, 4, 172, 16, 0, 2]].concat())),
        3 => gtpu(0x32, 31, 0, &body(&[141, 1, 0x85])),
        4 | 5 => gtpu(0x30, 254, member.teid, &[]),
        6 => gtpu(0x30, 253, 0, &[]),
        _ => gtpu(0x30, random.octet(), member.teid, &body(&[])),
    }
}

fn distort(random: &mut Random, message: &mut Vec<u8>) {
    match random.below(100) {
        0 => message[0] = random.octet(),
        1 => {
            let length = u16::from_be_bytes([message[2], message[3]]);
            let wrong = random.pick(&[0, 3, 4, 7, length.wrapping_add(1), length.wrapping_sub(1), 0xffff]);
            message[2..4].copy_from_slice(&wrong.to_be_bytes());
        }
        2 => message.truncate(random.below(message.len() + 1)),
        3 => {
            let more = 1 + random.below(8);
            message.extend(random.octets(more));
        }
        4 => {
            let at = random.below(message.len().min(24));
            message[at] = random.octet();
        }
        _ => {}
    }
}

/// The frames of a message, and whether they are complete.
pub struct Carried {
    /// IP packets without link header.
    pub packets: Vec<Vec<u8>>,
    /// The reassembled packet, if all fragments are present.
    pub whole: Option<Vec<u8>>,
}

impl Carried {
    fn one(packet: Vec<u8>) -> Self {
        Self { packets: vec![packet.clone()], whole: Some(packet) }
    }
}

/// Adds UDP and IP headers to a message.
pub fn carry(random: &mut Random, message: &[u8], number: u64) -> Carried {
    let port = if random.once_in(4) {
        random.pick(&[random.clone().number() as u16, 0, 2152, 40_000])
    } else {
        GTPU_PORT
    };
    let short = message.len() + 48 <= MTU;
    if short && random.once_in(6) {
        let datagram = udp((GNB_V6.into(), port), (UPF_V6.into(), GTPU_PORT), message);
        let header = V6 {
            source: GNB_V6.octets(),
            destination: UPF_V6.octets(),
            next: 17,
            class: random.number() as u32 & 0x0fc0_0000 | u32::from(ecn(random)) << 20,
            hops: 64,
        };
        return Carried::one(header.before(&datagram));
    }
    let mut datagram = udp((GNB.into(), port), (UPF.into(), GTPU_PORT), message);
    match random.below(64) {
        0 => datagram[6] ^= 1,
        1 => {
            let wrong = random.below(datagram.len() + 9) as u16;
            datagram[4..6].copy_from_slice(&wrong.to_be_bytes());
        }
        2..40 => datagram[6..8].fill(0),
        _ => {}
    }
    // A host on N3 that is no tunnel's peer.
    let source = if random.once_in(40) { STRANGER } else { GNB };
    if source == STRANGER {
        datagram[6..8].fill(0);
    }
    let header = V4 {
        source: source.octets(),
        destination: UPF.octets(),
        protocol: 17,
        tos: random.octet() & 0xfc | ecn(random),
        id: number as u16,
        fragment: 0,
        ttl: 64,
        options: if random.once_in(64) { vec![1; 4] } else { Vec::new() },
    };
    if datagram.len() + 24 > MTU || random.once_in(40) {
        return in_pieces(random, &header, &datagram, number);
    }
    Carried::one(header.before(&datagram))
}

/// The outer ECN field.
fn ecn(random: &mut Random) -> u8 {
    if random.once_in(4) { random.octet() & 3 } else { 0 }
}

/// IPv4 fragments (RFC 791 3.2), in any order; one may be missing.
fn in_pieces(random: &mut Random, header: &V4, datagram: &[u8], number: u64) -> Carried {
    let most = MTU - 24;
    let size = if datagram.len() > 2 * most {
        most
    } else {
        8 * (1 + random.below(most / 8)).max(datagram.len() / 64 + 1)
    };
    let size = size / 8 * 8;
    let pieces = datagram.chunks(size);
    let last = pieces.len() - 1;
    let missing = random.once_in(8) && last > 0;
    // Incomplete packets have their own source, so that no other fragment with the same ID completes them.
    let source = if missing { [172, 16, 0, 64 + (number >> 16) as u8 % 128] } else { header.source };
    let fragment = |(at, piece): (usize, &[u8])| {
        let more = if at < last { 0x2000 } else { 0 };
        V4 { fragment: more | (at * size / 8) as u16, source, ..header.clone() }.before(piece)
    };
    let mut packets: Vec<_> = pieces.enumerate().map(fragment).collect();
    if random.once_in(3) {
        let (one, other) = (random.below(packets.len()), random.below(packets.len()));
        packets.swap(one, other);
    }
    if missing {
        packets.remove(random.below(packets.len()));
    }
    Carried { packets, whole: (!missing).then(|| header.before(datagram)) }
}
