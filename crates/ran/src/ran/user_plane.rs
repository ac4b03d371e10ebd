//! The user plane: tunnels, echoes, packets (TS 29.281, TS 38.415).

use super::{Output, Ran};
use crate::clock::Instant;
use crate::gnb::{Bearer, QosFlows, UeKey};
use crate::icmp::{self, Echo};
use crate::journey::{PROBE, read_probe, write_probe};
use crate::network::Network;
use crate::prefix::{self, DelegatedPrefix, Dhcpv6Answer, PrefixClient};
use crate::router::{self, Advertisement};
use crate::ue;
use crate::violation::Violation;
use crate::{ipv4, ipv6, udp};
use pith_ngap::transfer::Tunnel;
use pith_pfcp::gtpu::{
    ErrorIndication, GTPU_PORT, GtpuMessageType, Packet, PduSessionInformation, Signalling,
    UlPduSessionInformation,
};
use pith_types::Teid;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

/// Source port of UEs' streams.
const PROBE_PORT: u16 = 40_000;

/// Port of UEs for packets of the data network.
const PAGE_PORT: u16 = 40_001;

/// Octets of the GTP-U header with a PDU Session Container.
const HEADER: usize = 16;

/// Time in which packets of a removed QoS flow may arrive: N2 and N3 have no common order, and the network between UPF and gNB has queues.
const IN_FLIGHT: Duration = Duration::from_millis(500);

/// The owner of a downlink tunnel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Endpoint {
    pub(super) ue: UeKey,
    pub(super) session: u8,
    flows: QosFlows,
    reflective: QosFlows,
    /// Flows that were removed last, and when.
    removed: Option<(QosFlows, Instant)>,
}

impl Endpoint {
    pub(super) const fn of(ue: UeKey, bearer: &Bearer) -> Self {
        let Bearer { session, flows, reflective, .. } = *bearer;
        Self { ue, session, flows, reflective, removed: None }
    }

    /// The bearer has these flows from now on.
    fn change(&mut self, flows: QosFlows, reflective: QosFlows, now: Instant) {
        let removed: QosFlows = self.flows.iter().filter(|qfi| !flows.has(*qfi)).collect();
        if removed.iter().next().is_some() {
            self.removed = Some((removed, now));
        }
        (self.flows, self.reflective) = (flows, reflective);
    }

    /// Whether a packet of that flow may arrive.
    fn may_have(&self, qfi: u8, now: Instant) -> bool {
        let may_be_in_flight = |(flows, at): (QosFlows, Instant)| flows.has(qfi) && now < at + IN_FLIGHT;
        self.flows.has(qfi) || self.removed.is_some_and(may_be_in_flight)
    }
}

impl Ran {
    /// A bearer was set up or released: updates tunnel, UE and user.
    pub(super) fn note_bearer(&mut self, key: UeKey, bearer: Bearer, up: bool) {
        let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) else { return };
        subscriber.bearers.retain(|other| other.session != bearer.session);
        if up {
            subscriber.bearers.push(bearer);
            self.endpoints.insert(bearer.downlink, Endpoint::of(key, &bearer));
            self.former_tunnels.forget(bearer.downlink);
        } else {
            subscriber.bearers.shrink_to_fit();
            self.endpoints.remove(&bearer.downlink);
            self.forget_moving(key, bearer.session);
        }
        self.ue_input(key, ue::Input::UserPlane { session: bearer.session, up });
        self.advance(key, |journey, scene| journey.on_bearer(bearer.session, up, scene));
        self.run_actions(key);
        self.reschedule_ue(key);
    }

    /// A bearer's packets are sent to another UPF from now on.
    pub(super) fn move_bearer(&mut self, key: UeKey, bearer: Bearer) {
        let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) else { return };
        if let Some(moved) = subscriber.bearers.iter_mut().find(|other| other.session == bearer.session) {
            *moved = bearer;
        }
        if let Some(endpoint) = self.endpoints.get_mut(&bearer.downlink) {
            endpoint.change(bearer.flows, bearer.reflective, self.now);
        }
    }

    /// Sends an echo request of a UE, in its sessions that have such an address by turns.
    pub(super) fn send_echo(&mut self, key: UeKey, sequence: u16) {
        let Some(plan) = self.plan.packets.ping else { return };
        let addresses = self.addresses_beside(key, plan.target);
        let Some(at) = usize::from(sequence).checked_rem(addresses.len()) else { return };
        let (session, source) = addresses[at];
        let echo = Echo { source, destination: plan.target, identifier: key.0 as u16, sequence };
        let mut packet = Vec::with_capacity(48 + plan.size);
        icmp::write_request(&mut packet, echo, plan.size);
        self.send_packet(key, session, &packet);
    }

    /// Sends a datagram of a UE's stream.
    pub(super) fn send_probe(&mut self, key: UeKey, number: u64) {
        let Some(plan) = self.plan.packets.traffic else { return };
        let Some((session, source)) = self.first_address(key) else { return };
        let mut data = vec![0; plan.size.saturating_sub(udp::HEADERS)];
        write_probe(&mut data, number, self.now);
        let path = udp::Path { source: SocketAddrV4::new(source, PROBE_PORT), destination: plan.target };
        let mut packet = Vec::with_capacity(plan.size);
        udp::write(&mut packet, path, &data);
        self.send_packet(key, session, &packet);
    }

    /// A host of the data network sends a packet to a UE in idle.
    pub(super) fn send_page(&mut self, key: UeKey, number: u64) {
        let address = self.first_address(key).map(|(_, address)| address);
        match address.filter(|_| self.ue(key).is_some_and(|ue| !ue.is_connected())) {
            Some(address) => {
                let mut data = vec![0; PROBE];
                write_probe(&mut data, number, self.now);
                self.out.push(Output::FromNetwork { to: SocketAddrV4::new(address, PAGE_PORT), data });
            }
            None => self.advance(key, |journey, scene| journey.on_not_idle(scene)),
        }
    }

    /// The sessions with an address of the target's IP version, and the addresses: the UE's, and that of a host behind it.
    fn addresses_beside(&self, key: UeKey, target: IpAddr) -> Vec<(u8, IpAddr)> {
        let sessions = self.subscribers.get(key.0 as usize).into_iter().flat_map(|of| of.ue.sessions());
        let addresses = |session: &ue::Session| match target {
            IpAddr::V4(_) => [session.ipv4.map(IpAddr::V4), None],
            IpAddr::V6(_) => [session.ipv6, session.host_behind()].map(|address| address.map(IpAddr::V6)),
        };
        let with_id = |session: &ue::Session| {
            let id = session.id;
            addresses(session).into_iter().flatten().map(move |address| (id, address))
        };
        sessions.flat_map(with_id).collect()
    }

    /// Sends a Router Solicitation in a session with IPv6; a session of IPv4 has all its addresses.
    pub(super) fn solicit_router(&mut self, key: UeKey, id: u8) {
        let session = self.session_of(key, id);
        match session.map(|session| session.interface_id) {
            Some(Some(interface_id)) => self.send_packet(key, id, &router::solicitation(interface_id)),
            _ => self.advance(key, |journey, scene| journey.on_addresses(scene)),
        }
    }

    /// A Router Advertisement: the UE makes its address, unless it has one of the prefix.
    fn receive_advertisement(&mut self, Endpoint { ue: key, session: id, .. }: Endpoint, packet: &[u8]) {
        let Some(own) = self.session_of(key, id) else { return };
        let Some(interface_id) = own.interface_id else {
            return self.note_n3_violation(
                "TS 23.501 5.8.2.2.3",
                "a Router Advertisement in a session of IPv4".into(),
            );
        };
        let advertisement = match Advertisement::read(packet, interface_id) {
            Ok(advertisement) => advertisement,
            Err((clause, text)) => return self.note_n3_violation(clause, text),
        };
        let address = advertisement.address(interface_id);
        let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) else { return };
        match subscriber.ue.set_ipv6(id, address) {
            Some(other) if other != address => {
                let text = format!("prefix {}, after that of {other}", advertisement.prefix);
                self.note_n3_violation("TS 23.501 5.8.2.2.3", text);
            }
            _ => {
                self.advance(key, |journey, scene| journey.on_addresses(scene));
                self.run_actions(key);
                self.reschedule_ue(key);
            }
        }
    }

    /// Requests a prefix for hosts behind the UE. Every second UE accepts it without a further exchange (Rapid Commit, RFC 8415 18.2.1).
    pub(super) fn request_prefix(&mut self, key: UeKey, id: u8) {
        if let Some(client) = self.dhcpv6_client(key, id) {
            self.send_packet(key, id, &client.solicit());
        }
    }

    /// The UE of a session as a DHCPv6 client.
    fn dhcpv6_client(&self, key: UeKey, id: u8) -> Option<PrefixClient> {
        let session = self.session_of(key, id)?;
        let link = Ipv6Addr::from_bits(session.ipv6?.to_bits() >> 64 << 64);
        let [_, transaction @ ..] = key.0.to_be_bytes();
        let rapid_commit = key.0.is_multiple_of(2);
        Some(PrefixClient { interface_id: session.interface_id?, link, transaction, rapid_commit })
    }

    /// An answer of the DHCPv6 server, to which the UE must have sent a message.
    fn receive_dhcpv6(&mut self, Endpoint { ue: key, session: id, .. }: Endpoint, packet: &[u8]) {
        let Some(client) = self.dhcpv6_client(key, id) else {
            return self.note_n3_violation("RFC 8415 18.3", "DHCPv6 to a UE that has sent none".into());
        };
        match client.read(packet) {
            Ok(Dhcpv6Answer::Offer { server, prefix }) => {
                self.send_packet(key, id, &client.request(&server, prefix));
            }
            Ok(Dhcpv6Answer::Delegated(prefix)) => self.take_prefix(key, id, prefix),
            // The user requests one again.
            Ok(Dhcpv6Answer::NoPrefix) => {}
            Err((clause, text)) => self.note_n3_violation(clause, text),
        }
    }

    /// A program that uses the UE's session through a TUN interface gets a prefix: packets for its addresses are the UE's.
    fn note_prefix_of_program(&mut self, key: UeKey, session: u8, packet: &[u8]) {
        let prefix = self.dhcpv6_client(key, session).and_then(|client| client.read_of_program(packet));
        let subscriber = self.subscribers.get_mut(key.0 as usize);
        if let (Some(prefix), Some(subscriber)) = (prefix, subscriber) {
            subscriber.ue.set_delegated(session, prefix);
        }
    }

    fn take_prefix(&mut self, key: UeKey, session: u8, prefix: DelegatedPrefix) {
        let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) else { return };
        match subscriber.ue.set_delegated(session, prefix) {
            Some(other) if other != prefix => {
                let text = format!("prefix {prefix}, after {other}");
                self.note_n3_violation("TS 23.501 5.8.2.2.4", text);
            }
            _ => {
                self.out.push(Output::Delegated { ue: key, session, prefix });
                self.advance(key, |journey, scene| journey.on_prefix(scene));
                self.run_actions(key);
                self.reschedule_ue(key);
            }
        }
    }

    fn session_of(&self, key: UeKey, id: u8) -> Option<&ue::Session> {
        self.subscribers.get(key.0 as usize)?.ue.sessions().find(|session| session.id == id)
    }

    fn first_address(&self, key: UeKey) -> Option<(u8, Ipv4Addr)> {
        let subscriber = self.subscribers.get(key.0 as usize)?;
        subscriber.ue.sessions().find_map(|session| Some((session.id, session.ipv4?)))
    }

    /// Sends a UE's packet through its tunnel. Without radio bearers the packet is dropped, and the
    /// UE requests them.
    pub(super) fn send_packet(&mut self, key: UeKey, session: u8, packet: &[u8]) {
        let Some(subscriber) = self.subscribers.get(key.0 as usize) else { return };
        let Some(bearer) = subscriber.bearers.iter().find(|bearer| bearer.session == session).copied() else {
            return self.ue_input(key, ue::Input::RequestService);
        };
        let ruled = subscriber
            .ue
            .sessions()
            .find(|own| own.id == session)
            .and_then(|own| own.flow_of(packet, self.now));
        // A flow without a bearer can't be used (TS 37.324 5.2.1).
        let qfi = ruled.filter(|qfi| bearer.flows.has(*qfi)).unwrap_or(bearer.qfi);
        let information = UlPduSessionInformation { qfi, qos_monitoring: None };
        let Some(header) = information.gpdu_header(bearer.uplink.teid.0, packet.len()) else { return };
        let mut datagram = Vec::with_capacity(HEADER + packet.len());
        datagram.extend(header);
        datagram.extend(packet);
        let to = SocketAddr::new(bearer.uplink.address, GTPU_PORT);
        self.out.push(Output::N3 { to, datagram });
    }

    /// A datagram from a UPF.
    pub(super) fn receive_n3(&mut self, from: SocketAddr, datagram: &[u8]) {
        let packet = match Packet::decode(datagram) {
            Ok(packet) => packet,
            Err(error) => return self.note_n3_violation("TS 29.281 5.1", error.to_string()),
        };
        if packet.message_type == GtpuMessageType::G_PDU {
            return self.receive_gpdu(from, &packet, datagram);
        }
        match Signalling::decode(&packet) {
            Ok(Some(Signalling::EchoRequest { sequence })) => {
                self.send_signalling(from, &Signalling::EchoResponse { sequence });
            }
            Ok(Some(Signalling::ErrorIndication(ErrorIndication { teid, .. }))) => {
                let text = format!("Error Indication for uplink TEID {teid:#x}");
                self.note_n3_violation("TS 29.281 7.3.1", text);
            }
            Ok(Some(Signalling::EndMarker { teid })) => self.note_end_marker(Teid(teid)),
            Ok(_) => {}
            Err(error) => self.note_n3_violation("TS 29.281 7", error.to_string()),
        }
    }

    fn receive_gpdu(&mut self, from: SocketAddr, packet: &Packet<'_>, datagram: &[u8]) {
        let teid = Teid(packet.teid);
        if let Some(to) = self.former_tunnels.forwarded(teid) {
            return self.forward(to, datagram);
        }
        let endpoint = self.endpoints.get(&teid).copied().or_else(|| self.former_tunnels.draining(teid));
        let Some(endpoint) = endpoint else { return self.refuse_gpdu(from, teid) };
        match packet.pdu_session_information() {
            Some(PduSessionInformation::Downlink(information))
                if endpoint.may_have(information.qfi, self.now) =>
            {
                // The gNB ignores the RQI in other flows (TS 38.415 5.5.3.4).
                if information.rqi && endpoint.reflective.has(information.qfi) {
                    self.reflect(endpoint, information.qfi, packet.payload);
                }
            }
            Some(PduSessionInformation::Downlink(information)) => {
                let flows: Vec<u8> = endpoint.flows.iter().collect();
                let text = format!("QFI {} in a session of QFIs {flows:?}", information.qfi);
                self.note_n3_violation("TS 38.415 5.5.3.3", text);
            }
            _ => {
                self.note_n3_violation("TS 38.415 5.5.2.1", "G-PDU without DL PDU Session Information".into())
            }
        }
        self.deliver(endpoint, packet.payload);
    }

    /// The UE gets the RQI with a packet, and derives a QoS rule.
    fn reflect(&mut self, Endpoint { ue: key, session, .. }: Endpoint, qfi: u8, packet: &[u8]) {
        let now = self.now;
        let Some(subscriber) = self.subscribers.get_mut(key.0 as usize) else { return };
        if !subscriber.ue.reflect(session, qfi, packet, now) {
            let text = format!("the RQI in flow {qfi} of a UE that does not support reflective QoS");
            self.note_n3_violation("TS 23.501 5.7.5.1", text);
        }
    }

    /// The source gNB sends a packet of a UE that has left into the tunnel for forwarded packets, with its QFI (TS 38.415 5.5.2.1).
    fn forward(&mut self, to: Tunnel, datagram: &[u8]) {
        let mut datagram = datagram.to_vec();
        if let Some(teid) = datagram.get_mut(4..8) {
            teid.copy_from_slice(&to.teid.0.to_be_bytes());
        }
        self.statistics.forwarded += 1;
        self.out.push(Output::N3 { to: SocketAddr::new(to.address, GTPU_PORT), datagram });
    }

    /// A packet for a tunnel that does not exist (TS 29.281 7.3.1). While bearers are set up or released such packets are normal. The Error
    /// Indication goes to the port of GTP-U, whatever port the packet is from (TS 29.281 4.4.2).
    fn refuse_gpdu(&mut self, from: SocketAddr, teid: Teid) {
        if self.former_tunnels.has_ended(teid) {
            let text = format!("a packet after the End Marker, TEID {:#x}", teid.0);
            self.note_n3_violation("TS 29.281 7.3.2", text);
        }
        let local = self.gnbs.first().map(|gnb| gnb.settings().n3);
        if let Some(peer) = local {
            let to = SocketAddr::new(from.ip(), GTPU_PORT);
            self.send_signalling(to, &Signalling::ErrorIndication(ErrorIndication { teid: teid.0, peer }));
        }
    }

    pub(super) fn send_signalling(&mut self, to: SocketAddr, signalling: &Signalling) {
        let mut datagram = Vec::new();
        signalling.encode(&mut datagram);
        self.out.push(Output::N3 { to, datagram });
    }

    /// Delivers a packet to its UE: to its user if it answers a ping or stream, otherwise to the caller.
    fn deliver(&mut self, endpoint: Endpoint, packet: &[u8]) {
        let Endpoint { ue: key, session, .. } = endpoint;
        if let Some(own) = self.session_of(key, session)
            && let Some(text) = misdelivered(own, &self.plan.framed, packet)
        {
            return self.note_n3_violation("TS 23.501 5.8.2", text);
        }
        if Advertisement::is(packet) {
            self.receive_advertisement(endpoint, packet);
            // A program that uses the session through a TUN interface gets it, too.
            return self.out.push(Output::Packet { ue: key, session, packet: packet.to_vec() });
        }
        if prefix::is_answer(packet) {
            if self.plan.requests_prefix {
                return self.receive_dhcpv6(endpoint, packet);
            }
            self.note_prefix_of_program(key, session, packet);
        }
        if let Some(echo) = icmp::read_reply(packet).filter(|echo| self.is_awaited(key, *echo)) {
            self.advance(key, |journey, scene| journey.on_reply(echo.sequence, scene));
        } else if let Some((number, sent)) = self.echoed_probe(packet) {
            self.advance(key, |journey, scene| journey.on_echo(number, sent, scene));
        } else if let Some((number, sent)) = page(packet) {
            self.advance(key, |journey, scene| journey.on_paged(number, sent, scene));
        } else {
            return self.out.push(Output::Packet { ue: key, session, packet: packet.to_vec() });
        }
        self.run_actions(key);
        self.reschedule_ue(key);
    }

    /// Number and time of a datagram returned by the echo service.
    fn echoed_probe(&self, packet: &[u8]) -> Option<(u64, Instant)> {
        let target = self.plan.packets.traffic?.target;
        let (path, data) = udp::read(packet)?;
        let is_echo = path.source == target && path.destination.port() == PROBE_PORT;
        read_probe(data).filter(|_| is_echo)
    }

    fn is_awaited(&self, key: UeKey, echo: Echo) -> bool {
        let from_target = self.plan.packets.ping.is_some_and(|plan| plan.target == echo.destination);
        from_target && echo.identifier == key.0 as u16
    }

    pub(super) fn note_n3_violation(&mut self, clause: &'static str, text: String) {
        self.statistics.violations.add("N3", Violation::new(clause, text));
    }
}

/// Number and time of a packet of [`Output::FromNetwork`].
fn page(packet: &[u8]) -> Option<(u64, Instant)> {
    let (path, data) = udp::read(packet)?;
    read_probe(data).filter(|_| path.destination.port() == PAGE_PORT)
}

/// The reason why a packet is not for this session's UE. A link-local destination is one of the UE's link.
fn misdelivered(own: &ue::Session, framed: &[Network], packet: &[u8]) -> Option<String> {
    let is_ues = |to: Ipv6Addr| {
        let is_on_link = to.is_unicast_link_local() || to.segments()[0] == 0xff02;
        let is_own = own.ipv6.is_some_and(|own| own.to_bits() >> 64 == to.to_bits() >> 64);
        is_on_link || is_own || own.delegated.is_some_and(|prefix| prefix.contains(to))
    };
    let to = match ipv6::Packet::read(packet) {
        Some(packet) if own.interface_id.is_some() && is_ues(packet.destination) => return None,
        Some(packet) => Some(IpAddr::V6(packet.destination)),
        None => ipv4::destination(packet).map(IpAddr::V4),
    };
    let is_behind = to.is_some_and(|to| framed.iter().any(|network| network.contains(to)));
    let is_misdelivered = !is_behind && (to.is_none() || own.ipv4.map(IpAddr::V4) != to);
    is_misdelivered.then(|| format!("a packet for {to:?} at a UE with {:?} and {:?}", own.ipv4, own.ipv6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_a_removed_flow_may_be_in_flight_for_some_time() {
        let flows = |qfis: &[u8]| qfis.iter().copied().collect::<QosFlows>();
        let (all, first) = (flows(&[1, 2]), flows(&[1]));
        let mut endpoint =
            Endpoint { ue: UeKey(0), session: 1, flows: all, reflective: flows(&[]), removed: None };
        endpoint.change(first, flows(&[]), Instant::START);
        let has =
            |endpoint: &Endpoint, after| [1, 2, 3].map(|qfi| endpoint.may_have(qfi, Instant::START + after));
        assert_eq!(has(&endpoint, Duration::ZERO), [true, true, false]);
        assert_eq!(has(&endpoint, IN_FLIGHT), [true, false, false]);
        endpoint.change(all, flows(&[]), Instant::START);
        assert_eq!(has(&endpoint, IN_FLIGHT), [true, true, false]);
    }
}
