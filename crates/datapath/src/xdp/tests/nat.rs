//! NAT by the entries of connection tracking, which the tests create by netlink.

use super::*;
use crate::sys::NetlinkSocket;
use crate::system::messages;

/// The public address and port of the UE's port 5000.
const PUBLIC: [u8; 4] = [172, 17, 0, 1];
const PUBLIC_PORT: u16 = 40_000;
const UDP: u8 = 17;
const TCP: u8 = 6;
const SEEN_REPLY: u32 = 2;
const ASSURED: u32 = 4;
const CONFIRMED: u32 = 8;
const ESTABLISHED: u8 = 3;
const ACK: u8 = 0x10;

/// A lab that translates, with a connection of the UE from port 5000 to the server's port 7000.
fn nat_lab(protocol: u8) -> Option<Lab> {
    let lab = lab_of(&session(), 0, Settings { nat: true, ..Settings::default() })?;
    Entry::of(protocol).create();
    Some(lab)
}

/// An entry of connection tracking.
#[derive(Debug, Clone, Copy)]
struct Entry {
    protocol: u8,
    /// Source and destination of a packet in each direction.
    original: [([u8; 4], u16); 2],
    reply: [([u8; 4], u16); 2],
    status: u32,
    state: u8,
    seconds: u32,
}

impl Entry {
    fn of(protocol: u8) -> Self {
        Self {
            protocol,
            original: [(UE, 5000), (SERVER, 7000)],
            reply: [(SERVER, 7000), (PUBLIC, PUBLIC_PORT)],
            status: CONFIRMED | SEEN_REPLY | ASSURED,
            state: ESTABLISHED,
            seconds: 100,
        }
    }

    /// Creates it by ctnetlink (nfnetlink_conntrack.h).
    fn create(&self) {
        let state = nested(4, &nested(1, &attribute(1, &[self.state])));
        let body = [
            vec![libc::AF_INET as u8, 0, 0, 0],
            nested(1, &self.tuple(self.original)),
            nested(2, &self.tuple(self.reply)),
            attribute(3, &self.status.to_be_bytes()),
            if self.protocol == TCP { state } else { Vec::new() },
            attribute(7, &self.seconds.to_be_bytes()),
        ]
        .concat();
        let length = 16 + body.len() as u32;
        // NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL; NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_NEW.
        let header = [&length.to_ne_bytes()[..], &0x100u16.to_ne_bytes(), &0x605u16.to_ne_bytes(), &[0; 8]];
        let socket = NetlinkSocket::of(libc::NETLINK_NETFILTER).unwrap();
        let mut answer = [0; 4096];
        let length = socket.exchange(&[header.concat(), body].concat(), &mut answer).unwrap();
        let (_, result) = messages(&answer[..length]).next().unwrap();
        assert_eq!(result[..4], [0; 4], "{self:?}");
    }

    fn tuple(&self, [from, to]: [([u8; 4], u16); 2]) -> Vec<u8> {
        let addresses = [attribute(1, &from.0), attribute(2, &to.0)].concat();
        let ports = [attribute(2, &from.1.to_be_bytes()), attribute(3, &to.1.to_be_bytes())].concat();
        [nested(1, &addresses), nested(2, &[attribute(1, &[self.protocol]), ports].concat())].concat()
    }
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut all = (value.len() as u16 + 4).to_ne_bytes().to_vec();
    all.extend(kind.to_ne_bytes());
    all.extend(value);
    all.resize(all.len().next_multiple_of(4), 0);
    all
}

fn nested(kind: u16, value: &[u8]) -> Vec<u8> {
    attribute(0x8000 | kind, value)
}

/// The remaining lifetime of the only connection, in seconds.
fn lifetime() -> u32 {
    let entries = std::fs::read_to_string("/proc/thread-self/net/nf_conntrack").unwrap();
    entries.lines().next().unwrap().split_whitespace().nth(4).unwrap().parse().unwrap()
}

/// A TCP or UDP packet with correct checksums.
fn packet(protocol: u8, from: ([u8; 4], u16), to: ([u8; 4], u16), ttl: u8, flags: u8) -> Vec<u8> {
    let payload = b"hello".to_vec();
    let ports = [from.1.to_be_bytes(), to.1.to_be_bytes()].concat();
    let transport = match protocol {
        TCP => [ports, vec![0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0], payload].concat(),
        _ => [ports, (8 + payload.len() as u16).to_be_bytes().to_vec(), vec![0, 0], payload].concat(),
    };
    let mut packet = ipv4(from.0, to.0, ttl, protocol, &transport);
    let sum = transport_sum(&packet);
    let at = 20 + if protocol == TCP { 16 } else { 6 };
    packet[at..at + 2].copy_from_slice(&(!sum).to_be_bytes());
    packet
}

/// The sum of a packet's pseudo header and its transport header and payload; all ones if the checksum is correct.
fn transport_sum(packet: &[u8]) -> u16 {
    let length = (packet.len() as u16 - 20).to_be_bytes();
    let mut octets = [&packet[12..20], &[0, packet[9]], &length, &packet[20..]].concat();
    octets.resize(octets.len().next_multiple_of(2), 0);
    let sum: u32 = octets.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// The sum of a packet's pseudo header alone.
fn pseudo_sum(packet: &[u8]) -> u16 {
    transport_sum(&[&packet[..20], &vec![0; packet.len() - 20]].concat())
}

const PROTOCOLS: [u8; 2] = [UDP, TCP];

fn up_of(protocol: u8, flags: u8) -> Vec<u8> {
    tunnelled(&gpdu(TEID, &packet(protocol, (UE, 5000), (SERVER, 7000), 64, flags)))
}

fn down_of(protocol: u8, flags: u8) -> Vec<u8> {
    to_ue(&packet(protocol, (SERVER, 7000), (PUBLIC, PUBLIC_PORT), 64, flags))
}

/// The user packet of a frame with the outer headers that this UPF writes.
fn inner(frame: &[u8]) -> Vec<u8> {
    frame[14 + 20 + 8 + 16..].to_vec()
}

#[test]
fn a_packet_of_a_known_connection_gets_its_public_address_and_port() {
    for protocol in PROTOCOLS {
        let Some(lab) = nat_lab(protocol) else { return };
        let expected = packet(protocol, (PUBLIC, PUBLIC_PORT), (SERVER, 7000), 63, ACK);
        assert_eq!(transport_sum(&expected), 0xffff);
        assert_eq!(lab.run(&up_of(protocol, ACK)), sent(&expected), "{protocol}");
        assert_eq!(lab.volume().uplink, expected.len() as u64);
    }
}

#[test]
fn an_answer_to_the_public_address_reaches_the_ue_by_its_rules() {
    for protocol in PROTOCOLS {
        let Some(lab) = nat_lab(protocol) else { return };
        let (verdict, frame) = lab.run(&down_of(protocol, ACK));
        let expected = packet(protocol, (SERVER, 7000), (UE, 5000), 63, ACK);
        assert_eq!((verdict, inner(&frame)), (REDIRECT, expected), "{protocol}");
        assert_eq!(lab.volume().downlink, inner(&frame).len() as u64);
    }
}

#[test]
fn a_packet_without_udp_checksum_keeps_none() {
    let Some(lab) = nat_lab(UDP) else { return };
    let without = |from, to, ttl| {
        let mut packet = packet(UDP, from, to, ttl, 0);
        packet[26..28].fill(0);
        packet
    };
    let up = tunnelled(&gpdu(TEID, &without((UE, 5000), (SERVER, 7000), 64)));
    assert_eq!(lab.run(&up), sent(&without((PUBLIC, PUBLIC_PORT), (SERVER, 7000), 63)));
    let (verdict, frame) = lab.run(&to_ue(&without((SERVER, 7000), (PUBLIC, PUBLIC_PORT), 64)));
    assert_eq!((verdict, inner(&frame)), (REDIRECT, without((SERVER, 7000), (UE, 5000), 63)));
}

/// For all values of a port, and thereby of the checksum.
#[test]
fn checksums_stay_correct_for_all_ports() {
    for protocol in PROTOCOLS {
        let Some(lab) = lab_of(&session(), 0, Settings { nat: true, ..Settings::default() }) else { return };
        let entry = Entry::of(protocol);
        for port in (1..=u16::MAX).step_by(61) {
            let public = (PUBLIC, port.rotate_left(5) | 1);
            let original = [(UE, port), entry.original[1]];
            Entry { original, reply: [entry.reply[0], public], ..entry }.create();
            let up = packet(protocol, (UE, port), (SERVER, 7000), 64, ACK);
            let expected = packet(protocol, public, (SERVER, 7000), 63, ACK);
            assert_eq!(lab.run(&tunnelled(&gpdu(TEID, &up))), sent(&expected), "{port}");
        }
        assert!(lab.counters().n6_out.packets > 1000);
    }
}

/// A packet with correct checksums, of `length` octets, whose transport checksum equals the sum of its pseudo header, as in
/// frames of local senders: one in 65,536 packets is so by chance.
fn coincident(protocol: u8, from: ([u8; 4], u16), to: ([u8; 4], u16), length: usize) -> Vec<u8> {
    let (mut packet, head) = (packet(protocol, from, to, 64, ACK), if protocol == TCP { 40 } else { 28 });
    packet.resize(length, 0xa5);
    packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    if protocol == UDP {
        packet[24..26].copy_from_slice(&(length as u16 - 20).to_be_bytes());
    }
    set_checksum(&mut packet);
    let check = head - 2 - if protocol == TCP { 2 } else { 0 };
    let pseudo = pseudo_sum(&packet);
    packet[check..check + 2].copy_from_slice(&pseudo.to_be_bytes());
    packet[head..head + 2].fill(0);
    let rest = !transport_sum(&packet);
    packet[head..head + 2].copy_from_slice(&rest.to_be_bytes());
    assert_eq!(transport_sum(&packet), 0xffff);
    packet
}

/// Without its order, the kernel's path would let the next packet of the connection overtake it.
#[test]
fn a_checksum_that_equals_its_pseudo_header_by_chance_is_no_local_senders() {
    for protocol in PROTOCOLS {
        let Some(lab) = nat_lab(protocol) else { return };
        for length in [64, 65, 511, 512, 513, 531, 532, 533, 534, 1399, 1400] {
            let up = coincident(protocol, (UE, 5000), (SERVER, 7000), length);
            let (verdict, frame) = lab.run(&tunnelled(&gpdu(TEID, &up)));
            assert_eq!((verdict, transport_sum(&frame[14..])), (REDIRECT, 0xffff), "{protocol} up {length}");
            assert_eq!(frame[26..30], PUBLIC);
            let down = coincident(protocol, (SERVER, 7000), (PUBLIC, PUBLIC_PORT), length);
            let (verdict, frame) = lab.run(&to_ue(&down));
            let inner = inner(&frame);
            assert_eq!((verdict, transport_sum(&inner)), (REDIRECT, 0xffff), "{protocol} down {length}");
            assert_eq!(inner[16..20], UE);
            // Damaged, it may be a local sender's.
            let mut other = down;
            other[length - 1] ^= 1;
            lab.passes("incomplete or damaged", &to_ue(&other));
        }
    }
}

#[test]
fn the_kernel_translates_what_it_has_not_yet_translated() {
    for protocol in PROTOCOLS {
        let Some(lab) = lab_of(&session(), 0, Settings { nat: true, ..Settings::default() }) else { return };
        lab.passes("no connection, up", &up_of(protocol, ACK));
        lab.passes("no connection, down", &down_of(protocol, ACK));
        lab.passes("past NAT to the UE", &to_ue(&packet(protocol, (SERVER, 7000), (UE, 5000), 64, ACK)));
        Entry { status: CONFIRMED, state: 1, ..Entry::of(protocol) }.create();
        lab.passes("the first answer", &down_of(protocol, ACK));
        if protocol == TCP {
            lab.passes("not established", &up_of(protocol, ACK));
        }
    }
}

#[test]
fn the_kernel_sees_the_start_and_end_of_tcp_connections() {
    let Some(lab) = nat_lab(TCP) else { return };
    for (name, flags) in [("FIN", 0x11), ("SYN", 0x02), ("RST", 0x04)] {
        lab.passes(name, &up_of(TCP, flags));
        lab.passes(name, &down_of(TCP, flags));
    }
}

#[test]
fn the_kernel_translates_rare_packets() {
    let Some(lab) = nat_lab(UDP) else { return };
    let echo = ipv4(UE, SERVER, 64, 1, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0]);
    lab.passes("an echo request", &tunnelled(&gpdu(TEID, &echo)));
    lab.passes("an ICMP error", &to_ue(&ipv4(SERVER, PUBLIC, 64, 1, &[3, 4, 0, 0, 0, 0, 5, 0])));
    let mut fragment = packet(UDP, (UE, 5000), (SERVER, 7000), 64, 0);
    fragment[6] = 0x20;
    set_checksum(&mut fragment);
    lab.passes("a fragment", &tunnelled(&gpdu(TEID, &fragment)));
    let mut partial = packet(UDP, (SERVER, 7000), (PUBLIC, PUBLIC_PORT), 64, 0);
    let pseudo = pseudo_sum(&partial);
    partial[26..28].copy_from_slice(&pseudo.to_be_bytes());
    lab.passes("a checksum that the network card completes", &to_ue(&partial));
    let mut short = ipv4(UE, SERVER, 64, TCP, &[&5000u16.to_be_bytes()[..], &[0; 8]].concat());
    short[9] = TCP;
    lab.passes("a truncated header", &tunnelled(&gpdu(TEID, &short)));
    lab.passes("the last hop", &to_ue(&packet(UDP, (SERVER, 7000), (PUBLIC, PUBLIC_PORT), 1, 0)));
}

#[test]
fn connections_that_the_kernel_changes_further_are_left_to_it() {
    for (what, change) in [
        (
            "a redirected destination",
            Entry { reply: [([172, 17, 0, 9], 7000), (PUBLIC, PUBLIC_PORT)], ..Entry::of(UDP) },
        ),
        ("a redirected port", Entry { reply: [(SERVER, 7001), (PUBLIC, PUBLIC_PORT)], ..Entry::of(UDP) }),
    ] {
        let Some(lab) = lab_of(&session(), 0, Settings { nat: true, ..Settings::default() }) else { return };
        change.create();
        lab.passes(what, &up_of(UDP, 0));
        let from = change.reply[0];
        lab.passes(what, &to_ue(&packet(UDP, from, (PUBLIC, PUBLIC_PORT), 64, 0)));
    }
}

#[test]
fn a_connection_lives_while_the_program_forwards_its_packets() {
    for (protocol, status, seconds, after) in [
        // Beyond half of 120 s; before it; a stream that the kernel has yet to recognise; without answers.
        (UDP, SEEN_REPLY | ASSURED, 50, 119..=120),
        (UDP, SEEN_REPLY | ASSURED, 80, 79..=80),
        (UDP, SEEN_REPLY, 119, 118..=119),
        (UDP, 0, 10, 119..=120),
        (TCP, SEEN_REPLY | ASSURED, 100, 431_999..=432_000),
    ] {
        let Some(lab) = lab_of(&session(), 0, Settings { nat: true, ..Settings::default() }) else { return };
        Entry { status: CONFIRMED | status, seconds, ..Entry::of(protocol) }.create();
        assert_eq!(lab.run(&up_of(protocol, ACK)).0, REDIRECT);
        assert!(after.contains(&lifetime()), "{protocol} {status} {seconds}: {}", lifetime());
    }
    let Some(lab) = lab_of(&session(), 0, Settings { nat: true, ..Settings::default() }) else { return };
    Entry { status: CONFIRMED | SEEN_REPLY, seconds: 20, ..Entry::of(UDP) }.create();
    lab.passes("the kernel has to see that it is a stream", &up_of(UDP, 0));
}

#[test]
fn the_trust_rules_hold_before_and_after_translation() {
    let Some(lab) = nat_lab(UDP) else { return };
    route_everywhere();
    let closed = ([198, 18, 0, 1], 7000);
    let connection = Entry::of(UDP);
    let to =
        |peer| Entry { original: [(UE, 5000), peer], reply: [peer, (PUBLIC, PUBLIC_PORT)], ..connection };
    to(closed).create();
    let up = tunnelled(&gpdu(TEID, &packet(UDP, (UE, 5000), closed, 64, 0)));
    lab.drops(&up, DropReason::ClosedDestination);
    lab.drops(&to_ue(&packet(UDP, closed, (PUBLIC, PUBLIC_PORT), 64, 0)), DropReason::SpoofedSource);
    // A source of another UE, whose connection exists.
    let other = [10, 45, 0, 3];
    Entry {
        original: [(other, 5000), (SERVER, 7000)],
        reply: [(SERVER, 7000), (PUBLIC, 40_001)],
        ..connection
    }
    .create();
    let spoofed = tunnelled(&gpdu(TEID, &packet(UDP, (other, 5000), (SERVER, 7000), 64, 0)));
    lab.drops(&spoofed, DropReason::SpoofedSource);
    lab.passes("a connection without session", &to_ue(&packet(UDP, (SERVER, 7000), (PUBLIC, 40_001), 64, 0)));
}

#[test]
fn filters_match_the_ues_own_port() {
    let mut session = session();
    let mut special = Pdr { id: PdrId(3), precedence: 1, far: FarId(3), ..session.pdrs[1].clone() };
    special.filters = "permit out 17 from any to assigned 5000".parse::<FlowDescription>().unwrap().filters;
    session.pdrs.push(special);
    session.fars.push(Far { id: FarId(3), action: Action::Drop });
    let Some(lab) = lab_of(&session, 0, Settings { nat: true, ..Settings::default() }) else { return };
    Entry::of(UDP).create();
    lab.drops(&down_of(UDP, 0), DropReason::RuleDrop);
}

#[test]
fn any_frame_is_translated_with_correct_checksums_or_passed_unchanged() {
    let Some(lab) = nat_lab(UDP) else { return };
    Entry::of(TCP).create();
    let seeds: Vec<_> = PROTOCOLS.iter().flat_map(|kind| [up_of(*kind, ACK), down_of(*kind, ACK)]).collect();
    let mut random = Random::of(2);
    let mut verdicts = [0u64; 5];
    for _ in 0..100_000 {
        let seed = random.below(seeds.len());
        let mut frame = seeds[seed].clone();
        let is_up = seed.is_multiple_of(2);
        let start = if is_up { 58 } else { 14 };
        for _ in 0..random.below(4) {
            let at = random.below(frame.len());
            frame[at] = random.below(256) as u8;
        }
        let (verdict, out) = lab.run(&frame);
        verdicts[verdict as usize] += 1;
        assert!(verdict != PASS || out == frame, "{frame:02x?}");
        if verdict == REDIRECT {
            let sent = if is_up { &out[14..] } else { &out[58..] };
            assert_eq!(is_up, sent[12..16] == PUBLIC, "{frame:02x?}");
            let (before, after) = (transport_sum(&frame[start..]), transport_sum(sent));
            assert_eq!(before % 0xffff, after % 0xffff, "{frame:02x?}");
        }
    }
    let Counters { n3_out, n6_out, dropped, .. } = lab.counters();
    let dropped: u64 = dropped.iter().map(|(_, count)| count).sum();
    assert_eq!((dropped, n3_out.packets + n6_out.packets), (verdicts[1], verdicts[4]));
    assert!(verdicts[1] > 100 && verdicts[2] > 10_000 && verdicts[4] > 10_000, "{verdicts:?}");
}
