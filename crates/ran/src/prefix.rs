//! DHCPv6 prefix delegation to a UE, the requesting router (RFC 8415, RFC 6603; TS 23.501 5.8.2.2.4): it requests the rest of its session's
//! prefix from the UPF, for hosts behind it.

use crate::ipv6::{self, Packet};
use crate::router::link_local;
use std::net::Ipv6Addr;

const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
const CLIENT_PORT: u16 = 546;
const SERVER_PORT: u16 = 547;

const SOLICIT: u8 = 1;
const ADVERTISE: u8 = 2;
const REQUEST: u8 = 3;
const REPLY: u8 = 7;

const CLIENT_ID: u16 = 1;
const SERVER_ID: u16 = 2;
const OPTION_REQUEST: u16 = 6;
const ELAPSED_TIME: u16 = 8;
const STATUS_CODE: u16 = 13;
const RAPID_COMMIT: u16 = 14;
const IA_PD: u16 = 25;
const IA_PREFIX: u16 = 26;
const PD_EXCLUDE: u16 = 67;

/// The identity association of the UE.
const IAID: [u8; 4] = [0, 0, 0, 1];
/// The clause that a wrong answer violates.
const VALIDATION: &str = "RFC 8415 16";
const RAPID: &str = "RFC 8415 18.2.1";
const PREFIX: &str = "TS 23.501 5.8.2.2.4";

/// A violation: clause and text.
type AnswerViolation = (&'static str, String);

/// A prefix that the UE delegates to hosts behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelegatedPrefix {
    /// The first address.
    pub prefix: Ipv6Addr,
    /// The prefix length.
    pub length: u8,
    /// The prefix of the UE's link, if it is within this one and excluded (RFC 6603).
    pub excluded: Option<Ipv6Addr>,
}

impl DelegatedPrefix {
    /// Whether an address is in the prefix.
    pub fn contains(&self, address: Ipv6Addr) -> bool {
        first_address(address, self.length) == self.prefix
    }

    /// The address of a host behind the UE, in the last prefix of 64 bits that is not excluded.
    pub fn host(&self, interface_id: [u8; 8]) -> Ipv6Addr {
        let others = u128::MAX.checked_shr(self.length.into()).unwrap_or(0) >> 64;
        let last = self.prefix.to_bits() >> 64 | others;
        let is_excluded = self.excluded.is_some_and(|excluded| excluded.to_bits() >> 64 == last);
        let own = u64::from_be_bytes(interface_id).rotate_left(29) ^ 0x3b5f_81c2_6e09_d714;
        Ipv6Addr::from_bits((last ^ u128::from(is_excluded)) << 64 | u128::from(own))
    }
}

impl std::fmt::Display for DelegatedPrefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.prefix, self.length)?;
        self.excluded.map_or(Ok(()), |excluded| write!(f, " without {excluded}/64"))
    }
}

/// The UE of a session, as a DHCPv6 client.
#[derive(Debug, Clone, Copy)]
pub struct PrefixClient {
    /// The interface identifier of its link-local address.
    pub interface_id: [u8; 8],
    /// The prefix of 64 bits of its link.
    pub link: Ipv6Addr,
    /// Transaction ID of its Solicit. A Request has another one (RFC 8415 18.2.2).
    pub transaction: [u8; 3],
    /// Its Solicit has a Rapid Commit option: the server may answer with a Reply at once (RFC 8415 18.2.1).
    pub rapid_commit: bool,
}

/// An answer of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dhcpv6Answer {
    /// An Advertise: the server with this identifier offers a prefix.
    Offer {
        /// The server's DUID.
        server: Vec<u8>,
        /// What it offers.
        prefix: DelegatedPrefix,
    },
    /// A Reply: the prefix is the UE's.
    Delegated(DelegatedPrefix),
    /// It has no prefix for the UE.
    NoPrefix,
}

impl PrefixClient {
    /// A Solicit (RFC 8415 18.2.1). The UE can exclude a prefix (RFC 6603 5.1).
    pub fn solicit(&self) -> Vec<u8> {
        let rest = if self.rapid_commit { option(RAPID_COMMIT, &[]) } else { Vec::new() };
        self.message(
            (SOLICIT, self.transaction),
            &[rest, option(IA_PD, &[&IAID[..], &[0; 8]].concat())].concat(),
        )
    }

    /// A Request for what a server has offered (RFC 8415 18.2.2).
    pub fn request(&self, server: &[u8], offered: DelegatedPrefix) -> Vec<u8> {
        let prefix = [&[0; 8][..], &[offered.length], &offered.prefix.octets()].concat();
        let association = [&IAID[..], &[0; 8], &option(IA_PREFIX, &prefix)].concat();
        self.message(
            (REQUEST, self.request_transaction()),
            &[option(SERVER_ID, server), option(IA_PD, &association)].concat(),
        )
    }

    /// Transaction ID of its Request.
    const fn request_transaction(&self) -> [u8; 3] {
        let [high, middle, low] = self.transaction;
        [high ^ 0x80, middle, low]
    }

    fn message(&self, (kind, transaction): (u8, [u8; 3]), options: &[u8]) -> Vec<u8> {
        let [high, low] = PD_EXCLUDE.to_be_bytes();
        let common = [
            option(CLIENT_ID, &self.duid()),
            option(ELAPSED_TIME, &[0, 0]),
            option(OPTION_REQUEST, &[high, low]),
        ];
        let message = [&[kind][..], &transaction, &common.concat(), options].concat();
        let mut out = Vec::with_capacity(ipv6::HEADER + 8 + message.len());
        let addresses = (link_local(self.interface_id), ALL_SERVERS);
        ipv6::write_udp(&mut out, addresses, (CLIENT_PORT, SERVER_PORT), &message);
        out
    }

    /// A DUID-LL (RFC 8415 11.4) of an EUI-64.
    fn duid(&self) -> Vec<u8> {
        [&[0, 3, 0, 27][..], &self.interface_id].concat()
    }

    /// Reads and checks the server's answer.
    pub fn read(&self, packet: &[u8]) -> Result<Dhcpv6Answer, AnswerViolation> {
        let invalid = |what: &str| (VALIDATION, format!("DHCPv6 with {what}"));
        let packet = Packet::read(packet).ok_or_else(|| invalid("a wrong length"))?;
        let (_, message) = packet.udp().ok_or_else(|| invalid("a wrong checksum or length"))?;
        if packet.destination != link_local(self.interface_id) || !packet.source.is_unicast_link_local() {
            return Err(invalid("addresses of another link"));
        }
        let (head, rest) = message.split_first_chunk::<4>().ok_or_else(|| invalid("no header"))?;
        let options = read_options(rest).ok_or_else(|| invalid("an option of a wrong length"))?;
        let only = |code: u16| match options.iter().filter(|(own, _)| *own == code).collect::<Vec<_>>()[..] {
            [(_, value)] => Some(*value),
            _ => None,
        };
        let [kind, transaction @ ..] = *head;
        let answers_request = transaction == self.request_transaction();
        let is_own = answers_request || transaction == self.transaction;
        if !is_own || only(CLIENT_ID) != Some(&self.duid()[..]) {
            return Err(invalid("the transaction or identifier of another client"));
        }
        if kind == ADVERTISE && answers_request {
            return Err(invalid("an Advertise for a Request"));
        }
        // A Reply for a Solicit commits the prefix only if both have the option (RFC 8415 18.2.1, 21.14).
        let is_committed = self.rapid_commit && only(RAPID_COMMIT) == Some(&[]);
        if kind == REPLY && !answers_request && !is_committed {
            return Err((RAPID, "a Reply for a Solicit without Rapid Commit".into()));
        }
        let server = only(SERVER_ID).ok_or_else(|| invalid("no server identifier"))?;
        let prefix = self.read_association(only(IA_PD).ok_or_else(|| invalid("no IA_PD"))?)?;
        match (kind, prefix) {
            (ADVERTISE | REPLY, None) => Ok(Dhcpv6Answer::NoPrefix),
            (ADVERTISE, Some(prefix)) => Ok(Dhcpv6Answer::Offer { server: server.to_vec(), prefix }),
            (REPLY, Some(prefix)) => Ok(Dhcpv6Answer::Delegated(prefix)),
            (kind, _) => Err(invalid(&format!("message type {kind}"))),
        }
    }

    /// The prefix in a Reply to a program that uses the UE's session, such as a DHCPv6 client of this host.
    pub fn read_of_program(&self, packet: &[u8]) -> Option<DelegatedPrefix> {
        let packet = Packet::read(packet)?;
        let (head, rest) = packet.udp()?.1.split_first_chunk::<4>()?;
        let options = read_options(rest)?;
        let (_, association) = options.iter().find(|(code, _)| *code == IA_PD)?;
        let inner = read_options(association.get(12..)?)?;
        let (_, prefix) = inner.iter().find(|(code, _)| *code == IA_PREFIX)?;
        self.read_prefix(prefix).ok().filter(|_| head[0] == REPLY)
    }

    /// The prefix in an IA_PD; `None` if it has a status instead.
    fn read_association(&self, value: &[u8]) -> Result<Option<DelegatedPrefix>, AnswerViolation> {
        let invalid = |what: &str| (VALIDATION, format!("IA_PD with {what}"));
        let (head, rest) = value.split_first_chunk::<12>().ok_or_else(|| invalid("a wrong length"))?;
        let [id, t1, t2] = [&head[..4], &head[4..8], &head[8..]];
        if id != IAID || (t1 > t2 && t2 != [0; 4]) {
            return Err(invalid("another IAID, or T1 after T2"));
        }
        let options = read_options(rest).ok_or_else(|| invalid("an option of a wrong length"))?;
        let prefixes: Vec<_> = options.iter().filter(|(code, _)| *code == IA_PREFIX).collect();
        let has_status =
            options.iter().any(|(code, value)| *code == STATUS_CODE && value.get(..2) != Some(&[0, 0]));
        match prefixes[..] {
            [] if has_status => Ok(None),
            [(_, value)] => self.read_prefix(value).map(Some),
            _ => Err((PREFIX, format!("IA_PD with {} prefixes", prefixes.len()))),
        }
    }

    fn read_prefix(&self, value: &[u8]) -> Result<DelegatedPrefix, AnswerViolation> {
        let wrong = |what: String| (PREFIX, format!("a delegated prefix {what}"));
        let fields =
            value.split_first_chunk::<25>().and_then(|(head, rest)| Some((head, read_options(rest)?)));
        let (head, options) = fields.ok_or_else(|| wrong("of a wrong length".into()))?;
        let length = head[8];
        let prefix = head.last_chunk::<16>().map_or(Ipv6Addr::UNSPECIFIED, |octets| Ipv6Addr::from(*octets));
        let [preferred, valid] = [&head[..4], &head[4..8]];
        if valid == [0; 4] || preferred > valid {
            return Err(wrong("with wrong lifetimes".into()));
        }
        if !(1..=64).contains(&length) || first_address(prefix, length) != prefix {
            return Err(wrong(format!("{prefix}/{length}")));
        }
        let mut exclusions = options.iter().filter(|(code, _)| *code == PD_EXCLUDE);
        let excluded = exclusions.next().map(|(_, value)| excluded(prefix, length, value));
        let delegated = DelegatedPrefix { prefix, length, excluded: excluded.flatten() };
        // The prefix of the link is not delegated; the UE can exclude it.
        let expected = delegated.contains(self.link).then_some(self.link);
        if excluded == Some(None) || delegated.excluded != expected {
            return Err(wrong(format!("{delegated} of a UE with {}/64", self.link)));
        }
        Ok(delegated)
    }
}

/// Whether a packet is DHCPv6 for a client, correct or not.
pub fn is_answer(packet: &[u8]) -> bool {
    Packet::read(packet).is_some_and(|packet| packet.ports() == Some((SERVER_PORT, CLIENT_PORT)))
}

/// The excluded prefix (RFC 6603 4.2): its length, and its bits after those of the delegated prefix.
fn excluded(prefix: Ipv6Addr, length: u8, value: &[u8]) -> Option<Ipv6Addr> {
    let (&64, subnet) = value.split_first()? else { return None };
    let bits = 64 - length;
    if bits == 0 || subnet.len() != usize::from(bits.div_ceil(8)) {
        return None;
    }
    let value = subnet.iter().fold(0_u128, |value, octet| value << 8 | u128::from(*octet));
    let padding = subnet.len() as u32 * 8 - u32::from(bits);
    let is_padded = value.trailing_zeros() >= padding || value == 0;
    is_padded.then(|| Ipv6Addr::from_bits(prefix.to_bits() | value >> padding << 64))
}

fn first_address(address: Ipv6Addr, length: u8) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
    Ipv6Addr::from_bits(address.to_bits() & mask)
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    [&code.to_be_bytes()[..], &(value.len() as u16).to_be_bytes(), value].concat()
}

fn read_options(mut rest: &[u8]) -> Option<Vec<(u16, &[u8])>> {
    let mut options = Vec::new();
    while !rest.is_empty() {
        let (&[c0, c1, l0, l1], after) = rest.split_first_chunk()?;
        let (value, next) = after.split_at_checked(u16::from_be_bytes([l0, l1]).into())?;
        options.push((u16::from_be_bytes([c0, c1]), value));
        rest = next;
    }
    Some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: PrefixClient = PrefixClient {
        interface_id: [0x20, 1, 0xd, 0xb8, 0, 0x45, 2, 0],
        link: Ipv6Addr::new(0x2001, 0xdb8, 0x45, 0x200, 0, 0, 0, 0),
        transaction: [1, 2, 3],
        rapid_commit: false,
    };

    /// In messages from scapy, which are for the Request of this client.
    const SOLICITING: PrefixClient = PrefixClient { transaction: [0x81, 2, 3], ..CLIENT };

    /// What scapy 2.8 makes of a Solicit with these options: client identifier, elapsed time, option request, IA_PD.
    const SCAPY_SOLICIT: &str = "\
        60000000003811fffe8000000000000020010db800450200ff0200000000000000000000000100020222022300389a0c0101\
        02030001000c0003001b20010db8004502000008000200000006000200430019000c000000010000000000000000";
    /// What it makes of a Reply: client and server identifier, IA_PD with 2001:db8:45:200::/56 without 2001:db8:45:200::/64.
    const SCAPY_REPLY: &str = "\
        6000000000651140fe800000000000000000000000000001fe8000000000000020010db800450200022302220065d85e0701\
        02030001000c0003001b20010db8004502000002001200040102030405060708090a0b0c0d0e0f100019002f00000001ffff\
        ffffffffffff001a001fffffffffffffffff3820010db8004502000000000000000000004300024000";

    fn reply(edit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let whole = hex::decode(SCAPY_REPLY).unwrap();
        let mut message = whole[48..].to_vec();
        edit(&mut message);
        let mut out = Vec::new();
        let addresses = ("fe80::1".parse().unwrap(), link_local(CLIENT.interface_id));
        ipv6::write_udp(&mut out, addresses, (SERVER_PORT, CLIENT_PORT), &message);
        out
    }

    #[test]
    fn messages_are_those_that_another_program_builds() {
        assert_eq!(hex::encode(CLIENT.solicit()), SCAPY_SOLICIT);
        let whole = reply(|_| ());
        assert_eq!(hex::encode(&whole[40..]), SCAPY_REPLY[80..], "with the same checksum");
        assert!(is_answer(&whole) && !is_answer(&CLIENT.solicit()));
        let excluded = Some(CLIENT.link);
        let prefix = DelegatedPrefix { prefix: CLIENT.link, length: 56, excluded };
        assert_eq!(SOLICITING.read(&whole), Ok(Dhcpv6Answer::Delegated(prefix)));
        assert_eq!(prefix.to_string(), "2001:db8:45:200::/56 without 2001:db8:45:200::/64");
        assert_eq!(
            CLIENT.read_of_program(&reply(|message| message[19] ^= 1)),
            Some(prefix),
            "another client's"
        );
        let offer = reply(|message| message[0] = ADVERTISE);
        assert_eq!(CLIENT.read_of_program(&offer), None);
        let Ok(Dhcpv6Answer::Offer { server, prefix: offered }) = CLIENT.read(&offer) else {
            panic!("no offer")
        };
        assert_eq!((server.len(), offered), (18, prefix));
    }

    #[test]
    fn a_reply_to_a_solicit_needs_rapid_commit() {
        let commit = |message: &mut Vec<u8>| message.extend([0, 14, 0, 0]);
        let rapid = PrefixClient { rapid_commit: true, ..CLIENT };
        assert_ne!(CLIENT.request(&[1], CLIENT.read_of_program(&reply(|_| ())).unwrap())[49..52], [1, 2, 3]);
        assert!(rapid.solicit().ends_with(&[0, 14, 0, 0, 0, 25, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert!(matches!(rapid.read(&reply(commit)), Ok(Dhcpv6Answer::Delegated(_))));
        for (client, answer) in [(rapid, reply(|_| ())), (CLIENT, reply(commit)), (CLIENT, reply(|_| ()))] {
            assert_eq!(client.read(&answer).unwrap_err().0, "RFC 8415 18.2.1");
        }
        let advertise = reply(|message| message[0] = ADVERTISE);
        assert!(matches!(rapid.read(&advertise), Ok(Dhcpv6Answer::Offer { .. })));
        assert!(SOLICITING.read(&advertise).unwrap_err().1.contains("an Advertise for a Request"));
    }

    #[test]
    fn hosts_have_addresses_that_are_not_excluded() {
        let of = |prefix: &str, length, excluded: Option<&str>| DelegatedPrefix {
            prefix: prefix.parse().unwrap(),
            length,
            excluded: excluded.map(|it| it.parse().unwrap()),
        };
        for (prefix, subnet) in [
            (of("2001:db8:45:200::", 56, Some("2001:db8:45:200::")), 0x2ff),
            (of("2001:db8:45:200::", 56, Some("2001:db8:45:2ff::")), 0x2fe),
            (of("2001:db8:45:280::", 57, None), 0x2ff),
            (of("2001:db8:45:203::", 64, None), 0x203),
        ] {
            let host = prefix.host(CLIENT.interface_id);
            assert!(prefix.contains(host) && host.segments()[3] == subnet, "{prefix}: {host}");
        }
    }

    #[test]
    fn an_answer_that_a_router_would_not_use_is_refused() {
        let refused = |edit: fn(&mut Vec<u8>)| SOLICITING.read(&reply(edit)).unwrap_err().1;
        assert!(refused(|message| message[0] = 1).contains("message type 1"));
        assert!(refused(|message| message[1] = 9).contains("transaction"));
        assert!(refused(|message| message[19] ^= 1).contains("transaction"), "another client");
        assert!(refused(|message| message.truncate(42)).contains("no IA_PD"));
        assert!(refused(|message| message.truncate(50)).contains("option of a wrong length"));
        // At 42 there is the IA_PD, at 58 its prefix with lifetimes, length and address, at 87 the exclusion.
        assert!(refused(|message| message[49] = 2).contains("IAID"));
        assert!(refused(|message| message[66..70].fill(0)).contains("lifetimes"));
        assert!(refused(|message| message[70] = 65).contains("/65"));
        assert!(refused(|message| message[70] = 48).contains("2001:db8:45:200::/48"));
        assert!(refused(|message| message[91] = 63).contains("of a UE with"));
        assert!(refused(|message| message[92] = 1).contains("of a UE with"));
        for at in 40..reply(|_| ()).len() {
            let mut damaged = reply(|_| ());
            damaged[at] ^= 1;
            assert!(SOLICITING.read(&damaged).is_err(), "octet {at}");
            assert!(SOLICITING.read(&damaged[..at]).is_err(), "{at} octets");
        }
    }

    #[test]
    fn a_status_says_that_there_is_no_prefix() {
        let status = |code: u8| {
            reply(|message| {
                message.truncate(58);
                message[45] = 18;
                message.extend([0, 13, 0, 2, 0, code]);
            })
        };
        assert_eq!(SOLICITING.read(&status(6)), Ok(Dhcpv6Answer::NoPrefix));
        assert!(SOLICITING.read(&status(0)).is_err());
    }
}
