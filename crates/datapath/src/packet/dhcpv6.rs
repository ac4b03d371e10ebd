//! DHCPv6 on the link between a UE and its UPF (RFC 8415; TS 23.501 5.8.2.2.3, 5.8.2.2.4): the UPF delegates the rest of the
//! session's prefix to a requesting router behind the UE, and sends the data network's DNS servers.
//!
//! The server has no state: a session has one prefix to delegate, whatever DUID and IAID the client has, and the prefix lasts as long
//! as the session. So any worker answers, and a successor of this process goes on. Addresses are not assigned: UEs make them from
//! the advertised prefix.

use super::checksum::{put, transport_checksum, transport_holds};
use super::flow::{Flow, IPV6_HEADER_LEN, UDP};
use super::neighbour::ROUTER;
use pith_upf::contract::UeAddress;
use std::net::{IpAddr, Ipv6Addr};

const UDP_HEADER_LEN: usize = 8;
const CLIENT_PORT: u16 = 546;
/// The port of servers and relay agents (RFC 8415 7.2).
pub const SERVER_PORT: u16 = 547;
/// All_DHCP_Relay_Agents_and_Servers (RFC 8415 7.1). The server does not send the Server Unicast option, so that clients send to this
/// address only.
pub const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
const HOP_LIMIT: u8 = 64;

/// Message types (RFC 8415 7.3).
mod message {
    pub const SOLICIT: u8 = 1;
    pub const ADVERTISE: u8 = 2;
    pub const REQUEST: u8 = 3;
    pub const CONFIRM: u8 = 4;
    pub const RENEW: u8 = 5;
    pub const REBIND: u8 = 6;
    pub const REPLY: u8 = 7;
    pub const RELEASE: u8 = 8;
    pub const DECLINE: u8 = 9;
    pub const INFORMATION_REQUEST: u8 = 11;
}

/// Option codes (RFC 8415 21, RFC 3646 3, RFC 6603 4.2).
mod option {
    pub const CLIENT_ID: u16 = 1;
    pub const SERVER_ID: u16 = 2;
    pub const IA_NA: u16 = 3;
    pub const IA_TA: u16 = 4;
    pub const IA_ADDRESS: u16 = 5;
    pub const REQUESTED: u16 = 6;
    pub const PREFERENCE: u16 = 7;
    pub const STATUS_CODE: u16 = 13;
    pub const RAPID_COMMIT: u16 = 14;
    pub const DNS_SERVERS: u16 = 23;
    pub const IA_PD: u16 = 25;
    pub const IA_PREFIX: u16 = 26;
    pub const PD_EXCLUDE: u16 = 67;
}

/// Status codes (RFC 8415 21.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseStatus {
    Success = 0,
    NoAddrsAvail = 2,
    NoBinding = 3,
    NotOnLink = 4,
    NoPrefixAvail = 6,
}

/// The longest DUID (RFC 8415 11.1), and the shortest: a type, and one octet.
const DUID_LENGTHS: std::ops::RangeInclusive<usize> = 3..=130;
/// Maximum number of options of a message, or in an option.
const MAX_OPTIONS: usize = 64;
/// Maximum number of identity associations in a message, and of addresses or prefixes in one. The longest answer fits into the least MTU of
/// IPv6; a message with more is not answered.
const MAX_ASSOCIATIONS: usize = 4;
const MAX_LEASES: usize = 4;
/// DNS servers in an answer.
const MAX_DNS: usize = 8;
/// A lifetime, T1 or T2 without an end (RFC 8415 7.7).
const INFINITE: u32 = u32::MAX;
/// The client need not wait for other servers: the link has one (RFC 8415 21.8).
const ONLY_SERVER: u8 = 255;
/// The prefix length of a link.
const LINK_PREFIX: u8 = 64;

/// The DHCPv6 server of a UE's link.
#[derive(Debug, Clone, Copy)]
pub struct Dhcpv6Server<'a> {
    /// Its DUID, see [`server_duid`].
    pub duid: &'a [u8],
    /// The session's prefix.
    pub ue: UeAddress,
    /// DNS servers of the data network.
    pub dns: &'a [Ipv6Addr],
}

/// The DUID of the UPF with this N3 address: a DUID-UUID (RFC 6355) with a UUID of version 8 (RFC 9562 5.8). It is the same after a
/// restart.
pub fn server_duid(n3: Option<IpAddr>) -> [u8; 18] {
    const NAME: [u8; 16] = *b"Pith UPF DHCPv6!";
    let address = match n3 {
        None => [0; 16],
        Some(IpAddr::V4(v4)) => v4.to_ipv6_mapped().octets(),
        Some(IpAddr::V6(v6)) => v6.octets(),
    };
    let mut duid = [0; 18];
    put(&mut duid, 0, &[0, 4]);
    // The version and variant bits are in octets 6 and 8, where an IPv4-mapped address has zeros.
    for ((place, name), octet) in duid.iter_mut().skip(2).zip(NAME).zip(address) {
        *place = name ^ octet;
    }
    duid[2 + 6] = duid[2 + 6] & 0x0f | 0x80;
    duid[2 + 8] = duid[2 + 8] & 0x3f | 0x80;
    duid
}

/// A valid message of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dhcpv6Message<'a> {
    /// The client's link-local address.
    from: Ipv6Addr,
    kind: u8,
    transaction: [u8; 3],
    client: Option<&'a [u8]>,
    server: Option<&'a [u8]>,
    associations: Vec<IdentityAssociation>,
    wants_dns: bool,
    /// Prefix exclusion (RFC 6603 5.1).
    wants_exclusion: bool,
    rapid_commit: bool,
}

/// An identity association of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IdentityAssociation {
    /// [`option::IA_NA`], [`option::IA_TA`] or [`option::IA_PD`].
    code: u16,
    id: [u8; 4],
    /// Addresses with prefix length 128, or prefixes, that the client has or would like.
    leases: Vec<(Ipv6Addr, u8)>,
}

impl<'a> Dhcpv6Message<'a> {
    /// Reads a packet whose headers are `flow`; `None` if it is no message of a client for all servers of the link, and for one that a server
    /// discards (RFC 8415 16). Messages of relay agents are discarded, too: the UE is a host or a requesting router.
    pub fn read(packet: &'a [u8], flow: &Flow) -> Option<Self> {
        let (IpAddr::V6(from), IpAddr::V6(to)) = (flow.source, flow.destination) else { return None };
        let is_for_server = flow.protocol == UDP && flow.transport_at == IPV6_HEADER_LEN && to == ALL_SERVERS;
        if !is_for_server || !from.is_unicast_link_local() {
            return None;
        }
        let (ip, datagram) = packet.get(..flow.length)?.split_at_checked(IPV6_HEADER_LEN)?;
        let (&[_, _, port_high, port_low, high, low, sum_high, sum_low], data) =
            datagram.split_first_chunk::<UDP_HEADER_LEN>()?;
        let is_sound = u16::from_be_bytes([port_high, port_low]) == SERVER_PORT
            && usize::from(u16::from_be_bytes([high, low])) == datagram.len()
            // Over IPv6 each datagram has a checksum (RFC 8200 8.1).
            && [sum_high, sum_low] != [0, 0]
            && transport_holds(ip, UDP, datagram);
        if is_sound { Self::decode(from, data) } else { None }
    }

    /// Decodes the message in a datagram of the client `from`; `None` if a server discards it.
    pub fn decode(from: Ipv6Addr, data: &'a [u8]) -> Option<Self> {
        let (&[kind, a, b, c], options) = data.split_first_chunk()?;
        let mut message = Self {
            from,
            kind,
            transaction: [a, b, c],
            client: None,
            server: None,
            associations: Vec::new(),
            wants_dns: false,
            wants_exclusion: false,
            rapid_commit: false,
        };
        for (code, value) in read_options(options)? {
            message.take_option(code, value)?;
        }
        message.is_valid().then_some(message)
    }

    /// `None` if the option makes the message invalid.
    fn take_option(&mut self, code: u16, value: &'a [u8]) -> Option<()> {
        match code {
            option::CLIENT_ID => set_once(&mut self.client, check_duid(value)?)?,
            option::SERVER_ID => set_once(&mut self.server, check_duid(value)?)?,
            option::IA_NA | option::IA_TA | option::IA_PD => {
                if self.associations.len() == MAX_ASSOCIATIONS {
                    return None;
                }
                self.associations.push(IdentityAssociation::decode(code, value)?);
            }
            option::REQUESTED => {
                let (codes, []) = value.as_chunks::<2>() else { return None };
                let has = |wanted: u16| codes.iter().any(|code| u16::from_be_bytes(*code) == wanted);
                self.wants_dns |= has(option::DNS_SERVERS);
                self.wants_exclusion |= has(option::PD_EXCLUDE);
            }
            option::RAPID_COMMIT => self.rapid_commit = value.is_empty().then_some(true)?,
            _ => {}
        }
        Some(())
    }

    /// Whether a server handles the message: it has the identifiers that its type requires, and no others (RFC 8415 16.2 to 16.12).
    fn is_valid(&self) -> bool {
        use message::{CONFIRM, DECLINE, INFORMATION_REQUEST, REBIND, RELEASE, RENEW, REQUEST, SOLICIT};
        match self.kind {
            SOLICIT | CONFIRM | REBIND => self.client.is_some() && self.server.is_none(),
            REQUEST | RENEW | RELEASE | DECLINE => self.client.is_some() && self.server.is_some(),
            INFORMATION_REQUEST => self.associations.is_empty(),
            _ => false,
        }
    }

    /// The packet that answers the message; `None` if the message is for another server, or requests nothing.
    pub fn answer(&self, server: &Dhcpv6Server<'_>) -> Option<Vec<u8>> {
        if self.server.is_some_and(|named| named != server.duid) {
            return None;
        }
        let mut out = Vec::with_capacity(256);
        let is_advertisement = self.kind == message::SOLICIT && !self.commits_at_once(server);
        out.push(if is_advertisement { message::ADVERTISE } else { message::REPLY });
        out.extend(self.transaction);
        if let Some(client) = self.client {
            put_option(&mut out, option::CLIENT_ID, |out| out.extend(client));
        }
        put_option(&mut out, option::SERVER_ID, |out| out.extend(server.duid));
        match self.kind {
            message::SOLICIT | message::REQUEST | message::RENEW | message::REBIND => {
                self.put_leases(&mut out, server);
            }
            message::CONFIRM => put_status(&mut out, self.confirm(server)?),
            message::RELEASE | message::DECLINE => self.put_release(&mut out, server),
            _ => {}
        }
        if self.kind == message::SOLICIT {
            if is_advertisement {
                put_option(&mut out, option::PREFERENCE, |out| out.push(ONLY_SERVER));
            } else {
                put_option(&mut out, option::RAPID_COMMIT, |_| {});
            }
        }
        if self.wants_dns && !server.dns.is_empty() {
            let servers = server.dns.iter().take(MAX_DNS).flat_map(Ipv6Addr::octets);
            put_option(&mut out, option::DNS_SERVERS, |out| out.extend(servers));
        }
        complete(self.from, &out)
    }

    /// Whether the answer to a Solicit is a Reply (RFC 8415 18.3.1): the client permits it, and gets a prefix.
    fn commits_at_once(&self, server: &Dhcpv6Server<'_>) -> bool {
        let wants_prefix = self.associations.iter().any(|it| it.code == option::IA_PD);
        self.rapid_commit && wants_prefix && server.ue.delegation > 0
    }

    /// What each identity association gets (RFC 8415 18.3.2, 18.3.4, 18.3.5, 18.3.9): the first that is for prefixes, the session's.
    fn put_leases(&self, out: &mut Vec<u8>, server: &Dhcpv6Server<'_>) {
        let mut prefix = delegated(server.ue, self.wants_exclusion);
        // A Solicit and a Request have wishes; the others name what the client has.
        let has_leases = matches!(self.kind, message::RENEW | message::REBIND);
        for association in &self.associations {
            match (association.code, prefix) {
                (option::IA_PD, Some(leased)) => {
                    let former = if has_leases { &association.leases[..] } else { &[] };
                    let excluded = self.wants_exclusion.then_some(server.ue);
                    association.put_prefix(out, leased, excluded, former);
                    prefix = None;
                }
                (option::IA_PD, None) => association.put_refusal(out, LeaseStatus::NoPrefixAvail),
                _ => association.put_refusal(out, LeaseStatus::NoAddrsAvail),
            }
        }
    }

    /// Whether the client's addresses are of this link; `None` if it names none (RFC 8415 18.3.3).
    fn confirm(&self, server: &Dhcpv6Server<'_>) -> Option<LeaseStatus> {
        let addresses =
            || self.associations.iter().filter(|it| it.code != option::IA_PD).flat_map(|it| &it.leases);
        addresses().next()?;
        let is_of_link = |address: Ipv6Addr| server.ue.v6.is_some_and(|prefix| same_link(prefix, address));
        let all = addresses().all(|(address, _)| is_of_link(*address));
        Some(if all { LeaseStatus::Success } else { LeaseStatus::NotOnLink })
    }

    /// The answer to Release and Decline (RFC 8415 18.3.7, 18.3.8): there is no state to release, as the prefix is the session's.
    fn put_release(&self, out: &mut Vec<u8>, server: &Dhcpv6Server<'_>) {
        put_status(out, LeaseStatus::Success);
        let is_bound = |it: &IdentityAssociation| {
            it.code == option::IA_PD && self.kind == message::RELEASE && server.ue.delegation > 0
        };
        for association in self.associations.iter().filter(|it| !is_bound(it)) {
            association.put_refusal(out, LeaseStatus::NoBinding);
        }
    }
}

impl IdentityAssociation {
    fn decode(code: u16, value: &[u8]) -> Option<Self> {
        let (id, rest) = value.split_first_chunk::<4>()?;
        // T1 and T2, which an association for temporary addresses does not have (RFC 8415 21.5).
        let options = if code == option::IA_TA { rest } else { rest.get(8..)? };
        let mut leases = Vec::new();
        for (inner, value) in read_options(options)? {
            let lease = match (code, inner) {
                (option::IA_NA | option::IA_TA, option::IA_ADDRESS) => decode_address(value)?,
                (option::IA_PD, option::IA_PREFIX) => decode_prefix(value)?,
                _ => continue,
            };
            if leases.len() == MAX_LEASES {
                return None;
            }
            leases.push(lease);
        }
        Some(Self { code, id: *id, leases })
    }

    /// Puts the delegated prefix. Others that the client had are no longer valid (RFC 8415 18.3.4, 18.3.5). `excluded`: the session's own
    /// prefix, which is excluded from the delegated one (RFC 6603 4.2).
    fn put_prefix(
        &self,
        out: &mut Vec<u8>,
        leased: (Ipv6Addr, u8),
        excluded: Option<UeAddress>,
        former: &[(Ipv6Addr, u8)],
    ) {
        put_option(out, option::IA_PD, |out| {
            out.extend(self.id);
            out.extend([INFINITE.to_be_bytes(), INFINITE.to_be_bytes()].concat());
            put_lease(out, leased, INFINITE, |out| {
                if let Some(own) = excluded {
                    put_exclusion(out, own);
                }
            });
            for other in former.iter().filter(|it| **it != leased) {
                put_lease(out, *other, 0, |_| {});
            }
        });
    }

    /// Puts the association with nothing but a status.
    fn put_refusal(&self, out: &mut Vec<u8>, status: LeaseStatus) {
        put_option(out, self.code, |out| {
            out.extend(self.id);
            if self.code != option::IA_TA {
                out.extend([0; 8]);
            }
            put_status(out, status);
        });
    }
}

/// The prefix to delegate. With exclusion it is the session's whole prefix; without, the larger part of it that does not have the link's own
/// prefix: its other half (TS 23.501 5.8.2.2.4). `None` if the session has nothing but its link's prefix.
fn delegated(ue: UeAddress, with_exclusion: bool) -> Option<(Ipv6Addr, u8)> {
    let whole = ue.network6().filter(|_| ue.delegation > 0)?;
    let own = ue.v6?;
    if with_exclusion {
        return Some((masked(own, whole.prefix), whole.prefix));
    }
    let half = whole.prefix + 1;
    let other = own.to_bits() ^ 1_u128 << (128 - u32::from(half));
    Some((masked(Ipv6Addr::from_bits(other), half), half))
}

fn masked(address: Ipv6Addr, length: u8) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
    Ipv6Addr::from_bits(address.to_bits() & mask)
}

fn same_link(prefix: Ipv6Addr, address: Ipv6Addr) -> bool {
    prefix.to_bits() >> 64 == address.to_bits() >> 64
}

/// The Prefix Exclude option (RFC 6603 4.2): the length of the excluded prefix, and those of its bits that follow the delegated prefix,
/// left-aligned.
fn put_exclusion(out: &mut Vec<u8>, own: UeAddress) {
    let Some(prefix) = own.v6 else { return };
    let bits = u32::from(own.delegation);
    let subnet = ((prefix.to_bits() >> 64) as u64).checked_shl(64 - bits).unwrap_or(0);
    put_option(out, option::PD_EXCLUDE, |out| {
        out.push(LINK_PREFIX);
        out.extend(subnet.to_be_bytes().iter().take(bits.div_ceil(8) as usize));
    });
}

fn put_lease(
    out: &mut Vec<u8>,
    (prefix, length): (Ipv6Addr, u8),
    lifetime: u32,
    options: impl FnOnce(&mut Vec<u8>),
) {
    put_option(out, option::IA_PREFIX, |out| {
        out.extend(lifetime.to_be_bytes());
        out.extend(lifetime.to_be_bytes());
        out.push(length);
        out.extend(prefix.octets());
        options(out);
    });
}

fn put_status(out: &mut Vec<u8>, status: LeaseStatus) {
    put_option(out, option::STATUS_CODE, |out| out.extend((status as u16).to_be_bytes()));
}

/// Appends an option with what `value` appends.
fn put_option(out: &mut Vec<u8>, code: u16, value: impl FnOnce(&mut Vec<u8>)) {
    out.extend(code.to_be_bytes());
    let at = out.len();
    out.extend([0, 0]);
    value(out);
    let length = (out.len() - at - 2) as u16;
    put(out, at, &length.to_be_bytes());
}

/// The options of a message or option; `None` if one is longer than what has it, or if there are too many. Octets at the end that are no option
/// are ignored: dhcpcd 9 has two of them in a Request with prefix exclusion.
fn read_options(mut rest: &[u8]) -> Option<Vec<(u16, &[u8])>> {
    let mut options = Vec::new();
    while let Some((&[c0, c1, l0, l1], after)) = rest.split_first_chunk() {
        let (value, next) = after.split_at_checked(u16::from_be_bytes([l0, l1]).into())?;
        if options.len() == MAX_OPTIONS {
            return None;
        }
        options.push((u16::from_be_bytes([c0, c1]), value));
        rest = next;
    }
    Some(options)
}

/// `None` if it is set already: the option may be in a message once.
fn set_once<'a>(place: &mut Option<&'a [u8]>, value: &'a [u8]) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

fn check_duid(value: &[u8]) -> Option<&[u8]> {
    DUID_LENGTHS.contains(&value.len()).then_some(value)
}

/// An IA Address option (RFC 8415 21.6): address, lifetimes, options.
fn decode_address(value: &[u8]) -> Option<(Ipv6Addr, u8)> {
    read_options(value.get(24..)?)?;
    Some((Ipv6Addr::from(*value.first_chunk::<16>()?), 128))
}

/// An IA Prefix option (RFC 8415 21.22): lifetimes, length, prefix, options.
fn decode_prefix(value: &[u8]) -> Option<(Ipv6Addr, u8)> {
    read_options(value.get(25..)?)?;
    let length = *value.get(8)?;
    let prefix = Ipv6Addr::from(*value.get(9..)?.first_chunk::<16>()?);
    (length <= 128).then_some((prefix, length))
}

/// The packet with this message of the server.
fn complete(to: Ipv6Addr, message: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(UDP_HEADER_LEN + message.len()).ok()?;
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([UDP, HOP_LIMIT]);
    packet.extend(ROUTER.octets());
    packet.extend(to.octets());
    let mut datagram = [SERVER_PORT, CLIENT_PORT, length, 0].map(u16::to_be_bytes).concat();
    datagram.extend(message);
    let checksum = transport_checksum(&packet, UDP, &datagram, &[]);
    put(&mut datagram, 6, &checksum);
    packet.extend(datagram);
    Some(packet)
}

#[cfg(test)]
mod tests;
