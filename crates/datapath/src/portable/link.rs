//! The link between a UE with an IPv6 prefix and its UPF, on which the UPF is the router (TS 23.501 5.8.2.2.3): the UPF answers
//! Router Solicitations itself, and advertises the prefix when the session's downlink opens. It is also the link's DHCPv6 server. Nothing
//! on the link is forwarded.

use super::path::{Path, select_rule};
use crate::packet::{
    Dhcpv6Message, Dhcpv6Server, Flow, Solicitation, neighbour_advertisement, router_advertisement,
};
use crate::rules::{Ingress, Origin, Rules};
use pith_upf::contract::{Action, Destination, DropReason, Fate};
use pith_upf::qos::Colour;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

impl Path {
    /// Answers a UE's solicitation on its link; `false` if the packet is none, or a wrong one. All other packets on the link, such as
    /// reports of multicast listeners, have a source or a destination that is refused.
    pub fn answers_on_link(&mut self, rules: &Arc<Rules>, ingress: Ingress<'_>, packet: &[u8]) -> bool {
        let Ingress { origin, flow, qfi } = ingress;
        if !flow.is_on_link() || !rules.ends_link(origin, flow, qfi) || !may_be_ues(rules, flow) {
            return false;
        }
        let is_answered = match Solicitation::read(packet, flow) {
            Some(Solicitation::Router { from }) => {
                self.advertise(rules, from);
                true
            }
            Some(Solicitation::Neighbour { from }) => {
                self.send_on_link(rules, &neighbour_advertisement(from));
                true
            }
            None => self.answers_dhcpv6(rules, flow, packet),
        };
        if is_answered {
            rules.touch(self.now);
        }
        is_answered
    }

    /// Answers a message to the DHCPv6 server of the link (RFC 8415 18.3); `false` if the packet is none, or one that a server discards.
    fn answers_dhcpv6(&mut self, rules: &Rules, flow: &Flow, packet: &[u8]) -> bool {
        let shared = Arc::clone(&self.shared);
        let server = Dhcpv6Server { duid: &shared.duid, ue: rules.ue, dns: shared.dns_of(rules.ue) };
        let answer = Dhcpv6Message::read(packet, flow).and_then(|message| message.answer(&server));
        let is_answered = answer.is_some();
        if let Some(answer) = answer {
            self.send_on_link(rules, &answer);
        }
        is_answered
    }

    /// Sends a Router Advertisement to `to`, or to all nodes of a session's link: to its UE.
    pub fn advertise(&mut self, rules: &Arc<Rules>, to: Option<Ipv6Addr>) {
        if let Some(prefix) = rules.ue.v6 {
            let has_dhcpv6 = !self.shared.dns_of(rules.ue).is_empty();
            self.send_on_link(rules, &router_advertisement(prefix, self.shared.mtu.into(), has_dhcpv6, to));
        }
    }

    /// Sends the UPF's own packet to a session's UE: within the rates of the downlink rule, so that a UE gets no more by
    /// solicitations than by packets, but without usage, as it is signalling. To an idle UE nothing is sent; it gets an advertisement
    /// when its downlink opens.
    fn send_on_link(&mut self, rules: &Rules, packet: &[u8]) {
        let Some(flow) = Flow::of(packet) else { return };
        let ingress = Ingress { origin: Origin::Network, qfi: None, flow: &flow };
        match select_rule(rules, Origin::Network, &flow, None) {
            Ok((rule, Action::Forward(Destination::Tunnel(tunnel)))) => {
                if rule.flow.admit(self.now.into(), packet.len()) == Colour::Red {
                    return self.refuse(rules, Some(rule), ingress, DropReason::RateExceeded);
                }
                self.trace(rules, Some(rule), ingress, Fate::ToTunnel(tunnel));
                self.send_copy((rule, None), &tunnel, packet);
            }
            Ok(_) => {}
            Err((rule, reason)) => self.refuse(rules, rule, ingress, reason),
        }
    }
}

/// Whether the source is the UE's: unspecified, link-local, or in its prefix.
fn may_be_ues(rules: &Rules, flow: &Flow) -> bool {
    match flow.source {
        IpAddr::V6(from) => {
            from.is_unspecified() || from.is_unicast_link_local() || rules.ue.contains(flow.source)
        }
        IpAddr::V4(_) => false,
    }
}
