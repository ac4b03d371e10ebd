//! Coalesces consecutive packets of a flow into one frame for the kernel (GRO).
//!
//! A packet is added to its flow's open frame only if segmentation would restore it bit by bit; otherwise it
//! opens a new frame. Frames keep their order, and a flow has at most one open frame, so no flow is
//! reordered.

use super::checksum::{
    checksum_offset, has_right_checksum, pseudo_header, put, set_ipv4_checksum, transport_holds,
};
use super::flow::{IPV4_HEADER_LEN, IPV6_HEADER_LEN, TCP, UDP};
use super::{Flow, Gso, VnetHeader};
use crate::sys::VNET_HEADER_LEN;
use std::ops::Range;

const TCP_HEADER_LEN: usize = 20;
const UDP_HEADER_LEN: usize = 8;
/// IPv6 and a TCP header with all options.
const LONGEST_HEADER: usize = IPV6_HEADER_LEN + 60;
const LONGEST_PACKET: usize = 65_535;
/// Maximum number of datagrams that the kernel accepts in a UDP frame.
const MAX_PACKETS: usize = 64;
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

/// Hash entries for flows with an open frame; colliding flows only coalesce less.
const PLACES: usize = 256;
const NO_FRAME: u16 = u16::MAX;

/// The frames of one batch. Packets are ranges of an arena that the caller keeps unchanged.
#[derive(Debug)]
pub struct Coalescer {
    frames: Vec<Frame>,
    used: usize,
    places: Box<[u16; PLACES]>,
    udp: bool,
}

impl Coalescer {
    /// `udp`: whether the kernel accepts trains of UDP datagrams.
    pub fn new(udp: bool) -> Self {
        Self { frames: Vec::new(), used: 0, places: Box::new([NO_FRAME; PLACES]), udp }
    }

    /// Adds the next packet of the batch.
    pub fn offer(&mut self, arena: &[u8], packet: Range<usize>, flow: &Flow) {
        let place = place_of(flow);
        let open = self.places.get(place).map_or(NO_FRAME, |at| *at);
        if let Some(frame) = self.frames.get_mut(usize::from(open)).filter(|_| open != NO_FRAME)
            && frame.absorb(arena, packet.clone(), flow)
        {
            return;
        }
        let joinable = Shape::of(arena.get(packet.clone()).unwrap_or_default(), flow)
            .filter(|shape| shape.protocol == TCP || self.udp);
        let opened = if joinable.is_some() { self.used as u16 } else { NO_FRAME };
        if let Some(place) = self.places.get_mut(place) {
            *place = opened;
        }
        self.open(packet, joinable);
    }

    fn open(&mut self, packet: Range<usize>, shape: Option<Shape>) {
        if self.used == self.frames.len() {
            self.frames.push(Frame::default());
        }
        if let Some(frame) = self.frames.get_mut(self.used) {
            frame.begin(packet, shape);
            self.used += 1;
        }
    }

    /// The frames so far, in order.
    pub fn frames(&self) -> &[Frame] {
        self.frames.get(..self.used).unwrap_or_default()
    }

    /// Empties the batch.
    pub fn clear(&mut self) {
        self.used = 0;
        self.places.fill(NO_FRAME);
    }
}

fn place_of(flow: &Flow) -> usize {
    (flow.hash() >> 56) as usize
}

/// The properties that decide whether packets can be coalesced.
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    protocol: u8,
    ip_len: usize,
    header_len: usize,
    payload: usize,
    sequence: u32,
    push: bool,
}

impl Shape {
    /// The shape of a packet that can be part of a train: TCP data with no flags except ACK and PSH, or UDP
    /// with a checksum; no IP options or fragments, and over IPv4 with DF, so that the ID has no meaning.
    fn of(packet: &[u8], flow: &Flow) -> Option<Self> {
        let plain = match flow.transport_at {
            IPV4_HEADER_LEN => packet.get(6..8)? == [0x40, 0] && packet.first()? >> 4 == 4,
            IPV6_HEADER_LEN => flow.flow_label.is_some(),
            _ => false,
        };
        let transport = packet.get(flow.transport_at..flow.length)?;
        let header = match flow.protocol {
            TCP if plain => tcp_header_len(transport)?,
            UDP if plain && is_whole_datagram(transport)? => UDP_HEADER_LEN,
            _ => return None,
        };
        let payload = transport.len().checked_sub(header).filter(|payload| *payload > 0)?;
        Some(Self {
            protocol: flow.protocol,
            ip_len: flow.transport_at,
            header_len: flow.transport_at + header,
            payload,
            sequence: transport.get(4..8)?.as_array().map_or(0, |bytes| u32::from_be_bytes(*bytes)),
            push: flow.protocol == TCP && transport.get(13)? & PSH != 0,
        })
    }
}

/// Whether it has a checksum, and a length that agrees with the IP header's.
fn is_whole_datagram(transport: &[u8]) -> Option<bool> {
    let length = u16::from_be_bytes(*transport.get(4..6)?.as_array()?);
    Some(usize::from(length) == transport.len() && transport.get(6..8)? != [0, 0])
}

fn tcp_header_len(transport: &[u8]) -> Option<usize> {
    let length = usize::from(transport.get(12)? >> 4) * 4;
    let data_only = transport.get(13)? & !PSH == ACK;
    (length >= TCP_HEADER_LEN && data_only).then_some(length)
}

/// A packet, or a train of them.
#[derive(Debug, Default)]
pub struct Frame {
    first: Range<usize>,
    shape: Option<Shape>,
    payloads: Vec<Range<usize>>,
    total: usize,
    push: bool,
    open: bool,
}

impl Frame {
    fn begin(&mut self, packet: Range<usize>, shape: Option<Shape>) {
        self.payloads.clear();
        self.total = 0;
        self.push = false;
        self.open = shape.is_some_and(|shape| !shape.push);
        self.shape = shape;
        if let Some(shape) = shape {
            self.total = shape.payload;
            self.payloads
                .push(packet.start + shape.header_len..packet.start + shape.header_len + shape.payload);
        }
        self.first = packet;
    }

    /// Adds a packet, if it continues the train; otherwise the train ends here.
    fn absorb(&mut self, arena: &[u8], packet: Range<usize>, flow: &Flow) -> bool {
        let Some(next) = self.continued_by(arena, packet.clone(), flow) else {
            self.open = false;
            return false;
        };
        let size = self.shape.map_or(0, |shape| shape.payload);
        let start = packet.start + next.header_len;
        self.payloads.push(start..start + next.payload);
        self.total += next.payload;
        self.push = next.push;
        self.open = !next.push && next.payload == size && self.payloads.len() < MAX_PACKETS;
        true
    }

    fn continued_by(&self, arena: &[u8], packet: Range<usize>, flow: &Flow) -> Option<Shape> {
        let shape = self.shape.filter(|_| self.open)?;
        let (first, packet) = (arena.get(self.first.clone())?, arena.get(packet)?);
        let next = Shape::of(packet, flow)?;
        let fits = next.payload <= shape.payload
            && next.header_len == shape.header_len
            && next.ip_len == shape.ip_len
            && shape.header_len + self.total + next.payload <= LONGEST_PACKET;
        let follows =
            shape.protocol == UDP || next.sequence == shape.sequence.wrapping_add(self.total as u32);
        let joins =
            fits && follows && same_headers(first, packet, &shape) && self.sound(first, packet, &shape);
        joins.then_some(next)
    }

    /// Whether all checksums of both are correct: recomputed ones must not hide a damaged packet.
    fn sound(&self, first: &[u8], packet: &[u8], shape: &Shape) -> bool {
        let is_v4 = shape.ip_len == IPV4_HEADER_LEN;
        let holds = |packet: &[u8], length: usize| match packet.get(..length).unwrap_or_default() {
            [] => false,
            packet => {
                let (ip, transport) = packet.split_at(shape.ip_len);
                (!is_v4 || has_right_checksum(ip)) && transport_holds(ip, shape.protocol, transport)
            }
        };
        let length = |packet: &[u8]| Flow::of(packet).map_or(0, |flow| flow.length);
        holds(packet, length(packet)) && (self.payloads.len() > 1 || holds(first, length(first)))
    }

    /// The packet of a frame with a single one.
    pub fn single(&self) -> Option<Range<usize>> {
        (self.payloads.len() < 2).then(|| self.first.clone())
    }

    /// The first packet.
    pub fn first(&self) -> Range<usize> {
        self.first.clone()
    }

    /// Bytes of all packets.
    pub fn octets(&self) -> usize {
        match self.single() {
            Some(packet) => packet.len(),
            None => self.total + self.packets() * self.header_len(),
        }
    }

    /// Bytes of the longest packet.
    pub fn longest_packet(&self) -> usize {
        self.first.len()
    }

    /// The number of packets.
    pub fn packets(&self) -> usize {
        self.payloads.len().max(1)
    }

    /// Bytes of the headers before each payload of a train.
    pub fn header_len(&self) -> usize {
        self.shape.map_or(0, |shape| shape.header_len)
    }

    /// The payloads of a train, in order.
    pub fn payloads(&self) -> &[Range<usize>] {
        &self.payloads
    }

    /// The virtio-net header and packet headers of a train, and their length; `None` for a single packet.
    pub fn head(&self, arena: &[u8]) -> Option<([u8; VNET_HEADER_LEN + LONGEST_HEADER], usize)> {
        let shape = self.shape.filter(|_| self.payloads.len() > 1)?;
        let mut head = [0; VNET_HEADER_LEN + LONGEST_HEADER];
        let (vnet, rest) = head.split_at_mut(VNET_HEADER_LEN);
        let headers = rest.get_mut(..shape.header_len)?;
        headers.copy_from_slice(arena.get(self.first.clone())?.get(..shape.header_len)?);
        let (ip, transport) = headers.split_at_mut(shape.ip_len);
        vnet.copy_from_slice(&self.vnet_header(&shape).encode());
        let length = transport.len() + self.total;
        if shape.ip_len == IPV4_HEADER_LEN {
            put(ip, 2, &((shape.ip_len + length) as u16).to_be_bytes());
            set_ipv4_checksum(ip);
        } else {
            put(ip, 4, &(length as u16).to_be_bytes());
        }
        if shape.protocol == UDP {
            put(transport, 4, &(length as u16).to_be_bytes());
        } else if let Some(flags) = transport.get_mut(13).filter(|_| self.push) {
            *flags |= PSH;
        }
        let sum = pseudo_header(ip, shape.protocol, length).folded();
        put(transport, checksum_offset(shape.protocol), &sum);
        Some((head, VNET_HEADER_LEN + shape.header_len))
    }

    fn vnet_header(&self, shape: &Shape) -> VnetHeader {
        let gso = match (shape.protocol, shape.ip_len) {
            (UDP, _) => Gso::Udp,
            (_, IPV4_HEADER_LEN) => Gso::TcpV4,
            _ => Gso::TcpV6,
        };
        let offset = checksum_offset(shape.protocol) as u16;
        VnetHeader::gso(gso, shape.payload as u16, shape.ip_len as u16, shape.header_len as u16, offset)
    }
}

/// Whether two packets of the same shape differ only in fields that segmentation recomputes: lengths, IDs,
/// checksums, sequence number and PSH.
fn same_headers(a: &[u8], b: &[u8], shape: &Shape) -> bool {
    let same = |range: Range<usize>| a.get(range.clone()) == b.get(range);
    let at = shape.ip_len;
    let ip = match at {
        IPV4_HEADER_LEN => same(0..2) && same(6..10) && same(12..20),
        _ => same(0..4) && same(6..40),
    };
    // TCP: ports; acknowledgement, offset; window; urgent pointer, options. Flags are ACK and PSH in both.
    let transport = match shape.protocol {
        TCP => {
            same(at..at + 4)
                && same(at + 8..at + 13)
                && same(at + 14..at + 16)
                && same(at + 18..shape.header_len)
        }
        _ => same(at..at + 4),
    };
    ip && transport
}

#[cfg(test)]
mod tests {
    use super::super::Train;
    use super::super::samples::{tcp_v4, tcp_v6, udp_v4, udp_v6};
    use super::*;
    use proptest::prelude::*;

    /// Coalesces and segments again: the packets that the kernel's stack sees.
    fn round_trip(packets: &[Vec<u8>]) -> (usize, Vec<Vec<u8>>) {
        let mut coalescer = Coalescer::new(true);
        let arena = packets.concat();
        let mut at = 0;
        for packet in packets {
            coalescer.offer(&arena, at..at + packet.len(), &Flow::of(packet).unwrap());
            at += packet.len();
        }
        let out = coalescer.frames().iter().flat_map(|frame| cut(frame, &arena)).collect();
        (coalescer.frames().len(), out)
    }

    fn cut(frame: &Frame, arena: &[u8]) -> Vec<Vec<u8>> {
        let Some((head, length)) = frame.head(arena) else {
            return vec![arena[frame.single().unwrap()].to_vec()];
        };
        let vnet = VnetHeader::decode(head.first_chunk().unwrap());
        let mut whole = head[VNET_HEADER_LEN..length].to_vec();
        frame.payloads().iter().for_each(|range| whole.extend(&arena[range.clone()]));
        let train = Train::of(&vnet, &whole, &Flow::of(&whole).unwrap()).unwrap();
        assert_eq!(train.count(), frame.packets());
        train.segments().map(|segment| train.packet(&segment, &whole)).collect()
    }

    fn without_id(mut packet: Vec<u8>) -> Vec<u8> {
        if packet[0] >> 4 == 4 {
            packet[4..6].fill(0);
            set_ipv4_checksum(&mut packet[..20]);
        }
        packet
    }

    fn stream(sizes: &[usize], make: fn(u32, u8, &[u8]) -> Vec<u8>) -> Vec<Vec<u8>> {
        let mut sequence = 7u32;
        let next = |size: &usize| {
            let packet = make(sequence, ACK, &vec![*size as u8; *size]);
            sequence = sequence.wrapping_add(*size as u32);
            packet
        };
        sizes.iter().map(next).collect()
    }

    #[test]
    fn a_stream_becomes_one_frame_and_comes_back() {
        for make in [tcp_v4, tcp_v6] {
            let packets = stream(&[1000, 1000, 1000, 600], make);
            let (frames, out) = round_trip(&packets);
            assert_eq!(frames, 1);
            let expected: Vec<_> = packets.into_iter().map(without_id).collect();
            assert_eq!(out.into_iter().map(without_id).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn datagrams_of_one_size_become_one_frame() {
        for make in [udp_v4, udp_v6] {
            let packets: Vec<_> = [500, 500, 20].iter().map(|size| make(&vec![9; *size])).collect();
            let (frames, out) = round_trip(&packets);
            assert_eq!((frames, out.len()), (1, 3));
        }
    }

    #[test]
    fn packets_that_cannot_be_coalesced_open_a_frame() {
        let frames = |packets: &[Vec<u8>]| round_trip(packets).0;
        let first = tcp_v4(0, ACK, &[1; 100]);
        let gap = tcp_v4(101, ACK, &[1; 100]);
        let longer = tcp_v4(100, ACK, &[1; 101]);
        let fin = tcp_v4(100, ACK | 1, &[1; 100]);
        let empty = tcp_v4(100, ACK, &[]);
        let mut broken = tcp_v4(100, ACK, &[1; 100]);
        broken[60] ^= 1;
        for second in [gap, longer, fin, empty, broken, udp_v4(&[1; 100])] {
            assert_eq!(frames(&[first.clone(), second]), 2);
        }
        let pushed = tcp_v4(100, ACK | PSH, &[1; 100]);
        let after = tcp_v4(200, ACK, &[1; 100]);
        assert_eq!(frames(&[first.clone(), pushed, after]), 2);
        let mut no_checksum = udp_v4(&[1; 100]);
        no_checksum[26..28].fill(0);
        assert_eq!(frames(&[no_checksum.clone(), no_checksum]), 2);
        let mut broken_first = first;
        broken_first[60] ^= 1;
        assert_eq!(frames(&[broken_first, tcp_v4(100, ACK, &[1; 100])]), 2);
    }

    #[test]
    fn a_damaged_header_is_not_repaired_in_a_train() {
        let datagram = udp_v4(&[1; 100]);
        assert_eq!(round_trip(&[datagram.clone(), datagram.clone()]).0, 1);
        let mut wrong_sum = datagram.clone();
        wrong_sum[10] ^= 1;
        // A sum that holds for a length that is wrong.
        let mut wrong_length = datagram.clone();
        wrong_length[25] += 1;
        wrong_length[29] -= 1;
        for damaged in [wrong_sum, wrong_length] {
            for packets in [[damaged.clone(), datagram.clone()], [datagram.clone(), damaged]] {
                let (frames, out) = round_trip(&packets);
                assert_eq!((frames, out), (2, packets.to_vec()));
            }
        }
    }

    #[test]
    fn a_packet_that_cannot_be_coalesced_keeps_its_order() {
        let empty = tcp_v4(100, ACK, &[]);
        let packets = [tcp_v4(0, ACK, &[1; 100]), empty.clone(), tcp_v4(100, ACK, &[1; 100])];
        let (frames, out) = round_trip(&packets);
        assert_eq!(frames, 3);
        assert_eq!(out[1], empty);
    }

    proptest! {
        #[test]
        fn any_stream_comes_back_in_order(
            sizes in prop::collection::vec((1usize..1400, any::<bool>()), 1..80), v6: bool
        ) {
            let make = if v6 { tcp_v6 } else { tcp_v4 };
            let sizes: Vec<_> = sizes.iter().map(|(size, full)| if *full { 1400 } else { *size }).collect();
            let packets = stream(&sizes, make);
            let (_, out) = round_trip(&packets);
            let expected: Vec<_> = packets.into_iter().map(without_id).collect();
            prop_assert_eq!(out.into_iter().map(without_id).collect::<Vec<_>>(), expected);
        }
    }
}
