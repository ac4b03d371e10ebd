//! Builds headers and checksums.

use std::net::IpAddr;

/// The one's complement sum of octets, folded.
pub fn sum(parts: &[&[u8]]) -> u16 {
    let octets = parts.concat();
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u64 = octets.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

pub fn octets_of(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// Sum of the pseudo header and what follows it.
pub fn transport_sum(source: IpAddr, destination: IpAddr, protocol: u8, segment: &[u8]) -> u16 {
    let length = (segment.len() as u32).to_be_bytes();
    sum(&[&octets_of(source), &octets_of(destination), &length, &[0, 0, 0, protocol], segment])
}

/// An IPv4 header before `payload`, with its checksum. Options must be a multiple of four octets.
#[derive(Debug, Clone)]
pub struct V4 {
    pub source: [u8; 4],
    pub destination: [u8; 4],
    pub protocol: u8,
    pub tos: u8,
    pub id: u16,
    /// Flags and offset.
    pub fragment: u16,
    pub ttl: u8,
    pub options: Vec<u8>,
}

impl V4 {
    pub fn before(&self, payload: &[u8]) -> Vec<u8> {
        let words = 5 + self.options.len() / 4;
        let length = (words * 4 + payload.len()) as u16;
        let mut head = vec![0x40 | words as u8, self.tos];
        head.extend(length.to_be_bytes());
        head.extend(self.id.to_be_bytes());
        head.extend(self.fragment.to_be_bytes());
        head.extend([self.ttl, self.protocol, 0, 0]);
        head.extend(self.source);
        head.extend(self.destination);
        head.extend(&self.options);
        set_v4_checksum(&mut head);
        [&head, payload].concat()
    }
}

/// For a packet with a complete header.
pub fn set_v4_checksum(packet: &mut [u8]) {
    let length = usize::from(packet[0] & 15) * 4;
    packet[10..12].fill(0);
    let checksum = !sum(&[&packet[..length]]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// An IPv6 header before `payload`.
#[derive(Debug, Clone)]
pub struct V6 {
    pub source: [u8; 16],
    pub destination: [u8; 16],
    pub next: u8,
    /// Traffic class and flow label.
    pub class: u32,
    pub hops: u8,
}

impl V6 {
    pub fn before(&self, payload: &[u8]) -> Vec<u8> {
        let mut head = (6 << 28 | self.class & 0x0fff_ffff).to_be_bytes().to_vec();
        head.extend((payload.len() as u16).to_be_bytes());
        head.extend([self.next, self.hops]);
        head.extend(self.source);
        head.extend(self.destination);
        [&head, payload].concat()
    }
}

/// A UDP datagram, with its checksum.
pub fn udp(source: (IpAddr, u16), destination: (IpAddr, u16), payload: &[u8]) -> Vec<u8> {
    let mut datagram = [source.1.to_be_bytes(), destination.1.to_be_bytes()].concat();
    datagram.extend(((8 + payload.len()) as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    let checksum = match !transport_sum(source.0, destination.0, 17, &datagram) {
        0 => 0xffff,
        checksum => checksum,
    };
    datagram[6..8].copy_from_slice(&checksum.to_be_bytes());
    datagram
}

pub fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
