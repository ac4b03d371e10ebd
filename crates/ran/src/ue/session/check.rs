//! Checks of PDU SESSION ESTABLISHMENT ACCEPT (TS 24.501 6.4.1.3, 8.3.2).

use super::qos::Qos;
use super::{SSC_MODE, SessionRequest};
use crate::ue::Ue;
use pith_nas::gsm::PduSessionEstablishmentAccept;
use pith_nas::ie::{FlowOperation, PduAddress, PduSessionType, QosRule, QosRules, RuleOperation};
use std::net::Ipv4Addr;

/// The clause with the rules of the message.
const CLAUSE: &str = "TS 24.501 6.4.1.3";

impl Ue {
    /// The QoS flow of the default rule, and the other rules and flows, if the session is usable.
    pub(super) fn check_establishment_accept(
        &mut self,
        request: &SessionRequest,
        accept: &PduSessionEstablishmentAccept,
    ) -> Option<(u8, Qos)> {
        self.check_descriptive_ies(request, accept);
        if !self.check_session_type(request, accept) || !self.check_address(accept) {
            return None;
        }
        let qfi = self.check_qos_rules(&accept.qos_rules)?;
        self.check_flow_descriptions(accept, qfi);
        let described = accept.qos_flow_descriptions.as_ref().map(|list| &list.0[..]).unwrap_or_default();
        match Qos::default().after(qfi, &accept.qos_rules.0, described) {
            Ok(qos) => Some((qfi, qos)),
            Err((_, why)) => {
                self.violation(CLAUSE, why);
                None
            }
        }
    }

    /// Checks of IEs whose errors do not make the session unusable.
    fn check_descriptive_ies(&mut self, request: &SessionRequest, accept: &PduSessionEstablishmentAccept) {
        if accept.ssc_mode != SSC_MODE {
            self.violation(CLAUSE, format!("SSC mode {:?}, asked for {SSC_MODE:?}", accept.ssc_mode));
        }
        match (request.snssai, accept.snssai.map(|slice| slice.snssai)) {
            (_, None) => self.violation(CLAUSE, "no S-NSSAI in PDU SESSION ESTABLISHMENT ACCEPT"),
            (Some(asked), Some(given)) if asked != given => {
                self.violation(CLAUSE, format!("S-NSSAI {given}, asked for {asked}"));
            }
            _ => {}
        }
        match (&request.dnn, &accept.dnn) {
            (_, None) => self.violation(CLAUSE, "no DNN in PDU SESSION ESTABLISHMENT ACCEPT"),
            // The network may append its operator identifier.
            (Some(asked), Some(given)) if !given.as_str().starts_with(asked.as_str()) => {
                self.violation(CLAUSE, format!("DNN {given}, asked for {asked}"));
            }
            _ => {}
        }
        if accept.rq_timer.is_some() && !request.reflective_qos {
            self.violation(CLAUSE, "an RQ timer for a UE that does not support reflective QoS");
        }
        if accept.session_ambr.uplink.bps() == 0 || accept.session_ambr.downlink.bps() == 0 {
            self.violation("TS 24.501 9.11.4.14", "session-AMBR of 0");
        }
    }

    /// The requested type. If both IP versions were requested, one of them is valid too, with the
    /// cause that explains it.
    fn check_session_type(
        &mut self,
        request: &SessionRequest,
        accept: &PduSessionEstablishmentAccept,
    ) -> bool {
        use PduSessionType::{Ipv4, Ipv4v6, Ipv6};
        let (asked, given) = (request.session_type, accept.pdu_session_type);
        match (asked, given, accept.cause.map(|cause| cause.code())) {
            _ if asked == given => true,
            (Ipv4v6, Ipv4, Some(50)) | (Ipv4v6, Ipv6, Some(51)) => true,
            (Ipv4v6, Ipv4 | Ipv6, cause) => {
                self.violation(CLAUSE, format!("{given:?} for {asked:?} with 5GSM cause {cause:?}"));
                true
            }
            _ => {
                self.violation(CLAUSE, format!("PDU session type {given:?}, asked for {asked:?}"));
                false
            }
        }
    }

    /// An IP session has an address of its type.
    fn check_address(&mut self, accept: &PduSessionEstablishmentAccept) -> bool {
        use PduSessionType::{Ipv4, Ipv4v6, Ipv6};
        let wants_v4 = matches!(accept.pdu_session_type, Ipv4 | Ipv4v6);
        let wants_v6 = matches!(accept.pdu_session_type, Ipv6 | Ipv4v6);
        let PduAddress { ipv4, interface_id, .. } = accept.pdu_address.unwrap_or_default();
        if ipv4.is_some() != wants_v4 || interface_id.is_some() != wants_v6 {
            let text =
                format!("PDU address {:?} in a session of {:?}", accept.pdu_address, accept.pdu_session_type);
            self.violation(CLAUSE, text);
            return false;
        }
        // Without it the UE would have no link-local address, or that of the router.
        if let Some(id) = interface_id.filter(|id| matches!(u64::from_be_bytes(*id), 0 | 1)) {
            self.violation("TS 23.501 5.8.2.2.3", format!("interface identifier {id:02x?}"));
            return false;
        }
        let usable = |address: Ipv4Addr| {
            !address.is_unspecified()
                && !address.is_broadcast()
                && !address.is_multicast()
                && !address.is_loopback()
        };
        if let Some(address) = ipv4.filter(|address| !usable(*address)) {
            self.violation(CLAUSE, format!("PDU address {address}"));
            return false;
        }
        true
    }

    /// Exactly one default rule; each rule identifier once, with operation create; each filter and precedence
    /// once (TS 24.501 6.4.1.3, semantic and syntactical errors in QoS operations and packet filters).
    fn check_qos_rules(&mut self, rules: &QosRules) -> Option<u8> {
        let rules = &rules.0;
        let defaults: Vec<&QosRule> = rules.iter().filter(|rule| rule.default).collect();
        let [default] = defaults[..] else {
            self.violation(CLAUSE, format!("{} default QoS rules", defaults.len()));
            return None;
        };
        for (at, rule) in rules.iter().enumerate() {
            let earlier = rules.get(..at).unwrap_or_default();
            if let Some(why) = fault_of_rule(rule, earlier) {
                self.violation(CLAUSE, format!("QoS rule {}: {why}", rule.id));
                return None;
            }
        }
        default.precedence_and_qfi.map(|precedence_and_qfi| precedence_and_qfi.qfi)
    }

    /// Each flow of a rule has a description, unless its QFI is its 5QI (TS 24.501 6.4.1.3).
    fn check_flow_descriptions(&mut self, accept: &PduSessionEstablishmentAccept, default_qfi: u8) {
        let described = accept.qos_flow_descriptions.as_ref().map(|list| &list.0[..]).unwrap_or_default();
        for flow in described.iter().filter(|flow| flow.operation != FlowOperation::Create) {
            let text = format!("QoS flow description {} with operation {:?}", flow.qfi, flow.operation);
            self.violation(CLAUSE, text);
        }
        // Non-GBR 5QIs that may equal the QFI, TS 23.501 table 5.7.4-1.
        let is_five_qi = matches!(default_qfi, 5..=9);
        if !is_five_qi && !described.iter().any(|flow| flow.qfi == default_qfi) {
            self.violation(CLAUSE, format!("no QoS flow description for QFI {default_qfi}"));
        }
    }
}

/// The error in a rule of a new session.
pub(super) fn fault_of_rule(rule: &QosRule, earlier: &[QosRule]) -> Option<&'static str> {
    let Some(precedence_and_qfi) = rule.precedence_and_qfi else { return Some("no precedence and no QFI") };
    let same_precedence = |other: &QosRule| {
        other.precedence_and_qfi.is_some_and(|m| m.precedence == precedence_and_qfi.precedence)
    };
    match rule {
        _ if rule.operation != RuleOperation::Create => Some("not created"),
        _ if rule.id == 0 => Some("identifier 0"),
        _ if earlier.iter().any(|other| other.id == rule.id) => Some("identifier twice"),
        _ if earlier.iter().any(same_precedence) => Some("precedence twice"),
        _ if !(1..64).contains(&precedence_and_qfi.qfi) => Some("QFI out of range"),
        _ if rule.packet_filters.is_empty() => Some("no packet filter"),
        _ => None,
    }
}
