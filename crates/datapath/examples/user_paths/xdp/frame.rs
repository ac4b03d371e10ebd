//! Frames of each case, and where the generator writes.

use super::cases::{Case, Flows, TrafficDirection};
use crate::generator::{ETHERNET, TUNNEL, Traffic};
use crate::support::{self, GNB, SERVER, UPF};
use pith_pfcp::gtpu::UlPduSessionInformation;
use pith_upf::qos::Ecn;
use std::net::Ipv4Addr;

const LINK: [u8; 6] = [2, 0, 0, 0, 0, 2];
pub const FIRST_TEID: u32 = 0x100;
pub const FIRST_UE: Ipv4Addr = Ipv4Addr::new(10, 45, 1, 0);
/// The public address of session 0, with NAT; each session has its own, so that the generator can count them up.
pub const FIRST_PUBLIC: Ipv4Addr = Ipv4Addr::new(198, 51, 0, 0);
/// The UE's and the server's port of `support::udp`.
pub const PORTS: (u16, u16) = (5000, 7000);
/// The first of many destinations; all are routed by `SERVER`.
const FIRST_FAR: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 0);
const HEADERS: usize = 28;

/// The frame of session 0, with a user packet of that length.
pub fn frame_of(case: Case, flows: Flows, octets: usize) -> Vec<u8> {
    let server = if flows.destinations > 1 { FIRST_FAR } else { SERVER };
    let payload = vec![0; octets - HEADERS];
    let link = [&LINK[..], &[2, 0, 0, 0, 0, 9], &[8, 0]].concat();
    let packet = match case {
        Case::Nat(TrafficDirection::Down) => {
            let mut down = support::udp(server, FIRST_PUBLIC, PORTS.0, &payload);
            down[20..22].copy_from_slice(&PORTS.1.to_be_bytes());
            with_checksum(down)
        }
        Case::Kernel | Case::Masquerade => support::udp(GNB, server, PORTS.1, &payload),
        Case::AtAmbr(_, ecn) => with_ecn(support::udp(server, FIRST_UE, PORTS.0, &payload), ecn),
        _ if case.direction() == TrafficDirection::Down => from_server(server, &payload),
        Case::Nat(_) => tunnelled(&with_checksum(support::udp(FIRST_UE, server, PORTS.1, &payload))),
        _ => tunnelled(&support::udp(FIRST_UE, server, PORTS.1, &payload)),
    };
    [link, packet].concat()
}

/// From the port that filters name.
fn from_server(server: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
    let mut packet = support::udp(server, FIRST_UE, PORTS.0, payload);
    packet[20..22].copy_from_slice(&PORTS.1.to_be_bytes());
    packet
}

/// A checksum that NAT must update. It is not verified.
fn with_checksum(mut packet: Vec<u8>) -> Vec<u8> {
    packet[26..28].fill(0x5a);
    packet
}

/// A TCP segment's protocol number, and its ECN field.
fn with_ecn(mut packet: Vec<u8>, ecn: Ecn) -> Vec<u8> {
    packet[1] = match ecn {
        Ecn::NotCapable => 0,
        Ecn::Scalable => 1,
        Ecn::Classic => 2,
        Ecn::Experienced => 3,
    };
    packet[9] = 6;
    packet[10..12].fill(0);
    let words = packet[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    packet
}

fn tunnelled(inner: &[u8]) -> Vec<u8> {
    let information = UlPduSessionInformation { qfi: 9, qos_monitoring: None };
    let header = information.gpdu_header(FIRST_TEID, inner.len()).unwrap();
    let mut outer = support::udp(GNB, UPF, 2152, &[&header[..], inner].concat());
    outer[20..22].copy_from_slice(&2152u16.to_be_bytes());
    outer
}

/// What the generator changes in that frame.
pub fn traffic_of(case: Case, flows: Flows) -> Traffic {
    let destination_at = match case {
        _ if flows.destinations == 1 => 0,
        Case::Kernel | Case::Masquerade => ETHERNET + 16,
        _ => ETHERNET + TUNNEL + 16,
    };
    let (teid_at, address_at) = match case {
        Case::Upf(..) | Case::Nat(_) if case.direction() == TrafficDirection::Up => {
            (ETHERNET + 20 + 8 + 4, ETHERNET + TUNNEL + 12)
        }
        Case::Upf(..) | Case::Nat(_) | Case::PlainOuter | Case::Shaped(_) | Case::AtAmbr(..) => {
            (0, ETHERNET + 16)
        }
        _ => (0, 0),
    };
    let Flows { active: sessions, train, destinations, .. } = flows;
    Traffic { sessions, train, teid_at, address_at, destinations, destination_at, ..Traffic::default() }
}

/// The offsets of a user packet's payload in the frame that arrives at the UPF and in the one that leaves it.
pub fn payload_at(case: Case) -> (usize, usize) {
    let (plain, tunnelled) = (ETHERNET + HEADERS, ETHERNET + TUNNEL + HEADERS);
    match case {
        Case::Kernel | Case::Masquerade => (plain, plain),
        _ if case.direction() == TrafficDirection::Up => (tunnelled, plain),
        _ => (plain, tunnelled),
    }
}
