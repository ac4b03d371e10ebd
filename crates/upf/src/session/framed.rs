//! Framed routes: networks behind a UE (TS 23.501 5.6.14), contained in PDRs and traffic endpoints in RADIUS
//! syntax (TS 29.244 8.2.109 and 8.2.111).

use std::net::{IpAddr, Ipv4Addr};

use pith_pfcp::IeType;
use pith_pfcp::ie::{Cause, FailedRuleId, FramedIpv6Route, FramedRoute};

use super::provision::RuleSet;
use crate::config::Config;
use crate::contract::AddressRange;
use crate::rejection::Rejection;

/// Maximum number of framed routes of a session: each prefix length adds a look-up for packets, and memory is bounded.
const MAX_ROUTES: usize = 64;

/// The framed routes of all PDRs and traffic endpoints, without duplicates.
pub fn framed_routes(rules: &RuleSet, config: &Config) -> Result<Vec<AddressRange>, Rejection> {
    let mut routes = Vec::new();
    for endpoint in rules.endpoints.values() {
        let failed = Rejection::new(Cause::RuleCreationModificationFailure);
        add(&mut routes, &endpoint.framed_routes, &endpoint.framed_ipv6_routes, failed)?;
    }
    for pdr in rules.pdrs.values() {
        let failed = Rejection::rule(FailedRuleId::Pdr(pdr.pdr_id));
        add(&mut routes, &pdr.pdi.framed_routes, &pdr.pdi.framed_ipv6_routes, failed)?;
    }
    let reserved = routes.iter().find(|route| !config.may_be_behind_ue(**route));
    let failed = Rejection::new(Cause::RuleCreationModificationFailure);
    match reserved {
        None => Ok(routes),
        Some(route) if route.address.is_ipv4() => Err(failed.because_of(IeType::FRAMED_ROUTE)),
        Some(_) => Err(failed.because_of(IeType::FRAMED_IPV6_ROUTE)),
    }
}

fn add(
    routes: &mut Vec<AddressRange>,
    v4: &[FramedRoute],
    v6: &[FramedIpv6Route],
    failed: Rejection,
) -> Result<(), Rejection> {
    let v4 = v4.iter().map(|route| (parse(&route.0, IpAddr::is_ipv4), IeType::FRAMED_ROUTE));
    let v6 = v6.iter().map(|route| (parse(&route.0, IpAddr::is_ipv6), IeType::FRAMED_IPV6_ROUTE));
    for (route, ie_type) in v4.chain(v6) {
        let route = route.ok_or(failed.because_of(ie_type))?;
        if !routes.contains(&route) {
            routes.push(route);
        }
        if routes.len() > MAX_ROUTES {
            return Err(failed.with_cause(Cause::NoResourcesAvailable).because_of(ie_type));
        }
    }
    Ok(())
}

/// Parses the network; a gateway and metrics after it are ignored. An IPv4 network without a prefix length
/// has that of its class (RFC 2865 5.22, RFC 3162 2.5). A network of all addresses is invalid.
fn parse(text: &[u8], is_of_family: fn(&IpAddr) -> bool) -> Option<AddressRange> {
    let destination = std::str::from_utf8(text).ok()?.split_ascii_whitespace().next()?;
    let (address, prefix) = match destination.split_once('/') {
        Some((address, prefix)) => (address.parse().ok()?, prefix.parse().ok()?),
        None => {
            let address: IpAddr = destination.parse().ok()?;
            (address, prefix_of_class(address)?)
        }
    };
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let known = is_of_family(&address) && (1..=longest).contains(&prefix);
    known.then(|| AddressRange { address, prefix }.network())
}

fn prefix_of_class(address: IpAddr) -> Option<u8> {
    let IpAddr::V4(v4) = address else { return None };
    match Ipv4Addr::octets(&v4) {
        [0..=127, ..] => Some(8),
        [128..=191, ..] => Some(16),
        [192..=223, ..] => Some(24),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<String> {
        let range =
            parse(text.as_bytes(), if text.contains(':') { IpAddr::is_ipv6 } else { IpAddr::is_ipv4 })?;
        Some(format!("{}/{}", range.address, range.prefix))
    }

    #[test]
    fn a_framed_route_is_parsed_up_to_its_network() {
        for (text, network) in [
            ("192.168.1.0/24 192.168.1.1 1", "192.168.1.0/24"),
            ("192.168.1.77/24", "192.168.1.0/24"),
            ("10.1.2.3", "10.0.0.0/8"),
            ("172.16.1.1 0.0.0.0 1 2 -1", "172.16.0.0/16"),
            ("192.0.2.9 0.0.0.0 1", "192.0.2.0/24"),
            ("198.51.100.7/32 0.0.0.0 1", "198.51.100.7/32"),
            ("2001:db8:5:106::/64 2001:db8::1 1", "2001:db8:5:106::/64"),
        ] {
            assert_eq!(parsed(text).as_deref(), Some(network), "{text}");
        }
    }

    #[test]
    fn an_invalid_network_is_not_a_framed_route() {
        for text in
            ["", " ", "x", "10.0.0.0/33", "0.0.0.0/0 0.0.0.0 1", "2001:db8::", "2001:db8::/129", "224.0.0.1"]
        {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert_eq!(parse(b"2001:db8::/64", IpAddr::is_ipv4), None);
        assert_eq!(parse(&[0xff, 0xfe], IpAddr::is_ipv4), None);
    }
}
