//! Attackers that send datagrams: a UE, an unknown peer on N4, a host in the data network.

use crate::pace::Pace;
use anyhow::{Context, Result};
use pith_fuzz::corpus::{self, Seed};
use pith_fuzz::mutate::Mutator;
use pith_fuzz::random::Random;
use pith_fuzz::target::Shape;
use serde_json::{Value, json};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::thread::sleep;

/// Ports of a core, a radio and a host: GTP-U, PFCP, SBI, REST API, SSH, DNS, NGAP, HTTP.
const PORTS: [u16; 9] = [2152, 8805, 7777, 5100, 22, 53, 38412, 80, 443];

/// Mutated messages of a corpus.
struct Material {
    seeds: Vec<Seed>,
    random: Random,
}

impl Material {
    fn of(corpus: &str, seed: u64) -> Result<Self> {
        Ok(Self { seeds: corpus::read(corpus)?, random: Random::new(seed) })
    }

    fn next(&mut self) -> Vec<u8> {
        Mutator::new(Shape::Octets, &self.seeds).make(&mut self.random)
    }
}

/// A UE's packets: UDP to every port of each target, and IP packets with other protocols and forged sources.
pub fn phone(device: &str, targets: &[Ipv4Addr], seed: u64, pace: &mut Pace) -> Result<Value> {
    let mut gtpu = Material::of("gtpu", seed)?;
    let mut pfcp = Material::of("pfcp", seed)?;
    let udp = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    udp.bind_device(Some(device.as_bytes())).with_context(|| format!("can't use {device}"))?;
    udp.set_nonblocking(true)?;
    // IPPROTO_RAW: the sender supplies the IP header.
    let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255)))?;
    raw.bind_device(Some(device.as_bytes()))?;
    raw.set_nonblocking(true)?;
    let mut random = Random::new(seed);
    let (mut refused, mut answers) = (0u64, 0u64);
    let mut buffer = [std::mem::MaybeUninit::uninit(); 2048];
    while pace.is_on() {
        let due = pace.due();
        for _ in 0..due {
            let target = *random.pick(targets).context("no target")?;
            let port = *random.pick(&PORTS).unwrap_or(&2152);
            let sent = match random.below(4) {
                0 => {
                    let packet = ip_packet(target, &mut random);
                    raw.send_to(&packet, &SocketAddrV4::new(target, 0).into())
                }
                1 => udp.send_to(&pfcp.next(), &SocketAddrV4::new(target, port).into()),
                _ => udp.send_to(&gtpu.next(), &SocketAddrV4::new(target, port).into()),
            };
            refused += u64::from(sent.is_err());
        }
        while udp.recv(&mut buffer).is_ok() {
            answers += 1;
        }
        pace.count(due);
        sleep(pace.tick());
    }
    Ok(json!({ "refused by this system": refused, "answers": answers }))
}

/// An IPv4 packet with its header: SCTP INIT, IP in IP, GRE, ICMP redirect, fragments, forged sources.
fn ip_packet(target: Ipv4Addr, random: &mut Random) -> Vec<u8> {
    let protocols = [132, 4, 41, 47, 1, 17, 6, 50];
    let protocol = *random.pick(&protocols).unwrap_or(&132);
    let mut payload: Vec<u8> = match protocol {
        // INIT to the AMF's port (RFC 9260 3.3.2), with an invalid checksum.
        132 => [0x96, 0x0c, 0x96, 0x0c, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 20].to_vec(),
        17 => [0x08, 0x68, 0x08, 0x68, 0, 32, 0, 0, 0x30, 0xff, 0, 16].to_vec(),
        1 => [5, 1, 0, 0, 127, 0, 0, 1].to_vec(),
        _ => Vec::new(),
    };
    payload.extend((0..24).map(|_| random.octet()));
    let forged = [Ipv4Addr::LOCALHOST, target, Ipv4Addr::new(10, 210, 0, 2), Ipv4Addr::new(10, 45, 0, 9)];
    let source = *random.pick(&forged).unwrap_or(&Ipv4Addr::LOCALHOST);
    let length = (20 + payload.len()) as u16;
    let fragment = if random.once_in(4) { [0x20, random.octet()] } else { [0, 0] };
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([random.octet(), random.octet()]);
    packet.extend(fragment);
    packet.extend([64, protocol, 0, 0]);
    packet.extend(source.octets());
    packet.extend(target.octets());
    packet.extend(payload);
    packet
}

/// PFCP of an unknown peer: well-formed association requests with many Node IDs, and mutated
/// messages of every type.
pub fn n4(target: SocketAddr, local: SocketAddr, seed: u64, pace: &mut Pace) -> Result<Value> {
    let mut material = Material::of("pfcp", seed)?;
    let socket = UdpSocket::bind(local).with_context(|| format!("can't use {local}"))?;
    socket.connect(target)?;
    socket.set_nonblocking(true)?;
    let mut answers: BTreeMap<u8, u64> = BTreeMap::new();
    let mut buffer = [0; 4096];
    let mut number = 0u32;
    while pace.is_on() {
        let due = pace.due();
        for _ in 0..due {
            number = number.wrapping_add(1);
            let message = if number.is_multiple_of(4) { association(number) } else { material.next() };
            // The next call returns the error of a closed port, which also counts as an answer.
            let _ = socket.send(&message);
        }
        loop {
            match socket.recv(&mut buffer) {
                Ok(length) if length > 1 => *answers.entry(buffer[1]).or_default() += 1,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(_) => break,
            }
        }
        pace.count(due);
        sleep(pace.tick());
    }
    Ok(json!({ "answers by message type": answers }))
}

/// PFCP Association Setup Request (TS 29.244 7.4.4.1) with a Node ID derived from `number`.
fn association(number: u32) -> Vec<u8> {
    let [_, a, b, c] = number.to_be_bytes();
    let mut message = vec![0x20, 5, 0, 0, a, b, c, 0];
    message.extend([0, 60, 0, 5, 0, 10, a, b, c]);
    message.extend([0, 96, 0, 4, 0xe6, 0, 0, 0]);
    let length = (message.len() - 4) as u16;
    message[2..4].copy_from_slice(&length.to_be_bytes());
    message
}

/// Packets from the data network to UE addresses, most of them without a session.
pub fn network(first: Ipv4Addr, count: u32, seed: u64, pace: &mut Pace) -> Result<Value> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.set_nonblocking(true)?;
    let mut random = Random::new(seed);
    let mut refused = 0u64;
    let payload: Vec<u8> = (0..1200).map(|_| random.octet()).collect();
    while pace.is_on() {
        let due = pace.due();
        for _ in 0..due {
            let address = u32::from(first).wrapping_add(random.below(count as usize) as u32);
            let port = *random.pick(&PORTS).unwrap_or(&2152);
            let length = 8 + random.below(payload.len() - 8);
            let to = SocketAddrV4::new(address.into(), port);
            refused += u64::from(socket.send_to(&payload[..length], to).is_err());
        }
        pace.count(due);
        sleep(pace.tick());
    }
    Ok(json!({ "refused by this system": refused }))
}
