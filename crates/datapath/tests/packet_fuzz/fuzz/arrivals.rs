//! Expected and actual output packets.

use super::case::control_number;
use super::cast::{GATEWAY_V6, UPF_V6};
use super::nat::Nat;
use super::octets::sum;
use super::oracle::{Side, Verdict};
use super::reader::{self, Message};
use super::stage::UPF_N6_V6;
use super::translation::{self, Original};
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
    /// Packets that may come to the data network translated, by what translation keeps.
    originals: HashMap<u64, Vec<(usize, Original)>>,
    /// The number of the last control of a session, by side and addresses.
    controls: HashMap<(Side, IpAddr, IpAddr), u64>,
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
        if self.round.is_multiple_of(ROUNDS) {
            self.originals.retain(|_, packets| packets.iter().any(|(round, _)| *round >= oldest));
        }
        self.loose.retain(|_, round| *round >= oldest);
    }

    pub fn expect(&mut self, verdict: &Verdict, number: u64) {
        let certain = verdict.output();
        if let Some(output) = certain {
            let expected = self.entry(key(output.side, &output.octets), number);
            expected.must += 1;
            self.outstanding += 1;
            self.keep_original(output.side, &output.octets);
        } else {
            for result in &verdict.results {
                let Some(output) = &result.output else { continue };
                for octets in
                    [Some(output.octets.clone()), marked(output.side, &output.octets)].into_iter().flatten()
                {
                    self.entry(key(output.side, &octets), number).may += 1;
                    self.keep_original(output.side, &octets);
                }
            }
        }
        if let Some(ends) = verdict.loose {
            self.loose.insert(ends, self.round);
        }
    }

    fn keep_original(&mut self, side: Side, octets: &[u8]) {
        if let Some((kept, original)) = translation::original(octets).filter(|_| side == Side::Network) {
            self.originals.entry(kept).or_default().push((self.round, original));
        }
    }

    /// A packet at the data network as its UE sent it.
    pub fn restore(&self, nat: &mut Nat, octets: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
        let kept = translation::original(octets).map_or(0, |(kept, _)| kept);
        let originals = self.originals.get(&kept).into_iter().flatten().map(|(_, original)| original);
        nat.restore(octets, originals)
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

    /// Compares a packet that NAT has not been found to have translated: of the kernel itself, or changed by it.
    pub fn take_untranslated(&mut self, octets: &[u8]) -> Result<(), &'static str> {
        let Some(ip) = reader::packet(octets) else { return Err("no packet") };
        // The kernel's reports repeat options.
        let payload = octets.get(usize::from(octets[0] & 15) * 4..).unwrap_or_default();
        let is_report =
            ip.protocol == 1 && payload.first().is_some_and(|kind| matches!(kind, 0 | 3 | 11 | 12));
        let is_reset = ip.protocol == 6 && payload.get(13).is_some_and(|flags| flags & 4 != 0);
        let is_part = octets[6] & 0x3f != 0 || octets[7] != 0;
        let is_odd = octets[0] != 0x45 || is_part || ![1, 6, 17].contains(&ip.protocol);
        let is_loose = || self.loose.keys().any(|(_, to)| *to == ip.destination);
        let is_group = matches!(ip.destination, IpAddr::V4(v4) if v4.is_multicast());
        // Of neither a UE nor this host, and only routed.
        let is_routed =
            ip.source != IpAddr::V4(UPF_N6) && self.loose.contains_key(&(ip.source, ip.destination));
        // GTP-U signalling in answer to a forged source: a limited number.
        let is_signalling = ip.source == IpAddr::V4(UPF) && ip.protocol == 17;
        let is_upfs = is_report || is_reset || is_group || is_routed || is_signalling;
        if is_upfs || is_odd && is_loose() { Ok(()) } else { Err("NAT sent what no UE did") }
    }

    /// Compares a received packet; an error states why it was not expected.
    pub fn take(&mut self, side: Side, octets: &[u8]) -> Result<(), &'static str> {
        let expected = self.expected.get_mut(&key(side, octets));
        let known = expected.is_some();
        let number = control_number(octets.get(packet_at(side, octets)..).unwrap_or_default());
        if let Some(expected) = expected {
            if expected.must > 0 {
                expected.must -= 1;
                self.outstanding -= 1;
                return number.map_or(Ok(()), |number| self.in_order(side, octets, number));
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

    /// The packets of a session's flow stay in order.
    fn in_order(&mut self, side: Side, octets: &[u8], number: u64) -> Result<(), &'static str> {
        let Some(ip) = reader::packet(&octets[packet_at(side, octets)..]) else { return Ok(()) };
        match self.controls.insert((side, ip.source, ip.destination), number) {
            Some(last) if last >= number => Err("was overtaken by another of its session"),
            _ => Ok(()),
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
    // Zero and all ones are the same sum; for UDP zero is none.
    let check = match packet.get(9) {
        Some(1) => 22..24,
        Some(6) => 36..38,
        _ => 0..0,
    };
    if is_v4 && head == 20 && packet.get(check.clone()) == Some(&[0xff; 2]) {
        packet[check].fill(0);
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
