//! Addresses of functions, tunnels and UEs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::IeFault;
use crate::group::Ie;
use crate::ie::interface::DestinationInterface;
use crate::ie::name::NetworkInstance;
use crate::wire::{Reader, put_octets16};

pub(crate) fn ipv4(value: &mut Reader<'_>) -> Result<Ipv4Addr, IeFault> {
    value.array::<4>().map(Ipv4Addr::from)
}

pub(crate) fn ipv6(value: &mut Reader<'_>) -> Result<Ipv6Addr, IeFault> {
    value.array::<16>().map(Ipv6Addr::from)
}

/// Appends the addresses that are present, IPv4 first.
pub(crate) fn put_addresses(out: &mut Vec<u8>, ipv4: Option<Ipv4Addr>, ipv6: Option<Ipv6Addr>) {
    out.extend(ipv4.iter().flat_map(|address| address.octets()));
    out.extend(ipv6.iter().flat_map(|address| address.octets()));
}

/// A flag octet from bit numbers (1 to 8, as in the specification) and values.
pub(crate) fn flags<const N: usize>(bits: [(u8, bool); N]) -> u8 {
    bits.iter().filter(|(_, set)| *set).fold(0, |octet, (bit, _)| octet | 1 << (bit - 1))
}

/// Whether bit `bit` (1 to 8, as in the specification) is set.
pub(crate) fn bit(octet: u8, bit: u8) -> bool {
    octet & (1 << (bit - 1)) != 0
}

/// F-SEID: a session endpoint with its addresses (TS 29.244 8.2.37).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FSeid {
    /// The session endpoint identifier.
    pub seid: u64,
    /// The IPv4 address of the function.
    pub ipv4: Option<Ipv4Addr>,
    /// The IPv6 address of the function.
    pub ipv6: Option<Ipv6Addr>,
}

impl FSeid {
    /// The session endpoint `seid` at `address`.
    pub fn new(seid: u64, address: IpAddr) -> Self {
        let (ipv4, ipv6) = split(address);
        FSeid { seid, ipv4, ipv6 }
    }
}

fn split(address: IpAddr) -> (Option<Ipv4Addr>, Option<Ipv6Addr>) {
    match address {
        IpAddr::V4(address) => (Some(address), None),
        IpAddr::V6(address) => (None, Some(address)),
    }
}

impl Ie for FSeid {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        if octet & 0b11 == 0 {
            return Err(IeFault::Incorrect("an F-SEID needs an address"));
        }
        let seid = value.u64()?;
        Ok(FSeid { seid, ipv4: value.when(bit(octet, 2), ipv4)?, ipv6: value.when(bit(octet, 1), ipv6)? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(flags([(1, self.ipv6.is_some()), (2, self.ipv4.is_some())]));
        out.extend(self.seid.to_be_bytes());
        put_addresses(out, self.ipv4, self.ipv6);
    }
}

/// F-TEID: a GTP-U tunnel endpoint, or the request to allocate one (TS 29.244 8.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FTeid {
    /// An allocated endpoint.
    Allocated {
        /// The tunnel endpoint identifier, shared by both addresses.
        teid: u32,
        /// Its IPv4 address.
        ipv4: Option<Ipv4Addr>,
        /// Its IPv6 address.
        ipv6: Option<Ipv6Addr>,
    },
    /// CHOOSE: the UP function allocates one.
    Choose {
        /// With an IPv4 address.
        ipv4: bool,
        /// With an IPv6 address.
        ipv6: bool,
        /// CHOOSE ID: rules of a request with the same value share an endpoint.
        choose_id: Option<u8>,
    },
}

impl FTeid {
    /// The endpoint `teid` at `address`.
    pub fn new(teid: u32, address: IpAddr) -> Self {
        let (ipv4, ipv6) = split(address);
        FTeid::Allocated { teid, ipv4, ipv6 }
    }
}

impl Ie for FTeid {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        let (v4, v6) = (bit(octet, 1), bit(octet, 2));
        if !v4 && !v6 {
            return Err(IeFault::Incorrect("an F-TEID needs V4, V6 or both"));
        }
        if bit(octet, 3) {
            let choose_id = value.when(bit(octet, 4), Reader::u8)?;
            return Ok(FTeid::Choose { ipv4: v4, ipv6: v6, choose_id });
        }
        let teid = value.u32()?;
        Ok(FTeid::Allocated { teid, ipv4: value.when(v4, ipv4)?, ipv6: value.when(v6, ipv6)? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            FTeid::Allocated { teid, ipv4, ipv6 } => {
                out.push(flags([(1, ipv4.is_some()), (2, ipv6.is_some())]));
                out.extend(teid.to_be_bytes());
                put_addresses(out, ipv4, ipv6);
            }
            FTeid::Choose { ipv4, ipv6, choose_id } => {
                out.push(flags([(1, ipv4), (2, ipv6), (3, true), (4, choose_id.is_some())]));
                out.extend(choose_id);
            }
        }
    }
}

/// A given address, or one to be allocated by the UP function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice<T> {
    /// This address.
    Given(T),
    /// The UP function allocates one.
    Choose,
}

impl<T> Choice<T> {
    /// The address, if it is given.
    pub fn given(self) -> Option<T> {
        match self {
            Choice::Given(address) => Some(address),
            Choice::Choose => None,
        }
    }
}

/// The end of a packet that an address is matched with (the S/D bit).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketEnd {
    /// The source, in uplink packets.
    Source,
    /// The destination, in downlink packets.
    Destination,
}

/// UE IP Address (TS 29.244 8.2.62).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UeIpAddress {
    /// The IPv4 address.
    pub ipv4: Option<Choice<Ipv4Addr>>,
    /// The IPv6 address; only its prefix is significant.
    pub ipv6: Option<Choice<Ipv6Addr>>,
    /// The end to match; significant only in a PDI or a traffic endpoint.
    pub end: PacketEnd,
    /// Bits of prefix delegation that shorten the /64 prefix.
    pub prefix_delegation_bits: Option<u8>,
    /// The length of the prefix in bits, if it is not 64.
    pub prefix_len: Option<u8>,
}

impl UeIpAddress {
    /// The address `address`, matched at `end`.
    pub fn new(address: IpAddr, end: PacketEnd) -> Self {
        let (ipv4, ipv6) = split(address);
        UeIpAddress {
            ipv4: ipv4.map(Choice::Given),
            ipv6: ipv6.map(Choice::Given),
            end,
            prefix_delegation_bits: None,
            prefix_len: None,
        }
    }
}

fn choice<T>(
    value: &mut Reader<'_>,
    given: bool,
    choose: bool,
    address: impl FnOnce(&mut Reader<'_>) -> Result<T, IeFault>,
) -> Result<Option<Choice<T>>, IeFault> {
    match (given, choose) {
        (true, true) => Err(IeFault::Incorrect("a UE address is both given and to be chosen")),
        (true, false) => address(value).map(|address| Some(Choice::Given(address))),
        (false, true) => Ok(Some(Choice::Choose)),
        (false, false) => Ok(None),
    }
}

impl Ie for UeIpAddress {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        Ok(UeIpAddress {
            ipv4: choice(value, bit(octet, 2), bit(octet, 5), ipv4)?,
            ipv6: choice(value, bit(octet, 1), bit(octet, 6), ipv6)?,
            end: if bit(octet, 3) { PacketEnd::Destination } else { PacketEnd::Source },
            prefix_delegation_bits: value.when(bit(octet, 4), Reader::u8)?,
            prefix_len: value.when(bit(octet, 7), Reader::u8)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let ipv4 = self.ipv4.and_then(Choice::given);
        let ipv6 = self.ipv6.and_then(Choice::given);
        out.push(flags([
            (1, ipv6.is_some()),
            (2, ipv4.is_some()),
            (3, self.end == PacketEnd::Destination),
            (4, self.prefix_delegation_bits.is_some()),
            (5, self.ipv4 == Some(Choice::Choose)),
            (6, self.ipv6 == Some(Choice::Choose)),
            (7, self.prefix_len.is_some()),
        ]));
        put_addresses(out, ipv4, ipv6);
        out.extend(self.prefix_delegation_bits);
        out.extend(self.prefix_len);
    }
}

/// Addresses of a function: CP PFCP Entity IP Address, CP IP Address (TS 29.244 8.2.135, 8.2.199).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntityIpAddress {
    /// Its IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// Its IPv6 address.
    pub ipv6: Option<Ipv6Addr>,
}

impl Ie for EntityIpAddress {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        Ok(EntityIpAddress { ipv4: value.when(bit(octet, 2), ipv4)?, ipv6: value.when(bit(octet, 1), ipv6)? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(flags([(1, self.ipv6.is_some()), (2, self.ipv4.is_some())]));
        put_addresses(out, self.ipv4, self.ipv6);
    }
}

/// Alternative SMF IP Address (TS 29.244 8.2.129).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AlternativeSmfIpAddress {
    /// The addresses.
    pub address: EntityIpAddress,
    /// PPE: preferred when another PFCP entity is selected.
    pub preferred: bool,
}

impl Ie for AlternativeSmfIpAddress {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let preferred = bit(value.clone().u8()?, 3);
        Ok(AlternativeSmfIpAddress { address: EntityIpAddress::decode(value)?, preferred })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let EntityIpAddress { ipv4, ipv6 } = self.address;
        out.push(flags([(1, ipv6.is_some()), (2, ipv4.is_some()), (3, self.preferred)]));
        put_addresses(out, ipv4, ipv6);
    }
}

/// Source IP Address, of a heartbeat or of a multicast source (TS 29.244 8.2.138).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceIpAddress {
    /// The addresses.
    pub address: EntityIpAddress,
    /// Prefix length.
    pub prefix_len: Option<u8>,
}

impl Ie for SourceIpAddress {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let has_prefix_len = bit(value.clone().u8()?, 3);
        let address = EntityIpAddress::decode(value)?;
        Ok(SourceIpAddress { address, prefix_len: value.when(has_prefix_len, Reader::u8)? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let EntityIpAddress { ipv4, ipv6 } = self.address;
        out.push(flags([(1, ipv6.is_some()), (2, ipv4.is_some()), (3, self.prefix_len.is_some())]));
        put_addresses(out, ipv4, ipv6);
        out.extend(self.prefix_len);
    }
}

/// IP Multicast Address: one, a range, or any (TS 29.244 8.2.137).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IpMulticastAddress {
    /// Any IP multicast address.
    Any,
    /// From the first to the second IPv4 address; without a second, only the first.
    Ipv4(Ipv4Addr, Option<Ipv4Addr>),
    /// From the first to the second IPv6 address; without a second, only the first.
    Ipv6(Ipv6Addr, Option<Ipv6Addr>),
}

impl Ie for IpMulticastAddress {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        let range = bit(octet, 3);
        match (bit(octet, 4), bit(octet, 2), bit(octet, 1)) {
            (true, false, false) => Ok(IpMulticastAddress::Any),
            (false, true, false) => Ok(IpMulticastAddress::Ipv4(ipv4(value)?, value.when(range, ipv4)?)),
            (false, false, true) => Ok(IpMulticastAddress::Ipv6(ipv6(value)?, value.when(range, ipv6)?)),
            _ => Err(IeFault::Incorrect("an IP multicast address needs exactly one of A, V4 and V6")),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            IpMulticastAddress::Any => out.push(flags([(4, true)])),
            IpMulticastAddress::Ipv4(start, end) => {
                out.push(flags([(2, true), (3, end.is_some())]));
                put_addresses(out, Some(start), None);
                put_addresses(out, end, None);
            }
            IpMulticastAddress::Ipv6(start, end) => {
                out.push(flags([(1, true), (3, end.is_some())]));
                put_addresses(out, None, Some(start));
                put_addresses(out, None, end);
            }
        }
    }
}

/// Remote GTP-U Peer (TS 29.244 8.2.70).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteGtpuPeer {
    /// The peer's addresses.
    pub address: EntityIpAddress,
    /// The interface towards it.
    pub destination_interface: Option<DestinationInterface>,
    /// The network instance of the peer.
    pub network_instance: Option<NetworkInstance>,
}

impl Ie for RemoteGtpuPeer {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.clone().u8()?;
        let address = EntityIpAddress::decode(value)?;
        let interface = value.when(bit(octet, 3), Reader::octets16)?;
        let instance = value.when(bit(octet, 4), Reader::octets16)?;
        Ok(RemoteGtpuPeer {
            address,
            destination_interface: interface.and_then(|field| field.first().copied()).map(Into::into),
            network_instance: instance.map(NetworkInstance),
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let EntityIpAddress { ipv4, ipv6 } = self.address;
        let (interface, instance) = (&self.destination_interface, &self.network_instance);
        out.push(flags([
            (1, ipv6.is_some()),
            (2, ipv4.is_some()),
            (3, interface.is_some()),
            (4, instance.is_some()),
        ]));
        put_addresses(out, ipv4, ipv6);
        interface.iter().for_each(|interface| put_octets16(out, &[interface.value()]));
        instance.iter().for_each(|instance| put_octets16(out, &instance.0));
    }
}
