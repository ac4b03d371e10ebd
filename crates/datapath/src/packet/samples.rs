//! Packets for tests, built field by field.

use super::checksum::{Sum, pseudo_header, transport_checksum};

/// A TCP segment with a timestamp option, 10.45.0.2:40000 to 192.0.2.1:80.
pub fn tcp_v4(sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 0, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 45, 0, 2, 192, 0, 2, 1];
    ip[2..4].copy_from_slice(&(52 + payload.len() as u16).to_be_bytes());
    let checksum = Sum::default().add(&ip).checksum();
    ip[10..12].copy_from_slice(&checksum);
    [ip.clone(), with_checksum(&ip, 6, tcp_header(sequence, flags), payload)].concat()
}

/// The same over IPv6.
pub fn tcp_v6(sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let ip = ipv6_header(6, 32 + payload.len());
    [ip.clone(), with_checksum(&ip, 6, tcp_header(sequence, flags), payload)].concat()
}

/// A UDP datagram, 10.45.0.2:40000 to 192.0.2.1:53.
pub fn udp_v4(payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 45, 0, 2, 192, 0, 2, 1];
    ip[2..4].copy_from_slice(&(28 + payload.len() as u16).to_be_bytes());
    let checksum = Sum::default().add(&ip).checksum();
    ip[10..12].copy_from_slice(&checksum);
    [ip.clone(), with_checksum(&ip, 17, udp_header(payload.len()), payload)].concat()
}

/// The same over IPv6.
pub fn udp_v6(payload: &[u8]) -> Vec<u8> {
    let ip = ipv6_header(17, 8 + payload.len());
    [ip.clone(), with_checksum(&ip, 17, udp_header(payload.len()), payload)].concat()
}

/// A packet whose checksum is left to the hardware: the field contains the pseudo header's sum.
pub fn with_partial_checksum(mut packet: Vec<u8>, ip_len: usize, protocol: u8) -> Vec<u8> {
    let sum = pseudo_header(&packet[..ip_len], protocol, packet.len() - ip_len).folded();
    let at = ip_len + if protocol == 6 { 16 } else { 6 };
    packet[at..at + 2].copy_from_slice(&sum);
    packet
}

fn ipv6_header(protocol: u8, length: usize) -> Vec<u8> {
    let mut ip = vec![0x60, 0, 0, 0, 0, 0, protocol, 64];
    ip[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    ip.extend("2001:db8:45::2".parse::<std::net::Ipv6Addr>().unwrap().octets());
    ip.extend("2001:db8::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
    ip
}

fn tcp_header(sequence: u32, flags: u8) -> Vec<u8> {
    let mut header = [40_000u16.to_be_bytes(), 80u16.to_be_bytes()].concat();
    header.extend(sequence.to_be_bytes());
    header.extend(77u32.to_be_bytes());
    header.extend([0x80, flags, 1, 0, 0, 0, 0, 0]);
    header.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    header
}

fn udp_header(payload: usize) -> Vec<u8> {
    let length = (payload as u16 + 8).to_be_bytes();
    [40_000u16.to_be_bytes(), 53u16.to_be_bytes(), length, [0, 0]].concat()
}

fn with_checksum(ip: &[u8], protocol: u8, mut header: Vec<u8>, payload: &[u8]) -> Vec<u8> {
    let checksum = transport_checksum(ip, protocol, &header, payload);
    let at = if protocol == 6 { 16 } else { 6 };
    header[at..at + 2].copy_from_slice(&checksum);
    header.extend(payload);
    header
}
