//! UE-requested PDU session modification (TS 23.502 4.3.3.2 step 1a; TS 24.501 6.4.2).
//!
//! ```text
//!  UE  PDU SESSION MODIFICATION REQUEST ─> SMF
//!  UE  <─ PDU SESSION MODIFICATION COMMAND      it revokes its support of reflective QoS, and requests nothing else (6.4.2.3)
//!  UE  <─ PDU SESSION MODIFICATION REJECT       with the first cause that applies (6.4.2.4)
//! ```
//!
//! A revocation takes effect at once, and the UE repeats its request until it gets the command, so that no timer runs for that. If the session
//! has reflective rules, their change is a modification of its own. After a restart a UE in CM-CONNECTED that has not answered gets the command in
//! any case: if the AMF has no answer in time, it returns the request, and the UE does not repeat it (5.4.5.3.1, 6.4.2.6).
//!
//! QoS is the decision of the PCF, and this SMF does not ask it for a UE's QoS rules: no other request is accepted. The cause tells the UE whether
//! its request was wrong:
//!
//! | cause | request |
//! |---|---|
//! | #84, #83 | operations on rules and flows that are incorrect (definitions of 6.3.2.4) |
//! | #45, #44 | packet filters that are incorrect (definitions of 6.3.2.4) |
//! | #59 | a 5QI that is not standardised |
//! | #37 | rules and flows that are correct |
//! | #32 | services that this SMF does not have: EPS bearers, header compression, time-sensitive networking, multicast and more |
//! | #31 | other |

use super::{Established, State, refused_transfer};
use crate::smf::context::{DEFAULT_QFI, SmContext};
use crate::smf::env::Env;
use crate::smf::flows::DEFAULT_RULE;
use crate::smf::{consumer, n1};
use pith_nas::gsm::PduSessionModificationRequest;
use pith_nas::ie::{
    FilterComponent, FlowOperation, FlowParameter, PacketFilter, QosFlowDescription, QosRule, RuleOperation,
};
use pith_nas::{GsmCause, Note, Noted};
use pith_types::five_qi;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;

/// IEI of Requested QoS rules (TS 24.501 Table 8.3.7.1.1).
const QOS_RULES: u8 = 0x7a;
/// IEI of Requested QoS flow descriptions.
const QOS_FLOW_DESCRIPTIONS: u8 = 0x79;

/// Why a request is rejected. `notes` are the decoder's: a syntactically incorrect IE counts as absent there, and has a cause here.
pub(in crate::smf) fn cause_of_reject(
    session: &SmContext,
    request: &PduSessionModificationRequest,
    notes: &[Note],
) -> GsmCause {
    if let Some(cause) = notes.iter().find_map(cause_of_note) {
        return cause;
    }
    let known = Known::of(session);
    let rules = request.requested_qos_rules.as_ref().map_or(&[][..], |rules| &rules.0);
    let flows = request.requested_qos_flow_descriptions.as_ref().map_or(&[][..], |flows| &flows.0);
    let is_created = |flow: &&QosFlowDescription| flow.operation == FlowOperation::Create;
    let created = flows.iter().filter(is_created).fold(0, |bits, flow| bits | bit(flow.qfi));
    let errors = [
        flows.iter().find_map(|flow| known.error_of_flow(flow)),
        rules.iter().find_map(|rule| known.error_of_rule(rule, created)),
        error_of_precedences(rules),
        rules.iter().find_map(error_of_filters),
        flows.iter().find_map(unsupported),
    ];
    if let Some(cause) = errors.into_iter().flatten().next() {
        return cause;
    }
    if !rules.is_empty() || !flows.is_empty() {
        return GsmCause::FiveGsQosNotAccepted;
    }
    if needs_other_service(request) {
        return GsmCause::ServiceOptionNotSupported;
    }
    GsmCause::RequestRejectedUnspecified
}

/// Whether the UE revokes its support of reflective QoS, or repeats that, and requests nothing else (6.4.2.2).
pub(in crate::smf) fn revokes_reflective_qos(
    session: &SmContext,
    request: &PduSessionModificationRequest,
    notes: &[Note],
) -> bool {
    let is_without = request.gsm_capability.as_ref().is_some_and(|capability| !capability.reflective_qos());
    let requests_qos =
        request.requested_qos_rules.is_some() || request.requested_qos_flow_descriptions.is_some();
    let is_all =
        !requests_qos && !needs_other_service(request) && !notes.iter().any(|it| cause_of_note(it).is_some());
    // A UE that has given its request up repeats it with another PTI.
    is_without && is_all && (session.reflective.is_supported || session.reflective.revocation.is_some())
}

/// The SMF has restarted before the UE or the PCF answered, or the AMF has refused the command for some time: they may not know that the revocation
/// is in effect.
pub(in crate::smf) fn resume(established: Established, session: &mut SmContext, env: &mut Env<'_>) -> State {
    if refused_transfer::is_waiting(session) {
        return established.into();
    }
    if std::mem::take(&mut session.reflective.is_interrupted) {
        if let Some(pti) = session.reflective.revocation {
            let command = n1::modification_accept(session, pti);
            let mut transfer = consumer::transfer(session, Some(command), None);
            // An idle UE waits for no answer.
            transfer.body.skip_ind = Some(true);
            consumer::answer_revocation(session, env, transfer);
        }
        if session.reflective.awaits_pcf {
            consumer::report_revoked_reflective_qos(session, env);
        }
    }
    established.into()
}

const fn bit(qfi: u8) -> u64 {
    1 << (qfi & 63)
}

/// Rules or flows that could not be decoded (6.3.2.4 b 3, d 2).
fn cause_of_note(note: &Note) -> Option<GsmCause> {
    match (note.iei, note.what) {
        (QOS_RULES, Noted::Malformed(why)) if why == FilterComponent::UNDEFINED => {
            Some(GsmCause::SyntacticalErrorInPacketFilters)
        }
        (QOS_RULES | QOS_FLOW_DESCRIPTIONS, Noted::Malformed(_)) => {
            Some(GsmCause::SyntacticalErrorInTheQosOperation)
        }
        _ => None,
    }
}

const fn needs_other_service(request: &PduSessionModificationRequest) -> bool {
    request.always_on_requested.is_some()
        || request.mapped_eps_bearer_contexts.is_some()
        || request.port_management_information_container.is_some()
        || request.ip_header_compression_configuration.is_some()
        || request.ethernet_header_compression_configuration.is_some()
        || request.requested_mbs_container.is_some()
        || request.service_level_aa_container.is_some()
}

/// A 5QI that is not standardised (TS 23.501 table 5.7.4-1).
fn unsupported(flow: &QosFlowDescription) -> Option<GsmCause> {
    let is_unsupported = flow.parameters.iter().any(|parameter| match parameter {
        FlowParameter::FiveQi(value) => !five_qi::is_standardised(*value),
        _ => false,
    });
    is_unsupported.then_some(GsmCause::UnsupportedFiveQiValue)
}

/// Rules and flows that the UE may have: those in force, those before the change in progress, and those that a failed change has removed.
struct Known {
    /// A bit for each QFI.
    flows: u64,
    /// Packet filters of each rule: a bit for each identifier.
    rules: BTreeMap<u8, u16>,
}

impl Known {
    fn of(session: &SmContext) -> Self {
        let mut known = Self { flows: bit(DEFAULT_QFI), rules: BTreeMap::new() };
        known.add(&[QosRule::match_all(DEFAULT_RULE, DEFAULT_QFI)]);
        for flows in session.flows.taken() {
            known.add(&flows.qos_rules());
            known.flows |= flows.flows().iter().fold(0_u64, |bits, flow| bits | bit(flow.qfi));
        }
        known
    }

    fn add(&mut self, rules: &[QosRule]) {
        for rule in rules {
            let filters = rule.packet_filters.iter().fold(0_u16, |bits, filter| bits | 1 << (filter.id & 15));
            *self.rules.entry(rule.id).or_default() |= filters;
        }
    }

    const fn has_flow(&self, qfi: u8) -> bool {
        self.flows & bit(qfi) != 0
    }

    fn error_of_flow(&self, flow: &QosFlowDescription) -> Option<GsmCause> {
        let has_parameters = !flow.parameters.is_empty();
        match flow.operation {
            // QFI 0: the network assigns one.
            FlowOperation::Create if flow.qfi != 0 && self.has_flow(flow.qfi) => {
                Some(GsmCause::SemanticErrorInTheQosOperation)
            }
            FlowOperation::Create if !has_parameters => Some(GsmCause::SyntacticalErrorInTheQosOperation),
            FlowOperation::Delete if has_parameters => Some(GsmCause::SyntacticalErrorInTheQosOperation),
            FlowOperation::Delete if flow.qfi == DEFAULT_QFI => {
                Some(GsmCause::SemanticErrorInTheQosOperation)
            }
            FlowOperation::Delete | FlowOperation::Modify if !self.has_flow(flow.qfi) => {
                Some(GsmCause::SemanticErrorInTheQosOperation)
            }
            FlowOperation::Other(_) => Some(GsmCause::SyntacticalErrorInTheQosOperation),
            FlowOperation::Create | FlowOperation::Delete | FlowOperation::Modify => None,
        }
    }

    /// An error in a rule's operation (6.3.2.4 a, b). `created`: flows that the request creates, a bit for each QFI.
    fn error_of_rule(&self, rule: &QosRule, created: u64) -> Option<GsmCause> {
        use RuleOperation as O;
        let needs_filters = match rule.operation {
            O::Create | O::AddPacketFilters | O::ReplacePacketFilters | O::DeletePacketFilters => true,
            O::Delete | O::ModifyWithoutPacketFilters => false,
            O::Other(_) => return Some(GsmCause::SyntacticalErrorInTheQosOperation),
        };
        let lacks_parameters = rule.operation == O::Create && rule.precedence_and_qfi.is_none();
        if needs_filters == rule.packet_filters.is_empty() || lacks_parameters {
            return Some(GsmCause::SyntacticalErrorInTheQosOperation);
        }
        let qfi = rule.precedence_and_qfi.map_or(0, |it| it.qfi);
        let has_flow = qfi == 0 || (self.flows | created) & bit(qfi) != 0;
        let is_wrong = match self.rules.get(&rule.id) {
            // The network assigns the identifier, and there is one default rule.
            _ if rule.operation == O::Create => rule.id != 0 || rule.default,
            None => true,
            Some(_) if rule.operation == O::Delete => rule.id == DEFAULT_RULE,
            Some(filters) => {
                let lacks = |filter: &PacketFilter| filters & 1 << (filter.id & 15) == 0;
                rule.operation == O::DeletePacketFilters && rule.packet_filters.iter().any(lacks)
            }
        };
        (is_wrong || !has_flow).then_some(GsmCause::SemanticErrorInTheQosOperation)
    }
}

/// Two rules of the request have the same precedence (6.3.2.4 a).
fn error_of_precedences(rules: &[QosRule]) -> Option<GsmCause> {
    let mut seen = BTreeSet::new();
    let mut all = rules.iter().filter_map(|rule| rule.precedence_and_qfi).map(|it| it.precedence);
    all.any(|precedence| !seen.insert(precedence)).then_some(GsmCause::SemanticErrorInTheQosOperation)
}

/// An error in a rule's packet filters (6.3.2.4 c, d).
fn error_of_filters(rule: &QosRule) -> Option<GsmCause> {
    let mut ids = BTreeSet::new();
    // 0: the network assigns the identifier.
    if rule.packet_filters.iter().any(|filter| filter.id != 0 && !ids.insert(filter.id)) {
        return Some(GsmCause::SyntacticalErrorInPacketFilters);
    }
    if rule.operation == RuleOperation::DeletePacketFilters {
        return None;
    }
    rule.packet_filters.iter().find_map(error_of_filter)
}

/// Components are present, each type once, and do not exclude each other.
fn error_of_filter(filter: &PacketFilter) -> Option<GsmCause> {
    use FilterComponent as C;
    let components = &filter.components;
    let is_repeated = |(index, one): (usize, &C)| {
        components.iter().skip(index + 1).any(|other| discriminant(one) == discriminant(other))
    };
    let matches_all = components.contains(&C::MatchAll) && components.len() > 1;
    if components.is_empty() || matches_all || components.iter().enumerate().any(is_repeated) {
        return Some(GsmCause::SyntacticalErrorInPacketFilters);
    }
    let has = |is: fn(&C) -> bool| components.iter().any(is);
    let has_ipv4 = has(|it| matches!(it, C::Ipv4Remote(..) | C::Ipv4Local(..)));
    let has_ipv6 = has(|it| matches!(it, C::Ipv6Remote(..) | C::Ipv6Local(..) | C::FlowLabel(_)));
    let has_port =
        has(|it| matches!(it, C::LocalPort(_) | C::LocalPorts(..) | C::RemotePort(_) | C::RemotePorts(..)));
    let has_both_forms = has(|it| matches!(it, C::LocalPort(_))) && has(|it| matches!(it, C::LocalPorts(..)))
        || has(|it| matches!(it, C::RemotePort(_))) && has(|it| matches!(it, C::RemotePorts(..)));
    let is_empty_range =
        has(|it| matches!(it, C::LocalPorts(low, high) | C::RemotePorts(low, high) if low > high));
    let has_spi = has(|it| matches!(it, C::SecurityParameterIndex(_)));
    let conflicts = has_ipv4 && has_ipv6 || has_port && has_spi || has_both_forms || is_empty_range;
    conflicts.then_some(GsmCause::SemanticErrorsInPacketFilters)
}
