//! QoS rules that the UE derives from downlink packets: reflective QoS (TS 24.501 6.2.5.1.4; TS 23.501 5.7.5.2).
//!
//! ```text
//!  gNB                                        UE
//!   |    packet with QFI and RQI ->            |   a derived rule for the reverse 5-tuple: T3583 starts, or starts again
//!   | <- uplink packet of that 5-tuple         |   with the rule's QFI, until T3583 expires
//! ```
//!
//! A rule is derived from TCP and UDP packets. Those of ESP need the uplink security association of IPsec, which the simulator does not have.

use super::qos::Tuple;
use crate::clock::Instant;
use pith_nas::ie::GprsTimer2;
use std::time::Duration;

/// Precedence of a derived rule (TS 24.501 6.2.5.1.4.3).
pub(super) const PRECEDENCE: u8 = 80;

/// T3583 without a value from the network (TS 24.501 table 10.3.1).
const T3583: Duration = Duration::from_secs(60);

/// Derived rules of a session at most; a further one replaces that which expires first.
const MAX_RULES: usize = 256;

/// A derived rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DerivedRule {
    /// Its packet filter: uplink packets are like this one.
    uplink: Tuple,
    qfi: u8,
    /// When T3583 expires; `None`: the network has deactivated the timer.
    expires: Option<Instant>,
}

impl DerivedRule {
    fn is_alive(&self, now: Instant) -> bool {
        self.expires.is_none_or(|at| now < at)
    }
}

/// The derived rules of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DerivedRules {
    rules: Vec<DerivedRule>,
}

impl DerivedRules {
    /// A downlink packet with RQI: derives a rule, or confirms the one that there is, also with another QFI (TS 24.501 6.2.5.1.4.3, 6.2.5.1.4.4).
    /// Packets from which no rule can be derived are ignored (6.2.5.1.4.6).
    pub(super) fn derive(&mut self, packet: &[u8], qfi: u8, rq_timer: Option<GprsTimer2>, now: Instant) {
        let Some(uplink) = Tuple::of_downlink(packet) else { return };
        let duration = rq_timer.map_or(Some(T3583), GprsTimer2::duration);
        let rule = DerivedRule { uplink, qfi, expires: duration.map(|duration| now + duration) };
        self.rules.retain(|known| known.is_alive(now) && known.uplink != rule.uplink);
        if self.rules.len() >= MAX_RULES {
            let expiry = |(_, rule): &(usize, &DerivedRule)| (rule.expires.is_none(), rule.expires);
            let first = self.rules.iter().enumerate().min_by_key(expiry).map(|(at, _)| at);
            first.map(|at| self.rules.remove(at));
        }
        self.rules.push(rule);
    }

    /// The flow of an uplink packet, if a rule matches. T3583 ends a rule (6.2.5.1.4.5).
    pub(super) fn flow_of(&self, packet: &Tuple, now: Instant) -> Option<u8> {
        let rule = self.rules.iter().find(|rule| rule.uplink.is_like(packet) && rule.is_alive(now));
        rule.map(|rule| rule.qfi)
    }

    /// The number of rules.
    pub fn count(&self, now: Instant) -> usize {
        self.rules.iter().filter(|rule| rule.is_alive(now)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: [u8; 4] = [192, 0, 2, 9];
    const UE: [u8; 4] = [10, 45, 0, 2];

    fn packet(protocol: u8, from: ([u8; 4], u16), to: ([u8; 4], u16)) -> Vec<u8> {
        let mut packet = vec![0; 28];
        (packet[0], packet[9]) = (0x45, protocol);
        packet[12..16].copy_from_slice(&from.0);
        packet[16..20].copy_from_slice(&to.0);
        packet[20..22].copy_from_slice(&from.1.to_be_bytes());
        packet[22..24].copy_from_slice(&to.1.to_be_bytes());
        packet
    }

    fn down(protocol: u8, port: u16) -> Vec<u8> {
        packet(protocol, (SERVER, 5004), (UE, port))
    }

    fn flow_of(rules: &DerivedRules, packet: &[u8], now: Instant) -> Option<u8> {
        rules.flow_of(&Tuple::read(packet).unwrap(), now)
    }

    fn after(seconds: u64) -> Instant {
        Instant::START + Duration::from_secs(seconds)
    }

    #[test]
    fn a_rule_matches_the_reverse_5_tuple_until_its_timer_expires() {
        let mut rules = DerivedRules::default();
        let timer = Some(GprsTimer2::at_least(Duration::from_secs(10)));
        rules.derive(&down(17, 40_000), 3, timer, after(0));
        let up = packet(17, (UE, 40_000), (SERVER, 5004));
        assert_eq!(flow_of(&rules, &up, after(9)), Some(3));
        for other in [
            packet(6, (UE, 40_000), (SERVER, 5004)),
            packet(17, (UE, 40_001), (SERVER, 5004)),
            packet(17, (UE, 40_000), (SERVER, 5005)),
            packet(17, (UE, 40_000), ([192, 0, 2, 8], 5004)),
            down(17, 40_000),
        ] {
            assert_eq!(flow_of(&rules, &other, after(9)), None);
        }
        assert_eq!((flow_of(&rules, &up, after(10)), rules.count(after(10))), (None, 0));
    }

    #[test]
    fn a_further_packet_starts_the_timer_again_and_may_change_the_flow() {
        let mut rules = DerivedRules::default();
        rules.derive(&down(6, 40_000), 3, None, after(0));
        rules.derive(&down(6, 40_000), 4, None, after(59));
        let up = packet(6, (UE, 40_000), (SERVER, 5004));
        assert_eq!((rules.count(after(100)), flow_of(&rules, &up, after(100))), (1, Some(4)));
        assert_eq!(flow_of(&rules, &up, after(119)), None, "60 s without a value of the network");
        rules.derive(&down(6, 40_000), 4, Some(GprsTimer2::DEACTIVATED), after(200));
        assert_eq!(flow_of(&rules, &up, after(1 << 30)), Some(4));
    }

    #[test]
    fn packets_of_other_protocols_and_fragments_derive_no_rule() {
        let mut fragment = down(17, 40_000);
        fragment[7] = 1;
        let mut six = vec![0; 48];
        (six[0], six[6]) = (0x60, 44);
        for packet in [down(1, 40_000), down(50, 40_000), fragment, six, vec![0x45; 10], vec![]] {
            let mut rules = DerivedRules::default();
            rules.derive(&packet, 3, None, after(0));
            assert_eq!(rules.count(after(0)), 0, "{packet:02x?}");
        }
    }

    #[test]
    fn the_number_of_rules_is_bounded() {
        let mut rules = DerivedRules::default();
        for port in 0..1000 {
            rules.derive(&down(17, port), 3, None, after(0));
        }
        assert_eq!(rules.count(after(0)), MAX_RULES);
        let last = packet(17, (UE, 999), (SERVER, 5004));
        assert_eq!(flow_of(&rules, &last, after(0)), Some(3));
    }
}
