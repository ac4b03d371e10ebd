//! Expected and actual output packets.

use super::cast::{GATEWAY_V6, UPF_V6};
use super::octets::sum;
use super::oracle::{Side, Verdict};
use super::reader::{self, Message};
use super::stage::UPF_N6_V6;
use crate::support::{GATEWAY, UPF, UPF_N6};
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

/// Rounds by which a packet may be late: it was queued, or held until all rules change.
const ROUNDS: usize = 300;

/// The expected packets.
#[derive(Debug, Default)]
pub struct Arrivals {
    expected: HashMap<u64, Expected>,
    /// Address pairs whose packets may be modified, and the round of the last such packet.
    loose: HashMap<(IpAddr, IpAddr), usize>,
    rounds: VecDeque<Vec<u64>>,
    round: usize,
    outstanding: usize,
}

#[derive(Debug, Default)]
struct Expected {
    /// How often it must arrive, and how often it may arrive in addition.
    must: usize,
    may: usize,
    /// The packet that caused it.
    number: u64,
    rounds: usize,
}

impl Arrivals {
    /// Removes expectations of old rounds.
    pub fn begin_round(&mut self) {
        self.round += 1;
        self.rounds.push_back(Vec::new());
        if self.rounds.len() <= ROUNDS {
            return;
        }
        for key in self.rounds.pop_front().unwrap_or_default() {
            if let Some(expected) = self.expected.get_mut(&key) {
                expected.rounds -= 1;
                if expected.rounds == 0 {
                    self.expected.remove(&key);
                }
            }
        }
        let oldest = self.round.saturating_sub(ROUNDS);
        self.loose.retain(|_, round| *round >= oldest);
    }

    pub fn expect(&mut self, verdict: &Verdict, number: u64) {
        let certain = verdict.output();
        if let Some(output) = certain {
            let expected = self.entry(key(output.side, &output.octets), number);
            expected.must += 1;
            self.outstanding += 1;
        } else {
            for result in &verdict.results {
                let Some(output) = &result.output else { continue };
                for octets in
                    [Some(output.octets.clone()), marked(output.side, &output.octets)].into_iter().flatten()
                {
                    self.entry(key(output.side, &octets), number).may += 1;
                }
            }
        }
        if let Some(ends) = verdict.loose {
            self.loose.insert(ends, self.round);
        }
    }

    fn entry(&mut self, key: u64, number: u64) -> &mut Expected {
        if let Some(round) = self.rounds.back_mut() {
            round.push(key);
        }
        let expected = self.expected.entry(key).or_default();
        expected.number = number;
        expected.rounds += 1;
        expected
    }

    /// Compares a received packet; an error states why it was not expected.
    pub fn take(&mut self, side: Side, octets: &[u8]) -> Result<(), &'static str> {
        let expected = self.expected.get_mut(&key(side, octets));
        let known = expected.is_some();
        if let Some(expected) = expected {
            if expected.must > 0 {
                expected.must -= 1;
                self.outstanding -= 1;
                return Ok(());
            }
            if expected.may > 0 {
                expected.may -= 1;
                return Ok(());
            }
        }
        match known {
            _ if self.is_explained(side, octets) => Ok(()),
            true => Err("came more often than it may"),
            false => Err("nobody sent that, or not like that"),
        }
    }

    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Packets with outstanding output.
    pub fn missing(&self) -> Vec<u64> {
        let mut numbers: Vec<_> = self
            .expected
            .values()
            .filter(|expected| expected.must > 0)
            .map(|expected| expected.number)
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// Takes outstanding packets as lost, if the kernel lost packets.
    pub fn forgive(&mut self) {
        self.expected.values_mut().for_each(|expected| {
            expected.may += expected.must;
            expected.must = 0;
        });
        self.outstanding = 0;
    }

    /// Whether a packet is the UPF's own, the kernel's, or may have been modified by the kernel.
    fn is_explained(&self, side: Side, octets: &[u8]) -> bool {
        let packet = match (side, reader::message(octets)) {
            (Side::Network, _) => octets,
            (Side::Radio, Message::Gpdu { packet, .. }) => packet,
            (Side::Radio, message) => return message == Message::Signalling,
        };
        let Some(ip) = reader::packet(packet) else { return false };
        is_own(ip.source) || self.loose.contains_key(&(ip.source, ip.destination))
    }
}

fn is_own(source: IpAddr) -> bool {
    match source {
        IpAddr::V4(v4) => [UPF, UPF_N6, GATEWAY].contains(&v4),
        // The first address of a subnet is its routers' anycast address.
        IpAddr::V6(v6) if v6.to_bits() as u64 == 0 => true,
        IpAddr::V6(v6) => {
            [UPF_V6, UPF_N6_V6, GATEWAY_V6].contains(&v6) || v6.segments()[0] == 0xfe80 || v6.is_unspecified()
        }
    }
}

/// The invariant part of a packet on any path: all of it except a meaningless ID (DF, RFC 6864 4.1).
fn key(side: Side, octets: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    side.hash(&mut hasher);
    let at = packet_at(side, octets);
    octets[..at].hash(&mut hasher);
    let mut packet = octets[at..].to_vec();
    let head = usize::from(packet.first().unwrap_or(&0) & 15) * 4;
    let is_v4 = packet.first().is_some_and(|first| first >> 4 == 4) && head >= 20 && head <= packet.len();
    if is_v4 && sum(&[&packet[..head]]) == 0xffff && packet[6] & 0x40 != 0 {
        packet[4..6].fill(0);
        packet[10..12].fill(0);
    }
    packet.hash(&mut hasher);
    hasher.finish()
}

/// Offset of the user packet.
fn packet_at(side: Side, octets: &[u8]) -> usize {
    match side {
        Side::Network => 0,
        Side::Radio => match reader::message(octets) {
            Message::Gpdu { packet, .. } => packet.as_ptr() as usize - octets.as_ptr() as usize,
            _ => octets.len(),
        },
    }
}

/// The same packet with CE, if its ends support ECN (RFC 3168 5).
fn marked(side: Side, octets: &[u8]) -> Option<Vec<u8>> {
    let at = packet_at(side, octets);
    let mut marked = octets.to_vec();
    let packet = marked.get_mut(at..)?;
    match packet.first()? >> 4 {
        4 if packet.len() >= 20 && packet[1] & 3 != 0 => {
            let head = usize::from(packet[0] & 15) * 4;
            let (old, new) = (packet[1], packet[1] | 3);
            packet[1] = new;
            let sum = u32::from(!u16::from_be_bytes([packet[10], packet[11]])) + u32::from(new - old);
            let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            (head >= 20).then_some(marked)
        }
        6 if packet.len() >= 40 && packet[1] & 0x30 != 0 => {
            packet[1] |= 0x30;
            Some(marked)
        }
        _ => None,
    }
}
