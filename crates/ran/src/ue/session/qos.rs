//! QoS rules and QoS flow descriptions of a session besides the default ones: operations with their errors (TS 24.501 6.3.2.4), and the
//! classification of uplink packets (TS 23.501 5.7.1.3).

use super::derived::{self, DerivedRules};
use crate::clock::Instant;
use pith_nas::GsmCause;
use pith_nas::ie::{
    FilterComponent, FilterDirection, FlowOperation, FlowParameter, PacketFilter, QosFlowDescription,
    QosRule, RuleOperation,
};
use pith_types::five_qi;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Packet filters that a UE supports in a session if it does not say otherwise (TS 24.501 6.4.1.2); one is that of the default rule.
const MAX_PACKET_FILTERS: usize = 16;

/// The error of an operation: the cause for the network, and the reason.
type Fault = (GsmCause, String);

/// QoS rules and flows besides the default ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Qos {
    /// The rules, by precedence.
    pub rules: Vec<QosRule>,
    /// The flows, in the order of their creation.
    pub flows: Vec<QosFlowDescription>,
}

const fn semantic(text: String) -> Fault {
    (GsmCause::SemanticErrorInTheQosOperation, text)
}

const fn syntactical(text: String) -> Fault {
    (GsmCause::SyntacticalErrorInTheQosOperation, text)
}

impl Qos {
    /// The state after these operations, in a session with that default flow. On an error nothing changes.
    pub fn after(
        &self,
        default_qfi: u8,
        rules: &[QosRule],
        flows: &[QosFlowDescription],
    ) -> Result<Self, Fault> {
        let mut next = self.clone();
        for flow in flows.iter().filter(|flow| flow.qfi != default_qfi) {
            next.apply_flow(flow)?;
        }
        for rule in rules.iter().filter(|rule| !rule.default) {
            next.apply_rule(rule)?;
        }
        next.rules.sort_by_key(|rule| rule.precedence_and_qfi.map(|it| it.precedence));
        next.check(default_qfi)?;
        Ok(next)
    }

    /// TS 24.501 6.3.2.4 b, 6.4.1.3: QoS flow descriptions.
    fn apply_flow(&mut self, flow: &QosFlowDescription) -> Result<(), Fault> {
        let at = self.flows.iter().position(|known| known.qfi == flow.qfi);
        let name = format!("QoS flow description {}", flow.qfi);
        match flow.operation {
            FlowOperation::Create if !flow.replaces || flow.parameters.is_empty() => {
                return Err(syntactical(format!("{name} is created without parameters")));
            }
            FlowOperation::Delete if flow.replaces || !flow.parameters.is_empty() => {
                return Err(syntactical(format!("{name} is deleted with parameters")));
            }
            FlowOperation::Modify if at.is_none() => {
                return Err(semantic(format!("{name} is modified, and does not exist")));
            }
            FlowOperation::Create | FlowOperation::Modify | FlowOperation::Delete => {}
            FlowOperation::Other(code) => return Err(syntactical(format!("{name}: operation {code}"))),
        }
        // One that exists is replaced, and the deletion of one that does not is no error.
        let former = at.map(|at| self.flows.remove(at));
        if flow.operation != FlowOperation::Delete {
            let mut parameters = flow.parameters.clone();
            if let Some(former) = former.filter(|_| !flow.replaces) {
                let is_kept = |old: &FlowParameter| {
                    flow.parameters
                        .iter()
                        .all(|new| std::mem::discriminant(new) != std::mem::discriminant(old))
                };
                parameters.extend(former.parameters.into_iter().filter(is_kept));
            }
            self.flows.push(QosFlowDescription { parameters, ..flow.clone() });
        }
        Ok(())
    }

    /// TS 24.501 6.3.2.4 a: QoS rules.
    fn apply_rule(&mut self, rule: &QosRule) -> Result<(), Fault> {
        let at = self.rules.iter().position(|known| known.id == rule.id);
        let name = format!("QoS rule {}", rule.id);
        match rule.operation {
            RuleOperation::Create => {
                if let Some(why) = super::check::fault_of_rule(rule, &[]) {
                    return Err(syntactical(format!("{name}: {why}")));
                }
                // One that exists is replaced.
                self.rules.retain(|known| known.id != rule.id);
                self.rules.push(rule.clone());
            }
            RuleOperation::Delete => {
                if !rule.packet_filters.is_empty() || rule.precedence_and_qfi.is_some() {
                    return Err(syntactical(format!("{name} is deleted with a content")));
                }
                at.map(|at| self.rules.remove(at));
            }
            _ => return Err(semantic(format!("{name}: an operation that the simulator does not know"))),
        }
        Ok(())
    }

    /// What must hold after all operations.
    fn check(&self, default_qfi: u8) -> Result<(), Fault> {
        let precedences = self.rules.iter().filter_map(|rule| rule.precedence_and_qfi);
        let mut precedences: Vec<u8> = precedences.map(|it| it.precedence).chain([255]).collect();
        precedences.dedup();
        if precedences.len() <= self.rules.len() {
            return Err(semantic("two QoS rules with the same precedence".into()));
        }
        let filters: usize = self.rules.iter().map(|rule| rule.packet_filters.len()).sum();
        if filters >= MAX_PACKET_FILTERS {
            return Err(semantic(format!("{} packet filters", filters + 1)));
        }
        for rule in &self.rules {
            let qfi = rule.precedence_and_qfi.map_or(0, |it| it.qfi);
            // A QFI that is a 5QI needs no description.
            let is_described = qfi == default_qfi
                || self.flows.iter().any(|flow| flow.qfi == qfi)
                || five_qi::is_standardised(qfi) && !five_qi::is_gbr(qfi);
            if !is_described {
                return Err(semantic(format!(
                    "QoS rule {} of flow {qfi}, which has no description",
                    rule.id
                )));
            }
        }
        self.flows.iter().find_map(fault_of_flow).map_or(Ok(()), |why| Err(semantic(why)))
    }

    /// The flow of an uplink packet: that of the first rule with a filter that matches, of the signalled rules and of the derived ones between
    /// them (TS 24.501 6.2.5.1.3). `None`: the default flow.
    pub fn flow_of(&self, derived: &DerivedRules, packet: &[u8], now: Instant) -> Option<u8> {
        let tuple = Tuple::read(packet)?;
        let is_its = |rule: &&QosRule| rule.packet_filters.iter().any(|filter| tuple.matches(filter));
        let signalled = self.rules.iter().find(is_its).and_then(|rule| rule.precedence_and_qfi);
        match signalled {
            Some(first) if first.precedence <= derived::PRECEDENCE => Some(first.qfi),
            later => derived.flow_of(&tuple, now).or(later.map(|it| it.qfi)),
        }
    }
}

/// A GBR flow has guaranteed and maximum rates, any other flow has none (TS 24.501 6.3.2.4 b, 9.11.4.12).
fn fault_of_flow(flow: &QosFlowDescription) -> Option<String> {
    let has = |is_it: fn(&FlowParameter) -> bool| flow.parameters.iter().any(is_it);
    let five_qi = flow.parameters.iter().find_map(|parameter| match parameter {
        FlowParameter::FiveQi(five_qi) => Some(*five_qi),
        _ => None,
    });
    let rates: [fn(&FlowParameter) -> bool; 4] = [
        |it| matches!(it, FlowParameter::GfbrUplink(_)),
        |it| matches!(it, FlowParameter::GfbrDownlink(_)),
        |it| matches!(it, FlowParameter::MfbrUplink(_)),
        |it| matches!(it, FlowParameter::MfbrDownlink(_)),
    ];
    let qfi = flow.qfi;
    match five_qi {
        None => Some(format!("QoS flow {qfi} without 5QI")),
        Some(five_qi) if five_qi::is_gbr(five_qi) && !rates.into_iter().all(has) => {
            Some(format!("GBR QoS flow {qfi} without bit rates"))
        }
        Some(five_qi) if !five_qi::is_gbr(five_qi) && rates.into_iter().any(has) => {
            Some(format!("Non-GBR QoS flow {qfi} with bit rates"))
        }
        Some(_) => None,
    }
}

/// What packet filters see of an uplink packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tuple {
    protocol: u8,
    traffic_class: u8,
    local: IpAddr,
    remote: IpAddr,
    /// Of UDP and TCP: the UE's, the data network's.
    ports: Option<(u16, u16)>,
}

impl Tuple {
    /// The uplink packets that answer this downlink packet of TCP or UDP (TS 24.501 6.2.5.1.4.2).
    pub(super) fn of_downlink(packet: &[u8]) -> Option<Self> {
        let is_later_fragment =
            packet.first()? >> 4 == 4 && (packet.get(6)? & 0x1f, *packet.get(7)?) != (0, 0);
        let Self { protocol, local, remote, ports, .. } =
            Self::read(packet).filter(|_| !is_later_fragment)?;
        let (from, to) = ports?;
        Some(Self { protocol, traffic_class: 0, local: remote, remote: local, ports: Some((to, from)) })
    }

    /// Whether two packets have the same 5-tuple.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        Self { traffic_class: 0, ..*self } == Self { traffic_class: 0, ..*other }
    }

    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        let (protocol, traffic_class, local, remote, transport): (_, _, IpAddr, IpAddr, _) = match packet
            .first()?
            >> 4
        {
            4 => {
                let header = packet.get(..20)?;
                let address = |at: usize| header.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
                let length = usize::from(header[0] & 0xf) * 4;
                let (local, remote) = (Ipv4Addr::from_bits(address(12)?), Ipv4Addr::from_bits(address(16)?));
                (header[9], header[1], local.into(), remote.into(), packet.get(length..)?)
            }
            6 => {
                let header = packet.get(..40)?;
                let address = |at: usize| header.get(at..at + 16)?.try_into().ok().map(u128::from_be_bytes);
                let (local, remote) = (Ipv6Addr::from_bits(address(8)?), Ipv6Addr::from_bits(address(24)?));
                let class = header[0] << 4 | header[1] >> 4;
                (header[6], class, local.into(), remote.into(), packet.get(40..)?)
            }
            _ => return None,
        };
        let port = |at: usize| transport.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes);
        let ports = if matches!(protocol, 6 | 17) { port(0).zip(port(2)) } else { None };
        Some(Self { protocol, traffic_class, local, remote, ports })
    }

    fn matches(&self, filter: &PacketFilter) -> bool {
        let is_uplink = matches!(filter.direction, FilterDirection::Uplink | FilterDirection::Bidirectional);
        is_uplink && filter.components.iter().all(|component| self.has(component))
    }

    fn has(&self, component: &FilterComponent) -> bool {
        use FilterComponent as F;
        let v4 = |address: IpAddr, network: &Ipv4Addr, mask: &Ipv4Addr| matches!(address, IpAddr::V4(v4) if v4.to_bits() & mask.to_bits() == network.to_bits() & mask.to_bits());
        let v6 = |address: IpAddr, network: &Ipv6Addr, prefix: &u8| {
            let shift = 128 - u32::from((*prefix).min(128));
            let of = |bits: u128| bits.checked_shr(shift).unwrap_or(0);
            matches!(address, IpAddr::V6(v6) if of(v6.to_bits()) == of(network.to_bits()))
        };
        let (local, remote) = (self.ports.map(|it| it.0), self.ports.map(|it| it.1));
        let within =
            |port: Option<u16>, low: &u16, high: &u16| port.is_some_and(|it| (low..=high).contains(&&it));
        match component {
            F::MatchAll => true,
            F::Ipv4Remote(network, mask) => v4(self.remote, network, mask),
            F::Ipv4Local(network, mask) => v4(self.local, network, mask),
            F::Ipv6Remote(network, prefix) => v6(self.remote, network, prefix),
            F::Ipv6Local(network, prefix) => v6(self.local, network, prefix),
            F::Protocol(protocol) => self.protocol == *protocol,
            F::LocalPort(port) => local == Some(*port),
            F::LocalPorts(low, high) => within(local, low, high),
            F::RemotePort(port) => remote == Some(*port),
            F::RemotePorts(low, high) => within(remote, low, high),
            F::TrafficClass(value, mask) => self.traffic_class & mask == value & mask,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_nas::ie::PrecedenceAndQfi;
    use pith_types::BitRate;

    fn rule(id: u8, precedence: u8, qfi: u8, port: u16) -> QosRule {
        QosRule {
            id,
            operation: RuleOperation::Create,
            default: false,
            packet_filters: vec![PacketFilter {
                id: 1,
                direction: FilterDirection::Bidirectional,
                components: vec![FilterComponent::Protocol(17), FilterComponent::RemotePort(port)],
            }],
            precedence_and_qfi: Some(PrecedenceAndQfi { precedence, segregation: false, qfi }),
        }
    }

    fn delete(id: u8) -> QosRule {
        QosRule {
            operation: RuleOperation::Delete,
            packet_filters: vec![],
            precedence_and_qfi: None,
            ..rule(id, 0, 0, 0)
        }
    }

    fn voice(qfi: u8) -> QosFlowDescription {
        let rate = BitRate::kbps(64);
        let mut flow = QosFlowDescription::non_gbr(qfi, 1);
        flow.parameters.extend([
            FlowParameter::GfbrUplink(rate),
            FlowParameter::GfbrDownlink(rate),
            FlowParameter::MfbrUplink(rate),
            FlowParameter::MfbrDownlink(rate),
        ]);
        flow
    }

    fn to(port: u16) -> Vec<u8> {
        let mut packet = vec![0; 28];
        (packet[0], packet[9]) = (0x45, 17);
        packet[22..24].copy_from_slice(&port.to_be_bytes());
        packet
    }

    fn flow(qos: &Qos, packet: &[u8]) -> Option<u8> {
        qos.flow_of(&DerivedRules::default(), packet, Instant::START)
    }

    /// Derived rules have precedence 80 (TS 24.501 6.2.5.1.4.3).
    #[test]
    fn a_derived_rule_is_evaluated_between_those_of_the_network() {
        let mut downlink = to(40_000);
        downlink[20..22].copy_from_slice(&5004_u16.to_be_bytes());
        let mut uplink = to(5004);
        uplink[20..22].copy_from_slice(&40_000_u16.to_be_bytes());
        let mut derived = DerivedRules::default();
        derived.derive(&downlink, 7, None, Instant::START);
        let of = |qos: &Qos| qos.flow_of(&derived, &uplink, Instant::START);
        assert_eq!(of(&Qos::default()), Some(7), "before the default rule");
        for (precedence, expected) in [(69, 2), (100, 7)] {
            let qos = Qos::default().after(1, &[rule(2, precedence, 2, 5004)], &[voice(2)]).unwrap();
            assert_eq!(of(&qos), Some(expected), "{precedence}");
        }
    }

    #[test]
    fn packets_use_the_flow_of_the_first_rule_that_matches() {
        let qos =
            Qos::default().after(1, &[rule(2, 20, 2, 5004), rule(3, 10, 1, 5004)], &[voice(2)]).unwrap();
        assert_eq!(flow(&qos, &to(5004)), Some(1), "the lower precedence");
        let qos = qos.after(1, &[delete(3)], &[]).unwrap();
        assert_eq!((flow(&qos, &to(5004)), flow(&qos, &to(5005))), (Some(2), None));
        assert_eq!(flow(&qos, &[0x45; 10]), None, "a cut packet");
        let again = qos.after(1, &[rule(2, 20, 2, 5004)], &[voice(2)]).unwrap();
        assert_eq!(again, qos, "a retransmitted command changes nothing");
    }

    #[test]
    fn wrong_operations_are_errors_of_the_network() {
        let qos = Qos::default().after(1, &[rule(2, 20, 2, 5004)], &[voice(2)]).unwrap();
        let modify = QosFlowDescription { operation: FlowOperation::Modify, ..voice(3) };
        let deleted = QosFlowDescription { operation: FlowOperation::Delete, ..voice(2) };
        let gone = QosFlowDescription { replaces: false, parameters: vec![], ..deleted.clone() };
        for (rules, flows) in [
            (vec![rule(3, 20, 2, 1)], vec![]),
            (vec![rule(3, 255, 2, 1)], vec![]),
            (vec![rule(3, 30, 4, 1)], vec![]),
            (vec![QosRule { packet_filters: vec![], ..rule(3, 30, 2, 1) }], vec![]),
            (vec![], vec![modify]),
            (vec![], vec![deleted]),
            (vec![], vec![gone]),
            (vec![], vec![QosFlowDescription::non_gbr(3, 1)]),
            (vec![], vec![QosFlowDescription { parameters: vec![], ..voice(3) }]),
            ((3..19).map(|id| rule(id, 100 + id, 2, 1)).collect(), vec![]),
        ] {
            assert!(qos.after(1, &rules, &flows).is_err(), "{rules:?} {flows:?}");
        }
    }
}
