//! One packet of the fuzzer: its frames, and the expected results.

use super::cast::{CONTROLS, Cast, GNB_V6, Member};
use super::inner;
use super::lasting;
use super::octets::{V4, hex, udp};
use super::opening;
use super::oracle::{self, Side, Verdict};
use super::reader::{self, Message, Outer};
use super::tunnel::{self, MTU};
use crate::support::GNB;
use crate::support::random::Random;
use pith_upf::contract::Direction;
use std::net::IpAddr;

const ETHERNET: usize = 14;
/// The shortest frame on a real wire, without its checksum.
const SHORTEST: usize = 60;

/// The frames to send, and the expected results.
pub struct Case {
    pub number: u64,
    pub from: Side,
    pub frames: Vec<Vec<u8>>,
    pub verdict: Verdict,
}

impl Case {
    /// The packet of that number.
    pub fn of(seed: u64, number: u64, cast: &Cast, links: &[[u8; 6]; 2]) -> Self {
        let mut random = Random::of_packet(seed, number);
        match random.below(5) {
            0..3 => Self::uplink(&mut random, cast, &links[0], number),
            _ => Self::downlink(&mut random, cast, &links[1], number),
        }
    }

    fn uplink(random: &mut Random, cast: &Cast, link: &[u8; 6], number: u64) -> Self {
        let message = tunnel::message(random, cast, number);
        let carried = tunnel::carry(random, &message, number);
        let frames: Vec<_> = carried.packets.iter().map(|packet| framed(link, packet)).collect();
        if let [frame] = &frames[..] {
            let frame = odd(random, cast, frame.clone());
            return Self::of_frame(cast, number, Side::Radio, frame, link);
        }
        let whole = carried.whole.map(|packet| framed(link, &packet));
        let verdict = match whole {
            Some(whole) => oracle::of_frame(cast, &whole, link, Side::Radio),
            None => Verdict { results: vec![oracle::PossibleResult::default()], ..Verdict::default() },
        };
        Self { number, from: Side::Radio, frames, verdict }
    }

    fn downlink(random: &mut Random, cast: &Cast, link: &[u8; 6], number: u64) -> Self {
        if random.once_in(50) {
            return Self::forged(random, cast, link, number);
        }
        let member = cast.any(random);
        let mut packet = match cast.nat {
            Some(_) if random.once_in(30) => opening::error(random, member, number),
            _ => inner::packet(random, cast, member, Direction::Downlink, number),
        };
        packet.truncate(MTU);
        let frame = odd(random, cast, framed(link, &packet));
        let frame = match &cast.nat {
            Some(nat) => nat.set_apart(frame, link),
            None => frame,
        };
        Self::of_frame(cast, number, Side::Network, frame, link)
    }

    /// GTP-U on the side without gNBs.
    fn forged(random: &mut Random, cast: &Cast, link: &[u8; 6], number: u64) -> Self {
        let message = tunnel::message(random, cast, number);
        let carried = tunnel::carry(random, &message, number);
        let frame = framed(link, carried.packets.first().map_or(&[][..], |packet| packet));
        let frame = odd(random, cast, frame);
        Self::of_frame(cast, number, Side::Network, frame, link)
    }

    /// One frame to the interface with that MAC.
    pub fn of_frame(cast: &Cast, number: u64, from: Side, frame: Vec<u8>, link: &[u8; 6]) -> Self {
        let verdict = oracle::of_frame(cast, &frame, link, from);
        let frame = match (&cast.nat, from) {
            (Some(nat), Side::Network) => nat.to_public(&frame, link),
            _ => frame,
        };
        Self { number, from, frames: vec![frame], verdict }
    }

    /// Valid packets of the members whose identities no other packet uses, in each direction: these must always pass, in the
    /// order of their numbers.
    pub fn controls(number: u64, cast: &Cast, links: &[[u8; 6]; 2]) -> Vec<Self> {
        cast.members[..CONTROLS]
            .iter()
            .flat_map(|member| Self::controls_of(member, number, cast, links))
            .collect()
    }

    fn controls_of(member: &Member, number: u64, cast: &Cast, links: &[[u8; 6]; 2]) -> [Self; 2] {
        let remote = [198, 51, 100, 1];
        let up = control(member, [member.v4.octets(), remote], number);
        let down = control(member, [remote, member.v4.octets()], number);
        let message = tunnel::plain_gpdu(member.teid, &up);
        let outer = V4 { source: GNB.octets(), destination: crate::support::UPF.octets(), ..header() };
        let outer = outer.before(&udp((GNB.into(), 2152), (crate::support::UPF.into(), 2152), &message));
        [
            Self::of_frame(cast, number, Side::Radio, framed(&links[0], &outer), &links[0]),
            Self::of_frame(cast, number, Side::Network, framed(&links[1], &down), &links[1]),
        ]
    }

    /// A description for the failure report.
    pub fn text(&self) -> String {
        let frames: Vec<_> = self.frames.iter().map(|frame| hex(frame)).collect();
        format!(
            "packet {} from {:?}: {}\n  has to become {:?}",
            self.number,
            self.from,
            frames.join(" "),
            self.verdict
        )
    }
}

pub fn header() -> V4 {
    V4 {
        source: [0; 4],
        destination: [0; 4],
        protocol: 17,
        tos: 0,
        id: 0,
        fragment: 0,
        ttl: 64,
        options: Vec::new(),
    }
}

/// What the payload of a control begins with.
const CONTROL: [u8; 7] = *b"control";

/// The number of a control, from an IPv4 packet.
pub fn control_number(packet: &[u8]) -> Option<u64> {
    let number = packet.get(28..)?.strip_prefix(&CONTROL)?;
    (packet[0] == 0x45).then_some(())?;
    Some(u64::from_be_bytes(number.get(..8)?.try_into().ok()?))
}

fn control(member: &Member, [source, destination]: [[u8; 4]; 2], number: u64) -> Vec<u8> {
    let payload = [&CONTROL[..], &number.to_be_bytes(), &member.teid.to_be_bytes()].concat();
    let ends = [source, destination].map(IpAddr::from);
    V4 { source, destination, ..header() }.before(&udp((ends[0], 5000), (ends[1], 7000), &payload))
}

/// Adds a link header for the UPF.
pub fn framed(link: &[u8; 6], packet: &[u8]) -> Vec<u8> {
    let kind = match packet.first().map_or(4, |first| first >> 4) {
        6 => [0x86, 0xdd],
        _ => [8, 0],
    };
    [&link[..], &[2, 0, 0, 0, 0, 2], &kind, packet].concat()
}

/// A frame with a tag or padding, or with damaged octets.
fn odd(random: &mut Random, cast: &Cast, frame: Vec<u8>) -> Vec<u8> {
    let mut odd = frame.clone();
    if random.once_in(100) {
        let tags = 1 + random.below(3);
        let tag = [0x81, 0, 0, random.pick(&[0, 0, 1, 100])];
        (0..tags).for_each(|_| drop(odd.splice(12..12, tag)));
    }
    if odd.len() < SHORTEST && random.once_in(2) {
        let missing = SHORTEST - odd.len();
        // May contain the ports of another packet.
        let ports = random.pick(&[7000u16, 5000]).to_be_bytes();
        let padding = if random.once_in(2) { random.octets(missing) } else { ports.repeat(missing) };
        odd.extend(&padding[..missing]);
    }
    match random.below(40) {
        0 => odd.truncate(ETHERNET + random.below(odd.len() - ETHERNET + 1)),
        1..4 => spoil(random, &mut odd),
        _ => {}
    }
    odd.truncate(ETHERNET + MTU);
    let is_harmful = |packet: &[u8]| cast.nat.is_some() && lasting::is_harmful(packet);
    // A packet to the gNB's own address is not the UPF's.
    let is_stolen = |octets: &[u8]| {
        let destination = reader::packet(octets).map(|ip| ip.destination);
        destination == Some(GNB.into()) || destination == Some(GNB_V6.into())
    };
    let own = odd.first_chunk().copied().unwrap_or_default();
    match reader::frame(&odd, &own) {
        Outer::Packet { octets, .. } if is_stolen(octets) || is_harmful(octets) => frame,
        Outer::Message { octets, .. } => match reader::message(octets) {
            Message::Gpdu { packet, .. } if is_harmful(packet) => frame,
            _ => odd,
        },
        _ => odd,
    }
}

/// Changes, moves, removes or inserts octets.
fn spoil(random: &mut Random, frame: &mut Vec<u8>) {
    for _ in 0..1 + random.below(4) {
        // Mostly in headers.
        let most = if random.once_in(2) { frame.len() } else { frame.len().min(110) };
        let at = random.below(most);
        match random.below(8) {
            0..3 => frame[at] = random.octet(),
            3 => frame[at] ^= 1 << random.below(8),
            4 => frame[at] = random.pick(&[0, 1, 0x7f, 0x80, 0xff]),
            5 => frame.insert(at, random.octet()),
            6 if frame.len() > ETHERNET + 1 => drop(frame.remove(at)),
            _ => {
                let other = random.below(frame.len());
                frame.swap(at, other);
            }
        }
    }
}
