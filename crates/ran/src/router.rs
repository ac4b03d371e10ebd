//! Stateless address autoconfiguration of a UE (RFC 4862; TS 23.501 5.8.2.2.3): it solicits its router, the UPF, and makes its
//! address from the prefix in the Router Advertisement.

use crate::ipv6::{self, Packet};
use std::net::Ipv6Addr;

const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const PREFIX_INFORMATION: u8 = 3;
const MTU: u8 = 5;
const ON_LINK: u8 = 0x80;
const AUTONOMOUS: u8 = 0x40;
/// All routers and all nodes of a link (RFC 4291 2.7.1).
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The link-local address with the interface identifier of the accept.
pub fn link_local(interface_id: [u8; 8]) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(u64::from_be_bytes(interface_id)))
}

/// A Router Solicitation (RFC 4861 4.1).
pub fn solicitation(interface_id: [u8; 8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(ipv6::HEADER + 8);
    let addresses = (link_local(interface_id), ALL_ROUTERS);
    ipv6::write_icmp(&mut out, addresses, 255, [ROUTER_SOLICITATION, 0, 0, 0, 0, 0, 0, 0]);
    out
}

/// What a Router Advertisement says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advertisement {
    /// The prefix of 64 bits.
    pub prefix: Ipv6Addr,
    /// The largest packet, in octets.
    pub mtu: Option<u32>,
}

impl Advertisement {
    /// Whether a packet is a Router Advertisement, correct or not.
    pub fn is(packet: &[u8]) -> bool {
        Packet::read(packet).is_some_and(|packet| {
            packet.protocol == ipv6::ICMPV6 && packet.payload.first() == Some(&ROUTER_ADVERTISEMENT)
        })
    }

    /// Reads and checks a Router Advertisement for the UE with this interface identifier; the error has the clause.
    pub fn read(packet: &[u8], interface_id: [u8; 8]) -> Result<Self, (&'static str, String)> {
        const VALIDATION: &str = "RFC 4861 6.1.2";
        const PREFIX: &str = "TS 23.501 5.8.2.2.3";
        let invalid = |what: String| (VALIDATION, format!("Router Advertisement with {what}"));
        let packet = Packet::read(packet).ok_or_else(|| invalid("a wrong length".into()))?;
        let message = packet.icmp().ok_or_else(|| invalid("a wrong checksum".into()))?;
        if packet.hop_limit != 255 {
            return Err(invalid(format!("hop limit {}", packet.hop_limit)));
        }
        if !packet.source.is_unicast_link_local() || packet.source == link_local(interface_id) {
            return Err(invalid(format!("source {}", packet.source)));
        }
        if packet.destination != ALL_NODES && packet.destination != link_local(interface_id) {
            return Err(invalid(format!("destination {}", packet.destination)));
        }
        let Some(&[_, code, _, _, _, _, high, low, ..]) = message.first_chunk::<16>() else {
            return Err(invalid(format!("{} octets", message.len())));
        };
        if code != 0 {
            return Err(invalid(format!("code {code}")));
        }
        if [high, low] == [0, 0] {
            return Err((PREFIX, "Router Advertisement of no default router".into()));
        }
        let options =
            read_options(message.get(16..).unwrap_or_default()).map_err(|what| invalid(what.into()))?;
        match options.prefixes[..] {
            [prefix] => {
                check_prefix(&prefix).map_err(|what| (PREFIX, format!("prefix {prefix:?}: {what}")))?;
                Ok(Self { prefix: prefix.prefix, mtu: options.mtu })
            }
            _ => Err((PREFIX, format!("Router Advertisement with {} prefixes", options.prefixes.len()))),
        }
    }

    /// The UE's address. Its interface identifier is the UE's own choice, whatever that of its link-local address is.
    pub fn address(&self, interface_id: [u8; 8]) -> Ipv6Addr {
        let own = u64::from_be_bytes(interface_id).rotate_left(17) ^ 0x5a17_0c3e_91d2_4b68;
        Ipv6Addr::from_bits(self.prefix.to_bits() | u128::from(own))
    }
}

/// A Prefix Information option (RFC 4861 4.6.2).
#[derive(Debug, Clone, Copy)]
struct Prefix {
    length: u8,
    flags: u8,
    valid: u32,
    preferred: u32,
    prefix: Ipv6Addr,
}

#[derive(Debug, Default)]
struct Options {
    prefixes: Vec<Prefix>,
    mtu: Option<u32>,
}

fn read_options(mut rest: &[u8]) -> Result<Options, &'static str> {
    let mut options = Options::default();
    while let Some((&kind, _)) = rest.split_first() {
        let length = rest.get(1).map_or(0, |units| usize::from(*units) * 8);
        let option =
            rest.get(..length).filter(|option| !option.is_empty()).ok_or("an option of a wrong length")?;
        rest = rest.get(length..).unwrap_or_default();
        match (kind, length) {
            (PREFIX_INFORMATION, 32) => options.prefixes.push(prefix(option).ok_or("a short prefix")?),
            (MTU, 8) => {
                let mtu = option.last_chunk::<4>().copied().map(u32::from_be_bytes);
                options.mtu = Some(mtu.filter(|mtu| *mtu >= 1280).ok_or("an MTU below 1280")?);
            }
            (PREFIX_INFORMATION | MTU, _) => return Err("an option of a wrong length"),
            _ => {}
        }
    }
    Ok(options)
}

fn prefix(option: &[u8]) -> Option<Prefix> {
    let word = |at: usize| option.get(at..)?.first_chunk::<4>().copied().map(u32::from_be_bytes);
    let prefix = Ipv6Addr::from(*option.get(16..)?.first_chunk::<16>()?);
    Some(Prefix {
        length: *option.get(2)?,
        flags: *option.get(3)?,
        valid: word(4)?,
        preferred: word(8)?,
        prefix,
    })
}

/// Whether an address can be made of the prefix (RFC 4862 5.5.3), and no neighbour is expected on the link.
fn check_prefix(prefix: &Prefix) -> Result<(), &'static str> {
    let is_global = !prefix.prefix.is_unicast_link_local() && !prefix.prefix.is_multicast();
    match prefix {
        _ if prefix.length != 64 => Err("not of 64 bits"),
        _ if prefix.prefix.to_bits() as u64 != 0 => Err("bits after the prefix"),
        _ if !is_global => Err("no unicast prefix"),
        _ if prefix.flags & AUTONOMOUS == 0 => Err("not for autoconfiguration"),
        _ if prefix.flags & ON_LINK != 0 => Err("on-link"),
        _ if prefix.valid == 0 || prefix.preferred > prefix.valid => Err("lifetimes"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: [u8; 8] = [0x20, 1, 0xd, 0xb8, 0, 0x45, 0, 2];

    /// What scapy 2.5 makes of `IPv6(src="fe80::1", dst="ff02::1", hlim=255)/ICMPv6ND_RA(routerlifetime=1800)/
    /// ICMPv6NDOptMTU(mtu=1400)/ICMPv6NDOptPrefixInfo(L=0, prefix="2001:db8:45:2::")`, without its header.
    const SCAPY_RA: &str = "8600f939000807080000000000000000050100000000057803044040ffffffffffffffff0000000020010db8004500020000000000000000";

    fn packet(edit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut message = hex::decode(SCAPY_RA).unwrap();
        edit(&mut message);
        let mut out = Vec::new();
        ipv6::write_icmp(&mut out, ("fe80::1".parse().unwrap(), ALL_NODES), 255, without_checksum(message));
        out
    }

    fn without_checksum(mut message: Vec<u8>) -> Vec<u8> {
        message[2..4].fill(0);
        message
    }

    #[test]
    fn an_address_is_made_of_the_advertised_prefix() {
        let whole = packet(|_| {});
        assert_eq!(hex::encode(&whole[40..]), SCAPY_RA, "with the same checksum");
        let advertisement = Advertisement::read(&whole, ID).unwrap();
        assert_eq!(
            (advertisement.prefix.to_string(), advertisement.mtu),
            ("2001:db8:45:2::".into(), Some(1400))
        );
        let address = advertisement.address(ID);
        assert_eq!(address.to_bits() >> 64, advertisement.prefix.to_bits() >> 64);
        assert_ne!(address, advertisement.prefix);
    }

    #[test]
    fn what_a_phone_would_ignore_is_refused() {
        let refused = |edit: fn(&mut Vec<u8>)| Advertisement::read(&packet(edit), ID).unwrap_err().1;
        assert!(refused(|message| message[1] = 1).contains("code 1"));
        assert!(refused(|message| message[6..8].fill(0)).contains("no default router"));
        assert!(refused(|message| message[27] |= 0x80).contains("on-link"));
        assert!(refused(|message| message[27] = 0).contains("autoconfiguration"));
        assert!(refused(|message| message[26] = 56).contains("64 bits"));
        assert!(refused(|message| message[28..32].fill(0)).contains("lifetimes"));
        assert!(refused(|message| message[17] = 0).contains("wrong length"));
        assert!(refused(|message| message.truncate(24)).contains("0 prefixes"));
        assert!(refused(|message| message.truncate(12)).contains("12 octets"));
        for (at, expected) in [(7, "hop limit 254"), (43, "checksum"), (8, "checksum")] {
            let mut damaged = packet(|_| {});
            damaged[at] ^= 1;
            assert!(Advertisement::read(&damaged, ID).unwrap_err().1.contains(expected), "octet {at}");
        }
    }

    #[test]
    fn no_advertisement_causes_a_panic() {
        let whole = packet(|_| {});
        for length in 0..whole.len() {
            assert!(Advertisement::read(&whole[..length], ID).is_err());
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                let _ = Advertisement::read(&damaged, ID);
            }
        }
    }
}
