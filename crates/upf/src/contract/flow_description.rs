//! Flow descriptions: SDF filters as text (TS 29.212 5.4.2, after IPFilterRule of RFC 6733).
//!
//! ```text
//! permit out 17 from 192.0.2.0/24 5060,6000-6010 to assigned
//!        │   │       └ remote: address, ports         └ local: the UE's address
//!        │   └ protocol number, or ip
//!        └ direction: always "out" in 5G; the filter holds both ways
//! ```

use super::{AddressRange, Endpoint, PortRange, SdfFilter};
use std::net::IpAddr;
use std::str::{FromStr, SplitAsciiWhitespace};
use thiserror::Error;

/// The parsed text: an [`SdfFilter`] for each pair of remote and local ports that it lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowDescription {
    /// A packet matches the description if it matches any of these.
    pub filters: Vec<SdfFilter>,
}

/// Why a flow description is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FlowDescriptionError {
    /// A word is missing or unexpected.
    #[error("the flow description contains {found:?} instead of {expected}")]
    Unexpected {
        /// The expected word.
        expected: &'static str,
        /// The found word; empty at the end.
        found: String,
    },
    /// More pairs of port ranges than a rule may have.
    #[error("the flow description lists {0} pairs of ports; at most {MAX_FILTERS} are supported")]
    TooManyPorts(usize),
}

/// Maximum number of filters of one description.
const MAX_FILTERS: usize = 64;

impl FromStr for FlowDescription {
    type Err = FlowDescriptionError;

    fn from_str(text: &str) -> Result<Self, FlowDescriptionError> {
        let mut words = Words(text.split_ascii_whitespace());
        words.expect("permit")?;
        let swapped = words.direction_is_in()?;
        let protocol = words.protocol()?;
        words.expect("from")?;
        let (source, after) = words.endpoint()?;
        if after != Some("to") {
            return Err(unexpected("to", after));
        }
        let (destination, after) = words.endpoint()?;
        if after.is_some() {
            return Err(unexpected("the end", after));
        }
        filters(protocol, [source, destination], swapped)
    }
}

/// An address (`None`: any) and ports (empty: any).
type End = (Option<AddressRange>, Vec<PortRange>);

fn filters(
    protocol: Option<u8>,
    [source, destination]: [End; 2],
    swapped: bool,
) -> Result<FlowDescription, FlowDescriptionError> {
    let (remote, local) = if swapped { (destination, source) } else { (source, destination) };
    let (remotes, locals) = (endpoints(remote), endpoints(local));
    let count = remotes.len().saturating_mul(locals.len());
    if count > MAX_FILTERS {
        return Err(FlowDescriptionError::TooManyPorts(count));
    }
    let pairs = remotes.iter().flat_map(|remote| locals.iter().map(move |local| (*remote, *local)));
    Ok(FlowDescription {
        filters: pairs
            .map(|(remote, local)| SdfFilter { protocol, remote, local, ..SdfFilter::default() })
            .collect(),
    })
}

fn endpoints((address, ports): End) -> Vec<Endpoint> {
    if ports.is_empty() {
        let ports = None;
        return vec![Endpoint { address, ports }];
    }
    ports.into_iter().map(|ports| Endpoint { address, ports: Some(ports) }).collect()
}

struct Words<'a>(SplitAsciiWhitespace<'a>);

impl<'a> Words<'a> {
    fn expect(&mut self, word: &'static str) -> Result<(), FlowDescriptionError> {
        match self.0.next() {
            Some(found) if found == word => Ok(()),
            found => Err(unexpected(word, found)),
        }
    }

    fn direction_is_in(&mut self) -> Result<bool, FlowDescriptionError> {
        match self.0.next() {
            Some("out") => Ok(false),
            Some("in") => Ok(true),
            found => Err(unexpected("'out' or 'in'", found)),
        }
    }

    fn protocol(&mut self) -> Result<Option<u8>, FlowDescriptionError> {
        const EXPECTED: &str = "'ip' or a protocol number";
        match self.0.next() {
            Some("ip") => Ok(None),
            Some(word) => match word.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(unexpected(EXPECTED, Some(word))),
            },
            None => Err(unexpected(EXPECTED, None)),
        }
    }

    /// Parses address and ports; returns the word after them, too.
    fn endpoint(&mut self) -> Result<(End, Option<&'a str>), FlowDescriptionError> {
        let address = address(self.0.next())?;
        let Some(word) = self.0.next() else {
            return Ok(((address, Vec::new()), None));
        };
        if !word.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(((address, Vec::new()), Some(word)));
        }
        Ok(((address, ports(word)?), self.0.next()))
    }
}

/// Parses `any`, `assigned` (the UE's own address, which the session already determines), or an address with
/// or without a prefix length.
fn address(word: Option<&str>) -> Result<Option<AddressRange>, FlowDescriptionError> {
    const EXPECTED: &str = "'any', 'assigned' or an address";
    let word = word.ok_or_else(|| unexpected(EXPECTED, None))?;
    if matches!(word, "any" | "assigned") {
        return Ok(None);
    }
    let error = || unexpected(EXPECTED, Some(word));
    let (address, prefix) = match word.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (word, None),
    };
    let address: IpAddr = address.parse().map_err(|_| error())?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        Some(prefix) => prefix.parse().map_err(|_| error())?,
        None => width,
    };
    if prefix > width {
        return Err(error());
    }
    Ok(Some(AddressRange { address, prefix }))
}

fn ports(word: &str) -> Result<Vec<PortRange>, FlowDescriptionError> {
    word.split(',').map(port_range).collect()
}

fn port_range(text: &str) -> Result<PortRange, FlowDescriptionError> {
    let error = || unexpected("ports such as 80,8000-8080", Some(text));
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range =
        PortRange { first: first.parse().map_err(|_| error())?, last: last.parse().map_err(|_| error())? };
    if range.first > range.last {
        return Err(error());
    }
    Ok(range)
}

fn unexpected(expected: &'static str, found: Option<&str>) -> FlowDescriptionError {
    FlowDescriptionError::Unexpected { expected, found: found.unwrap_or_default().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<SdfFilter>, FlowDescriptionError> {
        text.parse::<FlowDescription>().map(|d| d.filters)
    }

    fn host(address: &str, prefix: u8) -> Option<AddressRange> {
        Some(AddressRange { address: address.parse().unwrap(), prefix })
    }

    #[test]
    fn any_to_assigned_matches_all() {
        let filters = parse("permit out ip from any to assigned").unwrap();
        assert_eq!(filters, [SdfFilter::default()]);
    }

    #[test]
    fn the_source_is_the_remote_end() {
        let [filter] =
            parse("permit out 17 from 192.0.2.0/24 5060 to assigned 1000-2000").unwrap().try_into().unwrap();
        assert_eq!(filter.protocol, Some(17));
        assert_eq!(filter.remote.address, host("192.0.2.0", 24));
        assert!(filter.remote.ports.unwrap().contains(5060));
        assert_eq!(filter.local.address, None);
        assert!(filter.local.ports.unwrap().contains(1500));
    }

    #[test]
    fn direction_in_swaps_the_ends() {
        let out = parse("permit out 6 from 2001:db8::1 443 to any").unwrap();
        let into = parse("permit in 6 from any to 2001:db8::1 443").unwrap();
        assert_eq!(out, into);
        assert_eq!(out[0].remote.address, host("2001:db8::1", 128));
    }

    #[test]
    fn each_pair_of_ports_becomes_a_filter() {
        let filters = parse("permit out 6 from any 80,443,8000-8080 to assigned 1,2").unwrap();
        assert_eq!(filters.len(), 6);
        let many = (1..=65).map(|p| p.to_string()).collect::<Vec<_>>().join(",");
        assert_eq!(
            parse(&format!("permit out 6 from any {many} to any")),
            Err(FlowDescriptionError::TooManyPorts(65))
        );
    }

    #[test]
    fn errors_contain_the_found_and_the_expected_word() {
        let message = |text| parse(text).unwrap_err().to_string();
        assert!(message("deny out ip from any to any").contains(r#"contains "deny" instead of permit"#));
        assert!(message("permit out ip from any").contains(r#"contains "" instead of to"#));
        assert!(message("permit out ip from 1.2.3.4/33 to any").contains("1.2.3.4/33"));
        assert!(message("permit out 6 from any 9-8 to any").contains("9-8"));
        assert!(message("permit out 999 from any to any").contains("protocol number"));
        assert!(message("permit out ip from any to any frag").contains("the end"));
    }
}
