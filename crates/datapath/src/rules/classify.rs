//! Matches packets against the filters of PDRs.

use crate::packet::Flow;
use pith_upf::contract::{Direction, Endpoint, SdfFilter};
use std::net::IpAddr;

/// Whether `flow`, going in `direction`, matches `filter`.
pub fn matches(filter: &SdfFilter, flow: &Flow, direction: Direction) -> bool {
    let (source_port, destination_port) = flow.ports.unzip();
    let source = (flow.source, source_port);
    let destination = (flow.destination, destination_port);
    let (local, remote) = match direction {
        Direction::Uplink => (source, destination),
        Direction::Downlink => (destination, source),
    };
    filter.direction.is_none_or(|only| only == direction)
        && filter.protocol.is_none_or(|protocol| protocol == flow.protocol)
        && end_matches(&filter.remote, remote)
        && end_matches(&filter.local, local)
        && filter.tos.is_none_or(|tos| tos.matches(flow.tos))
        && filter.spi.is_none_or(|spi| flow.spi == Some(spi))
        && filter.flow_label.is_none_or(|label| flow.flow_label == Some(label))
}

fn end_matches(end: &Endpoint, (address, port): (IpAddr, Option<u16>)) -> bool {
    end.address.is_none_or(|range| range.contains(address))
        && end.ports.is_none_or(|range| port.is_some_and(|port| range.contains(port)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::samples::{tcp_v4, udp_v4};
    use pith_upf::contract::FlowDescription;

    fn filter(text: &str) -> SdfFilter {
        text.parse::<FlowDescription>().unwrap().filters[0]
    }

    #[test]
    fn one_description_holds_both_ways() {
        let http = filter("permit out 6 from 192.0.2.0/24 80 to assigned");
        let up = Flow::of(&tcp_v4(1, 0x10, b"x")).unwrap();
        let down = Flow { source: up.destination, destination: up.source, ports: Some((80, 40_000)), ..up };
        assert!(matches(&http, &up, Direction::Uplink));
        assert!(matches(&http, &down, Direction::Downlink));
        assert!(!matches(&http, &up, Direction::Downlink));
        assert!(!matches(&http, &Flow::of(&udp_v4(b"x")).unwrap(), Direction::Uplink));
    }

    #[test]
    fn a_filter_with_ports_takes_no_packet_without() {
        let dns = filter("permit out ip from any 53 to assigned");
        let flow = Flow::of(&udp_v4(b"x")).unwrap();
        assert!(matches(&dns, &flow, Direction::Uplink));
        assert!(!matches(&dns, &Flow { ports: None, ..flow }, Direction::Uplink));
    }

    #[test]
    fn a_filter_for_one_direction_takes_no_other() {
        let flow = Flow::of(&udp_v4(b"x")).unwrap();
        let only = SdfFilter { direction: Some(Direction::Uplink), ..SdfFilter::default() };
        assert!(matches(&only, &flow, Direction::Uplink));
        assert!(!matches(&only, &flow, Direction::Downlink));
    }
}
