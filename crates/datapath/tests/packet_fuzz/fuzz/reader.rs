//! The fuzzer's own parser of frames, written from the RFCs and TS 29.281 independently of the datapath's
//! parsers.
//!
//! `sure` states whether every standard-conforming stack accepts a packet as parsed here. If not, the kernel
//! may drop what a program forwards, and both are correct.

use super::cast::{GATEWAY_V6, GNB_V6, POOL_V6, REMOTE_V4, REMOTE_V6, UPF_V6};
use super::octets::{sum, transport_sum};
use crate::support::{GNB, UPF};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const GTPU_PORT: u16 = 2152;
/// Extension headers that every stack walks to the end.
const CHAIN: usize = 7;

/// The meaning of a frame for the UPF.
#[derive(Debug)]
pub enum Outer<'a> {
    /// A GTP-U message for it; `known`: from a tunnel's peer; `ecn`: of the outer header.
    Message { octets: &'a [u8], sure: bool, known: bool, ecn: u8 },
    /// Another packet, perhaps for a UE; padding may follow it.
    Packet { octets: &'a [u8], sure: bool },
    /// Either of these in an IPv4 packet with a wrong checksum.
    Corrupt { message: bool },
    /// Not for the UPF.
    Other,
}

fn word(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*octets.get(at)?, *octets.get(at + 1)?]))
}

/// Parses a frame for the interface with that MAC.
pub fn frame<'a>(frame: &'a [u8], link: &[u8; 6]) -> Outer<'a> {
    let is_ours = frame.get(..6) == Some(link);
    let for_all = frame.first().is_some_and(|first| first & 1 != 0);
    let Some(behind) = behind_tags(frame) else { return Outer::Other };
    if !(is_ours || for_all) || behind.vlan {
        return Outer::Other;
    }
    let sure = is_ours && !behind.tagged;
    if behind.v6 { v6_frame(behind.octets, sure) } else { v4_frame(behind.octets, sure) }
}

/// Whether a frame appears to contain UDP for the UPF's N3 address, or a fragment of it, whatever else is
/// wrong; and whether it has a VLAN ID.
pub fn claims_n3(frame: &[u8]) -> (bool, bool) {
    let Some(Behind { octets, v6, vlan, .. }) = behind_tags(frame) else { return (false, false) };
    let claims = match v6 {
        false => octets.get(9) == Some(&17) && octets.get(16..20) == Some(&UPF.octets()),
        true => {
            let carries = octets.get(6).is_some_and(|next| [0, 17, 43, 44, 60].contains(next));
            carries && octets.get(24..40) == Some(&UPF_V6.octets())
        }
    };
    (claims, vlan)
}

/// The payload after Ethernet and tags.
struct Behind<'a> {
    octets: &'a [u8],
    v6: bool,
    tagged: bool,
    /// A tag has a VLAN ID: no VLAN is configured here.
    vlan: bool,
}

fn behind_tags(frame: &[u8]) -> Option<Behind<'_>> {
    let (mut at, mut tagged, mut vlan) = (12, false, false);
    for _ in 0..5 {
        let kind = word(frame, at)?;
        if let 0x0800 | 0x86dd = kind {
            let octets = frame.get(at + 2..).unwrap_or_default();
            return Some(Behind { octets, v6: kind == 0x86dd, tagged, vlan });
        }
        if !matches!(kind, 0x8100 | 0x88a8) {
            return None;
        }
        vlan |= word(frame, at + 2)? & 0xfff != 0;
        (at, tagged) = (at + 4, true);
    }
    None
}

fn v4_frame(octets: &[u8], sure: bool) -> Outer<'_> {
    let Some(ip) = v4(octets) else { return Outer::Other };
    let head = usize::from(octets[0] & 15) * 4;
    if sum(&[&octets[..head]]) != 0xffff {
        return Outer::Corrupt { message: ip.destination == IpAddr::V4(UPF) };
    }
    if ip.destination != IpAddr::V4(UPF) {
        return Outer::Packet { octets, sure };
    }
    let whole = word(octets, 6).is_some_and(|fragment| fragment & 0x3fff == 0);
    if ip.protocol != 17 || !whole {
        return Outer::Other;
    }
    let known = matches!(ip.source, IpAddr::V4(source) if is_radio(source));
    let sure = sure && known && head == 20;
    datagram(&ip, &ip.octets[head..], sure)
}

fn v6_frame(octets: &[u8], sure: bool) -> Outer<'_> {
    let Some(ip) = v6(octets) else { return Outer::Other };
    if ip.destination != IpAddr::V6(UPF_V6) {
        return Outer::Packet { octets, sure };
    }
    if octets[6] != 17 {
        return Outer::Other;
    }
    datagram(&ip, &ip.octets[40..], sure && ip.source == IpAddr::V6(GNB_V6))
}

fn is_radio(source: Ipv4Addr) -> bool {
    let [a, b, c, d] = source.octets();
    [a, b, c] == [172, 16, 0] && (2..255).contains(&d)
}

/// UDP to the GTP-U port.
fn datagram<'a>(ip: &Ip<'a>, udp: &'a [u8], sure: bool) -> Outer<'a> {
    let (Some(port), Some(length), Some(check)) = (word(udp, 2), word(udp, 4), word(udp, 6)) else {
        return Outer::Other;
    };
    // 0 for a jumbogram over IPv6 (RFC 2675 4), which some stacks accept as any length.
    let jumbo = ip.v6 && length == 0;
    let length = if jumbo { udp.len() } else { usize::from(length) };
    if port != GTPU_PORT || length < 8 || length > udp.len() {
        return Outer::Other;
    }
    let unchecked = check == 0 && !ip.v6;
    let sound = unchecked || check != 0 && transport_sum(ip.source, ip.destination, 17, udp) == 0xffff;
    let known = ip.source == IpAddr::V4(GNB) || ip.source == IpAddr::V6(GNB_V6);
    let sure = sure && sound && !jumbo && length == udp.len();
    Outer::Message { octets: &udp[8..length], sure, known, ecn: ecn(ip.octets) }
}

/// A GTP-U message (TS 29.281 5, 6).
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Not GTP-U, or with a wrong length.
    Malformed,
    /// With an unsupported extension header that requires comprehension.
    Refused,
    Gpdu {
        teid: u32,
        qfi: Option<u8>,
        packet: &'a [u8],
    },
    EndMarker {
        teid: u32,
    },
    /// Other valid signalling.
    Signalling,
    /// Of an unknown type.
    Unknown,
}

pub fn message(octets: &[u8]) -> Message<'_> {
    read_message(octets).unwrap_or(Message::Malformed)
}

fn read_message(octets: &[u8]) -> Option<Message<'_>> {
    let (flags, kind) = (*octets.first()?, *octets.get(1)?);
    let length = usize::from(word(octets, 2)?);
    let teid = u32::from(word(octets, 4)?) << 16 | u32::from(word(octets, 6)?);
    if flags >> 4 != 3 || octets.len() < 8 + length {
        return None;
    }
    let mut body = &octets[8..8 + length];
    let (mut qfi, mut refused, mut seen) = (None, false, false);
    if flags & 7 != 0 {
        let mut next = if flags & 4 != 0 { *body.get(3)? } else { body.get(3).map(|_| 0)? };
        body = &body[4..];
        while next != 0 {
            let size = usize::from(*body.first()?) * 4;
            if size == 0 || size > body.len() {
                return None;
            }
            let (header, rest) = body.split_at(size);
            refused |= next >= 0x80 && next != 0x85;
            if next == 0x85 && !seen {
                (qfi, seen) = (container(&header[1..size - 1]), true);
            }
            (next, body) = (header[size - 1], rest);
        }
    }
    Some(match kind {
        255 if refused => Message::Refused,
        255 => Message::Gpdu { teid, qfi, packet: body },
        254 => Message::EndMarker { teid },
        1 | 2 | 253 => Message::Signalling,
        26 => signalling(has_element(body, 16, &[4])? && has_element(body, 133, &[4, 16])?)?,
        31 => signalling(element(body, 141).is_some())?,
        _ => Message::Unknown,
    })
}

fn signalling(sound: bool) -> Option<Message<'static>> {
    sound.then_some(Message::Signalling)
}

fn has_element(body: &[u8], wanted: u8, lengths: &[usize]) -> Option<bool> {
    Some(lengths.contains(&element(body, wanted)?.len()))
}

/// The value of an information element (TS 29.281 8.1).
fn element(mut body: &[u8], wanted: u8) -> Option<&[u8]> {
    loop {
        let kind = *body.first()?;
        let (at, length) = match kind {
            14 => (1, 1),
            16 => (1, 4),
            141 => (2, usize::from(*body.get(1)?)),
            128.. => (3, usize::from(word(body, 1)?)),
            _ => return None,
        };
        let value = body.get(at..at + length)?;
        if kind == wanted {
            return Some(value);
        }
        body = &body[at + length..];
    }
}

/// The QFI of a PDU Session Container (TS 38.415 5.5.2) that is as long as its type and flags require.
fn container(content: &[u8]) -> Option<u8> {
    let (first, second) = (*content.first()?, *content.get(1)?);
    let more = match first >> 4 {
        0 if second & 0x80 != 0 => 1,
        1 if first & 8 != 0 => 24,
        0 | 1 => 0,
        _ => return None,
    };
    (content.len() >= 2 + more).then_some(second & 0x3f)
}

/// An IP packet.
#[derive(Debug, Clone)]
pub struct Ip<'a> {
    /// Cut to the length in its header.
    pub octets: &'a [u8],
    pub v6: bool,
    pub source: IpAddr,
    pub destination: IpAddr,
    /// TTL or hop limit.
    pub hops: u8,
    /// The last next header of the chain.
    pub protocol: u8,
    pub ports: Option<[u16; 2]>,
    /// The message of ICMP, if it is there from its start.
    pub icmp: Option<&'a [u8]>,
    /// Whether the chain is longer than CHAIN.
    pub deep: bool,
    /// Whether every router forwards it, by its headers.
    pub plain: bool,
}

impl Ip<'_> {
    /// Whether it is an ICMP error that quotes no packet to an address of `own` (RFC 792; RFC 4443 2.1: types up to 127).
    pub fn is_error_about_others(&self, own: impl Fn(IpAddr) -> bool) -> bool {
        let Some(message) = self.icmp.filter(|message| !message.is_empty()) else { return false };
        let is_error = if self.v6 { message[0] < 128 } else { [3, 4, 5, 11, 12].contains(&message[0]) };
        let quoted = message.get(8..).unwrap_or_default();
        let destination = if self.v6 {
            let is_there = quoted.len() >= 40 && quoted[0] >> 4 == 6;
            is_there.then(|| {
                quoted[24..40].try_into().map_or(Ipv6Addr::UNSPECIFIED, |to: [u8; 16]| to.into()).into()
            })
        } else {
            let is_there = quoted.len() >= 20 && quoted[0] >> 4 == 4;
            is_there.then(|| Ipv4Addr::new(quoted[16], quoted[17], quoted[18], quoted[19]).into())
        };
        is_error && !destination.is_some_and(own)
    }
}

/// The ECN field of an IP packet (RFC 3168 5).
pub fn ecn(packet: &[u8]) -> u8 {
    if packet[0] >> 4 == 6 { packet[1] >> 4 & 3 } else { packet[1] & 3 }
}

/// Parses the packet at the start of `octets`.
pub fn packet(octets: &[u8]) -> Option<Ip<'_>> {
    match octets.first()? >> 4 {
        4 => v4(octets),
        6 => v6(octets),
        _ => None,
    }
}

fn v4(octets: &[u8]) -> Option<Ip<'_>> {
    let length = usize::from(word(octets, 2)?);
    let head = usize::from(octets[0] & 15) * 4;
    if octets[0] >> 4 != 4 || head < 20 || length < head || length > octets.len() {
        return None;
    }
    let octets = &octets[..length];
    let address = |at: usize| Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3]);
    let (source, destination, protocol) = (address(12), address(16), octets[9]);
    let first = word(octets, 6)? & 0x1fff == 0;
    let sound = sum(&[&octets[..head]]) == 0xffff && octets[20..head].iter().all(|option| *option == 1);
    Some(Ip {
        octets,
        v6: false,
        source: source.into(),
        destination: destination.into(),
        hops: octets[8],
        protocol,
        ports: first.then(|| ports(protocol, &octets[head..])).flatten(),
        icmp: (first && protocol == 1).then(|| &octets[head..]),
        deep: false,
        plain: sound && octets[8] > 1 && is_plain_v4(source) && is_plain_v4(destination),
    })
}

/// Addresses of UEs and of hosts behind the server.
fn is_plain_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, d] = address.octets();
    [a, b, c] == REMOTE_V4 || [a, b, c] == [10, 45, 1] && d != 0
}

fn is_plain_v6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    let ue = bits >> 80 == POOL_V6.to_bits() >> 80 && bits >> 64 != GATEWAY_V6.to_bits() >> 64;
    (ue || bits >> 64 == REMOTE_V6.to_bits() >> 64) && bits as u64 != 0
}

fn v6(octets: &[u8]) -> Option<Ip<'_>> {
    let length = 40 + usize::from(word(octets, 4)?);
    if octets[0] >> 4 != 6 || length > octets.len() {
        return None;
    }
    let octets = &octets[..length];
    let address = |at: usize| {
        let parts: [u8; 16] = octets[at..at + 16].try_into().unwrap_or_default();
        Ipv6Addr::from(parts)
    };
    let (source, destination) = (address(8), address(24));
    let Chain { protocol, transport, deep, end } = chain(octets);
    // Routers read only the hop-by-hop options; they agree on short padding.
    let hop_by_hop = octets[6] != 0 || octets.get(41..48) == Some(&[0, 1, 4, 0, 0, 0, 0]);
    Some(Ip {
        octets,
        v6: true,
        source: source.into(),
        destination: destination.into(),
        hops: octets[7],
        protocol,
        ports: transport.and_then(|at| ports(protocol, &octets[at..])),
        // A datapath may walk a longer chain.
        icmp: transport.or(end.filter(|_| deep)).filter(|_| protocol == 58).and_then(|at| octets.get(at..)),
        deep,
        plain: hop_by_hop && octets[7] > 1 && is_plain_v6(source) && is_plain_v6(destination),
    })
}

struct Chain {
    protocol: u8,
    transport: Option<usize>,
    deep: bool,
    /// Where a deep chain was left.
    end: Option<usize>,
}

/// Extension headers of a whole IPv6 packet (RFC 8200 4).
fn chain(octets: &[u8]) -> Chain {
    let (mut next, mut at) = (octets[6], 40);
    for _ in 0..=CHAIN {
        let end = Chain { protocol: next, transport: None, deep: false, end: None };
        if ![0, 43, 44, 60].contains(&next) {
            return Chain { transport: (at <= octets.len()).then_some(at), ..end };
        }
        let Some(header) = octets.get(at..at + 4) else { return end };
        let later = next == 44 && word(header, 2).is_some_and(|offset| offset & 0xfff8 != 0);
        at += if next == 44 { 8 } else { 8 + 8 * usize::from(header[1]) };
        next = header[0];
        if later {
            return Chain { protocol: next, ..end };
        }
    }
    Chain { protocol: next, transport: None, deep: true, end: Some(at) }
}

fn ports(protocol: u8, transport: &[u8]) -> Option<[u16; 2]> {
    let has = [6, 17, 132].contains(&protocol);
    has.then_some(()).and_then(|()| Some([word(transport, 0)?, word(transport, 2)?]))
}
