//! Segmentation: splits a train, which is a GSO packet read from TUN, into its packets, as the kernel does.

use super::checksum::{checksum_offset, put, set_ipv4_checksum, transport_checksum};
use super::flow::{IPV6_HEADER_LEN, TCP, UDP, is_v4};
use super::{Flow, VnetHeader};
use std::ops::Range;

const UDP_HEADER_LEN: usize = 8;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// A GSO packet: the payload of several TCP segments or UDP datagrams behind one header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Train {
    protocol: u8,
    ip_len: usize,
    header_len: usize,
    size: usize,
    length: usize,
}

impl Train {
    /// Parses a packet read from TUN as a train; `None` if it is a single packet, or not a train of a kind
    /// that the kernel sends.
    pub fn of(header: &VnetHeader, packet: &[u8], flow: &Flow) -> Option<Self> {
        let size = header.segment_size()?;
        let transport = packet.get(flow.transport_at..flow.length)?;
        let transport_len = match flow.protocol {
            TCP => usize::from(transport.get(12)? >> 4) * 4,
            UDP => UDP_HEADER_LEN,
            _ => return None,
        };
        let header_len = flow.transport_at + transport_len;
        let sound = header_len < flow.length && transport_len >= UDP_HEADER_LEN;
        sound.then_some(Self {
            protocol: flow.protocol,
            ip_len: flow.transport_at,
            header_len,
            size,
            length: flow.length,
        })
    }

    /// The packets, first to last.
    pub fn segments(&self) -> Segments {
        Segments { train: *self, index: 0 }
    }

    /// Bytes of the headers before each packet's payload.
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// The number of packets.
    pub fn count(&self) -> usize {
        (self.length - self.header_len).div_ceil(self.size)
    }

    /// Bytes of all packets.
    pub fn bytes(&self) -> usize {
        self.length + (self.count() - 1) * self.header_len
    }

    /// Writes a segment as a packet of its own to `out`.
    pub fn write_packet(&self, segment: &Segment, packet: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.resize(self.header_len, 0);
        self.write_header(segment, packet, out);
        out.extend_from_slice(packet.get(segment.payload.clone()).unwrap_or_default());
    }

    /// A segment as a packet of its own.
    #[cfg(test)]
    pub fn packet(&self, segment: &Segment, packet: &[u8]) -> Vec<u8> {
        let mut out = vec![7; 3];
        self.write_packet(segment, packet, &mut out);
        out
    }

    /// Writes the headers of a segment into `out`, which is [`header_len`](Train::header_len) long.
    pub fn write_header(&self, segment: &Segment, packet: &[u8], out: &mut [u8]) {
        let Some(template) = packet.get(..self.header_len) else { return };
        let Some(out) = out.get_mut(..self.header_len) else { return };
        out.copy_from_slice(template);
        let Some((ip, transport)) = out.split_at_mut_checked(self.ip_len) else { return };
        self.patch_ip(segment, ip);
        self.patch_transport(segment, transport);
        let payload = packet.get(segment.payload.clone()).unwrap_or_default();
        let checksum = transport_checksum(ip, self.protocol, transport, payload);
        put(transport, checksum_offset(self.protocol), &checksum);
    }

    fn patch_ip(&self, segment: &Segment, ip: &mut [u8]) {
        let length = self.header_len + segment.payload.len();
        if is_v4(ip) {
            let id = ip.get(4..6).and_then(|id| id.as_array()).map_or(0, |id| u16::from_be_bytes(*id));
            let id = id.wrapping_add(segment.index as u16);
            put(ip, 2, &(length as u16).to_be_bytes());
            put(ip, 4, &id.to_be_bytes());
            set_ipv4_checksum(ip);
        } else {
            put(ip, 4, &((length - IPV6_HEADER_LEN) as u16).to_be_bytes());
        }
    }

    fn patch_transport(&self, segment: &Segment, transport: &mut [u8]) {
        put(transport, checksum_offset(self.protocol), &[0, 0]);
        if self.protocol == UDP {
            let length = (UDP_HEADER_LEN + segment.payload.len()) as u16;
            return put(transport, 4, &length.to_be_bytes());
        }
        let Some(&[s0, s1, s2, s3]) = transport.get(4..8).and_then(|bytes| bytes.as_array()) else { return };
        let offset = (segment.index * self.size) as u32;
        let sequence = u32::from_be_bytes([s0, s1, s2, s3]).wrapping_add(offset);
        put(transport, 4, &sequence.to_be_bytes());
        if let Some(flags) = transport.get_mut(13) {
            if segment.payload.end != self.length {
                *flags &= !(FIN | PSH);
            }
            if segment.index > 0 {
                *flags &= !CWR;
            }
        }
    }
}

/// A packet of a train.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    index: usize,
    /// Position of its payload in the train.
    pub payload: Range<usize>,
}

/// The packets of a train.
#[derive(Debug, Clone)]
pub struct Segments {
    train: Train,
    index: usize,
}

impl Iterator for Segments {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        let start = self.train.header_len + self.index * self.train.size;
        if start >= self.train.length {
            return None;
        }
        let payload = start..(start + self.train.size).min(self.train.length);
        let segment = Segment { index: self.index, payload };
        self.index += 1;
        Some(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Gso;
    use super::super::checksum::{Sum, transport_holds};
    use super::super::samples::{tcp_v4, tcp_v6, udp_v4};
    use super::*;
    use proptest::prelude::*;

    fn split(header: VnetHeader, packet: &[u8]) -> Vec<Vec<u8>> {
        let train = Train::of(&header, packet, &Flow::of(packet).unwrap()).unwrap();
        let packets: Vec<_> = train.segments().map(|segment| train.packet(&segment, packet)).collect();
        assert_eq!(packets.iter().map(Vec::len).sum::<usize>(), train.bytes());
        packets
    }

    fn tcp_train(size: u16) -> VnetHeader {
        VnetHeader::gso(Gso::TcpV4, size, 20, 52, 16)
    }

    #[test]
    fn tcp_flags_are_on_the_first_or_last_segment() {
        let packets = split(tcp_train(4), &tcp_v4(1, 0x10 | FIN | PSH | CWR, b"0123456789"));
        let flags: Vec<u8> = packets.iter().map(|packet| packet[33]).collect();
        assert_eq!(flags, [0x10 | CWR, 0x10, 0x10 | FIN | PSH]);
    }

    #[test]
    fn a_frame_without_payload_or_with_a_short_header_is_no_train() {
        let train = |packet: &[u8]| Train::of(&tcp_train(4), packet, &Flow::of(packet).unwrap());
        assert_eq!(train(&tcp_v4(1, 0x10, b"")), None);
        let mut short = tcp_v4(1, 0x10, b"abc");
        short[32] = 0x10;
        assert_eq!(train(&short), None);
        short[32] = 0xf0;
        assert_eq!(train(&short), None);
    }

    proptest! {
        #[test]
        fn tcp_segments_carry_the_stream(
            payload in prop::collection::vec(any::<u8>(), 1..5000), size in 1u16..1500, sequence: u32
        ) {
            let packets = split(tcp_train(size), &tcp_v4(sequence, 0x10, &payload));
            let mut stream: Vec<u8> = Vec::new();
            for (index, packet) in packets.iter().enumerate() {
                let (ip, transport) = packet.split_at(20);
                prop_assert_eq!(Sum::default().add(ip).checksum(), [0, 0]);
                prop_assert!(transport_holds(ip, TCP, transport));
                prop_assert_eq!(Flow::of(packet).unwrap().length, packet.len());
                let at = sequence.wrapping_add(stream.len() as u32);
                prop_assert_eq!(&transport[4..8], &at.to_be_bytes());
                prop_assert_eq!(u16::from_be_bytes([ip[4], ip[5]]), 0x1234 + index as u16);
                stream.extend(&transport[32..]);
            }
            prop_assert_eq!(stream, payload);
        }

        #[test]
        fn udp_datagrams_and_ipv6_segments_are_whole(
            payload in prop::collection::vec(any::<u8>(), 1..5000), size in 1u16..1500
        ) {
            let udp = split(VnetHeader::gso(Gso::Udp, size, 20, 28, 6), &udp_v4(&payload));
            for packet in udp {
                prop_assert!(transport_holds(&packet[..20], UDP, &packet[20..]));
                prop_assert_eq!(usize::from(u16::from_be_bytes([packet[24], packet[25]])), packet.len() - 20);
            }
            let v6 = split(VnetHeader::gso(Gso::TcpV6, size, 40, 72, 16), &tcp_v6(9, 0x10, &payload));
            for packet in v6 {
                prop_assert!(transport_holds(&packet[..40], TCP, &packet[40..]));
            }
        }
    }
}
