//! DHCPv6 messages of UEs to the UPF.

use crate::target::{CheckFailed, ensure};
use pith_datapath::packet::{Dhcpv6Message, Dhcpv6Server, Flow, server_duid};
use pith_upf::contract::UeAddress;
use std::net::{IpAddr, Ipv6Addr};

const CLIENT: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x77);
const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x45, 0x202, 0, 0, 0, 0);
const LEAST_MTU: usize = 1280;
const IPV6_AND_UDP: usize = 48;
const IA_PREFIX: u16 = 26;
const PD_EXCLUDE: u16 = 67;

/// A message. The server's identifier is that of messages in the corpus, so that requests are answered, too.
pub fn message(input: &[u8]) -> Result<(), CheckFailed> {
    let Some(message) = Dhcpv6Message::decode(CLIENT, input) else { return Ok(()) };
    let duid: [u8; 18] = [0, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    let other = server_duid(None);
    let dns = [Ipv6Addr::LOCALHOST; 9];
    for (duid, delegation) in [(&duid, 0), (&duid, 1), (&duid, 8), (&duid, 16), (&other, 8)] {
        let ue = UeAddress { delegation, ..UeAddress::v6(PREFIX) };
        let Some(answer) = message.answer(&Dhcpv6Server { duid, ue, dns: &dns }) else { continue };
        check(&answer, ue).map_err(|what| CheckFailed(format!("{what}: {answer:02x?}")))?;
    }
    Ok(())
}

/// An answer is a packet for the client that no server answers.
fn check(answer: &[u8], ue: UeAddress) -> Result<(), String> {
    let flow = Flow::of(answer).ok_or("no packet")?;
    let is_whole = flow.length == answer.len() && flow.ports == Some((547, 546));
    let data = answer.get(IPV6_AND_UDP..).unwrap_or_default();
    match Dhcpv6Message::decode(CLIENT, data) {
        Some(_) => Err("a client's message".into()),
        None if !is_whole || flow.destination != IpAddr::V6(CLIENT) => Err("not for the client".into()),
        None if answer.len() > LEAST_MTU => Err("too long".into()),
        None => check_prefixes(data.get(4..).unwrap_or_default(), ue),
    }
}

fn check_prefixes(mut options: &[u8], ue: UeAddress) -> Result<(), String> {
    while let Some((&[c0, c1, l0, l1], rest)) = options.split_first_chunk() {
        let (value, next) = rest
            .split_at_checked(u16::from_be_bytes([l0, l1]).into())
            .ok_or("an option of a wrong length")?;
        match u16::from_be_bytes([c0, c1]) {
            25 => check_prefixes(value.get(12..).ok_or("a short association")?, ue)?,
            IA_PREFIX => check_prefix(value, ue)?,
            _ => {}
        }
        options = next;
    }
    ensure(options.is_empty(), || "octets after the options".into()).map_err(|failed| failed.0)
}

/// A prefix with a lifetime is a part of the session's, and leaves out the prefix of the link.
fn check_prefix(value: &[u8], ue: UeAddress) -> Result<(), String> {
    let (head, options) = value.split_first_chunk::<25>().ok_or("no prefix")?;
    let (lifetime, length) = (&head[4..8], head[8]);
    let prefix = head.last_chunk::<16>().map_or(Ipv6Addr::UNSPECIFIED, |octets| Ipv6Addr::from(*octets));
    if lifetime == [0; 4] {
        return Ok(());
    }
    if !ue.contains(prefix.into()) || length < 64 - ue.delegation || length > 64 {
        return Err("another's prefix".into());
    }
    let has_link = (prefix.to_bits() ^ PREFIX.to_bits()) >> (128 - u32::from(length)) == 0;
    if has_link && options.get(..2) != Some(&PD_EXCLUDE.to_be_bytes()[..]) {
        return Err("the prefix of the link".into());
    }
    Ok(())
}
