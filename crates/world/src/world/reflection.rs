//! Reflective QoS from the PCF's rule to the UE's answer (TS 23.501 5.7.5.3): the packets follow the rules of UPF, gNB and UE.

use super::operator::{REFLECTIVE_RULE, RULE_REMOTE, rule_port};
use super::user::Act;
use super::{Failure, SimEvent, World};
use pith_upf::contract::{Direction, Pdr, SdfFilter, Session};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

/// The UE's port.
const PORT: u16 = 40_000;

/// A packet of the UE that answers one of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReflectedAnswer {
    /// The QoS flow in which the UE sends it.
    pub qfi: u8,
    /// Whether the anchor detects it by the rule's PDR, which verifies the UE's marking.
    pub is_of_rule: bool,
}

impl World {
    /// The PCF adds a reflective rule to a session, and the UE answers a server whose packets the rule is for: before a packet of it has arrived,
    /// afterwards, and when the RQ timer has expired. Then the rule is removed, and another packet arrives.
    pub fn run_reflection(&mut self) -> Result<[ReflectedAnswer; 4], Box<Failure>> {
        self.run_single_registration()?;
        self.act_now(Act::AddFlow(1, REFLECTIVE_RULE))?;
        let before = self.uplink_answer();
        self.deliver_packet_of_rule();
        let after = self.uplink_answer();
        self.pass(Duration::from_secs(61))?;
        let late = self.uplink_answer();
        self.act_now(Act::RemoveFlow(1, REFLECTIVE_RULE))?;
        self.deliver_packet_of_rule();
        Ok([before, after, late, self.uplink_answer()])
    }

    fn act_now(&mut self, act: Act) -> Result<(), Box<Failure>> {
        self.at(Duration::ZERO, SimEvent::Act { ue: 0, act });
        self.pass(Duration::from_secs(3))
    }

    fn anchor_session(&self) -> Arc<Session> {
        let session = self.upfs[0].datapath.sessions.values().next();
        Arc::clone(session.expect("the UE has a session"))
    }

    /// A packet of the server: the UPF marks it, and the gNB sends the RQI of flows with the attribute to the UE.
    fn deliver_packet_of_rule(&mut self) {
        let session = self.anchor_session();
        let pdr = first_match(&session, Direction::Downlink, None);
        let qfi = session.qfi_of(pdr).expect("packets are marked").0;
        let bearer = self.gnbs[self.ues[0].gnb].bearers.values().next().expect("the UE is connected");
        assert!(bearer.flows.has(qfi), "the gNB has no flow {qfi}");
        let (has_rqi, is_reflective) = (session.is_reflective(pdr), bearer.reflective.has(qfi));
        assert_eq!(has_rqi, is_reflective, "flow {qfi}");
        if has_rqi {
            let (now, ue) = (self.ran_now(), session.ue.v4.expect("an IPv4 session"));
            let packet = datagram((RULE_REMOTE, rule_port(REFLECTIVE_RULE)), (ue, PORT));
            assert!(self.ues[0].ue.reflect(bearer.session, qfi, &packet, now), "the UE supports it");
        }
    }

    fn uplink_answer(&self) -> ReflectedAnswer {
        let session = self.anchor_session();
        let bearer = self.gnbs[self.ues[0].gnb].bearers.values().next().expect("the UE is connected");
        let own = self.ues[0].ue.sessions().find(|own| own.id == bearer.session).expect("as the gNB");
        let ue = session.ue.v4.expect("an IPv4 session");
        let packet = datagram((ue, PORT), (RULE_REMOTE, rule_port(REFLECTIVE_RULE)));
        let qfi = own.flow_of(&packet, self.ran_now()).filter(|qfi| bearer.flows.has(*qfi));
        let qfi = qfi.unwrap_or(bearer.qfi);
        ReflectedAnswer {
            qfi,
            is_of_rule: !first_match(&session, Direction::Uplink, Some(qfi)).filters.is_empty(),
        }
    }
}

/// The PDR of the rule's packets, which uplink packets match with that QFI.
fn first_match(session: &Session, direction: Direction, qfi: Option<u8>) -> &Pdr {
    let takes = |pdr: &&Pdr| {
        pdr.source.direction() == direction
            && (pdr.filters.is_empty() || pdr.filters.iter().any(is_of_rule))
            && (pdr.qfis.is_empty() || pdr.qfis.iter().any(|own| Some(own.0) == qfi))
    };
    session.pdrs.iter().filter(takes).min_by_key(|pdr| pdr.precedence).expect("a PDR takes all packets")
}

fn is_of_rule(filter: &SdfFilter) -> bool {
    filter.protocol == Some(17)
        && filter.remote.address.is_some_and(|range| range.contains(RULE_REMOTE.into()))
        && filter.remote.ports.is_some_and(|ports| ports.contains(rule_port(REFLECTIVE_RULE)))
}

/// A UDP datagram, as far as rules see it.
fn datagram(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Vec<u8> {
    let mut packet = vec![0; 28];
    (packet[0], packet[9]) = (0x45, 17);
    packet[12..16].copy_from_slice(&from.0.octets());
    packet[16..20].copy_from_slice(&to.0.octets());
    packet[20..22].copy_from_slice(&from.1.to_be_bytes());
    packet[22..24].copy_from_slice(&to.1.to_be_bytes());
    packet
}
